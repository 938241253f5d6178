"""A second thread changes address or descriptor while a call is judged: nothing that is denied
is reached, and what is granted goes on working."""

from __future__ import annotations

import os

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
WAYS = ("tcp", "tcp-nonblocking", "udp-sendto", "udp-connect", "udp-sendmsg", "udp-sendmmsg",
        "udp-number")  # fmt: skip
TRIES = int(os.environ.get("SANDPIT_RACE_TRIES", "2000"))


@pytest.fixture
def race(tmp_path):
    return network_programs.build(tmp_path, network_programs.RACE, "race")


@pytest.fixture
def other():
    with Listener() as server:
        yield server


def grant(tmp_path, *rules):
    path = tmp_path / "policy.toml"
    path.write_text(f'extends = "no-network"\n[network]\nallow = {list(rules)!r}\n')
    return ("--policy", str(path))


@pytest.mark.parametrize("way", WAYS)
def test_racing_address_reaches_nobody(sandpit, race, listener, other, tmp_path, way):
    words = (race, way, listener.port, other.port)
    for _ in range(20):
        plain = sandpit.plain(START, *words, 300)
        assert plain.returncode == 0, plain.stderr
        if other.arrived > 0:
            break
    assert other.arrived > 0
    before = other.arrived
    options = grant(tmp_path, f"127.0.0.1:{listener.port}")
    done = sandpit.run(START, *words, TRIES, options=options, timeout=600)
    assert done.returncode == 0, done.stderr
    yes, no = map(int, done.stdout.split())
    assert no > 0 and (yes > 0) == (way != "udp-number")
    assert other.arrived == before
    told = [e for e in sandpit.events("violation") if e["operation"] != "checkpoint"]
    assert {e["port"] for e in told} == {other.port}
    # Each refused try is told, repeats by their count; of several messages, each.
    count = sum(e.get("count", 1) for e in told)
    if way == "udp-number":  # what hit the stream was refused by the kernel's own rule
        assert 0 < count <= no
    else:
        assert count == no or (way == "udp-sendmmsg" and count >= no)
    acts = sandpit.events("connect")
    assert {e["port"] for e in acts} <= {listener.port}
    assert all("args" not in e for e in acts)
    assert sandpit.verify() == 0


@pytest.mark.parametrize("way", ["tcp-bind", "udp-bind"])
def test_racing_address_is_not_bound(sandpit, race, tmp_path, way):
    with Listener() as one, Listener() as two:
        ports = (one.port, two.port)
    assert sandpit.plain(START, race, way, *ports, 300).returncode == 0
    options = grant(tmp_path, f"127.0.0.1:{ports[0]}")
    done = sandpit.run(START, race, way, *ports, TRIES, options=options, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "bound" not in done.stdout
    yes, no = map(int, done.stdout.split())
    assert yes > 0 and no > 0
