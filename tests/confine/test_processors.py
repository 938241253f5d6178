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


# What is seen while a file is handed over is no choice.
CHOOSE_FOR_ANOTHER = r"""
import json, os, threading, time
path = os.path.abspath("file")
open(path, "w").write("text")
every, worker, done = os.sched_getaffinity(0), [], False

def work():
    worker.append(threading.get_native_id())
    while not done:
        open(path).close()

threading.Thread(target=work).start()
while not worker:
    time.sleep(0.01)
lost = []
for turn in range(100):
    for wanted in ({min(every)}, every, {max(every)}, every):
        os.sched_setaffinity(worker[0], wanted)
        end = time.monotonic() + 1
        while os.sched_getaffinity(worker[0]) != wanted and time.monotonic() < end:
            time.sleep(0.001)
        if time.monotonic() >= end:
            lost.append(sorted(wanted))
done = True
print(json.dumps(lost))
"""


def test_what_one_thread_chooses_for_another_stays(sandpit) -> None:
    (sandpit.folder / "policy.toml").write_text(POLICY)
    assert json.loads(sandpit.plain(CHOOSE_FOR_ANOTHER).stdout) == []
    ran = sandpit.run(
        CHOOSE_FOR_ANOTHER, options=("--policy", "./policy.toml", "--quiet")
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == []
