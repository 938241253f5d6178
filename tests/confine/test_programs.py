"""Programs: which may be started, by whatever way, and what becomes of the others."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

pytestmark = [
    pytest.mark.requires("program"),
    pytest.mark.requires("listener"),
    pytest.mark.requires("landlock"),
]

TRY = """
def attempt(name, act):
    try:
        print(name, act(), flush=True)
    except BaseException as why:
        print(name, type(why).__name__, why.errno, str(why).count(" denied by policy "))
"""


@pytest.fixture
def policy(tmp_path):
    """Write a policy and give the options that name it."""

    def write(text: str, name: str = "some.toml") -> tuple[str, str]:
        path = tmp_path / name
        path.write_text(text)
        return ("--policy", str(path))

    return write


def denied(sandpit) -> list[tuple]:
    told = sandpit.events("violation")
    assert all(one["category"] == "process" for one in told)
    assert all(one.get("count", 1) == 1 for one in told), told
    return [(one["operation"], one["target"], one.get("line")) for one in told]


def canonical(path) -> str:
    return os.path.realpath(path)


# ---- no processes at all -----------------------------------------------------------------

FORKS = (
    TRY
    + """
import ctypes, multiprocessing, os, pty, subprocess, threading
made = lambda name: ["/bin/sh", "-c", f"echo > made-{name}"]
call = ctypes.CDLL(None, use_errno=True).syscall
def raw(*arguments):
    child = call(*arguments)
    if child == 0:
        os._exit(open("made-raw", "w").close() or 0)
    if child < 0:
        raise OSError(ctypes.get_errno(), "")
    return os.waitpid(child, 0)[1]
attempt("fork", lambda: os.fork() or os._exit(open("made-fork", "w").close() or 0))
attempt("run", lambda: subprocess.run(made("run")).returncode)
attempt("system", lambda: os.system("echo > made-system"))
attempt("spawn", lambda: os.posix_spawn("/bin/sh", made("spawn"), os.environ) and 0)
attempt("pool", lambda: multiprocessing.get_context("fork").Process(
    target=open, args=("made-pool", "w")).start())
attempt("pty", lambda: os.forkpty()[0] or os._exit(0))
attempt("popen", lambda: os.popen("echo > made-popen").close())
attempt("preexec", lambda: subprocess.run(made("preexec"), preexec_fn=id).returncode)
attempt("raw", lambda: raw(220 if os.uname().machine == "aarch64" else 56, 17, 0, 0, 0, 0))
thread = threading.Thread(target=print, args=("a thread",))
thread.start()
thread.join()
"""
).replace("preexec_fn=id", "preexec_fn=lambda: None")


def test_no_process_denies_each_way_once(sandpit, tmp_path, python):
    done = sandpit.run(
        FORKS, options=("--policy", "no-process", "--python", python.path)
    )
    lines = done.stdout.splitlines()
    assert lines[-1] == "a thread"
    for line in lines[:-1]:
        name, kind, err, sentences = line.split()
        assert (kind, err) == ("PermissionError", "1"), line
        assert sentences == ("0" if name == "raw" else "1"), line
    assert len(lines) == 10
    assert list(tmp_path.glob("made-*")) == []
    told = denied(sandpit)
    assert [one[0] for one in told] == ["fork"] * 9
    assert len({one[2] for one in told}) >= 8  # at a line of its own each
    assert "a new process for '/bin/sh'" in told[1][1]
    assert sandpit.events("exec") == []
    assert sandpit.verify() == 0


def test_without_a_policy_each_way_works(sandpit, tmp_path):
    assert "Error" not in sandpit.plain(FORKS).stdout
    assert {one.name[5:] for one in tmp_path.glob("made-*")} >= {
        "fork",
        "run",
        "system",
        "popen",
        "preexec",
        "raw",
    }


def test_exec_in_place_stays_possible_where_only_forks_are_denied(sandpit, policy):
    script = (
        "import os, sys\n"
        "try:\n    os.fork()\nexcept PermissionError:\n    print('no', flush=True)\n"
        "os.execv(sys.executable, [sys.executable, '-c', 'print(\"in place\")'])\n"
    )
    options = policy('[process]\nallow = ["{python}"]\nfork = false\n')
    assert sandpit.run(script, options=options).stdout == "no\nin place\n"
    assert [one[0] for one in denied(sandpit)] == ["fork"]


def test_forks_are_denied_without_a_listener(sandpit, policy):
    script = (
        "import os\ntry:\n    os.fork()\nexcept PermissionError:\n    print('no')\n"
    )
    options = (*policy("[process]\nfork = false\n"), "--allow-degraded", "listener")
    done = sandpit.run(script, options=options, env={"SANDPIT_FORCE": "listener=off"})
    assert done.stdout == "no\n", done.stderr


# ---- some programs ---------------------------------------------------------------------------

WAYS = (
    TRY
    + """
import os, subprocess, sys
target = sys.argv[1]
name = os.path.basename(target)
quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
def fork(act):
    child = os.fork()
    if child == 0:
        try:
            act()
        except PermissionError as why:
            os._exit(100 + why.errno)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
copy = os.memfd_create("copy", 0)
os.write(copy, open(target, "rb").read())
attempt("run", lambda: subprocess.run([target], **quiet).returncode)
attempt("bare", lambda: subprocess.run([name], **quiet).returncode)
attempt("close", lambda: subprocess.run([target], close_fds=False).returncode)
attempt("preexec", lambda: subprocess.run([target], preexec_fn=lambda: None).returncode)
attempt("spawn", lambda: os.waitpid(os.posix_spawn(target, [name], {}), 0)[1])
attempt("exec", lambda: fork(lambda: os.execv(target, [name])))
attempt("memory", lambda: fork(lambda: os.execve(copy, [name], {})))
attempt("fd", lambda: fork(lambda: os.execv(f"/proc/self/fd/{copy}", [name])))
attempt("loader", lambda: subprocess.run([sys.argv[2], target]).returncode)
attempt("script", lambda: subprocess.run([sys.argv[3]]).returncode)
"""
)


@pytest.fixture
def ways(tmp_path):
    script = tmp_path / "denied.sh"
    script.write_text("#!/bin/sh\nexit 0\n")
    script.chmod(0o755)
    loader = subprocess.run(
        ["readelf", "-p", ".interp", "/bin/true"], capture_output=True, text=True
    ).stdout
    loader = next(
        (one for one in loader.split() if one.startswith("/")),
        "/lib64/ld-linux-x86-64.so.2",
    )
    return ("/bin/true", loader, str(script))


def test_every_way_starts_it_where_nothing_denies(sandpit, ways):
    lines = sandpit.plain(WAYS, *ways).stdout.splitlines()
    assert [one.split()[1:] for one in lines] == [["0"]] * 10, lines


def test_no_way_starts_a_program_that_is_not_allowed(sandpit, policy, ways, python):
    options = (*policy('[process]\nallow = ["{python}"]\n'), "--python", python.path)
    done = sandpit.run(WAYS, *ways, options=options)
    for line in done.stdout.splitlines():
        parts = line.split()
        raised = parts[1:] == ["PermissionError", "13", "1"]
        assert raised or parts[1:] == ["113"], (line, done.stderr)
    assert len(done.stdout.splitlines()) == 10
    told = denied(sandpit)
    assert len(told) == 10, told
    assert [one[0] for one in told] == ["exec"] * 10
    assert told[0][1] == canonical("/bin/true")
    assert all(one[2] for one in told), told
    first = sandpit.events("violation")[0]
    assert first["argv"] == ["/bin/true"]
    assert first["rule"] == "process.allow"
    assert sandpit.events("exec") == []
    assert sandpit.verify() == 0


def test_the_interpreter_starts_itself(sandpit, policy, python):
    script = """
import multiprocessing, subprocess, sys
def square(x):
    return x * x
if __name__ == "__main__":
    print(subprocess.run([sys.executable, "-c", "print(6 * 7)"],
                         capture_output=True, text=True).stdout.strip())
    for way in ("spawn", "forkserver", "fork"):
        with multiprocessing.get_context(way).Pool(2) as pool:
            print(way, pool.map(square, [1, 2, 3]))
"""
    options = (*policy('[process]\nallow = ["{python}"]\n'), "--python", python.path)
    done = sandpit.run(script, options=options)
    expected = "42\n" + "".join(
        f"{way} [1, 4, 9]\n" for way in ("spawn", "forkserver", "fork")
    )
    assert (done.stdout, done.stderr) == (expected, "")
    assert sandpit.events("violation") == []
    started = sandpit.events("exec")
    assert started and all(one["agent"] for one in started)


def test_a_program_that_is_missing_is_missing(sandpit, policy):
    script = (
        "import subprocess\n"
        "for name in ('/no/such', 'no-such-program'):\n"
        "    try:\n        subprocess.run([name])\n"
        "    except FileNotFoundError as why:\n        print(why)\n"
    )
    options = policy('[process]\nallow = ["{python}"]\n')
    assert sandpit.run(script, options=options).stdout == sandpit.plain(script).stdout
    assert sandpit.events("violation") == []


def test_an_allowed_program_is_found_by_its_name(sandpit, policy):
    script = (
        "import subprocess\nprint(subprocess.run(['true']).returncode)\n"
        "try:\n    subprocess.run(['false'])\nexcept PermissionError:\n    print('no')\n"
    )
    options = policy('[process]\nallow = ["true"]\n')
    assert sandpit.run(script, options=options).stdout == "0\nno\n"
    assert [one["path"] for one in sandpit.events("exec")] == [canonical("/bin/true")]
    assert [one[1] for one in denied(sandpit)] == [canonical("/bin/false")]


SCRIPTS = (
    TRY
    + """
import subprocess, sys
for one in sys.argv[1:]:
    attempt("ran", lambda: subprocess.run([one]).returncode)
"""
)


@pytest.mark.parametrize("first", ["#!/bin/sh", "#!/usr/bin/env sh", "#! /bin/sh -e"])
def test_an_allowed_script_runs_and_its_interpreter_alone_does_not(
    sandpit, policy, tmp_path, first
):
    tool = tmp_path / "tool.sh"
    tool.write_text(f"{first}\nexit 3\n")
    tool.chmod(0o755)
    options = policy(f'[process]\nallow = ["{tool}"]\n')
    done = sandpit.run(SCRIPTS, tool, "/bin/sh", "/usr/bin/env", options=options)
    assert [one.split()[1] for one in done.stdout.splitlines()] == [
        "3",
        "PermissionError",
        "PermissionError",
    ], done.stdout
    assert [one[1] for one in denied(sandpit)] == [
        canonical("/bin/sh"),
        canonical("/usr/bin/env"),
    ]


def test_a_script_chain_runs(sandpit, policy, tmp_path):
    for name, first in (("inner", "/bin/sh"), ("outer", tmp_path / "inner")):
        (tmp_path / name).write_text(f"#!{first}\nexit 4\n")
        (tmp_path / name).chmod(0o755)
    options = policy(f'[process]\nallow = ["{tmp_path}/outer"]\n')
    done = sandpit.run(SCRIPTS, tmp_path / "outer", tmp_path / "inner", options=options)
    assert done.stdout.split()[:3] == ["ran", "4", "ran"], done.stdout
    assert [one[1] for one in denied(sandpit)] == [canonical(tmp_path / "inner")]


def test_programs_of_a_folder(sandpit, policy, tmp_path):
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in ("good", "bad"):
        (folder / name).write_text("#!/bin/sh\nexit 5\n")
        (folder / name).chmod(0o755)
    options = policy(f'[process]\nallow = ["{folder}"]\ndeny = ["{folder}/bad"]\n')
    done = sandpit.run(SCRIPTS, folder / "good", folder / "bad", options=options)
    assert [one.split()[1] for one in done.stdout.splitlines()] == [
        "5",
        "PermissionError",
    ]
    assert [one[1] for one in denied(sandpit)] == [canonical(folder / "bad")]


def test_a_program_that_is_made_meanwhile(sandpit, policy, tmp_path):
    script = """
import os, shutil, subprocess, sys
os.makedirs("bin")
shutil.copy("/bin/true", "bin/made")
print(subprocess.run(["bin/made"]).returncode)
os.unlink("bin/made")
shutil.copy("/bin/false", "bin/made")
print(subprocess.run(["bin/made"]).returncode)
"""
    options = policy(f'[process]\nallow = ["{tmp_path}/bin/made"]\n')
    assert sandpit.run(script, options=options).stdout == "0\n1\n"


def test_a_program_may_start_its_own_helpers(sandpit, policy, tmp_path):
    for place in ("bin", "lib/thing-core", "lib/other"):
        (tmp_path / place).mkdir(parents=True)
    helper = tmp_path / "lib/thing-core/help"
    stranger = tmp_path / "lib/other/help"
    for path, text in (
        (tmp_path / "bin/thing", f"{helper} && {stranger}"),
        (helper, "echo helped"),
        (stranger, "echo not mine"),
    ):
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    options = policy('[process]\nallow = ["thing"]\n')
    env = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    script = "import subprocess, sys; sys.exit(subprocess.run(['thing']).returncode)"
    done = sandpit.run(script, options=options, env=env)
    assert done.stdout == "helped\n"
    assert [one[1] for one in denied(sandpit)] == [canonical(stranger)]


# ---- with less than everything -------------------------------------------------------------------

TWO = (
    TRY
    + """
import subprocess
attempt("true", lambda: subprocess.run(["/bin/true"]).returncode)
attempt("false", lambda: subprocess.run(["/bin/false"]).returncode)
"""
)


def test_landlock_holds_it_alone_without_a_listener(sandpit, policy):
    options = (*policy('[process]\nallow = ["true"]\n'), "--allow-degraded", "listener")
    done = sandpit.run(TWO, options=options, env={"SANDPIT_FORCE": "listener=off"})
    assert done.stdout == "true 0\nfalse PermissionError 13 0\n", done.stderr
    start = sandpit.events("start")[0]
    assert start["enforced_by"]["process"] == ["filter", "landlock"]
    assert start["degraded"] == ["listener", "record"]


def test_the_supervisor_holds_it_alone_without_landlock(sandpit, policy):
    options = (*policy('[process]\nallow = ["true"]\n'), "--allow-degraded", "landlock")
    done = sandpit.run(TWO, options=options, env={"SANDPIT_FORCE": "landlock=0"})
    assert done.stdout == "true 0\nfalse PermissionError 13 1\n", done.stderr
    assert sandpit.events("start")[0]["enforced_by"]["process"] == ["listener"]
    assert [one[1] for one in denied(sandpit)] == [canonical("/bin/false")]


@pytest.mark.parametrize("abi", [1, 2, 3, 4, 5])
def test_every_landlock_can_hold_it(sandpit, policy, abi):
    options = policy('[process]\nallow = ["true"]\n')
    done = sandpit.run(TWO, options=options, env={"SANDPIT_FORCE": f"landlock={abi}"})
    assert done.stdout == "true 0\nfalse PermissionError 13 1\n", done.stderr


def test_observing_starts_what_would_be_denied(sandpit, policy):
    text = '[process]\nallow = ["true"]\nfork = false\n'
    options = (*policy(text), "--observe")
    done = sandpit.run(TWO, options=options)
    assert done.stdout == "true 0\nfalse 1\n", done.stderr
    told = sandpit.events("violation")
    assert {one["action"] for one in told} == {"observe"}
    assert [one["operation"] for one in told] == ["fork", "fork", "exec"]
    assert len(sandpit.events("exec")) == 2


# ---- races --------------------------------------------------------------------------------------

# One thread exchanges what the path leads to while others start it.
RACE = """
import os, subprocess, sys, threading, time
allowed, denied, tries = sys.argv[1], sys.argv[2], int(sys.argv[3])
done = False
def flip():
    i = 0
    while not done:
        for target in (allowed, denied):
            os.symlink(target, f"link{i}")
            os.replace(f"link{i}", "link")
            i += 1
os.symlink(allowed, "link")
flipper = threading.Thread(target=flip)
flipper.start()
ran = refused = 0
for _ in range(tries):
    try:
        if subprocess.run(["./link", "marker"], stderr=subprocess.DEVNULL).returncode == 0:
            ran += 1
    except PermissionError:
        refused += 1
done = True
flipper.join()
print(ran, refused)
"""


@pytest.mark.parametrize("bounded", [True, False], ids=["landlock", "check"])
def test_a_path_that_changes_while_it_is_judged(sandpit, policy, tmp_path, bounded):
    touch = canonical("/bin/touch")
    true = canonical("/bin/true")
    plain = sandpit.plain(RACE, true, touch, 100)
    assert (tmp_path / "marker").exists(), plain
    (tmp_path / "marker").unlink()
    (tmp_path / "link").unlink()
    # A rule that Landlock cannot say leaves it to the check of what was started.
    rule = f'["{true}"]' if bounded else f'["{true}", "**/no-such-program"]'
    options = policy(f"[process]\nallow = {rule}\n")
    done = sandpit.run(RACE, true, touch, 400, options=options, timeout=120)
    ran, refused = map(int, done.stdout.split())
    assert ran > 0 and refused > 0, done.stderr
    assert not (tmp_path / "marker").exists()
    assert {one["operation"] for one in sandpit.events("violation")} == {"exec"}
    assert sandpit.verify() == 0


RACER = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static char path[4096];
static volatile int done;
static void *flip(void *last)
{
    volatile char *letter = last;
    for (unsigned i = 0; !done; i++)
        *letter = "ab"[i & 1];
    return last;
}
int main(int argc, char **argv)
{
    pthread_t thread;
    int ran = 0, refused = 0, tries = atoi(argv[2]);
    snprintf(path, sizeof path, "%s/prog-a", argv[1]);
    pthread_create(&thread, NULL, flip, path + strlen(path) - 1);
    for (int i = 0; i < tries; i++) {
        int status = 0;
        char *args[] = {"prog", "marker", NULL};
        pid_t child = vfork();
        if (child == 0) {
            execv(path, args);
            _exit(errno == EACCES ? 100 : 101);
        }
        waitpid(child, &status, 0);
        ran += WIFEXITED(status) && WEXITSTATUS(status) == 0;
        refused += WIFEXITED(status) && WEXITSTATUS(status) == 100;
    }
    done = 1;
    printf("%d %d\n", ran, refused);
    (void)argc;
    return 0;
}
"""


@pytest.mark.requires("cc")
@pytest.mark.parametrize("bounded", [True, False], ids=["landlock", "check"])
def test_a_path_in_memory_that_changes_while_it_is_judged(
    sandpit, policy, tmp_path, bounded
):
    (tmp_path / "race.c").write_text(RACER)
    race = tmp_path / "race"
    subprocess.run(["cc", "-pthread", "-o", race, tmp_path / "race.c"], check=True)
    folder = tmp_path / "programs"
    folder.mkdir()
    for name, source in (("prog-a", "/bin/true"), ("prog-b", "/bin/touch")):
        shutil.copy(source, folder / name)
    script = "import subprocess, sys; subprocess.run(sys.argv[1:])"
    sandpit.plain(script, race, folder, 200)
    assert (tmp_path / "marker").exists()
    (tmp_path / "marker").unlink()
    more = "" if bounded else ', "**/no-such-program"'
    options = policy(
        f'[process]\nallow = ["{{python}}", "{race}", "{folder}/prog-a"{more}]\n'
    )
    tries = int(os.environ.get("SANDPIT_TEST_RACES", "1000"))
    done = sandpit.run(script, race, folder, tries, options=options, timeout=600)
    ran, refused = map(int, done.stdout.split())
    assert ran > 0 and refused > 0, done.stderr
    assert not (tmp_path / "marker").exists()
    assert {one["operation"] for one in sandpit.events("violation")} == {"exec"}
    assert sandpit.verify() == 0


@pytest.mark.requires("x86_64")
def test_nobody_runs_another_loader_by_hand(sandpit, policy, tmp_path):
    """An allowed folder holds the loader; what it is given to run is not allowed."""
    script = (
        "import subprocess\n"
        "print(subprocess.run(['/lib64/ld-linux-x86-64.so.2', '/bin/echo', 'hi'],"
        "capture_output=True).stdout)\n"
    )
    options = policy('[process]\nallow = ["{python}", "/bin/echo"]\n')
    done = sandpit.run(script, options=options)
    assert "PermissionError" in done.stderr
    assert [one[1] for one in denied(sandpit)] == [
        canonical("/lib64/ld-linux-x86-64.so.2")
    ]


# ---- git -------------------------------------------------------------------------------------------

GIT = """
import os, subprocess, sys
def git(*arguments, folder="."):
    done = subprocess.run(["git", *arguments], cwd=folder, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print(arguments[0], done.returncode, flush=True)
    if done.returncode:
        print(done.stdout)
git("init", "-q", "one")
with open("one/file", "w") as file:
    file.write("text")
who = ("-c", "user.name=Somebody", "-c", "user.email=some@body")
git("add", "file", folder="one")
git(*who, "commit", "-qm", "first", folder="one")
git("log", "--oneline", folder="one")
git("clone", "-q", "one", "two")
git("status", folder="two")
try:
    subprocess.run(["sh", "-c", "true"])
except PermissionError:
    print("no shell")
"""


@pytest.mark.requires("git")
@pytest.mark.parametrize("base", ["trace-only", "default"])
def test_git_works_where_it_is_granted(sandpit, policy, tmp_path, base):
    add = "allow_add" if base == "default" else "allow"
    options = policy(f'extends = "{base}"\n[process]\n{add} = ["git"]\n')
    done = sandpit.run(GIT, options=options, env={"GIT_CONFIG_GLOBAL": "/dev/null"})
    assert done.stdout.splitlines() == [
        "init 0",
        "add 0",
        "-c 0",
        "log 0",
        "clone 0",
        "status 0",
        "no shell",
    ], done
    assert (tmp_path / "two" / "file").read_text() == "text"
    assert [one[1] for one in denied(sandpit)] == [canonical("/bin/sh")]


@pytest.mark.requires("cc")
def test_a_granted_program_may_use_the_shell_and_starts_nothing_else_by_it(
    sandpit, policy, tmp_path
):
    source = tmp_path / "tool.c"
    source.write_text(
        "#include <stdlib.h>\nint main(int n, char **v)"
        "{ return system(v[n - 1]) != 0; }\n"
    )
    tool = tmp_path / "tool"
    subprocess.run(["cc", "-o", tool, source], check=True)
    script = (
        "import subprocess, sys\n"
        "for one in ('exit 0', '/bin/sh -c true', 'touch marker'):\n"
        "    print(subprocess.run([sys.argv[1], one]).returncode)\n"
    )
    assert sandpit.plain(script, tool).stdout == "0\n0\n0\n"
    (tmp_path / "marker").unlink()
    options = policy(f'[process]\nallow = ["{tool}"]\n')
    assert sandpit.run(script, tool, options=options).stdout == "0\n0\n1\n"
    assert not (tmp_path / "marker").exists()
    assert [one[1] for one in denied(sandpit)] == [canonical("/bin/touch")]


def test_many_rules_are_granted_by_their_folders(sandpit, policy, tmp_path):
    folder = tmp_path / "many"
    folder.mkdir()
    for name in range(300):
        (folder / f"p{name}").symlink_to("/bin/true")
    shutil.copy("/bin/true", folder / "allowed")
    shutil.copy("/bin/true", folder / "not")
    (folder / "script").write_text("#!/bin/sh\nexit 7\n")
    (folder / "script").chmod(0o755)
    rules = [f"{folder}/p{name}" for name in range(300)]
    rules += [f"{folder}/allowed", f"{folder}/script"]
    options = policy(f"[process]\nallow = {rules}\n".replace("'", '"'))
    paths = [folder / "p7", folder / "allowed", folder / "script", folder / "not"]
    done = sandpit.run(SCRIPTS, *paths, options=options)
    assert [one.split()[1] for one in done.stdout.splitlines()] == [
        "0",
        "0",
        "7",
        "PermissionError",
    ], done
    assert [one[1] for one in denied(sandpit)] == [canonical(folder / "not")]


# ---- what is read to be started ------------------------------------------------------------

START_TOOL = """
import subprocess, sys
print(subprocess.run([sys.argv[1]]).returncode)
"""


@pytest.fixture
def tool(tmp_path):
    """A program of our own, in a folder with one more file."""
    folder = tmp_path / "tools"
    folder.mkdir()
    shutil.copy(shutil.which("true"), folder / "tool")
    (folder / "secret").write_text("secret")
    return folder / "tool"


def test_program_that_may_not_be_read_is_denied(sandpit, policy, tool):
    assert sandpit.plain(START_TOOL, tool).stdout == "0\n"
    options = policy(f'[fs]\ndeny_read = ["{tool}"]\n')
    done = sandpit.run(START_TOOL, tool, options=options)
    assert f"exec {tool} is denied by policy" in done.stderr
    assert f'(rule fs.deny_read "{tool}", ' in done.stderr
    assert denied(sandpit) == [("exec", str(tool), 3)]


def test_program_beside_what_is_denied_says_what_would_allow_it(sandpit, policy, tool):
    """A glob may mean anything below: the kernel, which reads a program itself, is granted
    nothing there."""
    options = policy('[fs]\ndeny_read = ["**/secret"]\n')
    done = sandpit.run(START_TOOL, tool, options=options)
    assert f"--allow-run {tool} would allow it" in done.stderr
    assert denied(sandpit) == [("exec", str(tool), 3)]
    options += ("--allow-run", str(tool))
    done = sandpit.run(START_TOOL, tool, options=options)
    assert done.stdout == "0\n", done.stderr
    assert denied(sandpit) == []


def test_programs_in_an_allowed_folder_start_where_something_in_it_is_denied(
    sandpit, policy, tool
):
    options = policy(
        f'[fs]\nallow_read = ["{{python}}", "{tool.parent}", "{tool.parent.parent}/*.py"]\n'
        f'deny_read = ["{tool.parent}/secret"]\n'
    )
    done = sandpit.run(START_TOOL, tool, options=options)
    assert done.stdout == "0\n", done.stderr
    assert denied(sandpit) == []
    done = sandpit.run(f'open("{tool.parent}/secret")', options=options)
    assert "PermissionError" in done.stderr
