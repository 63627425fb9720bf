"""How long a run from nothing took, by the clock."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

from paper.framework.cells import processors
from paper.framework.experiment import Experiment, Unavailable


def lacking(experiments: Sequence[Experiment], results: Path) -> tuple[int, int]:
    """How many cells are not there, and how many there are to be."""
    lack = wanted = 0
    for experiment in experiments:
        try:
            cells = experiment.cells(False)
        except Unavailable:
            continue
        lack += len(experiment.store(results, fast=False).lacking(cells))
        wanted += len(cells)
    return lack, wanted


def keep(results: Path, cells: int, seconds: float, jobs: int | None) -> None:
    """Write down a run that worked out all cells in one go."""
    content = {"cells": cells, "seconds": round(seconds), "processes": jobs or processors()}
    results.mkdir(parents=True, exist_ok=True)
    unfinished = results / f"run.{os.getpid()}.tmp"
    unfinished.write_text(json.dumps(content), "utf-8")
    os.replace(unfinished, results / "run.json")


def words(results: Path) -> str:
    """The last run from nothing, or nothing."""
    path = results / "run.json"
    if not path.exists():
        return ""
    run = json.loads(path.read_text("utf-8"))
    return (
        f" One run from nothing, {run['cells']:,} cells in {run['processes']} processes, took "
        f"{length(run['seconds'])} by the clock."
    )


def length(seconds: float) -> str:
    """A time in words."""
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
