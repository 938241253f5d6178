"""The stub of the extension module says what the module has."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.requires("mypy")
def test_stub_matches_the_built_module():
    command = "import sys; from mypy.stubtest import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", command, "sandpit._native"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout
