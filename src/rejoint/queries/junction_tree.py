"""Junction tree: cliques of variables, in which every given set of variables lies in one clique.

A joint with given tables exists if and only if there are tables of the cliques that contain these
tables and agree on the separators of the tree. A program over the cells of all cliques is thus
exact, and has far fewer unknowns than the joint has cells.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf, prod

Variables = tuple[int, ...]


@dataclass(frozen=True)
class JunctionTree:
    """Cliques and the links between them.

    Parameters
    ----------
    cliques : tuple of tuples of int
        The variables of each clique, increasing.
    links : tuple of (int, int, tuple of int)
        Two cliques and their common variables (none where parts are not connected); the links make
        a tree over all cliques.

    Examples
    --------
    >>> tree = JunctionTree.of((2, 2, 2), [(0, 1), (1, 2)])
    >>> tree.cliques, tree.links
    (((0, 1), (1, 2)), ((0, 1, (1,)),))
    """

    cliques: tuple[Variables, ...]
    links: tuple[tuple[int, int, Variables], ...]

    @staticmethod
    def of(
        shape: Sequence[int], edges: Iterable[Iterable[int]], most: float = inf
    ) -> "JunctionTree":
        """Triangulate the graph of some sets of variables by minimum fill.

        Parameters
        ----------
        shape : sequence of int
            Number of levels of each variable.
        edges : sets of variables
            Each lies in one of the cliques.
        most : float
            Stop at a clique with more cells than this; it is then the only one of the result.

        Examples
        --------
        >>> JunctionTree.of((2, 2, 2, 2), [(0, 1), (1, 2), (2, 3), (0, 3)]).cliques
        ((0, 1, 3), (1, 2, 3))
        """
        cliques = _eliminate(shape, [frozenset(edge) for edge in edges], most)
        return JunctionTree(cliques, _spanning_tree(cliques))

    def pruned(self, asked: Iterable[int], published: Iterable[Iterable[int]]) -> "JunctionTree":
        """Leave branches out that are joined to the asked variables by published margins.

        Whatever the joint of the rest is, such a branch extends it: both have the margin.

        Parameters
        ----------
        asked : variables
            A clique that holds them stays.
        published : sets of variables
            Those of exact tables.

        Examples
        --------
        >>> tree = JunctionTree.of((2,) * 5, [(0, 1), (1, 2), (2, 3), (3, 4), (1, 4)])
        >>> tree.pruned([0, 1], [(0, 1)]).cliques
        ((0, 1),)
        """
        known = [frozenset(subset) for subset in published]
        links = [
            link
            for link in self.links
            if link[2] and not any(subset.issuperset(link[2]) for subset in known)
        ]
        alive, before = {self.holder(asked)}, 0
        while len(alive) > before:
            before = len(alive)
            for old, other, _ in links:
                if alive & {old, other}:
                    alive |= {old, other}
        links = [link for link in links if link[0] in alive]
        new = {k: place for place, k in enumerate(sorted(alive))}
        return JunctionTree(
            tuple(self.cliques[k] for k in sorted(alive)),
            tuple((new[old], new[other], common) for old, other, common in links),
        )

    def cells(self, shape: Sequence[int]) -> int:
        """Return the number of cells of all cliques together.

        Examples
        --------
        >>> JunctionTree.of((2, 2, 2), [(0, 1), (1, 2)]).cells((2, 2, 2))
        8
        """
        return sum(prod(shape[n] for n in clique) for clique in self.cliques)

    def holder(self, variables: Iterable[int]) -> int:
        """Return the position of the smallest clique with all of these variables.

        Examples
        --------
        >>> JunctionTree.of((2, 2, 2), [(0, 1), (1, 2)]).holder([2])
        1
        """
        wanted = set(variables)
        holders = [k for k, clique in enumerate(self.cliques) if wanted <= set(clique)]
        return min(holders, key=lambda k: len(self.cliques[k]))


def _eliminate(
    shape: Sequence[int], edges: Sequence[frozenset[int]], most: float
) -> tuple[Variables, ...]:
    """Return the maximal cliques of an elimination by minimum fill; ties by the smallest clique."""
    near: dict[int, set[int]] = {n: set() for edge in edges for n in edge}
    for edge in edges:
        for n in edge:
            near[n] |= edge - {n}
    found: list[frozenset[int]] = []
    while near:
        best = _next(shape, near)
        around = near.pop(best)
        for n in around:
            near[n] |= around - {n}
            near[n].discard(best)
        clique = frozenset(around | {best})
        if prod(shape[n] for n in clique) > most:
            return (tuple(sorted(clique)),)
        if not any(clique <= other for other in found):
            found.append(clique)
    return tuple(sorted(tuple(sorted(clique)) for clique in found))


def _next(shape: Sequence[int], near: dict[int, set[int]]) -> int:
    """Return the variable whose neighbors lack the fewest links; one that lacks none at once."""
    best, least = -1, (inf, inf)
    for n, around in near.items():
        lacking = sum(len(around - near[m]) - 1 for m in around)
        if not lacking:
            return n
        score = float(lacking), float(min(prod(shape[m] for m in around), 1e300))
        if score < least:
            best, least = n, score
    return best


def _spanning_tree(cliques: Sequence[Variables]) -> tuple[tuple[int, int, Variables], ...]:
    """Link the cliques by a tree of the largest separators."""
    links = []
    outside = set(range(1, len(cliques)))
    # For each clique outside: the size of its largest separator, and with which clique of the tree.
    reach = {k: (len(set(cliques[0]) & set(cliques[k])), 0) for k in outside}
    while outside:
        new = max(outside, key=lambda k: (reach[k][0], -k))
        outside.remove(new)
        old = reach[new][1]
        links.append((old, new, tuple(sorted(set(cliques[old]) & set(cliques[new])))))
        for k in outside:
            size = len(set(cliques[new]) & set(cliques[k]))
            if size > reach[k][0]:
                reach[k] = (size, new)
    return tuple(links)
