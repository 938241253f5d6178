"""Random trees of files, made, and told as data."""

from __future__ import annotations

import os
import random
import stat
from dataclasses import dataclass

OLD = 500  # the time that everything in a new tree has; what is changed gets another

NAMES = [b"a", b"b", b"c", b"key.txt", b"data.txt", b".env", b"a b", b"x'y", b"...",
         b"\xc3\xbc", b"n\xff", b"out", b"a (deleted)", b"log.txt", b"deep", b"~", b"-n"]  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """One thing in a tree: kind, path below the root, and what it holds or leads to."""

    kind: str  # folder, file, link, hard, fifo
    path: bytes
    content: bytes = b""


def random_tree(rng: random.Random, root: bytes) -> list[Entry]:
    """Two folders, the one to work in and another one, with things in them."""
    entries = [Entry("folder", b"w"), Entry("folder", b"o")]
    taken = {b"w", b"o"}
    holders = [b"w", b"o"]
    files: list[bytes] = []
    for _ in range(rng.randint(10, 28)):
        path = rng.choice(holders) + b"/" + rng.choice(NAMES)
        if path in taken or path.count(b"/") > 5:
            continue
        taken.add(path)
        kind = rng.choices(
            ["folder", "file", "link", "hard", "fifo"], [30, 40, 25, 8, 4]
        )[0]
        if kind == "hard" and not files:
            kind = "file"
        content = b""
        if kind == "folder":
            holders.append(path)
        elif kind == "file":
            content = b"content of " + path + b"\n"
            files.append(path)
        elif kind == "hard":
            content = rng.choice(files)
        elif kind == "link":
            content = link_target(rng, root, path, sorted(taken))
        entries.append(Entry(kind, path, content))
    return entries


def link_target(
    rng: random.Random, root: bytes, path: bytes, taken: list[bytes]
) -> bytes:
    """Something that is there, or not, or the link itself; as a relative or absolute path."""
    target = rng.choice(taken)
    if rng.random() < 0.2:
        target = rng.choice([b"w", b"o"]) + b"/" + rng.choice(NAMES)
    if rng.random() < 0.5:
        return root + b"/" + target
    return os.path.relpath(root + b"/" + target, os.path.dirname(root + b"/" + path))


def build(root: bytes, entries: list[Entry]) -> None:
    """Make the tree."""
    os.mkdir(root, 0o755)
    for entry in entries:
        path = root + b"/" + entry.path
        if entry.kind == "folder":
            os.mkdir(path, 0o755)
        elif entry.kind == "file":
            with open(path, "wb") as stream:
                stream.write(entry.content)
            os.chmod(path, 0o644)
        elif entry.kind == "link":
            os.symlink(entry.content, path)
        elif entry.kind == "hard":
            os.link(root + b"/" + entry.content, path)
        else:
            os.mkfifo(path, 0o644)
    for folder, names, others in os.walk(root):
        for name in [*names, *others]:
            os.utime(os.path.join(folder, name), (OLD, OLD), follow_symlinks=False)
    os.utime(root, (OLD, OLD))


def open_folders(root: bytes) -> None:
    """Let the caller into every folder again, so that the tree can be removed."""
    for folder, names, _ in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                os.chmod(path, 0o755)


def told(root: bytes) -> dict[str, tuple]:
    """Everything that can be seen of a tree, by path."""
    found: dict[str, tuple] = {}
    first: dict[int, str] = {}
    paths = [root]
    for folder, names, others in os.walk(root):
        paths += [os.path.join(folder, name) for name in [*names, *others]]
    for path in sorted(paths):
        name = repr(path[len(root) :])
        try:
            st = os.lstat(path)
        except PermissionError:
            found[name] = ("in a closed folder",)
            continue
        content: object = ""
        if stat.S_ISLNK(st.st_mode):
            content = os.readlink(path)
        elif stat.S_ISREG(st.st_mode):
            try:
                with open(path, "rb") as stream:
                    content = stream.read(4096)
            except PermissionError:
                content = "closed"
        attributes = {}
        if not stat.S_ISLNK(st.st_mode):
            attributes = {a: os.getxattr(path, a) for a in os.listxattr(path)}
        changed = st.st_mtime if st.st_mtime < 1e6 else "lately"
        same = name if stat.S_ISDIR(st.st_mode) else first.setdefault(st.st_ino, name)
        size = 0 if stat.S_ISDIR(st.st_mode) else st.st_size
        found[name] = (oct(st.st_mode), st.st_uid, st.st_gid, size, content,
                       attributes, changed, same)  # fmt: skip
    return found
