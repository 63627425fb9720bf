"""LowRankPMF: the joint of many discrete variables as one small immutable object."""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from rejoint import queries
from rejoint._answers import Answers
from rejoint._dense import naive_bayes
from rejoint.domain import Domain

__all__ = ["LowRankPMF"]


class LowRankPMF(Answers):
    """Joint probability ``P(x_1..x_N) = sum_f weights[f] * prod_n factors[n][x_n, f]``.

    A low-rank nonnegative tensor, a latent class model, a naive Bayes model with a hidden class:
    three names of one thing. The object is immutable, its arrays are read-only copies.

    Parameters
    ----------
    weights : array_like (F,)
        Probability of each hidden class; sums to one.
    factors : sequence of array_like (I_n, F)
        One per variable; column f holds the probabilities of its levels in class f.
    domain : Domain, optional
        Names and levels; ``x0, x1, ...`` with levels ``0, 1, ...`` without it.

    Attributes
    ----------
    weights : ndarray (F,)
    factors : tuple of ndarray (I_n, F)
    domain : Domain

    Examples
    --------
    >>> import rejoint as rj
    >>> domain = rj.Domain.of({"smoke": ["yes", "no"], "cough": ["yes", "no"]})
    >>> p = rj.LowRankPMF([0.3, 0.7], [[[0.9, 0.2], [0.1, 0.8]], [[0.7, 0.1], [0.3, 0.9]]], domain)
    >>> p
    LowRankPMF(rank 2, 2 variables: smoke (2), cough (2); weights 0.7, 0.3)
    >>> round(p.prob({"smoke": "yes"}, given={"cough": "yes"}), 3)
    0.725
    """

    __slots__ = ()

    def to_dense(self) -> queries.FloatArray:
        """The whole joint as one array, axes and levels as in ``domain``.

        Raises
        ------
        ValueError
            Beyond 2**27 cells (1 GiB).

        Examples
        --------
        >>> import rejoint as rj
        >>> p = rj.LowRankPMF([0.5, 0.5], [[[1.0, 0.5], [0.0, 0.5]]] * 2)
        >>> p.to_dense()
        array([[0.625, 0.125],
               [0.125, 0.125]])
        """
        return queries.joint_table(self.weights, self.factors)

    @classmethod
    def from_dense(cls, array: ArrayLike, domain: Domain | None = None) -> Self:
        """Exact model of any joint: Proposition 1 of the paper.

        The fibres along one variable are the classes; empty ones are dropped, and classes that
        differ in one variable only are joined, so that the rank is often far below the bound
        ``min_k prod_{n != k} I_n``. It is not always the least one possible.

        Parameters
        ----------
        array : array_like
            Probabilities or counts, one axis a variable; divided by their sum.
        domain : Domain, optional
            Names and levels of the axes.

        Returns
        -------
        LowRankPMF

        Examples
        --------
        >>> import numpy as np, rejoint as rj
        >>> table = np.array([[[2.0, 0.0], [1.0, 3.0]], [[0.0, 0.0], [4.0, 0.0]]])
        >>> p = rj.LowRankPMF.from_dense(table)
        >>> p.rank, bool(np.allclose(p.to_dense(), table / 10, atol=1e-15))
        (3, True)
        """
        return cls(*naive_bayes(np.asarray(array, dtype=np.float64)), domain)
