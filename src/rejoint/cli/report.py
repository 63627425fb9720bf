"""``rejoint report``: all about a model on one page."""

from pathlib import PurePath

import click

from rejoint import __version__
from rejoint.cli.html_report import page, sections
from rejoint.cli.inspect import fit_of
from rejoint.cli.options import DataReader, as_json, domain_options, load_with_notes, origin
from rejoint.cli.output import check_output, echo_json, open_output

EXAMPLES = """\b
Examples:
  rejoint report patients.rejoint -o report.html
  rejoint report patients.rejoint --data patients.csv --title "Patients" -o report.html"""


@click.command("report", epilog=EXAMPLES)
@click.argument("model", metavar="MODEL")
@click.option("--data", metavar="DATA", help="Records to show beside the model.")
@click.option("--tables", metavar="DIR", help="Tables to hold the model against.")
@click.option("--title", help="Of the page; the name of the file by default.")
@click.option("-o", "--output", metavar="FILE", default="report.html", show_default=True)
@as_json
@domain_options
def command(
    model: str,
    data: str | None,
    tables: str | None,
    title: str | None,
    output: str,
    as_json: bool,
    reader: DataReader,
) -> None:
    """Write a report: data, empty cells, rank and why, identifiability, fit, classes, dependence.

    One HTML file without scripts that fetches nothing. It has no records in it, only shares.
    """
    check_output(output, as_json)
    pmf, notes = load_with_notes(model)
    records = None if data is None else reader.read(data, pmf.domain)
    fit = fit_of(pmf, notes, records, tables)
    found = sections(pmf, notes, records, fit, PurePath(model).name)
    behind = origin(notes)
    lead = f"A joint model of {len(pmf.domain)} variables" + (
        f", from {behind}." if behind else "."
    )
    name = title or ("Model" if model == "-" else PurePath(model).stem)
    text = page(name, lead, found, f"Made by rejoint {__version__}.")
    with open_output(output) as file:
        file.write(text.encode())
    if as_json:
        echo_json({"report": output, "sections": [section.title for section in found]})
    elif output != "-":
        click.echo(f"Written: {output}.", err=True)
