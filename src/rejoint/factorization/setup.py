"""From Marginals to the least-squares problem."""

from collections.abc import Sequence

import numpy as np

from rejoint.factorization.grams import Family
from rejoint.factorization.problem import Array, Moments, Problem
from rejoint.marginals import Marginals
from rejoint.remarks import remark


def make_problem(marginals: Marginals, weighting: str) -> Problem:
    """Shares, weights and moments as arrays; refuses what cannot be factored."""
    check_tables(marginals)
    subsets = marginals.index_subsets
    weight = np.array(marginals.table_weight, dtype=np.float64)
    if weighting == "count":
        weight = weight * count_weight(marginals)
    elif weighting != "equal":
        raise ValueError(
            f"weighting={weighting!r} is not known; give 'equal' (each table counts the same, as "
            "in the paper) or 'count' (by its number of records)."
        )
    used = np.flatnonzero(weight > 0)
    check_reached(marginals, [subsets[i] for i in used])
    problem = Problem(
        tuple(marginals.domain.shape),
        tuple(subsets[i] for i in used),
        tuple(np.ascontiguousarray(marginals.shares(int(i))) for i in used),
        weight[used],
        read_moments(marginals),
    )
    remark_on_islands(marginals)
    return problem


def check_reached(marginals: Marginals, subsets: Sequence[tuple[int, ...]]) -> None:
    """Every variable must be in a table that counts, or in a moment."""
    reached = {n for s in subsets for n in s}
    reached |= {n for m in marginals.moments for n in m.variables}
    names = marginals.domain.names
    absent = [names[n] for n in range(len(names)) if n not in reached]
    if absent:
        raise ValueError(
            f"No table of weight above zero contains {', '.join(map(repr, absent))}; give a table "
            "that does, or leave the variable out of the domain."
        )


def check_tables(marginals: Marginals) -> None:
    """Every table must rest on something."""
    empty = [marginals.subsets[i] for i in np.flatnonzero(np.asarray(marginals.totals) <= 0)]
    if empty:
        raise ValueError(
            f"Table {empty[0]} is empty ({len(empty)} such): no record holds all of its variables "
            "at once. Leave it out with subsets=, or count tables of fewer variables."
        )


def count_weight(marginals: Marginals) -> Array:
    """Weights in proportion to the records behind each table, one on average.

    A table given as shares does not say how many there are: it counts as an average one.
    """
    totals = np.asarray(marginals.totals, dtype=np.float64)
    counted = np.asarray(marginals.counted, dtype=bool)
    if not counted.any():
        return np.ones_like(totals)
    return np.where(counted, totals / totals[counted].mean(), 1.0)


def read_moments(marginals: Marginals) -> tuple[Moments, ...]:
    """The moments by order, on the stacked levels, each scaled to unit vectors."""
    offsets = np.concatenate([[0], np.cumsum(marginals.domain.shape)]).astype(int)
    groups: dict[int, list[tuple[tuple[int, ...], Array, float]]] = {}
    for moment in marginals.moments:
        order = len(moment.variables)
        vectors, size = np.zeros((order, offsets[-1])), 1.0
        for slot, (n, vector) in enumerate(zip(moment.variables, moment.vectors, strict=True)):
            length = float(np.linalg.norm(vector))
            size *= length
            vectors[slot, offsets[n] : offsets[n + 1]] = vector / (length or 1.0)
        if size > 0:  # a vector of zeros says nothing
            groups.setdefault(order, []).append((moment.variables, vectors, moment.value / size))
    found = []
    for _, group in sorted(groups.items()):
        members = np.array([g[0] for g in group], dtype=np.intp)
        family = Family(members, np.ones(len(group)), complete=False)
        vectors = np.stack([g[1] for g in group])
        found.append(Moments(family, vectors, np.array([g[2] for g in group])))
    return tuple(found)


def remark_on_islands(marginals: Marginals) -> None:
    """Say so when groups of variables share no table: nothing ties them together."""
    island = list(range(len(marginals.domain)))

    def root(n: int) -> int:
        while island[n] != n:
            n = island[n]
        return n

    links = [*marginals.index_subsets, *(m.variables for m in marginals.moments)]
    for subset in links:
        for n in subset[1:]:
            island[root(n)] = root(subset[0])
    groups: dict[int, list[str]] = {}
    for n, name in enumerate(marginals.domain.names):
        groups.setdefault(root(n), []).append(name)
    if len(groups) > 1:
        short = (g[:4] + ["..."] * (len(g) > 4) for g in groups.values())
        parts = "; ".join(", ".join(g) for g in short)
        remark(
            f"The tables fall into {len(groups)} groups of variables with no table in common "
            f"({parts}): they cannot say how variables of different groups depend on each other."
        )
