"""What attacks of the shared corpus try does not happen, and is in the trace."""

from __future__ import annotations

import corpus
import pytest
from abilities import require

pytestmark = pytest.mark.requires("corpus")

CASES = corpus.cases("attacks")


@pytest.fixture
def outcome(tmp_path_factory):
    """What the corpus's own runner says of a case."""

    def ask(case, plain=False):
        folder = tmp_path_factory.getbasetemp()
        result = corpus.results("attacks", folder, plain=plain)[case.id]
        if result["skip"]:
            require("corpus-needs", str(result["skip"]))
        return result

    return ask


def test_corpus_has_programs():
    assert CASES


@pytest.mark.parametrize("case", CASES, ids=[one.id for one in CASES])
def test_attack_works_without_a_sandbox(case, outcome):
    result = outcome(case, plain=True)
    assert result["faults"] == []


@pytest.mark.requires("program")
@pytest.mark.requires("landlock")
@pytest.mark.parametrize("case", CASES, ids=[one.id for one in CASES])
def test_attack_is_contained_and_recorded(case, outcome):
    result = outcome(case)
    assert result["faults"] == []
