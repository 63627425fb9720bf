"""Encode a table: read every column, find or take its variable, and encode its cells."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.columns import Codes, read_column
from rejoint.domain.domain import Domain, refuse_duplicates
from rejoint.domain.variable import (
    HandleUnknown,
    Unknown,
    Variable,
    code_dtype,
    encode_column,
    unknown_error,
    unknown_text,
)
from rejoint.messages import Message, remark
from rejoint.records.empty_cells import (
    add_missing_levels,
    add_not_applicable,
    fill_empty,
    sample_rows,
)
from rejoint.records.frames import Frame
from rejoint.records.infer import REASONS, ColumnSummary, Declarations, LeftOut
from rejoint.text import cite, nearest, plural, show

_MOST_LISTED = 5  # variables that a remark lists
_MOST_HINTS = 3  # columns left out for which a remark suggests a name


Floats = NDArray[np.float64]


@dataclass
class Unmatched:
    """Columns and labels that a domain does not have, of a table or of its parts in order.

    Parameters
    ----------
    rows : int
        Rows read so far.
    columns : dict of str
        For each column that is left out, a suggestion of the intended name.
    labels : dict of Unknown
        For each variable, the labels that are not levels.
    """

    rows: int = 0
    columns: dict[str, str] = field(default_factory=dict)
    labels: dict[str, Unknown] = field(default_factory=dict)

    def add(self, part: "Unmatched") -> None:
        """Add those of the next part."""
        for name, unknown in part.labels.items():
            moved = unknown._replace(row=self.rows + unknown.row)
            self.labels[name] = self.labels[name].joined(moved) if name in self.labels else moved
        self.columns = part.columns | self.columns
        self.rows += part.rows

    def report(self, domain: Domain, handle_unknown: HandleUnknown) -> None:
        """Remark on columns and labels, or raise for labels."""
        if self.columns:
            hints = "".join(list(self.columns.values())[:_MOST_HINTS])
            left_out = show(list(self.columns))
            remark(f"Ignored columns, which are not in the domain: {left_out}.{hints}")
        report_unknown(domain, self.labels, handle_unknown)


def infer_table(
    frame: Frame,
    declarations: Declarations,
    weights: tuple[Floats | None, Floats | None],
    handle_unknown: HandleUnknown,
) -> tuple[Domain, Codes]:
    """Return the domain that the columns of a table and the declarations define, and the codes.

    `weights` has the weight of each row in the population, and its copies.
    """
    _check_frame(frame, declarations)
    if frame.names is None and declarations.not_applicable == "auto":
        declarations = declarations._replace(not_applicable=False)  # x1 says nothing
    columns: dict[str, Variable | LeftOut] = {}
    encoded: list[Codes | None] = []
    strange: dict[str, Unknown] = {}
    for name, raw in zip(frame.all_names, frame.columns, strict=True):
        summary = ColumnSummary(name, has_name=frame.names is not None, most=np.inf)
        column = summary.read(raw, *weights)
        variable = summary.variable(declarations.of(name), declarations.rule)
        columns[name] = variable
        if column is not None and isinstance(variable, Variable):
            codes, unknown = encode_column(variable, column, unknown_code=-2)
            encoded.append(codes)
            if unknown is not None:
                strange[name] = unknown
    domain = add_missing_levels(_conclude(columns, declarations), declarations.missing_level)
    table = _join(encoded, frame.rows, domain)
    domain = add_not_applicable(domain, fill_empty(domain, sample_rows(table).copy()), declarations)
    table = fill_empty(domain, table)
    report_unknown(domain, strange, handle_unknown)
    return domain, table


def encode_table(frame: Frame, domain: Domain, unmatched: Unmatched) -> Codes:
    """Return the codes of a table in a domain; add what the domain does not have to `unmatched`."""
    part = Unmatched(frame.rows)
    encoded: list[Codes | None] = []
    for variable, raw in zip(domain, _matched(frame, domain, part), strict=True):
        if raw is None:
            encoded.append(None)
            continue
        column = read_column(raw, variable.name)
        codes, unknown = encode_column(variable, column, unknown_code=-2)
        encoded.append(codes)
        if unknown is not None:
            part.labels[variable.name] = unknown
    unmatched.add(part)
    return fill_empty(domain, _join(encoded, frame.rows, domain))


def _join(columns: list[Codes | None], rows: int, domain: Domain) -> Codes:
    """Return columns of codes as a table; those of None are missing."""
    table: Codes = np.empty((rows, len(columns)), dtype=code_dtype(max(domain.shape, default=1)))
    for n, codes in enumerate(columns):
        table[:, n] = -1 if codes is None else codes
    return table


def _check_frame(frame: Frame, declarations: Declarations) -> None:
    """Check the size of a table and the names of its columns."""
    if not frame.columns:
        none = "columns" if frame.rows else "rows and no columns"
        raise ValueError(f"The data has no {none}: there is nothing to learn from.")
    if not frame.rows:
        raise ValueError(
            f"The data has no rows (its columns are {show(frame.all_names)}): levels cannot be "
            "seen; give a domain to encode an empty table."
        )
    refuse_duplicates(frame.all_names)
    declarations.check(frame.all_names)


class Discovered(NamedTuple):
    """The domain of a source, the columns that it leaves out, and whether cells are missing."""

    domain: Domain
    left_out: tuple[str, ...] = ()
    has_missing: bool = False


def infer_domain(summaries: Mapping[str, ColumnSummary], declarations: Declarations) -> Discovered:
    """Return the domain of columns, after remarks on those that are binned or left out."""
    declarations.check(list(summaries))
    of, rule = declarations.of, declarations.rule
    columns = {name: own.variable(of(name), rule) for name, own in summaries.items()}
    has_missing = any(own.has_missing and own.has_name for own in summaries.values())
    left_out = tuple(name for name, why in columns.items() if isinstance(why, LeftOut))
    return Discovered(_conclude(columns, declarations), left_out, has_missing)


def _conclude(columns: Mapping[str, Variable | LeftOut], declarations: Declarations) -> Domain:
    variables = {name: v for name, v in columns.items() if isinstance(v, Variable)}
    left_out = {name: why for name, why in columns.items() if isinstance(why, LeftOut)}
    report_inferred(variables, declarations, left_out)
    return Domain(tuple(variables.values()))


def _matched(frame: Frame, domain: Domain, unmatched: Unmatched) -> list[Any]:
    """Return the column of every variable, or None; leave other columns out."""
    if frame.names is None:
        if len(frame.columns) != len(domain):
            raise ValueError(
                f"The array has {plural(len(frame.columns), 'column')} without names, the domain "
                f"has {plural(len(domain), 'variable')} ({show(domain.names)}): the numbers must "
                "be equal."
            )
        return frame.columns
    refuse_duplicates(frame.names)
    columns = dict(zip(frame.names, frame.columns, strict=True))
    extra = [name for name in frame.names if name not in domain]
    absent = [name for name in domain.names if name not in columns]
    if len(absent) == len(domain) and frame.names:
        raise ValueError(
            f"No column of the data ({show(frame.names)}) is a variable of the domain "
            f"({show(domain.names)})." + nearest(frame.names[0], domain.names)
        )
    for n, name in enumerate(extra):
        unmatched.columns[name] = nearest(name, absent) if n < _MOST_HINTS else ""
    return [columns.get(name) for name in domain.names]


def report_inferred(
    variables: Mapping[str, Variable],
    declarations: Declarations,
    left_out: Mapping[str, LeftOut] | None = None,
) -> None:
    """Remark once on columns binned by default or left out, fewer bins, and NaN as text."""
    if left_out and not variables:
        none = "There is nothing to learn from, because every column is left out"
        raise ValueError(_describe_left_out(none, left_out))
    ruled = [v for v in variables.values() if v.kind == "binned" and declarations.of(v.name).silent]
    if ruled and declarations.rule.report:
        shown = _some([f"{cite(v.name)} ({plural(len(v), 'bin')})" for v in ruled])
        text = "Numbers are cut into quantile bins: {columns}. Use {bins} for other bins, {none} "
        other, no = (f"bins={{{cite(ruled[0].name)}: {use}}}" for use in (5, None))
        remark(Message(text + "for none.", columns=shown, bins=other, none=no))
    if left_out:
        remark(_describe_left_out("Columns are left out", left_out))
    for name, declared in declarations.by_name.items():
        if isinstance(declared.bins, int) and len(variables[name]) < declared.bins:
            remark(
                f"Variable {cite(name)}: {plural(declared.bins, 'quantile bin')} were requested, "
                f"but there are {len(variables[name])}, because equal values cannot be split."
            )
    for v in variables.values():
        texts = [level for level in v.levels if level in ("nan", "NaN", "<NA>")]
        if texts and declarations.of(v.name).levels is None:
            remark(
                f"Variable {cite(v.name)} has the text {show(texts)} as a level: if it stands for "
                "a missing cell, put None in its place (NumPy writes NaN as text among text)."
            )


def _describe_left_out(title: str, left_out: Mapping[str, LeftOut]) -> str:
    """Say which columns are left out, why, and what keeps them."""
    parts = []
    for key, reason in REASONS.items():
        names = {name: why.values for name, why in left_out.items() if why.reason == key}
        if names:
            shown = [cite(name) + f" ({n:,} different)" * bool(n) for name, n in names.items()]
            first = cite(next(iter(names)))
            keep = " or ".join(f"{name}={{{first}: {value}}}" for name, value in reason.keep)
            advice = f" ({keep} keeps it)" if keep else ""
            parts.append(f"{_some(shown)}: {reason.text}{advice}")
    return f"{title}: {'; '.join(parts)}."


def report_unknown(
    domain: Domain, strange: Mapping[str, Unknown], handle_unknown: HandleUnknown
) -> None:
    """Raise for, or remark once on, all cells whose labels are not levels."""
    texts = []
    for variable in domain:
        unknown = strange.get(variable.name)
        if unknown is not None and handle_unknown == "error":
            raise unknown_error(variable.name, variable.levels, unknown)
        if unknown is not None:
            texts.append(unknown_text(variable.name, variable.levels, unknown))
    if texts:
        rest = plural(len(texts) - _MOST_LISTED, "more variable")
        more = f" The same holds for {rest}." * (len(texts) > _MOST_LISTED)
        remark(" ".join(texts[:_MOST_LISTED]) + more)


def _some(texts: list[str]) -> str:
    more = f", ... ({len(texts)} in all)" if len(texts) > _MOST_LISTED else ""
    return ", ".join(texts[:_MOST_LISTED]) + more
