"""Solvers to copy: EM for records, exponentiated gradients for tables."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rejoint.factorization import Limits
from rejoint.model import Model


@dataclass(frozen=True)
class PlainEmState:
    """A model, expected counts at it, and the length of the last step."""

    model: Model
    objective: float
    counts: NDArray[np.float64]  # (1 + L, F): of classes, then of levels
    residual: float = np.inf


@dataclass(frozen=True)
class PlainEm:
    """EM without acceleration, for records."""

    limits: Limits = field(default=Limits(max_steps=5000, progress=1e-12))
    name: str = "plain-em"
    needs: ClassVar[tuple[str, ...]] = ("expect", "layout")

    def init(self, problem: Any, model: Model) -> PlainEmState:
        """State at a first model: one pass over the records (E-step)."""
        found = problem.expect(model)
        return PlainEmState(model, -found.log_likelihood, found.counts)

    def step(self, problem: Any, state: PlainEmState) -> PlainEmState:
        """M-step: scale the counts. Then the E-step at the new model."""
        classes, levels = state.counts[0], state.counts[1:]
        # A class that no record belongs to gets even columns.
        factors = problem.layout.normalize(np.maximum(levels, 1e-100))
        model = Model(problem.layout, classes / classes.sum(), factors)
        found = problem.expect(model)
        residual = float(np.abs(model.stacked - state.model.stacked).max())
        return PlainEmState(model, -found.log_likelihood, found.counts, residual)


@dataclass(frozen=True)
class GradientState:
    """A model, the slope at it, and the step size to try next."""

    model: Model
    objective: float
    slope: NDArray[np.float64]  # (1 + L, F): in weights, then in factors
    rate: float = 1.0
    residual: float = np.inf


@dataclass(frozen=True)
class ExponentiatedGradient:
    """Gradient descent on logits, for tables, under any loss."""

    limits: Limits = field(default=Limits(max_steps=5000, progress=1e-8))
    name: str = "exponentiated-gradient"
    needs: ClassVar[tuple[str, ...]] = ("gradient", "layout")

    def init(self, problem: Any, model: Model) -> GradientState:
        """State at a first model; zeros are lifted, as they stay zeros."""
        stacked = np.maximum(model.stacked, 1e-4)
        weights, factors = stacked[0] / stacked[0].sum(), problem.layout.normalize(stacked[1:])
        model = Model(problem.layout, weights, factors)
        return GradientState(model, *problem.gradient(model))

    def step(self, problem: Any, state: GradientState) -> GradientState:
        """Move against the slope, shorter until the objective falls."""
        rate = state.rate
        while rate > 1e-12:
            moved = state.model.stacked * np.exp(np.clip(-rate * state.slope, -5.0, 5.0))
            factors = problem.layout.normalize(moved[1:])
            model = Model(problem.layout, moved[0] / moved[0].sum(), factors)
            objective, slope = problem.gradient(model)
            if objective < state.objective:
                residual = float(np.abs(model.stacked - state.model.stacked).max())
                return GradientState(model, objective, slope, 1.5 * rate, residual)
            rate /= 2
        return state  # the same object: nothing improves it any more
