"""What looks like a secret stands in no trace."""

from __future__ import annotations

import json

import pytest
import sandpit

pytestmark = [pytest.mark.requires("program"), pytest.mark.requires("landlock")]

# Put together here, so that no tool takes this file's text for a leak.
GITHUB = "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789"
AMAZON = "AKIA" + "ABCDEFGHIJ234567"
PASSWORD = "correct-horse"


def run(code, tmp_path, **options):
    trace = tmp_path / "run.sptrace"
    result = sandpit.run_string(code, trace=trace, **options)
    text = trace.read_text()
    return result, text, [json.loads(line) for line in text.splitlines()]


def test_arguments_of_the_program(tmp_path):
    args = ["--password", PASSWORD, f"--token={PASSWORD}", f"https://me:{PASSWORD}@h/"]
    code = "import sys; assert sys.argv[2] == 'correct' + '-horse'"
    result, text, events = run(code, tmp_path, args=args)
    assert result.status == "ok", result.stderr
    assert PASSWORD not in text
    assert events[0]["argv"][-4:] == [
        "--password",
        "***",
        "--token=***",
        "https://me:***@h/",
    ]
    assert events[0]["redacted"] == 3


def test_arguments_of_what_it_starts(tmp_path):
    code = (
        "import subprocess, sys\n"
        f"subprocess.run([sys.executable, '-c', 'pass', '--api-key', {PASSWORD!r}])\n"
        f"subprocess.run(['/bin/true', 'TOKEN={PASSWORD}'])\n"
    )
    result, _text, events = run(code, tmp_path, policy="default")
    started = [one["argv"] for one in events if one["kind"] == "exec"]
    assert started[-1][-2:] == ["--api-key", "***"]
    (denied,) = result.violations
    assert PASSWORD not in json.dumps(
        [one for one in events if one["kind"] in ("exec", "violation")]
    )
    assert denied.operation == "exec"


@pytest.mark.parametrize("token", [GITHUB, AMAZON], ids=["github", "amazon"])
def test_tokens_wherever_they_stand(token, tmp_path):
    code = (
        f"token = {token!r}\n"
        f"open(token, 'w').close()\n"
        "print('the token is', token)\n"
        "exec('x = ' + repr(token))\n"
        "raise ValueError(token)\n"
    )
    result, text, events = run(code, tmp_path)
    assert token not in text
    assert token in result.stdout
    redacted = {one["kind"] for one in events if one.get("redacted")}
    assert {"code", "output", "exception", "open"} <= redacted
    printed = [one["text"] for one in events if one.get("stream") == "stdout"]
    assert "".join(printed) == f"the token is {token[:4]}***\n"


def test_a_path_is_told_in_full_whatever_it_is_called(tmp_path):
    code = "import os\nos.mkdir('password=secret-folder')\n"
    _, _text, events = run(code, tmp_path)
    paths = [one["path"] for one in events if one["kind"] == "file"]
    assert [one.rpartition("/")[2] for one in paths] == ["password=secret-folder"]


def test_what_is_redacted_still_verifies(tmp_path):
    import subprocess
    import sys
    from pathlib import Path

    run(f"print({GITHUB!r})", tmp_path)
    program = Path(sys.executable).parent / "sandpit"
    done = subprocess.run([program, "verify", tmp_path / "run.sptrace"], check=False)
    assert done.returncode == 0
