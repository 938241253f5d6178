"""Operations on files: as lines of a program, and what each asks of a policy.

An operation is a name and arguments. `source` gives the expression that the program runs;
`ask` says, in the tree as it is at that moment, what rights it needs on which objects and which
event it makes. What the lookup of a path finds comes before any policy: a missing folder, too many
links, something in the way. Then comes the policy, then whatever else the kernel has to say.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from dataclasses import dataclass, field
from typing import Callable, NamedTuple

CWD = -100
O_PATH, O_TMPFILE = os.O_PATH, os.O_TMPFILE
NOREPLACE, EXCHANGE = 1, 2  # renameat2
SYMLINK_NOFOLLOW, SYMLINK_FOLLOW, EMPTY_PATH, REMOVEDIR = 0x100, 0x400, 0x1000, 0x200
NUMBERS = {"open": 2, "openat": 257, "creat": 85, "mkdir": 83, "unlinkat": 263,
           "rename": 82, "renameat2": 316, "linkat": 265, "symlinkat": 266,
           "mknodat": 259, "fchmodat2": 452, "truncate": 76, "fchownat": 260,
           "utimensat": 280}  # fmt: skip


BEFORE = {
    "fd": b"/proc/self/fd/%d/",
    "devfd": b"/dev/fd/%d/",
    "kept": b"/proc/self/fd/%d",
}


class Path(NamedTuple):
    """How a program names a path: as it is, from a descriptor, through procfs."""

    way: str  # plain, at, fd, devfd, cwd; kept: a descriptor that an earlier open kept
    slot: int  # of the descriptor, where there is one
    text: bytes

    @property
    def folder(self) -> str:
        return f"D[{self.slot}]" if self.way == "at" else str(CWD)

    @property
    def table(self) -> str:
        return "F" if self.way == "kept" else "D"

    @property
    def source(self) -> str:
        before = BEFORE.get(self.way)
        if before is not None:
            text = before + self.text.replace(b"%", b"%%")
            return f"{text!r} % {self.table}[{self.slot}]"
        return repr(b"/proc/self/cwd/" + self.text if self.way == "cwd" else self.text)

    def seen(self, names: dict) -> tuple[int, bytes]:
        """Give the descriptor and the text that the program passes; LookupError if there is no
        such descriptor."""
        if self.way in BEFORE:
            fd = names[self.table][self.slot]
            if fd < 0:
                raise LookupError(self)
            return CWD, BEFORE[self.way] % fd + self.text
        folder = names["D"][self.slot] if self.way == "at" else CWD
        return folder, (b"/proc/self/cwd/" if self.way == "cwd" else b"") + self.text


@dataclass
class Found:
    """What a path leads to."""

    error: int
    path: bytes = b""
    mode: int = 0  # of the object; 0: none
    stray: bool = False  # nor is there a folder for it
    slash: bool = False

    @property
    def folder(self) -> bool:
        return stat.S_ISDIR(self.mode)


def kernel_name(fd: int) -> bytes:
    """Give the kernel's name for an open object."""
    link = b"/proc/self/fd/%d" % fd
    name = os.readlink(link)
    if not name.endswith(b" (deleted)"):
        return name
    try:
        named = os.path.samestat(os.stat(link), os.lstat(name))
    except OSError:
        named = False
    return name if named else name[: -len(b" (deleted)")]


def look(
    folder: int, text: bytes, follow: bool, depth: int = 0, named: bool = False
) -> Found:
    """Look a path up as the kernel does, with what would come to be there; `named`: what is
    asked for is the name, whatever slash stands behind it."""
    slash = text.endswith(b"/")
    if named and slash:
        found = look(folder, text.rstrip(b"/") or b"/", False)
        found.slash = True
        return found
    at = {} if folder == CWD else {"dir_fd": folder}
    try:
        fd = os.open(text, O_PATH | (0 if follow else os.O_NOFOLLOW), **at)
    except OSError as problem:
        error = problem.errno or 0
    else:
        found = Found(0, kernel_name(fd), os.fstat(fd).st_mode, slash=slash)
        os.close(fd)
        return found
    bare = text.rstrip(b"/")
    head, name = os.path.split(bare)
    if name in (b"", b".", b".."):
        return Found(error, stray=True)
    try:
        fd = os.open(head or b".", O_PATH | os.O_DIRECTORY, **at)
    except OSError:
        return Found(error, stray=True)
    try:
        if follow and error == errno.ENOENT and depth < 40:
            try:
                target = os.readlink(name, dir_fd=fd)
            except OSError:
                pass
            else:
                return look(fd, target, follow, depth + 1)
        return Found(error, os.path.join(kernel_name(fd), name), slash=slash)
    finally:
        os.close(fd)


@dataclass
class Ask:
    """What an operation needs: rights in the order in which they are looked at, unless it fails
    before; and the event that it makes."""

    event: dict | None = None
    fails: bool = False  # at the lookup: the policy is not asked
    needs: list[tuple[str, str, bytes]] = field(default_factory=list)  # right, op, path
    move: tuple[bytes, bytes] | None = None
    swap: tuple[bytes, bytes] | None = None
    skip: bool = False  # it would wait
    changes: bool = False  # opens that can make or change a file come to the kernel's layer


@dataclass(frozen=True)
class Operation:
    """One line of a program."""

    name: str
    source: str
    how: str  # what becomes of its value: none, fd, keep, list
    slot: int
    ask: Callable[[dict], Ask] = field(repr=False, compare=False)
    native: bool = False  # no audit event announces it


def event(kind: str, op: str | None, found: Found, to: Found | None = None) -> dict:
    """Give the members that an event has to have; a stray path is not compared."""
    members: dict = {"kind": kind, "op": op}
    members["path"] = None if found.stray or not found.path else found.path
    if to is not None:
        members["to"] = None if to.stray or not to.path else to.path
    return members


ACCESS = {os.O_RDONLY: "read", os.O_WRONLY: "write", os.O_RDWR: "read-write"}


def ask_open(path: Path, flags: int) -> Callable[[dict], Ask]:
    def ask(names: dict) -> Ask:
        exclusive = flags & (os.O_CREAT | os.O_EXCL) == os.O_CREAT | os.O_EXCL
        unnamed = flags & O_TMPFILE == O_TMPFILE
        folder, text = path.seen(names)
        found = look(folder, text, not (flags & os.O_NOFOLLOW or exclusive))
        access = flags & os.O_ACCMODE
        asked = Ask(event("open", ACCESS[access], found))
        asked.changes = access != os.O_RDONLY or bool(
            flags & (os.O_CREAT | os.O_TRUNC | O_TMPFILE & ~os.O_DIRECTORY)
        )
        writes = access != os.O_RDONLY or bool(flags & os.O_TRUNC)
        if flags & O_PATH:
            asked.event = None
            asked.fails = True  # nothing is judged
            return asked
        if unnamed:
            asked.fails = found.error != 0
            asked.needs = [("write", "create", found.path + b"/#")]
            return asked
        creates = bool(flags & os.O_CREAT)
        if creates and (flags & os.O_DIRECTORY or (text.endswith(b"/") and not found.stray)):
            asked.fails = True
            return asked
        makes = found.error == errno.ENOENT and creates and not found.stray
        if makes:
            asked.needs = [("write", "create", found.path)]
            return asked
        asked.fails = found.error != 0 or exclusive
        if writes:
            asked.needs.append(("write", "write", found.path))
        if access != os.O_WRONLY:
            asked.needs.append(("read", "read", found.path))
        asked.skip = stat.S_ISFIFO(found.mode) and not flags & os.O_NONBLOCK
        return asked

    return ask


def ask_make(op: str, path: Path) -> Callable[[dict], Ask]:
    def ask(names: dict) -> Ask:
        folder, text = path.seen(names)
        found = look(folder, text, False, named=True)
        fails = found.error != errno.ENOENT or found.stray
        fails |= found.slash and op != "mkdir"
        told = {"kind": "bind", "op": "bind"} if op == "bind" else event("file", op, found)
        return Ask(told, fails, [("write", op, found.path)], changes=True)

    return ask


def ask_change(op: str, path: Path, follow: bool) -> Callable[[dict], Ask]:
    def ask(names: dict) -> Ask:
        folder, text = path.seen(names)
        named = op in ("remove", "rmdir")
        found = look(folder, text, follow, named=named)
        fails = found.error != 0 or (named and found.slash and not found.folder)
        fails |= named and os.path.basename(text.rstrip(b"/")) in (b".", b"..", b"")
        return Ask(event("file", op, found), fails, [("write", op, found.path)])

    return ask


def ask_slot(
    op: str, table: str, slot: int, by_number: bool = True
) -> Callable[[dict], Ask]:
    """By its number, one opened with O_PATH cannot be changed; by an empty path it can."""

    def ask(names: dict) -> Ask:
        try:
            path = kernel_name(names[table][slot])
            bare = fcntl.fcntl(names[table][slot], fcntl.F_GETFL) & O_PATH
        except OSError:
            return Ask(None, True)
        told = event("file", op, Found(0, path))
        return Ask(told, by_number and bool(bare), [("write", op, path)])

    return ask


def ask_move(
    op: str, path: Path, to: Path, flags: int = 0, follow: bool = False
) -> Callable[[dict], Ask]:
    def ask(names: dict) -> Ask:
        source = look(*path.seen(names), follow, named=op == "rename")
        target = look(*to.seen(names), False, named=True)
        there = target.error == 0
        dots = {os.path.basename(one.text.rstrip(b"/")) for one in (path, to)}
        fails = source.error != 0 or (target.error not in (0, errno.ENOENT))
        fails |= target.error == errno.ENOENT and target.stray
        fails |= there and (op == "link" or flags & NOREPLACE != 0)
        fails |= not there and flags & EXCHANGE != 0
        if op == "rename":
            fails |= bool(dots & {b".", b"..", b""})
        if op == "link":
            fails |= not there and target.slash
        elif not source.folder:
            fails |= source.slash or (target.slash and not flags & EXCHANGE)
        fails |= bool(flags & EXCHANGE) and target.slash and not target.folder
        asked = Ask(event("file", op, source, target), bool(fails))
        asked.needs = [("write", op, source.path), ("write", op, target.path)]
        asked.move = (source.path, target.path)
        asked.swap = (target.path, source.path) if flags & EXCHANGE else None
        return asked

    return ask


def nothing_asked(names: dict) -> Ask:
    return Ask(None, True)
