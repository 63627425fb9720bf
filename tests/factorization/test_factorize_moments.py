"""Means, covariances and third moments as tables' equals."""

from itertools import combinations

import numpy as np
import pytest
from small_models import random_pmf

import rejoint as rj
from rejoint.factorization.problem import make_problem
from rejoint.metrics import tensor_error

SOLVERS = ["auto", "admm", "newton"]
BINARY = rj.Domain.of({"a": [0, 1], "b": [0, 1], "c": [0, 1]})
NUMBERS = rj.Domain.of({"a": [1, 2, 5], "b": [0, 10, 20, 25], "c": [-1, 0, 3]})


def moments_of(pmf, orders, central=True):
    """All moments of distinct variables of the given orders, by brute force."""
    joint, domain = pmf.to_dense(), pmf.domain
    values = [np.asarray(v.numeric) for v in domain]
    means = [pmf.expect(name) for name in domain.names]
    found = {}
    for order in orders:
        for subset in combinations(range(len(values)), order):
            moment = joint
            for n in reversed(range(len(values))):
                vector = np.ones(len(values[n]))
                if n in subset:
                    vector = values[n] - (means[n] if central and order > 1 else 0.0)
                moment = moment @ vector if n == moment.ndim - 1 else moment
            found[tuple(domain.names[n] for n in subset)] = float(moment)
    return found


def assert_met(tables, pmf, tolerance):
    """Every moment and every table within a tolerance, each against its own size."""
    for moment in tables.moments:
        names = [pmf.domain.names[n] for n in moment.variables]
        size = np.prod([np.linalg.norm(v) for v in moment.vectors])
        gap = moment.expectation(pmf.marginal(names)) - moment.value
        assert abs(gap) <= tolerance * size, moment.label
    for names in tables.subsets:
        share = tables[names] / tables.total(*names)
        np.testing.assert_allclose(pmf.marginal(list(names)), share, rtol=0, atol=tolerance)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("central", [True, False])
def test_moments_alone_determine_three_binary_variables(solver, central):
    # Three means, three covariances, one third moment: the seven numbers of a 2 x 2 x 2 table.
    truth = random_pmf(1, (2, 2, 2), 2, least=0.3, domain=BINARY)
    given = moments_of(truth, (1, 2, 3), central)
    tables = rj.Marginals.from_tables({}, domain=BINARY, moments=given, central=central)
    result = rj.factorize(tables, 2, solver=solver, random_state=0)
    assert_met(tables, result.pmf, 1e-9)
    # The moments are met to 1e-10 of their size; a table of eight cells magnifies little.
    assert tensor_error(truth, result.pmf) < 1e-7


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_covariance_ties_two_one_way_tables(solver):
    truth = random_pmf(2, (2, 2), 2, domain=BINARY.project(["a", "b"]))
    covariance = moments_of(truth, (2,))
    one_way = {(name,): truth.marginal([name]) for name in ("a", "b")}
    tables = rj.Marginals.from_tables(one_way, domain=truth.domain, moments=covariance)
    result = rj.factorize(tables, 2, solver=solver, random_state=0)
    assert tensor_error(truth, result.pmf) < 1e-8


@pytest.mark.parametrize(("solver", "seed"), [("newton", 1), ("newton", 2), ("auto", 1)])
def test_tables_and_moments_of_unequal_levels_are_met_together(solver, seed):
    # Levels are numbers of very different size: moments are scaled, or they would rule. Ten starts
    # find the truth for 17 of 20 pairs of solvers and seeds.
    truth = random_pmf(seed, NUMBERS.shape, 2, least=0.2, domain=NUMBERS)
    pairs = {s: truth.marginal(list(s)) for s in [("a", "b"), ("b", "c")]}
    given = moments_of(truth, (1, 2, 3))
    tables = rj.Marginals.from_tables(pairs, domain=NUMBERS, moments=given)
    result = rj.factorize(tables, 2, solver=solver, random_state=seed)
    assert_met(tables, result.pmf, 1e-8)
    assert result.error < 1e-8


def test_moments_stand_for_tables_that_are_not_given():
    # Without the covariances nothing is known of a and c together.
    truth = random_pmf(3, (2, 3, 2), 2, least=0.3)
    names = truth.domain.names
    pairs = {s: truth.marginal(list(s)) for s in [names[:2], names[1:]]}
    given = moments_of(truth, (2, 3))
    tables = rj.Marginals.from_tables(pairs, domain=truth.domain, moments=given)
    result = rj.factorize(tables, 2, random_state=0)
    outer = [names[0], names[2]]
    np.testing.assert_allclose(result.pmf.marginal(outer), truth.marginal(outer), atol=1e-8)
    assert tensor_error(truth, result.pmf) < 1e-6


def test_variances_are_moments_of_one_variable():
    domain = rj.Domain.of({"a": [0, 1, 2]})
    tables = rj.Marginals.from_tables({}, domain=domain, moments={"a": 1.2, ("a", "a"): 0.56})
    result = rj.factorize(tables, 1, solver="newton", random_state=0)
    # Mean 1.2 and E a^2 = 2 leave one table: (0.2, 0.4, 0.4).
    np.testing.assert_allclose(result.pmf.marginal(["a"]), [0.2, 0.4, 0.4], atol=1e-8)


def test_moments_that_cannot_be_met_are_met_halfway():
    # A share of 0.2 by the table, a mean of 0.6 by the moment.
    domain = rj.Domain.of({"a": [0, 1]})
    with pytest.warns(rj.Remark, match="mean of a"):
        tables = rj.Marginals.from_tables({"a": [0.8, 0.2]}, domain=domain, moments={"a": 0.6})
    # (p - .2)^2 + (.8 - p)^2 ... of two cells against (p - .6)^2 of one: p = (2 * .2 + .6) / 3
    for solver in SOLVERS:
        result = rj.factorize(tables, 1, solver=solver, random_state=0)
        assert result.pmf.marginal(["a"])[1] == pytest.approx(1 / 3, abs=1e-6)
        assert "tables that disagree" in result.stop


def test_moments_are_scaled_to_unit_vectors():
    domain = rj.Domain.of({"a": [3, 4], "b": [0, 5]})
    given = {"a": 3.5, "b": 2.0, ("a", "b"): 0.5}
    tables = rj.Marginals.from_tables({}, domain=domain, moments=given)
    first, second = make_problem(tables, "equal").moments
    np.testing.assert_allclose(np.linalg.norm(first.vectors, axis=-1), 1)
    np.testing.assert_allclose(np.linalg.norm(second.vectors, axis=-1), 1)
    np.testing.assert_allclose(first.value, [3.5 / 5, 2.0 / 5])
    # (a - 3.5) is half of (-1, 1), (b - 2) is (-2, 3)
    np.testing.assert_allclose(second.value, [0.5 / (np.sqrt(0.5) * np.sqrt(13))])
    np.testing.assert_allclose(first.vectors[0, 0], [0.6, 0.8, 0, 0])
    assert first.family.members.tolist() == [[0], [1]]


def test_weighting_by_count_leaves_moments_alone():
    given = {"a": 0.4, "b": 0.5, "c": 0.5}
    tables = rj.Marginals.from_tables({}, domain=BINARY, moments=given)
    with pytest.warns(rj.Remark, match="3 groups"):
        result = rj.factorize(tables, 1, weighting="count", random_state=0)
    assert result.pmf.expect("a") == pytest.approx(0.4, abs=1e-8)
