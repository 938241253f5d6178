"""The same program under plain python, under the API and under the command."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# Memory addresses, and threads' identifiers, which are addresses in decimal.
_ADDRESS = re.compile(rb"0x[0-9a-f]{6,}|\b1[34]\d{13}\b")
POLICIES = ("trace-only", "no-network")
# ... under which a program that keeps to itself is as under plain python.
ORDINARY = (*POLICIES, "default")
TIMEOUT_S = 120


@dataclass(frozen=True)
class Outcome:
    """What a caller can see of a program: its output, byte for byte, and exit code.

    As for `sandpit run`, the exit code after a death by signal S is 128 + S.
    """

    stdout: bytes
    stderr: bytes
    exit_code: int

    def __post_init__(self) -> None:
        """Blank what differs between two runs of plain python: memory addresses."""
        for stream in ("stdout", "stderr"):
            blanked = _ADDRESS.sub(b"ADDRESS", getattr(self, stream))
            object.__setattr__(self, stream, blanked)


def run_plain(
    python: object,
    argv: Sequence[object],
    *,
    cwd: Path,
    env: dict[str, str] | None = None,
    stdin: bytes | int | None = None,
) -> Outcome:
    """Run `python argv`; `stdin` is the content of a pipe, or a descriptor."""
    piped = {"input": stdin} if isinstance(stdin, bytes) else {}
    if not piped:
        piped = {"stdin": subprocess.DEVNULL if stdin is None else stdin}
    done = subprocess.run(
        [str(python), *map(str, argv)],
        cwd=cwd,
        env=env,
        capture_output=True,
        timeout=TIMEOUT_S,
        check=False,
        **piped,
    )
    code = done.returncode
    return Outcome(done.stdout, done.stderr, code if code >= 0 else 128 - code)


def run_command(
    python: object,
    argv: Sequence[object],
    *,
    policy: str,
    cwd: Path,
    env: dict[str, str] | None = None,
    stdin: bytes | int | None = None,
    options: Sequence[str] = ("--no-trace",),
    shell: str = 'exec "$@"',
) -> Outcome:
    """Run `sandpit run ... argv`, from a shell line that may redirect streams."""
    from sandpit._program import find_program

    command = [find_program(), "run", "--quiet", "--policy", policy, *options]
    command += ["--python", str(python), *map(str, argv)]
    return run_plain("sh", ["-c", shell, "sh", *command], cwd=cwd, env=env, stdin=stdin)


def outcome_of(result: object) -> Outcome:
    """Give the same view of a result."""
    return Outcome(result.stdout_bytes, result.stderr_bytes, result.exit_code)


def processes_marked(mark: str) -> list[int]:
    """Give the processes whose environment holds a word."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/environ", "rb") as stream:
                if mark.encode() in stream.read():
                    found.append(int(entry))
        except OSError:
            continue
    return found
