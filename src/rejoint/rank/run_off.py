"""Run-off: which chains the answer is made of, where the rank is not given.

Candidates are chains from random starts, of two ranks and several lengths, and chains from the
best mode of a rank that was refined on all records. Each is finished as the answer would be, and
judged by records that it has not seen. Random starts win on wide records and on surveys; a mode
wins where records are many and classes few, as a short chain hardly leaves a poor optimum there.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np

from rejoint.estimation.data import Data
from rejoint.estimation.gibbs import Bayes, ChainPlan
from rejoint.estimation.policy import DEFAULT, Policy
from rejoint.estimation.posterior_mean import posterior_mean
from rejoint.estimation.priors import first_concentrations, make_prior
from rejoint.estimation.starts import random_model
from rejoint.model import FloatArray, Model
from rejoint.rank.folds import Fold, make_folds
from rejoint.rank.held_out import FOLDS, Curve, HeldOutSearch, merge_down, polish
from rejoint.solver.checkpoint import digest
from rejoint.solver.session import Session


@dataclass(frozen=True)
class Refined:
    """Ranks around the best, refined on all records: for each the score and one model.

    Parameters
    ----------
    models : mapping of int to list of Model
        By rank, one model for each judging part.
    first : Fold
        The first of these parts.
    curve : Curve
        Scores of all ranks.
    """

    models: dict[int, list[Model]]
    first: Fold
    curve: Curve


def can_refine(data: Data, best: int, policy: Policy = DEFAULT) -> bool:
    """Whether refining ranks around the best is worth its cost."""
    parts = count_parts(data, policy)
    steps = (policy.merged_pairs + 1) * policy.merge_trial_steps + policy.merge_steps
    cells = data.cells * best * (best + 2) * steps * parts
    return 1 < best <= policy.largest_best and cells <= policy.refine_cells


def count_parts(data: Data, policy: Policy) -> int:
    """Parts that judge, one after the other: all five of few records."""
    return int(np.clip(1 + policy.refine_records / max(data.total, 1.0), 2, FOLDS))


def refine(data: Data, best: int, session: Session, policy: Policy = DEFAULT) -> Refined:
    """Merge classes one by one from above the best rank, on all records but those that judge."""
    folds = list(make_folds(data, FOLDS, session.rng))[: count_parts(data, policy)]
    seed = int(session.rng.integers(2**62))
    most = max(int(data.total / policy.records_per_class), best)
    models: dict[int, list[Model]] = {}
    logs: dict[int, list[FloatArray]] = {}
    for k, fold in enumerate(folds):
        top, starts = (int(1.3 * best) + 2, 2) if k else (int(1.6 * best) + 2, 3)
        top = min(top, most)
        found = recall_part(data, fold, (seed, k, top, starts, most), session, policy)
        own = Curve([fold])
        own.logs = {rank: fold.judge.log_prob(model) for rank, model in found.items()}
        for rank, model in found.items():
            models.setdefault(rank, []).append(model)
            logs.setdefault(rank, []).append(own.logs[rank])
        if not k:
            best = own.smallest(1.0)
    curve = Curve(folds)
    curve.logs = {r: np.concatenate(p) for r, p in logs.items() if len(p) == len(folds)}
    return Refined(models, folds[0], curve)


def recall_part(
    data: Data, fold: Fold, asked: tuple[int, ...], session: Session, policy: Policy
) -> dict[int, Model]:
    """The models of one part, from the checkpoint where they have been made before."""

    def make() -> dict[str, object]:
        seed, k, top, starts, most = asked
        rng = np.random.default_rng([seed, k])
        models = refine_part(fold, top, starts, most, rng, session, policy)
        return {str(rank): model.stacked for rank, model in models.items()}

    key = ""
    if session.checkpoint.active:
        key = digest("refined", data.fingerprint, asked, policy)
    entry = session.checkpoint.memo(key, make)
    layout = data.layout
    return {int(rank): Model.from_stacked(layout, found) for rank, found in entry.items()}


def refine_part(
    fold: Fold,
    top: int,
    starts: int,
    most: int,
    rng: np.random.Generator,
    session: Session,
    policy: Policy,
) -> dict[int, Model]:
    """Models of one part from a rank down to one class.

    Again from further above where the best is near the top.
    """
    learn, judge = fold.learn, fold.judge
    found: dict[int, Model] = {}
    curve = Curve([fold])

    def keep(model: Model) -> None:
        logs, rank = judge.log_prob(model), model.rank
        if rank not in found or float(fold.mass @ (logs - curve.logs[rank])) > 0.0:
            found[rank], curve.logs[rank] = model, logs
        session.report(f"rank {rank}, by merging classes")

    while True:
        sampler, steps = Bayes(policy=policy), policy.polish_steps
        ends = [
            sampler.advance(learn, random_model(learn, top, rng), policy.trial_sweeps, rng)
            for _ in range(starts)
        ]
        concentrations = np.median([end.concentrations for end in ends], axis=0)
        polished = [polish(learn, [end.mean], concentrations, steps, policy) for end in ends]
        model = polish(learn, polished, concentrations, policy.refine_steps, policy)
        keep(model)
        for merged in merge_down(learn, model, 1, make_prior(learn, concentrations), policy):
            keep(merged)
        best = curve.smallest(1.0)
        if best < top - 1 or top >= min(1.6 * policy.largest_best, most):
            return found
        top = min(int(1.6 * best) + 2, most)


@dataclass
class RunOff:
    """Candidates for the answer, finished and judged.

    Parameters
    ----------
    fold : Fold
        Records to learn from, and others that judge.
    session : Session
    policy : Policy
    """

    fold: Fold
    session: Session
    policy: Policy = DEFAULT
    plans: list[tuple[ChainPlan, FloatArray]] = field(default_factory=list)

    def add(self, plan: ChainPlan, members: Sequence[Model]) -> None:
        """Finish a candidate and judge it."""
        learn = self.fold.learn
        passes = self.policy.anchored_passes
        answer = posterior_mean(learn, members, members[-1], passes, self.policy, ensemble=True)
        self.plans.append((plan, self.fold.judge.log_prob(answer)))

    def enter(
        self, plans: Sequence[ChainPlan], starts: Sequence[Model], rival: FloatArray | None = None
    ) -> None:
        """Run chains that go on from plan to plan, while they are not clearly behind a rival."""
        sampler = Bayes(policy=self.policy)
        chains = [sampler.chain(self.fold.learn, start, self.session.rng) for start in starts]
        done = 0
        for plan in plans:
            kept, members = set(plan.kept), []
            for k, chain in enumerate(chains):
                for sweep in range(done, plan.sweeps):
                    draw = next(chain)
                    if sweep in kept:
                        members.append(draw.mean)
                self.session.report(f"run-off, rank {plan.rank}, chain {k + 1} of {len(chains)}")
            done = plan.sweeps
            self.add(plan, members)
            if rival is not None and self.is_behind(self.plans[-1][1], rival):
                return

    def is_behind(self, logs: FloatArray, rival: FloatArray) -> bool:
        """Whether a candidate is behind another by two standard errors."""
        curve = Curve([self.fold])
        gap = float(self.fold.mass @ (rival - logs) / curve.total)
        return gap > 2.0 * curve.paired_error(rival, logs)

    @property
    def winner(self) -> ChainPlan:
        """The plan of the highest held-out log-likelihood."""
        return max(self.plans, key=lambda found: float(self.fold.mass @ found[1]))[0]


def plan_chains(
    data: Data,
    found: HeldOutSearch,
    refined: Refined | None,
    session: Session,
    policy: Policy = DEFAULT,
) -> ChainPlan:
    """Choose rank, number, length and start of the chains that answer.

    Parameters
    ----------
    data : Data
        All records.
    found : HeldOutSearch
        The two curves.
    refined : Refined, optional
        Ranks that were refined on all records.
    session : Session
    policy : Policy
    """
    mode, ensemble = found.mode, found.ensemble
    best, wide = mode.best, ensemble.smallest(policy.ensemble_errors)
    chosen = mode.smallest(1.0)
    gap = ensemble.logs[wide] - mode.logs[chosen]
    gain = float(mode.mass @ gap / mode.total)
    error = mode.paired_error(ensemble.logs[wide], mode.logs[chosen])
    rank = wide if gain > 0 else best

    def lengths(classes: int, chains: int, cells: float) -> list[int]:
        each = data.cells * classes * chains
        fit = [s for s in policy.sweeps_tried if each * s <= cells]
        return fit or [policy.sweeps_tried[0]]

    cold = lengths(rank, policy.chains, policy.run_off_cells)
    if refined is None or (len(cold) == 1 and gain > 0):
        if gain > 0:
            return ChainPlan.from_random(rank, cold[0], policy.chains)
        sweeps = lengths(best, policy.few_chains, policy.mode_cells)[-1]
        return ChainPlan.from_mode(best, sweeps, policy.few_chains)
    large = max(refined.curve.near(1.0))
    most = data.cells * large * policy.chains * policy.sweeps_tried[-1] <= policy.run_off_cells
    chains = policy.chains if most else policy.few_chains
    own = ChainPlan.from_mode(large, lengths(large, chains, policy.mode_cells)[-1], chains)
    if gain < -policy.sure_errors * error or (len(cold) == 1 and gain <= 0):
        return own
    seed = int(session.rng.integers(2**62))

    def choose() -> dict[str, object]:
        won = run_off(own, refined, rank, lengths, data.total, replace(session, rng=rng), policy)
        return asdict(won)

    rng = np.random.default_rng(seed)
    key = ""
    if session.checkpoint.active:
        key = digest("run-off", data.fingerprint, seed, own, rank, policy)
    return ChainPlan(**session.checkpoint.memo(key, choose))


def run_off(
    own: ChainPlan,
    refined: Refined,
    rank: int,
    lengths: Callable[[int, int, float], list[int]],
    records: float,
    session: Session,
    policy: Policy,
) -> ChainPlan:
    """Race chains from a mode against chains from random starts of two ranks."""
    race = RunOff(refined.first, session, policy)
    race.enter([own], [refined.models[own.rank][0]] * own.chains)
    rival = race.plans[0][1]
    wider = min(4 * rank, int(np.clip(records / 60, 8, 100)))
    for classes in (rank, wider) if wider > 1.4 * rank else (rank,):
        plans = [
            ChainPlan.from_random(classes, sweeps, policy.chains)
            for sweeps in lengths(classes, policy.chains, policy.run_off_cells)
        ]
        learn = race.fold.learn
        starts = [random_model(learn, classes, session.rng) for _ in range(policy.chains)]
        race.enter(plans, starts, rival)
    return race.winner


def start_of(
    data: Data, models: Sequence[Model], session: Session, policy: Policy = DEFAULT
) -> Model:
    """The best of some models of one rank on all records, followed for a while."""
    concentrations = first_concentrations(data, policy)
    tried = [polish(data, [m], concentrations, policy.polish_steps, policy) for m in models]
    return polish(data, tried, concentrations, policy.representative_steps, policy, session)
