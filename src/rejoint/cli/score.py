"""``rejoint score``: how probable records are under a model."""

import click
import numpy as np

from rejoint.cli.group import echo
from rejoint.cli.options import Options, declare, load_predictor, option
from rejoint.cli.output import echo_json, write_rows
from rejoint.text import class_titles, plural


@declare(
    "MODEL DATA --output --spreadsheet --json +domain",
    option("--rows", "Write the log-probability of each row."),
    option("--classes", "Write the probability of each class for each row."),
)
def command(o: Options) -> None:
    """Score records: the mean logarithm of their probability; empty cells are summed out.

    Higher is better: compare models on records that neither was fitted to.

    Examples
    --------
      rejoint score patients.rejoint patients.csv
      rejoint score patients.rejoint patients.csv --rows -o rows.csv
      rejoint score patients.rejoint patients.csv --classes --json
    """
    pmf, _, notes = load_predictor(o.model)
    if o.output and not (o.rows or o.classes):
        raise click.UsageError("-o needs --rows or --classes; the score itself is printed.")
    records = o.read_records(o.data, pmf.domain)
    logs = pmf.log_prob(records)
    if o.rows or o.classes:
        names, columns = (["log_prob"], [logs.tolist()]) if o.rows else ([], [])
        if o.classes:
            names += class_titles(pmf.rank, notes.get("class_names"))
            columns += pmf.classes(records).T.round(6).tolist()
        write_rows(o.output, names, zip(*columns, strict=True), as_json=o.json)
        return
    weight = np.ones(len(records)) if records.sample_weight is None else records.sample_weight
    used = weight > 0
    finite = used & np.isfinite(logs)
    impossible = int(np.isneginf(logs[used]).sum())
    mean = float(np.average(logs[used], weights=weight[used])) if used.any() else float("nan")
    rest = float(np.average(logs[finite], weights=weight[finite])) if finite.any() else None
    if o.json:
        head = {"records": len(records), "mean_log_prob": mean}
        echo_json({**head, "impossible": impossible, "mean_of_possible": rest})
        return
    echo(f"{mean:.6g} log-probability per record (nats), {plural(len(records), 'record')}")
    if impossible:
        echo(
            f"Impossible under this model: {plural(impossible, 'record')}; of the others it is "
            f"{rest if rest is None else format(rest, '.6g')}."
        )
