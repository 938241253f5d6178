"""Where a program may run is its own affair, though the supervisor calls a thread near for a
moment whenever it hands it a file."""

from __future__ import annotations

import json

import pytest

pytestmark = [
    pytest.mark.requires("program"),
    pytest.mark.requires("listener"),
    pytest.mark.requires("processors"),
]

# Anything may be denied: each file is opened for the program.
POLICY = """[fs]
deny_read = ["**/secret"]
"""

CHOOSE = r"""
import json, os, threading
path = os.path.abspath("file")
open(path, "w").write("text")
told = {"all": sorted(os.sched_getaffinity(0))}

def look(name, wanted=None):
    if wanted is not None:
        os.sched_setaffinity(0, wanted)
    seen = set()
    for _ in range(100):
        open(path).close()
        seen.add(tuple(sorted(os.sched_getaffinity(0))))
    told[name] = sorted(map(list, seen))

look("mine")
for one in sorted(os.sched_getaffinity(0))[:2]:
    worker = threading.Thread(target=look, args=(f"only {one}", {one}))
    worker.start()
    worker.join()
look("still mine")
print(json.dumps(told))
"""


def test_a_program_runs_where_it_chose_to(sandpit) -> None:
    (sandpit.folder / "policy.toml").write_text(POLICY)
    plain = json.loads(sandpit.plain(CHOOSE).stdout)
    ran = sandpit.run(CHOOSE, options=("--policy", "./policy.toml", "--quiet"))
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == plain
    assert plain["mine"] == plain["still mine"] == [plain["all"]]
    first, second = plain["all"][:2]
    assert plain[f"only {first}"] == [[first]]
    assert plain[f"only {second}"] == [[second]]
