"""Basis of an answer of a model from tables: published, implied, identified or open."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import isnan, prod, sqrt
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.domain import Domain
from rejoint.language.bind import BoundQuery
from rejoint.queries.answer_bounds import AnswerBounds, bound_answers
from rejoint.text import format_interval, format_number, plural

if TYPE_CHECKING:
    from rejoint.marginals.marginals import Marginals
    from rejoint.pmf.given_tables import GivenTables

FloatArray = NDArray[np.float64]
Vectors = dict[int, FloatArray]

BasisName = Literal["published", "implied", "identified", "open"]

#: Cells of a table that is an answer up to which each gets its range.
MOST_BOUNDED_CELLS = 200

#: Width of a range, as a share of what the answer can be at all, below which it is one value.
IMPLIED_WIDTH = 1e-6

#: Cells of a table that is an answer up to which it is compared with the published one.
MOST_READ_CELLS = 2_000

#: Unknown cells of a table up to which it is tested whether published sums give what is asked.
MOST_UNKNOWN_CELLS = 500

#: Share of the total to which tables count as met.
MET = 1e-5

#: How rare the columns of a table are taken to be, where it is compared with the published one.
RARE_COLUMN = 0.01

_FAR = 4.0  # standard errors from a noisy table, beyond which a model does not meet it


@dataclass(frozen=True, eq=False)
class AnswerBasis:
    """Basis of one answer, found when it is first needed.

    Parameters
    ----------
    tables : GivenTables
        The tables of the model.
    domain : Domain
        Of the model, to whose positions the question refers.
    bound : BoundQuery
        The question.
    value : object
        The answer of the model.
    rank : int
        Of the model.
    evidence : float
        Probability of what is given.

    Examples
    --------
    >>> import rejoint as rj
    >>> tables = rj.Marginals.from_tables({"a": {"x": 5, "y": 5}, "b": {"x": 2, "y": 8}})
    >>> p = rj.LowRankPMF([1.0], [[[0.5], [0.5]], [[0.2], [0.8]]], tables.domain)
    >>> answer = p.with_tables(tables).ask("P(a = x | b = y)")
    >>> answer.basis, answer.bounds.low, answer.bounds.high
    ('open', 0.375, 0.625)
    """

    tables: "GivenTables"
    domain: Domain
    bound: BoundQuery
    value: Any
    rank: int
    evidence: float = 1.0

    @cached_property
    def name(self) -> BasisName:
        """The basis in one word."""
        if self._published is not None or (self.tables.marginals is None and self._is_held):
            return "published"
        if self._ranges is not None:
            # Impossible columns of a table are not narrow, and not wide either.
            width = np.asarray(self._ranges.high) - np.asarray(self._ranges.low)
            if np.isfinite(width).any() and np.nanmax(width) < IMPLIED_WIDTH * self._span:
                return "implied"
        return "open" if self.tables.identified is None else "identified"

    @cached_property
    def bounds(self) -> AnswerBounds | None:
        """Range over all joints with these tables; None where it is published, or not known."""
        return self._ranges if self._published is None or self._is_rounded else None

    @cached_property
    def text(self) -> str:
        """Basis of the answer, in one sentence."""
        match self.name:
            case "published":
                reason = self._describe_published()
            case "implied":
                reason = f"every joint with these tables gives {self._other_value() or 'it'}"
            case "identified":
                reason = (self.tables.identified or "").rstrip(".")
            case _:
                reason = self._describe_hole()
        more = "" if self.name == "implied" else self._describe_range()
        if self.bounds is not None and self.bounds.slack > 0:
            slack = self.tables.describe_slack(self.bounds.slack)
            more += f" (cells of the tables may be off by {slack})"
        where = f" at rank {self.rank}" if self.name == "identified" else ""
        return f"{self.name}{where}: {reason}{more}"

    # What is asked

    @property
    def _is_numeric(self) -> bool:
        return self.bound.query.verb in ("P", "E")

    @property
    def _is_mean(self) -> bool:
        return self.bound.query.verb == "E"

    @cached_property
    def _used(self) -> frozenset[int]:
        """Variables asked and given, by position in the tables."""
        bound = self.bound
        named = {*bound.asked, *bound.against, *bound.by, *bound.events}
        if not named and bound.query.verb in ("argmax", "sample"):
            named = set(range(len(self.domain)))
        names = [self.domain.names[n] for n in {*named, *bound.evidence}]
        return frozenset({*self.tables.domain.indices(names), *self.tables.evidence})

    @property
    def _is_held(self) -> bool:
        return any(self._used <= set(subset) for subset in self.tables.subsets)

    @cached_property
    def _numbers(self) -> FloatArray:
        """Numbers of the levels whose mean is asked."""
        if not self._is_mean:
            return np.zeros(1)
        variable = self.domain[self.bound.asked[0]]
        return np.pad(variable.numeric, (0, len(variable) - len(variable.values)))

    @cached_property
    def _span(self) -> float:
        """How far apart two answers can be at all."""
        return float(np.ptp(self._numbers)) or 1.0

    @cached_property
    def _shape(self) -> list[int]:
        axes = self.bound.by if self._is_mean else self.bound.asked + self.bound.by
        return [self.domain.shape[n] for n in axes]

    @cached_property
    def _columns(self) -> list[tuple[Vectors, list[Vectors]]]:
        """The condition, then the numerators under it, for each combination given."""
        bound, columns = self.bound, []
        numerators = (
            [{bound.asked[0]: self._numbers}] if self._is_mean else self._cells(bound.asked)
        )
        for column in self._cells(bound.by):
            given = _multiplied(bound.evidence, column)
            above = (_multiplied(given, bound.events, cell) for cell in numerators)
            columns.append((self._in_tables(given), [self._in_tables(cell) for cell in above]))
        return columns

    def _cells(self, axes: Sequence[int]) -> list[Vectors]:
        """Indicators of each combination of levels of some variables."""
        eyes = {n: np.eye(self.domain.shape[n]) for n in axes}
        cells = np.ndindex(*(self.domain.shape[n] for n in axes))
        return [{n: eyes[n][i] for n, i in zip(axes, cell, strict=True)} for cell in cells]

    @cached_property
    def _orders(self) -> dict[int, tuple[int, NDArray[np.intp]]]:
        """Where the tables have each variable of the question, and the order of its levels."""
        bound = self.bound
        named = {*bound.asked, *bound.by, *bound.events, *bound.evidence}
        return self.tables.orders(self.domain, named)

    def _in_tables(self, vectors: Mapping[int, FloatArray]) -> Vectors:
        """Vectors by position in the tables, with the evidence of a conditioned model."""
        own = {self._orders[n][0]: vector[self._orders[n][1]] for n, vector in vectors.items()}
        return _multiplied(own, self.tables.evidence)

    def _arrange(self, cells: Sequence[float]) -> FloatArray:
        """Numbers by column, then by cell, as an array with the axes of the answer."""
        rows = np.reshape(np.array(cells, dtype=np.float64), (len(self._columns), -1))
        return np.asarray(rows.T.reshape(self._shape))

    # What the tables give

    @cached_property
    def _published(self) -> tuple[int, FloatArray] | None:
        """The first table that gives the answer, and what it gives; None where none does."""
        tables = self.tables.marginals
        if tables is None:
            return None
        for i in by_records(tables):
            if self._used <= set(tables.index_subsets[i]):
                value = self._read_off(KnownTable.of(tables, i))
                if value is not None:
                    return i, value
        return None

    def _read_off(self, table: "KnownTable") -> FloatArray | None:
        """The answer that one table gives; None where cells that it needs are not known."""
        if not self._is_numeric or prod(self._shape) > MOST_READ_CELLS:
            return None if len(table.unknown) else np.asarray(np.nan)
        if not np.isfinite(self._numbers).all():
            return None
        shares = []
        for given, cells in self._columns:
            below = table.expect(given)
            for cell in cells:
                above = table.expect(cell)
                if below is None or above is None:
                    return None
                shares.append(above / below if below > 0 else np.nan)
        return self._arrange(shares)

    @property
    def _is_rounded(self) -> bool:
        at, tables = self._published, self.tables.marginals
        return at is not None and tables is not None and bool(tables.rounding[at[0]] > 0)

    @cached_property
    def _ranges(self) -> AnswerBounds | None:
        tables = self.tables.marginals
        if tables is None or not self._is_numeric or prod(self._shape) > MOST_BOUNDED_CELLS:
            return None
        if not np.isfinite(self._numbers).all():
            return None
        cells = [cell for _, below in self._columns for cell in below]
        given = [above for above, below in self._columns for _ in below]
        every = [self._snap(b) for b in bound_answers(tables, cells, given)]
        if not self._shape:
            return every[0]
        low, high = self._arrange([b.low for b in every]), self._arrange([b.high for b in every])
        slack = max(each.slack for each in every)
        return AnswerBounds(low, high, all(each.sharp for each in every), slack)

    def _snap(self, range_: AnswerBounds) -> AnswerBounds:
        """Move the ends of a probability that are 0 or 1 but for rounding onto these."""
        if self._is_mean:
            return range_
        low = 0.0 if range_.low < IMPLIED_WIDTH else range_.low
        high = 1.0 if range_.high > 1.0 - IMPLIED_WIDTH else range_.high
        return replace(range_, low=low, high=high)

    @cached_property
    def _limits(self) -> tuple[FloatArray, FloatArray]:
        """Between which numbers the answer of a model that meets the tables lies."""
        if self.bounds is not None:
            return np.asarray(self.bounds.low), np.asarray(self.bounds.high)
        tables = self.tables.marginals
        if self._published is None or tables is None or not self._is_numeric:
            return np.asarray(-np.inf), np.asarray(np.inf)
        (i, value), chance = self._published, 0.0
        if tables.noisy:
            records = tables.totals[i] if tables.counted[i] else 0.0
            chance = _FAR * self._span / (2.0 * sqrt(records)) if records > 0 else np.inf
            chance /= sqrt(max(self.evidence, MET))
        return value - chance, value + chance

    @cached_property
    def _gap(self) -> float:
        """How far the answer is from what the tables allow; 0 where that is next to nothing."""
        if not self._is_numeric:
            return 0.0
        value = np.asarray(self.value, dtype=np.float64)
        with np.errstate(invalid="ignore"):
            low, high = self._limits
            off = np.nan_to_num(np.maximum(low - value, value - high))
        # Tables that are met to a millionth of their total leave more to a rare condition.
        rare = RARE_COLUMN if self.bound.by else self.evidence
        gap = float(off.max(initial=0.0))
        return gap if gap > MET * self._span / max(rare, MET) else 0.0

    # In words

    def _describe_published(self) -> str:
        at, tables = self._published, self.tables.marginals
        if at is None or tables is None:
            return "one table holds all of it"
        names = _list(tables.subsets[at[0]])
        how = ", rounded" if self._is_rounded else ", of a sample" if tables.noisy else ""
        other = self._other_value()
        return f"in the table of {names}{how}" + (f", which gives {other}" if other else "")

    def _other_value(self) -> str:
        """What the tables give where the model does not meet them; else nothing."""
        if not self._gap:
            return ""
        them = "them" if self.name == "implied" else "it"
        if self._shape:
            far = f"other numbers (up to {format_number(self._gap)} apart)"
            return f"{far}: this model does not meet {them}"
        value = sum(self._limits) / 2 if self._published is None else self._published[1]
        return f"{format_number(float(value))}: this model does not meet {them}"

    def _describe_hole(self) -> str:
        """Why the tables do not give the answer."""
        tables, own = self.tables.marginals, self.tables.domain.names
        if self._is_held and tables is not None:
            at = next(i for i in by_records(tables) if self._used <= set(tables.index_subsets[i]))
            names = _list(tables.subsets[at])
            return f"cells of the table of {names} that it needs were held back"
        subsets, used = [set(subset) for subset in self.tables.subsets], sorted(self._used)
        apart = [pair for pair in combinations(used, 2) if not any(set(pair) <= s for s in subsets)]
        if apart and len(used) > 2:
            pairs = [f"{own[a]} and {own[b]}" for a, b in apart[:2]]
            more = f" (and {plural(len(apart) - 2, 'more pair')})" if len(apart) > 2 else ""
            return f"no table holds {', or '.join(pairs)}{',' * (len(pairs) > 1)} together{more}"
        return f"no table holds {_list([own[n] for n in used])}{' together' * (len(used) > 1)}"

    def _describe_range(self) -> str:
        if self.name == "published" and not self._is_rounded:
            return ""
        size, found = prod(self._shape), self._ranges
        if found is None:
            if self._is_numeric and self.tables.marginals is None:
                return (
                    "; without a range, because the cells of the tables are not kept with the model"
                )
            if self._is_numeric and size > MOST_BOUNDED_CELLS:
                return f"; without ranges for {plural(size, 'cell')}: ask for fewer at a time"
            return ""
        # Where the answer is outside its range, this is said.
        miss = ", which this model is outside of: it does not meet them" if self._gap else ""
        gives = "any joint with these tables gives"
        if self.name == "identified":
            gives = "joints of any rank with these tables give"
        if self._shape:
            reach = (
                f"what {gives}" if found.sharp else "bounds of what joints with these tables give"
            )
            return f"; in parentheses {reach}{miss}"
        if isnan(found.low):
            return "; in every joint with these tables the evidence has probability zero"
        if not found.sharp and not self._is_mean and found.high - found.low >= 1:
            return "; no bound on it was found"
        ends = format_interval(float(self.value), found.low, found.high)[1:]
        low, high = (
            format_number(end) if end == round(end) else shown
            for end, shown in zip((found.low, found.high), ends, strict=True)
        )
        if not found.sharp:
            gives = "no joint with these tables gives a number outside"
        return f"; {gives} {low} to {high}{miss}"


def by_records(tables: "Marginals") -> list[int]:
    """Return the positions of tables that have records, those of most records first.

    Examples
    --------
    >>> from rejoint import Marginals
    >>> by_records(Marginals.from_tables({("a", "b"): [[1, 2], [3, 4]], "c": [60, 40]}))
    [1, 0]
    """
    found = np.flatnonzero(tables.totals > 0).tolist()
    return sorted(found, key=lambda i: (not tables.counted[i], -tables.totals[i]))


class KnownTable(NamedTuple):
    """One table, and which of its cells are not known.

    Examples
    --------
    >>> nan = float("nan")
    >>> from rejoint import Marginals
    >>> store = Marginals.from_tables({"a": {"x": 3, "y": nan, "z": nan}}, suppressed=(0, 9))
    >>> KnownTable.of(store, 0).expect({0: np.array([1.0, 0.0, 0.0])})
    0.3...
    >>> KnownTable.of(store, 0).expect({0: np.array([0.0, 1.0, 0.0])}) is None
    True
    """

    subset: tuple[int, ...]
    shares: FloatArray
    unknown: NDArray[np.intp]
    sums: FloatArray  # (known sums, unknown cells)

    @classmethod
    def of(cls, kept: "Marginals", i: int) -> "KnownTable":
        """Make it of the i-th table."""
        cells = kept.unknown_of(i)
        unknown = np.empty(0, dtype=np.intp) if cells is None else cells.places
        sums = np.zeros((0 if cells is None else len(cells.sums), len(unknown)))
        for row, (members, _) in zip(sums, () if cells is None else cells.sums, strict=True):
            row[members] = 1.0
        return cls(kept.index_subsets[i], kept.shares(i), unknown, sums)

    def expect(self, vectors: Mapping[int, FloatArray]) -> float | None:
        """Expectation of a product of functions of single variables; None if it is not known."""
        table = self.shares
        weight = np.ones(())
        for axis, n in enumerate(self.subset):
            vector = vectors.get(n, np.ones(self.shares.shape[axis]))
            weight = np.multiply.outer(weight, vector)
        if len(self.unknown) and not self._is_given_by_sums(weight.ravel()[self.unknown]):
            return None
        return float((table * weight).sum())

    def _is_given_by_sums(self, needed: FloatArray) -> bool:
        """Whether what is needed of unknown cells is a combination of known sums."""
        if not needed.any():
            return True
        if not len(self.sums) or len(needed) > MOST_UNKNOWN_CELLS:
            return False
        found = np.linalg.lstsq(self.sums.T, needed, rcond=None)[0]
        return bool(np.abs(self.sums.T @ found - needed).max() < 1e-9)


def _list(names: Sequence[str]) -> str:
    """Names in a sentence."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _multiplied(*parts: Mapping[int, FloatArray]) -> Vectors:
    """Product of functions of single variables."""
    found: Vectors = {}
    for part in parts:
        for n, vector in part.items():
            found[n] = found[n] * vector if n in found else np.asarray(vector, dtype=np.float64)
    return found
