"""Timing whole commands, several in turn, so that a noisy moment hits all of them
alike.

Wall time is until the command itself ends. CPU time is user and system of the command
and of everything it started, orphans included: the timing process is a sub-reaper, so
that none ends up with init. Each command gets a session of its own, lest the
scheduler's autogroups favour one that makes its own.
"""

from __future__ import annotations

import ctypes
import os
import random
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

PR_SET_CHILD_SUBREAPER = 36


@dataclass
class Series:
    """Repeated measurements of one command, in seconds."""

    name: str
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    @property
    def wall_median(self) -> float:
        return statistics.median(self.wall)

    @property
    def cpu_median(self) -> float:
        return statistics.median(self.cpu)


@dataclass(frozen=True)
class Command:
    """A command to time: its name in tables, its words, its environment and exit
    code."""

    name: str
    words: Sequence[str]
    environment: Mapping[str, str]
    expected: int = 0


def become_subreaper() -> None:
    """Make orphans of what we start our own children."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot become a sub-reaper")


def reap_orphans() -> float:
    """Wait for everything that is left, and give its CPU time."""
    cpu = 0.0
    while True:
        try:
            _, _, usage = os.wait4(-1, 0)
        except ChildProcessError:
            return cpu
        cpu += usage.ru_utime + usage.ru_stime


def time_once(command: Command, series: Series) -> None:
    """Run a command once and add what it took. A wrong exit code ends the bench."""
    null = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    begin = time.perf_counter()
    child = os.posix_spawn(
        command.words[0],
        list(command.words),
        dict(command.environment),
        file_actions=null,
        setsid=True,
    )
    _, status, usage = os.wait4(child, 0)
    end = time.perf_counter()
    code = os.waitstatus_to_exitcode(status)
    if code != command.expected:
        sys.exit(f"{command.name}: exit code {code}: {' '.join(command.words)}")
    series.wall.append(end - begin)
    series.cpu.append(usage.ru_utime + usage.ru_stime + reap_orphans())


def time_in_turn(
    commands: Sequence[Command], rounds: int, warm_up: int = 3
) -> list[Series]:
    """Time every command `rounds` times, taking turns. Each round has another order:
    what a command leaves behind, in caches above all, is felt by the one after it."""
    become_subreaper()
    all_series = [Series(command.name) for command in commands]
    for command in commands:
        for _ in range(warm_up):
            time_once(command, Series(command.name))
    order = list(range(len(commands)))
    shuffle = random.Random(rounds).shuffle
    for _ in range(rounds):
        shuffle(order)
        for index in order:
            time_once(commands[index], all_series[index])
    return all_series
