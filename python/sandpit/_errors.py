"""The errors that sandpit raises: what it, the caller or the machine got wrong.

What the untrusted program does is never an exception; it stands in the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


def _rebuild(
    kind: type[SandpitError], message: str, state: dict[str, object]
) -> SandpitError:
    """Make an unpickled error from its message and attributes."""
    error = kind(message)
    error.__dict__.update(state)
    return error


class SandpitError(Exception):
    """The common class of everything that sandpit raises on purpose.

    Attributes
    ----------
    slug : a short word that stays the same from release to release.
    message : the sentence that the error prints.
    """

    slug: ClassVar[str] = "error"

    def __init__(self, message: str) -> None:
        """Make the error with its one sentence."""
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        """Give the sentence."""
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the message and every attribute."""
        return (_rebuild, (type(self), self.message, dict(self.__dict__)))


class PolicyProblem(NamedTuple):
    """One thing that is wrong with a policy.

    Attributes
    ----------
    line, column : where, counted from 1; 0 when it has no place.
    message : what; of a dict it begins with the key, as `fs.allow_read[2]: ...`.
    source : the file that it is in; empty when the policy is none.
    """

    line: int
    column: int
    message: str
    source: str


class PolicyError(SandpitError):
    """The policy is unknown or invalid.

    Attributes
    ----------
    line, column : where in the policy's text the first problem is, counted from 1; 0
        when it has no place.
    problems : all that is wrong with it.
    """

    slug = "policy"

    def __init__(
        self,
        message: str,
        *,
        line: int = 0,
        column: int = 0,
        problems: tuple[PolicyProblem, ...] = (),
    ) -> None:
        """Make the error with its place in the policy."""
        super().__init__(message)
        self.line = line
        self.column = column
        self.problems = problems


class HostError(SandpitError):
    """This machine cannot do what was asked.

    Attributes
    ----------
    missing : the abilities it lacks, in the words that `allow_degraded` takes.
    """

    slug = "host"

    def __init__(self, message: str, *, missing: tuple[str, ...] = ()) -> None:
        """Make the error with the names of what is missing."""
        super().__init__(message)
        self.missing = missing


class TraceError(SandpitError):
    """A trace cannot be read or written.

    Attributes
    ----------
    line : the first bad line, counted from 1; 0 when no line is to blame.
    byte : the offset in the file where that line begins; 0 likewise.
    """

    slug = "trace"

    def __init__(self, message: str, *, line: int = 0, byte: int = 0) -> None:
        """Make the error with the place in the trace."""
        super().__init__(message)
        self.line = line
        self.byte = byte


class NotFoundError(SandpitError, FileNotFoundError):
    """The script, the module's interpreter or the working folder is not there."""

    slug = "not-found"


class UsageError(SandpitError, ValueError):
    """The program was asked for something that makes no sense."""

    slug = "usage"


class InternalError(SandpitError):
    """A fault of sandpit itself; please report it."""

    slug = "internal"


def _problems(answer: Mapping[str, object]) -> tuple[PolicyProblem, ...]:
    items = answer.get("problems")
    return tuple(
        PolicyProblem(**{key: item[key] for key in PolicyProblem._fields})
        for item in (items if isinstance(items, list) else [])
    )


def error_from_answer(answer: Mapping[str, object]) -> SandpitError:
    """Make the exception for the `error` object that the native program sent."""
    slug = answer.get("slug")
    message = str(answer.get("message", "no message"))
    line, column = answer.get("line"), answer.get("column")
    line = line if isinstance(line, int) else 0
    column = column if isinstance(column, int) else 0
    if slug == PolicyError.slug:
        return PolicyError(
            message, line=line, column=column, problems=_problems(answer)
        )
    if slug == HostError.slug:
        missing = answer.get("missing")
        names = missing if isinstance(missing, list) else []
        return HostError(message, missing=tuple(str(name) for name in names))
    if slug == TraceError.slug:
        return TraceError(message, line=line)
    if slug == NotFoundError.slug:
        return NotFoundError(message)
    if slug == UsageError.slug:
        return UsageError(message)
    return InternalError(message)
