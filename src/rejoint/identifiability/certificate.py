"""Certificates: whether one model is the only one that has its tables."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from rejoint.identifiability.jacobian import LocalIdentifiability, alike_classes, jacobian
from rejoint.identifiability.jacobian_rank import RESOLVED_SHARE, scale_columns
from rejoint.identifiability.layout import Groups, Subsets, TableLayout, read_layout
from rejoint.identifiability.theorems import Splits, find_groupings, split_evenly
from rejoint.marginals.marginals import Marginals
from rejoint.messages import Message, PythonOnly, join_messages
from rejoint.pmf.pmf import LowRankPMF
from rejoint.queries.tables import khatri_rao
from rejoint.text import cite, plural, show

Array = NDArray[np.float64]

#: Columns of length one are dependent if their smallest singular value is below this.
DEPENDENT = 1e-8

#: Sets of columns that are tested for a Kruskal rank.
MOST_COLUMN_SETS = 20_000

#: Pairs of classes up to which the compound condition is evaluated: 60 classes.
MOST_CLASS_PAIRS = 1770

#: Groupings of listed tables that are tried.
MOST_GROUPINGS = 40

#: Rows of one table over known variables that are used.
MOST_TABLE_ROWS = 4096

#: Weight below which a class is negligible: a thousandth of one record in a million.
LEAST_WEIGHT = 1e-9

#: Share of a table's mass in wrong cells up to which it is met.
MET = 1e-6

#: Classes times levels of a model up to which a certificate is sought: a second or two.
MOST_CERTIFIED_NUMBERS = 3_000


@dataclass(frozen=True)
class Proof:
    """A lemma whose condition a model fulfills, with the groups of variables that show it."""

    lemma: str
    groups: tuple[tuple[str, ...], ...]
    numbers: str

    def __str__(self) -> str:
        text = " ".join("{" + " ".join(group) + "}" for group in self.groups)
        return f"{self.lemma}{f', groups {text}' if text else ''}: {self.numbers}"


@dataclass(frozen=True)
class Certificate:
    """What is known about one model and its tables.

    Parameters
    ----------
    layout : TableLayout
        Variables and tables.
    rank : int
        Number of classes.
    proof : Proof or None
        The lemma that proves this model to be the only one of its rank with these tables.
    kruskal : dict of str to (int, int)
        Bounds on the Kruskal rank of each factor; equal if it is exact.
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

    Examples
    --------
    >>> import rejoint as rj
    >>> p = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 4)
    >>> print(rj.identifiability.certify(p, order=3).verdict)
    Unique: no other model of rank 2 has these tables (Lemma 1 (Kruskal), groups {x0 x3} {x1} \
{x2}: Kruskal ranks 2 + 2 + 2 >= 6).
    """

    layout: TableLayout
    rank: int
    proof: Proof | None
    kruskal: dict[str, tuple[int, int]]
    compound: float | None
    dead: tuple[int, ...]
    collinear: dict[str, tuple[tuple[int, ...], ...]]
    alike: tuple[tuple[int, int, str], ...]
    local: LocalIdentifiability

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
        if self.local.parameters:
            return (
                f"Locally unique (condition number {self.condition:.2g}); none of the lemmas "
                "proves it globally."
            )
        if self.local.parameters is None:
            return (
                f"Undecided: the smallest singular value is {self.local.smallest:.1e} of the "
                "largest, too close to zero."
            )
        return f"Not unique. {self.local.verdict}"

    def __str__(self) -> str:
        ranks = [
            f"{name} {low if low == high else f'{low}..{high}'}"
            for name, (low, high) in self.kruskal.items()
        ]
        lines = [self.verdict, f"Kruskal ranks of the factors: {', '.join(ranks[:12])}."]
        if self.proof is not None:
            lines.append(self._reducible_text)
        lines += [self._collinear_text, self.layout.apart_text]
        lines.append(f"Condition number {self.condition:.2g}. {self.local.weakest}")
        return join_messages(lines, "\n")

    @property
    def _collinear_text(self) -> str:
        """Variables that do not tell classes apart."""
        if not self.collinear:
            return ""
        parts = []
        for name, groups in list(self.collinear.items())[:6]:
            every = len(groups[0]) == self.rank
            classes = "all" if every else "; ".join(_numbers(group) for group in groups)
            parts.append(f"{name} ({classes})")
        more = len(self.collinear) - len(parts)
        tail = f", and {plural(more, 'more variable')}" if more else ""
        found = ", ".join(parts)
        return f"Equal columns (classes that a variable does not distinguish): {found}{tail}."

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
        if not parts:
            return ""
        return Message(
            "Not unique as a model of rank {rank}: {parts}{advice}.",
            rank=self.rank,
            parts=", and ".join(parts),
            advice=PythonOnly("; pmf.reduce()"),
        )


def _numbers(positions: Sequence[int]) -> str:
    """Numbers of classes as they are shown, from 1."""
    return show([f + 1 for f in positions])


def certify(
    pmf: LowRankPMF, subsets: Subsets | None = None, *, order: int | None = None
) -> Certificate:
    """Check whether this model is the only one that explains its tables.

    The bounds of :func:`report` hold for almost all models; this one may be an exception. Lemmas
    1 and 4 are evaluated on its factors, stacked in groups between which all tables are there;
    the other variables must be solvable from those by tables of full column rank.

    Parameters
    ----------
    pmf : LowRankPMF
        The model.
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
    tables = read_layout(order=order, subsets=subsets, domain=pmf.domain)
    factors = {n: np.asarray(a) for n, a in zip(pmf.domain.names, pmf.factors, strict=True)}
    dead = tuple(int(f) for f in np.flatnonzero(pmf.weights < LEAST_WEIGHT))
    proof, compound = (None, None) if dead or tables.uncovered else _prove(tables, pmf)
    return Certificate(
        tables,
        pmf.rank,
        proof,
        {name: kruskal_rank(a) for name, a in factors.items()},
        compound,
        dead,
        {name: groups for name, a in factors.items() if (groups := _equal_columns(a))},
        tuple(alike_classes(pmf, LEAST_WEIGHT)),
        jacobian(at=pmf, subsets=subsets, order=order),
    )


def _equal_columns(factor: Array) -> Groups:
    """Groups of classes whose columns are equal."""
    groups: list[list[int]] = []
    for f, column in enumerate(factor.T):
        for group in groups:
            if np.abs(column - factor[:, group[0]]).max() <= LEAST_WEIGHT:
                group.append(f)
                break
        else:
            groups.append([f])
    return tuple(tuple(group) for group in groups if len(group) > 1)


def _prove(tables: TableLayout, pmf: LowRankPMF) -> tuple[Proof | None, float | None]:
    """The first lemma that holds on some groups, and the best strength of Lemma 4."""
    best: float | None = None
    if pmf.rank == 1:
        return Proof("one class", (), "every variable is in a table"), None
    for stacked in _stack_factors(tables, pmf):
        if not _is_solvable(tables, pmf, {*chain.from_iterable(stacked.groups)}):
            continue
        proof = _prove_by_kruskal(tables, stacked, pmf.rank)
        if proof is not None:
            return proof, best
        proof, strength = _prove_by_compound(tables, stacked, pmf.rank)
        if strength is not None:
            best = max(best or 0.0, strength)
        if proof is not None:
            return proof, best
    return None, best


@dataclass(frozen=True)
class StackedFactors:
    """Three groups of variables, and the stacked factor matrix of each."""

    groups: Groups
    sides: tuple[Array, ...]


def _prove_by_kruskal(tables: TableLayout, stacked: StackedFactors, rank: int) -> Proof | None:
    """Lemma 1 on three stacked factors."""
    ranks = [kruskal_rank(side)[0] for side in stacked.sides]
    if sum(ranks) < 2 * rank + 2:
        return None
    numbers = f"Kruskal ranks {' + '.join(map(str, ranks))} >= {2 * rank + 2}"
    return Proof("Lemma 1 (Kruskal)", tables.group_names(stacked.groups), numbers)


def _prove_by_compound(
    tables: TableLayout, stacked: StackedFactors, rank: int
) -> tuple[Proof | None, float | None]:
    """Lemma 4 on three stacked factors, each as the third in turn."""
    best: float | None = None
    for a, b, third in ((1, 2, 0), (0, 2, 1), (0, 1, 2)):
        if _column_rank(stacked.sides[third]) < rank:
            continue
        strength = compound_strength(stacked.sides[a], stacked.sides[b])
        if strength is None:
            continue
        best = max(best or 0.0, strength)
        if strength:
            groups = tables.group_names(stacked.groups[k] for k in (a, b, third))
            numbers = f"the last has full column rank, compound condition {strength:.1e}"
            return Proof("Lemma 4 (compound)", groups, numbers), best
    return None, best


def _stack_factors(tables: TableLayout, pmf: LowRankPMF) -> Iterator[StackedFactors]:
    """Groups between which all tables are there, the most promising first."""
    if tables.largest_order < 3:
        return
    if tables.order is not None:
        for groups in _candidate_groups(tables):
            yield _stack_three(pmf, groups, tables.order - 2)
        return
    found = sorted(find_groupings(tables), key=lambda groups: -tables.side(chain(*groups)))
    for groups in found[:MOST_GROUPINGS]:
        yield _stack_three(pmf, groups, 1) if len(groups) == 3 else _stack_four(pmf, groups)


def _candidate_groups(tables: TableLayout) -> list[Groups]:
    """Even groups, and those with most variables in the third, if all tables are there."""
    found: dict[Groups, None] = {split_evenly(tables.free, 3): None}
    splits = Splits(tables.free)
    if splits.fits:
        first, second, third, _ = splits.sums
        for score in (np.minimum(first * second, third), first * second * third):
            found[splits.partition(int(np.argmax(score)))] = None
    a, b, *rest = tables.largest_first
    found[((a,), (b,), tuple(sorted(rest)))] = None
    return [groups for groups in found if all(groups)]


def _stack_three(pmf: LowRankPMF, groups: Groups, taken: int) -> StackedFactors:
    """Stack the factors of three groups; the third group several variables at a time."""
    sides = [np.vstack([pmf.factors[n] for n in group]) for group in groups]
    if taken > 1 and len(groups[2]) > 1:
        size = min(taken, len(groups[2]))
        sides[2] = np.vstack([_product(pmf, part) for part in combinations(groups[2], size)])
    return StackedFactors(groups, tuple(sides))


def _stack_four(pmf: LowRankPMF, groups: Groups) -> StackedFactors:
    """Stack four groups as three: the rows of the two largest are multiplied."""
    a, b, c, d = sorted(groups, key=lambda group: sum(len(pmf.factors[n]) for n in group))
    sides = [np.vstack([pmf.factors[n] for n in group]) for group in (a, b)]
    products = np.vstack([_product(pmf, (m, n)) for m in c for n in d])
    return StackedFactors((a, b, (*c, *d)), (*sides, products))


def _product(pmf: LowRankPMF, variables: tuple[int, ...]) -> Array:
    """Khatri-Rao product of the factors of some variables, (cells, F)."""
    return khatri_rao([pmf.factors[n] for n in variables], np.ones(pmf.rank))


def _is_solvable(tables: TableLayout, pmf: LowRankPMF, known: set[int]) -> bool:
    """Whether the factors of all other variables follow from the known ones, table by table."""
    waiting = set(range(len(tables.domain))) - known
    while waiting:
        solved: set[int] = set()
        for m in sorted(waiting):
            rows = _known_rows(tables, pmf, m, known | solved)
            if rows is not None and _column_rank(rows) == pmf.rank:
                solved.add(m)
        if not solved:
            return False
        known, waiting = known | solved, waiting - solved
    return True


def _known_rows(tables: TableLayout, pmf: LowRankPMF, m: int, known: set[int]) -> Array | None:
    """Rows over known variables in the listed tables that hold ``m``."""
    # Where all tables of an order are there, the groups hold all variables: none is solved for.
    beside = {tuple(n for n in s if n != m and n in known) for s in tables.subsets if m in s}
    parts = []
    for part in sorted(filter(None, beside)):
        rows = np.cumprod([float(tables.levels[n]) for n in part])
        parts.append(_product(pmf, part[: max(1, int((rows <= MOST_TABLE_ROWS).sum()))]))
    return np.vstack(parts) if parts else None


def unit_columns(matrix: Array) -> Array:
    """Columns scaled to length one; zero columns stay."""
    lengths = np.linalg.norm(matrix, axis=0)
    return matrix / np.where(lengths > 0, lengths, 1.0)


def _column_rank(matrix: Array) -> int:
    """Rank, columns scaled to length one.

    Examples
    --------
    >>> _column_rank(np.array([[1.0, 2.0, 0.0], [1.0, 2.0, 1.0]]))
    2
    """
    values = np.linalg.svd(unit_columns(matrix), compute_uv=False)
    return int((values > DEPENDENT).sum())


def kruskal_rank(matrix: Array) -> tuple[int, int]:
    """Bounds on the largest ``k`` such that any ``k`` columns are independent; equal if exact.

    All sets of columns are tested while they are few; beyond, random sets are, which bounds it
    from above.

    Examples
    --------
    >>> kruskal_rank(np.array([[1.0, 0.0, 1.0, 2.0], [0.0, 1.0, 1.0, 2.0]]))
    (1, 1)
    >>> kruskal_rank(np.array([[1.0, 0.0, 1.0, 1.0], [0.0, 1.0, 1.0, 2.0]]))
    (2, 2)
    """
    columns = unit_columns(matrix)
    size, rank = columns.shape[1], _column_rank(matrix)
    if rank == size:
        return size, size
    tested = 0
    for k in range(1, rank + 1):
        tested += comb(size, k)
        if tested > MOST_COLUMN_SETS:
            return k - 1, _upper_bound(columns, k, rank)
        if _any_dependent(columns, list(combinations(range(size), k))):
            return k - 1, k - 1
    return rank, rank


def _any_dependent(columns: Array, sets: list[tuple[int, ...]]) -> bool:
    """Whether one of these sets of columns is dependent."""
    for start in range(0, len(sets), 4096):
        chosen = columns[:, sets[start : start + 4096]].transpose(1, 0, 2)
        if (np.linalg.svd(chosen, compute_uv=False)[:, -1] <= DEPENDENT).any():
            return True
    return False


def _upper_bound(columns: Array, least: int, rank: int) -> int:
    """Smallest size at which a random set is dependent, less one; the rank if none is."""
    rng = np.random.default_rng(0)
    for k in range(least, rank + 1):
        drawn = [tuple(rng.permutation(columns.shape[1])[:k]) for _ in range(200)]
        if _any_dependent(columns, drawn):
            return k - 1
    return rank


def compound_strength(first: Array, second: Array) -> float | None:
    """Smallest singular value, over the largest, of ``M_2(A_1) . M_2(A_2)`` of Lemma 4.

    The columns of the compound matrices are scaled to length one. By Cauchy and Binet their inner
    products are minors of the Gram matrices of ``A_1`` and ``A_2``, so that no compound matrix
    is formed. None beyond 60 classes; 0 if it is numerically zero.

    Examples
    --------
    >>> a = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    >>> compound_strength(a, np.eye(3)) > 0.1, compound_strength(a, np.ones((2, 3)))
    (True, 0.0)
    """
    size = first.shape[1]
    if comb(size, 2) > MOST_CLASS_PAIRS:
        return None
    product = _minors(first) * _minors(second)
    if (np.diagonal(product) <= RESOLVED_SHARE**2).any():
        return 0.0
    values = np.linalg.eigvalsh(scale_columns(product)[0])
    ratio = float(np.sqrt(max(values[0], 0.0) / values[-1]))
    return ratio if ratio >= RESOLVED_SHARE else 0.0


def _minors(matrix: Array) -> Array:
    """Inner products of the columns of the second compound matrix, (C(F, 2), C(F, 2))."""
    columns = unit_columns(matrix)
    inner = columns.T @ columns
    f, g = np.triu_indices(matrix.shape[1], 1)
    found: Array = inner[np.ix_(f, f)] * inner[np.ix_(g, g)]
    found -= inner[np.ix_(f, g)] * inner[np.ix_(g, f)]
    return found


def certificate_of(pmf: LowRankPMF, tables: Marginals) -> str | None:
    """Return why no other joint of a model's rank has some tables; None where that is not shown.

    The model must meet the tables: to a millionth of their total, or within twice what chance
    would make the distance where they are of a sample.

    Examples
    --------
    >>> import rejoint as rj
    >>> truth = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 4)
    >>> print(certificate_of(truth, rj.Marginals.from_pmf(truth, order=3)))
    No other model of rank 2 has these tables (Lemma 1 (Kruskal), groups {x0 x3} {x1} {x2}: \
Kruskal ranks 2 + 2 + 2 >= 6).
    >>> certificate_of(truth, rj.Marginals.from_pmf(truth, order=2)) is None
    True
    """
    if pmf.rank * sum(pmf.domain.shape) > MOST_CERTIFIED_NUMBERS or not _is_met(pmf, tables):
        return None
    subsets = [names for names, total in zip(tables.subsets, tables.totals, strict=True) if total]
    if not subsets:
        return None
    found = certify(pmf, subsets)
    if found.proof is not None:
        return f"No other model of rank {pmf.rank} has these tables ({found.proof})."
    if found.local.joint:
        return (
            f"No other joint of rank {pmf.rank} near this one has these tables (condition number "
            f"{found.condition:.2g})."
        )
    return None


def _is_met(pmf: LowRankPMF, tables: Marginals) -> bool:
    return all(
        fit.distance <= max(MET, 2.0 * fit.chance if tables.noisy else 0.0)
        for fit in tables.compare(pmf)
    )
