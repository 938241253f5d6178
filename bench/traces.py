"""What writing a trace and reading it back cost, per line, call and byte, in CPU time.

    traces.py [--rounds N] [--lines N] [--python PATH]

Lines are written by write_trace.c as the supervisor writes them, beside a program that
only hashes and stores the same bytes. Calls go the whole way: a program that does
nothing else runs with each of its calls recorded, and what it did not use of the CPU
time itself was the supervisor's. Exit code 1 when a budget is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from budgets import Budgets
from startup import environment_of, sandpit_command
from timing import Command, Series, become_subreaper, time_in_turn, time_once

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/package"
CALLS = """
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
fib(29)
"""


def build_writer() -> str:
    """Build write-trace in the package's build folder; its path."""
    target = "bench/write-trace"
    ninja = Path(sys.executable).parent / "ninja"
    subprocess.run([ninja, "-C", BUILD, "--quiet", target], check=True)
    return str(BUILD / target)


def end_of(trace: Path) -> dict[str, Any]:
    """The last line of a trace."""
    with open(trace, "rb") as file:
        file.seek(max(0, trace.stat().st_size - 8192))
        end: dict[str, Any] = json.loads(file.read().splitlines()[-1])
    return end


def measure_lines(
    folder: Path, program: str, lines: int, rounds: int
) -> dict[str, float]:
    """Seconds of CPU for the whole trace, by what is done to it."""
    trace, bare = folder / "lines.sptrace", folder / "bare"
    writer = build_writer()
    subprocess.run([writer, "lines", trace, str(lines)], check=True)
    environment = dict(os.environ)
    print(f"{lines} lines, {trace.stat().st_size >> 20} MiB")
    series = time_in_turn(
        [
            Command("write", [writer, "lines", str(trace), str(lines)], environment),
            Command("bare", [writer, "bare", str(trace), str(bare)], environment),
            Command("verify", [program, "verify", str(trace)], environment),
            Command("show", [program, "show", str(trace)], environment),
        ],
        rounds,
        warm_up=1,
    )
    cpu = {one.name: one.cpu_median for one in series}
    return {**cpu, "bytes": float(trace.stat().st_size)}


def measure_calls(folder: Path, program: str, python: str, rounds: int) -> float:
    """Nanoseconds of the supervisor's CPU time for one call or return."""
    trace = folder / "calls.sptrace"
    (folder / "calls.py").write_text(CALLS)
    words = sandpit_command(program, python, "trace-only", trace)
    words += ["--calls", "all", str(folder / "calls.py")]
    command = Command("calls", words, environment_of(python))
    each = []
    become_subreaper()
    for _ in range(rounds):
        series = Series("calls")
        time_once(command, series)
        end = end_of(trace)
        if end["lost"] != 0:
            sys.exit(f"{end['lost']} events were lost")
        own = series.cpu_median * 1e9 - int(end["cpu_ns"])
        each.append(own / int(end["counts"]["run"]))
    return statistics.median(each)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    python = os.path.abspath(options.python)
    program = str(Path(sys.executable).parent / "sandpit")
    with tempfile.TemporaryDirectory(prefix="sandpit-bench-") as name:
        folder = Path(name).resolve()
        cpu = measure_lines(folder, program, options.lines, options.rounds)
        call = measure_calls(folder, program, python, options.rounds)
    gigabytes = cpu["bytes"] / 1e9
    budgets = Budgets("traces")
    line = cpu["write"] / options.lines * 1e9
    budgets.check("a line written, ns", line)
    budgets.check("written against hashed and stored", cpu["write"] / cpu["bare"])
    budgets.check("a call or return written in runs, ns", call)
    budgets.check("verified, s for 1 GB", cpu["verify"] / gigabytes)
    read = cpu["show"] - cpu["verify"]  # it verifies as well
    budgets.check("read for show, s for 1 GB", read / gigabytes)
    return budgets.finish()


if __name__ == "__main__":
    sys.exit(main())
