"""Shared memory may be made under every policy, and nothing else beside it."""

from __future__ import annotations

import json
import os
import threading
import time
import uuid
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.requires("program"),
    pytest.mark.requires("listener"),
    pytest.mark.requires("landlock"),
]

SHM = Path("/dev/shm")

USES = """
import json, os, socket, sys
mark, done = sys.argv[1], {}
def attempt(name, act, *arguments):
    try:
        act(*arguments)
        done[name] = 0
    except OSError as error:
        done[name] = error.errno
def write(path):
    with open(path, "w") as file:
        file.write("x")
def bind(path):
    socket.socket(socket.AF_UNIX).bind(path)
attempt("create", write, mark)
attempt("write", write, mark)
attempt("read", lambda: open(mark).read())
attempt("chmod", os.chmod, mark, 0o600)
attempt("truncate", os.truncate, mark, 0)
attempt("link", os.link, mark, mark + "-link")
attempt("remove", os.remove, mark + "-link")
attempt("mkdir", os.mkdir, mark + "-folder")
attempt("symlink", os.symlink, "/etc/passwd", mark + "-symlink")
attempt("fifo", os.mkfifo, mark + "-fifo")
attempt("node", os.mknod, mark + "-node")
attempt("bind", bind, mark + "-socket")
attempt("rename", os.rename, mark, mark + "-renamed")
print(json.dumps(done))
"""
MEMORY = {"create", "write", "read", "chmod", "truncate", "link", "remove"}
OTHERS = {"mkdir", "symlink", "fifo", "node", "bind", "rename"}


@pytest.fixture
def mark():
    """A name there that nobody else has; what is left of it is removed."""
    path = SHM / f"sandpit-{uuid.uuid4().hex}"
    yield path
    for left in SHM.glob(f"{path.name}*"):
        left.rmdir() if left.is_dir() and not left.is_symlink() else left.unlink()


def left_of(mark: Path) -> list[str]:
    return sorted(one.name for one in SHM.glob(f"{mark.name}*"))


@pytest.mark.parametrize("policy", ["read-only", "default", "strict"])
def test_nothing_but_memory_is_made(sandpit, mark, policy):
    plain = json.loads(sandpit.plain(USES, mark).stdout)
    assert set(plain.values()) == {0}
    for one in SHM.glob(f"{mark.name}*"):
        one.rmdir() if one.is_dir() and not one.is_symlink() else one.unlink()
    done = sandpit.run(USES, mark, options=("--policy", policy))
    told = json.loads(done.stdout)
    assert {name for name, errno in told.items() if errno == 0} == MEMORY, told
    assert {told[name] for name in OTHERS} == {13}
    assert not left_of(mark)
    denied = [one["operation"] for one in sandpit.events("violation")]
    assert denied == ["mkdir", "symlink", "mknod", "mknod", "bind", "rename"]


def test_memory_is_removed_at_the_end_and_what_else_was_made_is_told(sandpit, mark):
    done = sandpit.run(USES, mark, options=("--policy", "trace-only"))
    assert set(json.loads(done.stdout).values()) == {0}
    assert mark.name not in left_of(mark)
    made = {one["path"] for one in sandpit.events("file") if one["op"] == "mkdir"}
    assert f"{mark}-folder" in made


@pytest.mark.parametrize("rule", ["/dev/shm", "/dev/shm/*", "{mark}", "/"])
def test_rule_about_it_wins(sandpit, mark, rule):
    script = "import sys\nopen(sys.argv[1], 'w').write('x')\n"
    assert sandpit.run(script, mark, options=("--policy", "default")).returncode == 0
    options = ("--policy", "default", "--deny-write", rule.format(mark=mark))
    done = sandpit.run(script, mark, options=options)
    assert "PermissionError" in done.stderr
    assert not left_of(mark)
    (told,) = sandpit.events("violation")
    assert (told["path"], told["rule"].split()[0]) == (str(mark), "--deny-write")


def test_wider_rule_does_not_deny_it(sandpit, mark):
    script = "import sys\nopen(sys.argv[1], 'w').write('x')\n"
    policy = sandpit.folder / "policy.toml"
    policy.write_text('[fs]\ndeny_write = ["/dev", "*"]\n')
    done = sandpit.run(script, mark, options=("--policy", str(policy)))
    assert done.returncode == 0, done.stderr


def test_file_from_elsewhere_gets_no_name_there(sandpit, mark, tmp_path):
    """A hard link: both folders on the file system of shared memory."""
    folder = SHM / f"{mark.name}-work"
    folder.mkdir()
    try:
        (folder / "file").write_text("x")
        script = "import os, sys\nos.link(sys.argv[1], sys.argv[2])\n"
        paths = (folder / "file", mark)
        assert sandpit.plain(script, *paths).returncode == 0
        mark.unlink()
        options = ("--policy", "read-only", "--allow-write", str(folder))
        done = sandpit.run(script, *paths, options=options)
        assert "PermissionError" in done.stderr
        assert not mark.exists()
        (told,) = sandpit.events("violation")
        assert told["operation"] == "link"
    finally:
        (folder / "file").unlink()
        folder.rmdir()


def test_memory_of_others_stays_theirs(sandpit, mark):
    mark.write_text("theirs")
    script = (
        "import os, sys\nfor act in (lambda p: open(p, 'w'), os.remove,\n"
        "            lambda p: os.link(p, p + '-link'), lambda p: os.chmod(p, 0)):\n"
        "    try:\n        act(sys.argv[1])\n        print('done')\n"
        "    except OSError as error:\n        print(error.errno)\n"
    )
    done = sandpit.run(script, mark, options=("--policy", "default"))
    assert done.stdout.split() == ["13"] * 4
    assert mark.read_text() == "theirs"
    assert left_of(mark) == [mark.name]
    assert os.stat(mark).st_nlink == 1


HELD = """
import os, sys, time
mark, again = sys.argv[1], sys.argv[2] == "again"
held = os.open(mark, os.O_PATH)
os.close(os.open("held", os.O_CREAT | os.O_WRONLY))
while os.path.exists(mark):
    time.sleep(0.01)
if again:
    with open(mark, "w") as file:
        file.write("own")
try:
    os.write(os.open(f"/proc/self/fd/{held}", os.O_RDWR), b"guest")
    print("done")
except OSError as error:
    print(error.errno)
"""


def remove_when_held(mark: Path, sign: Path) -> threading.Thread:
    def wait() -> None:
        for _ in range(3000):
            if sign.exists():
                break
            time.sleep(0.01)
        mark.unlink()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


@pytest.mark.parametrize("policy", ["read-only", "default", "strict"])
@pytest.mark.parametrize("again", ["again", "once"])
def test_memory_of_others_stays_theirs_without_its_name(sandpit, mark, policy, again):
    """It is opened by a descriptor that was got while it had one."""
    sign = sandpit.folder / "held"
    place = ("--allow-write", str(sandpit.folder))
    for options in (None, ("--policy", policy, *place)):
        sign.unlink(missing_ok=True)
        mark.unlink(missing_ok=True)
        mark.write_bytes(b"their")
        with open(mark, "rb") as theirs:
            thread = remove_when_held(mark, sign)
            if options is None:
                done = sandpit.plain(HELD, mark, again)
            else:
                done = sandpit.run(HELD, mark, again, options=options)
            thread.join()
            left = theirs.read()
        if options is None:
            assert (done.stdout, left) == ("done\n", b"guest"), done.stderr
        else:
            assert (done.stdout, left) == ("13\n", b"their"), done.stderr
            assert len(sandpit.events("violation")) == 1


def test_own_memory_is_used_without_its_name(sandpit, mark):
    script = (
        "import os, sys\nfd = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)\n"
        "os.remove(sys.argv[1])\nown = f'/proc/self/fd/{fd}'\n"
        "os.write(os.open(own, os.O_RDWR), b'x' * 9)\nos.truncate(own, 5)\n"
        "os.chmod(own, 0o600)\nprint(os.read(fd, 20))\n"
    )
    assert sandpit.plain(script, mark).stdout == "b'xxxxx'\n"
    done = sandpit.run(script, mark, options=("--policy", "default"))
    assert done.stdout == "b'xxxxx'\n", done.stderr
    assert not sandpit.events("violation")


def test_name_of_nothing_is_of_nothing(sandpit, mark):
    script = (
        "import os, sys\nfor act in (open, os.remove, lambda p: os.truncate(p, 0),\n"
        "            lambda p: os.chmod(p, 0), lambda p: os.open(p, os.O_RDWR)):\n"
        "    try:\n        act(sys.argv[1])\n"
        "    except OSError as error:\n        print(error.errno)\n"
    )
    assert sandpit.plain(script, mark).stdout.split() == ["2"] * 5
    done = sandpit.run(script, mark, options=("--policy", "default"))
    assert done.stdout.split() == ["2"] * 5
    assert not sandpit.events("violation")


def test_explain_tells_of_it(sandpit, program_says):
    said = program_says("policy", "explain", "write", "/dev/shm/x")
    assert said.startswith("denied")
    assert "shared memory" in said
    rule = program_says(
        "policy", "explain", "--deny-write", "/dev/shm", "write", "/dev/shm/x"
    )
    assert "shared memory" not in rule


@pytest.fixture
def program_says(sandpit):
    import subprocess

    from programs import PROGRAM

    def say(*words: str) -> str:
        return subprocess.run(
            [str(PROGRAM), *words],
            cwd=sandpit.folder, capture_output=True, text=True, check=False,
        ).stdout  # fmt: skip

    return say
