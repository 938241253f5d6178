"""The checks of `make check` find what they are for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def check(name: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / f"{name}.py"), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def source(folder: Path, name: str, text: str) -> None:
    path = folder / "src" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize("name", ["check_layers", "check_complexity"])
def test_project_passes(name):
    done = check(name, ROOT)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.requires("cc")
def test_every_header_compiles_alone():
    done = check("check_headers", ROOT)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("file", "include", "fails"),
    [
        ("supervise/loop.c", "trace/writer.h", False),
        ("supervise/loop.c", "base/error.h", False),
        ("trace/writer.c", "supervise/loop.h", True),
        ("read/load.c", "supervise/loop.h", True),
        ("policy/match.c", "trace/writer.h", True),
        ("agent/agent.c", "trace/writer.h", True),
        ("base/x.c", "../cli/options.h", True),
        ("newlayer/x.c", "base/error.h", True),
    ],
)
def test_layer_rule_fails_on_an_include_that_goes_up(tmp_path, file, include, fails):
    source(tmp_path, file, f'#include <stdio.h>\n# include "{include}"\n')
    done = check("check_layers", tmp_path)
    assert done.returncode == (1 if fails else 0)
    assert (file in done.stderr) == fails


def test_header_that_needs_another_is_found(tmp_path):
    guard = "#ifndef SP_BASE_{0}_H\n#define SP_BASE_{0}_H\n{1}\n#endif\n"
    source(tmp_path, "base/whole.h", guard.format("WHOLE", "int sp_whole(void);"))
    assert check("check_headers", tmp_path).returncode == 0
    source(tmp_path, "base/part.h", guard.format("PART", "size_t sp_part(void);"))
    done = check("check_headers", tmp_path)
    assert done.returncode == 1
    assert "part.h: does not compile alone" in done.stderr
    source(tmp_path, "base/part.h", guard.format("OTHER", "int sp_part(void);"))
    assert "guard is not SP_BASE_PART_H" in check("check_headers", tmp_path).stderr


def function(lines: int) -> str:
    return "int big(int a,\n        int b)\n{\n" + "    a++;\n" * (lines - 2) + "}\n"


def test_long_function_is_found_unless_listed_and_the_list_only_shrinks(tmp_path):
    (tmp_path / "scripts").mkdir()
    listed = tmp_path / "scripts/complexity.txt"
    source(tmp_path, "base/x.c", function(60))
    assert check("check_complexity", tmp_path).returncode == 0
    source(tmp_path, "base/x.c", function(80))
    assert "big has 80 lines" in check("check_complexity", tmp_path).stderr
    check("check_complexity", tmp_path, "--update")
    assert check("check_complexity", tmp_path).returncode == 1, "update adds nothing"
    listed.write_text("80 src/base/x.c big\n")
    assert check("check_complexity", tmp_path).returncode == 0
    source(tmp_path, "base/x.c", function(81))
    assert check("check_complexity", tmp_path).returncode == 1
    source(tmp_path, "base/x.c", function(70))
    assert "--update" in check("check_complexity", tmp_path).stderr
    check("check_complexity", tmp_path, "--update")
    assert "70 src/base/x.c big" in listed.read_text()
    assert check("check_complexity", tmp_path).returncode == 0
