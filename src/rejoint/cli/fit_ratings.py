"""``rejoint fit-ratings``: from rows of user, item and rating to a model file."""

from typing import Any

import click

from rejoint.cli.group import echo, keep_best
from rejoint.cli.options import (
    DataReader,
    as_json,
    draws_option,
    file_options,
    model_option,
    rank_option,
    seed_option,
    source_name,
    split_names,
)
from rejoint.cli.output import check_output, end_fit
from rejoint.cli.raw_table import read_raw
from rejoint.io.fit_notes import fit_notes

EXAMPLES = """\b
Examples:
  rejoint fit-ratings ratings.csv -o films.rejoint
  rejoint fit-ratings ratings.csv --columns user,film,stars -o films.rejoint --rank 2
  rejoint recommend films.rejoint --rated "Heat=5" -k 3"""


@click.command("fit-ratings", epilog=EXAMPLES)
@click.argument("data", metavar="DATA")
@click.option(
    "--columns",
    "three",
    metavar="USER,ITEM,RATING",
    help="Names of the three columns; by default those with usual names, such as userId, movie, "
    "stars, or else the first three of DATA.",
)
@model_option
@rank_option
@click.option(
    "--solver",
    type=click.Choice(["auto", "traits", "ml", "map", "bayes"]),
    default="auto",
    show_default=True,
    help="Users as points in a space of a few traits (auto without --rank), or free classes: by "
    "likelihood, with a prior (auto with --rank), averaged over the posterior.",
)
@draws_option
@seed_option
@as_json
@file_options
def command(
    data: str,
    three: str | None,
    output: str,
    rank: int | None,
    solver: str,
    draws: bool,
    seed: int,
    as_json: bool,
    reader: DataReader,
) -> None:
    """Learn what users like from rows of user, item and rating, for `recommend`.

    The variables of the model are the items, and their levels are the ratings. Rows that lack one
    of the three are left out. Ctrl-C ends the fit and keeps the best model so far (exit code 3).
    """
    # scikit-learn takes a second to import, which other fits need not wait for.
    from rejoint.estimators.recommender.joint_recommender import JointRecommender
    from rejoint.estimators.recommender.ratings import usual_names

    check_output(output, as_json)
    if solver == "traits" and rank is not None:
        raise click.UsageError("--rank goes without --solver traits, which has no free classes.")
    if solver == "auto":
        solver = "traits" if rank is None else "map"
    raw = read_raw(data, reader)
    found = usual_names(raw.names)
    usual = [name for names in found for name in names] if all(map(len, found)) else []
    names = split_names([three]) if three else usual if len(usual) == 3 else list(raw.names[:3])
    if len(names) != 3:
        raise click.UsageError("--columns: name three columns, such as user,film,stars.")
    rows = list(zip(*(raw.values(name) for name in names), strict=True))
    there = [row for row in rows if None not in row]
    users = len({row[0] for row in there})
    echo(
        f"{data}: {len(there):,} ratings by {users:,} users (columns {', '.join(names)})", err=True
    )
    asked: dict[str, Any] = {"rank": rank or "auto", "solver": solver, "random_state": seed}
    result = keep_best(lambda: JointRecommender(**asked).fit(there).result_)
    notes = fit_notes(result, ratings=names, source=source_name(data), seed=seed)
    end_fit(output, result.pmf, result, notes, draws=draws, as_json=as_json)
