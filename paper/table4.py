"""Table IV: errors of factors and joint where the tables are known exactly."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from benchmarks.models import random_pmf

import rejoint as rj
from paper.framework import Done, Expected, Experiment, Section, Table, Text, save_figure
from paper.printed import ORDERS, RANKS, TABLE4
from rejoint.factorization import Admm, Limits

LEVELS = [10] * 5
RUNS, STARTS, SWEEPS = 20, 10, 1000
#: Runs in which our default is tried on pairs too, which takes long and cannot succeed.
PAIRS = 5
#: Relative error of the tables from which on a start has succeeded: what the paper reaches.
SUCCESS = 1e-7


def cells(fast: bool) -> Sequence[Mapping[str, Any]]:
    """Every rank, order and run; the fast run takes the smallest."""
    if fast:
        return [settings(5, order, 1, 2, 300) for order in (2, 3, 4)] + [settings(15, 3, 0, 1, 50)]
    return [
        settings(rank, order, seed, STARTS, SWEEPS)
        for seed, rank, order in product(range(RUNS), RANKS, ORDERS)
    ]


def settings(rank: int, order: int, seed: int, starts: int, sweeps: int) -> dict[str, Any]:
    """Settings of a cell."""
    return {"rank": rank, "order": order, "seed": seed, "starts": starts, "sweeps": sweeps}


def work(rank: int, order: int, seed: int, starts: int, sweeps: int) -> dict[str, Any]:
    """One random model: our default, and the paper's algorithm from random starts."""
    truth = random_pmf(LEVELS, rank, np.random.default_rng(seed))
    tables = rj.Marginals.from_pmf(truth, order=order)
    runs = []
    for start in range(starts):
        limits = Limits(max_steps=sweeps, progress=1e-3, window=50)
        solver = Admm(limits=limits)
        runs.append(quiet(tables, rank, solver, start="random", n_init=1, random_state=start))
        if runs[-1].error < SUCCESS:
            break
    best = min(runs, key=lambda r: r.error)
    return {
        "auto": default(truth, tables, seed) if order > 2 or seed < PAIRS else None,
        "admm": errors(truth, best.pmf) | {"tables": best.error, "reason": best.starts[0].reason},
        "starts": [{"tables": r.error, "sweeps": len(r.history) - 1} for r in runs],
    }


def default(truth: rj.LowRankPMF, tables: rj.Marginals, seed: int) -> dict[str, float]:
    """Errors and time of our default; one start for pairs, which no start can tell apart."""
    begun = perf_counter()
    starts = 1 if len(tables.subsets[0]) == 2 else 10
    found = quiet(tables, truth.rank, "auto", n_init=starts, random_state=seed)
    seconds = perf_counter() - begun
    return errors(truth, found.pmf) | {"tables": found.error, "seconds": seconds}


def quiet(tables: rj.Marginals, rank: int, solver: Any, **options: Any) -> rj.FitResult:
    """A fit without the remark that pairs leave the joint open, which is what is shown here."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rj.Remark)
        return rj.factorize(tables, rank, solver, progress=False, **options)


def errors(truth: rj.LowRankPMF, found: rj.LowRankPMF) -> dict[str, float]:
    """The paper's two errors of one run."""
    return {
        "factors": rj.metrics.factor_error(truth, found),
        "joint": rj.metrics.tensor_error(truth, found),
    }


def summary(done: Done) -> dict[str, Any]:
    """Means over the runs, by rank and order."""
    rows = {}
    for rank, order in product(RANKS, ORDERS):
        part = done.where(rank=rank, order=order)
        if not part.cells:
            continue
        starts = [s for c in part for s in c.values["starts"]]
        reached = [s["sweeps"] for s in starts if s["tables"] < SUCCESS]
        row: dict[str, Any] = {"runs": len(part), "starts": len(starts), "reached": len(reached)}
        row["sweeps"] = float(np.median(reached)) if reached else None
        row["solved"] = sum(c.values["admm"]["tables"] < SUCCESS for c in part)
        for solver, error in product(("auto", "admm"), ("factors", "joint")):
            values = [c.values[solver][error] for c in part if c.values[solver]] or [np.nan]
            row[f"{solver} {error}"] = float(np.mean(values))
            row[f"{solver} {error} median"] = float(np.median(values))
        seconds = [c.values["auto"]["seconds"] for c in part if c.values["auto"]] or [np.nan]
        row["seconds"] = float(np.median(seconds))
        rows[rank, order] = row
    return rows


def expected(done: Done) -> Iterable[Expected]:
    """Triples and quadruples exact with ours; pairs leave the joint open."""
    for cell in done:
        rank, order, found = cell.settings["rank"], cell.settings["order"], cell.values["auto"]
        name = f"auto, F = {rank}, {ORDERS[order].lower()}, error of the joint"
        if order == 2:
            why = "pairs do not determine it: between a tenth and three times the printed mean"
            yield Expected(name, found["joint"], 0.1 * 0.148, 3 * 0.148, why)
            why = "the tables themselves are met to rounding"
            yield Expected(f"{name.replace('joint', 'tables')}", found["tables"], 0, 1e-10, why)
        else:
            why = "solved algebraically: 1e-14, times a condition number of at most 1e4"
            yield Expected(name, found["joint"], 0, 1e-10, why)
    why = "every sweep lowers the objective: far below the 0.2 of a random start"
    for cell in done.where(order=3):
        name = f"admm, F = {cell.settings['rank']}, triples, error of the tables"
        yield Expected(name, cell.values["admm"]["tables"], 0, 0.03, why)


def section(done: Done, folder: Path) -> Section:
    """Printed, ours, and the paper's algorithm."""
    found = summary(done)
    both = [["F", "tables", "printed", "ours (`auto`)", "seconds", "`admm`, best: median", "mean"]]
    success = [["F", "tables", "runs solved", "starts that succeed", "sweeps of those (median)"]]
    for (rank, order), row in found.items():
        label = [str(rank), ORDERS[order].lower()]
        shown = [pair(*TABLE4[rank, order]), pair(row["auto factors"], row["auto joint"])]
        admm = (
            [f"admm factors{m}" for m in (" median", "")],
            [f"admm joint{m}" for m in (" median", "")],
        )
        shown.append(f"{row['seconds']:.2f}")
        shown += [pair(row[a], row[b]) for a, b in zip(*admm, strict=True)]
        both.append(label + shown)
        share = f"{row['reached']} of {row['starts']} ({row['reached'] / row['starts']:.0%})"
        sweeps = "-" if row["sweeps"] is None else f"{row['sweeps']:.0f}"
        success.append([*label, f"{row['solved']} of {row['runs']}", share, sweeps])
    parts = [
        Text(
            f"Random models, N = 5, I = 10, {RUNS} runs (seeds 0 to {RUNS - 1}). Each entry is "
            "MRE_fact / MRE_ten. `auto` solves triples and quadruples algebraically. `admm` is the "
            "paper's algorithm (Anderson mixing added) from random starts, at most "
            f"{STARTS} of up to {SWEEPS:,} sweeps, until one meets the tables to {SUCCESS:.0e}; "
            "the best start counts. A start is given up when 50 sweeps lower the objective by less "
            "than a thousandth. `auto` takes one start where the tables are pairs, since no start "
            f"can tell the models apart that have them, and only in the first {PAIRS} runs."
        ),
        Table(both[0], both[1:]),
        Table(success[0], success[1:]),
        Text(
            "Where they differ: ours is exact to rounding where the paper stops at 1e-7. For pairs "
            "the tables are met exactly too, and still the joint is off by 10 to 20 %, as printed: "
            "many models have these pairs. The paper's algorithm from a random start often stands "
            "in a swamp, far from the tables, for thousands of sweeps (mean against median); the "
            "paper does not say how many starts it took."
        ),
        draw(done, folder),
    ]
    return Section("Table IV: exact tables", parts)


def pair(factors: float, joint: float) -> str:
    """Both errors, in the form the paper prints them."""
    return " / ".join(f"{x:.3f}" if x > 0.01 else f"{x:.1e}" for x in (factors, joint))


def draw(done: Done, folder: Path) -> Any:
    """Every run's error of the joint, beside the printed mean."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), sharey=True, layout="constrained")
    for ax, (order, title) in zip(axes, ORDERS.items(), strict=True):
        for place, rank in enumerate(RANKS):
            part = done.where(rank=rank, order=order)
            for shift, (solver, colour) in zip(
                (-0.17, 0.17), (("admm", "tab:orange"), ("auto", "tab:blue")), strict=True
            ):
                values = [c.values[solver]["joint"] for c in part if c.values[solver]]
                at = place + shift + np.linspace(-0.08, 0.08, len(values))
                label = {"admm": "admm, best start", "auto": "ours"}[solver]
                ax.plot(at, values, ".", color=colour, label=label if place == 0 else None)
            ax.plot(
                [place - 0.35, place + 0.35],
                [TABLE4[rank, order][1]] * 2,
                "k-",
                label="printed mean" if place == 0 else None,
            )
        ax.set(yscale="log", title=title.lower(), ylim=(1e-16, 2))
        ax.set_xticks(range(len(RANKS)), [f"F = {rank}" for rank in RANKS])
        ax.grid(axis="y", alpha=0.3)
    axes[0].set_ylabel("relative error of the joint")
    axes[0].legend(frameon=False, loc="lower left")
    caption = "Error of the joint from exact tables, each run a point."
    made = save_figure(figure, folder, "table4", caption)
    plt.close(figure)
    return made


EXPERIMENT = Experiment("table4", cells, work, section, expected)

if __name__ == "__main__":
    EXPERIMENT.main()
