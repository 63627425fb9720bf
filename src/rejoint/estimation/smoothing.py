"""Smooth factor columns: neighbouring levels of a variable with an order inform each other.

A smooth column is ``A = T B``: a record of a class first takes a hidden level by ``B``, from
which it slips to neighbours by ``T``, the heat kernel of the levels' chain after some time. ``B``
has the Dirichlet prior that columns have without smoothing, and everything stays conjugate: counts
of levels are shared out among the hidden levels they may have slipped from, and the estimators work
on ``B`` as they do on ``A`` elsewhere. :mod:`rejoint.estimation.slipping` chooses the time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from typing import Self

import numpy as np

from rejoint.domain import Domain
from rejoint.estimation.problem import Array, Expected, RecordProblem, normalise

#: Hidden columns have a prior this much weaker: what slips must be sharper than what is seen.
SHARPER = 0.35

#: Steps to the hidden shares behind a variable's own.
STEPS = 30


@lru_cache(maxsize=1024)
def heat_kernel(size: int, time: float) -> Array:
    """``P(level | hidden level)`` after a time on a chain of levels, (size, size).

    Examples
    --------
    >>> heat_kernel(3, 0.1).round(2)
    array([[0.91, 0.09, 0.  ],
           [0.09, 0.83, 0.09],
           [0.  , 0.09, 0.91]])
    """
    steps = np.diff(np.eye(size), axis=0)
    values, vectors = np.linalg.eigh(steps.T @ steps)
    kernel: Array = np.maximum((vectors * np.exp(-time * values)) @ vectors.T, 0.0)
    kernel.setflags(write=False)
    return kernel


@dataclass(frozen=True)
class SmoothProblem(RecordProblem):
    """Records whose factors are those of hidden levels; ``times`` are zero where not smooth."""

    times: tuple[float, ...] = ()

    @classmethod
    def over(cls, problem: RecordProblem, wished: Sequence[int], time: float) -> Self:
        """The same records with a time for some of the variables."""
        times = tuple(time if n in wished else 0.0 for n in range(len(problem.levels)))
        names = {field.name for field in fields(cls)} - {"times"}
        return cls(times=times, **{name: getattr(problem, name) for name in names})

    @cached_property
    def spreads(self) -> tuple[tuple[slice, Array], ...]:
        """Rows and kernel of each smooth variable."""
        return tuple(
            (self.rows(n), heat_kernel(self.levels[n], time))
            for n, time in enumerate(self.times)
            if time > 0
        )

    @cached_property
    def firmness(self) -> Array:
        """What strengths of priors are in proportion to."""
        sharper = np.where(np.asarray(self.times) > 0, SHARPER, 1.0)
        return np.asarray(self.levels) * sharper

    @cached_property
    def centre(self) -> Array:
        """Shares of the hidden levels that give each variable's own shares, nearly."""
        seen = self.level_totals + 0.5
        hidden = normalise(self, seen[:, None])
        for _ in range(STEPS):
            hidden = normalise(self, self.hidden_counts(seen[:, None], hidden) + 1e-3)
        return np.asarray(hidden[:, 0])

    def columns(self, factors: Array) -> Array:
        """Factors of the levels from those of the hidden ones."""
        mixed = np.array(factors)
        for rows, kernel in self.spreads:
            mixed[rows] = kernel @ factors[rows]
        return mixed

    def hidden_counts(self, counts: Array, factors: Array) -> Array:
        """Counts of levels shared out among hidden levels, in expectation."""
        shared = np.array(counts)
        for rows, kernel in self.spreads:
            mine = factors[rows]
            shared[rows] = mine * (kernel.T @ (counts[rows] / np.maximum(kernel @ mine, 1e-300)))
        return shared

    def draw_hidden(self, counts: Array, factors: Array, rng: np.random.Generator) -> Array:
        """Counts of levels shared out among hidden levels, at random."""
        shared = np.array(counts)
        for rows, kernel in self.spreads:
            # Chance of each hidden level (last axis) behind each level in each class.
            chance = kernel[:, None, :] * factors[rows].T[None, :, :] + 1e-300
            chance /= chance.sum(axis=2, keepdims=True)
            drawn = rng.multinomial(counts[rows].astype(np.int64), chance)
            shared[rows] = drawn.sum(axis=0).T
        return shared

    def expect(self, weights: Array, factors: Array) -> Expected:
        """One pass, and counts of the hidden levels."""
        found = self.seen(weights, self.columns(factors))
        return replace(found, levels=self.hidden_counts(found.levels, factors))


def wished_variables(domain: Domain, smooth: bool | str | Sequence[str]) -> tuple[int, ...]:
    """Numbers of the variables that are to be smooth.

    Examples
    --------
    >>> wished_variables(Domain.of({"a": 3}), ["a"])
    Traceback (most recent call last):
    ...
    ValueError: Variable 'a' is nominal: its levels have no neighbours to be smooth with. Declare \
its kind as 'ordinal' (kinds={'a': 'ordinal'}), or leave it out of smooth.
    """
    if isinstance(smooth, bool | np.bool_):
        ordered = (n for n, variable in enumerate(domain) if variable.kind != "nominal")
        return tuple(n for n in ordered if len(domain[n]) > 2) if smooth else ()
    wished = domain.indices(smooth)
    for n in wished:
        if domain[n].kind == "nominal":
            name = domain[n].name
            raise ValueError(
                f"Variable {name!r} is nominal: its levels have no neighbours to be smooth with. "
                f"Declare its kind as 'ordinal' (kinds={{{name!r}: 'ordinal'}}), or leave it out "
                "of smooth."
            )
    return tuple(n for n in wished if len(domain[n]) > 2)
