"""Much at once through the standard streams: nothing is lost, and nothing stands still."""

from __future__ import annotations

import resource
import signal
import subprocess

import pytest

pytestmark = pytest.mark.requires("program")

BYTES = 8 << 20
PATTERN = bytes(range(256)) * (BYTES // 256)


def run(sandpit, script: str, **streams) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        sandpit.argv(script),
        cwd=sandpit.folder,
        timeout=60,
        check=False,
        **streams,
    )


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("piece", [4096, 65536, 1 << 20])
def test_output_larger_than_every_buffer(sandpit, number, piece):
    script = f"""
import os
data = bytes(range(256)) * ({piece} // 256)
for _ in range({BYTES // piece}):
    rest = data
    while rest:
        rest = rest[os.write({number}, rest):]
"""
    done = run(sandpit, script, stdin=subprocess.DEVNULL, capture_output=True)
    assert done.returncode == 0
    assert (done.stdout, done.stderr)[number - 1] == PATTERN


def test_input_larger_than_every_buffer(sandpit):
    script = "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())"
    done = run(sandpit, script, input=PATTERN, capture_output=True)
    assert done.returncode == 0
    assert done.stdout == PATTERN


@pytest.mark.parametrize("printed", [10, 10_000_000])
@pytest.mark.parametrize("number", [1, 2])
def test_output_that_nobody_can_take_is_an_error(sandpit, number, printed):
    script = f"""
import os, signal
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
for _ in range({printed} // 10):
    os.write({number}, b"012345678\\n")
"""
    with open("/dev/full", "wb") as full:
        done = run(
            sandpit,
            script,
            stdin=subprocess.DEVNULL,
            stdout=full if number == 1 else subprocess.PIPE,
            stderr=full if number == 2 else subprocess.PIPE,
        )
    assert done.returncode == 125
    if number == 1:
        assert done.stderr.startswith(b"sandpit: the program's output could not")
        assert done.stderr.count(b"\n") == 1


def test_reader_that_leaves_is_no_error_of_the_run(sandpit):
    script = "import os, signal\nos.write(1, b'1\\n')\ninput()\nos.write(1, b'2\\n')"
    with subprocess.Popen(
        sandpit.argv(script),
        cwd=sandpit.folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout.readline() == b"1\n"
        process.stdout.close()
        process.stdin.write(b"\n")
        process.stdin.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


@pytest.mark.parametrize("ignored", [True, False])
def test_limit_on_file_sizes_is_the_programs_own(sandpit, ignored):
    script = """
import signal
for line in open("/proc/self/status"):
    if line.startswith("SigIgn"):
        print(int(line.split()[1], 16) >> (signal.SIGXFSZ - 1) & 1)
try:
    with open("large", "wb") as file:
        file.write(bytes(1 << 21))
except OSError as error:
    print(error.errno)
import subprocess
print(subprocess.run(["sh", "-c", "cat /dev/zero > large"]).returncode)
"""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN if ignored else signal.SIG_DFL)

    plain = sandpit.plain(script, preexec_fn=limit)
    options = ("--policy", "trace-only")
    done = sandpit.run(script, options=options, preexec_fn=limit)
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)
    assert done.stderr == plain.stderr
    assert sandpit.verify() == 0


def test_supervisor_under_a_limit_on_file_sizes_says_so(sandpit):
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))

    done = sandpit.run("print('hi')", preexec_fn=limit)
    assert done.returncode == 125
    assert done.stderr.startswith("sandpit: ")
    assert "File too large" in done.stderr
