"""Ways out that others' sandboxes left open: each is tried in plain Python first, where it
works, and from inside, where it does not. Which of them is tested where else stands in
tests/README.md."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest
from abilities import require

pytestmark = [
    pytest.mark.requires("program"),
    pytest.mark.requires("listener"),
    pytest.mark.requires("landlock"),
]

LEAKED = r"""
import os
for fd in range(3, 201):
    try:
        os.write(fd, b"reached")
    except OSError:
        pass
"""


@pytest.mark.parametrize("policy", ["trace-only", "no-network"])
def test_descriptors_of_the_caller_are_not_handed_on(sandpit, tmp_path, policy):
    witness = tmp_path / "witness"
    with open(witness, "wb") as stream:
        leaked = [os.dup(stream.fileno()) for _ in range(100)]
        try:
            sandpit.plain(LEAKED, pass_fds=leaked)
            assert witness.read_bytes() == b"reached" * 100
            os.truncate(witness, 0)
            options = ("--policy", policy)
            done = sandpit.run(LEAKED, options=options, pass_fds=leaked)
        finally:
            for fd in leaked:
                os.close(fd)
    assert done.returncode == 0, done.stderr
    assert witness.read_bytes() == b""


# What each path says must be about the process or thread that opens it, not about whoever
# opens it in its place.
OWN = r"""
import os, threading
os.symlink("/proc/self/stat", "link")
proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)
def first(path, how="r", **options):
    with open(os.open(path, os.O_RDWR if how == "r+" else os.O_RDONLY, **options), how) as stream:
        return stream.read().split()[0]
def look():
    pid, tid = str(os.getpid()), str(threading.get_native_id())
    print([first(path) == pid for path in ("/proc/self/stat", "link", "/proc/self/root/proc/self/stat",
           "/proc/self/cwd/link", f"/proc/self/task/{pid}/stat")])
    print(first("self/stat", dir_fd=proc) == pid, first("thread-self/stat", dir_fd=proc) == tid)
    print(first("/proc/thread-self/stat") == tid, os.readlink("/proc/self") == pid)
    # Opened for writing it is the supervisor that opens where the policy says so.
    with open("/proc/self/comm", "r+") as stream:
        stream.write("renamed" + tid)
    print(first("/proc/thread-self/comm", "r+"), first(f"/proc/self/task/{pid}/comm"))
    fd = os.open("/proc/self/stat", os.O_RDONLY)
    print(first(f"/dev/fd/{fd}") == pid, first(f"/proc/self/fd/{fd}") == pid)
    print("SANDPIT_WITNESS=here" in open("/proc/self/environ").read().split("\0"))
look()
one = threading.Thread(target=look)
one.start()
one.join()
if os.fork() == 0:
    look()
    os._exit(0)
os.wait()
"""


@pytest.mark.parametrize("policy", ["trace-only", "no-network"])
def test_names_that_mean_whoever_asks_mean_the_program(sandpit, monkeypatch, policy):
    monkeypatch.setenv("SANDPIT_WITNESS", "here")
    plain = sandpit.plain(OWN)
    assert plain.returncode == 0, plain.stderr
    os.unlink(sandpit.folder / "link")
    done = sandpit.run(OWN, options=("--policy", policy))

    def without_ids(text: str) -> list[str]:
        return [line.rstrip("0123456789") for line in text.splitlines()]

    assert done.returncode == 0, done.stderr
    told = [line for line in done.stdout.splitlines() if "renamed" not in line]
    assert told == [line for line in plain.stdout.splitlines() if "renamed" not in line]
    assert "False" not in done.stdout.replace("False]", "")


STORM = r"""
import os, signal, subprocess, socket
rung = 0
def ring(*_):
    global rung
    rung += 1
signal.signal(signal.SIGALRM, ring)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
done = 0
for i in range(60):
    with open(f"file{i % 5}", "w") as stream:
        stream.write(str(i))
    while True:
        try:
            # CPython does not try this one again by itself: see SECURITY.md.
            os.rename(f"file{i % 5}", "moved")
            break
        except InterruptedError:
            pass
    one, other = socket.socketpair()
    one.sendall(b"x")
    done += other.recv(1) == b"x"
    one.close()
    other.close()
for _ in range(3):
    # The timer is not inherited; starting and waiting for a program is interrupted.
    done += subprocess.run(["true"]).returncode == 0
signal.setitimer(signal.ITIMER_REAL, 0)
print(done, rung > 0)
"""


@pytest.mark.parametrize("policy", ["trace-only", "no-network"])
def test_signals_every_millisecond_interrupt_nothing_for_good(sandpit, policy):
    assert sandpit.plain(STORM).stdout == "63 True\n"
    done = sandpit.run(STORM, options=("--policy", policy))
    assert done.stdout == "63 True\n", done.stderr
    assert sandpit.verify() == 0


PIPES = r"""
import subprocess
for _ in range(int(__import__("sys").argv[1])):
    one = subprocess.Popen(["echo", "through"], stdout=subprocess.PIPE)
    two = subprocess.Popen(["cat"], stdin=one.stdout, stdout=subprocess.PIPE)
    three = subprocess.Popen(["cat"], stdin=two.stdout, stdout=subprocess.PIPE)
    one.stdout.close()
    two.stdout.close()
    assert three.communicate()[0] == b"through\n"
    assert (one.wait(), two.wait(), three.wait()) == (0, 0, 0)
print("done")
"""


def test_pipelines_of_programs_end(sandpit):
    assert sandpit.plain(PIPES, 20).stdout == "done\n"
    done = sandpit.run(PIPES, 20, options=("--policy", "trace-only"), timeout=300)
    assert done.stdout == "done\n", done.stderr


# A process is stopped and goes on wherever it happens to be, in a call that is judged too.
FROZEN = r"""
import os, signal, time
child = os.fork()
if child == 0:
    for i in range(400):
        with open("counted", "w") as stream:
            stream.write(str(i))
    os._exit(0)
stops = 0
while os.waitpid(child, os.WNOHANG) == (0, 0):
    os.kill(child, signal.SIGSTOP)
    ended, status = os.waitpid(child, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        break
    stops += 1
    os.kill(child, signal.SIGCONT)
    time.sleep(0.002)
print(open("counted").read(), stops > 0)
"""


def test_a_process_that_is_stopped_goes_on(sandpit):
    assert sandpit.plain(FROZEN).stdout == "399 True\n"
    done = sandpit.run(FROZEN, options=("--policy", "no-network"))
    assert done.stdout == "399 True\n", done.stderr
    assert sandpit.verify() == 0


CALL = """
import socket
try:
    with socket.create_connection(("127.0.0.1", {port}), timeout=5): pass
except OSError: pass
"""


@pytest.mark.parametrize(
    "place", ["sitecustomize", "usercustomize", "pth", "folder", "startup"]
)
def test_code_that_runs_before_the_program_is_confined(sandpit, listener, place):
    code = CALL.format(port=listener.port)
    folder = sandpit.folder
    script, environment = "print('ran')", {}
    packages = folder / "packages"
    packages.mkdir()
    if place in ("sitecustomize", "usercustomize"):
        (packages / f"{place}.py").write_text(code)
        environment = {"PYTHONPATH": str(packages)}
    elif place == "pth":
        # A folder for packages of one's own: its .pth files may hold code.
        (packages / "one.pth").write_text(f"import sys; exec({code!r})\n")
        (packages / "sitecustomize.py").write_text(
            f"import site; site.addsitedir({str(packages)!r})\n"
        )
        environment = {"PYTHONPATH": str(packages)}
    elif place == "folder":
        (folder / "colorsys.py").write_text(code)
        script = "import colorsys; print('ran')"
    else:
        (folder / "startup.py").write_text(code)
        environment = {"PYTHONSTARTUP": str(folder / "startup.py")}
    # An environment of its own has no folder of the user's, and no usercustomize.
    python = os.path.realpath(sys.executable)
    (folder / "script.py").write_text(script)
    plain = subprocess.run(
        [python, "script.py"],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert plain.stdout == "ran\n", plain.stderr
    # No script runs what PYTHONSTARTUP names.
    assert (listener.arrived > 0) == (place != "startup")
    before = listener.arrived
    options = ("--policy", "no-network", "--python", python)
    done = sandpit.run(script, options=options, env=environment)
    assert done.stdout == "ran\n", done.stderr
    assert listener.arrived == before
    if place != "startup":
        refused = [one["operation"] for one in sandpit.events("violation")]
        assert "connect" in refused or "socket" in refused


# Calls that no program needs, with arguments that do nothing should they arrive: how they
# fail shows who refused them.
RARE = r"""
import ctypes, json, os
libc = ctypes.CDLL(None, use_errno=True)
found = {}
for name, number in json.loads(__import__("sys").argv[1]).items():
    ctypes.set_errno(0)
    result = libc.syscall(*(ctypes.c_long(one) for one in (number, -1, -1, -1, -1, -1, -1)))
    found[name] = [result, ctypes.get_errno()]
print(json.dumps(found))
"""
NUMBERS = {
    "x86_64": {
        "mount": 165,
        "umount2": 166,
        "pivot_root": 155,
        "setns": 308,
        "open_by_handle_at": 304,
        "open_tree": 428,
        "move_mount": 429,
        "fsopen": 430,
        "fsconfig": 431,
        "fsmount": 432,
        "mount_setattr": 442,
        "io_uring_setup": 425,
        "io_uring_enter": 426,
        "io_uring_register": 427,
        "bpf": 321,
        "userfaultfd": 323,
        "perf_event_open": 298,
        "kexec_load": 246,
        "init_module": 175,
        "keyctl": 250,
        "ptrace": 101,
        "kcmp": 312,
    },
}


@pytest.mark.parametrize("policy", ["trace-only", "no-network"])
def test_calls_that_no_program_needs_are_refused_and_recorded(sandpit, policy):
    numbers = NUMBERS.get(os.uname().machine)
    if numbers is None:
        require("x86_64")
    done = sandpit.run(RARE, json.dumps(numbers), options=("--policy", policy))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    # EPERM, EACCES or ENOSYS: not EFAULT or EINVAL, by which the kernel itself complains.
    arrived = {name for name, (_, errno) in found.items() if errno not in (1, 13, 38)}
    # What makes the kernel's surface smaller is no concern of a policy that denies nothing.
    surface = {"bpf", "keyctl"} if policy == "trace-only" else set()
    assert arrived == surface
    kind = "tamper" if policy == "trace-only" else "violation"
    recorded = {one.get("operation") for one in sandpit.events(kind)}
    # Libraries ask for io_uring to find out whether it is there.
    silent = {name for name in numbers if name.startswith("io_uring")}
    assert set(numbers) - recorded == surface | silent


UNKNOWN = r"""
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
errors = set()
for number in range(*map(int, sys.argv[1:])):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(-1) for _ in range(6)))
    errors.add((result, ctypes.get_errno()))
print(sorted(errors))
"""


def test_calls_that_do_not_exist_do_not_exist(sandpit):
    assert sandpit.plain(UNKNOWN, 600, 1024).stdout == "[(-1, 38)]\n"
    done = sandpit.run(UNKNOWN, 600, 1024, options=("--policy", "trace-only"))
    assert done.stdout == "[(-1, 38)]\n", done.stderr


@pytest.mark.requires("x86_64")  # which alone has two kinds of calls in one program
@pytest.mark.parametrize("number", [2**31 - 1, 0x40000000])
def test_a_number_of_another_kind_of_program_ends_the_run(sandpit, number):
    assert sandpit.plain(UNKNOWN, number, number + 1).stdout == "[(-1, 38)]\n"
    options = ("--policy", "trace-only", "--quiet")
    done = sandpit.run(UNKNOWN, number, number + 1, options=options)
    assert (done.stdout, done.returncode) == ("", 128 + signal.SIGSYS)
    assert sandpit.verify() == 0
