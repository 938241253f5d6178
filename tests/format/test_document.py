"""The document, the schema, the list of kinds and the golden traces say the same."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import reference
from schema import problems

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs/trace-format.md").read_text()
SCHEMA = json.loads((ROOT / "docs/trace.schema.json").read_text())
KINDS = re.findall(
    r'^SP_KIND\(\w+, "(\w+)"', (ROOT / "src/event/kinds.def").read_text(), re.MULTILINE
)


def documented_kinds() -> list[str]:
    table = DOCUMENT.split("\n## Kinds\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", table, re.MULTILINE)
    return [kind for row in rows for kind in re.findall(r"`(\w+)`", row)]


def test_document_has_a_row_for_every_kind():
    assert sorted(documented_kinds()) == sorted(KINDS)


def test_schema_has_a_part_for_every_kind():
    assert set(SCHEMA["$defs"]) == {*KINDS, "return"}
    assert {part["then"]["$ref"].split("/")[-1] for part in SCHEMA["allOf"]} == set(
        SCHEMA["$defs"]
    )


@pytest.mark.parametrize(
    "name", ["good", "lossy", "future_kind", "cut_before_end", "signed"]
)
def test_schema_accepts_golden_lines_and_what_readers_make_of_them(golden, name):
    lines = [json.loads(line) for line in golden(name).read_bytes().splitlines()]
    for event in [*lines, *reference.events(golden(name))]:
        assert list(problems(event, SCHEMA, SCHEMA)) == [], event


@pytest.mark.parametrize(
    ("member", "value"),
    [("seq", -1), ("t", "5000"), ("kind", "Open"), ("layer", "guest"), ("path", 7)],
)
def test_schema_refuses_wrong_members(golden, member, value):
    event = json.loads(golden("good").read_bytes().splitlines()[5])
    assert list(problems({**event, member: value}, SCHEMA, SCHEMA)) != []


def test_examples_in_the_document_are_from_the_golden_trace(golden):
    blocks = re.findall(r"^```json\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)
    lines = golden("good").read_text(errors="surrogateescape").splitlines()
    events = [
        *map(json.loads, lines),
        *reference.events(golden("good")),
    ]
    examples = [line for block in blocks for line in block.splitlines()]
    assert len(examples) > 4
    for example in examples:
        if example.startswith(","):
            assert any(line.endswith(example) for line in lines)
            continue
        wanted = json.loads(example)
        assert any({**event, **wanted} == event for event in events)
