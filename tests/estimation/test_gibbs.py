"""Gibbs chains against posteriors that are known exactly."""

from itertools import islice, product

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from small_records import random_records, random_start

from rejoint.estimation import Bayes
from rejoint.estimation.data import RecordProblem
from rejoint.estimation.gibbs import Draw, chain, draw_columns
from rejoint.estimation.priors import (
    first_strengths,
    log_evidence_of_counts,
    log_hyperprior,
)

SHAPE = (2, 3)


def draws_of(problem, rank, number, seed=0, sparsity=1.0, skip=100):
    start = Draw(*random_start(seed, problem.levels, rank), first_strengths(problem))
    steps = chain(problem, start, sparsity, np.random.default_rng(seed))
    return list(islice(steps, skip, skip + number))


def monte_carlo_error(series):
    """Standard error of the mean of a chain, by means of its fifty batches."""
    means = np.array([part.mean(axis=0) for part in np.array_split(series, 50)])
    return means.std(axis=0, ddof=1) / np.sqrt(50)


def strength_grid(size):
    """Strengths, even in their logarithm, over five standard deviations of the hyperprior."""
    return 2.0 * size * np.exp(np.linspace(-5, 5, 201) * 0.5)


def test_rank_one_agrees_with_the_dirichlet_posterior():
    problem = RecordProblem.of(random_records(0, SHAPE, 12, missing=0.3))
    drawn = np.array([d.factors[:, 0] for d in draws_of(problem, 1, 6000)])
    error = monte_carlo_error(drawn)
    for n, size in enumerate(SHAPE):
        rows, grid = problem.rows(n), strength_grid(size)
        counts, centre = problem.level_totals[rows], problem.centre[rows]
        logs = [
            log_evidence_of_counts(s, centre, counts[:, None]) + float(log_hyperprior(s, size))
            for s in grid
        ]
        share = np.exp(logs - logsumexp(logs))
        means = (grid[:, None] * centre + counts) / (grid[:, None] + counts.sum())
        exact = share @ means
        # Five standard errors: no seed in a million is beyond.
        assert (np.abs(drawn[:, rows].mean(axis=0) - exact) < 5 * error[rows]).all()
        spread = share @ (means * (1 - means) / (grid[:, None] + counts.sum() + 1) + means**2)
        exact_deviation = np.sqrt(spread - exact**2)
        np.testing.assert_allclose(drawn[:, rows].std(axis=0), exact_deviation, rtol=0.08)


def exact_joint(problem, codes, rank, sparsity):
    """Posterior mean of the joint: sums over assignments, sums over grids of strengths."""
    logs, tables = [], []
    for classes in product(range(rank), repeat=len(codes)):
        sizes = np.bincount(classes, minlength=rank)
        log_weight, columns = float(np.sum(gammaln(sparsity + sizes))), []
        for n, size in enumerate(problem.levels):
            counts = np.zeros((size, rank))
            for row, f in zip(codes, classes, strict=True):
                if row[n] >= 0:
                    counts[row[n], f] += 1
            centre, grid = problem.centre[problem.rows(n)], strength_grid(size)
            terms = [
                log_evidence_of_counts(s, centre, counts) + float(log_hyperprior(s, size))
                for s in grid
            ]
            share = np.exp(terms - logsumexp(terms))
            base = grid[:, None, None] * centre[:, None] + counts
            # The strength is shared by the classes, whose means are mixed one by one all the
            # same: a cell of the joint takes one class of each variable.
            columns.append(np.tensordot(share, base / base.sum(axis=1, keepdims=True), axes=1))
            log_weight += float(logsumexp(terms))
        weights = (sparsity + sizes) / (rank * sparsity + len(codes))
        logs.append(log_weight)
        tables.append(np.einsum("f,af,bf->ab", weights, *columns))
    share = np.exp(logs - logsumexp(logs))
    return np.tensordot(share, np.array(tables), axes=1)


@pytest.mark.parametrize("sparsity", [1.0, 0.3])
def test_rank_two_agrees_with_the_sum_over_assignments(sparsity):
    codes = np.array([[0, 0], [0, 0], [1, 2], [1, -1], [0, 1]])
    records = random_records(0, SHAPE, 5)
    problem = RecordProblem.of(type(records)(records.domain, codes))
    assert len(problem.codes) == 4  # a merged pair, whose two classes are drawn apart
    drawn = np.array(
        [
            np.einsum("f,af,bf->ab", d.weights, d.factors[:2], d.factors[2:])
            for d in draws_of(problem, 2, 8000, sparsity=sparsity)
        ]
    )
    exact = exact_joint(problem, codes, 2, sparsity)
    assert (np.abs(drawn.mean(axis=0) - exact) < 5 * monte_carlo_error(drawn)).all()


def test_strengths_follow_their_hyperprior_where_nothing_is_known():
    # A variable that no record has: only the hyperprior, whose logarithm is normal.
    records = random_records(0, (2, 4), 5)
    codes = np.array(records.codes)
    codes[:, 1] = -1
    problem = RecordProblem.of(type(records)(records.domain, codes))
    logs = np.log([d.strengths[1] for d in draws_of(problem, 1, 6000)])
    assert abs(logs.mean() - np.log(8.0)) < 5 * monte_carlo_error(logs[:, None])[0]
    assert logs.std() == pytest.approx(0.5, rel=0.1)


def test_fractions_of_records_are_not_lost():
    # 200 records of weight 0.4 are as sure as 80 records.
    records = random_records(5, (2,), 200)
    merged = RecordProblem.of(records)
    codes = np.ascontiguousarray(records.codes)
    problem = RecordProblem(records.domain, codes, np.full(200, 0.4), 1)
    share = merged.level_totals[0] / 200
    drawn = np.array([d.factors[0, 0] for d in draws_of(problem, 1, 1000)])
    alone = np.sqrt(share * (1 - share) / 80)
    assert abs(drawn.mean() - share) < 0.5 * alone
    assert 0.7 * alone < drawn.std() < 1.6 * alone


def test_draws_lie_on_the_simplex():
    problem = RecordProblem.of(random_records(1, (2, 3, 1), 30, missing=0.3))
    for d in draws_of(problem, 4, 50, sparsity=0.05):
        assert d.weights.min() >= 0
        assert d.factors.min() >= 0
        assert d.weights.sum() == pytest.approx(1.0, abs=1e-12)
        np.testing.assert_allclose(np.add.reduceat(d.factors, [0, 2, 5]), 1.0, atol=1e-12)
        assert (d.strengths > 0).all()


def test_tiny_pseudo_counts_give_columns_still():
    problem = RecordProblem.of(random_records(1, SHAPE, 5))
    columns = draw_columns(problem, np.full((5, 3), 1e-9), np.random.default_rng(0))
    np.testing.assert_allclose(np.add.reduceat(columns, [0, 2]), 1.0)


def test_seeds_reproduce_and_differ():
    problem = RecordProblem.of(random_records(1, SHAPE, 30))
    one, same = (draws_of(problem, 2, 20)[-1].factors for _ in range(2))
    np.testing.assert_array_equal(one, same)
    start = Draw(*random_start(0, SHAPE, 2), first_strengths(problem))
    other = next(chain(problem, start, 1.0, np.random.default_rng(1)))
    first = next(chain(problem, start, 1.0, np.random.default_rng(0)))
    assert np.abs(other.factors - first.factors).max() > 1e-6


def test_draws_kept_of_each_chain():
    problem = RecordProblem.of(random_records(1, SHAPE, 30))
    solver = Bayes(chains=2, burn_in=5, draws=4, thin=3)
    start = random_start(0, SHAPE, 2)
    lines = []
    kept, ended = solver.sample(problem, [start, start], np.random.default_rng(0), lines.append)
    assert len(kept) == 8
    assert not ended
    assert len(lines) == 2 * (5 + 4 * 3)
    assert lines[0] == "chain 1 of 2, draw 1 of 17"
    assert lines[-1] == "chain 2 of 2, draw 17 of 17"
    # The first that is kept is the sixth of the chain, the second the ninth.
    begin = Draw(*start, first_strengths(problem))
    steps = list(islice(chain(problem, begin, 1.0, np.random.default_rng(0)), 9))
    np.testing.assert_array_equal(kept[0].factors, steps[5].factors)
    np.testing.assert_array_equal(kept[1].factors, steps[8].factors)
