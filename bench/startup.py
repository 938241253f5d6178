"""What a run costs: `sandpit run hello.py`, trace and all, against `python3 hello.py`.

    startup.py [--rounds N] [--python PATH] [--compare]

All run the same interpreter: the one of this environment, or --python. What is added
depends on the machine, the ratio on the interpreter too; so the budgets are held
against what others take in the same rounds: bubblewrap, which confines and records
nothing, and strace, which records and confines nothing. Without them there is no
verdict. With --compare, cProfile takes part as well. Exit code 1 when a budget is
missed, 2 when there is no verdict.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from budgets import Budgets
from timing import Command, Series, time_in_turn

# What a policy's start is held against: where each open of the program's is judged and
# recorded, that is strace's work.
YARDSTICKS = {
    "trace-only": "bubblewrap",
    "no-network": "bubblewrap",
    "no-process": "bubblewrap",
    "read-only": "bubblewrap",
    "default": "strace",
    "strict": "strace",
}
POLICIES = tuple(YARDSTICKS)
STRACED = "openat,execve,connect,socket,unlink,rename"
PLAIN = "python3"
HELLO = 'print("hello")\n'


def environment_of(python: str) -> dict[str, str]:
    """The caller's environment, without what would make the two sides differ."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "LD_", "SANDPIT_")) and name != "VIRTUAL_ENV"
    }
    return {**kept, "PATH": f"{Path(python).parent}:{kept.get('PATH', os.defpath)}"}


def sandpit_command(program: str, python: str, policy: str, trace: Path) -> list[str]:
    options = ["--policy", policy, "--python", python, "--quiet", "-o", str(trace)]
    return [program, "run", *options]


def yardsticks(folder: Path) -> dict[str, list[str]]:
    """How the others are called, as far as they are installed."""
    apart = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    apart += ["--tmpfs", "/tmp", "--bind", str(folder), str(folder)]
    apart += ["--unshare-all", "--die-with-parent"]
    options = {
        "bubblewrap": ["bwrap", *apart],
        "strace": ["strace", "-f", "--seccomp-bpf", "-e", f"trace={STRACED}", "-o"],
    }
    options["strace"].append(str(folder / "strace"))
    found = {name: shutil.which(words[0]) for name, words in options.items()}
    return {
        name: [program, *options[name][1:]]
        for name, program in found.items()
        if program is not None
    }


def commands(python: str, folder: Path, compare: bool) -> list[Command]:
    script = str(folder / "hello.py")
    environment = environment_of(python)
    program = str(Path(sys.executable).parent / "sandpit")
    chosen = [Command(PLAIN, [python, script], environment)]
    for policy in POLICIES:
        words = sandpit_command(program, python, policy, folder / f"{policy}.sptrace")
        chosen.append(Command(f"sandpit, {policy}", [*words, script], environment))
    for name, words in yardsticks(folder).items():
        chosen.append(Command(name, [*words, python, script], environment))
    if compare:
        profile = [python, "-m", "cProfile", "-o", str(folder / "profile"), script]
        chosen.append(Command("cProfile", profile, environment))
    return chosen


def print_table(series: list[Series]) -> None:
    plain = series[0]
    heading = ("wall ms", "min ms", "CPU ms", "wall ratio", "CPU ratio", "added ms")
    print(f"{'':24}" + "".join(f"{title:>12}" for title in heading))
    for one in series:
        cells = (
            f"{one.wall_median * 1e3:.2f}",
            f"{min(one.wall) * 1e3:.2f}",
            f"{one.cpu_median * 1e3:.2f}",
            f"{one.wall_median / plain.wall_median:.3f}",
            f"{one.cpu_median / plain.cpu_median:.3f}",
            f"{(one.wall_median - plain.wall_median) * 1e3:.2f}",
        )
        print(f"{one.name:24}" + "".join(f"{cell:>12}" for cell in cells))


def check_budgets(series: list[Series]) -> int:
    budgets = Budgets("startup")
    named = {one.name: one for one in series}
    plain = named[PLAIN]
    for policy, yardstick in YARDSTICKS.items():
        one = named[f"sandpit, {policy}"]
        budgets.check(f"{policy}, CPU", one.cpu_median / plain.cpu_median)
        if yardstick in named:
            ratio = one.cpu_median / named[yardstick].cpu_median
            budgets.check(f"{policy} against {yardstick}, CPU", ratio)
    missing = set(YARDSTICKS.values()) - set(named)
    if missing:
        print(f"startup: no verdict without {' and '.join(sorted(missing))}")
        return 2
    return budgets.finish()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--rounds", type=int, default=60, help="at least 40 for a verdict"
    )
    parser.add_argument(
        "--python", default=sys.executable, help="interpreter of both sides"
    )
    parser.add_argument("--compare", action="store_true", help="with cProfile")
    options = parser.parse_args()
    python = os.path.abspath(options.python)
    with tempfile.TemporaryDirectory(prefix="sandpit-bench-") as name:
        folder = Path(name)
        (folder / "hello.py").write_text(HELLO)
        chosen = commands(python, folder, options.compare)
        series = time_in_turn(chosen, options.rounds)
    print(f"start-up with {python}, {options.rounds} rounds, medians\n")
    print_table(series)
    print()
    return check_budgets(series)


if __name__ == "__main__":
    sys.exit(main())
