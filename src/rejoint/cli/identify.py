"""``rejoint identify``: what tables can say about a model of some rank."""

from pathlib import Path
from typing import Any

import click

from rejoint import identifiability
from rejoint.cli import options
from rejoint.cli.group import echo, in_options
from rejoint.cli.options import TableReader, load_with_notes, split_names
from rejoint.cli.output import echo_json, show_table
from rejoint.domain.domain import Domain
from rejoint.identifiability.model_verdict import model_verdict

EXAMPLES = """\b
Examples:
  rejoint identify --levels 3,3,3,3,3,3 --order 3 --rank 5
  rejoint identify --levels 2,2,2,2 --order 2 --rank 2 --local
  rejoint identify patients.rejoint
  rejoint identify triples --rank 3"""


@click.command("identify", epilog=EXAMPLES)
@click.argument("source", metavar="[MODEL|DIR]", required=False)
@click.option("--levels", metavar="I,J,...", help="Number of levels of each variable.")
@click.option(
    "--order", type=click.IntRange(min=1), help="All tables of this many variables; 3 by default."
)
@options.subsets
@click.option("--rank", type=click.IntRange(min=1), help="Number of classes to check.")
@click.option("--local", is_flag=True, help="Also test whether the classes are locally unique.")
@click.option(
    "--plan",
    is_flag=True,
    help="Find a few tables that determine --rank, in addition to the given ones.",
)
@click.option(
    "--all", "every", is_flag=True, help="Also show bounds that are printed but not proved."
)
@options.as_json
@options.of_tables
def command(
    source: str | None,
    levels: str | None,
    order: int | None,
    subsets: tuple[str, ...],
    rank: int | None,
    local: bool,
    plan: bool,
    every: bool,
    as_json: bool,
    table_reader: TableReader,
) -> None:
    """Show up to which number of classes tables determine a model.

    The variables and tables are those of --levels with --order or --subset (variables x0, x1,
    ...), of a folder of tables, or of a MODEL, whose own classes are examined as well: with the
    tables it was fitted to, or those of --order or --subset.
    """
    if (source is None) == (levels is None):
        raise click.UsageError("Give exactly one of a MODEL, a DIR of tables, or --levels.")
    if order and subsets:
        raise click.UsageError("Give --order or --subset, not both.")
    asked: dict[str, Any] = {"order": order, "subsets": [tuple(split_names([s])) for s in subsets]}
    asked = {key: value for key, value in asked.items() if value}
    model = given = None
    if levels is not None:
        base = Domain.of_shape(_read_sizes(levels))
        asked = asked or {"order": min(3, len(base))}
    elif source is not None and source != "-" and Path(source).is_dir():
        tables = table_reader.read(source)
        base, asked = tables.domain, asked or {"subsets": tables.subsets}
    else:
        model, _ = load_with_notes(str(source))
        base, rank = model.domain, rank or model.rank
        if not asked and model.tables is not None and model.rank == rank:
            given = model_verdict(model)
        if not asked and model.tables is not None:
            asked = {"subsets": model.tables.named_subsets(base)}
        asked = asked or {"order": min(3, len(base))}
    if rank is None and (local or plan):
        raise click.UsageError(f"--{'local' if local else 'plan'} needs --rank.")
    said = identifiability.report(base, rank=rank, **asked)
    details: list[Any] = [] if given is None else [given]
    if given is None and model is not None and model.rank == rank:
        details.append(identifiability.certify(model, **asked))
    if local and rank is not None:
        details.append(identifiability.jacobian(base, rank, **asked))
    planned = None
    if plan and rank is not None:
        there = asked.get("subsets", ())
        planned = identifiability.plan(base, rank, order=order or 3, given=there)
    _show(said, details, planned, every, as_json)


def _read_sizes(text: str) -> list[int]:
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or min(found) < 1:
        raise click.UsageError(f"--levels {text}: write whole numbers, such as 3,3,2.")
    return found


def _show(said: Any, details: list[Any], planned: Any, every: bool, as_json: bool) -> None:
    if as_json:
        bounds = [
            {"name": b.name, "rank": b.rank, "proved": b.proved, "rests_on": b.assumptions}
            for b in (*said.bounds, *said.limits)
        ]
        echo_json(
            {
                "rank": said.rank,
                "proved": said.best.rank,
                "counting": said.counting,
                "verdict": in_options(said.verdict),
                "details": [in_options(found.verdict) for found in details],
                "bounds": bounds,
                **({} if planned is None else {"plan": planned.subsets}),
            }
        )
        return
    rows = [
        (b.name, b.standing, b.groups, b.rank)
        for b in (*said.bounds, *said.limits)
        if every or b.proved
    ]
    show_table(("result", "", "groups", "rank"), rows, left=3)
    echo(f"\n{in_options(said.verdict)}")
    for found in details:
        echo(in_options(str(found)))
    if planned is not None:
        names = "; ".join(", ".join(subset) for subset in planned.subsets) or "none are missing"
        echo(f"Tables to add for rank {planned.rank}: {names}.")
