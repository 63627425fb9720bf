"""Export: records back to frames of any library, and to text."""

from importlib.util import find_spec
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from rejoint.domain import Domain, Variable
from rejoint.domain.columns import Codes
from rejoint.domain.labels import plural

__all__ = ["Backend", "choose_backend", "head", "make_frame"]

Backend = Literal["pandas", "polars", "pyarrow"]
_ROWS, _COLUMNS = 5, 8


def make_frame(domain: Domain, codes: Codes, backend: str | None, representatives: bool) -> Any:
    """Return a frame of labels in the library asked for, or in the first that is installed.

    Text and bins become categories of the library, with all levels; numbers and booleans
    its numbers and booleans. Labels of several types in one column become text where the
    library cannot mix them.

    Examples
    --------
    >>> import numpy as np
    >>> make_frame(
    ...     Domain.of({"a": ["x", "y"]}), np.array([[1], [-1]]), "pyarrow", False
    ... ).to_pylist()
    [{'a': 'y'}, {'a': None}]
    """
    makers = {"pandas": _pandas, "polars": _polars, "pyarrow": _pyarrow}
    return makers[choose_backend(backend)](domain, codes, representatives)


def choose_backend(backend: str | None) -> Backend:
    """Return the library asked for, or the first that is installed.

    Examples
    --------
    >>> choose_backend("polars")
    'polars'
    """
    backends = get_args(Backend)
    if backend is None:
        backend = next((name for name in backends if find_spec(name)), None)
        if backend is None:
            raise ImportError("A frame needs pandas, polars or pyarrow: none is installed.")
    if backend not in backends:
        raise ValueError(f"backend must be 'pandas', 'polars' or 'pyarrow', not {backend!r}.")
    return cast(Backend, backend)


def _texts(variable: Variable, representatives: bool) -> list[str] | None:
    """Return the levels as text if text or bins are what they are."""
    if variable.kind == "binned":
        return None if representatives else [str(level) for level in variable.levels]
    texts = [level for level in variable.levels if isinstance(level, str)]
    return texts if len(texts) == len(variable) else None


def _values(variable: Variable, codes: Codes) -> NDArray[Any]:
    """Return numbers, booleans or objects; where the code is -1 they mean nothing."""
    labels = np.array(variable.representatives or variable.decode(range(len(variable))))
    values: NDArray[Any] = labels[codes]
    return values


def _uniform(
    variable: Variable, codes: Codes, representatives: bool
) -> tuple[list[str] | None, NDArray[Any]]:
    """Return text and the codes into it, or None and values of one type."""
    texts = _texts(variable, representatives)
    values = codes if texts is not None else _values(variable, codes)
    if values.dtype == object:
        return [str(level) for level in variable.levels], codes
    return texts, values


def _pandas(domain: Domain, codes: Codes, representatives: bool) -> Any:
    import pandas as pd

    def series(v: Variable, column: Codes) -> Any:
        texts, gone = _texts(v, representatives), column < 0
        if texts is not None:
            return pd.Categorical.from_codes(column, categories=texts, ordered=v.kind != "nominal")
        values = _values(v, column)
        if not gone.any():
            return values
        match values.dtype.kind:
            case "b":
                return pd.arrays.BooleanArray(values, gone)
            case "i":
                return pd.arrays.IntegerArray(values, gone)
        values[gone] = np.nan if values.dtype.kind == "f" else None
        return values

    columns = {v.name: series(v, codes[:, n]) for n, v in enumerate(domain)}
    return pd.DataFrame(columns, index=pd.RangeIndex(len(codes)))


def _polars(domain: Domain, codes: Codes, representatives: bool) -> Any:
    import polars as pl

    def series(v: Variable, column: Codes) -> Any:
        (texts, values), gone = _uniform(v, column, representatives), column < 0
        if texts is None:
            return pl.Series(v.name, values).set(pl.Series(gone), None)
        places = pl.Series(np.where(gone, 0, values).astype(np.uint32)).set(pl.Series(gone), None)
        kind = pl.Categorical if v.kind == "nominal" else pl.Enum(texts)
        return pl.Series(v.name, texts, dtype=kind).gather(places)

    return pl.DataFrame([series(v, codes[:, n]) for n, v in enumerate(domain)])


def _pyarrow(domain: Domain, codes: Codes, representatives: bool) -> Any:
    import pyarrow as pa

    def array(v: Variable, column: Codes) -> Any:
        (texts, values), gone = _uniform(v, column, representatives), column < 0
        if texts is None:
            return pa.array(values, mask=gone)
        cells = pa.array(values.astype(np.int32), mask=gone)
        return pa.DictionaryArray.from_arrays(cells, pa.array(texts), ordered=v.kind != "nominal")

    return pa.table({v.name: array(v, codes[:, n]) for n, v in enumerate(domain)})


def head(domain: Domain, codes: Codes, weight: NDArray[np.float64] | None) -> str:
    """Write how large the records are and their first rows.

    Examples
    --------
    >>> import numpy as np
    >>> print(head(Domain.of({"a": ["x", "y"]}), np.array([[1], [-1]]), None))
    Records: 2 rows, 1 variable, 50 % of the cells missing
    a
    y
    -
    """
    rows, width = codes.shape
    share = f"{np.mean(codes < 0):.0%}".replace("%", " %") if codes.size else "0 %"
    title = f"Records: {plural(rows, 'row')}, {plural(width, 'variable')}"
    title += f", {share} of the cells missing" + (", weighted" if weight is not None else "")
    columns = []
    for n, v in enumerate(domain.variables[:_COLUMNS]):
        cells = [v.name] + ["-" if c < 0 else str(v.levels[c]) for c in codes[:_ROWS, n]]
        size = max(len(cell) for cell in cells)
        columns.append([cell.ljust(size) for cell in cells])
    lines = ["  ".join(line).rstrip() for line in zip(*columns, strict=True)]
    if width > _COLUMNS and lines:
        lines[0] += f"  ... and {width - _COLUMNS:,} more"
    if rows > _ROWS:
        lines.append("...")
    return "\n".join([title, *lines])
