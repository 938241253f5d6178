"""Situations in which CPython tells less, more or otherwise than one would think, and programs
that use the interpreter's own means of tracing: the program behaves as without us, and what it
does is in the trace."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path

import abilities
import pytest

AFTER = """
import os
def after(): pass
for _ in range(20): after()
os.mkdir("made")
print("done")
"""


def check(run, python, folder, code: str, level: str) -> None:
    """The output is that of plain python, and the trace goes on."""
    for name in ("made",):
        (folder / name).rmdir()
    plain = folder / "plain.py"
    plain.write_text(code)
    bare = subprocess.run(
        [python.path, plain], capture_output=True, text=True, timeout=60, cwd=folder
    )
    assert run.stdout == bare.stdout
    assert run.code == bare.returncode
    assert run.counts()["after"] == (1 if level == "first" else 20)
    assert [one for one in run.of("file") if one["path"].endswith("/made")]
    assert not run.of("lost")


LEVELS = pytest.mark.parametrize("level", ["first", "folded", "all"])

# For each the Python functions of the program that are called, and how often.
ANY = {
    # A suspended generator is closed or collected: 3.13.0 to 3.13.9 tell neither that it
    # was entered nor left (CPython issue 140373).
    "generators that are thrown away": (
        "import gc\n"
        "def inner(): pass\n"
        "def gen():\n    inner(); yield 1; yield 2\n"
        "def once():\n"
        "    one = gen(); next(one); one.close()\n"
        "    one = gen(); next(one); del one\n"
        "    one = gen(); next(one); one = [one]; one.append(one); del one; gc.collect()\n"
        "for _ in range(10): once()\n",
        {"once": 10, "gen": 30, "inner": 30},
    ),
    "generators that catch their end": (
        "def gen(ends):\n"
        "    try: yield 1\n    finally: ends.append(1)\n"
        "ends = []\n"
        "for _ in range(10):\n    one = gen(ends); next(one); one.close()\n"
        "print(len(ends))\n",
        {"gen": 10},
    ),
    # 3.12.0 and .1 tell of no call with f(*args) (116626).
    "arguments from a tuple": (
        "def inner(*args): return len(args)\n"
        "args = (1, 2, 3)\n"
        "print(sum(inner(*args) for _ in range(10)), len(*('ab',)))\n",
        {"inner": 10},
    ),
    # To 3.12.4 the end of such a call is told without its begin (122029).
    "methods that are C functions": (
        "import types\n"
        "class Holder:\n    def __init__(self): self.n = 0\n"
        "Holder.largest = types.MethodType(max, (1, 2))\n"
        "one = types.MethodType(len, [1])\n"
        "print([one() for _ in range(3)], Holder.largest())\n"
        "try: types.MethodType(int, 'x')()\n"
        "except ValueError: print('no')\n",
        {},
    ),
    # A frame that fails its own entry is left without having been entered.
    "recursion to its end": (
        "import sys\nsys.setrecursionlimit(300)\n"
        "def down(n):\n"
        "    global deepest\n    deepest = n\n    down(n + 1)\n"
        "def one():\n"
        "    try: down(1)\n    except RecursionError: pass\n"
        "for _ in range(3): one()\n",
        {"one": 3},
    ),
    # Inlined from 3.12 on (PEP 709).
    "comprehensions": (
        "def inner(n): return n\n"
        "print([inner(n) for n in range(5)], {inner(n) for n in range(5)},\n"
        "      {n: inner(n) for n in range(5)}, list(inner(n) for n in range(5)))\n",
        {"inner": 20},
    ),
    # 3.12.0 and .1 say `None` where nothing was returned (110892).
    "exceptions through many frames": (
        "def fails(n):\n    if n: fails(n - 1)\n    raise KeyError(n)\n"
        "for _ in range(5):\n    try: fails(4)\n    except KeyError as error: print(error)\n",
        {"fails": 25},
    ),
    # Switching over to other means while threads are inside generators (137030).
    "coroutines while threads are in generators": (
        "import asyncio, threading\n"
        "def inner(): pass\n"
        "def gen(n):\n    for _ in range(n): yield inner()\n"
        "def work():\n    for _ in gen(20000): pass\n"
        "async def main():\n    await asyncio.sleep(0.01)\n"
        "threads = [threading.Thread(target=work) for _ in range(4)]\n"
        "for one in threads: one.start()\n"
        "asyncio.run(main())\n"
        "for one in threads: one.join()\n",
        {"inner": 80000, "gen": 4, "main": 1, "work": 4},
    ),
    # gevent does so for each of its tasks.
    "no profile, again and again": (
        "import sys\n"
        "def task():\n    sys.setprofile(None); return inner()\n"
        "def inner(): pass\n"
        "for _ in range(500): task()\n",
        {"task": 500, "inner": 500},
    ),
    "a profile of one's own in each thread": (
        "import sys, threading\n"
        "seen = []\n"
        "def watch(frame, event, arg):\n"
        "    if frame.f_code.co_name == 'inner': seen.append(event)\n"
        "def inner(): pass\n"
        "def work():\n    for _ in range(50): inner()\n"
        "threading.setprofile(watch)\n"
        "threads = [threading.Thread(target=work) for _ in range(4)]\n"
        "for one in threads: one.start()\n"
        "for one in threads: one.join()\n"
        "threading.setprofile(None)\n"
        "print(len(seen), sorted(set(seen)))\n",
        {"work": 4, "inner": 200},
    ),
    # 3.12's ends of threads race with it by themselves (137400): only while they stand.
    "all threads at once": (
        "import sys, threading\n"
        "gate = threading.Barrier(4); seen = []\n"
        "def watch(frame, event, arg):\n"
        "    if frame.f_code.co_name == 'inner': seen.append(event)\n"
        "def inner(): pass\n"
        "def work():\n    gate.wait(); gate.wait(); inner()\n"
        "threads = [threading.Thread(target=work) for _ in range(3)]\n"
        "for one in threads: one.start()\n"
        "gate.wait()\n"
        "everywhere = getattr(threading, 'setprofile_all_threads', None)\n"
        "if everywhere: everywhere(watch)\n"
        "gate.wait()\n"
        "for one in threads: one.join()\n"
        "if everywhere: everywhere(None)\n"
        "print(not everywhere or len(seen) == 6)\n",
        {"work": 3, "inner": 3},
    ),
    "two profilers at once": (
        "import cProfile, sys\n"
        "def inner(): pass\n"
        "one, other = cProfile.Profile(), cProfile.Profile()\n"
        "one.enable()\n"
        "try: other.enable()\n"
        "except ValueError as error: print(error)\n"
        "inner(); other.disable(); one.disable(); inner()\n"
        "print(sys.getprofile())\n",
        {"inner": 2},
    ),
    "trace and profile together": (
        "import sys\n"
        "seen = []\n"
        "def watch(frame, event, arg): seen.append((event, frame.f_code.co_name))\n"
        "def lines(frame, event, arg):\n"
        "    seen.append((event, frame.f_lineno)); return lines\n"
        "def inner():\n    x = len('a')\n    return x\n"
        "sys.settrace(lines); sys.setprofile(watch)\n"
        "inner(); list(iter(range(3)))\n"
        "sys.settrace(None); sys.setprofile(None)\n"
        "print(seen)\n",
        {"inner": 1},
    ),
    "a trace function that ends by itself": (
        "import sys\n"
        "def broken(frame, event, arg): raise KeyError('broken')\n"
        "def inner(): pass\n"
        "sys.settrace(broken)\n"
        "try: inner()\n"
        "except KeyError as error: print(error)\n"
        "print(sys.gettrace()); inner()\n",
        # The interpreter asks it before the function's first instruction.
        {},
    ),
    "the profilers' own programs": (
        "import cProfile, io, pdb, pstats, trace\n"
        "def inner(n): return n\n"
        "def job():\n    for n in range(7): inner(n)\n"
        "one = cProfile.Profile(); one.runcall(job)\n"
        "text = io.StringIO(); pstats.Stats(one, stream=text).print_stats('inner')\n"
        "print([line.split()[0] for line in text.getvalue().splitlines() if '(inner)' in line])\n"
        "tracer = trace.Trace(count=1, trace=0); tracer.runfunc(job)\n"
        "print(sorted((line, n) for (file, line), n in tracer.results().counts.items()))\n"
        "said = io.StringIO()\n"
        "debugger = pdb.Pdb(stdin=io.StringIO('step\\nstep\\nwhere\\ncontinue\\n'), stdout=said)\n"
        "debugger.use_rawinput = False\n"
        "debugger.runcall(job)\n"
        "print(said.getvalue().count('inner'))\n",
        {"job": 3, "inner": 21},
    ),
    # The program's hooks are told of what it does itself, in that order, and of nothing else.
    "an audit hook of one's own": (
        "import sys\n"
        "told = []\n"
        "busy = [1]\n"
        "def hook(event, args):\n"
        "    if busy: told.append(event)\n"
        "sys.addaudithook(hook)\n"
        "import colorsys, tempfile, threading, socket\n"
        "open('plain.py' if False else __file__).close()\n"
        "eval('1'); compile('2', 'x', 'eval'); sys._getframe()\n"
        "one = threading.Thread(target=id, args=(1,)); one.start(); one.join()\n"
        "(lambda: 0).__code__.replace(co_firstlineno=3)\n"
        "socket.socket().close(); sys.setprofile(None); sys.settrace(None)\n"
        "busy.clear()\n"
        "print(len(told) > 20, told)\n",
        {},
    ),
    "an audit hook that refuses": (
        "import sys\n"
        "def hook(event, args):\n"
        "    if event in ('os.mkdir', 'sys.setprofile') and args[:1] != ('made',):\n"
        "        raise RuntimeError(event)\n"
        "sys.addaudithook(hook)\n"
        "import os\n"
        "for act in lambda: os.mkdir('no'), lambda: sys.setprofile(None):\n"
        "    try: act()\n"
        "    except RuntimeError as error: print(error)\n"
        "print(os.path.exists('no'))\n",
        {},
    ),
}  # fmt: skip


@LEVELS
@pytest.mark.parametrize("situation", ANY)
def test_situation(traced, python, tmp_path, situation, level):
    code, wanted = ANY[situation]
    run = traced(code + AFTER, level)
    check(run, python, tmp_path, code + AFTER, level)
    assert not run.attempts()
    counts = run.counts()
    if level == "first":
        wanted = dict.fromkeys(wanted, 1)
    assert {name: counts.get(name) for name in wanted} == wanted


MONITORING = {
    # Fails, and takes the callback away.
    "disabling what cannot be": (
        "m.register_callback(3, m.events.RAISE, lambda *_: m.DISABLE)\n"
        "m.set_events(3, m.events.RAISE)\n"
        "try: int('x')\n"
        "except ValueError as error: print(error)\n"
        "try: int('x')\n"
        "except ValueError as error: print(error)\n"
    ),
    "ends of C functions alone": (
        "try: m.set_events(3, m.events.C_RETURN)\n"
        "except ValueError as error: print(error)\n"
    ),
    "callbacks that forbid a call": (
        "def called(code, offset, function, first):\n"
        "    if function is inner: raise KeyError('forbidden')\n"
        "m.register_callback(3, m.events.CALL, called)\n"
        "m.set_events(3, m.events.CALL)\n"
        "for _ in range(3):\n"
        "    try: inner()\n"
        "    except KeyError as error: print(error)\n"
        "m.set_events(3, 0)\n"
    ),
    # To 3.13 its events stay on (116750).
    "a tool that is given back": (
        "n = []\n"
        "m.register_callback(3, m.events.PY_START, lambda *_: n.append(1))\n"
        "m.set_events(3, m.events.PY_START); m.free_tool_id(3); inner(); print(len(n))\n"
        "m.use_tool_id(3, 'own'); m.set_events(3, 0)\n"
    ),
    "places that are switched off and on again": (
        "n = []\n"
        "def line(code, number):\n"
        "    n.append(number); return m.DISABLE\n"
        "m.register_callback(3, m.events.LINE, line)\n"
        "m.set_local_events(3, inner.__code__, m.events.LINE)\n"
        "for _ in range(3): inner()\n"
        "print(len(n)); m.restart_events()\n"
        "for _ in range(3): inner()\n"
        "print(len(n)); m.set_local_events(3, inner.__code__, 0)\n"
    ),
    "events switched thousands of times": (
        "for i in range(3000): m.set_events(3, m.events.LINE if i & 1 else 0)\n"
        "m.set_events(3, 0); inner()\n"
    ),
    "all tools": (
        "m.free_tool_id(3)\n"
        "for tool in range(5): m.use_tool_id(tool, str(tool))\n"
        "print([m.get_tool(tool) for tool in range(5)])\n"
        "for tool in range(5): m.free_tool_id(tool)\n"
        "m.use_tool_id(3, 'own')\n"
    ),
}  # fmt: skip


@pytest.mark.versions(since=(3, 12))
@LEVELS
@pytest.mark.parametrize("situation", MONITORING)
def test_situation_of_monitoring(traced, python, tmp_path, situation, level):
    code = (
        "import sys\nm = sys.monitoring\nm.use_tool_id(3, 'own')\n"
        "def inner():\n    pass\n"
        + MONITORING[situation]
        + "m.free_tool_id(3)\n"
        + AFTER
    )
    run = traced(code, level)
    check(run, python, tmp_path, code, level)
    assert not run.attempts()


LATE = """
import atexit, os, sys
class Last:
    def __del__(self, mkdir=os.mkdir, eval=eval):
        mkdir("del"); eval("1 + 41")
def late():
    os.mkdir("atexit"); import colorsys; called()
def called(): pass
atexit.register(late)
last = Last()
"""
PROFILED = "sys.setprofile(lambda *_: None); sys.settrace(lambda *_: None)\n"


@LEVELS
@pytest.mark.parametrize("profiled", [False, True])
def test_acts_at_the_very_end_are_seen(traced, python, tmp_path, profiled, level):
    code = LATE + PROFILED * profiled
    run = traced(code, level)
    done = {name for name in ("atexit", "del") if (tmp_path / name).exists()}
    for name in done:
        (tmp_path / name).rmdir()
    bare = subprocess.run([python.path, run.script], cwd=tmp_path, timeout=60)
    # 3.13.0 dies of it at its end, by itself.
    assert run.code in (bare.returncode, 128 - bare.returncode)
    assert done == {name for name in ("atexit", "del") if (tmp_path / name).exists()}
    assert "atexit" in done
    assert "del" in done or profiled
    assert done == {os.path.basename(one["path"]) for one in run.of("file")
                    if one["op"] == "mkdir"}  # fmt: skip
    assert [one for one in run.of("import") if one.get("module") == "colorsys"]
    assert run.counts()["called"] == 1
    late = [one for one in run.of("code") if one.get("start") == "1 + 41"]
    texts = [one for one in run.of("source") if one.get("text") == "1 + 41"]
    assert bool(late and texts) == ("del" in done)
    assert not run.attempts()


# Of these Python tells nothing, or not what matters: the kernel's layer does.
UNTOLD = {
    "a pipe with a name": ("os.mkfifo('it')", "file", "mknod"),
    "a node": ("os.mknod('it')", "file", "mknod"),
    "a name beside a folder's descriptor": (
        "os.close(os.open('it', os.O_CREAT | os.O_WRONLY, dir_fd=os.open('.', os.O_RDONLY)))",
        "open", "write"),
    "a name that takes another's place": (
        "open('was', 'w').close(); os.replace('was', 'it')", "file", "rename"),
    "another database": (
        "import sqlite3\n"
        "with sqlite3.connect(':memory:') as one: one.execute(\"attach 'it' as more\"); "
        "one.execute('create table more.t (a)')", "open", "read-write"),
    "a file that native code makes": (
        "import ctypes; ctypes.CDLL(None).creat(b'it', 0o600)", "open", "write"),
    "a folder that native code makes": (
        "import ctypes; ctypes.CDLL(None).mkdir(b'it', 0o700)", "file", "mkdir"),
}  # fmt: skip


@pytest.mark.parametrize("act", UNTOLD)
def test_what_python_does_not_tell_of_is_seen(traced, python, act):
    body, kind, op = UNTOLD[act]
    if "sqlite3" in body and not python.has("sqlite3"):
        abilities.require("sqlite3", f"{python.label} has no sqlite3")
    run = traced(f"import os\n{body}\n", "folded")
    assert run.code == 0, run.stdout
    place = os.path.join(os.path.dirname(run.script), "it")
    told = [
        one
        for one in run.of(kind)
        if place in (one.get("path"), one.get("to"), one.get("target"))
    ]
    assert [one for one in told if one.get("op") == op], told
    assert told[0]["layer"] == "kernel"
    if "native" in act:
        assert told[0]["origin"] == "native"
        assert told[0]["at"].endswith("script.py:2")


# What no policy allows raises no audit event in Python either.
@pytest.mark.parametrize("act", ["os.chroot('.')", "os.unshare(0x20000)"])
def test_what_no_policy_allows_is_told_without_an_audit_event(traced, python, act):
    if "unshare" in act and python.version < (3, 12):
        act = "__import__('ctypes').CDLL(None).unshare(0x20000)"
    run = traced(f"import os\ntry: {act}\nexcept OSError: pass\n", "folded")
    assert run.code == 0
    name = "chroot" if "chroot" in act else "unshare"
    assert [one for one in run.of("tamper") if one.get("operation") == name]


@pytest.fixture(scope="session")
def coverage_for(tmp_path_factory):
    """Give the folder of coverage, from the index, for an interpreter."""

    @functools.cache
    def install(version: tuple[int, int]) -> Path:
        folder = tmp_path_factory.mktemp("coverage")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--target"]
        command += [folder, "--only-binary=:all:", "--implementation=cp"]
        command += [f"--python-version={version[0]}.{version[1]}", "coverage"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            abilities.require("index", f"coverage is not to be had: {done.stderr}")
        return folder

    return lambda python: install(python.version[:2])


@LEVELS
@pytest.mark.parametrize("core", ["ctrace", "pytrace", "sysmon"])
def test_coverage_measures_what_it_does_without_us(
    traced, python, tmp_path, coverage_for, core, level
):
    if core == "sysmon" and python.version < (3, 12):
        core = "ctrace"
    code = (
        "import sys\n"
        f"sys.path.append({str(coverage_for(python))!r})\n"
        "import coverage, job\n"
        "one = coverage.Coverage(data_file=None, include=['*job.py'])\n"
        "one.start()\n"
        "import importlib; importlib.reload(job)\n"
        "one.stop()\n"
        "print(sorted(one.get_data().lines(job.__file__)))\n"
    )
    (tmp_path / "job.py").write_text(
        "import threading\n"
        "def inner(x):\n    if x > 3:\n        return 1\n    return 0\n"
        "def gen():\n    for i in range(3):\n        yield inner(i)\n"
        "list(gen())\n"
        "one = threading.Thread(target=inner, args=(9,)); one.start(); one.join()\n"
    )
    code = f"import os; os.environ['COVERAGE_CORE'] = {core!r}\n" + code + AFTER
    run = traced(code, level)
    check(run, python, tmp_path, code, level)
    assert not run.attempts()
