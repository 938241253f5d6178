"""What a connection costs where each one is judged and made for the program.

    network.py [--rounds N] [--calls N] [--python PATH]

The same C program runs plain and under a policy that grants loopback: it makes sockets,
connects them to one of its own and closes them; and sends datagrams, which it takes.
What one costs is the CPU time of both sides with many, less that with none. Exit code 1
when a budget is missed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from budgets import Budgets
from startup import environment_of
from timing import Command, time_in_turn

PROGRAM = r"""
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int datagrams = strcmp(argv[1], "send") == 0, calls = atoi(argv[2]);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof to;
    int server = socket(AF_INET, datagrams ? SOCK_DGRAM : SOCK_STREAM, 0);
    int sender = socket(AF_INET, SOCK_DGRAM, 0);
    if (bind(server, (void *)&to, size) || getsockname(server, (void *)&to, &size))
        return 1;
    if (!datagrams && listen(server, 4096))
        return 1;
    for (int i = 0; i < calls; i++) {
        if (datagrams) {
            char byte;
            if (sendto(sender, "x", 1, 0, (void *)&to, size) != 1 ||
                recv(server, &byte, 1, 0) != 1)
                return 1;
            continue;
        }
        int one = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(one, (void *)&to, size))
            return 1;
        close(one);
    }
    (void)argc;
    return 0;
}
"""
START = "import os, sys\nos.execv(sys.argv[1], sys.argv[1:])\n"
POLICY = 'extends = "no-network"\n[network]\nallow = ["loopback"]\n'
WAYS = ("connect", "send")


def commands(python: str, folder: Path, calls: int) -> list[Command]:
    environment = environment_of(python)
    program = str(Path(sys.executable).parent / "sandpit")
    script, exe = str(folder / "start.py"), str(folder / "connects")
    run = [program, "run", "--policy", str(folder / "policy.toml"), "--python", python]
    run += ["--quiet", "-o", str(folder / "run.sptrace")]
    chosen = []
    for way in WAYS:
        for number in (0, calls):
            words = [script, exe, way, str(number)]
            chosen.append(Command(f"{way} {number}", [python, *words], environment))
            chosen.append(
                Command(f"{way} {number}, sandpit", [*run, *words], environment)
            )
    return chosen


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40, help="40 for a verdict")
    parser.add_argument("--calls", type=int, default=3000, help="at most 4,000")
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    python = os.path.abspath(options.python)
    with tempfile.TemporaryDirectory(prefix="sandpit-bench-") as name:
        folder = Path(name)
        (folder / "start.py").write_text(START)
        (folder / "policy.toml").write_text(POLICY)
        (folder / "connects.c").write_text(PROGRAM)
        compiler = os.environ.get("CC", "cc")
        source = folder / "connects.c"
        subprocess.run([compiler, "-O2", "-o", folder / "connects", source], check=True)
        series = time_in_turn(commands(python, folder, options.calls), options.rounds)
    cpu = {one.name: one.cpu_median for one in series}
    budgets = Budgets("network")
    for way in WAYS:
        many = f"{way} {options.calls}"
        plain = cpu[many] - cpu[f"{way} 0"]
        both = cpu[f"{many}, sandpit"] - cpu[f"{way} 0, sandpit"]
        each = 1e6 / options.calls
        print(f"{way}: {plain * each:.1f} us of CPU plain, {both * each:.1f} us judged")
        budgets.check(f"{way}, CPU", both / plain)
    return budgets.finish()


if __name__ == "__main__":
    sys.exit(main())
