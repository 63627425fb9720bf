"""Entropies of some variables of a mixture, by enumeration or estimated from drawn records."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.queries import tables
from rejoint.queries.log_prob import draw_codes, record_log_prob
from rejoint.queries.tables import joint_table

FloatArray = NDArray[np.float64]
Factors = Sequence[FloatArray] | Mapping[int, FloatArray]  # by position of the variable
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
    weights: FloatArray,
    factors: Factors,
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
    >>> A = np.eye(2)
    >>> conditional_entropy(np.array([0.5, 0.5]), [A, A], (0,))
    Nats(value=0.6931471805599453, standard_error=None, draws=0)
    >>> conditional_entropy(np.array([0.5, 0.5]), [A, A], (0,), (1,)).value
    0.0
    """
    return _sum_of_entropies(weights, factors, [(1, a + given), (-1, given)], rng)


def mutual_information(
    weights: FloatArray,
    factors: Factors,
    a: Places,
    b: Places,
    given: Places = (),
    rng: np.random.Generator | None = None,
) -> Nats:
    """Mutual information ``I(a; b | given)``, exact or estimated as in `conditional_entropy`.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.eye(2)
    >>> mutual_information(np.array([0.5, 0.5]), [A, A], (0,), (1,)).value
    0.6931471805599453
    """
    terms = [(1, a + given), (1, b + given), (-1, a + b + given), (-1, given)]
    return _sum_of_entropies(weights, factors, terms, rng)


def _sum_of_entropies(
    weights: FloatArray,
    factors: Factors,
    terms: list[tuple[int, Places]],
    rng: np.random.Generator | None,
) -> Nats:
    every = tuple(sorted({n for _, places in terms for n in places}))
    used = [factors[n] for n in every]
    signed = [(sign, tuple(every.index(n) for n in places)) for sign, places in terms if places]
    if prod(len(factor) for factor in used) <= tables.MAX_CELLS:
        return Nats(_enumerate(weights, used, signed))
    return _estimate(weights, used, signed, rng or np.random.default_rng())


def _enumerate(
    weights: FloatArray, factors: list[FloatArray], terms: list[tuple[int, Places]]
) -> float:
    table = joint_table(weights, factors)
    total = 0.0
    for sign, places in terms:
        others = tuple(n for n in range(table.ndim) if n not in places)
        total += sign * _entropy(table.sum(axis=others) if others else table)
    return max(total, 0.0)  # not below zero by rounding


def _entropy(table: FloatArray) -> float:
    cells = table.ravel()
    total = 0.0
    for start in range(0, len(cells), _BLOCK):
        block = cells[start : start + _BLOCK]
        block = block[block > 0.0]
        total -= float(block @ np.log(block))
    return total


def _estimate(
    weights: FloatArray,
    factors: list[FloatArray],
    terms: list[tuple[int, Places]],
    rng: np.random.Generator,
) -> Nats:
    """Mean of the signed logarithms of probabilities over drawn records, and its error."""
    draws = int(np.clip(_WORK // (len(factors) * len(weights)), *_DRAWS))
    wide = max(map(len, factors)) > np.iinfo(np.int16).max
    codes = draw_codes(weights, factors, draws, rng, np.int32 if wide else np.int16)
    surprise = np.zeros(draws)
    for sign, places in terms:
        part = np.ascontiguousarray(codes[:, list(places)])
        surprise -= sign * record_log_prob(weights, [factors[n] for n in places], part)
    error = float(surprise.std(ddof=1)) / draws**0.5
    return Nats(max(float(surprise.mean()), 0.0), error, draws)
