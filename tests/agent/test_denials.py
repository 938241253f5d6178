"""What the policy denies raises what a program expects, in the supervisor's words."""

from __future__ import annotations

import pytest

ATTEMPTS = {
    "statement": "import colorsys",
    "from": "from colorsys import rgb_to_hsv",
    "dunder": "__import__('colorsys')",
    "import_module": "import importlib; importlib.import_module('colorsys')",
    "runpy": "import runpy; runpy.run_module('colorsys')",
    "exec": "exec('import colorsys')",
    "eval": "eval('__import__(\"colorsys\")')",
    "importlib": "import importlib; importlib.__import__('colorsys')",
    "spec": (
        "import importlib.util as u; s = u.find_spec('colorsys');"
        "m = u.module_from_spec(s); s.loader.exec_module(m)"
    ),
    "thread": (
        "import threading as t; e = []\n"
        "def f():\n"
        "    try:\n"
        "        import colorsys\n"
        "    except ImportError as x:\n"
        "        e.append(x)\n"
        "w = t.Thread(target=f); w.start(); w.join()\n"
        "raise e[0]"
    ),
}


def caught(attempt: str, before: str = "") -> str:
    body = "\n".join("    " + line for line in attempt.split("\n"))
    return (
        f"{before}\ntry:\n{body}\nexcept ImportError as e:\n"
        "    print(type(e).__module__, type(e).__name__, type(e).__mro__[1].__name__)\n"
        "    print(e.name, e)\n"
        "else:\n    print('got in')\n"
    )


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS)
def test_denied_import_raises_import_error(guest, attempt):
    outcome = guest(caught(attempt), "-i", "colorsys")
    assert outcome.stdout == (
        "sandpit ImportDenied ModuleNotFoundError\n"
        "colorsys denied by the harness; grant it to allow it\n"
    )
    (asked,) = outcome.told("ask")
    assert asked["module"] == "colorsys"
    assert asked["direct"] is True
    assert asked["at_line"] > 1
    assert "script.py:" in asked["stack"] or "<string>" in asked["stack"]


@pytest.mark.parametrize("attempt", ["statement", "import_module", "dunder"])
def test_denied_import_of_a_loaded_module_raises(guest, attempt, tmp_path):
    library = tmp_path / "lib"
    library.mkdir()
    (library / "helper.py").write_text("import colorsys\n")
    before = (
        "import sys; sys.path.insert(0, 'lib'); import helper\n"
        "assert 'colorsys' in sys.modules"
    )
    outcome = guest(
        caught(ATTEMPTS[attempt], before), "-i", "colorsys", "-p", str(library)
    )
    assert outcome.stdout.startswith("sandpit ImportDenied")
    assert len(outcome.told("ask")) == 1


def test_denied_member_of_a_package_raises(guest):
    for attempt in (
        "from urllib import request",
        "import urllib.parse\n    from urllib import request",
        "from urllib import parse, request",
    ):
        outcome = guest(caught(attempt.replace("\n    ", "\n")), "-i", "urllib.request")
        assert outcome.stdout.startswith("sandpit ImportDenied"), attempt
        assert outcome.stdout.split("\n")[1].startswith("urllib.request ")


def test_member_that_is_no_module_is_free(guest):
    outcome = guest(
        caught("from os import path, sep, getcwd"), "-i", "os.getcwd", "-i", "os.sep"
    )
    assert outcome.stdout == "got in\n"


def test_library_may_import_what_the_program_may_not(guest):
    outcome = guest(caught("import wave"), "-i", "struct", "-i", "chunk")
    assert outcome.stdout == "got in\n"
    assert not outcome.told("ask")


def test_import_that_the_supervisor_allows_is_asked_once_and_goes_on(guest):
    outcome = guest(
        "import colorsys\nprint(colorsys.__name__)\n", "-i", "colorsys", "-a"
    )
    assert outcome.stdout == "colorsys\n"
    assert len(outcome.told("ask")) == 1
    assert len(outcome.of("import", module="colorsys")) == 1


def test_denied_import_is_asked_each_time(guest):
    code = (
        "for _ in range(3):\n"
        "    try:\n        import colorsys\n"
        "    except ImportError: pass\n"
    )
    assert len(guest(code, "-i", "colorsys").told("ask")) == 3


def test_denied_import_ends_the_program_with_the_sentence(guest):
    outcome = guest("import colorsys\n", "-i", "colorsys")
    assert outcome.code == 1
    assert outcome.stderr.endswith(
        "sandpit.ImportDenied: denied by the harness; grant it to allow it\n"
    )
    (told,) = outcome.of("exception", ended=True)
    assert told["type"] == "sandpit.ImportDenied"


@pytest.mark.parametrize(
    ("act", "kind", "fields"),
    [
        ("s.connect(('127.0.0.1', 9))", "connect", {"address": "127.0.0.1", "port": 9}),
        (
            "s.connect_ex(('127.0.0.1', 9))",
            "connect",
            {"address": "127.0.0.1", "port": 9},
        ),
        ("s.bind(('127.0.0.1', 0))", "bind", {"address": "127.0.0.1", "port": 0}),
        (
            "u.sendto(b'x', ('127.0.0.1', 9))",
            "connect",
            {"address": "127.0.0.1", "port": 9},
        ),
        ("u.sendmsg([b'x'], [], 0, ('127.0.0.1', 9))", "connect", {"port": 9}),
        (
            "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
            "socket",
            {"family": "netlink"},
        ),
    ],
)
def test_denied_network_act_raises_permission_error(guest, act, kind, fields):
    code = (
        "import socket\n"
        "s = socket.socket(); u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        f"try:\n    {act}\n"
        "except PermissionError as e:\n    print(e.errno, e)\n"
        "else:\n    print('got out')\n"
    )
    outcome = guest(code, "-n")
    assert (
        outcome.stdout == "13 [Errno 13] denied by the harness; grant it to allow it\n"
    )
    asked = outcome.of(kind, row="ask")[-1]
    assert asked["at_line"] == 4
    assert fields.items() <= asked.items()


def test_unix_socket_and_allowed_network_are_not_asked(guest):
    code = (
        "import socket\n"
        "a, b = socket.socketpair(); a.sendall(b'x'); print(b.recv(1))\n"
        "s = socket.socket(socket.AF_UNIX)\n"
        "try:\n    s.connect('/nowhere')\n"
        "except FileNotFoundError:\n    print('none')\n"
    )
    outcome = guest(code, "-n")
    assert outcome.stdout == "b'x'\nnone\n"
    assert not outcome.of("connect", row="ask")
    slots = [one for one in outcome.told("slot") if one.get("path") == "/nowhere"]
    assert slots


def test_denied_lookup_speaks_in_the_supervisors_words(guest):
    code = (
        "import socket\n"
        "try:\n    socket.getaddrinfo('no.such.host.invalid', 80)\n"
        "except socket.gaierror as e:\n    print(e.args[1])\n"
        "try:\n    socket.getaddrinfo('localhost', 80)\n"
        "except socket.gaierror as e:\n    print(e.args[1])\n"
    )
    outcome = guest(code, "-n")
    assert outcome.stdout.startswith("the harness denies the lookup\n")
    first = outcome.told("lookup")[0]
    assert (first["host"], first["answered"]) == ("no.such.host.invalid", 0)
    assert first["op"] == "getaddrinfo"
