"""Tables with cells that are not known: fit, fill them by the model, fit again.

For the Kullback-Leibler solver on counts this is EM on the likelihood of what is known; for least
squares each round lowers the squared error of the known cells. Cells taken as zero instead would
pull the model towards zero there.
"""

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace

import numpy as np

from rejoint.factorization.auto import AnySolver, Auto
from rejoint.marginals.marginals import Marginals
from rejoint.pmf.pmf import LowRankPMF
from rejoint.solver.result import FitResult
from rejoint.text import plural

#: Rounds at the most, and the share of a table's mass below which a round moves nothing.
ROUNDS, STILL = 200, 3e-5

#: Steps of each solver within a round: more are lost on a fill that is not final.
STEPS = 5

Fit = Callable[[Marginals, LowRankPMF | None, bool], FitResult]


def fit_filled(marginals: Marginals, fit: Fit) -> FitResult:
    """Alternate between a fit and filling unknown cells by it, until these rest.

    Parameters
    ----------
    marginals : Marginals
        With cells that are not known.
    fit : callable
        Fits tables, from a model if one is given, briefly or to the end.

    Examples
    --------
    >>> import rejoint as rj
    >>> tables = {("a", "b"): [[30.0, float("nan")], [20.0, 40.0]], ("a",): [0.4, 0.6]}
    >>> m = rj.Marginals.from_tables(tables, suppressed=(0, float("inf")))
    >>> rj.factorize(m, rank=2, random_state=0).pmf.marginal(["a", "b"]).round(3)
    array([[0.3, 0.1],
           [0.2, 0.4]])
    """
    result = fit(marginals, None, False)
    runs, history = list(result.starts), list(result.history)
    rounds, moved = 0, np.inf
    while rounds < ROUNDS and moved > STILL and not _interrupted(result):
        filled = marginals.filled(result.pmf)
        moved, marginals = _moved(marginals, filled), filled
        rounds += 1
        result = fit(marginals, result.pmf, moved > STILL and rounds < ROUNDS)
        runs += result.starts
        history += result.history
    stop = result.stop + _words(marginals, rounds, moved)
    return replace(result, stop=stop, starts=tuple(runs), history=tuple(history))


def briefly(solver: AnySolver | Auto) -> AnySolver | Auto:
    """The same solver with few steps.

    Examples
    --------
    >>> from rejoint.factorization.kl import Kl
    >>> briefly(Kl()).limits.max_steps
    5
    """
    if isinstance(solver, Auto):
        polish, finish = briefly(solver.polish), briefly(solver.finish)
        return replace(solver, polish=polish, finish=finish)  # type: ignore[arg-type]
    if is_dataclass(solver) and any(f.name == "limits" for f in fields(solver)):
        limits = replace(solver.limits, max_steps=STEPS)
        return replace(solver, limits=limits)
    return solver


def _interrupted(result: FitResult) -> bool:
    return any(run.reason == "interrupted" for run in result.starts)


def _moved(before: Marginals, after: Marginals) -> float:
    """Largest share of a table's mass that the fill moved."""
    gap = np.add.reduceat(np.abs(before.flat - after.flat), before.starts[:-1])
    return float((gap / np.maximum(after.totals, 1e-300)).max())


def _words(marginals: Marginals, rounds: int, moved: float) -> str:
    assert marginals.unknown is not None
    number = plural(len(marginals.unknown), "cell")
    text = (
        f" {number} of the tables not known: filled by what the model expects, within their "
        f"bounds, in {plural(rounds, 'round')}"
    )
    if moved > STILL:
        return f"{text}; the last still moved {moved:.1e} of a table's mass."
    return f"{text}, until nothing moved by more than {moved:.0e} of a table's mass."
