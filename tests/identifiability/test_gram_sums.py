"""Sums of products of Gram matrices against sums over subsets, spelled out."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoint.identifiability import gram_sums
from rejoint.identifiability.gram_sums import Family

CASES = [
    (n, order, complete) for n in (4, 5) for order in (1, 2, 3, 4) for complete in (True, False)
]
# Sums of a few dozen products of numbers near one, in another order: rounding, nothing else.
CLOSE = {"rtol": 1e-12, "atol": 1e-13}


def family(n, order, complete, seed=0):
    rng = np.random.default_rng(seed)
    every = np.array(list(combinations(range(n), order)), dtype=np.intp)
    if complete:
        return Family(every, np.full(len(every), 0.7), complete=True)
    some = every[np.sort(rng.permutation(len(every))[: max(1, len(every) - 2)])]
    return Family(some, rng.uniform(0.5, 2.0, len(some)), complete=False)


def families(n, order, complete):
    """The family in question beside one of another order, since sums run over all of them."""
    return [family(n, order, complete), family(n, order % 3 + 1, not complete, seed=1)]


def random_grams(n, rank=3, seed=0):
    sides = np.random.default_rng(seed).random((n, 4, rank))
    return np.einsum("nif,nig->nfg", sides, sides)


def brute(families, matrices, without=()):
    """``sum_{S with all of without} omega_S prod_{m in S - without} G_m``."""
    total = np.zeros(matrices.shape[1:])
    for one in families:
        for subset, weight in zip(one.members.tolist(), one.weight, strict=True):
            if set(without) <= set(subset):
                rest = [m for m in subset if m not in without]
                total += weight * np.prod([np.ones_like(total), *matrices[rest]], axis=0)
    return total


@given(
    st.lists(st.floats(-3, 3), min_size=1, max_size=6),
    st.integers(0, 6),
)
def test_elementary_symmetric_polynomials(numbers, order):
    matrices = [np.full((1, 1), x) for x in numbers]
    terms = gram_sums.symmetric(matrices, order)
    assert len(terms) == order + 1
    for degree, term in enumerate(terms):
        # prod of the empty subset is one; there is no subset larger than the list
        wanted = sum(np.prod(subset) for subset in combinations(numbers, degree))
        # At most 20 terms of at most 3^6: 1e-11 is some tens of roundings of that.
        assert float(np.sum(term)) == pytest.approx(wanted, rel=1e-12, abs=1e-11)


@given(st.lists(st.floats(0.1, 2), min_size=2, max_size=6), st.integers(1, 4))
def test_exclude_undoes_include(numbers, order):
    matrices = [np.full((1, 1), x) for x in numbers]
    left = gram_sums.exclude(gram_sums.symmetric(matrices, order), matrices[0])
    for a, b in zip(left, gram_sums.symmetric(matrices[1:], order), strict=True):
        # The subtraction may lose a few digits of numbers up to 2^4 * 15.
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-11)


@pytest.mark.parametrize(("n", "order", "complete"), CASES)
class TestSumsOverFamilies:
    def test_whole(self, n, order, complete):
        found, matrices = families(n, order, complete), random_grams(n)
        np.testing.assert_allclose(
            gram_sums.weights_gram(found, matrices), brute(found, matrices), **CLOSE
        )

    def test_without(self, n, order, complete):
        found, matrices = families(n, order, complete), random_grams(n)
        wanted = np.stack([brute(found, matrices, [m]) for m in range(n)])
        each = np.stack([gram_sums.factor_gram(found, matrices, m) for m in range(n)])
        np.testing.assert_allclose(each, wanted, **CLOSE)
        np.testing.assert_allclose(gram_sums.factor_grams(found, matrices), wanted, **CLOSE)

    def test_without_pairs(self, n, order, complete):
        found, matrices = families(n, order, complete), random_grams(n)
        pairs = gram_sums.pair_grams(found, matrices)
        for a, b in np.ndindex(n, n):
            wanted = brute(found, matrices, [a, b]) if a != b else np.zeros((3, 3))
            np.testing.assert_allclose(pairs[a, b], wanted, **CLOSE)


def test_a_variable_in_no_subset_of_the_family():
    found = [Family(np.array([[0, 1], [0, 2]]), np.array([1.0, 2.0]), complete=False)]
    matrices = random_grams(4)
    assert not gram_sums.factor_gram(found, matrices, 3).any()
    assert not gram_sums.factor_grams(found, matrices)[3].any()
    assert not gram_sums.pair_grams(found, matrices)[3].any()


def test_long_lists_are_summed_in_parts():
    # F^2 = 10,000: 200 subsets at a time, so 250 of them take two parts.
    rng = np.random.default_rng(0)
    matrices = rng.random((30, 100, 100))
    members = np.array(list(combinations(range(30), 2)))[:250]
    found = [Family(members, rng.random(250), complete=False)]
    total = brute(found, matrices)
    np.testing.assert_allclose(gram_sums.weights_gram(found, matrices), total, rtol=1e-12)
    each = np.stack([brute(found, matrices, [m]) for m in range(30)])
    np.testing.assert_allclose(gram_sums.factor_grams(found, matrices), each, rtol=1e-12)
