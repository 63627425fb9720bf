"""The rank that variational Bayes leaves: unneeded classes lose their weight and vanish."""

from dataclasses import dataclass, field, replace

import numpy as np

from rejoint.estimation.problem import RecordProblem
from rejoint.estimation.starts import CAUTIOUS, Model, grown_model, random_model
from rejoint.estimation.variational import Variational
from rejoint.rank.criteria import Report
from rejoint.rank.fitting import checked, fit, solver_for
from rejoint.solver import Limits, Run, run

#: Pseudo-count of a class: below one, so that a class must explain records to keep any.
SPARSITY = 0.3

#: The first cap; it doubles while no class vanishes below it.
FIRST_CAP = 8

#: Records that a class must have in expectation to be there.
LEAST = 1.0


@dataclass(frozen=True)
class Vanished:
    """Classes that are left, the bound of the evidence, and the caps that were tried."""

    model: Model = field(repr=False)
    bound: float
    caps: tuple[int, ...]
    interrupted: bool = False

    @property
    def rank(self) -> int:
        """Number of classes that are left."""
        return len(self.model[0])


def vanish(
    problem: RecordProblem, most: int, n_init: int, rng: np.random.Generator, report: Report
) -> Vanished:
    """Fit under a cap that doubles until it is not reached; drop the classes that vanished."""
    caps: list[int] = []
    found: Vanished | None = None
    cap = min(FIRST_CAP, most)
    while True:
        report(f"variational Bayes with {cap} classes")
        caps.append(cap)
        try:
            done = sparse_fit(problem, cap, n_init, rng)
        except KeyboardInterrupt:
            if found is None:
                raise
            return replace(found, interrupted=True)
        left = done.weights * problem.total > LEAST
        model = done.weights[left] / done.weights[left].sum(), done.factors[:, left]
        found = Vanished(model, -done.objective, tuple(caps))
        if found.rank < cap or cap == most:
            return found
        cap = min(2 * cap, most)


def sparse_fit(problem: RecordProblem, cap: int, n_init: int, rng: np.random.Generator) -> Run:
    """The best of several runs of sparse variational Bayes, each from a brief fit with a prior."""
    brief = solver_for("map", problem)
    limits = Limits(1000, progress=1e-8, window=20, exact=-1.0)
    solver = Variational(sparsity=SPARSITY, limits=limits)
    runs = []
    for k in range(n_init):
        if cap > 1 and k % 2 == 0:
            start = grown_model(problem, cap, CAUTIOUS, brief, rng)
        else:
            start = random_model(problem, cap, rng)
        begun = fit(problem, brief, [start])
        runs.append(checked(run(solver, problem, begun.weights, begun.factors)))
    return min(runs, key=lambda r: r.objective)
