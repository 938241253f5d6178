"""Arguments are checked at the door, and reach the native program as agreed."""

from __future__ import annotations

import base64
import json
import os
import re
import sys
from pathlib import Path

import pytest
import sandpit


def seen(result):
    return json.loads(result.stdout)


def spec_of(result):
    return seen(result)["spec"]


def test_spec_defaults_are_sent(fake):
    spec = spec_of(sandpit.run("script.py"))
    trace = spec.pop("trace")
    assert trace.endswith("/script.sptrace")
    assert spec == {
        "version": 1,
        "program": {"kind": "script", "value": "script.py"},
        "args": [],
        "policy": None,
        "allow": {},
        "deny": {},
        "observe": False,
        "limits": {},
        "calls": None,
        "python": sys.executable,
        "env": None,
        "cwd": None,
        "allow_degraded": [],
        "capture": True,
        "capture_max": 64 << 20,
        "sign": None,
    }


def test_spec_options_are_sent(fake, tmp_path):
    spec = spec_of(
        sandpit.run(
            "pkg.tool",
            module=True,
            args=["-x", Path("a/b"), ""],
            policy="trace-only",
            timeout=1.5,
            limits={"memory": "64MiB", "processes": 4},
            calls="all",
            trace=tmp_path / "t.sptrace",
            python="python3",
            env={"A": "b"},
            cwd=tmp_path,
            allow_degraded=["landlock"],
            capture_max=10,
        )
    )
    assert spec["program"] == {"kind": "module", "value": "pkg.tool"}
    assert spec["args"] == ["-x", "a/b", ""]
    assert spec["policy"] == "trace-only"
    assert spec["limits"] == {"wall": 1.5, "memory": "64MiB", "processes": 4}
    assert spec["calls"] == "all"
    assert spec["trace"] == str(tmp_path / "t.sptrace")
    assert spec["python"] == "python3"
    assert spec["env"] == {"A": "b"}
    assert spec["cwd"] == str(tmp_path)
    assert spec["allow_degraded"] == ["landlock"]
    assert spec["capture_max"] == 10


def test_spec_dash_is_the_program_on_stdin(fake):
    spec = spec_of(sandpit.run("-", stdin="print(1)"))
    assert spec["program"] == {"kind": "stdin", "value": "-"}


def test_spec_text_that_is_not_unicode_goes_as_base64(fake):
    odd = os.fsdecode(b"caf\xe9")
    spec = spec_of(sandpit.run("s.py", args=[odd], env={"A": odd}))
    wire = {"base64": base64.b64encode(b"caf\xe9").decode()}
    assert spec["args"] == [wire]
    assert spec["env"] == {"A": wire}


def test_spec_relative_paths_mean_the_callers_folder(fake, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    spec = spec_of(
        sandpit.run("s.py", cwd="sub", trace="t.sptrace", python="bin/python")
    )
    assert spec["cwd"] == str(tmp_path / "sub")
    assert spec["trace"] == str(tmp_path / "t.sptrace")
    assert spec["python"] == str(tmp_path / "bin/python")
    assert spec["program"]["value"] == "s.py"


def test_spec_no_trace(fake):
    result = sandpit.run("s.py", trace=False)
    assert spec_of(result)["trace"] is None
    assert result.trace is None
    assert result.trace_path is None
    with pytest.raises(sandpit.TraceError):
        result.save("anywhere")


def test_code_is_in_a_file_and_not_in_the_command_line(fake):
    result = sandpit.run_string("secret = 1", files={"a/b.txt": "x", "c": b"\xff"})
    view = seen(result)
    assert view["argv"][1] == "run-spec"
    assert "secret" not in " ".join(view["argv"]) + json.dumps(view["spec"])
    assert view["spec"]["program"] == {"kind": "script", "value": "main.py"}
    assert view["listing"] == ["a", "c", "main.py"]
    assert result.read("main.py") == b"secret = 1"
    assert result.read("a/b.txt") == b"x"
    assert result.read("c") == b"\xff"


def test_code_in_a_folder_of_the_callers_leaves_it_as_it_was(fake, tmp_path):
    (tmp_path / "main.py").write_text("mine")
    result = sandpit.run_string("pass", cwd=tmp_path)
    assert spec_of(result)["program"]["value"] == "main_2.py"
    assert seen(result)["listing"] == ["main.py", "main_2.py"]
    assert os.listdir(tmp_path) == ["main.py"]
    assert (tmp_path / "main.py").read_text() == "mine"


def test_files_without_folder_make_one_and_the_script_stays_the_callers(
    fake, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    result = sandpit.run("s.py", files={"in.txt": "x"})
    spec = spec_of(result)
    assert spec["program"]["value"] == str(tmp_path / "s.py")
    assert spec["cwd"] not in (None, str(tmp_path))
    assert seen(result)["listing"] == ["in.txt"]
    assert os.listdir(tmp_path) == []


def test_files_may_hold_the_script(fake):
    spec = spec_of(sandpit.run("s.py", files={"s.py": "pass"}))
    assert spec["program"]["value"] == "s.py"


@pytest.mark.parametrize(
    ("stdin", "content"),
    [
        (None, ""),
        ("", ""),
        ("text \u00e9", "text \u00c3\u00a9"),
        (b"\x00\xff", "\x00\xff"),
        (bytearray(b"ab"), "ab"),
        ("x" * 300_000, "x" * 300_000),
    ],
    ids=["none", "empty", "text", "bytes", "bytearray", "large"],
)
def test_stdin_content_is_read(fake, stdin, content):
    assert seen(sandpit.run("s.py", stdin=stdin))["stdin"] == content


def test_stdin_file_and_descriptor_are_read(fake, tmp_path):
    (tmp_path / "in").write_text("abc")
    with open(tmp_path / "in") as stream:
        assert seen(sandpit.run("s.py", stdin=stream))["stdin"] == "abc"
    with open(tmp_path / "in") as stream:
        assert seen(sandpit.run("s.py", stdin=stream.fileno()))["stdin"] == "abc"


def test_stdin_pipe_is_written_by_the_caller(fake):
    with sandpit.start("s.py", stdin=sandpit.PIPE) as run:
        run.stdin.write(b"by hand")
        run.stdin.close()
        assert seen(run.wait())["stdin"] == "by hand"


@pytest.mark.parametrize(
    ("options", "error", "part"),
    [
        ({"args": "text"}, TypeError, "args"),
        ({"args": [1]}, TypeError, "args[0]"),
        ({"args": ["a\0b"]}, ValueError, "NUL"),
        ({"args": 5}, TypeError, "args"),
        ({"policy": 5}, TypeError, "policy"),
        ({"policy": ""}, ValueError, "policy"),
        ({"timeout": 0}, ValueError, "timeout"),
        ({"timeout": -1}, ValueError, "timeout"),
        ({"timeout": float("nan")}, ValueError, "timeout"),
        ({"timeout": float("inf")}, ValueError, "timeout"),
        ({"timeout": "1"}, TypeError, "timeout"),
        ({"timeout": True}, TypeError, "timeout"),
        ({"limits": 5}, TypeError, "limits"),
        ({"limits": {1: 2}}, TypeError, "limits"),
        ({"limits": {"cpu": None}}, TypeError, "limits"),
        ({"limits": {"cpu": True}}, TypeError, "limits"),
        ({"limits": {"cpu": 0}}, ValueError, "limits"),
        ({"limits": {"cpu": float("nan")}}, ValueError, "limits"),
        ({"limits": {"cpu": "1\0"}}, ValueError, "limits"),
        ({"limits": {"memory": 10**30}}, ValueError, "limits"),
        ({"limits": {"wall": 1}, "timeout": 1}, ValueError, "timeout"),
        ({"calls": "some"}, ValueError, "off, first, folded, all"),
        ({"trace": True}, TypeError, "trace"),
        ({"trace": 3}, TypeError, "trace"),
        ({"trace": b"t"}, TypeError, "trace"),
        ({"python": ""}, ValueError, "python"),
        ({"env": ["A"]}, TypeError, "env"),
        ({"env": {"A": 1}}, TypeError, "env"),
        ({"env": {"A=B": "1"}}, ValueError, "A=B"),
        ({"env": {"": "1"}}, ValueError, "variable"),
        ({"cwd": 4}, TypeError, "cwd"),
        ({"allow_degraded": "landlock"}, TypeError, "allow_degraded"),
        ({"allow_degraded": [1]}, TypeError, "allow_degraded"),
        ({"capture": 1}, TypeError, "capture"),
        ({"capture_max": -1}, ValueError, "capture_max"),
        ({"capture_max": 1.5}, TypeError, "capture_max"),
        ({"files": ["a"]}, TypeError, "files"),
        ({"files": {"a": 1}}, TypeError, "files['a']"),
        ({"files": {1: "a"}}, TypeError, "files"),
        ({"files": {"../a": "x"}}, ValueError, "../a"),
        ({"files": {"/a": "x"}}, ValueError, "/a"),
        ({"files": {"": "x"}}, ValueError, "name of a file"),
        ({"stdin": object()}, TypeError, "stdin"),
        ({"stdin": True}, TypeError, "stdin"),
        ({"stdin": -7}, ValueError, "stdin"),
        ({"stdin": sandpit.PIPE}, ValueError, "start()"),
    ],
)
def test_bad_argument_is_named(fake, nothing_left, options, error, part):
    with pytest.raises(error, match=re.escape(part)):
        sandpit.run("s.py", **options)
    with pytest.raises(error):
        sandpit.run_string("pass", **options)


@pytest.mark.parametrize("script", [None, 5, b"s.py"])
def test_script_of_wrong_type_is_named(fake, script):
    with pytest.raises(TypeError, match="script"):
        sandpit.run(script)


def test_code_of_wrong_type_is_named(fake):
    with pytest.raises(TypeError, match="code"):
        sandpit.run_string(5)


def test_missing_working_folder_is_an_error_of_its_own(fake, nothing_left):
    with pytest.raises(sandpit.NotFoundError, match="no-such"):
        sandpit.run("s.py", cwd="/no-such-folder")
    with pytest.raises(FileNotFoundError):
        sandpit.run_string("pass", cwd="/no-such-folder")
