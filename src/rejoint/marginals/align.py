"""Tables that were read, checked and aligned to one domain: arrays of counts or shares."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import FloatArray
from rejoint.domain.domain import Domain
from rejoint.io.schema import LARGEST
from rejoint.marginals.labelled_table import (
    FRAME_COUNT_NAMES,
    SHARE_NAMES,
    LabelledTable,
    error_in,
    names_of,
    read_table,
)
from rejoint.marginals.unknown import UnknownCells, start_fill
from rejoint.text import cite, plural, shorten, show

Subset = tuple[int, ...]

#: Largest relative deviation of the sum of shares from 1: published shares are rounded.
ROUNDING = 0.01


def read_tables(
    tables: Mapping[Any, Any],
    domain: Domain | None,
    kind: str,
    suppressed: tuple[float, float] | None = None,
    weight: Mapping[Any, float] | float | None = None,
    *,
    noisy: bool = False,
) -> dict[str, Any]:
    """Read tables in any accepted form, and return the parts of the Marginals of them."""
    if kind not in ("auto", "counts", "shares"):
        raise ValueError(f"kind must be 'auto', 'counts' or 'shares', got {cite(kind)}.")
    if not isinstance(tables, Mapping):
        form = f"{{('a', 'b'): table}}; got {type(tables).__name__}"
        raise TypeError(f"tables must be a mapping from tuples of names to tables, {form}.")
    read = []
    for key, given in tables.items():
        table = read_table(names_of(key), given)
        table = replace(table, noisy=True) if noisy else table
        unknown = np.isnan(table.values)
        if suppressed is not None and table.bounds is None and unknown.any():
            low, high = suppressed
            if not 0 <= low <= high:
                advice = "give the least and the most that a held-back cell may be"
                raise ValueError(f"suppressed=({low:g}, {high:g}): {advice}.")
            lowest, highest = (np.where(unknown, end, table.values) for end in suppressed)
            table = replace(table, bounds=(lowest, highest))
        read.append(table)
    return gather(read, domain, kind, weight)


def gather(
    tables: Sequence[LabelledTable],
    domain: Domain | None,
    kind: str = "auto",
    weight: Mapping[Any, float] | float | None = None,
) -> dict[str, Any]:
    """Check tables, align them to one domain, and return the parts of the Marginals of them."""
    for table in tables:
        check_cells(table)
        check_no_totals(table)
    domain = _domain_of(tables) if domain is None else domain
    subsets: dict[Subset, LabelledTable] = {}
    flat, counted, unknown, rounding = [np.empty(0)], [], [], []
    start = 0
    for table in tables:
        subset, values = align(table, domain)
        if subset in subsets:
            before = cite(subsets[subset].names)
            advice = "add the two up, or keep one"
            raise error_in(table.names, f" is given twice (before as {before}): {advice}.")
        subsets[subset] = table
        divisor, is_count = scale_and_kind(table, kind)
        cells = _unknown_cells(table, subset, values, domain, divisor, whole=not is_count)
        if table.records is not None and not is_count:
            cells = None if cells is None else cells.scaled(table.records)
            divisor, is_count = divisor / table.records, True
        filled = values.ravel() / divisor
        if cells is not None:
            filled = start_fill(filled, values.shape, cells, counted=is_count)
            unknown.append(cells.shifted(start))
        start += filled.size
        flat.append(filled)
        counted.append(is_count)
        rounding.append(table.rounding / divisor)
    return {
        "domain": domain,
        "index_subsets": tuple(subsets),
        "flat": np.concatenate(flat),
        "table_weight": _weights(weight, subsets, domain),
        "counted": np.array(counted, dtype=bool),
        "unknown": UnknownCells.together(unknown),
        "rounding": np.array(rounding),
    }


def _weights(
    given: Mapping[Any, float] | float | None,
    subsets: Mapping[Subset, LabelledTable],
    domain: Domain,
) -> FloatArray:
    """Return one weight for each table: as given, else that of its description."""
    weight = {subset: table.weight for subset, table in subsets.items()}
    for key, value in given.items() if isinstance(given, Mapping) else ():
        subset = tuple(sorted(domain.indices(names_of(key))))
        if subset not in weight:
            raise ValueError(f"table_weight names {cite(key)}, but no such table is given.")
        weight[subset] = value
    if given is not None and not isinstance(given, Mapping):
        weight = dict.fromkeys(weight, given)
    weights = np.array(list(weight.values()), dtype=np.float64)
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError(f"table_weight must be finite and not negative, got {cite(given)}.")
    return weights


def read_base(rounded: Any) -> float:
    """Return the number whose multiples counts were rounded to: N or "nearest N"; 0 for none."""
    try:
        base = (
            0.0 if rounded is None else float(str(rounded).strip().lower().removeprefix("nearest"))
        )
    except ValueError:
        base = np.nan
    if rounded is None or 0 < base < np.inf:
        return base
    form = "give the number whose multiples the counts are, such as 3, 5 or 'nearest 5'"
    raise ValueError(f"rounded={cite(rounded)}: {form}.")


# Checks ------------------------------------------------------------------------------------


def check_cells(table: LabelledTable) -> None:
    """Raise for cells that are no numbers, negative cells without noise, and empty tables."""
    values, names = table.values, table.names
    bad = np.isinf(values) | (values < 0 if not table.noisy else False)
    if table.bounds is None:
        bad |= np.isnan(values)
    if bad.any():
        raise _bad_cell(table, np.unravel_index(int(np.argmax(bad)), values.shape))
    with np.errstate(over="ignore"):
        if max(np.nansum(np.abs(values)), abs(table.total or 0.0)) > LARGEST:
            raise error_in(
                names,
                f" adds up to more than {LARGEST:g}, the largest number that a model file can "
                "hold: divide all tables by the same large number.",
            )
    if np.nansum(values) > 0 or (table.total or 0.0) > 0:
        return
    if np.isnan(values).any():
        if not table.margins:
            raise error_in(names, ": none of its cells is known, nor any total: leave it out.")
    elif (values < 0).any():
        total = f"{values.sum():g}"
        raise error_in(names, f" adds up to {total}: the noise exceeds the counts; leave it out.")
    else:
        raise error_in(names, " is empty: all its cells are zero.")


def _bad_cell(table: LabelledTable, cell: Sequence[Any]) -> ValueError:
    labels = [int(i) if of is None else of[i] for i, of in zip(cell, table.labels, strict=True)]
    pairs = zip(table.names, labels, strict=True)
    value = table.values[tuple(cell)]
    advice = (
        "Use noisy=True if noise was added to protect privacy."
        if value < 0
        else "Write 0 where nothing was counted; if the cell was held back, say within which "
        "bounds it is: suppressed=(0, 4), or (0, inf)."
    )
    where = ", ".join(f"{shorten(n)}={cite(x)}" for n, x in pairs)
    rule = "cells must be finite and not negative"
    return error_in(table.names, f", cell {where}: got {value:g}; {rule}. {advice}")


def check_no_totals(table: LabelledTable) -> None:
    """Raise for a row of totals among the cells, which would count everything twice."""
    for axis, labels in enumerate(table.labels):
        for i, label in enumerate(labels or ()):
            if str(label).lower() not in ("all", "total", "sum") or len(labels or ()) < 3:
                continue
            total = np.take(table.values, i, axis)
            rest = np.delete(table.values, i, axis).sum(axis)
            slack = table.rounding * (len(labels or ()) + 1)
            if np.allclose(total, rest, rtol=1e-6, atol=slack):
                name = cite(table.names[axis])
                advice = "leave totals out (pandas: margins=False)"
                text = f": {cite(label)} of {name} is the sum of the other levels; {advice}."
                raise error_in(table.names, text)


def scale_and_kind(table: LabelledTable, kind: str) -> tuple[float, bool]:
    """Return the divisor of the cells, and whether they are counts, which are not divided.

    Unless ``kind`` is given, the name of the column decides, then the numbers: integers are
    counts; a sum of 1 means shares; a sum of 100 with fractions means percentages; a sum below one
    is an error; everything else is counts (of weighted records, if fractional).
    """
    total = float(np.nansum(table.values))
    if kind == "auto":
        kind = table.kind if table.kind != "auto" else _kind(table, total)
    if kind == "counts":
        return 1.0, True
    scale = 100.0 if total > 2.0 else 1.0
    slack = ROUNDING * scale + _error_of_sum(table)
    if np.isnan(table.values).any():  # unknown cells make up the rest
        if total <= scale + slack:
            return max(scale, total), False
    elif abs(total - scale) <= slack:
        return total, False
    text = f": shares must add up to 1 (or 100 %), these to {total:g}. {_advice(table)}"
    raise error_in(table.names, text)


def _error_of_sum(table: LabelledTable) -> float:
    """Return four standard errors of a sum of rounded numbers."""
    return 8.0 * table.rounding * float(np.sqrt(np.count_nonzero(table.values) / 12.0))


def _advice(table: LabelledTable) -> str:
    """Return advice for tables of row percentages, which cannot be used alone."""
    for axis, name in enumerate(table.names if len(table.names) > 1 else ()):
        sums = table.values.sum(axis=tuple(a for a in range(table.values.ndim) if a != axis))
        for size in (1.0, 100.0):
            slack = ROUNDING * size + _error_of_sum(table)
            if len(sums) > 1 and (np.abs(sums - size) <= slack).all():
                return (
                    f"Each level of {cite(name)} adds up to {size:g} by itself: multiply by the "
                    f"shares of {cite(name)} first."
                )
    return "If they are counts, use kind='counts'."


def _kind(table: LabelledTable, total: float) -> str:
    column = table.column.lower()
    known = table.values[~np.isnan(table.values)]
    fractions = bool(np.any(known != np.floor(known)))
    one, hundred = abs(total - 1.0) <= ROUNDING, abs(total / 100.0 - 1.0) <= ROUNDING
    if column in SHARE_NAMES or (fractions and one):
        return "shares"  # also in a column "freq", which may mean either
    if column in FRAME_COUNT_NAMES or table.whole:
        return "counts"
    if one or (fractions and hundred):
        return "shares"
    if (
        len(known) < table.values.size
        and fractions
        and (total < 1.0 or table.total in (1.0, 100.0))
    ):
        return "shares"
    if total < 1.0:
        raise error_in(
            table.names,
            f" adds up to {total:g}: too little for shares, which add up to 1, and for counts. "
            "Check it, or use kind='counts'.",
        )
    return "counts"


# One domain --------------------------------------------------------------------------------


def _domain_of(tables: Sequence[LabelledTable]) -> Domain:
    """Collect variables and levels, both in order of first appearance.

    A plain array has only a number of levels: it gets the labels of other tables, or 0, 1, 2, ...
    if there are none.
    """
    if not tables:
        raise ValueError("No tables are given: moments alone need domain=, for their levels.")
    levels: dict[str, dict[Hashable, None]] = {}
    for table in tables:
        for name, labels in zip(table.names, table.labels, strict=True):
            levels.setdefault(name, {}).update(dict.fromkeys(labels or ()))
    for name, known in levels.items():
        texts: dict[str, Hashable] = {}
        for level in known:  # 1 in one table, "1" in another
            twin = texts.setdefault(str(level), level)
            if twin is not level:
                raise ValueError(
                    f"Variable {cite(name)} has the level {cite(twin)} in one table and "
                    f"{cite(level)} in another: write it in the same way in all of them."
                )
    for table in tables:
        for labels, name, size in zip(table.labels, table.names, table.values.shape, strict=True):
            known = levels[name]
            known.update({} if known else dict.fromkeys(range(size)))
            if labels is None and size != len(known):
                sizes = f"{plural(size, 'level')}, but other tables give {cite(name)} {len(known)}"
                advice = "Give domain=, or tables with labels"
                text = f": its axis {cite(name)} has {sizes} ({show(list(known))}). {advice}."
                raise error_in(table.names, text)
    return Domain.of({name: list(known) for name, known in levels.items()})


def align(table: LabelledTable, domain: Domain) -> tuple[Subset, FloatArray]:
    """Reorder axes and levels of a table as in the domain; levels that it lacks get zero."""
    where = domain.indices(table.names)
    values = table.values
    for axis, (n, labels) in enumerate(zip(where, table.labels, strict=True)):
        variable = domain[n]
        if labels is None:
            if values.shape[axis] != len(variable):
                levels = f"{plural(len(variable), 'level')} of {cite(variable.name)}"
                has = f"the domain has {levels} ({show(list(variable.levels))})"
                raise error_in(table.names, f": shape {values.shape} does not fit; {has}.")
            continue
        try:
            codes = [variable.code(label) for label in labels]
        except (ValueError, KeyError) as error:
            raise error_in(table.names, f": {error.args[0]}") from error
        spread = np.zeros((len(variable), *np.delete(values.shape, axis)))
        np.add.at(spread, codes, np.moveaxis(values, axis, 0))
        values = np.moveaxis(spread, 0, axis)
    order = np.argsort(where)
    return tuple(where[i] for i in order), np.ascontiguousarray(values.transpose(order))


def _unknown_cells(
    table: LabelledTable,
    subset: Subset,
    values: FloatArray,
    domain: Domain,
    divisor: float,
    *,
    whole: bool,
) -> UnknownCells | None:
    """Return the unknown cells of an aligned table, with their bounds and known sums.

    ``whole`` means that all cells add up to the divisor, as shares add up to one.
    """
    flat = values.ravel()
    unknown = np.isnan(flat)
    if not unknown.any() or table.bounds is None:
        return None
    low, high = (
        align(replace(table, values=bound), domain)[1].ravel()[unknown] / divisor
        for bound in table.bounds
    )
    number = np.cumsum(unknown) - 1  # of the unknown cell at each position
    lines: list[tuple[NDArray[np.intp], float]] = []
    for margin in table.margins:
        kept, sums_of = align(margin, domain)
        axes = [subset.index(n) for n in kept]
        places = np.moveaxis(np.arange(flat.size).reshape(values.shape), axes, range(len(axes)))
        lines += zip(places.reshape(sums_of.size, -1), sums_of.ravel(), strict=True)
    total = divisor if table.total is None and whole else table.total
    if total is not None:
        lines.append((np.arange(flat.size), total))
    sums = []
    for line, value in lines:
        members = number[line[unknown[line]]]
        if len(members) and not np.isnan(value):
            rest = (value - float(np.nansum(flat[line]))) / divisor
            sums.append((members, float(np.clip(rest, low[members].sum(), high[members].sum()))))
    return UnknownCells(np.flatnonzero(unknown), low, high, tuple(sums))


def check_covered(domain: Domain, subsets: Sequence[Subset]) -> None:
    """Raise an error that names the variables of the domain that are in no subset."""
    held = {n for s in subsets for n in s}
    absent = [name for n, name in enumerate(domain.names) if n not in held]
    if absent:
        advice = "give one, or leave the variables out of the domain"
        raise ValueError(f"No table or moment says anything about {show(absent)}: {advice}.")
