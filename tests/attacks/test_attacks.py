"""What attacks of the shared corpus try does not happen, and is in the trace."""

from __future__ import annotations

import corpus
import pytest

pytestmark = pytest.mark.requires("corpus")

CASES = corpus.cases("attacks")


@pytest.fixture
def folder(tmp_path_factory):
    """One for all cases: the runner is asked once for all of them."""
    return tmp_path_factory.getbasetemp()


def test_corpus_has_programs():
    assert CASES


@pytest.mark.parametrize("case", CASES, ids=[one.id for one in CASES])
def test_attack_works_without_a_sandbox(case, folder):
    assert corpus.faults("attacks", case, folder, plain=True) == []


@pytest.mark.requires("program")
@pytest.mark.requires("landlock")
@pytest.mark.parametrize("case", CASES, ids=[one.id for one in CASES])
def test_attack_is_contained_and_recorded(case, folder):
    assert corpus.faults("attacks", case, folder) == []
