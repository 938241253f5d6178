"""What the stub asks of the programs that it is loaded into."""

from __future__ import annotations

import re
import shutil
import subprocess

import abilities
import pytest


@pytest.fixture
def readelf(agents):
    program = shutil.which("readelf")
    if not program:
        abilities.require("cc", "no readelf")

    def read(option: str) -> str:
        command = [program, "-W", option, agents / "libsandpit-stub.so"]
        return subprocess.run(
            command, capture_output=True, text=True, check=True
        ).stdout

    return read


def test_stub_needs_libc_alone(readelf):
    """The loader by name as well, for thread-local data, ended musl programs."""
    needed = re.findall(r"NEEDED.*\[(.*)\]", readelf("-d"))
    assert len(needed) == 1
    assert needed[0].startswith("libc.")


def test_stub_runs_with_old_libraries(readelf):
    versions = {
        tuple(map(int, v.split(".")))
        for v in re.findall(r"GLIBC_([0-9.]+)", readelf("-V"))
    }
    assert versions
    assert max(versions) <= (2, 17)


def test_stub_refers_weakly_to_python_and_the_loader(readelf):
    undefined = [
        line.split() for line in readelf("--dyn-syms").splitlines() if " UND " in line
    ]
    binds = {row[7].split("@")[0]: row[4] for row in undefined if len(row) > 7}
    for name in ("PySys_AddAuditHook", "Py_GetVersion", "dlopen", "dlsym", "dladdr"):
        assert binds[name] == "WEAK", name


def test_agents_export_their_entry_alone(agents):
    nm = shutil.which("nm")
    if not nm:
        abilities.require("cc", "no nm")
    for agent in agents.glob("sandpit-agent-*.so"):
        command = [nm, "-D", "--defined-only", agent]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert [line.split()[-1] for line in done.stdout.splitlines()] == [
            "sp_agent_start"
        ]
