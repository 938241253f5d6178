"""`sandpit export`: each format is one that its programs open, whatever the trace is like."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from exports import (
    Made,
    attributes_of,
    check_ocsf,
    check_speedscope,
    chrome_steps,
    otlp_spans,
    spans,
    speedscope_steps,
)

FORMATS = ["jsonl", "chrome", "speedscope", "collapsed", "otlp", "ocsf"]

def events_of(reader, trace):
    done = reader("show", "--json", trace)
    return [json.loads(line) for line in done.stdout.splitlines()]


needs_runs = pytest.mark.requires("program", "listener")


def strict(text):
    """JSON without what only Python takes: NaN, doubled members, lone surrogates."""

    def members(pairs):
        names = [name for name, _ in pairs]
        assert len(names) == len(set(names)), names
        return dict(pairs)

    def refused(text):
        raise AssertionError(text)

    text.encode("utf-8")
    value = json.loads(text, object_pairs_hook=members, parse_constant=refused)
    json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


# ---- jsonl -----------------------------------------------------------------------------


def test_jsonl_is_what_show_gives(export, reader, golden):
    text = export("jsonl", golden("good"))
    assert text == reader("show", "--json", golden("good")).stdout
    assert len(text.splitlines()) == 23


def test_jsonl_is_the_format_without_the_option(export, reader, golden):
    done = reader("export", golden("good"))
    assert done.stdout == export("jsonl", golden("good"))


# ---- chrome ----------------------------------------------------------------------------


@needs_runs
def test_chrome_has_every_call_nested_at_its_time(export, reader, real):
    document = strict(export("chrome", real["all"]))
    found = list(spans(chrome_steps(document)))
    calls = [e for e in events_of(reader, real["all"]) if e["kind"] == "call"]
    assert len(found) == len(calls)
    begins = {(thread, at) for thread, _, _, at, _ in found}
    # Calls are stamped by a clock of their own, which may run ahead of the others' for a
    # while: in an export time does not go back within a thread.
    last = {}
    for event in events_of(reader, real["all"]):
        thread = (event["pid"], event["tid"])
        last[thread] = max(last.get(thread, 0), event["t"])
        if event["kind"] == "call":
            assert (thread, last[thread]) in begins
        elif event["kind"] in ("exec", "exit"):
            last = {key: t for key, t in last.items() if key[0] != event["pid"]}
        elif event["kind"] == "thread" and event["op"] == "end":
            del last[thread]
    assert len({thread for thread, *_ in found}) >= 4
    work = [name for _, name, *_ in found if name.startswith("work (")]
    assert len(work) == 4


@needs_runs
def test_chrome_has_what_happened_as_instants(export, reader, real):
    for level in ("all", "folded", "off"):
        document = strict(export("chrome", real[level]))
        instants = [e for e in document["traceEvents"] if e["ph"] == "i"]
        left_out = {"start", "source", "function", "checkpoint", "end", "return"}
        events = [
            e
            for e in events_of(reader, real[level])
            if e["kind"] not in left_out and not (e["kind"] == "call" and "id" in e)
        ]
        told = [e["seq"] for e in events if "count" not in e or e["kind"] != "call"]
        assert [e["args"]["seq"] for e in instants] == told
        denied = [e for e in instants if e["name"].startswith("denied: ")]
        assert "denied: connect 192.0.2.1:80" in {e["name"] for e in denied}
        assert {e["s"] for e in denied} == {"p"}
        assert document["otherData"]["end"]["status"] == "ok"


@needs_runs
def test_chrome_names_processes_and_threads(export, real):
    document = strict(export("chrome", real["all"]))
    names = {}
    for event in document["traceEvents"]:
        if event["ph"] == "M":
            names.setdefault(event["name"], []).append(event["args"]["name"])
    assert any(name.endswith("everything.py") for name in names["process_name"])
    assert any("def f()" in name for name in names["process_name"])
    assert names["thread_name"].count("main thread") >= 3
    assert {e["ph"] for e in document["traceEvents"]} <= set("BEiM")


# ---- speedscope ------------------------------------------------------------------------


@needs_runs
def test_speedscope_has_the_calls_of_each_thread(export, reader, real):
    document = strict(export("speedscope", real["all"]))
    check_speedscope(document)
    found = list(spans(speedscope_steps(document)))
    calls = [e for e in events_of(reader, real["all"]) if e["kind"] == "call"]
    assert len(found) == len(calls)
    threads = {(e["pid"], e["tid"]) for e in calls}
    assert len(document["profiles"]) >= len(threads) >= 4
    assert sum(name == "work" for _, name, *_ in found) == 4


@needs_runs
def test_speedscope_has_weighed_pairs_of_folded_calls(export, reader, real):
    document = strict(export("speedscope", real["folded"]))
    check_speedscope(document)
    names = [frame["name"] for frame in document["shared"]["frames"]]
    weights = {}
    for profile in document["profiles"]:
        for sample, weight in zip(profile["samples"], profile["weights"]):
            pair = tuple(names[frame] for frame in sample)
            weights[pair] = weights.get(pair, 0) + weight
    expected = {}
    for event in events_of(reader, real["folded"]):
        if event["kind"] == "call" and event.get("self"):
            caller = (event["caller"],) if "caller" in event else ()
            pair = (*caller, event["function"])
            expected[pair] = expected.get(pair, 0) + event["self"]
    assert weights == expected


@needs_runs
def test_speedscope_without_calls_is_a_file_that_opens(export, real):
    document = strict(export("speedscope", real["off"]))
    check_speedscope(document)
    assert document["profiles"][0]["events"] == []


# ---- collapsed -------------------------------------------------------------------------


def test_collapsed_has_each_stack_with_its_own_time(export, tmp_path):
    us = 1000
    made = Made().functions("a", "b;c", "d")
    made.run(
        0, [(1, 10 * us), (2, 20 * us), (3, 50 * us), (-3, 55 * us), (-2, 60 * us)]
    )
    made.run(60 * us, [(2, 60 * us), (-2, 61 * us), (-1, 70 * us)])
    made.run(0, [(1, 100 * us), (-1, 100 * us + 400)], tid=101).end(200 * us)
    lines = export("collapsed", made.write(tmp_path / "t.sptrace")).splitlines()
    a, b, d = "a (/m.py:3)", "b,c (/m.py:3)", "d (/m.py:3)"
    assert dict(line.rsplit(" ", 1) for line in lines) == {
        a: "19",
        f"{a};{b}": "36",
        f"{a};{b};{d}": "5",
    }


@needs_runs
def test_collapsed_has_the_stacks_of_a_run(export, real):
    lines = export("collapsed", real["all"]).splitlines()
    assert len({line.rpartition(" ")[0] for line in lines}) == len(lines)
    for line in lines:
        stack, _, count = line.rpartition(" ")
        assert int(count) > 0 and all(stack.split(";"))
    assert any("work (" in line and "main (" in line for line in lines)
    for line in export("collapsed", real["folded"]).splitlines():
        assert line.count(";") <= 1


def test_collapsed_stacks_are_as_deep_as_recursion_usually_is(reader, tmp_path):
    depth = 3000
    made = Made().functions("f", "g")
    calls = [(1 + i % 2, i * 1000) for i in range(depth)]
    returns = [(-1 - i % 2, (2 * depth - i) * 1000) for i in reversed(range(depth))]
    made.run(0, calls).run(depth * 1000, returns).end(10**9)
    done = reader("export", "-f", "collapsed", made.write(tmp_path / "t.sptrace"))
    assert done.returncode == 0
    assert f"warning: {depth - 2048} calls have stacks too deep" in done.stderr
    total = sum(int(line.rpartition(" ")[2]) for line in done.stdout.splitlines())
    assert total == 2 * depth


# ---- otlp ------------------------------------------------------------------------------


@needs_runs
def test_otlp_has_a_tree_of_run_processes_and_calls(export, real):
    found = otlp_spans(export("otlp", real["all"]))
    processes = [s for s in found.values() if s["name"].startswith("process ")]
    parents = [found[s["parentSpanId"]]["name"].split()[0] for s in processes]
    assert sorted(parents) == ["process", "process", "sandpit"]
    assert {attributes_of(s)["process.exit.code"] for s in processes} == {"0", "3"}
    calls = [s for s in found.values() if "code.function.name" in attributes_of(s)]
    for span in calls:
        assert int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"]) >= 1e6
    assert {"<module>", "main"} <= {span["name"] for span in calls}


@needs_runs
def test_otlp_has_events_and_failed_spans_of_what_was_denied(export, reader, real):
    for level in ("all", "folded", "off"):
        found = otlp_spans(export("otlp", real[level]))
        events = events_of(reader, real[level])
        told = [
            event["name"] for span in found.values() for event in span.get("events", [])
        ]
        for kind in ("open", "import", "socket", "file", "exec", "output", "thread"):
            assert told.count(kind) == sum(e["kind"] == kind for e in events), kind
        failed = {s["name"]: s["status"] for s in found.values() if "status" in s}
        assert failed["denied: connect 192.0.2.1:80"]["code"] == 2
        assert (
            "is denied by policy" in failed["denied: connect 192.0.2.1:80"]["message"]
        )


def test_otlp_ids_are_the_same_each_time(export, golden):
    assert export("otlp", golden("good")) == export("otlp", golden("good"))


def test_otlp_parts_what_is_too_long_for_one_request(export, tmp_path):
    made = Made()
    for number in range(5000):
        made.add("open", 1000 + number, layer="kernel", path=f"/{number:0300d}")
    text = export("otlp", made.end(10_000).write(tmp_path / "t.sptrace"))
    assert len(text.splitlines()) > 1
    found = otlp_spans(text)
    opened = [
        attributes_of(event)["file.path"]
        for span in found.values()
        for event in span.get("events", [])
    ]
    assert len(opened) == len(set(opened)) == 5000
    assert max(len(span.get("events", [])) for span in found.values()) <= 512


# ---- ocsf ------------------------------------------------------------------------------


@needs_runs
def test_ocsf_events_are_of_their_classes(export, reader, real):
    for level in ("all", "folded", "off"):
        text = export("ocsf", real[level])
        events = [strict(line) for line in text.splitlines()]
        for event in events:
            check_ocsf(event)
        kinds = {
            *("start", "open", "file", "native", "fork", "exec", "exit", "connect"),
            *("bind", "resolve", "violation", "tamper", "limit", "lost"),
        }
        told = [e["seq"] for e in events_of(reader, real[level]) if e["kind"] in kinds]
        assert [event["metadata"]["sequence"] for event in events] == told
        activities = {(e["class_uid"], e["activity_name"]) for e in events}
        assert {(1001, "Open"), (1001, "Rename"), (1001, "Delete")} <= activities
        assert {(1007, "Launch"), (1007, "Terminate"), (2004, "Create")} <= activities


def test_ocsf_classes_and_activities(export, tmp_path):
    made = Made()
    made.add("connect", 1, op="connect", family="inet", address="192.0.2.1", port=80)
    made.add("connect", 1, op="send", family="unix", address="/run/log")
    made.add("bind", 1, op="listen", family="inet6", address="::1", port=8080)
    made.add("resolve", 1, host="example.com", addresses=["192.0.2.1", "192.0.2.2"])
    made.add("resolve", 1, host="_odd_.example", address="10.0.0.1", port=53)
    made.add("file", 1, op="chmod", path="/a/b", errno=13)
    made.add("violation", 1, category="fs", operation="read", target="/x", path="/x",
             rule="r", action="deny", message="no", hint="--allow-read /x")  # fmt: skip
    made.add(
        "violation", 2, category="fs", operation="read", target="/x", of=7, count=3
    )
    made.add(
        "violation", 2, category="fs", operation="read", target="/x", action="stop"
    )
    made.add("tamper", 2, what="prctl")
    text = export("ocsf", made.end(3_000_000).write(tmp_path / "t.sptrace"))
    events = [strict(line) for line in text.splitlines()]
    for event in events:
        check_ocsf(event)
    told = [(e["class_uid"], e["activity_id"], e["severity_id"]) for e in events]
    assert told == [
        *[(1007, 1, 1), (4001, 1, 1), (4001, 6, 1), (4001, 7, 1), (4003, 6, 1)],
        *[(4003, 1, 1), (1001, 7, 1), (2004, 1, 3), (2004, 2, 3), (2004, 1, 4)],
        *[(2004, 1, 4), (1007, 2, 1)],
    ]
    assert events[1]["dst_endpoint"] == {"ip": "192.0.2.1", "port": 80}
    assert events[2]["dst_endpoint"] == {"name": "/run/log"}
    assert [a["rdata"] for a in events[4]["answers"]] == ["192.0.2.1", "192.0.2.2"]
    assert (events[6]["status_id"], events[6]["status_code"]) == (2, "13")
    assert events[8]["finding_info"]["uid"] == events[7]["finding_info"]["uid"]
    assert events[8]["count"] == 3
    assert events[7]["remediation"] == {"desc": "--allow-read /x"}
    assert events[-1]["time"] == 1_700_000_000_003


# ---- streams of calls that are not balanced ----------------------------------------------
STEPS = {"chrome": chrome_steps, "speedscope": speedscope_steps}
UNBALANCED = {
    "returns without calls": [(-1, 10), (2, 20), (-2, 30), (-3, 40)],
    "calls without returns": [(1, 10), (2, 20), (3, 30)],
    "a return that skips some": [
        (1, 10),
        (2, 20),
        (3, 30),
        (-1, 40),
        (1, 50),
        (-1, 60),
    ],
    "returns of others": [(1, 10), (-2, 20), (-3, 30), (-1, 40)],
    "no time passes": [(1, 10), (2, 10), (-2, 10), (2, 10), (-2, 10), (-1, 10)],
}


@pytest.mark.parametrize("case", UNBALANCED)
def test_unbalanced_calls_come_out_nested(export, tmp_path, case):
    made = Made().functions("a", "b", "c").run(5, UNBALANCED[case]).end(100)
    trace = made.write(tmp_path / "t.sptrace")
    calls = [number for number, _ in UNBALANCED[case] if number > 0]
    for format, steps in STEPS.items():
        found = list(spans(steps(strict(export(format, trace)))))
        assert len(found) == len(calls)
        assert max(end for *_, end in found) <= 100
    otlp_spans(export("otlp", trace))
    export("collapsed", trace)


def test_open_calls_end_with_their_process_or_when_last_seen(reader, tmp_path):
    made = Made().functions("a", "b").run(5, [(1, 10)])
    made.run(5, [(2, 20)], tid=101).add("thread", 40, tid=101, op="end")
    cut = made.write(tmp_path / "cut.sptrace")
    whole = made.end(70).write(tmp_path / "whole.sptrace")
    for format, steps in STEPS.items():
        ends = {}
        for trace in (cut, whole):
            done = reader("export", "-f", format, trace)
            found = spans(steps(strict(done.stdout)))
            ends[trace.stem] = {name[0]: end for _, name, _, _, end in found}
        assert ends == {"cut": {"a": 10, "b": 40}, "whole": {"a": 70, "b": 40}}


def test_a_generator_is_seen_each_time_it_runs(export, tmp_path):
    events = [(1, 10), (2, 20), (-2, 30), (2, 40), (-2, 50), (-1, 60)]
    made = Made().functions("sum", "gen").run(5, events, resumed=[2, 3]).end(70)
    document = strict(export("chrome", made.write(tmp_path / "t.sptrace")))
    found = [
        (name[:3], depth, end - at)
        for _, name, depth, at, end in spans(chrome_steps(document))
    ]
    assert found == [("gen", 1, 10), ("gen", 1, 10), ("sum", 0, 50)]


# ---- strings ---------------------------------------------------------------------------

HOSTILE = '\x1b[2J\u202e\x00"\\;\n</script>\udcff\udce2\udc82 \ud800 \U0001f600'


@pytest.mark.parametrize("format", FORMATS)
def test_hostile_strings_are_valid_everywhere(reader, tmp_path, format):
    made = Made(script=HOSTILE, argv=[HOSTILE, HOSTILE])
    made.add("function", 0, id=1, name=HOSTILE, module=HOSTILE, file=HOSTILE, line=1)
    made.run(5, [(1, 10), (-1, 4_000_020)])
    made.add("call", 20, function=HOSTILE, caller=HOSTILE, file=HOSTILE, line=2)
    made.add(
        "call", 20, function=HOSTILE, caller=HOSTILE, count=3, total=9000, self=7000
    )
    made.add("open", 30, layer="kernel", path=HOSTILE, op="read", **{HOSTILE: HOSTILE})
    made.add("file", 30, layer="kernel", path=HOSTILE, op=HOSTILE, to=HOSTILE)
    made.add("exec", 31, layer="kernel", path=HOSTILE, argv=[HOSTILE], x=[{HOSTILE: 1}])
    made.add("connect", 32, layer="kernel", address=HOSTILE, port=-1, op=HOSTILE)
    made.add("resolve", 32, layer="kernel", host=HOSTILE, addresses=[HOSTILE])
    made.add("output", 33, stream=HOSTILE, text=HOSTILE * 1000, size=1)
    made.add("exception", 33, type=HOSTILE, message=HOSTILE, ended=True)
    made.add("violation", 34, operation=HOSTILE, target=HOSTILE, category=HOSTILE)
    made.add("x_other", 35, number=1.5, large=2**64 - 1, nothing=None)
    done = reader("export", "-f", format, made.end(50).write(tmp_path / "t.sptrace"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout and "\x00" not in done.stdout
    if format == "jsonl":
        paths = [json.loads(line).get("path") for line in done.stdout.splitlines()]
        assert HOSTILE in paths
    elif format == "collapsed":
        for line in done.stdout.splitlines():
            assert line.rpartition(" ")[2].isdigit()
    elif format in ("otlp", "ocsf"):
        for line in done.stdout.splitlines():
            strict(line)
        assert "\\\\xff\\\\xe2\\\\x82" in done.stdout
    else:
        strict(done.stdout)
        assert "\\\\xff\\\\xe2\\\\x82" in done.stdout


# ---- traces that are not whole -----------------------------------------------------------


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", ["empty", "not_a_trace", "no_start", "future_format"])
def test_what_is_no_trace_is_refused_in_one_line(
    golden, reader, tmp_path, format, name
):
    output = tmp_path / "output"
    done = reader("export", "-f", format, "-o", output, golden(name))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"sandpit: {golden(name)}: line 1, byte 0: ")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", ["cut_in_line", "cut_before_end"])
def test_a_cut_trace_is_exported_with_a_warning(golden, reader, tmp_path, format, name):
    output = tmp_path / "output"
    done = reader("export", "-f", format, "-o", output, golden(name))
    assert (done.returncode, done.stdout) == (0, "")
    assert "warning" in done.stderr and "cut short" in done.stderr
    assert done.stderr.count("\n") == 1
    text = output.read_text()
    if format in ("chrome", "speedscope"):
        strict(text)
    assert text.endswith("\n")


@pytest.mark.parametrize("format", FORMATS)
def test_a_damaged_trace_gives_what_stands_before_and_no_file(
    golden, reader, tmp_path, format
):
    output = tmp_path / "output"
    for arguments in ((), ("-o", output)):
        done = reader("export", "-f", format, *arguments, golden("edited_json"))
        assert done.returncode == 2
        assert "line 6, byte" in done.stderr
        assert done.stderr.count("\n") == 1
        if format == "chrome" and not arguments:
            assert len(strict(done.stdout)["traceEvents"]) > 8
    assert list(tmp_path.iterdir()) == []


# ---- where it goes -----------------------------------------------------------------------


@pytest.mark.parametrize("format", FORMATS)
def test_a_full_disk_is_told_in_one_line(golden, reader, tmp_path, format):
    with open("/dev/full", "wb") as full:
        done = reader(
            "export", "-f", format, golden("good"),
            stdout=full, stderr=-1, capture_output=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "sandpit: cannot write the output: No space left on device\n"
    done = reader("export", "-f", format, "-o", "/dev/full", golden("good"))
    assert done.returncode == 2
    assert done.stderr == "sandpit: cannot write '/dev/full': No space left on device\n"


def test_a_closed_output_is_told(golden, reader):
    program = Path(sys.executable).parent / "sandpit-trace"
    done = subprocess.run(
        ["sh", "-c", f"exec '{program}' export '{golden('good')}' >&-"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr == "sandpit: cannot write the output: Bad file descriptor\n"


def test_the_trace_itself_is_not_overwritten(golden, reader, tmp_path):
    trace = tmp_path / "t.sptrace"
    trace.write_bytes(golden("good").read_bytes())
    os.link(trace, tmp_path / "other.name")
    os.symlink(trace, tmp_path / "link")
    for name in ("t.sptrace", "other.name", "link"):
        done = reader("export", "-o", tmp_path / name, trace)
        assert done.returncode == 2
        assert "the trace itself" in done.stderr
    with open(trace, "rb") as file:
        assert reader("export", "-o", trace, "-", stdin=file).returncode == 2
    assert trace.read_bytes() == golden("good").read_bytes()


def test_a_file_is_replaced_in_one_step(golden, reader, tmp_path):
    output = tmp_path / "output"
    output.write_text("before")
    with open(output) as before:
        assert reader("export", "-o", output, golden("good")).returncode == 0
        assert before.read() == "before"
    assert len(output.read_text().splitlines()) == 23
    assert stat.S_IMODE(output.stat().st_mode) & 0o111 == 0
    assert [path.name for path in tmp_path.iterdir()] == ["output"]


@needs_runs
def test_a_compressed_trace_is_exported_alike(program, reader, tmp_path):
    (tmp_path / "calls.py").write_text("for n in range(9): abs(n)\n")
    trace = tmp_path / "t.sptrace.zst"
    run = [program, "run", "-q", "--calls", "all", "-o", trace, "calls.py"]
    subprocess.run(run, cwd=tmp_path, check=True, timeout=60)
    done = reader("export", "-f", "chrome", trace)
    assert (done.returncode, done.stderr) == (0, "")
    found = [name for _, name, *_ in spans(chrome_steps(strict(done.stdout)))]
    assert found.count("abs (builtins)") == 9


def test_a_dash_is_standard_output(golden, reader, export):
    done = reader("export", "-o", "-", golden("good"))
    assert done.stdout == export("jsonl", golden("good"))


@pytest.mark.parametrize(
    "arguments",
    [(), ("a", "b"), ("--format", "chrom", "a"), ("--nonsense", "a"), ("missing",)],
)
def test_bad_usage_is_one_line_and_exit_code_2(reader, arguments):
    done = reader("export", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1


def test_help_names_every_format(reader):
    done = reader("export", "--help")
    assert done.returncode == 0
    for format in FORMATS:
        assert format in done.stdout


# ---- size --------------------------------------------------------------------------------

CALLS = """\
def leaf(number):
    return number + 1

def main():
    for number in range(100_000):
        leaf(number)
    open("/etc/hostname").close()

main()
"""


@needs_runs
@pytest.mark.parametrize("format", FORMATS)
def test_long_traces_take_little_memory(program, tmp_path, format):
    (tmp_path / "calls.py").write_text(CALLS)
    trace = tmp_path / "calls.sptrace"
    run = [program, "run", "-q", "--calls", "all", "-o", trace, "calls.py"]
    subprocess.run(run, cwd=tmp_path, check=True, timeout=60)
    output = tmp_path / "output"
    with open(output, "wb") as file:
        shell = ["sh", "-c", 'ulimit -d 10240; exec "$0" "$@"', f"{program}-trace"]
        done = subprocess.run(
            [*shell, "export", "-f", format, trace],
            stdout=file,
            stderr=subprocess.PIPE,
            timeout=60,
        )
    assert (done.returncode, done.stderr) == (0, b"")  # of 10 MiB, for 200,000 events
    if format == "jsonl":
        assert len(output.read_text().splitlines()) > 200_000
