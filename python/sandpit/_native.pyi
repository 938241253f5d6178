"""What the extension module offers; one section for each C file of src/binding."""

from os import PathLike
from typing import Any, final

from typing_extensions import Self, TypeAlias

# (name, host, seven counts, places, elsewhere)
_Use: TypeAlias = tuple[
    str, str | None, int, int, int, int, int, int, int, dict[str, int], int
]
# (parent's place, pid, parent's pid, start, end, how it ended, code or signal, path,
# argv, cut, started, traced, denied)
_Process: TypeAlias = tuple[
    int, int, int, int, int, int, int, str, list[str], int, int, int, int
]
_Source: TypeAlias = str | bytes | PathLike[str] | PathLike[bytes] | int

# module.c

def verify(
    source: _Source, key: str | PathLike[str] | None = None, /
) -> tuple[int, int, int, str, str, str | None]: ...
def is_packed(fd: int, /) -> bool: ...
def recode(source: int, target: int, packed: bool, /) -> None: ...

# feed_type.c

@final
class Feed:
    def __new__(cls) -> Self: ...
    def put(self, data: bytes, /) -> None: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> dict[str, Any]: ...

# trace_type.c

@final
class Trace:
    def __new__(cls, source: _Source) -> Self: ...
    def __len__(self) -> int: ...
    def __getitem__(self, key: int, /) -> dict[str, Any]: ...
    def fileno(self) -> int: ...

    # search.c

    def search(
        self,
        within: bytes | None,
        kinds: tuple[bytes, ...],
        start: int,
        stop: int,
        pid: int | None,
        tid: int | None,
        layer: bytes,
        text: bytes,
        /,
    ) -> bytes: ...

    # tables.c

    def files(self, within: bytes | None, /) -> list[_Use]: ...
    def network(self, within: bytes | None, /) -> list[_Use]: ...
    def processes(self, within: bytes | None, /) -> list[_Process]: ...

# calls_type.c

@final
class Calls:
    def __new__(cls, trace: Trace, within: bytes | None) -> Self: ...
    def __len__(self) -> int: ...
    def node(
        self, number: int, /
    ) -> tuple[str, str, str, int, int, str, int, int, int, int]: ...
    def children(self, number: int, /) -> list[int]: ...
    def tops(self) -> list[tuple[int, int, list[int]]]: ...
    def state(self) -> tuple[int, int, int, int]: ...
