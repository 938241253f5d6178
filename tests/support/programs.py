"""The installed programs that belong to the interpreter of the tests."""

from __future__ import annotations

import sys
from pathlib import Path

PROGRAM = Path(sys.executable).parent / "sandpit"
