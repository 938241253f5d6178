"""Ways in which a program can try to switch the tracer off, or to hide from it: each is without
effect, undone and told as `tamper`, or told; and what the program does afterwards is in the trace.
"""

from __future__ import annotations

import os
import subprocess

import abilities
import pytest

# What the program does afterwards. The import is first: an act that Python announces is when
# the agent looks after itself.
AFTER = """
import colorsys, os
def after(): pass
for _ in range(50): after()
os.mkdir("made")
open("written", "w").close()
open("written").close()
print("done")
"""


def check_after(run, calls: int = 50) -> None:
    assert run.stdout.endswith("done\n")
    assert run.code == 0
    assert run.counts().get("after") == calls
    assert [one for one in run.of("import") if one.get("module") == "colorsys"]
    assert [one for one in run.of("file") if one["path"].endswith("/made")]
    ways = {one["op"] for one in run.of("open") if one["path"].endswith("written")}
    assert ways == {"read", "write"}
    assert not run.of("lost")


WITHOUT_EFFECT = {
    "profile": "import sys; sys.setprofile(None); sys.settrace(None)",
    "profile by a C function": "import sys; list(map(sys.setprofile, [None]))",
    "profile often": "import sys\nfor _ in range(5000): sys.setprofile(None)",
    "profile of threads": (
        "import threading\n"
        "threading.setprofile(None); threading.settrace(None)\n"
        "getattr(threading, 'setprofile_all_threads', id)(None)\n"
        "getattr(threading, 'settrace_all_threads', id)(None)"
    ),
    "profile from C": (
        "import ctypes\n"
        "ctypes.pythonapi.PyEval_SetProfile(None, None)\n"
        "ctypes.pythonapi.PyEval_SetTrace(None, None)"
    ),
    "other function of that name": "import sys; sys.setprofile = sys.settrace = id",
    "sys read again": "import importlib, sys; importlib.reload(sys)",
    "own import": "import builtins, importlib; builtins.__import__ = importlib.__import__",
    "modules gone": (
        "import sys\n"
        "for name in 'threading', '_thread', 'sys', 'importlib', '_frozen_importlib':\n"
        "    sys.modules.pop(name, None)"
    ),
    "excepthooks": (
        "import sys, threading\n"
        "sys.excepthook = sys.unraisablehook = threading.excepthook = lambda *a: None"
    ),
    "search for the callbacks": (
        "import gc\n"
        "for one in gc.get_objects():\n"
        "    if getattr(type(one), '__name__', '') == 'builtin_function_or_method':\n"
        "        assert one.__name__ != 'callback'"
    ),
    "agent unloaded": (
        "import _ctypes, ctypes\n"
        "for line in open('/proc/self/maps'):\n"
        "    if 'sandpit-agent' in line:\n"
        "        handle = ctypes.CDLL(line.split()[-1])._handle\n"
        "        for _ in range(5): _ctypes.dlclose(handle)"
    ),
}


@pytest.mark.parametrize("level", ["folded", "all"])
@pytest.mark.parametrize("move", WITHOUT_EFFECT)
def test_move_is_without_effect(traced, move, level):
    run = traced(WITHOUT_EFFECT[move] + "\n" + AFTER, level)
    check_after(run)
    assert not run.of("tamper")


MONITORING_GONE = """
import sys
del sys.monitoring
import asyncio
def inner(): pass
async def main(): inner()
asyncio.run(main())
inner()
"""


@pytest.mark.versions(since=(3, 12))
@pytest.mark.parametrize("level", ["first", "folded", "all"])
def test_monitoring_taken_out_of_sys_is_not_needed(traced, level):
    # What counts from the first coroutine on was looked for there: calls were lost.
    run = traced(MONITORING_GONE + AFTER, level)
    check_after(run, calls=1 if level == "first" else 50)
    assert run.counts()["inner"] == (1 if level == "first" else 2)


# Such a call of sys.audit() ended the agent, or made the program hang at its own end.
@pytest.mark.parametrize("level", ["folded", "all"])
@pytest.mark.parametrize(
    "event",
    [
        "'cpython._PySys_ClearAuditHooks'",
        "'cpython.PyInterpreterState_Clear'",
        "'cpython.run_command', 'pass'",
        "'cpython.run_file', '/usr/bin/env'",
    ],
)
def test_the_interpreters_own_events_are_believed_from_nobody_else(
    traced, event, level
):
    run = traced(f"import sys; sys.audit({event})\n{AFTER}", level)
    check_after(run)
    (told,) = run.of("tamper")
    assert told["what"].startswith("sys.audit() of an event")
    assert told["what"].endswith("script.py:1)")


HOOK_OUT = """
import ctypes
api = ctypes.pythonapi
api.PyInterpreterState_Get.restype = ctypes.c_void_p
api._PyInterpreterState_SetEvalFrameFunc.argtypes = [ctypes.c_void_p] * 2
plain = ctypes.cast(api._PyEval_EvalFrameDefault, ctypes.c_void_p)
api._PyInterpreterState_SetEvalFrameFunc(api.PyInterpreterState_Get(), plain)
"""


@pytest.mark.versions(before=(3, 14))
def test_frame_hook_taken_out_is_put_back(traced):
    run = traced(HOOK_OUT + AFTER, "folded")
    check_after(run)
    (told,) = run.of("tamper")
    assert told["what"].startswith("the frame evaluation hook was taken out")


OTHERS_HOOK = """
import ctypes, os
own = ctypes.PyDLL(os.path.abspath("own.so"))
api = ctypes.pythonapi
api.PyInterpreterState_Get.restype = ctypes.c_void_p
api._PyInterpreterState_SetEvalFrameFunc.argtypes = [ctypes.c_void_p] * 2
hook = ctypes.cast(own.evaluate, ctypes.c_void_p)
api._PyInterpreterState_SetEvalFrameFunc(api.PyInterpreterState_Get(), hook)
"""


@pytest.mark.versions(before=(3, 14))
def test_frame_hook_of_another_tool_stays_and_calls_are_seen_by_other_means(
    traced, tmp_path
):
    abilities.require("cc")
    (tmp_path / "own.c").write_text(
        "void *_PyEval_EvalFrameDefault(void *, void *, int);\n"
        "long asked;\n"
        "void *evaluate(void *state, void *frame, int throwing) {\n"
        "    asked++; return _PyEval_EvalFrameDefault(state, frame, throwing);\n}\n"
    )
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-o", tmp_path / "own.so", tmp_path / "own.c"],
        check=True,
    )
    asked = "print(ctypes.c_long.in_dll(own, 'asked').value >= 50)\nprint('done')\n"
    run = traced(OTHERS_HOOK + AFTER + asked, "folded")
    check_after(run)
    assert run.stdout == "done\nTrue\ndone\n"
    (told,) = run.of("tamper")
    assert told["what"].startswith("another tool has taken the frame evaluation hook")


CALLBACKS_OUT = """
import ctypes, sys
monitoring = sys.monitoring
def own(*_): pass
for tool in 2, 3:
    monitoring.use_tool_id(tool, "own")
    monitoring.register_callback(tool, monitoring.events.PY_START, own)
api = ctypes.pythonapi
api.PyInterpreterState_Get.restype = ctypes.c_void_p
base = api.PyInterpreterState_Get()
for line in open("/proc/self/maps"):
    begin, end = (int(one, 16) for one in line.split()[0].split("-"))
    if begin <= base < end: break
memory = ctypes.string_at(base, min(end - base, 1 << 20))
wanted = id(own).to_bytes(8, sys.byteorder)
rows = [at for at in range(0, len(memory), 8) if memory[at : at + 8] == wanted][-2:]
ctypes.memset(base + rows[1] + (rows[1] - rows[0]), 0, rows[1] - rows[0])
"""


@pytest.mark.versions(since=(3, 12))
@pytest.mark.parametrize("level", ["first", "all"])
def test_callbacks_taken_out_of_the_interpreters_tables_are_put_back(traced, level):
    run = traced(CALLBACKS_OUT + AFTER, level)
    check_after(run, calls=1 if level == "first" else 50)
    assert any("callbacks were taken out" in one for one in run.attempts())


HIDING = {
    "sys.addaudithook": "sys.addaudithook(lambda event, _: event == 'own.event' and act())\nsys.audit('own.event')",
    "sys.settrace": "sys.settrace(lambda *_: act()); work(); sys.settrace(None)",
    "sys.setprofile": "sys.setprofile(lambda *_: act()); work(); sys.setprofile(None)",
    "sys.monitoring": (
        "m = sys.monitoring\nm.use_tool_id(3, 'own')\n"
        "m.register_callback(3, m.events.PY_START, lambda *_: act())\n"
        "m.set_events(3, m.events.PY_START); work(); m.set_events(3, 0)"
    ),
}


@pytest.mark.parametrize("level", ["folded", "all"])
@pytest.mark.parametrize("place", HIDING)
def test_acts_where_nothing_is_traced_are_seen_and_the_place_is_told(
    traced, python, place, level
):
    if place == "sys.monitoring" and python.version < (3, 12):
        place = "sys.settrace"
    code = (
        "import os, sys\ndef hidden(): pass\ndef work(): pass\n"
        "def act():\n"
        "    hidden(); os.path.isdir('hidden') or os.mkdir('hidden')\n"
        "    open('script.py').close()\n" + HIDING[place] + "\n"
    )
    run = traced(code + AFTER, level)
    check_after(run)
    assert [one for one in run.of("file") if one["path"].endswith("/hidden")]
    assert [one for one in run.of("open") if one["path"].endswith("script.py")
            and one.get("at", "").endswith(":6")]  # fmt: skip
    if run.counts().get("hidden", 0) == 0:
        (told,) = run.of("tamper")
        assert told["what"].startswith(f"{place}: calls within")
    else:  # the frame hook sees them
        assert level == "folded"
        assert not run.of("tamper")


# What libraries do, told of nowhere: their functions are not what is reviewed.
OTHERS_TOOLS = """
import bdb, cProfile, sys, trace
def job(): return len("x")
one = cProfile.Profile(); one.runcall(job)
trace.Trace(count=1, trace=0).runfunc(job)
class Debugger(bdb.Bdb):
    pass
debugger = Debugger(); debugger.runcall(job)
"""


@pytest.mark.parametrize("level", ["first", "folded", "all"])
def test_tools_of_libraries_are_no_attempts(traced, level):
    run = traced(OTHERS_TOOLS + AFTER, level)
    check_after(run, calls=1 if level == "first" else 50)
    assert not run.of("tamper")


def test_own_memory_cannot_be_written_through_its_file(traced):
    code = (
        "try: open('/proc/self/mem', 'r+b', 0)\n"
        "except OSError as error: print(error.errno)\n"
    )
    run = traced(code + AFTER, "folded")
    check_after(run)
    assert run.stdout.startswith("13\n")
    assert [one for one in run.of("tamper") if one.get("operation") == "open"]


def test_made_up_code_is_told_and_counted(traced):
    code = (
        "import types\n"
        "def made(): return 1\n"
        "code = made.__code__.replace(co_consts=(None, 2))\n"
        "made.__code__ = code\n"
        "made(); types.FunctionType(code, {})()\n"
    )
    run = traced(code + AFTER, "folded")
    check_after(run)
    assert run.counts()["made"] == 2
    assert [one for one in run.of("native") if one["op"] == "code.__new__"]


RING = """
import ctypes
for line in open("/proc/self/maps"):
    if "memfd" in line and " rw-s " in line:
        begin, end = (int(one, 16) for one in line.split()[0].split("-"))
        size = end - begin - {skip}
        ctypes.memmove(begin + {skip}, {word} * (size // 8), size)
"""


# The ring's fields are believed by nobody: what they claim is told as it is found out.
@pytest.mark.parametrize("word", [b"\xff" * 8, b"\xff\xff\xff\0\3\0\0\0", b"\1" * 8])
def test_ring_written_over_by_the_program_harms_only_itself(traced, tmp_path, word):
    from sandpit._program import find_program

    run = traced(RING.format(skip=8192, word=word) + AFTER, "off")
    assert run.stdout.endswith("done\n")
    assert [one for one in run.of("file") if one["path"].endswith("/made")]
    assert [one for one in run.of("open") if one["path"].endswith("written")
            and one["op"] == "write"]  # fmt: skip
    assert run.of("tamper")
    verified = subprocess.run(
        [find_program(), "verify", tmp_path / "trace"], capture_output=True
    )
    assert verified.returncode == 0


# By a system call that no function of libc makes, with no environment: no agent comes along.
UNTRACED = """
import ctypes, os, platform, sys
number = 59 if platform.machine() == "x86_64" else 221
pid = os.fork()
if pid == 0:
    path = os.fsencode(os.path.realpath(sys.executable))
    words = [path, b"-I", b"-c", b"import os; os.mkdir('untraced')", None]
    argv = (ctypes.c_char_p * len(words))(*words)
    ctypes.CDLL(None).syscall(number, path, argv, (ctypes.c_char_p * 1)(None))
    os._exit(9)
print(os.waitpid(pid, 0)[1])
"""


def test_python_without_the_agent_is_told_as_such_and_its_acts_are_seen(traced):
    run = traced(UNTRACED + AFTER, "folded")
    check_after(run)
    assert run.stdout.startswith("0\n")
    (told,) = run.of("exec")
    assert told["agent"] is False
    (made,) = [one for one in run.of("file") if one["path"].endswith("/untraced")]
    assert made["pid"] == told["pid"]
    assert made["layer"] == "kernel"


def test_callbacks_of_c_functions_hide_no_act(traced):
    code = (
        "import functools, os\n"
        "list(map(os.mkdir, ['by map']))\n"
        "functools.partial(os.mkdir, 'by partial')()\n"
        "def key(x): return x\n"
        "sorted([3, 1, 2], key=key)\n"
    )
    run = traced(code + AFTER, "all")
    check_after(run)
    made = {os.path.basename(one["path"]) for one in run.of("file")}
    assert {"by map", "by partial"} <= made
    assert run.counts()["key"] == 3


@pytest.mark.parametrize("level", ["folded", "all"])
def test_flood_of_calls_is_whole(traced, level):
    code = "def f(): pass\nfor _ in range(200000): f()\n"
    run = traced(code + AFTER, level)
    check_after(run)
    assert run.counts()["f"] == 200000


# A thread that a library made and that calls into Python: at `all` up to 3.11 its calls were
# missing, and it had no start.
@pytest.mark.parametrize("level", ["first", "folded", "all"])
def test_threads_of_libraries_are_traced(traced, tmp_path, level):
    abilities.require("cc")
    source = tmp_path / "threads.c"
    source.write_text(
        "#include <pthread.h>\n"
        "static int (*call)(int);\n"
        "static void *run(void *given) { for (int i = 0; i < 5; i++) call(i); return given; }\n"
        "void go(int (*function)(int)) {\n"
        "    pthread_t threads[3]; call = function;\n"
        "    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, run, 0);\n"
        "    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);\n}\n"
    )
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-pthread", "-o", tmp_path / "threads.so", source],
        check=True,
    )
    code = (
        "import ctypes, os\n"
        "def inner(): pass\n"
        "@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)\n"
        "def called(i):\n    inner(); return 0\n"
        "ctypes.CDLL(os.path.abspath('threads.so')).go(called)\n"
    )
    run = traced(code + AFTER, level)
    check_after(run, calls=1 if level == "first" else 50)
    wanted = 1 if level == "first" else 15
    assert (run.counts()["called"], run.counts()["inner"]) == (wanted, wanted)
    first = run.events[0]["pid"]
    began = [one for one in run.of("thread") if one["op"] == "start"]
    assert {one["parent"] for one in began} == {first}
    ended = {one["tid"] for one in run.of("thread") if one["op"] == "end"}
    assert len(began) == 3
    assert {one["tid"] for one in began} == ended
