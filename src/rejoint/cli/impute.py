"""``rejoint impute``: fill empty cells; all others stay as they are written."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from numpy.typing import NDArray

from rejoint.cli import options
from rejoint.cli.group import echo
from rejoint.cli.options import DataReader, load_saved, source_name
from rejoint.cli.output import write_rows
from rejoint.cli.raw_table import RawTable, read_raw
from rejoint.messages import remark
from rejoint.records.formats import ModelNotDataError
from rejoint.records.survey_design import NO_WEIGHTS, WeightArguments
from rejoint.text import cite, nearest, plural, show

if TYPE_CHECKING:
    from rejoint.estimators.imputer.joint_imputer import JointImputer

EXAMPLES = """\b
Examples:
  rejoint impute patients.csv -o filled.csv
  rejoint impute patients.csv -o filled.csv --save imputer.rejoint
  rejoint impute imputer.rejoint patients.csv -o filled.csv
  rejoint impute patients.csv -o filled.csv --probabilities sure.csv
  rejoint impute patients.csv -o five.csv --draws 5 --seed 7
  rejoint impute patients.rejoint patients.csv --method mode"""


@click.command("impute", epilog=EXAMPLES)
@click.argument("files", nargs=-1, required=True, metavar="[MODEL] DATA")
@click.option(
    "--method",
    type=click.Choice(["expect", "mode", "joint", "draw"]),
    help="expect (the default): the expected number, or the most probable level of other columns; "
    "mode: the most probable level of each cell; joint: the most probable levels of all empty "
    "cells of a row together, by the joint model; draw: a random draw, which keeps "
    "spread and dependence.",
)
@click.option(
    "--draws",
    type=click.IntRange(min=1),
    metavar="M",
    help="Multiple imputation: M tables stacked below one another, each from a different posterior "
    "draw if the model has draws; the first column, `draw`, numbers them.",
)
@click.option(
    "--probabilities",
    metavar="FILE",
    help="File for the probability of each filled value; 1 elsewhere.",
)
@click.option("--save", metavar="FILE", help="Save the imputer that was fitted to DATA.")
@options.rank
@options.smooth
@options.rows
@options.seed
@options.as_json
@options.of_data
def command(
    files: tuple[str, ...],
    method: str | None,
    draws: int | None,
    probabilities: str | None,
    save: str | None,
    rank: int | None,
    smooth: bool | None,
    output: str | None,
    seed: int,
    as_json: bool,
    reader: DataReader,
) -> None:
    """Fill the empty cells of DATA, given the rest of their row.

    DATA alone: an imputer is fitted to it, as JointImputer().fit_transform does, and --save keeps
    it. With a saved imputer as MODEL, it fills DATA. Any other model is a joint model and fills the
    cells itself, which is less accurate for numbers.

    Cells that are not empty, columns that the model does not know, and labels that it has never
    seen are written as they are. Ctrl-C ends it and nothing is written (exit code 130).
    """
    if draws is not None and (method not in (None, "draw") or probabilities is not None):
        raise click.UsageError(
            "--draws needs --method draw and cannot be combined with --probabilities."
        )
    if len(files) > 2:
        raise click.UsageError(f"Give DATA, or MODEL and DATA; got {plural(len(files), 'file')}.")
    # scikit-learn takes a second to import, which other commands need not wait for.
    from rejoint.estimators.imputer.joint_imputer import JointImputer

    chosen = "draw" if draws is not None else method or "expect"
    asked: dict[str, Any] = {
        "method": "mode" if chosen == "joint" else chosen,
        "joint": chosen == "joint",
        "random_state": seed,
    }
    try:
        raw = read_raw(files[-1], reader)
    except ModelNotDataError as error:
        raise click.UsageError(f"{error} DATA is missing: rejoint impute MODEL DATA.") from error
    if len(files) == 1:
        weights, table = _split(raw, reader)
        asked["smooth"] = "auto" if smooth is None else smooth
        imputer = JointImputer(rank or "auto", **asked, **reader.column_options())
        imputer.fit(table, **weights.given)
        if save is not None:
            imputer.save(save, notes={"source": source_name(files[0]), "seed": seed})
    else:
        imputer = _load(files[0], asked, reader, save=save, rank=rank)
        domain = imputer.pmf_.domain
        table = {name: raw.values(name, domain[name]) for name in raw.names if name in domain}
    gone = _find_missing(imputer, raw, table)
    if draws is not None:
        completed = imputer.impute(table, n_draws=draws)
        name = unused("draw", raw.names)
        write_rows(output, [name, *raw.names], _stack(raw, gone, completed), as_json=as_json)
    else:
        completed, shares = imputer.impute(table, confidence=True)
        _patch(raw, gone, completed)
        write_rows(output, raw.names, raw.rows(), as_json=as_json)
        if probabilities is not None:
            write_rows(probabilities, list(table), shares.round(6).tolist())
    _report(gone, len(raw.columns[0]) if raw.columns else 0, draws)


def _split(raw: RawTable, reader: DataReader) -> tuple[WeightArguments, dict[str, list[Any]]]:
    """Return the weights of the rows, and the columns that an imputer is fitted to."""
    how, named = reader.file(), reader.weights()
    for name in (*(how["columns"] or ()), *how["without"], *named.given.values()):
        if name not in raw.names:
            raise ValueError(
                f"There is no column {cite(name)} in {show(raw.names)}.{nearest(name, raw.names)}"
            )
    weights = WeightArguments(**{key: raw.values(name) for key, name in named.given.items()})
    others = {*how["without"], *named.given.values()}
    kept = [name for name in how["columns"] or raw.names if name not in others]
    return weights if named.given else NO_WEIGHTS, {name: raw.values(name) for name in kept}


def _load(
    path: str, asked: Mapping[str, Any], reader: DataReader, *, save: str | None, rank: int | None
) -> "JointImputer":
    # As above.
    from rejoint.estimators.imputer.joint_imputer import KIND, JointImputer

    column_options = reader.column_options() != DataReader().column_options()
    if column_options or save is not None or rank is not None or reader.weights().given:
        raise click.UsageError(
            "The model defines how columns are read: --rank, --save, weights and options of "
            "columns (--bins, --levels, --ordinal, ...) can only be used with DATA alone."
        )
    saved = load_saved(path)
    imputer = JointImputer.of_saved(saved)
    imputer.set_params(**asked)
    if saved.estimator is None or saved.estimator.kind != KIND:
        targets = saved.ensemble.targets if saved.ensemble is not None else ()
        more = (
            f" `rejoint predict` uses the models that were trained to predict {', '.join(targets)}."
            if targets
            else ""
        )
        remark(
            "The joint model fills the cells itself; `rejoint impute DATA` fits an imputer, which "
            f"is more accurate for numbers.{more}"
        )
    return imputer


def unused(name: str, names: Sequence[str]) -> str:
    """Return a name for a new column that none has yet.

    Examples
    --------
    >>> unused("draw", ["a", "draw"])
    'draw_'
    """
    while name in names:
        name += "_"
    return name


def _find_missing(
    imputer: "JointImputer", raw: RawTable, table: Mapping[str, Any]
) -> dict[str, NDArray[np.bool_]]:
    """Return which cells of the columns that the model knows are to be filled."""
    known = imputer.pmf_.domain
    applies = imputer._gaps(table)
    found = {name: raw.gone(name) & applies[name] for name in table if name in known}
    if not found:
        raise ValueError(
            f"No column of the data ({show(raw.names)}) is one of the model ({show(known.names)})."
        )
    return found


def _stack(
    raw: RawTable,
    gone: Mapping[str, NDArray[np.bool_]],
    tables: Sequence[Mapping[str, Sequence[Any]]],
) -> Iterator[list[Any]]:
    """Yield the rows of one completed table after another, each with its number in front."""
    for k, table in enumerate(tables):
        _patch(raw, gone, table)
        for row in raw.rows():
            yield [k + 1, *row]


def _patch(
    raw: RawTable, gone: Mapping[str, NDArray[np.bool_]], table: Mapping[str, Sequence[Any]]
) -> None:
    """Write what was filled in into the empty cells."""
    for name, empty in gone.items():
        column, cells = raw.columns[raw.names.index(name)], table[name]
        for row in np.flatnonzero(empty).tolist():
            value = cells[row].item() if isinstance(cells[row], np.generic) else cells[row]
            if isinstance(value, float) and value.is_integer():
                value = int(value)
            column[row] = str(value) if raw.empty else value


def _report(gone: Mapping[str, NDArray[np.bool_]], rows: int, draws: int | None) -> None:
    masks = np.array(list(gone.values())).reshape(len(gone), rows)
    times = f", {plural(draws, 'time')}" if draws is not None else ""
    count, filled = int(masks.sum()), int(masks.any(axis=0).sum())
    echo(f"{plural(count, 'cell')} filled in {filled:,} of {plural(rows, 'row')}{times}.", err=True)
