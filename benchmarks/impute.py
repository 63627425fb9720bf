"""Imputation of removed cells: accuracy, log-loss and calibration, ours and others'.

10, 30 and 50 % of the cells of Adult (its categorical columns and the income), Mushroom, Nursery
and Votes are removed at random; each method fills them, and says how probable each level is. All
get the same rows, at most ``--rows`` of a set. Log-loss: every method's probabilities are mixed
with 1 % of the column's shares, so that a level that a forest has never met is no infinite loss.
ECE: mean gap between confidence and accuracy in ten bins of confidence.

``python benchmarks/impute.py`` prints a table and writes ``benchmarks/results/impute.json``; what
is in that file is not run again. ``--quick`` takes 600 rows and 30 %; ``--speed`` fills a million
rows of 20 columns instead.
"""

import argparse
import json
import time
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.experimental import enable_iterative_imputer  # noqa: F401  # makes the next one exist
from sklearn.impute import IterativeImputer, KNNImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import rejoint as rj

RESULTS = Path(__file__).parent / "results" / "impute.json"
SETS = ("adult", "mushroom", "nursery", "votes")
SHARES = (0.1, 0.3, 0.5)
MIXED = 0.01
MICE = 5  # completed tables, whose shares are probabilities

Tables = list[np.ndarray]  # for each variable: probabilities of its levels in its missing cells


def load(name: str, rows: int) -> rj.Records:
    frame = getattr(rj.datasets, name)(backend="pandas")
    if name == "adult":
        numbers = ["age", "fnlwgt", "education-num", "capital-gain", "capital-loss"]
        frame = frame.drop(columns=[*numbers, "hours-per-week", "split"])
    if name == "mushroom":
        frame = frame.drop(columns="veil-type")  # constant
    if len(frame) > rows:
        frame = frame.sample(rows, random_state=0).reset_index(drop=True)
    return rj.Records.of(frame)


def shares(holes: rj.Records) -> Tables:
    return [holes.marginal(name) for name in holes.names]


def ours(holes: rj.Records, seed: int) -> Tables:
    imputer = rj.JointImputer(random_state=seed).fit(holes)
    return [
        imputer.distribution(holes, name)[holes.codes[:, n] < 0]
        for n, name in enumerate(holes.names)
    ]


def mode(holes: rj.Records, seed: int) -> Tables:
    gone = holes.codes < 0
    return [np.tile(p, (gone[:, n].sum(), 1)) for n, p in enumerate(shares(holes))]


def chained(estimator: object, rounds: int) -> Callable[[rj.Records, int], Tables]:
    """IterativeImputer with a classifier; probabilities from the last classifier of each column."""

    def run(holes: rj.Records, seed: int) -> Tables:
        X = np.where(holes.codes < 0, np.nan, holes.codes.astype(float))
        imputer = IterativeImputer(
            estimator,
            max_iter=rounds,
            tol=0.0,
            initial_strategy="most_frequent",
            random_state=seed,
        )
        full = imputer.fit_transform(X)
        last = {step.feat_idx: step for step in imputer.imputation_sequence_}
        tables = []
        for n, size in enumerate(holes.domain.shape):
            gone = np.isnan(X[:, n])
            table = np.zeros((gone.sum(), size))
            if gone.any():
                step = last[n]
                found = step.estimator.predict_proba(full[gone][:, step.neighbor_feat_idx])
                table[:, step.estimator.classes_.astype(int)] = found
            tables.append(table)
        return tables

    return run


def forest(leaf: int) -> Callable[[rj.Records, int], Tables]:
    return chained(RandomForestClassifier(100, min_samples_leaf=leaf, random_state=0), 3)


def logistic(holes: rj.Records, seed: int) -> Tables:
    levels = OneHotEncoder(handle_unknown="ignore")
    return chained(make_pipeline(levels, LogisticRegression(max_iter=200)), 3)(holes, seed)


def knn(holes: rj.Records, seed: int) -> Tables:
    """Shares among the 15 nearest rows, by cells that both have."""
    parts = []
    for n, size in enumerate(holes.domain.shape):
        codes = holes.codes[:, n]
        one_hot = np.eye(size)[codes]
        one_hot[codes < 0] = np.nan
        parts.append(one_hot)
    # An empty column would be dropped: a level that does not occur is never filled in.
    filled = KNNImputer(n_neighbors=15, keep_empty_features=True).fit_transform(np.hstack(parts))
    ends = np.cumsum(holes.domain.shape)
    return [
        part[holes.codes[:, n] < 0] for n, part in enumerate(np.split(filled, ends[:-1], axis=1))
    ]


def mice(holes: rj.Records, seed: int) -> Tables:
    """Shares among five tables that miceforest completed."""
    import miceforest

    frame = holes.to_frame("pandas")
    frame.columns = [f"v{n}" for n in range(len(holes.names))]
    frame = frame.apply(lambda column: column.astype("category").cat.remove_unused_categories())
    kernel = miceforest.ImputationKernel(
        frame, num_datasets=MICE, mean_match_strategy="fast", random_state=seed
    )  # "fast" draws categories by their probability; the default fails where one is certain
    kernel.mice(3, num_threads=1, verbose=False)
    done = [kernel.complete_data(k) for k in range(MICE)]
    tables = []
    for n, variable in enumerate(holes.domain):
        gone = holes.codes[:, n] < 0
        table = np.zeros((gone.sum(), len(variable)))
        for one in done:
            table[np.arange(len(table)), variable.encode(one.iloc[:, n])[gone]] += 1 / MICE
        tables.append(table)
    return tables


METHODS: dict[str, Callable[[rj.Records, int], Tables]] = {
    "JointImputer": ours,
    "mode": mode,
    "KNN": knn,
    "logistic": logistic,
    "forest": forest(1),
    "forest, leaf 5": forest(5),
    "miceforest": mice,
}


def measure(tables: Tables, holes: rj.Records, full: rj.Records) -> dict[str, float]:
    chance, confidence, hit = [], [], []
    for n, (table, share) in enumerate(zip(tables, shares(holes), strict=True)):
        truth = full.codes[holes.codes[:, n] < 0, n]
        known = truth >= 0  # cells that were missing before are no test
        mixed = (1 - MIXED) * table[known] / table[known].sum(axis=1, keepdims=True) + MIXED * share
        chance.append(mixed[np.arange(known.sum()), truth[known]])
        confidence.append(mixed.max(axis=1))
        hit.append(mixed.argmax(axis=1) == truth[known])
    p, c, h = map(np.concatenate, (chance, confidence, hit))
    which = np.minimum((c * 10).astype(int), 9)
    gaps = [abs(c[which == k].sum() - h[which == k].sum()) for k in range(10)]
    return {
        "accuracy": float(h.mean()),
        "log-loss": float(-np.log(np.maximum(p, 1e-12)).mean()),
        "confidence": float(c.mean()),
        "ECE": float(sum(gaps) / len(c)),
        "cells": len(c),
    }


def one(method: str, name: str, share: float, rows: int, seed: int) -> dict[str, float]:
    full = load(name, rows)
    holes = rj.datasets.remove_cells(full, share, random_state=seed)
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rounds that end before convergence
        tables = METHODS[method](holes, seed)
    seconds = time.process_time() - begun
    return measure(tables, holes, full) | {"seconds": seconds}


def report(done: dict[str, dict[str, float]], keys: dict[str, tuple[str, str, float]]) -> None:
    for figure, form in (
        ("accuracy", ".3f"),
        ("log-loss", ".3f"),
        ("ECE", ".3f"),
        ("seconds", ".1f"),
    ):
        columns = list(dict.fromkeys((name, share) for _, name, share in keys.values()))
        heads = "".join(f"{name[:5]:>7}{share:4.0%}" for name, share in columns)
        print(f"\n{figure:<16}{heads}       mean")
        for method in METHODS:
            mine = {
                (n, s): done[k][figure] for k, (m, n, s) in keys.items() if m == method if k in done
            }
            cells = "".join(f"{mine[c]:11{form}}" if c in mine else f"{'-':>11}" for c in columns)
            mean = f"{np.mean(list(mine.values())):11{form}}" if len(mine) == len(columns) else ""
            print(f"{method:<16}{cells}{mean}")


def speed(rows: int) -> None:
    """CPU time and extra memory to fill rows of 20 columns, 30 % missing."""
    rng = np.random.default_rng(0)
    factors = [rng.dirichlet(np.full(5, 0.5), size=10).T for _ in range(20)]
    truth = rj.LowRankPMF(rng.dirichlet(np.ones(10)), factors)
    few = rj.datasets.remove_cells(truth.sample(3000, random_state=1), 0.3, random_state=1)
    imputer = rj.JointImputer(random_state=0).fit(few)
    many = rj.datasets.remove_cells(truth.sample(rows, random_state=2), 0.3, random_state=2)
    frame = many.to_frame("polars")
    print(f"{rows:,} rows x 20 columns; {imputer.rank_} classes, posterior mean:", end=" ")
    print(f"{imputer.pmf_.mixture.rank}; input {many.codes.nbytes / 2**20:.0f} MiB as codes")
    for method in ("mode", "draw", "expect"):
        for form, data in (("records", many), ("polars", frame)):
            imputer.set_params(method=method)
            wall, cpu = time.perf_counter(), time.process_time()
            imputer.transform(data)
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            tracemalloc.start()
            imputer.transform(data)
            peak = tracemalloc.get_traced_memory()[1] / 2**20
            tracemalloc.stop()
            print(f"{method:7} {form:8} {cpu:5.1f} s of CPU, {wall:5.1f} s; peak {peak:.0f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--quick", action="store_true", help="600 rows, 30 %% removed")
    parser.add_argument("--speed", action="store_true", help="a million rows of 20 columns")
    options = parser.parse_args()
    if options.speed:
        speed(1_000_000)
        return
    rows = 600 if options.quick else options.rows
    keys = {
        f"{method}, {name}, {share}, {rows} rows, seed {options.seed}": (method, name, share)
        for name in SETS
        for share in ((0.3,) if options.quick else SHARES)
        for method in METHODS
    }
    done = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for key, (method, name, share) in keys.items():
        if key in done or method not in options.methods:
            continue
        try:
            done[key] = one(method, name, share, rows, options.seed)
        except ImportError as error:
            print(f"{method}: {error}")
            continue
        print(key, {k: round(v, 3) for k, v in done[key].items()}, flush=True)
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(done, indent=1))
    report(done, keys)


if __name__ == "__main__":
    main()
