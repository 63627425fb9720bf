"""The paper's theorems as they are printed, for equal levels and all tables of an order.

Their proofs give the stacked factor of a group ``S_k`` of variables ``I |S_k|`` free rows. Each
variable's block of rows adds up to one, so that only ``|S_k| (I - 1) + 1`` are free: unproved as
printed, though not refuted. :mod:`rejoint.identifiability.theorems` has what holds.
"""

from collections.abc import Sequence
from math import isqrt

from rejoint.identifiability.bounds import Bound, compound, floor_log2
from rejoint.identifiability.layout import Layout

_EQUAL = "equal levels; factors drawn from a continuous distribution; all tables of the order"
_GAP = f"{_EQUAL}; the proof counts I|S_k| free rows in a group, of which |S_k|(I-1)+1 are free"


def printed_bounds(tables: Layout) -> list[Bound]:
    """Theorems 1-3 and the formula behind Tables II and III, where they apply.

    Examples
    --------
    >>> from rejoint.identifiability.layout import layout
    >>> [(b.name, b.rank) for b in printed_bounds(layout([3] * 10, order=3))]
    [('Theorem 1', 4), ('Theorem 2', 16), ('Theorem 2, closed form', 6), ('Table II/III', 7)]
    """
    size, levels = len(tables.domain), tables.levels
    if len(set(levels)) > 1 or tables.order not in (3, 4) or size < tables.order:
        return []
    if tables.order == 4:
        return [fourth(tables, levels[0])]
    return triples(tables, levels[0])


def triples(tables: Layout, levels: int) -> list[Bound]:
    """Theorems 1 and 2, and the tables' own formula."""
    size = len(tables.domain)
    one = theorem_1(size, levels)
    third = size // 3 * levels
    closed = (third + 1) ** 2 / 16
    shown = max(one, (size * levels / 3 + 1) ** 2 / 16)
    groups = thirds(size, size // 3)
    side = round((one**0.5 + 1) / levels) if size > levels else 1
    first = thirds(size, side)
    return [
        Bound("Theorem 1", one, False, "printed", _GAP, named(tables, first), float(one)),
        Bound(
            "Theorem 2",
            4 ** max(int(floor_log2(third)) - 1, 0),
            False,
            "printed",
            _GAP,
            named(tables, groups),
            4.0 ** (int(floor_log2(third)) - 1),
        ),
        Bound(
            "Theorem 2, closed form",
            int(closed),
            False,
            "printed",
            f"{_GAP}; implied by Theorem 2",
            named(tables, groups),
            closed,
        ),
        Bound(
            "Table II/III",
            int(shown),
            False,
            "printed",
            f"{_GAP}; the larger of Theorem 1 and the closed form without the floor of N/3",
            (),
            shown,
        ),
    ]


def theorem_1(size: int, levels: int) -> int:
    """``I (N - 2)`` for ``N <= I``, else ``(floor(sqrt(N I - 1)/I) I - 1)^2``.

    Examples
    --------
    >>> theorem_1(6, 6), theorem_1(20, 3)
    (24, 25)
    """
    if size <= levels:
        return levels * (size - 2)
    return (isqrt(size * levels - 1) // levels * levels - 1) ** 2


def fourth(tables: Layout, levels: int) -> Bound:
    """Theorem 3 over all partitions; for equal levels, balanced pairs of groups are the best."""
    size = len(tables.domain)

    def attained(inner: int) -> int:
        a, b = (levels * half for half in halves(inner))
        c, d = (levels * half for half in halves(size - inner))
        return int(compound(a, b, c * d))

    best = max(range(2, size - 1), key=attained)
    groups = in_a_row([*halves(best), *halves(size - best)])
    return Bound(
        "Theorem 3", attained(best), False, "printed", _GAP, named(tables, groups), attained(best)
    )


def halves(number: int) -> tuple[int, int]:
    """Two whole halves, nearly equal."""
    return number // 2, number - number // 2


def thirds(size: int, side: int) -> list[range]:
    """Two groups of ``side`` variables, and the rest."""
    return in_a_row([side, side, size - 2 * side])


def in_a_row(sizes: Sequence[int]) -> list[range]:
    """Groups of these sizes, one after another."""
    starts = [sum(sizes[:k]) for k in range(len(sizes))]
    return [range(a, a + n) for a, n in zip(starts, sizes, strict=True)]


def named(tables: Layout, groups: Sequence[Sequence[int]]) -> tuple[tuple[str, ...], ...]:
    """Groups of positions as groups of names."""
    return tuple(tables.names(group) for group in groups)
