"""LabelEnsemble: probabilities of labels given features, averaged over several models."""

from collections.abc import Sequence
from math import prod
from typing import Any, Self

import numpy as np

from rejoint.arrays import Codes, FloatArray, IntArray
from rejoint.domain.domain import Domain
from rejoint.estimators.classifier.label_explanation import LabelExplanation, explain_row
from rejoint.io.model_file import SavedEnsemble
from rejoint.model import Layout
from rejoint.pmf.pmf import LowRankPMF
from rejoint.queries.log_prob import posteriors
from rejoint.queries.tables import khatri_rao
from rejoint.text import cite, nearest, show

#: Combinations of labels up to which all are compared.
MOST_COMBINATIONS = 4096


class LabelEnsemble:
    """Several models whose probabilities of the labels are averaged.

    The weights of the average depend on the kind of row: how many of ``missing_limits`` are below
    the share that it misses of the features that were never missing at the fit. The last kind is a
    row that misses everything.

    Parameters
    ----------
    members : sequence of LowRankPMF
        Models of the features, then the targets.
    targets : int
        Number of targets.
    weights : array (kinds, members)
        Weight of each member for each kind of row, two more than limits; rows sum to one.
    always_there : array of int
        Positions of the features that were never missing at the fit.
    missing_limits : sequence of float
        Shares of these features, rising. By default rows differ in whether they have anything.
    """

    def __init__(
        self,
        members: Sequence[LowRankPMF],
        targets: int,
        weights: FloatArray,
        always_there: IntArray,
        missing_limits: Sequence[float] = (),
    ) -> None:
        self.members = tuple(members)
        self.features = Domain(self.members[0].domain.variables[:-targets])
        self.targets = Domain(self.members[0].domain.variables[-targets:])
        self.weights = weights
        self.always_there = always_there
        self.missing_limits = tuple(missing_limits)

    @classmethod
    def of_saved(cls, saved: SavedEnsemble, domain: Domain) -> Self:
        """Make an ensemble of the contents of a file; raise ValueError where it has no models."""
        layout = Layout(domain.shape)
        members = [LowRankPMF(m[0], layout.split(m[1:]), domain) for m in saved.members]
        there = np.array(saved.always_there, dtype=np.intp)
        return cls(members, len(saved.targets), saved.weights, there, saved.missing_limits)

    def to_saved(self) -> SavedEnsemble:
        """Return what a file has of an ensemble."""
        stacked = tuple(np.vstack([member.weights, *member.factors]) for member in self.members)
        there = tuple(self.always_there.tolist())
        return SavedEnsemble(self.targets.names, stacked, self.weights, there, self.missing_limits)

    def probabilities(
        self, codes: Codes, groups: Sequence[tuple[int, ...]] | None = None
    ) -> list[FloatArray]:
        """Return averaged probabilities of combinations of labels.

        Parameters
        ----------
        codes : array (rows, features)
            Levels of the features; -1 is a missing value.
        groups : sequence of tuple of int, optional
            For each array that is returned, the targets that it has all combinations of; by
            default each target alone.

        Returns
        -------
        list of array (rows, combinations)
            The labels of the last target of a group vary fastest.
        """
        groups = groups or [(t,) for t in range(len(self.targets))]
        sizes = [prod(self.targets.shape[t] for t in group) for group in groups]
        total = [np.zeros((len(codes), size)) for size in sizes]
        codes, kinds = np.ascontiguousarray(codes), self._kinds(codes)
        first = len(self.features)
        for member, weight in zip(self.members, self.weights.T, strict=True):
            member_weight, labels = weight[kinds, None], member.factors[first:]
            if not member_weight.any():
                continue
            ones = np.ones(member.rank)
            tables = [khatri_rao([labels[t] for t in group], ones) for group in groups]
            for rows, _, posterior in posteriors(member.weights, member.factors[:first], codes):
                posterior *= member_weight[rows]
                for sums, table in zip(total, tables, strict=True):
                    sums[rows] += posterior @ table.T
        return [np.minimum(sums, 1.0, out=sums) for sums in total]  # not above one by rounding

    def places(self, codes: Codes) -> list[IntArray]:
        """Return the place of the most probable label of each target, (rows,) for each."""
        return [shares.argmax(axis=1) for shares in self.probabilities(codes)]

    def joint_places(self, codes: Codes) -> list[IntArray]:
        """Return the places of the labels of the most probable combination, (rows,) for each."""
        sizes = self.targets.shape
        if prod(sizes) > MOST_COMBINATIONS:
            raise ValueError(
                f"{prod(sizes):,} combinations of labels are too many to be compared for each row: "
                "ask the joint model, pmf.mode(targets, given=...), row by row."
            )
        [shares] = self.probabilities(codes, [tuple(range(len(sizes)))])
        return list(np.unravel_index(shares.argmax(axis=1), sizes))

    def explain(
        self, codes: Codes, label: Any = None, target: str | None = None
    ) -> list[LabelExplanation]:
        """Explain what each feature contributes to a prediction, row by row.

        By default the label of each row is its most probable one, and the target the first.
        """
        names = self.targets.names
        name = names[0] if target is None else target
        if name not in names:
            raise ValueError(
                f"target must be one of {show(names)}, got {cite(name)}.{nearest(name, names)}"
            )
        t, variable = names.index(name), self.targets[name]

        def shares(rows: Codes) -> FloatArray:
            return self.probabilities(rows, [(t,)])[0]

        places = shares(codes).argmax(axis=1)
        if label is not None:
            places[:] = variable.code(label)
        features = self.features.variables
        rows = zip(codes, places.tolist(), strict=True)
        return [explain_row(row, place, shares, features, variable) for row, place in rows]

    def _kinds(self, codes: Codes) -> IntArray:
        """Return how many limits each row exceeds; one more where it misses everything."""
        missing = codes < 0
        share = missing[:, self.always_there].sum(axis=1) / max(len(self.always_there), 1)
        kinds = np.searchsorted(self.missing_limits, share, side="left")
        return np.where(missing.all(axis=1), len(self.weights) - 1, kinds)
