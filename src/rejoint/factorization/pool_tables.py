"""Tables of one or several samples as one set of effects, each with the records behind it.

Tables that were counted in different records contradict each other. Each is first raked to the
pooled shares of its variables: its odds ratios stay, and differences between samples in the shares
of single variables are not taken for interactions. Effects are then averaged over the tables that
publish them. How far the tables differ says whether their records are the same or others.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from rejoint.factorization.effects import Effects
from rejoint.factorization.log_linear import Sample
from rejoint.factorization.table_goals import records_behind
from rejoint.factorization.table_policy import POLICY
from rejoint.marginals.compare import SAME
from rejoint.marginals.marginals import Marginals
from rejoint.model import FloatArray


@dataclass(frozen=True, eq=False)
class Pooled:
    """Tables after they were raked, and the shares of each variable that they were raked to."""

    tables: Marginals
    own: tuple[FloatArray, ...]


def pool_shares(marginals: Marginals, older: Collection[int] = ()) -> tuple[FloatArray, ...]:
    """Shares of each variable, over all tables that hold it, by their numbers of records.

    Parameters
    ----------
    marginals : Marginals
        The tables.
    older : collection of int
        Positions of tables of another time, whose shares of single variables do not count where
        another table has them.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     m = Marginals.from_tables({("a", "b"): [[10, 20], [30, 40]], ("a",): [120, 80]})
    >>> [share.round(3).tolist() for share in pool_shares(m)]
    [[0.5, 0.5], [0.4, 0.6]]
    >>> pool_shares(m, older=[1])[0]
    array([0.3, 0.7])
    """
    records = records_behind(marginals)
    found = []
    for n, size in enumerate(marginals.domain.shape):
        held = [i for i, s in enumerate(marginals.index_subsets) if n in s and records[i] > 0]
        recent = [i for i in held if i not in older] or held
        total = np.zeros(size)
        for i in recent:
            total += records[i] * _alone(marginals, i, n)
        found.append(total / total.sum() if total.sum() > 0 else np.full(size, 1.0 / size))
    return tuple(found)


def _alone(marginals: Marginals, i: int, n: int) -> FloatArray:
    """Shares of one variable in a table; cells below zero count as none."""
    subset = marginals.index_subsets[i]
    gone = tuple(axis for axis, m in enumerate(subset) if m != n)
    return np.asarray(np.maximum(marginals.shares(i).sum(axis=gone), 0.0))


def rake_to_shares(marginals: Marginals, own: tuple[FloatArray, ...]) -> Marginals:
    """Every table with these shares of its variables, its odds ratios as they are.

    Examples
    --------
    >>> m = Marginals.from_tables({("a", "b"): [[10, 20], [30, 40]]})
    >>> even = (np.array([0.5, 0.5]), np.array([0.5, 0.5]))
    >>> rake_to_shares(m, even).shares(0).round(3)
    array([[0.225, 0.275],
           [0.275, 0.225]])
    """
    flat = np.array(marginals.flat)
    for i, subset in enumerate(marginals.index_subsets):
        total = float(marginals.totals[i])
        if total <= 0:
            continue
        table = np.maximum(marginals.shares(i), 0.0)
        for _ in range(POLICY.most_rakes):
            worst = 0.0
            for axis, n in enumerate(subset):
                gone = tuple(k for k in range(len(subset)) if k != axis)
                now = table.sum(axis=gone)
                ratio = np.divide(own[n], now, out=np.zeros_like(now), where=now > 0)
                table = table * np.expand_dims(ratio, gone)
                worst = max(worst, float(np.abs(now - own[n]).sum()))
            if worst < 1e-10:
                break
        flat[marginals.starts[i] : marginals.starts[i + 1]] = total * table.ravel()
    return replace(marginals, flat=flat)


def find_older(marginals: Marginals) -> set[int]:
    """Positions of tables whose shares of single variables no chance reconciles with the others'.

    One after another the table is taken that is furthest from the pool of the others.

    Examples
    --------
    >>> import warnings
    >>> tables = {
    ...     ("a", "b"): [[250, 250], [250, 250]],
    ...     ("a", "c"): [[260, 250], [240, 250]],
    ...     ("b", "c"): [[250, 245], [250, 255]],
    ...     ("a", "d"): [[400, 400], [100, 100]],
    ... }
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     find_older(Marginals.from_tables(tables))
    {3}
    """
    records = records_behind(marginals)
    found: set[int] = set()
    while len(found) + 2 < len(marginals):
        worst, score = -1, POLICY.older_score
        for i in range(len(marginals)):
            if i not in found:
                z = _strangeness(marginals, records, i, found)
                if z > score:
                    worst, score = i, z
        if worst < 0:
            break
        found.add(worst)
    # Where most tables are strange to each other, none is the old one.
    return found if 2 * len(found) < len(marginals) else set()


def _strangeness(marginals: Marginals, records: FloatArray, i: int, apart: set[int]) -> float:
    """How far a table's shares are from the others', in standard deviations of a chi-square."""
    total, freedom = 0.0, 0
    for n in marginals.index_subsets[i]:
        held = [
            j
            for j, s in enumerate(marginals.index_subsets)
            if j != i and j not in apart and n in s and records[j] > 0
        ]
        if not held:
            continue
        others = sum(records[j] * _alone(marginals, j, n) for j in held)
        number = float(np.sum(records[held]))
        mean = np.maximum((others + records[i] * _alone(marginals, i, n)), 0.5)
        mean = mean / mean.sum()
        gap = _alone(marginals, i, n) - others / number
        total += float(np.sum(gap**2 / mean)) / (1.0 / records[i] + 1.0 / number)
        freedom += marginals.domain.shape[n] - 1
    return (total - freedom) / np.sqrt(2.0 * freedom) if freedom else 0.0


def pool_effects(
    marginals: Marginals, effects: Effects, older: Collection[int] | None = None
) -> tuple[Sample, Pooled]:
    """Return the effects of all tables with the records behind each, and the tables raked.

    Tables of the same records agree, and an effect rests on these records however many tables show
    it. Tables of different records differ by chance, and an effect rests on all of them. Between
    the two the number follows from how far they differ.

    Parameters
    ----------
    marginals : Marginals
        The tables.
    effects : Effects
        Which effects.
    older : collection of int, optional
        Positions of tables of another time; found by their shares where none are given.
    """
    used = [i for i in range(len(marginals)) if marginals.table_weight[i] > 0]
    if len(used) < len(marginals):
        marginals = _pick(marginals, used)
    records = _effective_records(marginals)
    own = pool_shares(marginals)
    if any(np.abs(_alone(marginals, i, n) - own[n]).sum() > SAME for i, n in _pairs(marginals)):
        own = pool_shares(marginals, find_older(marginals) if older is None else older)
        marginals = rake_to_shares(marginals, own)
    values, numbers = np.zeros(effects.size), np.zeros(effects.size)
    spread = np.zeros((2, len(effects.sets)))
    for k, subset in enumerate(effects.sets):
        held = [i for i, s in enumerate(marginals.index_subsets) if set(subset) <= set(s)]
        each = np.stack([_effect(marginals, i, effects, k) for i in held])
        weight = records[held] * _precision(marginals, held)
        mean = weight @ each / weight.sum()
        values[effects.rows(k)] = mean
        numbers[effects.rows(k)] = weight @ records[held] / weight.sum()
        # Contrasts are of length one: the variance of a record's is about the mean of its shares.
        size = float(np.prod([effects.levels[n] for n in subset]))
        spread[0, k] = float(np.sum(records[held, None] * (each - mean) ** 2)) * size
        spread[1, k] = (len(held) - 1) * len(mean)
    several = effects.orders > 1
    if spread[1, several].sum() > 0:
        apart = spread[0, several].sum() / spread[1, several].sum()
        tables = np.array(
            [sum(set(s) <= set(t) for t in marginals.index_subsets) for s in effects.sets]
        )
        # All records count where tables are of different ones; fewer where they differ by more.
        factor = (1.0 + min(apart, 1.0) * (tables - 1.0)) / max(apart, 1.0)
        numbers *= np.repeat(factor, effects.sizes)
    return Sample(effects, values, numbers), Pooled(marginals, own)


def _pairs(marginals: Marginals) -> list[tuple[int, int]]:
    return [(i, n) for i, subset in enumerate(marginals.index_subsets) for n in subset]


def _pick(marginals: Marginals, used: list[int]) -> Marginals:
    """Some of the tables."""
    parts = [marginals.counts_of(i).ravel() for i in used]
    return Marginals(
        marginals.domain,
        tuple(marginals.index_subsets[i] for i in used),
        np.concatenate(parts),
        marginals.table_weight[used],
        counted=marginals.counted[used],
        noisy=marginals.noisy,
        rounding=marginals.rounding[used],
    )


def _effect(marginals: Marginals, i: int, effects: Effects, k: int) -> FloatArray:
    subset = marginals.index_subsets[i]
    gone = tuple(axis for axis, n in enumerate(subset) if n not in effects.sets[k])
    return effects.contract(effects.sets[k], marginals.shares(i).sum(axis=gone))


def _effective_records(marginals: Marginals) -> FloatArray:
    """Records behind each table, fewer where rounding adds noise to its cells.

    A number that is moved to one of its neighboring multiples of ``b`` at random has a variance of
    about ``b^2 / 6``; rounding says by how much it moves at the most.
    """
    records = records_behind(marginals)
    cells = np.diff(marginals.starts)
    noise = cells * np.asarray(marginals.rounding) ** 2 / 6.0
    totals = np.maximum(marginals.totals, 1e-300)
    return np.asarray(records / (1.0 + noise / totals))


def _precision(marginals: Marginals, held: list[int]) -> FloatArray:
    """Weight of margins of rounded tables: sums of many rounded cells are less precise."""
    cells = np.diff(marginals.starts)[held].astype(np.float64)
    rounded = np.asarray(marginals.rounding)[held] > 0
    return np.where(rounded, 1.0 / cells, 1.0 / cells.min() if rounded.any() else 1.0)
