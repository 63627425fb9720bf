"""``rejoint fit-target``: from records to a model file that predicts some of their columns."""

from typing import Any

import click

from rejoint.cli import options
from rejoint.cli.group import keep_best
from rejoint.cli.options import DataReader, source_name, split_names
from rejoint.cli.output import check_output, end_fit, show_columns
from rejoint.estimators.classifier.classifier_policy import DEFAULT_CLASSIFIER_POLICY
from rejoint.estimators.classifier.label_ensemble import LabelEnsemble
from rejoint.explorer.document import pair_fit
from rejoint.io.fit_notes import fit_notes
from rejoint.records.frames import Frame
from rejoint.records.records import Records
from rejoint.solver.result import FitResult
from rejoint.text import cite, nearest, show

EXAMPLES = """\b
Examples:
  rejoint fit-target patients.csv --target lung -o lung.rejoint
  rejoint fit-target patients.csv --target lung,bronc -o both.rejoint --rank 8
  rejoint predict lung.rejoint patients.csv --all
  rejoint ask lung.rejoint "P(lung | smoke = yes, xray)" """


@click.command("fit-target", epilog=EXAMPLES)
@click.argument("data", metavar="DATA")
@click.option(
    "--target", metavar="NAME,...", required=True, help="The column to predict, or several."
)
@options.model
@options.rank
@options.solver
@options.draws
@options.smooth
@options.seed
@options.as_json
@options.of_data
def command(
    data: str,
    target: str,
    output: str,
    rank: int | None,
    solver: str,
    draws: bool,
    smooth: bool | None,
    seed: int,
    as_json: bool,
    reader: DataReader,
) -> None:
    """Learn to predict a column from the others, which may have missing values.

    Models are trained to predict the column, and averaged with weights by held-out labels. The file
    has all of them, and a joint model of all columns. `predict` uses the average, `ask` the joint.
    Columns of many distinct numbers are cut into 3 sqrt(n) quantile bins for n records, at most
    192, unless --bins says otherwise. Ctrl-C ends the fit and keeps what has been trained so far
    (exit code 3).
    """
    check_output(output, as_json)
    names = split_names([target])
    records = _read(data, reader, names, solver)
    show_columns(records, data)
    asked: dict[str, Any] = {"rank": rank or "auto", "solver": solver, "random_state": seed}
    asked["smooth"] = "auto" if smooth is None else smooth
    ensemble, result = _fit(records, names, asked)
    notes = fit_notes(
        result,
        records=records,
        source=source_name(data),
        seed=seed,
        target=names,
        fit=pair_fit(result.pmf, records),
    )
    how: dict[str, Any] = {"draws": draws, "as_json": as_json, "ensemble": ensemble}
    end_fit(output, result.pmf, result, notes, **how)


def _read(data: str, reader: DataReader, names: list[str], solver: str) -> Records:
    """Return features and labels as JointClassifier reads them from a frame."""
    # scikit-learn takes a second to import, which other commands need not wait for.
    from rejoint.estimators.classifier import features as classifier_input

    frame, weights = reader.frame(data), reader.weights()
    known = frame.names or ()
    declared = reader.column_options()
    for name in names:
        if name not in known:
            raise ValueError(
                f"--target: there is no column {cite(name)}; the columns are {show(known)}."
                f"{nearest(name, known)}"
            )
    classifier_input.check_target_undeclared(names, *declared.values())
    rest = [name for name in known if name not in names]
    if not set(rest) - set(weights.columns):
        raise ValueError("--target: no column is left to predict from.")
    table, labels = (
        Frame(tuple(part), [frame.columns[known.index(name)] for name in part], frame.rows)
        for part in (rest, names)
    )
    policy = DEFAULT_CLASSIFIER_POLICY if solver == "auto" else None
    features, used = classifier_input.make_records(table, weights, policy=policy, **declared)
    targets = classifier_input.read_targets(labels, features.names, used)
    return classifier_input.join(features, targets)


def _fit(
    records: Records, names: list[str], asked: dict[str, Any]
) -> tuple[LabelEnsemble | None, FitResult]:
    """Return the models and the fit; after Ctrl-C what there is of them, or the joint alone."""
    # As above.
    from rejoint.estimators.classifier.joint_classifier import JointClassifier

    classifier = JointClassifier(**asked)
    result = keep_best(lambda: classifier.fit(records, names).result_)
    return getattr(classifier, "ensemble_", None), result
