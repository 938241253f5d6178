"""The text of the program and of what it compiles stands in the trace, once."""

from __future__ import annotations

import hashlib
import json
import py_compile
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
from programs import PROGRAM

pytestmark = [pytest.mark.requires("program"), pytest.mark.requires("listener")]

Event = dict[str, Any]
MIB = 1 << 20


def digest_of(text: bytes) -> str:
    return hashlib.blake2b(text, digest_size=32).hexdigest()


def run(folder: Path, *words: str, **how: Any) -> list[Event]:
    done = subprocess.run(
        [PROGRAM, "run", "--quiet", "-o", "run.sptrace", *words],
        cwd=folder, capture_output=True, text=True, check=False,
        **{"stdin": subprocess.DEVNULL, **how})  # fmt: skip
    assert done.returncode == 0, done.stderr
    verified = subprocess.run([PROGRAM, "verify", "run.sptrace"], cwd=folder)
    assert verified.returncode == 0
    lines = (folder / "run.sptrace").read_text().splitlines()
    return [json.loads(line) for line in lines]


def of(events: list[Event], kind: str) -> list[Event]:
    return [one for one in events if one["kind"] == kind]


def own(events: list[Event]) -> Event:
    """The program's own source: the line after the start."""
    assert events[1]["kind"] == "source", events[1]
    assert events[1]["layer"] == "supervisor"
    return events[1]


def told(event: Event) -> tuple[str, str, int]:
    """Its file and text; the digest is checked."""
    assert event["digest"] == digest_of(event["text"].encode())
    assert "truncated" not in event
    return event["file"], event["text"], event["size"]


def test_script(tmp_path):
    text = "# é\nprint('a')\n"
    (tmp_path / "job.py").write_text(text)
    events = run(tmp_path, "job.py")
    assert told(own(events)) == (str(tmp_path / "job.py"), text, len(text.encode()))
    assert len(of(events, "source")) == 1


def test_folder(tmp_path):
    (tmp_path / "app").mkdir()
    (tmp_path / "app/__main__.py").write_text("x = 1\n")
    events = run(tmp_path, "app")
    assert told(own(events)) == (str(tmp_path / "app/__main__.py"), "x = 1\n", 6)


def test_code(tmp_path):
    assert told(own(run(tmp_path, "-c", "x = 2"))) == ("<string>", "x = 2", 5)


def test_file_as_standard_input(tmp_path):
    (tmp_path / "in.py").write_text("import sys\nx = 3\n")
    with open(tmp_path / "in.py") as stdin:
        events = run(tmp_path, "-", stdin=stdin)
    assert told(own(events)) == ("<stdin>", "import sys\nx = 3\n", 17)


@pytest.mark.parametrize(
    ("name", "file"),
    [("mod", "mod.py"), ("pkg", "pkg/__main__.py"), ("pkg.sub", "pkg/sub.py"),
     ("both", "both.py"), ("space", "space/__main__.py")],
)  # fmt: skip
def test_module(tmp_path, name, file):
    for path in ("mod.py", "pkg/__init__.py", "pkg/__main__.py", "pkg/sub.py",
                 "both.py", "both/__main__.py", "space/__main__.py"):  # fmt: skip
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(f"print(__file__)  # {path}\n")
    events = run(tmp_path, "-m", name)
    said = "".join(one["text"] for one in of(events, "output")).split()[-1]
    assert said.endswith(file)
    assert told(own(events))[:2] == (said, f"print(__file__)  # {file}\n")


def test_what_is_no_text_has_no_source(tmp_path):
    (tmp_path / "job.py").write_text("print(1)\n")
    py_compile.compile(str(tmp_path / "job.py"), cfile=str(tmp_path / "job.pyc"))
    with zipfile.ZipFile(tmp_path / "job.zip", "w") as archive:
        archive.writestr("__main__.py", "print(1)\n")
    for program in ("job.pyc", "job.zip"):
        assert not of(run(tmp_path, program), "source")
    assert not of(run(tmp_path, "-m", "this"), "source")
    assert not of(run(tmp_path, "-", input="print(1)\n", stdin=None), "source")


def test_file_that_is_not_what_runs_has_no_source(tmp_path):
    (tmp_path / "this.py").write_text("print('mine')\n")
    assert told(own(run(tmp_path, "-m", "this")))[1] == "print('mine')\n"
    assert not of(run(tmp_path, "--python-option=-I", "-m", "this"), "source")


@pytest.mark.requires("landlock")
@pytest.mark.parametrize("words", [["job.py"], ["-m", "job"], ["app"]])
def test_text_that_the_program_may_not_read_has_no_source(tmp_path, words):
    """The program's name is a link to a file that is denied to it."""
    secret = tmp_path / "elsewhere" / "secret.txt"
    secret.parent.mkdir()
    secret.write_text("print('the text')\n")
    (tmp_path / "app").mkdir()
    for link in ("job.py", "app/__main__.py"):
        (tmp_path / link).symlink_to(secret)
    assert told(own(run(tmp_path, *words)))[1] == secret.read_text()
    for cache in tmp_path.rglob("__pycache__"):
        shutil.rmtree(cache)
    denied = ["--policy", "default", "--deny-read", str(secret)]
    done = subprocess.run(
        [PROGRAM, "run", "--quiet", "-o", "run.sptrace", *denied, *words],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL)  # fmt: skip
    assert done.returncode != 0
    assert "PermissionError" in done.stderr or "Permission denied" in done.stderr
    assert "the text" not in (tmp_path / "run.sptrace").read_text()


def test_long_script_is_cut_and_its_digest_is_not(tmp_path):
    text = "x = 1\n" + "#" * 2 * MIB + "\n"
    (tmp_path / "job.py").write_text(text)
    one = own(run(tmp_path, "job.py"))
    assert one["truncated"] is True
    assert one["text"] == text[:MIB]
    assert one["size"] == len(text)
    assert one["digest"] == digest_of(text.encode())


def test_compiled_texts_stand_there_once(tmp_path):
    (tmp_path / "job.py").write_text(
        "exec('a = 1')\neval('2')\nexec('a = 1')\ncompile(b'c = 3', 'f', 'exec')\n"
        "import os\nif os.fork() == 0:\n    exec('a = 1')\n    os._exit(0)\nos.wait()\n"
    )
    events = run(tmp_path, "job.py")
    sources = of(events, "source")[1:]
    assert [told(one) for one in sources] == [
        ("<string>", "a = 1", 5), ("<string>", "2", 1), ("f", "c = 3", 5),
    ]  # fmt: skip
    assert {one["layer"] for one in sources} == {"python"}
    for one in sources:
        after = events[events.index(one) + 1 :]
        code = next(other for other in after if other["kind"] == "code")
        assert (code["digest"], code["size"]) == (one["digest"], one["size"])
        assert "kept" not in code


def test_long_text_is_cut_and_its_digest_is_not(tmp_path):
    (tmp_path / "job.py").write_text(
        f"compile('x = 1 #' + 'z' * {3 * MIB}, 'f', 'exec')"
    )
    text = "x = 1 #" + "z" * 3 * MIB
    events = run(tmp_path, "job.py")
    one = of(events, "source")[1]
    assert (one["text"], one["truncated"]) == (text[:MIB], True)
    assert (one["size"], one["digest"]) == (len(text), digest_of(text.encode()))
    assert of(events, "code")[0]["size"] == len(text)


def test_texts_of_a_run_are_bounded(tmp_path):
    (tmp_path / "job.py").write_text(
        f"for i in range(20):\n    compile(f'{{i}} #' + 'z' * {MIB}, 'f', 'exec')\n"
    )
    events = run(tmp_path, "job.py")
    sources, codes = of(events, "source"), of(events, "code")
    assert 15 <= len(sources) <= 17
    assert len(codes) == 20
    kept = {one["digest"] for one in sources}
    assert [one["digest"] in kept for one in codes] == [
        one.get("kept", True) for one in codes
    ]
    assert sum(len(one["text"]) for one in sources) <= 16 * MIB


def test_secrets_are_taken_out(tmp_path):
    secret = "ghp_" + "a1B2" * 9
    (tmp_path / "job.py").write_text(f"token = '{secret}'\nexec('x = \"{secret}\"')\n")
    events = run(tmp_path, "job.py")
    assert secret not in (tmp_path / "run.sptrace").read_text()
    for one in of(events, "source"):
        assert one["redacted"] >= 1
        assert "ghp_***" in one["text"]
    assert events[1]["digest"] == digest_of((tmp_path / "job.py").read_bytes())


def test_bytes_that_are_no_utf_8(tmp_path):
    text = b"# -*- coding: latin-1 -*-\nprint('\xe9')\n"
    (tmp_path / "job.py").write_bytes(text)
    one = own(run(tmp_path, "job.py"))
    assert one["text"].encode("utf-8", "surrogateescape") == text
    assert one["digest"] == digest_of(text)
