"""Table VII: errors of ratings of movies on three subsets of MovieLens."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks import recommend

from paper import ratings
from paper.beside import Entry, draw, grid, tally
from paper.framework import Done, Expected, Experiment, Section, Table, Text, Unavailable
from paper.printed import MOVIES, ORDERS, TABLE7
from paper.ratings import AVERAGES, LEAST, OTHERS, SPLITS, TUNING

#: Least numbers of movies that users are left out by, to see what the averages become.
LEASTS = (1, 5, 8, 10)
CP = {f"CP ({name})": order for order, name in ORDERS.items()}
METHODS = (*CP, *OTHERS, "BMF")
#: All tables alike, as the paper has it: they must be formed then, which takes a minute a split for
#: quadruples, and is done for so many splits.
ALIKE = {f"{method}, all alike": order for method, order in CP.items()}
FORMED = {2: 3, 3: 3, 4: 1}
#: Figures of an earlier default on the same splits.
BEFORE = (
    "Before, JointRecommender stood for a grid of five traits, without what users choose: RMSE "
    "0.738, 0.766 and 0.878, MAE 0.553, 0.587 and 0.683; and then for at most 16 traits, with one "
    "variance for all items: RMSE 0.740, 0.769 and 0.876, MAE 0.555, 0.589 and 0.682."
)
#: Users drawn from a model, to see what more of them would change, and its rank.
USERS, TRUE_RANK = (2_500, 10_000, 40_000, 160_000), 10


def cells(fast: bool) -> Sequence[Mapping[str, Any]]:
    """Every set, split and method, and ratings drawn from a model."""
    check_data()
    if fast:
        small = {"ranks": [5], "starts": 1, "sweeps": 30}
        quick = ("CP (Pairs)", "CP (Triples)", "Global Average", "User Average", "Movie Average")
        return [settings("action", m, 0) | (small if m in CP else {}) for m in quick]
    found = [drawn_settings(name, users) for name, users in product(MOVIES, USERS)]
    found += [{"dataset": name, "method": "least", "least": k} for name in MOVIES for k in LEASTS]
    for number, name in product(range(SPLITS), MOVIES):
        alike = [method for method, order in ALIKE.items() if number < FORMED[order]]
        found += [settings(name, method, number) for method in (*METHODS, *alike)]
    return found


def check_data() -> None:
    """Raise where the sets are not here: they are not fetched, by their terms."""
    try:
        ratings.ratings_of("action")
    except (OSError, ValueError) as reason:
        raise Unavailable(f"the MovieLens subsets are not here: {reason}") from None


def settings(name: str, method: str, number: int) -> dict[str, Any]:
    """Settings of a cell."""
    tuned = TUNING if method in CP else {}
    tuned = TUNING | {"weighting": "equal"} if method in ALIKE else tuned
    return {"dataset": name, "method": method, "split": number, **tuned}


def drawn_settings(name: str, users: int) -> dict[str, Any]:
    """Settings of a cell with ratings drawn from a model."""
    return {"dataset": name, "method": "drawn", "split": 0, "users": users, "rank": TRUE_RANK}


def work(
    dataset: str, method: str, split: int = 0, least: int = LEAST, **tuned: Any
) -> dict[str, Any]:
    """RMSE and MAE of one method on one split."""
    known = ratings.ratings_of(dataset, least)
    if method == "least":
        return ratings.by_averages(known)
    if method == "drawn":
        return ratings.by_model(known, **tuned)
    if method in CP | ALIKE:
        return ratings.by_tables(known, split, (CP | ALIKE)[method], **tuned)
    if method == "BMF":
        return ratings.by_factors(known, split)
    return recommend.measure(OTHERS[method], known, split)


def summary(done: Done) -> dict[str, dict[str, float]]:
    """Mean RMSE by method and set."""
    found: dict[str, dict[str, float]] = {}
    for method, name in product((*METHODS, *ALIKE), MOVIES):
        values = done.where(method=method, dataset=name).values("rmse")
        if len(values):
            found.setdefault(method, {})[name] = float(values.mean())
    return found


def entries(done: Done, methods: Iterable[str], figure: str) -> dict[str, dict[str, Entry]]:
    """Ours and the printed, by method and set; the figure is rmse or mae."""
    place = {"rmse": 0, "mae": 2}[figure]
    found: dict[str, dict[str, Entry]] = {}
    for method, name in product(methods, MOVIES):
        values = done.where(method=method, dataset=name).values(figure)
        printed = TABLE7[method][name][place : place + 2] if method in TABLE7 else None
        found.setdefault(method, {})[name] = Entry(np.asarray(values), printed)
    return found


def expected(done: Done) -> Iterable[Expected]:
    """One split: no method is far from the printed, and tables foresee better than averages."""
    found = {cell.settings["method"]: cell.values["rmse"] for cell in done}
    for method, rmse in found.items():
        mean = TABLE7[method]["action"][0]
        why = "other, fewer users than the paper's: within a tenth of the printed"
        yield Expected(f"action, {method}, RMSE", rmse, 0.9 * mean, 1.1 * mean, why)
    why = "ratings given others are foreseen better than by the movie alone, with any 2,444 users"
    best = min(found["CP (Pairs)"], found["CP (Triples)"])
    yield Expected(
        "action, tables less movie average", best - found["Movie Average"], -1, -0.03, why
    )


def section(done: Done, folder: Path) -> Section:
    """Both figures, what differs and why, and the picture."""
    rmse, mae = (entries(done, METHODS, figure) for figure in ("rmse", "mae"))
    alike = entries(done, ALIKE, "rmse")
    reached, count = (sum(pair) for pair in zip(tally(rmse), tally(mae), strict=True))
    parts: list[Any] = [
        Text(protocol(done)),
        Text("RMSE:"),
        grid(rmse, MOVIES),
        Text("MAE:"),
        grid(mae, MOVIES),
        Text(
            f"Within two printed standard deviations of the printed mean, or better: {reached} of "
            f"{count} entries. A star marks the others. The printed deviations, .001 to .003, are "
            "those of splits of one set of ratings; here it is another, smaller, set."
        ),
        Text(BEFORE),
        *reasons(done),
        Text(
            "All tables alike, as the paper's objective has it, three splits (quadruples: one), "
            "RMSE:"
        ),
        grid(alike, MOVIES),
        draw(rmse, MOVIES, folder, "table7", "RMSE", "Table VII: errors of ratings"),
    ]
    return Section("Table VII: ratings of movies", parts)


def protocol(done: Done) -> str:
    """What was done, in words."""
    parts = {name: done.where(method="CP (Triples)", dataset=name) for name in MOVIES}
    users = ", ".join(
        f"{name} {part.cells[0].values['users']:,}" for name, part in parts.items() if len(part)
    )
    numbers = sorted({len(part) for part in parts.values()})
    number = " to ".join(map(str, numbers[:: max(1, len(numbers) - 1)]))
    return (
        "20 movies of each genre, ratings in whole stars (half stars go up), users with at least "
        f"{LEAST} of the 20, as in public code of the same line of work ({users} users of a pool "
        f"of public releases of MovieLens). {number} random splits: 70 % of the ratings to learn "
        "from, 10 % to choose by, 20 % to test on; mean and standard deviation, the printed in "
        "brackets. The paper's method is `admm` on all pairs, triples or quadruples of movies, "
        f"two random starts at each rank of {', '.join(map(str, TUNING['ranks']))} (the paper "
        "names none), the lowest RMSE on the 10 % taken. Tables count by their number of users, "
        "so that none need be formed. Biased matrix factorization is scikit-surprise's `SVD`, "
        "tuned on the 10 %. Averages are of what there is to learn from."
    )


def reasons(done: Done) -> list[Text | Table]:
    """Why ours differ from the printed, by what was run to find out."""
    return [
        Text(
            "Why they differ: the ratings are not the paper's. Averages, which have nothing to "
            "tune, show it. RMSE of the three for users with at least so many of the 20 movies; "
            "no such choice among the users of this pool gives all of the printed:"
        ),
        least_table(done),
        Text(
            "And there are fewer users: a table of two movies rests on some 330 of them here, one "
            "of three on 150, one of four on 80. To see what more would change, a model of rank "
            f"{TRUE_RANK} was fitted to the real ratings and users drawn from it, with holes of "
            "real users. RMSE from pairs and triples, all alike, at that rank, and of the model "
            "itself:"
        ),
        users_table(done),
        Text(
            "With 40,000 users and more, pairs and triples come within 0.013 of the printed, and "
            "triples are ahead of pairs by about as much as printed; with 2,500, about as many as "
            "there are here, they are 0.04 to 0.05 above what the model itself can do. So the "
            "number of users accounts for the difference between the paper's rows and these. "
            "Quadruples, which rest on fewer users still, do not help here. Matrix factorization "
            "as printed, or better, is ahead of the tables with so few users; our default, which "
            "learns from the ratings and not from tables, is ahead of it."
        ),
    ]


def least_table(done: Done) -> Table:
    """The averages for other choices of users, and the printed."""
    rows = []
    for name in MOVIES:
        for cell in done.where(method="least", dataset=name):
            shown = [f"{cell.values[m]:.3f}" for m in AVERAGES]
            rows.append([name, str(cell.settings["least"]), f"{cell.values['users']:,}", *shown])
        rows.append([name, "printed", "-", *(f"{TABLE7[m][name][0]:.3f}" for m in AVERAGES)])
    return Table(["", "at least", "users", *(m.lower() for m in AVERAGES)], rows)


def users_table(done: Done) -> Table:
    """What more users would change."""
    rows = []
    for name in MOVIES:
        for cell in done.where(method="drawn", dataset=name):
            shown = [f"{cell.values[key]:.3f}" for key in ("Pairs", "Triples", "truth")]
            rows.append([name, f"{cell.settings['users']:,}", *shown])
        printed = [f"{TABLE7[m][name][0]:.3f}" for m in tuple(CP)[:2]]
        rows.append([name, "printed", *printed, "-"])
    return Table(["model of", "users drawn", "pairs", "triples", "the model itself"], rows)


EXPERIMENT = Experiment("table7", cells, work, section, expected)

if __name__ == "__main__":
    EXPERIMENT.main()
