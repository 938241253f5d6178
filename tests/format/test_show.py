"""`sandpit show` and `verify` on traces good and bad, as a user sees them."""

from __future__ import annotations

import json
import os

import pytest
from traces import Lines


def test_summary_answers_the_four_questions(golden, reader):
    done = reader("show", golden("good"))
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "job.py: error, exit code 1, 0.000 s"
    assert lines[2] == "Did"
    assert "Tried and denied: 42" in lines
    assert "  connect 192.0.2.1:443 (42 times) at job.py:14: network.allow" in lines
    assert "    --allow-net 192.0.2.1:443" in lines
    assert lines[lines.index("Ended") + 1].startswith("  PermissionError: connect to")
    assert lines[-1] == "  23 events, verified: sound and complete"


def test_summary_of_a_cut_run_says_so(golden, reader):
    done = reader("show", golden("cut_before_end"))
    assert done.returncode == 0
    assert "cut short: the trace has no end" in done.stdout.splitlines()[0]


def test_summary_of_an_altered_trace_says_so(golden, reader):
    done = reader("show", golden("edited_end"))
    assert "THE TRACE WAS ALTERED: line 13" in done.stdout


def test_summary_parts_the_programs_files_from_libraries(reader, tmp_path):
    """Hundreds of library files do not hide the few that the program came for."""
    trace = Lines(interpreter={"path": "/opt/own/bin/python3", "version": "3.13.0"})
    own = ["/work/data.csv", "/etc/hosts"]
    libraries = [f"/opt/own/lib/python3.13/m{n}.py" for n in range(1200)]
    libraries += ["/usr/lib/libz.so.1", "/opt/own/pyvenv.cfg"]
    for path in [*libraries[:700], *own, *libraries[700:]]:
        trace.add("open", path=path, op="read")
    trace.add("open", path="/opt/own/lib/python3.13/x.py", op="write")
    trace.add("open", path="/usr/tmp/a", op="read-write", flags="O_CREAT", errno=2)
    trace.add("file", path="/work/b", op="remove", errno=2)
    trace.add("open", path="/work/__pycache__/c", op="write", expected=True)
    rows = reader("show", trace.end(9).write(tmp_path / "a.sptrace")).stdout
    assert rows.splitlines()[3:6] == [
        "  read          1,204  data.csv, /etc/hosts, 1,202 of libraries",
        "  changed           1  /opt/own/lib/python3.13/x.py",
        "  failed            3  b, __pycache__/c, /usr/tmp/a",
    ]


def test_summary_names_few_libraries_and_only_libraries(reader, tmp_path):
    few = Lines()
    for path in ("/lib/python3.9/a.py", "/work/b", "/lib/python3.9/c.py"):
        few.add("open", path=path, op="read")
    many = Lines()
    for n in range(5000):
        many.add("open", path=f"/lib/python3.9/{n:0100d}.py", op="read")
    for trace, row in (
        (few, "  read              3  b, /lib/python3.9/a.py, /lib/python3.9/c.py"),
        (many, "  read          5,000  5,000 of libraries"),
    ):
        done = reader("show", trace.end(9).write(tmp_path / "a.sptrace"))
        assert done.stdout.splitlines()[3] == row


def test_summary_is_named_as_the_program_was_asked_for(reader, tmp_path):
    for argv, named in (
        (["/bin/python3", "-I", "-m", "pytest", "-q"], "-m pytest"),
        (["/bin/python3", "-m"], "/work/job.py"),
        (["/bin/python3", 7], "/work/job.py"),
    ):
        trace = Lines()
        line = json.loads(trace.parts[0])
        line.update(program="module", argv=argv)
        trace.parts = [json.dumps(line, separators=(",", ":")).encode() + b"\n"]
        done = reader("show", trace.end(9).write(tmp_path / "a.sptrace"))
        assert done.stdout.startswith(f"{named.rpartition('/')[2]}: ok, exit code 0")


def test_summary_columns_hold_large_numbers(reader, tmp_path):
    trace = Lines()
    for count in (7, 1_234_567):
        trace.add("call", function="f", count=count, total=1, self=1)
    trace.add("output", stream="stdout", text="x", size=5)
    done = reader("show", trace.end(9).write(tmp_path / "a.sptrace"))
    assert done.stdout.splitlines()[3:5] == [
        "  calls     1,234,574  of 1 functions",
        "  output            5  bytes printed",
    ]


def test_a_denial_shows_the_line_of_a_long_path(reader, tmp_path):
    place = f"/{'deep/' * 30}job.py:14"
    trace = Lines()
    trace.add("violation", category="fs", operation="read", target="/x", path="/x",
              action="deny", rule="fs.deny_read", at=place)  # fmt: skip
    done = reader("show", trace.end(9).write(tmp_path / "a.sptrace"))
    (row,) = (one for one in done.stdout.splitlines() if one.startswith("  read /x at"))
    assert row.endswith("deep/job.py:14") and len(row) <= 80


def many_events(golden, path):
    """A trace with far more of everything than a screen holds."""
    lines = golden("good").read_bytes().splitlines(keepends=True)
    data = [lines[0]]
    for i in range(3000):
        for template in (lines[5], lines[7], lines[8]):
            _, rest = template.split(b',"t":', 1)
            line = b'{"seq":%d,"t":' % len(data) + rest
            line = line.replace(b"data.csv", b"data-%d.csv" % i)
            data.append(line.replace(b"192.0.2.1:443", b"192.0.2.1:%d" % i))
    path.write_bytes(b"".join(data))
    return path


@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_summary_fits_a_screen(golden, reader, tmp_path, columns):
    trace = many_events(golden, tmp_path / "many.sptrace")
    done = reader("show", trace, env={"COLUMNS": columns})
    lines = done.stdout.splitlines()
    assert len(lines) < 24
    assert max(len(line) for line in lines) <= int(columns)
    assert (
        any("more: sandpit show --kind violation" in line for line in lines)
        or columns == "40"
    )


def test_filters_select_by_kind(golden, reader):
    done = reader("show", "--kind", "open", "--kind", "exception", golden("good"))
    kinds = [line.split()[2] for line in done.stdout.splitlines()]
    assert kinds == ["open", "open", "open", "exception"]


def test_filters_select_what_runs_hold(golden, reader):
    done = reader("show", "--kind", "run", "--json", golden("good"))
    assert [json.loads(line)["seq"] for line in done.stdout.splitlines()] == list(
        range(4, 12)
    )


@pytest.mark.parametrize(
    ("category", "seqs"), [("network", [15, 20]), ("fs", [12, 14, 16]), ("limits", [])]
)
def test_filters_select_by_category(golden, reader, category, seqs):
    done = reader("show", "--json", "--category", category, golden("good"))
    assert [json.loads(line)["seq"] for line in done.stdout.splitlines()] == seqs


@pytest.mark.parametrize(
    ("glob", "seqs"), [("*.csv", [12, 16]), ("/work/data*", [12]), ("nothing", [])]
)
def test_filters_select_by_file(golden, reader, glob, seqs):
    done = reader("show", "--json", "--file", glob, golden("good"))
    assert [json.loads(line)["seq"] for line in done.stdout.splitlines()] == seqs


def test_filters_may_be_combined(golden, reader):
    done = reader("show", "--kind=open", "--file=late.csv", "--json", golden("good"))
    assert [json.loads(line)["seq"] for line in done.stdout.splitlines()] == [16]


@pytest.mark.parametrize("arguments", [(), ("--kind", "open"), ("--json",)])
def test_hostile_names_do_nothing_to_a_terminal(golden, reader, arguments):
    done = reader("show", *arguments, golden("good"))
    assert done.returncode == 0
    for harmful in ("\x1b", "\x7f", "\x9b", "\u2028"):
        assert harmful not in done.stdout


def test_raw_harmful_characters_of_a_foreign_trace_are_escaped(
    golden, reader, tmp_path
):
    lines = golden("good").read_bytes().splitlines(keepends=True)
    raw = "d\u009b\u202e\x7f\u2066.csv"
    line = lines[5].replace(b"data.csv", raw.encode())
    trace = tmp_path / "foreign.sptrace"
    trace.write_bytes(b"".join([*lines[:5], line]))
    for arguments in ((), ("--kind", "open"), ("--json",)):
        done = reader("show", *arguments, trace)
        assert not set(done.stdout) & set("\x9b\u202e\x7f\u2066")
    event = json.loads(done.stdout.splitlines()[-1])
    assert event["path"].endswith(raw)


@pytest.mark.parametrize(
    ("arguments", "env", "coloured"),
    [
        (("--color", "always"), {}, True),
        (("--color=always",), {"NO_COLOR": "1"}, True),
        (("--color", "never"), {}, False),
        ((), {}, False),
    ],
)
def test_colour_is_used_when_it_is_wanted(golden, reader, arguments, env, coloured):
    done = reader("show", *arguments, golden("good"), env=env)
    assert ("\x1b[31m" in done.stdout) is coloured


def test_a_trace_is_read_from_standard_input(golden, reader):
    with open(golden("good"), "rb") as file:
        done = reader("show", "--json", "-", stdin=file)
    assert len(done.stdout.splitlines()) == 23


def test_verify_takes_several_and_gives_the_worst(golden, reader):
    names = ["good", "cut_before_end", "reordered", "empty"]
    done = reader("verify", *[golden(name) for name in names])
    assert done.returncode == 1
    assert len(done.stdout.splitlines()) == 3
    assert len(done.stderr.splitlines()) == 1
    assert reader("verify", golden("good"), golden("cut_before_end")).returncode == 3
    assert reader("verify", golden("cut_before_end"), golden("empty")).returncode == 2


def test_verify_quiet_says_it_by_the_exit_code(golden, reader):
    done = reader("verify", "--quiet", golden("edited_end"))
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


@pytest.mark.parametrize("command", ["show", "verify"])
@pytest.mark.parametrize("kind", ["folder", "pipe", "missing", "device"])
def test_what_is_no_trace_file_is_refused_in_one_line(reader, tmp_path, command, kind):
    path = tmp_path / "thing"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path = "/dev/zero"
    done = reader(command, path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"sandpit: {path}: ")
    assert done.stderr.count("\n") == 1


def test_a_line_without_end_is_refused_in_bounded_memory(golden, reader, tmp_path):
    first = golden("good").read_bytes().splitlines(keepends=True)[0]
    path = tmp_path / "endless.sptrace"
    path.write_bytes(first)
    with open(path, "r+b") as file:
        file.truncate(4 << 30)  # zeros, none of them on the disk
    for command, code in (("show", 2), ("verify", 1)):
        done = reader(command, path)
        assert done.returncode == code, done.stderr
        assert "line 2, byte 333" in done.stdout + done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("show",),
        ("show", "a", "b"),
        ("show", "--kind", "opne", "a"),
        ("show", "--category", "netwrok", "a"),
        ("show", "--nonsense", "a"),
        ("verify",),
        ("nonsense",),
        (),
    ],
)
def test_bad_usage_is_one_line_and_exit_code_2(reader, arguments):
    done = reader(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1


def test_a_closed_pipe_ends_it_quietly(golden, reader, tmp_path):
    trace = many_events(golden, tmp_path / "many.sptrace")
    reading, writing = os.pipe()
    os.close(reading)
    done = reader(
        "show", "--json", trace, stdout=writing, stderr=-1, capture_output=False
    )
    os.close(writing)
    assert done.returncode != 0


def test_help_names_every_option(reader):
    done = reader("show", "--help")
    assert done.returncode == 0
    for option in ("--kind", "--category", "--file", "--json", "--color"):
        assert option in done.stdout
