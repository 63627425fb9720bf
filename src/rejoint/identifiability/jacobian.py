"""Local identifiability: whether the tables fix the classes, and whether they fix the joint.

Goodman's test: the model is locally unique where the Jacobian of the tables has full column rank.
The joint is a question of its own: it is fixed where every direction that keeps the tables keeps
the joint. At a generic point both ranks are computed exactly, modulo a prime; at a given model,
and beyond some size, from singular values.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.domain import Domain
from rejoint.identifiability.jacobian_rank import (
    PRIMES,
    RESOLVED,
    Point,
    gram,
    joint_gram,
    model_point,
    random_point,
    rank_modulo,
    residue_point,
    scaled,
    spectrum,
)
from rejoint.identifiability.layout import Layout, Levels, Subsets, layout, whole_rank
from rejoint.marginals.subsets import in_words
from rejoint.pmf.pmf import LowRankPMF
from rejoint.text import plural, show


@dataclass(frozen=True)
class Local:
    """Whether tables fix a model locally.

    Parameters
    ----------
    layout : Layout
        Variables and tables.
    rank : int
        Number of classes.
    parameters : bool or None
        Whether weights and factors are locally unique; None if undecided.
    joint : bool or None
        Whether the joint is; it may be where the parameters are not.
    free, open : int or None
        Directions in which the parameters, and the joint, can move while the tables stay.
    smallest : float
        Smallest singular value of the Jacobian, its columns scaled to length one, over the
        largest; below 1e-7 it cannot be told from zero.
    variables : dict of str to float
        Share of each variable in the weakest directions, largest first.
    classes : tuple of float
        Share of each class in them.
    given : bool
        Whether this is about a given model, not about almost all.

    Examples
    --------
    >>> import rejoint as rj
    >>> local = rj.identifiability.jacobian([2] * 4, rank=3, order=3)
    >>> local.parameters, local.joint, local.jacobian_rank, local.size
    (False, True, 13, 14)
    """

    layout: Layout
    rank: int
    parameters: bool | None
    joint: bool | None
    free: int | None
    open: int | None
    smallest: float
    variables: dict[str, float]
    classes: tuple[float, ...]
    given: bool = False

    @property
    def size(self) -> int:
        """Number of parameters: weights less one, factors less one row each."""
        return self.layout.columns(self.rank) - 1

    @property
    def jacobian_rank(self) -> int | None:
        """Rank of the Jacobian; None if unknown."""
        return None if self.free is None else self.size - self.free

    @property
    def verdict(self) -> str:
        """What this means, in words.

        Examples
        --------
        >>> import rejoint as rj
        >>> print(rj.identifiability.jacobian([3] * 10, rank=3, order=2).verdict)
        Rank 3, all 45 tables of order 2: the classes are not locally unique (3 free directions), \
and neither is the joint (3 open directions).
        """
        where = "this model" if self.given else f"rank {self.rank}"
        head = f"{where[0].upper()}{where[1:]}, {self.layout.words}: "
        if self.parameters:
            return (
                f"{head}classes and joint are locally unique (smallest singular value "
                f"{self.smallest:.1e} of the largest). Local is not global: another model may "
                "still have the same tables."
            )
        return head + classes_words(self) + joint_words(self)

    def __str__(self) -> str:
        return f"{self.verdict}\n{self.weakest}"

    @property
    def weakest(self) -> str:
        """The variables and classes that the tables hold least, in words."""
        names = [f"{name} ({share:.0%})" for name, share in list(self.variables.items())[:3]]
        order = np.argsort(self.classes)[::-1][:3]
        classes = [f"{f} ({self.classes[f]:.0%})" for f in order]
        return f"Weakest: variables {', '.join(names)}; classes {', '.join(classes)}."


def classes_words(local: Local) -> str:
    """What is known of the classes, where they are not locally unique."""
    if local.layout.uncovered:
        return f"no table contains {show(local.layout.uncovered)}, so that "
    if local.parameters is None:
        return (
            f"undecided for the classes (smallest singular value {local.smallest:.1e} of the "
            "largest, too near to zero)"
        )
    free = f" ({plural(local.free, 'free direction')})" if local.free else ""
    return f"the classes are not locally unique{free}"


def joint_words(local: Local) -> str:
    """What is known of the joint."""
    if local.joint is None:
        return ", and undecided for the joint."
    if local.joint:
        known = "is given by a table" if local.layout.whole else "is locally unique"
        return f", but the joint {known}."
    count = f" ({plural(local.open, 'open direction')})" if local.open else ""
    if local.layout.uncovered:
        return f"neither classes nor joint are fixed{count}."
    return f", and neither is the joint{count}."


Array = NDArray[np.float64]

#: Parameters up to which ranks are computed exactly, in some seconds.
EXACT = 3000

#: Parameters up to which all free directions at a model are computed.
NULL = 1500

#: Moves of the joint below this are none: ten times what rounding leaves of a direction that stays.
STILL = 1e-6

#: Bytes that a Gram matrix may take.
MEMORY = 2 * 2**30


@dataclass(frozen=True)
class Generic:
    """Exact ranks at a generic point: of the tables' Jacobian, and with the joint's below it."""

    columns: int
    tables: int
    both: int

    @property
    def free(self) -> int:
        """Directions in which the parameters can move while the tables stay."""
        return self.columns - self.tables

    @property
    def open(self) -> int:
        """Directions in which the joint can move while the tables stay."""
        return self.both - self.tables


def jacobian(
    levels: Levels | None = None,
    rank: int | None = None,
    subsets: Subsets | None = None,
    *,
    order: int | None = None,
    at: LowRankPMF | None = None,
    domain: Domain | None = None,
    random_state: int | np.random.Generator | None = 0,
) -> Local:
    """Test whether tables fix the classes and the joint locally.

    Parameters
    ----------
    levels : sequence of int, Domain or Marginals
        Number of levels of each variable; Marginals say the subsets, too. Not needed with ``at``.
    rank : int
        Number of classes; that of ``at`` where it is given.
    subsets : sequence of tuples, optional
        The tables, by names or positions.
    order : int, optional
        All tables of so many variables instead; 3 by default.
    at : LowRankPMF, optional
        Test this model. Otherwise the verdict is on almost all models of that rank, and the
        singular value is that of a random one.
    domain : Domain, optional
        In place of ``levels``.
    random_state : int or Generator, optional
        Of the random points.

    Returns
    -------
    Local
        ``parameters`` and ``joint`` are True, False or None (undecided).

    Notes
    -----
    Up to 3,000 parameters the generic verdict is exact: that the parameters are unique is certain
    then, any other verdict is wrong with probability below 1e-5. Beyond, and at a given model, a
    singular value below 1e-7 of the largest is undecided, unless the generic rank, counting, or
    the structure of the model (a class without weight, two equal ones) says that it is zero.

    Examples
    --------
    >>> import rejoint as rj
    >>> cyclic = [(i, (i + 1) % 10, (i + 2) % 10) for i in range(10)]
    >>> [rj.identifiability.jacobian([3] * 10, rank, cyclic).parameters for rank in (7, 8, 9)]
    [True, True, False]
    """
    if at is not None and levels is None and domain is None:
        domain = at.domain
    tables = layout(levels, order, subsets, domain)
    rank = model_rank(rank, at)
    at = None if at is None else aligned(tables, at)
    check_size(tables, rank)
    rng = np.random.default_rng(random_state)
    exact = generic_ranks(tables, rank, rng)
    if at is None:
        weak = weak_directions(tables, random_point(tables, rank, rng))
        verdict = generic_verdict(tables, rank, exact, weak.smallest)
        counts = known_counts(exact)
    else:
        weak = weak_directions(tables, model_point(at.factors), np.asarray(at.weights) == 0.0)
        verdict = model_verdict(tables, at, exact, weak)
        counts = model_counts(verdict, exact, weak)
    variables, classes = shares(tables, rank, weak.directions)
    return Local(tables, rank, *verdict, *counts, weak.smallest, variables, classes, at is not None)


@dataclass(frozen=True)
class Weak:
    """The weakest directions at a point (D, K), in scaled coordinates, and how weak.

    ``moved`` is how far the joint moves along them, against how far it can move at all; ``free``
    and ``open`` count those that keep the tables, and those of them that move the joint.
    """

    smallest: float
    directions: Array
    moved: float
    free: int | None = None
    open: int | None = None


def generic_ranks(
    tables: Layout, rank: int, rng: np.random.Generator | int | None = 0
) -> Generic | None:
    """Exact ranks at a random point modulo a prime, a second one where they fall short."""
    columns = tables.columns(rank)
    if columns > EXACT:
        return None
    rng = np.random.default_rng(rng)
    best = both = 0
    for prime in PRIMES[:2]:
        point = residue_point(tables, rank, prime, rng)
        matrix = gram(tables, point)
        best = max(best, rank_modulo(matrix, prime))
        if best == columns:
            return Generic(columns, columns, columns)
        if tables.whole:
            both = best
            continue
        mixed = matrix + int(rng.integers(1, prime)) * joint_gram(tables, point)
        both = max(both, best, rank_modulo(mixed, prime))
    return Generic(columns, best, both)


def weak_directions(tables: Layout, point: Point, dead: NDArray[np.bool_] | None = None) -> Weak:
    """The null space where it is there and small enough, else the weakest direction."""
    matrix = gram(tables, point)
    if dead is not None and dead.any():
        # Nothing depends on the factors of a class without weight, only on its weight.
        still = np.tile(dead, tables.rows)
        still[: point.rank] = False
        matrix[still] = matrix[:, still] = 0.0
    matrix, lengths = scaled(matrix)
    if len(matrix) > NULL:
        found = spectrum(matrix)
        return Weak(found.smallest, found.direction[:, None], np.nan)
    values, vectors = np.linalg.eigh(matrix)
    smallest = float(np.sqrt(max(values[0], 0.0) / values[-1]))
    null = vectors[:, values <= RESOLVED**2 * values[-1]]
    if not null.shape[1]:
        return Weak(smallest, vectors[:, :1], np.nan, 0, 0)
    whole, other = scaled(joint_gram(tables, point))
    # From columns of length one in the tables to columns of length one in the joint.
    turned = null * (other / lengths)[:, None]
    if dead is not None:
        turned[np.tile(dead, tables.rows) & (np.arange(len(turned)) >= point.rank)] = 0.0
    turned /= np.maximum(np.linalg.norm(turned, axis=0), 1e-300)
    moves = np.sqrt(np.maximum(np.linalg.eigvalsh(turned.T @ whole @ turned), 0.0))
    return Weak(smallest, null, float(moves[-1]), null.shape[1], int((moves >= STILL).sum()))


def generic_verdict(
    tables: Layout, rank: int, exact: Generic | None, smallest: float
) -> tuple[bool | None, bool | None]:
    """On almost all models: by exact ranks, or by singular values and counting."""
    if exact is not None:
        return exact.free == 0, tables.whole or exact.open == 0
    if smallest >= RESOLVED:
        return True, True
    short = tables.equations + 1 < tables.columns(rank) or bool(tables.uncovered)
    joint = True if tables.whole else False if tables.uncovered else None
    return False if short else None, joint


def model_verdict(
    tables: Layout, at: LowRankPMF, exact: Generic | None, weak: Weak
) -> tuple[bool | None, bool | None]:
    """On one model: singular values first, then what is known for certain."""
    alike = alike_classes(at)
    broken = not at.weights.all() or any(not where for *_, where in alike)
    if weak.smallest >= RESOLVED and not broken:
        return True, True
    generic = generic_verdict(tables, at.rank, exact, 0.0)
    # Two classes that differ in one variable are split into two in many ways.
    parameters = False if broken or alike or generic[0] is False else None
    if tables.whole:
        return parameters, True
    if broken or np.isnan(weak.moved):
        return parameters, None
    still = weak.moved < STILL
    if generic[1] is still:
        return parameters, still
    return parameters, None


def known_counts(exact: Generic | None) -> tuple[int | None, int | None]:
    """Free and open directions of almost all models, where they are known."""
    return (None, None) if exact is None else (exact.free, exact.open)


def model_counts(
    verdict: tuple[bool | None, bool | None], exact: Generic | None, weak: Weak
) -> tuple[int | None, int | None]:
    """Free and open directions at a model, where the verdict says that there are such."""
    found = [0 if sure else None for sure in verdict]
    for k, (here, almost) in enumerate(
        zip((weak.free, weak.open), known_counts(exact), strict=True)
    ):
        if verdict[k] is False:
            # A model can have more of them than almost all others, never fewer.
            found[k] = max(filter(None, (here, almost)), default=None)
    return found[0], found[1]


def alike_classes(model: LowRankPMF, same: float = 1e-12) -> list[tuple[int, int, str]]:
    """Pairs of classes that differ in one variable at most, and in which; no name if in none."""
    found = []
    for f in range(model.rank - 1):
        differs = np.array([np.abs(a[:, f + 1 :] - a[:, [f]]).max(axis=0) for a in model.factors])
        for g in np.flatnonzero((differs > same).sum(axis=0) <= 1):
            where = np.flatnonzero(differs[:, g] > same)
            found.append((f, f + 1 + int(g), model.domain.names[where[0]] if len(where) else ""))
    return found


def shares(
    tables: Layout, rank: int, directions: Array
) -> tuple[dict[str, float], tuple[float, ...]]:
    """Parts of variables and of classes in some directions."""
    squares = (directions**2).sum(axis=1).reshape(tables.rows, rank)
    total = squares.sum() or 1.0
    ends = np.cumsum([0, *tables.free]) + 1
    names = tables.domain.names
    found = {
        name: float(squares[ends[n] : ends[n + 1]].sum() / total) for n, name in enumerate(names)
    }
    ordered = dict(sorted(found.items(), key=lambda item: -item[1]))
    return ordered, tuple(float(part) for part in squares.sum(axis=0) / total)


def model_rank(rank: int | None, at: LowRankPMF | None) -> int:
    """The rank asked about, which a given model must have."""
    if at is None:
        if rank is None:
            raise ValueError("Say the rank: rank=5; or give a model, at=pmf.")
        return whole_rank(rank)
    if not isinstance(at, LowRankPMF):
        raise TypeError(f"at must be a LowRankPMF, got {type(at).__name__}.")
    if rank is not None and rank != at.rank:
        raise ValueError(f"The model has rank {at.rank}, but rank={rank} was asked about.")
    return at.rank


def aligned(tables: Layout, at: LowRankPMF) -> LowRankPMF:
    """The model with its variables in the order of the tables."""
    if {*at.domain.names} == {*tables.domain.names}:
        return at.align(tables.domain)
    if at.domain.shape != tables.levels:
        raise ValueError(
            f"The model's variables have levels {at.domain.shape}, the tables' {tables.levels}: "
            "they must be the same variables."
        )
    return at


def check_size(tables: Layout, rank: int) -> None:
    """Refuse what would not fit."""
    columns = tables.columns(rank)
    if 8 * columns**2 > MEMORY:
        raise ValueError(
            f"{columns:,} parameters need a Gram matrix of {in_words(8 * columns**2)}, more than "
            f"{in_words(MEMORY)}: ask about fewer variables or classes, or see "
            "identifiability.report, whose bounds need none."
        )
