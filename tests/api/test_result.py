"""What a result gives: fields, bytes, files, traces, copies."""

from __future__ import annotations

import copy
import gc
import json
import os
import pickle

import pytest
import sandpit


@pytest.fixture
def detailed(fake):
    fake("detail")
    return sandpit.run_string("pass", policy="no-network")


def test_fields_are_as_the_program_said(detailed):
    assert (detailed.status, detailed.exit_code) == ("error", 1)
    assert detailed.policy == sandpit.AppliedPolicy("no-network", "00" * 32)
    assert detailed.exception.type == "ValueError"
    assert detailed.exception.line == 4
    assert detailed.files == sandpit.FileChanges(("/x/a",), (), ("/x/b",))
    assert detailed.enforced_by == {"network": ("kernel", "python")}
    assert detailed.summary == {"end": 1}


def test_bytes_are_exact_where_text_is_not(detailed):
    assert detailed.stdout == "a\ufffd"
    assert detailed.stdout_bytes == b"a\xff"
    assert detailed.stderr_bytes == "caf\u00e9".encode()


def test_violation_has_fields_details_and_text(detailed):
    (one,) = detailed.violations
    assert (one.category, one.operation, one.line) == ("network", "connect", 3)
    assert one.details == {"address": "127.0.0.1", "port": 9}
    assert one.stack == ("/x/main.py:3 <module>",)
    assert one.as_dict() == detailed.as_dict()["violations"][0]
    assert str(one) == "connect to 127.0.0.1:9 denied"
    assert hash(one) == hash(copy.deepcopy(one))


def test_result_cannot_be_changed(detailed):
    with pytest.raises(AttributeError):
        detailed.status = "ok"
    detailed.as_dict()["violations"].clear()
    assert detailed.as_dict()["violations"]


def test_json_is_ascii_and_complete(detailed):
    text = detailed.to_json(indent=1)
    assert text.isascii()
    assert json.loads(text) == detailed.as_dict()


def test_trace_is_read_and_saved(detailed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "copy.sptrace").write_text("an older one")
    saved = detailed.save("copy.sptrace")
    assert saved.read_bytes() == detailed.trace_path.read_bytes()
    assert os.listdir(tmp_path) == ["copy.sptrace"]


def test_save_into_nowhere_raises_and_leaves_nothing(detailed, tmp_path):
    with pytest.raises(sandpit.TraceError, match=r"no/t\.sptrace"):
        detailed.save(tmp_path / "no" / "t.sptrace")
    (tmp_path / "folder").mkdir()
    with pytest.raises(sandpit.TraceError, match="folder"):
        detailed.save(tmp_path / "folder")
    assert os.listdir(tmp_path) == ["folder"]


def test_private_folders_go_with_the_result_and_named_traces_stay(fake, tmp_path):
    fake("detail")
    result = sandpit.run_string("pass")
    private = result.trace_path
    assert private.exists()
    assert private.parent.stat().st_mode & 0o077 == 0
    del result
    gc.collect()
    assert not private.parent.exists()
    sandpit.run_string("pass", trace=tmp_path / "kept.sptrace")
    gc.collect()
    assert (tmp_path / "kept.sptrace").exists()


def test_trace_that_is_gone_is_an_error(detailed, tmp_path):
    detailed.trace_path.unlink()
    with pytest.raises(sandpit.TraceError, match=r"main\.sptrace"):
        detailed.save(tmp_path / "copy")


def test_pickled_result_keeps_the_data_and_a_named_trace(fake, detailed, tmp_path):
    again = pickle.loads(pickle.dumps(detailed))
    assert again == detailed
    assert again.stdout_bytes == detailed.stdout_bytes
    assert again.trace is None
    with pytest.raises(FileNotFoundError):
        again.read("main.py")
    named = sandpit.run_string("pass", trace=tmp_path / "t.sptrace")
    assert pickle.loads(pickle.dumps(named)).trace_path == tmp_path / "t.sptrace"


def test_read_follows_no_link_and_stays_inside(fake, tmp_path):
    (tmp_path / "secret").write_text("secret")
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    (work / "sub" / "f").write_bytes(b"inside \xff")
    (work / "link").symlink_to(tmp_path / "secret")
    (work / "out").symlink_to(tmp_path)
    os.mkfifo(work / "pipe")
    result = sandpit.run_string("pass", cwd=work)
    assert result.read("sub/f") == b"inside \xff"
    assert result.read("./sub//f") == b"inside \xff"
    assert result.read_text("sub/f") == "inside \ufffd"
    for name in ("link", "out/secret", "pipe", "sub", "none"):
        with pytest.raises(OSError, match=name):
            result.read(name)
    for name in ("../secret", "/etc/passwd", "sub/../../secret", "", "a\0b"):
        with pytest.raises(ValueError, match="not the name"):
            result.read(name)


def test_read_notices_a_folder_put_in_place_of_the_runs(fake, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "f").write_text("secret")
    result = sandpit.run_string("pass", cwd=work)
    work.rename(tmp_path / "moved")
    work.symlink_to(tmp_path / "other")
    with pytest.raises(FileNotFoundError):
        result.read("f")


@pytest.mark.parametrize(
    "error",
    [
        sandpit.SandpitError("m"),
        sandpit.PolicyError("m", line=1, column=2),
        sandpit.HostError("m", missing=("landlock",)),
        sandpit.TraceError("m", line=1, byte=2),
        sandpit.NotFoundError("m"),
        sandpit.UsageError("m"),
        sandpit.InternalError("m"),
    ],
)
def test_error_survives_pickling_and_copying(error):
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is type(error)
        assert str(again) == "m"
        assert again.__dict__ == error.__dict__
        assert again.slug == error.slug
