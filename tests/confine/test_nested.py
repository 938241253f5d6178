"""sandpit inside sandpit: refused with the reason and the way, and possible that way."""

from __future__ import annotations

import pytest
from programs import PROGRAM

pytestmark = [pytest.mark.requires("program"), pytest.mark.requires("listener")]

INNER = """
import subprocess, sys
done = subprocess.run(
    [sys.argv[1], "run", "--no-trace", *sys.argv[2:], "-c", "print('inner')"],
    capture_output=True, text=True,
)
print(done.returncode, done.stdout + done.stderr, end="")
"""

OUTER = ("--policy", "trace-only")


def test_inner_run_is_refused_with_the_way_to_have_it(sandpit):
    done = sandpit.run(INNER, PROGRAM, options=OUTER)
    assert done.stdout.startswith("125 sandpit: ")
    assert done.stdout.count("\n") == 1
    assert "another sandpit" in done.stdout
    assert "--allow-degraded listener" in done.stdout


def test_inner_run_without_a_listener(sandpit):
    inner = ("--policy", "no-network", "--allow-degraded", "listener")
    done = sandpit.run(INNER, PROGRAM, *inner, options=OUTER)
    assert done.stdout == "0 inner\n"
    assert done.stderr == ""
