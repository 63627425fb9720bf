"""Ours beside the printed: what Tables V and VII share."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from paper.framework import Table, save_figure, spread
from paper.framework.parts import Figure

#: Half a unit of the last printed digit.
ROUNDING = 0.0005
MARK = " *"


class Entry(NamedTuple):
    """Errors of one method over the splits, and the printed mean and deviation, if there are."""

    ours: np.ndarray
    printed: tuple[float, float] | None = None

    @property
    def reached(self) -> bool:
        """At most two printed standard deviations above the printed mean, or below it."""
        if self.printed is None or not len(self.ours):
            return True
        mean, deviation = self.printed
        return bool(self.ours.mean() <= mean + 2 * deviation + ROUNDING)

    def __str__(self) -> str:
        if self.printed is None or not len(self.ours):
            return spread(self.ours)
        mean, deviation = self.printed
        mark = "" if self.reached else MARK
        return f"{spread(self.ours)}{mark} ({mean:.3f} ± {deviation:.3f})"


Rows = Mapping[str, Mapping[str, Entry]]


def grid(rows: Rows, columns: Sequence[str]) -> Table:
    """Methods down, sets across: ours, and the printed in brackets."""
    body = [
        [method, *(str(row[c]) if c in row else "-" for c in columns)]
        for method, row in rows.items()
    ]
    return Table(["", *columns], body)


def tally(rows: Rows) -> tuple[int, int]:
    """Entries that reach the printed, and how many there are."""
    found = [e for row in rows.values() for e in row.values() if e.printed and len(e.ours)]
    return sum(e.reached for e in found), len(found)


def short(rows: Rows) -> list[tuple[str, str, Entry]]:
    """Entries that do not."""
    return [(m, c, e) for m, row in rows.items() for c, e in row.items() if not e.reached]


def draw(
    rows: Rows, columns: Sequence[str], folder: Path, name: str, label: str, caption: str
) -> Figure:
    """A panel for each set: printed means with two deviations, ours with one."""
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
    found = save_figure(figure, folder, name, caption)
    return found


def panel(ax: Any, entries: Mapping[str, Entry]) -> None:
    """One set."""
    for place, entry in enumerate(entries.values()):
        if entry.printed is not None:
            mean, deviation = entry.printed
            style = {"color": "0.6", "marker": "s", "capsize": 3, "markersize": 5}
            label = "printed, ± 2 deviations" if place == 0 else None
            ax.errorbar(place - 0.12, mean, 2 * deviation, linestyle="", label=label, **style)
        if len(entry.ours):
            style = {"color": "tab:blue" if entry.reached else "tab:red", "marker": "o"}
            label = "ours, ± 1 deviation" if place == 0 else None
            error = entry.ours.std(ddof=1) if len(entry.ours) > 1 else 0.0
            ax.errorbar(place + 0.12, entry.ours.mean(), error, linestyle="", label=label, **style)
    ax.set_xticks(range(len(entries)), list(entries), rotation=60, ha="right", fontsize=7)
    ax.tick_params(axis="y", labelsize=7)
    ax.grid(axis="y", alpha=0.3)
