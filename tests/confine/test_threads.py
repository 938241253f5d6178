"""Threads whose stacks just fit their work have room for the tracing too."""

from __future__ import annotations

import subprocess

import pytest

pytestmark = pytest.mark.requires("program")

SMALL_STACK = """\
import threading
threading.stack_size(256 * 1024)
def down(n):
    return n and 1 + down(n - 1)
found = []
thread = threading.Thread(target=lambda: found.append(down(500)))
thread.start()
thread.join()
print(found, threading.stack_size())
"""


@pytest.mark.parametrize("calls", ["off", "first", "folded", "all"])
def test_a_small_stack_is_enough(sandpit, python, calls):
    # Under `folded` and `all` this used to end in a segmentation fault on 3.10.
    path = sandpit.folder / "plain.py"
    path.write_text(SMALL_STACK)
    plain = subprocess.run([str(python), str(path)], capture_output=True, text=True, check=True)
    done = sandpit.run(SMALL_STACK, options=("--python", str(python), "--calls", calls))
    assert (done.returncode, done.stdout) == (0, plain.stdout), done.stderr
