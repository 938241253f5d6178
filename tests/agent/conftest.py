"""Runs programs with the agent in them, under the small supervisor of harness.c."""

from __future__ import annotations

import collections
import importlib.util
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import abilities
import pytest
from interpreters import Interpreter

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "src"


@dataclass
class Outcome:
    """What a program did, and what the agent told of it."""

    code: int
    stdout: str
    stderr: str
    lines: list[dict]

    def of(self, kind: str, row: str = "event", **fields) -> list[dict]:
        """Give the lines of one kind whose fields have these values."""
        return [
            one
            for one in self.lines
            if one["row"] == row
            and one.get("kind", kind) == kind
            and all(one.get(key) == value for key, value in fields.items())
        ]

    def told(self, row: str) -> list[dict]:
        return [one for one in self.lines if one["row"] == row]


def find_agents() -> Path | None:
    """Give the folder of stub and agents: SANDPIT_AGENTS, or the installed one."""
    named = os.environ.get("SANDPIT_AGENTS")
    if named:
        return Path(named)
    spec = importlib.util.find_spec("sandpit")
    for place in (spec and spec.submodule_search_locations) or ():
        folder = Path(place) / "_agents"
        if folder.is_dir():
            return folder
    return None


@pytest.fixture(scope="session")
def agents() -> Path:
    folder = find_agents()
    if folder is None:
        abilities.require("agents", "neither installed nor SANDPIT_AGENTS set")
    return folder


@pytest.fixture(scope="session")
def harness(tmp_path_factory) -> Path:
    """Build harness.c."""
    abilities.require("cc")
    program = tmp_path_factory.mktemp("harness") / "harness"
    command = ["cc", "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-I", SOURCES, "-o", program]
    command += [HERE / "harness.c", SOURCES / "event/event.c", SOURCES / "base/error.c"]
    subprocess.run(command, check=True)
    return program


def python_folders(python: Interpreter) -> list[str]:
    """Give the folders that a run of this interpreter has as {python}."""
    version = f"python{python.version[0]}.{python.version[1]}"
    prefix = str(Path(os.path.realpath(python.path)).parents[1])
    return [
        f"{prefix}/lib/{version}",
        f"{prefix}/lib/python3",
        f"{prefix}/lib64/{version}",
    ]


def plain_environment() -> dict[str, str]:
    """Give the environment of the tests without what is the tests' own."""
    return {key: value for key, value in os.environ.items() if "SANDPIT" not in key}


@pytest.fixture
def guest(agents: Path, harness: Path, python: Interpreter, tmp_path: Path):
    """Give a function that runs code, or a command line, with the agent of `python`."""
    if not (
        agents / f"sandpit-agent-{python.version[0]}.{python.version[1]}.so"
    ).exists():
        abilities.require("agents", f"no agent for {python.version}")

    def run(
        code: str | None = None,
        *options: str,
        args: tuple = (),
        flags: tuple[str, ...] = (),
        env: dict[str, str] | None = None,
        stdin: str = "",
        timeout: float = 60,
    ) -> Outcome:
        command: list = [harness, "-s", agents, "-o", tmp_path / "lines"]
        for folder in python_folders(python):
            command += ["-p", folder]
        program: list = [python.path, *flags]
        if code is not None:
            script = tmp_path / "script.py"
            script.write_text(code)
            command += ["-P", script]
            program.append(script)
        done = subprocess.run(
            [*command, *options, "--", *program, *args],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=tmp_path,
            env={**plain_environment(), **(env or {})},
        )
        text = (tmp_path / "lines").read_text(
            encoding="utf-8", errors="surrogateescape"
        )
        return Outcome(
            done.returncode,
            done.stdout,
            done.stderr,
            [json.loads(one) for one in text.splitlines()],
        )

    return run


@pytest.fixture
def script(tmp_path: Path) -> str:
    """Give the path that `guest` writes code to."""
    return str(tmp_path / "script.py")


@dataclass
class Traced:
    """A run: how it ended, and its trace."""

    code: int
    stdout: str
    events: list[dict]
    script: str

    def counts(self) -> dict[str, int]:
        """Give how often each Python function of the script was called."""
        counts: collections.Counter[str] = collections.Counter()
        for one in self.of("call"):
            if one["file"] == self.script and not one.get("native"):
                counts[one["function"]] += one.get("count", 1)
        for name, resumed in self.began():
            if not resumed:
                counts[name] += 1
        return dict(counts)

    def began(self):
        """Give name and whether it goes on, for each call in runs."""
        functions = {one["id"]: one for one in self.of("function")}
        for one in self.of("run"):
            resumed = set(one.get("resumed", ()))
            for at, number in enumerate(one["f"]):
                if number > 0 and functions[number].get("file") == self.script:
                    yield functions[number]["name"], at in resumed

    def of(self, kind: str) -> list[dict]:
        return [one for one in self.events if one["kind"] == kind]

    def attempts(self) -> list[str]:
        """Give what was tried on the tracer, but for functions in which it sees no calls."""
        told = [one.get("what", one.get("operation", "")) for one in self.of("tamper")]
        return [one for one in told if "calls within" not in one]


@pytest.fixture
def traced(python: Interpreter, tmp_path: Path):
    """Give a function that runs code under `sandpit run` with calls at a level."""
    abilities.require("program")
    from sandpit._program import find_program

    script = tmp_path / "script.py"
    trace = tmp_path / "trace"

    def run(code: str, level: str, policy: str = "trace-only") -> Traced:
        script.write_text(code)
        command = [
            find_program(),
            "run",
            "--quiet",
            "--policy",
            policy,
            "--calls",
            level,
        ]
        command += ["--python", python.path, "-o", trace, "--", script]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=120, cwd=tmp_path
        )
        assert done.stderr == ""
        with open(trace, encoding="utf-8") as lines:
            events = [json.loads(line) for line in lines]
        return Traced(done.returncode, done.stdout, events, str(script))

    return run
