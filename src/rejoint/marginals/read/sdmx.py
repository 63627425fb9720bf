"""SDMX-CSV and TSV of Eurostat as labelled arrays."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from rejoint.marginals.read.cells import UNKNOWN, Cells, TableArray, long_array, read_cells
from rejoint.marginals.read.grid import Grid
from rejoint.text import plural

#: Concepts of SDMX that describe an observation; they are never variables.
_ATTRIBUTES = re.compile(
    r"(DATAFLOW|STRUCTURE(_ID|_NAME)?(\[.*\])?|ACTION|SERIES_KEY|OBS_KEY|LAST UPDATE|"
    r"OBS_(STATUS|FLAG|CONF|COM|PRE_BREAK)|CONF_STATUS|DECIMALS|UNIT_MULT|TITLE|TIME_FORMAT|"
    r"COLLECTION|AVAILABILITY|EMBARGO_DATE|COMMENT\w*|UNIT_INDEX_BASE|OBSERVATION VALUE)"
)
_TOTALS = ("_T", "TOTAL", "Total", "T")
_TSV_HEADER = re.compile(r"\w+(?:,\w+)*\\\w+")
_FLAGGED = re.compile(r"(:|[+-]?[\d.]+(?:[eE][+-]?\d+)?)\s*(\w*)")


def read_sdmx(grid: Grid) -> TableArray | None:
    """Read SDMX-CSV or a TSV file of Eurostat; None where a header is of neither."""
    header = grid.rows[0] if grid.rows else ()
    ids = [name.partition(":")[0].strip() for name in header]
    if "OBS_VALUE" in ids and len(ids) > 2:
        return _read_csv(grid, header, ids)
    is_tsv = len(header) > 1 and _TSV_HEADER.fullmatch(header[0])
    return _read_tsv(grid, header) if is_tsv else None


def _read_tsv(grid: Grid, header: Sequence[str]) -> TableArray:
    stub, _, across = header[0].partition("\\")
    names, periods = stub.split(","), header[1:]
    texts: list[str] = []
    keys: list[tuple[str, ...]] = []
    flags: Counter[str] = Counter()
    for line, row in zip(grid.lines[1:], grid.rows[1:], strict=True):
        key = tuple(code.strip() for code in row[0].split(","))
        if len(key) != len(names) or len(row) != len(periods) + 1:
            numbers = plural(len(periods), "number")
            what = f"not {len(names)} codes and {numbers}, as the header says"
            raise ValueError(f"{grid.where}, line {line}: {what}.")
        keys.append(key)
        for cell in row[1:]:
            match = _FLAGGED.fullmatch(cell)
            texts.append(match[1] if match else cell)
            if match and match[2]:
                flags[match[2]] += 1
    cells = read_cells(texts)._replace(flags=flags)
    columns = [[code for code in column for _ in periods] for column in zip(*keys, strict=True)]
    columns = columns or [[] for _ in names]
    columns.append(list(periods) * len(keys))
    return _read(grid, [*names, across], columns, cells, (":",), "Eurostat TSV")


def _read_csv(grid: Grid, header: Sequence[str], ids: Sequence[str]) -> TableArray:
    """Read SDMX-CSV: dimensions come before the value, attributes after it.

    Columns of one text are constants and left out, and so are columns that only repeat another one
    in words.
    """
    for line, row in zip(grid.lines, grid.rows, strict=True):
        if len(row) != len(header):
            what = f"{plural(len(row), 'cell')}, but the header has {len(header)}"
            raise ValueError(f"{grid.where}, line {line}: {what}.")
    value = ids.index("OBS_VALUE")
    body = grid.rows[1:]
    if "ACTION" in ids:
        body = [row for row in body if row[ids.index("ACTION")] != "D"]
    columns = list(zip(*body, strict=True))
    chosen = [
        k
        for k, name in enumerate(ids if body else ())
        if k != value
        and not _ATTRIBUTES.fullmatch(name.upper())
        and (k < value or name in ("TIME_PERIOD", "TIME"))
    ]
    chosen = [k for k in chosen if len(set(columns[k])) > 1] or chosen[-1:]
    pairs = combinations(chosen, 2)
    repeated = {k for k, m in pairs if is_bijection(columns[k], columns[m])}
    chosen = [k for k in chosen if k not in repeated]
    if not chosen:
        what = "SDMX-CSV without a dimension of two codes, or without observations"
        raise ValueError(f"{grid.where}: {what}.")
    words = {text: _words(text) for k in chosen for text in set(columns[k])}
    labels = [[words[text] for text in columns[k]] for k in chosen]
    cells = read_cells([text.partition(":")[0].strip() for text in columns[value]])
    names = [_words(header[k]) for k in chosen]
    array = _read(grid, names, labels, cells, ("", "NaN", ":"), "SDMX-CSV")
    scales = set(columns[ids.index("UNIT_MULT")]) if "UNIT_MULT" in ids else set()
    power = scales.pop().partition(":")[0] if len(scales) == 1 else ""
    is_power = power.isdecimal() and int(power) < 12
    return replace(array, scales={"": int(power)} if is_power else {})


def _words(text: str) -> str:
    """Return the words of ``code: words``, else the code; codes of totals stay."""
    code, _, words = text.partition(": ")
    return words.strip() if words.strip() and code not in _TOTALS else code.strip()


def is_bijection(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether two columns say the same in different words."""
    size = len(set(one))
    return size == len(set(other)) and size == len(set(zip(one, other, strict=True)))


def _read(
    grid: Grid,
    names: Sequence[str],
    columns: Sequence[Sequence[str]],
    cells: Cells,
    unknown: Sequence[str],
    form: str,
) -> TableArray:
    array = long_array(grid.where, names, columns, cells, form)
    pairs = zip(array.names, array.labels, strict=True)
    totals = {name: tuple(t for t in labels if t in _TOTALS) for name, labels in pairs}
    return replace(array, totals=totals, missing=dict.fromkeys(unknown, UNKNOWN))
