"""What opening a file costs where each open is judged.

    files.py [--rounds N] [--calls N] [--python PATH] [--compare]

The same C program runs plain and under a policy, and opens and closes one file.
`recorded`: the file lies where reading is granted as a whole, so that the kernel opens
it once it was judged and written down. `emulated`: anything in its folder may be
denied, so that it is opened for the program. A bare open is so short that the ratio to
it says how fast the machine changes between processes; --compare measures what strace
takes to do so, stopping at opens only. Exit code 1 when a budget is missed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from each_call import Way, run

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
        chosen.append(Way(name, policy, (str(place / "file"),), "openat"))
    return chosen


if __name__ == "__main__":
    sys.exit(run(__doc__ or "", "files", PROGRAM, ways, calls=20000, rounds=10))
