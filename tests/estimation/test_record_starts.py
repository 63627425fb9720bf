"""Where estimation begins, and starts that are followed side by side."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from small_records import random_records

import rejoint as rj
from rejoint import kernels
from rejoint.estimation import Em, estimate
from rejoint.estimation import explore as exploring
from rejoint.estimation.data import RecordProblem
from rejoint.estimation.starts import grown_model, make_starts, random_model, widen
from rejoint.solver import run

RECORDS = random_records(3, (3, 3, 3, 3), 400, rank=3, missing=0.1)


def test_new_classes_grow_from_records_that_are_lacking():
    data = rj.Records.of({"a": [0, 1] * 50 + [0] * 20, "b": [0, 1] * 50 + [1] * 20, "c": [0] * 120})
    problem = RecordProblem.of(data)
    warm = (np.ones(1), problem.centre[:, None])
    weights, factors = widen(problem, warm, 3, 0.5, np.random.default_rng(0))
    assert weights.sum() == pytest.approx(1)
    assert np.allclose(np.add.reduceat(factors, problem.offsets[:-1]), 1)
    # (0, 0) and (1, 1) are more frequent than independence has it, (0, 1) is not.
    for column in factors[:, 1:].T:
        assert column[:2].argmax() == column[2:4].argmax()


def test_holes_in_a_seed_take_the_variables_own_shares():
    problem = RecordProblem.of(rj.Records.of({"a": ["x", "y", None], "b": [None, None, "u"]}))
    warm = (np.ones(1), problem.centre[:, None])
    _, factors = widen(problem, warm, 6, 0.5, np.random.default_rng(0))
    holes = [f for f in range(1, 6) if np.isclose(factors[0, f], problem.centre[0])]
    assert np.allclose(np.add.reduceat(factors, problem.offsets[:-1]), 1)
    assert len(holes) < 5


def test_grown_models_are_models():
    problem = RecordProblem.of(RECORDS)
    weights, factors = grown_model(problem, 5, 0.8, Em(), np.random.default_rng(0))
    assert weights.shape == (5,)
    assert weights.sum() == pytest.approx(1)
    assert np.allclose(np.add.reduceat(factors, problem.offsets[:-1]), 1)


def test_growth_finds_what_random_classes_take_for_noise():
    """Asia's rare diseases: the median of grown starts is better than the best random one."""
    problem = RecordProblem.of(rj.datasets.asia().sample(50_000, random_state=0))

    def ends(make):
        models = (make(np.random.default_rng(seed)) for seed in range(5))
        return [run(Em(limits=exploring.EXPLORE), problem, *model).objective for model in models]

    grown = ends(lambda rng: grown_model(problem, 8, 0.8, Em(), rng))
    random = ends(lambda rng: random_model(problem, 8, rng))
    assert np.median(grown) < min(random) - 10


def test_every_kind_is_there_and_no_more_than_asked_for():
    problem, rng = RecordProblem.of(RECORDS), np.random.default_rng(0)
    known = random_model(problem, 3, rng)
    starts = make_starts(problem, 3, 5, Em(), rng, [known])
    assert len(starts) == 5
    assert starts[0](problem) is known
    kinds = [start.func.__name__ for start in starts[1:]]
    assert kinds == ["model_from_tables", "grown_model", "random_model", "grown_model"]
    assert len(make_starts(problem, 3, 1, Em(), rng, [known])) == 1
    assert len(make_starts(problem, 1, 5, Em(), rng)) == 1


def test_the_fit_that_chose_the_rank_is_a_start(monkeypatch):
    """With a single start it is the only one."""
    data = rj.datasets.asia().sample(1000, random_state=0)
    chosen = rj.rank.select(data, ranks=[3], random_state=0)
    monkeypatch.setattr(rj.rank, "select", lambda *_, **__: chosen)
    result = estimate(data, solver="ml", n_init=1, random_state=0)
    problem = RecordProblem.of(data)
    begun = problem.expect(np.array(chosen.pmf.weights), np.vstack(chosen.pmf.factors))
    assert -result.history[0].objective == pytest.approx(begun.log_likelihood, rel=1e-12)


# --- side by side ----------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["ml", "map", "bayes"])
def test_threads_do_not_change_the_result(monkeypatch, solver):
    monkeypatch.setattr(exploring, "SMALLEST", 0)
    found = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(kernels, "available_threads", lambda threads=threads: threads)
        found.append(estimate(RECORDS, 3, solver, n_init=5, random_state=0))
    assert found[0].pmf == found[1].pmf == found[2].pmf
    assert found[0].stop == found[1].stop == found[2].stop
    steps = [[(r.start, r.step, r.objective) for r in result.history] for result in found]
    assert steps[0] == steps[1] == steps[2]


def test_an_error_in_a_worker_is_raised():
    problem = RecordProblem.of(RECORDS)

    def broken(problem):
        raise ZeroDivisionError

    good = make_starts(problem, 3, 1, Em(), np.random.default_rng(0))[0]
    with ThreadPoolExecutor(2) as executor, pytest.raises(ZeroDivisionError):
        exploring.explore(problem, Em(), [good, broken, good], lambda line: None, executor)


@pytest.mark.parametrize(
    ("rows", "threads", "count"), [(100, 2, 5), (50_000, 1, 5), (50_000, 2, 1)]
)
def test_one_after_another_where_threads_gain_nothing(rows, threads, count):
    problem = RecordProblem.of(random_records(0, (9,) * 6, rows), threads)
    with exploring.side_by_side(problem, 2, count) as executor:
        assert executor is None


def test_threads_where_they_gain():
    problem = RecordProblem.of(random_records(0, (9,) * 6, 50_000), 2)
    with exploring.side_by_side(problem, 2, 5) as executor:
        assert isinstance(executor, ThreadPoolExecutor)
