"""What a run does on this kernel as it was booted: with Landlock or without it, and where Yama
hides the memory of other processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import abilities
import pytest
from programs import PROGRAM

pytestmark = pytest.mark.requires("program")

POLICIES = ("trace-only", "no-network", "read-only", "default", "strict")


def run(folder: Path, policy: str, *options: str) -> tuple[dict, int]:
    script = folder / "script.py"
    script.write_text("open('made', 'w').close(); print('ran')\n")
    done = subprocess.run(
        [PROGRAM, "run", "--json", "--policy", policy, *options, script],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return json.loads(done.stdout), done.returncode


@pytest.mark.requires("no-landlock")
@pytest.mark.parametrize("policy", POLICIES)
def test_without_landlock_no_program_starts(tmp_path, policy):
    result, code = run(tmp_path, policy)
    assert code == 125
    assert result["error"]["missing"] == ["landlock"]
    assert not (tmp_path / "made").exists()


@pytest.mark.requires("no-landlock")
def test_without_landlock_the_remedy_is_named(tmp_path):
    result, _ = run(tmp_path, "no-network")
    assert "lsm=" in result["error"]["message"]


def test_landlock_is_what_the_kernel_says(tmp_path):
    done = subprocess.run([PROGRAM, "doctor", "--json"], capture_output=True, text=True)
    host = json.loads(done.stdout)["host"]
    assert host["kernel"] == os.uname().release
    assert (host["landlock_abi"] == 0) == (abilities.lack("landlock") is not None)


# A user's run that counts processes has a user namespace of its own, in which it may look.
@pytest.mark.requires("landlock", "hidden-memory")
@pytest.mark.parametrize("policy", ["trace-only", "no-network", "read-only"])
def test_where_memory_is_hidden_no_program_starts(tmp_path, policy):
    result, code = run(tmp_path, policy)
    assert code == 125
    assert result["error"]["missing"] == ["listener"]
    assert "ptrace_scope" in result["error"]["message"]
    assert not (tmp_path / "made").exists()
    result, code = run(tmp_path, "trace-only", "--allow-degraded", "listener")
    assert (result["stdout"], code) == ("ran\n", 0), result
    assert "listener" in result["degraded"]


@pytest.mark.requires("landlock", "listener")
@pytest.mark.parametrize("policy", ["trace-only", "no-network"])
def test_a_program_runs_with_nothing_degraded(tmp_path, policy):
    result, code = run(tmp_path, policy, "--python", sys.executable)
    assert (result["stdout"], code) == ("ran\n", 0), result
    assert result["degraded"] == []
    assert (tmp_path / "made").exists()


LIMITS = """[limits]
memory = "96MiB"
processes = 8
"""
USES_TOO_MUCH = {
    "memory": "kept = b'x' * (300 << 20)\n",
    "processes": """
import os, time
children = []
try:
    while len(children) < 40:
        pid = os.fork()
        if pid == 0:
            time.sleep(60)
            os._exit(0)
        children.append(pid)
except OSError:
    pass
for pid in children:
    os.kill(pid, 9)
print(len(children))
""",
}


def groups_left() -> list[str]:
    """Groups of runs that are over: each is called sandpit-PID-TIME."""
    with open("/proc/self/cgroup", encoding="ascii") as lines:
        own = next(line.rstrip("\n")[3:] for line in lines if line.startswith("0::"))
    parent = Path(f"/sys/fs/cgroup{own}").parent
    names = [one.name for one in parent.glob("sandpit-*")]
    return [one for one in names if not Path(f"/proc/{one.split('-')[1]}").exists()]


@pytest.mark.requires("landlock", "listener", "cgroup2")
@pytest.mark.parametrize("limit", USES_TOO_MUCH)
def test_control_groups_of_version_2_keep_limits(tmp_path, limit):
    (tmp_path / "limits.toml").write_text(LIMITS)
    script = tmp_path / "too_much.py"
    script.write_text(USES_TOO_MUCH[limit])
    command = [PROGRAM, "run", "--json", "--policy", tmp_path / "limits.toml", script]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    result = json.loads(done.stdout)
    assert "limits" in result, result
    assert [result["limits"][one]["by"] for one in USES_TOO_MUCH] == [["cgroup"]] * 2
    assert result["limits"][limit]["reached"], result
    if limit == "memory":
        assert result["status"] == "memory-limit"
        assert result["limits"]["memory"]["measured"] >= 90 << 20
    else:
        assert int(result["stdout"]) == 7  # and itself
    assert groups_left() == []
