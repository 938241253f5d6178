"""A trace of more than a million events: what it costs to look at, and what stays bounded."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from traces import Lines

EVENTS = 1_200_000
# Twice of all that was measured, over what the interpreter itself has: bounds, not budgets.
ASK = """\
import sys
import sandpit

def memory():
    with open("/proc/self/status") as lines:
        values = dict(line.split(":", 1) for line in lines)
    return int(values["VmHWM"].split()[0]) / 1024

trace = sandpit.load(sys.argv[1])
before = memory()
{question}
print(memory() - before)
"""
QUESTIONS = {
    "len": ("assert len(trace) == 1_200_002", 12),
    "one": ("assert trace[900_001]['t'] == 900_001_000 and trace[-1]['kind'] == 'end'", 12),
    "iterate": ("assert sum(1 for _ in trace) == 1_200_002", 12),
    # A view is eight bytes for each event that is in it, and grows by doubling.
    "of_kind": ("assert len(trace.of_kind('open')) == 400_000", 24),
    "between": ("assert len(trace.between(5_000, 15_000)) == 10", 12),
    "where": ("assert len(trace.where(text='/data/77/')) == 400", 12),
    "views": (
        "view = trace.of_kind('call').between(10**6).where(tid=101)\\n"
        "assert view[5]['function'] == view[-1]['function'] == 'f'", 40),
    "calls": ("assert sum(n.count for _, n in trace.calls().walk()) == 400_000", 12),
    "files": ("assert len(trace.files()) == 1000", 12),
    "network": ("assert len(trace.network()) == 3", 12),
    "verify": ("assert trace.verify().code == 1", 12),
}  # fmt: skip


@pytest.fixture(scope="session")
def long(tmp_path_factory):
    """Opens, calls and connections, a million and more, each a line of its own."""
    path = tmp_path_factory.mktemp("long") / "long.sptrace"
    lines = Lines()
    head = b'{"seq":%d,"t":%d,"kind":"%s","layer":"%s","pid":100,"tid":%d,'
    with open(path, "wb") as file:
        file.write(lines.parts[0])
        for i in range(1, EVENTS + 1):
            if i % 3 == 0:
                file.write(head % (i, i * 1000, b"open", b"kernel", 100))
                file.write(b'"path":"/data/%d/x","op":"read"}\n' % (i // 3 % 1000))
            elif i % 3 == 1:
                file.write(head % (i, i * 1000, b"call", b"python", 100 + i % 2))
                file.write(b'"function":"f","caller":"g","file":"/m.py","line":3}\n')
            else:
                file.write(head % (i, i * 1000, b"connect", b"kernel", 100))
                file.write(
                    b'"op":"connect","address":"192.0.2.%d","port":1}\n' % (i % 9 // 3)
                )
        file.write(head % (EVENTS + 1, EVENTS * 1000, b"end", b"supervisor", 100))
        file.write(b'"status":"ok","exit_code":0}\n')
    return path


@pytest.mark.parametrize("question", QUESTIONS)
def test_memory_is_bounded(long, question):
    code, mib = QUESTIONS[question]
    done = subprocess.run(
        [sys.executable, "-c", ASK.format(question=code.replace("\\n", "\n")), long],
        capture_output=True, text=True, timeout=60, env={**os.environ},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < mib


@pytest.mark.requires("pyarrow", "pandas")
@pytest.mark.parametrize(("method", "mib"), [("to_pandas", 400), ("to_arrow", 300)])
def test_tables_take_what_the_table_takes(long, method, mib):
    part = "trace.of_kind('open')"
    code = f"import pandas, pyarrow; before = memory(); assert len({part}.{method}()) == 400_000"
    done = subprocess.run(
        [sys.executable, "-c", ASK.format(question=code), long],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < mib


@pytest.mark.parametrize(
    "view", ["files", "network", "processes", "tree", "timeline", "json"]
)
def test_show_takes_little_memory(long, program, view):
    limited = ["sh", "-c", 'ulimit -d 16384; exec "$@" > /dev/null', "sh"]
    done = subprocess.run(
        [*limited, f"{program}-trace", "show", f"--{view}", long],
        stderr=subprocess.PIPE, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
