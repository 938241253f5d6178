"""Traces made by hand: what a guest, or somebody who forges a file, could have in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class Lines:
    """The lines of a trace, from its start on. No checkpoints: readers need none."""

    def __init__(self, calls: str = "folded", **start: Any) -> None:
        self.parts: list[bytes] = []
        self.size = 0
        self.seq = 0
        self.add(
            "start", layer="supervisor", format=1, program="script",
            script="/work/job.py", argv=["python3", "job.py"], cwd="/work",
            calls=calls, **start)  # fmt: skip

    def add(
        self,
        kind: str,
        /,
        *,
        t: int = 0,
        pid: int = 100,
        tid: int | None = None,
        layer: str = "python",
        takes: int = 1,
        **members: Any,
    ) -> Lines:
        """Add a line with these members; it takes so many numbers."""
        head = {
            "seq": self.seq, "t": t, "kind": kind, "layer": layer,
            "pid": pid, "tid": pid if tid is None else tid}  # fmt: skip
        line = json.dumps({**head, **members}, separators=(",", ":"))
        self.raw(line.encode("utf-8", "surrogateescape") + b"\n")
        self.seq += takes
        return self

    def raw(self, line: bytes) -> Lines:
        """Add bytes as they are."""
        self.parts.append(line)
        self.size += len(line)
        return self

    def function(self, number: int, name: str, **members: Any) -> Lines:
        """Name a function, in a file of the program unless told otherwise."""
        return self.add(
            "function", id=number, name=name,
            **{"module": "m", "file": "/work/job.py", "line": number, **members})  # fmt: skip

    def run(self, ids: list[int], *, step: int = 10, **members: Any) -> Lines:
        """Add a run of calls and returns, each `step` nanoseconds after the other."""
        return self.add(
            "run", takes=len(ids), n=len(ids), f=ids,
            **{"dt": [step] * len(ids), **members})  # fmt: skip

    def end(self, t: int, **members: Any) -> Lines:
        """Add the end."""
        return self.add("end", t=t, layer="supervisor", status="ok", exit_code=0,
                        **members)  # fmt: skip

    def write(self, path: Path, *rest: bytes) -> Path:
        """Write all that there is, and what else is given."""
        path.write_bytes(b"".join([*self.parts, *rest]))
        return path
