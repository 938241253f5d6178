"""Many runs at once, from threads and event loops, leave nothing behind."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import sandpit
from plain import processes_marked

pytestmark = [pytest.mark.requires("program"), pytest.mark.requires("landlock")]

RUNS = 200
CODE = """
import _posixshmem, os, sys
print(sys.argv[1])
_posixshmem.shm_open(f"/{sys.argv[2]}-{sys.argv[1]}", os.O_CREAT | os.O_RDWR, 0o600)
with open("out.txt", "w") as stream:
    stream.write(sys.argv[1])
"""


@pytest.fixture
def mark(monkeypatch):
    """A word in the environment of every process of the test's runs."""
    word = f"SANDPIT_MARK_{os.getpid()}_{time.monotonic_ns()}"
    monkeypatch.setenv(word, "1")
    yield word
    end = time.monotonic() + 10
    left = processes_marked(word)
    while left and time.monotonic() < end:
        time.sleep(0.05)
        left = processes_marked(word)
    assert left == []


@pytest.fixture
def shared_memory(mark):
    """Check that shared memory which the guests made is gone."""
    yield
    left = [name for name in os.listdir("/dev/shm") if name.startswith(mark)]
    for name in left:
        os.unlink(f"/dev/shm/{name}")
    assert left == []


def check(results):
    for number, result in enumerate(results):
        assert result.stdout == f"{number}\n", result.stderr
        assert result.read("out.txt") == str(number).encode()
        assert result.status == "ok"
        assert result.trace[-1]["kind"] == "end"


def test_runs_in_an_event_loop(mark, nothing_left, shared_memory):
    async def one(number):
        return await sandpit.start_string(
            CODE,
            args=[str(number), mark],
            policy="no-network",
            env={**os.environ, mark: "1"},
        )

    async def main():
        return await asyncio.gather(*map(one, range(RUNS)))

    results = asyncio.run(main())
    check(results)
    del results
    gc.collect()


def test_runs_in_threads(mark, nothing_left, shared_memory):
    def one(number):
        return sandpit.run_string(CODE, args=[str(number), mark], policy="trace-only")

    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(one, range(48)))
    check(results)
    del results
    gc.collect()


def test_server_goes_on_answering_while_a_run_goes_on():
    longest = 0.0

    async def beat():
        nonlocal longest
        while True:
            begin = time.monotonic()
            await asyncio.sleep(0.005)
            longest = max(longest, time.monotonic() - begin)

    async def main():
        beating = asyncio.ensure_future(beat())
        result = await sandpit.start_string("import time; time.sleep(0.5); print(1)")
        beating.cancel()
        return result

    assert asyncio.run(main()).stdout == "1\n"
    assert longest < 0.4


def test_cancelled_task_ends_the_guest(mark, nothing_left):
    async def main():
        async def wait():
            return await sandpit.start_string(
                "import subprocess; subprocess.run(['sleep', '60'])",
                policy="trace-only",
            )

        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(wait(), 1)

    asyncio.run(main())
    gc.collect()


def test_dropped_run_ends_the_guest(mark, nothing_left):
    code = "import subprocess; subprocess.run(['sleep', '60'])"
    run = sandpit.start_string(code, policy="trace-only")
    while run.pid is None:
        time.sleep(0.01)
    with pytest.warns(ResourceWarning):
        del run
    reapers = [one for one in threading.enumerate() if one.name == "sandpit-reaper"]
    for one in reapers:
        one.join(10)
    del one, reapers
