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


def carried(tables: Layout, seed: Iterable[int]) -> int:
    """Largest rank at which every variable hangs on ``seed``, step by step; 0 if one never does.

    The variable that carries the most goes first, which is never worse: more known variables
    only add rows.

    Examples
    --------
    >>> from rejoint.identifiability.layout import layout
    >>> chain = layout([3] * 5, subsets=[(0, 1, 2), (1, 2, 3), (3, 4)])
    >>> carried(chain, [0, 1, 2])
    3
    """
    known = set(seed)
    missing = set(range(len(tables.domain))) - known
    if not missing:
        return prod(tables.levels)  # nothing hangs: no limit from here
    if tables.order is not None:
        return carried_by_all(tables, known, tables.order)
    holders = {m: [s for s in tables.subsets if m in s] for m in missing}
    least = prod(tables.levels)
    while missing:
        rows = {m: rows_beside(tables, holders[m], m, known) for m in missing}
        best = max(rows, key=lambda m: (rows[m], -m))
        least = min(least, rows[best])
        known.add(best)
        missing.remove(best)
    return least


def carried_by_all(tables: Layout, known: set[int], order: int) -> int:
    """The same where all tables of an order are there: the first variable has the fewest rows."""
    return sum(elementary([tables.free[n] for n in known], min(order - 1, len(known))))


def rows_beside(tables: Layout, holders: Sequence[tuple[int, ...]], m: int, known: set[int]) -> int:
    """Independent rows over known variables in the tables that hold ``m``."""
    parts = {
        part
        for subset in holders
        for beside in [tuple(n for n in subset if n != m and n in known)]
        for size in range(1, len(beside) + 1)
        for part in combinations(beside, size)
    }
    if not holders:
        return 0
    return 1 + sum(prod(tables.free[n] for n in part) for part in parts)
