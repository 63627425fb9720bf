"""Answers with labels: Mode, a mapping, and tables as frames."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.labels import Bin, Level
from rejoint.domain.variable import Variable
from rejoint.queries.modes import Found
from rejoint.records.frames import Backend, choose_backend
from rejoint.text import format_number, show

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Mode(Mapping[str, Level]):
    """A combination of levels by name, with its probability and a bound; immutable.

    Attributes
    ----------
    prob, log_prob : float
        Probability of the combination given the evidence, and its logarithm, which does not
        underflow.
    bound : float
        No combination has a larger probability than this.
    exact : bool
        Whether this is certainly the most probable combination: ``bound == prob``.

    Examples
    --------
    >>> import rejoint as rj
    >>> mode = rj.datasets.asia().mode(["smoke", "lung"], given={"xray": "yes"})
    >>> dict(mode), mode.exact
    ({'smoke': 'yes', 'lung': 'yes'}, True)
    """

    _levels: Mapping[str, Level]
    log_prob: float
    log_bound: float
    exact: bool

    @property
    def prob(self) -> float:
        """Probability of the combination."""
        return float(np.exp(self.log_prob))

    @property
    def bound(self) -> float:
        """Largest probability that any combination may have."""
        return float(np.exp(self.log_bound))

    @classmethod
    def of(cls, variables: Sequence[Variable], found: Found) -> Self:
        """Make a mode of the result of a search, with names and labels."""
        levels = {v.name: v.levels[i] for v, i in zip(variables, found.levels, strict=True)}
        return cls(levels, found.log_prob, found.log_bound, found.exact)

    def __getitem__(self, name: str) -> Level:
        return self._levels[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._levels)

    def __len__(self) -> int:
        return len(self._levels)

    def __repr__(self) -> str:
        cells = ", ".join(f"{name}={show([level])}" for name, level in list(self.items())[:12])
        more = ", ..." if len(self) > 12 else ""
        doubt = "not the joint mode for certain: some may have up to"
        tail = "" if self.exact else f"; {doubt} {format_number(self.bound)}"
        return f"Mode({cells}{more}; probability {format_number(self.prob)}{tail})"


def label_table(
    table: FloatArray,
    variables: Sequence[Variable],
    backend: Backend | None,
    name: str = "prob",
) -> Any:
    """Return a table as a frame: across and down in pandas, a row per cell in polars and pyarrow.

    Examples
    --------
    >>> import numpy as np
    >>> label_table(np.array([0.3, 0.7]), [Variable("a", ("x", "y"))], "pandas")
    a
    x    0.3
    y    0.7
    Name: prob, dtype: float64
    """
    backend = choose_backend(backend)
    if backend == "pandas":
        return _pandas(table, variables, name)
    return columns_to_frame(_long(table, variables, name), backend)


def columns_to_frame(columns: Mapping[str, Any], backend: Backend) -> Any:
    """Return columns by name as a frame of a library.

    Examples
    --------
    >>> columns_to_frame({"a": [1, None]}, "polars").shape
    (2, 1)
    """
    library = import_module(backend)
    make = library.table if backend == "pyarrow" else library.DataFrame
    return make(columns)


def _labels(variable: Variable) -> list[Any]:
    return [str(x) if isinstance(x, Bin) else x for x in variable.levels]


def _pandas(table: FloatArray, variables: Sequence[Variable], name: str) -> Any:
    import pandas as pd

    axes = [pd.Index(_labels(v), name=v.name, dtype=_dtype(v)) for v in variables]
    if len(axes) == 1:
        return pd.Series(table, index=axes[0], name=name)
    rows = axes[0] if len(axes) == 2 else pd.MultiIndex.from_product(axes[:-1])
    return pd.DataFrame(table.reshape(len(rows), -1), index=rows, columns=axes[-1])


def _dtype(variable: Variable) -> Any:
    """Mixed labels stay as they are; pandas finds the type of uniform ones."""
    return object if len({type(x) for x in variable.levels}) > 1 else None


def _long(table: FloatArray, variables: Sequence[Variable], name: str) -> dict[str, Any]:
    """One list per variable and the numbers; labels of mixed types become text."""
    columns: dict[str, Any] = {}
    for places, variable in zip(np.indices(table.shape), variables, strict=True):
        labels = _labels(variable)
        if _dtype(variable) is object:
            labels = [str(label) for label in labels]
        columns[variable.name] = [labels[i] for i in places.ravel()]
    while name in columns:  # a variable may be called so itself
        name += "_"
    columns[name] = table.ravel()
    return columns
