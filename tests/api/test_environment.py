"""The environment of a program: what of the caller's the policy hands down."""

from __future__ import annotations

import json

import pytest
import sandpit

pytestmark = [pytest.mark.requires("program"), pytest.mark.requires("landlock")]

SHOW = "import json, os; print(json.dumps(dict(os.environ)))"
LISTED = '[env]\nallow = ["PATH", "LANG", "GREETING", "APP_*"]\ndeny = ["APP_QUIET"]\n'


@pytest.fixture
def policy(tmp_path):
    """Write a policy and give its path."""

    def write(text):
        path = tmp_path / "policy.toml"
        path.write_text(text)
        return path

    return write


def environment(policy, **options):
    result = sandpit.run_string(SHOW, policy=policy, **options)
    assert result.status == "ok", result.stderr
    return json.loads(result.stdout), result


def test_only_listed_variables_are_handed_down(policy, monkeypatch):
    monkeypatch.setenv("GREETING", "hello")
    monkeypatch.setenv("APP_MODE", "fast")
    monkeypatch.setenv("APP_QUIET", "1")
    monkeypatch.setenv("UNLISTED", "secret-value")
    control, _ = environment("trace-only")
    assert control["UNLISTED"] == "secret-value"
    assert control["APP_QUIET"] == "1"
    found, result = environment(policy(LISTED))
    assert found["GREETING"] == "hello"
    assert found["APP_MODE"] == "fast"
    assert set(found) <= {"PATH", "LANG", "GREETING", "APP_MODE", "LC_CTYPE"}
    assert result.violations == ()
    assert result.enforced_by["env"] == ("supervisor",)


def test_what_was_withheld_is_in_the_trace_by_name_only(
    policy, monkeypatch, tmp_path
):
    monkeypatch.setenv("UNLISTED", "secret-value")
    _, result = environment(policy(LISTED), trace=tmp_path / "kept.sptrace")
    (start,) = (one for one in result.trace if one["kind"] == "start")
    assert "UNLISTED" in start["env"]["names"]
    assert start["env"]["withheld"] == len(start["env"]["names"])
    assert b"secret-value" not in (tmp_path / "kept.sptrace").read_bytes()


@pytest.mark.parametrize("name", ["trace-only", "no-network"])
def test_a_policy_without_a_list_hands_down_everything(name, monkeypatch):
    monkeypatch.setenv("UNLISTED", "value")
    monkeypatch.setenv("SOME_TOKEN", "token")
    found, result = environment(name)
    assert found["UNLISTED"] == "value"
    assert found["SOME_TOKEN"] == "token"
    assert "env" not in result.enforced_by


GUARDED = {
    "GITHUB_TOKEN": "x",
    "AWS_SECRET_ACCESS_KEY": "x",
    "PGPASSWORD": "x",
    "https_proxy": "http://user:word@proxy",
    "NO_PROXY": "localhost",
    "SSH_AUTH_SOCK": "/run/agent",
    "LD_LIBRARY_PATH": "/nowhere",
    "MALLOC_ARENA_MAX": "2",
    "PYTHONSTARTUP": "/nowhere",
    "GLIBC_TUNABLES": "glibc.malloc.check=0",
}
ORDINARY = {"GIT_AUTHOR_NAME": "me", "MONKEY": "1", "PASSAGE": "1", "HOSTNAME": "here"}


def test_a_glob_opens_no_secret_and_no_loader_setting(policy, monkeypatch):
    for name, value in {**GUARDED, **ORDINARY}.items():
        monkeypatch.setenv(name, value)
    found, _ = environment(policy('[env]\nallow = ["*", "PGP*", "*_TOKEN"]\n'))
    assert set(GUARDED) & set(found) == set()
    assert set(found) >= set(ORDINARY)


def test_a_secret_is_handed_down_where_its_name_is_written_out(policy, monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", "x")
    monkeypatch.setenv("MALLOC_ARENA_MAX", "2")
    names = policy('[env]\nallow = ["GITHUB_TOKEN", "MALLOC_ARENA_MAX"]\n')
    found, _ = environment(names)
    assert found["GITHUB_TOKEN"] == "x"
    assert found["MALLOC_ARENA_MAX"] == "2"


def test_an_environment_given_for_the_run_is_as_given(policy):
    given = {"ANYTHING": "1", "API_KEY": "k"}
    found, _ = environment(policy(LISTED), env=given)
    assert {name: found[name] for name in given} == given
    assert "PATH" not in found


def test_children_get_no_more(policy, monkeypatch, tmp_path):
    monkeypatch.setenv("UNLISTED", "value")
    code = (
        "import subprocess, sys\n"
        f"sys.stdout.write(subprocess.check_output([sys.executable, '-c', {SHOW!r}],"
        " text=True))"
    )
    result = sandpit.run_string(code, policy=policy(LISTED))
    assert "UNLISTED" not in json.loads(result.stdout)


def test_the_callers_environment_cannot_be_read_in_proc(policy, monkeypatch):
    monkeypatch.setenv("UNLISTED", "secret-value")
    code = (
        "import os\n"
        "seen = set()\n"
        "for pid in filter(str.isdigit, os.listdir('/proc')):\n"
        "    try:\n"
        "        with open(f'/proc/{pid}/environ', 'rb') as file:\n"
        "            if b'secret-value' in file.read(): seen.add(pid)\n"
        "    except OSError:\n"
        "        pass\n"
        "print(seen)\n"
    )
    result = sandpit.run_string(code, policy=policy(LISTED))
    assert result.stdout == "set()\n"


def test_observing_hands_down_everything_and_says_what_it_would_not(
    policy, monkeypatch
):
    monkeypatch.setenv("UNLISTED", "value")
    found, result = environment(policy('mode = "observe"\n' + LISTED))
    assert found["UNLISTED"] == "value"
    (start,) = (one for one in result.trace if one["kind"] == "start")
    assert "UNLISTED" in start["env"]["names"]
    assert start["env"]["would_withhold"] >= 1


THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_MAX_THREADS")


def test_few_processes_leave_few_threads_to_libraries(policy, monkeypatch):
    for name in THREADS:
        monkeypatch.delenv(name, raising=False)
    found, _ = environment("no-network")
    assert set(THREADS) & set(found) == set()
    found, _ = environment("no-network", limits={"processes": 4})
    assert [found[name] for name in THREADS] == ["1", "1", "1"]
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    found, _ = environment("no-network", limits={"processes": 4})
    assert found["OPENBLAS_NUM_THREADS"] == "3"


@pytest.mark.requires("numpy")
def test_numpy_imports_where_processes_are_few():
    code = "import numpy; print(numpy.ones((64, 64)).dot(numpy.ones(64)).sum())"
    result = sandpit.run_string(code, limits={"processes": 4})
    assert (result.status, result.stdout) == ("ok", "4096.0\n"), result.stderr
