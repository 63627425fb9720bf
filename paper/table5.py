"""Table V: errors of labels on seven UCI sets."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.classify import sets

import rejoint as rj
from paper import baselines, coupled
from paper.beside import Entry, draw, grid, tally
from paper.framework import Done, Expected, Experiment, Section, Text, Unavailable
from paper.printed import ORDERS, SETS, TABLE5

SPLITS = 10
OURS = "JointClassifier"
CP = {f"CP ({name})": order for order, name in ORDERS.items()}
METHODS = (*CP, *baselines.BASELINES, OURS)
#: Variants of baselines; the first two are for several classes.
VARIANTS, MANY = tuple(baselines.VARIANTS), ("CAR", "NURSERY")
#: Ranks tried, within the paper's ranges; random starts of each; sweeps.
TUNING = {
    "INCOME": ((10, 15, 20), 3, 50),
    "CREDIT": ((2, 5, 10, 20), 2, 50),
    "HEART": ((2, 3, 5, 10), 2, 50),
    "MUSHROOM": ((12, 14, 16, 18, 20), 2, 60),
    "VOTES": ((2, 3, 5, 10), 2, 60),
    "CAR": ((3, 5, 10, 15), 2, 60),
    "NURSERY": ((3, 5, 10, 15), 2, 60),
}
#: Cheapest first, so that an interrupted run has whole columns.
SEQUENCE = ("HEART", "CREDIT", "CAR", "NURSERY", "VOTES", "INCOME", "MUSHROOM")
STORED = Path(__file__).parents[1] / "benchmarks" / "results" / "classify.json"


def cells(fast: bool) -> Sequence[Mapping[str, Any]]:
    """Every set, split and method; the fast run takes one split of the smallest."""
    check_data()
    if fast:
        small = {"ranks": [3, 15], "starts": 1, "sweeps": 50}
        return [settings("CAR", m, 0) | (small if m in CP else {}) for m in METHODS if m != OURS]
    tasks = product(SEQUENCE, range(SPLITS), (*METHODS, *VARIANTS))
    wanted = [settings(name, m, k) for name, k, m in tasks if m not in VARIANTS[:2] or name in MANY]
    return sorted(wanted, key=turn)


def check_data() -> None:
    """Raise where a set is neither here nor fetched."""
    try:
        table("HEART")
    except (OSError, ValueError) as reason:
        raise Unavailable(f"the UCI sets are not here: {reason}") from None


def settings(name: str, method: str, number: int) -> dict[str, Any]:
    """Settings of a cell."""
    ranks, starts, sweeps = TUNING[name]
    tuned = {"ranks": list(ranks), "starts": starts, "sweeps": sweeps} if method in CP else {}
    return {"dataset": name, "method": method, "split": number} | tuned


def turn(cell: Mapping[str, Any]) -> tuple[bool, bool, int, int]:
    """When a cell is worked out: split by split, what takes longest last."""
    name = cell["dataset"]
    large = name in ("INCOME", "MUSHROOM")
    return cell["method"] == OURS, large, cell["split"], SEQUENCE.index(name)


@cache
def table(name: str) -> rj.Records:
    """Features and, last, the label; missing cells hold the mode, as public loaders have it."""
    X, y = rj.datasets.paper_set(name.lower(), filled=True, backend="dict")
    columns = {key: [str(x) for x in column] for key, column in X.items()}
    return rj.Records.of(columns | {"label": [str(x) for x in y]})


def work(dataset: str, method: str, split: int, **tuned: Any) -> dict[str, Any]:
    """Error of one method on one split."""
    if method == OURS:
        return ours(dataset, split)
    records = table(dataset)
    parts = sets.split(len(records), split)
    if method in CP:
        return by_tables(records, CP[method], parts, **tuned)
    features, labels = records.codes[:, :-1], records.codes[:, -1]
    levels = list(records.domain.shape[:-1])
    found = baselines.errors(method, features, labels, levels, parts)
    return {"error": min(found.values()), "encodings": found}


def by_tables(
    records: rj.Records,
    order: int,
    parts: tuple[np.ndarray, ...],
    ranks: Sequence[int],
    starts: int,
    sweeps: int,
) -> dict[str, Any]:
    """The paper's method: the rank with the lowest error on the validation part."""
    learn, judge, test = parts
    codes = records.codes
    known = rj.Records(records.domain, np.ascontiguousarray(codes[learn]))
    tried = []
    for model in coupled.models(known, order, ranks, starts, sweeps):
        shares = label_shares(model, codes)
        wrong = shares.argmax(axis=1) != codes[:, -1]
        surprise = -np.log(shares[judge, codes[judge, -1]]).mean()  # where errors tie
        tried.append((wrong[judge].mean(), surprise, model.rank, wrong[test].mean()))
    _, _, rank, error = min(tried)
    return {
        "error": error,
        "rank": rank,
        "tried": [{"rank": r, "validation": v, "test": t} for v, _, r, t in tried],
    }


def label_shares(model: rj.LowRankPMF, codes: np.ndarray) -> np.ndarray:
    """Probabilities of the label, the last variable, given the others."""
    hidden = codes.copy()
    hidden[:, -1] = -1
    shares = coupled.class_shares(model, hidden) @ coupled.softened(model)[-1].T
    return np.maximum(shares, 1e-12)


def ours(dataset: str, number: int) -> dict[str, Any]:
    """Our default, from the benchmark of it where that has the split, else worked out."""
    import json

    from benchmarks.classify.__main__ import measure

    key = f"{dataset.lower()}|{OURS}|{number}"
    if STORED.exists() and key in (kept := json.loads(STORED.read_text())):
        return dict(kept[key])
    X, y = sets.load(dataset.lower())
    return measure(OURS, X, y, sets.split(len(y), number))


def summary(done: Done) -> dict[str, dict[str, float]]:
    """Mean error by method and set."""
    found: dict[str, dict[str, float]] = {}
    for method, name in product((*METHODS, *VARIANTS), SETS):
        values = errors(done, method, name)
        if len(values):
            found.setdefault(method, {})[name] = float(values.mean())
    return found


def errors(done: Done, method: str, name: str) -> np.ndarray:
    """Errors over the splits; of two encodings the one that is better on average."""
    part = done.where(method=method, dataset=name)
    if method not in baselines.BASELINES or not len(part):
        return np.asarray(part.values("error"))
    kinds = part.cells[0].values["encodings"]
    each = [np.array([c.values["encodings"][kind] for c in part]) for kind in kinds]
    return min(each, key=lambda values: values.mean())


def entries(done: Done, methods: Sequence[str]) -> dict[str, dict[str, Entry]]:
    """Ours and the printed, by method and set."""
    found: dict[str, dict[str, Entry]] = {}
    for method, name in product(methods, SETS):
        printed = TABLE5[method][name] if method in TABLE5 else None
        found.setdefault(method, {})[name] = Entry(errors(done, method, name), printed)
    return found


def expected(done: Done) -> Iterable[Expected]:
    """One split of CAR is not far from the printed row."""
    for cell in done:
        name, method = cell.settings["dataset"], cell.settings["method"]
        mean, deviation = TABLE5[method][name]
        why = "one split: at most four printed deviations above the printed mean"
        yield Expected(f"{name}, {method}", cell.values["error"], 0, mean + 4 * deviation, why)


def section(done: Done, folder: Path) -> Section:
    """The table, what differs and why, and the picture."""
    rows = entries(done, METHODS)
    reached, count = tally(rows)
    splits = {len(errors(done, m, n)) for m, n in product(CP, SETS)}
    number = str(max(splits)) if len(splits) == 1 else f"{min(splits)} to {max(splits)}"
    parts: list[Any] = [
        Text(protocol(number)),
        grid(rows, SETS),
        Text(
            f"Within two printed standard deviations of the printed mean, or better: {reached} of "
            f"{count} entries. A star marks the others."
        ),
        *(Text(words) for words in reasons(done)),
        draw(rows, SETS, folder, "table5", "error", "Table V: errors on the seven sets"),
    ]
    return Section("Table V: labels of seven UCI sets", parts)


def protocol(number: str) -> str:
    """What was done, in words."""
    return (
        f"{number} random splits into 70 % to learn from, 10 % to choose by and 20 % to test on; "
        "mean and standard deviation of the share of wrong labels, the printed in "
        "brackets. Missing cells hold the mode, as in public loaders of the same line of work, "
        "but for our default, which takes them as missing and learns from the 80 %. The paper's "
        "method is `admm` on all pairs, triples or quadruples of the 70 %, from two or three "
        "random starts at each of some ranks in its range (Table VI), the one with the fewest "
        "errors on the 10 % taken, and of several such the one with the lowest log-loss there. "
        "SVMs are scikit-learn's, tuned on the 10 %, in both encodings, of which the better is "
        f"shown; one with a kernel is tuned on {baselines.TUNED_ON:,} rows and fitted to at most "
        f"{baselines.FITTED_TO:,}."
    )


def reasons(done: Done) -> list[str]:
    """Where and why ours differ from the printed, from cells that were run to find out."""
    mean = {m: {n: shown(errors(done, m, n)) for n in SETS} for m in (*METHODS, *VARIANTS)}
    linear, rest, losses = (mean[m] for m in ("SVM (Linear)", *VARIANTS[:2]))
    bayes, plus_one = mean["Naive Bayes"], mean[VARIANTS[2]]
    best = {n: ", ".join(shown(at_best(done, m, n)) for m in CP) for n in SETS}
    fixed = ", ".join(f"{r} {e}" for r, e in by_rank(done, "CP (Quadruples)", "HEART").items())
    return [
        "Linear SVM on several classes: how classes are told apart decides. One class against the "
        f"rest has {rest['CAR']} of errors on CAR and {rest['NURSERY']} on NURSERY, pairs of "
        f"classes by votes (the row above) {linear['CAR']} and {linear['NURSERY']}, pairs at hinge "
        f"loss, the class of least loss, as MATLAB does it, {losses['CAR']} and "
        f"{losses['NURSERY']}; printed are 0.065 and 0.063.",
        "Naive Bayes on MUSHROOM: counts plus one, MATLAB's rule, make "
        f"{plus_one['MUSHROOM']} (printed 0.044); the row above has a tuned share added, "
        f"{bayes['MUSHROOM']}.",
        "HEART has 30 records to choose by, and little is gained from choosing: mean error of "
        f"quadruples at a fixed rank: {fixed} (rank, error). Even models chosen by the test part "
        f"itself, which nobody may do, are at {best['HEART']} (pairs, triples, quadruples), so "
        "that the printed 0.138 for quadruples is luck of ten splits, or another choice of "
        "columns. The order of the three rows is within their noise.",
        "MUSHROOM: models of the same rank that meet the tables about equally well differ in "
        "errors by a factor of three, and a better fit of the tables is not always a better "
        f"classifier. Chosen by the test part itself they are at {best['MUSHROOM']}. The printed "
        "values need more starts or ranks than were tried here; rank and sweeps are within the "
        "paper's range.",
        "Our default learns from records, not tables, and averages models of higher rank than the "
        "paper's range: on CAR and NURSERY it is on a level with the RBF SVM.",
    ]


def shown(values: np.ndarray) -> str:
    """The mean in words."""
    return f"{values.mean():.3f}" if len(values) else "-"


def at_best(done: Done, method: str, name: str) -> np.ndarray:
    """Errors if the test part itself chose among the models that were tried."""
    part = done.where(method=method, dataset=name)
    return np.array([min(one["test"] for one in cell.values["tried"]) for cell in part])


def by_rank(done: Done, method: str, name: str) -> dict[int, str]:
    """Mean error of all starts at each rank."""
    found: dict[int, list[float]] = {}
    for cell in done.where(method=method, dataset=name):
        for one in cell.values["tried"]:
            found.setdefault(one["rank"], []).append(one["test"])
    return {rank: shown(np.array(values)) for rank, values in found.items()}


EXPERIMENT = Experiment("table5", cells, work, section, expected)

if __name__ == "__main__":
    EXPERIMENT.main()
