"""`sandpit doctor`: true for this machine, and for one that is made to look poorer."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest


def findings(sandpit, **env: str) -> tuple[int, dict]:
    done = sandpit("doctor", "--json", env=env)
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


@pytest.mark.requires("landlock", "listener")
def test_doctor_on_this_machine_finds_every_layer(sandpit):
    status, report = findings(sandpit)
    assert status == 0
    assert report["complete"] is True
    host = report["host"]
    counted = host["cgroup_writable"] or (host["user_namespaces"] and os.geteuid() != 0)
    assert {name: layer["state"] for name, layer in report["layers"].items()} == {
        "landlock": "yes" if host["landlock_abi"] >= 6 else "partly",
        "listener": "yes",
        "limits": "yes" if counted else "partly",
        "arguments": "yes",
        "agent": "yes",
        "trace": "yes",
        "python3": "yes",
    }


@pytest.mark.requires("landlock")
def test_doctor_says_what_an_older_landlock_leaves_to_others(sandpit):
    _, report = findings(sandpit, SANDPIT_FORCE="landlock=2")
    layer = report["layers"]["landlock"]
    assert layer["state"] == "partly"
    assert "ABI 2" in layer["detail"]
    assert "TCP" in layer["detail"]


@pytest.mark.requires("listener")
def test_doctor_says_who_counts_processes(sandpit):
    poor = "cgroup=off,user_namespaces=off"
    _, report = findings(sandpit, SANDPIT_FORCE=poor)
    layer = report["layers"]["limits"]
    assert layer["state"] == "partly"
    assert "each new one is asked about" in layer["detail"]


@pytest.mark.parametrize(
    ("force", "layer"), [("landlock=0", "landlock"), ("listener=off", "listener")]
)
def test_doctor_names_a_missing_layer_and_how_to_get_it(sandpit, force, layer):
    status, report = findings(sandpit, SANDPIT_FORCE=force)
    assert status == 1
    assert report["complete"] is False
    assert report["layers"][layer]["state"] == "no"
    assert report["layers"][layer]["remedy"]
    text = sandpit("doctor", env={"SANDPIT_FORCE": force})
    assert text.returncode == 1
    assert "--allow-degraded" in text.stdout
    assert report["layers"][layer]["remedy"] in text.stdout


def test_doctor_without_agents_says_so(sandpit, tmp_path):
    status, report = findings(sandpit, SANDPIT_AGENTS=str(tmp_path))
    assert status == 1
    assert report["layers"]["agent"]["state"] == "no"
    _, report = findings(sandpit, SANDPIT_AGENTS=str(tmp_path / "absent"))
    assert "SANDPIT_AGENTS" in report["layers"]["agent"]["detail"]


SECTIONS = ["imports", "fs", "network", "process", "env", "limits"]


@pytest.mark.requires("landlock", "listener")
def test_doctor_says_who_enforces_each_section_as_a_run_does(sandpit):
    _, report = findings(sandpit)
    assert list(report["sections"]) == SECTIONS
    ran = sandpit("run", "--json", "--no-trace", "--policy", "strict", "-c", "pass")
    result = json.loads(ran.stdout)
    for name, section in report["sections"].items():
        assert section["state"] == "yes", section
        assert section["enforced_by"] == result["enforced_by"][name]
        assert section["enforced_by"]
    assert report["recorded_by"] == result["recorded_by"]


@pytest.mark.requires("landlock", "listener")
@pytest.mark.parametrize(
    ("force", "ability"), [("landlock=0", "landlock"), ("listener=off", "listener")]
)
def test_doctor_says_which_sections_cannot_be_kept(sandpit, force, ability):
    _, report = findings(sandpit, SANDPIT_FORCE=force)
    for section in report["sections"].values():
        assert section["state"] == "no"
        assert section["missing"] == ability
        assert f"--allow-degraded {ability}" in section["detail"]
        assert ability not in section["enforced_by"]
    text = sandpit("doctor", env={"SANDPIT_FORCE": force}).stdout
    assert text.count(f"missing: {ability}") == len(SECTIONS)


@pytest.mark.requires("landlock", "listener")
def test_doctor_fits_a_screen(sandpit):
    assert len(sandpit("doctor").stdout.splitlines()) <= 24


def test_doctor_colours_only_when_asked_or_on_a_terminal(sandpit):
    assert "\x1b" not in sandpit("doctor").stdout
    assert "\x1b" in sandpit("doctor", "--color=always").stdout
    assert "\x1b" in sandpit("doctor", "--color=always", env={"NO_COLOR": "1"}).stdout


@pytest.mark.requires("landlock", "listener")
def test_doctor_looks_at_the_interpreter_it_is_told(sandpit):
    done = sandpit("doctor", "--json", "--python", sys.executable)
    assert done.returncode == 0
    version = f"CPython {sys.version_info[0]}.{sys.version_info[1]}"
    assert version in json.loads(done.stdout)["layers"]["python3"]["detail"]
    absent = sandpit("doctor", "--json", "--python", "/absent/python3")
    assert absent.returncode == 1
    layer = json.loads(absent.stdout)["layers"]["python3"]
    assert layer["state"] == "no"
    assert "/absent/python3" in layer["detail"]


@pytest.mark.requires("mounts")
def test_without_proc_doctor_and_run_say_so(program, tmp_path):
    def without_proc(*arguments: str) -> subprocess.CompletedProcess[str]:
        script = 'mount -t tmpfs none /proc && exec "$@"'
        return subprocess.run(
            ["unshare", "--mount", "sh", "-c", script, "sh", str(program), *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    assert without_proc("--version").returncode == 0
    done = without_proc("run", "-c", "pass")
    assert done.returncode == 125
    assert done.stderr.startswith("sandpit: /proc is not mounted")
    report = without_proc("doctor")
    assert report.returncode == 1
    assert "/proc is not mounted" in report.stdout
    assert "Every policy can be enforced" not in report.stdout
