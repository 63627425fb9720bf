"""The tables that a model was fitted to, which give the basis of its answers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.domain import Domain, level_order
from rejoint.io.saved_tables import SavedTables
from rejoint.marginals.folder import of_saved, to_saved
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

    def named_subsets(self, domain: Domain) -> list[tuple[str, ...]]:
        """Return the variables of each table that are in a domain, without repetitions.

        Examples
        --------
        >>> tables = GivenTables(Domain.of({"a": 2, "b": 2, "c": 2}), ((0, 1), (1, 2), (2,)))
        >>> tables.named_subsets(Domain.of({"c": 2, "b": 2}))
        [('b',), ('b', 'c'), ('c',)]
        """
        names = self.domain.names
        found = (tuple(names[n] for n in s if names[n] in domain) for s in self.subsets)
        return [each for each in dict.fromkeys(found) if each]

    def holds(self, names: Any) -> bool:
        """Whether one table has all of these variables, and those of the evidence.

        Examples
        --------
        >>> GivenTables(Domain.of({"a": 2, "b": 2}), ((0,), (1,))).holds(["a", "b"])
        False
        """
        asked = {*self.domain.indices(tuple(names)), *self.evidence}
        return any(asked <= set(subset) for subset in self.subsets)

    def describe_slack(self, slack: float) -> str:
        """Say by how much of the total cells may be off in ranges of answers, and why.

        Examples
        --------
        >>> GivenTables(Domain.of({"a": 2}), ((0,),)).describe_slack(0.0123)
        'up to 0.012 of the total, because they contradict each other'
        """
        noisy = self.marginals is not None and self.marginals.noisy
        reason = "come from a sample" if noisy else "contradict each other"
        return f"up to {slack:.2g} of the total, because they {reason}"

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
        return {
            n: np.asarray(by_position[k], dtype=np.float64)[order]
            for k, (n, order) in self.orders(domain, by_position).items()
        }

    def orders(
        self, domain: Domain, chosen: Iterable[int]
    ) -> dict[int, tuple[int, NDArray[np.intp]]]:
        """Return, by position in another domain, the position here and the order of the levels.

        Examples
        --------
        >>> tables = GivenTables(Domain.of({"a": ["x", "y"], "b": 2}), ((0, 1),))
        >>> tables.orders(Domain.of({"b": 2, "a": ["y", "x"]}), [1])
        {1: (0, array([1, 0]))}
        """
        found = {}
        for k in chosen:
            n = self.domain.index(domain.names[k])
            [order] = level_order(Domain((domain[k],)), Domain((self.domain[n],)))
            found[k] = n, order
        return found

    def to_saved(self) -> SavedTables:
        """Return what a model file has of the tables.

        Examples
        --------
        >>> tables = GivenTables.of(Marginals.from_tables({"a": [1, 2]}))
        >>> GivenTables.of_saved(tables.to_saved()).marginals["a"]
        array([1., 2.])
        """
        head: dict[str, Any] = {"identified": self.identified, "evidence": self.evidence}
        if self.marginals is None:
            return SavedTables(self.domain, self.subsets, **head)
        return to_saved(self.marginals)._replace(**head)

    @classmethod
    def of_saved(cls, saved: SavedTables) -> "GivenTables":
        """Make it of the contents of a file.

        Examples
        --------
        >>> GivenTables.of_saved(SavedTables(Domain.of({"a": 2}), ((0,),))).marginals is None
        True
        """
        if saved.cells is None:
            head = (None, saved.identified, saved.evidence)
            return cls(saved.domain, saved.subsets, *head)
        marginals = Marginals(**of_saved(saved))
        return replace(cls.of(marginals, saved.identified), evidence=saved.evidence)
