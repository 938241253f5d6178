"""A program cannot tell that it is watched: its output is that of plain python."""

from __future__ import annotations

import os
import subprocess
import textwrap
import zipfile

import pytest
import sandpit
from abilities import require
from plain import POLICIES, outcome_of, run_command, run_plain
from sandpit._program import find_program

pytestmark = [pytest.mark.requires("program"), pytest.mark.requires("landlock")]

SCRIPTS = {
    "sys": """
        import sys
        print(sys.argv, sys.path, sys.flags, getattr(sys, "orig_argv", None))
        print(sys.executable, sys.prefix, sys.exec_prefix, sys.base_prefix)
        print(sys.warnoptions, sys._xoptions, sys.dont_write_bytecode)
        print(sys.getrecursionlimit(), sys.getswitchinterval(), sys.hexversion)
        print(sys.gettrace(), sys.getprofile(), sys.excepthook is sys.__excepthook__)
        print(sys.stdin, sys.stdout, sys.stderr)
        print(sorted(sys.modules))
        """,
    "main": """
        print(list(globals()))
        print(__name__, __file__, __spec__, __package__, __loader__.__class__)
        print(__builtins__, sorted(dir(__builtins__)))
        """,
    "stack": """
        import inspect, sys, threading, traceback
        def show():
            for frame in inspect.stack():
                print(frame.filename, frame.lineno, frame.function, frame.code_context)
            traceback.print_stack(file=sys.stdout)
            print(len(sys._current_frames()))
        def outer():
            show()
        outer()
        one = threading.Thread(target=outer)
        one.start()
        one.join()
        print(threading.enumerate(), threading.active_count())
        """,
    "traceback": """
        import json
        def fail(depth):
            if depth == 0:
                json.loads("{")
            fail(depth - 1)
        try:
            fail(3)
        except ValueError as error:
            raise RuntimeError("outer") from error
        """,
    "environ": """
        import os, subprocess
        print(list(os.environ), dict(os.environ))
        print(os.environb.get(b"LD_PRELOAD"), os.getenv("LD_PRELOAD"))
        """,
    "descriptors": """
        import os
        print(sorted(os.listdir("/proc/self/fd"), key=int))
        for fd in range(3):
            print(fd, os.isatty(fd), os.get_inheritable(fd))
        """,
    "warnings": """
        import warnings
        warnings.warn("here")
        warnings.warn("deprecated", DeprecationWarning)
        def deprecated():
            warnings.warn("above", stacklevel=2)
        deprecated()
        print(open("/dev/null"))
        """,
    "recursion": """
        import sys
        def depth():
            count = 0
            def down():
                nonlocal count
                count += 1
                down()
            try:
                down()
            except RecursionError as error:
                print(error)
            return count
        print(depth())
        sys.setrecursionlimit(5000)
        print(depth())
        """,
    "deep": """
        import sys
        levels = 100_000 if sys.version_info >= (3, 11) else 10_000
        sys.setrecursionlimit(levels + 1000)
        def down(n):
            return n if n == 0 else down(n - 1) + 1
        print(down(levels))
        """,
    # Once there was a second interpreter, CPython's own check says of every thread that it
    # holds the lock: the agent looked at a state that was not there, and the process died.
    "thread made without the lock": """
        import ctypes
        try:
            import _xxsubinterpreters as interpreters
        except ImportError:
            import _interpreters as interpreters
        libc = ctypes.CDLL(None)
        work = ctypes.cast(libc.getpid, ctypes.c_void_p)
        interpreters.destroy(interpreters.create())
        thread = ctypes.c_ulong()
        for _ in range(3):
            print(libc.pthread_create(ctypes.byref(thread), None, work, None))
            print(libc.pthread_join(thread, None))
        """,
    # What the agent hangs on code objects made the interpreter call the program's function
    # for each of them, at the end of the program after the function was gone.
    "values on code objects": """
        import ctypes
        python = ctypes.pythonapi
        freed = []
        kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        free = kind(freed.append)
        new = hasattr(python, "PyUnstable_Code_SetExtra")
        request = "PyUnstable_Eval_RequestCodeExtraIndex" if new else "_PyEval_RequestCodeExtraIndex"
        index = getattr(python, request)(free)
        change = getattr(python, "PyUnstable_Code_SetExtra" if new else "_PyCode_SetExtra")
        change.argtypes = (ctypes.py_object, ctypes.c_ssize_t, ctypes.c_void_p)
        for value in (None, 100):
            names = {}
            exec("def f(): return [x for x in (1, 2)]\\nf()", names)
            if value:
                print(change(names["f"].__code__, ctypes.c_ssize_t(index), value))
                names["f"]()
            del names["f"]
            print(freed)
        """,
    # Those of processes of others are denied; nobody's are not there.
    "processes that are not there": """
        import os, resource
        acts = [
            lambda pid: os.kill(pid, 0),
            lambda pid: resource.prlimit(pid, resource.RLIMIT_CPU),
            lambda pid: os.setpriority(os.PRIO_PROCESS, pid, 1),
            lambda pid: os.sched_setaffinity(pid, {0}),
            lambda pid: os.sched_setscheduler(pid, os.SCHED_OTHER, os.sched_param(0)),
        ]
        for pid in (-2, 2 ** 22 + 1):
            for act in acts:
                if (act, pid) == (acts[0], -2):
                    continue
                try:
                    print(act(pid))
                except OSError as error:
                    print(error.errno)
        """,
    "ids": """
        import os
        print(os.getcwd(), os.uname(), os.getuid(), os.getgid(), os.umask(0o22))
        print(os.nice(0), sorted(os.sched_getaffinity(0)))
        """,
    "signals": """
        import signal
        print([(one, signal.getsignal(one)) for one in sorted(signal.valid_signals())])
        print(signal.pthread_sigmask(signal.SIG_BLOCK, []))
        """,
    "hooks": """
        import builtins, sys
        print(builtins.__import__, builtins.open, builtins.print, builtins.exec)
        print(builtins.__import__.__doc__, builtins.__import__.__name__)
        print(type(builtins.__import__), builtins.__import__.__module__)
        print(builtins.__import__.__self__, builtins.__import__.__text_signature__)
        print(sys.meta_path, [str(one) for one in sys.path_hooks])
        """,
    "generators": """
        import asyncio, contextlib
        async def one(n):
            await asyncio.sleep(0)
            return n * 2
        @contextlib.contextmanager
        def block():
            try:
                yield 1
            except ValueError:
                print("caught")
        def many():
            try:
                yield from range(3)
            finally:
                print("closed")
        async def main():
            print(await asyncio.gather(*map(one, range(5))))
        asyncio.run(main())
        with block():
            raise ValueError
        for n in many():
            print(n)
            break
        """,
    "profile": """
        import sys
        seen = []
        def hook(frame, event, arg):
            if frame.f_code.co_filename == __file__:
                seen.append((event, frame.f_code.co_name, frame.f_lineno))
            return hook
        def work():
            return len("abc")
        for install in (sys.settrace, sys.setprofile):
            install(hook)
            work()
            install(None)
        print(seen)
        """,
    "tools": """
        import cProfile, io, pstats, trace
        def work():
            return sum(range(10))
        one = cProfile.Profile()
        one.runcall(work)
        print(sorted(key[2] for key in pstats.Stats(one, stream=io.StringIO()).stats))
        two = trace.Trace(count=True, trace=False)
        two.runfunc(work)
        print(len(two.results().counts))
        """,
    "exit_handlers": """
        import atexit, sys, threading, weakref
        atexit.register(print, "atexit")
        class Thing:
            def __del__(self):
                print("deleted")
        thing = Thing()
        weakref.finalize(thing, print, "finalized")
        threading.Thread(target=print, args=["thread"]).start()
        sys.stderr.write("no newline")
        """,
    "unraisable": """
        class Thing:
            def __del__(self):
                raise ValueError("in del")
        Thing()
        import threading
        def fail():
            raise KeyError("in thread")
        one = threading.Thread(target=fail, name="named")
        one.start()
        one.join()
        """,
    "source": """
        exec(compile("def f():\\n    return 1 / 0\\n", "<made>", "exec"))
        import ast, dis, inspect
        print(inspect.getsource(ast.parse)[:40])
        print(eval("1 + 1"), [one.opname for one in dis.get_instructions("x = 1")])
        f()
        """,
}


def write(folder, text, name="script.py"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))
    return path


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", SCRIPTS)
def test_script_prints_what_it_prints_under_plain_python(
    python, policy, name, tmp_path
):
    write(tmp_path, SCRIPTS[name])
    args = ["one", "--two", "", "\u00e9 \u2603"]
    plain = run_plain(python, ["script.py", *args], cwd=tmp_path)
    for calls in ("folded", "all"):
        result = sandpit.run(
            "script.py",
            args=args,
            cwd=tmp_path,
            policy=policy,
            python=python.path,
            calls=calls,
        )
        assert outcome_of(result) == plain
        assert result.violations == ()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    "variables",
    [
        {"PYTHONDEVMODE": "1"},
        {"PYTHONMALLOC": "debug"},
        {"PYTHONHASHSEED": "0", "PYTHONOPTIMIZE": "2", "PYTHONUTF8": "1"},
        {
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUNBUFFERED": "1",
            "PYTHONSAFEPATH": "1",
        },
        {"PYTHONPROFILEIMPORTTIME": "", "PYTHONWARNINGS": "error", "LC_ALL": "C"},
        {"LD_PRELOAD": ""},
        {},
    ],
    ids=["dev", "malloc", "hash", "flags", "warnings", "preload", "empty"],
)
def test_environment_has_its_usual_effect(python, policy, variables, tmp_path):
    write(tmp_path, SCRIPTS["sys"] + SCRIPTS["environ"] + SCRIPTS["descriptors"])
    env = {"PATH": os.environ["PATH"], **variables} if variables else {}
    plain = run_plain(python, ["script.py"], cwd=tmp_path, env=env)
    result = sandpit.run(
        "script.py", cwd=tmp_path, policy=policy, python=python.path, env=env
    )
    assert outcome_of(result) == plain


PACKAGE = {
    "pkg/__init__.py": "print('init', __name__, __path__)\n",
    "pkg/__main__.py": "import sys\nfrom . import part\nprint(sys.argv, __spec__)\n",
    "pkg/part.py": "print(__name__, __file__)\n",
    "pkg/tool.py": "import sys\nprint(sys.argv[1:], __package__, list(globals()))\n",
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", ["pkg", "pkg.tool", "pkg.none", "none", "this"])
def test_module_runs_as_with_dash_m(python, policy, name, tmp_path):
    for path, text in PACKAGE.items():
        write(tmp_path, text, path)
    plain = run_plain(python, ["-m", name, "a"], cwd=tmp_path)
    plain = run_plain(python, ["-m", name, "a"], cwd=tmp_path)
    result = sandpit.run(
        name, module=True, args=["a"], cwd=tmp_path, policy=policy, python=python.path
    )
    assert outcome_of(result) == plain


@pytest.mark.parametrize("policy", POLICIES)
def test_folder_and_zip_run_as_programs(python, policy, tmp_path):
    write(
        tmp_path,
        "import sys, part\nprint(sys.argv, sys.path[0], __file__)\n",
        "folder/__main__.py",
    )
    write(tmp_path, "print(__name__, __file__)\n", "folder/part.py")
    with zipfile.ZipFile(tmp_path / "program.zip", "w") as archive:
        for name in ("__main__.py", "part.py"):
            archive.write(tmp_path / "folder" / name, name)
    for program in ("folder", "program.zip"):
        run_plain(python, [program], cwd=tmp_path)
        plain = run_plain(python, [program, "x"], cwd=tmp_path)
        result = sandpit.run(
            program, args=["x"], cwd=tmp_path, policy=policy, python=python.path
        )
        assert outcome_of(result) == plain


STDIN = """
import os, stat, sys
mode = os.fstat(0).st_mode if os.path.exists("/proc/self/fd/0") else 0
print(sys.stdin, stat.S_IFMT(mode))
if sys.stdin:
    print(sys.stdin.readline(), repr(sys.stdin.read()))
    try:
        input("prompt ")
    except EOFError as error:
        print(error)
"""


@pytest.mark.parametrize("policy", POLICIES)
def test_stdin_file_pipe_and_closed(python, policy, tmp_path):
    write(tmp_path, STDIN)
    (tmp_path / "input").write_bytes(b"first\nsecond\nthird")
    with open(tmp_path / "input", "rb") as stream:
        plain = run_plain(python, ["script.py"], cwd=tmp_path, stdin=stream.fileno())
    with open(tmp_path / "input", "rb") as stream:
        result = sandpit.run(
            "script.py", cwd=tmp_path, policy=policy, python=python.path, stdin=stream
        )
    assert outcome_of(result) == plain
    plain = run_plain(python, ["script.py"], cwd=tmp_path, stdin=b"a\nb\n")
    with sandpit.start(
        "script.py",
        cwd=tmp_path,
        policy=policy,
        python=python.path,
        stdin=sandpit.PIPE,
    ) as run:
        run.stdin.write(b"a\nb\n")
        run.stdin.close()
        assert outcome_of(run.wait()) == plain
    plain = run_plain(python, ["script.py"], cwd=tmp_path)
    result = sandpit.run("script.py", cwd=tmp_path, policy=policy, python=python.path)
    assert outcome_of(result) == plain
    shut = 'exec "$@" <&-'
    plain = run_plain("sh", ["-c", shut, "sh", python, "script.py"], cwd=tmp_path)
    shown = run_command(python, ["script.py"], policy=policy, cwd=tmp_path, shell=shut)
    assert shown == plain


@pytest.mark.parametrize("policy", POLICIES)
def test_program_from_stdin(python, policy, tmp_path):
    code = b"import sys\nprint(sys.argv, sys.path[0], __name__)\nprint(input())\nline\n"
    plain = run_plain(python, ["-", "x"], cwd=tmp_path, stdin=code)
    with sandpit.start(
        "-",
        args=["x"],
        cwd=tmp_path,
        policy=policy,
        python=python.path,
        stdin=sandpit.PIPE,
    ) as run:
        run.stdin.write(code)
        run.stdin.close()
        assert outcome_of(run.wait()) == plain


@pytest.mark.parametrize("policy", POLICIES)
def test_virtual_environment_and_shim(python, policy, tmp_path):
    subprocess.run(
        [python.path, "-m", "venv", "--without-pip", tmp_path / "env"], check=True
    )
    shim = tmp_path / "shim"
    shim.write_text(f'#!/bin/sh\nexec {python.path} "$@"\n')
    shim.chmod(0o755)
    write(tmp_path, SCRIPTS["sys"])
    for one in (tmp_path / "env" / "bin" / "python", shim):
        plain = run_plain(one, ["script.py"], cwd=tmp_path)
        result = sandpit.run("script.py", cwd=tmp_path, policy=policy, python=one)
        assert outcome_of(result) == plain


@pytest.mark.parametrize("policy", POLICIES)
def test_children_end_as_without_sandpit(python, policy, tmp_path):
    code = """
        import os, subprocess, sys
        def show(*command, **options):
            done = subprocess.run(command, capture_output=True, **options)
            print(command[1:], done.returncode, done.stdout, done.stderr)
        show("sh", "-c", "echo $0 $#; env | sort; exit 4", "x")
        show("sh", "-c", "kill -SEGV $$")
        show(sys.executable, "-I", "-S", "-E", "-c", "import sys; print(sys.flags)")
        show(sys.executable, "-X", "dev", "-c", "import sys; print(sys.orig_argv[1:])"
             if sys.version_info >= (3, 10) else "print(1)")
        show(sys.executable, "-c", "print(1)", env={"PATH": os.environ["PATH"]})
        show(sys.executable, "-c", "print(1)", close_fds=False)
        print(os.system("exit 3"), os.popen("echo popen").read())
        """
    write(tmp_path, code)
    plain = run_plain(python, ["script.py"], cwd=tmp_path)
    result = sandpit.run("script.py", cwd=tmp_path, policy=policy, python=python.path)
    assert outcome_of(result) == plain
    assert result.violations == ()


@pytest.mark.requires("bash")
@pytest.mark.parametrize("policy", POLICIES)
def test_child_of_other_kinds_ends_as_without_sandpit(policy, tmp_path):
    import interpreters

    (tmp_path / "hello.c").write_text(
        '#include <stdio.h>\nint main(void) { return puts("static") < 0; }\n'
    )
    built = subprocess.run(
        ["cc", "-static", "-o", "hello", "hello.c"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    if built.returncode != 0:
        require("cc", "cannot link a static program")
    others = [one.path for one in interpreters.find()]
    code = f"""
        import subprocess
        for python in {others!r}:
            subprocess.run([python, "-c", "import sys, json; print(sys.version)"])
        subprocess.run(["./hello"])
        subprocess.run(["bash", "-c", "f() {{ echo f; }}; f; exit 3"])
        """
    write(tmp_path, code)
    plain = run_plain(others[-1], ["script.py"], cwd=tmp_path)
    result = sandpit.run("script.py", cwd=tmp_path, policy=policy, python=others[-1])
    assert outcome_of(result) == plain
    executed = [event for event in result.trace if event["kind"] == "exec"]
    agents = {os.path.basename(event["path"]): event["agent"] for event in executed}
    assert agents["hello"] is False
    assert agents["bash"] is False


def test_output_passes_through_when_it_is_not_captured(tmp_path):
    code = (
        "import sandpit, sys\n"
        "result = sandpit.run_string('import sys; print(1); sys.stderr.write(\"2\")',"
        " capture=False)\n"
        "sys.exit(result.exit_code)\n"
    )
    import interpreters

    done = run_plain(interpreters.own(), ["-c", code], cwd=tmp_path)
    assert (done.stdout, done.stderr, done.exit_code) == (b"1\n", b"2", 0)


def test_module_command_is_the_program(tmp_path):
    import interpreters

    done = run_plain(interpreters.own(), ["-m", "sandpit", "--version"], cwd=tmp_path)
    direct = run_plain(find_program(), ["--version"], cwd=tmp_path)
    assert done == direct
