"""Making traces by hand, and telling whether a call stream is nested as it must be."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

Json = dict[str, Any]

START: Json = {
    "format": 1,
    "sandpit": "0.1.0",
    "time": 1_700_000_000_000_000_000,
    "host": {"kernel": "6.1", "arch": "x86_64"},
    "program": "script",
    "script": "/work/job.py",
    "argv": ["python3", "job.py"],
    "cwd": "/work",
    "policy": {"name": "default", "digest": "0" * 64, "mode": "enforce", "grants": []},
    "interpreter": {"path": "/usr/bin/python3", "version": "3.12.1"},
    "calls": "all",
}


class Made:
    """A trace in the making: lines without digests, which readers do not ask for."""

    def __init__(self, **start: Any) -> None:
        self.seq = 0
        self.lines: list[str] = []
        self.add("start", 0, layer="supervisor", **{**START, **start})

    def add(
        self,
        kind: str,
        t: int,
        /,
        pid: int = 100,
        tid: int | None = None,
        layer: str = "python",
        **members: Any,
    ) -> Made:
        head = {"seq": self.seq, "t": t, "kind": kind, "layer": layer, "pid": pid}
        line = {**head, "tid": pid if tid is None else tid, **members}
        self.lines.append(json.dumps(line, separators=(",", ":")))
        self.seq += 1
        return self

    def functions(self, *names: str) -> Made:
        for number, name in enumerate(names, 1):
            self.add(
                "function", 0, id=number, name=name, module="m", file="/m.py", line=3
            )
        return self

    def run(
        self, t: int, events: list[tuple[int, int]], tid: int = 100, **more: Any
    ) -> Made:
        """Calls (a number) and returns (a negative one), each with its own time."""
        times = [t, *(at for _, at in events)]
        steps = [after - before for before, after in zip(times, times[1:])]
        ids = [number for number, _ in events]
        self.add("run", t, tid=tid, n=len(ids), f=ids, dt=steps, **more)
        self.seq += len(ids) - 1
        return self

    def end(self, t: int, **members: Any) -> Made:
        self.add("exit", t, layer="kernel", code=0)
        whole = {"status": "ok", "exit_code": 0, "exited_by": "end", "reason": "over"}
        return self.add("end", t, layer="supervisor", **{**whole, **members})

    def write(self, path: Path) -> Path:
        path.write_text("".join(f"{line}\n" for line in self.lines), encoding="ascii")
        return path


# A stream of calls as balanced brackets: (thread, opened or closed, name, time in ns).
Step = tuple[Any, bool, str, int]
Span = tuple[Any, str, int, int, int]


def spans(steps: Iterable[Step]) -> Iterator[Span]:
    """Give thread, name, depth, begin and end of each call; nothing may be unbalanced."""
    stacks: dict[Any, list[tuple[str, int]]] = {}
    last: dict[Any, int] = {}
    for thread, opens, name, at in steps:
        stack = stacks.setdefault(thread, [])
        assert at >= last.get(thread, 0), "time goes back"
        last[thread] = at
        if opens:
            stack.append((name, at))
        else:
            opened, since = stack.pop()
            assert name in ("", opened), (name, opened)
            yield thread, opened, len(stack), since, at
    assert [stack for stack in stacks.values() if stack] == []


def chrome_steps(document: Json) -> Iterator[Step]:
    for event in document["traceEvents"]:
        thread = (event["pid"], event["tid"])
        if event["ph"] in "BE":
            at = round(event["ts"] * 1000)
            yield thread, event["ph"] == "B", event.get("name", ""), at
