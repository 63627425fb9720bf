"""``rejoint check-tables``: how published tables are understood, before anything is fitted."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click
import numpy as np

from rejoint.cli import options
from rejoint.cli.group import echo
from rejoint.cli.options import TableReader
from rejoint.cli.output import echo_json, show_table
from rejoint.io.atomic import atomic_file
from rejoint.marginals.compare import Disagreement
from rejoint.marginals.marginals import Marginals
from rejoint.marginals.read.description import Reading
from rejoint.marginals.read.grid import list_files
from rejoint.marginals.read.table_files import OpenQuestionError, TableFiles
from rejoint.text import clean_label, format_number, plural

EXAMPLES = """\b
Examples:
  rejoint check-tables published
  rejoint check-tables published --write tables.toml
  rejoint check-tables smoke-lung.csv smoke-bronc.csv --same 'bronc=bronchitis'"""

#: Rows and columns of a table that its picture shows.
_ROWS, _COLUMNS = 6, 5


@click.command("check-tables", epilog=EXAMPLES)
@click.argument("tables", metavar="DIR|FILES...", nargs=-1, required=True)
@click.option("--write", metavar="FILE", help="Write the descriptions of the files as TOML.")
@options.as_json
@options.of_tables
def command(
    tables: tuple[str, ...], write: str | None, as_json: bool, table_reader: TableReader
) -> None:
    """Show how each file of tables is understood: variables, levels, kind, totals, marks.

    Each table is shown as it was read. With --write the descriptions of all files are written to
    a TOML file, which is honoured where it is called tables.toml and lies beside them; what a file
    leaves open is marked in it by "?" or a remark. Nothing is fitted.
    """
    try:
        known, files = table_reader.read_with_files(*tables)
    except OpenQuestionError as error:
        if not as_json:
            _show_each(tables, table_reader)
        if write is not None:
            _write(write, error.proposal)
        raise
    except ValueError:
        if not as_json:
            _show_each(tables, table_reader)
        raise
    _show(known, files, as_json)
    if write is not None:
        _write(write, files.description)


def _write(path: str, text: str) -> None:
    with atomic_file(Path(path)) as file:
        file.write(text.encode())
    echo(f"Written to {path}.", err=True)


def _show_each(paths: Sequence[str], table_reader: TableReader) -> None:
    """Show the files that can be read by themselves."""
    sources = list_files(paths)
    for source in sources if len(sources) > 1 else ():
        try:
            _, files = table_reader.read_with_files(str(source.path))
        except (ValueError, OSError):
            continue
        for reading in files.readings:
            _describe(reading)


def _show(known: Marginals, files: TableFiles, as_json: bool) -> None:
    strife = list_disagreements(known)
    if as_json:
        echo_json(
            {
                "tables": [_plain(reading) for reading in files.readings],
                "variables": {v.name: v.levels for v in known.domain},
                "disagreements": [d._asdict() for d in strife],
            }
        )
        return
    for reading in files.readings:
        _describe(reading)
        _picture(known, reading)
    echo(f"Together: {known!r}.")
    rows = [
        (v.name, ", ".join(clean_label(level, 20) for level in v.levels), len(v))
        for v in known.domain
    ]
    show_table(("variable", "levels", "number"), rows, left=2)
    show_disagreements(strife)


def _plain(reading: Reading) -> dict[str, object]:
    """Return a reading as JSON, without its description."""
    return {key: value for key, value in asdict(reading).items() if key != "description"}


def list_disagreements(tables: Marginals) -> list[Disagreement]:
    """Return pairs of tables that differ by more than rounding on what they share."""
    return [found for found in tables.disagreements() if found.distance > 1e-9]


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
        "marks": ", ".join(f"{mark or 'nothing'} ({said})" for mark, said in reading.marks.items()),
        "flags": ", ".join(f"{f} ({plural(n, 'cell')})" for f, n in reading.flags.items()),
        "left out": "; ".join(reading.left_out),
        "notes": " | ".join(clean_label(note, 70) for note in reading.notes[:3]),
    }
    for name, text in details.items():
        if text:
            echo(f"    {name + ':':<11}{text}")


def _picture(known: Marginals, reading: Reading) -> None:
    """Print the first rows and columns of a table as it was read."""
    names = reading.names
    table = known[names]
    cells = known.unknown_of(known.positions[tuple(sorted(known.domain.indices(names)))])
    if cells is not None:
        flat = known.counts_of(known.positions[tuple(sorted(known.domain.indices(names)))])
        shown = np.array(flat, dtype=np.float64)
        shown.ravel()[cells.places] = np.nan
        order = np.argsort(np.argsort(known.domain.indices(names)))
        table = shown.transpose(order)
    levels = [known.domain[name].levels for name in names]
    wide = levels[-1] if len(names) > 1 else ("",)
    flat_rows = table.reshape(-1, len(wide))
    head = [
        *names[:-1],
        *(f"{names[-1]}={x}" if k == 0 else x for k, x in enumerate(wide[:_COLUMNS])),
    ]
    head = head if len(names) > 1 else [names[0], ""]
    rows = []
    sizes = [len(known_levels) for known_levels in levels[: max(len(names) - 1, 1)]]
    for number, row in enumerate(flat_rows[:_ROWS]):
        at = np.unravel_index(number, sizes)
        labels = [levels[k][int(i)] for k, i in enumerate(at)]
        rows.append(
            (*labels, *("?" if np.isnan(x) else format_number(float(x)) for x in row[:_COLUMNS]))
        )
    cut = len(flat_rows) > _ROWS or len(wide) > _COLUMNS
    show_table(
        tuple(clean_label(text, 24) for text in head),
        [tuple(clean_label(text, 24) for text in row) for row in rows],
        left=max(len(names) - 1, 1),
        title="    ..." if cut else "",
    )


def describe_reading(reading: Reading) -> str:
    """Describe in one line how a table was understood.

    Examples
    --------
    >>> levels = (("m", "f"), ("young", "old"))
    >>> describe_reading(Reading("t.csv", ("Sex", "Age"), levels, "counts", 1234.0, "cross"))
    't.csv (cross): Sex (2) x Age (2), counts, 1,234 in all'
    """
    parts = zip(reading.names, reading.levels, strict=True)
    shape = " x ".join(f"{name} ({len(levels)})" for name, levels in parts)
    total = format_number(reading.total)
    return f"{reading.where} ({reading.form}): {shape}, {reading.kind}, {total} in all"
