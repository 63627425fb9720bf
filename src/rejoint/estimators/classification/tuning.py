"""Rank, prior and share of the joint likelihood of a classifier, by what is held out."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint import kernels
from rejoint.estimation.problem import Array
from rejoint.estimators.classification.conditional import Conditional
from rejoint.estimators.classification.labelled import LabelledProblem
from rejoint.estimators.classification.starts import label_start
from rejoint.estimators.streaming import weights_of
from rejoint.rank.folds import part, take
from rejoint.records import Records
from rejoint.solver import Run, run

__all__ = ["HeldOut", "Setting", "search"]

#: Parts that records are held out in, and cells learnt from, of different records, that are enough:
#: of large tables, fewer parts have to do.
FOLDS, MANY = 5, 100_000

#: Starts that are averaged where settings are judged, if there will be as many.
STARTS = 3

#: Records that are enough to choose by.
ENOUGH = 50_000

#: Least and largest share of cells taken out of a record that models are judged by.
HOLES = ((0.0, 0.0), (0.0, 1 / 3), (1 / 3, 1.0))

#: Weight below which a setting is left out of an average.
LIGHT = 0.05

#: A label cannot cost more than it would at this probability: one outlier is one outlier.
DOUBT = 1e-3

#: Records that speak for each model beforehand, since few labels held out say little of weights;
#: steps towards the best weights, and how little they move in the last.
EVEN, STEPS, STILL = 3.0, 5000, 1e-5

#: Relative fall of the loss that is worth another setting.
NOTICEABLE = 1e-3

STRENGTHS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
JOINTS = (0.0, 0.1, 1.0, 10.0, 100.0)
#: Classes for each combination of labels.
CLASSES = (1, 2, 3, 6, 12, 24)


Codes = NDArray[np.signedinteger]


class Setting(NamedTuple):
    """What a conditional fit can be set to.

    Examples
    --------
    >>> Setting(6, 1.0, 0.0).words
    '6 classes, strength 1, joint 0'
    """

    rank: int
    strength: float
    joint: float

    @property
    def words(self) -> str:
        """In words."""
        return f"{self.rank} classes, strength {self.strength:g}, joint {self.joint:g}"


@dataclass(frozen=True)
class Part:
    """What one fold learns from, and what it is judged by: without, with few, with many holes."""

    learn: LabelledProblem
    judged: tuple[Codes, ...]
    weight: Array
    seed: int


class HeldOut:
    """How well settings tell labels that are held out; each is fitted once.

    Parameters
    ----------
    records : Records
        Features and labels.
    targets : int
        How many variables, the last ones, are labels.
    solver : Conditional
        Whose limits count.
    rng : Generator
        Which records are held out.
    starts : int
        Fits that will be averaged for each setting, which weights are to be right for.

    Examples
    --------
    >>> records = Records.of({"x": ["a", "b"] * 50, "y": ["no", "yes"] * 50})
    >>> held = HeldOut(records, 1, Conditional(), np.random.default_rng(0))
    >>> held.loss(Setting(2, 0.1, 0.0)) < 0.1 < held.loss(Setting(1, 0.1, 0.0))
    True
    """

    def __init__(
        self,
        records: Records,
        targets: int,
        solver: Conditional,
        rng: np.random.Generator,
        starts: int = 1,
    ) -> None:
        self.targets = targets
        self.solver = solver
        self.parts = list(parts(records, targets, rng))
        self.weight = np.concatenate([p.weight for p in self.parts])
        self.starts = min(starts, STARTS)
        self.tried: defaultdict[Setting, list[tuple[Array, ...]]] = defaultdict(list)

    def told(self, setting: Setting, holes: int = 0, starts: int = 1) -> Array:
        """Probability given to each label held out, by an average over starts.

        ``holes`` is a place in ``HOLES``.
        """
        tried = self.tried[setting]
        starts = different(self.parts[0].learn, setting, starts)
        for start in range(len(tried), starts):
            tried.append(self.attempt(setting, start))
        return np.asarray(np.mean([told[holes] for told in tried[:starts]], axis=0))

    def attempt(self, setting: Setting, start: int) -> tuple[Array, ...]:
        """What one fit to each part says of the labels held out, with each kind of holes."""
        each = []
        for p in self.parts:
            # The same randomness for every setting.
            found = fit(p.learn, setting, self.solver, np.random.default_rng([p.seed, start]))
            each.append([self.tell(p, found, codes) for codes in p.judged])
        return tuple(np.concatenate(told) for told in zip(*each, strict=True))

    def loss(self, setting: Setting, holes: int = 0, starts: int = 1) -> float:
        """Mean log-loss of the labels held out."""
        told = self.told(setting, holes, starts)
        return float(-self.weight @ np.log(told) / self.weight.sum())

    def tell(self, p: Part, found: Run, codes: Codes) -> Array:
        """Probability of the labels of one fold."""
        blind = codes.copy()
        blind[:, blind.shape[1] - self.targets :] = -1
        known, hidden = (
            kernels.class_log_prob(c, found.weights, found.factors, p.learn.known.levels)
            for c in (codes, blind)
        )
        return np.asarray((1 - DOUBT) * np.exp(known - hidden) + DOUBT)

    def shares(self, settings: Sequence[Setting], holes: int = 0) -> dict[Setting, float]:
        """Weights under which the average of some settings tells the labels best, by EM.

        Light ones are left out; the heaviest is first.
        """
        told = np.stack([self.told(setting, holes, self.starts) for setting in settings])
        shares = np.full(len(settings), 1.0 / len(settings))
        for _ in range(STEPS):
            parts = shares[:, None] * told
            before, shares = shares, EVEN + parts / parts.sum(axis=0) @ self.weight
            shares /= shares.sum()
            if np.abs(shares - before).max() < STILL:
                break
        kept = [int(k) for k in np.argsort(-shares, kind="stable") if shares[k] >= LIGHT]
        return {settings[k]: float(shares[k] / shares[kept].sum()) for k in kept}


def different(problem: LabelledProblem, setting: Setting, starts: int) -> int:
    """How many of some starts differ: one, where no label has more than one class."""
    return 1 if setting.rank <= len(problem.combinations[0]) else starts


def fit(
    problem: LabelledProblem,
    setting: Setting,
    solver: Conditional,
    rng: np.random.Generator,
    start: int = 0,
) -> Run:
    """One conditional fit from a start of its own."""
    solver = replace(solver, joint=setting.joint, strength=setting.strength)
    return run(solver, problem, *label_start(problem, setting.rank, rng), start=start)


def parts(records: Records, targets: int, rng: np.random.Generator) -> Iterator[Part]:
    """Records to learn from and to be judged by; those without any label only teach."""
    records = sampled(records, rng)
    labels = records.codes[:, records.codes.shape[1] - targets :]
    weight = np.ones(len(records)) if records.sample_weight is None else records.sample_weight
    told = take(records, np.where((labels >= 0).any(axis=1), weight, 0.0))
    others = take(records, np.where((labels < 0).all(axis=1), weight, 0.0))
    cells = 0
    for fold in part(told, FOLDS, rng):
        codes = np.array(fold.judge.codes)
        judged = tuple(with_holes(codes, targets, *share, rng) for share in HOLES)
        learn = Records(
            records.domain,
            np.vstack([fold.learn.codes, others.codes]),
            np.concatenate([weights_of(fold.learn), weights_of(others)]),
        )
        seed = int(rng.integers(2**32))
        yield Part(LabelledProblem.of(learn, targets, threads=1), judged, fold.mass, seed)
        cells += learn.codes.size
        if cells > MANY:
            return


def with_holes(
    codes: Codes, targets: int, least: float, largest: float, rng: np.random.Generator
) -> Codes:
    """Records with cells of their features taken out, of each its own share."""
    codes = codes.copy()
    features = codes[:, : codes.shape[1] - targets]
    share = least + (largest - least) * rng.random((len(codes), 1))
    features[rng.random(features.shape) < share] = -1
    return codes


def sampled(records: Records, rng: np.random.Generator) -> Records:
    """Some of the records, where they are more than enough to choose by."""
    total = float(weights_of(records).sum())
    if total < 2 * ENOUGH:
        return records
    return next(iter(part(records, int(total // ENOUGH), rng))).judge


def search(
    loss: Callable[[Setting], float],
    best: Setting,
    ranks: Sequence[int],
    strengths: Sequence[float],
) -> Setting:
    """The rank and strength of least loss, by steps along one of them at a time.

    Examples
    --------
    >>> search(lambda s: abs(s.rank - 6) + s.strength, Setting(2, 1.0, 0.0), (2, 4, 6), (0.1, 1.0))
    Setting(rank=6, strength=0.1, joint=0.0)
    """
    while True:
        before = best
        best = walk(loss, best, [best._replace(strength=s) for s in strengths])
        best = walk(loss, best, [best._replace(rank=r) for r in ranks])
        if best == before:
            return best


def walk(loss: Callable[[Setting], float], best: Setting, settings: Sequence[Setting]) -> Setting:
    """Walk along settings in a row, first up, then down, while the loss falls noticeably."""
    place = settings.index(best)
    for ahead in (1, -1):
        while 0 <= place + ahead < len(settings):
            there = settings[place + ahead]
            if not loss(there) < (1.0 - NOTICEABLE) * loss(best):
                break
            best, place = there, place + ahead
    return best
