"""What the numbers of a labelled array are: totals and what they are of, marks, kind, rounding.

Nothing here is guessed in silence. A total is one where its word (or the format) and the sums say
so; a level that is the sum of others without a word is asked about; so are numbers that neither a
total, nor a sum of 1 or 100, nor the file's own word shows to be counts or shares.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations, product
from math import log10

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import FloatArray
from rejoint.marginals.labelled_table import COUNT_NAMES, SHARE_NAMES, LabelledTable
from rejoint.marginals.read.cells import (
    DOUBTFUL_MARKS,
    UNKNOWN,
    UNROUNDED,
    ZERO,
    Bounds,
    TableArray,
    meaning_of,
)
from rejoint.marginals.read.description import OPEN, Draft, Reading, check_known
from rejoint.marginals.unknown import Places
from rejoint.messages import remark
from rejoint.text import cite, plural, show

_TOTAL = re.compile(
    r"(?:grand |sub-?)?totals?(?: .*)?|all(?! other)(?: .*)?|sum|overall|both sexes|.* total|_t"
)
_COUNT_UNITS = COUNT_NAMES | {"persons", "people", "person", "numbers", "antal", "personer"} | {
    "personas", "personen", "anzahl", "number of persons",
}  # fmt: skip
_SHARE_UNITS = SHARE_NAMES | {"per cent", "porcentaje", "prozent", "procent"}
#: Chance, of all sums that are tried, by which a sum without a word may be one.
_CHANCE = 1e-3
#: Levels up to which sums of any others are sought, and how many of the largest levels are tried.
_MOST_DEEP, _DEEPEST = 300, 5


def interpret(
    array: TableArray, draft: Draft, numbers: Iterator[int], rounded: float = 0.0, *, noisy: bool
) -> None:
    """Find out what the numbers are; what only the user knows is asked for in the draft.

    Variables without a name are called x1, x2, ... by ``numbers``.
    """
    array, left_out = _select(array, draft)
    reading = Reading(array.where, array.names, array.labels, form=array.form, notes=array.notes)
    draft.reading = replace(reading, left_out=left_out)
    work = _Interpretation(array, draft, rounded)
    if not draft.open:
        work.find_totals()
    bounds = {} if draft.open else work.decide_marks()
    kind = "" if draft.open else work.find_kind()
    if not draft.open:
        work.name_all(numbers)
        work.conclude(kind, bounds, noisy=noisy)


def _select(array: TableArray, draft: Draft) -> tuple[TableArray, tuple[str, ...]]:
    """Apply the declared labels and names; leave out variables of one level."""
    told, where = draft.description, array.where
    of_file = f"{where}: "
    check_known(of_file, "where= names {}, which is none of its variables", told.where, array.names)
    for name, kept in told.where.items():
        axis = array.names.index(name)
        labels = array.labels[axis]
        check_known(of_file, f"{cite(name)} has no label {{}}; it has", kept, labels)
        array = array.take(axis, [labels.index(label) for label in kept])
    if array.form in ("long", "cross"):
        texts = [*draft.dropped, *(label for labels in array.labels for label in labels)]
        what = "drop= names {}, which is neither a column nor a label"
        check_known(of_file, what, told.drop, texts)
    for axis, labels in enumerate(array.labels):
        places = [i for i, label in enumerate(labels) if label not in told.drop]
        if not places:
            raise ValueError(f"{where}: drop= leaves no label of {cite(array.names[axis])}.")
        array = array.take(axis, places) if len(places) < len(labels) else array
    if array.measure in array.names and array.measure:
        labels = array.labels[array.names.index(array.measure)]
        if len(labels) == 1:
            unit = array.units.get(labels[0], array.units.get("", ""))
            array = replace(array, units={"": unit}, scales={"": array.scales.get(labels[0], 0)})
        elif array.measure not in told.where:
            counts = [label for label in labels if _is_count_unit(array.units.get(label, ""))]
            best = counts[0] if len(counts) == 1 else OPEN
            remark = f"different measures: keep one of {show(labels)}"
            draft.ask("where", {**told.where, array.measure: (best,)}, remark)
    left_out = []
    for axis in reversed(range(len(array.names))):
        if len(array.labels[axis]) == 1 and array.values.ndim > 1:
            left_out.append(f"{array.names[axis] or 'a heading'}={array.labels[axis][0]}")
            array = array.squeeze(axis)
    if array.values.size < 2:
        raise ValueError(f"{where} has one number and no variable of two levels.")
    return _rename(array, told.names), tuple(reversed(left_out))


def _rename(array: TableArray, told: Sequence[str] | Mapping[str, str] | None) -> TableArray:
    if isinstance(told, Mapping):
        told = [told.get(name, name) for name in array.names]
    if told is None:
        return array
    if len(told) != len(array.names):
        numbers = plural(len(told), "name"), plural(len(array.names), "variable")
        what = "names= has {}, but there are {}".format(*numbers)
        axes = "; ".join(show(labels, 3) for labels in array.labels)
        raise ValueError(f"{array.where}: {what}: {axes}.")
    pairs = list(zip(array.names, told, strict=True))
    totals = {new: array.totals.get(old, ()) for old, new in pairs}
    parts = {new: array.parts.get(old, {}) for old, new in pairs}
    return replace(array, names=tuple(told), totals=totals, parts=parts)


def _is_count_unit(unit: str) -> bool:
    return any(part.strip() in _COUNT_UNITS for part in unit.lower().split(","))


@dataclass
class _Axis:
    """The labels of an axis: levels, their total, and sums of some of them."""

    core: list[int]
    total: int | None = None
    sums: list[int] = field(default_factory=list)
    is_proof: bool = False  # levels add up to the total in a line that has all of them

    @property
    def shown(self) -> list[int]:
        """The levels and their total."""
        return self.core if self.total is None else [*self.core, self.total]

    @property
    def totals(self) -> list[int]:
        """The total and the sums."""
        return self.sums if self.total is None else [self.total, *self.sums]


class _Interpretation:
    """The array of a table while its totals, marks and kind are found."""

    def __init__(self, array: TableArray, draft: Draft, rounded: float) -> None:
        self.array, self.draft, self.told = array, draft, draft.description
        is_zero = [False, *(self._meaning(mark) == ZERO for mark in array.marks)]
        self.values = np.where(np.array(is_zero)[array.codes], 0.0, array.values)
        self.unit = 10.0**-array.digits if array.digits < UNROUNDED else 0.0
        # Numbers that were rounded to multiples may be off by a whole one, in both terms.
        self.error = max(self.unit, rounded) * (1.0 if rounded else 0.5) * 1.000001
        self.axes = [_Axis(list(range(len(labels)))) for labels in array.labels]
        self.is_rounded = False
        self.within: tuple[int, ...] = ()

    def _meaning(self, mark: str) -> Bounds | None:
        bounds = meaning_of(mark, self.told.missing)
        return bounds if mark in self.told.missing else self.array.missing.get(mark, bounds)

    # Totals -------------------------------------------------------------------------------

    def find_totals(self) -> None:
        """Split totals off each axis; ask about levels that are sums of others."""
        told, array = self.told.totals, self.array
        told = () if told == ("none",) else told
        texts = [label for labels in array.labels for label in labels]
        what = "totals= names {}, which is no label"
        check_known(f"{array.where}: ", what, told or (), texts)
        for a, (name, labels) in enumerate(zip(array.names, array.labels, strict=True)):
            words = {*array.totals.get(name, ()), *array.parts.get(name, {})}
            words |= {label for label in labels if _TOTAL.fullmatch(label.lower())}
            sums = [i for i, x in enumerate(labels) if x in (words if told is None else told)]
            core = [i for i in range(len(labels)) if i not in sums]
            if core and len(labels) > 1:
                self.axes[a] = _Axis(core, sums=sums)
        failed = []
        for a, i in [(a, i) for a, axis in enumerate(self.axes) for i in axis.sums]:
            axis = self.axes[a]
            if np.isnan(self._lines(a, [i])).all():  # of nothing that is there
                continue
            if axis.total is None and self._is_sum(a, i, axis.core):
                axis.total = i
                lines = self._lines(a, [i, *axis.core])
                whole = lines[0, ~np.isnan(lines).any(axis=0)]
                axis.is_proof = len(axis.core) > 1 and bool((whole > 0).any())
            elif not self._is_told_sum(a, i) and not self._is_part_sum(a, i):
                failed.append((a, i))
        for a, axis in enumerate(self.axes):
            listed = tuple(array.labels[a][i] for i in axis.sums)
            is_open = axis.total is not None and len(axis.core) > 1 and not axis.is_proof
            if told is None and len(listed) > 1 and is_open:
                what = f'no line has all that {show(listed, 3)} may add up; "none" if they do not'
                self.draft.ask("totals", listed, what)
            axis.sums = [i for i in axis.sums if i != axis.total]
        if told is None:
            self._ask_about_sums()
        if failed and not self.draft.open:
            raise self._failure(failed)

    def _part(self, over: Sequence[int] = ()) -> FloatArray:
        """Return the numbers of all levels, with totals in their place on some axes."""
        values = self.values
        for a, axis in enumerate(self.axes):
            totals = [] if axis.total is None else [axis.total]
            values = np.take(values, totals if a in over else axis.core, a)
        return values

    def _lines(self, a: int, labels: Sequence[int]) -> FloatArray:
        """Return cells of an axis, without what other axes count twice: (labels, lines)."""
        values = np.take(self.values, labels, a)
        for b, axis in enumerate(self.axes):
            values = values if b == a else np.take(values, axis.shown, b)
        return np.moveaxis(values, a, 0).reshape(len(labels), -1)

    def _off(
        self, total: FloatArray, exact: FloatArray, known: FloatArray, terms: int
    ) -> FloatArray:
        """Return how far totals are off sums; zero where roundings or unknown cells explain it."""
        off = np.where(np.isnan(total) | (np.isnan(exact) & (total >= known)), 0.0, total - known)
        scale = 1e-9 * np.maximum(np.abs(np.nan_to_num(total)), 1.0)
        is_near = np.abs(off) <= self.error * (terms + 1) + scale
        self._rounded_here = bool((np.abs(off) > scale).any())
        return np.where(is_near, 0.0, off)

    def _off_sum(self, a: int, i: int, members: Sequence[int]) -> FloatArray:
        (total,), parts = self._lines(a, [i]), self._lines(a, members)
        return self._off(total, parts.sum(axis=0), np.nansum(parts, axis=0), len(members))

    def _is_sum(self, a: int, i: int, members: Sequence[int]) -> bool:
        if self._off_sum(a, i, members).any():
            return False
        self.is_rounded |= self._rounded_here and self.array.digits == 0
        has_mass = np.nansum(self._lines(a, [i])) > 0
        return bool(has_mass or not np.nansum(self._lines(a, members)))

    def _is_told_sum(self, a: int, i: int) -> bool:
        """Return whether a label is the sum of the labels that the format says it consists of."""
        labels = self.array.labels[a]
        parts = self.array.parts.get(self.array.names[a], {}).get(labels[i], ())
        return bool(parts) and self._is_sum(a, i, [labels.index(part) for part in parts])

    def _is_part_sum(self, a: int, i: int) -> bool:
        """Return whether a label is the sum of some levels: a run after or before it, or any."""
        order = sorted([i, *self.axes[a].core])
        lines, k = self._lines(a, order), order.index(i)
        lines = lines[:, ~np.isnan(lines).any(axis=0)]
        others = np.delete(np.arange(len(order)), k)
        is_sum = self._is_sum(a, i, self.axes[a].core)
        return is_sum or bool(self._find_members(lines, lines.sum(axis=1), k, others, deep=True))

    def _find_members(
        self, lines: FloatArray, sums: FloatArray, target: int, rows: Places, *, deep: bool
    ) -> list[int] | None:
        """Return the rows that add up to another: all, a run beside it in the file, or any."""
        error = self.error

        def adds_up(members: Places) -> bool:
            off = np.abs(lines[members].sum(axis=0) - lines[target])
            slack = error * (len(members) + 1) + 1e-9 * np.abs(lines[target])
            return bool((off <= slack).all())

        wanted = float(sums[target])
        if not wanted:
            return None
        # Roundings of many lines are independent of each other.
        slack = 2.0 * error * (len(rows) + 1) * lines.shape[1] ** 0.5 + 1e-9 * abs(wanted)
        middle = int(np.searchsorted(rows, target))
        if abs(float(sums[rows].sum()) - wanted) <= slack and adds_up(rows):
            return list(rows)
        for run in (rows[middle:], rows[:middle][::-1]):
            reached = np.cumsum(sums[run])
            for k in np.flatnonzero(np.abs(reached - wanted) <= slack)[:20]:
                if k and adds_up(run[: k + 1]):
                    return sorted(run[: k + 1])
        if not deep or not 3 <= len(rows) <= _MOST_DEEP or lines.shape[1] < 4:
            return None
        from scipy.optimize import nnls  # loaded when needed: it is slow to import

        positive = np.flatnonzero(lines[target] > 0)[:500]
        parts = lines[rows][:, positive] / lines[target][positive]
        try:
            share = nnls(parts.T, np.ones(len(positive)))[0]
        except RuntimeError:
            return None
        members = rows[share > 0.5]
        return list(members) if len(members) > 1 and adds_up(members) else None

    def _ask_about_sums(self) -> None:
        """Ask about levels that are sums of others, although no word says so."""
        labels_of = self.array.labels
        sums: list[str] = []
        for a, axis in enumerate(self.axes):
            lines = self._lines(a, axis.core)
            lines = lines[:, ~np.isnan(lines).any(axis=0)]
            size = lines.sum(axis=1)
            left = np.arange(len(axis.core))
            order = np.argsort(-size, kind="stable").tolist()
            for rank, k in enumerate(order):
                if len(left) < 3:
                    break
                others = left[left != k]
                deep = rank < _DEEPEST
                members = self._find_members(lines, size, k, others, deep=deep)
                if members is not None and self._is_proof(lines[k], len(members), len(order)):
                    left = others
                    sums.append(labels_of[a][axis.core[k]])
        if sums:
            words = [labels_of[a][i] for a, axis in enumerate(self.axes) for i in axis.totals]
            remark = f'{show(sums, 3)} add up other levels in every line; "none" if not'
            self.draft.ask("totals", tuple(dict.fromkeys((*words, *sums))), remark)

    def _is_proof(self, cells: FloatArray, members: int, labels: int) -> bool:
        """Return whether sums that agree are more than chance."""
        unit = self.unit or 1e-6
        width = 2.0 * self.error * (members + 1) / unit + 1.0
        log = float(np.log10(np.minimum(1.0, width / (2.0 * cells / unit + 1.0))).sum())
        return log + log10(4.0 * labels**2) < log10(_CHANCE)

    def _failure(self, failed: Sequence[tuple[int, int]]) -> ValueError:
        (a, i), labels_of = failed[0], self.array.labels
        core = self.axes[a].core
        pairs = [(b, j) for b, axis in enumerate(self.axes) for j in axis.totals]
        met = [labels_of[b][j] for b, j in pairs if (b, j) not in failed]
        off = self._off_sum(a, i, core)
        (total,), parts = self._lines(a, [i]), np.nansum(self._lines(a, core), axis=0)
        others = [
            [labels_of[b][j] for j in axis.shown] for b, axis in enumerate(self.axes) if b != a
        ]
        places = list(product(*others))
        worst = [
            f"{', '.join(places[k])}{': ' if others else ''}{total[k]:,.10g} given, "
            f"{parts[k]:,.10g} by its parts"
            for k in np.argsort(-np.abs(off), kind="stable")[:3]
            if off[k]
        ]
        label = labels_of[a][i]
        wanted = cite(list(dict.fromkeys(met)) or "none")
        return ValueError(
            f"{self.array.where}: {cite(label)} of {cite(self.array.names[a] or 'the columns')} is "
            f"not the sum of the other levels ({'; '.join(worst)}). Use totals={wanted} if it is "
            f"a level like others, drop={cite(label)} to leave it out, or name all totals."
        )

    # Marks --------------------------------------------------------------------------------

    def core(self, array: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return the part of an array without totals."""
        return array[np.ix_(*(axis.core for axis in self.axes))]

    def decide_marks(self) -> dict[str, Bounds]:
        """Return the bounds of each mark in the levels; ask for those with no or two meanings."""
        codes = self.core(self.array.codes)
        times = np.bincount(codes.ravel(), minlength=len(self.array.marks) + 1)
        bounds: dict[str, Bounds] = {}
        asked: dict[str, int] = {}
        for code, mark in enumerate(self.array.marks, 1):
            if not times[code]:
                continue
            meaning = self._meaning(mark)
            if meaning is None and mark.lower() in DOUBTFUL_MARKS:
                meaning = self._by_totals(code)
                if meaning == ZERO:
                    self.values = np.where(self.array.codes == code, 0.0, self.values)
            if meaning is None:
                asked[mark] = int(times[code])
            else:
                bounds[mark] = meaning
        if asked:
            told = {**self.told.missing, **dict.fromkeys(asked, OPEN)}
            is_absent = asked.keys() == {""} and self.array.form == "long"
            what = "no row" if is_absent else show(list(asked))
            cells = f"{plural(sum(asked.values()), 'cell')} with {what}"
            remark = f'{cells}: 0, "unknown", or the least and most such as [1, 9]'
            self.draft.ask("missing", told, remark)
        return bounds

    def _by_totals(self, code: int) -> Bounds | None:
        """Return what totals say of a mark: zero, or not; None where they do not say."""
        is_mark = self.array.codes == code
        is_decided = np.zeros(is_mark.shape, dtype=bool)
        for a, axis in enumerate(self.axes):
            if axis.total is None:
                continue
            parts, marked = np.take(self.values, axis.core, a), np.take(is_mark, axis.core, a)
            other = (np.isnan(parts) & ~marked).any(axis=a)
            rest = np.take(self.values, axis.total, a) - np.nansum(parts, axis=a)
            known = marked.any(axis=a) & ~other & ~np.isnan(rest)
            if (known & (rest > self.error * (len(axis.core) + 1))).any():
                return UNKNOWN
            is_decided |= is_mark & np.expand_dims(known, a)
        return None if self.core(is_mark & ~is_decided).any() else ZERO

    # Kind ---------------------------------------------------------------------------------

    def find_kind(self) -> str:
        """Return what the numbers are: counts, or shares of 1 or 100, of all or within levels."""
        told, values = self.told, self._part()
        known = values[np.isfinite(values)]
        if not known.size:
            raise ValueError(f"{self.array.where}: none of its cells is known.")
        unit = self.array.units.get("", "").lower()
        units = {part.strip() for part in unit.split(",")}
        says_count = _is_count_unit(unit)
        says_share = self.array.percent or bool(units & _SHARE_UNITS)
        is_whole = self.array.digits == 0 and bool((known == np.floor(known)).all())
        what = "per= names {}, which is none of its variables"
        check_known(f"{self.array.where}: ", what, told.per or (), self.array.names)
        per = tuple(self.array.names.index(name) for name in told.per or ())
        self.within = per
        sizes = {"percent": 100.0, "shares": 1.0} if told.kind != "counts" else {}
        for kind, size in sizes.items():
            within = self._sums_to(values, size, says_share=says_share)
            if within is None or (told.per is not None and {*within} != {*per}):
                continue
            if told.kind == kind or says_share or not is_whole:
                self.within = within if told.per is None else per
                return kind
            if not says_count:
                remark = f"counts or percent: the numbers add up to {size:g}"
                self.draft.ask("kind", OPEN, remark)
                return ""
        if told.kind in sizes:
            return str(told.kind)
        is_added = any(axis.is_proof for axis in self.axes)
        is_count = not says_share and (is_added or says_count)
        self._ask_for_names()
        if not is_count and told.kind is None:
            shown = f" of unit {cite(unit)}" if unit else ""
            remark = "counts, shares or percent; leave out means, rates and amounts. "
            remark += f"Numbers{shown}, with no total and no sum of 100"
            self.draft.ask("kind", OPEN, remark)
        return "counts"

    def _ask_for_names(self) -> None:
        """Ask for variables that have no name and no total, which may be different measures."""
        names = self.array.names
        for name, labels, axis in zip(names, self.array.labels, self.axes, strict=True):
            is_open = axis.total is None and name in ("", self.array.heading)
            if is_open and self.told.names is None:
                remark = f"of which variable these are levels, if of one: {show(labels, 4)}"
                self.draft.ask("names", tuple(name or OPEN for name in names), remark)

    def _sums_to(
        self, values: FloatArray, size: float, *, says_share: bool
    ) -> tuple[int, ...] | None:
        """Return the axes within whose levels numbers add up to a size; none: all do."""
        if np.isnan(values).any():  # what is not known makes up the rest
            known = float(np.nansum(values))
            return () if says_share and known <= size and (known > 2.0) == (size > 2.0) else None
        axes = range(values.ndim)
        for kept in chain.from_iterable(combinations(axes, n) for n in axes):
            sums = values.sum(axis=tuple(b for b in axes if b not in kept))
            terms = values.size / np.size(sums)
            slack = max(4.0 * self.unit * np.sqrt(terms / 12.0), self.unit) + 1e-6 * size
            if (np.abs(sums - size) <= min(slack, 0.05 * size)).all():
                return kept
        return None

    # Result -------------------------------------------------------------------------------

    def name_all(self, numbers: Iterator[int]) -> None:
        """Call variables without a name x1, x2, ..., which are remarked on."""
        names = [name or f"x{next(numbers)}" for name in self.array.names]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            what = f"two variables are called {cite(twice)}. Name them (names=)"
            raise ValueError(f"{self.array.where}: {what}.")
        for k, name in enumerate(names):
            if not self.array.names[k]:
                labels, wanted = self.array.labels[k], [*names[:k], "...", *names[k + 1 :]]
                remark(
                    f"{self.array.where}: the variable of the labels {show(labels)} has no name "
                    f"and is called {cite(name)}. Use names={wanted} to name it."
                )
        self.array = _rename(self.array, names)

    def conclude(self, kind: str, bounds: Mapping[str, Bounds], *, noisy: bool) -> None:
        """Make the table without totals, with these as known sums where cells are unknown."""
        array, told, is_count = self.array, self.told, kind == "counts"
        values = np.ascontiguousarray(self._part())
        scale = 10.0 ** array.scales.get("", 0) if is_count else 1.0
        labels = tuple(
            tuple(of[i] for i in axis.core)
            for of, axis in zip(array.labels, self.axes, strict=True)
        )
        codes, is_unknown = self.core(array.codes), np.isnan(values)
        low, high, marks = values.copy(), values.copy(), {}
        for mark, (least, most) in bounds.items():
            is_mark = codes == 1 + array.marks.index(mark)
            low[is_mark & is_unknown], high[is_mark & is_unknown] = least, most
            words = f"{least:g} to {most:g}" if 0 < most < np.inf else "not given"
            words = "zero" if (least, most) == ZERO else words
            marks[mark] = f"{plural(int(is_mark.sum()), 'cell')}, {words}"
        has_unknown = bool(is_unknown.any())
        margins, total = self._margins(labels, scale) if has_unknown else ((), None)
        is_rounded = array.digits or not is_count or self.is_rounded
        self.draft.table = LabelledTable(
            *(array.names, labels, values * scale),
            kind="counts" if is_count else "shares",
            bounds=(low * scale, high * scale) if has_unknown else None,
            margins=margins,
            total=total,
            rounding=0.5 * self.unit * scale if is_rounded else 0.0,
            noisy=noisy,
            records=told.records,
            weight=1.0 if told.weight is None else told.weight,
        )
        within = self.draft.within = tuple(array.names[k] for k in self.within)
        words = "percentages" if kind == "percent" else kind
        self.draft.reading = replace(
            self.draft.reading,
            names=array.names,
            levels=labels,
            kind=words + (f" within {' and '.join(within)}" if within else ""),
            total=float(np.nansum(values)) * scale if total is None else total,
            totals=tuple(
                f"{name or 'columns'}={of[i]}"
                for name, of, axis in zip(array.names, array.labels, self.axes, strict=True)
                for i in axis.totals
            ),
            marks=marks,
            flags=dict(array.flags),
        )
        missing = dict(bounds)
        self.draft.propose(kind=kind, per=within or None, missing=missing, names=array.names)

    def _margins(
        self, labels: tuple[tuple[str, ...], ...], scale: float
    ) -> tuple[tuple[LabelledTable, ...], float | None]:
        """Return the printed totals as tables of fewer variables, and the total of all."""
        summed = [a for a, axis in enumerate(self.axes) if axis.total is not None]
        margins, total = [], None
        for over in chain.from_iterable(combinations(summed, n + 1) for n in range(len(summed))):
            part = self._part(over).squeeze(axis=over) * scale
            kept = [a for a in range(len(self.axes)) if a not in over]
            if kept and np.isfinite(part).any():
                names = tuple(self.array.names[a] for a in kept)
                margins.append(LabelledTable(names, tuple(labels[a] for a in kept), part))
            elif not kept and np.isfinite(part):
                total = float(part)
        return tuple(margins), total
