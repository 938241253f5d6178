"""Signed traces: whoever lacks the key can neither change one nor make one."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from pathlib import Path

import ed25519
import make_golden
import pytest
import reference
import sandpit

PUBLIC = ed25519.public(make_golden.SEED)
SIGNED = sorted(path.stem for path in make_golden.GOLDEN.glob("*signed*.sptrace"))

# RFC 8032, section 7.1: seed, public key, message, signature
VECTORS = [
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
        "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
]


@pytest.fixture
def public(tmp_path: Path) -> Path:
    """The public key of the golden traces, as a file."""
    path = tmp_path / "team.pub"
    path.write_text(
        f"# of tests\n\nsandpit-public-key-v1 {base64.b64encode(PUBLIC).decode()}\n"
    )
    return path


@pytest.mark.parametrize(("seed", "key", "message", "signature"), VECTORS)
def test_reference_signs_as_the_standard_says(seed, key, message, signature):
    told = [bytes.fromhex(text) for text in (seed, key, message, signature)]
    assert ed25519.public(told[0]) == told[1]
    assert ed25519.sign(told[0], told[2]) == told[3]
    assert ed25519.verify(*told[1:])
    assert not ed25519.verify(told[1], told[2] + b"x", told[3])


@pytest.mark.parametrize("name", [*SIGNED, "good", "cut_before_end", "edited_event"])
def test_only_the_whole_signed_trace_has_the_key(golden, reader, public, name):
    done = reader("verify", "--key", public, golden(name))
    assert done.returncode == (0 if name == "signed" else 1)
    assert reference.verify(golden(name), PUBLIC) == done.returncode
    checked = sandpit.load(golden(name)).verify(key=public)
    assert checked.code == done.returncode


def test_verify_says_by_which_key(golden, reader, public):
    fingerprint = sandpit.load(golden("signed")).verify().signer
    required = reader("verify", "--key", public, golden("signed")).stdout
    assert f"signed by the key {fingerprint}, as asked for" in required
    shown = reader("verify", golden("signed")).stdout
    assert f"signed by the key {fingerprint}, which proves nothing about who" in shown
    other = reader("verify", "--key", public, golden("signed_by_another")).stdout
    assert f"by the key {fingerprint} is asked for" in other
    cut = reader("verify", golden("signed_cut")).stdout
    assert f"nor the signature by the key {fingerprint}" in cut
    assert "signed" not in reader("verify", golden("good")).stdout


def test_verify_json_tells_of_the_signature(golden, reader, public):
    def told(name, *options):
        done = reader("verify", "--json", *options, golden(name))
        answer = json.loads(done.stdout)
        return answer["result"], answer["signature"], answer["signer"] is not None

    assert told("signed") == ("sound", "valid", True)
    assert told("good") == ("sound", "none", False)
    assert told("good", "--key", public) == ("unsigned", "none", False)
    assert told("signed_by_another", "--key", public) == ("unsigned", "valid", True)
    assert told("signed_cut") == ("cut", "unreached", True)
    assert told("signed_cut", "--key", public) == ("unsigned", "unreached", True)
    assert told("signed_resealed") == ("altered", "wrong", True)
    assert told("signed_resealed", "--key", public) == ("altered", "wrong", True)


def test_every_trace_of_several_must_have_the_key(golden, reader, public):
    done = reader("verify", "-q", "--key", public, golden("signed"), golden("good"))
    assert done.returncode == 1


def test_signed_trace_from_standard_input(golden, reader, public):
    with open(golden("signed"), "rb") as file:
        done = reader("verify", "--key", public, "-", stdin=file)
    assert done.returncode == 0


def test_readers_take_signed_traces_as_they_do_others(golden, reader):
    trace = sandpit.load(golden("signed"))
    assert base64.b64decode(trace[0]["signer"]) == PUBLIC
    assert len(base64.b64decode(trace[-1]["signature"])) == 64
    assert [e["kind"] for e in trace] == [
        e["kind"] for e in sandpit.load(golden("good"))
    ]
    assert "signed by the key" in reader("show", golden("signed")).stdout


def test_any_changed_byte_of_a_signed_trace_is_noticed(golden, public, tmp_path):
    data = golden("signed").read_bytes()
    path = tmp_path / "changed.sptrace"
    path.write_bytes(data)
    verify = sandpit._trace._native.verify
    with open(path, "r+b", buffering=0) as file:
        for i, byte in enumerate(data):
            os.pwrite(file.fileno(), bytes([byte ^ (1 << i % 8)]), i)
            assert verify(file.fileno(), public)[0] in (1, 2), i
            os.pwrite(file.fileno(), bytes([byte]), i)
        assert verify(file.fileno(), public)[0] == 0
        for size in range(len(data) - 1, -1, -1):
            os.truncate(path, size)
            assert verify(file.fileno(), public)[0] in (1, 2), size


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is no public key"),
        ("sandpit-public-key-v1 short=\n", "is no public key"),
        ("sandpit-public-key-v2 " + "A" * 43 + "=\n", "is no public key"),
        (("sandpit-public-key-v1 " + "A" * 43 + "=\n") * 2, "is no public key"),
        ("sandpit-private-key-v1 " + "A" * 43 + "=\n", "is a private key"),
        ("\0" * 5000, "is no public key"),
    ],
)
def test_verify_refuses_what_is_no_public_key(golden, reader, tmp_path, text, says):
    path = tmp_path / "bad.pub"
    path.write_text(text)
    done = reader("verify", "--key", path, golden("signed"))
    assert done.returncode == 2
    assert says in done.stderr and done.stderr.count("\n") == 1
    assert "AAAA" not in done.stderr
    with pytest.raises(sandpit.UsageError, match=says):
        sandpit.load(golden("signed")).verify(key=path)


@pytest.mark.parametrize("path", ["/nowhere/team.pub", "/", "/dev/null"])
def test_verify_refuses_a_key_that_cannot_be_read(golden, reader, path):
    done = reader("verify", "--key", path, golden("signed"))
    assert done.returncode == 2
    assert path in done.stderr


BY_HAND = r"""
set -e
trace=$1
line() { grep "\"kind\":\"$1\"" "$trace" | tail -n 1; }
value() { line "$1" | grep -o "\"$2\":[^,}]*" | tail -n 1 | cut -d: -f2- | tr -d '"'; }
before=$(value checkpoint bytes)
end=$(($(value end bytes) - 103))
digest=$(tail -c +$((before + 1)) "$trace" | head -c $((end - before)) | b2sum -l 256 | cut -d' ' -f1)
chain=$(printf '%s%s' "$(value checkpoint chain)" "$digest" | xxd -r -p | b2sum -l 256 | cut -d' ' -f1)
{ printf 'sandpit-trace-v1'; printf '%s' "$chain" | xxd -r -p; } > message
value end signature | base64 -d > signature
{ printf '302a300506032b6570032100' | xxd -r -p; value start signer | base64 -d; } > key.der
openssl pkeyutl -verify -pubin -keyform DER -inkey key.der -rawin -in message -sigfile signature
"""


@pytest.mark.requires("b2sum")
@pytest.mark.requires("openssl")
@pytest.mark.requires("xxd")
@pytest.mark.parametrize(
    ("name", "holds"), [("signed", True), ("signed_resealed", False)]
)
def test_a_signature_is_checked_by_hand(golden, tmp_path, name, holds):
    """With the commands that the document gives."""
    document = (Path(__file__).parents[2] / "docs/trace-format.md").read_text()
    for line in BY_HAND.strip().splitlines()[2:]:
        assert line in document, line
    done = subprocess.run(
        ["sh", "-c", BY_HAND, "sh", golden(name)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) == holds, done
