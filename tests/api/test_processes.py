"""Programs of several processes work as under plain python, and all are traced."""

from __future__ import annotations

import textwrap

import pytest
import sandpit
from plain import POLICIES, outcome_of, run_plain

pytestmark = [pytest.mark.requires("program"), pytest.mark.requires("landlock")]

HEAD = """
import asyncio, multiprocessing, os, subprocess, sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

def child_work(n):
    return n * n

def put(queue):
    queue.put(child_work(3))

def note(shared, lock):
    with lock:
        shared["k"] = child_work(4)
"""

PROGRAMS = {
    "fork": """
        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        one = context.Process(target=put, args=(queue,))
        one.start()
        print(queue.get())
        one.join()
        print(one.exitcode)
        """,
    "spawn": """
        context = multiprocessing.get_context("spawn")
        queue = context.Queue()
        one = context.Process(target=put, args=(queue,))
        one.start()
        print(queue.get())
        one.join()
        print(one.exitcode)
        """,
    "forkserver": """
        context = multiprocessing.get_context("forkserver")
        with context.Pool(2) as pool:
            print(pool.map(child_work, range(5)))
        """,
    "pool": """
        with ProcessPoolExecutor(2) as pool:
            print(list(pool.map(child_work, range(10))))
        """,
    "manager": """
        with multiprocessing.Manager() as manager:
            shared, lock = manager.dict(), manager.Lock()
            one = multiprocessing.Process(target=note, args=(shared, lock))
            one.start()
            one.join()
            print(dict(shared))
        """,
    "shared_memory": """
        from multiprocessing import shared_memory
        one = shared_memory.SharedMemory(create=True, size=100)
        two = shared_memory.SharedMemory(one.name)
        one.buf[0] = 7
        print(two.buf[0])
        two.close()
        one.close()
        one.unlink()
        """,
    "asyncio_subprocess": """
        async def main():
            one = await asyncio.create_subprocess_exec(
                sys.executable, "-c", "def child_work(n): print(n)\\nchild_work(1)",
                stdout=subprocess.PIPE)
            print(await one.communicate(), one.returncode)
            two = await asyncio.create_subprocess_shell("cat; exit 3",
                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            print(await two.communicate(b"in"), two.returncode)
        asyncio.run(main())
        """,
    "raw_fork": """
        pid = os.fork()
        if pid == 0:
            child_work(2)
            os._exit(9)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """,
    "posix_spawn": """
        pid = os.posix_spawn(sys.executable,
            [sys.executable, "-c", "def child_work(): pass\\nchild_work()"], os.environ)
        print(os.waitpid(pid, 0)[1])
        """,
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_program_of_several_processes(python, policy, name, tmp_path):
    body = textwrap.indent(textwrap.dedent(PROGRAMS[name]), "    ")
    (tmp_path / "main.py").write_text(f"{HEAD}\nif __name__ == '__main__':\n{body}\n")
    plain = run_plain(python, ["main.py"], cwd=tmp_path)
    assert plain.exit_code == 0, plain.stderr.decode()
    result = sandpit.run(
        "main.py", cwd=tmp_path, policy=policy, python=python.path, timeout=60
    )
    assert outcome_of(result) == plain
    assert result.violations == ()
    if name != "shared_memory":
        check_children(result, traced=name != "shared_memory")


def check_children(result, traced):
    trace = result.trace
    first = trace[0]["pid"]
    born = {event["pid"] for event in trace} - {first, 0}
    assert born
    kinds = {event["kind"] for event in trace}
    assert "fork" in kinds
    calls = [event for event in trace if event["kind"] == "call"]
    names = [
        event["pid"]
        for event in calls
        if "child_work" in (event.get("function") or "") and event["pid"] != first
    ]
    assert names, "no call of a child is in the trace"


def test_thread_pools_work_and_their_calls_are_recorded(python):
    code = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "def thread_work(n):\n    return n + 1\n"
        "with ThreadPoolExecutor(4) as pool:\n"
        "    print(sum(pool.map(thread_work, range(100))))\n"
    )
    result = sandpit.run_string(code, python=python.path)
    assert (result.stdout, result.violations) == ("5050\n", ())
    counted = sum(
        event.get("count", 1)
        for event in result.trace
        if event["kind"] == "call" and "thread_work" in (event.get("function") or "")
    )
    assert counted == 100
