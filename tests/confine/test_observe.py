"""Observing: what the policy's rules would deny is recorded and done."""

from __future__ import annotations

import json

import pytest

pytestmark = [
    pytest.mark.requires("program"),
    pytest.mark.requires("listener"),
    pytest.mark.requires("landlock"),
]

POLICY = """
extends = "no-network"
[imports]
deny = ["colorsys"]
"""
# One statement is told once, as its import event is.
IMPORTS = "import colorsys, ftplib\nfor i in range(3):\n    import colorsys\nprint('in')\n"


@pytest.fixture
def policy(tmp_path):
    path = tmp_path / "watch.toml"
    path.write_text(POLICY)
    return ("--policy", str(path))


def test_rule_denies_where_it_is_enforced(sandpit, policy):
    done = sandpit.run(IMPORTS, options=policy)
    assert done.returncode == 1
    assert [e["action"] for e in sandpit.events("violation")] == ["deny"]


@pytest.mark.parametrize("way", ["option", "policy"])
def test_denied_import_is_done_and_recorded(sandpit, policy, tmp_path, way):
    if way == "policy":
        (tmp_path / "watch.toml").write_text('mode = "observe"\n' + POLICY)
    options = (*policy, "--observe") if way == "option" else policy
    done = sandpit.run(IMPORTS, options=options)
    assert (done.returncode, done.stdout, done.stderr) == (0, "in\n", "")
    told = sandpit.events("violation")
    assert [(e["target"], e["line"], e["action"]) for e in told] == [
        ("colorsys", 1, "observe"),
        ("ftplib", 1, "observe"),
        ("colorsys", 3, "observe"),
    ]
    assert all(" would be denied by policy " in e["message"] for e in told)
    assert told[0]["message"].endswith(told[0]["hint"])
    # The acts themselves are there too.
    imported = [e["module"] for e in sandpit.events("import")]
    assert imported.count("colorsys") >= 2
    assert "ftplib" in imported
    assert sandpit.verify() == 0


def test_what_no_policy_allows_is_denied_all_the_same(sandpit, policy, tmp_path):
    script = (
        "import os\nopen('f', 'w').close()\n"
        "try: os.chmod('f', 0o4755)\nexcept PermissionError: print('no')\n"
    )
    done = sandpit.run(script, options=(*policy, "--observe"))
    assert (done.returncode, done.stdout) == (0, "no\n"), done.stderr
    assert (tmp_path / "f").stat().st_mode & 0o4000 == 0
    (one,) = sandpit.events("violation")
    assert (one["operation"], one["action"]) == ("chmod", "deny")
    assert "would be" not in one["message"]


def test_observed_violation_stops_nothing(sandpit, policy, tmp_path):
    (tmp_path / "watch.toml").write_text(
        'mode = "observe"\non_violation = "stop"\n' + POLICY
    )
    done = sandpit.run(IMPORTS, options=policy)
    assert (done.returncode, done.stdout) == (0, "in\n"), done.stderr
    # What is denied under every policy does.
    script = "import os\nopen('f', 'w').close()\nos.chmod('f', 0o4755)\n"
    assert sandpit.run(script, options=policy).returncode == 126


def test_observed_violations_can_fail_a_run(sandpit, policy):
    done = sandpit.run(IMPORTS, options=(*policy, "--observe", "--fail-on-violation"))
    assert (done.returncode, done.stdout) == (126, "in\n")


def test_result_tells_of_observed_violations(sandpit, policy):
    done = sandpit.run(IMPORTS, options=(*policy, "--observe", "--json"))
    result = json.loads(done.stdout)
    assert (result["status"], result["stdout"]) == ("ok", "in\n")
    assert {v["action"] for v in result["violations"]} == {"observe"}
    assert [(v["target"], v["count"]) for v in result["violations"]] == [
        ("colorsys", 1),
        ("ftplib", 1),
        ("colorsys", 1),
    ]
