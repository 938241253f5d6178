"""The CPython interpreters of this machine, 3.9 and later."""

from __future__ import annotations

import functools
import glob
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_OLDEST = (3, 9)
_ASK = (
    "import json, sys, sysconfig;"
    "print(json.dumps([list(sys.version_info[:3]), sys.implementation.name,"
    "sysconfig.get_path('include')]))"
)


@dataclass(frozen=True)
class Interpreter:
    """One interpreter: its path, version and where its headers lie."""

    path: str
    version: tuple[int, int, int]
    include: str
    label: str

    def has(self, module: str) -> bool:
        """Say whether a module can be found by it."""
        return _has(self.path, module)

    def __str__(self) -> str:
        return self.path


@functools.cache
def find() -> tuple[Interpreter, ...]:
    """Give every interpreter on PATH, of pyenv and of the system, oldest first.

    SANDPIT_TEST_PYTHONS (labels with commas between) restricts them.
    """
    found: dict[str, Interpreter] = {}
    labels: set[str] = set()
    for candidate in _candidates():
        real = os.path.realpath(candidate)
        if real in found or not _is_elf(real):
            continue
        answer = _ask(candidate)
        if answer is None:
            continue
        version, include = answer
        label = f"{version[0]}.{version[1]}"
        if label in labels:
            label += "-" + Path(candidate).parts[1]
        if label in labels:
            continue
        labels.add(label)
        found[real] = Interpreter(candidate, version, include, label)
    chosen = os.environ.get("SANDPIT_TEST_PYTHONS")
    wanted = chosen.split(",") if chosen else labels
    kept = [one for one in found.values() if one.label in wanted]
    return tuple(sorted(kept, key=lambda one: (one.version, one.label)))


@functools.cache
def own() -> Interpreter:
    """Give the interpreter that runs the tests."""
    answer = _ask(sys.executable)
    assert answer is not None
    return Interpreter(sys.executable, answer[0], answer[1], "own")


def _candidates() -> list[str]:
    candidates = []
    pyenv = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    candidates += sorted(glob.glob(os.path.join(pyenv, "versions", "*/bin/python3")))
    folders = [*os.environ.get("PATH", "").split(os.pathsep), "/usr/bin"]
    for folder in folders:
        if folder:
            candidates += sorted(glob.glob(os.path.join(folder, "python3.[0-9]*")))
    return [one for one in candidates if not one.endswith("-config")]


def _is_elf(path: str) -> bool:
    """Say whether a file is a program itself, not a version manager's script."""
    try:
        with open(path, "rb") as stream:
            return stream.read(4) == b"\x7fELF"
    except OSError:
        return False


def _ask(path: str) -> tuple[tuple[int, int, int], str] | None:
    done = subprocess.run([path, "-I", "-c", _ASK], capture_output=True, check=False)
    if done.returncode != 0:
        return None
    version, name, include = json.loads(done.stdout)
    if tuple(version) < _OLDEST or name != "cpython":
        return None
    return (version[0], version[1], version[2]), include


@functools.cache
def _has(path: str, module: str) -> bool:
    code = f"import importlib.util as u, sys; sys.exit(u.find_spec({module!r}) is None)"
    return subprocess.run([path, "-c", code], check=False).returncode == 0
