"""Events as tables of other libraries, where these are installed."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas  # type: ignore[import-not-found,import-untyped,unused-ignore]
    import pyarrow  # type: ignore[import-not-found,import-untyped,unused-ignore]

_FIRST = ("seq", "t", "kind", "layer", "pid", "tid")
_COLUMNS_MAX = 256  # members of further names go into one column
_OTHERS = "others"

Columns = dict[str, list[Any]]


def pandas_of(events: Iterable[dict[str, Any]]) -> pandas.DataFrame:
    """Make a data frame."""
    library = _library("pandas", "to_pandas")
    columns = _columns_of(events)
    return library.DataFrame(
        {
            name: library.Series(values, dtype=_PANDAS[_type_of(values)])
            for name, values in columns.items()
        }
    )


def arrow_of(events: Iterable[dict[str, Any]]) -> pyarrow.Table:
    """Make a table."""
    library = _library("pyarrow", "to_arrow")
    columns = _columns_of(events)
    types = {int: library.int64(), bool: library.bool_()}
    made = {}
    for name, values in columns.items():
        known = types.get(_type_of(values))
        if known is None:
            made[name] = library.array(map(_text_of, values), library.string())
        else:
            made[name] = library.array(values, known)
    return library.table(made)


_PANDAS = {int: "Int64", bool: "boolean", object: "object", str: "object"}


def _library(name: str, method: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"{method}() needs {name}, which is not installed: pip install {name}",
            name=name,
        ) from error


def _columns_of(events: Iterable[dict[str, Any]]) -> Columns:
    """Turn rows into columns of one length; None where an event has no such member."""
    columns: Columns = {name: [] for name in _FIRST}
    count = 0
    for row, event in enumerate(events):
        count = row + 1
        others = {}
        for name, value in event.items():
            column = columns.get(name)
            if column is None:
                if len(columns) >= _COLUMNS_MAX or name == _OTHERS:
                    others[name] = value
                    continue
                column = columns[name] = []
            if len(column) < row:  # events in between had no such member
                column += [None] * (row - len(column))
            column.append(value)
        if others:
            column = columns.setdefault(_OTHERS, [])
            column += [None] * (row - len(column))
            column.append(others)
    for column in columns.values():
        column += [None] * (count - len(column))
    return columns


def _type_of(values: list[Any]) -> type:
    """Give the type of all values but None; `object` where they differ."""
    types = {type(value) for value in values if value is not None}
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
