"""Table VI: variables and ranks of the seven UCI sets."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from paper import labels, table5
from paper.framework import Done, Expected, Experiment, Section, Table, Text, save_figure
from paper.framework.parts import Figure
from paper.printed import SETS, TABLE6


def cells(fast: bool) -> Sequence[Mapping[str, Any]]:
    """One cell for each set."""
    table5.check_data()
    return [{"dataset": name} for name in SETS]


def work(dataset: str) -> dict[str, Any]:
    """Size of a set, with the label."""
    records = labels.table(dataset)
    rows, variables = records.codes.shape
    return {"rows": rows, "variables": variables, "levels": list(records.domain.shape)}


def expected(done: Done) -> Iterable[Expected]:
    """As many variables as the paper says."""
    for cell in done:
        name = cell.settings["dataset"]
        count = TABLE6[name][0]
        yield Expected(f"{name}, N", cell.values["variables"], count, count, "a whole number")


def section(done: Done, folder: Path) -> Section:
    """Sizes, and the ranks that were chosen in Table V."""
    chosen = table5.EXPERIMENT.done()
    rows = []
    for cell in done:
        name = cell.settings["dataset"]
        variables, largest = TABLE6[name]
        tried = ", ".join(map(str, table5.TUNING[name][0]))
        sizes = [f"{cell.values['variables']} ({variables})", f"{cell.values['rows']:,}"]
        levels = " ".join(map(str, cell.values["levels"]))
        ranks = [middle(ranks_of(chosen, method, name)) for method in table5.CP]
        rows.append([name, *sizes, levels, f"[1, {largest}]", tried, *ranks])
    head = ["", "N (printed)", "rows", "levels, the label last", "printed ranks", "ranks tried"]
    words = (
        "The sets as taken here have as many variables as the paper's. Median of the ranks that "
        "the validation part chose in Table V, for pairs, triples and quadruples:"
    )
    parts = [Text(words), Table([*head, "pairs", "triples", "quadruples"], rows)]
    return Section("Table VI: the seven sets", [*parts, draw(chosen, folder)])


def ranks_of(done: Done, method: str, name: str) -> np.ndarray:
    """Ranks chosen, split by split."""
    return np.asarray(done.where(method=method, dataset=name).values("rank"))


def middle(ranks: np.ndarray) -> str:
    """The median in words."""
    return f"{np.median(ranks):g}" if len(ranks) else "-"


def draw(done: Done, folder: Path) -> Figure:
    """How often each rank was chosen."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(10, 2.8), sharey=True, layout="constrained")
    for ax, method in zip(axes, table5.CP, strict=True):
        for place, name in enumerate(SETS):
            counts = Counter(ranks_of(done, method, name).tolist())
            area = [20.0 * count for count in counts.values()]
            ax.scatter([place] * len(counts), list(counts), area, color="tab:blue", alpha=0.7)
            ax.plot([place, place], [1, TABLE6[name][1]], color="0.7", zorder=0)
        ax.set_title(method, fontsize=10)
        ax.set_xticks(range(len(SETS)), SETS, rotation=60, ha="right", fontsize=7)
    axes[0].set_ylabel("rank chosen")
    words = "Table VI: ranks chosen (the larger, the more often) within the printed range (grey)"
    found = save_figure(figure, folder, "table6", words)
    return found


EXPERIMENT = Experiment("table6", cells, work, section, expected)

if __name__ == "__main__":
    EXPERIMENT.main()
