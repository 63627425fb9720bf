"""Tables from files: a folder of CSV files, some files, or one that holds several tables.

Lines that begin with ``#`` are comments; of those before the header, these mean something::

    # kind: percent            counts, shares or percent, where the numbers leave it open
    # records: 1234            how many are behind a table of shares
    # weight: 2                how much the table counts in a fit
    # standard error: 0.01     of a cell, in the unit of the table
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from rejoint.domain import Domain, Level
from rejoint.domain.labels import natural_order, nearest
from rejoint.marginals.cells import SUPPRESSED
from rejoint.marginals.forms import LabelledTable
from rejoint.marginals.layouts import Options, read_layout
from rejoint.marginals.margins import TOTALS
from rejoint.records.sources import Source
from rejoint.records.text import Dialect, find_dialect, read_rows

__all__ = ["TableFiles", "list_files", "read_files"]

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]

SUFFIXES = (".csv", ".tsv", ".tab", ".txt")

_WHOLE = re.compile(r"-?(?:0|[1-9]\d*)")
_REAL = re.compile(r"-?(?:0|[1-9]\d*)\.\d+")
_SAYS = re.compile(r"#\s*([\w ]+?)\s*[:=]\s*(.+?)\s*")
_KINDS = {"counts": "count", "count": "count", "shares": "share", "share": "share"}


@dataclass(frozen=True)
class TableFiles:
    """Tables as read from files, and the weights that the files give them."""

    tables: tuple[LabelledTable, ...]
    weights: Mapping[tuple[str, ...], float]


def list_files(paths: Paths) -> list[Path | str]:
    """Files to read: those of a folder in natural order, or the ones that are named.

    Examples
    --------
    >>> list_files(["b.csv", "a.csv"])
    ['b.csv', 'a.csv']
    """
    if isinstance(paths, str | PathLike):
        paths = [paths]
    found: list[Path | str] = []
    for path in paths:
        if str(path) == "-" or not Path(path).is_dir():
            found.append(str(path))
            continue
        inside = [p.name for p in Path(path).iterdir() if p.is_file() and p.name[0] != "."]
        names = [name for name in inside if name.lower().removesuffix(".gz").endswith(SUFFIXES)]
        if not names:
            raise ValueError(
                f"The folder '{path}' has no table files: names must end in "
                f"{', '.join(SUFFIXES)}, with or without .gz."
            )
        found += [Path(path, str(name)) for name in natural_order(names)]
    if not found:
        raise ValueError("No table files are named.")
    return found


def read_files(
    paths: Paths,
    *,
    domain: Domain | None = None,
    suppressed: Collection[str] | Mapping[str, tuple[float, float]] = (),
    totals: Collection[str] = tuple(TOTALS),
    decimal: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    noisy: bool = False,
) -> TableFiles:
    r"""Read the tables of some files; see :meth:`rejoint.Marginals.read`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "t.csv").write_text("a,b,count\nx,1,3\ny,2,<5\n")
    ...     table = read_files(folder).tables[0]
    >>> table.names, table.labels
    (('a', 'b'), (('x', 'y'), (1, 2)))
    """
    if decimal not in (None, ".", ","):
        raise ValueError(f"decimal must be '.' or ',', got {decimal!r}.")
    tables: list[LabelledTable] = []
    weights: dict[tuple[str, ...], float] = {}
    for path in list_files(paths):
        source = Source(path)
        dialect = find_dialect(source, delimiter, encoding, comment="#")
        rows = list(read_rows(source, dialect))
        how = Options(
            marks_of(suppressed),
            decimal or guess_decimal(rows, dialect.delimiter),
            noisy,
            frozenset(total.lower() for total in totals),
        )
        stem = Path(source.name).name.split(".")[0]
        read = read_layout(rows, source.name, stem, how)
        said = read_comments(source, dialect)
        tables += [_as_said(table, said) for table in read]
        if "weight" in said:
            weights.update({table.names: float(said["weight"]) for table in read})
    return TableFiles(tuple(typed(tables, domain)), weights)


def marks_of(
    suppressed: Collection[str] | Mapping[str, tuple[float, float]],
) -> dict[str, tuple[float, float]]:
    """Marks of held-back cells with their bounds: the usual ones, and those that are given.

    Examples
    --------
    >>> marks_of({"*": (1, 4)})["*"], marks_of(["zz"])["zz"]
    ((1, 4), (0.0, inf))
    """
    if isinstance(suppressed, str):
        suppressed = [suppressed]
    marks = dict.fromkeys(SUPPRESSED, (0.0, float("inf")))
    for mark in suppressed:
        bounds = suppressed[mark] if isinstance(suppressed, Mapping) else (0.0, float("inf"))
        if not 0 <= bounds[0] <= bounds[1]:
            raise ValueError(f"suppressed: the bounds of {mark!r} are {bounds}; least, then most.")
        marks[mark.strip().lower()] = bounds
    return marks


def guess_decimal(rows: Iterable[tuple[int, list[str]]], delimiter: str) -> str:
    """A comma sets off decimals where it is not the delimiter and cannot set off thousands.

    Examples
    --------
    >>> guess_decimal([(1, ["a", "12,5"])], ";"), guess_decimal([(1, ["a", "1,250"])], ";")
    (',', '.')
    """
    number = re.compile(r"[+-]?\d+,(?:\d{1,2}|\d{4,})\s*%?")
    found = any(number.fullmatch(cell.strip()) for _, row in rows for cell in row)
    return "," if delimiter != "," and found else "."


def read_comments(source: Source, dialect: Dialect) -> dict[str, str]:
    """What comments above the header say: ``# weight: 2``."""
    said: dict[str, str] = {}
    with source.open() as file:
        for line in file:
            text = line.decode(dialect.encoding, errors="replace").strip().lstrip("\ufeff")
            if text and not text.startswith("#"):
                break
            if found := _SAYS.fullmatch(text):
                said[found[1].strip().lower()] = found[2]
    for key in ("weight", "records", "standard error"):
        try:
            good = key not in said or float(said[key]) >= 0.0
        except ValueError:
            good = False
        if not good:
            raise ValueError(
                f"{source.name}: the comment '# {key}: {said[key]}' must give a number that is "
                "not negative."
            )
    return said


def _as_said(table: LabelledTable, said: Mapping[str, str]) -> LabelledTable:
    """The table with what comments of its file say."""
    changes: dict[str, Any] = {}
    if "kind" in said:
        kind = said["kind"].lower()
        if kind.startswith(("percent", "%")):
            changes["percent"] = True
        elif kind in _KINDS:
            changes |= {"column": _KINDS[kind], "percent": False}
        else:
            raise ValueError(
                f"{table.source}: the comment '# kind: {said['kind']}' must say counts, shares or "
                "percent."
            )
    if "records" in said:
        changes["records"] = float(said["records"])
    if "standard error" in said:
        changes["error"] = float(said["standard error"])
    return replace(table, **changes)


def typed(tables: Sequence[LabelledTable], domain: Domain | None) -> list[LabelledTable]:
    """Labels, which are text in a file, as the domain has them, or numbers where all are.

    Examples
    --------
    >>> import numpy as np
    >>> table = LabelledTable(("a",), (("1", "2"),), np.ones(2))
    >>> typed([table], None)[0].labels
    ((1, 2),)
    """
    texts: dict[str, dict[str, Level]] = {}
    for table in tables:
        for name, labels in zip(table.names, table.labels, strict=True):
            texts.setdefault(name, {}).update({str(label): str(label) for label in labels or ()})
    for name, labels_of in texts.items():
        if domain is None:
            labels_of.update(_numbers(list(labels_of)))
        elif name not in domain:
            raise ValueError(
                f"The tables speak of {name!r}, which is not in the domain."
                + nearest(name, domain.names)
            )
        else:
            labels_of.update({str(level): level for level in domain[name].levels})
    return [_relabelled(table, texts) for table in tables]


def _numbers(labels: Sequence[str]) -> dict[str, Level]:
    if all(_WHOLE.fullmatch(label) for label in labels):
        return {label: int(label) for label in labels}
    if all(_WHOLE.fullmatch(label) or _REAL.fullmatch(label) for label in labels):
        return {label: float(label) for label in labels}
    return {}


def _relabelled(table: LabelledTable, texts: Mapping[str, Mapping[str, Level]]) -> LabelledTable:
    labels = tuple(
        tuple(texts[name][str(label)] for label in known or ())
        for name, known in zip(table.names, table.labels, strict=True)
    )
    margins = tuple(_relabelled(margin, texts) for margin in table.margins)
    return replace(table, labels=labels, margins=margins)
