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
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.domain import Domain
from rejoint.estimation import lbfgs
from rejoint.estimation.data import Array, RecordProblem
from rejoint.records.records import Records
from rejoint.solver.solver import Limits

#: Pull on the logits of the labels' columns, which must be free to become sharp, and on those of
#: the weights, of which one is redundant.
LABELS, WEIGHTS = 0.01, 1e-3

#: Pull on each level of an ordered variable, relative to one that is not.
LOOSE = 0.1


@dataclass(frozen=True)
class LabelledProblem:
    """Records with labels, and the same with the labels hidden.

    Parameters
    ----------
    known, blind : RecordProblem
        With and without the labels.
    targets : int
        How many variables, the last ones, are labels.

    Examples
    --------
    >>> records = Records.of({"x": ["a", "a", "b"], "y": ["no", "yes", "yes"]})
    >>> problem = LabelledProblem.of(records, 1)
    >>> len(problem.known.codes), len(problem.blind.codes)
    (3, 2)
    """

    known: RecordProblem
    blind: RecordProblem
    targets: int

    #: The objective of a likelihood has no size to be measured against.
    scale = float("nan")

    @classmethod
    def of(cls, records: Records, targets: int, threads: int | None = None) -> "LabelledProblem":
        """Hide the labels, and merge identical records of both kinds."""
        return cls(
            RecordProblem.of(records, threads),
            RecordProblem.of(without_labels(records, targets), threads),
            targets,
        )

    @property
    def domain(self) -> Domain:
        """Features, then labels."""
        return self.known.domain

    @cached_property
    def anchor(self) -> Array:
        """Logits that the penalty pulls towards, (1 + L, 1): each feature's own shares."""
        logits = np.log(self.known.centre)
        logits[self.labels] = 0.0
        return np.concatenate([[0.0], logits])[:, None]

    @property
    def labels(self) -> slice:
        """Rows of the labels in stacked factors."""
        return slice(int(self.known.offsets[-1 - self.targets]), None)

    def pull(self, strength: float) -> Array:
        """Strength of the penalty on each logit, (1 + L, 1)."""
        ordered = np.repeat([v.kind != "nominal" for v in self.domain], self.known.levels)
        pull = np.where(ordered, LOOSE * strength, strength)
        pull[self.labels] = LABELS
        return np.concatenate([[WEIGHTS], pull])[:, None]

    @cached_property
    def links(self) -> Array:
        """How much more neighbouring levels of ordered variables are pulled together, (L - 1, 1).

        The number of levels over 12: the price of a straight line is then that of its slope over
        one standard deviation, however many levels there are.
        """
        links = np.zeros(int(self.known.offsets[-1]))
        for n, variable in enumerate(self.domain.variables[: -self.targets]):
            if variable.kind != "nominal":
                rows = self.known.rows(n)
                links[rows.start + 1 : rows.stop] = len(variable) / 12.0
        return links[1:, None]

    @cached_property
    def combinations(self) -> tuple[NDArray[np.signedinteger], Array]:
        """Combinations of labels that occur, and the weight of each; the heaviest first."""
        return label_combinations(self.known, self.targets)

    def owners(self, rank: int) -> NDArray[np.intp]:
        """Which combination of labels each class begins with, (F,)."""
        owned = shared_out(self.combinations[1], rank)
        return np.repeat(np.arange(len(owned)), owned)

    def kin(self, rank: int) -> Array:
        """The matrix (F, F) that averages over classes which begin with the same labels."""
        if rank not in self._kin:
            owners = self.owners(rank)
            same = owners[:, None] == owners
            self._kin[rank] = same / same.sum(axis=0)
        return self._kin[rank]

    @cached_property
    def _kin(self) -> dict[int, Array]:
        return {}


def without_labels(records: Records, targets: int) -> Records:
    """The same records with the last variables missing."""
    codes = np.array(records.codes)
    codes[:, codes.shape[1] - targets :] = -1
    return replace(records, codes=codes)


def label_combinations(
    known: RecordProblem, targets: int
) -> tuple[NDArray[np.signedinteger], Array]:
    """Combinations of labels that occur, and the weight of each; the heaviest first.

    Examples
    --------
    >>> records = Records.of({"x": ["a", "a", "b"], "y": ["no", "yes", "yes"]})
    >>> LabelledProblem.of(records, 1).combinations
    (array([[1], [0]], dtype=int8), array([2., 1.]))
    """
    labels = known.codes[:, known.codes.shape[1] - targets :]
    whole = (labels >= 0).all(axis=1)
    if not whole.any():  # several targets, never all of them known: the largest class of each
        shares = [known.centre[known.rows(n)] for n in range(len(known.levels))][-targets:]
        best = np.array([[int(share.argmax()) for share in shares]], dtype=labels.dtype)
        return best, np.ones(1)
    found, where = np.unique(labels[whole], axis=0, return_inverse=True)
    mass = np.asarray(np.bincount(where.ravel(), weights=known.weight[whole]), dtype=np.float64)
    order = np.argsort(-mass, kind="stable")
    return found[order], mass[order]


def shared_out(mass: Array, rank: int) -> NDArray[np.intp]:
    """How many classes each combination gets: one each, the others by the root of its weight.

    Examples
    --------
    >>> shared_out(np.array([9.0, 1.0]), 8), shared_out(np.array([5.0, 3.0, 2.0]), 2)
    (array([6, 2]), array([1, 1]))
    """
    mass = mass[:rank]
    share = rank * np.sqrt(mass) / np.sqrt(mass).sum()
    owned: NDArray[np.intp] = np.maximum(1, np.floor(share)).astype(np.intp)
    while owned.sum() > rank:
        owned[int(np.argmax(owned))] -= 1
    while owned.sum() < rank:
        owned[int(np.argmax(share - owned))] += 1
    return owned


#: How far the classes of one label are spread (standard deviation of their logits), and how far
#: a class is from being of one label only.
SPREAD, DOUBT = 0.5, 0.05


def label_start(
    problem: LabelledProblem, rank: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Weights and factors to begin with.

    Each class is given a combination of labels, frequent ones several classes, and looks like the
    records that have it, more or less: with one class for each label this is naive Bayes.

    Examples
    --------
    >>> from rejoint.records import Records
    >>> records = Records.of({"x": ["a", "a", "b"], "y": ["no", "yes", "yes"]})
    >>> rng = np.random.default_rng(0)
    >>> weights, factors = label_start(LabelledProblem.of(records, 1), 2, rng)
    >>> weights.round(2)
    array([0.67, 0.33])
    """
    known = problem.known
    combinations, mass = problem.combinations
    owner = problem.owners(rank)
    owned = np.bincount(owner)
    looks = np.stack([shares_of(known, combinations[k]) for k in range(len(owned))], axis=1)
    columns = looks[:, owner]
    columns *= np.exp(SPREAD * rng.standard_normal(columns.shape) * (owned[owner] > 1))
    for t in range(problem.targets):
        rows = known.rows(len(known.levels) - problem.targets + t)
        columns[rows] = DOUBT * known.centre[rows, None]
        columns[rows][combinations[owner, t], np.arange(rank)] += 1.0 - DOUBT
    sums = np.add.reduceat(columns, known.offsets[:-1])
    weights = mass[owner] / owned[owner]
    return weights / weights.sum(), columns / np.repeat(sums, known.levels, axis=0)


def shares_of(known: RecordProblem, labels: NDArray[np.signedinteger]) -> Array:
    """Shares of all levels among the records with these labels, (L,); a level's worth of prior."""
    there = (known.codes[:, -len(labels) :] == labels).all(axis=1)
    counts = np.repeat(np.asarray(known.levels, dtype=np.float64), known.levels) * known.centre
    for n in range(len(known.levels)):
        codes = known.codes[there, n]
        found = codes >= 0
        weight = known.weight[there][found]
        counts[known.rows(n)] += np.bincount(codes[found], weight, known.levels[n])
    sums = np.repeat(np.add.reduceat(counts, known.offsets[:-1]), known.levels)
    return np.asarray(counts / sums)


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
    memory: lbfgs.Memory = ()

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
        move = lbfgs.direction(state.slope, first_guess(state), state.memory)
        move = np.clip(move, -LARGEST, LARGEST)
        promised, share = float(np.vdot(state.slope, move)), 1.0
        for _ in range(12 if promised < 0 else 0):
            after = self.at(problem, state.logits + share * move)
            gain = after.objective - state.objective
            if gain <= 1e-4 * share * promised:
                pair = share * move, after.slope - state.slope
                memory = lbfgs.remember(state.memory, *pair, self.memory)
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
