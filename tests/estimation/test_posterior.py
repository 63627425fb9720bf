"""Posterior draws: their mean, and bounds of tables."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_records import random_pmf

import rejoint as rj
from rejoint.estimation import Bayes, Policy, posterior_mean
from rejoint.estimation.data import InMemory
from rejoint.estimation.gibbs import Draw
from rejoint.estimation.posterior_mean import draw_shares, rake_margins, resample
from rejoint.model import Model, Observed
from rejoint.pmf.draws import credible_interval

SHAPE = (2, 3)
SHORT = Bayes(chains=4, burn_in=5, draws=5, thin=1)
DOMAIN = rj.Domain.of({"a": ["no", "yes"], "b": ["x", "y", "z"]})


def labelled(seed):
    pmf = random_pmf(seed, SHAPE, 2)
    return rj.LowRankPMF(pmf.weights, pmf.factors, DOMAIN)


DRAWS = tuple(labelled(seed) for seed in range(20))


def posterior_of(draws):
    """The posterior of a model that is far from the draws, so that its own part shows."""
    rank, domain = len(draws), draws[0].domain
    factors = [np.full((size, rank), 1 / size) for size in domain.shape]
    return rj.LowRankPMF(np.full(rank, 1 / rank), factors, domain, draws)


def order_quantile(tables, share):
    """Between the sorted draws, the k-th of n being the quantile k / (n + 1)."""
    place = np.clip(share * (len(tables) + 1) - 1, 0, len(tables) - 1)
    below, rest = int(place), place - int(place)
    ordered = np.sort(tables, axis=0)
    return ordered[below] + rest * (ordered[min(below + 1, len(tables) - 1)] - ordered[below])


def test_few_draws_bound_the_next_one_as_often_as_stated():
    rng = np.random.default_rng(0)
    held = []
    for _ in range(300):
        *draws, fresh = (rj.LowRankPMF([1.0], [[[p], [1 - p]]]) for p in rng.random(20))
        low, high = posterior_of(draws).interval("x0", level=0.8)
        held.append(low[0] <= fresh.marginal("x0")[0] <= high[0])
    # Three standard deviations of a share of 300; NumPy's own quantiles hold 72 %.
    # The bounds hold the mean as well, which changes nothing here.
    assert abs(np.mean(held) - 0.8) < 0.07


def test_mean_is_the_average_of_the_draws():
    mean = posterior_of(DRAWS).mixture
    exact = np.mean([draw.to_dense() for draw in DRAWS], axis=0)
    np.testing.assert_allclose(mean.to_dense(), exact, atol=1e-14)
    assert mean.domain == DOMAIN


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_bounds_are_quantiles_cell_by_cell(level):
    low, high = posterior_of(DRAWS).interval(["b", "a"], level=level)
    tables = np.array([draw.to_dense().T for draw in DRAWS])
    assert low.shape == (3, 2)
    np.testing.assert_allclose(low, order_quantile(tables, (1 - level) / 2), atol=1e-14)
    np.testing.assert_allclose(high, order_quantile(tables, (1 + level) / 2), atol=1e-14)


def weighted_quantile(values, weights, share):
    """Between the sorted draws, each in the middle of its weight, as many as they are worth."""
    order = np.argsort(values)
    mass = weights[order] / weights.sum()
    worth = 1 / np.sum(mass**2)
    places = (worth * (np.cumsum(mass) - mass / 2) + 0.5) / (worth + 1)
    return np.interp(share, places, values[order])


def test_bounds_of_conditional_tables():
    found = posterior_of(DRAWS).interval("b", given={"a": "yes"}, level=0.8)
    evidence = np.array([d.to_dense()[1].sum() for d in DRAWS])
    tables = np.array([d.to_dense()[1] / d.to_dense()[1].sum() for d in DRAWS])
    for cell in range(3):
        expected = [weighted_quantile(tables[:, cell], evidence, q) for q in (0.1, 0.9)]
        np.testing.assert_allclose([found.low[cell], found.high[cell]], expected, atol=1e-12)
    assert found.effective == pytest.approx(evidence.sum() ** 2 / (evidence**2).sum())
    assert "worth" in found.description


@given(st.integers(0, 10**6), st.floats(0.01, 0.99), st.integers(1, 12))
def test_weighted_bounds_are_those_of_brute_force(seed, level, count):
    rng = np.random.default_rng(seed)
    values, weights = (
        rng.random((count, 3)),
        rng.random((count, 3)) * (rng.random((count, 3)) < 0.8),
    )
    found = credible_interval(values, level, weights)
    for cell in range(3):
        used = weights[:, cell] > 0
        if not used.any():
            assert np.isnan(found.low[cell])
            continue
        tails = [
            weighted_quantile(values[used, cell], weights[used, cell], q)
            for q in ((1 - level) / 2, (1 + level) / 2)
        ]
        np.testing.assert_allclose([found.low[cell], found.high[cell]], tails, atol=1e-12)


@given(st.integers(0, 10**6), st.integers(2, 30))
def test_equal_weights_are_no_weights(seed, count):
    values = np.random.default_rng(seed).random((count, 4))
    one = credible_interval(values, 0.9)
    same = credible_interval(values, 0.9, np.full(count, 0.3))
    np.testing.assert_allclose(one, same, atol=1e-12)
    expected = np.quantile(values, [0.05, 0.95], axis=0, method="weibull")
    np.testing.assert_allclose(one, expected, atol=1e-12)
    assert one.effective == pytest.approx(count)


def test_bounds_are_centered_on_the_answer():
    values = np.linspace(0.4, 0.6, 40)
    low, high = credible_interval(values, 0.9)
    moved = credible_interval(values, 0.9, answer=0.61)
    np.testing.assert_allclose(moved, (low + 0.11, high + 0.11))
    assert credible_interval(values, 0.9, answer=0.95).high == 1.0
    assert credible_interval(values, 0.9, answer=0.95, limits=(0.0, 2.0)).high > 1.0


def test_bounds_are_stretched_to_the_answer():
    """Few draws may lie far to one side of their mean."""
    values = np.array([0.1] * 39 + [0.9])
    low, high = credible_interval(values, 0.5, answer=float(values.mean()))
    assert (low, high) == (pytest.approx(0.1), pytest.approx(values.mean()))


def test_wider_levels_have_wider_bounds():
    posterior = posterior_of(DRAWS)
    narrow, wide = (posterior.interval("b", level=level) for level in (0.5, 0.95))
    assert (wide[0] < narrow[0]).all()
    assert (wide[1] > narrow[1]).all()


@pytest.mark.parametrize("level", [0, 1, 90, -0.5, float("nan")])
def test_level_must_be_a_probability(level):
    with pytest.raises(ValueError, match=r"level must lie between 0 and 1, got .*; 0\.9 is usual"):
        posterior_of(DRAWS).interval("a", level=level)


def test_unknown_names_are_errors():
    with pytest.raises(KeyError, match="c"):
        posterior_of(DRAWS).interval("c")


def test_chains_of_ones_own_have_the_rank_that_answers():
    data = rj.datasets.asia().sample(300, random_state=0)
    free = rj.estimate(data, solver=SHORT, random_state=0)
    assert {d.rank for d in free.posterior.draws} == {free.selection.plan.rank}
    assert f"from {SHORT.chains} chains" in free.stop
    told = rj.estimate(data, 2, solver="bayes", random_state=0)
    assert {d.rank for d in told.posterior.draws} == {2}


def test_the_number_of_chains_where_the_rank_is_not_given():
    data = rj.datasets.asia().sample(300, random_state=0)
    result = rj.estimate(data, n_init=2, random_state=0)
    assert "from 2 chains" in result.stop
    assert len(result.posterior.draws) == 10


def test_passes_after_merging_do_not_fit_the_noise_of_few_records():
    losses = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        centers = [rng.dirichlet(np.ones(40)) for _ in range(6)]
        columns = [rng.dirichlet(20.0 * center + 0.01, size=3).T for center in centers]
        truth = rj.LowRankPMF(rng.dirichlet(np.full(3, 5.0)), columns)
        data, rest = (truth.sample(size, random_state=rng) for size in (150, 20_000))
        found = [
            rj.estimate(data, 3, random_state=seed, policy=policy).pmf.log_prob(rest).mean()
            for policy in (Policy(), Policy(anchored_passes=0))
        ]
        losses.append(found[1] - found[0])
    assert np.mean(losses) < 0.008  # 0.004; where records counted four times as much, 0.015


def test_sweeps_drawn_again_differ_in_how_variables_depend():
    rng = np.random.default_rng(0)
    data = InMemory.of(random_pmf(0, (3, 2, 4), 2).sample(200, random_state=0))
    own = Model.of([0.6, 0.4], [rng.dirichlet(np.ones(size), size=2).T for size in (3, 2, 4)])
    shares, spread = own.factors @ own.weights, []
    for factor in (1.0, 9.0):
        draw, factors = Draw(own, np.ones(3), own), np.full(3, factor)
        again = (resample(data, draw, factors, rng) for _ in range(200))
        drawn = [rake_margins(data.observed(model), shares) for model in again]
        gaps = np.array([model.factors @ model.weights - shares for model in drawn])
        assert np.sqrt(np.mean(gaps**2)) < 0.015  # 0.003 and 0.011; not scaled, 0.031 and 0.090
        spread.append(np.var([(m.factors[0] * m.weights) @ m.factors[3] for m in drawn]))
    assert spread[1] > 4 * spread[0]


@pytest.mark.parametrize("block", [4_000_000, 400_000])  # all records, and half of them
def test_shares_are_as_uncertain_as_those_of_the_records(block, monkeypatch):
    monkeypatch.setattr(posterior_mean, "BLOCK_NUMBERS", block)
    rng = np.random.default_rng(0)
    a, b = (rng.random((2, 400)) < 0.3).astype(int)
    b[200:] = a[200:]  # every other record says the same of both
    held = [None if k % 4 == 0 else int(y) for k, y in enumerate(b)]
    data = InMemory.of(rj.Records.of({"a": a, "b": held}))
    one = Observed.of([1.0], [[[0.7], [0.3]]] * 2)
    drawn = draw_shares(data, one, 2000, rng)[:, [1, 3]]
    np.testing.assert_allclose(drawn.mean(axis=0), 0.3, atol=0.003)
    np.testing.assert_allclose(drawn.var(axis=0), 0.21 / np.array([400, 300]), rtol=0.25)
    assert 0.25 < np.corrcoef(drawn.T)[0, 1] < 0.6


def test_draws_of_few_records_are_as_uncertain_as_their_shares():
    """A prior centered on the shares of the records is no further evidence of these shares."""
    rng = np.random.default_rng(0)
    trait = rng.normal(size=80)
    columns = {f"x{k}": 0.3 * trait + rng.normal(size=80) for k in range(6)}
    table = {**columns, "y": (trait > 0).astype(int)}
    pmf = rj.estimate(table, bins=15, random_state=0).pmf
    below = np.array([[draw.marginal(name)[:7].sum() for draw in pmf.draws] for name in columns])
    chance = [pmf.marginal(name)[:7].sum() for name in columns]
    ratio = below.var(axis=1).sum() / np.sum([p * (1 - p) / 80 for p in chance])
    assert 0.75 < ratio < 1.3  # 0.90; 0.63 where draws keep the shares of their sweeps


def test_what_was_chosen_answers_where_the_rank_is_not_given():
    data = rj.datasets.asia().sample(300, random_state=0)
    result = rj.estimate(data, random_state=0)
    plan = result.selection.plan
    assert {draw.rank for draw in result.posterior.draws} == {plan.rank}
    assert plan.text in result.choice
    assert result.pmf.mixture.rank <= Policy().answer_classes[1] * plan.rank
