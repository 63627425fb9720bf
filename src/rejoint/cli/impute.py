"""``rejoint impute``: empty cells filled; all others stay as they are written."""

from collections.abc import Iterator, Sequence
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from rejoint.cli.group import echo
from rejoint.cli.options import (
    DataReader,
    as_json,
    domain_options,
    load_answerer,
    rows_option,
    seed_option,
)
from rejoint.cli.output import write_rows
from rejoint.cli.raw_table import RawTable, read_raw
from rejoint.estimators.imputer.fill import fill, numeric_values
from rejoint.messages import remark
from rejoint.pmf.pmf import LowRankPMF
from rejoint.pmf.target_model import TargetModel, joint_of

EXAMPLES = """\b
Examples:
  rejoint impute patients.rejoint patients.csv -o filled.csv
  rejoint impute patients.rejoint patients.csv --method draw --seed 7
  rejoint impute patients.rejoint patients.csv -o filled.csv --probabilities sure.csv
  rejoint impute patients.rejoint patients.csv -o five.csv --draws 5"""


@click.command("impute", epilog=EXAMPLES)
@click.argument("model", metavar="MODEL")
@click.argument("data", metavar="DATA")
@click.option(
    "--method",
    type=click.Choice(["mode", "joint", "draw", "expect"]),
    help="Most probable level of each cell (mode, the default), or of all empty cells of a row "
    "together; a draw, which keeps spread and dependence; the expectation of numbers.",
)
@click.option(
    "--draws",
    type=click.IntRange(min=1),
    metavar="M",
    help="Multiple imputation: M tables below one another, each drawn from another posterior draw "
    "where the model has them, told apart by a first column `draw`.",
)
@click.option(
    "--probabilities", metavar="FILE", help="How probable each filled value is; 1 elsewhere."
)
@rows_option
@seed_option
@as_json
@domain_options
def command(
    model: str,
    data: str,
    method: str | None,
    draws: int | None,
    probabilities: str | None,
    output: str | None,
    seed: int,
    as_json: bool,
    reader: DataReader,
) -> None:
    """Fill the empty cells of DATA by what a model says of them, given the rest of their row.

    Cells that are there, columns that the model does not know, and labels that it has never seen
    are written as they are. A bin is filled by the number that stands for it.
    """
    if draws is not None and (method not in (None, "draw") or probabilities is not None):
        raise click.UsageError("--draws goes with --method draw and without --probabilities.")
    found, _ = load_answerer(model)
    pmf = joint_of(found)
    raw = read_raw(data, reader, pmf.domain)
    missing = _find_missing(pmf, raw)
    if isinstance(found, TargetModel) and missing[:, -len(found.targets) :].any():
        remark(
            f"Cells of {', '.join(found.targets)} are filled by the joint model, with all other "
            "cells; `rejoint predict` uses the models that were trained to predict them."
        )
    if draws is not None:
        name = unused("draw", raw.names)
        rows = _fill_often(pmf, raw, missing, draws, seed)
        write_rows(output, [name, *raw.names], rows, as_json=as_json)
    else:
        _fill_once(pmf, raw, missing, method or "mode", probabilities, seed)
        write_rows(output, raw.names, raw.rows(), as_json=as_json)
    count, filled = int(missing.sum()), int(missing.any(axis=1).sum())
    times = f", {draws} times" if draws is not None else ""
    echo(f"{count:,} cells filled in {filled:,} of {len(missing):,} rows{times}.", err=True)


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


def _find_missing(pmf: LowRankPMF, raw: RawTable) -> NDArray[np.bool_]:
    """Return which cells are empty, by the places of the model's variables."""
    missing = np.zeros((len(raw.columns[0]) if raw.columns else 0, len(pmf.domain)), dtype=bool)
    for name in raw.names:
        if name in pmf.domain:
            missing[:, pmf.domain.index(name)] = raw.gone(name)
    return missing


def _fill_once(
    pmf: LowRankPMF,
    raw: RawTable,
    missing: NDArray[np.bool_],
    method: str,
    probabilities: str | None,
    seed: int,
) -> None:
    assert raw.records is not None
    found = fill(
        pmf,
        raw.records.codes,
        missing,
        rng=np.random.default_rng(seed) if method == "draw" else None,
        joint=method == "joint",
        values=numeric_values(pmf.domain) if method == "expect" else None,
        confidence=probabilities is not None,
    )
    _patch(pmf, raw, found, missing)
    if found.probability is not None and probabilities is not None:
        known = [name for name in raw.names if name in pmf.domain]
        rows = found.probability[:, list(pmf.domain.indices(known))].round(6).tolist()
        write_rows(probabilities, known, rows)


def _fill_often(
    pmf: LowRankPMF, raw: RawTable, missing: NDArray[np.bool_], count: int, seed: int
) -> Iterator[list[Any]]:
    """Yield the rows of one completed table after another, each with its number in front."""
    assert raw.records is not None
    rng = np.random.default_rng(seed)
    models = list(pmf.draws.thin(count)) or [pmf]
    for k in range(count):
        found = fill(models[k % len(models)], raw.records.codes, missing, rng=rng)
        _patch(pmf, raw, found, missing)
        for row in raw.rows():
            yield [k + 1, *row]


def _patch(pmf: LowRankPMF, raw: RawTable, found: Any, missing: NDArray[np.bool_]) -> None:
    """Write what was found into the empty cells."""
    for name, column in zip(raw.names, raw.columns, strict=True):
        if name not in pmf.domain:
            continue
        n = pmf.domain.index(name)
        rows = np.flatnonzero(missing[:, n])
        labels = pmf.domain[n].representatives or pmf.domain[n].levels
        values = found.expected.get(n, [labels[code] for code in found.codes[rows, n]])
        for row, value in zip(rows, map(_number, values), strict=True):
            column[row] = str(value) if raw.empty else value


def _number(value: Any) -> Any:
    """Write whole numbers without a point, others to six digits: a guess has no more."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else float(f"{value:.6g}")
    return value
