"""The examples in the package's docstrings print what they say."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest
import sandpit
from fake_program import TRACE

MODULES = sorted(
    f"sandpit.{one.name}"
    for one in pkgutil.iter_modules(sandpit.__path__)
    if one.name not in ("__main__", "_native")
)


def examples(module):
    finder = doctest.DocTestFinder(exclude_empty=True)
    return [one for one in finder.find(module) if one.examples]


@pytest.mark.requires("program")
@pytest.mark.requires("landlock")
@pytest.mark.parametrize("name", ["sandpit", *MODULES])
def test_docstring_examples_print_what_they_say(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.sptrace").write_text(TRACE)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    report = []
    for one in examples(importlib.import_module(name)):
        runner.run(one, out=report.append)
    assert runner.failures == 0, "".join(report)


@pytest.mark.parametrize("name", ["run", "run_string", "start", "start_string"])
def test_main_functions_have_an_example(name):
    assert ">>> " in inspect.getdoc(getattr(sandpit, name))


def test_public_names_are_documented():
    bare = [
        name
        for name in sandpit.__all__
        if callable(getattr(sandpit, name))
        and not inspect.getdoc(getattr(sandpit, name))
    ]
    assert bare == []


def test_package_is_marked_as_typed():
    assert (Path(sandpit.__file__).parent / "py.typed").exists()
