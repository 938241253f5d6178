"""`python -m sandpit` is the command `sandpit`."""

from __future__ import annotations

import os
import sys

from ._errors import HostError
from ._program import find_program


def main() -> int:
    """Become the native program, with this process's arguments."""
    try:
        program = find_program()
    except HostError as error:
        print(f"sandpit: {error}", file=sys.stderr)
        return 125
    os.execv(program, ["sandpit", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
