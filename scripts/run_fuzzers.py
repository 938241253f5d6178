"""Fuzz whatever reads what a guest, or a stranger's file, says.

    run_fuzzers.py [--seconds N] [NAME...]

Each target of tests/fuzz, or those that are named, one after the other, for ten minutes
unless told otherwise; with address and undefined behaviour sanitizers. New inputs are
kept in build/fuzz/work and begin the next time. Needs clang with libFuzzer. Exit code 1
when something was found: its input lies where the last lines say.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import setup
import system_packages

TARGETS = ("policy", "trace", "export", "ring", "notify", "outgoing")
FUZZ = setup.ROOT / "tests/fuzz"
OPTIONS = [
    "-Dtests=true",
    "-Dfuzzers=true",
    "-Db_sanitize=address,undefined",
    "-Db_lundef=false",
    "-Dbuildtype=debugoptimized",
    "-Dc_args=-fsanitize=fuzzer-no-link",
    "-Dcpp_args=-fsanitize=fuzzer-no-link",
]


def compilers() -> dict[str, str]:
    """The newest clang, as variables for Meson."""
    for suffix in ("", *(f"-{version}" for version in range(25, 10, -1))):
        if shutil.which(f"clang{suffix}") and shutil.which(f"clang++{suffix}"):
            return {"CC": f"clang{suffix}", "CXX": f"clang++{suffix}"}
    raise setup.SetupFailed("fuzzing needs clang, with libFuzzer")


def fuzz(name: str, seconds: int, build: Path) -> bool:
    """Whether nothing was found."""
    work = setup.BUILD / "fuzz/work" / name
    inputs = work / "inputs"
    inputs.mkdir(parents=True, exist_ok=True)
    seeds = [FUZZ / "corpus" / name]
    if name in ("trace", "export"):
        seeds.append(setup.ROOT / "tests/format/golden")
    engine = str(build / f"tests/fuzz/engine_{name}")
    command = [engine, f"-max_total_time={seconds}"]
    command += ["-timeout=20", "-rss_limit_mb=3000", "-max_len=16384", "-entropic=0"]
    command += ["-print_final_stats=1", "-verbosity=0", f"-artifact_prefix={work}/"]
    environment = {**os.environ, "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}
    print(f"\n{name}, {seconds} s", flush=True)
    done = subprocess.run([*command, inputs, *seeds], env=environment, check=False)
    return done.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("names", nargs="*", choices=[[], *TARGETS], metavar="NAME")
    options = parser.parse_args()
    names = options.names or TARGETS
    build = setup.BUILD / "fuzz/build"
    build.parent.mkdir(parents=True, exist_ok=True)
    try:
        setup.set_up("test")
        os.environ.update(compilers())
        setup.configure(build, OPTIONS)
        targets = [f"tests/fuzz/engine_{name}" for name in names]
        setup.run("building", [setup.VENV / "bin/ninja", "-C", build, *targets])
    except (setup.SetupFailed, system_packages.MissingPackages) as problem:
        print(problem, file=sys.stderr)
        return 1
    found = [name for name in names if not fuzz(name, options.seconds, build)]
    print(f"\nfound something: {', '.join(found)}" if found else "\nfound nothing")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
