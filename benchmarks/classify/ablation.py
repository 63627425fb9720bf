"""Log-loss of JointClassifier with each of its parts and tuned numbers off, halved or doubled.

``python -m benchmarks.classify.ablation`` prints, over two folds of each set, the log-loss of
complete rows and of rows that miss 25 % of their features, and the CPU seconds of the fit: first as
they are, then how much they change, in thousandths. A star marks changes beyond two standard errors
of paired rows.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
from benchmarks.classify.log_loss import LOADABLE, load, remove
from sklearn.model_selection import StratifiedKFold

import rejoint as rj
from rejoint.estimators import ClassifierPolicy
from rejoint.estimators.classifier.fit_classifier import best_weights

SETS = ["titanic", "OJ", "fgl", "churn", "car"]

#: Changed numbers. Those of rules are tried on CAR, which has rules, and others on the other sets.
VARIANTS: dict[str, dict[str, Any]] = {
    "members: 2": {"members": 2},
    "members: 5": {"members": 5},
    "most_bins: 32": {"most_bins": 32},
    "level_precision: halved": {"level_precision": 0.05},
    "difference_precision: halved": {"difference_precision": 1 / 24},
    "classes: 4": {"classes": 4},
    "label_emphasis: 1": {"label_emphasis": 1.0},
    "most_classes: 32": {"most_classes": 32},
    "plain_scales: two": {"plain_scales": (0.4, 1.6)},
    "class_scales: one": {"class_scales": (0.5,)},
    "joint_scales: one": {"joint_scales": (1.0,)},
    "missing_limits: 0": {"missing_limits": (0.0,)},
    "joint_common: off": {"joint_common": np.inf},
    "start_spread: halved": {"start_spread": 0.15},
    "steps: halved": {"steps": 10},
    "first_steps: halved": {"first_steps": 20},
    "least_gain: doubled": {"least_gain": 2e-5},
    "least_probability: off": {"least_probability": 1e-9},
    "least_weight: off": {"least_weight": 0.0},
    "rules: off": {"rule_gain": 0.0},
    "rule_scales: last only": {"rule_scales": (32.0,)},
    "rule_spread: halved": {"rule_spread": 0.1},
    "rule_steps: halved": {"rule_steps": 30},
    "rule_starts: 1": {"rule_starts": 1},
}

#: Parts of the classifier, in the order of the docs.
PARTS = ("first", "second", "third")


def without_lines() -> Any:
    """A context in which numbers have bins and no straight lines."""
    return patch("rejoint.estimators.classifier.design.standard_values", return_value=None)


def without_part(number: int) -> Any:
    """A context in which one part has no weight in the average."""

    def weigh(found: Any, weight: Any, policy: ClassifierPolicy) -> Any:
        if len(found) <= number or len(found) == 1:
            return best_weights(found, weight, policy)
        others = best_weights(np.delete(found, number, axis=0), weight, policy)
        return np.insert(others, number, 0.0)

    return patch("rejoint.estimators.classifier.fit_classifier.best_weights", weigh)


#: What is left out of a fit, and how.
LEFT_OUT: dict[str, Callable[[], Any]] = {
    "no straight lines": without_lines,
    **{f"{name} part not averaged": partial(without_part, k) for k, name in enumerate(PARTS)},
}


def fit(X: Any, y: Any, policy: ClassifierPolicy, left_out: Any = nullcontext) -> tuple[Any, float]:
    """A classifier, and the CPU seconds of its fit."""
    begun = time.process_time()
    with left_out():
        model = rj.JointClassifier(random_state=0, policy=policy).fit(X, y)
    return model, time.process_time() - begun


def judge(model: Any, X: Any, y: Any) -> list[np.ndarray]:
    """Log-losses of rows, complete and with missing values."""
    where = np.searchsorted(model.classes_, y)
    found = (model.predict_proba(remove(X, share)) for share in (0.0, 0.25))
    return [-np.log(np.maximum(shares[np.arange(len(y)), where], 1e-15)) for shares in found]


def measure(
    name: str, folds: int, changes: dict[str, Any], left_out: Any = nullcontext
) -> tuple[Any, Any]:
    """Losses (2, rows) and mean CPU seconds."""
    X, y = load(name)
    policy, found, seconds = replace(ClassifierPolicy(), **changes), [], []
    splits = StratifiedKFold(5, shuffle=True, random_state=0).split(X, y)
    for _, (learn, test) in zip(range(folds), splits, strict=False):
        model, cpu = fit(X.iloc[learn], y[learn], policy, left_out)
        found.append(judge(model, X.iloc[test], y[test]))
        seconds.append(cpu)
    return np.concatenate(found, axis=1), float(np.mean(seconds))


def show(now: Any, before: Any, seconds: float) -> str:
    """Changes of the two log-losses in thousandths, and CPU seconds."""
    words = []
    for change in now - before:
        error = change.std(ddof=1) / np.sqrt(len(change))
        star = "*" if abs(change.mean()) > 2 * error > 0 else ""
        words.append(f"{1000 * change.mean():+.1f}{star}")
    return f'"{words[0]} ({words[1]}) {seconds:.1f}"'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", choices=LOADABLE, default=SETS)
    parser.add_argument("--folds", type=int, default=2)
    parser.add_argument(
        "--variants", nargs="+", choices=[*LEFT_OUT, *VARIANTS], default=[*LEFT_OUT, *VARIANTS]
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # levels that are new
    base = {name: measure(name, options.folds, {}) for name in options.sets}
    print("," + ",".join(options.sets))
    cells = (f'"{f[0].mean():.4f} ({f[1].mean():.4f}) {s:.1f}"' for f, s in base.values())
    print('"as it is",' + ",".join(cells), flush=True)
    for words in options.variants:
        changes, left_out = VARIANTS.get(words, {}), LEFT_OUT.get(words, nullcontext)
        cells = []
        for name, (before, _) in base.items():
            if words.startswith(("rule", "joint_common")) != (name == "car"):
                cells.append('""')
                continue
            now, seconds = measure(name, options.folds, changes, left_out)
            cells.append(show(now, before, seconds))
        print(f'"{words}",' + ",".join(cells), flush=True)


if __name__ == "__main__":
    main()
