"""What an estimate decides by itself: the estimator, how many starts, and what it says of it."""

from dataclasses import replace

import numpy as np

from rejoint.estimation.bayes import Bayes
from rejoint.estimation.em import Em
from rejoint.estimation.problem import Array, RecordProblem
from rejoint.pmf import LowRankPMF

__all__ = [
    "BY_PASSES",
    "MODES",
    "PLENTY",
    "SPARE",
    "affordable",
    "choose",
    "choose_for_scan",
    "given_start",
    "smooth_words",
    "with_spare",
]

#: Records per parameter from which the maximum does better than the mean of some draws, whose own
#: chance error shows by then. At 1,451 (N = 5, I = 10, F = 15, 1,000,000 records) the mean still
#: is 1 % better; at 4,366 (F = 5) it is 2 % worse.
PLENTY = 2000

#: Classes that chains have at most beyond a rank that was estimated, as far as larger ranks are not
#: out of the question: at the rank itself 90 % intervals held the truth in 78 to 85 % of cases,
#: with spare ones in 88 to 89 %. Where they are not needed they cost: always four of them made the
#: error 10 to 27 % larger (N = 5, I = 10, F = 5, 100,000 records).
SPARE = 4

#: Chains over records that are read anew for each sweep. They start at the maximum, and answers are
#: nearly independent from draw to draw, so that some 100 sweeps do: see docs/scale.rst.
BY_PASSES = Bayes(chains=2, burn_in=20, draws=20, thin=2)

#: Modes that chains may start at, the best of which they do.
MODES = 6


def smooth_words(time: float) -> str:
    """How smooth the columns are.

    Examples
    --------
    >>> smooth_words(0.4)
    'Smooth columns: levels spread by 0.89 of a level, by held-out likelihood.'
    """
    if time == 0:
        return "Smooth columns were asked for, but held-out likelihood is best without."
    spread = np.sqrt(2 * time)
    return f"Smooth columns: levels spread by {spread:.2g} of a level, by held-out likelihood."


def affordable(problem: RecordProblem, rank: int) -> int:
    """How many starts to run: likelihoods of latent classes have many local maxima."""
    cells = problem.codes.size * rank
    return int(np.clip(4_000_000 // max(cells, 1), 3, 20))


def choose(
    problem: RecordProblem, rank: int, solver: str | Em | Bayes
) -> tuple[str | Em | Bayes, str]:
    """The estimator to take, and why."""
    if isinstance(solver, Em | Bayes):
        return solver, f"{type(solver).__name__} was asked for."
    if solver in ("ml", "map"):
        return solver, f"solver={solver!r} was asked for."
    if solver == "bayes":
        return Bayes(), "solver='bayes' was asked for."
    if solver != "auto":
        raise ValueError(
            f"solver={solver!r} is not known; give 'auto', 'ml', 'map', 'bayes', or an object such "
            "as rejoint.estimation.Em(). Solvers for tables belong to rj.factorize."
        )
    size = max(problem.parameters(rank), 1)
    per = problem.total / size
    text = f"{problem.total:,.0f} records for {size:,} parameters"
    if per >= PLENTY:
        return "ml", f"Maximum likelihood: {text}, so that a prior would add nothing."
    return Bayes(), f"Bayes: {text}, so that averaging over the posterior helps."


def with_spare(bayes: Bayes, rank: int, largest: int) -> tuple[Bayes, int]:
    """The sampler, and how many classes its chains have beyond a rank that was estimated.

    Examples
    --------
    >>> with_spare(Bayes(), 3, largest=5)[1], with_spare(Bayes(), 3, largest=3)[1]
    (2, 0)
    """
    spare = min(largest - rank, SPARE) if bayes.sparsity == 1.0 else 0
    # Classes that are not needed lose their weight below a pseudo-count of one.
    return (replace(bayes, sparsity=0.3) if spare else bayes), spare


def choose_for_scan(
    problem: RecordProblem, rank: int, solver: str | Em | Bayes
) -> tuple[str | Em | Bayes, str]:
    """The estimator to take where records are read anew for each pass, and why."""
    chosen, why = choose(problem, rank, solver)
    given = not isinstance(chosen, Bayes) or isinstance(solver, Bayes)
    return (chosen if given else BY_PASSES), why


def given_start(
    start: LowRankPMF | None, problem: RecordProblem, rank: int
) -> list[tuple[Array, Array]]:
    """A given model as the only start; none if there is none."""
    if start is None:
        return []
    if not isinstance(start, LowRankPMF) or start.rank != rank:
        raise ValueError(f"start must be a LowRankPMF of rank {rank}, got {start!r}.")
    start = start.align(problem.domain)
    factors = np.vstack(start.factors)
    if (factors == 0).any():
        # Zeros would stay zeros, even against the records.
        factors = 0.999 * factors + 0.001 * problem.centre[:, None]
    return [(np.array(start.weights), factors)]
