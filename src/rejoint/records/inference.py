"""Inference: the variable behind a column, where nobody declared it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.arrays import numbers_if_all
from rejoint.domain.bins import bins_of_edges, quantile_edges, representatives
from rejoint.domain.columns import Coded, Column, Numbers
from rejoint.domain.labels import Level, natural_order, show
from rejoint.domain.levels import checked_levels
from rejoint.domain.variable import Kind, Variable
from rejoint.records.wishes import Wish

__all__ = ["MANY", "infer_variable"]

Floats = NDArray[np.float64]
MANY = 50  # more distinct numbers are binned; more text, nearly all distinct, is refused
BINS = 10
NEARLY_ALL = 0.9


def infer_variable(name: str, column: Column, wish: Wish, weight: Floats | None = None) -> Variable:
    """Return the variable of a column: as wished, declared in the data, or seen in it.

    Examples
    --------
    >>> from rejoint.domain.series import read_column
    >>> infer_variable("x", read_column(["b", None, "a"]), Wish(kind="ordinal"))
    Variable(name='x', levels=('a', 'b'), kind='ordinal', representatives=None)
    """
    if wish.levels is not None:
        if wish.bins is not None and wish.bins is not False:
            raise ValueError(f"Variable {name!r}: give its levels or its bins, not both.")
        return Variable(name, checked_levels(name, wish.levels), wish.kind or _kind(column))
    if wish.kind == "binned" or not (wish.bins is None or wish.bins is False):
        bins = BINS if wish.bins is None or wish.bins is False else wish.bins
        return _binned(name, column, bins, wish.kind, weight)
    if isinstance(column, Numbers):
        return _of_numbers(name, column, wish, weight)
    return Variable(name, _labels(name, column, wish), wish.kind or _kind(column))


def _kind(column: Column) -> Kind:
    return "ordinal" if isinstance(column, Coded) and column.ordered else "nominal"


def _of_numbers(name: str, column: Numbers, wish: Wish, weight: Floats | None) -> Variable:
    distinct = _distinct(column)
    if not len(distinct):
        raise _empty(name)
    if len(distinct) > MANY and wish.kind is None and wish.bins is None:
        return _binned(name, column, BINS, None, weight)
    if column.values.dtype.kind == "f" and column.values.dtype.itemsize < 8:
        # The shortest text of a narrow float is the number that was meant: 0.1, not 0.1000000015.
        levels = tuple(float(str(value)) for value in distinct)
    else:
        levels = tuple(distinct.tolist())
    return Variable(name, levels, wish.kind or "nominal")


def _distinct(column: Numbers) -> NDArray[Any]:
    """Return the distinct values in order; by counting where they are integers close together."""
    values = column.present()
    if values.dtype == np.int64 and len(values):
        low, high = int(values.min()), int(values.max())
        if high - low < len(values) + 1000:
            return np.flatnonzero(np.bincount(values - low)) + low
    return np.unique(values)


def _binned(
    name: str,
    column: Column,
    wanted: int | Sequence[float] | NDArray[Any],
    kind: Kind | None,
    weight: Floats | None,
) -> Variable:
    if kind not in (None, "binned"):
        raise ValueError(f"Variable {name!r}: it cannot be both {kind} and binned.")
    if isinstance(column, Coded):
        column = numbers_if_all(column)
    if isinstance(column, Coded) and (column.codes >= 0).any():
        raise ValueError(
            f"Variable {name!r} cannot be binned: it holds {show(column.labels)}, not numbers."
        )
    values = column.floats() if isinstance(column, Numbers) else np.full(len(column), np.nan)
    there = ~np.isnan(values)
    if isinstance(wanted, (int, np.integer)):
        edges = _quantiles(
            name, values[there], int(wanted), None if weight is None else weight[there]
        )
    else:
        edges = _checked_edges(name, wanted)
    bins = bins_of_edges(edges)
    return Variable(name, bins, "binned", representatives(bins, values, weight))


def _quantiles(name: str, values: Floats, count: int, weight: Floats | None) -> Floats:
    if count < 2:
        raise ValueError(
            f"Variable {name!r}: bins must be 2 or more, or a list of edges; not {count}."
        )
    if not len(values):
        raise _empty(name)
    return quantile_edges(values, count, weight)


def _checked_edges(name: str, wanted: Any) -> Floats:
    try:
        edges = np.array([float(e) for e in wanted])
    except (TypeError, ValueError):
        edges = np.array([])
    if len(edges) < 2 or not (np.diff(edges) > 0).all():
        raise ValueError(
            f"Variable {name!r}: bins must be a number of bins or two or more increasing edges, "
            f"not {wanted!r}."
        )
    return edges


def _labels(name: str, column: Coded, wish: Wish) -> tuple[Level, ...]:
    labels = column.labels
    if not labels or not (column.declared or (column.codes >= 0).any()):
        raise _empty(name)
    if column.declared:
        return labels
    if all(isinstance(label, bool) for label in labels):
        return (False, True)
    _refuse_same_text(name, column)
    present = int((column.codes >= 0).sum())
    if wish.kind is None and len(labels) > max(MANY, NEARLY_ALL * present):
        raise ValueError(
            f"Variable {name!r} looks like an identifier: {len(labels):,} different texts in "
            f"{present:,} cells. {_instead(labels)}; if they are levels all the same, "
            f"say kinds={{{name!r}: 'nominal'}}."
        )
    return tuple(natural_order(labels))


def _instead(labels: tuple[Level, ...]) -> str:
    """Say what to do with a column of many texts: numbers written as text are a case apart."""
    try:
        for label in labels:
            float(str(label))
    except ValueError:
        return "Leave the column out, or group its values"
    return "They read like numbers: turn them into numbers, which can be binned"


def _refuse_same_text(name: str, column: Coded) -> None:
    seen: dict[str, int] = {}
    for i, label in enumerate(column.labels):
        j = seen.setdefault(str(label), i)
        if i != j:
            cells = (
                f"{column.labels[k]!r} ({type(column.labels[k]).__name__}, "
                f"row {int(np.argmax(column.codes == k))})"
                for k in (j, i)
            )
            raise ValueError(
                f"Variable {name!r} holds both {' and '.join(cells)}: "
                "make them one type, text or number."
            )


def _empty(name: str) -> ValueError:
    return ValueError(
        f"Variable {name!r} has no value in any row: leave the column out, "
        f"or declare what it can be: levels={{{name!r}: [...]}}."
    )
