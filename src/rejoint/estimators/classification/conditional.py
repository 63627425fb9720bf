"""Conditional likelihood: models of features and labels, trained to tell the labels.

The conditional log-likelihood of the labels is ``log P(x, y) - log P(x)``: one pass over the
records minus one over the same records with their labels hidden, and so is its slope. The
objective is minus

``sum log P(y | x) + joint * sum log P(x, y) - strength / 2 * ||logits - centre||^2``

in the logits of weights and columns (neighbouring levels of ordered variables are pulled together
instead; what classes of a label have in common counts once). A softmax of scores that add up over
the variables is such a model, whatever the scores: logistic regression has one class for each
label, and more classes bend its boundaries. What comes out is a :class:`LowRankPMF` like any other.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from rejoint.estimation import quasi_newton
from rejoint.estimation.problem import Array
from rejoint.estimators.classification.labelled import LabelledProblem
from rejoint.solver import Limits

__all__ = ["Conditional", "objective"]

#: Largest move of a logit in one step.
LARGEST = 5.0

#: Probabilities of a start are raised to this, that no logit be infinite.
LEAST = 1e-6

DEFAULT = Limits(max_steps=300, progress=1e-4, window=10, exact=-1.0)


def objective(
    problem: LabelledProblem, logits: Array, joint: float, strength: float
) -> tuple[float, Array]:
    """What is minimised, and its slope in the logits (1 + L, F).

    Examples
    --------
    >>> from rejoint.records import Records
    >>> records = Records.of({"x": ["a", "a", "b"], "y": ["no", "yes", "yes"]})
    >>> value, slope = objective(LabelledProblem.of(records, 1), np.zeros((5, 1)), 0.0, 0.0)
    >>> round(float(value / np.log(2)), 3), slope[3:, 0]
    (3.0, array([ 0.5, -0.5]))
    """
    known, blind = problem.known, problem.blind
    model = normalised(problem, logits)
    seen = known.expect(model[0], model[1:])
    hidden = blind.expect(model[0], model[1:])
    value = hidden.log_likelihood - (1.0 + joint) * seen.log_likelihood
    counts = (1.0 + joint) * seen.stacked - hidden.stacked
    totals = np.add.reduceat(counts[1:], known.offsets[:-1])
    slope = -counts
    slope[0] += counts[0].sum() * model[0]
    slope[1:] += np.repeat(totals, known.levels, axis=0) * model[1:]
    price, pushed = penalty(problem, logits, strength)
    return value + price, slope + pushed


def penalty(problem: LabelledProblem, logits: Array, strength: float) -> tuple[float, Array]:
    """Minus the log-density of the prior, up to a constant, and its slope.

    Levels of nominal variables are pulled to the variable's own shares one by one; those of ordered
    ones mostly towards each other, so that neighbours inform each other. What classes of the same
    label have in common counts once: else the more classes there were, the less would be left of
    what one class for each label says.
    """
    away = logits - problem.anchor
    kin = problem.kin(logits.shape[1])
    counted = away - away @ kin * (1.0 - kin.diagonal())
    pushed = problem.pull(strength) * counted
    price = 0.5 * float(np.vdot(pushed, away))
    links = strength * problem.links
    if links.any():
        apart = np.diff(away[1:], axis=0)
        force = links * np.diff(counted[1:], axis=0)
        price += 0.5 * float(np.vdot(force, apart))
        pushed[2:] += force
        pushed[1:-1] -= force
    return price, pushed


def normalised(problem: LabelledProblem, logits: Array) -> Array:
    """Weights and columns of the logits, (1 + L, F)."""
    known = problem.known
    top = np.maximum.reduceat(logits[1:], known.offsets[:-1])
    columns = np.exp(logits[1:] - np.repeat(top, known.levels, axis=0))
    columns /= np.repeat(np.add.reduceat(columns, known.offsets[:-1]), known.levels, axis=0)
    weights = np.exp(logits[0] - logits[0].max())
    return np.vstack([weights / weights.sum(), columns])


@dataclass(frozen=True)
class ConditionalState:
    """Logits, the model they stand for, and what quasi-Newton steps remember."""

    logits: Array
    model: Array
    objective: float
    slope: Array
    memory: quasi_newton.Memory = ()

    @property
    def weights(self) -> Array:
        """Weights of the classes."""
        return np.asarray(self.model[0])

    @property
    def factors(self) -> Array:
        """Stacked factors."""
        return np.asarray(self.model[1:])

    @property
    def residual(self) -> float:
        """Largest entry of the slope, relative to the objective."""
        return float(np.abs(self.slope).max() / max(abs(self.objective), 1.0))


@dataclass(frozen=True)
class Conditional:
    """Maximise the conditional likelihood of the labels by quasi-Newton steps (L-BFGS).

    Parameters
    ----------
    joint : float or "auto"
        Weight of the joint likelihood beside the conditional one. Zero tells the labels of
        complete rows best where records are many; the more of it, the nearer to the joint of
        all variables. By default chosen by what is held out.
    strength : float or "auto"
        Strength of the prior: a normal one on each logit, with this precision, around the
        variable's own shares. By default chosen likewise.
    memory : int
        Moves that a step looks back on.
    limits : Limits
        When to stop.

    Examples
    --------
    >>> import rejoint as rj
    >>> X, y = (
    ...     [["a", "u"], ["a", "v"], ["b", "u"], ["b", "v"]] * 10,
    ...     ["no", "yes", "yes", "no"] * 10,
    ... )
    >>> solver = Conditional(joint=0.0, strength=0.1)
    >>> rj.JointClassifier(rank=4, solver=solver, random_state=0).fit(X, y).score(X, y)
    1.0
    """

    joint: float | str = "auto"
    strength: float | str = "auto"
    memory: int = 20
    limits: Limits = field(default=DEFAULT)
    name: str = field(default="conditional", init=False)

    def init(self, problem: LabelledProblem, weights: Array, factors: Array) -> ConditionalState:
        """State at a first model."""
        logits = np.log(np.maximum(np.vstack([weights, factors]), LEAST))
        # Levels of a variable share a constant, which the penalty decides.
        for rows in map(problem.known.rows, range(len(problem.known.levels))):
            block = logits[1:][rows]
            block += (problem.anchor[1:][rows] - block).mean(axis=0)
        return self.at(problem, logits)

    def at(self, problem: LabelledProblem, logits: Array) -> ConditionalState:
        """State at some logits."""
        assert not isinstance(self.joint, str)
        assert not isinstance(self.strength, str)
        value, slope = objective(problem, logits, self.joint, self.strength)
        return ConditionalState(logits, normalised(problem, logits), value, slope)

    def step(self, problem: LabelledProblem, state: ConditionalState) -> ConditionalState:
        """One quasi-Newton step, shortened until it descends; the same state if none does."""
        move = quasi_newton.direction(state.slope, first_guess(state), state.memory)
        move = np.clip(move, -LARGEST, LARGEST)
        promised, share = float(np.vdot(state.slope, move)), 1.0
        for _ in range(12 if promised < 0 else 0):
            after = self.at(problem, state.logits + share * move)
            gain = after.objective - state.objective
            if gain <= 1e-4 * share * promised:
                pair = share * move, after.slope - state.slope
                memory = quasi_newton.remember(state.memory, *pair, self.memory)
                return replace(after, memory=memory)
            # The minimum of the parabola through what is known, not too near to either end.
            bend = 2.0 * (gain - share * promised)
            share *= float(np.clip(-share * promised / bend, 0.1, 0.5)) if bend < np.inf else 0.1
        if state.memory:
            return self.step(problem, replace(state, memory=()))
        return state


def first_guess(state: ConditionalState) -> Array:
    """Diagonal of the inverse of the second derivatives before any pair is used."""
    if not state.memory:
        return np.full_like(state.slope, 1.0 / max(float(np.linalg.norm(state.slope)), 1e-12))
    move, change = state.memory[-1]
    return np.full_like(state.slope, float(np.vdot(move, change) / np.vdot(change, change)))
