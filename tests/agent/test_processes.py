"""Children: forked ones get a lane of their own, started ones get the agent again."""

from __future__ import annotations

import shutil
import sys

import pytest
from abilities import require


def hellos(outcome, how=None):
    return [one for one in outcome.told("hello") if how in (None, one["how"])]


def test_forked_child_gets_its_own_lane(guest):
    code = (
        "import os\n"
        "pid = os.fork()\n"
        "open('script.py').close()\n"
        "if pid: os.waitpid(pid, 0)\n"
    )
    outcome = guest(code)
    assert [one["how"] for one in outcome.told("hello")] == [0, 1]
    reads = outcome.of("open", path="script.py", at_line=3)
    assert {one["pid"] for one in reads} == {
        one["pid"] for one in outcome.told("hello")
    }
    assert all(one["pid"] == one["tid"] for one in reads)


def test_child_that_says_nothing_needs_no_lane(guest):
    outcome = guest(
        "import os\npid = os.fork()\nif not pid: os._exit(3)\n"
        "print(os.waitpid(pid, 0)[1])\n"
    )
    assert outcome.stdout == "768\n"


def test_fork_from_native_code_gets_a_lane(guest):
    code = (
        "import ctypes, os\n"
        "c = ctypes.PyDLL(None)\n"
        "pid = c.fork()\n"
        "open('script.py').close()\n"
        "if pid: os.waitpid(pid, 0)\n"
        "else: os._exit(0)\n"
    )
    outcome = guest(code)
    assert len(outcome.told("hello")) == 2
    assert len(outcome.of("open", path="script.py", at_line=4)) == 2


def test_chain_of_forks(guest):
    code = (
        "import os\n"
        "for n in range(4):\n"
        "    pid = os.fork()\n"
        "    if pid:\n"
        "        os.waitpid(pid, 0); open('script.py').close(); os._exit(0)\n"
        "open('script.py').close()\n"
    )
    outcome = guest(code)
    assert (
        len({one["pid"] for one in outcome.of("open", path="script.py", at_line=5)})
        == 4
    )
    assert len(hellos(outcome, 1)) == 4


def test_multiprocessing_works(guest):
    code = (
        "import multiprocessing as m\n"
        "def f(x): return x * x\n"
        "if __name__ == '__main__':\n"
        "    c = m.get_context('fork')\n"
        "    with c.Pool(2) as p: print(p.map(f, range(5)))\n"
    )
    outcome = guest(code)
    assert outcome.stdout == "[0, 1, 4, 9, 16]\n"


# What a child needs is in its environment, although no program sees it there.
SHOW = "import os; print(sorted(k for k in os.environ if 'LD_' in k or 'SANDPIT' in k))"
STUB = "print('libsandpit-stub.so' in open('/proc/self/maps').read())"


@pytest.mark.parametrize(
    "start",
    [
        "subprocess.run(child)",
        "subprocess.run(child, env={'A': 'b'})",
        "subprocess.run(child, env={})",
        "subprocess.run(child, env=os.environ, close_fds=False)",
        "subprocess.run(child, preexec_fn=lambda: None, env={'A': 'b'})",
        "os.system(shlex.join(child))",
        "subprocess.run(shlex.join(child), shell=True, env={'PATH': os.defpath})",
        "os.popen(shlex.join(child)).read() and print('LD')",
        "os.waitpid(os.posix_spawn(child[0], child, {'A': 'b'}), 0)",
        "os.waitpid(os.posix_spawnp(child[0], child, os.environ), 0)",
        "os.spawnv(os.P_WAIT, child[0], child)",
        "os.spawnve(os.P_WAIT, child[0], child, {})",
        "os.execv(child[0], child)",
        "os.execve(child[0], child, {'A': 'b'})",
        "os.execle(child[0], *child, {'A': 'b'})",
        "os.execvpe(child[0], child, {str(i): 'x' for i in range(1000)})",
        "os.environ.clear(); os.execv(child[0], child)",
    ],
)
def test_child_is_given_the_stub(guest, start):
    code = (
        "import os, shlex, subprocess, sys\n"
        f"child = [sys.executable, '-c', {STUB!r}]\n"
        f"sys.stdout.flush(); {start}\n"
    )
    outcome = guest(code)
    if "popen" in start:
        assert outcome.stdout == "LD\n"
    else:
        assert outcome.stdout == "True\n", outcome.stderr


def test_environment_shows_nothing_of_ours(guest):
    code = (
        f"{SHOW}\nimport subprocess, sys\n"
        f"sys.stdout.flush(); subprocess.run([sys.executable, '-c', {SHOW!r}])\n"
        "sys.stdout.flush(); subprocess.run(['env', '-0'], env={'A': 'b'})\n"
    )
    outcome = guest(code)
    lines = outcome.stdout.split("\n")
    assert lines[:2] == ["[]", "[]"]
    assert "LD_PRELOAD" not in lines[2]


def test_own_preload_of_the_user_stays(guest, tmp_path):
    import subprocess

    (tmp_path / "own.c").write_text("int sandpit_test_own(void) { return 42; }\n")
    own = tmp_path / "own.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-o", own, tmp_path / "own.c"], check=True
    )
    show = f"import os, ctypes; {STUB}; print(ctypes.CDLL(None).sandpit_test_own())"
    code = (
        f"import subprocess, sys\n{show}\nprint(os.environ['LD_PRELOAD'])\n"
        f"child = [sys.executable, '-c', {show!r}]\n"
        "sys.stdout.flush(); subprocess.run(child)\n"
        "subprocess.run(child, env={'LD_PRELOAD': os.environ['LD_PRELOAD']})\n"
    )
    outcome = guest(code, env={"HARNESS_PRELOAD": str(own)})
    assert outcome.stdout == f"True\n42\n{own}\nTrue\n42\nTrue\n42\n", outcome.stderr


@pytest.mark.parametrize("program", ["ls", "bash", "sh", "env", "true"])
def test_other_programs_do_not_notice(guest, program):
    if not shutil.which(program):
        require(program, f"no {program} on PATH")
    arguments = {
        "ls": ["/"],
        "bash": ["-c", "echo a | cat"],
        "sh": ["-c", "echo $((1+1))"],
    }
    command = [program, *arguments.get(program, [])]
    code = (
        "import subprocess\n"
        "env = {'PATH': '/bin:/usr/bin'}\n"
        f"done = subprocess.run({command!r}, capture_output=True, env=env)\n"
        "print(done.returncode, done.stdout, done.stderr)\n"
    )
    import subprocess

    plain = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert guest(code).stdout == plain.stdout


def test_threads_and_forks_together(guest):
    code = (
        "import os, threading, subprocess, sys\n"
        "def work():\n"
        "    for _ in range(30):\n"
        "        open('script.py').close()\n"
        "        pid = os.fork()\n"
        "        if not pid:\n"
        "            open('script.py').close(); os._exit(7)\n"
        "        assert os.waitpid(pid, 0)[1] == 7 << 8\n"
        "        subprocess.run(['true'], check=True)\n"
        "ts = [threading.Thread(target=work) for _ in range(4)]\n"
        "[t.start() for t in ts]; [t.join() for t in ts]\n"
        "print('done')\n"
    )
    outcome = guest(code)
    assert outcome.stdout == "done\n", outcome.stderr
    assert len(outcome.of("open", path="script.py", at_line=4)) == 120
    assert len(outcome.of("open", path="script.py", at_line=7)) == 120
