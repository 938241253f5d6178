"""What one system call costs under a policy: the CPU time of both sides of a C program
that makes many, less that of the same program making none.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from budgets import Budgets
from startup import environment_of
from timing import Command, time_in_turn

START = "import os, sys\nos.execv(sys.argv[1], sys.argv[1:])\n"


@dataclass(frozen=True)
class Way:
    """One kind of call: its name, the policy in TOML, and what the program is told
    before how often to do it."""

    name: str
    policy: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class Cost:
    """Seconds of CPU time of one call."""

    plain: float
    judged: float

    @property
    def ratio(self) -> float:
        return self.judged / self.plain


def build(folder: Path, source: str) -> str:
    (folder / "start.py").write_text(START)
    (folder / "program.c").write_text(source)
    compiler = os.environ.get("CC", "cc")
    program = str(folder / "program")
    words = [compiler, "-O2", "-o", program, str(folder / "program.c")]
    subprocess.run(words, check=True)
    return program


def measure(
    folder: Path, source: str, ways: list[Way], *, calls: int, rounds: int, python: str
) -> dict[str, Cost]:
    """The cost of each way, medians over the rounds."""
    environment = environment_of(python)
    sandpit = str(Path(sys.executable).parent / "sandpit")
    program, script = build(folder, source), str(folder / "start.py")
    commands = []
    for way in ways:
        policy = folder / f"{way.name}.toml"
        policy.write_text(way.policy)
        run = [sandpit, "run", "--policy", str(policy), "--python", python]
        run += ["--quiet", "-o", str(folder / "run.sptrace")]
        for number in (0, calls):
            words = [script, program, *way.words, str(number)]
            name = f"{way.name} {number}"
            commands.append(Command(name, [python, *words], environment))
            commands.append(Command(f"{name}, sandpit", [*run, *words], environment))
    cpu = {one.name: one.cpu_median for one in time_in_turn(commands, rounds)}
    costs = {}
    for way in ways:
        many, none = f"{way.name} {calls}", f"{way.name} 0"
        plain = (cpu[many] - cpu[none]) / calls
        judged = (cpu[f"{many}, sandpit"] - cpu[f"{none}, sandpit"]) / calls
        costs[way.name] = Cost(plain, judged)
        print(
            f"{way.name}: {plain * 1e6:.1f} us of CPU plain, {judged * 1e6:.1f} judged"
        )
    return costs


def run(
    about: str,
    section: str,
    source: str,
    ways: Callable[[Path], list[Way]],
    *,
    calls: int,
    rounds: int,
) -> int:
    """The command line of such a bench: measure, and compare with the section's budgets
    `NAME, CPU`; the exit code. `ways` are made in a folder of their own."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--calls", type=int, default=calls, help="in each program")
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    python = os.path.abspath(options.python)
    budgets = Budgets(section)
    with tempfile.TemporaryDirectory(prefix="sandpit-bench-") as name:
        folder = Path(name).resolve()
        costs = measure(
            folder,
            source,
            ways(folder),
            calls=options.calls,
            rounds=options.rounds,
            python=python,
        )
    for way, cost in costs.items():
        budgets.check(f"{way}, CPU", cost.ratio)
    return budgets.finish()
