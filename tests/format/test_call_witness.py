"""Calls as an independent witness sees them, sys.setprofile() in the same program without sandpit,
are the calls that a trace of level `all` has."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from interpreters import find as find_pythons
from programs import PROGRAM

pytestmark = [pytest.mark.requires("program"), pytest.mark.requires("listener")]

# Classes, decorators, generators, coroutines, recursion, callbacks from C, exceptions, exec.
JOB = """\
import asyncio, contextlib, functools, json, re
class Base:
    def __init__(self, n): self.n = n
    def __enter__(self): return self
    def __exit__(self, *a): return True
    def __lt__(self, other): return self.n < other.n
    @property
    def twice(self): return self.n * 2
    @classmethod
    def make(cls, n): return cls(n)
    @staticmethod
    def still(n): return n
    def __getattr__(self, name): return len(name)
def deco(f):
    @functools.wraps(f)
    def inner(*a): return f(*a)
    return inner
@deco
def wrapped(x): return x + 1
def gen(n):
    for i in range(n):
        got = yield i
def delegating(): return (yield from gen(3))
async def leaf(x):
    await asyncio.sleep(0)
    return x
async def agen():
    for i in range(3):
        yield await leaf(i)
async def tree():
    out = [x async for x in agen()]
    out += await asyncio.gather(*(leaf(i) for i in range(3)))
    return out
def fails(n):
    if n: return fails(n - 1)
    raise KeyError(n)
def deep(n): return n if n == 0 else deep(n - 1) + 1
@contextlib.contextmanager
def manager():
    try: yield 1
    finally: len("x")
def main():
    made = [Base.make(i) for i in (3, 1, 2)]
    sorted(made); sorted([3, 1, 2], key=lambda x: -x)
    list(map(lambda x: x * 2, [1, 2])); list(filter(None, [0, 1]))
    functools.reduce(lambda a, b: a + b, [1, 2, 3])
    made[0].twice; made[0].nothing; Base.still(1); wrapped(2)
    g = gen(3); next(g); g.send(1); g.close()
    list(delegating()); [x for x in gen(2)]; {x: 1 for x in gen(2)}; list(x for x in gen(2))
    with Base(1): fails(2)
    with manager(): pass
    try: fails(3)
    except KeyError: pass
    deep(200)
    asyncio.run(tree())
    json.dumps({"a": [1, 2]}); json.loads("[1]"); re.compile("a+b").match("aab")
    exec("def made_here(): return 1\\nmade_here()", {})
    type("Dyn", (Base,), {"m": lambda self: 1})(1).m()
    "x".upper(); [].append(1); len([]); max(1, 2); sum([1, 2]); print("x", end="")
"""

WITNESS = """
import asyncio, collections, json, sys
import job
seen = collections.Counter()
def witness(frame, event, arg):
    code = frame.f_code
    if event == "call":
        seen["python", code.co_filename, code.co_firstlineno, code.co_name] += 1
    elif event == "c_call" and arg is not sys.setprofile:
        seen["c", arg.__name__] += 1
sys.setprofile(witness)
job.main()
sys.setprofile(None)
with open("seen.json", "w") as file:
    json.dump([[count, *key] for key, count in seen.items()], file)
"""
TRACED = """
import asyncio, collections, json, sys
import job
def begin(): pass
def end(): pass
begin()
job.main()
end()
"""


def seen_by_witness(folder: Path, python: str) -> Counter[Any]:
    (folder / "witness.py").write_text(WITNESS)
    subprocess.run(
        [python, "witness.py"], cwd=folder, stdout=subprocess.DEVNULL, check=True
    )
    seen = json.loads((folder / "seen.json").read_text())
    return Counter({tuple(key): count for count, *key in seen})


def told_by_trace(folder: Path, python: str) -> Counter[Any]:
    (folder / "traced.py").write_text(TRACED)
    subprocess.run(
        [PROGRAM, "run", "--quiet", "--calls", "all", "--policy", "trace-only",
         "--python", python, "traced.py"],
        cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True,
    )  # fmt: skip
    shown = subprocess.run(
        [PROGRAM, "show", "--json", "--kind", "call", "traced.sptrace"],
        cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    calls = [json.loads(line) for line in shown.stdout.splitlines()]
    own = [
        one["function"] if one.get("file", "").endswith("traced.py") else ""
        for one in calls
    ]
    told: Counter[Any] = Counter()
    for one in calls[own.index("begin") + 1 : own.index("end")]:
        name = one["function"].rpartition(".")[2]
        if one.get("native"):
            told["c", name] += 1
        else:
            told["python", one["file"], one["line"], name] += 1
    return told


@pytest.mark.parametrize("interpreter", find_pythons(), ids=lambda one: one.label)
def test_calls_of_trace_and_witness_agree(tmp_path, interpreter):
    (tmp_path / "job.py").write_text(JOB)
    seen = seen_by_witness(tmp_path, interpreter.path)
    told = told_by_trace(tmp_path, interpreter.path)
    # From 3.12 on calls of classes are told as well, which a profile function does not see.
    beside = {key for key in told if key[0] == "c" and key not in seen}
    assert not beside or interpreter.version >= (3, 12)
    differing = {key: (seen[key], told[key]) for key in {*seen, *told} - beside
                 if seen[key] != told[key]}  # fmt: skip
    assert not differing
    assert sum(count for key, count in told.items() if key[0] == "python") > 700
