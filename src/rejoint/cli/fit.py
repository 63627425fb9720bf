"""``rejoint fit``: from records to a model file."""

from contextlib import ExitStack
from dataclasses import replace
from os import PathLike, stat
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from rejoint.cli.group import ENDED, in_options
from rejoint.cli.options import (
    DataReader,
    as_json,
    data_options,
    output_option,
    seed_option,
    source_name,
    split_names,
)
from rejoint.cli.output import (
    check_place,
    classes,
    echo_json,
    few_levels,
    show_columns,
    show_table,
    size,
    write_saved,
)
from rejoint.messages import join_messages

if TYPE_CHECKING:
    from rejoint.records.records import Records
    from rejoint.records.scan import Scan
    from rejoint.solver.result import FitResult

#: Bytes of files beyond which they are read part by part unless the user says otherwise.
BIG = 300_000_000


def is_big(data: str) -> bool:
    """Whether the data are many files, or a large one.

    Examples
    --------
    >>> is_big("-"), is_big("duckdb:SELECT 1")
    (False, False)
    """
    from rejoint.records.read import files_of

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
    from rejoint.records.read import scan
    from rejoint.records.scan import pack
    from rejoint.solver.progress import Progress

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
        return result, _stream_notes(result, packed, data, seed)


def _stream_notes(result: "FitResult", scan: "Scan", data: str, seed: int) -> dict[str, Any]:
    from rejoint.explorer.document import pair_fit
    from rejoint.io.fit_notes import fit_notes
    from rejoint.marginals.marginals import Marginals

    mass = float(sum(scan.map(_mass)))
    seen = Marginals.count(scan, order=1).totals / max(mass, 1e-300)
    missing = dict(zip(scan.names, (1.0 - seen).round(6).tolist(), strict=True))
    fit = pair_fit(result.pmf, scan)
    notes = fit_notes(result, source=source_name(data), seed=seed, fit=fit, missing=missing)
    return {"records": mass, **notes}


def _mass(part: "Records") -> float:
    weight = part.sample_weight
    return float(len(part)) if weight is None else float(weight.sum())


EXAMPLES = """\b
Examples:
  rejoint fit patients.csv -o patients.rejoint
  rejoint fit patients.csv -o patients.rejoint --rank 4 --seed 1
  rejoint fit patients.csv -o lung.rejoint --rank 3 --target lung
  rejoint fit patients.csv -o patients.rejoint --dry-run
  rejoint fit patients.csv -o patients.rejoint --stream --checkpoint patients.checkpoint
  rejoint fit - -o - --rank 2 --without asia,tub < patients.csv > some.rejoint"""


@click.command("fit", epilog=EXAMPLES)
@click.argument("data", metavar="DATA")
@output_option("The model file; .json makes it text.", required=True)
@click.option("--rank", type=click.IntRange(min=1), help="Number of classes; chosen without it.")
@click.option(
    "--solver",
    type=click.Choice(["auto", "ml", "map", "bayes"]),
    default="auto",
    show_default=True,
    help="Likelihood, with a prior, or averaged over the posterior.",
)
@click.option("--starts", type=click.IntRange(min=1), help="Starts to try; chosen without it.")
@click.option("--target", metavar="NAME", help="Train for predicting this column.")
@click.option(
    "--ratings",
    metavar="USER,ITEM,RATING",
    help="Rows are ratings, in these columns: learn what users like, for `recommend`.",
)
@click.option(
    "--average",
    is_flag=True,
    help="Keep the mean of posterior draws: better answers, but more classes, without meaning.",
)
@click.option(
    "--draws/--no-draws",
    default=True,
    help="Whether posterior draws, for credible intervals, go into the file (some kB to 8 MB).",
)
@click.option(
    "--smooth", is_flag=True, help="Let neighbouring levels of ordinal and binned columns agree."
)
@click.option(
    "--stream/--no-stream",
    default=None,
    help="Read the data part by part, for what is larger than memory; by default where there are "
    "many files or more than 300 MB.",
)
@click.option(
    "--checkpoint",
    metavar="FILE",
    help="Write to it from time to time; after Ctrl-C or a kill the same command goes on from it.",
)
@seed_option
@click.option("--dry-run", is_flag=True, help="Only tell columns, memory and time.")
@as_json
@data_options
def command(
    data: str,
    output: str,
    rank: int | None,
    solver: str,
    starts: int | None,
    target: str | None,
    ratings: str | None,
    average: bool,
    draws: bool,
    smooth: bool,
    stream: bool | None,
    checkpoint: str | None,
    seed: int,
    dry_run: bool,
    as_json: bool,
    reader: DataReader,
) -> None:
    """Learn a model from records, holes included.

    DATA is CSV, TSV, Parquet, Arrow, JSON lines (gzipped or not), - for stdin, or a query
    "duckdb:SELECT ..."; a folder or "a/*.parquet" is all of its files. Ctrl-C ends the fit and
    keeps the best model so far (exit code 3).
    """
    from rejoint.domain.labels import plural
    from rejoint.pmf.pmf import LowRankPMF

    if as_json and output == "-":
        raise click.UsageError("-o - and --json would both write to stdout: name a file.")
    check_place(output)
    if target and (average or smooth):
        raise click.UsageError("--target goes without --average and --smooth.")
    special = target or ratings is not None or dry_run
    if special and stream:
        raise click.UsageError("--stream goes without --target, --ratings and --dry-run.")
    if checkpoint is not None and (target or ratings is not None):
        raise click.UsageError("--checkpoint goes without --target and --ratings.")
    if stream or (stream is None and not special and is_big(data)):
        result, notes = fit_stream(data, reader, rank, solver, starts, smooth, seed, checkpoint)
    elif ratings is not None:
        if target or average or dry_run:
            raise click.UsageError("--ratings goes without --target, --average and --dry-run.")
        result, notes = _fitted_ratings(data, reader, split_names([ratings]), rank, solver, seed)
    else:
        records = reader.read(data)
        show_columns(records, data)
        if dry_run:
            _tell(records, rank, solver, as_json)
            return
        result = _fitted(records, rank, solver, starts, target, smooth, seed, checkpoint)
        notes = _notes(result, records, data, seed, target)
    pmf = result.pmf
    if average:
        from rejoint.estimators.predictive import predictive

        pmf = predictive(result)
    if not draws:
        pmf = LowRankPMF(pmf.weights, pmf.factors, pmf.domain)
    click.echo(in_options(join_messages([result.choice, result.stop], "\n")), err=True)
    room = write_saved(output, pmf, notes)
    if as_json:
        found = {"rank": pmf.rank, "parameters": _size(pmf), "draws": len(pmf.draws)}
        echo_json({"model": output, "bytes": room, **found, **notes})
    if notes.get("interrupted"):
        click.echo(f"Ended by Ctrl-C: the best model so far is in {output}.", err=True)
        raise click.exceptions.Exit(ENDED)
    place = "to stdout" if output == "-" else output
    drawn = f", {plural(len(pmf.draws), 'posterior draw')}" if pmf.draws else ""
    click.echo(f"Written: {place} ({classes(pmf.rank)}{drawn}; {size(room)}).", err=True)


def _size(pmf: Any) -> int:
    return int(pmf.rank * (sum(pmf.domain.shape) - len(pmf.domain) + 1) - 1)


def _fitted(
    records: "Records",
    rank: int | None,
    solver: str,
    starts: int | None,
    target: str | None,
    smooth: bool,
    seed: int,
    checkpoint: str | None,
) -> "FitResult":
    wanted: Any = "auto" if rank is None else rank
    if target is None:
        from rejoint.estimation import estimate

        return estimate(
            records,
            wanted,
            solver,
            smooth=smooth,
            n_init=starts,
            random_state=seed,
            checkpoint=checkpoint,
        )
    from rejoint.estimators.classifier.joint_classifier import JointClassifier

    records.domain.index(target)  # says which columns there are, if this is none
    features = records.project([name for name in records.names if name != target])
    model = JointClassifier(wanted, solver, n_init=starts or 3, random_state=seed)
    label = records[target]
    found: FitResult = model.fit(features, {target: label}, records.sample_weight).result_
    return found


def _fitted_ratings(
    data: str, reader: DataReader, names: list[str], rank: int | None, solver: str, seed: int
) -> "tuple[FitResult, dict[str, Any]]":
    from rejoint.cli.raw_table import read_raw
    from rejoint.estimators.recommender.joint_recommender import JointRecommender
    from rejoint.io.fit_notes import fit_notes

    if len(names) != 3:
        raise click.UsageError("--ratings: name three columns, such as user,film,stars.")
    raw = read_raw(data, reader)
    rows = list(zip(*(raw.values(name) for name in names), strict=True))
    there = [row for row in rows if None not in row]
    kind = "traits" if solver == "auto" and rank is None else solver.replace("auto", "map")
    model = JointRecommender(kind, "auto" if rank is None else rank, random_state=seed)
    result: FitResult = model.fit(there).result_
    users = len({row[0] for row in there})
    click.echo(f"{data}: {len(there):,} ratings by {users:,} users", err=True)
    return result, fit_notes(result, source=source_name(data), seed=seed, ratings=names)


def _notes(
    result: "FitResult", records: "Records", data: str, seed: int, target: str | None
) -> dict[str, Any]:
    from rejoint.explorer.document import pair_fit
    from rejoint.io.fit_notes import fit_notes

    return fit_notes(
        result,
        records=records,
        source=source_name(data),
        seed=seed,
        fit=pair_fit(result.pmf, records),
        target=None if target is None else [target],
    )


def _tell(records: "Records", rank: int | None, solver: str, as_json: bool) -> None:
    from rejoint.cli.forecast import forecast
    from rejoint.domain.labels import duration

    found = forecast(records, rank, solver)
    if as_json:
        echo_json(
            {
                "records": len(records),
                "variables": {v.name: {"kind": v.kind, "levels": v.levels} for v in records.domain},
                "memory": found.memory,
                "seconds": [found.low, found.high],
            }
        )
        return
    number = classes(found.rank) if rank else f"an unknown number of classes (say {found.rank})"
    click.echo(
        f"A fit of {number} takes about {size(found.memory)} of memory and {duration(found.low)} "
        f"to {duration(found.high)} of computing. {in_options(found.words)} Nothing was fitted."
    )
