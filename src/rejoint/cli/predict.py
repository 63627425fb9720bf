"""``rejoint predict``: a column from the others, row by row."""

from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from rejoint.cli import options
from rejoint.cli.group import echo
from rejoint.cli.options import DataReader, load_predictor, split_names
from rejoint.cli.output import to_plain, write_rows
from rejoint.cli.raw_table import read_raw
from rejoint.estimators.classifier.label_ensemble import LabelEnsemble
from rejoint.estimators.imputer.fill import level_probabilities
from rejoint.messages import remark
from rejoint.pmf.pmf import LowRankPMF
from rejoint.records.records import Records
from rejoint.text import plural

EXAMPLES = """\b
Examples:
  rejoint predict patients.rejoint patients.csv --target lung
  rejoint predict patients.rejoint patients.csv --target lung,bronc --all -o lung.csv
  rejoint predict patients.rejoint patients.csv --target lung --keep --json
  rejoint predict lung.rejoint patients.csv --explain"""


@click.command("predict", epilog=EXAMPLES)
@click.argument("model", metavar="MODEL")
@click.argument("data", metavar="DATA")
@click.option(
    "--target", metavar="NAME,...", help="Columns to predict; by default the targets of fit-target."
)
@click.option("--all", "every", is_flag=True, help="Also write the probability of every level.")
@click.option(
    "--explain", is_flag=True, help="Also write what each column contributes, in log-odds."
)
@click.option("--keep", is_flag=True, help="Also write the columns of DATA, first.")
@options.rows
@options.as_json
@options.of_domain
def command(
    model: str,
    data: str,
    target: str | None,
    every: bool,
    explain: bool,
    keep: bool,
    output: str | None,
    as_json: bool,
    reader: DataReader,
) -> None:
    """Predict a column of each row: its most probable level and the probability of it.

    The values of the column itself are not used. Where they exist, the share of correct predictions
    is reported on stderr. Empty cells are allowed everywhere. A file of `fit-target` predicts its
    targets from all columns but the targets, by the models that were trained for them, as
    JointClassifier.predict_proba does. The joint model predicts all other columns.

    With --explain, which needs such a file, each column has what it contributes to the log-odds of
    the label predicted, and `baseline` has the log-odds with all columns missing: together they are
    the log-odds of the prediction.
    """
    pmf, ensemble, notes = load_predictor(model)
    targets = split_names([target]) if target else notes.get("target") or []
    if not targets:
        raise click.UsageError("--target is missing: which column is to be predicted?")
    places = list(pmf.domain.indices(targets))
    raw = read_raw(data, reader, pmf.domain)
    assert raw.records is not None
    head, columns = ([*raw.names], [*raw.columns]) if keep else ([], [])
    for n in places:
        table = _label_shares(ensemble, raw.records, n)
        if table is None:
            table = level_probabilities(pmf, raw.records.codes, n)
        names, found = _answers(pmf, n, table, every)
        head += names
        columns += found
        if explain:
            names, found = _explained(ensemble, raw.records, n)
            head += names
            columns += found
        _judge(pmf, raw.records, n, table)
    write_rows(output, head, zip(*columns, strict=True), as_json=as_json)


def _label_shares(
    ensemble: LabelEnsemble | None, records: Records, n: int
) -> NDArray[np.float64] | None:
    """Probabilities by the models that were trained to predict a variable; None if none were."""
    if ensemble is None:
        return None
    first = len(ensemble.features)
    if n >= first:
        return ensemble.probabilities(records.codes[:, :first])[n - first]
    remark(
        f"{records.names[n]} is predicted by the joint model: the models of this file predict "
        f"{', '.join(ensemble.targets.names)}."
    )
    return None


def _explained(
    ensemble: LabelEnsemble | None, records: Records, n: int
) -> tuple[list[str], list[Any]]:
    """What each feature contributes to the label predicted."""
    name = records.names[n]
    if ensemble is None or name not in ensemble.targets:
        raise click.UsageError(
            f"--explain: {name} is not predicted by a model that was trained for it. "
            "Make one with `rejoint fit-target`."
        )
    features = ensemble.features.names
    reasons = ensemble.explain(records.codes[:, : len(features)], target=name)
    parts = [dict((c.feature, c.log_odds) for c in why.contributions) for why in reasons]
    columns = [[why.baseline for why in reasons]]
    columns += [[part.get(feature, 0.0) for part in parts] for feature in features]
    return [f"{name}_baseline", *(f"{name}_from_{feature}" for feature in features)], columns


def _answers(
    pmf: LowRankPMF, n: int, table: NDArray[np.float64], every: bool
) -> tuple[list[str], list[Any]]:
    variable = pmf.domain[n]
    levels = [to_plain(level) for level in variable.levels]
    best = table.argmax(axis=1) if len(table) else []
    names = [f"{variable.name}_predicted", f"{variable.name}_probability"]
    columns = [[levels[i] for i in best], table.max(axis=1, initial=0.0).tolist()]
    if every:
        names += [f"{variable.name}={level}" for level in levels]
        columns += table.T.tolist()
    return names, columns


def _judge(pmf: LowRankPMF, records: Records, n: int, table: NDArray[np.float64]) -> None:
    truth = records.codes[:, n]
    there = np.flatnonzero(truth >= 0)
    if not len(there):
        return
    right = float((table[there].argmax(axis=1) == truth[there]).mean())
    loss = -np.log(np.maximum(table[there, truth[there]], 1e-300)).mean()
    echo(
        f"{pmf.domain.names[n]}: {right:.1%} correct in {plural(len(there), 'row')} that have it, "
        f"log-loss {loss:.4f}.",
        err=True,
    )
