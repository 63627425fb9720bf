"""Reading: every column of a table read, its variable found or given, its cells encoded."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.domain import Domain, HandleUnknown, Variable, refuse_duplicates
from rejoint.domain.columns import Coded, Codes
from rejoint.domain.encoding import Unknown, encode_column, unknown_error, unknown_text
from rejoint.domain.labels import nearest, show
from rejoint.domain.series import read_column
from rejoint.domain.variable import check_handle_unknown
from rejoint.records.frames import Frame
from rejoint.records.inference import MANY, infer_variable
from rejoint.records.matrices import read_matrix
from rejoint.records.wishes import Wishes
from rejoint.remarks import remark

__all__ = ["Encoded", "read_table", "report_inferred", "report_unknown"]

Floats = NDArray[np.float64]

_MOST = 5  # variables that a remark names one by one


class Encoded(NamedTuple):
    """The codes of a table (rows, variables) and the domain that they belong to.

    Examples
    --------
    >>> Encoded(Domain.of({"a": 2}), np.array([[0], [1]])).codes.shape
    (2, 1)
    """

    domain: Domain
    codes: Codes


def read_table(
    frame: Frame,
    domain: Domain | None,
    wishes: Wishes,
    weight: Floats | None,
    handle_unknown: HandleUnknown,
    matrix: NDArray[Any] | None = None,
) -> Encoded:
    """Encode a table in a domain, or in the one that its columns and the wishes make.

    Where it is an array of two axes, `matrix` is that: most of them can be read all at once.

    Examples
    --------
    >>> from rejoint.records.wishes import read_wishes
    >>> frame = Frame(("a",), [["x", None, "y"]], 3)
    >>> read_table(frame, None, read_wishes(None, None, None), None, "missing").codes.T
    array([[ 0, -1,  1]], dtype=int16)
    """
    check_handle_unknown(handle_unknown)
    if matrix is not None and (domain is not None or not wishes.by_name):
        quick = read_matrix(matrix, domain)
        if quick is not None:
            quick[1].setflags(write=False)
            return Encoded(*quick)
    plan = list(_named(frame, wishes) if domain is None else _matched(frame, domain))
    variables: dict[str, Variable] = {}
    strange: dict[str, Unknown] = {}
    codes: Codes = np.full((frame.rows, len(plan)), -1, dtype=np.int16)
    for n, (name, raw) in enumerate(plan):
        column = _absent(frame.rows) if raw is None else read_column(raw, name)
        if domain is None:
            variables[name] = infer_variable(name, column, wishes.of(name), weight)
        else:
            variables[name] = domain[name]
        found, unknown = encode_column(variables[name].levels, column)
        codes = codes.astype(np.promote_types(codes.dtype, found.dtype), copy=False)
        codes[:, n] = found
        if unknown is not None:
            strange[name] = unknown
    if domain is None:
        report_inferred(variables, wishes)
        domain = Domain(tuple(variables.values()))
    report_unknown(domain, strange, handle_unknown)
    codes.setflags(write=False)
    return Encoded(domain, codes)


def _absent(rows: int) -> Coded:
    """Return a column that is missing in every row."""
    return Coded((), np.full(rows, -1, dtype=np.int8))


def _named(frame: Frame, wishes: Wishes) -> Iterator[tuple[str, Any]]:
    """Pair every column with its name, once the names and the size make sense."""
    names = frame.names or tuple(f"x{n}" for n in range(len(frame.columns)))
    if not names:
        none = "columns" if frame.rows else "rows and no columns"
        raise ValueError(f"The data has no {none}: there is nothing to learn from.")
    if not frame.rows:
        raise ValueError(
            f"The data has no rows (its columns are {show(names)}): levels cannot be seen; "
            "give a domain to encode an empty table."
        )
    refuse_duplicates(names)
    for name in wishes.by_name:
        if name not in names:
            raise KeyError(
                f"kinds, levels or bins speak of {name!r}, but the columns are {show(names)}."
                + nearest(name, names)
            )
    return zip(names, frame.columns, strict=True)


def _matched(frame: Frame, domain: Domain) -> Iterator[tuple[str, Any]]:
    """Pair every variable of the domain with its column, None where the table has none."""
    if frame.names is None:
        if len(frame.columns) != len(domain):
            raise ValueError(
                f"The array has {len(frame.columns)} columns without names, the domain has "
                f"{len(domain)} variables ({show(domain.names)}): they must be as many."
            )
        return zip(domain.names, frame.columns, strict=True)
    refuse_duplicates(frame.names)
    columns = dict(zip(frame.names, frame.columns, strict=True))
    extra = [name for name in frame.names if name not in domain]
    absent = [name for name in domain.names if name not in columns]
    if len(absent) == len(domain) and frame.names:
        raise ValueError(
            f"No column of the data ({show(frame.names)}) is a variable of the domain "
            f"({show(domain.names)})." + nearest(frame.names[0], domain.names)
        )
    if extra:
        hints = "".join(nearest(name, absent) for name in extra[:3])
        remark(f"Columns that are not in the domain are left out: {show(extra)}.{hints}")
    return ((name, columns.get(name)) for name in domain.names)


def report_inferred(variables: Mapping[str, Variable], wishes: Wishes) -> None:
    """Remark once on numbers binned by rule, on fewer bins than asked for, on NaN as text."""
    ruled = [v for v in variables.values() if v.kind == "binned" and wishes.of(v.name).silent]
    if ruled:
        first = ruled[0].name
        remark(
            f"Columns with more than {MANY} distinct numbers are binned by quantiles: "
            f"{_some([f'{v.name!r} ({len(v)} bins)' for v in ruled])}. "
            f"Say bins={{{first!r}: 5}} for another number of bins, bins={{{first!r}: [...]}} for "
            f"edges of your own, bins={{{first!r}: None}} to keep every number a level."
        )
    for name, wish in wishes.by_name.items():
        if isinstance(wish.bins, int) and len(variables[name]) < wish.bins:
            remark(
                f"Variable {name!r}: {wish.bins} quantile bins were asked for, "
                f"{len(variables[name])} came out, because equal values cannot be parted."
            )
    for v in variables.values():
        texts = [level for level in v.levels if level in ("nan", "NaN", "<NA>")]
        if texts and wishes.of(v.name).levels is None:
            remark(
                f"Variable {v.name!r} has the text {show(texts)} as a level: if it stands for a "
                "missing cell, put None in its place (NumPy writes NaN as text among text)."
            )


def report_unknown(
    domain: Domain, strange: Mapping[str, Unknown], handle_unknown: HandleUnknown
) -> None:
    """Raise for, or remark once on, all cells that hold labels that are no level."""
    texts = []
    for name, unknown in strange.items():
        levels = domain[name].levels
        if handle_unknown == "error":
            raise unknown_error(name, levels, unknown)
        texts.append(unknown_text(name, levels, unknown))
    if texts:
        more = f" And so in {len(texts) - _MOST} more variables." if len(texts) > _MOST else ""
        remark(" ".join(texts[:_MOST]) + more)


def _some(texts: list[str]) -> str:
    more = f", ... ({len(texts)} in all)" if len(texts) > _MOST else ""
    return ", ".join(texts[:_MOST]) + more
