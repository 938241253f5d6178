"""Runs of the installed program, for what is checked from outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from programs import PROGRAM


class Sandpit:
    """Starts `sandpit run` in a folder and reads what it left."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.trace = folder / "run.sptrace"

    def argv(
        self, script: str, *arguments: object, options: tuple[str, ...] = ()
    ) -> list[str]:
        path = self.folder / "script.py"
        path.write_text(script)
        return [
            str(PROGRAM),
            "run",
            "-o",
            str(self.trace),
            *options,
            str(path),
            *map(str, arguments),
        ]

    def run(
        self,
        script: str,
        *arguments: object,
        options: tuple[str, ...] = (),
        env=None,
        timeout: float = 60,
        **keywords,
    ):
        return subprocess.run(
            self.argv(script, *arguments, options=options),
            cwd=self.folder,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            **keywords,
        )

    def plain(self, script: str, *arguments: object, **keywords):
        path = self.folder / "script.py"
        path.write_text(script)
        return subprocess.run(
            [sys.executable, str(path), *map(str, arguments)],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            **keywords,
        )

    def events(self, kind: str | None = None) -> list[dict]:
        with open(self.trace, encoding="utf-8") as lines:
            events = [json.loads(line) for line in lines]
        return [one for one in events if kind is None or one["kind"] == kind]

    def verify(self) -> int:
        return subprocess.run(
            [str(PROGRAM), "verify", str(self.trace)], capture_output=True, check=False
        ).returncode


@pytest.fixture
def sandpit(tmp_path: Path) -> Sandpit:
    return Sandpit(tmp_path)
