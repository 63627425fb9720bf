"""``rejoint tables``: records counted into tables, written to a folder."""

from itertools import chain
from typing import Any

import click
import numpy as np

from rejoint.cli.group import echo
from rejoint.cli.options import Options, declare, option
from rejoint.cli.output import echo_json
from rejoint.cost import Cost
from rejoint.marginals.marginals import Marginals
from rejoint.marginals.protect import Protection, protect
from rejoint.marginals.subsets import choose_subsets, memory_of_subsets
from rejoint.text import format_bytes, format_number, plural

#: Seconds that it takes to write a table of a few cells, at the least and at the most.
WRITTEN = (4e-4, 1.2e-3)


@declare(
    "DATA --subset --seed --json +data",
    option("-o --output DIR", "The output folder; created, or replaced as a whole.", required=True),
    option("--order N", "Variables of each table; 3 by default."),
    option("--sample N", "Number of tables to draw at random; all by default."),
    option(
        "--min-count N",
        "Hold back counts below this, and further cells so that totals do not reveal them.",
        type=click.IntRange(min=2),
    ),
    option(
        "--round N",
        "Round counts to multiples of this, up or down at random.",
        type=click.IntRange(min=2),
    ),
    option("--dry-run", "Only report how many tables there would be and how large they are."),
)
def command(o: Options) -> None:
    """Count records into cross-tables that can be shared instead of the records.

    Each table is counted from the records that have all of its cells. DATA is read in parts, in
    memory that does not grow with it. `rejoint fit-tables DIR` learns a model from the tables.
    --min-count and --round protect small counts, and report what that costs in accuracy.

    Examples
    --------
      rejoint tables patients.csv -o triples
      rejoint tables patients.csv -o pairs --order 2
      rejoint tables patients.csv -o some --subset smoke,lung --subset smoke,bronc,dysp
      rejoint tables patients.csv -o triples --dry-run
      rejoint tables patients.csv -o public --order 2 --min-count 5 --round 5
    """
    if o.subset and (o.order or o.sample):
        raise click.UsageError("Give --subset, or --order (with or without --sample), not both.")
    asked: dict[str, Any] = {"order": o.order, "sample": o.sample, "random_state": o.seed}
    if o.subset:
        asked = {"subsets": o.subsets()}
    chunks = o.read_chunks(o.data)
    first = next(chunks)
    chosen = choose_subsets(first.domain, **asked)
    number = plural(len(chosen), "table")
    if o.dry_run:
        size = memory_of_subsets(first.domain.shape, chosen)
        if o.json:
            echo_json({"tables": len(chosen), "bytes": size})
        else:
            echo(f"{number} would take {format_bytes(size)}. Nothing was counted.")
        return
    cost = Cost(0.0, *(len(chosen) * seconds for seconds in WRITTEN))
    cost.check(f"Writing {number}", "--subset, --sample and a lower --order take less")
    counted, loss = Marginals.count(chain([first], chunks), **asked), ""
    if o.min_count or o.round:
        protection = protect(counted, o.min_count or 0, o.round or 0, random_state=o.seed)
        counted, loss = protection.tables, _describe_loss(protection)
    counted.write(o.output)
    if o.json:
        totals = zip(counted.subsets, counted.totals.tolist(), strict=True)
        written = [{"names": names, "total": total} for names, total in totals]
        echo_json({"folder": o.output, "tables": written})
    echo(f"Written: {counted!r} to {o.output}.{loss}", err=True)


def _describe_loss(protection: Protection) -> str:
    """What was held back, and how far the tables are from the counted ones."""
    distance = protection.distance
    worst = ", ".join(protection.tables.subsets[int(np.argmax(distance))])
    small, further = protection.small, protection.further
    held = f" Held back: {plural(small, 'small count')} and {plural(further, 'further cell')}."
    return (held if small else "") + (
        " The written tables differ from the counted ones by "
        f"{format_number(float(distance.mean()))} of the mass on average and by at most "
        f"{format_number(float(distance.max()))} ({worst})."
    )
