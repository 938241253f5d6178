"""What the tests of one module came to, read from the report that `python -m test` writes."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

# The outcome of a test that one side never reported: its class could not be set up, or
# the process ended before.
ABSENT = ("absent",)


@dataclass(frozen=True)
class Outcomes:
    """The outcomes of one run of a module.

    `tests` maps a test's id to its outcomes: several, where classes made in loops give
    the same id more than once. The module's own id stands for how its process ended.
    """

    module: str
    tests: dict[str, tuple[str, ...]]
    details: dict[str, str] = field(default_factory=dict)
    took_s: float = 0.0
    timed_out: bool = False

    def differing(self, other: Outcomes) -> dict[str, tuple[str, str]]:
        """Give id to both outcomes, for every test that ended otherwise in `other`."""
        return {
            name: ("+".join(mine), "+".join(theirs))
            for name in sorted({*self.tests, *other.tests})
            for mine in [self.tests.get(name, ABSENT)]
            for theirs in [other.tests.get(name, ABSENT)]
            if mine != theirs
        }


def read(module: str, report: Path, ending: str, took_s: float) -> Outcomes:
    """Read a JUnit report; without one, only how the process ended is known."""
    found: dict[str, list[str]] = {}
    details: dict[str, str] = {}
    for case in _cases(report):
        # A test of which a subtest failed is in the report without a name.
        name = case.get("name")
        if name is None:
            continue
        outcome, detail = _outcome(case)
        found.setdefault(name, []).append(outcome)
        if detail:
            details[name] = detail
    tests = {name: tuple(sorted(some)) for name, some in found.items()}
    tests[module] = (ending,)
    return Outcomes(module, tests, details, took_s, ending == "timeout")


def _cases(report: Path) -> list[ElementTree.Element]:
    try:
        return list(ElementTree.parse(report).getroot().iter("testcase"))
    except (OSError, ElementTree.ParseError):
        return []


def _outcome(case: ElementTree.Element) -> tuple[str, str]:
    for kind in ("error", "failure"):
        bad = case.find(kind)
        if bad is not None:
            return "failed", (bad.get("message") or bad.text or "").strip()
    if case.find("skipped") is not None:
        return "skipped", ""
    if case.find("outcome") is not None:
        return "succeeded unexpectedly", ""
    if case.find("output") is not None:
        return "failed as expected", ""
    return "passed", ""
