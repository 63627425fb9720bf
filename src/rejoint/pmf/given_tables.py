"""The tables that a model was fitted to, which say what its answers rest on."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.domain import Domain, level_order
from rejoint.marginals.marginals import Marginals
from rejoint.marginals.subsets import Subset

FloatArray = NDArray[np.float64]

#: Cells of all tables together up to which a model keeps them: 16 MB. Beyond it only the names of
#: their variables are kept: an answer then says whether it is published, but has no range.
MOST_CELLS = 2_000_000


@dataclass(frozen=True, eq=False)
class GivenTables:
    """The tables that a model was fitted to, and what they say about it.

    They stay as they were given while the model is aligned, projected or conditioned: variables
    are found by name, levels by label. :meth:`given` adds evidence, which a conditioned model has.

    Parameters
    ----------
    domain : Domain
        Variables and levels of the tables.
    subsets : tuple of tuples of int
        The variables of each table that has records, increasing.
    marginals : Marginals or None
        The tables; None where they are too many to be kept.
    identified : str or None
        The certificate, in one sentence, where the model is the only one of its rank that meets
        the tables.
    evidence : mapping from int to array
        What a conditioned model was given: likelihood of each level, by position of the variable.

    Examples
    --------
    >>> tables = GivenTables.of(Marginals.from_tables({("a", "b"): [[1, 2], [3, 4]], "c": [5, 5]}))
    >>> tables.holds(["b", "a"]), tables.holds(["a", "c"])
    (True, False)
    """

    domain: Domain
    subsets: tuple[Subset, ...]
    marginals: Marginals | None = None
    identified: str | None = None
    evidence: Mapping[int, FloatArray] = field(default_factory=dict)

    @classmethod
    def of(cls, marginals: Marginals, identified: str | None = None) -> "GivenTables":
        """Make it of the tables of a fit.

        Examples
        --------
        >>> GivenTables.of(Marginals.from_tables({("a", "b"): [[1, 2], [3, 4]]})).subsets
        ((0, 1),)
        """
        subsets = tuple(
            subset
            for subset, total in zip(marginals.index_subsets, marginals.totals, strict=True)
            if total > 0
        )
        kept = marginals if marginals.flat.size <= MOST_CELLS else None
        return cls(marginals.domain, subsets, kept, identified)

    def holds(self, names: Any) -> bool:
        """Whether one table has all of these variables, and those of the evidence.

        Examples
        --------
        >>> GivenTables(Domain.of({"a": 2, "b": 2}), ((0,), (1,))).holds(["a", "b"])
        False
        """
        asked = {*self.domain.indices(tuple(names)), *self.evidence}
        return any(asked <= set(subset) for subset in self.subsets)

    def given(self, domain: Domain, likelihoods: Mapping[int, FloatArray]) -> "GivenTables":
        """Return the tables with evidence added, by position in the domain of the model.

        Examples
        --------
        >>> tables = GivenTables(Domain.of({"a": ["x", "y"], "b": 2}), ((0, 1),))
        >>> model = Domain.of({"b": 2, "a": ["y", "x"]})
        >>> tables.given(model, {1: np.array([1.0, 0.0])}).evidence
        {0: array([0., 1.])}
        """
        return replace(self, evidence={**self.evidence, **self.vectors(domain, likelihoods)})

    def vectors(
        self, domain: Domain, by_position: Mapping[int, FloatArray]
    ) -> dict[int, FloatArray]:
        """Return numbers per level with variables and levels in the order of the tables.

        Examples
        --------
        >>> tables = GivenTables(Domain.of({"a": ["x", "y"], "b": 2}), ((0, 1),))
        >>> tables.vectors(Domain.of({"a": ["y", "x"]}), {0: np.array([1.0, 2.0])})
        {0: array([2., 1.])}
        """
        chosen = list(by_position)
        own = self.domain.indices([domain.names[n] for n in chosen])
        theirs = Domain(tuple(domain[n] for n in chosen))
        orders = level_order(theirs, Domain(tuple(self.domain[n] for n in own))) if chosen else ()
        return {
            n: np.asarray(by_position[k], dtype=np.float64)[order]
            for n, k, order in zip(own, chosen, orders, strict=True)
        }
