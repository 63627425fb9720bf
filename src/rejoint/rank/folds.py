"""Records parted into those to learn from and those held out, several times over."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from rejoint.records.records import BaseRecords, R

Array = NDArray[np.float64]

#: Copies beyond which they are not dealt out one by one.
MANY_COPIES = 10_000_000


@dataclass(frozen=True)
class Fold(Generic[R]):
    """Records to learn from, others to be judged by, and what each of these weighs.

    Parameters
    ----------
    learn, judge : Records
        Both weighted.
    mass : array
        Weight of each record of ``judge``.
    spread : array
        What each adds to the variance of a weighted sum: copies are independent of each
        other, a weight that is no count multiplies one record.
    """

    learn: R
    judge: R
    mass: Array
    spread: Array


def part(records: R, folds: int, rng: np.random.Generator) -> Iterator[Fold[R]]:
    """Part records at random, so that each is held out once.

    Weights that are whole numbers count copies, which may fall into different folds; other
    weights stay with their record.

    Examples
    --------
    >>> from rejoint.records import Records
    >>> records = Records.of({"a": ["x", "y", "x", "x"]})
    >>> [fold.mass.sum() for fold in part(records, 2, np.random.default_rng(0))]
    [np.float64(2.0), np.float64(2.0)]
    """
    weight = records.sample_weight
    counts = copies(records) is not None
    if counts:
        records = records.merged()
        assert records.sample_weight is not None
        shares = deal(records.sample_weight, folds, rng)
    else:
        assert weight is not None
        mine = rng.permutation(len(records)) % folds
        shares = np.where(mine[:, None] == np.arange(folds), weight[:, None], 0.0)
    total = shares.sum(axis=1)
    for k in range(folds):
        held = shares[:, k]
        if not held.any() or not (total - held).any():
            continue
        mass = held[held > 0]
        judge = take(records, held)
        yield Fold(take(records, total - held), judge, mass, mass if counts else mass**2)


def copies(records: BaseRecords) -> int | None:
    """How many records there are in all, where weights count copies; None where they do not.

    Examples
    --------
    >>> from rejoint.records import Records
    >>> table = Records.of({"a": ["x", "y"]}, sample_weight=[30, 70])
    >>> copies(table), copies(Records.of({"a": ["x", "y"]}, sample_weight=[0.5, 1]))
    (100, None)
    """
    weight = records.sample_weight
    if weight is None:
        return len(records)
    return int(weight.sum()) if bool(np.all(weight == np.rint(weight))) else None


def take(records: R, weight: Array) -> R:
    """The records of positive weight, with that weight."""
    rows = np.flatnonzero(weight > 0)
    return records.take(rows, weight[rows])


def deal(copies: Array, folds: int, rng: np.random.Generator) -> Array:
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
