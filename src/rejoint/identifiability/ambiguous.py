"""Ambiguity: how far an answer can differ between models that have the same tables."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from rejoint.domain import positions
from rejoint.identifiability.layout import Layout, Subsets, layout
from rejoint.identifiability.walking import Fibre, rows_of, tangent, walk
from rejoint.pmf import LowRankPMF
from rejoint.pmf.evidence import Given, likelihoods

__all__ = ["Ambiguity", "ambiguity"]

Array = NDArray[np.float64]

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
    told = likelihoods(pmf.domain, given)
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
