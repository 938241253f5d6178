"""Ordinary programs of the shared corpus run as under plain python."""

from __future__ import annotations

import corpus
import pytest
from abilities import require

pytestmark = pytest.mark.requires("corpus")

CASES = corpus.cases("benign")


@pytest.fixture
def outcome(tmp_path_factory):
    """What the corpus's own runner says of a case."""

    def ask(case, plain=False):
        folder = tmp_path_factory.getbasetemp()
        result = corpus.results("benign", folder, plain=plain)[case.id]
        if result["skip"]:
            require("corpus-needs", str(result["skip"]))
        return result

    return ask


def test_corpus_has_programs():
    assert CASES


@pytest.mark.requires("program")
@pytest.mark.requires("landlock")
@pytest.mark.parametrize("case", CASES, ids=[one.id for one in CASES])
def test_program_is_as_under_plain_python(case, outcome):
    result = outcome(case)
    assert result["faults"] == []
