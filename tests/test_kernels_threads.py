"""Threads of the kernels among those of others: after a fork, in pools, inside joblib."""

import multiprocessing
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.model_selection import cross_val_score

import rejoint as rj
from rejoint import kernels

LEVELS = [4] * 10


def records():
    """Enough for several chunks, and for joblib to pass them on as a read-only memory map."""
    rng = np.random.default_rng(0)
    codes = rng.integers(-1, 4, size=(60_000, 10)).astype(np.int16)
    factors = np.concatenate([rng.dirichlet(np.ones(4), size=6).T for _ in LEVELS])
    return codes, np.full(6, 1 / 6), factors


@pytest.fixture(scope="module")
def work():
    codes, weights, factors = records()
    cells = kernels.SparseCodes.of_codes(codes, LEVELS)
    return [
        (kernels.class_pass, (codes, None, weights, factors, LEVELS, 2)),
        (kernels.class_pass, (cells, None, weights, factors, LEVELS, 2)),
        (kernels.class_posterior, (codes[:9000], weights, factors, LEVELS, 2)),
        (kernels.count, (codes, None, LEVELS, [(0, 1, 2), (3, 4, 9)], 2)),
    ]


@pytest.fixture(scope="module")
def truth(work):
    return [function(*arguments) for function, arguments in work]


def assert_equal(found, truth):
    """To the last bit: nothing depends on threads."""
    for one, other in zip(found, truth, strict=True):
        pairs = zip(one, other, strict=True) if isinstance(one, tuple) else [(one, other)]
        for a, b in pairs:
            np.testing.assert_array_equal(a, b)


def compute(queue, work):
    queue.put([function(*arguments) for function, arguments in work])


# Python itself warns of forks in a process with threads, from 3.12 on.
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.skipif(sys.platform != "linux", reason="others do not fork by default")
@pytest.mark.parametrize("busy", [False, True])
def test_after_a_fork_children_compute_too(work, truth, busy):
    """Also where a thread of the parent was inside a kernel as the process was copied."""
    done = Event()

    def keep_busy():
        while busy and not done.is_set():
            function, arguments = work[0]
            function(*arguments)

    thread = Thread(target=keep_busy)
    thread.start()
    try:
        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        children = [context.Process(target=compute, args=(queue, work)) for _ in range(2)]
        for child in children:
            child.start()
        for _ in children:
            assert_equal(queue.get(timeout=120), truth)
        for child in children:
            child.join(timeout=120)
            assert child.exitcode == 0
    finally:
        done.set()
        thread.join()
    assert_equal([function(*arguments) for function, arguments in work], truth)


def test_in_a_pool_of_threads(work, truth):
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            futures = [pool.submit(function, *arguments) for function, arguments in work]
            assert_equal([future.result() for future in futures], truth)


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_inside_joblib(work, truth, backend):
    calls = (delayed(function)(*arguments) for function, arguments in work)
    assert_equal(Parallel(n_jobs=2, backend=backend)(calls), truth)


def test_estimators_side_by_side_score_as_one_after_another():
    X = rj.datasets.asia().sample(300, random_state=0).codes.astype(np.int64)
    estimator = rj.JointPMF(rank=2, solver="ml", n_init=1, random_state=0)
    one, two = (cross_val_score(estimator, X, cv=2, n_jobs=jobs) for jobs in (1, 2))
    np.testing.assert_array_equal(one, two)
