"""LowRankPMF: the joint of many discrete variables as one small immutable object."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rejoint import io, queries
from rejoint.domain.domain import Domain, level_order, positions
from rejoint.pmf.ask import Asking
from rejoint.pmf.draws import Draws
from rejoint.pmf.from_dense import naive_bayes
from rejoint.pmf.mixture import Given, likelihoods, posterior
from rejoint.pmf.reduce import Reduction, smaller

if TYPE_CHECKING:
    from rejoint.identifiability.ambiguity import Ambiguity

__all__ = ["LowRankPMF", "load"]


class LowRankPMF(Asking):
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
    draws : sequence of LowRankPMF, optional
        Posterior draws, for credible intervals; forty of them are kept, in single precision.

    Attributes
    ----------
    weights : ndarray (F,)
    factors : tuple of ndarray (I_n, F)
    domain : Domain
    draws : sequence of LowRankPMF
        Empty where the model has none; fits by Bayes have them, and saved models keep them.

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

    def to_dense(self) -> NDArray[np.float64]:
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

    @classmethod
    def average(cls, pmfs: Iterable[Self], weights: ArrayLike | None = None) -> Self:
        """Mixture of several models: their classes side by side.

        Parameters
        ----------
        pmfs : iterable of LowRankPMF
            Of the same variables and levels, which are aligned by name.
        weights : array_like, optional
            Share of each model, divided by their sum; equal by default.

        Returns
        -------
        LowRankPMF
            Its rank is the sum of the ranks; :meth:`reduce` looks for a smaller one.

        Examples
        --------
        >>> import rejoint as rj
        >>> a = rj.LowRankPMF([1.0], [[[0.5], [0.5]]])
        >>> b = rj.LowRankPMF([1.0], [[[1.0], [0.0]]])
        >>> rj.LowRankPMF.average([a, b], weights=[1, 3]).marginal("x0")
        array([0.875, 0.125])
        """
        models = list(pmfs)
        if not models:
            raise ValueError("average: no models were given.")
        shares = np.ones(len(models)) if weights is None else np.array(weights, dtype=np.float64)
        if shares.shape != (len(models),):
            raise ValueError(
                f"average: {len(models)} models need as many weights; got shape {shares.shape}."
            )
        if not (np.isfinite(shares).all() and (shares >= 0.0).all() and shares.any()):
            raise ValueError(
                f"average: weights must be finite, nonnegative and not all zero; got {shares}."
            )
        shares = shares / shares.sum()
        models = [model.align(models[0].domain) for model in models]
        return cls(
            np.concatenate([s * m.weights for s, m in zip(shares, models, strict=True)]),
            [np.hstack(parts) for parts in zip(*(m.factors for m in models), strict=True)],
            models[0].domain,
        )

    def ambiguity(
        self,
        names: str | Sequence[str],
        given: Given = None,
        *,
        subsets: Sequence[Sequence[str]] | None = None,
        order: int | None = None,
    ) -> "Ambiguity":
        """Find another model with the same tables whose answer differs the most.

        See :func:`rejoint.identifiability.ambiguity`; ``subsets`` or ``order`` say which tables.

        Examples
        --------
        >>> import rejoint as rj
        >>> p = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 4)
        >>> p.ambiguity("x0", {"x1": 0, "x2": 0}, order=2).distance > 0.1
        True
        """
        from rejoint.identifiability.ambiguity import (
            ambiguity,  # which walks through models such as this
        )

        return ambiguity(self, names, given, subsets=subsets, order=order)

    def reduce(
        self,
        rank: int | None = None,
        *,
        tol: float = 1e-8,
        random_state: int | np.random.Generator | None = 0,
    ) -> Reduction:
        """A smaller model for the same joint, and its error.

        Classes without weight are dropped, and classes that differ in one factor at most are
        joined; both are exact. If that is not enough, the model is fitted anew to its own exact
        tables of three variables (and to the whole joint where that is small), from its nearest
        classes merged and from a fresh start.

        Parameters
        ----------
        rank : int, optional
            Rank to reduce to; without it the least one found that keeps the error below `tol`.
        tol : float
            Relative error of the joint that is as good as none.
        random_state : int, Generator or None
            Of the fresh starts; fixed by default.

        Returns
        -------
        Reduction
            ``pmf`` and ``error``, the ``tensor_error`` of it relative to this model.

        Examples
        --------
        >>> import rejoint as rj
        >>> p = rj.LowRankPMF([0.3, 0.7], [[[0.9, 0.2], [0.1, 0.8]], [[0.7, 0.1], [0.3, 0.9]]])
        >>> wide = rj.LowRankPMF.average([p, p.sorted(), p])
        >>> pmf, error = wide.reduce(rank=2)
        >>> wide.rank, pmf.rank, error < 1e-14
        (6, 2, True)
        """
        return smaller(self, rank, tol, random_state)

    def project(self, names: str | Sequence[str]) -> Self:
        """Model of some of the variables, in the order asked; the others are summed out.

        Examples
        --------
        >>> import rejoint as rj
        >>> rj.datasets.asia().project(["smoke", "lung"]).domain.names
        ('smoke', 'lung')
        """
        chosen = positions(self.domain, names)
        factors = [self.factors[n] for n in chosen]
        domain = Domain(tuple(self.domain[n] for n in chosen))
        return type(self)(self.weights, factors, domain, self.draws.project(domain.names))

    def condition(self, given: Given) -> Self:
        """Model of the variables that are not given, given the others.

        Classes that the evidence excludes are dropped.

        Examples
        --------
        >>> import rejoint as rj
        >>> p = rj.datasets.asia().condition({"lung": "yes", "tub": ["yes", "no"]})
        >>> p.rank, p.marginal("smoke").round(3)
        (4, array([0.909, 0.091]))
        """
        told = likelihoods(self.domain, given)
        rest = [n for n in range(len(self.domain)) if n not in told]
        if not rest:
            raise ValueError("condition: every variable is given, so that none remains.")
        shares, _ = posterior(self, given, ())
        alive = shares > 0.0
        domain = Domain(tuple(self.domain[n] for n in rest))
        parts = [self.factors[n][:, alive] for n in rest]
        return type(self)(shares[alive], parts, domain, self._draws_given(given))

    def _draws_given(self, given: Given) -> "list[LowRankPMF]":
        """The draws given evidence; those that hold it impossible are left out."""
        found = []
        for draw in self.draws:
            with suppress(queries.ZeroEvidenceError):
                found.append(draw.condition(given))
        return found

    def align(self, domain: Domain) -> Self:
        """The same model with variables and levels in the order of another domain.

        Examples
        --------
        >>> import rejoint as rj
        >>> p = rj.LowRankPMF([1.0], [[[0.3], [0.7]]], rj.Domain.of({"a": ["x", "y"]}))
        >>> p.align(rj.Domain.of({"a": ["y", "x"]})).marginal("a")
        array([0.7, 0.3])
        """
        if domain == self.domain:
            return self
        orders = level_order(self.domain, domain)
        chosen = self.domain.indices(domain.names)
        factors = [self.factors[n][order] for n, order in zip(chosen, orders, strict=True)]
        return type(self)(self.weights, factors, domain, self.draws)

    def save(
        self,
        path: str | PathLike[str],
        *,
        notes: Mapping[str, Any] | None = None,
        draws: bool = True,
    ) -> None:
        """Write the model to a file, all of it or nothing.

        The file is a NumPy archive of plain arrays, without pickles: safe to send and to load.
        By custom its name ends in ``.rejoint``. A name that ends in ``.json`` makes it text that
        any language can read. Either comes back bit by bit.

        Parameters
        ----------
        path : str or path
            An existing file is replaced.
        notes : dict, optional
            What else to keep in the file, as JSON can hold it; ``class_names`` in it names the
            classes. ``rejoint.io.read_saved(path).notes`` gives it back.
        draws : bool
            Whether posterior draws go into the file, where the model carries some.

        Examples
        --------
        >>> import rejoint as rj, tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "asia.rejoint")
        ...     rj.datasets.asia().save(path)
        ...     rj.load(path) == rj.datasets.asia()
        True
        """
        kept = self.draws.block if draws else None
        io.write_model(path, self.weights, self.factors, self.domain, notes, kept)

    @classmethod
    def of_saved(cls, saved: io.SavedModel) -> Self:
        """The model of what a file holds, draws included.

        Examples
        --------
        >>> import rejoint as rj, io
        >>> file, asia = io.BytesIO(), rj.datasets.asia()
        >>> rj.io.write_open(file, asia.weights, asia.factors, asia.domain)
        >>> _ = file.seek(0)
        >>> rj.LowRankPMF.of_saved(rj.io.read_open(file, "memory")) == asia
        True
        """
        draws = () if saved.draws is None else Draws(saved.domain, saved.draws)
        return cls(saved.weights, saved.factors, saved.domain, draws)


def load(path: str | PathLike[str]) -> LowRankPMF:
    """Read a model that :meth:`LowRankPMF.save` wrote; nothing in the file is executed.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    LowRankPMF
        Equal to the saved one bit by bit, with the posterior draws that the file has.

    Examples
    --------
    >>> import rejoint as rj
    >>> rj.load("no-such-file.rejoint")
    Traceback (most recent call last):
    ...
    FileNotFoundError: No model file 'no-such-file.rejoint'...
    """
    return LowRankPMF.of_saved(io.read_saved(path))
