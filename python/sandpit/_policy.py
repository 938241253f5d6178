"""Policies as the package takes them: names, files, dicts."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Union

if TYPE_CHECKING:
    from ._spec import JSON, StrPath

PolicyLike = Union[str, "os.PathLike[str]", "Mapping[str, Any]"]

_INT64_MAX = (1 << 63) - 1
_DEPTH_MAX = 16


def policy_wire(policy: StrPath | Mapping[str, Any] | None) -> JSON:
    """Give a policy in the words of the native program; TypeError says what is wrong."""
    if policy is None:
        return None
    if isinstance(policy, Mapping):
        return {"document": _document(policy, "policy", 0)}
    if isinstance(policy, str):
        text = policy
    elif isinstance(policy, os.PathLike):
        text = os.fspath(policy)
        if not isinstance(text, str):
            raise TypeError("policy must be a str path, not bytes")
        # A path object is a file, never a built-in policy of that name.
        text = text if os.sep in text else f"./{text}"
    else:
        raise TypeError(
            "policy must be a name, a path, a dict or a sandpit.Policy, "
            f"not {type(policy).__name__}"
        )
    if not text:
        raise ValueError("policy is empty")
    if "\0" in text:
        raise ValueError("policy holds a NUL character")
    return _wire(text)


def _document(value: object, where: str, depth: int) -> JSON:
    """Give a dict's value as JSON; whether it makes sense, the native program says."""
    if depth > _DEPTH_MAX:
        raise ValueError(f"{where} is nested too deep")
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, int):
        if abs(value) > _INT64_MAX:
            raise ValueError(f"{where} is a number beyond 64 bits")
        return value
    if isinstance(value, (str, os.PathLike)):
        text = os.fspath(value)
        if not isinstance(text, str):
            raise TypeError(f"{where} must be text, not bytes")
        return _text(text, where)
    if isinstance(value, Mapping):
        members: dict[str, JSON] = {}
        for key, member in value.items():
            if not isinstance(key, str):
                raise TypeError(f"{where} has the key {key!r}, which is no str")
            members[_text(key, where)] = _document(member, f"{where}.{key}", depth + 1)
        return members
    if isinstance(value, (list, tuple)):
        return [
            _document(item, f"{where}[{position}]", depth + 1)
            for position, item in enumerate(value)
        ]
    raise TypeError(f"{where} cannot be a {type(value).__name__}")


def _text(text: str, where: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(f"{where} is no Unicode text: {text!r}") from None
    return text


def _wire(text: str) -> JSON:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return {"base64": base64.b64encode(os.fsencode(text)).decode("ascii")}
    return text
