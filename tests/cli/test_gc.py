"""`sandpit gc`: removes the private folders that no run holds, and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

pytestmark = [pytest.mark.requires("program")]


@pytest.fixture
def base(tmp_path):
    folder = tmp_path / "base"
    folder.mkdir()
    return folder


def leave(base, name="sandpit-tmp-Abc123"):
    """What a machine that lost its power would leave."""
    folder = base / name
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "file").write_text("x")
    return folder


def test_leftovers_are_removed(sandpit, base):
    one = leave(base)
    other = leave(base, "sandpit-api-abcd_123")
    (one / "deep").chmod(0)
    done = sandpit("gc", base)
    assert done.returncode == 0
    assert sorted(done.stdout.split("\n")) == [
        "",
        f"removed {other}",
        f"removed {one}",
    ]
    assert os.listdir(base) == []
    assert sandpit("gc", base).stdout == "nothing was left behind\n"


def test_a_dry_run_removes_nothing(sandpit, base):
    one = leave(base)
    done = sandpit("gc", "-n", base)
    assert (done.returncode, done.stdout) == (0, f"left {one}\n")
    assert (one / "file").read_text() == "x"


def test_folders_for_temporary_files_are_looked_in(sandpit, base):
    one = leave(base)
    done = sandpit("gc", "--dry-run", env={"TMPDIR": str(base)})
    assert f"left {one}\n" in done.stdout


@pytest.mark.parametrize(
    "name",
    [
        "sandpit-tmp-short",
        "sandpit-tmp-Abc123x",
        "sandpit-tmp-Abc-12",
        "sandpit-tmp-",
        "my-sandpit-tmp-Abc123",
        "sandpit",
    ],
)
def test_what_only_looks_alike_stays(sandpit, base, name):
    one = leave(base, name)
    done = sandpit("gc", base)
    assert (done.returncode, done.stdout) == (0, "nothing was left behind\n")
    assert (one / "file").exists()


def test_links_and_files_of_that_name_stay(sandpit, base, tmp_path):
    target = tmp_path / "target"
    target.mkdir()
    (target / "file").write_text("x")
    (base / "sandpit-tmp-Abc123").symlink_to(target)
    (base / "sandpit-tmp-Def456").write_text("x")
    assert sandpit("gc", base).stdout == "nothing was left behind\n"
    assert (target / "file").exists()
    assert sorted(os.listdir(base)) == ["sandpit-tmp-Abc123", "sandpit-tmp-Def456"]


@pytest.mark.requires("root")
def test_folders_of_others_stay(sandpit, base):
    one = leave(base)
    shutil.chown(one, 65534)
    assert sandpit("gc", base).stdout == "nothing was left behind\n"
    assert (one / "file").exists()


HOLD = "import sys; print('held', flush=True); sys.stdin.read()"


@pytest.mark.requires("landlock")
def test_the_folder_of_a_live_run_stays(program, sandpit, base, tmp_path):
    policy = tmp_path / "private.toml"
    policy.write_text('mode = "observe"\n[fs]\nallow_write = ["{tmp}"]\n')
    run = subprocess.Popen(
        [program, "run", "--no-trace", "--policy", policy, "-c", HOLD],
        env={**os.environ, "TMPDIR": str(base)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert run.stdout.readline() == "held\n"
    (folder,) = os.listdir(base)
    assert sandpit("gc", base).stdout == "nothing was left behind\n"
    assert os.listdir(base) == [folder]
    run.communicate("")
    assert run.returncode == 0
    assert os.listdir(base) == []


@pytest.mark.requires("landlock")
def test_the_folders_of_the_api_stay_while_it_uses_them(sandpit, base, monkeypatch):
    import tempfile

    import sandpit as api

    monkeypatch.setattr(tempfile, "tempdir", str(base))
    result = api.run_string("open('out.txt', 'w').write('x')")
    assert len(os.listdir(base)) == 1
    assert sandpit("gc", base).stdout == "nothing was left behind\n"
    assert result.read("out.txt") == b"x"
    del result
    assert os.listdir(base) == []


def test_bad_input_is_said(sandpit, base):
    done = sandpit("gc", base / "absent")
    assert done.returncode == 2
    assert "absent" in done.stderr
