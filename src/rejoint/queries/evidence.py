"""Evidence on some variables, and the classes and factors of a mixture given that evidence."""

from collections.abc import Mapping, Sequence
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


def explain_zero(culprits: Sequence[str]) -> str:
    """Say which evidence has probability zero, and what to do."""
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
