"""Certificates: whether one model is the only one that has its tables."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rejoint.arrays import FloatArray
from rejoint.identifiability.composite_view import CompositeView
from rejoint.identifiability.fiber import SAME_JOINT, Fiber
from rejoint.identifiability.jacobian import LocalIdentifiability, alike_classes, jacobian
from rejoint.identifiability.layout import Groups, Subsets, TableLayout, read_layout
from rejoint.identifiability.uniqueness_proof import Proof, find_proof, kruskal_rank
from rejoint.kernels.backend import one_blas_thread
from rejoint.marginals.marginals import Marginals
from rejoint.messages import join_messages
from rejoint.pmf.pmf import LowRankPMF
from rejoint.text import cite, plural, show

#: Weight below which a class is negligible: a thousandth of one record in a million.
LEAST_WEIGHT = 1e-9

#: Share of a table's mass in wrong cells up to which it is met.
MET = 1e-6

#: Classes times levels of a model up to which a certificate is sought: a second or two.
MOST_CERTIFIED_NUMBERS = 3_000


@dataclass(frozen=True)
class Certificate:
    """What is known about one model and its tables.

    Parameters
    ----------
    layout : TableLayout
        Variables and tables; of a model with blocks, those over its blocks.
    rank : int
        Number of classes.
    proof : Proof or None
        The lemma that proves this model to be the only one of its rank with these tables.
    other : LowRankPMF or None
        Another model of this rank with the same tables.
    kruskal : dict of str to int
        Kruskal rank of each factor; a lower bound beyond some thousand sets of classes.
    compound : float or None
        Strength of Lemma 4's condition on the best groups: smallest singular value over the
        largest; 0 if it fails, None if it was not needed or is too large.
    dead : tuple of int
        Positions of classes with almost no weight; the verdict numbers classes from 1.
    collinear : dict of str to tuple of tuples of int
        Variables whose factor has equal columns, and the positions of the classes that share one:
        such a variable does not distinguish them, and its Kruskal rank is 1.
    alike : tuple of (int, int, str)
        Positions of two classes that differ in one variable only, and its name, which is empty if
        they are equal.
    local : LocalIdentifiability
        The Jacobian test at this model.
    same_joint : bool
        Whether the other model has the same joint.
    search : str
        What was searched for another model, where neither it nor a proof was found.

    Examples
    --------
    >>> import rejoint as rj
    >>> p = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 4)
    >>> print(rj.identifiability.certify(p, order=3).verdict)
    Unique: no other model of rank 2 has these tables (Lemma 1 (Kruskal), groups {x0 x3} {x1} \
{x2}: Kruskal ranks 2 + 2 + 2 >= 6).
    >>> rj.identifiability.certify(p, order=2).unique
    False
    """

    layout: TableLayout
    rank: int
    proof: Proof | None
    other: LowRankPMF | None
    kruskal: dict[str, int]
    compound: float | None
    dead: tuple[int, ...]
    collinear: dict[str, tuple[tuple[int, ...], ...]]
    alike: tuple[tuple[int, int, str], ...]
    local: LocalIdentifiability
    same_joint: bool = False
    search: str = ""

    @property
    def unique(self) -> bool | None:
        """Whether this is the only model of its rank with these tables; None if undecided."""
        return True if self.proof is not None else None if self.other is None else False

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
        """What the certificate shows."""
        if self.uncovered:
            return f"Not unique: no table contains {show(self.uncovered)}."
        if self.proof is not None:
            return f"Unique: no other model of rank {self.rank} has these tables ({self.proof})."
        if self._reducible_text:
            return self._reducible_text
        if self.other is not None:
            joint = "the same joint, other classes" if self.same_joint else "another joint"
            return (
                f"Not unique: another model of rank {self.rank} has the same tables and {joint} "
                "(certificate.other)."
            )
        local = (
            f"It is locally unique (condition number {self.condition:.2g})."
            if self.local.parameters
            else self.local.verdict
        )
        return f"Undecided: none of the lemmas proves this model unique; {self.search}. {local}"

    def __str__(self) -> str:
        ranks = [f"{name} {rank}" for name, rank in self.kruskal.items()]
        lines = [self.verdict, f"Kruskal ranks of the factors: {', '.join(ranks[:12])}."]
        if self.proof is not None:
            lines.append(self._reducible_text)
        lines += [self._collinear_text, self.layout.apart_text]
        lines.append(f"Condition number {self.condition:.2g}. {self.local.weakest}")
        return join_messages(lines, "\n")

    @property
    def _collinear_text(self) -> str:
        """Variables that do not tell classes apart."""
        parts = []
        for name, groups in list(self.collinear.items())[:6]:
            every = len(groups[0]) == self.rank
            classes = "all" if every else "; ".join(_numbers(group) for group in groups)
            parts.append(f"{name} ({classes})")
        if len(self.collinear) > len(parts):
            parts.append(f"and {plural(len(self.collinear) - len(parts), 'more variable')}")
        shown = ", ".join(parts)
        text = f"Equal columns (classes that a variable does not distinguish): {shown}."
        return text if parts else ""

    @property
    def _reducible_text(self) -> str:
        """Classes that a smaller model does not need."""
        parts = []
        if self.dead:
            parts.append(f"classes without weight: {_numbers(self.dead)}")
        if self.alike:
            f, g, where = self.alike[0]
            only = f"differ in {cite(where)} only" if where else "are equal"
            parts.append(f"classes {f + 1} and {g + 1} {only}")
        text = f"Not unique as a model of rank {self.rank}: {', and '.join(parts)}; pmf.reduce()."
        return text if parts else ""


def _numbers(positions: Sequence[int]) -> str:
    """Numbers of classes as they are shown, from 1."""
    return show([f + 1 for f in positions])


@one_blas_thread()
def certify(
    pmf: LowRankPMF, subsets: Subsets | None = None, *, order: int | None = None
) -> Certificate:
    """Check whether this model is the only one that explains its tables.

    The bounds of :func:`report` hold for almost all models; this one may be an exception, either
    way. A model is *unique* if one of these proves it: Lemmas 1 and 4, evaluated on its factors,
    stacked in groups between which all tables are there; or zeros of its factors that pairs of
    variables cannot mix (separability, sufficient scattering). It is *not unique* if another model
    with the same tables was found, near it or by fits from random starts. Otherwise it is
    *undecided*.

    Parameters
    ----------
    pmf : LowRankPMF
        The model. If it has blocks, the tables are those over blocks that they hold whole.
    subsets : sequence of tuples, optional
        The tables, by names or positions.
    order : int, optional
        Tables of all subsets of this many variables; 3 by default.

    Returns
    -------
    Certificate

    Notes
    -----
    Ranks are numerical: columns count as dependent if a singular value, of columns of length
    one, is below 1e-8, and probabilities below 1e-9 as zero.

    Examples
    --------
    >>> import rejoint as rj
    >>> own = [[0.5, 0.0], [0.0, 0.3], [0.5, 0.7]]  # each class has a level of its own
    >>> p = rj.LowRankPMF([0.4, 0.6], [own] * 3)
    >>> print(rj.identifiability.certify(p, order=2).verdict)
    Unique: no other model of rank 2 has these tables (Separability, groups {x0 x2} {x1}: the \
zeros of the classes exclude every mixture of them).
    """
    if not isinstance(pmf, LowRankPMF):
        raise TypeError(f"certify takes a LowRankPMF, got {type(pmf).__name__}.")
    tables = read_layout(order=order, subsets=subsets, domain=pmf.domain)
    return _certify(tables, pmf, search=True)


def _certify(tables: TableLayout, pmf: LowRankPMF, *, search: bool) -> Certificate:
    """Check a model, with or without a search for another one."""
    view = CompositeView.of(tables, pmf)
    tables, names = view.tables, view.tables.domain.names
    fiber = Fiber(tables, view.model)
    factors = dict(zip(names, view.model.parts, strict=True))
    dead = tuple(int(f) for f in np.flatnonzero(pmf.weights < LEAST_WEIGHT))
    plain = LowRankPMF(pmf.weights, view.model.parts, tables.domain)
    usable = not dead and not tables.uncovered
    proof, compound = find_proof(tables, view.model) if usable else (None, None)
    other, searched = None, "no other model was sought"
    if search and proof is None and view.is_whole:
        other, searched = fiber.find_other()
    elif not view.is_whole:
        searched = "tables that hold a part of a block were left out"
    return Certificate(
        tables,
        pmf.rank,
        proof,
        None if other is None else view.to_pmf(other),
        {name: kruskal_rank(a) for name, a in factors.items()},
        compound,
        dead,
        {name: groups for name, a in factors.items() if (groups := _equal_columns(a))},
        tuple(alike_classes(plain, LEAST_WEIGHT)),
        jacobian(at=plain, subsets=tables.subsets or None, order=tables.order),
        other is not None and fiber.joint_distance(other) < SAME_JOINT,
        searched,
    )


def _equal_columns(factor: FloatArray) -> Groups:
    """Groups of classes whose columns are equal."""
    near = np.abs(factor[:, :, None] - factor[:, None]).max(axis=0) <= LEAST_WEIGHT
    groups = {tuple(np.flatnonzero(row).tolist()) for row in near}
    return tuple(sorted(group for group in groups if len(group) > 1))


def certificate_of(pmf: LowRankPMF, tables: Marginals) -> str | None:
    """Return why no other joint of a model's rank has some tables; None where that is not shown.

    The model must meet the tables: to a millionth of their total, or within twice what chance
    would make the distance where they are of a sample.
    """
    if pmf.rank * sum(pmf.domain.shape) > MOST_CERTIFIED_NUMBERS or not _is_met(pmf, tables):
        return None
    subsets = [names for names, total in zip(tables.subsets, tables.totals, strict=True) if total]
    if not subsets:
        return None
    certificate = _certify(read_layout(subsets=subsets, domain=pmf.domain), pmf, search=False)
    if certificate.proof is not None:
        return f"No other model of rank {pmf.rank} has these tables ({certificate.proof})."
    if certificate.local.joint:
        return (
            f"No other joint of rank {pmf.rank} near this one has these tables (condition number "
            f"{certificate.condition:.2g})."
        )
    return None


def _is_met(pmf: LowRankPMF, tables: Marginals) -> bool:
    return all(
        fit.distance <= max(MET, 2.0 * fit.chance if tables.noisy else 0.0)
        for fit in tables.compare(pmf)
    )
