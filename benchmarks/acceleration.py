"""Passes that accelerated EM needs to the likelihood that plain EM ends with, over 20 problems.

Both start at the same random model. Plain EM runs until it gains less than 1e-3 over ten passes
(5,000 passes at the most); passes of failed leaps count too. From one start the two may climb
different hills: over 120 further problems it is counted whose is the higher one.
"""

from collections.abc import Iterator

import numpy as np
from models import random_pmf

import rejoint as rj
from rejoint.estimation.data import InMemory
from rejoint.estimation.em import Em
from rejoint.estimation.starts import random_model
from rejoint.model import Model

MOST = 5_000


def climb(solver: Em, problem: InMemory, start: Model, goal: float | None) -> tuple[int, float]:
    """Passes and objective at the goal, or at the end of progress without one."""
    state = solver.init(problem, start)
    trail = [state.objective]
    while state.passes < MOST:
        state = solver.step(problem, state)
        assert state.objective <= trail[-1] + 1e-9 * abs(trail[-1]), "the likelihood fell"
        trail.append(state.objective)
        if goal is not None and state.objective <= goal:
            break
        if goal is None and len(trail) > 10 and trail[-11] - trail[-1] < 1e-3:
            break
    return state.passes, state.objective


def problems(count: int, seed: int) -> Iterator[tuple[str, InMemory, Model]]:
    """Random problems of all sizes: what they are, and where to start."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        size, levels = int(rng.integers(5, 15)), int(rng.integers(2, 7))
        rank, records = int(rng.integers(2, 9)), int(10 ** rng.uniform(3, 4.5))
        missing = float(rng.choice([0.0, 0.3]))
        truth = random_pmf([levels] * size, rank, rng)
        data = truth.sample(records, random_state=rng)
        if missing:
            data = rj.datasets.remove_cells(data, missing, random_state=rng)
        problem = InMemory.of(data, threads=1)
        words = f"{size:4} {levels:7} {rank:4} {records:7,} {missing:7.0%}"
        yield words, problem, random_model(problem, rank, np.random.default_rng(number))


def race() -> None:
    """Print passes of both for each of 20 problems, and the median ratio."""
    ratios, gains = [], []
    print("   N  levels rank records missing   plain  accelerated  ratio")
    for words, problem, start in problems(20, seed=0):
        plain, goal = climb(Em(memory=0), problem, start, None)
        quick, reached = climb(Em(), problem, start, goal + 1e-6)
        gains.append(goal - climb(Em(), problem, start, None)[1])
        ratios.append(plain / quick)
        remark = "" if reached <= goal + 1e-6 else "  (not reached)"
        print(f"{words} {plain:7,} {quick:12,} {plain / quick:6.1f}{remark}")
    print(f"median ratio {np.median(ratios):.1f}")
    tell("of these 20", gains)


def compare() -> None:
    """Print whose optimum is the higher one, over 120 further problems."""
    gains = []
    for _, problem, start in problems(120, seed=1):
        goal = climb(Em(memory=0), problem, start, None)[1]
        gains.append(goal - climb(Em(), problem, start, None)[1])
    tell("of 120 further problems", gains)


def tell(which: str, gains: list[float]) -> None:
    """Print how often the accelerated one ends lower and higher, by over 1 in log-likelihood."""
    low, high = (sum(sign * gain > 1.0 for gain in gains) for sign in (-1, 1))
    print(f"optima of the accelerated one {which}: {low} lower by over 1, {high} higher by over 1")


if __name__ == "__main__":
    race()
    compare()
