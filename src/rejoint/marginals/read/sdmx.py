"""SDMX-CSV and TSV of Eurostat as labelled arrays; the long form that they share with others."""

import re
from collections.abc import Sequence
from math import inf, prod

import numpy as np
from numpy.typing import NDArray

from rejoint.marginals.read.cells import Bounds, Cells, TableArray, check_size, read_cells
from rejoint.marginals.read.grid import Grid
from rejoint.text import cite, plural

#: Concepts of SDMX that describe an observation; they are never variables.
_ATTRIBUTES = re.compile(
    r"(DATAFLOW|STRUCTURE(_ID|_NAME)?(\[.*\])?|ACTION|SERIES_KEY|OBS_KEY|LAST UPDATE|"
    r"OBS_(STATUS|FLAG|CONF|COM|PRE_BREAK)|CONF_STATUS|DECIMALS|UNIT_MULT|TITLE|TIME_FORMAT|"
    r"COLLECTION|AVAILABILITY|EMBARGO_DATE|COMMENT\w*|UNIT_INDEX_BASE|OBSERVATION VALUE)"
)
_TOTALS = ("_T", "TOTAL", "Total", "T")
_TSV_HEADER = re.compile(r"\w+(?:,\w+)*\\\w+")
_FLAGGED = re.compile(r"(:|[+-]?[\d.]+(?:[eE][+-]?\d+)?)\s*(\w*)")


def is_sdmx_csv(header: Sequence[str]) -> bool:
    """Return whether a header is one of SDMX-CSV.

    Examples
    --------
    >>> is_sdmx_csv(["DATAFLOW", "SEX", "OBS_VALUE"]), is_sdmx_csv(["Sex", "n"])
    (True, False)
    """
    ids = [name.partition(":")[0].strip() for name in header]
    return "OBS_VALUE" in ids and len(ids) > 2


def is_eurostat_tsv(rows: Sequence[Sequence[str]]) -> bool:
    r"""Return whether the first cell names the dimensions: ``sex,geo\TIME_PERIOD``."""
    return bool(rows and len(rows[0]) > 1 and _TSV_HEADER.fullmatch(rows[0][0].strip()))


def read_eurostat_tsv(grid: Grid) -> TableArray:
    r"""Read a TSV file of Eurostat.

    Examples
    --------
    >>> rows = [["sex,geo\\time", "2003 ", "2004 "], ["F,AT", "3 ", ": c"], ["M,AT", "4 p", "5 "]]
    >>> read_eurostat_tsv(Grid("t.tsv", rows, [1, 2, 3])).values.ravel()
    array([ 3., nan,  4.,  5.])
    """
    stub, _, across = grid.rows[0][0].strip().partition("\\")
    names = stub.split(",")
    periods = [cell.strip() for cell in grid.rows[0][1:]]
    texts: list[str] = []
    columns: list[list[str]] = [[] for _ in (*names, across)]
    flags: dict[str, int] = {}
    for line, row in zip(grid.lines[1:], grid.rows[1:], strict=True):
        key = row[0].split(",")
        if len(key) != len(names) or len(row) != len(periods) + 1:
            raise ValueError(
                f"{grid.where}, line {line}: not {len(names)} codes and "
                f"{plural(len(periods), 'number')}, as the header says."
            )
        for period, cell in zip(periods, row[1:], strict=True):
            found = _FLAGGED.fullmatch(cell.strip())
            text, flag = (found[1], found[2]) if found else (cell.strip(), "")
            texts.append(text)
            if flag:
                flags[flag] = flags.get(flag, 0) + 1
            for column, code in zip(columns, (*key, period), strict=True):
                column.append(code.strip())
    cells = read_cells(texts)._replace(flags=flags)
    array = long_array(grid.where, [*names, across], columns, cells, form="Eurostat TSV")
    return _with_totals(array, {":": (0.0, inf)})


def read_sdmx_csv(grid: Grid) -> TableArray:
    """Read SDMX-CSV: dimensions stand before the value, attributes after it.

    Columns of one text are constants and left out, and so are columns that only repeat another one
    in words.

    Examples
    --------
    >>> rows = [["DATAFLOW", "SEX", "OBS_VALUE"], ["A:B(1.0)", "F", "3"], ["A:B(1.0)", "M", "4"]]
    >>> read_sdmx_csv(Grid("t.csv", rows, [1, 2, 3])).labels
    (('F', 'M'),)
    """
    header = [cell.strip() for cell in grid.rows[0]]
    ids = [name.partition(":")[0].strip() for name in header]
    for line, row in zip(grid.lines, grid.rows, strict=True):
        if len(row) != len(header):
            raise ValueError(
                f"{grid.where}, line {line}: {plural(len(row), 'cell')}, but the "
                f"header has {len(header)}."
            )
    value = ids.index("OBS_VALUE")
    body = grid.rows[1:]
    chosen = [
        k
        for k, name in enumerate(ids)
        if k != value
        and not _ATTRIBUTES.fullmatch(name.upper())
        and (k < value or name in ("TIME_PERIOD", "TIME"))
    ]
    if "ACTION" in ids:
        body = [row for row in body if row[ids.index("ACTION")] not in ("D",)]
    columns = {k: [row[k].strip() for row in body] for k in chosen}
    chosen = [k for k in chosen if len(set(columns[k])) > 1] or chosen[-1:]
    chosen = [k for k in chosen if not _is_repeated(k, chosen, columns)]
    if not chosen or not body:
        raise ValueError(
            f"{grid.where}: SDMX-CSV without a dimension of two codes, or without observations."
        )
    labels = [[_label(text) for text in columns[k]] for k in chosen]
    names = [_label(header[k]) for k in chosen]
    scale = {row[ids.index("UNIT_MULT")] for row in body} if "UNIT_MULT" in ids else set()
    cells = read_cells([row[value].partition(":")[0].strip() for row in body])
    array = long_array(grid.where, names, labels, cells, form="SDMX-CSV")
    power = next(iter(scale)).partition(":")[0] if len(scale) == 1 else ""
    scales = {"": int(power)} if power.isdecimal() and int(power) < 12 else {}
    unknown = dict.fromkeys(("", "NaN", ":"), (0.0, inf))
    return _with_totals(array, unknown, scales)


def _label(text: str) -> str:
    """Return the words of ``code: words``, else the code; codes of totals stay."""
    code, colon, words = text.partition(": ")
    return words.strip() if colon and words.strip() and code not in _TOTALS else code.strip()


def _is_repeated(k: int, chosen: Sequence[int], columns: dict[int, list[str]]) -> bool:
    """Return whether a later column has another text for each text of this one, and no more."""
    return any(is_bijection(columns[k], columns[m]) for m in chosen if m > k)


def is_bijection(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether two columns say the same in different words.

    Examples
    --------
    >>> is_bijection(["a", "b", "a"], ["x", "y", "x"]), is_bijection(["a", "b"], ["x", "x"])
    (True, False)
    """
    size = len(set(one))
    return size == len(set(other)) and size == len(set(zip(one, other, strict=True)))


def _with_totals(
    array: TableArray, missing: dict[str, Bounds], scales: dict[str, int] | None = None
) -> TableArray:
    from dataclasses import replace

    totals = {
        name: tuple(label for label in labels if label in _TOTALS)
        for name, labels in zip(array.names, array.labels, strict=True)
    }
    return replace(array, totals=totals, missing=missing, scales=scales or {})


#: What stands for combinations that no row of a long form has.
ABSENT = ""


def long_array(
    where: str, names: Sequence[str], columns: Sequence[Sequence[str]], cells: Cells, form: str
) -> TableArray:
    """Scatter listed cells into a dense array; those that are not listed have the mark ``ABSENT``.

    Examples
    --------
    >>> array = long_array(
    ...     "t", ["a", "b"], [["x", "y"], ["u", "v"]], read_cells(["3", "4"]), "long"
    ... )
    >>> array.values
    array([[ 3., nan],
           [nan,  4.]])
    """
    levels = [list(dict.fromkeys(column)) for column in columns]
    shape = [len(known) for known in levels]
    check_size(where, shape, len(cells.values))
    index = np.zeros(len(cells.values), dtype=np.int64)
    for column, known in zip(columns, levels, strict=True):
        code = {text: i for i, text in enumerate(known)}
        index = index * len(known) + np.fromiter((code[t] for t in column), np.int64, len(column))
    _check_once(where, names, columns, index)
    marks = cells.marks if ABSENT in cells.marks else (*cells.marks, ABSENT)
    values = np.full(prod(shape), np.nan)
    codes = np.full(prod(shape), marks.index(ABSENT) + 1, dtype=np.int32)
    values[index], codes[index] = cells.values, cells.codes
    return TableArray(
        where,
        tuple(names),
        tuple(map(tuple, levels)),
        values.reshape(shape),
        codes.reshape(shape),
        marks,
        cells.digits,
        cells.percent,
        flags=cells.flags,
        form=form,
    )


def _check_once(
    where: str, names: Sequence[str], columns: Sequence[Sequence[str]], index: NDArray[np.int64]
) -> None:
    distinct, first = np.unique(index, return_index=True)
    if len(distinct) == len(index):
        return
    again = int(np.setdiff1d(np.arange(len(index)), first)[0])
    cell = ", ".join(f"{n}={cite(c[again])}" for n, c in zip(names, columns, strict=True))
    raise ValueError(
        f"{where}: the cell {cell} is given twice. Another column tells the two apart, or their "
        "rows are of different tables: keep one of them (where=), or leave out rows (drop=)."
    )
