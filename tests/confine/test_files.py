"""Files are made, changed and moved as under plain python, wherever they lie: by the program
itself or by the supervisor in its place."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = [pytest.mark.requires("program"), pytest.mark.requires("listener")]

# Every operation in both folders and between them; what it gave, and what is there afterwards.
OPERATIONS = r"""
import os, shutil, stat, sys, tempfile
near, far = sys.argv[1:]
def attempt(name, act, *arguments, **keywords):
    try:
        result = act(*arguments, **keywords)
        if isinstance(result, int) and name.startswith("open"):
            mode = oct(os.fstat(result).st_mode)
            os.close(result)
            result = mode
        print(name, result if not hasattr(result, "close") else result.close())
    except OSError as why:
        print(name, type(why).__name__, why.errno)
def tree(folder):
    for place, folders, files in sorted(os.walk(folder)):
        for name in sorted(files):
            path = os.path.join(place, name)
            st = os.lstat(path)
            print(os.path.relpath(path, folder), oct(st.st_mode), st.st_nlink,
                  st.st_size if stat.S_ISREG(st.st_mode) else "")
for place in (near, far):
    os.chdir(place)
    os.mkdir("d")
    attempt("write", open, "a", "w")
    attempt("exclusive", open, "a", "x")
    attempt("append", open, place + "/a", "ab")
    attempt("update", open, "a", "r+")
    attempt("missing", open, "no/such", "w")
    attempt("not a folder", open, "a/b", "w")
    attempt("a folder", open, "d", "w")
    attempt("open mode", os.open, "m", os.O_CREAT | os.O_WRONLY, 0o640)
    old = os.umask(0o077)
    attempt("open masked", os.open, "u", os.O_CREAT | os.O_WRONLY, 0o666)
    os.umask(old)
    with open("a", "w") as f:
        f.write("twelve bytes")
    attempt("truncate", os.truncate, "a", 5)
    attempt("open truncating", os.open, "a", os.O_RDONLY | os.O_TRUNC)
    os.symlink("dangling", "s")
    attempt("through a link", open, "s", "w")
    attempt("open no link", os.open, "s", os.O_WRONLY | os.O_NOFOLLOW)
    attempt("rename", os.rename, "a", "b")
    attempt("into a folder", os.rename, "b", "d/b")
    attempt("out of it", os.rename, "d/b", "b")
    attempt("link", os.link, "b", "d/l")
    attempt("folder", os.rename, "d", "e")
    attempt("temporary", tempfile.TemporaryFile, dir=".")
    attempt("named", tempfile.NamedTemporaryFile, dir=".")
    os.mkfifo("f")
    attempt("open fifo", os.open, "f", os.O_RDWR)
    attempt("open empty fifo", os.open, "f", os.O_WRONLY | os.O_NONBLOCK)
    dirfd = os.open(place, os.O_RDONLY)
    attempt("open at", os.open, "at", os.O_CREAT | os.O_RDWR, dir_fd=dirfd)
    attempt("rename at", os.rename, "at", "at2", src_dir_fd=dirfd, dst_dir_fd=dirfd)
    attempt("chmod", os.chmod, "b", 0o600)
    attempt("utime", os.utime, "b", (1, 1))
    attempt("unlink", os.unlink, "u")
for one, other in ((near, far), (far, near)):
    os.chdir(one)
    attempt("away", os.rename, "b", other + "/from-" + os.path.basename(one))
    attempt("link away", os.link, "m", other + "/link-" + os.path.basename(one))
    attempt("move", shutil.move, "e", other + "/moved-" + os.path.basename(one))
attempt("null", open, "/dev/null", "w")
attempt("zero", open, "/dev/zero", "r+b")
attempt("terminal", os.openpty)
attempt("comm", open, "/proc/self/comm", "w")
attempt("oom", open, "/proc/self/oom_score_adj", "w")
for place in (near, far):
    tree(place)
"""


def prepared(folder):
    for name in ("near", "far", "temporary"):
        (folder / name).mkdir(parents=True)
    return folder / "near", folder / "far"


@pytest.mark.parametrize("policy", ["trace-only", "no-network"])
@pytest.mark.parametrize("abi", [None, 1, 2, 3, 5])
def test_operations_give_what_they_give_under_plain_python(sandpit, tmp_path, policy, abi):
    near, far = prepared(tmp_path / "plain")
    script = tmp_path / "plain.py"
    script.write_text(OPERATIONS)
    env = {"TMPDIR": str(tmp_path / "plain/temporary")}
    plain = subprocess.run([sys.executable, script, near, far], cwd=near, env=env,
                           capture_output=True, text=True, check=True)
    near, far = prepared(tmp_path / "confined")
    env = {"TMPDIR": str(tmp_path / "confined/temporary")}
    if abi is not None:
        env["SANDPIT_FORCE"] = f"landlock={abi}"
    sandpit.folder = near
    done = sandpit.run(OPERATIONS, near, far, options=("--policy", policy), env=env)
    (near / "script.py").unlink()
    lines = [line for line in done.stdout.splitlines() if not line.startswith("script.py ")]
    assert done.stderr == ""
    assert lines == [
        line.replace("/plain/", "/confined/") for line in plain.stdout.splitlines()]
    assert sandpit.verify() == 0


SYSTEM = r"""
import os, sys
for path in sys.argv[1:]:
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_RDONLY | os.O_TRUNC):
        try:
            os.close(os.open(path, flags))
            print("opened", path, flags)
        except OSError:
            pass
"""


@pytest.mark.requires("root")
def test_root_cannot_write_to_the_kernel_or_to_disks(sandpit, tmp_path):
    victim = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        paths = ["/proc/sys/kernel/core_pattern", f"/proc/{victim.pid}/oom_score_adj",
                 f"/proc/{victim.pid}/comm", "/proc/self/mem", "/proc/sysrq-trigger",
                 "/sys/kernel/mm/transparent_hugepage/enabled"]
        assert "core_pattern" in sandpit.plain(SYSTEM, *paths).stdout
        done = sandpit.run(SYSTEM, *paths, options=("--policy", "trace-only"))
    finally:
        victim.kill()
        victim.wait()
    assert (done.stdout, done.stderr) == ("", "")
    refused = {one["path"] for one in sandpit.events("tamper")}
    assert "/proc/sys/kernel/core_pattern" in refused


DEEP = """
import os
depth = 0
try:
    for depth in range(200):
        os.mkdir("d" * 40)
        os.chdir("d" * 40)
except OSError as error:
    print(error.errno)
for act in (lambda: os.mkdir("x"), lambda: os.symlink("y", "z"), lambda: open("f", "w")):
    try:
        act()
    except OSError as error:
        print(error.errno)
"""


@pytest.mark.requires("landlock")
def test_folder_too_deep_to_be_judged_is_refused_as_such(sandpit, tmp_path):
    assert sandpit.plain(DEEP).stdout == ""
    (tmp_path / ("d" * 40)).rename(tmp_path / "plain")
    done = sandpit.run(DEEP, options=("--policy", "default"))
    assert set(done.stdout.split()) == {"36"}, done.stdout
    assert not sandpit.events("violation")
