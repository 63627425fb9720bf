"""Ambiguity: how far an answer can differ between models that have the same tables.

The state is one long vector ``x``: weights, then the factors of all variables, class by class in
every row. A step goes along the null space of the tables' Jacobian, and is brought back onto the
tables by Gauss-Newton; probabilities that reach zero stay there while the walk pushes against them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.domain import positions
from rejoint.identifiability.layout import Layout, Subsets, layout
from rejoint.pmf.pmf import LowRankPMF
from rejoint.queries.evidence import Given, read_evidence

Array = NDArray[np.float64]
Value = Callable[[Array], float]

#: Distance of the tables, in any cell, that counts as none.
EQUAL = 1e-12

#: Eigenvalues of ``J^T J`` below this share of the largest count as zero.
NULL = 1e-13


@dataclass(frozen=True)
class Fibre:
    """All models of one rank that share the tables of a given one."""

    tables: Layout
    model: LowRankPMF

    @cached_property
    def shapes(self) -> list[tuple[int, int]]:
        """Rows of weights and factors in the long vector, first and last but one."""
        ends = np.cumsum([0, 1, *self.tables.levels])
        return [(int(a), int(b)) for a, b in pairwise(ends)]

    @cached_property
    def start(self) -> Array:
        """The given model as a long vector."""
        return np.vstack([self.model.weights[None], *self.model.factors]).ravel()

    @cached_property
    def target(self) -> Array:
        """The tables to keep."""
        return self.values(self.start)

    @cached_property
    def sums(self) -> Array:
        """What must stay one: the weights, and every column of every factor; one row each."""
        rank = self.model.rank
        rows = np.zeros((1 + rank * len(self.tables.levels), len(self.start)))
        rows[0, :rank] = 1.0
        for n, (a, b) in enumerate(self.shapes[1:]):
            for f in range(rank):
                rows[1 + n * rank + f, a * rank + f : b * rank : rank] = 1.0
        return rows

    def parts(self, x: Array) -> list[Array]:
        """Weights (1, F) and factors (I_n, F)."""
        rows = x.reshape(-1, self.model.rank)
        return [rows[a:b] for a, b in self.shapes]

    def values(self, x: Array) -> Array:
        """All tables, one after another, and all sums."""
        weights, *factors = self.parts(x)
        cells = [rows_of([weights, *(factors[n] for n in s)]).sum(axis=1) for s in self.subsets]
        columns = [factor.sum(axis=0) for factor in factors]
        return np.concatenate([*cells, [weights.sum()], *columns])

    @cached_property
    def subsets(self) -> list[tuple[int, ...]]:
        """The tables."""
        return list(self.tables.tables())

    def jacobian(self, x: Array) -> Array:
        """Of all tables and sums, (rows, parameters)."""
        weights, *factors = self.parts(x)
        rank = self.model.rank
        blocks = []
        for subset in self.subsets:
            chosen = [weights, *(factors[n] for n in subset)]
            cells = int(np.prod([len(part) for part in chosen]))
            block = np.zeros((cells, len(x)))
            for slot, n in enumerate((-1, *subset)):
                a, b = self.shapes[n + 1]
                left, right = rows_of(chosen[:slot], rank), rows_of(chosen[slot + 1 :], rank)
                outer = left[:, None, :] * right[None]  # (cells left, cells right, F)
                for i in range(b - a):
                    where = np.zeros((len(left), b - a, len(right)), dtype=bool)
                    where[:, i] = True
                    columns = slice((a + i) * rank, (a + i + 1) * rank)
                    block[where.ravel(), columns] = outer.reshape(-1, rank)
            blocks.append(block)
        return np.vstack([*blocks, self.sums])

    def as_model(self, x: Array) -> LowRankPMF:
        """The long vector as a model."""
        weights, *factors = (np.maximum(part, 0.0) for part in self.parts(x))
        columns = [factor / factor.sum(axis=0) for factor in factors]
        return LowRankPMF(weights[0] / weights.sum(), columns, self.model.domain)


def rows_of(parts: Sequence[Array], rank: int = 0) -> Array:
    """Products of the rows of some matrices, (cells, F); a row of ones for none."""
    rows = np.ones((1, rank or parts[0].shape[1]))
    for part in parts:
        rows = (rows[:, None, :] * part[None]).reshape(-1, rows.shape[1])
    return rows


@dataclass(frozen=True)
class Tangent:
    """Directions at a point that keep the tables, and how to get back onto them."""

    null: Array  # (P, K)
    back: Array  # (P, rows), pseudo-inverse of the Jacobian


def tangent(fibre: Fibre, x: Array, held: NDArray[np.bool_]) -> Tangent:
    """With the parameters ``held`` fixed."""
    jacobian = fibre.jacobian(x)
    jacobian[:, held] = 0.0
    values, vectors = np.linalg.eigh(jacobian.T @ jacobian)
    zero = values <= NULL * values[-1]
    null = vectors[:, zero]
    # A held parameter is a null direction of its own: it is left out.
    if held.any():
        free = null.copy()
        free[held] = 0.0
        u, s, _ = np.linalg.svd(free, full_matrices=False)
        null = u[:, s > 0.5]
    kept = vectors[:, ~zero]
    return Tangent(null, (kept / values[~zero]) @ (kept.T @ jacobian.T))


def slopes(value: Value, x: Array, directions: Array, step: float = 1e-6) -> Array:
    """Derivatives of a function along some directions."""
    return np.array(
        [(value(x + step * v) - value(x - step * v)) / (2 * step) for v in directions.T]
    )


def ascent(fibre: Fibre, x: Array, value: Value) -> tuple[Array, Tangent]:
    """Steepest feasible direction that keeps the tables, and the tangent that it lies in."""
    zero = x <= EQUAL
    held = np.zeros(len(x), dtype=bool)
    for _ in range(len(x)):
        here = tangent(fibre, x, held)
        direction = here.null @ slopes(value, x, here.null)
        pushed = zero & ~held & (direction < 0)
        if not pushed.any():
            break
        held |= pushed
    return direction, here


def returned(fibre: Fibre, x: Array, here: Tangent) -> Array | None:
    """Back onto the tables; None if that fails or leaves the simplex."""
    for _ in range(12):
        gap = fibre.values(x) - fibre.target
        if np.abs(gap).max() <= EQUAL:
            return np.where(x < EQUAL, 0.0, x) if x.min() >= -EQUAL else None
        x = x - here.back @ gap
    return None


def walk(fibre: Fibre, x: Array, value: Value, steps: int = 60) -> Array:
    """Raise ``value`` as far as the walk goes; the tables stay."""
    length, before = 0.1, value(x)
    for _ in range(steps):
        direction, here = ascent(fibre, x, value)
        size = float(np.linalg.norm(direction))
        if size < 1e-7:
            break
        direction = direction / size
        toward = direction < -1e-12
        room = float((x[toward] / -direction[toward]).min()) if toward.any() else length
        length = min(2 * length, max(room, 1e-12))
        while length > 1e-9:
            trial = returned(fibre, x + length * direction, here)
            if trial is not None and value(trial) > before:
                break
            length /= 2
        else:
            break
        gain, x = value(trial) - before, trial
        before += gain
        if gain < 1e-9:
            break
    return x


#: Entries of a Jacobian up to which walks are made.
LARGEST = 20_000_000

#: Directions that walks start along.
TRIED = 3

#: Total variation distance below which two answers are the same.
SAME = 1e-6


@dataclass(frozen=True)
class Ambiguity:
    """Two models that explain the tables equally well, and their answers to one question.

    Parameters
    ----------
    names : tuple of str
        The variables asked about.
    given : mapping or None
        The evidence.
    models : tuple of two LowRankPMF
        The two ends of the walk; the model itself, twice, where the answer is determined.
    answers : tuple of two arrays
        ``marginal(names, given)`` of each.
    gap : float
        Largest difference between the tables of the two, in any cell.

    Examples
    --------
    >>> import rejoint as rj
    >>> p = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 4)
    >>> found = rj.identifiability.ambiguity(p, ["x0"], {"x1": 0, "x2": 0, "x3": 0}, order=2)
    >>> found.distance > 0.1, found.gap < 1e-10
    (True, True)
    """

    names: tuple[str, ...]
    given: Given
    models: tuple[LowRankPMF, LowRankPMF]
    answers: tuple[Array, Array]
    gap: float

    @property
    def distance(self) -> float:
        """Total variation distance of the two answers: at least so far can they differ."""
        return 0.5 * float(np.abs(self.answers[0] - self.answers[1]).sum())

    @property
    def verdict(self) -> str:
        """What it comes to, in words.

        Examples
        --------
        >>> import rejoint as rj
        >>> p = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 4)
        >>> rj.identifiability.ambiguity(p, ["x0", "x1"], order=2).verdict
        'P(x0, x1) is determined: no small change of the model that keeps the tables changes it.'
        """
        question = self.question
        if self.distance < SAME:
            return (
                f"{question} is determined: no small change of the model that keeps the tables "
                "changes it."
            )
        cell = np.unravel_index(
            int(np.argmax(np.abs(self.answers[0] - self.answers[1]))), self.answers[0].shape
        )
        domain = self.models[0].domain
        event = ", ".join(
            f"{name} = {domain[name].levels[i]}" for name, i in zip(self.names, cell, strict=True)
        )
        low, high = sorted(float(answer[cell]) for answer in self.answers)
        return (
            f"{question} is not determined: two models of rank {self.models[0].rank} whose tables "
            f"agree to {max(self.gap, 1e-16):.0e} differ by {self.distance:.2g} in total "
            f"variation, or more; {event} has probability {low:.3g} in one and {high:.3g} in the "
            "other."
        )

    @property
    def question(self) -> str:
        """The question in words."""
        told = ", ".join(f"{name} = {value}" for name, value in (self.given or {}).items())
        return f"P({', '.join(self.names)}{f' | {told}' if told else ''})"

    def __str__(self) -> str:
        return self.verdict


def ambiguity(
    pmf: LowRankPMF,
    names: str | Sequence[str],
    given: Given = None,
    *,
    subsets: Subsets | None = None,
    order: int | None = None,
    steps: int = 60,
) -> Ambiguity:
    """Find two models with the same tables whose answers to a question differ the most.

    From ``pmf`` a walk goes both ways along the directions that leave its tables as they are,
    as far as the answer moves and probabilities stay probabilities.

    Parameters
    ----------
    pmf : LowRankPMF
        The fitted model.
    names : str or sequence of str
        The variables asked about.
    given : mapping, optional
        Evidence, as in :meth:`LowRankPMF.marginal`.
    subsets : sequence of tuples, optional
        The tables that it was fitted to.
    order : int, optional
        All tables of so many variables instead; 3 by default.
    steps : int
        Steps of each walk, at the most.

    Returns
    -------
    Ambiguity
        With both models, both answers, their ``distance``, and a ``verdict`` in words.

    Notes
    -----
    The walk is local: the distance is a lower bound of what models with these tables can differ
    by. An answer is called determined where the directions leave it alone to first order.

    Examples
    --------
    >>> import rejoint as rj
    >>> p = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 4)
    >>> rj.identifiability.ambiguity(p, ["x0", "x1", "x2", "x3"], order=3).distance
    0.0
    """
    if not isinstance(pmf, LowRankPMF):
        raise TypeError(f"ambiguity takes a LowRankPMF, got {type(pmf).__name__}.")
    asked = tuple(pmf.domain.names[n] for n in positions(pmf.domain, names))
    tables = layout(order=order, subsets=subsets, domain=pmf.domain)
    first = pmf.marginal(asked, given)
    told = read_evidence(pmf.domain, given)
    places = positions(pmf.domain, names)
    if in_a_table(tables, {*places, *told}):
        return Ambiguity(asked, given, (pmf, pmf), (first, first), 0.0)
    check_size(tables, pmf)
    fibre = Fibre(tables, pmf)
    answer = question_of(fibre, places, told)
    ends = both_ends(fibre, answer, steps)
    if ends is None:
        return Ambiguity(asked, given, (pmf, pmf), (first, first), 0.0)
    models = fibre.as_model(ends[0]), fibre.as_model(ends[1])
    answers = models[0].marginal(asked, given), models[1].marginal(asked, given)
    gap = float(np.abs(fibre.values(ends[0]) - fibre.values(ends[1])).max())
    return Ambiguity(asked, given, models, answers, gap)


def in_a_table(tables: Layout, variables: set[int]) -> bool:
    """Whether one table holds all of some variables: it has the answer itself."""
    if tables.order is not None:
        return len(variables) <= tables.order
    return any(variables <= set(subset) for subset in tables.subsets)


def question_of(
    fibre: Fibre, asked: Sequence[int], told: Mapping[int, Array]
) -> Callable[[Array], Array]:
    """The answer as a function of the long vector of parameters."""

    def answer(x: Array) -> Array:
        weights, *factors = fibre.parts(x)
        terms = weights
        for n, likelihood in told.items():
            if n not in asked:
                terms = terms * (likelihood @ factors[n])
        sides = [factors[n] * told[n][:, None] if n in told else factors[n] for n in asked]
        cells: Array = rows_of([terms, *sides]).sum(axis=1)
        total = cells.sum()
        # At the edge the evidence may become impossible: nothing is better there.
        return cells / total if total > 0 else np.full(len(cells), np.nan)

    return answer


def both_ends(
    fibre: Fibre, answer: Callable[[Array], Array], steps: int
) -> tuple[Array, Array] | None:
    """The ends of two walks that part the answers; None where nothing moves."""
    start = fibre.start
    null = tangent(fibre, start, np.zeros(len(start), dtype=bool)).null
    moved = np.array([(answer(start + 1e-6 * v) - answer(start - 1e-6 * v)) / 2e-6 for v in null.T])
    if not null.shape[1] or np.abs(moved).max() < SAME:
        return None
    # First along the combinations of cells that move the most, then along what parts the ends.
    best = (start, start)
    for toward in np.linalg.svd(moved, full_matrices=False)[2][:TRIED]:
        ends = parted(fibre, answer, (start, start), toward, steps)
        ends = parted(fibre, answer, ends, np.sign(answer(ends[1]) - answer(ends[0])), steps)
        best = max(best, ends, key=lambda pair: np.abs(answer(pair[1]) - answer(pair[0])).sum())
    return best


def parted(
    fibre: Fibre,
    answer: Callable[[Array], Array],
    ends: tuple[Array, Array],
    toward: Array,
    steps: int,
) -> tuple[Array, Array]:
    """Both ends further apart along one combination of the cells of the answer."""
    low = walk(fibre, ends[0], lambda x: float(-toward @ answer(x)), steps)
    high = walk(fibre, ends[1], lambda x: float(toward @ answer(x)), steps)
    return low, high


def check_size(tables: Layout, pmf: LowRankPMF) -> None:
    """Refuse what would take too long."""
    cells = sum(prod(tables.levels[n] for n in subset) for subset in tables.tables())
    size = cells * (1 + sum(tables.levels)) * pmf.rank
    if size > LARGEST:
        raise ValueError(
            f"The Jacobian of {cells:,} cells at rank {pmf.rank} is too large to walk along: "
            "project the model and the tables on fewer variables."
        )
