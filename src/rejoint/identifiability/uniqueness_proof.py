"""Proofs that one model is the only one with its tables: lemmas evaluated on its factors.

Three groups of variables make a tensor, for Lemmas 1 and 4. Two groups, of stacked factors ``H``
and ``W`` of full column rank, make a matrix ``H diag(w) W^T``: any other model has ``H P`` and
``W Q`` with ``P diag(w') Q^T = diag(w)``. The columns ``p_f`` and ``q_f`` lie in the cones
``H p >= 0`` and ``W q >= 0``, and for every matrix ``M`` with zeros on the diagonal
``sum w'_f p_f^T M q_f = 0``. So there is no other model if for some ``M`` each ``p^T M q > 0``,
unless both are multiples of the same coordinate. It is enough that this holds for the edges of the
cones, which is a linear program for ``M``. If every class has a level that no other class has, in
both groups, the edges are the coordinates (separability); ``M = v v^T - diag(v^2)`` is what is
known as sufficient scattering.

If the tables within one group show that ``P diag(w') P^T = diag(w)``, too, then ``P = Q``, and the
cone is that of both groups together.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, combinations, islice
from math import comb

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import linprog
from scipy.spatial import HalfspaceIntersection, QhullError

from rejoint.arrays import BoolArray, FloatArray
from rejoint.identifiability.bounds import compound, kruskal
from rejoint.identifiability.groupings import (
    find_groupings,
    partitions_into_three,
    split_evenly,
)
from rejoint.identifiability.jacobian_rank import RESOLVED_SHARE, ZERO, scale_columns
from rejoint.identifiability.layout import Groups, TableLayout
from rejoint.model import Model
from rejoint.queries.tables import khatri_rao

#: Columns of length one are dependent if their smallest singular value is below this.
DEPENDENT = 1e-8

#: Sets of columns that are tested for a Kruskal rank.
MOST_COLUMN_SETS = 20_000

#: Pairs of classes up to which the compound condition is evaluated: 60 classes.
MOST_CLASS_PAIRS = 1770

#: Groupings of listed tables that are tried.
MOST_GROUPINGS = 40

#: Random groupings that are tried where all tables of an order are there.
RANDOM_GROUPINGS = 20

#: Partitions of all variables of which the most promising are tried.
MOST_PARTITIONS = 400

#: Rows of one table over known variables that are used.
MOST_TABLE_ROWS = 4096

#: What zeros do where tables leave a rotation of the classes.
ANCHORED = "the zeros of the classes exclude every mixture of them"

#: Classes up to which the edges of a cone are listed, and pairs of edges that are compared.
MOST_EDGE_CLASSES, MOST_EDGE_PAIRS = 8, 40_000

#: Products of edges of length one above this are positive.
LEAST_MARGIN = 1e-7


@dataclass(frozen=True)
class Proof:
    """A lemma whose condition a model fulfills, with the groups of variables that show it."""

    lemma: str
    groups: tuple[tuple[str, ...], ...]
    numbers: str

    def __str__(self) -> str:
        text = " ".join("{" + " ".join(group) + "}" for group in self.groups)
        return f"{self.lemma}{f', groups {text}' if text else ''}: {self.numbers}"


def find_proof(tables: TableLayout, model: Model) -> tuple[Proof | None, float | None]:
    """The first lemma that holds on some groups, and the best strength of Lemma 4."""
    best: float | None = None
    if model.rank == 1:
        return Proof("one class", (), "every variable is in a table"), None
    for groups in _candidate_groups(tables, (3, 4)) if tables.largest_order >= 3 else ():
        if not _is_solvable(tables, model, chain.from_iterable(groups)):
            continue
        sides = _stack_groups(tables, model, groups)
        shown = groups if len(groups) == 3 else _merge_largest(tables, groups)
        ranks = [column_rank(side) for side in sides]
        if sum(ranks) >= 2 * model.rank + 2:  # otherwise Kruskal ranks are too small, too
            own = [kruskal_rank(side) for side in sides]
            if sum(own) >= 2 * model.rank + 2:
                numbers = f"Kruskal ranks {' + '.join(map(str, own))} >= {2 * model.rank + 2}"
                return Proof("Lemma 1 (Kruskal)", tables.group_names(shown), numbers), best
        for a, b, third in ((1, 2, 0), (0, 2, 1), (0, 1, 2)):
            if ranks[third] < model.rank:
                continue
            strength = compound_strength(sides[a], sides[b])
            best = strength if best is None else max(best, strength or 0.0)
            if strength:
                names = tables.group_names(shown[k] for k in (a, b, third))
                numbers = f"the last has full column rank, compound condition {strength:.1e}"
                return Proof("Lemma 4 (compound)", names, numbers), best
    return _prove_by_pairs(tables, model), best


def _candidate_groups(tables: TableLayout, sizes: Sequence[int]) -> Iterator[Groups]:
    """Groups between which all tables are there, the most promising first."""
    if tables.order is None:
        groupings = find_groupings(tables, sizes)
        groupings.sort(key=lambda groups: -tables.side(chain(*groups)))
        yield from groupings[:MOST_GROUPINGS]
        return
    count, size = sizes[0], len(tables.domain)
    tried = dict.fromkeys([split_evenly(tables.free, count)])
    if count == 3 <= size:
        splits = sorted(
            islice(partitions_into_three(tables), MOST_PARTITIONS), key=partial(_reach, tables)
        )
        tried |= dict.fromkeys(splits[-MOST_GROUPINGS // 4 :][::-1])
    rng = np.random.default_rng(0)
    for labels in rng.integers(0, count, (RANDOM_GROUPINGS, size)):
        tried[tuple(tuple(np.flatnonzero(labels == k).tolist()) for k in range(count))] = None
    yield from (groups for groups in tried if all(groups))


def _reach(tables: TableLayout, groups: Groups) -> int:
    """The largest rank that Lemma 1 or 4 can prove with these groups."""
    sides = tables.sides(groups)
    return max(kruskal(*sides), compound(*sides))


def _merge_largest(tables: TableLayout, groups: Groups) -> Groups:
    """Four groups as three: the two largest together."""
    a, b, c, d = sorted(groups, key=lambda group: sum(tables.levels[n] for n in group))
    return a, b, (*c, *d)


def _stack_groups(tables: TableLayout, model: Model, groups: Groups) -> list[FloatArray]:
    """Stacked factors of three groups; the third several at a time, or a product of two groups."""
    parts = model.parts
    if len(groups) == 4:
        a, b, c, d = sorted(groups, key=lambda group: sum(tables.levels[n] for n in group))
        taken: list[tuple[int, ...]] = [(m, n) for m in c for n in d]
    else:
        a, b, c = groups
        size = max(1, min((tables.order or 3) - 2, len(c)))
        taken = list(combinations(c, size))
    sides = [np.vstack([parts[n] for n in group]) for group in (a, b)]
    return [*sides, np.vstack([_product(model, some) for some in taken])]


def _product(model: Model, variables: Sequence[int]) -> FloatArray:
    """Khatri-Rao product of the factors of some variables, (cells, F)."""
    return khatri_rao([model.parts[n] for n in variables], np.ones(model.rank))


def _is_solvable(tables: TableLayout, model: Model, start: Iterable[int]) -> bool:
    """Whether the factors of all other variables follow from those of some, table by table."""
    solved = set(start)
    waiting = set(range(len(tables.domain))) - solved
    while waiting:
        new = {m for m in waiting if _is_determined(tables, model, m, solved)}
        if not new:
            return False
        solved, waiting = solved | new, waiting - new
    return True


def _is_determined(tables: TableLayout, model: Model, m: int, solved: set[int]) -> bool:
    """Whether the rows over solved variables beside ``m`` have full column rank."""
    holders = [s for s in tables.iter_subsets() if m in s]
    beside = {tuple(n for n in s if n != m and n in solved) for s in holders}
    parts = []
    for part in sorted(filter(None, beside)):
        rows = np.cumprod([float(tables.levels[n]) for n in part])
        parts.append(_product(model, part[: max(1, int((rows <= MOST_TABLE_ROWS).sum()))]))
    return bool(parts) and column_rank(np.vstack(parts)) == model.rank


def _prove_by_pairs(tables: TableLayout, model: Model) -> Proof | None:
    """Separability or scattering of two groups, or of all variables if the groups are tied."""
    if tables.largest_order < 2 or len(tables.domain) < 2:
        return None
    is_pair = pairs_together(tables)
    for groups in _candidate_groups(tables, (2,)):
        sides = [np.vstack([model.parts[n] for n in group]) for group in groups]
        if min(map(column_rank, sides)) < model.rank:
            continue
        if not _is_solvable(tables, model, chain.from_iterable(groups)):
            continue
        if reason := cone_reason(*sides):
            return Proof(reason, tables.group_names(groups), ANCHORED)
        if any(_is_tied(model, group, is_pair) for group in groups):
            rotated = _spread_rotation(model, {*chain.from_iterable(groups)}, is_pair)
            stacked = np.vstack([model.parts[n] for n in sorted(rotated)])
            if reason := cone_reason(stacked, stacked):
                return Proof(reason, tables.group_names(groups), ANCHORED)
    return None


def _spread_rotation(model: Model, group: set[int], is_pair: BoolArray) -> set[int]:
    """Variables that any other model rotates by the same matrix as a group, through pairs."""
    for m in range(len(model.parts)):
        beside = [model.parts[n] for n in group if n != m and is_pair[m, n]]
        if m not in group and beside and column_rank(np.vstack(beside)) == model.rank:
            group = group | {m}
    return group


def pairs_together(tables: TableLayout) -> BoolArray:
    """Whether a table holds both variables, (N, N)."""
    size = len(tables.domain)
    together = np.zeros((size, size), dtype=bool)
    for subset in [range(size)] if (tables.order or 0) > 1 else tables.iter_subsets():
        together[np.ix_(subset, subset)] = True
    return together


def _is_tied(model: Model, group: Sequence[int], is_pair: BoolArray) -> bool:
    """Whether ``A_j E A_k^T = 0`` for all pairs of a group leaves no symmetric ``E``."""
    rows, columns = np.triu_indices(model.rank)
    equations = []
    for j, k in combinations(group, 2):
        if is_pair[j, k]:
            a, b = model.parts[j], model.parts[k]
            both = a[:, None, rows] * b[None, :, columns] + a[:, None, columns] * b[None, :, rows]
            equations.append(both.reshape(-1, len(rows)))
    return bool(equations) and column_rank(np.vstack(equations)) == len(rows)


def cone_reason(first: FloatArray, second: FloatArray) -> str:
    """Why the cones of two stacked factors admit no other classes; empty if that is open."""
    rank = first.shape[1]
    alone = [_has_own_levels(stacked) for stacked in (first, second)]
    if all(alone):
        return "Separability"
    pairs = zip(alone, (first, second), strict=True)
    edges = [np.eye(rank) if own else _edges(stacked) for own, stacked in pairs]
    if not all(len(part) for part in edges) or len(edges[0]) * len(edges[1]) > MOST_EDGE_PAIRS:
        return ""
    f, g = np.nonzero(~np.eye(rank, dtype=bool))
    values = edges[0][:, None, f] * edges[1][None, :, g]
    same = (edges[0][:, None] * edges[1][None]).max(axis=2) > 1.0 - DEPENDENT
    values = values[~same]
    # The largest t with p^T M q >= t for all edges but pairs of one coordinate, |M| <= 1.
    rows = np.column_stack([-values, np.ones(len(values))])
    bounds = [(-1.0, 1.0)] * len(f) + [(0.0, 1.0)]
    cost = np.append(np.zeros(len(f)), -1.0)
    best = linprog(cost, rows, np.zeros(len(rows)), bounds=bounds, method="highs")
    return "Sufficient scattering" if best.status == 0 and -best.fun > LEAST_MARGIN else ""


def _has_own_levels(stacked: FloatArray) -> bool:
    """Whether every class has a level that no other class has."""
    zero = stacked <= ZERO
    alone = ~zero & (zero.sum(axis=1, keepdims=True) == stacked.shape[1] - 1)
    return bool(alone.any(axis=0).all())


def _edges(stacked: FloatArray) -> FloatArray:
    """Edges (K, F) of the cone ``A x >= 0``, of length one; none if they are not computed."""
    rank, zero = stacked.shape[1], stacked <= ZERO
    if not 3 <= rank <= MOST_EDGE_CLASSES or (zero.sum(axis=0) < rank - 1).any():
        return np.zeros((0, rank))
    rows = np.where(zero, 0.0, stacked)
    rows = rows[rows.any(axis=1)] / np.linalg.norm(rows[rows.any(axis=1)], axis=1, keepdims=True)
    total = rows.sum(axis=0)
    inside = 1.0 / (rank * total)  # total @ x = 1
    plane = null_space(total[None])
    halves = np.column_stack([-rows @ plane, -rows @ inside])
    try:
        cut = HalfspaceIntersection(halves, np.zeros(rank - 1)).intersections
    except QhullError:
        return np.zeros((0, rank))
    edges = inside + cut @ plane.T
    edges /= np.linalg.norm(edges, axis=1, keepdims=True)
    return np.unique(edges.round(12), axis=0)


def unit_columns(matrix: FloatArray) -> FloatArray:
    """Columns scaled to length one; zero columns stay."""
    lengths = np.linalg.norm(matrix, axis=0)
    return matrix / np.where(lengths > 0, lengths, 1.0)


def column_rank(matrix: FloatArray) -> int:
    """Rank, columns scaled to length one."""
    values = np.linalg.svd(unit_columns(matrix), compute_uv=False)
    return int((values > DEPENDENT).sum())


def kruskal_rank(matrix: FloatArray) -> int:
    """Largest ``k`` such that any ``k`` columns are independent; a lower bound for many columns."""
    # As long, and with no more rows than columns.
    columns = np.asarray(np.linalg.qr(unit_columns(matrix), mode="r"))
    size, rank, tested = columns.shape[1], column_rank(matrix), 0
    for k in range(1, rank + 1 if rank < size else 0):
        tested += comb(size, k)
        if tested > MOST_COLUMN_SETS:
            return k - 1
        sets = np.array(list(combinations(range(size), k)))
        values = np.linalg.svd(columns[:, sets].transpose(1, 0, 2), compute_uv=False)
        if (values[:, -1] <= DEPENDENT).any():
            return k - 1
    return rank


def compound_strength(first: FloatArray, second: FloatArray) -> float | None:
    """Smallest singular value, over the largest, of ``M_2(A_1) . M_2(A_2)`` of Lemma 4.

    The columns of the compound matrices are scaled to length one. By Cauchy and Binet their inner
    products are minors of the Gram matrices of ``A_1`` and ``A_2``, so that no compound matrix
    is formed. None beyond 60 classes; 0 if it is numerically zero.
    """
    size = first.shape[1]
    if comb(size, 2) > MOST_CLASS_PAIRS:
        return None
    product = _minors(first) * _minors(second)
    if (np.diagonal(product) <= RESOLVED_SHARE**2).any():
        return 0.0
    values = np.linalg.eigvalsh(scale_columns(product)[0])
    ratio = float(np.sqrt(max(values[0], 0.0) / values[-1]))
    return ratio if ratio >= RESOLVED_SHARE else 0.0


def _minors(matrix: FloatArray) -> FloatArray:
    """Inner products of the columns of the second compound matrix, (C(F, 2), C(F, 2))."""
    columns = unit_columns(matrix)
    inner = columns.T @ columns
    f, g = np.triu_indices(matrix.shape[1], 1)
    minors: FloatArray = inner[np.ix_(f, f)] * inner[np.ix_(g, g)]
    minors -= inner[np.ix_(f, g)] * inner[np.ix_(g, f)]
    return minors
