"""Every header compiles alone, and its guard carries its own path.

    check_headers.py [SRC]

Headers that need Python.h are compiled with the running interpreter's include folder.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def guard_of(header: Path, source: Path) -> str:
    words = [
        part.upper().replace("-", "_") for part in header.relative_to(source).parts
    ]
    return "SP_" + "_".join(words).replace(".", "_")


def problem_with(header: Path, source: Path) -> str:
    """What is wrong with one header, "" when nothing is."""
    text = header.read_text(encoding="utf-8")
    guard = guard_of(header, source)
    if f"#ifndef {guard}\n#define {guard}\n" not in text:
        return f"{header}: the include guard is not {guard}"
    include = sysconfig.get_paths()["include"]
    compiler = os.environ.get("CC", "cc")
    command = [
        compiler,
        "-std=gnu17",
        "-D_GNU_SOURCE",
        "-Wall",
        "-Wextra",
        "-fsyntax-only",
    ]
    command += ["-I", str(source), "-isystem", include, "-x", "c", "-"]
    # Twice, so that the guard is tried too.
    program = f'#include "{header.relative_to(source)}"\n' * 2
    done = subprocess.run(command, input=program, capture_output=True, text=True)
    if done.returncode != 0:
        return f"{header}: does not compile alone\n{done.stderr.rstrip()}"
    return ""


def main() -> int:
    source = Path(sys.argv[1] if len(sys.argv) > 1 else "src")
    headers = sorted(source.rglob("*.h"))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        answers = pool.map(lambda header: problem_with(header, source), headers)
        found = [answer for answer in answers if answer]
    print("\n".join(found), file=sys.stderr, end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
