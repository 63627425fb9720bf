"""Answer: what a question in the query language came to, with its labels."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rejoint.domain import Bin, Variable
from rejoint.language import Query
from rejoint.pmf import rendering
from rejoint.pmf.credible import Interval
from rejoint.pmf.labelled import Mode, labelled
from rejoint.records import Records
from rejoint.records.export import Backend

__all__ = ["Answer"]

FloatArray = NDArray[np.float64]
Kind = Literal["probability", "table", "expectation", "mode", "records", "entropy", "information"]


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer to a question; immutable.

    ``float()`` gives the number where it is one, ``str()`` and notebooks show all of it.

    Attributes
    ----------
    query : Query
        The question; ``str(query)`` is its canonical text.
    kind : {"probability", "table", "expectation", "mode", "records", "entropy", "information"}
    value : float, ndarray, Mode or Records
        A number or a table; the mode after argmax; the records after sample.
    axes : tuple of Variable
        What the axes of a table are: the variables asked for, then those named without a value
        right of the bar.
    evidence : float
        Probability of what is given by value; 1 where nothing is. Of soft evidence, it is the
        mean of the likelihoods, the largest of each variable counted as 1.
    standard_error : float or None
        Of what was estimated by drawing records; None where the value is exact.
    unit : str
        "nats" or "bits", of entropies and information.
    notes : tuple of str
        What there is to know about the value.
    interval : Interval or None
        Credible bounds ``low`` and ``high`` of the value, their ``level`` and number of ``draws``;
        None where the model carries no posterior draws, or the value is no number.

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
    What is given has probability 0.1103.
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

    def __post_init__(self) -> None:
        if isinstance(self.value, np.ndarray):
            self.value.flags.writeable = False

    def __float__(self) -> float:
        if isinstance(self.value, float):
            return self.value
        raise TypeError(f"The answer to {self.query} is no single number: see .value.")

    def table(self, backend: Backend | None = None) -> Any:
        """Return a table, or sampled records, as a frame with labels.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
            By default the first of them that is installed.

        Returns
        -------
        frame
            As `LowRankPMF.table` and `Records.to_frame` make them.

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
            raise ValueError(f"The answer to {self.query} is {what}, no table: see .value.")
        return labelled(self.value, self.axes, backend, self.column)

    @property
    def column(self) -> str:
        """What the numbers of a table are called in frames: "prob" or "mean".

        Examples
        --------
        >>> import rejoint as rj
        >>> rj.datasets.asia().ask("P(bronc)").column
        'prob'
        """
        return "mean" if self.kind == "expectation" else "prob"

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
        if self.unit:
            plain |= {"unit": self.unit, "standard_error": self.standard_error}
        if self.interval is not None:
            plain["interval"] = {
                "low": _plain_cells(self.interval.low),
                "high": _plain_cells(self.interval.high),
                "level": self.interval.level,
                "draws": self.interval.draws,
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
        return f"<Answer: {rendering.one_line(self)}>"

    def __str__(self) -> str:
        return rendering.text(self)

    def _repr_html_(self) -> str:
        return rendering.html(self)


def _plain_cells(table: FloatArray) -> Any:
    cells = table.astype(object)
    cells[~np.isfinite(table)] = None
    return cells.tolist()


def _plain(level: Any) -> Any:
    if isinstance(level, Bin) or (isinstance(level, float) and not np.isfinite(level)):
        return str(level)
    return level
