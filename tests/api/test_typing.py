"""Type checkers accept right calls of the package and reject wrong ones."""

from __future__ import annotations

import os
import re
import site
import subprocess
import sys
from pathlib import Path

import sandpit
from abilities import require

ACCEPTED = """
from __future__ import annotations
import asyncio, pathlib, sys
import sandpit
from sandpit import PIPE, Result, Run, Violation

result: Result = sandpit.run(pathlib.Path("s.py"), args=["a", pathlib.Path("b")])
result = sandpit.run_string(b"pass", stdin=sys.stdin, trace=False, calls="all")
result = sandpit.run_string("pass", stdin=b"x", files={"a": "b", "c": b"d"}, timeout=1)
events: list[dict[str, object]] = []
result = sandpit.run_string("pass", on_event=events.append)
code: int = result.exit_code
first: Violation = result.violations[0]
text: bytes = result.read("name")
saved: pathlib.Path = result.save("x.sptrace")
view: sandpit.Events = sandpit.load("x.sptrace").of_kind("open", "file").between(0, 9)
part: list[dict[str, object]] = list(view.where(pid=1, text="x"))
paths: list[str] = [use.path for use in view.files() if use.denied]
hosts: list[str] = [use.host or use.name for use in view.network()]
parents: list[sandpit.Process] = [p.parent for p in view.processes() if p.parent]
calls: sandpit.CallTree | sandpit.CallGraph = view.calls()
counts: dict[str, int] = {node.function: node.count for _, node in calls.walk()}

async def main() -> Result:
    run: Run = sandpit.start("s.py", stdin=PIPE)
    if run.stdin is not None:
        run.stdin.write(b"x")
    async with run:
        return await run

try:
    asyncio.run(main())
except sandpit.HostError as error:
    names: tuple[str, ...] = error.missing
"""

REJECTED = [
    "sandpit.run_string(5)",
    "sandpit.run('s.py', policy=5)",
    "sandpit.run('s.py', 'positional')",
    "sandpit.run('s.py', calls='some')",
    "sandpit.run('s.py', trace=True)",
    "sandpit.run('s.py', timeout='1')",
    "sandpit.run('s.py', on_event=lambda: None)",
    "sandpit.load('x').of_kind(5)",
    "sandpit.load('x').between('1')",
    "sandpit.run('s.py').no_such_field",
    "sandpit.run('s.py').status == 'unknown-word' and 1 + 'x'",
]


def check(code, tmp_path):
    require("mypy")
    (tmp_path / "case.py").write_text(code)
    # An installed package is found by itself, and may not be named; a build tree must be.
    package = str(Path(sandpit.__file__).parents[1])
    installed = package in site.getsitepackages()
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "case.py"],
        cwd=tmp_path,
        env={**os.environ, **({} if installed else {"MYPYPATH": package})},
        capture_output=True,
        text=True,
        check=False,
    )


def test_right_calls_are_accepted(tmp_path):
    done = check(ACCEPTED, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_wrong_calls_are_rejected(tmp_path):
    done = check("import sandpit\n" + "\n".join(REJECTED) + "\n", tmp_path)
    lines = {
        int(number) for number in re.findall(r"case\.py:(\d+): error", done.stdout)
    }
    assert lines == set(range(2, len(REJECTED) + 2)), done.stdout
