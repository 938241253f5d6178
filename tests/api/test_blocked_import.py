"""A program that imports a network client is stopped, with a message one can act on."""

from __future__ import annotations

import sys

import pytest
import sandpit
from interpreters import own
from plain import run_plain

pytestmark = [pytest.mark.requires("program"), pytest.mark.requires("landlock")]

CODE = 'import requests\nrequests.get("http://example.com")\n'


def check_violation(one):
    assert one.category == "import"
    assert one.operation == "import"
    assert one.target == "requests"
    assert one.line == 1
    assert one.file.endswith("main.py")
    assert one.at.endswith("main.py:1")
    assert one.rule
    assert "requests" in one.message
    assert one.hint
    assert one.action == "deny"
    assert one.count == 1


def check_example(result, python, tmp_path):
    assert result.exit_code == 1
    assert result.status == "error"
    (one,) = result.violations
    check_violation(one)
    assert result.exception.line == 1
    assert one.message in result.stderr
    assert result.policy.name == "no-network"
    saved = result.save(tmp_path / "llm-run.sptrace")
    trace = sandpit.load(saved)
    recorded = [event for event in trace if event["kind"] == "violation"]
    assert [event["seq"] for event in recorded] == [one.seq]
    assert trace[-1]["kind"] == "end"


def test_requests_is_blocked_whether_installed_or_not(python, tmp_path):
    result = sandpit.run_string(CODE, policy="no-network", python=python.path)
    check_example(result, python, tmp_path)
    # Plain python gets past line 1 exactly where it is installed.
    (tmp_path / "main.py").write_text("import requests\n")
    plain = run_plain(python, ["main.py"], cwd=tmp_path)
    assert (plain.exit_code == 0) == python.has("requests")


@pytest.mark.requires("requests")
def test_requests_installed_is_blocked(tmp_path):
    result = sandpit.run_string(CODE, policy="no-network")
    check_example(result, own(), tmp_path)
    allowed = sandpit.run_string("import requests", policy="trace-only")
    assert (allowed.exit_code, allowed.violations) == (0, ())


def test_no_policy_given_means_default():
    result = sandpit.run_string("import requests")
    assert result.policy.name == "default"
    assert len(result.violations) == 1


@pytest.mark.parametrize("error", ["ImportError", "Exception"])
def test_fallback_runs_on_and_the_violation_is_recorded(python, error):
    code = (
        f"try:\n    import requests\nexcept {error} as error:\n    requests = None\n"
        "    print(isinstance(error, ImportError), error.name)\n"
        "print('fallback')\n"
    )
    result = sandpit.run_string(code, policy="no-network", python=python.path)
    assert result.exit_code == 0
    assert result.status == "ok"
    assert result.stdout == "True requests\nfallback\n"
    (one,) = result.violations
    assert (one.category, one.target, one.line) == ("import", "requests", 2)


@pytest.mark.parametrize(
    ("line", "target"),
    [
        ("import urllib.request", "urllib.request"),
        ("from urllib import request", "urllib.request"),
        ("from urllib.request import urlopen", "urllib.request"),
        ("import http.client as c", "http.client"),
        ("import importlib; importlib.import_module('requests')", "requests"),
        ("__import__('requests')", "requests"),
        ("exec('import requests')", "requests"),
        ("import requests.adapters", "requests"),
    ],
)
def test_each_way_of_importing_is_seen(python, line, target):
    result = sandpit.run_string(line, policy="no-network", python=python.path)
    assert result.exit_code == 1
    assert len(result.violations) == 1
    assert result.violations[0].category == "import"
    assert result.violations[0].target.startswith(target)
    assert result.violations[0].line == 1


def test_library_may_import_a_client_for_itself(python):
    code = "import urllib.robotparser, xmlrpc.server\nprint('ok')"
    result = sandpit.run_string(code, policy="no-network", python=python.path)
    assert (result.stdout, result.exit_code, result.violations) == ("ok\n", 0, ())


def test_module_of_the_programs_own_is_reviewed(python):
    result = sandpit.run_string(
        "import helper",
        files={"helper.py": "x = 1\nimport ftplib\n"},
        policy="no-network",
        python=python.path,
    )
    (one,) = result.violations
    assert (one.target, one.line) == ("ftplib", 2)
    assert one.file.endswith("helper.py")


def test_repeats_are_one_violation_with_a_count():
    code = (
        "for _ in range(50):\n    try:\n        import requests\n"
        "    except ImportError:\n        pass\n"
    )
    result = sandpit.run_string(code, policy="no-network")
    (one,) = result.violations
    assert one.count == 50


def test_trace_only_denies_nothing(python):
    result = sandpit.run_string(
        "import urllib.request, ftplib\nprint(1)",
        policy="trace-only",
        python=python.path,
    )
    assert (result.stdout, result.exit_code, result.violations) == ("1\n", 0, ())


def test_interpreter_is_the_callers_own():
    result = sandpit.run_string("import sys; print(sys.executable)")
    assert result.stdout.strip() == sys.executable
