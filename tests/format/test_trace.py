"""`sandpit.Trace` behaves as a sequence of dicts, lazily."""

from __future__ import annotations

import gc
import os
import threading

import pytest
import sandpit
from sandpit._trace import Trace


@pytest.fixture
def trace(golden) -> Trace:
    return sandpit.load(golden("good"))


def test_trace_length_counts_calls_and_returns_in_runs(trace):
    assert len(trace) == 23


def test_trace_index_is_the_seq_of_an_unbroken_trace(trace):
    assert [event["seq"] for event in trace] == list(range(23))
    assert trace[-1]["kind"] == "end"
    assert trace[-23]["kind"] == "start"


@pytest.mark.parametrize("index", [23, -24, 1 << 40])
def test_trace_index_out_of_range_is_an_index_error(trace, index):
    with pytest.raises(IndexError):
        trace[index]


def test_trace_index_of_a_wrong_type_is_a_type_error(trace):
    with pytest.raises(TypeError):
        trace["start"]


@pytest.mark.parametrize(
    "part",
    [slice(None), slice(2, 9), slice(None, None, -1), slice(20, 2, -3), slice(9, 2)],
)
def test_trace_slices_are_lists(trace, part):
    assert trace[part] == list(trace)[part]


def test_trace_order_of_access_does_not_matter(trace):
    expected = list(trace)
    for i in [22, 0, 11, 4, 3, 12, 5, 10, 21, 4]:
        assert trace[i] == expected[i]


def test_trace_run_is_given_as_calls_and_returns(trace):
    assert trace[9] == {
        "seq": 9,
        "t": 14792,
        "kind": "return",
        "layer": "python",
        "pid": 100,
        "tid": 101,
        "id": 3,
        "function": "len",
        "module": "builtins",
        "native": True,
        "raised": True,
    }
    assert trace[5]["resumed"] is True


def test_trace_strings_hold_bytes_as_the_os_module_does(trace):
    assert os.fsencode(trace[14]["path"]).startswith(b'/tmp/\xff"\\\n')


def test_trace_equality(trace, golden):
    assert trace == sandpit.load(golden("good"))
    assert trace == list(trace)
    assert trace != sandpit.load(golden("lossy"))
    assert trace != list(trace)[:-1]
    assert trace != "trace"


def test_trace_violations_add_repeats_to_the_first(trace):
    assert [(v["seq"], v["count"]) for v in trace.violations] == [(15, 42)]
    assert "of" not in trace.violations[0]


def test_trace_violations_are_copies(trace):
    trace.violations[0]["count"] = 0
    assert trace.violations[0]["count"] == 42


def test_trace_of_kind(trace):
    assert [event["seq"] for event in trace.of_kind("call")] == [4, 5, 6, 8]
    assert [event["seq"] for event in trace.of_kind("open")] == [12, 14, 16]
    assert list(trace.of_kind("no such kind")) == []


def test_trace_membership_and_index(trace):
    assert trace[7] in trace
    assert trace.index(trace[7]) == 7


def test_trace_from_a_descriptor_leaves_it_open(golden):
    with open(golden("good"), "rb") as file:
        file.seek(100)
        trace = Trace(file.fileno())
        assert trace.path is None
        assert len(trace) == 23
        assert trace.verify().code == 0
        del trace
        gc.collect()
        assert file.tell() == 100


def test_trace_save_copies_byte_for_byte(trace, golden, tmp_path):
    target = tmp_path / "copy.sptrace"
    target.write_text("something older")
    assert trace.save(target) == target
    assert target.read_bytes() == golden("good").read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["copy.sptrace"]


def test_trace_save_where_it_cannot_raises(trace, tmp_path):
    with pytest.raises(sandpit.TraceError):
        trace.save(tmp_path / "missing" / "copy.sptrace")


def test_trace_outlives_its_name(golden, tmp_path):
    path = tmp_path / "gone.sptrace"
    path.write_bytes(golden("good").read_bytes())
    trace = sandpit.load(path)
    path.unlink()
    assert len(trace) == 23


def test_trace_cut_under_its_reader_raises(golden, tmp_path):
    path = tmp_path / "shrinking.sptrace"
    data = golden("good").read_bytes()
    padding = data.splitlines(keepends=True)[1]
    # Longer than what is read ahead.
    path.write_bytes(data.splitlines(keepends=True)[0] + padding * 6000)
    trace = sandpit.load(path)
    assert len(trace) == 6001
    os.truncate(path, 1000)
    with pytest.raises(sandpit.TraceError):
        trace[6000]


def test_trace_verify_names_line_and_byte(golden):
    checked = sandpit.load(golden("reordered")).verify()
    assert (checked.code, checked.line, checked.byte) == (1, 9, 1538)


@pytest.mark.parametrize("path", ["/", "/dev/null", "/nowhere/at/all.sptrace"])
def test_trace_of_what_is_no_file_raises(path):
    with pytest.raises(sandpit.TraceError):
        sandpit.load(path)


@pytest.mark.parametrize("source", [None, 1.5, ["x"]])
def test_trace_of_a_wrong_type_is_a_type_error(source):
    with pytest.raises(TypeError):
        sandpit.load(source)


def test_trace_of_a_closed_descriptor_raises():
    with pytest.raises(sandpit.TraceError):
        Trace(987654)


def test_trace_may_be_used_by_several_threads(golden, tmp_path):
    lines = golden("good").read_bytes().splitlines(keepends=True)
    path = tmp_path / "long.sptrace"
    path.write_bytes(lines[0] + b"".join(lines[1:6]) * 2000)
    trace = sandpit.load(path)
    expected = 1 + 12 * 2000
    wrong: list[object] = []

    def read(start: int) -> None:
        try:
            assert len(trace) == expected
            for i in range(start, expected, 97):
                assert trace[i]["kind"] != "run"
            assert len(list(trace.of_kind("call"))) == 8000
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=read, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
