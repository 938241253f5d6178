"""The budgets of budgets.toml, and whether measured ratios keep them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = Path(__file__).resolve().parent / "budgets.toml"


class Budgets:
    """One section of the file; remembers what was kept and what was missed."""

    def __init__(self, section: str) -> None:
        whole: dict[str, Any] = tomllib.loads(FILE.read_text(encoding="utf-8"))
        self.section = section
        self.limits: dict[str, Any] = whole[section]
        self.kept = 0
        self.missed: list[str] = []

    def check(self, name: str, measured: float) -> None:
        """Compare one measured value with the budget of that name, or with the aim,
        which decides nothing: the machine has too large a part in it."""
        aims: dict[str, Any] = self.limits.get("aims", {})
        if name in aims:
            reached = "reached" if measured <= float(aims[name]) else "missed"
            print(f"    aim   {name}: {measured:.3f}, {aims[name]:g} {reached}")
            return
        limit = float(self.limits[name])
        verdict = "holds" if measured <= limit else "MISSED"
        print(f"  {verdict:6}  {name}: {measured:.3f}, budget {limit:g}")
        if measured <= limit:
            self.kept += 1
        else:
            self.missed.append(name)

    def finish(self) -> int:
        """Print the outcome; the exit code: 1 when a budget was missed, 2 when none
        could be measured."""
        if not self.kept and not self.missed:
            print(f"{self.section}: no verdict")
            return 2
        print(f"{self.section}: {self.kept} budgets hold, {len(self.missed)} missed")
        return 1 if self.missed else 0
