"""Read features and labels as users of scikit-learn pass them into codes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets

from rejoint.arrays import Codes, FloatArray, IntArray
from rejoint.domain.columns import Coded, read_column
from rejoint.domain.domain import Domain
from rejoint.domain.labels import Bin
from rejoint.domain.variable import Variable
from rejoint.estimators.classifier.classifier_policy import (
    DEFAULT_CLASSIFIER_POLICY,
    ClassifierPolicy,
)
from rejoint.estimators.sklearn_input import (
    DECLARED,
    check_columns,
    drop_weightless,
    name_columns,
    select_columns,
    weights_of,
)
from rejoint.messages import Message, PythonName
from rejoint.records.frames import Frame, refuse_non_table, take_apart
from rejoint.records.infer import Bins, ColumnRule, NotApplicable
from rejoint.records.records import Records, drop_columns
from rejoint.records.survey_design import NO_WEIGHTS, WeightArguments, as_weight
from rejoint.text import cite, nearest, plural, show


def read_features(
    estimator: Any, X: Any, weights: WeightArguments, policy: ClassifierPolicy
) -> tuple[Records, FloatArray]:
    """Return records of the rows that have weight, and the weight of all rows."""
    refuse_non_table(X)
    X = check_columns(estimator, X, reset=True)
    weights.check_arrays("X has the columns of the features alone;")
    if isinstance(X, Records):
        made = Records.of(X, **weights.given)
        weight = weights_of(made)
        return replace(made.take(weight > 0), design=made.design), weight
    declared = {name: getattr(estimator, name) for name in DECLARED}
    asked = policy if estimator.solver == "auto" else None
    named = hasattr(estimator, "feature_names_in_")
    return make_records(X, weights, policy=asked, named=named, **declared)


def make_records(
    X: Any,
    weights: WeightArguments = NO_WEIGHTS,
    *,
    kinds: Mapping[str, Any] | None = None,
    levels: Mapping[str, Any] | None = None,
    bins: Bins = None,
    not_applicable: NotApplicable = "auto",
    missing_level: Sequence[Any] = (),
    policy: ClassifierPolicy | None = DEFAULT_CLASSIFIER_POLICY,
    named: bool = True,
) -> tuple[Records, FloatArray]:
    """Return records of the rows that have weight, and the weight of all rows.

    Parameters
    ----------
    X : table
        Features.
    weights : WeightArguments
        Weights of the rows.
    kinds, levels, bins, not_applicable, missing_level
        What is declared about columns, as :meth:`Records.of` takes it.
    policy : ClassifierPolicy or None
        Number of bins where none is declared; None for those of :func:`rejoint.estimate`.
    named : bool
        Whether columns are found by name at prediction. Otherwise none is left out.

    Examples
    --------
    >>> records, _ = make_records({"a": np.arange(100.0) ** 2, "b": np.arange(100) % 3})
    >>> records.domain.shape
    (30, 3)
    """
    X, weights, raw = drop_weightless(X, weights)
    frame = take_apart(X)
    rule = ColumnRule(report=False)
    if policy is not None and not isinstance(bins, int | np.integer):
        # Members join these to bins of their own, each with other edges.
        copies = weights.split(frame)[1].copies
        records = frame.rows if copies is None else float(copies.sum())
        count = policy.members * policy.count_bins(records)
        levels_kept = rule.count_levels(records)
        rule = replace(rule, few_bins=count, many_bins=count, most_levels=levels_kept)
    frame = Frame(name_columns(frame), frame.columns, frame.rows)
    declared: dict[str, Any] = {"kinds": kinds, "levels": levels, "bins": bins}
    declared |= {"not_applicable": not_applicable, "missing_level": missing_level}
    if not named:
        rule = rule.without_names()
        declared["not_applicable"] = not_applicable != "auto" and not_applicable
    declared["rule"] = rule
    return Records.of(frame, **weights.given, **declared), raw


def check_target_undeclared(targets: Sequence[str], *declared: Any) -> None:
    """Raise ValueError where kinds, levels or bins name a target.

    Examples
    --------
    >>> check_target_undeclared(["y"], {"y": "ordinal"})
    Traceback (most recent call last):
    ...
    ValueError: kinds, levels and bins do not apply to the target 'y', whose labels are used as \
they are. To merge labels, change the column.
    """
    for name in targets:
        if any(isinstance(part, Mapping) and name in part for part in declared):
            terms = {term: PythonName(term) for term in ("kinds", "levels", "bins")}
            text = (
                "{kinds}, {levels} and {bins} do not apply to the target {name!r}, whose labels "
                "are used as they are. To merge labels, change the column."
            )
            raise ValueError(Message(text, name=name, **terms))


def read_rows(estimator: Any, X: Any, domain: Domain) -> Codes:
    """Return codes of rows to predict, in the domain of the features."""
    refuse_non_table(X)
    return Records.of(select_columns(estimator, X, domain), domain=domain).codes


def weight_of(sample_weight: Any, rows: int) -> FloatArray:
    """Return the weight of each row, one by default."""
    if sample_weight is None:
        return np.ones(rows)
    return as_weight(sample_weight, rows)


class Targets(NamedTuple):
    """Targets to predict: their variables and classes, and codes with -1 where missing.

    Examples
    --------
    >>> read_targets(["no", None, "yes"], ()).codes.tolist()
    [[0], [-1], [1]]
    """

    variables: tuple[Variable, ...]
    classes: tuple[NDArray[Any], ...]
    codes: NDArray[np.int32]
    several: bool


def read_targets(y: Any, taken: Sequence[str], weight: FloatArray | None = None) -> Targets:
    """Read labels; names that features have ``taken`` are changed.

    Classes are those of rows with weight, in order.

    Examples
    --------
    >>> targets = read_targets([[1, "a"], [2, "b"]], ["y0"])
    >>> [v.name for v in targets.variables], targets.classes[0]
    (['y0_', 'y1'], array([1, 2]))
    """
    if y is None:
        raise ValueError(
            "JointClassifier requires y to be passed, but the target y is None: give the labels "
            "of the rows, None or NaN where one is not known."
        )
    if hasattr(y, "__array__") and not hasattr(y, "__len__"):
        y = np.asarray(y)
    names, columns = take_targets(y)
    found: list[str] = []
    for name in names:
        while name in (*taken, *found):
            name += "_"
        found.append(name)
    for column in columns:
        if weight is not None:
            check_length(column, len(weight))
    read = [read_target(n, column, weight) for n, column in zip(found, columns, strict=True)]
    variables, classes, codes = zip(*read, strict=True)
    return Targets(variables, classes, np.stack(codes, axis=1).astype(np.int32), len(read) > 1)


def take_targets(y: Any) -> tuple[list[str], list[Any]]:
    """Return names and columns of the labels."""
    if is_table(y):
        names, columns, _ = take_apart(y)
        if len(columns) == 0:
            raise ValueError("y has no column: give at least one target.")
        if len(columns) == 1:
            return [str(names[0]) if names else "y"], columns
        return [str(n) for n in names or [f"y{t}" for t in range(len(columns))]], columns
    name = getattr(y, "name", None)
    return [str(name) if name not in (None, "") else "y"], [y]


def is_table(y: Any) -> bool:
    """Whether labels come as rows and columns."""
    if hasattr(y, "columns") or isinstance(y, dict):
        return True
    if isinstance(y, list | tuple) and len(y):
        return isinstance(y[0], list | tuple | np.ndarray | dict)
    return getattr(y, "ndim", 1) == 2


def read_target(
    name: str, column: Any, weight: FloatArray | None
) -> tuple[Variable, NDArray[Any], NDArray[np.int32]]:
    """Read one target: its variable, its classes as an array, and the code of each row."""
    if isinstance(column, np.ndarray):
        if column.ndim != 1:
            raise ValueError(
                f"y should be a 1d array, got an array of shape {column.shape} instead."
            )
        if column.dtype.kind == "f":
            assert_all_finite(column, allow_nan=True, input_name="y")
    labels, codes = find_labels(column, name)
    counts = np.bincount(
        codes[codes >= 0], None if weight is None else weight[codes >= 0], len(labels)
    )
    check_classes(name, labels[counts > 0], len(codes))
    order = [int(k) for k in np.argsort(labels, kind="stable") if counts[k] > 0]
    place = np.full(len(labels) + 1, -1, dtype=np.int32)  # the last one stands for missing
    place[order] = np.arange(len(order))
    classes = labels[order]
    return Variable(name, tuple(classes.tolist())), classes, place[codes]


def find_labels(column: Any, name: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the distinct labels of a target, and the place of each row's, -1 where missing.

    Examples
    --------
    >>> find_labels(["no", None, "yes"], "y")
    (array(['no', 'yes'], dtype='<U3'), array([ 0, -1,  1], dtype=int32))
    """
    cells = read_column(column, name)
    if isinstance(cells, Coded):
        if any(isinstance(label, Bin) for label in cells.labels):
            raise ValueError(
                f"Target {cite(name)} has bins as labels, {show(cells.labels)}: make them text, or "
                "numbers that are few."
            )
        labels = np.array(cells.labels)
        if len(labels) and not all(
            isinstance(label, type(cells.labels[0])) for label in cells.labels
        ):
            raise ValueError(
                f"Target {cite(name)} has labels of several types, {show(cells.labels)}: "
                "make them one type, text or number."
            )
        return labels, np.asarray(cells.codes)
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


def label_weight(
    class_weight: Any, targets: Targets, codes: Codes, weight: FloatArray
) -> FloatArray | None:
    """Return what multiplies the weight of each record, by its labels; None for nothing.

    Examples
    --------
    >>> targets = read_targets(["no", None, "yes", "no"], ())
    >>> label_weight("balanced", targets, targets.codes, np.ones(4))
    array([0.75, 1.  , 1.5 , 0.75])
    >>> label_weight({"yes": 5}, targets, targets.codes, np.ones(4))
    array([1., 1., 5., 1.])
    """
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
    found = np.ones(len(codes))
    for each, classes, labels in zip(given, targets.classes, codes.T, strict=True):
        if each == "balanced":
            mass = np.bincount(labels[labels >= 0], weight[labels >= 0], len(classes))
            share = mass.sum() / (len(classes) * mass)
        elif isinstance(each, Mapping):
            unknown = [label for label in each if label not in classes.tolist()]
            if unknown:
                raise ValueError(
                    f"class_weight has a weight for {show(unknown)}, which is not a label: the "
                    f"labels are {show(classes.tolist())}."
                )
            share = np.array([float(each.get(label, 1.0)) for label in classes.tolist()])
            if not (np.isfinite(share) & (share > 0)).all():
                raise ValueError(f"class_weight must have weights above zero, got {cite(each)}.")
        else:
            raise ValueError(f"class_weight must be 'balanced', a dict or None, got {cite(each)}.")
        found *= np.append(share, 1.0)[labels]
    return found


def check_length(column: Any, rows: int) -> None:
    """Raise ValueError where labels are not as many as rows."""
    if len(column) != rows:
        raise ValueError(
            f"y has {plural(len(column), 'label')} for {plural(rows, 'row')} of X, inconsistent "
            "numbers of samples: give one for each row, None where it is not known."
        )


def read_labels(
    y: Any, names: Sequence[str], classes: Sequence[NDArray[Any]], rows: int
) -> tuple[NDArray[np.bool_], IntArray]:
    """Read labels that predictions are compared with.

    Parameters
    ----------
    y : labels
        As :func:`read_targets` takes them. A table with columns of these names is read by name.
    names : sequence of str
        Targets of the fit.
    classes : sequence of array
        Labels of each.
    rows : int
        Number of predictions.

    Returns
    -------
    known : array of bool (rows,)
        Whether a row has all its labels.
    codes : array of int (rows, targets)
        Places in ``classes``; -1 for a label that is missing or that the fit has not seen.

    Examples
    --------
    >>> read_labels(["b", None, "c"], ["y"], [np.array(["a", "b"])], 3)
    (array([ True, False,  True]), array([[ 1], [-1], [-1]]))
    """
    found, columns = take_targets(y)
    if len(columns) != len(names):
        raise ValueError(
            f"y has {plural(len(columns), 'column')}, but the model predicts "
            f"{plural(len(names), 'target')}: {show(names)}."
        )
    if len(set(found)) == len(found) and set(found) == set(names):
        columns = [columns[found.index(name)] for name in names]
    known, codes = np.ones(rows, dtype=bool), np.empty((rows, len(names)), dtype=np.intp)
    for t, (name, column) in enumerate(zip(names, columns, strict=True)):
        check_length(column, rows)
        labels, places = find_labels(column, name)
        refuse_other_type(name, labels, classes[t])
        of = {label: place for place, label in enumerate(classes[t].tolist())}
        at = np.array([*(of.get(label, -1) for label in labels.tolist()), -1], dtype=np.intp)
        known &= places >= 0
        codes[:, t] = at[places]
    return known, codes


def refuse_other_type(name: str, labels: NDArray[Any], classes: NDArray[Any]) -> None:
    """Raise ValueError where labels are text and those of the fit are numbers, or the reverse."""
    texts = [found.dtype.kind in "US" for found in (labels, classes)]
    if len(labels) and texts[0] != texts[1]:
        kinds = ["text" if text else "numbers" for text in texts]
        raise ValueError(
            f"The labels of {cite(name)} are {kinds[0]}, {show(labels[:3].tolist())}, and those of "
            f"the fit are {kinds[1]}, {show(classes[:3].tolist())}: none can be right. Make them "
            "alike."
        )


def check_classes(name: str, classes: NDArray[Any], rows: int) -> None:
    """Raise an error for labels that leave nothing to learn."""
    if len(classes) == 0:
        raise ValueError(
            f"Target {cite(name)} has no label in any of {plural(rows, 'row')}: give some rows "
            "their label; to learn without labels, use JointPMF."
        )
    if len(classes) == 1:
        raise ValueError(
            f"Target {cite(name)} has one class only, {cite(classes[0].item())}: there is nothing "
            "to tell apart. Give rows of at least two classes."
        )


def split_targets(X: Any, y: Any, targets: Sequence[str] | None = None) -> tuple[Any, Any]:
    """Split X into features and labels, where y names one or several columns of X.

    Parameters
    ----------
    X, y
        As the classifier takes them. Where y does not name columns, both are returned as they are.
    targets : sequence of str, optional
        The only names that y may have: the targets of the fit.

    Examples
    --------
    >>> split_targets({"a": [1, 2], "b": [3, 4]}, "b")
    ({'a': [1, 2]}, {'b': [3, 4]})
    """
    one = isinstance(y, str)
    if not one and not (isinstance(y, list | tuple) and len(y) and isinstance(y[0], str)):
        return X, y
    wanted = [y] if one else list(y)
    if isinstance(X, list | tuple | np.ndarray) and not (len(X) and isinstance(X[0], dict)):
        if one:
            raise ValueError(
                f"y is the text {cite(y)}, but the columns of X have no names: give a frame or a "
                "dict of columns as X, or one label for each row as y."
            )
        return X, y  # labels of a table without names
    if isinstance(X, Records):
        table, rows = {name: X[name] for name in X.names}, len(X)
    else:
        names, columns, rows = take_apart(X)
        table = dict(zip(names or (), columns, strict=False))
    if not one and len(wanted) == rows:
        return X, y  # labels, not names
    for name in wanted:
        if name not in table:
            others = (
                ""
                if one
                else f", and it has {plural(len(wanted), 'text')} for {plural(rows, 'row')}"
            )
            raise ValueError(
                f"y names a column {cite(name)}, which X does not have{others}: the columns of X "
                f"are {show(tuple(table))}.{nearest(name, tuple(table))}"
            )
    if targets is not None and sorted(wanted) != sorted(targets):
        raise ValueError(
            f"y names {show(wanted)}, but the model was fitted to predict {show(targets)}."
        )
    labels = {name: table.pop(name) for name in wanted}
    return X.project(list(table)) if isinstance(X, Records) else drop_columns(X, wanted), labels
