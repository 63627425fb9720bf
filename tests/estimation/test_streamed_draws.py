"""Posterior draws from records that are read part by part, a pass a sweep."""

from functools import partial
from importlib import import_module
from itertools import islice

import numpy as np
import pytest
from small_records import random_records, random_start

import rejoint as rj
from rejoint import kernels
from rejoint.estimation import Bayes, estimate
from rejoint.estimation import fit_records as scanned
from rejoint.estimation.data import RecordProblem, add_up, look_at
from rejoint.estimation.effective_draws import effective_draws
from rejoint.estimation.gibbs import Draw, chain
from rejoint.estimation.priors import first_strengths
from rejoint.estimation.streamed import ScanProblem, draw_over

choices = import_module("rejoint.estimation.estimate")

SHAPE = (3, 4, 2, 3, 3)
SHORT = Bayes(chains=2, burn_in=5, draws=6, thin=2)


def quiet(line):
    pass


def problem_of(scan):
    survey = add_up(scan.map(partial(look_at, seed=0, size=10**6, budget=0)))
    return ScanProblem.surveyed(scan, survey, quiet, None)


@pytest.fixture(scope="module")
def records():
    found = random_records(0, SHAPE, 2000, rank=3, missing=0.2)
    codes = np.array(found.codes)
    codes[::50] = -1  # empty ones, which say nothing
    weight = np.random.default_rng(0).integers(0, 4, len(codes)).astype(float)
    return rj.Records(found.domain, codes, weight)


def test_every_record_is_drawn_into_one_class(records):
    problem = problem_of(rj.scan(records, size=70))
    found = problem.drawn(*random_start(0, SHAPE, 4), np.random.default_rng(0))
    assert found.classes.sum() == problem.total
    np.testing.assert_array_equal(found.levels.sum(axis=1), problem.level_totals)
    expected = problem.expect(*random_start(0, SHAPE, 4))
    # Five standard deviations of counts of up to 3,000 records, each in a class or not.
    assert np.abs(found.stacked - expected.stacked).max() < 5 * np.sqrt(3000 / 4)


def test_threads_do_not_matter_and_numbers_do(records):
    model = random_start(0, SHAPE, 3)
    one, two = (draw_over(records, 5, *model, seed=3, threads=k).counts for k in (1, 2))
    np.testing.assert_array_equal(one, two)
    # Parts that are alike have draws of their own, or their errors would add up.
    assert (draw_over(records, 6, *model, seed=3, threads=1).counts != one).any()


def test_a_record_of_little_weight_is_there_now_and_then():
    part = rj.Records(
        rj.Domain.of({"a": 2}), np.zeros((1000, 1), dtype=np.int16), np.full(1000, 0.4)
    )
    found = draw_over(part, 0, np.ones(1), np.full((2, 1), 0.5), seed=0, threads=1)
    assert abs(found.counts[0, 0] - 400) < 5 * 16  # five standard deviations


def test_the_posterior_is_that_in_memory():
    """Means and deviations of two long chains, one by passes over seven parts."""
    records = random_records(1, (2, 3, 2), 100, rank=2, missing=0.2)
    drawn = []
    for problem in (RecordProblem.of(records), problem_of(rj.scan(records, size=15))):
        start = Draw(*random_start(0, problem.levels, 2), first_strengths(problem))
        steps = islice(chain(problem, start, 1.0, np.random.default_rng(0)), 100, 2600)
        # Tables, which do not depend on how classes are numbered.
        drawn.append([((d.factors[:2] * d.weights) @ d.factors[2:5].T).ravel() for d in steps])
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
    assert "so that averaging over the posterior helps" in mine.choice  # solver="auto"
    assert len(mine.posterior.draws) == len(mine.pmf.draws) == 40
    assert "40 posterior draws from 2 chains, worth about" in mine.stop
    for question in ({"names": ["x0", "x1"]}, {"names": ["x2"], "given": {"x3": 1, "x4": 0}}):
        (low, high), (least, most) = (f.posterior.interval(**question) for f in fits)
        # Bounds of 40 draws scatter by a fifth of the width; median over the cells.
        assert 0.75 < np.median((high - low) / (most - least)) < 1.33
        assert np.abs((low + high - least - most) / (most - least)).max() < 1.0
    assert rj.metrics.total_variation(mine.pmf, other.pmf) < 0.01


def test_a_given_sampler_and_chains(records):
    scan = rj.scan(records, size=500, memory=0)
    result = estimate(scan, 2, SHORT, random_state=0)
    assert len(result.posterior.draws) == 12
    result = estimate(scan, 2, SHORT, n_init=3, random_state=0)
    assert "18 posterior draws from 3 chains" in result.stop


def test_smooth_columns_are_drawn_smooth(records):
    kinds = rj.Domain(tuple(rj.Variable(v.name, v.levels, "ordinal") for v in records.domain))
    scan = rj.scan(rj.Records(kinds, records.codes[:150]), size=40, memory=0)
    result = estimate(scan, 2, SHORT, smooth=True, random_state=0)
    assert "levels spread by" in result.choice
    # Slips leave no level without a chance, whatever the hidden column.
    assert min(a.min() for draw in result.posterior.draws for a in draw.factors[:2]) > 1e-6


def test_chains_have_spare_classes_where_the_rank_was_estimated(records, monkeypatch):
    """Every other one: the same as in memory."""
    some = rj.Records(records.domain, records.codes[:300])
    scan = rj.scan(some, size=70, memory=0)
    result = estimate(scan, solver=SHORT, random_state=0)
    spare = min(result.selection.largest - result.selection.rank, choices.SPARE)
    assert spare > 0
    ranks = [draw.rank for draw in result.posterior.draws]
    assert ranks == [result.selection.rank + spare] * 6 + [result.selection.rank] * 6

    def explore(self, *given):
        raise KeyboardInterrupt

    monkeypatch.setattr(scanned.Search, "widened", explore)
    cut = estimate(scan, solver=SHORT, random_state=0)
    assert "Interrupted before there were posterior draws" in cut.stop
    assert cut.posterior is None
    np.testing.assert_array_equal(cut.pmf.weights, result.pmf.weights)


@pytest.mark.parametrize(("k", "kept"), [(3, 0), (4 * 8 + 2, 2)])
def test_draws_that_are_there_are_kept(records, press_at, k, kept):
    calls = press_at(kernels, "class_draws", k)
    scan = rj.scan(records, size=500, memory=0)  # four parts; draws of the sixth sweep on are kept
    result = estimate(scan, 2, SHORT, random_state=0)
    assert len(calls) == k
    assert result.starts[0].reason == "interrupted"
    assert (
        "Interrupted after 2 posterior" if kept else "before there were posterior"
    ) in result.stop
    assert len(result.posterior.draws if result.posterior else ()) == kept


def test_what_draws_are_worth():
    """An autoregression of 0.8 has an autocorrelation time of 1.8 / 0.2 = 9."""
    rng = np.random.default_rng(0)
    values = np.zeros((3, 500, 40))
    for k in range(1, 500):
        values[:, k] = 0.8 * values[:, k - 1] + rng.standard_normal((3, 40))
    found = effective_draws(values.reshape(1500, 40), 3)
    assert found == pytest.approx(1500 / 9, rel=0.15)  # 40 series of 167 draws each
    assert effective_draws(np.ones((40, 3)), 1) == 40
