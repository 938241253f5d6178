"""Folders that the guest wrote to, handled as what they are: hostile.

A guest can leave symbolic links, pipes, folders nested thousands deep and modes that
shut the owner out. Nothing here follows a link, waits on a pipe or recurses.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
import threading
import weakref
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Union

if TYPE_CHECKING:
    from collections.abc import Mapping

Content = Union[str, bytes]

_O_DIRECTORY = getattr(os, "O_DIRECTORY", 0)
_O_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_O_NONBLOCK = getattr(os, "O_NONBLOCK", 0)
_O_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_FOLDER = os.O_RDONLY | _O_DIRECTORY | _O_NOFOLLOW | _O_CLOEXEC


class PrivateFolder:
    """A fresh folder that only this user may enter, removed with the object."""

    def __init__(self, purpose: str) -> None:
        """Make it on this process's shelf."""
        shelf = _take_shelf()
        try:
            self.path = Path(tempfile.mkdtemp(prefix=f"{purpose}-", dir=shelf.path))
        except OSError:
            shelf.give_back()
            raise
        self._remove = weakref.finalize(self, _remove_own, str(self.path), shelf)

    def remove(self) -> None:
        """Remove it now; later calls do nothing."""
        self._remove()


class _Shelf:
    """The folder that a process keeps its private folders in, locked while it has any.

    The lock tells `sandpit gc` that somebody uses it; a crash drops the lock.
    """

    def __init__(self) -> None:
        """Make it in the system's folder for temporary files."""
        self.owner = os.getpid()
        self.users = 0
        self.closed = False
        self.path, self._lock = _make_locked()

    def give_back(self) -> None:
        """Say that a folder on it is gone; the last one takes the shelf along."""
        with _shelves:
            self.users -= 1
            if self.users > 0 or self.closed:
                return
            self.closed = True
        with contextlib.suppress(OSError):
            os.rmdir(self.path)
        os.close(self._lock)


_shelves = threading.RLock()  # a finalizer may come while the same thread holds it
_shelf: _Shelf | None = None


def _take_shelf() -> _Shelf:
    global _shelf
    with _shelves:
        while True:
            if _shelf is None or _shelf.closed or _shelf.owner != os.getpid():
                _shelf = _Shelf()
            _shelf.users += 1
            if not _shelf.closed:
                return _shelf


def _renew_lock() -> None:
    """Give a forked child a lock that no thread of its parent holds."""
    global _shelves
    _shelves = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def _make_locked() -> tuple[str, int]:
    """Make a folder and lock it, before a `sandpit gc` takes it for a leftover."""
    import fcntl  # not on Windows, where nothing runs

    while True:
        path = tempfile.mkdtemp(prefix="sandpit-api-")
        with contextlib.suppress(FileNotFoundError):
            lock = os.open(path, _FOLDER)
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                taken = False
            except OSError as error:
                taken = error.errno == errno.EWOULDBLOCK
            if not taken and os.path.exists(path):
                return path, lock
            os.close(lock)


class WorkFolder:
    """The working folder of a run, read from after the guest has had its way."""

    def __init__(self, path: str) -> None:
        """Remember which folder it is, so that another put in its place is noticed."""
        self.path = path
        status = os.stat(path)
        self._identity = (status.st_dev, status.st_ino)

    def read(self, name: str) -> bytes:
        """Give the bytes of a regular file inside the folder; follows no link."""
        *folders, last = relative_parts(name)
        at = os.open(self.path, os.O_RDONLY | _O_DIRECTORY | _O_CLOEXEC)
        try:
            status = os.fstat(at)
            if (status.st_dev, status.st_ino) != self._identity:
                raise FileNotFoundError(
                    errno.ENOENT, "the run's folder was replaced", self.path
                )
            for folder in folders:
                below = os.open(folder, _FOLDER, dir_fd=at)
                os.close(at)
                at = below
            flags = os.O_RDONLY | _O_NOFOLLOW | _O_NONBLOCK | _O_CLOEXEC
            file = os.open(last, flags, dir_fd=at)
        except OSError as error:
            # The name as it was asked for says more than a part of it.
            error.filename = name
            raise
        finally:
            os.close(at)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise OSError(errno.EINVAL, "not a regular file", name)
        with open(file, "rb") as stream:
            return stream.read()


def _remove_own(path: str, shelf: _Shelf) -> None:
    """Remove the folder, unless this is a fork of the process that made it."""
    if os.getpid() == shelf.owner:
        remove_tree(path)
        shelf.give_back()


def relative_parts(name: str) -> tuple[str, ...]:
    """Split the name of a file inside a folder; ValueError if it could lead outside."""
    parts = PurePosixPath(name).parts
    if not parts or parts[0] == "/" or ".." in parts or "\0" in name:
        raise ValueError(f"not the name of a file inside the run's folder: {name!r}")
    return parts


def put_files(folder: str, files: Mapping[str, Content]) -> None:
    """Write files by name into a folder, making the folders that the names mention."""
    for name, content in files.items():
        path = os.path.join(folder, *relative_parts(name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as stream:
            stream.write(encode(content))


def encode(content: str | bytes | bytearray | memoryview) -> bytes:
    """Give text as UTF-8, with bytes that came in as surrogates as they were."""
    if isinstance(content, str):
        return content.encode("utf-8", "surrogateescape")
    return bytes(content)


def put_program(folder: str, code: bytes) -> str:
    """Write program text under a name that is not taken, and give the name."""
    number = 1
    while True:
        name = "main.py" if number == 1 else f"main_{number}.py"
        try:
            with open(os.path.join(folder, name), "xb") as stream:
                stream.write(code)
        except FileExistsError:
            number += 1
        else:
            return name


def remove_tree(path: str) -> None:
    """Remove a folder and all that is in it, whatever the guest made of it.

    Folders inside are moved up to the top before they are emptied, so that neither
    depth nor the length of a path matters. What cannot be removed (a file that root
    made immutable, say) is left behind without a word: this runs when an object dies.
    """
    try:
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            return
        os.chmod(path, 0o700)
        top = os.open(path, _FOLDER)
    except OSError:
        return
    try:
        moved = 0
        while True:
            names = os.listdir(top)
            for name in names:
                moved = _remove_entry(top, name, moved)
            # Each pass but the last removes at least one of the entries it found.
            if set(names) <= set(os.listdir(top)):
                break
    finally:
        os.close(top)
    with contextlib.suppress(OSError):
        os.rmdir(path)


def _remove_entry(top: int, name: str, moved: int) -> int:
    """Remove one entry of the top folder; give the count of folders moved so far."""
    try:
        if not stat.S_ISDIR(os.stat(name, dir_fd=top, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=top)
            return moved
        os.chmod(name, 0o700, dir_fd=top)
        folder = os.open(name, _FOLDER, dir_fd=top)
    except OSError:
        return moved
    try:
        for inner in os.listdir(folder):
            try:
                if stat.S_ISDIR(
                    os.stat(inner, dir_fd=folder, follow_symlinks=False).st_mode
                ):
                    moved += 1
                    os.chmod(inner, 0o700, dir_fd=folder)
                    target = f".sandpit-moved-{moved}"
                    os.rename(inner, target, src_dir_fd=folder, dst_dir_fd=top)
                else:
                    os.unlink(inner, dir_fd=folder)
            except OSError:
                continue
    finally:
        os.close(folder)
    with contextlib.suppress(OSError):
        os.rmdir(name, dir_fd=top)
    return moved
