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
