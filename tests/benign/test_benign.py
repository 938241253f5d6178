"""Ordinary programs of the shared corpus run as under plain python."""

from __future__ import annotations

import corpus
import pytest

pytestmark = pytest.mark.requires("corpus")

CASES = corpus.cases("benign")


@pytest.fixture
def folder(tmp_path_factory):
    """One for all cases: the runner is asked once for all of them."""
    return tmp_path_factory.getbasetemp()


def test_corpus_has_programs():
    assert CASES


@pytest.mark.requires("program")
@pytest.mark.requires("landlock")
@pytest.mark.parametrize("case", CASES, ids=[one.id for one in CASES])
def test_program_is_as_under_plain_python(case, folder):
    assert corpus.faults("benign", case, folder) == []
