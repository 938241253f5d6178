"""What the agent tells besides imports."""

from __future__ import annotations

import pytest


def test_read_is_an_event_and_a_write_is_announced(guest, script):
    code = (
        "import time, os\n"
        "open('script.py').read()\n"
        "open('out', 'w').close(); time.sleep(0.05)\n"
        "os.close(os.open('out', os.O_RDONLY))\n"
        "os.close(os.open('out', os.O_RDWR)); time.sleep(0.05)\n"
    )
    outcome = guest(code)
    reads = [one for one in outcome.of("open") if one.get("at_line") in (2, 4)]
    assert [(one["path"], one["mode"]) for one in reads] == [
        ("script.py", "r"),
        ("out", "r"),
    ]
    writes = [one for one in outcome.told("slot") if one["path"] == "out"]
    assert [(one["mode"], one["at"], one["at_line"]) for one in writes] == [
        ("w", script, 3),
        ("r+", script, 5),
    ]
    assert not outcome.of("open", path="out", mode="w")


def test_reads_are_announced_where_the_kernel_shows_them(guest, script):
    code = "import time\nopen('script.py').read(); time.sleep(0.05)\n"
    outcome = guest(code, "-r")
    assert not outcome.of("open")
    assert [
        one
        for one in outcome.told("slot")
        if one["path"] == "script.py" and one["at"] == script
    ]


def test_native_read_is_told_once(guest, tmp_path):
    (tmp_path / "data").write_text("x")
    code = (
        "import ctypes\n"
        "c = ctypes.CDLL(None)\n"
        "c.open(b'data', 0)\n"
        "ctypes.PyDLL(None).open(b'data', 0)\n"
        "open('data').read()\n"
    )
    outcome = guest(code)
    told = outcome.of("open", path="data")
    assert [one["unannounced"] for one in told] == [True, True, False]
    assert any(one.get("at_line") == 4 for one in told)


def test_file_changes_are_announced(guest, script):
    code = (
        "import os, time\n"
        "open('a', 'w').close()\n"
        "os.rename('a', 'b'); time.sleep(0.02)\n"
        "os.mkdir('d'); time.sleep(0.02)\n"
        "os.remove('b'); time.sleep(0.02)\n"
    )
    outcome = guest(code)
    acts = [
        (one["op"], one["path"], one["at_line"])
        for one in outcome.told("slot")
        if one["act"] == 2
    ]
    assert acts == [("rename", "a", 3), ("mkdir", "d", 4), ("remove", "b", 5)]
    assert all(
        script in one["stack"] for one in outcome.told("slot") if one["act"] == 2
    )


def test_text_is_told_with_its_start(guest, script):
    code = (
        "x = 'a = 1 # \\u00e9'\n"
        "exec(x)\neval('2')\ncompile('3', 'f', 'eval')\nexec(x)\n"
    )
    outcome = guest(code)
    told = [(one["at_line"], one["start"], one["size"]) for one in outcome.of("code")]
    assert told == [
        (2, "a = 1 # é", 10),
        (3, "2", 1),
        (4, "3", 1),
        (5, "a = 1 # é", 10),
    ]
    assert [one.get("text") for one in outcome.of("code")] == [10, 1, 1, None]


def test_text_of_libraries_is_not_told(guest):
    code = (
        "import collections, ast\ncollections.namedtuple('A', 'b c')\nast.parse('1')\n"
    )
    assert not guest(code).of("code")


def test_ctypes_is_told(guest, script):
    outcome = guest(
        "import ctypes\nc = ctypes.CDLL(None)\nc.getpid\nctypes.string_at(b'x')\n"
    )
    assert outcome.of("native", op="dlsym", symbol="getpid", at_line=3)
    assert outcome.of("native", op="dlopen")


def test_exception_that_ends_the_program(guest, script):
    code = (
        "import json\ndef f():\n    json.loads('{')\n"
        "try:\n    1/0\nexcept Exception: pass\nf()\n"
    )
    outcome = guest(code)
    (told,) = outcome.of("exception")
    assert told["ended"] is True
    assert told["type"] == "json.decoder.JSONDecodeError"
    assert told["message"].startswith("Expecting property name")
    assert (told["at"], told["at_line"]) == (script, 3)
    assert told["file"].endswith("decoder.py")
    assert told["stack"].split("\n")[-1].startswith(f"{script}:7 ")


def test_system_exit_is_no_exception(guest):
    for code in (
        "raise SystemExit(3)",
        "import sys; sys.exit(3)",
        "import sys; sys.exit('bye')",
    ):
        outcome = guest(code)
        assert outcome.code in (1, 3)
        assert not outcome.of("exception")


def test_message_runs_no_code_of_the_program(guest):
    code = (
        "class E(Exception):\n"
        "    def __str__(self):\n"
        "        print('str'); return 'made'\n"
        "raise E('given')\n"
    )
    import collections

    outcome = guest(code)
    assert collections.Counter(outcome.stdout.split()) == {"str": 1}
    assert outcome.of("exception", message="given", type="__main__.E")


def test_exceptions_of_threads_and_of_finalisers(guest):
    code = (
        "import threading\n"
        "class A:\n    def __del__(self): raise ValueError('late')\n"
        "a = A()\ndel a\n"
        "def f(): raise KeyError('x')\n"
        "t = threading.Thread(target=f); t.start(); t.join()\n"
    )
    outcome = guest(code)
    told = {(one["op"], one["type"], one["ended"]) for one in outcome.of("exception")}
    assert told == {
        ("unraisablehook", "ValueError", False),
        ("thread", "KeyError", False),
    }
    assert outcome.code == 0


def test_threads_begin_and_end(guest):
    code = (
        "import threading, time\n"
        "def f(): open('script.py').read()\n"
        "ts = [threading.Thread(target=f) for _ in range(5)]\n"
        "[t.start() for t in ts]; [t.join() for t in ts]; time.sleep(0.2)\n"
    )
    outcome = guest(code)
    assert len(outcome.of("thread", op="start")) == 5
    reads = {one["tid"] for one in outcome.of("open", path="script.py", at_line=2)}
    assert len(reads) == 5
    assert {one["tid"] for one in outcome.of("thread", op="end")} == reads


def test_small_ring_loses_nothing(guest):
    code = "for i in range(5000):\n    open('script.py').close()\n"
    outcome = guest(code, "-w", "1024")
    assert len(outcome.of("open", path="script.py", at_line=2)) == 5000
    assert not outcome.told("lost")


def test_hostile_texts_arrive_cut_and_whole_lines(guest):
    code = (
        "import sys\n"
        "for name in ('a' * 100000, '\\udc80\\n\"', '\\ud800', 'é' * 5000):\n"
        "    try:\n        open(name)\n"
        "    except (OSError, ValueError, UnicodeError): pass\n"
        "sys.audit('open', 1, 2, 3); sys.audit('import'); sys.audit('exec', 5)\n"
        "sys.audit('socket.connect', 1, 2); sys.audit('compile', None, None)\n"
        "sys.audit('sys.excepthook'); sys.audit('os.rename')\n"
        "sys.audit('ctypes.dlsym', 1, 2)\n"
        "sys.audit('sys.unraisablehook', 1); sys.audit('cpython.run_file', 1)\n"
        "print('done')\n"
    )
    outcome = guest(code)
    assert outcome.stdout == "done\n"
    assert any(one["path"] == "a" * 4096 for one in outcome.of("open"))


def test_layout_of_frames_is_published(guest, python):
    (last,) = guest("").told("exit")
    assert last["frames"] == python.version[0] << 8 | python.version[1]


def test_subinterpreter_is_seen(guest):
    code = (
        "try:\n    import _xxsubinterpreters as i\n"
        "except ImportError:\n    import _interpreters as i\n"
        "x = i.create()\n"
        "text = 'import colorsys; open(\"script.py\").read(); import threading'\n"
        "i.run_string(x, text)\n"
        "i.destroy(x)\nopen('script.py').read()\n"
    )
    outcome = guest(code)
    assert outcome.code == 0, outcome.stderr
    assert outcome.of("import", module="colorsys")
    assert len(outcome.of("open", path="script.py")) == 2


def test_subinterpreters_at_work_in_threads(guest):
    code = (
        "try:\n    import _xxsubinterpreters as i\n"
        "except ImportError:\n    import _interpreters as i\n"
        "import threading, os\n"
        "work = '''\n"
        "import colorsys\n"
        "for _ in range(300):\n"
        "    open('script.py').close(); import colorsys; eval('1')\n'''\n"
        "def f():\n"
        "    x = i.create(); i.run_string(x, work); i.destroy(x)\n"
        "def g():\n"
        "    for _ in range(300):\n"
        "        import colorsys; open('script.py').close(); eval('2')\n"
        "ts = [threading.Thread(target=t) for t in (f, g, f, g)]\n"
        "[t.start() for t in ts]; [t.join() for t in ts]\n"
        "pid = os.fork()\n"
        "if not pid: open('script.py').close(); os._exit(0)\n"
        "os.waitpid(pid, 0); print('done')\n"
    )
    outcome = guest(code)
    assert outcome.stdout == "done\n", outcome.stderr
    assert len(outcome.of("open", path="script.py", unannounced=False)) >= 1201


CHAIN = """
def first():
    try:
        1 / 0
    except ZeroDivisionError as error:
        raise ValueError("second") from error
def hidden():
    try:
        first()
    except ValueError:
        raise KeyError("third") from None
def last():
    try:
        {called}()
    except (KeyError, ValueError):
        raise OSError("last")
last()
"""


@pytest.mark.parametrize(
    ("called", "links"),
    [
        ("first", [("context", "ValueError", 6), ("cause", "ZeroDivisionError", 4)]),
        ("hidden", [("context", "KeyError", 11)]),
    ],
)
def test_exceptions_that_one_came_from_follow_it(guest, called, links):
    told = guest(CHAIN.format(called=called)).of("exception")
    assert [(one.get("link"), one["type"], one["line"]) for one in told] == [
        (None, "OSError", 16), *links
    ]  # fmt: skip
    assert [bool(one["ended"]) for one in told] == [True] + [False] * len(links)


def test_ring_of_exceptions_has_an_end(guest):
    code = (
        "one, other = ValueError('one'), KeyError('other')\n"
        "one.__cause__, other.__cause__ = other, one\nraise one\n"
    )
    assert len(guest(code).of("exception")) == 17
