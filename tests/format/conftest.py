"""The golden traces and the program that reads traces."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from exports import EVERYTHING

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


@pytest.fixture(scope="session")
def program() -> Path:
    """The `sandpit` that belongs to the interpreter of the tests."""
    return Path(sys.executable).parent / "sandpit"


@pytest.fixture(scope="session")
def real(program, tmp_path_factory) -> dict[str, Path]:
    """Traces of one program by the level of calls."""
    folder = tmp_path_factory.mktemp("real")
    (folder / "everything.py").write_text(EVERYTHING)
    traces = {}
    for level in ("all", "folded", "off"):
        traces[level] = folder / f"{level}.sptrace"
        command = [program, "run", "-q", "--policy", "default", "--calls", level]
        subprocess.run(
            [*command, "-o", traces[level], "everything.py"],
            cwd=folder,
            check=True,
            timeout=60,
            stdin=subprocess.DEVNULL,
        )
    return traces


@pytest.fixture
def export(reader):
    """Exports a trace; gives the text."""

    def run(format: str, trace: Path) -> str:
        done = reader("export", "--format", format, trace)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return run
