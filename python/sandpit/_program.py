"""Where the native program lies."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

from ._errors import HostError

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAME = "sandpit"


def find_program() -> str:
    """Give the path of the native program that belongs to this package.

    The one installed beside this package comes first, then the one in the folder for
    programs of the running environment, beside the interpreter, in the user's own
    folder, and last whatever PATH leads to. The environment variable SANDPIT_PROGRAM
    names another one.

    Raises
    ------
    HostError : this system cannot run it (Windows), or it is not installed.
    """
    require_platform()
    chosen = os.environ.get("SANDPIT_PROGRAM")
    if chosen:
        if not _is_program(chosen):
            raise HostError(
                f"SANDPIT_PROGRAM names {chosen!r}, which is not a program",
                missing=("program",),
            )
        return os.path.abspath(chosen)
    for candidate in _candidates():
        if _is_program(candidate):
            return candidate
    found = shutil.which(_NAME)
    if found is not None:
        return os.path.abspath(found)
    raise HostError(
        "the native program 'sandpit' is not installed beside the Python package; "
        "install the package again, or put the program on PATH",
        missing=("program",),
    )


def require_platform() -> None:
    """Raise HostError where programs cannot be run under sandpit."""
    if sys.platform == "win32":
        raise HostError(
            "sandpit cannot run programs on Windows, only read traces; "
            "run it on Linux, in a container or under WSL",
            missing=("platform",),
        )


def _candidates() -> Iterator[str]:
    """Give the places of an installation, the nearest to this package first."""
    # PREFIX/lib/pythonX.Y/site-packages/sandpit/_program.py
    above = Path(__file__).parents
    if len(above) > 4:
        yield str(above[4] / "bin" / _NAME)
    for scheme in (None, f"{os.name}_user"):
        try:
            folder = (
                sysconfig.get_path("scripts")
                if scheme is None
                else sysconfig.get_path("scripts", scheme)
            )
        except KeyError:
            continue
        if folder:
            yield os.path.join(folder, _NAME)
        if scheme is None and sys.executable:
            yield os.path.join(os.path.dirname(sys.executable), _NAME)


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)
