"""`on_event`: the events of a run, while it runs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
import time

import pytest
import sandpit

pytestmark = pytest.mark.requires("program", "landlock", "listener")

SLEEPS = "import time\nprint('begun', flush=True)\ntime.sleep(60)"
FLOOD = "for i in range({}): open('/dev/null', 'w').close()"


class BoomError(Exception):
    """What a callback raises."""


def boom(event):
    if event["kind"] == "output":
        raise BoomError(event["text"])


def gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def check_numbers(events):
    """Every number is there, or a `lost` event accounts for it."""
    expected = 0
    for event in events:
        expected += event.get("missing", 0) if event["kind"] == "lost" else 0
        assert event["seq"] == expected
        expected += 1


@pytest.mark.parametrize("calls", ["off", "folded", "all"])
def test_on_event_gets_what_the_trace_holds(nothing_left, calls):
    code = "import json\ndef f(): return 1\nfor i in range(500): f()\nprint('x' * 5000)"
    seen = []
    result = sandpit.run_string(code, calls=calls, on_event=seen.append)
    assert (result.status, result.stdout) == ("ok", "x" * 5000 + "\n")
    assert seen == list(result.trace)
    if calls == "all":
        assert sum(one["kind"] == "return" for one in seen) > 500
        assert not any(one["kind"] == "run" for one in seen)
    del result


def test_on_event_without_trace_is_called_as_well(script):
    seen = []
    result = sandpit.run(script("import json"), trace=False, on_event=seen.append)
    assert result.status == "ok" and result.trace_path is None
    assert [seen[0]["kind"], seen[-1]["kind"]] == ["start", "end"]
    assert any(one.get("module") == "json" for one in seen)
    check_numbers(seen)


def test_on_event_is_called_while_the_program_runs_by_the_thread_that_waits():
    seen = []

    def note(event):
        if event["kind"] == "output":
            seen.append((event["text"], time.monotonic(), threading.current_thread()))

    code = "import time\nprint(time.monotonic(), flush=True)\ntime.sleep(1.5)"
    sandpit.run_string(code, on_event=note)
    ended = time.monotonic()
    text, at, thread = seen[0]
    assert thread is threading.current_thread()
    assert at - float(text) < 1 < ended - at


def test_on_event_waiting_in_pieces_gets_everything_in_order():
    seen = []
    run = sandpit.start_string(
        "import time\nfor i in range(10): print(i, flush=True); time.sleep(0.05)",
        on_event=seen.append,
    )
    result = None
    while result is None:
        with contextlib.suppress(TimeoutError):
            result = run.wait(timeout=0.02)
    assert seen == list(result.trace)
    assert run.wait() is result


def test_on_event_is_not_called_by_looking_at_the_run():
    seen = []
    with sandpit.start_string("print('hello')", on_event=seen.append) as run:
        while not run.done:
            assert run.pid is None or run.pid > 0
            time.sleep(0.01)
        assert seen == []
        result = run.wait()
    assert seen == list(result.trace)


def test_on_event_what_it_raises_ends_the_run(tmp_path, nothing_left):
    began = time.monotonic()
    trace = tmp_path / "kept.sptrace"
    with pytest.raises(BoomError, match="begun"):
        sandpit.run_string(SLEEPS, on_event=boom, trace=trace)
    assert time.monotonic() - began < 30
    kept = sandpit.load(trace)
    assert kept[-1]["status"] == "cancelled" and kept.verify().code == 0
    assert gone(kept[0]["pid"])


def test_on_event_after_it_raised_the_result_can_still_be_had(nothing_left):
    run = sandpit.start_string(SLEEPS, on_event=boom)
    with pytest.raises(BoomError):
        run.wait()
    result = run.wait()
    assert (result.status, result.stdout) == ("cancelled", "begun\n")
    del run, result


def test_on_event_interrupt_in_it_ends_the_run_with_its_result(nothing_left):
    def interrupt(event):
        if event["kind"] == "output":
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(10)

    began = time.monotonic()
    with pytest.raises(sandpit.Interrupted) as caught:
        sandpit.run_string(SLEEPS, on_event=interrupt)
    assert time.monotonic() - began < 9
    assert caught.value.result.status == "cancelled"
    assert caught.value.result.stdout == "begun\n"
    del caught


def test_on_event_may_kill_the_run_and_sees_its_end():
    seen = []

    def kill(event):
        seen.append(event)
        if event["kind"] == "output":
            run.kill()

    run = sandpit.start_string(SLEEPS, on_event=kill)
    result = run.wait()
    assert result.status == "cancelled"
    assert seen[-1]["status"] == "cancelled" and seen == list(result.trace)


def test_on_event_cannot_wait_for_its_own_run():
    def wait(event):
        run.wait()

    run = sandpit.start_string(SLEEPS, on_event=wait)
    with pytest.raises(RuntimeError, match="cannot wait"):
        run.wait()
    assert run.wait().status == "cancelled"


def test_on_event_slow_one_hinders_neither_program_nor_output():
    slow = []

    def note(event):
        if event["kind"] == "output" and not slow:
            slow.append(time.monotonic())
            time.sleep(2)

    code = "import time\nprint('begun', flush=True)\n"
    code += "print('x' * 3_000_000)\nprint(time.monotonic())"
    result = sandpit.run_string(code, on_event=note)
    assert result.stdout_bytes_total > 3_000_000 and not result.stdout_truncated
    # The program ended while the callback slept.
    assert float(result.stdout.split()[-1]) - slow[0] < 1.5


def test_on_event_too_slow_one_is_told_how_much_it_missed(tmp_path):
    seen = []

    def note(event):
        deadline = time.monotonic() + 60
        while event["kind"] == "output" and time.monotonic() < deadline:
            if (tmp_path / "done").exists():
                break
            time.sleep(0.01)
        seen.append(event["seq"] if event["kind"] == "open" else event)

    code = "print('begun', flush=True)\n" + FLOOD.format(80_000)
    code += "\nopen('done', 'w').close()"
    result = sandpit.run_string(code, on_event=note, cwd=tmp_path, timeout=90)
    events = [one for one in seen if isinstance(one, dict)]
    told = [one for one in events if one["kind"] == "lost"]
    assert {one["reason"] for one in told} == {"slow-reader"}
    assert events[-1]["kind"] == "end" and events[-1]["lost"] == 0
    missed = sum(one["count"] for one in told)
    assert len(result.trace) == len(seen) - len(told) + missed


def test_on_event_million_events_do_not_pile_up():
    code = "def f(): pass\nfor i in range(500_000): f()"
    peak = [0]
    count = [0]

    def note(event):
        count[0] += event.get("count", 0) if event["kind"] == "lost" else 1
        if count[0] % 50_000 == 0:
            with open("/proc/self/statm") as stream:
                peak[0] = max(peak[0], int(stream.read().split()[1]) * 4096)

    with open("/proc/self/statm") as stream:
        before = int(stream.read().split()[1]) * 4096
    sandpit.run_string(code, calls="all", trace=False, on_event=note, timeout=60)
    assert count[0] > 1_000_000
    assert peak[0] - before < 64 << 20


def test_on_event_asyncio_is_called_by_the_event_loop_which_goes_on(nothing_left):
    async def main():
        seen = [[] for _ in range(4)]
        threads = set()
        turns = [0]

        async def turn():
            while True:
                turns[0] += 1
                await asyncio.sleep(0.01)

        def note(into):
            def add(event):
                threads.add(threading.current_thread())
                into.append(event)

            return add

        turning = asyncio.ensure_future(turn())
        code = "import time\nprint('begun', flush=True)\ntime.sleep(1)"
        runs = [sandpit.start_string(code, on_event=note(into)) for into in seen]
        results = await asyncio.gather(*runs)
        turning.cancel()
        assert [list(one.trace) for one in results] == seen
        assert threads == {threading.current_thread()}
        assert turns[0] > 20

    asyncio.run(main())


def test_on_event_asyncio_what_it_raises_ends_the_run(nothing_left):
    async def main():
        run = sandpit.start_string(SLEEPS, on_event=boom)
        with pytest.raises(BoomError):
            await run
        result = await run
        assert result.status == "cancelled"
        async with sandpit.start_string(SLEEPS, on_event=boom) as left:
            pass
        assert left.wait().status == "cancelled"

    asyncio.run(asyncio.wait_for(main(), 60))


def test_on_event_asyncio_cancelled_task_ends_the_run(nothing_left):
    async def main():
        seen = []
        run = sandpit.start_string(SLEEPS, on_event=seen.append)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(run, 1)
        assert any(one["kind"] == "output" for one in seen)
        assert run.wait().status == "cancelled"

    asyncio.run(main())


def test_on_event_thread_and_event_loop_may_wait_for_one_run():
    seen = []

    def note(event):
        seen.append(event)
        if event["kind"] == "output":
            time.sleep(0.3)

    async def main(run):
        spent = time.process_time()
        result = await run
        assert time.process_time() - spent < 1.5
        return result

    code = "import time\nfor i in range(5): print(i, flush=True); time.sleep(0.1)"
    run = sandpit.start_string(code, on_event=note)
    thread = threading.Thread(target=run.wait)
    thread.start()
    result = asyncio.run(main(run))
    thread.join()
    assert seen == list(result.trace)


def test_on_event_several_threads_at_once_get_their_own(nothing_left):
    seen = [[] for _ in range(4)]
    traces = [None] * 4

    def work(i):
        result = sandpit.run_string(f"print({i})", on_event=seen[i].append)
        traces[i] = list(result.trace)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert traces == seen


def test_on_event_block_left_early_calls_nobody_more(nothing_left):
    seen = []
    with sandpit.start_string(SLEEPS, on_event=seen.append) as run:
        with pytest.raises(TimeoutError):
            run.wait(timeout=1)
        before = len(seen)
    assert len(seen) == before > 10
    assert run.wait().status == "cancelled"


def test_on_event_run_that_cannot_start_calls_nobody(nothing_left):
    seen = []
    with pytest.raises(sandpit.PolicyError):
        sandpit.run_string("pass", policy="no-such", on_event=seen.append)
    assert seen == []


def test_on_event_must_be_a_plain_function():
    async def later(event):
        pass

    for wrong in (5, "print", later):
        with pytest.raises(TypeError, match="on_event must be"):
            sandpit.run_string("pass", on_event=wrong)
