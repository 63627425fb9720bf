"""The fits behind JointClassifier: choose settings, train models, one of them for the joint."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np

from rejoint import kernels
from rejoint.arrays import Codes, FloatArray
from rejoint.check import whole
from rejoint.estimation.data import InMemory
from rejoint.estimation.estimate import estimate
from rejoint.estimation.starts import follow_start, given_model
from rejoint.estimators.classifier.conditional import Conditional, Labelled, label_start
from rejoint.estimators.partial_fit import join
from rejoint.estimators.sklearn_input import is_for_records
from rejoint.pmf.label_ensemble import LowRankMember
from rejoint.pmf.pmf import LowRankPMF
from rejoint.rank.folds import make_folds
from rejoint.records.records import Records
from rejoint.solver.result import FitResult
from rejoint.solver.run import run
from rejoint.solver.search import best_run, interruptible, search
from rejoint.solver.session import Session
from rejoint.solver.solver import Run
from rejoint.text import plural

#: Folds, and cells of distinct training records after which no further fold is used.
FOLDS, ENOUGH_CELLS = 5, 100_000

#: Starts that are averaged when settings are scored, if there will be as many.
STARTS = 3

#: Records that are enough to choose settings by.
ENOUGH_RECORDS = 50_000

#: Least and largest share of values removed from the records that models are scored on.
MISSING_SHARES = ((0.0, 0.0), (0.0, 1 / 3), (1 / 3, 1.0))

#: Weight below which a setting is left out of an average.
LEAST_WEIGHT = 0.05

#: Least probability of a label in the loss, so that one outlier does not decide.
LEAST_PROBABILITY = 1e-3

#: Prior records of each model in the weights of an average, EM steps towards the best weights, and
#: the change of weights below which these steps end.
PRIOR_RECORDS, WEIGHT_STEPS, WEIGHT_CHANGE = 3.0, 5000, 1e-5

#: Relative fall of the loss that justifies another setting.
NOTICEABLE = 1e-3

STRENGTHS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
JOINTS = (0.0, 0.1, 1.0, 10.0, 100.0)
#: Classes for each combination of labels.
CLASSES = (1, 2, 3, 6, 12, 24)


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
    """Training data of one fold, and its held-out codes with none, few and many values removed."""

    learn: Labelled
    held: tuple[Codes, ...]
    weight: FloatArray
    seed: int


class HeldOutLabels:
    """How well settings predict held-out labels; each setting is fitted once.

    Parameters
    ----------
    data : InMemory
        Features and labels.
    targets : int
        How many variables, the last ones, are labels.
    solver : Conditional
        The solver; settings replace its joint and strength.
    rng : Generator
        Chooses the records that are held out.
    starts : int
        Number of fits of each setting that will be averaged.

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
        self.folds = list(label_folds(data, targets, rng))
        self.weight = np.concatenate([p.weight for p in self.folds])
        self.starts = min(starts, STARTS)
        self.tried: defaultdict[Setting, list[tuple[FloatArray, ...]]] = defaultdict(list)

    def label_prob(self, setting: Setting, missing: int = 0, starts: int = 1) -> FloatArray:
        """Probability of each held-out label, averaged over starts.

        ``missing`` is a place in ``MISSING_SHARES``.
        """
        tried = self.tried[setting]
        starts = distinct_starts(self.folds[0].learn, setting, starts)
        for start in range(len(tried), starts):
            tried.append(self.attempt(setting, start))
        return np.asarray(np.mean([found[missing] for found in tried[:starts]], axis=0))

    def attempt(self, setting: Setting, start: int) -> tuple[FloatArray, ...]:
        """Fit each fold; return probabilities of its held-out labels, for each missing share."""
        each = []
        for fold in self.folds:
            # The same randomness for every setting.
            rng = np.random.default_rng([fold.seed, start])
            first = label_start(fold.learn, setting.rank, rng)
            found = run(setting.apply(self.solver), fold.learn, first)
            each.append([self.predict(found, codes) for codes in fold.held])
        return tuple(np.concatenate(found) for found in zip(*each, strict=True))

    def loss(self, setting: Setting, missing: int = 0, starts: int = 1) -> float:
        """Mean log-loss of the held-out labels."""
        found = self.label_prob(setting, missing, starts)
        return float(-self.weight @ np.log(found) / self.weight.sum())

    def predict(self, found: Run, codes: Codes) -> FloatArray:
        """Probability of the labels of some records."""
        blind = codes.copy()
        blind[:, blind.shape[1] - self.targets :] = -1
        levels = found.model.layout.levels
        known, hidden = (
            kernels.class_log_prob(rows, found.weights, found.factors, levels)
            for rows in (codes, blind)
        )
        share = np.exp(known - hidden)
        return np.asarray((1 - LEAST_PROBABILITY) * share + LEAST_PROBABILITY)

    def shares(self, settings: Sequence[Setting], missing: int = 0) -> dict[Setting, float]:
        """Weights of an average of some settings that predicts the labels best, by EM.

        Settings of little weight are left out; the heaviest is first.
        """
        found = np.stack([self.label_prob(s, missing, self.starts) for s in settings])
        shares = np.full(len(settings), 1.0 / len(settings))
        for _ in range(WEIGHT_STEPS):
            parts = shares[:, None] * found
            before, shares = shares, PRIOR_RECORDS + parts / parts.sum(axis=0) @ self.weight
            shares /= shares.sum()
            if np.abs(shares - before).max() < WEIGHT_CHANGE:
                break
        kept = [int(k) for k in np.argsort(-shares, kind="stable") if shares[k] >= LEAST_WEIGHT]
        return {settings[k]: float(shares[k] / shares[kept].sum()) for k in kept}


def distinct_starts(problem: Labelled, setting: Setting, starts: int) -> int:
    """Number of starts that differ: one, where no label has more than one class."""
    return 1 if setting.rank <= len(problem.combinations[0]) else starts


def label_folds(data: InMemory, targets: int, rng: np.random.Generator) -> Iterator[LabelFold]:
    """Training and held-out records; records without any label are never held out."""
    data = sample_enough(data, rng)
    labels = data.codes[:, data.codes.shape[1] - targets :]
    has_label = (labels >= 0).any(axis=1)
    labelled = data.reweight(np.where(has_label, data.weight, 0.0))
    others = data.reweight(np.where(has_label, 0.0, data.weight))
    cells = 0
    for fold in make_folds(labelled, FOLDS, rng):
        held = tuple(
            remove_values(np.array(fold.judge.codes), targets, *share, rng)
            for share in MISSING_SHARES
        )
        seed = int(rng.integers(2**32))
        learn = join([fold.learn, others]) if len(others.weight) else fold.learn
        yield LabelFold(Labelled.of(learn, targets), held, fold.mass, seed)
        cells += learn.codes.size
        if cells > ENOUGH_CELLS:
            return


def remove_values(
    codes: Codes, targets: int, least: float, largest: float, rng: np.random.Generator
) -> Codes:
    """Codes with a random share of the features removed from each record."""
    codes = codes.copy()
    features = codes[:, : codes.shape[1] - targets]
    share = least + (largest - least) * rng.random((len(codes), 1))
    features[rng.random(features.shape) < share] = -1
    return codes


def sample_enough(data: InMemory, rng: np.random.Generator) -> InMemory:
    """A sample of the records, where they are more than enough to choose settings by."""
    if data.total < 2 * ENOUGH_RECORDS:
        return data
    return next(iter(make_folds(data, int(data.total // ENOUGH_RECORDS), rng))).judge


def search_settings(
    loss: Callable[[Setting], float],
    best: Setting,
    ranks: Sequence[int],
    strengths: Sequence[float],
) -> Setting:
    """The rank and strength of least loss, found by steps along one of them at a time.

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


#: Loss, relative to the least, above which larger shares of the joint likelihood are not tried.
HOPELESS_LOSS = 1.25

#: Least share of the joint likelihood in a model that answers any question, and the share in
#: ``pmf_`` where the user asks for less.
ENOUGH_JOINT, DEFAULT_JOINT = 0.1, 1.0

#: Number of labels above which labels share classes.
MOST_LABELS = 20

#: Places in ``MISSING_SHARES``.
FEW_MISSING, MANY_MISSING = 1, 2

#: Number of records below which none are held out.
FEWEST_RECORDS = 20

#: Cells times classes above which a pass uses all threads.
THREADED_PASS = 10_000_000


@dataclass(frozen=True)
class Fitted:
    """Models for the labels, and one for everything.

    Parameters
    ----------
    members : tuple of LowRankMember
        Whose conditional probabilities are averaged.
    weights : array (3, members)
        Weight of each of them, for rows as they were at the fit, and for rows that miss few and
        many other values.
    result : FitResult
        The fit of the model for everything.
    """

    members: tuple[LowRankMember, ...]
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
        return Fitted((LowRankMember(result.pmf.mixture, targets),), np.ones((3, 1)), result)
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
    """Choose settings, train models for the labels, and one for the joint."""
    choice = choose(problem, rank, solver, starts, session.rng)
    kept = dict.fromkeys(s for shares in choice.shares for s in shares)
    made = partial(result_of, problem, choice.words)
    runs: dict[Setting, list[Run]] = {}
    for setting in {**kept, choice.joint: None}:
        runs[setting] = train(problem, setting, solver, starts, session, made)
    weights = [
        [shares.get(s, 0.0) / len(runs[s]) for s in kept for _ in runs[s]]
        for shares in choice.shares
    ]
    every = [run for group in runs.values() for run in group]
    return Fitted(
        tuple(
            LowRankMember(sorted_pmf(problem, run), problem.targets)
            for s in kept
            for run in runs[s]
        ),
        np.array(weights),
        made(every, runs[choice.joint][best_run(runs[choice.joint])]),
    )


def result_of(
    problem: Labelled, words: str, runs: Sequence[Run], top: Run | None = None
) -> FitResult:
    """The result of the model for everything, by default the best run."""
    top = top or runs[best_run(runs)]
    value, blind = (d.expect(top.model).log_likelihood for d in (problem.known, problem.blind))
    return FitResult.of(
        sorted_pmf(problem, top),
        runs,
        f"Log-likelihood {value:,.2f}, of the labels given the rest {value - blind:,.2f},",
        best=top,
        log_likelihood=value,
        choice=words,
    )


class Choice(NamedTuple):
    """Settings to average with their weights, for no, few and many missing values; the joint's."""

    shares: tuple[dict[Setting, float], ...]
    joint: Setting
    words: str


def choose(
    problem: Labelled,
    rank: int | Literal["auto"],
    solver: Conditional,
    starts: int,
    rng: np.random.Generator,
) -> Choice:
    """Choose settings by held-out labels.

    The settings of least log-loss for each share of the joint likelihood are averaged. The one
    that is best where values are missing also gives the joint.
    """
    base = base_rank(problem)
    ranks = [base * m for m in CLASSES] if rank == "auto" else [rank]
    strengths = STRENGTHS if solver.strength == "auto" else [number("strength", solver.strength)]
    joints = JOINTS if solver.joint == "auto" else [number("joint", solver.joint)]
    first = Setting(middle(ranks, 2), middle(strengths, 5), joints[0])
    if len(ranks) == len(strengths) == len(joints) == 1:
        return only(first, "As asked")
    if problem.known.total < FEWEST_RECORDS:
        first = first._replace(joint=joints[-1])
        return only(first, "Too few records to hold any out")
    held = HeldOutLabels(problem.known, problem.targets, solver, rng, starts)
    found: list[Setting] = []
    for joint in joints:
        first = search_settings(held.loss, first._replace(joint=joint), ranks, strengths)
        found.append(first)
        if joint >= ENOUGH_JOINT and held.loss(first) > HOPELESS_LOSS * min(map(held.loss, found)):
            break
    best = min(found, key=held.loss)
    # An average over starts needs less of a prior.
    found[found.index(best)] = walk(
        lambda s: held.loss(s, starts=held.starts),
        best,
        [best._replace(strength=s) for s in strengths],
    )
    wide = [s for s in found if s.joint >= ENOUGH_JOINT] or [found[0]._replace(joint=DEFAULT_JOINT)]
    wide.sort(key=lambda s: held.loss(s, FEW_MISSING) + held.loss(s, MANY_MISSING))
    every = list(dict.fromkeys([*found, *wide]))
    shares = (
        held.shares(found),
        held.shares(every, FEW_MISSING),
        held.shares(every, MANY_MISSING),
    )
    return Choice(shares, wide[0], describe(held, shares, wide[0]))


def only(setting: Setting, why: str) -> Choice:
    """One setting; for the joint and for missing values, one with enough of the joint."""
    wide = setting if setting.joint >= ENOUGH_JOINT else setting._replace(joint=DEFAULT_JOINT)
    more = "" if wide == setting else f" For the joint: {wide.words}."
    shares = {setting: 1.0}, {wide: 1.0}, {wide: 1.0}
    return Choice(shares, wide, f"{why}: {setting.words}.{more}")


def describe(held: HeldOutLabels, shares: Sequence[dict[Setting, float]], joint: Setting) -> str:
    """What was chosen, and why."""
    none, few, many = (
        "; ".join(f"{v:.2f} {s.words} ({held.loss(s, missing):.4g})" for s, v in parts.items())
        for missing, parts in enumerate(shares)
    )
    return (
        f"Chosen by the log-loss of held-out labels among {plural(len(held.tried), 'setting')}: an "
        f"average of {none}. With few missing values: {few}. With many: {many}. In brackets: the "
        f"log-loss of each setting alone, from one start. For the joint: {joint.words}."
    )


def base_rank(problem: Labelled) -> int:
    """One class for each label of the target that has most."""
    return min(max(problem.layout.levels[-problem.targets :]), MOST_LABELS)


def middle(grid: Sequence[Any], place: int) -> Any:
    """The value that a search starts at."""
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
    if problem.known.cells * setting.rank >= THREADED_PASS:
        problem = problem.with_threads(kernels.available_threads())
    first = (
        partial(given_model, model=label_start(problem, setting.rank, session.rng))
        for _ in range(distinct_starts(problem, setting, starts))
    )
    follow = partial(follow_start, solver=setting.apply(solver))
    return search(problem, first, follow, session, offer=offer)


def sorted_pmf(problem: Labelled, run: Run) -> LowRankPMF:
    """A run as a model with labels, its classes by falling weight.

    Light classes stay: their columns may make up for the weight, and decide rows of their own.
    """
    return problem.known.to_pmf(run.model.sorted())
