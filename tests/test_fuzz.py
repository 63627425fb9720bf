"""Finds of the fuzzers again, and a few inputs more of each; ``make fuzz`` tries them for long."""

import warnings
from pathlib import Path

import pytest
from fuzz.readers import READERS
from fuzz.search import check, search

CORPUS = sorted((Path(__file__).parent / "fuzz" / "corpus").rglob("*"))


@pytest.mark.parametrize("path", [p for p in CORPUS if p.is_file()], ids=lambda p: p.name)
def test_finds_stay_closed(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(READERS[path.parent.name], path.read_bytes())


@pytest.mark.parametrize("name", READERS)
def test_mutated_inputs_are_read_or_refused_in_words(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcomes, find = search(READERS[name], seconds=60.0, first_seed=7, most=12)
    assert find is None, find
    assert outcomes.total() >= 10
