"""A reader and verifier of traces, written from docs/trace-format.md alone.

It shares nothing with the C code, so that the two check each other and the document.
"""

from __future__ import annotations

import base64
import itertools
import json
import re
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import ed25519

SOUND, ALTERED, UNREADABLE, CUT = range(4)

HEAD = re.compile(
    rb'\{"seq":(0|[1-9]\d*),"t":(0|[1-9]\d*),"kind":"([a-z0-9_-]{1,31})",'
    rb'"layer":"([a-z0-9_-]{1,31})","pid":(-?\d+),"tid":(-?\d+)[,}]'
)
SEAL = re.compile(
    rb',"bytes":(\d+),"digest":"([0-9a-f]{64})","chain":"([0-9a-f]{64})"\}\Z'
)

SIGNATURE = re.compile(rb',"signature":"([A-Za-z0-9+/=]{88})"\Z')
PURPOSE = b"sandpit-trace-v1"

STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
BRACKET = re.compile(rb"[][{}]")
DEPTH_MAX = 64

Event = dict[str, Any]


def digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=32).digest()


class Chain:
    """The digests of the blocks so far."""

    def __init__(self) -> None:
        self.chain = bytes(32)
        self.start = 0

    def peek(self, data: bytes, end: int) -> bytes:
        """What the chain would be if the block ended there."""
        return digest(self.chain + digest(data[self.start : end]))

    def close(self, data: bytes, end: int) -> tuple[str, str]:
        block = digest(data[self.start : end])
        self.chain = digest(self.chain + block)
        self.start = end
        return block.hex(), self.chain.hex()


def seal(lines: list[bytes]) -> bytes:
    """Join lines, giving each checkpoint and end new bytes, digest and chain."""
    data = b""
    chain = Chain()
    for line in lines:
        line = line.rstrip(b"\n")
        if HEAD.match(line)[3] not in (b"checkpoint", b"end"):
            data += line + b"\n"
            continue
        data += SEAL.sub(b"", line).removesuffix(b"}")
        end = len(data)
        block, chained = chain.close(data, end)
        data += f',"bytes":{end},"digest":"{block}","chain":"{chained}"}}\n'.encode()
    return data


def depth(line: bytes) -> int:
    """How deep the arrays and objects of a line nest."""
    levels = itertools.accumulate(
        1 if bracket in b"[{" else -1
        for bracket in BRACKET.findall(STRING.sub(b"", line))
    )
    return max(levels, default=0)


def sign(lines: list[bytes], seed: bytes) -> bytes:
    """Join lines as `seal` does, signed: the start and the end are given what belongs."""
    key = base64.b64encode(ed25519.public(seed)).decode()
    start = lines[0].replace(b'"format":1', f'"format":1,"signer":"{key}"'.encode())
    data = seal([start, *lines[1:]])
    chain = Chain()
    *before, last = data.splitlines()
    for line in before:
        tail = SEAL.search(line)
        if tail is not None:
            chain.close(data, int(tail[1]))
    whole = data[: -1 - len(SEAL.search(last)[0])]
    signed = ed25519.sign(seed, PURPOSE + chain.peek(whole, len(whole)))
    whole += f',"signature":"{base64.b64encode(signed).decode()}"'.encode()
    end = len(whole)
    block, chained = chain.close(whole, end)
    return whole + f',"bytes":{end},"digest":"{block}","chain":"{chained}"}}\n'.encode()


def unbase64(text: object, size: int) -> bytes | None:
    """So many bytes, from the one text that stands for them."""
    try:
        data = base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except ValueError:
        return None
    return (
        data if len(data) == size and base64.b64encode(data).decode() == text else None
    )


def verify(path: Path, key: bytes | None = None) -> int:
    """What `sandpit verify` must exit with; with `--key`, if `key` is given."""
    data = path.read_bytes()
    code = verify_any(data)
    if key is None or code in (ALTERED, UNREADABLE):
        return code
    signer = json.loads(data[: data.index(b"\n")]).get("signer")
    return SOUND if code == SOUND and unbase64(signer, 32) == key else ALTERED


def verify_any(data: bytes) -> int:
    """The same where any key will do, or none."""
    signer: bytes | None = None
    if not data.startswith(b'{"seq":0,"t":') and b'"kind":"start"' not in data[:256]:
        return UNREADABLE
    whole, _, rest = data.rpartition(b"\n")
    chain = Chain()
    offset = seq = time = 0
    ended = False
    for number, line in enumerate(whole.split(b"\n") if whole else []):
        head = HEAD.match(line)
        if depth(line) > DEPTH_MAX:
            return ALTERED
        try:
            event = json.loads(line)
        except ValueError:
            return ALTERED
        if ended or head is None or (event["kind"] == "start") != (number == 0):
            return ALTERED
        if number == 0 and event["format"] != 1:
            return UNREADABLE
        if number == 0 and "signer" in event:
            signer = unbase64(event["signer"], 32)
            if signer is None:
                return ALTERED
        if event["kind"] == "run" and not 1 <= event["n"] <= 4096:
            return ALTERED
        if event["kind"] == "lost":
            seq += event.get("missing", 0)
        if event["seq"] != seq or event["t"] < time:
            return ALTERED
        seq += event["n"] if event["kind"] == "run" else 1
        time = event["t"]
        if event["kind"] in ("checkpoint", "end"):
            tail = SEAL.search(line)
            if tail is None or int(tail[1]) != offset + tail.start():
                return ALTERED
            before = line[: tail.start()]
            found = SIGNATURE.search(before) if event["kind"] == "end" else None
            signed = chain.peek(data, offset + found.start()) if found else b""
            if chain.close(data, int(tail[1])) != (tail[2].decode(), tail[3].decode()):
                return ALTERED
            ended = event["kind"] == "end"
            if ended and (found is None) != (signer is None):
                return ALTERED
            if found and not ed25519.verify(
                signer or b"",
                PURPOSE + signed,
                unbase64(found[1].decode(), 64) or b"",
            ):
                return ALTERED
        offset += len(line) + 1
    if ended:
        return ALTERED if rest else SOUND
    return CUT


def events(path: Path) -> Iterator[Event]:
    """Every event, runs taken apart."""
    functions: dict[int, Event] = {}
    for line in path.read_bytes().split(b"\n")[:-1]:
        event = json.loads(line)
        if event["kind"] == "function":
            functions[event["id"]] = event
        if event["kind"] == "run":
            yield from expand(event, functions)
        else:
            yield event


def expand(run: Event, functions: dict[int, Event]) -> Iterator[Event]:
    """The calls and returns of a run."""
    time = run["t"]
    for i, (number, dt) in enumerate(zip(run["f"], run["dt"])):
        time += dt
        event = {
            "seq": run["seq"] + i,
            "t": time,
            "kind": "return" if number < 0 else "call",
            "layer": run["layer"],
            "pid": run["pid"],
            "tid": run["tid"],
            "id": abs(number),
        }
        function = functions.get(abs(number))
        if function is not None:
            event["function"] = function["name"]
            event.update(
                {k: function[k] for k in ("module", "file", "line") if k in function}
            )
            if function.get("native"):
                event["native"] = True
        for key in ("raised", "resumed"):
            if i in run.get(key, ()):
                event[key] = True
        yield event
