"""The program has no way to the key that its trace is signed with, under any policy."""

from __future__ import annotations

import base64
import os
import re
import subprocess
from pathlib import Path

import pytest
from programs import PROGRAM
from someone import Ran, Someone

pytestmark = [
    pytest.mark.requires("program"),
    pytest.mark.requires("listener"),
    pytest.mark.requires("landlock"),
]

POLICIES = ["trace-only", "no-network", "no-process", "read-only", "default", "strict"]

# Every way to the key's bytes, or to have it away; prints what came of each.
TRY = r"""
import ctypes, mmap, os, shutil, subprocess, sys
key = os.path.abspath(sys.argv[1])
folder, name = os.path.split(key)
libc = ctypes.CDLL(None, use_errno=True)

def read(path, *flags):
    with open(path, "rb") as file:
        return file.read()

def plain(path):
    fd = libc.open(path.encode(), os.O_RDONLY)
    if fd < 0:
        raise OSError(ctypes.get_errno(), path)
    return os.read(fd, 4096)

def linked():
    os.symlink(key, "link")
    return read("link")

def inside():
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    return os.read(os.open(name, os.O_RDONLY, dir_fd=fd), 4096)

def by_object():
    return read(f"/proc/self/fd/{os.open(key, os.O_PATH)}")

def hard_linked():
    os.link(key, "hard")
    return read("hard")

def linked_object():
    fd = os.open(key, os.O_PATH)
    if libc.linkat(-100, f"/proc/self/fd/{fd}".encode(), -100, b"hard2", 0x400) < 0:
        raise OSError(ctypes.get_errno(), "linkat")
    return read("hard2")

def moved():
    os.rename(key, "moved")
    return read("moved")

def folder_moved():
    os.rename(folder, folder + "-2")
    try:
        return read(os.path.join(folder + "-2", name))
    finally:
        os.rename(folder + "-2", folder)

def exchanged():
    os.mkdir("other")
    if libc.renameat2(-100, b"other", -100, folder.encode(), 2) < 0:
        raise OSError(ctypes.get_errno(), "renameat2")
    return read(os.path.join("other", name))

def by_cat():
    done = subprocess.run(["cat", key], capture_output=True)
    if done.returncode:
        raise PermissionError(done.stderr)
    return done.stdout

def changed():
    with open(key, "ab") as file:
        file.write(b"#")
    return b"PRIVATE"

for what, act in {
    "open": lambda: read(key),
    "libc": lambda: plain(key),
    "dots": lambda: read(os.path.join(folder, ".", "..", os.path.basename(folder), name)),
    "root": lambda: read("/proc/self/root" + key),
    "link": linked,
    "inside": inside,
    "object": by_object,
    "hard": hard_linked,
    "hard object": linked_object,
    "moved": moved,
    "folder": folder_moved,
    "exchanged": exchanged,
    "cat": by_cat,
    "append": changed,
    "truncate": lambda: os.truncate(key, 0) or b"PRIVATE",
    "mode": lambda: os.chmod(key, 0o644) or b"PRIVATE",
    "remove": lambda: os.unlink(key) or b"PRIVATE",
}.items():
    try:
        got = act()
    except OSError as error:
        print(what, "refused", error.errno)
    else:
        print(what, "GOT" if b"private" in got.lower() else "empty")
print(len(read(os.path.join(folder, "team.pub"))) > 50, len(os.listdir(folder)))
"""


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    folder = tmp_path / "keys"
    folder.mkdir()
    subprocess.run(
        [PROGRAM, "keygen", folder / "team"], check=True, capture_output=True
    )
    return folder


def seed_of(keys: Path) -> bytes:
    return base64.b64decode((keys / "team.key").read_text().split()[-1])


def signed(keys: Path, *options: str) -> tuple[str, ...]:
    return ("--sign", str(keys / "team.key"), *options)


@pytest.mark.parametrize("where", ["beside", "outside"])
@pytest.mark.parametrize("policy", [*POLICIES, "--observe"])
def test_key_is_out_of_reach(sandpit, keys, tmp_path_factory, policy, where):
    """In the folder of the run, or elsewhere."""
    if where == "outside":
        keys = keys.rename(tmp_path_factory.mktemp("elsewhere") / "keys")
    named = "strict" if policy == "--observe" else policy
    chosen = ("--policy", named, *([policy] if policy != named else []))
    before = (keys / "team.key").stat(), (keys / "team.key").read_bytes()
    granted = ("--allow-import", "ctypes", "--allow-read", str(keys))
    options = signed(keys, *chosen, *granted)
    ran = sandpit.run(TRY, keys / "team.key", options=options)
    assert ran.returncode == 0, ran.stderr
    assert "GOT" not in ran.stdout and "empty" not in ran.stdout, ran.stdout
    assert len(re.findall("refused", ran.stdout)) == 17
    after = (keys / "team.key").stat(), (keys / "team.key").read_bytes()
    assert after[1] == before[1]
    assert (after[0].st_mode, after[0].st_ino, after[0].st_nlink) == (
        before[0].st_mode,
        before[0].st_ino,
        1,
    )
    assert "True 2" in ran.stdout  # what lies beside it is as open as ever
    refused = [
        event
        for event in sandpit.events()
        if event["kind"] in ("violation", "tamper")
        and str(keys / "team.key") in event.get("target", "")
    ]
    assert len(refused) >= 8
    checked = subprocess.run(
        [PROGRAM, "verify", "-q", "--key", keys / "team.pub", sandpit.trace],
        check=False,
    )
    assert checked.returncode == 0


@pytest.mark.parametrize("policy", ["trace-only", "no-network"])
def test_without_signing_the_file_is_like_any_other(sandpit, keys, policy):
    """The control: nothing but `--sign` keeps the program off."""
    ran = sandpit.run(TRY, keys / "team.key", options=("--policy", policy))
    for what in ("open", "libc", "dots", "root", "link", "inside", "object", "hard"):
        assert f"{what} GOT" in ran.stdout


# What is missing, and what is accepted with it; what holds the key is what is left.
LESSER = {
    "landlock=0": ("--allow-degraded", "landlock"),
    "landlock=1": (),
    "landlock=2": (),
    "listener=off": ("--allow-degraded", "listener"),
    "pidfd_getfd=off": (),
}


def by_someone(someone: Someone, *options: str) -> Ran:
    subprocess.run(
        [someone.program, "keygen", "team"],
        cwd=someone.folder,
        check=True,
        capture_output=True,
        **someone.who,
    )
    options = ("--sign", "team.key", *options)
    return someone.run(TRY, *options, arguments=("team.key",))


@pytest.mark.parametrize("policy", ["trace-only", "default"])
def test_key_is_out_of_reach_of_a_users_run(tmp_path, policy):
    someone = Someone(tmp_path, user=True, force="")
    try:
        ran = by_someone(someone, "--policy", policy, "--allow-import", "ctypes")
        assert ran.result["stdout"].count("refused") == 17, ran.result
        assert len((someone.folder / "team.key").read_bytes()) > 100
    finally:
        someone.close()


@pytest.mark.parametrize("force", LESSER)
def test_key_is_kept_by_lesser_means_too(tmp_path, force):
    someone = Someone(tmp_path, user=False, force=force)
    ran = by_someone(someone, *LESSER[force])
    read = ("open", "libc", "dots", "root", "link", "inside", "object", "cat")
    for what in (*read, "hard", "hard object", "moved", "exchanged"):
        assert f"{what} GOT" not in ran.result["stdout"], ran.result
    for what in read:
        assert f"{what} refused" in ran.result["stdout"], ran.result


def test_nothing_is_signed_where_nothing_keeps_the_key(tmp_path):
    someone = Someone(tmp_path, user=False, force="landlock=0,listener=off")
    accepted = ("--allow-degraded", "landlock", "--allow-degraded", "listener")
    subprocess.run(
        [someone.program, "keygen", "team"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    ran = someone.run("pass", "--sign", "team.key", *accepted, fails=True)
    assert ran.code == 125
    assert "nothing would keep the program from reading" in str(ran.result["error"])


RACE = r"""
import os, sys, threading
key = sys.argv[1]
open("allowed", "w").write("x")
os.symlink("allowed", "name")
done = False
def flip():
    n = 0
    while not done:
        n += 1
        os.symlink((key, "allowed")[n % 2], "fresh")
        os.rename("fresh", "name")
thread = threading.Thread(target=flip)
thread.start()
got = other = 0
for _ in range(3000):
    try:
        with open("name") as file:
            got += "private" in file.read()
            other += 1
    except OSError:
        pass
done = True
thread.join()
print(got, other > 0)
"""


@pytest.mark.parametrize("policy", ["trace-only", "default"])
def test_key_is_out_of_reach_of_racing_threads(sandpit, keys, policy):
    options = signed(keys, "--policy", policy)
    ran = sandpit.run(RACE, keys / "team.key", options=options)
    assert ran.stdout == "0 True\n", ran.stderr


ORDINARY = r"""
import json, os, shutil, subprocess, sys, tempfile
os.makedirs("a/b")
with open("a/b/c.txt", "w") as file:
    file.write("text")
print(open("a/b/c.txt").read())
os.rename("a/b", "a/d")
shutil.copytree("a", "e")
print(sorted(os.listdir("e")), os.path.exists("e/d/c.txt"))
with tempfile.TemporaryDirectory() as folder:
    shutil.move("e/d/c.txt", folder)
    print(os.listdir(folder))
with open("run.sh", "w") as file:
    file.write("#!/bin/sh\necho from a script\n")
os.chmod("run.sh", 0o755)
print(subprocess.run(["/bin/sh", "run.sh"], capture_output=True, text=True).stdout)
print(subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True, text=True).stdout)
shutil.rmtree("a")
"""


@pytest.mark.parametrize("where", ["beside", "outside"])
def test_signed_run_does_as_an_ordinary_one(sandpit, keys, tmp_path_factory, where):
    if where == "outside":
        keys = keys.rename(tmp_path_factory.mktemp("elsewhere") / "keys")
    work = sandpit.folder / "work"
    work.mkdir()
    plain = sandpit.plain(ORDINARY)
    for name in ("e", "run.sh"):
        path = sandpit.folder / name
        subprocess.run(["rm", "-r", path], check=True)
    ran = sandpit.run(ORDINARY, options=signed(keys, "--policy", "trace-only"))
    assert (ran.stdout, ran.returncode) == (plain.stdout, 0), ran.stderr
    assert [e for e in sandpit.events() if e["kind"] in ("violation", "tamper")] == []


WAIT = r"""
import os, sys, time
boss = os.getppid()
keeper = int(open(f"/proc/{boss}/stat").read().rpartition(")")[2].split()[1])
print(keeper, boss, os.getpid(), flush=True)
sys.stdin.read()
"""


def held(pid: int, *texts: bytes) -> list[int]:
    """How often each stands in what a process can write."""
    counts = [0] * len(texts)
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            span, rights = line.split()[:2]
            if not rights.startswith("rw") or line.rstrip().endswith("[vvar]"):
                continue
            start, end = (int(text, 16) for text in span.split("-"))
            try:
                data = os.pread(memory.fileno(), end - start, start)
            except OSError:
                continue
            for i, text in enumerate(texts):
                counts[i] += data.count(text)
    return counts


@pytest.mark.requires("root")
def test_key_lies_in_one_locked_page_of_the_supervisor(sandpit, keys):
    seed = seed_of(keys)
    texts = seed, base64.b64encode(seed)[:32]
    process = subprocess.Popen(
        sandpit.argv(WAIT, options=signed(keys, "--policy", "trace-only")),
        cwd=sandpit.folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        keeper, supervisor, guest = map(int, process.stdout.readline().split())
        assert keeper == process.pid
        assert held(supervisor, *texts) == [1, 0]
        assert held(keeper, *texts) == held(guest, *texts) == [0, 0]
        status = Path(f"/proc/{supervisor}/status").read_text()
        assert int(re.search(r"VmLck:\s+(\d+)", status)[1]) >= 4
        for pid in (keeper, supervisor, guest):
            for link in Path(f"/proc/{pid}/fd").iterdir():
                assert os.readlink(link) != str(keys / "team.key")
    finally:
        process.communicate(timeout=30)
    assert process.returncode == 0


def test_killed_supervisor_leaves_a_trace_that_the_key_has_not_signed(sandpit, keys):
    process = subprocess.Popen(
        sandpit.argv(WAIT, options=signed(keys, "--policy", "trace-only")),
        cwd=sandpit.folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    supervisor = int(process.stdout.readline().split()[1])
    os.kill(supervisor, 9)
    process.communicate(timeout=30)
    assert process.returncode == 125
    assert sandpit.verify() == 3
    checked = subprocess.run(
        [PROGRAM, "verify", "--key", keys / "team.pub", sandpit.trace],
        check=False,
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 1
    assert "there is no end, and so not the signature" in checked.stdout


MOUNTED = 'mount --bind "$0" "$1" && shift && exec "$@"'


@pytest.mark.requires("mounts")
def test_key_that_a_second_mount_shows_is_refused(sandpit, keys):
    """In a mount namespace of the test's, where a folder above it is mounted again."""
    again = sandpit.folder / "again"
    again.mkdir()
    command = sandpit.argv("pass", options=signed(keys))
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", MOUNTED, keys, again, *command],
        cwd=sandpit.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 125
    assert "by another mount" in done.stderr
