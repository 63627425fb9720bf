"""``rejoint export``: the explorer as one file, or the model in the open format."""

from dataclasses import replace
from pathlib import Path

import click

from rejoint import io
from rejoint.cli import options
from rejoint.cli.group import echo
from rejoint.cli.options import DataReader
from rejoint.cli.output import echo_json
from rejoint.explorer.open import open_model
from rejoint.explorer.page import write_page

EXAMPLES = """\b
Examples:
  rejoint export asia.rejoint -o asia.html
  rejoint export asia.rejoint -o asia.html --data patients.csv
  rejoint export asia.rejoint -o asia.json"""


@click.command("export", epilog=EXAMPLES)
@click.argument("model", metavar="MODEL")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    required=True,
    help="page.html for the explorer, model.json for the open format.",
)
@click.option("--data", metavar="FILE", help="Records to count and step through, in the page.")
@options.as_json
@options.of_survey
def command(model: str, output: str, data: str | None, as_json: bool, reader: DataReader) -> None:
    """Write the explorer of a model as one page that works offline, or the model as JSON.

    The page holds the model, not the records it was fitted to, unless --data names them.
    """
    suffix = Path(output).suffix.lower()
    if suffix not in (".html", ".htm", ".json"):
        raise click.UsageError(f"'{output}' should end in .html (the page) or .json (the model).")
    opened = open_model(model)
    if data is not None:
        opened = replace(opened, records=reader.read(data, opened.pmf.domain))
    if suffix == ".json":
        io.write_model(output, io.read_saved(model))
    else:
        write_page(output, opened.document())
    if as_json:
        echo_json({"file": output})
    else:
        echo(output)
