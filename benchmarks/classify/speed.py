"""Predictions a second on a million rows, beside StepMix with as many classes."""

import time
import warnings
from collections.abc import Callable

import numpy as np

import rejoint as rj

ROWS, COLUMNS, LEVELS, RANK = 1_000_000, 20, 4, 10


def world(rng: np.random.Generator) -> rj.LowRankPMF:
    """A label and features."""
    factors = [rng.dirichlet(np.full(LEVELS, 0.5), RANK).T for _ in range(COLUMNS)]
    labels = np.eye(2)[:, np.arange(RANK) % 2] * 0.9 + 0.05
    return rj.LowRankPMF(rng.dirichlet(np.full(RANK, 5.0)), [*factors, labels])


def speed() -> None:
    from stepmix.stepmix import StepMix

    warnings.simplefilter("ignore")  # it need not converge here
    records = world(np.random.default_rng(0)).sample(ROWS, random_state=1)
    codes = np.array(records.codes, dtype=np.int64)
    X, y = np.ascontiguousarray(codes[:, :COLUMNS]), codes[:, COLUMNS]
    some = slice(0, 5000)
    ours = rj.JointClassifier(rank=RANK, random_state=0).fit(X[some], y[some])
    one = rj.JointClassifier(rank=RANK, solver="map", random_state=0).fit(X[some], y[some])
    theirs = StepMix(
        n_components=RANK,
        measurement="categorical",
        structural="categorical",
        n_steps=1,
        max_iter=20,
        random_state=0,
        verbose=0,
        progress_bar=0,
    ).fit(X[some], y[some, None])
    print(f"{ROWS:,} rows x {COLUMNS} columns of {LEVELS} levels, {RANK} classes")
    rates = []
    members = len(ours.ensemble_.members)
    for name, call in (
        ("StepMix.predict_Y", lambda: theirs.predict_Y(X)),
        ("JointClassifier, one model", lambda: one.predict(X)),
        (f"JointClassifier, {members} models averaged", lambda: ours.predict(X)),
    ):
        rates.append(ROWS / np.array(best_of_three(call)))
        seconds, cpu = ROWS / rates[-1]
        print(f"{name:45} {seconds:8.2f} s {cpu:8.2f} s of CPU {rates[-1][0]:14,.0f} rows/s")
    for words, (first, *others) in zip(
        ("rate", "rate per second of CPU"), zip(*rates, strict=True), strict=True
    ):
        print(f"times StepMix's {words}: " + ", ".join(f"{rate / first:.0f}" for rate in others))


def best_of_three(call: Callable[[], object]) -> tuple[float, float]:
    """Least time and CPU time of three: other work on the machine is not theirs or ours."""
    times = []
    for _ in range(3):
        begun, cpu = time.perf_counter(), time.process_time()
        call()
        times.append((time.perf_counter() - begun, time.process_time() - cpu))
    return min(times)[0], min(cpu for _, cpu in times)
