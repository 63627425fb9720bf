"""Errors of JointClassifier on the paper's seven UCI sets, beside scikit-learn's and the paper's.

    REJOINT_DATA=<folder> python -m benchmarks.classify [--quick] [--sets car votes]
    python -m benchmarks.classify --speed
    REJOINT_DATA=<folder> python -m benchmarks.classify --agreement [--rows 500]

Every method gets the same 80 %: ours as it is, choosing for itself; the others tuned on the
validation part and then fitted to both. Finished cells are kept in a file, so that a run resumes.
"""

import argparse
import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from benchmarks.classify.agreement import agreement
from benchmarks.classify.rivals import RIVALS, predict
from benchmarks.classify.sets import PRINTED_BEST, PRINTED_CP, SETS, load, split
from benchmarks.classify.speed import speed
from sklearn.metrics import log_loss

import rejoint as rj

OURS = "JointClassifier"
STORE = Path("benchmarks/results/classify.json")

Cells = dict[str, dict[str, float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three splits in place of ten")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--methods", nargs="+", choices=[OURS, *RIVALS], default=[OURS, *RIVALS])
    parser.add_argument("--store", type=Path, default=STORE, help="where finished cells are kept")
    parser.add_argument("--speed", action="store_true", help="rate of predictions, beside StepMix")
    parser.add_argument("--agreement", action="store_true", help="of Python, file and commands")
    parser.add_argument("--rows", type=int, help="records of each set, for --agreement")
    options = parser.parse_args()
    if options.speed:
        speed()
        return
    if options.agreement:
        agreement(options.sets, options.rows)
        return
    splits = 3 if options.quick else 10
    cells: Cells = json.loads(options.store.read_text()) if options.store.exists() else {}
    warnings.simplefilter("ignore")  # rivals that do not converge, levels that are new
    for name in options.sets:
        X, y = load(name)
        for number in range(splits):
            for method in options.methods:
                key = f"{name}|{method}|{number}"
                if key in cells:
                    continue
                print(f"{name}, split {number + 1}, {method} ...", file=sys.stderr, flush=True)
                cells[key] = measure(method, X, y, split(len(y), number))
                options.store.parent.mkdir(parents=True, exist_ok=True)
                options.store.write_text(json.dumps(cells, indent=0))
    show(cells, options.sets, options.methods, splits)


def measure(method, X, y, parts) -> dict[str, float]:  # type: ignore[no-untyped-def]
    """Error, seconds, and for ours the log-loss too."""
    learn, judge, test = parts
    begun, cpu = time.perf_counter(), time.process_time()
    if method == OURS:
        both = np.concatenate([learn, judge])
        model = rj.JointClassifier(random_state=0).fit(X.iloc[both], y[both])
        shares = model.predict_proba(X.iloc[test])
        found = model.classes_[shares.argmax(axis=1)]
        more = {
            "log_loss": float(log_loss(y[test], shares, labels=model.classes_)),
            "models": len(model.ensemble_.members),
            "rank": model.rank_,
        }
    else:
        found, more = predict(method, X, y, *parts), {}
    return {
        "error": float(np.mean(found != y[test])),
        "seconds": time.perf_counter() - begun,
        "cpu": time.process_time() - cpu,
        **more,
    }


def show(cells: Cells, sets: list[str], methods: list[str], splits: int) -> None:
    """The table: mean and standard error; ours against the best of the others, in pairs."""
    errors = {
        (name, method): np.array([cells[f"{name}|{method}|{k}"]["error"] for k in range(splits)])
        for name in sets
        for method in methods
    }
    print(f"{'error, ' + str(splits) + ' splits':22}" + "".join(f"{name:>16}" for name in sets))
    for method in methods:
        row = (errors[name, method] for name in sets)
        print(f"{method:22}" + "".join(f"{e.mean():9.4f} ±{se(e):.4f}" for e in row))
    for words, printed in (("paper, best CP", PRINTED_CP), ("paper, best", PRINTED_BEST)):
        print(f"{words:22}" + "".join(f"{printed[name]:9.3f}       " for name in sets))
    rivals = [method for method in methods if method != OURS]
    if OURS not in methods:
        return
    for measure in ("seconds", "cpu", "log_loss"):
        row = (np.mean([cells[f"{n}|{OURS}|{k}"][measure] for k in range(splits)]) for n in sets)
        print(f"{'ours, ' + measure:22}" + "".join(f"{value:9.3g}       " for value in row))
    if rivals:
        compare(errors, sets, rivals)


def compare(errors: dict[tuple[str, str], np.ndarray], sets: list[str], rivals: list[str]) -> None:
    """Ours against the best of the others, in pairs, and the marks: whether they are reached."""
    print(
        f"\n{'':10}{'ours':>8}{'best':>8}  {'of the others':20}"
        f"{'apart':>9}{'SE':>8}  {'at most 1 SE above':20}{'paper, CP':>10}  below"
    )
    for name in sets:
        ours = errors[name, OURS]
        best = min(rivals, key=lambda method: errors[name, method].mean())
        apart = ours - errors[name, best]
        near, below = apart.mean() <= se(apart), ours.mean() < PRINTED_CP[name]
        print(
            f"{name:10}{ours.mean():8.4f}{errors[name, best].mean():8.4f}  {best:20}"
            f"{apart.mean():+9.4f}{se(apart):8.4f}  {'yes' if near else 'NO':20}"
            f"{PRINTED_CP[name]:10.3f}  {'yes' if below else 'NO'}"
        )


def se(values: np.ndarray) -> float:
    """Standard error of a mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values)))


if __name__ == "__main__":
    main()
