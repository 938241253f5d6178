"""`sandpit run --events FD`: the lines of the trace, while the program runs."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import select
import signal
import socket
import subprocess
import threading
import time
import tty
from pathlib import Path

import pytest
from someone import Someone

pytestmark = pytest.mark.requires("program", "landlock", "listener")

QUEUE_BYTES = 9 << 20  # what docs/command-line.md says may wait for the reader


class Reader(threading.Thread):
    """Reads a descriptor to its end; `lines` are what came, with newlines."""

    def __init__(self, fd):
        super().__init__(daemon=True)
        self.fd = fd
        self.lines = []
        self.times = []
        self.start()

    def run(self):
        # A terminal whose other end is closed gives EIO.
        with contextlib.suppress(OSError), open(self.fd, "rb") as stream:
            for line in stream:
                self.times.append(time.monotonic())
                self.lines.append(line)

    def events(self):
        self.join(30)
        assert not self.is_alive()
        return [json.loads(line) for line in self.lines]


@pytest.fixture
def begin(program, tmp_path):
    """Starts `sandpit run --events FD ARGUMENTS`; FD is then closed here."""
    started = []

    def start(fd, *arguments, **options):
        process = subprocess.Popen(
            [program, "run", "--events", str(fd), *map(str, arguments)],
            pass_fds=[fd] if fd > 2 else [],
            cwd=tmp_path,
            text=True,
            stdin=subprocess.DEVNULL,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
        )
        started.append(process)
        if fd > 2:
            os.close(fd)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def read(path):
    with open(path) as stream:
        return stream.read()


def children(pid):
    with contextlib.suppress(OSError):
        return [int(one) for one in read(f"/proc/{pid}/task/{pid}/children").split()]
    return []


def check_numbers(events):
    """Every number is there, or a `lost` line accounts for it."""
    expected = 0
    for event in events:
        if event["kind"] == "lost":
            expected += event.get("missing", 0)
        assert event["seq"] == expected, event
        expected += event.get("n", 1) if event["kind"] == "run" else 1


def pipe():
    return os.pipe()


def sockets():
    ours, theirs = socket.socketpair()
    return ours.detach(), theirs.detach()


@pytest.mark.parametrize("ends", [pipe, sockets])
@pytest.mark.parametrize("options", [[], ["--quiet"], ["--json"], ["--calls", "all"]])
def test_events_option_gives_every_line_of_the_trace(begin, tmp_path, ends, options):
    reading, writing = ends()
    reader = Reader(reading)
    code = "import json\nfor i in range(500): json.dumps(i)\nprint('done')"
    process = begin(writing, *options, "-o", "one.sptrace", "-c", code)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert "done" in out
    reader.join(30)
    assert b"".join(reader.lines) == (tmp_path / "one.sptrace").read_bytes()


def test_events_option_without_trace_records_as_with_one(begin, tmp_path):
    reading, writing = pipe()
    reader = Reader(reading)
    process = begin(writing, "--no-trace", "-c", "import json; print('done')")
    assert process.communicate(timeout=60)[0] == "done\n"
    events = reader.events()
    kinds = {event["kind"] for event in events}
    assert {"start", "source", "import", "call", "output", "exit", "end"} <= kinds
    assert events[-1]["kind"] == "end" and os.listdir(tmp_path) == []
    check_numbers(events)


def test_events_option_file_gets_the_same_bytes(sandpit, tmp_path):
    with open(tmp_path / "events.jsonl", "wb") as stream:
        done = sandpit(
            *("run", "--events", stream.fileno(), "-o", "one.sptrace", "-c", "pass"),
            pass_fds=[stream.fileno()],
        )
    assert (done.returncode, done.stderr) == (0, "")
    lines = (tmp_path / "events.jsonl").read_bytes()
    assert lines == (tmp_path / "one.sptrace").read_bytes() != b""


CHANGES = """
import os, sys
for act in (lambda p: open(p, "r+"), lambda p: os.truncate(p, 1), os.remove,
            lambda p: os.rename(p, p + "-old")):
    try:
        act(sys.argv[1])
        print("done")
    except PermissionError:
        print("refused")
    except FileNotFoundError:
        print("gone")
"""


@pytest.mark.parametrize("policy", ["trace-only", "no-network", "default"])
def test_events_option_file_is_not_the_programs(sandpit, tmp_path, policy):
    path = tmp_path / "events.jsonl"
    other = tmp_path / "other.jsonl"
    (tmp_path / "job.py").write_text(CHANGES)
    allowed = ("--allow-write", str(tmp_path)) if policy == "default" else ()
    with open(path, "wb") as stream:
        done = sandpit(
            *("run", "--policy", policy, *allowed, "--events", stream.fileno()),
            *("-o", "one.sptrace", "job.py", path),
            pass_fds=[stream.fileno()],
        )
    assert done.stdout.split() == ["refused"] * 4, done.stderr
    assert path.read_bytes() == (tmp_path / "one.sptrace").read_bytes()
    other.write_text("x")
    done = sandpit("run", "--policy", policy, *allowed, "job.py", other)
    assert done.stdout.split() == ["done", "done", "done", "gone"], done.stderr


def test_events_option_standard_output_takes_events_and_then_the_result(sandpit):
    done = sandpit("run", "--json", "--events", "1", "--no-trace", "-c", "print(6 * 7)")
    *events, result = map(json.loads, done.stdout.splitlines())
    assert [events[0]["kind"], events[-1]["kind"]] == ["start", "end"]
    assert result["stdout"] == "42\n"
    assert result["events"] == {"lost": 0, "error": None}


@pytest.mark.parametrize(
    ("fd", "says"),
    [
        ("0", "--events 0: that is the program's standard input"),
        ("1", "--events 1: the program prints there"),
        ("2", "--events 2: the program prints there"),
        ("777", "--events 777: no such descriptor is open"),
        ("99999999999", "--events 99999999999: no such descriptor is open"),
        ("x", "--events: 'x' is not a whole number"),
        ("-1", "--events: '-1' is not a whole number"),
    ],
)
def test_events_option_refuses_what_is_no_place_for_them(sandpit, fd, says):
    done = sandpit("run", "--events", fd, "-c", "print('ran')")
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.startswith(f"sandpit: {says}")


def test_events_option_refuses_descriptors_that_take_no_stream(sandpit):
    pair = socket.socketpair(type=socket.SOCK_DGRAM)
    with open("/dev/null") as reading, pair[0], pair[1]:
        epoll = select.epoll()
        for fd, says in (
            (reading.fileno(), "the descriptor is not open for writing"),
            (pair[0].fileno(), "not a stream socket"),
            (epoll.fileno(), "neither a file, a pipe, a socket nor a terminal"),
        ):
            done = sandpit("run", "--events", fd, "-c", "0", pass_fds=[fd])
            assert (done.returncode, done.stderr) == (
                125,
                f"sandpit: --events {fd}: {says}\n",
            )


def test_events_option_descriptor_does_not_reach_the_program(begin):
    reading, writing = pipe()
    reader = Reader(reading)
    code = f"""
import os
import pty
print(sorted(int(fd) for fd in os.listdir('/proc/self/fd'))[:3])
for fd in range(3, 64):
    try:
        os.write(fd, b'forged\\n')
    except OSError as error:
        assert error.errno == 9, error
print(os.system('echo forged >&{writing}') != 0)
"""
    process = begin(
        *(writing, "--policy", "trace-only", "--no-trace", "-c", code),
        stderr=subprocess.DEVNULL,
    )
    assert process.communicate(timeout=60)[0] == "[0, 1, 2]\nTrue\n"
    assert not any(line.startswith(b"forged") for line in reader.lines)
    check_numbers(reader.events())


@pytest.mark.parametrize(
    "work", ["time.sleep(20)", "while True: sum(range(1000))"], ids=["sleeps", "works"]
)
def test_events_option_event_arrives_while_the_program_runs(begin, work):
    reading, writing = pipe()
    reader = Reader(reading)
    code = f"import time\nprint(f'mark {{time.monotonic()}}', flush=True)\n{work}"
    process = begin(writing, "--no-trace", "-c", code, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 15
    marks = []
    while not marks and time.monotonic() < deadline:
        time.sleep(0.01)
        marks = [
            (json.loads(line), at)
            for line, at in zip(list(reader.lines), list(reader.times))
            if b'"text":"mark ' in line
        ]
    assert process.poll() is None and marks
    event, came = marks[0]
    # 20 ms are promised; the rest is for a machine with much else to do.
    assert came - float(event["text"].split()[1]) < 1
    process.send_signal(signal.SIGTERM)
    process.wait(20)
    assert reader.events()[-1]["status"] == "cancelled"


FLOOD = "for i in range({}): open('/dev/null', 'w').close()"


def test_events_option_stopped_reader_holds_nothing_up_and_is_told(begin, tmp_path):
    reading, writing = pipe()
    code = FLOOD.format(80_000) + "\nprint('flooded', flush=True)\n"
    code += "import time\ntime.sleep(3)\n" + FLOOD.format(100)
    process = begin(writing, "-o", "one.sptrace", "-c", code)
    assert process.stdout.readline() == "flooded\n"
    time.sleep(2)
    reader = Reader(reading)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0
    events = reader.events()
    check_numbers(events)
    lost = [event for event in events if event["kind"] == "lost"]
    count = sum(event["count"] for event in lost)
    assert {event["reason"] for event in lost} == {"slow-reader"}
    assert f"--events: {count} events were lost, the reader was too slow" in err
    assert events[-1]["kind"] == "end" and events[-1]["lost"] == 0
    lines = (tmp_path / "one.sptrace").read_bytes().splitlines(keepends=True)
    assert len(lines) == events[-1]["seq"] + 1 > 80_000
    assert count == len(lines) - (len(events) - len(lost))
    assert {line for line in reader.lines if b'"lost"' not in line} <= set(lines)


def test_events_option_reader_that_never_reads_ends_with_the_run(begin):
    reading, writing = pipe()
    process = begin(
        *(writing, "--no-trace", "--timeout", "2s", "-c"),
        "while True: open('/dev/null', 'w').close()",
    )
    began = time.monotonic()
    high = 0
    while process.poll() is None:
        time.sleep(0.05)
        for child in children(process.pid):
            with contextlib.suppress(OSError):
                high = max(high, int(read(f"/proc/{child}/statm").split()[1]) * 4096)
    assert process.returncode == 124
    assert time.monotonic() - began < 5
    assert 0 < high < QUEUE_BYTES + (32 << 20)
    assert "the reader was too slow" in process.communicate()[1]
    os.close(reading)


@pytest.mark.parametrize("ends", [pipe, sockets])
def test_events_option_reader_that_goes_away_ends_the_stream_only(
    begin, ends, tmp_path
):
    reading, writing = ends()
    code = "import time\nprint('begun', flush=True)\n" + FLOOD.format(5000)
    process = begin(writing, "-o", "one.sptrace", "-c", code + "\nprint('done')")
    assert os.read(reading, 100).startswith(b'{"seq":0,')
    os.close(reading)
    assert process.communicate(timeout=60) == ("begun\ndone\n", "")
    assert process.returncode == 0
    last = (tmp_path / "one.sptrace").read_bytes().splitlines()[-1]
    assert json.loads(last)["counts"]["open"] > 5000


def test_events_option_full_disk_ends_the_stream_only(sandpit):
    with open("/dev/full", "wb") as full:
        done = sandpit(
            *("run", "--json", "--events", full.fileno(), "-c", "print('done')"),
            pass_fds=[full.fileno()],
        )
    assert done.returncode == 0
    result = json.loads(done.stdout)
    assert result["stdout"] == "done\n"
    assert result["events"]["error"] == os.strerror(28)
    assert "No space left on device: the stream ended early" in done.stderr


@pytest.mark.parametrize("ends", [pipe, sockets])
def test_events_option_leaves_the_callers_open_file_as_it_was(begin, ends):
    reading, writing = ends()
    kept = os.dup(writing)
    reader = Reader(reading)
    process = begin(writing, "--no-trace", "-c", "import time; time.sleep(0.3)")
    seen = set()
    while process.poll() is None:
        seen.add(fcntl.fcntl(kept, fcntl.F_GETFL) & os.O_NONBLOCK)
        time.sleep(0.02)
    assert seen == {0}
    os.close(kept)
    assert reader.events()[-1]["kind"] == "end"


def test_events_option_several_runs_share_a_pipe_line_by_line(begin):
    reading, writing = pipe()
    reader = Reader(reading)
    copies = [os.dup(writing) for _ in range(3)]
    os.close(writing)
    code = "for i in range(2000): open('/dev/null', 'w').close()"
    for process in [begin(fd, "--no-trace", "-c", code) for fd in copies]:
        assert process.communicate(timeout=60) == ("", "")
    runs = {}
    for event in reader.events():
        # Checkpoints belong to no process; nothing else here is longer than PIPE_BUF.
        if event["pid"]:
            runs.setdefault(event["pid"], []).append(event["seq"])
    assert len(runs) == 3
    assert all(numbers == sorted(set(numbers)) for numbers in runs.values())


def test_events_option_end_of_stream_comes_when_the_supervisor_is_killed(begin):
    reading, writing = pipe()
    reader = Reader(reading)
    process = begin(writing, "--no-trace", "-c", "while True: pass")
    while not reader.lines:
        time.sleep(0.01)
    os.kill(children(process.pid)[0], signal.SIGKILL)
    assert process.wait(20) == 125
    events = reader.events()
    assert events[0]["kind"] == "start" and events[-1]["kind"] != "end"


def test_events_option_terminal_gets_lines_and_stays_as_it_was(begin, tmp_path):
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    kept = os.dup(theirs)
    reader = Reader(os.dup(ours))
    process = begin(theirs, "-o", "one.sptrace", "-c", "print('done')")
    assert process.communicate(timeout=60) == ("done\n", "")
    assert fcntl.fcntl(kept, fcntl.F_GETFL) & os.O_NONBLOCK == 0
    wanted = (tmp_path / "one.sptrace").read_bytes()
    deadline = time.monotonic() + 20
    while sum(map(len, list(reader.lines))) < len(wanted):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert b"".join(reader.lines) == wanted
    os.close(kept)
    os.close(ours)


def test_events_option_interrupt_ends_the_wait_for_a_stopped_reader(begin):
    reading, writing = pipe()
    process = begin(writing, "--no-trace", "-c", FLOOD.format(2000) + "\nprint('done')")
    assert process.stdout.readline() == "done\n"
    time.sleep(1)
    assert process.poll() is None  # it waits for the reader
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.wait(20)
    assert time.monotonic() - began < 3
    os.close(reading)


def test_events_option_stopped_reader_lengthens_no_run_beyond_its_limit(begin):
    reading, writing = pipe()
    began = time.monotonic()
    process = begin(writing, "--no-trace", "--timeout", "1s", "-c", FLOOD.format(10**9))
    assert process.wait(20) == 124
    # 0.2 s are promised; the rest is for a machine with much else to do.
    assert time.monotonic() - began < 3
    os.close(reading)


@pytest.mark.requires("root")
def test_events_option_pipe_of_another_user_is_asked_and_stays_as_it_was(tmp_path):
    one = Someone(tmp_path, user=True, force="")
    reading, writing = pipe()
    reader = Reader(reading)
    code = FLOOD.format(3000) + "\nprint('done')"
    done = subprocess.run(
        [one.program, "run", "--events", str(writing), "--no-trace", "-c", code],
        pass_fds=[writing],
        cwd=one.folder,
        env={**one.environment, "PATH": f"{Path(one.python).parent}:{os.defpath}"},
        text=True,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        **one.who,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)
    assert fcntl.fcntl(writing, fcntl.F_GETFL) & os.O_NONBLOCK == 0
    os.close(writing)
    events = reader.events()
    assert events[-1]["kind"] == "end"
    check_numbers(events)
    one.close()
