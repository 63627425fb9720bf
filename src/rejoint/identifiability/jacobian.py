"""Local identifiability: whether tables determine the classes, and whether the joint.

Goodman's test: the model is locally unique if the Jacobian of the tables has full column rank.
The joint is locally unique if every direction that keeps the tables keeps the joint. At a generic
point both ranks are computed exactly, modulo a prime; at a given model, and beyond some size, from
singular values.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

from rejoint.arrays import BoolArray, FloatArray
from rejoint.check import check_positive_int
from rejoint.domain.domain import Domain
from rejoint.identifiability.gram_sums import Family
from rejoint.identifiability.jacobian_rank import (
    PRIMES,
    RESOLVED_SHARE,
    ZERO,
    JacobianPoint,
    gram,
    model_point,
    random_point,
    rank_modulo,
    residue_point,
    scale_columns,
    smallest_singular_value,
    zero_sum_basis,
)
from rejoint.identifiability.layout import Levels, Subsets, TableLayout, read_layout
from rejoint.pmf.pmf import LowRankPMF
from rejoint.text import format_bytes, plural, show

Verdict = tuple[bool | None, bool | None]  # on the parameters, and on the joint

#: Columns of the Jacobian up to which ranks are computed exactly, in some seconds.
MOST_EXACT_COLUMNS = 3000

#: Columns of the Jacobian up to which all free directions at a model are computed.
MOST_NULL_COLUMNS = 1500

#: Moves of the joint below this are rounding errors of directions that keep it, which reach 1e-7.
LEAST_MOVE = 1e-6

#: Bytes that a Gram matrix may take.
MOST_GRAM_BYTES = 2 * 2**30


@dataclass(frozen=True)
class LocalIdentifiability:
    """Whether tables determine a model locally.

    Parameters
    ----------
    layout : TableLayout
        Variables and tables.
    rank : int
        Number of classes.
    parameters : bool or None
        Whether weights and factors are locally unique; None if undecided.
    joint : bool or None
        Whether the joint is locally unique; it may be where the parameters are not.
    free, open : int or None
        Directions in which the parameters, and the joint, can move while the tables stay.
    held : int
        Directions that keep the tables, but make a probability negative that is zero.
    smallest : float
        Smallest singular value of the Jacobian, its columns scaled to length one, over the
        largest; below 1e-7 it cannot be distinguished from zero.
    variables : dict of str to float
        Share of each variable in the weakest directions, largest first.
    classes : tuple of float
        Share of each class in them.
    given : bool
        Whether this is about a given model, not about almost all models.

    Examples
    --------
    >>> import rejoint as rj
    >>> local = rj.identifiability.jacobian([2] * 4, rank=3, order=3)
    >>> local.parameters, local.joint, local.jacobian_rank, local.size
    (False, True, 13, 14)
    """

    layout: TableLayout
    rank: int
    parameters: bool | None
    joint: bool | None
    free: int | None
    open: int | None
    smallest: float
    variables: dict[str, float]
    classes: tuple[float, ...]
    given: bool = False
    held: int = 0

    @property
    def size(self) -> int:
        """Number of free parameters."""
        return self.layout.parameters(self.rank)

    @property
    def jacobian_rank(self) -> int | None:
        """Rank of the Jacobian; None if unknown."""
        return None if self.free is None else self.size - self.free - self.held

    @property
    def verdict(self) -> str:
        """What the test shows.

        Examples
        --------
        >>> import rejoint as rj
        >>> print(rj.identifiability.jacobian([3] * 10, rank=3, order=2).verdict)
        Rank 3, all 45 tables of order 2: the classes are not locally unique (3 free directions), \
and neither is the joint (3 open directions).
        """
        where = "This model" if self.given else f"Rank {self.rank}"
        head = f"{where}, {self.layout.tables_text}: "
        weak = f"smallest singular value {self.smallest:.1e} of the largest"
        if self.parameters:
            if self.held:
                closed = plural(self.held, "direction")
                weak = f"{closed} that the tables leave would make a zero probability negative"
            return (
                f"{head}classes and joint are locally unique ({weak}). Local is not global: "
                "another model may still have the same tables."
            )
        is_open = f" ({plural(self.open, 'open direction')})" if self.open else ""
        if self.layout.uncovered:
            head += f"no table contains {show(self.layout.uncovered)}, so "
            if self.joint is False:
                return f"{head}neither the classes nor the joint are determined{is_open}."
        free = f" ({plural(self.free, 'free direction')})" if self.free else ""
        classes = f"the classes are not locally unique{free}"
        if self.parameters is None:
            classes = f"undecided for the classes ({weak}, too close to zero)"
        if self.joint is None:
            return f"{head}{classes}, and undecided for the joint."
        if not self.joint:
            return f"{head}{classes}, and neither is the joint{is_open}."
        how = "is given by a table" if self.layout.has_joint else "is locally unique"
        return f"{head}{classes}, but the joint {how}."

    def __str__(self) -> str:
        return f"{self.verdict}\n{self.weakest}"

    @property
    def weakest(self) -> str:
        """The variables and classes that the tables determine least."""
        names = [f"{name} ({share:.0%})" for name, share in list(self.variables.items())[:3]]
        order = np.argsort(self.classes)[::-1][:3]
        classes = [f"{f + 1} ({self.classes[f]:.0%})" for f in order]
        return f"Weakest: variables {', '.join(names)}; classes {', '.join(classes)}."


class GenericRanks(NamedTuple):
    """Directions at a generic point that keep the tables, and those of them that move the joint."""

    free: int
    open: int


def jacobian(
    levels: Levels | None = None,
    rank: int | None = None,
    subsets: Subsets | None = None,
    *,
    order: int | None = None,
    at: LowRankPMF | None = None,
    domain: Domain | None = None,
    random_state: int | np.random.Generator | None = 0,
) -> LocalIdentifiability:
    """Test whether tables determine the classes and the joint locally.

    Parameters
    ----------
    levels : sequence of int, Domain or Marginals
        Number of levels of each variable; Marginals give the subsets, too. Not needed with ``at``.
    rank : int
        Number of classes; by default that of ``at``.
    subsets : sequence of tuples, optional
        The tables, by names or positions.
    order : int, optional
        Tables of all subsets of this many variables; 3 by default.
    at : LowRankPMF, optional
        Test this model. Otherwise the verdict is on almost all models of that rank, and the
        singular value is that of a random model.
    domain : Domain, optional
        In place of ``levels``.
    random_state : int or Generator, optional
        Seed or source of the random points.

    Returns
    -------
    LocalIdentifiability
        ``parameters`` and ``joint`` are True, False or None (undecided).

    Notes
    -----
    Up to 3,000 parameters the generic verdict is exact: uniqueness of the parameters is certain,
    any other verdict is wrong with probability below 1e-5. Beyond, and at a given model, a
    singular value below 1e-7 of the largest is undecided, unless the generic rank, counting, or
    the structure of the model (a class without weight, two equal classes) shows that it is zero.

    Examples
    --------
    >>> import rejoint as rj
    >>> cyclic = [(i, (i + 1) % 10, (i + 2) % 10) for i in range(10)]
    >>> [rj.identifiability.jacobian([3] * 10, rank, cyclic).parameters for rank in (7, 8, 9)]
    [True, True, False]
    """
    if at is not None and levels is None and domain is None:
        domain = at.domain
    tables = read_layout(levels, order, subsets, domain)
    rank = _check_rank(rank, at)
    at = None if at is None else _align(tables, at)
    _check_size(tables, rank)
    rng = np.random.default_rng(random_state)
    exact = generic_ranks(tables, rank, rng)
    held = 0
    if at is None:
        weak = _find_weak_directions(tables, random_point(tables, rank, rng))
        parameters, joint = _generic_verdict(tables, rank, exact, weak.smallest)
        free, is_open = (None, None) if exact is None else exact
    else:
        weak = _find_weak_directions(tables, model_point(at.factors), np.asarray(at.weights) == 0.0)
        parameters, joint = _model_verdict(tables, at, exact, weak)
        if parameters is not True and weak.free and not _is_reducible(tables, at):
            bounded = _is_bounded_by_zeros(at, weak.kept)
            held = weak.free if bounded else 0
            if bounded is not False:
                # Zeros that leave a part of the directions may close it at second order.
                parameters, joint = bounded, tables.has_joint or bounded
        free = _count(parameters, weak.free, exact and exact.free)
        is_open = _count(joint, weak.open, exact and exact.open)
    return LocalIdentifiability(
        tables,
        rank,
        parameters,
        joint,
        free,
        is_open,
        weak.smallest,
        *_shares(tables, rank, weak.directions),
        at is not None,
        held,
    )


@dataclass(frozen=True)
class WeakDirections:
    """The weakest directions at a point (D, K), in scaled coordinates.

    ``free`` and ``open`` count those that keep the tables, and those of them that move the joint.
    ``kept`` are the former in the coordinates of the point.
    """

    smallest: float
    directions: FloatArray
    free: int | None = None
    open: int | None = None
    kept: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))


def generic_ranks(
    tables: TableLayout, rank: int, rng: np.random.Generator | int | None = 0
) -> GenericRanks | None:
    """Exact ranks at a random point modulo a prime, and at a second one if they are deficient."""
    columns = tables.columns(rank)
    if columns > MOST_EXACT_COLUMNS:
        return None
    rng = np.random.default_rng(rng)
    best = both = 0
    for prime in PRIMES:
        point = residue_point(tables, rank, prime, rng)
        matrix = gram(tables.families, point)
        best = max(best, rank_modulo(matrix, prime))
        if best == columns:
            return GenericRanks(0, 0)
        if not tables.has_joint:
            mixed = matrix + int(rng.integers(1, prime)) * gram(_joint(tables), point)
            both = max(both, rank_modulo(mixed, prime))
    return GenericRanks(columns - best, max(both - best, 0))


def _joint(tables: TableLayout) -> list[Family]:
    """One table of all variables."""
    return Family.list_of([tuple(range(len(tables.domain)))])


def _find_weak_directions(
    tables: TableLayout, point: JacobianPoint, dead: BoolArray | None = None
) -> WeakDirections:
    """The null space if there is one and it is small enough, else the weakest direction."""
    matrix, rank = gram(tables.families, point), point.inner.shape[-1]
    # Nothing depends on the factors of a class without weight, only on its weight.
    still = np.zeros(len(matrix), dtype=bool)
    if dead is not None:
        still[rank:] = np.tile(dead, tables.class_size - 1)
        matrix[still] = matrix[:, still] = 0.0
    matrix, lengths = scale_columns(matrix)
    if len(matrix) > MOST_NULL_COLUMNS:
        smallest, direction = smallest_singular_value(matrix)
        return WeakDirections(smallest, direction[:, None])
    values, vectors = np.linalg.eigh(matrix)
    smallest = float(np.sqrt(max(values[0], 0.0) / values[-1]))
    null = vectors[:, values <= RESOLVED_SHARE**2 * values[-1]]
    if not null.shape[1]:
        return WeakDirections(smallest, vectors[:, :1], 0)
    joint, joint_lengths = scale_columns(gram(_joint(tables), point))
    # From columns of length one in the tables to columns of length one in the joint.
    turned = null * (joint_lengths / lengths)[:, None]
    turned[still] = 0.0
    turned /= np.maximum(np.linalg.norm(turned, axis=0), 1e-300)
    moves = np.sqrt(np.maximum(np.linalg.eigvalsh(turned.T @ joint @ turned), 0.0))
    is_open = int((moves >= LEAST_MOVE).sum())
    return WeakDirections(smallest, null, null.shape[1], is_open, null / lengths[:, None])


def _is_bounded_by_zeros(at: LowRankPMF, directions: FloatArray) -> bool | None:
    """Whether every direction (D, K) makes a zero probability negative; None if most do."""
    bases = [zero_sum_basis(len(a)) for a in at.factors]
    sizes = np.cumsum([1, *(basis.shape[1] for basis in bases)])
    parts = np.split(directions.reshape(-1, at.rank, directions.shape[1]), sizes)[1:]
    changes = np.concatenate([np.tensordot(q, d, 1) for q, d in zip(bases, parts, strict=False)])
    rows = changes[np.vstack(at.factors) <= ZERO]
    if not len(rows):
        return False
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), LEAST_MOVE)
    count, size = rows.shape
    # The largest t with rows @ z >= t, and then the largest sum of rows @ z that are not negative.
    limits = {"bounds": [(-1.0, 1.0)] * size + [(0.0, 1.0)], "method": "highs"}
    margin = np.hstack([-rows, np.ones((count, 1))])
    inner = linprog([*np.zeros(size), -1.0], margin, np.zeros(count), **limits)
    if inner.status == 0 and -inner.fun > LEAST_MOVE:
        return False
    cost = [*-rows.sum(axis=0), 0.0]
    outer = linprog(cost, np.hstack([-rows, np.zeros((count, 1))]), np.zeros(count), **limits)
    rigid = np.linalg.matrix_rank(rows, LEAST_MOVE) == size
    return True if rigid and outer.status == 0 and -outer.fun < LEAST_MOVE else None


def _generic_verdict(
    tables: TableLayout, rank: int, exact: GenericRanks | None, smallest: float
) -> Verdict:
    """Verdict on almost all models: by exact ranks, or by singular values and counting."""
    if exact is not None:
        return exact.free == 0, tables.has_joint or exact.open == 0
    if smallest >= RESOLVED_SHARE:
        return True, True
    short = tables.equations + 1 < tables.columns(rank) or bool(tables.uncovered)
    joint = True if tables.has_joint else False if tables.uncovered else None
    return False if short else None, joint


def _model_verdict(
    tables: TableLayout, at: LowRankPMF, exact: GenericRanks | None, weak: WeakDirections
) -> Verdict:
    """Verdict on one model: by singular values, then by what is known for certain."""
    alike = alike_classes(at)
    broken = not at.weights.all() or any(not where for *_, where in alike)
    if weak.smallest >= RESOLVED_SHARE and not broken:
        return True, True
    generic, generic_joint = _generic_verdict(tables, at.rank, exact, 0.0)
    # Two classes that differ in one variable are split into two in many ways.
    parameters = False if broken or alike or generic is False else None
    if tables.has_joint:
        return parameters, True
    still = weak.open == 0
    decided = not broken and weak.open is not None and generic_joint is still
    return parameters, still if decided else None


def _is_reducible(tables: TableLayout, at: LowRankPMF) -> bool:
    return bool(tables.uncovered or not at.weights.all() or alike_classes(at))


def _count(unique: bool | None, here: int | None, generic: int | None) -> int | None:
    """Directions at a model: it can have more of them than almost all others, never fewer."""
    if unique is not False:
        return 0 if unique else None
    return max(filter(None, (here, generic)), default=None)


def alike_classes(model: LowRankPMF, same: float = 1e-12) -> list[tuple[int, int, str]]:
    """Pairs of classes that differ in one variable at most, and its name, empty if in none."""
    alike = []
    for f in range(model.rank - 1):
        differs = np.array([np.abs(a[:, f + 1 :] - a[:, [f]]).max(axis=0) for a in model.factors])
        for g in np.flatnonzero((differs > same).sum(axis=0) <= 1):
            where = np.flatnonzero(differs[:, g] > same)
            alike.append((f, f + 1 + int(g), model.domain.names[where[0]] if len(where) else ""))
    return alike


def _shares(
    tables: TableLayout, rank: int, directions: FloatArray
) -> tuple[dict[str, float], tuple[float, ...]]:
    """Shares of variables and of classes in directions."""
    squares = (directions**2).sum(axis=1).reshape(tables.class_size, rank)
    total = squares.sum() or 1.0
    ends = np.cumsum([0, *tables.free]) + 1
    names = tables.domain.names
    shares = {
        name: float(squares[ends[n] : ends[n + 1]].sum() / total) for n, name in enumerate(names)
    }
    ordered = dict(sorted(shares.items(), key=lambda item: -item[1]))
    return ordered, tuple(float(part) for part in squares.sum(axis=0) / total)


def _check_rank(rank: int | None, at: LowRankPMF | None) -> int:
    """The rank asked about, which must be that of a given model."""
    if at is None:
        if rank is None:
            raise ValueError("Give the rank, rank=5, or a model, at=pmf.")
        return check_positive_int("rank", rank)
    if not isinstance(at, LowRankPMF):
        raise TypeError(f"at must be a LowRankPMF, got {type(at).__name__}.")
    if rank is not None and rank != at.rank:
        raise ValueError(f"The model has rank {at.rank}, but rank={rank} was asked about.")
    return at.rank


def _align(tables: TableLayout, at: LowRankPMF) -> LowRankPMF:
    """The model with its variables in the order of the tables."""
    if {*at.domain.names} == {*tables.domain.names}:
        return at.align(tables.domain)
    if at.domain.shape != tables.levels:
        raise ValueError(
            f"The model's variables have levels {at.domain.shape}, the tables' {tables.levels}: "
            "they must be the same variables."
        )
    return at


def _check_size(tables: TableLayout, rank: int) -> None:
    """Refuse Gram matrices that are too large."""
    columns = tables.columns(rank)
    if 8 * columns**2 > MOST_GRAM_BYTES:
        raise ValueError(
            f"{plural(columns, 'parameter')} need a Gram matrix of {format_bytes(8 * columns**2)}, "
            f"more than {format_bytes(MOST_GRAM_BYTES)}: ask about fewer variables or "
            "classes, or see identifiability.report, whose bounds need none."
        )
