"""CellModel: what a missing cell holds, given the observed cells of its row.

The joint answers for every cell. Where there are enough records, learners of each column know
better. All columns are completed by latent classes (several models, each fitted without some of the
cells) and by a normal distribution. A learner predicts its column from the others, and from what
classes and normal distribution say of the column itself. It learns from observed cells, as if each
were missing: what completed the other columns of its row has not seen it. A learner of numbers
averages a ridge regression and trees; their errors in left-out cells calibrate the distribution
around the prediction. The distribution of a category is that of the classes, of a logistic
regression and of trees, as a product of powers.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, NamedTuple, get_type_hints

import numpy as np
import sklearn
from numpy.typing import NDArray

from rejoint.arrays import BoolArray, Codes, FloatArray, IntArray
from rejoint.domain.domain import Domain
from rejoint.estimation.smoothing import Smooth
from rejoint.estimators.imputer.column_learner import (
    CategoryLearner,
    NumberLearner,
    NumberSpread,
    TrainingRows,
    View,
    within,
)
from rejoint.estimators.imputer.fill import level_probabilities
from rejoint.estimators.imputer.row_completion import (
    FeatureMap,
    IncompleteGaussian,
    RowCompletion,
    fit_members,
)
from rejoint.kernels.backend import one_blas_thread
from rejoint.pmf.pmf import LowRankPMF
from rejoint.solver.session import Session
from rejoint.text import cite

#: Records with a value that a column needs for a learner of its own.
FEWEST_RECORDS = 30

#: Rows that are learnt from, and these times variables times features, which are in memory.
MOST_ROWS, MOST_CELLS = 10_000, 1e7

#: Rows whose cells are answered at a time.
BLOCK_ROWS = 4_000


class MissingCells(NamedTuple):
    """What is known about a variable in rows where it is missing.

    Attributes
    ----------
    rows : ndarray of int
        Positions of the rows.
    variable : int
    joint, levels : ndarray (rows, levels)
        Probability of each level by the joint, and as it is filled in.
    expected : ndarray (rows,) or None
        The expected number, where a learner predicts it.
    spread : NumberSpread or None
        Of variables of numbers.
    values : ndarray (rows, values) or None
        Probability of each value of ``spread``.
    """

    rows: IntArray
    variable: int
    joint: FloatArray
    levels: FloatArray
    expected: FloatArray | None = None
    spread: NumberSpread | None = None
    values: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class CellModel:
    """The distribution of any missing cell.

    Parameters
    ----------
    pmf : LowRankPMF
        The joint, which answers where there is no learner.
    completion : RowCompletion, optional
        What completes the other columns of a row.
    learners : dict by variable
    """

    pmf: LowRankPMF
    completion: RowCompletion | None = None
    learners: dict[int, NumberLearner | CategoryLearner] = field(default_factory=dict)

    def draw(self, rng: np.random.Generator) -> "CellModel":
        """Return a model whose learners are drawn from their posterior."""
        return replace(self, learners={n: own.draw(rng) for n, own in self.learners.items()})

    def answer(self, codes: Codes, values: FloatArray, wanted: BoolArray) -> Iterator[MissingCells]:
        """Yield what is known of the wanted cells, whatever these hold, block by block.

        Parameters
        ----------
        codes : ndarray (rows, variables)
            Level of each cell, -1 where it says nothing.
        values : ndarray (rows, variables)
            The numbers themselves, NaN elsewhere.
        wanted : ndarray of bool (rows, variables)
            Cells to tell about.
        """
        learnt = np.isin(np.arange(codes.shape[1]), list(self.learners))
        with one_blas_thread():
            touched = np.flatnonzero(wanted.any(axis=1))
            for start in range(0, len(touched), BLOCK_ROWS):
                rows = touched[start : start + BLOCK_ROWS]
                for n in np.flatnonzero((wanted[rows] & ~learnt).any(axis=0)).tolist():
                    at = rows[wanted[rows, n]]
                    joint = level_probabilities(self.pmf, codes[at], n)
                    yield MissingCells(at, n, joint, joint)
                if self.completion is not None:
                    parts = (codes[rows], values[rows], wanted[rows] & learnt)
                    for view in self.completion.views(*parts):
                        yield self._learnt(view._replace(rows=rows[view.rows]), codes)

    def check(self) -> None:
        """Raise an error where parts of a file do not fit together: fill cells of an empty row."""
        domain = self.pmf.domain
        for n, learner in self.learners.items():
            places = learner.spread.bins if isinstance(learner, NumberLearner) else learner.levels
            if not (within(places, len(domain[n])) and learner.trees.is_complete):
                raise ValueError(f"the learner of {cite(domain[n].name)} is incomplete")
        codes = np.full((1, len(domain)), -1, dtype=np.int16)
        nothing, wanted = np.full(codes.shape, np.nan), np.ones(codes.shape, dtype=bool)
        for cells in self.draw(np.random.default_rng(0)).answer(codes, nothing, wanted):
            if cells.levels.shape != (1, len(domain[cells.variable])):
                raise ValueError(f"{domain[cells.variable].name} has other levels")

    def _learnt(self, view: View, codes: Codes) -> MissingCells:
        """Return what the learner of a variable makes of a view."""
        n, learner = view.variable, self.learners[view.variable]
        joint = level_probabilities(self.pmf, codes[view.rows], n)
        if isinstance(learner, CategoryLearner):
            return MissingCells(view.rows, n, joint, learner.predict(view))
        expected = learner.predict(view)
        values = learner.spread.table(view.table, expected, view.deviation)
        levels = learner.spread.levels(values, joint.shape[1])
        return MissingCells(view.rows, n, joint, levels, expected, learner.spread, values)


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
        The records; see :meth:`CellModel.answer`.
    smooth : "auto", bool or list of names
        Variables whose neighboring levels inform each other.
    session : Session
        Randomness and progress.
    """
    domain, rng = pmf.domain, session.rng
    seen = np.isin(np.arange(len(domain)), numbers) & ~np.isnan(values) | (codes >= 0)
    used = np.flatnonzero(seen.any(axis=1) & (weight > 0))
    if len(domain) < 2 or len(used) < FEWEST_RECORDS:
        return CellModel(pmf)
    most = int(min(MOST_ROWS, max(MOST_CELLS / len(domain) ** 2, FEWEST_RECORDS)))
    if len(used) > most:
        used = np.sort(rng.choice(used, size=most, replace=False))
    codes, values, weight = codes[used], values[used], weight[used]
    features = FeatureMap.of(domain, numbers, codes, values, weight)
    if len(features.variables) < 2:
        return CellModel(pmf)
    quick = sklearn.config_context(assume_finite=True, skip_parameter_validation=True)
    with one_blas_thread(), quick:
        members, hidden = fit_members(domain, codes, weight, smooth, session)
        session.report("normal distribution of the columns")
        columns = features.encode(codes, values)
        normal = IncompleteGaussian.fit(columns, weight, rng)
        completion = RowCompletion(features, members, normal)
        there = np.zeros(codes.shape, dtype=bool)
        there[:, features.variables] = ~np.isnan(columns) & (codes[:, features.variables] >= 0)
        there &= there.sum(axis=0) >= FEWEST_RECORDS
        views: dict[int, list[View]] = {}
        for view in completion.views(codes, values, there, hidden):
            views.setdefault(view.variable, []).append(view)
        learners: dict[int, NumberLearner | CategoryLearner] = {}
        for k, n in enumerate(sorted(views)):
            session.report(f"column {k + 1} of {len(views)}: {domain[n].name}")
            view = View.join(views.pop(n))
            others, mass = len(features.variables) - len(features.groups[n]), weight[view.rows]
            seed = int(rng.integers(2**31))
            sample = TrainingRows(view.features, mass * (len(mass) / mass.sum()), seed)
            if features.is_number(n):
                truth = values[view.rows, n]
                learners[n] = NumberLearner.fit(domain[n], view, sample, others, truth)
            else:
                levels = codes[view.rows, n].astype(np.intp)
                learner = CategoryLearner.fit(view, sample, others, levels)
                learners |= {} if learner is None else {n: learner}
    return CellModel(pmf, completion, learners)


def to_arrays(model: CellModel) -> dict[str, NDArray[Any]]:
    """Return the numbers of a model but those of its joint, by name; none without learners."""
    if model.completion is None:
        return {}
    features, normal = model.completion.features, model.completion.normal
    parts = {"features": features, "normal": normal, "members": model.completion.members}
    parts |= {f"learner_{n}": learner for n, learner in model.learners.items()}
    return dict(_flatten(parts))


def _flatten(parts: Mapping[str, Any]) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the arrays of dataclasses and those of dataclasses in them, by paths with dots."""
    for name, part in parts.items():
        if part is None or isinstance(part, Domain):
            continue
        if is_dataclass(part):
            yield from _flatten({f"{name}.{f.name}": getattr(part, f.name) for f in fields(part)})
            continue
        array = np.asarray(part)
        if array.dtype.kind == "i":  # in the smallest type that holds it
            array = array.astype(np.min_scalar_type(-1 - array.max(initial=0)))
        yield name, array


def from_arrays(pmf: LowRankPMF, arrays: Mapping[str, NDArray[Any]]) -> CellModel:
    """Return the model of some arrays; ValueError if they do not fit together."""
    if not arrays:
        return CellModel(pmf)
    try:
        features = _assemble(FeatureMap, arrays, "features", domain=pmf.domain)
        normal = _assemble(IncompleteGaussian, arrays, "normal")
        learners = {}
        for name in {path.partition(".")[0] for path in arrays if path.startswith("learner_")}:
            n = int(name.removeprefix("learner_"))
            kind = NumberLearner if features.is_number(n) else CategoryLearner
            learners[n] = _assemble(kind, arrays, name)
        completion = RowCompletion(features, arrays["members"], normal)
        model = CellModel(pmf, completion, dict(sorted(learners.items())))
        model.check()
    except (KeyError, IndexError, TypeError, ValueError, np.linalg.LinAlgError) as error:
        raise ValueError(f"The learners of the imputer do not fit together: {error}.") from error
    return model


def _assemble(kind: Any, arrays: Mapping[str, NDArray[Any]], name: str, **parts: Any) -> Any:
    """Return a dataclass of arrays, numbers and such dataclasses, whose paths have dots."""
    hints = get_type_hints(kind)
    for each in fields(kind):
        path, hint = f"{name}.{each.name}", hints[each.name]
        if is_dataclass(hint) and each.name not in parts:
            parts[each.name] = _assemble(hint, arrays, path)
        elif path in arrays:
            if arrays[path].dtype.kind not in "iuf" or not np.isfinite(arrays[path]).all():
                raise ValueError(f"{path} has other than finite numbers")
            parts[each.name] = float(arrays[path]) if hint is float else arrays[path]
    return kind(**parts)
