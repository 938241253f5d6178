"""Random programs, trees and policies: what comes of each operation under sandpit is what the
evaluator says and what the same program does plainly.

Seeds are fixed, so that what once passed passes, and fresh, so that more is tried each time. What
fails is made smaller; `play.py SEED --shrink` does it again.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import interpreters
import pytest
from abilities import require
from play import play_seed
from programs import PROGRAM

pytestmark = [
    pytest.mark.requires("program"),
    pytest.mark.requires("listener"),
    pytest.mark.requires("landlock"),
    pytest.mark.requires("procfs"),
]

COUNT = 200  # operations of one program
NOBODY = 65534
ABIS = range(1, 7)


def fresh(count: int) -> list[int]:
    """Give seeds that nobody has seen."""
    return [random.SystemRandom().randrange(10**6, 10**9) for _ in range(count)]


def check(seeds, force="", observed=False):
    for seed in seeds:
        told = play_seed(seed, COUNT, PROGRAM, {"SANDPIT_FORCE": force}, True, observed)
        assert not told, told


def check_as_nobody(seeds):
    """Play them as a user without rights, where root runs the tests."""
    who = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    program = str(PROGRAM.resolve())
    play = Path(__file__).with_name("play.py")

    def done(*command):
        try:
            return subprocess.run(
                command, cwd="/", capture_output=True, text=True, check=False, **who
            )
        except PermissionError as error:
            return subprocess.CompletedProcess(command, 126, "", str(error))

    usable = [
        one.path for one in interpreters.find()
        if done(one.path, str(play), "--help").returncode == 0
    ]  # fmt: skip
    if not usable or done(program, "--version").returncode != 0:
        require("user", "no interpreter or program that another user may start")
    command = [usable[-1], str(play), "--program", program, "--shrink"]
    told = done(*command, *map(str, seeds))
    assert told.returncode == 0, told.stdout + told.stderr


# ---- a sample


@pytest.mark.parametrize("first", [1, 6])
def test_sample_agrees(first):
    check(range(first, first + 5))


def test_fresh_sample_agrees():
    check(fresh(4))


@pytest.mark.parametrize("abi", ABIS)
def test_sample_agrees_on_older_kernels(abi):
    check([100 + abi], f"landlock={abi}")


def test_sample_agrees_where_it_is_observed():
    """Told of as denied, and done as if there were no policy."""
    check([*range(400, 403), *fresh(2)], observed=True)


@pytest.mark.requires("root")
def test_sample_agrees_for_user():
    check_as_nobody([*range(200, 202), *fresh(2)])


# ---- in full: 56,000 operations


@pytest.mark.oracle
@pytest.mark.parametrize("first", range(1, 101, 10))
def test_all_agrees(first):
    check(range(first, first + 10))


@pytest.mark.oracle
@pytest.mark.parametrize("part", range(4))
def test_fresh_agrees(part):
    check(fresh(10))


@pytest.mark.oracle
@pytest.mark.parametrize("first", [410, 430])
def test_all_agrees_where_it_is_observed(first):
    check([*range(first, first + 15), *fresh(5)], observed=True)


@pytest.mark.oracle
@pytest.mark.parametrize("abi", ABIS)
def test_all_agrees_on_older_kernels(abi):
    check([*range(1000 + 100 * abi, 1008 + 100 * abi), *fresh(2)], f"landlock={abi}")


@pytest.mark.oracle
@pytest.mark.requires("root")
@pytest.mark.parametrize("first", [300, 320])
def test_all_agrees_for_user(first):
    check_as_nobody([*range(first, first + 15), *fresh(5)])


def test_seed_makes_the_same_program_each_time(tmp_path):
    command = [
        sys.executable, "-c",
        "import pathlib, play, policies, sys\n"
        "case = play.make_case(7, pathlib.Path('/tmp/x'), 50)\n"
        "print(case.entries, policies.toml(case.lists), [o.source for o in case.operations])",
    ]  # fmt: skip
    folder = Path(__file__).parent
    told = {
        subprocess.run(
            command, cwd=folder, capture_output=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
        ).stdout
        for seed in (1, 2)
    }  # fmt: skip
    assert len(told) == 1
