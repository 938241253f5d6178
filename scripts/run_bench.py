"""Measure everything in bench/ against its budgets.

    run_bench.py [NAME...]   all, or some of BENCHES

Calls are measured for each interpreter of CALLED that the machine has, with VizTracer
and cProfile in the same rounds. Exit code 1 when a budget is missed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pythons
import setup
import system_packages

BENCHES = {
    "startup": ["--compare"],
    "network": ["--compare"],
    "files": ["--compare"],
    "large": [],
    "traces": [],
    "memory": [],
    "calls": ["--compare"],
}
CALLED = ((3, 11), (3, 13))


def called_python(version: tuple[int, int], path: str) -> Path:
    """An environment of that interpreter with VizTracer in it."""
    folder = setup.BUILD / "bench" / f"{version[0]}.{version[1]}"
    python = folder / "bin/python"
    done = subprocess.run([python, "-c", "import viztracer"], capture_output=True) \
        if python.exists() else None  # fmt: skip
    if done is None or done.returncode != 0:
        setup.run("creating an environment", [path, "-m", "venv", "--clear", folder])
        pip = [python, "-m", "pip", "install", "--disable-pip-version-check"]
        setup.run("installing VizTracer", [*pip, "viztracer"])
    return python


def commands(name: str) -> list[list[str]]:
    """The command lines of one bench."""
    base = [str(setup.PYTHON), f"bench/{name}.py", *BENCHES[name]]
    if name != "calls":
        return [base]
    found = pythons.find()
    chosen = [version for version in CALLED if version in found] or [max(found)]
    return [
        [*base, "--python", str(called_python(version, found[version]))]
        for version in chosen
    ]


def main() -> int:
    names = sys.argv[1:] or list(BENCHES)
    unknown = [name for name in names if name not in BENCHES]
    if unknown:
        print(f"no such bench: {', '.join(unknown)}; there are {', '.join(BENCHES)}",
              file=sys.stderr)  # fmt: skip
        return 2
    missed = []
    try:
        setup.set_up("bench")
        for name in names:
            for command in commands(name):
                print(f"\n{' '.join(command[1:])}", flush=True)
                if subprocess.run(command, cwd=setup.ROOT).returncode != 0:
                    missed.append(" ".join(command[1:]))
    except (setup.SetupFailed, system_packages.MissingPackages) as problem:
        print(problem, file=sys.stderr)
        return 1
    print("\nevery budget holds" if not missed else "\nmissed a budget:")
    print("\n".join(f"  {command}" for command in missed))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
