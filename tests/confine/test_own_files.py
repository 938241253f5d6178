"""sandpit's own files stay as they are, under every policy."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from someone import Someone

pytestmark = [
    pytest.mark.requires("program"),
    pytest.mark.requires("listener"),
    pytest.mark.requires("landlock"),
]

TRY = r"""
import os, shutil, sys
folder = sys.argv[1]
stub = os.path.join(folder, "libsandpit-stub.so")
for act in (
    lambda: open(os.path.join(folder, "new"), "w").close(),
    lambda: open(stub, "r+").write("x"),
    lambda: os.truncate(stub, 1),
    lambda: os.chmod(stub, 0o600),
    lambda: os.rename(stub, stub + ".old"),
    lambda: os.link("script.py", os.path.join(folder, "linked")),
    lambda: os.unlink(stub),
    lambda: shutil.rmtree(folder),
):
    try:
        act()
        print("done")
    except PermissionError:
        print("refused")
"""


@pytest.mark.parametrize("policy", ["trace-only", "no-network", "no-process", "default"])
def test_own_files_cannot_be_changed(tmp_path: Path, policy: str) -> None:
    """The agents lie in the folder of the run, as in a project with a `.venv`."""
    found = os.environ.get("SANDPIT_AGENTS")
    someone = Someone(tmp_path, user=False, force="")
    if found is None:
        found = next(
            path.parent
            for prefix in Path(someone.program).parents
            for path in prefix.glob("lib/python3*/site-packages/sandpit/_agents/lib*.so")
        )
    agents = tmp_path / "agents"
    shutil.copytree(found, agents, ignore=shutil.ignore_patterns("*.p"))
    someone.environment["SANDPIT_AGENTS"] = str(agents)
    before = {one.name: one.read_bytes() for one in agents.iterdir()}
    ran = someone.run(TRY, "--policy", policy, arguments=(str(agents),))
    assert {one.name: one.read_bytes() for one in agents.iterdir()} == before
    assert "done" not in ran.result["stdout"]
    refused = ran.events("violation") + ran.events("tamper")
    assert len(refused) >= 8
    other = tmp_path / "other"
    shutil.copytree(agents, other)
    free = someone.run(TRY, arguments=(str(other),))
    assert "done" in free.result["stdout"]
