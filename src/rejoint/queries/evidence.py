"""Classes given evidence: what is known about some variables, weighed class by class."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Likelihoods = Mapping[int, FloatArray]


class ZeroEvidenceError(ValueError):
    """What was given has probability zero under the model, so nothing follows from it.

    Examples
    --------
    >>> import rejoint as rj
    >>> p = rj.LowRankPMF([1.0], [[[1.0], [0.0]]], rj.Domain.of({"coin": ["heads", "tails"]}))
    >>> p.prob({"coin": "heads"}, given={"coin": "tails"})
    Traceback (most recent call last):
    ...
    rejoint.queries.evidence.ZeroEvidenceError: coin = 'tails' has probability zero under...
    """


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
    weights: FloatArray, factors: Sequence[FloatArray], likelihoods: Likelihoods
) -> FloatArray:
    """Logarithm of ``P(class f, evidence)`` for every class.

    Parameters
    ----------
    weights : ndarray (F,)
        Prior of the classes.
    factors : sequence of ndarray (I_n, F)
        Columns are conditional probabilities of the levels.
    likelihoods : mapping of int to ndarray (I_n,)
        Evidence by index of variable.

    Returns
    -------
    ndarray (F,)
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
    """Normalised class probabilities from logarithms, along the last axis.

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

    Columns whose class the evidence excludes are zero.

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
    total = joint.sum(axis=0)
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
        # Left out if what was kept before and all that comes after contradict without it.
        if (possible & after[len(names) - 1 - k]).any():
            kept.append(n)
            possible = possible & alive[k]
    return kept
