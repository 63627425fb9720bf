"""Composite view: a model with blocks as a mixture of products, one variable for each block."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rejoint.arrays import FloatArray
from rejoint.domain.domain import Domain
from rejoint.identifiability.layout import TableLayout
from rejoint.model import Model
from rejoint.pmf.pmf import LowRankPMF
from rejoint.queries.mixture import blocks_of_tables, partition_of


@dataclass(frozen=True)
class CompositeView:
    """Tables and model over blocks; the same as they were where there are none.

    ``is_whole`` says whether every table holds its blocks whole. Tables that do not are left out,
    which can only make a model look less unique than it is.
    """

    pmf: LowRankPMF
    tables: TableLayout
    model: Model
    partition: Sequence[Sequence[int]]
    is_whole: bool = True

    @classmethod
    def of(cls, tables: TableLayout, pmf: LowRankPMF) -> "CompositeView":
        """The view of a model; a block that is in no table whole is in none."""
        if not pmf._blocks:
            partition = [[n] for n in range(len(pmf.domain))]
            return cls(pmf, tables, Model.of(pmf.weights, pmf.factors), partition)
        partition = partition_of(pmf._parts)
        factors = pmf._parts.composite(partition)
        names = [" & ".join(tables.names(members)) for members in partition]
        domain = Domain.of({name: len(a) for name, a in zip(names, factors, strict=True)})
        whole, subsets = True, set()
        for subset in tables.iter_subsets():
            held = tuple(g for g, own in enumerate(partition) if {*own} <= {*subset})
            whole &= sum(len(partition[g]) for g in held) == len(subset)
            subsets.add(held)
        kept = [subset for subset in subsets if subset]
        layout = TableLayout.from_subsets(domain, kept) if kept else TableLayout(domain, None)
        return cls(pmf, layout, Model.of(pmf.weights, factors), partition, whole)

    def to_pmf(self, x: FloatArray) -> LowRankPMF:
        """A model with blocks from a matrix of weights and stacked factors."""
        x = np.maximum(x, 0.0)
        domain, levels = self.pmf.domain, dict(enumerate(self.pmf.domain.shape))
        tables = self.model.layout.split(self.model.layout.normalize(x[1:]))
        factors: dict[int, FloatArray] = {}
        for own, table in zip(self.partition, tables, strict=True):
            cells = table.reshape(*(levels[n] for n in own), -1)
            for k, n in enumerate(own):
                axes = tuple(axis for axis in range(len(own)) if axis != k)
                factors[n] = cells.sum(axis=axes)
        several = [g for g, own in enumerate(self.partition) if len(own) > 1]
        members = [self.partition[g] for g in several]
        blocks = blocks_of_tables(members, [tables[g] for g in several], levels)
        weights = x[0] / x[0].sum()
        ordered = [factors[n] for n in range(len(domain))]
        return LowRankPMF(weights, ordered, domain, blocks=blocks)
