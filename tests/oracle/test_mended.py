"""What the oracle once found, one case each: what used to happen stands before it."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path as File

import pytest
from operations import (
    CWD,
    EMPTY_PATH,
    EXCHANGE,
    NOREPLACE,
    NUMBERS,
    O_PATH,
    O_TMPFILE,
    Operation,
    Path,
    ask_change,
    ask_make,
    ask_move,
    ask_open,
    ask_slot,
    nothing_asked,
)
from play import Case, play, root_below
from programs import PROGRAM
from trees import Entry

pytestmark = [
    pytest.mark.requires("program"),
    pytest.mark.requires("listener"),
    pytest.mark.requires("landlock"),
    pytest.mark.requires("procfs"),
]

MADE = os.O_CREAT | os.O_WRONLY


def plain(text: bytes) -> Path:
    return Path("plain", 0, text)


def opened(path: bytes, flags: int, how: str = "fd") -> Operation:
    source = f"os.open({path!r}, {flags}, 0o644)"
    return Operation("open", source, how, 0, ask_open(plain(path), flags))


def removed(path: bytes) -> Operation:
    source = f"os.unlink({path!r})"
    return Operation("", source, "none", 0, ask_change("remove", plain(path), False))


def made(path: bytes) -> Operation:
    source = f"os.mkdir({path!r})"
    return Operation("", source, "none", 0, ask_make("mkdir", plain(path)))


def renamed(path: bytes, to: bytes, flags: int = 0) -> Operation:
    source = f"os.rename({path!r}, {to!r})"
    if flags:
        source = f"C({NUMBERS['renameat2']}, {CWD}, {path!r}, {CWD}, {to!r}, {flags})"
    ask = ask_move("rename", plain(path), plain(to), flags)
    return Operation("", source, "none", 0, ask)


def linked(path: bytes, to: bytes) -> Operation:
    ask = ask_move("link", plain(path), plain(to))
    return Operation("", f"os.link({path!r}, {to!r})", "none", 0, ask)


def done(source: str) -> Operation:
    return Operation("", source, "none", 0, nothing_asked)


def changed(op: str, source: str, path: bytes) -> Operation:
    return Operation("", source, "none", 0, ask_change(op, plain(path), True))


def by_number(op: str, source: str) -> Operation:
    return Operation("", source, "none", 0, ask_slot(op, "F", 0))


def kept(behind: bytes = b"") -> Path:
    return Path("kept", 0, behind)


def reopened(flags: int, behind: bytes = b"") -> Operation:
    path = kept(behind)
    source = f"os.open({path.source}, {flags}, 0o644)"
    return Operation("", source, "fd", 0, ask_open(path, flags))


def by_empty_path(op: str, source: str) -> Operation:
    return Operation("", source, "none", 0, ask_slot(op, "F", 0, by_number=False))


def file(path: bytes) -> Entry:
    return Entry("file", path, b"content\n")


def folder(path: bytes) -> Entry:
    return Entry("folder", path)


def link(path: bytes, target: bytes) -> Entry:
    return Entry("link", path, target)


W, O = "{work}", "{root}/o"  # noqa: E741
NOTHING_IN_O = {"deny_write": [O]}

CASES = {
    # A path that is no address was taken for the current folder, which was changed.
    "no path": (NOTHING_IN_O, [], [
        done("os.setxattr(-1, b'user.a', b'a')"),
        done("os.removexattr(-1, b'user.a')")]),
    # Judged where the link lies: made in a denied folder in silence, or denied in an allowed one.
    "file made through a link": ({"allow_write": [W]}, [
        link(b"w/out", b"../o/new"), link(b"o/in", b"../w/new")], [
        opened(b"out", MADE), opened(b"../o/in", MADE), opened(b"out/", MADE)]),
    # The rule was on the link alone: what it leads to could be made through it.
    "a rule on a link to nothing": ({"deny_write": [W + "/l", W + "/m/a"]}, [
        link(b"w/l", b"../o/new"), link(b"w/m", b"x")], [
        opened(b"l", MADE), opened(b"../o/new", MADE), made(b"x"), opened(b"x/a", MADE),
        opened(b"m/a", MADE)]),
    # A file of that name was judged as if it were a removed one.
    "named like a removed file": ({"allow_write": [W + "/a", W + "/c (deleted)"]}, [
        file(b"w/a (deleted)"), file(b"w/c (deleted)"), file(b"w/a")], [
        opened(b"a (deleted)", os.O_WRONLY), opened(b"c (deleted)", os.O_WRONLY),
        changed("chmod", "os.chmod(b'a (deleted)', 0o600)", b"a (deleted)"),
        opened(b"a", os.O_RDWR, "keep"), removed(b"a"),
        by_number("chmod", "os.fchmod(F[0], 0o600)"), made(b"d (deleted)")]),
    # The run was refused: the kernel cannot open such a thing to grant it.
    "a rule on a circle": ({"allow_read": ["{python}", "{script}", W + "/a"],
                            "allow_write": [W + "/a"]}, [link(b"w/a", b"a")], [
        opened(b"a", os.O_RDONLY), removed(b"a"), opened(b"a", os.O_CREAT | os.O_RDWR)]),
    # ELOOP, and ENOENT of an empty path before the first was looked for.
    "other errors": (NOTHING_IN_O, [link(b"w/a", b"../o"), file(b"w/b")], [
        opened(b"a", os.O_RDWR | os.O_NOFOLLOW | os.O_DIRECTORY),
        opened(b"a", os.O_RDWR | os.O_NOFOLLOW), done("os.rename(b'b/c', b'')"),
        done("os.rename(b'b', b'')"), done("os.link(b'c', b'')")]),
    # What is not there cannot be granted, but was counted as if it were.
    "a readable file made later": ({"allow_read": ["{python}", "{script}", W + "/a"]}, [], [
        opened(b"a", os.O_RDONLY), opened(b"a", MADE), opened(b"a", os.O_RDONLY),
        opened(b"b", MADE), opened(b"b", os.O_RDONLY)]),
    # A glob with a folder above it denied the renaming of every file below that folder.
    "rename beside a glob": ({"deny_write": ["{root}/*/key.txt"]}, [
        folder(b"w/a"), file(b"w/a/b"), folder(b"w/c"), file(b"w/c/key.txt")], [
        renamed(b"a/b", b"a/c"), renamed(b"a", b"d"), renamed(b"c", b"w")]),
    # EACCES, where the kernel finds that there is nothing to exchange, or something in the way.
    "rename with flags": (NOTHING_IN_O, [file(b"w/a"), file(b"o/b")], [
        renamed(b"a", b"../o/none", EXCHANGE), renamed(b"a", b"../o/b", NOREPLACE),
        renamed(b"none", b"../o/b"), renamed(b"a", b".."), renamed(b"a", b"../o/b/")]),
    # ENOTDIR where something is there already; EACCES or ENOENT of what cannot be made.
    "a slash behind": (NOTHING_IN_O, [
        file(b"o/a"), file(b"w/a"), link(b"w/l", b"../o"), link(b"o/l", b"none")], [
        made(b"a/"), made(b"../o/a/"), made(b"../o/l/"), opened(b"a/", MADE),
        opened(b"../o/none/", MADE), opened(b"a", MADE | os.O_DIRECTORY), removed(b"l/"),
        removed(b"../o/a/"), renamed(b"l/", b"x")]),
    # The right is the folder's: the kernel refused it in silence.
    "an allowed file": ({"allow_write": [W + "/a", W + "/b"]}, [file(b"w/a")], [
        removed(b"a"), opened(b"a", MADE), opened(b"a", os.O_WRONLY),
        renamed(b"a", b"b"), opened(b"b", os.O_RDWR), opened(b"a", MADE)]),
    # What stands where something was granted is not granted: EACCES, and no violation.
    "an allowed folder made anew": ({"allow_write": [W + "/a", W + "/b"]}, [
        folder(b"w/a"), file(b"w/a/c")], [
        removed(b"a/c"), changed("rmdir", "os.rmdir(b'a')", b"a"), made(b"a"),
        opened(b"a/c", MADE), renamed(b"a", b"b"), opened(b"b/d", MADE),
        renamed(b"b/c", b"b/e")]),
    "a readable folder made anew": ({"allow_read": ["{python}", "{script}", W + "/a"]}, [
        folder(b"w/a"), file(b"w/a/c")], [
        renamed(b"a", b"b"), made(b"a"), opened(b"a/c", MADE),
        opened(b"a/c", os.O_RDONLY), opened(b"b/c", os.O_RDONLY)]),
    # The interpreter could not be started: what the kernel reads itself needs a grant.
    "a denied name anywhere": ({"deny_read": ["**/.env"]}, [
        file(b"w/.env"), file(b"w/a")], [
        opened(b".env", os.O_RDONLY), opened(b"a", os.O_RDONLY),
        renamed(b".env", b"b")]),
    # A nameless file was judged as its folder, also by what may be read.
    "a nameless file": ({"allow_read": ["{python}", "{script}"], "allow_write": [W],
                         "deny_write": [W + "/a"]}, [folder(b"w/a"), file(b"w/b")], [
        opened(b".", O_TMPFILE | os.O_RDWR), opened(b"a", O_TMPFILE | os.O_RDWR),
        opened(b"none", O_TMPFILE | os.O_RDWR)]),
    # Links that go round were told as EACCES.
    "links that go round": (NOTHING_IN_O, [link(b"w/a", b"b"), link(b"w/b", b"a")], [
        opened(b"a", os.O_WRONLY), made(b"a/c"),
        changed("chmod", "os.chmod(b'a', 0o600)", b"a"),
        opened(b"/proc/self/cwd/a", os.O_WRONLY)]),
    # A descriptor that nothing can be done by changed its file.
    "a bare descriptor": (NOTHING_IN_O, [file(b"w/a"), file(b"o/b")], [
        opened(b"a", O_PATH, "keep"), by_number("chmod", "os.fchmod(F[0], 0o600)"),
        by_number("utime", "os.utime(F[0], (1000, 1000))"),
        by_number("setxattr", "os.setxattr(F[0], b'user.a', b'a')"),
        opened(b"../o/b", O_PATH, "keep"), by_number("chown", "os.fchown(F[0], -1, -1)")]),
    # What an event announces that never comes gave the next call its line.
    "an announcement for nothing": (NOTHING_IN_O, [file(b"w/a")], [
        done("os.utime(-1, (1, 1))"),
        Operation("", "os.mknod(b'b', 0o100644)", "none", 0, ask_make("mknod", plain(b"b"))),
        done("os.listdir('')"), opened(b"../o/none", MADE),
        done("os.lockf(D[0], os.F_TEST, 0)"), done("os.ftruncate(-1, 0)"),
        changed("truncate", f"C({NUMBERS['truncate']}, b'a', 1)", b"a")]),
    # ENOENT of one end although the walk to the other ends before.
    "folders closed by their mode": (NOTHING_IN_O, [folder(b"w/a"), file(b"o/b")], [
        changed("chmod", "os.chmod(b'a', 0o600)", b"a"), renamed(b"none", b"a/b"),
        done("os.symlink(b'a/b', b'l')"), opened(b"l/", MADE), opened(b"l", MADE),
        renamed(b"a/b", b"../o/none/c"), opened(b"a/c/", MADE), removed(b"a/b"),
        changed("chmod", "os.chmod(b'a', 0o700)", b"a")]),
    # Judged by the folder it is seen from.
    "no name at the end": ({"deny_write": [W + "/a/**"]}, [folder(b"w/a")], [
        changed("rmdir", "os.rmdir(b'a/..')", b"a/.."), removed(b"a/."), made(b"a/..")]),
    # EISDIR, which the kernel says of a name with a slash behind it only.
    "no name at the end of what is made": ({"allow_write": [W]}, [folder(b"w/a")], [
        opened(b"./", MADE | os.O_EXCL), opened(b"a/..//", MADE | os.O_EXCL),
        opened(b"a/", MADE | os.O_EXCL), opened(b"new/", MADE | os.O_EXCL)]),
    # Judged as a path that nobody has: the folder's, and two dots.
    "a folder by no name is not linked": ({"deny_write": [W + "/a"]}, [folder(b"w/a")], [
        linked(b"a/..", b"deep"), linked(b".", b"deep")]),
    # The folder that an allowed link leads to was granted, though it is denied.
    "a link into what is denied grants nothing": (
        {"allow_read": ["{root}/w/x", "{python}", "{script}"], "deny_read": [W]},
        [Entry("link", b"w/x", b"."), Entry("link", b"o/deep", b"../w")],
        [renamed(b"../o/deep", b"../o/deep/data.txt"), opened(b"../o", os.O_RDONLY)]),
    # What a folder's own rule outdid for itself was denied in it, and got away with it.
    "a folder that is allowed, and what is in it denied": (
        {"allow_read": ["{python}", "{script}"], "deny_read": ["{root}/**/out"],
         "allow_write": ["{root}/o/out", W]},
        [folder(b"o/out"), file(b"o/out/file"), folder(b"w/deep")],
        [renamed(b"../o/out", b"deep/a")]),
    # A link's move was taken for one of the folder that it leads to, by the evaluator.
    "a link to a folder that would be denied": (
        {"deny_read": ["**/deep"], "allow_write": [W + "/deep"]},
        [folder(b"w/a"), file(b"w/a/file"), Entry("link", b"w/deep", b"a")],
        [renamed(b"deep", b"a/out")]),
    # What a descriptor is open on was taken for a folder by a slash behind it.
    "a descriptor's file is no folder": ({"deny_write": [W + "/a"]}, [file(b"w/b")], [
        opened(b"b", os.O_RDONLY, "keep"), reopened(os.O_WRONLY, b"/"), reopened(os.O_WRONLY),
        Operation("", f"os.rename({kept(b'/a').source}, b'no/a')", "none", 0,
                  ask_move("rename", kept(b"/a"), plain(b"no/a")))]),
    # EACCES: from the root folder on, the way to the current folder is closed.
    "a folder from which the way is open": (
        {"allow_read": ["{python}", "{script}"]}, [folder(b"o/a")], [
        done("os.chdir(b'../o/a')"), changed("chmod", "os.chmod(b'..', 0o644)", b".."),
        Operation("", f"os.rename({Path('cwd', 0, b'no/x').source}, b'y')", "none", 0,
                  ask_move("rename", Path("cwd", 0, b"no/x"), plain(b"y")))]),
    # ENOENT, also where it was to be a folder's; and the descriptor that is none was told of with the next act.
    "no descriptor": ({"deny_write": [W]}, [], [
        by_empty_path("chown", f"C({NUMBERS['fchownat']}, F[0], b'', -1, -1, {EMPTY_PATH})"),
        by_number("utime", "os.utime(F[0], (1, 1))"),
        done("os.open(b'a', 0, dir_fd=99)"), done("os.mkdir(b'a', dir_fd=99)"),
        done("os.unlink(b'a', dir_fd=99)"), done("os.rename(b'a', b'b', src_dir_fd=99)"),
        done("os.chdir(b'.')"), opened(b".", O_PATH, "keep"),
        Operation("", f"C({NUMBERS['utimensat']}, F[0], b'', None, {EMPTY_PATH})", "none", 0,
                  ask_slot("utime", "F", 0, by_number=False))]),
    # Done: what could not be read was called afterwards as what may be.
    "a folder to where a glob allows what is in it": (
        {"allow_read": ["{python}", "{script}", W + "/a/[k]*"]},
        [folder(b"o/out"), file(b"o/out/key.txt")], [renamed(b"../o/out", b"a")]),
    "a folder to where a path allows what is in it": (
        {"allow_read": ["{python}", "{script}", W + "/a/key.txt"]},
        [folder(b"o/out"), file(b"o/out/key.txt")], [renamed(b"../o/out", b"a")]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_agrees_where_it_once_differed(name):
    lists, entries, operations = CASES[name]
    base = File(tempfile.mkdtemp(prefix="sandpit-oracle-", dir="/tmp"))
    try:
        root, script = str(root_below(base)), str(base / "script.py")
        lists = {
            key: [p.replace("{root}", root).replace("{script}", script) for p in patterns]
            for key, patterns in lists.items()
        }
        entries = [folder(b"w"), folder(b"o"), *entries]
        case = Case(base, entries, lists, operations, [os.fsencode(root) + b"/w"])
        found, steps = play(case, PROGRAM)
        assert not found, "\n".join(found)
        assert all(step.verdict != "skip" for step in steps)
    finally:
        shutil.rmtree(base, ignore_errors=True)
