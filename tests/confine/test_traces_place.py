"""What a guest leaves for the end of the run: a trace of its own making where the true one
belongs, links where the supervisor tidies up."""

from __future__ import annotations

import os
import shutil

import pytest

pytestmark = pytest.mark.requires("program")

SWAP = r"""
import os, shutil, sys
folder, how = sys.argv[1:]
if how == "moved":
    os.rename(folder, folder + "-moved")
else:
    shutil.rmtree(folder)
os.mkdir(folder)
with open(os.path.join(folder, "run.sptrace"), "w") as forged:
    forged.write("forged\n")
"""


@pytest.mark.parametrize("how", ["moved", "removed"])
def test_a_forged_trace_in_the_true_ones_place_is_told(sandpit, tmp_path, how):
    folder = tmp_path / "out"
    folder.mkdir()
    sandpit.trace = folder / "run.sptrace"
    done = sandpit.run(SWAP, folder, how, options=("--policy", "trace-only"))
    assert done.returncode == 125
    assert "the trace" in done.stderr
    true = done.stderr.rpartition("'")[0].rpartition("'")[2]
    assert true != str(folder / "run.sptrace")
    with open(true, encoding="utf-8") as lines:
        assert '"kind":"start"' in next(lines)
    if how == "removed":
        os.unlink(true)


LINK = r"""
import os, sys
folder = f"/dev/shm/sandpit-test-{os.getpid()}"
os.mkdir(folder)
open(os.path.join(folder, "precious"), "w").close()
os.rename(folder, folder + "-moved")
os.symlink(sys.argv[1], folder)
print(folder)
"""


def test_tidying_shared_memory_follows_no_link(sandpit, tmp_path):
    precious = tmp_path / "other" / "precious"
    precious.parent.mkdir()
    precious.write_text("mine")
    done = sandpit.run(LINK, precious.parent, options=("--policy", "trace-only"))
    assert done.returncode == 0, done.stderr
    assert precious.read_text() == "mine"
    os.unlink(done.stdout.strip())
    shutil.rmtree(done.stdout.strip() + "-moved")
