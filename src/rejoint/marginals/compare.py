"""Compare tables with each other and with a model: distances, chance, worst cells."""

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rejoint.arrays import FloatArray, parts_of, sum_to
from rejoint.domain.domain import Domain
from rejoint.domain.labels import Level
from rejoint.marginals.moments import Moment
from rejoint.marginals.subsets import indices_of
from rejoint.marginals.unknown import fill_table
from rejoint.messages import remark
from rejoint.text import cite, shorten

if TYPE_CHECKING:
    from rejoint.marginals.marginals import Marginals

Subset = tuple[int, ...]

#: Share of the mass by which given tables must differ for a remark. Sums of rounded shares differ
#: by less.
THRESHOLD = 0.01

#: Share of the mass by which tables may differ on what they have in common and still agree: what
#: rounding to double precision leaves.
SAME = 1e-9


class Disagreement(NamedTuple):
    """Two tables that differ on their common variables, and by what share of the mass.

    Examples
    --------
    >>> Disagreement(("a", "b"), ("b", "c"), ("b",), 0.25).distance
    0.25
    """

    first: tuple[str, ...]
    second: tuple[str, ...]
    shared: tuple[str, ...]
    distance: float


def disagreements(store: "Marginals") -> list[Disagreement]:
    """List the tables with records that differ on their common variables, worst first."""
    # Guesses in unknown cells would make tables agree or differ where nothing is known.
    full = [i for i in range(len(store)) if store.totals[i] > 0 and store.unknown_of(i) is None]
    subsets = [store.index_subsets[i] for i in full]
    found = furthest_apart(subsets, [store.shares(i) for i in full])
    names = store.domain.names
    return [
        Disagreement(
            store.subsets[full[i]], store.subsets[full[j]], tuple(names[n] for n in s), distance
        )
        for i, j, s, distance in found
    ]


def remark_on_disagreements(store: "Marginals") -> None:
    """Remark on the worst disagreement of tables, and on moments that tables contradict."""
    apart = [pair for pair in disagreements(store) if pair.distance > THRESHOLD]
    worst = next((pair for pair in apart if not is_rounding(store, pair)), None)
    if worst is not None:
        remark(
            f"Tables {cite(worst.first)} and {cite(worst.second)} disagree on "
            f"{cite(worst.shared)}: {worst.distance:.1%} of the mass would have to move. That is "
            "the worst of them; m.disagreements() lists all. A fit finds a compromise."
        )
    for moment in store.moments:
        _remark_on_moment(store, moment)


def is_rounding(store: "Marginals", found: Disagreement) -> bool:
    """Whether rounding explains that two tables differ on the variables that they share.

    Errors of rounding are spread evenly over their range and add up as independent ones do: sums
    further apart than five standard deviations are not explained. 35 tables have thousands of such
    sums, some of which are more than three apart.
    """
    margins, variances = [], []
    for names in (found.first, found.second):
        table, total = store[names], store.total(*names)
        width = float(store.rounding[store.positions[indices_of(store.domain, names)]])
        margin = sum_to(table, names, found.shared) / total  # ``shared`` is in the table's order
        error = (width / total) ** 2 / 3.0
        margins.append(margin)
        variances.append(error * (table.size / margin.size + margin**2 * table.size))
    limit = 5.0 * np.sqrt(variances[0] + variances[1]) + SAME
    return bool((np.abs(margins[0] - margins[1]) <= limit).all())


def _remark_on_moment(store: "Marginals", moment: Moment) -> None:
    if not any(set(moment.variables) <= set(s) for s in store.index_subsets):
        return
    names = [store.domain.names[n] for n in moment.variables]
    found = moment.expectation(store.marginal(names))
    low, high = moment.range
    if abs(found - moment.value) > THRESHOLD * (high - low):
        remark(
            f"The {moment.label} is given as {moment.value:g}, but the table that holds "
            f"{shorten(', '.join(names))} says {found:g}. A fit finds a compromise."
        )


def furthest_apart(
    subsets: Sequence[Subset], tables: Sequence[FloatArray]
) -> list[tuple[int, int, Subset, float]]:
    """Compare share tables on their common variables; worst first.

    There is one entry for each set of variables that is the intersection of two tables: the two
    tables that are furthest apart on it, and their total variation distance.
    """
    from scipy.spatial.distance import cdist  # loaded when needed: it is slow to import

    holders: dict[Subset, list[int]] = defaultdict(list)
    for i, subset in enumerate(subsets):
        for shared in parts_of(subset):
            holders[shared].append(i)
    pairs = []
    for shared, members in holders.items():
        if len(members) < 2:
            continue
        parts = np.stack([sum_to(tables[i], subsets[i], shared).ravel() for i in members])
        distance = 0.5 * cdist(parts, parts, metric="cityblock")
        # Pairs that share more than this set are compared on all common variables, not here.
        holds = np.zeros((len(members), 1 + max(max(subsets[i]) for i in members)), dtype=np.int64)
        for row, i in enumerate(members):
            holds[row, list(subsets[i])] = 1
        exactly = np.triu(holds @ holds.T == len(shared), k=1)
        if exactly.any():
            at = np.unravel_index(np.argmax(np.where(exactly, distance, -1.0)), distance.shape)
            pairs.append((members[at[0]], members[at[1]], shared, float(distance[at])))
    return sorted(pairs, key=lambda entry: -entry[3])


class TableFit(NamedTuple):
    """One table against a model's.

    ``distance`` is the total variation: the share of the mass that is in the wrong cells.
    ``chance`` is its average if the model is right and the table is a sample of its number of
    records; NaN for shares, whose number of records is not known. ``cell`` is the cell that differs
    most, ``given`` and ``model`` are its shares in the table and in the model.

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

    @property
    def excess(self) -> float:
        """How much further it is than chance explains, where that is known.

        Examples
        --------
        >>> TableFit(("a",), 0.75, 0.25, {"a": "x"}, 0.52, 0.50).excess
        0.5
        """
        return self.distance - (0.0 if np.isnan(self.chance) else self.chance)


class Fits(tuple[TableFit, ...]):
    """Tables compared with those of a model, worst first; as text, a table of the worst."""

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


def compare(store: "Marginals", model: Any) -> Fits:
    """Compare each table with that of a model, worst first; leave out unknown cells."""
    found = [compare_table(store, i, model) for i in range(len(store)) if store.totals[i] > 0]
    return Fits(sorted(found, key=lambda fit: -fit.distance))


def compare_table(store: "Marginals", i: int, model: Any) -> TableFit:
    """Compare the i-th table with that of a model; leave out unknown cells."""
    names = store.subsets[i]
    found = aligned(model, store.domain.project(names))
    filled = _filled(store, i, found)
    given = filled / filled.sum()
    cells = store.unknown_of(i)
    gap = np.abs(given - found)
    if cells is not None:
        gap.ravel()[cells.places] = 0.0
    at = np.unravel_index(int(np.argmax(gap)), gap.shape)
    labels = {
        name: store.domain[name].levels[int(code)] for name, code in zip(names, at, strict=True)
    }
    chance = expected_distance(found, float(store.totals[i])) if store.counted[i] else np.nan
    strange = max(0.0, 1.0 - float(found.sum()))  # mass at levels that the table does not have
    half = 0.5 * (float(gap.sum()) + strange)
    return TableFit(names, half, chance, labels, float(given[at]), float(found[at]))


def filled_counts(store: "Marginals", i: int, model: Any) -> FloatArray:
    """Return the i-th table with its unknown cells as a model expects them."""
    return _filled(store, i, aligned(model, store.domain.project(store.subsets[i])))


def _filled(store: "Marginals", i: int, shares: FloatArray) -> FloatArray:
    # The total depends on what is not known: on what the model expects there, not on a guess.
    table, cells = store.counts_of(i), store.unknown_of(i)
    if cells is None:
        return table
    counted = bool(store.counted[i])
    return fill_table(table.ravel(), cells, shares.ravel(), counted=counted).reshape(table.shape)


def aligned(model: Any, domain: Domain) -> FloatArray:
    """Return a model's table with the levels of a domain; zero for levels that it lacks."""
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


def expected_distance(shares: FloatArray, records: float) -> float:
    """Return the average total variation between shares and a sample of ``records`` records.

    A count is nearly normal where many are expected, ``E|k - m| = sqrt(2 v / pi)``; where few
    are, it is nearly zero or one, ``E|k - m| = 2 m``. The smaller of the two bounds both.
    """
    spread = np.sqrt(2.0 * shares * (1.0 - shares) / (np.pi * records))
    return 0.5 * float(np.minimum(spread, 2.0 * shares).sum())
