"""Branch and bound against enumeration, over easy and hard kinds of models."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rejoint as rj
from rejoint.queries.modes import (
    most_probable,
)
from rejoint.queries.tables import joint_table

# The search counts combinations within 1e-12 as ties; the rest is rounding of products.
TIE = 1e-11


def model(seed, shape, rank, sharpness, zeros=0.0):
    rng = np.random.default_rng(seed)
    factors = []
    for levels in shape:
        factor = rng.dirichlet(np.full(levels, sharpness), size=rank).T + 1e-300
        factor[(rng.random(factor.shape) < zeros) & (factor < factor.max(axis=0))] = 0.0
        factors.append(factor / factor.sum(axis=0))
    return rng.dirichlet(np.ones(rank)), factors


@given(
    st.integers(0, 10**6),
    st.lists(st.integers(1, 5), min_size=1, max_size=6),
    st.integers(1, 8),
    st.sampled_from([0.1, 1.0, 10.0, 300.0]),
    st.sampled_from([0.0, 0.3]),
)
def test_the_mode_is_that_of_enumeration(seed, shape, rank, sharpness, zeros):
    weights, factors = model(seed, shape, rank, sharpness, zeros)
    table = joint_table(weights, factors)
    found = most_probable(weights, factors)
    assert found.exact
    assert found.log_bound == found.log_prob
    assert np.exp(found.log_prob) == pytest.approx(table.max(), rel=TIE)
    assert table[tuple(found.levels)] == pytest.approx(table.max(), rel=TIE)


@pytest.mark.parametrize("seed", range(30))
def test_the_search_itself_is_right_when_the_climb_finds_nothing(seed, monkeypatch):
    # From a poor start the tree has to do the work.
    weights, factors = model(seed, (3, 4, 2, 5, 3, 4), 6, 2.0, 0.2 * (seed % 2))
    monkeypatch.setattr(
        "rejoint.queries.modes.climb",
        lambda scale, ratios, levels: (np.zeros(6, dtype=np.intp), 1e-3),
    )
    table = joint_table(weights, factors)
    found = most_probable(weights, factors)
    assert found.exact
    assert table[tuple(found.levels)] == pytest.approx(table.max(), rel=TIE)


@pytest.mark.parametrize("sharpness", [0.1, 1.0, 10.0])
def test_thirty_variables_of_rank_twenty_are_proved(sharpness):
    weights, factors = model(5, (5,) * 30, 20, sharpness)
    found = most_probable(weights, factors)
    assert found.exact
    assert found.nodes < 100_000


def test_five_thousand_variables():
    weights, factors = model(0, (4,) * 5000, 10, 1.0)
    found = most_probable(weights, factors)
    assert found.exact
    # So many variables tell the classes apart: the mode is the peak of one class.
    peaks = np.log(weights) + np.sum([np.log(a.max(axis=0)) for a in factors], axis=0)
    assert found.log_prob == pytest.approx(peaks.max(), rel=1e-12)


def test_the_bound_holds_when_the_search_is_cut_short():
    weights, factors = model(3, (5,) * 8, 8, 300.0)
    table = joint_table(weights, factors)
    for most in (1, 50, 500):
        found = most_probable(weights, factors, max_nodes=most)
        assert found.exact or np.exp(found.log_bound) >= table.max()
        assert np.exp(found.log_prob) <= table.max() * (1 + TIE)
    assert not most_probable(weights, factors, max_nodes=1).exact


def test_the_mode_of_each_is_not_the_joint_mode():
    table = np.array([[0.0, 0.3, 0.3], [0.4, 0.0, 0.0]])
    p = rj.LowRankPMF.from_dense(table, rj.Domain.of({"a": ["x", "y"], "b": [1, 2, 3]}))
    joint, each = p.mode(["a", "b"]), p.mode(["a", "b"], each=True)
    assert dict(joint) == {"a": "y", "b": 1}
    assert (joint.prob, joint.exact, joint.bound) == (pytest.approx(0.4), True, joint.prob)
    assert dict(each) == {"a": "x", "b": 1}
    assert (each.prob, each.exact, each.bound) == (0.0, False, pytest.approx(0.4))


def test_a_mode_behaves_like_a_dict_and_cannot_be_changed():
    p = rj.datasets.asia()
    mode = p.mode(given={"xray": "yes", "smoke": ["yes", "no"]})
    assert list(mode) == ["asia", "tub", "lung", "bronc", "either", "dysp"]
    assert mode["lung"] == "no" or mode["lung"] == "yes"
    assert p.prob(mode, given={"xray": "yes"}) == pytest.approx(mode.prob, rel=1e-12)
    assert np.exp(mode.log_prob) == pytest.approx(mode.prob)
    with pytest.raises(AttributeError, match="cannot assign"):
        mode.prob = 1.0


def test_the_mode_honours_every_kind_of_evidence():
    weights, factors = model(7, (3, 4, 2), 3, 1.0)
    p = rj.LowRankPMF(weights, factors)
    soft = np.array([0.2, 0.0, 1.0])
    table = p.marginal(["x0", "x1", "x2"], given={"x0": soft, "x1": [1, 3]})
    mode = p.mode(["x0", "x1", "x2"], given={"x0": soft, "x1": [1, 3]})
    assert tuple(mode.values()) == np.unravel_index(table.argmax(), table.shape)
    assert mode.prob == pytest.approx(table.max(), rel=1e-12)


def test_a_cut_search_says_so():
    weights, factors = model(3, (5,) * 8, 8, 300.0)
    p = rj.LowRankPMF(weights, factors)
    with pytest.warns(rj.Remark, match=r"mode: after .* nodes the best combination of 8 variables"):
        mode = p.mode(max_nodes=1)
    assert not mode.exact
    assert mode.bound > mode.prob
    assert "not the joint mode for certain" in repr(mode)


def test_a_mode_of_nothing_is_an_error():
    p = rj.LowRankPMF([1.0], [[[0.5], [0.5]]])
    with pytest.raises(ValueError, match="no variable is named"):
        p.mode(given={"x0": 1})
