"""Reading: every column of a table read, its variable found or given, its cells encoded."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.columns.encoding import Unknown, code_dtype
from rejoint.columns.labels import Level, nearest, show
from rejoint.columns.series import read_column
from rejoint.domain import Domain, HandleUnknown, Kind, Variable, refuse_duplicates
from rejoint.intake.frames import Frame
from rejoint.intake.inference import Wish, infer_variable
from rejoint.remarks import remark

__all__ = ["Encoded", "Wishes", "read_table", "read_wishes"]

Floats = NDArray[np.float64]
Codes = NDArray[np.signedinteger[Any]]


class Encoded(NamedTuple):
    """The codes of a table (rows, variables) and the domain that they belong to."""

    domain: Domain
    codes: Codes


class Wishes(NamedTuple):
    """What the user said about columns: of each by name, and of all others."""

    by_name: Mapping[str, Wish]
    others: Wish


def read_wishes(
    kinds: Mapping[Any, Kind] | None,
    levels: Mapping[Any, Sequence[Level]] | None,
    bins: Mapping[Any, Any] | Literal[False] | None,
) -> Wishes:
    """Gather by column what was said by kind of wish.

    Examples
    --------
    >>> read_wishes({"a": "ordinal"}, None, False)
    Wishes(by_name={'a': Wish(kind='ordinal', levels=None, bins=False)},
           others=Wish(kind=None, levels=None, bins=False))
    """
    others = Wish(bins=False) if bins is False else Wish()
    edges = {} if bins is False else _mapping("bins", bins)
    by_name: dict[str, Wish] = {}
    for field, wishes in (
        ("kind", _mapping("kinds", kinds)),
        ("levels", _mapping("levels", levels)),
    ):
        for name, wish in wishes.items():
            by_name[name] = by_name.get(name, others)._replace(**{field: wish})
    for name, wish in edges.items():
        # None in the mapping is said aloud: no bins; absence from it leaves the rule.
        by_name[name] = by_name.get(name, others)._replace(bins=False if wish is None else wish)
    return Wishes(by_name, others)


def _mapping(argument: str, wishes: object) -> dict[str, Any]:
    if wishes is None:
        return {}
    if not isinstance(wishes, Mapping):
        raise TypeError(f"{argument} must be a dict from names of variables, not {wishes!r}.")
    return {str(name): wish for name, wish in wishes.items()}


def read_table(
    frame: Frame,
    domain: Domain | None,
    wishes: Wishes,
    weight: Floats | None,
    handle_unknown: HandleUnknown,
) -> Encoded:
    """Encode a table in a domain, or in the one that its columns and the wishes make."""
    variables: list[Variable] = []
    columns: list[Codes | None] = []
    strange: dict[str, Unknown] = {}
    for name, raw in _named(frame, wishes) if domain is None else _matched(frame, domain):
        column = None if raw is None else read_column(raw, name)
        if domain is not None:
            variable = domain[name]
        elif column is not None:
            wish = wishes.by_name.get(name, wishes.others)
            variable = infer_variable(name, column, wish, weight)
        codes, unknown = (None, None) if column is None else variable.match(column)
        variables.append(variable)
        columns.append(codes)
        if unknown is not None:
            strange[name] = unknown
    found = Domain(tuple(variables))
    _report(found, strange, handle_unknown)
    return Encoded(found, _stacked(columns, frame.rows, found.shape))


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


def _report(domain: Domain, strange: Mapping[str, Unknown], handle_unknown: HandleUnknown) -> None:
    """Say once for the whole table which cells hold labels that are no level."""
    if handle_unknown not in ("missing", "error"):
        raise ValueError(f"handle_unknown must be 'missing' or 'error', not {handle_unknown!r}.")
    texts = []
    for name, unknown in strange.items():
        if handle_unknown == "error":
            raise domain[name].unknown_error(unknown)
        texts.append(domain[name].unknown_text(unknown))
    if texts:
        more = f" And so in {len(texts) - 5} more variables." if len(texts) > 5 else ""
        remark(" ".join(texts[:5]) + more)


def _stacked(columns: Sequence[Codes | None], rows: int, shape: Sequence[int]) -> Codes:
    codes: Codes = np.full((rows, len(columns)), -1, dtype=code_dtype(max(shape, default=1)))
    for n, column in enumerate(columns):
        if column is not None:
            codes[:, n] = column
    codes.setflags(write=False)
    return codes
