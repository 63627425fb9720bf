"""``rejoint explore``: the explorer on this machine, for a model or for data."""

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rejoint.explorer.opening import Opened

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


EXAMPLES = """\b
Examples:
  rejoint explore asia.rejoint
  rejoint explore asia.rejoint --data patients.csv
  rejoint explore patients.csv -o asia.rejoint"""


@click.command("explore", epilog=EXAMPLES)
@click.argument("source", metavar="MODEL|DATA", type=FILE)
@click.option("--data", type=FILE, help="Records to count and step through beside a MODEL.")
@click.option("--rank", type=int, help="Number of classes when DATA is fitted; chosen without it.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the fit.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to save the model that DATA is fitted with.",
)
@click.option("--port", type=int, default=0, help="Port; a free one by default.")
@click.option("--browser/--no-browser", default=True, help="Whether to open the page.")
def command(
    source: Path,
    data: Path | None,
    rank: int | None,
    seed: int,
    output: Path | None,
    port: int,
    browser: bool,
) -> None:
    """Open a model in the browser: click a value, watch every other answer move.

    DATA (CSV, TSV, Parquet, Arrow, JSON lines) is fitted first. The page is served to this machine
    only, at an address that holds a secret; Ctrl-C ends it.
    """
    from rejoint.explorer import serve

    opened = opened_source(source, data, rank, seed, output)

    def ready(address: str) -> None:
        click.echo(address)
        if browser:
            webbrowser.open(address)

    keep = None if opened.path is None else opened.keep_names
    try:
        serve(opened.document(), port=port, keep=keep, ready=ready)
    except (ImportError, OSError) as error:
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt:
        click.echo("Ended.", err=True)


def opened_source(
    source: Path, data: Path | None, rank: int | None, seed: int, output: Path | None
) -> "Opened":
    """The model that a file holds, or that its data are fitted with."""
    from rejoint.explorer.opening import fit_data, is_model, open_model
    from rejoint.records import read

    try:
        if is_model(source):
            return open_model(source, data)
        if data is not None:
            raise click.UsageError("--data goes with a MODEL; DATA holds its records itself.")
        click.echo(f"Fitting {source} ...", err=True)
        return fit_data(
            read(source),
            title=source.stem,
            rank="auto" if rank is None else rank,
            random_state=seed,
            path=output,
        )
    except (ValueError, OSError) as error:
        raise click.ClickException(str(error)) from error
