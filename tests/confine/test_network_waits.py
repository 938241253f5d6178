"""Calls that wait: the program waits as it would without us, and nobody else does."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time

import pytest

pytestmark = [
    pytest.mark.requires("program"),
    pytest.mark.requires("listener"),
    pytest.mark.requires("landlock"),
]


@pytest.fixture
def deaf():
    """A port whose queue is full: a connection there waits for ever."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.socket())
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(3):
            one = stack.enter_context(socket.socket())
            one.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                one.connect(server.getsockname())
        yield server


@pytest.fixture
def granted(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text('extends = "no-network"\n[network]\nallow = ["loopback"]\n')
    return ("--policy", str(path))


WAIT = r"""
import errno, os, signal, socket, struct, sys, threading, time
port, way = int(sys.argv[1]), sys.argv[2]
class Alarm(Exception): pass
def ring(*_): raise Alarm
signal.signal(signal.SIGALRM, ring)
one = socket.socket()
ticks = [0]
def tick():
    while True:
        ticks[0] += 1
        open("written", "w").close()
        time.sleep(0.01)
if way == "alarm":
    signal.setitimer(signal.ITIMER_REAL, 0.3)
if way == "restart": # a handler that lets the call go on, then one that ends it
    signal.signal(signal.SIGUSR1, lambda *_: ticks.append("usr1"))
    signal.siginterrupt(signal.SIGUSR1, False)
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1)).start()
    signal.setitimer(signal.ITIMER_REAL, 0.6)
if way == "limit":
    one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 200000))
if way == "timeout":
    one.settimeout(0.2)
if way == "nonblocking":
    one.setblocking(False)
if way == "others":
    threading.Thread(target=tick, daemon=True).start()
    signal.setitimer(signal.ITIMER_REAL, 1)
try:
    one.connect(("127.0.0.1", port))
    print("connected")
except Alarm:
    print("alarm", ticks[1:])
except OSError as error:
    print(type(error).__name__, error.errno)
if way == "nonblocking":
    print(errno.errorcode[one.connect_ex(("127.0.0.1", port))])
if way == "others":
    print(ticks[0] > 3, flush=True)
    os._exit(0)
"""


@pytest.mark.parametrize(
    "way", ["alarm", "restart", "limit", "timeout", "nonblocking", "others"]
)
def test_connect_that_waits_ends_as_without(sandpit, deaf, granted, way):
    port = deaf.getsockname()[1]
    plain = sandpit.plain(WAIT, port, way)
    done = sandpit.run(WAIT, port, way, options=granted)
    assert (done.returncode, done.stdout) == (0, plain.stdout), done.stderr
    assert "connected" not in plain.stdout != ""
    assert sandpit.events("violation") == []


ERRORS = r"""
import errno, socket, sys
def name(code): return errno.errorcode.get(code, code)
one = socket.socket()
one.bind(("127.0.0.1", 0))
where = one.getsockname()
print(name(socket.socket().connect_ex(where)))  # nobody listens
one.listen(5)
two = socket.socket()
print(name(two.connect_ex(where)), name(two.connect_ex(where)), name(one.connect_ex(where)))
three = socket.socket()
three.setblocking(False)
print(name(three.connect_ex(where)) in (0, "EINPROGRESS"))
print(name(socket.socket(socket.AF_INET6).connect_ex(("::1", 1))))
four = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
print(name(four.connect_ex(where)), name(four.connect_ex(("127.0.0.1", 1))))
try: one.bind(where)
except OSError as error: print(name(error.errno))
try: socket.socket().bind(where)
except OSError as error: print(name(error.errno))
for size in (1, 65507, 65508):
    try: print(four.sendto(b"x" * size, ("127.0.0.1", 9)))
    except OSError as error: print(name(error.errno))
try: socket.socket().sendto(b"x", where)
except OSError as error: print(name(error.errno))
two.shutdown(socket.SHUT_WR)
try: two.sendmsg([b"x"])
except OSError as error: print(name(error.errno))
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for fd in (999, 0):
    libc.connect(fd, b"\2\0\0\1\x7f\0\0\1" + b"\0" * 8, 16)
    print(name(ctypes.get_errno()))
libc.connect(two.fileno(), b"\2\0", 2)
print(name(ctypes.get_errno()))
libc.sendmsg(four.fileno(), 1, 0)
print(name(ctypes.get_errno()))
"""


def test_errors_are_the_kernels(sandpit, granted):
    plain = sandpit.plain(ERRORS)
    assert (plain.returncode, plain.stderr) == (0, "")
    done = sandpit.run(ERRORS, options=granted)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert done.stdout == plain.stdout


HOLD = r"""
import socket, sys
print("begin", flush=True)
socket.socket().connect(("127.0.0.1", int(sys.argv[1])))
"""


def hold(sandpit, deaf, options):
    argv = sandpit.argv(HOLD, deaf.getsockname()[1], options=options)
    run = subprocess.Popen(argv, cwd=sandpit.folder, stdout=subprocess.PIPE, text=True)
    assert run.stdout.readline() == "begin\n"
    end = time.monotonic() + 20
    while deaf.getsockname() and time.monotonic() < end:
        with open("/proc/net/tcp", encoding="ascii") as lines:
            port = f":{deaf.getsockname()[1]:04X} 02"  # SYN_SENT
            if sum(port in line for line in lines) > 0:
                return run
    raise AssertionError("it never tried")


def test_interrupt_ends_a_run_that_waits(sandpit, deaf, granted):
    with hold(sandpit, deaf, granted) as run:
        run.send_signal(signal.SIGINT)
        assert run.wait(20) == 130
    assert sandpit.verify() == 0


def test_wall_limit_ends_a_run_that_waits(sandpit, deaf, granted):
    with hold(sandpit, deaf, (*granted, "--timeout", "1s")) as run:
        assert run.wait(20) == 124
    assert sandpit.verify() == 0


def test_interrupt_key_reaches_a_program_that_waits(sandpit, deaf, granted):
    import pty

    argv = sandpit.argv(HOLD, deaf.getsockname()[1], options=granted)
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(sandpit.folder)
        os.execv(argv[0], argv)
    seen = b""
    while b"begin" not in seen:
        seen += os.read(fd, 4096)
    time.sleep(0.3)
    os.write(fd, b"\x03")
    with contextlib.suppress(OSError):
        while data := os.read(fd, 4096):
            seen += data
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(fd)
    assert b"KeyboardInterrupt" in seen
    assert code == 130


FLOOD = r"""
import socket, threading
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
got = []
def take():
    for _ in range(2000):
        got.append(len(b.recv(70000)))
thread = threading.Thread(target=take)
thread.start()
for _ in range(2000):
    a.sendmsg([b"x" * 1000])
thread.join()
print(len(got), set(got))
server = socket.socket(socket.AF_UNIX)
server.bind("\0sandpit-queue-" + str(id(server)))
server.listen(1)
clients = []
def connect():
    one = socket.socket(socket.AF_UNIX)
    one.connect(server.getsockname())
    clients.append(one)
threads = [threading.Thread(target=connect) for _ in range(20)]
[t.start() for t in threads]
taken = [server.accept() for _ in range(20)]
[t.join() for t in threads]
print(len(clients))
"""


def test_full_queues_are_waited_for(sandpit, granted):
    done = sandpit.run(FLOOD, options=granted)
    assert (done.returncode, done.stdout) == (0, "2000 {1000}\n20\n"), done.stderr


CLEAR = r"""
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
static int s;
static volatile int done;
static void *clear(void *u) /* takes away again what keeps us from waiting */
{
    while (!done)
        fcntl(s, F_SETFL, 0);
    return u;
}
int main(int argc, char **argv)
{
    pthread_t t;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
    inet_pton(AF_INET, "127.0.0.1", &a.sin_addr);
    s = socket(AF_INET, SOCK_STREAM, 0);
    pthread_create(&t, NULL, clear, NULL);
    alarm(60);
    connect(s, (void *)&a, sizeof a);
    (void)argc;
    return 0;
}
"""
BESIDE = r"""
import subprocess, sys, time
run = subprocess.Popen(sys.argv[1:])
for _ in range(50):
    subprocess.run(["true"])
print("went on", flush=True)
run.kill()
"""


@pytest.mark.requires("cc")
def test_supervisor_waits_for_no_socket_of_the_programs(sandpit, deaf, granted, tmp_path):
    (tmp_path / "clear.c").write_text(CLEAR)
    command = ["cc", "-O2", "-pthread", "-o", tmp_path / "clear", tmp_path / "clear.c"]
    subprocess.run(command, check=True)
    words = (tmp_path / "clear", deaf.getsockname()[1])
    done = sandpit.run(BESIDE, *words, options=granted)
    assert (done.returncode, done.stdout) == (0, "went on\n"), done.stderr
