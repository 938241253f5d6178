"""Rules about files: every way to change or read what is denied, by Python and by system calls,
with the same program unconfined as the control; and that what is granted works."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from someone import Someone

pytestmark = [
    pytest.mark.requires("program"),
    pytest.mark.requires("listener"),
    pytest.mark.requires("landlock"),
]

# What a test works on: DENIED and GRANTED hold the same.
TREE = """
import os, sys
for top in ("denied", "granted"):
    os.makedirs(top + "/folder/empty", exist_ok=True)
    for name in ("file", "other", "folder/inner"):
        with open(f"{top}/{name}", "w") as f:
            f.write(name * 3)
        os.chmod(f"{top}/{name}", 0o644)
    os.symlink("file", top + "/link")
"""

LIBC = """
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    wrapped = [a.encode() if isinstance(a, str) else a for a in arguments]
    result = libc.syscall(number, *wrapped)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
"""

# Each line is a way to change something below `top`, and one to take it for what it is.
CHANGES = {
    "open-w": 'open(top + "/file", "w").close()',
    "open-a": 'open(top + "/file", "a").write("x")',
    "open-r+": 'open(top + "/file", "r+").write("x")',
    "open-x": 'open(top + "/new", "x").close()',
    "open-truncating": 'os.close(os.open(top + "/file", os.O_RDONLY | os.O_TRUNC))',
    "open-neither-truncate": 'os.close(os.open(top + "/file", 3 | os.O_TRUNC))',
    "open-creating": 'os.close(os.open(top + "/new", os.O_RDONLY | os.O_CREAT))',
    "through-link": 'open(top + "/link", "a").write("x")',
    "dir-fd": 'os.close(os.open("file", os.O_WRONLY | os.O_TRUNC, '
    "dir_fd=os.open(top, os.O_RDONLY)))",
    "dir-fd-path": 'os.close(os.open("new", os.O_WRONLY | os.O_CREAT, '
    "dir_fd=os.open(top, os.O_PATH)))",
    "dots": 'open("granted/../" + top + "/file", "w").close()',
    "by-cwd": 'os.chdir(top); open("file", "w").close()',
    "proc-root": 'open("/proc/self/root" + os.path.abspath(top) + "/file", "w").close()',
    "proc-cwd": 'open("/proc/self/cwd/" + top + "/file", "w").close()',
    "proc-fd": 'd = os.open(top, os.O_RDONLY); open(f"/proc/self/fd/{d}/file", "w").close()',
    "dev-fd": 'd = os.open(top, os.O_RDONLY); open(f"/dev/fd/{d}/new", "w").close()',
    "reopen": 'd = os.open(top + "/file", os.O_RDONLY); open(f"/proc/self/fd/{d}", "w").close()',
    "thread-self": 'd = os.open(top, os.O_RDONLY); '
    'open(f"/proc/thread-self/fd/{d}/file", "w").close()',
    "truncate": 'os.truncate(top + "/file", 1)',
    "unlink": 'os.unlink(top + "/file")',
    "rmdir": 'os.rmdir(top + "/folder/empty")',
    "rename-in": 'open("granted/moved", "w").close(); os.rename("granted/moved", top + "/new")',
    "rename-out": 'os.rename(top + "/file", "granted/moved")',
    "rename-within": 'os.rename(top + "/file", top + "/moved")',
    "rename-folder": 'os.rename(top + "/folder", top + "/moved")',
    "rename-top": 'os.rename(top, "granted/moved")',
    "exchange": 'call(316, -100, "granted/other", -100, top + "/file", 2)',
    "link-in": 'os.link("granted/file", top + "/new")',
    "link-out": 'os.link(top + "/file", "granted/linked"); '
    'open("granted/linked", "w").close()',
    "link-fd": 'd = os.open(top + "/file", os.O_RDONLY); '
    'call(265, -100, f"/proc/self/fd/{d}", -100, "granted/linked", 0x400); '
    'open("granted/linked", "w").close()',
    "symlink": 'os.symlink("x", top + "/new")',
    "via-symlink": 'os.symlink(os.path.abspath(top) + "/new", "granted/way"); '
    'open("granted/way", "w").close()',
    "mkdir": 'os.mkdir(top + "/new")',
    "mkfifo": 'os.mkfifo(top + "/new")',
    "mknod": 'os.mknod(top + "/new", 0o100644)',
    "socket": "import socket; s = socket.socket(socket.AF_UNIX); "
    'os.chdir(top); s.bind("new")',
    "chmod": 'os.chmod(top + "/file", 0o600)',
    "fchmod": 'os.fchmod(os.open(top + "/file", os.O_RDONLY), 0o600)',
    "chmod-folder": 'os.chmod(top + "/folder", 0o700)',
    "utime": 'os.utime(top + "/file", (1, 1))',
    "futime": 'os.utime(os.open(top + "/file", os.O_RDONLY), (1, 1))',
    "lutime": 'os.utime(top + "/link", (1, 1), follow_symlinks=False)',
    "setxattr": 'os.setxattr(top + "/file", "user.x", b"1")',
    "fsetxattr": 'os.setxattr(os.open(top + "/file", os.O_RDONLY), "user.x", b"1")',
    "tmpfile": "d = os.open(top, os.O_WRONLY | os.O_TMPFILE); "
    'call(265, -100, f"/proc/self/fd/{d}", -100, top + "/new", 0x400)',
    "raw-open": 'call(2, top + "/file", 0o1001)',
    "raw-openat": 'call(257, -100, top + "/new", 0o101, 0o644)',
    "raw-creat": 'call(85, top + "/new", 0o644)',
    "raw-rename": 'call(82, top + "/file", top + "/moved")',
    "raw-unlink": 'call(87, top + "/file")',
    "raw-utimes": 'call(235, top + "/file", None)',
    "raw-futimesat": 'call(261, -100, top + "/file", None)',
    "raw-utime": 'call(132, top + "/file", None)',
    "raw-fchmodat2": 'call(452, -100, top + "/file", 0o600, 0)',
    "raw-lsetxattr": 'call(189, top + "/file", "user.x", b"1", 1, 0)',
    "flags": "import fcntl, array; "
    'fcntl.ioctl(os.open(top + "/file", os.O_RDONLY), 0x40086602, array.array("l", [0x80]))',
    "sqlite": 'import sqlite3; sqlite3.connect(top + "/new").execute("create table t (x)")',
    "copy": 'import shutil; shutil.copy("granted/file", top + "/new")',
    "rmtree": 'import shutil; shutil.rmtree(top + "/folder")',
    "child": "import subprocess; subprocess.run("
    '["sh", "-c", "echo x > " + top + "/new"], check=True, stderr=subprocess.DEVNULL)',
    "thread": "import threading; fault = []\n"
    "def act():\n"
    '    try: open(top + "/new", "w").close()\n'
    "    except OSError as why: fault.append(why)\n"
    "t = threading.Thread(target=act); t.start(); t.join()\n"
    "if fault: raise fault[0]",
    "forked": "pid = os.fork()\n"
    "if pid == 0:\n"
    '    try: open(top + "/new", "w").close()\n'
    "    except OSError: os._exit(1)\n"
    "    os._exit(0)\n"
    "if os.waitpid(pid, 0)[1]: raise OSError",
}
# Not every file system can do these.
OPTIONAL = {"setxattr", "fsetxattr", "raw-lsetxattr", "flags", "tmpfile", "raw-fchmodat2"}
# Calls of older tables, which other machines do not have.
if os.uname().machine != "x86_64":
    for name in [one for one in CHANGES if "call(" in CHANGES[one]]:
        del CHANGES[name]

ACT = """
top = sys.argv[1]
import sqlite3
try:
    exec(sys.argv[2])
except (OSError, subprocess.CalledProcessError, sqlite3.OperationalError) as why:
    print("refused", why.__class__.__name__, why)
else:
    print("done")
"""
PROGRAM = "import os, subprocess, sys" + LIBC + ACT


@pytest.fixture(params=["caller", "user"])
def someone(request, tmp_path: Path) -> Iterator[Someone]:
    one = Someone(tmp_path, user=request.param == "user", force="")
    one.run(TREE, "--no-trace")
    yield one
    one.close()


def snapshot(folder: Path) -> dict[str, tuple]:
    """All there is to know about a tree, but for when files were last read."""
    found = {}
    for place, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            path = Path(place, name)
            st = path.lstat()
            content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
            extended = sorted(os.listxattr(path, follow_symlinks=False))
            times = st.st_mtime_ns if not path.is_dir() else 0
            known = (st.st_mode, st.st_nlink, times, content, extended)
            found[str(path.relative_to(folder))] = known
    return found


def policy(someone: Someone, text: str) -> tuple[str, str]:
    path = someone.folder / "policy.toml"
    path.write_text(text)
    path.chmod(0o644)
    return "--policy", str(path)


def grant_anew(someone: Someone) -> None:
    """The granted folder as it was before anything was tried."""
    shutil.rmtree(someone.folder / "granted", ignore_errors=True)
    code = TREE.replace('"denied", "granted"', '"granted",')
    subprocess.run(
        [someone.python, "-I", "-S", "-c", code],
        cwd=someone.folder,
        check=True,
        **someone.who,
    )


def act(someone: Someone, name: str, top: str, *options: str):
    return someone.run(PROGRAM, *options, arguments=(top, CHANGES[name]))


POLICIES = {
    "denied": '[fs]\ndeny_write = ["{work}/denied"]\n',
    "not-granted": '[fs]\nallow_write = ["{work}/granted"]\n',
    "deny-in-allow": '[fs]\nallow_write = ["{work}"]\ndeny_write = ["{work}/denied"]\n',
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_denied_by_every_way(someone: Someone, name: str) -> None:
    denied = someone.folder / "denied"
    before = snapshot(denied)
    for text in POLICIES.values():
        grant_anew(someone)
        ran = act(someone, name, "denied", *policy(someone, text))
        assert snapshot(denied) == before
        assert ran.result["stdout"].startswith("refused"), ran.result["stdout"]
        violations = ran.result["violations"]
        assert violations, "the attempt is not in the record"
        for one in violations:
            assert one["category"] == "fs"
            assert one["target"].startswith(str(denied.resolve()))
    # Unconfined, the same program does it.
    grant_anew(someone)
    ran = act(someone, name, "denied")
    if name == "flags" or (
        name in OPTIONAL and ran.result["stdout"].startswith("refused")
    ):
        return
    assert ran.result["stdout"] == "done\n"
    assert snapshot(denied) != before


@pytest.mark.parametrize("name", [one for one in CHANGES if one != "rename-top"])
def test_a_change_is_made_where_it_is_granted(someone: Someone, name: str) -> None:
    """By the kernel where the whole folder is granted, by the broker where only names are."""
    granted = someone.folder / "granted"
    before = snapshot(granted)
    text = {
        "uniform": '[fs]\nallow_write = ["{work}/granted"]\n',
        "by-glob": '[fs]\nallow_write = ["{work}/gr*"]\n',
    }
    free = act(someone, name, "granted")
    optional = free.result["stdout"].startswith("refused")
    assert name in OPTIONAL or not optional
    for rules in text.values():
        grant_anew(someone)
        ran = act(someone, name, "granted", *policy(someone, rules))
        if optional or name == "flags":
            continue
        assert ran.result["violations"] == []
        assert ran.result["stdout"] == "done\n"
        assert snapshot(granted) != before


LESSER = {
    **{f"landlock={abi}": () for abi in (1, 2, 3, 4, 5)},
    "landlock=0": ("--allow-degraded", "landlock"),
    "listener=off": ("--allow-degraded", "listener"),
    **{
        f"listener=off,landlock={abi}": ("--allow-degraded", "listener")
        for abi in (1, 2, 3, 4, 5)
    },
    "pidfd_getfd=off,process_vm_readv=off": (),
}


@pytest.mark.parametrize("force", LESSER)
def test_changes_are_denied_by_lesser_means_too(tmp_path: Path, force: str) -> None:
    """All ways in one run each; what holds them is what is left of the kernel's means."""
    someone = Someone(tmp_path, user=False, force=force)
    someone.run(TREE, *LESSER[force], "--no-trace")
    ways = [code for name, code in CHANGES.items() if name not in ("child", "rename-top")]
    program = (
        "import os, sqlite3, subprocess, sys" + LIBC + "home = os.getcwd()\n"
        "top = 'denied'\n"
        f"for way in {ways!r}:\n"
        "    os.chdir(home)\n"
        "    try: exec(way)\n"
        "    except (OSError, sqlite3.OperationalError): print('refused')\n"
        "    else: print('done')\n"
    )
    denied = someone.folder / "denied"
    before = snapshot(denied)
    for text in POLICIES.values():
        grant_anew(someone)
        ran = someone.run(program, *LESSER[force], *policy(someone, text))
        assert snapshot(denied) == before
        assert ran.result["stdout"].count("refused") >= len(ways) - 3, ran.result
    grant_anew(someone)
    ran = someone.run(program, *LESSER[force])
    assert snapshot(denied) != before
    assert ran.result["stdout"].count("done") > len(ways) / 3


READS = {
    "open": 'print(open(top + "/file").read())',
    "link": 'print(open(top + "/link").read())',
    "dir-fd": 'd = os.open(top, os.O_PATH); print(os.read(os.open("file", 0, dir_fd=d), 99))',
    "listdir": "print(os.listdir(top))",
    "scandir": "print([one.name for one in os.scandir(top)])",
    "proc-root": 'print(open("/proc/self/root" + os.path.abspath(top) + "/file").read())',
    "proc-path": 'd = os.open(top + "/file", os.O_PATH); '
    'print(open(f"/proc/self/fd/{d}").read())',
    "copy": 'import shutil; shutil.copy(top + "/file", "granted/x"); '
    'print(open("granted/x").read())',
    "move": 'os.rename(top + "/file", "granted/x"); print(open("granted/x").read())',
    "move-folder": 'os.rename(top, "granted/x"); print(open("granted/x/file").read())',
    "link-out": 'os.link(top + "/file", "granted/x"); print(open("granted/x").read())',
    "exchange": 'call(316, -100, "granted/other", -100, top + "/file", 2); '
    'print(open("granted/other").read())',
    "mmap": "import mmap; "
    'print(mmap.mmap(os.open(top + "/file", os.O_RDONLY), 0, prot=mmap.PROT_READ)[:])',
    "raw": 'd = call(257, -100, top + "/file", 0); print(os.read(d, 99))',
    "child": 'print(subprocess.run(["cat", top + "/file"], check=True, '
    "capture_output=True).stdout)",
    "import": "sys.path.insert(0, top); import secret_module",
    "sendfile": 'd = os.open("granted/x", os.O_RDWR | os.O_CREAT); '
    'os.sendfile(d, os.open(top + "/file", os.O_RDONLY), 0, 99); '
    'print(open("granted/x").read())',
}
if os.uname().machine != "x86_64":
    del READS["exchange"], READS["raw"]


@pytest.mark.parametrize("name", READS)
def test_a_read_is_denied_by_every_way(someone: Someone, name: str) -> None:
    denied = someone.folder / "denied"
    (denied / "file").write_text("not-for-reading")
    (denied / "secret_module.py").write_text("print('not-for-reading')\n")
    (denied / "not-for-reading").write_text("")
    texts = {
        "denied": '[fs]\ndeny_read = ["{work}/denied"]\n',
        "by-glob": '[fs]\ndeny_read = ["{work}/den*"]\n',
        "not-granted": '[fs]\nallow_read = ["{python}", "{script}/script.py", '
        '"{work}/granted", "/usr", "/bin", "/lib", "/lib64", "/etc"]\n',
    }
    for text in texts.values():
        ran = someone.run(
            PROGRAM.replace("sqlite3.OperationalError", "ImportError"),
            *policy(someone, text),
            arguments=("denied", READS[name]),
        )
        assert "not-for-reading" not in ran.result["stdout"]
        assert "refused" in ran.result["stdout"], ran.result
        reads = [one for one in ran.result["violations"] if one["category"] == "fs"]
        looked_for = [one for one in ran.events("open") if one.get("expected")]
        assert reads or (name == "import" and looked_for)
    ran = someone.run(PROGRAM, arguments=("denied", READS[name]))
    assert "not-for-reading" in ran.result["stdout"]


def test_a_denial_says_all_there_is_to_say(someone: Someone) -> None:
    code = "try:\n    open('denied/file', 'w')\nexcept PermissionError as why:\n    print(why)\n"
    rules = '[fs]\nallow_write = ["{work}"]\ndeny_write = ["**/file"]\n'
    ran = someone.run(code, *policy(someone, rules))
    target = str((someone.folder / "denied/file").resolve())
    [one] = ran.result["violations"]
    assert (one["operation"], one["target"], one["line"]) == ("write", target, 2)
    assert one["rule"] == 'fs.deny_write "**/file"'
    assert one["source"].endswith("policy.toml:3")
    assert one["hint"] == f"--allow-write {target} would allow it"
    assert one["message"] in ran.result["stdout"]


def test_what_is_not_there_is_not_denied(someone: Someone) -> None:
    code = (
        "import os\n"
        "for act in (lambda: open('denied/none'), lambda: os.unlink('denied/none'),\n"
        "            lambda: open('none/none', 'w'), lambda: os.rename('denied/none', 'x'),\n"
        "            lambda: os.mkdir('denied/folder'), lambda: os.rmdir('denied/none')):\n"
        "    try: act()\n"
        "    except OSError as why: print(why.__class__.__name__)\n"
    )
    rules = '[fs]\nallow_read = ["{python}", "{script}/script.py"]\nallow_write = []\n'
    ran = someone.run(code, *policy(someone, rules))
    assert ran.result["stdout"] == someone.run(code).result["stdout"]
    assert ran.result["violations"] == []


def test_a_local_package_is_imported_without_its_cache(someone: Someone) -> None:
    code = "import package.module as m\nprint(m.word)\n"
    someone.environment.pop("PYTHONDONTWRITEBYTECODE", None)
    package = someone.folder / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "module.py").write_text("word = 'here'\n")
    for one in (package, *package.iterdir()):
        one.chmod(0o755)
    ran = someone.run(code, *policy(someone, '[fs]\ndeny_write = ["*"]\n'))
    assert ran.result["stdout"] == "here\n"
    assert ran.result["violations"] == []
    assert not (package / "__pycache__").exists()
    expected = [one for one in ran.events("file") if one.get("expected")]
    assert any("__pycache__" in one["path"] for one in expected)
