"""CellModel: what a missing cell holds, given the observed cells of its row.

The joint answers for every cell. Where there are enough records, learners of each column know
better. All columns are completed: by latent classes (several models, each fitted without some of
the cells), by a normal distribution, and by forests. A learner predicts its column from the others,
and from what classes and normal distribution say of the column itself. It learns from observed
cells, as if each were missing: what completed the other columns of its row has not seen it. A
learner of numbers averages a ridge regression and a forest; their errors in left-out cells
calibrate the distribution around the prediction. The distribution of a category is that of the
classes, of a logistic regression, of a curve and of two forests, as a product of powers.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar, cast, get_type_hints

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import BoolArray, Codes, FloatArray, IntArray
from rejoint.estimation.smoothing import Smooth
from rejoint.estimators.imputer.column_learner import (
    TREES,
    CategoryLearner,
    Forest,
    KernelRidge,
    NumberLearner,
    NumberSpread,
    spread_values,
    stack,
)
from rejoint.estimators.imputer.row_completion import (
    ClassMembers,
    ColumnForest,
    Completed,
    FeatureMap,
    IncompleteGaussian,
    RowCompletion,
    fit_members,
)
from rejoint.io.model_file import check_axes
from rejoint.model import Layout, Model
from rejoint.pmf.pmf import LowRankPMF
from rejoint.solver.session import Session, one_blas_thread
from rejoint.text import cite

T = TypeVar("T")

#: Records with a value that a column needs for a learner of its own.
FEWEST_RECORDS = 30

#: Rows that are learnt from, and these times variables times features, which are in memory.
MOST_ROWS, MOST_CELLS = 10_000, 1e7

#: Cells that forests complete, over all learners; where there are more, there are no forests.
MOST_PREDICTIONS = 1e6

#: Features of a learner: those most correlated with its column.
MOST_FEATURES = 150

#: Rows whose cells are answered at a time.
BLOCK_ROWS = 4_000

#: Axes of the arrays of learners: k features, c one more, g those of a curve, m landmarks, e all
#: coefficients of ridge or curve, v nodes, t trees, b and r those of rules, o outputs, l levels, d
#: draws, q quantiles.
FOREST_AXES = {
    "forest.roots": "t",
    "forest.features": "v",
    "forest.thresholds": "v",
    "forest.right": "v",
    "forest.values": "vo",
}
FIRST_AXES = FOREST_AXES | {"weights": "3"}
NUMBER_AXES = FOREST_AXES | {
    "features": "k",
    "ridge.center": "k",
    "ridge.scale": "k",
    "ridge.intercept": "o",
    "ridge.slope": "ko",
    "ridge.landmarks": "mk",
    "ridge.heights": "mo",
    "ridge.width": "",
    "ridge.deviations": "ed",
    "weights": "2",
    "spread.power": "",
    "spread.row_power": "",
    "spread.spread": "",
    "spread.share": "",
    "spread.cut": "",
    "spread.tails": "2q",
    "range": "2",
}
CATEGORY_AXES = FOREST_AXES | {
    "rules.roots": "r",
    "rules.features": "b",
    "rules.thresholds": "b",
    "rules.right": "b",
    "rules.values": "bo",
    "features": "k",
    "logistic.center": "k",
    "logistic.scale": "k",
    "logistic.levels": "l",
    "logistic.coefficients": "cl",
    "logistic.deviations": "dcl",
    "curve.center": "g",
    "curve.scale": "g",
    "curve.intercept": "o",
    "curve.slope": "go",
    "curve.landmarks": "mg",
    "curve.heights": "mo",
    "curve.width": "",
    "curve.deviations": "e0",
    "pool.powers": "5",
    "pool.share": "o",
}


class MissingCell(NamedTuple):
    """What is known about a variable in rows where it is missing.

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
    deviation : ndarray (rows,) or None
        Standard deviation that the other columns of each row leave.
    """

    levels: FloatArray
    joint: FloatArray | None = None
    expected: FloatArray | None = None
    values: FloatArray | None = None
    spread: NumberSpread | None = None
    deviation: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class CellModel:
    """The distribution of any missing cell.

    Parameters
    ----------
    pmf : LowRankPMF
        The joint, which answers where there is no learner.
    completion : RowCompletion, optional
        What completes the other columns of a row.
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
    completion: RowCompletion | None = None
    numbers: dict[int, NumberLearner] = field(default_factory=dict)
    categories: dict[int, CategoryLearner] = field(default_factory=dict)
    is_draw: bool = False

    def draw(self, rng: np.random.Generator) -> "CellModel":
        """Return a model whose learners are drawn from their posterior."""
        numbers = {n: learner.draw(rng) for n, learner in self.numbers.items()}
        categories = {n: learner.draw(rng) for n, learner in self.categories.items()}
        return replace(self, numbers=numbers, categories=categories, is_draw=True)

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
        mixture = self.pmf.mixture._parts
        joint = mixture.classes(codes)
        inside = {n for block in mixture.blocks for n in block.members}
        completed = None
        for n in np.flatnonzero(gone.any(axis=0)).tolist():
            at = np.flatnonzero(gone[:, n])
            if n in inside:
                table = mixture.predict(codes[at], n)
            else:
                table = joint[at] @ mixture.factors[n].T
                table /= table.sum(axis=1, keepdims=True)
            cell = MissingCell(table)
            if self.completion is not None and (n in self.numbers or n in self.categories):
                if completed is None:
                    completed, classes = self.completion.complete(codes, values)
                    columns = self.completion.columns(completed)
                members = self.completion.members
                stacked = members.layout.rows(n)
                own = sum(
                    posterior[at] @ model.factors[stacked].T / len(classes)
                    for posterior, model in zip(classes, members.models, strict=True)
                )
                said = completed.take(at)
                X = self.completion.see(n, columns[at], said)
                cell = self._learnt(n, X, np.asarray(own), table, said)
            yield rows[at], n, cell

    def _learnt(
        self, n: int, X: FloatArray, own: FloatArray, joint: FloatArray, said: Completed
    ) -> MissingCell:
        """Return what the learner of a variable makes of features, and of the classes."""
        assert self.completion is not None
        if n in self.categories:
            gone = self.completion.gone(n, said)
            return MissingCell(self.categories[n].predict(X, gone, own), joint)
        learner, features = self.numbers[n], self.completion.features
        unit, spread = features.scale[n], learner.spread
        expected = np.clip(features.center[n] + unit * learner.predict(X), *learner.range)
        deviation = unit * said.deviation[:, features.groups[n][0]]
        middle = spread.center(own, expected, deviation) if self.is_draw else expected
        values = spread.table(own, middle, deviation)
        levels = spread.levels(values, own.shape[1])
        return MissingCell(levels, joint, expected, values, spread, deviation)


def to_arrays(model: CellModel) -> dict[str, NDArray[Any]]:
    """Return all numbers of a model but those of its joint, by name; none where it has no learner.

    Examples
    --------
    >>> import rejoint as rj
    >>> to_arrays(CellModel(rj.LowRankPMF([1.0], [[[0.5], [0.5]]])))
    {}
    """
    if model.completion is None:
        return {}
    features, members, normal = (
        model.completion.features,
        model.completion.members,
        model.completion.normal,
    )
    pairs = [(n, level) for n, kept in enumerate(features.levels) for level in kept.tolist()]
    arrays: dict[str, NDArray[Any]] = {
        "center": features.center,
        "scale": features.scale,
        "indicators": np.array(pairs, dtype=np.int64).reshape(-1, 2),
        "mean": normal.mean,
        "covariance": normal.covariance,
    }
    arrays |= {f"member_{k}": member.stacked for k, member in enumerate(members.models)}
    kinds = (
        ("numbers", model.numbers, NUMBER_AXES),
        ("categories", model.categories, CATEGORY_AXES),
        ("forests", model.completion.forests, FIRST_AXES),
    )
    for kind, parts, axes in kinds:
        arrays[kind] = np.array(list(parts), dtype=np.int64)
        for n, part in parts.items():
            arrays |= {f"{kind}_{n}_{k}": _compact(attrgetter(k)(part)) for k in axes}
    return arrays


def _compact(part: Any) -> NDArray[Any]:
    """Return numbers of nodes in the smallest type that holds them, others as they are."""
    array = np.asarray(part)
    return (
        array.astype(np.min_scalar_type(-array.max(initial=1))) if array.dtype == np.intp else array
    )


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
    sizes = {"n": len(domain), "2": 2, "s": 1 + layout.size}
    check_axes(arrays, {"center": "n", "scale": "n", "indicators": "i2"}, sizes)
    center, scale = (arrays[name].astype(np.float64) for name in ("center", "scale"))
    features = FeatureMap(domain, center, scale, levels)
    width = features.width
    check_axes(arrays, {"mean": "w", "covariance": "ww"}, {"w": width})
    normal = IncompleteGaussian(arrays["mean"], arrays["covariance"])
    names = [f"member_{k}" for k in range(sum(name.startswith("member_") for name in arrays))]
    for name in names:
        check_axes(arrays, {name: "sf"}, dict(sizes))
    stacked = tuple(Model.from_stacked(layout, arrays[name]) for name in names)
    members = ClassMembers(layout, stacked)
    completion = RowCompletion(features, members, normal)
    model = CellModel(pmf, completion)
    for n in arrays["numbers"].tolist():
        parts = check_learner(arrays, features, "numbers", n, NUMBER_AXES)
        derived = ("spread.values", "spread.bins", "spread.within")
        parts |= dict(zip(derived, spread_values(domain[n]), strict=True))
        model.numbers[n] = assemble(NumberLearner, parts)
    for n in arrays["categories"].tolist():
        parts = check_learner(arrays, features, "categories", n, CATEGORY_AXES)
        model.categories[n] = assemble(CategoryLearner, parts)
    for n in arrays["forests"].tolist():
        parts = check_learner(arrays, features, "forests", n, FIRST_AXES)
        completion.forests[n] = assemble(ColumnForest, parts)
    return model


def check_learner(
    arrays: Mapping[str, NDArray[Any]],
    features: FeatureMap,
    kind: str,
    n: int,
    axes: Mapping[str, str],
) -> dict[str, NDArray[Any]]:
    """Return the arrays of a learner by the places that they have in it."""
    found = {path: arrays[f"{kind}_{n}_{path}"] for path in axes}
    most, levels = features.width + len(features.groups[n]), len(features.domain[n])
    outputs = {"numbers": 1, "categories": levels, "forests": len(features.groups[n])}[kind]
    seen = len(found["features"]) if "features" in found else most
    bent = len(found["curve.center"]) if "curve.center" in found else seen
    sizes = {"k": seen, "c": 1 + seen, "g": bent, "o": outputs} | {str(k): k for k in (0, 2, 3, 5)}
    for path in ("ridge.heights", "curve.heights"):
        sizes |= {"e": 1 + bent + len(found[path])} if path in found else {}
    check_axes(found, axes, sizes)
    none = np.zeros(0, dtype=np.intp)
    gone = sum(map(bool, map(len, features.groups))) - 1
    fits = (
        _within(found.get("features", none), most)
        and bent <= seen
        and (found.get("pool.share", np.ones(1)) > 0).all()
        and _is_forest(found, "forest", seen)
        and ("rules.roots" not in found or _is_forest(found, "rules", gone + seen))
        and _within(found.get("logistic.levels", none), levels)
    )
    if not fits:
        raise ValueError(
            f"The learner of {cite(features.domain[n].name)} in the imputer is incomplete."
        )
    return found


def _is_forest(found: Mapping[str, NDArray[Any]], name: str, columns: int) -> bool:
    """Whether every row of some columns ends in a leaf of each tree."""
    roots, looked, right = (found[f"{name}.{part}"] for part in ("roots", "features", "right"))
    nodes, inner = np.arange(len(looked)), looked >= 0
    return (
        _within(roots, len(nodes))
        and looked.max(initial=-1) < columns
        and _within(right[inner], len(nodes))
        and bool((right[inner] > nodes[inner]).all())
        and not inner[-1:].any()
    )


def _within(places: NDArray[Any], most: int) -> bool:
    """Whether all are whole numbers from 0 to below another."""
    return places.dtype.kind in "iu" and bool(((places >= 0) & (places < most)).all())


def assemble(kind: type[T], arrays: Mapping[str, NDArray[Any]]) -> T:
    """Return a dataclass of arrays, numbers and such dataclasses, whose paths have dots.

    Examples
    --------
    >>> assemble(IncompleteGaussian, {"mean": np.ones(1), "covariance": np.ones((1, 1))}).mean
    array([1.])
    """
    hints, parts = get_type_hints(kind), dict[str, Any]()
    for each in fields(kind):  # type: ignore[arg-type]  # T is a dataclass
        name, hint = each.name, hints[each.name]
        if is_dataclass(hint):
            start = f"{name}."
            inside = {k.removeprefix(start): v for k, v in arrays.items() if k.startswith(start)}
            parts[name] = assemble(cast(type, hint), inside)
        elif name in arrays:
            parts[name] = float(arrays[name]) if hint is float else arrays[name]
    return kind(**parts)


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
        session.report("normal distribution of the columns")
        known = features.encode(codes, values)
        normal = IncompleteGaussian.fit(known, weight, session.rng)
        model = CellModel(pmf, RowCompletion(features, members, normal))
        _fit_learners(model, codes, values, weight, hidden, session)
    return model


def _fit_learners(
    model: CellModel,
    codes: Codes,
    values: FloatArray,
    weight: FloatArray,
    hidden: list[BoolArray],
    session: Session,
) -> None:
    """Add learners to a model that has none yet."""
    completion, rng = model.completion, session.rng
    assert completion is not None
    features = completion.features
    enough = (codes >= 0).sum(axis=0) >= FEWEST_RECORDS
    learnt = [n for n, group in enumerate(features.groups) if len(group) and enough[n]]
    every = completion.leave_out(learnt, codes, values, hidden)
    if len(learnt) * (codes[:, learnt] < 0).sum() <= MOST_PREDICTIONS:
        for n in learnt:
            session.report(f"forest of column {features.domain[n].name}")
            completion.add_forest(n, every[n], codes, values, weight, rng)
    for k, n in enumerate(learnt):
        session.report(f"column {k + 1} of {len(learnt)}: {features.domain[n].name}")
        rows, table, said = every[n]
        X = completion.see(n, completion.columns(said), said)
        if features.scale[n] > 0:
            deviation = said.deviation[:, 0]
            model.numbers[n] = _learn_number(
                features, n, X, table, values[rows, n], deviation, weight[rows], rng
            )
        else:
            level = codes[rows, n].astype(np.intp)
            kept = choose_features(X, level[:, None] == features.levels[n], weight[rows])
            others = kept[kept < features.width - len(features.groups[n])]
            model.categories[n] = CategoryLearner.fit(
                kept, others, X, completion.gone(n, said), level, table, weight[rows], rng
            )


def _learn_number(
    features: FeatureMap,
    n: int,
    X: FloatArray,
    table: FloatArray,
    truth: FloatArray,
    deviation: FloatArray,
    weight: FloatArray,
    rng: np.random.Generator,
) -> NumberLearner:
    center, unit = float(features.center[n]), float(features.scale[n])
    y = (truth[:, None] - center) / unit
    kept = choose_features(X, y, weight)
    ridge, by_ridge = KernelRidge.fit(X[:, kept], y, weight, rng)
    others = kept[kept < features.width - 1]
    forest, by_forest = Forest.fit(X[:, others], y, weight, TREES, rng)
    weights = stack([by_ridge, by_forest], y, weight * (len(y) / weight.sum()))
    low, high = float(truth.min()), float(truth.max())
    left_out = np.hstack([by_ridge, by_forest]) @ weights
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
    return NumberLearner(kept, ridge, forest, weights, spread, (low, high))


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
