"""Composite answers: what records say and what the model says, each as far as it can be trusted.

Survey statisticians have three estimates for a small area: the *direct* one, counted; the
*synthetic* one, of a model; and the *composite* of both. Here the areas are the rows of a table of
what is asked by what is given. Where n records are in a row, a cell of it is

    (n counted + k model) / (n + k),

the mean of the share given the count, if its deviation from the model is a Beta variable of
precision k. Cells where the model is right and cells where it is not differ: the distribution of k
over the cells of the table is estimated from them (empirical Bayes), and each cell has its own
posterior of k. Cells of a row are then scaled to sum to one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import betaincinv, gammaln, ndtri

from rejoint.arrays import BoolArray, FloatArray
from rejoint.domain.domain import Domain
from rejoint.language.bind import BoundQuery
from rejoint.pmf.draws import Interval
from rejoint.queries.mixture import Mixture
from rejoint.text import plural

if TYPE_CHECKING:
    from rejoint.pmf.counts import Counts

#: Records that the model may be worth in a cell: from a quarter of one to four million.
PRECISIONS = 4.0 ** np.arange(-1, 12)

#: Records that meet the condition below which the model answers alone.
FEWEST_RECORDS = 5

#: Cells of the largest table that is counted for a question, and of its rows that answer.
MOST_CELLS, MOST_ANSWERED = 1_000_000, 300_000

#: Cells from which the distribution of precisions is learnt, and its steps of EM.
MOST_LEARNT, STEPS = 20_000, 30

#: Share of the records that may meet a condition but lack a value, from which it is said.
SAID_SHARE = 0.01

_LEAST_SHARE = 1e-9  # of the model in a cell where there may be records


class Shrunk(NamedTuple):
    """Composite shares of the cells of each row, (rows, cells).

    ``variance`` is that of a cell over one minus its share, as if counts were Poisson;
    ``model_part`` is how far a share follows the model's.
    """

    shares: FloatArray
    variance: FloatArray
    model_part: FloatArray


def shrink(counts: FloatArray, model: FloatArray, wanted: BoolArray) -> Shrunk:
    """Shrink the counted shares of each row towards the model's; rows that are wanted alone.

    Examples
    --------
    >>> counts, model = np.array([[30.0, 70.0]]), np.array([[0.3, 0.7]])
    >>> shrink(counts, model, np.array([True])).shares.round(3)
    array([[0.3, 0.7]])
    """
    rows = np.flatnonzero(counts.any(axis=1))
    rows = rows[np.argsort(counts[rows].sum(axis=1), kind="stable")]
    some = rows[:: -(-len(rows) * counts.shape[1] // MOST_LEARNT) or 1]
    prior = np.full(len(PRECISIONS), 1.0 / len(PRECISIONS))
    evidence = _evidence(counts[some], model[some]).reshape(-1, len(prior))
    for _ in range(STEPS):
        posterior = evidence * prior
        posterior /= posterior.sum(axis=1, keepdims=True)
        # One cell more, of which nothing is known, keeps every precision possible.
        prior = (posterior.sum(axis=0) + 1.0 / len(prior)) / (len(posterior) + 1.0)
    counts, model = counts[wanted], model[wanted]
    size = counts.sum(axis=1)[:, None, None]
    weights = _evidence(counts, model) * prior
    weights /= weights.sum(axis=2, keepdims=True)
    part = PRECISIONS / (size + PRECISIONS)
    counted = counts[:, :, None] / np.maximum(size, 1e-300)
    each = part * model[:, :, None] + (1.0 - part) * counted
    shares = (weights * each).sum(axis=2)
    apart = (weights * (each - shares[:, :, None]) ** 2).sum(axis=2)
    variance = (weights * each / (size + PRECISIONS + 1.0)).sum(axis=2) + apart
    total = shares.sum(axis=1, keepdims=True)
    return Shrunk(shares / total, variance / total**2, (weights * part).sum(axis=2))


def _evidence(counts: FloatArray, model: FloatArray) -> FloatArray:
    """Likelihood of each precision in each cell, (rows, cells, precisions); the largest is 1."""
    size, k = counts.sum(axis=1)[:, None, None], PRECISIONS
    above = k * np.clip(model, _LEAST_SHARE, 1.0 - _LEAST_SHARE)[:, :, None]
    below, count = k - above, counts[:, :, None]
    logs = gammaln(count + above) - gammaln(above) + gammaln(size - count + below) - gammaln(below)
    logs += gammaln(k) - gammaln(size + k)
    return np.asarray(np.exp(logs - logs.max(axis=2, keepdims=True)))


@dataclass(frozen=True, eq=False)
class Composition:
    """The table of the asked and given variables of a question: counted, and composite.

    Parameters
    ----------
    domain : Domain
    bound : BoundQuery
        A question P or E.
    counts : Counts
    mixture : Mixture
        The model.
    """

    domain: Domain
    bound: BoundQuery
    counts: "Counts"
    mixture: Mixture

    @cached_property
    def cells(self) -> tuple[int, ...]:
        """Variables of the columns of the table: what is asked."""
        return tuple(dict.fromkeys([*self.bound.asked, *self.bound.events]))

    @cached_property
    def rows(self) -> tuple[int, ...]:
        """Variables of its rows: what is given."""
        given = [*self.bound.by, *self.bound.evidence]
        return tuple(n for n in dict.fromkeys(given) if n not in self.cells)

    @cached_property
    def kept(self) -> dict[int, BoolArray]:
        """Levels to which given variables are restricted, where the table would be too large."""
        return {} if self._size({}) <= MOST_CELLS else self._met

    @cached_property
    def _met(self) -> dict[int, BoolArray]:
        """Levels of variables of the rows that meet the condition."""
        return {n: v > 0.0 for n, v in self.bound.evidence.items() if n in self.rows}

    def _size(self, kept: Mapping[int, BoolArray]) -> int:
        shape = self.domain.shape
        return prod(int(kept[n].sum()) if n in kept else shape[n] for n in self.rows + self.cells)

    def why_not(self) -> str:
        """Return why the model answers alone; empty if it does not."""
        bound, names = self.bound, self.domain.names
        if bound.query.verb not in ("P", "E"):
            return "counts stand beside P and E"
        if set(bound.by) & set(self.cells):
            return "a variable is both asked for and tabulated by"
        if not self.counts.holds(self.rows + self.cells):
            asked = ", ".join(names[n] for n in sorted(self.rows + self.cells))
            return f"there are counts of one and two variables, and none of {asked}"
        if self._size(self._met) > MOST_ANSWERED:
            return f"the table of counts would have more than {MOST_ANSWERED:,} cells"
        met = float(self.number.sum())
        if met < FEWEST_RECORDS:
            whose = " and meets the condition" if bound.evidence else ""
            few = f"only {plural(round(met), 'record')}" if round(met) else "no record"
            return f"{few} holds all of these variables{whose}"
        return ""

    @cached_property
    def counted(self) -> FloatArray:
        """Number of records in each cell."""
        return self.counts.table(self.rows + self.cells, self.kept)

    @cached_property
    def number(self) -> FloatArray:
        """Number of records that meet the condition, by the variables tabulated by."""
        return self._sum(self.counted, self.bound.evidence, self.bound.by)

    @cached_property
    def _asked(self) -> dict[int, FloatArray]:
        """Evidence and events together."""
        vectors = dict(self.bound.evidence)
        for n, meets in self.bound.events.items():
            vectors[n] = vectors[n] * meets if n in vectors else meets
        return vectors

    def _sum(
        self, table: FloatArray, vectors: Mapping[int, FloatArray], axes: Sequence[int]
    ) -> FloatArray:
        """Sum a table times vectors over the levels of variables, to some axes."""
        every = self.rows + self.cells
        operands: list[Any] = [table, list(range(len(every)))]
        for n, vector in vectors.items():
            operands += [vector[self.kept[n]] if n in self.kept else vector, [every.index(n)]]
        # A copy: without a sum it would be a view of the table.
        return np.array(np.einsum(*operands, [every.index(n) for n in axes], optimize=True))

    @cached_property
    def _shrunk(self) -> Shrunk:
        """Composite table of the rows that meet the condition, as shares of all."""
        shape = self.counted.shape
        kept = {n: np.flatnonzero(met) for n, met in self.kept.items()}
        table = self.mixture.tabulate(self.rows + self.cells, kept=kept)
        model = table.reshape(prod(shape[: len(self.rows)]), -1)
        counts, mass = self.counted.reshape(model.shape), model.sum(axis=1, keepdims=True)
        even = np.full(model.shape[1], 1.0 / model.shape[1])
        shares = np.divide(model, mass, out=np.tile(even, (len(model), 1)), where=mass > 0.0)
        if self.counts.rounding:
            counts = fill_rounded(counts, shares)
        met = np.ones(shape[: len(self.rows)])
        for axis, n in enumerate(self.rows):
            if n in self.bound.evidence:
                own = self.bound.evidence[n]
                own = own[self.kept[n]] if n in self.kept else own
                met = met * own.reshape([-1 if k == axis else 1 for k in range(met.ndim)])
        wanted = met.ravel() > 0.0
        found = shrink(counts, shares, wanted)
        several = any(levels.sum() > 1 for levels in self._met.values())
        margin = np.ones((1, len(counts)))
        if several:  # else there is one row of each column, whatever its share
            own = mass.T / max(float(mass.sum()), 1e-300)
            margin = shrink(counts.sum(axis=1)[None], own, np.ones(1, dtype=bool)).shares
        rows = margin[0][wanted][:, None]
        parts = (
            found.shares * rows,
            found.variance * rows**2,
            found.shares * found.model_part * rows,
        )
        full = []
        for part in parts:
            table = np.zeros_like(counts)
            table[wanted] = part
            full.append(table.reshape(shape))
        return Shrunk(*full)

    def table(self) -> tuple[FloatArray, FloatArray]:
        """Composite table and the totals of its columns; axes as asked and then by."""
        bound, shares = self.bound, self._shrunk.shares
        table = self._sum(shares, self._asked, bound.asked + bound.by)
        return table, self._sum(shares, bound.evidence, bound.by)

    def counted_table(self) -> FloatArray:
        """Number of records in each cell, axes as asked and then by."""
        return self._sum(self.counted, self._asked, self.bound.asked + self.bound.by)

    def share_with_value(self, has_value: Mapping[int, FloatArray]) -> float:
        """Composite probability that variables have a value, given the condition."""
        shares, vectors = self._shrunk.shares, dict(self.bound.evidence)
        for n, vector in has_value.items():
            vectors[n] = vectors[n] * vector if n in vectors else vector
        return float(self._sum(shares, vectors, ()) / self._sum(shares, self.bound.evidence, ()))

    def interval(
        self, value: FloatArray, level: float, model: FloatArray, bounds: Interval | None
    ) -> Interval:
        """Interval of a composite answer, widened by that of the model's answer in its part."""
        bound, parts, given, amounts = self.bound, self._shrunk, self.bound.evidence, self._asked
        is_mean = bound.query.verb == "E"
        axes, over = (bound.by, given) if is_mean else (bound.asked + bound.by, amounts)
        least, most = 0.0, 1.0
        if is_mean:
            n, variable = bound.asked[0], self.domain[bound.asked[0]]
            numbers = variable.numeric
            least, most = float(numbers.min()), float(numbers.max())
            padded = np.pad(numbers, (0, len(variable) - len(numbers)))
            amounts = amounts | {n: amounts.get(n, 1.0) * padded}
        squares = {n: v**2 for n, v in amounts.items()}
        mixed = {n: v * given.get(n, 1.0) for n, v in amounts.items()}
        own = parts.variance
        tails = (1.0 - level) / 2.0, (1.0 + level) / 2.0
        with np.errstate(invalid="ignore", divide="ignore"):
            variance = self._sum(own, squares, axes) - 2.0 * value * self._sum(own, mixed, axes)
            variance += value**2 * self._sum(own, {n: v**2 for n, v in given.items()}, bound.by)
            variance = np.maximum(variance, 0.0) / self._sum(parts.shares, given, bound.by) ** 2
            if is_mean:
                ends = [value + ndtri(tail) * np.sqrt(variance) for tail in tails]
            else:
                # Half a record each way, as Jeffreys has it: none of many is not proof of never.
                worth = value * (1.0 - value) / variance - 1.0
                worth = np.where(np.isfinite(worth), np.maximum(worth, 0.5), self.number)
                pair = worth * value + 0.5, worth * (1.0 - value) + 0.5
                ends = [betaincinv(*pair, tail) for tail in tails]
            below, above = (np.maximum(away, 0.0) for away in (value - ends[0], ends[1] - value))
            if bounds is not None:
                shares = self._sum(parts.shares, over, axes)
                part = np.nan_to_num(self._sum(parts.model_part, over, axes) / shares)
                below = np.hypot(below, part * (model - bounds.low))
                above = np.hypot(above, part * (bounds.high - model))
        low, high = np.maximum(value - below, least), np.minimum(value + above, most)
        return Interval(np.asarray(low), np.asarray(high), level, 0)

    def share_lacking(self) -> float:
        """Share of the records that may meet the condition but lack a value of the question."""
        met = {n: vector > 0.0 for n, vector in self.bound.evidence.items()}
        return self.counts.share_lacking(self.rows + self.cells, met)


def fill_rounded(counts: FloatArray, shares: FloatArray) -> FloatArray:
    """Put what the model expects, at most 2, into cells that rounding shows as 0.

    Examples
    --------
    >>> fill_rounded(np.array([[95.0, 0.0, 0.0]]), np.array([[0.94, 0.05, 0.01]])).round(2)
    array([[95.  ,  2.  ,  1.01]])
    """
    seen = (shares * (counts > 0.0)).sum(axis=1, keepdims=True)
    rate = counts.sum(axis=1, keepdims=True) / np.maximum(seen, 1e-300)
    return np.where(counts > 0.0, counts, np.minimum(shares * rate, 2.0))


def describe_lacking(share: float, has_condition: bool, at_least: bool = False) -> tuple[str, ...]:
    """Say how many records are not in a count, where they are some.

    ``at_least``: those that lack a value of the condition are not known.

    Examples
    --------
    >>> describe_lacking(0.125, True)
    ('12 % of the records that may meet the condition lack a value: only the model fills them in.',)
    """
    if share < SAID_SHARE:
        return ()
    which = "the records that may meet the condition" if has_condition else "the records"
    percent = f"{'At least ' * at_least}{100.0 * share:.2g}"
    return (f"{percent} % of {which} lack a value: only the model fills them in.",)
