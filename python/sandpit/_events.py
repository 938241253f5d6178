"""Events of a trace, all or some of them, as lazy sequences of dicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import index as as_index
from typing import TYPE_CHECKING, Any, overload

from . import _native
from ._calls import CallGraph, CallTree, calls_of
from ._frames import arrow_of, pandas_of
from ._tables import AddressUse, FileUse, Process, files_of, network_of, processes_of

if TYPE_CHECKING:
    import pandas  # type: ignore[import-not-found,import-untyped,unused-ignore]
    import pyarrow  # type: ignore[import-not-found,import-untyped,unused-ignore]

Event = dict[str, Any]

_NEVER = (1 << 64) - 1  # nanoseconds: no time of an event is later


class Events(Sequence[Event]):
    """Events of a trace in order: all (a `Trace`), or a part of one (a view).

    Views come from `of_kind`, `between` and `where`, of a trace or of another view, and
    are sequences like the trace itself. Which events belong to one is found out when it
    is first asked, by going through the file once; after that it takes eight bytes for
    each, and events are read when they are asked for.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, native: _native.Trace) -> None:
        """Take the trace to read from."""
        self._native = native

    def _within(self) -> bytes | None:
        """Give the positions of its events in the trace; None for all of them."""
        return None

    def _at(self) -> Sequence[int]:
        """Give the same as numbers."""
        return range(len(self._native))

    def __len__(self) -> int:
        """Count the events; goes through the file the first time."""
        return len(self._at())

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> list[Event]: ...
    def __getitem__(self, index: int | slice) -> Event | list[Event]:
        """Give the event at a position, or a list of those of a slice."""
        at = self._at()
        if isinstance(index, slice):
            return [self._native[i] for i in at[index]]
        try:
            return self._native[at[index]]
        except IndexError:
            raise IndexError("event index out of range") from None

    def __iter__(self) -> Iterator[Event]:
        """Go through the events in order."""
        return map(self._native.__getitem__, self._at())

    def __eq__(self, other: object) -> bool:
        """Compare event by event with another trace or view, or a list of dicts."""
        if not isinstance(other, (Events, list, tuple)):
            return NotImplemented
        if len(self) != len(other):
            return False
        return all(mine == theirs for mine, theirs in zip(self, other))

    def of_kind(self, *kinds: str) -> Events:
        """Give the events of some kinds.

        Parameters
        ----------
        kinds : one or more, as `"violation"`, `"call"` or `"return"`.

        Returns
        -------
        Events : a view.
        """
        if not kinds:
            raise TypeError("of_kind() takes at least one kind")
        return _View(self, kinds=tuple(_bytes_of(kind, "a kind") for kind in kinds))

    def between(self, start: int | None = None, stop: int | None = None) -> Events:
        """Give the events of a part of the run's time.

        Parameters
        ----------
        start, stop : nanoseconds since the start of the run, as the events' own `t`:
            those with `start <= t < stop`. None: from the start, to the end.

        Returns
        -------
        Events : a view.
        """
        return _View(
            self,
            start=min(max(0, as_index(start or 0)), _NEVER),
            stop=_NEVER if stop is None else min(max(0, as_index(stop)), _NEVER),
        )

    def where(
        self,
        *,
        pid: int | None = None,
        tid: int | None = None,
        layer: str | None = None,
        text: str | None = None,
    ) -> Events:
        """Give the events that fit all that is given.

        Parameters
        ----------
        pid, tid : of this process, of this thread.
        layer : seen by `"kernel"`, `"python"` or `"supervisor"`.
        text : with this text, as it is written, in one of their own texts (a path, an
            argument, a function's name, a line of the program; not kind and layer).

        Returns
        -------
        Events : a view.

        >>> import sandpit
        >>> trace = sandpit.load("script.sptrace")
        >>> [event["module"] for event in trace.of_kind("import").where(text="json")]
        ['json']
        """
        return _View(
            self,
            pid=None if pid is None else as_index(pid),
            tid=None if tid is None else as_index(tid),
            layer=b"" if layer is None else _bytes_of(layer, "a layer"),
            text=b"" if text is None else _bytes_of(text, "text"),
        )

    def calls(self) -> CallTree | CallGraph:
        """Give who called what, how often and for how long.

        Returns
        -------
        CallTree or CallGraph : the exact tree of calls of each thread where the level
            was `all`; else the pairs of caller and function of each process, from
            counts. Nodes are made when they are asked for; at most 2,097,152.
        """
        return calls_of(self._native, self._within())

    def files(self) -> list[FileUse]:
        """Give the files that were used, in the order of their first use.

        Returns
        -------
        list of FileUse : at most 65,536; goes through the file.
        """
        return files_of(self._native, self._within())

    def network(self) -> list[AddressUse]:
        """Give the addresses and names that were used, in the order of their first use.

        Returns
        -------
        list of AddressUse : at most 65,536; goes through the file.
        """
        return network_of(self._native, self._within())

    def processes(self) -> list[Process]:
        """Give the processes, each behind its parent and that one's earlier children.

        Returns
        -------
        list of Process : at most 65,536, linked by `parent` and `children`.
        """
        return processes_of(self._native, self._within())

    def to_pandas(self) -> pandas.DataFrame:
        """Make a pandas data frame: a row for each event, a column for each member.

        Returns
        -------
        pandas.DataFrame : columns of integers (`Int64`), of truth values (`boolean`)
            and of objects; missing where an event has no such member. Members beyond
            256 names are together in the column `others`.

        Raises
        ------
        ImportError : pandas is not installed.
        """
        return pandas_of(self)

    def to_arrow(self) -> pyarrow.Table:
        """Make an Arrow table: a row for each event, a column for each member.

        Returns
        -------
        pyarrow.Table : columns of int64, bool and string, as `to_pandas` has them.
            Lists and the like are given as JSON, a byte that is no UTF-8 as an escape.

        Raises
        ------
        ImportError : pyarrow is not installed.
        """
        return arrow_of(self)


class _View(Events):
    """Those events of another sequence that answer a question."""

    def __init__(
        self,
        of: Events,
        *,
        kinds: tuple[bytes, ...] = (),
        start: int = 0,
        stop: int = _NEVER,
        pid: int | None = None,
        tid: int | None = None,
        layer: bytes = b"",
        text: bytes = b"",
    ) -> None:
        super().__init__(of._native)
        self._of: Events | None = of
        self._question = (kinds, start, stop, pid, tid, layer, text)
        self._positions: bytes | None = None

    def _within(self) -> bytes:
        of, positions = self._of, self._positions
        if positions is None:
            within = None if of is None else of._within()
            positions = self._native.search(within, *self._question)
            self._positions = positions
            self._of = None  # answered: what it was asked of may go
        return positions

    def _at(self) -> Sequence[int]:
        return memoryview(self._within()).cast("Q")

    def __repr__(self) -> str:
        """Say how many there are, once that is known."""
        if self._positions is None:
            return "<sandpit view of events, not read yet>"
        return f"<sandpit view of {len(self._positions) // 8} events>"


def _bytes_of(text: str, what: str) -> bytes:
    """Encode a text as it stands in a trace."""
    if not isinstance(text, str):
        raise TypeError(f"{what} is a str")
    return text.encode("utf-8", "surrogateescape")
