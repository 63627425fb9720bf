"""Verdicts that agree: certify, ambiguity, jacobian, plan and the remarks of fits."""

import warnings
from itertools import combinations

import numpy as np
import pytest

import rejoint as rj
from rejoint.identifiability.fiber import OTHER_CLASSES, Fiber
from rejoint.identifiability.layout import read_layout
from rejoint.identifiability.plan import PlanGoal
from rejoint.model import Model
from rejoint.queries.mixture import blocks_of_tables

certify, ambiguity = rj.identifiability.certify, rj.identifiability.ambiguity
plan, jacobian = rj.identifiability.plan, rj.identifiability.jacobian


def with_own_levels(levels, rank, rng, noise=0.0):
    """Factors of which each class has a level of its own, up to some noise."""
    factors = []
    for size in levels:
        a = rng.random((size, rank))
        a[:rank] = np.diag(0.2 + rng.random(rank)) + noise * rng.random((rank, rank))
        factors.append((a / a.sum(axis=0))[rng.permutation(size)])
    return factors


def with_zeros(levels, rank, rng, share):
    factors = []
    for size in levels:
        a = rng.random((size, rank)) * (rng.random((size, rank)) > share)
        a[:, ~a.any(axis=0)] = 1.0
        factors.append(a / a.sum(axis=0))
    return factors


def structured(seed):
    """A model with structure, the names of its tables, and the kind of its structure."""
    rng = np.random.default_rng(seed)
    kind = ["separable", "near", "scattered", "equal", "zeros", "generic"][seed % 6]
    rank, size = int(rng.integers(2, 4)), int(rng.integers(3, 5))
    levels = [int(i) for i in rng.integers(rank, rank + 3, size)]
    factors = [rng.dirichlet(np.ones(i), size=rank).T for i in levels]
    if kind in ("separable", "near"):
        factors = with_own_levels(levels, rank, rng, 0.1 if kind == "near" else 0.0)
    elif kind in ("scattered", "zeros"):
        factors = with_zeros(levels, rank, rng, 0.5 if kind == "scattered" else 0.25)
    elif kind == "equal":
        factors[0][:, 0] = factors[0][:, 1]
    pairs, triples = (list(combinations(range(size), k)) for k in (2, 3))
    every = pairs + triples
    some = [every[k] for k in rng.permutation(len(every))[: int(rng.integers(2, 6))]]
    subsets = [pairs, triples, some][seed // 6 % 3]
    pmf = rj.LowRankPMF(rng.dirichlet(np.full(rank, 3.0)), factors)
    return kind, pmf, [tuple(f"x{n}" for n in s) for s in subsets]


@pytest.mark.parametrize("seed", range(36))
def test_no_verdict_contradicts_another(seed):
    kind, p, subsets = structured(seed)
    found = certify(p, subsets)
    fiber = Fiber(read_layout(subsets=subsets, domain=p.domain), Model.of(p.weights, p.factors))
    if kind == "separable" and seed // 6 % 3 < 2:
        assert found.unique
    if found.unique is False:
        one, other = (rj.Marginals.from_pmf(m, subsets=subsets) for m in (p, found.other))
        np.testing.assert_allclose(one.flat, other.flat, atol=1e-12)
        rows = np.vstack([found.other.weights, *found.other.factors])
        assert fiber.class_distance(rows) > OTHER_CLASSES / 2
        assert found.verdict.startswith("Not unique")
    if found.unique:
        assert found.local.parameters is not False
        assert ambiguity(p, list(p.domain.names), subsets=subsets).is_proved
        rng = np.random.default_rng(seed)
        for _ in range(3):
            fitted = fiber.fit(fiber.random_start(rng), 100)
            # Tables are met to 1e-13, and classes as well as they are conditioned.
            assert fitted is None or fiber.class_distance(fitted) < 1e-6
    if kind == "generic" and max(map(len, subsets)) == 2:
        assert found.unique is False


@pytest.fixture(scope="module")
def separable():
    rng = np.random.default_rng(0)
    return rj.LowRankPMF([0.2, 0.3, 0.5], with_own_levels([5] * 3, 3, rng))


class TestSeparableFactors:
    """Three variables of five levels, three classes with levels of their own: pairs will do."""

    def test_certificate(self, separable):
        found = certify(separable, order=2)
        assert found.unique
        assert "(Separability, groups" in found.verdict

    def test_the_jacobian_sees_the_zeros(self, separable):
        local = jacobian(at=separable, order=2)
        assert (local.parameters, local.joint, local.free, local.held) == (True, True, 0, 3)
        assert "would make a zero probability negative" in local.verdict

    def test_ambiguity(self, separable):
        two = ambiguity(separable, ["x0", "x1", "x2"], order=2)
        assert two.distance == 0.0
        assert "no other model of rank 3 has these tables (Separability" in two.verdict

    def test_fits_recover_it_and_say_so(self, separable):
        tables = rj.Marginals.from_pmf(separable, order=2)
        with warnings.catch_warnings():
            warnings.simplefilter("error", rj.Remark)
            result = rj.factorize(tables, 3, random_state=0)
        assert rj.metrics.tensor_error(separable, result.pmf) < 1e-10
        assert "No other model of rank 3 has these tables (Separability" in result.stop

    def test_one_variable_without_own_levels(self, separable):
        # The other two have them, and the tables within a group tie the groups together.
        blurred = [*separable.factors[:2], np.full((5, 3), 0.2) + 0.3 * separable.factors[2]]
        blurred[2] /= blurred[2].sum(axis=0)
        p = rj.LowRankPMF(separable.weights, blurred)
        assert certify(p, order=2).unique


def test_scattered_zeros_are_enough():
    rng = np.random.default_rng(2)
    p = rj.LowRankPMF([0.3, 0.3, 0.4], with_zeros([4] * 4, 3, rng, 0.3))
    assert "(Sufficient scattering, groups" in certify(p, order=2).verdict


def test_ambiguity_from_its_own_ends():
    rng = np.random.default_rng(0)
    factors = [rng.dirichlet(np.ones(2), size=3).T for _ in range(6)]
    p = rj.LowRankPMF(rng.dirichlet(np.full(3, 3.0)), factors)
    two = ambiguity(p, ["x0", "x1", "x2"], order=2)
    assert two.distance > 0.06  # 0.0315 by one walk from the model
    again = ambiguity(two.models[1], ["x0", "x1", "x2"], order=2)
    assert two.distance > 0.99 * again.distance
    assert not two.is_proved
    assert two.limits.low <= two.answers[0][two._cell] <= two.limits.high


def test_widest_answers_are_said_to_be_the_widest():
    # Independence given two classes that the tables do not show: everything is possible.
    p = rj.LowRankPMF([0.5, 0.5], [[[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.5]]])
    two = ambiguity(p, "x0", {"x1": 0}, order=1)
    assert two.distance == pytest.approx(1.0, abs=1e-4)


def test_six_tables_of_six_binary_variables():
    assert len(plan([2] * 6, 4, slack=0)) == 6


@pytest.mark.parametrize(
    ("levels", "rank"), [([2] * 5, 3), ([2, 2, 3, 3], 4), ([2, 2, 3, 3, 3], 6), ([2] * 4, 2)]
)
def test_plans_are_minimal(levels, rank):
    best = plan(levels, rank, slack=0)
    goal = PlanGoal(rj.Domain.of_shape(levels), 3, rank, 0.0, ())
    fewer = combinations(goal.candidates, len(best) - 1)
    assert not any(goal.is_met(list(subsets)) for subsets in fewer if subsets)


def test_blocks_are_composite_variables():
    rng = np.random.default_rng(0)
    factors = [rng.dirichlet(np.ones(2), size=2).T for _ in range(3)]
    table = rng.dirichlet(np.ones(4), size=2).T
    cells = table.reshape(2, 2, 2)
    blocks = blocks_of_tables([[0, 1]], [table], {0: 2, 1: 2})
    p = rj.LowRankPMF(
        [0.4, 0.6], [cells.sum(axis=1), cells.sum(axis=0), *factors[:2]], blocks=blocks
    )
    whole = [("x0", "x1", "x2", "x3")]
    found = certify(p, whole)
    assert found.layout.domain.names == ("x0 & x1", "x2", "x3")
    assert found.unique
    pairs = [("x0", "x1", "x2"), ("x0", "x1", "x3"), ("x2", "x3")]
    found = certify(p, pairs)
    assert found.unique is False
    one, other = (rj.Marginals.from_pmf(m, subsets=pairs) for m in (p, found.other))
    np.testing.assert_allclose(one.flat, other.flat, atol=1e-12)
    assert ambiguity(p, ["x0", "x2", "x3"], subsets=pairs).distance > 0.001
    assert certify(p, order=2).unique is None
    with pytest.raises(ValueError, match="blocks whole"):
        ambiguity(p, ["x0", "x2", "x3"], order=2)


@pytest.mark.parametrize("weights", [[0.2, 0.3, 0.5], [0.3, 0.2, 0.5], [0.5, 0.5, 0.0]])
def test_classes_that_could_be_others_are_shown(weights):
    rng = np.random.default_rng(0)
    factors = [rng.dirichlet(np.ones(3), size=3).T for _ in range(4)]
    if all(weights):
        factors = [a[:, [0, 0, 1]] for a in factors]
    p = rj.LowRankPMF(weights, factors)
    found = certify(p, order=3)
    assert found.unique is False
    assert found.same_joint
    one, other = (rj.Marginals.from_pmf(m, order=3) for m in (p, found.other))
    np.testing.assert_allclose(one.flat, other.flat, atol=1e-15)
    assert any((a != b).any() for a, b in zip(p.factors, found.other.factors, strict=True)) or (
        found.other.weights.tolist() != list(weights)
    )
