"""The problem that solvers of tables work on, made from Marginals.

The unknowns are ``w`` (F,) and ``A`` (L, F), the factors of all variables one below the
other, ``L = sum I_n``. Everything a solver needs is a sum over tables ``S`` of the paper's
objective ``1/2 sum_S omega_S || X_S - [w; A_n, n in S] ||^2`` (omega = 1 in the paper):

* ``V_n = sum_S omega_S X_S x_{m != n} A_m``, a sum of MTTKRPs, here one stacked matrix product
  (see ``unfolding``);
* ``G_n = sum_S omega_S prod_{m != n} A_m^T A_m`` (see ``gram_sums``);
* the residuals, computed directly: ``|X|^2/2 - v w + w G w/2`` loses all digits near 1e-8.

A moment is ``<u_a o u_b o ..., Xhat> = b`` with unit vectors ``u``. In an alternating update it
is majorized: with ``gap = b - <u, Xhat>`` at the present model, ``1/2 gap^2`` is at most
``1/2 || Xhat_now + gap u - Xhat ||^2``, with equality now. That is the term of an ordinary table,
whose MTTKRPs are known in closed form, so no table is ever formed.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from math import comb

import numpy as np

from rejoint import kernels
from rejoint.arrays import FloatArray, sum_to
from rejoint.factorization.loss import SQUARES, Loss
from rejoint.factorization.table_policy import POLICY
from rejoint.factorization.unfolding import FlatTables, khatri_rao, pad
from rejoint.identifiability import gram_sums
from rejoint.identifiability.gram_sums import Family, gram_stack
from rejoint.kernels import damped_inverse
from rejoint.marginals.marginals import Marginals
from rejoint.messages import remark
from rejoint.model import Layout, Model
from rejoint.solver.checkpoint import digest
from rejoint.text import cite, plural, show


@dataclass(frozen=True)
class Moments:
    """Known expectations ``<u_1 o .. o u_d, X> = b`` of one order, with unit vectors ``u``."""

    family: Family
    vectors: FloatArray  # (K, d, L), on the stacked levels
    value: FloatArray  # (K,)

    def projections(self, factors: FloatArray) -> FloatArray:
        """``u^T A`` of every vector, (K, d, F)."""
        sides: FloatArray = self.vectors @ factors
        return sides

    def gaps(self, weights: FloatArray, factors: FloatArray) -> FloatArray:
        """``b - <u, Xhat>``, (K,)."""
        model: FloatArray = np.prod(self.projections(factors), axis=1) @ weights
        return self.value - model

    def slopes(self, weights: FloatArray, factors: FloatArray) -> FloatArray:
        """Derivatives of ``<u, Xhat>`` in weights and factors, (K, 1 + L, F)."""
        sides = self.projections(factors)
        slopes = np.zeros((len(sides), 1 + len(factors), len(weights)))
        slopes[:, 0] = np.prod(sides, axis=1)
        for slot in range(self.family.order):
            others = np.prod(np.delete(sides, slot, axis=1), axis=1) * weights
            slopes[:, 1:] += self.vectors[:, slot, :, None] * others[:, None, :]
        return slopes


@dataclass(frozen=True)
class TableProblem:
    """Tables as shares, with weights and a loss, ready for the solvers.

    Parameters
    ----------
    levels : tuple of int
        Number of levels of each variable.
    subsets : tuple of tuple of int
        Variables of each table.
    tables : tuple of array
        Shares of each table.
    weight : array
        Weight of each table, ``omega``.
    moments : tuple of Moments
        Known expectations; they enter as squared errors whatever the loss.
    loss : Loss
        How far a table is from the model's.
    noise : float
        Squared error that the true model is expected to have by chance, as tables are counts of so
        many records; 0 where no number of records is known.
    """

    levels: tuple[int, ...]
    subsets: tuple[tuple[int, ...], ...]
    tables: tuple[FloatArray, ...]
    weight: FloatArray
    moments: tuple[Moments, ...] = ()
    loss: Loss = SQUARES
    noise: float = 0.0

    @cached_property
    def layout(self) -> Layout:
        """Where the levels of each variable stand."""
        return Layout(self.levels)

    @property
    def fingerprint(self) -> str:
        """Tells these tables and their loss from others."""
        return digest(self)

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
        subsets = list(enumerate(self.subsets))
        return tuple(
            tuple(i for i, subset in subsets if n in subset) for n in range(len(self.levels))
        )

    @cached_property
    def packed(self) -> FloatArray | None:
        """All triples as one array, where there is nothing else and their kernel is compiled."""
        whole = len(self.families) == 1 and self.families[0].complete and not self.moments
        if kernels.backend == "numpy" or not (whole and self.families[0].order == 3):
            return None
        order = sorted(range(len(self.subsets)), key=self.subsets.__getitem__)
        return kernels.pack_triples([self.tables[i] for i in order], self.levels)

    @cached_property
    def cells(self) -> FlatTables:
        """Where the cells of the tables stand in a flat vector."""
        return FlatTables(self.layout, self.subsets)

    @cached_property
    def flat(self) -> FloatArray:
        """The tables, flat."""
        return np.concatenate([np.zeros(0), *(table.ravel() for table in self.tables)])

    @cached_property
    def cell_weight(self) -> FloatArray:
        """The weight of each cell."""
        return np.repeat(self.weight, np.diff(self.cells.starts))

    @cached_property
    def unfolded(self) -> tuple[FloatArray, ...]:
        """For each variable the weighted tables that contain it, side by side, (I_n, C)."""
        weighted = self.flat * self.cell_weight
        return tuple(weighted[part.places] for part in self.cells.unfoldings)

    def under(self, loss: Loss) -> "TableProblem":
        """The same tables under another loss; their layout is shared."""
        if loss is self.loss:
            return self
        _ = self.cells.unfoldings  # made once for both
        other = copy(self)
        object.__setattr__(other, "loss", loss)
        return other

    def error(self, objective: float) -> float:
        """Relative error of the tables, ``||X - Xhat|| / ||X||``, or a bound of it."""
        return self.loss.error(objective, self.scale)

    def relative_error(self, model: Model) -> float:
        """The same of a model, computed from its tables."""
        return SQUARES.error(self.under(SQUARES).value(model), self.scale)

    def value(self, model: Model) -> float:
        """What is minimized: the weighted loss, computed from the tables themselves."""
        total = self.loss.value(self.flat, self.cells.of_model(model), self.cell_weight)
        for moments in self.moments:
            gap = moments.gaps(model.weights, model.factors)
            total += 0.5 * float(moments.family.weight @ gap**2)
        return total

    def quick_value(self, model: Model) -> float:
        """The squared error from ``V`` and ``G`` where that has digits enough, else ``value``."""
        if self.packed is not None:
            value = 0.5 * self.scale + kernels.triples_value(
                self.packed, self.levels, float(self.weight[0]), model.weights, model.factors
            )
            if value > POLICY.rough_share * self.scale:
                return float(value)
        return self.value(model)

    def gradient(self, model: Model) -> tuple[float, FloatArray]:
        """Objective and its slope in weights and factors, (1 + L, F), in one pass over the tables.

        Near a perfect fit ``V - G A`` is the difference of two large numbers; this is not.
        """
        weights, factors = model.weights, model.factors
        tables = self.cells.of_model(model)
        total = self.loss.value(self.flat, tables, self.cell_weight)
        slopes = self.loss.slope(self.flat, tables) * self.cell_weight
        head, body = self.cells.contract(model, slopes)
        slope = np.vstack([head, weights * body])
        for moments in self.moments:
            gap = moments.gaps(weights, factors)
            push = moments.family.weight * gap
            total += 0.5 * float(gap @ push)
            slope -= np.tensordot(push, moments.slopes(weights, factors), 1)
        return total, slope

    def visit(self, weights: FloatArray, factors: FloatArray) -> "TableVisit":
        """Begin a sweep over all variables."""
        return TableVisit(self, weights, factors)


class TableVisit:
    """What a sweep of ``Admm`` asks of tables; ``factors`` change in place between calls."""

    def __init__(self, problem: TableProblem, weights: FloatArray, factors: FloatArray) -> None:
        self.problem, self.weights, self.factors = problem, weights, factors
        self.products = gram_stack(problem.layout, factors)

    def factor_normal(self, n: int) -> tuple[FloatArray, FloatArray]:
        """``G_n`` (F, F) and ``V_n`` (I_n, F), both without the weights."""
        problem, rows = self.problem, self.problem.layout.rows(n)
        gram = gram_sums.factor_gram(problem.families, self.products, n)
        target = mttkrp(problem, self.factors, n)
        for moments in problem.moments:
            more = gram_sums.factor_gram([moments.family], self.products, n)
            gram = gram + more
            target = target + (self.factors[rows] * self.weights) @ more
            target += self._push(moments)[1:][rows]
        return gram, target

    def note_change(self, n: int) -> None:
        """Take note that factor ``n`` has changed."""
        mine = self.factors[self.problem.layout.rows(n)]
        self.products[n] = mine.T @ mine

    def weights_normal(self) -> tuple[FloatArray, FloatArray]:
        """``G`` (F, F) and ``v`` (F,) of the weights."""
        problem = self.problem
        gram = gram_sums.weights_gram(problem.families, self.products)
        target = np.zeros_like(self.weights)
        for n in range(len(problem.levels)):
            mine = mttkrp(problem, self.factors, n, owned=True)
            target += np.sum(mine * self.factors[problem.layout.rows(n)], axis=0)
        for moments in problem.moments:
            more = gram_sums.weights_gram([moments.family], self.products)
            gram = gram + more
            target += self._push(moments)[0] + more @ self.weights
        return gram, target

    def _push(self, moments: Moments) -> FloatArray:
        """What the gaps of moments ask of weights and factors, (1 + L, F), without the weights."""
        gaps = moments.family.weight * moments.gaps(self.weights, self.factors)
        slopes = moments.slopes(np.ones_like(self.weights), self.factors)
        return np.asarray(np.tensordot(gaps, slopes, 1))


def mttkrp(
    problem: TableProblem, factors: FloatArray, n: int, *, owned: bool = False
) -> FloatArray:
    """``V_n`` without the weights ``w``: (I_n, F). ``owned``: only tables that start with ``n``."""
    part, padded = problem.cells.unfoldings[n], pad(factors)
    columns = slice(part.owned if owned else None)
    return problem.unfolded[n][:, columns] @ khatri_rao(padded, part.rows[:, columns])


def weights_update(
    gram: FloatArray, target: FloatArray, weights: FloatArray, dual: FloatArray, steps: int
) -> tuple[FloatArray, FloatArray]:
    """Minimize ``w G w/2 - v w`` over the simplex, which here runs along F."""
    inverse, rho = damped_inverse(gram)
    rows = (target[None], weights[None], dual[None])
    moved, dual = kernels.admm_steps(inverse, *rows, rho, steps, along_rows=True)
    return moved[0], dual[0]


def make_problem(marginals: Marginals, weighting: str, loss: Loss = SQUARES) -> TableProblem:
    """Shares, weights and moments as arrays; refuses what cannot be factored."""
    check_totals(marginals)
    subsets = marginals.index_subsets
    weight = np.array(marginals.table_weight, dtype=np.float64)
    if weighting == "count":
        weight = weight * count_weight(marginals)
    elif weighting != "equal":
        raise ValueError(
            f"weighting={cite(weighting)} is not supported; use 'equal' (each table counts the "
            "same, as in the paper) or 'count' (by its number of records)."
        )
    used = np.flatnonzero(weight > 0)
    check_reached(marginals, [subsets[i] for i in used])
    problem = TableProblem(
        tuple(marginals.domain.shape),
        tuple(subsets[i] for i in used),
        tuple(np.ascontiguousarray(marginals.shares(int(i))) for i in used),
        weight[used],
        read_moments(marginals),
        loss,
        expected_noise(marginals, weight),
    )
    loss.check(problem)
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
            f"No table of weight above zero contains {show(absent)}; give a table "
            "that does, or leave the variable out of the domain."
        )


def check_totals(marginals: Marginals) -> None:
    """Raise an error for tables without records."""
    empty = [marginals.subsets[i] for i in np.flatnonzero(np.asarray(marginals.totals) <= 0)]
    if empty:
        raise ValueError(
            f"Table {empty[0]} is empty ({len(empty)} such): no record holds all of its variables "
            "at once. Leave it out with subsets=, or count tables of fewer variables."
        )


def count_weight(marginals: Marginals) -> FloatArray:
    """Weights in proportion to the records behind each table, one on average.

    A table given as shares does not say how many there are: it counts as an average one.
    """
    totals = np.asarray(marginals.totals, dtype=np.float64)
    counted = np.asarray(marginals.counted, dtype=bool)
    if not counted.any():
        return np.ones_like(totals)
    return np.where(counted, totals / totals[counted].mean(), 1.0)


def expected_noise(marginals: Marginals, weight: FloatArray) -> float:
    """Squared error of tables that are samples of their numbers of records, with weights.

    A sample of ``n`` records from shares ``p`` is ``(1 - |p|^2) / n`` away from them on average.
    Tables whose number of records is not known count as exact.
    """
    return 0.5 * sum(
        float(weight[i] * (1.0 - np.sum(marginals.shares(int(i)) ** 2)) / marginals.totals[i])
        for i in np.flatnonzero((weight > 0) & marginals.counted)
    )


def read_moments(marginals: Marginals) -> tuple[Moments, ...]:
    """The moments by order, on the stacked levels, each scaled to unit vectors."""
    layout = Layout(tuple(marginals.domain.shape))
    families: dict[int, list[tuple[tuple[int, ...], FloatArray, float]]] = {}
    for moment in marginals.moments:
        order = len(moment.variables)
        vectors, size = np.zeros((order, layout.size)), 1.0
        for slot, (n, vector) in enumerate(zip(moment.variables, moment.vectors, strict=True)):
            length = float(np.linalg.norm(vector))
            size *= length
            vectors[slot, layout.rows(n)] = vector / (length or 1.0)
        if size > 0:  # a vector of zeros says nothing
            entry = (moment.variables, vectors, moment.value / size)
            families.setdefault(order, []).append(entry)
    moments = []
    for _, entries in sorted(families.items()):
        members, stacked, values = zip(*entries, strict=True)
        family = Family(np.array(members, np.intp), np.ones(len(entries)))
        moments.append(Moments(family, np.stack(stacked), np.array(values)))
    return tuple(moments)


def remark_on_islands(marginals: Marginals) -> None:
    """Remark on groups of variables that share no table: nothing links them."""
    names = marginals.domain.names
    groups = [{n} for n in range(len(names))]
    for subset in [*marginals.index_subsets, *(m.variables for m in marginals.moments)]:
        linked = [group for group in groups if group & set(subset)]
        groups = [group for group in groups if group not in linked] + [set().union(*linked)]
    if len(groups) > 1:
        listed = [[names[n] for n in sorted(group)] for group in sorted(groups, key=min)]
        parts = "; ".join(", ".join(g[:4] + ["..."] * (len(g) > 4)) for g in listed)
        remark(
            f"The tables fall into {plural(len(groups), 'group')} of variables with no table in "
            f"common ({parts}): they cannot say how variables of different groups depend on each "
            "other."
        )


def own_shares(problem: TableProblem) -> list[FloatArray]:
    """One-variable shares, each from the first table that holds the variable; else uniform."""
    shares = [np.full(size, 1.0 / size) for size in problem.levels]
    for subset, table in zip(reversed(problem.subsets), reversed(problem.tables), strict=True):
        for n in subset:
            shares[n] = sum_to(table, subset, (n,))
    return shares


def random_model(problem: TableProblem, rank: int, rng: np.random.Generator) -> Model:
    """Even weights, and factor columns drawn around each variable's own shares.

    They are no more concentrated on few levels than uniform columns: rare levels would be nearly 0
    or 1. Classes from triples of mushrooms, 6 splits: 2.2 % wrong in place of 3.0 % (uniform: 2.6).
    """
    shares = [np.maximum(share, 1.0 / len(share)) for share in own_shares(problem)]
    return Model.draw(shares, rank, rng)


def mix_with_independence(problem: TableProblem, model: Model, share: float = 0.3) -> Model:
    """Mix a model with independence, to start a solver away from the walls of the simplex.

    A projected algebraic solution has many zeros that are noise; started there, solvers end in
    poor local minima.
    """
    own = np.concatenate(own_shares(problem))
    mixed = (1.0 - share) * model.factors + share * own[:, None]
    return Model(model.layout, (1.0 - share) * model.weights + share / model.rank, mixed)
