"""Concentrations of priors and the bound of the evidence, against formulas and brute force."""

from itertools import product
from math import lgamma

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import digamma, gammaln, logsumexp
from scipy.stats import dirichlet
from small_records import random_pmf, random_records, random_start

import rejoint as rj
from rejoint.estimation import Variational
from rejoint.estimation.data import InMemory
from rejoint.estimation.priors import (
    Prior,
    estimate_concentrations,
    log_evidence_of_counts,
    log_hyperprior,
    make_prior,
)
from rejoint.estimation.variational import dirichlet_divergence
from rejoint.model import Layout, Model
from rejoint.solver import Limits

SHAPE = (2, 3, 2)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_concentrations_are_those_of_largest_evidence(seed):
    data = InMemory.of(random_records(seed, SHAPE, 300, rank=3, missing=0.1))
    model = random_start(seed, SHAPE, 3)
    counts = data.expect(model).levels

    def loss(log_s, n):
        s = np.where(np.arange(3) == n, np.exp(log_s), 1.0)
        evidence = log_evidence_of_counts(data.layout, s, data.center, counts)
        return -(evidence + log_hyperprior(s, data.concentration_unit))[n]

    best = [minimize_scalar(loss, bounds=(-2, 13), args=(n,), method="bounded").x for n in range(3)]
    # Each of those compared is larger than the one before by a fifth.
    np.testing.assert_allclose(np.log(estimate_concentrations(data, model)), best, atol=0.1)


def test_priors_are_centered_on_the_variables_own_distributions():
    data = InMemory.of(random_records(0, SHAPE, 50))
    prior = make_prior(data, np.array([4.0, 6.0, 10.0]), 0.5)
    for n, concentration in enumerate((4.0, 6.0, 10.0)):
        rows = data.layout.rows(n)
        np.testing.assert_allclose(prior.levels[rows], concentration * data.center[rows])
    assert prior.stacked.shape == (8, 1)
    assert Prior(0.5, np.ones(7)).stacked[0, 0] == 0.5


@pytest.mark.parametrize("concentration", [0.5, 4.0, 60.0])
def test_evidence_of_counts_is_the_product_of_predictions(concentration):
    # Records one after another: each level's probability given those before (Polya's urn).
    center = np.array([0.2, 0.3, 0.5])
    sequences = [[0, 2, 2, 1, 0], [], [1, 1]]
    counts, exact = np.zeros((3, 3)), 0.0
    for f, sequence in enumerate(sequences):
        for level in sequence:
            seen, total = counts[:, f], concentration + counts[:, f].sum()
            exact += np.log((concentration * center[level] + seen[level]) / total)
            counts[level, f] += 1
    found = log_evidence_of_counts(Layout((3,)), np.array([concentration]), center, counts)
    assert found == pytest.approx(exact, abs=1e-10)


def test_divergence_of_dirichlets():
    rng = np.random.default_rng(0)
    posterior, prior = np.array([[3.0], [5.0], [2.0]]), np.array([[1.0], [2.0], [1.5]])
    draws = rng.dirichlet(posterior[:, 0], size=200_000).T
    ratio = dirichlet.logpdf(draws, posterior[:, 0]) - dirichlet.logpdf(draws, prior[:, 0])
    layout = Layout((3,))
    logs = digamma(posterior) - digamma(posterior.sum())
    error = 5 * ratio.std() / np.sqrt(ratio.size)
    assert abs(dirichlet_divergence(layout, posterior, prior, logs) - ratio.mean()) < error
    assert dirichlet_divergence(layout, prior, prior, logs) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("pseudo_count", [0.2, 1.0])
def test_bound_rises(pseudo_count, missing):
    data = InMemory.of(random_records(1, SHAPE, 120, rank=3, missing=missing))
    solver = Variational(pseudo_count=pseudo_count)
    state = solver.init(data, random_start(1, SHAPE, 4))
    objectives = []
    for _ in range(80):
        state = solver.step(data, state)
        objectives.append(state.objective)
    assert (np.diff(objectives) <= 1e-8).all()
    assert objectives[0] - objectives[-1] > 0.1


def test_sparse_weights_empty_classes_that_are_not_needed():
    data = InMemory.of(random_records(4, SHAPE, 400, rank=1))

    def sorted_weights(pseudo_count):
        solver = Variational(pseudo_count=pseudo_count)
        state = solver.init(data, random_start(2, SHAPE, 4))
        for _ in range(200):
            state = solver.step(data, state)
        return np.sort(state.model.weights)

    # The two lightest of four classes keep nothing but their pseudo-counts, 0.05 in 400.2 each.
    np.testing.assert_allclose(sorted_weights(0.05)[:2], 0.05 / 400.2, rtol=1e-3)
    # Large pseudo-counts keep all alive.
    assert sorted_weights(5.0).min() > 0.01


def exact_log_evidence(data, codes, concentrations, pseudo_count, rank):
    """Sum over all assignments of records to classes."""
    terms = []
    for classes in product(range(rank), repeat=len(codes)):
        sizes = np.bincount(classes, minlength=rank)
        term = lgamma(rank * pseudo_count) - lgamma(rank * pseudo_count + len(codes))
        term += float(np.sum(gammaln(pseudo_count + sizes) - lgamma(pseudo_count)))
        for n, size in enumerate(data.layout.levels):
            counts = np.zeros((size, rank))
            for row, f in zip(codes, classes, strict=True):
                if row[n] >= 0:
                    counts[row[n], f] += 1
            center = data.center[data.layout.rows(n)]
            only = concentrations[n : n + 1]
            term += float(log_evidence_of_counts(Layout((size,)), only, center, counts)[0])
        terms.append(term)
    return float(logsumexp(terms))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_bound_is_below_the_evidence_but_not_far(seed):
    records = random_records(seed, SHAPE, 7, missing=0.2, concentration=0.3)
    data = InMemory.of(records)
    solver = Variational()
    state = solver.init(data, random_start(seed, SHAPE, 2))
    for _ in range(100):
        state = solver.step(data, state)
    concentrations = data.layout.sums(state.prior[1:, 0])
    bound, exact = -state.objective, exact_log_evidence(data, records.codes, concentrations, 1.0, 2)
    assert bound <= exact + 1e-9
    # Seven records have at most 2^7 assignments for one mode to miss.
    assert bound > exact - 7 * np.log(2)


def test_rank_one_has_no_gap():
    # One class: the posterior factorizes, and the bound is the evidence itself.
    records = random_records(3, SHAPE, 9, missing=0.2)
    data = InMemory.of(records)
    solver = Variational()
    state = solver.init(data, Model(data.layout, np.ones(1), random_start(0, SHAPE, 1).factors))
    for _ in range(30):
        state = solver.step(data, state)
    concentrations = data.layout.sums(state.prior[1:, 0])
    exact = exact_log_evidence(data, records.codes, concentrations, 1.0, 1)
    assert -state.objective == pytest.approx(exact, abs=1e-8)


# --- estimate with solver=Variational() ---------------------------------------------------------


def test_estimate_takes_the_start_with_the_best_bound():
    records = random_records(1, (3, 3, 3, 3), 200, rank=3, missing=0.2)
    result = rj.estimate(records, 3, Variational(), n_init=5, random_state=0)
    assert len(result.starts) == 5
    best = min(result.starts, key=lambda run: run.objective)
    # Classes are sorted by weight, and none is equal to another here.
    np.testing.assert_allclose(result.pmf.weights, -np.sort(-best.weights), atol=1e-4)
    assert {record.solver for record in result.history} == {"variational"}
    assert result.posterior is None


def test_estimate_is_the_posterior_mean():
    records = random_records(1, (3, 3, 3, 3), 200, rank=3, missing=0.2)
    start, data = random_pmf(2, (3, 3, 3, 3), 2), InMemory.of(records)
    pmf = rj.estimate(records, 2, Variational(), start=start).pmf
    solver = Variational()
    state = solver.init(data, Model.of(pmf.weights, pmf.factors))
    for _ in range(50):
        state = solver.step(data, state)
    # Steps of a converged model leave it where it is, to the root of the stopping rule.
    np.testing.assert_allclose(state.model.weights, pmf.weights, atol=5e-3)
    assert min(factor.min() for factor in pmf.factors) > 0


def test_estimate_beyond_memory_is_that_in_memory():
    records = random_records(1, (3, 3, 3, 3), 200, rank=3, missing=0.2)
    start, limits = random_pmf(2, (3, 3, 3, 3), 2), Limits(max_steps=2000, progress=1e-12)
    solver = Variational(limits=limits)
    scan = rj.scan(records, size=30, memory=0)
    one, other = (rj.estimate(data, 2, solver, start=start) for data in (records, scan))
    # In memory probabilities near zero are lifted at the end, which gains nothing here.
    assert rj.metrics.total_variation(one.pmf, other.pmf) < 1e-3
    assert one.log_likelihood == pytest.approx(other.log_likelihood, abs=1e-2)


def test_estimate_with_small_pseudo_counts_empties_classes():
    records = random_records(4, SHAPE, 400, rank=1)
    solver = Variational(pseudo_count=0.05)
    result = rj.estimate(records, 4, solver, n_init=3, random_state=0)
    # Three of four classes keep nothing but their pseudo-counts, 0.15 records together.
    assert result.pmf.rank == 1
    assert "3 of 4 classes stood for less than 0.5 records together" in result.stop
