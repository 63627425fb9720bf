"""Section II: what one-dimensional marginals say of the joint, and pairs with a known graph."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.models import random_pmf

import rejoint as rj
from paper.framework import Done, Expected, Experiment, Section, Table, Text, save_figure

RUNS = 20
CASES = (
    "independent, known to be",
    "fully dependent, known to be",
    "rank 2, taken as independent",
    "rank 2, taken as fully dependent",
    "independent given x3, known to be (pairs)",
)


def cells(fast: bool) -> Sequence[Mapping[str, Any]]:
    """Each case with some random models."""
    runs = 3 if fast else RUNS
    return [{"case": case, "seed": seed} for seed in range(runs) for case in CASES]


def work(case: str, seed: int) -> dict[str, float]:
    """Error of the joint recovered under the case's assumption."""
    rng = np.random.default_rng(seed)
    if case.endswith("(pairs)"):
        hub = random_pmf([4, 4], 3, rng)
        truth = rj.LowRankPMF(hub.weights, [*hub.factors, np.eye(3)])
        pairs = rj.Marginals.from_pmf(truth, subsets=[("x0", "x2"), ("x1", "x2")])
        found = rj.identifiability.from_pairs(pairs, given="x2")
        return {"error": rj.metrics.tensor_error(truth, found)}
    truth = world(case, rng)
    shares = {name: truth.marginal([name]) for name in truth.domain.names}
    dependent = "taken as fully" in case or case.startswith("fully")
    try:
        found = rj.identifiability.from_1d(shares, dependent=dependent)
    except ValueError:  # the two lists of probabilities differ: it cannot be so, and it says so
        return {"refused": 1.0}
    return {"error": rj.metrics.tensor_error(truth, found)}


def world(case: str, rng: np.random.Generator) -> rj.LowRankPMF:
    """Two variables of five levels: a product, a permutation, or a mixture of two."""
    if case.startswith("fully"):
        weights = rng.random(5)
        return rj.LowRankPMF(weights / weights.sum(), [np.eye(5), np.eye(5)[rng.permutation(5)]])
    return random_pmf([5, 5], 1 if case.startswith("independent") else 2, rng)


def expected(done: Done) -> Iterable[Expected]:
    """Exact where the assumption holds, off or refused where it does not."""
    for case in CASES:
        part = done.where(case=case)
        if "taken as fully" in case:
            why = "random marginals are no permutation of each other"
            share = len(part.values("refused")) / len(part)
            yield Expected(f"{case}: refused", share, 1, 1, why)
        elif "taken" in case:
            why = "two random components are a few tenths from their product"
            yield Expected(case, float(part.values("error").mean()), 0.02, 0.8, why)
        else:
            why = "closed form: rounding only"
            yield Expected(case, float(part.values("error").max()), 0, 1e-12, why)


def section(done: Done, folder: Path) -> Section:
    """Errors by case."""
    rows = []
    for case in CASES:
        part = done.where(case=case)
        errors = part.values("error")
        worst = f"{errors.max():.1e}" if len(errors) else "-"
        mean = f"{errors.mean():.1e}" if len(errors) else "-"
        rows.append([case, mean, worst, f"{len(part.values('refused'))} of {len(part)}"])
    parts = [
        Text(
            "Two variables of five levels (three variables for the last line), "
            f"{RUNS} random models (seeds 0 to {RUNS - 1}): relative error of the joint recovered "
            "by `identifiability.from_1d` and `from_pairs`. One-dimensional marginals suffice "
            "where the variables are known to be independent, or each known to determine the "
            "other and no two probabilities are equal; else they do not."
        ),
        Table(["the joint is", "mean error", "largest", "refused"], rows),
        draw(folder),
    ]
    return Section("Section II: from one-dimensional marginals", parts)


def draw(folder: Path) -> Any:
    """Three joints with the same marginals (the paper's Figure 2)."""
    import matplotlib.pyplot as plt

    shares = np.array([0.1, 0.2, 0.3, 0.4])
    product = np.outer(shares, shares)
    tables = {
        "independent": product,
        "fully dependent": np.diag(shares),
        "between them": 0.5 * product + 0.5 * np.diag(shares),
    }
    figure, axes = plt.subplots(1, 3, figsize=(9, 2.9), layout="constrained")
    for ax, (title, table) in zip(axes, tables.items(), strict=True):
        ax.pcolormesh(np.arange(5) + 0.5, np.arange(5) + 0.5, table, vmin=0, vmax=0.4)
        for i, j in np.ndindex(4, 4):
            colour = "black" if table[i, j] > 0.2 else "white"
            ax.text(j + 1, i + 1, f"{table[i, j]:.2f}", ha="center", va="center", color=colour)
        ax.invert_yaxis()
        ax.set(title=title, xticks=range(1, 5), yticks=range(1, 5), xlabel="$x_2$")
    axes[0].set_ylabel("$x_1$")
    caption = "Three joints; rows and columns sum to .1, .2, .3, .4 in each."
    return save_figure(figure, folder, "section2", caption)


EXPERIMENT = Experiment("section2", cells, work, section, expected)

if __name__ == "__main__":
    EXPERIMENT.main()
