"""`Trace.calls`: the exact tree of level `all`, the graph of the other levels."""

from __future__ import annotations

import sys

import pytest
import sandpit
from traces import Lines


def told(calls, *, times=False):
    """The nodes as (depth, function, count[, total, self])."""
    return [
        (depth, node.function, node.count)
        + ((node.total_ns, node.self_ns) if times else ())
        for depth, node in calls.walk()
    ]


def load(lines, tmp_path, *rest):
    return sandpit.load(lines.write(tmp_path / "made.sptrace", *rest))


def functions(lines, *names):
    for number, name in enumerate(names, 1):
        lines.function(number, name)
    return lines


def test_tree_adds_up_counts_and_times_by_the_way_of_calling(tmp_path):
    lines = functions(Lines("all"), "main", "f", "g")
    lines.run([1, 2, 3, -3, -2, 2, 3, -3, 3, -3, -2, 3, -3, -1])
    calls = load(lines.end(1000), tmp_path).calls()
    assert isinstance(calls, sandpit.CallTree)
    assert (calls.exact, calls.unlisted, calls.lost, len(calls)) == (True, 0, 0, 4)
    assert told(calls, times=True) == [
        (0, "main", 1, 130, 40),
        (1, "f", 2, 80, 50),
        (2, "g", 3, 30, 30),
        (1, "g", 1, 10, 10),
    ]
    ((root,),) = [root.children for root in calls.roots]
    assert (root.function, root.module, root.file, root.line, root.native, root.caller) == (
        "main", "m", "/work/job.py", 1, False, None)  # fmt: skip
    assert [child.caller for child in root.children] == ["main", "main"]
    assert root.children[0] == root.children[:1][0]
    assert root.children[-1] != root.children[0]
    assert "main /work/job.py:1, 1 calls, 130 ns" in repr(root)


def test_tree_has_each_thread_and_process(tmp_path):
    lines = functions(Lines("all"), "main", "f")
    lines.run([1, 2]).run([2], tid=101).run([-2], tid=101, t=500)
    lines.run([-2, -1], t=600)
    lines.add("fork", pid=200, parent=100, child=200)
    lines.run([2, -2, -1, 2], pid=200, t=700)
    lines.add("exit", layer="kernel", pid=200, t=1000, code=0)
    calls = load(lines.end(1000), tmp_path).calls()
    assert [(root.pid, root.tid) for root in calls.roots] == [
        (100, 100), (100, 101), (200, 200)]  # fmt: skip
    assert told(calls, times=True) == [
        (0, "main", 1, 610, 20),
        (1, "f", 1, 590, 590),
        (0, "f", 1, 500, 500),
        (0, "f", 2, 270, 270),  # the second ended with the process
    ]


def test_tree_tells_resumes_from_calls(tmp_path):
    lines = functions(Lines("all"), "main", "gen")
    lines.run([1, 2, -2, 2, -2, -1], resumed=[2, 3, 4])
    calls = load(lines.end(1000), tmp_path).calls()
    main, gen = (node for _, node in calls.walk())
    assert (main.count, main.resumes) == (1, 0)
    assert (gen.count, gen.resumes, gen.total_ns) == (1, 1, 20)


def test_tree_of_100_000_levels(tmp_path):
    lines = functions(Lines("all"), "down")
    depth = 100_000
    for start in range(0, depth, 4000):
        lines.run([1] * 4000, step=1, t=start)
    for start in range(0, depth, 4000):
        lines.run([-1] * 4000, step=1, t=depth + start)
    calls = load(lines.end(3 * depth), tmp_path).calls()
    assert calls.exact
    assert len(calls) == depth
    nodes = [(level, node.count) for level, node in calls.walk()]
    assert nodes == [(level, 1) for level in range(depth)]
    assert sys.getrecursionlimit() < depth
    node = calls.roots[0].children[0]
    for _ in range(depth - 1):
        (node,) = node.children
    assert len(node.children) == 0


def test_tree_without_end_is_bounded(tmp_path):
    lines = functions(Lines("all"), "down")
    for _ in range(100):
        lines.run([1] * 4000, step=0)
    calls = load(lines, tmp_path).calls()
    assert not calls.exact
    assert len(calls) + calls.unlisted == 400_000
    assert len(calls) == 1 << 17


def test_tree_of_what_does_not_fit_together(tmp_path):
    lines = functions(Lines("all"), "main", "f", "g")
    lines.run([-3, 1, -2, 2, 3, -1, -1, 3, 9, -9])
    calls = load(lines.end(1000), tmp_path).calls()
    assert told(calls) == [
        (0, "main", 1),
        (1, "f", 1),
        (2, "g", 1),
        (0, "g", 1),
        (1, "", 1),
    ]


def test_tree_is_not_exact_where_events_are_missing(tmp_path):
    lines = functions(Lines("all"), "main")
    lines.run([1, -1]).add("lost", layer="supervisor", count=7, reason="size-cap")
    calls = load(lines.end(1000), tmp_path).calls()
    assert (calls.exact, calls.lost) == (False, 7)


def test_tree_of_many_threads_and_functions_is_bounded(tmp_path):
    lines = Lines("all")
    for number in range(1, 20_000):
        lines.function(number, f"f{number}")
    for number in range(1, 20_000):
        lines.run([number, -number], tid=1000 + number)
    calls = load(lines.end(1000), tmp_path).calls()
    assert len(calls.roots) == len(calls) == 19_999
    assert calls.roots[7].children[0].function == "f8"


def test_tree_of_too_many_threads_is_a_trace_error(tmp_path):
    lines = functions(Lines("all"), "main")
    for number in range(33_000):
        lines.run([1], tid=1000 + number)
    trace = load(lines.end(1000), tmp_path)
    with pytest.raises(sandpit.TraceError, match="threads"):
        trace.calls()


def folded(lines, function, caller, **members):
    named = {"file": "/work/job.py", "line": sum(map(ord, function)), **members}
    return lines.add("call", function=function, **({"caller": caller} if caller else {}),
                     **named)  # fmt: skip


def test_graph_adds_up_what_was_folded(tmp_path):
    lines = Lines()
    folded(lines, "main", None)
    folded(lines, "f", "main")
    folded(lines, "g", "f")
    folded(lines, "open", "g", native=True, file="/work/job.py", line=5)
    folded(lines, "open", "g", native=True, file="/work/job.py", line=6)
    folded(lines, "f", "main", count=4, total=100, self=60)
    folded(lines, "g", "f", count=9, total=40, self=40)
    folded(lines, "gen", "main", count=0, total=7, self=7, resumes=3)
    folded(lines, "main", None, pid=200)
    calls = load(lines.end(1000), tmp_path).calls()
    assert isinstance(calls, sandpit.CallGraph)
    assert calls.exact is False
    assert [(root.pid, root.tid) for root in calls.roots] == [(100, None), (200, None)]
    assert told(calls, times=True) == [
        (0, "main", 1, 0, 0),
        (1, "f", 5, 100, 60),
        (2, "g", 10, 40, 40),
        (3, "open", 2, 0, 0),
        (1, "gen", 0, 7, 7),
        (0, "main", 1, 0, 0),
    ]
    nodes = {node.function: node for _, node in calls.walk()}
    assert nodes["gen"].resumes == 3
    assert nodes["g"].caller == "f"
    assert (nodes["open"].native, nodes["open"].file) == (True, "")


def test_graph_with_circles_ends(tmp_path):
    lines = Lines()
    folded(lines, "main", None)
    folded(lines, "fib", "main")
    folded(lines, "fib", "fib", count=20, total=5, self=5)
    folded(lines, "ping", "pong", count=1)  # nobody calls these but they each other
    folded(lines, "pong", "ping", count=1)
    folded(lines, "late", "never called itself")
    calls = load(lines.end(1000), tmp_path).calls()
    assert told(calls) == [
        (0, "main", 1),
        (1, "fib", 1),
        (2, "fib", 20),
        (0, "ping", 1),
        (1, "pong", 1),
        (0, "late", 1),
    ]
    main = calls.roots[0].children[0]
    fib = main.children[0].children[0]
    for _ in range(5000):
        (fib,) = fib.children
    assert (fib.function, fib.count) == ("fib", 20)


def test_graph_of_absurd_members_is_bounded(tmp_path):
    lines = Lines()
    for members in (
        {"function": 5}, {"function": ["x"]}, {"caller": "f"}, {},
        {"function": "f", "caller": 7, "file": {}, "line": "x", "count": -5},
        {"function": "f", "count": 1 << 62, "total": -1, "self": "long"},
        {"function": "x" * 5000, "caller": "y" * 5000, "file": "z" * 5000},
        {"function": "f\0g", "caller": "\udcff"}, {"function": ""},
    ):  # fmt: skip
        lines.add("call", **members)
    calls = load(lines.end(1), tmp_path).calls()
    assert calls.unlisted == 4
    assert {node.function[:3] for _, node in calls.walk()} == {"f", "f\0g", "xxx", ""}


def test_graph_of_many_functions_is_bounded(tmp_path):
    lines = Lines()
    for number in range(70_000):
        folded(lines, f"function {number}", "main", count=2)
    calls = load(lines.end(1), tmp_path).calls()
    assert len(calls) * 2 + calls.unlisted == 140_000
    assert 60_000 < len(calls) <= 65_536


def test_calls_of_a_part(tmp_path):
    lines = functions(Lines("all"), "main", "f", "g")
    lines.run([1, 2, -2, 3, -3, -1])
    trace = load(lines.end(1000), tmp_path)
    assert told(trace.where(text="f").calls()) == [(0, "f", 1)]
    assert told(trace.between(0, 45).calls()) == [
        (0, "main", 1),
        (1, "f", 1),
        (1, "g", 1),
    ]


def test_calls_of_nothing(tmp_path):
    calls = load(Lines("off").end(1), tmp_path).calls()
    assert (len(calls), calls.roots, calls.exact) == (0, (), False)
    assert list(calls.walk()) == []


def test_calls_of_a_broken_trace_raise_its_place(tmp_path):
    lines = functions(Lines("all"), "main").run([1, -1])
    trace = load(lines, tmp_path, b'{"seq":4,"t":0,"kind":"call","layer":"python",'
                 b'"pid":1,"tid":1,"function":"f}\n')  # fmt: skip
    with pytest.raises(sandpit.TraceError) as caught:
        trace.calls()
    assert caught.value.line == 4


def test_calls_outlive_their_trace(tmp_path):
    lines = functions(Lines("all"), "main").run([1, -1])
    node = load(lines.end(1), tmp_path).calls().roots[0].children[0]
    assert node.function == "main"
