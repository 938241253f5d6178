"""The interpreters of this machine that sandpit can be built for and tested with.

    pythons.py      one path a line, oldest first, one for each minor version

Looked for: $SANDPIT_PYTHONS (paths, separated by ':'), python3.N on PATH, and what
pyenv and uv have installed. Standard library only.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST = (3, 9)
NEWEST_LOOKED_FOR = 20

_PROBE = (
    "import sys, sysconfig, pathlib;"
    "h = pathlib.Path(sysconfig.get_paths()['include'], 'Python.h').exists();"
    "print(sys.implementation.name, sys.version_info[0], sys.version_info[1], int(h),"
    " sys.executable, sep='\\n')"
)


def _candidates() -> list[str]:
    found = [path for path in os.environ.get("SANDPIT_PYTHONS", "").split(":") if path]
    found.append(sys.executable)
    for minor in range(OLDEST[1], NEWEST_LOOKED_FOR):
        path = shutil.which(f"python3.{minor}")
        if path:
            found.append(path)
    home = Path.home()
    pyenv = Path(os.environ.get("PYENV_ROOT", home / ".pyenv"))
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR", home / ".local/share/uv/python"))
    for folder in (pyenv / "versions", uv):
        found += sorted(str(path) for path in folder.glob("*/bin/python3"))
    return found


def _describe(path: str) -> tuple[tuple[int, int], str] | None:
    """Version and real path of a usable CPython with headers; None for anything
    else."""
    try:
        done = subprocess.run(
            [path, "-I", "-c", _PROBE], capture_output=True, text=True, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    answer = done.stdout.splitlines()
    if done.returncode != 0 or len(answer) != 5:
        return None
    name, major, minor, headers, executable = answer
    version = (int(major), int(minor))
    if name != "cpython" or version < OLDEST or headers != "1":
        return None
    return version, executable


def find() -> dict[tuple[int, int], str]:
    """Version to path, in ascending order; the first one found of a version counts."""
    found: dict[tuple[int, int], str] = {}
    for candidate in _candidates():
        described = _describe(candidate)
        if described and described[0] not in found:
            found[described[0]] = described[1]
    return dict(sorted(found.items()))


if __name__ == "__main__":
    print("\n".join(find().values()))
