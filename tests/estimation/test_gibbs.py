"""Gibbs chains against posteriors that are known exactly."""

from itertools import islice, product

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from small_records import gibbs_chain, random_records, random_start

from rejoint.estimation import Bayes, Policy
from rejoint.estimation.data import InMemory
from rejoint.estimation.gibbs import Draw, child
from rejoint.estimation.priors import log_evidence_of_counts, log_hyperprior
from rejoint.model import Layout, Model
from rejoint.solver.session import Session

SHAPE = (2, 3)


def draws_of(data, rank, number, seed=0, pseudo_count=1.0, skip=100):
    start = random_start(seed, data.layout.levels, rank)
    chain = gibbs_chain(data, start, np.random.default_rng(seed), pseudo_count)
    return list(islice(chain, skip, skip + number))


def monte_carlo_error(series):
    """Standard error of the mean of a chain, by means of its fifty batches."""
    means = np.array([part.mean(axis=0) for part in np.array_split(series, 50)])
    return means.std(axis=0, ddof=1) / np.sqrt(50)


def concentration_grid(size):
    """Concentrations, even in their logarithm, over five standard deviations of the hyperprior."""
    return 2.0 * size * np.exp(np.linspace(-5, 5, 201) * 0.5)


def log_density(s, center, counts):
    """Of a concentration of one variable, columns integrated out."""
    found = log_evidence_of_counts(Layout((len(center),)), np.array([s]), center, counts)
    return float(found[0]) + float(log_hyperprior(s, len(center)))


def test_rank_one_agrees_with_the_dirichlet_posterior():
    data = InMemory.of(random_records(0, SHAPE, 12, missing=0.3))
    drawn = np.array([d.model.factors[:, 0] for d in draws_of(data, 1, 6000)])
    error = monte_carlo_error(drawn)
    for n, size in enumerate(SHAPE):
        rows, grid = data.layout.rows(n), concentration_grid(size)
        counts, center = data.level_totals[rows], data.center[rows]
        logs = [log_density(s, center, counts[:, None]) for s in grid]
        share = np.exp(logs - logsumexp(logs))
        means = (grid[:, None] * center + counts) / (grid[:, None] + counts.sum())
        exact = share @ means
        # Five standard errors: no seed in a million is beyond.
        assert (np.abs(drawn[:, rows].mean(axis=0) - exact) < 5 * error[rows]).all()
        spread = share @ (means * (1 - means) / (grid[:, None] + counts.sum() + 1) + means**2)
        exact_deviation = np.sqrt(spread - exact**2)
        np.testing.assert_allclose(drawn[:, rows].std(axis=0), exact_deviation, rtol=0.08)


def exact_joint(data, codes, rank, pseudo_count):
    """Posterior mean of the joint: sums over assignments, sums over grids of concentrations."""
    logs, tables = [], []
    for classes in product(range(rank), repeat=len(codes)):
        sizes = np.bincount(classes, minlength=rank)
        log_weight, columns = float(np.sum(gammaln(pseudo_count + sizes))), []
        for n, size in enumerate(data.layout.levels):
            counts = np.zeros((size, rank))
            for row, f in zip(codes, classes, strict=True):
                if row[n] >= 0:
                    counts[row[n], f] += 1
            center, grid = data.center[data.layout.rows(n)], concentration_grid(size)
            terms = [log_density(s, center, counts) for s in grid]
            share = np.exp(terms - logsumexp(terms))
            base = grid[:, None, None] * center[:, None] + counts
            # All classes share the concentration, yet their means can be averaged one by one: a
            # cell of the joint takes one class of each variable.
            columns.append(np.tensordot(share, base / base.sum(axis=1, keepdims=True), axes=1))
            log_weight += float(logsumexp(terms))
        weights = (pseudo_count + sizes) / (rank * pseudo_count + len(codes))
        logs.append(log_weight)
        tables.append(np.einsum("f,af,bf->ab", weights, *columns))
    share = np.exp(logs - logsumexp(logs))
    return np.tensordot(share, np.array(tables), axes=1)


@pytest.mark.parametrize("pseudo_count", [1.0, 0.3])
def test_rank_two_agrees_with_the_sum_over_assignments(pseudo_count):
    codes = np.array([[0, 0], [0, 0], [1, 2], [1, -1], [0, 1]])
    records = random_records(0, SHAPE, 5)
    data = InMemory.of(type(records)(records.domain, codes))
    assert len(data.codes) == 4  # a merged pair, whose two classes are drawn separately
    drawn = np.array(
        [
            np.einsum("f,af,bf->ab", d.model.weights, *d.model.parts)
            for d in draws_of(data, 2, 8000, pseudo_count=pseudo_count)
        ]
    )
    exact = exact_joint(data, codes, 2, pseudo_count)
    assert (np.abs(drawn.mean(axis=0) - exact) < 5 * monte_carlo_error(drawn)).all()


def test_concentrations_follow_their_hyperprior_without_data():
    # A variable that no record has: only the hyperprior, whose logarithm is normal.
    records = random_records(0, (2, 4), 5)
    codes = np.array(records.codes)
    codes[:, 1] = -1
    data = InMemory.of(type(records)(records.domain, codes))
    logs = np.log([d.concentrations[1] for d in draws_of(data, 1, 6000)])
    assert abs(logs.mean() - np.log(8.0)) < 5 * monte_carlo_error(logs[:, None])[0]
    assert logs.std() == pytest.approx(0.5, rel=0.1)


def test_fractions_of_records_are_not_lost():
    # 200 records of weight 0.4 have as much information as 80 records.
    records = random_records(5, (2,), 200)
    merged = InMemory.of(records)
    codes = np.ascontiguousarray(records.codes)
    data = InMemory(records.domain, codes, np.full(200, 0.4), 1)
    share = merged.level_totals[0] / 200
    drawn = np.array([d.model.factors[0, 0] for d in draws_of(data, 1, 1000)])
    alone = np.sqrt(share * (1 - share) / 80)
    assert abs(drawn.mean() - share) < 0.5 * alone
    assert 0.7 * alone < drawn.std() < 1.6 * alone


def test_columns_of_tiny_pseudo_counts_sum_to_one():
    # 30 classes for 5 records: most columns have no counts but those of the prior.
    data = InMemory.of(random_records(1, SHAPE, 5))
    sampler = Bayes(policy=Policy(concentration_range=(1e-9, 1e-9)))
    start = random_start(0, SHAPE, 30)
    draw = Draw(start, np.full(2, 1e-9), start)
    drawn = sampler.step(data, draw, np.random.default_rng(0))
    assert drawn.concentrations.tolist() == [1e-9, 1e-9]
    np.testing.assert_allclose(np.add.reduceat(drawn.model.factors, [0, 2]), 1.0)


def test_seeds_reproduce_and_differ():
    data = InMemory.of(random_records(1, SHAPE, 30))
    one, same = (draws_of(data, 2, 20)[-1].model.factors for _ in range(2))
    np.testing.assert_array_equal(one, same)
    start = random_start(0, SHAPE, 2)
    other = next(gibbs_chain(data, start, np.random.default_rng(1)))
    first = next(gibbs_chain(data, start, np.random.default_rng(0)))
    assert np.abs(other.model.factors - first.model.factors).max() > 1e-6


def test_draws_kept_of_each_chain():
    data = InMemory.of(random_records(1, SHAPE, 30))
    solver = Bayes(chains=2, burn_in=5, draws=4, thin=3)
    start = random_start(0, SHAPE, 2)
    lines = []
    session = Session(np.random.default_rng(0), lines.append)
    kept = solver.sample(data, [start, start], session)
    assert len(kept) == 8
    assert len(lines) == 2 * (5 + 3 * 3 + 1)  # none after the last that is kept
    assert lines[0] == "chain 1 of 2, draw 1 of 15"
    assert lines[-1] == "chain 2 of 2, draw 15 of 15"
    # The first that is kept is the sixth of the chain, the second the ninth.
    steps = list(islice(gibbs_chain(data, start, child(np.random.default_rng(0))), 9))
    np.testing.assert_array_equal(kept[0].model.factors, steps[5].model.factors)
    np.testing.assert_array_equal(kept[1].model.factors, steps[8].model.factors)


@pytest.mark.parametrize("levels", [(2, 2, 2), (2, 1, 2), (3, 10, 1, 4), (5,)])
def test_a_drawn_model_has_the_columns_of_a_dirichlet_draw_of_each_variable(levels):
    rng = np.random.default_rng(0)
    shares = [rng.dirichlet(np.full(size, 0.3)) for size in levels]
    found = Model.draw(shares, 6, np.random.default_rng(1))
    rng = np.random.default_rng(1)
    each = [rng.dirichlet(np.maximum(len(p) * p, 0.1), size=6).T for p in shares]
    np.testing.assert_allclose(found.factors, np.vstack(each), rtol=1e-14)
