"""What the guest reads on its standard input, as a descriptor."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from typing import TYPE_CHECKING, Literal, Protocol, Union, cast

from ._folder import encode

if TYPE_CHECKING:
    from collections.abc import Iterator


class HasFileno(Protocol):
    """An open file: whatever has a descriptor."""

    def fileno(self) -> int:
        """Give the descriptor."""


Stdin = Union[str, bytes, HasFileno, int, None]

PIPE: Literal[-1] = cast("Literal[-1]", subprocess.PIPE)
"""As `stdin` of `start`: the caller writes the guest's input to `Run.stdin`."""


def check_stdin(stdin: object, *, pipe: bool) -> None:
    """Check the type of the `stdin` option; TypeError or ValueError says what is wrong.

    `pipe` says whether the caller is left a way to write to a pipe.
    """
    if isinstance(stdin, (str, bytes, bytearray, memoryview)) or stdin is None:
        return
    if isinstance(stdin, int) and not isinstance(stdin, bool):
        if stdin == PIPE and not pipe:
            raise ValueError(
                "stdin=PIPE needs start(); give run() the bytes themselves"
            )
        if stdin < 0 and stdin != PIPE:
            raise ValueError(f"stdin is not a descriptor: {stdin}")
        return
    try:
        _descriptor(stdin)
    except (AttributeError, OSError):
        raise TypeError(
            "stdin must be text, bytes, an open file with a descriptor, a descriptor "
            f"or None, not {type(stdin).__name__}"
        ) from None


@contextlib.contextmanager
def open_stdin(stdin: Stdin) -> Iterator[int]:
    """Give a descriptor, or `PIPE`, for the time of starting the program."""
    if stdin is None:
        with open(os.devnull, "rb") as nothing:
            yield nothing.fileno()
    elif isinstance(stdin, int):
        yield stdin
    elif isinstance(stdin, (str, bytes, bytearray, memoryview)):
        content = encode(stdin)
        descriptor = _file_with(content)
        try:
            yield descriptor
        finally:
            os.close(descriptor)
    else:
        yield _descriptor(stdin)


def _descriptor(file: object) -> int:
    return cast("HasFileno", file).fileno()


def _file_with(content: bytes) -> int:
    """Give a descriptor, for reading only, of a nameless file with that content.

    A file needs no thread that feeds it, as a pipe would.
    """
    with tempfile.NamedTemporaryFile(prefix="sandpit-stdin-") as stream:
        stream.write(content)
        stream.flush()
        return os.open(stream.name, os.O_RDONLY | os.O_CLOEXEC)
