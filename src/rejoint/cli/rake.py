"""``rejoint rake``: weights for a survey so that it meets given tables."""

from typing import Any

import click

from rejoint.cli.group import EXIT_FAR, echo
from rejoint.cli.options import Options, argument, declare, option, split_numbers
from rejoint.cli.output import write_rows
from rejoint.cli.raw_table import read_raw
from rejoint.population.rake import rake
from rejoint.records.records import Records
from rejoint.text import cite


@declare(
    "DATA --within --output --spreadsheet --json +domain +tables",
    argument("tables", "DIR|FILES..."),
    option("--bounds LOW,HIGH", "Smallest and largest weight, as multiples of the mean."),
    option("--total SUM", "Sum of the weights; by default that of the tables.", type=float),
    option("--name NAME", "Name of the column of weights.", default="weight"),
)
def command(o: Options) -> None:
    """Weight the rows of a survey so that its tables are those of the population.

    The rows are written as they are, with one more column. A row that lacks a variable of a table
    is not moved by it. --weight names the weights to start from.

    Examples
    --------
      rejoint rake patients.csv pairs -o weighted.csv
      rejoint rake patients.csv pairs --bounds 0.2,5 --name w -o weighted.csv
    """
    bounds, form = None, "LOW,HIGH, such as 0.2,5"
    if o.bounds is not None:
        bounds = tuple(split_numbers(f"--bounds {o.bounds}", o.bounds, form, float, 2))
    tables, _ = o.read_tables(*o.tables)
    raw = read_raw(o.data, o, tables.domain)
    assert raw.records is not None
    if o.name in raw.names and o.name != o.weight:
        raise ValueError(
            f"{o.data} already has a column {cite(o.name)}: choose another name with --name."
        )
    if absent := [name for name in tables.domain.names if name not in raw.names]:
        raise ValueError(
            f"The tables mention {', '.join(absent)}, but {o.data} has no such column."
        )
    start: Any = raw.values(o.weight) if o.weight else None
    survey = Records(tables.domain, raw.records.codes, start)
    raked = rake(survey, tables, bounds=bounds, total=o.total)
    columns = dict(zip(raw.names, raw.columns, strict=True))
    columns.pop(o.name, None)
    columns[o.name] = [float(f"{w:.10g}") for w in raked.weights]
    rows = zip(*columns.values(), strict=True)
    write_rows(o.output, list(columns), rows, as_json=o.json)
    echo(f"{raked.stop} Design effect {raked.design_effect:.3g}.", err=True)
    if o.within is not None and raked.residual > o.within:
        raise click.exceptions.Exit(EXIT_FAR)
