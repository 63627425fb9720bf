"""Weights of a survey that meet tables: iterative proportional fitting, also called raking."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.marginals.marginals import Marginals
from rejoint.records.records import Records
from rejoint.text import plural, show

Places = NDArray[np.int64]


def over_domain(records: Records, tables: Marginals) -> Records:
    """The variables of the tables, in their order and with their levels.

    Examples
    --------
    >>> tables = Marginals.from_tables({"a": {"y": 1, "x": 3}})
    >>> over_domain(Records.of({"b": [1, 2], "a": ["x", "y"]}), tables).codes.T
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


def places(codes: NDArray[np.signedinteger], tables: Marginals) -> Places:
    """Cell of each row in each table, (tables, rows); -1 where a cell of the row is missing.

    Examples
    --------
    >>> tables = Marginals.from_tables({("a", "b"): [[1, 2], [3, 4]]})
    >>> places(np.array([[0, 1], [1, 1], [1, -1]]), tables)
    array([[ 1,  3, -1]])
    """
    found = np.empty((len(tables), len(codes)), dtype=np.int64)
    for i, subset in enumerate(tables.index_subsets):
        shape = [tables.domain.shape[n] for n in subset]
        part = codes[:, list(subset)].astype(np.int64)
        gone = (part < 0).any(axis=1)
        at = np.ravel_multi_index(tuple(np.maximum(part, 0).T), shape)
        found[i] = np.where(gone, -1, at)
    return found


Array = NDArray[np.float64]

#: Sweeps over which the residual must fall by this share of itself, else it has stalled.
PATIENCE, PROGRESS = 20, 1e-3


@dataclass(frozen=True)
class Raked:
    """Weights and how well they meet the tables.

    Parameters
    ----------
    weights : array
        One for each record; they add up to ``total``.
    stop : str
        How well the tables are met, why no better, and what to do.
    residual : float
        The largest of ``misfits``.
    misfits : dict
        For each table the share of its mass that is in the wrong cells, worst first.
    design_effect : float
        How many times more records would be needed than without weights: ``n sum w^2 / (sum w)^2``.

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

    Weights are scaled table by table, over and over, until all tables are met: of all weights
    that meet them these are the nearest to those at the start (in Kullback-Leibler divergence).

    Parameters
    ----------
    records : Records or anything that :meth:`Records.of` takes
        The survey. Its own ``sample_weight``, if any, is where it starts. A record that lacks a
        variable of a table is not moved by it.
    tables : Marginals
        What is known of the population.
    bounds : (float, float), optional
        Least and most of a weight, as multiples of the average: ``(0.2, 5)``. Tables may then
        be met less well.
    total : float, optional
        What the weights add up to; by default the number behind the tables, or else of records.
    tolerance : float
        Share of a table's mass in wrong cells below which it counts as met.
    max_sweeps : int
        Rounds over all tables, at the most.

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
    """
    survey = Records.of(records)
    base = over_domain(survey, tables)
    start = np.ones(len(base)) if survey.sample_weight is None else np.array(survey.sample_weight)
    low, high = _checked(bounds)
    rows, group = np.unique(base.codes, axis=0, return_inverse=True)
    group = group.ravel()
    mass: Array = np.bincount(group, start, minlength=len(rows)).astype(np.float64)
    cells = places(rows, tables)
    weight, sweeps, stalled = mass.copy(), 0, False
    residuals = [_residual(weight, cells, tables)]
    while residuals[-1].max() > tolerance and sweeps < max_sweeps and not stalled:
        for i in range(len(tables)):
            _scale(weight, cells[i], tables, i)
        if bounds is not None:
            _trim(weight, mass, low, high)
        residuals.append(_residual(weight, cells, tables))
        sweeps += 1
        past = residuals[-1 - PATIENCE].max() if sweeps > PATIENCE else np.inf
        stalled = residuals[-1].max() > (1.0 - PROGRESS) * past
    factor = np.divide(weight, mass, out=np.zeros_like(mass), where=mass > 0)
    final = start * factor[group]
    final *= (_total(tables, survey) if total is None else total) / final.sum()
    last = residuals[-1]
    order = np.argsort(-last, kind="stable")
    return Raked(
        final,
        _words(last, cells, tables, sweeps, tolerance, bounds),
        float(last.max()),
        {tables.subsets[i]: float(last[i]) for i in order},
        float(len(final) * (final @ final) / final.sum() ** 2),
    )


def _checked(bounds: tuple[float, float] | None) -> tuple[float, float]:
    if bounds is None:
        return 0.0, np.inf
    low, high = bounds
    if not 0 <= low < 1 < high:
        raise ValueError(
            f"bounds=({low:g}, {high:g}): give multiples of the average weight, the first below "
            "one and the second above."
        )
    return float(low), float(high)


def _known(tables: Marginals, i: int) -> NDArray[np.bool_]:
    """Which cells of a table are known, flat."""
    there = np.ones(int(tables.starts[i + 1] - tables.starts[i]), dtype=bool)
    cells = tables.unknown_of(i)
    if cells is not None:
        there[cells.places] = False
    return there


def _shares(weight: Array, at: NDArray[np.int64], size: int) -> tuple[Array, float]:
    """Shares of the weighted records in the cells of a table, and the weight behind them."""
    there = at >= 0
    found = np.bincount(at[there], weight[there], minlength=size)
    total = float(found.sum())
    return found / (total or 1.0), total


def _scale(weight: Array, at: NDArray[np.int64], tables: Marginals, i: int) -> None:
    target = tables.shares(i).ravel()
    found, _ = _shares(weight, at, target.size)
    factor = np.divide(target, found, out=np.ones_like(target), where=found > 0)
    factor[~_known(tables, i)] = 1.0
    there = at >= 0
    before = float(weight[there].sum())
    weight[there] *= np.maximum(factor[at[there]], 0.0)
    after = float(weight[there].sum())
    if after > 0:
        weight[there] *= before / after


def _trim(weight: Array, mass: Array, low: float, high: float) -> None:
    """Hold the weight of a record within bounds, relative to the average of its start."""
    for _ in range(50):  # cutting off changes the average: a few turns settle it
        average = weight.sum() / mass.sum()
        held = np.clip(weight, low * average * mass, high * average * mass)
        if np.allclose(held, weight, rtol=1e-12, atol=0.0):
            break
        weight[:] = held


def _residual(weight: Array, cells: NDArray[np.int64], tables: Marginals) -> Array:
    """Share of each table's mass that is in the wrong cells."""
    gaps = []
    for i in range(len(tables)):
        target = tables.shares(i).ravel()
        gap = np.abs(_shares(weight, cells[i], target.size)[0] - target)
        gaps.append(0.5 * float(gap[_known(tables, i)].sum()))
    return np.array(gaps)


def _total(tables: Marginals, survey: Records) -> float:
    """The number behind the tables that are counts; else that of the records."""
    counts = tables.totals[tables.counted]
    return float(np.median(counts)) if len(counts) else float(len(survey))


def _words(
    residual: Array,
    cells: NDArray[np.int64],
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
    text += _unreached(cells, tables)
    for found in tables.disagreements()[:1]:
        if found.distance > tolerance:
            text += (
                f" Tables {found.first} and {found.second} disagree on {found.shared} by "
                f"{found.distance:.2%}: no weights meet both."
            )
    if bounds is not None:
        text += f" The weights are held within {bounds[0]:g} to {bounds[1]:g} times their average."
    return text


def _unreached(cells: NDArray[np.int64], tables: Marginals) -> str:
    """Say which cell has most of the mass that no record can carry."""
    best, label = 0.0, ""
    for i, names in enumerate(tables.subsets):
        target = tables.shares(i).ravel().copy()
        target[cells[i][cells[i] >= 0]] = 0.0
        target[~_known(tables, i)] = 0.0
        if target.max(initial=0.0) > best:
            best = float(target.max())
            at = np.unravel_index(int(target.argmax()), tables.counts_of(i).shape)
            levels = (
                f"{name}={tables.domain[name].levels[int(code)]}"
                for name, code in zip(names, at, strict=True)
            )
            label = ", ".join(levels)
    return f" No record has {label}, where {best:.2%} of the mass should be." if best else ""
