"""What a caller grants and denies by name for one run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal, Union

if TYPE_CHECKING:
    from ._spec import StrPath

GrantKind = Literal["read", "write", "net", "run", "import", "env"]
Grants = Mapping[GrantKind, Iterable[Union[str, "os.PathLike[str]"]]]

_KINDS = ("read", "write", "net", "run", "import", "env")
_PATHS = ("read", "write", "run")
_WILD = re.compile(r"([*?[{])")


def check_grants(
    option: str, grants: Mapping[GrantKind, Iterable[StrPath]] | None
) -> dict[str, tuple[str, ...]]:
    """Check `allow` or `deny` and give the patterns of each kind as texts.

    A text is a pattern, with wildcards and placeholders; a path object means just the
    one path, whatever characters it has.
    """
    if grants is None:
        return {}
    if not hasattr(grants, "items"):
        raise TypeError(
            f"{option} must map kinds to lists, as {{'read': ['/data']}}, "
            f"not {_kind(grants)}"
        )
    checked: dict[str, tuple[str, ...]] = {}
    for kind, patterns in grants.items():
        if kind not in _KINDS:
            raise ValueError(
                f"{option} knows {', '.join(map(repr, _KINDS))}, not {kind!r}"
            )
        name = f"{option}[{kind!r}]"
        if isinstance(patterns, (str, bytes, os.PathLike)) or not isinstance(
            patterns, Iterable
        ):
            raise TypeError(f"{name} must be a list, not {_kind(patterns)}")
        checked[kind] = tuple(
            _pattern(f"{name}[{position}]", kind, pattern)
            for position, pattern in enumerate(patterns)
        )
    return checked


def _pattern(name: str, kind: str, pattern: object) -> str:
    if isinstance(pattern, os.PathLike) and kind in _PATHS:
        path = os.fspath(pattern)
        if not isinstance(path, str):
            raise TypeError(f"{name} must be a str path, not {_kind(path)}")
        # Beginning so, it is neither ~ nor a program's bare name.
        path = path if os.path.isabs(path) else f"./{path}"
        text = _WILD.sub(r"[\1]", path)
    elif isinstance(pattern, str):
        text = pattern
    else:
        raise TypeError(f"{name} must be a str, not {_kind(pattern)}")
    if not text:
        raise ValueError(f"{name} is empty")
    if "\0" in text:
        raise ValueError(f"{name} holds a NUL character")
    return text


def _kind(value: object) -> str:
    return type(value).__name__
