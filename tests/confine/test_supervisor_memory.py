"""What the supervisor holds does not grow with the run."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.requires("program"), pytest.mark.requires("listener")]

BURST = """
import os, sys
print(os.getppid(), flush=True)
def leaf():
    pass
def burst(count):
    for _ in range(count):
        leaf()
burst(int(sys.argv[1]))
"""


def private_kib(pid: int) -> int:
    """What a process has for itself; the rings are shared."""
    try:
        found = re.search(r"RssAnon:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return int(found[1]) if found else 0


def peak_kib(sandpit, calls, count):
    """The most that was seen while the run lasted."""
    process = subprocess.Popen(
        sandpit.argv(
            BURST,
            count,
            options=("--quiet", "--policy", "trace-only", "--calls", calls),
        ),
        cwd=sandpit.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    boss = int(process.stdout.readline())
    peak = 0
    while process.poll() is None:
        peak = max(peak, private_kib(boss))
        time.sleep(0.005)
    process.communicate()
    assert process.returncode == 0
    assert sandpit.verify() == 0
    return peak


@pytest.mark.parametrize(
    ("calls", "name"),
    [("all", "run.sptrace"), ("all", "run.sptrace.zst"), ("folded", "run.sptrace")],
)
def test_supervisor_memory_is_flat_over_ten_million_events(sandpit, calls, name):
    """A call at `all` is two events, a call and a return."""
    sandpit.trace = sandpit.folder / name
    acts = 500_000 if calls == "all" else 1_000_000
    short = peak_kib(sandpit, calls, acts)
    long = peak_kib(sandpit, calls, 10 * acts)
    assert short > 0 and long < 8 << 10
    assert long < short + 512
