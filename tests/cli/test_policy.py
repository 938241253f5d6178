"""`sandpit policy`: list, show, check, explain, schema; and errors in policy files."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILTIN = ["trace-only", "no-network", "no-process", "read-only", "default", "strict"]

RICH = """\
description = "a \\"quoted\\" text"
extends = "default"
on_violation = "stop"

[imports]
allow_add = ["xml.dom"]
deny = ["xml", "ctypes"]
scope = "all"
native = "installed"

[fs]
allow_read = ["{work}", "{python}", "/data/[ab]*.csv", "~/x"]
deny_read_add = ["**/.env"]
deny_write = []

[network]
allow = ["example.com:443", "10.0.0.0/8:5432", "[2001:db8::/32]:1", "loopback"]

[process]
allow = ["git", "{python}"]
fork = true

[limits]
wall = "90s"
cpu = 1.5
memory = 1048577
processes = 7
trace = "none"

[trace]
files = "all"
"""


@pytest.fixture
def write(tmp_path):
    def write(text: str | bytes, name: str = "p.toml") -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def ask(sandpit, *question: str, policy: str = "default", status: int) -> dict:
    done = sandpit("policy", "explain", "--json", "--policy", policy, *question)
    assert (done.returncode, done.stderr) == (status, "")
    return json.loads(done.stdout)


# ---- list and show


def test_list_names_the_built_in_ones(sandpit):
    done = sandpit("policy", "list")
    assert [line.split()[0] for line in done.stdout.splitlines()] == BUILTIN
    assert max(map(len, done.stdout.splitlines())) <= 100
    listed = json.loads(sandpit("policy", "list", "--json").stdout)
    assert [one["name"] for one in listed] == BUILTIN
    assert sum(one["default"] for one in listed) == 1


@pytest.mark.parametrize("name", [*BUILTIN, "rich"])
def test_what_is_shown_can_be_read_back(sandpit, write, name):
    if name == "rich":
        name = str(write(RICH, "rich.toml"))
    shown = sandpit("policy", "show", name)
    assert shown.returncode == 0
    again = write(shown.stdout, "again.toml")
    first = json.loads(sandpit("policy", "show", "--json", name).stdout)
    second = json.loads(sandpit("policy", "show", "--json", again).stdout)
    assert first["policy"] == second["policy"]
    assert first["digest"] == second["digest"]
    assert first["description"] == second["description"]
    assert sandpit("policy", "check", again).returncode == 0


def test_show_says_where_each_value_comes_from(sandpit, write):
    path = write(RICH, "rich.toml")
    lines = sandpit("policy", "show", path).stdout.splitlines()
    assert f'    "ctypes",  # {path}:7' in lines
    assert '    "{home}/.ssh",  # default.toml:19' in lines
    assert '    "*",  # no-network.toml:5' in lines
    at = RICH.splitlines().index('wall = "90s"') + 1
    assert f'wall = "90s"  # {path}:{at}' in lines
    assert "trace =" not in "\n".join(lines)  # lifted
    shown = json.loads(sandpit("policy", "show", "--json", path).stdout)
    assert shown["from"]["imports.deny"] == [f"{path}:7", f"{path}:7"]
    assert shown["policy"]["limits"]["cpu"] == "1500ms"
    assert shown["policy"]["limits"]["memory"] == "1048577"


def test_digest_is_of_what_is_decided_not_of_where_it_stands(sandpit, write):
    def digest(text: str) -> str:
        shown = sandpit("policy", "show", "--json", write(text)).stdout
        return json.loads(shown)["digest"]

    one = digest("[fs]\ndeny_read = ['/a', '/b']\n")
    assert one == digest("# moved\n[fs]\ndeny_read = ['/b', '/a', '/a']\n")
    assert one == digest("description = 'x'\nfs.deny_read = ['/a', '/b']\n")
    assert one != digest("[fs]\ndeny_read = ['/a']\n")
    assert one != digest("[fs]\ndeny_write = ['/a', '/b']\n")
    assert one != digest("[fs]\ndeny_read = ['/a', '/b']\n[limits]\nwall = 1\n")


# ---- errors


def test_every_error_of_a_file_is_told_with_its_place(sandpit, write):
    write(
        "mode = 'observ'\n"
        "[imprts]\n"
        "[network]\n"
        "allow_read = []\n"
        "alow = ['x']\n"
        "[fs]\n"
        "deny_read = ['./x', 5, '{wrk}/y', '/ok', '/a//b']\n"
        "[process]\n"
        "fork = 'no'\n"
        "[limits]\n"
        "wall = 'soon'\n"
        "processes = 0\n"
    )
    done = sandpit("run", "--policy", "p.toml", "-c", "print(1)")
    assert (done.returncode, done.stdout) == (125, "")
    lines = done.stderr.splitlines()
    errors = [line for line in lines if line.startswith("p.toml:")]
    assert [line.split(": ")[0] for line in errors] == [
        "p.toml:1:8",
        "p.toml:2:2",
        "p.toml:4:1",
        "p.toml:5:1",
        "p.toml:7:14",
        "p.toml:7:21",
        "p.toml:7:24",
        "p.toml:7:42",
        "p.toml:9:8",
        "p.toml:11:8",
        "p.toml:12:13",
    ]
    for line, expected in zip(
        errors,
        [
            '"observe"',
            "[imports]",
            "one of [fs]",
            "'allow'",
            "{work}/x",
            "not a number",
            "{work}",
            "slashes",
            "true or false",
            "'soon'",
            "'0'",
        ],
    ):
        assert expected in line
    assert "    fork = 'no'" in lines
    assert "           ^" in lines
    assert lines[-1] == "sandpit: the policy has 11 errors"
    told = json.loads(sandpit("run", "--json", "--policy", "p.toml", "-c", "1").stdout)[
        "error"
    ]
    assert told["slug"] == "policy"
    assert [(one["line"], one["column"]) for one in told["problems"]][:2] == [
        (1, 8),
        (2, 2),
    ]


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("a = \n", "1:5", "this is no TOML"),
        ("[fs\n", "1:4", "this is no TOML"),
        ("mode = observe\n", "1:8", "in quotes"),
        ("mode = 'observe\n", "1:16", "its end is missing"),
        ("[fs]\nx = 1\nx = 2\n", "3:5", "cannot redefine"),
        ("[fs]\n[fs]\n", "2:1", "cannot redefine"),
        (b"\xff\xfe[\0", "1:1", "not UTF-8"),
        (b"a = 'x\0y'\n", "1:7", "control character"),
        (b'description = "\\u0000"\n', "1:15", "NUL"),
        (b"\xef\xbb\xbf[fs]\r\nallow = []\r\n", "2:1", "'allow_read'"),
        ("[[fs]]\n", "1:3", "write [fs]"),
        ("fs = 3\n", "1:1", "write [fs]"),
        ("[fs]\nallow_read = '/a'\n", "2:14", 'write ["/a"]'),
        ("extends = 'strcit'\n", "1:11", "did you mean strict"),
        ("extends = './no.toml'\n", "1:11", "No such file"),
        ("extends = 'p.toml'\n", "1:11", "extends itself"),
        ("extends = 5\n", "1:11", "a text"),
        ("[network]\nallow = ['http://x/']\n", "2:10", "not an URL"),
        ("[network]\nallow = ['10.0.0.1/8']\n", "2:10", "more bits"),
        ("[fs]\nallow_read = ['$HOME/x']\n", "2:15", "not looked up"),
        ("[fs]\nallow_read = ['/a[b']\n", "2:15", "no end"),
        ("[fs]\nallow_read = ['/a/***']\n", "2:15", "two stars"),
        ("[fs]\nallow_read = ['']\n", "2:15", "empty"),
    ],
)
def test_error_is_told_where_it_is(sandpit, write, text, place, says):
    write(text)
    done = sandpit("policy", "check", "p.toml")
    assert done.returncode == 1
    first = done.stdout.splitlines()[0]
    assert first.startswith(f"p.toml:{place}: error: ")
    assert says in first


def test_errors_of_what_is_extended_are_told_too(sandpit, write):
    write("[fs]\nfoo = 1\nbar = 2\n", "base.toml")
    write("extends = 'base.toml'\n[fs]\nbaz = 3\n")
    done = sandpit("policy", "check", "p.toml")
    assert done.returncode == 1
    places = [
        line.split(": ")[0] for line in done.stdout.splitlines() if ": error: " in line
    ]
    assert places == ["base.toml:2:1", "base.toml:3:1", "p.toml:1:11", "p.toml:3:1"]


def test_circle_of_extends_has_an_end(sandpit, write, tmp_path):
    write("extends = 'b.toml'\n", "a.toml")
    write("extends = './c.toml'\n", "b.toml")
    write(f"extends = '{tmp_path}/a.toml'\n", "c.toml")
    done = sandpit("policy", "check", "a.toml")
    assert done.returncode == 1
    assert "extends what extends it" in done.stdout


def test_what_is_no_file_is_refused_without_waiting(sandpit, tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "huge.toml").write_bytes(b"#" * (5 << 20))
    (tmp_path / "plain").write_text("")
    for name, says in [
        ("pipe.toml", "a named pipe"),
        ("folder.toml", "a folder"),
        ("huge.toml", "larger than 4 MiB"),
        ("absent.toml", "No such file"),
        ("/dev/null", "a device"),
        ("plain", "write ./plain"),
        ("strcit", "did you mean strict"),
    ]:
        done = sandpit("run", "--policy", name, "-c", "1")
        assert done.returncode == 125
        assert says in done.stderr
        assert done.stderr.count("\n") == 1
        assert sandpit("policy", "check", name).returncode == 2
        assert sandpit("policy", "show", name).returncode == 2


def test_many_errors_are_counted(sandpit, write):
    write("".join(f"key{n} = 1\n" for n in range(500)))
    done = sandpit("policy", "check", "p.toml")
    assert done.stdout.count(": error: ") == 64
    assert done.stdout.splitlines()[-1] == "and 436 more"


def test_nothing_in_a_policy_acts_on_the_terminal(sandpit, write):
    write(b"\"\\u001b[2J\" = 1\n[fs]\nallow_read = ['\x7f']\n", "p.toml")
    for done in (
        sandpit("policy", "check", "p.toml"),
        sandpit("run", "--policy", "p.toml", "-c", "1"),
    ):
        assert "\x1b" not in done.stdout + done.stderr
        assert "\x7f" not in done.stdout + done.stderr


# ---- check


def test_check_warns_of_what_decides_nothing(sandpit, write):
    write(
        "[network]\n"
        "allow = ['x.com', 'X.com', 'y.com']\n"
        "deny = ['y.com']\n"
        "[fs]\n"
        "allow_read = ['{python}', '/no/such/place']\n"
        "deny_write_add = []\n"
        "[process]\n"
        "allow = ['no-such-program']\n"
        "fork = false\n"
        "[imports]\n"
        "deny = ['scikit-learn']\n"
    )
    done = sandpit("policy", "check", "p.toml")
    assert done.returncode == 0
    warnings = [line for line in done.stdout.splitlines() if ": warning: " in line]
    assert [line.split(": ")[0] for line in warnings] == [
        "p.toml:2:19",
        "p.toml:2:28",
        "p.toml:5:27",
        "p.toml:6:1",
        "p.toml:8:10",
        "p.toml:8:10",
        "p.toml:11:9",
    ]
    told = json.loads(sandpit("policy", "check", "--json", "p.toml").stdout)
    (file,) = told["files"]
    assert {one["severity"] for one in file["problems"]} == {"warning"}
    assert len(file["digest"]) == 64


def test_check_says_when_the_interpreter_could_not_start(sandpit, write):
    write("[fs]\nallow_read = ['{work}']\n")
    done = sandpit("policy", "check", "p.toml")
    assert "so that nothing can run" in done.stdout


def test_check_of_a_sound_file_says_so(sandpit, write):
    write("extends = 'default'\n")
    done = sandpit("policy", "check", "p.toml")
    assert (done.returncode, done.stdout) == (0, "p.toml: nothing is wrong\n")


@pytest.mark.parametrize("name", BUILTIN)
def test_built_in_policies_have_no_odd_rule(sandpit, name):
    done = sandpit("policy", "check", ROOT / "policies" / f"{name}.toml")
    assert (done.returncode, done.stdout.count("error")) == (0, 0)
    assert "stands in" not in done.stdout
    assert "allows nothing" not in done.stdout


@pytest.mark.requires("landlock")
def test_check_says_what_this_machine_cannot_keep(sandpit, write):
    write("extends = 'default'\n")
    done = sandpit("policy", "check", "p.toml", env={"SANDPIT_FORCE": "landlock=0"})
    assert done.returncode == 0
    assert "this machine cannot keep it" in done.stdout
    assert "--allow-degraded landlock" in done.stdout


# ---- explain


def test_explain_names_the_rule_the_losers_and_who_holds_it(sandpit, write, tmp_path):
    path = write(
        "extends = 'default'\n"
        "[fs]\n"
        "allow_read = ['{python}', '{work}']\n"
        "deny_read_add = ['{work}/secret', '**/.env']\n"
    )
    told = ask(sandpit, "read", "secret/x", policy=str(path), status=1)
    assert told["verdict"] == "deny"
    assert told["target"] == f"{os.path.realpath(tmp_path)}/secret/x"
    assert (told["source"], told["line"]) == (str(path), 4)
    decides, *others = told["rules"]
    assert decides["decides"] is True
    assert decides["pattern"] == "{work}/secret"
    assert {one["pattern"]: one["why_not"] for one in others}["{work}"] == (
        "less specific"
    )
    assert "--allow-read" in told["hint"]
    assert "listener" in told["enforced_by"] or "landlock" in told["enforced_by"]
    assert ask(sandpit, "read", "{work}/y", policy=str(path), status=0)["rules"]
    assert ask(sandpit, "read", "a/.env", policy=str(path), status=1)["line"] == 4
    assert ask(sandpit, "read", "/elsewhere", policy=str(path), status=1)["rule"] == (
        "fs.allow_read"
    )


def test_explain_follows_links_as_the_kernel_does(sandpit, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    told = ask(sandpit, "write", f"{tmp_path}/link/x", status=0)
    assert told["target"] == f"{os.path.realpath(tmp_path)}/real/x"
    assert any("leads to" in note for note in told["notes"])


def test_explain_follows_the_guests_own_links(sandpit, tmp_path):
    root = ask(sandpit, "read", "/proc/self/root/etc/shadow", status=1)
    assert root["target"] == os.path.realpath("/etc/shadow")
    here = ask(sandpit, "write", "/proc/thread-self/cwd/x", status=0)
    assert here["target"] == f"{os.path.realpath(tmp_path)}/x"
    assert any("leads to" in note for note in here["notes"])


def test_explain_speaks_of_the_private_folder(sandpit):
    told = ask(sandpit, "write", "{tmp}/x", status=0)
    assert any("private folder" in note for note in told["notes"])
    told = ask(sandpit, "write", "{tmp}/x", policy="trace-only", status=0)
    assert any("nowhere" in note for note in told["notes"])


@pytest.mark.parametrize(
    ("question", "status", "rule"),
    [
        (["read", "~/.ssh/id_rsa"], 1, 'fs.deny_read "{home}/.ssh"'),
        (["read", "/etc/hostname"], 0, ""),
        (["write", "/etc/hostname"], 1, "fs.allow_write"),
        (["write", ".git/config"], 1, 'fs.deny_write "{work}/.git"'),
        (["connect", "example.com:443"], 1, 'network.deny "*"'),
        (["connect", "[::1]:80"], 1, 'network.deny "*"'),
        (["connect", "unix:/run/docker.sock"], 1, 'network.deny "*"'),
        (["resolve", "example.com"], 1, 'network.deny "*"'),
        (["run", "/bin/sh"], 1, "process.allow"),
        (["import", "requests"], 1, 'network.clients "requests"'),
        (["import", "json"], 0, ""),
        (["env", "LC_ALL"], 0, 'env.allow "LC_*"'),
        (["env", "AWS_SECRET"], 1, "env.allow"),
        (["fork"], 0, ""),
    ],
)
def test_explain_answers_each_question(sandpit, question, status, rule):
    told = ask(sandpit, *question, status=status)
    assert told["rule"] == rule
    text = sandpit("policy", "explain", "--policy", "default", *question)
    assert text.returncode == status
    assert text.stdout.startswith("denied: " if status else "allowed: ")


def test_explain_of_limits_and_forks(sandpit):
    assert ask(sandpit, "limit", "wall", status=0)["value"] == "1h"
    assert ask(sandpit, "limit", "wall", policy="trace-only", status=0)["value"] == (
        "none"
    )
    told = ask(sandpit, "fork", policy="strict", status=1)
    assert told["rule"] == "process.fork = false"


def test_explain_takes_grants_into_account(sandpit):
    done = sandpit(
        *("policy", "explain", "--policy", "default", "--json"),
        *("--allow-read", "~/.ssh", "read", "~/.ssh/id_rsa"),
    )
    told = json.loads(done.stdout)
    assert (done.returncode, told["verdict"]) == (0, "allow")
    assert told["rules"][1]["why_not"] == "what is given for this run comes first"
    assert told["policy"]["grants"][0]["kind"] == "read"


@pytest.mark.requires("listener", "landlock")
def test_explain_and_a_run_agree(sandpit, write, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_text("x")
    (tmp_path / "in" / "b").write_text("x")
    path = write("extends = 'default'\n[fs]\ndeny_read_add = ['{work}/in/b']\n")
    for name, status in (("a", 0), ("b", 1)):
        ask(sandpit, "read", f"in/{name}", policy=str(path), status=status)
        done = sandpit("run", "--policy", path, "-c", f"open('in/{name}')")
        assert done.returncode == status


@pytest.mark.requires("listener", "landlock")
@pytest.mark.parametrize(
    ("rules", "options", "rule"),
    [
        ("", (), ""),
        ("deny_read = ['{work}/tool']", (), "fs.deny_read \"{work}/tool\""),
        ("allow_read = ['{python}', '/usr', '/lib', '/lib64']", (), "fs.allow_read"),
        ("deny_read = ['**/tool.key']", (), "fs.deny_read, for what lies beside it"),
        ("deny_read = ['**/tool.key']", ("--allow-run", "./tool"), None),
    ],
)
def test_explain_and_a_run_agree_on_programs_that_are_read(
    sandpit, write, tmp_path, rules, options, rule
):
    """None: a grant decides."""
    shutil.copy(shutil.which("true"), tmp_path / "tool")
    path = write(f"[fs]\n{rules}\n")
    denied = bool(rule)
    told = ask(sandpit, *options, "run", "./tool", policy=str(path), status=denied)
    assert told["rule"].startswith("--allow-run ") if rule is None else (
        told["rule"] == rule
    )
    code = "import os; os.execv('./tool', ['tool'])"
    done = sandpit("run", "--no-trace", "--policy", path, *options, "-c", code)
    assert done.returncode == denied, done.stderr
    assert not denied or f"(rule {rule}, " in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "no question"),
        (["fly", "x"], "'fly' is no question"),
        (["read"], "one thing"),
        (["fork", "x"], "nothing more"),
        (["connect", "x"], "HOST:PORT"),
        (["connect", "x:0"], "HOST:PORT"),
        (["connect", "::1"], "[::1]:443"),
        (["connect", "::1:80"], "[::1]:443"),
        (["run", "no-such-program"], "no program"),
        (["limit", "memroy"], "did you mean memory"),
        (["read", "{script}/x"], "--script"),
        (["--policy", "absent.toml", "fork"], "No such file"),
        (["--allow-net", "x:y", "fork"], "--allow-net 'x:y'"),
    ],
)
def test_explain_refuses_what_makes_no_sense(sandpit, arguments, says):
    done = sandpit("policy", "explain", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    told = sandpit("policy", "explain", "--json", *arguments)
    assert says in json.loads(told.stdout)["error"]["message"]


# ---- the group


def test_group_lists_its_commands_and_knows_no_others(sandpit):
    assert sandpit("policy").returncode == 2
    done = sandpit("policy", "shw")
    assert (done.returncode, done.stdout) == (2, "")
    assert "did you mean show" in done.stderr
    text = sandpit("policy", "--help").stdout
    assert sandpit("help", "policy").stdout == text
    for name in ("list", "show", "check", "explain", "schema"):
        assert name in text
        one = sandpit("policy", name, "--help")
        assert one.returncode == 0
        assert sandpit("help", "policy", name).stdout == one.stdout
        assert len(one.stdout.splitlines()) <= 40
        assert max(map(len, one.stdout.splitlines())) <= 80


def test_unused_python_is_named(sandpit):
    done = sandpit("policy", "check", "--python", sys.executable, ROOT / "README.md")
    assert done.returncode == 1


# ---- schema


def test_schema_knows_what_the_reader_knows(sandpit, write):
    done = sandpit("policy", "schema")
    schema = json.loads(done.stdout)
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    shown = json.loads(sandpit("policy", "show", "--json", write(RICH)).stdout)
    for key, value in shown["policy"].items():
        assert key in schema["properties"]
        if isinstance(value, dict):
            section = schema["properties"][key]
            assert section["additionalProperties"] is False
            assert set(value) <= set(section["properties"])
    # Each key of the schema is one for the reader, with a value of that kind.
    for name, section in schema["properties"].items():
        for key, of_key in section.get("properties", {}).items():
            value = (
                "[]"
                if of_key.get("type") == "array"
                else "true"
                if of_key.get("type") == "boolean"
                else json.dumps(of_key["enum"][0])
                if "enum" in of_key
                else "7"
            )
            done = sandpit("policy", "check", write(f"[{name}]\n{key} = {value}\n"))
            assert done.returncode == 0, done.stdout
