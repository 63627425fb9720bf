"""Tables with cells that are not known: fit, fill them by the model, fit again.

For the Kullback-Leibler solver on counts this is EM on the likelihood of what is known; for least
squares each round lowers the squared error of the known cells. Cells taken as zero instead would
pull the model towards zero there.
"""

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from functools import partial

import numpy as np

from rejoint.factorization.auto import AnySolver, Auto
from rejoint.marginals.marginals import Marginals
from rejoint.pmf.pmf import LowRankPMF
from rejoint.solver.result import FitResult
from rejoint.solver.search import best_run
from rejoint.solver.session import Session
from rejoint.solver.solver import Stop
from rejoint.text import plural

#: Rounds at the most, and the share of a table's mass below which a round moves nothing.
ROUNDS, STILL = 200, 3e-5

#: Steps of each solver within a round: more are lost on a fill that is not final.
ROUND_STEPS = 5

Fit = Callable[[Marginals, LowRankPMF | None, bool], FitResult]


def fit_filled(marginals: Marginals, session: Session, fit: Fit) -> FitResult:
    """Alternate between a fit and filling unknown cells by it, until these rest.

    Parameters
    ----------
    marginals : Marginals
        With cells that are not known.
    session : Session
        Of the fit.
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
    best = best_run(result.starts)
    rounds, moved = 0, np.inf
    while rounds < ROUNDS and moved > STILL:
        filled = marginals.filled(result.pmf)
        moved, marginals = _moved(marginals, filled), filled
        rounds += 1
        extend = partial(_extend, result, best, _describe_fill(marginals, rounds, moved))
        with session.convert(extend):
            after = fit(marginals, result.pmf, moved > STILL and rounds < ROUNDS)
        result = extend(after)
    return result


def _extend(before: FitResult, best: int, note: str, after: FitResult | None) -> FitResult:
    """The result with its best start followed on; without a further fit it was interrupted."""
    starts = list(before.starts)
    if after is None:
        starts[-1] = replace(starts[-1], stop=Stop.INTERRUPTED)
        return replace(before, starts=tuple(starts), stop=f"{before.stop} Interrupted.")
    records = (*starts[best].records, *after.starts[0].records)
    starts[best] = replace(after.starts[0], records=records)
    history = tuple(record for run in starts for record in run.records)
    return replace(after, starts=tuple(starts), history=history, stop=after.stop + note)


def shorten(method: AnySolver | Auto) -> AnySolver | Auto:
    """The same solver with few steps.

    Examples
    --------
    >>> from rejoint.factorization.kl import Kl
    >>> shorten(Kl()).limits.max_steps
    5
    """
    if isinstance(method, Auto):
        polish, finish = shorten(method.polish), shorten(method.finish)
        return replace(method, polish=polish, finish=finish)  # type: ignore[arg-type]
    if is_dataclass(method) and any(f.name == "limits" for f in fields(method)):
        limits = replace(method.limits, max_steps=ROUND_STEPS)
        return replace(method, limits=limits)
    return method


def _moved(before: Marginals, after: Marginals) -> float:
    """Largest share of a table's mass that the fill moved."""
    gap = np.add.reduceat(np.abs(before.flat - after.flat), before.starts[:-1])
    return float((gap / np.maximum(after.totals, 1e-300)).max())


def _describe_fill(marginals: Marginals, rounds: int, moved: float) -> str:
    assert marginals.unknown is not None
    number = plural(len(marginals.unknown), "cell")
    text = (
        f" {number} of the tables not known: filled by what the model expects, within their "
        f"bounds, in {plural(rounds, 'round')}"
    )
    if moved > STILL:
        return f"{text}; the last still moved {moved:.1e} of a table's mass."
    return f"{text}, until nothing moved by more than {moved:.0e} of a table's mass."
