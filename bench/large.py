"""What a large policy and a large tree add to a start.

    large.py [--rounds N] [--python PATH]

`sandpit run hello.py` under `default`, in an empty folder; and under a policy that adds
a thousand rules to it, in a folder with a hundred thousand files. Exit code 1 when a
budget is missed.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from budgets import Budgets
from startup import HELLO, environment_of, sandpit_command
from timing import Command, time_in_turn

FOLDERS = 1000
FILES_EACH = 100
RULES_EACH = 200


def make_tree(root: Path) -> None:
    """A hundred thousand files in a thousand folders."""
    for i in range(FOLDERS):
        folder = root / f"d{i}"
        folder.mkdir(parents=True)
        for j in range(FILES_EACH):
            os.close(os.open(folder / f"f{j}", os.O_CREAT | os.O_WRONLY, 0o644))


def policy_text(root: Path) -> str:
    """A thousand rules: paths that are there, globs, hosts and modules."""
    count = range(RULES_EACH)
    quoted = {
        "fs.deny_read_add": [f"{root}/d{i}/f{i % FILES_EACH}" for i in count]
        + [f"{root}/d{i}/**/*.key{i}" for i in count],
        "fs.allow_write_add": [f"{root}/d{500 + i}" for i in count],
        "network.deny_add": [f"h{i}.example.com" for i in count],
        "imports.deny_add": [f"module{i}.part" for i in count],
    }
    lines = ['extends = "default"']
    for key, values in quoted.items():
        lines.append(f"{key} = [{', '.join(map(repr, values))}]")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40, help="40 for a verdict")
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    python = os.path.abspath(options.python)
    program = str(Path(sys.executable).parent / "sandpit")
    budgets = Budgets("large")
    with tempfile.TemporaryDirectory(prefix="sandpit-bench-") as name:
        root = Path(name).resolve()
        (root / "empty").mkdir()
        make_tree(root / "tree")
        (root / "large.toml").write_text(policy_text(root / "tree"))
        commands = []
        for policy, place in (("default", "empty"), (str(root / "large.toml"), "tree")):
            (root / place / "hello.py").write_text(HELLO)
            words = ["/bin/sh", "-c", 'cd "$0" && exec "$@"', str(root / place)]
            words += sandpit_command(program, python, policy, root / f"{place}.sptrace")
            words.append("hello.py")
            commands.append(Command(place, words, environment_of(python)))
        small, large = time_in_turn(commands, options.rounds)
    for series in (small, large):
        print(f"{series.name}: {series.wall_median * 1e3:.1f} ms, "
              f"{series.cpu_median * 1e3:.1f} ms of CPU")  # fmt: skip
    budgets.check("added CPU, ms", (large.cpu_median - small.cpu_median) * 1e3)
    return budgets.finish()


if __name__ == "__main__":
    sys.exit(main())
