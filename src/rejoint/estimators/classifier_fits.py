"""The fits behind JointClassifier: settings chosen, models trained, one of them for the joint."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from rejoint import kernels
from rejoint.domain.labels import plural
from rejoint.estimation import Bayes, Em, estimate
from rejoint.estimation.fitting import as_pmf
from rejoint.estimation.tidy import tidy
from rejoint.estimators.discriminative import Conditional, LabelledProblem
from rejoint.estimators.label_starts import label_combinations
from rejoint.estimators.tuning import CLASSES, JOINTS, STRENGTHS, HeldOut, Setting, fit, search
from rejoint.pmf import LowRankPMF
from rejoint.records import Records
from rejoint.solver import FitResult, Run, whole

__all__ = ["Fitted", "fit_classifier"]

#: Settings that are averaged, if their losses are this near to the least one.
BEST, NEAR = 3, 1.1

#: Weight of the joint likelihood from which on a model is fit to be asked anything, and that of
#: the model for all else where those for the labels have less.
ENOUGH_JOINT, JOINT = 0.1, 1.0

#: More labels than this share their classes.
MOST_LABELS = 20

#: Records that are too few to hold any out, and where the search begins: places in the grids of
#: classes, strengths, weights of the joint likelihood.
FEW, FIRST = 20, (2, 5, 0)

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
    result : FitResult
        How the one for everything came about.
    sharp : bool
        Whether the models know the labels of rows without unforeseen holes only.
    """

    models: tuple[LowRankPMF, ...]
    result: FitResult
    sharp: bool


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
        return Fitted((mean,), result, sharp=False)
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
    settings, words = choose(problem, records, rank, solver, rng)
    runs: list[list[Run]] = [train(problem, s, solver, starts, rng) for s in settings]
    models = tuple(as_model(problem, run) for group in runs for run in group)
    best, label_runs = settings[0], [run for group in runs for run in group]
    sharp = best.joint < ENOUGH_JOINT
    if not sharp:
        top = min(runs[0], key=lambda run: run.objective)
        return Fitted(models, as_result(problem, top, label_runs, words), sharp)
    setting, more = choose_whole(problem, records, rank, best, solver, rng)
    whole_runs = train(problem, setting, solver, starts, rng)
    top = min(whole_runs, key=lambda run: run.objective)
    return Fitted(models, as_result(problem, top, [*label_runs, *whole_runs], words + more), sharp)


def choose(
    problem: LabelledProblem,
    records: Records,
    rank: int | Literal["auto"],
    solver: Conditional,
    rng: np.random.Generator,
) -> tuple[list[Setting], str]:
    """The settings to average, best first, and why."""
    base = base_rank(problem)
    axes = (
        [base * m for m in CLASSES] if rank == "auto" else [rank],
        STRENGTHS if solver.strength == "auto" else [number("strength", solver.strength)],
        JOINTS if solver.joint == "auto" else [number("joint", solver.joint)],
    )
    places = (min(place, len(grid) - 1) for place, grid in zip(FIRST, axes, strict=True))
    ranks, strengths, joints = axes
    at = [*places]
    first = Setting(ranks[at[0]], strengths[at[1]], joints[at[2]])
    if all(len(grid) == 1 for grid in axes):
        return [first], f"As asked: {first.words}."
    if problem.known.total < FEW:
        return [first], f"Too few records to choose by what is held out: {first.words}."
    loss = HeldOut(records, problem.targets, solver, rng)
    search(loss, first, axes)
    losses = loss.losses
    best = sorted(losses, key=lambda s: losses[s])[:BEST]
    best = [s for s in best if losses[s] <= NEAR * losses[best[0]]]
    others = "".join(f"; {s.words} ({losses[s]:.4g})" for s in best[1:])
    words = (
        f"Least log-loss of held-out labels, of {plural(len(losses), 'setting')} tried: "
        f"{best[0].words} ({losses[best[0]]:.4g}){others}."
    )
    return best, words


def choose_whole(
    problem: LabelledProblem,
    records: Records,
    rank: int | Literal["auto"],
    best: Setting,
    solver: Conditional,
    rng: np.random.Generator,
) -> tuple[Setting, str]:
    """The setting of the model for the joint, and why: labels of records with holes."""
    first = best._replace(joint=JOINT)
    if rank == "auto" and problem.known.total >= FEW:
        loss = HeldOut(records, problem.targets, solver, rng, holes=True)
        base = base_rank(problem)
        strengths = STRENGTHS if solver.strength == "auto" else [first.strength]
        first = search(loss, first, ([base * m for m in CLASSES], strengths, [JOINT]))
    return first, f" For the joint, and for rows with holes: {first.words}."


def base_rank(problem: LabelledProblem) -> int:
    """One class for each label of the target that has most."""
    return min(max(problem.domain.shape[-problem.targets :]), MOST_LABELS)


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
    if setting.rank <= len(label_combinations(problem)[0]):
        starts = 1
    return [fit(problem, setting, solver, rng, start) for start in range(starts)]


def as_model(problem: LabelledProblem, run: Run) -> LowRankPMF:
    """A run as a model."""
    weights, factors, _ = tidy(run.weights, run.factors)
    return as_pmf(problem.known, weights, factors)


def as_result(problem: LabelledProblem, top: Run, runs: Sequence[Run], words: str) -> FitResult:
    """The model for everything, with what is to be said about it."""
    weights, factors, gone = tidy(top.weights, top.factors)
    value = problem.known.expect(weights, factors).log_likelihood
    blind = problem.blind.expect(weights, factors).log_likelihood
    return FitResult(
        pmf=as_pmf(problem.known, weights, factors),
        stop=(
            f"Log-likelihood {value:.6g}, of the labels given the rest {value - blind:.6g}; "
            f"{plural(len(runs), 'fit')}, {REASONS[top.reason]} "
            f"(residual {top.residual:.1e}).{gone}"
        ),
        history=tuple(record for run in runs for record in run.records),
        error=float("nan"),
        residual=top.residual,
        starts=tuple(runs),
        misfits={},
        log_likelihood=value,
        choice=words,
    )
