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
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from rejoint import kernels
from rejoint.arrays import Codes, FloatArray, IntArray
from rejoint.estimators.classifier.design import Design
from rejoint.model import Layout, Model

#: Least weight of a class and least probability of a level, so that no logarithm is infinite.
LEAST_PROBABILITY = 1e-290

#: EM steps for profiles that are latent classes, and records added to each of their labels.
PROFILE_STEPS, PROFILE_DOUBT = 50, 0.1


@dataclass(frozen=True, eq=False)
class Profiles:
    """Distributions of the labels that classes have, and how likely each makes what is known.

    Parameters
    ----------
    tables : tuple of array (labels, K)
        For each target, the probability of its labels in each of K profiles.
    patterns : array of int (G, targets)
        Labels that occur together, -1 where one is unknown.
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
        likelihood = np.ones((len(self.patterns), len(self)))
        for table, codes in zip(self.tables, self.patterns.T, strict=True):
            likelihood *= np.vstack([table, np.ones(len(self))])[codes]
        return likelihood


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

    def take(self, rows: NDArray[Any]) -> "LabelLikelihood":
        """Return some of the records."""
        parts = {"codes": self.codes[rows], "weight": self.weight[rows]}
        return replace(self, patterns=self.patterns[rows], **parts)

    def reweight(self, weight: FloatArray) -> "LabelLikelihood":
        """Return the records of positive weight, with that weight."""
        return replace(self, weight=weight).take(weight > 0)

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """Whether each record has a label."""
        return self.profiles.known[self.patterns]

    @cached_property
    def labelled(self) -> "LabelLikelihood":
        """Records with a label: the others say nothing of labels given features."""
        return self if self.known.all() else self.take(self.known)

    def expect_known(self, model: Model, owners: IntArray) -> tuple[float, FloatArray]:
        """Log-likelihood of features and labels, and expected counts (1 + L, F)."""
        value, counts = 0.0, np.zeros(model.stacked.shape)
        starts = np.flatnonzero(np.diff(self.patterns, prepend=-1))
        for start, stop in pairwise([*starts, len(self.codes)]):
            share = self.profiles.likelihood[self.patterns[start], owners]
            classes = np.flatnonzero(share)  # other classes contradict these labels
            sums = kernels.class_pass(
                self.codes[start:stop],
                self.weight[start:stop],
                model.weights[classes] * share[classes],
                np.ascontiguousarray(model.factors[:, classes]),
                model.layout.levels,
                self.threads,
            )
            value += sums[0]
            counts[:, classes] += np.vstack(sums[1:])
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
        combined = self.scale * parameters[:-1, self.first :]
        if self.common:
            parts = combined.reshape(len(combined), self.first, -1)  # profiles have as many classes
            parts += self.common * parameters[:-1, : self.first, None]
        return combined

    def take_apart(self, slope: FloatArray, bias: FloatArray) -> FloatArray:
        """The slope in the parameters, from that in what they combine to and in the bias."""
        gradient = np.zeros((len(slope) + 1, self.first + len(self.owners)))
        gradient[:-1, self.first :] = self.scale * slope
        if self.common:
            parts = slope.reshape(len(slope), self.first, -1)
            gradient[:-1, : self.first] = self.common * parts.sum(axis=2)
        gradient[-1, self.first :] = bias
        return gradient

    def rescale(self, parameters: FloatArray, scale: float) -> FloatArray:
        """Parameters of the same model under another scale of what each class has of its own."""
        rescaled = parameters.copy()
        rescaled[:-1, self.first :] *= self.scale / scale
        return rescaled


def make_model(design: Design, form: Form, parameters: FloatArray) -> Model:
    """The model of parameters."""
    layout = design.layout
    scores = design.scores(form.combine(parameters)) + np.log(design.shares)[:, None]
    top = np.maximum.reduceat(scores, layout.offsets[:-1])
    stacked = np.empty((1 + layout.size, scores.shape[1]))
    np.exp(scores - layout.expand(top), out=stacked[1:])
    sums = layout.sums(stacked[1:])
    stacked[1:] /= layout.expand(sums)
    logs = parameters[-1, form.first :]
    if form.joint == 0.0:  # scores of complete rows do not depend on it
        logs = logs + (np.log(sums) + top).sum(axis=0)
    weights = np.exp(logs - logs.max())
    stacked[0] = weights / weights.sum()
    return Model.from_stacked(layout, np.maximum(stacked, LEAST_PROBABILITY, out=stacked))


def objective(
    data: LabelLikelihood, form: Form, parameters: FloatArray
) -> tuple[float, FloatArray]:
    """Return what is minimized, and its slope in the parameters."""
    design, layout = data.design, data.design.layout
    model = make_model(design, form, parameters)
    likelihood, counts = data.expect_known(model, form.owners)
    evidence, evidence_counts = data.expect_blind(model)
    both = form.conditional + form.joint
    value = form.conditional * evidence - both * likelihood
    error = form.conditional * evidence_counts - both * counts
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


def minimize(
    data: LabelLikelihood,
    form: Form,
    parameters: FloatArray,
    steps: int,
    least_gain: float,
    watch: Callable[[float], None] = lambda objective: None,
) -> FloatArray:
    """Take quasi-Newton steps until one gains less than ``least_gain`` nats a record.

    ``watch`` is called with the objective after each step.
    """
    data = data if form.joint else data.labelled
    least, before = least_gain * float(data.weight.sum()), np.inf

    def evaluate(flat: FloatArray) -> tuple[float, FloatArray]:
        value, slope = objective(data, form, flat.reshape(parameters.shape))
        return value, slope.ravel()

    def stop_at_small_gains(intermediate_result: Any) -> None:
        nonlocal before
        gain, before = before - intermediate_result.fun, intermediate_result.fun
        watch(before)
        if gain < least:
            raise StopIteration

    options = {"maxiter": steps, "ftol": 0.0, "gtol": 0.0}
    how: dict[str, Any] = {"jac": True, "method": "L-BFGS-B", "options": options}
    end = optimize.minimize(evaluate, parameters.ravel(), callback=stop_at_small_gains, **how)
    return np.asarray(end.x.reshape(parameters.shape))


def make_profiles(
    labels: Codes, weight: FloatArray, sizes: Sequence[int], most: int
) -> tuple[Profiles, IntArray]:
    """Return profiles of labels, and the pattern of each record.

    With one target each label is a profile, with several each combination that occurs. Where these
    are more than ``most``, profiles are latent classes of the labels.
    """
    patterns, which = np.unique(labels, axis=0, return_inverse=True)
    which = which.ravel()
    if len(sizes) == 1:
        return Profiles((np.eye(sizes[0]),), patterns), which
    mass = np.bincount(which, weight, len(patterns)).astype(np.float64)
    complete = np.flatnonzero((patterns >= 0).all(axis=1))
    if not len(complete):  # no record has all its labels
        complete = np.array([int(mass.argmax())])
    frequent = np.maximum(patterns[complete[np.argsort(-mass[complete], kind="stable")][:most]], 0)
    tables = tuple(np.eye(size)[:, codes] for size, codes in zip(sizes, frequent.T, strict=True))
    profiles = Profiles(tables, patterns)
    if not profiles.likelihood.any(axis=1).all():
        profiles = Profiles(fit_profiles(patterns, mass, tables), patterns)
    return profiles, which


def fit_profiles(
    patterns: Codes, mass: FloatArray, tables: Sequence[FloatArray]
) -> tuple[FloatArray, ...]:
    """Latent classes of the labels alone by EM, from one-hot ``tables``."""
    layout = Layout(tuple(map(len, tables)))
    stacked = layout.normalize(np.vstack(tables) + PROFILE_DOUBT)
    codes = np.ascontiguousarray(patterns.astype(np.int16))
    weights = np.full(stacked.shape[1], 1.0 / stacked.shape[1])
    for _ in range(PROFILE_STEPS):
        _, classes, counts = kernels.class_pass(codes, mass, weights, stacked, layout.levels)
        weights = (classes + 0.5) / (classes + 0.5).sum()
        stacked = layout.normalize(counts + PROFILE_DOUBT)
    return tuple(layout.split(stacked))
