"""What the supervisor holds in memory, however long a run is.

    memory.py [--python PATH]

A program of a million events and one of ten times as many: calls and returns at `all`,
calls at `folded`, and opens, each a line, of which there are a tenth (ten million would
fill two gigabytes); plain and compressed. Its private memory (RssAnon) is looked at all
the while. Exit code 1 when a budget is missed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from budgets import Budgets
from startup import environment_of, sandpit_command

LOOK_S = 0.005

CALLS = """
import sys
def leaf():
    pass
def burst(count):
    for _ in range(count):
        leaf()
burst(int(sys.argv[1]))
"""
OPENS = """
import os, sys
for _ in range(int(sys.argv[1])):
    os.close(os.open("program.py", os.O_RDONLY))
"""
# Program, level, what the trace is called, how many of its acts make a million events.
KINDS = {
    "calls at all": (CALLS, "all", "run.sptrace", 500_000),
    "calls at all, compressed": (CALLS, "all", "run.sptrace.zst", 500_000),
    "calls at folded": (CALLS, "folded", "run.sptrace", 1_000_000),
    "opens": (OPENS, "off", "run.sptrace", 100_000),
    "opens, compressed": (OPENS, "off", "run.sptrace.zst", 100_000),
}


def children_of(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(word) for word in text.split()]


def private_kib(pid: int) -> int:
    try:
        found = re.search(r"RssAnon:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        found = None
    return int(found[1]) if found else 0


def peak_mib(command: list[str], folder: Path, environment: dict[str, str]) -> float:
    """Run it; the most that the keeper's child was seen to hold."""
    peak = 0
    with subprocess.Popen(command, cwd=folder, env=environment) as process:
        while process.poll() is None:
            for child in children_of(process.pid):
                peak = max(peak, private_kib(child))
            time.sleep(LOOK_S)
    if process.returncode != 0:
        raise SystemExit(f"exit code {process.returncode}: {' '.join(command)}")
    return peak / 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    python = os.path.abspath(options.python)
    program = str(Path(sys.executable).parent / "sandpit")
    budgets = Budgets("memory")
    most = 0.0
    grown = 0.0
    for name, (text, level, trace, count) in KINDS.items():
        with tempfile.TemporaryDirectory(prefix="sandpit-bench-") as folder:
            place = Path(folder).resolve()
            (place / "program.py").write_text(text)
            peaks = []
            for times in (1, 10):
                command = sandpit_command(program, python, "trace-only", place / trace)
                command += ["--calls", level, "program.py", str(count * times)]
                peaks.append(peak_mib(command, place, environment_of(python)))
                size = (place / trace).stat().st_size / (1 << 20)
                print(f"{name}: {count * times:,} acts, {size:,.1f} MiB of trace, "
                      f"{peaks[-1]:.2f} MiB held", flush=True)  # fmt: skip
        most = max(most, *peaks)
        grown = max(grown, peaks[1] - peaks[0])
    budgets.check("held, MiB", most)
    budgets.check("more at ten times the events, MiB", grown)
    return budgets.finish()


if __name__ == "__main__":
    sys.exit(main())
