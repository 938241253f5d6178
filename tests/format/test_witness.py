"""What an independent witness sees of a run, strace, is what stands in its trace: the same
opens, programs, changes of files, connections and ends, none missing and none beside."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from interpreters import find as find_pythons
from programs import PROGRAM

pytestmark = [
    pytest.mark.requires("program"),
    pytest.mark.requires("listener"),
    pytest.mark.requires("strace"),
]

JOB = """
import os, shutil, socket, sqlite3, subprocess, sys, tempfile, threading
work = os.getcwd()
path = os.path.join(work, "a.txt")
with open(path, "w") as file:
    file.write("x")
os.rename(path, path + "2")
os.symlink("a.txt2", "link")
os.link(path + "2", path + "3")
os.mkdir("folder")
os.rmdir("folder")
os.chmod(path + "2", 0o600)
os.truncate(path + "2", 0)
os.utime(path + "3")
for name in ("none", "folder/none"):
    try:
        open(name)
    except OSError:
        pass
base = sqlite3.connect("base")
base.execute("create table t (a)")
base.commit()
base.close()
subprocess.run(["ls", work], stdout=subprocess.DEVNULL)
subprocess.run(["/bin/sh", "-c", "cat a.txt3 >b.txt; exit 4"])
subprocess.run([sys.executable, "-c", "import json; open('c.txt', 'w')"])
shutil.copytree(work, "../copy", symlinks=True)
shutil.rmtree("../copy")
for port in (9, 10):
    with socket.socket() as one:
        try:
            one.connect(("127.0.0.1", port))
        except OSError:
            pass
if os.fork() == 0:
    os.remove("c.txt")
    os._exit(3)
os.wait()
def read():
    with open(path + "3") as file:
        file.read()
threads = [threading.Thread(target=read) for _ in range(4)]
for one in threads:
    one.start()
    one.join()
"""
POLICY = 'extends = "trace-only"\n[trace]\nfiles = "all"\n'

OPENS = {"open", "openat", "creat"}
CHANGES = {
    "unlink": "remove", "unlinkat": "remove", "rename": "rename", "renameat2": "rename",
    "mkdir": "mkdir", "mkdirat": "mkdir", "rmdir": "rmdir", "symlink": "symlink",
    "symlinkat": "symlink", "link": "link", "linkat": "link", "chmod": "chmod",
    "fchmodat": "chmod", "truncate": "truncate", "utimensat": "utime",
}  # fmt: skip
CALLS = {*OPENS, *CHANGES, "execve", "connect", "exit_group"}
LINE = re.compile(r"(\d+) +(\w+)\((.*)")
TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
ENDED = re.compile(r"(\d+) +\+\+\+ (exited with|killed by) (\w+)")


def named(path: str, folder: Path) -> str:
    """As the trace has it: absolute, with links of the system followed."""
    whole = os.path.normpath(os.path.join(folder, path))
    kept = whole.startswith((str(folder.parent), "/proc/self/"))
    return whole if kept else os.path.realpath(whole)


def seen_by_strace(log: Path, folder: Path, pids: dict[int, int]) -> Counter[Any]:
    """Acts by process: kind, and what it was about. `pids` by thread."""
    seen: Counter[Any] = Counter()
    for line in log.read_text().splitlines():
        ended = ENDED.match(line)
        if ended and int(ended[1]) in pids.values():
            seen[int(ended[1]), "exit", ended[3]] += 1
        call = LINE.match(line)
        if not call or int(call[1]) not in pids:
            continue
        pid, name, rest = pids[int(call[1])], call[2], call[3]
        texts = TEXT.findall(rest)
        if name in OPENS:
            seen[pid, "open", named(texts[0], folder)] += 1
        elif name == "unlinkat" and "AT_REMOVEDIR" in rest:
            seen[pid, "file", "rmdir"] += 1
        elif name in CHANGES:
            seen[pid, "file", CHANGES[name]] += 1
        elif name == "execve":
            seen[pid, "exec", named(texts[0], folder)] += 1
        elif name == "connect" and "AF_INET" in rest:
            seen[pid, "connect", re.search(r"htons\((\d+)\)", rest)[1]] += 1
    return seen


def told_by_trace(events: list[dict[str, Any]]) -> Counter[Any]:
    told: Counter[Any] = Counter()
    for one in events:
        pid, kind = one["pid"], one["kind"]
        if kind in ("open", "exec"):
            told[
                pid,
                kind,
                os.path.realpath(one["path"]) if kind == "exec" else one["path"],
            ] += 1
        elif kind == "file" and one["op"] in CHANGES.values():
            told[pid, kind, one["op"]] += 1
        elif kind == "connect":
            told[pid, kind, str(one["port"])] += 1
        elif kind == "exit":
            told[pid, kind, str(one.get("code", one.get("signal")))] += 1
    return told


@pytest.mark.parametrize("interpreter", find_pythons(), ids=lambda one: one.label)
def test_trace_and_witness_agree(tmp_path, interpreter):
    folder = tmp_path / "work"
    folder.mkdir()
    (tmp_path / "job.py").write_text(JOB)
    (tmp_path / "all.toml").write_text(POLICY)
    log, trace = tmp_path / "log", tmp_path / "run.sptrace"
    subprocess.run(
        ["strace", "-f", "-o", log, "-e", f"trace={','.join(sorted(CALLS))}",
         PROGRAM, "run", "--quiet", "--policy", tmp_path / "all.toml", "-o", trace,
         "--python", interpreter.path, tmp_path / "job.py"],
        cwd=folder, stdin=subprocess.DEVNULL, check=True, timeout=120,
        env={**os.environ, "PATH": "/usr/bin:/bin"},  # nothing is searched in vain
    )  # fmt: skip
    events = [json.loads(line) for line in trace.read_text().splitlines()]
    pids = {one["tid"]: one["pid"] for one in events if one["pid"]}
    seen, told = seen_by_strace(log, folder, pids), told_by_trace(events)
    # The program itself is started by sandpit: the start of the record.
    seen[events[0]["pid"], "exec", os.path.realpath(interpreter.path)] -= 1
    assert +seen == +told, (
        f"only seen: {dict(seen - told)}, only told: {dict(told - seen)}"
    )
    assert sum(seen.values()) > 200
