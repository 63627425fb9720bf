"""Read features and labels as users of scikit-learn pass them into codes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from rejoint.arrays import FloatArray
from rejoint.domain.columns import Coded, read_column
from rejoint.domain.domain import Domain
from rejoint.domain.labels import Bin
from rejoint.domain.variable import Variable
from rejoint.estimators.classifier.classifier_policy import ClassifierPolicy
from rejoint.estimators.sklearn_input import (
    DECLARED,
    check_columns,
    drop_weightless,
    weights_of,
)
from rejoint.records.frames import Frame, refuse_non_table, take_apart
from rejoint.records.infer import ColumnRule
from rejoint.records.records import Records, drop_columns
from rejoint.records.survey_design import NO_WEIGHTS, WeightArguments
from rejoint.text import cite, nearest, plural, show


class Targets(NamedTuple):
    """Targets to predict: their variables and classes, and codes with -1 where missing."""

    variables: tuple[Variable, ...]
    classes: tuple[NDArray[Any], ...]
    codes: NDArray[np.int32]


def read_records(
    estimator: Any, X: Any, y: Any, weights: WeightArguments, policy: ClassifierPolicy
) -> tuple[Records, Targets]:
    """Return features and labels of the rows that have weight, and the targets."""
    X, y = split_targets(X, y)
    if y is None:
        raise ValueError(
            "JointClassifier requires y to be passed, but the target y is None: give the labels "
            "of the rows, None or NaN where one is not known."
        )
    declared = {name: getattr(estimator, name) for name in DECLARED}
    check_target_undeclared(take_targets(y)[0], *declared.values())
    refuse_non_table(X)
    X = check_columns(estimator, X, reset=True)
    weights.check_arrays("X has the columns of the features alone;")
    bins = policy if estimator.solver == "auto" else None
    named = hasattr(estimator, "feature_names_in_")
    features, used = make_records(X, weights, policy=bins, named=named, **declared)
    targets = read_targets(y, features.names, used)
    return join(features, targets, label_weight(estimator.class_weight, targets, used)), targets


def make_records(
    X: Any,
    weights: WeightArguments = NO_WEIGHTS,
    *,
    policy: ClassifierPolicy | None,
    named: bool = True,
    **declared: Any,
) -> tuple[Records, FloatArray]:
    """Return records of the rows that have weight, and the weight of all rows.

    Parameters
    ----------
    X : table
        Features.
    weights : WeightArguments
        Weights of the rows.
    policy : ClassifierPolicy or None
        Number of bins where none is declared; None for those of :func:`rejoint.estimate`.
    named : bool
        Whether columns are found by name at prediction. Otherwise none is left out.
    **declared
        What is declared about columns, as :meth:`Records.of` takes it.
    """
    if isinstance(X, Records):
        records = Records.of(X, **weights.given)
        used = weights_of(records)
        return replace(records.take(used > 0), design=records.design), used
    X, weights, raw = drop_weightless(X, weights)
    frame = take_apart(X)
    rule = ColumnRule(report=False)
    if policy is not None and not isinstance(declared.get("bins"), int | np.integer):
        # Members join these to bins of their own, each with other edges.
        copies = weights.split(frame)[1].copies
        total = frame.rows if copies is None else float(copies.sum())
        count, levels = policy.members * policy.count_bins(total), rule.count_levels(total)
        rule = replace(rule, few_bins=count, many_bins=count, most_levels=levels)
    if not named:
        rule = rule.without_names()
        if declared["not_applicable"] == "auto":
            declared["not_applicable"] = False
    frame = Frame(frame.all_names, frame.columns, frame.rows)
    return Records.of(frame, **weights.given, **declared, rule=rule), raw


def join(features: Records, targets: Targets, factor: FloatArray | None = None) -> Records:
    """Put features and labels side by side; ``factor`` multiplies the weight of each record."""
    domain = Domain((*features.domain.variables, *targets.variables))
    weight = features.sample_weight if factor is None else factor * weights_of(features)
    codes = np.hstack([features.codes, targets.codes])
    return Records(domain, codes, weight, features.design, features.cluster_keys)


def check_target_undeclared(targets: Sequence[str], *declared: Any) -> None:
    """Raise ValueError where what is declared about columns names a target."""
    for name in targets:
        if any(isinstance(part, Mapping) and name in part for part in declared):
            raise ValueError(
                f"kinds, levels and bins do not apply to the target {cite(name)}, whose labels are "
                "used as they are. To merge labels, change the column."
            )


def read_targets(y: Any, taken: Sequence[str], weight: FloatArray) -> Targets:
    """Read labels of the rows with weight; names that features have ``taken`` are changed."""
    parts: list[tuple[Variable, NDArray[Any], NDArray[Any]]] = []
    for name, column in zip(*take_targets(y), strict=True):
        while name in (*taken, *(variable.name for variable, *_ in parts)):
            name += "_"
        check_length(column, len(weight))
        labels, codes = find_labels(column, name)
        mass = np.bincount(codes[codes >= 0], weight[codes >= 0], len(labels))
        order = [int(k) for k in np.argsort(labels, kind="stable") if mass[k] > 0]
        if len(order) < 2:
            one = f"one class only, {cite(labels[order[0]].item())}" if order else "no label"
            raise ValueError(
                f"Target {cite(name)} has {one} in any of {plural(len(codes), 'row')}: give rows "
                "of at least two classes; to learn without labels, use JointPMF."
            )
        place = np.full(len(labels) + 1, -1, dtype=np.int32)  # the last one stands for missing
        place[order] = np.arange(len(order))
        variable = Variable(name, tuple(labels[order].tolist()))
        parts.append((variable, labels[order], place[codes[weight > 0]]))
    variables, classes, columns = zip(*parts, strict=True)
    return Targets(variables, classes, np.stack(columns, axis=1))


def take_targets(y: Any) -> tuple[list[str], list[Any]]:
    """Return names and columns of the labels."""
    if hasattr(y, "__array__") and not hasattr(y, "__len__"):
        y = np.asarray(y)
    first = y[0] if isinstance(y, list | tuple) and len(y) else None
    is_table = isinstance(first, list | tuple | np.ndarray | dict) or isinstance(y, dict)
    if not is_table and not hasattr(y, "columns") and getattr(y, "ndim", 1) != 2:
        name = getattr(y, "name", None)
        return ["y" if name in (None, "") else str(name)], [y]
    names, columns, _ = take_apart(y)
    if len(columns) == 0:
        raise ValueError("y has no column: give at least one target.")
    default = ["y"] if len(columns) == 1 else [f"y{t}" for t in range(len(columns))]
    return [str(name) for name in names or default], columns


def find_labels(column: Any, name: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the distinct labels of a target, and the place of each row's, -1 where missing."""
    if isinstance(column, np.ndarray) and column.dtype.kind == "f":
        assert_all_finite(column, allow_nan=True, input_name="y")
    cells = read_column(column, name)
    if isinstance(cells, Coded):
        kinds = {type(label) for label in cells.labels}
        if len(kinds) > 1 or Bin in kinds:
            what = "bins as labels" if Bin in kinds else "labels of several types"
            raise ValueError(
                f"Target {cite(name)} has {what}, {show(cells.labels)}: make them one type, text "
                "or numbers that are few."
            )
        return np.array(cells.labels), np.asarray(cells.codes)
    try:
        check_classification_targets(cells.present())
    except ValueError as error:
        raise ValueError(
            f"{error} Target {cite(name)} holds numbers that are not labels: cut it into classes, "
            "as text, or use rejoint.estimate (rejoint fit), whose model answers questions about "
            "numbers."
        ) from None
    labels, inverse = np.unique(cells.values, return_inverse=True)
    return labels, inverse if cells.missing is None else np.where(cells.missing, -1, inverse)


def label_weight(class_weight: Any, targets: Targets, weight: FloatArray) -> FloatArray | None:
    """Return what multiplies the weight of each record, by its labels; None for nothing."""
    if class_weight is None:
        return None
    given = class_weight if isinstance(class_weight, list) else [class_weight]
    if class_weight == "balanced":
        given = ["balanced"] * len(targets.classes)
    if len(given) != len(targets.classes):
        raise ValueError(
            f"class_weight has {plural(len(given), 'dict')} for "
            f"{plural(len(targets.classes), 'target')}: give a list with one for each."
        )
    factor, weight = np.ones(len(targets.codes)), weight[weight > 0]
    for asked, classes, codes in zip(given, targets.classes, targets.codes.T, strict=True):
        if asked == "balanced":
            mass = np.bincount(codes[codes >= 0], weight[codes >= 0], len(classes))
            share = mass.sum() / (len(classes) * mass)
        else:
            share = compute_class_weight(asked, classes=classes, y=classes)
        if not (np.isfinite(share) & (share > 0)).all():
            raise ValueError(f"class_weight must have weights above zero, got {cite(asked)}.")
        factor *= np.append(share, 1.0)[codes]
    return factor


def check_length(column: Any, rows: int) -> None:
    """Raise ValueError where labels are not as many as rows."""
    if len(column) != rows:
        raise ValueError(
            f"y has {plural(len(column), 'label')} for {plural(rows, 'row')} of X, inconsistent "
            "numbers of samples: give one for each row, None where it is not known."
        )


def compare_labels(
    y: Any, names: Sequence[str], predicted: Sequence[NDArray[Any]]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return whether all labels of each row are as predicted, and whether all are known.

    A table with columns of these names is read by name.
    """
    given, columns = take_targets(y)
    if len(columns) != len(names):
        raise ValueError(
            f"y has {plural(len(columns), 'column')}, but the model predicts "
            f"{plural(len(names), 'target')}: {show(names)}."
        )
    if set(given) == set(names):
        columns = [columns[given.index(name)] for name in names]
    right, known = np.ones((2, len(predicted[0])), dtype=bool)
    for name, column, expected in zip(names, columns, predicted, strict=True):
        check_length(column, len(expected))
        labels, codes = find_labels(column, name)
        if len(labels) and (labels.dtype.kind in "US") != (expected.dtype.kind in "US"):
            raise ValueError(
                f"The labels of {cite(name)} are {show(labels[:3].tolist())}, and those of the fit "
                f"are like {cite(expected[0].item())}: one is text, the other a number. Make them "
                "alike."
            )
        known &= codes >= 0
        right &= np.append(labels, labels[:1])[codes] == expected if len(labels) else False
    return right, known


def split_targets(X: Any, y: Any, targets: Sequence[str] | None = None) -> tuple[Any, Any]:
    """Split X into features and labels, where y names one or several columns of X.

    Where y does not name columns, both are returned as they are. ``targets`` are the only names
    that y may have.
    """
    wanted = [y] if isinstance(y, str) else y
    if not isinstance(wanted, list | tuple) or not len(wanted) or not isinstance(wanted[0], str):
        return X, y
    frame = None if isinstance(X, Records) else take_apart(X)
    names, rows = (X.names, len(X)) if frame is None else (frame.names, frame.rows)
    if not isinstance(y, str) and (names is None or len(wanted) == rows):
        return X, y  # labels, not names
    for name in wanted:
        if names is None or name not in names:
            columns = "have no names" if names is None else f"are {show(names)}"
            raise ValueError(
                f"y names a column {cite(name)}, which X does not have, and it has "
                f"{plural(len(wanted), 'text')} for {plural(rows, 'row')}: the columns of X "
                f"{columns}.{nearest(name, names or ())}"
            )
    if targets is not None and sorted(wanted) != sorted(targets):
        raise ValueError(
            f"y names {show(wanted)}, but the model was fitted to predict {show(targets)}."
        )
    table = X if frame is None else dict(zip(names or (), frame.columns, strict=True))
    return drop_columns(X, wanted), {name: table[name] for name in wanted}
