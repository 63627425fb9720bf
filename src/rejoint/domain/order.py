"""Order: where the variables and levels asked for lie in a domain."""

from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.domain import Domain

__all__ = ["level_order", "positions"]


def positions(domain: Domain, names: str | Iterable[Hashable]) -> tuple[int, ...]:
    """Positions of the variables asked for; one that is asked for twice is an error.

    Examples
    --------
    >>> positions(Domain.of({"a": 2, "b": 3}), ["b", "a"])
    (1, 0)
    >>> positions(Domain.of({"a": 2, "b": 3}), ["b", "b"])
    Traceback (most recent call last):
    ...
    ValueError: Variable 'b' is asked for twice: name each one once.
    """
    asked = domain.indices(names)
    seen: set[int] = set()
    for n in asked:
        if n in seen:
            raise ValueError(
                f"Variable {domain.names[n]!r} is asked for twice: name each one once."
            )
        seen.add(n)
    return asked


def level_order(domain: Domain, wanted: Domain) -> list[NDArray[np.intp]]:
    """Positions of the levels of each wanted variable in `domain`; an error if they differ.

    Examples
    --------
    >>> level_order(Domain.of({"a": ["x", "y"], "b": 2}), Domain.of({"b": 2, "a": ["y", "x"]}))
    [array([0, 1]), array([1, 0])]
    """
    if set(domain.names) != set(wanted.names):
        odd = sorted(set(domain.names) ^ set(wanted.names))
        raise ValueError(
            f"The two have different variables: {', '.join(map(repr, odd[:5]))} "
            f"{'is' if len(odd) == 1 else 'are'} in one only. Project both on what they share."
        )
    orders = []
    for variable in wanted:
        levels = domain[variable.name].levels
        if set(levels) != set(variable.levels):
            both = set(levels) & set(variable.levels)
            lone = [level for level in (*levels, *variable.levels) if level not in both]
            raise ValueError(
                f"Variable {variable.name!r} has different levels in the two: {lone[0]!r} is in "
                "one only. Declare the same levels in both domains."
            )
        place = {level: i for i, level in enumerate(levels)}
        orders.append(np.array([place[level] for level in variable.levels]))
    return orders
