"""The private folder of a run: it is the program's home, and nothing of it stays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time

import pytest
from abilities import require
from interpreters import find as find_pythons

pytestmark = [pytest.mark.requires("program"), pytest.mark.requires("landlock")]

POLICY = 'mode = "observe"\n[fs]\nallow_write = ["{work}", "{tmp}"]\n'


@pytest.fixture
def base(tmp_path, monkeypatch):
    """The folder that private folders are made in."""
    folder = tmp_path / "base"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.fixture
def options(tmp_path):
    policy = tmp_path / "private.toml"
    policy.write_text(POLICY)
    return ("--policy", str(policy))


PLACES = """
import json, os, pathlib, tempfile
print(json.dumps({
    "home": str(pathlib.Path.home()),
    "user": os.path.expanduser("~/x"),
    "temporary": tempfile.gettempdir(),
    "made": os.path.dirname(tempfile.mkdtemp()),
    "variables": dict(os.environ),
    "mode": os.stat(tempfile.gettempdir()).st_mode & 0o777,
}))
"""


def test_home_and_temporary_files_lie_in_it(sandpit, base, options):
    caller = {"XDG_RUNTIME_DIR": str(base), "XDG_CACHE_HOME": "/caller/cache"}
    done = sandpit.run(PLACES, options=options, env=caller)
    told = json.loads(done.stdout)
    folder = told["temporary"]
    assert os.path.dirname(folder) == str(base)
    assert told["home"] == told["made"] == folder
    assert told["user"] == f"{folder}/x"
    assert told["mode"] == 0o700
    variables = told["variables"]
    for name in ("CACHE", "CONFIG", "DATA", "STATE"):
        assert variables[f"XDG_{name}_HOME"].startswith(folder + "/")
    assert "XDG_RUNTIME_DIR" not in variables
    assert os.listdir(base) == []


def test_a_home_that_the_policy_names_is_the_callers(sandpit, base, tmp_path):
    policy = tmp_path / "named.toml"
    policy.write_text(POLICY + '[env]\nallow = ["PATH", "HOME"]\n')
    home = {"HOME": str(tmp_path)}
    done = sandpit.run(PLACES, options=("--policy", str(policy)), env=home)
    told = json.loads(done.stdout)
    assert told["home"] == str(tmp_path)
    assert os.path.dirname(told["temporary"]) == str(base)


HANDLER = """
import logging, logging.handlers, os, pathlib
log = logging.getLogger("x")
path = pathlib.Path.home() / "logs" / "x.log"
path.parent.mkdir()
log.addHandler(logging.handlers.RotatingFileHandler(path, maxBytes=64, backupCount=2))
for n in range(20):
    log.warning("line %d", n)
print(sorted(os.listdir(path.parent)))
"""


def test_what_a_program_keeps_at_home_works_and_goes(sandpit, base, options):
    done = sandpit.run(HANDLER, options=(*options, "--json"))
    result = json.loads(done.stdout)
    assert result["stdout"] == "['x.log', 'x.log.1', 'x.log.2']\n"
    changes = [one["path"] for kind in result["files"].values() for one in kind]
    assert [path for path in changes if "x.log" in path] == []
    assert os.listdir(base) == []


# ---- the user's own packages ------------------------------------------------------------


@pytest.mark.parametrize("own", find_pythons(), ids=lambda one: one.label)
def test_packages_of_the_user_are_found(own, sandpit, options, base, tmp_path):
    version = "python{}.{}".format(*own.version[:2])
    folder = tmp_path / "home" / ".local" / "lib" / version / "site-packages"
    folder.mkdir(parents=True)
    (folder / "of_the_user.py").write_text("NAME = 'theirs'\n")
    script = "import of_the_user, site; print(of_the_user.NAME, site.USER_SITE)"
    home = {"HOME": str(tmp_path / "home"), "PYTHONNOUSERSITE": ""}
    plain = subprocess.run(
        [own.path, "-c", script],
        env={**os.environ, **home},
        capture_output=True,
        text=True,
        check=False,
    )
    if "ModuleNotFoundError" in plain.stderr:
        require("user-site", "a virtual environment looks for no packages of the user")
    done = sandpit.run(script, options=(*options, "--python", own.path), env=home)
    assert done.stdout == plain.stdout == f"theirs {folder}\n"


# ---- what is left of it -----------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left_of_a_run_that_is_ended_while_it_begins(sandpit, base, number):
    options = ("--policy", "default", "--no-trace")
    words = [one for one in sandpit.argv("import time\ntime.sleep(5)\n") if one != "-o"]
    words.remove(str(sandpit.trace))
    words[2:2] = options
    for delay in range(40):
        run = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(delay / 4000)
        run.send_signal(number)
        assert run.wait(20) != 0
    assert os.listdir(base) == []


SHUT = r"""
import os, socket, sys, tempfile
t = tempfile.gettempdir()
outside = sys.argv[1]
os.makedirs(t + "/shut/in/side")
open(t + "/shut/in/file", "w").close()
for folder in (t, t + "/shut/in"):
    os.symlink(outside, folder + "/link")
    os.symlink(outside + "/keep", folder + "/file-link")
    os.mkfifo(folder + "/pipe")
socket.socket(socket.AF_UNIX).bind(t + "/socket")
open(t + "/" + "x" * 255, "w").close()
open(os.fsencode(t) + b"/\xff\n\x1b[2J", "w").close()
os.link(t + "/shut/in/file", t + "/hard")
for folder in ("/shut/in/side", "/shut/in", "/shut", ""):
    os.chmod(t + folder, 0)
print("made")
"""
DEEP = r"""
import os, tempfile
os.chdir(tempfile.gettempdir())
for n in range(5000):
    os.mkdir("d")
    os.chdir("d")
open("leaf", "w").close()
print("made")
"""
# Names like those that emptying moves folders to, and folders both wide and deep.
BUSHY = r"""
import os, tempfile
t = tempfile.gettempdir()
for n in range(40):
    os.makedirs(f"{t}/.sandpit-moved-{n}/x")
    os.makedirs(f"{t}/w/{n}" + "/e" * 60)
print("made")
"""
MANY = r"""
import os, tempfile
os.chdir(tempfile.gettempdir())
for n in range(20000):
    os.close(os.open(str(n), os.O_CREAT | os.O_WRONLY))
print("made")
"""


@pytest.mark.parametrize(
    "script", [SHUT, DEEP, BUSHY, MANY], ids=["shut", "deep", "bushy", "many"]
)
def test_nothing_stays_whatever_is_in_it(script, sandpit, base, options, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "keep").write_text("kept")
    # Twenty thousand files take their time where the processor is emulated.
    done = sandpit.run(script, outside, options=options, timeout=600)
    assert done.stdout == "made\n", done.stderr
    assert os.listdir(base) == []
    assert (outside / "keep").read_text() == "kept"
    assert outside.stat().st_mode & 0o700 == 0o700


# The folder itself moved away, and something of the caller's put in its place.
MOVED = r"""
import os, sys, tempfile
t = tempfile.gettempdir()
open(t + "/file", "w").close()
os.rename(t, sys.argv[1] + "/moved")
os.symlink(sys.argv[1] + "/other", t)
"""


def test_only_the_folder_itself_is_emptied(sandpit, base, options, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "keep").write_text("kept")
    done = sandpit.run(MOVED, tmp_path, options=options)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "other" / "keep").read_text() == "kept"
    assert not (tmp_path / "moved").exists()


WAIT = r"""
import os, sys, tempfile, time
open(tempfile.gettempdir() + "/file", "w").close()
boss = os.getppid()
keeper = int(open(f"/proc/{boss}/stat").read().rpartition(")")[2].split()[1])
print(boss, keeper, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize(
    ("whom", "number"),
    [
        ("keeper", signal.SIGINT),
        ("keeper", signal.SIGTERM),
        ("keeper", signal.SIGHUP),
        ("keeper", signal.SIGKILL),
        ("supervisor", signal.SIGKILL),
    ],
    ids=lambda one: getattr(one, "name", one),
)
def test_nothing_stays_of_a_run_that_is_ended(whom, number, sandpit, base, options):
    process = subprocess.Popen(
        sandpit.argv(WAIT, options=options),
        cwd=sandpit.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    boss, keeper = map(int, process.stdout.readline().split())
    assert len(os.listdir(base)) == 1
    os.kill(keeper if whom == "keeper" else boss, number)
    process.communicate(timeout=30)
    end = time.monotonic() + 5
    while os.listdir(base) and time.monotonic() < end:
        time.sleep(0.01)
    assert os.listdir(base) == []


ENDLESS = r"""
import os, tempfile
os.chdir(tempfile.gettempdir())
n = 0
while True:
    n += 1
    os.mkdir(str(n))
    os.close(os.open(f"{n}/f", os.O_CREAT | os.O_WRONLY))
"""


def test_a_full_folder_does_not_keep_a_run_beyond_its_limit(sandpit, base, options):
    before = time.monotonic()
    done = sandpit.run(ENDLESS, options=(*options, "--timeout", "1500ms"))
    assert done.returncode == 124, done.stderr
    assert time.monotonic() - before < 3
    end = time.monotonic() + 60
    while os.listdir(base) and time.monotonic() < end:
        time.sleep(0.05)
    assert os.listdir(base) == []
