"""``rejoint score``: how probable records are under a model."""

from typing import Any

import click
import numpy as np

from rejoint.cli import options
from rejoint.cli.group import echo
from rejoint.cli.options import DataReader, load_with_notes
from rejoint.cli.output import echo_json, write_rows
from rejoint.text import class_titles, plural

EXAMPLES = """\b
Examples:
  rejoint score patients.rejoint patients.csv
  rejoint score patients.rejoint patients.csv --rows -o rows.csv
  rejoint score patients.rejoint patients.csv --classes --json"""


@click.command("score", epilog=EXAMPLES)
@click.argument("model", metavar="MODEL")
@click.argument("data", metavar="DATA")
@click.option("--rows", is_flag=True, help="Write the log-probability of each row.")
@click.option("--classes", is_flag=True, help="Write the probability of each class for each row.")
@options.rows_to("Output file of --rows and --classes; its name sets the format.")
@options.as_json
@options.of_domain
def command(
    model: str,
    data: str,
    rows: bool,
    classes: bool,
    output: str | None,
    as_json: bool,
    reader: DataReader,
) -> None:
    """Score records: the mean logarithm of their probability; empty cells are summed out.

    Higher is better: compare models on records that neither was fitted to.
    """
    pmf, notes = load_with_notes(model)
    if output and not (rows or classes):
        raise click.UsageError("-o needs --rows or --classes; the score itself is printed.")
    records = reader.read(data, pmf.domain)
    logs = pmf.log_prob(records)
    if rows or classes:
        names: list[str] = []
        columns: list[Any] = []
        if rows:
            names, columns = ["log_prob"], [logs.tolist()]
        if classes:
            names += class_titles(pmf.rank, notes.get("class_names"))
            columns += pmf.classes(records).T.round(6).tolist()
        write_rows(output, names, zip(*columns, strict=True), as_json=as_json)
        return
    weight = np.ones(len(records)) if records.sample_weight is None else records.sample_weight
    used = weight > 0
    impossible = int(np.isneginf(logs[used]).sum())
    mean = float(np.average(logs[used], weights=weight[used])) if used.any() else float("nan")
    finite = used & np.isfinite(logs)
    rest = float(np.average(logs[finite], weights=weight[finite])) if finite.any() else None
    if as_json:
        echo_json(
            {
                "records": len(records),
                "mean_log_prob": mean,
                "impossible": impossible,
                "mean_of_possible": rest,
            }
        )
        return
    echo(f"{mean:.6g} log-probability per record (nats), {plural(len(records), 'record')}")
    if impossible:
        echo(
            f"Impossible under this model: {plural(impossible, 'record')}; of the others it is "
            f"{rest if rest is None else format(rest, '.6g')}."
        )
