"""``rejoint recommend``: items that somebody with some ratings will choose and like."""

from typing import TYPE_CHECKING, Any

import click

from rejoint.cli import options
from rejoint.cli.group import echo
from rejoint.cli.options import DataReader, load_saved, split_names
from rejoint.cli.output import echo_json, show_table
from rejoint.cli.raw_table import read_raw
from rejoint.text import cite, nearest

if TYPE_CHECKING:
    from rejoint.estimators.recommender.joint_recommender import JointRecommender

EXAMPLES = """\b
Examples:
  rejoint fit-ratings ratings.csv -o films.rejoint --columns user,film,stars
  rejoint recommend films.rejoint --user u1
  rejoint recommend films.rejoint --rated "Heat=5" --rated "Ghost=1" -k 3
  rejoint recommend films.rejoint --data new.csv --user u99 --by like --json
  rejoint recommend films.rejoint --rated "Heat=5" --explain Ronin
  rejoint recommend films.rejoint --rated "Heat=5" --bundle -k 2"""


@click.command("recommend", epilog=EXAMPLES)
@click.argument("model", metavar="MODEL")
@click.option(
    "--rated",
    multiple=True,
    metavar="ITEM=RATING",
    help="An item and its rating; ITEM alone where only choices are known.",
)
@click.option("--user", metavar="ID", help="A user of the fit, or of DATA.")
@click.option(
    "--data", metavar="DATA", help="File of ratings, from which those of --user are taken."
)
@click.option("-k", "count", type=click.IntRange(min=1), default=10, show_default=True)
@click.option(
    "--by",
    type=click.Choice(["score", "probability", "like", "expected"]),
    help="Order by the score, the probability of choosing and liking, that of liking if chosen, or "
    "the expected rating; a bundle by probability or like.",
)
@click.option(
    "--threshold",
    type=float,
    help="The lowest rating that counts as liked; by default the top 30 % of the scale.",
)
@click.option("--among", metavar="A,B,...", help="Recommend only these items.")
@click.option("--seen", is_flag=True, help="Include items that are already rated.")
@click.option(
    "--bundle",
    is_flag=True,
    help="Recommend the -k items that are most probably all liked together.",
)
@click.option(
    "--explain", metavar="ITEM", help="Show which ratings change the expected rating of ITEM."
)
@options.as_json
@options.of_file
def command(
    model: str,
    rated: tuple[str, ...],
    user: str | None,
    data: str | None,
    count: int,
    by: str | None,
    threshold: float | None,
    among: str | None,
    seen: bool,
    bundle: bool,
    explain: str | None,
    as_json: bool,
    reader: DataReader,
) -> None:
    """Recommend items with a model that `rejoint fit-ratings` has made.

    A new user needs no new fit: give their ratings. Items that the user has rated are left out.
    """
    # scikit-learn takes a second to import, which other commands need not wait for.
    from rejoint.estimators.recommender.joint_recommender import JointRecommender

    if data is not None and user is None:
        raise click.UsageError("--data needs --user, whose ratings are used.")
    if rated and user is not None and data is None:
        raise click.UsageError("--rated is for somebody new: leave --user out, or give --data too.")
    if bundle and by not in (None, "probability", "like"):
        raise click.UsageError(f"--bundle can be ordered by probability or like, not by {by}.")
    saved = load_saved(model)
    found = JointRecommender.of_saved(saved, model)
    who: Any = dict(_rated(text, found) for text in rated)
    if data is not None and user is not None:
        who |= _of_user(found, data, user, saved.notes.get("ratings"), reader)
    elif user is not None:
        who = _label(user, found.users_, "user")
    if explain is not None:
        _explain(found, who, explain, as_json)
        return
    asked: dict[str, Any] = {"threshold": threshold, "exclude_seen": not seen}
    if among is not None:
        asked["among"] = [_label(text, found.items_, "item") for text in split_names([among])]
    if by is not None:
        asked["by"] = by
    if bundle:
        _bundle(found, who, count, asked, as_json)
        return
    best = found.recommend(who, count, **asked)
    if as_json:
        echo_json([one._asdict() for one in best])
        return
    rows = [
        (
            str(one.item),
            f"{one.score:.3f}",
            f"{one.probability:.3f}",
            f"{one.like:.3f}",
            f"{one.expected:.2f}",
            ", ".join(map(str, one.because)),
        )
        for one in best
    ]
    heads = ("item", "score", "chosen and liked", "liked if chosen", "expected", "because of")
    show_table(heads, rows)


def _rated(text: str, model: "JointRecommender") -> tuple[Any, float]:
    item, found, rating = text.rpartition("=")
    if model.feedback == "implicit" and not found:
        return _label(text.strip(), model.items_, "item"), 1.0
    try:
        value = float(rating)
    except ValueError:
        found = ""
    if not found or not item:
        raise click.UsageError(f"--rated {text}: write ITEM=RATING, such as Heat=5.")
    return _label(item.strip(), model.items_, "item"), value


def _label(text: str, labels: Any, noun: str) -> Any:
    """Return the id that is written like a text."""
    for label in labels.tolist():
        if str(label) == text:
            return label
    raise KeyError(f"There is no {noun} {cite(text)} in the model.{nearest(text, labels.tolist())}")


def _of_user(
    model: "JointRecommender", data: str, user: str, names: Any, reader: DataReader
) -> dict[Any, float]:
    """Return what a user has rated, from rows of user, item, rating."""
    raw = read_raw(data, reader)
    if not isinstance(names, list):
        names = list(raw.names[: 2 if model.feedback == "implicit" else 3])
    people, items, *rest = (raw.values(name) for name in names)
    stars = rest[0] if rest else [1.0] * len(items)
    rows = zip(people, items, stars, strict=True)
    found = {
        _label(str(item), model.items_, "item"): float(s)
        for who, item, s in rows
        if str(who) == user and s is not None and item is not None
    }
    if not found:
        raise ValueError(f"{data}: user {cite(user)} has rated nothing (column {cite(names[0])}).")
    return found


def _bundle(
    model: "JointRecommender", who: Any, count: int, asked: dict[str, Any], as_json: bool
) -> None:
    found = model.bundle(who, count, **asked)
    if as_json:
        echo_json({"items": list(found.items), "probability": found.probability})
        return
    what = "Liked, if chosen," if asked.get("by") == "like" else "Chosen and liked"
    echo(f"{what} all together with probability {found.probability:.4g}:")
    for item in found.items:
        echo(f"  {item}")


def _explain(model: "JointRecommender", who: Any, item: str, as_json: bool) -> None:
    found = model.explain(who, _label(item, model.items_, "item"))
    if as_json:
        plain = {"item": found.item, "expected": found.expected, "baseline": found.baseline}
        echo_json({**plain, "moves": [move._asdict() for move in found.moves]})
        return
    echo(str(found))
