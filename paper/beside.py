"""Ours beside the printed: one rule of comparison, and what Tables V and VII share."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from paper.framework import Glance, Table, save_figure, spread
from paper.framework.parts import Figure

#: Half a unit of the last printed digit.
ROUNDING = 0.0005
#: Runs behind each printed mean.
PRINTED_RUNS = 10
AS_PRINTED, LOWER, HIGHER = "as printed", "lower", "higher"
MARKS = {AS_PRINTED: "", LOWER: " ▼", HIGHER: " ▲"}
RULE = (
    "One rule decides what counts as printed wherever the paper prints means with deviations: the "
    "two means differ by at most two standard errors of their difference, "
    "`2 sqrt(s²/n + s_printed²/10)`, and half a printed digit. ▲ marks a mean above the printed, ▼ "
    "one below; both figures are errors, so that lower is better."
)


class Entry(NamedTuple):
    """Errors of one method over the splits, and the printed mean and deviation, if there are."""

    ours: np.ndarray
    printed: tuple[float, float] | None = None

    @property
    def verdict(self) -> str:
        """Whether the mean is as printed, lower or higher; empty where there is nothing to compare.

        One split alone is taken to vary as the printed ones do.
        """
        if self.printed is None or not len(self.ours):
            return ""
        mean, deviation = self.printed
        own = self.ours.std(ddof=1) if len(self.ours) > 1 else deviation
        error = np.sqrt(own**2 / len(self.ours) + deviation**2 / PRINTED_RUNS)
        above = self.ours.mean() - mean
        if abs(above) <= 2 * error + ROUNDING:
            return AS_PRINTED
        return HIGHER if above > 0 else LOWER

    def __str__(self) -> str:
        if self.printed is None or not len(self.ours):
            return spread(self.ours)
        mean, deviation = self.printed
        return f"{spread(self.ours)}{MARKS[self.verdict]} ({mean:.3f} ± {deviation:.3f})"


Rows = Mapping[str, Mapping[str, Entry]]


def grid(rows: Rows, columns: Sequence[str]) -> Table:
    """Methods down, sets across: ours, and the printed in brackets."""
    body = [
        [method, *(str(row[c]) if c in row else "-" for c in columns)]
        for method, row in rows.items()
    ]
    return Table(["", *columns], body)


def tally(rows: Rows, methods: Iterable[str] | None = None) -> Counter[str]:
    """How many entries are as printed, lower and higher, of some methods or of all."""
    chosen = rows if methods is None else [m for m in methods if m in rows]
    return Counter(e.verdict for m in chosen for e in rows[m].values() if e.verdict)


def glance(what: str, verdicts: Mapping[str, int], why: str) -> Glance:
    """The line of the first page that counts verdicts."""
    return Glance(what, *(verdicts.get(name, 0) for name in MARKS), why)


def describe(verdicts: Mapping[str, int]) -> str:
    """The counts as a sentence part."""
    return ", ".join(f"{verdicts.get(name, 0)} {name}" for name in MARKS)


def higher(rows: Rows, methods: Iterable[str]) -> str:
    """Where methods have more errors than printed, in words."""
    places: dict[str, list[str]] = {}
    for method in methods:
        for column, entry in rows.get(method, {}).items():
            if entry.verdict == HIGHER:
                places.setdefault(column, []).append(method)
    return "; ".join(f"{column}: {', '.join(names)}" for column, names in places.items())


def draw(
    rows: Rows, columns: Sequence[str], folder: Path, name: str, label: str, caption: str
) -> Figure:
    """A panel for each set: printed and own means, each with two standard errors."""
    import matplotlib.pyplot as plt

    across = min(4, len(columns))
    down = -(-len(columns) // across)
    figure, axes = plt.subplots(
        down, across, figsize=(3.2 * across, 3.1 * down), layout="constrained", squeeze=False
    )
    for ax, column in zip(axes.flat, columns, strict=False):
        panel(ax, {method: row[column] for method, row in rows.items() if column in row})
        ax.set_title(column, fontsize=10)
    for ax in axes.flat[len(columns) :]:
        ax.set_visible(False)
    for ax in axes[:, 0]:
        ax.set_ylabel(label)
    axes[0, 0].legend(fontsize=7)
    return save_figure(figure, folder, name, caption)


def panel(ax: Any, entries: Mapping[str, Entry]) -> None:
    """One set."""
    for place, entry in enumerate(entries.values()):
        if entry.printed is not None:
            mean, deviation = entry.printed
            style = {"color": "0.6", "marker": "s", "capsize": 3, "markersize": 5}
            label = "printed, ± 2 standard errors" if place == 0 else None
            width = 2 * deviation / np.sqrt(PRINTED_RUNS)
            ax.errorbar(place - 0.12, mean, width, linestyle="", label=label, **style)
        if len(entry.ours):
            color = "tab:red" if entry.verdict == HIGHER else "tab:blue"
            label = "ours, ± 2 standard errors (red: above the printed)" if place == 0 else None
            count = len(entry.ours)
            width = 2 * entry.ours.std(ddof=1) / np.sqrt(count) if count > 1 else 0.0
            style = {"color": color, "marker": "o", "linestyle": "", "label": label}
            ax.errorbar(place + 0.12, entry.ours.mean(), width, **style)
    ax.set_xticks(range(len(entries)), list(entries), rotation=60, ha="right", fontsize=7)
    ax.tick_params(axis="y", labelsize=7)
    ax.grid(axis="y", alpha=0.3)
