"""Classes of public escapes from sandboxes of this kind, each with a witness that stands outside.

The numbers are those of the table in docs/threat-model.md, which names the tests of the other
classes as well. Each program works, or would, where nothing confines it: that is the control.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from someone import Someone

pytestmark = [
    pytest.mark.requires("program"),
    pytest.mark.requires("listener"),
    pytest.mark.requires("landlock"),
    pytest.mark.requires("x86_64"),
]

HEAD = r"""
import ctypes, errno, mmap, os, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
canary = os.path.abspath("outside/canary")
def call(number, *arguments):
    wrapped = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = libc.syscall(ctypes.c_long(number), *wrapped)
    return result if result >= 0 else -ctypes.get_errno()
def say(*words):
    print(*words, flush=True)
"""

# Only files whose names begin with "mine" may be changed: every open is the supervisor's to make.
RULES = '[fs]\nallow_write = ["{work}/mine*"]\n'

PROGRAMS = {
    # A path that ends with its page, the next one unmapped; one without an end.
    "E06-page-end": r"""
page = libc.mmap(None, 8192, 3, 0x22, -1, 0)
libc.munmap(ctypes.c_void_p(page + 4096), 4096)
def at_end(text):
    place = page + 4096 - len(text)
    ctypes.memmove(place, text, len(text))
    return ctypes.c_void_p(place)
wrote = call(2, at_end(canary.encode() + b"\0"), os.O_WRONLY | os.O_TRUNC, 0)
mine = call(2, at_end(os.path.abspath("mine").encode() + b"\0"), os.O_WRONLY | os.O_CREAT, 0o600)
cut = call(2, at_end(canary.encode()), os.O_WRONLY | os.O_TRUNC, 0)
long = call(2, ctypes.c_char_p(b"/" + b"x" * 5000), os.O_WRONLY | os.O_TRUNC, 0)
say("wrote" if wrote >= 0 else "kept out", mine >= 0, -cut == errno.EFAULT, -long)
""",
    # A FIFO that nobody writes to blocks its reader, and nobody else.
    "E08-fifo": r"""
if not os.path.exists("mine-fifo"):
    os.mkfifo("mine-fifo")
threading.Thread(target=lambda: open("mine-fifo").read(), daemon=True).start()
for i in range(50):
    open(f"mine-{i}", "w").close()
try:
    open(canary, "w").close()
    say("wrote")
except PermissionError:
    say("kept out", len(os.listdir(".")) > 50)
os._exit(0)
""",
    # Where no descriptor can be handed in, nothing is opened instead.
    "E10-no-descriptors": r"""
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
held = []
try:
    while True:
        held.append(os.dup(1))
except OSError:
    pass
results = []
for name in ("mine", canary):
    got = call(2, ctypes.c_char_p(name.encode()), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    results.append(got)
for one in held:
    os.close(one)
wrote = call(2, ctypes.c_char_p(canary.encode()), os.O_WRONLY | os.O_TRUNC, 0)
say("wrote" if wrote >= 0 else "kept out", results[0] == -errno.EMFILE, results[1] < 0)
""",
    # Signals that come all the time: a call that one breaks off was not done (rename is not tried
    # again by Python, and is never broken off where nobody is asked).
    "E12-signals": r"""
import signal
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
for i in range(300):
    with open("mine", "w") as f:
        f.write("x" * 10)
    for act in (lambda: os.rename("mine", "mine2"), lambda: os.unlink("mine2")):
        while True:
            try:
                act()
                break
            except InterruptedError:
                pass
signal.setitimer(signal.ITIMER_REAL, 0)
try:
    open(canary, "w").close()
    say("wrote")
except PermissionError:
    say("kept out", True)
""",
    # The 32-bit table of calls: 5 is open there, 1 exit.
    "E18-int80": r"""
import signal
text = canary.encode() + b"\0"
low = libc.mmap(ctypes.c_void_p(0x10000), 8192, 7, 0x32, -1, 0)
ctypes.memmove(0x10100, text, len(text))
code = bytes([0x53, 0xb8, 5, 0, 0, 0, 0xbb, 0, 1, 1, 0, 0xb9, 1, 2, 0, 0, 0x31, 0xd2,
              0xcd, 0x80, 0x5b, 0xc3])
ctypes.memmove(0x10000, code, len(code))
pid = os.fork()
if pid == 0:
    got = ctypes.CFUNCTYPE(ctypes.c_int)(0x10000)()
    os._exit(0 if got >= 0 else 1)
status = os.waitpid(pid, 0)[1]
if os.WIFSIGNALED(status):
    say("kept out", os.WTERMSIG(status) == signal.SIGSYS)
else:
    say("wrote" if status == 0 else "not here")
""",
    # The same number with a bit that stands for the calls of 32-bit pointers.
    "E18-x32": r"""
pid = os.fork()
if pid == 0:
    got = call(0x40000000 + 2, ctypes.c_char_p(canary.encode()), os.O_WRONLY | os.O_TRUNC, 0)
    os._exit(0 if got >= 0 else 1)
status = os.waitpid(pid, 0)[1]
say("wrote" if status == 0 else "kept out", os.WIFSIGNALED(status))
""",
    # Opens that are made without a call.
    "E19-io-uring": r"""
setup = call(425, 4, ctypes.create_string_buffer(120))
say("kept out" if setup == -errno.ENOSYS else "made", setup)
""",
    "E20-ptrace": r"""
import subprocess
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
got = [call(101, request, child.pid, 0, 0) for request in (0, 16, 0x4206)]
child.kill()
child.wait()
say("kept out" if all(one == -errno.EPERM for one in got) else "traced", got)
""",
    "E23-mounts": r"""
got = {
    "unshare user": call(272, 0x10000000),
    "unshare mount": call(272, 0x20000),
    "mount": call(165, ctypes.c_char_p(b"none"), ctypes.c_char_p(b"mine"),
                  ctypes.c_char_p(b"tmpfs"), 0, 0),
    "open_tree": call(428, -100, ctypes.c_char_p(b"/"), 1),
    "fsopen": call(430, ctypes.c_char_p(b"tmpfs"), 0),
    "chroot": call(161, ctypes.c_char_p(b".")),
    "open_by_handle_at": call(304, -100, ctypes.create_string_buffer(128), 0),
    "setns": call(308, 1, 0),
}
try:
    os.close(os.open("/proc/self/exe", os.O_WRONLY))
    got["own program"] = 0
except OSError as why:
    got["own program"] = -why.errno
say("kept out" if all(one < 0 for one in got.values()) else "done", got)
""",
    # Numbers that no kernel has given out, and -1.
    "E25-unknown-numbers": r"""
odd = {}
for number in [*range(471, 600), 1023, 1 << 20, -1]:
    got = call(number, -1, -1, -1, -1, -1, -1)
    if got not in (-errno.ENOSYS, -errno.EPERM):
        odd[number] = got
say("kept out" if not odd else "odd", odd)
""",
}

# What the first program of a run reads before the script: all of it runs confined.
PLANTED = "import os\ntry: open(os.environ['CANARY'], 'w').close()\nexcept OSError: pass\n"


@pytest.fixture(params=["caller", "user"])
def someone(request, tmp_path: Path) -> Iterator[Someone]:
    one = Someone(tmp_path, user=request.param == "user", force="")
    one.run("import os\nos.mkdir('outside')\nopen('outside/canary', 'w').write('here')\n")
    (one.folder / "policy.toml").write_text(RULES)
    (one.folder / "policy.toml").chmod(0o644)
    yield one
    one.close()


def confined(someone: Someone, code: str, *options: str):
    return someone.run(code, "--policy", str(someone.folder / "policy.toml"), *options)


@pytest.mark.parametrize("name", PROGRAMS)
def test_escape_is_contained(someone: Someone, name: str) -> None:
    canary = someone.folder / "outside/canary"
    code = HEAD + PROGRAMS[name]
    ran = confined(someone, code)
    words = ran.result["stdout"].split(" ", 2)
    assert canary.read_text() == "here"
    assert ran.result["stdout"].startswith(("kept out", "not here")), ran.result["stdout"]
    assert "False" not in ran.result["stdout"], words
    assert ran.result["status"] == "ok", ran.result["reason"]
    # What writes, writes where nothing confines it. (What no policy allows fails here, too.)
    if "wrote" in PROGRAMS[name] and "not here" not in ran.result["stdout"]:
        subprocess.run(
            [someone.python, "-c", code.replace("os.abort", "os._exit")],
            cwd=someone.folder,
            timeout=60,
            check=False,
            stdout=subprocess.DEVNULL,
            **someone.who,
        )
        assert canary.read_text() == "" or name == "E18-x32"


def test_what_runs_before_the_script_is_confined(someone: Someone) -> None:
    """E27: sitecustomize, usercustomize and PYTHONSTARTUP's place on the module path."""
    canary = someone.folder / "outside/canary"
    for name in ("sitecustomize.py", "usercustomize.py"):
        (someone.folder / name).write_text(PLANTED)
        (someone.folder / name).chmod(0o644)
    someone.environment.update(CANARY=str(canary), PYTHONPATH=str(someone.folder))
    ran = confined(someone, "print('ran')\n")
    assert ran.result["stdout"] == "ran\n"
    assert canary.read_text() == "here"
    assert [one["operation"] for one in ran.result["violations"]].count("write") >= 1
    someone.run("print('ran')\n")
    assert canary.read_text() == ""


def test_a_stopped_program_is_ended_by_its_limit(someone: Someone) -> None:
    """E13: stopping oneself, a child or everything stops no supervisor."""
    code = "import os, signal\nif os.fork() == 0: os.kill(os.getpid(), signal.SIGSTOP)\n"
    code += "os.kill(os.getpid(), signal.SIGSTOP)\n"
    ran = confined(someone, code, "--timeout", "1s")
    assert ran.result["status"] == "timeout"
    assert ran.took_s < 10


def test_runs_do_not_see_each_other(tmp_path: Path) -> None:
    """E35: neither another run's memory nor its shared memory, nor can it be signalled."""
    other = (
        "import os, sys\nfrom multiprocessing import shared_memory\n"
        "one = shared_memory.SharedMemory('other-run', create=True, size=64)\n"
        "one.buf[:6] = b'secret'\nprint(os.getpid(), flush=True)\ninput()\none.unlink()\n"
    )
    probe = (
        "import os, sys\nfrom multiprocessing import shared_memory\npid = int(sys.argv[1])\n"
        "def attempt(act):\n"
        "    try: return act()\n"
        "    except OSError as why: return type(why).__name__\n"
        "print(attempt(lambda: os.kill(pid, 0)))\n"
        "print(attempt(lambda: open(f'/proc/{pid}/environ', 'rb').read()))\n"
        "print(attempt(lambda: open(f'/proc/{pid}/mem', 'rb')))\n"
        "def shared():\n"
        "    one = shared_memory.SharedMemory('other-run')\n"
        "    return bytes(one.buf[:6])\n"
        "print(attempt(shared))\n"
    )
    first = Someone(tmp_path / "a", user=False, force="")
    second = Someone(tmp_path / "b", user=False, force="")
    for one in (first, second):
        one.folder.mkdir()
    (first.folder / "other.py").write_text(other)
    run = [first.program, "run", "-q", "--no-trace", "--policy", "default"]
    running = subprocess.Popen(
        [*run, "--python", sys.executable, "other.py"],
        cwd=first.folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    pid = running.stdout.readline().strip()
    ran = second.run(probe, "--policy", "default", arguments=(pid,))
    plain = subprocess.run(
        [sys.executable, "-c", probe, pid], capture_output=True, text=True, check=False
    )
    running.communicate("\n")
    assert "secret" in plain.stdout, plain.stderr
    assert ran.result["stdout"].splitlines() == ["PermissionError"] * 4


def test_a_name_that_was_the_runs_own_is_not_its_own_for_ever(tmp_path: Path) -> None:
    """Shared memory that somebody else makes under a name which the run had given up."""
    name = f"/dev/shm/sandpit-test-{os.getpid()}"
    code = (
        "import sys\n"
        f"name = {name!r}\n"
        "import os\n"
        "open(name, 'w').close()\n"
        "open(name, 'a').close()\n"
        "os.unlink(name)\n"
        "print('given up', flush=True)\n"
        "input()\n"
        "try:\n    open(name, 'w').write('taken')\n"
        "except PermissionError: print('kept out')\n"
    )
    someone = Someone(tmp_path, user=False, force="")
    (tmp_path / "script.py").write_text(code)
    for confined, ends in ((False, "taken"), (True, "mine")):
        command = [sys.executable, "script.py"]
        if confined:
            command = [someone.program, "run", "-q", "--no-trace", "--policy", "default",
                       "--python", *command]
        with subprocess.Popen(
            command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as running:
            assert running.stdout.readline() == "given up\n"
            Path(name).write_text("mine")
            said = running.communicate("\n")[0]
        left = Path(name).read_text()
        Path(name).unlink()
        assert left == ends
        assert said == ("kept out\n" if confined else "")
