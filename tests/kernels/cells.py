"""What is tested on which kernel: the cells of the matrix, and the tests of each list."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

# One test, in seconds: programs run ten to twenty times slower where the processor is
# emulated.
LIMIT_S = 900

KERNELS = {"6.1": "bookworm", "6.12": "trixie"}
BUSYBOX = "bookworm"

# The lists of security modules that Debian boots with, and the same without Landlock.
LSM = {
    "landlock": "landlock,lockdown,yama,integrity,bpf",
    "none": "lockdown,yama,integrity,bpf",
}


@dataclass(frozen=True)
class Boot:
    """One start of a kernel; settings of Yama and users follow each other in it."""

    kernel: str
    lsm: str
    yama: tuple[str, ...]
    users: tuple[str, ...]
    tests: str
    # In place of the list.
    files: tuple[str, ...] = ()


BOOTS = tuple(
    boot
    for kernel in KERNELS
    for boot in (
        Boot(kernel, "landlock", ("0",), ("root", "nobody"), "all"),
        Boot(kernel, "landlock", ("1",), ("root", "nobody"), "yama"),
        Boot(kernel, "landlock", ("2",), ("root", "nobody"), "hidden"),
        Boot(kernel, "none", ("0",), ("root", "nobody"), "none"),
    )
)

# What looks into other processes, or is looked into: Yama forbids that to some.
_YAMA = (
    "tests/confine/test_outside.py",
    "tests/confine/test_supervisor.py",
    "tests/confine/test_waiting.py",
    "tests/confine/test_degraded.py",
    "tests/cli/test_doctor.py",
    "tests/kernels/test_boot.py",
)
_ALL = (
    *_YAMA,
    "tests/confine",
    "tests/api/test_blocked_network.py",
    "tests/api/test_blocked_import.py",
    "tests/api/test_processes.py",
    "tests/api/test_sentences.py",
    "tests/api/test_run.py",
)
_NONE = (
    "tests/kernels/test_boot.py",
    "tests/confine/test_degraded.py",
    "tests/cli/test_doctor.py",
)
# Where nobody without capabilities reads another's memory, no run has a listener.
_HIDDEN = ("tests/kernels/test_boot.py",)
_LISTS = {"all": _ALL, "yama": _YAMA, "hidden": _HIDDEN, "none": _NONE}

_C_LAYERS = ("seal", "sys", "supervise")


def python_tests(project: Path, which: str, files: list[str]) -> list[str]:
    """The files for pytest; of a folder, all that are in it."""
    found: list[str] = []
    for name in files or _LISTS[which]:
        inside = sorted((project / name).glob("test_*.py")) or [project / name]
        found += [str(one.relative_to(project)) for one in inside]
    return list(dict.fromkeys(found))


def c_tests(folder: Path) -> list[Path]:
    """The C tests that talk to the kernel."""
    return [
        one for one in sorted(folder.iterdir()) if one.name.split("_")[0] in _C_LAYERS
    ]


def required(which: str, user: str) -> str:
    """What no test may miss there, so that nothing is skipped unnoticed."""
    names = ["program", "agents", "procfs", "cc", "bash", "ipv6", "cgroup2"]
    names.append("hidden-memory" if which == "hidden" else "listener")
    names.append("no-landlock" if which == "none" else "landlock")
    if user == "root":
        names.append("root")
    return ",".join(names)
