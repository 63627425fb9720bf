"""Figure 6: rank and independence. Low rank does not mean nearly independent."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rejoint as rj
from paper.framework import Done, Expected, Experiment, Section, Table, Text, save_figure

LEVELS = 8
WORLDS = ("independent", "two blocks", "fully dependent")


def cells(fast: bool) -> Sequence[Mapping[str, Any]]:
    """Three joints of two variables."""
    return [{"world": world, "levels": LEVELS} for world in WORLDS]


def joint(world: str, levels: int) -> NDArray[np.float64]:
    """Independent (rank 1); high with high and low with low (rank 2); equal (full rank)."""
    shares = np.arange(1.0, levels + 1)
    shares /= shares.sum()
    if world == "independent":
        return np.outer(shares, shares[::-1])
    if world == "fully dependent":
        return np.diag(shares)
    half = levels // 2
    low, high = (np.where(np.arange(levels) < half, *x) for x in ((1, 0), (0, 1)))
    low, high = low * shares / (low @ shares), high * shares / (high @ shares)
    return 0.5 * np.outer(low, low) + 0.5 * np.outer(high, high)


def work(world: str, levels: int) -> dict[str, Any]:
    """Rank, dependence, and how much rank a model of it needs."""
    table = joint(world, levels)
    product = np.outer(table.sum(axis=1), table.sum(axis=0))
    seen = table > 0
    bits = max(0.0, float((table[seen] * np.log2(table[seen] / product[seen])).sum()))
    shares = table.sum(axis=1)
    entropy = float(-(shares[shares > 0] * np.log2(shares[shares > 0])).sum())
    model = rj.LowRankPMF.from_dense(table)
    small = model.reduce(int(np.linalg.matrix_rank(table)))
    return {
        "table": table,
        "rank": int(np.linalg.matrix_rank(table)),
        "bits": bits,
        "share": bits / entropy,
        "distance": float(0.5 * np.abs(table - product).sum()),
        "error": float(np.abs(small.pmf.to_dense() - table).max()),
    }


def expected(done: Done) -> Iterable[Expected]:
    """Ranks, and mutual information in closed form."""
    known = {"independent": (1, 0.0), "two blocks": (2, 1.0)}
    for cell in done:
        world, found = cell.settings["world"], cell.values
        rank, bits = known.get(world, (LEVELS, found["bits"]))
        yield Expected(f"{world}, rank", found["rank"], rank, rank, "by construction")
        why = "closed form: 0, one bit for two even blocks; rounding only"
        yield Expected(f"{world}, bits", found["bits"], bits - 1e-12, bits + 1e-12, why)
        why = "a model of that rank exists; where the fit stops"
        yield Expected(f"{world}, error of the model", found["error"], 0, 1e-7, why)


def section(done: Done, folder: Path) -> Section:
    """Three tables drawn, with rank and dependence."""
    head = ["joint", "rank", "mutual information, bits", "of the entropy"]
    head += ["distance from independence", "error of a model of that rank"]
    rows = []
    for cell in done:
        found = cell.values
        shown = [f"{found['bits']:.3f}", f"{found['share']:.0%}", f"{found['distance']:.2f}"]
        rows.append([cell.settings["world"], str(found["rank"]), *shown, f"{found['error']:.0e}"])
    parts = [
        Text(
            "Independent variables have a joint of rank 1, fully dependent ones of full rank; but "
            "rank 2 also holds variables that are strongly dependent. Distance is total variation "
            f"from the product of the marginals; {LEVELS} levels each."
        ),
        Table(head, rows),
        draw(done, folder),
    ]
    return Section("Figure 6: rank and independence", parts)


def draw(done: Done, folder: Path) -> Any:
    """The three tables as pictures."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(WORLDS), figsize=(9, 3), layout="constrained")
    for ax, cell in zip(axes, done, strict=False):
        table = np.array(cell.values["table"])
        ax.pcolormesh(np.arange(1, LEVELS + 2) - 0.5, np.arange(1, LEVELS + 2) - 0.5, table.T)
        ax.invert_yaxis()
        words = f"rank {cell.values['rank']}, {cell.values['bits']:.2f} bits shared"
        ax.set(title=f"{cell.settings['world']}\n{words}", xlabel="$x_1$", aspect="equal")
    axes[0].set_ylabel("$x_2$")
    return save_figure(figure, folder, "figure6", "Joints of two variables; brighter is likelier.")


EXPERIMENT = Experiment("figure6", cells, work, section, expected)

if __name__ == "__main__":
    EXPERIMENT.main()
