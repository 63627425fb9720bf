"""Published maxima of latent class models are reached."""

import numpy as np
import pytest
from golden import CARCINOMA, EXAMPLES, SURVEYS

import rejoint as rj

CASES = [(name, rank) for name, example in EXAMPLES.items() for rank in example.maxima]


# --- plain EM, by itself ------------------------------------------------------------------------


def one_hot(example):
    return [np.eye(size)[example.cells[:, n]] for n, size in enumerate(example.levels.values())]


def em_steps(example, weights, factors, steps, enough=0.0):
    """EM for many starts side by side: weights (S, F), factors (S, I, F); their likelihoods."""
    counts, hot = example.counts, one_hot(example)
    score = np.full(len(weights), -np.inf)
    for _ in range(steps):
        joint = weights[:, None] * np.prod([h @ a for h, a in zip(hot, factors, strict=True)], 0)
        share = joint.sum(axis=2, keepdims=True)
        before, score = score, np.log(share[:, :, 0]) @ counts
        if np.all(score - before < enough):
            break
        part = joint * (counts[:, None] / share)
        total = part.sum(axis=1)
        weights = total / counts.sum()
        factors = [h.T @ part / np.maximum(total, 1e-300)[:, None] for h in hot]
    return score, weights, factors


def random_starts(example, rank, number, rng):
    factors = [
        rng.dirichlet(np.ones(size), size=(number, rank)).transpose(0, 2, 1)
        for size in example.levels.values()
    ]
    return rng.dirichlet(np.full(rank, 5.0), size=number), factors


def best_by_em(example, rank, number=30):
    """The highest of many starts, the best few of which are followed to the end."""
    weights, factors = random_starts(example, rank, number, np.random.default_rng(0))
    score, weights, factors = em_steps(example, weights, factors, 300)
    best = np.argsort(-score)[:4]
    score, weights, factors = em_steps(
        example, weights[best], [a[best] for a in factors], 20_000, enough=1e-9
    )
    top = int(np.argmax(score))
    order = np.argsort(-weights[top])
    return score[top], weights[top][order], [a[top][:, order] for a in factors]


def deviance(example, score):
    seen = example.counts[example.counts > 0]
    return 2 * (seen @ np.log(seen / seen.sum()) - score)


def assert_published(example, rank, score, weights, factors, short=0.0):
    """To the digits printed; ``short`` is by how much a search may stop before the maximum."""
    published = example.maxima[rank]
    assert score < published.log_likelihood + published.unit
    assert score > published.log_likelihood - published.unit - short
    if published.deviance is not None:
        # Two digits printed, or more.
        found = deviance(example, score)
        assert found == pytest.approx(published.deviance, abs=6e-3 + 2 * short)
    if published.weights is not None:
        # Three or four digits printed, but the likelihood is flat in them: a thousandth of it
        # is about a thousandth of a class.
        np.testing.assert_allclose(weights, published.weights, atol=1e-3 + 2 * short)
    if published.profile is not None:
        found = [a[-1] for a in factors]
        np.testing.assert_allclose(found, published.profile, atol=1e-3 + 2 * short)


@pytest.mark.parametrize(("name", "rank"), CASES)
def test_plain_em_finds_the_published_maximum(name, rank):
    assert_published(EXAMPLES[name], rank, *best_by_em(EXAMPLES[name], rank))


def test_local_maxima_are_where_they_were_published():
    weights, factors = random_starts(SURVEYS, 3, 60, np.random.default_rng(1))
    scores = em_steps(SURVEYS, weights, factors, 3000)[0]
    known = [SURVEYS.maxima[3].log_likelihood, *SURVEYS.local]
    nearest = np.abs(scores[:, None] - known).min(axis=1)
    # Some starts are still on their way after 3,000 steps.
    assert np.mean(nearest < 5e-3) > 0.9
    assert scores.max() < known[0] + 1e-3


# --- the package --------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "rank"), CASES)
def test_estimate_reaches_the_published_maximum(name, rank):
    example = EXAMPLES[name]
    result = rj.estimate(example.records, rank=rank, solver="ml", random_state=0)
    pmf = result.pmf.sorted()
    # It stops once ten steps raise the log-likelihood by less than 1e-4.
    reached = (result.log_likelihood, pmf.weights, pmf.factors)
    assert_published(example, rank, *reached, short=1e-3)
    assert result.log_likelihood == pytest.approx(
        float(example.counts @ pmf.log_prob(example.records)), rel=1e-12
    )


@pytest.mark.parametrize("rank", [2, 3])
def test_one_table_of_everything_by_kl_is_the_likelihood_too(rank):
    # The divergence of a table of all variables is the likelihood but for a constant.
    example = CARCINOMA
    tables = rj.Marginals.count(example.records, order=7)
    fit = rj.factorize(tables, rank, solver="kl", n_init=5, random_state=0)
    pmf = fit.pmf.sorted()
    score = float(example.counts @ pmf.log_prob(example.records))
    assert_published(example, rank, score, pmf.weights, pmf.factors, short=1e-3)
    best = min(run.objective for run in fit.starts)
    assert deviance(example, score) == pytest.approx(2 * example.counts.sum() * best, rel=1e-6)
