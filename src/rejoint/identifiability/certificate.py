"""Certificates: what can be said of one model, not of almost all."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.labels import plural, show
from rejoint.identifiability.goodman import alike_classes, jacobian
from rejoint.identifiability.independence import column_rank, compound_strength, kruskal_rank
from rejoint.identifiability.layout import Layout, Subsets, layout
from rejoint.identifiability.local import Local
from rejoint.identifiability.model_groups import Stack, hang, stacks
from rejoint.identifiability.printed import named
from rejoint.identifiability.reporting import apart_words
from rejoint.pmf import LowRankPMF

__all__ = ["Certificate", "certify"]

Array = NDArray[np.float64]

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
        return "\n".join([*lines, f"Condition number {self.condition:.2g}. {self.local.weakest}"])


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
    return f"Not unique as a model of rank {found.rank}: {', and '.join(parts)}; pmf.reduce()."
