"""Views of a trace: parts of it that behave as it does."""

from __future__ import annotations

import os
import threading

import pytest
import sandpit
from traces import Lines


@pytest.fixture
def trace(golden):
    return sandpit.load(golden("good"))


def seqs(events):
    return [event["seq"] for event in events]


def test_view_is_a_sequence_as_the_trace_is(trace):
    view = trace.of_kind("call", "open")
    expected = [event for event in trace if event["kind"] in ("call", "open")]
    assert len(view) == len(expected) == 7
    assert list(view) == expected
    assert view[0] == expected[0]
    assert view[-1] == expected[-1]
    for part in (slice(None), slice(1, 5, 2), slice(None, None, -1), slice(9, 2)):
        assert view[part] == expected[part]
    assert view == expected
    assert view == trace.of_kind("open", "call")
    assert view != trace
    assert view != expected[:-1]
    assert expected[3] in view
    assert view.index(expected[3]) == 3
    assert list(reversed(view)) == expected[::-1]
    assert bool(trace.of_kind("no such kind")) is False


@pytest.mark.parametrize("index", [7, -8, 1 << 80])
def test_view_index_out_of_range_is_an_index_error(trace, index):
    with pytest.raises(IndexError):
        trace.of_kind("call", "open")[index]


def test_view_of_wrong_types_is_a_type_error(trace):
    for wrong in (
        lambda: trace.of_kind(),
        lambda: trace.of_kind(1),
        lambda: trace.between(0.5),
        lambda: trace.between("1"),
        lambda: trace.where(pid="1"),
        lambda: trace.where(text=b"x"),
        lambda: trace.of_kind("open")["x"],
    ):
        with pytest.raises(TypeError):
            wrong()


def test_between_takes_the_first_bound_and_leaves_the_second(trace):
    times = [event["t"] for event in trace]
    for start, stop in [(0, 2000), (2000, 5001), (2250, 14792), (-5, None), (None, 0)]:
        low = start or 0
        expected = [
            event
            for event, t in zip(trace, times)
            if low <= t and (stop is None or t < stop)
        ]
        assert trace.between(start, stop) == expected
    assert trace.between(0, 1 << 100) == trace
    assert len(trace.between(1 << 100)) == 0


def test_views_of_views(trace):
    calls = trace.of_kind("call")
    assert seqs(calls.between(2200)) == [
        event["seq"] for event in calls if event["t"] >= 2200
    ]
    assert seqs(trace.between(2200).of_kind("call")) == seqs(calls.between(2200))
    assert len(calls.of_kind("open")) == 0
    assert calls.of_kind("call") == calls
    late = calls.between(2200)
    del calls
    assert len(late.where(tid=101)) == len(late)


def test_where(trace):
    assert seqs(trace.where(text="data.csv")) == [
        event["seq"] for event in trace if "data.csv" in str(event)
    ]
    calls = trace.of_kind("call", "return").where(text="len")
    assert {event["function"] for event in calls} == {"len"}
    assert len(trace.where(text="kernel")) == 0
    assert {event["layer"] for event in trace.where(layer="kernel")} == {"kernel"}
    assert len(trace.where(pid=100, layer="supervisor", text="no such")) == 0
    assert trace.where() == trace


def test_where_finds_bytes_that_are_no_utf_8(trace):
    assert seqs(trace.where(text='\udcff"\\\n')) == [14]


def test_a_view_is_not_read_before_it_is_asked(tmp_path):
    lines = Lines()
    lines.add("open", path="/a", op="read")
    path = lines.write(tmp_path / "broken.sptrace", b"garbage\n")
    trace = sandpit.load(path)
    view = trace.of_kind("open").between(5)
    assert "not read" in repr(view)
    with pytest.raises(sandpit.TraceError) as caught:
        len(view)
    assert (caught.value.line, caught.value.byte) == (3, lines.size)


def test_views_of_one_trace_in_several_threads(golden, tmp_path):
    lines = golden("good").read_bytes().splitlines(keepends=True)
    path = tmp_path / "long.sptrace"
    path.write_bytes(lines[0] + b"".join(lines[1:6]) * 2000)
    trace = sandpit.load(path)
    calls = trace.of_kind("call")
    lengths: list[int] = []

    def read() -> None:
        lengths.append(len(calls.where(text="len")))
        lengths.append(len(trace.between(0).of_kind("return").where(tid=101)))

    threads = [threading.Thread(target=read) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lengths) == 12
    assert len(set(lengths)) <= 2


def test_a_long_view_is_not_held_as_objects(tmp_path):
    lines = Lines()
    for i in range(200_000):
        lines.add("open", path="/a", op="read", t=i)
    trace = sandpit.load(lines.write(tmp_path / "long.sptrace"))
    view = trace.of_kind("open").between(1000, 199_000)
    assert len(view) == 198_000
    assert view[100_000]["t"] == 101_000
    assert len(view._within()) == 8 * 198_000


QUESTIONS = {
    "len": len,
    "of_kind": lambda trace: len(trace.of_kind("open")),
    "between": lambda trace: len(trace.between(0, 1)),
    "where": lambda trace: len(trace.where(text="x")),
    "calls": lambda trace: trace.calls(),
    "files": lambda trace: trace.files(),
    "network": lambda trace: trace.network(),
    "processes": lambda trace: trace.processes(),
}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize(
    ("rest", "byte"),
    [
        (b"garbage\n", 0),
        (b'{"seq":1,"t":0,"kind":"open","layer":"kernel","pid":1,"tid":1\n', 61),
        (b'{"seq":99999999999999999999,"t":0}\n', 25),
        (b'{"seq":1,"t":0,"kind":"run","layer":"python","pid":1,"tid":1,"n":9999}\n', 60),
        (b'{"seq":1,"t":0,"kind":"function","layer":"python","pid":1,"tid":1,'
         b'"id":4000000,"name":"f"}\n', 0),
        (b'{"seq":1,"t":0,"kind":"function","layer":"python","pid":1,"tid":1,"id":'
         + b"[" * 100 + b"]" * 100 + b"}\n", 0),
    ],
    ids=["garbage", "half", "number", "run", "function", "deep"],
)  # fmt: skip
def test_hostile_lines_raise_their_place(tmp_path, question, rest, byte):
    lines = Lines()
    trace = sandpit.load(lines.write(tmp_path / "hostile.sptrace", rest))
    with pytest.raises(sandpit.TraceError) as caught:
        QUESTIONS[question](trace)
    assert caught.value.line == 2
    assert lines.size <= caught.value.byte <= lines.size + byte


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_line_of_gigabytes_raises_its_place(tmp_path, question):
    lines = Lines()
    path = lines.write(tmp_path / "endless.sptrace")
    os.truncate(path, 4 << 30)  # zeros, none of them on the disk
    trace = sandpit.load(path)
    with pytest.raises(sandpit.TraceError) as caught:
        QUESTIONS[question](trace)
    assert (caught.value.line, caught.value.byte) == (2, lines.size)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_trace_that_was_cut_is_read_to_where_it_ends(tmp_path, question):
    lines = Lines().add("open", path="/a", op="read")
    trace = sandpit.load(lines.write(tmp_path / "cut.sptrace", b'{"seq":2,"t":0,"ki'))
    QUESTIONS[question](trace)
    assert len(trace) == 2


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_trace_that_shrinks_is_read_as_far_as_it_goes(tmp_path, question):
    lines = Lines()
    for _ in range(6000):
        lines.add("open", path="/a" * 50, op="read")
    trace = sandpit.load(lines.write(tmp_path / "shrinking.sptrace"))
    assert len(trace) == 6001
    os.truncate(tmp_path / "shrinking.sptrace", 1000)
    QUESTIONS[question](trace)  # of what is left
    with pytest.raises(sandpit.TraceError):
        trace[6000]
