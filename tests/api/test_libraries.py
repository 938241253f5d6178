"""Every module of the standard library imports, and common libraries work."""

from __future__ import annotations

import pytest
import sandpit
from plain import ORDINARY, outcome_of, run_plain

pytestmark = [pytest.mark.requires("program"), pytest.mark.requires("landlock")]

# Modules that act when imported, or are the tests of the library itself.
IMPORT_ALL = """
import os, pkgutil, sys, sysconfig, warnings
warnings.simplefilter("ignore")
SKIPPED = {"antigravity", "this", "idlelib", "test", "turtledemo", "lib2to3", "pip",
           "ensurepip", "setuptools", "__main__", "__phello__", "_bootsubprocess"}
names = set(getattr(sys, "stdlib_module_names", sys.builtin_module_names))
if not hasattr(sys, "stdlib_module_names"):
    names |= {one.name for one in pkgutil.iter_modules([sysconfig.get_path("stdlib")])}
def walk(name):
    if name.split(".")[-1] in SKIPPED or ".test" in name or "__main__" in name:
        return
    try:
        exec("import " + name)
        outcome = "ok"
    except BaseException as error:
        outcome = type(error).__name__ + " " + str(isinstance(error, ImportError))
    print(name, outcome, flush=True)
    paths = getattr(sys.modules.get(name), "__path__", None)
    if paths and not name.startswith("sysconfig"):
        for one in sorted(found.name for found in pkgutil.iter_modules(paths)):
            walk(name + "." + one)
for name in sorted(names - SKIPPED):
    walk(name)
sys.stdout.flush()
os._exit(0)
"""

CLIENTS = {
    "ftplib",
    "http.client",
    "imaplib",
    "nntplib",
    "poplib",
    "smtplib",
    "telnetlib",
    "urllib.request",
    "xmlrpc.client",
}


def outcomes(text):
    return dict(line.split(" ", 1) for line in text.splitlines() if " " in line)


def test_standard_library_imports_as_under_plain_python(python, tmp_path):
    (tmp_path / "main.py").write_text(IMPORT_ALL)
    plain = outcomes(run_plain(python, ["main.py"], cwd=tmp_path).stdout.decode())
    assert len(plain) > 400
    result = sandpit.run(
        "main.py", cwd=tmp_path, policy="trace-only", python=python.path
    )
    assert outcomes(result.stdout) == plain
    assert result.violations == ()
    result = sandpit.run(
        "main.py", cwd=tmp_path, policy="no-network", python=python.path
    )
    present = {name for name in CLIENTS if plain.get(name) == "ok"}
    confined = outcomes(result.stdout)
    different = {name for name in plain if confined.get(name) != plain[name]}
    assert different == present
    assert all(confined[name].endswith(" True") for name in different)
    assert {one.target for one in result.violations} == present


PROGRAMS = {
    "numpy": """
        import numpy as np
        a = np.arange(12.0).reshape(3, 4)
        print((a @ a.T).sum(), np.linalg.svd(a)[1].round(6), np.fft.fft(a[0]).round(6))
        """,
    "pandas": """
        import pandas as pd
        frame = pd.DataFrame({"k": list("abab"), "v": [1, 2, 3, 4]})
        frame.to_csv("out.csv", index=False)
        print(pd.read_csv("out.csv").groupby("k").v.agg(["sum", "mean"]))
        """,
    "matplotlib": """
        import os, matplotlib
        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
        plt.plot([1, 2, 3])
        plt.savefig("out.png")
        print(os.path.getsize("out.png") > 1000)
        """,
}


@pytest.mark.parametrize("policy", ORDINARY)
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.requires(name)) for name in PROGRAMS],
)
def test_library_works(policy, name, tmp_path):
    import textwrap

    from interpreters import own

    (tmp_path / "main.py").write_text(textwrap.dedent(PROGRAMS[name]))
    plain = run_plain(own(), ["main.py"], cwd=tmp_path)
    assert plain.exit_code == 0, plain.stderr.decode()
    result = sandpit.run("main.py", cwd=tmp_path, policy=policy, calls="folded")
    assert outcome_of(result) == plain
    assert result.violations == ()


@pytest.mark.requires("requests")
def test_requests_works_where_the_network_is_allowed(listener):
    code = (
        f"import requests\nprint(requests.get('http://127.0.0.1:{listener.port}').text)"
    )
    result = sandpit.run_string(code, policy="trace-only")
    assert (result.stdout, result.violations) == ("ok\n", ())
