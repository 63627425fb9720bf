"""Estimates from records that are read part by part."""

import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from importlib import import_module
from multiprocessing import get_context
from weakref import WeakSet

import numpy as np
import pytest
from small_records import interrupted, random_records, random_start

import rejoint as rj
from rejoint.estimation import Em, Policy, estimate
from rejoint.estimation.data import InMemory, Parted
from rejoint.estimation.part_summary import add_up, summarize_part
from rejoint.estimation.smoothing import smooth_levels
from rejoint.solver import Limits, run

SHAPE = (3, 4, 2, 3, 3)
THOROUGH = Em(limits=Limits(max_steps=3000, progress=1e-13, window=10, exact=-1.0))


@pytest.fixture(scope="module")
def records():
    found = random_records(0, SHAPE, 3000, rank=3, missing=0.2)
    codes = np.array(found.codes)
    codes[::50] = -1  # empty ones, which have no information
    weight = np.random.default_rng(0).integers(0, 4, len(codes)).astype(float)
    return rj.Records(found.domain, codes, weight)


@pytest.fixture(scope="module")
def some(records):
    """Fewer, where ranks are compared."""
    return rj.Records(records.domain, records.codes[:600], records.sample_weight[:600])


def summary(scan, size=10**6, budget=0):
    return add_up(scan.map(partial(summarize_part, seed=0, size=size, budget=budget)))


def parted(scan):
    return Parted(scan.domain, scan.threads, scan, summary(scan))


@pytest.mark.parametrize("size", [1, 7, 3000])
def test_a_pass_is_the_sum_over_parts(records, size):
    records = rj.Records(records.domain, records.codes[:500], records.sample_weight[:500])
    data, whole = parted(rj.scan(records, size=size)), InMemory.of(records)
    model = random_start(0, SHAPE, 4)
    mine, other = data.expect(model), whole.expect(model)
    # Sums of 500 numbers in another order.
    assert mine.log_likelihood == pytest.approx(other.log_likelihood, rel=1e-13)
    np.testing.assert_allclose(mine.counts, other.counts, rtol=1e-11)
    np.testing.assert_allclose(data.center, whole.center, rtol=1e-14)
    assert data.total == whole.total


def test_the_same_steps(records):
    """From the same start: sums in another order, so nearly the same numbers."""
    data = parted(rj.scan(records, size=100))
    solver, start = Em(limits=Limits(max_steps=15, exact=-1.0)), random_start(0, SHAPE, 3)
    mine, other = run(solver, data, start), run(solver, InMemory.of(records), start)
    assert mine.objective == pytest.approx(other.objective, rel=1e-12)
    # Rounding grows over 15 quasi-Newton steps.
    np.testing.assert_allclose(mine.factors, other.factors, atol=1e-7)


@pytest.mark.parametrize("solver", ["ml", "map"])
def test_from_a_sample_to_all(records, solver):
    scan, policy = (
        rj.scan(records, size=500, memory=0),
        Policy(sampled_records=(800, 800)),
    )
    result = estimate(scan, 3, solver, n_init=4, random_state=0, policy=policy)
    whole = estimate(records, 3, solver, random_state=0)
    if solver == "ml":
        # The rise over ten passes below which it stops is 0.01; the best of some starts of a sample
        # need not lead to the highest maximum, but does here.
        assert result.log_likelihood == pytest.approx(whole.log_likelihood, abs=0.5)
    assert rj.metrics.total_variation(result.pmf, whole.pmf) < 0.02
    total = InMemory.of(records).total  # weights count; empty records have no information
    assert f"of {total:,.0f} records" in result.stop


@pytest.fixture(scope="module")
def bumpy():
    """Nine levels in an order, columns that are bumps, values missing."""
    at = np.arange(9)[:, None]
    bumps = [np.exp(-0.5 * ((at - [c, 8 - c]) / 1.5) ** 2) + 0.01 for c in (1, 2, 6, 7, 3)]
    levels = [rj.Variable(f"x{n}", tuple(range(9)), "ordinal") for n in range(5)]
    domain = rj.Domain(tuple(levels))
    truth = rj.LowRankPMF([0.4, 0.6], [a / a.sum(axis=0) for a in bumps], domain)
    return rj.datasets.remove_cells(truth.sample(400, random_state=0), 0.1, random_state=0)


def test_smooth_passes_and_steps_are_those_in_memory(bumpy):
    base = parted(rj.scan(bumpy, size=70))
    data = smooth_levels(base, [0, 3], 0.4)
    whole = smooth_levels(InMemory.of(bumpy), [0, 3], 0.4)
    np.testing.assert_allclose(data.center, whole.center, rtol=1e-12)
    np.testing.assert_array_equal(data.concentration_unit, whole.concentration_unit)
    start = random_start(0, bumpy.domain.shape, 3)
    mine, other = data.expect(start), whole.expect(start)
    np.testing.assert_allclose(mine.counts, other.counts, rtol=1e-11)  # sums in another order
    solver = Em(limits=Limits(max_steps=10, exact=-1.0))
    one, two = run(solver, data, start), run(solver, whole, start)
    np.testing.assert_allclose(one.factors, two.factors, atol=1e-8)  # rounding grows over steps
    others = smooth_levels(base, [0, 3], 0.8), smooth_levels(base, [], 0.0)
    assert len({each.fingerprint for each in (data, *others)}) == 3


@pytest.mark.parametrize("solver", [THOROUGH, "map"], ids=["ml", "map"])
def test_smooth_columns_are_those_in_memory(bumpy, solver):
    """All records are in the sample here: the same time, the same starts, the same maximum."""
    options = {"rank": 2, "solver": solver, "smooth": True, "n_init": 3, "random_state": 0}
    # The prior is that of another model where its concentrations have not converged.
    options["policy"] = Policy(streamed_nats=1e-5)
    mine, other = estimate(rj.scan(bumpy, size=70, memory=0), **options), estimate(bumpy, **options)
    assert mine.choice == other.choice
    assert "chose a spread of" in mine.choice
    if solver == "map":
        # Concentrations end where a step moves them by less than 1e-3, from another model each.
        assert mine.log_likelihood == pytest.approx(other.log_likelihood, abs=0.2)
        assert rj.metrics.total_variation(mine.pmf, other.pmf) < 0.01
    else:
        # A gain of 1e-10 by a step leaves parameters undecided by some 1e-5.
        assert mine.log_likelihood == pytest.approx(other.log_likelihood, abs=1e-6)
        assert rj.metrics.total_variation(mine.pmf, other.pmf) < 1e-4


def test_a_scan_that_fits_into_memory_is_fitted_there(some):
    scan = rj.scan(some, size=100)
    for options in ({"rank": 2, "solver": "bayes"}, {"solver": "map", "n_init": 2}):
        one = estimate(scan, **options, random_state=0)
        other = estimate(some, **options, random_state=0)
        np.testing.assert_array_equal(one.pmf.weights, other.pmf.weights)
        assert one.choice == other.choice


def test_few_distinct_records_are_held(records):
    """3,000 records of two variables are at most 19: they fit where the rows do not."""
    few = records.project(["x0", "x1"])
    found = summary(rj.scan(few, size=100), budget=4000)
    whole = few.merged()
    merged = found.records.merged()
    np.testing.assert_array_equal(merged.codes, whole.codes)
    np.testing.assert_array_equal(merged.sample_weight, whole.sample_weight)
    assert summary(rj.scan(records, size=100), budget=4000).records is None


def test_each_record_is_as_likely_in_the_sample(records):
    """Of 400 samples of 100 out of 1,000, 40 have each, +- 6."""
    codes = np.arange(1000)[:, None]
    scan = rj.scan(rj.Records(rj.Domain.of({"a": 1000}), codes), size=130)
    counts = np.zeros(1000)
    for seed in range(400):
        look = partial(summarize_part, seed=seed, size=100, budget=0)
        sample = add_up(scan.map(look)).sample
        assert len(sample) == 100
        counts[sample.codes.ravel()] += 1
    # The spread of 1,000 counts is known to 2 %; the largest of them lies within five deviations.
    assert counts.std() == pytest.approx(np.sqrt(400 * 0.1 * 0.9), rel=0.1)
    assert abs(counts - 40).max() < 5 * 6


def test_no_more_than_a_few_parts_are_there_at_a_time(records):
    """Whatever the number of passes and parts: what is bounded is not how many there were."""
    alive, most = WeakSet(), []

    def parts():
        for part in records.chunks(100):
            fresh = rj.Records(part.domain, part.codes, part.sample_weight)
            alive.add(fresh)
            most.append(len(alive))
            yield fresh

    scan = replace(rj.scan(parts, memory=0), quick=True)
    result = estimate(scan, 2, "ml", n_init=1, random_state=0)
    rj.Marginals.count(scan, order=2)
    assert len(most) >= 30 * (len(result.history) + 1)
    assert max(most) <= 3


def test_rank_of_a_sample(some):
    result = estimate(rj.scan(some, size=100, memory=0), solver="map", random_state=0)
    assert result.selection is not None
    assert "drawn at random" not in result.choice  # all but records without values


def test_impossible_requests_are_errors(records):
    scan = rj.scan(records, size=500, memory=0)
    with pytest.raises(ValueError, match="solver='kl' is not supported"):
        estimate(scan, 2, "kl")
    with pytest.raises(ValueError, match="'x0' is nominal"):
        estimate(scan, 2, "ml", smooth=["x0"])
    with pytest.raises(ValueError, match="A Scan has its domain and weights"):
        estimate(scan, 2, domain=records.domain)
    with pytest.raises(
        TypeError, match=r"is read part by part, which Marginals.count and estimate"
    ):
        rj.Records.of(scan)
    empty = rj.Records(records.domain, np.full((3, 5), -1))
    with pytest.raises(ValueError, match="There is nothing to estimate from"):
        estimate(rj.scan(empty), 2)


def test_files_of_text_are_packed_first(tmp_path, records, monkeypatch):
    """So that they are parsed twice, for levels and for codes, whatever the number of passes."""
    path = tmp_path / "a.csv"
    rows = [
        "" if None in row.values() else ",".join(map(str, row.values())) for row in records.rows()
    ]
    path.write_text("\n".join([",".join(records.names), *filter(None, rows)]) + "\n")
    scan = rj.scan(path, memory=0)
    opened = []
    real = rj.records.delimited.Source.open
    monkeypatch.setattr(
        rj.records.delimited.Source, "open", lambda self: opened.append(1) or real(self)
    )
    one_pass = Em(limits=Limits(max_steps=1, exact=-1.0))
    estimate(scan, 2, one_pass, n_init=2, random_state=0)
    count = len(opened)
    assert count <= 3  # the dialect, the first rows, all rows
    result = estimate(scan, 2, "ml", n_init=2, random_state=0)
    assert len(result.history) > 5
    assert len(opened) == 2 * count


def test_ctrl_c_before_the_first_pass_has_ended(records, press_at):
    scan = rj.scan(records, size=500, memory=0)
    press_at(Parted, "expect", 1)
    result = interrupted(estimate, scan, 2, "ml", n_init=2, random_state=0)
    assert "Interrupted; this is a fit to a sample" in result.stop


def test_ctrl_c_while_the_rank_is_chosen(some, press_at):
    scan = rj.scan(some, size=100, memory=0)
    press_at(InMemory, "expect", 150)
    result = interrupted(estimate, scan, solver="ml", random_state=0)
    assert result.selection.interrupted
    assert "Interrupted; this is a fit to a sample" in result.stop


def test_progress_shows_the_time_left(records, capsys, monkeypatch):
    progress = import_module("rejoint.estimation.estimate").Progress
    monkeypatch.setattr(progress, "__call__", write_line)
    estimate(rj.scan(records, size=500, memory=0), 2, "ml", n_init=1, random_state=0, progress=True)
    text = capsys.readouterr().err
    assert "first look: 3,000 records" in text
    assert "this pass 50% of 3,000 records, less than a second left" in text


def write_line(self, line):
    sys.stderr.write(line + "\n")


@pytest.mark.parametrize("solver", ["ml", "auto"])
def test_starts_and_folds_on_an_executor(some, solver):
    """Processes: nothing but the arguments may matter."""
    options = {"solver": solver, "n_init": 3, "random_state": 0}
    if solver == "auto":
        options = {"solver": "map", "n_init": 2, "random_state": 0}
    else:
        options["rank"] = 3
    expected = estimate(some, **options)
    with ThreadPoolExecutor(2) as executor:
        found = estimate(some, **options, executor=executor)
    np.testing.assert_array_equal(found.pmf.weights, expected.pmf.weights)
    assert found.choice == expected.choice
    if solver == "ml":
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
            found = estimate(some, **options, executor=executor)
        np.testing.assert_array_equal(found.pmf.weights, expected.pmf.weights)
