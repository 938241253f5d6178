"""Root without its capabilities: the program is a user like any other, the trace is kept."""

from __future__ import annotations

import os

import pytest

pytestmark = [
    pytest.mark.requires("program"),
    pytest.mark.requires("root"),
]

OTHER = 65534


@pytest.mark.parametrize("older", [False, True])
def test_trace_in_a_folder_of_another_user(sandpit, older):
    if older:
        sandpit.trace.write_text("old\n")
    os.chown(sandpit.folder, OTHER, OTHER)
    sandpit.folder.chmod(0o755)
    done = sandpit.run("print('hi')")
    assert (done.returncode, done.stdout, done.stderr) == (0, "hi\n", "")
    assert sandpit.verify() == 0
    assert len(list(sandpit.folder.iterdir())) == 2


def test_file_of_another_user_is_closed_to_the_program(sandpit):
    secret = sandpit.folder / "secret"
    secret.write_text("secret")
    secret.chmod(0o600)
    os.chown(secret, OTHER, OTHER)
    done = sandpit.run("open('secret')", options=("--policy", "trace-only"))
    assert done.returncode == 1
    assert "PermissionError" in done.stderr


MEMORY_FILES = r"""
import os
for act in (
    lambda: open("/memfd:sandpit-test", "w").close(),
    lambda: os.mkdir("/memfd:sandpit-folder"),
    lambda: os.rmdir("/memfd:sandpit-folder"),
    lambda: os.rename("/memfd:sandpit-test", "/memfd:sandpit-moved"),
    lambda: os.unlink("/memfd:sandpit-moved"),
):
    try:
        act()
        print("done")
    except OSError as error:
        print(type(error).__name__)
made = os.memfd_create("sandpit-test")
os.write(made, b"text")
with open(f"/proc/self/fd/{made}", "r+") as again:
    print(again.read())
    again.write("more")
os.fchmod(made, 0o600)
print(os.fstat(made).st_size)
"""


@pytest.mark.requires("landlock", "listener")
@pytest.mark.parametrize("policy", ["read-only", "default", "strict", "./glob.toml"])
def test_files_called_as_the_kernel_calls_memory_files(sandpit, policy):
    """`/memfd:name` is what the kernel says of one; in the root folder it is a name."""
    (sandpit.folder / "glob.toml").write_text(
        '[fs]\ndeny_read = ["**/secret"]\nallow_write = ["{work}"]\n'
    )
    plain = sandpit.plain(MEMORY_FILES)
    assert plain.stdout.splitlines() == ["done"] * 5 + ["text", "8"]
    done = sandpit.run(MEMORY_FILES, options=("--policy", policy))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == ["PermissionError"] * 2
    assert "done" not in lines
    assert lines[5:] == ["text", "8"]
    targets = {one["target"] for one in sandpit.events("violation")}
    assert {"/memfd:sandpit-test", "/memfd:sandpit-folder"} <= targets
