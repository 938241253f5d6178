"""procfs calls whoever looks `self`: however the program comes there, it is the program that is
meant, not the supervisor, which looks for it."""

from __future__ import annotations

import json
import subprocess

import pytest

pytestmark = [
    pytest.mark.requires("program"),
    pytest.mark.requires("listener"),
    pytest.mark.requires("landlock"),
    pytest.mark.requires("procfs"),
]

# Ways to write the path of descriptor 40, which the supervisor does not have.
WAYS = [
    "/proc/self/fd/40",
    "/proc/thread-self/fd/40",
    "/dev/fd/40",
    "/proc//self/fd/40",
    "//proc/self/./fd/40",
    "/proc/../proc/self/fd/40",
    "own/fd/40",
    "proc/self/fd/40",
    "proc/thread-self/fd/40",
    "/proc/thread-self/../../fd/40",
    "/proc/self/../thread-self/fd/40",
    "/proc/self/task/../fd/40",
    "/proc/self/cwd/own/fd/40",
    "/proc/self/root/proc/self/fd/40",
    "descriptor",
    "to-descriptor",
    "device",
]

REOPEN = """\
import json, os, sys
os.symlink("/proc/self", "own")
os.symlink("/proc", "proc")
os.symlink("/proc/self/fd/40", "descriptor")
os.symlink("descriptor", "to-descriptor")
os.symlink("/dev/fd/40", "device")
os.dup2(os.open(sys.argv[1], os.O_PATH), 40)
told = []
for way in json.loads(sys.argv[2]):
    try:
        with open(way) as stream:
            told.append(stream.read())
    except OSError as problem:
        told.append(problem.errno)
folder = os.open("/proc", os.O_PATH)
told.append(os.read(os.open("self/comm", os.O_RDONLY, dir_fd=folder), 6).decode())
print(json.dumps(told))
"""

THREADS = """\
import os, threading
os.symlink("/proc/self/task", "tasks")
def look():
    tid = threading.get_native_id()
    for path in (f"/proc/self/task/{tid}/stat", f"tasks/{tid}/stat", "/proc/thread-self/stat"):
        with open(path) as stream:
            print(int(stream.read().split()[0]) == tid)
look()
thread = threading.Thread(target=look)
thread.start()
thread.join()
try:
    open("/proc/self/task/1/stat")
except FileNotFoundError:
    print("no such thread")
"""


CHANGES = """\
import os
os.symlink("/proc/self", "own")
os.mkdir("folder")
os.mkdir("folder/target")
os.symlink("target", "folder/link")
open("victim", "w").close()
os.dup2(os.open("folder", os.O_PATH), 40)
def attempt(function, *arguments):
    try:
        print(function(*arguments))
    except OSError as problem:
        print(problem.errno)
for n, way in enumerate(("own", "/proc/self", "/proc/thread-self", "/proc/thread-self/../..")):
    attempt(os.mkdir, f"{way}/fd/40/folder{n}")
    attempt(os.open, f"{way}/fd/40/file{n}", os.O_CREAT | os.O_WRONLY)
    attempt(os.rmdir, f"{way}/fd/40/link/")
    attempt(os.rename, f"{way}/fd/40/link/", "moved")
    attempt(os.rename, f"{way}/fd/40/folder{n}/", f"{way}/fd/40/renamed{n}/")
attempt(os.open, "/proc/thread-self/../../etc/hostname", os.O_RDONLY)
attempt(os.open, "/proc/thread-self/../../comm", os.O_RDONLY)
attempt(os.open, "/proc/thread-self/task", os.O_RDONLY)
attempt(os.open, "/proc/self", os.O_RDONLY | os.O_NOFOLLOW)
attempt(os.chmod, "/proc/thread-self/../../cwd/victim", 0o600)
attempt(os.unlink, "/proc/thread-self/../../cwd/victim")
print(sorted(os.listdir("folder")), os.path.exists("victim"))
"""

SUPERVISOR = """\
import os, sys
other = os.getppid()
os.symlink(f"/proc/{other}", "other")
for path in (f"/proc/{other}/stat", "other/stat", f"/proc/../proc/{other}/stat"):
    with open(path) as stream:
        print(int(stream.read().split()[0]) == other)
"""

POLICIES = {
    "by-name": '[fs]\ndeny_read = ["{work}/secret"]\n',
    "by-glob": '[fs]\ndeny_read = ["**/secret"]\n',
}


@pytest.fixture(params=POLICIES)
def policy(request, tmp_path, sandpit):
    path = tmp_path / "policy.toml"
    path.write_text(POLICIES[request.param])
    sandpit.folder = tmp_path / "here"
    sandpit.folder.mkdir()
    for name in ("secret", "open"):
        (sandpit.folder / name).write_text(name)
    return ("--policy", str(path))


def clean(sandpit):
    for path in sandpit.folder.iterdir():
        if path.is_symlink():
            path.unlink()


@pytest.mark.parametrize("name", ["open", "secret"])
def test_descriptor_is_the_programs(sandpit, policy, name):
    plain = sandpit.plain(REOPEN, name, json.dumps(WAYS))
    assert json.loads(plain.stdout) == [*[name] * len(WAYS), "python"], plain.stderr
    clean(sandpit)
    done = sandpit.run(REOPEN, name, json.dumps(WAYS), options=policy)
    told = json.loads(done.stdout)
    assert told[-1] == "python"
    denials = [one["target"] for one in sandpit.events("violation")]
    if name == "open":
        assert told[:-1] == [name] * len(WAYS)
        assert not denials
    else:
        assert told[:-1] == [13] * len(WAYS)
        assert set(denials) == {str(sandpit.folder / "secret")}
    assert sandpit.verify() == 0


@pytest.mark.parametrize("built_in", ["", "trace-only"])
def test_changes_are_made_where_they_lead(sandpit, policy, built_in):
    plain = sandpit.plain(CHANGES)
    assert plain.stdout.endswith("False\n"), plain.stderr
    for name in ("folder", "own"):
        subprocess.run(["rm", "-r", sandpit.folder / name], check=True)
    options = ("--policy", built_in) if built_in else policy
    done = sandpit.run(CHANGES, options=options)
    assert done.stdout == plain.stdout, done.stderr
    changes = {one["path"] for one in sandpit.events("file") if "errno" not in one}
    assert str(sandpit.folder / "victim") in changes
    assert {str(sandpit.folder / f"folder/folder{n}") for n in range(4)} <= changes


def test_threads_are_the_programs(sandpit, policy):
    plain = sandpit.plain(THREADS)
    assert plain.stdout == "True\n" * 6 + "no such thread\n", plain.stderr
    clean(sandpit)
    done = sandpit.run(THREADS, options=policy)
    assert done.stdout == plain.stdout, done.stderr


def test_another_process_is_not_taken_for_it(sandpit, policy):
    """Nor its name for the program's in the record."""
    done = sandpit.run(SUPERVISOR, options=policy)
    assert done.stdout == "True\n" * 3, done.stderr
    opened = [one["path"] for one in sandpit.events("open") if "/stat" in one["path"]]
    assert len(opened) == 3
    assert len(set(opened)) == 1
    assert opened[0].startswith("/proc/")
    assert not opened[0].startswith("/proc/self")
