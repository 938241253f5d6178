"""What all Python tests share: abilities of this machine, interpreters, listeners."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "support"))

import abilities
import interpreters
from listener import Listener


def pytest_configure() -> None:
    """Interrupts work: a shell starts background jobs with SIGINT ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give tests that take `python` one run for each interpreter of this machine, as far
    as their mark `versions` means it; where there is none, the first of these is
    required."""
    if "python" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker("versions")
    since, before = _versions(**marker.kwargs) if marker else _versions()
    found = [one for one in interpreters.find() if since <= one.version[:2] < before]
    given = [pytest.param(one, id=one.label) for one in found] or [
        pytest.param(None, marks=pytest.mark.requires(f"python3.{since[1]}"))
    ]
    metafunc.parametrize("python", given)


def _versions(since=(3, 9), before=(4, 0)):
    return since, before


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose requirement this machine lacks, or fail if it must not."""
    for marker in item.iter_markers("requires"):
        for name in marker.args:
            abilities.require(name)


@pytest.fixture
def listener():
    """A server on the loopback interface that notices whatever reaches it."""
    with Listener() as server:
        yield server
