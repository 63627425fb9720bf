"""``rejoint recommend``: items that somebody with some ratings will choose and like."""

from typing import TYPE_CHECKING, Any

import click

from rejoint.cli.group import echo
from rejoint.cli.options import Options, declare, load_saved, option, several, split_names
from rejoint.cli.output import echo_json, show_table
from rejoint.cli.raw_table import read_raw
from rejoint.text import cite, nearest

if TYPE_CHECKING:
    from rejoint.estimators.recommender.joint_recommender import JointRecommender


@declare(
    "MODEL --json +file",
    several(
        "--rated ITEM=RATING", "An item and its rating; ITEM alone where only choices are known."
    ),
    option("--user ID", "A user of the fit, or of DATA."),
    option("--data DATA", "File of ratings, from which those of --user are taken."),
    option("-k N", default=10),
    option(
        "--by score|probability|like|expected",
        "Order by the score, the probability of choosing and liking, that of liking if chosen, or "
        "the expected rating; a bundle by probability or like.",
    ),
    option(
        "--threshold RATING",
        "The lowest rating that counts as liked; by default the top 30 % of the scale.",
        type=float,
    ),
    option("--among A,B,...", "Recommend only these items."),
    option("--seen", "Include items that are already rated."),
    option("--bundle", "Recommend the -k items that are most probably all liked together."),
    option("--explain ITEM", "Show which ratings change the expected rating of ITEM."),
)
def command(o: Options) -> None:
    """Recommend items with a model that `rejoint fit-ratings` has made.

    A new user needs no new fit: give their ratings. Items that the user has rated are left out.

    Examples
    --------
      rejoint fit-ratings ratings.csv -o films.rejoint --columns user,film,stars
      rejoint recommend films.rejoint --user u1
      rejoint recommend films.rejoint --rated "Heat=5" --rated "Ghost=1" -k 3
      rejoint recommend films.rejoint --data new.csv --user u99 --by like --json
      rejoint recommend films.rejoint --rated "Heat=5" --explain Ronin
      rejoint recommend films.rejoint --rated "Heat=5" --bundle -k 2
    """
    # scikit-learn takes a second to import, which other commands need not wait for.
    from rejoint.estimators.recommender.joint_recommender import JointRecommender

    if o.data is not None and o.user is None:
        raise click.UsageError("--data needs --user, whose ratings are used.")
    if o.rated and o.user is not None and o.data is None:
        raise click.UsageError("--rated is for somebody new: leave --user out, or give --data too.")
    if o.bundle and o.by not in (None, "probability", "like"):
        raise click.UsageError(f"--bundle can be ordered by probability or like, not by {o.by}.")
    saved = load_saved(o.model)
    model = JointRecommender.of_saved(saved, o.model)
    who: Any = dict(_rated(text, model) for text in o.rated)
    if o.data is not None:
        who |= _of_user(model, o, saved.notes.get("ratings"))
    elif o.user is not None:
        who = _label(o.user, model.users_, "user")
    if o.explain is not None:
        why = model.explain(who, _label(o.explain, model.items_, "item"))
        plain = {"item": why.item, "expected": why.expected, "baseline": why.baseline}
        plain["moves"] = [move._asdict() for move in why.moves]
        echo_json(plain) if o.json else echo(str(why))
        return
    asked: dict[str, Any] = {"threshold": o.threshold, "exclude_seen": not o.seen}
    if o.among is not None:
        asked["among"] = [_label(text, model.items_, "item") for text in split_names([o.among])]
    if o.by is not None:
        asked["by"] = o.by
    if o.bundle:
        _bundle(model, who, o, asked)
        return
    best = model.recommend(who, o.k, **asked)
    if o.json:
        echo_json([one._asdict() for one in best])
        return
    rows = [
        (
            str(one.item),
            *(f"{share:.3f}" for share in (one.score, one.probability, one.like)),
            f"{one.expected:.2f}",
            ", ".join(map(str, one.because)),
        )
        for one in best
    ]
    heads = ("item", "score", "chosen and liked", "liked if chosen", "expected", "because of")
    show_table(heads, rows)


def _rated(text: str, model: "JointRecommender") -> tuple[Any, float]:
    item, equals, rating = text.rpartition("=")
    if model.feedback == "implicit" and not equals:
        return _label(text.strip(), model.items_, "item"), 1.0
    try:
        value = float(rating)
    except ValueError:
        item = ""
    if not item:
        raise click.UsageError(f"--rated {text}: write ITEM=RATING, such as Heat=5.")
    return _label(item.strip(), model.items_, "item"), value


def _label(text: str, labels: Any, noun: str) -> Any:
    """Return the id that is written like a text."""
    for label in labels.tolist():
        if str(label) == text:
            return label
    raise KeyError(f"There is no {noun} {cite(text)} in the model.{nearest(text, labels.tolist())}")


def _of_user(model: "JointRecommender", o: Options, names: Any) -> dict[Any, float]:
    """Return what a user has rated, from rows of user, item, rating."""
    raw = read_raw(o.data, o)
    if not isinstance(names, list) or len(names) not in (2, 3):
        names = list(raw.names[: 2 if model.feedback == "implicit" else 3])
    users, items, *rest = (raw.values(name) for name in names)
    stars = rest[0] if rest else [1.0] * len(items)
    ratings = {
        _label(str(item), model.items_, "item"): float(rating)
        for user, item, rating in zip(users, items, stars, strict=True)
        if str(user) == o.user and rating is not None and item is not None
    }
    if not ratings:
        column = cite(names[0])
        raise ValueError(f"{o.data}: user {cite(o.user)} has rated nothing (column {column}).")
    return ratings


def _bundle(model: "JointRecommender", who: Any, o: Options, asked: dict[str, Any]) -> None:
    bundle = model.bundle(who, o.k, **asked)
    if o.json:
        echo_json({"items": list(bundle.items), "probability": bundle.probability})
        return
    what = "Liked, if chosen," if o.by == "like" else "Chosen and liked"
    echo(f"{what} all together with probability {bundle.probability:.4g}:")
    for item in bundle.items:
        echo(f"  {item}")
