"""Section II of the paper: joints from single variables, and from pairs given the network."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rejoint as rj

from_1d, from_pairs = rj.identifiability.from_1d, rj.identifiability.from_pairs


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(0, 10**6))
def test_independent_variables(levels, seed):
    rng = np.random.default_rng(seed)
    shares = {f"x{n}": rng.dirichlet(np.ones(i)) for n, i in enumerate(levels)}
    dense = from_1d(shares).to_dense()
    product = np.ones(())
    for share in shares.values():
        product = np.multiply.outer(product, share)
    # Shares are divided by their sum, which is one up to rounding.
    np.testing.assert_allclose(dense, product, atol=1e-14)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 6), st.integers(2, 4), st.integers(0, 10**6))
def test_fully_dependent_variables(levels, size, seed):
    rng = np.random.default_rng(seed)
    share = rng.permutation(np.arange(1, levels + 1)) / (levels * (levels + 1) / 2)
    turns = [rng.permutation(levels) for _ in range(size)]
    truth = np.zeros([levels] * size)
    truth[tuple(turns)] = share
    tables = {f"x{n}": truth.sum(axis=tuple(m for m in range(size) if m != n)) for n in range(size)}
    found = from_1d(tables, dependent=True)
    assert found.rank == levels
    np.testing.assert_allclose(found.to_dense(), truth, atol=1e-14)


def test_levels_that_never_occur_do_not_count():
    found = from_1d({"a": [0.25, 0.75, 0.0, 0.0], "b": [0.0, 0.75, 0.25]}, dependent=True)
    assert found.prob({"a": 0, "b": 2}) == 0.25


def test_labels_are_kept():
    frame = {"sex": {("f",): 30, ("m",): 70}, "side": {("left",): 70, ("right",): 30}}
    found = from_1d(frame, dependent=True)
    assert found.prob({"sex": "f", "side": "right"}) == pytest.approx(0.3)


def test_distributions_that_differ():
    with pytest.raises(ValueError, match="'a' and 'b' cannot determine each other"):
        from_1d({"a": [0.3, 0.7], "b": [0.4, 0.6]}, dependent=True)
    assert from_1d({"a": [0.3, 0.7], "b": [0.31, 0.69]}, dependent=True, tol=0.02).rank == 2


def test_equal_probabilities_are_ambiguous():
    with pytest.raises(ValueError, match=r"the same probability, 0\.25"):
        from_1d({"a": [0.25, 0.5, 0.25], "b": [0.5, 0.25, 0.25]}, dependent=True)


def test_one_variable_has_no_other_to_go_with():
    pmf = rj.identifiability.from_1d({"a": [0.5, 0.5]}, dependent=True)
    assert pmf.to_dense().tolist() == [0.5, 0.5]


def test_what_it_takes():
    with pytest.raises(TypeError, match="mapping such as"):
        from_1d([0.5, 0.5])


def network(seed=0):
    rng = np.random.default_rng(seed)
    domain = rj.Domain.of({"a": ["x", "y", "z"], "b": 2, "c": ["lo", "mid", "hi"], "d": 4})
    columns = [rng.dirichlet(np.ones(i), size=3).T for i in (3, 2, 4)]
    factors = [columns[0], columns[1], np.eye(3), columns[2]]
    return rj.LowRankPMF(rng.dirichlet(np.ones(3)), factors, domain)


def test_the_small_bayesian_network():
    truth = network()
    pairs = rj.Marginals.from_pmf(truth, subsets=[("a", "c"), ("b", "c"), ("c", "d")])
    found = from_pairs(pairs, given="c")
    assert rj.metrics.tensor_error(truth, found) < 1e-14


def test_levels_of_the_centre_that_never_occur():
    tables = {("a", "c"): [[30, 0, 10], [20, 0, 40]], ("b", "c"): [[10, 0, 25], [40, 0, 25]]}
    assert from_pairs(tables, given="c").rank == 2


def test_disagreeing_tables_are_said():
    tables = rj.Marginals(
        rj.Domain.of({"a": 2, "b": 2, "c": 2}), ((0, 2), (1, 2)), [30, 10, 20, 40, 0, 5, 0, 5]
    )
    with pytest.raises(ValueError, match="the tables disagree"):
        from_pairs(tables, given="c")
