"""Evidence on some variables, and the classes and factors of a mixture given that evidence."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.domain import Domain
from rejoint.text import cite

FloatArray = NDArray[np.float64]
Likelihoods = Mapping[int, FloatArray]

Given = Mapping[str, Any] | None
"""By variable: a level, a list of levels (any of them), or an array of likelihoods."""


class ZeroEvidenceError(ValueError):
    """Error raised where the evidence has probability zero under the model.

    Examples
    --------
    >>> import rejoint as rj
    >>> p = rj.LowRankPMF([1.0], [[[1.0], [0.0]]], rj.Domain.of({"coin": ["heads", "tails"]}))
    >>> p.prob({"coin": "heads"}, given={"coin": "tails"})
    Traceback (most recent call last):
    ...
    rejoint.queries.evidence.ZeroEvidenceError: coin = 'tails' has probability zero under...
    """


def read_evidence(domain: Domain, given: Given) -> dict[int, FloatArray]:
    """Return the likelihood of each level, by position of the variable.

    Examples
    --------
    >>> read_evidence(Domain.of({"a": 2, "b": 3}), {"b": [0, 2]})
    {1: array([1., 0., 1.])}
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(
            f"Evidence must be a dict such as {{{cite(domain.names[0])}: "
            f"{cite(domain[0].levels[0])}}}; got {type(given).__name__}."
        )
    return {
        domain.index(name): domain.variables[domain.index(name)].likelihood(value)
        for name, value in given.items()
    }


def apply_evidence(
    weights: FloatArray,
    factors: Sequence[FloatArray],
    likelihoods: Likelihoods,
    describe: Callable[[int], str],
    asked: Collection[int] | None = None,
) -> tuple[FloatArray, list[FloatArray], float]:
    """Return the class posterior, the factors and the log probability of the evidence.

    Parameters
    ----------
    weights, factors
        The model.
    likelihoods : mapping of int to ndarray (I_n,)
        Evidence by position of the variable.
    describe : callable
        From the position of a variable to its evidence in words, for the error.
    asked : collection of int, optional
        The variables whose factors will be read; all by default. The others are not updated.

    Raises
    ------
    ZeroEvidenceError
        If the evidence has probability zero; it names a smallest set that contradicts itself.

    Examples
    --------
    >>> A = np.array([[0.9, 0.2], [0.1, 0.8]])
    >>> no = {0: np.array([0.0, 1.0])}
    >>> shares, _, log_prob = apply_evidence(np.full(2, 0.5), [A], no, lambda n: "x0 = 1")
    >>> shares.round(3), round(float(np.exp(log_prob)), 3)
    (array([0.111, 0.889]), 0.45)
    """
    logs = log_class_weights(weights, factors, likelihoods)
    if np.isneginf(logs.max()):
        culprits = contradiction(weights, factors, likelihoods)
        raise ZeroEvidenceError(_explain_zero([describe(n) for n in culprits]))
    updated = list(factors)
    for n in likelihoods if asked is None else likelihoods.keys() & set(asked):
        updated[n] = conditional_factor(factors[n], likelihoods[n])
    return class_posterior(logs), updated, float(log_sum(logs))


def _explain_zero(culprits: Sequence[str]) -> str:
    way_out = "or fit with a prior that keeps every level possible."
    if len(culprits) == 1:
        return (
            f"{culprits[0]} has probability zero under this model, so nothing follows from it: "
            f"leave it out, {way_out}"
        )
    return (
        f"{', '.join(culprits[:-1])} and {culprits[-1]} are possible by themselves but not "
        f"together: jointly they have probability zero under this model. Leave one out, {way_out}"
    )


def log_sum(logs: FloatArray) -> FloatArray:
    """Logarithm of the sum of exponentials along the last axis; all -inf gives -inf.

    Examples
    --------
    >>> import numpy as np
    >>> float(log_sum(np.log([0.25, 0.5])))
    -0.2876820724517809
    >>> float(log_sum(np.array([-np.inf, -np.inf])))
    -inf
    """
    top = logs.max(axis=-1)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(safe + np.log(np.exp(logs - safe[..., None]).sum(axis=-1)))


def log_class_weights(
    weights: FloatArray,
    factors: Sequence[FloatArray] | Mapping[int, FloatArray],
    likelihoods: Likelihoods,
) -> FloatArray:
    """Logarithm of ``P(class f, evidence)`` for every class.

    Parameters
    ----------
    weights : ndarray (..., F)
        Prior of the classes, of one model or of a stack of models.
    factors : sequence or mapping of int to ndarray (..., I_n, F)
        Columns are conditional probabilities of the levels.
    likelihoods : mapping of int to ndarray (I_n,)
        Evidence by index of variable.

    Returns
    -------
    ndarray (..., F)
        -inf for a class that the evidence excludes.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[0.9, 0.2], [0.1, 0.8]])
    >>> np.exp(log_class_weights(np.array([0.5, 0.5]), [A], {0: np.array([1.0, 0.0])}))
    array([0.45, 0.1 ])
    """
    with np.errstate(divide="ignore"):
        total = np.log(weights)
        for n, likelihood in likelihoods.items():
            scale = likelihood.max()
            # Scaled, so that tiny likelihoods do not vanish in the product.
            if scale > 0.0:
                total = total + np.log(scale) + np.log((likelihood / scale) @ factors[n])
            else:
                total = np.full_like(total, -np.inf)
    return np.asarray(total)


def class_posterior(logs: FloatArray) -> FloatArray:
    """Normalized class probabilities from logarithms, along the last axis.

    A row of -inf (impossible evidence) comes out as zeros.

    Examples
    --------
    >>> import numpy as np
    >>> class_posterior(np.log([0.45, 0.05]))
    array([0.9, 0.1])
    """
    top = logs.max(axis=-1, keepdims=True)
    shares = np.exp(logs - np.where(np.isfinite(top), top, 0.0))
    total = shares.sum(axis=-1, keepdims=True)
    return np.asarray(shares / np.where(total > 0.0, total, 1.0))


def conditional_factor(factor: FloatArray, likelihood: FloatArray) -> FloatArray:
    """Conditional probabilities of the levels in each class, given evidence on the variable.

    Columns whose class the evidence excludes are zero. Takes a stack of factors, too.

    Examples
    --------
    >>> import numpy as np
    >>> conditional_factor(np.array([[0.5, 1.0], [0.3, 0.0], [0.2, 0.0]]), np.array([0, 1, 1.0]))
    array([[0. , 0. ],
           [0.6, 0. ],
           [0.4, 0. ]])
    """
    top = likelihood.max()
    joint = factor * (likelihood / (top if top > 0.0 else 1.0))[:, None]
    total = joint.sum(axis=-2, keepdims=True)
    return np.asarray(joint / np.where(total > 0.0, total, 1.0))


def contradiction(
    weights: FloatArray, factors: Sequence[FloatArray], likelihoods: Likelihoods
) -> list[int]:
    """Variables of a smallest set (none can be left out) of evidence that cannot all be true.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> yes, no = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    >>> contradiction(np.array([0.5, 0.5]), [A, A, A], {0: yes, 1: yes, 2: no})
    [1, 2]
    """
    names = sorted(likelihoods)
    alive = [np.asarray(likelihoods[n] @ factors[n] > 0.0) for n in names]
    after = [np.ones(len(weights), dtype=bool)]
    for ok in reversed(alive):
        after.append(after[-1] & ok)
    kept, possible = [], weights > 0.0
    for k, n in enumerate(names):
        # Leave it out if the variables kept so far and all later ones contradict without it.
        if (possible & after[len(names) - 1 - k]).any():
            kept.append(n)
            possible = possible & alive[k]
    return kept
