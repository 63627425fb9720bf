"""Steps with the Fisher information, for where EM crawls."""

from dataclasses import replace

import numpy as np

from rejoint.factorization.curvature import pull
from rejoint.factorization.divergence import TINY
from rejoint.factorization.expectation import (
    KlState,
    column_sums,
    evaluate,
    logarithms,
    normalise,
)
from rejoint.factorization.information import information, linear_information
from rejoint.factorization.newton import softmax, solve_directly
from rejoint.factorization.problem import Array, Problem

#: A probability below this may have been given up too early.
LOST = 1e-5

#: No probability is lifted beyond this at once.
ROOM = 0.1


def score(problem: Problem, state: KlState) -> KlState:
    """One step that lowers the objective, if there is one (Nielsen's rule for the damping)."""
    matrix = information(problem, state.model)
    slope = -pull(problem, state.model, state.ascent).ravel()
    size, damping, growth = float(np.diag(matrix).max()), state.damping, 2.0
    while growth < 1e12:
        move, promised = solve_directly(matrix, slope, damping * size)
        logits = logarithms(state.model) + move.reshape(state.model.shape)
        model = np.where(state.model > 0, softmax(problem, logits), 0.0)
        moved = evaluate(problem, model)
        if moved.objective < state.objective:
            gain = (state.objective - moved.objective) / promised if promised > 0 else 0.5
            damping *= max(1 / 3, 1 - (2 * gain - 1) ** 3) if gain < 2 else 1 / 3
            return replace(moved, before=state.before, after=state.after, damping=damping)
        damping, growth = damping * growth, growth * 2
    return state


def lift(problem: Problem, state: KlState) -> KlState:
    """Give room again to probabilities that were given up too early, if that lowers the objective.

    EM multiplies them by 1.0001 at a time, and logits of nearly nothing hardly count.
    """
    room = lost_room(problem, state)
    if not room.any():
        return state
    lifted = evaluate(problem, normalise(problem, np.maximum(state.model, room)))
    if not lifted.objective < state.objective:
        return state
    return replace(lifted, before=state.before, after=state.after, damping=state.damping)


def lost_room(problem: Problem, state: KlState) -> Array:
    """How far each lost probability would go by itself; zero for all others.

    At a minimum the ascent of a column's probabilities is the same, that of zeros at most that.
    """
    level = column_sums(problem, state.model * state.ascent)
    lost = (state.model < LOST) & (state.ascent > (1 + 1e-6) * level)
    if not lost.any():
        return np.zeros_like(state.model)
    full = linear_information(problem, state.weights, state.factors)
    step = (state.ascent - level) / np.maximum(np.einsum("ifif->if", full), TINY)
    return np.where(lost & (state.model < ROOM * step), np.minimum(step, ROOM), 0.0)
