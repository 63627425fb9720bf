"""``rejoint export``: the explorer as one file, or the model in the open format."""

from pathlib import Path

import click

from rejoint.cli.explore import FILE

EXAMPLES = """\b
Examples:
  rejoint export asia.rejoint -o asia.html
  rejoint export asia.rejoint -o asia.html --data patients.csv
  rejoint export asia.rejoint -o asia.json"""


@click.command("export", epilog=EXAMPLES)
@click.argument("model", metavar="MODEL", type=FILE)
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="page.html for the explorer, model.json for the open format.",
)
@click.option("--data", type=FILE, help="Records to count and step through; they go into the page.")
def command(model: Path, output: Path, data: Path | None) -> None:
    """Write the explorer of a model as one page that works offline, or the model as JSON.

    The page holds the model, not the records it was fitted to, unless --data names them.
    """
    from rejoint.explorer import write_page
    from rejoint.explorer.opening import open_model

    suffix = output.suffix.lower()
    if suffix not in (".html", ".htm", ".json"):
        raise click.UsageError(f"'{output}' should end in .html (the page) or .json (the model).")
    try:
        opened = open_model(model, data)
        if suffix == ".json":
            opened.pmf.save(output, notes=opened.notes)
        else:
            write_page(output, opened.document())
    except (ValueError, OSError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(str(output))
