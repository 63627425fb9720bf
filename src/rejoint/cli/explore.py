"""``rejoint explore``: the explorer on this machine, for a model or for data."""

import webbrowser
from dataclasses import replace
from pathlib import Path

import click

from rejoint.cli.group import echo, until_ctrl_c
from rejoint.cli.options import Options, argument, declare, option
from rejoint.explorer.open import fit_data, is_model, open_demo, open_model
from rejoint.explorer.server import serve
from rejoint.pmf.counts import Counts


@declare(
    "--data --rank --smooth --agreement --seed +data",
    argument("source", "[MODEL|DATA]"),
    option("--demo", "Use a model of the Asia network; no file is needed."),
    option("-o --output FILE", "Save the fitted model to this file."),
    option("--port N", "Port; a free one by default.", type=click.IntRange(0, 65_535), default=0),
    option("--browser/--no-browser", "Whether to open the page in the browser.", default=True),
)
def command(o: Options) -> None:
    """Open a model in the browser: click a value and see every other answer change.

    DATA (CSV, TSV, Parquet, Arrow, JSON lines) is fitted first. The page is served to this machine
    only, at an address that holds a secret; Ctrl-C ends it.

    Examples
    --------
      rejoint explore --demo
      rejoint explore asia.rejoint
      rejoint explore asia.rejoint --data patients.csv
      rejoint explore patients.csv -o asia.rejoint
    """
    if o.demo:
        if o.source is not None or o.data is not None:
            raise click.UsageError("--demo cannot be combined with a MODEL or DATA.")
        opened = open_demo(path=o.output)
    elif o.source is None:
        raise click.UsageError("Give a MODEL or DATA, or try --demo.")
    elif is_model(o.source):
        opened = open_model(o.source)
        if o.data is not None:
            records = o.read_records(o.data, opened.pmf.domain)
            pmf = opened.pmf.with_counts(Counts.of(records))
            opened = replace(opened, pmf=pmf, records=records)
    elif o.data is not None:
        raise click.UsageError("--data needs a MODEL; DATA already contains its records.")
    else:
        echo(f"Fitting {o.source} ...", err=True)
        asked = o.asked("rank", "smooth", "agreement")
        records, source = o.read_records(o.source), Path(o.source)
        opened = fit_data(records, source=source, path=o.output, **asked)

    def ready(address: str) -> None:
        echo(address)
        if o.browser:
            webbrowser.open(address)

    with until_ctrl_c():
        serve(
            opened.document(),
            port=o.port,
            ready=ready,
            keep=None if opened.path is None else opened.keep_names,
            bound=None if opened.pmf.tables is None else opened.bound_bars,
            count=None if opened.pmf.counts is None else opened.count,
        )
