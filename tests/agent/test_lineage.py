"""Each process, thread and subinterpreter has an identity of its own in the trace, a parent, a
start and an end, by whatever way it was made."""

from __future__ import annotations

import os
import time

import abilities
import pytest

HEAD = """
import ctypes, multiprocessing, os, subprocess, sys, time
def child_work(*_): return 1
CHILD = [sys.executable, "-c", "def child_work(): pass\\nchild_work()"]
def wait(pid): os.waitpid(pid, 0)
"""

# What is made, and the line of the family that has the child's work: for each link whether it
# became another program, and which (None: it went on in its parent's).
MADE = {
    "fork": ("""
pid = os.fork()
if pid == 0:
    child_work(); os._exit(7)
wait(pid)""", [None], 7),
    "fork by a system call": ("""
pid = ctypes.CDLL(None).syscall({fork})
if pid == 0:
    child_work(); os._exit(7)
wait(pid)""", [None], 7),
    "fork of a fork": ("""
pid = os.fork()
if pid == 0:
    inner = os.fork()
    if inner == 0:
        child_work(); os._exit(7)
    wait(inner); os._exit(0)
wait(pid)""", [None, None], 7),
    "orphan": ("""
read, write = os.pipe()
pid = os.fork()
if pid == 0:
    if os.fork() == 0:
        os.close(write)
        while os.getppid() == pid: pass
        time.sleep(0.05); child_work(); os._exit(7)
    os._exit(0)
os.close(write); wait(pid); time.sleep(0.5)""", [None, None], 7),
    "subprocess": ("subprocess.run(CHILD)", ["python"], 0),
    "subprocess of a shell": (
        "import shlex; subprocess.run(shlex.join(CHILD) + '; exit 3', shell=True)",
        ["sh", "python"], 0),
    "fork and exec": ("""
pid = os.fork()
if pid == 0: os.execv(CHILD[0], CHILD)
wait(pid)""", ["python"], 0),
    "posix_spawn": (
        "wait(os.posix_spawn(CHILD[0], CHILD, os.environ))", ["python"], 0),
    "spawnv": ("os.spawnv(os.P_WAIT, CHILD[0], CHILD)", ["python"], 0),
    "multiprocessing fork": ("start('fork')", [None], 0),
    "multiprocessing spawn": ("start('spawn')", ["python"], 0),
    "multiprocessing forkserver": ("start('forkserver')", ["python", None], 0),
}  # fmt: skip

TAIL = """
def start(method):
    one = multiprocessing.get_context(method).Process(target=child_work)
    one.start(); one.join()
if __name__ == "__main__":
"""


def program(body: str) -> str:
    number = {"x86_64": 57}.get(os.uname().machine)
    if "{fork}" in body:
        if number is None:
            abilities.require("x86_64", "there is no system call fork elsewhere")
        body = body.replace("{fork}", str(number))
    return HEAD + TAIL + "    " + body.strip().replace("\n", "\n    ") + "\n"


def check_lives(run) -> None:
    """Each process but the first has one start and one end, and a parent that is known."""
    first = run.events[0]["pid"]
    started = {one["child"]: one["parent"] for one in run.of("fork")}
    ended = [one["pid"] for one in run.of("exit")]
    assert len(started) == len(run.of("fork"))
    assert sorted(ended) == sorted([first, *started])
    assert set(started.values()) <= {first, *started}
    lives: dict[int, list[int]] = {}
    for one in run.events:
        if one["pid"] not in (0, first):
            lives.setdefault(one["pid"], []).append(one["seq"])
    assert set(lives) <= set(started)
    for one in run.of("fork"):
        assert one["seq"] == min(lives[one["child"]])


@pytest.mark.parametrize("level", ["folded", "all"])
@pytest.mark.parametrize("way", MADE)
def test_process_has_its_line_of_descent(traced, way, level):
    body, line, code = MADE[way]
    run = traced(program(body), level)
    assert run.code == 0
    check_lives(run)
    (worker,) = workers(run)
    parents = {one["child"]: one["parent"] for one in run.of("fork")}
    descent = [worker]
    while descent[0] in parents:
        descent.insert(0, parents[descent[0]])
    assert descent[0] == run.events[0]["pid"]
    became = {one["pid"]: one for one in run.of("exec")}
    for pid, program_name in zip(descent[1:], line, strict=True):
        told = became.get(pid)
        assert (told is not None) == (program_name is not None)
        if told:
            assert told["agent"] is (program_name == "python")
            name = os.path.basename(told["path"])
            assert name.startswith("python") == (program_name == "python")
            assert told["argv"]
    (end,) = [one for one in run.of("exit") if one["pid"] == worker]
    assert end["code"] == code


def workers(run) -> set[int]:
    """Give the processes that did the work."""
    numbers = {one["id"]: one["name"] for one in run.of("function")}
    found = {one["pid"] for one in run.of("call") if one["function"] == "child_work"}
    for one in run.of("run"):
        if any(numbers[abs(number)] == "child_work" for number in one["f"]):
            found.add(one["pid"])
    return found


@pytest.mark.parametrize("signal", [9, 15, 11])
def test_process_ended_by_a_signal_says_which(traced, signal):
    # A parent that had not asked yet made it unknown, about every second time.
    code = (
        "import os, time\n"
        "for _ in range(8):\n"
        "    pid = os.fork()\n"
        f"    if pid == 0: os.kill(os.getpid(), {signal}); time.sleep(9)\n"
        "    os.waitpid(pid, 0)\n"
    )
    run = traced(code, "off")
    check_lives(run)
    first = run.events[0]["pid"]
    ends = [one.get("signal") for one in run.of("exit") if one["pid"] != first]
    assert ends == [signal] * 8


def test_programs_that_are_no_python_stand_in_the_order_in_which_they_ran(traced):
    # That a shell was started was told only when the shell had ended.
    run = traced(
        "import subprocess\nsubprocess.run(['/bin/sh', '-c', '/bin/true; exit 3'])\n",
        "off",
    )
    check_lives(run)
    told = []
    for one in run.events:
        if one["kind"] in ("fork", "exit"):
            told.append(one["kind"])
        if one["kind"] == "exec":
            told.append(one["argv"][0])
            assert one["agent"] is False
    assert told == ["fork", "/bin/sh", "fork", "/bin/true", "exit", "exit", "exit"]
    codes = [one["code"] for one in run.of("exit")]
    assert codes == [0, 3, 0]


def test_process_that_becomes_another_keeps_its_identity(traced):
    code = (
        "import os, sys\n"
        "if len(sys.argv) == 1: os.execv(sys.executable, ['python3', __file__, 'again'])\n"
        "def again(): pass\nagain()\n"
    )
    run = traced(code, "folded")
    assert {one["pid"] for one in run.events} - {0} == {run.events[0]["pid"]}
    (told,) = run.of("exec")
    assert told["agent"] is True
    assert told["argv"][2] == "again"
    assert run.counts()["again"] == 1
    check_lives(run)


THREADS = {
    "threading": "thread = threading.Thread(target=work); thread.start(); thread.join()",
    "_thread": "_thread.start_new_thread(work, ()); done.acquire()",
    "timer": "thread = threading.Timer(0, work); thread.start(); thread.join()",
    "pool": (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(1) as pool: pool.submit(work).result()"
    ),
    "of a thread": (
        "def outer():\n"
        "    thread = threading.Thread(target=work); thread.start(); thread.join()\n"
        "thread = threading.Thread(target=outer); thread.start(); thread.join()"
    ),
}


@pytest.mark.parametrize("level", ["off", "folded", "all"])
@pytest.mark.parametrize("way", THREADS)
def test_thread_has_a_parent_a_start_and_an_end(traced, python, way, level):
    code = (
        "import _thread, threading, time\n"
        "done = _thread.allocate_lock(); done.acquire()\n"
        "def work():\n    open('script.py').close(); done.release()\n"
        f"{THREADS[way]}\ntime.sleep(0.1)\n"
    )
    run = traced(code, level)
    assert run.code == 0
    first = run.events[0]["pid"]
    started = {one["tid"]: one for one in run.of("thread") if one["op"] == "start"}
    ended = [one["tid"] for one in run.of("thread") if one["op"] == "end"]
    (worker,) = {one["tid"] for one in run.of("open") if one.get("at", "").endswith(":4")
                 and one["path"].endswith("script.py")}  # fmt: skip
    assert sorted(started) == sorted(ended)
    assert worker in started
    line = [worker]
    while line[-1] in started:
        line.append(started[line[-1]]["parent"])
    assert line[-1] == first
    assert len(line) == (3 if way == "of a thread" else 2)
    if python.version >= (3, 12) and way == "_thread":
        assert started[worker]["function"] == "work"
    if way in ("_thread", "threading"):
        assert started[worker]["at"].endswith("script.py:5")
    for tid, one in started.items():
        of_thread = [other["seq"] for other in run.events if other["tid"] == tid]
        assert one["seq"] == min(of_thread)


def test_threads_that_cannot_be_made_are_not_told(traced):
    code = (
        "import _thread, resource, time\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
        "_thread.stack_size(1 << 31)\n"
        "try: _thread.start_new_thread(print, ('ran',))\n"
        "except RuntimeError: print('refused')\n"
        "time.sleep(0.05)\n"
    )
    run = traced(code, "folded")
    assert run.stdout == "refused\n"
    assert not run.of("thread")


def test_many_threads_at_once(traced):
    code = (
        "import threading\n"
        "def work(): open('script.py').close()\n"
        "for _ in range(10):\n"
        "    ts = [threading.Thread(target=work) for _ in range(20)]\n"
        "    for one in ts: one.start()\n"
        "    for one in ts: one.join()\n"
    )
    run = traced(code, "all")
    assert run.counts()["work"] == 200
    started = [one for one in run.of("thread") if one["op"] == "start"]
    ended = [one for one in run.of("thread") if one["op"] == "end"]
    assert (len(started), len(ended)) == (200, 200)
    assert not run.of("lost")


def test_threads_of_a_forked_child_are_its_own(traced):
    code = (
        "import os, threading\n"
        "def work(): pass\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    one = threading.Thread(target=work); one.start(); one.join(); os._exit(0)\n"
        "os.waitpid(pid, 0)\n"
    )
    run = traced(code, "all")
    (child,) = [one["child"] for one in run.of("fork")]
    (told,) = [one for one in run.of("thread") if one["op"] == "start"]
    assert (told["pid"], told["parent"]) == (child, child)
    assert run.counts()["work"] == 1


INTERPRETERS = """
try:
    import _xxsubinterpreters as sub
    made = {"isolated": False} if hasattr(sub, "InterpreterID") and VERSION >= (3, 12) else {}
    new = lambda: sub.create(**made)
except ImportError:
    import _interpreters as sub
    new = lambda: sub.create("legacy")
for _ in range(2):
    one = new()
    sub.run_string(one, "def inner(): pass\\ninner()\\nimport colorsys\\nopen('script.py').close()")
    sub.destroy(one)
"""


@pytest.mark.parametrize("level", ["folded", "all"])
def test_subinterpreters_have_numbers_starts_and_ends(traced, level):
    code = "import sys\nVERSION = sys.version_info\n" + INTERPRETERS
    run = traced(code, level)
    assert (run.code, run.stdout) == (0, "")
    told = [(one["op"], one["subinterpreter"]) for one in run.of("thread")]
    one, other = sorted({number for _, number in told})
    assert told == [
        ("interpreter-start", one), ("interpreter-end", one),
        ("interpreter-start", other), ("interpreter-end", other),
    ]  # fmt: skip
    inside = {event.get("subinterpreter") for event in run.of("import")
              if event.get("module") == "colorsys"}  # fmt: skip
    assert inside == {one, other}
    opened = [event.get("subinterpreter") for event in run.of("open")
              if event["path"].endswith("script.py") and event["layer"] == "python"]  # fmt: skip
    assert opened[-2:] == [one, other]


def test_ends_are_told_when_the_program_ends_over_its_threads(traced):
    begun = time.monotonic()
    run = traced(
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
        "time.sleep(0.05)\n",
        "folded",
    )
    assert time.monotonic() - begun < 30
    assert run.code == 0
    (told,) = [one for one in run.of("thread") if one["op"] == "start"]
    assert told["tid"] != run.events[0]["pid"]
    assert [one["pid"] for one in run.of("exit")] == [run.events[0]["pid"]]
