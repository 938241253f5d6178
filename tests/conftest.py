"""What every test can use: the installed program, and skipping by requirement.

A test that needs something this machine may lack says so:

    @pytest.mark.requires("landlock", "python3.13")

It is skipped when an ability is missing, and fails instead when SANDPIT_REQUIRE (names
separated by commas) lists that ability. tests/abilities.py knows the names.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Callable

import abilities
import pytest

Command = Callable[..., "subprocess.CompletedProcess[str]"]


def pytest_runtest_setup(item: pytest.Item) -> None:
    names = [name for mark in item.iter_markers("requires") for name in mark.args]
    missing = [name for name in names if not abilities.present(name)]
    if not missing:
        return
    demanded = set(os.environ.get("SANDPIT_REQUIRE", "").split(","))
    if demanded.intersection(missing):
        pytest.fail(f"requires: {', '.join(missing)}", pytrace=False)
    pytest.skip(f"requires: {', '.join(missing)}")


@pytest.fixture(scope="session")
def program() -> Path:
    """The `sandpit` program that belongs to the interpreter of the tests."""
    return Path(sys.executable).parent / "sandpit"


@pytest.fixture
def sandpit(program: Path, tmp_path: Path) -> Command:
    """Runs `sandpit ARGUMENTS` in the test's folder and returns what it did."""

    def run(
        *arguments: object, env: dict[str, str] | None = None, **options: object
    ) -> subprocess.CompletedProcess[str]:
        settings: dict[str, object] = {
            "cwd": tmp_path,
            "env": {**os.environ, **(env or {})},
            "text": True,
            "capture_output": True,
            "timeout": 60,
        }
        if "stdin" not in options and "input" not in options:
            settings["stdin"] = subprocess.DEVNULL
        command = [str(program), *map(str, arguments)]
        return subprocess.run(command, **{**settings, **options})  # type: ignore[call-overload]

    return run
