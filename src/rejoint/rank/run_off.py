"""Run-off: which chains the answer is made of, where the rank is not given.

Candidates are chains from random starts, of two ranks and several lengths, and chains from the
best mode of a rank that was refined on all records. Each is finished as the answer would be, and
judged by records that it has not seen. Random starts win on wide records and on surveys; a mode
wins where records are many and classes few, as a short chain hardly leaves a poor optimum there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rejoint.estimation.data import Data
from rejoint.estimation.em import Em
from rejoint.estimation.gibbs import Bayes, ChainPlan, Draw
from rejoint.estimation.policy import DEFAULT, Policy
from rejoint.estimation.posterior_mean import posterior_mean
from rejoint.estimation.priors import first_concentrations, make_prior
from rejoint.estimation.starts import fit_rank, random_model
from rejoint.messages import Countdown
from rejoint.model import FloatArray, Layout, Model
from rejoint.rank.folds import Fold, make_folds
from rejoint.rank.held_out import (
    FOLDS,
    Curve,
    HeldOutSearch,
    Refined,
    merge_cost,
    merge_down,
    pass_cells,
    polish,
)
from rejoint.solver.checkpoint import digest
from rejoint.solver.search import search
from rejoint.solver.session import Session


def count_parts(data: Data, best: int, cells: float, policy: Policy = DEFAULT) -> int:
    """Parts that judge while ranks around the best are refined; none where that costs too much."""
    if not 1 < best <= policy.largest_best:
        return 0
    bottom = best // 2 if best > policy.few_classes else 1
    each = merge_cost(data, largest_refined(best), bottom, policy)
    wanted = np.clip(1 + policy.refine_records / max(data.total, 1.0), 2, FOLDS)
    parts = int(min(wanted, cells / each))
    # Where records are many, one part judges as well as the search for a rank does. Where they are
    # very many, the passes cost more than they find.
    one_judges = FOLDS * policy.judge_rows <= data.total <= policy.refine_records
    return parts if parts >= 2 or one_judges else 0


def largest_refined(best: int) -> int:
    """The rank to merge classes from, above the best one."""
    return int(1.3 * best) + 2


def refine(
    data: Data, best: int, parts: int, session: Session, policy: Policy = DEFAULT
) -> Refined:
    """Merge classes one by one from above the best rank, on all records but those that judge."""
    folds = list(make_folds(data, FOLDS, session.rng))[:parts]
    seed = int(session.rng.integers(2**62))
    most = max(int(min(data.total / policy.records_per_class, policy.most_classes)), best)
    mark = data.fingerprint if session.checkpoint.active else ""
    countdown = Countdown(len(folds))
    found: list[MergedPart] = []
    # The first part says where the others begin.
    for numbers in (range(1), range(1, parts))[:parts]:
        top = min(largest_refined(best), most)
        tasks = [
            PartTask(folds[k], top, 2 if k else 3, most, (seed, k), policy, mark, countdown)
            for k in numbers
        ]
        found += search(None, tasks, refine_part, session, numbers=numbers, thaw=MergedPart.thaw)
        own = Curve(folds[:1])
        own.logs = {rank: folds[0].judge.log_prob(m) for rank, m in found[0].models.items()}
        best = own.smallest(1.0)
    curve, common = Curve(folds), set.intersection(*(set(part.models) for part in found))
    models = {rank: [part.models[rank] for part in found] for rank in sorted(common)}
    for rank, each in models.items():
        logs = [fold.judge.log_prob(model) for fold, model in zip(folds, each, strict=True)]
        curve.logs[rank] = np.concatenate(logs)
    return Refined(models, folds[0], curve)


@dataclass(frozen=True)
class MergedPart:
    """Models of one part by rank."""

    models: dict[int, Model]

    def freeze(self) -> dict[str, Any]:
        """The models as a checkpoint keeps them."""
        levels = list(next(iter(self.models.values())).layout.levels)
        return {str(k): m.stacked for k, m in self.models.items()} | {"levels": levels}

    @classmethod
    def thaw(cls, entry: Mapping[str, Any]) -> "MergedPart":
        """The models that were kept."""
        layout = Layout(tuple(entry["levels"]))
        kept = {int(rank): found for rank, found in entry.items() if rank != "levels"}
        return cls({rank: Model.from_stacked(layout, found) for rank, found in kept.items()})


@dataclass(frozen=True)
class PartTask:
    """What a worker needs to merge the classes of one part, from a rank with some starts down."""

    fold: Fold = field(compare=False)
    top: int
    starts: int
    most: int
    seed: tuple[int, ...]
    policy: Policy
    fingerprint: str
    countdown: Countdown = field(compare=False)

    def alone(self) -> "PartTask":
        """The same for a worker: one thread."""
        return replace(self, fold=self.fold.alone())


def refine_part(
    problem: Any, start: PartTask, number: int, session: Session, key: str
) -> MergedPart:
    """Models of one part from a rank down to one class, or to far below the best of many.

    Again from further above where the best is near the top.
    """
    learn, judge, mass = start.fold.learn, start.fold.judge, start.fold.mass
    top, most, policy = start.top, start.most, start.policy
    rng = np.random.default_rng(start.seed)
    found: dict[int, Model] = {}
    curve = Curve([start.fold])

    def keep(model: Model) -> None:
        logs, rank = judge.log_prob(model), model.rank
        if rank not in found or float(mass @ (logs - curve.logs[rank])) > 0.0:
            found[rank], curve.logs[rank] = model, logs
        left = start.countdown.tell(number + 1 - (rank / top) ** 2)
        session.report(f"part {number + 1}, rank {rank} by merging classes{left}")

    while True:
        sampler, steps = Bayes(policy=policy), policy.polish_steps
        ends = [
            sampler.advance(learn, random_model(learn, top, rng), policy.trial_sweeps, rng)
            for _ in range(start.starts)
        ]
        concentrations = np.median([end.concentrations for end in ends], axis=0)
        polished = [polish(learn, [end.mean], concentrations, steps, policy) for end in ends]
        model = polish(learn, polished, concentrations, policy.refine_steps, policy)
        keep(model)
        for merged in merge_down(learn, model, 1, make_prior(learn, concentrations), policy):
            keep(merged)
            if policy.few_classes < curve.best > 2 * merged.rank:
                break  # smaller ranks are far behind, and each costs as many steps
        best = curve.smallest(1.0)
        if best < top - 1 or top >= min(1.6 * policy.largest_best, most):
            return MergedPart(found)
        top = min(int(1.6 * best) + 2, most)


@dataclass
class RunOff:
    """Candidates for the answer, finished and judged.

    Parameters
    ----------
    fold : Fold
        Records to learn from, and others that judge.
    mode : Model
        The mode of the rank chosen, which has learned from the same records.
    session : Session
    policy : Policy
    """

    fold: Fold
    mode: Model
    session: Session
    policy: Policy = DEFAULT
    plans: list[tuple[ChainPlan, FloatArray]] = field(default_factory=list)
    draws: dict[ChainPlan, Sequence[Draw]] = field(default_factory=dict)
    merged: dict[ChainPlan, Model] = field(default_factory=dict)
    mode_fits: bool = False

    def add(
        self, plan: ChainPlan, draws: Sequence[Draw], members: Sequence[Model] | None = None
    ) -> None:
        """Finish a candidate and judge it; ``members`` answer in place of the draws' means."""
        # Classes are not divided here, which takes long and serves all candidates alike.
        policy = replace(self.policy, pair_rounds=0)
        found = posterior_mean(
            self.fold.learn,
            draws,
            draws[-1].mean,
            policy.anchored_passes,
            policy,
            ensemble=True,
            members=members,
            weight=plan.anchor,
        )
        # What was found is a model of the levels themselves.
        self.plans.append((plan, self.fold.judge.records.log_prob(found.model)))
        self.draws[plan] = draws
        self.merged[plan] = found.merged
        if plan.at_mode and not plan.by_mode and found.misfit is not None:
            # Many classes meet every table, whatever the form of the truth.
            self.mode_fits = found.misfit.fits and plan.rank <= policy.largest_best

    def enter(
        self,
        plans: Sequence[ChainPlan],
        starts: Sequence[Model],
        concentrations: FloatArray | None = None,
        rival: FloatArray | None = None,
    ) -> None:
        """Run chains that go on from plan to plan, while they are not clearly behind a rival."""
        sampler, learn, rng = Bayes(policy=self.policy), self.fold.learn, self.session.rng
        chains = [sampler.chain(learn, start, rng, concentrations) for start in starts]
        done = 0
        for plan in plans:
            kept, draws = set(plan.kept), []
            for k, chain in enumerate(chains):
                for sweep in range(done, plan.sweeps):
                    draw = next(chain)
                    if sweep in kept:
                        draws.append(draw)
                self.session.report(f"run-off, rank {plan.rank}, chain {k + 1} of {len(chains)}")
            done = plan.sweeps
            self.add(plan, draws)
            if plan.at_mode:
                self.add(replace(plan, by_mode=True), draws, [self.mode])
            if rival is not None and self.is_behind(self.plans[-1][1], rival):
                return

    def is_behind(self, logs: FloatArray, rival: FloatArray, errors: float = 2.0) -> bool:
        """Whether a candidate is behind another by some standard errors."""
        curve = Curve([self.fold])
        gap = float(self.fold.mass @ (rival - logs) / curve.total)
        return gap > errors * curve.paired_error(rival, logs)

    @property
    def winner(self) -> ChainPlan:
        """The plan of the highest held-out log-likelihood.

        Where chains from the mode meet the tables of the records, the model's form is right, and
        others win by a standard error or not at all: what they win by is chance otherwise. The
        mode itself wins by two, and never where the form is right: the mean over the posterior is
        then nearer to the truth.
        """
        plans = [each for each in self.plans if not (self.mode_fits and each[0].by_mode)]
        plan, best = max(plans, key=lambda found: float(self.fold.mass @ found[1]))
        for own, logs in self.plans:
            preferred = own.at_mode and not own.by_mode and (self.mode_fits or plan.by_mode)
            if preferred and not self.is_behind(logs, best, 2.0 if plan.by_mode else 1.0):
                return own
        return plan

    @property
    def lead(self) -> float:
        """Standard errors by which shorter chains, or a smaller weight of their mean, must lead."""
        return 1.0 if self.mode_fits else 0.0

    def pool(self, winner: ChainPlan) -> ChainPlan:
        """The winner, with chains of other ranks and starts that are as good within chance.

        Few records do not settle how many classes there are. The mean over several numbers is then
        nearer to the truth than the number that chance prefers.
        """
        logs, most = dict(self.plans), self.policy.pooled_errors
        families = dict[tuple[bool, int], ChainPlan]()
        # Where the model's form is right, longer chains are nearer to its posterior; where it is
        # not, short ones may predict better, as they differ more.
        for plan in logs:  # longer chains come later
            before = families.get((plan.at_mode, plan.rank), plan)
            dear = not plan.at_mode and plan.chains < self.policy.chains
            if not (dear or plan.by_mode or self.is_behind(logs[plan], logs[before], self.lead)):
                families[plan.at_mode, plan.rank] = plan
        # Chains from one mode share its errors, which matter where the form is not right.
        good = [
            plan
            for plan in families.values()
            if (self.mode_fits or plan.at_mode == winner.at_mode)
            and not self.is_behind(logs[plan], logs[winner], most)
        ]
        if len(good) < 2:
            return winner
        good.sort(key=lambda plan: not plan.at_mode)  # others start at random
        together = replace(good[0], beside=tuple(good[1:]))
        self.add(together, [draw for plan in good for draw in self.draws[plan]])
        return winner if self.is_behind(self.plans[-1][1], logs[winner], most) else together

    def settle(self) -> ChainPlan:
        """The winner, with the smaller weight of its mean where that predicts better.

        Where the model's form is right, it must do so by a standard error.
        """
        plan = self.winner
        plan = plan if plan.by_mode else self.pool(plan)
        freer = replace(plan, anchor=self.policy.ensemble_records[1])
        self.add(freer, self.draws[plan], [self.merged[plan]])
        logs = dict(self.plans)
        return freer if self.is_behind(logs[plan], logs[freer], self.lead) else plan


def plan_chains(
    data: Data,
    found: HeldOutSearch,
    session: Session,
    policy: Policy = DEFAULT,
) -> ChainPlan:
    """Choose rank, number, length and start of the chains that answer.

    Parameters
    ----------
    data : Data
        All records.
    found : HeldOutSearch
        The two curves, and ranks that were refined on all records.
    session : Session
    policy : Policy
    """
    refined, best = found.refined, found.mode.best
    wide, gain, error = ensemble_lead(found)
    rank = max(wide if gain > 0 else best, min(policy.fewest_chain_classes, found.cap))
    cells = found.for_chains(policy.run_off_cells)
    cold = sweeps_affordable(data, rank, policy.chains, cells, policy)
    own = best if refined is None else max(refined.curve.near(1.0))
    if own == 1:  # which would answer that all variables are independent, beyond doubt
        return ChainPlan.from_random(rank, cold[-1], policy.chains)
    if gain > 0 and (refined is None or len(cold) == 1):
        few = ChainPlan.from_random(rank, cold[0], policy.trial_chains)
        return race(data, few, found, None, session, policy)
    every = policy.chains * policy.sweeps_tried[-1] * pass_cells(data, own, policy)
    chains = policy.chains if every <= cells and refined is not None else policy.few_chains
    most = found.for_chains(policy.mode_cells)
    plan = ChainPlan.from_mode(own, sweeps_affordable(data, own, chains, most, policy)[-1], chains)
    # A mode of many classes may be ahead whatever the form of the truth.
    sure = own <= policy.largest_best and gain < -policy.sure_errors * error
    if refined is not None and sure:
        return replace(plan, anchor=policy.ensemble_records[1])
    return race(data, plan, found, rank, session, policy)


def ensemble_lead(found: HeldOutSearch) -> tuple[int, float, float]:
    """Rank of the ensemble, by how much it is ahead of the mode chosen, and the standard error."""
    mode, ensemble = found.mode, found.ensemble
    wide = ensemble.smallest(found.policy.ensemble_errors)
    logs, others = ensemble.logs[wide], mode.logs[mode.smallest(1.0)]
    gain = float(mode.mass @ (logs - others) / mode.total)
    return wide, gain, mode.paired_error(logs, others)


def is_wide(data: Data, found: HeldOutSearch, policy: Policy = DEFAULT) -> bool:
    """Whether short chains from random starts answer beyond doubt, as on wide records.

    Nothing is gained then by refining the ranks of modes.
    """
    wide, gain, error = ensemble_lead(found)
    cells = found.for_chains(policy.run_off_cells)
    sweeps = sweeps_affordable(data, wide, policy.chains, cells, policy)
    return len(sweeps) == 1 and gain > policy.sure_errors * error


def sweeps_affordable(
    data: Data, rank: int, chains: int, cells: float, policy: Policy = DEFAULT
) -> list[int]:
    """Numbers of sweeps that chains may have; one of them at the least."""
    each = chains * pass_cells(data, rank, policy)
    fit = [sweeps for sweeps in policy.sweeps_tried if each * sweeps <= cells]
    return fit or [policy.sweeps_tried[0]]


def race(
    data: Data,
    own: ChainPlan,
    found: HeldOutSearch,
    rank: int | None,
    session: Session,
    policy: Policy,
) -> ChainPlan:
    """Race chains of a plan against the mode chosen, and chains from random starts of a rank.

    Without ``rank`` there are no further random starts. Few chains stand for all of them where
    these would cost too much. The winner is kept by the checkpoint.
    """
    seed = int(session.rng.integers(2**62))

    def choose() -> dict[str, str]:
        fold = found.folds[0] if found.refined is None else found.refined.first
        mode, rng = found.models(found.choose())[0], np.random.default_rng(seed)
        entered = RunOff(fold, mode, replace(session, rng=rng), policy)
        starts = found.models(own.rank)[:1] * own.chains
        if not own.at_mode:
            starts = [random_model(fold.learn, own.rank, rng) for _ in range(own.chains)]
        entered.enter([own], starts, found.concentrations(own.rank))
        if rank is not None:
            enter_random(entered, data, found, rank)
        won = entered.settle()
        return (won if won.at_mode else replace(won, chains=policy.chains)).freeze()

    key = ""
    if session.checkpoint.active:
        key = digest("run-off", data.fingerprint, seed, own, rank, policy)
    kept = session.checkpoint.parse(key, ChainPlan.thaw)
    return kept or ChainPlan.thaw(session.checkpoint.memo(key, choose))


def enter_random(entered: RunOff, data: Data, found: HeldOutSearch, rank: int) -> None:
    """Enter chains from random starts of two ranks into a run-off."""
    policy, learn, rng = entered.policy, entered.fold.learn, entered.session.rng
    rival = entered.plans[0][1]
    most = max(int(min(data.total / policy.records_per_class, policy.most_classes)), 1)
    wider = min(4 * rank, int(np.clip(data.total / 60, 8, 100)), most)
    cells = found.for_chains(policy.run_off_cells)
    for classes in (rank, wider) if wider > 1.4 * rank else (rank,):
        shortest = policy.sweeps_tried[0] * pass_cells(data, classes, policy)
        numbers = (policy.chains, policy.trial_chains)
        chains = next((count for count in numbers if count * shortest <= cells), 0)
        if not chains:
            return
        sweeps = sweeps_affordable(data, classes, chains, cells, policy)
        plans = [ChainPlan.from_random(classes, each, chains) for each in sweeps]
        starts = [random_model(learn, classes, rng) for _ in range(chains)]
        entered.enter(plans, starts, found.concentrations(classes), rival)


def start_of(
    data: Data,
    models: Sequence[Model],
    cells: float,
    session: Session,
    policy: Policy = DEFAULT,
) -> Model:
    """The best of some models of one rank on all records, followed for a while.

    Where classes are few, merging may have led to a poor optimum that short chains do not leave:
    other starts are tried beside it, so far as they cost no more than ``cells``.
    """
    concentrations = first_concentrations(data, policy)
    tried = [polish(data, [m], concentrations, policy.polish_steps, policy) for m in models]
    best = polish(data, tried, concentrations, policy.representative_steps, policy, session)
    each = policy.explore.max_steps * pass_cells(data, best.rank, policy)
    count = int(min(policy.modes, cells / each))
    if best.rank > policy.largest_best or count < policy.fewest_starts:
        return best
    solver = Em(make_prior(data, concentrations), policy=policy)
    return fit_rank(data, best.rank, solver, [best], count, session, policy).model
