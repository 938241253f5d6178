"""CPython's own tests, by module: plainly and under `trace-only`, outcome by outcome.

    run_suite.py [--python VERSION|PATH] [MODULE | MODULE:PATTERN ...]

Every test must end as it does without sandpit: passed, failed or skipped. What differs is
tried again, since some tests of CPython are not steady themselves; what differs each time
is reported, unless `exclusions.toml` says why it does. Of a module with a pattern only the
tests that match run. Exit code 0 when nothing is left.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import shutil
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import exclusions
import interpreters
import places

ROOT = Path(__file__).resolve().parents[2]
ATTEMPTS = 3


@dataclass
class Compared:
    """One module: what differs, and why that is all right, if it is."""

    module: str
    tests: int = 0
    left: dict[str, tuple[str, str]] = field(default_factory=dict)
    needed: set[exclusions.Exclusion] = field(default_factory=set)
    details: dict[str, str] = field(default_factory=dict)
    took_s: tuple[float, float] = (0.0, 0.0)
    not_run: str | None = None

    def line(self) -> str:
        """One line for the terminal."""
        if self.not_run:
            return f"{self.module}: not run: {self.not_run}"
        verdict = f"{len(self.left)} DIFFER" if self.left else "same"
        excluded = f", {len(self.needed)} excluded" if self.needed else ""
        plain, confined = self.took_s
        return (
            f"{self.module}: {self.tests} tests, {verdict}{excluded}"
            f" ({plain:.1f} s plain, {confined:.1f} s confined)"
        )


def compare(
    place: places.Place,
    module: str,
    listed: exclusions.Exclusions,
    kept: Path,
    limit_s: float,
) -> Compared:
    """Run a module both ways until nothing differs, at most three times."""
    result = Compared(module)
    module, _, pattern = module.partition(":")
    selected = ["--match", pattern] if pattern else []
    for one in listed.left_out(place.version, module):
        selected += ["--ignore", one]
    differing: dict[str, tuple[str, str]] = {}
    for attempt in range(ATTEMPTS):
        folder = kept / module / str(attempt)
        plain = place.run(
            module,
            folder / "plain",
            confined=False,
            limit_s=limit_s,
            selected=selected,
        )
        if plain.timed_out:
            result.not_run = f"takes more than {limit_s:.0f} s"
            return result
        patience_s = places.PATIENCE * plain.took_s + places.PATIENCE_S
        confined = place.run(
            module,
            folder / "confined",
            confined=True,
            limit_s=patience_s,
            selected=selected,
        )
        result.took_s = (plain.took_s, confined.took_s)
        result.tests = len(plain.tests) - 1
        now = plain.differing(confined)
        differing = {
            name: both
            for name, both in now.items()
            if attempt == 0 or name in differing
        }
        result.left, _ = listed.split(place.version, differing)
        # An entry was needed if its test differed once: then it is not stale.
        result.needed |= listed.split(place.version, now)[1]
        result.details = {name: confined.details.get(name, "") for name in result.left}
        if not result.left:
            shutil.rmtree(kept / module, ignore_errors=True)
            break
    return result


def choose(wanted: str) -> str:
    """The interpreter of a version, or at a path; the newest with tests if none is named."""
    if os.sep in wanted:
        return wanted
    found = [one for one in interpreters.find() if one.has("test.test_os")]
    for one in reversed(found):
        if wanted in ("", "{}.{}".format(*one.version)):
            return one.path
    labels = ", ".join(one.label for one in found) or "none"
    sys.exit(
        f"no Python {wanted or '3.9 or newer'} with CPython's tests (found: {labels})"
    )


def run_all(
    place: places.Place,
    modules: list[str],
    listed: exclusions.Exclusions,
    kept: Path,
    options: argparse.Namespace,
) -> list[Compared]:
    """Compare some modules, several at a time, and say how each went."""
    results = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        waiting = [
            pool.submit(compare, place, one, listed, kept, options.limit)
            for one in modules
        ]
        for count, done in enumerate(concurrent.futures.as_completed(waiting), 1):
            result = done.result()
            results.append(result)
            print(f"[{count}/{len(modules)}] {result.line()}", flush=True)
            for name, (plain, confined) in result.left.items():
                print(f"    {name}: {plain}, under sandpit {confined}")
                for line in result.details[name].splitlines()[-3:]:
                    print(f"        {line}")
    return results


def conclude(
    place: places.Place, results: list[Compared], listed: exclusions.Exclusions
) -> int:
    """Name what is stale; the closing line; the exit code."""
    ran = [one.module for one in results if not one.not_run]
    whole = [one for one in ran if ":" not in one]
    needed = set().union(*(one.needed for one in results))
    stale = listed.stale(place.version, whole, needed)
    for one in stale:
        print(f"stale: {one.id} no longer differs; remove it from exclusions.toml")
    differ = sum(len(one.left) for one in results)
    tests = sum(one.tests for one in results)
    print(
        f"CPython {place.version}: {tests} tests of {len(ran)} modules, {differ} differ,"
        f" {len(needed)} excluded, {len(stale)} stale,"
        f" {len(results) - len(ran)} modules not run"
    )
    return 1 if differ or stale else 0


def main() -> int:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--python", default="", help="a version as 3.13, or a path")
    parser.add_argument("--program", default=shutil.which("sandpit"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds a module")
    parser.add_argument(
        "--slow", action="store_true", help="also what is listed as not run"
    )
    parser.add_argument("--kept", type=Path, default=ROOT / "build/cpython")
    parser.add_argument("modules", nargs="*")
    options = parser.parse_args()
    # A shell starts background jobs with SIGINT ignored, and tests interrupt themselves.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if options.program is None:
        sys.exit(
            "no sandpit on PATH: build it (`make demo`), or name it with --program"
        )
    listed = exclusions.load()
    place = places.find(choose(options.python), options.program)
    modules = options.modules or place.modules()
    left_out = {one: listed.why_not_run(place.version, one) for one in modules}
    if options.slow or options.modules:
        left_out = dict.fromkeys(modules)
    kept = options.kept / place.version
    running = [one for one in modules if not left_out[one]]
    results = run_all(place, running, listed, kept, options)
    results += [Compared(one, not_run=why) for one, why in left_out.items() if why]
    return conclude(place, results, listed)


if __name__ == "__main__":
    sys.exit(main())
