"""MTTKRPs, residuals and the objective against sums over tables, spelled out."""

import numpy as np
import pytest
from small_models import (
    all_subsets,
    blocks,
    model_table,
    objective,
    random_model,
    random_problem,
    unpacked,
)

from rejoint.factorization.problem import mttkrp
from rejoint.model import Model

CASES = {
    "all triples, few variables": ((3, 4, 2, 5), all_subsets(4, 3), 0.3),
    # From eight variables on all triples are laid out as one block tensor.
    "all triples, many variables": ((2, 3, 2, 4, 1, 3, 2, 2, 5), all_subsets(9, 3), True),
    "all triples, many variables, one weight": ((2, 3, 2, 2, 3, 2, 2, 2), all_subsets(8, 3), 2.5),
    "all triples, many variables, weighted": ((2, 3, 2, 2, 3, 2, 2, 2), all_subsets(8, 3), False),
    "all triples and pairs, many variables": ((2, 3, 2, 2, 3, 2, 2, 2), all_subsets(8, 2, 3), True),
    "all of orders 1 to 4": ((3, 2, 4, 2, 3), all_subsets(5, 1, 2, 3, 4), True),
    "mixed, in no order": (
        (2, 12, 3, 7, 1, 5),
        ((1, 3), (0, 1, 2), (5,), (2, 3, 4, 5), (0, 5), (0, 4, 5)),
        False,
    ),
    "one table of all": ((3, 4, 2), ((0, 1, 2),), False),
    "one variable": ((4,), ((0,),), True),
}
# Sums of some hundred products of shares: rounding of numbers below one.
CLOSE = {"rtol": 1e-11, "atol": 1e-14}


def contract(problem, factors, tables, n, owned):
    """``sum_S omega_S X_S x_{m != n} A_m`` by one einsum for each table."""
    total = np.zeros((problem.levels[n], factors.shape[1]))
    for subset, table, weight in zip(problem.subsets, tables, problem.weight, strict=True):
        if n not in subset or (owned and subset[0] != n):
            continue
        letters = "abcdef"[: len(subset)]
        mine = letters[subset.index(n)]
        others = [m for m in subset if m != n]
        sides = [letters[subset.index(m)] + "z" for m in others]
        factor = [blocks(problem, factors)[m] for m in others]
        # The rank has an axis of its own also where a table has no other variable.
        formula = f"{letters},{','.join([*sides, 'z'])}->{mine}z"
        total += weight * np.einsum(formula, table, *factor, np.ones(factors.shape[1]))
    return total


@pytest.fixture(params=CASES, name="case")
def _case(request):
    levels, subsets, even = CASES[request.param]
    problem = random_problem(7, levels, subsets, even)
    return problem, *unpacked(random_model(8, levels, 3))


@pytest.mark.parametrize("owned", [False, True])
def test_mttkrp(case, owned):
    problem, _, factors = case
    for n in range(len(problem.levels)):
        wanted = contract(problem, factors, problem.tables, n, owned)
        np.testing.assert_allclose(mttkrp(problem, factors, n, owned=owned), wanted, **CLOSE)


def test_gradient(case):
    problem, weights, factors = case
    residuals = [
        model_table(problem, weights, factors, subset) - table
        for subset, table in zip(problem.subsets, problem.tables, strict=True)
    ]
    value, slope = problem.gradient(Model(problem.layout, weights, factors))
    head = np.zeros_like(weights)
    for n in range(len(problem.levels)):
        rows = problem.layout.rows(n)
        wanted = weights * contract(problem, factors, residuals, n, owned=False)
        np.testing.assert_allclose(slope[1:][rows], wanted, **CLOSE)
        head += np.sum(contract(problem, factors, residuals, n, owned=True) * factors[rows], axis=0)
    np.testing.assert_allclose(slope[0], head, **CLOSE)
    squares = [np.sum(r**2) for r in residuals]
    assert value == pytest.approx(0.5 * problem.weight @ squares, rel=1e-11)


def test_objective_counts_every_table_once(case):
    problem, weights, factors = case
    wanted = 0.0
    for subset, table, weight in zip(problem.subsets, problem.tables, problem.weight, strict=True):
        wanted += (
            0.5 * weight * np.sum((table - model_table(problem, weights, factors, subset)) ** 2)
        )
    assert objective(problem, weights, factors) == pytest.approx(wanted, rel=1e-12)


def test_objective_of_moments():
    problem = random_problem(1, (3, 2, 4), ((0, 1),), moments=[(1, 2), (2, 3), (3, 2)])
    weights, factors = unpacked(random_model(2, problem.levels, 2))
    gaps = np.ravel(problem.tables[0] - model_table(problem, weights, factors, (0, 1)))
    wanted = 0.5 * gaps @ gaps
    for moments in problem.moments:
        for k, subset in enumerate(moments.family.members.tolist()):
            value = model_table(problem, weights, factors, subset)
            for slot, n in enumerate(subset):
                value = np.tensordot(
                    moments.vectors[k, slot, problem.layout.rows(n)], value, (0, 0)
                )
            wanted += 0.5 * moments.family.weight[k] * (moments.value[k] - value) ** 2
    assert objective(problem, weights, factors) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("levels", [(3, 4, 2, 5), (2, 3, 2, 2, 3, 2, 2, 2)])
def test_the_objective_near_zero_keeps_its_digits(levels):
    # |X|^2/2 - v w + w G w/2 would be off by about 1e-17 and say anything at all.
    subsets = all_subsets(len(levels), 3)
    weights, factors = unpacked(random_model(3, levels, 2))
    exact = random_problem(4, levels, subsets)
    tables = [model_table(exact, weights, factors, s) for s in subsets]
    tables[0] = tables[0] + 1e-10
    problem = type(exact)(exact.levels, exact.subsets, tuple(tables), exact.weight)
    # The residual 1e-10 is the difference of numbers near 0.1, known to 1e-17: 7 digits.
    wanted = 0.5 * tables[0].size * 1e-20
    assert objective(problem, weights, factors) == pytest.approx(wanted, rel=1e-5)


def test_scale_is_what_errors_are_measured_by():
    problem = random_problem(5, (2, 3, 2), ((0, 1), (1, 2)), even=False, moments=[(2, 2)])
    tables = sum(w * np.sum(t**2) for w, t in zip(problem.weight, problem.tables, strict=True))
    moments = problem.moments[0]
    wanted = tables + moments.family.weight @ moments.value**2
    assert problem.scale == pytest.approx(wanted, rel=1e-14)
