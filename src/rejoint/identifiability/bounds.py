"""Rank bounds: the lemmas of the paper as formulas, from the sides of a tensor to a rank.

``d1, d2, d3`` are the sides; where only some factors must be free of structure, the docstring
says so. All formulas take integers, or arrays of them to evaluate many partitions at once.

If the weights and the factors of some variables are known, a table of them and of variable ``m``
is linear in the factor of ``m``: ``X = (A_j . A_k) diag(w) A_m^T``. It can be solved where the rows
of the known side have full column rank ``F``, which generic factors have as soon as there are ``F``
independent rows: as many as moments over the known variables in tables with ``m``.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isqrt, prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rejoint.identifiability.layout import TableLayout, elementary_symmetric
from rejoint.marginals.subsets import Subset

#: Length up to which a partition is shown by names.
MOST_SHOWN_LETTERS = 60

#: Variables of a table up to which all its parts are listed; beyond, one table is enough.
MOST_LISTED_VARIABLES = 6

#: Products of sides up to which Chiantini, Ottaviani and Vannieuwenhoven ran their proof.
MOST_PROVED_CELLS = 15_000

#: Where generic uniqueness fails below the expected rank, besides unbalanced tensors.
EXCEPTIONS = {(4, 4, 3): 5, (4, 4, 4): 6, (6, 6, 3): 8, (2, 2, 2, 2, 2): 5}

IntOrArray = Any  # int, or an integer array


@dataclass(frozen=True)
class RankBound:
    """The rank up to which a result holds.

    Parameters
    ----------
    name : str
        The result.
    rank : int
        Largest rank for which the result says that the model is unique; for a limit, the largest
        rank that it leaves possible. 0 if it says nothing about any rank.
    proved : bool
        Whether the result is proved as it stands.
    origin : {"printed", "corrected", "literature", "limit"}
        As the paper prints it; with the sides corrected; from elsewhere; or a limit that no
        result can exceed.
    assumptions : str
        What the result assumes.
    partition : tuple of tuples of names
        The groups of variables that attain it; empty if it has none.
    value : float
        The value of the formula before it is rounded down.

    Examples
    --------
    >>> import rejoint as rj
    >>> print(rj.identifiability.report([3] * 6, order=3)["One table (Kruskal)"])
    One table (Kruskal): rank 3, proved, {x0} {x1} {x2}. Assumptions: factors drawn from a \
continuous distribution; one table is unique by itself ((3I-2)/2 for three variables of I levels), \
and every other variable is linked to it, directly or through others, by overlapping tables.
    """

    name: str
    rank: int
    proved: bool
    origin: Literal["printed", "corrected", "literature", "limit"]
    assumptions: str
    partition: tuple[tuple[str, ...], ...] = ()
    value: float = float("nan")

    @property
    def standing(self) -> str:
        """Whether the result is proved."""
        if self.origin == "limit":
            return "limit"
        return "proved" if self.proved else "printed, not proved"

    @property
    def groups(self) -> str:
        """The partition in a line; by the sizes of its groups where names are too long."""
        text = " ".join("{" + " ".join(group) + "}" for group in self.partition)
        if len(text) <= MOST_SHOWN_LETTERS:
            return text
        return "groups of " + ", ".join(str(len(group)) for group in self.partition)

    def __str__(self) -> str:
        known = ", ".join(filter(None, [f"rank {self.rank}", self.standing, self.groups]))
        return f"{self.name}: {known}. Assumptions: {self.assumptions}."


def solvable_rank(tables: TableLayout, known: Iterable[int], most: int | None = None) -> int:
    """Largest rank at which all variables can be solved for, one by one, from the known ones.

    The variable with the most rows goes first, which is never worse: more known variables
    only add rows. 0 if one cannot be reached. Ranks above ``most`` are not distinguished, which is
    faster.

    Examples
    --------
    >>> from rejoint.identifiability.layout import read_layout
    >>> chain = read_layout([3] * 5, subsets=[(0, 1, 2), (1, 2, 3), (3, 4)])
    >>> solvable_rank(chain, [0, 1, 2])
    3
    """
    known = set(known)
    missing = set(range(len(tables.domain))) - known
    most = prod(tables.levels) if most is None else most
    if not missing:
        return most
    if tables.order is not None:
        # The variable that is solved first has the fewest rows.
        free = [tables.free[n] for n in known]
        return min(most, sum(elementary_symmetric(free, min(tables.order - 1, len(known)))))
    holders: dict[int, list[Subset]] = {m: [] for m in missing}
    for subset in tables.subsets:
        for m in missing.intersection(subset):
            holders[m].append(subset)
    rows = {m: _count_known_rows(tables, holders[m], m, known, most) for m in missing}
    least = most
    while rows:
        best = max(rows, key=lambda m: (rows[m], -m))
        least = min(least, rows.pop(best))
        known.add(best)
        for m in {n for subset in holders[best] for n in subset if rows.get(n, most) < most}:
            rows[m] = _count_known_rows(tables, holders[m], m, known, most)
    return least


def _count_known_rows(
    tables: TableLayout, holders: Sequence[Subset], m: int, known: set[int], most: int
) -> int:
    """Independent rows over known variables in the tables that hold ``m``, up to ``most``."""
    if not holders:
        return 0
    rows, parts = 1, set()
    for beside in {tuple(n for n in subset if n != m and n in known) for subset in holders}:
        if len(beside) > MOST_LISTED_VARIABLES:
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


def kruskal(d1: IntOrArray, d2: IntOrArray, d3: IntOrArray) -> IntOrArray:
    """Lemma 1, Kruskal 1977: ``sum min(d_k, F) >= 2 F + 2``; 1 where that fails at all ranks.

    Only Kruskal ranks matter, which are ``min(d_k, F)`` for stacked and for Khatri-Rao
    structured factors, too. With ``d1 <= d2 <= d3`` it is ``F <= d1 + d2 - 2`` up to ``d3``
    and ``F <= (d1 + d2 + d3 - 2)/2`` beyond.

    Examples
    --------
    >>> kruskal(5, 5, 5), kruskal(3, 3, 3), kruskal(2, 2, 2), kruskal(1, 5, 5)
    (6, 3, 2, 1)
    """
    low, middle, high = _sort_sides(d1, d2, d3)
    bound = np.minimum(low + middle - 2, (low + middle + high - 2) // 2)
    return _as_int(np.where(low >= 2, np.maximum(bound, 1), 1))


def full_column_rank(d1: IntOrArray, d2: IntOrArray, d3: IntOrArray) -> IntOrArray:
    """Lemma 2: ``F <= min(d3, (d1 - 1)(d2 - 1))``, with ``d1, d2 >= 3``.

    The third factor needs no more than full column rank: uniqueness then depends on the first
    two alone, so that the third may be structured. ``d1, d2`` must be free of structure.

    Examples
    --------
    >>> full_column_rank(3, 5, 7), full_column_rank(2, 5, 7)
    (7, 1)
    """
    bound = np.minimum(d3, (d1 - 1) * (d2 - 1))
    return _as_int(np.where((d1 >= 3) & (d2 >= 3), np.maximum(bound, 1), 1))


def powers_of_two(d1: IntOrArray, d2: IntOrArray, d3: IntOrArray) -> IntOrArray:
    """Lemma 3: ``F <= 2^(a + b - 2)``, ``2^a`` and ``2^b`` within the two smaller sides.

    Examples
    --------
    >>> powers_of_two(5, 9, 9), powers_of_two(5, 5, 5)
    (8, 4)
    """
    low, middle, _ = _sort_sides(d1, d2, d3)
    a, b = floor_log2(low), floor_log2(middle)
    return _as_int(np.where(low >= 2, 2 ** np.maximum(a + b - 2, 0), 1))


def compound(d1: IntOrArray, d2: IntOrArray, d3: IntOrArray) -> IntOrArray:
    """Lemma 4, generic: ``F <= d3`` and ``2 F (F - 1) <= d1 (d1 - 1) d2 (d2 - 1)``.

    Examples
    --------
    >>> compound(5, 5, 9), compound(2, 6, 9)
    (9, 6)
    """
    left, right = np.broadcast_arrays(d1 * (d1 - 1), d2 * (d2 - 1))
    # F (F - 1) <= product/2 means F <= (1 + sqrt(1 + 2 product))/2; in integers of any size.
    products = zip(left.ravel().tolist(), right.ravel().tolist(), strict=True)
    roots = np.array([(1 + isqrt(1 + 2 * a * b)) // 2 for a, b in products])
    return _as_int(np.maximum(np.minimum(d3, roots.reshape(left.shape)), 1))


def below_expected(sides: tuple[int, ...]) -> int:
    """Chiantini, Ottaviani, Vannieuwenhoven 2014: every rank below the expected one.

    ``F < prod d_k / (1 + sum (d_k - 1))`` for tensors of up to 15,000 cells, with a few
    exceptions; the proof is by computer, case by case. 1 where it says nothing.

    Examples
    --------
    >>> below_expected((7, 7, 9)), below_expected((4, 4, 4)), below_expected((3, 3, 20))
    (20, 5, 4)
    """
    sides = tuple(sorted((d for d in sides if d > 1), reverse=True))
    if len(sides) < 3 or prod(sides) > MOST_PROVED_CELLS:
        return 1
    expected = (prod(sides) - 1) // (1 + sum(d - 1 for d in sides))
    unbalanced = prod(sides[1:]) - sum(d - 1 for d in sides[1:])
    if sides[0] > unbalanced:
        return max(min(expected, unbalanced - 1), 1)
    exception = EXCEPTIONS.get(sides)
    if len(sides) == 4 and sides[0] == sides[1] and sides[2:] == (2, 2):
        exception = 2 * sides[0] - 1
    return max(expected if exception is None else min(expected, exception - 1), 1)


def floor_log2(values: IntOrArray) -> NDArray[np.int64]:
    """Largest ``a`` with ``2^a <= value``; 0 for values below two."""
    # frexp is exact where log2 may round up just below a power of two.
    exponents: NDArray[np.int64] = np.frexp(np.asarray(values, dtype=np.float64))[1]
    return np.maximum(exponents.astype(np.int64) - 1, 0)


def _sort_sides(d1: IntOrArray, d2: IntOrArray, d3: IntOrArray) -> tuple[IntOrArray, ...]:
    """Smallest, middle and largest side, elementwise."""
    low = np.minimum(np.minimum(d1, d2), d3)
    high = np.maximum(np.maximum(d1, d2), d3)
    return low, d1 + d2 + d3 - low - high, high


def _as_int(values: NDArray[Any]) -> IntOrArray:
    """A Python int in place of an array without axes."""
    return int(values) if values.ndim == 0 else values


def printed_bound(
    tables: TableLayout, name: str, value: float, assumptions: str, groups: Sequence[Sequence[int]]
) -> RankBound:
    """A bound that the paper prints without a valid proof."""
    partition = tables.group_names(groups)
    return RankBound(name, int(value), False, "printed", assumptions, partition, float(value))
