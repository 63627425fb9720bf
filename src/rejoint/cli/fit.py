"""``rejoint fit``: from records to a model file."""

from os import stat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from rejoint.cli import options
from rejoint.cli.group import echo, in_options, keep_best
from rejoint.cli.options import DataReader, source_name
from rejoint.cli.output import (
    check_output,
    echo_json,
    end_fit,
    format_classes,
    list_levels,
    show_columns,
    show_table,
)
from rejoint.estimation.data import InMemory
from rejoint.estimation.estimate import (
    TYPICAL_RANK,
    Request,
    choose_solver,
    estimate,
    fit_memory,
)
from rejoint.explorer.document import pair_fit
from rejoint.io.fit_notes import fit_notes, plain_design
from rejoint.marginals.marginals import Marginals
from rejoint.messages import Progress, remark
from rejoint.records.read import files_of
from rejoint.records.records import Records
from rejoint.records.scan import pack_aside
from rejoint.solver.result import FitResult
from rejoint.text import format_bytes, plural

#: Bytes of files beyond which they are read part by part unless the user says otherwise.
BIG = 300_000_000

EXAMPLES = """\b
Examples:
  rejoint fit patients.csv -o patients.rejoint
  rejoint fit patients.csv -o patients.rejoint --rank 4 --seed 1
  rejoint fit patients.csv -o patients.rejoint --dry-run
  rejoint fit patients.csv -o patients.rejoint --stream --checkpoint patients.checkpoint
  rejoint fit - -o - --rank 2 --without asia,tub < patients.csv > some.rejoint"""


@click.command("fit", epilog=EXAMPLES)
@click.argument("data", metavar="DATA")
@options.model
@options.rank
@options.budget
@options.max_classes
@options.solver
@click.option(
    "--starts",
    type=click.IntRange(min=1),
    help="Number of starts; chosen automatically by default.",
)
@options.draws
@options.smooth
@options.agreement
@options.blocks
@click.option(
    "--counts/--no-counts",
    default=True,
    help="Whether the file keeps tables of one and two variables of the records, for `rejoint "
    "ask`; their numbers are rounded to multiples of 5, so that no record can be read off.",
)
@click.option(
    "--keep-records",
    is_flag=True,
    help="Keep the records themselves in the file, so that questions on more than two variables "
    "are counted, too. Who has the file has the records.",
)
@click.option(
    "--stream/--no-stream",
    default=None,
    help="Read the data in parts, for data larger than memory; the default for many files or more "
    "than 300 MB.",
)
@click.option(
    "--checkpoint",
    metavar="FILE",
    help="Checkpoint file, written from time to time; after Ctrl-C or a kill the same command "
    "resumes from it.",
)
@options.seed
@click.option("--dry-run", is_flag=True, help="Only report columns and memory.")
@options.as_json
@options.of_data
def command(
    data: str,
    output: str,
    rank: int | None,
    budget: float | None,
    max_classes: int | None,
    solver: str,
    starts: int | None,
    draws: bool,
    smooth: bool | None,
    agreement: bool,
    blocks: tuple[str, ...],
    counts: bool,
    keep_records: bool,
    stream: bool | None,
    checkpoint: str | None,
    seed: int,
    dry_run: bool,
    as_json: bool,
    reader: DataReader,
) -> None:
    """Learn a model from records with missing values.

    DATA is CSV, TSV, Parquet, Arrow, JSON lines (gzipped or not), - for stdin, or a query
    "duckdb:SELECT ..."; a folder or "a/*.parquet" is all of its files. Ctrl-C ends the fit and
    keeps the best model so far (exit code 3).
    """
    check_output(output, as_json)
    if dry_run and stream:
        raise click.UsageError("--stream cannot be combined with --dry-run.")
    if keep_records and not counts:
        raise click.UsageError("--keep-records cannot be combined with --no-counts.")
    asked: dict[str, Any] = {
        "rank": rank or "auto",
        "solver": solver,
        "random_state": seed,
        "n_init": starts,
        "budget": budget,
        "smooth": "auto" if smooth is None else smooth,
        "checkpoint": checkpoint,
        "agreement": agreement,
        "blocks": options.read_blocks_option(blocks),
        "counts": counts,
        "max_classes": max_classes,
    }
    known: dict[str, Any] = {"source": source_name(data), "seed": seed}
    if stream or (stream is None and not dry_run and is_big(data)):
        result, notes = _fit_stream(data, reader, asked, known)
    else:
        records = reader.read(data)
        show_columns(records, data)
        if dry_run:
            _tell(records, rank, solver, as_json)
            return
        result = keep_best(estimate, records, **asked)
        notes = fit_notes(result, records=records, fit=pair_fit(result.pmf, records), **known)
    kept = result.saved_counts(records=keep_records)
    if keep_records and kept is not None and kept.records is None:
        remark(
            "The records were read in parts: the file keeps their small tables, not the records."
        )
    model = result.pmf.with_counts(kept)
    end_fit(output, model, result, notes, draws=draws, as_json=as_json)


def is_big(data: str) -> bool:
    """Whether the data are many files, or a large one.

    Examples
    --------
    >>> is_big("-"), is_big("duckdb:SELECT 1")
    (False, False)
    """
    if source_name(data) is None:
        return False
    try:
        files = files_of(data)
        return files != [data] or sum(stat(file).st_size for file in files) > BIG
    except OSError:  # which reading tells better
        return False


def _fit_stream(
    data: str, reader: DataReader, asked: dict[str, Any], known: dict[str, Any]
) -> tuple[FitResult, dict[str, Any]]:
    """Find levels, pack the codes into a temporary folder, and fit by passes over them."""
    echo(f"{data}: read in parts, first to find its levels.", err=True)
    found = reader.scan(data)
    head = ("column", "kind", "levels", "number")
    rows = [(v.name, v.kind, list_levels(v), len(v)) for v in found.domain]
    show_table(head, rows, left=3, err=True)
    with TemporaryDirectory(prefix="rejoint-") as folder:
        with Progress() as report:
            packed = pack_aside(found, Path(folder), report)
        echo(f"{plural(packed.rows or 0, 'record')}.", err=True)
        if packed.design is not None:
            echo(packed.design.text, err=True)
        result = keep_best(estimate, packed, **asked)
        mass = float(sum(packed.map(_mass)))
        seen = Marginals.count(packed, order=1).totals / max(mass, 1e-300)
        missing = dict(zip(packed.names, (1.0 - seen).round(6).tolist(), strict=True))
        known |= {"missing": missing, "survey_design": plain_design(packed)}
        notes = fit_notes(result, fit=pair_fit(result.pmf, packed), **known)
    return result, {"records": mass, **notes}


def _mass(part: Records) -> float:
    weight = part.sample_weight
    return float(len(part)) if weight is None else float(weight.sum())


def _tell(records: Records, rank: int | None, solver: str, as_json: bool) -> None:
    data = InMemory.of(records)
    classes = rank or TYPICAL_RANK
    _, why = choose_solver(data, classes, Request(solver=solver))
    memory = fit_memory(data, classes)
    if as_json:
        echo_json(
            {
                "records": len(records),
                "variables": {v.name: {"kind": v.kind, "levels": v.levels} for v in records.domain},
                "memory": memory,
            }
        )
        return
    number = format_classes(rank) if rank else f"an unknown number of classes (say {classes})"
    echo(
        f"A fit of {number} takes about {format_bytes(memory)} of memory. {in_options(why)} "
        "Nothing was fitted."
    )
