"""What the extension module offers; one section for each C file of src/binding."""

from os import PathLike
from typing import Any, final, overload

from typing_extensions import Self, TypeAlias

_Source: TypeAlias = str | bytes | PathLike[str] | PathLike[bytes] | int

# module.c

def verify(source: _Source, /) -> tuple[int, int, int, str]: ...

# trace_type.c

@final
class Trace:
    def __new__(cls, source: _Source) -> Self: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, key: int, /) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: slice, /) -> list[dict[str, Any]]: ...
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
