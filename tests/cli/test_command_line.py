"""How the command line is read: what is an option, what is the program's, what is
wrong."""

from __future__ import annotations

import os
import re
import subprocess

import pytest


def one_line(text: str) -> bool:
    return (
        text.startswith("sandpit: ") and text.endswith("\n") and text.count("\n") == 1
    )


def test_no_arguments_give_a_short_usage(sandpit):
    done = sandpit()
    assert done.returncode == 125
    assert done.stdout == ""
    assert one_line(done.stderr)
    assert "sandpit run" in done.stderr


def test_version_is_the_packages(sandpit):
    from importlib.metadata import version

    done = sandpit("--version")
    assert done.returncode == 0
    assert done.stdout == f"sandpit {version('sandpit')}\n"
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["rum"], 125, "did you mean run?"),
        (["--verison"], 125, "--verison"),
        (["frobnicate"], 125, "'frobnicate'"),
        (["run", "--polcy", "x"], 125, "did you mean --policy?"),
        (["run", "--policy"], 125, "--policy needs a value"),
        (["run", "--policy="], 125, "--policy"),
        (["run", "--timeout", "soon", "x.py"], 125, "'soon' is not a duration"),
        (["run", "--timeout", "0", "x.py"], 125, "'0'"),
        (["run", "--timeout", "-1", "x.py"], 125, "'-1'"),
        (["run", "--calls", "some", "x.py"], 125, "off"),
        (["run", "--allow-degraded", "kernel", "x.py"], 125, "landlock"),
        (["run", "--color", "blue", "x.py"], 125, "never"),
        (["run", "--json=yes", "x.py"], 125, "takes no value"),
        (["run", "-x"], 125, "'-x'"),
        (["doctor", "--jsn"], 2, "did you mean --json?"),
        (["doctor", "now"], 2, "'now'"),
        (["completion"], 2, "bash, zsh or fish"),
        (["completion", "tcsh"], 2, "'tcsh'"),
        (["help", "nothing"], 2, "'nothing'"),
    ],
)
def test_wrong_command_line_is_one_clear_line(
    sandpit, tmp_path, arguments, status, says
):
    done = sandpit(*arguments)
    assert done.returncode == status
    assert done.stdout == ""
    assert one_line(done.stderr)
    assert says in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_script_taken_for_a_command_gets_a_hint(sandpit, tmp_path):
    (tmp_path / "hello.py").write_text("print('hello')\n")
    done = sandpit("hello.py")
    assert done.returncode == 125
    assert "did you mean sandpit run hello.py?" in done.stderr


def test_error_text_cannot_act_on_a_terminal(sandpit):
    done = sandpit("run", "--\x1b[31mred\nnext")
    assert done.returncode == 125
    assert one_line(done.stderr)
    assert "\x1b" not in done.stderr
    assert r"\x1b[31mred next" in done.stderr


def test_output_that_cannot_be_written_is_a_failure(sandpit):
    with open("/dev/full", "w") as full:
        done = sandpit("--help", stdout=full)
    assert done.returncode == 125
    assert one_line(done.stderr)


def test_help_lists_every_command_and_each_has_its_own(sandpit):
    listed = sandpit("--help")
    assert listed.returncode == 0
    block = listed.stdout.split("commands:\n")[1].split("\n\n")[0]
    names = [line.split()[0] for line in block.splitlines()]
    assert {"run", "show", "verify", "doctor", "completion", "help"} <= set(names)
    for name in names:
        done = sandpit(name, "--help")
        assert done.returncode == 0, name
        assert (
            f"sandpit {name}" in done.stdout or f"sandpit-trace {name}" in done.stdout
        )
        assert done.stderr == ""
        assert sandpit("help", name).stdout == done.stdout


def test_help_fits_a_screen_and_has_an_example(sandpit):
    for arguments in (["--help"], ["run", "--help"], ["doctor", "--help"]):
        lines = sandpit(*arguments).stdout.splitlines()
        assert len(lines) <= 50
        assert max(map(len, lines)) <= 80
        assert "example:" in lines


@pytest.mark.requires("bash")
def test_bash_completion_offers_commands_options_and_values(sandpit, program, tmp_path):
    script = sandpit("completion", "bash").stdout
    (tmp_path / "script.py").write_text("")

    def complete(*words: str) -> set[str]:
        quoted = " ".join(f"'{word}'" for word in words)
        code = (
            f"{script}\nCOMP_WORDS=({quoted})\nCOMP_CWORD={len(words) - 1}\n_sandpit\n"
            'printf "%s\\n" "${COMPREPLY[@]}"\n'
        )
        done = subprocess.run(
            ["bash", "--norc", "-c", code],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr == ""
        return set(done.stdout.split())

    assert {"run", "show", "--version"} <= complete("sandpit", "")
    assert complete("sandpit", "ru") == {"run"}
    assert complete("sandpit", "run", "--pol") == {"--policy"}
    policies = {
        "trace-only",
        "no-network",
        "no-process",
        "read-only",
        "default",
        "strict",
    }
    assert complete("sandpit", "run", "--policy", "") == policies | {"script.py"}
    assert complete("sandpit", "policy", "s") == {"show", "schema"}
    assert complete("sandpit", "policy", "show", "") == policies | {"script.py"}
    assert complete("sandpit", "policy", "show", "--j") == {"--json"}
    assert complete("sandpit", "policy", "explain", "--policy", "st") == {"strict"}
    assert complete("sandpit", "policy", "explain", "con") == {"connect"}
    assert complete("sandpit", "run", "--calls", "f") == {"first", "folded"}
    assert complete("sandpit", "run", "scr") == {"script.py"}
    assert complete("sandpit", "completion", "") == {"bash", "zsh", "fish"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_names_every_option(sandpit, shell):
    help_text = sandpit("run", "--help").stdout
    script = sandpit("completion", shell).stdout
    options = re.findall(
        r"--([a-z-]+)", help_text.split("options:")[1].split("example:")[0]
    )
    for option in options:
        assert (f"-l {option}" if shell == "fish" else f"--{option}") in script


@pytest.mark.requires("zsh")
def test_zsh_completion_parses(sandpit):
    script = sandpit("completion", "zsh").stdout
    subprocess.run(["zsh", "-f", "-n"], input=script, text=True, check=True)


@pytest.mark.requires("fish")
def test_fish_completion_parses(sandpit):
    script = sandpit("completion", "fish").stdout
    subprocess.run(["fish", "--no-execute"], input=script, text=True, check=True)


@pytest.mark.requires("groff")
def test_manual_page_formats_without_warnings(sandpit):
    page = sandpit("manual").stdout
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww"],
        input=page,
        text=True,
        capture_output=True,
        check=True,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )
    assert done.stderr == ""
    text = re.sub(".\x08", "", done.stdout).replace("\N{MINUS SIGN}", "-")
    assert "--fail-on-violation" in text


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["-c", "print(1)"], "sandpit"),
        (["-"], "sandpit"),
        (["-m", "os.path"], "os.path"),
        (["sub/hello.py"], "hello"),
        (["sub"], "sub"),
    ],
)
def test_trace_is_named_after_what_runs(sandpit, tmp_path, arguments, name):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "hello.py").write_text("")
    sandpit("run", *arguments)
    assert [path.name for path in tmp_path.glob("*.sptrace")] == [f"{name}.sptrace"]
