"""`Policy`, and policies as dicts: read once, by the native program, and then fixed."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest
import sandpit
from sandpit import Policy

NO_JSON = {"description": "no json", "imports": {"deny": ["json"]}}


def test_policy_of_a_dict_is_in_force():
    policy = Policy(NO_JSON, name="no-json")
    assert (policy.name, policy.description) == ("no-json", "no json")
    assert len(policy.digest) == 64
    assert policy.to_dict() == NO_JSON
    result = sandpit.run_string("import json", policy=policy)
    assert result.exit_code == 1
    assert result.policy == sandpit.AppliedPolicy("no-json", policy.digest)
    assert "by policy 'no-json' (rule imports.deny \"json\")" in (
        result.violations[0].message
    )


def test_dict_itself_and_policy_of_it_are_the_same():
    result = sandpit.run_string("import json", policy=NO_JSON)
    assert result.policy.digest == Policy(NO_JSON).digest
    assert result.policy.name == "custom"


@pytest.mark.parametrize("name", ["default", "strict", "trace-only"])
def test_built_in_policy_makes_the_same_again(name):
    policy = Policy.builtin(name)
    assert policy.name == name
    again = Policy(policy.to_dict(), name=name)
    assert again == policy
    assert again.digest == policy.digest
    assert hash(again) == hash(policy)


def test_loaded_policy_keeps_its_lines_and_its_text(tmp_path):
    path = tmp_path / "p.toml"
    path.write_text("extends = 'base.toml'\n[imports]\ndeny_add = ['json']\n")
    (tmp_path / "base.toml").write_text("[imports]\ndeny = ['xml']\n")
    policy = Policy.load(path)
    assert policy.to_dict() == {"imports": {"deny": ["xml", "json"]}}
    path.write_text("broken = 1\n")
    result = sandpit.run_string("import json", policy=policy)
    assert result.policy.name == str(path)
    assert "p.toml:3" in result.violations[0].message
    # What it extends is read again, and must be the same.
    (tmp_path / "base.toml").write_text("[imports]\ndeny = ['csv']\n")
    with pytest.raises(sandpit.PolicyError, match="has changed"):
        sandpit.run_string("import json", policy=policy)


def test_policy_of_text_counts_its_lines():
    policy = Policy.from_toml("[imports]\ndeny = ['json']\n", name="mine")
    assert policy.name == "mine"
    with pytest.raises(sandpit.PolicyError) as caught:
        Policy.from_toml("[imports]\nx = 1\n[fs]\ndeny_read = ['a']\n")
    assert (caught.value.line, caught.value.column) == (2, 1)
    assert [(one.line, one.column) for one in caught.value.problems] == [
        (2, 1),
        (4, 14),
    ]
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.problems == caught.value.problems
    assert again.line == 2


def test_policy_does_not_change():
    policy = Policy(NO_JSON)
    with pytest.raises(AttributeError, match="does not change"):
        policy.name = "x"
    with pytest.raises(AttributeError, match="does not change"):
        del policy._digest
    policy.to_dict()["imports"]["deny"].append("os")
    assert policy.to_dict() == NO_JSON


@pytest.mark.parametrize("way", [pickle.loads, copy.copy, copy.deepcopy])
def test_policy_is_pickled_and_copied(way):
    policy = Policy(NO_JSON, name="no-json")
    again = way(pickle.dumps(policy) if way is pickle.loads else policy)
    assert again == policy
    assert repr(again) == repr(policy)
    assert sandpit.run_string("import json", policy=again).exit_code == 1


@pytest.mark.parametrize(
    ("policy", "problems"),
    [
        ({"fs": {"allow_read": ["/a", "b"]}}, ["fs.allow_read[1]"]),
        ({"fs": {"alow_read": []}, "mode": "x"}, ["fs.alow_read", "mode"]),
        ({"limits": {"wall": None, "cpu": True}}, ["limits.wall", "limits.cpu"]),
        ({"process": {"fork": 1}}, ["process.fork"]),
        ({"imports": {"deny": "json"}}, ["imports.deny"]),
        ({"env": []}, ["env"]),
        ({"extends": "strcit"}, ["extends"]),
        ({"network": {"allow": ["x:y"]}}, ["network.allow[0]"]),
        ({"imports": {"deny": ["a\0b"]}}, ["imports.deny[0]"]),
    ],
)
def test_problems_of_a_dict_name_the_key(policy, problems):
    with pytest.raises(sandpit.PolicyError) as caught:
        Policy(policy)
    assert [one.message.split(":")[0] for one in caught.value.problems] == problems
    with pytest.raises(sandpit.PolicyError) as raised:
        sandpit.run_string("pass", policy=policy)
    assert raised.value.problems == caught.value.problems


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: Policy(["fs"]), TypeError, "is a dict"),
        (lambda: Policy({1: {}}), TypeError, "no str"),
        (lambda: Policy({"fs": {"allow_read": {1, 2}}}), TypeError, "a set"),
        (lambda: Policy({"fs": {"x": b"a"}}), TypeError, "bytes"),
        (lambda: Policy({"limits": {"memory": 1 << 70}}), ValueError, "64 bits"),
        (lambda: Policy({}, name=""), ValueError, "empty"),
        (lambda: Policy.builtin("a/b"), ValueError, "built-in"),
        (lambda: Policy.builtin("strcit"), sandpit.PolicyError, "mean strict"),
        (lambda: Policy.load("/no/such.toml"), sandpit.PolicyError, "No such file"),
        (lambda: Policy.load("/"), sandpit.PolicyError, "a folder"),
        (lambda: Policy.from_toml(b""), TypeError, "is a str"),
        (lambda: Policy.from_toml("a\0"), ValueError, "NUL"),
        (lambda: Policy.from_toml("x = \n"), sandpit.PolicyError, "no TOML"),
        (lambda: sandpit.run_string("1", policy=5), TypeError, "a dict or a"),
        (
            lambda: sandpit.run_string("1", policy="no.toml"),
            sandpit.PolicyError,
            "no.toml",
        ),
    ],
)
def test_what_is_no_policy_is_refused(make, error, says):
    with pytest.raises(error, match=says):
        make()


def test_path_object_is_a_file_even_if_its_name_is_built_in(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("strict").write_text("[imports]\ndeny = ['json']\n")
    result = sandpit.run_string("import os, json", policy=Path("strict"))
    assert result.policy.name == "./strict"
    assert Policy.load("strict").to_dict() == {"imports": {"deny": ["json"]}}


def test_paths_in_a_dict_may_be_path_objects(tmp_path):
    policy = Policy({"fs": {"deny_read": [tmp_path / "x"]}})
    assert policy.to_dict() == {"fs": {"deny_read": [str(tmp_path / "x")]}}
