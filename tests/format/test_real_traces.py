"""What a run writes is what the document and the schema say: every line, every member."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import sandpit
from programs import PROGRAM
from schema import problems

SCHEMA = json.loads(
    (Path(__file__).parents[2] / "docs/trace.schema.json").read_text()
)

pytestmark = [pytest.mark.requires("program"), pytest.mark.requires("listener")]

BUSY = """\
import ctypes, os, socket, subprocess, sys, tempfile, threading
try:
    import requests
except ImportError:
    pass
def attempt(act, *arguments):
    try:
        act(*arguments)
    except OSError:
        pass
for _ in range(3):
    attempt(socket.create_connection, ("127.0.0.1", 9))
attempt(socket.getaddrinfo, "example.com", 80)
attempt(socket.getaddrinfo, "localhost", 80)
attempt(socket.getaddrinfo, "nobody.invalid", 80)
attempt(socket.getaddrinfo, "secret.invalid", 80)
attempt(socket.socket(type=socket.SOCK_DGRAM).sendto, b"x", ("127.0.0.1", 9))
attempt(os.kill, 1, 0)
attempt(os.setpriority, 0, 1, 1)
attempt(open, "/proc/1/comm", "w")
attempt(socket.socket, socket.AF_UNIX, socket.SOCK_DGRAM)
attempt(socket.socket().listen)
subprocess.run(["ls", "/"], stdout=subprocess.DEVNULL)
subprocess.run([sys.executable, "-c", "print(1)"])
thread = threading.Thread(target=print, args=("in a thread",))
thread.start()
thread.join()
with tempfile.TemporaryDirectory() as folder:
    open(folder + "/a", "w").close()
    attempt(os.chmod, folder + "/a", 0o4755)
    os.rename(folder + "/a", folder + "/b")
    server = socket.socket(socket.AF_UNIX)
    server.bind(folder + "/s")
    server.listen()
    socket.socket(socket.AF_UNIX).connect(folder + "/s")
exec("x = 1")
ctypes.CDLL(None).getpid()
if os.fork() == 0:
    os._exit(3)
os.wait()
1 / 0
"""


GRANTED = """\
extends = "no-network"
[network]
allow = ["loopback", "*.invalid"]
deny = ["secret.invalid"]
"""


@pytest.mark.parametrize("policy", ["trace-only", "no-network", "granted.toml"])
@pytest.mark.parametrize("calls", ["folded", "all"])
def test_every_line_and_member_is_documented(tmp_path, policy, calls):
    (tmp_path / "busy.py").write_text(BUSY)
    (tmp_path / "granted.toml").write_text(GRANTED)
    subprocess.run(
        [PROGRAM, "run", "--quiet", "--policy", policy, "--calls", calls, "busy.py"],
        cwd=tmp_path, capture_output=True, check=False)
    kinds = set()
    for line in (tmp_path / "busy.sptrace").read_text().splitlines():
        event = json.loads(line)
        kinds.add(event["kind"])
        assert list(problems(event, SCHEMA, SCHEMA)) == [], event
        known = {**SCHEMA["properties"], **SCHEMA["$defs"][event["kind"]]["properties"]}
        assert set(event) <= set(known), event
    list(sandpit.load(tmp_path / "busy.sptrace"))  # no line has a member twice
    assert {"start", "import", "open", "file", "socket", "fork", "exec", "exit", "code",
            "native", "thread", "output", "exception", "end"} <= kinds
