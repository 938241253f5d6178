"""Calls in the trace: what is counted is what ran, at every level, however it ends."""

from __future__ import annotations

import collections
import os
import subprocess
from pathlib import Path

import abilities
import pytest
from interpreters import Interpreter

COUNTED = """
import asyncio, threading, _thread, time
def leaf(x): return x
def mid(n):
    for i in range(n): leaf(i)
def gen(n):
    for i in range(n): yield leaf(i)
async def co(n):
    await asyncio.sleep(0)
    return leaf(n)
async def amain():
    for i in range(50): await co(i)
def rec(n): return 0 if n == 0 else 1 + rec(n - 1)
def raises(n):
    if n: raises(n - 1)
    raise KeyError(n)
class Point:
    def __init__(self, x): self.x = x
    def __add__(self, other): return Point(self.x + other.x)
done = []
def raw():
    mid(100)
    done.append(1)
mid(500)
list(gen(200))
asyncio.run(amain())
rec(700)
threads = [threading.Thread(target=mid, args=(1000,)) for _ in range(4)]
for one in threads: one.start()
for one in threads: one.join()
for _ in range(3): _thread.start_new_thread(raw, ())
while len(done) < 3: time.sleep(0.01)
for i in range(20):
    try: raises(30)
    except KeyError: pass
sum([Point(1)] * 10, Point(0))
"""

COUNTS = {
    "<module>": 1,
    "leaf": 500 + 200 + 50 + 4000 + 300,
    "mid": 1 + 4 + 3,
    "gen": 1,
    "co": 50,
    "amain": 1,
    "rec": 701,
    "raises": 620,
    "raw": 3,
    "Point": 1,
    "Point.__init__": 12,
    "Point.__add__": 10,
}


def plain(python: Interpreter, code: str, folder: Path) -> str:
    """Give the output of the code under plain python."""
    script = folder / "script.py"
    script.write_text(code)
    return subprocess.run(
        [python.path, script], capture_output=True, text=True, timeout=120, cwd=folder
    ).stdout


def without_comprehensions(counts: dict[str, int]) -> dict[str, int]:
    """Before 3.12 they are functions."""
    return {name: count for name, count in counts.items() if "comp>" not in name}


@pytest.mark.parametrize("level", ["folded", "all"])
def test_counts_are_exact(traced, level):
    run = traced(COUNTED, level)
    assert run.code == 0
    assert without_comprehensions(run.counts()) == COUNTS
    assert not run.of("lost")
    assert not run.of("tamper")


SPECIALISED = """
class Plain:
    def __init__(self): self.x = 1
class Derived(Plain):
    def __init__(self, n):
        super().__init__()
        self.n = n
    def __getitem__(self, i): return i
    @property
    def value(self): return 1
    def __getattribute__(self, name): return object.__getattribute__(self, name)
class Slots:
    __slots__ = ("a",)
    def __init__(self, a=1): self.a = a
class Any:
    def __init__(self, *a, **k): pass
class Inherits(Any): pass
def made():
    for i in range(9): yield i
def plain(i): return i
for i in range(500):
    Plain(); one = Derived(i); one[1]; one.value; Slots(); Slots(2)
    Any(1, k=2); Inherits(); plain(i); plain(i=i)
    for one in made(): break
list(map(plain, range(100)))
"""
SPECIALISED_COUNTS = {
    "Plain.__init__": 1000, "Derived.__init__": 500, "Derived.__getitem__": 500,
    "Derived.value": 500, "Derived.__getattribute__": 500, "Slots.__init__": 1000,
    "Any.__init__": 1000, "made": 500, "plain": 1100,
}  # fmt: skip


@pytest.mark.parametrize("level", ["folded", "all"])
def test_what_the_interpreter_specialises_is_counted(traced, python, level):
    run = traced(SPECIALISED, level)
    counts = run.counts()
    if level == "folded" and (3, 11) <= python.version < (3, 11, 4):
        # CPython issue 104405; docs/trace-format.md says so.
        counts["Derived.__getitem__"] = SPECIALISED_COUNTS["Derived.__getitem__"]
    assert {name: counts[name] for name in SPECIALISED_COUNTS} == SPECIALISED_COUNTS
    assert not run.of("lost")


DEEP_AT_THE_END = """
import sys
sys.setrecursionlimit(100000)
def sink(n): return n and [sink(n - 1)][0]
sink(9000)
"""
COROUTINE_AT_THE_END = """
import asyncio
async def nothing(): pass
asyncio.run(nothing())
"""
CLASSES = """
import threading
def inner(): return 1
class Plain:
    def __init__(self): inner()
class Raises:
    def __init__(self, n):
        inner()
        if n % 2: raise ValueError(n)
class Nested:
    def __init__(self, n):
        if n: Nested(n - 1)
        Plain()
class Deep(Nested):
    def __init__(self, n):
        super().__init__(n)
        try: Raises(1)
        except ValueError: pass
        inner()
def begin(self): inner()
begin(None)
class Alias:
    __init__ = begin
def make(kind): return kind()
def use():
    try: Raises(1)
    except ValueError: pass
    inner()
    Plain()
    Alias()
def once(i):
    namespace = {}
    exec("class One:\\n    def __init__(self): inner()\\n", {"inner": inner}, namespace)
    make(namespace["One"])
for i in range(200): use()
for i in range(300): make(Plain)
for i in range(200): once(i)
for i in range(50): Deep(3)
thread = threading.Thread(target=lambda: [use() for i in range(100)])
thread.start(); thread.join()
"""
CLASSES_COUNTS = {
    ("use", "Raises.__init__"): 300, ("use", "Plain.__init__"): 300, ("use", "inner"): 300,
    ("use", "begin"): 300, ("begin", "inner"): 301, ("make", "Plain.__init__"): 300,
    ("Raises.__init__", "inner"): 350, ("Plain.__init__", "inner"): 800,
    ("make", "One.__init__"): 200, ("One.__init__", "inner"): 200,
    ("<module>", "Deep.__init__"): 50, ("Deep.__init__", "Nested.__init__"): 50,
    ("Nested.__init__", "Nested.__init__"): 150, ("Nested.__init__", "Plain.__init__"): 200,
    ("Deep.__init__", "Raises.__init__"): 50, ("Deep.__init__", "inner"): 50,
}  # fmt: skip


@pytest.mark.parametrize("ending", ["", DEEP_AT_THE_END, COROUTINE_AT_THE_END])
def test_calls_of_classes_are_counted_with_their_caller(traced, ending):
    """However the interpreter enters __init__, and whatever counts after the end."""
    run = traced(CLASSES + (ending and ending + CLASSES), "folded")
    assert run.code == 0
    pairs: collections.Counter[tuple[str | None, str]] = collections.Counter()
    for one in run.of("call"):
        if not one.get("native"):
            pairs[one.get("caller"), one["function"]] += one.get("count", 1)
    times = 2 if ending else 1
    expected = {pair: count * times for pair, count in CLASSES_COUNTS.items()}
    assert {pair: pairs[pair] for pair in expected} == expected
    assert not run.of("lost")


def test_first_tells_each_function_once(traced):
    run = traced(COUNTED, "first")
    assert without_comprehensions(run.counts()) == dict.fromkeys(COUNTS, 1)


def test_off_tells_nothing(traced):
    run = traced(COUNTED, "off")
    assert not run.of("call")
    assert not run.of("run")
    assert not run.of("function")


def test_pair_is_told_three_times_then_counted(traced):
    run = traced(
        "def f(): pass\ndef g():\n    for i in range(10): f()\ng()\n", "folded"
    )
    told = [one for one in run.of("call") if one["function"] == "f"]
    assert [one.get("count", 1) for one in told] == [1, 1, 1, 7]
    assert [one.get("depth") for one in told] == [2, 2, 2, None]
    assert {(one["caller"], one["line"], one["file"]) for one in told} == {
        ("g", 1, run.script)
    }
    assert 0 < told[-1]["self"] <= told[-1]["total"]


def test_times_are_of_the_calls_that_are_told_singly_too(traced):
    """However rare a call is, a folded trace says how long it took."""
    code = """
import time
def inner(): time.sleep(0.02)
def once(): inner()
def thrice(): time.sleep(0.01)
def main():
    once()
    for _ in range(3): thrice()
main()
"""
    run = traced(code, "folded")
    times = {}
    for one in run.of("call"):
        if "count" in one and one["file"] == run.script:
            assert one["function"] not in times
            times[one["function"]] = one
    ms = 1_000_000
    assert [one["count"] for one in times.values()] == [0] * 5
    assert times["inner"]["total"] >= 20 * ms
    assert times["once"]["total"] >= 20 * ms > 10 * ms > times["once"]["self"]
    assert times["thrice"]["total"] >= 30 * ms
    assert times["main"]["total"] >= 50 * ms
    assert times["<module>"]["total"] >= times["main"]["total"]
    own = sum(one["self"] for one in times.values())
    assert abs(own - times["<module>"]["total"]) < 5 * ms  # what time.sleep took, too


def test_what_does_not_return_has_no_time(traced):
    run = traced("import os\ndef f(): os._exit(0)\nf()\n", "folded")
    (told,) = [one for one in run.of("call") if one["function"] == "f"]
    assert "count" not in told


def test_generator_counts_once_and_its_resumes_apart(traced):
    run = traced(
        "def g():\n    for i in range(5): yield i\nprint(sum(g()))\n", "folded"
    )
    (told, counted) = [one for one in run.of("call") if one["function"] == "g"]
    assert "count" not in told
    assert (counted["count"], counted["resumes"]) == (0, 5)


def test_raise_and_resume_are_marked_in_runs(traced):
    code = "def g():\n    yield 1\ndef f():\n    list(g())\n    raise KeyError\ntry: f()\nexcept KeyError: pass\n"
    run = traced(code, "all")
    names = {
        one["id"]: one["name"]
        for one in run.of("function")
        if one.get("file") == run.script
    }
    marks = []
    for one in run.of("run"):
        for at, number in enumerate(one["f"]):
            if names.get(abs(number)) in ("f", "g"):
                raised = at in one.get("raised", ())
                resumed = at in one.get("resumed", ())
                marks.append((names[abs(number)], number > 0, raised, resumed))
    assert marks == [
        ("f", True, False, False),
        ("g", True, False, False),
        ("g", False, False, True),
        ("g", True, False, True),
        ("g", False, False, False),
        ("f", False, True, False),
    ]


@pytest.mark.versions(since=(3, 12))
def test_c_functions_are_told_once_for_each_place(traced, python):
    run = traced("for i in range(5):\n    len('abc')\nlen('x')\n", "folded")
    told = [
        (one["line"], one["caller"])
        for one in run.of("call")
        if one["function"] == "len"
    ]
    assert told == [(2, "<module>"), (3, "<module>")]


def test_c_functions_are_in_runs(traced):
    run = traced("for i in range(5):\n    'abc'.upper()\n", "all")
    (upper,) = [one["id"] for one in run.of("function") if one["name"] == "str.upper"]
    calls = [
        number for one in run.of("run") for number in one["f"] if abs(number) == upper
    ]
    assert calls == [upper, -upper] * 5


def test_imports_of_libraries_are_counted_only(traced):
    run = traced("import json\njson.dumps([1])\n", "folded")
    lines = [one for one in run.of("call") if one["file"].endswith("decoder.py")]
    assert lines
    assert all("count" in one for one in lines)
    assert any(
        one["function"] == "dumps" and "count" not in one for one in run.of("call")
    )


def test_qualified_names(traced):
    code = (
        "class A:\n    class B:\n        def m(self):\n"
        "            def inner(): pass\n            inner()\nA.B().m()\n"
    )
    names = set(traced(code, "folded").counts())
    assert {"A.B.m", "A.B.m.<locals>.inner", "A.B", "A"} <= names


@pytest.mark.parametrize("level", ["folded", "all"])
def test_counts_survive_hard_ends_of_children(traced, level):
    code = (
        "import os, signal\n"
        "def leaf(): pass\n"
        "def work(n):\n    for i in range(n): leaf()\n"
        "work(10)\n"
        "for end in (lambda: os._exit(0), lambda: os.kill(os.getpid(), signal.SIGKILL)):\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n        work(1000); end()\n"
        "    os.waitpid(pid, 0)\n"
        "work(5)\n"
        "os._exit(3)\n"
    )
    run = traced(code, level)
    assert run.code == 3
    assert run.counts()["leaf"] == 2015


def test_more_pairs_than_the_table_holds(traced):
    code = (
        "N = 300\n"
        "names = {}\n"
        "exec('\\n'.join(f'def f{i}(): pass' for i in range(N)), names)\n"
        "fs = [names[f'f{i}'] for i in range(N)]\n"
        "def caller(i):\n"
        "    names = {'fs': fs}\n"
        "    exec(f'def c{i}():\\n    for f in fs: f()\\n', names)\n"
        "    return names[f'c{i}']\n"
        "for round in range(2):\n"
        "    for i in range(N): caller(i)()\n"
    )
    run = traced(code, "folded")
    counted = sum(
        one.get("count", 1)
        for one in run.of("call")
        if one["function"].startswith("f") and one["file"] == "<string>"
    )
    assert counted == 2 * 300 * 300
    assert not run.of("lost")


RECURSION = """
import sys, threading
def rec(n): return 0 if n == 0 else 1 + rec(n - 1)
def lim(n):
    try: return lim(n + 1)
    except RecursionError: return n
if sys.version_info >= (3, 11):
    sys.setrecursionlimit(101000)
    print(rec(100000))
sys.setrecursionlimit(3000)
print(rec(2500), lim(0))
sys.setrecursionlimit(200)
print(lim(0))
sys.setrecursionlimit(1000)
nested = []
for i in range(100000): nested = [nested]
try: repr(nested)
except RecursionError: print("repr")
def deep(n):
    if n: yield from deep(n - 1)
    yield n
print(sum(1 for _ in deep(400)))
thread = threading.Thread(target=lambda: print(rec(900)))
thread.start(); thread.join()
"""


@pytest.mark.parametrize("level", ["first", "folded", "all"])
def test_recursion_ends_where_it_does_under_plain_python(
    traced, python, tmp_path, level
):
    run = traced(RECURSION, level)
    assert run.stdout == plain(python, RECURSION, tmp_path)
    if level != "first":
        deep = 100001 if python.version >= (3, 11) else 0
        assert run.counts()["rec"] == deep + 2501 + 901


PROFILERS = """
import cProfile, io, profile, pstats, sys, threading
def foo(): return len("x")
def main():
    for i in range(3): foo()
def calls(p):
    text = io.StringIO()
    pstats.Stats(p, stream=text).print_stats("foo")
    return [line.split()[0] for line in text.getvalue().splitlines() if line.endswith("(foo)")]
print(sys.getprofile(), sys.gettrace())
for kind in cProfile.Profile, profile.Profile:
    one = kind()
    one.runcall(main)
    print(calls(one))
one = cProfile.Profile(); one.enable(); foo(); one.disable()
print(calls(one), sys.getprofile())
seen = []
def callback(frame, event, arg): seen.append((event, frame.f_code.co_name))
sys.setprofile(callback)
print(sys.getprofile() is callback)
foo()
sys.setprofile(None)
print(seen, sys.getprofile())
lines = []
def tracer(frame, event, arg):
    lines.append((event, frame.f_code.co_name))
    return tracer
sys.settrace(tracer); foo(); sys.settrace(None)
print(lines)
seen.clear()
threading.setprofile(callback)
thread = threading.Thread(target=main); thread.start(); thread.join()
threading.setprofile(None)
print(seen.count(("call", "foo")))
main()
"""


@pytest.mark.parametrize("level", ["first", "folded", "all"])
def test_the_programs_own_profilers_work(traced, python, tmp_path, level):
    run = traced(PROFILERS, level)
    assert run.stdout == plain(python, PROFILERS, tmp_path)
    assert not run.attempts()
    if level != "first":
        assert run.counts()["foo"] == 3 + 3 + 1 + 1 + 1 + 3 + 3


MONITORING = """
import sys
m = sys.monitoring
print(type(m), m.__name__, m.use_tool_id, m.set_events.__doc__)
print([m.get_tool(i) for i in range(6)], m._all_events() if {quiet} else "")
taken = []
for i in range(5):
    m.use_tool_id(i, "t%d" % i)
    taken.append(m.get_tool(i))
print(taken)
hits = []
m.register_callback(4, m.events.PY_START, lambda code, offset: hits.append(code.co_name))
m.set_events(4, m.events.PY_START)
print(m.get_events(4), m._all_events())
def foo(): pass
foo()
m.set_events(4, 0)
foo()
print(hits)
try: m.use_tool_id(4, "again")
except ValueError as error: print(error)
print(m.get_tool(5), m.get_events(5))
try: m.set_events(5, m.events.PY_START)
except ValueError as error: print(error)
m.free_tool_id(0)
m.use_tool_id(5, "t5")
m.set_events(5, m.events.PY_START | m.events.LINE)
print([m.get_tool(i) for i in range(6)], m.get_events(5), m.get_events(4))
try: m.use_tool_id(5, "again")
except ValueError as error: print(error)
for i in range(1, 6): m.free_tool_id(i)
print([m.get_tool(i) for i in range(6)], [m.get_events(i) for i in range(6)])
"""


@pytest.mark.versions(since=(3, 12))
@pytest.mark.parametrize("level", ["first", "folded", "all"])
def test_monitoring_seems_to_be_the_programs_own(traced, python, tmp_path, level):
    code = MONITORING.format(quiet=True)
    run = traced(code, level)
    assert normal(run.stdout) == normal(plain(python, code, tmp_path))
    assert not run.attempts()
    assert run.counts()["foo"] == (1 if level == "first" else 2)


def normal(text: str) -> str:
    """Leave out the number of the tool that stands for ours: it is a set of bits."""
    return "\n".join(line for line in text.splitlines() if not line.startswith("1 {"))


@pytest.mark.versions(since=(3, 12))
@pytest.mark.parametrize(
    "attempt",
    [
        "m.set_events(i, 0)",
        "m.free_tool_id(i)",
        "m.register_callback(i, m.events.PY_START, None)",
        "m.set_local_events(i, leaf.__code__, 0)",
        "m.restart_events()",
    ],
)
@pytest.mark.parametrize("level", ["folded", "all"])
def test_monitoring_cannot_be_switched_off(traced, python, level, attempt):
    code = (
        "import sys\nm = sys.monitoring\ndef leaf(): pass\nleaf()\n"
        f"for i in range(6):\n    try: {attempt}\n    except ValueError: pass\n"
        "for i in range(100): leaf()\n"
    )
    run = traced(code, level)
    assert run.counts()["leaf"] == 101
    noted = [one["what"] for one in run.of("tamper")]
    assert len(noted) == ("restart" not in attempt)


def test_tracer_is_not_among_the_collectors_objects(traced, python, tmp_path):
    code = (
        "import gc\n"
        "print(sorted({type(one).__name__ for one in gc.get_objects()}))\n"
        "print(sum(type(one).__name__ == 'builtin_function_or_method'"
        " and one.__name__ == 'callback' for one in gc.get_objects()))\n"
    )
    run = traced(code, "all")
    assert run.stdout == plain(python, code, tmp_path)


def test_stack_of_a_native_act_is_read_from_outside(traced):
    code = (
        "import ctypes, threading\n"
        "libc = ctypes.CDLL(None)\n"
        "def dial(n):\n"
        "    if n:\n"
        "        return dial(n - 1)\n"
        "    s = libc.socket(2, 1, 0)\n"
        "    libc.connect(s, b'\\2\\0\\0\\120\\1\\2\\3\\4' + b'\\0' * 8, 16)\n"
        "def gen():\n"
        "    yield dial(1)\n"
        "thread = threading.Thread(target=lambda: list(gen()))\n"
        "thread.start(); thread.join()\n"
    )
    run = traced(code, "off", policy="no-network")
    (told,) = [one for one in run.of("violation") if one.get("operation") == "connect"]
    assert told["at"] == f"{run.script}:7"
    places = [line.split()[0].rpartition(":")[2] for line in told["stack"][:4]]
    assert places == ["7", "5", "9", "10"]
    assert [line.split()[1] for line in told["stack"][:3]] == ["dial", "dial", "gen"]


# Later ones have no way in without a Python module.
@pytest.mark.versions(before=(3, 13))
def test_subinterpreters_are_traced_or_counted_as_lost(traced, python):
    code = (
        "import _xxsubinterpreters as sub\n"
        "one = sub.create()\n"
        "sub.run_string(one, 'def f(): pass\\nfor i in range(50): f()\\n')\n"
        "sub.destroy(one)\n"
    )
    run = traced(code, "folded")
    counts = [one.get("count", 1) for one in run.of("call") if one["function"] == "f"]
    assert run.code == 0
    assert sum(counts) == 50 or run.of("lost")


@pytest.mark.versions(since=(3, 13))
@pytest.mark.parametrize("level", ["first", "folded", "all"])
def test_events_of_a_library_are_no_calls_of_python(traced, python, level):
    # From 3.13 on a library may tell monitoring tools of its own code, which need not be a
    # code object: the agent took it for one, and the process died.
    if not python.has("_testcapi"):
        abilities.require(
            "testcapi", f"{python.label} has no _testcapi, which fires events"
        )
    code = (
        "import _testcapi, sys\n"
        "m = sys.monitoring\n"
        "def count(*_): seen.append(1)\n"
        "m.use_tool_id(3, 'own')\n"
        "c = m.events\n"
        "fires = {c.PY_START: 'py_start', c.PY_RESUME: 'py_resume'}\n"
        "for event, name in fires.items():\n"
        "    seen = []\n"
        "    m.register_callback(3, event, count)\n"
        "    m.set_events(3, event)\n"
        "    like = _testcapi.CodeLike(1)\n"
        "    _testcapi.monitoring_enter_scope(like, (event.bit_length() - 1))\n"
        "    for _ in range(2): getattr(_testcapi, 'fire_event_' + name)(like, 0)\n"
        "    _testcapi.monitoring_exit_scope()\n"
        "    print(len(seen) > 1)\n"
        "    m.set_events(3, 0)\n"
    )
    run = traced(code, level)
    assert (run.stdout, run.code) == ("True\nTrue\n", 0)


def test_threads_of_a_run_are_told_apart(traced):
    code = (
        "import threading\n"
        "def f(): pass\n"
        "def work():\n    for i in range(200): f()\n"
        "threads = [threading.Thread(target=work) for _ in range(3)]\n"
        "for one in threads: one.start()\n"
        "for one in threads: one.join()\n"
    )
    run = traced(code, "all")
    functions = {one["id"]: one["name"] for one in run.of("function")}
    calls: collections.Counter[int] = collections.Counter()
    for one in run.of("run"):
        calls[one["tid"]] += sum(functions.get(number) == "f" for number in one["f"])
    assert sorted(count for count in calls.values() if count) == [200, 200, 200]
    assert os.getpid() not in calls
