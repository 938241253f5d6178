"""A compressed trace is the same trace: whatever reads the one reads the other."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
from pathlib import Path
from typing import IO

import pytest
import reference
import sandpit
from test_golden import READABLE, UNREADABLE_AT, VERIFIED

native = sandpit._trace._native
FRAME_MAGIC = bytes.fromhex("28b52ffd")
SKIPPED = bytes.fromhex("502a4d18") + (5).to_bytes(4, "little") + b"hello"
EMPTY = FRAME_MAGIC + b"\x20\x00" + b"\x01\x00\x00"  # length 0, one raw block of 0


def packed(source: Path, target: Path) -> Path:
    """A compressed copy, whatever the file holds."""
    with open(source, "rb") as file, open(target, "wb") as to:
        native.recode(file.fileno(), to.fileno(), True)
    return target


def _pipe(command: list[object]) -> IO[bytes]:
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE)
    assert process.stdout is not None
    return process.stdout


def unpacked(data: bytes, tmp_path: Path) -> bytes:
    """The text of a compressed file, as our code reads it."""
    source, target = tmp_path / "packed", tmp_path / "text"
    source.write_bytes(data)
    with open(source, "rb") as file, open(target, "wb") as to:
        native.recode(file.fileno(), to.fileno(), False)
    return target.read_bytes()


@pytest.fixture
def small(golden, tmp_path: Path) -> Path:
    """The golden trace in four frames, a few lines each."""
    lines = golden("good").read_bytes().splitlines(keepends=True)
    data = b""
    for start in range(0, len(lines), 4):
        part = tmp_path / "part"
        part.write_bytes(b"".join(lines[start : start + 4]))
        data += packed(part, tmp_path / "part.zst").read_bytes()
    path = tmp_path / "small.sptrace.zst"
    path.write_bytes(data)
    assert data.count(FRAME_MAGIC) == 4
    return path


@pytest.mark.parametrize("name", VERIFIED)
def test_verify_says_the_same_of_a_compressed_trace(golden, reader, tmp_path, name):
    path = packed(golden(name), tmp_path / f"{name}.sptrace.zst")
    done = reader("verify", "--json", path)
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["line"], answer["byte"]) == VERIFIED[name]


@pytest.mark.parametrize("name", READABLE)
def test_readers_give_the_same_of_a_compressed_trace(golden, reader, tmp_path, name):
    path = packed(golden(name), tmp_path / f"{name}.sptrace.zst")
    assert sandpit.load(path) == sandpit.load(golden(name))
    shown = reader("show", "--json", path)
    assert shown.stdout == reader("show", "--json", golden(name)).stdout
    with open(path, "rb") as file:
        assert reader("show", "--json", "-", stdin=file).stdout == shown.stdout


@pytest.mark.parametrize("name", UNREADABLE_AT)
def test_faults_have_the_same_place_in_a_compressed_trace(golden, tmp_path, name):
    path = packed(golden(name), tmp_path / f"{name}.sptrace.zst")
    with pytest.raises(sandpit.TraceError) as caught:
        list(sandpit.load(path))
    assert (caught.value.line, caught.value.byte) == UNREADABLE_AT[name]


def test_content_decides_and_not_the_name(golden, reader, small, tmp_path):
    misnamed = tmp_path / "misnamed.sptrace"
    misnamed.write_bytes(small.read_bytes())
    plain = tmp_path / "plain.sptrace.zst"
    plain.write_bytes(golden("good").read_bytes())
    for path in (misnamed, plain, small):
        assert reader("verify", path).returncode == 0
        assert sandpit.load(path) == sandpit.load(golden("good"))


def test_events_are_found_in_any_order(golden, small):
    expected = list(sandpit.load(golden("good")))
    trace = sandpit.load(small)
    for i in [22, 0, 11, 4, 3, 12, 5, 10, 21, 4, 22, 1]:
        assert trace[i] == expected[i]


def test_save_packs_and_unpacks_by_the_name(golden, small, tmp_path):
    text = golden("good").read_bytes()
    trace = sandpit.load(small)
    assert trace.save(tmp_path / "plain.sptrace").read_bytes() == text
    assert trace.save(tmp_path / "again.sptrace.zst").read_bytes() == small.read_bytes()
    plain = sandpit.load(golden("good"))
    saved = plain.save(tmp_path / "packed.sptrace.zst").read_bytes()
    assert saved.startswith(FRAME_MAGIC)
    assert unpacked(saved, tmp_path) == text


@pytest.mark.requires("zstd")
def test_the_program_zstd_unpacks_it(golden, reader, small):
    text = subprocess.check_output(["zstd", "-dc", small])
    assert text == golden("good").read_bytes()
    subprocess.run(["zstd", "-tq", small], check=True)
    assert reader("verify", "-", stdin=_pipe(["zstd", "-dc", small])).returncode == 0


@pytest.mark.requires("zstd")
def test_what_the_program_zstd_packed_is_read(golden, reader, tmp_path):
    path = tmp_path / "other.sptrace.zst"
    subprocess.run(["zstd", "-19", "-q", golden("good"), "-o", path], check=True)
    assert reader("verify", path).returncode == 0
    assert sandpit.load(path) == sandpit.load(golden("good"))


@pytest.mark.parametrize("other", [SKIPPED, EMPTY], ids=["skipped", "empty"])
@pytest.mark.parametrize("place", range(5))
def test_frames_without_text_are_refused(reader, small, tmp_path, other, place):
    """Something could be hidden in them that no digest covers."""
    data = small.read_bytes()
    starts = [
        *(m.start() for m in re.finditer(re.escape(FRAME_MAGIC), data)),
        len(data),
    ]
    path = tmp_path / "more.sptrace.zst"
    path.write_bytes(data[: starts[place]] + other + data[starts[place] :])
    done = reader("verify", path)
    nothing = place == 0 and other is SKIPPED
    assert done.returncode == (2 if nothing else 1)
    assert ("not a trace" if nothing else "damaged") in done.stdout + done.stderr
    with pytest.raises(sandpit.TraceError):
        list(sandpit.load(path))


@pytest.mark.parametrize("more", [b"x", FRAME_MAGIC, SKIPPED[:10], SKIPPED, None])
def test_bytes_behind_the_end_are_noticed(reader, small, tmp_path, more):
    data = small.read_bytes()
    path = tmp_path / "more.sptrace.zst"
    path.write_bytes(data + (data[:100] if more is None else more))
    assert reader("verify", small).returncode == 0
    assert reader("verify", path).returncode == 1


def test_any_changed_byte_of_a_compressed_trace_is_noticed(golden, small, tmp_path):
    """What changes nothing in the text may pass: a checksum of it would not."""
    data = small.read_bytes()
    text = golden("good").read_bytes()
    path = tmp_path / "changed.sptrace.zst"
    for i, byte in enumerate(data):
        changed = bytearray(data)
        changed[i] = byte ^ (1 << i % 8)
        path.write_bytes(changed)
        code = native.verify(path)[0]
        assert code != 0 or unpacked(bytes(changed), tmp_path) == text, i


def test_damage_is_told_with_line_and_byte(reader, small, tmp_path):
    data = bytearray(small.read_bytes())
    third = data.index(FRAME_MAGIC, data.index(FRAME_MAGIC, 4) + 4)
    data[third + 40] ^= 0x55
    path = tmp_path / "damaged.sptrace.zst"
    path.write_bytes(data)
    at = sum(map(len, unpacked(small.read_bytes(), tmp_path).splitlines(True)[:8]))
    done = reader("verify", path)
    assert done.returncode == 1
    assert f"line 9, byte {at}: the compressed data is damaged" in done.stdout
    done = reader("show", "--json", path)
    assert done.returncode == 2
    assert f"line 9, byte {at}: the compressed data is damaged" in done.stderr
    with pytest.raises(sandpit.TraceError) as caught:
        list(sandpit.load(path))
    assert (caught.value.line, caught.value.byte) == (9, at)


def test_any_shortened_compressed_trace_is_noticed(small, tmp_path):
    data = small.read_bytes()
    path = tmp_path / "cut.sptrace.zst"
    path.write_bytes(data)
    for size in range(len(data) - 1, -1, -1):
        os.truncate(path, size)
        assert native.verify(path)[0] in (2, 3), size


def test_a_frame_cut_by_the_end_of_the_file_counts_as_not_there(
    golden, reader, small, tmp_path
):
    data = small.read_bytes()
    fourth = data.rindex(FRAME_MAGIC)
    path = tmp_path / "cut.sptrace.zst"
    path.write_bytes(data[: fourth + 30])
    kept = unpacked(data[:fourth], tmp_path)
    (tmp_path / "kept.sptrace").write_bytes(kept)
    assert reader("verify", path).returncode == 3
    assert reference.verify(tmp_path / "kept.sptrace") == 3
    assert sandpit.load(path) == sandpit.load(tmp_path / "kept.sptrace")


def header(size: int | None) -> bytes:
    """A frame's header (RFC 8878, 3.1.1.1), for a text of that length."""
    if size is None:
        return FRAME_MAGIC + b"\x00\x58"  # a window of 2 MiB, length not said
    return FRAME_MAGIC + b"\xe0" + size.to_bytes(8, "little")


def zeros(count: int) -> bytes:
    """Blocks that stand for so many times 128 KiB of zeros, four bytes each."""
    block = (1 << 17) << 3 | 1 << 1
    return b"".join(
        (block | (i == count - 1)).to_bytes(3, "little") + b"\0" for i in range(count)
    )


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (header(1 << 40) + zeros(1000), "larger than any that sandpit writes"),
        (header((8 << 20) + 1) + zeros(65), "larger than any that sandpit writes"),
        (header(None) + zeros(65), "larger than any that sandpit writes"),
        (header(8 << 20) + zeros(64), "not a trace"),
        ((header(8 << 20) + zeros(64)) * 1000, "not a trace"),
        (header(8 << 20) + zeros(65), "damaged"),
        (header(8 << 20) + zeros(20), "damaged"),
        (bytes.fromhex("502a4d18") + b"\xff\xff\xff\xff", "not a trace"),
        (SKIPPED * 100000, "not a trace"),
        (EMPTY * 100000, "damaged"),
    ],
)
def test_bombs_cost_neither_memory_nor_time(reader, tmp_path, data, says):
    path = tmp_path / "bomb.sptrace.zst"
    path.write_bytes(data)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (200 << 20, 200 << 20))
        resource.setrlimit(resource.RLIMIT_CPU, (5, 5))

    for command in ("verify", "show"):
        done = reader(command, path, preexec_fn=limit)
        assert done.returncode in (1, 2)
        assert says in done.stdout + done.stderr
    with pytest.raises(sandpit.TraceError, match=says):
        len(sandpit.load(path))


def test_bomb_behind_a_start_costs_little(reader, golden, tmp_path):
    """Lines are no longer than they may be, however well they were compressed."""
    start = tmp_path / "start"
    start.write_bytes(golden("good").read_bytes().splitlines(keepends=True)[0])
    bomb = packed(start, tmp_path / "x").read_bytes()
    path = tmp_path / "bomb.sptrace.zst"
    path.write_bytes(bomb + (header(8 << 20) + zeros(64)) * 1000)
    done = reader("verify", path)
    assert done.returncode == 1
    assert "a line longer than any event can be" in done.stdout


@pytest.mark.requires("program")
def test_run_writes_a_compressed_trace(tmp_path):
    script = tmp_path / "job.py"
    script.write_text("for i in range(20000):\n    print(len(str(i)))\n")
    path = tmp_path / "job.sptrace.zst"
    result = sandpit.run(script, policy="trace-only", calls="all", trace=path)
    assert path.read_bytes().startswith(FRAME_MAGIC)
    assert result.trace.verify().code == 0
    text = unpacked(path.read_bytes(), tmp_path)
    assert path.stat().st_size * 5 < len(text)
    (tmp_path / "plain").write_bytes(text)
    assert reference.verify(tmp_path / "plain") == 0
    assert sandpit.load(tmp_path / "plain") == result.trace
    assert result.trace[-1]["bytes"] < len(text)


LONG = r"""
import os, re
def call(i):
    return i
for _ in range(3):
    for i in range(200000):
        call(i)
    exec(compile("x = 1\n" * 100000, "long", "exec"))
with open(f"/proc/{os.getppid()}/status") as status:
    print(re.search(r"RssAnon:\s+(\d+)", status.read())[1])
"""


@pytest.mark.requires("program")
def test_supervisor_stays_small(tmp_path):
    script = tmp_path / "job.py"
    script.write_text(LONG)
    options = {"policy": "trace-only", "calls": "all"}
    result = sandpit.run(script, trace=tmp_path / "job.sptrace.zst", **options)
    assert result.exit_code == 0, result.stderr
    assert int(result.stdout) < 8 << 10


@pytest.mark.requires("program")
def test_trace_limit_counts_what_is_stored(tmp_path):
    script = tmp_path / "job.py"
    script.write_text("for i in range(100000):\n    len(str(i))\n")
    path = tmp_path / "job.sptrace.zst"
    options = {"policy": "trace-only", "calls": "all", "trace": path}
    result = sandpit.run(script, limits={"trace": "256KiB"}, **options)
    assert path.stat().st_size < 300 << 10
    assert len(unpacked(path.read_bytes(), tmp_path)) > 512 << 10
    assert result.trace.verify().code == 0
