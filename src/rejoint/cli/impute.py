"""``rejoint impute``: fill empty cells; all others stay as they are written."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from numpy.typing import NDArray

from rejoint.cli.group import echo
from rejoint.cli.options import Options, argument, declare, load_saved, option, source_name
from rejoint.cli.output import write_rows
from rejoint.cli.raw_table import RawTable, read_raw
from rejoint.messages import remark
from rejoint.records.formats import ModelNotDataError
from rejoint.records.survey_design import NO_WEIGHTS, WeightArguments
from rejoint.text import cite, nearest, plural, show

if TYPE_CHECKING:
    from rejoint.estimators.imputer.joint_imputer import JointImputer

Masks = Mapping[str, NDArray[np.bool_]]


@declare(
    "--rank --smooth --output --spreadsheet --seed --json +data",
    argument("files", "[MODEL] DATA", nargs=-1, required=True),
    option(
        "--method expect|mode|joint|draw",
        "expect (the default): the expected number, or the most probable level of other columns; "
        "mode: the most probable level of each cell; joint: the most probable levels of all empty "
        "cells of a row together, by the joint model; draw: a random draw, which keeps "
        "spread and dependence.",
    ),
    option(
        "--draws N",
        "Multiple imputation: N tables stacked below one another, each from a different posterior "
        "draw if the model has draws; the first column, `draw`, numbers them.",
    ),
    option("--probabilities FILE", "File for the probability of each filled value; 1 elsewhere."),
    option("--save FILE", "Save the imputer that was fitted to DATA."),
)
def command(o: Options) -> None:
    """Fill the empty cells of DATA, given the rest of their row.

    DATA alone: an imputer is fitted to it, as JointImputer().fit_transform does, and --save keeps
    it. With a saved imputer as MODEL, it fills DATA. Any other model is a joint model and fills the
    cells itself, which is less accurate for numbers.

    Cells that are not empty, columns that the model does not know, and labels that it has never
    seen are written as they are. Ctrl-C ends it and nothing is written (exit code 130).

    Examples
    --------
      rejoint impute patients.csv -o filled.csv
      rejoint impute patients.csv -o filled.csv --save imputer.rejoint
      rejoint impute imputer.rejoint patients.csv -o filled.csv
      rejoint impute patients.csv -o filled.csv --probabilities sure.csv
      rejoint impute patients.csv -o five.csv --draws 5 --seed 7
      rejoint impute patients.rejoint patients.csv --method mode
    """
    if o.draws is not None and (o.method not in (None, "draw") or o.probabilities is not None):
        raise click.UsageError(
            "--draws needs --method draw and cannot be combined with --probabilities."
        )
    if len(o.files) > 2:
        raise click.UsageError(f"Give DATA, or MODEL and DATA; got {plural(len(o.files), 'file')}.")
    # scikit-learn takes a second to import, which other commands need not wait for.
    from rejoint.estimators.imputer.joint_imputer import JointImputer

    method = "draw" if o.draws is not None else o.method or "expect"
    joint = method == "joint"
    asked = {"method": "mode" if joint else method, "joint": joint, "random_state": o.seed}
    try:
        raw = read_raw(o.files[-1], o)
    except ModelNotDataError as error:
        raise click.UsageError(f"{error} DATA is missing: rejoint impute MODEL DATA.") from error
    if len(o.files) == 1:
        weights, table = _split(raw, o)
        imputer = JointImputer(**{**o.asked("rank", "smooth"), **asked}, **o.column_options())
        imputer.fit(table, **weights.given)
        if o.save is not None:
            imputer.save(o.save, notes={"source": source_name(o.files[0]), "seed": o.seed})
    else:
        imputer = _load(o.files[0], asked, o)
        domain = imputer.pmf_.domain
        table = {name: raw.values(name, domain[name]) for name in raw.names if name in domain}
    empty = _find_missing(imputer, raw, table)
    if o.draws is not None:
        completed = imputer.impute(table, n_draws=o.draws)
        name = "draw"
        while name in raw.names:
            name += "_"
        write_rows(o.output, [name, *raw.names], _stack(raw, empty, completed), as_json=o.json)
    else:
        completed, shares = imputer.impute(table, confidence=True)
        _patch(raw, empty, completed)
        write_rows(o.output, raw.names, raw.rows(), as_json=o.json)
        if o.probabilities is not None:
            write_rows(o.probabilities, list(table), shares.round(6).tolist())
    rows = len(raw.columns[0]) if raw.columns else 0
    masks = np.array(list(empty.values())).reshape(len(empty), rows)
    times = f", {plural(o.draws, 'time')}" if o.draws is not None else ""
    cells, filled = plural(int(masks.sum()), "cell"), int(masks.any(axis=0).sum())
    echo(f"{cells} filled in {filled:,} of {plural(rows, 'row')}{times}.", err=True)


def _split(raw: RawTable, o: Options) -> tuple[WeightArguments, dict[str, list[Any]]]:
    """Return the weights of the rows, and the columns that an imputer is fitted to."""
    file, weights = o.file(), o.weights().given
    for name in (*(file["columns"] or ()), *file["without"], *weights.values()):
        if name not in raw.names:
            raise ValueError(
                f"There is no column {cite(name)} in {show(raw.names)}.{nearest(name, raw.names)}"
            )
    others = {*file["without"], *weights.values()}
    kept = [name for name in file["columns"] or raw.names if name not in others]
    values = WeightArguments(**{key: raw.values(name) for key, name in weights.items()})
    return values if weights else NO_WEIGHTS, {name: raw.values(name) for name in kept}


def _load(path: str, asked: Mapping[str, Any], o: Options) -> "JointImputer":
    # As above.
    from rejoint.estimators.imputer.joint_imputer import KIND, JointImputer

    column_options = o.column_options() != Options().column_options()
    if column_options or o.save is not None or o.rank is not None or o.weights().given:
        raise click.UsageError(
            "The model defines how columns are read: --rank, --save, weights and options of "
            "columns (--bins, --levels, --ordinal, ...) can only be used with DATA alone."
        )
    saved = load_saved(path)
    imputer = JointImputer.of_saved(saved)
    imputer.set_params(**asked)
    if saved.estimator is None or saved.estimator.kind != KIND:
        more = ""
        if saved.ensemble is not None and saved.ensemble.targets:
            names = ", ".join(saved.ensemble.targets)
            more = f" `rejoint predict` uses the models that were trained to predict {names}."
        remark(
            "The joint model fills the cells itself; `rejoint impute DATA` fits an imputer, which "
            f"is more accurate for numbers.{more}"
        )
    return imputer


def _find_missing(imputer: "JointImputer", raw: RawTable, table: Mapping[str, Any]) -> Masks:
    """Return which cells of the columns that the model knows are to be filled."""
    domain, applies = imputer.pmf_.domain, imputer._gaps(table)
    masks = {name: raw.empty_cells(name) & applies[name] for name in table if name in domain}
    if not masks:
        raise ValueError(
            f"No column of the data ({show(raw.names)}) is one of the model ({show(domain.names)})."
        )
    return masks


def _stack(
    raw: RawTable, empty: Masks, tables: Sequence[Mapping[str, Sequence[Any]]]
) -> Iterator[list[Any]]:
    """Yield the rows of one completed table after another, each with its number in front."""
    for k, table in enumerate(tables):
        _patch(raw, empty, table)
        for row in raw.rows():
            yield [k + 1, *row]


def _patch(raw: RawTable, empty: Masks, table: Mapping[str, Sequence[Any]]) -> None:
    """Write what was filled in into the empty cells."""
    for name, mask in empty.items():
        column, cells = raw.columns[raw.names.index(name)], table[name]
        for row in np.flatnonzero(mask).tolist():
            value = cells[row].item() if isinstance(cells[row], np.generic) else cells[row]
            if isinstance(value, float) and value.is_integer():
                value = int(value)
            column[row] = str(value) if raw.empty else value
