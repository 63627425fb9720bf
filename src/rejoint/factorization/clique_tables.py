"""The maximum-entropy completion of tables on a junction tree, where its cliques are small.

The completion is a product of functions of the tables. On a junction tree it is
``prod_C b_C / prod_S b_S`` with the tables ``b`` of cliques and of what neighboring cliques share.
Iterative proportional fitting multiplies the table of one clique at a time and passes the change on
to its neighbors, so that the joint of many variables is never formed. Where the given tables form a
tree themselves, one sweep is exact.
"""

from collections.abc import Sequence
from functools import cached_property
from math import prod
from string import ascii_letters
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.factorization.table_goals import Goal
from rejoint.model import FloatArray
from rejoint.queries.junction_tree import JunctionTree

Subset = tuple[int, ...]


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

    Examples
    --------
    >>> tree = JunctionTree.of((2, 2, 2), [(0, 1), (1, 2)])
    >>> CliqueTables((2, 2, 2), tree, [np.full(2, 0.5)] * 3).table((0, 2))
    array([[0.25, 0.25],
           [0.25, 0.25]])
    """

    def __init__(
        self, levels: Sequence[int], tree: JunctionTree, shares: Sequence[FloatArray]
    ) -> None:
        self.levels, self.tree, self.cliques = tuple(levels), tree, tree.cliques
        self.edges = [Edge(*link) for link in tree.links]  # above comes before below
        self.beliefs = [_product([shares[n] for n in clique]) for clique in self.cliques]
        self.separators = [_product([shares[n] for n in edge.shared]) for edge in self.edges]

    @cached_property
    def children(self) -> list[list[int]]:
        """Edges down from each clique."""
        found: list[list[int]] = [[] for _ in self.cliques]
        for k, edge in enumerate(self.edges):
            found[edge.above].append(k)
        return found

    def sweep(self, goals: Sequence[Goal], pulls: list[FloatArray]) -> FloatArray:
        """Bring each table to its goal, clique after clique; return the share that each moved.

        ``pulls`` has the logarithms of all factors that were applied to each table, and is updated.
        """
        homes: list[list[int]] = [[] for _ in self.cliques]
        for k, goal in enumerate(goals):
            homes[self.tree.holder(goal.subset)].append(k)
        moved = np.zeros(len(goals))

        def visit(clique: int) -> None:
            for k in homes[clique]:
                moved[k] = self._aim(clique, goals[k], pulls, k)
            for edge in self.children[clique]:
                self._pass(edge, down=True)
                visit(self.edges[edge].below)
                self._pass(edge, down=False)

        visit(0)
        self.calibrate()
        return moved

    def calibrate(self) -> None:
        """Pass what the root has on to all cliques."""
        for edge in range(len(self.edges)):  # each clique comes before those below it
            self._pass(edge, down=True)
        self.__dict__.pop("_conditionals", None)

    def _aim(self, clique: int, goal: Goal, pulls: list[FloatArray], k: int) -> float:
        belief = self.beliefs[clique]
        members = self.cliques[clique]
        now = _sum_to(belief, members, goal.subset)
        flat = now.ravel()
        aim = goal.aim(flat, pulls[k])
        factor = np.divide(aim, flat, out=np.zeros_like(flat), where=flat > 0.0)
        with np.errstate(divide="ignore"):
            pulls[k] = pulls[k] + np.log(factor)
        belief *= _spread(factor.reshape(now.shape), goal.subset, members)
        belief /= belief.sum()
        return 0.5 * float(np.abs(aim - flat).sum())

    def _pass(self, edge: int, *, down: bool) -> None:
        """Pass a change of one clique on to its neighbor."""
        link = self.edges[edge]
        source, target = (link.above, link.below) if down else (link.below, link.above)
        new = _sum_to(self.beliefs[source], self.cliques[source], link.shared)
        old = self.separators[edge]
        ratio = np.divide(new, old, out=np.zeros_like(new), where=old > 0.0)
        self.beliefs[target] *= _spread(ratio, link.shared, self.cliques[target])
        self.separators[edge] = new

    def table(self, subset: Sequence[int]) -> FloatArray:
        """The table of some variables, increasing, of the joint."""
        asked = set(subset)
        root = max(range(len(self.cliques)), key=lambda c: len(asked & set(self.cliques[c])))
        found, members = self._collect(root, None, asked)
        return _sum_to(found, members, tuple(sorted(asked)))

    def _collect(self, clique: int, came: int | None, asked: set[int]) -> tuple[FloatArray, Subset]:
        """The table of what is asked, given what is shared along the edge that it came from.

        Parts of the tree that hold nothing else that is asked sum to one.
        """
        belief, members = self.beliefs[clique], self.cliques[clique]
        shared = set() if came is None else set(self.edges[came].shared)
        if came is not None:
            belief = self._conditional(clique, came)
        factors = [(belief, members)]
        for edge in self._around[clique]:
            if edge == came:
                continue
            link = self.edges[edge]
            other = link.below if link.above == clique else link.above
            if self._reach[other, edge] & asked - set(link.shared):
                factors.append(self._collect(other, edge, asked))
        kept = set().union(*(part for _, part in factors)) & (asked | shared)
        return _contract(factors, tuple(sorted(kept)))

    def _conditional(self, clique: int, edge: int) -> FloatArray:
        """The table of a clique given what it shares along an edge."""
        if (clique, edge) not in self._conditionals:
            old = self.separators[edge]
            inverse = np.divide(1.0, old, out=np.zeros_like(old), where=old > 0.0)
            spread = _spread(inverse, self.edges[edge].shared, self.cliques[clique])
            self._conditionals[clique, edge] = self.beliefs[clique] * spread
        return self._conditionals[clique, edge]

    @cached_property
    def _conditionals(self) -> dict[tuple[int, int], FloatArray]:
        return {}

    @cached_property
    def _around(self) -> list[list[int]]:
        """Edges at each clique."""
        found: list[list[int]] = [[] for _ in self.cliques]
        for k, edge in enumerate(self.edges):
            found[edge.above].append(k)
            found[edge.below].append(k)
        return found

    @cached_property
    def _reach(self) -> dict[tuple[int, int], set[int]]:
        """Variables of the part of the tree that begins with a clique, seen along an edge."""
        found: dict[tuple[int, int], set[int]] = {}

        def look(clique: int, came: int) -> set[int]:
            if (clique, came) not in found:
                members = set(self.cliques[clique])
                for edge in self._around[clique]:
                    if edge != came:
                        link = self.edges[edge]
                        members |= look(link.below if link.above == clique else link.above, edge)
                found[clique, came] = members
            return found[clique, came]

        for k, edge in enumerate(self.edges):
            look(edge.above, k)
            look(edge.below, k)
        return found

    def draw(self, number: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """Draw records of level numbers, (number, N).

        Examples
        --------
        >>> tree = JunctionTree.of((2, 2), [(0, 1)])
        >>> CliqueTables((2, 2), tree, [np.array([0.0, 1.0])] * 2).draw(2, np.random.default_rng(0))
        array([[1, 1],
               [1, 1]])
        """
        codes = np.zeros((number, len(self.levels)), dtype=np.intp)
        self._draw_clique(codes, 0, (), rng)
        for edge in self.edges:
            self._draw_clique(codes, edge.below, edge.shared, rng)
        return codes

    def _draw_clique(
        self, codes: NDArray[np.intp], clique: int, known: Subset, rng: np.random.Generator
    ) -> None:
        """Draw the variables of a clique that are not known yet."""
        members = self.cliques[clique]
        new = tuple(n for n in members if n not in known)
        if not new:
            return
        order = [members.index(n) for n in (*known, *new)]
        rows = prod(self.levels[n] for n in known)
        table = self.beliefs[clique].transpose(order).reshape(rows, -1)
        cumulative = np.cumsum(table, axis=1)
        row = np.zeros(len(codes), dtype=np.intp)
        for n in known:
            row = row * self.levels[n] + codes[:, n]
        total = np.maximum(cumulative[:, -1:], 1e-300)
        # Rows one after another, each of length one: one search for all records.
        line = (cumulative / total + np.arange(rows)[:, None]).ravel()
        at = np.searchsorted(line, row + rng.random(len(codes)), side="right")
        last = table.shape[1] - 1 - np.argmax(table[:, ::-1] > 0.0, axis=1)
        cell = np.minimum(at - row * table.shape[1], last[row])
        for n, level in zip(
            new, np.unravel_index(cell, [self.levels[n] for n in new]), strict=True
        ):
            codes[:, n] = level


def _product(vectors: Sequence[FloatArray]) -> FloatArray:
    found = np.ones(())
    for vector in vectors:
        found = np.multiply.outer(found, vector)
    return found


def _sum_to(table: FloatArray, members: Subset, subset: Subset) -> FloatArray:
    """Sum a table of some variables, increasing, to fewer of them."""
    gone = tuple(axis for axis, n in enumerate(members) if n not in subset)
    return np.asarray(table.sum(axis=gone)) if gone else table


def _spread(table: FloatArray, subset: Subset, members: Subset) -> FloatArray:
    """A table with axes of length one for the variables that it does not have."""
    shape = iter(table.shape)
    return table.reshape([next(shape) if n in subset else 1 for n in members])


def _contract(
    factors: Sequence[tuple[FloatArray, Subset]], kept: Subset
) -> tuple[FloatArray, Subset]:
    """Multiply tables and sum to some of their variables."""
    names = sorted({n for _, members in factors for n in members})
    letters = dict(zip(names, ascii_letters, strict=False))

    def spell(members: Subset) -> str:
        return "".join(letters[n] for n in members)

    found, members = factors[0]
    for at, (table, others) in enumerate(factors[1:], start=2):
        later = {n for _, rest in factors[at:] for n in rest}
        wanted = tuple(sorted({*members, *others} & (later | set(kept))))
        found = np.einsum(f"{spell(members)},{spell(others)}->{spell(wanted)}", found, table)
        members = wanted
    return _sum_to(found, members, kept), kept
