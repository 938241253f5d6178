"""Side doors of the network: ways around a rule that exist without a sandbox."""

from __future__ import annotations

import network_programs
import pytest
from listener import Listener

pytestmark = [
    pytest.mark.requires("program"),
    pytest.mark.requires("listener"),
    pytest.mark.requires("landlock"),
    pytest.mark.requires("cc"),
]

START = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)\n"

# What is seen of it: at the listener that is denied; by success of the call alone; nothing, where
# the machine or the user decides whether it works at all.
ARRIVES = (
    "fastopen_sendto", "fastopen_sendmsg", "fastopen_sendmmsg", "fastopen_connect",
    "later_entry", "high_pointer", "no_family", "reconnect", "connected_sendto", "inherited",
)  # fmt: skip
SUCCEEDS = ("joined", "bound_datagram", "bound_without_family", "auto_bound", "netlink")
DEPENDS = ("mptcp", "routed", "routed_message", "raw_socket", "packet", "vsock")


@pytest.fixture
def doors(tmp_path):
    return network_programs.build(tmp_path, network_programs.DOORS, "doors")


@pytest.fixture
def other():
    with Listener() as server:
        yield server


@pytest.mark.parametrize("door", ARRIVES + SUCCEEDS + DEPENDS)
@pytest.mark.parametrize("abi", [None, 3], ids=["", "landlock3"])
def test_side_door_is_closed(sandpit, doors, listener, other, tmp_path, door, abi):
    words = (doors, door, listener.port, other.port)
    plain = sandpit.plain(START, *words)
    if door not in DEPENDS:
        assert plain.stdout.split()[-1] == "in", plain.stderr
    if door in ARRIVES:
        assert other.arrived == 1
    before = other.arrived
    granted = tmp_path / "policy.toml"
    granted.write_text(
        f'extends = "no-network"\n[network]\nallow = ["127.0.0.1:{listener.port}"]\n'
    )
    env = {} if abi is None else {"SANDPIT_FORCE": f"landlock={abi}"}
    done = sandpit.run(START, *words, options=("--policy", str(granted)), env=env)
    assert done.stdout == "out\n", done.stderr
    assert other.arrived == before
    told = sandpit.events("violation")
    assert told, "the attempt is in the record"
    assert {e["category"] for e in told} == {"network"}
    if door in ARRIVES and door != "fastopen_connect":
        assert [e["port"] for e in told] == [other.port]
    assert sandpit.verify() == 0


def test_what_is_granted_passes_by_the_same_doors(sandpit, doors, listener, other, tmp_path):
    granted = tmp_path / "policy.toml"
    granted.write_text(
        'extends = "no-network"\n[network]\nallow = ["loopback", "239.1.2.3"]\n'
    )
    for door in ("later_entry", "high_pointer", "no_family", "reconnect",
                 "connected_sendto", "inherited", "joined"):  # fmt: skip
        words = (doors, door, listener.port, other.port)
        done = sandpit.run(START, *words, options=("--policy", str(granted)))
        assert done.stdout == "in\n", (door, done.stdout, done.stderr)
    assert (listener.datagrams, other.datagrams) == (2, 6)
    assert sandpit.events("violation") == []
