"""Programs run as the caller, or as a user without any rights."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import interpreters
from abilities import require
from programs import PROGRAM

NOBODY = 65534


@dataclass(frozen=True)
class Ran:
    """What one run came to."""

    result: dict[str, Any]
    code: int
    took_s: float
    trace: Path

    def events(self, kind: str) -> list[dict[str, Any]]:
        with open(self.trace, encoding="utf-8") as lines:
            return [one for one in map(json.loads, lines) if one["kind"] == kind]


class Someone:
    """Runs programs in a folder of their own, perhaps as another user."""

    def __init__(self, folder: Path, *, user: bool, force: str) -> None:
        self.folder = folder
        self._own: tempfile.TemporaryDirectory[str] | None = None
        self.who: dict[str, Any] = {}
        self.python = sys.executable
        self.program = str(PROGRAM.resolve())
        self.environment = {**os.environ, "SANDPIT_FORCE": force}
        if user and os.geteuid() == 0:
            self.who = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
            self._let_in()

    def _let_in(self) -> None:
        """Works in a folder of the user's; those of pytest are closed to others."""
        self._own = tempfile.TemporaryDirectory(prefix="sandpit-someone-")
        self.folder = Path(self._own.name)
        os.chown(self.folder, NOBODY, NOBODY)
        pythons = [sys.executable, *(one.path for one in interpreters.find())]
        usable = [one for one in pythons if self._can(one, "-c", "pass")]
        if not usable or not self._can(self.program, "--version"):
            require("user", "no interpreter or program that another user may start")
        self.python = usable[0]

    def _can(self, *command: str) -> bool:
        try:
            done = subprocess.run(command, cwd="/", capture_output=True, **self.who)
        except PermissionError:
            return False
        return done.returncode == 0

    def close(self) -> None:
        """Remove the folder, if it is one of ours."""
        if self._own is not None:
            self._own.cleanup()

    def has(self, module: str) -> bool:
        """Whether its interpreter has the module."""
        return self._can(self.python, "-c", f"import {module}")

    def run(
        self,
        code: str,
        *options: str,
        arguments: tuple[str, ...] = (),
        before: str = "",
        fails: bool = False,
    ) -> Ran:
        """Run it under `trace-only` unless told otherwise; `before` is a line of the shell that starts it."""
        script = self.folder / "script.py"
        script.write_text(code)
        trace = self.folder / "script.sptrace"
        argv = [self.program, "run", "--json"]
        if "--policy" not in options:
            argv += ["--policy", "trace-only"]
        argv += ["--python", self.python, *options, "script.py", *arguments]
        if before:
            argv = ["sh", "-c", f'{before}; exec "$@"', "sh", *argv]
        begin = time.monotonic()
        done = subprocess.run(
            argv,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            **self.who,
        )
        took = time.monotonic() - begin
        assert done.stdout, done.stderr
        result = json.loads(done.stdout)
        assert ("error" in result) == fails, result
        return Ran(result, done.returncode, took, trace)
