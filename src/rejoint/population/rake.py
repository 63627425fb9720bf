"""Raking: weights of a survey that meet tables, by iterative proportional fitting."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.labels import Level
from rejoint.domain.variable import Kind
from rejoint.factorization.factorize import interpret
from rejoint.factorization.max_entropy import (
    Completion,
    CompletionProblem,
    Ipf,
    StateIndex,
    sweep,
)
from rejoint.factorization.table_goals import Goal, SoftGoal
from rejoint.marginals.marginals import Marginals
from rejoint.population.targets import (
    TableCells,
    describe_disagreement,
    known_cells,
    population_size,
)
from rejoint.records.frames import take_apart
from rejoint.records.infer import Bins, NotApplicable
from rejoint.records.records import Records, check_undeclared
from rejoint.records.survey_design import kish_effect
from rejoint.solver.solver import Stalled
from rejoint.text import format_fields, plural, shorten, show

Array = NDArray[np.float64]

#: Part of the tolerance that a last sweep may still move in a table.
SETTLED = 0.1

#: Sweeps after which the residual must have fallen by ``LEAST_PROGRESS`` of itself.
PATIENCE_SWEEPS = 20

#: Share by which the residual must fall, or raking has stalled.
LEAST_PROGRESS = 1e-3


@dataclass(frozen=True, repr=False)
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

    def __repr__(self) -> str:
        return format_fields(self)


def rake(
    records: Any,
    tables: Marginals,
    *,
    kinds: Mapping[Any, Kind] | None = None,
    levels: Mapping[Any, Sequence[Level]] | None = None,
    bins: Bins = None,
    not_applicable: NotApplicable = "auto",
    missing_level: Sequence[Any] = (),
    bounds: tuple[float, float] | None = None,
    total: float | None = None,
    tolerance: float = 1e-6,
    max_sweeps: int = 1000,
) -> Raked:
    """Weight the records of a survey so that their tables are the given ones.

    Weights are scaled table by table, repeatedly, until all tables are met: of all weights that
    meet them, these are the nearest to the initial ones (in Kullback-Leibler divergence). It is the
    same iterative proportional fitting that completes tables in :func:`rejoint.factorize`: rounded
    and suppressed numbers are met within their bounds, known means are met, too, and tables that
    contradict each other have soft goals by their numbers of records: a compromise.

    Parameters
    ----------
    records : Records or anything that :meth:`Records.of` takes
        The survey. Its ``sample_weight``, if any, gives the initial weights. A record that lacks a
        variable of a table is not changed by it.
    tables : Marginals
        What is known about the population. Columns of the survey are read in its levels and bins.
    kinds, levels, bins, not_applicable, missing_level
        What is declared about other columns; see :meth:`Records.of`.
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
    if not isinstance(tables, Marginals):
        raise TypeError(
            "rake needs the known tables as Marginals, such as Marginals.read('folder'); got "
            f"{type(tables).__name__}."
        )
    if isinstance(records, Records):
        check_undeclared(kinds, levels, bins, not_applicable, missing_level)
        survey = records
    else:
        columns = set(take_apart(records).names or ())
        fixed = {v.name: v.levels for v in tables.domain if v.name in columns}
        both = [name for name in fixed if isinstance(bins, Mapping) and name in bins]
        if both:
            raise ValueError(
                f"bins do not apply to {show(both)}: columns of the tables are read in the levels "
                "that these have."
            )
        declared: dict[str, Any] = {"kinds": kinds, "levels": {**fixed, **(levels or {})}}
        declared |= {"bins": bins, "missing_level": missing_level}
        survey = Records.of(records, not_applicable=not_applicable, **declared)
    base = _align_records(survey, tables)
    start = np.ones(len(base)) if survey.sample_weight is None else np.array(survey.sample_weight)
    low, high = _check_bounds(bounds)
    rows, group = np.unique(base.codes, axis=0, return_inverse=True)
    group = group.ravel()
    mass: Array = np.bincount(group, start, minlength=len(rows)).astype(np.float64)
    problem = _make_problem(rows, tables)
    trim = None if bounds is None else partial(_trim, mass=mass, low=low, high=high)
    done = _sweep_until_met(problem, mass, trim, tolerance, max_sweeps)
    factor = np.divide(done.weights, mass, out=np.zeros_like(mass), where=mass > 0)
    final = start * factor[group]
    if total is None:
        total = population_size(tables) or float(len(survey))
    final *= total / final.sum()
    misfits = _misfits(done)
    ranked = sorted(zip(problem.names, misfits, strict=True), key=lambda pair: -pair[1])
    return Raked(
        final,
        _stop_text(done, tables, misfits, tolerance, bounds),
        float(misfits.max(initial=0.0)),
        {names: float(misfit) for names, misfit in ranked},
        kish_effect(final),
    )


def _align_records(records: Records, tables: Marginals) -> Records:
    """The variables of the tables, in their order and with their levels."""
    subsets = [*tables.index_subsets, *(moment.variables for moment in tables.moments)]
    names = dict.fromkeys(tables.domain.names[n] for subset in subsets for n in subset)
    absent = [name for name in names if name not in records.domain]
    if absent:
        raise ValueError(
            f"The tables mention {show(absent)}, which the records do not have: leave these "
            "tables out, or add the columns."
        )
    return Records.of(records.project(list(names)), domain=tables.domain)


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


@dataclass(frozen=True, eq=False)
class RecordProblem(CompletionProblem):
    """Tables that records are weighted to: the states are distinct records, -1 for missing values.

    ``names`` says which table each goal is of.
    """

    names: tuple[tuple[str, ...], ...] = ()

    def _index(self, subset: tuple[int, ...]) -> StateIndex:
        """Records that lack a variable of the table are in one cell more, after the others."""
        table = TableCells(self.levels, [subset])
        cells, size = table.find(self.states, 0), int(table.offsets[-1])
        return StateIndex(np.where(cells < 0, size, cells), size + 1)


@dataclass(frozen=True, eq=False)
class OfComplete(Goal):
    """The goal of a table for those records that have its variables; their mass stays the same.

    The mass of incomplete records comes last in each table.
    """

    goal: Goal

    @property
    def is_rounded(self) -> bool:
        """Whether the table has rounded numbers."""
        return self.goal.is_rounded

    def project(self, now: Array, multipliers: Array) -> Array:
        """Return the table to reach."""
        return self._of_complete(self.goal.project, now, multipliers)

    def project_to_numbers(self, now: Array, multipliers: Array) -> Array:
        """Return the table to reach, with rounded numbers as they are."""
        return self._of_complete(self.goal.project_to_numbers, now, multipliers)

    @staticmethod
    def _of_complete(
        project: Callable[[Array, Array], Array], now: Array, multipliers: Array
    ) -> Array:
        mass = float(now[:-1].sum())
        if not mass > 0.0:
            return now
        # What a table has in cells without a record goes to the others: the mass stays.
        target = np.where(now[:-1] > 0.0, project(now[:-1] / mass, multipliers[:-1]), 0.0)
        return np.append(target * (mass / (target.sum() or 1.0)), now[-1])

    def misfit(self, now: Array) -> float:
        """Share of the table's mass in wrong cells."""
        shares = now[:-1] / (float(now[:-1].sum()) or 1.0)
        if isinstance(self.goal, SoftGoal):  # it does not reach the table itself
            wanted = self.goal.shares
        else:
            wanted = self.goal.project(shares, np.zeros_like(shares))
        return 0.5 * float(np.abs(wanted - shares).sum())


def _make_problem(codes: NDArray[np.signedinteger], tables: Marginals) -> RecordProblem:
    """Tables that agree are met, also those of a sample; others have soft goals.

    Noise that was added shows in cells below zero, which no weights have.
    """
    exact = tables if (tables.flat < 0).any() else replace(tables, noisy=False)
    goals = tuple(OfComplete(goal.subset, goal) for goal in interpret(exact).goals)
    used = [tables.subsets[i] for i in np.flatnonzero(tables.table_weight > 0)]
    names = (*used, *((moment.label,) for moment in tables.moments))
    every = tuple(range(len(tables.domain)))
    return RecordProblem(tables.domain.shape, goals, every, codes.astype(np.int32), names)


def _sweep_until_met(
    problem: RecordProblem,
    mass: Array,
    trim: Callable[[Array], None] | None,
    tolerance: float,
    max_sweeps: int,
) -> Completion:
    """Weight records by iterative proportional fitting, within limits of weights if there are."""
    multipliers = tuple(np.zeros(index.size) for index in problem.indices)
    state = Completion(problem, mass / mass.sum(), {}, multipliers, np.empty(0))
    state, solver = replace(state, distances=_misfits(state)), Ipf()
    if state.objective <= tolerance:
        return state
    is_central = trim is None and any(goal.is_rounded for goal in problem.goals)
    state, past = replace(state, central=is_central), [np.inf]
    # A table that comes later in a sweep moves those before it, so what moves is to be less.
    while past[-1] > SETTLED * tolerance and state.sweeps < max_sweeps:
        try:
            # Weights that are held back are not what the tables' factors make of the start.
            state = solver.step(problem, state) if trim is None else sweep(state)
        except Stalled:
            break
        if trim is not None:
            trim(state.weights)
        if state.central:
            continue
        past.append(state.objective)
        recent, before = past[-PATIENCE_SWEEPS:], past[:-PATIENCE_SWEEPS]
        if before and min(recent) > (1.0 - LEAST_PROGRESS) * min(before):
            break
    return state


def _misfits(state: Completion) -> Array:
    """Share of each table's mass that is in the wrong cells."""
    goals = cast(tuple[OfComplete, ...], state.problem.goals)
    return np.array([goal.misfit(state.table(k)) for k, goal in enumerate(goals)])


def _trim(weight: Array, *, mass: Array, low: float, high: float) -> None:
    """Hold the weight of a record within bounds, relative to the average of its start."""
    for _ in range(50):  # trimming changes the average: a few rounds settle it
        average = weight.sum() / mass.sum()
        held = np.clip(weight, low * average * mass, high * average * mass)
        if np.allclose(held, weight, rtol=1e-12, atol=0.0):
            break
        weight[:] = held


def _stop_text(
    done: Completion,
    tables: Marginals,
    misfits: Array,
    tolerance: float,
    bounds: tuple[float, float] | None,
) -> str:
    names, effort = cast(RecordProblem, done.problem).names, plural(done.sweeps, "sweep")
    worst = int(misfits.argmax())
    if not misfits[worst]:
        return f"All tables are met exactly after {effort}."
    if misfits[worst] <= tolerance:
        return (
            f"All tables are met after {effort}: at most {misfits[worst]:.1e} of the mass of a "
            "table is in the wrong cells."
        )
    text = (
        f"Table {shorten(str(names[worst]))} is met worst: after {effort} {misfits[worst]:.2%} of "
        "its mass is in the wrong cells."
    )
    text += _empty_cell_text(done, tables)
    text += describe_disagreement(tables, tolerance, "no weights meet")
    if bounds is not None:
        text += f" The weights are held within {bounds[0]:g} to {bounds[1]:g} times their average."
    return text


def _empty_cell_text(done: Completion, tables: Marginals) -> str:
    """Name the cell with the most mass of which there is no record."""
    most, label = 0.0, ""
    places = TableCells(tables.domain.shape, tables.index_subsets).find_all(done.problem.states)
    for i, cells in enumerate(places):
        shares = np.where(known_cells(tables, i), tables.shares(i).ravel(), 0.0)
        shares[cells[cells >= 0]] = 0.0
        if shares.max(initial=0.0) <= most:
            continue
        most = float(shares.max())
        at = np.unravel_index(int(shares.argmax()), tables.counts_of(i).shape)
        label = ", ".join(
            f"{name}={tables.domain[name].levels[int(code)]}"
            for name, code in zip(tables.subsets[i], at, strict=True)
        )
    return f" No record has {label}, where {most:.2%} of the mass should be." if label else ""
