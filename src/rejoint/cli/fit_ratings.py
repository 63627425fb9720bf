"""``rejoint fit-ratings``: from rows of user, item and rating to a recommender."""

from typing import Any

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
  rejoint fit-ratings ratings.csv --item-features films.csv -o films.rejoint
  rejoint recommend films.rejoint --rated "Heat=5" -k 3"""


@click.command("fit-ratings", epilog=EXAMPLES)
@click.argument("data", metavar="DATA")
@click.option(
    "--columns",
    "named",
    metavar="USER,ITEM,RATING",
    help="Names of the three columns; by default those with common names, such as userId, movie, "
    "stars, otherwise the first three of DATA.",
)
@click.option(
    "--implicit", is_flag=True, help="DATA has choices without ratings: its columns are USER,ITEM."
)
@click.option("--half-up", is_flag=True, help="Round half stars up to whole ones.")
@click.option(
    "--item-features",
    metavar="FILE",
    help="Features of items; their ids are in the column named as in DATA, or else in the first.",
)
@click.option(
    "--user-features",
    metavar="FILE",
    help="Features of users; their ids are in the column named as in DATA, or else in the first.",
)
@options.model
@options.seed
@options.as_json
@options.of_file
def command(
    data: str,
    named: str | None,
    implicit: bool,
    half_up: bool,
    item_features: str | None,
    user_features: str | None,
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
    from rejoint.estimators.recommender.ratings import columns_by_name

    check_output(output, as_json)
    raw = read_raw(data, reader)
    count = 2 if implicit else 3
    names = columns_by_name(raw.names, implicit) or list(raw.names[:count])
    if named:
        names = split_names([named])
    if len(names) != count and (named or len(names) < count):
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
    features: dict[str, Any] = {
        key: None if path is None else _features(path, reader, column)
        for key, path, column in (
            ("item_features", item_features, names[1]),
            ("user_features", user_features, names[0]),
        )
    }
    keep_best(lambda: model.fit(there, **features))
    result = model.result_
    echo(in_options(result.stop), err=True)
    notes = fit_notes(result, ratings=names, source=source_name(data), seed=seed)
    room = write_saved(output, model.to_saved(to_plain(notes)))
    size = {"users": len(model.users_), "items": len(model.items_)}
    if as_json:
        echo_json({"model": output, "bytes": room, **size, **notes})
    parts = [plural(size["users"], "user"), plural(size["items"], "item")]
    say_written(output, parts, room)


def _features(path: str, reader: DataReader, column: str) -> dict[Any, dict[str, Any]]:
    """Read features by id: the column named as in the ratings, or else the first one."""
    raw = read_raw(path, reader)
    where = column if column in raw.names else raw.names[0]
    others = [name for name in raw.names if name != where]
    ids, *columns = (raw.values(name) for name in (where, *others))
    rows = zip(*columns, strict=True)
    return {
        key: dict(zip(others, row, strict=True))
        for key, row in zip(ids, rows, strict=True)
        if key is not None
    }
