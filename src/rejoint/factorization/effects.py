"""Log-linear effects of published tables: their values, and how a sample makes them vary.

Each variable has ``I_n - 1`` orthonormal contrasts ``h``. An effect of the variables ``T`` is the
expectation of a product of their contrasts, ``z_T = E[prod_n h_n(x_n)]``. Tables of the subsets
``S`` publish the effects of all ``T`` inside them, each once: ``E`` numbers that are independent of
each other, where the cells of the tables are not. With multipliers ``u_S ~ N(0, tau_S^2)`` of cells
the coefficients of the effects in a log-linear model are independent too, with variance
``sum_{S >= T} tau_S^2 / prod_{n in S, not T} I_n``.

The covariance of the effects of one record is read off tables of unions ``T u T'``, which a mixture
has without its joint.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property, reduce
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.factorization.table_policy import POLICY
from rejoint.model import FloatArray, Model
from rejoint.queries.tables import Tabulate

Subset = tuple[int, ...]


def make_contrasts(size: int) -> FloatArray:
    """Return orthonormal columns that are orthogonal to a constant, (I, I - 1).

    Examples
    --------
    >>> make_contrasts(2).ravel().round(3)
    array([-0.707,  0.707])
    """
    step = np.tri(size, size - 1, -1) - np.tri(size, size - 1, -1).mean(axis=0)
    basis, triangle = np.linalg.qr(step)
    return np.asarray(basis * np.sign(np.diag(triangle)))


class Effects:
    """The effects that tables of some subsets publish.

    Parameters
    ----------
    levels : sequence of int
        Number of levels of each variable.
    subsets : sequence of tuples of int
        The variables of each table.

    Examples
    --------
    >>> effects = Effects((2, 3), [(0, 1)])
    >>> effects.sets, effects.size
    (((0,), (1,), (0, 1)), 5)
    """

    def __init__(self, levels: Sequence[int], subsets: Iterable[Subset]) -> None:
        self.levels = tuple(levels)
        # A variable of one level has no contrast, and so no effect.
        varying = ([n for n in sorted(subset) if self.levels[n] > 1] for subset in subsets)
        found = {
            part
            for subset in varying
            for order in range(1, len(subset) + 1)
            for part in combinations(subset, order)
        }
        self.sets: tuple[Subset, ...] = tuple(sorted(found, key=lambda s: (len(s), s)))
        self.contrasts = [make_contrasts(size) for size in self.levels]
        self.sizes = np.array([prod(self.levels[n] - 1 for n in s) for s in self.sets], np.intp)
        self.starts = np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.intp)
        self.positions = {subset: k for k, subset in enumerate(self.sets)}

    @property
    def size(self) -> int:
        """Number of effects, ``E``."""
        return int(self.starts[-1])

    @cached_property
    def set_of(self) -> NDArray[np.intp]:
        """Position of the set of variables of each effect, (E,)."""
        return np.repeat(np.arange(len(self.sets)), self.sizes)

    @cached_property
    def orders(self) -> NDArray[np.intp]:
        """Number of variables of each set."""
        return np.array([len(s) for s in self.sets], np.intp)

    @property
    def is_countable(self) -> bool:
        """Whether the tables of unions are few enough to read covariances from."""
        largest = max((len(s) for s in self.sets), default=0)
        size = prod(sorted(self.levels)[-2 * largest :])
        return size * len(self.sets) ** 2 <= 100 * POLICY.most_union_cells

    def rows(self, k: int) -> slice:
        """Where the effects of a set stand."""
        return slice(int(self.starts[k]), int(self.starts[k + 1]))

    def contract(self, subset: Subset, table: FloatArray) -> FloatArray:
        """The effects of exactly these variables in their table, flat."""
        for n in subset:
            # The axis goes to the end; after all of them the order is as before.
            table = np.tensordot(table, self.contrasts[n], (0, 0))
        return table.ravel()

    def values(self, tabulate: Tabulate) -> FloatArray:
        """All effects of a distribution, (E,).

        Examples
        --------
        >>> effects = Effects((2,), [(0,)])
        >>> effects.values(lambda subset: np.array([0.25, 0.75])).round(3)
        array([0.354])
        """
        shaped = ((s, tabulate(s).reshape([self.levels[n] for n in s])) for s in self.sets)
        return np.concatenate([self.contract(s, table) for s, table in shaped])

    def coefficients(self, subset: Subset, cells: FloatArray) -> dict[int, FloatArray]:
        """Coefficients of all effects inside ``subset`` of a function of its cells, by set."""
        table = cells.reshape([self.levels[n] for n in subset])
        found = {}
        for order in range(1, len(subset) + 1):
            for part in combinations(subset, order):
                gone = tuple(axis for axis, n in enumerate(subset) if n not in part)
                found[self.positions[part]] = self.contract(part, table.mean(axis=gone))
        return found

    def function(self, k: int, coefficients: FloatArray) -> FloatArray:
        """The function of the cells of a set that these coefficients of its effects make, flat."""
        subset = self.sets[k]
        table = coefficients.reshape([self.levels[n] - 1 for n in subset])
        for n in subset:
            table = np.tensordot(table, self.contrasts[n], (0, 1))
        return table.ravel()

    def table(self, k: int, values: FloatArray) -> FloatArray:
        """The table of a set, flat, from the values of all effects inside it.

        Examples
        --------
        >>> effects = Effects((2, 2), [(0, 1)])
        >>> given = {(0,): [0.3, 0.7], (1,): [0.4, 0.6], (0, 1): [0.1, 0.2, 0.3, 0.4]}
        >>> values = effects.values(lambda subset: np.array(given[subset]))
        >>> effects.table(2, values).round(3)
        array([0.1, 0.2, 0.3, 0.4])
        """
        subset = self.sets[k]
        shape = [self.levels[n] for n in subset]
        found = np.full(shape, 1.0 / prod(shape))
        for order in range(1, len(subset) + 1):
            for part in combinations(subset, order):
                at = self.positions[part]
                sides = [self.levels[n] if n in part else 1 for n in subset]
                rest = prod(self.levels[n] for n in subset if n not in part)
                found += self.function(at, values[self.rows(at)]).reshape(sides) / rest
        return found.ravel()

    @cached_property
    def plan(self) -> "UnionPlan":
        """Where the tables of unions stand from which covariances are read."""
        return UnionPlan(self)

    def covariance(self, tabulate: Tabulate) -> FloatArray:
        """Covariance of the effects of one record, (E, E).

        Examples
        --------
        >>> effects = Effects((2,), [(0,)])
        >>> effects.covariance(lambda subset: np.array([0.5, 0.5])).round(3)
        array([[0.5]])
        """
        plan = self.plan
        moments = plan.tabulate(tabulate)[plan.index]
        first = np.diag(moments).copy()
        moments -= np.multiply.outer(first, first)
        return plan.turn(np.ascontiguousarray(plan.turn(moments).T))

    def tangent(self, model: Model) -> FloatArray:
        """Derivatives of the effects of a mixture, (E, (1 + sum (I_n - 1)) F).

        First in its weights, then in the coefficients of its columns on the contrasts.

        Examples
        --------
        >>> model = Model.of([0.5, 0.5], [[[0.9, 0.2], [0.1, 0.8]]])
        >>> Effects((2,), [(0,)]).tangent(model).round(3)
        array([[-0.566,  0.424,  0.5  ,  0.5  ]])
        """
        rank = model.rank
        means = [h.T @ a for h, a in zip(self.contrasts, model.parts, strict=True)]
        starts = 1 + np.concatenate([[0], np.cumsum([len(mean) for mean in means])])
        found = np.zeros((self.size, int(starts[-1]), rank))
        for k, subset in enumerate(self.sets):
            block = found[self.rows(k)].reshape(*(len(means[n]) for n in subset), -1, rank)
            parts = [means[n] for n in subset]
            block[..., 0, :] = _outer(parts)
            for slot, n in enumerate(subset):
                others = _outer([*parts[:slot], *parts[slot + 1 :]]) * model.weights
                for level in range(len(means[n])):
                    np.moveaxis(block, slot, 0)[level, ..., int(starts[n]) + level, :] = others
        return found.reshape(self.size, -1)


def _outer(parts: Sequence[FloatArray]) -> FloatArray:
    """Product of columns class by class, (I_1, I_2, .., F)."""
    if not parts:
        return np.ones(1)
    return reduce(lambda a, b: a[..., None, :] * b, parts)


class UnionPlan:
    """Which tables of unions are needed, how they follow from each other, and where cells stand.

    Second moments are read in indicators of all levels but the last; :meth:`turn` makes contrasts
    of them. ``index`` (E, E) says where the cell ``x_T = a, x_T' = b`` stands; the first cell is
    zero, for those that exclude each other.
    """

    def __init__(self, effects: Effects) -> None:
        self.effects = effects
        sets, levels = effects.sets, effects.levels
        masks = [sum(1 << n for n in subset) for subset in sets]
        unions = sorted({a | b for a in masks for b in masks}, key=lambda mask: -mask.bit_count())
        self.unions = [
            tuple(n for n in range(mask.bit_length()) if mask >> n & 1) for mask in unions
        ]
        self.parents: list[int | None] = []
        kept: list[tuple[int, int]] = []  # the smallest tables come last
        for k, mask in enumerate(unions):
            parent = next((j for other, j in reversed(kept) if other & mask == mask), None)
            self.parents.append(parent)
            kept.append((mask, k))
        sizes = [prod(levels[n] for n in union) for union in self.unions]
        starts = dict(zip(unions, (1 + np.cumsum([0, *sizes[:-1]])).tolist(), strict=True))
        self.index = np.zeros((effects.size, effects.size), dtype=np.int32)
        codes = [np.indices([levels[n] - 1 for n in s]).reshape(len(s), -1) for s in sets]
        for i, one in enumerate(sets):
            for j in range(i, len(sets)):
                other, union = sets[j], masks[i] | masks[j]
                block = self._block(one, other, codes[i], codes[j], int(starts[union]))
                self.index[effects.rows(i), effects.rows(j)] = block
                self.index[effects.rows(j), effects.rows(i)] = block.T

    def _block(
        self, one: Subset, other: Subset, a: NDArray[Any], b: NDArray[Any], start: int
    ) -> NDArray[np.int32]:
        levels = self.effects.levels
        place, stride = np.full((a.shape[1], b.shape[1]), start, dtype=np.int32), 1
        excluded = None
        for n in sorted({*one, *other}, reverse=True):
            if n in one:
                mine = a[one.index(n)][:, None]
                place += (stride * mine).astype(np.int32)
                if n in other:
                    apart = mine != b[other.index(n)]
                    excluded = apart if excluded is None else excluded | apart
            else:
                place += (stride * b[other.index(n)]).astype(np.int32)
            stride *= levels[n]
        if excluded is not None:
            place[excluded] = 0
        return place

    @property
    def cells(self) -> int:
        """Cells of all tables of unions together."""
        return sum(prod(self.effects.levels[n] for n in union) for union in self.unions)

    def tabulate(self, tabulate: Tabulate) -> FloatArray:
        """All tables of unions one after another, after a zero."""
        levels = self.effects.levels
        made: list[FloatArray] = []
        for union, parent in zip(self.unions, self.parents, strict=True):
            shape = [levels[n] for n in union]
            if parent is None:
                made.append(tabulate(union).reshape(shape))
                continue
            gone = tuple(k for k, n in enumerate(self.unions[parent]) if n not in union)
            made.append(made[parent].sum(axis=gone) if gone else made[parent])
        return np.concatenate([np.zeros(1), *(table.ravel() for table in made)])

    def turn(self, matrix: FloatArray) -> FloatArray:
        """Rows of indicators as rows of contrasts, (E, ..) both.

        A contrast is a sum of indicators and a constant. Set by set the rows of all of its parts
        are brought together and turned along one variable after another.
        """
        padded = np.vstack([matrix, np.zeros((1, matrix.shape[1]))])
        found = np.empty_like(matrix)
        for k, (rows, sides) in enumerate(self.turns):
            block = padded[rows]
            for side in sides:
                # (I, rest) to (rest, I - 1): the next variable comes first.
                block = np.moveaxis(np.tensordot(side, block, (1, 0)), 0, -2)
            found[self.effects.rows(k)] = block.reshape(-1, matrix.shape[1])
        return found

    @cached_property
    def turns(self) -> list[tuple[NDArray[np.intp], list[FloatArray]]]:
        """For each set, the rows of its parts (I_1, I_2, ..) and what turns each variable."""
        effects, found = self.effects, []
        for subset in effects.sets:
            rows = np.full([effects.levels[n] for n in subset], effects.size, dtype=np.intp)
            for order in range(1, len(subset) + 1):
                for part in combinations(range(len(subset)), order):
                    k = effects.positions[tuple(subset[axis] for axis in part)]
                    shape = [effects.levels[subset[axis]] - 1 for axis in part]
                    place = tuple(slice(-1) if axis in part else -1 for axis in range(len(subset)))
                    rows[place] = np.arange(*effects.starts[k : k + 2]).reshape(shape)
            sides = []
            for n in subset:
                last = effects.contrasts[n][-1]
                sides.append(np.vstack([effects.contrasts[n][:-1] - last, last]).T)
            found.append((rows, sides))
        return found


def nested_taus(effects: Effects, variances: FloatArray) -> dict[Subset, float]:
    """Spreads of the multipliers of tables and their margins that make these variances, by set.

    A multiplier of a table adds to the variances of all its effects. Where a set's variance is
    below what those of larger sets make of it, it stays larger.

    Examples
    --------
    >>> effects = Effects((2, 2), [(0, 1)])
    >>> nested_taus(effects, np.array([0.75, 0.5, 1.0]))
    {(0, 1): 1.0, (0,): 0.5}
    """
    left, found = np.array(variances, dtype=np.float64), dict[Subset, float]()
    for k in range(len(effects.sets) - 1, -1, -1):
        subset = effects.sets[k]
        if left[k] <= 1e-9 * variances[k]:
            continue
        found[subset] = float(np.sqrt(left[k]))
        for order in range(1, len(subset)):
            for part in combinations(subset, order):
                rest = prod(effects.levels[n] for n in subset if n not in part)
                left[effects.positions[part]] -= left[k] / rest
    return found
