"""LabelEnsemble: probabilities of labels given features, averaged over several models."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Self, TypeVar

import numpy as np

from rejoint import kernels
from rejoint.arrays import Codes, FloatArray, IntArray
from rejoint.domain.domain import Domain
from rejoint.io.model_file import SavedEnsemble
from rejoint.model import Layout
from rejoint.pmf.pmf import LowRankPMF
from rejoint.queries.log_prob import posteriors
from rejoint.queries.tables import khatri_rao

T = TypeVar("T")

Groups = Sequence[tuple[int, ...]]
"""Targets, by position among the targets, whose combinations of labels are asked for."""

BLOCK_ROWS = 16_384
"""Rows of a block: few enough for the cache, many enough for the threads."""


class LowRankMember:
    """One model of an ensemble: a low-rank model of features and labels.

    Parameters
    ----------
    model : LowRankPMF
        Of the features, then the targets.
    targets : int
        Number of targets.

    Examples
    --------
    >>> model = LowRankPMF([0.5, 0.5], [[[0.9, 0.2], [0.1, 0.8]], [[1.0, 0.0], [0.0, 1.0]]])
    >>> LowRankMember(model, 1).shares(np.array([[0]], dtype=np.int16), [(0,)])[0].round(3)
    array([[0.818, 0.182]])
    """

    def __init__(self, model: LowRankPMF, targets: int) -> None:
        at = len(model.domain) - targets
        self._model = model
        self._features, self._labels = model.factors[:at], model.factors[at:]

    def shares(self, codes: Codes, groups: Groups) -> list[FloatArray]:
        """Return probabilities of combinations of labels; rows sum to one.

        Parameters
        ----------
        codes : array (rows, features)
            Levels of the features; -1 is a missing value.
        groups : sequence of tuple of int
            For each array that is returned, the targets that it has all combinations of.

        Returns
        -------
        list of array (rows, combinations)
            The labels of the last target of a group vary fastest.
        """
        ones = np.ones(len(self._model.weights))
        tables = [khatri_rao([self._labels[t] for t in group], ones) for group in groups]
        found = [np.empty((len(codes), len(table))) for table in tables]
        codes = np.ascontiguousarray(codes)
        for rows, _, posterior in posteriors(self._model.weights, self._features, codes, 1):
            for share, table in zip(found, tables, strict=True):
                np.matmul(posterior, table.T, out=share[rows])
        return found

    @property
    def stacked(self) -> FloatArray:
        """Weights above factors, (1 + L, F): what files hold."""
        return np.vstack([self._model.weights, *self._model.factors])

    @classmethod
    def from_stacked(cls, stacked: FloatArray, domain: Domain, targets: int) -> "LowRankMember":
        """Make a member of what a file holds; raise ValueError where it is no model."""
        factors = Layout(domain.shape).split(stacked[1:])
        return cls(LowRankPMF(stacked[0], factors, domain), targets)


class LabelEnsemble:
    """Several models whose probabilities of the labels are averaged.

    The weights of the average depend on the kind of row: how many of ``missing_limits`` are below
    the share that it misses of the features that were never missing at the fit. The last kind is a
    row that misses everything.

    Parameters
    ----------
    members : sequence of LowRankMember
        The models. The ensemble asks them for ``shares`` and nothing else.
    weights : array (kinds, members)
        Weight of each member for each kind of row, two more than limits; rows sum to one.
    always_there : array of int
        Positions of the features that were never missing at the fit.
    missing_limits : sequence of float
        Shares of these features, rising. By default rows differ in whether they have anything.

    Examples
    --------
    >>> model = LowRankPMF([0.5, 0.5], [[[0.9, 0.2], [0.1, 0.8]], [[1.0, 0.0], [0.0, 1.0]]])
    >>> ensemble = LabelEnsemble([LowRankMember(model, 1)], np.ones((2, 1)), np.array([0]))
    >>> [shares] = ensemble.shares(np.array([[0], [-1]], dtype=np.int16), [(0,)])
    >>> shares.round(3)
    array([[0.818, 0.182],
           [0.5  , 0.5  ]])
    """

    def __init__(
        self,
        members: Sequence[LowRankMember],
        weights: FloatArray,
        always_there: IntArray,
        missing_limits: Sequence[float] = (),
    ) -> None:
        self.members = tuple(members)
        self.weights = weights
        self.always_there = always_there
        self.missing_limits = tuple(missing_limits)

    @classmethod
    def of_saved(cls, saved: SavedEnsemble, domain: Domain) -> Self:
        """Make an ensemble of the contents of a file; raise ValueError where it holds no models.

        Examples
        --------
        >>> member = np.array([[0.5, 0.5], [0.9, 0.2], [0.1, 0.8], [1.0, 0.0], [0.0, 1.0]])
        >>> saved = SavedEnsemble(("y",), (member,), np.ones((2, 1)), (0,), ())
        >>> len(LabelEnsemble.of_saved(saved, Domain.of({"x": 2, "y": 2})).members)
        1
        """
        members = [
            LowRankMember.from_stacked(member, domain, len(saved.targets))
            for member in saved.members
        ]
        there = np.array(saved.always_there, dtype=np.intp)
        return cls(members, saved.weights, there, saved.missing_limits)

    def to_saved(self, targets: Sequence[str]) -> SavedEnsemble:
        """Return what a file holds of an ensemble for targets of these names.

        Examples
        --------
        >>> model = LowRankPMF([0.5, 0.5], [[[0.9, 0.2], [0.1, 0.8]], [[1.0, 0.0], [0.0, 1.0]]])
        >>> ensemble = LabelEnsemble([LowRankMember(model, 1)], np.ones((2, 1)), np.array([0]))
        >>> ensemble.to_saved(["x1"]).members[0].shape
        (5, 2)
        """
        return SavedEnsemble(
            tuple(targets),
            tuple(member.stacked for member in self.members),
            self.weights,
            tuple(self.always_there.tolist()),
            self.missing_limits,
        )

    def shares(self, codes: Codes, groups: Groups) -> list[FloatArray]:
        """Return averaged probabilities of combinations of labels, as a member does.

        Examples
        --------
        >>> factors = [[[0.9, 0.2], [0.1, 0.8]], [[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5]] * 2]
        >>> member = LowRankMember(LowRankPMF([0.5, 0.5], factors), 2)
        >>> ensemble = LabelEnsemble([member], np.ones((2, 1)), np.array([0]))
        >>> [first, both] = ensemble.shares(np.array([[0]], dtype=np.int16), [(0,), (0, 1)])
        >>> first.round(3), both.round(3)
        (array([[0.818, 0.182]]), array([[0.409, 0.409, 0.091, 0.091]]))
        """
        blocks = self.map_blocks(codes, groups, list)
        return [np.concatenate(each) for each in zip(*blocks, strict=True)]

    def map_blocks(
        self, codes: Codes, groups: Groups, answer: Callable[[list[FloatArray]], T]
    ) -> list[T]:
        """Pass the shares of each block of rows to ``answer``, in threads; keep what it returns.

        Examples
        --------
        >>> model = LowRankPMF([0.5, 0.5], [[[0.9, 0.2], [0.1, 0.8]], [[1.0, 0.0], [0.0, 1.0]]])
        >>> ensemble = LabelEnsemble([LowRankMember(model, 1)], np.ones((2, 1)), np.array([0]))
        >>> codes = np.array([[0], [1]], dtype=np.int16)
        >>> ensemble.map_blocks(codes, [(0,)], lambda shares: shares[0].argmax(axis=1))
        [array([0, 1])]
        """

        def answer_block(first: int) -> T:
            return answer(self._average(codes[first : first + BLOCK_ROWS], groups))

        starts = range(0, max(len(codes), 1), BLOCK_ROWS)
        if len(starts) < 2:
            return [answer_block(first) for first in starts]
        with ThreadPoolExecutor(kernels.available_threads()) as threads:
            return list(threads.map(answer_block, starts))

    def _average(self, codes: Codes, groups: Groups) -> list[FloatArray]:
        if len(self.members) == 1:  # its weight is one for every kind
            return self.members[0].shares(codes, groups)
        kind = self._kinds(codes)
        found: list[FloatArray] = []
        for member, weight in zip(self.members, self.weights.T, strict=True):
            mine = weight[kind, None]
            if found and not mine.any():
                continue
            shares = [mine * share for share in member.shares(codes, groups)]
            found = [a + b for a, b in zip(found, shares, strict=True)] if found else shares
        return [np.minimum(share, 1.0, out=share) for share in found]  # not above one by rounding

    def _kinds(self, codes: Codes) -> IntArray:
        """Return how many limits each row exceeds; one more where it misses everything."""
        if codes.min(initial=0) >= 0:
            return np.zeros(len(codes), dtype=np.intp)
        missing = codes < 0
        share = missing[:, self.always_there].sum(axis=1) / max(len(self.always_there), 1)
        kinds = np.searchsorted(self.missing_limits, share, side="left")
        return np.where(missing.all(axis=1), len(self.weights) - 1, kinds)
