"""What a policy says, worked out anew from the documents.

Nothing here follows the C code: this is the second opinion that it is compared with. The most
specific rule wins, between equals the one that denies; most specific is the exact object, then
a glob that matches the object's last component, a longer folder, a shorter one, `*`. What no
rule matches is denied where an allow list was given, else allowed. Who may write somewhere may
read there, unless a rule on reading is at least as specific.
"""

from __future__ import annotations

import functools
import os
import re
from dataclasses import dataclass, field
from typing import Callable

ANY, FOLDER, GLOB, EXACT = range(1, 5)
WILD = frozenset(b"*?[")


def text(name: bytes) -> str:
    """Decode; a byte that is no part of UTF-8 is a character of its own."""
    return name.decode("utf-8", "surrogateescape")


@functools.cache
def regex(pattern: bytes, stop: str = "/") -> re.Pattern[str]:
    """Translate a glob: `*` and `?` stop at a slash, `**` does not."""
    any_one = f"[^{stop}]" if stop else "."
    out, rest = "", text(pattern)
    while rest:
        closing = rest.find("]", 2 + (rest[1:2] in ("!", "^")))
        if rest.startswith("**/") and stop:
            out, rest = out + "(?:[^/]*/)*", rest[3:]
        elif rest.startswith("**"):
            out, rest = out + ".*", rest[2:]
        elif rest[0] in "*?":
            out, rest = out + any_one + rest[0].replace("?", ""), rest[1:]
        elif rest[0] == "[" and closing > 0:
            body = rest[1:closing].replace("\\", "\\\\").replace("[", "\\[")
            if body[0] in "!^":
                body = "^" + body[1:]
            out, rest = f"{out}(?!/)[{body}]", rest[closing + 1 :]
        else:
            out, rest = out + re.escape(rest[0]), rest[1:]
    return re.compile(out, re.DOTALL)


def folders(path: bytes):
    """Every folder that a path is in, the nearest first."""
    while path not in (b"/", b""):
        path = os.path.dirname(path)
        yield path


def fit(pattern: bytes, path: bytes) -> tuple[int, int]:
    """How specifically a bound pattern matches a canonical path; (0, 0): not at all."""
    if pattern == b"*":
        return (ANY, 0)
    if not WILD & set(pattern):
        if path == pattern:
            return (EXACT, 0)
        inside = pattern == b"/" or path.startswith(pattern + b"/")
        return (FOLDER, len(pattern)) if inside else (0, 0)
    if regex(pattern).fullmatch(text(path)):
        return (GLOB, 0)
    for folder in folders(path):
        if regex(pattern).fullmatch(text(folder)):
            return (FOLDER, len(folder))
    return (0, 0)


def reaches(pattern: bytes, folder: bytes) -> bool:
    """Tell whether a pattern may match something below the folder."""
    parts = folder.split(b"/")
    for i, part in enumerate(pattern.split(b"/")):
        if b"**" in part or i >= len(parts):
            return True
        if not regex(part).fullmatch(text(parts[i])):
            return False
    return False


@dataclass(frozen=True)
class Rule:
    """One bound pattern of one list."""

    list: str  # "read" or "write"
    allow: bool
    pattern: bytes


def bind(
    pattern: str, places: dict[str, str | None], follow: Callable[[bytes], bytes]
) -> list[bytes]:
    """Fill in placeholders, and follow links: of what has no wildcard both the name itself
    and what it leads to are meant, of a glob the part before its first wildcard."""
    for word, place in places.items():
        if pattern.startswith(word):
            if place is None:
                return []
            pattern = place + pattern[len(word) :]
    # A slash, or slashes and two stars, at the end say no more than the folder; anything
    # anywhere in a folder is below something in it.
    name, before = os.fsencode(pattern), b""
    while name != before:
        before = name
        name = re.sub(rb"(/|/\*\*)+$", b"", name) or b"/"
        name = re.sub(rb"/\*\*/\*$", b"/*", name)
    if name in (b"*", b"**", b"**/*"):
        return [b"*"]
    if not WILD & set(name):
        folder, last = os.path.split(name)
        return list(dict.fromkeys([os.path.join(follow(folder), last), follow(name)]))
    slash = name.rfind(b"/", 0, min(name.index(c) for c in WILD if c in name))
    if slash <= 0:
        return [name]
    return [follow(name[:slash]) + name[slash:]]


@dataclass
class Policy:
    """The rules on files, as lists of patterns by key."""

    lists: dict[str, list[str]]
    rules: list[Rule] = field(default_factory=list)

    def bind(
        self,
        places: dict[str, str | None],
        follow: Callable[[bytes], bytes] = os.path.realpath,
        python: dict[str, list[str]] | None = None,
    ) -> None:
        """Bind to the folders of a run, as they are when it begins."""
        for key, patterns in self.lists.items():
            action, _, what = key.partition("_")
            for pattern in patterns:
                whole = [pattern]
                if pattern == "{python}":
                    whole = (python or {}).get(what, [])
                bound = [one for p in whole for one in bind(p, places, follow)]
                self.rules += [Rule(what, action == "allow", one) for one in bound]

    def fits(self, path: bytes) -> list[tuple[int, int]]:
        """How specifically each rule fits, whatever it is about."""
        return [fit(rule.pattern, path) for rule in self.rules]

    def judges(self, what: str) -> bool:
        """Tell whether anything can be denied at all."""
        return f"allow_{what}" in self.lists or any(
            not rule.allow for rule in self.rules if rule.list == what
        )

    def allows(self, what: str, path: bytes) -> bool:
        """Judge reading or writing the object at a canonical path."""
        best, verdict = (0, 0), None
        for rule in self.rules:
            if rule.list != what and not (
                what == "read" and rule.list == "write" and rule.allow
            ):
                continue
            here = fit(rule.pattern, path)
            if here == (0, 0) or here < best:
                continue
            verdict = rule.allow if here > best else verdict and rule.allow
            best = here
        return f"allow_{what}" not in self.lists if verdict is None else verdict

    def denies_inside(self, folder: bytes) -> bool:
        """Tell whether a rule may deny something in the folder that it does not deny as one."""
        return any(not r.allow and reaches(r.pattern, folder) for r in self.rules)

    def allows_inside(self, folder: bytes) -> bool:
        """Tell whether a rule may allow something in the folder that it does not allow as one."""
        return any(r.allow and reaches(r.pattern, folder) for r in self.rules)
