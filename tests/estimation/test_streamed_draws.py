"""Posterior draws from records that are read part by part, a pass a sweep."""

from functools import partial
from itertools import islice

import numpy as np
import pytest
from small_records import gibbs_chain, interrupted, ordinal, random_records, random_start

import rejoint as rj
from rejoint import kernels
from rejoint.estimation import Bayes, estimate
from rejoint.estimation.data import InMemory, Parted, draw_part
from rejoint.estimation.gibbs import effective_draws
from rejoint.estimation.part_summary import add_up, summarize_part
from rejoint.model import Model

SHAPE = (3, 4, 2, 3, 3)
SHORT = Bayes(chains=2, burn_in=5, draws=6, thin=2)


def parted(scan):
    summary = add_up(scan.map(partial(summarize_part, seed=0, size=10**6, budget=0)))
    return Parted(scan.domain, scan.threads, scan, summary)


@pytest.fixture(scope="module")
def records():
    found = random_records(0, SHAPE, 2000, rank=3, missing=0.2)
    codes = np.array(found.codes)
    codes[::50] = -1  # empty ones, which have no information
    weight = np.random.default_rng(0).integers(0, 4, len(codes)).astype(float)
    return rj.Records(found.domain, codes, weight)


def test_every_record_is_drawn_into_one_class(records):
    data, model = parted(rj.scan(records, size=70)), random_start(0, SHAPE, 4)
    found = data.draw(model, np.random.default_rng(0))
    assert found.classes.sum() == data.total
    np.testing.assert_array_equal(found.levels.sum(axis=1), data.level_totals)
    expected = data.expect(model)
    # Five standard deviations of counts of up to 3,000 records, each in a class or not.
    assert np.abs(found.counts - expected.counts).max() < 5 * np.sqrt(3000 / 4)


def test_draws_depend_on_the_part_and_not_on_threads(records):
    model = random_start(0, SHAPE, 3)
    one, two = (draw_part(records, 5, model, seed=3, threads=k).counts for k in (1, 2))
    np.testing.assert_array_equal(one, two)
    # Equal parts have different draws, or their errors would add up.
    assert (draw_part(records, 6, model, seed=3, threads=1).counts != one).any()


def test_a_record_of_small_weight_is_drawn_as_often_as_that():
    part = rj.Records(
        rj.Domain.of({"a": 2}), np.zeros((1000, 1), dtype=np.int16), np.full(1000, 0.4)
    )
    found = draw_part(part, 0, Model.of([1.0], [[[0.5], [0.5]]]), seed=0, threads=1)
    assert abs(found.counts[0, 0] - 400) < 5 * 16  # five standard deviations


def test_the_posterior_is_that_in_memory():
    """Means and deviations of two long chains, one by passes over seven parts."""
    records = random_records(1, (2, 3, 2), 100, rank=2, missing=0.2)
    drawn = []
    for data in (InMemory.of(records), parted(rj.scan(records, size=15))):
        chain = gibbs_chain(data, random_start(0, (2, 3, 2), 2), np.random.default_rng(0))
        models = [draw.model for draw in islice(chain, 100, 2600)]
        # Tables, which do not depend on how classes are numbered.
        drawn.append([((m.parts[0] * m.weights) @ m.parts[1].T).ravel() for m in models])
    one, two = np.array(drawn)
    # Errors of the means by those of fifty batches; five of them, for two chains.
    error = np.array([part.mean(axis=0) for part in np.array_split(one, 50)]).std(axis=0) / 50**0.5
    assert (np.abs(one.mean(axis=0) - two.mean(axis=0)) < 5 * 2**0.5 * error).all()
    np.testing.assert_allclose(one.std(axis=0), two.std(axis=0), rtol=0.2)


@pytest.fixture(scope="module")
def fits(records):
    scan = rj.scan(records, size=300, memory=0)
    return estimate(scan, 3, random_state=0), estimate(records, 3, "bayes", random_state=0)


def test_intervals_are_those_in_memory(fits):
    mine, other = fits
    assert "fewer than 2,000 for each" in mine.choice  # solver="auto"
    assert len(mine.posterior.draws) == len(mine.pmf.draws) == 40
    assert "40 posterior draws from 2 chains, worth about" in mine.stop
    for question in ({"names": ["x0", "x1"]}, {"names": ["x2"], "given": {"x3": 1, "x4": 0}}):
        (low, high), (least, most) = (f.posterior.interval(**question) for f in fits)
        # Bounds of 40 draws scatter by a fifth of the width; median over the cells.
        assert 0.65 < np.median((high - low) / (most - least)) < 1.55
        assert np.abs((low + high - least - most) / (most - least)).max() < 1.0
    # Two samplers with 40 and 120 draws: 0.007 to 0.011, by seed.
    assert rj.metrics.total_variation(mine.pmf, other.pmf) < 0.015


def test_a_given_sampler_and_chains(records):
    scan = rj.scan(records, size=500, memory=0)
    result = estimate(scan, 2, SHORT, random_state=0)
    assert len(result.posterior.draws) == 12
    result = estimate(scan, 2, SHORT, n_init=3, random_state=0)
    assert "18 posterior draws from 3 chains" in result.stop


def test_smooth_columns_are_drawn_smooth(records):
    scan = rj.scan(rj.Records(ordinal(records.domain), records.codes[:150]), size=40, memory=0)
    result = estimate(scan, 2, SHORT, smooth=True, random_state=0)
    assert "chose a spread of" in result.choice
    # Smoothing leaves no level without a probability, whatever the hidden column.
    assert min(a.min() for draw in result.posterior.draws for a in draw.factors[:2]) > 1e-6


def test_chains_of_the_rank_that_answers_where_it_was_estimated(records):
    some = rj.Records(records.domain, records.codes[:300])
    result = estimate(rj.scan(some, size=70, memory=0), solver=SHORT, random_state=0)
    plan = result.selection.plan
    assert [draw.rank for draw in result.posterior.draws] == [plan.rank] * 12
    assert result.pmf.rank <= result.selection.rank


def test_n_init_is_the_number_of_chains_also_where_the_rank_is_estimated(records):
    some = rj.Records(records.domain, records.codes[:200])
    result = estimate(some, solver=SHORT, n_init=3, random_state=0)
    assert len(result.posterior.draws) == 3 * SHORT.draws


@pytest.mark.parametrize(("k", "kept"), [(3, 0), (4 * 8 + 2, 2)])
def test_draws_so_far_are_kept(records, press_at, k, kept):
    calls = press_at(kernels, "class_draws", k)
    scan = rj.scan(records, size=500, memory=0)  # four parts; draws of the sixth sweep on are kept
    result = interrupted(estimate, scan, 2, SHORT, random_state=0)
    assert len(calls) == k
    assert result.interrupted
    assert result.starts[0].stop == "interrupted"
    assert (
        "Interrupted after 2 posterior" if kept else "before there were posterior"
    ) in result.stop
    assert len(result.posterior.draws if result.posterior else ()) == kept


def test_effective_draws_of_an_autoregression():
    """An autoregression of 0.8 has an autocorrelation time of 1.8 / 0.2 = 9."""
    rng, values = np.random.default_rng(0), np.zeros((3, 500, 10))
    for k in range(1, 500):
        values[:, k] = 0.8 * values[:, k - 1] + rng.standard_normal((3, 10))
    shares = 0.1 + 1e-4 * (values - values.mean(axis=2, keepdims=True))
    chains = [[Model.of([1.0], [own[:, None], np.ones((1, 1))]) for own in c] for c in shares]
    assert effective_draws(chains) == pytest.approx(1500 / 9, rel=0.25)
    assert effective_draws([[chains[0][0]] * 40]) == 40
