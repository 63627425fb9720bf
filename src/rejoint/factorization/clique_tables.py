"""Tables of the cliques of a junction tree, by which a joint that is never formed is known.

The joint is ``prod_C b_C / prod_S b_S`` with the tables ``b`` of cliques and of what neighboring
cliques share. Iterative proportional fitting multiplies the table of one clique at a time and
passes the change on to its neighbors. Where the given tables form a tree themselves, one sweep is
exact.
"""

from collections.abc import Sequence
from functools import cached_property
from math import prod
from string import ascii_letters
from typing import NamedTuple

import numpy as np

from rejoint.arrays import FloatArray, IntArray, outer_product, sum_to
from rejoint.factorization.max_entropy import Subset, proportion
from rejoint.factorization.table_goals import Goal
from rejoint.queries.junction_tree import JunctionTree

Factor = tuple[FloatArray, Subset]


class Edge(NamedTuple):
    """Two neighboring cliques, the first nearer to the root, and what they have in common."""

    above: int
    below: int
    shared: Subset


class CliqueTables:
    """Tables of cliques that agree on what they share, and the joint that they make.

    Parameters
    ----------
    levels : sequence of int
        Number of levels of each variable.
    tree : JunctionTree
        Cliques that hold every variable and every table.
    shares : sequence of array
        Shares of each variable: the joint is their product at first.
    """

    def __init__(
        self, levels: Sequence[int], tree: JunctionTree, shares: Sequence[FloatArray]
    ) -> None:
        self.levels, self.tree, self.cliques = tuple(levels), tree, tree.cliques
        self.edges = [Edge(*link) for link in tree.links]  # above comes before below
        self.beliefs = [outer_product([shares[n] for n in clique]) for clique in self.cliques]
        self.separators = [outer_product([shares[n] for n in edge.shared]) for edge in self.edges]

    @cached_property
    def children(self) -> list[list[int]]:
        """Edges down from each clique."""
        cliques = range(len(self.cliques))
        return [[k for k, edge in enumerate(self.edges) if edge.above == c] for c in cliques]

    @cached_property
    def variables_below(self) -> list[set[int]]:
        """Variables of the part of the tree that begins with each clique."""
        below = [set(clique) for clique in self.cliques]
        for edge in reversed(self.edges):
            below[edge.above] |= below[edge.below]
        return below

    def sweep(self, goals: Sequence[Goal], multipliers: list[FloatArray]) -> FloatArray:
        """Bring each table to its goal, clique after clique; return the share that each moved.

        Multipliers are the logarithms of all factors that were applied to each table; updated.
        """
        homes: list[list[int]] = [[] for _ in self.cliques]
        for k, goal in enumerate(goals):
            homes[self.tree.holder(goal.subset)].append(k)
        moved = np.zeros(len(goals))

        def visit(clique: int) -> None:
            members, belief = self.cliques[clique], self.beliefs[clique]
            for k in homes[clique]:
                now = sum_to(belief, members, goals[k].subset)
                factor, multipliers[k], moved[k] = proportion(goals[k], now.ravel(), multipliers[k])
                belief *= _spread(factor.reshape(now.shape), goals[k].subset, members)
                belief /= belief.sum()
            for edge in self.children[clique]:
                self._pass(edge, down=True)
                visit(self.edges[edge].below)
                self._pass(edge, down=False)

        visit(0)
        for edge in range(len(self.edges)):  # what the root has goes to all cliques
            self._pass(edge, down=True)
        return moved

    def _pass(self, edge: int, *, down: bool) -> None:
        """Pass a change of one clique on to its neighbor."""
        link = self.edges[edge]
        source, target = (link.above, link.below) if down else (link.below, link.above)
        new = sum_to(self.beliefs[source], self.cliques[source], link.shared)
        ratio = _divide(new, self.separators[edge])
        self.beliefs[target] *= _spread(ratio, link.shared, self.cliques[target])
        self.separators[edge] = new

    def table(self, subset: Sequence[int]) -> FloatArray:
        """The table of some variables, increasing, of the joint."""
        asked, root = set(subset), 0
        while deeper := [
            below
            for below in (self.edges[edge].below for edge in self.children[root])
            if asked <= self.variables_below[below]
        ]:
            root = deeper[0]
        table, members = self._collect(root, self.beliefs[root], asked)
        return sum_to(table, members, tuple(sorted(asked)))

    def _collect(self, clique: int, belief: FloatArray, kept: set[int]) -> Factor:
        """The table of what is kept; parts of the tree that hold nothing of it sum to one."""
        factors: list[Factor] = [(belief, self.cliques[clique])]
        for edge in self.children[clique]:
            _, below, shared = self.edges[edge]
            if self.variables_below[below] & kept - set(shared):
                given = _spread(_divide(1.0, self.separators[edge]), shared, self.cliques[below])
                factors.append(
                    self._collect(below, self.beliefs[below] * given, kept | set(shared))
                )
        return _contract(factors, kept)

    def draw(self, number: int, rng: np.random.Generator) -> IntArray:
        """Draw records of level numbers, (number, N)."""
        codes = np.zeros((number, len(self.levels)), dtype=np.intp)
        for clique, shared in [(0, ()), *((edge.below, edge.shared) for edge in self.edges)]:
            new = tuple(n for n in self.cliques[clique] if n not in shared)
            if new:
                sizes = [self.levels[n] for n in new]
                row = self._cell_of(codes, shared)
                table = self.beliefs[clique].transpose(
                    [self.cliques[clique].index(n) for n in (*shared, *new)]
                )
                cell = _draw_in_rows(table.reshape(-1, prod(sizes)), row, rng)
                codes[:, new] = np.transpose(np.unravel_index(cell, sizes))
        return codes

    def _cell_of(self, codes: IntArray, subset: Subset) -> IntArray:
        """The cell of each record in the table of some variables."""
        cell = np.zeros(len(codes), dtype=np.intp)
        for n in subset:
            cell = cell * self.levels[n] + codes[:, n]
        return cell


def _draw_in_rows(table: FloatArray, row: IntArray, rng: np.random.Generator) -> IntArray:
    """Draw a column for each record, in proportion to the numbers in its row."""
    cumulative = np.cumsum(table, axis=1)
    total = np.maximum(cumulative[:, -1:], 1e-300)
    # Rows one after another, each of length one: one search for all records.
    line = (cumulative / total + np.arange(len(table))[:, None]).ravel()
    at = np.searchsorted(line, row + rng.random(len(row)), side="right")
    last = table.shape[1] - 1 - np.argmax(table[:, ::-1] > 0.0, axis=1)
    return np.asarray(np.minimum(at - row * table.shape[1], last[row]))


def _divide(numbers: FloatArray | float, table: FloatArray) -> FloatArray:
    return np.divide(numbers, table, out=np.zeros_like(table), where=table > 0.0)


def _spread(table: FloatArray, subset: Subset, members: Subset) -> FloatArray:
    """A table with axes of length one for the variables that it does not have."""
    shape = iter(table.shape)
    return table.reshape([next(shape) if n in subset else 1 for n in members])


def _contract(factors: Sequence[Factor], kept: set[int]) -> Factor:
    """Multiply tables and sum to some of their variables."""
    names = sorted({n for _, members in factors for n in members})
    letters = dict(zip(names, ascii_letters, strict=False))

    def spell(members: Subset) -> str:
        return "".join(letters[n] for n in members)

    table, members = factors[0]
    for at, (other, others) in enumerate(factors[1:], start=2):
        later = {n for _, rest in factors[at:] for n in rest}
        wanted = tuple(sorted({*members, *others} & (later | kept)))
        table = np.einsum(f"{spell(members)},{spell(others)}->{spell(wanted)}", table, other)
        members = wanted
    inside = tuple(n for n in members if n in kept)
    return sum_to(table, members, inside), inside
