"""What a run was: its outcome, what it tried, what it left."""

from __future__ import annotations

import base64
import copy
import json
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from ._errors import InternalError, TraceError
from ._folder import PrivateFolder, WorkFolder
from ._trace import Trace, load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._grants import GrantKind
    from ._spec import StrPath

Status = Literal[
    "ok",
    "error",
    "signal",
    "timeout",
    "cpu-limit",
    "memory-limit",
    "output-limit",
    "disk-limit",
    "process-limit",
    "file-limit",
    "stopped",
    "cancelled",
    "sandbox-error",
]
ExitedBy = Literal["end", "SystemExit", "os._exit", "exec", "signal", "killed"]


@dataclass(frozen=True)
class Violation:
    """One thing that the program tried and the policy does not allow.

    Attributes
    ----------
    seq : number of its event in the trace.
    category : `import`, `fs`, `network`, `process`, `env`, `limits` or `integrity`.
    operation : what was tried, as `import` or `connect`.
    rule : the rule that said no.
    target : what it was tried on: a module, an address, a path.
    file, line : the line of the program that tried it; None when it is not known.
    at : the two as `file:line`.
    layer : which layer saw it: `kernel`, `python` or `supervisor`.
    action : `deny`, `stop` or `observe`.
    message : the sentence that the exception in the program carried too: what was
        tried, where, which rule says no, what would allow it.
    hint : what would allow it, once more by itself.
    count : how many times the same was tried.
    stack : `file:line name` of the frames that led there, innermost first.
    details : the fields that belong to the operation, as `address` and `port`.
    """

    seq: int
    category: str
    operation: str
    rule: str
    target: str
    file: str | None
    line: int | None
    at: str | None
    layer: str
    action: str
    message: str
    hint: str
    count: int
    stack: tuple[str, ...]
    details: Mapping[str, object] = field(hash=False, repr=False)

    def as_dict(self) -> dict[str, object]:
        """Give everything as one JSON-ready dict, `details` beside the rest."""
        named = {
            item.name: getattr(self, item.name)
            for item in fields(self)
            if item.name != "details"
        }
        named["stack"] = list(self.stack)
        return {**copy.deepcopy(dict(self.details)), **named}

    def __str__(self) -> str:
        """Give the sentence."""
        return self.message


@dataclass(frozen=True)
class ExceptionInfo:
    """The exception that ended the program.

    Attributes
    ----------
    type : qualified name of its class.
    message : its text; None when only running the program's own code could tell.
    file, line : where it was raised; None when that is not known.
    traceback : `file:line name` of the frames that led there, innermost first, one a
        line.
    """

    type: str
    message: str | None
    file: str | None
    line: int | None
    traceback: str


@dataclass(frozen=True)
class FileChanges:
    """Paths of the files that the run created, changed and deleted, from the record."""

    created: tuple[str, ...]
    changed: tuple[str, ...]
    deleted: tuple[str, ...]


@dataclass(frozen=True)
class Grant:
    """What the caller granted or denied by name.

    Attributes
    ----------
    action : `allow` or `deny`.
    kind : `read`, `write`, `net`, `run`, `import` or `env`.
    pattern : what of that; paths are absolute.
    """

    action: Literal["allow", "deny"]
    kind: GrantKind
    pattern: str


@dataclass(frozen=True)
class AppliedPolicy:
    """The policy that was in force.

    Attributes
    ----------
    name : the built-in's name, the file's path, or `custom`.
    digest : of all that decides, grants included.
    mode : `enforce`, or `observe`: nothing was denied.
    grants : what the caller granted and denied by name.
    """

    name: str
    digest: str
    mode: Literal["enforce", "observe"] = "enforce"
    grants: tuple[Grant, ...] = ()


@dataclass(frozen=True)
class Artifacts:
    """What lies on disk for a result; the private folders go when this goes."""

    trace: Path | None
    folders: tuple[PrivateFolder, ...]
    work: WorkFolder | None


@dataclass(frozen=True)
class Result:
    """The outcome of one run. What the program did is data here, never an exception.

    Attributes
    ----------
    status : how it went in one word: `ok`, `error`, `signal`, `timeout`, ...
    exit_code : the number that the command `sandpit run` exits with.
    signal : number of the signal that ended the program, or None.
    exited_by : `end`, `SystemExit`, `os._exit`, `exec`, `signal` or `killed`; None when
        that could not be seen.
    reason : one sentence that says why it ended.
    stdout, stderr : what it printed, as text; invalid UTF-8 is replaced. Empty when the
        output was not captured.
    stdout_bytes_total, stderr_bytes_total : how much it printed.
    stdout_truncated, stderr_truncated : whether some of that is not here.
    exception : the exception that ended the program, or None.
    wall_s, cpu_s, startup_s : seconds it took, computed, and needed to start.
    peak_memory_bytes : the most memory it used.
    files : the files it created, changed and deleted.
    violations : what it tried against the policy, in order.
    summary : how many events of each kind the trace holds.
    limits : by name, each limit that was asked for: `asked`, `value` (in force; lower
        where the machine allows less, None where it is not held), `measured` (the most
        that was seen), `reached`, and `by` what means it is held.
    policy : name, digest and mode of the policy, and what was granted by name.
    enforced_by, recorded_by : per section, the layers that hold it and see it.
    degraded : the abilities that were missing and accepted.
    """

    status: Status
    exit_code: int
    signal: int | None
    exited_by: ExitedBy | None
    reason: str
    stdout: str
    stderr: str
    stdout_bytes_total: int
    stderr_bytes_total: int
    stdout_truncated: bool
    stderr_truncated: bool
    exception: ExceptionInfo | None
    wall_s: float
    cpu_s: float
    startup_s: float
    peak_memory_bytes: int
    files: FileChanges
    violations: tuple[Violation, ...]
    summary: Mapping[str, int] = field(hash=False)
    limits: Mapping[str, Mapping[str, Any]] = field(hash=False)
    policy: AppliedPolicy
    enforced_by: Mapping[str, tuple[str, ...]] = field(hash=False)
    recorded_by: Mapping[str, tuple[str, ...]] = field(hash=False)
    degraded: tuple[str, ...]
    _answer: Mapping[str, Any] = field(repr=False, compare=False)
    _artifacts: Artifacts = field(repr=False, compare=False)

    @property
    def stdout_bytes(self) -> bytes:
        """What it printed on standard output, byte for byte."""
        return self._bytes("stdout")

    @property
    def stderr_bytes(self) -> bytes:
        """What it printed on standard error, byte for byte."""
        return self._bytes("stderr")

    @cached_property
    def trace(self) -> Trace | None:
        """The record of the run, read when it is looked at; None if there is none.

        Raises
        ------
        TraceError : the file cannot be read any more.
        """
        path = self._artifacts.trace
        if path is None:
            return None
        return load(path)

    @property
    def trace_path(self) -> Path | None:
        """Where the trace lies; in a private folder that goes with this object, unless
        the caller named a place for it."""
        return self._artifacts.trace

    def save(self, path: StrPath) -> Path:
        """Copy the trace to a place of its own, replacing what is there.

        Parameters
        ----------
        path : the file to write, usually `NAME.sptrace`.

        Returns
        -------
        Path : the file written.

        Raises
        ------
        TraceError : the run kept no trace, it cannot be read any more, or the file
            cannot be written.
        """
        trace = self.trace
        if trace is None:
            raise TraceError("the run kept no trace (trace=False)")
        return trace.save(path)

    def read(self, name: str) -> bytes:
        """Read a file that lies in the run's working folder.

        Parameters
        ----------
        name : its name, relative to the working folder. No link is followed: a guest
            could point one at a file of yours.

        Returns
        -------
        bytes : all of it.

        Raises
        ------
        ValueError : the name leads out of the folder.
        OSError : there is no such file, or it is a link, a pipe or a folder.
        """
        work = self._artifacts.work
        if work is None:
            raise FileNotFoundError("the working folder of this run is not known here")
        return work.read(name)

    def read_text(self, name: str, encoding: str = "utf-8") -> str:
        """Read a text file as `read` does; what cannot be decoded is replaced."""
        return self.read(name).decode(encoding, "replace")

    def as_dict(self) -> dict[str, Any]:
        """Give all fields as a dict, as `sandpit run --json` prints them."""
        return copy.deepcopy(dict(self._answer))

    def to_json(self, indent: int | None = None) -> str:
        """Give `as_dict` as JSON text, in ASCII, safe to print on a terminal."""
        return json.dumps(self._answer, indent=indent)

    def _bytes(self, stream: str) -> bytes:
        encoded = self._answer.get(f"{stream}_base64")
        if encoded is not None:
            return base64.b64decode(encoded)
        return cast("str", getattr(self, stream)).encode("utf-8", "surrogatepass")

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle what the run was. The private folders stay with this process."""
        path = self._artifacts.trace
        if self._artifacts.folders and path is not None:
            inside = path.parent in [folder.path for folder in self._artifacts.folders]
            path = None if inside else path
        return (_restore, (dict(self._answer), path))


def make_result(answer: Mapping[str, Any], artifacts: Artifacts) -> Result:
    """Make the result from the `result` object that the native program sent."""
    try:
        exception = answer["exception"]
        policy = answer["policy"]
        return Result(
            status=answer["status"],
            exit_code=answer["exit_code"],
            signal=answer["signal"],
            exited_by=answer["exited_by"],
            reason=answer["reason"],
            stdout=answer.get("stdout", ""),
            stderr=answer.get("stderr", ""),
            stdout_bytes_total=answer.get("stdout_bytes_total", 0),
            stderr_bytes_total=answer.get("stderr_bytes_total", 0),
            stdout_truncated=answer.get("stdout_truncated", False),
            stderr_truncated=answer.get("stderr_truncated", False),
            exception=None if exception is None else _exception(exception),
            wall_s=answer["wall_s"],
            cpu_s=answer["cpu_s"],
            startup_s=answer["startup_s"],
            peak_memory_bytes=answer["peak_memory_bytes"],
            files=FileChanges(
                **{
                    item.name: tuple(answer["files"][item.name])
                    for item in fields(FileChanges)
                }
            ),
            violations=tuple(_violation(item) for item in answer["violations"]),
            summary=dict(answer["summary"]),
            limits=dict(answer["limits"]),
            policy=AppliedPolicy(
                name=policy["name"],
                digest=policy["digest"],
                mode=policy.get("mode", "enforce"),
                grants=tuple(Grant(**item) for item in policy.get("grants", ())),
            ),
            enforced_by=_layers(answer["enforced_by"]),
            recorded_by=_layers(answer["recorded_by"]),
            degraded=tuple(answer["degraded"]),
            _answer=answer,
            _artifacts=artifacts,
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise InternalError(
            f"the native program's result is not as agreed: {error!r}"
        ) from error


def _restore(answer: Mapping[str, Any], trace: Path | None) -> Result:
    """Make a result again in another process, or later."""
    return make_result(answer, Artifacts(trace, (), None))


def _exception(item: Mapping[str, Any]) -> ExceptionInfo:
    return ExceptionInfo(
        type=item["type"],
        message=item.get("message"),
        file=item.get("file"),
        line=item.get("line"),
        traceback=item.get("traceback", ""),
    )


def _violation(item: Mapping[str, Any]) -> Violation:
    named = {
        "seq": item["seq"],
        "category": item["category"],
        "operation": item["operation"],
        "rule": item["rule"],
        "target": item["target"],
        "file": item.get("file"),
        "line": item.get("line"),
        "at": item.get("at"),
        "layer": item["layer"],
        "action": item["action"],
        "message": item["message"],
        "hint": item["hint"],
        "count": item.get("count", 1),
        "stack": tuple(item.get("stack", ())),
    }
    details = {key: value for key, value in item.items() if key not in named}
    return Violation(**named, details=details)


def _layers(sections: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    return {section: tuple(layers) for section, layers in sections.items()}
