"""Entropies of some variables of a mixture, by enumeration or estimated from drawn records."""

from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.queries import tables
from rejoint.queries.log_prob import record_log_prob
from rejoint.queries.mixture import Mixture, draw_records

FloatArray = NDArray[np.float64]
Places = tuple[int, ...]

_BLOCK = 2**20  # cells whose logarithms are in memory at once
_WORK = 2**29  # draws x variables x classes of a Monte Carlo estimate: seconds
_DRAWS = (1_000, 200_000)  # at least, at most


class Nats(NamedTuple):
    """An amount of information; an estimate has a standard error and a number of draws.

    Examples
    --------
    >>> Nats(0.69).draws
    0
    """

    value: float
    standard_error: float | None = None
    draws: int = 0


def conditional_entropy(
    mixture: Mixture,
    a: Places,
    given: Places = (),
    rng: np.random.Generator | None = None,
) -> Nats:
    """Entropy ``H(a | given) = H(a, given) - H(given)`` of variables of a mixture.

    Exact where the table of all of them has at most `MAX_CELLS` cells; otherwise the
    mean over records drawn from the model.

    Examples
    --------
    >>> import numpy as np
    >>> same = Mixture(np.array([0.5, 0.5]), {0: np.eye(2), 1: np.eye(2)})
    >>> conditional_entropy(same, (0,))
    Nats(value=0.6931471805599453, standard_error=None, draws=0)
    >>> conditional_entropy(same, (0,), (1,)).value
    0.0
    """
    return _sum_of_entropies(mixture, [(1, a + given), (-1, given)], rng)


def mutual_information(
    mixture: Mixture,
    a: Places,
    b: Places,
    given: Places = (),
    rng: np.random.Generator | None = None,
) -> Nats:
    """Mutual information ``I(a; b | given)``, exact or estimated as in `conditional_entropy`.

    Examples
    --------
    >>> import numpy as np
    >>> same = Mixture(np.array([0.5, 0.5]), {0: np.eye(2), 1: np.eye(2)})
    >>> mutual_information(same, (0,), (1,)).value
    0.6931471805599453
    """
    terms = [(1, a + given), (1, b + given), (-1, a + b + given), (-1, given)]
    return _sum_of_entropies(mixture, terms, rng)


def _sum_of_entropies(
    mixture: Mixture,
    terms: list[tuple[int, Places]],
    rng: np.random.Generator | None,
) -> Nats:
    every = tuple(sorted({n for _, places in terms for n in places}))
    if prod(len(mixture.factors[n]) for n in every) <= tables.MAX_CELLS:
        table, total = mixture.tabulate(every), 0.0
        for sign, places in terms:
            others = tuple(k for k, n in enumerate(every) if n not in places)
            total += sign * _entropy(table.sum(axis=others) if others else table)
        return Nats(max(total, 0.0))  # not below zero by rounding
    return _estimate(mixture.select(every), terms, every, rng or np.random.default_rng())


def _entropy(table: FloatArray) -> float:
    cells = table.ravel()
    total = 0.0
    for start in range(0, len(cells), _BLOCK):
        block = cells[start : start + _BLOCK]
        block = block[block > 0.0]
        total -= float(block @ np.log(block))
    return total


def _estimate(
    mixture: Mixture,
    terms: list[tuple[int, Places]],
    every: Places,
    rng: np.random.Generator,
) -> Nats:
    """Mean of the signed logarithms of probabilities over drawn records, and its error."""
    draws = int(np.clip(_WORK // (len(every) * len(mixture.weights)), *_DRAWS))
    codes = draw_records(mixture, draws, rng)
    surprise = np.zeros(draws)
    for sign, places in terms:
        if places:
            seen = np.isin(every, places)
            factors, shown = mixture.of_records(np.where(seen, codes, -1).astype(codes.dtype))
            surprise -= sign * record_log_prob(mixture.weights, factors, shown)
    error = float(surprise.std(ddof=1)) / draws**0.5
    return Nats(max(float(surprise.mean()), 0.0), error, draws)
