"""From Marginals to the least-squares problem.

The unknowns are ``w`` (F,) and ``A`` (L, F), the factors of all variables one below the
other, ``L = sum I_n``. Everything a solver needs is a sum over tables ``S`` of the paper's
objective ``1/2 sum_S omega_S || X_S - [w; A_n, n in S] ||^2`` (omega = 1 in the paper):

* ``V_n = sum_S omega_S X_S x_{m != n} A_m``, a sum of MTTKRPs, here one stacked matrix product
  (see ``unfolding``);
* ``G_n = sum_S omega_S prod_{m != n} A_m^T A_m`` (see ``grams``);
* the residuals, computed directly: ``|X|^2/2 - v w + w G w/2`` loses all digits near 1e-8.

A moment is ``<u_a o u_b o ..., Xhat> = b`` with unit vectors ``u``. In an alternating update it
is majorised: with ``gap = b - <u, Xhat>`` at the present model, ``1/2 gap^2`` is at most
``1/2 || Xhat_now + gap u - Xhat ||^2``, with equality now. That is the term of an ordinary table,
whose MTTKRPs are known in closed form, so no table is ever formed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb

import numpy as np
from numpy.typing import NDArray

from rejoint import kernels
from rejoint.factorization import grams
from rejoint.factorization.grams import Family
from rejoint.factorization.unfolding import Columns, Slabs, Unfolding
from rejoint.marginals.marginals import Marginals
from rejoint.messages import Argument, Message, remark

Array = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Moments:
    """Known expectations ``<u_1 o .. o u_d, X> = b`` of one order, with unit vectors ``u``."""

    family: Family
    vectors: Array  # (K, d, L), on the stacked levels
    value: Array  # (K,)

    def projections(self, factors: Array) -> Array:
        """``u^T A`` of every vector, (K, d, F)."""
        sides: Array = self.vectors @ factors
        return sides

    def gaps(self, weights: Array, factors: Array) -> Array:
        """``b - <u, Xhat>``, (K,)."""
        model: Array = np.prod(self.projections(factors), axis=1) @ weights
        return self.value - model


@dataclass(frozen=True)
class Problem:
    """Tables as shares, with weights, ready for the solvers."""

    levels: tuple[int, ...]
    subsets: tuple[tuple[int, ...], ...]
    tables: tuple[Array, ...]
    weight: Array
    moments: tuple[Moments, ...] = ()

    @cached_property
    def offsets(self) -> Rows:
        """First stacked row of each variable, and L at the end."""
        return np.concatenate([[0], np.cumsum(self.levels)]).astype(np.intp)

    def rows(self, n: int) -> slice:
        """Rows of variable ``n`` in the stacked factors."""
        return slice(int(self.offsets[n]), int(self.offsets[n + 1]))

    @cached_property
    def families(self) -> tuple[Family, ...]:
        """The tables grouped by order."""
        orders = sorted({len(s) for s in self.subsets})
        return tuple(self._family(d) for d in orders)

    def _family(self, order: int) -> Family:
        picked = [i for i, s in enumerate(self.subsets) if len(s) == order]
        members = np.array([self.subsets[i] for i in picked], dtype=np.intp)
        weight = self.weight[picked]
        # Each subset comes once, so their number tells whether all are there.
        every = len(members) == comb(len(self.levels), order)
        return Family(members, weight, complete=every and bool(np.all(weight == weight[0])))

    @cached_property
    def scale(self) -> float:
        """``sum_S omega_S ||X_S||^2``, the size against which errors are measured."""
        total = sum(w * float(np.vdot(t, t)) for w, t in zip(self.weight, self.tables, strict=True))
        total += sum(float(m.family.weight @ m.value**2) for m in self.moments)
        return total or 1.0

    @cached_property
    def tables_with(self) -> tuple[tuple[int, ...], ...]:
        """For each variable, which tables contain it."""
        found: list[list[int]] = [[] for _ in self.levels]
        for i, subset in enumerate(self.subsets):
            for n in subset:
                found[n].append(i)
        return tuple(map(tuple, found))

    @cached_property
    def packed(self) -> Array | None:
        """All triples as one array, where there is nothing else."""
        whole = len(self.families) == 1 and self.families[0].complete and not self.moments
        if not (whole and self.families[0].order == 3):
            return None
        order = sorted(range(len(self.subsets)), key=self.subsets.__getitem__)
        return kernels.pack_triples([self.tables[i] for i in order], self.levels)

    @cached_property
    def unfoldings(self) -> tuple[tuple[Unfolding, ...], ...]:
        """For each variable the tables that contain it, unfolded and set side by side."""
        return tuple(unfold(self, n) for n in range(len(self.levels)))


def cell_rows(problem: Problem, subset: Sequence[int]) -> Rows:
    """Stacked rows (d, cells) of the cells of a table over ``subset``, in C order."""
    shape = [problem.levels[n] for n in subset]
    grid = np.indices(shape, dtype=np.intp).reshape(len(subset), int(np.prod(shape)))
    return grid + problem.offsets[list(subset)][:, None]


def unfold(problem: Problem, n: int) -> tuple[Unfolding, ...]:
    """Lay out the tables that contain ``n``, order by order."""
    parts: list[Unfolding] = []
    for family in problem.families:
        mine = [i for i in problem.tables_with[n] if len(problem.subsets[i]) == family.order]
        if family.order == 3 and family.complete and is_dense(problem):
            parts.append(as_slabs(problem, n, mine, float(family.weight[0])))
        elif mine:
            parts.append(as_columns(problem, n, mine))
    return tuple(parts)


def is_dense(problem: Problem) -> bool:
    """Whether all triples pay as slabs: enough variables, and at most a gigabyte in all."""
    return len(problem.levels) >= 8 and 8 * int(problem.offsets[-1]) ** 3 <= 2**30


def as_columns(problem: Problem, n: int, tables: list[int]) -> Columns:
    """Unfold tables along ``n`` and set them side by side, owned ones first."""
    tables = sorted(tables, key=lambda i: problem.subsets[i][0] != n)
    sides, rows, first = [], [], 0
    for i in tables:
        subset = problem.subsets[i]
        table = np.moveaxis(problem.tables[i], subset.index(n), 0)
        sides.append(table.reshape(problem.levels[n], -1))
        rows.append(cell_rows(problem, [m for m in subset if m != n]))
        first += sides[-1].shape[1] if subset[0] == n else 0
    return Columns(
        np.ascontiguousarray(np.concatenate(sides, axis=1)),
        np.ascontiguousarray(np.concatenate(rows, axis=1)),
        np.repeat(problem.weight[tables], [side.shape[1] for side in sides]),
        first,
    )


def as_slabs(problem: Problem, n: int, tables: list[int], weight: float) -> Slabs:
    """Set triples with ``n`` into one tensor over all pairs of the other variables."""
    size = int(problem.offsets[-1])
    tensor, mask = np.zeros((problem.levels[n], size, size)), np.zeros((size, size))
    for i in tables:
        subset = problem.subsets[i]
        rows, columns = (problem.rows(m) for m in subset if m != n)
        tensor[:, rows, columns] = np.moveaxis(problem.tables[i], subset.index(n), 0)
        mask[rows, columns] = 1.0
    return Slabs(tensor, mask, weight, int(problem.offsets[n + 1]))


def mttkrp(problem: Problem, factors: Array, n: int, *, owned: bool = False) -> Array:
    """``V_n`` without the weights ``w``: (I_n, F). ``owned``: only tables that start with ``n``."""
    total = np.zeros((problem.levels[n], factors.shape[1]))
    for part in problem.unfoldings[n]:
        total += part.contract(factors, owned)
    return total


def residual_mttkrp(
    problem: Problem, weights: Array, factors: Array, n: int, *, owned: bool = False
) -> tuple[float, Array]:
    """The same sum for the residuals ``X - Xhat``, and half their weighted sum of squares.

    Near a perfect fit ``V - G A`` is the difference of two large numbers; this is not.
    """
    half, total = 0.0, np.zeros((problem.levels[n], factors.shape[1]))
    scaled = factors[problem.rows(n)] * weights
    for part in problem.unfoldings[n]:
        square, pulled = part.residual(scaled, factors, owned)
        half, total = half + square, total + pulled
    return half, total


def objective(problem: Problem, weights: Array, factors: Array) -> float:
    """Half the weighted sum of squared residuals, computed from the residuals themselves."""
    total = 0.0
    for n in range(len(problem.levels)):
        total += residual_mttkrp(problem, weights, factors, n, owned=True)[0]
    for moments in problem.moments:
        gap = moments.gaps(weights, factors)
        total += 0.5 * float(moments.family.weight @ gap**2)
    return total


def gram_stack(problem: Problem, factors: Array) -> Array:
    """``A_n^T A_n`` for every variable, (N, F, F)."""
    parts = (factors[problem.rows(n)] for n in range(len(problem.levels)))
    return np.stack([a.T @ a for a in parts])


def factor_pull(
    problem: Problem, products: Array, weights: Array, factors: Array, n: int
) -> tuple[Array, Array]:
    """What the moments add to ``G_n`` and ``V_n`` (both without the weights) of factor ``n``."""
    rows = problem.rows(n)
    gram = np.zeros_like(products[n])
    pulled = np.zeros_like(factors[rows])
    for moments in problem.moments:
        gram += grams.without([moments.family], products, n)
        sides = moments.projections(factors)
        push = moments.family.weight * moments.gaps(weights, factors)
        for slot in range(moments.family.order):
            mine = np.flatnonzero(moments.family.members[:, slot] == n)
            others = np.prod(np.delete(sides[mine], slot, axis=1), axis=1)
            pulled += moments.vectors[mine, slot, rows].T @ (push[mine, None] * others)
    return gram, pulled + (factors[rows] * weights) @ gram


def weights_pull(
    problem: Problem, products: Array, weights: Array, factors: Array
) -> tuple[Array, Array]:
    """What the moments add to ``G`` and ``V`` of the weights."""
    gram = np.zeros(products.shape[1:])
    pulled = np.zeros_like(weights)
    for moments in problem.moments:
        gram += grams.whole([moments.family], products)
        push = moments.family.weight * moments.gaps(weights, factors)
        pulled += push @ np.prod(moments.projections(factors), axis=1)
    return gram, pulled + gram @ weights


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
            Message(
                "Table {table} is empty ({number} such): no record holds all of its variables at "
                "once. Leave it out with {subsets}, or count tables of fewer variables.",
                table=empty[0],
                number=len(empty),
                subsets=Argument("subsets"),
            )
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
