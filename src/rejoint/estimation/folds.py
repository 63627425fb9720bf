"""Folds: records divided into those to learn from and those held out, several times over."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from rejoint.arrays import FloatArray
from rejoint.estimation.data import InMemory

#: Copies of records beyond which they are not dealt out one by one.
MANY_COPIES = 10_000_000


@dataclass(frozen=True)
class Fold:
    """Records to learn from, others to be judged by, and the weight of each of these.

    Parameters
    ----------
    learn, judge : InMemory
        Both weighted.
    mass : array
        Weight of each record of ``judge``.
    spread : array
        What each adds to the variance of a weighted sum: copies are independent of each
        other, a weight that is not a count multiplies one record.
    """

    learn: InMemory
    judge: InMemory
    mass: FloatArray
    spread: FloatArray

    def alone(self) -> "Fold":
        """Return a copy for a worker: one thread."""
        return replace(self, learn=self.learn.alone(), judge=self.judge.alone())

    def limit(self, learn: int, judge: int, rng: np.random.Generator) -> "Fold":
        """Return the fold with at most as many rows to learn from and to judge by."""
        kept = np.arange(len(self.mass))
        if len(kept) > judge:
            kept = np.sort(rng.choice(kept, size=judge, replace=False))
        some = self.judge.take(kept, self.judge.records.weight[kept])
        return Fold(draw_rows(self.learn, learn, rng), some, self.mass[kept], self.spread[kept])


def draw_rows(data: InMemory, most: int, rng: np.random.Generator) -> InMemory:
    """Return at most ``most`` rows of the data, drawn at random."""
    rows = len(data.records.weight)
    if rows <= most:
        return data
    chosen = np.sort(rng.choice(rows, size=most, replace=False))
    return data.take(chosen, data.records.weight[chosen])


def make_folds(data: InMemory, folds: int, rng: np.random.Generator) -> Iterator[Fold]:
    """Divide records at random, so that each is held out once.

    Weights that are whole numbers count copies, which may fall into different folds; other
    weights stay with their record, and records with their cluster.

    Examples
    --------
    >>> from rejoint.records import Records
    >>> from rejoint.estimation.data import InMemory
    >>> data = InMemory.of(Records.of({"a": ["x", "y", "x", "x"]}))
    >>> [fold.mass.sum() for fold in make_folds(data, 2, np.random.default_rng(0))]
    [np.float64(2.0), np.float64(2.0)]
    """
    counts, data = data.records.counts_copies, data.observations()
    weight, spread = data.records.weight, 1.0
    if data.records.cluster_keys is not None:
        # Weights of clusters sum to the effective number of records, which is smaller by as much
        # than that of their weights alone.
        spread = max(1.0, float(weight.sum() / (weight @ weight)))
    if counts:
        shares = deal(weight, folds, rng)
    else:
        mine = data.records.divide(folds, rng)
        shares = np.where(mine[:, None] == np.arange(folds), weight[:, None], 0.0)
    total = shares.sum(axis=1)
    for k in range(folds):
        held = shares[:, k]
        if not held.any() or not (total - held).any():
            continue
        mass, judge, learn = held[held > 0], data.reweight(held), data.reweight(total - held)
        if counts:
            yield Fold(learn, judge, mass, mass)
        else:
            yield Fold(learn.merge(), judge, mass, spread * mass**2)


def deal(copies: FloatArray, folds: int, rng: np.random.Generator) -> FloatArray:
    """How many copies of each record fall into each fold, (records, folds).

    Examples
    --------
    >>> deal(np.array([3.0, 1.0]), 2, np.random.default_rng(0)).sum(axis=0)
    array([2., 2.])
    """
    whole = np.rint(copies).astype(np.int64)
    if whole.sum() > MANY_COPIES:
        return rng.multinomial(whole, np.full(folds, 1.0 / folds)).astype(np.float64)
    owner = np.repeat(np.arange(len(whole)), whole)
    place = rng.permutation(len(owner)) % folds
    dealt = np.bincount(owner * folds + place, minlength=len(whole) * folds)
    return dealt.reshape(len(whole), folds).astype(np.float64)
