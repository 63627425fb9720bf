"""Certificates: what can be said of one model, not of almost all."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.labels import plural, show
from rejoint.identifiability.bounds_report import apart_words
from rejoint.identifiability.jacobian import Local, alike_classes, jacobian
from rejoint.identifiability.jacobian_rank import RESOLVED, scaled
from rejoint.identifiability.layout import Layout, Subsets, layout
from rejoint.identifiability.theorems import Splits, balanced, groupings
from rejoint.identifiability.theorems_as_printed import named
from rejoint.messages import Message, PythonOnly, join_messages
from rejoint.pmf.pmf import LowRankPMF

Array = NDArray[np.float64]

#: Columns of length one whose smallest singular value is below this count as dependent.
DEPENDENT = 1e-8

#: Sets of columns that are looked at, at the most.
SETS = 20_000

#: Pairs of classes up to which the compound condition is evaluated: 60 classes.
PAIRS = 1770


def unit_columns(matrix: Array) -> Array:
    """Columns scaled to length one; zero columns stay."""
    lengths = np.linalg.norm(matrix, axis=0)
    return matrix / np.where(lengths > 0, lengths, 1.0)


def column_rank(matrix: Array) -> int:
    """Rank, columns scaled to length one.

    Examples
    --------
    >>> column_rank(np.array([[1.0, 2.0, 0.0], [1.0, 2.0, 1.0]]))
    2
    """
    values = np.linalg.svd(unit_columns(matrix), compute_uv=False)
    return int((values > DEPENDENT).sum())


def kruskal_rank(matrix: Array) -> tuple[int, int]:
    """Bounds on the largest ``k`` such that any ``k`` columns are independent; equal if exact.

    All sets of columns are looked at while they are few; beyond, dependent sets are only sought
    among random ones, which bounds it from above.

    Examples
    --------
    >>> kruskal_rank(np.array([[1.0, 0.0, 1.0, 2.0], [0.0, 1.0, 1.0, 2.0]]))
    (1, 1)
    >>> kruskal_rank(np.array([[1.0, 0.0, 1.0, 1.0], [0.0, 1.0, 1.0, 2.0]]))
    (2, 2)
    """
    columns = unit_columns(matrix)
    size, rank = columns.shape[1], column_rank(matrix)
    if rank == size:
        return size, size
    looked = 0
    for k in range(1, rank + 1):
        looked += comb(size, k)
        if looked > SETS:
            return k - 1, upper_bound(columns, k, rank)
        if any_dependent(columns, list(combinations(range(size), k))):
            return k - 1, k - 1
    return rank, rank


def any_dependent(columns: Array, sets: list[tuple[int, ...]]) -> bool:
    """Whether one of some sets of columns is dependent."""
    for start in range(0, len(sets), 4096):
        chosen = columns[:, sets[start : start + 4096]].transpose(1, 0, 2)
        if (np.linalg.svd(chosen, compute_uv=False)[:, -1] <= DEPENDENT).any():
            return True
    return False


def upper_bound(columns: Array, least: int, rank: int) -> int:
    """Smallest size at which a random set is dependent, less one; the rank if none is."""
    rng = np.random.default_rng(0)
    for k in range(least, rank + 1):
        drawn = [tuple(rng.permutation(columns.shape[1])[:k]) for _ in range(200)]
        if any_dependent(columns, drawn):
            return k - 1
    return rank


def compound_strength(first: Array, second: Array) -> float | None:
    """Smallest singular value, over the largest, of ``M_2(A_1) . M_2(A_2)`` of Lemma 4.

    The columns of the compound matrices are scaled to length one. By Cauchy and Binet their inner
    products are minors of the Gram matrices of ``A_1`` and ``A_2``, so that no compound matrix
    is formed. None beyond 60 classes; 0 where it is below what can be told from zero.

    Examples
    --------
    >>> a = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    >>> compound_strength(a, np.eye(3)) > 0.1, compound_strength(a, np.ones((2, 3)))
    (True, 0.0)
    """
    size = first.shape[1]
    if comb(size, 2) > PAIRS:
        return None
    if size == 1:
        return 1.0
    product = minors(first) * minors(second)
    if (np.diagonal(product) <= RESOLVED**2).any():
        return 0.0
    values = np.linalg.eigvalsh(scaled(product)[0])
    ratio = float(np.sqrt(max(values[0], 0.0) / values[-1]))
    return ratio if ratio >= RESOLVED else 0.0


def minors(matrix: Array) -> Array:
    """Inner products of the columns of the second compound matrix, (C(F, 2), C(F, 2))."""
    columns = unit_columns(matrix)
    inner = columns.T @ columns
    f, g = np.triu_indices(matrix.shape[1], 1)
    found: Array = inner[np.ix_(f, f)] * inner[np.ix_(g, g)]
    found -= inner[np.ix_(f, g)] * inner[np.ix_(g, f)]
    return found


Groups = tuple[tuple[int, ...], ...]

#: Groupings that are tried, at the most.
TRIED = 40

#: Rows of one table over known variables that are looked at, at the most.
ROWS = 4096


@dataclass(frozen=True)
class Stack:
    """Three groups of variables, and the factor matrix of each."""

    groups: Groups
    sides: tuple[Array, ...]


def stacks(tables: Layout, pmf: LowRankPMF) -> Iterator[Stack]:
    """Groups between which all tables are there, the most promising first."""
    if tables.largest < 3:
        return
    if tables.order is not None:
        for groups in all_groups(tables):
            yield stack(pmf, groups, tables.order - 2)
        return
    found = sorted(groupings(tables), key=lambda groups: -covered(tables, groups))
    for groups in found[:TRIED]:
        if len(groups) == 3:
            yield stack(pmf, groups, 1)
        else:
            yield crossed(pmf, groups)


def all_groups(tables: Layout) -> list[Groups]:
    """Even groups, and those with most variables in the third, where all tables are there."""
    free = tables.free
    found: dict[Groups, None] = {balanced(free, 3): None}
    splits = Splits(free)
    if splits.fits:
        first, second, third, _ = splits.sums
        for rule in (np.minimum((first * second), third), first * second * third):
            found[splits.partition(int(np.argmax(rule)))] = None
    down = sorted(range(len(free)), key=lambda n: -free[n])
    found[((down[0],), (down[1],), tuple(sorted(down[2:])))] = None
    return [groups for groups in found if all(groups)]


def covered(tables: Layout, groups: Groups) -> int:
    """Free rows of all groups."""
    return sum(tables.free[n] for group in groups for n in group)


def stack(pmf: LowRankPMF, groups: Groups, taken: int) -> Stack:
    """Factors one below the other; in the third group several variables at a time."""
    sides = [np.vstack([pmf.factors[n] for n in group]) for group in groups]
    if taken > 1 and len(groups[2]) > 1:
        size = min(taken, len(groups[2]))
        sides[2] = np.vstack([khatri_rao(pmf, part) for part in combinations(groups[2], size)])
    return Stack(groups, tuple(sides))


def crossed(pmf: LowRankPMF, groups: Groups) -> Stack:
    """Four groups as three: the two largest become one, its rows products."""
    by_size = sorted(groups, key=lambda group: sum(len(pmf.factors[n]) for n in group))
    a, b, c, d = by_size
    rows = [khatri_rao(pmf, (m, n)) for m in c for n in d]
    sides = [np.vstack([pmf.factors[n] for n in group]) for group in (a, b)]
    return Stack((a, b, (*c, *d)), (*sides, np.vstack(rows)))


def khatri_rao(pmf: LowRankPMF, variables: tuple[int, ...]) -> Array:
    """Products of the factors' rows, (cells, F)."""
    rows = np.ones((1, pmf.rank))
    for n in variables:
        rows = (rows[:, None, :] * pmf.factors[n][None]).reshape(-1, pmf.rank)
    return rows


def hang(tables: Layout, pmf: LowRankPMF, known: set[int]) -> bool:
    """Whether every other variable follows from the known ones, table by table."""
    known = set(known)
    waiting = [n for n in range(len(tables.domain)) if n not in known]
    moved = True
    while waiting and moved:
        moved = False
        for m in list(waiting):
            rows = rows_beside(tables, pmf, m, known)
            if rows is not None and column_rank(rows) == pmf.rank:
                known.add(m)
                waiting.remove(m)
                moved = True
    return not waiting


def rows_beside(tables: Layout, pmf: LowRankPMF, m: int, known: set[int]) -> Array | None:
    """Rows over known variables in the tables that hold ``m``."""
    if tables.order is not None:
        some = sorted(known)[: max(8, tables.order)]  # more rows than these are seldom needed
        beside = {*combinations(some, min(tables.order - 1, len(some)))}
    else:
        held = (s for s in tables.subsets if m in s)
        beside = {tuple(n for n in s if n != m and n in known) for s in held}
    parts = [khatri_rao(pmf, narrowed(tables, part)) for part in sorted(beside) if part]
    return np.vstack(parts) if parts else None


def narrowed(tables: Layout, part: tuple[int, ...]) -> tuple[int, ...]:
    """The first variables of a wide table, as many as keep its rows few."""
    rows = np.cumprod([float(tables.levels[n]) for n in part])
    return part[: max(1, int((rows <= ROWS).sum()))]


#: Weight below which a class explains nothing: a thousandth of what a million records show.
DEAD = 1e-9


@dataclass(frozen=True)
class Proof:
    """A lemma whose condition this model fulfils, with the groups that show it."""

    lemma: str
    groups: tuple[tuple[str, ...], ...]
    numbers: str

    @property
    def where(self) -> str:
        """The groups in words."""
        text = " ".join("{" + " ".join(group) + "}" for group in self.groups)
        return f", groups {text}" if text else ""


@dataclass(frozen=True)
class Certificate:
    """What is known of one model and some tables.

    Parameters
    ----------
    layout : Layout
        Variables and tables.
    rank : int
        Number of classes.
    proof : Proof or None
        The lemma that proves this model to be the only one of its rank with these tables.
    kruskal : dict of str to (int, int)
        Bounds on the Kruskal rank of each factor; equal where it is exact.
    compound : float or None
        Strength of Lemma 4's condition on the best groups: smallest singular value over the
        largest; 0 where it fails, None where it was not needed or is too large.
    dead : tuple of int
        Classes with next to no weight.
    collinear : dict of str to tuple of tuples of int
        Variables whose factor has equal columns, and the classes that share one: this variable
        does not tell them apart, and its Kruskal rank is 1.
    alike : tuple of (int, int, str)
        Classes that differ in one variable only, and which; empty text if in none.
    local : Local
        The Jacobian test at this model.

    Examples
    --------
    >>> import rejoint as rj
    >>> p = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 4)
    >>> print(rj.identifiability.certify(p, order=3).verdict)
    Unique: no other model of rank 2 has these tables (Lemma 1 (Kruskal), groups {x0 x3} {x1} \
{x2}: Kruskal ranks 2 + 2 + 2 >= 6).
    """

    layout: Layout
    rank: int
    proof: Proof | None
    kruskal: dict[str, tuple[int, int]]
    compound: float | None
    dead: tuple[int, ...]
    collinear: dict[str, tuple[tuple[int, ...], ...]]
    alike: tuple[tuple[int, int, str], ...]
    local: Local

    @property
    def condition(self) -> float:
        """Condition number of the Jacobian, its columns scaled to length one."""
        return float("inf") if self.local.smallest == 0 else 1.0 / self.local.smallest

    @property
    def uncovered(self) -> tuple[str, ...]:
        """Variables in no table."""
        return self.layout.uncovered

    @property
    def apart(self) -> tuple[tuple[str, str], ...]:
        """Pairs of variables in no table together."""
        return self.layout.apart

    @property
    def verdict(self) -> str:
        """What it comes to, in words."""
        if self.uncovered:
            return f"Not unique: no table contains {show(self.uncovered)}."
        if self.proof is not None:
            return (
                f"Unique: no other model of rank {self.rank} has these tables "
                f"({self.proof.lemma}{self.proof.where}: {self.proof.numbers})."
            )
        fewer = reducible_words(self)
        if fewer:
            return fewer
        if self.local.parameters:
            return (
                f"Locally unique (condition number {self.condition:.2g}); none of the lemmas "
                "proves it globally."
            )
        if self.local.parameters is None:
            return (
                f"Undecided: the smallest singular value is {self.local.smallest:.1e} of the "
                "largest, too near to zero."
            )
        return f"Not unique. {self.local.verdict}"

    def __str__(self) -> str:
        ranks = [
            f"{name} {low if low == high else f'{low}..{high}'}"
            for name, (low, high) in self.kruskal.items()
        ]
        lines = [self.verdict, f"Kruskal ranks of the factors: {', '.join(ranks[:12])}."]
        if self.proof is not None and reducible_words(self):
            lines.append(reducible_words(self))
        if self.collinear:
            lines.append(collinear_words(self))
        if self.apart:
            lines.append(apart_words(self.layout))
        lines.append(f"Condition number {self.condition:.2g}. {self.local.weakest}")
        return join_messages(lines, "\n")


def certify(
    pmf: LowRankPMF, subsets: Subsets | None = None, *, order: int | None = None
) -> Certificate:
    """Check whether this model is the only one that explains some tables.

    Bounds such as those of :func:`report` are on almost all models; this one may be an exception.
    Lemmas 1 and 4 are evaluated on its own factors, stacked in groups between which all tables
    are there; variables outside must hang on those by tables of full column rank.

    Parameters
    ----------
    pmf : LowRankPMF
        The model.
    subsets : sequence of tuples, optional
        The tables, by names or positions.
    order : int, optional
        All tables of so many variables instead; 3 by default.

    Returns
    -------
    Certificate

    Notes
    -----
    Ranks are numerical: columns count as dependent where a singular value, of columns of length
    one, is below 1e-8.

    Examples
    --------
    >>> import rejoint as rj
    >>> p = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 3 + [[[0.5, 0.5], [0.5, 0.5]]])
    >>> rj.identifiability.certify(p, order=3).kruskal["x3"]
    (1, 1)
    """
    if not isinstance(pmf, LowRankPMF):
        raise TypeError(f"certify takes a LowRankPMF, got {type(pmf).__name__}.")
    tables = layout(order=order, subsets=subsets, domain=pmf.domain)
    dead = tuple(int(f) for f in np.flatnonzero(pmf.weights < DEAD))
    proof, compound = (None, None) if dead or tables.uncovered else proved(tables, pmf)
    return Certificate(
        tables,
        pmf.rank,
        proof,
        {name: kruskal_rank(a) for name, a in named_factors(pmf)},
        compound,
        dead,
        {name: groups for name, a in named_factors(pmf) if (groups := equal_columns(a))},
        tuple(alike_classes(pmf, DEAD)),
        jacobian(at=pmf, subsets=subsets, order=order),
    )


def named_factors(pmf: LowRankPMF) -> list[tuple[str, Array]]:
    """Each variable's name and factor."""
    return [(name, np.asarray(a)) for name, a in zip(pmf.domain.names, pmf.factors, strict=True)]


def equal_columns(factor: Array) -> tuple[tuple[int, ...], ...]:
    """Groups of classes whose columns are the same."""
    left, found = list(range(factor.shape[1])), []
    while left:
        first = left[0]
        same = [f for f in left if np.abs(factor[:, f] - factor[:, first]).max() <= DEAD]
        left = [f for f in left if f not in same]
        found += [tuple(same)] if len(same) > 1 else []
    return tuple(found)


def collinear_words(found: Certificate) -> str:
    """Which variables do not tell which classes apart."""
    parts = []
    for name, groups in list(found.collinear.items())[:6]:
        every = len(groups[0]) == found.rank
        parts.append(f"{name} ({'all' if every else '; '.join(show(group) for group in groups)})")
    more = len(found.collinear) - len(parts)
    tail = f", and {plural(more, 'more variable')}" if more else ""
    return f"Equal columns, classes that a variable does not tell apart: {', '.join(parts)}{tail}."


def proved(tables: Layout, pmf: LowRankPMF) -> tuple[Proof | None, float | None]:
    """The first lemma that holds on some groups, and the best strength of Lemma 4."""
    best: float | None = None
    if pmf.rank == 1:
        return Proof("one class", (), "every variable is in a table"), None
    for stack in stacks(tables, pmf):
        if not hang(tables, pmf, {n for group in stack.groups for n in group}):
            continue
        proof = by_kruskal(tables, stack, pmf.rank)
        if proof is not None:
            return proof, best
        proof, strength = by_compound(tables, stack, pmf.rank)
        if strength is not None:
            best = max(best or 0.0, strength)
        if proof is not None:
            return proof, best
    return None, best


def by_kruskal(tables: Layout, stack: Stack, rank: int) -> Proof | None:
    """Lemma 1 on three stacked factors."""
    ranks = [kruskal_rank(side)[0] for side in stack.sides]
    if sum(ranks) < 2 * rank + 2:
        return None
    numbers = f"Kruskal ranks {' + '.join(map(str, ranks))} >= {2 * rank + 2}"
    return Proof("Lemma 1 (Kruskal)", named(tables, stack.groups), numbers)


def by_compound(tables: Layout, stack: Stack, rank: int) -> tuple[Proof | None, float | None]:
    """Lemma 4 on three stacked factors, each as the third in turn."""
    best: float | None = None
    for third in range(3):
        if column_rank(stack.sides[third]) < rank:
            continue
        first, second = (stack.sides[k] for k in range(3) if k != third)
        strength = compound_strength(first, second)
        if strength is None:
            continue
        best = max(best or 0.0, strength)
        if strength:
            order = [k for k in range(3) if k != third] + [third]
            groups = named(tables, [stack.groups[k] for k in order])
            numbers = f"the last has full column rank, compound condition {strength:.1e}"
            return Proof("Lemma 4 (compound)", groups, numbers), best
    return None, best


def reducible_words(found: Certificate) -> str:
    """Classes that a smaller model would not need."""
    parts = []
    if found.dead:
        parts.append(f"classes without weight: {show(found.dead)}")
    if found.alike:
        f, g, where = found.alike[0]
        only = f"differ in {where!r} only" if where else "are equal"
        parts.append(f"classes {f} and {g} {only}")
    if not parts:
        return ""
    return Message(
        "Not unique as a model of rank {rank}: {parts}{advice}.",
        rank=found.rank,
        parts=", and ".join(parts),
        advice=PythonOnly("; pmf.reduce()"),
    )
