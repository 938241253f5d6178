"""Make the damaged golden files anew from good.sptrace.

    make_golden.py

good.sptrace itself is written by the C test `trace_test_golden`, given its path.
"""

from __future__ import annotations

import string
import sys
from pathlib import Path
from typing import Callable

sys.path.insert(0, str(Path(__file__).parent))

from reference import seal, sign

GOLDEN = Path(__file__).parent / "golden"

# Of no use but here: everybody can read it.
SEED = bytes(range(32))
OTHER_SEED = bytes(range(32, 64))

Lines = list[bytes]


def changed(lines: Lines, index: int, old: bytes, new: bytes) -> Lines:
    """The lines with one text in one of them replaced."""
    assert lines[index].count(old) >= 1, (index, old)
    return [*lines[:index], lines[index].replace(old, new, 1), *lines[index + 1 :]]


def swapped(lines: Lines, index: int) -> Lines:
    return [*lines[:index], lines[index + 1], lines[index], *lines[index + 2 :]]


def renumbered(lines: Lines, index: int) -> Lines:
    """Two neighbours that changed places, with each other's numbers."""
    first, second = lines[index].split(b",", 1), lines[index + 1].split(b",", 1)
    return [
        *lines[:index],
        first[0] + b"," + second[1],
        second[0] + b"," + first[1],
        *lines[index + 2 :],
    ]


def other(lines: Lines) -> Lines:
    """Another sound trace with the same numbers and times."""
    return seal(changed(lines, 5, b"data.csv", b"DATA.CSV")).splitlines(keepends=True)


def lossy(lines: Lines) -> bytes:
    """A sound trace in which two numbers are missing, and said to be."""
    told = lines[11].replace(
        b'"reason":"ring-full"', b'"reason":"size-cap","missing":2'
    )
    assert b'"missing":2' in told
    kept = [line for line in lines if not line.startswith((b'{"seq":16', b'{"seq":17'))]
    return seal([told if line.startswith(b'{"seq":18') else line for line in kept])


def signed(lines: Lines) -> dict[str, bytes]:
    """A signed trace, and what can be made of it by who does not have the key."""

    def split(data: bytes) -> Lines:
        return data.splitlines(keepends=True)

    mine = split(sign(lines, SEED))
    theirs = split(sign(lines, OTHER_SEED))
    other = split(sign(changed(lines, 5, b"data.csv", b"DATA.CSV"), SEED))
    text = mine[-1].decode()
    at = text.index(',"signature":')
    signature = text[at : text.index(',"bytes":')].encode()
    # The last character's low bits stand for nothing; other ones mean the same to some.
    digits = (
        string.ascii_letters[26:] + string.ascii_letters[:26] + string.digits + "+/"
    )
    last = digits[digits.index(chr(signature[-4])) + 1]
    loose = signature[-5:].replace(signature[-4:-3], last.encode())
    unsigned = [*mine[:-1], mine[-1].replace(signature, b"")]
    return {
        "signed": b"".join(mine),
        "signed_cut": b"".join(mine[:-1]),
        "signed_edited": b"".join(changed(mine, 5, b"data.csv", b"date.csv")),
        "signed_resealed": seal(changed(mine, 5, b"data.csv", b"date.csv")),
        "signed_reordered": seal(renumbered(mine, 8)),
        "signed_spliced": seal([*mine[:7], *other[7:]]),
        "signed_by_another": b"".join(theirs),
        "signed_under_a_wrong_name": seal([mine[0], *theirs[1:]]),
        "signed_stripped": seal(unsigned),
        "signed_unannounced": seal([lines[0], *mine[1:]]),
        "signed_wrong_signer": seal(changed(mine, 0, b'"signer":"', b'"signer":"=')),
        "signed_wrong_base64": seal(changed(mine, 15, signature[-5:], loose)),
        "unsigned_resealed": seal([lines[0], *unsigned[1:]]),
    }


def damaged(lines: Lines) -> dict[str, bytes]:
    """Contents by file name. Indices are those of lines, from 0."""
    whole = b"".join(lines)
    join: Callable[[Lines], bytes] = b"".join
    deep = b'{"seq":1,"t":1000,"kind":"x","layer":"python","pid":1,"tid":1,"a":'
    return {
        "lossy": lossy(lines),
        "future_kind": seal(changed(lines, 10, b'"output"', b'"x_vendor"')),
        "cut_in_line": whole[: len(join(lines[:13])) + 70],
        "cut_before_end": join(lines[:-1]),
        "cut_before_checkpoint": join(lines[:4]),
        "cut_newline": whole[:-1],
        "edited_event": join(changed(lines, 5, b"data.csv", b"date.csv")),
        "edited_checkpoint_time": join(changed(lines, 12, b'"t":8000', b'"t":8001')),
        "edited_end": join(changed(lines, 15, b'"exit_code":1', b'"exit_code":0')),
        "edited_digest": join(changed(lines, 6, b'"digest":"8', b'"digest":"9')),
        "edited_json": join(changed(lines, 5, b'"op":"read"', b'"op":read"')),
        "deleted_line": join([*lines[:9], *lines[10:]]),
        "deleted_block": join([*lines[:7], *lines[13:]]),
        "doubled_line": join([*lines[:10], *lines[9:]]),
        "reordered": join(swapped(lines, 8)),
        "reordered_renumbered": join(renumbered(lines, 8)),
        "spliced": join([*lines[:7], *other(lines)[7:]]),
        "spliced_start": join([*other(lines)[:7], *lines[7:]]),
        "appended": whole + lines[5],
        "appended_half": whole + b"{",
        "no_start": join(lines[1:]),
        "second_start": join([*lines[:3], lines[0], *lines[3:]]),
        "future_format": seal(changed(lines, 0, b'"format":1', b'"format":2')),
        "empty": b"",
        "not_a_trace": b"#!/usr/bin/env python3\nprint('hello')\n",
        "nul_bytes": join(changed(lines, 9, b"late.csv", b"la\0e.csv")),
        "not_utf8": join(changed(lines, 9, b"late.csv", b"la\xffe.csv")),
        "deep": lines[0] + deep + b"[" * 5000 + b"]" * 5000 + b"}\n",
        "wrong_run": seal(changed(lines, 4, b'"f":[1,2,', b'"f":[1,')),
        "run_of_nothing": seal(changed(lines, 4, b'"n":8', b'"n":0')),
        **signed(lines),
    }


def main() -> None:
    lines = (GOLDEN / "good.sptrace").read_bytes().splitlines(keepends=True)
    for name, data in damaged(lines).items():
        (GOLDEN / f"{name}.sptrace").write_bytes(data)


if __name__ == "__main__":
    main()
