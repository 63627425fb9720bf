"""``rejoint recommend``: items that somebody with some ratings will like."""

from collections.abc import Mapping
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from rejoint.cli.group import echo
from rejoint.cli.options import (
    DataReader,
    as_json,
    domain_options,
    load_with_notes,
    split_names,
)
from rejoint.cli.output import echo_json, show_table
from rejoint.cli.raw_table import read_raw
from rejoint.estimators.recommender.best_set import best_set
from rejoint.pmf.pmf import LowRankPMF

EXAMPLES = """\b
Examples:
  rejoint fit-ratings ratings.csv -o films.rejoint --columns user,film,stars
  rejoint recommend films.rejoint --rated "Heat=5" --rated "Ghost=1" -k 3
  rejoint recommend films.rejoint --data ratings.csv --user u1 --by like --json
  rejoint recommend films.rejoint --rated "Heat=5" --explain Ronin
  rejoint recommend films.rejoint --rated "Heat=5" --bundle -k 2"""


@click.command("recommend", epilog=EXAMPLES)
@click.argument("model", metavar="MODEL")
@click.option("--rated", multiple=True, metavar="ITEM=RATING", help="What somebody has rated.")
@click.option("--data", metavar="DATA", help="Ratings, from which those of --user are taken.")
@click.option("--user", metavar="ID", help="Whose ratings of DATA.")
@click.option("-k", "count", type=click.IntRange(min=1), default=10, show_default=True)
@click.option("--by", type=click.Choice(["expected", "like"]), default="expected", help="Order.")
@click.option("--threshold", type=float, help="The lowest rating that means liked; the top 30 %.")
@click.option("--among", metavar="A,B,...", help="Only these items.")
@click.option("--bundle", is_flag=True, help="The -k items most probably liked all together.")
@click.option("--explain", metavar="ITEM", help="Which ratings move the one expected of ITEM.")
@as_json
@domain_options
def command(
    model: str,
    rated: tuple[str, ...],
    data: str | None,
    user: str | None,
    count: int,
    by: str,
    threshold: float | None,
    among: str | None,
    bundle: bool,
    explain: str | None,
    as_json: bool,
    reader: DataReader,
) -> None:
    """Recommend items by a model whose variables are items and whose levels are ratings.

    `rejoint fit-ratings` makes one from rows of user, item, rating. Somebody new needs no new
    fit: give what they have rated.
    """
    if (data is None) != (user is None):
        raise click.UsageError("--data and --user go together.")
    pmf, notes = load_with_notes(model)
    pmf = pmf.mixture
    _refuse_labels(pmf)
    ratings = dict(map(_rated, rated))
    if data is not None and user is not None:
        ratings |= _of_user(data, user, notes, reader)
    if explain is not None:
        _explain(pmf, ratings, explain, as_json)
        return
    known = pmf.condition(ratings) if ratings else pmf
    wanted = split_names([among]) if among else pmf.domain.names
    pmf.domain.indices(wanted)  # an unknown name is an error here
    items = [name for name in known.domain.names if name in wanted]
    likes = {item: _like(known, item, threshold) for item in items}
    if bundle:
        _bundle(known, likes, count, as_json)
        return
    found: list[dict[str, Any]] = [
        {"item": item, "expected": known.expect(item), "like": float(like @ known.weights)}
        for item, like in likes.items()
    ]
    best = sorted(found, key=lambda row: -row[by])[:count]
    if as_json:
        echo_json(best)
        return
    rows = [(row["item"], f"{row['expected']:.2f}", f"{row['like']:.3f}") for row in best]
    show_table(("item", "expected", "liked"), rows)


def _refuse_labels(pmf: LowRankPMF) -> None:
    for variable in pmf.domain:
        try:
            _ = variable.numeric
        except ValueError:
            raise ValueError(
                f"This model is not of ratings: {variable.name!r} has levels that are no numbers. "
                "Make one by rejoint fit-ratings."
            ) from None


def _rated(text: str) -> tuple[str, float]:
    item, found, rating = text.rpartition("=")
    try:
        value = float(rating)
    except ValueError:
        found = ""
    if not found or not item:
        raise click.UsageError(f"--rated {text}: write ITEM=RATING, such as Heat=5.")
    return item.strip(), value


def _of_user(
    data: str, user: str, notes: Mapping[str, Any], reader: DataReader
) -> dict[str, float]:
    """Return what a user has rated, from rows of user, item, rating."""
    raw = read_raw(data, reader)
    names = notes.get("ratings")
    if not isinstance(names, list):
        names = list(raw.names[:3])
    people, items, stars = (raw.values(name) for name in names)
    rows = zip(people, items, stars, strict=True)
    found = {str(item): float(s) for who, item, s in rows if str(who) == user and s is not None}
    if not found:
        raise ValueError(f"{data}: user {user!r} has rated nothing (column {names[0]!r}).")
    return found


def _like(pmf: LowRankPMF, item: str, threshold: float | None) -> NDArray[np.float64]:
    """Return the probability that each class likes an item: a rating of the threshold or more.

    Without a threshold, the top 30 % of the scale means liked.
    """
    values, factor = pmf.domain[item].numeric, pmf.factors[pmf.domain.index(item)]
    low, high = float(values.min()), float(values.max())
    if threshold is not None and threshold > high:
        raise ValueError(f"--threshold {threshold:g} is above the highest rating, {high:g}.")
    least = low + 0.7 * (high - low) - 1e-9 if threshold is None else threshold
    likes: NDArray[np.float64] = factor[values >= least].sum(axis=0)
    return likes


def _bundle(
    pmf: LowRankPMF, likes: Mapping[str, NDArray[np.float64]], count: int, as_json: bool
) -> None:
    if count > len(likes):
        raise ValueError(f"A bundle of {count} items was asked for, but {len(likes)} are left.")
    found = best_set(pmf.weights, np.array(list(likes.values())), count)
    items = [list(likes)[n] for n in found.items]
    if as_json:
        echo_json({"items": items, "probability": found.probability, "exact": found.exact})
        return
    sure = "" if found.exact else f" (none is above {found.bound:.4f})"
    echo(f"Liked all together with probability {found.probability:.4f}{sure}:")
    for item in items:
        echo(f"  {item}")


def _explain(pmf: LowRankPMF, ratings: dict[str, float], item: str, as_json: bool) -> None:
    pmf.domain.index(item)
    given = {name: rating for name, rating in ratings.items() if name != item}
    expected, baseline = float(pmf.expect(item, given)), float(pmf.expect(item))
    moves: list[dict[str, Any]] = []
    for name, rating in given.items():
        rest = {other: given[other] for other in given if other != name}
        effect = expected - float(pmf.expect(item, rest))
        moves.append({"item": name, "rating": rating, "effect": effect})
    moves.sort(key=lambda move: -abs(move["effect"]))
    if as_json:
        echo_json({"item": item, "expected": expected, "baseline": baseline, "moves": moves})
        return
    echo(f"{item}: {expected:.2f} expected ({baseline:.2f} knowing nothing)")
    for move in moves:
        echo(f"  {move['effect']:+.2f}  {move['item']} rated {move['rating']:g}")
