"""The views of `sandpit show`, on traces good and bad, as a user sees them."""

from __future__ import annotations

import json

import pytest
from traces import Lines

VIEWS = ["--files", "--network", "--processes", "--tree", "--timeline", "--source"]


def rows(done):
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def some_files(path):
    lines = Lines()
    lines.add(
        "open", layer="kernel", path="/work/in.csv", op="read", at="/work/job.py:3"
    )
    lines.add(
        "open", layer="kernel", path="/work/in.csv", op="read", at="/work/job.py:3"
    )
    lines.add(
        "open", layer="kernel", path="/work/in.csv", op="read", at="/work/job.py:9"
    )
    lines.add("open", layer="kernel", path="/work/out", op="write",
              flags="O_WRONLY|O_CREAT|O_TRUNC")  # fmt: skip
    lines.add(
        "open", layer="kernel", path="/work/new", op="write", flags="O_CREAT|O_EXCL"
    )
    lines.add("open", layer="kernel", path="/work/absent", op="read", errno=2)
    lines.add("open", path="made", op="write", mode="x")
    lines.add("file", layer="kernel", op="rename", path="/work/out", to="/work/done")
    lines.add("file", layer="kernel", op="mkdir", path="/work/folder")
    lines.add("file", layer="kernel", op="rmdir", path="/work/folder")
    lines.add("file", layer="kernel", op="chmod", path="/work/done")
    lines.add("file", layer="kernel", op="link", path="/work/in.csv", to="/work/link")
    first = lines.seq
    denied = {
        "layer": "kernel", "category": "fs", "operation": "open", "action": "deny",
        "target": "/etc/shadow", "path": "/etc/shadow", "file": "/work/job.py",
        "line": 12, "at": "/work/job.py:12"}  # fmt: skip
    lines.add("violation", **denied)
    lines.add("violation", of=first, count=4, **denied)
    lines.end(100)
    return lines.write(path / "files.sptrace")


def test_files_says_what_was_done_to_each(reader, tmp_path):
    done = reader("show", "--json", "--files", some_files(tmp_path))
    files = {row.pop("path"): row for row in rows(done)}
    nonzero = {
        path: {
            key: row[key] for key in row if key not in ("by", "elsewhere") and row[key]
        }
        for path, row in files.items()
    }
    assert nonzero == {
        "/etc/shadow": {"denied": 5},
        "/work/in.csv": {"read": 3},
        "/work/out": {"write": 1, "remove": 1},
        "/work/new": {"create": 1},
        "/work/absent": {"failed": 1},
        "made": {"create": 1},
        "/work/done": {"create": 1, "change": 1},
        "/work/folder": {"create": 1, "remove": 1},
        "/work/link": {"create": 1},
    }
    assert files["/work/in.csv"]["by"] == [
        {"at": "/work/job.py:3", "count": 2},
        {"at": "/work/job.py:9", "count": 1},
    ]
    assert files["/etc/shadow"]["by"] == [{"at": "/work/job.py:12", "count": 2}]


def test_files_has_what_was_denied_first(reader, tmp_path):
    done = reader("show", "--files", some_files(tmp_path))
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["what", "by", "file"]
    assert lines[1].split() == ["denied", "5", "job.py:12", "/etc/shadow"]
    assert "read 3              job.py:3 +1         ./in.csv" in lines
    assert lines[-1].split() == ["failed", "1", "-", "./absent"]


def test_files_heeds_the_filters(reader, tmp_path):
    trace = some_files(tmp_path)
    found = rows(reader("show", "--json", "--files", "--file", "*.csv", trace))
    assert {row["path"] for row in found} == {"/work/in.csv", "/work/link"}
    found = rows(reader("show", "--json", "--files", "--kind", "violation", trace))
    assert [row["path"] for row in found] == ["/etc/shadow"]


def test_network_joins_addresses_with_the_names_that_led_to_them(reader, tmp_path):
    lines = Lines()
    lines.add("resolve", host="example.org", addresses=["192.0.2.7", "2001:db8::7"])
    lines.add("resolve", host="nowhere.invalid", error="no such name")
    lines.add("connect", op="connect", family="inet", address="192.0.2.7", port=443)
    lines.add("connect", op="send", family="inet6", address="2001:db8::7", port=53)
    lines.add("connect", op="connect", family="unix", address="/run/x", errno=111)
    lines.add("bind", op="bind", family="inet", address="127.0.0.1", port=80)
    lines.add("bind", op="listen")
    lines.add("violation", category="network", operation="connect", action="deny",
              target="192.0.2.9:25", address="192.0.2.9", port=25,
              at="/work/job.py:2")  # fmt: skip
    lines.add("violation", category="network", operation="resolve", action="deny",
              target="evil.example", host="evil.example")  # fmt: skip
    lines.add("violation", category="network", operation="connect", action="observe",
              target="192.0.2.10:25", address="192.0.2.10", port=25)  # fmt: skip
    trace = lines.end(9).write(tmp_path / "net.sptrace")
    found = {
        row["name"]: row for row in rows(reader("show", "--json", "--network", trace))
    }
    ways = ("resolve", "connect", "send", "bind", "listen", "failed", "denied")
    assert {
        name: ({way: row[way] for way in ways if row[way]}, row.get("host"))
        for name, row in found.items()
    } == {
        "example.org": ({"resolve": 1}, None),
        "nowhere.invalid": ({"failed": 1}, None),
        "192.0.2.7:443": ({"connect": 1}, "example.org"),
        "[2001:db8::7]:53": ({"send": 1}, "example.org"),
        "/run/x": ({"failed": 1}, None),
        "127.0.0.1:80": ({"bind": 1}, None),
        "192.0.2.9:25": ({"denied": 1}, None),
        "evil.example": ({"denied": 1}, None),
    }
    shown = reader("show", "--network", trace).stdout
    assert "192.0.2.7:443 (example.org)" in shown
    assert shown.splitlines()[1].startswith("denied 1")


def some_processes(path):
    lines = Lines(interpreter={"path": "/usr/bin/python3", "version": "3.12.1"})
    lines.add("fork", t=1_000_000, pid=101, parent=100, child=101)
    lines.add("exec", t=2_000_000, pid=101, path="/bin/sh", argv=["/bin/sh", "-c", "a b"],
              agent=False)  # fmt: skip
    lines.add("fork", t=3_000_000, pid=102, parent=101, child=102)
    lines.add("exit", t=4_000_000, pid=102, signal=9)
    lines.add("fork", t=5_000_000, pid=103, parent=100, child=103)
    lines.add("violation", t=6_000_000, pid=103, category="fs", operation="open",
              action="deny", target="/x")  # fmt: skip
    lines.add("exit", t=7_000_000, pid=103, code=3)
    lines.add("exit", t=9_000_000, pid=101, code=0)
    lines.add("exit", t=10_000_000, pid=100, code=0)
    return lines.end(11_000_000).write(path / "processes.sptrace")


def test_processes_are_a_tree(reader, tmp_path):
    trace = some_processes(tmp_path)
    done = reader("show", "--processes", trace)
    assert [line.split() for line in done.stdout.splitlines()[1:]] == [
        ["100", "10.0", "ms", "code", "0", "traced", "python3", "job.py"],
        ["101", "8.0", "ms", "code", "0", "-", "sh", "-c", "'a", "b'"],
        ["102", "1.0", "ms", "signal", "9", "-", "(fork)"],
        ["103", "2.0", "ms", "code", "3", "traced", "1", "denied", "(fork)"],
    ]
    found = rows(reader("show", "--processes", "--json", trace))
    assert [(row["pid"], row["parent"], row["depth"]) for row in found] == [
        (100, 0, 0), (101, 100, 1), (102, 101, 2), (103, 100, 1)]  # fmt: skip
    assert found[1]["argv"] == ["/bin/sh", "-c", "a b"]
    assert (found[2]["signal"], found[3]["code"]) == (9, 3)


def test_processes_of_forged_forks_are_a_tree_all_the_same(reader, tmp_path):
    lines = Lines()
    for child, parent in [(101, 102), (102, 101), (101, 102), (100, 100), (5, 5), (0, 0),
                          (-7, 101), (1 << 62, -7)]:  # fmt: skip
        lines.add("fork", pid=child, parent=parent, child=child)
    lines.add("fork", pid=77, parent="100", child=[1])
    lines.add("exit", pid=12345, code="unknown")
    lines.add("exec", pid=100, path=3, argv={"a": 1}, agent="yes")
    trace = lines.end(1).write(tmp_path / "forged.sptrace")
    found = rows(reader("show", "--processes", "--json", trace))
    assert len(found) == 11
    assert all(row["depth"] < 11 for row in found)


def test_processes_of_a_deep_chain_of_forks_fit_the_screen(reader, tmp_path):
    lines = Lines()
    for i in range(70_000):
        lines.add("fork", pid=101 + i, parent=100 + i, child=101 + i)
    trace = lines.end(1).write(tmp_path / "deep.sptrace")
    done = reader("show", "--processes", trace)
    shown = done.stdout.splitlines()
    assert max(map(len, shown)) <= 80
    assert len(shown) == 65_536 + 2
    assert shown[-1] == "and 4,465 more, which found no room"


def some_calls(path):
    lines = Lines("all", interpreter={"path": "/usr/bin/python3"})
    for number, name in enumerate(["main", "slow", "quick", "len"], 1):
        lines.function(number, name, **({"native": True} if name == "len" else {}))
    lines.run([1, 2, 4, -4, -2, 3, -3, 3, -3], dt=[0, 1, 2, 3, 9000, 1, 2, 3, 4])
    lines.run([2, -2], tid=101, t=9010)
    lines.run([-1], t=9030)
    lines.add("fork", t=9040, pid=200, parent=100, child=200)
    lines.run([3, -3], pid=200, t=9050)
    lines.add("exit", t=9100, pid=200, code=4)
    return lines.end(9200).write(path / "calls.sptrace")


def test_tree_shows_who_called_what_beneath_each_process(reader, tmp_path):
    trace = some_calls(tmp_path)
    lines = reader("show", "--tree", "--depth", "9", trace).stdout.splitlines()
    assert [line.rstrip() for line in lines] == [
        "    total      self     calls   function",
        "100  9.2 us, no end  python3 job.py",
        "   9.0 us     29 ns         1   main  job.py:1",
        "   9.0 us    9.0 us         1     slow  job.py:2",
        "     3 ns      3 ns         1       len  job.py:4",
        "     6 ns      6 ns         2     quick  job.py:3",
        "                                thread 101",
        "    10 ns     10 ns         1   slow  job.py:2",
        "> 200  60 ns, code 4  (fork)",
        "    10 ns     10 ns         1   quick  job.py:3",
    ]


def test_tree_folds_what_took_no_time_to_speak_of(reader, tmp_path):
    lines = reader("show", "--tree", some_calls(tmp_path)).stdout.splitlines()
    assert "   9.0 us    9.0 us         1     slow  job.py:2" in lines
    assert "     6 ns      6 ns         2     +1 more" in lines
    assert not any("len" in line for line in lines)


IMPORTLIB = "<frozen importlib._bootstrap>"


def test_tree_shows_modules_beneath_those_that_import_them(reader, tmp_path):
    """The functions of the import system between them would fill all levels."""
    lines = Lines(calls="all").function(1, "<module>").function(5, "<module>", file="/p")
    for number, name in ((2, "_find"), (3, "_load")):
        lines.function(number, name, file=IMPORTLIB)
    lines.function(4, "exec", native=True, file=None).function(6, "len", native=True)
    inner = [2, 3, 4, 5, 6, -6, -5, -4, 6, -6, -3, -2]
    lines.run([1, *inner, 6, -6, -1])
    trace = lines.end(1000).write(tmp_path / "importing.sptrace")
    shown = reader("show", "--tree", trace).stdout.splitlines()
    assert shown[2:] == [
        "   150 ns     30 ns         1   <module>  job.py:1",
        "    30 ns     20 ns         1     <module>  /p:5",
        "    10 ns     10 ns         1       len  job.py:6",
        "    10 ns     10 ns         1     len  job.py:6",
        "    80 ns     80 ns         4     (the import system itself)",
    ]
    everything = reader("show", "--tree", "--depth", "9", trace).stdout.splitlines()
    assert sum("importlib" in line for line in everything) == 2
    found = rows(reader("show", "--tree", "--json", trace))
    assert [row["function"] for row in found] == [
        *("<module>", "_find", "_load", "exec", "<module>", "len", "len", "len")
    ]


def test_tree_of_folded_imports_ends(reader, tmp_path):
    """Pairs whose callers are known by name only go round in circles."""
    lines = Lines()
    for caller, function, file in (
        (None, "<module>", "/work/job.py"),
        ("<module>", "_find", IMPORTLIB),
        ("_find", "_load", IMPORTLIB),
        ("_load", "_find", IMPORTLIB),
        ("_load", "<module>", "/p.py"),
    ):
        called = {} if caller is None else {"caller": caller}
        lines.add("call", function=function, **called, file=file, line=1, count=1,
                  total=90, self=10)  # fmt: skip
    trace = lines.end(1000).write(tmp_path / "circle.sptrace")
    shown = reader("show", "--tree", trace).stdout.splitlines()
    assert shown[2:] == [
        "    90 ns     10 ns         1   <module>  job.py:1",
        "    90 ns     10 ns         1     <module> (see above)  /p.py:1",
        "    30 ns     30 ns         3     (the import system itself)",
    ]


def test_tree_of_deep_imports_takes_no_stack(reader, tmp_path):
    lines = Lines(calls="all").function(1, "_find", file=IMPORTLIB).function(2, "f")
    for _ in range(25):
        lines.run([1] * 4000, step=1)
    lines.run([2, -2], step=10**6)
    trace = lines.end(10**7).write(tmp_path / "deep.sptrace")
    shown = reader("show", "--tree", trace).stdout.splitlines()
    assert [line.split()[-1] for line in shown[2:]] == ["job.py:2", "itself)"]


def test_tree_is_given_as_rows(reader, tmp_path):
    found = rows(reader("show", "--tree", "--json", some_calls(tmp_path)))
    assert [(row["tid"], row["depth"], row["function"], row["count"]) for row in found] == [
        (100, 0, "main", 1), (100, 1, "slow", 1), (100, 2, "len", 1),
        (100, 1, "quick", 2), (101, 0, "slow", 1), (200, 0, "quick", 1)]  # fmt: skip
    assert all(row["exact"] is True for row in found)
    assert found[2]["parent"] == found[1]["node"]
    assert (found[2]["native"], found[2]["caller"]) == (True, "slow")
    found = rows(reader("show", "--tree", "--json", "--depth", 1, some_calls(tmp_path)))
    assert {row["depth"] for row in found} == {0}


def test_tree_of_folded_calls_shows_each_once(reader, tmp_path):
    lines = Lines()
    call = {"file": "/work/job.py", "line": 1}
    lines.add("call", function="main", **call)
    lines.add("call", function="fib", caller="main", **call)
    lines.add("call", function="fib", caller="fib", count=20, total=900, self=5, **call)
    lines.add("call", function="other", caller="main", count=1, total=1, self=1, **call)
    lines.add("call", function="lost", caller="nobody", pid=300, **call)
    trace = lines.end(1000).write(tmp_path / "folded.sptrace")
    shown = reader("show", "--tree", "--depth", "50", trace).stdout.splitlines()
    assert shown[1:] == [
        "100  1.0 us, no end  python3 job.py",
        "        -         -         1   main  job.py:1",
        "        -         -         1     fib  job.py:1",
        "   900 ns      5 ns        20       fib (see above)  job.py:1",
        "     1 ns      1 ns         1     other  job.py:1",
        "300  (its start is not told)",
        "        -         -         1   lost  job.py:1",
    ]
    found = rows(reader("show", "--tree", "--json", trace))
    assert [(row.get("caller"), row["function"], row["count"]) for row in found] == [
        (None, "main", 1), ("main", "fib", 1), ("fib", "fib", 20), ("main", "other", 1),
        ("nobody", "lost", 1)]  # fmt: skip
    assert all(row["exact"] is False for row in found)


def test_tree_of_100_000_levels_is_shown(reader, tmp_path):
    lines = Lines("all").function(1, "down")
    for start in range(0, 100_000, 4000):
        lines.run([1] * 4000, t=start * 10)
    trace = lines.end(10**7).write(tmp_path / "deep.sptrace")
    found = rows(reader("show", "--tree", "--json", trace))
    assert [row["depth"] for row in found] == list(range(100_000))
    shown = reader("show", "--tree", "--depth", "1000", trace).stdout.splitlines()
    assert len(shown) == 1002
    assert max(map(len, shown)) <= 80
    assert reader("show", "--tree", "--depth", "1001", trace).returncode == 2


def test_tree_heeds_the_filters(reader, tmp_path):
    lines = Lines("all").function(1, "mine").function(2, "theirs", file="/lib/x.py")
    lines.run([1, 2, 1, -1, -2, -1])
    trace = lines.end(100).write(tmp_path / "filtered.sptrace")
    found = rows(reader("show", "--tree", "--json", "--file", "job.py", trace))
    assert [(row["depth"], row["function"]) for row in found] == [
        (0, "mine"),
        (1, "mine"),
    ]


MS = 1_000_000


def some_happenings(path):
    lines = Lines()
    lines.add("import", t=MS, module="json", direct=True, at="/work/job.py:1")
    for i in range(5):
        lines.add("import", t=2 * MS + i, module=f"json.{i}", direct=False)
        lines.add("open", t=2 * MS + i, op="read", path=f"/usr/lib/python3.12/{i}.py")
        lines.add("loaded", t=2 * MS + i, module=f"json.{i}", duration=5)
    lines.add("call", t=3 * MS, function="f")
    for i in range(4):
        lines.add("connect", t=4 * MS + i, op="connect", address="192.0.2.1", port=443,
                  at="/work/job.py:7")  # fmt: skip
    lines.add("fork", t=900 * MS, pid=200, parent=100, child=200)
    lines.add("output", t=901 * MS, pid=100, stream="stdout", text="done\n", size=5)
    lines.add("checkpoint", t=902 * MS, layer="supervisor", bytes=9)
    return lines.end(2000 * MS).write(path / "timeline.sptrace")


def test_timeline_folds_repeats_and_libraries_and_shows_pauses(reader, tmp_path):
    lines = reader("show", "--timeline", some_happenings(tmp_path)).stdout.splitlines()
    assert lines == [
        "0.000000    start       python3 job.py",
        "0.001000    import      json  job.py:1",
        "0.002000    library     15 of the interpreter and its packages, 4 ns",
        "0.004000    connect     (4 times, 3 ns) connect 192.0.2.1 443  job.py:7",
        "            ... 896.0 ms",
        "0.900000    fork        (200) 200",
        "0.901000    output      stdout done\\n",
        "            ... 1.10 s",
        "2.000000    end         ok",
    ]


def test_timeline_is_given_as_rows(reader, tmp_path):
    trace = some_happenings(tmp_path)
    found = rows(reader("show", "--timeline", "--json", trace))
    assert [(row["kind"], row["times"]) for row in found] == [
        ("start", 1), ("import", 1), ("library", 15), ("connect", 4), ("fork", 1),
        ("output", 1), ("end", 1)]  # fmt: skip
    assert found[3]["t"] == 4 * MS
    assert found[3]["until"] == 4 * MS + 3
    assert found[3]["text"].startswith("connect 192.0.2.1 443 family=") or (
        found[3]["text"] == "connect 192.0.2.1 443  /work/job.py:7"
    )


def test_timeline_has_calls_when_they_are_asked_for(reader, tmp_path):
    trace = some_happenings(tmp_path)
    found = rows(reader("show", "--timeline", "--json", "--kind", "call", trace))
    assert [row["kind"] for row in found] == ["call"]
    found = rows(reader("show", "--timeline", "--json", "--category", "network", trace))
    assert [row["kind"] for row in found] == ["connect"]


def test_timeline_of_an_unsound_trace_whose_time_goes_back(reader, tmp_path):
    lines = Lines()
    for t in (5 * 10**9, 3, (1 << 64) - 1, 0):
        lines.add("open", t=t, path="/x", op="read", pid=(1 << 63) - 1)
    trace = lines.write(tmp_path / "back.sptrace")
    assert reader("show", "--timeline", trace).returncode == 0
    assert len(rows(reader("show", "--timeline", "--json", trace))) == 2


SOURCES = [
    ("supervisor", "/work/job.py", "a" * 64, "x = 1\nif x:\n\tprint('\x1b[2J')\n"),
    ("python", "<string>", "b" * 64, "y = 2"),
    ("python", "<string>", "c" * 64, "z = 3\n"),
]


def some_sources(path):
    lines = Lines()
    for layer, file, digest, text in SOURCES:
        lines.add(
            "source", layer=layer, file=file, digest=digest, size=len(text), text=text
        )
    return lines.end(1).write(path / "sources.sptrace")


def test_source_is_that_of_the_program(reader, tmp_path):
    done = reader("show", "--source", some_sources(tmp_path))
    assert done.returncode == 0
    assert done.stdout == "x = 1\nif x:\n\tprint('\\x1b[2J')\n"


@pytest.mark.parametrize(
    "wanted", ["job.py", "/work/job.py", "*.py", "aaaaaa", "a" * 64]
)
def test_source_of_a_file_or_digest(reader, tmp_path, wanted):
    done = reader("show", "--source", some_sources(tmp_path), wanted)
    assert done.stdout.startswith("x = 1\n")
    found = rows(reader("show", "--json", "--source", some_sources(tmp_path), wanted))
    assert [row["text"] for row in found] == [SOURCES[0][3]]


def test_sources_of_one_name_are_told_apart(reader, tmp_path):
    done = reader("show", "--source", some_sources(tmp_path), "<string>")
    assert done.stdout == (
        f"==> <string> {'b' * 16}\ny = 2\n==> <string> {'c' * 16}\nz = 3\n"
    )


def test_source_that_is_not_there_is_told(reader, tmp_path):
    trace = some_sources(tmp_path)
    for wanted in ("other.py", "abc", "a" * 65):
        done = reader("show", "--source", trace, wanted)
        assert (done.returncode, done.stdout) == (2, "")
        assert "--kind source" in done.stderr
    assert reader("show", "--source", trace, "a", "b").returncode == 2
    bare = Lines().end(1).write(tmp_path / "bare.sptrace")
    assert "no text of the program" in reader("show", "--source", bare).stderr


def test_source_that_was_cut_is_told(reader, tmp_path):
    lines = Lines().add("source", layer="supervisor", file="/work/job.py", text="x",
                        digest="a" * 64, truncated=True)  # fmt: skip
    done = reader("show", "--source", lines.end(1).write(tmp_path / "cut.sptrace"))
    assert done.stdout == "x\n"
    assert "first MiB" in done.stderr


HOSTILE = "\x1b[31m\x9b\u202e\u2066\r\n\t\x07\udcff漢字" + "w" * 300


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("columns", ["40", "80", "200"])
@pytest.mark.parametrize("as_json", [False, True])
def test_views_of_hostile_names_do_nothing_to_a_terminal(
    reader, tmp_path, view, columns, as_json
):
    lines = Lines()
    lines.add("open", path=HOSTILE, op="read", at=HOSTILE)
    lines.add("connect", op="connect", address=HOSTILE, port=1)
    lines.add("resolve", host=HOSTILE, addresses=[HOSTILE])
    lines.add("connect", op="connect", address=HOSTILE, port=1)
    lines.add("exec", path=HOSTILE, argv=[HOSTILE, HOSTILE, "a" * 9000])
    lines.function(1, HOSTILE, file=HOSTILE).run([1, -1])
    lines.add("call", function=HOSTILE, caller=HOSTILE, file=HOSTILE, count=1, total=1)
    lines.add("source", layer="supervisor", text=HOSTILE, file=HOSTILE, digest="0" * 64)
    trace = lines.end(9).write(tmp_path / "hostile.sptrace")
    done = reader("show", view, *["--json"] * as_json, trace, env={"COLUMNS": columns})
    assert done.returncode == 0
    assert not set(done.stdout) & set("\x1b\x9b\u202e\u2066\r\x07\udcff")
    assert "\t" not in done.stdout or view == "--source"  # as a program is indented
    if as_json:
        assert any("漢字" in str(row) for row in rows(done))
    else:
        wide = [len(line) + sum(c in "漢字" for c in line) for line in
                done.stdout.splitlines()]  # fmt: skip
        assert max(wide) <= int(columns) or view == "--source"


@pytest.mark.parametrize("view", [view for view in VIEWS if view != "--source"])
def test_views_of_a_cut_trace_warn_on_the_other_stream(golden, reader, view):
    done = reader("show", view, golden("cut_before_end"))
    assert done.returncode == 0
    assert done.stderr.startswith("sandpit: ")
    assert "cut short" in done.stderr
    assert reader("show", view, golden("good")).stderr == ""


@pytest.mark.parametrize("view", VIEWS)
def test_views_of_a_broken_trace_show_what_comes_before(reader, tmp_path, view):
    lines = Lines().add("open", path="/before", op="read")
    path = lines.write(tmp_path / "broken.sptrace", b'{"seq":1,garbage\n')
    done = reader("show", view, path)
    assert done.returncode == 2
    assert f"line 3, byte {lines.size + 9}" in done.stderr
    assert ("/before" in done.stdout) is (view in ("--files", "--timeline"))


def test_colour_of_views_is_used_when_it_is_wanted(reader, tmp_path):
    trace = some_files(tmp_path)
    assert (
        "\x1b[31mdenied 5" in reader("show", "--files", "--color=always", trace).stdout
    )
    assert "\x1b" not in reader("show", "--files", trace).stdout


def test_two_views_at_once_are_refused(golden, reader):
    done = reader("show", "--files", "--network", golden("good"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "one view at a time: --files or --network" in done.stderr


def test_views_are_read_from_standard_input(golden, reader):
    with open(golden("good"), "rb") as file:
        assert "data.csv" in reader("show", "--files", "-", stdin=file).stdout


def test_a_second_start_changes_nothing(reader, tmp_path):
    lines = Lines()
    for _ in range(3):
        lines.add("start", pid=7, cwd="/other", argv=["x"], format=1)
    lines.add("open", path="/work/a", op="read").end(1)
    trace = lines.write(tmp_path / "starts.sptrace")
    assert reader("show", "--files", trace).stdout.splitlines()[1].endswith("./a")
