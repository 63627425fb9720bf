"""The fit behind JointClassifier: three parts, each trained along one path of scales.

Part A has one class for each label and part B several; both are trained for the labels given the
features. Part G has several and is trained for the joint of both, which answers where features are
missing. Each part has a few members, which differ in the fold that is held out and in their bins.
Along a path the prior changes step by step, each fit goes on from the last one, and held-out labels
say where to stop. Held-out labels also give the weights of the average, for rows by the share of
their values that is missing; where nothing is known the prediction is the shares of the labels. At
last all members are trained further on all records, and one member of G becomes the joint.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import cycle, pairwise
from time import perf_counter
from typing import Any, Literal

import numpy as np

from rejoint import kernels
from rejoint.arrays import Codes, FloatArray, IntArray
from rejoint.check import check_positive_int
from rejoint.estimation.data import InMemory
from rejoint.estimation.estimate import check_memory, estimate
from rejoint.estimation.folds import deal
from rejoint.estimators.classifier.classifier_policy import ClassifierPolicy
from rejoint.estimators.classifier.design import Coarsening, Design
from rejoint.estimators.classifier.label_ensemble import LabelEnsemble
from rejoint.estimators.classifier.label_likelihood import (
    LEAST_PROBABILITY,
    Form,
    LabelLikelihood,
    make_model,
    make_profiles,
    minimize,
)
from rejoint.estimators.sklearn_input import generator, is_for_records
from rejoint.kernels.backend import one_blas_thread
from rejoint.model import Layout, Model
from rejoint.pmf.pmf import LowRankPMF
from rejoint.records.records import Records
from rejoint.solver.result import FitResult
from rejoint.solver.search import interruptible
from rejoint.solver.session import Report, Session
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

#: Share of records below which a feature counts as never missing.
RARELY_MISSING = 0.01

#: Weight of the records below which none are held out, and the scale of the prior there.
FEWEST_RECORDS, FEW_SCALE = 20, 0.5


def fit_classifier(
    records: Records, targets: int, estimator: Any, policy: ClassifierPolicy, report: Report
) -> tuple[LabelEnsemble, FitResult]:
    """Fit as the settings of the estimator say; the last ``targets`` variables are labels.

    Return what predicts, and the fit of the joint. Ctrl-C ends the fit with what there is by then.
    """
    rank, solver, smooth = estimator.rank, estimator.solver, estimator.smooth
    rng = generator(estimator.random_state)
    if rank != "auto":
        rank = check_positive_int("rank", rank)
    if solver == "auto":
        if smooth != "auto" and smooth is not True:
            raise ValueError(
                f"smooth={cite(smooth)}: the effects of all ordered columns are smooth. Use "
                "solver='bayes', or kinds={...: 'nominal'} for a column whose order means nothing."
            )
        data = InMemory.of(records, threads=1)
        if rank != "auto":
            check_memory(data, rank)
        session = Session(rng, report)
        with one_blas_thread():
            fit = ClassifierFit(data.observations(), targets, rank, policy, session)
            fit.design = records.design.text if records.design else ""
            return interruptible(session, fit.run, "return")
    if not is_for_records(solver):
        raise ValueError(
            f"solver={cite(solver)} is not supported; use 'auto', 'ml', 'map', 'bayes', or an "
            "object: estimation.Em() or estimation.Bayes()."
        )
    how: dict[str, Any] = {"smooth": smooth, "random_state": rng, "progress": False}
    result = estimate(records, rank, solver, blocks=False, **how)
    return LabelEnsemble([result.pmf.mixture], targets, np.ones((2, 1)), np.arange(0)), result


@dataclass(frozen=True, eq=False)
class Member:
    """One fold: how it bins features, records to learn from, held-out ones, and all records.

    ``incomplete`` are codes of the held-out records with few, and with more and more values
    removed.
    """

    joined: Coarsening
    learn: LabelLikelihood
    held: LabelLikelihood
    incomplete: tuple[Codes, ...]
    every: LabelLikelihood


@dataclass(frozen=True, eq=False)
class Part:
    """A part of the classifier: its form, and the parameters of each member."""

    name: str
    form: Form
    parameters: tuple[FloatArray, ...]

    def rescale(self, scale: float) -> "Part":
        """The same models under another scale of the prior."""
        rescaled = tuple(self.form.rescale(each, scale) for each in self.parameters)
        return replace(self, form=replace(self.form, scale=scale), parameters=rescaled)


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
        self.targets, self.policy, self.session, self.rng = targets, policy, session, session.rng
        self.features, sizes = data.domain.variables[:-targets], data.domain.shape[-targets:]
        labels, self.begun = data.codes[:, -targets:], perf_counter()
        self.profiles, patterns = make_profiles(labels, data.weight, sizes, policy.most_profiles)
        order = np.argsort(patterns, kind="stable")
        keys = None if data.cluster_keys is None else data.cluster_keys[order]
        rows: dict[str, Any] = {"codes": data.codes[order], "weight": data.weight[order]}
        self.data, self.patterns = replace(data, **rows, cluster_keys=keys), patterns[order]
        most = max(1, policy.most_classes // len(self.profiles))
        self.rule_classes = min(2 * policy.classes, most)
        self.classes = min(policy.classes, most)
        if rank != "auto":
            self.classes = max(1, round(rank / len(self.profiles)))
        self.kinds = range(len(policy.missing_limits) + 1)
        self.weights = np.ones((len(self.kinds), 1))
        self.words = self.design = self.stage = ""
        self.history: list[Record] = []
        self.members = self.make_members()

    @property
    def is_sampled(self) -> bool:
        """Whether settings are chosen on a sample of the records."""
        return self.data.total >= 2 * self.policy.enough_records

    @cached_property
    def label_shares(self) -> FloatArray:
        """Share of each profile among records with labels."""
        likelihood = self.profiles.likelihood
        mass = np.bincount(self.patterns, self.data.weight, len(likelihood)) * self.profiles.known
        shares = mass @ (likelihood / np.maximum(likelihood.sum(axis=1, keepdims=True), 1e-300))
        return np.asarray(shares / shares.sum())

    # -- Members ------------------------------------------------------------------------------

    def make_members(self) -> list[Member]:
        """Members with shifted bins, each with another fold held out."""
        policy, data, count = self.policy, self.data, self.policy.members
        codes = data.codes[:, : len(self.features)]
        center = data.center[: sum(map(len, self.features))]
        cells = codes.size * self.classes * len(self.profiles)
        threads = kernels.available_threads() if cells >= THREADED_PASS else 1
        sample = data
        if self.is_sampled:
            folds = int(data.total // policy.enough_records)
            sample = replace(data, weight=deal_folds(data, self.patterns, folds, self.rng)[:, 0])
        removed = list(pairwise((*policy.missing_limits, 1.0)))
        members = []
        for k, held in enumerate(deal_folds(sample, self.patterns, count, self.rng).T):
            shift = (k - (count - 1) / 2) / count
            joined = Coarsening.of(self.features, center, policy.count_bins(data.total), shift)
            bins = joined.apply(codes)
            design = Design.of(self.features, joined, bins, data.weight, policy)
            every = LabelLikelihood(
                design, bins, data.weight, self.patterns, self.profiles, threads
            )
            judged = every.reweight(held)
            holes = (remove_values(judged.codes, *share, self.rng) for share in removed)
            parts = every.reweight(sample.weight - held), judged, tuple(holes), every
            members.append(Member(joined, *parts))
        return members

    # -- Parts --------------------------------------------------------------------------------

    def run(self) -> tuple[LabelEnsemble, FitResult]:
        """Train all parts, weight them, train them on all records, and fit the joint."""
        if self.data.total < FEWEST_RECORDS:
            return self.fit_few()
        plain = self.fit_plain()
        bent, rules = self.fit_bent(plain)
        joint = self.fit_joint(plain, rules)
        parts = [plain, bent, joint] if self.classes > 1 or rules else [plain, joint]
        self.weigh(parts, rules)
        self.offer(parts)
        parts = [  # the joint starts from the last one
            self.refit(part) if share.any() or part is joint else part
            for part, share in zip(parts, self.weights.T, strict=True)
        ]
        self.offer(parts)
        return self.make(parts, Stop.PROGRESS, self.fit_everything(joint))

    def fit_few(self) -> tuple[LabelEnsemble, FitResult]:
        """Without held-out records: labels and features together, one class for each label."""
        name, data = "labels and features together", [member.every for member in self.members]
        start = np.zeros((1 + data[0].design.size, len(self.profiles)))
        part = Part(name, Form(self.owners(1), joint=1.0, scale=FEW_SCALE), (start,) * len(data))
        self.begin(name)
        self.words = f"Too few records to hold any out: {name}."
        return self.make([self.train(part, self.policy.first_steps, data)], Stop.STEPS)

    def offer(self, parts: Sequence[Part]) -> None:
        """Set what an interrupted fit returns from now on."""
        self.session.offer(partial(self.make, parts, Stop.INTERRUPTED), certain=True)

    def begin(self, stage: str) -> None:
        """Begin a stage, whose steps are reported."""
        self.stage, self.history = stage[0].upper() + stage[1:], []

    def watch(self, objective: float) -> None:
        """Report a step."""
        seconds, step = perf_counter() - self.begun, len(self.history) + 1
        self.history.append(Record(0, "lbfgs", step, objective, float("nan"), seconds))
        self.session.report(f"{self.stage}, objective {objective:.8g}")

    def owners(self, classes: int) -> IntArray:
        """Profile of each class."""
        return np.repeat(np.arange(len(self.profiles)), classes)

    def train(self, part: Part, steps: int, data: Sequence[LabelLikelihood]) -> Part:
        """Take steps with each member."""
        gain = self.policy.least_gain
        trained = [
            minimize(each, part.form, parameters, steps, gain, self.watch)
            for each, parameters in zip(data, part.parameters, strict=True)
        ]
        return replace(part, parameters=tuple(trained))

    def fit_plain(self) -> Part:
        """Part A: one class for each label, from a strong prior to weak ones."""
        policy, owners, name = self.policy, self.owners(1), "one class for each label"
        start = tuple(np.zeros((1 + m.learn.design.size, len(owners))) for m in self.members)
        part = Part(name, Form(owners), start)
        return self.follow(part, policy.plain_scales, self.complete_loss, policy.steps)[0]

    def fit_bent(self, plain: Part) -> tuple[Part, bool]:
        """Part B: several classes for each label; rules where these are better by far."""
        if self.classes == 1:
            return plain, False
        policy, name = self.policy, f"{plural(self.classes, 'class', 'classes')} for each label"
        form = Form(self.owners(self.classes), common=plain.form.scale)
        part = self.deviate(name, form, plain)
        part, loss = self.follow(part, policy.class_scales, self.complete_loss, policy.first_steps)
        has_numbers = len(self.members[0].learn.design.numbers) > 0
        rules = None
        if part.form.scale >= policy.class_scales[0] or not has_numbers:
            rules = self.fit_rules(part, loss)
        return rules or part, rules is not None

    def deviate(self, name: str, form: Form, plain: Part | None = None) -> Part:
        """Classes of each label that start near its one class, or near the same for all labels."""
        starts = []
        classes = np.log(len(form.owners) / len(self.profiles))
        for k, member in enumerate(self.members):
            start = self.spread_out(form, member.learn.design, self.policy.start_spread)
            bias = np.log(np.maximum(self.label_shares, 1e-6))
            if plain:
                start[:-1, : form.first], bias = plain.parameters[k][:-1], plain.parameters[k][-1]
            start[-1, form.first :] = bias[form.owners] - classes
            starts.append(start)
        return Part(name, form, tuple(starts))

    def spread_out(self, form: Form, design: Design, spread: float) -> FloatArray:
        """Random parameters of each class; those that classes have in common are zero."""
        start = np.zeros((1 + design.size, form.first + len(form.owners)))
        last = design.size if form.linear else design.layout.size
        shape = last, len(form.owners)
        start[:last, form.first :] = spread * self.rng.standard_normal(shape)
        return start

    def fit_rules(self, bent: Part, loss: float) -> Part | None:
        """Many classes from a fresh start with almost no prior; None where they are no better.

        One member is tried first, because most sets have no rules.
        """
        gain, data = self.policy.rule_gain, [member.learn for member in self.members]
        self.begin(RULES)
        one = replace(bent, parameters=bent.parameters[:1])
        probe = self.start_rules(data[:1])
        if self.complete_loss(probe) > gain * self.complete_loss(one):
            return None
        others = self.start_rules(data[1:])
        part = replace(probe, parameters=probe.parameters + others.parameters)
        part = self.weaken_rules(part, data)
        return part if self.complete_loss(part) < gain * loss else None

    def start_rules(self, data: Sequence[LabelLikelihood]) -> Part:
        """Train classes that start at random, under the first scale."""
        policy = self.policy
        form = Form(self.owners(self.rule_classes), scale=policy.rule_scales[0])
        spread = policy.rule_spread / form.scale
        start = tuple(self.spread_out(form, each.design, spread) for each in data)
        return self.train(Part(RULES, form, start), policy.rule_steps, data)

    def weaken_rules(self, part: Part, data: Sequence[LabelLikelihood]) -> Part:
        """Train further under the other scales."""
        for scale in self.policy.rule_scales[1:]:
            part = self.train(part.rescale(scale), self.policy.rule_steps, data)
        return part

    def fit_joint(self, plain: Part, rules: bool) -> Part:
        """Part G: several classes for each label, trained for labels and features together.

        Numbers have no straight lines here: along nearly collinear columns these mislead where one
        of the columns is missing, and smooth columns come near to a line by themselves.
        """
        policy = self.policy
        emphasis = policy.label_emphasis
        if self.data.total < policy.many_records or rules:
            emphasis = 1.0
        common = min(plain.form.scale, policy.joint_common)
        form = Form(self.owners(self.classes), emphasis, 1.0, common=common, linear=False)
        part = self.deviate("labels and features together", form)
        return self.follow(part, policy.joint_scales, self.incomplete_loss, policy.first_steps)[0]

    def follow(
        self,
        part: Part,
        scales: Sequence[float],
        judge: Callable[[Part], float],
        steps: int,
        data: Sequence[LabelLikelihood] = (),
    ) -> tuple[Part, float]:
        """Go along scales until the held-out loss rises; return the best part and its loss."""
        self.begin(part.name)
        best, least = part, np.inf
        data = data or [member.learn for member in self.members]
        for scale in scales:
            part = self.train(part.rescale(scale), steps, data)
            steps, loss = self.policy.steps, judge(part)
            if loss >= least:
                break
            best, least = part, loss
            if judge == self.complete_loss:
                self.offer([best])
        return best, least

    # -- Held-out labels ----------------------------------------------------------------------

    def probabilities(self, part: Part, kind: int) -> FloatArray:
        """Probability of the held-out labels of all members."""
        shares, likelihood = [], self.profiles.likelihood[:, part.form.owners]
        for member, parameters in zip(self.members, part.parameters, strict=False):
            model = make_model(member.learn.design, part.form, parameters)
            codes = (member.held.codes, *member.incomplete)[kind]
            parts = codes, model.weights, model.factors, model.layout.levels
            _, posterior = kernels.class_posterior(*parts)
            shares.append((posterior * likelihood[member.held.patterns]).sum(axis=1))
        least = self.policy.least_probability
        return np.asarray((1 - least) * np.concatenate(shares) + least)

    def held_weight(self, members: int | None = None) -> FloatArray:
        """Weight of the held-out labels; records without a label have none."""
        return np.concatenate([m.held.weight * m.held.known for m in self.members[:members]])

    def complete_loss(self, part: Part, kind: int = COMPLETE) -> float:
        """Mean log-loss of the held-out labels, by default of rows as they are."""
        weight = self.held_weight(len(part.parameters))
        return float(-weight @ np.log(self.probabilities(part, kind)) / weight.sum())

    def incomplete_loss(self, part: Part) -> float:
        """Loss of rows with values removed."""
        return float(np.mean([self.complete_loss(part, kind) for kind in self.kinds[1:]]))

    def weigh(self, parts: Sequence[Part], rules: bool) -> None:
        """Weights of the parts for each kind of row, and the words on what was chosen."""
        weight, words, weights = self.held_weight(), [], []
        for kind in self.kinds:
            shares = np.stack([self.probabilities(part, kind) for part in parts])
            weights_of_parts = best_weights(shares, weight, self.policy)
            if rules and kind == COMPLETE:
                weights_of_parts = np.array([float(part.name == RULES) for part in parts])
            weights.append(weights_of_parts)
            losses = -np.log(shares) @ weight / weight.sum()
            terms = zip(weights_of_parts, parts, losses, strict=True)
            text = "; ".join(f"{w:.2f} {part.name} ({loss:.4g})" for w, part, loss in terms if w)
            limit = self.policy.missing_limits[kind - 1]
            words.append(
                f"With more than {limit:.0%} of the values missing: {text}." if kind else f"{text}."
            )
        self.weights = np.array(weights)
        self.words = (
            "Weights of the parts in the average, with the log-loss of each alone on held-out "
            f"labels in parentheses: {' '.join(words)}"
        )

    # -- All records --------------------------------------------------------------------------

    def refit(self, part: Part) -> Part:
        """Train members further, on all records; rules from a fresh start instead."""
        self.begin(f"{part.name} on all records")
        data = [member.every for member in self.members]
        if part.name == RULES:
            data *= self.policy.rule_starts
            return self.weaken_rules(self.start_rules(data), data)
        steps = self.policy.first_steps if self.is_sampled else self.policy.steps
        return self.train(part, steps, data)

    def fit_everything(self, joint: Part) -> Part:
        """One member of G trained further for the joint, which answers questions."""
        policy, k = self.policy, len(self.members) // 2
        member = self.members[k]

        def judge(part: Part) -> float:
            model = make_model(member.held.design, part.form, part.parameters[0])
            return -member.held.expect_known(model, part.form.owners)[0]

        form = replace(joint.form, conditional=policy.pmf_label_weight)
        part = Part("the joint of all variables", form, joint.parameters[k : k + 1])
        steps = policy.first_steps
        best, _ = self.follow(part, policy.pmf_scales, judge, steps, [member.learn])
        return self.train(best, policy.steps, [member.every])

    # -- Results ------------------------------------------------------------------------------

    def make(
        self, parts: Sequence[Part], stop: Stop, everything: Part | None = None
    ) -> tuple[LabelEnsemble, FitResult]:
        """The members with weight, and the result of the joint model."""
        members, weights = [], []
        for part, share in zip(parts, self.weights.T, strict=True):
            if not share.any():
                continue
            for member, parameters in zip(cycle(self.members), part.parameters, strict=False):
                members.append(self.to_pmf(member, part.form, parameters))
                weights.append(np.append(share / len(part.parameters), 0.0))
        members.append(self.make_shares())
        weights.append(np.append(np.zeros(len(self.weights)), 1.0))  # nothing known
        middle = len(self.members) // 2
        last = everything or parts[-1]
        parameters = last.parameters[0 if everything else middle]
        pmf = self.to_pmf(self.members[middle], last.form, parameters)
        missing = self.data.weight @ (self.data.codes[:, : len(self.features)] < 0)
        there = np.flatnonzero(missing < RARELY_MISSING * self.data.total)
        limits, shares = self.policy.missing_limits, np.array(weights).T
        ensemble = LabelEnsemble(members, self.targets, shares, there, limits)
        return ensemble, self.result(pmf, stop)

    def make_shares(self) -> LowRankPMF:
        """The shares of the labels, whatever the features are.

        One step of EM without a prior leaves the shares of each target as they are in the records.
        """
        profiles, layout = self.profiles, Layout(self.data.domain.shape[-self.targets :])
        codes = np.ascontiguousarray(profiles.patterns.astype(np.int16))
        mass = np.bincount(self.patterns, self.data.weight, len(codes)).astype(np.float64)
        start = self.label_shares, np.vstack(profiles.tables), layout.levels
        _, weights, counts = kernels.class_pass(codes, mass, *start)
        tables = layout.normalize(np.maximum(counts, LEAST_PROBABILITY))
        center = self.data.center[: sum(map(len, self.features)), None]
        stacked = np.vstack([np.repeat(center, len(profiles), axis=1), tables])
        return self.data.to_pmf(Model(self.data.layout, weights / weights.sum(), stacked))

    def to_pmf(self, member: Member, form: Form, parameters: FloatArray) -> LowRankPMF:
        """A model of one member, over all levels of the domain, classes by falling weight."""
        model = make_model(member.learn.design, form, parameters)
        labels = [table[:, form.owners] for table in self.profiles.tables]
        stacked = np.vstack([member.joined.refine(model.factors), *labels])
        weights = model.weights / model.weights.sum()
        return self.data.to_pmf(Model(self.data.layout, weights, stacked).sorted())

    def result(self, pmf: LowRankPMF, stop: Stop) -> FitResult:
        """The result of the joint model."""
        model, unknown = Model.of(pmf.weights, pmf.factors), float("nan")
        value = self.data.expect(model).log_likelihood
        run = Run(model, -value, unknown, unknown, stop, tuple(self.history))
        facts: dict[str, Any] = {"log_likelihood": value, "records": self.data.total}
        choice = f"{self.words} {self.design}".strip()
        return FitResult.of(pmf, [run], f"Log-likelihood {value:,.2f}", choice=choice, **facts)


def deal_folds(
    data: InMemory, patterns: IntArray, folds: int, rng: np.random.Generator
) -> FloatArray:
    """Weight of each record in each fold, (M, folds).

    Weights that are whole numbers count copies, which may fall into different folds; each label is
    dealt out on its own. Clusters of a survey are in one fold.
    """
    if data.cluster_keys is not None or not data.counts_copies:
        part = data.divide(folds, rng)
        return np.where(part[:, None] == np.arange(folds), data.weight[:, None], 0.0)
    dealt = np.zeros((len(patterns), folds))
    for pattern in np.unique(patterns):
        rows = np.flatnonzero(patterns == pattern)
        dealt[rows] = np.roll(deal(data.weight[rows], folds, rng), int(rng.integers(folds)), axis=1)
    return dealt


def remove_values(codes: Codes, least: float, largest: float, rng: np.random.Generator) -> Codes:
    """Codes with a random share of the values removed from each record."""
    share = least + (largest - least) * rng.random((len(codes), 1))
    return np.where(rng.random(codes.shape) < share, codes.dtype.type(-1), codes)


def best_weights(shares: FloatArray, weight: FloatArray, policy: ClassifierPolicy) -> FloatArray:
    """Weights of an average of parts that predicts labels best, by EM; small ones are zero.

    ``shares`` (parts, labels) has the probability that each part gives to each label.
    """
    weights = np.full(len(shares), 1.0 / len(shares))
    for _ in range(WEIGHT_STEPS):
        parts = weights[:, None] * shares
        before, weights = weights, parts / parts.sum(axis=0) @ weight / weight.sum()
        if np.abs(weights - before).max() < WEIGHT_CHANGE:
            break
    kept = np.where(weights >= policy.least_weight, weights, 0.0)
    return np.asarray(kept / kept.sum())
