"""Ways to a socket of somebody else where the network is denied: each is open without a
sandbox and leads nowhere inside."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time

import pytest

pytestmark = [
    pytest.mark.requires("program"),
    pytest.mark.requires("listener"),
    pytest.mark.requires("landlock"),
]

# An abstract name can be taken once for each type of socket: the own one of another type
# must not vouch for the stranger's.
NAMESAKE = r"""
import socket, sys
name = "\0" + sys.argv[1]
own = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
own.bind(name)
own.listen(1)
one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
one.connect(name)
other = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
try:
    other.connect(name)
    print("outside")
except PermissionError:
    print("own")
"""


@pytest.fixture
def abstract_server(tmp_path):
    name = f"sandpit-test-{os.getpid()}-{tmp_path.name}"
    reached = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind("\0" + name)
        server.listen(8)

        def serve():
            while True:
                try:
                    one, _ = server.accept()
                except OSError:
                    return
                reached.append(one)

        threading.Thread(target=serve, daemon=True).start()
        yield name, reached
        server.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("abi", [None, 2, 5])
def test_a_namesake_does_not_vouch_for_a_stranger(sandpit, abstract_server, abi):
    name, reached = abstract_server
    assert sandpit.plain(NAMESAKE, name).stdout == "outside\n"
    for _ in range(1000):  # the server's thread counts it in its own time
        if reached:
            break
        time.sleep(0.01)
    before = len(reached)
    env = {} if abi is None else {"SANDPIT_FORCE": f"landlock={abi}"}
    done = sandpit.run(NAMESAKE, name, options=("--policy", "no-network"), env=env)
    assert done.stdout == "own\n", done.stderr
    assert len(reached) == before
    assert [e["target"] for e in sandpit.events("violation")] == [f"@{name}"]
    assert sandpit.verify() == 0


# A thread puts another process's pidfd under the number that is judged.
SIGNAL = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
static int own, other;
static volatile int done;
static void *flip(void *u)
{
    while (!done) {
        dup2(own, 100);
        dup2(other, 100);
    }
    return u;
}
int main(int argc, char **argv)
{
    pthread_t t;
    int sent = 0;
    signal(SIGUSR1, SIG_IGN);
    own = (int)syscall(434, getpid(), 0);
    other = (int)syscall(434, atoi(argv[1]), 0);
    dup2(own, 100);
    pthread_create(&t, NULL, flip, NULL);
    for (int i = 0; i < atoi(argv[2]); i++)
        sent += syscall(424, 100, SIGUSR1, NULL, 0) == 0;
    done = 1;
    puts(sent > 0 ? "sent" : "none");
    (void)argc;
    return 0;
}
"""
VICTIM = r"""
import signal, sys
reached = 0
def count(*_):
    global reached
    reached += 1
signal.signal(signal.SIGUSR1, count)
print("ready", flush=True)
sys.stdin.readline()
print(reached)
"""


@pytest.mark.requires("cc")
@pytest.mark.parametrize("abi", [None, 2, 5])
def test_a_racing_pidfd_signals_nobody_outside(sandpit, tmp_path, abi):
    (tmp_path / "race.c").write_text(SIGNAL)
    subprocess.run(
        ["cc", "-O2", "-pthread", "-o", tmp_path / "race", tmp_path / "race.c"],
        check=True,
    )
    script = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)"

    def reached(run, tries, **keywords):
        victim = subprocess.Popen(
            [sys.executable, "-c", VICTIM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        victim.stdout.readline()
        done = run(script, tmp_path / "race", victim.pid, tries, **keywords)
        assert done.stdout == "sent\n", done.stderr
        return int(victim.communicate("\n")[0])

    assert reached(sandpit.plain, 300000) > 0
    env = {} if abi is None else {"SANDPIT_FORCE": f"landlock={abi}"}
    options = ("--policy", "trace-only")
    assert reached(sandpit.run, 5000, options=options, env=env) == 0


# A thread with descriptors of its own: the numbers mean something else to the others.
OWN_TABLE = r"""
import ctypes, os, socket, sys, threading
def work():
    assert ctypes.CDLL(None).unshare(0x400) == 0  # CLONE_FILES
    for fd in range(3, 20):
        try: os.close(fd)
        except OSError: pass
    server = socket.socket(socket.AF_UNIX)
    server.bind(sys.argv[1])
    server.listen(1)
    one = socket.socket(socket.AF_UNIX)
    one.connect(sys.argv[1])
    print("connected")
others = [socket.socket(socket.AF_UNIX) for _ in range(17)]
thread = threading.Thread(target=work)
thread.start()
thread.join()
for other in others:
    try:
        other.getpeername()
        print("another")
    except OSError:
        pass
"""


@pytest.mark.requires("thread-descriptors")  # the connection is refused without them
def test_a_thread_with_its_own_descriptors_connects_its_own(sandpit, tmp_path):
    done = sandpit.run(OWN_TABLE, tmp_path / "s", options=("--policy", "no-network"))
    assert done.stdout == "connected\n", done.stderr
