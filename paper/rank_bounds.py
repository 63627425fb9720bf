"""Largest ranks that are identifiable from triples and from quadruples: Tables II and III."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import rejoint as rj
from paper.framework import Done, Expected, Glance, Section, Table, Text, save_figure

Printed = Mapping[tuple[int, int], tuple[int, int]]


def work(variables: int, levels: int) -> dict[str, Any]:
    """All bounds for one size."""
    triples = rj.identifiability.report([levels] * variables, order=3)
    quadruples = rj.identifiability.report([levels] * variables, order=4)
    lemmas = ("Lemma 1 (Kruskal)", "Lemma 2", "Lemma 3")
    return {
        "printed formula": [triples["Table II/III"].rank, quadruples["Theorem 3"].rank],
        "theorems": [triples[name].rank for name in ("Theorem 1", "Theorem 2")],
        "lemmas": [triples[name].rank for name in lemmas],
        "proved": [triples.best.rank, quadruples.best.rank],
        "compound": quadruples["Lemma 4 (compound)"].rank,
        "counting": [triples.counting, quadruples.counting],
    }


def cells(printed: Printed) -> Sequence[Mapping[str, Any]]:
    """One cell for each column of the table."""
    return [{"variables": n, "levels": i} for n, i in printed]


def expected(done: Done, printed: Printed) -> Iterable[Expected]:
    """The printed ranks by the formula behind them, exactly."""
    for cell in done:
        size = cell.settings["variables"], cell.settings["levels"]
        for kind, ours, theirs in zip(
            ("triples", "quadruples"), cell.values["printed formula"], printed[size], strict=True
        ):
            name = f"N = {size[0]}, I = {size[1]}, {kind}"
            yield Expected(name, ours, theirs, theirs, "a whole number, computed exactly")


def glances(done: Done, printed: Printed, number: str) -> Iterable[Glance]:
    """Printed ranks by the formula behind them, and how many of them are proved."""
    same = proved = 0
    for cell in done:
        size = cell.settings["variables"], cell.settings["levels"]
        same += sum(
            a == b for a, b in zip(cell.values["printed formula"], printed[size], strict=True)
        )
        proved += sum(a >= b for a, b in zip(cell.values["proved"], printed[size], strict=True))
    count = 2 * len(done)
    why = f"{proved} of {count} printed ranks are proved by the results known now"
    yield Glance(f"Table {number}, ranks", same, 0, count - same, why)


WHY = Text(
    "Why corrected columns: the proofs give the stacked factor of a group of variables "
    "`I |S|` free rows, but the rows of each variable sum to one, so that its rank is at "
    "most `(I - 1) |S| + 1`. With these sides the lemmas do apply. As printed the theorems "
    "are unproved rather than refuted: later results (best proved) often reach further, "
    "and above the counting limit no estimate is unique."
)


def section(done: Done, folder: Path, printed: Printed, number: str, name: str) -> Section:
    """Printed beside the formula, what the theorems say, and what is proved."""
    head = ["", "printed", "by the formula", "Theorems 1, 2", "corrected: Kruskal, Lemmas 2, 3"]
    head += ["best proved", "counting limit"]
    triples, quadruples = [], []
    for cell in done:
        size, v = (cell.settings["variables"], cell.settings["levels"]), cell.values
        label = f"N = {size[0]}, I = {size[1]}"
        ours, best, limit = v["printed formula"], v["proved"], v["counting"]
        lemmas = ", ".join(map(str, v["lemmas"]))
        theorems = ", ".join(map(str, v["theorems"]))
        triples.append(
            [label, *map(str, [printed[size][0], ours[0], theorems, lemmas, best[0], limit[0]])]
        )
        quadruples.append(
            [label, *map(str, [printed[size][1], ours[1], v["compound"], best[1], limit[1]])]
        )
    parts = [
        Text(
            "The printed ranks by the formula behind them. Triples: `floor(max(Theorem 1, (NI/3 "
            "+ 1)²/16))`, "
            "without the floor of N/3 that Theorem 2 has; its own `4^(a-1)` is larger. Quadruples: "
            "Theorem 3 over all partitions."
        ),
        Text("Triples:"),
        Table(head, triples),
        Text("Quadruples:"),
        Table(
            ["", "printed", "by Theorem 3", "corrected Lemma 4", "best proved", "counting limit"],
            quadruples,
        ),
        *([WHY] if number == "II" else []),
        draw(done, folder, printed, name),
    ]
    return Section(f"Table {number}: rank bounds for generic identifiability", parts)


def draw(done: Done, folder: Path, printed: Printed, name: str) -> Any:
    """The ranks against the size, on logarithmic axes."""
    import matplotlib.pyplot as plt

    varies = "variables" if len({c.settings["variables"] for c in done}) > 1 else "levels"
    sizes = [cell.settings[varies] for cell in done]
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
    for place, (ax, kind) in enumerate(zip(axes, ("triples", "quadruples"), strict=True)):
        shown = [printed[c.settings["variables"], c.settings["levels"]][place] for c in done]
        ax.plot(sizes, [c.values["counting"][place] for c in done], "k:", label="counting limit")
        ax.plot(sizes, shown, "o-", label="printed")
        ax.plot(sizes, [c.values["proved"][place] for c in done], "s--", label="best proved")
        ax.set(xscale="log", yscale="log", title=kind)
        ax.set_xlabel("variables, N" if varies == "variables" else "levels, I")
        ax.set_xticks(sizes, [str(size) for size in sizes], minor=False)
        ax.minorticks_off()
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("rank, F")
    axes[0].legend(frameon=False)
    caption = "Ranks that are identifiable: printed, proved, and the limit by counting."
    return save_figure(figure, folder, name, caption)
