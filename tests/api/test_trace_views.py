"""What a trace of a real run says about files, the network and processes."""

from __future__ import annotations

import os

import pytest
import sandpit

pytestmark = [pytest.mark.requires("program"), pytest.mark.requires("listener")]


def names_of(use):
    return [os.path.basename(place) for place in use.by]


def test_files_of_a_run(script, tmp_path, python):
    path = script(
        """
        import os
        def write():
            with open("data.txt", "w") as file:
                file.write("x")
        write()
        write()
        open("data.txt").read()
        os.rename("data.txt", "old.txt")
        os.mkdir("made")
        try:
            open("/etc/shadow")
        except OSError:
            pass
        """
    )
    denying = {"extends": "default", "fs": {"deny_read": ["/etc/shadow"]}}
    result = sandpit.run(path, cwd=tmp_path, policy=denying, python=python.path)
    used = {os.path.basename(use.path): use for use in result.trace.files()}
    data = next(u for u in result.trace.files() if u.path == f"{tmp_path}/data.txt")
    assert (data.read, data.write, data.remove) == (1, 2, 1)
    assert names_of(data) == ["script.py:4", "script.py:8", "script.py:9"]
    assert used["old.txt"].create == used["made"].create == 1
    assert used["shadow"].denied == 1
    assert names_of(used["shadow"]) == ["script.py:12"]
    assert result.trace.of_kind("violation").files() == [used["shadow"]]


def test_network_of_a_run(script, tmp_path, listener):
    path = script(
        f"""
        import socket
        for address in ("127.0.0.1", {listener.port}), ("192.0.2.1", 443):
            try:
                socket.create_connection(address).close()
            except OSError as error:
                print(error)
        """
    )
    allowing = {"network": {"allow": [f"127.0.0.1:{listener.port}"]}}
    result = sandpit.run(path, cwd=tmp_path, policy=allowing)
    used = {use.name: use for use in result.trace.network()}
    assert used[f"127.0.0.1:{listener.port}"].connect == 1
    denied = used["192.0.2.1:443"]
    assert (denied.connect, denied.denied) == (0, 1)
    assert names_of(denied) == ["script.py:5"]


def test_processes_of_a_run(script, tmp_path, python):
    path = script(
        """
        import os, subprocess, sys, threading
        def start():
            subprocess.run(["/bin/sh", "-c", "exit 5"])
        thread = threading.Thread(target=start)
        thread.start()
        thread.join()
        subprocess.run([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"])
        if os.fork() == 0:
            if os.fork() == 0:
                os._exit(7)
            os._exit(os.waitstatus_to_exitcode(os.wait()[1])
                     if hasattr(os, "waitstatus_to_exitcode") else 7)
        os.wait()
        """
    )
    result = sandpit.run(path, cwd=tmp_path, policy="trace-only", python=python.path)
    assert result.exit_code == 0, result.stderr
    first, *others = result.trace.processes()
    assert first.parent is None
    ends = [(5, None), (None, 9), (7, None), (7, None)]
    for one, end in zip(others, ends):  # or its parent was told first
        assert (one.exit_code, one.signal) in (end, (None, None))
    assert [one.started for one in others] == [True, True, False, False]
    shell, killed, fork, below = others
    assert shell.argv == ["/bin/sh", "-c", "exit 5"]
    assert (shell.traced, killed.traced, fork.traced) == (False, True, True)
    assert first.children == [shell, killed, fork]
    assert (below.parent, fork.children) == (fork, [below])
    assert all(0 < one.start_ns <= one.end_ns for one in others)


PROGRAM = """
import os, threading
def gen(n):
    for i in range(n):
        yield i
def work(n):
    return sum(gen(n))
class Thing:
    def __init__(self):
        self.x = 1
def deep(n):
    return n and deep(n - 1)
def boom():
    try:
        {}["x"]
    except KeyError:
        pass
thread = threading.Thread(target=work, args=(10,))
thread.start()
thread.join()
Thing()
deep(100)
boom()
sorted([3, 1], key=lambda x: x)
if os.fork() == 0:
    work(5)
    os._exit(0)
os.wait()
"""


def counts_of(calls):
    """Calls of the program's own functions by name, over all ways they were called."""
    counts = {}
    for _, node in calls.walk():
        if node.file.endswith("script.py") and not node.native:
            counts[node.function] = counts.get(node.function, 0) + node.count
    return counts


# The body of a class is called under its name.
OWN = {"<module>": 1, "gen": 2, "work": 2, "Thing": 1, "Thing.__init__": 1, "deep": 101,
       "boom": 1, "<lambda>": 2}  # fmt: skip


@pytest.mark.parametrize("level", ["all", "folded"])
def test_calls_of_a_run_are_counted(script, tmp_path, python, level):
    result = sandpit.run(
        script(PROGRAM), cwd=tmp_path, policy="trace-only", calls=level,
        python=python.path)  # fmt: skip
    assert result.exit_code == 0, result.stderr
    calls = result.trace.calls()
    assert type(calls) is {"all": sandpit.CallTree, "folded": sandpit.CallGraph}[level]
    assert calls.exact is (level == "all")
    assert counts_of(calls) == OWN
    assert calls.unlisted == calls.lost == 0


def test_calls_of_a_run_at_level_first_are_who_called_whom(script, tmp_path):
    result = sandpit.run(
        script(PROGRAM), cwd=tmp_path, policy="trace-only", calls="first"
    )
    calls = result.trace.calls()
    assert isinstance(calls, sandpit.CallGraph)
    assert set(counts_of(calls)) == set(OWN)


def test_tree_of_a_run_has_each_way_of_calling(script, tmp_path, python):
    path = script(PROGRAM)
    result = sandpit.run(
        path, cwd=tmp_path, policy="trace-only", calls="all", python=python.path
    )
    calls = result.trace.calls()
    pids = {root.pid for root in calls.roots}
    assert len(pids) == 2
    assert len(calls.roots) == 3
    chain = []
    for depth, node in calls.walk():
        if node.function == "deep":
            chain.append((depth - len(chain), node.count))
    assert chain == [(chain[0][0], 1)] * 101
    for _, node in calls.walk():
        assert 0 <= node.self_ns <= node.total_ns
        assert node.total_ns == node.self_ns + sum(
            child.total_ns for child in node.children
        )
