"""What opening a file costs where each open is judged.

    files.py [--rounds N] [--calls N] [--python PATH]

The same C program runs plain and under a policy, and opens and closes one file.
`recorded`: the file lies where reading is granted as a whole, so that the kernel opens
it once it was judged and written down. `emulated`: anything in its folder may be
denied, so that it is opened for the program. Exit code 1 when a budget is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from budgets import Budgets
from each_call import Way, measure

PROGRAM = r"""
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    for (int i = 0, calls = atoi(argv[2]); i < calls; i++) {
        int fd = open(argv[1], O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return 1;
        close(fd);
    }
    (void)argc;
    return 0;
}
"""


def ways(folder: Path) -> list[Way]:
    """Two folders alike, with a file each; by a glob anything in the second may be
    denied."""
    chosen = []
    denied = {"recorded": str(folder / "elsewhere"), "emulated": "**/secret"}
    for name, pattern in denied.items():
        place = folder / name
        place.mkdir()
        (place / "file").write_text("text\n")
        policy = (
            f"[fs]\nallow_read = {json.dumps(['/', str(place)])}\n"
            f"deny_read = {json.dumps([pattern])}\n[process]\n"
            f"allow = {json.dumps(['{python}', str(folder / 'program')])}\n"
        )
        chosen.append(Way(name, policy, (str(place / "file"),)))
    return chosen


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10, help="of many calls each")
    parser.add_argument("--calls", type=int, default=20000)
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    python = os.path.abspath(options.python)
    budgets = Budgets("files")
    with tempfile.TemporaryDirectory(prefix="sandpit-bench-") as name:
        folder = Path(name).resolve()
        costs = measure(folder, PROGRAM, ways(folder), calls=options.calls,
                        rounds=options.rounds, python=python)  # fmt: skip
    for way, cost in costs.items():
        budgets.check(f"{way} open, CPU", cost.ratio)
    return budgets.finish()


if __name__ == "__main__":
    sys.exit(main())
