"""Files in the style of offices: read right, or refused with both readings named."""

import warnings

import numpy as np
import pytest
from offices import SAMPLES

from rejoint.marginals import Marginals
from rejoint.marginals.vocabulary import plain_text


def check(m, sample):
    assert {frozenset(map(plain_text, s)) for s in m.subsets} == {
        frozenset(map(plain_text, names)) for names in sample.truth
    }
    found = {plain_text(name): name for name in m.domain.names}
    for names, (labels, values) in sample.truth.items():
        own = [found[plain_text(name)] for name in names]
        table = m[tuple(own)]
        for axis, (name, known) in enumerate(zip(own, labels, strict=True)):
            levels = list(m.domain[name].levels)
            assert sorted(map(str, levels)) == sorted(map(str, known)), name
            table = np.take(table, [levels.index(label) for label in known], axis)
        there = ~np.isnan(values)
        scale = values[there].max()
        np.testing.assert_allclose(
            table[there], values[there], rtol=sample.tolerance, atol=sample.tolerance * scale
        )
        i = m.positions[tuple(sorted(m.domain.indices(own)))]
        assert bool(m.counted[i]) is not sample.shares
    assert (0 if m.unknown is None else len(m.unknown)) == sample.unknown


@pytest.mark.parametrize("sample", SAMPLES, ids=[sample.name for sample in SAMPLES])
@pytest.mark.filterwarnings("ignore:.*not UTF-8:rejoint.Remark")
def test_a_file_as_it_is_downloaded(tmp_path, sample):
    path = tmp_path / sample.name
    path.write_bytes(sample.content)
    if sample.refused:
        with pytest.raises(ValueError) as error:  # noqa: PT011 (its words are checked below)
            Marginals.read(path)
        for words in sample.refused:
            assert words in str(error.value)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(Marginals.read(path), sample)


def test_the_corpus_is_as_large_as_it_says():
    assert len(SAMPLES) >= 45
    assert sum(not sample.refused for sample in SAMPLES) >= 40
