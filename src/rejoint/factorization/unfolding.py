"""The cells of tables in one flat vector, unfolded along each variable, and their derivatives.

The tables that hold a variable are unfolded along it and set side by side: one matrix product with
the Khatri-Rao product of the other variables then sums all of their MTTKRPs, and another one gives
the tables of a model. A table of ``d`` variables is in ``d`` unfoldings, and *owned* in that of its
first variable.

A relative change of weights and factors, ``w (1 + a)`` and ``A (1 + s)``, changes the tables by
``J (a, s) = sum_f w_f prod_n A_n (a_f + sum_n s_n)``. With a number ``u`` for each cell of each
table, ``u(x) = sum_S u_S(x_S)``, and expectations ``E_f`` under class ``f``, the transpose is
``a_f = E_f[u] - E[u]`` for the weights and ``s_nif = E_f[u | x_n = i] - E_f[u]`` for the factors.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rejoint.arrays import FloatArray, IntArray
from rejoint.kernels import table_sizes
from rejoint.model import Layout, Model

#: Numbers of Khatri-Rao products that are kept (400 MB), and that are formed at a time (1 MB, which
#: stays in the cache).
MOST_KEPT_NUMBERS, BLOCK_NUMBERS = 50_000_000, 2**17

#: Classes, rows of a variable, its unfolding, and the Khatri-Rao product of the other variables.
Part = tuple[slice, slice, "Unfolding", FloatArray]


def khatri_rao(factors: FloatArray, columns: IntArray) -> FloatArray:
    """Rows of the stacked Khatri-Rao product: ``prod_k A[columns[k]]``, (C, F)."""
    if len(columns) == 0:
        return np.ones((columns.shape[1], factors.shape[1]))
    product: FloatArray = factors[columns[0]]
    for column in columns[1:]:
        product *= factors[column]
    return product


def pad(factors: FloatArray) -> FloatArray:
    """Stacked factors with a row of ones, for a variable that a table does not have."""
    return np.vstack([factors, np.ones(factors.shape[1])])


@dataclass(frozen=True, eq=False)
class Unfolding:
    """Cells of the tables that hold a variable, unfolded along it and side by side.

    ``places`` (I_n, C) are positions in the flat vector, ``rows`` (d - 1, C) the stacked rows of
    the other variables; the first ``owned`` columns are those of tables that begin with it.
    """

    places: IntArray
    rows: IntArray
    owned: int


@dataclass(frozen=True, eq=False)
class FlatTables:
    """The cells of some tables, one table after another in one flat vector.

    Parameters
    ----------
    layout : Layout
        Where the levels of each variable stand.
    subsets : tuple of tuple of int
        Variables of each table.
    """

    layout: Layout
    subsets: tuple[tuple[int, ...], ...]

    @cached_property
    def starts(self) -> IntArray:
        """Where each table starts, and the end."""
        return np.concatenate([[0], np.cumsum(table_sizes(self.layout.levels, self.subsets))])

    @cached_property
    def unfoldings(self) -> tuple[Unfolding, ...]:
        """For each variable the cells of the tables that hold it."""
        return tuple(self._unfold(n) for n in range(len(self.layout.levels)))

    def _unfold(self, n: int) -> Unfolding:
        levels, depth = self.layout.levels, max(map(len, self.subsets), default=1)
        places = [np.empty((levels[n], 0), np.intp)]
        rows = [np.empty((depth - 1, 0), np.intp)]
        tables = [k for k, subset in enumerate(self.subsets) if n in subset]
        for k in sorted(tables, key=lambda k: self.subsets[k][0] != n):
            subset = self.subsets[k]
            others = [m for m in subset if m != n]
            flat = np.arange(*self.starts[k : k + 2]).reshape([levels[m] for m in subset])
            places.append(np.moveaxis(flat, subset.index(n), 0).reshape(levels[n], -1))
            part = np.full((depth - 1, places[-1].shape[1]), self.layout.size, np.intp)
            grid = np.indices([levels[m] for m in others]).reshape(len(others), part.shape[1])
            part[: len(others)] = grid + self.layout.offsets[others][:, None]
            rows.append(part)
        owned = sum(self.subsets[k][0] == n for k in tables)
        ends = sum(part.shape[1] for part in places[: 1 + owned])
        return Unfolding(np.hstack(places), np.hstack(rows), ends)

    def split(self, cells: FloatArray) -> list[FloatArray]:
        """The tables one by one, flat."""
        return np.split(cells, self.starts[1:-1])

    def products(self, model: Model, *, owned: bool = False) -> Iterator[Part]:
        """Khatri-Rao products for each variable, of some classes at a time."""
        padded = pad(model.factors)
        for n, part in enumerate(self.unfoldings):
            rows = part.rows[:, : part.owned] if owned else part.rows
            step = max(1, BLOCK_NUMBERS // max(rows.shape[1], 1))
            for start in range(0, model.rank if rows.shape[1] else 0, step):
                block = slice(start, start + step)
                yield block, self.layout.rows(n), part, khatri_rao(padded[:, block], rows)

    def of_model(self, model: Model) -> FloatArray:
        """The tables of a model."""
        cells, scaled = np.zeros(int(self.starts[-1])), model.factors * model.weights
        for block, rows, part, product in self.products(model, owned=True):
            cells[part.places[:, : part.owned]] += scaled[rows, block] @ product.T
        return cells

    def contract(
        self, model: Model, numbers: FloatArray, products: Iterable[Part] | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """``E_f[u]`` (F,), and the sum over tables with ``n`` of ``E_f[u | x_n = i]`` (L, F)."""
        classes, levels = np.zeros(model.rank), np.zeros_like(model.factors)
        for block, rows, part, product in products or self.products(model):
            mine, owned = numbers[part.places], part.owned
            pulled = mine[:, :owned] @ product[:owned]
            classes[block] += np.sum(model.factors[rows, block] * pulled, axis=0)
            levels[rows, block] = pulled + mine[:, owned:] @ product[owned:]
        return classes, levels

    def distances(self, one: FloatArray, other: FloatArray) -> FloatArray:
        """Total variation distance of each table."""
        return np.asarray(0.5 * np.add.reduceat(np.abs(one - other), self.starts[:-1]))


class TableTangent:
    """Tables of a model, and how they change with relative changes of weights and factors."""

    def __init__(self, cells: FlatTables, model: Model) -> None:
        self.cells, self.model, self._scaled = cells, model, model.factors * model.weights
        self._kept: list[Part] = []
        columns = sum(part.rows.shape[1] for part in cells.unfoldings)
        if columns * model.rank <= MOST_KEPT_NUMBERS:
            self._kept = list(cells.products(model))

    @cached_property
    def tables(self) -> FloatArray:
        """The tables of the model, flat."""
        return self.cells.of_model(self.model)

    def contract(self, numbers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """See ``FlatTables``."""
        return self.cells.contract(self.model, numbers, self._kept)

    def transpose(self, numbers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``J' u``: relative changes of weights (F,) and factors (L, F)."""
        return self.center(*self.contract(numbers))

    def center(self, classes: FloatArray, levels: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Relative changes that keep the sums of weights and columns."""
        layout, factors = self.model.layout, self.model.factors
        means = layout.expand(layout.sums(factors * levels))
        return classes - self.model.weights @ classes, levels - means

    def apply(self, classes: FloatArray, levels: FloatArray) -> FloatArray:
        """``J (a, s)``: changes of the tables, flat."""
        cells = np.zeros(int(self.cells.starts[-1]))
        for block, rows, part, product in self._kept or self.cells.products(self.model):
            scaled, owned = self._scaled[rows, block], part.owned
            change = scaled * levels[rows, block]
            cells[part.places[:, owned:]] += change @ product[owned:].T
            change += scaled * classes[block]
            cells[part.places[:, :owned]] += change @ product[:owned].T
        return cells
