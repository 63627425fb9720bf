"""Ambiguity: how far an answer can differ between models that have the same tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from rejoint.arrays import FloatArray
from rejoint.domain.domain import positions
from rejoint.identifiability.composite_view import CompositeView
from rejoint.identifiability.fiber import Fiber, Goal
from rejoint.identifiability.layout import Subsets, TableLayout, read_layout
from rejoint.identifiability.uniqueness_proof import find_proof
from rejoint.kernels.backend import one_blas_thread
from rejoint.marginals.marginals import Marginals
from rejoint.pmf.pmf import LowRankPMF
from rejoint.queries.answer_bounds import AnswerBounds, bound_answer
from rejoint.queries.evidence import Given, read_evidence
from rejoint.queries.tables import khatri_rao
from rejoint.text import format_number, plural

#: Squared number of parameters times number of tables up to which models are followed.
MOST_WORK = 20_000_000

#: Rounds of the search without a larger distance after which it ends. Of 19 small problems 9 left
#: one below .99 of the best of many restarts, 18 none, in 1.6 times the time.
PATIENCE = 18

#: Total variation distance below which two answers are the same.
SAME_ANSWER = 1e-6

Ends = tuple[FloatArray, FloatArray]  # two models

#: Cells of the joint up to which the range of an answer over all joints is computed.
MOST_JOINT_CELLS = 10_000


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
        The two models; twice the model itself if no other answer was found.
    answers : tuple of two arrays
        ``marginal(names, given)`` of each.
    gap : float
        Largest difference to the tables of the given model, in any cell.
    proof : str
        Why no two models of this rank with these tables differ by more; empty if ``distance`` is
        a lower bound.
    limits : AnswerBounds or None
        Range of the cell that differs most over all joints with these tables, of any rank.

    Examples
    --------
    >>> import rejoint as rj
    >>> p = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 4)
    >>> two = rj.identifiability.ambiguity(p, ["x0"], {"x1": 0, "x2": 0, "x3": 0}, order=2)
    >>> two.distance > 0.1, two.gap < 1e-10, two.proof
    (True, True, '')
    """

    names: tuple[str, ...]
    given: Given
    models: tuple[LowRankPMF, LowRankPMF]
    answers: tuple[FloatArray, FloatArray]
    gap: float
    proof: str = ""
    limits: AnswerBounds | None = None

    @property
    def distance(self) -> float:
        """Total variation distance of the two answers."""
        return 0.5 * float(np.abs(self.answers[0] - self.answers[1]).sum())

    @property
    def is_proved(self) -> bool:
        """Whether no two models differ by more; otherwise the distance is a lower bound."""
        return bool(self.proof)

    @property
    def verdict(self) -> str:
        """What the two models show.

        Examples
        --------
        >>> import rejoint as rj
        >>> p = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 4)
        >>> rj.identifiability.ambiguity(p, ["x0", "x1"], order=2).verdict
        'P(x0, x1) is determined: a table holds these variables.'
        """
        rank = self.models[0].rank
        if self.distance < SAME_ANSWER:
            if self.proof:
                return f"{self.question} is determined: {self.proof}."
            return (
                f"{self.question} is determined as far as is known: no model of rank {rank} with "
                "these tables was found that answers otherwise."
            )
        cell = self._cell
        domain = self.models[0].domain
        event = ", ".join(
            f"{name} = {domain[name].levels[i]}" for name, i in zip(self.names, cell, strict=True)
        )
        low, high = sorted(float(answer[cell]) for answer in self.answers)
        joints = ""
        if self.limits is not None:
            ends = f"{format_number(self.limits.low)} to {format_number(self.limits.high)}"
            joints = f" Over all joints with these tables it is {ends}."
        more = f", and none by more: {self.proof}" if self.proof else ", or more"
        return (
            f"{self.question} is not determined: two models of rank {rank} whose tables "
            f"agree to {max(self.gap, 1e-16):.0e} differ by {self.distance:.2g} in total "
            f"variation{more}; {event} has probability {format_number(low)} in one and "
            f"{format_number(high)} in the other.{joints}"
        )

    @property
    def _cell(self) -> tuple[int, ...]:
        """The cell whose probabilities differ the most."""
        gaps = np.abs(self.answers[0] - self.answers[1])
        return tuple(int(i) for i in np.unravel_index(int(np.argmax(gaps)), gaps.shape))

    @property
    def question(self) -> str:
        """The question as text."""
        evidence = ", ".join(f"{name} = {value}" for name, value in (self.given or {}).items())
        return f"P({', '.join(self.names)}{f' | {evidence}' if evidence else ''})"

    def __str__(self) -> str:
        return self.verdict


@one_blas_thread()
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

    From ``pmf``, models near it, and fits of its tables from random starts, the answer is raised
    and lowered along models that keep the tables, as far as probabilities stay probabilities, and
    again from both ends, until nothing grows.

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
    The distance is a lower bound, unless ``proof`` says that it is the largest. Models of this rank
    are compared; ``limits`` is the range over joints of any rank.

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
    view = CompositeView.of(tables, pmf)
    proof = _proof_of(tables, view, {*places, *evidence})
    if proof:
        return Ambiguity(asked, given, (pmf, pmf), (first, first), 0.0, proof)
    if not view.is_whole:
        raise ValueError(
            "Models with blocks are followed where each table holds its blocks whole: choose such "
            "subsets."
        )
    _check_size(view)
    fiber = Fiber(view.tables, view.model)
    low, high = _search(fiber, Question.of(fiber, view, places, evidence), steps)
    models = view.to_pmf(low), view.to_pmf(high)
    answers = models[0].marginal(asked, given), models[1].marginal(asked, given)
    if 0.5 * np.abs(answers[0] - answers[1]).sum() < SAME_ANSWER:
        return Ambiguity(asked, given, (pmf, pmf), (first, first), 0.0)
    two = Ambiguity(asked, given, models, answers, max(fiber.gap(low), fiber.gap(high)))
    return _add_limits(two, pmf, tables, places, evidence)


def _proof_of(tables: TableLayout, view: CompositeView, variables: set[int]) -> str:
    """Why the answer is determined; empty if that is not proved."""
    if any(variables <= {*subset} for subset in tables.iter_subsets()):
        return "a table holds these variables"
    if view.tables.uncovered or not view.model.weights.all():
        return ""
    proof, _ = find_proof(view.tables, view.model)
    rank = view.model.rank
    return f"no other model of rank {rank} has these tables ({proof})" if proof else ""


def _check_size(view: CompositeView) -> None:
    """Refuse problems that take too long."""
    parameters, tables = view.model.rank * (1 + sum(view.tables.levels)), view.tables.n_tables
    if parameters**2 * tables > MOST_WORK:
        raise ValueError(
            f"{plural(parameters, 'parameter')} and {plural(tables, 'table')} are too large to "
            "follow: project the model and the tables on fewer variables."
        )


def _add_limits(
    two: Ambiguity,
    pmf: LowRankPMF,
    tables: TableLayout,
    places: Sequence[int],
    evidence: Mapping[int, FloatArray],
) -> Ambiguity:
    """Add the range over all joints, which may prove that no two models differ by more."""
    if prod(tables.levels) > MOST_JOINT_CELLS:
        return two
    own = Marginals.from_pmf(pmf, subsets=[tables.names(s) for s in tables.iter_subsets()])
    event = dict(evidence)
    for n, i in zip(places, two._cell, strict=True):
        event[n] = event.get(n, 1.0) * np.eye(tables.levels[n])[i]
    limits = bound_answer(own, event, evidence or None)
    is_widest = two.answers[0].size == 2 and two.distance > limits.width - SAME_ANSWER
    proof = "the answers are the ends of the range over all joints" if is_widest else ""
    return replace(two, limits=limits, proof=proof)


@dataclass(frozen=True)
class Question:
    """An answer as a function of a model: ``views`` sum the levels of each variable to what counts.

    The answer is a table with one axis for each view, divided by its sum.
    """

    fiber: Fiber
    views: dict[int, FloatArray]

    @classmethod
    def of(
        cls,
        fiber: Fiber,
        view: CompositeView,
        asked: Sequence[int],
        evidence: Mapping[int, FloatArray],
    ) -> "Question":
        """Rows of cells asked for, (K, I), times their likelihood, for each variable involved."""
        views = {}
        for g, members in enumerate(view.partition):
            rows: FloatArray = np.ones((1, 1))
            for n in members:
                size = view.pmf.domain.shape[n]
                own = (np.eye(size) if n in asked else np.ones((1, size))) * evidence.get(n, 1.0)
                rows = np.asarray(np.kron(rows, own))
            if {*members} & {*asked, *evidence}:
                views[g] = rows
        return cls(fiber, views)

    def parts(self, x: FloatArray) -> list[FloatArray]:
        """Weights (1, F) and the views of factors (K, F), whose products are the answer."""
        weights, factors = self.fiber.split(x)
        return [weights[None], *(rows @ factors[n] for n, rows in self.views.items())]

    def answer(self, x: FloatArray) -> FloatArray:
        """The answer at a model, as a vector; not a number where the evidence is impossible."""
        cells = khatri_rao(self.parts(x), np.ones(x.shape[1])).sum(axis=1)
        total = cells.sum()
        return np.asarray(cells / total if total > 0 else np.full(len(cells), np.nan))

    def distance(self, ends: Ends) -> float:
        """Total variation distance of the answers of two models."""
        return 0.5 * float(np.abs(self.answer(ends[1]) - self.answer(ends[0])).sum())

    def goal(self, toward: FloatArray) -> Goal:
        """A linear function of the answer, and its gradient in the model."""

        def value_and_slope(x: FloatArray) -> tuple[float, FloatArray]:
            parts, one = self.parts(x), np.ones(x.shape[1])
            total = khatri_rao(parts, one).sum()
            value = float(toward @ self.answer(x))
            slope = np.zeros_like(x)
            if not total > 0:
                return -np.inf, slope
            cells = ((toward - value) / total).reshape([len(part) for part in parts])
            for k, n in enumerate([-1, *self.views]):
                others = khatri_rao(parts[:k] + parts[k + 1 :], one)
                along = np.moveaxis(cells, k, 0).reshape(len(parts[k]), -1) @ others
                slope[self.fiber.layout.rows(n + 1)] += along if n < 0 else self.views[n].T @ along
            return value, slope

        return value_and_slope


def _search(fiber: Fiber, question: Question, steps: int) -> tuple[FloatArray, FloatArray]:
    """The two models whose answers differ the most, of all that were met."""
    rng = np.random.default_rng(0)
    best, widest, stale, turn = (fiber.start, fiber.start), 0.0, 0, 0

    def separate(ends: Ends, gain: float) -> Ends:
        """Walk from two models apart, until their answers differ no more."""
        toward, width, before = np.sign(gaps(ends)), question.distance(ends), -1.0
        toward[toward == 0.0] = np.sign(rng.standard_normal(int((toward == 0.0).sum())))
        while width > before + gain:
            before = width
            low = fiber.climb(ends[0], question.goal(-toward), steps, gain)
            high = fiber.climb(ends[1], question.goal(toward), steps, gain)
            ends = (low, high)
            width, toward = question.distance(ends), np.sign(gaps(ends))
        return ends

    def gaps(ends: Ends) -> FloatArray:
        return question.answer(ends[1]) - question.answer(ends[0])

    while stale < PATIENCE:
        origin: FloatArray | None = [best[turn % 2], fiber.start, None][turn % 3]
        if origin is None:
            origin = fiber.fit(fiber.random_start(rng), 60)
        if origin is None:
            origin = best[turn % 2]
        around = rng.standard_normal(origin.shape) * 0.5 * (turn > 0)
        moved = fiber.move(origin, origin + around)
        origin = origin if moved is None else moved
        ends = separate((origin, origin), max(0.003 * widest, SAME_ANSWER))
        # One end of this round may go with one of the best.
        pairs = [ends, *((a, b) for a in best for b in ends)]
        ends = max(pairs, key=question.distance)
        width = question.distance(ends)
        stale, turn = 0 if width > 1.003 * widest + SAME_ANSWER else stale + 1, turn + 1
        if width > widest:
            best, widest = ends, width
    return separate(best, SAME_ANSWER)
