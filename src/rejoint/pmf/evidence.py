"""From names and levels to classes and factors: what evidence does to a model."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint import queries
from rejoint.domain import Domain
from rejoint.domain.labels import show
from rejoint.pmf.mixture import Mixture

__all__ = ["Given", "likelihoods", "posterior", "weighed"]

FloatArray = NDArray[np.float64]

Given = Mapping[str, Any] | None
"""By variable: a level, a list of levels (any of them), or an array of likelihoods."""


def likelihoods(domain: Domain, evidence: Given) -> dict[int, FloatArray]:
    """Likelihood of each level, by position of the variable.

    Examples
    --------
    >>> likelihoods(Domain.of({"a": 2, "b": 3}), {"b": [0, 2]})
    {1: array([1., 0., 1.])}
    """
    if evidence is None:
        return {}
    if not isinstance(evidence, Mapping):
        raise TypeError(
            f"Evidence must be a dict such as {{{domain.names[0]!r}: "
            f"{domain[0].levels[0]!r}}}; got {type(evidence).__name__}."
        )
    return {
        domain.index(name): domain.variables[domain.index(name)].likelihood(value)
        for name, value in evidence.items()
    }


def posterior(
    model: Mixture, given: Given, asked: Collection[int] | None = None
) -> tuple[FloatArray, Sequence[FloatArray]]:
    """Class posterior and factors of a model, both given the evidence.

    Parameters
    ----------
    model : Mixture
    given : mapping, optional
        Evidence by variable.
    asked : collection of int, optional
        The variables whose factors will be read; all by default. Others are left as they are.

    Raises
    ------
    ZeroEvidenceError
        If the evidence has probability zero; it names a smallest set that contradicts itself.

    Examples
    --------
    >>> m = Mixture([0.5, 0.5], [[[0.9, 0.2], [0.1, 0.8]]])
    >>> posterior(m, {"x0": 1})[0].round(3)
    array([0.111, 0.889])
    """
    by_position = likelihoods(model.domain, given)
    if not by_position:
        return model.weights, model.factors

    def words(n: int) -> str:
        pairs = (given or {}).items()
        name, value = next(pair for pair in pairs if model.domain.index(pair[0]) == n)
        return f"{name} = {show([value])}"

    shares, factors, _ = weighed(model, by_position, words, asked)
    return shares, factors


def weighed(
    model: Mixture,
    by_position: Mapping[int, FloatArray],
    words: Callable[[int], str],
    asked: Collection[int] | None = None,
) -> tuple[FloatArray, Sequence[FloatArray], float]:
    """Class posterior, factors, and the logarithm of the probability of the evidence.

    `words` says in an error what was given about a variable.

    Examples
    --------
    >>> m = Mixture([0.5, 0.5], [[[0.9, 0.2], [0.1, 0.8]]])
    >>> shares, _, log_prob = weighed(m, {0: np.array([0.0, 1.0])}, lambda n: "x0 = 1")
    >>> shares.round(3), round(float(np.exp(log_prob)), 3)
    (array([0.111, 0.889]), 0.45)
    """
    logs = queries.log_class_weights(model.weights, model.factors, by_position)
    if np.isneginf(logs.max()):
        raise queries.ZeroEvidenceError(_why_impossible(model, words, by_position))
    factors = list(model.factors)
    read = by_position if asked is None else by_position.keys() & set(asked)
    for n in read:
        factors[n] = queries.conditional_factor(factors[n], by_position[n])
    return queries.class_posterior(logs), factors, float(queries.log_sum(logs))


def _why_impossible(
    model: Mixture, words: Callable[[int], str], by_position: Mapping[int, FloatArray]
) -> str:
    culprits = queries.contradiction(model.weights, model.factors, by_position)
    named = [words(n) for n in culprits]
    way_out = "or fit with a prior that keeps every level possible."
    if len(named) == 1:
        return (
            f"{named[0]} has probability zero under this model, so nothing follows from it: "
            f"leave it out, {way_out}"
        )
    return (
        f"{', '.join(named[:-1])} and {named[-1]} are possible by themselves but not together: "
        f"jointly they have probability zero under this model. Leave one out, {way_out}"
    )
