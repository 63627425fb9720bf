"""``rejoint tables``: records counted into tables, written to a folder."""

from itertools import chain
from typing import Any

import click

from rejoint.cli.options import (
    DataReader,
    as_json,
    data_options,
    seed_option,
    split_names,
    subsets_option,
)
from rejoint.cli.output import echo_json, format_bytes
from rejoint.marginals.marginals import Marginals
from rejoint.marginals.subsets import choose_subsets, memory_of_subsets

EXAMPLES = """\b
Examples:
  rejoint tables patients.csv -o triples
  rejoint tables patients.csv -o pairs --order 2
  rejoint tables patients.csv -o some --subset smoke,lung --subset smoke,bronc,dysp
  rejoint tables patients.csv -o triples --dry-run"""


@click.command("tables", epilog=EXAMPLES)
@click.argument("data", metavar="DATA")
@click.option(
    "-o", "--output", metavar="DIR", required=True, help="The folder; made, or replaced as a whole."
)
@click.option("--order", type=click.IntRange(min=1), help="Variables of each table; 3 by default.")
@subsets_option
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    help="Number of tables to draw at random; all by default.",
)
@seed_option
@click.option("--dry-run", is_flag=True, help="Only tell how many tables and how large.")
@as_json
@data_options
def command(
    data: str,
    output: str,
    order: int | None,
    subsets: tuple[str, ...],
    sample: int | None,
    seed: int,
    dry_run: bool,
    as_json: bool,
    reader: DataReader,
) -> None:
    """Count records into cross-tables that can be passed on instead of them.

    Each table is counted from the records that have all of its cells. DATA is read in parts, in
    memory that does not grow with it. `rejoint fit-tables DIR` learns a model from the tables.
    """
    if subsets and (order or sample):
        raise click.UsageError("Give --subset, or --order (with or without --sample), not both.")
    asked: dict[str, Any] = {"order": order, "sample": sample, "random_state": seed}
    if subsets:
        asked = {"subsets": [tuple(split_names([text])) for text in subsets]}
    chunks = reader.chunks(data)
    first = next(chunks)
    if dry_run:
        chosen = choose_subsets(first.domain, **asked)
        taken = memory_of_subsets(first.domain.shape, chosen)
        if as_json:
            echo_json({"tables": len(chosen), "bytes": taken})
        else:
            room = format_bytes(taken)
            click.echo(f"{len(chosen):,} tables would take {room}. Nothing was counted.")
        return
    counted = Marginals.count(chain([first], chunks), **asked)
    counted.write(output)
    if as_json:
        totals = zip(counted.subsets, counted.totals.tolist(), strict=True)
        tables = [{"names": names, "total": total} for names, total in totals]
        echo_json({"folder": output, "tables": tables})
    click.echo(f"Written: {counted!r} to {output}.", err=True)
