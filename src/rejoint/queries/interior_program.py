"""The program of all joints with given tables, set up for the interior-point method.

Unknowns are the cells ``x`` of the cliques and, for each table whose cells have limits, by how much
its cells exceed the lower limits, ``p``, and fall short of the upper ones, ``q``: blocks shaped
like the table. Rows are sums of cells in which some variables have given levels; those of a table
with limits say ``m - p = s low`` and ``m + q = s high`` for all its margins, ``m`` being the margin
of ``x`` and ``s`` the scale, a single column where it is not known.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rejoint.model import FloatArray
from rejoint.queries.interior_point import (
    CellBlock,
    InteriorPoint,
    NoConvergenceError,
    SingleColumns,
    transform,
)
from rejoint.queries.junction_tree import JunctionTree, Variables
from rejoint.queries.table_limits import TableLimits, closure

if TYPE_CHECKING:
    from rejoint.marginals.moments import Moment

_SWEEPS = 8  # of proportional fitting, for the start
_LISTED = 12  # variables of tables whose margins are listed to count rows
_INSIDE = 0.05  # of the distance between limits: how far from both to start, at least


def interior_program(
    shape: Sequence[int],
    tree: JunctionTree,
    alive: Sequence[NDArray[np.bool_]],
    limits: Sequence[TableLimits],
    moments: Sequence["Moment"] = (),
    *,
    slack: float | None = 0.0,
    is_relaxed: bool = False,
) -> InteriorPoint:
    """Return the program of all joints with given tables.

    The cells of the cliques come first among its unknowns, clique after clique.

    Parameters
    ----------
    shape, tree, limits, moments
        As for :class:`~rejoint.queries.cell_program.CellProgram`.
    alive : sequence of arrays of bool
        For each clique, the cells that no table says are empty.
    slack : float or None
        Multiple of its spread by which every cell may leave its limits; None makes it the last
        unknown.
    is_relaxed : bool
        Whether there is a slack.

    Examples
    --------
    >>> half = np.array([0.5, 0.5])
    >>> tables = [TableLimits((n,), half, half) for n in (0, 1)]
    >>> tree = JunctionTree.of((2, 2), [(0, 1)])
    >>> program = interior_program((2, 2), tree, [np.ones((2, 2), dtype=bool)], tables)
    >>> round(program.minimize(np.array([-1.0, 0.0, 0.0, 0.0])).bound, 6)
    -0.5
    """
    made = _Assembly(tuple(shape), tree, is_relaxed, slack)
    made.add_cliques(alive, limits)
    exact = [] if is_relaxed else [table for table in limits if table.is_exact]
    made.add_exact(exact)
    made.add_separators()
    with_limits = [table for table in limits if is_relaxed or not table.is_exact]
    most_slack = made.add_slack(with_limits, moments) if is_relaxed else 0.0
    for table in with_limits:
        made.add_limits(table, most_slack)
    for moment in moments:
        made.add_moment(moment, most_slack)
    return made.program()


def number_of_rows(
    shape: Sequence[int],
    tree: JunctionTree,
    exact: Iterable[Variables],
    limited: Iterable[Variables] = (),
) -> int:
    """Return how many rows the program has with tables of these variables.

    Examples
    --------
    >>> number_of_rows((2, 2), JunctionTree.of((2, 2), [(0, 1)]), [(0, 1)])
    4
    """
    exact = list(exact)
    margins = {
        subset
        for table in exact
        for size in range(1, min(len(table), _LISTED) + 1)
        for subset in combinations(table, size)
    }
    found = len(tree.cliques) + sum(prod(shape[n] for n in t) for t in exact if len(t) > _LISTED)
    found += sum(prod(shape[n] - 1 for n in subset) for subset in margins)
    found += sum(prod(shape[n] for n in separator) - 1 for _, _, separator in tree.links)
    return found + sum(2 * prod(shape[n] for n in table) for table in limited)


@dataclass(eq=False)
class _Assembly:
    """Collects the blocks, columns and rows."""

    shape: tuple[int, ...]
    tree: JunctionTree
    is_relaxed: bool
    slack: float | None
    blocks: list[CellBlock] = field(default_factory=list)
    right: list[FloatArray] = field(default_factory=list)
    rows: int = 0
    sums: list[int] = field(default_factory=list)
    columns: list[list[tuple[NDArray[np.intp], FloatArray]]] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    most: list[float] = field(default_factory=list)

    def program(self) -> InteriorPoint:
        """Return what was collected; the slack is the last column."""
        order = list(range(len(self.columns)))
        if self.is_relaxed and self.slack is None:
            order = [*order[1:], 0]
        matrix = np.zeros((self.rows, len(order)))
        for place, column in enumerate(order):
            for rows, values in self.columns[column]:
                matrix[rows, place] += values
        first, most = (np.array(each, dtype=np.float64)[order] for each in (self.first, self.most))
        columns = SingleColumns(matrix, first, most)
        return InteriorPoint(self.blocks, columns, np.concatenate(self.right), self.sums)

    def new_rows(self, right: FloatArray) -> NDArray[np.intp]:
        """Start rows with this right side."""
        self.right.append(np.asarray(right, dtype=np.float64).ravel())
        self.rows += self.right[-1].size
        return np.arange(self.rows - self.right[-1].size, self.rows)

    def new_column(self, first: float, most: float) -> int:
        """Start a single unknown."""
        self.columns.append([])
        self.first.append(first)
        self.most.append(most)
        return len(self.columns) - 1

    def add_cliques(
        self, alive: Sequence[NDArray[np.bool_]], limits: Sequence[TableLimits]
    ) -> None:
        """Add the cells of the cliques; each clique adds up to one."""
        for variables, live in zip(self.tree.cliques, alive, strict=True):
            first = _fitted(variables, live, limits)
            block = CellBlock(live.shape, live.ravel(), first, 1.0, is_most=True)
            rows = self.new_rows(np.ones(1))
            block.sum_cells(rows, np.array([live.size - 1]))
            self.sums.append(int(rows[0]))
            self.blocks.append(block)

    def add_exact(self, exact: Sequence[TableLimits]) -> None:
        """Add independent rows: cells without last levels of all tables and their margins."""
        for subset, table in closure(exact).items():
            rows = self.new_rows(table.low[tuple(slice(0, -1) for _ in subset)])
            clique = self.tree.holder(subset)
            self.blocks[clique].sum_cells(rows, self.places(clique, subset))

    def add_separators(self) -> None:
        """Let neighboring cliques have the same margins."""
        for old, new, separator in self.tree.links:
            sizes = range(1, len(separator) + 1)
            for subset in chain.from_iterable(combinations(separator, size) for size in sizes):
                rows = self.new_rows(np.zeros(prod(self.shape[n] - 1 for n in subset)))
                for clique, sign in ((old, 1.0), (new, -1.0)):
                    self.blocks[clique].sum_cells(rows, self.places(clique, subset), sign)

    def places(self, clique: int, subset: Variables, *, whole: bool = False) -> NDArray[np.intp]:
        """Return where the margins of a table are in the transform of a clique.

        Without last levels, or whole: there a last level means the sum over all levels.
        """
        variables = self.tree.cliques[clique]
        place = np.zeros((1,) * len(variables), dtype=np.intp)
        for axis, n in enumerate(variables):
            size = self.shape[n]
            along = [1] * len(variables)
            level = np.array([size - 1])
            if n in subset:
                along[axis] = size if whole else size - 1
                level = np.arange(along[axis])
            place = place * size + level.reshape(along)
        return place.ravel()

    def add_slack(self, limits: Sequence[TableLimits], moments: Sequence["Moment"]) -> float:
        """Return the largest slack that is needed; add a column for it where it is free."""
        if self.slack is not None:
            return self.slack
        # The joint with equal cells needs no more than this.
        most = 0.0
        for table in limits:
            even = 1.0 / table.low.size
            off = np.maximum(table.low - even, even - table.high)
            most = max(most, float((off / np.maximum(table.spread, 1e-12)).max()))
        for moment in moments:
            off_moment = moment.range[1] - moment.range[0]
            most = max(most, off_moment / max(spread_of_moment(moment), 1e-12))
        self.new_column(0.5 * most + 1e-3, most + 1e-3)
        return most

    def add_limits(self, table: TableLimits, most_slack: float) -> None:
        """Add a table whose cells have limits."""
        low, high = table.low.ravel(), table.high.ravel()
        if table.is_scaled and not low.sum() > 0:
            raise NoConvergenceError  # the scale may be anything: HiGHS takes this
        spread = table.spread.ravel() if self.is_relaxed else np.zeros(low.size)
        relaxed = most_slack * float(spread.sum())
        most = (1.0 + relaxed) / float(low.sum()) if table.is_scaled else 1.0
        column = self.new_column(1.0, most) if table.is_scaled else None
        clique = self.tree.holder(table.subset)
        margin = self._first_margin(clique, table.subset)
        open_ended = ~np.isfinite(high)
        live = np.ones(low.size, dtype=bool) if self.is_relaxed else high > low
        high = np.where(open_ended, 0.0, high)
        inside = _INSIDE * np.abs(high - low) + self.first_slack * spread + 1e-6
        for limit, sign, cells in ((low, -1.0, live), (high, 1.0, live & ~open_ended)):
            first = np.where(cells, np.maximum(sign * (limit - margin), inside), 0.0)
            total = most * float(limit.sum()) if sign > 0 else 1.0
            block = CellBlock(table.low.shape, cells, first, total + relaxed)
            wide = np.where(open_ended, 0.0, spread) if sign > 0 else spread
            rows = self._add_side(block, clique, table, limit, wide, sign, column)
            if sign > 0 and open_ended.any():
                self._add_open_ended(table, open_ended, margin, rows)
        for places, value in table.sums:
            self._add_known_sum(table, places, value, column, float(spread[places].sum()))

    @property
    def first_slack(self) -> float:
        """Where the slack starts."""
        if not self.is_relaxed:
            return 0.0
        return self.first[0] if self.slack is None else self.slack

    def _add_side(
        self,
        block: CellBlock,
        clique: int,
        table: TableLimits,
        limit: FloatArray,
        spread: FloatArray,
        sign: float,
        column: int | None,
    ) -> NDArray[np.intp]:
        """Add ``m + sign * block = scale * limit + sign * slack * spread``, for all margins."""
        shape = table.low.shape
        sums, more = (transform(each.reshape(shape)) for each in (limit, sign * spread))
        fixed = 0.0 if self.slack is None else self.slack
        rows = self.new_rows((0.0 if table.is_scaled else 1.0) * sums + fixed * more)
        self.blocks[clique].sum_cells(rows, self.places(clique, table.subset, whole=True))
        block.sum_cells(rows, np.arange(limit.size), sign)
        if column is not None:
            self.columns[column].append((rows, -sums))
        if self.is_relaxed and self.slack is None:
            self.columns[0].append((rows, -more))
        self.blocks.append(block)
        return rows

    def _add_open_ended(
        self,
        table: TableLimits,
        cells: NDArray[np.bool_],
        margin: FloatArray,
        rows: NDArray[np.intp],
    ) -> None:
        """Let cells without upper limit be what they are: ``m - block = 0`` there."""
        block = CellBlock(table.low.shape, cells, np.where(cells, margin + 1e-6, 0.0), 1.0)
        block.sum_cells(rows, np.arange(margin.size), -1.0)
        self.blocks.append(block)

    def _add_known_sum(
        self,
        table: TableLimits,
        places: NDArray[np.intp],
        value: float,
        column: int | None,
        spread: float,
    ) -> None:
        """Add a known sum of cells."""
        clique = self.tree.holder(table.subset)
        inside = np.zeros(table.low.size)
        inside[places] = 1.0
        sizes = [self.shape[n] if n in table.subset else 1 for n in self.tree.cliques[clique]]
        weights = np.broadcast_to(inside.reshape(sizes), self.blocks[clique].sizes).ravel()
        for rows in self._add_expectation(clique, weights, value, spread, 1.0 + value):
            if column is not None:
                self.right[-1] = self.right[-1] - value
                self.columns[column].append((rows, np.array([-value])))

    def add_moment(self, moment: "Moment", most_slack: float) -> None:
        """Add a known expectation of a product."""
        clique = self.tree.holder(moment.variables)
        weights = np.ones(())
        for n in self.tree.cliques[clique]:
            vector = np.ones(self.shape[n])
            if n in moment.variables:
                vector = moment.vectors[moment.variables.index(n)]
            weights = np.multiply.outer(weights, vector)
        spread = spread_of_moment(moment)
        width = moment.range[1] - moment.range[0] + most_slack * spread
        for _ in self._add_expectation(clique, weights.ravel(), moment.value, spread, width):
            pass

    def _add_expectation(
        self, clique: int, weights: FloatArray, value: float, spread: float, width: float
    ) -> Iterator[NDArray[np.intp]]:
        """Add a known sum of weighted cells: one row, or two limits where there is a slack."""
        fixed = 0.0 if self.slack is None else self.slack
        for sign in (-1.0, 1.0) if self.is_relaxed else (0.0,):
            rows = self.new_rows(np.array([value + sign * fixed * spread]))
            self.blocks[clique].weight_cells(int(rows[0]), weights)
            if sign:
                column = self.new_column(0.5 * width, 2.0 * width)
                self.columns[column].append((rows, np.array([sign])))
                if self.slack is None:
                    self.columns[0].append((rows, np.array([-sign * spread])))
            yield rows

    def _first_margin(self, clique: int, subset: Variables) -> FloatArray:
        """Return the table of the cells that a clique starts with."""
        variables = self.tree.cliques[clique]
        gone = tuple(axis for axis, n in enumerate(variables) if n not in subset)
        block = self.blocks[clique]
        found: FloatArray = block.first.reshape(block.sizes).sum(axis=gone).ravel()
        return found


def spread_of_moment(moment: "Moment") -> float:
    """Return how far a moment gives way where it cannot be met, as a table's cells do.

    Examples
    --------
    >>> from rejoint.marginals.moments import Moment
    >>> spread_of_moment(Moment((0,), (np.array([0.0, 1.0]),), 0.3, "mean of a"))
    0.01
    """
    return 0.01 * (moment.range[1] - moment.range[0])


def _fitted(
    variables: Variables, alive: NDArray[np.bool_], limits: Sequence[TableLimits]
) -> FloatArray:
    """Return positive cells that nearly have the tables, by proportional fitting."""
    even = alive / alive.sum()
    cells = even
    inside = [table for table in limits if set(table.subset) <= set(variables)]
    for _ in range(_SWEEPS):
        for table in inside:
            gone = tuple(axis for axis, n in enumerate(variables) if n not in table.subset)
            margin = cells.sum(axis=gone, keepdims=True)
            goal = _middle(table).reshape(margin.shape)
            empty = np.zeros_like(margin)
            cells = cells * np.divide(goal, margin, out=empty, where=margin > 0)
    share = 0.01 if alive.all() else 0.5
    found: FloatArray = ((1.0 - share) * cells / max(cells.sum(), 1e-300) + share * even).ravel()
    return found


def _middle(table: TableLimits) -> FloatArray:
    """Return a table in the middle of its limits, positive, with the sum one."""
    if table.is_exact:
        return np.maximum(table.low, 0.0)
    high = np.where(np.isfinite(table.high), table.high, table.low)
    middle = np.maximum((table.low + high) / 2, 1e-6)
    shares: FloatArray = middle / middle.sum()
    return shares
