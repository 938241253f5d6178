"""A guest that would make the supervisor wait for it: the wall limit holds all the same, and
so does the caller's wish to end the run."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.requires("program"), pytest.mark.requires("listener")]

# A process holds a lease on a file outside what the guest may write by itself; whoever opens
# it for writing waits until the lease is given back.
LEASE = r"""
import fcntl, os, signal, sys, time
path = sys.argv[1]
with open(path, "w") as f:
    f.write("x")
if os.fork() == 0:
    signal.signal(signal.SIGIO, signal.SIG_IGN)
    f = os.open(path, os.O_RDONLY)
    fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    time.sleep(30)
    os._exit(0)
time.sleep(0.3)
for way in (lambda: os.open(path, os.O_WRONLY), lambda: os.truncate(path, 0)):
    try:
        way()
    except BlockingIOError:
        pass
print("past", flush=True)
"""


@pytest.mark.requires("landlock")
@pytest.mark.parametrize("abi", [None, 2])
def test_a_lease_is_not_waited_for(sandpit, tmp_path, abi):
    folder = tmp_path / "work"
    other = tmp_path / "temporary"
    folder.mkdir()
    other.mkdir()
    sandpit.folder = folder
    env = {"TMPDIR": str(other)}
    if abi is not None:
        env["SANDPIT_FORCE"] = f"landlock={abi}"
    done = sandpit.run(
        LEASE, tmp_path / "leased", options=("--policy", "no-network"), env=env
    )
    assert done.stdout == "past\n", done.stderr
    end = sandpit.events("end")[0]
    assert end["wall_ns"] < 5e9


# A thread of the lowest class asks for descriptors, and others do not let it run: to be given
# one, it would have to.
STARVE = r"""
import os, sys, time
cpu = min(os.sched_getaffinity(0))
os.sched_setaffinity(0, {cpu})
if os.fork() == 0:
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    while True:
        os.close(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT))
time.sleep(0.5)
for _ in range(200):
    if os.fork() == 0:
        while True:
            pass
print("started", flush=True)
time.sleep(60)
"""


@pytest.fixture
def starving(sandpit, tmp_path):
    folder = tmp_path / "work"
    other = tmp_path / "temporary"
    folder.mkdir()
    other.mkdir()
    sandpit.folder = folder
    return {"TMPDIR": str(other)}, tmp_path / "asked"


@pytest.mark.requires("landlock")
def test_a_starved_receiver_does_not_outlast_the_wall_limit(sandpit, starving):
    env, path = starving
    begun = time.monotonic()
    done = sandpit.run(
        STARVE, path, options=("--policy", "no-network", "--timeout", "3s"), env=env
    )
    assert done.returncode == 124, done.stderr
    assert time.monotonic() - begun < 8
    assert sandpit.verify() == 0


@pytest.mark.requires("landlock")
def test_a_starved_receiver_does_not_outlast_another_limit(sandpit, starving):
    """What the others use meanwhile is looked at although the supervisor waits."""
    env, path = starving
    done = sandpit.run(
        STARVE, path, options=("--policy", "no-network", "--cpu", "3s"), env=env
    )
    assert done.returncode == 137, done.stderr
    assert sandpit.events("end")[0]["status"] == "cpu-limit"


@pytest.mark.requires("landlock")
def test_a_starved_receiver_does_not_outlast_a_cancel(sandpit, starving):
    env, path = starving
    process = subprocess.Popen(
        sandpit.argv(STARVE, path, options=("--policy", "no-network")),
        cwd=sandpit.folder,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    # That it starved cannot be read from its output: the supervisor, which passes that on, waits.
    time.sleep(3)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) in (125, 143)
    with open(sandpit.trace, encoding="utf-8") as lines:
        assert json.loads(next(lines))["kind"] == "start"


# Threads that keep the supervisor busy, and processes that end without a word, left to it.
BUSY = r"""
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static void *ask(void *u)
{
    for (;;)
        syscall(OWN_CALL, 2, 0, 0, 0);
    return u;
}
int main(void)
{
    pthread_t t;
    for (int i = 0; i < 4; i++)
        pthread_create(&t, NULL, ask, NULL);
    for (int i = 0; i < 1000; i++) {
        if (fork() == 0) {
            if (fork() == 0)
                syscall(SYS_exit, 0);
            syscall(SYS_exit, 0);
        }
        wait(NULL);
    }
    sleep(1);
    puts("done");
    fflush(stdout);
    sleep(30);
    return 0;
}
"""


def dead_processes(name: str) -> int:
    """How many processes of that name are dead and not yet waited for."""
    count = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            count += f"({name}) Z " in path.read_text()
    return count


@pytest.mark.requires("cc")
def test_a_flood_of_calls_keeps_no_dead_process(sandpit, tmp_path):
    number = "184" if os.uname().machine == "x86_64" else "245"
    (tmp_path / "busy.c").write_text(BUSY)
    subprocess.run(
        [
            "cc",
            "-pthread",
            f"-DOWN_CALL={number}",
            "-o",
            tmp_path / "busy",
            tmp_path / "busy.c",
        ],
        check=True,
    )
    script = "import subprocess, sys; subprocess.run(sys.argv[1:])\n"
    process = subprocess.Popen(
        sandpit.argv(script, tmp_path / "busy", options=("--policy", "no-network")),
        cwd=sandpit.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "done\n"
    dead = dead_processes("busy")
    process.terminate()
    process.wait(20)
    assert dead < 100


# The ends of the run's own pipes go to a process outside.
HAND_OVER = r"""
import socket, sys
one = socket.socket(socket.AF_UNIX)
one.connect(sys.argv[1])
socket.send_fds(one, [b"x"], [1, 2])
print("handed over")
"""


@pytest.mark.parametrize("floods", [False, True])
def test_an_outsider_with_the_guests_output_is_not_waited_for(
    sandpit, tmp_path, floods
):
    held = []
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        server.listen(1)

        def take():
            one, _ = server.accept()
            held.extend(socket.recv_fds(one, 1, 4)[1])
            while floods:
                try:
                    os.write(held[0], b"x" * 65536)
                except BrokenPipeError:
                    break

        taker = threading.Thread(target=take)
        taker.start()
        try:
            done = sandpit.run(
                HAND_OVER,
                tmp_path / "s",
                options=("--policy", "trace-only"),
                timeout=20,
            )
        finally:
            taker.join()
            for fd in held:
                os.close(fd)
    assert len(held) == 2
    assert done.stdout.replace("x", "") == "handed over\n"
    assert sandpit.verify() == 0


MANY = r"""
import os, sys
kept, go = os.pipe()
for i in range(100):
    if os.fork() == 0:
        os.close(go)
        os.mkdir(os.path.join(sys.argv[1], str(i)))
        os.read(kept, 1)
        os._exit(0)
os.close(go)
for i in range(100):
    os.wait()
print(len(os.listdir(sys.argv[1])))
"""


def test_more_processes_than_descriptors_are_allowed(sandpit, tmp_path):
    folder = tmp_path / "made"
    folder.mkdir()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    done = sandpit.run(
        MANY,
        folder,
        options=("--policy", "no-network"),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard)),
    )
    assert done.stdout == "100\n", done.stderr
    assert len(sandpit.events("fork")) == 100
