"""Conclusions on classification and recommendation: Tables V and VII."""

from collections.abc import Callable, Sequence

import numpy as np

from paper.framework import Done
from paper.printed import MOVIES, ORDERS, SETS
from paper.verdicts.conclusion import Conclusion, Found, Verdict

PAIRS, TRIPLES, QUADRUPLES = (f"CP ({name})" for name in ORDERS.values())
BINARY, MULTICLASS = SETS[:5], SETS[5:]
AVERAGES = ("Global Average", "User Average", "Movie Average")
#: Errors that differ by less than this are taken as equal: half the last digit printed.
EVEN = 0.0005


def means(done: Done, value: str) -> Callable[[str, str], float]:
    """Mean over the splits, by set and method; NaN where there is none."""

    def mean(dataset: str, method: str) -> float:
        values = done.where(dataset=dataset, method=method).values(value)
        return float(values.mean()) if len(values) else np.nan

    return mean


def on_most(holds: dict[str, bool], words: str) -> Verdict:
    """Confirmed if on all sets, refined if on most, else not."""
    if not holds:
        raise ValueError("No set has all the methods yet.")
    where = [name for name, held in holds.items() if held]
    elsewhere = [name for name in holds if name not in where]
    verdict = "confirmed" if not elsewhere else "not confirmed"
    if elsewhere and len(where) > len(elsewhere):
        verdict = "refined"
    tail = f"; not on {', '.join(elsewhere)}" if elsewhere else ""
    return verdict, f"{words}: {len(where)} of {len(holds)} sets{tail}"


def beats_naive_bayes(found: Found) -> Verdict:
    """The label and the features given a hidden variable, against given the label."""
    error = means(found["table5"], "error")
    both = {s: (error(s, QUADRUPLES), error(s, "Naive Bayes")) for s in SETS}
    holds = {s: a < b for s, (a, b) in both.items() if np.isfinite(a + b)}
    return on_most(holds, "Table V: quadruples have fewer errors than naive Bayes")


def order_helps(found: Found) -> Verdict:
    """Pairs, triples, quadruples on labels."""
    error = means(found["table5"], "error")
    rows = {s: [error(s, m) for m in (PAIRS, TRIPLES, QUADRUPLES)] for s in SETS}
    holds = {s: r[2] <= min(r) + EVEN for s, r in rows.items() if np.isfinite(sum(r))}
    words = "Table V: quadruples have the fewest errors of the three orders"
    return on_most(holds, words)


def against_machines(found: Found) -> Verdict:
    """Two classes, against support vector machines."""
    done = found["table5"]
    error = means(done, "error")
    machines = ("SVM (Linear)", "SVM (RBF)")
    rows = {s: (error(s, QUADRUPLES), min(error(s, m) for m in machines)) for s in BINARY}
    rows = {s: r for s, r in rows.items() if np.isfinite(sum(r))}
    spread = {s: done.where(dataset=s, method=QUADRUPLES).values("error").std() for s in rows}
    holds = {s: a <= b + max(spread[s], EVEN) for s, (a, b) in rows.items()}
    words = "Table V, two classes: quadruples below the better machine, or within one deviation"
    return on_most(holds, words)


def many_classes(found: Found) -> Verdict:
    """Several classes, against support vector machines."""
    error = means(found["table5"], "error")
    rows = {s: [error(s, m) for m in (QUADRUPLES, "SVM (RBF)")] for s in MULTICLASS}
    holds = {s: a > b for s, (a, b) in rows.items() if np.isfinite(a + b)}
    ours = ", ".join(f"{s} {error(s, 'JointClassifier'):.3f}" for s in MULTICLASS)
    words = "Table V, several classes: the RBF machine has fewer errors than quadruples"
    verdict, why = on_most(holds, words)
    return verdict, f"{why}. That is a limit of the ranks tried: our default has {ours}"


def ratings(
    found: Found, holds: Callable[[Callable[[str, str], float], str], bool | None], words: str
) -> Verdict:
    """A claim on every set of movies, by root mean square."""
    error = means(found["table7"], "rmse")
    judged = {name: holds(error, name) for name in MOVIES}
    return on_most({name: held for name, held in judged.items() if held is not None}, words)


def lowest(error: Callable[[str, str], float], name: str, others: Sequence[str]) -> bool | None:
    """Whether the best order of tables is below all others."""
    ours = np.nanmin([error(name, m) for m in (PAIRS, TRIPLES, QUADRUPLES)])
    theirs = [error(name, m) for m in others]
    return bool(ours < min(theirs)) if np.isfinite(ours + sum(theirs)) else None


def beats_averages(found: Found) -> Verdict:
    """Against global, user and movie averages."""
    words = "Table VII: lower RMSE than all three averages"
    return ratings(found, lambda error, name: lowest(error, name, AVERAGES), words)


def beats_factorization(found: Found) -> Verdict:
    """Against biased matrix factorization."""
    words = "Table VII: lower RMSE than biased matrix factorization"
    return ratings(found, lambda error, name: lowest(error, name, ("BMF",)), words)


def order_helps_ratings(found: Found) -> Verdict:
    """Pairs, triples, quadruples on ratings."""

    def holds(error: Callable[[str, str], float], name: str) -> bool | None:
        pairs, triples, quadruples = (error(name, m) for m in (PAIRS, TRIPLES, QUADRUPLES))
        if not np.isfinite(pairs + triples):
            return None
        return bool(np.nanmin([triples, quadruples]) < pairs)

    return ratings(found, holds, "Table VII: triples or quadruples have lower RMSE than pairs")


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
