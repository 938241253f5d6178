"""Supervisor or keeper killed: the tree is gone, the trace is in its place and
sound."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time

import pytest

pytestmark = [pytest.mark.requires("program"), pytest.mark.requires("listener")]

# Says who is who, then forks stubborn daemons and goes on opening files.
BUSY = r"""
import os, signal, sys, time
boss = os.getppid()
keeper = int(open(f"/proc/{boss}/stat").read().rpartition(")")[2].split()[1])
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for n in range(4):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True:
                if os.fork() == 0:
                    time.sleep(0.05)
                    os._exit(0)
                time.sleep(0.002)
                try:
                    while os.waitpid(-1, os.WNOHANG)[0]:
                        pass
                except ChildProcessError:
                    pass
        os._exit(0)
print(boss, keeper, os.getpid(), flush=True)
for n in range(1000000):
    open("busy.txt", "w").close()
"""


def members(session_marker: str) -> list[int]:
    """Pids of processes whose environment carries the marker."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as text:
                if session_marker.encode() in text.read():
                    found.append(int(name))
        except OSError:
            pass
    return found


def started(sandpit, marker):
    process = subprocess.Popen(
        sandpit.argv(BUSY, options=("--policy", "trace-only")),
        cwd=sandpit.folder,
        env={**os.environ, "SANDPIT_TEST_MARK": marker},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    boss, keeper, guest = map(int, process.stdout.readline().split())
    assert keeper == process.pid
    return process, boss, guest


def wait_gone(marker, seconds=1.0):
    end = time.monotonic() + seconds
    while members(marker) and time.monotonic() < end:
        time.sleep(0.01)
    return members(marker)


def test_supervisor_killed_leaves_a_compressed_trace(sandpit):
    sandpit.trace = sandpit.folder / "run.sptrace.zst"
    marker = f"mark-{os.getpid()}-{time.monotonic_ns()}"
    process, boss, _ = started(sandpit, marker)
    time.sleep(1.3)
    os.kill(boss, signal.SIGKILL)
    process.communicate(timeout=30)
    assert process.returncode == 125
    assert sandpit.trace.read_bytes().startswith(b"\x28\xb5\x2f\xfd")
    assert sandpit.verify() == 3


@pytest.mark.parametrize("delay", [0.0, 0.05, 0.3, 1.2])
def test_supervisor_killed(sandpit, delay):
    marker = f"mark-{os.getpid()}-{time.monotonic_ns()}"
    process, boss, _ = started(sandpit, marker)
    time.sleep(delay)
    os.kill(boss, signal.SIGKILL)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 125
    assert "the supervisor died" in errors
    assert members(marker) == []
    assert sandpit.verify() == 3  # sound up to its last checkpoint, no end


@pytest.mark.parametrize("delay", [0.0, 0.05, 0.3])
def test_keeper_killed(sandpit, delay):
    marker = f"mark-{os.getpid()}-{time.monotonic_ns()}"
    process, _, _ = started(sandpit, marker)
    time.sleep(delay)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(timeout=30)
    assert wait_gone(marker) == []
    end = time.monotonic() + 1
    while not sandpit.trace.exists() and time.monotonic() < end:
        time.sleep(0.01)
    assert sandpit.verify() == 0
    assert sandpit.events()[-1]["status"] == "cancelled"


@pytest.mark.parametrize("whom", ["supervisor", "keeper"])
def test_killed_at_any_moment(sandpit, whom):
    """From the program's first line on; more often with SANDPIT_KILLS."""
    moments = random.Random()
    for _ in range(int(os.environ.get("SANDPIT_KILLS", "10"))):
        marker = f"mark-{os.getpid()}-{time.monotonic_ns()}"
        process, boss, _ = started(sandpit, marker)
        time.sleep(moments.uniform(0, 0.4))
        os.kill(boss if whom == "supervisor" else process.pid, signal.SIGKILL)
        process.communicate(timeout=30)
        assert wait_gone(marker) == []
        end = time.monotonic() + 1
        while not sandpit.trace.exists() and time.monotonic() < end:
            time.sleep(0.01)
        assert sandpit.verify() == (3 if whom == "supervisor" else 0)
        sandpit.trace.unlink()


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_interrupted(sandpit, number, code):
    marker = f"mark-{os.getpid()}-{time.monotonic_ns()}"
    process, _, _ = started(sandpit, marker)
    os.kill(process.pid, number)
    process.communicate(timeout=30)
    assert process.returncode == code
    assert members(marker) == []
    assert sandpit.verify() == 0
    assert sandpit.events()[-1]["status"] == "cancelled"
