"""What a connection costs where each one is judged and made for the program.

    network.py [--rounds N] [--calls N] [--python PATH] [--compare]

The same C program runs plain and under a policy that grants loopback: it makes sockets,
connects them to one of its own and closes them; and sends datagrams, which it takes.
Exit code 1 when a budget is missed.
"""

from __future__ import annotations

import sys
from pathlib import Path

from each_call import Way, run

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
POLICY = 'extends = "no-network"\n[network]\nallow = ["loopback"]\n'


def ways(_: Path) -> list[Way]:
    named = {"connect": "connect", "send": "sendto"}
    return [Way(name, POLICY, (name,), call) for name, call in named.items()]


if __name__ == "__main__":
    sys.exit(run(__doc__ or "", "network", PROGRAM, ways, calls=3000, rounds=40))
