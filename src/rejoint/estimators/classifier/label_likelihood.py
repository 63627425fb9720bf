"""LabelLikelihood: joint models of features and labels, trained to predict the labels.

Each hidden class belongs to a profile, which has a distribution of the labels: with one target, a
profile is a label. A class has a score ``s_f = b_f + sum_n theta_n[x_n, f]``, its posterior is the
softmax of the scores, and labels have the probability of their classes. With the columns
``exp(theta_n)`` normalized this is a mixture of products like any other, which sums out values
that are missing. The objective is minus

``conditional * sum log P(y | x) + joint * sum log P(x, y) - ||parameters||^2 / 2``

and takes two passes over the records: one with the labels, for which only classes of the same
label count, and one without.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint import kernels
from rejoint.arrays import Codes, FloatArray, IntArray
from rejoint.estimators.classifier.classifier_policy import ClassifierPolicy
from rejoint.estimators.classifier.design import Design
from rejoint.model import Model
from rejoint.solver import acceleration

#: Least weight of a class and least probability of a level, so that no logarithm is infinite.
LEAST_PROBABILITY = 1e-290


@dataclass(frozen=True, eq=False)
class Profiles:
    """Distributions of the labels that classes have, and how likely each makes what is known.

    Parameters
    ----------
    tables : tuple of array (labels, K)
        For each target, the probability of its labels in each of K profiles.
    patterns : array of int (G, targets)
        Labels that occur together, -1 where one is unknown.

    Examples
    --------
    >>> Profiles((np.eye(2),), np.array([[0], [1], [-1]])).likelihood
    array([[1., 0.],
           [0., 1.],
           [1., 1.]])
    """

    tables: tuple[FloatArray, ...]
    patterns: Codes

    def __len__(self) -> int:
        """Return the number of profiles."""
        return int(self.tables[0].shape[1])

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """Whether each pattern has any label, (G,)."""
        return np.asarray((self.patterns >= 0).any(axis=1))

    @cached_property
    def likelihood(self) -> FloatArray:
        """Probability of each pattern in each profile, (G, K)."""
        found = np.ones((len(self.patterns), len(self)))
        for table, codes in zip(self.tables, self.patterns.T, strict=True):
            found *= np.vstack([table, np.ones(len(self))])[codes]
        return found


class Group(NamedTuple):
    """Records with the same labels: their rows, total weight and level totals; their pattern."""

    rows: slice
    mass: float
    totals: FloatArray
    pattern: int


@dataclass(frozen=True, eq=False)
class LabelLikelihood:
    """Records of a member, in the order of their labels.

    Parameters
    ----------
    design : Design
        How features enter scores.
    codes : array (M, N)
        Bins of the features, -1 where a value is missing.
    weight : array (M,)
        Weight of each record.
    patterns : array of int (M,)
        Which pattern of ``profiles`` the labels of each record have, in rising order.
    profiles : Profiles
        Distributions of the labels.
    threads : int
        Threads of a pass.
    """

    design: Design
    codes: Codes
    weight: FloatArray
    patterns: IntArray
    profiles: Profiles
    threads: int = 1

    @classmethod
    def of(
        cls,
        design: Design,
        codes: Codes,
        weight: FloatArray,
        patterns: IntArray,
        profiles: Profiles,
        threads: int = 1,
    ) -> "LabelLikelihood":
        """Sort records by their labels."""
        order = np.argsort(patterns, kind="stable")
        codes = np.ascontiguousarray(codes[order])
        return cls(design, codes, weight[order], patterns[order], profiles, threads)

    @cached_property
    def groups(self) -> list[Group]:
        """Records with the same labels."""
        found = []
        starts = np.flatnonzero(np.diff(self.patterns, prepend=-1))
        for start, stop in zip(starts, [*starts[1:], len(self.codes)], strict=True):
            rows = slice(int(start), int(stop))
            one = np.ones(1), np.ones((self.design.layout.size, 1))
            parts = self.codes[rows], self.weight[rows], *one, self.design.layout.levels
            _, mass, totals = kernels.class_pass(*parts)
            found.append(Group(rows, float(mass[0]), totals[:, 0], int(self.patterns[start])))
        return found

    @cached_property
    def labelled(self) -> "LabelLikelihood":
        """Records with a label: the others say nothing of labels given features."""
        known = self.profiles.known[self.patterns]
        if known.all():
            return self
        parts = self.codes[known], self.weight[known], self.patterns[known]
        return LabelLikelihood(self.design, *parts, self.profiles, self.threads)

    def expect_known(
        self, model: Model, logs: FloatArray, owners: IntArray
    ) -> tuple[float, FloatArray]:
        """Log-likelihood of features and labels, and expected counts (1 + L, F).

        ``logs`` are the logarithms of weights above factors. Of records that a single class allows
        only the totals are needed.
        """
        value, counts = 0.0, np.zeros(logs.shape)
        likelihood = self.profiles.likelihood[:, owners]
        for group in self.groups:
            share = likelihood[group.pattern]
            some = np.flatnonzero(share)
            if len(some) == 1:
                f = some[0]
                counts[0, f] += group.mass
                counts[1:, f] += group.totals
                value += group.mass * float(logs[0, f] + np.log(share[f]))
                value += float(group.totals @ logs[1:, f])
                continue
            # Classes of one profile are neighbors, and a slice of them is quicker.
            near = some[-1] - some[0] + 1 == len(some)
            mine: Any = slice(some[0], some[-1] + 1) if near else some
            found = kernels.class_pass(
                self.codes[group.rows],
                self.weight[group.rows],
                model.weights[mine] * share[mine],
                np.ascontiguousarray(model.factors[:, mine]),
                model.layout.levels,
                self.threads,
            )
            value += found[0]
            counts[0, mine] += found[1]
            counts[1:, mine] += found[2]
        return value, counts

    def expect_blind(self, model: Model) -> tuple[float, FloatArray]:
        """Log-likelihood of the features alone, and expected counts (1 + L, F)."""
        parts = model.weights, model.factors, model.layout.levels, self.threads
        value, *counts = kernels.class_pass(self.codes, self.weight, *parts)
        return value, np.vstack(counts)


@dataclass(frozen=True, eq=False)
class Form:
    """What a part of the classifier is made of, and what it is trained for.

    Parameters
    ----------
    owners : array of int (F,)
        The profile of each class.
    conditional, joint : float
        Weights of the likelihoods of labels given features, and of both.
    scale : float
        Standard deviation of the prior on what each class has of its own.
    common : float
        The same of what all classes of a profile have in common; zero for nothing.
    linear : bool
        Whether numbers add straight lines.
    """

    owners: IntArray
    conditional: float = 1.0
    joint: float = 0.0
    scale: float = 1.0
    common: float = 0.0
    linear: bool = True

    @property
    def first(self) -> int:
        """Column of the first class: columns of profiles stand before."""
        return int(self.owners[-1]) + 1 if self.common else 0

    def combine(self, parameters: FloatArray) -> FloatArray:
        """Parameters of each class on the scale of scores, bias excluded, (P, F)."""
        found = self.scale * parameters[:-1, self.first :]
        if self.common:
            parts = found.reshape(len(found), self.first, -1)  # profiles have as many classes
            parts += self.common * parameters[:-1, : self.first, None]
        return found

    def take_apart(self, slope: FloatArray, bias: FloatArray) -> FloatArray:
        """The slope in the parameters, from that in what they combine to and in the bias."""
        found = np.zeros((len(slope) + 1, self.first + len(self.owners)))
        found[:-1, self.first :] = self.scale * slope
        if self.common:
            parts = slope.reshape(len(slope), self.first, -1)
            found[:-1, : self.first] = self.common * parts.sum(axis=2)
        found[-1, self.first :] = bias
        return found

    def rescale(self, parameters: FloatArray, scale: float) -> tuple["Form", FloatArray]:
        """The same model under another scale of what each class has of its own."""
        found = parameters.copy()
        found[:-1, self.first :] *= self.scale / scale
        return replace(self, scale=scale), found


def make_model(design: Design, form: Form, parameters: FloatArray) -> tuple[Model, FloatArray]:
    """The model of parameters, and the logarithms of its weights and factors, (1 + L, F)."""
    layout = design.layout
    combined = form.combine(parameters)
    scores = design.scores(combined) + np.log(design.shares)[:, None]
    top = np.maximum.reduceat(scores, layout.offsets[:-1])
    stacked, logs = np.empty((2, 1 + layout.size, scores.shape[1]))
    np.exp(scores - layout.expand(top), out=stacked[1:])
    sums = layout.sums(stacked[1:])
    stacked[1:] /= layout.expand(sums)
    sizes = np.log(sums) + top
    np.subtract(scores, layout.expand(sizes), out=logs[1:])
    logs[0] = parameters[-1, form.first :]
    if form.joint == 0.0:
        logs[0] += sizes.sum(axis=0)  # scores of complete rows do not depend on it
    highest = logs[0].max()
    logs[0] -= highest + np.log(np.exp(logs[0] - highest).sum())
    stacked[0] = np.exp(logs[0])
    return Model.from_stacked(layout, np.maximum(stacked, LEAST_PROBABILITY, out=stacked)), logs


def objective(
    data: LabelLikelihood, form: Form, parameters: FloatArray
) -> tuple[float, FloatArray]:
    """Return what is minimized, and its slope in the parameters."""
    design, layout = data.design, data.design.layout
    model, logs = make_model(design, form, parameters)
    seen, found = data.expect_known(model, logs, form.owners)
    hidden, blind = data.expect_blind(model)
    both = form.conditional + form.joint
    value = form.conditional * hidden - both * seen
    error = form.conditional * blind - both * found
    sums = layout.sums(error[1:])
    bias = error[0]
    if form.joint == 0.0:
        sums -= bias
    else:
        bias = bias - bias.sum() * model.weights
    slope = design.pull_back(error[1:] - layout.expand(sums) * model.factors)
    if not form.linear:
        slope[layout.size :] = 0.0
    push = parameters.copy()
    push[-1] = 0.0  # the bias has no prior
    value += 0.5 * float(np.vdot(push, parameters))
    return value, form.take_apart(slope, bias) + push


class Path(NamedTuple):
    """Parameters, their objective and slope, and what quasi-Newton steps remember."""

    parameters: FloatArray
    objective: float
    slope: FloatArray
    memory: acceleration.Memory = ()


def minimize(
    data: LabelLikelihood,
    form: Form,
    parameters: FloatArray,
    steps: int,
    policy: ClassifierPolicy,
    watch: Callable[[float], None] = lambda objective: None,
) -> Path:
    """Take quasi-Newton steps (L-BFGS); ``watch`` is told the objective after each."""
    data = data if form.joint else data.labelled
    least = policy.least_gain * float(data.weight.sum())
    path = Path(parameters, *objective(data, form, parameters))
    for _ in range(steps):
        after = step(data, form, path, policy)
        watch(after.objective)
        if path.objective - after.objective < least:
            return after
        path = after
    return path


def step(data: LabelLikelihood, form: Form, path: Path, policy: ClassifierPolicy) -> Path:
    """One quasi-Newton step, shortened until it descends; the same path if none does."""
    move = acceleration.direction(path.slope, first_guess(path), path.memory)
    promised, share = float(np.vdot(path.slope, move)), 1.0
    for _ in range(12 if promised < 0 else 0):
        there = path.parameters + share * move
        value, slope = objective(data, form, there)
        gain = value - path.objective
        if gain <= 1e-4 * share * promised:
            pair = share * move, slope - path.slope
            memory = acceleration.remember(path.memory, *pair, policy.memory)
            return Path(there, value, slope, memory)
        # The minimum of the parabola through what is known, not too near to either end.
        bend = 2.0 * (gain - share * promised)
        share *= float(np.clip(-share * promised / bend, 0.1, 0.5)) if bend < np.inf else 0.1
    return step(data, form, path._replace(memory=()), policy) if path.memory else path


def first_guess(path: Path) -> FloatArray:
    """Diagonal of the inverse of the second derivatives before any pair is used."""
    if not path.memory:
        return np.full_like(path.slope, 1.0 / max(float(np.linalg.norm(path.slope)), 1e-12))
    move, change = path.memory[-1]
    return np.full_like(path.slope, float(np.vdot(move, change) / np.vdot(change, change)))


def label_probabilities(
    model: Model, owners: IntArray, codes: Codes, patterns: IntArray, profiles: Profiles
) -> FloatArray:
    """Probability of the labels of some records, given their features."""
    _, posterior = kernels.class_posterior(codes, model.weights, model.factors, model.layout.levels)
    likelihood = profiles.likelihood[:, owners]
    return np.asarray(np.einsum("if,if->i", posterior, likelihood[patterns]))


def make_profiles(
    labels: Codes, weight: FloatArray, sizes: Sequence[int], most: int
) -> tuple[Profiles, IntArray]:
    """Return profiles of labels, and the pattern of each record.

    With one target each label is a profile, with several each combination that occurs. Where these
    are more than ``most``, profiles are latent classes of the labels.

    Examples
    --------
    >>> labels = np.array([[0, 1], [1, 0], [0, -1]])
    >>> profiles, patterns = make_profiles(labels, np.ones(3), [2, 2], 10)
    >>> patterns, profiles.likelihood.tolist()
    (array([1, 2, 0]), [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    """
    patterns, which = np.unique(labels, axis=0, return_inverse=True)
    if len(sizes) == 1:
        return Profiles((np.eye(sizes[0]),), patterns), which.ravel()
    mass = np.bincount(which.ravel(), weight, len(patterns)).astype(np.float64)
    whole = np.flatnonzero((patterns >= 0).all(axis=1))
    if not len(whole):  # no record has all its labels
        whole, patterns_of = np.array([int(mass.argmax())]), np.maximum(patterns, 0)
    else:
        patterns_of = patterns
    whole = whole[np.argsort(-mass[whole], kind="stable")][:most]
    chosen = patterns_of[whole]
    tables = tuple(np.eye(size)[:, codes] for size, codes in zip(sizes, chosen.T, strict=True))
    found = Profiles(tables, patterns)
    if not found.likelihood.any(axis=1).all():
        found = Profiles(fit_profiles(patterns, mass, tables), patterns)
    return found, which.ravel()


#: EM steps for profiles that are latent classes, and the share of other labels at their start.
PROFILE_STEPS, PROFILE_DOUBT = 50, 0.2


def fit_profiles(
    patterns: Codes, mass: FloatArray, tables: Sequence[FloatArray]
) -> tuple[FloatArray, ...]:
    """Latent classes of the labels alone by EM, from one-hot ``tables``."""
    sizes = tuple(map(len, tables))
    stacked = np.vstack(
        [(1 - PROFILE_DOUBT) * table + PROFILE_DOUBT / len(table) for table in tables]
    )
    codes = np.ascontiguousarray(patterns.astype(np.int16))
    layout = Model.of([1.0], [[[1.0]] * size for size in sizes]).layout
    weights = np.full(stacked.shape[1], 1.0 / stacked.shape[1])
    for _ in range(PROFILE_STEPS):
        _, classes, counts = kernels.class_pass(codes, mass, weights, stacked, sizes)
        weights = (classes + 0.5) / (classes + 0.5).sum()
        stacked = layout.normalize(counts + 0.1)
    return tuple(layout.split(stacked))
