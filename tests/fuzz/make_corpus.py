"""Write the corpora of fuzz_ring and fuzz_notify again.

    make_corpus.py [FOLDER]

Their inputs are bytes; what they mean stands here. Kinds, fields and messages are counted as
in src/event/*.def and src/ring/ring.h; numbers of system calls are x86-64's. Files
that are named after a cause were found by fuzzing and are not written here.
"""

from __future__ import annotations

import re
import struct
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
EVENT = HERE.parents[1] / "src" / "event"


def numbers(name: str, macro: str) -> dict[str, int]:
    """The enum that a list of macros makes, from 0."""
    return {
        found: number
        for number, found in enumerate(
            re.findall(rf"^{macro}\((\w+),", (EVENT / name).read_text(), re.M)
        )
    }


KINDS = numbers("kinds.def", "SP_KIND")
FIELDS = {name: n + 1 for name, n in numbers("fields.def", "SP_FIELD").items()}
TIME, THREAD, EVENT_MESSAGE, TEXT, FOLD, CALL, TAMPER = range(1, 8)
RETURN, RESUME, RAISED = 1 << 31, 1 << 30, 1 << 29


def fields(**values: str | bytes | int) -> bytes:
    out = b""
    for name, value in values.items():
        if isinstance(value, int):
            value = struct.pack("<q", value)
        elif isinstance(value, str):
            value = value.encode()
        out += struct.pack("<HH", FIELDS[name.upper()], len(value)) + value
    return out


def event(kind: str, flags: int = 0, tid: int = 100, ticks: int = 1000,
          **values: str | bytes | int) -> bytes:  # fmt: skip
    body = fields(**values)
    return struct.pack("<QIHHII", ticks, tid, KINDS[kind], flags, len(body), 0) + body


# ---- rings: steps as in fuzz_ring.c ------------------------------------------------------

(WORDS, MESSAGE, SIDE, FUNCTION, PUT_FOLD, SLOT, ASK, POKE, CURSOR, DRAIN, TAKE, QUESTION,
 LOOKUP, DENY, FORK, FINISH) = range(16)  # fmt: skip
OFF, FIRST, FOLDED, ALL, LITTLE_ROOM, CAPPED = 0, 1, 2, 3, 4, 8


def words(*values: int) -> bytes:
    return bytes([WORDS, len(values)]) + struct.pack(f"<{len(values)}Q", *values)


def call_word(what: int, ticks: int = 10) -> int:
    return what << 32 | ticks


def message(kind: int, body: bytes) -> bytes:
    return struct.pack("<BBH", MESSAGE, kind, len(body)) + body


def side(body: bytes) -> bytes:
    return struct.pack("<BH", SIDE, len(body)) + body


def function(number: int, name: str, module: str = "m", file: str = "/w/job.py",
             native: int = 0) -> bytes:  # fmt: skip
    text = (name + module + file).encode()
    head = struct.pack(
        "<IHHHBB", 10 + number, len(name), len(module), len(file), native, 1
    )
    return (
        struct.pack("<BHH", FUNCTION, number, 64 * number % 65521)
        + head
        + bytes([len(text)])
        + text
    )


def fold(place: int, caller: int, callee: int, count: int, resumes: int = 0) -> bytes:
    return bytes([PUT_FOLD, place]) + struct.pack(
        "<IIQQQQ", caller, callee, count, resumes, 5000, 4000
    )


def slot(place: int, act: int, body: bytes, serial: int = 2, tid: int = 100) -> bytes:
    head = struct.pack("<IIHHI", serial, tid, act, len(body), 0)
    return bytes([SLOT, place]) + head + bytes([len(body)]) + body


def cursor(which: int, value: int) -> bytes:
    return bytes([CURSOR, which]) + struct.pack("<Q", value)


def drain(most: int = 0) -> bytes:
    return bytes([DRAIN, most])


def rings() -> dict[str, bytes]:
    functions = (
        function(1, "outer")
        + function(2, "f.<locals>.inner")
        + function(3, "print", "builtins", "", native=1)
    )
    run = words(
        call_word(1), call_word(2), call_word(2 | RETURN | RESUME), call_word(2 | RESUME),
        call_word(2 | RETURN | RAISED), call_word(1 | RETURN),
    )  # fmt: skip
    opened = event(
        "OPEN", path="/w/data.csv", op="read", at_file="/w/job.py", at_line=3
    )
    text = message(TEXT, struct.pack("<Q", 8) + b"x = 1\n\xc3\xa9")
    code = message(
        EVENT_MESSAGE, event("CODE", 1, event="exec", file="<string>", size=8)
    )
    one = struct.pack("<QIIIIII", 900, 101, 2, 1, 1, 0, 0)
    act = fields(path="/w/out.txt", op="write", at_file="/w/job.py", at_line=7,
                 stack="/w/job.py:7 main\n/w/job.py:9 <module>")  # fmt: skip
    return {
        "runs": bytes([ALL]) + functions + message(THREAD, struct.pack("<Q", 101)) + run
        + message(TIME, struct.pack("<Q", 1 << 40)) + run + drain(),
        "runs_little_room": bytes([ALL | LITTLE_ROOM]) + functions + function(5000, "far")
        + words(call_word(1), call_word(5000), call_word(5000 | RETURN)) + drain(),
        "run_of_unknown": bytes([ALL]) + words(call_word(7), call_word(0x1FFFFFFF)) + drain(),
        "calls": bytes([FOLDED]) + functions + message(CALL, one)
        + message(CALL, struct.pack("<QIIIIII", 950, 0, 3, 2, 2, 4, 0))
        + fold(0, 1, 2, 7, 3) + fold(1, 0, 1, 0) + fold(2, 9, 9, 1) + drain(),
        "fold_moved": bytes([FOLDED]) + functions
        + message(FOLD, struct.pack("<IIQQQQ", 1, 2, 2**63, 0, 2**64 - 1, 1)),
        "events": bytes([FIRST]) + message(EVENT_MESSAGE, opened)
        + message(EVENT_MESSAGE, event("IMPORT", module="json", direct=1, duration=5))
        + message(EVENT_MESSAGE, event("EXCEPTION", type="E", message="\u2028\x1b[31m",
                                       ended=1, link="cause")) + drain(),
        "event_of_kernel": bytes([OFF]) + message(EVENT_MESSAGE, event("FILE", path="/w"))
        + message(EVENT_MESSAGE, opened[:30]) + message(9, opened) + drain(),
        "source": bytes([FOLDED]) + text + text + code + code + drain(),
        "side": bytes([FOLDED]) + side(event("NATIVE", 2, ticks=10, library="/l.so"))
        + message(EVENT_MESSAGE, opened) + side(event("THREAD", ticks=2000, op="start"))
        + drain(3) + drain(),
        "lost": bytes([FOLDED]) + message(EVENT_MESSAGE, opened)
        + cursor(4, 5) + drain() + cursor(4, 3) + drain() + cursor(4, 2**64 - 1)
        + message(EVENT_MESSAGE, opened) + drain() + cursor(3, 2**64 - 1) + cursor(4, 1),
        "tamper": bytes([FOLDED]) + message(TAMPER, b"sys.setprofile(None)\0\0\0\0") + drain(),
        "cursor": bytes([FOLDED]) + message(EVENT_MESSAGE, opened) + cursor(0, 1 << 50)
        + drain() + cursor(1, 2**64 - 1) + drain() + cursor(0, 0) + drain(),
        "acts": bytes([FOLDED]) + slot(0, 1, act) + slot(1, 1, act, serial=4)
        + slot(2, 6, fields(host="a.example.com", port=443), serial=6)
        + struct.pack("<BIB", TAKE, 100, 1) + struct.pack("<BIB", TAKE, 0, 6)
        + struct.pack("<BBI", LOOKUP, 2, 100) + struct.pack("<BBI", LOOKUP, 200, 100),
        "question": bytes([FOLDED, ASK]) + struct.pack("<H", len(opened)) + opened
        + bytes([QUESTION]) + struct.pack("<BIBQ", DENY, 100, 13, 77),
        "forked": bytes([ALL]) + functions + run + drain() + bytes([FORK]) + functions + run
        + drain() + bytes([FINISH]) + run + drain() + bytes([FORK]),
        "capped": bytes([ALL | CAPPED]) + functions + (run + drain()) * 100,
        "names": bytes([ALL]) + function(1, "\x00\x1b]0;x\x07") + function(2, "n" * 200)
        + run + drain() + struct.pack("<BIB", POKE, 0, 64) + b"\xff" * 64 + run + drain(),
    }  # fmt: skip


# ---- notifications: as in fuzz_notify.c --------------------------------------------------

BASE = 0x100000
CLOSED, OPEN, JUDGED, STOP = range(4)
SCOPED, FRAMES, ACT, ASKED, STARTED = 4, 8, 16, 32, 64
AGENT = 0xFFFF  # SP_CALL_NR
CWD, SELF, NONE, END = (2, 0), (4, 0), (7, 0), (6, 8)
PIPE, UNIX, UDP4, TCP6, FOLDER, MEMORY = ((3, n) for n in range(6))


def at(offset: int) -> tuple[int, int]:
    """A pointer into the memory."""
    return (1, offset)


def call(nr: int, *arguments: int | tuple[int, int]) -> bytes:
    pairs = [a if isinstance(a, tuple) else (0, a & 0xFFFFFFFF) for a in arguments]
    pairs += [(0, 0)] * (6 - len(pairs))
    return struct.pack("<H", nr) + b"".join(struct.pack("<BI", *pair) for pair in pairs)


def notified(how: int, calls: list[bytes], memory: bytes, frames: bytes = b"",
             act: tuple[int, bytes] | None = None, ask: bytes | None = None) -> bytes:  # fmt: skip
    luck = 0b11100100  # of sends and connections, in turn
    out = bytes([how, len(calls) - 1, luck]) + b"".join(calls)
    if how & FRAMES:
        out += frames
    if act is not None:
        out += struct.pack("<BH", act[0], len(act[1])) + act[1]
    if ask is not None:
        out += struct.pack("<H", len(ask)) + ask
    return out + memory


def laid(pieces: dict[int, bytes]) -> bytes:
    """Memory with pieces at their offsets."""
    out = bytearray(max(offset + len(piece) for offset, piece in pieces.items()))
    for offset, piece in pieces.items():
        out[offset : offset + len(piece)] = piece
    return bytes(out)


def inet(address: bytes, port: int = 80) -> bytes:
    return struct.pack("<H", 2) + struct.pack(">H", port) + address + bytes(8)


def inet6(address: bytes, port: int = 443) -> bytes:
    return struct.pack("<H", 10) + struct.pack(">HI", port, 0) + address + bytes(4)


def message_header(name: int, name_size: int, parts: int, count: int, control: int = 0,
                   control_size: int = 0) -> bytes:  # fmt: skip
    return struct.pack(
        "<QIIQQQQii", name, name_size, 0, parts, count, control, control_size, 0, 0
    )


def frames_of_311() -> tuple[bytes, bytes]:
    """How frames lie, and a thread in memory with one of them."""
    layout = struct.pack(
        "<IIQ23H2x", 0x030B07F0, 1, BASE + 0x400, 8, 0x100, 0, 16, 8, 0x18, 0x10, 0x20, 0x28,
        8, 0x10, 0, 0x18, 0x20, 0x30, 0x20, 0x10, 0x10, 0x18, 0x30, 0x48, 0, 0,
    )  # fmt: skip
    text = (
        struct.pack("<QQQI", 1, 0, 9, 1 << 2 | 1 << 5 | 1 << 6).ljust(0x30, b"\0")
        + b"/w/job.py"
    )
    table = struct.pack("<QQQ4x", 1, 0, 4).ljust(0x20, b"\0") + b"\xf0\x01\x80\x00"
    thread = laid({8: bytes(8), 16: struct.pack("<Q", BASE + 0x500)})
    frame = laid({0x10: struct.pack("<Q", BASE + 0x700), 0x18: bytes(8),
                  0x20: struct.pack("<Q", BASE + 0x732)})  # fmt: skip
    code = laid({8: struct.pack("<QQ", BASE + 0x800, BASE + 0x800), 0x18: struct.pack("<I", 3),
                 0x20: struct.pack("<Q", BASE + 0x880)})  # fmt: skip
    memory = laid({0: b"/etc/shadow\0", 0x100: thread, 0x400: struct.pack("<Q", BASE + 0x100),
                   0x500: laid({8: struct.pack("<Q", BASE + 0x600)}), 0x600: frame,
                   0x700: code, 0x800: text, 0x880: table, 0xA00: b"\0"})  # fmt: skip
    return layout, memory


def notifications() -> dict[str, bytes]:
    layout, frames = frames_of_311()
    paths = laid({0: b"/etc/shadow\0", 0x40: b"/usr/is/not/there/a\0", 0x80: b"..//x/./\0",
                  0xC0: b"\0", 0x100: b"/proc/self/fd/0\0", 0x140: b"/proc/self/root/etc\0",
                  0x180: b"/" + b"a" * 255 + b"\0", 0x300: b"x" * 5000})  # fmt: skip
    argv = laid({0: b"/usr/bin/env\0", 0x40: struct.pack("<4Q", BASE, BASE + 0x80, 1, 0),
                 0x80: b"\xff\xfe-c\0"})  # fmt: skip
    home = b"\x0a\x00\x00\x01"
    cmsg = struct.pack("<Qiii4x", 20, 1, 1, 0) + struct.pack("<Qiii4x", 20, 0, 8, 0)
    letters = laid({0: message_header(BASE + 0x100, 16, BASE + 0x200, 2, BASE + 0x300, 48),
                    0x80: message_header(BASE + 0x140, 28, BASE + 0x200, 1),
                    0x100: inet(home), 0x140: inet6(b"\xfd" + bytes(14) + b"\1"),
                    0x180: struct.pack("<H", 1) + b"\0abstract",
                    0x1A0: struct.pack("<H", 1) + b"/usr/is/not/there/s\0",
                    0x200: struct.pack("<QQQQ", BASE, 8, BASE + 0xFFF0, 1 << 40),
                    0x300: cmsg, 0x400: b"\x18\0\0\0\x14\0" + bytes(20)})  # fmt: skip
    named = struct.pack("<HHI16s", 2, 0, 0, home) + struct.pack(
        "<HHI16s", 10, 0, 0, b"\xfd" + bytes(15)
    )
    question = laid({0: b"a.example.com\0", 0x100: struct.pack("<ii", 0, 32),
                     0x3000: struct.pack("<iI256s", 0, 2, b"a.example.com") + named})  # fmt: skip
    ask = event("IMPORT", module="requests", direct=1, at_file="/w/job.py", at_line=1)
    act = fields(path="/etc/shadow", op="read", at_file="/w/job.py", at_line=7,
                 stack="/w/job.py:7 main\n/w/job.py:9 <module>")  # fmt: skip
    opens = [call(257, CWD, at(0), 0), call(257, CWD, at(0x40), 0o1102, 0o644),
             call(257, FOLDER, at(0x80), 0o100000), call(2, at(0x100), 2),
             call(85, at(0x180), 0o4755), call(257, CWD, at(0x300), 0),
             call(257, CWD, END, 0), call(257, 77, at(0xC0), 0)]  # fmt: skip
    changes = [call(83, at(0x40), 0o777), call(82, at(0), at(0x40)), call(87, at(0x140)),
               call(316, CWD, at(0), FOLDER, at(0x80), 2), call(265, MEMORY, at(0xC0), CWD,
               at(0x40), 0x1000), call(88, at(0x300), at(0x40)), call(133, at(0x40), 0o20666),
               call(76, at(0x40), 5)]  # fmt: skip
    attributes = [
        call(90, at(0), 0o6777),
        call(280, CWD, at(0), at(0x400), 0),
        call(280, MEMORY, NONE, NONE, 0),
        call(188, at(0), at(0x40), at(0x80), 8, 0),
        call(93, MEMORY, 0, 0),
        call(197, at(0), at(0x300)),
        call(235, at(0), at(0x3F0)),
        call(452, FOLDER, at(0xC0), 0o777, 0x1000),
    ]
    network = [
        call(42, UDP4, at(0x100), 16),
        call(42, TCP6, at(0x140), 28),
        call(42, UNIX, at(0x180), 11),
        call(49, UNIX, at(0x1A0), 22),
        call(44, UDP4, at(0), 8, 0, at(0x100), 16),
        call(46, UDP4, at(0), 0),
        call(307, UDP4, at(0), 2, 0),
        call(50, TCP6, 5),
    ]
    others = [
        call(41, 2, 2, 0),
        call(53, 1, 1, 0, at(0)),
        call(54, TCP6, 41, 26, at(0), 4),
        call(62, SELF, 9),
        call(234, SELF, SELF, 0),
        call(302, SELF, 7, at(0), at(16)),
        call(16, PIPE, 0x5412, at(0)),
        call(72, PIPE, 8, SELF),
    ]
    tasks = [
        call(56, 0x11),
        call(157, 15, at(0)),
        call(9, NONE, 4096, 5, 2, MEMORY),
        call(10, at(0), 4096, 5),
        call(435, at(0), 88),
        call(101, 16, SELF),
        call(203, SELF, 8, at(0)),
        call(231, 3),
    ]
    agents = [
        call(AGENT, 4),
        call(AGENT, 6, at(0), at(0x1000)),
        call(AGENT, 2),
        call(AGENT, 3),
        call(AGENT, 5, 0, 1),
        call(AGENT, 1, 1, 0x030B07F0, 1),
        call(AGENT, 6, at(0), END),
        call(AGENT, 99),
    ]
    out = {}
    for name, policy in (
        ("closed", CLOSED),
        ("open", OPEN),
        ("judged", JUDGED),
        ("stop", STOP),
    ):
        out[f"opens_{name}"] = notified(policy, opens, paths)
        out[f"changes_{name}"] = notified(policy, changes, paths)
        out[f"attributes_{name}"] = notified(policy | STARTED, attributes, paths)
        out[f"network_{name}"] = notified(policy, network, letters)
        out[f"others_{name}"] = notified(policy | SCOPED, others, letters)
        out[f"tasks_{name}"] = notified(policy, tasks, letters)
        out[f"exec_{name}"] = notified(
            policy, [call(59, at(0), at(0x40), NONE), call(322, CWD, at(0), at(0x40), NONE, 0),
                     call(322, MEMORY, at(0x60), at(0x40), NONE, 0x1000), call(231, 0)], argv,
        )  # fmt: skip
        out[f"agents_{name}"] = notified(policy | ASKED, agents, question, ask=ask)
    out["act"] = notified(CLOSED | ACT, opens, paths, act=(1, act))
    out["walk"] = notified(CLOSED | FRAMES, opens[:2], frames, frames=layout)
    return out


def main() -> int:
    to = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "corpus"
    for name, files in (("ring", rings()), ("notify", notifications())):
        (to / name).mkdir(parents=True, exist_ok=True)
        for file, data in files.items():
            (to / name / file).write_bytes(data)
    return 0


if __name__ == "__main__":
    sys.exit(main())
