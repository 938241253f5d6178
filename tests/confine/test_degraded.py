"""What happens where the kernel can do less, and that results say so truly."""

from __future__ import annotations

import json

import pytest
from abilities import require

pytestmark = [pytest.mark.requires("program"), pytest.mark.requires("listener")]

CONNECT = r"""
import socket, sys
for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    try:
        s = socket.socket(family, socket.SOCK_STREAM)
        s.settimeout(2)
        s.connect((address, int(sys.argv[1])))
        print("connected")
    except OSError as why:
        print("refused")
"""


def result(sandpit, script, *arguments, force, options=()):
    if "--policy" not in options:
        options = ("--policy", "no-network", *options)
    done = sandpit.run(
        script, *arguments, options=("--json", *options), env={"SANDPIT_FORCE": force}
    )
    return json.loads(done.stdout), done.returncode


@pytest.mark.parametrize(
    ("force", "layer"),
    [
        ("landlock=0", "landlock"),
        ("listener=off", "listener"),
        # As Yama's stricter settings do.
        ("process_vm_readv=off,memory_file=off", "listener"),
    ],
)
@pytest.mark.parametrize("policy", ["trace-only", "no-network"])
def test_a_missing_layer_is_refused_by_name(sandpit, force, layer, policy):
    if layer != "landlock":
        require("landlock")
    error, code = result(
        sandpit, "print('ran')", force=force, options=("--policy", policy)
    )
    assert code == 125
    assert error["error"]["slug"] == "host"
    assert error["error"]["missing"] == [layer]
    assert f"--allow-degraded {layer}" in error["error"]["message"]
    assert not sandpit.trace.exists()


@pytest.mark.requires("landlock")
@pytest.mark.parametrize("rules", ["allow = ['loopback']", "deny = ['10.0.0.0/8']"])
def test_without_a_listener_no_address_is_granted(sandpit, listener, tmp_path, rules):
    (tmp_path / "p.toml").write_text(f"extends = 'trace-only'\n[network]\n{rules}\n")
    options = ("--policy", str(tmp_path / "p.toml"))
    out, _ = result(sandpit, CONNECT, listener.port, force="", options=options)
    assert out["stdout"] == "connected\nconnected\n"
    before = listener.arrived
    options = (*options, "--allow-degraded", "listener")
    out, code = result(
        sandpit, CONNECT, listener.port, force="listener=off", options=options
    )
    assert (out["stdout"], code) == ("refused\nrefused\n", 0)
    assert listener.arrived == before
    assert [v["operation"] for v in out["violations"]] == ["socket", "socket"]


@pytest.mark.requires("landlock")
@pytest.mark.parametrize("abi", range(1, 7))
def test_older_landlock_denies_the_network_all_the_same(sandpit, listener, abi):
    require(f"landlock>={abi}")
    out, code = result(sandpit, CONNECT, listener.port, force=f"landlock={abi}")
    assert (out["stdout"], code) == ("refused\nrefused\n", 0)
    assert listener.arrived == 0
    assert out["degraded"] == []
    expected = ["listener", "landlock"] if abi >= 4 else ["listener"]
    assert out["enforced_by"]["network"] == expected
    assert "landlock" in out["enforced_by"]["integrity"]
    assert ("landlock" in out["enforced_by"]["process"]) == (abi >= 6)
    assert len(out["violations"]) == 2


def test_without_landlock_by_name(sandpit, listener):
    out, _ = result(
        sandpit,
        CONNECT,
        listener.port,
        force="landlock=0",
        options=("--allow-degraded", "landlock"),
    )
    assert out["stdout"] == "refused\nrefused\n"
    assert listener.arrived == 0
    assert out["degraded"] == ["landlock"]
    assert out["enforced_by"]["network"] == ["listener"]


@pytest.mark.requires("landlock")
def test_without_listener_by_name(sandpit, listener):
    out, _ = result(
        sandpit,
        CONNECT,
        listener.port,
        force="listener=off",
        options=("--allow-degraded", "listener"),
    )
    assert out["stdout"] == "refused\nrefused\n"
    assert listener.arrived == 0
    assert out["degraded"] == ["listener", "record"]
    assert out["enforced_by"]["network"][0] == "filter"
    assert out["recorded_by"]["connect"] == []
    assert out["recorded_by"]["import"] == ["agent"]
    assert all(one["claim"] for one in out["violations"])
    assert sandpit.verify() == 0


@pytest.mark.requires("landlock")
def test_without_listener_imports_are_denied_and_recorded(sandpit):
    out, code = result(
        sandpit,
        "import requests",
        force="listener=off",
        options=("--allow-degraded", "record"),
    )
    assert code == 1
    assert [one["target"] for one in out["violations"]] == ["requests"]
    assert out["violations"][0]["line"] == 1


@pytest.mark.requires("landlock")
@pytest.mark.parametrize("ability", ["pidfd_getfd", "process_vm_readv"])
def test_lesser_means_serve_as_well(sandpit, ability):
    script = (
        "import multiprocessing as m, socket\n"
        "if __name__ == '__main__':\n"
        "    with m.Manager() as manager:\n"
        "        print(manager.list([1, 2]))\n"
    )
    out, code = result(sandpit, script, force=f"{ability}=off")
    assert (out["stdout"], code) == ("[1, 2]\n", 0), out["stderr"]
