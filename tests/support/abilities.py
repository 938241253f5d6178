"""What this machine can do, and what a test does where it cannot.

A test names what it needs: `@pytest.mark.requires("bash")`, or `require("bash")` in it.
Without that the test is skipped, unless the environment variable SANDPIT_REQUIRE (names
with commas between) names it: then it fails.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
from interpreters import find as find_pythons

ROOT = Path(__file__).resolve().parents[2]

PROGRAMS = ("b2sum", "bash", "cc", "fish", "getent", "git", "groff", "node", "openssl", "strace", "xxd", "zsh", "zstd")
MODULES = ("matplotlib", "mypy", "numpy", "pandas", "pyarrow", "requests")
# What reads exported traces in tests.
MODULES += ("ocsf_json_schema", "opentelemetry", "viztracer")


def require(name: str, missing: str | None = None) -> None:
    """Skip, or fail, unless the machine has the ability `name`.

    `missing` says what is lacking where the test itself found out; otherwise the
    machine is asked.
    """
    if missing is None:
        missing = lack(name)
    if missing is None:
        return
    demanded = os.environ.get("SANDPIT_REQUIRE", "").replace(",", " ").split()
    if name in demanded:
        pytest.fail(f"requires: {name}, which SANDPIT_REQUIRE names ({missing})")
    pytest.skip(f"requires: {name} ({missing})")


@functools.cache
def lack(name: str) -> str | None:
    """Say what is missing for an ability; None if the machine has it."""
    if name == "program":
        return _lack_program()
    if name in ("corpus", "corpus-real"):
        found = shared_folder(name) is not None
        return None if found else f"no folder {name} of shared programs"
    if name.startswith("landlock"):
        return _lack_landlock(int(name.partition(">=")[2] or 1))
    if name == "no-landlock":  # booted without it, or a kernel that has none
        return "it has Landlock" if lack("landlock") is None else None
    if name == "hidden-memory":
        return None if _memory_is_hidden() else "memory can be read here"
    if name == "listener":
        return _lack_listener()
    if name == "ipv6":
        return _lack_ipv6()
    if name == "cpython-tests":
        found = any(one.has("test.test_os") for one in find_pythons())
        return None if found else "no interpreter has CPython's own tests"
    if name == "thread-descriptors":
        return _lack_thread_descriptors()
    if name == "x86_64":
        machine = os.uname().machine
        return None if machine == name else f"this is {machine}"
    if name == "cgroup2":
        return _lack_cgroup2()
    if name == "processors":
        several = len(os.sched_getaffinity(0)) > 1
        return None if several else "there is one processor only"
    if name == "procfs":
        return None if os.path.isdir("/proc/self/fd") else "no /proc"
    if name == "root":
        return None if os.geteuid() == 0 else "not root"
    if name == "mounts":
        return _lack_mounts()
    if name.startswith("python3."):
        labels = [
            f"python{'.'.join(map(str, one.version[:2]))}" for one in find_pythons()
        ]
        return None if name in labels else f"no {name}"
    if name in PROGRAMS:
        return None if shutil.which(name) else f"no {name} on PATH"
    if name in MODULES:
        return None if importlib.util.find_spec(name) else f"no module {name}"
    raise LookupError(f"no test knows the ability {name!r}")


def shared_folder(part: str = "corpus") -> Path | None:
    """Give the folder that holds programs to run: $SANDPIT_SHARED or ../shared."""
    chosen = os.environ.get("SANDPIT_SHARED")
    for folder in (Path(chosen) if chosen else None, ROOT.parent / "shared"):
        if folder is not None and (folder / part).is_dir():
            return folder
    return None


def _lack_cgroup2() -> str | None:
    """A control group of version 2 beside ours that could have both controllers."""
    with open("/proc/self/cgroup", encoding="ascii") as lines:
        own = [line.rstrip("\n")[3:] for line in lines if line.startswith("0::")]
    if own in ([], ["/"]):
        return "no control group of version 2 of our own"
    parent = Path(f"/sys/fs/cgroup{own[0]}").parent
    handed = parent / "cgroup.subtree_control"
    names = handed.read_text().split() if handed.exists() else []
    if not {"memory", "pids"} <= set(names):
        return f"{parent} hands on {names}"
    return None if os.access(parent, os.W_OK) else f"{parent} is not ours"


def _lack_landlock(abi: int) -> str | None:
    call = ctypes.CDLL(None, use_errno=True).syscall
    # landlock_create_ruleset(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION)
    has = call(ctypes.c_long(444), None, ctypes.c_size_t(0), ctypes.c_uint(1))
    return None if has >= abi else f"Landlock ABI {max(has, 0)}, needs {abi}"


def _lack_listener() -> str | None:
    number = {"x86_64": 317, "aarch64": 277}.get(os.uname().machine)
    if number is None:
        return f"no seccomp call known for {os.uname().machine}"
    sizes = (ctypes.c_uint16 * 3)()
    call = ctypes.CDLL(None, use_errno=True).syscall
    # seccomp(SECCOMP_GET_NOTIF_SIZES, 0, sizes)
    has = call(ctypes.c_long(number), ctypes.c_uint(3), ctypes.c_uint(0), sizes)
    if has != 0:
        return "no seccomp user notification"
    hidden = _memory_is_hidden()
    return "Yama hides the memory of other processes" if hidden else None


def _memory_is_hidden() -> bool:
    """Whether Yama keeps even a child's memory from its parent."""
    yama = Path("/proc/sys/kernel/yama/ptrace_scope")
    return yama.exists() and int(yama.read_text()) >= 2


def _lack_thread_descriptors() -> str | None:
    """Without pidfds of threads nobody takes a descriptor out of a thread's own table."""
    call = ctypes.CDLL(None, use_errno=True).syscall
    # pidfd_open(getpid(), PIDFD_THREAD)
    fd = call(ctypes.c_long(434), ctypes.c_int(os.getpid()), ctypes.c_uint(os.O_EXCL))
    if fd < 0:
        return "no pidfds of threads (Linux 6.9)"
    os.close(fd)
    return None


def _lack_program() -> str | None:
    from sandpit import HostError
    from sandpit._program import find_program

    try:
        find_program()
    except HostError as error:
        return str(error)
    return None


def _lack_mounts() -> str | None:
    try:
        done = subprocess.run(
            ["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/proc"],
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        return str(error)
    return None if done.returncode == 0 else done.stderr.strip()


def _lack_ipv6() -> str | None:
    try:
        with socket.socket(socket.AF_INET6) as one:
            one.bind(("::1", 0))
    except OSError as error:
        return f"no ::1: {error}"
    return None
