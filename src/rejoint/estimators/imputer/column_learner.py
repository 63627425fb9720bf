"""Learners of one column from others: of numbers and of categories, and their distributions."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, nnls
from scipy.special import softmax
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, StratifiedKFold

from rejoint.arrays import FloatArray, IntArray, Single
from rejoint.domain.variable import Variable

#: Penalties of a ridge regression, and inverse ones of a logistic regression, to choose from.
PENALTIES, INVERSE_PENALTIES = (0.3, 3.0, 15.0, 50.0, 200.0, 1000.0), (0.01, 0.05, 0.3)

#: Folds of the rows that learners are compared on, and trees that are grown without each.
ROW_FOLDS, FOLD_TREES = 5, 12

#: Most columns that a node chooses from, and most rows of a tree.
NODE_COLUMNS, TREE_ROWS = 40, 2_000

#: Posterior draws of the coefficients that are kept; others are random sums of them.
DRAWS = 50

#: Most levels of a logistic regression; each needs a record in every fold.
MOST_LEVELS = 20

#: Records that speak for equal weights of parts that are averaged.
PRIOR_WEIGHT = 11.0

#: How much of the levels' shares is mixed with each distribution that is pooled.
LEVEL_SHARE = 0.03

#: Settings of a spread: the power of the classes' probability, the spread by that of left-out
#: errors, and the share of the classes alone.
POWERS, SPREADS, SHARES = (0.0, 1.0), (0.35, 0.6, 0.8, 1.0, 1.3), (0.02, 0.1, 0.3, 1.0)

#: Rows that settings are chosen by, and quantiles of tails that are kept.
SPREAD_ROWS, TAIL_HEIGHTS = 500, 101

#: Whole numbers below it are exact.
LARGEST_WHOLE = 2.0**53

#: Least probability of a level or value.
LEAST_PROBABILITY = 1e-9


class View(NamedTuple):
    """What the other cells of some rows say of a variable, whatever its own cells hold.

    Attributes
    ----------
    rows : ndarray of int
        Positions of the rows.
    variable : int
    features : ndarray (rows, features)
        The completed columns of the others, then what the normal distribution and the classes
        expect of the variable's own columns.
    table : ndarray (rows, levels)
        Probability of each level by the classes.
    deviation : ndarray (rows,)
        Standard deviation that the normal distribution leaves, of a number by its own.
    """

    rows: IntArray
    variable: int
    features: FloatArray
    table: FloatArray
    deviation: FloatArray

    @classmethod
    def join(cls, views: list["View"]) -> "View":
        """Return one view of all rows of views of the same variable."""
        rows, _, *parts = zip(*views, strict=True)
        joined = [np.concatenate(part) for part in parts]
        return cls(np.concatenate(rows), views[0].variable, *joined)


class TrainingRows(NamedTuple):
    """Features of rows, weights of mean one, and a seed of folds: what a learner is fitted to."""

    X: FloatArray
    weight: FloatArray
    seed: int

    def cross_fit(self, model: Any, Y: NDArray[Any]) -> tuple[list[Any], FloatArray]:
        """Return copies of a model, each fitted without a fold, and what they predict in it."""
        kind = StratifiedKFold if Y.dtype.kind == "i" else KFold
        models, places, parts = [], [], []
        for rows, others in kind(ROW_FOLDS, shuffle=True, random_state=self.seed).split(self.X, Y):
            if isinstance(model, ExtraTreesRegressor):
                rows = np.random.default_rng(self.seed).permutation(rows)[:TREE_ROWS]
            models.append(clone(model).fit(self.X[rows], Y[rows], sample_weight=self.weight[rows]))
            predict = getattr(models[-1], "predict_proba", models[-1].predict)
            parts.append(predict(self.X[others]).reshape(len(others), -1))
            places.append(others)
        left_out = np.empty((len(Y), parts[0].shape[1]))
        left_out[np.concatenate(places)] = np.concatenate(parts)
        return models, left_out

    def choose(self, models: Iterable[Any], Y: NDArray[Any]) -> tuple[Any, FloatArray]:
        """Return the model that predicts left-out rows best, and what it predicts."""

        def loss(trial: tuple[Any, FloatArray]) -> float:
            if Y.dtype.kind != "i":
                return float(self.weight @ (Y - trial[1][:, 0]) ** 2)
            return -float(self.weight @ np.log(np.maximum(trial[1][np.arange(len(Y)), Y], 1e-4)))

        return min(((model, self.cross_fit(model, Y)[1]) for model in models), key=loss)


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees whose answers are averaged, as arrays.

    Parameters
    ----------
    roots : ndarray of int (trees,)
        The first node of each tree.
    features : ndarray of int (nodes,)
        Column that a node looks at, -1 in a leaf.
    thresholds : ndarray (nodes,)
        Up to which rows go to the left: to the next node.
    right : ndarray of int (nodes,)
        Where other rows go to, a later node.
    values : ndarray (nodes, outputs)
        Mean of the training rows in a node.
    """

    roots: IntArray
    features: IntArray
    thresholds: Single
    right: IntArray
    values: Single

    @classmethod
    def fit(cls, sample: TrainingRows, Y: FloatArray) -> tuple["Trees", FloatArray]:
        """Grow trees, and return what those that have not seen a row say of its outputs."""
        most = min(sample.X.shape[1], NODE_COLUMNS)
        model = ExtraTreesRegressor(FOLD_TREES, max_features=most, random_state=sample.seed)
        forests, left_out = sample.cross_fit(model, Y)
        trees = [one.tree_ for forest in forests for one in forest.estimators_]
        roots = np.cumsum([0, *(tree.node_count for tree in trees)])[:-1]
        right = np.concatenate([t.children_right + at for t, at in zip(trees, roots, strict=True)])
        leaf = np.concatenate([tree.children_left for tree in trees]) < 0
        features = np.where(leaf, -1, np.concatenate([tree.feature for tree in trees]))
        thresholds = np.concatenate([tree.threshold for tree in trees]).astype(np.float32)
        values = np.concatenate([tree.value[:, :, 0] for tree in trees]).astype(np.float32)
        return cls(roots, features, thresholds, np.where(leaf, 0, right), values), left_out

    @property
    def is_complete(self) -> bool:
        """Whether every row ends in a leaf of each tree."""
        nodes, inner = np.arange(len(self.features)), self.features >= 0
        later = (self.right[inner] > nodes[inner]).all() and within(self.right, len(nodes))
        return within(self.roots, len(nodes)) and bool(later) and not inner[-1:].any()

    def predict(self, X: FloatArray) -> FloatArray:
        """Return the outputs of each row."""
        rows = X.astype(np.float32)  # as in the fit
        nodes = np.tile(self.roots, (len(X), 1))
        at = np.arange(len(X))[:, None]
        while (inner := (features := self.features[nodes]) >= 0).any():
            beyond = rows[at, features] > self.thresholds[nodes]
            nodes = np.where(inner, np.where(beyond, self.right[nodes], nodes + 1), nodes)
        return np.asarray(self.values[nodes].mean(axis=1), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Linear:
    """Linear scores of standardized columns, with posterior draws of the coefficients.

    Parameters
    ----------
    center, scale : ndarray (columns,)
        By which columns are standardized.
    coefficients : ndarray (1 + columns, outputs)
        Intercepts above slopes.
    deviations : ndarray (draws, 1 + columns, outputs)
        How coefficients differ from these in posterior draws.
    """

    center: FloatArray
    scale: FloatArray
    coefficients: FloatArray
    deviations: Single

    @classmethod
    def fit(cls, sample: TrainingRows, Y: NDArray[Any]) -> tuple["Linear", FloatArray]:
        """Fit a ridge regression of numbers, or a logistic one of levels from 0 on.

        Also return the numbers that are expected, or probabilities of levels, of left-out rows.
        """
        share = sample.weight / sample.weight.sum()
        center = share @ sample.X
        scale = np.sqrt(share @ (sample.X - center) ** 2)
        scale[scale < 1e-9] = 1.0
        rows = sample._replace(X=(sample.X - center) / scale)
        if Y.dtype.kind == "i":
            models = (LogisticRegression(C=c, max_iter=200, tol=1e-3) for c in INVERSE_PENALTIES)
            model, left_out = rows.choose(models, Y)
            # As if counts of levels were independent Poisson numbers.
            curvatures, penalty = left_out, 1.0 / model.C
        else:
            model, left_out = rows.choose(map(Ridge, PENALTIES), Y)
            error = max(float(share @ (Y - left_out[:, 0]) ** 2), 1e-12)
            curvatures, penalty = np.full(left_out.shape, 1.0 / error), model.alpha / error
        model.fit(rows.X, Y, sample.weight)
        slopes = np.reshape(model.coef_, (-1, rows.X.shape[1]))
        coefficients = np.hstack([np.reshape(model.intercept_, (-1, 1)), slopes]).T
        if coefficients.shape[1] < curvatures.shape[1]:  # of two levels, the second has scores
            coefficients = np.hstack([np.zeros_like(coefficients), coefficients])
        Z = np.hstack([np.ones((len(Y), 1)), rows.X])
        prior, rng = np.diag(np.append(1e-9, np.full(len(scale), penalty))), sample.seed
        noise = np.random.default_rng(rng).normal(size=(curvatures.shape[1], len(prior), DRAWS))
        draws = [
            np.linalg.solve(np.linalg.cholesky((Z.T * (sample.weight * own)) @ Z + prior).T, normal)
            for own, normal in zip(curvatures.T, noise, strict=True)
        ]
        deviations = np.stack(draws, axis=2).transpose(1, 0, 2).astype(np.float32)
        return cls(center, scale, coefficients, deviations), left_out

    def scores(self, X: FloatArray) -> FloatArray:
        """Return the scores of each row, (rows, outputs)."""
        intercept, slopes = self.coefficients[0], self.coefficients[1:]
        return np.asarray(intercept + ((X - self.center) / self.scale) @ slopes)

    def deviate(self, rng: np.random.Generator) -> "Linear":
        """Return how a posterior draw differs."""
        count = len(self.deviations)
        moved = np.tensordot(rng.normal(size=count), self.deviations, 1) / np.sqrt(count)
        return replace(self, coefficients=moved)


def stack(parts: FloatArray, y: FloatArray, weight: FloatArray) -> FloatArray:
    """Return nonnegative weights by which left-out predictions are best, near equal ones."""
    root, count = np.sqrt(weight)[:, None], parts.shape[1]
    error = float(weight @ (y - parts[:, 0]) ** 2 / weight.sum())
    pull = np.sqrt(PRIOR_WEIGHT * max(error, 1e-12))
    system = np.vstack([root * parts, pull * np.eye(count)])
    return np.asarray(nnls(system, np.append(root[:, 0] * y, np.full(count, pull / count)))[0])


@dataclass(frozen=True, eq=False)
class LevelPool:
    """Distributions of a category by several parts as one: the product of their powers.

    Parts are compared with the shares of levels, ``share * product((part / share) ** power)``:
    where parts say little, and powers are small, the shares remain.

    Parameters
    ----------
    powers : ndarray (parts,)
        Of each part.
    share : ndarray (levels,)
        Share of each level, which every part is mixed with a little.
    """

    powers: FloatArray
    share: FloatArray

    @classmethod
    def fit(cls, parts: list[FloatArray], codes: IntArray, weight: FloatArray) -> "LevelPool":
        """Choose powers by the probability that left-out levels have."""
        mass = np.bincount(codes, weight, parts[0].shape[1]) + 1.0
        even = cls(np.full(len(parts), 1.0 / len(parts)), mass / mass.sum())

        def loss(powers: FloatArray) -> float:
            table = replace(even, powers=powers).mix(parts)
            chance = np.maximum(table[np.arange(len(codes)), codes], 1e-300)
            off = powers - even.powers
            return float(-weight @ np.log(chance) + 0.5 * PRIOR_WEIGHT * (off @ off))

        end = minimize(loss, even.powers, bounds=[(0.0, 2.0)] * len(parts))
        return replace(even, powers=np.asarray(end.x))

    def mix(self, parts: list[FloatArray]) -> FloatArray:
        """Return one distribution, (rows, levels)."""
        mixed = [(1.0 - LEVEL_SHARE) * part + LEVEL_SHARE * self.share for part in parts]
        logs = np.tensordot(self.powers, np.log(mixed) - np.log(self.share), 1)
        return np.asarray(softmax(np.log(self.share) + logs, axis=1))


@dataclass(frozen=True, eq=False)
class NumberSpread:
    """How probable each value of a variable is, given a prediction and what classes say.

    ``(1 - share) q + share p``, where ``p`` is the probability by the classes, values in a bin in
    the proportions of the data, and ``q`` has a density in proportion to that of ``p``, to a power,
    times a normal density around the prediction.

    Parameters
    ----------
    values : ndarray (values,)
        Values of the variable, in increasing order.
    bins : ndarray of int (values,)
        Level of each.
    within : ndarray (values,)
        Its share of its level.
    power, spread, share : float
        Settings. The standard deviation is ``spread`` times that of the row.
    tails : ndarray (quantiles,)
        Quantiles, at even heights from 0 to 1, of the smaller tail beyond left-out values: see
        :meth:`tail`.
    """

    values: FloatArray
    bins: IntArray
    within: FloatArray
    power: float = 0.0
    spread: float = 0.0
    share: float = 1.0
    tails: FloatArray = field(default_factory=lambda: np.array([0.0, 0.5]))

    @classmethod
    def of(cls, variable: Variable) -> "NumberSpread":
        """Return the spread of the classes alone."""
        contents = variable.contents or tuple(((x, 1.0),) for x in variable.numeric.tolist())
        triples = [
            (value, level, mass / sum(m for _, m in within))
            for level, within in enumerate(contents)
            for value, mass in within
        ]
        values, bins, within = map(np.array, zip(*sorted(triples), strict=True))
        return cls(values.astype(float), bins, within.astype(float))

    def fit(
        self,
        classes: FloatArray,
        predicted: FloatArray,
        deviation: FloatArray,
        truth: FloatArray,
    ) -> "NumberSpread":
        """Choose settings by the probability of the right bin in left-out cells.

        Parameters
        ----------
        classes : ndarray (rows, levels)
            Probability of each level without the cell.
        predicted, deviation, truth : ndarray (rows,)
            The cell predicted without itself, the standard deviation that the other columns of
            the row leave, and its value.
        """
        unit = np.sqrt(np.mean((truth - predicted) ** 2) / np.mean(deviation**2)) + 1e-9
        place = np.abs(self.values - truth[:, None]).argmin(axis=1)
        right = self.bins == self.bins[place][:, None]
        alone = (self.table(classes) * right).sum(axis=1)
        best, least = self, np.inf
        for power, factor in product(POWERS, SPREADS):
            trial = replace(self, power=power, spread=factor * unit, share=0.0)
            near = (trial.table(classes, predicted, deviation) * right).sum(axis=1)
            for share in SHARES:
                mixed = np.maximum((1.0 - share) * near + share * alone, LEAST_PROBABILITY)
                if (loss := -float(np.log(mixed).mean())) < least:
                    best, least = replace(trial, share=share), loss
        table = best.table(classes, predicted, deviation)
        ends, at = np.cumsum(table, axis=1), (np.arange(len(truth)), place)
        smaller = np.minimum(ends[at], 1.0 - ends[at] + table[at])
        # The expected rank of a new cell among n is that of n + 1.
        tails = np.quantile(smaller, np.linspace(0.0, 1.0, TAIL_HEIGHTS), method="weibull")
        return replace(best, tails=tails)

    @property
    def is_whole(self) -> bool:
        """Whether all values are whole numbers."""
        exact = np.abs(self.values).max() < LARGEST_WHOLE
        return bool(exact and (self.values == np.rint(self.values)).all())

    def table(
        self,
        classes: FloatArray,
        predicted: FloatArray | None = None,
        deviation: FloatArray | None = None,
    ) -> FloatArray:
        """Return the probability of each value in each row, (rows, values)."""
        prior = np.maximum(classes, LEAST_PROBABILITY)[:, self.bins] * self.within
        prior /= prior.sum(axis=1, keepdims=True)
        if predicted is None or deviation is None:
            return np.asarray(prior)
        span = self.values[-1] - self.values[0] + 1e-12
        sigma = np.maximum(self.spread * deviation, 1e-6 * span)
        logs = self.power * np.log(prior) + (1.0 - self.power) * np.log(np.gradient(self.values))
        logs -= 0.5 * ((self.values - predicted[:, None]) / sigma[:, None]) ** 2
        return np.asarray((1.0 - self.share) * softmax(logs, axis=1) + self.share * prior)

    def levels(self, table: FloatArray, size: int) -> FloatArray:
        """Return the probability of each level from that of values."""
        return np.asarray(table @ np.eye(size)[self.bins])

    def interval(self, table: FloatArray, level: float) -> FloatArray:
        """Return bounds that hold a share ``level`` of left-out values, (rows, 2).

        An interval that leaves out ``t`` at each end holds a value where the smaller of the
        probabilities of values up to it, and from it on, is at least ``t``. Among left-out cells
        this is so for the share ``level`` where ``t`` is that quantile.
        """
        tail = np.interp(1.0 - level, np.linspace(0.0, 1.0, len(self.tails)), self.tails)
        ends = [self.quantile(table, np.full(len(table), height)) for height in (tail, 1.0 - tail)]
        return np.stack(ends, axis=1)

    def quantile(self, table: FloatArray, heights: FloatArray) -> FloatArray:
        """Return the smallest value whose probability, with all below, reaches a height."""
        sums = np.cumsum(table, axis=1)
        places = (sums < (heights * sums[:, -1] * (1 - 1e-12))[:, None]).sum(axis=1)
        return np.asarray(self.values[np.minimum(places, len(self.values) - 1)])


@dataclass(frozen=True, eq=False)
class NumberLearner:
    """Predicts a number from a view: a ridge regression and trees, averaged.

    Parameters
    ----------
    unit : ndarray (2,)
        Mean and standard deviation, by which numbers are standardized.
    range : ndarray (2,)
        Of the number in the data, which no prediction leaves.
    ridge : Linear
        Of all features.
    trees : Trees
        Of those that are not of the variable, which come first.
    weights : ndarray (2,)
        Of both in the average.
    spread : NumberSpread
        Of the number itself.
    deviation : Linear, optional
        By which predictions of a posterior draw differ. Trees have no posterior: what they say is
        taken to be as uncertain as the regression.
    """

    unit: FloatArray
    range: FloatArray
    ridge: Linear
    trees: Trees
    weights: FloatArray
    spread: NumberSpread
    deviation: Linear | None = None

    @classmethod
    def fit(
        cls, variable: Variable, view: View, sample: TrainingRows, others: int, truth: FloatArray
    ) -> "NumberLearner":
        """Fit to a view of cells that are left out, of which ``truth`` is the content."""
        share = sample.weight / sample.weight.sum()
        center = float(share @ truth)
        unit = np.array([center, np.sqrt(share @ (truth - center) ** 2)])
        y = (truth - unit[0]) / unit[1]
        ridge, by_ridge = Linear.fit(sample, y)
        trees, by_trees = Trees.fit(sample._replace(X=sample.X[:, :others]), y)
        parts = np.hstack([by_ridge, by_trees])
        weights, limits = stack(parts, y, sample.weight), np.array([truth.min(), truth.max()])
        predicted = np.clip(unit[0] + unit[1] * (parts @ weights), *limits)
        rows = np.random.default_rng(sample.seed).permutation(len(truth))[:SPREAD_ROWS]
        cells = (view.table[rows], predicted[rows], view.deviation[rows])
        spread = NumberSpread.of(variable).fit(*cells, truth[rows])
        return cls(unit, limits, ridge, trees, weights, spread)

    def predict(self, view: View) -> FloatArray:
        """Return the expected number of each row."""
        parts = np.hstack([self.ridge.scores(view.features), self.trees.predict(view.features)])
        moved = 0.0 if self.deviation is None else self.deviation.scores(view.features)[:, 0]
        predicted = self.unit[0] + self.unit[1] * (parts @ self.weights + moved)
        return np.asarray(np.clip(predicted, *self.range))

    def draw(self, rng: np.random.Generator) -> "NumberLearner":
        """Return a posterior draw."""
        return replace(self, deviation=self.ridge.deviate(rng))


@dataclass(frozen=True, eq=False)
class CategoryLearner:
    """Gives the probability of levels from a view: classes, a regression and trees, pooled.

    Parameters
    ----------
    levels : ndarray of int
        Levels of the regression; others keep the probability that the classes give them.
    logistic : Linear
        Logits of these levels, by all features.
    trees : Trees
        Of features that are not of the variable, which come first.
    pool : LevelPool
    deviation : Linear, optional
        By which logits of a posterior draw differ, those of all parts.
    """

    levels: IntArray
    logistic: Linear
    trees: Trees
    pool: LevelPool
    deviation: Linear | None = None

    @classmethod
    def fit(
        cls, view: View, sample: TrainingRows, others: int, codes: IntArray
    ) -> "CategoryLearner | None":
        """Fit to a view of cells that are left out, of which ``codes`` are the levels.

        None where fewer than two levels have enough records.
        """
        size = view.table.shape[1]
        counts = np.bincount(codes, minlength=size)
        frequent = np.argsort(-counts, kind="stable")[:MOST_LEVELS]
        levels = np.sort(frequent[counts[frequent] >= ROW_FOLDS])
        if len(levels) < 2:
            return None
        rows = np.flatnonzero(np.isin(codes, levels))
        some = TrainingRows(sample.X[rows], sample.weight[rows], sample.seed)
        logistic, left_out = Linear.fit(some, np.searchsorted(levels, codes[rows]))
        logits = logistic.scores(sample.X)
        logits[rows] = np.log(np.maximum(left_out, LEAST_PROBABILITY))
        trees, by_trees = Trees.fit(sample._replace(X=sample.X[:, :others]), np.eye(size)[codes])
        parts = [view.table, _with_levels(view.table, levels, logits), by_trees]
        return cls(levels, logistic, trees, LevelPool.fit(parts, codes, sample.weight))

    def predict(self, view: View) -> FloatArray:
        """Return the probability of each level, (rows, levels)."""
        X = view.features
        by_logistic = _with_levels(view.table, self.levels, self.logistic.scores(X))
        table = self.pool.mix([view.table, by_logistic, self.trees.predict(X)])
        if self.deviation is None:
            return table
        logits = np.log(np.maximum(table[:, self.levels], LEAST_PROBABILITY))
        return _with_levels(table, self.levels, logits + self.deviation.scores(X))

    def draw(self, rng: np.random.Generator) -> "CategoryLearner":
        """Return a posterior draw."""
        return replace(self, deviation=self.logistic.deviate(rng))


def _with_levels(before: FloatArray, levels: IntArray, logits: FloatArray) -> FloatArray:
    """Return probabilities in which some levels share what they had in other proportions."""
    table = np.array(before)
    table[:, levels] = table[:, levels].sum(axis=1, keepdims=True) * softmax(logits, axis=1)
    return table


def within(places: NDArray[Any], most: int) -> bool:
    """Whether all are whole numbers from 0 to below another."""
    return places.dtype.kind in "iu" and bool(((places >= 0) & (places < most)).all())
