"""Choice of the rank for tables alone: by BIC, up to what they can determine."""

from functools import partial
from itertools import combinations

import numpy as np

from rejoint.check import check_positive_int
from rejoint.factorization.fit_tables import fit_tables
from rejoint.factorization.kl import Kl
from rejoint.factorization.loss import KL
from rejoint.factorization.problem import make_problem
from rejoint.identifiability.rank_report import report
from rejoint.marginals.marginals import Marginals
from rejoint.messages import Progress
from rejoint.model import Layout, Model
from rejoint.pmf.pmf import LowRankPMF
from rejoint.rank.criteria import RankCriterion, search_ranks
from rejoint.rank.selection import CriterionText, Selection
from rejoint.solver.search import OnInterrupt, interruptible
from rejoint.solver.session import Session
from rejoint.solver.solver import Limits

#: Records that are assumed for shares without a number of records.
ASSUMED = 10_000

#: A difference in BIC that is considered negligible, by convention.
CLOSE = 2.0

_SOLVER = Kl(limits=Limits(max_steps=200, progress=1e-4))


def select_tables(
    marginals: Marginals,
    *,
    n_init: int = 2,
    random_state: int | np.random.Generator | None = None,
    progress: bool | None = None,
    on_interrupt: OnInterrupt = "raise",
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
    on_interrupt : {"raise", "return"}
        What Ctrl-C does: raise :class:`rejoint.FitInterrupted`, whose ``result`` is the best
        selection so far, or return that.

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
    n_init = check_positive_int("n_init", n_init)
    with Progress(progress) as report:
        session = Session(np.random.default_rng(random_state), report)
        choose = partial(select_rank_of_tables, marginals, n_init, session)
        return interruptible(session, choose, on_interrupt)


def select_rank_of_tables(marginals: Marginals, n_init: int, session: Session) -> Selection:
    """Choose the rank of tables, as part of another fit."""
    KL.check(make_problem(marginals, "equal"))
    return search_ranks(TableBic(marginals, n_init, session), None, session)


class TableBic(RankCriterion):
    """BIC of fits of growing rank to the same tables, each warm from the one below."""

    def __init__(self, marginals: Marginals, n_init: int, session: Session) -> None:
        self.tables, self.n_init, self.session = marginals, n_init, session
        counted = marginals.totals[marginals.counted]
        self.counted = len(counted) > 0
        self.records = float(counted.max()) if self.counted else float(ASSUMED)
        self.number = np.where(marginals.counted, marginals.totals, self.records)
        pairs = [tuple(pair) for s in marginals.index_subsets for pair in combinations(s, 2)]
        self.once = len(set(pairs)) / len(pairs) if pairs else 1.0
        name = "BIC of the tables (each pair of variables counted once)"
        measure = CriterionText(name, f"{CLOSE:g}", -2.0 * self.records)
        # The largest rank that the number of cells does not exclude.
        cap = max(report(marginals.domain, subsets=marginals.subsets).counting, 1)
        super().__init__("bic of tables", measure, CLOSE / 2 / self.records, cap)
        self.models: dict[int, LowRankPMF] = {}

    def fit(self, rank: int) -> float:
        """BIC of the tables, per record and the higher the better."""
        # An interrupted search returns a selection, not the fit of one rank.
        session = Session(self.session.rng, self.session.report)
        starts: list[LowRankPMF | str] = ["random"] * self.n_init
        if below := max((r for r in self.models if r < rank), default=0):
            model = self.models[below]
            # New classes are drawn around the variables' own shares.
            own = [model.marginal([name]) for name in model.domain.names]
            wide = Model.of(model.weights, model.factors).extend(rank, own, session.rng)
            starts[0] = LowRankPMF(wide.weights, wide.parts, model.domain)
        fits = [
            fit_tables(self.tables, rank, _SOLVER, session, start=start, n_init=1).pmf
            for start in starts
        ]
        values = [self._likelihood(pmf) for pmf in fits]
        pmf = self.models[rank] = fits[int(np.argmax(values))]
        if self.tables.unknown is not None:
            self.tables = self.tables.filled(pmf)
        parameters = Layout(pmf.domain.shape).parameters(rank)
        score = max(values) - 0.5 * parameters * np.log(self.records)
        self.columns[rank] = {"bic": -2.0 * score}
        return float(score) / self.records

    def _likelihood(self, pmf: LowRankPMF) -> float:
        total = 0.0
        for i, names in enumerate(self.tables.subsets):
            model = np.maximum(pmf.marginal(names), 1e-300)
            total += self.number[i] * float((self.tables.shares(i) * np.log(model)).sum())
        return self.once * total

    def pmf(self, rank: int) -> LowRankPMF:
        """A rank that was fitted."""
        return self.models[rank]

    def ending(self, chosen: int) -> str:
        """What to add to the sentence about the rank chosen."""
        said = []
        if chosen == max(self.scores) == self.cap:
            said.append("It is the largest that the number of cells does not exclude.")
        if not self.counted:
            said.append(f"No table gives its number of records: {ASSUMED:,} were assumed.")
        return " ".join(said)
