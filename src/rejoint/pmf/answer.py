"""Answer, the answer to a question in the query language, and its text and HTML."""

from dataclasses import dataclass
from html import escape
from itertools import islice, product
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.labels import Bin
from rejoint.domain.variable import Variable
from rejoint.language.query import Query
from rejoint.pmf.draws import Interval
from rejoint.pmf.to_frame import Mode, label_table
from rejoint.records.frames import Backend
from rejoint.records.records import Records
from rejoint.text import format_interval, format_number, plural

if TYPE_CHECKING:
    from rejoint.pmf.answer_basis import AnswerBasis, BasisName
    from rejoint.queries.answer_bounds import AnswerBounds

FloatArray = NDArray[np.float64]

_ROWS = 40  # of a table or of records that are shown
_FEW_ROWS = 12  # of those that are shown where an answer is one object among others
_ACROSS = 8  # levels of the last variable that are columns
_NAMES = 12  # variables of records that are shown


class _Grid(NamedTuple):
    header: list[str]
    rows: list[list[str]]
    labels: int  # number of columns with labels; the others have numbers
    more: str  # line below the rows


def one_line(answer: "Answer", *, with_basis: bool = False) -> str:
    """Return a question and its answer, if that is one number or a mode, in one line.

    With its basis, an answer that tables leave open has no more digits than its range says.

    Examples
    --------
    >>> import rejoint as rj
    >>> one_line(rj.datasets.asia().ask("H(smoke)"))
    'H(smoke) = 0.6931 nats'
    """
    value = answer.value
    if isinstance(value, Mode):
        return f"{answer.query.headline}, {value!r}"
    unit = answer.unit and f" {answer.unit}"
    found = answer.interval
    if found is None:
        shown = format_number(float(answer))
        if with_basis and answer.basis == "open" and answer.bounds is not None:
            # No more digits than the range leaves certain.
            ends = float(answer.bounds.low), float(answer.bounds.high)
            shown = format_interval(float(answer), *ends)[0]
        return f"{answer.query.headline} = {shown}{unit}"
    ends = float(found.low), float(found.high)
    middle, low, high = format_interval(float(answer), *ends)
    said = f"{answer.query.headline} = {middle}{unit} ({low} to {high})"
    if answer.counted is None:
        return said
    counted, model = (format_interval(float(x), *ends)[0] for x in (answer.counted, answer.model))
    return f"{said}; counted {counted} of {_format_records(answer.records)}, model {model}"


def _format_records(number: Any) -> str:
    return format_number(round(float(number), 1))


def text(answer: "Answer", rows: int = _ROWS, *, with_basis: bool = True) -> str:
    """Return an answer as text for a terminal, with at most ``rows`` rows of a table.

    Its basis, which takes time to find, is left out unless ``with_basis``.

    Examples
    --------
    >>> import rejoint as rj
    >>> print(text(rj.datasets.asia().ask("P(asia)")))
    P(asia)
    asia  prob
    yes   0.01
    no    0.99
    """
    cells = _grid(answer, rows, with_basis=with_basis)
    remarks = _remarks(answer, with_basis=with_basis)
    if cells is None:
        return "\n".join([one_line(answer, with_basis=with_basis), *remarks])
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
    return "\n".join([answer.query.headline, *lines, *more, *remarks])


def html(answer: "Answer") -> str:
    """Return an answer as HTML; names and labels are escaped.

    Examples
    --------
    >>> import rejoint as rj
    >>> html(rj.datasets.asia().ask("P(asia = yes)"))
    '<p><code>P(asia = yes) = 0.01</code></p>'
    """
    cells = _grid(answer, _ROWS)
    tail = "".join(f"<p>{escape(remark)}</p>" for remark in _remarks(answer))
    if cells is None:
        line = one_line(answer, with_basis=True)
        return f"<p><code>{escape(line)}</code></p>{tail}"
    head = "".join(f"<th>{escape(cell)}</th>" for cell in cells.header)
    body = "".join(f"<tr>{_html_row(row, cells.labels)}</tr>" for row in cells.rows)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    more = f"<p>{escape(cells.more)}</p>" if cells.more else ""
    return f"<p><code>{escape(answer.query.headline)}</code></p>{table}{more}{tail}"


def _html_row(row: list[str], labels: int) -> str:
    tags = ["th" if n < labels else "td" for n in range(len(row))]
    return "".join(f"<{tag}>{escape(cell)}</{tag}>" for tag, cell in zip(tags, row, strict=True))


def _remarks(answer: "Answer", *, with_basis: bool = True) -> list[str]:
    basis = [answer.rests_on.text] if with_basis and answer.rests_on is not None else []
    evidence = f"The evidence has probability {format_number(answer.evidence)}."
    given = [evidence] * (answer.evidence < 1.0)
    found = answer.interval
    bounds = [] if found is None else [f"In parentheses: {found.description}."]
    return [*basis, *bounds, *given, *answer.notes]


def _grid(answer: "Answer", most: int, *, with_basis: bool = True) -> _Grid | None:
    """Return an answer as rows and columns; None if it is a number."""
    value = answer.value
    if isinstance(value, Records):
        return _record_cells(value, most)
    if isinstance(value, Mode):
        rows = [[name, str(level)] for name, level in islice(value.items(), most)]
        more = f"... {plural(len(value) - most, 'more variable')}. " if len(value) > most else ""
        doubt = "" if value.exact else f"; another may have up to {format_number(value.bound)}"
        said = f"{more}Probability {format_number(value.prob)}{doubt}."
        return _Grid(["variable", "level"], rows, 2, said)
    if not isinstance(value, np.ndarray):
        return None
    limits: Any = answer.interval
    if limits is None and with_basis:
        limits = answer.bounds
    return _table_cells(answer, value, most, limits)


def _record_cells(records: Records, most: int) -> _Grid:
    names = list(records.names)[:_NAMES]
    rows = [[str(row[name]) for name in names] for row in islice(records.rows(), most)]
    left = [plural(len(records) - most, "more row")] * (len(records) > most)
    left += [plural(len(records.names) - _NAMES, "more variable")] * (len(records.names) > _NAMES)
    return _Grid(names, rows, len(names), f"... {' and '.join(left)}" if left else "")


def _table_cells(answer: "Answer", value: FloatArray, most: int, limits: Any) -> _Grid:
    """Return a table; ``limits``, if any, has the low and the high end of each cell."""
    last = answer.axes[-1]
    wide = len(answer.axes) > 1 and len(last) <= _ACROSS and answer.counted is None
    down = answer.axes[:-1] if wide else answer.axes
    across = [f"{last.name} = {level}" for level in last.levels] if wide else [answer.column]
    numbers = [float(x) for x in value.flat[: most * len(across)]]
    cells = [format_number(x) for x in numbers]
    if limits is not None:
        ends = zip(numbers, limits.low.flat, limits.high.flat, strict=False)
        cells = [_with_limits(*each, always=answer.interval is not None) for each in ends]
    lines = [cells[k : k + len(across)] for k in range(0, len(cells), len(across))]
    combinations = product(*[map(str, axis.levels) for axis in down])
    rows = [
        [*labels, *line]
        for labels, line in zip(islice(combinations, len(lines)), lines, strict=True)
    ]
    if answer.counted is not None:
        across += ["counted", "of", "model"]
        parts = (answer.counted, answer.records, answer.model)
        tables = [np.broadcast_to(np.asarray(part), value.shape).ravel() for part in parts]
        for row, counted, records, model in zip(rows, *tables, strict=False):
            shown = format_number(counted) if records else "-"  # no record meets the condition
            row += [shown, _format_records(records), format_number(model)]
    hidden = value.size // (1 if answer.counted is not None else len(across)) - len(rows)
    more = f"... {plural(hidden, 'more row')}" if hidden else ""
    return _Grid([axis.name for axis in down] + across, rows, len(down), more)


def _with_limits(value: float, low: float, high: float, *, always: bool) -> str:
    """Return a cell with its ends in brackets, without them where they are one number."""
    if not always and not high - low > 1e-6:
        return format_number(value)
    return "{} ({} to {})".format(*format_interval(value, low, high))


Kind = Literal["probability", "table", "expectation", "mode", "records", "entropy", "information"]


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer to a question; immutable.

    ``float()`` returns a single number; ``str()``, ``repr()`` and notebooks show the numbers, with
    the digits that their credible bounds leave certain.

    Attributes
    ----------
    query : Query
        The question; ``str(query)`` is its canonical text, ``query.headline`` names the bins that
        were answered for.
    kind : {"probability", "table", "expectation", "mode", "records", "entropy", "information"}
    value : float, ndarray, Mode or Records
        A number or a table; the mode for argmax; the records for sample.
    axes : tuple of Variable
        Axes of a table: the variables asked for, then those named without a value right of the
        bar.
    evidence : float
        Probability of the evidence; 1 without evidence. For soft evidence it is the mean of the
        likelihoods, scaled so that the largest of each variable is 1.
    standard_error : float or None
        Standard error of a value estimated from drawn records; None where the value is exact.
    unit : str
        "nats" or "bits" for entropies and information.
    notes : tuple of str
        Notes on the value.
    interval : Interval or None
        Credible bounds ``low`` and ``high`` of the value, their ``level``, number of ``draws`` and
        how many these are worth, ``effective``;
        None where the model carries no posterior draws, or the value is not numeric.
    counted : float, ndarray or None
        What the records say, in the form of ``value``; nan where no record meets the condition.
        None where the model answers alone. Where there are counts, ``value`` is the composite of
        these and of ``model``: each counts as far as it can be trusted for this table.
    model : float, ndarray or None
        What the model says, where there are counts.
    records : float, ndarray or None
        Number of records that hold all variables of the question and meet the condition (the sum of
        their weights), by the variables right of the bar that have no value.
    rests_on : AnswerBasis or None
        Basis of the answer of a model from tables; :attr:`basis` and :attr:`bounds` are its
        parts.

    Examples
    --------
    >>> import rejoint as rj
    >>> answer = rj.datasets.asia().ask("P(lung | smoke, xray = yes)")
    >>> answer.kind, [axis.name for axis in answer.axes], round(answer.evidence, 4)
    ('table', ['lung', 'smoke'], 0.1103)
    >>> print(answer)
    P(lung | smoke, xray = yes)
    lung  smoke = yes  smoke = no
    yes         0.646      0.1423
    no          0.354      0.8577
    The evidence has probability 0.1103.
    """

    query: Query
    kind: Kind
    value: float | FloatArray | Mode | Records
    axes: tuple[Variable, ...] = ()
    evidence: float = 1.0
    standard_error: float | None = None
    unit: str = ""
    notes: tuple[str, ...] = ()
    interval: Interval | None = None
    rests_on: "AnswerBasis | None" = None
    counted: float | FloatArray | None = None
    model: Any = None
    records: float | FloatArray | None = None

    def __post_init__(self) -> None:
        if isinstance(self.value, np.ndarray):
            self.value.flags.writeable = False

    def __float__(self) -> float:
        if isinstance(self.value, float):
            return self.value
        raise TypeError(f"The answer to {self.query} is not a single number: see .value.")

    def table(self, backend: Backend | None = None) -> Any:
        """Return a table, or sampled records, as a frame with labels.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
            By default the first of them that is installed.

        Returns
        -------
        frame
            As `LowRankPMF.table` and `Records.to_frame` return it.

        Examples
        --------
        >>> import rejoint as rj
        >>> rj.datasets.asia().ask("P(bronc | smoke)").table("pandas").round(3)
        smoke  yes   no
        bronc
        yes    0.6  0.3
        no     0.4  0.7
        """
        if isinstance(self.value, Records):
            return self.value.to_frame(backend)
        if not isinstance(self.value, np.ndarray):
            what = "a mode, a mapping" if isinstance(self.value, Mode) else "a single number"
            raise ValueError(f"The answer to {self.query} is {what}, not a table: see .value.")
        return label_table(self.value, self.axes, backend, self.column)

    @property
    def column(self) -> str:
        """Name of the numbers of a table in frames: "prob" or "mean".

        Examples
        --------
        >>> import rejoint as rj
        >>> rj.datasets.asia().ask("P(bronc)").column
        'prob'
        """
        return "mean" if self.kind == "expectation" else "prob"

    @property
    def basis(self) -> "BasisName | None":
        """Basis of the answer; None for a model from records.

        "published": one of the given tables holds all variables asked and given. "implied": every
        joint with these tables gives it. "identified": every joint of the model's rank with these
        tables gives it. "open": joints with these tables differ, see :attr:`bounds`.
        ``rests_on.text`` is a sentence.

        Examples
        --------
        >>> import rejoint as rj
        >>> tables = rj.Marginals.from_tables({"a": {"x": 5, "y": 5}, "b": {"x": 2, "y": 8}})
        >>> p = rj.LowRankPMF([1.0], [[[0.5], [0.5]], [[0.2], [0.8]]], tables.domain)
        >>> p = p.with_tables(tables)
        >>> p.ask("P(a = x)").basis, p.ask("P(a = x, b = x)").basis
        ('published', 'open')
        >>> print(p.ask("P(a = x, b = x)").rests_on.text)
        open: no table holds a and b together; any joint with these tables gives 0 to 0.20
        """
        return None if self.rests_on is None else self.rests_on.name

    @property
    def bounds(self) -> "AnswerBounds | None":
        """Range of the answer over all joints with the given tables; computed when asked for.

        ``low`` and ``high`` are numbers, or arrays in the shape of a table; ``sharp`` says whether
        the ends are reached or are outer bounds; ``slack`` says by how much cells of the tables may
        differ, where they contradict each other or are of a sample. None for a model from records,
        for published answers (unless they were rounded), and where no range is known.

        Examples
        --------
        >>> import rejoint as rj
        >>> tables = rj.Marginals.from_tables({"a": {"x": 5, "y": 5}, "b": {"x": 2, "y": 8}})
        >>> p = rj.LowRankPMF([1.0], [[[0.5], [0.5]], [[0.2], [0.8]]], tables.domain)
        >>> p.with_tables(tables).ask("P(a, b = x)").bounds.high
        array([0.2, 0.2])
        """
        return None if self.rests_on is None else self.rests_on.bounds

    def to_json(self) -> dict[str, Any]:
        """Return the answer as plain lists and dicts that JSON can hold; undefined cells are None.

        Examples
        --------
        >>> import rejoint as rj
        >>> plain = rj.datasets.asia().ask("P(bronc | smoke = yes)").to_json()
        >>> plain["axes"], [round(x, 3) for x in plain["value"]]
        ([{'name': 'bronc', 'levels': ['yes', 'no']}], [0.6, 0.4])
        """
        axes = [{"name": v.name, "levels": [_plain(x) for x in v.levels]} for v in self.axes]
        plain: dict[str, Any] = {
            "query": str(self.query),
            "kind": self.kind,
            "value": self._plain_value(),
            "axes": axes,
            "evidence": self.evidence,
            "notes": list(self.notes),
        }
        if self.query.headline != plain["query"]:
            plain["headline"] = self.query.headline
        if self.unit:
            plain |= {"unit": self.unit, "standard_error": self.standard_error}
        if self.interval is not None:
            plain["interval"] = {
                "low": _plain_cells(self.interval.low),
                "high": _plain_cells(self.interval.high),
                "level": self.interval.level,
                "draws": self.interval.draws,
                "effective_draws": self.interval.effective,
            }
        if self.counted is not None:
            for name in ("counted", "model", "records"):
                plain[name] = _plain_cells(np.asarray(getattr(self, name)))
        if self.rests_on is not None:
            plain |= {"basis": self.basis, "basis_text": self.rests_on.text}
            plain["bounds"] = None
            if self.bounds is not None:
                plain["bounds"] = {
                    "low": _plain_cells(np.asarray(self.bounds.low)),
                    "high": _plain_cells(np.asarray(self.bounds.high)),
                    "sharp": self.bounds.sharp,
                    "slack": self.bounds.slack,
                }
        return plain

    def _plain_value(self) -> Any:
        value = self.value
        if isinstance(value, np.ndarray):
            return _plain_cells(value)
        if isinstance(value, Records):
            rows = value.rows()
            return [{name: _plain(level) for name, level in row.items()} for row in rows]
        if isinstance(value, Mode):
            levels = {name: _plain(level) for name, level in value.items()}
            found = {"prob": value.prob, "bound": value.bound, "exact": value.exact}
            return {"levels": levels, **found}
        return value if np.isfinite(value) else None

    def __repr__(self) -> str:
        if isinstance(self.value, np.ndarray | Records):
            return f"<Answer: {text(self, _FEW_ROWS, with_basis=False)}>"
        return f"<Answer: {one_line(self)}>"

    def __str__(self) -> str:
        return text(self)

    def _repr_html_(self) -> str:
        return html(self)


def _plain_cells(table: FloatArray) -> Any:
    cells = table.astype(object)
    cells[~np.isfinite(table)] = None
    return cells.tolist()


def _plain(level: Any) -> Any:
    if isinstance(level, Bin) or (isinstance(level, float) and not np.isfinite(level)):
        return str(level)
    return level
