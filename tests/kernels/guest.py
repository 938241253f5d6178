"""Inside the virtual machine: runs the tests for each setting of Yama and each user, and
tells what came of it on the second serial line, one JSON object a line.

What to do stands on the kernel's command line: sandpit.users=root,nobody sandpit.yama=0,1
sandpit.tests=landlock (a list of cells.py).
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import cells

PROJECT = Path(__file__).resolve().parents[2]
NOBODY = 65534
TEXT_MAX = 3000
YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
GROUPS = Path("/sys/fs/cgroup")


def main() -> None:
    words = dict(
        one[8:].split("=", 1)
        for one in Path("/proc/cmdline").read_text().split()
        if one.startswith("sandpit.")
    )
    with open("/dev/ttyS1", "w", encoding="utf-8") as line:
        tell(line, {"kernel": os.uname().release, "landlock": landlock_abi()})
        try:
            # The first session's group is 0, which in calls means the caller's own.
            os.setsid()
            start_loopback()
            for yama in words["yama"].split(","):
                YAMA.write_text(yama)
                for user in words["users"].split(","):
                    enter_session(user)
                    begin = time.monotonic()
                    counted = run_tests(words, user, line)
                    took_s = round(time.monotonic() - begin)
                    tell(
                        line, {"yama": yama, "user": user, "took_s": took_s, **counted}
                    )
        except Exception as error:
            tell(line, {"broken": f"{type(error).__name__}: {error}"})
        tell(line, {"end": True})
    power_off()


def tell(line, what: dict) -> None:
    # The terminal driver would turn line ends into two characters; JSON has none inside.
    line.write(json.dumps(what) + "\n")
    line.flush()


def landlock_abi() -> int:
    call = ctypes.CDLL(None, use_errno=True).syscall
    return call(ctypes.c_long(444), None, ctypes.c_size_t(0), ctypes.c_uint(1))


def start_loopback() -> None:
    with socket.socket() as one:
        # SIOCSIFFLAGS with IFF_UP
        fcntl.ioctl(one, 0x8914, struct.pack("16sH22x", b"lo", 1))


def enter_session(user: str) -> None:
    """A control group of its own for who logs in, in a part of the tree that is theirs, as
    systemd makes them."""
    theirs = GROUPS / user
    session = theirs / "session"
    for folder in (GROUPS, theirs):
        folder.mkdir(exist_ok=True)
        (folder / "cgroup.subtree_control").write_text("+memory +pids")
    session.mkdir(exist_ok=True)
    if user != "root":
        for one in (theirs, theirs / "cgroup.procs", theirs / "cgroup.subtree_control"):
            os.chown(one, NOBODY, NOBODY)
        for one in (session, session / "cgroup.procs"):
            os.chown(one, NOBODY, NOBODY)
    (session / "cgroup.procs").write_text(str(os.getpid()))


def run_tests(words: dict[str, str], user: str, line) -> dict[str, int]:
    """Run the C tests and pytest as a user; tell what failed."""
    which = words["tests"]
    files = [one for one in words.get("files", "").split(",") if one]
    home = Path("/tmp/home")
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    who = {}
    if user != "root":
        os.chown(home, NOBODY, NOBODY)
        who = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    environment = {
        "PATH": f"{os.path.dirname(os.path.realpath(sys.executable))}:{os.environ['PATH']}",
        "HOME": str(home),
        "TMPDIR": str(home),
        "LANG": "C.UTF-8",
        "SANDPIT_REQUIRE": cells.required(which, user),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    counted = {"passed": 0, "failed": 0, "skipped": 0}
    for program in cells.c_tests(PROJECT / "build/c"):
        done = subprocess.run(
            [program],
            cwd=home,
            env={**environment, "CMOCKA_MESSAGE_OUTPUT": "TAP"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=cells.LIMIT_S,
            **who,
        )
        count_tap(program.name, done, counted, line)
    command = [sys.executable, "-m", "pytest", "-q", "--color=no"]
    command += ["-p", "no:cacheprovider", "-o", f"timeout={cells.LIMIT_S}"]
    report = home / "report.xml"
    for name in cells.python_tests(PROJECT, which, files):
        report.unlink(missing_ok=True)
        begun = subprocess.run(
            [*command, f"--junitxml={report}", f"--basetemp={home}/pytest", name],
            cwd=PROJECT,
            env=environment,
            stdin=subprocess.DEVNULL,
            **who,
        )
        count_report(name, report, begun.returncode, counted, line)
        tell(line, {"file": name, **counted})
    return counted


def count_tap(name: str, done, counted: dict[str, int], line) -> None:
    before = sum(counted.values())
    for one in done.stdout.splitlines():
        if not one.startswith(("ok", "not ok")):
            continue
        if "# SKIP" in one:  # which older versions of cmocka call "not ok"
            counted["skipped"] += 1
        elif one.startswith("ok"):
            counted["passed"] += 1
        else:
            counted["failed"] += 1
            tell(line, {"failure": f"{name}: {one}", "text": done.stdout[-TEXT_MAX:]})
    if sum(counted.values()) == before:
        counted["failed"] += 1
        text = done.stdout[-TEXT_MAX:]
        tell(line, {"failure": f"{name}: exit code {done.returncode}", "text": text})


def count_report(
    name: str, report: Path, code: int, counted: dict[str, int], line
) -> None:
    if not report.exists():
        counted["failed"] += 1
        tell(line, {"failure": f"{name}: exit code {code}, no report", "text": ""})
        return
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        bad = [*case.findall("failure"), *case.findall("error")]
        skipped = case.find("skipped")
        if bad:
            counted["failed"] += 1
            tell(line, {"failure": name, "text": (bad[0].text or "")[-TEXT_MAX:]})
        elif skipped is not None:
            counted["skipped"] += 1
            tell(line, {"skip": name, "text": skipped.get("message", "")[:200]})
        else:
            counted["passed"] += 1


def power_off() -> None:
    os.sync()
    # LINUX_REBOOT_CMD_POWER_OFF
    ctypes.CDLL(None).reboot(ctypes.c_int(0x4321FEDC))


if __name__ == "__main__":
    main()
