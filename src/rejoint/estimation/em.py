"""Maximum likelihood and maximum a posteriori by accelerated EM, on incomplete records.

A missing cell is left out of its record's product, which is right if cells are missing at
random: whether a cell is missing may depend on what is seen, but not on what is missing.

A pass over the records at ``x`` gives the objective, and expected counts from which both the EM
image of ``x`` and the gradient follow. After a few plain steps, steps are quasi-Newton ones
(L-BFGS in the logits, scaled by the expected counts, which is how EM itself scales the
gradient); one that does not lower the objective is shortened, and in the end
replaced by the EM step, from which descent is certain. (Anderson mixing of EM steps took more
passes.)
"""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from rejoint.arrays import FloatArray
from rejoint.estimation.policy import DEFAULT, Policy
from rejoint.estimation.priors import Prior
from rejoint.model import Layout, Model
from rejoint.solver import acceleration
from rejoint.solver.solver import Limits

if TYPE_CHECKING:
    from rejoint.estimation.data import Data

_LIMITS = Limits(max_steps=2000, progress=1e-9, window=10, exact=-1.0)


@dataclass(frozen=True)
class EmState:
    """A model, expected counts at it (1 + L, F), and the last moves and gradients."""

    model: Model
    objective: float
    counts: FloatArray
    passes: int
    residual: float = np.inf
    memory: acceleration.Memory = ()


@dataclass(frozen=True)
class Em:
    """EM, maximizing likelihood, or likelihood times prior.

    Parameters
    ----------
    prior : Prior, optional
        Pseudo-counts; none for maximum likelihood.
    memory : int, optional
        Moves that the acceleration looks back on, ``policy.em_memory`` by default; 0 is plain EM.
    limits : Limits
        When to stop; by default once the log-likelihood has risen by less than 1e-4 over ten
        steps. A ``progress`` that is given is relative to the log-likelihood.
    policy : Policy
        Tuned numbers of the acceleration.

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
    memory: int | None = None
    limits: Limits = field(default=_LIMITS)
    policy: Policy = field(default=DEFAULT, repr=False)
    name: str = field(default="em", init=False)

    needs = ("expect",)

    def limited_by(self, objective: float) -> "Em":
        """The same with its default limit in proportion to the objective."""
        if self.limits is not _LIMITS:
            return self
        progress = self.policy.em_nats / max(abs(objective), 1.0)
        return replace(self, limits=replace(_LIMITS, progress=progress))

    def init(self, problem: "Data", model: Model) -> EmState:
        """State at a first model."""
        return EmState(model, *self.evaluate(problem, model), passes=1)

    def step(self, problem: "Data", state: EmState) -> EmState:
        """One quasi-Newton step, or one EM step where that fails or it is too early."""
        memory = self.policy.em_memory if self.memory is None else self.memory
        if memory and state.passes > self.policy.plain_steps:
            before, state = state, self.quasi_newton_step(problem, state, memory)
            if state.model is not before.model:
                return state
        model = rescale(problem.layout, state.counts)
        objective, counts = self.evaluate(problem, model)
        return moved_from(state, EmState(model, objective, counts, state.passes + 1))

    def quasi_newton_step(self, problem: "Data", state: EmState, memory: int) -> EmState:
        """Take a quasi-Newton step, shortened at most twice; the same model where all fail."""
        policy, layout, counts = self.policy, problem.layout, state.counts
        slope = gradient(layout, state)
        # EM divides the gradient by the counts; small ones are raised a little.
        scale = counts + 1e-2 * float(counts.mean()) + 1e-8
        move = acceleration.direction(slope, 1.0 / scale, state.memory)
        move = np.clip(move, -policy.largest_move, policy.largest_move)  # near a bound any length
        promised, share, passes = float(np.vdot(slope, move)), 1.0, state.passes
        for _ in range(3 if promised < 0 else 0):
            logits = np.maximum(state.model.stacked, 1e-300) * np.exp(share * move)
            model = rescale(layout, logits)
            objective, counts = self.evaluate(problem, model)
            passes += 1
            if objective <= state.objective + 1e-4 * share * promised:
                after = EmState(model, objective, counts, passes)
                change = gradient(layout, after) - slope
                moves = acceleration.remember(state.memory, share * move, change, memory)
                return moved_from(state, replace(after, memory=moves))
            share *= 0.3
        return replace(state, passes=passes, memory=())

    def evaluate(self, problem: "Data", model: Model) -> tuple[float, FloatArray]:
        """One pass: the objective, and expected counts with the prior's added."""
        found = problem.expect(model)
        if self.prior is None:
            return -found.log_likelihood, found.counts
        return self.penalty(model) - found.log_likelihood, found.counts + self.prior.stacked

    def penalty(self, model: Model) -> float:
        """Minus the logarithm of the prior, up to a constant; zero without one."""
        if self.prior is None:
            return 0.0
        return -float(np.sum(self.prior.stacked * np.log(np.maximum(model.stacked, 1e-300))))


def moved_from(before: EmState, after: EmState) -> EmState:
    """The new state with the relative length of the move that led to it."""
    start = before.model.stacked
    move = np.linalg.norm(after.model.stacked - start) / np.linalg.norm(start)
    return replace(after, residual=float(move))


def gradient(layout: Layout, state: EmState) -> FloatArray:
    """Slope of the objective in the logits: ``column total x model - counts``."""
    counts, model = state.counts, state.model
    head = counts[0].sum() * model.weights - counts[0]
    body = layout.expand(layout.sums(counts[1:])) * model.factors - counts[1:]
    return np.vstack([head, body])


def rescale(layout: Layout, counts: FloatArray) -> Model:
    """Scale weights and columns to sum to one; a class without support stays even."""
    factors = counts[1:]
    empty = layout.sums(factors) <= 0
    if empty.any():
        factors = factors + layout.expand(empty)
    return Model(layout, counts[0] / counts[0].sum(), layout.normalize(factors))
