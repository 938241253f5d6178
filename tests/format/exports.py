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


# A program that does something of every kind.
EVERYTHING = """\
import asyncio, os, socket, subprocess, sys, threading

def numbers(n):
    for i in range(n):
        yield i * i

def work(n):
    return sum(numbers(n))

def fails():
    raise ValueError("no")

async def waits():
    await asyncio.sleep(0.001)
    return work(3)

def attempt(act, *arguments):
    try:
        act(*arguments)
    except (OSError, ValueError):
        pass

def main():
    threads = [threading.Thread(target=work, args=(10,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asyncio.run(waits())
    attempt(fails)
    attempt(socket.create_connection, ("192.0.2.1", 80))
    attempt(socket.gethostbyname, "example.com")
    attempt(open, b"/no/such/\\xff\\x1b[31m")
    with open("written.txt", "w") as file:
        file.write("x")
    os.rename("written.txt", "moved.txt")
    os.chmod("moved.txt", 0o600)
    os.remove("moved.txt")
    subprocess.run([sys.executable, "-c", "def f(): return 1\\nf()"])
    if os.fork() == 0:
        work(2)
        os._exit(3)
    os.wait()

main()
"""


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


def speedscope_steps(document: Json) -> Iterator[Step]:
    names = [frame["name"] for frame in document["shared"]["frames"]]
    for number, profile in enumerate(document["profiles"]):
        assert profile["type"] == "evented"
        for event in profile["events"]:
            assert profile["startValue"] <= event["at"] <= profile["endValue"]
            yield number, event["type"] == "O", names[event["frame"]], event["at"]


def check_speedscope(document: Json) -> None:
    """What file-format-schema.json of speedscope demands."""
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert isinstance(document["name"], str) and isinstance(document["exporter"], str)
    assert 0 <= document["activeProfileIndex"] < len(document["profiles"])
    frames = document["shared"]["frames"]
    for frame in frames:
        assert set(frame) <= {"name", "file", "line", "col"}
        assert isinstance(frame["name"], str)
        assert isinstance(frame.get("file", ""), str)
        assert isinstance(frame.get("line", 1), int)
    for profile in document["profiles"]:
        shared = {"type", "name", "unit", "startValue", "endValue"}
        own = {"evented": {"events"}, "sampled": {"samples", "weights"}}
        assert set(profile) == shared | own[profile["type"]]
        assert profile["unit"] == "nanoseconds"
        assert profile["startValue"] <= profile["endValue"]
        used = {event["frame"] for event in profile.get("events", [])}
        used.update(*profile.get("samples", []))
        assert used <= set(range(len(frames)))
        for event in profile.get("events", []):
            assert set(event) == {"type", "frame", "at"} and event["type"] in "OC"
        if profile["type"] == "sampled":
            assert len(profile["samples"]) == len(profile["weights"])
            assert sum(profile["weights"]) == profile["endValue"]


def otlp_spans(text: str) -> dict[str, Json]:
    """Give the spans of OTLP's JSON by id, having checked them and their tree."""
    found: dict[str, Json] = {}
    for line in text.splitlines():
        request = json.loads(line)
        assert set(request) == {"resourceSpans"}
        for resource in request["resourceSpans"]:
            assert set(resource) == {"resource", "scopeSpans"}
            check_attributes(resource["resource"]["attributes"])
            for scope in resource["scopeSpans"]:
                assert scope["scope"]["name"] == "sandpit"
                for span in scope["spans"]:
                    check_span(span)
                    assert span["spanId"] not in found
                    found[span["spanId"]] = span
    roots = [span for span in found.values() if "parentSpanId" not in span]
    assert len(roots) == 1 and roots[0]["name"].startswith("sandpit run")
    for span in found.values():
        parent = found[span.get("parentSpanId", span["spanId"])]
        assert parent["traceId"] == span["traceId"]
        if span["name"].startswith("process "):
            continue  # it may outlive the one that started it
        for late, early in ((span, parent), (parent, span)):
            edge = "startTimeUnixNano" if late is span else "endTimeUnixNano"
            assert int(late[edge]) >= int(early[edge]), (span["name"], edge)
    return found


SPAN = {
    "traceId",
    "spanId",
    "parentSpanId",
    "kind",
    "name",
    "startTimeUnixNano",
    "endTimeUnixNano",
    "attributes",
    "events",
    "status",
}


def check_span(span: Json) -> None:
    assert set(span) <= SPAN
    assert len(bytes.fromhex(span["traceId"])) == 16
    for name in ("spanId", "parentSpanId"):
        assert name not in span or len(bytes.fromhex(span[name])) == 8
    assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"]) < 2**64
    assert set(span.get("status", {})) <= {"code", "message"}
    check_attributes(span.get("attributes", []))
    for event in span.get("events", []):
        assert set(event) == {"timeUnixNano", "name", "attributes"}
        assert 0 <= int(event["timeUnixNano"]) < 2**64
        check_attributes(event["attributes"])


def check_attributes(attributes: list[Json]) -> None:
    names = [attribute["key"] for attribute in attributes]
    assert len(names) == len(set(names)), names
    for attribute in attributes:
        assert set(attribute) == {"key", "value"}
        check_value(attribute["value"])


def check_value(value: Json) -> None:
    """One of the forms of AnyValue; 64-bit numbers are texts."""
    assert len(value) <= 1
    for form, content in value.items():
        if form == "arrayValue":
            for one in content["values"]:
                check_value(one)
        elif form == "kvlistValue":
            check_attributes(content["values"])
        elif form == "intValue":
            assert isinstance(content, str) and -(2**63) <= int(content) < 2**63
        else:
            types = {"stringValue": str, "boolValue": bool, "doubleValue": float}
            assert isinstance(content, types[form])


def attributes_of(span: Json) -> Json:
    return {
        one["key"]: next(iter(one["value"].values()), None)
        for one in span.get("attributes", [])
    }


# What each class of OCSF 1.6.0 demands beside the members of every event.
OCSF = {
    1001: ("System Activity", {"file", "actor", "device"}, {1, 3, 4, 5, 6, 7, 14, 99}),
    1005: ("System Activity", {"module", "actor", "device"}, {1}),
    1007: ("System Activity", {"process", "actor", "device"}, {1, 2}),
    2004: ("Findings", {"finding_info"}, {1, 2}),
    4001: ("Network Activity", {"dst_endpoint"}, {1, 6, 7, 99}),
    4003: ("Network Activity", {"query", "src_endpoint"}, {1, 6}),
}
OCSF_SHARED = {
    "class_uid",
    "category_uid",
    "activity_id",
    "type_uid",
    "severity_id",
    "time",
    "metadata",
}
OBJECTS = {  # what must be there, and at least one of what
    "file": ({"name", "type_id"}, set()),
    "actor": (set(), {"process", "app_name"}),
    "process": (set(), {"pid"}),
    "device": ({"type_id"}, {"name"}),
    "module": ({"load_type_id", "file"}, set()),
    "finding_info": ({"uid", "title"}, set()),
    "dst_endpoint": (set(), {"ip", "name"}),
    "src_endpoint": (set(), {"ip", "name"}),
    "query": ({"hostname"}, set()),
}


def check_ocsf(event: Json) -> None:
    category, own, activities = OCSF[event["class_uid"]]
    assert OCSF_SHARED | own <= set(event)
    assert event["category_uid"] == event["class_uid"] // 1000
    assert event["category_name"] == category
    assert event["activity_id"] in activities
    assert event["type_uid"] == event["class_uid"] * 100 + event["activity_id"]
    assert event["severity_id"] in range(1, 5)
    assert isinstance(event["time"], int)
    assert event["metadata"]["version"] == "1.6.0"
    assert event["metadata"]["product"]["vendor_name"] == "sandpit"
    for name, (all_of, one_of) in OBJECTS.items():
        for place in (event, *event.get("evidences", [])):
            if name in place:
                assert all_of <= set(place[name]), (name, place[name])
                assert not one_of or one_of & set(place[name])
