"""Choice between low rank and maximum entropy for tables.

Exact tables: where a low rank meets them and is determined by them, that model is the answer. The
rank is read off unfoldings: the tables of two variables with each of the others, side by side, are
a matrix whose rank is at most that of the model.

Tables of a sample: a log-linear model whose interactions have an estimated prior, or a mixture of
few classes, whichever makes the tables more probable. Columns and weights of classes have uniform
priors. The evidence for a rank is that of Laplace's method: how well the effects of the tables are
met, how far the classes are from the mean of their prior, and how much narrower they are known than
before; times the ways to number the classes.

Tables that were counted in different records contradict each other. Each is first raked to the
pooled shares of its variables: its odds ratios stay, and differences between samples in the shares
of single variables are not taken for interactions. Effects are then averaged over the tables that
publish them. How far the tables differ says whether their records are the same or others.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import exp, lgamma, log, prod

import numpy as np

from rejoint.arrays import FloatArray, parts_of, sum_to
from rejoint.factorization.early_stop import Smooth, fit_smooth
from rejoint.factorization.fit_tables import fit_tables
from rejoint.factorization.kl import Kl
from rejoint.factorization.log_linear import (
    Effects,
    LogLinear,
    Sample,
    Subset,
    fit_log_linear,
    keep_zeros,
)
from rejoint.factorization.loss import KL, TINY
from rejoint.factorization.max_entropy import (
    independent_model,
    make_completion_problem,
    start_completion,
)
from rejoint.factorization.problem import (
    TableProblem,
    own_shares,
    random_model,
)
from rejoint.factorization.table_goals import Near, records_behind
from rejoint.factorization.table_policy import POLICY
from rejoint.identifiability.certificate import certificate_of
from rejoint.marginals.compare import SAME
from rejoint.marginals.marginals import Marginals
from rejoint.model import Layout, Model
from rejoint.pmf.pmf import LowRankPMF
from rejoint.queries.tables import tables_of_model
from rejoint.solver.result import FitResult
from rejoint.solver.run import run
from rejoint.solver.session import Session
from rejoint.solver.solver import Limits
from rejoint.text import plural


@dataclass(frozen=True, eq=False)
class Pooled:
    """Tables after they were raked, and the shares of each variable that they were raked to."""

    tables: Marginals
    own: tuple[FloatArray, ...]


def pool_shares(marginals: Marginals, older: Collection[int] = ()) -> tuple[FloatArray, ...]:
    """Shares of each variable, over all tables that hold it, by their numbers of records.

    Parameters
    ----------
    marginals : Marginals
        The tables.
    older : collection of int
        Positions of tables of another time, whose shares of single variables do not count where
        another table has them.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     m = Marginals.from_tables({("a", "b"): [[10, 20], [30, 40]], ("a",): [120, 80]})
    >>> [share.round(3).tolist() for share in pool_shares(m)]
    [[0.5, 0.5], [0.4, 0.6]]
    >>> pool_shares(m, older=[1])[0]
    array([0.3, 0.7])
    """
    records = records_behind(marginals)
    found = []
    for n, size in enumerate(marginals.domain.shape):
        held = [i for i, s in enumerate(marginals.index_subsets) if n in s and records[i] > 0]
        recent = [i for i in held if i not in older] or held
        total = np.zeros(size)
        for i in recent:
            total += records[i] * _alone(marginals, i, n)
        found.append(total / total.sum() if total.sum() > 0 else np.full(size, 1.0 / size))
    return tuple(found)


def _alone(marginals: Marginals, i: int, n: int) -> FloatArray:
    """Shares of one variable in a table; cells below zero count as none."""
    return np.maximum(sum_to(marginals.shares(i), marginals.index_subsets[i], (n,)), 0.0)


def rake_to_shares(marginals: Marginals, own: tuple[FloatArray, ...]) -> Marginals:
    """Every table with these shares of its variables, its odds ratios as they are.

    Examples
    --------
    >>> m = Marginals.from_tables({("a", "b"): [[10, 20], [30, 40]]})
    >>> even = (np.array([0.5, 0.5]), np.array([0.5, 0.5]))
    >>> rake_to_shares(m, even).shares(0).round(3)
    array([[0.225, 0.275],
           [0.275, 0.225]])
    """
    goals: Mapping[Subset, FloatArray] = {(n,): share for n, share in enumerate(own)}
    return _rake_tables(marginals, dict.fromkeys(range(len(marginals)), goals))


def update_older(marginals: Marginals, older: Collection[int]) -> Marginals:
    """Tables of an earlier time with the margins of the others, their odds ratios as they are.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     m = Marginals.from_tables({("a", "b"): [[10, 20], [30, 40]], ("a",): [50, 50]})
    >>> update_older(m, [0]).shares(0).sum(axis=1).round(6)
    array([0.5, 0.5])
    """
    goals: dict[int, dict[Subset, FloatArray]] = {}
    for i in older:
        subset = marginals.index_subsets[i]
        goals[i] = {}
        for j, other in enumerate(marginals.index_subsets):
            common = tuple(n for n in other if n in subset)
            if j not in older and common:
                goals[i][common] = sum_to(np.maximum(marginals.shares(j), 0.0), other, common)
    return _rake_tables(marginals, goals)


def _rake_tables(
    marginals: Marginals, goals: Mapping[int, Mapping[Subset, FloatArray]]
) -> Marginals:
    """Some tables with other margins, each given for variables in the order of its table."""
    flat = np.array(marginals.flat)
    for i, margins in goals.items():
        subset, total = marginals.index_subsets[i], float(marginals.totals[i])
        if total <= 0:
            continue
        table = np.maximum(marginals.shares(i), 0.0)
        inside = {kept: goal for kept, goal in margins.items() if set(kept) <= set(subset)}
        for _ in range(POLICY.most_rakes):
            worst = 0.0
            for kept, goal in inside.items():
                gone = tuple(axis for axis, n in enumerate(subset) if n not in kept)
                now = table.sum(axis=gone)
                ratio = np.divide(goal, now, out=np.zeros_like(now), where=now > 0)
                table = table * np.expand_dims(ratio, gone)
                worst = max(worst, float(np.abs(now - goal).sum()))
            if worst < 1e-10:
                break
        flat[marginals.starts[i] : marginals.starts[i + 1]] = total * table.ravel()
    return replace(marginals, flat=flat)


def find_older(marginals: Marginals) -> set[int]:
    """Positions of tables whose shares of single variables no chance reconciles with the others'.

    One after another the table is taken that is furthest from the pool of the others.

    Examples
    --------
    >>> import warnings
    >>> tables = {
    ...     ("a", "b"): [[250, 250], [250, 250]],
    ...     ("a", "c"): [[260, 250], [240, 250]],
    ...     ("b", "c"): [[250, 245], [250, 255]],
    ...     ("a", "d"): [[400, 400], [100, 100]],
    ... }
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     find_older(Marginals.from_tables(tables))
    {3}
    """
    records = records_behind(marginals)
    found: set[int] = set()
    while len(found) + 2 < len(marginals):
        worst, score = -1, POLICY.older_score
        for i in range(len(marginals)):
            if i not in found:
                z = _strangeness(marginals, records, i, found)
                if z > score:
                    worst, score = i, z
        if worst < 0:
            break
        found.add(worst)
    # Where most tables are strange to each other, none is the old one.
    return found if 2 * len(found) < len(marginals) else set()


def _strangeness(marginals: Marginals, records: FloatArray, i: int, apart: set[int]) -> float:
    """How far a table's shares are from the others', in standard deviations of a chi-square."""
    total, freedom = 0.0, 0
    for n in marginals.index_subsets[i]:
        held = [
            j
            for j, s in enumerate(marginals.index_subsets)
            if j != i and j not in apart and n in s and records[j] > 0
        ]
        if not held:
            continue
        others = sum(records[j] * _alone(marginals, j, n) for j in held)
        number = float(np.sum(records[held]))
        mean = np.maximum((others + records[i] * _alone(marginals, i, n)), 0.5)
        mean = mean / mean.sum()
        gap = _alone(marginals, i, n) - others / number
        total += float(np.sum(gap**2 / mean)) / (1.0 / records[i] + 1.0 / number)
        freedom += marginals.domain.shape[n] - 1
    return (total - freedom) / np.sqrt(2.0 * freedom) if freedom else 0.0


def pool_effects(
    marginals: Marginals, effects: Effects, older: Collection[int] | None = None
) -> tuple[Sample, Pooled]:
    """Return the effects of all tables with the records behind each, and the tables raked.

    Tables of the same records agree, and an effect rests on these records however many tables show
    it. Tables of different records differ by chance, and an effect rests on all of them. Between
    the two the number follows from how far they differ.

    Parameters
    ----------
    marginals : Marginals
        The tables.
    effects : Effects
        Which effects.
    older : collection of int, optional
        Positions of tables of another time; found by their shares where none are given.
    """
    used = [i for i in range(len(marginals)) if marginals.table_weight[i] > 0]
    if len(used) < len(marginals):
        marginals = _pick(marginals, used)
    records = _effective_records(marginals)
    own = pool_shares(marginals)
    if any(np.abs(_alone(marginals, i, n) - own[n]).sum() > SAME for i, n in _pairs(marginals)):
        own = pool_shares(marginals, find_older(marginals) if older is None else older)
        marginals = rake_to_shares(marginals, own)
    values, numbers = np.zeros(effects.size), np.zeros(effects.size)
    spread = np.zeros((2, len(effects.sets)))
    for k, subset in enumerate(effects.sets):
        held = [i for i, s in enumerate(marginals.index_subsets) if set(subset) <= set(s)]
        each = np.stack([_effect(marginals, i, effects, k) for i in held])
        weight = records[held] * _precision(marginals, held)
        mean = weight @ each / weight.sum()
        values[effects.rows(k)] = mean
        numbers[effects.rows(k)] = weight @ records[held] / weight.sum()
        # Contrasts are of length one: the variance of a record's is about the mean of its shares.
        size = float(np.prod([effects.levels[n] for n in subset]))
        spread[0, k] = float(np.sum(records[held, None] * (each - mean) ** 2)) * size
        spread[1, k] = (len(held) - 1) * len(mean)
    several = effects.orders > 1
    if spread[1, several].sum() > 0:
        apart = spread[0, several].sum() / spread[1, several].sum()
        tables = np.array(
            [sum(set(s) <= set(t) for t in marginals.index_subsets) for s in effects.sets]
        )
        # All records count where tables are of different ones; fewer where they differ by more.
        factor = (1.0 + min(apart, 1.0) * (tables - 1.0)) / max(apart, 1.0)
        numbers *= np.repeat(factor, effects.sizes)
    return Sample(effects, values, numbers), Pooled(marginals, own)


def _pairs(marginals: Marginals) -> list[tuple[int, int]]:
    return [(i, n) for i, subset in enumerate(marginals.index_subsets) for n in subset]


def _pick(marginals: Marginals, used: list[int]) -> Marginals:
    """Some of the tables."""
    parts = [marginals.counts_of(i).ravel() for i in used]
    return Marginals(
        marginals.domain,
        tuple(marginals.index_subsets[i] for i in used),
        np.concatenate(parts),
        marginals.table_weight[used],
        counted=marginals.counted[used],
        noisy=marginals.noisy,
        rounding=marginals.rounding[used],
    )


def _effect(marginals: Marginals, i: int, effects: Effects, k: int) -> FloatArray:
    subset = effects.sets[k]
    return effects.contract(subset, sum_to(marginals.shares(i), marginals.index_subsets[i], subset))


def _effective_records(marginals: Marginals) -> FloatArray:
    """Records behind each table, fewer where rounding adds noise to its cells.

    A number that is moved to one of its neighboring multiples of ``b`` at random has a variance of
    about ``b^2 / 6``; rounding says by how much it moves at the most.
    """
    records = records_behind(marginals)
    cells = np.diff(marginals.starts)
    noise = cells * np.asarray(marginals.rounding) ** 2 / 6.0
    totals = np.maximum(marginals.totals, 1e-300)
    return np.asarray(records / (1.0 + noise / totals))


def _precision(marginals: Marginals, held: list[int]) -> FloatArray:
    """Weight of margins of rounded tables: sums of many rounded cells are less precise."""
    cells = np.diff(marginals.starts)[held].astype(np.float64)
    rounded = np.asarray(marginals.rounding)[held] > 0
    return np.where(rounded, 1.0 / cells, 1.0 / cells.min() if rounded.any() else 1.0)


@dataclass(frozen=True)
class Identified:
    """A fit of low rank that meets exact tables, and the certificate that it is the only one."""

    result: FitResult
    certificate: str


def find_identified(marginals: Marginals, session: Session) -> Identified | None:
    """Return the low-rank model that exact tables determine; None where there is none.

    Examples
    --------
    >>> import rejoint as rj
    >>> truth = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 4)
    >>> tables = rj.Marginals.from_pmf(truth, order=3)
    >>> found = find_identified(tables, Session(np.random.default_rng(0)))
    >>> found.result.pmf.rank, rj.metrics.tensor_error(truth, found.result.pmf) < 1e-10
    (2, True)
    """
    if marginals.unknown is not None or marginals.rounding.any() or marginals.moments:
        return None
    rank = read_rank(marginals)
    if rank is None or rank < 2:
        return None
    # Without numbers of records the tables are exact: no stage ends where chance might be left.
    exact = replace(marginals, counted=np.zeros(len(marginals), dtype=bool))
    result = fit_tables(exact, rank, "auto", Session(session.rng, session.report), n_init=5)
    if max(result.misfits.values()) > POLICY.identified_met:
        return None
    certificate = certificate_of(result.pmf, marginals)
    return None if certificate is None else Identified(result, certificate)


def read_rank(marginals: Marginals) -> int | None:
    """Return the rank of the unfoldings of tables; None where they could be of any rank.

    The rank is the largest of the unfoldings of all pairs of variables. It says something where it
    is below what the sizes of the tables allow, and where a model of that rank has fewer parameters
    than the tables have independent numbers.

    Examples
    --------
    >>> import rejoint as rj
    >>> truth = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 4)
    >>> read_rank(rj.Marginals.from_pmf(truth, order=3))
    2
    >>> read_rank(rj.Marginals.from_pmf(truth, order=2)) is None
    True
    """
    levels = marginals.domain.shape
    largest, possible = 0, 0
    for pair, parts in _unfold(marginals):
        columns, matrix = 1, []
        for rest, table in parts.items():
            matrix.append(table)
            columns += prod(levels[n] - 1 for n in rest)
        values = np.linalg.svd(np.hstack(matrix), compute_uv=False)
        rank = int((values > POLICY.rank_zero * values[0]).sum())
        most = min(prod(levels[n] for n in pair), columns)
        if (rank, most) > (largest, possible):
            largest, possible = rank, most
    equations = Effects(levels, marginals.index_subsets).size
    parameters = Layout(levels).parameters(max(largest, 1))
    return largest if 0 < largest < possible and parameters < equations else None


def _unfold(marginals: Marginals) -> Iterator[tuple[Subset, dict[Subset, FloatArray]]]:
    """For each pair of variables, tables of both with sets of others that a table holds."""
    found: dict[Subset, dict[Subset, FloatArray]] = {}
    for i, subset in enumerate(marginals.index_subsets):
        if len(subset) < 3 or marginals.table_weight[i] <= 0:
            continue
        table = marginals.shares(i)
        for pair in combinations(range(len(subset)), 2):
            names = subset[pair[0]], subset[pair[1]]
            others = [axis for axis in range(len(subset)) if axis not in pair]
            for kept in parts_of(others):
                gone = tuple(axis for axis in others if axis not in kept)
                part = np.moveaxis(table.sum(axis=gone, keepdims=True), pair, (0, 1))
                flat = part.reshape(part.shape[0] * part.shape[1], -1)
                rest = tuple(subset[axis] for axis in kept)
                found.setdefault(names, {}).setdefault(rest, flat)
    yield from found.items()


@dataclass(frozen=True, eq=False)
class TableChoice:
    """The model that tables of a sample support.

    Parameters
    ----------
    model : Model
        A mixture of few classes, or the log-linear model as a mixture.
    rank : int or None
        Number of classes, where a low rank was chosen.
    text : str
        Why, in one sentence.
    log_linear : LogLinear
        The log-linear model, whichever was chosen.
    evidence : dict
        For each rank that was tried how much more probable it makes the tables than the log-linear
        model does, as a logarithm.
    members : int
        Models that ``model`` is the mean of.
    """

    model: Model
    rank: int | None
    text: str
    log_linear: LogLinear
    evidence: dict[int, float]
    members: int = 1


def choose_for_noisy(
    marginals: Marginals, session: Session, *, few_classes: bool = True
) -> TableChoice | None:
    """Choose between a low rank and a log-linear model for tables of a sample.

    None where there are no effects, too many for their covariance, or too many states. Without
    ``few_classes`` it is the log-linear model: how probable tables that contradict each other are
    says nothing about a rank.

    Examples
    --------
    >>> import rejoint as rj
    >>> columns = [[0.7, 0.1, 0.2], [0.2, 0.1, 0.6], [0.1, 0.8, 0.2]]
    >>> truth = rj.LowRankPMF([0.3, 0.3, 0.4], [columns] * 5)
    >>> tables = rj.Marginals.count(truth.sample(5000, random_state=0), order=3)
    >>> choose_for_noisy(tables, Session(np.random.default_rng(0))).rank
    3
    """
    if marginals.moments:
        return None
    effects = Effects(marginals.domain.shape, _used(marginals))
    if not 0 < effects.size <= POLICY.most_effects or not effects.is_countable:
        return None
    choice = _choose(marginals, effects, session, few_classes)
    if choice is not None and marginals.unknown is not None:
        # Unknown cells were filled by a first guess; the model has a better one.
        filled = marginals.filled(LowRankPMF.of_model(choice.model, marginals.domain))
        choice = _choose(filled, effects, session, few_classes) or choice
    return choice


def _used(marginals: Marginals) -> list[Subset]:
    return [
        s for s, w in zip(marginals.index_subsets, marginals.table_weight, strict=True) if w > 0
    ]


def _choose(
    marginals: Marginals, effects: Effects, session: Session, few_classes: bool
) -> TableChoice | None:
    sample, pooled = pool_effects(marginals, effects)
    levels = effects.levels
    goals = [Near(s, np.ones(prod(levels[n] for n in s)), 1.0, 1.0) for s in effects.sets]
    problem = make_completion_problem(levels, goals)
    if problem is None:
        return None
    own = independent_model(levels, [Near((n,), s, 1.0, 1.0) for n, s in enumerate(pooled.own)])
    session.report("estimating how strong interactions are")

    def offer(model: LogLinear) -> None:
        session.offer(lambda: _completion_choice(model, {}), certain=True)

    by_order, each = fit_log_linear(sample, start_completion(problem, own), offer)
    chosen = keep_zeros(each, pooled.tables)
    offer(chosen)
    if not few_classes:
        return _completion_choice(chosen, {})
    tables = SmoothedTables.of(pooled.tables, float(np.median(sample.records)))
    rival = max(by_order.evidence, each.evidence, chosen.evidence)
    search = RankSearch(sample, tables, rival, session)
    best = search.run()
    found = {rank: one.evidence - rival for rank, one in sorted(search.tried.items())}
    is_partial = leaves_pairs_open(levels, marginals.index_subsets)
    share = 0.0 if best is None else share_of_classes(best, rival, is_partial=is_partial)
    if best is not None and share == 1.0:
        return _low_rank_choice(best.model.rank, search.finish(best), chosen, found)
    choice = _completion_choice(chosen, found, share)
    if is_partial:
        session.report("averaging over what the tables leave open")
        quiet = Session(session.rng, session.report)
        smooth = fit_smooth(marginals, Smooth(), Smooth().rank(marginals), "equal", quiet).pmf
        choice = _add_smooth(choice, Model.of(smooth.weights, smooth.factors))
    if best is not None and share > 0.0:
        choice = _add_classes(choice, search.finish(best), share)
    return choice


def leaves_pairs_open(levels: Subset, subsets: Sequence[Subset]) -> bool:
    """Whether variables that are connected by tables are together in none.

    Examples
    --------
    >>> leaves_pairs_open((2, 2, 2), [(0, 1), (1, 2)]), leaves_pairs_open((2, 2), [(0,), (1,)])
    (True, False)
    """
    varying = {n for n, size in enumerate(levels) if size > 1}
    parts = [set(subset) & varying for subset in subsets]
    reached = set(sorted(varying)[:1])
    for _ in varying:
        reached = reached.union(*(part for part in parts if part & reached))
    held = {pair for part in parts for pair in combinations(sorted(part), 2)}
    return reached == varying and len(held) < len(varying) * (len(varying) - 1) // 2


def share_of_classes(best: "RankEvidence", rival: float, *, is_partial: bool) -> float:
    """Share of a low rank in the mean of it and of a log-linear model.

    Where tables leave as much open as there are classes and do not hold all pairs of variables, no
    kind of model is known to extrapolate better, and classes have a smaller share than others.

    Examples
    --------
    >>> best = RankEvidence(Model.of([1.0], [[[0.5], [0.5]]]), -8.0, 0.0, 3)
    >>> round(share_of_classes(best, 0.0, is_partial=False), 3)
    0.599
    """
    odds = (best.evidence - rival + POLICY.undervalued) / POLICY.evidence_spread
    share = 1.0 / (1.0 + exp(-min(max(odds, -50.0), 50.0)))
    if is_partial and best.open >= best.model.rank:
        share = min(share, POLICY.most_open_share)
    if min(share, 1.0 - share) < POLICY.least_share:
        return float(round(share))
    return share


def _add_smooth(choice: TableChoice, smooth: Model) -> TableChoice:
    text = (
        "Some pairs of variables are in no table, and interactions take them for independent given "
        f"the others. Models of many classes do not: {POLICY.smooth_share:.2g} of the share of "
        "interactions is theirs."
    )
    model = mix_models([1.0 - POLICY.smooth_share, POLICY.smooth_share], [choice.model, smooth])
    return replace(choice, model=model, text=f"{choice.text} {text}", members=choice.members + 1)


def _add_classes(choice: TableChoice, classes: Model, share: float) -> TableChoice:
    model = mix_models([1.0 - share, share], [choice.model, classes])
    return replace(choice, model=model, members=choice.members + 1)


def mix_models(shares: Sequence[float] | FloatArray, models: Sequence[Model]) -> Model:
    """The mean of models, which has the classes of all of them.

    Examples
    --------
    >>> mix_models([0.25, 0.75], [Model.of([1.0], [[[x], [1 - x]]]) for x in (0.2, 0.4)]).weights
    array([0.25, 0.75])
    """
    weights = np.concatenate([s * one.weights for s, one in zip(shares, models, strict=True)])
    return Model(models[0].layout, weights, np.hstack([one.factors for one in models]))


def _completion_choice(each: LogLinear, found: dict[int, float], share: float = 0.0) -> TableChoice:
    """The log-linear model; with what is said where classes are to have a share beside it."""
    text = "Interactions of few variables, each as strong as the tables say"
    if found:
        rank = max(found, key=lambda r: found[r])
        size = f"e^{abs(found[rank]):.3g} compared with {rank})"
        if share:
            text += (
                f", have a share of {1.0 - share:.2g}, and classes have {share:.2g}: which of them "
                "make the tables more probable is not certain (interactions by a factor of "
                f"{'1/' * (found[rank] > 0)}{size}"
            )
        else:
            text += (
                ", make the tables more probable than a small number of classes does (by a factor "
                f"of {size}"
            )
    return TableChoice(each.state.model, None, f"{text}.", each, found)


def _low_rank_choice(
    rank: int, model: Model, each: LogLinear, found: dict[int, float]
) -> TableChoice:
    text = (
        f"{plural(rank, 'class', 'classes')} make the tables more probable than interactions of "
        f"few variables do, by a factor of e^{found[rank]:.3g}."
    )
    members = model.rank // rank
    if members > 1:
        text += (
            " The tables leave open which classes these are: the model is the mean of "
            f"{plural(members, 'such model')}."
        )
    return TableChoice(model, rank, text, each, found, members)


@dataclass(frozen=True)
class SmoothedTables(TableProblem):
    """Tables with pseudo-counts: one record more in each column, spread by the variable's shares.

    Parameters
    ----------
    pseudo : array (1 + L,), optional
        What is added to each count of each class, weights first, in the unit of the tables.

    Examples
    --------
    >>> tables = (np.array([0.5, 0.5]),)
    >>> problem = SmoothedTables((2,), ((0,),), tables, np.ones(1), pseudo=np.full(3, 0.1))
    >>> round(problem.value(Model.of([1.0], [[[0.5], [0.5]]])), 4)  # squares, and two logarithms
    0.1386
    """

    pseudo: FloatArray | None = None

    @classmethod
    def of(cls, marginals: Marginals, records: float) -> "SmoothedTables":
        """The problem of counted tables."""
        # Noise that was added for privacy may leave cells below zero.
        shares = (np.maximum(marginals.shares(i), 0.0) for i in range(len(marginals)))
        tables = tuple(np.ascontiguousarray(table) for table in shares)
        levels, subsets = tuple(marginals.domain.shape), marginals.index_subsets
        plain = TableProblem(levels, subsets, tables, np.ones(len(tables)), (), KL)
        # Each variable's counts come once from every table that holds it.
        times = [len(held) / records for held in plain.tables_with]
        own = own_shares(plain)
        columns = [t * (o + 1e-3 / len(o)) for t, o in zip(times, own, strict=True)]
        pseudo = np.concatenate([[len(tables) / records], *columns])
        return cls(levels, subsets, tables, plain.weight, (), KL, pseudo=pseudo)

    def value(self, model: Model) -> float:
        """The divergence, less the logarithm of the prior."""
        return super().value(model) - self._log_prior(model)

    def gradient(self, model: Model) -> tuple[float, FloatArray]:
        """The same and its slope."""
        value, slope = super().gradient(model)
        if self.pseudo is None:
            return value, slope
        slope = slope - self.pseudo[:, None] / np.maximum(model.stacked, TINY)
        return value - self._log_prior(model), slope

    def _log_prior(self, model: Model) -> float:
        if self.pseudo is None:
            return 0.0
        logs = np.log(np.maximum(model.stacked, TINY))
        return float(self.pseudo @ logs.sum(axis=1))


def fit_rank(
    problem: TableProblem,
    rank: int,
    records: float,
    session: Session,
    below: Model | None = None,
    starts: int = 3,
    steps: int = POLICY.rank_steps,
) -> Model:
    """Return the best model of a rank: some EM from a few starts, then scoring from the best.

    Examples
    --------
    >>> table = np.array([[0.4, 0.1], [0.1, 0.4]])
    >>> problem = SmoothedTables((2, 2), ((0, 1),), (table,), np.ones(1), (), KL)
    >>> fit_rank(problem, 1, 100.0, Session(np.random.default_rng(0))).parts[0].ravel().round(3)
    array([0.5, 0.5])
    """
    # A gain of half a unit of log-likelihood, which each variable's tables count several times.
    gain = 0.5 * float(np.mean([len(held) for held in problem.tables_with])) / records
    quick = Kl(dense_limit=0, limits=Limits(max_steps=POLICY.first_steps, progress=1e-3, gain=gain))
    models = [random_model(problem, rank, session.rng) for _ in range(starts)]
    if below is not None:
        models[0] = below.extend(rank, own_shares(problem), session.rng)
    quiet = Session(session.rng, session.report)
    runs = [run(quick, problem, model, quiet) for model in models]
    best = min(runs, key=lambda each: each.objective)
    finish = Kl(limits=Limits(max_steps=steps, progress=1e-4, gain=gain))
    return run(finish, problem, best.model, quiet).model


@dataclass(frozen=True)
class RankEvidence:
    """A model of low rank, and the evidence for it.

    ``evidence`` is on the scale of :class:`~rejoint.factorization.log_linear.LogLinear`'s.
    ``excess`` is how far the misfit of the tables is above what chance makes it, in standard
    deviations. ``open`` counts directions about which the tables say less than the prior.
    """

    model: Model
    evidence: float
    excess: float
    open: int


def weigh_rank(sample: Sample, model: Model) -> RankEvidence:
    """Return the evidence for a model of low rank, by Laplace's method."""
    from scipy.linalg import cho_factor, cho_solve, solve_triangular  # slow to import

    effects, rank = sample.effects, model.rank
    tabulate = tables_of_model(model)
    spread = sample.covariance(effects.covariance(tabulate))
    away = sample.values - effects.values(tabulate)
    lower, _ = cho_factor(spread, lower=True)
    misfit = solve_triangular(lower, sample.root * away, lower=True)
    tangent = sample.root[:, None] * effects.tangent(model)
    slopes = solve_triangular(lower, tangent, lower=True)
    # In units of the prior: uniform columns of I levels have variance 1/(I (I + 1)).
    sizes = [rank, *np.repeat(effects.levels, np.array(effects.levels) - 1)]
    unit = np.repeat(1.0 / np.sqrt([size * (size + 1.0) for size in sizes]), rank)
    slopes = slopes * unit
    # Weights add up to one.
    slopes[:, :rank] -= slopes[:, :rank].mean(axis=1, keepdims=True)
    means = [h.T @ part for h, part in zip(effects.contrasts, model.parts, strict=True)]
    shift = np.concatenate([model.weights - 1.0 / rank, *(m.ravel() for m in means)]) / unit
    matrix = slopes.T @ slopes
    known = matrix.copy()
    matrix[np.diag_indices_from(matrix)] += 1.0
    factor = cho_factor(matrix, lower=True)
    pull = slopes.T @ misfit - shift
    total = float(misfit @ misfit + shift @ shift - pull @ cho_solve(factor, pull))
    occam = float(np.log(np.diag(factor[0])).sum())
    used = float(np.trace(cho_solve(factor, known)))
    # Classes that the tables determine can be numbered in many ways; those that they do not are
    # alike, and renumbering them changes nothing.
    distinct = min(rank, used / (len(unit) / rank))
    evidence = -0.5 * total - occam + lgamma(distinct + 1.0)
    pulled = slopes.T @ misfit
    left = float(misfit @ misfit - pulled @ cho_solve(factor, pulled))
    free = max(effects.size - used, 1.0)
    # One direction is none: weights add up to one.
    loose = int((np.linalg.eigvalsh(known) < 1.0).sum()) - 1
    return RankEvidence(model, evidence, (left - free) / np.sqrt(2.0 * free), loose)


def average_models(found: Sequence[RankEvidence]) -> Model:
    """Return the mean of models, each by its evidence; the best alone where all are alike.

    Tables that leave a rank open are met by many models. Their mean is nearer to the truth than
    most of them.

    Examples
    --------
    >>> one, other = (Model.of([1.0], [[[x], [1 - x]]]) for x in (0.2, 0.4))
    >>> pair = [RankEvidence(model, -3.0, 0.0, 1) for model in (one, other)]
    >>> average_models(pair).weights
    array([0.5, 0.5])
    """
    best = max(found, key=lambda one: one.evidence)
    near = [one for one in found if one.evidence > best.evidence - POLICY.like_evidence]
    if max(_distance(best.model, one.model) for one in near) < POLICY.like_models:
        return best.model
    share = np.exp([one.evidence - best.evidence for one in near])
    share /= share.sum()
    return mix_models(share, [one.model for one in near])


def _distance(one: Model, other: Model) -> float:
    """Largest total variation between tables of four variables, of some of them."""
    number = len(one.parts)
    subsets = [
        tuple(sorted((start + k) % number for k in range(min(4, number))))
        for start in range(number)
    ]
    tables = (tables_of_model(model) for model in (one, other))
    first, second = ([tabulate(subset) for subset in subsets] for tabulate in tables)
    return max(0.5 * float(np.abs(a - b).sum()) for a, b in zip(first, second, strict=True))


class RankSearch:
    """Finds the rank of largest evidence: doubled ranks first, then those between.

    Parameters
    ----------
    sample : Sample
        The effects.
    tables : SmoothedTables
        The tables.
    rival : float
        Evidence of the log-linear model.
    session : Session
        Randomness and progress.
    """

    def __init__(
        self, sample: Sample, tables: SmoothedTables, rival: float, session: Session
    ) -> None:
        self.sample, self.tables, self.rival, self.session = sample, tables, rival, session
        self.tried: dict[int, RankEvidence] = {}
        self.per_class = tables.layout.parameters(2) - tables.layout.parameters(1)
        most = POLICY.most_parameters * sample.effects.size
        self.largest = int((most + 1) // self.per_class)
        self.records = float(np.median(sample.records))
        odds = log(1.0 / POLICY.least_share - 1.0)
        self.least = rival - POLICY.undervalued - POLICY.evidence_spread * odds

    def run(self) -> RankEvidence | None:
        """The best rank, None where its share in the answer would be next to nothing."""
        rank = 2
        while rank <= self.largest and self._is_worth(rank):
            self.weigh(rank)
            rank *= 2
        if rank > self.largest > 2 and self._is_worth(self.largest):
            self.weigh(self.largest)
        if not self.tried or not self._is_near():
            return None
        self._climb()
        return self.best if self.best.evidence > self.least else None

    @property
    def is_long(self) -> bool:
        """Whether weighing a rank takes more than a second."""
        return self.sample.effects.size > POLICY.quick_effects

    @property
    def best(self) -> RankEvidence:
        """The rank of largest evidence so far."""
        return max(self.tried.values(), key=lambda one: one.evidence)

    def weigh(self, rank: int) -> float:
        """Evidence of a rank."""
        if rank not in self.tried:
            self.session.report(f"weighing rank {rank} against a log-linear model")
            below = [one.model for r, one in self.tried.items() if r < rank]
            start = max(below, key=lambda model: model.rank, default=None)
            starts = 2 if self.is_long else 3
            model = fit_rank(self.tables, rank, self.records, self.session, start, starts)
            self.tried[rank] = weigh_rank(self.sample, model)
        return self.tried[rank].evidence

    def finish(self, found: RankEvidence) -> Model:
        """The rank that was chosen, with more steps; the mean of several where it is open."""
        members = [found]
        begin, starts = (None, 1) if found.open else (found.model, 1 if self.is_long else 4)
        for _ in range(POLICY.open_members if found.open and not self.is_long else 1):
            model = fit_rank(
                self.tables,
                found.model.rank,
                self.records,
                self.session,
                begin,
                starts,
                POLICY.rank_steps if self.is_long else POLICY.final_steps,
            )
            members.append(weigh_rank(self.sample, model))
        if found.open:
            return average_models(members)
        return max(members, key=lambda one: one.evidence).model

    def _is_worth(self, rank: int) -> bool:
        """Whether this rank may come near the rival, as far as smaller ones tell.

        The lag behind the rival falls at once where the rank is right; before, it shrinks faster
        with each doubling than that of a joint of no low rank.
        """
        ranks = sorted(self.tried)
        if rank <= POLICY.least_ranks or len(ranks) < 2:
            return True
        if self.tried[ranks[-1]].evidence < self.tried[ranks[-2]].evidence:
            return False
        before, last = (self.rival - self.tried[r].evidence for r in ranks[-2:])
        return bool(last <= POLICY.lag_ratio * max(before, 0.0))

    def _slack(self, rank: int, other: int) -> float:
        """Evidence that too many classes may cost: about one unit for each parameter."""
        return float(abs(rank - other) * self.per_class)

    def _is_near(self) -> bool:
        """Whether a rank between those tried may have a share in the answer."""
        ranks, best = sorted(self.tried), self.best
        below = [r for r in ranks if r < best.model.rank]
        gap = self._slack(best.model.rank, below[-1] if below else 1)
        return best.evidence + gap > self.least

    def _is_tried(self, rank: int) -> bool:
        """Whether this rank was tried, or one that is as good where weighing takes long."""
        near = POLICY.near_rank * rank if self.is_long else 0.0
        return any(abs(rank - other) <= near for other in self.tried)

    def _climb(self) -> None:
        """Try ranks between the best and its neighbors, halving the distance."""
        while True:
            ranks, rank = sorted(self.tried), self.best.model.rank
            at = ranks.index(rank)
            below = ranks[at - 1] if at else 1
            above = ranks[at + 1] if at + 1 < len(ranks) else min(2 * rank, self.largest + 1)
            new = [(below + rank) // 2, (rank + above) // 2]
            new = [r for r in new if 2 <= r <= self.largest and not self._is_tried(r)]
            if not new:
                return
            for r in new:
                self.weigh(r)
