"""State of a mixture of products: weights, factors, domain; validated once, then read-only."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rejoint.domain import Domain
from rejoint.domain.labels import plural
from rejoint.pmf.draws import Draws

__all__ = ["Mixture"]

FloatArray = NDArray[np.float64]

_SUM_TOLERANCE = 1e-6  # farther from one than this is a mistake, nearer is rounding
_KEEP_BITS = 1e-14  # nearer than this is left as it is, so that copies are equal bit by bit


class Mixture:
    """Weights (F,), factors (I_n, F), the domain that names them, perhaps draws; immutable.

    Examples
    --------
    >>> m = Mixture([0.5, 0.5], [[[1.0, 0.2], [0.0, 0.8]]])
    >>> m.rank, m.domain.names
    (2, ('x0',))
    """

    __slots__ = ("__weakref__", "domain", "draws", "factors", "weights")
    weights: FloatArray
    factors: tuple[FloatArray, ...]
    domain: Domain
    draws: Draws

    def __init__(
        self,
        weights: ArrayLike,
        factors: Sequence[ArrayLike],
        domain: Domain | None = None,
        draws: Sequence[Any] = (),
    ) -> None:
        w = _numbers(weights, "weights", 1)
        matrices = [_numbers(factor, f"factors[{n}]", 2) for n, factor in enumerate(factors)]
        if not matrices:
            raise ValueError("factors is empty: a model has at least one variable.")
        if domain is None:
            domain = Domain.of_shape([len(matrix) for matrix in matrices])
        _check_shapes(w, matrices, domain)
        labels = [f"the factor of {name!r}" for name in domain.names]
        put = object.__setattr__
        put(self, "weights", _on_simplex(w[:, None], "weights")[:, 0])
        put(self, "factors", tuple(map(_on_simplex, matrices, labels)))
        put(self, "domain", domain)
        put(self, "draws", Draws.of(draws, domain))
        for array in (self.weights, *self.factors):
            array.flags.writeable = False

    @property
    def rank(self) -> int:
        """Number of hidden classes, F.

        Examples
        --------
        >>> Mixture([0.5, 0.5], [[[1.0, 0.2], [0.0, 0.8]]]).rank
        2
        """
        return len(self.weights)

    def sorted(self) -> Self:
        """The same model with its classes by falling weight.

        Examples
        --------
        >>> Mixture([0.2, 0.8], [[[1.0, 0.3], [0.0, 0.7]]]).sorted().weights
        array([0.8, 0.2])
        """
        order = np.argsort(-self.weights, kind="stable")
        factors = [a[:, order] for a in self.factors]
        return type(self)(self.weights[order], factors, self.domain, self.draws)

    def equals(self, other: object, tol: float = 1e-9) -> bool:
        """Say whether weights and factors agree up to the order of the classes.

        Draws are not compared. Two models of different rank or different parameters may still
        describe the same joint:
        :func:`rejoint.metrics.tensor_error` tells.

        Parameters
        ----------
        other : object
            Another model; anything else is not equal.
        tol : float
            Largest difference of any weight or any entry of a factor.

        Examples
        --------
        >>> a = Mixture([0.2, 0.8], [[[1.0, 0.3], [0.0, 0.7]]])
        >>> a.equals(a.sorted()), a.equals(Mixture([0.8, 0.2], a.factors))
        (True, False)
        """
        if not isinstance(other, Mixture) or self.domain != other.domain:
            return False
        if self.rank != other.rank:
            return False
        mine, theirs = _columns(self), _columns(other)
        mine, theirs = mine[:, np.lexsort(mine)], theirs[:, np.lexsort(theirs)]
        if bool((np.abs(mine - theirs) <= tol).all()):
            return True
        return tol > 0.0 and _matches(mine, theirs, tol)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mixture):
            return NotImplemented
        return self.equals(other, tol=0.0)

    def __hash__(self) -> int:
        return hash((self.domain.names, np.sort(self.weights).tobytes()))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"{type(self).__name__} is immutable: make a new one to change {name}."
        )

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: {name} cannot be deleted.")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.weights, self.factors, self.domain, self.draws)

    def __repr__(self) -> str:
        count, top = len(self.domain), ", ".join(f"{w:.3g}" for w in np.sort(self.weights)[:-6:-1])
        names = ", ".join(f"{v.name} ({len(v)})" for v in list(self.domain)[:6])
        return (
            f"{type(self).__name__}(rank {self.rank}, {plural(count, 'variable')}: {names}"
            f"{', ...' * (count > 6)}; weights {top}{', ...' * (self.rank > 5)})"
        )


def _numbers(values: ArrayLike, what: str, axes: int) -> FloatArray:
    array = np.array(values, dtype=np.float64, order="C")
    if array.ndim != axes:
        shape = "(rank,)" if axes == 1 else "(levels, rank)"
        raise ValueError(f"{what} must have shape {shape}; got {array.shape}.")
    if not array.size:
        raise ValueError(
            f"{what} is empty (shape {array.shape}): at least one class and one level."
        )
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{what} holds {array[where]} at {where}: all entries must be finite.")
    if array.min() < 0.0:
        where = tuple(int(i) for i in np.unravel_index(array.argmin(), array.shape))
        raise ValueError(f"{what} holds {array[where]:.6g} at {where}: probabilities are >= 0.")
    array += 0.0  # -0.0 becomes 0.0
    return array


def _check_shapes(weights: FloatArray, factors: list[FloatArray], domain: Domain) -> None:
    if len(factors) != len(domain):
        raise ValueError(f"{len(factors)} factors for a domain of {len(domain)} variables.")
    for factor, variable in zip(factors, domain, strict=True):
        wanted = (len(variable), len(weights))
        if factor.shape != wanted:
            raise ValueError(
                f"Factor of {variable.name!r} has shape {factor.shape}; its {wanted[0]} levels and "
                f"the {wanted[1]} weights ask for {wanted}."
            )


def _on_simplex(columns: FloatArray, what: str) -> FloatArray:
    """Columns that sum to one, by division where they are off by rounding."""
    total = columns.sum(axis=0)
    off = np.abs(total - 1.0)
    worst = int(off.argmax())
    if off[worst] > _SUM_TOLERANCE:
        part = "the weights sum" if what == "weights" else f"column {worst} of {what} sums"
        raise ValueError(f"{part} to {total[worst]:.9g}, not to 1: divide by the sum first.")
    return np.ascontiguousarray(np.where(off > _KEEP_BITS, columns / total, columns))


def _columns(model: Mixture) -> FloatArray:
    return np.vstack([model.weights[None, :], *model.factors])


def _matches(a: FloatArray, b: FloatArray, tol: float) -> bool:
    """Say whether the columns can be paired so that none differs by more than `tol`."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    near = np.stack([(np.abs(a[:, [f]] - b) <= tol).all(axis=0) for f in range(a.shape[1])])
    pairs = maximum_bipartite_matching(csr_array(near), perm_type="column")
    return bool((np.asarray(pairs) >= 0).all())
