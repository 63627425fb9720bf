"""Maximum likelihood and maximum a posteriori by accelerated EM, on incomplete records.

A missing cell is left out of its record's product, which is right if cells are missing at
random: whether a cell is missing may depend on what is seen, but not on what is missing.

A pass over the records at ``x`` gives the objective, and expected counts from which both the EM
image of ``x`` and the gradient follow. After a few plain steps, steps are quasi-Newton ones
(L-BFGS in the logits, scaled by the expected counts, which is how EM itself scales the
gradient), short ones at first; one that does not lower the objective is shortened, and in the end
replaced by the EM step, from which descent is certain. (Anderson mixing of EM steps took more
passes.)
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rejoint.estimation import lbfgs
from rejoint.estimation.data import Array, RecordProblem, normalise
from rejoint.estimation.priors import Prior
from rejoint.solver.solver import Limits

DEFAULT = Limits(max_steps=2000, progress=1e-9, window=10, exact=-1.0)

#: Plain EM steps before quasi-Newton ones: far from a maximum their model does not hold.
PLAIN = 5

#: Largest move of a logit, and that of the first passes: long strides early on lead over to other
#: hills, and take more passes in the end.
LARGEST, GENTLE, EARLY = 2.0, 0.2, 20

#: Expected count below which a probability falls no faster than under EM, and the passes this
#: holds for: one that a long stride has taken to zero has no slope left to come back by.
LITTLE, CAREFUL = 0.3, 60


@dataclass(frozen=True)
class EmState:
    """A model (1 + L, F), weights first; expected counts at it; the last moves and gradients."""

    model: Array
    objective: float
    counts: Array
    passes: int
    residual: float = np.inf
    memory: lbfgs.Memory = ()

    @property
    def weights(self) -> Array:
        """Weights of the classes."""
        return np.asarray(self.model[0])

    @property
    def factors(self) -> Array:
        """Stacked factors."""
        return np.asarray(self.model[1:])


@dataclass(frozen=True)
class Em:
    """EM, maximising likelihood, or likelihood times prior.

    Parameters
    ----------
    prior : Prior, optional
        Pseudo-counts; none for maximum likelihood.
    memory : int
        Moves that the acceleration looks back on; 0 is plain EM.
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
    memory: int = 20
    limits: Limits = field(default=DEFAULT)
    name: str = field(default="em", init=False)

    def within(self, objective: float) -> "Em":
        """The same with its default limit in proportion to the objective."""
        if self.limits is not DEFAULT:
            return self
        return replace(self, limits=replace(DEFAULT, progress=1e-4 / max(abs(objective), 1.0)))

    def init(self, problem: RecordProblem, weights: Array, factors: Array) -> EmState:
        """State at a first model."""
        model = np.vstack([weights, factors])
        return EmState(model, *self.look(problem, model), passes=1)

    def step(self, problem: RecordProblem, state: EmState) -> EmState:
        """One quasi-Newton step, or one EM step where that fails or it is too early."""
        if self.memory and state.passes > PLAIN:
            state, leapt = self.leap(problem, state)
            if leapt:
                return state
        model = rescale(problem, state.counts)
        objective, counts = self.look(problem, model)
        return settled(EmState(model, objective, counts, state.passes + 1), state)

    def leap(self, problem: RecordProblem, state: EmState) -> tuple[EmState, bool]:
        """Try a quasi-Newton step, shortened twice at the most; the state as it was if all fail."""
        slope = gradient(problem, state)
        move = lbfgs.direction(slope, 1.0 / scaling(state.counts), state.memory)
        most = GENTLE if state.passes <= EARLY else LARGEST
        move = np.clip(move, -most, most)  # logits near a wall ask for any length
        promised, share = float(np.vdot(slope, move)), 1.0
        passes = state.passes
        for _ in range(3 if promised < 0 else 0):
            model = moved(problem, state, share * move)
            objective, counts = self.look(problem, model)
            passes += 1
            if objective <= state.objective + 1e-4 * share * promised:
                after = EmState(model, objective, counts, passes)
                memory = lbfgs.remember(
                    state.memory, share * move, gradient(problem, after) - slope, self.memory
                )
                return settled(replace(after, memory=memory), state), True
            share *= 0.3
        return replace(state, passes=passes, memory=()), False

    def freeze(self, state: EmState) -> dict[str, Any]:
        """A state as arrays and numbers, for a journal."""
        moves, changes = (np.array([pair[k] for pair in state.memory]) for k in (0, 1))
        numbers = {name: getattr(state, name) for name in ("objective", "passes", "residual")}
        arrays = {"model": state.model, "counts": state.counts, "moves": moves, "changes": changes}
        return {**arrays, **numbers}

    def thaw(self, frozen: Mapping[str, Any]) -> EmState:
        """The state that was frozen, to the last bit."""
        rest = {name: value for name, value in frozen.items() if name not in ("moves", "changes")}
        memory = tuple(zip(frozen["moves"], frozen["changes"], strict=True))
        return EmState(**rest, memory=memory)

    def look(self, problem: RecordProblem, model: Array) -> tuple[float, Array]:
        """One pass: the objective, and expected counts with the prior's added."""
        found = problem.expect(model[0], model[1:])
        objective, counts = -found.log_likelihood, found.stacked
        if self.prior is not None:
            counts = counts + self.prior.stacked
            objective -= float(np.sum(self.prior.stacked * np.log(np.maximum(model, 1e-300))))
        return objective, counts


def settled(after: EmState, before: EmState) -> EmState:
    """The new state with the relative length of the move that led to it."""
    move = np.linalg.norm(after.model - before.model) / np.linalg.norm(before.model)
    return replace(after, residual=float(move))


def gradient(problem: RecordProblem, state: EmState) -> Array:
    """Slope of the objective in the logits: ``column total x model - counts``."""
    counts, model = state.counts, state.model
    totals = np.add.reduceat(counts[1:], problem.offsets[:-1])
    head = counts[0].sum() * model[0] - counts[0]
    body = np.repeat(totals, problem.levels, axis=0) * model[1:] - counts[1:]
    return np.vstack([head, body])


def scaling(counts: Array) -> Array:
    """What EM divides the gradient by: the counts, small ones raised a little."""
    least = 1e-2 * float(counts.mean()) + 1e-8
    return counts + least


def moved(problem: RecordProblem, state: EmState, move: Array) -> Array:
    """The model after a move of its logits."""
    model = rescale(problem, np.maximum(state.model, 1e-300) * np.exp(move))
    if state.passes > CAREFUL:
        return model
    counts = state.counts
    sums = np.maximum(np.add.reduceat(counts[1:], problem.offsets[:-1]), 1e-300)
    totals = np.vstack(
        [np.full_like(counts[:1], counts[0].sum()), np.repeat(sums, problem.levels, axis=0)]
    )
    return rescale(problem, np.maximum(model, np.minimum(LITTLE, counts) / totals))


def rescale(problem: RecordProblem, counts: Array) -> Array:
    """Scale weights and columns to sum to one; a class that nothing supports stays even."""
    factors = counts[1:]
    dead = np.add.reduceat(factors, problem.offsets[:-1]) <= 0
    if dead.any():
        factors = factors + np.repeat(dead, problem.levels, axis=0)
    return np.vstack([counts[0] / counts[0].sum(), normalise(problem, factors)])
