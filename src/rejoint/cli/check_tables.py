"""``rejoint check-tables``: how published tables are understood, before anything is fitted."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np

from rejoint.cli.group import echo
from rejoint.cli.options import Options, argument, declare, option
from rejoint.cli.output import echo_json, show_table
from rejoint.io.atomic import atomic_file
from rejoint.marginals.compare import Disagreement
from rejoint.marginals.marginals import Marginals
from rejoint.marginals.read.description import Reading
from rejoint.marginals.read.grid import list_files
from rejoint.marginals.read.table_files import OpenQuestionError, TableFiles
from rejoint.text import clean_label, format_number, plural

#: Rows and columns of a table that its picture shows.
_ROWS, _COLUMNS = 6, 5


@declare(
    "--json +tables",
    argument("tables", "DIR|FILES..."),
    option("--write FILE", "Write the descriptions of the files as TOML."),
)
def command(o: Options) -> None:
    """Show how each file of tables is understood: variables, levels, kind, totals, marks.

    Each table is shown as it was read. With --write the descriptions of all files are written to
    a TOML file, which is honoured where it is called tables.toml and lies beside them; what a file
    leaves open is marked in it by "?" or a remark. Nothing is fitted.

    Examples
    --------
      rejoint check-tables published
      rejoint check-tables published --write tables.toml
      rejoint check-tables smoke-lung.csv smoke-bronc.csv --same 'bronc=bronchitis'
    """
    try:
        tables, files = o.read_tables(*o.tables)
    except ValueError as error:
        if not o.json:
            _show_each(o)
        if isinstance(error, OpenQuestionError):
            _write(o.write, error.proposal)
        raise
    _show(tables, files, o.json)
    _write(o.write, files.description)


def _write(path: str | None, text: str) -> None:
    if path is not None:
        with atomic_file(Path(path)) as file:
            file.write(text.encode())
        echo(f"Written to {path}.", err=True)


def _show_each(o: Options) -> None:
    """Show the files that can be read by themselves."""
    sources = list_files(o.tables)
    for source in sources if len(sources) > 1 else ():
        try:
            _, files = o.read_tables(str(source.path))
        except (ValueError, OSError):
            continue
        for reading in files.readings:
            _describe(reading)


def _show(tables: Marginals, files: TableFiles, as_json: bool) -> None:
    strife = list_disagreements(tables)
    if as_json:
        echo_json(
            {
                "tables": [asdict(reading) for reading in files.readings],
                "variables": {v.name: v.levels for v in tables.domain},
                "disagreements": [d._asdict() for d in strife],
            }
        )
        return
    for reading in files.readings:
        _describe(reading)
        _show_cells(tables, reading)
    echo(f"Together: {tables}.")
    rows = [
        (v.name, ", ".join(clean_label(level, 20) for level in v.levels), len(v))
        for v in tables.domain
    ]
    show_table(("variable", "levels", "number"), rows, left=2)
    show_disagreements(strife)


def list_disagreements(tables: Marginals) -> list[Disagreement]:
    """Return pairs of tables that differ by more than rounding on what they share."""
    return [pair for pair in tables.disagreements() if pair.distance > 1e-9]


def show_disagreements(strife: Sequence[Disagreement], *, err: bool = False) -> None:
    """Print the tables that disagree most, if there are any."""
    if strife:
        rows = [
            (", ".join(d.first), ", ".join(d.second), ", ".join(d.shared), f"{d.distance:.4f}")
            for d in strife[:5]
        ]
        title = "Tables that disagree on what they share:"
        show_table(("table", "table", "shared", "distance"), rows, left=3, title=title, err=err)


def _describe(reading: Reading) -> None:
    echo(describe_reading(reading))
    details = {
        "totals": ", ".join(reading.totals),
        "marks": ", ".join(
            f"{mark or 'nothing'} ({meaning})" for mark, meaning in reading.marks.items()
        ),
        "flags": ", ".join(f"{f} ({plural(n, 'cell')})" for f, n in reading.flags.items()),
        "left out": "; ".join(reading.left_out),
        "notes": " | ".join(clean_label(note, 70) for note in reading.notes[:3]),
    }
    for name, text in details.items():
        if text:
            echo(f"    {name + ':':<11}{text}")


def _show_cells(tables: Marginals, reading: Reading) -> None:
    """Print the first rows and columns of a table as it was read."""
    names = reading.names
    at = tables.domain.indices(names)
    number = tables.positions[tuple(sorted(at))]
    flat = np.array(tables.counts_of(number), dtype=np.float64)
    cells = tables.unknown_of(number)
    if cells is not None:
        flat.ravel()[cells.places] = np.nan
    levels = [tables.domain[name].levels for name in names]
    wide = levels[-1] if len(names) > 1 else ("",)
    table = flat.transpose(np.argsort(np.argsort(at))).reshape(-1, len(wide))
    labels: Any = product(*(levels[:-1] if len(names) > 1 else levels))
    rows = [
        [*label, *("?" if np.isnan(x) else format_number(float(x)) for x in row[:_COLUMNS])]
        for label, row in islice(zip(labels, table, strict=True), _ROWS)
    ]
    head = [*names, ""]
    if len(names) > 1:
        head = [*names[:-1], f"{names[-1]}={wide[0]}", *map(str, wide[1:_COLUMNS])]
    cut = len(table) > _ROWS or len(wide) > _COLUMNS
    clean = [[clean_label(text, 24) for text in row] for row in (head, *rows)]
    left, title = max(len(names) - 1, 1), "    ..." if cut else ""
    show_table(clean[0], clean[1:], left=left, title=title)


def describe_reading(reading: Reading) -> str:
    """Describe in one line how a table was understood."""
    parts = zip(reading.names, reading.levels, strict=True)
    shape = " x ".join(f"{name} ({len(levels)})" for name, levels in parts)
    total = format_number(reading.total)
    return f"{reading.where} ({reading.form}): {shape}, {reading.kind}, {total} in all"
