"""Some of CPython's own tests end as they do without sandpit; `make test-cpython` runs all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from programs import PROGRAM

sys.path.insert(0, str(Path(__file__).resolve().parent))

import exclusions

HERE = Path(__file__).resolve().parent
# Of many kinds, and quick: together some seconds.
SAMPLE = [
    "test_asyncio.test_unix_events",
    "test_ctypes",
    "test_fcntl",
    "test_mmap",
    "test_os:*Process*",
    "test_os:*Exec*",
    "test_posix",
    "test_pty",
    "test_select",
    "test_signal:*Wakeup*",
    "test_socket:*BasicUDP*",
    "test_socket:*Unix*",
    "test_sqlite3",
    "test_subprocess:*POSIXProcess*",
    "test_sys",
    "test_tempfile",
    "test_thread",
    "test_threading:*Local*",
]


@pytest.mark.requires("program", "landlock", "listener", "cpython-tests")
def test_sample_ends_as_under_plain_python(tmp_path):
    command = [sys.executable, HERE / "run_suite.py", "--program", PROGRAM.resolve()]
    command += ["--kept", tmp_path, *SAMPLE]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def listed(folder: Path, text: str) -> exclusions.Exclusions:
    path = folder / "exclusions.toml"
    path.write_text(text)
    return exclusions.load(path)


BOTH = ("passed", "failed")
ENTRY = '[[differs]]\ntests = ["test.test_x.A"]\nversions = ["3.13"]\nreason = "so"\n'


def test_an_excluded_test_takes_its_modules_ending_along(tmp_path):
    one = listed(tmp_path, ENTRY)
    differing = {"test.test_x.A.test_a": BOTH, "test_x": exclusions.FAILED}
    left, needed = one.split("3.13", differing)
    assert (left, needed) == ({}, set(one.differs))
    crashed = {**differing, "test_x": ("exit code 0", "signal 11")}
    assert one.split("3.13", crashed)[0] == {"test_x": ("exit code 0", "signal 11")}
    assert one.split("3.12", differing)[0] == differing
    assert (
        "test.test_x.AB.test_a" in one.split("3.13", {"test.test_x.AB.test_a": BOTH})[0]
    )


def test_an_entry_that_nothing_needs_is_stale_where_its_module_ran(tmp_path):
    one = listed(tmp_path, ENTRY)
    assert one.stale("3.13", ["test_x"], set()) == list(one.differs)
    assert one.stale("3.13", ["test_x"], set(one.differs)) == []
    assert one.stale("3.13", ["test_xy"], set()) == []
    assert one.stale("3.12", ["test_x"], set()) == []
    sometimes = listed(tmp_path, ENTRY + "sometimes = true\n")
    assert sometimes.stale("3.13", ["test_x"], set()) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[differs]]\ntests = ["a"]\n', "lacks reason"),
        ('[[differs]]\nreason = "a"\n', "lacks tests"),
        (ENTRY + "often = 1\n", "has often"),
        ("[[others]]\n", "no such list: others"),
    ],
)
def test_a_wrong_entry_is_told(tmp_path, text, said):
    with pytest.raises(ValueError, match=said):
        listed(tmp_path, text)


def test_the_list_itself_gives_a_reason_for_each(tmp_path):
    one = exclusions.load()
    assert all(each.reason for each in (*one.differs, *one.not_run))
