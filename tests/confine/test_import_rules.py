"""Rules on imports: allow and deny, whose imports are meant, every way in."""

from __future__ import annotations

import sys

import pytest
from abilities import require

pytestmark = [
    pytest.mark.requires("program"),
    pytest.mark.requires("listener"),
    pytest.mark.requires("landlock"),
]


@pytest.fixture
def policy(tmp_path):
    """Write a policy and give the options that name it."""

    def write(text: str) -> tuple[str, str]:
        path = tmp_path / "some.toml"
        path.write_text(text)
        return ("--policy", str(path))

    return write


def targets(sandpit) -> list[tuple]:
    told = sandpit.events("violation")
    assert all(one["category"] == "import" for one in told)
    return [(one["target"], one.get("line")) for one in told]


ROUTES = """
import importlib, importlib.machinery, importlib.util, pickle, pkgutil, pydoc, runpy
import subprocess, sys, types

def attempt(name, act):
    try:
        act()
    except ImportError as why:
        print(name, type(why).__name__)
    except BaseException as why:
        print(name, "raised", type(why).__name__, why)
    else:
        print(name, "got it")
    sys.modules.pop("colorsys", None)

def statement():
    import colorsys
def member():
    from colorsys import hsv_to_rgb
def renamed():
    import colorsys as other
def spec(name="colorsys"):
    return importlib.util.find_spec(name)
def by_spec():
    spec().loader.exec_module(importlib.util.module_from_spec(spec()))
def by_source_loader():
    loader = importlib.machinery.SourceFileLoader("colorsys", spec().origin)
    loader.exec_module(types.ModuleType("colorsys"))
def lazily():
    one = spec()
    one.loader = importlib.util.LazyLoader(one.loader)
    module = importlib.util.module_from_spec(one)
    one.loader.exec_module(module)
    module.hsv_to_rgb
def by_child(*command):
    code = subprocess.run([sys.executable, *command], stderr=subprocess.DEVNULL).returncode
    if code:
        raise ImportError(code)

attempt("statement", statement)
attempt("member", member)
attempt("renamed", renamed)
attempt("dunder", lambda: __import__("colorsys"))
attempt("dunder_c", lambda: __import__("colorsys", globals(), globals(), [], 0))
attempt("import_module", lambda: importlib.import_module("colorsys"))
attempt("importlib_dunder", lambda: importlib.__import__("colorsys"))
attempt("exec", lambda: exec("import colorsys"))
attempt("eval", lambda: eval("__import__('colorsys')"))
attempt("run_module", lambda: runpy.run_module("colorsys"))
attempt("resolve_name", lambda: pkgutil.resolve_name("colorsys:hsv_to_rgb"))
attempt("resolve_dots", lambda: pkgutil.resolve_name("colorsys.hsv_to_rgb"))
attempt("exec_module", by_spec)
attempt("load_module", lambda: spec().loader.load_module("colorsys"))
attempt("source_loader", by_source_loader)
attempt("lazy", lazily)
attempt("pickle", lambda: pickle.loads(b"ccolorsys\\nhsv_to_rgb\\n."))
attempt("pickle_python", lambda: pickle._loads(b"ccolorsys\\nhsv_to_rgb\\n."))
attempt("locate", lambda: pydoc.locate("colorsys", forceload=1).hsv_to_rgb)
attempt("gcd", lambda: importlib._bootstrap._gcd_import("colorsys"))
attempt("load", lambda: importlib._bootstrap._load(spec()))
attempt("child", lambda: by_child("-c", "import colorsys"))
attempt("child_module", lambda: by_child("-m", "colorsys"))
"""
COUNT = 23


def test_without_a_policy_each_route_leads_in(sandpit):
    lines = sandpit.plain(ROUTES).stdout.splitlines()
    assert [one.split(" ", 1)[1] for one in lines] == ["got it"] * COUNT, lines


def test_a_denied_module_is_denied_by_each_route(sandpit, policy, python):
    options = (*policy('[imports]\ndeny = ["colorsys"]\n'), "--python", python.path)
    done = sandpit.run(ROUTES, options=options)
    lines = done.stdout.splitlines()
    assert len(lines) == COUNT, done.stderr
    # pydoc turns what it meets into an error of its own, or into nothing.
    assert [
        one
        for one in lines
        if one.split()[0] != "locate"
        and one.split()[1] not in ("ImportDenied", "ImportError")
    ] == []
    assert "locate got it" not in lines
    told = targets(sandpit)
    assert {one[0] for one in told} == {"colorsys"}
    assert len(told) == COUNT, told
    assert sandpit.verify() == 0


RELOAD = """
import importlib, plistlib, sys
module = sys.modules["datetime"]
try:
    importlib.reload(module)
except ImportError as why:
    print(type(why).__name__)
"""


def test_a_module_that_a_library_loaded_is_not_loaded_again(sandpit, policy, python):
    options = (*policy('[imports]\ndeny = ["datetime"]\n'), "--python", python.path)
    assert sandpit.run(RELOAD, options=options).stdout == "ImportDenied\n"
    assert [one[0] for one in targets(sandpit)] == ["datetime"]


# plistlib imports datetime for itself.
SCOPE = "import plistlib\nprint(plistlib.dumps([1])[:5])\n"


def test_libraries_import_for_themselves_where_the_scope_is_direct(
    sandpit, policy, python
):
    options = policy('[imports]\ndeny = ["datetime"]\nscope = "direct"\n')
    done = sandpit.run(SCOPE, options=(*options, "--python", python.path))
    assert done.stdout == "b'<?xml'\n", done.stderr
    assert targets(sandpit) == []


def test_libraries_are_judged_too_where_the_scope_is_all(sandpit, policy, python):
    options = policy('[imports]\ndeny = ["datetime"]\nscope = "all"\n')
    done = sandpit.run(SCOPE, options=(*options, "--python", python.path))
    assert done.returncode == 1
    assert "ImportDenied: import datetime is denied by policy" in done.stderr
    assert targets(sandpit) == [("datetime", 1)]


def test_a_loaded_module_is_judged_again_where_the_scope_is_all(sandpit, policy):
    """The interpreter has loaded os before the program begins."""
    script = "import fileinput\n"
    options = policy('[imports]\ndeny = ["os"]\nscope = "all"\n')
    done = sandpit.run(script, options=options)
    assert "ImportDenied: import os is denied" in done.stderr
    assert targets(sandpit)[0] == ("os", 1)


ALLOW = r"""
import json, time, datetime, decimal, helper
print(time.strptime("2020", "%Y").tm_year, datetime.datetime.strptime("2020", "%Y").year)
print(eval(r"'\N{BULLET}'"), "ex".encode("idna"), "x".encode("utf-16-le"), "e".encode("cp850"))
print(json.loads("[1.5]"), decimal.Decimal(1) / 8, helper.value)
with open("/dev/null") as null:
    null.read()
def attempt(name, act):
    try:
        act()
    except ImportError:
        print(name, "denied")
attempt("os", lambda: __import__("os"))
attempt("c", lambda: __import__("os", globals(), globals(), [], 0))
attempt("exec", lambda: exec("import subprocess"))
attempt("package", lambda: exec("import xml.dom"))
1 / 0
"""
ALLOWED = "2020 2020\n• b'ex' b'x\\x00' b'e'\n[1.5] 0.125 3\n"
ALLOW_POLICY = """
[imports]
allow = ["json", "time", "datetime", "decimal", "helper", "xml.sax"]
"""


def test_an_allow_list_leaves_the_interpreter_alone(sandpit, policy, tmp_path, python):
    (tmp_path / "helper.py").write_text("import json\nvalue = 3\n")
    options = (*policy(ALLOW_POLICY), "--python", python.path)
    done = sandpit.run(ALLOW, options=options)
    assert done.stdout == ALLOWED + "".join(
        f"{one} denied\n" for one in ("os", "c", "exec", "package")
    )
    assert "ZeroDivisionError" in done.stderr
    told = sandpit.events("violation")
    assert [one["target"] for one in told] == ["os", "os", "subprocess", "xml.dom"]
    assert {one["rule"] for one in told} == {"imports.allow"}
    assert "some.toml" in told[0]["message"] and told[0]["message"].endswith(
        "--allow-import os would allow it"
    )


def test_the_module_that_a_run_is_asked_for_is_not_judged(sandpit, policy, tmp_path):
    import subprocess

    (tmp_path / "main.py").write_text("import json\nprint('ran')\n")
    options = policy('[imports]\nallow = ["json"]\n')
    command = sandpit.argv("", options=options)[:-1]
    done = subprocess.run(
        [*command, "-m", "main"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout == "ran\n", done.stderr
    assert targets(sandpit) == []


# ---- native code -------------------------------------------------------------------------------


NATIVE = """
import importlib.machinery, importlib.util, mmap, os, shutil, sqlite3, subprocess, sys
import _imp

def attempt(name, act):
    try:
        print(name, act() or "got it")
    except (ImportError, OSError, sqlite3.Error) as why:
        print(name, type(why).__name__)

def spec(path, name="_lsprof"):
    loader = importlib.machinery.ExtensionFileLoader(name, path)
    return importlib.util.spec_from_file_location(name, path, loader=loader)

def memory_file():
    fd = os.memfd_create("extension")
    with open(library, "rb") as source:
        os.write(fd, source.read())
    return f"/proc/self/fd/{fd}"

def mapped(flags, *prot):
    with open(library, "rb") as file:
        mmap.mmap(file.fileno(), 4096, flags, *prot).close()

def preloaded():
    program = [sys.executable, "-c", "import os; print(os.path.exists('loaded'))"]
    if subprocess.run([*program], env={**os.environ, "LD_PRELOAD": sys.argv[1]},
                      stdout=subprocess.PIPE, text=True).stdout != "True\\n":
        raise ImportError

def sqlite_extension():
    with sqlite3.connect(":memory:") as database:
        database.enable_load_extension(True)
        database.load_extension(sys.argv[1])

own = shutil.copy(sys.argv[2], "own.so")
library = own
attempt("create", lambda: _imp.create_dynamic(spec(own)) and None)
attempt("loader", lambda: spec(own).loader.create_module(spec(own)) and None)
attempt("memory", lambda: _imp.create_dynamic(spec(memory_file())) and None)
attempt("map", lambda: mapped(mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC))
attempt("anonymous", lambda: mmap.mmap(-1, 4096, mmap.MAP_PRIVATE, 7).close())
attempt("preload", preloaded)
attempt("ctypes", lambda: exec("import ctypes"))
attempt("underscore", lambda: exec("import _ctypes"))
"""
NATIVE_NAMES = [
    "create",
    "loader",
    "memory",
    "map",
    "anonymous",
    "preload",
    "ctypes",
    "underscore",
]
CONSTRUCTOR = """
#include <fcntl.h>
#include <unistd.h>
__attribute__((constructor)) static void made(void)
{
    close(open("loaded", O_CREAT | O_WRONLY, 0600));
}
"""


@pytest.fixture
def libraries(tmp_path, python):
    """A library that leaves a file when it is loaded; an extension module of the version."""
    import subprocess

    source = tmp_path / "evil.c"
    source.write_text(CONSTRUCTOR)
    library = tmp_path / "evil.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    code = "import importlib.util as u; print(u.find_spec('_lsprof').origin)"
    found = subprocess.run(
        [python.path, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()
    if not found.endswith(".so"):
        require("extension-files", f"{python.label} has them all built in")
    return library, found


@pytest.mark.requires("cc")
def test_without_a_policy_native_code_comes_in(sandpit, libraries, python, tmp_path):
    import subprocess

    (tmp_path / "script.py").write_text(NATIVE)
    done = subprocess.run(
        [python.path, "script.py", *libraries],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "".join(f"{one} got it\n" for one in NATIVE_NAMES), (
        done.stderr
    )
    assert (tmp_path / "loaded").exists()


@pytest.mark.requires("cc")
@pytest.mark.parametrize("native", ["installed", "stdlib", "deny"])
def test_native_code_from_elsewhere_is_kept_out(
    sandpit, policy, libraries, python, tmp_path, native
):
    options = policy(f'[imports]\nnative = "{native}"\n')
    script = NATIVE
    if native == "deny":
        # None of the standard library's own is left after start-up.
        script = (
            "def attempt(name, module):\n"
            "    try:\n        __import__(module)\n"
            "    except ImportError as why:\n        print(name, type(why).__name__)\n"
            "attempt('profiler', '_lsprof')\nattempt('ctypes', 'ctypes')\n"
            "import json, collections, re\nprint(json.dumps({}))\n"
        )
    done = sandpit.run(script, *libraries, options=(*options, "--python", python.path))
    if native == "deny":
        assert done.stdout == "profiler ImportDenied\nctypes ImportDenied\n{}\n", (
            done.stderr
        )
        return
    results = dict(
        one.split() if len(one.split()) == 2 else one.split(" ", 1)
        for one in done.stdout.splitlines()
    )
    assert list(results) == NATIVE_NAMES, done.stderr
    if native == "installed":
        assert results.pop("anonymous") == "got it"  # a package may compile at run time
    assert {one: kind for one, kind in results.items() if "got" in kind} == {}
    assert results["create"] == results["loader"] == results["ctypes"] == "ImportDenied"
    assert not (tmp_path / "loaded").exists()
    told = sandpit.events("violation")
    assert len(told) == len(results), [
        (one["layer"], one["operation"], one["target"], one.get("of")) for one in told
    ]
    assert {one["rule"] for one in told} == {f'imports.native = "{native}"'}
    kernel = [one["operation"] for one in told if one["layer"] == "kernel"]
    assert set(kernel) == {"load"}  # mapping, preloading
    assert sandpit.verify() == 0


FALLBACK = """
import uuid, platform, webbrowser, multiprocessing, concurrent.futures, unittest, decimal
import sqlite3, ssl, hashlib, zlib, bz2, lzma, csv, array, mmap, select, xml.etree.ElementTree
print(uuid.uuid1().version, platform.system(), hashlib.sha256(b"").hexdigest()[:4])
"""


@pytest.mark.parametrize("native", ["installed", "stdlib"])
def test_the_standard_library_does_without_ctypes(sandpit, policy, python, native):
    options = policy(f'[imports]\nnative = "{native}"\n')
    done = sandpit.run(FALLBACK, options=(*options, "--python", python.path))
    assert done.stdout == "1 Linux e3b0\n", done.stderr
    assert sandpit.events("violation") == []


@pytest.mark.requires("numpy")
def test_numpy_is_installed_and_not_of_the_standard_library(sandpit, policy, python):
    # Installed beside the interpreter of the tests; others have it or have not.
    if not python.has("numpy"):
        assert python.path != sys.executable
        return
    script = "import numpy\nprint(numpy.arange(3).sum())\n"
    own = ("--python", python.path)
    options = (*policy('[imports]\nnative = "installed"\n'), *own)
    assert sandpit.run(script, options=options).stdout == "3\n"
    assert sandpit.events("violation") == []
    options = (*policy('[imports]\nnative = "stdlib"\n'), *own)
    assert sandpit.run(script, options=options).returncode == 1
    told = sandpit.events("violation")
    assert [one["line"] for one in told] == [1]
    assert told[0]["target"].startswith("numpy.")
    assert told[0]["library"].endswith(".so")


def test_a_library_that_falls_back_is_no_violation(sandpit, policy, tmp_path):
    """ctypes is refused to a library as well, which can do without it."""
    script = "import quopri\nprint('on')\n"
    library = "try:\n    import ctypes\nexcept ImportError:\n    ctypes = None\n"
    options = policy('[imports]\nnative = "stdlib"\n')
    # The program's own file that imports it is reviewed code: that is a violation.
    (tmp_path / "helper.py").write_text(library)
    done = sandpit.run("import helper\n" + script, options=options)
    assert done.stdout == "on\n"
    assert targets(sandpit) == [("ctypes", 2)]


def test_a_named_grant_lets_ctypes_in(sandpit, policy):
    script = "import ctypes\nprint(ctypes.CDLL(None).getpid() > 0)\n"
    options = policy('[imports]\nnative = "stdlib"\n')
    done = sandpit.run(script, options=(*options, "--allow-import", "ctypes"))
    assert done.stdout == "True\n", done.stderr
    assert sandpit.events("violation") == []


def test_the_agent_holds_it_alone_without_a_listener(sandpit, policy):
    options = policy('[imports]\nnative = "stdlib"\n')
    done = sandpit.run(
        "import ctypes\n",
        options=(*options, "--allow-degraded", "listener"),
        env={"SANDPIT_FORCE": "listener=off"},
    )
    assert "ImportDenied: import ctypes is denied by policy" in done.stderr
    assert sandpit.events("start")[0]["enforced_by"]["imports"] == ["agent"]
    assert [one["claim"] for one in sandpit.events("violation")] == [True]


def test_observing_loads_what_would_be_denied(sandpit, policy):
    script = "import ctypes\nprint(ctypes.CDLL(None).getpid() > 0)\n"
    options = (*policy('[imports]\nnative = "stdlib"\n'), "--observe")
    done = sandpit.run(script, options=options)
    assert done.stdout == "True\n", done.stderr
    told = sandpit.events("violation")
    assert {one["action"] for one in told} == {"observe"}
    assert told[0]["target"] == "ctypes"
    assert sandpit.verify() == 0
