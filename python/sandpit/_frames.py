"""Events as tables of other libraries, where these are installed."""

from __future__ import annotations

import importlib
import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas  # type: ignore[import-not-found,import-untyped,unused-ignore]
    import pyarrow  # type: ignore[import-not-found,import-untyped,unused-ignore]

_FIRST = ("seq", "t", "kind", "layer", "pid", "tid")
_COLUMNS_MAX = 256  # members of further names go into one column
_OTHERS = "others"

Columns = dict[str, list[Any]]
_Piece = tuple[Any, Any]  # type of the values and what a library made of them
_ROWS_A_PIECE = 1 << 16  # so many are held as Python objects at a time
_TEXTS_MAX = 1 << 16  # texts that are held once, however often they occur


def pandas_of(events: Iterable[dict[str, Any]]) -> pandas.DataFrame:
    """Make a data frame."""
    library = _library("pandas", "to_pandas")

    def make(values: list[Any], kind: type) -> Any:
        return library.Series(values, dtype=_PANDAS[kind])

    def turn(piece: Any) -> Any:
        return piece.astype(object).where(piece.notna(), None)

    columns = {
        name: library.concat(pieces, ignore_index=True)
        for name, pieces in _table_of(events, make, turn)
    }
    return library.DataFrame(columns, copy=False)


def arrow_of(events: Iterable[dict[str, Any]]) -> pyarrow.Table:
    """Make a table."""
    library = _library("pyarrow", "to_arrow")
    types = {int: library.int64(), bool: library.bool_()}

    def make(values: list[Any], kind: type) -> Any:
        if kind in types:
            return library.array(values, types[kind])
        return library.array(map(_text_of, values), library.string())

    def turn(piece: Any) -> Any:
        return piece.cast(library.string())

    return library.table(
        {
            name: library.chunked_array(pieces)
            for name, pieces in _table_of(events, make, turn)
        }
    )


_PANDAS = {int: "Int64", bool: "boolean", object: "object", str: "object"}


def _library(name: str, method: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"{method}() needs {name}, which is not installed: pip install {name}",
            name=name,
        ) from error


def _table_of(
    events: Iterable[dict[str, Any]],
    make: Callable[[list[Any], type], Any],
    turn: Callable[[Any], Any],
) -> Iterator[tuple[str, list[Any]]]:
    """Make the pieces of each column, which have one type, and give them up.

    `make` makes a piece of values of a type; `turn` makes of a piece of integers or of
    truth values what `make` makes of objects.
    """
    names: dict[str, None] = {}
    parts: list[dict[str, _Piece]] = []
    counts: list[int] = []
    rest = iter(events)
    texts: dict[str, str] = {}
    while True:
        columns = _columns_of(itertools.islice(rest, _ROWS_A_PIECE), names, texts)
        count = len(columns[_FIRST[0]])
        if count == 0 and parts:
            break
        counts.append(count)
        parts.append({})
        for name, values in columns.items():
            kind = _type_of(values)
            parts[-1][name] = kind, make(values, kind or object)
    for name, kind in _kinds_of(parts).items():
        yield (
            name,
            [
                _piece_of(part.pop(name, None), count, kind, make, turn)
                for part, count in zip(parts, counts)
            ],
        )


def _kinds_of(parts: list[dict[str, _Piece]]) -> dict[str, type]:
    """Give the type of each column: that of all its pieces, or `object`."""
    found: dict[str, set[type]] = {}
    for part in parts:
        for name, (kind, _) in part.items():
            found.setdefault(name, set()).update({kind} - {None})
    return {
        name: kinds.pop() if len(kinds) == 1 else object
        for name, kinds in found.items()
    }


def _piece_of(
    piece: _Piece | None,
    count: int,
    kind: type,
    make: Callable[[list[Any], type], Any],
    turn: Callable[[Any], Any],
) -> Any:
    if piece is None or piece[0] is None:
        return make([None] * count, kind)
    return turn(piece[1]) if piece[0] in (int, bool) and kind is object else piece[1]


def _columns_of(
    events: Iterable[dict[str, Any]],
    names: dict[str, None] | None = None,
    texts: dict[str, str] | None = None,
) -> Columns:
    """Turn rows into columns of one length; None where an event has no such member.

    `names` are those of columns that there are already, `texts` those that are held
    once; both grow.
    """
    names = {} if names is None else names
    texts = {} if texts is None else texts
    columns: Columns = {name: [] for name in _FIRST}
    names.update(dict.fromkeys(_FIRST))
    count = 0
    for row, event in enumerate(events):
        count = row + 1
        others = {}
        for name, value in event.items():
            column = columns.get(name)
            if column is None:
                if name == _OTHERS or (
                    name not in names and len(names) >= _COLUMNS_MAX
                ):
                    others[name] = value
                    continue
                names[name] = None
                column = columns[name] = []
            if len(column) < row:  # events in between had no such member
                column += [None] * (row - len(column))
            if type(value) is str:
                value = _once(value, texts)
            column.append(value)
        if others:
            column = columns.setdefault(_OTHERS, [])
            column += [None] * (row - len(column))
            column.append(others)
    for column in columns.values():
        column += [None] * (count - len(column))
    return columns


def _once(text: str, texts: dict[str, str]) -> str:
    """Give the same object for the same text, of as many texts as are kept."""
    found = texts.get(text)
    if found is None:
        found = text
        if len(texts) < _TEXTS_MAX:
            texts[text] = text
    return found


def _type_of(values: list[Any]) -> type | None:
    """Give the type of all values but None: `object` where they differ."""
    types = {type(value) for value in values if value is not None}
    if not types:
        return None
    if types == {int} and not all(
        value is None or -(1 << 63) <= value < 1 << 63 for value in values
    ):
        return object
    return types.pop() if types in ({int}, {bool}, {str}) else object


def _text_of(value: object) -> str | None:
    """Write a value as text: a text as it is, anything else as JSON.

    A byte that is no UTF-8 (`\\udcff` in a str) is written as that escape.
    """
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value)
    return text.encode("utf-8", "backslashreplace").decode()
