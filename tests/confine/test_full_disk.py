"""A program that fills the disk does not get its violations out of the trace."""

from __future__ import annotations

import json
import subprocess

import pytest
from programs import PROGRAM

pytestmark = [
    pytest.mark.requires("program"),
    pytest.mark.requires("listener"),
    pytest.mark.requires("landlock"),
    pytest.mark.requires("mounts"),
]

FILLER = """
import os, socket, sys
with open("big", "wb", buffering=0) as file:
    try:
        while True:
            file.write(b"x" * 4096)
    except OSError:
        pass
for i in range(int(sys.argv[1])):
    exec(f"def f{i}(): pass\\nf{i}()")
for act in (lambda: open("/etc/shadow"), lambda: socket.create_connection(("127.0.0.1", 9)),
            lambda: os.mkdir("/etc/sandpit-test")):
    try:
        act()
    except OSError as error:
        print(error.errno)
if sys.argv[2] == "empties":
    os.remove("big")
"""
RUN = """
mount -t tmpfs -o "size=$6" none "$1" && cd "$1" && cp "$2" job.py || exit 1
"$3" run --quiet -o run.sptrace job.py "$4" "$5"
code=$?
cat run.sptrace >&2
exit $code
"""


def run_on_disk(tmp_path, script, functions, ending, size):
    """On a disk of its own; what is on standard error is the trace."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "job.py").write_text(script)
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", RUN, "sh", str(tmp_path / "disk"),
         str(tmp_path / "job.py"), str(PROGRAM), str(functions), ending, size],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize("functions", [10, 400, 20000])
@pytest.mark.parametrize("ending", ["empties", "stays", "small"])
def test_violations_stay_in_the_record(tmp_path, functions, ending):
    script = FILLER if ending != "small" else FILLER[FILLER.index("for i in") :]
    script = "import os, socket, sys\n" + script
    size = "300k" if ending == "small" else "8m"
    done = run_on_disk(tmp_path, script, functions, ending, size)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["13", "13", "13"]
    events = [json.loads(line) for line in done.stderr.splitlines()]
    assert events[-1]["kind"] == "end"
    denied = [one["operation"] for one in events if one["kind"] == "violation"]
    assert denied == ["read", "connect", "mkdir"]
    assert events[-1]["violations"] == 3
    trace = tmp_path / "run.sptrace"
    trace.write_text(done.stderr)
    assert subprocess.run([PROGRAM, "verify", trace]).returncode == 0


def test_run_without_room_for_its_trace_does_not_start(tmp_path):
    done = run_on_disk(tmp_path, "print('ran')\n", 0, "small", "100k")
    assert (done.returncode, done.stdout) == (125, "")
    assert "no room for a trace" in done.stderr
