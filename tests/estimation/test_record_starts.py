"""Where estimation starts, and starts that are followed in threads."""

from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from threading import current_thread, main_thread

import numpy as np
import pytest
from small_records import random_records

import rejoint as rj
from rejoint import kernels
from rejoint.estimation import Em, Policy, estimate
from rejoint.estimation.data import InMemory
from rejoint.estimation.starts import (
    grown_model,
    independence,
    make_starts,
    random_model,
    widen,
)
from rejoint.solver import Limits, run

search = import_module("rejoint.solver.search")
RECORDS = random_records(3, (3, 3, 3, 3), 400, rank=3, missing=0.1)


def test_new_classes_grow_from_records_that_the_model_lacks():
    data = rj.Records.of({"a": [0, 1] * 50 + [0] * 20, "b": [0, 1] * 50 + [1] * 20, "c": [0] * 120})
    data = InMemory.of(data)
    model = widen(data, independence(data), 3, np.random.default_rng(0))
    assert model.weights.sum() == pytest.approx(1)
    assert np.allclose(data.layout.sums(model.factors), 1)
    # (0, 0) and (1, 1) are more frequent than under independence, (0, 1) is not.
    for column in model.factors[:, 1:].T:
        assert column[:2].argmax() == column[2:4].argmax()


def test_growth_finds_rare_combinations():
    """Asia's rare diseases: the best of the grown starts is better than the best random one."""
    data = InMemory.of(rj.datasets.asia().sample(50_000, random_state=0))

    def ends(make):
        models = (make(np.random.default_rng(seed)) for seed in range(5))
        return [run(Em(limits=Policy().explore), data, model).objective for model in models]

    grown = ends(lambda rng: grown_model(data, 8, Em(), rng))
    random = ends(lambda rng: random_model(data, 8, rng))
    assert min(grown) < min(random) - 10


def test_every_kind_of_start_is_made_and_no_more_than_asked_for():
    data, rng = InMemory.of(RECORDS), np.random.default_rng(0)
    known = random_model(data, 3, rng)
    starts = make_starts(data, 3, 5, Em(), rng, [known])
    assert len(starts) == 5
    assert starts[0](data) is known
    kinds = [start.func.__name__ for start in starts[1:]]
    assert kinds == ["model_from_votes", "grown_model", "random_model", "grown_model"]
    assert len(make_starts(data, 3, 1, Em(), rng, [known])) == 1
    assert len(make_starts(data, 1, 5, Em(), rng)) == 1


def test_the_fit_that_chose_the_rank_is_a_start():
    """With a single start it is the only one."""
    data = rj.datasets.asia().sample(1000, random_state=0)
    result = estimate(data, solver="ml", n_init=1, random_state=0)
    assert result.selection.rank > 1
    begun = float(result.selection.pmf.log_prob(data).sum())
    assert -result.history[0].objective == pytest.approx(begun, rel=1e-12)


# --- threads ---------------------------------------------------------------------------------

THREADED = Policy(threaded_pass=(0, 10**9))


@pytest.mark.parametrize("solver", ["ml", "map", "bayes"])
def test_threads_do_not_change_the_result(monkeypatch, solver):
    found = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(kernels, "available_threads", lambda threads=threads: threads)
        found.append(estimate(RECORDS, 3, solver, n_init=5, random_state=0, policy=THREADED))
    assert found[0].pmf == found[1].pmf == found[2].pmf
    assert found[0].stop == found[1].stop == found[2].stop
    steps = [[(r.start, r.step, r.objective) for r in result.history] for result in found]
    assert steps[0] == steps[1] == steps[2]


def test_threads_do_not_change_the_default_fit(monkeypatch):
    found = []
    for threads in (1, 2, 4):
        monkeypatch.setattr(kernels, "available_threads", lambda threads=threads: threads)
        found.append(estimate(RECORDS, random_state=0, policy=THREADED))
    assert found[0].pmf == found[1].pmf == found[2].pmf
    assert found[0].choice == found[1].choice == found[2].choice


class Broken(Em):
    """EM whose steps fail outside the main thread; where they do not fail they never end."""

    def step(self, problem, state):
        if current_thread() is not main_thread():
            raise ZeroDivisionError
        return super().step(problem, state)


@pytest.fixture
def thread_pools(monkeypatch):
    """Numbers of threads of the pools that searches make."""
    made = []

    class Pool(ThreadPoolExecutor):
        def __init__(self, workers):
            made.append(workers)
            super().__init__(workers)

    monkeypatch.setattr(search, "ThreadPoolExecutor", Pool)
    return made


def test_an_error_in_a_thread_ends_all_and_is_raised(monkeypatch):
    monkeypatch.setattr(kernels, "available_threads", lambda: 2)
    endless = Limits(max_steps=10**9, progress=0.0, window=10**9, exact=-1.0, residual=-1.0)
    policy = Policy(threaded_pass=(0, 10**9), explore=endless)
    with pytest.raises(ZeroDivisionError):
        estimate(RECORDS, 3, Broken(), n_init=3, random_state=0, policy=policy)


@pytest.mark.parametrize(
    ("rows", "threads", "count"), [(100, 2, 5), (50_000, 1, 5), (50_000, 2, 1)]
)
def test_one_start_after_another_where_threads_gain_nothing(
    monkeypatch, thread_pools, rows, threads, count
):
    monkeypatch.setattr(kernels, "available_threads", lambda: threads)
    explore_briefly(rows, count)
    assert thread_pools == []


def test_threads_where_they_gain(monkeypatch, thread_pools):
    monkeypatch.setattr(kernels, "available_threads", lambda: 2)
    explore_briefly(50_000, 5)
    found = list(thread_pools)
    assert set(found) == {2}
    explore_briefly(50_000, 5, threaded_pass=(0, 100_000))
    explore_briefly(50_000, 5, threaded_pass=(10_000_000, 10**9))
    assert thread_pools == found


def explore_briefly(rows, count, **numbers):
    """A fit of some starts, of one step each."""
    one_step = Limits(max_steps=1, exact=-1.0)
    policy = Policy(explore=one_step, growth_steps=1, **numbers)
    records = random_records(0, (9,) * 6, rows)
    solver = Em(limits=one_step)
    estimate(records, 2, solver, n_init=count, random_state=0, policy=policy)
