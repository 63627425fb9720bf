"""Two models that explain the tables equally well, and how far their answers differ."""

import numpy as np
import pytest

import rejoint as rj
from rejoint.identifiability.fiber import Fiber
from rejoint.identifiability.layout import read_layout
from rejoint.model import Model

ambiguity = rj.identifiability.ambiguity


def random_pmf(levels, rank, seed=0):
    rng = np.random.default_rng(seed)
    factors = [rng.dirichlet(np.ones(i), size=rank).T for i in levels]
    return rj.LowRankPMF(rng.dirichlet(np.full(rank, 3.0)), factors)


def test_normal_equations_by_finite_differences():
    levels, subsets = [2, 3, 2], [(0, 1), (1, 2)]
    p, x = random_pmf(levels, 2), np.vstack([[0.3, 0.7], *random_pmf(levels, 2, seed=5).factors])
    fiber = Fiber(read_layout(levels, subsets=subsets), Model.of(p.weights, p.factors))

    def cells(x):
        weights, factors = fiber.split(x)
        pairs = [np.einsum("if,jf,f", factors[a], factors[b], weights) for a, b in subsets]
        return np.concatenate([*map(np.ravel, pairs), fiber.sums @ x.ravel()])

    moves = [1e-6 * e.reshape(x.shape) for e in np.eye(x.size)]
    brute = np.stack([(cells(x + e) - cells(x - e)) / 2e-6 for e in moves], axis=1)
    residuals = cells(x) - cells(fiber.start)
    full, slope, square = fiber.normal(x)
    # Central differences of cubic polynomials: 1e-12 for the step, 1e-10 by rounding.
    np.testing.assert_allclose(full, brute.T @ brute, atol=1e-8)
    np.testing.assert_allclose(slope, brute.T @ residuals, atol=1e-8)
    assert square == pytest.approx((residuals**2).sum(), abs=1e-12)


@pytest.mark.parametrize(
    ("names", "given"), [(["x0", "x1", "x2"], None), ("x0", {"x1": 0, "x2": 1})]
)
def test_pairs_leave_answers_open(names, given):
    p = random_pmf([2] * 6, 3)
    found = ambiguity(p, names, given, order=2)
    assert found.distance > 0.02
    pairs = [rj.Marginals.from_pmf(model, order=2) for model in found.models]
    # Both are brought back to the tables to 1e-12 in every cell.
    np.testing.assert_allclose(pairs[0].flat, pairs[1].flat, atol=1e-11)
    np.testing.assert_allclose(pairs[0].flat, rj.Marginals.from_pmf(p, order=2).flat, atol=1e-11)
    for model, answer in zip(found.models, found.answers, strict=True):
        np.testing.assert_allclose(model.marginal(names, given), answer)
    assert "is not determined: two models of rank 3" in str(found)


def test_what_the_tables_hold_is_determined():
    found = ambiguity(random_pmf([3] * 5, 3), ["x0", "x1"], order=2)
    assert found.distance == 0.0
    assert "P(x0, x1) is determined" in found.verdict


def test_triples_determine_everything_where_the_rank_is_identifiable():
    p = random_pmf([3] * 5, 3)
    names = list(p.domain.names)
    assert ambiguity(p, names, order=3).distance < 1e-6
    assert ambiguity(p, "x4", {"x0": 0, "x1": 2, "x2": [0, 1]}, order=3).distance < 1e-6


def test_the_joint_may_be_determined_where_the_classes_are_not():
    p = random_pmf([2] * 4, 3, seed=2)
    assert rj.identifiability.jacobian(at=p, order=3).parameters is False
    assert ambiguity(p, list(p.domain.names), order=3).distance < 1e-6


def test_walks_keep_to_the_simplex_where_factors_have_zeros():
    p = random_pmf([3] * 5, 3)
    factors = [np.array(a) for a in p.factors]
    factors[0][:, 0] = [1.0, 0.0, 0.0]
    factors[2][:, 1] = [0.0, 0.5, 0.5]
    found = ambiguity(rj.LowRankPMF(p.weights, factors), ["x0", "x1", "x2"], order=2)
    assert found.gap < 1e-11
    for model in found.models:
        assert min(a.min() for a in model.factors) >= 0.0


def test_an_asked_variable_may_be_given():
    p = random_pmf([3] * 4, 2)
    found = ambiguity(p, ["x0"], {"x0": [0, 1], "x1": 0, "x2": 0}, order=2)
    for model, answer in zip(found.models, found.answers, strict=True):
        assert answer[2] == 0.0
        np.testing.assert_allclose(model.marginal("x0", {"x0": [0, 1], "x1": 0, "x2": 0}), answer)


def test_a_model_asks_by_itself():
    p = random_pmf([2] * 5, 2)
    found = p.ambiguity("x0", {"x1": 0, "x2": 0}, order=2)
    assert found.distance == ambiguity(p, "x0", {"x1": 0, "x2": 0}, order=2).distance > 1e-3


def test_a_fit_knows_its_tables():
    truth = random_pmf([3] * 5, 3)
    tables = rj.Marginals.from_pmf(truth, order=2)
    with pytest.warns(rj.Remark, match="at least 3 directions"):
        pairs = rj.factorize(tables, rank=3, random_state=0, n_init=1)
    assert pairs.ambiguity("x0", given={"x1": 0, "x2": 1}).distance > 0.01
    triples = rj.factorize(rj.Marginals.from_pmf(truth, order=3), rank=3, random_state=0)
    assert triples.ambiguity("x0", given={"x1": 0, "x2": 1}).distance < 1e-6


def test_errors_in_words():
    p = random_pmf([3] * 4, 2)
    with pytest.raises(TypeError, match="ambiguity takes a LowRankPMF"):
        ambiguity("p", "x0")
    with pytest.raises(KeyError, match="No variable 'y'"):
        ambiguity(p, "y", order=2)
    with pytest.raises(ValueError, match="too large to follow"):
        ambiguity(random_pmf([6] * 20, 10), ["x0", "x1", "x2"], order=2)
    records = truth_records()
    with pytest.raises(ValueError, match="fitted to records, not to tables"):
        rj.estimate(records, 2, "ml", random_state=0).ambiguity("x0")


def truth_records():
    return random_pmf([2] * 3, 2).sample(200, random_state=0)
