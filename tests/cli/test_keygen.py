"""`keygen`, `run --sign` and what they refuse."""

from __future__ import annotations

import base64
import os
import re
import stat
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "format"))

import ed25519
import reference

runs = pytest.mark.requires("program")


@pytest.fixture
def keys(sandpit, tmp_path):
    """A pair of keys, `team`."""
    done = sandpit("keygen", "team")
    assert done.returncode == 0, done.stderr
    return tmp_path


def half(path: Path, word: str) -> bytes:
    """The one key of a key file, by the document alone."""
    lines = [
        line.split()
        for line in path.read_text().splitlines()
        if line.strip() and not line.startswith("#")
    ]
    assert [line[0] for line in lines] == [word]
    return base64.b64decode(lines[0][1], validate=True)


def test_keygen_writes_a_pair(keys):
    seed = half(keys / "team.key", "sandpit-private-key-v1")
    assert ed25519.public(seed) == half(keys / "team.pub", "sandpit-public-key-v1")
    assert sorted(os.listdir(keys)) == ["team.key", "team.pub"]
    assert stat.S_IMODE((keys / "team.key").stat().st_mode) == 0o600


def test_keygen_mode_is_not_the_masks(sandpit, tmp_path):
    old = os.umask(0)
    try:
        sandpit("keygen", "open")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "open.key").stat().st_mode) == 0o600


@pytest.mark.parametrize("there", ["team.key", "team.pub"])
def test_keygen_replaces_nothing(sandpit, tmp_path, there):
    (tmp_path / there).write_text("something")
    done = sandpit("keygen", "team")
    assert done.returncode == 2
    assert "never overwritten" in done.stderr
    assert os.listdir(tmp_path) == [there]
    assert (tmp_path / there).read_text() == "something"


def test_keygen_follows_no_link(sandpit, tmp_path):
    (tmp_path / "team.key").symlink_to(tmp_path / "elsewhere")
    assert sandpit("keygen", "team").returncode == 2
    assert os.listdir(tmp_path) == ["team.key"]


@pytest.mark.parametrize("prefix", ["", "/", "nowhere/team", "x" * 5000])
def test_keygen_refuses_bad_prefixes(sandpit, tmp_path, prefix):
    done = sandpit("keygen", prefix)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("arguments", [[], ["one", "two"]])
def test_keygen_takes_one_prefix(sandpit, tmp_path, arguments):
    assert sandpit("keygen", *arguments).returncode == 2
    assert os.listdir(tmp_path) == []


@runs
def test_signed_run_verifies(sandpit, keys):
    done = sandpit("run", "--sign", "team.key", "-c", "print(6 * 7)")
    assert (done.returncode, done.stdout) == (0, "42\n")
    checked = sandpit("verify", "--key", "team.pub", "sandpit.sptrace")
    assert checked.returncode == 0, checked.stdout
    fingerprint = re.search("fingerprint (\\w+)", (keys / "team.pub").read_text())
    assert fingerprint[1] in checked.stdout
    public = half(keys / "team.pub", "sandpit-public-key-v1")
    assert reference.verify(keys / "sandpit.sptrace", public) == 0
    seed = half(keys / "team.key", "sandpit-private-key-v1")
    trace = (keys / "sandpit.sptrace").read_bytes()
    assert seed not in trace and base64.b64encode(seed) not in trace


@runs
def test_other_key_does_not_verify(sandpit, keys):
    sandpit("keygen", "other")
    sandpit("run", "--sign", "other.key", "-c", "pass")
    assert sandpit("verify", "sandpit.sptrace").returncode == 0
    assert sandpit("verify", "--key", "team.pub", "sandpit.sptrace").returncode == 1


@runs
def test_two_signed_traces_are_not_spliced(sandpit, keys):
    """Each is signed by the key; parts of both are not, however they are chained anew."""
    for name in ("one", "two"):
        sandpit("run", "--sign", "team.key", "-o", f"{name}.sptrace", "-c", "pass")
    one, two = (
        (keys / f"{name}.sptrace").read_bytes().splitlines(keepends=True)
        for name in ("one", "two")
    )
    ends = (
        [
            next(i for i, line in enumerate(lines) if b'"kind":"checkpoint"' in line)
            for lines in (one, two)
        ]
        if any(b'"kind":"checkpoint"' in line for line in one)
        else [len(one) - 1] * 2
    )
    (keys / "spliced.sptrace").write_bytes(
        reference.seal([*one[: ends[0]], *two[ends[0] :]])
    )
    assert sandpit("verify", "--key", "team.pub", "spliced.sptrace").returncode == 1


def refused(sandpit, *options):
    done = sandpit("run", *options, "-c", "open('ran', 'w')")
    assert done.returncode == 125
    assert done.stderr.count("\n") == 1
    return done.stderr


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644])
def test_run_refuses_a_key_that_others_can_get_at(sandpit, keys, mode):
    (keys / "team.key").chmod(mode)
    assert "chmod 600" in refused(sandpit, "--sign", "team.key")
    assert sorted(os.listdir(keys)) == ["team.key", "team.pub"]


def test_run_refuses_a_public_key(sandpit, keys):
    assert "is a public key, which signs nothing" in refused(
        sandpit, "--sign", "team.pub"
    )


def test_run_refuses_a_key_of_two_names(sandpit, keys):
    os.link(keys / "team.key", keys / "again")
    assert "hard link" in refused(sandpit, "--sign", "team.key")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "#\n",
        "sandpit-private-key-v1\n",
        "sandpit-private-key-v1 c2hvcnQ=\n",
        "sandpit-private-key-v1 " + "A" * 44 + "\n",
        "sandpit-private-key-v9 " + "A" * 43 + "=\n",
        ("sandpit-private-key-v1 " + "A" * 43 + "=\n") * 2,
        "-----BEGIN OPENSSH PRIVATE KEY-----\n",
        "\0" * 9000,
    ],
)
def test_run_refuses_what_is_no_key(sandpit, tmp_path, text):
    path = tmp_path / "bad.key"
    path.write_text(text)
    path.chmod(0o600)
    said = refused(sandpit, "--sign", "bad.key")
    assert "is no private key" in said
    assert "AAAA" not in said


@pytest.mark.parametrize("path", ["nowhere.key", "/", "/dev/null"])
def test_run_refuses_a_key_that_cannot_be_read(sandpit, tmp_path, path):
    assert path in refused(sandpit, "--sign", path)


def test_run_does_not_replace_the_key_by_the_trace(sandpit, keys):
    before = (keys / "team.key").read_bytes()
    said = refused(sandpit, "--sign", "team.key", "-o", "team.key")
    assert "it is the key that signs it" in said
    assert (keys / "team.key").read_bytes() == before


@runs
def test_key_that_is_run_as_the_program_stands_in_no_trace(sandpit, keys):
    seed = base64.b64encode(half(keys / "team.key", "sandpit-private-key-v1"))
    for options in (("--sign", "team.key"), ()):
        sandpit("run", *options, "-o", "it.sptrace", "team.key")
        assert seed not in (keys / "it.sptrace").read_bytes()


def test_run_signs_no_trace_that_is_not_written(sandpit, keys):
    assert "--no-trace" in refused(sandpit, "--no-trace", "--sign", "team.key")
