"""Maximum likelihood and maximum a posteriori by accelerated EM, on incomplete records.

A missing cell is left out of its record's product, which is right if cells are missing at
random: whether a cell is missing may depend on what is seen, but not on what is missing.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from rejoint.estimation.fixed_point import Point, advance, begin
from rejoint.estimation.priors import Prior
from rejoint.estimation.problem import Array, RecordProblem, normalise
from rejoint.solver import Limits

DEFAULT = Limits(max_steps=2000, progress=1e-9, window=10, exact=-1.0)


@dataclass(frozen=True)
class EmState:
    """The point of the accelerated map; its rows are weights and stacked factors."""

    point: Point

    @property
    def weights(self) -> Array:
        """Weights of the classes."""
        return np.asarray(self.point.x[0])

    @property
    def factors(self) -> Array:
        """Stacked factors."""
        return np.asarray(self.point.x[1:])

    @property
    def objective(self) -> float:
        """Minus the log-likelihood, less the log prior."""
        return self.point.objective

    @property
    def residual(self) -> float:
        """Relative length of the next EM move."""
        return self.point.residual


@dataclass(frozen=True)
class Em:
    """EM, maximising likelihood, or likelihood times prior.

    Parameters
    ----------
    prior : Prior, optional
        Pseudo-counts; none for maximum likelihood.
    memory : int
        Passes that Anderson acceleration looks back on; 0 is plain EM.
    limits : Limits
        When to stop; by default once the log-likelihood has risen by less than 1e-4 over ten
        steps. A ``progress`` that is given is relative to the log-likelihood.

    Examples
    --------
    >>> import rejoint as rj
    >>> data = rj.datasets.asia().sample(500, random_state=0)
    >>> plain = rj.estimate(data, rank=2, solver=Em(memory=0), random_state=0)
    >>> quick = rj.estimate(data, rank=2, solver=Em(), random_state=0)
    >>> abs(plain.log_likelihood - quick.log_likelihood) < 0.1
    True
    """

    prior: Prior | None = None
    memory: int = 8
    limits: Limits = field(default=DEFAULT)
    name: str = field(default="em", init=False)

    def within(self, objective: float) -> "Em":
        """The same with its default limit in proportion to the objective."""
        if self.limits is not DEFAULT:
            return self
        return replace(self, limits=replace(DEFAULT, progress=1e-4 / max(abs(objective), 1.0)))

    def init(self, problem: RecordProblem, weights: Array, factors: Array) -> EmState:
        """State at a first model."""
        return EmState(begin(self._map(problem), np.vstack([weights, factors])))

    def step(self, problem: RecordProblem, state: EmState) -> EmState:
        """One accelerated EM step."""
        mapping = self._map(problem)

        def repair(leap: Array, safe: Array) -> Array:
            return rescale(problem, np.where(leap > 0, leap, 0.1 * safe))

        return EmState(advance(mapping, repair, state.point, self.memory))

    def _map(self, problem: RecordProblem) -> "EmMap":
        return EmMap(problem, self.prior)


@dataclass(frozen=True)
class EmMap:
    """One EM step as a map of stacked weights and factors (1 + L, F)."""

    problem: RecordProblem
    prior: Prior | None

    def __call__(self, x: Array) -> tuple[float, Array]:
        """Objective at ``x`` and its image."""
        found = self.problem.expect(x[0], x[1:])
        objective, counts = -found.log_likelihood, found.stacked
        if self.prior is not None:
            counts = counts + self.prior.stacked
            objective -= float(np.sum(self.prior.stacked * np.log(np.maximum(x, 1e-300))))
        return objective, rescale(self.problem, counts)


def rescale(problem: RecordProblem, counts: Array) -> Array:
    """Scale weights and columns to sum to one; a class that nothing supports stays even."""
    factors = counts[1:]
    dead = np.add.reduceat(factors, problem.offsets[:-1]) <= 0
    if dead.any():
        factors = factors + np.repeat(dead, problem.levels, axis=0)
    return np.vstack([counts[0] / counts[0].sum(), normalise(problem, factors)])
