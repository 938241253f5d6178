"""Limits as arguments, and what the result says of them."""

from __future__ import annotations

import pytest
import sandpit

pytestmark = pytest.mark.requires("program")

BUSY = "while True: pass"


def test_limit_by_number_and_by_text():
    for value in (0.2, "200ms"):
        result = sandpit.run_string(BUSY, policy="trace-only", limits={"cpu": value})
        assert (result.status, result.exit_code) == ("cpu-limit", 137)
        limit = result.limits["cpu"]
        assert limit["asked"] == limit["value"] == 0.2
        assert 0.2 <= limit["measured"] < 1
        assert limit["reached"] is True
        assert "sampling" in limit["by"]
        assert set(limit["by"]) <= set(result.enforced_by["limits"])
        (violation,) = result.violations
        assert violation.category == "limits"
        assert violation.message == result.reason


def test_timeout_is_the_wall_limit():
    result = sandpit.run_string(BUSY, policy="trace-only", timeout=0.3)
    assert result.status == "timeout"
    assert result.limits["wall"]["asked"] == 0.3


def test_no_limit_is_none():
    result = sandpit.run_string("pass", policy="trace-only")
    assert result.limits == {}
    assert "limits" not in result.enforced_by


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        ({"memroy": 1}, "memroy"),
        ({"cpu": "soon"}, "soon"),
        ({"memory": "1X"}, "1X"),
        ({"processes": "4.5"}, "4.5"),
        ({"processes": 4.5}, "4.5"),
        ({"memory": 0.5}, "0.5"),
    ],
)
def test_a_bad_limit_is_named(limits, says):
    with pytest.raises(sandpit.UsageError, match=says):
        sandpit.run_string("pass", policy="trace-only", limits=limits)


def test_a_violation_of_a_limit_reads_like_any_other():
    result = sandpit.run_string(
        "print('x' * 1000)", policy="trace-only", limits={"output": 100}
    )
    assert result.status == "output-limit"
    assert len(result.stdout) == 100
    assert result.violations[0].rule == "limits.output"
    assert result.violations[0].action == "stop"
    assert "--max-output" in result.violations[0].hint
    (event,) = [one for one in result.trace if one["kind"] == "limit"]
    assert event["value_bytes"] == 100
