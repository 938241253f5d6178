"""What people install, under sandpit: pandas, scikit-learn, a Flask server, a test suite.

The packages come from the package index, into a virtual environment for each interpreter.
Each program does what it does under plain python, is denied nothing, and leaves a trace of
sensible size of which `sandpit show` and `export` still make something.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import sandpit
from abilities import require
from perfetto import load_into_perfetto
from plain import Outcome, outcome_of, run_plain
from programs import PROGRAM

pytestmark = [
    pytest.mark.real,
    pytest.mark.requires("program"),
    pytest.mark.requires("landlock"),
    pytest.mark.versions(since=(3, 11)),
]

PACKAGES = ["pandas", "scikit-learn", "flask"]
SUITE = "jinja2==3.1.6"
SUITE_NEEDS = ["pytest==8.4.2", "trio"]

TABLE = """\
import pandas

table = pandas.DataFrame({"a": [1, 2, 3], "b": list("xyz")})
print(table.groupby("b").sum())
"""

FIT = """\
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

data, kinds = load_iris(return_X_y=True)
learn, check, learn_kinds, check_kinds = train_test_split(data, kinds, random_state=0)
for model in (
    make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
    RandomForestClassifier(n_estimators=100, random_state=0, n_jobs=2),
):
    model.fit(learn, learn_kinds)
    print(f"{model.score(check, check_kinds):.4f}")
"""

SERVER = """\
import logging
import threading
import urllib.request

from flask import Flask, jsonify, request
from werkzeug.serving import make_server

app = Flask(__name__)
logging.getLogger("werkzeug").setLevel(logging.ERROR)


@app.get("/add")
def add():
    return jsonify(sum=request.args.get("a", 0, int) + request.args.get("b", 0, int))


server = make_server("127.0.0.1", 0, app, threaded=True)
thread = threading.Thread(target=server.serve_forever)
thread.start()
total = 0
for n in range(100):
    address = f"http://127.0.0.1:{server.port}/add?a={n}&b=1"
    with urllib.request.urlopen(address) as answer:
        total += int(answer.read().split(b":")[1].strip(b" }\\n"))
server.shutdown()
thread.join()
print(total)
"""


@dataclass(frozen=True)
class Real:
    """A program, what it is granted, what it prints, and how large its trace may be."""

    argv: tuple[str, ...]
    prints: str
    mib: dict[str, float]  # by level of calls: about twice what was measured
    allow: dict[str, list[str]] = field(default_factory=dict)
    folder: str = "programs"


PROGRAMS = {
    "pandas": Real(("table.py",), "z  3", {"off": 1, "folded": 5, "all": 16}),
    "scikit-learn": Real(("fit.py",), "0.9737", {"off": 3, "folded": 14, "all": 120}),
    "flask": Real(
        ("server.py",),
        "5050",
        {"off": 1, "folded": 5, "all": 20},
        {"net": ["loopback"]},
    ),
    "suite": Real(
        ("-m", "pytest", "-q", "-p", "no:cacheprovider"),
        "909 passed",
        {"off": 3, "folded": 16, "all": 200},
        folder="suite",
    ),
}
# pytest says how long it took.
_SECONDS = re.compile(rb"in \d+\.\d+s")
ENVIRONMENT = {"PATH": os.environ["PATH"], "PYTHONHASHSEED": "0", "LANG": "C.UTF-8"}


def install(pip: list[str], *arguments: str) -> None:
    """Skip where no package index can be reached."""
    done = subprocess.run([*pip, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        require("index", f"pip {arguments[0]}: {done.stderr[-300:]}")


@pytest.fixture(scope="session")
def suite(tmp_path_factory) -> Path:
    """The sources of a package, tests included, as they were published."""
    folder = tmp_path_factory.mktemp("sources")
    pip = [sys.executable, "-m", "pip", "--quiet"]
    name = SUITE.partition("==")[0]
    install(pip, "download", "--no-deps", "--no-binary", name, "-d", str(folder), SUITE)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as sources:
        sources.extractall(folder)
    (unpacked,) = (one for one in folder.iterdir() if one.is_dir())
    return unpacked


@pytest.fixture(scope="session")
def workplace(tmp_path_factory, suite):
    """For an interpreter: one that has the packages, and the folder of the programs."""
    made = {}

    def make(python):
        if python not in made:
            folder = tmp_path_factory.mktemp(f"packages-{python.label}")
            subprocess.run([python.path, "-m", "venv", folder / "venv"], check=True)
            own = folder / "venv/bin/python"
            pip = [str(own), "-m", "pip", "--quiet"]
            install(pip, "install", *PACKAGES, SUITE, *SUITE_NEEDS)
            programs = folder / "programs"
            programs.mkdir()
            for name, text in (("table", TABLE), ("fit", FIT), ("server", SERVER)):
                (programs / f"{name}.py").write_text(text)
            (folder / "suite").symlink_to(suite)
            made[python] = own, folder
        return made[python]

    return make


@pytest.fixture(scope="session")
def recorded(workplace):
    """Gives the plain outcome, the result and the trace of a program at a level."""
    made = {}

    def run(python, name, level) -> tuple[Outcome, sandpit.Result, Path]:
        real = PROGRAMS[name]
        own, folder = workplace(python)
        place = folder / real.folder
        if (python, name) not in made:
            made[python, name] = run_plain(own, real.argv, cwd=place, env=ENVIRONMENT)
        if (python, name, level) not in made:
            trace = folder / f"{name}-{level}.sptrace"
            module = real.argv[0] == "-m"
            script, *arguments = real.argv[1:] if module else real.argv
            result = sandpit.run(
                script, args=arguments, module=module, cwd=place, env=ENVIRONMENT,
                python=own, policy="default", allow=real.allow, calls=level,
                trace=trace, timeout=240,
            )  # fmt: skip
            made[python, name, level] = result, trace
        return made[python, name], *made[python, name, level]

    return run


def without_times(outcome: Outcome) -> Outcome:
    stdout, stderr = (
        _SECONDS.sub(b"in TIME", one) for one in (outcome.stdout, outcome.stderr)
    )
    return Outcome(stdout, stderr, outcome.exit_code)


def read(trace: Path, *arguments: str, mib: int = 24) -> subprocess.CompletedProcess:
    """Run a reader that may keep so much memory, and take a minute."""
    limited = f'ulimit -d {mib * 1024}; exec "$0" "$@"'
    return subprocess.run(
        ["sh", "-c", limited, f"{PROGRAM}-trace", *arguments, trace],
        capture_output=True, text=True, timeout=60,
        env={**os.environ, "COLUMNS": "80"},
    )  # fmt: skip


every_program = pytest.mark.parametrize("name", PROGRAMS)


@every_program
@pytest.mark.parametrize("level", ["off", "folded", "all"])
def test_it_is_as_under_plain_python(python, recorded, name, level, record_property):
    plain, result, trace = recorded(python, name, level)
    assert PROGRAMS[name].prints in plain.stdout.decode() and plain.exit_code == 0
    assert [str(one) for one in result.violations] == []
    assert without_times(outcome_of(result)) == without_times(plain)
    size = trace.stat().st_size
    record_property("trace_bytes", size)
    assert size <= PROGRAMS[name].mib[level] * 2**20
    events = sandpit.load(trace)
    assert events[-1]["lost"] == 0
    assert list(events.of_kind("lost", "tamper", "limit")) == []
    done = read(trace, "verify")
    assert (done.returncode, done.stderr) == (0, "")


def test_without_the_grant_the_server_is_denied(python, workplace):
    own, folder = workplace(python)
    result = sandpit.run(
        "server.py", cwd=folder / "programs", env=ENVIRONMENT, python=own, timeout=60
    )
    assert result.exit_code == 1 and "denied by policy" in result.stderr
    assert result.violations[0].category in ("import", "network")


@every_program
def test_the_summary_is_one_screen_that_says_what_was_done(python, recorded, name):
    for level in ("off", "folded", "all"):
        *_, trace = recorded(python, name, level)
        done = read(trace, "show")
        assert (done.returncode, done.stderr) == (0, "")
        lines = done.stdout.splitlines()
        assert len(lines) <= 23 and max(map(len, lines)) <= 80
        real = PROGRAMS[name]
        called = " ".join(real.argv[:2]) if real.argv[0] == "-m" else real.argv[0]
        assert lines[0].startswith(f"{called}: ok, exit code 0, ")
        assert "Tried and denied: nothing" in lines
        assert "verified: sound and complete" in lines[-1]
        rows = {line.split()[0] for line in lines if line.startswith("  ")}
        assert {"imports", "read"} <= rows
        assert ("calls" in rows) == (level != "off")
        assert ("network" in rows) >= (name == "flask")


@every_program
@pytest.mark.parametrize("level", ["folded", "all"])
def test_the_views_take_bounded_memory(python, recorded, name, level):
    *_, trace = recorded(python, name, level)
    shown = {}
    for view in ("files", "network", "processes", "timeline", "source", "tree"):
        # The tree has a node for each way of calling.
        done = read(trace, "show", f"--{view}", mib=128 if view == "tree" else 24)
        # The text of what -m names is kept where that lies in the folder of the run.
        missing = (view, name) == ("source", "suite")
        assert done.returncode == (2 if missing else 0), done.stderr
        shown[view] = done.stdout
    if name == "flask":
        assert "connect 100" in shown["network"]
        assert "server.py:" in shown["network"]
        assert SERVER in shown["source"]
    if name == "pandas":
        assert re.search(r"^ .* 1 +<module>  table.py:1$", shown["tree"], re.M)


@every_program
def test_it_is_exported_in_every_format(python, recorded, name, tmp_path):
    for level in ("folded", "all"):
        *_, trace = recorded(python, name, level)
        for format in ("jsonl", "chrome", "speedscope", "collapsed", "otlp", "ocsf"):
            output = tmp_path / "exported"
            done = read(trace, "export", "-f", format, "-o", output)
            assert done.returncode == 0, done.stderr
            assert output.stat().st_size > 1000


@every_program
@pytest.mark.requires("viztracer", "node")
def test_perfetto_loads_all_its_calls(python, recorded, name, tmp_path):
    *_, trace = recorded(python, name, "all")
    output = tmp_path / "exported.json"
    assert read(trace, "export", "-f", "chrome", "-o", output).returncode == 0
    (rows,) = load_into_perfetto(output, "select count(*) as n from slice")
    with open(output, encoding="utf-8") as lines:
        instants = sum('"ph":"i"' in line for line in lines)
    assert rows[0]["n"] == len(sandpit.load(trace).of_kind("call")) + instants


@every_program
def test_it_is_read_as_a_trace(python, recorded, name):
    for level in ("folded", "all"):
        _, result, trace = recorded(python, name, level)
        events = sandpit.load(trace)
        assert len(events) == sum(events[-1]["counts"].values())
        assert len(events.of_kind("open")) == events[-1]["counts"]["open"]
        calls = events.calls()
        assert calls.exact == (level == "all")
        counted = sum(node.count for _, node in calls.walk())
        assert counted > 10_000
        assert result.trace[0] == events[0] and json.dumps(events[0])
