"""Basis of an answer of a model from tables: published, implied, identified or open."""

from collections.abc import Iterator, Mapping, Sequence
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


class TableBounds(NamedTuple):
    """Ranges of the cells of a table over all joints that have the given tables.

    Parameters
    ----------
    low, high : array
        The ends, in the shape of the table; nan where the condition is impossible.
    sharp : bool
        Whether all ends are reached; if false, some are outer bounds.
    slack : float
        By how much cells of the given tables may differ, as a share of the total.

    Examples
    --------
    >>> TableBounds(np.zeros(2), np.ones(2), True, 0.0).sharp
    True
    """

    low: FloatArray
    high: FloatArray
    sharp: bool
    slack: float


class _Published(NamedTuple):
    """A table that holds all variables of a question, and the answer that it gives."""

    table: int
    value: FloatArray


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
        if self._published is not None or (self._marginals is None and self._is_held):
            return "published"
        found = self._ranges
        if found is not None and _is_narrow(found, self._span):
            return "implied"
        return "open" if self.tables.identified is None else "identified"

    @cached_property
    def bounds(self) -> AnswerBounds | TableBounds | None:
        """Range over all joints with these tables; None where it is published, or not known."""
        if self._published is not None and not self._is_rounded:
            return None
        return self._ranges

    @cached_property
    def text(self) -> str:
        """Basis of the answer, in one sentence."""
        match self.name:
            case "published":
                said = self._describe_published()
            case "implied":
                said = f"every joint with these tables gives {self._other_value() or 'it'}"
            case "identified":
                said = (self.tables.identified or "").rstrip(".")
            case _:
                said = self._describe_hole()
        more = "" if self.name == "implied" else self._describe_range()
        where = f" at rank {self.rank}" if self.name == "identified" else ""
        return f"{self.name}{where}: {said}{more}{self._describe_slack()}"

    # What is asked

    @property
    def _marginals(self) -> "Marginals | None":
        return self.tables.marginals

    @cached_property
    def _used(self) -> frozenset[int]:
        """Variables asked and given, by position in the tables."""
        bound = self.bound
        named = {*bound.asked, *bound.against, *bound.by, *bound.events}
        if not named and bound.query.verb == "sample":
            named = set(range(len(self.domain)))
        if not named and bound.query.verb == "argmax":
            named = {n for n in range(len(self.domain)) if n not in bound.evidence}
        names = [self.domain.names[n] for n in {*named, *bound.evidence}]
        return frozenset({*self.tables.domain.indices(names), *self.tables.evidence})

    @cached_property
    def _holders(self) -> list[int]:
        """Positions of tables that hold all variables, those of most records first."""
        kept = self._marginals
        if kept is None:
            return []
        return [i for i in by_records(kept) if self._used <= set(kept.index_subsets[i])]

    @property
    def _is_held(self) -> bool:
        return any(self._used <= set(subset) for subset in self.tables.subsets)

    @property
    def _is_numeric(self) -> bool:
        return self.bound.query.verb in ("P", "E")

    @cached_property
    def _span(self) -> float:
        """How far apart two answers can be at all."""
        if self.bound.query.verb != "E":
            return 1.0
        numbers = self.domain[self.bound.asked[0]].numeric
        return float(np.ptp(numbers)) or 1.0

    @cached_property
    def _axes(self) -> tuple[int, ...]:
        """Variables of the axes of the answer, by position in the model."""
        bound = self.bound
        return bound.by if bound.query.verb == "E" else bound.asked + bound.by

    def _shape(self) -> list[int]:
        return [self.domain.shape[n] for n in self._axes]

    def _columns(self) -> Iterator[tuple[Vectors, list[Vectors]]]:
        """Yield the condition, then the numerators under it, for each combination given."""
        domain, bound = self.domain, self.bound
        for column in np.ndindex(*(domain.shape[n] for n in bound.by)):
            given = dict(bound.evidence)
            for n, i in zip(bound.by, column, strict=True):
                given[n] = given.get(n, 1.0) * np.eye(domain.shape[n])[i]
            above = _multiplied(given, bound.events)
            if bound.query.verb == "E":
                cells = [_multiplied(above, {bound.asked[0]: self._numbers_of_mean})]
            else:
                cells = [
                    _multiplied(
                        above,
                        {
                            n: np.eye(domain.shape[n])[i]
                            for n, i in zip(bound.asked, cell, strict=True)
                        },
                    )
                    for cell in np.ndindex(*(domain.shape[n] for n in bound.asked))
                ]
            yield self._in_tables(given), [self._in_tables(each) for each in cells]

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

    # Where it stands

    @cached_property
    def _published(self) -> _Published | None:
        """The table that gives the answer; None if there is none, or cells were held back."""
        kept = self._marginals
        if kept is None:
            return None
        for i in self._holders:
            if not self._is_numeric:
                if kept.unknown_of(i) is None:
                    return _Published(i, np.empty(0))
                continue
            value = self._read_off(kept, i)
            if value is not None:
                return _Published(i, value)
        return None

    def _read_off(self, kept: "Marginals", i: int) -> FloatArray | None:
        """The answer that one table gives; None where cells that it needs are not known."""
        table = KnownTable.of(kept, i)
        if prod(self._shape()) > MOST_READ_CELLS:
            return None if table.has_unknown else np.asarray(np.nan)
        if not np.isfinite(self._numbers_of_mean).all():
            return None
        columns = []
        for given, cells in self._columns():
            below = table.expect(given)
            above = [table.expect(each) for each in cells]
            if below is None or any(each is None for each in above):
                return None
            columns.append([each / below if below > 0 else np.nan for each in above])  # type: ignore[operator]
        return self._arrange(columns)

    @property
    def _numbers_of_mean(self) -> FloatArray:
        verb, asked = self.bound.query.verb, self.bound.asked
        if verb != "E":
            return np.empty(0)
        variable = self.domain[asked[0]]
        return np.pad(variable.numeric, (0, len(variable) - len(variable.values)))

    def _arrange(self, columns: Sequence[Sequence[float]] | FloatArray) -> FloatArray:
        """Numbers by column, then by cell, as an array with the axes of the answer."""
        return np.array(columns, dtype=np.float64).T.reshape(self._shape())

    @property
    def _is_rounded(self) -> bool:
        kept = self._marginals
        at = self._published
        return kept is not None and at is not None and bool(kept.rounding[at.table] > 0)

    @cached_property
    def _ranges(self) -> AnswerBounds | TableBounds | None:
        kept = self._marginals
        if kept is None or not self._is_numeric:
            return None
        size = prod(self._shape())
        if size > MOST_BOUNDED_CELLS or not np.isfinite(self._numbers_of_mean).all():
            return None
        columns = list(self._columns())
        cells = [cell for _, below in columns for cell in below]
        given = [above for above, below in columns for _ in below]
        every = [self._snap(b) for b in bound_answers(kept, cells, given)]
        if not self._axes:
            return every[0]
        wide = len(every) // len(columns)
        return TableBounds(
            self._arrange(np.reshape([each.low for each in every], (-1, wide))),
            self._arrange(np.reshape([each.high for each in every], (-1, wide))),
            all(each.sharp for each in every),
            max(each.slack for each in every),
        )

    def _snap(self, found: AnswerBounds) -> AnswerBounds:
        """Move the ends of a probability that are 0 or 1 but for rounding onto these."""
        if self.bound.query.verb != "P":
            return found
        low = 0.0 if found.low < IMPLIED_WIDTH else found.low
        high = 1.0 if found.high > 1.0 - IMPLIED_WIDTH else found.high
        return replace(found, low=low, high=high)

    # In words

    def _describe_published(self) -> str:
        at, kept = self._published, self._marginals
        if at is None or kept is None:
            return "one table holds all of it"
        names = _list(kept.subsets[at.table])
        how = ", rounded" if self._is_rounded else ", of a sample" if kept.noisy else ""
        said = self._other_value()
        return f"in the table of {names}{how}" + (f", which gives {said}" if said else "")

    def _other_value(self) -> str:
        """What the tables give where the model does not meet them; else nothing."""
        gap = self._gap()
        if not gap:
            return ""
        them = "them" if self.name == "implied" else "it"
        if self._axes:
            far = f"other numbers (up to {format_number(gap)} apart)"
            return f"{far}: this model does not meet {them}"
        low, high = self._allowed()
        given = float((low + high) / 2) if self._published is None else float(self._published.value)
        return f"{format_number(given)}: this model does not meet {them}"

    def _gap(self) -> float:
        """How far the answer is from what the tables allow; 0 where that is next to nothing."""
        if not self._is_numeric:
            return 0.0
        low, high = self._allowed()
        value = np.asarray(self.value, dtype=np.float64)
        with np.errstate(invalid="ignore"):
            off = np.nan_to_num(np.maximum(low - value, value - high))
        # Tables that are met to a millionth of their total leave more to a rare condition.
        rare = RARE_COLUMN if self.bound.by else self.evidence
        gap = float(off.max(initial=0.0))
        return gap if gap > MET * self._span / max(rare, MET) else 0.0

    def _allowed(self) -> tuple[FloatArray, FloatArray]:
        """Between which numbers the answer of a model that meets the tables lies."""
        found, at, kept = self._ranges_at_hand(), self._published, self._marginals
        if found is not None:
            return np.asarray(found.low), np.asarray(found.high)
        if at is None or kept is None:
            return np.asarray(-np.inf), np.asarray(np.inf)
        chance = 0.0
        if kept.noisy:
            records = kept.totals[at.table] if kept.counted[at.table] else 0.0
            chance = _FAR * self._span / (2.0 * sqrt(records)) if records > 0 else np.inf
            chance /= sqrt(max(self.evidence, MET))
        return at.value - chance, at.value + chance

    def _ranges_at_hand(self) -> AnswerBounds | TableBounds | None:
        return self._ranges if self._published is None or self._is_rounded else None

    def _describe_hole(self) -> str:
        """Why the tables do not give the answer."""
        kept = self._marginals
        if self._is_held and kept is not None:
            names = _list(kept.subsets[self._holders[0]])
            return f"cells of the table of {names} that it needs were held back"
        subsets = [set(subset) for subset in self.tables.subsets]
        own = self.tables.domain.names
        used = sorted(self._used)
        apart = [pair for pair in combinations(used, 2) if not any(set(pair) <= s for s in subsets)]
        if apart and len(used) > 2:
            pairs = [f"{own[a]} and {own[b]}" for a, b in apart[:2]]
            more = f" (and {plural(len(apart) - 2, 'more pair')})" if len(apart) > 2 else ""
            return f"no table holds {', or '.join(pairs)}{',' * (len(pairs) > 1)} together{more}"
        chosen = [own[n] for n in used]
        if len(chosen) == 1:
            return f"no table holds {chosen[0]}"
        return f"no table holds {_list(chosen)} together"

    def _describe_range(self) -> str:
        if self.name == "published" and not self._is_rounded:
            return ""
        found = self._ranges
        if found is None:
            return self._describe_lack()
        gives = "any joint with these tables gives"
        if self.name == "identified":
            gives = "joints of any rank with these tables give"
        if isinstance(found, TableBounds):
            reach = f"what {gives}"
            if not found.sharp:
                reach = "bounds of what joints with these tables give"
            return f"; in parentheses {reach}{self._describe_miss()}"
        if isnan(found.low):
            return "; in every joint with these tables the evidence has probability zero"
        ends = format_interval(float(self.value), found.low, found.high)[1:]
        low, high = (
            format_number(end) if end == round(end) else shown
            for end, shown in zip((found.low, found.high), ends, strict=True)
        )
        if not found.sharp and self.bound.query.verb == "P" and found.high - found.low >= 1:
            return "; no bound on it was found"
        if not found.sharp:
            gives = "no joint with these tables gives a number outside"
        return f"; {gives} {low} to {high}{self._describe_miss()}"

    def _describe_miss(self) -> str:
        """Say where the answer is outside its range."""
        return ", which this model is outside of: it does not meet them" if self._gap() else ""

    def _describe_lack(self) -> str:
        """Why there is no range."""
        if not self._is_numeric:
            return ""
        if self._marginals is None:
            return "; without a range, because the cells of the tables are not kept with the model"
        size = prod(self._shape())
        if size > MOST_BOUNDED_CELLS:
            return f"; without ranges for {plural(size, 'cell')}: ask for fewer at a time"
        return ""

    def _describe_slack(self) -> str:
        found = self._ranges_at_hand()
        if found is None or not found.slack > 0:
            return ""
        return f" (cells of the tables may be off by {self.tables.describe_slack(found.slack)})"


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

    @property
    def has_unknown(self) -> bool:
        """Whether some cells are not known."""
        return len(self.unknown) > 0

    def expect(self, vectors: Mapping[int, FloatArray]) -> float | None:
        """Expectation of a product of functions of single variables; None if it is not known."""
        table = self.shares
        weight = np.ones(())
        for axis, n in enumerate(self.subset):
            vector = vectors.get(n, np.ones(self.shares.shape[axis]))
            weight = np.multiply.outer(weight, vector)
        if self.has_unknown and not self._is_given_by_sums(weight.ravel()[self.unknown]):
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


def _is_narrow(found: AnswerBounds | TableBounds, span: float) -> bool:
    """Whether a range is one value; impossible columns of a table count as none."""
    width = np.asarray(found.high) - np.asarray(found.low)
    return bool(np.isfinite(width).any() and np.nanmax(width) < IMPLIED_WIDTH * span)


def _multiplied(*parts: Mapping[int, FloatArray]) -> Vectors:
    """Product of functions of single variables."""
    found: Vectors = {}
    for part in parts:
        for n, vector in part.items():
            found[n] = found[n] * vector if n in found else np.asarray(vector, dtype=np.float64)
    return found
