"""Traces: the events of a run as a lazy sequence of dicts."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from . import _native
from ._errors import TraceError
from ._events import Event, Events

_COPY_BYTES = 1 << 20
_FICLONE = 0x40049409  # ioctl_ficlone(2): share the blocks instead of copying them


class Verification(NamedTuple):
    """What checking a trace showed.

    Attributes
    ----------
    code : 0 sound and complete, 1 altered (or not signed by the key that was asked
        for), 2 unreadable, 3 sound up to its last checkpoint but without an end (the
        run was cut short).
    line, byte : where it stops being sound; for code 0, how much there is.
    message : the same in words.
    signature : `none`; `valid`; `wrong`; `unreached`, where one is
        announced and the trace is cut or altered before it.
    signer : fingerprint of the key that the trace names as its signer's, else None. Who
        has that key, the trace cannot say.
    """

    code: int
    line: int
    byte: int
    message: str
    signature: str = "none"
    signer: str | None = None


class Trace(Events):
    """The events of a recorded run, in order, as a sequence of dicts.

    Events are read from the file when they are asked for: a long trace costs little
    until then. The runs of calls that `calls="all"` records are given as the single
    `call` and `return` events they stand for. What happens to the file's name does not
    matter afterwards. Several threads may use one trace.

    Parameters
    ----------
    source : path of an `.sptrace` file, or a descriptor open on one (which stays the
        caller's).

    Raises
    ------
    TraceError : there is no such file, or it is no trace. A fault further on is raised
        by what comes upon it; `line` and `byte` say where it is.

    >>> trace = load("script.sptrace")
    >>> [event["module"] for event in trace.of_kind("import")]
    ['json']
    """

    def __init__(self, source: str | os.PathLike[str] | int) -> None:
        """Open the trace and look at its first line."""
        self._path = None if isinstance(source, int) else Path(os.fspath(source))
        super().__init__(_native.Trace(source))
        self._violations: list[Event] | None = None

    @property
    def path(self) -> Path | None:
        """The path it was opened by; None for one from a descriptor."""
        return self._path

    def __repr__(self) -> str:
        """Name the file."""
        name = "a descriptor" if self._path is None else repr(str(self._path))
        return f"<sandpit.Trace of {name}>"

    @property
    def violations(self) -> list[Event]:
        """The violations; repeats of one are added to its `count`."""
        if self._violations is None:
            self._violations = _merge(self.of_kind("violation"))
        return [dict(event) for event in self._violations]

    def verify(self, *, key: str | os.PathLike[str] | None = None) -> Verification:
        """Check that the trace is what the supervisor wrote, from start to end.

        Parameters
        ----------
        key : file of the public key that must have signed it; None asks for no
            signature, but checks the one that is there.

        Returns
        -------
        Verification : `code` is 0 only if all is in order, the key included.

        Raises
        ------
        UsageError : the key cannot be read, or is none.
        """
        checked = _native.verify(self._native.fileno(), key)
        return Verification(*checked)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Copy the trace to a place of its own, replacing what is there.

        Parameters
        ----------
        path : the file to write, usually `NAME.sptrace`; one that ends in `.zst` is
            compressed.

        Returns
        -------
        Path : that path. The file appears under its name only when it is whole.

        Raises
        ------
        TraceError : it cannot be written.
        """
        target = Path(path)
        try:
            _copy(self._native.fileno(), target)
        except OSError as error:
            raise TraceError(f"cannot save the trace as {target}: {error}") from error
        return target


def load(source: str | os.PathLike[str] | int) -> Trace:
    """Open a recorded trace.

    Parameters
    ----------
    source : path of an `.sptrace` file, or a descriptor open on one.

    Returns
    -------
    Trace : its events, lazily.

    Raises
    ------
    TraceError : there is no such file, or it is no trace.
    """
    return Trace(source)


def _merge(events: Iterable[Event]) -> list[Event]:
    """Add repeats (`of` names the first) to the first of them."""
    merged: dict[int, Event] = {}
    for event in events:
        count = int(event.get("count", 1))
        first = merged.get(event["of"]) if "of" in event else None
        if first is None:
            merged[event["seq"]] = {**event, "count": count}
        else:
            first["count"] += count
    return list(merged.values())


def _copy(source: int, target: Path) -> None:
    """Write the whole file behind a descriptor to a path, all or nothing."""
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with open(handle, "wb") as to:
            packed = target.name.endswith(".zst")
            if packed != _native.is_packed(source):
                _native.recode(source, to.fileno(), packed)
            elif not _share_blocks(source, to.fileno()):
                at = 0
                while block := os.pread(source, _COPY_BYTES, at):
                    to.write(block)
                    at += len(block)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def _share_blocks(source: int, to: int) -> bool:
    """Make `to` a copy without copying, where the file system can."""
    try:
        import fcntl

        fcntl.ioctl(to, _FICLONE, source)
    except (ImportError, OSError):
        return False
    return True
