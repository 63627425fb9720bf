"""``rejoint fit-target``: from records to a model file that predicts some of their columns."""

from typing import Any

from rejoint.cli.group import keep_best
from rejoint.cli.options import Options, declare, option, source_name, split_names
from rejoint.cli.output import check_output, end_fit, model_option, show_columns
from rejoint.estimators.classifier.classifier_policy import DEFAULT_CLASSIFIER_POLICY
from rejoint.estimators.classifier.label_ensemble import LabelEnsemble
from rejoint.explorer.document import pair_fit
from rejoint.io.fit_notes import fit_notes
from rejoint.records.frames import Frame
from rejoint.records.records import Records
from rejoint.solver.result import FitResult
from rejoint.text import cite, nearest, show


@declare(
    "DATA --rank --solver --draws --smooth --seed --json +data",
    option("--target NAME,...", "The column to predict, or several.", required=True),
    model_option,
)
def command(o: Options) -> None:
    """Learn to predict a column from the others, which may have missing values.

    Models are trained to predict the column, and averaged with weights by held-out labels. The file
    has all of them, and a joint model of all columns. `predict` uses the average, `ask` the joint.
    Columns of many distinct numbers are cut into 3 sqrt(n) quantile bins for n records, at most
    192, unless --bins says otherwise. Ctrl-C ends the fit and keeps what has been trained so far
    (exit code 3).

    Examples
    --------
      rejoint fit-target patients.csv --target lung -o lung.rejoint
      rejoint fit-target patients.csv --target lung,bronc -o both.rejoint --rank 8
      rejoint predict lung.rejoint patients.csv --all
      rejoint ask lung.rejoint "P(lung | smoke = yes, xray)"
    """
    check_output(o.output, o.json)
    names = split_names([o.target])
    records = _read(o, names)
    show_columns(records, o.data)
    ensemble, result = _fit(records, names, o.asked("rank", "solver", "smooth"))
    notes = fit_notes(
        result,
        records=records,
        source=source_name(o.data),
        seed=o.seed,
        target=names,
        fit=pair_fit(result.pmf, records),
    )
    how: dict[str, Any] = {"draws": o.draws, "as_json": o.json, "ensemble": ensemble}
    end_fit(o.output, result.pmf, result, notes, **how)


def _read(o: Options, names: list[str]) -> Records:
    """Return features and labels as JointClassifier reads them from a frame."""
    # scikit-learn takes a second to import, which other commands need not wait for.
    from rejoint.estimators.classifier import features as classifier_input

    frame, weights, declared = o.read_frame(o.data), o.weights(), o.column_options()
    columns = dict(zip(frame.names or (), frame.columns, strict=True))
    for name in names:
        if name not in columns:
            raise ValueError(
                f"--target: there is no column {cite(name)}; the columns are "
                f"{show(tuple(columns))}.{nearest(name, tuple(columns))}"
            )
    classifier_input.check_target_undeclared(names, *declared.values())
    rest = [name for name in columns if name not in names]
    if not set(rest) - set(weights.columns):
        raise ValueError("--target: no column is left to predict from.")
    table, labels = (
        Frame(tuple(part), [columns[name] for name in part], frame.rows) for part in (rest, names)
    )
    policy = DEFAULT_CLASSIFIER_POLICY if o.solver == "auto" else None
    features, used = classifier_input.make_records(table, weights, policy=policy, **declared)
    return classifier_input.join(
        features, classifier_input.read_targets(labels, features.names, used)
    )


def _fit(
    records: Records, names: list[str], asked: dict[str, Any]
) -> tuple[LabelEnsemble | None, FitResult]:
    """Return the models and the fit; after Ctrl-C what there is of them, or the joint alone."""
    # As above.
    from rejoint.estimators.classifier.joint_classifier import JointClassifier

    classifier = JointClassifier(**asked)
    result = keep_best(lambda: classifier.fit(records, names).result_)
    return getattr(classifier, "ensemble_", None), result
