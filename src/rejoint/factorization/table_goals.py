"""Goals: the table that a completion should reach, given its present one.

A table that is known exactly is met. Numbers that were rounded or held back have bounds, and the
model's own table is moved into these, no further. Tables of a sample, or tables that contradict
each other, pull: with multipliers ``u ~ N(0, tau^2)`` for each cell of a log-linear model, the
most probable table ``g`` has ``u = n tau^2 (t - g)``. A moment tilts its table.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from rejoint.arrays import FloatArray, outer_product
from rejoint.factorization.table_policy import POLICY
from rejoint.marginals.compare import SAME, disagreements, is_rounding
from rejoint.marginals.marginals import Marginals
from rejoint.marginals.moments import Moment
from rejoint.marginals.unknown import UnknownCells, meet_sums

if TYPE_CHECKING:
    from rejoint.pmf.pmf import LowRankPMF


class Goal(Protocol):
    """The goal of one table: its variables, and the table to reach from the present one."""

    @property
    def subset(self) -> tuple[int, ...]:
        """The variables of the table."""
        ...

    def aim(self, now: FloatArray, pull: FloatArray) -> FloatArray:
        """Return the table to reach, flat.

        ``pull`` has the logarithms of all factors that were applied to the table so far.
        """
        ...


@runtime_checkable
class CentralGoal(Goal, Protocol):
    """A goal within bounds, which the first sweeps reach at the middle of these."""

    def aim_at_numbers(self, now: FloatArray, pull: FloatArray) -> FloatArray:
        """Return the table with rounded numbers as they are."""
        ...


@dataclass(frozen=True, eq=False)
class Exact:
    """The table itself.

    Examples
    --------
    >>> Exact((0,), np.array([0.25, 0.75])).aim(np.array([0.5, 0.5]), np.zeros(2))
    array([0.25, 0.75])
    """

    subset: tuple[int, ...]
    shares: FloatArray

    def aim(self, now: FloatArray, pull: FloatArray) -> FloatArray:
        """Return the table."""
        return self.shares


@dataclass(frozen=True, eq=False)
class Within:
    """The nearest table whose cells are within bounds, in the unit of the published numbers.

    The total is free, because rounded and suppressed cells leave it open: ``N`` solves
    ``sum clip(N m, low, high) = N``. ``numbers`` are the published ones, where they were rounded
    (zero where a cell is not known).

    Examples
    --------
    >>> goal = Within((0,), np.array([3.0, 0.0]), np.array([3.0, 4.0]))
    >>> goal.aim(np.array([0.5, 0.5]), np.zeros(2)), goal.aim(np.array([0.1, 0.9]), np.zeros(2))
    (array([0.5, 0.5]), array([0.42857143, 0.57142857]))
    """

    subset: tuple[int, ...]
    low: FloatArray
    high: FloatArray
    unknown: UnknownCells | None = None
    numbers: FloatArray | None = None

    def aim_at_numbers(self, now: FloatArray, pull: FloatArray) -> FloatArray:
        """Return the rounded numbers themselves, and within bounds what is zero or not known.

        Examples
        --------
        >>> goal = Within((0,), np.zeros(2), np.full(2, 9.0), numbers=np.array([6.0, 2.0]))
        >>> goal.aim_at_numbers(np.array([0.5, 0.5]), np.zeros(2))
        array([0.75, 0.25])
        """
        if self.numbers is None:
            return self.aim(now, pull)
        cells: FloatArray = np.where(self.numbers > 0.0, self.numbers, self._clip(now))
        return cells / float(cells.sum())

    def aim(self, now: FloatArray, pull: FloatArray) -> FloatArray:
        """Return the table within its bounds."""
        cells = self._clip(now)
        if self.unknown is not None and self.unknown.sums:
            cells = cells.copy()
            places = self.unknown.places
            cells[places] = meet_sums(cells[places], self.unknown)
        total = float(cells.sum())
        return cells / total if total > 0 else now

    def _clip(self, now: FloatArray) -> FloatArray:
        total = self._first_total
        for _ in range(100):
            cells = np.clip(total * now, self.low, self.high)
            free = (cells > self.low) & (cells < self.high)
            held, loose = float(cells[~free].sum()), 1.0 - float(now[free].sum())
            if held <= 0.0 or loose <= 1e-12:
                break  # only proportions matter
            before, total = total, held / loose
            if abs(total - before) <= 1e-14 * total:
                break
        found: FloatArray = np.clip(total * now, self.low, self.high)
        return found

    @cached_property
    def _first_total(self) -> float:
        return float(np.where(np.isfinite(self.high), (self.low + self.high) / 2, self.low).sum())


@dataclass(frozen=True, eq=False)
class Near:
    """A table that pulls as ``records`` records do on effects of standard deviation ``tau``.

    Examples
    --------
    >>> goal = Near((0,), np.array([0.25, 0.75]), 1000.0, 0.5)
    >>> goal.aim(np.array([0.5, 0.5]), np.zeros(2)).round(3)
    array([0.253, 0.748])
    """

    subset: tuple[int, ...]
    shares: FloatArray
    records: float
    tau: float

    def aim(self, now: FloatArray, pull: FloatArray) -> FloatArray:
        """Solve ``log(g / m') = n tau^2 (t - g)``, with ``m'`` the table without its own pull."""
        from scipy.special import wrightomega  # loaded when needed: it is slow to import

        stiffness = self.records * self.tau**2
        free = np.full(len(now), -np.inf)  # what has no mass gets none
        np.subtract(np.log(now, where=now > 0, out=free), pull, where=now > 0, out=free)
        found: FloatArray = (
            np.real(wrightomega(free + stiffness * self.shares + np.log(stiffness))) / stiffness
        )
        return found


@dataclass(frozen=True, eq=False)
class Tilted:
    """The nearest table with a given moment: cells times ``exp(lambda u)``.

    Examples
    --------
    >>> goal = Tilted((0,), np.array([0.0, 1.0]), 0.75)
    >>> goal.aim(np.array([0.5, 0.5]), np.zeros(2)).round(6)
    array([0.25, 0.75])
    """

    subset: tuple[int, ...]
    values: FloatArray
    mean: float

    @classmethod
    def of(cls, moment: Moment) -> "Tilted":
        """The goal of a moment."""
        return cls(moment.variables, outer_product(moment.vectors).ravel(), moment.value)

    def aim(self, now: FloatArray, pull: FloatArray) -> FloatArray:
        """Solve for ``lambda`` by Newton's method, with steps that are not too long."""
        scale = float(np.ptp(self.values)) or 1.0
        away = (self.values - self.mean) / scale
        tilt = 0.0
        for _ in range(60):
            table = now * np.exp(tilt * away - max(float((tilt * away).max()), 0.0))
            total = float(table.sum())
            if not total > 0:
                return now
            table = table / total
            gap = float(table @ away)
            spread = float(table @ away**2) - gap**2
            if abs(gap) < 1e-13 or spread <= 1e-14:
                break
            tilt -= float(np.clip(gap / spread, -5.0, 5.0))
        return table


@dataclass(frozen=True, eq=False)
class Excluded:
    """The table without cells that are impossible.

    Examples
    --------
    >>> Excluded((0,), np.array([1.0, 1.0, 0.0])).aim(np.array([0.25, 0.25, 0.5]), np.zeros(3))
    array([0.5, 0.5, 0. ])
    """

    subset: tuple[int, ...]
    alive: FloatArray

    def aim(self, now: FloatArray, pull: FloatArray) -> FloatArray:
        """Return the table with zeros, in proportion elsewhere."""
        left = now * self.alive
        total = float(left.sum())
        return left / total if total > 0 else now


def _goal_of(moment: Moment) -> Goal:
    if moment.excludes:
        return Excluded(
            moment.variables, (outer_product(moment.vectors).ravel() == 0).astype(float)
        )
    return Tilted.of(moment)


def exact_goals(marginals: Marginals) -> list[Goal]:
    """Goals of tables that can be met: exactly, or within the bounds of their numbers.

    Examples
    --------
    >>> m = Marginals.from_tables({"a": [3, 1]})
    >>> exact_goals(m)[0].aim(np.array([0.5, 0.5]), np.zeros(2))
    array([0.75, 0.25])
    """
    goals: list[Goal] = []
    for i, subset in enumerate(marginals.index_subsets):
        if marginals.table_weight[i] <= 0:
            continue
        cells, numbers = marginals.unknown_of(i), marginals.counts_of(i).ravel()
        width = float(marginals.rounding[i])
        if cells is None and not width:
            goals.append(Exact(subset, marginals.shares(i).ravel()))
            continue
        low, high = np.maximum(numbers - width, 0.0), numbers + width
        if cells is not None:
            low[cells.places], high[cells.places] = cells.low, cells.high
            numbers = numbers.copy()
            numbers[cells.places] = 0.0
        goals.append(Within(subset, low, high, cells, numbers if width else None))
    return goals + [_goal_of(moment) for moment in marginals.moments]


def near_goals(marginals: Marginals, taus: FloatArray | float = POLICY.tau) -> list[Goal]:
    """Goals of tables that pull, each as its number of records does; moments are met.

    Examples
    --------
    >>> m = Marginals.from_tables({"a": [30, 10]})
    >>> near_goals(m, 0.5)[0].records
    40.0
    """
    records = records_behind(marginals)
    each = np.broadcast_to(np.asarray(taus, dtype=np.float64), len(marginals))
    goals: list[Goal] = [
        Near(subset, marginals.shares(i).ravel(), float(records[i]), float(each[i]))
        for i, subset in enumerate(marginals.index_subsets)
        if marginals.table_weight[i] > 0
    ]
    return goals + [_goal_of(moment) for moment in marginals.moments]


def records_behind(marginals: Marginals) -> FloatArray:
    """Number of records behind each table, times its weight; an assumed one behind shares.

    Examples
    --------
    >>> records_behind(Marginals.from_tables({"a": [30, 10], "b": [0.5, 0.5]}))
    array([   40., 10000.])
    """
    known = np.where(marginals.counted, marginals.totals, POLICY.assumed_records)
    return np.asarray(known * marginals.table_weight)


#: Numbers whose multiples published counts may be, the largest first.
_UNITS = (100_000, 10_000, 1000, 500, 100, 50, 25, 20, 10, 5, 3, 1)

#: Those that offices round to up or down at random.
_RANDOM_UNITS = (3.0, 5.0)


def infer_rounding(marginals: Marginals) -> Iterator[Marginals]:
    """Yield the tables with roundings that explain where they contradict each other.

    The unit of counts is the largest number that all cells are multiples of, unless that may be
    chance; that of shares is their last decimal. Rounding to the nearest multiple comes first, then
    rounding up or down at random.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     m = Marginals.from_tables({("a", "b"): [[11, 15], [20, 34]], "b": [30, 49]})
    >>> next(infer_rounding(m)).rounding
    array([0.5, 0.5])
    """
    units = _find_units(marginals)
    at_random = np.where(np.isin(units, _RANDOM_UNITS), units, units / 2)
    for reach in (units / 2, at_random):
        width = np.maximum(marginals.rounding, reach)
        rounded = replace(marginals, rounding=width)
        moved = width * np.diff(marginals.starts) / np.maximum(marginals.totals, 1e-300)
        # Whole numbers are rarely rounded ones: not where that would explain any table.
        if (moved[units == 1] > POLICY.most_rounded).any():
            continue
        if units.any() and not contradictions(rounded):
            yield rounded


def _find_units(marginals: Marginals) -> FloatArray:
    """What the numbers of each table are rounded to; zero where that cannot be seen."""
    counts = [_known_numbers(marginals, int(i)) for i in np.flatnonzero(marginals.counted)]
    numbers = np.concatenate([*counts, np.empty(0)])
    numbers = np.unique(numbers[numbers != 0])
    unit = 0.0
    for trial in _UNITS:
        multiples = np.allclose(numbers / trial, np.round(numbers / trial), rtol=0.0, atol=1e-9)
        by_chance = trial ** -float(len(numbers))
        if multiples and (by_chance < 1e-6 or trial == 1):
            unit = float(trial)
            break
    found = np.full(len(marginals), unit)
    for i in np.flatnonzero(~marginals.counted):
        found[i] = _last_decimal(_known_numbers(marginals, int(i)))
    return found


def _known_numbers(marginals: Marginals, i: int) -> FloatArray:
    """The numbers of a table that were published."""
    cells = marginals.unknown_of(i)
    numbers = marginals.counts_of(i).ravel()
    return numbers if cells is None else np.delete(numbers, cells.places)


def _last_decimal(shares: FloatArray) -> float:
    """Unit of the last decimal of shares, as far as scaling them to sum to one lets it be seen."""
    for digits in range(1, 7):
        unit = 10.0**-digits
        off = np.abs(shares / unit - np.round(shares / unit))
        # Shares that were scaled are off by their relative change.
        if (off <= 1e-6 + np.abs(shares / unit) * len(shares) * unit * 0.5).all() and (
            np.ptp(shares) > 3 * unit
        ):
            return unit
    return 0.0


def contradictions(marginals: Marginals) -> list[tuple[tuple[str, ...], tuple[str, ...], float]]:
    """Pairs of tables that differ on common variables by more than their rounding explains.

    Each with the share of the mass by which they differ, the worst first.

    Examples
    --------
    >>> contradictions(Marginals.from_tables({("a", "b"): [[1, 2], [3, 4]], "b": [4, 6]}))
    []
    """
    found = []
    for entry in disagreements(marginals):
        if entry.distance <= SAME:
            break
        if not is_rounding(marginals, entry):
            found.append((entry.first, entry.second, entry.distance))
    return found


def exclude_impossible(pmf: "LowRankPMF", marginals: Marginals) -> "LowRankPMF":
    """Return a model without combinations of levels that are declared to be impossible.

    Outside of a box ``A x B`` is either not ``A``, or ``A`` and not ``B``: every class becomes one
    for each of these parts.

    Examples
    --------
    >>> from rejoint import LowRankPMF
    >>> m = Marginals.from_tables({"a": [1, 1], "b": [1, 1]}, impossible=[{"a": 1, "b": 1}])
    >>> p = LowRankPMF([1.0], [[[0.5], [0.5]], [[0.5], [0.5]]], m.domain)
    >>> exclude_impossible(p, m).marginal(["a", "b"]).round(3)
    array([[0.333, 0.333],
           [0.333, 0.   ]])
    """
    weights, factors = pmf.weights, list(pmf.factors)
    for moment in marginals.moments:
        if not moment.excludes:
            continue
        parts = []
        for last in range(len(moment.variables)):
            part = list(factors)
            for k, (n, vector) in enumerate(zip(moment.variables, moment.vectors, strict=True)):
                inside = vector > 0
                if k <= last:
                    part[n] = part[n] * (inside if k < last else ~inside)[:, None]
            parts.append(part)
        size = len(moment.variables)
        factors = [np.hstack([part[n] for part in parts]) for n in range(len(factors))]
        mass = np.prod([columns.sum(axis=0) for columns in factors], axis=0)
        alive = mass * np.tile(weights, size) > 0
        weights = (mass * np.tile(weights, size))[alive]
        factors = [columns[:, alive] / columns[:, alive].sum(axis=0) for columns in factors]
    total = float(weights.sum())
    if not total > 0:
        raise ValueError("impossible= leaves nothing: the combinations have all probability.")
    return type(pmf)(weights / total, factors, pmf.domain)
