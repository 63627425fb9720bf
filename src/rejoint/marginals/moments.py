"""Moments of numeric levels: means, covariances, third moments, as linear functions of tables."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import sum_to
from rejoint.domain.domain import Domain
from rejoint.domain.labels import Bin
from rejoint.text import cite

if TYPE_CHECKING:
    from rejoint.marginals.marginals import Marginals

Array = NDArray[np.float64]
Key = str | Sequence[str]


@dataclass(frozen=True, eq=False)
class Moment:
    """A known expectation of a product of functions of single variables.

    ``value = sum over cells of P(cells of the variables) * prod_v vectors[v][level of v]``.
    A mean has one vector, the level values; a covariance has two, the level values less the
    mean; the vectors of a repeated variable are multiplied, so a variance has one vector as well.

    Parameters
    ----------
    variables : tuple of int
        Indices of distinct variables, increasing.
    vectors : tuple of array
        For each variable, one number per level.
    value : float
        The expectation.
    label : str
        Its name in messages: ``"covariance of a, b"``.

    Examples
    --------
    >>> Moment((0,), (np.array([0.0, 1.0]),), 0.3, "mean of a").expectation(np.array([0.7, 0.3]))
    0.3
    """

    variables: tuple[int, ...]
    vectors: tuple[Array, ...]
    value: float
    label: str

    def __post_init__(self) -> None:
        vectors = tuple(np.array(v, dtype=np.float64) for v in self.vectors)
        for vector in vectors:
            vector.flags.writeable = False
        object.__setattr__(self, "vectors", vectors)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Moment) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return self.variables, tuple(v.tobytes() for v in self.vectors), self.value, self.label

    @property
    def excludes(self) -> bool:
        """Whether it says that some combinations of levels have probability zero.

        Examples
        --------
        >>> Moment((0,), (np.array([0.0, 1.0]),), 0.0, "a=y: impossible").excludes
        True
        """
        return self.value == 0.0 and all((vector >= 0.0).all() for vector in self.vectors)

    @property
    def range(self) -> tuple[float, float]:
        """Smallest and largest value that the expectation can have under any table.

        Examples
        --------
        >>> Moment((0,), (np.array([1.0, 3.0]),), 2.0, "mean of a").range
        (1.0, 3.0)
        """
        low = high = 1.0
        for vector in self.vectors:
            ends = [bound * end for bound in (low, high) for end in (vector.min(), vector.max())]
            low, high = float(min(ends)), float(max(ends))
        return low, high

    def expectation(self, share: Array) -> float:
        """Return the value of this moment under a share table of its variables.

        Examples
        --------
        >>> half = np.array([0.5, 0.5])
        >>> Moment((0,), (np.array([1.0, 3.0]),), 2.0, "mean of a").expectation(half)
        2.0
        """
        for vector in self.vectors:
            share = np.tensordot(vector, share, axes=(0, 0))
        return float(share)


def read_moments(
    moments: Mapping[Key, float],
    domain: Domain,
    *,
    central: bool = True,
    table_mean: Callable[[str], float | None] = lambda name: None,
) -> tuple[Moment, ...]:
    """Convert ``{("a",): mean, ("a", "b"): covariance, ...}`` to moments.

    Parameters
    ----------
    moments : mapping
        From one name to its mean, from several (repeated ones allowed: ``("a", "a")`` is the
        variance) to their central moment.
    domain : Domain
        Its levels are the numbers.
    central : bool
        False: moments of two or more names are raw, ``E[a b]``.
    table_mean : callable
        Returns the mean of a variable from a table, for means that are not given.

    Examples
    --------
    >>> domain = Domain.of({"a": [0, 1], "b": [1, 2, 3]})
    >>> [m.label for m in read_moments({"a": 0.5, "b": 2.0, ("b", "b"): 0.7}, domain)]
    ['mean of a', 'mean of b', 'variance of b']
    """
    named = _by_index(moments, domain)
    means = {key[0]: value for key, value in named.items() if len(key) == 1}
    found = []
    for key, value in named.items():
        centers = dict.fromkeys(key, 0.0)
        if central and len(key) > 1:
            centers = {n: _center(n, key, domain, means, table_mean) for n in key}
        found.append(_moment(key, value, centers, domain, central))
    return tuple(found)


def _by_index(moments: Mapping[Key, float], domain: Domain) -> dict[tuple[int, ...], float]:
    """Check values and names; convert keys to increasing indices, with repetitions."""
    named: dict[tuple[int, ...], float] = {}
    for names, value in moments.items():
        listed = (names,) if isinstance(names, str) else tuple(names)
        if not listed:
            raise ValueError("A moment without variables was given: name at least one.")
        key = tuple(sorted(domain.index(name) for name in listed))
        if key in named:
            raise ValueError(f"The moment of {_words(key, domain)} is given twice.")
        if not isinstance(value, int | float | np.number) or not np.isfinite(value):
            raise ValueError(
                f"The moment of {_words(key, domain)} must be a finite number, got {cite(value)}."
            )
        named[key] = float(value)
    return named


def _words(key: tuple[int, ...], domain: Domain) -> str:
    return ", ".join(domain.names[n] for n in key)


def _center(
    n: int,
    key: tuple[int, ...],
    domain: Domain,
    means: Mapping[int, float],
    table_mean: Callable[[str], float | None],
) -> float:
    name = domain.names[n]
    mean = means[n] if n in means else table_mean(name)
    if mean is None:
        raise ValueError(
            f"The central moment of {_words(key, domain)} needs the mean of {cite(name)}: add "
            f"moments={{({cite(name)},): mean}} or a table that holds {cite(name)}, or give raw "
            "moments with central=False."
        )
    return mean


def _moment(
    key: tuple[int, ...], value: float, centers: Mapping[int, float], domain: Domain, central: bool
) -> Moment:
    variables = tuple(sorted(set(key)))
    vectors = []
    for n in variables:
        values = np.asarray(domain[n].numeric, dtype=np.float64)
        vectors.append((values - centers[n]) ** key.count(n))
    moment = Moment(tuple(variables), tuple(vectors), value, _label(key, domain, central))
    _check_range(moment)
    return moment


def _label(key: tuple[int, ...], domain: Domain, central: bool) -> str:
    names = _words(key, domain)
    if len(key) == 1:
        return f"mean of {names}"
    if not central:
        return f"raw moment of {names}"
    if len(key) == 2:
        same = key[0] == key[1]
        return f"variance of {domain.names[key[0]]}" if same else f"covariance of {names}"
    return f"central moment of {names}"


def _check_range(moment: Moment) -> None:
    """Raise for a value that no table can have: it lies outside the range of the products."""
    low, high = moment.range
    slack = 1e-9 * max(abs(low), abs(high))  # rounding of the vectors' products
    if not low - slack <= moment.value <= high + slack:
        raise ValueError(
            f"The {moment.label} is given as {moment.value:g}, but with these levels it lies "
            f"between {low:g} and {high:g}: check the number, or the levels' values."
        )


def impossible_moment(tables: "Marginals", levels: Mapping[str, Any]) -> Moment:
    """Return a combination of levels that nobody has, as a moment: its probability is zero.

    Examples
    --------
    >>> from rejoint import Marginals
    >>> m = Marginals.from_tables({"a": {"x": 3, "y": 1}, "b": {"u": 2, "v": 2}})
    >>> impossible_moment(m, {"b": "v", "a": ["x", "y"]}).vectors
    (array([1., 1.]), array([0., 1.]))
    """
    if not isinstance(levels, Mapping) or not levels:
        raise TypeError(
            "impossible= lists combinations of levels, such as "
            f"[{{'age': '0-14', 'work': 'employed'}}]; got {cite(levels)}."
        )
    domain = tables.domain
    members: dict[int, set[int]] = {}
    for name, level in levels.items():
        several = isinstance(level, list | tuple | set) and not isinstance(level, Bin)
        members[domain.index(name)] = {
            domain[name].code(x) for x in (level if several else [level])
        }
    variables = tuple(sorted(members))
    vectors = tuple(
        np.array([float(code in members[n]) for code in range(len(domain[n]))]) for n in variables
    )
    label = ", ".join(f"{name}={level}" for name, level in levels.items()) + ": impossible"
    for i, subset in enumerate(tables.index_subsets):
        if set(variables) <= set(subset):
            counts, cells = tables.counts_of(i).copy(), tables.unknown_of(i)
            if cells is not None:
                counts.ravel()[cells.places] = 0.0
            known = sum_to(counts, subset, variables)
            if Moment(variables, vectors, 0.0, label).expectation(known) > 0:
                raise ValueError(
                    f"{label}, but the table of {', '.join(tables.subsets[i])} has records there."
                )
    return Moment(variables, vectors, 0.0, label)
