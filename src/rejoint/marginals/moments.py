"""Moments of numeric levels: means, covariances, third moments, as linear functions of tables."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rejoint.arrays import FloatArray, sum_to
from rejoint.domain.domain import Domain
from rejoint.domain.labels import Bin
from rejoint.text import cite

if TYPE_CHECKING:
    from rejoint.marginals.marginals import Marginals

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
    vectors: tuple[FloatArray, ...]
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

    def expectation(self, share: FloatArray) -> float:
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
    """
    named = _by_index(moments, domain)
    means = {key[0]: value for key, value in named.items() if len(key) == 1}
    read = []
    for key, value in named.items():
        centers = dict.fromkeys(key, 0.0)
        for n in key if central and len(key) > 1 else ():
            name = domain.names[n]
            mean = means[n] if n in means else table_mean(name)
            if mean is None:
                raise ValueError(
                    f"The central moment of {_words(key, domain)} needs the mean of {cite(name)}: "
                    f"add moments={{({cite(name)},): mean}} or a table that holds {cite(name)}, or "
                    "give raw moments with central=False."
                )
            centers[n] = mean
        read.append(_moment(key, value, centers, domain, central))
    return tuple(read)


def _by_index(moments: Mapping[Key, float], domain: Domain) -> dict[tuple[int, ...], float]:
    """Check values and names; convert keys to increasing indices, with repetitions."""
    named: dict[tuple[int, ...], float] = {}
    for names, value in moments.items():
        listed = (names,) if isinstance(names, str) else tuple(names)
        if not listed:
            raise ValueError("A moment without variables was given: name at least one.")
        key = tuple(sorted(domain.index(name) for name in listed))
        what = f"The moment of {_words(key, domain)}"
        if key in named:
            raise ValueError(f"{what} is given twice.")
        if not isinstance(value, int | float | np.number) or not np.isfinite(value):
            raise ValueError(f"{what} must be a finite number, got {cite(value)}.")
        named[key] = float(value)
    return named


def _words(key: tuple[int, ...], domain: Domain) -> str:
    return ", ".join(domain.names[n] for n in key)


def _moment(
    key: tuple[int, ...], value: float, centers: Mapping[int, float], domain: Domain, central: bool
) -> Moment:
    variables, names = tuple(sorted(set(key))), _words(key, domain)
    label = "mean" if len(key) == 1 else "central moment" if central else "raw moment"
    if central and len(key) == 2:
        label = "covariance" if len(variables) == 2 else "variance"
        names = _words(variables, domain)
    vectors = tuple(
        (np.asarray(domain[n].numeric, dtype=np.float64) - centers[n]) ** key.count(n)
        for n in variables
    )
    moment = Moment(variables, vectors, value, f"{label} of {names}")
    low, high = moment.range
    slack = 1e-9 * max(abs(low), abs(high))  # rounding of the vectors' products
    if not low - slack <= value <= high + slack:
        raise ValueError(
            f"The {moment.label} is given as {value:g}, but with these levels it lies between "
            f"{low:g} and {high:g}: check the number, or the levels' values."
        )
    return moment


def impossible_moment(tables: "Marginals", levels: Mapping[str, Any]) -> Moment:
    """Return a combination of levels that nobody has, as a moment: its probability is zero."""
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
