"""Whatever a file holds, `load` gives its events or a `TraceError` that says where it is bad."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import sandpit
from abilities import require
from traces import Lines

HEAD = b'{"seq":1,"t":5,"kind":"open","layer":"kernel","pid":1,"tid":1,'

# How a line begins or ends badly, and which byte of it is the first bad one.
MALFORMED = {
    "no UTF-8": (HEAD + b'"path":"/a\xff"}', len(HEAD) + 10),
    "an overlong slash": (HEAD + b'"path":"\xc0\xaf"}', len(HEAD) + 8),
    "a surrogate in UTF-8": (HEAD + b'"path":"\xed\xa0\x80"}', len(HEAD) + 8),
    "NUL in a text": (HEAD + b'"path":"a\0b"}', len(HEAD) + 9),
    "NUL between members": (HEAD + b'\0"path":"b"}', len(HEAD)),
    "NULs only": (b"\0" * 100, 0),
    "a bare escape character": (HEAD + b'"path":"a\x1b"}', len(HEAD) + 9),
    "an unknown escape": (HEAD + b'"path":"\\q"}', len(HEAD) + 8),
    "NaN": (HEAD + b'"size":NaN}', len(HEAD) + 7),
    "two objects": (HEAD + b'"path":"a"}{"x":1}', len(HEAD) + 11),
    "a trailing comma": (HEAD + b'"path":"a",}', len(HEAD) + 11),
    "a byte order mark": (b"\xef\xbb\xbf" + HEAD + b'"path":"a"}', 0),
    "an array": (b"[1,2]", 0),
    "nothing": (b"", 0),
    "a negative time": (HEAD.replace(b'"t":5', b'"t":-5') + b'"path":"a"}', 13),
    "a kind that is a number": (HEAD.replace(b'"open"', b"7") + b'"path":"a"}', 22),
    "an endless kind": (HEAD.replace(b"open", b"k" * 100_000) + b'"path":"a"}', 23),
    "a member twice": (HEAD + b'"path":"a","path":"b"}', len(HEAD) + 12),
    "a member twice, escaped": (HEAD + b'"path":"a","\\u0070ath":"b"}', 0),
    "a member of the head twice": (HEAD + b'"kind":"exec","path":"b"}', len(HEAD) + 1),
    "an inner member twice": (HEAD + b'"x":[{"a":1,"b":2,"a":1}]}', len(HEAD) + 19),
    "a huge number": (HEAD + b'"size":1e999}', 0),
    "a number of 400 digits": (HEAD + b'"size":' + b"9" * 400 + b"}", 0),
    "one more than 64 bits": (HEAD + b'"size":18446744073709551616}', 0),
    "one less than 64 bits": (HEAD + b'"size":-9223372036854775809}', 0),
    "a million arrays": (HEAD + b'"x":' + b"[" * 10**6 + b"]" * 10**6 + b"}", 0),
    "a million objects": (HEAD + b'"x":' + b'{"a":' * 10**6 + b"1" + b"}" * 10**6 + b"}", 0),
    "a million open arrays": (HEAD + b'"x":' + b"[" * 10**6, len(HEAD) + 4 + 63),
    "a million values": (HEAD + b'"x":[' + b"1," * 10**6 + b"1]}", 0),
    "a million members": (
        HEAD + b",".join(b'"%d":1' % i for i in range(10**6 // 10)) + b"}", 0),
}  # fmt: skip

QUESTIONS = {
    "index": lambda trace: trace[1],
    "iteration": list,
    "files": lambda trace: trace.files(),
    "search": lambda trace: len(trace.where(text="x")),
    "pandas": lambda trace: require("pandas") or trace.to_pandas(),
    "arrow": lambda trace: require("pyarrow") or trace.to_arrow(),
}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("case", MALFORMED)
def test_a_bad_line_is_told_by_its_place(tmp_path, case, question):
    line, bad = MALFORMED[case]
    lines = Lines()
    path = lines.write(tmp_path / "hostile.sptrace", line + b"\n" + HEAD + b'"a":1}\n')
    trace = sandpit.load(path)
    with pytest.raises(sandpit.TraceError) as caught:
        QUESTIONS[question](trace)
    assert (caught.value.line, caught.value.byte - lines.size) == (2, bad)
    assert str(path) in str(caught.value)


GOOD = {
    "an escaped NUL": (b'"path":"a\\u0000b"', "a\0b"),
    "a lone surrogate": (b'"path":"\\ud800"', "\udced\udca0\udc80"),
    "the largest number": (b'"path":18446744073709551615', (1 << 64) - 1),
    "the smallest": (b'"path":-9223372036854775808', -(1 << 63)),
    "a negative zero": (b'"path":-0.0', -0.0),
    "as deep as it goes": (b'"path":' + b"[" * 60 + b"]" * 60, None),
    "equal names apart": (b'"path":{"a":{"a":[{"a":1},{"a":2}]}}', None),
}


@pytest.mark.parametrize("case", GOOD)
def test_what_is_odd_but_right_is_read(tmp_path, case):
    member, value = GOOD[case]
    path = Lines().write(tmp_path / "odd.sptrace", HEAD + member + b"}\n")
    found = sandpit.load(path)[1]["path"]
    assert found == (json.loads(member[7:]) if value is None else value)


def test_counts_that_overflow_are_no_more_than_wrong(tmp_path):
    lines = Lines()
    for _ in range(3):
        lines.add("call", function="f", count=(1 << 63) - 1, total=(1 << 63) - 1, self=-1)
    trace = sandpit.load(lines.write(tmp_path / "large.sptrace"))
    ((_, node),) = trace.calls().walk()
    assert node.count >= 0 and node.self_ns >= 0


@pytest.mark.parametrize("name", ["good", "signed"])
def test_any_edited_byte_is_noticed_or_read(golden, tmp_path, name):
    """Of each changed byte: `verify` notices it, and reading ends one way or the other."""
    whole = golden(name).read_bytes()
    chance = random.Random(1)
    path = tmp_path / "edited.sptrace"
    for at in chance.sample(range(len(whole)), 300):
        path.write_bytes(whole[:at] + bytes([chance.randrange(256)]) + whole[at + 1 :])
        if path.read_bytes() == whole:
            continue
        fault = None
        try:
            trace = sandpit.load(path)
            checked = trace.verify().code
            for ask in (list, lambda trace: trace.calls(), lambda trace: trace.files()):
                ask(trace)
        except sandpit.TraceError as error:
            fault = error
        assert fault is not None or checked != 0
        assert fault is None or (fault.line >= 1 and 0 <= fault.byte <= len(whole))


def spliced(golden) -> dict[str, bytes]:
    whole = golden("good").read_bytes()
    lines = whole.splitlines(keepends=True)
    return {
        "its own lines twice": b"".join(lines[:-1]) + whole,
        "two traces in one": whole + whole,
        "lines in another order": b"".join([*lines[:3], lines[4], lines[3], *lines[5:]]),
        "a line left out": b"".join([*lines[:4], *lines[5:]]),
        "another's end": b"".join(lines[:-1]) + lines[-1].replace(b'"seq"', b'"Seq"'),
    }


@pytest.mark.parametrize("case", range(5))
def test_spliced_traces_are_noticed(golden, tmp_path: Path, case):
    content = list(spliced(golden).values())[case]
    path = tmp_path / "spliced.sptrace"
    path.write_bytes(content)
    checked = sandpit.load(path).verify()
    assert checked.code == 1
    assert checked.line > 1 and 0 < checked.byte <= len(content)


@pytest.mark.parametrize("size", [0, 1, 10, 50, 137])
def test_the_first_line_cut_is_no_trace(golden, tmp_path, size):
    path = tmp_path / "cut.sptrace"
    path.write_bytes(golden("good").read_bytes()[:size])
    with pytest.raises(sandpit.TraceError):
        sandpit.load(path)
