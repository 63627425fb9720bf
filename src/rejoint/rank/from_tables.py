"""The rank where there are only tables: their BIC, up to what they can determine."""

from itertools import combinations

import numpy as np

from rejoint import identifiability
from rejoint.factorization.kl import Kl
from rejoint.factorization.loss import KL
from rejoint.factorization.problem import make_problem
from rejoint.factorization.random_start import draw_model
from rejoint.factorization.stages import fit_tables
from rejoint.marginals.marginals import Marginals
from rejoint.model import Model
from rejoint.pmf.pmf import LowRankPMF
from rejoint.progress import Progress
from rejoint.rank.select import between, past_best, sizes, smallest_best
from rejoint.rank.selection import Selection, make_words
from rejoint.solver.session import Session
from rejoint.solver.solver import Limits

__all__ = ["select_tables"]

#: Records taken to be behind shares whose number nobody tells.
ASSUMED = 10_000

#: A difference in BIC that counts as none, by custom.
CLOSE = 2.0

_SOLVER = Kl(limits=Limits(max_steps=200, progress=1e-4))


def select_tables(
    marginals: Marginals,
    *,
    n_init: int = 2,
    random_state: int | np.random.Generator | None = None,
    progress: bool | None = None,
) -> Selection:
    """Choose the number of hidden classes behind tables.

    The likelihood of records is not known where there are only tables. In its place stands that
    of the tables, each pair of variables counted once however many tables hold it; half a
    logarithm of the number of records is taken off for each parameter. Ranks beyond what the
    tables can determine by their number of cells are not tried.

    Parameters
    ----------
    marginals : Marginals
        The tables. Where none tells its number of records, 10,000 are assumed.
    n_init : int
        Starts of each rank; the first begins with the classes of the next smaller one.
    random_state : int or Generator, optional
        Source of randomness.
    progress : bool, optional
        Whether to show progress on stderr; by default where that is a terminal.

    Returns
    -------
    Selection

    Examples
    --------
    >>> import rejoint as rj
    >>> truth = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 5)
    >>> tables = rj.Marginals.count(truth.sample(2000, random_state=0), order=3)
    >>> select_tables(tables, random_state=0).rank
    2
    """
    make_problem(marginals, "equal", KL)
    cap = _largest(marginals)
    rng = np.random.default_rng(random_state)
    scores: dict[int, float] = {}
    interrupted = False
    with Progress(progress) as report:
        fits = _Fits(marginals, n_init, rng, report)
        near = CLOSE / 2 / fits.records

        def worse(best: int, other: int) -> bool:
            return scores[best] - near > scores[other]

        try:
            for rank in sizes(cap):
                scores[rank] = fits.score(rank)
                if past_best(scores, worse, near):
                    break
            while (middle := between(scores, near)) is not None:
                scores[middle] = fits.score(middle)
        except KeyboardInterrupt:
            if not scores:
                raise
            interrupted = True
    return _concluded(fits, scores, near, cap, interrupted)


def _largest(marginals: Marginals) -> int:
    """The largest rank that the number of cells does not exclude."""
    said = identifiability.report(marginals.domain, subsets=marginals.subsets)
    return max(said.counting, 1)


class _Fits:
    """Fits of growing rank to the same tables, each warm from the one below."""

    def __init__(
        self,
        marginals: Marginals,
        n_init: int,
        rng: np.random.Generator,
        report: Progress,
    ) -> None:
        self.tables, self.n_init, self.rng, self.report = marginals, n_init, rng, report
        self.session = Session(rng, report)
        counted = marginals.totals[marginals.counted]
        self.told = len(counted) > 0
        self.records = float(counted.max()) if self.told else float(ASSUMED)
        self.number = np.where(marginals.counted, marginals.totals, self.records)
        pairs = [tuple(pair) for s in marginals.index_subsets for pair in combinations(s, 2)]
        self.once = len(set(pairs)) / len(pairs) if pairs else 1.0
        self.models: dict[int, LowRankPMF] = {}

    def score(self, rank: int) -> float:
        """BIC of the tables, per record and the higher the better."""
        self.report(f"rank {rank}")
        results = [
            fit_tables(
                self.tables, rank, _SOLVER, self.session, start=start, n_init=1, fill=False
            )
            for start in self._starts(rank)
        ]
        found = [(self._likelihood(result.pmf), k) for k, result in enumerate(results)]
        value, best = max(found)
        self.models[rank] = pmf = results[best].pmf
        if self.tables.unknown is not None:
            self.tables = self.tables.filled(pmf)
        levels = sum(pmf.domain.shape) - len(pmf.domain)
        parameters = rank * levels + rank - 1
        return float(value - 0.5 * parameters * np.log(self.records)) / self.records

    def _starts(self, rank: int) -> "list[Model | str]":
        below = [r for r in self.models if r < rank]
        fresh: list[Model | str] = ["random"] * self.n_init
        if below:
            fresh[0] = self._widened(self.models[max(below)], rank)
        return fresh

    def _widened(self, model: LowRankPMF, rank: int) -> Model:
        """The classes of a smaller model, and new ones drawn around the variables' own shares."""
        own = [model.marginal([name]) for name in model.domain.names]
        new = draw_model(own, rank - model.rank, self.rng)
        share = new.rank / rank
        weights = np.concatenate([(1.0 - share) * model.weights, share * new.weights])
        return Model(new.layout, weights, np.hstack([np.vstack(model.factors), new.factors]))

    def _likelihood(self, pmf: LowRankPMF) -> float:
        total = 0.0
        for i, names in enumerate(self.tables.subsets):
            model = np.maximum(pmf.marginal(names), 1e-300)
            total += self.number[i] * float((self.tables.shares(i) * np.log(model)).sum())
        return self.once * total


def _concluded(
    fits: _Fits, scores: dict[int, float], near: float, cap: int, interrupted: bool
) -> Selection:
    tried = tuple(sorted(scores))
    best = smallest_best(scores, near)
    found = np.array([scores[rank] for rank in tried])
    errors = np.where(np.array(tried) == best, 0.0, near)
    tied = tuple(rank for rank in tried if abs(scores[rank] - scores[best]) <= near)
    ending = []
    if interrupted:
        ending.append("The search was interrupted: other ranks may be better.")
    elif best == tried[-1] == cap:
        ending.append("It is the largest that the number of cells does not exclude.")
    if not fits.told:
        ending.append(f"No table tells its number of records: {ASSUMED:,} were assumed.")
    basis = "the best BIC of the tables, each pair of variables counted once"
    words = make_words(best, tried, tied, basis, f"{CLOSE:g} in BIC", " ".join(ending))
    pmf = fits.models[best]
    return Selection(best, tried, found, errors, tied, "bic of tables", words, pmf, interrupted)
