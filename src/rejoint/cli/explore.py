"""``rejoint explore``: the explorer on this machine, for a model or for data."""

import webbrowser
from dataclasses import replace
from pathlib import Path

import click

from rejoint.cli.group import until_ctrl_c
from rejoint.cli.options import DataReader, data_options, seed_option
from rejoint.explorer.open import Opened, fit_data, is_model, open_demo, open_model
from rejoint.explorer.server import serve

EXAMPLES = """\b
Examples:
  rejoint explore --demo
  rejoint explore asia.rejoint
  rejoint explore asia.rejoint --data patients.csv
  rejoint explore patients.csv -o asia.rejoint"""


@click.command("explore", epilog=EXAMPLES)
@click.argument("source", metavar="MODEL|DATA", required=False)
@click.option("--demo", is_flag=True, help="A model of the Asia network, without any file.")
@click.option("--data", metavar="FILE", help="Records to count and step through beside a MODEL.")
@click.option("--rank", type=click.IntRange(min=1), help="Classes when DATA is fitted.")
@seed_option
@click.option("-o", "--output", metavar="FILE", help="Keep the model that is fitted.")
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="A free one by default.")
@click.option("--browser/--no-browser", default=True, help="Whether to open the page.")
@data_options
def command(
    source: str | None,
    demo: bool,
    data: str | None,
    rank: int | None,
    seed: int,
    output: str | None,
    port: int,
    browser: bool,
    reader: DataReader,
) -> None:
    """Open a model in the browser: click a value, watch every other answer move.

    DATA (CSV, TSV, Parquet, Arrow, JSON lines) is fitted first. The page is served to this machine
    only, at an address that holds a secret; Ctrl-C ends it.
    """
    opened = _opened(source, demo, data, rank, seed, output, reader)

    def ready(address: str) -> None:
        click.echo(address)
        if browser:
            webbrowser.open(address)

    keep = None if opened.path is None else opened.keep_names
    with until_ctrl_c():
        serve(opened.document(), port=port, keep=keep, ready=ready)


def _opened(
    source: str | None,
    demo: bool,
    data: str | None,
    rank: int | None,
    seed: int,
    output: str | None,
    reader: DataReader,
) -> Opened:
    """What the page shall show."""
    if demo:
        if source is not None or data is not None:
            raise click.UsageError("--demo goes without a MODEL and without DATA.")
        return open_demo(path=output)
    if source is None:
        raise click.UsageError("Name a MODEL or DATA, or try --demo.")
    if is_model(source):
        return opened_model(source, data, reader)
    if data is not None:
        raise click.UsageError("--data goes with a MODEL; DATA holds its records itself.")
    return _fitted(source, rank, seed, output, reader)


def opened_model(path: str, data: str | None, reader: DataReader) -> Opened:
    """A model, and the records to show with it if a file of them is named."""
    opened = open_model(path)
    return opened if data is None else replace(opened, records=reader.read(data, opened.pmf.domain))


def _fitted(
    source: str, rank: int | None, seed: int, output: str | None, reader: DataReader
) -> Opened:
    click.echo(f"Fitting {source} ...", err=True)
    return fit_data(
        reader.read(source),
        source=Path(source),
        rank="auto" if rank is None else rank,
        random_state=seed,
        path=output,
    )
