"""As much of JSON Schema as docs/trace.schema.json uses; anything else is an error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

TYPES: dict[str, Any] = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
}
NOTES = {"$schema", "$defs", "title", "description", "then"}


def types(named: str | list[str]) -> list[str]:
    return [named] if isinstance(named, str) else named


def problems(value: Any, schema: dict[str, Any], root: dict[str, Any]) -> Iterator[str]:
    """Say what is wrong with a value."""
    for word, want in schema.items():
        if word in NOTES:
            continue
        yield from RULES[word](value, want, schema, root)


def check_properties(value: Any, want: Any, schema: Any, root: Any) -> Iterator[str]:
    for name in want.keys() & (value.keys() if isinstance(value, dict) else ()):
        for problem in problems(value[name], want[name], root):
            yield f"{name}: {problem}"


def check_others(value: Any, want: Any, schema: Any, root: Any) -> Iterator[str]:
    for item in value.values():
        yield from problems(item, want, root)


def check_items(value: Any, want: Any, schema: Any, root: Any) -> Iterator[str]:
    for item in value if isinstance(value, list) else ():
        yield from problems(item, want, root)


def check_all(value: Any, want: Any, schema: Any, root: Any) -> Iterator[str]:
    for one in want:
        yield from problems(value, one, root)


def check_if(value: Any, want: Any, schema: Any, root: Any) -> Iterator[str]:
    if not any(problems(value, want, root)):
        yield from problems(value, schema["then"], root)


def check_ref(value: Any, want: str, schema: Any, root: Any) -> Iterator[str]:
    yield from problems(value, root["$defs"][want.removeprefix("#/$defs/")], root)


def number(test: Any) -> Any:
    """A rule about numbers, which is silent about anything else."""
    return simple(lambda v, want, _: not isinstance(v, int) or test(v, want))


def simple(test: Any) -> Any:
    """A rule that looks at the value and its own word only."""

    def rule(value: Any, want: Any, schema: Any, root: Any) -> Iterator[str]:
        if not test(value, want, root):
            yield f"{value!r} is not {want!r}"

    return rule


RULES: dict[str, Any] = {
    "type": simple(lambda v, want, _: any(TYPES[name](v) for name in types(want))),
    "enum": simple(lambda v, want, _: v in want),
    "const": simple(lambda v, want, _: v == want),
    "minimum": number(lambda v, want: v >= want),
    "maximum": number(lambda v, want: v <= want),
    "minItems": simple(lambda v, want, _: len(v) >= want),
    "maxItems": simple(lambda v, want, _: len(v) <= want),
    "pattern": simple(lambda v, want, _: re.search(want, v)),
    "required": simple(lambda v, want, _: set(want) <= v.keys()),
    "not": simple(lambda v, want, root: any(problems(v, want, root))),
    "properties": check_properties,
    "additionalProperties": check_others,
    "items": check_items,
    "allOf": check_all,
    "if": check_if,
    "$ref": check_ref,
}
