"""Errors against the number of records, N = 5, I = 10: what Figures 7 and 8 share."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.accuracy.__main__ import make_data, one_model

import rejoint as rj
from paper.framework import Done, Expected, Section, Table, Text, save_figure
from paper.printed import ORDERS, RANKS
from paper.table4 import quiet
from rejoint.factorization import Admm, Limits

Means = Mapping[tuple[int, int], Mapping[str, float]]

#: Tenfold records that multiply an error by this or more have reached a plateau.
PLATEAU = 0.8
SIZES = (1_000, 10_000, 100_000, 1_000_000)
RUNS, STARTS, SWEEPS = 10, 1, 200

#: Name of the value, its label and line; tables first, then what is estimated from records.
CURVES = {
    "pairs": ("pairs, admm", "tab:red", "o-"),
    "triples": ("triples, admm", "tab:orange", "s-"),
    "quadruples": ("quadruples, admm", "tab:brown", "^-"),
    "default": ("`rj.estimate`", "tab:blue", "D-"),
    "oracle": ("oracle MLE", "tab:green", "v--"),
    "empirical": ("empirical MLE", "tab:gray", "x--"),
    "bound": ("Cramér-Rao bound", "black", ":"),
}


def cells(fast: bool, missing: float) -> Sequence[Mapping[str, Any]]:
    """Tables and records of every rank, size and run; the fast run takes one of each."""
    grid = list(product(range(RUNS), RANKS, SIZES))
    if fast:
        grid = [(0, 5, 10_000)] if missing else [(0, 5, 10_000), (0, 5, 1_000_000)]
    common = [{"missing": missing, "rank": f, "size": m, "seed": seed} for seed, f, m in grid]
    tables = [{"from": "tables", **c, "starts": STARTS, "sweeps": SWEEPS} for c in common]
    records = [{"from": "records", **c} for c in common]
    return tables + (records[:1] if fast else records)


def work(**settings: Any) -> dict[str, float]:
    """Errors of one data set, from its tables or from its records."""
    source = settings.pop("from")
    return from_tables(**settings) if source == "tables" else from_records(**settings)


def from_tables(
    missing: float, rank: int, size: int, seed: int, starts: int, sweeps: int
) -> dict[str, float]:
    """The paper's algorithm on pairs, triples and quadruples, counted where available."""
    truth, _, data = make_data(rank, size, missing, seed)
    limits = Limits(max_steps=sweeps, progress=1e-4, window=25)
    solver = Admm(limits=limits)
    found = {}
    for order, name in ORDERS.items():
        tables = rj.Marginals.count(data, order=order)
        fit = quiet(tables, rank, solver, start="random", n_init=starts, random_state=seed)
        found[name.lower()] = rj.metrics.tensor_error(truth, fit.pmf)
        apart = [
            0.5 * np.abs(tables.shares(i) - truth.marginal(names)).sum()
            for i, names in enumerate(tables.subsets)
        ]
        found[f"tables of {name.lower()}"] = float(np.mean(apart))
    return found


def from_records(missing: float, rank: int, size: int, seed: int) -> dict[str, float]:
    """`rj.estimate`, the two MLEs and the bound."""
    return one_model(rank, size, missing, seed)


def means(done: Done) -> Means:
    """Mean errors by rank and size."""
    found = {}
    for rank, size in product(RANKS, SIZES):
        part = done.where(rank=rank, size=size)
        values = {name: part.values(name) for name in CURVES}
        found[rank, size] = {k: float(v.mean()) for k, v in values.items() if len(v)}
    return {key: row for key, row in found.items() if row}


def expected(done: Done) -> Iterable[Expected]:
    """The order of the methods, which is what the paper's text says."""
    found = means(done)
    few, bound = found[5, 10_000], found[5, 10_000]["bound"]
    why = "one sample: its error is within 30 % of the root mean square (some 200 parameters)"
    yield Expected("default / bound", few["default"] / bound, 0.7, 1.3, why)
    why = "least squares: about 1.4 times the error of likelihood, more where tables are thin"
    yield Expected("triples / bound", few["triples"] / bound, 0.8, 2.0, why)
    yield Expected("quadruples / bound", few["quadruples"] / bound, 0.8, 2.5, why)
    why = "the hidden class is seen: below the bound of those who do not see it"
    yield Expected("oracle / bound", few["oracle"] / bound, 0.3, 0.95, why)
    why = "100,000 cells from at most 10,000 records"
    yield Expected("empirical MLE", few["empirical"], 2, 6, why)
    if (5, 1_000_000) not in found:
        return
    many = found[5, 1_000_000]
    why = "a hundred times the records: a tenth of the error, within the noise of one sample"
    yield Expected("triples, 1e6 / 1e4", many["triples"] / few["triples"], 0.06, 0.16, why)
    why = "pairs stay at their plateau, which is low for this model, while triples go on"
    yield Expected("pairs / triples, 1e6", many["pairs"] / many["triples"], 1.3, 20, why)


def section(done: Done, folder: Path, number: int) -> Section:
    """Curves, and the same as numbers."""
    found = means(done)
    counts = [len(done.where(**{"from": kind})) for kind in ("tables", "records")]
    complete = "complete records" if number == 7 else "20 % of the cells hidden"
    rows = []
    for (rank, size), row in found.items():
        shown = [f"{row[k]:.4f}" if k in row else "-" for k in CURVES]
        rows.append([str(rank), f"{size:,}", *shown])
    parts = [
        Text(
            f"Mean relative error of the joint, {complete}, {RUNS} runs (seeds 0 to {RUNS - 1}). "
            f"`admm` with {STARTS} random start of up to {SWEEPS} sweeps; three starts or 600 "
            "sweeps changed the errors by 4 % at the most in six settings tried. `rj.estimate` "
            "is the "
            "object that `rj.estimate(data, rank).pmf` returns: the posterior mean where there are "
            "few records, the maximum of the likelihood where there are many. The paper prints "
            "no numbers here, only curves; the "
            "Cramér-Rao bound is not in the paper. "
            f"Done: {counts[0]} of {done.wanted // 2} fits of tables, {counts[1]} of records."
        ),
        draw(done, folder, f"figure{number}"),
        Table(["F", "records", *(label for label, _, _ in CURVES.values())], rows),
        *[Text(words) for words in remarks(done, found)],
    ]
    return Section(f"Figure {number}: error against the number of records, {complete}", parts)


def falls(found: Means, name: str, size: int) -> list[float]:
    """What ten times the records multiply an error by, for each rank."""
    rows = [(found.get((f, size), {}), found.get((f, 10 * size), {})) for f in RANKS]
    return [
        after[name] / before[name] for before, after in rows if name in before and name in after
    ]


def remarks(done: Done, found: Means) -> Iterable[str]:
    """What the paper's text says of the curves, in numbers."""
    pairs, triples = (falls(found, name, 100_000) for name in ("pairs", "triples"))
    if not (pairs and triples):
        return
    level = sum(fall >= PLATEAU for fall in pairs)
    shown = [", ".join(f"{x:.2f}" for x in fall) for fall in (pairs, triples)]
    yield (
        "From 100,000 to 1,000,000 records the error is multiplied by (F = 5, 10, 15): pairs "
        f"{shown[0]}; triples {shown[1]}, where `1/√10 = 0.32` is all that more records can give. "
        f"By the rule that {PLATEAU} or more is a plateau, pairs have reached theirs at {level} of "
        f"{len(pairs)} ranks."
    )
    small = [found[f, 1_000] for f in RANKS if (f, 1_000) in found]
    if small and all({"triples", "quadruples"} <= row.keys() for row in small):
        ratio = ", ".join(f"{row['quadruples'] / row['triples']:.2f}" for row in small)
        yield (
            f"With 1,000 records quadruples have {ratio} times the error of triples (F = 5, 10, "
            "15)."
        )
    apart = {k: done.where(size=1_000).values(f"tables of {k}") for k in CURVES}
    if all(len(apart[k]) for k in ("pairs", "triples", "quadruples")):
        means_of = ", ".join(f"{k} {apart[k].mean():.2f}" for k in list(CURVES)[:3])
        yield f"Mean total variation of the counted tables themselves, 1,000 records: {means_of}."
    last = [found[f, 1_000_000] for f in RANKS if (f, 1_000_000) in found]
    if last and all({"triples", "oracle", "default", "bound"} <= row.keys() for row in last):
        oracle = ", ".join(f"{row['triples'] / row['oracle']:.2f}" for row in last)
        ours = ", ".join(f"{row['default'] / row['bound']:.2f}" for row in last)
        yield (
            f"With 1,000,000 records triples have {oracle} times the error of the oracle, and "
            f"`rj.estimate` {ours} times the Cramér-Rao bound: what is left between the bound "
            f"and the "
            "oracle is the price of not seeing the hidden variable, which no estimator avoids."
        )


def draw(done: Done, folder: Path, name: str) -> Any:
    """One panel for each rank."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(11, 4), sharey=True, layout="constrained")
    for ax, rank in zip(axes, RANKS, strict=True):
        for curve, (label, colour, line) in CURVES.items():
            points = [(m, done.where(rank=rank, size=m).values(curve)) for m in SIZES]
            points = [(m, v) for m, v in points if len(v)]
            if points:
                sizes, means_of = [m for m, _ in points], [float(v.mean()) for _, v in points]
                ax.plot(sizes, means_of, line, color=colour, label=label.strip("`"), markersize=5)
        ax.set(xscale="log", yscale="log", xlabel="records, M", title=f"F = {rank}")
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("mean relative error of the joint")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return save_figure(figure, folder, name, "Mean relative error of the joint, 10 runs.")
