"""procfs calls whoever looks `self`: however the program comes there, it is the program that is
meant, not the supervisor, which looks for it."""

from __future__ import annotations

import json

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
