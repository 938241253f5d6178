"""One thing to run, with the folders and files that belong to it."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

from ._errors import NotFoundError, SandpitError
from ._folder import (
    Content,
    PrivateFolder,
    WorkFolder,
    encode,
    put_files,
    put_program,
    relative_parts,
)
from ._result import Artifacts, Result, make_result
from ._spec import build_spec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._channel import Answer
    from ._spec import JSON, Options

_TRACE_SUFFIX = ".sptrace"


class Job:
    """What is run, where, and what is to be cleaned up after it."""

    def __init__(
        self,
        kind: str,
        program: str,
        options: Options,
        *,
        code: bytes | None,
        files: Mapping[str, Content] | None,
    ) -> None:
        """Make the folders and write the files; undone when the job is dropped."""
        self._lock = threading.Lock()
        self._outcome: Result | SandpitError | None = None
        self._folders: list[PrivateFolder] = []
        self._placed: _PlacedFile | None = None
        private = options.cwd is None and (code is not None or files is not None)
        if private:
            folder = str(self._new_folder("run").path)
            if kind == "script" and code is None and not _is_among(program, files):
                program = os.path.abspath(program)
        else:
            folder = options.cwd or os.curdir
        if files is not None:
            put_files(folder, files)
        if code is not None:
            program = put_program(folder, code)
            if not private:
                self._placed = _PlacedFile(
                    os.path.join(os.path.abspath(folder), program)
                )
        try:
            self._work = WorkFolder(os.path.abspath(folder))
        except FileNotFoundError:
            raise NotFoundError(f"there is no working folder {folder!r}") from None
        self._trace = options.trace
        if options.trace is None and options.keep_trace:
            name = _stem(kind, program) + _TRACE_SUFFIX
            self._trace = str(self._new_folder("trace").path / name)
        self.program = program
        self.spec: dict[str, JSON] = build_spec(
            program,
            kind,
            options,
            cwd=None if folder == os.curdir else folder,
            trace=self._trace,
        )

    def finish(self, answer: Answer) -> Result | SandpitError:
        """Turn the native program's answer into the outcome, and clean up."""
        with self._lock:
            if self._outcome is None:
                self._outcome = self._conclude(answer)
            return self._outcome

    def _conclude(self, answer: Answer) -> Result | SandpitError:
        if self._placed is not None:
            self._placed.remove()
        if isinstance(answer, SandpitError):
            return self._fail(answer)
        trace = None
        if self._trace is not None and answer.get("trace") is not None:
            trace = Path(self._trace)
        artifacts = Artifacts(trace, tuple(self._folders), self._work)
        try:
            return make_result(answer, artifacts)
        except SandpitError as error:
            return self._fail(error)

    def _fail(self, error: SandpitError) -> SandpitError:
        for folder in self._folders:
            folder.remove()
        return error

    def _new_folder(self, purpose: str) -> PrivateFolder:
        folder = PrivateFolder(purpose)
        self._folders.append(folder)
        return folder


class _PlacedFile:
    """The program's text in a folder of the caller's, removed after the run."""

    def __init__(self, path: str) -> None:
        status = os.stat(path)
        identity = (status.st_dev, status.st_ino)
        self._remove = weakref.finalize(self, _unlink, path, identity, os.getpid())

    def remove(self) -> None:
        self._remove()


def _unlink(path: str, identity: tuple[int, int], owner: int) -> None:
    """Remove a file, unless another one was put in its place."""
    with contextlib.suppress(OSError):
        status = os.lstat(path)
        if os.getpid() == owner and (status.st_dev, status.st_ino) == identity:
            os.unlink(path)


def _is_among(program: str, files: Mapping[str, Content] | None) -> bool:
    """Say whether a script is one of the files that are put in the folder."""
    if files is None or os.path.isabs(program):
        return False
    wanted = relative_parts(program) if ".." not in Path(program).parts else ()
    return any(relative_parts(name) == wanted for name in files)


def _stem(kind: str, program: str) -> str:
    """Give the name of a trace: that of the script, or of the module."""
    return program if kind == "module" else Path(program).stem or "sandpit"


def encode_code(code: object) -> bytes:
    """Give program text as the bytes of a source file."""
    if not isinstance(code, (str, bytes)):
        raise TypeError(f"code must be a str or bytes, not {type(code).__name__}")
    return encode(code)


def check_files(files: object) -> None:
    """Check the `files` option: names inside a folder, mapped to text or bytes."""
    if files is None:
        return
    if not hasattr(files, "items"):
        raise TypeError(f"files must map names to contents, not {type(files).__name__}")
    for name, content in files.items():
        if not isinstance(name, str):
            raise TypeError(f"files must have str names, not {name!r}")
        relative_parts(name)
        if not isinstance(content, (str, bytes)):
            raise TypeError(
                f"files[{name!r}] must be str or bytes, not {type(content).__name__}"
            )
