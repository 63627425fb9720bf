"""Answers as text for terminals and as HTML for notebooks."""

from html import escape
from itertools import islice, product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.pmf.labelled import Mode
from rejoint.records import Records

if TYPE_CHECKING:
    from rejoint.pmf.replies import Answer

__all__ = ["html", "one_line", "text"]

FloatArray = NDArray[np.float64]

_ROWS = 40  # shown of a table or of records
_ACROSS = 8  # levels of the last variable that stand side by side
_NAMES = 12  # variables of records that are shown


class _Cells(NamedTuple):
    header: list[str]
    rows: list[list[str]]
    labels: int  # the first so many columns are labels, the others numbers
    more: str  # what was left out, or else there is to say


def one_line(answer: "Answer") -> str:
    """Write a question and its answer, or what that is, in one line.

    Examples
    --------
    >>> import rejoint as rj
    >>> one_line(rj.datasets.asia().ask("H(smoke)"))
    'H(smoke) = 0.6931 nats'
    """
    value = answer.value
    if isinstance(value, np.ndarray):
        return f"{answer.query}, a table of {' x '.join(map(str, value.shape))}"
    if isinstance(value, Records):
        return f"{answer.query}, records"
    if isinstance(value, Mode):
        return f"{answer.query}, {value!r}"
    found = answer.interval
    bounds = "" if found is None else f" ({_range(found.low, found.high)})"
    return f"{answer.query} = {value:.4g}{answer.unit and ' ' + answer.unit}{bounds}"


def text(answer: "Answer") -> str:
    """Write an answer for a terminal.

    Examples
    --------
    >>> import rejoint as rj
    >>> print(text(rj.datasets.asia().ask("P(asia)")))
    P(asia)
    asia  prob
    yes   0.01
    no    0.99
    """
    cells = _cells(answer)
    if cells is None:
        return "\n".join([one_line(answer), *_remarks(answer)])
    columns = list(zip(cells.header, *cells.rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    lines = [
        "  ".join(
            cell.ljust(width) if n < cells.labels else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [cells.header, *cells.rows]
    ]
    more = [cells.more] if cells.more else []
    return "\n".join([str(answer.query), *lines, *more, *_remarks(answer)])


def html(answer: "Answer") -> str:
    """Write an answer as HTML; names and labels are escaped.

    Examples
    --------
    >>> import rejoint as rj
    >>> html(rj.datasets.asia().ask("P(asia = yes)"))
    '<p><code>P(asia = yes) = 0.01</code></p>'
    """
    cells = _cells(answer)
    tail = "".join(f"<p>{escape(remark)}</p>" for remark in _remarks(answer))
    if cells is None:
        return f"<p><code>{escape(one_line(answer))}</code></p>{tail}"
    head = "".join(f"<th>{escape(cell)}</th>" for cell in cells.header)
    body = "".join(f"<tr>{_html_row(row, cells.labels)}</tr>" for row in cells.rows)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    more = f"<p>{escape(cells.more)}</p>" if cells.more else ""
    return f"<p><code>{escape(str(answer.query))}</code></p>{table}{more}{tail}"


def _html_row(row: list[str], labels: int) -> str:
    tags = ["th" if n < labels else "td" for n in range(len(row))]
    return "".join(f"<{tag}>{escape(cell)}</{tag}>" for tag, cell in zip(tags, row, strict=True))


def _remarks(answer: "Answer") -> list[str]:
    given = [f"What is given has probability {answer.evidence:.4g}."] * (answer.evidence < 1.0)
    found = answer.interval
    bounds = [] if found is None else [f"In brackets: {found.words}."]
    return [*bounds, *given, *answer.notes]


def _range(low: Any, high: Any) -> str:
    return f"{low:.3g} to {high:.3g}"


def _cells(answer: "Answer") -> _Cells | None:
    """What an answer looks like in rows and columns; None if it is a number."""
    value = answer.value
    if isinstance(value, Records):
        return _record_cells(value)
    if isinstance(value, Mode):
        rows = [[name, str(level)] for name, level in islice(value.items(), _ROWS)]
        more = f"... {len(value) - _ROWS:,} more variables. " if len(value) > _ROWS else ""
        doubt = "" if value.exact else f"; another may have up to {value.bound:.4g}"
        return _Cells(["variable", "level"], rows, 2, f"{more}Probability {value.prob:.4g}{doubt}.")
    return _table_cells(answer, value) if isinstance(value, np.ndarray) else None


def _record_cells(records: Records) -> _Cells:
    names = list(records.names)[:_NAMES]
    rows = [[str(row[name]) for name in names] for row in islice(records.rows(), _ROWS)]
    left = [f"{len(records) - _ROWS:,} more rows"] * (len(records) > _ROWS)
    left += [f"{len(records.names) - _NAMES:,} more variables"] * (len(records.names) > _NAMES)
    return _Cells(names, rows, len(names), f"... {' and '.join(left)}" if left else "")


def _table_cells(answer: "Answer", value: FloatArray) -> _Cells:
    last = answer.axes[-1]
    wide = len(answer.axes) > 1 and len(last) <= _ACROSS
    down = answer.axes[:-1] if wide else answer.axes
    across = [f"{last.name} = {level}" for level in last.levels] if wide else [answer.column]
    cells = [f"{x:.4g}" for x in value.flat[: _ROWS * len(across)]]
    if answer.interval is not None:
        bounds = zip(answer.interval.low.flat, answer.interval.high.flat, strict=True)
        cells = [f"{cell} ({_range(*ends)})" for cell, ends in zip(cells, bounds, strict=False)]
    lines = [cells[k : k + len(across)] for k in range(0, len(cells), len(across))]
    combinations = product(*[map(str, axis.levels) for axis in down])
    rows = [
        [*labels, *line]
        for labels, line in zip(islice(combinations, len(lines)), lines, strict=True)
    ]
    hidden = value.size // len(across) - len(rows)
    more = f"... {hidden:,} more rows" if hidden else ""
    return _Cells([axis.name for axis in down] + across, rows, len(down), more)
