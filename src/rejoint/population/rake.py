"""Raking: weights of a survey that meet tables, by iterative proportional fitting."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.labels import Level
from rejoint.domain.variable import Kind
from rejoint.factorization.factorize import understand
from rejoint.factorization.max_entropy import (
    Completion,
    CompletionProblem,
    Ipf,
    Place,
    sweep,
)
from rejoint.factorization.table_goals import CentralGoal, Goal, Near, Within
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
    contradict each other pull by their numbers of records, so that the weights are a compromise.

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
        named = set(take_apart(records).names or ())
        known = {v.name: v.levels for v in tables.domain if v.name in named}
        both = [name for name in known if isinstance(bins, Mapping) and name in bins]
        if both:
            raise ValueError(
                f"bins do not apply to {show(both)}: columns of the tables are read in the levels "
                "that these have."
            )
        declared: dict[str, Any] = {"kinds": kinds, "levels": {**known, **(levels or {})}}
        declared |= {"bins": bins, "missing_level": missing_level}
        survey = Records.of(records, not_applicable=not_applicable, **declared)
    base = _align_records(survey, tables)
    start = np.ones(len(base)) if survey.sample_weight is None else np.array(survey.sample_weight)
    low, high = _check_bounds(bounds)
    rows, group = np.unique(base.codes, axis=0, return_inverse=True)
    group = group.ravel()
    mass: Array = np.bincount(group, start, minlength=len(rows)).astype(np.float64)
    problem = _make_problem(rows, tables)
    held = None if bounds is None else partial(_trim, mass=mass, low=low, high=high)
    done = _sweep_until_met(problem, mass, held, tolerance, max_sweeps)
    factor = np.divide(done.weights, mass, out=np.zeros_like(mass), where=mass > 0)
    final = start * factor[group]
    if total is None:
        total = population_size(tables) or float(len(survey))
    final *= total / final.sum()
    misfits = _find_misfits(done)
    ranked = sorted(zip(problem.names, misfits, strict=True), key=lambda pair: -pair[1])
    return Raked(
        final,
        _stop_text(done, tables, misfits, tolerance, bounds),
        float(misfits.max(initial=0.0)),
        {names: float(misfit) for names, misfit in ranked},
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
    known = [*tables.index_subsets, *(moment.variables for moment in tables.moments)]
    held = dict.fromkeys(tables.domain.names[n] for subset in known for n in subset)
    absent = [name for name in held if name not in records.domain]
    if absent:
        raise ValueError(
            f"The tables mention {show(absent)}, which the records do not have: leave these "
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


@dataclass(frozen=True, eq=False)
class RecordProblem(CompletionProblem):
    """Tables that records are weighted to: the states are distinct records, -1 for missing values.

    ``names`` says which table each goal is of.
    """

    names: tuple[tuple[str, ...], ...] = ()

    @property
    def rounded(self) -> bool:
        """Whether any table has rounded numbers."""
        goals = [goal.goal for goal in self.goals if isinstance(goal, OfComplete)]
        return any(isinstance(goal, Within) and goal.numbers is not None for goal in goals)

    def _place(self, subset: tuple[int, ...]) -> Place:
        """Records that lack a variable of the table are in one cell more, after the others."""
        cells = TableCells(self.levels, [subset])
        index = cells.find(self.states, 0)
        size = int(cells.offsets[-1])
        index[index < 0] = size
        return Place(index.astype(np.intp), None, (size + 1,), 0)


@dataclass(frozen=True, eq=False)
class OfComplete:
    """The goal of a table for those records that have its variables; their mass stays the same.

    Examples
    --------
    >>> from rejoint.factorization.table_goals import Exact
    >>> goal = OfComplete(Exact((0,), np.array([0.25, 0.75])))
    >>> goal.aim(np.array([0.3, 0.3, 0.4]), np.zeros(3))
    array([0.15, 0.45, 0.4 ])
    """

    goal: Goal

    @property
    def subset(self) -> tuple[int, ...]:
        """The variables of the table."""
        return self.goal.subset

    def aim(self, now: Array, pull: Array) -> Array:
        """Return the table to reach, with the mass of incomplete records last."""
        return self._of_complete(self.goal.aim, now, pull)

    def aim_at_numbers(self, now: Array, pull: Array) -> Array:
        """Return the same with rounded numbers as they are."""
        goal = self.goal
        aim_at = goal.aim_at_numbers if isinstance(goal, CentralGoal) else goal.aim
        return self._of_complete(aim_at, now, pull)

    @staticmethod
    def _of_complete(aim_at: Callable[[Array, Array], Array], now: Array, pull: Array) -> Array:
        mass = float(now[:-1].sum())
        if not mass > 0.0:
            return now
        # What a table has in cells without a record goes to the others: the mass stays.
        aim = np.where(now[:-1] > 0.0, aim_at(now[:-1] / mass, pull[:-1]), 0.0)
        return np.append(aim * (mass / (aim.sum() or 1.0)), now[-1])

    def miss(self, now: Array) -> float:
        """Share of the table's mass in wrong cells."""
        mass = float(now[:-1].sum())
        shares = now[:-1] / (mass or 1.0)
        if isinstance(self.goal, Near):  # it does not aim at the table itself
            wanted = self.goal.shares
        else:
            wanted = self.goal.aim(shares, np.zeros_like(shares))
        return 0.5 * float(np.abs(wanted - shares).sum())


def _make_problem(codes: NDArray[np.signedinteger], tables: Marginals) -> RecordProblem:
    """Tables that agree are met, also those of a sample; others pull.

    Noise that was added shows in cells below zero, which no weights have.
    """
    known = tables if (tables.flat < 0).any() else replace(tables, noisy=False)
    goals = tuple(OfComplete(goal) for goal in understand(known).goals)
    used = [tables.subsets[i] for i in np.flatnonzero(tables.table_weight > 0)]
    names = (*used, *((moment.label,) for moment in tables.moments))
    every = tuple(range(len(tables.domain)))
    return RecordProblem(tables.domain.shape, goals, every, codes.astype(np.int32), names)


def _sweep_until_met(
    problem: RecordProblem,
    mass: Array,
    hold: Callable[[Array], None] | None,
    tolerance: float,
    max_sweeps: int,
) -> Completion:
    """Weight records by iterative proportional fitting, within limits of weights if there are."""
    pulls = tuple(np.zeros(place.inside_shape) for place in problem.places)
    state = Completion(problem, mass / mass.sum(), {}, pulls, np.empty(0))
    state, solver = replace(state, distances=_find_misfits(state)), Ipf()
    if state.objective <= tolerance:
        return state
    state, past = replace(state, central=hold is None and problem.rounded), [np.inf]
    # A table that comes later in a sweep moves those before it, so what moves is to be less.
    while past[-1] > SETTLED * tolerance and state.sweeps < max_sweeps:
        try:
            # Weights that are held back are not what the tables' factors make of the start.
            state = solver.step(problem, state) if hold is None else sweep(state)
        except Stalled:
            break
        if hold is not None:
            hold(state.weights)
        if state.central:
            continue
        past.append(state.objective)
        recent, before = past[-PATIENCE_SWEEPS:], past[:-PATIENCE_SWEEPS]
        if before and min(recent) > (1.0 - LEAST_PROGRESS) * min(before):
            break
    return state


def _find_misfits(state: Completion) -> Array:
    """Share of each table's mass that is in the wrong cells."""
    goals = cast(tuple[OfComplete, ...], state.problem.goals)
    return np.array([goal.miss(state.table(k)) for k, goal in enumerate(goals)])


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
    found = TableCells(tables.domain.shape, tables.index_subsets).find_all(done.problem.states)
    for i, cells in enumerate(found):
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
