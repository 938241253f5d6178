"""The list of what may differ, and of what is not run: `exclusions.toml`.

The list may only shrink: an entry that no run needs any more is reported as stale.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PATH = Path(__file__).with_name("exclusions.toml")
KEYS = {"tests", "reason", "versions", "sometimes"}
# How a module ends that passes plainly, and of which a test fails otherwise.
FAILED = ("exit code 0", "exit code 2")


@dataclass(frozen=True)
class Exclusion:
    """A test, what holds it, or a module; why; for which versions ("3.13"; all if none)."""

    id: str
    reason: str
    versions: tuple[str, ...] = ()
    # Depends on timing: seen in some runs only, so that a run without it proves nothing.
    sometimes: bool = False

    def covers(self, version: str, name: str) -> bool:
        """Say whether it is about this test: its own id, or that of what holds it."""
        if self.versions and version not in self.versions:
            return False
        return name == self.id or name.startswith(self.id + ".")

    def is_of(self, version: str, module: str) -> bool:
        """Say whether it is about a test of the module: "test.test_x.Class.test_y"."""
        inner = self.id[5:] if self.id.startswith("test.") else self.id
        return self.covers(version, self.id) and (
            inner == module or inner.startswith(module + ".")
        )


@dataclass(frozen=True)
class Exclusions:
    """What differs for a reason, and what takes too long to be run."""

    differs: tuple[Exclusion, ...]
    not_run: tuple[Exclusion, ...]

    def why_not_run(self, version: str, module: str) -> str | None:
        """The reason a module is left out; None if it is to be run."""
        for one in self.not_run:
            if one.covers(version, module):
                return one.reason
        return None

    def left_out(self, version: str, module: str) -> list[str]:
        """The single tests of a module that are not run, on neither side."""
        return [
            one.id
            for one in self.not_run
            if one.id != module and one.is_of(version, module)
        ]

    def split(
        self, version: str, differing: dict[str, tuple[str, str]]
    ) -> tuple[dict[str, tuple[str, str]], set[Exclusion]]:
        """Give the differences that no entry covers, and the entries that were needed."""
        left: dict[str, tuple[str, str]] = {}
        needed: set[Exclusion] = set()
        for name, both in differing.items():
            covering = [one for one in self.differs if one.covers(version, name)]
            needed.update(covering)
            if not covering:
                left[name] = both
        # The module's own ending follows from tests that are excluded.
        if len(left) == 1 and needed and FAILED in left.values():
            left.clear()
        return left, needed

    def stale(
        self, version: str, modules: list[str], needed: set[Exclusion]
    ) -> list[Exclusion]:
        """The entries about modules that ran, of which nothing differed."""
        return [
            one
            for one in self.differs
            if one not in needed
            and not one.sometimes
            and any(one.is_of(version, module) for module in modules)
        ]


def load(path: Path = PATH) -> Exclusions:
    """Read the list; ValueError says what is wrong with an entry."""
    with open(path, "rb") as stream:
        tables = tomllib.load(stream)
    unknown = set(tables) - {"differs", "not-run"}
    if unknown:
        raise ValueError(f"{path}: no such list: {sorted(unknown)[0]}")
    return Exclusions(
        tuple(
            one for table in tables.get("differs", []) for one in _entry(path, table)
        ),
        tuple(
            one for table in tables.get("not-run", []) for one in _entry(path, table)
        ),
    )


def _entry(path: Path, table: dict[str, Any]) -> list[Exclusion]:
    tests = table.get("tests", [])
    name = tests[0] if tests else "(no tests)"
    lacking = {"tests", "reason"} - set(table)
    unknown = set(table) - KEYS
    if lacking or unknown:
        what = f"lacks {min(lacking)}" if lacking else f"has {min(unknown)}"
        raise ValueError(f"{path}: the entry of {name} {what}")
    versions = tuple(table.get("versions", ()))
    sometimes = table.get("sometimes", False)
    return [Exclusion(one, table["reason"], versions, sometimes) for one in tests]
