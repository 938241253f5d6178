"""However a program ends, the result is right and the trace is whole."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import threading
import time

import pytest
import sandpit
from plain import POLICIES, outcome_of, processes_marked, run_plain
from sandpit._program import find_program

pytestmark = [pytest.mark.requires("program"), pytest.mark.requires("landlock")]


def check_trace(result, tmp_path):
    """Check that `verify` accepts the trace, and that it ends with the end."""
    saved = result.save(tmp_path / "saved.sptrace")
    done = subprocess.run(
        [find_program(), "verify", saved], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    trace = sandpit.load(saved)
    assert trace[0]["kind"] == "start"
    assert trace[-1]["kind"] == "end"
    assert trace[-1]["status"] == result.status
    return trace


def calls_of(trace):
    return {event.get("function") for event in trace if event["kind"] == "call"}


MARKED = "def marked_function():\n    print('before', flush=True)\nmarked_function()\n"


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("name", "code", "expected"),
    [
        ("end", "", ("ok", 0, None, "end")),
        ("exit", "import sys; sys.exit(3)", ("error", 3, None, "SystemExit")),
        ("text", "import sys; sys.exit('text')", ("error", 1, None, "SystemExit")),
        ("exception", "1 / 0", ("error", 1, None, "end")),
        ("_exit", "import os; os._exit(7)", ("error", 7, None, "os._exit")),
        ("_exit_0", "import os; os._exit(0)", ("ok", 0, None, "os._exit")),
        (
            "segfault",
            "import ctypes; ctypes.string_at(0)",
            ("signal", 139, 11, "signal"),
        ),
        (
            "kill",
            "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
            ("signal", 137, 9, "signal"),
        ),
        (
            "abort",
            "import os; os.abort()",
            ("signal", 134, 6, "signal"),
        ),
        (
            "exec",
            "import os, sys; os.execv(sys.executable,"
            " [sys.executable, '-c', 'print(1); raise SystemExit(5)'])",
            ("error", 5, None, "exec"),
        ),
        (
            "exec_other",
            "import os; os.execv('/bin/echo', ['echo', 'other'])",
            ("ok", 0, None, "exec"),
        ),
    ],
    ids=[
        "end",
        "exit",
        "text",
        "exception",
        "_exit",
        "_exit_0",
        "segfault",
        "kill",
        "abort",
        "exec",
        "exec_other",
    ],
)
def test_ending_is_told_and_the_trace_is_whole(
    python, policy, name, code, expected, tmp_path
):
    text = MARKED + code + "\n"
    (tmp_path / "main.py").write_text(text)
    plain = run_plain(python, ["main.py"], cwd=tmp_path)
    result = sandpit.run(
        "main.py", cwd=tmp_path, policy=policy, python=python.path, calls="all"
    )
    assert outcome_of(result) == plain
    told = (result.status, result.exit_code, result.signal, result.exited_by)
    assert told == expected
    assert result.reason
    assert result.violations == ()
    assert any(
        "marked_function" in (one or "")
        for one in calls_of(check_trace(result, tmp_path))
    )
    if name == "exception":
        assert result.exception.type == "ZeroDivisionError"
        assert result.exception.line == 4


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "10 ** 10 ** 8",
        "import time; time.sleep(60)",
        "import signal, time\n"
        "for n in (signal.SIGTERM, signal.SIGINT): signal.signal(n, signal.SIG_IGN)\n"
        "time.sleep(60)",
        "import re; re.match('(a+)+$', 'a' * 60 + 'b')",
    ],
    ids=["loop", "power", "sleep", "deaf", "regex"],
)
def test_time_limit_ends_what_never_ends(python, code, tmp_path):
    begin = time.monotonic()
    result = sandpit.run_string(
        MARKED + code, timeout=1, policy="no-network", python=python.path
    )
    took = time.monotonic() - begin
    assert (result.status, result.exit_code) == ("timeout", 124)
    assert result.exited_by == "killed"
    assert result.stdout == "before\n"
    assert 0.9 < result.wall_s < 1.5
    assert took < 5
    assert "1" in result.reason
    trace = check_trace(result, tmp_path)
    limits = [event for event in trace if event["kind"] == "limit"]
    assert len(limits) == 1


GRANDCHILD = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print("grandchild", flush=True)
        time.sleep(300)
    os._exit(0)
os.wait()
time.sleep(0.3)
print("done", flush=True)
"""


@pytest.mark.parametrize("policy", POLICIES)
def test_detached_grandchild_neither_holds_nor_outlives_the_run(python, policy):
    mark = f"SANDPIT_MARK_{os.getpid()}_{time.monotonic_ns()}"
    begin = time.monotonic()
    result = sandpit.run_string(
        GRANDCHILD, policy=policy, python=python.path, env={**os.environ, mark: "1"}
    )
    assert time.monotonic() - begin < 5
    assert (result.status, result.exit_code) == ("ok", 0)
    assert sorted(result.stdout.split()) == ["done", "grandchild"]
    assert processes_marked(mark) == []


def test_detached_grandchild_is_ended_by_the_time_limit_too():
    mark = f"SANDPIT_MARK_{os.getpid()}_{time.monotonic_ns()}"
    code = GRANDCHILD + "while True: pass\n"
    result = sandpit.run_string(code, timeout=1, env={**os.environ, mark: "1"})
    assert result.status == "timeout"
    assert processes_marked(mark) == []


def test_kill_keeps_output_and_trace(tmp_path):
    run = sandpit.start_string(MARKED + "import time; time.sleep(60)")
    end = time.monotonic() + 20
    while run.pid is None and time.monotonic() < end:
        time.sleep(0.01)
    time.sleep(0.5)
    run.kill()
    result = run.wait(10)
    assert result.status == "cancelled"
    assert result.stdout == "before\n"
    check_trace(result, tmp_path)


def test_large_output_is_whole_and_cut_where_asked(python):
    code = "import sys\nsys.stdout.buffer.write(b'\\xff' * 5_000_000)\n"
    result = sandpit.run_string(code, python=python.path)
    assert result.stdout_bytes == b"\xff" * 5_000_000
    assert not result.stdout_truncated
    cut = sandpit.run_string(code, python=python.path, capture_max=1000)
    assert cut.stdout_truncated
    assert cut.stdout_bytes_total == 5_000_000
    assert cut.stdout_bytes == b"\xff" * 1000
    assert cut.exit_code == 0


@pytest.mark.parametrize(
    ("call", "error", "part"),
    [
        (lambda: sandpit.run("no-such.py"), sandpit.NotFoundError, "no-such.py"),
        (
            lambda: sandpit.run_string("1", policy="no-such"),
            sandpit.PolicyError,
            "no-network",
        ),
        (
            lambda: sandpit.run_string("1", trace="/no-such/t.sptrace"),
            sandpit.TraceError,
            "/no-such",
        ),
        (
            lambda: sandpit.run_string("1", python="/no-such/python"),
            sandpit.NotFoundError,
            "/no-such/python",
        ),
        (
            lambda: sandpit.run_string("1", python="no-such-python"),
            sandpit.NotFoundError,
            "no-such-python",
        ),
        (
            lambda: sandpit.run_string("1", python="/bin/true"),
            sandpit.HostError,
            "/bin/true",
        ),
        (
            lambda: sandpit.run_string("1", allow_degraded=["everything"]),
            sandpit.SandpitError,
            "everything",
        ),
    ],
    ids=[
        "script",
        "policy",
        "trace",
        "python",
        "python_on_path",
        "no_python",
        "degraded",
    ],
)
def test_bad_input_is_one_clear_error(nothing_left, call, error, part):
    with pytest.raises(error, match=part) as caught:
        call()
    assert "\n" not in str(caught.value)
    del caught


@pytest.mark.parametrize(
    "content",
    [b"print('\xff')\n", b"print(\n", b"\0\0", b"# -*- coding: no-such -*-\n"],
    ids=["utf8", "syntax", "nul", "coding"],
)
def test_file_that_is_no_program_is_reported_as_by_python(python, content, tmp_path):
    (tmp_path / "main.py").write_bytes(content)
    plain = run_plain(python, ["main.py"], cwd=tmp_path)
    result = sandpit.run("main.py", cwd=tmp_path, python=python.path)
    assert outcome_of(result) == plain


def test_folder_that_is_no_program_is_reported_as_by_python(python, tmp_path):
    (tmp_path / "folder").mkdir()
    plain = run_plain(python, ["folder"], cwd=tmp_path)
    result = sandpit.run("folder", cwd=tmp_path, python=python.path)
    assert outcome_of(result) == plain


def test_trace_outlives_its_result(nothing_left):
    trace = sandpit.run_string("import json").trace
    gc.collect()
    assert trace[0]["kind"] == "start"
    assert trace[-1]["kind"] == "end"
    assert any(event.get("module") == "json" for event in trace)
    del trace


def test_ctrl_c_ends_the_guest_and_leaves_a_sound_trace(nothing_left, tmp_path):
    path = tmp_path / "kept.sptrace"
    timer = threading.Timer(1.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(sandpit.Interrupted) as caught:
        sandpit.run_string(MARKED + "import time; time.sleep(60)", trace=path)
    timer.join()
    result = caught.value.result
    assert result.status == "cancelled"
    assert result.stdout == "before\n"
    assert sandpit.load(path).verify().code == 0
    del caught, result
