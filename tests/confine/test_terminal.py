"""On a terminal a program finds a terminal of its own: as under plain python, and never ours."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import sys
import termios
import time

import pytest
from programs import PROGRAM

pytestmark = pytest.mark.requires("program")

ASK = """\
import os, sys
print([os.isatty(i) for i in range(3)], os.get_terminal_size())
name = input("name? ")
print("hello", name)
open("/dev/tty", "w").write("tty works\\n")
sys.stderr.write("an error\\n")
"""


def talk(argv, steps, cwd, size=(30, 100)):
    """Run argv on a terminal; each step waits for a text and types, or calls, its answer."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(cwd)
        os.environ.pop("NO_COLOR", None)
        os.environ["TERM"] = "xterm"
        os.environ["PS1"] = "PROMPT> "
        os.execv(argv[0], argv)
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    seen, steps, end = b"", list(steps), time.monotonic() + 30
    from_ = 0
    while time.monotonic() < end:
        if select.select([fd], [], [], 0.05)[0]:
            try:
                data = os.read(fd, 4096)
            except OSError:
                break
            if not data:
                break
            seen += data
        if steps and steps[0][0] in seen[from_:]:
            text, act = steps.pop(0)
            from_ = seen.index(text, from_) + len(text)
            if callable(act):
                act(fd, pid)
            else:
                os.write(fd, act)
    else:
        os.kill(pid, 9)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(fd)
    return seen.decode(), code


@pytest.fixture
def script(tmp_path):
    def write(text):
        (tmp_path / "script.py").write_text(text)
        return tmp_path / "script.py"
    return write


def command(path, *options):
    return [str(PROGRAM), "run", "--no-trace", *options, str(path)]


@pytest.mark.parametrize("force", ["", "landlock=2"])
def test_a_terminal_is_found_as_under_plain_python(script, tmp_path, monkeypatch, force):
    monkeypatch.setenv("SANDPIT_FORCE", force)
    path = script(ASK)
    steps = [(b"name? ", b"bob\n")]
    plain = talk([sys.executable, str(path)], steps, tmp_path)
    confined = talk(command(path, "--quiet"), steps, tmp_path)
    assert confined == plain
    assert "[True, True, True] os.terminal_size(columns=100, lines=30)" in plain[0]
    assert "hello bob" in plain[0] and "tty works" in plain[0]


def test_ctrl_c_interrupts_the_program(script, tmp_path):
    path = script(
        "import time\n"
        "try:\n    print('go', flush=True)\n    time.sleep(20)\nexcept KeyboardInterrupt:\n    print('interrupted')\n")
    seen, code = talk(command(path, "--quiet"), [(b"go", b"\x03")], tmp_path)
    assert "interrupted" in seen and code == 0


def test_the_window_size_is_passed_on(script, tmp_path):
    path = script(
        "import os, signal\n"
        "signal.signal(signal.SIGWINCH, lambda *_: None)\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGWINCH})\n"
        "print('go', flush=True)\n"
        "while os.get_terminal_size() != (120, 40):\n"
        "    signal.sigwait({signal.SIGWINCH})\n"
        "print(os.get_terminal_size())\n")

    def resize(fd, pid):
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))

    seen, code = talk(command(path, "--quiet"), [(b"go", resize)], tmp_path)
    assert "os.terminal_size(columns=120, lines=40)" in seen and code == 0


@pytest.mark.requires("bash")
def test_ctrl_z_stops_the_job_and_fg_continues_it(script, tmp_path):
    path = script(ASK)
    line = " ".join(command(path, "--quiet")).encode() + b"\n"
    seen, _ = talk(
        ["/bin/bash", "--norc", "-i"],
        [(b"PROMPT> ", line), (b"name? ", b"\x1a"), (b"Stopped", b"echo back; fg\n"),
         (b"back\r\n", b"bob\n"), (b"tty works", b""), (b"PROMPT> ", b"exit\n")], tmp_path)
    assert "hello bob" in seen


def test_ctrl_z_without_a_shell_stops_nothing(script, tmp_path):
    path = script(ASK)

    def suspend_and_answer(fd, pid):
        os.write(fd, b"\x1a")
        time.sleep(0.3)
        os.write(fd, b"bob\n")

    seen, code = talk(
        command(path, "--quiet"), [(b"name? ", suspend_and_answer)], tmp_path)
    assert "hello bob" in seen
    assert code == 0


def test_a_summary_ends_the_run(script, tmp_path):
    # From 3.13 on, Python colours a traceback of its own.
    path = script("try: import requests\nexcept ImportError: raise SystemExit(1)\n")
    seen, code = talk(command(path), [], tmp_path)
    assert code == 1
    assert "policy default (none was given: this is the default)" in seen
    assert "import requests is denied by policy 'default'" in seen
    assert f"{path}:1" in seen
    assert "--allow-import requests" in seen
    assert "\x1b[" in seen
    assert "\x1b[" not in talk(command(path, "--color", "never"), [], tmp_path)[0].replace(
        "\x1b[?", "")


def test_the_terminal_is_as_before_afterwards(script, tmp_path):
    path = script("import os\nprint('go', flush=True)\ninput()\n")
    before = []

    def look(fd, pid):
        before.append(termios.tcgetattr(fd))
        os.write(fd, b"\n")

    shell = ["/bin/sh", "-c", f"{' '.join(command(path, '--quiet'))}; echo done; read x"]
    after = []

    def look_again(fd, pid):
        after.append(termios.tcgetattr(fd))
        os.write(fd, b"\n")

    talk(shell, [(b"go", look), (b"done", look_again)], tmp_path)
    assert before[0][3] & termios.ICANON == 0  # raw while it ran
    assert after[0][3] & termios.ICANON  # and no longer
