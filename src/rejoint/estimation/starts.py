"""Where estimation starts, and whether the starts that were followed to the end agree.

Models to start from are random, grown, or made from votes or given labels. Grown classes find rare
combinations, which random ones take for noise; on models without such classes random ones are as
good or better. All are cheap: a start is worth no more than the passes that follow it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from rejoint.arrays import FloatArray
from rejoint.domain.columns import Coded, read_column
from rejoint.domain.domain import Domain
from rejoint.domain.labels import Level
from rejoint.estimation.data import Data, InMemory
from rejoint.estimation.em import Em
from rejoint.estimation.gibbs import child
from rejoint.estimation.policy import DEFAULT, Policy
from rejoint.kernels import available_threads, has_value
from rejoint.messages import Argument, Message, PythonOnly, join_messages, remark
from rejoint.model import Model
from rejoint.records.records import BaseRecords
from rejoint.solver.run import run
from rejoint.solver.search import Follow, best_run, promising, search
from rejoint.solver.session import Session
from rejoint.solver.solver import Run, Stop, with_limits
from rejoint.text import cite, plural

#: Share of a vote that a record has for each label beside its own votes.
VOTE_SHARE = 0.1

#: Nats: optima that differ by less are the same one, and are nearly as good.
SAME_NATS, NEAR_NATS = 0.1, 2.0

#: Makes a model to start from.
Start = Callable[[InMemory], Model]


def make_starts(
    data: InMemory,
    rank: int,
    count: int,
    em: Em,
    rng: np.random.Generator,
    known: Sequence[Model] = (),
) -> list[Start]:
    """Known models, one from votes where variables share their labels, then grown and random ones.

    Each has its own generator of random numbers, so that their order does not matter. The first
    ones are the same however many there are.
    """
    if rank == 1:
        return [independence]
    starts: list[Start] = [partial(given_model, model=model) for model in known]
    if len(shared_labels(data.domain, rank)) > 1:
        starts.append(partial(model_from_votes, rank=rank, rng=child(rng)))
    kinds: list[Callable[..., Model]] = [partial(grown_model, em=em), random_model]
    for k in range(count - len(starts)):
        starts.append(partial(kinds[k % len(kinds)], rank=rank, rng=child(rng)))
    return starts[:count]


def count_starts(
    data: InMemory, rank: int, asked: int | None, policy: Policy, least: int = 0
) -> int:
    """How many starts were asked for, or a budget allows for, by the values in distinct records.

    It does not depend on how the records are stored, so that neither does the fit.
    """
    if asked:
        return asked
    values = data.level_totals.sum() * len(data.records.weight) / data.total
    fewest, most = policy.start_range
    return int(np.clip(policy.start_budget // max(values * rank, 1), max(least, fewest), most))


def given_model(data: InMemory, model: Model) -> Model:
    """The model, whatever the data."""
    return model


def independence(data: Data) -> Model:
    """The only model of one class."""
    return Model(data.layout, np.ones(1), data.center[:, None])


def random_model(data: InMemory, rank: int, rng: np.random.Generator) -> Model:
    """Even weights, and columns drawn around each variable's own distribution."""
    return Model.draw(data.layout.split(data.center), rank, rng)


def shared_labels(domain: Domain, rank: int) -> tuple[Level, ...]:
    """The labels that all variables have or are among, where there are no more than classes."""
    most = max((variable.levels for variable in domain), key=len)
    labels = set(most)
    shared = len(most) <= rank and all(labels.issuperset(variable.levels) for variable in domain)
    return tuple(most) if shared else ()


def model_from_votes(data: InMemory, rank: int, rng: np.random.Generator) -> Model:
    """A class for each label that the variables share, which holds the records that vote for it.

    The share of a record in a class is its share of votes for the label, and a little more. Where
    the variables are raters and the class is what they rate, this is near the best optimum.
    """
    labels, domain, layout = shared_labels(data.domain, rank), data.domain, data.layout
    names = [level for variable in domain for level in variable.levels]
    votes = np.empty((len(data.records.weight), len(labels)))
    for k, label in enumerate(labels):
        # The log-probability counts cells where a level has the probability 1 / e, others 1.
        given = np.exp(-np.array([[float(name == label)] for name in names]))
        votes[:, k] = -data.records.log_prob(Model(layout, np.ones(1), given))
    shares = votes / votes.sum(axis=1, keepdims=True) + VOTE_SHARE
    model = model_of_shares(data, data.records, shares / shares.sum(axis=1, keepdims=True))
    return model.extend(rank, data.layout.split(data.center), rng)


def model_of_labels(source: BaseRecords, labels: Any, rank: int | str) -> Model:
    """Make a class for each given label, which holds the records of that label."""
    found = read_column(labels, "start_labels")
    if len(found) != len(source):
        raise ValueError(
            f"start_labels must be one label for each of the {plural(len(source), 'record')} "
            f"(None where it is not known), not {len(found):,}."
        )
    if isinstance(found, Coded):
        values, unknown = found.codes, found.codes < 0
    else:
        values, unknown = found.values, np.isin(found.values, -1)
        unknown |= False if found.missing is None else found.missing
    weight = source.sample_weight
    mass = np.ones(len(source)) if weight is None else np.asarray(weight)
    known = np.flatnonzero(~unknown & has_value(source.codes) & (mass > 0))
    kinds, first, classes = np.unique(values[known], return_index=True, return_inverse=True)
    if len(kinds) < 2:
        raise ValueError(
            "start_labels must have two labels or more on records that have values; None, NaN "
            f"and -1 mean that a label is not known. Got {plural(len(kinds), 'label')}."
        )
    if isinstance(rank, str) or rank < len(kinds):
        raise ValueError(
            f"start_labels has {plural(len(kinds), 'label')}, each the start of a class: give "
            f"rank={len(kinds)} or more, not rank={cite(rank)}."
        )
    order = first.argsort().argsort()  # that of the records
    data = InMemory(source.domain, source.codes, mass, available_threads())
    shares = np.eye(len(kinds))[order[classes.ravel()]]
    return model_of_shares(data, data.take(known, mass[known]), shares)


def model_of_shares(data: InMemory, records: InMemory, shares: FloatArray) -> Model:
    """The model of records that are divided among classes, (M, F), one more like all in each."""
    layout, parts = data.layout, (records.weight[:, None] * shares).T
    counts = np.stack([records.reweight(part).level_totals for part in parts], axis=1)
    factors = layout.normalize(counts + data.center[:, None])
    weights = parts.sum(axis=1) + 1.0
    return Model(layout, weights / weights.sum(), factors)


def grown_model(data: InMemory, rank: int, em: Em, rng: np.random.Generator) -> Model:
    """Grow a model by doubling its classes, with some steps at each size."""
    model = independence(data)
    while model.rank < rank:
        model = widen(data, model, min(2 * model.rank, rank), rng, em.policy)
        if model.rank < rank:
            state = em.init(data, model)
            for _ in range(em.policy.growth_steps):
                state = em.step(data, state)
            model = state.model
    return model


def widen(
    data: InMemory, model: Model, rank: int, rng: np.random.Generator, policy: Policy = DEFAULT
) -> Model:
    """Add classes around records that the model has too few of.

    A record's share of the deviance, ``count * log(count / expected)``, is its probability to be
    the seed of a class: its levels, blended with the variables' own distributions. Split or random
    classes start near a saddle point, from where EM finds rare combinations late or never.
    """
    weight, more = data.records.weight, rank - model.rank
    expected = data.log_prob(model)
    lack = weight * np.maximum(np.log(weight / data.total) - expected, 0.0)
    chance = lack / lack.sum() if lack.sum() > 0 else None
    seeds = rng.choice(len(lack), size=more, p=chance)
    # The levels of these records, blended with the variables' own distributions.
    layout, codes = data.layout, data.records.table(seeds)
    columns = np.tile(data.center[:, None], more) * (
        1.0 - policy.seed_share * layout.expand((codes >= 0).T)
    )
    which, n = np.nonzero(codes >= 0)
    columns[layout.offsets[n] + codes[which, n], which] += policy.seed_share
    weights = np.concatenate([model.weights * (rank - more), np.ones(more)]) / rank
    return Model(data.layout, weights, np.hstack([model.factors, columns]))


def follow_start(
    data: InMemory, start: Start, number: int, session: Session, key: str, *, solver: Any
) -> Run:
    """Make a start and run a solver from there."""
    return run(solver, data, start(data), session, start=number, key=key)


def explore_starts(
    data: InMemory,
    rank: int,
    solver: Any,
    count: int,
    session: Session,
    policy: Policy = DEFAULT,
    *,
    known: Sequence[Model] = (),
    given: Sequence[Model] = (),
    offer: Callable[[list[Run]], Any] | None = None,
) -> list[Run]:
    """Follow all starts on records in memory for a while, and the best ones to the end.

    Starts that others left behind say so. The starts of a smaller number, and those of them
    that are followed to the end, are among the ones of a larger number. ``known`` models are
    some of the starts, ``given`` ones are all of them. ``offer`` makes a result of the runs so
    far, for an interrupted fit.
    """
    starts: list[Start] = [partial(given_model, model=model) for model in given]
    if not starts:
        em = solver if isinstance(solver, Em) else Em(policy=policy)
        starts = make_starts(data, rank, count, em, session.rng, known)
    brief = with_limits(solver, policy.explore)
    runs = follow_starts(data, rank, starts, brief, range(len(starts)), session, policy, offer)
    good = promising(runs, range(len(runs)), most=1)
    runs = [each if k in good else replace(each, stop=Stop.BEHIND) for k, each in enumerate(runs)]

    def extend(later: Sequence[Run]) -> list[Run]:
        """The runs, those that were followed further with one history."""
        after = list(runs)
        for last in later:
            number = last.records[-1].start
            after[number] = replace(last, records=(*runs[number].records, *last.records))
        return after

    if hasattr(solver, "limited_by"):
        solver = solver.limited_by(runs[good[0]].objective)
    starts = [partial(given_model, model=runs[number].model) for number in good]
    make = None if offer is None else lambda later: offer(extend(later))
    return extend(follow_starts(data, rank, starts, solver, good, session, policy, make))


def follow_starts(
    data: InMemory,
    rank: int,
    starts: Sequence[Start],
    solver: Any,
    numbers: Sequence[int],
    session: Session,
    policy: Policy,
    offer: Callable[[list[Run]], Any] | None,
) -> list[Run]:
    """Run a solver from each start: on the executor, in threads, or one after another."""
    if len(starts) == 1:  # stays here, where Ctrl-C and checkpoints reach it
        session = session.here()
    least, most = policy.threaded_pass
    workers = min(data.threads, len(starts)) if least <= data.cells * rank <= most else 1
    follow: Follow = partial(follow_start, solver=solver)
    data = data.alone() if workers > 1 else data
    return search(data, starts, follow, session, offer=offer, workers=workers, numbers=numbers)


def fit_rank(
    data: InMemory,
    rank: int,
    solver: Any,
    known: Sequence[Model],
    n_init: int | None,
    session: Session,
    policy: Policy = DEFAULT,
) -> Run:
    """The best run from many starts."""
    count = count_starts(data, rank, n_init, policy)
    runs = explore_starts(data, rank, solver, count, session, policy, known=known)
    return runs[best_run(runs)]


def describe_ends(runs: Sequence[Run], chains: bool = False) -> str:
    """Compare the optima that runs reached, all by the same solver; ``chains`` if n_init is theirs.

    Where one start alone, of several, found an optimum that is clearly the best, this is remarked.
    """
    best = runs[best_run(runs)]
    ends = sorted(each.objective for each in runs if each.stop is not Stop.BEHIND)
    lower = [each for each in ends if each > best.objective + SAME_NATS]
    reached = len(ends) - len(lower)
    if len(ends) < 2:
        return ""
    words = (
        f"Of {plural(len(runs), 'start')}, {len(ends)} were followed to the end; {reached} of "
        "them reached this optimum."
    )
    if not lower:
        return words
    gap = lower[0] - best.objective
    words += f" The next best one is lower by {gap:.2g} in log-likelihood."
    if gap <= NEAR_NATS or reached > 1 or len(ends) <= 3:
        return words
    advice = Message(
        "More starts may find a better one: {solver}{more}{then}.",
        solver=Message("use {map} with ", map=Argument("solver", "map")) if chains else "",
        more=Argument("n_init", 2 * len(runs)),
        then=PythonOnly(", and give its pmf to rejoint.estimate as start") if chains else "",
    )
    words = join_messages([words, advice])
    remark(words)
    return words
