"""Much at once through the standard streams: nothing is lost, and nothing stands still."""

from __future__ import annotations

import subprocess

import pytest

pytestmark = pytest.mark.requires("program")

BYTES = 8 << 20
PATTERN = bytes(range(256)) * (BYTES // 256)


def run(sandpit, script: str, **streams) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        sandpit.argv(script, options=("--no-trace",)),
        cwd=sandpit.folder,
        timeout=60,
        check=False,
        **streams,
    )


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("piece", [4096, 65536, 1 << 20])
def test_output_larger_than_every_buffer(sandpit, number, piece):
    script = f"""
import os
data = bytes(range(256)) * ({piece} // 256)
for _ in range({BYTES // piece}):
    rest = data
    while rest:
        rest = rest[os.write({number}, rest):]
"""
    done = run(sandpit, script, stdin=subprocess.DEVNULL, capture_output=True)
    assert done.returncode == 0
    assert (done.stdout, done.stderr)[number - 1] == PATTERN


def test_input_larger_than_every_buffer(sandpit):
    script = "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())"
    done = run(sandpit, script, input=PATTERN, capture_output=True)
    assert done.returncode == 0
    assert done.stdout == PATTERN
