"""Ways to a socket of somebody else where the network is denied: each is open without a
sandbox and leads nowhere inside."""

from __future__ import annotations

import os
import socket
import threading

import pytest

pytestmark = [
    pytest.mark.requires("program"),
    pytest.mark.requires("listener"),
    pytest.mark.requires("landlock"),
]

# An abstract name can be taken once for each type of socket: the own one of another type
# must not vouch for the stranger's.
NAMESAKE = r"""
import socket, sys
name = "\0" + sys.argv[1]
own = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
own.bind(name)
own.listen(1)
one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
one.connect(name)
other = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
try:
    other.connect(name)
    print("outside")
except PermissionError:
    print("own")
"""


@pytest.fixture
def abstract_server():
    name = f"sandpit-test-{os.getpid()}"
    reached = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind("\0" + name)
        server.listen(8)

        def serve():
            while True:
                try:
                    one, _ = server.accept()
                except OSError:
                    return
                reached.append(one)

        threading.Thread(target=serve, daemon=True).start()
        yield name, reached
        server.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("abi", [None, 2, 5])
def test_a_namesake_does_not_vouch_for_a_stranger(sandpit, abstract_server, abi):
    name, reached = abstract_server
    assert sandpit.plain(NAMESAKE, name).stdout == "outside\n"
    before = len(reached)
    env = {} if abi is None else {"SANDPIT_FORCE": f"landlock={abi}"}
    done = sandpit.run(NAMESAKE, name, options=("--policy", "no-network"), env=env)
    assert done.stdout == "own\n", done.stderr
    assert len(reached) == before
    assert [e["target"] for e in sandpit.events("violation")] == [f"@{name}"]
    assert sandpit.verify() == 0
