"""A program of root's reaches the kernel's settings and devices in no folder, whatever is
mounted in it or moved to it."""

from __future__ import annotations

import os
import stat
import subprocess

import pytest
from abilities import require

pytestmark = [
    pytest.mark.requires("program"),
    pytest.mark.requires("listener"),
    pytest.mark.requires("landlock"),
]

OPEN = r"""
import os, sys
for path in sys.argv[1:]:
    try:
        os.close(os.open(path, os.O_WRONLY))
        print("opened")
    except PermissionError:
        print("denied")
"""


@pytest.fixture
def proc(tmp_path):
    place = tmp_path / "a folder" / "proc"
    place.mkdir(parents=True)
    require("mounts")
    subprocess.run(["mount", "-t", "proc", "proc", place], check=True)
    yield place
    subprocess.run(["umount", place], check=True)


@pytest.mark.parametrize("abi", [None, 2])
def test_settings_of_the_kernel_mounted_below_are_out_of_reach(sandpit, proc, abi):
    setting = proc / "sys/kernel/core_pattern"
    sandpit.folder = proc.parent
    assert sandpit.plain(OPEN, setting).stdout == "opened\n"
    env = {} if abi is None else {"SANDPIT_FORCE": f"landlock={abi}"}
    done = sandpit.run(OPEN, setting, options=("--policy", "trace-only"), env=env)
    assert done.stdout == "denied\n", done.stderr
    assert os.path.exists(proc.parent / "script.py")


MOVE = r"""
import os, sys
source, target = sys.argv[1:]
for way in (os.link, os.rename):
    try:
        way(source, target)
        os.close(os.open(target, os.O_WRONLY))
        print("opened")
        os.replace(target, source)
        if os.path.exists(target):  # two names of one node
            os.unlink(target)
    except PermissionError:
        print("denied")
"""


@pytest.mark.parametrize("abi", [None, 2, 4])
def test_a_device_cannot_be_brought_to_where_the_guest_may_write(
    sandpit, tmp_path, abi
):
    work = tmp_path / "work"
    work.mkdir()
    device = tmp_path / "device"
    try:
        os.mknod(device, stat.S_IFCHR | 0o600, os.makedev(1, 11))  # kmsg
    except PermissionError as error:
        require("devices", str(error))
    sandpit.folder = work
    assert sandpit.plain(MOVE, device, work / "d").stdout == "opened\n" * 2
    env = {"TMPDIR": str(work)}
    if abi is not None:
        env["SANDPIT_FORCE"] = f"landlock={abi}"
    done = sandpit.run(
        MOVE, device, work / "d", options=("--policy", "trace-only"), env=env
    )
    assert done.stdout == "denied\n" * 2, done.stderr
