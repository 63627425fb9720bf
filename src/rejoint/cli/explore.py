"""``rejoint explore``: the explorer on this machine, for a model or for data."""

import webbrowser
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from rejoint.cli import options
from rejoint.cli.group import echo, until_ctrl_c
from rejoint.cli.options import DataReader
from rejoint.explorer.open import fit_data, is_model, open_demo, open_model
from rejoint.explorer.server import serve
from rejoint.pmf.counts import Counts

EXAMPLES = """\b
Examples:
  rejoint explore --demo
  rejoint explore asia.rejoint
  rejoint explore asia.rejoint --data patients.csv
  rejoint explore patients.csv -o asia.rejoint"""


@click.command("explore", epilog=EXAMPLES)
@click.argument("source", metavar="MODEL|DATA", required=False)
@click.option("--demo", is_flag=True, help="Use a model of the Asia network; no file is needed.")
@click.option("--data", metavar="FILE", help="Records to count and step through, for a MODEL.")
@click.option("--rank", type=click.IntRange(min=1), help="Number of classes when DATA is fitted.")
@options.smooth
@options.agreement
@options.seed
@click.option("-o", "--output", metavar="FILE", help="Save the fitted model to this file.")
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=0, help="Port; a free one by default."
)
@click.option(
    "--browser/--no-browser", default=True, help="Whether to open the page in the browser."
)
@options.of_data
def command(
    source: str | None,
    demo: bool,
    data: str | None,
    rank: int | None,
    smooth: bool | None,
    agreement: bool,
    seed: int,
    output: str | None,
    port: int,
    browser: bool,
    reader: DataReader,
) -> None:
    """Open a model in the browser: click a value and see every other answer change.

    DATA (CSV, TSV, Parquet, Arrow, JSON lines) is fitted first. The page is served to this machine
    only, at an address that holds a secret; Ctrl-C ends it.
    """
    if demo:
        if source is not None or data is not None:
            raise click.UsageError("--demo cannot be combined with a MODEL or DATA.")
        opened = open_demo(path=output)
    elif source is None:
        raise click.UsageError("Give a MODEL or DATA, or try --demo.")
    elif is_model(source):
        opened = open_model(source)
        if data is not None:
            records = reader.read(data, opened.pmf.domain)
            pmf = opened.pmf.with_counts(Counts.of(records))
            opened = replace(opened, pmf=pmf, records=records)
    elif data is not None:
        raise click.UsageError("--data needs a MODEL; DATA already contains its records.")
    else:
        echo(f"Fitting {source} ...", err=True)
        asked: dict[str, Any] = {"rank": rank or "auto", "random_state": seed}
        asked |= {"smooth": "auto" if smooth is None else smooth, "agreement": agreement}
        opened = fit_data(reader.read(source), source=Path(source), path=output, **asked)

    def ready(address: str) -> None:
        echo(address)
        if browser:
            webbrowser.open(address)

    keep = None if opened.path is None else opened.keep_names
    bound = None if opened.pmf.tables is None else opened.bound_bars
    count = None if opened.pmf.counts is None else opened.count
    with until_ctrl_c():
        how: dict[str, Any] = {"keep": keep, "bound": bound, "count": count}
        serve(opened.document(), port=port, ready=ready, **how)
