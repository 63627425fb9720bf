"""What the numbers of a labelled array are: totals and what they are of, marks, kind, rounding.

Nothing here is guessed in silence. A total is one where its word (or the format) and the sums say
so; a level that is the sum of others without a word is asked about; so are numbers that neither a
total, nor a sum of 1 or 100, nor the file's own word shows to be counts or shares.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from math import inf, log10

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import FloatArray
from rejoint.marginals.labelled_table import COUNT_NAMES, SHARE_NAMES, LabelledTable
from rejoint.marginals.read.cells import DOUBTFUL_MARKS, Bounds, TableArray, meaning_of
from rejoint.marginals.read.description import OPEN, Description
from rejoint.marginals.read.forms import Proposal
from rejoint.messages import Argument, Message
from rejoint.text import cite, nearest, plural, show

_TOTAL = re.compile(
    r"(?:grand |sub-?)?totals?(?: .*)?|all(?! other)(?: .*)?|sum|overall|both sexes|.* total|"
    r"_t"
)
_COUNT_UNITS = COUNT_NAMES | {"persons", "people", "person", "numbers", "antal", "personer"} | {
    "personas", "personen", "anzahl", "number of persons",
}  # fmt: skip
_SHARE_UNITS = SHARE_NAMES | {"per cent", "porcentaje", "prozent", "procent"}
#: Chance, of all sums that are tried, by which a sum without a word may be one.
_CHANCE = 1e-3
_UNITLESS = 17  # decimals of numbers that show no rounding
#: Levels up to which sums of any others are sought, and how many of the largest levels are tried.
_MOST_DEEP, _DEEPEST = 300, 5


@dataclass(frozen=True)
class Reading:
    """How a table was understood: its contents and what was decided."""

    where: str
    names: tuple[str, ...] = ()
    levels: tuple[tuple[str, ...], ...] = ()
    kind: str = ""
    total: float = 0.0
    form: str = ""
    totals: tuple[str, ...] = ()
    marks: Mapping[str, str] = field(default_factory=dict)
    flags: Mapping[str, int] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    description: Description = field(default_factory=Description)


@dataclass
class Draft:
    """A table of a file: its array without totals, or what of it is open."""

    proposal: Proposal
    reading: Reading
    table: LabelledTable | None = None
    within: tuple[str, ...] = ()


@dataclass
class _Axis:
    """The labels of an axis: levels, their total, and sums of some of them."""

    core: list[int]
    total: int | None = None
    sums: list[int] = field(default_factory=list)


def interpret(array: TableArray, proposal: Proposal, rounded: float = 0.0, *, noisy: bool) -> Draft:
    """Find out what the numbers are; what only the user knows is asked for in the proposal.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.array([[3.0, 4.0], [5.0, 6.0], [8.0, 10.0]])
    >>> labels = (("f", "m", "Total"), ("u", "v"))
    >>> array = TableArray("t", ("a", "b"), labels, values, np.zeros((3, 2), dtype=np.int32))
    >>> draft = interpret(array, Proposal(Description()), noisy=False)
    >>> draft.reading.kind, draft.reading.totals, draft.table.values.shape
    ('counts', ('a=Total',), (2, 2))
    """
    told = proposal.description
    array, left_out = _select(array, told, proposal)
    work = _Work(array, proposal, rounded, noisy)
    if not proposal.open:
        work.find_totals()
    bounds = work.decide_marks() if not proposal.open else {}
    kind = work.find_kind() if not proposal.open else ""
    reading = Reading(array.where, form=array.form, left_out=left_out, notes=array.notes)
    if proposal.open:
        return Draft(proposal, replace(reading, names=array.names, levels=array.labels))
    return work.conclude(kind, bounds, reading)


def _select(
    array: TableArray, told: Description, proposal: Proposal
) -> tuple[TableArray, tuple[str, ...]]:
    """Apply the declared labels and names; leave out variables of one level."""
    left_out = []
    for name, labels in told.where.items():
        if name not in array.names:
            raise ValueError(
                f"{array.where}: where= names {cite(name)}, which is none of its "
                f"variables: {show(array.names)}." + nearest(name, array.names)
            )
        axis = array.names.index(name)
        absent = [label for label in labels if label not in array.labels[axis]]
        if absent:
            raise ValueError(
                f"{array.where}: {cite(name)} has no label {cite(absent[0])}; it has "
                f"{show(array.labels[axis])}." + nearest(absent[0], array.labels[axis])
            )
        chosen = [array.labels[axis].index(label) for label in labels]
        array = array.take(axis, chosen)
    there = {label for labels in array.labels for label in labels}
    unknown = [
        text for text in told.drop if text not in there and array.form in ("", "long", "cross")
    ]
    unknown = [text for text in unknown if text not in proposal.dropped]
    if unknown:
        raise ValueError(
            f"{array.where}: drop= names {cite(unknown[0])}, which is neither a column nor a label."
        )
    for axis, labels in enumerate(array.labels):
        kept = [i for i, label in enumerate(labels) if label not in told.drop]
        if not kept:
            raise ValueError(f"{array.where}: drop= leaves no label of {cite(array.names[axis])}.")
        array = array.take(axis, kept) if len(kept) < len(labels) else array
    if array.measure and array.measure in array.names and array.measure not in told.where:
        labels = array.labels[array.names.index(array.measure)]
        counts = [label for label in labels if _is_count_unit(array.units.get(label, ""))]
        if len(labels) > 1:
            best = counts[0] if len(counts) == 1 else OPEN
            proposal.ask(
                "where",
                {**told.where, array.measure: (best,)},
                f"different measures: keep one of {show(labels)}",
            )
    if array.measure and array.measure in array.names:
        labels = array.labels[array.names.index(array.measure)]
        if len(labels) == 1:
            unit = {"": array.units.get(labels[0], array.units.get("", ""))}
            scale = {"": array.scales.get(labels[0], 0)}
            array = replace(array, units=unit, scales=scale)
    for axis in reversed(range(len(array.names))):
        if len(array.labels[axis]) == 1 and array.values.ndim > 1:
            left_out.append(f"{array.names[axis] or 'a heading'}={array.labels[axis][0]}")
            array = array.take(axis, [0], squeeze=True)
    if array.values.size < 2:
        raise ValueError(f"{array.where} has one number and no variable of two levels.")
    if isinstance(told.names, Mapping):
        renamed = tuple(told.names.get(name, name) for name in array.names)
        array = _rename(array, renamed)
    elif told.names is not None:
        if len(told.names) != len(array.names):
            raise ValueError(
                f"{array.where}: names= has {plural(len(told.names), 'name')}, but "
                f"there are {plural(len(array.names), 'variable')}: "
                f"{'; '.join(show(labels, 3) for labels in array.labels)}."
            )
        array = _rename(array, tuple(told.names))
    return array, tuple(reversed(left_out))


def _rename(array: TableArray, names: tuple[str, ...]) -> TableArray:
    pairs = list(zip(array.names, names, strict=True))
    totals = {new: array.totals.get(old, ()) for old, new in pairs}
    parts = {new: array.parts.get(old, {}) for old, new in pairs}
    return replace(array, names=names, totals=totals, parts=parts)


def _is_count_unit(unit: str) -> bool:
    return any(part.strip() in _COUNT_UNITS for part in unit.lower().split(","))


class _Work:
    """The array of a table while its totals, marks and kind are found."""

    def __init__(self, array: TableArray, proposal: Proposal, rounded: float, noisy: bool) -> None:
        self.array, self.proposal, self.rounded = array, proposal, rounded
        self.told, self.noisy = proposal.description, noisy
        meanings = [self._meaning(mark) for mark in array.marks]
        zero = np.array([False, *(bounds == (0.0, 0.0) for bounds in meanings)])[array.codes]
        open_ = np.array([False, *(bounds is None for bounds in meanings)])[array.codes]
        self.values = np.where(zero, 0.0, array.values)
        self.doubtful = open_
        self.unit = 10.0**-array.digits if array.digits < _UNITLESS else 0.0
        self.axes = [_Axis(list(range(len(labels)))) for labels in array.labels]
        self.within_rounding = False

    def _meaning(self, mark: str) -> Bounds | None:
        told = self.told.missing.get(mark)
        if told is not None or mark not in self.array.missing:
            return meaning_of(mark, self.told.missing)
        return self.array.missing[mark]

    # Totals -------------------------------------------------------------------------------

    def find_totals(self) -> None:
        """Split totals off each axis; ask about levels that are sums of others."""
        told = None if self.told.totals is None else set(self.told.totals)
        told = set() if told == {"none"} else told
        if told is not None:
            every = {label for labels in self.array.labels for label in labels}
            if absent := sorted(told - every):
                raise ValueError(
                    f"{self.array.where}: totals= names {cite(absent[0])}, which is no "
                    "label." + nearest(absent[0], sorted(every))
                )
        for a, (name, labels) in enumerate(zip(self.array.names, self.array.labels, strict=True)):
            said = {*self.array.totals.get(name, ()), *self.array.parts.get(name, {})}
            words = {label for label in labels if _TOTAL.fullmatch(label.lower())}
            known = [
                i
                for i, t in enumerate(labels)
                if (t in told if told is not None else t in said | words)
            ]
            core = [i for i in range(len(labels)) if i not in known]
            if len(core) < 1 or len(labels) < 2:
                known, core = [], list(range(len(labels)))
            self.axes[a] = _Axis(core, sums=known)
        failed = []
        joint = [  # totals that are printed for several variables at once
            (a, i)
            for a, axis in enumerate(self.axes)
            for i in axis.sums
            if np.isnan(self._line(a, i)).all()
        ]
        empty = [(a, i) for a, i in joint if np.isnan(np.take(self.values, i, a)).all()]
        joint = [pair for pair in joint if pair not in empty]
        for a, i in joint:
            self.axes[a].total = i
        for a, axis in enumerate(self.axes):
            for i in [i for i in axis.sums if (a, i) not in (*joint, *empty)]:
                if axis.total is None and self._is_sum(a, i, axis.core):
                    axis.total = i
                elif not self._is_told_sum(a, i) and self._members(a, i, axis.core) is None:
                    failed.append((a, i))
            axis.sums = [i for i in axis.sums if i != axis.total]
        if not self._is_joint_total(tuple(a for a, _ in joint)):
            failed += [pair for pair in joint if not self._is_seen_sum(*pair)]
        if told is None:
            self._ask_about_sums()
        if failed and not self.proposal.open:
            raise self._failed(*failed[0], failed)

    def _part(self, over: tuple[int, ...]) -> FloatArray:
        """Return the numbers of all levels, with totals in their place on some axes."""
        values = self.values
        for a, axis in enumerate(self.axes):
            totals = [] if axis.total is None else [axis.total]
            values = np.take(values, totals if a in over else axis.core, a)
        return values

    def _is_seen_sum(self, a: int, i: int) -> bool:
        """Return whether a label is the sum of all levels, where all of these are known."""
        lines = self._line(a, [i, *self.axes[a].core])
        return bool((~np.isnan(lines)).all(axis=0).any()) and self._is_sum(a, i, self.axes[a].core)

    def _is_joint_total(self, over: tuple[int, ...]) -> bool:
        """Return whether totals of several variables at once are the sums of all their levels."""
        if not over:
            return True
        total = self._part(over)
        parts = self._part(())
        total, sums = total.squeeze(axis=over), np.nansum(parts, axis=over)
        is_unknown = np.isnan(parts).any(axis=over)
        slack = self._tolerance(parts.size) + 1e-9 * np.abs(np.nan_to_num(total))
        met = np.where(is_unknown, total >= sums - slack, np.abs(total - sums) <= slack)
        return bool(np.isfinite(total).any() and met[np.isfinite(total)].all())

    def _is_told_sum(self, a: int, i: int) -> bool:
        """Return whether a label is the sum of the labels that the format says it consists of."""
        labels = self.array.labels[a]
        parts = self.array.parts.get(self.array.names[a], {}).get(labels[i], ())
        return bool(parts) and self._is_sum(a, i, [labels.index(part) for part in parts])

    def _line(self, a: int, i: int | Sequence[int]) -> FloatArray:
        """Return cells of an axis, without what other axes count twice: (labels, lines)."""
        values = self.values
        for b, axis in enumerate(self.axes):
            if b != a:
                kept = [*axis.core, *([] if axis.total is None else [axis.total])]
                values = np.take(values, kept, b)
        moved = np.moveaxis(values, a, 0).reshape(values.shape[a], -1)
        return np.asarray(moved[i])

    def _tolerance(self, number: int) -> float:
        base = max(self.unit, self.rounded)
        return 0.5 * base * (number + 1) * (2.0 if self.rounded else 1.0) * 1.000001

    def _off(self, a: int, i: int, members: Sequence[int]) -> FloatArray:
        """Return how far a label is off the sum of others; zero where unknown cells explain it."""
        total, parts = self._line(a, i), self._line(a, list(members))
        off = total - np.nansum(parts, axis=0)
        is_unknown = np.isnan(parts).any(axis=0)
        off = np.where(np.isnan(total) | (is_unknown & (off >= 0)), 0.0, off)
        scale = 1e-9 * np.maximum(np.abs(np.nan_to_num(total)), 1.0)
        slack = self._tolerance(len(members)) + scale
        self._rounded_here = bool((np.abs(off) > scale).any())
        return np.where(np.abs(off) <= slack, 0.0, off)

    def _is_sum(self, a: int, i: int, members: Sequence[int]) -> bool:
        met = not self._off(a, i, members).any()
        self.within_rounding |= met and self._rounded_here and self.array.digits == 0
        return met and bool(
            np.nansum(self._line(a, i)) > 0 or not np.nansum(self._line(a, list(members)))
        )

    def _members(self, a: int, i: int, core: Sequence[int]) -> list[int] | None:
        """Return levels that a label is the sum of: all, a run after or before it, or any."""
        if self._is_sum(a, i, core):
            return list(core)
        lines = self._line(a, [i, *core])
        lines = lines[:, ~np.isnan(lines).any(axis=0)]
        rows = list(range(1, len(core) + 1))
        found = self._find_members(lines, lines.sum(axis=1), 0, rows, core, i, deep=True)
        return None if found is None else [core[k - 1] for k in found]

    def _find_members(
        self,
        lines: FloatArray,
        sums: FloatArray,
        target: int,
        rows: list[int],
        order: Sequence[int],
        place: int,
        *,
        deep: bool,
    ) -> list[int] | None:
        """Return the rows of an array that add up to another: all, a run beside it, or any.

        ``order`` has the place of each row in the file, and ``place`` that of the target.
        """

        def adds_up(members: Sequence[int]) -> bool:
            off = np.abs(lines[members].sum(axis=0) - lines[target])
            return bool((off <= self._tolerance(len(members)) + 1e-9 * np.abs(lines[target])).all())

        wanted = float(sums[target]) if lines.size else 0.0
        if not wanted:
            return None
        # Roundings of many lines are independent of each other.
        slack = 2.0 * self._tolerance(len(rows)) * lines.shape[1] ** 0.5 + 1e-9 * abs(wanted)
        if abs(float(sums[rows].sum()) - wanted) <= slack and adds_up(rows):
            return rows
        middle = int(np.searchsorted(order, place))
        for run in (rows[middle:], rows[:middle][::-1]):
            reached = np.cumsum(sums[run])
            for k in np.flatnonzero(np.abs(reached - wanted) <= slack)[:20]:
                if k and adds_up(run[: k + 1]):
                    return sorted(run[: k + 1])
        if not deep or not 3 <= len(rows) <= _MOST_DEEP or lines.shape[1] < 4:
            return None
        from scipy.optimize import nnls  # loaded when needed: it is slow to import

        there = np.flatnonzero(lines[target] > 0)[:500]
        parts = lines[rows][:, there] / lines[target][there]
        try:
            share = nnls(parts.T, np.ones(len(there)))[0]
        except RuntimeError:
            return None
        members = [rows[k] for k in np.flatnonzero(share > 0.5)]
        return members if len(members) > 1 and adds_up(members) else None

    def _ask_about_sums(self) -> None:
        """Ask about levels that are sums of others, although no word says so."""
        found: list[str] = []
        for a, axis in enumerate(self.axes):
            lines = self._line(a, axis.core)
            lines = lines[:, ~np.isnan(lines).any(axis=0)]
            sums = lines.sum(axis=1)
            left = list(range(len(axis.core)))
            order = np.argsort(-sums, kind="stable").tolist()
            for rank, k in enumerate(order):
                if len(left) < 3:
                    break
                others = [j for j in left if j != k]
                deep = rank < _DEEPEST
                members = self._find_members(lines, sums, k, others, others, k, deep=deep)
                if members is not None and self._is_proof(lines[k], len(members), len(order)):
                    left = others
                    found.append(self.array.labels[a][axis.core[k]])
        if found:
            words = [
                self.array.labels[a][i]
                for a, axis in enumerate(self.axes)
                for i in [*axis.sums, *([] if axis.total is None else [axis.total])]
            ]
            self.proposal.ask(
                "totals",
                tuple(dict.fromkeys((*words, *found))),
                f'{show(found, 3)} add up other levels in every line; "none" if not',
            )

    def _is_proof(self, cells: FloatArray, members: int, labels: int) -> bool:
        """Return whether sums that agree are more than chance."""
        unit = self.unit or 1e-6
        width = 2.0 * self._tolerance(members) / unit + 1.0
        log = float(np.log10(np.minimum(1.0, width / (2.0 * cells / unit + 1.0))).sum())
        return log + log10(4.0 * labels**2) < log10(_CHANCE)

    def _failed(self, a: int, i: int, failed: Sequence[tuple[int, int]]) -> ValueError:
        axis, array = self.axes[a], self.array
        verified = [
            array.labels[b][j]
            for b, x in enumerate(self.axes)
            for j in [*([] if x.total is None else [x.total]), *x.sums]
            if (b, j) not in failed
        ]
        off = self._off(a, i, axis.core)
        total, parts = self._line(a, i), np.nansum(self._line(a, axis.core), axis=0)
        others = [
            [array.labels[b][j] for j in [*x.core, *([] if x.total is None else [x.total])]]
            for b, x in enumerate(self.axes)
            if b != a
        ]
        places = list(product(*others))
        name, label = array.names[a] or "the columns", array.labels[a][i]
        worst = []
        for k in np.argsort(-np.abs(off), kind="stable")[:3]:
            if off[k]:
                at = ", ".join(places[k])
                worst.append(
                    f"{at + ': ' if at else ''}{total[k]:,.10g} given, "
                    f"{parts[k]:,.10g} by its parts"
                )
        return ValueError(
            Message(
                "{where}: {label!r} of {name!r} is not the sum of the other levels ({worst}). "
                "Use {others} if it is a level like others, {drop} to leave it out, or name all "
                "totals.",
                where=array.where,
                label=label,
                name=name,
                worst="; ".join(worst),
                others=Argument("totals", list(dict.fromkeys(verified)) or "none"),
                drop=Argument("drop", label),
            )
        )

    # Marks --------------------------------------------------------------------------------

    def core(self, array: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return the part of an array without totals."""
        for a, axis in enumerate(self.axes):
            array = np.take(array, axis.core, a)
        return array

    def decide_marks(self) -> dict[str, Bounds]:
        """Return the bounds of each mark in the levels; ask for those with no or two meanings."""
        codes = self.core(self.array.codes)
        bounds: dict[str, Bounds] = {}
        asked: dict[str, str] = {}
        for number, mark in enumerate(self.array.marks, 1):
            if not (codes == number).any():
                continue
            meaning = self._meaning(mark)
            if meaning is None and mark.lower() in DOUBTFUL_MARKS:
                meaning = self._by_totals(number)
                if meaning == (0.0, 0.0):
                    self.values = np.where(self.array.codes == number, 0.0, self.values)
            if meaning is None:
                asked[mark] = OPEN
            else:
                bounds[mark] = meaning
        if asked:
            told = {**{m: b for m, b in self.told.missing.items()}, **asked}
            number = int(sum((codes == 1 + self.array.marks.index(m)).sum() for m in asked))
            what = (
                "no row"
                if asked.keys() == {""} and self.array.form == "long"
                else show(list(asked))
            )
            self.proposal.ask(
                "missing",
                told,
                f"{plural(number, 'cell')} with {what}: 0, "
                '"unknown", or the least and most such as [1, 9]',
            )
        return bounds

    def _by_totals(self, number: int) -> Bounds | None:
        """Return what totals say of a mark: zero, or not; None where they do not say."""
        here = self.array.codes == number
        decided = np.zeros(here.shape, dtype=bool)
        for a, axis in enumerate(self.axes):
            if axis.total is None:
                continue
            parts = np.take(self.values, axis.core, a)
            marked = np.take(here, axis.core, a)
            other = (np.isnan(parts) & ~marked).any(axis=a)
            rest = np.take(self.values, axis.total, a) - np.nansum(parts, axis=a)
            known = marked.any(axis=a) & ~other & ~np.isnan(rest)
            if (known & (rest > self._tolerance(len(axis.core)))).any():
                return 0.0, inf
            decided |= here & np.expand_dims(known, a)
        return (0.0, 0.0) if self.core(here & ~decided).any() == np.False_ else None

    # Kind ---------------------------------------------------------------------------------

    def find_kind(self) -> str:
        """Return what the numbers are: counts, or shares of 1 or 100, of all or within levels."""
        array, told = self.array, self.told
        values = self._part(())
        known = values[np.isfinite(values)]
        if not known.size:
            raise ValueError(f"{array.where}: none of its cells is known.")
        self.within: tuple[str, ...] = told.per or ()
        if told.kind == "counts":
            return "" if self._ask_for_names() else "counts"
        unit = array.units.get("", "").lower()
        says_share = array.percent or any(p.strip() in _SHARE_UNITS for p in unit.split(","))
        whole = array.digits == 0 and bool((known == np.floor(known)).all())
        for size, kind in ((100.0, "percent"), (1.0, "shares")):
            within = self._sums_to(values, size, says_share=says_share)
            if within is None or (told.per is not None and set(within) != set(told.per)):
                continue
            if told.kind == kind or says_share or not whole:
                self.within = told.per if told.per is not None else within
                return kind
            if not _is_count_unit(unit):
                self.proposal.ask(
                    "kind", OPEN, f"counts or percent: the numbers add up to {size:g}"
                )
                return ""
        if told.kind is not None:
            return told.kind
        if not says_share:
            added = any(axis.total is not None and len(axis.core) > 1 for axis in self.axes)
            if added or _is_count_unit(unit):
                if self._ask_for_names():
                    return ""
                return "counts"
        self._ask_for_names()
        shown = f" of unit {cite(unit)}" if unit else ""
        self.proposal.ask(
            "kind",
            OPEN,
            "counts, shares or percent; leave out means, rates and "
            f"amounts. Numbers{shown}, with no total and no sum of 100",
        )
        return ""

    def _ask_for_names(self) -> bool:
        """Ask for variables that have no name and no total, which may be different measures."""
        if self.told.names is not None:
            return False
        array = self.array
        shown = [
            axis.total is not None or name not in ("", array.heading)
            for name, axis in zip(array.names, self.axes, strict=True)
        ]
        if all(shown):
            return False
        names = tuple(name or OPEN for name in array.names)
        labels = show(array.labels[[bool(s) for s in shown].index(False)], 4)
        self.proposal.ask(
            "names", names, f"of which variable these are levels, if of one: {labels}"
        )
        return True

    def _sums_to(
        self, values: FloatArray, size: float, *, says_share: bool
    ) -> tuple[str, ...] | None:
        """Return the variables within whose levels numbers add up to a size; none: all do."""
        if np.isnan(values).any():  # what is not known makes up the rest
            known = float(np.nansum(values))
            return () if says_share and known <= size and (known > 2.0) == (size > 2.0) else None
        names = self.array.names
        for number in range(values.ndim):
            for kept in combinations(range(values.ndim), number):
                others = tuple(b for b in range(values.ndim) if b not in kept)
                sums = np.asarray(values.sum(axis=others)).ravel()
                terms = values.size / len(sums)
                slack = max(4.0 * self.unit * np.sqrt(terms / 12.0), self.unit) + 1e-6 * size
                if (np.abs(sums - size) <= min(slack, 0.05 * size)).all():
                    return tuple(names[b] for b in kept)
        return None

    # Result -------------------------------------------------------------------------------

    def conclude(self, kind: str, bounds: Mapping[str, Bounds], reading: Reading) -> Draft:
        """Return the table without totals, with these as known sums where cells are unknown."""
        array = self.array
        values = np.ascontiguousarray(self._part(()))
        codes = self.core(array.codes)
        scale = 10.0 ** array.scales.get("", 0) if kind == "counts" else 1.0
        labels = tuple(
            tuple(known[i] for i in axis.core)
            for known, axis in zip(array.labels, self.axes, strict=True)
        )
        is_unknown = np.isnan(values)
        low, high = values.copy(), values.copy()
        marks = {}
        for mark, (least, most) in bounds.items():
            here = codes == 1 + array.marks.index(mark)
            low[here & is_unknown], high[here & is_unknown] = least, most
            words = "zero" if (least, most) == (0.0, 0.0) else "not given"
            words = f"{least:g} to {most:g}" if np.isfinite(most) and most else words
            marks[mark] = f"{plural(int(here.sum()), 'cell')}, {words}"
        margins, total = self._margins(labels, scale) if is_unknown.any() else ((), None)
        rounding = (
            0.5 * self.unit if array.digits or kind != "counts" or self.within_rounding else 0.0
        )
        table = LabelledTable(
            array.names,
            labels,
            values * scale,
            kind="counts" if kind == "counts" else "shares",
            bounds=(low * scale, high * scale) if is_unknown.any() else None,
            margins=margins,
            total=total,
            rounding=rounding * scale,
            records=self.told.records,
            noisy=self.noisy,
        )
        if self.told.weight is not None:
            table = replace(table, weight=self.told.weight)
        kinds = {"counts": "counts", "shares": "shares", "percent": "percentages"}
        within = f" within {' and '.join(self.within)}" if self.within else ""
        known_total = total if total is not None else float(np.nansum(values)) * scale
        reading = replace(
            reading,
            names=array.names,
            levels=labels,
            kind=kinds[kind] + within,
            total=known_total,
            totals=tuple(
                f"{name or 'columns'}={known[i]}"
                for name, known, axis in zip(array.names, array.labels, self.axes, strict=True)
                for i in [*([] if axis.total is None else [axis.total]), *axis.sums]
            ),
            marks=marks,
            flags=array.flags,
        )
        settled = replace(
            self.told, kind=kind, per=self.within or None, missing={m: b for m, b in bounds.items()}
        )
        return Draft(replace(self.proposal, description=settled), reading, table, self.within)

    def _margins(
        self, labels: tuple[tuple[str, ...], ...], scale: float
    ) -> tuple[tuple[LabelledTable, ...], float | None]:
        """Return the printed totals as tables of fewer variables, and the total of all."""
        summed = [a for a, axis in enumerate(self.axes) if axis.total is not None]
        margins, total = [], None
        for number in range(1, len(summed) + 1):
            for over in combinations(summed, number):
                part = self._part(over).squeeze(axis=over) * scale
                kept = [a for a in range(len(self.axes)) if a not in over]
                if kept and np.isfinite(part).any():
                    names = tuple(self.array.names[a] for a in kept)
                    margins.append(LabelledTable(names, tuple(labels[a] for a in kept), part))
                elif not kept and np.isfinite(part):
                    total = float(part)
        return tuple(margins), total
