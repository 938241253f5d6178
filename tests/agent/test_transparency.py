"""A program behaves as it does without the agent."""

from __future__ import annotations

import os
import re
import subprocess

import pytest

LOOK = r"""
import sys, os, gc, inspect, threading, warnings, builtins, importlib, traceback
print(sys.argv, sys.flags, getattr(sys, 'orig_argv', None))
print(sorted(m for m in sys.modules), len(sys.meta_path), sys.path_hooks)
print(sorted(os.environ))
print(sorted(n for n in os.listdir('/proc/self/fd') if int(n) < 500))
print([f.filename for f in inspect.stack()], sys._getframe(0).f_back)
print(sys.getrecursionlimit(), threading.active_count(), threading.enumerate())
print(sorted(vars(builtins)), sorted(vars(importlib._bootstrap)))
print(gc.get_threshold(), gc.isenabled(), gc.garbage, warnings.filters)
print(sys.gettrace(), sys.getprofile(), sys.excepthook, sys.unraisablehook)
print(repr(builtins.__import__), repr(threading.excepthook))
def f(n):
    return 0 if n == 0 else 1 + f(n - 1)
def deepest():
    n = 0
    def g():
        nonlocal n
        n += 1
        g()
    try:
        g()
    except RecursionError as e:
        return n, str(e)
print(f(900), deepest())
for bad in ('import nothing_here', 'from os import nothing', 'import os.nothing', '1/0',
            'from . import x',
            'import importlib; importlib.import_module("nothing_here")'):
    try:
        exec(bad)
    except Exception:
        print(traceback.format_exc())
class C:
    def __del__(self):
        print('collected')
c = C(); c.c = c; del c; print(gc.collect() > 0)
print(sys.getsizeof('é' * 10), sys.getrefcount(builtins.__import__) < 20)
import atexit
atexit.register(lambda: print('at exit', file=sys.stderr))
def unraisable(): raise ValueError
class D:
    __del__ = unraisable
d = D()
sys.stdout.flush()
raise ValueError('the end')
"""


def plain(python, code, *flags, env=None, folder=None):
    return subprocess.run(
        [python.path, *flags, str(code)],
        capture_output=True,
        text=True,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        env={key: v for key, v in os.environ.items() if "SANDPIT" not in key}
        | (env or {}),
    )


@pytest.mark.parametrize("calls", ["off", "first", "folded", "all"])
@pytest.mark.parametrize("flags", [(), ("-I", "-S"), ("-X", "dev"), ("-E", "-s", "-O")])
def test_program_sees_no_difference(guest, python, tmp_path, flags, calls):
    outcome = guest(LOOK, "-c", calls, flags=flags)
    bare = plain(python, tmp_path / "script.py", *flags, folder=tmp_path)
    assert strip(outcome.stdout) == strip(bare.stdout)
    assert strip(outcome.stderr) == strip(bare.stderr)
    assert outcome.code == bare.returncode == 1
    assert outcome.told("hello")


def strip(text):
    """Leave out what differs from run to run: addresses, thread idents."""
    return re.sub(r"0x[0-9a-f]+|started [0-9]+", "N", text).split("\n")


@pytest.mark.parametrize(
    ("flags", "env"),
    [
        (("-X", "faulthandler"), {}),
        ((), {}),
        (("-X", "dev"), {}),
        ((), {"PYTHONDEVMODE": "1"}),
        ((), {"PYTHONMALLOC": "debug"}),
        ((), {"PYTHONMALLOC": "malloc_debug"}),
        ((), {"PYTHONMALLOC": "malloc"}),
        (("-X", "importtime"), {}),
        (("-X", "tracemalloc"), {}),
    ],
)
@pytest.mark.parametrize(
    "ending", ["pass", "import sys; sys.exit(3)", "1/0", "import os; os.abort()"]
)
def test_ending_is_as_usual(guest, python, tmp_path, flags, env, ending):
    outcome = guest(ending, "-c", "folded", flags=flags, env=env)
    bare = plain(python, tmp_path / "script.py", *flags, env=env)
    expected = bare.returncode if bare.returncode >= 0 else 128 - bare.returncode
    assert outcome.code == expected, outcome.stderr
    assert outcome.told("hello")


# From then on a Python call needs no C stack.
@pytest.mark.versions(since=(3, 11))
@pytest.mark.parametrize("calls", ["off", "folded"])
def test_deep_recursion(guest, python, calls):
    code = (
        "import sys\nsys.setrecursionlimit(60000)\n"
        "def f(n):\n    return 0 if n == 0 else 1 + f(n - 1)\n"
        "print(f(50000))\n"
        "def g(n):\n"
        "    if n == 0:\n        import colorsys; open('script.py').close(); return 0\n"
        "    return 1 + g(n - 1)\n"
        "print(g(50000))\n"
    )
    outcome = guest(code, "-c", calls)
    assert outcome.stdout == "50000\n50000\n"
    assert outcome.of("import", module="colorsys", at_line=8)


def test_interactive_input_is_a_program(guest):
    outcome = guest(None, flags=("-q",), stdin="import colorsys\nprint(1)\n")
    assert outcome.stdout == "1\n"
    assert outcome.of("import", module="colorsys", direct=True)


def test_without_a_supervisor_nothing_happens(agents, python, tmp_path):
    (tmp_path / "script.py").write_text("import os; print(sorted(os.environ))")
    env = {"LD_PRELOAD": str(agents / "libsandpit-stub.so")}
    done = plain(python, tmp_path / "script.py", env=env)
    assert done.returncode == 0
    assert done.stderr == ""
    assert "LD_PRELOAD" not in done.stdout


def test_broken_channel_leaves_the_program_alone(agents, python, tmp_path):
    (tmp_path / "script.py").write_text("print(1)")
    stub = str(agents / "libsandpit-stub.so")
    for value in ("", "x", "99999", "-1", "1 "):
        done = plain(
            python,
            tmp_path / "script.py",
            env={"LD_PRELOAD": stub, "SANDPIT_CHANNEL": value},
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", ""), value


def test_older_pythons_do_not_notice(agents):
    import glob

    pyenv = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    for python in glob.glob(f"{pyenv}/versions/*/bin/python"):
        done = subprocess.run(
            [python, "-c", "import sys; print(sys.version_info[0] in (2, 3))"],
            env={"LD_PRELOAD": str(agents / "libsandpit-stub.so")},
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", ""), python
