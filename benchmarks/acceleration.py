"""Passes that accelerated EM needs to the likelihood that plain EM ends with, over 20 problems.

Both start at the same random model. Plain EM runs until it gains less than 1e-3 over ten passes
(5,000 passes at the most); passes of failed leaps count too.
"""

import numpy as np
from models import random_pmf

import rejoint as rj
from rejoint.estimation.em import Em
from rejoint.estimation.problem import RecordProblem
from rejoint.estimation.starts import random_model

MOST = 5_000


def climb(
    solver: Em, problem: RecordProblem, start: tuple, goal: float | None
) -> tuple[int, float]:
    """Passes and objective at the goal, or at the end of progress without one."""
    state = solver.init(problem, *start)
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


def main() -> None:
    """Print passes of both for each problem, and the median ratio."""
    rng = np.random.default_rng(0)
    ratios, worse, better = [], 0, 0
    print("   N  levels rank records missing   plain  accelerated  ratio")
    for seed in range(20):
        size, levels = int(rng.integers(5, 15)), int(rng.integers(2, 7))
        rank, records = int(rng.integers(2, 9)), int(10 ** rng.uniform(3, 4.5))
        missing = float(rng.choice([0.0, 0.3]))
        truth = random_pmf([levels] * size, rank, rng)
        data = truth.sample(records, random_state=rng)
        if missing:
            data = rj.datasets.remove_cells(data, missing, random_state=rng)
        problem = RecordProblem.of(data, threads=1)
        start = random_model(problem, rank, np.random.default_rng(seed))
        plain, goal = climb(Em(memory=0), problem, start, None)
        quick, reached = climb(Em(), problem, start, goal + 1e-6)
        _, best = climb(Em(), problem, start, None)
        worse += best > goal + 1.0
        better += best < goal - 1.0
        ratios.append(plain / quick)
        print(
            f"{size:4} {levels:7} {rank:4} {records:7,} {missing:7.0%} {plain:7,} {quick:12,} "
            f"{plain / quick:6.1f}{'' if reached <= goal + 1e-6 else '  (not reached)'}"
        )
    print(f"median ratio {np.median(ratios):.1f}")
    print(
        f"optima of the accelerated one: {worse} of 20 lower by over 1, {better} higher by over 1"
    )


if __name__ == "__main__":
    main()
