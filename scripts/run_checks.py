"""Everything that judges the text of the project without running it.

run_checks.py            every check
run_checks.py NAME...    some of them: format tidy layers headers complexity types lint
run_checks.py --write    lay out the C sources as `format` wants them
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Callable

import setup
import system_packages

TIDY_JOBS = max(1, os.cpu_count() or 1)


def tracked(*patterns: str) -> list[str]:
    command = [
        "git",
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
        *patterns,
    ]
    answer = subprocess.run(
        command, cwd=setup.ROOT, capture_output=True, text=True, check=True
    )
    return [name for name in answer.stdout.split() if (setup.ROOT / name).is_file()]


def passes(*command: str) -> bool:
    return subprocess.run(command, cwd=setup.ROOT).returncode == 0


def script(name: str, *arguments: str) -> bool:
    return passes(str(setup.PYTHON), f"scripts/{name}", *arguments)


def laid_out(*options: str) -> bool:
    files = tracked("src/*.c", "src/*.h", "tests/unit/*.c", "tests/unit/*.h")
    return passes(str(setup.VENV / "bin/clang-format"), *options, *files)


def check_tidy() -> bool:
    """clang-tidy over every C file that the test build compiles, a few at a time."""
    setup.build_tests(setup.TEST_BUILD)
    files = [name for name in tracked("src/*.c") if "agent" not in Path(name).parts]
    command = ["clang-tidy", "--quiet", "-p", str(setup.TEST_BUILD)]
    listed = "\0".join(files).encode()
    done = subprocess.run(
        ["xargs", "-0", "-n", "4", "-P", str(TIDY_JOBS), *command],
        cwd=setup.ROOT,
        input=listed,
        stderr=subprocess.PIPE,
    )
    # Its count of suppressed warnings goes to stderr; show that only with a finding.
    if done.returncode != 0:
        sys.stderr.write(done.stderr.decode(errors="replace"))
    return done.returncode == 0


CHECKS: dict[str, Callable[[], bool]] = {
    "format": lambda: laid_out("--dry-run", "--Werror"),
    "layers": lambda: script("check_layers.py"),
    "headers": lambda: script("check_headers.py"),
    "complexity": lambda: script("check_complexity.py"),
    "lint": lambda: passes(str(setup.VENV / "bin/ruff"), "check", "--quiet", "."),
    "types": lambda: passes(str(setup.VENV / "bin/mypy"), "--no-error-summary"),
    "tidy": check_tidy,
}


def main() -> int:
    write = sys.argv[1:] == ["--write"]
    names = list(CHECKS) if write else sys.argv[1:] or list(CHECKS)
    unknown = [name for name in names if name not in CHECKS]
    if unknown:
        print(
            f"no such check: {unknown[0]} (there are {', '.join(CHECKS)})",
            file=sys.stderr,
        )
        return 2
    failed = []
    try:
        setup.set_up("check")
        if write:
            return 0 if laid_out("-i") else 1
        for name in names:
            passed = CHECKS[name]()
            print(f"{name}: {'ok' if passed else 'FAILED'}", flush=True)
            failed += [] if passed else [name]
    except (setup.SetupFailed, system_packages.MissingPackages) as problem:
        print(problem, file=sys.stderr)
        return 1
    print(f"{len(names) - len(failed)} checks passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
