"""``rejoint fit-ratings``: from rows of user, item and rating to a recommender."""

from typing import Any

import click

from rejoint.cli.group import echo, in_options, keep_best
from rejoint.cli.options import Options, declare, option, source_name, split_names
from rejoint.cli.output import (
    check_output,
    echo_json,
    model_option,
    say_written,
    to_plain,
    write_saved,
)
from rejoint.cli.raw_table import read_raw
from rejoint.io.fit_notes import fit_notes
from rejoint.text import plural


@declare(
    "DATA --seed --json +file",
    option(
        "--columns USER,ITEM,RATING[,TIME]",
        "Names of the columns; by default the first three of DATA. Of several ratings of an item "
        "by a user the latest counts, without a time the last one.",
        name="named",
    ),
    option(
        "--implicit",
        "DATA has choices without ratings: its columns are USER,ITEM, by default the first two.",
    ),
    option("--half-up", "Round half stars up to whole ones."),
    model_option,
)
def command(o: Options) -> None:
    """Learn what users choose and like from rows of user, item and rating, for `recommend`.

    Rows that lack one of the three are left out. Ctrl-C ends the fit and keeps the samples so far
    (exit code 3); before the first sample nothing is written (exit code 130).

    Examples
    --------
      rejoint fit-ratings ratings.csv -o films.rejoint
      rejoint fit-ratings ratings.csv --columns user,film,stars -o films.rejoint
      rejoint fit-ratings bought.csv --implicit --columns customer,product -o shop.rejoint
      rejoint recommend films.rejoint --rated "Heat=5" -k 3
    """
    # scikit-learn takes a second to import, which other fits need not wait for.
    from rejoint.estimators.recommender.joint_recommender import JointRecommender

    check_output(o.output, o.json)
    raw = read_raw(o.data, o)
    names = split_names([o.named]) if o.named else list(raw.names[: 2 if o.implicit else 3])
    if len(names) not in ((2,) if o.implicit else (3, 4)):
        number, more = ("two", "") if o.implicit else ("three", ",stars")
        raise click.UsageError(f"--columns: name {number} columns, such as user,film{more}.")
    rows = list(zip(*(raw.values(name) for name in names), strict=True))
    rows = [row for row in rows if None not in row]
    users = plural(len({row[0] for row in rows}), "user")
    cells = plural(len(rows), "choice" if o.implicit else "rating")
    echo(f"{o.data}: {cells} by {users} (columns {', '.join(names)})", err=True)
    feedback: Any = "implicit" if o.implicit else "explicit"
    model = JointRecommender(feedback, half_up=o.half_up, random_state=o.seed)
    keep_best(lambda: model.fit(rows))
    result = model.result_
    echo(in_options(result.stop), err=True)
    notes = fit_notes(result, ratings=names[:3], source=source_name(o.data), seed=o.seed)
    room = write_saved(o.output, model.to_saved(to_plain(notes)))
    size = {"users": len(model.users_), "items": len(model.items_)}
    if o.json:
        echo_json({"model": o.output, "bytes": room, **size, **notes})
    say_written(o.output, [plural(size["users"], "user"), plural(size["items"], "item")], room)
