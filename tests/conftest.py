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
    """Give tests that take `python` one run for each interpreter of this machine."""
    if "python" in metafunc.fixturenames:
        found = interpreters.find()
        metafunc.parametrize("python", found, ids=[one.label for one in found])


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
