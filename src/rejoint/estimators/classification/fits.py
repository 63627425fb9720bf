"""The fits behind JointClassifier: settings chosen, models trained, one of them for the joint."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint import kernels
from rejoint.domain.labels import plural
from rejoint.estimation import Bayes, Em, estimate
from rejoint.estimation.fitting import as_pmf
from rejoint.estimators.classification.conditional import Conditional
from rejoint.estimators.classification.labelled import LabelledProblem
from rejoint.estimators.classification.tuning import (
    CLASSES,
    JOINTS,
    STRENGTHS,
    HeldOut,
    Setting,
    different,
    fit,
    search,
    walk,
)
from rejoint.pmf import LowRankPMF
from rejoint.records import Records
from rejoint.solver import FitResult, Run, whole

__all__ = ["Fitted", "fit_classifier"]

Array = NDArray[np.float64]

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

REASONS = {
    "optimal": "no move is left",
    "progress": "the objective has stopped falling",
    "steps": "the limit of steps was reached (raise max_steps of the solver's limits for more)",
    "interrupted": "interrupted; this is the best model so far",
}

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
    weights: Array
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
    if isinstance(solver, Em | Bayes) or solver in ("ml", "map", "bayes"):
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
    return fit_conditional(records, targets, rank, solver, starts, rng)


def fit_conditional(
    records: Records,
    targets: int,
    rank: int | Literal["auto"],
    solver: Conditional,
    starts: int,
    rng: np.random.Generator,
) -> Fitted:
    """Choose settings, train models for the labels, and one for the joint if they are none."""
    problem = LabelledProblem.of(records, targets, threads=1)
    choice = choose(problem, records, rank, solver, starts, rng)
    kept = dict.fromkeys(s for shares in choice.shares for s in shares)
    runs = {s: train(problem, s, solver, starts, rng) for s in {**kept, choice.whole: None}}
    top = min(runs[choice.whole], key=lambda run: run.objective)
    weights = [
        [shares.get(s, 0.0) / len(runs[s]) for s in kept for _ in runs[s]]
        for shares in choice.shares
    ]
    return Fitted(
        tuple(as_model(problem, run) for s in kept for run in runs[s]),
        np.array(weights),
        as_result(problem, top, [run for group in runs.values() for run in group], choice.words),
    )


class Choice(NamedTuple):
    """Settings to average with their weights, for no, few and many holes; and that of the joint."""

    shares: tuple[dict[Setting, float], ...]
    whole: Setting
    words: str


def choose(
    problem: LabelledProblem,
    records: Records,
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
    held = HeldOut(records, problem.targets, solver, rng, starts)
    found: list[Setting] = []
    for joint in joints:
        first = search(held.loss, first._replace(joint=joint), ranks, strengths)
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


def words_for(held: HeldOut, shares: Sequence[dict[Setting, float]], whole: Setting) -> str:
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


def base_rank(problem: LabelledProblem) -> int:
    """One class for each label of the target that has most."""
    return min(max(problem.domain.shape[-problem.targets :]), MOST_LABELS)


def middle(grid: Sequence[Any], place: int) -> Any:
    """Where a search begins."""
    return grid[min(place, len(grid) - 1)]


def number(name: str, value: float | str) -> float:
    """Check a setting that was given."""
    if isinstance(value, str) or not 0.0 <= float(value) < np.inf:
        raise ValueError(f"{name} must be 'auto' or a number of at least 0, got {value!r}.")
    return float(value)


def train(
    problem: LabelledProblem,
    setting: Setting,
    solver: Conditional,
    starts: int,
    rng: np.random.Generator,
) -> list[Run]:
    """Fits from several starts; one where they would all be the same."""
    if problem.known.codes.size * setting.rank >= LARGE:
        threads = kernels.available_threads()
        known, blind = (replace(p, threads=threads) for p in (problem.known, problem.blind))
        problem = LabelledProblem(known, blind, problem.targets)
    starts = different(problem, setting, starts)
    return [fit(problem, setting, solver, rng, start) for start in range(starts)]


def as_model(problem: LabelledProblem, run: Run) -> LowRankPMF:
    """A run as a model, its classes by falling weight.

    Light classes stay: their columns may make up for the weight, and decide rows of their own.
    """
    return as_pmf(problem.known, run.weights, run.factors).sorted()


def as_result(problem: LabelledProblem, top: Run, runs: Sequence[Run], words: str) -> FitResult:
    """The model for everything, with what is to be said about it."""
    value = problem.known.expect(top.weights, top.factors).log_likelihood
    blind = problem.blind.expect(top.weights, top.factors).log_likelihood
    return FitResult(
        pmf=as_model(problem, top),
        stop=(
            f"Log-likelihood {value:.6g}, of the labels given the rest {value - blind:.6g}; "
            f"{plural(len(runs), 'fit')}, {REASONS[top.reason]} "
            f"(residual {top.residual:.1e})."
        ),
        history=tuple(record for run in runs for record in run.records),
        error=float("nan"),
        residual=top.residual,
        starts=tuple(runs),
        misfits={},
        log_likelihood=value,
        choice=words,
    )
