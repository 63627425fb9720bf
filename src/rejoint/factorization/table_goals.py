"""Goals: the table that a completion should reach, given its present one.

A table that is known exactly is met. Numbers that were rounded or held back have bounds, and the
model's own table is moved into these, no further. Tables of a sample, or tables that contradict
each other, have soft goals: with multipliers ``u ~ N(0, tau^2)`` for each cell of a log-linear
model, the most probable table ``g`` has ``u = n tau^2 (t - g)``. A moment tilts its table.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from rejoint.arrays import BoolArray, FloatArray, outer_product
from rejoint.factorization.table_policy import POLICY
from rejoint.marginals.compare import SAME, disagreements, is_rounding
from rejoint.marginals.marginals import Marginals
from rejoint.marginals.unknown import UnknownCells, meet_sums

if TYPE_CHECKING:
    from rejoint.pmf.pmf import LowRankPMF


@dataclass(frozen=True, eq=False)
class Goal:
    """The goal of one table: its variables, and the table to reach from the present one.

    Tables are flat. Multipliers are the logarithms of all factors that were applied to the table.
    """

    subset: tuple[int, ...]

    def project(self, now: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Return the table to reach."""
        raise NotImplementedError

    def project_to_numbers(self, now: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Return the table to reach, with rounded numbers as they are."""
        return self.project(now, multipliers)

    @property
    def is_rounded(self) -> bool:
        """Whether the table has rounded numbers."""
        return False


@dataclass(frozen=True, eq=False)
class ExactGoal(Goal):
    """The table itself."""

    shares: FloatArray

    def project(self, now: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Return the table."""
        return self.shares


@dataclass(frozen=True, eq=False)
class IntervalGoal(Goal):
    """The nearest table whose cells are within bounds, in the unit of the published numbers.

    The total is free, because rounded and suppressed cells leave it open: ``N`` solves
    ``sum clip(N m, low, high) = N``. ``numbers`` are the published ones, where they were rounded
    (zero where a cell is not known).
    """

    low: FloatArray
    high: FloatArray
    unknown: UnknownCells | None = None
    numbers: FloatArray | None = None

    @property
    def is_rounded(self) -> bool:
        """Whether the table has rounded numbers."""
        return self.numbers is not None

    def project_to_numbers(self, now: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Return the rounded numbers themselves, and within bounds what is zero or not known."""
        if self.numbers is None:
            return self.project(now, multipliers)
        cells = np.where(self.numbers > 0.0, self.numbers, self._clip(now))
        return np.asarray(cells / cells.sum())

    def project(self, now: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Return the table within its bounds."""
        cells = self._clip(now)
        if self.unknown is not None and self.unknown.sums:
            places = self.unknown.places
            cells[places] = meet_sums(cells[places], self.unknown)
        total = float(cells.sum())
        return cells / total if total > 0 else now

    def _clip(self, now: FloatArray) -> FloatArray:
        total = self._first_total
        for _ in range(100):
            cells = np.clip(total * now, self.low, self.high)
            is_free = (cells > self.low) & (cells < self.high)
            fixed, rest = float(cells[~is_free].sum()), 1.0 - float(now[is_free].sum())
            if fixed <= 0.0 or rest <= 1e-12:
                break  # only proportions matter
            before, total = total, fixed / rest
            if abs(total - before) <= 1e-14 * total:
                break
        return np.clip(total * now, self.low, self.high)

    @cached_property
    def _first_total(self) -> float:
        return float(np.where(np.isfinite(self.high), (self.low + self.high) / 2, self.low).sum())


@dataclass(frozen=True, eq=False)
class SoftGoal(Goal):
    """A table of ``records`` records, with an N(0, tau^2) prior on its effects."""

    shares: FloatArray
    records: float
    tau: float

    def project(self, now: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Solve ``log(g / m') = n tau^2 (t - g)``, ``m'`` being the table without multipliers."""
        from scipy.special import wrightomega  # loaded when needed: it is slow to import

        stiffness = self.records * self.tau**2
        free = np.full(len(now), -np.inf)  # what has no mass gets none
        np.subtract(np.log(now, where=now > 0, out=free), multipliers, where=now > 0, out=free)
        omega = wrightomega(free + stiffness * self.shares + np.log(stiffness))
        return np.asarray(np.real(omega) / stiffness)


@dataclass(frozen=True, eq=False)
class MomentGoal(Goal):
    """The nearest table with a given moment: cells times ``exp(lambda u)``."""

    values: FloatArray
    mean: float

    def project(self, now: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Solve for ``lambda`` by Newton's method, with steps that are not too long."""
        away = (self.values - self.mean) / (float(np.ptp(self.values)) or 1.0)
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
class StructuralZeros(Goal):
    """The present table without cells that are impossible; ``alive`` are the others."""

    alive: BoolArray

    def project(self, now: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Return the table with zeros, in proportion elsewhere."""
        rest = now * self.alive
        total = float(rest.sum())
        return rest / total if total > 0 else now


def moment_goals(marginals: Marginals) -> list[Goal]:
    """Goals of the moments, which are met whatever the tables are."""
    goals: list[Goal] = []
    for moment in marginals.moments:
        values = outer_product(moment.vectors).ravel()
        if moment.excludes:
            goals.append(StructuralZeros(moment.variables, values == 0))
        else:
            goals.append(MomentGoal(moment.variables, values, moment.value))
    return goals


def exact_goals(marginals: Marginals) -> list[Goal]:
    """Goals of tables that can be met: exactly, or within the bounds of their numbers."""
    goals: list[Goal] = []
    for i, subset in enumerate(marginals.index_subsets):
        if marginals.table_weight[i] <= 0:
            continue
        cells, numbers = marginals.unknown_of(i), marginals.counts_of(i).ravel()
        width = float(marginals.rounding[i])
        if cells is None and not width:
            goals.append(ExactGoal(subset, marginals.shares(i).ravel()))
            continue
        low, high = np.maximum(numbers - width, 0.0), numbers + width
        if cells is not None:
            low[cells.places], high[cells.places] = cells.low, cells.high
            numbers = numbers.copy()
            numbers[cells.places] = 0.0
        goals.append(IntervalGoal(subset, low, high, cells, numbers if width else None))
    return goals + moment_goals(marginals)


def soft_goals(marginals: Marginals, tau: float = POLICY.tau) -> list[Goal]:
    """Soft goals of tables by their numbers of records; moments are met."""
    records = records_behind(marginals)
    goals: list[Goal] = [
        SoftGoal(subset, marginals.shares(i).ravel(), float(records[i]), tau)
        for i, subset in enumerate(marginals.index_subsets)
        if marginals.table_weight[i] > 0
    ]
    return goals + moment_goals(marginals)


def records_behind(marginals: Marginals) -> FloatArray:
    """Number of records behind each table, times its weight; an assumed one behind shares."""
    records = np.where(marginals.counted, marginals.totals, POLICY.assumed_records)
    return np.asarray(records * marginals.table_weight)


#: Numbers whose multiples published counts may be, the largest first.
_UNITS = (100_000, 10_000, 1000, 500, 100, 50, 25, 20, 10, 5, 3, 1)

#: Those that offices round to up or down at random.
_RANDOM_UNITS = (3.0, 5.0)


def infer_rounding(marginals: Marginals) -> Iterator[Marginals]:
    """Yield the tables with roundings that explain where they contradict each other.

    The unit of counts is the largest number that all cells are multiples of, unless that may be
    chance; that of shares is their last decimal. Rounding to the nearest multiple comes first, then
    rounding up or down at random.
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
    published = [_published_numbers(marginals, i) for i in range(len(marginals))]
    counts = [part for part, counted in zip(published, marginals.counted, strict=True) if counted]
    numbers = np.unique(np.concatenate([*counts, np.zeros(1)]))
    numbers = numbers[numbers != 0]
    unit = 0.0
    for trial in _UNITS:
        multiples = np.allclose(numbers / trial, np.round(numbers / trial), rtol=0.0, atol=1e-9)
        by_chance = trial ** -float(len(numbers))
        if multiples and (by_chance < 1e-6 or trial == 1):
            unit = float(trial)
            break
    tables = zip(published, marginals.counted, strict=True)
    return np.array([unit if counted else _last_decimal(part) for part, counted in tables])


def _published_numbers(marginals: Marginals, i: int) -> FloatArray:
    cells = marginals.unknown_of(i)
    numbers = marginals.counts_of(i).ravel()
    return numbers if cells is None else np.delete(numbers, cells.places)


def _last_decimal(shares: FloatArray) -> float:
    """Unit of the last decimal of shares, as far as scaling them to sum to one lets it be seen."""
    for digits in range(1, 7):
        unit = 10.0**-digits
        off = np.abs(shares / unit - np.round(shares / unit))
        # Shares that were scaled are off by their relative change.
        is_near = off <= 1e-6 + np.abs(shares / unit) * len(shares) * unit * 0.5
        if is_near.all() and np.ptp(shares) > 3 * unit:
            return unit
    return 0.0


def contradictions(marginals: Marginals) -> list[tuple[tuple[str, ...], tuple[str, ...], float]]:
    """Pairs of tables that differ on common variables by more than their rounding explains.

    Each with the share of the mass by which they differ, the worst first.
    """
    return [
        (entry.first, entry.second, entry.distance)
        for entry in disagreements(marginals)
        if entry.distance > SAME and not is_rounding(marginals, entry)
    ]


def exclude_impossible(pmf: "LowRankPMF", marginals: Marginals) -> "LowRankPMF":
    """Return a model without combinations of levels that are declared to be impossible.

    Outside of a box ``A x B`` is either not ``A``, or ``A`` and not ``B``: every class becomes one
    for each of these parts.
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
        factors = [np.hstack([part[n] for part in parts]) for n in range(len(factors))]
        weights = np.tile(weights, len(parts))
        weights = weights * np.prod([columns.sum(axis=0) for columns in factors], axis=0)
        alive = weights > 0
        weights = weights[alive]
        factors = [columns[:, alive] / columns[:, alive].sum(axis=0) for columns in factors]
    total = float(weights.sum())
    if not total > 0:
        raise ValueError("impossible= leaves nothing: the combinations have all probability.")
    return type(pmf)(weights / total, factors, pmf.domain)
