"""RowCompletion: what is missing in rows, by latent classes, a normal distribution and forests."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import logit

from rejoint import kernels
from rejoint.arrays import BoolArray, Codes, FloatArray, IntArray
from rejoint.domain.domain import Domain
from rejoint.estimation.data import InMemory
from rejoint.estimation.em import Em
from rejoint.estimation.gibbs import child
from rejoint.estimation.priors import Prior
from rejoint.estimation.smoothing import Smooth, smooth_levels, smooth_variables
from rejoint.estimation.starts import random_model
from rejoint.estimators.imputer.column_learner import Forest, stack
from rejoint.model import Layout, Model
from rejoint.records.records import Records
from rejoint.solver.run import run
from rejoint.solver.search import search
from rejoint.solver.session import Session
from rejoint.solver.solver import Limits, Run

#: Trees of a forest that completes rows.
FIRST_TREES = 20

#: Indicators of levels of all categories, of one of them, and the records that one needs.
MOST_INDICATORS, MOST_OF_ONE, RECORDS_OF_ONE = 100, 12, 3

#: Models, and folds of the observed cells: each model is fitted without one fold, and folds are
#: drawn anew once all have had their turn. One start has an NRMSE of .814 on eight mixed tables,
#: five averaged have .794.
MEMBERS, FOLDS = 10, 5

#: Classes of a member, and records for each of them that it needs. 10, 20 and 40 classes of smooth
#: columns have an NRMSE of .792, .793 and .797.
MOST_CLASSES, RECORDS_PER_CLASS = 20, 15

#: Time of smooth columns, for 15 levels: those within one level inform each other.
SMOOTH_TIME = 0.55

#: Steps of a member, which is one of many and need not be at its optimum.
LIMITS = Limits(max_steps=40, progress=1e-6, window=10, exact=-1.0)

#: Least probability of a level in a class, by which a cell is taken out of a posterior.
LEAST_PROBABILITY = 1e-12

#: Steps of EM: with a fifth of the cells missing the rest is below one percent after five.
NORMAL_STEPS = 8

#: Rows times columns cubed that EM works on; more rows are sampled, but not below the fewest.
MOST_WORK, FEWEST_ROWS = 1e8, 500

#: Numbers of a block of matrices, one for each pattern of missing values.
BLOCK_NUMBERS = 2_000_000

#: Records that the prior counts for, by column, and how much of a column's variance it expects to
#: be its own.
PRIOR_RECORDS, OWN_VARIANCE = 0.25, 0.3


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """How variables become columns: standardized numbers, and indicators of levels.

    Parameters
    ----------
    domain : Domain
        The variables.
    center, scale : ndarray (variables,)
        Mean and standard deviation of a variable of numbers; zero elsewhere.
    levels : tuple of ndarray of int
        For each variable, the levels that have an indicator.
    """

    domain: Domain
    center: FloatArray
    scale: FloatArray
    levels: tuple[IntArray, ...]
    groups: tuple[IntArray, ...] = field(init=False)

    def __post_init__(self) -> None:
        sizes = [int(s > 0) or len(kept) for s, kept in zip(self.scale, self.levels, strict=True)]
        ends = np.cumsum(sizes)
        groups = (np.arange(e - s, e) for e, s in zip(ends, sizes, strict=True))
        object.__setattr__(self, "groups", tuple(groups))

    @classmethod
    def of(
        cls, domain: Domain, numbers: IntArray, codes: Codes, values: FloatArray, weight: FloatArray
    ) -> "FeatureMap":
        """Choose levels, and find means and standard deviations."""
        center, scale = np.zeros(len(domain)), np.zeros(len(domain))
        levels = [np.zeros(0, dtype=np.intp) for _ in domain]
        mass = {}
        for n in range(len(domain)):
            if n in numbers:
                there = ~np.isnan(values[:, n])
                if there.any() and weight[there].sum() > 0:
                    share = weight[there] / weight[there].sum()
                    center[n] = share @ values[there, n]
                    scale[n] = np.sqrt(share @ (values[there, n] - center[n]) ** 2)
                continue
            there = codes[:, n] >= 0
            counts = np.bincount(codes[there, n], weight[there], len(domain[n]))
            # The most frequent one is what all others are compared with.
            for level in np.argsort(-counts, kind="stable")[1 : 1 + MOST_OF_ONE].tolist():
                if counts[level] >= RECORDS_OF_ONE:
                    mass[n, level] = counts[level]
        scale[scale < 1e-12 * np.maximum(np.abs(center), 1e-290)] = 0.0
        for n, level in sorted(sorted(mass, key=lambda at: -mass[at])[:MOST_INDICATORS]):
            levels[n] = np.append(levels[n], level)
        return cls(domain, center, scale, tuple(levels))

    @property
    def width(self) -> int:
        """Number of columns."""
        return sum(map(len, self.groups))

    def encode(self, codes: Codes, values: FloatArray) -> FloatArray:
        """Return the columns of rows, NaN where a variable is missing."""
        found = np.full((len(codes), self.width), np.nan)
        for n, (group, kept) in enumerate(zip(self.groups, self.levels, strict=True)):
            if self.scale[n] > 0:
                found[:, group[0]] = (values[:, n] - self.center[n]) / self.scale[n]
            elif len(kept):
                there = codes[:, n] >= 0
                found[np.ix_(there, group)] = codes[there, n, None] == kept
        return found

    @property
    def worth(self) -> FloatArray:
        """What each level of the variables is in each column, (L, columns)."""
        layout = Layout(self.domain.shape)
        found = np.zeros((layout.size, self.width))
        for n, (group, kept) in enumerate(zip(self.groups, self.levels, strict=True)):
            if self.scale[n] > 0:
                values = (self.domain[n].numeric - self.center[n]) / self.scale[n]
                found[layout.rows(n), group[0]] = values
            elif len(kept):
                found[layout.offsets[n] + kept, group] = 1.0
        return found


@dataclass(frozen=True, eq=False)
class ClassMembers:
    """Latent class models of the same variables, whose answers are averaged.

    Parameters
    ----------
    layout : Layout
        Levels of the variables.
    models : tuple of Model
        At least one.

    Examples
    --------
    >>> model = Model.of([0.5, 0.5], [[[0.9, 0.2], [0.1, 0.8]]] * 2)
    >>> members = ClassMembers(model.layout, (model,))
    >>> codes = np.array([[0, -1]], dtype=np.int8)
    >>> members.average(members.posteriors(codes), np.eye(4)).round(2)
    array([[0.77, 0.23, 0.77, 0.23]])
    """

    layout: Layout
    models: tuple[Model, ...]

    def posteriors(self, codes: Codes) -> list[FloatArray]:
        """Return the class posterior of each row by each model, (rows, classes)."""
        levels = self.layout.levels
        return [
            kernels.class_posterior(codes, model.weights, model.factors, levels)[1]
            for model in self.models
        ]

    def leave_out(
        self,
        posteriors: list[FloatArray],
        codes: Codes,
        hidden: list[BoolArray],
        n: int,
        values: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Return what rows that have variable n say of it, and of all others, without it.

        Parameters
        ----------
        posteriors, codes
            Of rows that have variable n.
        hidden : list of ndarray of bool
            For each model, which cells it has not seen.
        n : int
            The variable.
        values : ndarray (L, columns)
            What levels are worth.

        Returns
        -------
        table : ndarray (rows, levels)
            Probability of each level of n, by models that have not seen the cell, or by all where
            all have.
        expected : ndarray (rows, columns)
            Expectations of what levels of all variables are worth, by all models.
        """
        rows = self.layout.rows(n)
        table, every = np.zeros((2, len(codes), rows.stop - rows.start))
        expected, unseen = np.zeros((len(codes), values.shape[1])), np.zeros(len(codes), bool)
        for model, posterior, cells in zip(self.models, posteriors, hidden, strict=True):
            rest = posterior / np.maximum(model.factors[rows][codes[:, n]], LEAST_PROBABILITY)
            rest /= rest.sum(axis=1, keepdims=True)
            found = rest @ model.factors[rows].T
            every += found
            table += found * cells[:, n, None]
            unseen |= cells[:, n]
            expected += rest @ (model.factors.T @ values) / len(self.models)
        table = np.where(unseen[:, None], table, every)
        return table / table.sum(axis=1, keepdims=True), expected

    def average(self, posteriors: list[FloatArray], values: FloatArray) -> FloatArray:
        """Return expectations of what levels are worth, (L, columns), in each row."""
        parts = [
            posterior @ (model.factors.T @ values)
            for model, posterior in zip(self.models, posteriors, strict=True)
        ]
        return np.asarray(np.mean(parts, axis=0))


def fit_members(
    domain: Domain,
    codes: Codes,
    weight: FloatArray,
    smooth: Smooth,
    session: Session,
) -> tuple[ClassMembers, list[BoolArray]]:
    """Fit models to records with some observed cells hidden; return them and these cells.

    Parameters
    ----------
    domain : Domain
        The variables.
    codes : ndarray (rows, variables)
        Level of each cell, -1 where it is missing.
    weight : ndarray (rows,)
        How many times each row counts.
    smooth : "auto", bool or list of names
        Variables with smooth columns.
    session : Session
        Randomness and progress.

    Examples
    --------
    >>> codes = np.array([[0, 0], [1, 1]] * 20, dtype=np.int8)
    >>> session = Session(np.random.default_rng(0))
    >>> members, hidden = fit_members(Domain.of_shape([2, 2]), codes, np.ones(40), False, session)
    >>> len(members.models), sum(hidden[:5]).tolist() == np.ones((40, 2)).tolist()
    (10, True)
    """
    rng, seen = session.rng, codes >= 0
    hidden: list[BoolArray] = []
    for k in range(MEMBERS):
        if k % FOLDS == 0:
            fold = rng.integers(FOLDS, size=codes.shape)
        hidden.append(seen & (fold == k % FOLDS))
    rank = int(np.clip(weight.sum() / RECORDS_PER_CLASS, 1, MOST_CLASSES))
    variables = smooth_variables(domain, smooth)
    follow = partial(_follow, domain=domain, codes=codes, weight=weight, variables=variables)
    starts = [(cells, rank, child(rng)) for cells in hidden]
    runs: list[Run] = search(None, starts, follow, session.here())
    models = tuple(found.model for found in runs)
    return ClassMembers(Layout(domain.shape), models), hidden


def _follow(
    problem: None,
    start: tuple[BoolArray, int, np.random.Generator],
    number: int,
    session: Session,
    key: str,
    *,
    domain: Domain,
    codes: Codes,
    weight: FloatArray,
    variables: tuple[int, ...],
) -> Run:
    """Fit one member."""
    hidden, rank, rng = start
    kept = np.where(hidden, -1, codes).astype(codes.dtype)
    if not (kept >= 0).any():
        kept = codes
    plain = InMemory.of(Records(domain, kept, weight))
    data = smooth_levels(plain, variables, SMOOTH_TIME) if variables else plain
    em = Em(prior=Prior(0.0, data.center), memory=0, limits=LIMITS)
    found = run(em, data, random_model(data, rank, rng), session, start=number)
    return replace(found, model=data.observed(found.model))


class Parts(NamedTuple):
    """What observed columns say of the others, for each of some patterns of missing values.

    Attributes
    ----------
    gain : ndarray (patterns, p, p)
        Coefficients of missing columns (second axis) on observed ones.
    precision : ndarray (patterns, p, p)
        Inverse covariance of the observed columns.
    rest : ndarray (patterns, p, p)
        Covariance of the missing columns, given the observed ones.
    """

    gain: FloatArray
    precision: FloatArray
    rest: FloatArray


@dataclass(frozen=True, eq=False)
class IncompleteGaussian:
    """A normal distribution whose columns may be missing in rows.

    Parameters
    ----------
    mean : ndarray (p,)
    covariance : ndarray (p, p)

    Examples
    --------
    >>> normal = IncompleteGaussian(np.zeros(2), np.array([[1.0, 0.6], [0.6, 1.0]]))
    >>> completed, variance = normal.complete(np.array([[2.0, np.nan]]))
    >>> completed, variance
    (array([[2. , 1.2]]), array([[0.  , 0.64]]))
    """

    mean: FloatArray
    covariance: FloatArray

    @classmethod
    def fit(
        cls, rows: FloatArray, weight: FloatArray, rng: np.random.Generator
    ) -> "IncompleteGaussian":
        """Estimate by EM from rows with NaN, with a prior that shrinks correlations.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> rows = rng.normal(size=(4000, 1)) + rng.normal(size=(4000, 2))
        >>> rows[::5, 0] = np.nan
        >>> normal = IncompleteGaussian.fit(rows, np.ones(4000), rng)
        >>> bool(abs(normal.covariance[0, 1] - 1) < 0.1)
        True
        """
        width = rows.shape[1]
        most = int(max(MOST_WORK / width**3, FEWEST_ROWS))
        if len(rows) > most:
            some = rng.choice(len(rows), size=most, replace=False)
            rows, weight = rows[some], weight[some]
        seen = ~np.isnan(rows)
        mass = np.maximum((weight[:, None] * seen).sum(axis=0), 1e-12)
        mean = (weight[:, None] * np.where(seen, rows, 0.0)).sum(axis=0) / mass
        away = np.where(seen, rows - mean, 0.0)
        own = (weight[:, None] * away**2).sum(axis=0) / mass + 1e-9
        found = cls(mean, (weight[:, None] * away).T @ away / weight.sum() + np.diag(1e-3 * own))
        prior = PRIOR_RECORDS * width
        for _ in range(NORMAL_STEPS):
            sums, squares = np.zeros(width), np.zeros((width, width))
            for at, parts, which in found._blocks(seen):
                filled = _fill(rows[at] - found.mean, seen[at], parts, which)
                held = np.bincount(which, weight[at], len(parts.rest))
                sums += weight[at] @ filled
                squares += (weight[at][:, None] * filled).T @ filled
                squares += np.tensordot(held, parts.rest, 1)
            total = weight.sum()
            shift = sums / total
            squares += prior * OWN_VARIANCE * np.diag(own) - total * np.outer(shift, shift)
            found = cls(found.mean + shift, squares / (total + prior))
        return found

    def complete(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return rows with expectations in place of NaN, and the variance of each cell."""
        completed, variance = np.array(rows), np.zeros(rows.shape)
        seen = ~np.isnan(rows)
        for at, parts, which in self._blocks(seen):
            completed[at] = self.mean + _fill(rows[at] - self.mean, seen[at], parts, which)
            variance[at] = np.einsum("kpp->kp", parts.rest)[which]
        return completed, variance

    def complete_without(
        self, rows: FloatArray, groups: list[IntArray]
    ) -> Iterator[tuple[IntArray, int, FloatArray, FloatArray]]:
        """Complete rows as if a group of columns, which they have, were missing.

        Yields
        ------
        rows : ndarray of int
            Rows that have the group.
        group : int
            Which one.
        completed : ndarray (rows, p)
            Expectations given the other observed columns, in the group too.
        variance : ndarray (rows,)
            Of the first column of the group.
        """
        seen = ~np.isnan(rows)
        for at, parts, which in self._blocks(seen):
            away = np.where(seen[at], rows[at] - self.mean, 0.0)
            filled = _fill(away, seen[at], parts, which)
            scaled = np.einsum("rpq,rq->rp", parts.precision[which], away, optimize=True)
            for k, group in enumerate(groups):
                here = np.flatnonzero(seen[at, group[0]])
                if not len(here):
                    continue
                own = parts.precision[which[here]][:, group][:, :, group]
                own += 1e-9 * np.eye(len(group))
                # The error of the group's own prediction; others lose what it told them.
                error = np.linalg.solve(own, scaled[here][:, group, None])[:, :, 0]
                lost = np.einsum("rpk,rk->rp", parts.gain[which[here]][:, :, group], error)
                without = filled[here] - np.where(seen[at][here], 0.0, lost)
                without[:, group] -= error
                variance = 1.0 / np.maximum(own[:, 0, 0], 1e-12)
                yield at[here], k, without + self.mean, variance

    def _blocks(self, seen: BoolArray) -> Iterator[tuple[IntArray, Parts, IntArray]]:
        """Yield rows, the parts of their patterns, and which pattern each row has."""
        patterns, which = np.unique(seen, axis=0, return_inverse=True)
        which = which.ravel()
        size = max(1, BLOCK_NUMBERS // (3 * len(self.mean) ** 2))
        order = np.argsort(which, kind="stable")
        ends = np.searchsorted(which[order], np.arange(len(patterns) + 1))
        for first in range(0, len(patterns), size):
            last = min(first + size, len(patterns))
            rows = order[ends[first] : ends[last]]
            yield rows, self._parts(patterns[first:last]), which[rows] - first

    def _parts(self, patterns: BoolArray) -> Parts:
        there = patterns.astype(np.float64)
        inside = there[:, :, None] * there[:, None, :]
        diagonal = np.arange(len(self.mean))
        square = self.covariance * inside
        square[:, diagonal, diagonal] += 1.0 - there
        precision = np.linalg.inv(square) * inside
        across = self.covariance * (1.0 - there)[:, :, None] * there[:, None, :]
        gain = across @ precision
        outside = (1.0 - there)[:, :, None] * (1.0 - there)[:, None, :]
        rest = self.covariance * outside - gain @ across.transpose(0, 2, 1)
        return Parts(gain, precision, rest)


def _fill(away: FloatArray, seen: BoolArray, parts: Parts, which: IntArray) -> FloatArray:
    """Return deviations from the mean, expected ones where a column is missing."""
    known = np.where(seen, away, 0.0)
    expected = np.einsum("rpq,rq->rp", parts.gain[which], known, optimize=True)
    return np.asarray(np.where(seen, known, expected))


class Completed(NamedTuple):
    """What is known of the columns of some rows, and what is said of them.

    Attributes
    ----------
    known : ndarray (rows, columns)
        NaN where a column is missing.
    normal, classes : ndarray (rows, columns)
        Expectations by the normal distribution and by the classes.
    deviation : ndarray (rows, columns)
        Standard deviation that the normal distribution leaves.
    """

    known: FloatArray
    normal: FloatArray
    classes: FloatArray
    deviation: FloatArray

    @property
    def columns(self) -> FloatArray:
        """The columns, the mean of both expectations where one is missing."""
        mean = 0.5 * (self.normal + self.classes)
        return np.asarray(np.where(np.isnan(self.known), mean, self.known))

    def take(self, rows: IntArray) -> "Completed":
        """Return some of the rows."""
        return Completed(*(part[rows] for part in self))


class HeldOutRows(NamedTuple):
    """Rows that have a variable, completed as if it were missing.

    ``table`` has the probability of each of its levels by classes that have not seen the cell.
    """

    rows: IntArray
    table: FloatArray
    completed: Completed


@dataclass(frozen=True, eq=False)
class ColumnForest:
    """The columns of one variable by a forest, the normal distribution and the classes.

    Parameters
    ----------
    forest : Forest
    weights : ndarray (3,)
        Of normal distribution, classes and forest in the average.
    """

    forest: Forest
    weights: FloatArray


@dataclass(frozen=True, eq=False)
class RowCompletion:
    """Completes rows: by classes and a normal distribution first, then by forests.

    Parameters
    ----------
    features : FeatureMap
        How variables become columns.
    members : ClassMembers
    normal : IncompleteGaussian
        Of the columns.
    forests : dict by variable
        Forests of its columns, from the others as completed before, one after another. They find
        rows that are alike.
    """

    features: FeatureMap
    members: ClassMembers
    normal: IncompleteGaussian
    forests: dict[int, ColumnForest] = field(default_factory=dict)

    def complete(self, codes: Codes, values: FloatArray) -> tuple[Completed, list[FloatArray]]:
        """Return what is said of rows, and their class posteriors by each member."""
        known = self.features.encode(codes, values)
        normal, variance = self.normal.complete(known)
        found = self.members.posteriors(codes)
        classes = self.members.average(found, self.features.worth)
        return Completed(known, normal, classes, np.sqrt(np.maximum(variance, 1e-12))), found

    def leave_out(
        self,
        variables: list[int],
        codes: Codes,
        values: FloatArray,
        hidden: list[BoolArray],
    ) -> dict[int, HeldOutRows]:
        """Return rows that have a variable, completed without it, for each of some variables.

        ``hidden`` says which cells each of the members has not seen.
        """
        known = self.features.encode(codes, values)
        groups = [self.features.groups[n] for n in variables]
        normal = [np.empty(known.shape) for _ in variables]
        deviation = np.ones((len(known), len(variables)))
        for rows, k, completed, variance in self.normal.complete_without(known, groups):
            normal[k][rows] = completed
            deviation[rows, k] = np.sqrt(np.maximum(variance, 1e-12))
        posteriors, worth, found = self.members.posteriors(codes), self.features.worth, {}
        for k, n in enumerate(variables):
            rows = np.flatnonzero((codes[:, n] >= 0) & ~np.isnan(known[:, groups[k][0]]))
            table, classes = self.members.leave_out(
                [posterior[rows] for posterior in posteriors],
                codes[rows],
                [cells[rows] for cells in hidden],
                n,
                worth,
            )
            # Members that have seen the cell say too much of it.
            classes[:, groups[k]] = (table @ worth[self.members.layout.rows(n)])[:, groups[k]]
            rest = known[rows]
            rest[:, groups[k]] = np.nan
            spread = np.broadcast_to(deviation[rows, k, None], rest.shape)
            found[n] = HeldOutRows(rows, table, Completed(rest, normal[k][rows], classes, spread))
        return found

    def add_forest(
        self,
        n: int,
        left_out: HeldOutRows,
        codes: Codes,
        values: FloatArray,
        weight: FloatArray,
        rng: np.random.Generator,
    ) -> None:
        """Grow the forest of a variable, after those of others."""
        rows, _, completed = left_out
        group = self.features.groups[n]
        truth = self.features.encode(codes[rows], values[rows])[:, group]
        X = np.delete(self.columns(completed), group, axis=1)
        forest, by_forest = Forest.fit(X, truth, weight[rows], FIRST_TREES, rng)
        parts = [completed.normal[:, group], completed.classes[:, group], by_forest]
        mass = weight[rows] / weight[rows].mean()
        self.forests[n] = ColumnForest(forest, stack(parts, truth, mass))

    def columns(self, completed: Completed) -> FloatArray:
        """Return the columns of rows, completed by forests where a variable has one."""
        found = completed.columns
        for n, own in self.forests.items():
            group = self.features.groups[n]
            gone = np.flatnonzero(np.isnan(completed.known[:, group[0]]))
            if not len(gone):
                continue
            said = completed.take(gone)
            by_forest = own.forest.predict(np.delete(found[gone], group, axis=1))
            parts = (said.normal[:, group], said.classes[:, group], by_forest)
            found[np.ix_(gone, group)] = np.tensordot(own.weights, np.stack(parts), 1)
        return found

    def see(self, n: int, columns: FloatArray, completed: Completed) -> FloatArray:
        """Return features for variable n: other columns, and what is said of its own."""
        group = self.features.groups[n]
        own = completed.classes[:, group]
        if not self.features.scale[n] > 0:
            own = logit(np.clip(own, 1e-4, 1.0 - 1e-4))
        others = np.delete(columns, group, axis=1)
        return np.hstack([others, completed.normal[:, group], own])

    def gone(self, n: int, completed: Completed) -> BoolArray:
        """Return which variables but n are missing, (rows, variables)."""
        firsts = [group[0] for k, group in enumerate(self.features.groups) if k != n and len(group)]
        return np.isnan(completed.known[:, firsts])
