"""`allow` and `deny`: what a run is granted by name, before its policy's rules."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import sandpit

JSON_DENIED = {"imports": {"deny": ["json"]}}


def grants(result: sandpit.Result) -> set[tuple[str, str, str]]:
    return {(one.action, one.kind, one.pattern) for one in result.policy.grants}


def test_denied_import_is_a_violation_by_that_grant():
    result = sandpit.run_string("import json", deny={"import": ["json"]})
    assert result.exit_code == 1
    (violation,) = result.violations
    assert violation.rule == '--deny-import "json"'
    assert sandpit.run_string("import json").exit_code == 0


def test_allowed_import_wins_over_the_policy():
    code = "import json"
    assert sandpit.run_string(code, policy=JSON_DENIED).exit_code == 1
    granted = sandpit.run_string(code, policy=JSON_DENIED, allow={"import": ["json"]})
    assert (granted.exit_code, granted.violations) == (0, ())


@pytest.mark.parametrize(
    ("allow", "deny", "module", "denied"),
    [
        # the more specific one, whichever it is
        (["xml.dom"], ["xml"], "xml.dom.minidom", False),
        (["xml"], ["xml.dom"], "xml.dom.minidom", True),
        (["xml"], ["xml.dom"], "xml.sax", False),
        # between equals, the one that denies
        (["xml"], ["xml"], "xml", True),
    ],
)
def test_most_specific_grant_holds(allow, deny, module, denied):
    result = sandpit.run_string(
        f"import {module}",
        policy="trace-only",
        allow={"import": allow},
        deny={"import": deny},
    )
    assert (result.exit_code != 0) is denied, result.stderr


def test_grants_stand_in_result_and_trace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = sandpit.run_string(
        "pass",
        policy="trace-only",
        allow={
            "read": ["data/*.csv", "~/x", "../y/./z", Path("[odd]*"), "/a/**/b"],
            "run": ["git", "bin/tool", Path("tool")],
            "net": ["example.com:443", "unix:sock", "unix:@name"],
            "env": ["LC_*"],
        },
    )
    here = os.path.realpath(tmp_path)
    above = os.path.dirname(here)
    expected = {
        ("allow", "read", f"{here}/data/*.csv"),
        ("allow", "read", "~/x"),
        ("allow", "read", f"{above}/y/z"),
        ("allow", "read", f"{here}/[[]odd][*]"),
        ("allow", "read", "/a/**/b"),
        ("allow", "run", "git"),
        ("allow", "run", f"{here}/bin/tool"),
        ("allow", "run", f"{here}/tool"),
        ("allow", "net", "example.com:443"),
        ("allow", "net", f"unix:{here}/sock"),
        ("allow", "net", "unix:@name"),
        ("allow", "env", "LC_*"),
    }
    assert grants(result) == expected
    recorded = result.trace[0]["policy"]["grants"]
    assert {
        (one["action"], one["kind"], one["pattern"]) for one in recorded
    } == expected
    assert result.policy.mode == result.trace[0]["policy"]["mode"] == "enforce"


def test_parents_of_links_are_found_as_the_kernel_finds_them(tmp_path, monkeypatch):
    (tmp_path / "deep" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to("deep/inner")
    monkeypatch.chdir(tmp_path)
    result = sandpit.run_string(
        "pass", policy="trace-only", allow={"read": ["link/../x"]}
    )
    ((_, _, pattern),) = grants(result)
    assert pattern == os.path.realpath(tmp_path) + "/deep/x"


def test_grants_change_the_digest():
    plain = sandpit.run_string("pass", policy="trace-only")
    granted = sandpit.run_string("pass", policy="trace-only", allow={"env": ["X"]})
    assert plain.policy.grants == ()
    assert plain.policy.digest != granted.policy.digest


@pytest.mark.parametrize(
    ("grants", "error", "says"),
    [
        (["json"], TypeError, "allow must map kinds"),
        ({"imports": ["json"]}, ValueError, "'import'"),
        ({"import": "json"}, TypeError, "must be a list"),
        ({"read": Path("x")}, TypeError, "must be a list"),
        ({"import": [5]}, TypeError, r"allow\['import'\]\[0\]"),
        ({"net": [Path("x")]}, TypeError, "must be a str"),
        ({"env": [""]}, ValueError, "empty"),
        ({"env": ["a\0"]}, ValueError, "NUL"),
        ({"net": ["x:99999"]}, sandpit.PolicyError, "--allow-net 'x:99999'.*65535"),
        ({"read": ["{wrk}/x"]}, sandpit.PolicyError, r"did you mean \{work\}"),
        ({"env": ["A=b"]}, sandpit.PolicyError, "="),
    ],
)
def test_bad_grants_are_refused(grants, error, says):
    with pytest.raises(error, match=says):
        sandpit.run_string("pass", allow=grants)


def test_dict_errors_name_the_key():
    with pytest.raises(sandpit.PolicyError) as caught:
        sandpit.run_string(
            "pass",
            policy={
                "fs": {"allow_read": ["/a", "b", 5]},
                "netwrk": {},
                "process": {"fork": "no"},
            },
        )
    assert [problem.message.split(":")[0] for problem in caught.value.problems] == [
        "fs.allow_read[1]",
        "fs.allow_read[2]",
        "netwrk",
        "process.fork",
    ]
    assert (caught.value.line, caught.value.column) == (0, 0)


def test_policy_file_is_read_with_line_and_column(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text('[imports]\ndeny = ["json"]\nalow = ["x"]\n')
    with pytest.raises(sandpit.PolicyError) as caught:
        sandpit.run_string("pass", policy=path)
    assert (caught.value.line, caught.value.column) == (3, 1)
    (problem,) = caught.value.problems
    assert problem.source == str(path)
    assert "did you mean 'allow'" in problem.message
    path.write_text('[imports]\ndeny = ["json"]\n')
    result = sandpit.run_string("import json", policy=path)
    assert result.policy.name == str(path)
    assert "own.toml:2" in result.violations[0].message


def test_calls_come_from_the_policy_unless_given():
    code = "def f(): pass\nf()\nf()\n"
    quiet = sandpit.run_string(code, policy={"trace": {"calls": "off"}})
    assert quiet.summary.get("call", 0) == 0
    loud = sandpit.run_string(code, policy={"trace": {"calls": "off"}}, calls="all")
    assert loud.summary.get("run", 0) + loud.summary.get("call", 0) > 0
