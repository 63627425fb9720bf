"""``rejoint predict``: a column from the others, row by row."""

from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from rejoint.cli.group import echo
from rejoint.cli.options import Options, declare, load_predictor, option, split_names
from rejoint.cli.output import to_plain, write_rows
from rejoint.cli.raw_table import read_raw
from rejoint.domain.variable import Variable
from rejoint.estimators.classifier.label_ensemble import LabelEnsemble
from rejoint.estimators.imputer.fill import level_probabilities
from rejoint.messages import remark
from rejoint.records.records import Records
from rejoint.text import plural

Columns = dict[str, list[Any]]


@declare(
    "MODEL DATA --output --spreadsheet --json +domain",
    option("--target NAME,...", "Columns to predict; by default the targets of fit-target."),
    option("--all", "Also write the probability of every level."),
    option("--explain", "Also write what each column contributes, in log-odds."),
    option("--keep", "Also write the columns of DATA, first."),
)
def command(o: Options) -> None:
    """Predict a column of each row: its most probable level and the probability of it.

    The values of the column itself are not used. Where they exist, the share of correct predictions
    is reported on stderr. Empty cells are allowed everywhere. A file of `fit-target` predicts its
    targets from all columns but the targets, by the models that were trained for them, as
    JointClassifier.predict_proba does. The joint model predicts all other columns.

    With --explain, which needs such a file, each column has what it contributes to the log-odds of
    the label predicted, and `baseline` has the log-odds with all columns missing: together they are
    the log-odds of the prediction.

    Examples
    --------
      rejoint predict patients.rejoint patients.csv --target lung
      rejoint predict patients.rejoint patients.csv --target lung,bronc --all -o lung.csv
      rejoint predict patients.rejoint patients.csv --target lung --keep --json
      rejoint predict lung.rejoint patients.csv --explain
    """
    pmf, ensemble, notes = load_predictor(o.model)
    targets = split_names([o.target]) if o.target else notes.get("target") or []
    if not targets:
        raise click.UsageError("--target is missing: which column is to be predicted?")
    places = list(pmf.domain.indices(targets))
    raw = read_raw(o.data, o, pmf.domain)
    assert raw.records is not None
    head, columns = ([*raw.names], [*raw.columns]) if o.keep else ([], [])
    for n in places:
        table = _label_shares(ensemble, raw.records, n)
        if table is None:
            table = level_probabilities(pmf, raw.records.codes, n)
        made = _predictions(pmf.domain[n], table, o.all)
        if o.explain:
            made |= _explanations(ensemble, raw.records, n)
        head += made
        columns += made.values()
        _report_accuracy(raw.records, n, table, notes.get("source") == o.data)
    write_rows(o.output, head, zip(*columns, strict=True), as_json=o.json)


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


def _explanations(ensemble: LabelEnsemble | None, records: Records, n: int) -> Columns:
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
    made: Columns = {f"{name}_baseline": [why.baseline for why in reasons]}
    return made | {f"{name}_from_{f}": [part.get(f, 0.0) for part in parts] for f in features}


def _predictions(variable: Variable, table: NDArray[np.float64], every: bool) -> Columns:
    levels = [to_plain(level) for level in variable.levels]
    best = table.argmax(axis=1) if len(table) else []
    made: Columns = {
        f"{variable.name}_predicted": [levels[i] for i in best],
        f"{variable.name}_probability": table.max(axis=1, initial=0.0).tolist(),
    }
    shares = zip(levels, table.T.tolist(), strict=True) if every else ()
    return made | {f"{variable.name}={level}": share for level, share in shares}


def _report_accuracy(records: Records, n: int, table: NDArray[np.float64], is_fitted: bool) -> None:
    truth = records.codes[:, n]
    there = np.flatnonzero(truth >= 0)
    if not len(there):
        return
    right = float((table[there].argmax(axis=1) == truth[there]).mean())
    loss = -np.log(np.maximum(table[there, truth[there]], 1e-300)).mean()
    echo(
        f"{records.names[n]}: {right:.1%} correct in {plural(len(there), 'row')} that have it, "
        f"log-loss {loss:.4f}{'; the model was fitted to them' if is_fitted else ''}.",
        err=True,
    )
