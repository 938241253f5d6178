"""Nothing is missing from a trace without a `lost` record.

A program counts for itself what it does. What is in its trace, and what the trace says is
lost, must add up to that: with a small trace limit, on a full disk, behind a supervisor
that stands still, with more functions than there is room for, with a process that is killed
in the middle, and in a burst.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import time
from collections import Counter

import abilities
import pytest
from programs import PROGRAM

pytestmark = [pytest.mark.requires("program"), pytest.mark.requires("listener")]

LEVELS = ("off", "first", "folded", "all")

# Processes, threads in each, rounds, and how many of them are an open. Each thread counts in
# memory that all share, after the act. The first child may be killed half-way.
WITNESS = r"""
import _thread, json, mmap, os, signal, sys
processes, threads, rounds, every, killed = map(int, sys.argv[1:6])
area = mmap.mmap(-1, 16 * processes * threads)
counts = memoryview(area).cast("Q")

def leaf():
    pass

def work(slot, name, lock):
    victim = killed and slot // threads == 1
    for i in range(1 << 40 if victim else rounds):
        leaf()
        counts[2 * slot] += 1
        if i % every == 0:
            os.close(os.open(name, os.O_RDONLY))
            counts[2 * slot + 1] += 1
    lock.release()

def process(number):
    locks = []
    for thread in range(threads):
        name = f"data-{number}-{thread}"
        os.close(os.open(name, os.O_RDWR | os.O_CREAT))
        lock = _thread.allocate_lock()
        lock.acquire()
        locks.append(lock)
        _thread.start_new_thread(work, (number * threads + thread, name, lock))
    for lock in locks:
        lock.acquire()

children = []
for number in range(1, processes):
    pid = os.fork()
    if pid == 0:
        process(number)
        os._exit(0)
    children.append(pid)
print(json.dumps([os.getppid(), os.getpid(), *children]), flush=True)
if killed:
    while counts[2 * threads] < rounds // 3:
        pass
    os.kill(children[0], signal.SIGKILL)
process(0)
for pid in children:
    os.waitpid(pid, 0)
print(json.dumps([list(counts[2 * i : 2 * i + 2]) for i in range(processes * threads)]))
"""


class Told:
    """What a trace tells, and what it says is lost; its numbers are looked at on the way."""

    def __init__(self, lines) -> None:
        self.opens: Counter[tuple[int, str]] = Counter()  # by process and name
        self.leaves: Counter[int] = Counter()  # calls of leaf() by process
        self.calls = 0  # of Python functions, and at `all` of C functions too
        self.kinds: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()  # events by reason
        self.lost_calls = 0
        self.end: dict = {}
        self.names: dict[int, str] = {}
        expected = 0
        for line in lines:
            event = json.loads(line)
            expected += event.get("missing", 0) if event["kind"] == "lost" else 0
            assert event["seq"] == expected, line
            takes = event["n"] if event["kind"] == "run" else 1
            expected += takes
            self.kinds[event["kind"]] += takes
            getattr(self, "_" + event["kind"], lambda _: None)(event)
        assert self.end["lost"] == sum(self.lost.values())

    def _open(self, event: dict) -> None:
        if event["op"] == "read" and "data-" in event["path"]:
            self.opens[event["pid"], event["path"].rpartition("/")[2]] += 1

    def _function(self, event: dict) -> None:
        self.names[event["id"]] = event["name"]

    def _run(self, event: dict) -> None:
        resumed = set(event.get("resumed", ()))
        ids = Counter(f for i, f in enumerate(event["f"]) if f > 0 and i not in resumed)
        self.calls += sum(ids.values())
        self.leaves[event["pid"]] += sum(
            n for f, n in ids.items() if self.names.get(f) == "leaf"
        )

    def _call(self, event: dict) -> None:
        if not event.get("native"):
            count = event.get("count", 1)
            self.calls += count
            self.leaves[event["pid"]] += count if event["function"] == "leaf" else 0

    def _lost(self, event: dict) -> None:
        self.lost[event["reason"]] += event["count"]
        self.lost_calls += event.get("calls", 0)

    def _end(self, event: dict) -> None:
        self.end = event


def options(calls: str, *more: str) -> tuple[str, ...]:
    return ("--quiet", "--policy", "trace-only", "--calls", calls, *more)


def told(sandpit) -> Told:
    assert sandpit.verify() == 0
    with open(sandpit.trace, "rb") as lines:
        return Told(lines)


def witness(sandpit, calls, *arguments, more=()):
    """Run it. What it counted, by thread, and its processes."""
    done = sandpit.run(WITNESS, *arguments, options=options(calls, *more))
    assert done.returncode == 0, done.stderr
    pids, counts = map(json.loads, done.stdout.splitlines())
    return pids[1:], counts


def check_opens(
    trace: Told, pids: list[int], counts: list[list[int]], slack=()
) -> None:
    """Each thread's own count; one may have been in the middle of an act."""
    threads = len(counts) // len(pids)
    for i, (_, opens) in enumerate(counts):
        process, thread = divmod(i, threads)
        found = trace.opens[pids[process], f"data-{process}-{thread}"]
        assert opens <= found <= opens + (process in slack), (i, found, opens)


def check_leaves(trace: Told, calls: str, pids, counts, slack=()) -> None:
    threads = len(counts) // len(pids)
    for process, pid in enumerate(pids):
        ran = sum(one[0] for one in counts[process * threads : (process + 1) * threads])
        found = trace.leaves[pid]
        if calls in ("off", "first"):
            assert found == (calls == "first")
        else:
            assert ran <= found <= ran + threads * (process in slack)


@pytest.mark.parametrize("calls", LEVELS)
def test_losses_none_where_there_is_room(sandpit, python, calls):
    more = ("--python", python.path)
    pids, counts = witness(sandpit, calls, 3, 2, 20000, 10, 0, more=more)
    trace = told(sandpit)
    check_opens(trace, pids, counts)
    check_leaves(trace, calls, pids, counts)
    assert not trace.lost


@pytest.mark.parametrize("calls", LEVELS)
def test_losses_of_a_killed_process_are_none(sandpit, calls):
    """Whatever it had done by then stands in its ring, which is not its own. It never ends by
    itself."""
    pids, counts = witness(sandpit, calls, 3, 2, 60000, 10, 1)
    trace = told(sandpit)
    check_opens(trace, pids, counts, slack=(1,))
    check_leaves(trace, calls, pids, counts, slack=(1,))
    assert not trace.lost
    (end,) = [one for one in sandpit.events("exit") if one["pid"] == pids[1]]
    # Of a process that is not its own child the supervisor may not get to know more.
    assert end.get("signal") == signal.SIGKILL or end["code"] == "unknown"


SUICIDE = r"""
import json, os, signal, sys
def leaf():
    pass
count = int(sys.argv[1])
open("data-0-0", "w").close()
for i in range(count):
    leaf()
    os.close(os.open("data-0-0", os.O_RDONLY))
print(json.dumps([os.getpid(), [[count, count]]]), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("calls", LEVELS)
def test_losses_of_a_killed_program_are_none(sandpit, calls):
    done = sandpit.run(SUICIDE, 20000, options=options(calls))
    assert done.returncode == 128 + signal.SIGKILL
    pid, counts = json.loads(done.stdout)
    trace = told(sandpit)
    check_opens(trace, [pid], counts)
    check_leaves(trace, calls, [pid], counts)
    assert not trace.lost
    assert (trace.end["status"], trace.end["signal"]) == ("signal", signal.SIGKILL)


@pytest.mark.parametrize("calls", LEVELS)
def test_losses_without_a_listener_are_none(sandpit, calls):
    """The agents wait for room by a socket, then."""
    more = ("--allow-degraded", "listener")
    pids, counts = witness(sandpit, calls, 3, 2, 20000, 10, 0, more=more)
    trace = told(sandpit)
    check_opens(trace, pids, counts)
    check_leaves(trace, calls, pids, counts)
    assert not trace.lost


@pytest.mark.parametrize("calls", LEVELS)
def test_losses_by_a_trace_limit_add_up(sandpit, calls):
    """The counts of the end go on, and what they have more than the trace is lost."""
    arguments = (3, 2, 20000, 10, 0)
    _, counts = witness(sandpit, calls, *arguments)
    whole = told(sandpit)
    _, again = witness(sandpit, calls, *arguments, more=("--max-trace", "128K"))
    assert again == counts
    trace = told(sandpit)
    assert trace.end["status"] == "ok"
    assert set(trace.lost) == {"size-cap"}
    assert trace.end["counts"]["open"] == whole.end["counts"]["open"]
    missing = Counter(trace.end["counts"]) - trace.kinds
    assert sum(missing.values()) == sum(trace.lost.values())
    assert missing["open"] > 1000 and missing["exit"] == missing["fork"] == 0
    if calls in ("folded", "all"):
        assert whole.leaves.total() == sum(one[0] for one in counts)
        assert trace.calls + trace.lost_calls == whole.calls


def test_losses_are_told_to_whoever_asks(sandpit):
    loop = "import os\nfor i in range(20000): os.close(os.open(__file__, os.O_RDONLY))"
    more = ("--json", "--max-trace", "128K", "--policy", "trace-only")
    done = sandpit.run(loop, options=more)
    result = json.loads(done.stdout)
    trace = told(sandpit)
    lost = sum(trace.lost.values())
    assert (done.returncode, result["status"]) == (0, "ok")
    assert 0 <= lost - (result["summary"]["open"] - trace.kinds["open"]) < 100
    assert result["summary"]["lost"] == trace.kinds["lost"]
    assert result["limits"]["trace"]["reached"]
    assert [one["operation"] for one in result["violations"]] == ["trace"]
    for command, says in (
        (
            "verify",
            f"sound and complete, {trace.end['seq'] + 1:,} events, {lost:,} more",
        ),
        ("show", f"events lost: {lost:,}, size-cap"),
    ):
        shown = subprocess.run(
            [PROGRAM, command, sandpit.trace],
            capture_output=True,
            text=True,
            check=True,
        )
        assert says in shown.stdout


FULL = """
import os
with open("big", "wb", buffering=0) as file:
    try:
        while True:
            file.write(b"x" * 4096)
    except OSError:
        pass
"""
ON_DISK = """
mount -t tmpfs -o size=8m none "$1" && cd "$1" && cp "$2" job.py || exit 1
shift 2
"$@" job.py 3 2 20000 10 0
code=$?
cat run.sptrace >&2
exit $code
"""


@pytest.mark.requires("mounts")
@pytest.mark.parametrize("calls", LEVELS)
def test_losses_on_a_full_disk_add_up(tmp_path, calls):
    (tmp_path / "disk").mkdir()
    (tmp_path / "job.py").write_text(FULL + WITNESS)
    command = [str(PROGRAM), "run", "-o", "run.sptrace", *options(calls)]
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", ON_DISK, "sh", str(tmp_path / "disk"),
         str(tmp_path / "job.py"), *command],
        stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    counts = json.loads(done.stdout.splitlines()[1])
    path = tmp_path / "run.sptrace"
    path.write_bytes(done.stderr)
    trace = Told(done.stderr.splitlines())
    assert subprocess.run([PROGRAM, "verify", path], check=False).returncode == 0
    assert set(trace.lost) == {"disk-full"}
    missing = Counter(trace.end["counts"]) - trace.kinds
    assert sum(missing.values()) == sum(trace.lost.values())
    assert trace.end["counts"]["open"] >= sum(one[1] for one in counts)
    assert missing["exit"] == missing["fork"] == 0
    if calls == "folded":
        assert trace.calls + trace.lost_calls >= sum(one[0] for one in counts)


def behind_a_stopped_supervisor(
    sandpit, script, *arguments, calls="folded", seconds=1.0
):
    """Run, the supervisor standing still for some time. The lines that it prints."""
    process = subprocess.Popen(
        sandpit.argv(script, *arguments, options=options(calls)),
        cwd=sandpit.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    first = process.stdout.readline()
    os.kill(json.loads(first)[0], signal.SIGSTOP)
    time.sleep(seconds)
    assert process.poll() is None
    process.send_signal(signal.SIGCONT)  # the keeper, which stops as its child does
    rest, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    return [first, *rest.splitlines()]


@pytest.mark.parametrize("calls", LEVELS)
def test_losses_behind_a_slow_supervisor_are_none(sandpit, calls):
    lines = behind_a_stopped_supervisor(
        sandpit, WITNESS, 3, 2, 150000, 20, 0, calls=calls
    )
    pids, counts = map(json.loads, lines)
    trace = told(sandpit)
    check_opens(trace, pids[1:], counts)
    check_leaves(trace, calls, pids[1:], counts)
    assert not trace.lost


# Opens that Python knows nothing of, by threads that do not hold the GIL.
NATIVE = r"""
import ctypes, json, os, sys, threading
threads, rounds = map(int, sys.argv[1:3])
libc = ctypes.CDLL(None)
counts = [0] * threads

def work(number):
    name = f"data-0-{number}".encode()
    for i in range(rounds):
        libc.close(libc.open(name, 0))
        counts[number] += 1

for number in range(threads):
    open(f"data-0-{number}", "w").close()
print(json.dumps([os.getppid(), os.getpid()]), flush=True)
them = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
for one in them:
    one.start()
for one in them:
    one.join()
print(json.dumps([[0, count] for count in counts]))
"""


def test_losses_of_threads_without_the_gil_are_none(sandpit):
    """They share a small ring; who waited for it long gave up, and nothing told of that."""
    pids, counts = map(
        json.loads, behind_a_stopped_supervisor(sandpit, NATIVE, 4, 15000)
    )
    trace = told(sandpit)
    check_opens(trace, pids[1:], counts)
    assert not trace.lost


# Two processes import the same modules, each thread a folder of its own.
IMPORTS = r"""
import _thread, json, os, sys
threads, modules = map(int, sys.argv[1:3])
done = [0] * threads

def work(thread, lock):
    for i in range(modules):
        __import__(f"part{thread}.m{i}")
        done[thread] += 1
    lock.release()

for thread in range(threads):
    os.mkdir(f"part{thread}")
    for i in range(modules):
        open(f"part{thread}/m{i}.py", "w").close()
print(json.dumps([os.getppid(), os.getpid()]), flush=True)
pid = os.fork()
children = [pid] if pid else None
locks = [_thread.allocate_lock() for _ in range(threads)]
for thread, lock in enumerate(locks):
    lock.acquire()
    _thread.start_new_thread(work, (thread, lock))
for lock in locks:
    lock.acquire()
if children is None:
    os._exit(done != [modules] * threads)
print(json.dumps([done, [os.waitpid(pid, 0)[1] for pid in children]]))
"""


def check_imports(sandpit, lines, limited=False) -> None:
    """Two processes with two threads each, as they count; each module once a process."""
    done, ends = json.loads(lines[1])
    assert ends == [0] and len(done) == 2
    trace = told(sandpit)
    found = Counter(
        (event["pid"], event["module"])
        for event in sandpit.events("import")
        if ".m" in event["module"]
    )
    assert set(found.values()) <= {1}
    if limited:
        assert trace.end["counts"]["import"] - trace.kinds["import"] > 100
        missing = Counter(trace.end["counts"]) - trace.kinds
        assert sum(missing.values()) == sum(trace.lost.values())
    else:
        assert sum(found.values()) == 2 * sum(done)
        assert not trace.lost


@pytest.mark.parametrize("situation", ["room", "limit", "slow"])
def test_losses_of_imports(sandpit, situation):
    arguments = (2, 150)
    if situation == "slow":
        lines = behind_a_stopped_supervisor(sandpit, IMPORTS, *arguments)
    else:
        more = ("--max-trace", "256K") if situation == "limit" else ()
        done = sandpit.run(IMPORTS, *arguments, options=options("folded", *more))
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
    check_imports(sandpit, lines, situation == "limit")


FUNCTIONS = r"""
import os, sys
count = int(sys.argv[1])
names = {}
exec("\n".join(f"def leaf{i}(): pass" for i in range(count)), names)
for i in range(count):
    names[f"leaf{i}"]()
sys.stdout.write(str(count))
sys.stdout.flush()
os._exit(0)
"""


@pytest.mark.parametrize("calls", ["first", "folded", "all"])
def test_losses_of_more_functions_than_a_ring_holds_add_up(sandpit, calls):
    done = sandpit.run(FUNCTIONS, 70000, options=options(calls))
    assert done.stdout == "70000", done.stderr
    trace = told(sandpit)
    assert trace.lost_calls == trace.lost["calls that found no room to be counted"]
    found = sum(
        event.get("count", 1)
        for event in sandpit.events("call")
        if event["function"].startswith("leaf")
    )
    if calls == "all":
        leaves = {i for i, name in trace.names.items() if name.startswith("leaf")}
        found = sum(
            len(leaves.intersection(event["f"])) for event in sandpit.events("run")
        )
    # After the room was used up only what writes the count runs, which is C's.
    assert 70000 <= found + trace.lost_calls < 70010


BURST = """
import sys
def leaf():
    pass
def burst(count):
    for _ in range(count):
        leaf()
burst(int(sys.argv[1]))
"""


@pytest.mark.parametrize("calls", LEVELS)
def test_losses_in_a_burst_of_ten_million_calls_are_none(sandpit, calls):
    count = 10_000_000
    ends = []
    for number in (0, count):
        done = sandpit.run(BURST, number, options=options(calls))
        assert done.returncode == 0, done.stderr
        assert sandpit.verify() == 0
        with open(sandpit.trace, "rb") as trace:
            trace.seek(-4096, os.SEEK_END)
            ends.append(json.loads(trace.read().splitlines()[-1]))
        if calls == "folded":
            assert told(sandpit).leaves.total() == number
        sandpit.trace.unlink()
    assert ends[0]["lost"] == ends[1]["lost"] == 0
    runs = [end["counts"].get("run", 0) for end in ends]
    assert runs[1] - runs[0] == (2 * count if calls == "all" else 0)


CROWD = r"""
import os, sys
ready, go = os.pipe()
pids = []
for i in range(int(sys.argv[1])):
    pid = os.fork()
    if pid == 0:
        os.close(go)
        try:
            os.close(os.open(f"file-{i}", os.O_RDWR | os.O_CREAT))
        except OSError:
            pass
        os.read(ready, 1)
        os._exit(3)
    pids.append(pid)
os.close(go)
print(sum(os.waitpid(pid, 0)[1] != 0 for pid in pids))
"""


def few_descriptors() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))


def test_losses_of_processes_without_room_are_told(sandpit):
    """Each costs the supervisor descriptors: where it is out of them, calls fail, and are told."""
    done = sandpit.run(
        CROWD, 100, options=options("folded"), preexec_fn=few_descriptors
    )
    assert (done.returncode, done.stdout.strip()) == (0, "100"), done.stderr
    trace = told(sandpit)
    # One that had no room may find some when others have ended.
    untold = trace.lost["calls of processes for which there was no room"]
    assert untold > 0
    assert trace.kinds["fork"] + untold >= 100
    made = len(list(sandpit.folder.glob("file-*")))
    assert trace.kinds["open"] >= made > 0


@pytest.mark.versions(since=(3, 12))
def test_losses_of_interpreters_with_a_lock_of_their_own(sandpit, python):
    """Their opens go through the ring that all share; their calls are told as lost."""
    if not python.has("_interpreters") and not python.has("_xxsubinterpreters"):
        abilities.require("subinterpreters", f"none in {python.label}")
    script = """
import json, os, sys, threading
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
work = '''
import os
for i in range(3000):
    os.close(os.open("data-0-%d", os.O_RDONLY))
'''
print(json.dumps([os.getppid(), os.getpid()]), flush=True)
for number in range(3):
    open(f"data-0-{number}", "w").close()
made = [interpreters.create() for _ in range(3)]
them = [threading.Thread(target=interpreters.run_string, args=(one, work % number))
        for number, one in enumerate(made)]
for one in them:
    one.start()
for one in them:
    one.join()
"""
    done = sandpit.run(script, options=options("off", "--python", python.path))
    assert done.returncode == 0, done.stderr
    trace = told(sandpit)
    assert list(trace.opens.values()) == [3000] * 3
    assert not trace.lost


def test_the_witness_counts_what_it_does(sandpit):
    """The control: without sandpit its counts are what was asked for."""
    done = sandpit.plain(WITNESS, 2, 2, 1000, 10, 0)
    assert json.loads(done.stdout.splitlines()[1]) == [[1000, 100]] * 4
