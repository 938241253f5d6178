"""What one system call costs under a policy: the CPU time of both sides of a C program
that makes many, less that of the same program making none.
"""

from __future__ import annotations

import argparse
import os
import shutil
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
    """One kind of call: its name, the policy in TOML, what the program is told before
    how often to do it, and the system call that strace is to stop at."""

    name: str
    policy: str
    words: tuple[str, ...]
    call: str


@dataclass(frozen=True)
class Cost:
    """Seconds of CPU time of one call."""

    plain: float
    judged: float
    ptrace: float | None  # None: not measured

    def print(self, way: str) -> None:
        named = {"plain": self.plain, "judged": self.judged, "by ptrace": self.ptrace}
        words = [f"{s * 1e6:.1f} {name}" for name, s in named.items() if s is not None]
        print(f"{way}, us of CPU: {', '.join(words)}")


def build(folder: Path, source: str) -> str:
    (folder / "start.py").write_text(START)
    (folder / "program.c").write_text(source)
    compiler = os.environ.get("CC", "cc")
    program = str(folder / "program")
    words = [compiler, "-O2", "-o", program, str(folder / "program.c")]
    subprocess.run(words, check=True)
    return program


def traced(strace: str, call: str) -> list[str]:
    return [strace, "-f", "--seccomp-bpf", "-e", f"trace={call}", "-o", os.devnull]


def measure(
    folder: Path,
    source: str,
    ways: list[Way],
    *,
    calls: int,
    rounds: int,
    python: str,
    strace: str | None,
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
            if strace is not None:
                whole = [*traced(strace, way.call), python, *words]
                commands.append(Command(f"{name}, strace", whole, environment))
    cpu = {one.name: one.cpu_median for one in time_in_turn(commands, rounds)}

    def each(way: Way, under: str) -> float:
        return (cpu[f"{way.name} {calls}{under}"] - cpu[f"{way.name} 0{under}"]) / calls

    costs = {}
    for way in ways:
        ptrace = None if strace is None else each(way, ", strace")
        cost = Cost(each(way, ""), each(way, ", sandpit"), ptrace)
        cost.print(way.name)
        costs[way.name] = cost
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
    `NAME, CPU` and `NAME against ptrace, CPU`; the exit code. `ways` are made in a
    folder of their own."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--calls", type=int, default=calls, help="in each program")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--compare", action="store_true", help="with strace, if there")
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
            strace=shutil.which("strace") if options.compare else None,
        )
    for way, cost in costs.items():
        budgets.check(f"{way}, CPU", cost.judged / cost.plain)
        if cost.ptrace is not None:
            budgets.check(f"{way} against ptrace, CPU", cost.judged / cost.ptrace)
    return budgets.finish()
