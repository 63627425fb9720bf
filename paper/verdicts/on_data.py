"""Conclusions on classification and recommendation: Tables V and VII."""

from collections.abc import Callable, Sequence

import numpy as np

from paper import table5, table7
from paper.framework import Done
from paper.printed import MOVIES, ORDERS, SETS
from paper.verdicts.conclusion import Conclusion, Found, Verdict, decide

PAIRS, TRIPLES, QUADRUPLES = (f"CP ({name})" for name in ORDERS.values())
BINARY, MULTICLASS = SETS[:5], SETS[5:]
AVERAGES = ("Global Average", "User Average", "Movie Average")
#: Errors that differ by less than this are taken as equal: half the last digit printed.
EVEN = 0.0005


Mean = Callable[[str, str], float]


def wrong_labels(done: Done) -> Mean:
    """Mean share of wrong labels by set and method, as in Table V; NaN where there is none."""

    def mean(dataset: str, method: str) -> float:
        values = table5.errors(done, method, dataset)
        return float(values.mean()) if len(values) else np.nan

    return mean


def off_ratings(done: Done) -> Mean:
    """Mean RMSE by set and method, as in Table VII; NaN where there is none."""

    def mean(dataset: str, method: str) -> float:
        values = table7.whole(done).where(dataset=dataset, method=method).values("rmse")
        return float(values.mean()) if len(values) else np.nan

    return mean


def on_sets(rows: dict[str, tuple[bool, str]], words: str) -> Verdict:
    """Judge a claim on each set; the sets where it does not hold are named with their numbers."""
    if not rows:
        raise ValueError("No set has all the methods yet.")
    elsewhere = [f"{name} ({numbers})" for name, (held, numbers) in rows.items() if not held]
    tail = f"; not on {', '.join(elsewhere)}" if elsewhere else ""
    words = f"{words}: {len(rows) - len(elsewhere)} of {len(rows)} sets{tail}"
    return decide([held for held, _ in rows.values()], words)


def against(a: float, b: float) -> str:
    """Two errors."""
    return f"{a:.3f} against {b:.3f}"


def beats_naive_bayes(found: Found) -> Verdict:
    """The label and the features given a hidden variable, against given the label."""
    error = wrong_labels(found["table5"])
    both = {s: (error(s, QUADRUPLES), error(s, "Naive Bayes")) for s in SETS}
    rows = {s: (a < b, against(a, b)) for s, (a, b) in both.items() if np.isfinite(a + b)}
    return on_sets(rows, "Table V: quadruples have fewer errors than naive Bayes")


def order_helps(found: Found) -> Verdict:
    """Pairs, triples, quadruples on labels."""
    error = wrong_labels(found["table5"])
    errors = {s: [error(s, m) for m in (PAIRS, TRIPLES, QUADRUPLES)] for s in SETS}
    rows = {
        s: (e[2] <= min(e) + EVEN, ", ".join(f"{x:.3f}" for x in e))
        for s, e in errors.items()
        if np.isfinite(sum(e))
    }
    return on_sets(rows, "Table V: quadruples have the fewest errors of the three orders")


def against_machines(found: Found) -> Verdict:
    """Two classes, against support vector machines."""
    done = found["table5"]
    error = wrong_labels(done)
    machines = ("SVM (Linear)", "SVM (RBF)")
    rows = {}
    for name in BINARY:
        ours, theirs = error(name, QUADRUPLES), min(error(name, m) for m in machines)
        if np.isfinite(ours + theirs):
            spread = table5.errors(done, QUADRUPLES, name).std()
            rows[name] = ours <= theirs + max(spread, EVEN), against(ours, theirs)
    words = "Table V, two classes: quadruples below the better machine, or within one deviation"
    return on_sets(rows, words)


def many_classes(found: Found) -> Verdict:
    """Several classes, against support vector machines."""
    error = wrong_labels(found["table5"])
    both = {s: (error(s, QUADRUPLES), error(s, "SVM (RBF)")) for s in MULTICLASS}
    rows = {s: (a > b, against(a, b)) for s, (a, b) in both.items() if np.isfinite(a + b)}
    words = "Table V, several classes: the RBF machine has fewer errors than quadruples"
    verdict, why = on_sets(rows, words)
    ours = {s: error(s, "JointClassifier") for s in MULTICLASS}
    if all(np.isfinite(list(ours.values()))):
        shown = ", ".join(against(ours[s], both[s][1]) for s in MULTICLASS)
        why += f". Our default, which goes to higher ranks: {shown} ({', '.join(MULTICLASS)})"
    return verdict, why


def lower(found: Found, ours: Sequence[str], theirs: Sequence[str], words: str) -> Verdict:
    """Whether the best of some rows of Table VII is below the best of others, by RMSE."""
    error = off_ratings(found["table7"])
    both = {name: [min(error(name, m) for m in rows) for rows in (ours, theirs)] for name in MOVIES}
    rows = {s: (a < b, against(a, b)) for s, (a, b) in both.items() if np.isfinite(a + b)}
    return on_sets(rows, f"Table VII: {words}")


def beats_averages(found: Found) -> Verdict:
    """Against global, user and movie averages."""
    return lower(found, (TRIPLES, QUADRUPLES), AVERAGES, "lower RMSE than all three averages")


def beats_factorization(found: Found) -> Verdict:
    """Against biased matrix factorization."""
    words = "triples or quadruples have lower RMSE than biased matrix factorization"
    verdict, why = lower(found, (TRIPLES, QUADRUPLES), ("BMF",), words)
    traits = "`JointRecommender`, traits of users and movies learned from the ratings, has"
    ours = lower(found, ("JointRecommender",), ("BMF",), traits)[1]
    return verdict, f"{why}. {ours}"


def order_helps_ratings(found: Found) -> Verdict:
    """Pairs, triples, quadruples on ratings."""
    words = "triples or quadruples have lower RMSE than pairs"
    return lower(found, (TRIPLES, QUADRUPLES), (PAIRS,), words)


ON_DATA = (
    Conclusion(
        "The method outperforms naive Bayes on all seven sets", ("table5",), beats_naive_bayes
    ),
    Conclusion(
        "Tables of more variables give better classification; quadruples are best on all sets",
        ("table5",),
        order_helps,
    ),
    Conclusion(
        "On two classes the method is better than, or comparable to, support vector machines",
        ("table5",),
        against_machines,
    ),
    Conclusion(
        "On several classes it is less accurate than support vector machines",
        ("table5",),
        many_classes,
    ),
    Conclusion(
        "Ratings are predicted clearly better than by averages", ("table7",), beats_averages
    ),
    Conclusion(
        "The method slightly outperforms biased matrix factorization",
        ("table7",),
        beats_factorization,
    ),
    Conclusion(
        "Tables of more variables improve the prediction of ratings",
        ("table7",),
        order_helps_ratings,
    ),
)
