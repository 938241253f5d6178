"""Running the installed program as a user does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

import pytest

Completed = subprocess.CompletedProcess[str]


@pytest.fixture(scope="session")
def program() -> Path:
    """The `sandpit` that belongs to the interpreter of the tests."""
    return Path(sys.executable).parent / "sandpit"


@pytest.fixture
def sandpit(program: Path, tmp_path: Path) -> Callable[..., Completed]:
    """Runs `sandpit ARGUMENTS` in the test's folder and returns what it did.

    `env` adds variables; other keywords are subprocess.run's.
    """

    def run(
        *arguments: object, env: dict[str, str] | None = None, **options: Any
    ) -> Completed:
        settings: dict[str, Any] = {
            "cwd": tmp_path,
            "env": {**os.environ, **(env or {})},
            "text": True,
            "timeout": 60,
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            **options,
        }
        if "input" in settings:
            del settings["stdin"]
        return subprocess.run([str(program), *map(str, arguments)], **settings)

    return run
