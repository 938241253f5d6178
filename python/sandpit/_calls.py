"""Who called what, how often and for how long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

from . import _native


class CallNode:
    """A function as it was called in one way.

    In a `CallTree` that way is the whole chain of callers: two nodes of one function
    differ in how the program came there. In a `CallGraph` it is the caller alone.

    Attributes
    ----------
    function, module, file, line : what was called; "" and 0 where the trace does not
        tell.
    native : a function without Python code.
    caller : the name of the function that called it; None beneath a thread or process.
    count : how often it was called this way.
    resumes : how often a generator or coroutine was resumed this way, beside that.
    total_ns : how long these calls took, in nanoseconds, with all that they called. In
        a graph only of calls that were folded: those told singly have no time.
    self_ns : the same without what they called.
    """

    __slots__ = (
        "_calls",
        "_number",
        "caller",
        "count",
        "file",
        "function",
        "line",
        "module",
        "native",
        "resumes",
        "self_ns",
        "total_ns",
    )

    def __init__(self, calls: _native.Calls, number: int) -> None:
        """Ask for what the node says."""
        self._calls = calls
        self._number = number
        said = calls.node(number)
        self.function: str = said[0]
        self.module: str = said[1]
        self.file: str = said[2]
        self.line: int = said[3]
        self.native: bool = bool(said[4])
        self.caller: str | None = said[5] or None
        self.count: int = said[6]
        self.resumes: int = said[7]
        self.total_ns: int = said[8]
        self.self_ns: int = said[9]

    @property
    def children(self) -> Sequence[CallNode]:
        """What it called, in the order of the first call; made when it is asked for."""
        return _Nodes(self._calls, self._calls.children(self._number))

    def __eq__(self, other: object) -> bool:
        """Say whether it is the same node of the same tree or graph."""
        if not isinstance(other, CallNode):
            return NotImplemented
        return self._calls is other._calls and self._number == other._number

    def __hash__(self) -> int:
        """Fit `==`."""
        return hash((id(self._calls), self._number))

    def __repr__(self) -> str:
        """Say what was called, how often and for how long."""
        place = f" {self.file}:{self.line}" if self.file else ""
        return (
            f"<CallNode {self.function}{place}, {self.count} calls, {self.total_ns} ns>"
        )


class _Nodes(Sequence[CallNode]):
    """Nodes by their numbers, made when they are asked for."""

    def __init__(self, calls: _native.Calls, numbers: Sequence[int]) -> None:
        self._calls = calls
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> CallNode: ...
    @overload
    def __getitem__(self, index: slice) -> list[CallNode]: ...
    def __getitem__(self, index: int | slice) -> CallNode | list[CallNode]:
        if isinstance(index, slice):
            return [CallNode(self._calls, i) for i in self._numbers[index]]
        return CallNode(self._calls, self._numbers[index])

    def __repr__(self) -> str:
        return repr(list(self))


@dataclass(frozen=True)
class CallRoot:
    """A thread of a `CallTree`, or a process of a `CallGraph`.

    Attributes
    ----------
    pid, tid : its process and thread; `tid` is None of a process.
    children : the functions that nobody called in it, as far as the trace tells.
    """

    pid: int
    tid: int | None
    children: Sequence[CallNode]


class Calls:
    """What `Trace.calls` gives: a `CallTree` or a `CallGraph`.

    Nodes are made when they are asked for.

    Attributes
    ----------
    roots : the threads of a tree, or the processes of a graph.
    exact : it is a tree, and nothing is missing in it.
    unlisted : calls that found no room in it.
    lost : events of the trace that are missing.
    """

    def __init__(self, calls: _native.Calls) -> None:
        """Take what was made of the events."""
        self._calls = calls
        tree, exact, self.unlisted, self.lost = calls.state()
        self.exact = bool(exact)
        self.roots: Sequence[CallRoot] = tuple(
            CallRoot(pid, tid if tree else None, _Nodes(calls, numbers))
            for pid, tid, numbers in calls.tops()
        )

    def __len__(self) -> int:
        """Count the nodes."""
        return len(self._calls)

    def walk(self) -> Iterator[tuple[int, CallNode]]:
        """Go through all nodes, each once, callers before what they called.

        Yields
        ------
        depth, node : how many callers stand above the node on the way that led to it.
        """
        calls = self._calls
        seen = bytearray(len(calls))
        for root in self.roots:
            children = root.children
            assert isinstance(children, _Nodes)
            waiting = [(0, number) for number in reversed(children._numbers)]
            while waiting:
                depth, number = waiting.pop()
                if seen[number]:
                    continue
                seen[number] = 1
                yield depth, CallNode(calls, number)
                waiting += [
                    (depth + 1, below)
                    for below in reversed(calls.children(number))
                    if not seen[below]
                ]

    def __repr__(self) -> str:
        """Say how large it is, and whether it is exact."""
        name = type(self).__name__
        return f"<sandpit.{name} of {len(self)} nodes, exact={self.exact}>"


class CallTree(Calls):
    """For each thread, the functions that were called and beneath each what it called.

    All calls that came the same way, from the thread's first function on, are one node.
    This is what the level `all` records.

    >>> import sandpit
    >>> code = "def twice(f): f(); f()" + chr(10) + "twice(lambda: len('x'))"
    >>> calls = sandpit.run_string(code, policy="trace-only", calls="all").trace.calls()
    >>> for depth, node in calls.walk():
    ...     if node.file.endswith("main.py") or node.function == "len":
    ...         print("  " * depth + node.function, node.count)
    <module> 1
      twice 1
        <lambda> 2
          len 2
    """


class CallGraph(Calls):
    """For each process, which function called which.

    A node is a pair of caller and function, and its children are the pairs of which
    that function is the caller, so that a node may be its own child. Callers are known
    by their names only: functions of one process with one name share their children.
    This is what the levels `folded` and `first` record.
    """


def calls_of(native: _native.Trace, within: bytes | None) -> CallTree | CallGraph:
    """Ask for the calls."""
    made = _native.Calls(native, within)
    return CallTree(made) if made.state()[0] else CallGraph(made)
