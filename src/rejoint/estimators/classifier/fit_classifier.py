"""The fit behind JointClassifier: three parts, each trained along one path of scales.

Part A has one class for each label and part B several; both are trained for the labels given the
features. Part G has several and is trained for the joint of both, which answers where features are
missing. Each part has a few members, which differ in the fold that is held out and in their bins.
Along a path the prior changes step by step, each fit goes on from the last one, and held-out labels
say where to stop. Held-out labels also give the weights of the average, for rows by the share of
their values that is missing; where nothing is known the prediction is the shares of the labels. At
last all members are trained further on all records, and one member of G becomes the joint that
answers all other questions.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from time import perf_counter
from typing import Any, Literal

import numpy as np

from rejoint import kernels
from rejoint.arrays import Codes, FloatArray, IntArray
from rejoint.check import check_positive_int
from rejoint.estimation.data import InMemory
from rejoint.estimation.estimate import check_memory, estimate
from rejoint.estimation.folds import deal, make_folds
from rejoint.estimation.smoothing import Smooth
from rejoint.estimators.classifier.classifier_policy import ClassifierPolicy
from rejoint.estimators.classifier.design import Coarsening, Design
from rejoint.estimators.classifier.label_likelihood import (
    LEAST_PROBABILITY,
    Form,
    LabelLikelihood,
    label_probabilities,
    make_model,
    make_profiles,
    minimize,
)
from rejoint.estimators.sklearn_input import is_for_records
from rejoint.messages import Argument, Countdown, Message
from rejoint.model import Layout, Model
from rejoint.pmf.label_ensemble import LowRankMember
from rejoint.pmf.pmf import LowRankPMF
from rejoint.records.records import Records
from rejoint.solver.result import FitResult
from rejoint.solver.search import interruptible
from rejoint.solver.session import Report, Session, one_blas_thread
from rejoint.solver.solver import Record, Run, Stop
from rejoint.text import cite, plural

#: The kind of rows that miss nothing; others are numbered by ``ClassifierPolicy.missing_limits``.
COMPLETE = 0

#: Name of the part that has learned rules.
RULES = "rules"

#: Cells times classes above which a pass uses all threads.
THREADED_PASS = 10_000_000

#: EM steps towards the best weights of an average, and the change below which they end.
WEIGHT_STEPS, WEIGHT_CHANGE = 2000, 1e-5

#: Scale of each part where too few records are there to choose one.
DEFAULT_SCALE = 0.5


@dataclass(frozen=True)
class Fitted:
    """Models for the labels, and one for everything.

    Parameters
    ----------
    members : tuple of LowRankMember
        Whose conditional probabilities are averaged.
    weights : array (kinds, members)
        Weight of each of them, for rows as they were at the fit, for rows that miss more and more
        other values, and for rows that miss everything.
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
    smooth: Smooth,
    policy: ClassifierPolicy,
    rng: np.random.Generator,
    report: Report,
) -> Fitted:
    """Fit as the solver says; the last ``targets`` variables are labels.

    Ctrl-C ends the fit with what there is by then.
    """
    if rank != "auto":
        rank = check_positive_int("rank", rank)
    session = Session(rng, report)
    if solver == "auto":
        if smooth != "auto" and smooth is not True:
            ordered = next((v.name for v in records.domain if v.kind != "nominal"), "x")
            raise ValueError(
                Message(
                    "{smooth}: the effects of all ordered columns are smooth. Use {solver}, or "
                    "{kinds} for a column whose order means nothing.",
                    smooth=Argument("smooth", smooth),
                    solver=Argument("solver", "bayes"),
                    kinds=Argument("kinds", {ordered: "nominal"}),
                )
            )
        data = InMemory.of(records, threads=1)
        if rank != "auto":
            check_memory(data, rank)
        with one_blas_thread():
            fit = ClassifierFit(data, targets, rank, policy, session)
            fit.design = records.design.text if records.design else ""
            return interruptible(session, fit.run, "return")
    if is_for_records(solver):
        how: dict[str, Any] = {"smooth": smooth, "random_state": rng, "progress": False}
        result = estimate(records, rank, solver, blocks=False, **how)
        weights = np.ones((len(policy.missing_limits) + 2, 1))
        return Fitted((LowRankMember(result.pmf.mixture, targets),), weights, result)
    raise ValueError(
        f"solver={cite(solver)} is not supported; use 'auto', 'ml', 'map', 'bayes', or an object: "
        "estimation.Em() or estimation.Bayes()."
    )


@dataclass(frozen=True, eq=False)
class Member:
    """One fold: how it bins features, records to learn from, held-out ones, and all records.

    ``held`` are codes of held-out records with no, few, and more and more values removed.
    """

    joined: Coarsening
    learn: LabelLikelihood
    held: tuple[Codes, ...]
    patterns: IntArray
    weight: FloatArray
    every: Callable[[], LabelLikelihood]


@dataclass(frozen=True, eq=False)
class Part:
    """A part of the classifier: its form, and the parameters of each member."""

    name: str
    form: Form
    parameters: tuple[FloatArray, ...]

    def rescale(self, scale: float) -> "Part":
        """The same models under another scale of the prior."""
        found = [self.form.rescale(each, scale) for each in self.parameters]
        return replace(self, form=found[0][0], parameters=tuple(each for _, each in found))


class Clock:
    """Progress of a fit: the share of the planned work that is done, and the steps of a stage.

    Examples
    --------
    >>> clock = Clock(print)
    >>> clock.begin("rules", 0.5)
    >>> clock.work(0.1, 3.25)
    Rules, objective 3.25
    """

    def __init__(self, report: Report) -> None:
        self.report = report
        self.countdown = Countdown(1.0)
        self.done = self.end = 0.0
        self.words = ""
        self.records: list[Record] = []

    def begin(self, words: str, end: float) -> None:
        """Begin a stage, which ends where the share ``end`` of all work is done."""
        self.done = self.end
        self.words, self.end = words[0].upper() + words[1:], end
        self.records = []

    def work(self, share: float, objective: float) -> None:
        """Note some work, and report it."""
        self.done = min(self.done + share, self.end)
        seconds = perf_counter() - self.countdown.begun
        step = len(self.records) + 1
        self.records.append(Record(0, "lbfgs", step, objective, float("nan"), seconds))
        self.report(f"{self.words}, objective {objective:.8g}{self.countdown.tell(self.done)}")


class ClassifierFit:
    """One fit: its data, its members, and the parts in the order in which they are trained.

    Parameters
    ----------
    data : InMemory
        Features, then labels.
    targets : int
        Number of labels of a record.
    rank : int or "auto"
        Hidden classes of all labels together.
    policy : ClassifierPolicy
        Tuned numbers.
    session : Session
        Randomness and progress.
    """

    def __init__(
        self,
        data: InMemory,
        targets: int,
        rank: int | Literal["auto"],
        policy: ClassifierPolicy,
        session: Session,
    ) -> None:
        self.data, self.targets, self.policy, self.session = data, targets, policy, session
        self.rng = session.rng
        self.features = data.domain.variables[:-targets]
        sample = take_sample(data, policy.enough_records, self.rng)
        self.is_sample = sample is not data
        self.sample = sample.observations()
        sizes = data.domain.shape[-targets:]
        every = data.observations()
        self.profiles, self.patterns = make_profiles(
            every.codes[:, -targets:], every.weight, sizes, policy.most_profiles
        )
        self.every = every
        count = len(self.profiles)
        self.classes = max(1, min(policy.classes, policy.most_classes // count))
        self.joint_classes = self.classes
        if self.has_many:
            most = policy.most_classes // count
            self.joint_classes = max(self.classes, min(policy.joint_classes, most))
        if rank != "auto":
            self.classes = self.joint_classes = max(1, round(rank / count))
        self.rule_classes = max(1, min(policy.rule_classes, policy.most_rule_classes // count))
        self.clock = Clock(session.report)
        self.parts: list[Part] = []
        self.weights = np.ones((len(policy.missing_limits) + 1, 1))
        self.words = self.design = ""
        self.members = list(self.make_members())

    @property
    def has_many(self) -> bool:
        """Whether records are many enough for a larger joint part."""
        return self.data.total >= self.policy.many_records

    # -- Members ------------------------------------------------------------------------------

    def make_members(self) -> Iterator[Member]:
        """Members with shifted bins, each with another fold held out."""
        policy, data = self.policy, self.sample
        codes, labels = np.split(data.codes, [len(self.features)], axis=1)
        center = self.data.center[: sum(map(len, self.features))]
        bins = policy.count_bins(self.data.total)
        patterns = self.patterns if data is self.every else self.find_patterns(labels)
        count = policy.members if data.total >= policy.fewest_records else 1
        shares = deal_folds(data, patterns, count, self.rng)
        removed = [(0.0, 0.0), *pairwise((*policy.missing_limits, 1.0))]
        for k in range(count):
            joined = Coarsening.of(self.features, center, bins, (k - (count - 1) / 2) / count)
            mine = joined.apply(codes)
            held = shares[:, k] if count > 1 else np.zeros(len(mine))
            left = data.weight - held
            design = Design.of(self.features, joined, mine, data.weight, policy)
            there, gone = np.flatnonzero(left > 0), np.flatnonzero(held > 0)
            parts = mine[there], left[there], patterns[there]
            yield Member(
                joined,
                LabelLikelihood.of(design, *parts, self.profiles, self.threads(len(there))),
                tuple(remove_values(mine[gone], *pair, self.rng) for pair in removed),
                patterns[gone],
                held[gone],
                partial(self.make_whole, joined, design),
            )

    def make_whole(self, joined: Coarsening, design: Design) -> LabelLikelihood:
        """All records as a member sees them."""
        data = self.every
        codes = joined.apply(data.codes[:, : len(self.features)])
        threads = self.threads(len(codes))
        return LabelLikelihood.of(design, codes, data.weight, self.patterns, self.profiles, threads)

    def find_patterns(self, labels: Codes) -> IntArray:
        """The pattern of each record of a sample."""
        known = {tuple(row): k for k, row in enumerate(self.profiles.patterns.tolist())}
        rows, which = np.unique(labels, axis=0, return_inverse=True)
        return np.array([known[tuple(row)] for row in rows.tolist()])[which.ravel()]

    def threads(self, rows: int) -> int:
        """Threads of a pass."""
        cells = rows * len(self.features) * self.joint_classes * len(self.profiles)
        return kernels.available_threads() if cells >= THREADED_PASS else 1

    # -- Parts --------------------------------------------------------------------------------

    def run(self) -> Fitted:
        """Train all parts, weight them, train them on all records, and fit the joint."""
        if len(self.members) == 1:
            return self.fit_few()
        plain = self.fit_plain()
        bent, rules = self.fit_bent(plain)
        joint = self.fit_joint(plain, rules)
        self.parts = [plain, bent, joint] if self.classes > 1 or rules else [plain, joint]
        self.weigh(rules)
        self.offer(self.parts)
        fitted: list[Part] = []
        weights: list[FloatArray] = []
        for k, part in enumerate(self.parts):
            self.clock.begin(f"{part.name} on all records", 0.6 + 0.1 * k)
            found = self.refit(part) if self.uses(k) else [part]
            fitted += found
            weights += [self.weights[:, k] / len(found)] * len(found)
        self.parts, self.weights = fitted, np.stack(weights, axis=1)
        self.offer(self.parts)
        return self.make(self.parts, Stop.PROGRESS, self.fit_everything(joint))

    def uses(self, k: int) -> bool:
        """Whether a part has any weight; the last one also gives the joint."""
        return bool(self.weights[:, k].any()) or k == len(self.parts) - 1

    def offer(self, parts: Sequence[Part]) -> None:
        """Set what an interrupted fit returns from now on."""
        self.session.offer(partial(self.make, parts, Stop.INTERRUPTED), certain=True)

    def owners(self, classes: int) -> IntArray:
        """Profile of each class."""
        return np.repeat(np.arange(len(self.profiles)), classes)

    def train(self, part: Part, steps: int, data: Sequence[LabelLikelihood] | None = None) -> Part:
        """Take steps with each member."""
        data = data or [member.learn for member in self.members]
        watch = partial(self.clock.work, 0.2 / (5 * self.policy.steps * len(data)))
        found = [
            minimize(each, part.form, parameters, steps, self.policy, watch).parameters
            for each, parameters in zip(data, part.parameters, strict=True)
        ]
        return replace(part, parameters=tuple(found))

    def fit_plain(self) -> Part:
        """Part A: one class for each label, from a strong prior to weak ones."""
        self.clock.begin("one class for each label", 0.15)
        policy, owners = self.policy, self.owners(1)
        start = tuple(np.zeros((1 + m.learn.design.size, len(owners))) for m in self.members)
        part = Part("one class for each label", Form(owners, scale=policy.plain_scales[0]), start)
        return self.follow(part, policy.plain_scales, self.complete_loss, policy.steps)[0]

    def fit_bent(self, plain: Part) -> tuple[Part, bool]:
        """Part B: several classes for each label; rules where these are better by far."""
        if self.classes == 1:
            return plain, False
        policy, name = self.policy, f"{plural(self.classes, 'class', 'classes')} for each label"
        self.clock.begin(name, 0.35)
        part = self.deviate(plain, name, Form(self.owners(self.classes), common=plain.form.scale))
        part, loss = self.follow(part, policy.class_scales, self.complete_loss)
        has_numbers = len(self.members[0].learn.design.numbers) > 0
        if part.form.scale >= policy.rule_trigger or not has_numbers:
            found = self.fit_rules(part, loss)
            if found is not None:
                return found, True
        return part, False

    def deviate(self, plain: Part, name: str, form: Form) -> Part:
        """Classes of each label that start near its one class."""
        found = []
        for member, parameters in zip(self.members, plain.parameters, strict=True):
            _, logs = make_model(member.learn.design, plain.form, parameters)
            bias = logs[0] if form.joint else parameters[-1]
            start = self.spread_out(form, member.learn.design, self.policy.start_spread)
            start[:-1, : form.first] = parameters[:-1]
            start[-1, form.first :] = bias[form.owners] - np.log(len(form.owners) / len(bias))
            found.append(start)
        return Part(name, form, tuple(found))

    def spread_out(self, form: Form, design: Design, spread: float) -> FloatArray:
        """Random parameters of each class; those that classes have in common are zero."""
        found = np.zeros((1 + design.size, form.first + len(form.owners)))
        last = design.size if form.linear else design.layout.size
        shape = last, len(form.owners)
        found[:last, form.first :] = spread * self.rng.standard_normal(shape)
        return found

    def fit_rules(self, bent: Part, loss: float) -> Part | None:
        """Many classes from a fresh start with almost no prior; None where they are no better."""
        policy, first = self.policy, self.members[0]
        self.clock.begin(RULES, 0.4)
        probe = self.start_rules(self.members[:1])
        probe = self.train(probe, policy.rule_steps, [first.learn])
        mine = replace(bent, parameters=bent.parameters[:1])
        if self.loss(probe, COMPLETE) > policy.rule_gain * self.loss(mine, COMPLETE):
            return None
        part = self.start_rules(self.members[1:])
        part = self.train(part, policy.rule_steps, [m.learn for m in self.members[1:]])
        part = replace(part, parameters=probe.parameters + part.parameters)
        for scale in policy.rule_scales[1:]:
            if self.loss(part, COMPLETE) > policy.rule_gain * loss:
                return None
            part = self.train(part.rescale(scale), policy.rule_steps)
        return part if self.loss(part, COMPLETE) < policy.rule_gain * loss else None

    def start_rules(self, members: Sequence[Member]) -> Part:
        """Classes at random."""
        policy = self.policy
        form = Form(self.owners(self.rule_classes), scale=policy.rule_scales[0])
        spread = policy.rule_spread / form.scale
        start = tuple(self.spread_out(form, m.learn.design, spread) for m in members)
        return Part(RULES, form, start)

    def fit_joint(self, plain: Part, rules: bool) -> Part:
        """Part G: several classes for each label, trained for labels and features together.

        Numbers have no straight lines here: along nearly collinear columns these mislead where one
        of the columns is missing, and smooth columns come near to a line by themselves.
        """
        policy, name = self.policy, "labels and features together"
        self.clock.begin(name, 0.6)
        common = min(plain.form.scale, policy.joint_common)
        owners = self.owners(self.joint_classes)
        emphasis = policy.label_emphasis if self.has_many and not rules else 1.0
        form = Form(owners, emphasis, 1.0, common=common, linear=False)
        start = replace(plain, parameters=tuple(map(self.forget, plain.parameters)))
        part = self.deviate(start, name, form)
        return self.follow(part, policy.joint_scales, self.incomplete_loss)[0]

    def forget(self, parameters: FloatArray) -> FloatArray:
        """Parameters that know the shares of the labels alone."""
        found = np.zeros_like(parameters)
        found[-1] = np.log(np.maximum(self.label_shares, 1e-6))
        return found

    @property
    def label_shares(self) -> FloatArray:
        """Share of each profile among records with labels."""
        likelihood = self.profiles.likelihood
        mass = np.bincount(self.patterns, self.every.weight, len(likelihood))
        known = self.profiles.known
        shares = likelihood / np.maximum(likelihood.sum(axis=1, keepdims=True), 1e-300)
        found = (mass * known) @ shares
        return np.asarray(found / found.sum())

    def follow(
        self,
        part: Part,
        scales: Sequence[float],
        judge: Callable[[Part], float],
        first_steps: int | None = None,
        steps: int | None = None,
        data: Sequence[LabelLikelihood] | None = None,
    ) -> tuple[Part, float]:
        """Go along scales until the held-out loss rises; return the best part and its loss."""
        best, least = part, np.inf
        todo = first_steps or self.policy.first_steps
        for scale in scales:
            part = self.train(part.rescale(scale), todo, data)
            todo, loss = steps or self.policy.steps, judge(part)
            if loss >= least:
                break
            best, least = part, loss
            if judge == self.complete_loss:
                self.offer([best])
        return best, least

    # -- Held-out labels ----------------------------------------------------------------------

    def probabilities(self, part: Part, missing: int) -> FloatArray:
        """Probability of the held-out labels of all members."""
        found = []
        for member, parameters in zip(self.members, part.parameters, strict=False):
            model, _ = make_model(member.learn.design, part.form, parameters)
            codes = member.held[missing], member.patterns
            found.append(label_probabilities(model, part.form.owners, *codes, self.profiles))
        least = self.policy.least_probability
        return np.asarray((1 - least) * np.concatenate(found) + least)

    def held_weight(self, members: int | None = None) -> FloatArray:
        """Weight of the held-out labels; records without a label have none."""
        known = self.profiles.known
        return np.concatenate([m.weight * known[m.patterns] for m in self.members[:members]])

    def loss(self, part: Part, missing: int) -> float:
        """Mean log-loss of the held-out labels."""
        weight = self.held_weight(len(part.parameters))
        return float(-weight @ np.log(self.probabilities(part, missing)) / weight.sum())

    def complete_loss(self, part: Part) -> float:
        """Loss of rows as they are."""
        return self.loss(part, COMPLETE)

    def incomplete_loss(self, part: Part) -> float:
        """Loss of rows with values removed."""
        return float(np.mean([self.loss(part, kind) for kind in range(1, len(self.weights))]))

    def weigh(self, rules: bool) -> None:
        """Weights of the parts for each kind of row, and the words on what was chosen."""
        weight = self.held_weight()
        found = [
            [self.probabilities(part, kind) for part in self.parts]
            for kind in range(len(self.weights))
        ]
        self.weights = np.array([best_weights(np.stack(f), weight, self.policy) for f in found])
        if rules:
            self.weights[COMPLETE] = [part.name == RULES for part in self.parts]
        self.words = self.describe(found, weight)

    def describe(self, found: Sequence[Sequence[FloatArray]], weight: FloatArray) -> str:
        """What was chosen, and why."""
        kinds = []
        for shares, probabilities in zip(self.weights, found, strict=True):
            losses = [-weight @ np.log(each) / weight.sum() for each in probabilities]
            kinds.append(
                "; ".join(
                    f"{share:.2f} {part.name} ({loss:.4g})"
                    for share, part, loss in zip(shares, self.parts, losses, strict=True)
                    if share
                )
            )
        more = [
            f"With {f'more than {limit:.0%} of the' if limit else 'some'} values missing: {text}."
            for limit, text in zip(self.policy.missing_limits, kinds[1:], strict=True)
        ]
        scales = ", ".join(f"{part.name} {part.form.scale:g}" for part in self.parts)
        return (
            f"Weights by the log-loss of held-out labels, {plural(len(self.members), 'member')} of "
            f"each part: {kinds[0]}. {' '.join(more)} "
            f"In parentheses: the log-loss of each part alone. Scales of the prior: {scales}."
        )

    # -- All records --------------------------------------------------------------------------

    def refit(self, part: Part) -> list[Part]:
        """Train members further, on all records; rules from several fresh starts instead."""
        policy = self.policy
        data = [member.every() for member in self.members]
        if part.name != RULES:
            steps = policy.sample_refit_steps if self.is_sample else policy.refit_steps
            return [self.train(part, steps, data)]
        found = []
        for _ in range(policy.rule_starts):
            fresh = self.start_rules(self.members)
            for scale in policy.rule_scales:
                fresh = self.train(fresh.rescale(scale), policy.rule_steps, data)
            found.append(fresh)
        return found

    def fit_everything(self, joint: Part) -> Part:
        """One member of G trained further for the joint; it answers all but the labels."""
        policy, k = self.policy, len(self.members) // 2
        member = self.members[k]
        self.clock.begin("the joint of all variables", 1.0)
        held = LabelLikelihood.of(
            member.learn.design,
            member.held[COMPLETE],
            member.weight,
            member.patterns,
            self.profiles,
        )

        def judge(part: Part) -> float:
            return -held.expect_known(
                *make_model(held.design, part.form, part.parameters[0]), part.form.owners
            )[0]

        form = replace(joint.form, conditional=policy.pmf_label_weight)
        part = Part("the joint", form, joint.parameters[k : k + 1])
        steps = policy.pmf_steps
        best, _ = self.follow(part, policy.pmf_scales, judge, steps, steps, [member.learn])
        return self.train(best, policy.refit_steps, [member.every()])

    def fit_few(self) -> Fitted:
        """Without held-out records: the joint part alone, at a fixed scale."""
        start = Part(
            "",
            Form(self.owners(1), scale=DEFAULT_SCALE),
            (self.forget(np.zeros((1 + self.members[0].learn.design.size, len(self.profiles)))),),
        )
        form = Form(self.owners(self.classes), 1.0, 1.0, DEFAULT_SCALE, DEFAULT_SCALE)
        self.clock.begin("labels and features together", 1.0)
        part = self.deviate(start, "labels and features together", form)
        part = self.train(part, self.policy.first_steps)
        self.parts = [part]
        self.words = "Too few records to hold any out: labels and features together."
        return self.make([part], Stop.STEPS)

    # -- Results ------------------------------------------------------------------------------

    def make(self, parts: Sequence[Part], stop: Stop, everything: Part | None = None) -> Fitted:
        """The members with weight, and the result of the joint model."""
        members, weights = [], []
        for part, share in zip(parts, self.weights.T, strict=True):
            if not share.any():
                continue
            for member, parameters in zip(self.members, part.parameters, strict=True):
                pmf = self.to_pmf(member, part.form, parameters)
                members.append(LowRankMember(pmf, self.targets))
                weights.append(np.append(share / len(self.members), 0.0))
        members.append(LowRankMember(self.make_shares(), self.targets))
        weights.append(np.arange(1 + len(self.weights)) == len(self.weights))  # nothing known
        middle = len(self.members) // 2
        if everything is None:
            last = parts[-1]
            everything = replace(last, parameters=last.parameters[middle : middle + 1])
        pmf = self.to_pmf(self.members[middle], everything.form, everything.parameters[0])
        return Fitted(tuple(members), np.array(weights).T, self.result(pmf, stop))

    def make_shares(self) -> LowRankPMF:
        """The shares of the labels, whatever the features are.

        One step of EM without a prior leaves the shares of each target as they are in the records.
        """
        profiles, sizes = self.profiles, self.data.domain.shape[-self.targets :]
        codes = np.ascontiguousarray(profiles.patterns.astype(np.int16))
        mass = np.bincount(self.patterns, self.every.weight, len(codes)).astype(np.float64)
        start = self.label_shares, np.vstack(profiles.tables), sizes
        _, weights, counts = kernels.class_pass(codes, mass, *start)
        tables = Layout(sizes).normalize(np.maximum(counts, LEAST_PROBABILITY))
        center = self.data.center[: sum(map(len, self.features)), None]
        stacked = np.vstack([np.repeat(center, len(profiles), axis=1), tables])
        return self.data.to_pmf(Model(self.data.layout, weights / weights.sum(), stacked))

    def to_pmf(self, member: Member, form: Form, parameters: FloatArray) -> LowRankPMF:
        """A model of one member, over all levels of the domain, classes by falling weight."""
        model, _ = make_model(member.learn.design, form, parameters)
        factors = member.joined.refine(model.factors)
        labels = [table[:, form.owners] for table in self.profiles.tables]
        stacked = np.vstack([factors, *labels])
        full = Model(self.data.layout, model.weights / model.weights.sum(), stacked).sorted()
        return self.data.to_pmf(full)

    def result(self, pmf: LowRankPMF, stop: Stop) -> FitResult:
        """The result of the joint model."""
        model = Model.of(pmf.weights, pmf.factors)
        value = self.data.expect(model).log_likelihood
        records = tuple(self.clock.records)
        run = Run(model, -value, float("nan"), float("nan"), stop, records)
        return FitResult.of(
            pmf,
            [run],
            f"Log-likelihood {value:,.2f}",
            log_likelihood=value,
            choice=f"{self.words} {self.design}".strip(),
            records=self.data.total,
        )


def take_sample(data: InMemory, enough: int, rng: np.random.Generator) -> InMemory:
    """A sample of the records, where they are more than enough to choose settings by."""
    if data.total < 2 * enough:
        return data
    return next(iter(make_folds(data, int(data.total // enough), rng))).judge.records


def deal_folds(
    data: InMemory, patterns: IntArray, folds: int, rng: np.random.Generator
) -> FloatArray:
    """Weight of each record in each fold, (M, folds): each label is dealt out on its own.

    Weights that are whole numbers count copies, which may fall into different folds. Clusters of a
    survey are in one fold.
    """
    if data.cluster_keys is not None:
        part = data.divide(folds, rng)
        return np.where(part[:, None] == np.arange(folds), data.weight[:, None], 0.0)
    found = np.zeros((len(patterns), folds))
    for pattern in np.unique(patterns):
        rows = np.flatnonzero(patterns == pattern)
        if data.counts_copies:
            dealt = deal(data.weight[rows], folds, rng)
        else:
            mine = rng.permutation(len(rows)) % folds
            dealt = np.where(mine[:, None] == np.arange(folds), data.weight[rows, None], 0.0)
        found[rows] = np.roll(dealt, int(rng.integers(folds)), axis=1)
    return found


def remove_values(codes: Codes, least: float, largest: float, rng: np.random.Generator) -> Codes:
    """Codes with a random share of the values removed from each record."""
    if not largest:
        return codes
    share = least + (largest - least) * rng.random((len(codes), 1))
    return np.where(rng.random(codes.shape) < share, codes.dtype.type(-1), codes)


def best_weights(found: FloatArray, weight: FloatArray, policy: ClassifierPolicy) -> FloatArray:
    """Weights of an average of parts that predicts labels best, by EM; small ones are zero.

    ``found`` (parts, labels) has the probability that each part gives to each label.

    Examples
    --------
    >>> found = np.array([[0.9, 0.9, 0.1], [0.2, 0.2, 0.8]])
    >>> best_weights(found, np.ones(3), ClassifierPolicy()).round(2)
    array([0.67, 0.33])
    """
    shares = np.full(len(found), 1.0 / len(found))
    for _ in range(WEIGHT_STEPS):
        parts = shares[:, None] * found
        before, shares = shares, parts / parts.sum(axis=0) @ weight / weight.sum()
        if np.abs(shares - before).max() < WEIGHT_CHANGE:
            break
    kept = np.where(shares >= policy.least_weight, shares, 0.0)
    return np.asarray(kept / kept.sum())
