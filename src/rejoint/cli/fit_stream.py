"""Fits to data that are larger than memory, for ``rejoint fit``."""

from contextlib import ExitStack
from dataclasses import replace
from os import PathLike, stat
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from rejoint.cli.display import few_levels, show_table
from rejoint.cli.options import DataReader, source_name

if TYPE_CHECKING:
    from rejoint.records import Records, Scan
    from rejoint.solver import FitResult

__all__ = ["BIG", "fit_stream", "is_big"]

#: Bytes of files beyond which they are read part by part unless the user says otherwise.
BIG = 300_000_000


def is_big(data: str) -> bool:
    """Whether the data are many files, or a large one.

    Examples
    --------
    >>> is_big("-"), is_big("duckdb:SELECT 1")
    (False, False)
    """
    from rejoint.records.scanning import files_of

    if data == "-" or data.startswith("duckdb:"):
        return False
    try:
        files = files_of(data)
        return files != [data] or sum(stat(file).st_size for file in files) > BIG
    except OSError:  # which reading tells better
        return False


def fit_stream(
    data: str,
    reader: DataReader,
    rank: int | None,
    solver: str,
    starts: int | None,
    smooth: bool,
    seed: int,
    checkpoint: str | PathLike[str] | None,
) -> "tuple[FitResult, dict[str, Any]]":
    """Find levels, pack the codes into a temporary folder, and fit by passes over them."""
    from rejoint.estimation import estimate
    from rejoint.records import scan
    from rejoint.records.packs import pack
    from rejoint.solver import Progress

    click.echo(f"{data}: read part by part, first for its levels.", err=True)
    found = scan(data, sample_weight=reader.weight, **reader.file(), **reader.wishes())
    head = ("column", "kind", "levels", "number")
    rows = [(v.name, v.kind, few_levels(v), len(v)) for v in found.domain]
    show_table(head, rows, left=3, err=True)
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory(prefix="rejoint-"))
        with Progress() as report:
            packed = replace(pack(found, folder, report), stamp=found.stamp)
        click.echo(f"{packed.rows:,} records.", err=True)
        result = estimate(
            packed,
            "auto" if rank is None else rank,
            solver,
            smooth=smooth,
            n_init=starts,
            random_state=seed,
            checkpoint=checkpoint,
        )
        return result, _notes(result, packed, data, seed)


def _notes(result: "FitResult", scan: "Scan", data: str, seed: int) -> dict[str, Any]:
    from rejoint.explorer.trust import pair_fit
    from rejoint.io import fit_notes
    from rejoint.marginals import Marginals

    mass = float(sum(scan.map(_mass)))
    seen = Marginals.count(scan, order=1).totals / max(mass, 1e-300)
    missing = dict(zip(scan.names, (1.0 - seen).round(6).tolist(), strict=True))
    fit = pair_fit(result.pmf, scan)
    notes = fit_notes(result, source=source_name(data), seed=seed, fit=fit, missing=missing)
    return {"records": mass, **notes}


def _mass(part: "Records") -> float:
    weight = part.sample_weight
    return float(len(part)) if weight is None else float(weight.sum())
