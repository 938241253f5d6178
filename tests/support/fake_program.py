"""Plays the native program in tests of the Python package alone.

What it does is said by the environment variable FAKE: see `PLAYS`.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import sys
import time

TRACE = """\
{"seq":0,"t":0,"kind":"start","layer":"supervisor","pid":1,"tid":1,"format":1}
{"seq":1,"t":1,"kind":"import","layer":"python","pid":1,"tid":1,"module":"json"}
{"seq":2,"t":2,"kind":"end","layer":"supervisor","pid":1,"tid":1,"status":"ok"}
"""


def main() -> int:
    connection = socket.socket(fileno=int(sys.argv[2]))
    spec = json.loads(read_line(connection))
    return PLAYS[os.environ.get("FAKE", "echo")](connection, spec)


def read_line(connection):
    """Read one line and no byte of the next; empty at the end of the conversation."""
    line = b""
    while not line.endswith(b"\n"):
        peeked = connection.recv(1 << 20, socket.MSG_PEEK)
        if not peeked:
            break
        line += connection.recv(peeked.find(b"\n") + 1 or len(peeked))
    return line


def result(spec, **changed):
    """A complete result, as of an empty program that ended well."""
    full = {
        "status": "ok",
        "exit_code": 0,
        "signal": None,
        "exited_by": "end",
        "reason": "the program ended",
        "stdout": "",
        "stderr": "",
        "stdout_bytes_total": 0,
        "stderr_bytes_total": 0,
        "stdout_truncated": False,
        "stderr_truncated": False,
        "exception": None,
        "wall_s": 0.01,
        "cpu_s": 0.01,
        "startup_s": 0.001,
        "peak_memory_bytes": 1 << 20,
        "files": {"created": [], "changed": [], "deleted": []},
        "violations": [],
        "summary": {"end": 1},
        "limits": {},
        "policy": {"name": spec["policy"] or "no-network", "digest": "00" * 32},
        "enforced_by": {"network": ["kernel", "python"]},
        "recorded_by": {"network": ["kernel"]},
        "degraded": [],
        "trace": spec["trace"],
    }
    full.update(changed)
    return full


def say(connection, message):
    connection.sendall(json.dumps(message).encode() + b"\n")


def write_trace(spec):
    if spec["trace"]:
        with open(spec["trace"], "w") as stream:
            stream.write(TRACE)


def echo(connection, spec):
    """Answer with the spec itself, and what stdin holds, as the output."""
    write_trace(spec)
    content = sys.stdin.buffer.read().decode("latin-1")
    seen = {"spec": spec, "argv": sys.argv, "stdin": content, "cwd": os.getcwd()}
    folder = spec["cwd"] or "."
    seen["listing"] = sorted(os.listdir(folder))
    seen["session"] = os.getsid(0) == os.getpid()
    seen["descriptors"] = sorted(int(fd) for fd in os.listdir("/proc/self/fd"))
    text = json.dumps(seen)
    say(connection, {"event": "started", "pid": os.getpid()})
    say(connection, {"result": result(spec, stdout=text, stdout_bytes_total=len(text))})
    return 0


def detail(connection, spec):
    """Answer with a result that has everything in it."""
    write_trace(spec)
    violation = {
        "seq": 7,
        "category": "network",
        "operation": "connect",
        "rule": "network.allow",
        "target": "127.0.0.1:9",
        "file": "/x/main.py",
        "line": 3,
        "at": "/x/main.py:3",
        "layer": "kernel",
        "action": "deny",
        "message": "connect to 127.0.0.1:9 denied",
        "hint": "allow it",
        "count": 2,
        "stack": ["/x/main.py:3 <module>"],
        "address": "127.0.0.1",
        "port": 9,
    }
    answer = result(
        spec,
        status="error",
        exit_code=1,
        stdout="a\ufffd",
        stdout_base64="Yf8=",
        stderr="caf\u00e9",
        exception={
            "type": "ValueError",
            "message": "no",
            "file": "/x/main.py",
            "line": 4,
            "traceback": "Traceback ...",
        },
        violations=[violation],
        files={"created": ["/x/a"], "changed": [], "deleted": ["/x/b"]},
    )
    say(connection, {"result": answer})
    return 0


def until_told(connection, spec):
    """Run until told to stop or dropped, then say `cancelled`."""
    say(connection, {"event": "started", "pid": os.getpid()})
    told = read_line(connection)
    mark = os.environ.get("FAKE_MARK")
    if mark:
        with open(mark, "w") as stream:
            stream.write("told" if told else "dropped")
    write_trace(spec)
    answer = result(spec, status="cancelled", exit_code=130, exited_by="killed")
    with contextlib.suppress(OSError):
        say(connection, {"result": answer})
    return 0


def stubborn(connection, spec):
    """Never end, whatever is said."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(1)


def error(connection, spec):
    """Answer with the error in FAKE_ERROR."""
    say(connection, {"error": json.loads(os.environ["FAKE_ERROR"])})
    return 125


def silent(connection, spec):
    """End without an answer, after a word on standard error."""
    print("something is rotten", file=sys.stderr)
    return 9


def garbage(connection, spec):
    connection.sendall(b"not json\n")
    return 0


def incomplete(connection, spec):
    say(connection, {"result": {"status": "ok"}})
    return 0


def large(connection, spec):
    """Print much, in pieces that cut the line anywhere."""
    size = int(os.environ["FAKE_SIZE"])
    say(connection, {"result": result(spec, stdout="x" * size)})
    return 0


def slow(connection, spec):
    """Answer after 0.3 s."""
    select.select([], [], [], 0.3)
    return echo(connection, spec)


PLAYS = {
    "echo": echo,
    "detail": detail,
    "until-told": until_told,
    "stubborn": stubborn,
    "error": error,
    "silent": silent,
    "garbage": garbage,
    "incomplete": incomplete,
    "large": large,
    "slow": slow,
}

if __name__ == "__main__":
    sys.exit(main())
