"""The shared conformance programs: which apply, and what their own runner says."""

from __future__ import annotations

import functools
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from abilities import require, shared_folder
from interpreters import find as find_pythons

_HEADER = re.compile(r'^#:\s*(id)\s*=\s*"([^"]*)"', re.MULTILINE)


@dataclass(frozen=True)
class Case:
    """One program of the corpus, by its header."""

    id: str
    path: Path


def cases(kind: str) -> list[Case]:
    """Give the programs of `attacks` or `benign`."""
    shared = shared_folder("corpus")
    if shared is None:
        return []
    found = []
    for path in sorted((shared / "corpus" / "handed" / kind).glob("*.py")):
        header = dict(_HEADER.findall(path.read_text(encoding="utf-8")))
        found.append(Case(header["id"], path))
    return found


@functools.cache
def results(
    kind: str, folder: Path, *, plain: bool = False
) -> dict[str, dict[str, object]]:
    """Run all of a kind at once and give each one's result by its id.

    `plain` runs them without a sandbox: there the effect of an attack must show.
    """
    from sandpit._program import find_program

    # The runner reads TOML.
    runner = next(one for one in find_pythons() if one.version >= (3, 11)).path
    shared = shared_folder("corpus")
    assert shared is not None
    report = folder / f"{kind}-{'plain' if plain else 'sandpit'}.json"
    done = subprocess.run(
        [
            runner,
            str(shared / "corpus" / "run_corpus.py"),
            str(shared / "corpus" / "handed" / kind),
            *(["--plain"] if plain else ["--sandpit", find_program()]),
            "--python",
            sys.executable,
            "--json",
            str(report),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if not report.exists():
        raise AssertionError(f"the corpus runner failed: {done.stdout}{done.stderr}")
    return {one["id"]: one for one in json.loads(report.read_text())}


def faults(kind: str, case: Case, folder: Path, *, plain: bool = False) -> object:
    """Give what the corpus's own runner finds wrong with a case."""
    result = results(kind, folder, plain=plain)[case.id]
    if result["skip"]:
        require("corpus-needs", str(result["skip"]))
    return result["faults"]
