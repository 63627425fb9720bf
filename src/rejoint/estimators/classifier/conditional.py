"""Conditional likelihood: joint models of features and labels, trained to predict the labels.

The conditional log-likelihood of the labels is ``log P(x, y) - log P(x)``: one pass over the
records minus one over the same records with their labels hidden, and so is its slope. The
objective is minus

``sum log P(y | x) + joint * sum log P(x, y) - strength / 2 * ||logits - center||^2``

in the logits of weights and columns (neighboring levels of ordered variables are pulled together
instead; what classes of a label have in common counts once). A softmax of scores that add up over
the variables is such a model, whatever the scores: logistic regression has one class for each
label, and more classes bend its boundaries. The result is a :class:`LowRankPMF` like any other.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from rejoint.arrays import Codes, FloatArray, IntArray
from rejoint.estimation.data import InMemory
from rejoint.model import Layout, Model
from rejoint.records.records import Records
from rejoint.solver import acceleration
from rejoint.solver.solver import Limits

#: Penalty on the logits of the labels' columns, which must be free to become sharp, and on those of
#: the weights, of which one is redundant.
LABEL_PENALTY, WEIGHT_PENALTY = 0.01, 1e-3

#: Penalty on each level of an ordered variable, relative to a nominal one.
ORDERED_PENALTY = 0.1

#: Standard deviation of the logits of classes that start with the same label, and the share of
#: other labels in a class at the start.
START_SPREAD, START_DOUBT = 0.5, 0.05

#: Largest move of a logit in one step.
LARGEST_MOVE = 5.0

#: Least probability of a start, so that no logit is infinite.
LEAST_START = 1e-6

_LIMITS = Limits(max_steps=300, progress=1e-4, window=10, exact=-1.0)


@dataclass(frozen=True, eq=False)
class Labelled:
    """Records with labels, and the same with the labels hidden.

    Parameters
    ----------
    known, blind : InMemory
        With and without the labels.
    targets : int
        How many variables, the last ones, are labels.

    Examples
    --------
    >>> records = Records.of({"x": ["a", "a", "b"], "y": ["no", "yes", "yes"]})
    >>> data = Labelled.of(InMemory.of(records), 1)
    >>> len(data.known.codes), len(data.blind.codes)
    (3, 2)
    """

    known: InMemory
    blind: InMemory
    targets: int

    @classmethod
    def of(cls, known: InMemory, targets: int) -> "Labelled":
        """Hide the labels, and merge records that are identical without them."""
        codes = np.array(known.codes)
        codes[:, codes.shape[1] - targets :] = -1
        blind = InMemory.of(Records(known.domain, codes, known.weight), known.threads)
        return cls(known, blind, targets)

    @property
    def layout(self) -> Layout:
        """Where the levels of features, then labels, stand in stacked factors."""
        return self.known.layout

    def error(self, objective: float) -> float:
        """The objective of a likelihood has no size to be measured against."""
        return float("nan")

    def with_threads(self, threads: int) -> "Labelled":
        """The same with another number of threads."""
        known, blind = (replace(data, threads=threads) for data in (self.known, self.blind))
        return replace(self, known=known, blind=blind)

    @cached_property
    def anchor(self) -> FloatArray:
        """Logits that the penalty pulls towards, (1 + L, 1): each feature's own shares."""
        logits = np.log(self.known.center)
        logits[self.labels] = 0.0
        return np.concatenate([[0.0], logits])[:, None]

    @property
    def labels(self) -> slice:
        """Rows of the labels in stacked factors."""
        return slice(int(self.layout.offsets[-1 - self.targets]), None)

    def penalties(self, strength: float) -> FloatArray:
        """Strength of the penalty on each logit, (1 + L, 1)."""
        ordered = self.layout.expand(np.array([v.kind != "nominal" for v in self.known.domain]))
        levels = np.where(ordered, ORDERED_PENALTY * strength, strength)
        levels[self.labels] = LABEL_PENALTY
        return np.concatenate([[WEIGHT_PENALTY], levels])[:, None]

    @cached_property
    def links(self) -> FloatArray:
        """How much more neighboring levels of ordered variables are pulled together, (L - 1, 1).

        The number of levels over 12: the price of a straight line is then that of its slope over
        one standard deviation, however many levels there are.
        """
        links = np.zeros(self.layout.size)
        for n, variable in enumerate(self.known.domain.variables[: -self.targets]):
            if variable.kind != "nominal":
                rows = self.layout.rows(n)
                links[rows.start + 1 : rows.stop] = len(variable) / 12.0
        return links[1:, None]

    @cached_property
    def combinations(self) -> tuple[Codes, FloatArray]:
        """Combinations of labels that occur, and the weight of each; the heaviest first.

        Examples
        --------
        >>> records = Records.of({"x": ["a", "a", "b"], "y": ["no", "yes", "yes"]})
        >>> found, mass = Labelled.of(InMemory.of(records), 1).combinations
        >>> found.tolist(), mass.tolist()
        ([[1], [0]], [2.0, 1.0])
        """
        known = self.known
        labels = known.codes[:, known.codes.shape[1] - self.targets :]
        complete = (labels >= 0).all(axis=1)
        if not complete.any():  # the largest class of each of several targets
            shares = known.layout.split(known.center)[-self.targets :]
            best = np.array([[int(share.argmax()) for share in shares]], dtype=labels.dtype)
            return best, np.ones(1)
        found, where = np.unique(labels[complete], axis=0, return_inverse=True)
        mass = np.bincount(where.ravel(), weights=known.weight[complete]).astype(np.float64)
        order = np.argsort(-mass, kind="stable")
        return found[order], mass[order]

    def owners(self, rank: int) -> IntArray:
        """The combination of labels that each class starts with, (F,)."""
        owned = share_out(self.combinations[1], rank)
        return np.repeat(np.arange(len(owned)), owned)

    def kin(self, rank: int) -> FloatArray:
        """The matrix (F, F) that averages over classes that start with the same labels."""
        if rank not in self._kin:
            owners = self.owners(rank)
            same = owners[:, None] == owners
            self._kin[rank] = same / same.sum(axis=0)
        return self._kin[rank]

    @cached_property
    def _kin(self) -> dict[int, FloatArray]:
        return {}


def share_out(mass: FloatArray, rank: int) -> IntArray:
    """Return the number of classes of each combination: one each, others by the root of its weight.

    Examples
    --------
    >>> share_out(np.array([9.0, 1.0]), 8), share_out(np.array([5.0, 3.0, 2.0]), 2)
    (array([6, 2]), array([1, 1]))
    """
    mass = mass[:rank]
    share = rank * np.sqrt(mass) / np.sqrt(mass).sum()
    owned: IntArray = np.maximum(1, np.floor(share)).astype(np.intp)
    while owned.sum() > rank:
        owned[int(np.argmax(owned))] -= 1
    while owned.sum() < rank:
        owned[int(np.argmax(share - owned))] += 1
    return owned


def label_start(problem: Labelled, rank: int, rng: np.random.Generator) -> Model:
    """Return a model to start from.

    Each class has a combination of labels, frequent ones have several classes, and its columns are
    near the distribution of the records with these labels: one class for each label is naive Bayes.

    Examples
    --------
    >>> records = Records.of({"x": ["a", "a", "b"], "y": ["no", "yes", "yes"]})
    >>> rng = np.random.default_rng(0)
    >>> label_start(Labelled.of(InMemory.of(records), 1), 2, rng).weights.round(2)
    array([0.67, 0.33])
    """
    known = problem.known
    combinations, mass = problem.combinations
    owner = problem.owners(rank)
    owned = np.bincount(owner)
    shares = np.stack([level_shares(known, combinations[k]) for k in range(len(owned))], axis=1)
    columns = shares[:, owner]
    columns *= np.exp(START_SPREAD * rng.standard_normal(columns.shape) * (owned[owner] > 1))
    for t in range(problem.targets):
        rows = known.layout.rows(len(known.domain) - problem.targets + t)
        columns[rows] = START_DOUBT * known.center[rows, None]
        columns[rows][combinations[owner, t], np.arange(rank)] += 1.0 - START_DOUBT
    weights = mass[owner] / owned[owner]
    return Model(known.layout, weights / weights.sum(), known.layout.normalize(columns))


def level_shares(known: InMemory, labels: Codes) -> FloatArray:
    """Return shares of levels among the records with these labels, smoothed by a prior, (L,)."""
    there = (known.codes[:, -len(labels) :] == labels).all(axis=1)
    prior = known.layout.expand(known.concentration_unit) * known.center
    counts = known.take(np.flatnonzero(there), known.weight[there]).level_totals
    return known.layout.normalize(counts + prior)


def objective(
    problem: Labelled, logits: FloatArray, joint: float, strength: float
) -> tuple[float, FloatArray]:
    """Return what is minimized, and its slope in the logits (1 + L, F).

    Examples
    --------
    >>> records = Records.of({"x": ["a", "a", "b"], "y": ["no", "yes", "yes"]})
    >>> value, slope = objective(Labelled.of(InMemory.of(records), 1), np.zeros((5, 1)), 0.0, 0.0)
    >>> round(float(value / np.log(2)), 3), slope[3:, 0]
    (3.0, array([ 0.5, -0.5]))
    """
    layout, model = problem.layout, as_model(problem, logits)
    seen, hidden = problem.known.expect(model), problem.blind.expect(model)
    value = hidden.log_likelihood - (1.0 + joint) * seen.log_likelihood
    counts = (1.0 + joint) * seen.counts - hidden.counts
    slope = -counts
    slope[0] += counts[0].sum() * model.weights
    slope[1:] += layout.expand(layout.sums(counts[1:])) * model.factors
    price, pushed = penalty(problem, logits, strength)
    return value + price, slope + pushed


def penalty(problem: Labelled, logits: FloatArray, strength: float) -> tuple[float, FloatArray]:
    """Minus the log-density of the prior, up to a constant, and its slope.

    Levels of nominal variables are pulled to the variable's own shares one by one; those of ordered
    ones mostly towards each other, so that neighbours inform each other. What classes of the same
    label have in common counts once: else the more classes there were, the less would be left of
    what one class for each label says.
    """
    away = logits - problem.anchor
    kin = problem.kin(logits.shape[1])
    counted = away - away @ kin * (1.0 - kin.diagonal())
    pushed = problem.penalties(strength) * counted
    price = 0.5 * float(np.vdot(pushed, away))
    links = strength * problem.links
    if links.any():
        apart = np.diff(away[1:], axis=0)
        force = links * np.diff(counted[1:], axis=0)
        price += 0.5 * float(np.vdot(force, apart))
        pushed[2:] += force
        pushed[1:-1] -= force
    return price, pushed


def as_model(problem: Labelled, logits: FloatArray) -> Model:
    """The model of the logits of weights above those of columns, (1 + L, F)."""
    weights = np.exp(logits[0] - logits[0].max())
    return Model(problem.layout, weights / weights.sum(), problem.layout.softmax(logits[1:]))


@dataclass(frozen=True)
class ConditionalState:
    """Logits, the model they stand for, and what quasi-Newton steps remember."""

    logits: FloatArray
    model: Model
    objective: float
    slope: FloatArray
    memory: acceleration.Memory = ()

    @property
    def residual(self) -> float:
        """Largest entry of the slope, relative to the objective."""
        return float(np.abs(self.slope).max() / max(abs(self.objective), 1.0))


@dataclass(frozen=True)
class Conditional:
    """Maximize the conditional likelihood of the labels by quasi-Newton steps (L-BFGS).

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
    limits: Limits = field(default=_LIMITS)
    name: str = field(default="conditional", init=False)
    needs = ("known", "blind")

    def init(self, problem: Labelled, model: Model) -> ConditionalState:
        """State at a first model."""
        logits = np.log(np.maximum(model.stacked, LEAST_START))
        # Levels of a variable share a constant, which the penalty decides.
        layout = problem.layout
        for block, anchor in zip(
            layout.split(logits[1:]), layout.split(problem.anchor[1:]), strict=True
        ):
            block += (anchor - block).mean(axis=0)
        return self.at(problem, logits)

    def at(self, problem: Labelled, logits: FloatArray) -> ConditionalState:
        """State at some logits."""
        assert not isinstance(self.joint, str)
        assert not isinstance(self.strength, str)
        value, slope = objective(problem, logits, self.joint, self.strength)
        return ConditionalState(logits, as_model(problem, logits), value, slope)

    def step(self, problem: Labelled, state: ConditionalState) -> ConditionalState:
        """One quasi-Newton step, shortened until it descends; the same state if none does."""
        move = acceleration.direction(state.slope, first_guess(state), state.memory)
        move = np.clip(move, -LARGEST_MOVE, LARGEST_MOVE)
        promised, share = float(np.vdot(state.slope, move)), 1.0
        for _ in range(12 if promised < 0 else 0):
            after = self.at(problem, state.logits + share * move)
            gain = after.objective - state.objective
            if gain <= 1e-4 * share * promised:
                pair = share * move, after.slope - state.slope
                memory = acceleration.remember(state.memory, *pair, self.memory)
                return replace(after, memory=memory)
            # The minimum of the parabola through what is known, not too near to either end.
            bend = 2.0 * (gain - share * promised)
            share *= float(np.clip(-share * promised / bend, 0.1, 0.5)) if bend < np.inf else 0.1
        if state.memory:
            return self.step(problem, replace(state, memory=()))
        return state


def first_guess(state: ConditionalState) -> FloatArray:
    """Diagonal of the inverse of the second derivatives before any pair is used."""
    if not state.memory:
        return np.full_like(state.slope, 1.0 / max(float(np.linalg.norm(state.slope)), 1e-12))
    move, change = state.memory[-1]
    return np.full_like(state.slope, float(np.vdot(move, change) / np.vdot(change, change)))
