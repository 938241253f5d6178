"""The abilities a test can require, by name, and whether this machine has them.

    landlock, landlock>=N   the kernel's Landlock, of at least that ABI
    listener                seccomp's user notification
    corpus, corpus-real     the shared programs, in $SANDPIT_SHARED or ../shared
    python3.N               an interpreter of that version with headers
    root                    the tests run as root
    ipv6                    IPv6 on loopback
    anything else           a program on PATH, or a module that the tests' Python can import
"""

from __future__ import annotations

import ctypes
import errno
import functools
import importlib.util
import os
import shutil
import socket
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

SYS_LANDLOCK_CREATE_RULESET = 444
LANDLOCK_CREATE_RULESET_VERSION = 1
SYS_SECCOMP = {"x86_64": 317, "aarch64": 277}
SECCOMP_GET_NOTIF_SIZES = 3


def shared() -> Path:
    """The folder of what several checkouts share; it need not exist."""
    return Path(os.environ.get("SANDPIT_SHARED", ROOT.parent / "shared"))


def _syscall(number: int, *arguments: object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    return int(libc.syscall(ctypes.c_long(number), *arguments))


@functools.lru_cache(maxsize=None)
def landlock_abi() -> int:
    """0 when the kernel has no Landlock."""
    answer = _syscall(
        SYS_LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), LANDLOCK_CREATE_RULESET_VERSION
    )
    return max(answer, 0)


def _listener() -> bool:
    number = SYS_SECCOMP.get(os.uname().machine)
    sizes = (ctypes.c_uint16 * 3)()
    if number is None:
        return False
    answer = _syscall(number, SECCOMP_GET_NOTIF_SIZES, 0, sizes)
    return answer == 0 and ctypes.get_errno() != errno.ENOSYS


def _ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


@functools.lru_cache(maxsize=None)
def pythons() -> dict[tuple[int, int], str]:
    """The interpreters of this machine that sandpit is built for, by version."""
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        import pythons as finder
    finally:
        sys.path.pop(0)
    return finder.find()


def _python(name: str) -> bool:
    version = name[len("python") :].split(".")
    return len(version) == 2 and tuple(map(int, version)) in pythons()


@functools.lru_cache(maxsize=None)
def present(name: str) -> bool:
    """Whether this machine has the ability."""
    if name.startswith("landlock>="):
        return landlock_abi() >= int(name.partition(">=")[2])
    if name.startswith("python3."):
        return _python(name)
    known = {
        "landlock": lambda: landlock_abi() > 0,
        "listener": _listener,
        "corpus": lambda: (shared() / "corpus/run_corpus.py").is_file(),
        "corpus-real": lambda: (shared() / "corpus-real/make_corpus.py").is_file(),
        "root": lambda: os.geteuid() == 0,
        "ipv6": _ipv6,
    }
    if name in known:
        return known[name]()
    return shutil.which(name) is not None or importlib.util.find_spec(name) is not None
