"""Log-loss of JointClassifier with each of its tuned numbers off, halved or doubled.

``python -m benchmarks.classify.ablation`` prints, for one fold of each set, the log-loss of
complete rows and of rows that miss 25 % of their features, and the CPU seconds of the fit.
"""

import argparse
import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from benchmarks.classify.log_loss import MORE_SETS, SETS, load, remove
from sklearn.model_selection import StratifiedKFold

import rejoint as rj
from rejoint.estimators import ClassifierPolicy

VARIANTS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "two members": {"members": 2},
    "five members": {"members": 5},
    "16 bins": {"most_bins": 16},
    "one class for each label": {"classes": 1, "joint_classes": 1},
    "4 classes for each label": {"classes": 4, "joint_classes": 8},
    "no rules": {"rule_trigger": np.inf},
    "one start of rules": {"rule_starts": 1},
    "rules: 8 classes": {"rule_classes": 8},
    "no more classes for many records": {"many_records": 10**9},
    "common scale as in labels alone": {"joint_common": 100.0},
    "scales: every other": {"plain_scales": (0.1, 0.4, 1.6, 6.4), "class_scales": (1.0, 0.25)},
    "half the steps": {"steps": 10, "first_steps": 20, "refit_steps": 10, "rule_steps": 30},
    "no last steps on all records": {"refit_steps": 0},
    "half the start spread": {"start_spread": 0.15, "rule_spread": 0.1},
    "half the smoothness": {"level_precision": 0.05, "difference_precision": 1 / 24},
    "half the memory": {"memory": 5},
    "twice the least gain": {"least_gain": 2e-5, "rule_least_gain": 2e-6},
    "no prior of weights": {"prior_records": 0.0, "least_weight": 0.0},
}


def measure(name: str, policy: ClassifierPolicy) -> tuple[float, float, float]:
    """Log-loss of complete rows, of rows with missing values, and CPU seconds."""
    X, y = load(name)
    learn, test = next(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    begun = time.process_time()
    model = rj.JointClassifier(random_state=0, policy=policy).fit(X.iloc[learn], y[learn])
    seconds = time.process_time() - begun
    where = np.searchsorted(model.classes_, y[test])
    found = []
    for share in (0.0, 0.25):
        shares = model.predict_proba(remove(X.iloc[test], share))
        found.append(float(-np.log(shares[np.arange(len(test)), where]).mean()))
    return found[0], found[1], seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", choices=[*SETS, *MORE_SETS], default=SETS[:6])
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # levels that are new
    print("," + ",".join(options.sets))
    for words, changes in VARIANTS.items():
        policy = replace(ClassifierPolicy(), **changes)
        cells = ("{:.4f} ({:.4f}) {:.1f}".format(*measure(n, policy)) for n in options.sets)
        print(f'"{words}",' + ",".join(cells), flush=True)


if __name__ == "__main__":
    main()
