"""Raking: weights of a survey that meet tables, by iterative proportional fitting."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.marginals.marginals import Marginals
from rejoint.population.targets import (
    Counts,
    TableCells,
    describe_disagreement,
    known_cells,
    population_size,
)
from rejoint.records.records import Records
from rejoint.records.survey_design import kish_effect
from rejoint.text import plural, show

Array = NDArray[np.float64]

#: Sweeps after which the residual must have fallen by ``LEAST_PROGRESS`` of itself.
PATIENCE_SWEEPS = 20

#: Share by which the residual must fall, or raking has stalled.
LEAST_PROGRESS = 1e-3


@dataclass(frozen=True)
class Raked:
    """Weights, and how well they meet the tables.

    Parameters
    ----------
    weights : array
        One for each record; they add up to ``total``.
    stop : str
        How well the tables are met, and why not better.
    residual : float
        The largest of ``misfits``.
    misfits : dict
        For each table the share of its mass that is in the wrong cells, worst first.
    design_effect : float
        How many times more records would be needed than without weights: ``n sum w^2 / (sum w)^2``,
        with n the number of records of positive weight. A fit with these weights as
        ``survey_weight`` allows for it.

    Examples
    --------
    >>> Raked(np.ones(2), "met", 0.0, {}, 1.0).residual
    0.0
    """

    weights: Array = field(repr=False)
    stop: str
    residual: float
    misfits: dict[tuple[str, ...], float] = field(repr=False)
    design_effect: float


def rake(
    records: Any,
    tables: Marginals,
    *,
    bounds: tuple[float, float] | None = None,
    total: float | None = None,
    tolerance: float = 1e-6,
    max_sweeps: int = 1000,
) -> Raked:
    """Weight the records of a survey so that their tables are the given ones.

    Weights are scaled table by table, repeatedly, until all tables are met: of all weights that
    meet them, these are the nearest to the initial ones (in Kullback-Leibler divergence).

    Parameters
    ----------
    records : Records or anything that :meth:`Records.of` takes
        The survey. Its ``sample_weight``, if any, gives the initial weights. A record that lacks a
        variable of a table is not changed by it.
    tables : Marginals
        What is known about the population.
    bounds : (float, float), optional
        Smallest and largest weight, as multiples of the average: ``(0.2, 5)``. Tables may then
        be met less well.
    total : float, optional
        Sum of the weights; by default the number of records behind the tables, if they are
        counts, else that of the survey.
    tolerance : float
        Share of a table's mass in wrong cells up to which it counts as met.
    max_sweeps : int
        Largest number of rounds over all tables.

    Returns
    -------
    Raked

    Examples
    --------
    >>> import rejoint as rj
    >>> survey = rj.Records.of({"sex": ["f", "f", "f", "m"], "age": ["old", "young"] * 2})
    >>> known = rj.Marginals.from_tables(
    ...     {"sex": {"f": 52, "m": 48}, "age": {"old": 40, "young": 60}}
    ... )
    >>> raked = rj.rake(survey, known)
    >>> raked.weights.round(2)
    array([20., 12., 20., 48.])

    A fit takes them as survey weights, which have the same design effect:

    >>> weighted = rj.Records.of(survey, survey_weight=raked.weights)
    >>> weighted.marginal("sex").round(2), round(weighted.design.effect, 3)
    (array([0.52, 0.48]), 1.299)
    >>> round(raked.design_effect, 3)
    1.299
    """
    survey = Records.of(records)
    base = _align_records(survey, tables)
    start = np.ones(len(base)) if survey.sample_weight is None else np.array(survey.sample_weight)
    low, high = _check_bounds(bounds)
    rows, group = np.unique(base.codes, axis=0, return_inverse=True)
    group = group.ravel()
    mass: Array = np.bincount(group, start, minlength=len(rows)).astype(np.float64)
    targets = _make_targets(rows, tables)
    weight, sweeps, stalled = mass.copy(), 0, False
    residuals = [_residual(weight, targets)]
    while residuals[-1].max() > tolerance and sweeps < max_sweeps and not stalled:
        for target in targets:
            _scale(weight, target)
        if bounds is not None:
            _trim(weight, mass, low, high)
        residuals.append(_residual(weight, targets))
        sweeps += 1
        past = residuals[-1 - PATIENCE_SWEEPS].max() if sweeps > PATIENCE_SWEEPS else np.inf
        stalled = residuals[-1].max() > (1.0 - LEAST_PROGRESS) * past
    factor = np.divide(weight, mass, out=np.zeros_like(mass), where=mass > 0)
    final = start * factor[group]
    if total is None:
        total = population_size(tables) or float(len(survey))
    final *= total / final.sum()
    last = residuals[-1]
    return Raked(
        final,
        _stop_text(last, targets, tables, sweeps, tolerance, bounds),
        float(last.max()),
        {tables.subsets[i]: float(last[i]) for i in np.argsort(-last, kind="stable")},
        kish_effect(final),
    )


def _align_records(records: Records, tables: Marginals) -> Records:
    """The variables of the tables, in their order and with their levels.

    Examples
    --------
    >>> tables = Marginals.from_tables({"a": {"y": 1, "x": 3}})
    >>> _align_records(Records.of({"b": [1, 2], "a": ["x", "y"]}), tables).codes.T
    array([[1, 0]], dtype=int8)
    """
    held = dict.fromkeys(name for names in tables.subsets for name in names)
    absent = [name for name in held if name not in records.domain]
    if absent:
        raise ValueError(
            f"The tables speak of {show(absent)}, which the records do not have: leave these "
            "tables out, or add the columns."
        )
    return Records.of(records.project(list(held)), domain=tables.domain)


def _check_bounds(bounds: tuple[float, float] | None) -> tuple[float, float]:
    if bounds is None:
        return 0.0, np.inf
    low, high = bounds
    if not 0 <= low < 1 < high:
        raise ValueError(
            f"bounds=({low:g}, {high:g}): give multiples of the average weight, the first below "
            "one and the second above."
        )
    return float(low), float(high)


class _Target(NamedTuple):
    """One table: the rows that have a cell in it, their cells, its shares, and which are known."""

    rows: NDArray[np.intp]
    cells: Counts
    shares: Array
    known: NDArray[np.bool_]

    def shares_of(self, weight: Array) -> Array:
        """Shares of the weighted rows in the cells of the table."""
        found = np.bincount(self.cells, weight[self.rows], minlength=self.shares.size)
        return found / (float(found.sum()) or 1.0)


def _make_targets(codes: NDArray[np.signedinteger], tables: Marginals) -> list[_Target]:
    targets = []
    found = TableCells(tables.domain.shape, tables.index_subsets).find_all(codes)
    for i, cells in enumerate(found):
        rows = np.flatnonzero(cells >= 0)
        shares = tables.shares(i).ravel()
        targets.append(_Target(rows, cells[rows], shares, known_cells(tables, i)))
    return targets


def _scale(weight: Array, target: _Target) -> None:
    """Scale the weights so that they meet one table, and keep their sum."""
    found = target.shares_of(weight)
    factor = np.divide(target.shares, found, out=np.ones_like(found), where=found > 0)
    factor[~target.known] = 1.0
    before = weight[target.rows]
    after = before * np.maximum(factor[target.cells], 0.0)
    total = float(after.sum())
    weight[target.rows] = after * (float(before.sum()) / total) if total > 0 else after


def _trim(weight: Array, mass: Array, low: float, high: float) -> None:
    """Hold the weight of a record within bounds, relative to the average of its start."""
    for _ in range(50):  # trimming changes the average: a few rounds settle it
        average = weight.sum() / mass.sum()
        held = np.clip(weight, low * average * mass, high * average * mass)
        if np.allclose(held, weight, rtol=1e-12, atol=0.0):
            break
        weight[:] = held


def _residual(weight: Array, targets: list[_Target]) -> Array:
    """Share of each table's mass that is in the wrong cells."""
    gaps = [np.abs(t.shares_of(weight) - t.shares)[t.known] for t in targets]
    return np.array([0.5 * float(gap.sum()) for gap in gaps])


def _stop_text(
    residual: Array,
    targets: list[_Target],
    tables: Marginals,
    sweeps: int,
    tolerance: float,
    bounds: tuple[float, float] | None,
) -> str:
    worst = int(residual.argmax())
    effort = plural(sweeps, "sweep")
    if residual[worst] <= tolerance:
        return (
            f"All tables are met: after {effort} at most {residual[worst]:.1e} of the mass of one "
            "is in the wrong cells."
        )
    text = (
        f"Table {tables.subsets[worst]} is met worst: after {effort} {residual[worst]:.2%} of its "
        "mass is in the wrong cells."
    )
    text += _empty_cell_text(targets, tables)
    text += describe_disagreement(tables, tolerance, "no weights meet")
    if bounds is not None:
        text += f" The weights are held within {bounds[0]:g} to {bounds[1]:g} times their average."
    return text


def _empty_cell_text(targets: list[_Target], tables: Marginals) -> str:
    """Name the cell with the most mass of which there is no record."""
    empty = []
    for target in targets:
        shares = np.where(target.known, target.shares, 0.0)
        shares[target.cells] = 0.0
        empty.append(shares)
    i = max(range(len(empty)), key=lambda i: empty[i].max(initial=0.0))
    most = float(empty[i].max(initial=0.0))
    if most <= 0.0:
        return ""
    at = np.unravel_index(int(empty[i].argmax()), tables.counts_of(i).shape)
    label = ", ".join(
        f"{name}={tables.domain[name].levels[int(code)]}"
        for name, code in zip(tables.subsets[i], at, strict=True)
    )
    return f" No record has {label}, where {most:.2%} of the mass should be."
