"""Limits hold, by each of their means, and say so; without them the same program succeeds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from abilities import require
from someone import Someone

pytestmark = [pytest.mark.requires("program"), pytest.mark.requires("listener")]

# Where memory and processes are counted: by a control group as root, if there may be one; else
# in a user namespace; else by the supervisor.
MEANS = {
    "caller": (False, ""),
    "caller-bare": (False, "cgroup=off"),
    "user": (True, "cgroup=off"),
    "user-bare": (True, "cgroup=off,user_namespaces=off"),
}


@pytest.fixture(params=MEANS)
def someone(request, tmp_path: Path) -> Iterator[Someone]:
    user, force = MEANS[request.param]
    one = Someone(tmp_path, user=user, force=force)
    yield one
    one.close()


@pytest.fixture
def caller(tmp_path: Path) -> Someone:
    return Someone(tmp_path, user=False, force="")


@pytest.fixture
def bare(tmp_path: Path) -> Someone:
    return Someone(tmp_path, user=False, force="cgroup=off")


BURN = """
import os, time
def burn(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass
"""

ENDING = {
    "wall": ("--timeout", "500ms", "timeout", "import time; time.sleep(2)"),
    "cpu": ("--cpu", "400ms", "cpu-limit", BURN + "burn(1.2)"),
    "cpu-at-once": (
        "--cpu",
        "500ms",
        "cpu-limit",
        BURN + "pids = []\n"
        "for _ in range(4):\n"
        "    pid = os.fork()\n"
        "    if pid == 0: burn(0.4); os._exit(0)\n"
        "    pids.append(pid)\n"
        "for pid in pids: os.waitpid(pid, 0)\n",
    ),
    "cpu-of-the-dead": (
        "--cpu",
        "500ms",
        "cpu-limit",
        BURN + "for _ in range(30):\n"
        "    pid = os.fork()\n"
        "    if pid == 0: burn(0.04); os._exit(0)\n"
        "    os.waitpid(pid, 0)\n",
    ),
    "cpu-of-nobodys": (
        "--cpu",
        "500ms",
        "cpu-limit",
        BURN + "import signal\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "for _ in range(40):\n"
        "    if os.fork() == 0: burn(0.03); os._exit(0)\n"
        "    time.sleep(0.035)\n",
    ),
    "disk-many": (
        "--disk",
        "18M",
        "disk-limit",
        "import time\n"
        "for i in range(5000):\n"
        "    with open(f'out{i}', 'wb') as f: f.write(b'x' * 4096)\n"
        "time.sleep(0.3)\n",
    ),
    "memory": (
        "--memory",
        "150M",
        "memory-limit",
        "import os, time\n"
        "pids = []\n"
        "for _ in range(4):\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        held = bytearray(b'x') * (60 << 20)\n"
        "        time.sleep(1.5)\n"
        "        os._exit(0)\n"
        "    pids.append(pid)\n"
        "for pid in pids: os.waitpid(pid, 0)\n",
    ),
    "output": (
        "--max-output",
        "100K",
        "output-limit",
        "for _ in range(20000): print('x' * 99)\n",
    ),
    "disk": (
        "--disk",
        "8M",
        "disk-limit",
        "import time\n"
        "for i in range(8):\n"
        "    with open(f'out{i}', 'wb') as f: f.write(b'x' * (4 << 20))\n"
        "time.sleep(0.5)\n",
    ),
    "disk-nameless": (
        "--disk",
        "8M",
        "disk-limit",
        "import os, time\n"
        "f = open('out', 'wb')\n"
        "os.unlink('out')\n"
        "f.write(b'x' * (20 << 20)); f.flush()\n"
        "time.sleep(0.7)\n",
    ),
}


def check_told(ran, name, value=None):
    """One event and one violation, with the same sentence as the result."""
    (violation,) = ran.result["violations"]
    (event,) = ran.events("limit")
    limit = ran.result["limits"][name]
    assert violation["category"] == "limits"
    assert violation["rule"] == f"limits.{name}"
    assert event["limit"] == name
    assert limit["reached"]
    assert limit["measured"] >= limit["value"]
    if value is not None:
        assert limit["value"] == value


@pytest.mark.parametrize("case", ENDING)
def test_a_limit_ends_the_run(someone, case):
    option, value, status, code = ENDING[case]
    code += "\nopen('done', 'w').close()\n"
    done = someone.folder / "done"
    free = someone.run(code)
    assert free.result["status"] == "ok", free.result["stderr"]
    assert done.exists()
    assert free.result["limits"] == {}
    for one in someone.folder.iterdir():
        one.unlink()
    ran = someone.run(code, option, value)
    assert (ran.result["status"], ran.code) == (status, 124 if case == "wall" else 137)
    assert ran.result["exited_by"] == "killed"
    assert not done.exists()
    name = case.partition("-")[0]
    check_told(ran, name)
    assert ran.result["reason"] == ran.result["violations"][0]["message"]
    assert ran.events("end")[0]["status"] == status
    assert ran.took_s < (20 if case == "disk-many" else 5)


def test_output_within_the_limit_is_passed_on(caller):
    ran = caller.run(
        "print('a' * 50, flush=True); print('b' * 5000)", "--max-output", "100"
    )
    assert ran.result["status"] == "output-limit"
    assert ran.result["stdout"] == "a" * 50 + "\n" + "b" * 49


FORKS = """
import os, time
pids = []
try:
    for _ in range(20):
        pid = os.fork()
        if pid == 0:
            time.sleep(0.6)
            os._exit(0)
        pids.append(pid)
except BlockingIOError as why:
    print("refused", why.errno)
print(len(pids))
for pid in pids: os.waitpid(pid, 0)
"""

THREADS = """
import threading, time
threads = []
try:
    for _ in range(20):
        thread = threading.Thread(target=time.sleep, args=(0.6,))
        thread.start()
        threads.append(thread)
except RuntimeError:
    print("refused 11")
print(len(threads))
for thread in threads: thread.join()
"""


@pytest.mark.parametrize("code", [FORKS, THREADS], ids=["processes", "threads"])
def test_processes_and_threads_are_counted_together(someone, code):
    free = someone.run(code)
    assert free.result["stdout"] == "20\n", free.result["stderr"]
    ran = someone.run(code, "--processes", "8")
    assert ran.result["stdout"] == "refused 11\n7\n", ran.result["stderr"]
    assert (ran.result["status"], ran.code) == ("ok", 0)
    check_told(ran, "processes", 8)


@pytest.mark.parametrize("code", [FORKS, THREADS], ids=["processes", "threads"])
def test_the_exception_of_a_refused_process_gives_the_status(someone, code):
    code = code.replace("except BlockingIOError as why", "except ZeroDivisionError")
    code = code.replace("except RuntimeError", "except ZeroDivisionError")
    code = code.replace('print("refused", why.errno)', "pass")
    ran = someone.run(code, "--processes", "8")
    assert (ran.result["status"], ran.code) == ("process-limit", 137), ran.result[
        "reason"
    ]
    check_told(ran, "processes", 8)


def test_a_process_that_ended_makes_room(someone):
    code = (
        "import os\n"
        "for _ in range(40):\n"
        "    pid = os.fork()\n"
        "    if pid == 0: os._exit(0)\n"
        "    os.waitpid(pid, 0)\n"
        "print('all')\n"
    )
    ran = someone.run(code, "--processes", "3")
    assert ran.result["stdout"] == "all\n", ran.result["stderr"]
    assert ran.result["violations"] == []


def test_the_number_is_of_the_run_alone(someone):
    """The user's other processes do not count, nor do those of another run."""
    code = FORKS.replace("range(20)", "range(5)")
    ran = someone.run(code, "--processes", "6")
    assert ran.result["stdout"] == "5\n", ran.result["stderr"]
    assert (
        ran.result["violations"] == []
        or "namespace" in ran.result["limits"]["processes"]["by"]
    )


FILE = """
import sys
f = open("big", "wb", buffering=0)
try:
    for _ in range(40):
        f.write(b"z" * (1 << 20))
except OSError as why:
    if len(sys.argv) > 1: raise
    print("refused", why.errno)
"""


def test_a_file_grows_to_its_limit(someone):
    ran = someone.run(FILE)
    assert ran.result["stdout"] == ""
    big = someone.folder / "big"
    assert big.stat().st_size == 40 << 20
    big.unlink()
    ran = someone.run(FILE, "--file-size", "4MiB")
    assert ran.result["stdout"] == "refused 27\n"
    assert ran.result["status"] == "ok"
    assert big.stat().st_size == 4 << 20
    check_told(ran, "file_size", 4 << 20)
    ran = someone.run(FILE.replace("len(sys.argv) > 1", "True"), "--file-size", "4MiB")
    assert (ran.result["status"], ran.code) == ("file-limit", 137)


def test_open_files_are_counted(someone):
    code = (
        "held = []\nfor _ in range(60): held.append(open('/dev/null'))\nprint('all')\n"
    )
    assert someone.run(code).result["stdout"] == "all\n"
    ran = someone.run(code, "--open-files", "40")
    assert (ran.result["status"], ran.code) == ("file-limit", 137)
    check_told(ran, "open_files", 40)
    assert ran.result["violations"][0]["claim"]


def test_memory_refused_to_one_process(bare):
    code = (
        "try:\n"
        "    held = bytearray(300 << 20)\n"
        "    print('had')\n"
        "except MemoryError:\n"
        "    print('refused')\n"
    )
    assert bare.run(code).result["stdout"] == "had\n"
    ran = bare.run(code, "--memory", "100M")
    assert (ran.result["stdout"], ran.result["status"]) == ("refused\n", "ok")
    ran = bare.run("held = bytearray(1 << 40)", "--memory", "100M")
    assert (ran.result["status"], ran.code) == ("memory-limit", 137)
    check_claim = ran.result["violations"][0]
    assert (check_claim["operation"], check_claim["claim"]) == ("memory", True)
    assert ran.result["exception"]["type"] == "MemoryError"


@pytest.mark.parametrize(
    "opens",
    [
        "os.memfd_create('x')",
        "os.open(f'/dev/shm/sandpit-limit-{os.getpid()}', os.O_CREAT | os.O_RDWR)",
    ],
    ids=["memfd", "shm"],
)
def test_files_in_memory_are_memory(someone, opens):
    code = (
        "import os, time\n"
        f"f = {opens}\n"
        "for _ in range(40): os.write(f, b'x' * (4 << 20)); time.sleep(0.02)\n"
        "print('all')\n"
    )
    assert someone.run(code).result["stdout"] == "all\n"
    ran = someone.run(code, "--memory", "80M")
    assert (ran.result["status"], ran.result["stdout"]) == ("memory-limit", "")
    check_told(ran, "memory")


@pytest.mark.parametrize("removes", [False, True], ids=["named", "nameless"])
def test_files_of_a_file_system_in_memory_are_files(someone, removes):
    code = (
        "import os, time\n"
        "name = f'/dev/shm/sandpit-limit-{os.getpid()}'\n"
        "f = open(name, 'wb')\n"
        f"if {removes}: os.unlink(name)\n"
        "f.write(b'x' * (20 << 20)); f.flush()\n"
        "time.sleep(0.7)\n"
        "print('all')\n"
    )
    assert someone.run(code).result["stdout"] == "all\n"
    ran = someone.run(code, "--disk", "8M")
    assert (ran.result["status"], ran.result["stdout"]) == ("disk-limit", "")
    check_told(ran, "disk")


def test_memory_files_are_no_files(someone):
    code = (
        "import os, time\n"
        "os.write(os.memfd_create('x'), b'x' * (20 << 20))\n"
        "time.sleep(0.7)\n"
        "print('all')\n"
    )
    ran = someone.run(code, "--disk", "8M")
    assert (ran.result["status"], ran.result["stdout"]) == ("ok", "all\n")


def test_shared_pages_count_once(someone):
    """Eight processes of 60 MiB that are one and the same."""
    code = (
        "import os, time\n"
        "held = bytearray(b'x') * (60 << 20)\n"
        "pids = []\n"
        "for _ in range(7):\n"
        "    pid = os.fork()\n"
        "    if pid == 0: time.sleep(0.5); os._exit(0)\n"
        "    pids.append(pid)\n"
        "for pid in pids: os.waitpid(pid, 0)\n"
        "print('all')\n"
    )
    ran = someone.run(code, "--memory", "160M")
    assert ran.result["stdout"] == "all\n", ran.result["reason"]
    assert ran.result["violations"] == []


@pytest.mark.requires("numpy")
def test_numpy_fits_into_512_mib(someone):
    if not someone.has("numpy"):
        require("user-numpy", "its interpreter has no numpy")
    code = "import numpy\nprint(int(numpy.ones((500, 500)).sum()))\n"
    ran = someone.run(code, "--memory", "512MB", "--processes", "64")
    assert ran.result["stdout"] == "250000\n", ran.result["stderr"]


RAISING = """
import ctypes, resource, struct
for kind in ("NOFILE", "FSIZE", "DATA", "CPU", "NPROC"):
    which = getattr(resource, "RLIMIT_" + kind)
    hard = resource.getrlimit(which)[1]
    try:
        resource.setrlimit(which, (-1, -1))
    except (ValueError, OSError):
        pass
    ctypes.CDLL(None).prlimit64(0, which, struct.pack("=QQ", 2**64 - 1, 2**64 - 1), None)
    print(kind, resource.getrlimit(which)[1] == hard, hard != -1)
"""


def test_the_program_cannot_raise_them(someone):
    options = ("--open-files", "50", "--file-size", "1M", "--memory", "200M")
    ran = someone.run(RAISING, *options, "--cpu", "9", "--processes", "20")
    lines = dict(line.split(" ", 1) for line in ran.result["stdout"].splitlines())
    assert lines["NOFILE"] == lines["FSIZE"] == lines["CPU"] == "True True"
    by = ran.result["limits"]
    if "rlimit" in by["memory"]["by"]:
        assert lines["DATA"] == "True True"
    if "namespace" in by["processes"]["by"]:
        assert lines["NPROC"] == "True True"


GRANDCHILDREN = """
import os, sys, time
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True: pass
        os._exit(0)
time.sleep(0.2)
"""


@pytest.mark.parametrize("option", ["--timeout", "--cpu"])
def test_detached_grandchildren_end_with_the_run(someone, option):
    ran = someone.run(GRANDCHILDREN + "\ntime.sleep(20)\n", option, "700ms")
    assert ran.result["status"] in ("timeout", "cpu-limit")
    assert ran.took_s < 4


BOMB = """
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
"""


def test_a_bomb_of_processes_ends_in_time(someone):
    ran = someone.run(BOMB, "--processes", "30", "--timeout", "1s")
    assert ran.result["status"] == "timeout"
    assert ran.result["limits"]["processes"]["reached"]
    assert ran.took_s < 4


def test_a_value_above_the_hard_limit_is_lowered(someone):
    ran = someone.run(
        "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE)[1])",
        "--open-files",
        "1000",
        before="ulimit -n 200",
    )
    limit = ran.result["limits"]["open_files"]
    assert (limit["asked"], limit["value"]) == (1000, 200)
    assert ran.result["stdout"] == "200\n"


@pytest.mark.requires("root")
def test_what_cannot_be_held_is_refused_by_name(tmp_path):
    """Root, without a control group and without a listener: nobody counts processes."""
    one = Someone(tmp_path, user=False, force="cgroup=off,listener=off")
    accepted = ("--allow-degraded", "listener")
    ran = one.run("print(1)", "--processes", "5", *accepted, fails=True)
    assert ran.code == 125
    assert ran.result["error"]["missing"] == ["limits"]
    assert "'processes'" in ran.result["error"]["message"]
    ran = one.run(
        "print(1)", "--processes", "5", *accepted, "--allow-degraded", "limits"
    )
    assert ran.result["stdout"] == "1\n"
    assert "limits" in ran.result["degraded"]
    assert ran.result["limits"]["processes"]["value"] is None
    assert ran.result["limits"]["processes"]["by"] == []


def test_who_holds_and_who_notices(bare):
    ran = bare.run("pass", "--memory", "1G", "--open-files", "100", "--timeout", "9s")
    assert ran.result["enforced_by"]["limits"] == ["timer", "rlimit", "sampling"]
    assert ran.result["recorded_by"]["limit"] == ["timer", "sampling", "agent"]
    (start,) = ran.events("start")
    assert start["enforced_by"]["limits"] == ["timer", "rlimit", "sampling"]


def test_a_full_trace_ends_nothing(caller):
    code = "for i in range(20000): exec(f'x = {i}')\nprint('all')\n"
    ran = caller.run(code, "--max-trace", "300K")
    assert (ran.result["status"], ran.result["stdout"]) == ("ok", "all\n")
    assert [one["operation"] for one in ran.result["violations"]] == ["trace"]
    assert ran.result["limits"]["trace"]["reached"]
    assert ran.trace.stat().st_size < 400 << 10
    assert ran.events("end")


def test_a_policys_limits_hold_and_the_caller_wins(someone):
    policy = someone.folder / "p.toml"
    policy.write_text(
        'extends = "trace-only"\n[limits]\nwall = "300ms"\nfile_size = "1K"\n'
    )
    code = "import time; time.sleep(1); print('slept')"
    ran = someone.run(code, "--policy", "p.toml")
    assert ran.result["status"] == "timeout"
    assert ran.result["violations"][0]["source"] == "p.toml:3"
    ran = someone.run(code, "--policy", "p.toml", "--timeout", "20s")
    assert ran.result["stdout"] == "slept\n"
    assert ran.result["limits"]["wall"]["value"] == 20
    assert ran.result["limits"]["file_size"]["value"] == 1024


def test_the_default_policy_has_limits_that_can_be_held(someone):
    code = (
        "import os, subprocess, sys\n"
        "subprocess.run([sys.executable, '-c', 'print(1)'])\n"
        "print(os.getuid())\n"
    )
    ran = someone.run(code, "--policy", "default")
    user = someone.who.get("user", os.getuid())
    assert ran.result["stdout"] == f"1\n{user}\n", ran.result["stderr"]
    assert ran.result["degraded"] == []
    limits = ran.result["limits"]
    assert {"wall", "cpu", "memory", "processes", "disk", "output"} <= set(limits)
    assert all(one["by"] and not one["reached"] for one in limits.values())


def groups_left():
    """Those whose keeper, which the name tells, is gone: other tests have theirs meanwhile."""
    found = []
    with open("/proc/self/cgroup", encoding="utf-8") as lines:
        for line in lines:
            _, names, path = line.rstrip("\n").split(":", 2)
            folder = Path(f"/sys/fs/cgroup/{names}{path}")
            if folder.is_dir():
                found += [
                    one for one in os.listdir(folder) if one.startswith("sandpit-")
                ]
    return [one for one in found if not Path("/proc", one.split("-")[1]).exists()]


@pytest.mark.requires("root")
def test_control_groups_are_removed(caller):
    before = set(groups_left())
    for code in (
        "pass",
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        BOMB,
    ):
        caller.run(code, "--processes", "20", "--memory", "200M", "--timeout", "500ms")
    assert set(groups_left()) <= before
