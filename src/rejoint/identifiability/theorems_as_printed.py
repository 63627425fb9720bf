"""The paper's theorems as they are printed, for equal levels and all tables of an order.

Their proofs give the stacked factor of a group ``S_k`` of variables ``I |S_k|`` free rows. Each
variable's block of rows adds up to one, so that only ``|S_k| (I - 1) + 1`` are free: the theorems
are unproved as printed, though not refuted. :mod:`rejoint.identifiability.theorems` has the
corrected ones.
"""

from math import isqrt

from rejoint.identifiability.bounds import RankBound, compound, floor_log2, printed_bound
from rejoint.identifiability.layout import TableLayout

_GAP = (
    "equal levels; factors drawn from a continuous distribution; all tables of the order; the "
    "proof counts I|S_k| free rows in a group, of which |S_k|(I-1)+1 are free"
)


def printed_bounds(tables: TableLayout) -> list[RankBound]:
    """Theorems 1-3 and the formula behind Tables II and III, where they apply.

    Examples
    --------
    >>> from rejoint.identifiability.layout import read_layout
    >>> [(b.name, b.rank) for b in printed_bounds(read_layout([3] * 10, order=3))]
    [('Theorem 1', 4), ('Theorem 2', 16), ('Theorem 2, closed form', 6), ('Table II/III', 7)]
    """
    if len(set(tables.levels)) > 1 or tables.order not in (3, 4):
        return []
    return [_theorem_3(tables)] if tables.order == 4 else _theorems_1_and_2(tables)


def _theorems_1_and_2(tables: TableLayout) -> list[RankBound]:
    """Theorems 1 and 2, and the formula behind the paper's tables."""
    size, levels = len(tables.domain), tables.levels[0]
    first = _theorem_1(size, levels)
    side = round((first**0.5 + 1) / levels) if size > levels else 1
    third = size // 3 * levels
    closed = (third + 1) ** 2 / 16
    shown = max(first, (size * levels / 3 + 1) ** 2 / 16)
    thirds = _split_in_a_row(size // 3, size // 3, size - 2 * (size // 3))
    return [
        printed_bound(
            tables, "Theorem 1", first, _GAP, _split_in_a_row(side, side, size - 2 * side)
        ),
        printed_bound(tables, "Theorem 2", 4 ** max(int(floor_log2(third)) - 1, 0), _GAP, thirds),
        printed_bound(
            tables, "Theorem 2, closed form", closed, f"{_GAP}; implied by Theorem 2", thirds
        ),
        printed_bound(
            tables,
            "Table II/III",
            shown,
            f"{_GAP}; the larger of Theorem 1 and the closed form without the floor of N/3",
            (),
        ),
    ]


def _theorem_1(size: int, levels: int) -> int:
    """``I (N - 2)`` for ``N <= I``, else ``(floor(sqrt(N I - 1)/I) I - 1)^2``.

    Examples
    --------
    >>> _theorem_1(6, 6), _theorem_1(20, 3)
    (24, 25)
    """
    if size <= levels:
        return levels * (size - 2)
    return (isqrt(size * levels - 1) // levels * levels - 1) ** 2


def _theorem_3(tables: TableLayout) -> RankBound:
    """Theorem 3 over all partitions; for equal levels, balanced pairs of groups are the best."""
    size, levels = len(tables.domain), tables.levels[0]

    def group_sizes(inner: int) -> list[int]:
        return [(number + k) // 2 for number in (inner, size - inner) for k in (0, 1)]

    def bound(inner: int) -> int:
        a, b, c, d = (levels * count for count in group_sizes(inner))
        return int(compound(a, b, c * d))

    best = max(range(2, size - 1), key=bound)
    groups = _split_in_a_row(*group_sizes(best))
    return printed_bound(tables, "Theorem 3", bound(best), _GAP, groups)


def _split_in_a_row(*sizes: int) -> list[range]:
    """Groups of these sizes, one after another."""
    starts = [sum(sizes[:k]) for k in range(len(sizes))]
    return [range(a, a + n) for a, n in zip(starts, sizes, strict=True)]
