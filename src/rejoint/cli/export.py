"""``rejoint export``: the explorer as one file, or the model in the open format."""

from dataclasses import replace
from pathlib import Path

import click

from rejoint import io
from rejoint.cli.group import echo
from rejoint.cli.options import Options, declare, option
from rejoint.cli.output import echo_json
from rejoint.explorer.open import open_model
from rejoint.explorer.page import write_page


@declare(
    "MODEL --data --json +survey",
    option(
        "-o --output FILE",
        "page.html for the explorer, model.json for the open format.",
        required=True,
    ),
)
def command(o: Options) -> None:
    """Write the explorer of a model as one page that works offline, or the model as JSON.

    The page holds the model, not the records it was fitted to, unless --data names them.

    Examples
    --------
      rejoint export asia.rejoint -o asia.html
      rejoint export asia.rejoint -o asia.html --data patients.csv
      rejoint export asia.rejoint -o asia.json
    """
    suffix = Path(o.output).suffix.lower()
    if suffix not in (".html", ".htm", ".json"):
        raise click.UsageError(f"'{o.output}' should end in .html (the page) or .json (the model).")
    opened = open_model(o.model)
    if o.data is not None:
        opened = replace(opened, records=o.read_records(o.data, opened.pmf.domain))
    if suffix == ".json":
        io.write_model(o.output, io.read_saved(o.model))
    else:
        write_page(o.output, opened.document())
    if o.json:
        echo_json({"file": o.output})
    else:
        echo(o.output)
