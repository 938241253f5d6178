"""`sandpit show --follow`: events of a program that is still running."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import time

import pytest

pytestmark = pytest.mark.requires("program", "landlock", "listener")

SLEEPS = "import time\nprint('begun\\n', end='', flush=True)\ntime.sleep({})\nprint('done')"


@pytest.fixture
def follow(program, tmp_path):
    """Starts `sandpit show --follow ARGUMENTS`."""
    started = []

    def start(*arguments, **options):
        process = subprocess.Popen(
            [program, "show", "--follow", *map(str, arguments)],
            cwd=tmp_path,
            text=True,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def run(program, tmp_path):
    """Starts `sandpit run --events FD ARGUMENTS`, FD being for writing only there."""
    started = []

    def start(fd, *arguments, **options):
        process = subprocess.Popen(
            [program, "run", "--events", str(fd), *map(str, arguments)],
            pass_fds=[fd],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            **options,
        )
        started.append(process)
        os.close(fd)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def read_line(stream, seconds=20):
    assert select.select([stream], [], [], seconds)[0], "nothing came"
    return stream.readline()


def test_follow_prints_events_while_the_program_runs(follow, run):
    reading, writing = os.pipe()
    running = run(writing, "--no-trace", "-c", SLEEPS.format(20))
    showing = follow("--kind", "output", "--kind", "end", "-", stdin=reading)
    os.close(reading)
    line = read_line(showing.stdout)
    assert running.poll() is None
    number, seconds, kind, stream, text = line.split()[:5]
    assert (int(number) > 0, float(seconds) > 0) == (True, True)
    assert (kind, stream, text.startswith("begun")) == ("output", "stdout", True)
    running.send_signal(signal.SIGTERM)
    rest, err = showing.communicate(timeout=20)
    assert rest.split()[2:4] == ["end", "cancelled"]
    assert (showing.returncode, err) == (0, "")


def test_follow_as_json_gives_what_show_gives_of_the_trace(
    follow, run, sandpit, tmp_path
):
    reading, writing = os.pipe()
    code = "def f(): return 1\nfor i in range(100): f()\nimport json"
    run(writing, "-o", "one.sptrace", "--calls", "all", "-c", code)
    showing = follow("--json", "-", stdin=reading)
    os.close(reading)
    out, err = showing.communicate(timeout=60)
    assert (showing.returncode, err) == (0, "")
    assert out == sandpit("show", "--json", "one.sptrace").stdout
    assert sum(json.loads(line)["kind"] == "return" for line in out.splitlines()) > 100


@pytest.mark.parametrize(
    "filters",
    [["--kind", "import"], ["--category", "fs"], ["--file", "*.so"]],
)
def test_follow_has_the_filters_of_show(follow, run, sandpit, filters):
    reading, writing = os.pipe()
    code = "import json, zlib\ntry: open('/etc/x', 'w')\nexcept OSError: pass"
    run(writing, "-o", "one.sptrace", "--calls", "off", "-c", code)
    showing = follow(*filters, "-", stdin=reading)
    os.close(reading)
    out = showing.communicate(timeout=60)[0]
    assert out == sandpit("show", *filters, "one.sptrace").stdout != ""


def test_follow_fifo_may_be_opened_before_the_program_is_started(follow, run, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    showing = follow("--kind", "end", "fifo")
    time.sleep(0.3)
    run(os.open(tmp_path / "fifo", os.O_WRONLY), "--no-trace", "-c", "pass")
    out, err = showing.communicate(timeout=60)
    assert (out.split()[2:4], err) == (["end", "ok"], "")


def test_follow_file_is_read_as_it_grows_up_to_its_end(follow, run, tmp_path):
    (tmp_path / "events.jsonl").touch()
    showing = follow("--kind", "output", "--kind", "end", "events.jsonl")
    fd = os.open(tmp_path / "events.jsonl", os.O_WRONLY)
    running = run(fd, "--no-trace", "-c", SLEEPS.format(3))
    assert "begun" in read_line(showing.stdout)
    assert running.poll() is None
    out, err = showing.communicate(timeout=60)
    assert [line.split()[2] for line in out.splitlines()][-1] == "end"
    assert (showing.returncode, err) == (0, "")


def test_follow_leaves_bookkeeping_out_unless_asked(follow, sandpit):
    sandpit("run", "-o", "one.sptrace", "-c", "pass")
    out = follow("one.sptrace").communicate(timeout=20)[0]
    kinds = {line.split()[2] for line in out.splitlines()}
    assert {"start", "source", "open", "end"} <= kinds and "checkpoint" not in kinds
    out = follow("--kind", "checkpoint", "one.sptrace").communicate(timeout=20)[0]
    assert {line.split()[2] for line in out.splitlines()} == {"checkpoint"}


def test_follow_stream_without_end_is_told(follow, sandpit, tmp_path):
    sandpit("run", "-o", "one.sptrace", "-c", "pass")
    lines = (tmp_path / "one.sptrace").read_text().splitlines(keepends=True)
    showing = follow("--json", "-", stdin=subprocess.PIPE)
    out, err = showing.communicate("".join(lines[:-1]) + lines[-1][:20], timeout=20)
    assert len(out.splitlines()) == len(lines) - 1
    assert err == "sandpit: -: cut short: there was no end\n"
    assert showing.returncode == 0


def test_follow_what_is_no_stream_is_refused_with_its_place(follow, tmp_path):
    showing = follow("-", stdin=subprocess.PIPE)
    out, err = showing.communicate("nonsense\n", timeout=20)
    assert (showing.returncode, out) == (2, "")
    assert err == "sandpit: -: line 1, byte 0: not well-formed JSON\n"
    for name, says in (("absent", "No such file"), (".", "Is a directory")):
        showing = follow(name)
        assert says in showing.communicate(timeout=20)[1]
        assert showing.returncode == 2
    showing = follow("--files", "x")
    assert "one of them at a time" in showing.communicate(timeout=20)[1]


def test_follow_neutralises_what_could_act_on_a_terminal(follow, run):
    reading, writing = os.pipe()
    code = "print('\\x1b[31mred\\x07 \\u202e \\x9b2J', flush=True)"
    run(writing, "--no-trace", "-c", code, env={**os.environ, "PYTHONUTF8": "1"})
    ours, theirs = pty.openpty()
    showing = follow("--color", "never", "-", stdin=reading, stdout=theirs)
    os.close(reading)
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        shown += piece
    os.close(ours)
    assert showing.wait(20) == 0 and b"red" in shown
    assert not set(shown) & (set(range(0x20)) - {10, 13})
    text = shown.decode()
    assert "\u202e" not in text and "\x9b" not in text


def test_follow_interrupt_shows_the_last_words_and_exits_130(follow, run):
    reading, writing = os.pipe()
    running = run(writing, "--no-trace", "-c", SLEEPS.format(30))
    showing = follow("--kind", "output", "--kind", "end", "-", stdin=reading)
    os.close(reading)
    read_line(showing.stdout)
    for process in (showing, running):  # it is interrupted before the stream ends
        process.send_signal(signal.SIGINT)
    out, err = showing.communicate(timeout=20)
    assert (showing.returncode, err) == (130, "")
    assert out.split()[2:4] == ["end", "cancelled"]


def test_follow_interrupt_ends_it_though_the_program_goes_on(follow, run, tmp_path):
    reading, writing = os.pipe()
    running = run(writing, "--no-trace", "-c", SLEEPS.format(30))
    (tmp_path / "grows").touch()
    for one in (follow("-", stdin=reading), follow("grows")):
        time.sleep(0.5)
        one.send_signal(signal.SIGINT)
        began = time.monotonic()
        one.communicate(timeout=20)
        assert one.returncode == 130 and time.monotonic() - began < 10
    os.close(reading)
    assert running.poll() is None


def test_follow_reader_that_goes_away_ends_it_silently(follow, sandpit):
    sandpit("run", "-o", "one.sptrace", "--calls", "all", "-c", "import json")
    showing = follow("one.sptrace")
    showing.stdout.readline()
    showing.stdout.close()
    assert showing.wait(20) == -signal.SIGPIPE
    assert showing.stderr.read() == ""
