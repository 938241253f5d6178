"""What the caller asked for, checked and put into the words of the native program."""

from __future__ import annotations

import base64
import math
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Union

from ._grants import check_grants
from ._policy import policy_wire

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ._grants import GrantKind
    from ._policy import Policy

StrPath = Union[str, "os.PathLike[str]"]
Calls = Literal["off", "first", "folded", "all"]
JSON = Union[None, bool, int, float, str, "list[JSON]", "dict[str, JSON]"]

VERSION = 1
DEFAULT_CAPTURE_MAX = 64 << 20
_CALLS = ("off", "first", "folded", "all")
_INT64_MAX = (1 << 63) - 1


@dataclass(frozen=True)
class Options:
    """The options that are the same for a script, a module and a text, checked."""

    args: tuple[str, ...]
    policy: JSON
    allow: dict[str, tuple[str, ...]]
    deny: dict[str, tuple[str, ...]]
    observe: bool
    limits: dict[str, str | float]
    calls: str | None
    trace: str | None
    keep_trace: bool
    sign: str | None
    python: str | None
    env: dict[str, str] | None
    cwd: str | None
    allow_degraded: tuple[str, ...]
    capture: bool
    capture_max: int


def check_options(
    *,
    args: Iterable[StrPath],
    policy: StrPath | Mapping[str, Any] | Policy | None,
    allow: Mapping[GrantKind, Iterable[StrPath]] | None,
    deny: Mapping[GrantKind, Iterable[StrPath]] | None,
    observe: bool,
    timeout: float | None,
    limits: Mapping[str, str | float] | None,
    calls: str | None,
    trace: StrPath | bool | None,
    sign: StrPath | None,
    python: StrPath | None,
    env: Mapping[str, str] | None,
    cwd: StrPath | None,
    allow_degraded: Iterable[str],
    capture: bool,
    capture_max: int,
) -> Options:
    """Check the types and ranges of the options; TypeError or ValueError says which."""
    if trace is True:
        raise TypeError("trace must be a path, None or False, not True")
    if calls is not None and calls not in _CALLS:
        raise ValueError(f"calls must be one of {', '.join(_CALLS)}, not {calls!r}")
    if trace is False and sign is not None:
        raise ValueError("sign signs the trace that trace=False leaves out")
    for name, flag in (("capture", capture), ("observe", observe)):
        if not isinstance(flag, bool):
            raise TypeError(f"{name} must be a bool, not {_kind(flag)}")
    return Options(
        args=check_args(args),
        policy=policy_wire(policy),
        allow=check_grants("allow", allow),
        deny=check_grants("deny", deny),
        observe=observe,
        limits=_check_limits(limits, _check_timeout(timeout)),
        calls=calls,
        trace=os.path.abspath(check_path("trace", trace)) if trace else None,
        keep_trace=trace is not False,
        sign=None if sign is None else os.path.abspath(check_path("sign", sign)),
        python=_check_python(python),
        env=_check_env(env),
        cwd=None if cwd is None else os.path.abspath(check_path("cwd", cwd)),
        allow_degraded=_check_names("allow_degraded", allow_degraded),
        capture=capture,
        capture_max=_check_size("capture_max", capture_max),
    )


def build_spec(
    program: str, kind: str, options: Options, *, cwd: str | None, trace: str | None
) -> dict[str, JSON]:
    """Give the object that the native program reads."""
    return {
        "version": VERSION,
        "program": {"kind": kind, "value": _wire(program)},
        "args": [_wire(arg) for arg in options.args],
        "policy": options.policy,
        "allow": _wire_grants(options.allow),
        "deny": _wire_grants(options.deny),
        "observe": options.observe,
        "limits": dict(options.limits),
        "calls": options.calls,
        "trace": None if trace is None else _wire(trace),
        "sign": None if options.sign is None else _wire(options.sign),
        "python": None if options.python is None else _wire(options.python),
        "env": _wire_env(options.env),
        "cwd": None if cwd is None else _wire(cwd),
        "allow_degraded": list(options.allow_degraded),
        "capture": options.capture,
        "capture_max": options.capture_max,
    }


def check_path(name: str, value: object) -> str:
    """Give a path as text; TypeError unless it is text or has `__fspath__`."""
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{name} must be a str or a path, not {_kind(value)}")
    path = os.fspath(value)
    if not isinstance(path, str):
        raise TypeError(f"{name} must be a str path, not {_kind(path)}")
    if not path:
        raise ValueError(f"{name} is empty")
    return _no_nul(name, path)


def check_args(args: object) -> tuple[str, ...]:
    """Give the program's arguments as texts."""
    if isinstance(args, (str, bytes)):
        raise TypeError("args must be a list of arguments, not one text")
    checked = []
    for position, arg in enumerate(_iterate("args", args)):
        if not isinstance(arg, (str, os.PathLike)):
            raise TypeError(
                f"args[{position}] must be a str or a path, not {_kind(arg)}"
            )
        checked.append(_no_nul(f"args[{position}]", os.fsdecode(arg)))
    return tuple(checked)


def _check_python(python: object) -> str | None:
    if python is None:
        return sys.executable or None
    path = check_path("python", python)
    # A bare name is looked up on PATH; a path means the caller's folder, not `cwd`.
    return os.path.abspath(path) if os.sep in path else path


def _check_timeout(timeout: object) -> float | None:
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
        raise TypeError(f"timeout must be seconds or None, not {_kind(timeout)}")
    if not math.isfinite(timeout) or timeout <= 0:
        raise ValueError(f"timeout must be more than 0 and finite, not {timeout!r}")
    return timeout


def _check_limits(limits: object, timeout: float | None) -> dict[str, str | float]:
    """Give the limits by name; `timeout` is the one of wall time."""
    checked: dict[str, str | float] = {}
    if limits is not None and not hasattr(limits, "items"):
        raise TypeError(f"limits must map names to values, not {_kind(limits)}")
    for name, value in limits.items() if limits is not None else ():
        if not isinstance(name, str):
            raise TypeError(f"limits must be named by str, not {_kind(name)}")
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise TypeError(
                f"limits[{name!r}] must be str or number, not {_kind(value)}"
            )
        if not isinstance(value, str) and not (math.isfinite(value) and value > 0):
            raise ValueError(
                f"limits[{name!r}] must be more than 0 and finite, not {value!r}"
            )
        if isinstance(value, int) and value > _INT64_MAX:
            raise ValueError(f"limits[{name!r}] must be below 2**63, not {value!r}")
        checked[name] = _no_nul("limits", value) if isinstance(value, str) else value
    if timeout is not None:
        if "wall" in checked:
            raise ValueError(
                "timeout and limits['wall'] are the same: give one of them"
            )
        checked["wall"] = timeout
    return checked


def _check_env(env: object) -> dict[str, str] | None:
    if env is None:
        return None
    if not hasattr(env, "items"):
        raise TypeError(f"env must map names to values, not {_kind(env)}")
    checked = {}
    for name, value in env.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError(f"env must map str to str, not {name!r} to {value!r}")
        if not name or "=" in name:
            raise ValueError(f"not the name of an environment variable: {name!r}")
        checked[_no_nul("env", name)] = _no_nul(f"env[{name!r}]", value)
    return checked


def _check_names(option: str, names: object) -> tuple[str, ...]:
    if isinstance(names, (str, bytes)):
        raise TypeError(f"{option} must be a list of names, not one text")
    checked = []
    for name in _iterate(option, names):
        if not isinstance(name, str):
            raise TypeError(f"{option} must hold str, not {_kind(name)}")
        checked.append(_no_nul(option, name))
    return tuple(checked)


def _check_size(option: str, size: object) -> int:
    if isinstance(size, bool) or not isinstance(size, int):
        raise TypeError(f"{option} must be a count of bytes, not {_kind(size)}")
    if not 0 <= size <= _INT64_MAX:
        raise ValueError(f"{option} must not be negative, nor beyond 64 bits: {size}")
    return size


def _iterate(option: str, value: object) -> Iterable[object]:
    try:
        return iter(value)  # type: ignore[call-overload, no-any-return]
    except TypeError:
        raise TypeError(f"{option} must be a list, not {_kind(value)}") from None


def _no_nul(name: str, text: str) -> str:
    if "\0" in text:
        raise ValueError(f"{name} holds a NUL character")
    return text


def _kind(value: object) -> str:
    return type(value).__name__


def _wire(text: str) -> JSON:
    """Give text as JSON can carry it; what is no Unicode text goes as base64."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return {"base64": base64.b64encode(os.fsencode(text)).decode("ascii")}
    return text


def _wire_grants(grants: dict[str, tuple[str, ...]]) -> JSON:
    return {
        kind: [_wire(pattern) for pattern in patterns]
        for kind, patterns in grants.items()
    }


def _wire_env(env: dict[str, str] | None) -> JSON:
    """Give the environment; a name that is no Unicode text cannot be a JSON key."""
    if env is None:
        return None
    wired: dict[str, JSON] = {}
    for name, value in env.items():
        try:
            name.encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError(
                f"not the name of an environment variable: {name!r}"
            ) from None
        wired[name] = _wire(value)
    return wired
