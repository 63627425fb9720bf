"""Proposition 1: every joint PMF is a naive Bayes model with a bounded number of hidden states."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import rejoint as rj
from paper.framework import Done, Expected, Experiment, Section, Table, Text

SHAPES = ((4, 5), (3, 4, 5), (2, 3, 4, 5), (2, 2, 2, 3, 4))
KINDS = ("dense", "half of the cells zero")


def cells(fast: bool) -> Sequence[Mapping[str, Any]]:
    """Random joints of some shapes, with and without zeros."""
    return [{"shape": shape, "kind": kind, "seed": 0} for shape in SHAPES for kind in KINDS]


def work(shape: Sequence[int], kind: str, seed: int) -> dict[str, Any]:
    """The construction of the proof, its rank and its error."""
    rng = np.random.default_rng(seed)
    table = rng.random(shape)
    if kind != "dense":
        table *= rng.random(shape) < 0.5
    table /= table.sum()
    model = rj.LowRankPMF.from_dense(table)
    bound = int(np.prod(shape) // max(shape))
    return {
        "bound": bound,
        "rank": model.rank,
        "error": float(np.abs(model.to_dense() - table).max()),
    }


def expected(done: Done) -> Iterable[Expected]:
    """Exact, and within the bound."""
    for cell in done:
        name = f"{tuple(cell.settings['shape'])}, {cell.settings['kind']}"
        bound = cell.values["bound"]
        yield Expected(f"{name}: rank", cell.values["rank"], 1, bound, "Proposition 1")
        yield Expected(f"{name}: error", cell.values["error"], 0, 1e-15, "rounding of one product")


def section(done: Done, folder: Path) -> Section:
    """Bound, rank and error."""
    rows = []
    for cell in done:
        shape = " x ".join(map(str, cell.settings["shape"]))
        found = cell.values
        shown = [str(found["bound"]), str(found["rank"]), f"{found['error']:.0e}"]
        rows.append([shape, cell.settings["kind"], *shown])
    parts = [
        Text(
            "The proof's construction, `LowRankPMF.from_dense`, on random joints: F is at most the "
            "number of cells divided by the largest number of levels. Columns that would be 0/0 "
            "(fibres without mass) are dropped, so zeros make F smaller."
        ),
        Table(["levels", "cells", "bound", "F", "largest error of a cell"], rows),
    ]
    return Section("Proposition 1: every joint is a naive Bayes model", parts)


EXPERIMENT = Experiment("proposition1", cells, work, section, expected)

if __name__ == "__main__":
    EXPERIMENT.main()
