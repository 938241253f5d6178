"""An ordinary user can do all of it: no privilege is needed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import interpreters
import pytest
from abilities import require
from sandpit._program import find_program

NOBODY = 65534

pytestmark = [
    pytest.mark.requires("program"),
    pytest.mark.requires("landlock"),
    pytest.mark.requires("root"),
]


@pytest.fixture
def run_as_nobody(tmp_path_factory):
    """Runs the command as a user without rights, in a folder of its own."""
    folder = tmp_path_factory.getbasetemp().parent / f"nobody-{os.getpid()}"
    folder.mkdir(exist_ok=True)
    os.chown(folder, NOBODY, NOBODY)
    who = {"user": NOBODY, "group": NOBODY, "extra_groups": []}

    def can(command):
        try:
            done = subprocess.run(command, cwd="/", capture_output=True, **who)
        except PermissionError:
            return False
        return done.returncode == 0

    usable = [one for one in interpreters.find() if can([one.path, "-c", "pass"])]
    if not usable or not can([find_program(), "--version"]):
        require("user", "no interpreter or program that another user may start")
    parents = [folder, *folder.parents]
    modes = {one: one.stat().st_mode & 0o7777 for one in parents}
    for one in parents:
        if not modes[one] & 0o001:
            one.chmod(modes[one] | 0o001)

    def run(code, policy="no-network"):
        (folder / "main.py").write_text(code)
        command = [find_program(), "run", "--json", "--policy", policy]
        command += ["--python", usable[-1].path, "main.py"]
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, **who
        )
        assert (folder / "main.sptrace").exists(), done.stderr
        return json.loads(done.stdout)

    yield run
    for one, mode in modes.items():
        one.chmod(mode)
    shutil.rmtree(folder)


def test_user_runs_and_is_held(run_as_nobody, listener):
    result = run_as_nobody("import os\nprint(os.getuid())\n")
    assert (result["stdout"], result["exit_code"]) == (f"{NOBODY}\n", 0)
    code = f"import socket\nsocket.create_connection(('127.0.0.1', {listener.port}))\n"
    result = run_as_nobody(code)
    assert listener.arrived == 0
    assert len(result["violations"]) == 1
    result = run_as_nobody(code, policy="trace-only")
    assert listener.arrived == 1
    assert result["violations"] == []


def test_user_gets_readable_denials_and_children(run_as_nobody):
    result = run_as_nobody("import requests\n")
    assert result["exit_code"] == 1
    assert result["violations"][0]["category"] == "import"
    result = run_as_nobody(
        "import subprocess, sys\n"
        "print(subprocess.check_output([sys.executable, '-c', 'print(6 * 7)']))\n"
    )
    assert result["stdout"] == "b'42\\n'\n"
