"""The native program is found beside the package, and `python -m sandpit` is it."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig

import pytest
import sandpit
from sandpit import _program


def place(folder, name="sandpit", mode=0o755):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\necho found $0 $@\n")
    path.chmod(mode)
    return str(path)


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """No program in any of the usual places."""
    monkeypatch.delenv("SANDPIT_PROGRAM", raising=False)
    package = tmp_path / "env/lib/python3/site-packages/sandpit/_program.py"
    monkeypatch.setattr(_program, "__file__", str(package))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "interpreter" / "python"))
    monkeypatch.setattr(
        sysconfig,
        "get_path",
        lambda name, scheme=None: str(tmp_path / (scheme or "scheme")),
    )
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    return tmp_path


def test_places_are_searched_from_the_nearest(nowhere):
    with pytest.raises(sandpit.HostError) as caught:
        _program.find_program()
    assert caught.value.missing == ("program",)
    for folder in ("path", "posix_user", "interpreter", "scheme", "env/bin"):
        expected = place(nowhere / folder)
        assert _program.find_program() == expected


def test_file_that_cannot_be_executed_is_passed_over(nowhere):
    place(nowhere / "env/bin", mode=0o644)
    (nowhere / "scheme" / "sandpit").mkdir(parents=True)
    expected = place(nowhere / "path")
    assert _program.find_program() == expected


def test_variable_overrides_and_is_checked(nowhere, monkeypatch):
    place(nowhere / "env/bin")
    other = place(nowhere / "other", "mine")
    monkeypatch.setenv("SANDPIT_PROGRAM", other)
    assert _program.find_program() == other
    monkeypatch.setenv("SANDPIT_PROGRAM", "/no/such")
    with pytest.raises(sandpit.HostError, match="/no/such"):
        _program.find_program()


def test_windows_cannot_run(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(sandpit.HostError, match="Windows") as caught:
        sandpit.run("s.py")
    assert caught.value.missing == ("platform",)
    with pytest.raises(sandpit.HostError):
        sandpit.run_string("pass")


def test_module_becomes_the_program(tmp_path):
    program = place(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "sandpit", "run", "x y"],
        env={**os.environ, "SANDPIT_PROGRAM": program},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split()[-3:] == ["run", "x", "y"]


def test_module_without_program_says_so():
    done = subprocess.run(
        [sys.executable, "-m", "sandpit"],
        env={**os.environ, "SANDPIT_PROGRAM": "/no/such"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 125
    assert done.stderr.startswith("sandpit: ")
    assert done.stderr.count("\n") == 1
