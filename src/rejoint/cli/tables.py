"""``rejoint tables``: records counted into tables, written to a folder."""

from itertools import chain
from typing import Any

import click
import numpy as np

from rejoint.cli import options
from rejoint.cli.group import echo
from rejoint.cli.options import DataReader, split_names
from rejoint.cli.output import echo_json
from rejoint.cost import Cost
from rejoint.marginals.marginals import Marginals
from rejoint.marginals.protect import Protection, protect
from rejoint.marginals.subsets import choose_subsets, memory_of_subsets
from rejoint.text import format_bytes, format_number, plural

#: Seconds that it takes to write a table of a few cells, at the least and at the most.
WRITTEN = (4e-4, 1.2e-3)

EXAMPLES = """\b
Examples:
  rejoint tables patients.csv -o triples
  rejoint tables patients.csv -o pairs --order 2
  rejoint tables patients.csv -o some --subset smoke,lung --subset smoke,bronc,dysp
  rejoint tables patients.csv -o triples --dry-run
  rejoint tables patients.csv -o public --order 2 --min-count 5 --round 5"""


@click.command("tables", epilog=EXAMPLES)
@click.argument("data", metavar="DATA")
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    required=True,
    help="The output folder; created, or replaced as a whole.",
)
@click.option("--order", type=click.IntRange(min=1), help="Variables of each table; 3 by default.")
@options.subsets
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    help="Number of tables to draw at random; all by default.",
)
@click.option(
    "--min-count",
    type=click.IntRange(min=2),
    help="Hold back counts below this, and further cells so that totals do not reveal them.",
)
@click.option(
    "--round",
    "round_to",
    type=click.IntRange(min=2),
    help="Round counts to multiples of this, up or down at random.",
)
@options.seed
@click.option(
    "--dry-run",
    is_flag=True,
    help="Only report how many tables there would be and how large they are.",
)
@options.as_json
@options.of_data
def command(
    data: str,
    output: str,
    order: int | None,
    subsets: tuple[str, ...],
    sample: int | None,
    min_count: int | None,
    round_to: int | None,
    seed: int,
    dry_run: bool,
    as_json: bool,
    reader: DataReader,
) -> None:
    """Count records into cross-tables that can be shared instead of the records.

    Each table is counted from the records that have all of its cells. DATA is read in parts, in
    memory that does not grow with it. `rejoint fit-tables DIR` learns a model from the tables.
    --min-count and --round protect small counts, and report what that costs in accuracy.
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
            echo(f"{plural(len(chosen), 'table')} would take {room}. Nothing was counted.")
        return
    number = len(choose_subsets(first.domain, **asked))
    written = Cost(0.0, *(number * seconds for seconds in WRITTEN))
    written.check(
        f"Writing {plural(number, 'table')}", "--subset, --sample and a lower --order take less"
    )
    counted = Marginals.count(chain([first], chunks), **asked)
    said = ""
    if min_count or round_to:
        protection = protect(counted, min_count or 0, round_to or 0, random_state=seed)
        counted, said = protection.tables, _cost(protection)
    counted.write(output)
    if as_json:
        totals = zip(counted.subsets, counted.totals.tolist(), strict=True)
        tables = [{"names": names, "total": total} for names, total in totals]
        echo_json({"folder": output, "tables": tables})
    echo(f"Written: {counted!r} to {output}.{said}", err=True)


def _cost(protection: Protection) -> str:
    """What was held back, and how far the tables are from the counted ones."""
    distance = protection.distance
    worst = ", ".join(protection.tables.subsets[int(np.argmax(distance))])
    small, further = protection.small, protection.further
    held = f" Held back: {plural(small, 'small count')} and {plural(further, 'further cell')}."
    cost = (
        " The written tables differ from the counted ones by "
        f"{format_number(float(distance.mean()))} of the mass on average and by at most "
        f"{format_number(float(distance.max()))} ({worst})."
    )
    return (held if protection.small else "") + cost
