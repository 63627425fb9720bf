"""Ambiguity: how far an answer can differ between models that have the same tables.

The state is one long vector ``x``: weights, then the factors of all variables, class by class in
every row. A step goes along the null space of the tables' Jacobian, and Gauss-Newton brings it back
onto the tables; probabilities that reach zero stay there while the walk pushes against them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.domain import positions
from rejoint.identifiability.layout import Subsets, TableLayout, read_layout
from rejoint.marginals.subsets import Subset
from rejoint.model import Layout
from rejoint.pmf.pmf import LowRankPMF
from rejoint.queries.evidence import Given, read_evidence
from rejoint.queries.tables import khatri_rao
from rejoint.text import format_number, plural

Array = NDArray[np.float64]
Value = Callable[[Array], float]
AnswerOf = Callable[[Array], Array]

#: Differences between the tables, in any cell, up to which they are the same.
EQUAL_CELLS = 1e-12

#: Eigenvalues of ``J^T J`` below this share of the largest count as zero.
NULL_SHARE = 1e-13

#: Entries of a Jacobian up to which walks are made.
MOST_JACOBIAN_ENTRIES = 20_000_000

#: Directions in which walks start.
N_WALKS = 3

#: Total variation distance below which two answers are the same.
SAME_ANSWER = 1e-6

#: Step of numerical derivatives.
DERIVATIVE_STEP = 1e-6


@dataclass(frozen=True)
class Ambiguity:
    """Two models that explain the tables equally well, and their answers to a question.

    Parameters
    ----------
    names : tuple of str
        The variables asked about.
    given : mapping or None
        The evidence.
    models : tuple of two LowRankPMF
        The two ends of the walk; twice the model itself if the answer is determined.
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
        """Total variation distance of the two answers: they can differ at least by this."""
        return 0.5 * float(np.abs(self.answers[0] - self.answers[1]).sum())

    @property
    def verdict(self) -> str:
        """What the two models show.

        Examples
        --------
        >>> import rejoint as rj
        >>> p = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 4)
        >>> rj.identifiability.ambiguity(p, ["x0", "x1"], order=2).verdict
        'P(x0, x1) is determined: no small change of the model that keeps the tables changes it.'
        """
        question = self.question
        if self.distance < SAME_ANSWER:
            return (
                f"{question} is determined: no small change of the model that keeps the tables "
                "changes it."
            )
        gaps = np.abs(self.answers[0] - self.answers[1])
        cell = np.unravel_index(int(np.argmax(gaps)), gaps.shape)
        domain = self.models[0].domain
        event = ", ".join(
            f"{name} = {domain[name].levels[i]}" for name, i in zip(self.names, cell, strict=True)
        )
        low, high = sorted(float(answer[cell]) for answer in self.answers)
        return (
            f"{question} is not determined: two models of rank {self.models[0].rank} whose tables "
            f"agree to {max(self.gap, 1e-16):.0e} differ by {self.distance:.2g} in total "
            f"variation, or more; {event} has probability {format_number(low)} in one and "
            f"{format_number(high)} in the other."
        )

    @property
    def question(self) -> str:
        """The question as text."""
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

    From ``pmf`` a walk goes both ways along the directions that keep its tables, as far as the
    answer moves and probabilities stay probabilities.

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
        Tables of all subsets of this many variables; 3 by default.
    steps : int
        Largest number of steps of each walk.

    Returns
    -------
    Ambiguity
        With both models, both answers, their ``distance``, and a ``verdict``.

    Notes
    -----
    The walk is local: models with these tables differ at least by this distance. An answer is
    called determined if the directions do not change it to first order.

    Examples
    --------
    >>> import rejoint as rj
    >>> p = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 4)
    >>> rj.identifiability.ambiguity(p, ["x0", "x1", "x2", "x3"], order=3).distance
    0.0
    """
    if not isinstance(pmf, LowRankPMF):
        raise TypeError(f"ambiguity takes a LowRankPMF, got {type(pmf).__name__}.")
    places = positions(pmf.domain, names)
    asked = tuple(pmf.domain.names[n] for n in places)
    tables = read_layout(order=order, subsets=subsets, domain=pmf.domain)
    evidence = read_evidence(pmf.domain, given)
    first = pmf.marginal(asked, given)
    determined = Ambiguity(asked, given, (pmf, pmf), (first, first), 0.0)
    if _holds(tables, {*places, *evidence}):
        return determined
    _check_size(tables, pmf)
    fiber = Fiber(tables, pmf)
    ends = _find_ends(fiber, _answer_of(fiber, places, evidence), steps)
    if ends is None:
        return determined
    models = fiber.to_pmf(ends[0]), fiber.to_pmf(ends[1])
    answers = models[0].marginal(asked, given), models[1].marginal(asked, given)
    gap = float(np.abs(fiber.values(ends[0]) - fiber.values(ends[1])).max())
    return Ambiguity(asked, given, models, answers, gap)


def _holds(tables: TableLayout, variables: set[int]) -> bool:
    """Whether one table holds all these variables, and so the answer."""
    if tables.order is not None:
        return len(variables) <= tables.order
    return any(variables <= set(subset) for subset in tables.subsets)


def _check_size(tables: TableLayout, pmf: LowRankPMF) -> None:
    """Refuse problems that take too long."""
    cells = sum(prod(tables.levels[n] for n in subset) for subset in tables.iter_subsets())
    if cells * (1 + sum(tables.levels)) * pmf.rank > MOST_JACOBIAN_ENTRIES:
        raise ValueError(
            f"The Jacobian of {plural(cells, 'cell')} at rank {pmf.rank} is too large to follow: "
            "project the model and the tables on fewer variables."
        )


@dataclass(frozen=True)
class Fiber:
    """All models of one rank that share the tables of a given one."""

    tables: TableLayout
    model: LowRankPMF

    @cached_property
    def layout(self) -> Layout:
        """Rows of the vector: one of weights, then those of each factor."""
        return Layout((1, *self.tables.levels))

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
        """Jacobian of what must stay one: the weights, and every column of every factor."""
        rank, levels = self.model.rank, self.tables.levels
        rows = np.zeros((1 + rank * len(levels), len(self.start)))
        rows[0, :rank] = 1.0
        rows[1:, rank:] = np.kron(np.repeat(np.eye(len(levels)), levels, axis=1), np.eye(rank))
        return rows

    def split(self, x: Array) -> list[Array]:
        """Weights (1, F) and factors (I_n, F)."""
        return self.layout.split(x.reshape(-1, self.model.rank))

    def values(self, x: Array) -> Array:
        """All tables, one after another, and all sums that must stay one."""
        weights, *factors = self.split(x)
        cells = [
            khatri_rao([factors[n] for n in subset], weights[0]).sum(axis=1)
            for subset in self.subsets
        ]
        columns = [factor.sum(axis=0) for factor in factors]
        return np.concatenate([*cells, [weights.sum()], *columns])

    @cached_property
    def subsets(self) -> list[Subset]:
        """The subsets that have a table."""
        return list(self.tables.iter_subsets())

    def jacobian(self, x: Array) -> Array:
        """Jacobian of ``values``, (rows, parameters)."""
        weights, *factors = self.split(x)
        rank, one = self.model.rank, np.ones(self.model.rank)
        blocks = []
        for subset in self.subsets:
            chosen = [weights, *(factors[n] for n in subset)]
            block = np.zeros((prod(len(part) for part in chosen), len(x)))
            for slot, n in enumerate((-1, *subset)):
                left, right = khatri_rao(chosen[:slot], one), khatri_rao(chosen[slot + 1 :], one)
                outer = left[:, None, :] * right[None]  # (cells left, cells right, F)
                cells = block.reshape(len(left), -1, len(right), self.layout.size, rank)
                for i in range(cells.shape[1]):
                    cells[:, i, :, self.layout.offsets[n + 1] + i] = outer
            blocks.append(block)
        return np.vstack([*blocks, self.sums])

    def to_pmf(self, x: Array) -> LowRankPMF:
        """The model of a long vector."""
        weights, *factors = (np.maximum(part, 0.0) for part in self.split(x))
        columns = [factor / factor.sum(axis=0) for factor in factors]
        return LowRankPMF(weights[0] / weights.sum(), columns, self.model.domain)


def _answer_of(fiber: Fiber, asked: Sequence[int], evidence: Mapping[int, Array]) -> AnswerOf:
    """The answer as a function of the long vector of parameters."""

    def answer(x: Array) -> Array:
        (terms,), *factors = fiber.split(x)
        for n, likelihood in evidence.items():
            if n not in asked:
                terms = terms * (likelihood @ factors[n])
        sides = [factors[n] * evidence[n][:, None] if n in evidence else factors[n] for n in asked]
        cells: Array = khatri_rao(sides, terms).sum(axis=1)
        total = cells.sum()
        # At the edge the evidence may become impossible: nothing is better there.
        return cells / total if total > 0 else np.full(len(cells), np.nan)

    return answer


def _find_ends(fiber: Fiber, answer: AnswerOf, steps: int) -> tuple[Array, Array] | None:
    """The ends of two walks that separate the answers; None if nothing moves."""
    start = fiber.start
    null = _tangent(fiber, start, np.zeros(len(start), dtype=bool)).null
    moved = _slopes(answer, start, null)
    if not null.shape[1] or np.abs(moved).max() < SAME_ANSWER:
        return None
    # First along the combinations of cells that move the most, then along what separates the ends.
    best = (start, start)
    for toward in np.linalg.svd(moved, full_matrices=False)[2][:N_WALKS]:
        ends = _separate(fiber, answer, (start, start), toward, steps)
        ends = _separate(fiber, answer, ends, np.sign(answer(ends[1]) - answer(ends[0])), steps)
        best = max(best, ends, key=lambda pair: np.abs(answer(pair[1]) - answer(pair[0])).sum())
    return best


def _separate(
    fiber: Fiber, answer: AnswerOf, ends: tuple[Array, Array], toward: Array, steps: int
) -> tuple[Array, Array]:
    """Walk from both ends, apart along one combination of the cells of the answer."""
    low = _walk(fiber, ends[0], lambda x: float(-toward @ answer(x)), steps)
    high = _walk(fiber, ends[1], lambda x: float(toward @ answer(x)), steps)
    return low, high


@dataclass(frozen=True)
class Tangent:
    """Directions at a point that keep the tables, and the step back onto them."""

    null: Array  # (P, K)
    back: Array  # (P, rows), pseudo-inverse of the Jacobian


def _tangent(fiber: Fiber, x: Array, held: NDArray[np.bool_]) -> Tangent:
    """Tangent with the parameters ``held`` fixed."""
    jacobian = fiber.jacobian(x)
    jacobian[:, held] = 0.0
    values, vectors = np.linalg.eigh(jacobian.T @ jacobian)
    zero = values <= NULL_SHARE * values[-1]
    null = vectors[:, zero]
    # A held parameter is a null direction of its own: it is left out.
    if held.any():
        free = null.copy()
        free[held] = 0.0
        u, s, _ = np.linalg.svd(free, full_matrices=False)
        null = u[:, s > 0.5]
    kept = vectors[:, ~zero]
    return Tangent(null, (kept / values[~zero]) @ (kept.T @ jacobian.T))


def _slopes(value: Callable[[Array], Any], x: Array, directions: Array) -> Array:
    """Derivatives of a function along directions (P, K)."""
    h = DERIVATIVE_STEP
    return np.array([(value(x + h * v) - value(x - h * v)) / (2 * h) for v in directions.T])


def _ascent(fiber: Fiber, x: Array, value: Value) -> tuple[Array, Tangent]:
    """Steepest feasible direction that keeps the tables, and its tangent."""
    zero = x <= EQUAL_CELLS
    held = np.zeros(len(x), dtype=bool)
    for _ in range(len(x)):
        here = _tangent(fiber, x, held)
        direction = here.null @ _slopes(value, x, here.null)
        pushed = zero & ~held & (direction < 0)
        if not pushed.any():
            break
        held |= pushed
    return direction, here


def _return_to_tables(fiber: Fiber, x: Array, here: Tangent) -> Array | None:
    """Step back onto the tables; None if that fails or leaves the simplex."""
    for _ in range(12):
        gap = fiber.values(x) - fiber.target
        if np.abs(gap).max() <= EQUAL_CELLS:
            return np.where(x < EQUAL_CELLS, 0.0, x) if x.min() >= -EQUAL_CELLS else None
        x = x - here.back @ gap
    return None


def _walk(fiber: Fiber, x: Array, value: Value, steps: int) -> Array:
    """Raise ``value`` as far as the walk goes, and keep the tables."""
    length, before = 0.1, value(x)
    for _ in range(steps):
        direction, here = _ascent(fiber, x, value)
        size = float(np.linalg.norm(direction))
        if size < 1e-7:
            break
        direction = direction / size
        toward = direction < -1e-12
        room = float((x[toward] / -direction[toward]).min()) if toward.any() else length
        length = min(2 * length, max(room, 1e-12))
        while length > 1e-9:
            trial = _return_to_tables(fiber, x + length * direction, here)
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
