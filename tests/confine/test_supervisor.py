"""From inside, supervisor, keeper and trace can be neither read, changed, signalled,
limited nor stopped: each way is tried on them, and works on an unprotected process
outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from abilities import require
from programs import PROGRAM

pytestmark = pytest.mark.requires("program")

# Tries every way on the processes named, and prints which of them worked.
ATTACK = r"""
import ctypes, json, os, resource, signal, socket, struct, sys

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
X86 = os.uname().machine == "x86_64"
NR = dict(process_vm_readv=310, process_vm_writev=311, kcmp=312, pidfd_open=434,
          pidfd_getfd=438, pidfd_send_signal=424, ptrace=101, ioprio_set=251,
          migrate_pages=256, process_madvise=440, rt_sigqueueinfo=129, tgkill=234,
          tkill=200, rt_tgsigqueueinfo=297, sched_setattr=314, move_pages=279,
          sched_setparam=142) if X86 else dict(
          process_vm_readv=270, process_vm_writev=271, kcmp=272, pidfd_open=434,
          pidfd_getfd=438, pidfd_send_signal=424, ptrace=117, ioprio_set=30,
          migrate_pages=238, process_madvise=440, rt_sigqueueinfo=138, tgkill=131,
          tkill=130, rt_tgsigqueueinfo=240, sched_setattr=274, move_pages=239,
          sched_setparam=118)


def call(name, *arguments):
    result = libc.syscall(ctypes.c_long(NR[name]), *[
        a if hasattr(a, "contents") or isinstance(a, ctypes.Array) else ctypes.c_long(a)
        for a in arguments])
    if result < 0:
        raise OSError(ctypes.get_errno(), name)
    return result


def memory_address(pid):
    return int(open(f"/proc/self/maps").read().split("-")[0], 16)


def vm(name, pid):
    buffer = ctypes.create_string_buffer(8)
    local = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 8)
    remote = (ctypes.c_size_t * 2)(memory_address(pid), 8)
    try:
        call(name, pid, local, 1, remote, 1, 0)
    except OSError as error:
        if error.errno == 14:  # EFAULT: allowed, only nothing was mapped there
            return
        raise


def owner(pid, command, value):
    a, b = socket.socketpair()
    libc.fcntl.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long]
    if libc.fcntl(a.fileno(), command, value) < 0:
        raise OSError(ctypes.get_errno(), "fcntl")


def owner_by_struct(pid):
    a, b = socket.socketpair()
    import fcntl
    fcntl.fcntl(a, 15, struct.pack("ii", 1, pid))   # F_SETOWN_EX, F_OWNER_PID


def owner_by_ioctl(pid):
    a, b = socket.socketpair()
    import fcntl
    fcntl.ioctl(a, 0x8901, struct.pack("i", pid))   # FIOSETOWN


def advise(pid):
    vector = (ctypes.c_size_t * 2)(memory_address(pid), 4096)
    try:
        call("process_madvise", call("pidfd_open", pid, 0), vector, 1, 20, 0)
    except OSError as error:
        if error.errno != 12:  # ENOMEM: allowed, only nothing was mapped there
            raise


def scheduling(pid):
    attributes = ctypes.create_string_buffer(struct.pack("IIQiIQQQ", 48, 0, 0, 0, 0, 0, 0, 0))
    call("sched_setattr", pid, attributes, 0)


def limits(pid):
    soft, hard = resource.prlimit(pid, resource.RLIMIT_CORE)
    resource.prlimit(pid, resource.RLIMIT_CORE, (soft, hard))


def affinity(pid):
    os.sched_setaffinity(pid, os.sched_getaffinity(0))


# As sigqueue() fills it: si_code is SI_QUEUE.
QUEUED = ctypes.create_string_buffer(struct.pack("iii", signal.SIGCONT, 0, -1), 128)
WAYS = {
    "environ": lambda p: open(f"/proc/{p}/environ", "rb").read(1),
    "maps": lambda p: open(f"/proc/{p}/maps").read(1),
    "mem": lambda p: open(f"/proc/{p}/mem", "r+b"),
    "read mem": lambda p: open(f"/proc/{p}/mem", "rb"),
    "auxv": lambda p: open(f"/proc/{p}/auxv", "rb").read(1),
    "smaps": lambda p: open(f"/proc/{p}/smaps").read(1),
    "task maps": lambda p: open(f"/proc/{p}/task/{p}/maps").read(1),
    "fdinfo": lambda p: open(f"/proc/{p}/fdinfo/0").read(1),
    "fds": lambda p: [os.open(f"/proc/{p}/fd/{n}", os.O_RDONLY) for n in os.listdir(f"/proc/{p}/fd")],
    "cwd": lambda p: os.listdir(f"/proc/{p}/cwd/."),
    "oom": lambda p: open(f"/proc/{p}/oom_score_adj", "w").write("999"),
    "ptrace": lambda p: call("ptrace", 0x4206, p, 0, 0),
    "read memory": lambda p: vm("process_vm_readv", p),
    "write memory": lambda p: vm("process_vm_writev", p),
    "take descriptor": lambda p: call("pidfd_getfd", call("pidfd_open", p, 0), 0, 0),
    "kcmp": lambda p: call("kcmp", os.getpid(), p, 0, 0, 0),
    "kill 0": lambda p: os.kill(p, 0),
    "kill CONT": lambda p: os.kill(p, signal.SIGCONT),
    "queue": lambda p: call("rt_sigqueueinfo", p, signal.SIGCONT, QUEUED),
    "pidfd signal": lambda p: call("pidfd_send_signal", call("pidfd_open", p, 0), 0, 0, 0),
    "limits": limits,
    "priority": lambda p: os.setpriority(os.PRIO_PROCESS, p, os.getpriority(os.PRIO_PROCESS, p)),
    "affinity": affinity,
    "io priority": lambda p: call("ioprio_set", 1, p, (2 << 13) | 4),
    "scheduler": lambda p: os.sched_setscheduler(p, os.SCHED_BATCH, os.sched_param(0)),
    "owner": lambda p: owner(p, 8, p),
    "owner by struct": owner_by_struct,
    "owner by ioctl": owner_by_ioctl,
    "thread": lambda p: call("tgkill", p, p, signal.SIGCONT),
    "old thread": lambda p: call("tkill", p, signal.SIGCONT),
    "queue thread": lambda p: call("rt_tgsigqueueinfo", p, p, signal.SIGCONT, QUEUED),
    "group": lambda p: os.killpg(os.getpgid(p), signal.SIGCONT),
    "group priority": lambda p: os.setpriority(
        os.PRIO_PGRP, os.getpgid(p), os.getpriority(os.PRIO_PROCESS, p)),
    "group io priority": lambda p: call("ioprio_set", 2, os.getpgid(p), (2 << 13) | 4),
    "scheduling": scheduling,
    "scheduling parameter": lambda p: os.sched_setparam(p, os.sched_param(0)),
    "move pages": lambda p: call("move_pages", p, 0, 0, 0, 0, 0),
    "advise": advise,
}
worked = {}
for pid in map(int, sys.argv[1:]):
    target = {0: os.getppid()}.get(pid, pid)
    if pid == -1:  # the keeper: the supervisor's parent
        target = int(open(f"/proc/{os.getppid()}/stat").read().rpartition(")")[2].split()[1])
    worked[pid] = []
    for name, way in WAYS.items():
        try:
            way(target)
            worked[pid].append(name)
        except (OSError, PermissionError):
            pass
try:
    os.kill(-1, signal.SIGCONT)
    everything = True
except OSError:
    everything = False
print(json.dumps([worked, everything]))
"""


@pytest.fixture
def victim():
    process = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True
    )
    yield process.pid
    process.kill()
    process.wait()


def as_user(user):
    return {} if user is None else {"user": user, "group": user, "extra_groups": []}


@pytest.fixture(params=["root", "user"])
def identity(request, tmp_path):
    """Keywords of subprocess for running as root, or as an ordinary user."""
    if request.param == "root":
        require("root")
        return {}
    if os.geteuid() != 0:
        return {}
    os.chmod(tmp_path, 0o777)
    for folder in tmp_path.parents:
        if folder.stat().st_uid == 0 and folder.is_relative_to("/tmp"):
            os.chmod(folder, folder.stat().st_mode | 0o011)
    try:
        subprocess.run([PROGRAM, "--version"], capture_output=True, **as_user(65534))
    except PermissionError:
        require("user", "no program that another user may start")
    return as_user(65534)


def kept_from_anybody():
    """What the kernel keeps from a user without capabilities, sandbox or not."""
    if os.geteuid() == 0:
        return set()
    yama = Path("/proc/sys/kernel/yama/ptrace_scope")
    if not yama.exists() or yama.read_text() == "0\n":
        return {"advise"}
    attaching = {
        "mem",
        "read mem",
        "read memory",
        "write memory",
        "take descriptor",
        "ptrace",
    }
    return attaching | {"advise"}


def test_every_way_works_without_a_sandbox(sandpit, victim):
    done = sandpit.plain(ATTACK, victim)
    worked, _ = json.loads(done.stdout)
    expected = {
        "environ",
        "maps",
        "mem",
        "read mem",
        "auxv",
        "smaps",
        "task maps",
        "fdinfo",
        "fds",
        "read memory",
        "write memory",
        "kcmp",
        "kill 0",
        "kill CONT",
        "queue",
        "pidfd signal",
        "limits",
        "priority",
        "affinity",
        "io priority",
        "scheduler",
        "owner",
        "ptrace",
        "take descriptor",
        "owner by struct",
        "owner by ioctl",
        "thread",
        "old thread",
        "queue thread",
        "group",
        "group priority",
        "group io priority",
        "scheduling",
        "scheduling parameter",
        "move pages",
        "advise",
    }
    assert expected - kept_from_anybody() <= set(worked[str(victim)])


@pytest.mark.requires("landlock")
@pytest.mark.requires("listener")
@pytest.mark.parametrize(
    "policy", ["trace-only", "no-network", "default", "./glob.toml"]
)
@pytest.mark.parametrize("abi", [None, 1, 2, 3, 4, 5])
def test_no_way_works_from_inside(sandpit, identity, victim, policy, abi):
    # What may be denied anywhere is read by the supervisor, itself included.
    (sandpit.folder / "glob.toml").write_text('[fs]\ndeny_read = ["**/secret"]\n')
    env = {} if abi is None else {"SANDPIT_FORCE": f"landlock={abi}"}
    done = sandpit.run(
        ATTACK, 0, -1, victim, options=("--policy", policy), env=env, **identity
    )
    assert done.returncode == 0, done.stderr
    worked, everything = json.loads(done.stdout)
    assert worked["0"] == []
    assert worked["-1"] == []
    outside = set(worked[str(victim)])
    if identity:  # the victim belongs to somebody else then
        assert outside <= {"cwd"}
    assert outside == set()
    assert not everything
    assert sandpit.verify() == 0
    refused = [
        e for e in sandpit.events("tamper" if policy == "trace-only" else "violation")
    ]
    names = {e["operation"] for e in refused}
    assert {
        "kill",
        "prlimit64",
        "ptrace",
        "process_vm_readv",
        "process_vm_writev",
        "kcmp",
        "pidfd_getfd",
        "setpriority",
        "fcntl",
        "ioctl",
        "ioprio_set",
        "sched_setattr",
        "sched_setparam",
        "move_pages",
        "process_madvise",
    } <= names
    assert all("script.py" in e.get("at", "") for e in refused)


SUFFOCATE = r"""
import os, socket, ctypes, threading
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(4, 0, 0, 0, 0)          # hide from whoever reads our memory
libc.fcntl.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long]
for fd in range(3, 1024):
    try:
        os.close(fd)
    except OSError:
        pass
fresh = open("after.txt", "w")
print(os.path.exists("after.txt"))
"""


def test_a_guest_that_hides_is_read_all_the_same(sandpit):
    done = sandpit.run(SUFFOCATE, options=("--policy", "trace-only"))
    assert done.stdout == "True\n"
    assert any(e["path"].endswith("after.txt") for e in sandpit.events("open"))
    assert sandpit.verify() == 0


# The trace's name is taken by a folder, the folder is renamed under its feet.
OBSTACLE = r"""
import os, sys
trace = sys.argv[1]
os.mkdir(trace)
open(os.path.join(trace, "mine"), "w").write("mine")
"""


def test_an_obstacle_in_the_traces_place_is_moved_aside(sandpit):
    done = sandpit.run(OBSTACLE, sandpit.trace, options=("--policy", "trace-only"))
    assert done.returncode == 0, done.stderr
    assert sandpit.verify() == 0
    moved = [p for p in sandpit.folder.iterdir() if ".moved-" in p.name]
    assert len(moved) == 1
    assert (moved[0] / "mine").read_text() == "mine"


OWN_LISTENER = r"""
import ctypes, struct
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(38, 1, 0, 0, 0)
program = struct.pack("HBBI", 6, 0, 0, 0x7fff0000)
code = ctypes.create_string_buffer(program)
class Prog(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
prog = Prog(1, ctypes.addressof(code))
number = 317 if __import__("os").uname().machine == "x86_64" else 277
for flags in (8, 8 | 1 | 16, 8 | (1 << 32)):
    print(libc.syscall(ctypes.c_long(number), ctypes.c_long(1), ctypes.c_ulong(flags), ctypes.byref(prog)),
          ctypes.get_errno())
"""


def test_a_guest_cannot_have_a_listener_of_its_own(sandpit):
    assert not sandpit.plain(OWN_LISTENER).stdout.startswith("-1 16")
    done = sandpit.run(OWN_LISTENER, options=("--policy", "trace-only"))
    assert done.stdout.splitlines() == ["-1 16"] * 3
