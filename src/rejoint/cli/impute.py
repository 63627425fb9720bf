"""``rejoint impute``: empty cells filled; all others stay as they are written."""

from typing import TYPE_CHECKING, Any

import click

from rejoint.cli.options import (
    DataReader,
    as_json,
    domain_options,
    load,
    output_option,
    seed_option,
)
from rejoint.cli.output import write_rows

if TYPE_CHECKING:
    from rejoint.cli.raw import RawTable
    from rejoint.pmf import LowRankPMF

EXAMPLES = """\b
Examples:
  rejoint impute patients.rejoint patients.csv -o filled.csv
  rejoint impute patients.rejoint patients.csv --method draw --seed 7
  rejoint impute patients.rejoint patients.csv -o filled.csv --probabilities sure.csv"""


@click.command("impute", epilog=EXAMPLES, short_help="Fill empty cells.")
@click.argument("model", metavar="MODEL")
@click.argument("data", metavar="DATA")
@click.option(
    "--method",
    type=click.Choice(["mode", "joint", "draw", "expect"]),
    default="mode",
    show_default=True,
    help="Most probable level of each cell, or of all empty cells of a row together; a draw, which "
    "keeps spread and dependence; the expectation of numbers.",
)
@click.option(
    "--probabilities", metavar="FILE", help="How probable each filled value is; 1 elsewhere."
)
@output_option("By its name: .csv, .tsv, .jsonl, .parquet, .arrow; .gz packs it.")
@seed_option
@as_json
@domain_options
def command(
    model: str,
    data: str,
    method: str,
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
    import numpy as np

    from rejoint.cli.raw import read_raw
    from rejoint.estimators.imputation.filling import fill

    pmf = load(model)
    raw = read_raw(data, reader, pmf.domain)
    assert raw.records is not None
    codes = raw.records.codes
    gone = np.zeros(codes.shape, dtype=bool)
    known = [name for name in raw.names if name in pmf.domain]
    for name in known:
        gone[:, pmf.domain.index(name)] = raw.gone(name)
    found = fill(
        pmf,
        codes,
        gone,
        rng=np.random.default_rng(seed) if method == "draw" else None,
        joint=method == "joint",
        values=_values(pmf) if method == "expect" else None,
        confidence=probabilities is not None,
    )
    for name in known:
        _patch(pmf, raw, name, found, gone)
    if probabilities is not None:
        sure = found.probability
        assert sure is not None
        tables = [sure[:, pmf.domain.index(name)].round(6).tolist() for name in known]
        write_rows(probabilities, known, zip(*tables, strict=True))
    write_rows(output, raw.names, raw.rows(), as_json=as_json)
    rows = int(gone.any(axis=1).sum())
    click.echo(f"{int(gone.sum()):,} cells filled in {rows:,} of {len(codes):,} rows.", err=True)


def _values(pmf: "LowRankPMF") -> dict[int, Any]:
    """Values of the levels of variables that have an expectation."""
    import numpy as np

    from rejoint.domain.labels import is_number

    return {
        n: np.asarray(v.numeric)
        for n, v in enumerate(pmf.domain)
        if v.representatives is not None or all(is_number(level) for level in v.levels)
    }


def _patch(pmf: "LowRankPMF", raw: "RawTable", name: str, found: Any, gone: Any) -> None:
    """Write what was found into the empty cells of a column."""
    import numpy as np

    n = pmf.domain.index(name)
    variable = pmf.domain[n]
    rows = np.flatnonzero(gone[:, n])
    if n in found.expected:
        values = [_number(value) for value in found.expected[n]]
    else:
        labels = variable.representatives or variable.levels
        values = [_number(labels[code]) for code in found.codes[rows, n]]
    column = raw.columns[raw.names.index(name)]
    text = bool(raw.empty)
    for row, value in zip(rows, values, strict=True):
        column[row] = str(value) if text else value


def _number(value: Any) -> Any:
    """Whole numbers without a point, others to six digits: a guess has no more."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else float(f"{value:.6g}")
    return value
