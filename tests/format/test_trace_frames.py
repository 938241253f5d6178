"""`to_pandas` and `to_arrow`: tables where the libraries are there, a remedy where not."""

from __future__ import annotations

import sys

import pytest
import sandpit
from abilities import require
from sandpit import _frames
from traces import Lines


def load(lines, path):
    return sandpit.load(lines.write(path / "frames.sptrace"))


def mixed(path):
    lines = Lines()
    lines.add("open", path="/a", op="read", native=True, list=[1, {"x": "y"}], huge=5)
    lines.add("open", path="\udcff", size=7, mixed="x", huge=(1 << 64) - 1)
    lines.add("call", mixed=3, others="mine", nothing=None)
    return load(lines, path)


@pytest.mark.parametrize(
    ("library", "method"), [("pandas", "to_pandas"), ("pyarrow", "to_arrow")]
)
def test_missing_library_is_told_with_its_remedy(golden, monkeypatch, library, method):
    monkeypatch.setitem(sys.modules, library, None)
    trace = sandpit.load(golden("good"))
    with pytest.raises(ImportError, match=f"pip install {library}") as caught:
        getattr(trace, method)()
    assert caught.value.name == library


def test_columns_have_one_length_and_one_type(tmp_path):
    columns = _frames._columns_of(mixed(tmp_path))
    assert list(columns)[:6] == ["seq", "t", "kind", "layer", "pid", "tid"]
    assert {len(values) for values in columns.values()} == {4}
    assert columns["size"] == [None, None, 7, None]
    assert columns["others"] == [None, None, None, {"others": "mine"}]
    types = {name: _frames._type_of(values) for name, values in columns.items()}
    assert {types[name] for name in ("seq", "t", "pid", "tid", "size")} == {int}
    assert {types[name] for name in ("kind", "layer", "path", "op")} == {str}
    assert types["native"] is bool
    assert {types[name] for name in ("list", "mixed", "huge")} == {object}
    assert types["nothing"] is None


def test_columns_of_many_names_are_bounded(tmp_path):
    lines = Lines()
    for i in range(2000):
        lines.add("x_many", **{f"member{i}": i})
    columns = _frames._columns_of(load(lines, tmp_path))
    assert len(columns) == 257
    assert columns["others"][-1] == {"member1999": 1999}
    assert sum(value is not None for value in columns["others"]) > 1700


LONG = _frames._ROWS_A_PIECE + 10


def long(path):
    """More rows than a piece has, of members whose types differ between pieces."""
    lines = Lines()
    for i in range(LONG):
        late = i > LONG - 5
        lines.add(
            "open", path=f"/{i % 7}", number="x" if late else i, early=i < 9,
            **({"late": i, "truth": 1} if late else {"truth": True}),
        )  # fmt: skip
    lines.add("open", huge=1 << 63, early=None)
    return load(lines, path)


def test_pieces_of_a_long_pandas_frame_fit_together(tmp_path):
    require("pandas")
    frame = long(tmp_path).to_pandas()
    assert len(frame) == LONG + 2
    types = {name: str(kind) for name, kind in frame.dtypes.items()}
    assert (types["seq"], types["late"]) == ("Int64", "Int64")
    assert types["early"] == "boolean"
    assert {types[name] for name in ("number", "truth", "huge")} == {"object"}
    assert list(frame["seq"]) == list(range(LONG + 2))
    assert frame["number"][1] == 0 and frame["number"][LONG] == "x"
    assert frame["number"][0] is None and frame["number"][LONG + 1] is None
    assert frame["truth"][1] is True and frame["truth"][LONG] == 1
    assert frame["late"].notna().sum() == 4
    assert frame["huge"][LONG + 1] == 1 << 63


def test_pieces_of_a_long_arrow_table_fit_together(tmp_path):
    require("pyarrow")
    table = long(tmp_path).to_arrow()
    table.validate(full=True)
    assert table.num_rows == LONG + 2
    types = {field.name: str(field.type) for field in table.schema}
    assert (types["seq"], types["late"], types["early"]) == ("int64", "int64", "bool")
    assert {types[name] for name in ("number", "truth", "huge", "path")} == {"string"}
    assert table["number"].to_pylist()[:2] == [None, "0"]
    assert table["number"].to_pylist()[-2:] == ["x", None]
    assert table["truth"].to_pylist()[-3:] == ["1", "1", None]
    assert table["truth"].to_pylist()[1] == "true"
    assert table["huge"].to_pylist()[-1] == str(1 << 63)


def test_texts_are_held_once(tmp_path):
    columns = _frames._columns_of(long(tmp_path))
    assert len({id(one) for one in columns["kind"]}) == 2
    assert len({id(one) for one in columns["path"]}) == 8


def test_texts_of_an_arrow_column_are_well_formed():
    assert _frames._text_of("a\udcff") == "a\\udcff"
    assert _frames._text_of([1, "x"]) == '[1, "x"]'
    assert _frames._text_of(None) is None


def test_to_pandas(tmp_path):
    require("pandas")
    frame = mixed(tmp_path).to_pandas()
    assert len(frame) == 4
    assert str(frame["size"].dtype) == "Int64"
    assert str(frame["native"].dtype) == "boolean"
    assert frame["path"][1] == "/a"
    assert frame["list"][1] == [1, {"x": "y"}]
    assert frame["huge"][2] == (1 << 64) - 1
    assert frame["size"].isna().sum() == 3
    assert len(mixed(tmp_path).of_kind("no such kind").to_pandas()) == 0


def test_to_arrow(tmp_path):
    require("pyarrow")
    table = mixed(tmp_path).to_arrow()
    assert table.num_rows == 4
    assert str(table.schema.field("size").type) == "int64"
    assert str(table.schema.field("native").type) == "bool"
    assert table["path"].to_pylist()[1:3] == ["/a", "\\udcff"]
    assert table["list"].to_pylist()[1] == '[1, {"x": "y"}]'
    assert table["mixed"].to_pylist()[2:] == ["x", "3"]
    assert len(mixed(tmp_path).of_kind("no such kind").to_arrow()) == 0
