"""Parts of a report."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


@dataclass(frozen=True)
class Text:
    """A paragraph; `code` in single backticks is the only markup."""

    words: str


@dataclass(frozen=True)
class Table:
    """Rows of words under a head."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Figure:
    """A picture, named relative to the report, and what is seen on it."""

    path: str
    caption: str


@dataclass(frozen=True)
class Section:
    """A headline and what is under it."""

    title: str
    parts: Sequence[Text | Table | Figure]


class Glance(NamedTuple):
    """A line of the first page: how many printed numbers came out as printed, lower and higher."""

    what: str
    as_printed: int
    lower: int
    higher: int
    why: str


def save_figure(figure: Any, folder: Path, name: str, caption: str) -> Figure:
    """Write a matplotlib figure as ``name.svg``, the same bytes for the same picture; close it."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        figure.savefig(folder / f"{name}.svg", bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
    return Figure(f"{name}.svg", caption)


def spread(values: Any, digits: int = 3) -> str:
    """Mean and standard deviation, as the paper prints them."""
    values = np.asarray(values, dtype=float)
    if not len(values):
        return "-"
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    return f"{values.mean():.{digits}f} ± {values.std(ddof=1):.{digits}f}"
