"""Real programs behave under sandpit as under plain python.

The programs are made from public data sets in the shared folder. A fixed sample runs
with the other tests; all of them run where the marker `real` is asked for.
"""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import interpreters
import pytest
import sandpit
from abilities import shared_folder
from plain import ORDINARY, outcome_of, run_plain

pytestmark = [
    pytest.mark.requires("program"),
    pytest.mark.requires("landlock"),
    pytest.mark.requires("corpus-real"),
]

SETS = {"humaneval": 164, "mbpp": 974, "humaneval-plus": 157, "mbpp-plus": 398}
SAMPLE = 8
TIMEOUT_S = 120
# Programs that only compute run under strict too; some of the other two sets need numpy.
COMBINATIONS = [
    *((name, policy) for name in SETS for policy in ORDINARY),
    ("humaneval", "strict"),
    ("mbpp", "strict"),
]


@pytest.fixture(scope="session", autouse=True)
def same_hashes():
    """Sets print in the same order: by the environment, which policies hand down."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONHASHSEED", "0")
        yield


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """The folder of scripts, one folder for each set."""
    folder = tmp_path_factory.mktemp("real")
    maker = shared_folder("corpus-real") / "corpus-real" / "make_corpus.py"
    subprocess.run([sys.executable, maker, folder], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="session")
def expected():
    """What each script does under plain python, found once for each interpreter."""
    found = {}

    def ask(python, script):
        key = (python.path, script)
        if key not in found:
            found[key] = run_plain(
                python, [script.name], cwd=script.parent
            )
        return found[key]

    return ask


def differences(python, scripts, policy, expected):
    """Run scripts, two at a time; give a line for each that differs."""

    def check(script: Path) -> str | None:
        plain = expected(python, script)
        result = sandpit.run(
            script.name,
            cwd=script.parent,
            policy=policy,
            python=python.path,
            timeout=TIMEOUT_S,
            trace=False,
        )
        if result.violations:
            return f"{script.name}: {result.violations[0]}"
        if outcome_of(result) != plain:
            return (
                f"{script.name}: {result.status} {result.exit_code} "
                f"{result.stdout[:200]!r} {result.stderr[-300:]!r}, "
                f"plain {plain.exit_code} {plain.stdout[:200]!r}"
            )
        return None

    with ThreadPoolExecutor(2) as pool:
        return [line for line in pool.map(check, scripts) if line is not None]


def scripts_of(programs, name):
    scripts = sorted((programs / name).iterdir())
    assert len(scripts) == SETS[name]
    return scripts


@pytest.mark.parametrize(("name", "policy"), COMBINATIONS)
def test_sample_is_as_under_plain_python(python, name, policy, programs, expected):
    scripts = scripts_of(programs, name)
    sample = scripts[:: len(scripts) // SAMPLE][:SAMPLE]
    assert differences(python, sample, policy, expected) == []


@pytest.mark.real
@pytest.mark.parametrize(("name", "policy"), COMBINATIONS)
def test_all_are_as_under_plain_python(name, policy, programs, expected):
    scripts = scripts_of(programs, name)
    own = interpreters.own()
    assert differences(own, scripts, policy, expected) == []
    failing = [one.name for one in scripts if expected(own, one).exit_code != 0]
    assert failing == []
