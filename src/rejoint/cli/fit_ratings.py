"""``rejoint fit-ratings``: from rows of user, item and rating to a recommender."""

import click

from rejoint.cli import options
from rejoint.cli.group import echo, in_options, keep_best
from rejoint.cli.options import DataReader, source_name, split_names
from rejoint.cli.output import check_output, echo_json, say_written, to_plain, write_saved
from rejoint.cli.raw_table import read_raw
from rejoint.io.fit_notes import fit_notes
from rejoint.text import plural

EXAMPLES = """\b
Examples:
  rejoint fit-ratings ratings.csv -o films.rejoint
  rejoint fit-ratings ratings.csv --columns user,film,stars -o films.rejoint
  rejoint fit-ratings bought.csv --implicit --columns customer,product -o shop.rejoint
  rejoint recommend films.rejoint --rated "Heat=5" -k 3"""


@click.command("fit-ratings", epilog=EXAMPLES)
@click.argument("data", metavar="DATA")
@click.option(
    "--columns",
    "named",
    metavar="USER,ITEM,RATING[,TIME]",
    help="Names of the columns; by default the first three of DATA. Of several ratings of an item "
    "by a user the latest counts, without a time the last one.",
)
@click.option(
    "--implicit",
    is_flag=True,
    help="DATA has choices without ratings: its columns are USER,ITEM, by default the first two.",
)
@click.option("--half-up", is_flag=True, help="Round half stars up to whole ones.")
@options.model
@options.seed
@options.as_json
@options.of_file
def command(
    data: str,
    named: str | None,
    implicit: bool,
    half_up: bool,
    output: str,
    seed: int,
    as_json: bool,
    reader: DataReader,
) -> None:
    """Learn what users choose and like from rows of user, item and rating, for `recommend`.

    Rows that lack one of the three are left out. Ctrl-C ends the fit and keeps the samples so far
    (exit code 3); before the first sample nothing is written (exit code 130).
    """
    # scikit-learn takes a second to import, which other fits need not wait for.
    from rejoint.estimators.recommender.joint_recommender import JointRecommender

    check_output(output, as_json)
    raw = read_raw(data, reader)
    names = split_names([named]) if named else list(raw.names[: 2 if implicit else 3])
    if len(names) not in ((2,) if implicit else (3, 4)):
        number, more = ("two", "") if implicit else ("three", ",stars")
        raise click.UsageError(f"--columns: name {number} columns, such as user,film{more}.")
    rows = list(zip(*(raw.values(name) for name in names), strict=True))
    there = [row for row in rows if None not in row]
    users = len({row[0] for row in there})
    cells = plural(len(there), "choice" if implicit else "rating")
    echo(
        f"{data}: {cells} by {plural(users, 'user')} (columns {', '.join(names)})",
        err=True,
    )
    model = JointRecommender(
        "implicit" if implicit else "explicit", half_up=half_up, random_state=seed
    )
    keep_best(lambda: model.fit(there))
    result = model.result_
    echo(in_options(result.stop), err=True)
    notes = fit_notes(result, ratings=names[:3], source=source_name(data), seed=seed)
    room = write_saved(output, model.to_saved(to_plain(notes)))
    size = {"users": len(model.users_), "items": len(model.items_)}
    if as_json:
        echo_json({"model": output, "bytes": room, **size, **notes})
    parts = [plural(size["users"], "user"), plural(size["items"], "item")]
    say_written(output, parts, room)
