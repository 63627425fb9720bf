"""Reading: every column of a table read, its variable found or given, its cells encoded."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.columns.encoding import Unknown, encode_column
from rejoint.columns.forms import Coded, Codes
from rejoint.columns.labels import nearest, show
from rejoint.columns.series import read_column
from rejoint.domain import Domain, HandleUnknown, Variable, refuse_duplicates
from rejoint.intake.frames import Frame
from rejoint.intake.inference import infer_variable
from rejoint.intake.reports import report_inferred, report_unknown
from rejoint.intake.wishes import Wishes
from rejoint.remarks import remark
from rejoint.variable import check_handle_unknown

__all__ = ["Encoded", "read_table"]

Floats = NDArray[np.float64]


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
) -> Encoded:
    """Encode a table in a domain, or in the one that its columns and the wishes make.

    Examples
    --------
    >>> from rejoint.intake.wishes import read_wishes
    >>> frame = Frame(("a",), [["x", None, "y"]], 3)
    >>> read_table(frame, None, read_wishes(None, None, None), None, "missing").codes.T
    array([[ 0, -1,  1]], dtype=int16)
    """
    check_handle_unknown(handle_unknown)
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
