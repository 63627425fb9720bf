"""Recommended movies and predicted ratings beside ALS, matrix factorization and others; speed.

    REJOINT_DATA=<folder> python benchmarks/recommend.py [--quick] [--sets action] [--json file]
    REJOINT_DATA=<folder> python benchmarks/recommend.py --top [--cases small,random,1 ...]
    python benchmarks/recommend.py --speed
    python benchmarks/recommend.py --large

``--top``: the ten best of all movies that a user has not rated, with a fifth of each user's ratings
held out, or the last five; a movie is relevant if its held-out rating is 4 or more. NDCG and recall
are those of users with three relevant movies (last five: one). ALS of ``implicit`` is given the
best setting of a grid, chosen on the test itself. Ratings of the same split beside Surprise's
algorithms. New users: users in five parts, each left out of a fit in turn, beside ALS' recalculated
users at the best setting for that part. ``--large``: 20,000 x 2,000 with two million ratings.

Otherwise the paper's protocol on the three MovieLens subsets: half stars rounded up, 70 % of the
ratings to learn from, 10 % to tune the others on (ours tunes nothing), 20 % to test; ten splits,
mean and standard error. Finished cells are kept in a file, so that a run resumes.
"""

import argparse
import importlib.util
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import rejoint as rj

Array = NDArray[np.float64]
Pairs = tuple[NDArray[np.intp], NDArray[np.intp]]
Answer = tuple[Array, Array]  # what is expected, and the whole number of stars to bet on

SETS = ("action", "animation", "romance")
STORE = Path("benchmarks/results/recommend.json")
SPLITS, QUICK = 10, 2

#: Table VII of the paper, on its own, larger, sets: RMSE and MAE for each set.
PRINTED = {
    "paper: CP (pairs)": ((0.802, 0.608), (0.795, 0.611), (0.897, 0.702)),
    "paper: CP (triples)": ((0.783, 0.591), (0.785, 0.599), (0.887, 0.691)),
    "paper: CP (quadruples)": ((0.778, 0.588), (0.786, 0.600), (0.884, 0.689)),
    "paper: global average": ((0.945, 0.693), (0.906, 0.653), (0.996, 0.798)),
    "paper: user average": ((0.879, 0.679), (0.830, 0.625), (1.010, 0.768)),
    "paper: movie average": ((0.886, 0.705), (0.889, 0.673), (0.942, 0.754)),
    "paper: biased MF": ((0.797, 0.623), (0.792, 0.604), (0.904, 0.701)),
}


def load(name: str) -> Array:
    frame = rj.datasets.movielens(f"{name}_list20", whole_stars=True, backend="pandas")
    return frame.iloc[:, 1:].to_numpy(dtype=np.float64)


def split(ratings: Array, seed: int) -> tuple[Pairs, Pairs, Pairs]:
    """Users and movies of the ratings to learn from, to tune on, to test."""
    user, movie = np.nonzero(~np.isnan(ratings))
    order = np.random.default_rng(seed).permutation(len(user))
    cuts = [int(0.7 * len(order)), int(0.8 * len(order))]
    learn, tune, test = ((user[part], movie[part]) for part in np.split(order, cuts))
    return learn, tune, test


def only(ratings: Array, pairs: Pairs) -> Array:
    found = np.full(ratings.shape, np.nan)
    found[pairs] = ratings[pairs]
    return found


# --- ours ------------------------------------------------------------------------------------


def ours(ratings: Array, learn: Pairs, tune: Pairs, test: Pairs) -> Answer:
    model = rj.JointRecommender(random_state=0).fit(only(ratings, learn))
    pairs = [tuple(pair) for pair in np.column_stack(test).tolist()]
    shares = model.predict_proba(pairs)
    median = model.levels_[(np.cumsum(shares, axis=1) < 0.5).sum(axis=1)]
    return model.predict(pairs), median


# --- the others ------------------------------------------------------------------------------


def averages(axis: int | None) -> Callable[..., Answer]:
    def predict(ratings: Array, learn: Pairs, tune: Pairs, test: Pairs) -> Answer:
        overall = ratings[learn].mean()
        if axis is None:
            return rounded(np.full(len(test[0]), overall))
        size = ratings.shape[axis]
        total = np.bincount(learn[axis], ratings[learn], size)
        count = np.bincount(learn[axis], minlength=size)
        means = np.where(count > 0, total / np.maximum(count, 1), overall)
        return rounded(means[test[axis]])

    return predict


def rounded(expected: Array) -> Answer:
    expected = np.clip(expected, 1.0, 5.0)
    return expected, np.floor(expected + 0.5)


def best_of(
    fits: list[Callable[[Pairs], Array]], ratings: Array, tune: Pairs, test: Pairs
) -> Answer:
    """Predictions by the fit with the lowest error on the validation part."""
    errors = [np.mean((np.clip(fit(tune), 1, 5) - ratings[tune]) ** 2) for fit in fits]
    return rounded(fits[int(np.argmin(errors))](test))


def surprise_fit(algorithm: Any, ratings: Array, learn: Pairs) -> Callable[[Pairs], Array]:
    import pandas as pd
    from surprise import Dataset, Reader

    frame = pd.DataFrame({"user": learn[0], "movie": learn[1], "rating": ratings[learn]})
    data = Dataset.load_from_df(frame, Reader(rating_scale=(1, 5))).build_full_trainset()
    algorithm.fit(data)

    def predict(pairs: Pairs) -> Array:
        return np.array([algorithm.predict(u, m).est for u, m in zip(*pairs, strict=True)])

    return predict


def svd(ratings: Array, learn: Pairs, tune: Pairs, test: Pairs) -> Answer:
    from surprise import SVD

    grid = product((20, 100), (50, 100, 200), (0.05, 0.1))
    fits = [
        surprise_fit(SVD(n_factors=f, n_epochs=e, reg_all=r, random_state=0), ratings, learn)
        for f, e, r in grid
    ]
    return best_of(fits, ratings, tune, test)


def knn(ratings: Array, learn: Pairs, tune: Pairs, test: Pairs) -> Answer:
    from surprise import KNNBaseline

    fits = []
    for k, by_user, name in (
        (40, True, "msd"),
        (10, False, "pearson_baseline"),
        (40, False, "pearson_baseline"),
    ):
        alike = {"name": name, "user_based": by_user}
        model = KNNBaseline(k=k, sim_options=alike, verbose=False)
        fits.append(surprise_fit(model, ratings, learn))
    return best_of(fits, ratings, tune, test)


def my_fm(ratings: Array, learn: Pairs, tune: Pairs, test: Pairs) -> Answer:
    import myfm

    users, movies = ratings.shape

    def hot(pairs: Pairs) -> Any:
        rows = np.arange(len(pairs[0])).repeat(2)
        columns = np.column_stack([pairs[0], users + pairs[1]]).ravel()
        shape = (len(pairs[0]), users + movies)
        return sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=shape)

    fits = []
    for rank in (8, 16):
        model = myfm.MyFMRegressor(rank=rank, random_seed=0)
        steps = {"n_iter": 300, "n_kept_samples": 250}
        model.fit(hot(learn), ratings[learn], grouping=[0] * users + [1] * movies, **steps)
        fits.append(lambda pairs, model=model: model.predict(hot(pairs)))
    return best_of(fits, ratings, tune, test)


METHODS: dict[str, tuple[Callable[..., Answer], str]] = {
    "JointRecommender": (ours, ""),
    "SVD (biased MF), tuned": (svd, "surprise"),
    "KNNBaseline, tuned": (knn, "surprise"),
    "myFM, rank tuned": (my_fm, "myfm"),
    "global average": (averages(None), ""),
    "user average": (averages(0), ""),
    "movie average": (averages(1), ""),
}


# --- accuracy --------------------------------------------------------------------------------


def measure(method: str, ratings: Array, number: int) -> dict[str, float]:
    learn, tune, test = split(ratings, number)
    begun = time.process_time()
    expected, bet = METHODS[method][0](ratings, learn, tune, test)
    off, off_bet = expected - ratings[test], bet - ratings[test]
    return {
        "rmse": float(np.sqrt(np.mean(off**2))),
        "mae": float(np.mean(np.abs(off))),
        "bet": float(np.mean(np.abs(off_bet))),
        "cpu": time.process_time() - begun,
    }


def accuracy(sets: list[str], methods: list[str], splits: int, store: Path) -> dict[str, Any]:
    cells: dict[str, dict[str, float]] = json.loads(store.read_text()) if store.exists() else {}
    for number, name, method in product(range(splits), sets, methods):
        key, package = f"{name}|{method}|{number}", METHODS[method][1]
        if key in cells or (package and importlib.util.find_spec(package) is None):
            continue
        print(f"{name}, split {number + 1}, {method} ...", file=sys.stderr, flush=True)
        cells[key] = measure(method, load(name), number)
        store.parent.mkdir(parents=True, exist_ok=True)
        store.write_text(json.dumps(cells, indent=0))
    return {
        name: {method: summary(cells, name, method, splits) for method in methods} for name in sets
    }


def summary(cells: dict[str, Any], name: str, method: str, splits: int) -> dict[str, list[float]]:
    """Mean and standard error of each figure over the splits that are there."""
    rows = [cells[k] for s in range(splits) if (k := f"{name}|{method}|{s}") in cells]
    if not rows:
        return {}
    table = {figure: np.array([row[figure] for row in rows]) for figure in rows[0]}
    return {
        figure: [float(v.mean()), float(v.std(ddof=1) / np.sqrt(len(v))) if len(v) > 1 else 0.0]
        for figure, v in table.items()
    }


def show(found: dict[str, Any]) -> None:
    print("RMSE and MAE of expected ratings; MAE of whole stars (ours the median, others rounded)")
    for name, table in found.items():
        print(f"\n{name:<28}{'RMSE':>16}{'MAE':>16}{'MAE, whole':>16}{'CPU s':>8}")
        for method, row in table.items():
            if not row:
                print(f"{method:<28}  not installed (pip install 'rejoint[bench]')")
                continue
            figures = "".join(f"{row[f][0]:9.4f} ±{row[f][1]:.4f}" for f in ("rmse", "mae", "bet"))
            print(f"{method:<28}{figures}{row['cpu'][0]:8.1f}")
        for method, figures in PRINTED.items():
            rmse, mae = figures[SETS.index(name)]
            print(f"{method:<28}{rmse:9.3f}{mae:16.3f}")


# --- the ten best ----------------------------------------------------------------------------

TOP_STORE = Path("benchmarks/results/recommend_top.json")
CASES = (
    *(f"small,random,{seed}" for seed in (21, 22, 23)),
    "small,last,0",
    *(f"pool2000,random,{seed}" for seed in (21, 22, 23)),
    "pool2000,last,0",
    *(f"pool,random,{seed}" for seed in (21, 22, 23)),
    "pool,last,0",
)
#: Factors, penalty and weight of ALS.
ALS_GRID = list(product((64, 96), (20.0, 40.0, 80.0), (3.0, 5.0, 8.0)))


class Split(NamedTuple):
    """Ratings to learn from and to test, as frames of user, item and rating, and the shape."""

    learn: Any
    test: Any
    shape: tuple[int, int]
    least: int


def top_split(name: str, kind: str, seed: int) -> Split:
    """The most rated movies of a set; a fifth of each user's ratings, or the last five, to test."""
    release = "small2018_ratings" if name == "small" else "pool_ratings"
    frame = rj.datasets.movielens(release, backend="pandas")
    movies = frame["movieId"].value_counts().index[: 1000 if name == "small" else 1500]
    frame = frame[frame["movieId"].isin(movies)]
    if name == "pool2000":
        users = np.sort(frame["userId"].unique())
        chosen = np.random.default_rng(0).choice(users, 2000, replace=False)
        frame = frame[frame["userId"].isin(chosen)]
    frame = frame.assign(
        user=frame["userId"].rank(method="dense").astype(int) - 1,
        item=frame["movieId"].rank(method="dense").astype(int) - 1,
    )
    if kind == "last":
        test = frame.groupby("user")["timestamp"].rank(method="first", ascending=False) <= 5
    else:
        draw = frame["rating"] * 0 + np.random.default_rng(seed).random(len(frame))
        count = frame.groupby("user")["user"].transform("size")
        test = draw.groupby(frame["user"]).rank() <= np.floor(0.2 * count)
    shape = (int(frame["user"].max()) + 1, int(frame["item"].max()) + 1)
    return Split(frame[~test], frame[test], shape, 1 if kind == "last" else 3)


def as_matrix(frame: Any, shape: tuple[int, int], values: Any = None) -> Any:
    data = frame["rating"].to_numpy() if values is None else values
    return sparse.csr_matrix((data, (frame["user"], frame["item"])), shape=shape)


def judge(lists: dict[int, Any], case: Split) -> tuple[float, float]:
    """NDCG and recall of the ten best of some users."""
    liked = case.test[case.test["rating"] >= 4].groupby("user")["item"].agg(set)
    discounts = 1.0 / np.log2(np.arange(2, 12))
    ndcg, recall = [], []
    for user, best in lists.items():
        relevant = liked.get(user, set())
        if len(relevant) < case.least:
            continue
        hits = np.array([item in relevant for item in best[:10]], dtype=float)
        ideal = discounts[: min(len(relevant), 10)].sum()
        ndcg.append(hits @ discounts[: len(hits)] / ideal)
        recall.append(hits.sum() / len(relevant))
    return float(np.mean(ndcg)), float(np.mean(recall))


def best_unseen(scores: Array, seen: Any, users: Any) -> dict[int, Any]:
    """The ten highest scores of each user among what was not seen."""
    found = {}
    for row, user in enumerate(users):
        mine = scores[row].copy()
        mine[seen[user].indices] = -np.inf
        found[int(user)] = np.argsort(-mine, kind="stable")[:10]
    return found


def parts_of(users: Any, seed: int) -> list[tuple[Any, Any]]:
    """Users in five parts: those that are known and those that are new, for each."""
    parts = np.array_split(np.random.default_rng(seed).permutation(users), 5)
    return [(np.setdiff1d(users, part), np.sort(part)) for part in parts]


def judge_new(judge_one: Any, case: Split, seed: int) -> dict[str, Any]:
    """Means over five parts of the users, each new to a fit, and the NDCG of each part."""
    every = np.arange(case.shape[0])
    rows = [judge_one(case, known, new, True) for known, new in parts_of(every, seed)]
    means = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    return means | {f"part {k + 1}": row["ndcg"] for k, row in enumerate(rows)}


def judge_als(case: Split, known: Any, users: Any, fresh: bool) -> dict[str, float]:
    """The best NDCG and the best recall of a grid, each on the test, and the CPU of the former."""
    from implicit.als import AlternatingLeastSquares

    liked = case.learn[case.learn["rating"] >= 4]
    matrix = as_matrix(liked, case.shape, np.ones(len(liked)))
    seen = as_matrix(case.learn, case.shape)
    found = []
    for factors, penalty, alpha in ALS_GRID:
        model = AlternatingLeastSquares(
            factors=factors,
            regularization=penalty,
            alpha=alpha,
            num_threads=1,
            random_state=0,
        )
        begun = time.process_time()
        model.fit(matrix[known] if fresh else matrix, show_progress=False)
        cpu = time.process_time() - begun
        points = model.user_factors
        if fresh:
            points = model.recalculate_user(np.arange(len(users)), matrix[users])
        lists = best_unseen(points @ model.item_factors.T, seen, users)
        found.append((*judge(lists, case), cpu))
    best = max(found)
    recall = max(row[1] for row in found)
    return {"ndcg": best[0], "recall": recall, "cpu": best[2]}


def judge_ours(case: Split, known: Any, users: Any, fresh: bool) -> dict[str, float]:
    """NDCG and recall of ``recommend`` with its defaults, and the CPU of the fit."""
    seen = as_matrix(case.learn, case.shape)
    begun = time.process_time()
    model = rj.JointRecommender(random_state=0).fit(seen[known] if fresh else seen)
    cpu = time.process_time() - begun
    lists = {}
    for user in users:
        row = seen[[user]]
        who = dict(zip(row.indices.tolist(), row.data, strict=True)) if fresh else int(user)
        lists[int(user)] = [found.item for found in model.recommend(who, 10)]
    ndcg, recall = judge(lists, case)
    if fresh:
        return {"ndcg": ndcg, "recall": recall, "cpu": cpu}
    begun = time.process_time()  # the choices alone
    rj.JointRecommender("implicit", random_state=0).fit(seen)
    ranking = time.process_time() - begun
    pairs = list(zip(case.test["user"].tolist(), case.test["item"].tolist(), strict=True))
    stars = case.test["rating"].to_numpy()
    off = model.predict(pairs) - stars
    shares = model.predict_proba(pairs)
    place = np.searchsorted(model.levels_, stars)
    loss = -np.log(shares[np.arange(len(place)), np.minimum(place, len(model.levels_) - 1)])
    ratings = {"rmse": float(np.sqrt(np.mean(off**2))), "log loss": float(loss.mean())}
    return {"ndcg": ndcg, "recall": recall, "cpu": cpu, "cpu of ranking": ranking, **ratings}


def judge_surprise(case: Split) -> dict[str, float]:
    """RMSE of Surprise's algorithms."""
    import surprise as s
    from surprise import Dataset, Reader

    by_item = {"name": "pearson_baseline", "user_based": False}
    algorithms = {
        "BaselineOnly": s.BaselineOnly(verbose=False),
        "KNNBaseline": s.KNNBaseline(k=40, sim_options=by_item, verbose=False),
        "KNNBasic": s.KNNBasic(sim_options=by_item, verbose=False),
        "KNNWithMeans": s.KNNWithMeans(sim_options=by_item, verbose=False),
        "KNNWithZScore": s.KNNWithZScore(sim_options=by_item, verbose=False),
        "SlopeOne": s.SlopeOne(),
        "NMF": s.NMF(random_state=0),
        "CoClustering": s.CoClustering(random_state=0),
        "SVD": s.SVD(random_state=0),
        "SVD, 50 factors": s.SVD(n_factors=50, n_epochs=50, reg_all=0.08, random_state=0),
        "SVD, 20 factors": s.SVD(n_factors=20, n_epochs=100, reg_all=0.1, random_state=0),
        "SVD++": s.SVDpp(random_state=0),
    }
    rows = case.learn[["user", "item", "rating"]]
    data = Dataset.load_from_df(rows, Reader(rating_scale=(0.5, 5))).build_full_trainset()
    stars, found = case.test["rating"].to_numpy(), {}
    for label, algorithm in algorithms.items():
        algorithm.fit(data)
        pairs = zip(case.test["user"], case.test["item"], strict=True)
        off = np.array([algorithm.predict(u, i).est for u, i in pairs]) - stars
        found[label] = float(np.sqrt(np.mean(off**2)))
    return found


def top(cases: list[str], store: Path, parts: list[str]) -> dict[str, Any]:
    cells: dict[str, Any] = json.loads(store.read_text()) if store.exists() else {}
    rj.JointRecommender(random_state=0).fit(np.array([[1.0, 2.0], [2.0, 1.0]]))  # imports
    for label in cases:
        name, kind, seed = label.split(",")
        case = top_split(name, kind, int(seed))
        every = np.arange(case.shape[0])
        work: dict[str, Callable[[], dict[str, float]]] = {
            "ours": partial(judge_ours, case, every, every, False),
            "ALS": partial(judge_als, case, every, every, False),
            "Surprise": partial(judge_surprise, case),
        }
        if kind == "random":
            work["ours, new users"] = partial(judge_new, judge_ours, case, int(seed))
            work["ALS, new users"] = partial(judge_new, judge_als, case, int(seed))
        for part, run in work.items():
            if part in parts and f"{label}|{part}" not in cells:
                print(f"{label}, {part} ...", file=sys.stderr, flush=True)
                cells[f"{label}|{part}"] = run()
                store.parent.mkdir(parents=True, exist_ok=True)
                store.write_text(json.dumps(cells, indent=0))
    return {key: value for key, value in cells.items() if key.split("|")[0] in cases}


TOP_PARTS = ("ours", "ALS", "Surprise", "ours, new users", "ALS, new users")


def show_top(found: dict[str, Any]) -> None:
    for key, row in found.items():
        label, part = key.split("|")
        print(f"{label:<20}{part:<18}", *(f"{name} {value:.4f} " for name, value in row.items()))


def large(users: int = 20_000, items: int = 2_000, each: int = 100) -> dict[str, float]:
    """CPU and memory of a fit to two million ratings."""
    import resource

    rng = np.random.default_rng(0)
    taste, kind = rng.standard_normal((users, 4)), 0.4 * rng.standard_normal((items, 4))
    fame = rng.gumbel(size=items) + 1.5 * rng.standard_normal(items)
    item = np.concatenate(
        [
            np.argpartition(-(fame + 2 * kind @ t + rng.gumbel(size=items)), each)[:each]
            for t in taste
        ]
    )
    user = np.arange(users).repeat(each)
    liking = 3.5 + (taste[user] * kind[item]).sum(axis=1) + rng.normal(0, 0.7, len(user))
    stars = np.clip(np.round(2 * liking) / 2, 0.5, 5)
    matrix = sparse.csr_array((stars, (user, item)), shape=(users, items))
    begun = time.process_time()
    rj.JointRecommender(random_state=0).fit(matrix)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"ratings": float(len(user)), "CPU s": time.process_time() - begun, "GB": used}


# --- advice ----------------------------------------------------------------------------------


def speed(users: int = 5000, items: int = 1000, each: int = 50) -> dict[str, float]:
    """Fit to generated ratings of 1,000 items; time advice for users that are new."""
    rng = np.random.default_rng(0)
    taste, kind = rng.standard_normal((users, 4)), 0.4 * rng.standard_normal((items, 4))
    item = np.concatenate([rng.choice(items, each, replace=False) for _ in range(users)])
    user = np.arange(users).repeat(each)
    liking = 3.5 + rng.normal(0, 0.5, items)[item] + (taste[user] * kind[item]).sum(axis=1)
    stars = np.clip(np.round(liking + rng.normal(0, 0.7, len(user))), 1, 5)
    begun = time.process_time()
    model = rj.JointRecommender(random_state=0)
    model.fit(sparse.csr_array((stars, (user, item)), shape=(users, items)))
    found = {"fit, CPU seconds": time.process_time() - begun}
    model.recommend(None)  # tables that are made once
    newcomers = [
        {int(i): int(rng.integers(1, 6)) for i in rng.choice(items, 20, replace=False)}
        for _ in range(50)
    ]
    for name, call in (
        ("recommend, ms", lambda new: model.recommend(new, 10)),
        ("explain, ms", lambda new: model.explain(new, next(i for i in range(21) if i not in new))),
        ("bundle of 5, ms", lambda new: model.bundle(new, 5)),
    ):
        times, cpu = [], []
        for new in newcomers:
            begun, begun_cpu = time.perf_counter(), time.process_time()
            call(new)
            times.append(1e3 * (time.perf_counter() - begun))
            cpu.append(1e3 * (time.process_time() - begun_cpu))
        found[name], found[f"{name} of CPU"] = float(np.median(times)), float(np.median(cpu))
        found[f"{name} of CPU, slowest"] = max(cpu)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two splits in place of ten")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--methods", nargs="+", choices=[*METHODS], default=[*METHODS])
    parser.add_argument("--store", type=Path, default=STORE, help="where finished cells are kept")
    parser.add_argument("--json", type=Path, help="where to write the tables")
    parser.add_argument("--speed", action="store_true", help="time of advice at 1,000 items")
    parser.add_argument("--top", action="store_true", help="the ten best, beside ALS")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--parts", nargs="+", choices=TOP_PARTS, default=list(TOP_PARTS))
    parser.add_argument("--large", action="store_true", help="a fit to two million ratings")
    options = parser.parse_args()
    found: dict[str, Any]
    if options.top:
        found = top(options.cases, TOP_STORE, options.parts)
        show_top(found)
    elif options.speed or options.large:
        found = speed() if options.speed else large()
        for name, value in found.items():
            print(f"  {name:<28}{value:10.3f}")
    else:
        splits = QUICK if options.quick else SPLITS
        found = accuracy(options.sets, options.methods, splits, options.store)
        show(found)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
