"""Fail on an #include that goes up the layers, or sideways.

check_layers.py [SRC]
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import layers

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
SUFFIXES = {".c", ".h", ".cpp", ".hpp", ".inc"}


def problems(source: Path) -> list[str]:
    found = []
    for path in sorted(source.rglob("*")):
        if path.suffix not in SUFFIXES:
            continue
        layer = path.relative_to(source).parts[0]
        if layer not in layers.BUILT_ON:
            found.append(
                f"{path}: folder '{layer}' is no layer (see scripts/layers.py)"
            )
            continue
        allowed = layers.below(layer)
        text = path.read_text(encoding="utf-8")
        for match in INCLUDE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            target = match.group(1).split("/")[0]
            where = f"{path}:{line}"
            if ".." in match.group(1).split("/"):
                found.append(f"{where}: includes are named from src/, not with '..'")
            elif target in layers.BUILT_ON and target not in allowed:
                found.append(f"{where}: {layer}/ must not include {target}/")
    return found


def main() -> int:
    source = Path(sys.argv[1] if len(sys.argv) > 1 else "src")
    found = problems(source)
    print("\n".join(found), file=sys.stderr, end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
