"""CellModel: what a missing cell holds, given the observed cells of its row.

The joint answers for every cell. Where there are enough records, learners of each column know
better. All columns are completed in two ways: by latent classes (several models, each fitted
without some of the cells) and by a normal distribution. A learner predicts its column from the
others, completed by the mean of both, and from what classes and normal distribution say of the
column itself. It learns from observed cells, as if each were missing: what completed the other
columns of its row has not seen it. A learner of numbers is a ridge regression, whose errors in
left-out cells calibrate the distribution around it. The distribution of a category is the mean of
the joint's, that of the classes, and that of a logistic regression.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import BoolArray, Codes, FloatArray, IntArray
from rejoint.domain.domain import Domain
from rejoint.estimation.ordinal_smoothing import Smooth
from rejoint.estimators.imputer.class_members import ClassMembers, fit_members
from rejoint.estimators.imputer.incomplete_gaussian import IncompleteGaussian
from rejoint.estimators.imputer.kernel_ridge import KernelRidge
from rejoint.estimators.imputer.level_logistic import LevelLogistic
from rejoint.estimators.imputer.number_spread import NumberSpread, spread_values
from rejoint.model import Layout, Model
from rejoint.pmf.pmf import LowRankPMF
from rejoint.queries.log_prob import posteriors
from rejoint.solver.session import Session, one_blas_thread

#: Records with a value that a column needs for a learner of its own.
FEWEST_RECORDS = 30

#: Rows that are learnt from, and these times variables times features, which are in memory.
MOST_ROWS, MOST_CELLS = 10_000, 2e7

#: Indicators of levels of all categories, of one of them, and the records that one needs.
MOST_INDICATORS, MOST_OF_ONE, RECORDS_OF_ONE = 100, 12, 3

#: Features of a learner: those most correlated with its column.
MOST_FEATURES = 150

#: Rows whose cells are answered at a time.
BLOCK_ROWS = 4_000


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


class NumberLearner(NamedTuple):
    """Predicts a number from some features; what is predicted is within the range of the data."""

    features: IntArray
    ridge: KernelRidge
    spread: NumberSpread
    range: tuple[float, float]


class CategoryLearner(NamedTuple):
    """Gives the probability of levels, from some features."""

    features: IntArray
    logistic: LevelLogistic


class MissingCell(NamedTuple):
    """What is known of a variable in some rows that miss it.

    Attributes
    ----------
    levels : ndarray (rows, levels)
        Probability of each level.
    joint : ndarray (rows, levels) or None
        That of the joint, where ``levels`` are not the joint's.
    expected : ndarray (rows,) or None
        The expected number, where a learner predicts it.
    values : ndarray (rows, values) or None
        Probability of each value of ``spread``.
    spread : NumberSpread or None
    """

    levels: FloatArray
    joint: FloatArray | None = None
    expected: FloatArray | None = None
    values: FloatArray | None = None
    spread: NumberSpread | None = None


@dataclass(frozen=True, eq=False)
class Completed:
    """Rows with all columns completed, and what classes and normal distribution say."""

    columns: FloatArray
    normal: FloatArray
    deviation: FloatArray


@dataclass(frozen=True, eq=False)
class CellModel:
    """The distribution of any missing cell.

    Parameters
    ----------
    pmf : LowRankPMF
        The joint, which answers where there is no learner.
    features : FeatureMap, optional
    members : ClassMembers, optional
    normal : IncompleteGaussian, optional
        Of the columns of ``features``.
    numbers, categories : dict by variable
        The learners.
    is_draw : bool
        Whether learners are posterior draws. Then the mean of a number's distribution is the
        prediction, so that means of completed columns are not drawn to the middle.

    Examples
    --------
    >>> import rejoint as rj
    >>> pmf = rj.LowRankPMF([0.5, 0.5], [[[0.9, 0.2], [0.1, 0.8]]] * 2)
    >>> codes, gone = np.array([[0, -1]], dtype=np.int8), np.array([[False, True]])
    >>> [(rows, n, cell)] = CellModel(pmf).answers(codes, np.full((1, 2), np.nan), gone)
    >>> rows, n, cell.levels.round(2)
    (array([0]), 1, array([[0.77, 0.23]]))
    """

    pmf: LowRankPMF
    features: FeatureMap | None = None
    members: ClassMembers | None = None
    normal: IncompleteGaussian | None = None
    numbers: dict[int, NumberLearner] = field(default_factory=dict)
    categories: dict[int, CategoryLearner] = field(default_factory=dict)
    is_draw: bool = False

    def draw(self, rng: np.random.Generator) -> "CellModel":
        """Return a model whose regressions of numbers are drawn from their posterior."""
        drawn = {n: each._replace(ridge=each.ridge.draw(rng)) for n, each in self.numbers.items()}
        return replace(self, numbers=drawn, is_draw=True)

    def answers(
        self, codes: Codes, values: FloatArray, gone: BoolArray
    ) -> Iterator[tuple[IntArray, int, MissingCell]]:
        """Yield rows, variable, and what is known of the variable in these rows.

        Parameters
        ----------
        codes : ndarray (rows, variables)
            Level of each cell, -1 where it says nothing.
        values : ndarray (rows, variables)
            The numbers themselves, NaN elsewhere.
        gone : ndarray of bool (rows, variables)
            Cells to tell about; blocks of rows come one after another.
        """
        with one_blas_thread():
            touched = np.flatnonzero(gone.any(axis=1))
            for start in range(0, len(touched), BLOCK_ROWS):
                rows = touched[start : start + BLOCK_ROWS]
                yield from self._answer_block(rows, codes[rows], values[rows], gone[rows])

    def _answer_block(
        self, rows: IntArray, codes: Codes, values: FloatArray, gone: BoolArray
    ) -> Iterator[tuple[IntArray, int, MissingCell]]:
        mixture = self.pmf.mixture
        parts = [p for _, _, p in posteriors(mixture.weights, mixture.factors, codes)]
        joint = np.concatenate(parts)
        completed, classes = None, list[FloatArray]()
        for n in np.flatnonzero(gone.any(axis=0)).tolist():
            at = np.flatnonzero(gone[:, n])
            table = joint[at] @ mixture.factors[n].T
            table /= table.sum(axis=1, keepdims=True)
            cell = MissingCell(table)
            if n in self.numbers or n in self.categories:
                if completed is None:
                    completed, classes = self._complete(codes, values)
                assert self.members is not None
                stacked = self.members.layout.rows(n)
                own = sum(
                    posterior[at] @ model.factors[stacked].T / len(classes)
                    for posterior, model in zip(classes, self.members.models, strict=True)
                )
                cell = self._learnt(n, np.asarray(own), table, completed, at)
            yield rows[at], n, cell

    def _complete(self, codes: Codes, values: FloatArray) -> tuple[Completed, list[FloatArray]]:
        assert self.features is not None
        assert self.members is not None
        assert self.normal is not None
        known = self.features.encode(codes, values)
        normal, variance = self.normal.complete(known)
        found = self.members.posteriors(codes)
        by_classes = self.members.average(found, self.features.worth)
        columns = np.where(np.isnan(known), 0.5 * (normal + by_classes), known)
        return Completed(columns, normal, np.sqrt(np.maximum(variance, 1e-12))), found

    def _learnt(
        self, n: int, own: FloatArray, joint: FloatArray, completed: Completed, at: IntArray
    ) -> MissingCell:
        """Return what the learner of a variable makes of completed rows."""
        assert self.features is not None
        group = self.features.groups[n]
        X = _learner_features(
            self.features, n, completed.columns[at], completed.normal[np.ix_(at, group)], own
        )
        if n in self.categories:
            logistic = self.categories[n].logistic.predict(X[:, self.categories[n].features], own)
            return MissingCell((joint + own + logistic) / 3.0, joint)
        learner = self.numbers[n]
        unit, spread = self.features.scale[n], learner.spread
        expected = self.features.center[n] + unit * learner.ridge.predict(X[:, learner.features])
        expected = np.clip(expected, *learner.range)
        deviation = unit * completed.deviation[at, group[0]]
        middle = spread.center(own, expected, deviation) if self.is_draw else expected
        values = spread.table(own, middle, deviation)
        levels = spread.levels(values, own.shape[1])
        return MissingCell(levels, joint, expected, values, spread)


def to_arrays(model: CellModel) -> dict[str, NDArray[Any]]:
    """Return all numbers of a model but those of its joint, by name; none where it has no learner.

    Examples
    --------
    >>> import rejoint as rj
    >>> to_arrays(CellModel(rj.LowRankPMF([1.0], [[[0.5], [0.5]]])))
    {}
    """
    features, members, normal = model.features, model.members, model.normal
    if features is None or members is None or normal is None:
        return {}
    pairs = [(n, level) for n, kept in enumerate(features.levels) for level in kept.tolist()]
    arrays: dict[str, NDArray[Any]] = {
        "center": features.center,
        "scale": features.scale,
        "indicators": np.array(pairs, dtype=np.int64).reshape(-1, 2),
        "mean": normal.mean,
        "covariance": normal.covariance,
        "numbers": np.array(list(model.numbers), dtype=np.int64),
        "categories": np.array(list(model.categories), dtype=np.int64),
    }
    arrays |= {f"member_{k}": member.stacked for k, member in enumerate(members.models)}
    for n, number in model.numbers.items():
        ridge, spread = number.ridge, number.spread
        rest = (ridge.intercept, ridge.width, *number.range)
        calibration = (spread.power, spread.row_power, spread.spread, spread.share)
        arrays |= {
            f"features_{n}": number.features.astype(np.int64),
            f"columns_{n}": np.stack([ridge.center, ridge.scale, ridge.slope]),
            f"landmarks_{n}": np.hstack([ridge.landmarks, ridge.heights[:, None]]),
            f"deviations_{n}": ridge.deviations,
            f"rest_{n}": np.array([*rest, *calibration]),
        }
    for n, category in model.categories.items():
        logistic = category.logistic
        arrays |= {
            f"features_{n}": category.features.astype(np.int64),
            f"columns_{n}": np.stack([logistic.center, logistic.scale]),
            f"levels_{n}": logistic.levels.astype(np.int64),
            f"coefficients_{n}": logistic.coefficients,
        }
    return arrays


def from_arrays(pmf: LowRankPMF, arrays: Mapping[str, NDArray[Any]]) -> CellModel:
    """Return the model that :func:`to_arrays` took apart; ValueError if they do not fit together.

    Examples
    --------
    >>> import rejoint as rj
    >>> from_arrays(rj.LowRankPMF([1.0], [[[0.5], [0.5]]]), {}).numbers
    {}
    """
    if not arrays:
        return CellModel(pmf)
    try:
        return _from_arrays(pmf, arrays)
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError(f"The learners of the imputer do not fit together: {error}.") from error


def _from_arrays(pmf: LowRankPMF, arrays: Mapping[str, NDArray[Any]]) -> CellModel:
    domain, layout = pmf.domain, Layout(pmf.domain.shape)
    pairs = arrays["indicators"].astype(np.intp)
    levels = tuple(pairs[pairs[:, 0] == n, 1] for n in range(len(domain)))
    center, scale = (_shaped(arrays[name], len(domain)) for name in ("center", "scale"))
    features = FeatureMap(domain, center, scale, levels)
    width = features.width
    normal = IncompleteGaussian(
        _shaped(arrays["mean"], width), _shaped(arrays["covariance"], width, width)
    )
    count = sum(name.startswith("member_") for name in arrays)
    stacked = (_shaped(arrays[f"member_{k}"], 1 + layout.size, None) for k in range(count))
    members = ClassMembers(layout, tuple(Model.from_stacked(layout, each) for each in stacked))
    model = CellModel(pmf, features, members, normal)
    for n in arrays["numbers"].tolist():
        kept, columns, rest = _parts_of(arrays, features, n, 3)
        marks = _shaped(arrays[f"landmarks_{n}"], None, len(kept) + 1)
        intercept, span, low, high, *settings = _shaped(rest, 8).tolist()
        moved = _shaped(arrays[f"deviations_{n}"], 1 + len(kept) + len(marks), None)
        ridge = KernelRidge(
            columns[0], columns[1], intercept, columns[2], marks[:, :-1], marks[:, -1], span, moved
        )
        spread = NumberSpread(*spread_values(domain[n]), *settings)
        model.numbers[n] = NumberLearner(kept, ridge, spread, (low, high))
    for n in arrays["categories"].tolist():
        kept, columns, _ = _parts_of(arrays, features, n, 2)
        places = arrays[f"levels_{n}"].astype(np.intp)
        if places.size and not (places.min() >= 0 and places.max() < len(domain[n])):
            raise ValueError(f"A level of {domain[n].name!r} in the imputer is none of its levels.")
        found = _shaped(arrays[f"coefficients_{n}"], len(kept) + 1, len(places))
        logistic = LevelLogistic(columns[0], columns[1], places, found)
        model.categories[n] = CategoryLearner(kept, logistic)
    return model


def _parts_of(
    arrays: Mapping[str, NDArray[Any]], features: FeatureMap, n: int, rows: int
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return features, their columns, and the other numbers of a learner."""
    kept = arrays[f"features_{n}"].astype(np.intp)
    most = features.width + (1 if features.scale[n] > 0 else len(features.domain[n]) - 1)
    if kept.size and not (kept.min() >= 0 and kept.max() < most):
        raise ValueError(f"The imputer has no feature {int(kept.max())} of {most}.")
    columns = _shaped(arrays[f"columns_{n}"], rows, len(kept))
    return kept, columns, np.asarray(arrays.get(f"rest_{n}", np.zeros(0)), dtype=np.float64)


def _shaped(array: NDArray[Any], *shape: int | None) -> FloatArray:
    """Return an array of finite numbers that has a shape, of which None is any length."""
    fits = array.ndim == len(shape) and all(
        want in (None, size) for want, size in zip(shape, array.shape, strict=True)
    )
    if not fits or not np.isfinite(array).all():
        raise ValueError(f"The imputer has an array of shape {array.shape}, not {shape}, or NaN.")
    return np.asarray(array, dtype=np.float64)


def _learner_features(
    features: FeatureMap, n: int, columns: FloatArray, normal: FloatArray, own: FloatArray
) -> FloatArray:
    """Return what a learner of variable n sees: other columns, and what is said of its own."""
    others = np.delete(columns, features.groups[n], axis=1)
    if features.scale[n] > 0:
        values = (features.domain[n].numeric - features.center[n]) / features.scale[n]
        return np.hstack([others, normal, (own @ values)[:, None]])
    logs = np.log(np.maximum(own, 1e-6))
    logs -= logs.mean(axis=1, keepdims=True)
    return np.hstack([others, normal, logs[:, 1:]])


def fit_cells(
    pmf: LowRankPMF,
    numbers: IntArray,
    codes: Codes,
    values: FloatArray,
    weight: FloatArray,
    smooth: Smooth,
    session: Session,
) -> CellModel:
    """Fit learners of all columns that have enough records.

    Parameters
    ----------
    pmf : LowRankPMF
        The joint.
    numbers : ndarray of int
        Variables that are numbers.
    codes, values, weight
        The records; see :meth:`CellModel.answers`.
    smooth : "auto", bool or list of names
        Variables whose neighboring levels inform each other.
    session : Session
        Randomness and progress.
    """
    domain = pmf.domain
    seen = np.isin(np.arange(len(domain)), numbers) & ~np.isnan(values) | (codes >= 0)
    used = np.flatnonzero(seen.any(axis=1) & (weight > 0))
    if len(domain) < 2 or len(used) < FEWEST_RECORDS:
        return CellModel(pmf)
    most = int(min(MOST_ROWS, max(MOST_CELLS / len(domain) ** 2, FEWEST_RECORDS)))
    if len(used) > most:
        used = np.sort(session.rng.choice(used, size=most, replace=False))
    codes, values, weight = codes[used], values[used], weight[used]
    features = FeatureMap.of(domain, numbers, codes, values, weight)
    if features.width < 2:
        return CellModel(pmf)
    with one_blas_thread():
        members, hidden = fit_members(domain, codes, weight, smooth, session)
        known = features.encode(codes, values)
        session.report("normal distribution of the columns")
        normal = IncompleteGaussian.fit(known, weight, session.rng)
        model = CellModel(pmf, features, members, normal)
        _fit_learners(model, known, codes, values, weight, hidden, session)
    return model


def _fit_learners(
    model: CellModel,
    known: FloatArray,
    codes: Codes,
    values: FloatArray,
    weight: FloatArray,
    hidden: list[BoolArray],
    session: Session,
) -> None:
    """Add learners to a model that has none yet."""
    features, members, normal = model.features, model.members, model.normal
    assert features is not None
    assert members is not None
    assert normal is not None
    learnt = [
        n
        for n, group in enumerate(features.groups)
        if len(group) and (codes[:, n] >= 0).sum() >= FEWEST_RECORDS
    ]
    without = [np.empty(known.shape) for _ in learnt]
    deviation = np.ones((len(known), len(learnt)))
    groups = [features.groups[n] for n in learnt]
    for rows, k, completed, variance in normal.complete_without(known, groups):
        without[k][rows] = completed
        deviation[rows, k] = np.sqrt(np.maximum(variance, 1e-12))
    found, worth = members.posteriors(codes), features.worth
    for k, n in enumerate(learnt):
        session.report(f"column {k + 1} of {len(learnt)}: {features.domain[n].name}")
        rows = np.flatnonzero((codes[:, n] >= 0) & ~np.isnan(known[:, groups[k][0]]))
        table, by_classes = members.leave_out(
            [posterior[rows] for posterior in found],
            codes[rows],
            [cells[rows] for cells in hidden],
            n,
            worth,
        )
        there = ~np.isnan(known[rows])
        columns = np.where(there, known[rows], 0.5 * (without[k][rows] + by_classes))
        own = without[k][np.ix_(rows, groups[k])]
        X = _learner_features(features, n, columns, own, table)
        if features.scale[n] > 0:
            learner = _learn_number(
                model, n, X, table, values[rows, n], deviation[rows, k], weight[rows], session.rng
            )
            model.numbers[n] = learner
        else:
            level = codes[rows, n].astype(np.intp)
            kept = choose_features(X, level[:, None] == features.levels[n], weight[rows])
            logistic = LevelLogistic.fit(X[:, kept], level, table.shape[1], weight[rows])
            model.categories[n] = CategoryLearner(kept, logistic)


def _learn_number(
    model: CellModel,
    n: int,
    X: FloatArray,
    table: FloatArray,
    truth: FloatArray,
    deviation: FloatArray,
    weight: FloatArray,
    rng: np.random.Generator,
) -> NumberLearner:
    features = model.features
    assert features is not None
    center, unit = float(features.center[n]), float(features.scale[n])
    y = (truth - center) / unit
    kept = choose_features(X, y[:, None], weight)
    ridge, left_out = KernelRidge.fit(X[:, kept], y, weight, rng)
    low, high = float(truth.min()), float(truth.max())
    predicted = np.clip(center + unit * left_out, low, high)
    # The normal distribution has seen the cells, and errs more by this in others.
    share = min(features.width / len(truth), 0.5)
    spread = NumberSpread.fit(
        features.domain[n],
        table,
        predicted,
        unit * deviation,
        truth,
        float(np.sqrt((1.0 + share) / (1.0 - share))),
        rng,
    )
    return NumberLearner(kept, ridge, spread, (low, high))


def choose_features(X: FloatArray, y: FloatArray, weight: FloatArray) -> IntArray:
    """Return the features that are most correlated with any column of y; all if they are few.

    Examples
    --------
    >>> choose_features(np.eye(3), np.eye(3)[:, :1], np.ones(3))
    array([0, 1, 2])
    """
    if X.shape[1] <= MOST_FEATURES:
        return np.arange(X.shape[1])
    share = weight / weight.sum()
    X, y = X - share @ X, y - share @ y.astype(np.float64)
    spread = np.sqrt(share @ X**2)[:, None] * np.sqrt(share @ y**2)
    related = np.abs((share[:, None] * X).T @ y) / np.maximum(spread, 1e-12)
    best = np.argsort(-related.max(axis=1), kind="stable")[:MOST_FEATURES]
    return np.sort(best)
