"""Policies as the package takes them: names, files, dicts, and `Policy`."""

from __future__ import annotations

import base64
import copy
import json
import os
import subprocess
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from ._errors import InternalError, error_from_answer
from ._program import find_program

if TYPE_CHECKING:
    from ._spec import JSON, StrPath

_INT64_MAX = (1 << 63) - 1
_DEPTH_MAX = 16


class Policy:
    """A policy that was read and found right, and does not change any more.

    `Policy(...)` makes one of a dict; `builtin`, `load` and `from_toml` of the rest.
    Two are equal when they have the same name and decide the same.

    Parameters
    ----------
    document : sections with their keys, as a policy file has them.
    name : what results and messages call it.

    Raises
    ------
    PolicyError : it is no policy; `problems` has all that is wrong with it.
    HostError : the native program is missing, or this is Windows.

    Example
    -------
    >>> import sandpit
    >>> policy = sandpit.Policy({"imports": {"deny": ["json"]}}, name="no-json")
    >>> result = sandpit.run_string("import json", policy=policy)
    >>> result.exit_code, result.policy.name
    (1, 'no-json')
    """

    __slots__ = ("_description", "_digest", "_document", "_name", "_wire")

    _name: str
    _description: str
    _digest: str
    _document: dict[str, Any]
    _wire: JSON

    def __init__(self, document: Mapping[str, Any], *, name: str = "custom") -> None:
        """Read the policy."""
        if not isinstance(document, Mapping):
            raise TypeError(f"a policy is a dict, not {type(document).__name__}")
        self._fill({"document": _document(document, "policy", 0)}, _check_name(name))

    @classmethod
    def builtin(cls, name: str) -> Policy:
        """Give a built-in policy, as "default".

        Raises
        ------
        PolicyError : there is none of that name.
        """
        if not isinstance(name, str) or os.sep in name or name.endswith(".toml"):
            raise ValueError(f"not the name of a built-in policy: {name!r}")
        policy = cls.__new__(cls)
        policy._fill(policy_wire(name), None)
        return policy

    @classmethod
    def load(cls, path: StrPath) -> Policy:
        """Read a policy file. What it extends must stay as it is from then on.

        Raises
        ------
        PolicyError : it cannot be read or is no policy.
        """
        text = os.fspath(path)
        wire = policy_wire(text if os.sep in text else f"./{text}")
        _ask(wire)  # a pipe or a huge file is told of, not read
        with open(text, encoding="utf-8", newline="") as stream:
            content = stream.read()
        policy = cls.__new__(cls)
        source = os.path.abspath(text)
        policy._fill({"toml": content, "source": _wire(source)}, text)
        return policy

    @classmethod
    def from_toml(cls, text: str, *, name: str = "custom") -> Policy:
        """Read a policy from text. Files that it extends count from the current folder.

        Raises
        ------
        PolicyError : it is no policy; `line` and `column` count in the text.
        """
        if not isinstance(text, str):
            raise TypeError(f"a policy's text is a str, not {type(text).__name__}")
        policy = cls.__new__(cls)
        wire: JSON = {"toml": _no_nul(_text(text, "the policy")), "source": None}
        policy._fill(wire, _check_name(name))
        return policy

    @property
    def name(self) -> str:
        """What results and messages call it."""
        return self._name

    @property
    def description(self) -> str:
        """What it is for, in its own words; empty when it does not say."""
        return self._description

    @property
    def digest(self) -> str:
        """The digest of what it decides, as `result.policy` has it without grants."""
        return self._digest

    def to_dict(self) -> dict[str, Any]:
        """Give it with all that it inherits, as a dict that makes the same policy."""
        return copy.deepcopy(self._document)

    def _fill(self, wire: JSON, name: str | None) -> None:
        """Have the native program read it, and keep what it says."""
        if isinstance(wire, dict) and name is not None:
            wire = {**wire, "name": _wire(name)}
        answer = _ask(wire)
        if isinstance(wire, dict) and name is not None:
            wire = {**wire, "digest": answer["digest"]}
        self._set(
            name if name is not None else answer["name"],
            answer["description"],
            answer["digest"],
            answer["policy"],
            wire,
        )

    def _set(
        self,
        name: str,
        description: str,
        digest: str,
        document: dict[str, Any],
        wire: JSON,
    ) -> None:
        put = object.__setattr__
        put(self, "_name", name)
        put(self, "_description", description)
        put(self, "_digest", digest)
        put(self, "_document", document)
        put(self, "_wire", wire)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        """Refuse: a policy does not change."""
        raise AttributeError(f"a policy does not change: {name!r} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        """Refuse: a policy does not change."""
        raise AttributeError(f"a policy does not change: {name!r} cannot be deleted")

    def __eq__(self, other: object) -> bool:
        """Say whether the other has the same name and decides the same."""
        if not isinstance(other, Policy):
            return NotImplemented
        return (self._name, self._digest) == (other._name, other._digest)

    def __hash__(self) -> int:
        """Hash name and digest."""
        return hash((self._name, self._digest))

    def __repr__(self) -> str:
        """Give its name and the beginning of its digest."""
        return f"<sandpit.Policy {self._name!r} {self._digest[:12]}>"

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle what was read, so that it needs not be read again."""
        state = (
            self._name,
            self._description,
            self._digest,
            self._document,
            self._wire,
        )
        return (_restore, state)


def _restore(*state: Any) -> Policy:
    """Make an unpickled policy."""
    policy = Policy.__new__(Policy)
    policy._set(*state)
    return policy


def _ask(wire: JSON) -> dict[str, Any]:
    """Have the native program read a policy; raise what it finds wrong."""
    done = subprocess.run(
        [find_program(), "policy-spec"],
        input=json.dumps({"policy": wire}).encode(),
        stdout=subprocess.PIPE,
        check=False,
    )
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        raise InternalError(
            f"the native program gave no answer (exit code {done.returncode})"
        ) from None
    if "error" in answer:
        raise error_from_answer(answer["error"])
    return dict(answer)


def _check_name(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"a policy's name is a str, not {type(name).__name__}")
    if not name:
        raise ValueError("a policy's name is empty")
    return _no_nul(name)


def _no_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("policy holds a NUL character")
    return text


def policy_wire(policy: StrPath | Mapping[str, Any] | Policy | None) -> JSON:
    """Give a policy in the words of the native program; TypeError says what is bad."""
    if policy is None:
        return None
    if isinstance(policy, Policy):
        return policy._wire
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
    return _wire(_no_nul(text))


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
