"""How well a model meets tables: each table's distance, what chance allows, its worst cell."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.domain import Domain, Level
from rejoint.marginals.store import TableStore

__all__ = ["Fits", "TableFit", "compare"]

Array = NDArray[np.float64]


class TableFit(NamedTuple):
    """One table against a model's.

    ``distance`` is the total variation: the share of the mass that is in the wrong cells.
    ``chance`` is what it would be on average if the model were right and the table a sample of
    its number of records; NaN for shares, whose number is not known. ``cell`` is the one that is
    furthest off, ``given`` and ``model`` its share in either.

    Examples
    --------
    >>> TableFit(("a",), 0.02, 0.01, {"a": "x"}, 0.52, 0.50).distance
    0.02
    """

    names: tuple[str, ...]
    distance: float
    chance: float
    cell: dict[str, Level]
    given: float
    model: float


class Fits(tuple[TableFit, ...]):
    """Tables against a model's, worst first; as text, a table of the worst."""

    most = 20

    def __repr__(self) -> str:
        if not self:
            return "no tables"
        head = ("table", "distance", "by chance", "worst cell", "given", "model")
        lines = [head, *(_line(fit) for fit in self[: self.most])]
        width = [max(len(line[i]) for line in lines) for i in range(len(head))]
        rows = ("  ".join(c.ljust(w) for c, w in zip(line, width, strict=True)) for line in lines)
        text = "\n".join(row.rstrip() for row in rows)
        left = len(self) - self.most
        return text + (f"\n... and {left:,} more, each met better" if left > 0 else "")


def _line(fit: TableFit) -> tuple[str, ...]:
    cell = ", ".join(f"{name}={level}" for name, level in fit.cell.items())
    chance = "-" if np.isnan(fit.chance) else f"{fit.chance:.4f}"
    numbers = (f"{fit.given:.4f}", f"{fit.model:.4f}")
    return (", ".join(fit.names), f"{fit.distance:.4f}", chance, cell, *numbers)


def compare(store: TableStore, model: Any) -> Fits:
    """Set each table beside that of a model, worst first; unknown cells are left out of it.

    Examples
    --------
    >>> from rejoint.domain import Domain
    >>> domain = Domain.of({"a": ["x", "y"]})
    >>> table, even = (TableStore(domain, ((0,),), cells) for cells in ([30, 10], [1, 1]))
    >>> compare(table, even)
    table  distance  by chance  worst cell  given   model
    a      0.2500    0.0631     a=x         0.7500  0.5000
    """
    found = [_fit(store, i, model) for i in range(len(store)) if store.totals[i] > 0]
    return Fits(sorted(found, key=lambda fit: -fit.distance))


def _fit(store: TableStore, i: int, model: Any) -> TableFit:
    names = store.subsets[i]
    given, found = store.shares(i), aligned(model, store.domain.project(names))
    gap = np.abs(given - found)
    cells = store.unknown_of(i)
    if cells is not None:
        gap.ravel()[cells.places] = 0.0
    at = np.unravel_index(int(np.argmax(gap)), gap.shape)
    labels = {
        name: store.domain[name].levels[int(code)] for name, code in zip(names, at, strict=True)
    }
    chance = expected_distance(found, float(store.totals[i])) if store.counted[i] else np.nan
    strange = max(0.0, 1.0 - float(found.sum()))  # at levels that the table does not have
    half = 0.5 * (float(gap.sum()) + strange)
    return TableFit(names, half, chance, labels, float(given[at]), float(found[at]))


def aligned(model: Any, domain: Domain) -> Array:
    """A model's table with the levels of a domain, in its order; zero where it lacks one.

    Examples
    --------
    >>> other = TableStore(Domain.of({"a": ["y", "x"]}), ((0,),), [1, 3])
    >>> aligned(other, Domain.of({"a": ["x", "y", "z"]}))
    array([0.75, 0.25, 0.  ])
    """
    found = np.asarray(model.marginal(list(domain.names)))
    for axis, variable in enumerate(domain):
        levels = model.domain[variable.name].levels
        if levels == variable.levels:
            continue
        places = {level: code for code, level in enumerate(levels)}
        nothing = np.zeros_like(found.take([0], axis=axis))
        found = np.concatenate([found, nothing], axis=axis)
        found = found.take([places.get(level, len(levels)) for level in variable.levels], axis=axis)
    return found


def expected_distance(shares: Array, records: float) -> float:
    """Average total variation between shares and a sample of so many records.

    A count is nearly normal where many are expected, ``E|k - m| = sqrt(2 v / pi)``; where few
    are, it is nearly zero or one, ``E|k - m| = 2 m``. The smaller of the two bounds both.

    Examples
    --------
    >>> round(expected_distance(np.array([0.5, 0.5]), 100), 4)
    0.0399
    """
    spread = np.sqrt(2.0 * shares * (1.0 - shares) / (np.pi * records))
    return 0.5 * float(np.minimum(spread, 2.0 * shares).sum())
