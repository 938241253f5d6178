"""Golden traces read and verify as documented, by our code and by the reference."""

from __future__ import annotations

import json
import os
import subprocess

import make_golden
import pytest
import reference
import sandpit

# name: exit code of verify, first bad line and byte; for a sound one, how much there is
VERIFIED = {
    "good": (0, 16, 3723),
    "lossy": (0, 14, 3465),
    "future_kind": (0, 16, 3725),
    "wrong_run": (0, 16, 3721),  # as it was written: what reads it says so
    "cut_in_line": (3, 14, 2429),
    "cut_before_end": (3, 14, 2429),
    "cut_newline": (3, 14, 2429),
    "cut_before_checkpoint": (3, 1, 0),
    "edited_event": (1, 1, 0),
    "edited_digest": (1, 1, 0),
    "edited_checkpoint_time": (1, 7, 1186),
    "edited_end": (1, 13, 2429),
    "edited_json": (1, 6, 1062),
    "deleted_line": (1, 10, 1983),
    "deleted_block": (1, 8, 1352),
    "doubled_line": (1, 11, 2131),
    "reordered": (1, 9, 1538),
    "reordered_renumbered": (1, 7, 1186),
    "spliced": (1, 7, 1186),
    "spliced_start": (1, 7, 1186),
    "appended": (1, 17, 3723),
    "appended_half": (1, 17, 3723),
    "second_start": (1, 4, 664),
    "nul_bytes": (1, 10, 2069),
    "not_utf8": (1, 10, 2069),
    "deep": (1, 2, 462),
    "run_of_nothing": (1, 5, 859),
    "no_start": (2, 1, 0),
    "future_format": (2, 1, 0),
    "empty": (2, 1, 0),
    "not_a_trace": (2, 1, 0),
    "signed": (0, 16, 3882),
    "signed_by_another": (0, 16, 3882),
    "signed_cut": (3, 14, 2485),
    "signed_edited": (1, 1, 0),
    "signed_reordered": (1, 16, 3627),
    "signed_resealed": (1, 16, 3627),
    "signed_spliced": (1, 16, 3627),
    "signed_stripped": (1, 16, 3613),
    "signed_unannounced": (1, 16, 3571),
    "signed_under_a_wrong_name": (1, 16, 3627),
    "signed_wrong_base64": (1, 16, 3627),
    "signed_wrong_signer": (1, 1, 91),
    "unsigned_resealed": (0, 16, 3723),  # whoever makes a chain anew makes a sound one
}

# name: line and byte of the fault that stops a reader
UNREADABLE_AT = {
    "edited_json": (6, 1062),
    "nul_bytes": (10, 2069),
    "not_utf8": (10, 2069),
    "deep": (2, 333),
    "run_of_nothing": (5, 859),
    "wrong_run": (5, 792),
    "no_start": (1, 0),
    "future_format": (1, 0),
    "empty": (1, 0),
    "not_a_trace": (1, 0),
}

READABLE = sorted(set(VERIFIED) - set(UNREADABLE_AT))


def plain(text):
    """What any decoder of JSON makes of it."""
    return json.loads(json.dumps(text))


def test_every_golden_file_has_an_expectation():
    names = {path.stem for path in make_golden.GOLDEN.glob("*.sptrace")}
    assert names == set(VERIFIED)


def test_damaged_files_are_what_the_script_makes(golden):
    lines = golden("good").read_bytes().splitlines(keepends=True)
    for name, data in make_golden.damaged(lines).items():
        assert golden(name).read_bytes() == data, name


@pytest.mark.parametrize("name", VERIFIED)
def test_verify_says_where_a_trace_stops_being_sound(golden, reader, name):
    done = reader("verify", "--json", golden(name))
    answer = json.loads(done.stdout) if done.stdout else {}
    code, line, byte = VERIFIED[name]
    assert done.returncode == code
    assert (answer["line"], answer["byte"]) == (line, byte)


@pytest.mark.parametrize("name", VERIFIED)
def test_reference_verifier_agrees(golden, name):
    assert reference.verify(golden(name)) == VERIFIED[name][0]


@pytest.mark.parametrize("name", READABLE)
def test_show_json_gives_what_the_reference_reads(golden, reader, name):
    done = reader("show", "--json", golden(name))
    assert done.returncode == 0, done.stderr
    shown = [json.loads(line) for line in done.stdout.splitlines()]
    assert shown == list(reference.events(golden(name)))


@pytest.mark.parametrize("name", READABLE)
def test_load_gives_what_the_reference_reads(golden, name):
    trace = sandpit.load(golden(name))
    assert trace == [plain(event) for event in reference.events(golden(name))]


@pytest.mark.parametrize("name", UNREADABLE_AT)
def test_show_stops_with_line_and_byte(golden, reader, name):
    line, byte = UNREADABLE_AT[name]
    done = reader("show", "--json", golden(name))
    assert done.returncode == 2
    assert f": line {line}, byte {byte}: " in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", UNREADABLE_AT)
def test_load_raises_with_line_and_byte(golden, name):
    with pytest.raises(sandpit.TraceError) as caught:
        list(sandpit.load(golden(name)))
    assert (caught.value.line, caught.value.byte) == UNREADABLE_AT[name]


def test_any_changed_byte_is_noticed(golden, tmp_path):
    data = golden("good").read_bytes()
    path = tmp_path / "changed.sptrace"
    path.write_bytes(data)
    with open(path, "r+b", buffering=0) as file:
        verify = sandpit._trace._native.verify
        assert verify(file.fileno())[0] == 0
        for i, byte in enumerate(data):
            os.pwrite(file.fileno(), bytes([byte ^ (1 << i % 8)]), i)
            assert verify(file.fileno())[0] in (1, 2, 3), i
            os.pwrite(file.fileno(), bytes([byte]), i)
        assert verify(file.fileno())[0] == 0


def test_any_shortened_trace_is_noticed(golden, tmp_path):
    data = golden("good").read_bytes()
    path = tmp_path / "cut.sptrace"
    path.write_bytes(data)
    for size in range(len(data) - 1, -1, -1):
        os.truncate(path, size)
        assert sandpit._trace._native.verify(path)[0] in (2, 3), size


@pytest.mark.requires("b2sum")
def test_a_digest_is_checked_by_hand(golden):
    """The commands that the document gives."""
    path = golden("good")
    sealed = [e for e in reference.events(path) if e["kind"] in ("checkpoint", "end")]
    before = 0
    for event in sealed:
        size = event["bytes"] - before
        command = f"tail -c +{before + 1} '{path}' | head -c {size} | b2sum -l 256"
        digest = subprocess.check_output(["sh", "-c", command], text=True).split()[0]
        assert digest == event["digest"]
        before = event["bytes"]
