"""Ratings of movies foreseen: the paper's method, its rivals, and ratings drawn from a model."""

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np
from benchmarks import recommend

import rejoint as rj
from paper import coupled
from paper.framework import Unavailable
from paper.printed import ORDERS

#: Splits, and users with fewer of the 20 movies left out, as public code of the same line of work
#: does.
SPLITS, LEAST = 10, 5
#: The rows that the benchmark has, by their names there.
OTHERS = {
    "Global Average": "global average",
    "User Average": "user average",
    "Movie Average": "movie average",
    "JointRecommender": "JointRecommender",
}
AVERAGES = tuple(OTHERS)[:3]
#: Ranks tried (the paper names none), random starts of each, sweeps.
TUNING: dict[str, Any] = {"ranks": [5, 10], "starts": 2, "sweeps": 50, "weighting": "count"}


@cache
def ratings_of(name: str, least: int = LEAST) -> np.ndarray:
    """Users x movies, NaN where there is no rating."""
    ratings = recommend.load(name)
    return np.asarray(ratings[(~np.isnan(ratings)).sum(axis=1) >= least])


def count_ratings(name: str) -> int:
    """Ratings of the users taken."""
    return int((~np.isnan(ratings_of(name))).sum())


def by_tables(
    ratings: np.ndarray,
    number: int,
    order: int,
    ranks: Sequence[int],
    starts: int,
    sweeps: int,
    weighting: coupled.Weighting,
) -> dict[str, Any]:
    """The paper's method: the rank with the lowest RMSE on the validation part."""
    learn, judge, test = recommend.split(ratings, number)
    known = as_records(recommend.only(ratings, learn))
    tried = []
    for model in coupled.models(known, order, ranks, starts, sweeps, weighting):
        expected = foreseen(model, known.codes)
        off = expected[test] - ratings[test]
        rmse = root(expected[judge] - ratings[judge])
        tried.append((rmse, model.rank, root(off), float(np.abs(off).mean())))
    validation, rank, rmse, mae = min(tried)
    users = {"users": len(ratings), "validation": validation}
    return {"rmse": rmse, "mae": mae, "rank": rank, **users}


def by_classes(ratings: np.ndarray, number: int) -> dict[str, Any]:
    """`rj.estimate` on the ratings as records: hidden classes, with nothing told."""
    learn, _, test = recommend.split(ratings, number)
    known = as_records(recommend.only(ratings, learn))
    model = rj.estimate(known, random_state=number, progress=False).pmf
    off = foreseen(model, known.codes)[test] - ratings[test]
    return {"rmse": root(off), "mae": float(np.abs(off).mean()), "rank": model.rank}


def some_of(ratings: np.ndarray, share: float, number: int) -> np.ndarray:
    """A random part of the users."""
    users = np.random.default_rng(number).permutation(len(ratings))
    return ratings[np.sort(users[: round(share * len(users))])]


def by_factors(ratings: np.ndarray, number: int) -> dict[str, Any]:
    """Biased matrix factorization by scikit-surprise, tuned on the validation part."""
    if find_spec("surprise") is None:
        raise Unavailable("scikit-surprise is not installed: pip install 'rejoint[paper]'")
    from surprise import SVD

    learn, judge, test = recommend.split(ratings, number)
    fits = [
        recommend.surprise_fit(
            SVD(n_factors=factors, n_epochs=100, reg_all=pull, random_state=0), ratings, learn
        )
        for factors, pull in product((20, 50), (0.05, 0.1))
    ]
    found, _ = recommend.best_of(fits, ratings, judge, test)
    off = found - ratings[test]
    return {"rmse": root(off), "mae": float(np.abs(off).mean())}


def by_averages(ratings: np.ndarray) -> dict[str, Any]:
    """RMSE of the three averages, which have nothing to tune, over the splits."""
    found: dict[str, Any] = {"users": len(ratings)}
    for method in AVERAGES:
        runs = [recommend.measure(OTHERS[method], ratings, k)["rmse"] for k in range(SPLITS)]
        found[method] = float(np.mean(runs))
    return found


def as_records(ratings: np.ndarray) -> rj.Records:
    """Whole stars, one to five, as levels."""
    codes = np.where(np.isnan(ratings), 0, ratings).astype(np.int16) - 1
    stars = {f"movie {n}": [1, 2, 3, 4, 5] for n in range(ratings.shape[1])}
    return rj.Records(rj.Domain.of(stars), np.ascontiguousarray(codes))


def foreseen(model: rj.LowRankPMF, codes: np.ndarray) -> np.ndarray:
    """Expected rating of every movie by every user, given the ratings that are known."""
    means = np.stack([np.arange(1, 6) @ factor for factor in coupled.softened(model)])
    return np.asarray(coupled.class_shares(model, codes) @ means.T)


def root(off: np.ndarray) -> float:
    """Root of the mean square."""
    return float(np.sqrt(np.mean(off**2)))


def by_model(ratings: np.ndarray, users: int, rank: int) -> dict[str, Any]:
    """Ratings of many users drawn from a model fitted to the real ones, with real users' holes.

    What the tables then give beside what the model itself foresees is the price of few users.
    """
    rng = np.random.default_rng(0)
    truth = rj.estimate(as_records(ratings), rank, solver="map", random_state=0).pmf
    stars = truth.sample(users, random_state=1).codes + 1.0
    holes = np.isnan(ratings)[rng.integers(len(ratings), size=users)]
    drawn = np.where(holes, np.nan, stars)
    learn, _, test = recommend.split(drawn, 0)
    found: dict[str, Any] = {"rated": len(learn[0])}
    codes = as_records(recommend.only(drawn, learn)).codes
    found["truth"] = root(foreseen(truth, codes)[test] - drawn[test])
    for order in (2, 3):
        tuned = TUNING | {"ranks": [rank], "weighting": "equal"}  # tables do not grow with users
        found[ORDERS[order]] = by_tables(drawn, 0, order, **tuned)["rmse"]
    return found
