"""Variables that hang on others: known factors, and one table, give one more factor.

If weights and factors of some variables are known, a table of them and of variable ``m`` is
linear in the factor of ``m``: ``X = (A_j . A_k) diag(w) A_m^T``. It is solved where the rows of
the known side have full column rank ``F``, which generic factors have as soon as there are ``F``
independent rows: as many as moments over the known variables in tables with ``m``.
"""

from collections.abc import Iterable, Sequence
from itertools import combinations
from math import prod

from rejoint.identifiability.layout import Layout, elementary

__all__ = ["carried"]

#: Variables of a table up to which all its parts are listed; beyond, one table is enough.
WIDE = 6


def carried(tables: Layout, seed: Iterable[int], wanted: int | None = None) -> int:
    """Largest rank at which every variable hangs on ``seed``, step by step; 0 if one never does.

    The variable that carries the most goes first, which is never worse: more known variables
    only add rows. Ranks above ``wanted`` are not told apart, which is quicker.

    Examples
    --------
    >>> from rejoint.identifiability.layout import layout
    >>> chain = layout([3] * 5, subsets=[(0, 1, 2), (1, 2, 3), (3, 4)])
    >>> carried(chain, [0, 1, 2])
    3
    """
    known = set(seed)
    missing = set(range(len(tables.domain))) - known
    most = prod(tables.levels) if wanted is None else wanted
    if not missing:
        return most  # nothing hangs: no limit from here
    if tables.order is not None:
        return min(most, carried_by_all(tables, known, tables.order))
    holders: dict[int, list[tuple[int, ...]]] = {m: [] for m in missing}
    for subset in tables.subsets:
        for m in missing.intersection(subset):
            holders[m].append(subset)
    rows = {m: rows_beside(tables, holders[m], m, known, most) for m in missing}
    least = most
    while rows:
        best = max(rows, key=lambda m: (rows[m], -m))
        least = min(least, rows.pop(best))
        known.add(best)
        for m in {n for subset in holders[best] for n in subset if rows.get(n, most) < most}:
            rows[m] = rows_beside(tables, holders[m], m, known, most)
    return least


def carried_by_all(tables: Layout, known: set[int], order: int) -> int:
    """The same where all tables of an order are there: the first variable has the fewest rows."""
    return sum(elementary([tables.free[n] for n in known], min(order - 1, len(known))))


def rows_beside(
    tables: Layout, holders: Sequence[tuple[int, ...]], m: int, known: set[int], most: int
) -> int:
    """Independent rows over known variables in the tables that hold ``m``, up to ``most``."""
    if not holders:
        return 0
    rows, parts = 1, set()
    for beside in {tuple(n for n in subset if n != m and n in known) for subset in holders}:
        if len(beside) > WIDE:
            rows = max(rows, prod(tables.levels[n] for n in beside))  # this table alone
            continue
        for size in range(1, len(beside) + 1):
            for part in combinations(beside, size):
                if part not in parts:
                    parts.add(part)
                    rows += prod(tables.free[n] for n in part)
        if rows >= most:
            return most
    return rows
