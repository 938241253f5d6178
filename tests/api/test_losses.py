"""A result says what its trace has lost."""

from __future__ import annotations

import pytest
import sandpit

pytestmark = [pytest.mark.requires("program"), pytest.mark.requires("listener")]

OPENS = """
import os
for i in range(20000):
    os.close(os.open("/dev/null", os.O_RDONLY))
"""


def test_result_says_what_a_trace_limit_cost():
    result = sandpit.run_string(
        OPENS, policy="trace-only", limits={"trace": "128KiB"}, calls="off"
    )
    assert (result.status, result.exit_code) == ("ok", 0)
    assert result.limits["trace"]["reached"]
    lost = result.trace.of_kind("lost")
    end = result.trace[-1]
    assert sum(event["count"] for event in lost) == end["lost"] > 10000
    assert {event["reason"] for event in lost} == {"size-cap"}
    assert len(result.trace) + sum(e["missing"] for e in lost) == end["seq"] + 1
    kept = len(result.trace.of_kind("open"))
    assert result.summary["open"] == end["counts"]["open"] > 20000 > kept
    assert result.trace.verify().code == 0


def test_result_of_calls_that_a_trace_limit_cost():
    code = "def leaf(): pass\nfor i in range(30000): leaf()\n" + OPENS
    result = sandpit.run_string(
        code, policy="trace-only", limits={"trace": "128KiB"}, calls="folded"
    )
    lost = result.trace.of_kind("lost")
    told = sum(event.get("count", 1) for event in result.trace.of_kind("call"))
    assert told + sum(event.get("calls", 0) for event in lost) >= 30000
    assert not result.trace.calls().exact
