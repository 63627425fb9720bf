"""Losses: how far a table is from the model's, cell by cell. A loss is a value.

``factorize(tables, rank, loss=...)`` minimizes ``sum_S omega_S loss(X_S, Xhat_S)``. Any object with
the parts of :class:`Loss` is one. Solvers say in ``needs`` which further parts they use:

* ``curvature(table, model)``: a positive second derivative of each cell, or its expectation;
  :class:`~rejoint.factorization.Newton` needs it;
* ``unit_curvature``: the loss is half the squared error, so that normal matrices are products of
  Gram matrices; :class:`~rejoint.factorization.Admm` needs it;
* ``ratios(table, model)``: ``x / m``, by which EM shares cells out among classes;
  :class:`~rejoint.factorization.Kl` needs it, and ``curvature``.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from rejoint.arrays import FloatArray
from rejoint.text import cite

if TYPE_CHECKING:
    from rejoint.factorization.problem import TableProblem

#: A model's cell counts as at least this, so that a cell it excludes costs much but not
#: infinitely much, and no division overflows.
TINY = 1e-290

#: Below this the series of the divergence is exact to rounding, above it the logarithm is to 1e-12.
SMALL_GAP = 1e-3


class Loss(Protocol):
    """A sum over cells of a function of the table's share ``x`` and the model's ``m``."""

    @property
    def name(self) -> str:
        """Its name in messages."""
        ...

    def value(self, table: FloatArray, model: FloatArray, weight: FloatArray | float) -> float:
        """Sum over all cells, each times its weight; zero where table and model agree."""
        ...

    def slope(self, table: FloatArray, model: FloatArray) -> FloatArray:
        """Derivative in ``m`` of each cell, up to a constant; may overwrite ``model``."""
        ...

    def error(self, objective: float, scale: float) -> float:
        """Bound on the relative error of tables whose sum of squares is ``scale``; NaN for none."""
        ...

    def check(self, problem: "TableProblem") -> None:
        """Refuse tables that it cannot compare."""
        ...


@dataclass(frozen=True)
class Squares:
    """Half the squared error, ``(x - m)^2 / 2``: the paper's loss.

    Examples
    --------
    >>> Squares().value(np.array([0.5, 0.5]), np.array([0.25, 0.75]), 1.0)
    0.0625
    """

    name: str = "squares"
    unit_curvature = True

    def value(self, table: FloatArray, model: FloatArray, weight: FloatArray | float) -> float:
        """See ``Loss``."""
        residual = table - model
        return 0.5 * float(np.vdot(residual, residual * weight))

    def slope(self, table: FloatArray, model: FloatArray) -> FloatArray:
        """See ``Loss``."""
        return model - table

    def curvature(self, table: FloatArray, model: FloatArray) -> FloatArray:
        """One for each cell."""
        return np.ones_like(model)

    def error(self, objective: float, scale: float) -> float:
        """See ``Loss``."""
        return float(np.sqrt(max(2.0 * objective, 0.0) / scale))

    def check(self, problem: "TableProblem") -> None:
        """See ``Loss``: it takes all tables."""


@dataclass(frozen=True)
class Divergence:
    """Kullback-Leibler divergence of the table from the model's, ``x log(x / m) - x + m``.

    With counts behind the tables, weights in proportion to them make it a composite likelihood.
    By Pinsker's inequality ``||X - Xhat||^2 / 2`` is at most the divergence, so that the error of
    an objective is that of squares, as a bound.

    Examples
    --------
    >>> found = Divergence().value(np.array([0.5, 0.5, 0.0]), np.array([0.25, 0.5, 0.25]), 1.0)
    >>> round(float(found / np.log(2)), 12)
    0.5
    """

    name: str = "kl"

    def value(self, table: FloatArray, model: FloatArray, weight: FloatArray | float) -> float:
        """See ``Loss``.

        A cell is never negative. Near a perfect fit it is the difference of numbers 1e16 times its
        size, so it is computed as ``x (d - log(1 + d))`` with ``d = (m - x) / x``, by its series
        where ``d`` is small.
        """
        weight = np.broadcast_to(weight, table.shape)
        seen = table > TINY
        unseen = float(np.sum(model * weight, where=~seen))
        x, m = table[seen], model[seen]
        gap = (m - x) / x
        series = gap**2 * (1 / 2 - gap * (1 / 3 - gap * (1 / 4 - gap * (1 / 5 - gap / 6))))
        exact = gap - np.log(np.maximum(m, TINY) / x)
        terms = np.where(np.abs(gap) < SMALL_GAP, series, exact)
        return unseen + float(np.vdot(x * terms, weight[seen]))

    def ratios(self, table: FloatArray, model: FloatArray) -> FloatArray:
        """``x / m`` of every cell, with ``m`` held above zero; overwrites ``model``."""
        np.maximum(model, TINY, out=model)
        return np.divide(table, model, out=model)

    def slope(self, table: FloatArray, model: FloatArray) -> FloatArray:
        """``-x / m``: the constant one vanishes on columns that sum to one."""
        ratios = self.ratios(table, model)
        return np.negative(ratios, out=ratios)

    def curvature(self, table: FloatArray, model: FloatArray) -> FloatArray:
        """``1 / m``: the Fisher information, which is the curvature where ``x = m``."""
        return 1.0 / np.maximum(model, TINY)

    def error(self, objective: float, scale: float) -> float:
        """See ``Loss``."""
        return SQUARES.error(objective, scale)

    def check(self, problem: "TableProblem") -> None:
        """Refuse moments and negative cells: of these no divergence can be taken."""
        if any((table < 0).any() for table in problem.tables):
            raise ValueError(
                "solver='kl' compares tables of shares, and some cells are negative (noise was "
                "added): use solver='auto', 'admm' or 'newton', which take them as they are."
            )
        if problem.moments:
            number = sum(len(moments.value) for moments in problem.moments)
            raise ValueError(
                f"solver='kl' compares tables of shares, and {number} of the inputs are moments "
                "(means, covariances, ...). Leave them out, or use solver='auto', 'admm' or "
                "'newton'."
            )


SQUARES, KL = Squares(), Divergence()

LOSSES: dict[str, Loss] = {loss.name: loss for loss in (SQUARES, KL)}


def as_loss(loss: Any) -> Loss:
    """Return a loss, by its name if need be.

    Examples
    --------
    >>> as_loss("kl") is KL
    True
    >>> as_loss("absolute")
    Traceback (most recent call last):
    ...
    ValueError: loss='absolute' is not supported; use one of 'squares', 'kl', or a loss object with
    ...
    """
    made: Any = LOSSES.get(loss, loss) if isinstance(loss, str) else loss
    parts = ("value", "slope", "error", "check")
    if isinstance(made, type | str) or not all(callable(getattr(made, p, None)) for p in parts):
        raise ValueError(
            f"loss={cite(loss)} is not supported; use one of {', '.join(map(repr, LOSSES))}, or a "
            f"loss object with {', '.join(parts)} (see rejoint.factorization.loss)."
        )
    checked: Loss = made
    return checked
