"""`sandpit export`: each format is one that its programs open, whatever the trace is like."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from exports import Made, chrome_steps, spans

FORMATS = ["jsonl", "chrome"]

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


@pytest.fixture(scope="session")
def real(tmp_path_factory) -> dict[str, Path]:
    """Traces of one program by the level of calls."""
    folder = tmp_path_factory.mktemp("real")
    (folder / "everything.py").write_text(EVERYTHING)
    program = Path(sys.executable).parent / "sandpit"
    traces = {}
    for level in ("all", "folded", "off"):
        traces[level] = folder / f"{level}.sptrace"
        command = [program, "run", "-q", "--policy", "default", "--calls", level]
        subprocess.run(
            [*command, "-o", traces[level], "everything.py"],
            cwd=folder,
            check=True,
            timeout=60,
            stdin=subprocess.DEVNULL,
        )
    return traces


@pytest.fixture
def export(reader):
    """Exports a trace; gives the text."""

    def run(format: str, trace: Path) -> str:
        done = reader("export", "--format", format, trace)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return run


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
    assert {((e["pid"], e["tid"]), e["t"]) for e in calls} <= begins
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


# ---- streams of calls that are not balanced ----------------------------------------------

UNBALANCED = {
    "returns without calls": [(-1, 10), (2, 20), (-2, 30), (-3, 40)],
    "calls without returns": [(1, 10), (2, 20), (3, 30)],
    "a return that skips some": [(1, 10), (2, 20), (3, 30), (-1, 40), (1, 50), (-1, 60)],
    "returns of others": [(1, 10), (-2, 20), (-3, 30), (-1, 40)],
    "no time passes": [(1, 10), (2, 10), (-2, 10), (2, 10), (-2, 10), (-1, 10)],
}


@pytest.mark.parametrize("case", UNBALANCED)
def test_unbalanced_calls_come_out_nested(export, tmp_path, case):
    made = Made().functions("a", "b", "c").run(5, UNBALANCED[case]).end(100)
    trace = made.write(tmp_path / "t.sptrace")
    calls = [number for number, _ in UNBALANCED[case] if number > 0]
    found = list(spans(chrome_steps(strict(export("chrome", trace)))))
    assert len(found) == len(calls)
    assert max(end for *_, end in found) <= 100


def test_open_calls_end_with_their_process_or_when_last_seen(reader, tmp_path):
    made = Made().functions("a", "b").run(5, [(1, 10)])
    made.run(5, [(2, 20)], tid=101).add("thread", 40, tid=101, op="end")
    cut = made.write(tmp_path / "cut.sptrace")
    whole = made.end(70).write(tmp_path / "whole.sptrace")
    ends = {}
    for trace in (cut, whole):
        done = reader("export", "-f", "chrome", trace)
        found = spans(chrome_steps(strict(done.stdout)))
        ends[trace.stem] = {name[0]: end for _, name, _, _, end in found}
    assert ends == {"cut": {"a": 10, "b": 40}, "whole": {"a": 70, "b": 40}}


def test_a_generator_is_seen_each_time_it_runs(export, tmp_path):
    events = [(1, 10), (2, 20), (-2, 30), (2, 40), (-2, 50), (-1, 60)]
    made = Made().functions("sum", "gen").run(5, events, resumed=[2, 3]).end(70)
    document = strict(export("chrome", made.write(tmp_path / "t.sptrace")))
    found = [(name[:3], depth, end - at) for _, name, depth, at, end in spans(chrome_steps(document))]
    assert found == [("gen", 1, 10), ("gen", 1, 10), ("sum", 0, 50)]


# ---- strings ---------------------------------------------------------------------------

HOSTILE = "\x1b[2J\u202e\x00\"\\;\n</script>\udcff\udce2\udc82 \ud800 \U0001f600"


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
def test_what_is_no_trace_is_refused_in_one_line(golden, reader, tmp_path, format, name):
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
