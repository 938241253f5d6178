"""Starting, waiting, killing, awaiting: the life of a run, with a played program."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
import sandpit
from sandpit import _channel


def test_run_leaves_nothing_behind(fake, nothing_left):
    result = sandpit.run_string("pass")
    assert result.status == "ok"
    (shelf,) = nothing_left.iterdir()
    assert len(os.listdir(shelf)) == 2
    del result


def test_program_runs_in_a_session_of_its_own_with_no_stray_descriptor(fake):
    import json

    extra = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(extra, True)
    try:
        view = json.loads(sandpit.run("s.py").stdout)
    finally:
        os.close(extra)
    assert view["session"]
    # the three standard ones, the socket twice (once as its stream), the listing
    assert len(view["descriptors"]) <= 5


def test_wait_gives_the_same_result_each_time(fake):
    run = sandpit.start("s.py")
    assert run.wait() is run.wait()
    assert run.done
    assert "ok" in repr(run)


def test_wait_timeout_leaves_the_run_going(fake, nothing_left):
    fake("until-told")
    run = sandpit.start("s.py")
    with pytest.raises(TimeoutError):
        run.wait(0.2)
    assert not run.done
    assert "running" in repr(run)
    run.kill()
    assert run.wait(10).status == "cancelled"
    del run


def test_kill_before_and_after_the_end_is_harmless(fake, nothing_left):
    fake("until-told")
    run = sandpit.start("s.py")
    run.kill()
    run.kill()
    assert run.wait().status == "cancelled"
    run.kill()
    del run


def test_block_ends_the_run(fake, nothing_left):
    fake("until-told")
    with sandpit.start("s.py", stdin=sandpit.PIPE) as run:
        while run.pid is None:
            time.sleep(0.01)
        os.kill(run.pid, 0)
    assert run.done
    assert run.wait().status == "cancelled"
    del run


@pytest.mark.parametrize("in_a_cycle", [False, True])
def test_dropped_run_is_cancelled_and_reaped(fake, nothing_left, tmp_path, in_a_cycle):
    mark = tmp_path / "mark"
    fake("until-told", mark=mark)
    run = sandpit.start_string("pass")
    while run.pid is None:
        time.sleep(0.01)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if in_a_cycle:  # then its channel is finalized before it
            cycle = [run]
            cycle.append(cycle)
            del cycle
        del run
        gc.collect()
    assert [one.category for one in caught] == [ResourceWarning]
    caught.clear()
    for thread in threading.enumerate():
        if thread.name == "sandpit-reaper":
            thread.join(10)
    del thread
    assert mark.read_text() == "dropped"


def test_program_that_does_not_react_is_ended_by_force(fake, nothing_left, monkeypatch):
    monkeypatch.setattr(_channel, "PATIENCE_S", 0.2)
    fake("stubborn")
    run = sandpit.start("s.py")
    run.kill()
    with pytest.raises(sandpit.InternalError, match="status -9"):
        run.wait()
    del run


def test_silence_is_explained_by_what_the_program_said(fake, nothing_left):
    fake("silent")
    with pytest.raises(sandpit.InternalError, match=r"status 9.*rotten"):
        sandpit.run_string("pass")


@pytest.mark.parametrize("play", ["garbage", "incomplete"])
def test_answer_that_makes_no_sense_is_our_fault(fake, nothing_left, play):
    fake(play)
    with pytest.raises(sandpit.InternalError):
        sandpit.run_string("pass")


def test_program_that_cannot_be_executed_is_reported(tmp_path, monkeypatch):
    broken = tmp_path / "sandpit"
    broken.write_bytes(b"\x7fELFnonsense")
    broken.chmod(0o755)
    monkeypatch.setenv("SANDPIT_PROGRAM", str(broken))
    with pytest.raises(OSError, match="Exec format"):
        sandpit.run("s.py")


def test_large_output_comes_whole(fake, nothing_left):
    fake("large", size=20_000_000)
    assert len(sandpit.run("s.py").stdout) == 20_000_000


def test_large_spec_arrives_whole(fake):
    import json

    args = ["y" * 100_000] * 12
    assert json.loads(sandpit.run("s.py", args=args).stdout)["spec"]["args"] == args


def test_threads_run_at_once(fake, nothing_left):
    fake("slow")
    begin = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: sandpit.run_string("pass"), range(8)))
    assert [one.status for one in results] == ["ok"] * 8
    assert len({one.trace_path for one in results}) == 8
    assert time.monotonic() - begin < 8 * 0.3 + 10
    del results


def test_threads_may_wait_for_the_same_run(fake, nothing_left):
    fake("slow")
    run = sandpit.start("s.py")
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(run.wait) for _ in range(4)]
    results = [one.result() for one in waiting]
    assert all(one is results[0] for one in results)
    del run, waiting, results


def test_await_does_not_block_the_loop(fake, nothing_left):
    fake("slow")
    ticks = []

    async def tick():
        while True:
            ticks.append(time.monotonic())
            await asyncio.sleep(0.01)

    async def main():
        ticking = asyncio.ensure_future(tick())
        results = await asyncio.gather(*[sandpit.start_string("x") for _ in range(4)])
        ticking.cancel()
        return results

    assert [one.status for one in asyncio.run(main())] == ["ok"] * 4
    assert len(ticks) > 5


def test_await_twice_and_wait_give_the_same_result(fake, nothing_left):
    fake("slow")

    async def wrap(run):
        return await run

    async def main():
        run = sandpit.start("s.py")
        loop = asyncio.get_running_loop()
        waited = loop.run_in_executor(None, run.wait)
        results = await asyncio.gather(wrap(run), wrap(run), wrap(run))
        results.append(await waited)
        return results

    results = asyncio.run(main())
    assert all(one is results[0] for one in results)
    del results


def test_await_raises_what_went_wrong(fake, nothing_left):
    fake("error", error='{"slug": "policy", "message": "no such policy"}')

    async def main():
        await sandpit.start("s.py")

    with pytest.raises(sandpit.PolicyError, match="no such policy"):
        asyncio.run(main())


def test_cancelled_task_ends_the_run(fake, nothing_left, tmp_path):
    mark = tmp_path / "mark"
    fake("until-told", mark=mark)

    async def main():
        run = sandpit.start("s.py")
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(wrap(run), 0.3)
        assert run.done
        return run

    async def wrap(run):
        return await run

    run = asyncio.run(main())
    assert mark.read_text() == "told"
    assert run.wait().status == "cancelled"
    del run


def test_async_block_ends_the_run(fake, nothing_left):
    fake("until-told")

    async def main():
        async with sandpit.start("s.py") as run:
            await asyncio.sleep(0)
        return run

    assert asyncio.run(main()).wait().status == "cancelled"


def test_async_program_that_does_not_react_is_ended_by_force(
    fake, nothing_left, monkeypatch
):
    monkeypatch.setattr(_channel, "PATIENCE_S", 0.2)
    monkeypatch.setattr("sandpit._run.PATIENCE_S", 0.2)
    fake("stubborn")

    async def main():
        run = sandpit.start("s.py")
        run.kill()
        await run

    with pytest.raises(sandpit.InternalError, match="status -9"):
        asyncio.run(main())


def test_ctrl_c_ends_the_guest_and_keeps_the_trace(fake, nothing_left, tmp_path):
    mark = tmp_path / "mark"
    fake("until-told", mark=mark)
    timer = threading.Timer(0.4, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt) as caught:
        sandpit.run_string("pass", trace=tmp_path / "kept.sptrace")
    timer.join()
    assert isinstance(caught.value, sandpit.Interrupted)
    assert caught.value.result.status == "cancelled"
    assert mark.read_text() == "told"
    assert (tmp_path / "kept.sptrace").exists()
    del caught


def test_end_of_the_caller_cancels_the_run(fake, tmp_path):
    mark = tmp_path / "mark"
    fake("until-told", mark=mark)
    code = (
        "import sandpit, time, warnings; run = sandpit.start('s.py')\n"
        "while run.pid is None: time.sleep(0.01)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=dict(os.environ))
    end = time.monotonic() + 10
    while not mark.exists() or not mark.read_text():
        assert time.monotonic() < end
        time.sleep(0.02)
    assert mark.read_text() == "dropped"


def test_fork_of_the_caller_neither_cancels_nor_removes(fake, nothing_left):
    fake("slow")
    run = sandpit.start_string("pass")
    child = os.fork()
    if child == 0:
        del run
        gc.collect()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    result = run.wait()
    assert result.status == "ok"
    assert result.read("main.py") == b"pass"
    del run, result


def test_run_with_standard_streams_closed(fake, tmp_path):
    code = (
        "import os, sys\n"
        "for fd in (0, 1): os.close(fd)\n"
        "import sandpit\n"
        "status = sandpit.run('s.py').status\n"
        "os.write(2, status.encode())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=False
    )
    assert done.stderr == b"ok"


@pytest.mark.parametrize(
    ("answer", "kind", "attributes"),
    [
        (
            '{"slug": "policy", "message": "m", "line": 3, "column": 4}',
            sandpit.PolicyError,
            {"line": 3, "column": 4},
        ),
        (
            '{"slug": "host", "message": "m", "missing": ["landlock"]}',
            sandpit.HostError,
            {"missing": ("landlock",)},
        ),
        ('{"slug": "not-found", "message": "m"}', FileNotFoundError, {}),
        ('{"slug": "usage", "message": "m"}', sandpit.UsageError, {}),
        ('{"slug": "trace", "message": "m"}', sandpit.TraceError, {"byte": 0}),
        ('{"slug": "internal", "message": "m"}', sandpit.InternalError, {}),
        ('{"slug": "new-one", "message": "m"}', sandpit.InternalError, {}),
    ],
)
def test_error_of_the_program_has_its_class(
    fake, nothing_left, answer, kind, attributes
):
    fake("error", error=answer)
    with pytest.raises(kind) as caught:
        sandpit.run_string("pass")
    assert isinstance(caught.value, sandpit.SandpitError)
    assert caught.value.message == str(caught.value) == "m"
    for name, value in attributes.items():
        assert getattr(caught.value, name) == value
    del caught


def test_run_works_inside_a_running_event_loop(fake, nothing_left):
    # A notebook's cells run inside one.
    async def cell():
        return sandpit.run_string("pass").status

    assert asyncio.run(cell()) == "ok"
