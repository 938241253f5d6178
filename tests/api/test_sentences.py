"""One sentence tells of a denial: in the exception, in the result and in the trace.

The agent raises some denials itself. The others come back from the kernel as a bare errno,
of which Python makes an exception; that it says why is checked here for each way to get
one, and that it says so of nothing else.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import textwrap

import pytest
import sandpit
from abilities import require
from plain import run_plain

pytestmark = [
    pytest.mark.requires("program"),
    pytest.mark.requires("listener"),
    pytest.mark.requires("landlock"),
]

HEAD = """\
import asyncio, ctypes, json, os, pathlib, shutil, signal, socket, subprocess, sys
import threading
open("f", "w").close()
caught = []
def note(e):
    inner = e
    while isinstance(inner, shutil.Error):
        inner = inner.args[0][0][2]
    if not isinstance(inner, OSError):
        caught.append([type(e).__name__, None, str(inner)])
    else:
        caught.append([type(e).__name__, inner.errno, inner.strerror])
def attempt(f):
    try:
        f()
    except Exception as e:
        note(e)
"""
TAIL = "\nprint(json.dumps(caught))\n"

# What is tried, how often, and the errno.
ATTEMPTS = {
    "chmod": ('attempt(lambda: os.chmod("f", 0o4755))', 1, errno.EPERM),
    "fchmod": (
        'attempt(lambda: os.fchmod(os.open("f", os.O_RDWR), 0o2755))',
        1,
        errno.EPERM,
    ),
    "pathlib": ('attempt(lambda: pathlib.Path("f").chmod(0o4755))', 1, errno.EPERM),
    "mkdir": (
        'os.makedirs("d", exist_ok=True); attempt(lambda: os.chmod("d", 0o6755))',
        1,
        errno.EPERM,
    ),
    "kill": ("attempt(lambda: os.kill(int(sys.argv[1]), 0))", 1, errno.EPERM),
    "pidfd": (
        "attempt(lambda: signal.pidfd_send_signal(os.pidfd_open(int(sys.argv[1])), 0))",
        1,
        errno.EPERM,
    ),
    "priority": (
        "attempt(lambda: os.setpriority(os.PRIO_PROCESS, int(sys.argv[1]), 1))",
        1,
        errno.EPERM,
    ),
    "socket": (
        "attempt(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW))",
        1,
        errno.EACCES,
    ),
    "exec": ('attempt(lambda: os.execv("./secret", ["secret"]))', 1, errno.EACCES),
    "subprocess": (
        'attempt(lambda: subprocess.run(["./secret"]))',
        1,
        errno.EACCES,
    ),
    "subprocess_spawn": (
        'attempt(lambda: subprocess.Popen(["./secret"], close_fds=False))',
        1,
        errno.EACCES,
    ),
    "subprocess_fork": (
        'attempt(lambda: subprocess.Popen(["./secret"], start_new_session=True))',
        1,
        errno.EACCES,
    ),
    "subprocess_preexec": (
        'attempt(lambda: subprocess.Popen(["./secret"], preexec_fn=lambda: None))',
        1,
        errno.EACCES,
    ),
    "subprocess_path": (
        'os.environ["PATH"] = os.getcwd() + ":/usr/bin"\n'
        'attempt(lambda: subprocess.run(["secret"]))',
        1,
        errno.EACCES,
    ),
    "spawn": (
        'attempt(lambda: os.posix_spawn("./secret", ["secret"], {}))',
        1,
        errno.EACCES,
    ),
    "subprocess_thread": (
        'def work():\n    attempt(lambda: subprocess.run(["./secret"]))\n'
        "t = threading.Thread(target=work); t.start(); t.join()",
        1,
        errno.EACCES,
    ),
    "asyncio_exec": (
        "async def go():\n"
        '    await asyncio.create_subprocess_exec("./secret")\n'
        "attempt(lambda: asyncio.run(go()))",
        1,
        errno.EACCES,
    ),
    "asyncio_thread": (
        "async def go():\n"
        "    loop = asyncio.get_running_loop()\n"
        '    await loop.run_in_executor(None, os.chmod, "f", 0o4755)\n'
        "attempt(lambda: asyncio.run(go()))",
        1,
        errno.EPERM,
    ),
    "repeats": (
        'for _ in range(5): attempt(lambda: os.chmod("f", 0o4755))',
        5,
        errno.EPERM,
    ),
}


@pytest.fixture
def outside():
    """A process that is none of the run's."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process.pid
    process.communicate(b"\n")


@pytest.fixture
def folder(tmp_path):
    """A folder with a program that may be started and not read."""
    shutil.copyfile("/bin/true", tmp_path / "secret")
    os.chmod(tmp_path / "secret", 0o111)
    return tmp_path


def confined(python, code, folder, *args, policy="no-network"):
    (folder / "main.py").write_text(code)
    return sandpit.run(
        str(folder / "main.py"),
        args=[str(one) for one in args],
        policy=policy,
        python=python.path,
        cwd=folder,
    )


@pytest.mark.parametrize("name", ATTEMPTS)
def test_exception_says_what_result_and_trace_say(python, name, folder, outside):
    body, times, code = ATTEMPTS[name]
    program = HEAD + body + TAIL
    result = confined(python, program, folder, outside)
    assert result.exit_code == 0, result.stderr
    (one,) = result.violations
    assert one.count == times
    told = [e for e in result.trace if e["kind"] == "violation"]
    assert {e["message"] for e in told} == {one.message}
    assert json.loads(result.stdout) == [["PermissionError", code, one.message]] * times
    # What was tried, on what, where, by which rule, and what would allow it.
    assert one.message.startswith(f"{one.operation} {one.target} is denied ")
    if one.line is None:  # no line of the program called it
        assert name == "asyncio_thread"
    else:
        assert f", {folder}/main.py:{one.line}; " in one.message
    assert ("(rule " if one.rule != "every policy" else "every policy") in one.message
    assert one.hint and one.message.endswith(f"; {one.hint}")
    # The same program does it all where nothing confines it.
    (folder / "f").chmod(0o644)
    plain = run_plain(python, ["main.py", outside], cwd=folder)
    assert plain.exit_code == 0
    assert plain.stdout in (b"", b"[]\n"), plain.stdout


def test_copy_tree_lists_the_sentence(python, folder):
    program = HEAD + (
        'os.mkdir("a"); open("a/g", "w").close(); os.chmod("a/g", 0o644)\n'
        "def copy(a, b):\n"
        "    shutil.copyfile(a, b); os.chmod(b, 0o4755)\n"
        'attempt(lambda: shutil.copytree("a", "b", copy_function=copy))'
    )
    result = confined(python, program + TAIL, folder)
    (one,) = result.violations
    ((kind, _, text),) = json.loads(result.stdout)
    assert kind == "Error"
    assert one.message in text


def test_uncaught_exception_carries_the_sentence(python, folder):
    code = 'import os\nopen("f", "w").close()\nos.chmod("f", 0o4755)\n'
    result = confined(python, code, folder)
    (one,) = result.violations
    assert result.stderr.splitlines()[-1] == (
        f"PermissionError: [Errno 1] {one.message}: 'f'"
    )
    assert one.message in result.exception.message


def test_import_and_connection_carry_the_same_text(python, folder):
    program = HEAD + (
        "attempt(lambda: __import__('requests'))\n"
        "attempt(lambda: socket.create_connection(('127.0.0.1', 9)))\n"
        "attempt(lambda: socket.getaddrinfo('name.invalid', 80))\n"
    )
    result = confined(python, program + TAIL, folder)
    told = [text for _, _, text in json.loads(result.stdout)]
    assert told == [one.message for one in result.violations]
    assert all(one.message.endswith(one.hint) for one in result.violations)


# A refusal that nobody looked at explains no later error: not at the same errno, not in
# another thread, not in a child.
QUIET = "libc = ctypes.CDLL(None); quiet = lambda: libc.chmod(b'f', 0o4755)\n"
STALE = {
    "next_line": (QUIET + "quiet()\nattempt(lambda: os.setgroups([]))", 1),
    "same_line": (QUIET + "quiet(), attempt(lambda: os.setgroups([]))", 1),
    "looked_up_later": (QUIET + "quiet(); caught.append(os.strerror(1))", 1),
    "other_thread": (
        QUIET + "quiet()\n"
        "t = threading.Thread(target=attempt, args=(lambda: os.setgroups([]),))\n"
        "t.start(); t.join()",
        1,
    ),
    "forked_child": (
        QUIET + "quiet()\n"
        "if os.fork() == 0:\n"
        "    attempt(lambda: os.setgroups([]))\n"
        "    print(json.dumps(caught), flush=True); os._exit(0)\n"
        "os.wait(); sys.exit()",
        1,
    ),
    "used_up": (
        'attempt(lambda: os.chmod("f", 0o4755)); caught.clear()\n'
        "attempt(lambda: os.setgroups([])); caught.append(os.strerror(1))",
        1,
    ),
    # The child never told its parent why it ended.
    "silent_child": (
        "if os.fork() == 0:\n"
        '    try: os.execv("./secret", ["secret"])\n'
        "    except OSError: os._exit(0)\n"
        "os.wait(); caught.append(os.strerror(13))",
        1,
    ),
}


@pytest.mark.parametrize("name", STALE)
def test_refusal_that_nobody_saw_explains_nothing_else(python, name, folder):
    body, denials = STALE[name]
    result = confined(python, HEAD + body + TAIL, folder)
    assert result.exit_code == 0, result.stderr
    assert len(result.violations) == denials
    for one in json.loads(result.stdout):
        text = one if isinstance(one, str) else one[2]
        assert text in ("Operation not permitted", "Permission denied")


def test_threads_get_their_own_sentences(python, folder):
    program = HEAD + textwrap.dedent("""
        wrong = []
        def work(i):
            name = f"own-{i}"
            open(name, "w").close()
            for _ in range(50):
                try:
                    os.chmod(name, 0o4755)
                except PermissionError as e:
                    if f"/{name} is denied" not in e.strerror:
                        wrong.append(e.strerror)
        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for t in threads: t.start()
        for t in threads: t.join()
        print(wrong[:3])
    """)
    result = confined(python, program, folder)
    assert result.stdout == "[]\n", result.stderr
    assert sorted(one.count for one in result.violations) == [50] * 8


def test_children_of_threads_are_told_of_by_their_makers(python, folder):
    for i in range(4):
        shutil.copyfile("/bin/true", folder / f"secret-{i}")
        os.chmod(folder / f"secret-{i}", 0o111)
    program = HEAD + textwrap.dedent("""
        wrong = []
        def work(i):
            for _ in range(10):
                try:
                    subprocess.run([f"./secret-{i}"])
                except PermissionError as e:
                    if f"/secret-{i} is denied" not in e.strerror:
                        wrong.append(e.strerror)
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for t in threads: t.start()
        for t in threads: t.join()
        print(wrong[:3])
    """)
    result = confined(python, program, folder)
    assert result.stdout == "[]\n", result.stderr


def test_texts_of_errnos_are_as_under_plain_python(python, folder):
    code = (
        "import os, errno\n"
        "for i in range(-1, 140): print(os.strerror(i))\n"
        "for name in ('no/such', '/dev/null/x', '.'):\n"
        "    try: open(name, 'rb+')\n"
        "    except OSError as e: print(repr(e), e)\n"
    )
    (folder / "main.py").write_text(code)
    plain = run_plain(python, ["main.py"], cwd=folder)
    result = confined(python, code, folder)
    assert result.stdout_bytes == plain.stdout


# Changes of files where the policy grants none, and reads that it denies. `out` is a folder
# outside, with a file `old` and a folder `full`, which holds one.
FILES = {
    "open": 'open(out + "/new", "w")',
    "open_binary_append": 'open(out + "/old", "ab")',
    "os_open": 'os.open(out + "/new", os.O_CREAT | os.O_WRONLY)',
    "io": 'io.FileIO(out + "/old", "w")',
    "mkdir": 'os.mkdir(out + "/new")',
    "makedirs": 'os.makedirs(out + "/new/deep")',
    "remove": 'os.remove(out + "/old")',
    "rmtree": 'shutil.rmtree(out + "/full")',
    "rename": 'os.rename(out + "/old", out + "/new")',
    "replace": 'os.replace("f", out + "/old")',
    "move": 'shutil.move("f", out + "/new")',
    "link": 'os.link("f", out + "/new")',
    "symlink": 'os.symlink("f", out + "/new")',
    "chmod": 'os.chmod(out + "/old", 0o600)',
    "utime": 'os.utime(out + "/old")',
    "truncate": 'os.truncate(out + "/old", 0)',
    "copy": 'shutil.copy("f", out + "/new")',
    "write_text": 'pathlib.Path(out, "new").write_text("x")',
    "touch": 'pathlib.Path(out, "new").touch()',
    "unlink": 'pathlib.Path(out, "old").unlink()',
    "mkstemp": "tempfile.mkstemp(dir=out)",
    "named_temporary": "tempfile.NamedTemporaryFile(dir=out)",
    "temporary_folder": "tempfile.TemporaryDirectory(dir=out)",
    "logging": 'logging.FileHandler(out + "/new")',
    "zipfile": 'zipfile.ZipFile(out + "/new", "w")',
    "stdout": 'subprocess.run(["true"], stdout=open(out + "/new", "w"))',
    "read": 'open(out + "/full/secret").read()',
    "read_text": 'pathlib.Path(out, "full/secret").read_text()',
    "listdir": 'os.listdir(out + "/full/hidden")',
    "scandir": 'list(os.scandir(out + "/full/hidden"))',
    # Closed and waited for: one that is terminated, as by the garbage collector, hangs on a
    # busy machine now and then, in plain CPython too.
    "pool": (
        "p = multiprocessing.get_context('fork').Pool(1); "
        "r = p.apply_async(os.remove, (out + '/old',)); p.close(); p.join(); r.get()"
    ),
    "executor": (
        "concurrent.futures.ThreadPoolExecutor(1)"
        ".submit(os.remove, out + '/old').result()"
    ),
}
FILES_HEAD = """\
import concurrent.futures, io, json, logging, multiprocessing, os, pathlib, shutil
import subprocess, sys, tempfile, zipfile
out = sys.argv[1]
if not os.path.exists("f"): open("f", "w").close()
"""
FILES_POLICY = """
extends = "no-network"
[fs]
allow_write = ["{work}", "{tmp}"]
deny_read = ["OUT/full/secret", "OUT/full/hidden"]
"""


@pytest.fixture
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("out")
    (folder / "old").write_text("old")
    (folder / "full" / "hidden").mkdir(parents=True)
    (folder / "full" / "secret").write_text("secret")
    return folder


def snapshot(folder):
    return {
        path: (path.lstat().st_mode, path.lstat().st_mtime_ns, path.lstat().st_size)
        for path in sorted(folder.rglob("*"))
    }


@pytest.mark.parametrize("name", FILES)
def test_exception_says_why_a_file_is_out_of_reach(python, name, folder, out):
    program = FILES_HEAD + (
        f"try:\n    {FILES[name]}\nexcept OSError as e:\n"
        "    while isinstance(e, shutil.Error): e = e.args[0][0][2]\n"
        "    print(json.dumps([e.errno, e.strerror]))\n"
    )
    (folder / "files.toml").write_text(FILES_POLICY.replace("OUT", str(out)))
    before = snapshot(out)
    result = confined(python, program, folder, out, policy=folder / "files.toml")
    assert result.exit_code == 0, result.stderr
    assert snapshot(out) == before
    said = json.loads(result.stdout)
    assert said in [[errno.EACCES, one.message] for one in result.violations]
    (told,) = [one for one in result.violations if one.message == said[1]]
    assert "files.toml" in told.message and told.rule in told.message
    assert told.message.endswith(f"; {told.hint}")
    assert "--allow-" in told.hint
    if told.line is not None:
        assert f", {folder}/main.py:{told.line}; " in told.message
    # Unconfined, the same program is told of nothing.
    plain = run_plain(python, ["main.py", out], cwd=folder)
    assert (plain.exit_code, plain.stdout) == (0, b""), plain.stderr


# New processes and programs, under a policy that grants neither or one of them.
PROCESSES = {
    "fork": ("no-process", "os.fork()"),
    "process": (
        "no-process",
        "multiprocessing.get_context('fork').Process(target=print).start()",
    ),
    "subprocess": ("no-process", 'subprocess.run(["/bin/true"])'),
    "shell": ("no-process", 'subprocess.run("true", shell=True)'),
    "posix_spawn": (
        "no-process",
        'os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)',
    ),
    "execv": ("no-process", 'os.execv("/bin/true", ["true"])'),
    "program": ("programs.toml", 'subprocess.run(["/bin/true"])'),
    "program_by_name": ("programs.toml", 'subprocess.run(["true"])'),
    "program_spawned": (
        "programs.toml",
        'os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)',
    ),
    "program_in_place": ("programs.toml", 'os.execvp("true", ["true"])'),
    "popen": ("programs.toml", 'os.popen("true").read()'),
    "asyncio": (
        "programs.toml",
        "asyncio.run(asyncio.create_subprocess_exec('/bin/true'))",
    ),
}


@pytest.mark.parametrize("name", PROCESSES)
def test_exception_says_why_nothing_is_started(python, name, folder):
    policy, act = PROCESSES[name]
    program = (
        "import asyncio, json, multiprocessing, os, subprocess\n"
        f"try:\n    {act}\n"
        "except OSError as e:\n    print(json.dumps([e.errno, e.strerror]))\n"
    )
    (folder / "programs.toml").write_text(
        'extends = "trace-only"\n[process]\nallow = ["{python}"]\n'
    )
    if policy.endswith(".toml"):
        policy = folder / policy
    result = confined(python, program, folder, policy=policy)
    assert result.exit_code == 0, result.stderr
    number, text = json.loads(result.stdout)
    assert number in (errno.EPERM, errno.EACCES)
    assert text in [one.message for one in result.violations]
    (one,) = [one for one in result.violations if one.message == text]
    assert one.category == "process"
    assert one.rule in text and text.endswith(f"; {one.hint}")
    assert one.file is None or f", {folder}/main.py:{one.line}; " in text
    plain = run_plain(python, ["main.py"], cwd=folder)
    assert plain.exit_code == 0, plain.stderr


def test_sqlite_has_words_of_its_own(python, folder, out):
    program = FILES_HEAD + (
        "import sqlite3\n"
        "try:\n    sqlite3.connect(out + '/new').execute('create table t (x)')\n"
        "except sqlite3.Error as e:\n    print(e)\n"
    )
    if not python.has("_sqlite3"):
        require("sqlite3", "this interpreter has no sqlite3")
    (folder / "files.toml").write_text(FILES_POLICY.replace("OUT", str(out)))
    result = confined(python, program, folder, out, policy=folder / "files.toml")
    assert result.stdout == "unable to open database file\n"
    assert not (out / "new").exists()
    assert {one.target for one in result.violations} == {str(out / "new")}
    plain = run_plain(python, ["main.py", out], cwd=folder)
    assert (plain.exit_code, plain.stdout) == (0, b""), plain.stderr


def test_observe_is_an_argument(python):
    code = "import ftplib\nprint('in')\n"
    options = {"policy": "no-network", "python": python.path}
    denied = sandpit.run_string(code, **options)
    assert (denied.status, denied.violations[0].action) == ("error", "deny")
    observed = sandpit.run_string(code, observe=True, **options)
    assert (observed.status, observed.stdout) == ("ok", "in\n")
    (one,) = observed.violations
    assert (one.target, one.action) == ("ftplib", "observe")
    with pytest.raises(TypeError, match="observe must be a bool"):
        sandpit.run_string(code, observe="yes")
