"""Functions stay short: an allow-list names the long ones, and may only shrink.

    check_complexity.py            fail on a function over the limit that is not listed,
                                   on a listed one that grew, on an entry out of date
    check_complexity.py --update   write the list anew, never with more or longer ones

C functions of src/ count from the opening brace to the closing one, Python functions
of the package, scripts and bench without signature and docstring.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

LIMIT = 60
LIST = Path("scripts/complexity.txt")
HEADER = (
    f"# Functions of more than {LIMIT} lines (lines, file, name); may only shrink.\n"
)
PYTHON_TREES = ("python", "scripts", "bench", "policies", "examples")

# Clang-format puts the brace that opens a function, and the one that ends it, in column
# 0.
SIGNATURE = re.compile(r"([A-Za-z_]\w*)\s*\([^;{}]*\)[^;{}()]*\Z")


def c_functions(path: Path) -> dict[str, int]:
    sizes: dict[str, int] = {}
    start = 0
    name = ""
    before: list[str] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line == "{":
            match = SIGNATURE.search(" ".join(before))
            name, start = (match.group(1) if match else ""), number
        elif line == "}" and name:
            sizes[name] = max(sizes.get(name, 0), number - start + 1)
            name = ""
        before = (
            [] if not line.strip() or line.startswith(("}", "#")) else [*before, line]
        )
    return sizes


def python_functions(path: Path) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            size = (node.end_lineno or node.lineno) - node.body[0].lineno + 1
            if ast.get_docstring(node) is not None:
                text = node.body[0]
                size -= (text.end_lineno or text.lineno) - text.lineno + 1
            sizes[node.name] = max(sizes.get(node.name, 0), size)
    return sizes


def long_functions() -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for pattern in ("*.c", "*.cpp"):
        for path in sorted(Path("src").rglob(pattern)):
            for name, size in c_functions(path).items():
                found[str(path), name] = size
    for tree in PYTHON_TREES:
        for path in sorted(Path(tree).rglob("*.py")):
            for name, size in python_functions(path).items():
                found[str(path), name] = size
    return {key: size for key, size in found.items() if size > LIMIT}


def read_list() -> dict[tuple[str, str], int]:
    listed: dict[tuple[str, str], int] = {}
    if LIST.exists():
        for line in LIST.read_text().splitlines():
            if line and not line.startswith("#"):
                size, file, name = line.split()
                listed[file, name] = int(size)
    return listed


def problems(
    found: dict[tuple[str, str], int], listed: dict[tuple[str, str], int]
) -> list[str]:
    messages = []
    for (file, name), size in sorted(found.items()):
        bound = listed.get((file, name), LIMIT)
        if size > bound:
            messages.append(f"{file}: {name} has {size} lines, more than {bound}")
    for (file, name), size in sorted(listed.items()):
        if found.get((file, name), 0) < size:
            messages.append(
                f"{file}: {name} is shorter than listed: run this with --update"
            )
    return messages


def update(
    found: dict[tuple[str, str], int], listed: dict[tuple[str, str], int]
) -> None:
    """Keep what is listed and still long, at the smaller size."""
    kept = {key: min(size, listed[key]) for key, size in found.items() if key in listed}
    lines = [f"{size} {file} {name}\n" for (file, name), size in sorted(kept.items())]
    LIST.write_text(HEADER + "".join(lines))


def main() -> int:
    found, listed = long_functions(), read_list()
    if sys.argv[1:] == ["--update"]:
        update(found, listed)
        return 0
    messages = problems(found, listed)
    print("\n".join(messages), file=sys.stderr, end="\n" if messages else "")
    return 1 if messages else 0


if __name__ == "__main__":
    sys.exit(main())
