"""Mixtures of few classes of sampled tables: fits with a prior, and the evidence for a rank.

Columns and weights have uniform priors. The evidence is that of Laplace's method: how well the
effects of the tables are met, how far the classes are from the mean of their prior, and how much
narrower they are known than before; times the ways to number the classes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import lgamma

import numpy as np

from rejoint.factorization.effects import tables_of_model
from rejoint.factorization.kl import Kl
from rejoint.factorization.log_linear import Sample
from rejoint.factorization.loss import KL, TINY
from rejoint.factorization.problem import (
    TableProblem,
    draw_model,
    own_shares,
    random_model,
)
from rejoint.factorization.table_policy import POLICY
from rejoint.marginals.marginals import Marginals
from rejoint.model import FloatArray, Model
from rejoint.solver.run import run
from rejoint.solver.session import Session
from rejoint.solver.solver import Limits


@dataclass(frozen=True)
class SmoothedTables(TableProblem):
    """Tables with pseudo-counts: one record more in each column, spread by the variable's shares.

    Parameters
    ----------
    pseudo : array (1 + L,), optional
        What is added to each count of each class, weights first, in the unit of the tables.

    Examples
    --------
    >>> tables = (np.array([0.5, 0.5]),)
    >>> problem = SmoothedTables((2,), ((0,),), tables, np.ones(1), pseudo=np.full(3, 0.1))
    >>> round(problem.value(Model.of([1.0], [[[0.5], [0.5]]])), 4)  # squares, and two logarithms
    0.1386
    """

    pseudo: FloatArray | None = None

    @classmethod
    def of(cls, marginals: Marginals, records: float) -> "SmoothedTables":
        """The problem of counted tables."""
        # Noise that was added for privacy may leave cells below zero.
        shares = (np.maximum(marginals.shares(i), 0.0) for i in range(len(marginals)))
        tables = tuple(np.ascontiguousarray(table) for table in shares)
        levels, subsets = tuple(marginals.domain.shape), marginals.index_subsets
        plain = TableProblem(levels, subsets, tables, np.ones(len(tables)), (), KL)
        # Each variable's counts come once from every table that holds it.
        times = [len(held) / records for held in plain.tables_with]
        own = own_shares(plain)
        columns = [t * (o + 1e-3 / len(o)) for t, o in zip(times, own, strict=True)]
        pseudo = np.concatenate([[len(tables) / records], *columns])
        return cls(levels, subsets, tables, plain.weight, (), KL, pseudo=pseudo)

    def value(self, model: Model) -> float:
        """The divergence, less the logarithm of the prior."""
        return super().value(model) - self._log_prior(model)

    def gradient(self, model: Model) -> tuple[float, FloatArray]:
        """The same and its slope."""
        value, slope = super().gradient(model)
        if self.pseudo is None:
            return value, slope
        slope = slope - self.pseudo[:, None] / np.maximum(model.stacked, TINY)
        return value - self._log_prior(model), slope

    def _log_prior(self, model: Model) -> float:
        if self.pseudo is None:
            return 0.0
        logs = np.log(np.maximum(model.stacked, TINY))
        return float(self.pseudo @ logs.sum(axis=1))


def fit_rank(
    problem: TableProblem,
    rank: int,
    records: float,
    session: Session,
    below: Model | None = None,
    starts: int = 3,
    steps: int = POLICY.rank_steps,
) -> Model:
    """Return the best model of a rank: some EM from a few starts, then scoring from the best.

    Examples
    --------
    >>> table = np.array([[0.4, 0.1], [0.1, 0.4]])
    >>> problem = SmoothedTables((2, 2), ((0, 1),), (table,), np.ones(1), (), KL)
    >>> fit_rank(problem, 1, 100.0, Session(np.random.default_rng(0))).parts[0].ravel().round(3)
    array([0.5, 0.5])
    """
    # A gain of half a unit of log-likelihood, which each variable's tables count several times.
    gain = 0.5 * float(np.mean([len(held) for held in problem.tables_with])) / records
    quick = Kl(dense_limit=0, limits=Limits(max_steps=POLICY.first_steps, progress=1e-3, gain=gain))
    models = [random_model(problem, rank, session.rng) for _ in range(starts)]
    if below is not None and below.rank < rank:
        models[0] = widen(below, rank, own_shares(problem), session.rng)
    quiet = Session(session.rng, session.report)
    runs = [run(quick, problem, model, quiet) for model in models]
    best = min(runs, key=lambda each: each.objective)
    finish = Kl(limits=Limits(max_steps=steps, progress=1e-4, gain=gain))
    return run(finish, problem, best.model, quiet).model


def widen(model: Model, rank: int, own: list[FloatArray], rng: np.random.Generator) -> Model:
    """The classes of a smaller model, and new ones drawn around the variables' own shares.

    Examples
    --------
    >>> small = Model.of([1.0], [[[0.5], [0.5]]])
    >>> widen(small, 3, [np.array([0.5, 0.5])], np.random.default_rng(0)).rank
    3
    """
    new = draw_model(own, rank - model.rank, rng)
    share = new.rank / rank
    weights = np.concatenate([(1.0 - share) * model.weights, share * new.weights])
    return Model.of(weights, [np.hstack(pair) for pair in zip(model.parts, new.parts, strict=True)])


@dataclass(frozen=True)
class RankEvidence:
    """A model of low rank, and what speaks for it.

    ``evidence`` is on the scale of :class:`~rejoint.factorization.log_linear.LogLinear`'s.
    ``excess`` is how far the misfit of the tables is above what chance makes it, in standard
    deviations. ``open`` counts directions about which the tables say less than the prior.
    """

    model: Model
    evidence: float
    excess: float
    open: int


def weigh_rank(sample: Sample, model: Model) -> RankEvidence:
    """Return the evidence for a model of low rank, by Laplace's method."""
    from scipy.linalg import cho_factor, cho_solve, solve_triangular  # slow to import

    effects, rank = sample.effects, model.rank
    tabulate = tables_of_model(model)
    spread = sample.covariance(effects.covariance(tabulate))
    away = sample.values - effects.values(tabulate)
    lower, _ = cho_factor(spread, lower=True)
    misfit = solve_triangular(lower, sample.root * away, lower=True)
    tangent = sample.root[:, None] * effects.tangent(model)
    slopes = solve_triangular(lower, tangent, lower=True)
    # In units of the prior: uniform columns of I levels have variance 1/(I (I + 1)).
    sizes = [rank, *np.repeat(effects.levels, np.array(effects.levels) - 1)]
    unit = np.repeat(1.0 / np.sqrt([size * (size + 1.0) for size in sizes]), rank)
    slopes = slopes * unit
    # Weights add up to one.
    slopes[:, :rank] -= slopes[:, :rank].mean(axis=1, keepdims=True)
    means = [h.T @ part for h, part in zip(effects.contrasts, model.parts, strict=True)]
    shift = np.concatenate([model.weights - 1.0 / rank, *(m.ravel() for m in means)]) / unit
    matrix = slopes.T @ slopes
    known = matrix.copy()
    matrix[np.diag_indices_from(matrix)] += 1.0
    factor = cho_factor(matrix, lower=True)
    pull = slopes.T @ misfit - shift
    total = float(misfit @ misfit + shift @ shift - pull @ cho_solve(factor, pull))
    occam = float(np.log(np.diag(factor[0])).sum())
    used = float(np.trace(cho_solve(factor, known)))
    # Classes that the tables determine can be numbered in many ways; those that they do not are
    # alike, and renumbering them changes nothing.
    distinct = min(rank, used / (len(unit) / rank))
    evidence = -0.5 * total - occam + lgamma(distinct + 1.0)
    pulled = slopes.T @ misfit
    left = float(misfit @ misfit - pulled @ cho_solve(factor, pulled))
    free = max(effects.size - used, 1.0)
    # One direction is none: weights add up to one.
    loose = int((np.linalg.eigvalsh(known) < 1.0).sum()) - 1
    return RankEvidence(model, evidence, (left - free) / np.sqrt(2.0 * free), loose)


def average_models(found: Sequence[RankEvidence]) -> Model:
    """Return the mean of models, each by its evidence; the best alone where all are alike.

    Tables that leave a rank open are met by many models. Their mean is nearer to the truth than
    most of them.

    Examples
    --------
    >>> one, other = (Model.of([1.0], [[[x], [1 - x]]]) for x in (0.2, 0.4))
    >>> pair = [RankEvidence(model, -3.0, 0.0, 1) for model in (one, other)]
    >>> average_models(pair).weights
    array([0.5, 0.5])
    """
    best = max(found, key=lambda one: one.evidence)
    near = [one for one in found if one.evidence > best.evidence - POLICY.like_evidence]
    if max(_distance(best.model, one.model) for one in near) < POLICY.like_models:
        return best.model
    share = np.exp([one.evidence - best.evidence for one in near])
    share /= share.sum()
    weights = np.concatenate([s * one.model.weights for s, one in zip(share, near, strict=True)])
    parts = zip(*(one.model.parts for one in near), strict=True)
    return Model.of(weights, [np.hstack(part) for part in parts])


def _distance(one: Model, other: Model) -> float:
    """Largest total variation between tables of four variables, of some of them."""
    number = len(one.parts)
    subsets = [
        tuple(sorted((start + k) % number for k in range(min(4, number))))
        for start in range(number)
    ]
    tables = (tables_of_model(model) for model in (one, other))
    first, second = ([tabulate(subset) for subset in subsets] for tabulate in tables)
    return max(0.5 * float(np.abs(a - b).sum()) for a, b in zip(first, second, strict=True))
