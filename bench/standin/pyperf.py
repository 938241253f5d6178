"""In place of the module `pyperf`: runs each benchmark of a program in this process, as
often as PYPERF_LOOPS says (once unless set), and prints its time.

So that a program written for pyperf is one run of one process, to be timed from
outside.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from typing import Any

perf_counter = time.perf_counter


def python_implementation() -> str:
    return "cpython"


class Runner:
    """Takes the calls that benchmark programs make of pyperf's class of that name."""

    def __init__(self, **_: Any) -> None:
        self.metadata: dict[str, Any] = {}
        self.argparser = argparse.ArgumentParser()
        self.args: argparse.Namespace | None = None
        self.loops = int(os.environ.get("PYPERF_LOOPS", "1"))

    def parse_args(self, args: list[str] | None = None) -> argparse.Namespace:
        if self.args is None:
            self.args = self.argparser.parse_args(args)
        return self.args

    def report(self, name: str, seconds: float) -> None:
        print(f"{name}: {seconds:.6f} s")

    def bench_time_func(
        self, name: str, function: Callable[..., float], *args: Any, **_: Any
    ) -> None:
        self.parse_args()
        self.report(name, function(self.loops, *args))

    def bench_func(
        self, name: str, function: Callable[..., Any], *args: Any, **_: Any
    ) -> None:
        self.parse_args()
        begin = perf_counter()
        for _loop in range(self.loops):
            function(*args)
        self.report(name, perf_counter() - begin)

    def bench_async_func(
        self, name: str, function: Callable[..., Awaitable[Any]], *args: Any, **_: Any
    ) -> None:
        self.parse_args()

        async def repeat() -> None:
            for _loop in range(self.loops):
                await function(*args)

        begin = perf_counter()
        asyncio.run(repeat())
        self.report(name, perf_counter() - begin)
