"""Random policies on the files of a tree."""

from __future__ import annotations

import json
import os
import random
from typing import TYPE_CHECKING

from trees import NAMES, Entry

if TYPE_CHECKING:
    from collections.abc import Sequence


def text(path: bytes) -> str | None:
    """Give a path as a policy can name it; None if it cannot."""
    try:
        name = path.decode()
    except UnicodeDecodeError:
        return None
    return None if any(c in name for c in "*?[") else name


def pattern(rng: random.Random, root: bytes, entries: Sequence[Entry]) -> str:
    """Name something of the tree: itself, what is like it, or what is not there."""
    while True:
        path = rng.choice(entries).path
        if rng.random() < 0.2:
            path += b"/" + rng.choice(NAMES)
        name = text(path)
        if name is None:
            continue
        folder, last = os.path.split(name)
        folder = folder or rng.choice("wo")
        full = f"{os.fsdecode(root)}/{name}"
        below = name[2:]
        chance = rng.random()
        if chance < 0.35:
            return full
        if chance < 0.5:
            return "{work}/" + below if name.startswith("w/") else "{work}"
        if chance < 0.58:
            return full + rng.choice(["/", "/**"])
        if chance < 0.68:
            return f"**/{last}"
        if chance < 0.76:
            return f"{os.fsdecode(root)}/{folder}/*.txt"
        if chance < 0.82:
            return f"{os.fsdecode(root)}/**/{last}"
        if chance < 0.88:
            return f"{os.fsdecode(root)}/*/{last}"
        if chance < 0.93:
            return f"{os.fsdecode(root)}/{folder}/[{last[0]}k]*"
        if chance < 0.97:
            return f"{os.fsdecode(root)}/{folder}/{last[:-1]}?"
        return "*"


def random_policy(
    rng: random.Random, root: bytes, entries: Sequence[Entry], always: Sequence[str]
) -> dict[str, list[str]]:
    """Give lists by key; `always` is read under each."""
    lists: dict[str, list[str]] = {}
    for key, chance in (
        ("allow_read", 0.35), ("deny_read", 0.6), ("allow_write", 0.6),
        ("deny_write", 0.6),
    ):  # fmt: skip
        if rng.random() < chance:
            count = rng.choice([1, 2, 2, 3, 5])
            lists[key] = [pattern(rng, root, entries) for _ in range(count)]
    if "allow_read" in lists or "*" in lists.get("deny_read", []):
        lists.setdefault("allow_read", []).extend(always)
    if not lists:
        lists["deny_write"] = [pattern(rng, root, entries)]
    return lists


def toml(lists: dict[str, list[str]]) -> str:
    """Write the policy file."""
    lines = ["[fs]"]
    for key, patterns in lists.items():
        lines.append(f"{key} = [{', '.join(json.dumps(p, ensure_ascii=False) for p in patterns)}]")
    return "\n".join(lines) + "\n"
