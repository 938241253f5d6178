"""Write the tables of docs/policy-reference.md from the schema of policy files.

policy_reference.py SANDPIT [--check]

Each table stands between `<!-- keys: SECTION -->` and `<!-- end -->`; what is between
them is replaced. With --check nothing is written: exit 1 when it would be.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "policy-reference.md"
TABLE = re.compile(r"(<!-- keys: (\w*) -->\n).*?(<!-- end -->)", re.DOTALL)


def kind_of(schema: dict[str, Any]) -> str:
    """Say in words what a value may be."""
    if "enum" in schema:
        words = [f'`"{word}"`' for word in schema["enum"]]
        return f"{', '.join(words)}; the first when it is not given"
    if schema.get("type") == "array":
        return "list of patterns"
    if schema.get("type") == "boolean":
        return "`true` or `false`; `true` when it is not given"
    if "anyOf" in schema:
        pattern, _number = schema["anyOf"]
        if "(ns|us|ms|s|m|h)" in pattern["pattern"]:
            return '`"30s"`, `"500ms"`, `"2m"`, `"1h"`, or seconds'
        if "KiB" in pattern["pattern"]:
            return '`"64MiB"`, `"1GiB"`, or bytes'
        return "whole number"
    return "text"


def table(section: str, schema: dict[str, Any]) -> str:
    """Give one section's keys as a table; `_add` keys are spoken of in the text."""
    properties = schema["properties"]
    if section:
        properties = properties[section]["properties"]
    rows = [
        f"| `{key}` | {kind_of(of_key)} | {of_key['description']} |\n"
        for key, of_key in properties.items()
        if "properties" not in of_key and not key.endswith("_add")
    ]
    return "| key | value | what it says |\n|---|---|---|\n" + "".join(rows)


def main() -> int:
    program, *options = sys.argv[1:]
    schema = json.loads(subprocess.check_output([program, "policy", "schema"]))
    old = DOCUMENT.read_text(encoding="utf-8")
    new = TABLE.sub(lambda found: found[1] + table(found[2], schema) + found[3], old)
    sections = {name for name, of in schema["properties"].items() if "properties" in of}
    missing = sections - {found[1] for found in TABLE.findall(old)}
    if missing:
        print(f"{DOCUMENT} has no table for {sorted(missing)}", file=sys.stderr)
        return 1
    if options == ["--check"]:
        if old != new:
            print(f"{DOCUMENT} is not up to date", file=sys.stderr)
        return int(old != new)
    DOCUMENT.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
