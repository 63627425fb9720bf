"""``rejoint check-tables``: how published tables are understood, before anything is fitted."""

from collections.abc import Sequence
from dataclasses import asdict

import click

from rejoint.cli import options
from rejoint.cli.group import echo
from rejoint.cli.options import TableReader
from rejoint.cli.output import echo_json, show_table
from rejoint.marginals.compare import Disagreement
from rejoint.marginals.marginals import Marginals
from rejoint.marginals.publication import Reading
from rejoint.marginals.sheet import list_files
from rejoint.text import clean_label, format_number, plural

EXAMPLES = """\b
Examples:
  rejoint check-tables published
  rejoint check-tables published --suppressed 'x=1..4'
  rejoint check-tables smoke-lung.csv smoke-bronc.csv --same 'bronc=bronchitis'"""


@click.command("check-tables", epilog=EXAMPLES)
@click.argument("tables", metavar="DIR|FILES...", nargs=-1, required=True)
@options.as_json
@options.of_tables
def command(tables: tuple[str, ...], as_json: bool, table_reader: TableReader) -> None:
    """Show how each file of tables is understood: variables, levels, kind, totals, marks.

    It also shows what was left out, what is the same under two names, and which tables disagree. If
    the files cannot be read together, each one is shown by itself, and the error gives the reason.
    Nothing is fitted.
    """
    try:
        known, readings = table_reader.read_with_readings(*tables)
    except ValueError:
        if not as_json:
            _show_each(tables, table_reader)
        raise
    _show(known, readings, as_json)


def _show_each(paths: Sequence[str], table_reader: TableReader) -> None:
    """Show the files that can be read by themselves."""
    sources = list_files(paths)
    for source in sources if len(sources) > 1 else ():
        try:
            _, readings = table_reader.read_with_readings(str(source.path))
        except (ValueError, OSError):
            continue
        for reading in readings:
            _describe(reading)


def _show(known: Marginals, readings: Sequence[Reading], as_json: bool) -> None:
    strife = list_disagreements(known)
    if as_json:
        echo_json(
            {
                "tables": [asdict(reading) for reading in readings],
                "variables": {v.name: v.levels for v in known.domain},
                "disagreements": [d._asdict() for d in strife],
            }
        )
        return
    for reading in readings:
        _describe(reading)
    echo(f"Together: {known!r}.")
    rows = [
        (v.name, ", ".join(clean_label(level, 20) for level in v.levels), len(v))
        for v in known.domain
    ]
    show_table(("variable", "levels", "number"), rows, left=2)
    show_disagreements(strife)


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
    proof = {"sizes": "nothing but their sizes: no total, no word such as 'Number'"}
    details = {
        "shown by": proof.get(reading.proof, ""),
        "totals": ", ".join(reading.totals),
        "not given": ", ".join(f"{m} ({plural(n, 'cell')})" for m, n in reading.marks.items()),
        "flags": ", ".join(f"{f} ({plural(n, 'cell')})" for f, n in reading.flags.items()),
        "left out": "; ".join(reading.skipped),
        "notes": " | ".join(clean_label(note, 70) for note in reading.notes[:3]),
    }
    for name, text in details.items():
        if text:
            echo(f"    {name + ':':<11}{text}")


def describe_reading(reading: Reading) -> str:
    """Describe in one line how a table was understood.

    Examples
    --------
    >>> levels = (("m", "f"), ("young", "old"))
    >>> describe_reading(Reading("t.csv", ("Sex", "Age"), levels, "counts", 1234.0))
    't.csv: Sex (2) x Age (2), counts, 1,234 in all'
    """
    parts = zip(reading.names, reading.levels, strict=True)
    shape = " x ".join(f"{name} ({len(levels)})" for name, levels in parts)
    return f"{reading.where}: {shape}, {reading.kind}, {format_number(reading.total)} in all"
