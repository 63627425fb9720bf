"""Tables of several samples as one: effects pooled over tables, and tables of an earlier time.

Tables that were counted in different records contradict each other. Each is first raked to the
pooled shares of its variables: its odds ratios stay, and differences between samples in the shares
of single variables are not taken for interactions. Effects are then averaged over the tables that
publish them. How far the tables differ says whether their records are the same or others.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from rejoint.arrays import FloatArray, sum_to
from rejoint.factorization.log_linear import Effects, Sample
from rejoint.factorization.max_entropy import Completion, CompletionProblem, Subset, sweep
from rejoint.factorization.table_goals import ExactGoal, records_behind
from rejoint.factorization.table_policy import POLICY
from rejoint.marginals.compare import SAME
from rejoint.marginals.marginals import Marginals
from rejoint.solver.solver import Stalled
from rejoint.text import show


@dataclass(frozen=True, eq=False)
class Pooled:
    """Tables after they were raked, and the shares of each variable that they were raked to."""

    tables: Marginals
    own: tuple[FloatArray, ...]


def pool_shares(marginals: Marginals) -> tuple[FloatArray, ...]:
    """Shares of each variable, over all tables that hold it, by their numbers of records."""
    records, shares = records_behind(marginals), []
    for n, size in enumerate(marginals.domain.shape):
        total = np.zeros(size)
        for i, subset in enumerate(marginals.index_subsets):
            if n in subset and records[i] > 0:
                total += records[i] * _margin(marginals, i, (n,))
        shares.append(total / total.sum() if total.sum() > 0 else np.full(size, 1.0 / size))
    return tuple(shares)


def _margin(marginals: Marginals, i: int, subset: Subset) -> FloatArray:
    """The margin of a table; cells below zero count as none."""
    return np.maximum(sum_to(marginals.shares(i), marginals.index_subsets[i], subset), 0.0)


def update_older(
    marginals: Marginals, older: Collection[str | Sequence[str]]
) -> tuple[Marginals, str]:
    """Tables of an earlier time with the margins of the others, and what is said of that."""
    subsets = [frozenset(names) for names in marginals.subsets]
    places = []
    for names in older:
        asked = frozenset([names] if isinstance(names, str) else names)
        if asked not in subsets:
            raise ValueError(
                f"older: there is no table of {show(sorted(asked))}; there are "
                f"{show([', '.join(names) for names in marginals.subsets])}."
            )
        places.append(subsets.index(asked))
    if not places:
        return marginals, ""
    if len(set(places)) == len(subsets):
        raise ValueError("older: all tables are older ones; name those that others are newer than.")
    goals: dict[int, dict[Subset, FloatArray]] = {i: {} for i in places}
    for i in places:
        for j, other in enumerate(marginals.index_subsets):
            common = tuple(n for n in other if n in marginals.index_subsets[i])
            if j not in places and common:
                goals[i][common] = _margin(marginals, j, common)
    names = " and ".join(f"({', '.join(marginals.subsets[i])})" for i in places)
    text = f"Of {names}, which is older, odds ratios count: its margins are those of other tables."
    return rake_tables(marginals, goals), text


def rake_tables(marginals: Marginals, goals: Mapping[int, Mapping[Any, FloatArray]]) -> Marginals:
    """Some tables with other margins, their odds ratios as they are."""
    flat = np.array(marginals.flat)
    for i, margins in goals.items():
        subset, total = marginals.index_subsets[i], float(marginals.totals[i])
        table = np.maximum(marginals.shares(i), 0.0)
        if total > 0:
            flat[marginals.starts[i] : marginals.starts[i + 1]] = total * _rake(
                table, {tuple(map(subset.index, s)): goal for s, goal in margins.items()}
            )
    return replace(marginals, flat=flat)


def _rake(table: FloatArray, margins: Mapping[Subset, FloatArray]) -> FloatArray:
    """A table, flat, with other margins on some of its axes: each cell is a state."""
    goals = tuple(ExactGoal(axes, goal.ravel()) for axes, goal in margins.items())
    states = np.indices(table.shape, np.int32).reshape(table.ndim, -1).T
    problem = CompletionProblem(table.shape, goals, tuple(range(table.ndim)), states)
    zeros = tuple(np.zeros(len(goal.shares)) for goal in goals)
    state = Completion(problem, table.ravel() / table.sum(), {}, zeros, np.ones(1))
    try:
        while state.objective > POLICY.raked and state.sweeps < POLICY.most_rakes:
            state = sweep(state)
    except Stalled:
        pass
    return state.weights


def pool_effects(marginals: Marginals, effects: Effects) -> tuple[Sample, Pooled]:
    """Return the effects of all tables with the records behind each, and the tables raked.

    Tables of the same records agree, and an effect rests on these records however many tables show
    it. Tables of different records differ by chance, and an effect rests on all of them. Between
    the two the number follows from how far they differ.
    """
    used = [i for i, weight in enumerate(marginals.table_weight) if weight > 0]
    subsets = marginals.index_subsets
    own = pool_shares(marginals)
    if any(
        np.abs(_margin(marginals, i, (n,)) - own[n]).sum() > SAME for i in used for n in subsets[i]
    ):
        marginals = rake_tables(marginals, {i: {(n,): own[n] for n in subsets[i]} for i in used})
    records = _effective_records(marginals)
    values, numbers = np.zeros(effects.size), np.zeros(effects.size)
    excess, freedom, tables = np.zeros((3, len(effects.sets)))
    for k, subset in enumerate(effects.sets):
        chosen = [i for i in used if set(subset) <= set(subsets[i])]
        margins = [sum_to(marginals.shares(i), subsets[i], subset) for i in chosen]
        parts = np.stack([effects.contract(subset, margin) for margin in margins])
        weight = records[chosen] * _precision(marginals, chosen)
        mean = weight @ parts / weight.sum()
        values[effects.rows(k)] = mean
        numbers[effects.rows(k)] = weight @ records[chosen] / weight.sum()
        # Contrasts are of length one: the variance of a record's is about the mean of its shares.
        size = prod(effects.levels[n] for n in subset)
        excess[k] = size * float(records[chosen] @ ((parts - mean) ** 2).sum(axis=1))
        freedom[k], tables[k] = (len(chosen) - 1) * len(mean), len(chosen)
    several = effects.orders > 1
    if freedom[several].sum() > 0:
        ratio = excess[several].sum() / freedom[several].sum()
        # All records count where tables are of different ones; fewer where they differ by more.
        factor = (1.0 + min(ratio, 1.0) * (tables - 1.0)) / max(ratio, 1.0)
        numbers *= np.repeat(factor, effects.sizes)
    return Sample(effects, values, numbers), Pooled(marginals, own)


def _effective_records(marginals: Marginals) -> FloatArray:
    """Records behind each table, fewer where rounding adds noise to its cells.

    A number that is moved to one of its neighboring multiples of ``b`` at random has a variance of
    about ``b^2 / 6``; rounding says by how much it moves at the most.
    """
    noise = np.diff(marginals.starts) * np.asarray(marginals.rounding) ** 2 / 6.0
    totals = np.maximum(marginals.totals, 1e-300)
    return np.asarray(records_behind(marginals) / (1.0 + noise / totals))


def _precision(marginals: Marginals, tables: Sequence[int]) -> FloatArray:
    """Weight of margins of rounded tables: sums of many rounded cells are less precise."""
    cells = np.diff(marginals.starts)[list(tables)].astype(np.float64)
    rounded = np.asarray(marginals.rounding)[list(tables)] > 0
    return np.where(rounded, 1.0 / cells, 1.0 / cells.min() if rounded.any() else 1.0)
