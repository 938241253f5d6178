"""Set up, run the tests, end in one line: N passed, N failed, N skipped.

    run_tests.py             everything: C tests, then pytest
    run_tests.py --sanitize  C tests with address and undefined behaviour sanitizers
    run_tests.py --real      every real program, where `make test` takes a sample
    run_tests.py --oracle    the policies' oracle in full, of which `make test` samples

Further arguments go to pytest. Exit code 0 when nothing failed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

import setup
import system_packages

SANITIZE_OPTIONS = (
    "-Db_sanitize=address,undefined",
    "-Db_lundef=false",
    "-Dbuildtype=debug",
)


RACES = [
    f"tests/confine/test_{name}.py" for name in ("flips", "network_races", "races")
]


@dataclass
class Count:
    """Cases by outcome. A run that ends badly without a failed case counts as one."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def add_report(self, path: Path) -> None:
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                self.failed += 1
            elif case.find("skipped") is not None:
                self.skipped += 1
            else:
                self.passed += 1

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def run_counted(command: list[str], report: Path, total: Count) -> None:
    """Run a test program and add what its JUnit report says."""
    report.parent.mkdir(parents=True, exist_ok=True)
    if report.exists():
        report.unlink()
    path = f"{setup.VENV / 'bin'}:{os.environ.get('PATH', '')}"
    # The same everywhere: without what a machine tells every interpreter.
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith("PYTHON")}  # fmt: skip
    done = subprocess.run(command, cwd=setup.ROOT, env={**kept, "PATH": path})
    failed_before = total.failed
    if report.exists():
        total.add_report(report)
    if done.returncode != 0 and total.failed == failed_before:
        print(f"exit code {done.returncode}: {' '.join(command)}", file=sys.stderr)
        total.failed += 1


def run_c_tests(folder: Path, total: Count) -> None:
    meson = str(setup.VENV / "bin/meson")
    command = [meson, "test", "-C", str(folder), "--no-rebuild", "--print-errorlogs"]
    run_counted(command, folder / "meson-logs/testlog.junit.xml", total)


def run_pytest(name: str, arguments: list[str], total: Count) -> None:
    report = setup.BUILD / f"{name}.junit.xml"
    # A worker for each core; a file's tests stay together, since some share what they
    # made.
    workers = ["-n", "auto", "--dist", "loadfile"]
    command = [
        str(setup.PYTHON),
        "-m",
        "pytest",
        "-q",
        *workers,
        f"--junitxml={report}",
    ]
    run_counted([*command, *arguments], report, total)


def install_libraries() -> None:
    """numpy and the like, for the tests of ordinary programs, when SANDPIT_LIBRARIES
    asks."""
    if os.environ.get("SANDPIT_LIBRARIES"):
        setup.install_packages(["libraries"])


def main() -> int:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--sanitize", action="store_true")
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--oracle", action="store_true")
    options, rest = parser.parse_known_args()
    total = Count()
    try:
        setup.set_up("test")
        if options.sanitize:
            folder = setup.BUILD / "sanitize"
            setup.build_tests(folder, *SANITIZE_OPTIONS)
            run_c_tests(folder, total)
        elif options.real:
            setup.install_packages(["libraries"])  # what loads exports
            run_pytest("real", ["-m", "real", "tests/real", *rest], total)
        elif options.oracle:
            run_pytest("oracle", ["-m", "oracle", "tests/oracle", *rest], total)
            os.environ.setdefault("SANDPIT_RACE_TRIES", "20000")
            run_pytest("races", ["--timeout=1800", *RACES, *rest], total)
        else:
            install_libraries()
            setup.build_tests(setup.TEST_BUILD)
            run_c_tests(setup.TEST_BUILD, total)
            run_pytest("pytest", ["-m", "not real and not oracle", *rest], total)
    except (setup.SetupFailed, system_packages.MissingPackages) as problem:
        print(problem, file=sys.stderr)
        return 1
    print(total)
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
