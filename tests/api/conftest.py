"""Fixtures of the tests that go through the Python package."""

from __future__ import annotations

import gc
import glob
import os
import stat
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

FAKE = Path(__file__).parents[1] / "support" / "fake_program.py"


@pytest.fixture
def fake(tmp_path_factory, monkeypatch):
    """Put a program in the native one's place; call it with what it is to play."""
    folder = tmp_path_factory.mktemp("fake")
    program = folder / "sandpit"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -S {FAKE} "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("SANDPIT_PROGRAM", str(program))

    def play(what, **environment):
        monkeypatch.setenv("FAKE", what)
        for name, value in environment.items():
            monkeypatch.setenv(f"FAKE_{name.upper()}", str(value))

    play("echo")
    return play


@pytest.fixture
def nothing_left(tmp_path, monkeypatch):
    """Check that no descriptor, folder or child outlives the test."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    gc.collect()
    before = set(os.listdir("/proc/self/fd"))
    yield folder
    gc.collect()
    assert set(os.listdir("/proc/self/fd")) <= before
    assert glob.glob(str(folder / "sandpit-*")) == []
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


@pytest.fixture
def script(tmp_path):
    """Write a script and give its path."""

    def write(text, name="script.py"):
        path = tmp_path / name
        path.write_text(textwrap.dedent(text))
        return path

    return write
