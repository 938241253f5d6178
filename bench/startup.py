"""What a run costs: `sandpit run hello.py`, trace and all, against `python3 hello.py`.

    startup.py [--rounds N] [--python PATH] [--compare]

Both sides run the same interpreter: the one of this environment, or --python. With
--compare, strace and cProfile take part where they are installed. Exit code 1 when a
budget is missed.
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

POLICIES = (
    "trace-only",
    "no-network",
    "no-process",
    "read-only",
    "default",
    "strict",
)
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


def commands(python: str, folder: Path, compare: bool) -> list[Command]:
    script = str(folder / "hello.py")
    environment = environment_of(python)
    program = str(Path(sys.executable).parent / "sandpit")
    chosen = [Command(PLAIN, [python, script], environment)]
    for policy in POLICIES:
        words = sandpit_command(program, python, policy, folder / f"{policy}.sptrace")
        chosen.append(Command(f"sandpit, {policy}", [*words, script], environment))
    if not compare:
        return chosen
    profile = [python, "-m", "cProfile", "-o", str(folder / "profile"), script]
    chosen.append(Command("cProfile", profile, environment))
    strace = shutil.which("strace")
    if strace:
        words = [strace, "-f", "-o", str(folder / "strace"), python, script]
        chosen.append(Command("strace -f", words, environment))
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
    plain = series[0]
    for policy, one in zip(POLICIES, series[1:]):
        budgets.check(f"{policy}, wall", one.wall_median / plain.wall_median)
        budgets.check(f"{policy}, CPU", one.cpu_median / plain.cpu_median)
    return budgets.finish()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--rounds", type=int, default=60, help="at least 40 for a verdict"
    )
    parser.add_argument(
        "--python", default=sys.executable, help="interpreter of both sides"
    )
    parser.add_argument(
        "--compare", action="store_true", help="strace and cProfile too"
    )
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
