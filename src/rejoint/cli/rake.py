"""``rejoint rake``: weights for a survey so that it meets given tables."""

from typing import Any

import click

from rejoint.cli import options
from rejoint.cli.group import EXIT_FAR, echo
from rejoint.cli.options import DataReader, TableReader, split_names
from rejoint.cli.output import write_rows
from rejoint.cli.raw_table import read_raw
from rejoint.population.rake import rake
from rejoint.records.records import Records
from rejoint.text import cite

EXAMPLES = """\b
Examples:
  rejoint rake patients.csv pairs -o weighted.csv
  rejoint rake patients.csv pairs --bounds 0.2,5 --name w -o weighted.csv"""


@click.command("rake", epilog=EXAMPLES)
@click.argument("data", metavar="DATA")
@click.argument("tables", metavar="DIR|FILES...", nargs=-1, required=True)
@click.option(
    "--bounds", metavar="LOW,HIGH", help="Smallest and largest weight, as multiples of the mean."
)
@click.option("--total", type=float, help="Sum of the weights; by default that of the tables.")
@click.option("--name", default="weight", show_default=True, help="Name of the column of weights.")
@options.within("Exit with code 4 if a table is missed by more.")
@options.rows
@options.as_json
@options.of_tables
@options.of_domain
def command(
    data: str,
    tables: tuple[str, ...],
    bounds: str | None,
    total: float | None,
    name: str,
    within: float | None,
    output: str | None,
    as_json: bool,
    reader: DataReader,
    table_reader: TableReader,
) -> None:
    """Weight the rows of a survey so that its tables are those of the population.

    The rows are written as they are, with one more column. A row that lacks a variable of a table
    is not moved by it. --weight names the weights to start from.
    """
    limits = None
    if bounds is not None:
        try:
            low, high = (float(part) for part in split_names([bounds]))
        except ValueError:
            raise click.UsageError(f"--bounds {bounds}: write LOW,HIGH, such as 0.2,5.") from None
        limits = (low, high)
    known = table_reader.read(*tables)
    raw = read_raw(data, reader, known.domain)
    assert raw.records is not None
    if name in raw.names and name != reader.weight:
        raise ValueError(
            f"{data} already has a column {cite(name)}: choose another name with --name."
        )
    start: Any = raw.values(reader.weight) if reader.weight else None
    survey = Records(known.domain, raw.records.codes, start)
    absent = [variable for variable in known.domain.names if variable not in raw.names]
    if absent:
        raise ValueError(f"The tables mention {', '.join(absent)}, but {data} has no such column.")
    found = rake(survey, known, bounds=limits, total=total)
    kept = [at for at, column in enumerate(raw.names) if column != name]
    names = [*(raw.names[at] for at in kept), name]
    columns = [*(raw.columns[at] for at in kept), [float(f"{w:.10g}") for w in found.weights]]
    write_rows(output, names, zip(*columns, strict=True), as_json=as_json)
    echo(f"{found.stop} Design effect {found.design_effect:.3g}.", err=True)
    if within is not None and found.residual > within:
        raise click.exceptions.Exit(EXIT_FAR)
