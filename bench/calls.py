"""What call tracing costs: twelve of pyperformance's programs, whole runs with the
trace written, against the same programs untraced.

    calls.py [--rounds N] [--python PATH] [--levels off,first,folded,all]
             [--only NAME,...] [--compare]

pyperformance must be installed for the interpreter of the bench (its programs are used,
not its runner). With --compare, cProfile, and VizTracer where the traced interpreter
has it, take part in the same rounds, each writing its file. Exit code 1 when a budget
is missed.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from budgets import Budgets
from timing import Command, Series, time_in_turn

PLAIN = "untraced"
LEVELS = ("off", "first", "folded", "all")
IDS = "deepcopy"  # asks id() for each object: an audit event each

# Program, its arguments, and loops that make it run for about 0.3 s untraced. From
# nearly no calls (nbody) to nearly nothing else (deltablue, generators), as in the
# whole suite.
PROGRAMS: dict[str, tuple[list[str], int]] = {
    "chaos": ([], 4),
    "coroutines": ([], 10),
    "deepcopy": ([], 500),
    "deltablue": ([], 60),
    "float": ([], 5),
    "generators": ([], 5),
    "go": ([], 2),
    "json_dumps": ([], 25),
    "logging": (["format"], 10000),
    "nbody": ([], 4),
    "pyflate": ([], 1),
    "richards": ([], 6),
}


@dataclass(frozen=True)
class Setting:
    """What is the same for every program."""

    python: str
    program: str
    benchmarks: Path
    folder: Path
    levels: tuple[str, ...]
    compare: bool


def find_benchmarks() -> Path:
    spec = importlib.util.find_spec("pyperformance")
    for place in (spec and spec.submodule_search_locations) or ():
        folder = Path(place) / "data-files" / "benchmarks"
        if folder.is_dir():
            return folder
    sys.exit("pyperformance is not installed: python3 -m pip install pyperformance")


def has_viztracer(python: str) -> bool:
    asked = subprocess.run(
        [python, "-c", "import viztracer"], stderr=subprocess.DEVNULL, check=False
    )
    return asked.returncode == 0


def commands(setting: Setting, name: str) -> list[Command]:
    arguments, loops = PROGRAMS[name]
    script = str(setting.benchmarks / f"bm_{name}" / "run_benchmark.py")
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PYTHON", "LD_")) and key != "VIRTUAL_ENV"
    }
    environment["PYTHONPATH"] = str(Path(__file__).resolve().parent / "standin")
    environment["PYPERF_LOOPS"] = str(loops)
    python = setting.python
    chosen = [Command(PLAIN, [python, script, *arguments], environment)]
    for level in setting.levels:
        words = [setting.program, "run", "--quiet", "--policy", "trace-only"]
        words += ["--calls", level, "--python", python]
        words += ["-o", str(setting.folder / "run.sptrace"), "--", script, *arguments]
        chosen.append(Command(level, words, environment))
    if setting.compare:
        output = ["-o", str(setting.folder / "other.json")]
        others = ["cProfile"] + ["viztracer"] * has_viztracer(python)
        for other in others:
            quiet = ["--quiet"] if other == "viztracer" else []
            words = [python, "-m", other, *quiet, *output, script, *arguments]
            chosen.append(Command(other, words, environment))
    return chosen


def ratios(series: list[Series]) -> dict[str, tuple[float, float]]:
    """Wall and CPU of each against the first, medians."""
    plain = series[0]
    return {
        one.name: (
            one.wall_median / plain.wall_median,
            one.cpu_median / plain.cpu_median,
        )
        for one in series[1:]
    }


def print_row(name: str, plain: str, cells: dict[str, tuple[float, float]]) -> None:
    texts = (f"{wall:8.2f} {cpu:6.2f}" for wall, cpu in cells.values())
    print(f"{name:18}{plain:>9}" + "".join(texts), flush=True)


def geometric_mean(
    rows: list[dict[str, tuple[float, float]]],
) -> dict[str, tuple[float, float]]:
    def mean(name: str, place: int) -> float:
        return math.exp(sum(math.log(row[name][place]) for row in rows) / len(rows))

    return {name: (mean(name, 0), mean(name, 1)) for name in rows[0]}


def version_of(python: str) -> tuple[int, int]:
    asked = "import sys; print(*sys.version_info[:2])"
    words = subprocess.run(
        [python, "-c", asked], capture_output=True, text=True, check=True
    ).stdout.split()
    return int(words[0]), int(words[1])


def check_budgets(
    setting: Setting,
    means: dict[str, tuple[float, float]],
    ids: dict[str, tuple[float, float]] | None,
) -> int:
    """`ids`: the row of the program that asks for many; None: it was not among them."""
    budgets = Budgets("calls")
    versions = "3.12 on" if version_of(setting.python) >= (3, 12) else "to 3.11"
    for level in setting.levels:
        budgets.check(
            "off" if level == "off" else f"{level}, {versions}", means[level][0]
        )
    if ids is not None and "off" in ids:
        budgets.check("off, many id()", ids["off"][0])
    slowest = max(means[level][0] for level in setting.levels)
    for other in ("cProfile", "viztracer"):
        if other in means:
            budgets.check(f"slowest level against {other}", slowest / means[other][0])
    return budgets.finish()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--levels", default=",".join(LEVELS))
    parser.add_argument("--only", default=",".join(PROGRAMS), help="programs")
    parser.add_argument("--compare", action="store_true", help="other tracers too")
    options = parser.parse_args()
    own = str(Path(sys.executable).parent / "sandpit")
    rows_by_name: dict[str, dict[str, tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="sandpit-bench-") as name:
        setting = Setting(
            os.path.abspath(options.python),
            os.environ.get("SANDPIT_PROGRAM", own),
            find_benchmarks(),
            Path(name),
            tuple(level for level in LEVELS if level in options.levels.split(",")),
            options.compare,
        )
        for one in options.only.split(","):
            series = time_in_turn(commands(setting, one), options.rounds, warm_up=1)
            row = rows_by_name[one] = ratios(series)
            if len(rows_by_name) == 1:
                heads = "".join(f"{name:>15}" for name in row)
                print(f"{'':18}{'ms':>9}{heads}    (wall, CPU of both sides)")
            print_row(one, f"{series[0].wall_median * 1e3:.0f}", row)
    means = geometric_mean(list(rows_by_name.values()))
    print_row("geometric mean", "", means)
    print()
    return check_budgets(setting, means, rows_by_name.get(IDS))


if __name__ == "__main__":
    sys.exit(main())
