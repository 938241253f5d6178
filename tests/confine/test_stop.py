"""`on_violation = "stop"`: the first violation ends the whole run."""

from __future__ import annotations

import json
import os
import time

import pytest

pytestmark = [
    pytest.mark.requires("program"),
    pytest.mark.requires("listener"),
    pytest.mark.requires("landlock"),
]

POLICY = 'extends = "no-network"\non_violation = "stop"\n'

# Each does something forbidden, and goes on to leave a mark.
HEAD = "import ctypes, os, signal, socket, subprocess, sys, threading, time\n"
MARK = '\nopen("after", "w").close()\n'
ACTS = {
    "chmod": (
        'open("f", "w").close()\n'
        'try: os.chmod("f", 0o4755)\nexcept OSError: pass',
        "chmod",
    ),
    "import": ("try: import ftplib\nexcept ImportError: pass", "import"),
    "socket": (
        "try: socket.create_connection(('127.0.0.1', 9))\nexcept OSError: pass",
        "connect",
    ),
    "native": (
        "s = socket.socket()\n"
        "a = b'\\x02\\0\\0\\x09\\x7f\\0\\0\\x01' + bytes(8)\n"
        "ctypes.CDLL(None).connect(s.fileno(), a, len(a))",
        "connect",
    ),
    "child": (
        "if os.fork() == 0:\n"
        '    open("f", "w").close()\n'
        '    try: os.chmod("f", 0o4755)\n'
        "    except OSError: pass\n"
        '    open("after", "w").close()\n'
        "time.sleep(60)",
        "chmod",
    ),
    "grandchild": (
        'open("f", "w").close()\n'
        'subprocess.Popen([sys.executable, "-c",'
        ' "import os; os.chmod(\'f\', 0o4755); open(\'after\', \'w\')"],'
        " start_new_session=True)\n"
        "time.sleep(60)",
        "chmod",
    ),
    "thread": (
        'open("f", "w").close()\n'
        'threading.Thread(target=os.chmod, args=("f", 0o4755)).start()\n'
        "time.sleep(60)",
        "chmod",
    ),
}


@pytest.fixture
def policy(tmp_path):
    path = tmp_path / "stop.toml"
    path.write_text(POLICY)
    return ("--policy", str(path))


@pytest.mark.parametrize("name", ACTS)
def test_first_violation_ends_the_run(sandpit, policy, tmp_path, name):
    act, operation = ACTS[name]
    script = HEAD + 'print("before", flush=True)\n' + act + MARK
    begun = time.monotonic()
    done = sandpit.run(script, options=policy)
    assert time.monotonic() - begun < 30
    assert done.returncode == 126
    assert done.stdout == "before\n"
    assert not (tmp_path / "after").exists()
    (one,) = sandpit.events("violation")
    assert (one["operation"], one["action"]) == (operation, "stop")
    end = sandpit.events()[-1]
    assert (end["kind"], end["status"], end["exit_code"]) == ("end", "stopped", 126)
    assert end["reason"] == f"stopped at its first violation: {one['message']}"
    assert done.stderr == f"sandpit: {end['reason']}\n"
    assert sandpit.verify() == 0


@pytest.mark.parametrize("name", ["chmod", "import", "socket", "native"])
def test_act_goes_on_where_nothing_is_confined(sandpit, tmp_path, name):
    done = sandpit.plain(HEAD + ACTS[name][0] + MARK)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "after").exists()


def test_program_without_a_violation_is_not_stopped(sandpit, policy):
    script = HEAD + (
        'open("f", "w").close(); os.chmod("f", 0o755)\n'
        # What libc is refused on the way to an answer is no violation.
        'socket.getaddrinfo("localhost", 80)\n'
        "a, b = socket.socketpair(); a.send(b'x'); print(b.recv(1))\n"
        "sys.exit(3)"
    )
    done = sandpit.run(script, options=policy)
    assert (done.returncode, done.stdout) == (3, "b'x'\n"), done.stderr
    assert sandpit.events("violation") == []


def test_nothing_is_left_of_a_stopped_run(sandpit, policy, tmp_path):
    script = HEAD + (
        "for i in range(5):\n"
        '    subprocess.Popen(["sleep", "3600"], start_new_session=True)\n'
        'open("f", "w").close(); os.chmod("f", 0o4755)'
    )
    assert sandpit.run(script, options=policy).returncode == 126
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            folder = os.readlink(f"/proc/{pid}/cwd")
        except OSError:
            continue
        assert folder != str(tmp_path)


def test_result_tells_what_stopped_it(sandpit, policy):
    script = HEAD + "import ftplib"
    done = sandpit.run(script, options=(*policy, "--json"))
    result = json.loads(done.stdout)
    assert (result["status"], result["exit_code"]) == ("stopped", 126)
    (one,) = result["violations"]
    assert one["action"] == "stop"
    assert result["reason"].endswith(one["message"])
    assert result["exited_by"] == "killed"


def test_reason_does_nothing_to_a_terminal(sandpit, policy):
    script = HEAD + (
        'name = "f\\x1b[31m\\n"; open(name, "w").close(); os.chmod(name, 0o4755)'
    )
    done = sandpit.run(script, options=policy)
    assert done.returncode == 126
    assert "\x1b" not in done.stderr
    assert done.stderr.count("\n") == 1
