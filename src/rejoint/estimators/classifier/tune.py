"""The fits behind JointClassifier: choose settings, train models, one of them for the joint."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint import kernels
from rejoint.check import whole
from rejoint.domain.labels import plural
from rejoint.estimation.data import InMemory
from rejoint.estimation.estimate import estimate
from rejoint.estimation.starts import follow_start, given_model
from rejoint.estimators.classifier.conditional import Conditional, Labelled, label_start
from rejoint.estimators.joint_pmf import is_for_records
from rejoint.model import FloatArray
from rejoint.pmf.pmf import LowRankPMF
from rejoint.rank.folds import make_folds, reweight
from rejoint.records.records import Records
from rejoint.solver.result import FitResult
from rejoint.solver.run import run
from rejoint.solver.search import best_run, interruptible, search
from rejoint.solver.session import Session
from rejoint.solver.solver import Run

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

    def apply(self, solver: Conditional) -> Conditional:
        """The solver with this strength and joint."""
        return replace(solver, joint=self.joint, strength=self.strength)


@dataclass(frozen=True)
class LabelFold:
    """What one fold learns from, and what it is judged by: without, with few, with many holes."""

    learn: Labelled
    judged: tuple[Codes, ...]
    weight: FloatArray
    seed: int


class HeldOutLabels:
    """How well settings tell labels that are held out; each is fitted once.

    Parameters
    ----------
    data : InMemory
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
    >>> data = InMemory.of(records)
    >>> held = HeldOutLabels(data, 1, Conditional(), np.random.default_rng(0))
    >>> held.loss(Setting(2, 0.1, 0.0)) < 0.1 < held.loss(Setting(1, 0.1, 0.0))
    True
    """

    def __init__(
        self,
        data: InMemory,
        targets: int,
        solver: Conditional,
        rng: np.random.Generator,
        starts: int = 1,
    ) -> None:
        self.targets = targets
        self.solver = solver
        self.parts = list(label_folds(data, targets, rng))
        self.weight = np.concatenate([p.weight for p in self.parts])
        self.starts = min(starts, STARTS)
        self.tried: defaultdict[Setting, list[tuple[FloatArray, ...]]] = defaultdict(list)

    def told(self, setting: Setting, holes: int = 0, starts: int = 1) -> FloatArray:
        """Probability given to each label held out, by an average over starts.

        ``holes`` is a place in ``HOLES``.
        """
        tried = self.tried[setting]
        starts = different(self.parts[0].learn, setting, starts)
        for start in range(len(tried), starts):
            tried.append(self.attempt(setting, start))
        return np.asarray(np.mean([told[holes] for told in tried[:starts]], axis=0))

    def attempt(self, setting: Setting, start: int) -> tuple[FloatArray, ...]:
        """What one fit to each part says of the labels held out, with each kind of holes."""
        each = []
        for p in self.parts:
            # The same randomness for every setting.
            first = label_start(p.learn, setting.rank, np.random.default_rng([p.seed, start]))
            found = run(setting.apply(self.solver), p.learn, first)
            each.append([self.tell(p, found, codes) for codes in p.judged])
        return tuple(np.concatenate(told) for told in zip(*each, strict=True))

    def loss(self, setting: Setting, holes: int = 0, starts: int = 1) -> float:
        """Mean log-loss of the labels held out."""
        told = self.told(setting, holes, starts)
        return float(-self.weight @ np.log(told) / self.weight.sum())

    def tell(self, p: LabelFold, found: Run, codes: Codes) -> FloatArray:
        """Probability of the labels of one fold."""
        blind = codes.copy()
        blind[:, blind.shape[1] - self.targets :] = -1
        known, hidden = (
            kernels.class_log_prob(c, found.weights, found.factors, p.learn.layout.levels)
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


def different(problem: Labelled, setting: Setting, starts: int) -> int:
    """How many of some starts differ: one, where no label has more than one class."""
    return 1 if setting.rank <= len(problem.combinations[0]) else starts


def label_folds(data: InMemory, targets: int, rng: np.random.Generator) -> Iterator[LabelFold]:
    """Records to learn from and to be judged by; those without any label only teach."""
    data = sample_enough(data, rng)
    labels = data.codes[:, data.codes.shape[1] - targets :]
    has_label = (labels >= 0).any(axis=1)
    told = reweight(data, np.where(has_label, data.weight, 0.0))
    others = reweight(data, np.where(has_label, 0.0, data.weight))
    cells = 0
    for fold in make_folds(told, FOLDS, rng):
        judged = tuple(
            with_holes(np.array(fold.judge.codes), targets, *share, rng) for share in HOLES
        )
        seed = int(rng.integers(2**32))
        learn = join(fold.learn, others)
        yield LabelFold(Labelled.of(learn, targets), judged, fold.mass, seed)
        cells += learn.codes.size
        if cells > MANY:
            return


def join(one: InMemory, other: InMemory) -> InMemory:
    """The records of both, in order."""
    if len(other.weight) == 0:
        return one
    codes = np.vstack([one.codes, other.codes])
    weight = np.concatenate([one.weight, other.weight])
    return InMemory.of(Records(one.domain, codes, weight), one.threads)


def with_holes(
    codes: Codes, targets: int, least: float, largest: float, rng: np.random.Generator
) -> Codes:
    """Records with cells of their features taken out, of each its own share."""
    codes = codes.copy()
    features = codes[:, : codes.shape[1] - targets]
    share = least + (largest - least) * rng.random((len(codes), 1))
    features[rng.random(features.shape) < share] = -1
    return codes


def sample_enough(data: InMemory, rng: np.random.Generator) -> InMemory:
    """Some of the records, where they are more than enough to choose by."""
    if data.total < 2 * ENOUGH:
        return data
    return next(iter(make_folds(data, int(data.total // ENOUGH), rng))).judge


def search_settings(
    loss: Callable[[Setting], float],
    best: Setting,
    ranks: Sequence[int],
    strengths: Sequence[float],
) -> Setting:
    """The rank and strength of least loss, by steps along one of them at a time.

    Examples
    --------
    >>> search_settings(
    ...     lambda s: abs(s.rank - 6) + s.strength, Setting(2, 1.0, 0.0), (2, 4, 6), (0.1, 1.0)
    ... )
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


#: Loss, relative to the least, from which on still more of the joint likelihood is not tried.
HOPELESS = 1.25

#: Weight of the joint likelihood from which on a model is fit to be asked anything,
#: and that of the model for everything where the user wants less for the labels.
ENOUGH_JOINT, JOINT = 0.1, 1.0

#: More labels than this share their classes.
MOST_LABELS = 20

#: Places in ``HOLES``.
FEW_HOLES, MANY_HOLES = 1, 2

#: Records that are too few to hold any out.
FEW = 20

#: Cells times classes from which on a pass is worth more than one thread.
LARGE = 10_000_000


@dataclass(frozen=True)
class Fitted:
    """Models for the labels, and one for everything.

    Parameters
    ----------
    models : tuple of LowRankPMF
        Whose conditional probabilities are averaged.
    weights : array (3, models)
        Weight of each of them, for rows as they were at the fit, and for rows with few and with
        many other holes.
    result : FitResult
        How the one for everything came about.
    """

    models: tuple[LowRankPMF, ...]
    weights: FloatArray
    result: FitResult


def fit_classifier(
    records: Records,
    targets: int,
    rank: int | Literal["auto"],
    solver: Any,
    n_init: int,
    rng: np.random.Generator,
) -> Fitted:
    """Fit as the solver says; the last ``targets`` variables are labels."""
    starts = whole("n_init", n_init)
    if rank != "auto":
        rank = whole("rank", rank)
    if solver != "auto" and is_for_records(solver):
        result = estimate(records, rank, solver, n_init=starts, random_state=rng, progress=False)
        mean = result.pmf if result.posterior is None else result.posterior.mean
        return Fitted((mean,), np.ones((3, 1)), result)
    if solver == "auto":
        solver = Conditional()
    if not isinstance(solver, Conditional):
        raise ValueError(
            f"solver={solver!r} is not known; give 'auto', 'ml', 'map', 'bayes', or an object: "
            "estimators.Conditional(), estimation.Em() or estimation.Bayes()."
        )
    problem = Labelled.of(InMemory.of(records, threads=1), targets)
    session = Session(rng)
    fit = partial(fit_conditional, problem, rank, solver, starts, session)
    return interruptible(session, fit, "raise")


def fit_conditional(
    problem: Labelled,
    rank: int | Literal["auto"],
    solver: Conditional,
    starts: int,
    session: Session,
) -> Fitted:
    """Choose settings, train models for the labels, and one for the joint if they are none."""
    choice = choose(problem, rank, solver, starts, session.rng)
    kept = dict.fromkeys(s for shares in choice.shares for s in shares)
    made = partial(result_of, problem, choice.words)
    runs: dict[Setting, list[Run]] = {}
    for setting in {**kept, choice.whole: None}:
        runs[setting] = train(problem, setting, solver, starts, session, made)
    weights = [
        [shares.get(s, 0.0) / len(runs[s]) for s in kept for _ in runs[s]]
        for shares in choice.shares
    ]
    every = [run for group in runs.values() for run in group]
    return Fitted(
        tuple(sorted_pmf(problem, run) for s in kept for run in runs[s]),
        np.array(weights),
        made(every, runs[choice.whole][best_run(runs[choice.whole])]),
    )


def result_of(
    problem: Labelled, words: str, runs: Sequence[Run], top: Run | None = None
) -> FitResult:
    """The model for everything, by default the best, with what is to be said about it."""
    top = top or runs[best_run(runs)]
    value, blind = (d.expect(top.model).log_likelihood for d in (problem.known, problem.blind))
    return FitResult.of(
        sorted_pmf(problem, top),
        runs,
        f"Log-likelihood {value:.6g}, of the labels given the rest {value - blind:.6g},",
        best=top,
        log_likelihood=value,
        choice=words,
    )


class Choice(NamedTuple):
    """Settings to average with their weights, for no, few and many holes; and that of the joint."""

    shares: tuple[dict[Setting, float], ...]
    whole: Setting
    words: str


def choose(
    problem: Labelled,
    rank: int | Literal["auto"],
    solver: Conditional,
    starts: int,
    rng: np.random.Generator,
) -> Choice:
    """Choose by what is held out.

    For each weight of the joint likelihood the rank and strength of least log-loss are averaged.
    The joint is left to that of them which is best at records with holes.
    """
    base = base_rank(problem)
    ranks = [base * m for m in CLASSES] if rank == "auto" else [rank]
    strengths = STRENGTHS if solver.strength == "auto" else [number("strength", solver.strength)]
    joints = JOINTS if solver.joint == "auto" else [number("joint", solver.joint)]
    first = Setting(middle(ranks, 2), middle(strengths, 5), joints[0])
    if len(ranks) == len(strengths) == len(joints) == 1:
        return only(first, "As asked")
    if problem.known.total < FEW:
        first = first._replace(joint=joints[-1])
        return only(first, "Too few records to choose by what is held out")
    held = HeldOutLabels(problem.known, problem.targets, solver, rng, starts)
    found: list[Setting] = []
    for joint in joints:
        first = search_settings(held.loss, first._replace(joint=joint), ranks, strengths)
        found.append(first)
        if joint >= ENOUGH_JOINT and held.loss(first) > HOPELESS * min(map(held.loss, found)):
            break
    best = min(found, key=held.loss)
    # An average over starts can do with less of a prior.
    found[found.index(best)] = walk(
        lambda s: held.loss(s, starts=held.starts),
        best,
        [best._replace(strength=s) for s in strengths],
    )
    wide = [s for s in found if s.joint >= ENOUGH_JOINT] or [found[0]._replace(joint=JOINT)]
    wide.sort(key=lambda s: held.loss(s, FEW_HOLES) + held.loss(s, MANY_HOLES))
    every = list(dict.fromkeys([*found, *wide]))
    shares = (
        held.shares(found),
        held.shares(every, FEW_HOLES),
        held.shares(every, MANY_HOLES),
    )
    return Choice(shares, wide[0], words_for(held, shares, wide[0]))


def only(setting: Setting, why: str) -> Choice:
    """One setting; for the joint, and where there are holes, one with enough of the joint."""
    wide = setting if setting.joint >= ENOUGH_JOINT else setting._replace(joint=JOINT)
    more = "" if wide == setting else f" For the joint: {wide.words}."
    shares = {setting: 1.0}, {wide: 1.0}, {wide: 1.0}
    return Choice(shares, wide, f"{why}: {setting.words}.{more}")


def words_for(held: HeldOutLabels, shares: Sequence[dict[Setting, float]], whole: Setting) -> str:
    """What was chosen, and why."""
    plain, few, many = (
        "; ".join(f"{v:.2f} {s.words} ({held.loss(s, holes):.4g})" for s, v in parts.items())
        for holes, parts in enumerate(shares)
    )
    return (
        f"Least log-loss of held-out labels, of {plural(len(held.tried), 'setting')} tried, by an "
        f"average of {plain}. With a few holes: {few}. With many: {many}. "
        f"For the joint: {whole.words}."
    )


def base_rank(problem: Labelled) -> int:
    """One class for each label of the target that has most."""
    return min(max(problem.layout.levels[-problem.targets :]), MOST_LABELS)


def middle(grid: Sequence[Any], place: int) -> Any:
    """Where a search begins."""
    return grid[min(place, len(grid) - 1)]


def number(name: str, value: float | str) -> float:
    """Check a setting that was given."""
    if isinstance(value, str) or not 0.0 <= float(value) < np.inf:
        raise ValueError(f"{name} must be 'auto' or a number of at least 0, got {value!r}.")
    return float(value)


def train(
    problem: Labelled,
    setting: Setting,
    solver: Conditional,
    starts: int,
    session: Session,
    offer: Callable[[list[Run]], FitResult],
) -> list[Run]:
    """Fits from several starts; one where they would all be the same."""
    if problem.known.cells * setting.rank >= LARGE:
        problem = problem.with_threads(kernels.available_threads())
    first = (
        partial(given_model, model=label_start(problem, setting.rank, session.rng))
        for _ in range(different(problem, setting, starts))
    )
    follow = partial(follow_start, solver=setting.apply(solver))
    return search(problem, first, follow, session, offer=offer)


def sorted_pmf(problem: Labelled, run: Run) -> LowRankPMF:
    """A run as a model with labels, its classes by falling weight.

    Light classes stay: their columns may make up for the weight, and decide rows of their own.
    """
    return problem.known.to_pmf(run.model.sorted())
