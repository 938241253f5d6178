"""The golden traces and the program that reads traces."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

import pytest

sys.path.insert(0, str(Path(__file__).parent))

GOLDEN = Path(__file__).parent / "golden"

Completed = subprocess.CompletedProcess[str]


@pytest.fixture(scope="session")
def golden() -> Callable[[str], Path]:
    """The path of a golden trace by its name."""
    return lambda name: GOLDEN / f"{name}.sptrace"


@pytest.fixture
def reader(tmp_path: Path) -> Callable[..., Completed]:
    """Runs `sandpit-trace ARGUMENTS` and returns what it did."""
    program = Path(sys.executable).parent / "sandpit-trace"

    def run(
        *arguments: object, env: dict[str, str] | None = None, **options: Any
    ) -> Completed:
        settings: dict[str, Any] = {
            "cwd": tmp_path,
            "env": {**os.environ, "COLUMNS": "80", **(env or {})},
            "encoding": "utf-8",
            "errors": "surrogateescape",
            "timeout": 60,
            "stdin": subprocess.DEVNULL,
            "capture_output": True,
            **options,
        }
        if "input" in settings:
            del settings["stdin"]
        return subprocess.run([str(program), *map(str, arguments)], **settings)

    return run
