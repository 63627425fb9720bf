"""Strengths of priors and the evidence's lower bound, against formulas and brute force."""

from itertools import product
from math import lgamma

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import gammaln, logsumexp
from scipy.stats import dirichlet
from small_records import random_records, random_start

from rejoint.estimation.data import RecordProblem
from rejoint.estimation.priors import (
    Prior,
    best_strength,
    first_strengths,
    log_evidence_of_counts,
    log_hyperprior,
    make_prior,
)
from rejoint.estimation.variational import Variational, dirichlet_divergence, expected_logs
from rejoint.solver import run

SHAPE = (2, 3, 2)


def columns_log_density(log_s, centre, columns):
    """Log of prior and hyperprior of a strength, given the columns, by SciPy."""
    s = np.exp(log_s)
    prior = sum(dirichlet.logpdf(column, s * centre) for column in columns.T)
    return prior + float(log_hyperprior(s, len(centre)))


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(1, 6), st.floats(-1.0, 2.5))
def test_best_strength_is_the_maximum(seed, size, rank, log10_true):
    rng = np.random.default_rng(seed)
    centre = rng.dirichlet(np.full(size, 5.0))
    columns = rng.dirichlet(np.maximum(10**log10_true * centre, 0.3), size=rank).T
    columns = np.maximum(columns, 1e-12) / np.maximum(columns, 1e-12).sum(axis=0)
    found = best_strength(2.0 * size, centre, np.log(columns))
    best = minimize_scalar(
        lambda t: -columns_log_density(t, centre, columns),
        bounds=(np.log(0.1), np.log(1e6)),
        method="bounded",
        options={"xatol": 1e-8},
    )
    # The maximum of a smooth function is found to the root of its rounding.
    assert np.log(found) == pytest.approx(best.x, abs=1e-4)


def test_best_strength_does_not_depend_on_where_it_begins():
    rng = np.random.default_rng(0)
    centre = np.array([0.2, 0.3, 0.5])
    logs = np.log(rng.dirichlet(8 * centre, size=4).T)
    ends = [best_strength(begin, centre, logs) for begin in (0.1, 6.0, 1e5)]
    np.testing.assert_allclose(ends, ends[0], rtol=1e-5)


def test_a_constant_variable_keeps_its_strength():
    assert best_strength(3.5, np.ones(1), np.zeros((1, 4))) == 3.5


def test_hyperprior_peaks_at_twice_the_levels():
    grid = np.exp(np.linspace(-2, 5, 2001))
    assert grid[np.argmax(log_hyperprior(grid, 3))] == pytest.approx(6.0, rel=0.01)
    problem = RecordProblem.of(random_records(0, SHAPE, 20))
    assert first_strengths(problem).tolist() == [4.0, 6.0, 4.0]


def test_priors_are_centred_on_the_variables_own_shares():
    problem = RecordProblem.of(random_records(0, SHAPE, 50))
    prior = make_prior(problem, np.array([4.0, 6.0, 10.0]), 0.5)
    for n, strength in enumerate((4.0, 6.0, 10.0)):
        rows = problem.rows(n)
        np.testing.assert_allclose(prior.levels[rows], strength * problem.centre[rows])
    assert prior.stacked.shape == (8, 1)
    assert Prior(0.5, np.ones(7)).stacked[0, 0] == 0.5


@pytest.mark.parametrize("strength", [0.5, 4.0, 60.0])
def test_evidence_of_counts_is_the_product_of_predictions(strength):
    # Records one after another: each level's probability given those before (Polya's urn).
    centre = np.array([0.2, 0.3, 0.5])
    sequences = [[0, 2, 2, 1, 0], [], [1, 1]]
    counts, exact = np.zeros((3, 3)), 0.0
    for f, sequence in enumerate(sequences):
        for level in sequence:
            seen = counts[:, f]
            exact += np.log((strength * centre[level] + seen[level]) / (strength + seen.sum()))
            counts[level, f] += 1
    assert log_evidence_of_counts(strength, centre, counts) == pytest.approx(exact, abs=1e-10)


def test_divergence_of_dirichlets():
    rng = np.random.default_rng(0)
    posterior, prior = np.array([[3.0], [5.0], [2.0]]), np.array([[1.0], [2.0], [1.5]])
    draws = rng.dirichlet(posterior[:, 0], size=200_000).T
    ratio = dirichlet.logpdf(draws, posterior[:, 0]) - dirichlet.logpdf(draws, prior[:, 0])
    records = random_records(0, (3,), 10)
    logs = expected_logs(RecordProblem.of(records), np.vstack([[1.0], posterior]))[1:]
    error = 5 * ratio.std() / np.sqrt(ratio.size)
    assert abs(dirichlet_divergence(posterior, prior, logs) - ratio.mean()) < error
    assert dirichlet_divergence(prior, prior, logs) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("sparsity", [0.2, 1.0])
def test_bound_rises(sparsity, missing):
    problem = RecordProblem.of(random_records(1, SHAPE, 120, rank=3, missing=missing))
    solver = Variational(sparsity=sparsity)
    state = solver.init(problem, *random_start(1, SHAPE, 4))
    objectives = []
    for _ in range(80):
        state = solver.step(problem, state)
        objectives.append(state.objective)
    # The strengths' Newton steps end at 1e-6, which the flat top turns into less than 1e-8.
    assert (np.diff(objectives) <= 1e-8).all()
    assert objectives[0] - objectives[-1] > 0.1


def test_the_loop_goes_on_while_the_bound_rises():
    problem = RecordProblem.of(random_records(1, (4,) * 4, 500, rank=3))
    found = run(Variational(), problem, *random_start(1, (4,) * 4, 3))
    assert len(found.records) > 12  # the window is ten steps, and the first has no bound yet
    assert np.isfinite(found.objective)


def test_means_lie_on_the_simplex():
    problem = RecordProblem.of(random_records(1, SHAPE, 50))
    state = Variational().init(problem, *random_start(1, SHAPE, 3))
    assert state.weights.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(np.add.reduceat(state.factors, [0, 2, 5]), 1.0)


def test_sparse_weights_empty_classes_that_are_not_needed():
    problem = RecordProblem.of(random_records(4, SHAPE, 400, rank=1))

    def sorted_weights(sparsity):
        solver = Variational(sparsity=sparsity)
        state = solver.init(problem, *random_start(2, SHAPE, 4))
        for _ in range(200):
            state = solver.step(problem, state)
        return np.sort(state.weights)

    # The two lightest of four classes keep nothing but their pseudo-counts, 0.05 in 400.2 each.
    np.testing.assert_allclose(sorted_weights(0.05)[:2], 0.05 / 400.2, rtol=1e-3)
    # Large pseudo-counts keep all alive.
    assert sorted_weights(5.0).min() > 0.01


def exact_log_evidence(problem, codes, strengths, sparsity, rank):
    """Sum over all assignments of records to classes."""
    terms = []
    for classes in product(range(rank), repeat=len(codes)):
        sizes = np.bincount(classes, minlength=rank)
        term = lgamma(rank * sparsity) - lgamma(rank * sparsity + len(codes))
        term += float(np.sum(gammaln(sparsity + sizes) - lgamma(sparsity)))
        for n, size in enumerate(problem.levels):
            counts = np.zeros((size, rank))
            for row, f in zip(codes, classes, strict=True):
                if row[n] >= 0:
                    counts[row[n], f] += 1
            term += log_evidence_of_counts(strengths[n], problem.centre[problem.rows(n)], counts)
        terms.append(term)
    return float(logsumexp(terms))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_bound_is_below_the_evidence_but_not_far(seed):
    records = random_records(seed, SHAPE, 7, missing=0.2, concentration=0.3)
    problem = RecordProblem.of(records)
    solver = Variational()
    state = solver.init(problem, *random_start(seed, SHAPE, 2))
    for _ in range(100):
        before, state = state, solver.step(problem, state)
    # The objective of a state is that of the posteriors it was made from.
    hyper = float(np.sum(log_hyperprior(before.strengths, np.array(SHAPE))))
    bound = -state.objective - hyper
    exact = exact_log_evidence(problem, np.asarray(records.codes), before.strengths, 1.0, 2)
    assert bound <= exact + 1e-9
    # Seven records have at most 2^7 assignments for one mode to miss.
    assert bound > exact - 7 * np.log(2)


def test_rank_one_has_no_gap():
    # One class: the posterior factorises, and the bound is the evidence itself.
    records = random_records(3, SHAPE, 9, missing=0.2)
    problem = RecordProblem.of(records)
    solver = Variational()
    state = solver.init(problem, np.ones(1), random_start(0, SHAPE, 1)[1])
    for _ in range(30):
        before, state = state, solver.step(problem, state)
    hyper = float(np.sum(log_hyperprior(before.strengths, np.array(SHAPE))))
    exact = exact_log_evidence(problem, np.asarray(records.codes), before.strengths, 1.0, 1)
    assert -state.objective - hyper == pytest.approx(exact, abs=1e-8)
