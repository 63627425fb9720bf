"""``rejoint fit``: from records to a model file."""

from os import stat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from rejoint.cli.group import echo, in_options, keep_best
from rejoint.cli.options import Options, declare, option, source_name
from rejoint.cli.output import (
    check_output,
    echo_json,
    end_fit,
    format_classes,
    model_option,
    show_columns,
    show_levels,
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


@declare(
    "DATA --rank --budget --max-classes --solver --draws --smooth --agreement --blocks --seed "
    "--json +data",
    model_option,
    option("--starts N", "Number of starts; chosen automatically by default."),
    option(
        "--counts/--no-counts",
        "Whether the file keeps tables of one and two variables of the records, for `rejoint "
        "ask`; their numbers are rounded to multiples of 5, so that no record can be read off.",
        default=True,
    ),
    option(
        "--keep-records",
        "Keep the records themselves in the file, so that questions on more than two variables "
        "are counted, too. Who has the file has the records.",
    ),
    option(
        "--stream/--no-stream",
        "Read the data in parts, for data larger than memory; the default for many files or more "
        "than 300 MB.",
        default=None,
    ),
    option(
        "--checkpoint FILE",
        "Checkpoint file, written from time to time; after Ctrl-C or a kill the same command "
        "resumes from it.",
    ),
    option("--dry-run", "Only report columns and memory."),
)
def command(o: Options) -> None:
    """Learn a model from records with missing values.

    DATA is CSV, TSV, Parquet, Arrow, JSON lines (gzipped or not), - for stdin, or a query
    "duckdb:SELECT ..."; a folder or "a/*.parquet" is all of its files. Ctrl-C ends the fit and
    keeps the best model so far (exit code 3).

    Examples
    --------
      rejoint fit patients.csv -o patients.rejoint
      rejoint fit patients.csv -o patients.rejoint --rank 4 --seed 1
      rejoint fit patients.csv -o patients.rejoint --dry-run
      rejoint fit patients.csv -o patients.rejoint --stream --checkpoint patients.checkpoint
      rejoint fit - -o - --rank 2 --without asia,tub < patients.csv > some.rejoint
    """
    check_output(o.output, o.json)
    if o.dry_run and o.stream:
        raise click.UsageError("--stream cannot be combined with --dry-run.")
    if o.keep_records and not o.counts:
        raise click.UsageError("--keep-records cannot be combined with --no-counts.")
    asked = o.asked(
        "rank", "solver", "budget", "smooth", "checkpoint", "agreement", "counts", "max_classes"
    )
    asked |= {"n_init": o.starts, "blocks": o.block_option()}
    if o.stream or (o.stream is None and not o.dry_run and is_big(o.data)):
        result, notes = _fit_stream(o, asked)
    else:
        records = o.read_records(o.data)
        show_columns(records, o.data)
        if o.dry_run:
            _show_cost(records, o)
            return
        result = keep_best(estimate, records, **asked)
        notes = {"records": records, "fit": pair_fit(result.pmf, records)}
    counts = result.saved_counts(records=o.keep_records)
    if o.keep_records and counts is not None and counts.records is None:
        remark(
            "The records were read in parts: the file keeps their small tables, not the records."
        )
    mass = notes.pop("mass", None)
    written = fit_notes(result, **notes, source=source_name(o.data), seed=o.seed)
    if mass is not None:
        written = {"records": mass, **written}
    model = result.pmf.with_counts(counts)
    end_fit(o.output, model, result, written, draws=o.draws, as_json=o.json)


def is_big(data: str) -> bool:
    """Whether the data are many files, or a large one."""
    if source_name(data) is None:
        return False
    try:
        files = files_of(data)
        return files != [data] or sum(stat(file).st_size for file in files) > BIG
    except OSError:  # which reading tells better
        return False


def _fit_stream(o: Options, asked: dict[str, Any]) -> tuple[FitResult, dict[str, Any]]:
    """Find levels, pack the codes into a temporary folder, and fit by passes over them."""
    echo(f"{o.data}: read in parts, first to find its levels.", err=True)
    data = o.scan(o.data)
    show_levels(data.domain)
    with TemporaryDirectory(prefix="rejoint-") as folder:
        with Progress() as report:
            packed = pack_aside(data, Path(folder), report)
        echo(f"{plural(packed.rows or 0, 'record')}.", err=True)
        if packed.design is not None:
            echo(packed.design.text, err=True)
        result = keep_best(estimate, packed, **asked)
        mass = float(sum(packed.map(_mass)))
        seen = Marginals.count(packed, order=1).totals / max(mass, 1e-300)
        missing = dict(zip(packed.names, (1.0 - seen).round(6).tolist(), strict=True))
        design, fit = plain_design(packed), pair_fit(result.pmf, packed)
    return result, {"mass": mass, "missing": missing, "survey_design": design, "fit": fit}


def _mass(part: Records) -> float:
    weight = part.sample_weight
    return float(len(part)) if weight is None else float(weight.sum())


def _show_cost(records: Records, o: Options) -> None:
    data, rank = InMemory.of(records), o.rank or TYPICAL_RANK
    _, why = choose_solver(data, rank, Request(solver=o.solver))
    memory = fit_memory(data, rank)
    if o.json:
        variables = {v.name: {"kind": v.kind, "levels": v.levels} for v in records.domain}
        echo_json({"records": len(records), "variables": variables, "memory": memory})
        return
    number = format_classes(rank) if o.rank else f"an unknown number of classes (say {rank})"
    echo(
        f"A fit of {number} takes about {format_bytes(memory)} of memory. {in_options(why)} "
        "Nothing was fitted."
    )
