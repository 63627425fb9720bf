"""Encode a table: read every column, find or take its variable, and encode its cells."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.columns import Codes, Column, read_column
from rejoint.domain.domain import Domain, refuse_duplicates
from rejoint.domain.variable import (
    HandleUnknown,
    Unknown,
    Variable,
    check_handle_unknown,
    code_dtype,
    encode_column,
    unknown_error,
    unknown_text,
)
from rejoint.messages import Argument, Message, PythonOnly, join_messages, remark
from rejoint.records.empty_cells import add_missing_levels, add_not_applicable, fill_empty
from rejoint.records.frames import Frame
from rejoint.records.infer import REASONS, ColumnSummary, Declarations, LeftOut
from rejoint.text import cite, nearest, plural, show

#: Cells of a block that fits the cache.
BLOCK = 1 << 17


def codes_of_matrix(matrix: NDArray[Any], domain: Domain) -> Codes | None:
    """Return the codes of an array of numbers; None where its columns must be read singly.

    NaN is missing. Columns are read singly where levels are not consecutive integers, a number is
    not a level, or a column has no variable. A million rows are read several times as fast as
    columns that are looked up one by one.
    """
    whole = matrix.dtype.kind in "iu"
    if not (whole or matrix.dtype in (np.float32, np.float64)) or not matrix.size:
        return None
    if matrix.shape[1] != len(domain) or not all(map(has_consecutive_levels, domain)):
        return None
    lows = np.array([variable.levels[0] for variable in domain], dtype=np.int64)
    codes: Codes = np.empty(matrix.shape, dtype=code_dtype(max(domain.shape)))
    rows = max(1, BLOCK // len(domain))
    for start in range(0, len(matrix), rows):
        block, out = matrix[start : start + rows], codes[start : start + rows]
        cells = block.astype(np.int64, copy=False) - lows if whole else block - lows
        known = (cells >= 0) & (cells < domain.shape)
        if not whole:
            empty = np.isnan(cells)
            cells, known = np.where(empty, -1.0, cells), known | empty
        if not known.all():
            return None
        out[:] = cells
        if not whole and not (out == cells).all():
            return None
    return codes


def has_consecutive_levels(variable: Variable) -> bool:
    """Return whether levels are consecutive integers, far from overflow."""
    first = variable.levels[0]
    return (
        type(first) is int
        and abs(first) < 2**53
        and all(type(x) is int and x - first == k for k, x in enumerate(variable.levels))
    )


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
        for name, hint in part.columns.items():
            self.columns.setdefault(name, hint)
        self.rows += part.rows

    def report_columns(self) -> None:
        """Remark once on all columns that are left out."""
        if self.columns:
            hints = "".join(list(self.columns.values())[:_MOST_HINTS])
            left_out = show(list(self.columns))
            remark(f"Ignored columns, which are not in the domain: {left_out}.{hints}")

    def report(self, domain: Domain, handle_unknown: HandleUnknown) -> None:
        """Remark on columns and labels, or raise for labels."""
        self.report_columns()
        # In the order of the domain, as variables are of a table that is read at once.
        labels = {name: self.labels[name] for name in domain.names if name in self.labels}
        report_unknown(domain, labels, handle_unknown)


def read_table(
    frame: Frame,
    domain: Domain | None,
    declarations: Declarations,
    weights: tuple[Floats | None, Floats | None],
    handle_unknown: HandleUnknown,
    matrix: NDArray[Any] | None = None,
    unmatched: Unmatched | None = None,
) -> tuple[Domain, Codes]:
    """Encode a table in a domain, or in the one that its columns and the declarations define.

    `weights` has the weight of each row in the population, and its copies. `matrix` is the table
    where it is an array of two axes, most of which can be read at once. What
    the domain does not have is added to `unmatched`, or reported where there is none.
    """
    check_handle_unknown(handle_unknown)
    if matrix is not None and domain is not None:
        quick = codes_of_matrix(matrix, domain)
        if quick is not None:
            return domain, quick
    here = Unmatched(frame.rows)
    if domain is not None:
        plan = [*zip(domain.names, _matched(frame, domain, here), strict=True)]
    else:
        if frame.names is None and declarations.not_applicable == "auto":
            declarations = declarations._replace(not_applicable=False)  # x1 says nothing
        plan = [*zip(_check_frame(frame, declarations), frame.columns, strict=True)]
    if unmatched is None:
        here.report_columns()
    columns: dict[str, Variable | LeftOut] = {}
    encoded: list[Codes] = []
    for name, raw in plan:
        column: Column | None
        if domain is not None:
            variable: Variable | LeftOut = domain[name]
            column = None if raw is None else read_column(raw, name)
        else:
            summary = ColumnSummary(name, has_name=frame.names is not None, most=np.inf)
            column = summary.read(raw, *weights)
            variable = summary.variable(declarations.of(name), declarations.rule)
        columns[name] = variable
        if column is None and domain is not None:
            encoded.append(np.full(frame.rows, -1, dtype=np.int8))
        elif column is not None and isinstance(variable, Variable):
            codes, unknown = encode_column(variable, column, unknown_code=-2)
            encoded.append(codes)
            if unknown is not None:
                here.labels[name] = unknown
    inferred = _conclude(columns, declarations) if domain is None else domain
    kind = code_dtype(max(inferred.shape, default=1))
    table: Codes = np.empty((frame.rows, len(encoded)), dtype=kind)
    for n, codes in enumerate(encoded):
        table[:, n] = codes
    if domain is None:
        inferred = add_missing_levels(inferred, declarations.missing_level)
        filled = fill_empty(inferred, table.copy())
        inferred = add_not_applicable(inferred, filled, declarations)
    table = fill_empty(inferred, table)
    if unmatched is None:
        report_unknown(inferred, here.labels, handle_unknown)
    else:
        unmatched.add(here)
    return inferred, table


def _check_frame(frame: Frame, declarations: Declarations) -> tuple[str, ...]:
    """Return the names of the columns, after a check of names and size."""
    if not frame.columns:
        none = "columns" if frame.rows else "rows and no columns"
        raise ValueError(f"The data has no {none}: there is nothing to learn from.")
    if not frame.rows:
        names = show(frame.all_names)
        text = f"The data has no rows (its columns are {names}): levels cannot be seen"
        advice = PythonOnly("; give a domain to encode an empty table")
        raise ValueError(join_messages([text, advice, "."], ""))
    refuse_duplicates(frame.all_names)
    declarations.check(frame.all_names)
    return frame.all_names


def summarize(
    frame: Frame,
    cells: tuple[Floats | None, Floats | None],
    summaries: dict[str, ColumnSummary],
) -> None:
    """Add the columns of a frame to their summaries; ``cells`` are weights and copies of rows."""
    for name, raw in zip(frame.all_names, frame.columns, strict=True):
        one = ColumnSummary(name, has_name=frame.names is not None)
        summaries.setdefault(name, one).read(raw, *cells, is_last=False)


class Discovered(NamedTuple):
    """The domain of a source, the columns that it leaves out, and whether cells are missing."""

    domain: Domain
    left_out: tuple[str, ...] = ()
    has_missing: bool = False

    @property
    def options(self) -> dict[str, Any]:
        """What a reader of parts needs to know."""
        return {"domain": self.domain, "left_out": self.left_out}


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
        other, no = (Argument("bins", {ruled[0].name: use}) for use in (5, None))
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


def _describe_left_out(title: str, left_out: Mapping[str, LeftOut]) -> Message:
    """Say which columns are left out, why, and what keeps them."""
    parts: list[Message] = []
    for key, reason in REASONS.items():
        names = {name: why.values for name, why in left_out.items() if why.reason == key}
        if names:
            shown = [cite(name) + f" ({n:,} different)" * bool(n) for name, n in names.items()]
            first = next(iter(names))
            keep = [Argument(argument, {first: value}) for argument, value in reason.keep]
            advice = [" (", join_messages(keep, " or "), " keeps it)"] if keep else []
            parts.append(join_messages([f"{_some(shown)}: {reason.text}", *advice], ""))
    return join_messages([f"{title}: ", join_messages(parts, "; "), "."], "")


def report_unknown(
    domain: Domain, strange: Mapping[str, Unknown], handle_unknown: HandleUnknown
) -> None:
    """Raise for, or remark once on, all cells whose labels are not levels."""
    texts = []
    for name, unknown in strange.items():
        levels = domain[name].levels
        if handle_unknown == "error":
            raise unknown_error(name, levels, unknown)
        texts.append(unknown_text(name, levels, unknown))
    if texts:
        rest = plural(len(texts) - _MOST_LISTED, "more variable")
        more = f" The same holds for {rest}." * (len(texts) > _MOST_LISTED)
        remark(" ".join(texts[:_MOST_LISTED]) + more)


def _some(texts: list[str]) -> str:
    more = f", ... ({len(texts)} in all)" if len(texts) > _MOST_LISTED else ""
    return ", ".join(texts[:_MOST_LISTED]) + more
