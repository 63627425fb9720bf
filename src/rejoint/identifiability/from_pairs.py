"""Joints that follow from tables of one or two variables under an assumption (section II)."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from rejoint.marginals.marginals import Marginals
from rejoint.pmf.pmf import LowRankPMF
from rejoint.text import cite, show


def from_1d(
    marginals: Marginals | Mapping[str, Any], *, dependent: bool = False, tol: float = 1e-9
) -> LowRankPMF:
    """Make the joint from the distributions of single variables, under one of two assumptions.

    If the variables are independent, the joint is the product. If each determines every other, it
    is recovered where every distribution is the same list of probabilities in another order, and
    no two of them are equal: then equal probabilities belong together.

    Parameters
    ----------
    marginals : Marginals or mapping
        Tables that hold every variable; or a mapping from names to counts or shares.
    dependent : bool
        Whether each variable determines every other; by default they are independent.
    tol : float
        Difference up to which two probabilities are equal.

    Returns
    -------
    LowRankPMF
        Its rank is 1, or the number of levels that occur.

    Raises
    ------
    ValueError
        If ``dependent`` and the distributions differ, or two probabilities are equal.

    Examples
    --------
    >>> import rejoint as rj
    >>> shares = {"a": [0.2, 0.3, 0.5], "b": [0.5, 0.2, 0.3]}
    >>> rj.identifiability.from_1d(shares).to_dense().round(2)
    array([[0.1 , 0.04, 0.06],
           [0.15, 0.06, 0.09],
           [0.25, 0.1 , 0.15]])
    >>> rj.identifiability.from_1d(shares, dependent=True).to_dense().round(2)
    array([[0. , 0.2, 0. ],
           [0. , 0. , 0.3],
           [0.5, 0. , 0. ]])
    """
    if isinstance(marginals, Mapping):
        singles = {(name,): table for name, table in marginals.items()}
        marginals = Marginals.from_tables(singles)
    if not isinstance(marginals, Marginals):
        raise TypeError(
            f"from_1d takes Marginals or a mapping such as {{'a': [0.3, 0.7]}}, got "
            f"{type(marginals).__name__}."
        )
    domain = marginals.domain
    shares = {name: marginals.marginal([name]) for name in domain.names}
    if not dependent or len(domain) == 1:
        return LowRankPMF([1.0], [share[:, None] for share in shares.values()], domain)
    first, *_ = domain.names
    orders = {name: np.argsort(share, kind="stable") for name, share in shares.items()}
    orders = {name: order[shares[name][order] > 0.0] for name, order in orders.items()}
    weights = shares[first][orders[first]]
    for name, order in orders.items():
        sizes = shares[name][order]
        if len(sizes) != len(weights) or np.abs(sizes - weights).max() > tol:
            one, other = (show(numbers.round(6).tolist()) for numbers in (weights, sizes))
            raise ValueError(
                f"{cite(first)} and {cite(name)} cannot determine each other: their probabilities, "
                f"in order, are {one} and {other}. Raise tol if that is sampling noise."
            )
        if len(close := np.flatnonzero(np.diff(sizes) <= tol)):
            raise ValueError(
                f"Two levels of {cite(name)} have the same probability, {sizes[close[0]]:.6g}: "
                "which level of the others goes with which cannot be told from single variables. "
                "Give a table of pairs."
            )
    factors = [np.eye(len(shares[name]))[:, order] for name, order in orders.items()]
    return LowRankPMF(weights / weights.sum(), factors, domain)


def from_pairs(marginals: Marginals | Mapping[Any, Any], given: str) -> LowRankPMF:
    """Make the joint from tables of pairs with a variable given which the others are independent.

    The paper's small Bayesian network: ``P(x1, x2, x3) = P(x1, x3) P(x2, x3) / P(x3)``, for any
    number of variables that are independent given ``x3``. The classes are the levels of ``x3``.

    Parameters
    ----------
    marginals : Marginals or mapping
        Tables that hold each other variable together with ``given``; or a mapping of them.
    given : str
        The variable that makes the others independent.

    Returns
    -------
    LowRankPMF
        Its rank is the number of levels of ``given`` that occur.

    Examples
    --------
    >>> import rejoint as rj
    >>> tables = {("a", "c"): [[0.2, 0.1], [0.2, 0.5]], ("b", "c"): [[0.3, 0.3], [0.1, 0.3]]}
    >>> p = rj.identifiability.from_pairs(tables, given="c")
    >>> p.marginal(["a", "c"]).round(3)
    array([[0.2, 0.1],
           [0.2, 0.5]])
    >>> round(p.prob({"a": 0, "b": 0}), 3)  # 0.2 * 0.3 / 0.4 + 0.1 * 0.3 / 0.6
    0.2
    """
    tables = marginals if isinstance(marginals, Marginals) else Marginals.from_tables(marginals)
    weights = tables.marginal([given])
    alive = weights > 0.0
    factors = []
    for name in tables.domain.names:
        if name == given:
            factors.append(np.eye(len(weights))[:, alive])
            continue
        pair = tables.marginal([name, given])[:, alive]
        if not pair.sum(axis=0).all():
            raise ValueError(
                f"The table of {cite(name)} and {cite(given)} has no records at a level of "
                f"{cite(given)} that other tables have: the tables disagree."
            )
        factors.append(pair / pair.sum(axis=0))
    return LowRankPMF(weights[alive], factors, tables.domain)
