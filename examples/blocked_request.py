"""Run a program that a language model might have written, and see what it tried.

The program fetches a page. Under the policy `no-network` it cannot: the import is
refused with the rule and the remedy, the program ends as it would under plain Python,
and the trace shows what happened. Run with `make demo`, or with any Python that has
sandpit installed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import sandpit

CODE = 'import requests\nrequests.get("http://example.com")\n'
TRACE = "llm-run.sptrace"


def show_command(*arguments: str) -> None:
    """Print a command line of sandpit, and what it prints."""
    program = Path(sys.executable).parent / "sandpit"
    print(f"\n$ sandpit {' '.join(arguments)}", flush=True)
    subprocess.run([str(program), *arguments], check=False)


def main() -> None:
    print("the program:")
    for line in CODE.splitlines():
        print(f"    {line}")

    result = sandpit.run_string(CODE, policy="no-network")

    print(f"\nexit code {result.exit_code}, status {result.status}")
    print("\nit printed on stderr:")
    for line in result.stderr.splitlines():
        print(f"    {line}")

    print(f"\nviolations: {len(result.violations)}")
    for violation in result.violations:
        print(f"    {violation.message}")
        print(f"    line {violation.line}, rule: {violation.rule}")
        print(f"    to allow it: {violation.hint}")

    result.save(TRACE)
    print(f"\nits trace: {TRACE}, {len(result.trace)} events")
    show_command("verify", TRACE)
    show_command("show", TRACE)


if __name__ == "__main__":
    main()
