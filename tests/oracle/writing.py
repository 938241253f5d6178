"""Random programs: many operations, a line each, on one random tree."""

from __future__ import annotations

import os
import random
import stat

from operations import (
    EMPTY_PATH,
    EXCHANGE,
    NOREPLACE,
    NUMBERS,
    O_PATH,
    O_TMPFILE,
    SYMLINK_FOLLOW,
    SYMLINK_NOFOLLOW,
    Operation,
    Path,
    ask_change,
    ask_make,
    ask_move,
    ask_open,
    ask_slot,
    nothing_asked,
)  # fmt: skip
from trees import NAMES, Entry

HEAD = """\
import ctypes, json, os, socket, stat, struct, sys
C = ctypes.CDLL(None, use_errno=True).syscall
C.restype = ctypes.c_long
def checked(value, function, arguments):
    if value == -1:
        raise OSError(ctypes.get_errno(), "raw")
    return value
C.errcheck = checked
def bound(path):
    with socket.socket(socket.AF_UNIX) as one:
        return one, path
FLAGS = os.O_ACCMODE | os.O_APPEND | os.O_NONBLOCK | os.O_PATH
def finish(i, how, slot, fd):
    if how == "list":
        return sorted(name.hex() for name in fd)
    if how == "none":
        return None
    import fcntl
    flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    st = os.fstat(fd)
    told = [flags & FLAGS, fcntl.fcntl(fd, fcntl.F_GETFD), oct(st.st_mode), st.st_nlink]
    if stat.S_ISREG(st.st_mode) and not flags & os.O_PATH:
        if flags & os.O_ACCMODE != os.O_WRONLY:
            told.append(os.read(fd, 40).hex())
        if flags & os.O_ACCMODE != os.O_RDONLY:
            os.write(fd, b"<%d>" % i)
    if how == "keep":
        if F[slot] >= 0:
            os.close(F[slot])
        F[slot] = fd
    else:
        os.close(fd)
    return told
def attempt(i, times=1):
    for _ in range(times):
        try:
            result = ["done", OPERATIONS[i]()]
        except OSError as problem:
            result = ["error", problem.errno]
    if result[0] == "done":
        result[1] = finish(i, *HOW[i], result[1])
    return result
os.umask(0o022)
F = [-1] * 4
D = [os.open(name, os.O_PATH | os.O_DIRECTORY) for name in FOLDERS]
"""
TAIL = """\
if __name__ == "__main__":
    print(json.dumps([attempt(i, TIMES.get(i, 1)) for i in range(len(OPERATIONS))]))
"""


def script(
    operations: list[Operation], folders: list[bytes], times: dict[int, int]
) -> tuple[str, int]:
    """Give a program, and the line of its first operation."""
    head = f"FOLDERS = {folders!r}\nTIMES = {times!r}\n{HEAD}"
    head += f"HOW = {[(one.how, one.slot) for one in operations]!r}\nOPERATIONS = [\n"
    body = "".join(f"lambda: {one.source},\n" for one in operations)
    return head + body + "]\n" + TAIL, head.count("\n") + 1


class Generator:
    """Makes operations about the things in a tree, and about what they make."""

    def __init__(self, rng: random.Random, root: bytes, entries: list[Entry]) -> None:
        self.rng, self.root = rng, root
        self.paths = [entry.path for entry in entries]
        self.holders = [one.path for one in entries if one.kind in ("folder", "link")]
        self.folders = [root + b"/" + one.path for one in entries if one.kind == "folder"]
        self.folders = self.folders[:6]

    # ---- paths

    def place(self) -> bytes:
        """Choose a path below the root: of something, or of something new."""
        rng = self.rng
        if rng.random() < 0.7:
            return rng.choice(self.paths)
        path = rng.choice(self.holders) + b"/" + rng.choice(NAMES)
        if rng.random() < 0.5:
            self.paths.append(path)
        return path

    def path(self) -> Path:
        """Name a path in one of the many ways."""
        rng = self.rng
        target = self.root + b"/" + self.place()
        if rng.random() < 0.01:  # none, too long a name, too long a path
            return Path("plain", 0, rng.choice([b"", b"n" * 256, b"a/" * 150 + b"a"]))
        if rng.random() < 0.04:
            behind = rng.choices([b"", b"/", b"/" + rng.choice(NAMES)], [6, 1, 2])[0]
            return Path("kept", rng.randrange(4), behind)
        chance = rng.random()
        if chance < 0.35:
            return Path("plain", 0, self.bent(target))
        if chance < 0.6:
            return Path("plain", 0, self.bent(os.path.relpath(target, self.root + b"/w")))
        if chance < 0.7:
            text = os.path.relpath(target, self.root + b"/w")
            return Path("cwd", 0, self.bent(text))
        slot = rng.randrange(len(self.folders))
        text = os.path.relpath(target, self.folders[slot])
        if text.count(b"..") > 3:
            text = rng.choice(NAMES)
        way = rng.choices(["at", "fd", "devfd"], [6, 2, 1])[0]
        return Path(way, slot, self.bent(text))

    def bent(self, text: bytes) -> bytes:
        """Write a path in a way that means the same, or fails."""
        chance = self.rng.random()
        if chance < 0.75:
            return text
        head, name = os.path.split(text)
        if chance < 0.81:
            return text + b"/"
        if chance < 0.87:
            return os.path.join(head, b".", name)
        if chance < 0.92 and head:
            return head + b"//" + name
        if chance < 0.97:
            return os.path.join(head, self.rng.choice(NAMES), b"..", name)
        return text + b"/."

    # ---- operations

    def operation(self) -> Operation:
        """Make one operation."""
        makers = [
            (self.open, 30), (self.listing, 5), (self.mkdir, 6), (self.remove, 9),
            (self.rename, 12), (self.link, 6), (self.symlink, 5), (self.node, 4),
            (self.truncate, 4), (self.mode, 5), (self.owner, 3), (self.times, 5),
            (self.attribute, 4), (self.keep, 5), (self.by_slot, 6), (self.chdir, 2),
            (self.socket, 2), (self.by_empty_path, 3),
        ]  # fmt: skip
        chosen = self.rng.choices(*zip(*makers))[0]
        return chosen()

    def at(self, path: Path, word: str = "dir_fd") -> str:
        return f", {word}=D[{path.slot}]" if path.way == "at" else ""

    def open_flags(self) -> int:
        rng = self.rng
        flags = rng.choice([os.O_RDONLY, os.O_RDONLY, os.O_WRONLY, os.O_RDWR])
        for flag, chance in (
            (os.O_CREAT, 0.35), (os.O_EXCL, 0.1), (os.O_TRUNC, 0.15), (os.O_APPEND, 0.1),
            (os.O_NONBLOCK, 0.4), (os.O_NOFOLLOW, 0.12), (os.O_DIRECTORY, 0.08),
            (os.O_CLOEXEC, 0.5), (O_PATH, 0.04),
        ):  # fmt: skip
            if rng.random() < chance:
                flags |= flag
        if rng.random() < 0.04:
            flags = O_TMPFILE | rng.choice([os.O_WRONLY, os.O_RDWR])
        if not flags & os.O_CREAT:
            flags &= ~os.O_EXCL  # it means nothing then
        if flags & O_PATH:
            flags &= O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY
        return flags

    def open(self, how: str = "fd") -> Operation:
        rng, path, flags = self.rng, self.path(), self.open_flags()
        mode = rng.choice([0o644, 0o600, 0o666])
        slot = rng.randrange(4)
        chance = rng.random()
        if chance < 0.3:
            source = f'C({NUMBERS["openat"]}, {path.folder}, {path.source}, {flags}, {mode})'
        elif chance < 0.4 and path.way != "at":
            source = f'C({NUMBERS["open"]}, {path.source}, {flags}, {mode})'
        elif chance < 0.45 and path.way != "at":
            flags = os.O_CREAT | os.O_WRONLY | os.O_TRUNC
            source = f'C({NUMBERS["creat"]}, {path.source}, {mode})'
        else:
            source = f"os.open({path.source}, {flags}, {mode}{self.at(path)})"
            flags |= os.O_CLOEXEC
        return Operation("open", source, how, slot, ask_open(path, flags),
                         native=source.startswith("C("))

    def keep(self) -> Operation:
        return self.open("keep")

    def listing(self) -> Operation:
        path = self.path()._replace()
        if path.way == "at":
            path = Path("fd", path.slot, path.text)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK
        return Operation("listdir", f"os.listdir({path.source})", "list", 0,
                         ask_open(path, flags), native=True)  # fmt: skip

    def mkdir(self) -> Operation:
        path = self.path()
        source = f"os.mkdir({path.source}, 0o755{self.at(path)})"
        return Operation("mkdir", source, "none", 0, ask_make("mkdir", path))

    def remove(self) -> Operation:
        path = self.path()
        if self.rng.random() < 0.4:
            source = f"os.rmdir({path.source}{self.at(path)})"
            return Operation("rmdir", source, "none", 0, ask_change("rmdir", path, False))
        source = f"os.unlink({path.source}{self.at(path)})"
        return Operation("unlink", source, "none", 0, ask_change("remove", path, False))

    def rename(self) -> Operation:
        path, to = self.path(), self.path()
        flags = self.rng.choices([0, NOREPLACE, EXCHANGE], [70, 10, 20])[0]
        ask = ask_move("rename", path, to, flags)
        source = (
            f"os.rename({path.source}, {to.source}"
            f"{self.at(path, 'src_dir_fd')}{self.at(to, 'dst_dir_fd')})"
        )
        if flags != 0:
            source = (
                f'C({NUMBERS["renameat2"]}, {path.folder}, {path.source}, '
                f"{to.folder}, {to.source}, {flags})"
            )
        return Operation("rename", source, "none", 0, ask)

    def link(self) -> Operation:
        path, to = self.path(), self.path()
        follow = self.rng.random() < 0.3
        source = (
            f'C({NUMBERS["linkat"]}, {path.folder}, {path.source}, {to.folder}, '
            f"{to.source}, {SYMLINK_FOLLOW if follow else 0})"
        )
        return Operation("link", source, "none", 0,
                         ask_move("link", path, to, follow=follow))  # fmt: skip

    def symlink(self) -> Operation:
        path = self.path()
        target = self.place()
        if self.rng.random() < 0.5:
            target = self.root + b"/" + target
        else:
            target = os.path.relpath(target, os.path.dirname(self.place()) or b".")
        source = f"os.symlink({target!r}, {path.source}{self.at(path)})"
        return Operation("symlink", source, "none", 0, ask_make("symlink", path))

    def node(self) -> Operation:
        path = self.path()
        kind = self.rng.choice([stat.S_IFIFO, stat.S_IFREG, stat.S_IFSOCK])
        source = f"os.mknod({path.source}, {kind | 0o644}{self.at(path)})"
        return Operation("mknod", source, "none", 0, ask_make("mknod", path))

    def socket(self) -> Operation:
        path = self.path()
        if path.way in ("at", "kept") or len(path.text) > 90:
            path = Path("plain", 0, self.rng.choice(NAMES))
        source = f"socket.socket(socket.AF_UNIX).bind({path.source})"
        return Operation("bind", source, "none", 0, ask_make("bind", path))

    def truncate(self) -> Operation:
        path = self.path()
        size = self.rng.choice([0, 3, 100])
        source = (
            f'C({NUMBERS["truncate"]}, '
            f"{(path if path.way != 'at' else Path('fd', path.slot, path.text)).source}, {size})"
        )
        return Operation("truncate", source, "none", 0,
                         ask_change("truncate", path, True))  # fmt: skip

    def mode(self) -> Operation:
        path = self.path()
        mode = self.rng.choice([0o644, 0o755, 0o700, 0o777, 0o1755])
        if self.rng.random() < 0.15:
            source = (
                f'C({NUMBERS["fchmodat2"]}, {path.folder}, {path.source}, {mode}, '
                f"{SYMLINK_NOFOLLOW})"
            )
            return Operation("lchmod", source, "none", 0,
                             ask_change("chmod", path, False))  # fmt: skip
        source = f"os.chmod({path.source}, {mode}{self.at(path)})"
        return Operation("chmod", source, "none", 0, ask_change("chmod", path, True))

    def nofollow(self) -> tuple[bool, str]:
        follow = self.rng.random() < 0.7
        return follow, "" if follow else ", follow_symlinks=False"

    def owner(self) -> Operation:
        path = self.path()
        follow, word = self.nofollow()
        who = self.rng.choice(["-1, -1", "os.getuid(), os.getgid()", "12345, -1"])
        source = f"os.chown({path.source}, {who}{self.at(path)}{word})"
        return Operation("chown", source, "none", 0, ask_change("chown", path, follow))

    def times(self) -> Operation:
        path = self.path()
        follow, word = self.nofollow()
        when = self.rng.randrange(1000, 2000)
        source = f"os.utime({path.source}, ({when}, {when}){self.at(path)}{word})"
        return Operation("utime", source, "none", 0, ask_change("utime", path, follow))

    def attribute(self) -> Operation:
        path = self.path()
        if path.way == "at":
            path = Path("fd", path.slot, path.text)
        follow, word = self.nofollow()
        name = self.rng.choice([b"user.a", b"user.b"])
        if self.rng.random() < 0.6:
            value = self.rng.choice([b"", b"1", b"value"])
            source = f"os.setxattr({path.source}, {name!r}, {value!r}{word})"
            return Operation("setxattr", source, "none", 0,
                             ask_change("setxattr", path, follow))  # fmt: skip
        source = f"os.removexattr({path.source}, {name!r}{word})"
        return Operation("removexattr", source, "none", 0,
                         ask_change("removexattr", path, follow))  # fmt: skip

    def by_slot(self) -> Operation:
        slot = self.rng.randrange(4)
        when = self.rng.randrange(2000, 3000)
        op, source = self.rng.choice(
            [
                ("chmod", f"os.fchmod(F[{slot}], 0o740)"),
                ("chown", f"os.fchown(F[{slot}], -1, -1)"),
                ("utime", f"os.utime(F[{slot}], ({when}, {when}))"),
                ("setxattr", f"os.setxattr(F[{slot}], b'user.f', b'f')"),
                ("removexattr", f"os.removexattr(F[{slot}], b'user.f')"),
                ("", f"os.ftruncate(F[{slot}], 2)"),
            ]
        )
        ask = ask_slot(op, "F", slot) if op else nothing_asked
        return Operation("f" + (op or "truncate"), source, "none", slot, ask)

    def by_empty_path(self) -> Operation:
        """Change what a descriptor is open on, whatever it was opened for."""
        table = self.rng.choice("DF")
        slot = self.rng.randrange(len(self.folders) if table == "D" else 4)
        when = self.rng.randrange(3000, 4000)
        op, call, words = self.rng.choice(
            [
                ("chmod", "fchmodat2", "0o751"),
                ("chown", "fchownat", "-1, -1"),
                ("utime", "utimensat", f"struct.pack('4q', {when}, 0, {when}, 0)"),
            ]
        )
        source = f"C({NUMBERS[call]}, {table}[{slot}], b'', {words}, {EMPTY_PATH})"
        return Operation("e" + op, source, "none", slot,
                         ask_slot(op, table, slot, by_number=False))  # fmt: skip

    def chdir(self) -> Operation:
        slot = self.rng.randrange(len(self.folders))
        chance = self.rng.random()
        if chance < 0.2:
            path = self.path()
            if path.way == "at":
                path = Path("fd", path.slot, path.text)
            return Operation("chdir", f"os.chdir({path.source})", "none", 0,
                             nothing_asked)  # fmt: skip
        if chance < 0.7:
            return Operation("chdir", f"os.chdir({self.root + b'/w'!r})", "none", 0,
                             nothing_asked)  # fmt: skip
        return Operation("chdir", f"os.fchdir(D[{slot}])", "none", 0, nothing_asked)
