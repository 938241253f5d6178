"""`sandpit run` on what cannot run: one clear line, the right exit code, no trace."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

HELLO = 'print("hello")\n'


def one_line(text: str) -> bool:
    return text.startswith("sandpit: ") and text.count("\n") == 1


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "hello.py"
    path.write_text(HELLO)
    return path


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["absent.py"], 127, "absent.py"),
        (["--policy", "no-netwrok", "hello.py"], 125, "no-network"),
        (["--policy", "", "hello.py"], 125, "--policy"),
        (["--python", "/absent/python3", "hello.py"], 127, "/absent/python3"),
        (["-o", "absent/x.sptrace", "hello.py"], 125, "absent"),
        (["--no-trace", "-o", "x.sptrace", "hello.py"], 125, "--no-trace"),
        ([], 125, "nothing to run"),
        (["-m"], 125, "-m needs a value"),
        (["-c"], 125, "-c needs a value"),
    ],
)
def test_what_cannot_run_is_one_clear_line(
    sandpit, script, tmp_path, arguments, status, says
):
    done = sandpit("run", *arguments)
    assert (done.returncode, done.stdout) == (status, "")
    assert one_line(done.stderr)
    assert says in done.stderr
    assert list(tmp_path.iterdir()) == [script]


def test_what_keeps_an_interpreter_from_beginning_is_named(sandpit, script, tmp_path):
    assert sandpit("run", "--no-trace", "--open-files", "64", script).returncode == 0
    done = sandpit("run", "--no-trace", "--open-files", "3", script)
    assert done.returncode == 125
    assert "limit of open files (3)" in done.stderr.splitlines()[-1]
    policy = tmp_path / "policy.toml"
    policy.write_text('[fs]\ndeny_read = ["**/libc.so*"]\n')
    done = sandpit("run", "--no-trace", "--policy", policy, script)
    assert done.returncode == 125
    last = done.stderr.splitlines()[-1]
    assert "the policy denies reading" in last
    assert "libc.so" in last


def test_script_may_be_called_like_an_option(sandpit, tmp_path):
    for name in ("-dash.py", "--json"):
        (tmp_path / name).write_text("import sys\nprint(sys.argv)\n")
        done = sandpit("run", "--no-trace", "--", name, "-x")
        assert (done.returncode, done.stdout) == (0, f"['{name}', '-x']\n"), done.stderr


def test_result_that_cannot_be_printed_says_why(sandpit, script):
    with open("/dev/full", "w") as full:
        done = sandpit("run", "--json", script, stdout=full)
    assert done.returncode == 125
    assert "No space left on device" in done.stderr


def test_interpreter_that_is_no_python_is_refused(sandpit, script, tmp_path):
    done = sandpit("run", "--python", "/bin/sh", script)
    assert done.returncode == 125
    last = done.stderr.splitlines()[-1]
    assert last.startswith("sandpit: ")
    assert "/bin/sh" in last
    assert "--allow-degraded agent" in last


def test_policy_that_is_unknown_lists_the_known(sandpit, script):
    done = sandpit("run", "--policy", "nothing", script)
    assert done.returncode == 125
    assert "trace-only" in done.stderr
    assert "no-network" in done.stderr


def test_trace_path_that_is_a_folder_is_refused_before_the_program(sandpit, tmp_path):
    (tmp_path / "made.py").write_text("open('made', 'w').close()\n")
    (tmp_path / "here").mkdir()
    done = sandpit("run", "-o", "here", "made.py")
    assert done.returncode == 125
    assert one_line(done.stderr)
    assert not (tmp_path / "made").exists()
    assert list((tmp_path / "here").iterdir()) == []


def test_trace_folder_without_write_permission_is_refused(sandpit, script, tmp_path):
    if os.geteuid() == 0:
        folder = "/proc"  # not even root may make a file there
    else:
        (tmp_path / "closed").mkdir()
        (tmp_path / "closed").chmod(stat.S_IRUSR | stat.S_IXUSR)
        folder = str(tmp_path / "closed")
    done = sandpit("run", "-o", f"{folder}/x.sptrace", script)
    assert (done.returncode, done.stdout) == (125, "")
    assert one_line(done.stderr)


@pytest.mark.parametrize("content", [b"\xff\xfe\xff", b"x = '\xe9'\n", b"x = 1\0\n"])
def test_file_that_python_refuses_is_reported_as_by_python(
    sandpit, tmp_path, content, program
):
    (tmp_path / "bad.py").write_bytes(content)
    plain = subprocess.run(
        [sys.executable, "bad.py"], cwd=tmp_path, capture_output=True, check=False
    )
    done = sandpit("run", "--python", sys.executable, "bad.py")
    cut_short = content[-2:] == b"\0\n" and sys.version_info < (3, 11, 4)
    assert plain.returncode == (0 if cut_short else 1)
    assert done.returncode == plain.returncode
    assert ("Error" in done.stderr) == (plain.returncode == 1)
    assert "sandpit:" not in done.stderr
    assert (tmp_path / "bad.sptrace").exists()


def test_folder_without_main_is_reported_as_by_python(sandpit, tmp_path):
    (tmp_path / "empty").mkdir()
    done = sandpit("run", "empty")
    assert done.returncode == 1
    assert "can't find '__main__' module" in done.stderr


def test_older_trace_stays_when_the_run_is_refused(sandpit, script, tmp_path):
    old = tmp_path / "hello.sptrace"
    old.write_text("old\n")
    assert sandpit("run", "--policy", "nothing", script).returncode == 125
    assert old.read_text() == "old\n"
    assert sandpit("run", script).returncode == 0
    assert old.read_text() != "old\n"


@pytest.mark.parametrize("written_to", ["hello.py", "link.py"])
@pytest.mark.parametrize("run", ["hello.py", "link.py"])
def test_trace_never_replaces_the_script(sandpit, script, tmp_path, run, written_to):
    (tmp_path / "link.py").symlink_to("hello.py")
    done = sandpit("run", "-o", written_to, run)
    if (run, written_to) == ("hello.py", "link.py"):
        assert done.returncode == 0  # the link gives way, the script stays
    else:
        assert (done.returncode, done.stdout) == (125, "")
        assert one_line(done.stderr)
        assert (tmp_path / "link.py").is_symlink()
    assert script.read_text() == HELLO


def test_script_named_like_a_trace_is_kept(sandpit, tmp_path):
    (tmp_path / "odd.sptrace").write_text(HELLO)
    assert sandpit("run", "odd.sptrace").returncode == 125
    assert (tmp_path / "odd.sptrace").read_text() == HELLO


def test_script_that_is_a_descriptor_is_refused_with_the_way_to_give_it(sandpit):
    reading, writing = os.pipe()
    os.write(writing, HELLO.encode())
    os.close(writing)
    try:
        done = sandpit("run", f"/dev/fd/{reading}", pass_fds=(reading,))
    finally:
        os.close(reading)
    assert (done.returncode, done.stdout) == (127, "")
    assert one_line(done.stderr)
    assert "sandpit run -" in done.stderr


def test_trace_whose_folder_the_program_removed_is_told_of(sandpit, tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    name = f"{tmp_path.parent.name}-{tmp_path.name}.sptrace"
    code = f"import os, shutil; os.chdir('/'); shutil.rmtree({str(own)!r}); exit(3)"
    done = sandpit("run", "-o", name, "-c", code, cwd=own)
    assert (done.returncode, done.stdout) == (3, "")
    assert one_line(done.stderr)
    place = Path(done.stderr.rpartition(" is '")[2].rstrip("'\n"))
    try:
        assert place.name == name
        assert sandpit("verify", "--quiet", place).returncode == 0
    finally:
        place.unlink()
