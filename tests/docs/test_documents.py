"""README.md and docs/ tell the truth: their examples are executed, their links lead
somewhere.

A fenced block marked `console` is executed: each line that begins with "$ " is a
command for bash, what follows is what it prints (`...` stands for anything). A block
that follows `<!-- file: NAME -->` is written to that file first. The blocks of one
document run in order, in one folder. Other blocks are not executed.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINKING = [
    *DOCUMENTS,
    *(
        ROOT / f"{name}.md"
        for name in ("ARCHITECTURE", "CHANGELOG", "CONTRIBUTING", "SECURITY")
    ),
]

BLOCK = re.compile(
    r"(?:<!-- file: (?P<file>\S+) -->\n)?^```(?P<language>\w*)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
LINK = re.compile(r"\[[^\]]*\]\(([^)#:\s]+)(#[^)]*)?\)")


@dataclass(frozen=True)
class Example:
    """One command of a console block and what it must print."""

    command: str
    expected: str
    line: int


def examples_of(body: str, line: int) -> list[Example]:
    found: list[Example] = []
    for offset, text in enumerate(body.splitlines()):
        if text.startswith("$ "):
            found.append(Example(text[2:], "", line + offset))
        else:
            last = found.pop()
            found.append(Example(last.command, f"{last.expected}{text}\n", last.line))
    return found


def environment() -> dict[str, str]:
    """The caller's, with the tests' own interpreter and program first."""
    folder = Path(sys.executable).parent
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SANDPIT_FORCE", "PYTHON"))
    }
    return {**kept, "PATH": f"{folder}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}


def check(example: Example, before: int, folder: Path) -> int:
    """Run one command and compare. `before` is the status of the one before, for
    `$?`."""
    code = f"(exit {before})\n{example.command}"
    done = subprocess.run(
        ["bash", "-c", code],
        cwd=folder,
        env=environment(),
        timeout=60,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    flags = doctest.ELLIPSIS
    if not doctest.OutputChecker().check_output(example.expected, done.stdout, flags):
        pytest.fail(
            f"line {example.line}: $ {example.command}\n"
            f"expected:\n{example.expected}\ngot:\n{done.stdout}",
            pytrace=False,
        )
    return done.returncode


@pytest.mark.requires("bash", "program")
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_document_examples_print_what_is_written(document, tmp_path):
    text = document.read_text(encoding="utf-8")
    status = 0
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start("body")) + 1
        if block["file"]:
            (tmp_path / block["file"]).write_text(block["body"])
        elif block["language"] == "console":
            for example in examples_of(block["body"], line):
                status = check(example, status, tmp_path)


@pytest.mark.parametrize("document", LINKING, ids=lambda path: path.name)
def test_document_links_lead_to_files(document):
    text = document.read_text(encoding="utf-8")
    targets = [match[1] for match in LINK.finditer(text)]
    missing = [name for name in targets if not (document.parent / name).exists()]
    assert missing == []


@pytest.mark.requires("program")
def test_command_line_document_names_every_option():
    text = (ROOT / "docs/command-line.md").read_text(encoding="utf-8")
    program = str(Path(sys.executable).parent / "sandpit")
    done = subprocess.run([program, "run", "--help"], capture_output=True, text=True)
    options = done.stdout.split("options:")[1].split("example:")[0]
    named = re.findall(r"--[a-z-]+|(?<= )-[a-z](?=[ ,])", options)
    assert [
        name for name in named if name not in ("-h", "--help") and name not in text
    ] == []


@pytest.mark.requires("program")
def test_policy_reference_has_every_key_as_the_reader_knows_it():
    program = Path(sys.executable).parent / "sandpit"
    script = ROOT / "scripts" / "policy_reference.py"
    done = subprocess.run(
        [sys.executable, script, program, "--check"], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.requires("program")
def test_command_line_document_names_every_command():
    text = (ROOT / "docs/command-line.md").read_text(encoding="utf-8")
    program = str(Path(sys.executable).parent / "sandpit")
    for group in ((), ("policy",)):
        done = subprocess.run(
            [program, *group, "--help"], capture_output=True, text=True
        )
        block = done.stdout.split("commands:")[1].split("options:")[0]
        for line in block.strip().splitlines():
            assert " ".join(["sandpit", *group, line.split()[0]]) in text
