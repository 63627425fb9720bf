"""Blocks as arrays with one axis for each variable.

The paths of the rows (or columns) of a block become variables in one of four ways. Labels that are
repeated under several others are crossed with them: two variables. Labels that differ from group to
group are one variable with nested levels, unless the groups add up to the same numbers: then each
group is a variable of its own, in a table of its own. A label that spans everything is a name.

Totals among the levels are found by their sums: a level that equals the sum of its neighbors in
every line is a total, in any language. How sure that is depends on how many numbers agree and how
large they are: ``score`` is the number of decimal places by which chance is excluded.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.marginals.grid import ALL, Block, Path
from rejoint.marginals.sheet import NIL, Cell, find_decimal, read_cell
from rejoint.marginals.vocabulary import (
    BETWEEN,
    is_count_word,
    is_total_word,
    name_of_labels,
    same_text,
    scale_word,
    sort_of_things,
    unit_word,
)
from rejoint.messages import Argument
from rejoint.text import cite, clean_label, show

Array = NDArray[np.float64]

#: Decimal places of chance above which a sum is a total, and above which it may be one.
SURE, POSSIBLE = 3.0, 1.0
_WORD = 5.0  # what a word is worth, in places
_NEARLY = 0.005  # share of a number within which others nearly add up to it
_MANY = 400  # levels above which only sums of all the others are looked for


@dataclass
class Sums:
    """Which levels are sums of which: children of each total, and sums that may be chance.

    ``others`` are further divisions of a total, coarser than its children.
    """

    children: dict[int, tuple[int, ...]] = field(default_factory=dict)
    roots: tuple[int, ...] = ()
    doubtful: tuple[tuple[int, tuple[int, ...]], ...] = ()
    others: tuple[tuple[int, tuple[int, ...]], ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether one level is the total of all others."""
        return len(self.roots) == 1 and self.roots[0] in self.children

    @property
    def leaves(self) -> list[int]:
        """Levels that are no totals, in their order."""
        return sorted(leaf for root in self.roots for leaf in self.leaves_of(root))

    def leaves_of(self, level: int) -> list[int]:
        """Levels that add up to a level."""
        if level not in self.children:
            return [level]
        return sorted(leaf for c in self.children[level] for leaf in self.leaves_of(c))


def find_sums(
    values: Array,
    digit: float,
    words: Array | NDArray[np.bool_],
    *,
    exact: bool = False,
    parts: Array | None = None,
    most: Array | None = None,
) -> Sums:
    """Find which rows of an array are sums of rows next to them, once these are taken together.

    Parameters
    ----------
    values : array (levels, lines)
        The numbers, NaN where they are not known.
    digit : float
        The unit to which numbers are rounded.
    words : array (levels,)
        How much each label is that of a total: 1 for a usual word, less for a hint, 0 for others.
    exact : bool
        Whether totals add up exactly if they do at all.
    parts : array (levels, lines), optional
        The numbers as parts of sums: those that are not listed are zero there.
    most : array (levels, lines), optional
        What numbers that are not known may be at the most.

    Examples
    --------
    >>> table = np.array([[30.0, 70, 11], [12, 40, 5], [18, 30, 6]])
    >>> sums = find_sums(table, 1.0, np.zeros(3, dtype=bool))
    >>> sums.children, sums.leaves
    ({0: (1, 2)}, [1, 2])
    """
    active = list(range(len(values)))
    found = Sums()
    gone: set[int] = set()
    while len(active) > 2:
        equations = _equations(values, parts, most, active, digit, words, exact)
        sure = [e for e in equations if e[1] >= SURE]
        taken: set[int] = set()
        if not sure:
            found.doubtful = tuple(
                (active[i], tuple(active[k] for k in run))
                for size, score, i, run in equations
                if score >= POSSIBLE or size == len(active) - 1
            )
            break
        ready = [e for e in sure if not any(_is_part(other, e) for other in sure)] or sure
        for size, score, i, run in sorted(ready, key=lambda e: (e[0], -e[1])):
            if taken & {i, *run}:
                continue
            row, kept = active[i], tuple(active[k] for k in run)
            twins = [e for e in sure if e[0] == size and e[2] in run and i in e[3]]
            if any(e[1] >= score - 1e-9 for e in twins) and not words[row]:
                found.doubtful += ((row, kept),)
            gone |= {*kept}
            ways = [way for way in (found.children.get(row, ()), kept) if way]
            fine = max(reversed(ways), key=lambda way: sum(len(found.leaves_of(k)) for k in way))
            found.others += tuple((row, way) for way in ways if way is not fine)
            found.children[row] = fine
            taken |= {i, *run}
        if not taken:
            break
        active = [a for a in active if a not in gone]
    found.roots = tuple(active)
    return found


Equation = tuple[int, float, int, tuple[int, ...]]


def _is_part(one: Equation, other: Equation) -> bool:
    """Return whether the total of one sum is in the run of the other, which must then wait."""
    return one[2] in other[3] and not {one[2], *one[3]} & ({other[2], *other[3]} - {one[2]})


def _equations(
    values: Array,
    parts: Array | None,
    most: Array | None,
    active: list[int],
    digit: float,
    words: Array | NDArray[np.bool_],
    exact: bool,
) -> list[Equation]:
    """Return sums of runs right before or after a row: size, score, row and run."""
    part = values[active]
    size = len(active)
    added = part if parts is None else parts[active]
    known = ~np.isnan(added)
    filled = np.where(known, added, 0.0)
    # What is not known adds no more than this; infinity would not survive differences.
    room = np.where(known, 0.0, 1e12 if most is None else np.minimum(most[active], 1e12))
    start = np.zeros((1, part.shape[1]))
    total, count, above = (
        np.vstack([start, np.cumsum(rows, axis=0)]) for rows in (filled, known, room)
    )
    chance = np.log10(max(size * (size - 1), 1))
    coarse = rounding_base(values, 3) if digit >= 1.0 else 0.0
    found: list[Equation] = []
    for i in range(size):
        word = _WORD * float(words[active[i]])
        ends, begins = np.arange(i + 3, size + 1), np.arange(i - 1)
        first = np.concatenate([np.full(len(ends), i + 1), begins])
        last = np.concatenate([ends, np.full(len(begins), i)])
        if size > _MANY:
            first, last = (at[(first == 0) | (last == size)] for at in (first, last))
        sizes = last - first
        whole = (count[last] - count[first]) == sizes[:, None]
        sums, extra = (rows[last] - rows[first] for rows in (total, above))
        full = sizes == size - 1
        scores = _scores(part[i], sums, whole, extra, sizes, digit, exact, full, coarse)
        for k in np.flatnonzero(np.isfinite(scores)):
            run = tuple(range(int(first[k]), int(last[k])))
            found.append((len(run), float(scores[k]) - chance + word, i, run))
        if 0 < i < size - 1 and size <= _MANY:  # in the middle, of all others
            rest = [k for k in range(size) if k != i]
            sums, extra = (rows[rest].sum(axis=0, keepdims=True) for rows in (filled, room))
            whole = np.asarray(known[rest].all(axis=0, keepdims=True))
            every, sizes = np.ones(1, dtype=bool), np.array([size - 1])
            alone = exact or not word
            score = _scores(part[i], sums, whole, extra, sizes, digit, alone, every, coarse)[0]
            if np.isfinite(score) and (score > 0.0 or word):  # or one of them is a difference
                score = score if word else min(score, SURE - 0.1)
                found.append((size - 1, float(score) + word, i, tuple(rest)))
    return found


def _scores(
    claim: Array,
    sums: Array,
    whole: NDArray[np.bool_],
    extra: Array,
    sizes: NDArray[np.intp],
    digit: float,
    exact: bool,
    full: NDArray[np.bool_],
    coarse: float,
) -> Array:
    """Return by how many places each run adds up to the claim beyond chance; -inf where not."""
    there = ~np.isnan(claim)
    best = np.full(len(sums), -np.inf)
    gap, magnitude = np.abs(sums - claim), np.abs(claim)
    known = whole & there
    tolerances: list[Array] = [np.zeros(1)]
    if not exact:
        spread = np.sqrt(sizes + 1.0)[:, None]
        up_or_down = [1.5 * digit * spread] if digit > 1.0 else []  # at random
        near = np.maximum(_NEARLY * magnitude, 1.5 * coarse * spread)
        tolerances += [digit * spread, *up_or_down, np.where(full[:, None], near, 0.0)]
    for number, tolerance in enumerate(tolerances):
        limit = tolerance + 1e-9 * np.maximum(magnitude, 1.0)
        fits = known & (gap <= limit)
        beyond = (sums - claim > limit) | (claim - sums - extra > limit)
        wrong = (known & ~fits) | (~whole & there & beyond)
        places = np.log10(np.maximum(magnitude / (2.0 * tolerance + digit), 1.0))
        score = np.where(fits, places, 0.0).sum(axis=1) - 2.0 * wrong.sum(axis=1)
        if number == len(tolerances) - 1 and not exact:  # nearly the sum: never sure by itself
            score = np.minimum(score, 1.0)
        good = (wrong.sum(axis=1) <= 0.2 * fits.sum(axis=1)) & (fits & (magnitude > 0)).any(axis=1)
        best = np.maximum(best, np.where(good, score, -np.inf))
        # Where no line is known as a whole, a sum is neither shown nor excluded.
        open_ = ~known.any(axis=1) & ~wrong.any(axis=1) & (there & (magnitude > 0)).any()
        best = np.maximum(best, np.where(open_, 0.0, -np.inf))
    return best


def rounding_base(values: Array, least: int = 6) -> float:
    """Return the number of which all values are multiples; 1 where fewer than ``least`` are.

    Examples
    --------
    >>> rounding_base(np.array([15.0, 20, 35, 5, 110, 95, 60, 45])), rounding_base(np.arange(9.0))
    (5.0, 1.0)
    """
    known = values[~np.isnan(values)]
    known = known[known != 0]
    for base in (1000.0, 100.0, 50.0, 10.0, 5.0, 3.0):
        if len(known) >= least and np.all(known % base == 0):
            return base
    return 1.0


Marks = Mapping[str, tuple[float, float]]


_ARRAYS = ("values", "low", "high", "lines", "decimals", "signed")


@dataclass
class Facet:
    """An array with one axis for each variable, totals still among the levels.

    ``lines`` has the line of each cell, 0 where the file does not mention it.
    """

    names: list[str]
    labels: list[list[str]]
    values: Array
    low: Array
    high: Array
    lines: NDArray[np.intp]
    decimals: NDArray[np.intp]  # of each number; -1 for a mark of nil
    signed: NDArray[np.intp]  # 1 where a number has a percent sign
    digits: int
    percent: bool
    value: str = ""
    units: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    errors: Array | None = None
    grain: float | None = None  # unit of rounding, where numbers were multiplied
    sums: list[tuple[NDArray[np.intp], float]] = field(default_factory=list)  # of unknown cells
    parents: frozenset[str] = frozenset()  # labels that have others indented below them
    headings: frozenset[str] = frozenset()  # names that were labels over all others

    @property
    def whole(self) -> bool:
        """Whether all numbers are integers."""
        known = self.values[~np.isnan(self.values)]
        return self.digit == 1.0 and len(known) > 0 and bool(np.all(known == np.floor(known)))

    @property
    def digit(self) -> float:
        """The unit to which the numbers are rounded."""
        return float(10.0**-self.digits) if self.grain is None else self.grain

    def by_level(self, axis: int, array: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return the values, or an array like them, with a row for each level of an axis."""
        array = self.values if array is None else array
        return np.moveaxis(array, axis, 0).reshape(len(self.labels[axis]), -1)

    @property
    def printed(self) -> Array:
        """The values that the file mentions, NaN for others."""
        return np.where(self.lines > 0, self.values, np.nan)

    @property
    def standard_error(self) -> float | None:
        """The standard error of a cell, as the root mean square; None where there is none."""
        if self.errors is None or np.isnan(self.errors).all():
            return None
        return float(np.sqrt(np.nanmean(np.square(self.errors))))

    def sum_to(self, axes: Sequence[int], array: NDArray[Any] | None = None) -> Array:
        """Return the sums of the values, or of an array like them, for each cell of some axes."""
        gone = tuple(k for k in range(self.values.ndim) if k not in axes)
        return np.asarray((self.values if array is None else array).sum(axis=gone))

    def times(self, factor: Array | float, grain: float) -> "Facet":
        """Return the facet with all numbers multiplied, and their unit of rounding by ``grain``."""
        values, low, high = (array * factor for array in (self.values, self.low, self.high))
        return replace(self, values=values, low=low, high=high, grain=self.digit * grain)

    def take(self, axis: int, places: Sequence[int]) -> "Facet":
        """Return the facet with some of the levels of an axis."""
        labels = list(self.labels)
        labels[axis] = [labels[axis][i] for i in places]
        made = replace(self, labels=labels)
        for key in _ARRAYS:
            setattr(made, key, np.take(getattr(self, key), places, axis))
        return made

    def drop(self, axis: int, place: int) -> "Facet":
        """Return the facet at one level of an axis, without the axis."""
        part = self.take(axis, [place])
        for key in _ARRAYS:
            setattr(part, key, np.squeeze(getattr(part, key), axis))
        part.names = [name for k, name in enumerate(part.names) if k != axis]
        del part.labels[axis]
        return part

    def split(self, axis: int, parts: Sequence[Sequence[str]]) -> None:
        """Split levels into parts that another table has: only the sum of their cells is known."""
        sizes = [len(part) for part in parts]
        old = np.repeat(np.arange(len(parts)), sizes)
        shape = (*self.values.shape[:axis], len(old), *self.values.shape[axis + 1 :])
        place = np.moveaxis(np.arange(np.prod(shape)).reshape(shape), axis, 0)
        before = np.moveaxis(self.values, axis, 0)
        where = np.take(np.arange(self.values.size).reshape(self.values.shape), old, axis).ravel()
        self.sums = [(np.flatnonzero(np.isin(where, at)), value) for at, value in self.sums]
        for level in np.flatnonzero(np.array(sizes) > 1):
            rows = np.flatnonzero(old == level)
            for cell in np.ndindex(before.shape[1:]):
                value = before[(level, *cell)]
                if not np.isnan(value):
                    self.sums.append((place[(rows, *cell)], float(value)))
        several = np.array(sizes)[old] > 1
        mask = several.reshape([-1 if a == axis else 1 for a in range(self.values.ndim)])
        high = np.take(np.where(np.isnan(self.values), self.high, self.values), old, axis)
        self.values = np.where(mask, np.nan, np.take(self.values, old, axis))
        self.low = np.where(mask, 0.0, np.take(self.low, old, axis))
        self.high = np.where(mask, high, np.take(self.high, old, axis))
        for key in ("lines", "decimals", "signed"):
            setattr(self, key, np.take(getattr(self, key), old, axis))
        self.labels[axis] = [label for part in parts for label in part]


# BlockNumbers ----------------------------------------------------------------------------------


@dataclass
class BlockNumbers:
    """The numbers of a block: value, bounds, and what stood beside them."""

    cells: list[list[Cell]]
    values: Array
    digits: int
    percent: bool
    flags: dict[str, int]
    marks: dict[str, int]


def read_numbers(block: Block, marks: Marks, decimal: str | None) -> BlockNumbers:
    """Read the cells of a block with the decimal mark that they show, or that makes totals add up.

    Raise for a cell that is no number, and where two decimal marks are possible.
    """
    texts = [cell for row in block.cells for cell in row if isinstance(cell, str)]
    texts = [t for t in texts if t.strip() and t.strip().lower() not in marks]
    if decimal is not None:
        return _read_with(block, marks, decimal)
    shown, doubtful = find_decimal(texts)
    if any(_AMBIGUOUS.search(t) for t in texts):
        ways = {mark: _try_decimal(block, marks, mark) for mark in (".", ",")}
        sums = {mark: _count_sums(read.values) if read else -1 for mark, read in ways.items()}
        best = max(sums, key=lambda mark: sums[mark])
        if sums["."] != sums[","] and (shown is None or sums[shown] < sums[best]):
            shown = best
    if shown is None and block.sheet.delimiter == "," and doubtful.count(","):
        shown = "."  # where commas separate cells, they do not separate decimals
    said = [
        block.value,
        *block.titles,
        *block.units,
        *(label for path in block.columns for label in path),
    ]
    things = any(is_count_word(text) or sort_of_things(text) for text in said)
    if shown is None and things and max(map(scale_word, said)) == 1.0:
        shown = "," if "." in doubtful else "."  # counts have no decimals
    if shown is None:
        whole, part = doubtful.replace(".", "").replace(",", ""), doubtful.replace(",", ".")
        mark = "." if "." in doubtful else ","
        raise block.sheet.error(
            "{where}: {text!r} may be {whole} (thousands are separated) or {part} (a decimal "
            "{name}), and no other number of the table decides. Use {one} for {whole}, {other} "
            "for {part}.",
            text=doubtful,
            whole=whole,
            part=part,
            name="point" if mark == "." else "comma",
            one=Argument("decimal", "," if mark == "." else "."),
            other=Argument("decimal", mark),
        )
    return _read_with(block, marks, shown)


_AMBIGUOUS = re.compile(r"(?<!\d)[1-9]\d{0,2}[.,]\d{3}(?!\d)")


def _try_decimal(block: Block, marks: Marks, decimal: str) -> BlockNumbers | None:
    try:
        return _read_with(block, marks, decimal)
    except ValueError:
        return None


def _count_sums(values: Array) -> int:
    if values.size > 250_000:
        return 0
    none = [np.zeros(size, dtype=bool) for size in values.shape]
    return sum(
        len(find_sums(part, 1e-3, word, exact=True).children)
        for part, word in zip((values, values.T), none, strict=True)
    )


def _read_with(block: Block, marks: Marks, decimal: str) -> BlockNumbers:
    flags: dict[str, int] = {}
    seen: dict[str, int] = {}
    rows: list[list[Cell]] = []
    digits = 0
    for r, row in enumerate(block.cells):
        read = []
        for c, text in enumerate(row):
            if isinstance(text, float):
                cell = Cell(text, text, text, digits=_decimals(text))
            else:
                try:
                    cell = read_cell(text, marks, decimal)
                except ValueError:
                    raise _bad_cell(block, r, c, text) from None
            if cell.flag:
                held = flags if cell.known else seen
                flag = f"{cell.flag} for nil" if cell.flag in NIL else cell.flag
                held[flag] = held.get(flag, 0) + 1
            if cell.known:
                digits = max(digits, cell.digits)
            read.append(cell)
        rows.append(read)
    values = np.array([[cell.value for cell in row] for row in rows], dtype=float)
    known = [cell for row in rows for cell in row if cell.known]
    percent = any(cell.percent for cell in known)
    return BlockNumbers(rows, values.reshape(len(rows), -1), digits, percent, flags, seen)


def _decimals(value: float) -> int:
    text = repr(round(value, 9))
    return len(text.partition(".")[2]) if "e" not in text and not value.is_integer() else 0


def _bad_cell(block: Block, r: int, c: int, text: str) -> ValueError:
    names = [*block.row_names, *(block.column_names or [])]
    labels = [*block.rows[r], *block.columns[c]]
    said = [f"{n or 'label'}={show([x])}" for n, x in zip(names, labels, strict=False) if x]
    mark = clean_label(text.strip())
    return block.sheet.error(
        "{where}, line {line}, cell {at}: {text!r} is neither a number nor a mark for a cell "
        "that is not known. If it is such a mark, use {suppressed}; if it means nothing was "
        "counted, write 0.",
        line=block.lines[r],
        at=", ".join(said),
        text=mark,
        suppressed=Argument("suppressed", [mark]),
    )


# Axes -------------------------------------------------------------------------------------


@dataclass
class Axis:
    """Rows or columns as variables: which of them, and the label of each for each variable."""

    names: list[str]
    places: list[int]
    labels: list[Path]
    units: list[str] = field(default_factory=list)  # labels that span everything
    parents: frozenset[str] = frozenset()  # labels that have others indented below them
    headings: frozenset[str] = frozenset()  # names that were labels over all others


def split_axis(
    paths: Sequence[Path], names: Sequence[str], lines: Array, digit: float
) -> list[Axis]:
    """Return the variables that paths of labels make; several axes where these are separate tables.

    Parameters
    ----------
    paths : sequence of tuples of str
        Labels from the outermost to the innermost.
    names : sequence of str
        Name of each place of the paths, empty where there is none.
    lines : array (paths, others)
        The numbers.
    digit : float
        The unit to which they are rounded.

    Examples
    --------
    >>> paths = [("Men", "young"), ("Men", "old"), ("Women", "young"), ("Women", "old")]
    >>> [axis.names for axis in split_axis(paths, ["", ""], np.ones((4, 1)), 1.0)]
    [['', '']]
    >>> paths = [("Sex", "m"), ("Sex", "f"), ("Age", "young"), ("Age", "old")]
    >>> numbers = np.array([[10.0], [20], [14], [16]])
    >>> [(axis.names, axis.places) for axis in split_axis(paths, ["", ""], numbers, 1.0)]
    [(['Sex'], [0, 1]), (['Age'], [2, 3])]
    """
    names, units, headings = list(names), [], set[str]()
    paths = [tuple(path) for path in paths]
    for k, name in enumerate(names if len(names) > 1 else ()):
        if name and paths[0][k] and len({path[k] for path in paths}) == 1:  # one date, one region
            rest = [path[:k] + path[k + 1 :] for path in paths]
            axes = split_axis(rest, names[:k] + names[k + 1 :], lines, digit)
            for axis in axes:
                axis.names.insert(0, name)
                axis.labels = [(paths[0][k], *path) for path in axis.labels]
            return axes
    while len(names) > 1:  # a label that spans everything
        spans = next((k for k in range(len(names)) if _spans(paths, k, names)), None)
        if spans is None:
            break
        label = next(path[spans] for path in paths if path[spans])
        own = any(path[spans] == label and not any(path[spans + 1 :]) for path in paths)
        parts = label.split(" x ")
        if len(parts) > 1 and len(parts) == len(names) - spans - 1 and not any(names[spans:]):
            names[spans + 1 :] = [part.strip() for part in parts]  # "Year x Region", as in Brazil
        elif spans + 1 < len(names) and not names[spans + 1] and _is_name(label) and not own:
            names[spans + 1] = name_of_labels(label, {path[spans + 1] for path in paths})
            headings.add(names[spans + 1])
        else:
            units.append(label)
        del names[spans]
        paths = [path[:spans] + path[spans + 1 :] for path in paths]
    every = list(range(len(paths)))
    if len(names) <= 1 or all(names):
        return [Axis(names, every, paths, units, headings=frozenset(headings))]
    groups: dict[str, list[int]] = {}
    for i, path in enumerate(paths):
        if path[0]:
            groups.setdefault(path[0], []).append(i)
    inner = {g: {paths[i][1:] for i in at if any(paths[i][1:])} for g, at in groups.items()}
    parents = [g for g in groups if inner[g]]
    if len(parents) > 1 and _overlap([inner[g] for g in parents]) >= 0.5:
        return [_crossed(paths, names, units, lines, digit)]
    if _is_separate(paths, parents, groups, lines, digit):
        return _separate(paths, names, parents, groups, units, lines, digit)
    axis = _nested(paths, names, units)
    if (
        len(parents) == 1
        and not axis.names[0]
        and all(map(is_total_word, set(groups) - {*parents}))
    ):
        axis.names = [parents[0] if _is_name(parents[0]) else ""]  # its name, and a total
    return [axis]


def _spans(paths: Sequence[Path], k: int, names: Sequence[str]) -> bool:
    if names[k]:
        return False
    said = {path[k] for path in paths}
    return len(said - {ALL}) == 1 and (k == 0 or ALL not in said)


def _is_name(label: str) -> bool:
    unit = unit_word(label) or is_count_word(label) or scale_word(label) > 1.0
    return not unit and not is_total_word(label) and not re.search(r"\d{4}|^\d", label)


def _overlap(sets: Sequence[set[Path]]) -> float:
    union = set().union(*sets)
    return sum(sum(label in one for one in sets) > 1 for label in union) / len(union)


def _group_sum(paths: Sequence[Path], at: Sequence[int], lines: Array, digit: float) -> Array:
    """Return the sum of a group: its own row where there is one, else the sum of its levels."""
    own = [i for i in at if not any(paths[i][1:])]
    if own:
        return np.asarray(lines[own[0]])
    words = np.array([is_total_word(paths[i][-1]) for i in at])
    sums = find_sums(lines[list(at)], digit, words)
    return np.asarray(lines[[at[k] for k in sums.leaves]].sum(axis=0))


def _is_separate(
    paths: Sequence[Path],
    parents: Sequence[str],
    groups: Mapping[str, list[int]],
    lines: Array,
    digit: float,
) -> bool:
    """Return whether groups add up to the same numbers: each is a variable of its own."""
    if len(parents) < 2:
        return False
    totals = [_group_sum(paths, groups[g], lines, digit) for g in parents]
    sizes = [len(groups[g]) for g in parents]
    places = 0.0
    for total, size in zip(totals[1:], sizes[1:], strict=True):
        slack = digit * np.sqrt(size + sizes[0]) + 1e-9 * np.abs(totals[0])
        there = ~(np.isnan(total) | np.isnan(totals[0]))
        if not there.any() or (np.abs(total - totals[0])[there] > slack[there]).any():
            return False
        places += np.log10(np.maximum(np.abs(total[there]) / digit, 1.0)).sum()
    return bool(places >= 1.0)


def _separate(
    paths: Sequence[Path],
    names: Sequence[str],
    parents: Sequence[str],
    groups: Mapping[str, list[int]],
    units: list[str],
    lines: Array,
    digit: float,
) -> list[Axis]:
    alone = [i for g, at in groups.items() if g not in parents for i in at]
    found: list[Axis] = []
    for g in parents:
        at = [i for i in groups[g] if any(paths[i][1:])]
        total = alone[:1] if alone and is_total_word(paths[alone[0]][0]) else []
        rest = [*(paths[i][1:] for i in at), *((ALL,) * (len(names) - 1) for _ in total)]
        for axis in split_axis(rest, ["", *names[2:]], lines[[*at, *total]], digit):
            own = [g if not name and k == 0 else name for k, name in enumerate(axis.names)]
            places = [[*at, *total][p] for p in axis.places]
            found.append(Axis(own, places, axis.labels, [*units, *axis.units]))
    return found


def _crossed(
    paths: Sequence[Path], names: Sequence[str], units: list[str], lines: Array, digit: float
) -> Axis:
    """Cross the outer labels with the inner ones; a column at the end may be the total of all."""
    fixed = [tuple(path) for path in paths]
    for i, path in enumerate(fixed):
        alone = [k for k, other in enumerate(fixed) if other[1:] == path[1:]] == [i]
        if alone and any(path[1:]) and i in (0, len(fixed) - 1) and len(fixed) > 2:
            rest = [k for k in range(len(fixed)) if k != i]
            leaves = [k for k in rest if all(fixed[k]) and not is_total_word(fixed[k][-1])]
            slack = digit * np.sqrt(len(leaves) + 1.0) + 1e-9
            if np.all(np.abs(lines[leaves].sum(axis=0) - lines[i]) <= slack):
                fixed[i] = (ALL,) * len(path)
    return Axis(list(names), list(range(len(fixed))), fixed, units)


def _nested(paths: Sequence[Path], names: Sequence[str], units: list[str]) -> Axis:
    """Make one variable of labels at different depths; a label that occurs twice gets its path."""
    last = [next((text for text in reversed(path) if text), ALL) for path in paths]
    labels: list[Path] = [
        (text if last.count(text) == 1 else ": ".join(t for t in path if t),)
        for text, path in zip(last, paths, strict=True)
    ]
    name = next((name for name in reversed(names) if name), "")
    outer = {path[:k] for path in paths for k in range(1, len(path)) if path[k]}
    own = [path[: path.index(ALL)] if ALL in path else path for path in map(tuple, paths)]
    parents = frozenset(label for (label,), path in zip(labels, own, strict=True) if path in outer)
    return Axis([name], list(range(len(paths))), labels, units, parents)


# Facets -----------------------------------------------------------------------------------


def make_facets(block: Block, numbers: BlockNumbers) -> list[Facet]:
    """Return one array for each table of a block."""
    digit = float(10.0**-numbers.digits)
    values = numbers.values
    if block.listed:
        return _listed_facets(block, numbers)
    paths, names = block.rows, list(block.row_names)
    if not names[0]:
        paths = _with_first_heading(paths, values, digit, block.titles)
    rows = _split_units(paths, names, values, digit)
    for axis in rows if block.tree_name and not any(names) else ():
        _name_tree(axis, block.tree_name)
    column_paths = _paired_units(block.columns)
    deep = len(column_paths[0]) - len(block.columns[0])
    column_names = [*block.column_names, *[""] * deep]
    columns = split_axis(column_paths, column_names, values.T, digit)
    found = []
    for row, column in product(rows, columns):
        entries = [
            ((*a, *b), numbers.cells[r][c], block.lines[r])
            for r, a in zip(row.places, row.labels, strict=True)
            for c, b in zip(column.places, column.labels, strict=True)
        ]
        facet = _dense(block, [*row.names, *column.names], entries, numbers)
        facet.units = [*row.units, *column.units, *block.titles, *block.units]
        facet.parents = row.parents | column.parents
        facet.headings = row.headings | column.headings
        found.append(facet)
    return found


def _split_units(
    paths: Sequence[Path], names: Sequence[str], values: Array, digit: float
) -> list[Axis]:
    """Split paths that end in units, such as "Count" and "% within sex", by the counts alone."""
    units = list(dict.fromkeys(path[-1] for path in paths))
    if len(names) < 2 or len(units) < 2 or not all(map(unit_word, units)):
        return split_axis(paths, names, values, digit)
    at = {path: i for i, path in enumerate(paths)}
    first = [i for i, path in enumerate(paths) if path[-1] == units[0]]
    outer = [paths[i][:-1] for i in first]
    if len(first) * len(units) != len(paths) or {(*p, u) for p in outer for u in units} != set(at):
        return split_axis(paths, names, values, digit)
    return [
        Axis(
            [*axis.names, names[-1]],
            [at[(*outer[p], unit)] for p in axis.places for unit in units],
            [(*label, unit) for label in axis.labels for unit in units],
            axis.units,
            axis.parents,
        )
        for axis in split_axis(outer, names[:-1], values[first], digit)
    ]


def _with_first_heading(
    paths: list[Path], values: Array, digit: float, titles: Sequence[str]
) -> list[Path]:
    """Put first rows below the title, where the same labels follow below a heading.

    Where they are the sum of those below headings, they are of all of these.
    """
    first = next((i for i, path in enumerate(paths) if any(path[1:])), 0)
    if len(paths[0]) != 2:
        return paths
    below: dict[str, list[int]] = {}
    for i, path in enumerate(paths[first:], first):
        below.setdefault(path[1], []).append(i)
    twice = [i for i in range(first) if paths[i][0] in below and not is_total_word(paths[i][0])]
    if len(twice) < 2 or len(twice) < 0.5 * first:
        return paths
    slack = 1.5 * digit * np.sqrt(len(paths))
    gaps = [np.abs(values[below[paths[i][0]]].sum(axis=0) - values[i]) for i in twice]
    if len(below[paths[twice[0]][0]]) > 1 and not np.any(np.array(gaps) > slack):
        return paths
    title = titles[-1] if titles else "(without a heading)"
    return [(title, path[0]) if i < first else path for i, path in enumerate(paths)]


def _name_tree(axis: Axis, name: str) -> None:
    """Give the name of a stub to its only variable, or its parts, "Sex and age", to several."""
    parts = [part for part in BETWEEN.split(name) if part] if len(axis.names) > 1 else [name]
    if len(parts) == len(axis.names) and not any(axis.names):
        axis.names = parts


_LABEL_AND_UNIT = re.compile(
    r"(.+?)(?:[\s,;:]+[(\[]?|[(\[]|(?=%))\s*(n|%|Number|Percent|Anzahl|Prozent)\s*[)\]]?"
)


def _paired_units(columns: list[Path]) -> list[Path]:
    """Split labels such as "Men", "%", "Women", "%" into a label and a unit."""
    last = [path[-1] for path in columns]
    both = [re.fullmatch(r"(.+?),?\s+n \(%\)", label, re.IGNORECASE) for label in last]
    if all(both):  # each number has its percentage in brackets
        return [(*path[:-1], found[1]) for path, found in zip(columns, both, strict=True) if found]
    units = [unit_word(label) for label in last]
    twice = [label for label, unit in zip(last, units, strict=True) if unit]
    if len(columns[0]) == 1 and len(twice) > 1 and len(set(twice)) < len(twice) and not units[0]:
        made: list[Path] = []
        label = ""
        for text, unit in zip(last, units, strict=True):
            label = label if unit else text
            made.append((label, text if unit else "n"))
        return made
    split = [_LABEL_AND_UNIT.fullmatch(label) for label in last]
    bare = [label for label, found in zip(last, split, strict=True) if not found]
    if bare and sorted(bare) == sorted(f[1].strip(" -:") for f in split if f):  # Men, Men %
        split = [f or _LABEL_AND_UNIT.fullmatch(f"{x} n") for x, f in zip(last, split, strict=True)]
    if len(columns) > 3 and all(split):
        pairs = [(f[1].strip(" -:"), f[2]) for f in split if f]
        if len({u for _, u in pairs}) > 1 and len(set(pairs)) == len(pairs):
            return [(*p[:-1], *pair) for p, pair in zip(columns, pairs, strict=True)]
    return list(columns)


def _listed_facets(block: Block, numbers: BlockNumbers) -> list[Facet]:
    """Group the rows of a long form by the variables that they speak of."""
    groups: dict[tuple[str, tuple[int, ...]], list[int]] = {}
    for i, path in enumerate(block.rows):
        said = tuple(k for k, label in enumerate(path) if label)
        if not said:
            raise ValueError(
                f"{block.sheet.where}, line {block.lines[i]}: no variable has a label. A grand "
                "total has the label 'Total' in each."
            )
        groups.setdefault((block.keys[i] if block.keys else "", said), []).append(i)
    found = []
    for (_, said), at in groups.items():
        entries = [
            (tuple(block.rows[i][k] for k in said), numbers.cells[i][0], block.lines[i]) for i in at
        ]
        facet = _dense(block, [block.row_names[k] for k in said], entries, numbers)
        facet.units = [*block.titles, *block.units]
        facet.value = block.value
        if block.errors is not None:
            facet.errors = np.array([_standard_error(block, i) for i in at])
        found.append(facet)
    return found


def _standard_error(block: Block, i: int) -> float:
    assert block.errors is not None
    text = block.errors[i][0]
    try:
        value = text if isinstance(text, float) else read_cell(text).value
    except ValueError:
        value = -1.0
    if value < 0 or np.isinf(value):
        raise ValueError(
            f"{block.sheet.where}, line {block.lines[i]}: {cite(str(text).strip())} is not a "
            "standard error; it must be a number that is not negative, or empty."
        )
    return value


def _dense(
    block: Block,
    names: list[str],
    entries: Sequence[tuple[Path, Cell, int]],
    numbers: BlockNumbers,
) -> Facet:
    """Scatter cells into arrays; combinations that a long form leaves out are zero."""
    written: list[dict[str, str]] = [{} for _ in names]  # case, blanks and accents do not count
    for labels, _, _ in entries:
        for known, label in zip(written, labels, strict=True):
            known.setdefault(same_text(label), label)
    entries = [
        (tuple(known[same_text(x)] for known, x in zip(written, labels, strict=True)), cell, line)
        for labels, cell, line in entries
    ]
    axes = [{label: i for i, label in enumerate(known.values())} for known in written]
    shape = tuple(len(axis) for axis in axes)
    values, low, high = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    lines, decimals, signed = (np.zeros(shape, dtype=np.intp) for _ in range(3))
    for labels, cell, line in entries:
        at = tuple(axis[label] for axis, label in zip(axes, labels, strict=True))
        if lines[at]:
            said = ", ".join(
                f"{clean_label(n or 'label')}={cite(clean_label(x))}"
                for n, x in zip(names, labels, strict=True)
            )
            raise ValueError(
                f"{block.sheet.where}, line {line}: the cell {said} was given on line {lines[at]} "
                "already."
            )
        lines[at] = max(line, 1)
        values[at], low[at], high[at] = cell.value, cell.low, cell.high
        decimals[at], signed[at] = -1 if cell.flag in NIL else cell.digits, cell.percent
    if not (block.listed or block.sparse):
        values[lines == 0], high[lines == 0] = np.nan, np.inf
    labels_of = [list(axis) for axis in axes]
    return Facet(
        names,
        labels_of,
        values,
        low,
        high,
        lines,
        decimals,
        signed,
        numbers.digits,
        numbers.percent,
    )


#: A label that two variables share, or that has others below it, is a total, more often than not.
_HINT = 0.8


def sums_of(
    facet: Facet, axis: int, word: Callable[[str], bool], beside: Facet | None = None
) -> Sums:
    """Return which levels of an axis are sums of others; ``beside`` has all labels."""
    arrays = (facet.printed, facet.values, facet.high)  # a total must be printed
    lines, parts, most = (facet.by_level(axis, array) for array in arrays)
    others = {x for k, known in enumerate((beside or facet).labels) if k != axis for x in known}
    words = np.array(
        [
            1.0 if not label or word(label) else _HINT * (label in others or label in facet.parents)
            for label in facet.labels[axis]
        ]
    )
    digit = rounding_base(facet.values) if facet.whole else facet.digit
    return find_sums(lines, digit, words, parts=parts, most=most)
