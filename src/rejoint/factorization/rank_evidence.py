"""The evidence for a mixture of few classes, by Laplace's method, and the rank of most evidence.

Columns and weights of classes have uniform priors. The evidence is how well the effects of the
tables are met, how far the classes are from the mean of their prior, and how much narrower they are
known than before; times the ways to number the classes.
"""

from dataclasses import dataclass
from math import lgamma, log

import numpy as np

from rejoint.arrays import FloatArray
from rejoint.factorization.kl import Kl
from rejoint.factorization.log_linear import Sample
from rejoint.factorization.loss import KL, TINY
from rejoint.factorization.problem import TableProblem, own_shares, random_model
from rejoint.factorization.table_policy import POLICY
from rejoint.marginals.marginals import Marginals
from rejoint.model import Model
from rejoint.queries.tables import tables_of_model
from rejoint.solver.run import run
from rejoint.solver.session import Session
from rejoint.solver.solver import Limits


@dataclass(frozen=True)
class SmoothedTables(TableProblem):
    """Tables with pseudo-counts: one record more in each column, spread by the variable's shares.

    ``pseudo`` (1 + L,) is added to each count of each class, weights first, in the unit of the
    tables.
    """

    pseudo: FloatArray | float = 0.0

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
        pseudo = np.reshape(self.pseudo, (-1, 1))
        return value - self._log_prior(model), slope - pseudo / np.maximum(model.stacked, TINY)

    def _log_prior(self, model: Model) -> float:
        return float(np.sum(self.pseudo * np.log(np.maximum(model.stacked, TINY)).sum(axis=1)))


def fit_rank(
    problem: TableProblem,
    rank: int,
    records: float,
    session: Session,
    below: Model | None = None,
    starts: int = 3,
    steps: int = POLICY.rank_steps,
) -> Model:
    """Return the best model of a rank: some EM from a few starts, then scoring from the best."""
    # A gain of half a unit of log-likelihood, which each variable's tables count several times.
    gain = 0.5 * float(np.mean([len(held) for held in problem.tables_with])) / records
    quick = Kl(dense_limit=0, limits=Limits(max_steps=POLICY.first_steps, progress=1e-3, gain=gain))
    models = [random_model(problem, rank, session.rng) for _ in range(starts)]
    if below is not None:
        models[0] = below.extend(rank, own_shares(problem), session.rng)
    quiet = Session(session.rng, session.report)
    runs = [run(quick, problem, model, quiet) for model in models]
    best = min(runs, key=lambda one: one.objective)
    finish = Kl(limits=Limits(max_steps=steps, progress=1e-4, gain=gain))
    return run(finish, problem, best.model, quiet).model


@dataclass(frozen=True)
class RankEvidence:
    """A model of low rank, and the evidence for it.

    ``evidence`` is on the scale of :class:`~rejoint.factorization.log_linear.LogLinear`'s.
    """

    model: Model
    evidence: float


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
    information = matrix.copy()
    matrix[np.diag_indices_from(matrix)] += 1.0
    factor = cho_factor(matrix, lower=True)
    score = slopes.T @ misfit - shift
    total = float(misfit @ misfit + shift @ shift - score @ cho_solve(factor, score))
    occam = float(np.log(np.diag(factor[0])).sum())
    used = float(np.trace(cho_solve(factor, information)))
    # Classes that the tables determine can be numbered in many ways; those that they do not are
    # alike, and renumbering them changes nothing.
    distinct = min(rank, used / (len(unit) / rank))
    evidence = -0.5 * total - occam + lgamma(distinct + 1.0)
    return RankEvidence(model, evidence)


class RankSearch:
    """Finds the rank of largest evidence: doubled ranks first, then those between.

    Parameters
    ----------
    sample : Sample
        The effects.
    tables : SmoothedTables
        The tables.
    rival : float
        Evidence of the log-linear model.
    session : Session
        Randomness and progress.
    """

    def __init__(
        self, sample: Sample, tables: SmoothedTables, rival: float, session: Session
    ) -> None:
        self.sample, self.tables, self.rival, self.session = sample, tables, rival, session
        self.tried: dict[int, RankEvidence] = {}
        self.per_class = tables.layout.parameters(2) - tables.layout.parameters(1)
        most = POLICY.most_parameters * sample.effects.size
        self.largest = int((most + 1) // self.per_class)
        self.records = float(np.median(sample.records))
        odds = log(1.0 / POLICY.least_share - 1.0)
        self.least = rival - POLICY.undervalued - POLICY.evidence_spread * odds

    def run(self) -> RankEvidence | None:
        """The best rank, None where its share in the answer would be next to nothing."""
        rank = 2
        while rank <= self.largest and self._is_worth(rank):
            self.weigh(rank)
            rank *= 2
        if rank > self.largest > 2 and self._is_worth(self.largest):
            self.weigh(self.largest)
        if not self.tried or not self._is_near():
            return None
        self._climb()
        return self.best if self.best.evidence > self.least else None

    @property
    def is_long(self) -> bool:
        """Whether weighing a rank takes more than a second."""
        return self.sample.effects.size > POLICY.quick_effects

    @property
    def best(self) -> RankEvidence:
        """The rank of largest evidence so far."""
        return max(self.tried.values(), key=lambda one: one.evidence)

    def weigh(self, rank: int) -> float:
        """Evidence of a rank."""
        if rank not in self.tried:
            self.session.report(f"weighing rank {rank} against a log-linear model")
            below = [one.model for r, one in self.tried.items() if r < rank]
            start = max(below, key=lambda model: model.rank, default=None)
            starts = 2 if self.is_long else 3
            model = fit_rank(self.tables, rank, self.records, self.session, start, starts)
            self.tried[rank] = weigh_rank(self.sample, model)
        return self.tried[rank].evidence

    def finish(self, best: RankEvidence) -> Model:
        """Return the model of the rank that was chosen, with more steps if it gains by them."""
        rank, starts = best.model.rank, 1 if self.is_long else 4
        steps = POLICY.rank_steps if self.is_long else POLICY.final_steps
        options = (rank, self.records, self.session, best.model, starts, steps)
        other = weigh_rank(self.sample, fit_rank(self.tables, *options))
        return max(best, other, key=lambda one: one.evidence).model

    def _is_worth(self, rank: int) -> bool:
        """Whether this rank may come near the rival, as far as smaller ones tell.

        The lag behind the rival falls at once where the rank is right; before, it shrinks faster
        with each doubling than that of a joint of no low rank.
        """
        ranks = sorted(self.tried)
        if rank <= POLICY.least_ranks or len(ranks) < 2:
            return True
        if self.tried[ranks[-1]].evidence < self.tried[ranks[-2]].evidence:
            return False
        before, last = (self.rival - self.tried[r].evidence for r in ranks[-2:])
        return bool(last <= POLICY.lag_ratio * max(before, 0.0))

    def _is_near(self) -> bool:
        """Whether a rank between those tried may have a share in the answer."""
        best = self.best
        below = max((r for r in self.tried if r < best.model.rank), default=1)
        # Too many classes cost about one unit for each parameter.
        return best.evidence + (best.model.rank - below) * self.per_class > self.least

    def _is_tried(self, rank: int) -> bool:
        """Whether this rank was tried, or one that is as good where weighing takes long."""
        near = POLICY.near_rank * rank if self.is_long else 0.0
        return any(abs(rank - other) <= near for other in self.tried)

    def _climb(self) -> None:
        """Try ranks between the best and its neighbors, halving the distance."""
        while True:
            ranks, rank = sorted(self.tried), self.best.model.rank
            at = ranks.index(rank)
            below = ranks[at - 1] if at else 1
            above = ranks[at + 1] if at + 1 < len(ranks) else min(2 * rank, self.largest + 1)
            new = [(below + rank) // 2, (rank + above) // 2]
            new = [r for r in new if 2 <= r <= self.largest and not self._is_tried(r)]
            if not new:
                return
            for r in new:
                self.weigh(r)
