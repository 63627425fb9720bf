"""Approximate the maximum-entropy completion where its exact mixture has too many classes.

Where a junction tree of the tables has small cliques, the completion is found on it, and every
table of it can be computed. A mixture of some thousand classes is then fitted to given tables and
to others of the completion: it begins with classes of the exact mixture, drawn by their weights and
merged. Where cliques are too large, the mean of models of many classes that EM ended early stands
for the completion. Either is corrected at the end, so that the given tables are met all the same.
A completion of many classes is made smaller in the same way.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from math import prod

import numpy as np

from rejoint.arrays import FloatArray
from rejoint.cost import Cost
from rejoint.factorization.clique_tables import CliqueTables
from rejoint.factorization.corrector import Correction, correct, exclude_zeros, project
from rejoint.factorization.kl import Kl
from rejoint.factorization.loss import KL
from rejoint.factorization.max_entropy import Subset, find_cover, independent_model
from rejoint.factorization.problem import TableProblem
from rejoint.factorization.smooth import Smooth, fit_smooth
from rejoint.factorization.table_goals import ExactGoal, Goal, IntervalGoal, SoftGoal
from rejoint.factorization.table_policy import POLICY
from rejoint.factorization.unfolding import FlatTables
from rejoint.marginals.marginals import Marginals
from rejoint.model import Model
from rejoint.pmf.compact import merge_classes
from rejoint.queries.junction_tree import JunctionTree
from rejoint.queries.tables import Tabulate, tables_of_model
from rejoint.solver.result import FitResult
from rejoint.solver.run import run
from rejoint.solver.session import Session
from rejoint.solver.solver import Limits, Run, Stop
from rejoint.text import plural

#: Makes the result of a run and of the sentence that says what it approximates.
Conclude = Callable[[Run, str], FitResult]


def complete_approximately(
    marginals: Marginals, goals: Sequence[Goal], session: Session, conclude: Conclude
) -> FitResult:
    """Meet tables by a mixture that approximates their maximum-entropy completion."""
    levels = marginals.domain.shape
    subsets = [goal.subset for goal in goals]
    start = independent_model(levels, goals)
    classes = prod(levels[n] for n in find_cover(levels, subsets))
    text = (
        "The model approximates the joint nearest to independence that meets the tables (maximum "
        f"entropy), whose exact mixture has {plural(classes, 'class', 'classes')}."
    )
    session.unfinished.clear()
    session.unfinished[0] = _as_run(start, goals)
    session.offer(lambda: _conclude_so_far(session, goals, conclude, text))
    tree = JunctionTree.of(levels, [*subsets, *((n,) for n in range(len(levels)))])
    if tree.cells(levels) <= POLICY.most_clique_cells:
        tables = CliqueTables(levels, tree, [part[:, 0] for part in start.parts])
        multipliers = fit_cliques(tables, goals, session)
        model = draw_mixture(tables, start, goals, multipliers, session.rng)
        judged = judged_tables(levels, subsets, session.rng)
        followed = sorted(choose_tables(levels, subsets, session.rng, without=judged))
        session.unfinished[0] = _as_run(model, goals)
        model = follow_tables(model, tables.table, followed, session)
        wanted = [
            goal if _is_fixed(goal) else ExactGoal(goal.subset, tables.table(goal.subset).ravel())
            for goal in goals
        ]
        done, more = finish(model, wanted, session), ""
        if judged:
            distance = measure_distance(done.model, tables.table, judged)
            more = (
                f" In tables of {plural(len(judged[0]), 'variable')} that were not given, "
                f"{distance:.2g} of the mass is in different cells than in that joint, on average."
            )
        return conclude(done, text + more)
    rank, cells = Smooth().rank(marginals), max(marginals.flat.size, 1)
    members = min(max(POLICY.loose_numbers // (rank * cells), 3), POLICY.loose_members)
    Cost(64.0 * cells).check(
        f"A joint of {plural(len(goals), 'table')}", "a given rank or fewer tables take less"
    )
    mean = fit_smooth(marginals, Smooth(members=members), rank, "equal", session).pmf
    model = Model.of(mean.weights, mean.factors)
    session.unfinished.clear()
    session.unfinished[0] = _as_run(model, goals)
    session.offer(lambda: _conclude_so_far(session, goals, conclude, text))
    is_soft = any(isinstance(goal, SoftGoal) for goal in goals)
    done = _as_run(model, goals) if is_soft else finish(model, goals, session)
    return conclude(done, f"{text} The approximation error was not measured.")


def _conclude_so_far(
    session: Session, goals: Sequence[Goal], conclude: Conclude, text: str
) -> FitResult:
    """The result of a fit that was interrupted: some steps of correction take little time."""
    done, model = session.unfinished[0], session.unfinished[0].model
    if model.rank > 1 and all(map(_is_fixed, goals)):
        size = sum(prod(model.layout.levels[n] for n in goal.subset) for goal in goals)
        steps = min(POLICY.hasty_numbers // max(model.rank * size, 1), 20)
        done = _as_corrected(correct(model, goals, max_steps=steps))
    return conclude(replace(done, stop=Stop.INTERRUPTED), text)


def _as_run(model: Model, goals: Sequence[Goal]) -> Run:
    cells = FlatTables(model.layout, tuple(goal.subset for goal in goals))
    tables = cells.of_model(model)
    distance = float(cells.distances(project(cells, goals, tables), tables).max())
    return _as_corrected(Correction(model, distance, 0))


def _as_corrected(done: Correction) -> Run:
    stop = Stop.OPTIMAL if done.distance <= POLICY.closely_met else Stop.STALLED
    return Run(done.model, done.distance, done.distance, done.distance, stop)


def measure_distance(model: Model, tabulate: Tabulate, subsets: Sequence[Subset]) -> float:
    """Mean total variation distance between tables of a model and of a joint."""
    cells = FlatTables(model.layout, tuple(subsets))
    tables = np.concatenate([tabulate(subset).ravel() for subset in subsets])
    return float(cells.distances(cells.of_model(model), tables).mean())


def _is_fixed(goal: Goal) -> bool:
    return isinstance(goal, ExactGoal | IntervalGoal)


def fit_cliques(tables: CliqueTables, goals: Sequence[Goal], session: Session) -> list[FloatArray]:
    """Bring the tables of cliques to the goals; return the logarithms of the factors applied."""
    multipliers = [np.zeros(prod(tables.levels[n] for n in goal.subset)) for goal in goals]
    cliques = plural(len(tables.cliques), "clique")
    for sweep in range(1, POLICY.max_clique_sweeps + 1):
        worst = float(tables.sweep(goals, multipliers).max(initial=0.0))
        session.report(f"completion on {cliques}, sweep {sweep}: {worst:.1e}")
        if worst <= POLICY.met:
            break
    return multipliers


def draw_mixture(
    tables: CliqueTables,
    start: Model,
    goals: Sequence[Goal],
    multipliers: Sequence[FloatArray],
    rng: np.random.Generator,
) -> Model:
    """Classes of the exact mixture, drawn by their weights and merged to some thousand.

    A class is a combination of levels of a cover; in it the other variables are independent, each
    in proportion to its start and the factors of its tables.
    """
    levels, layout = tables.levels, start.layout
    cover = find_cover(levels, [goal.subset for goal in goals])
    drawn = tables.draw(POLICY.near_draws, rng)[:, list(cover)]
    states, counts = np.unique(drawn, axis=0, return_counts=True)
    factors = np.zeros((layout.size, len(states)))
    every = np.arange(len(states))
    for k, n in enumerate(cover):
        factors[layout.offsets[n] + states[:, k], every] = 1.0
    for n in set(range(len(levels))) - set(cover):
        with np.errstate(divide="ignore"):
            logs = np.tile(np.log(start.parts[n]), len(states))
        for goal, numbers in zip(goals, multipliers, strict=True):
            if n in goal.subset:
                axis = goal.subset.index(n)
                cube = np.moveaxis(numbers.reshape([levels[m] for m in goal.subset]), axis, 0)
                others = [states[:, cover.index(m)] for m in goal.subset if m != n]
                logs = logs + np.stack([level[*others].ravel() for level in cube])
        raised = np.exp(logs - logs.max(axis=0))
        factors[layout.rows(n)] = raised / raised.sum(axis=0)
    mixture = Model(layout, counts / counts.sum(), factors)
    return blur(merge_classes(mixture, POLICY.near_classes), start)


def blur(model: Model, independent: Model) -> Model:
    """Mix a share of independence into each class, which EM cannot lift off zero itself."""
    blurred = (1.0 - POLICY.blur) * model.factors + POLICY.blur * independent.factors
    return Model(model.layout, model.weights, blurred)


def choose_tables(
    levels: Sequence[int],
    subsets: Sequence[Subset],
    rng: np.random.Generator,
    without: Collection[Subset] = (),
) -> Iterator[Subset]:
    """Tables that a mixture is fitted to: the given ones, pairs, and some of three and four.

    Half of those of three and four variables are connected by given tables, the others are drawn
    at random. Together they have a bounded number of cells.
    """
    given = {subset for subset in subsets if not any(set(subset) < set(s) for s in subsets)}
    yield from sorted(given)
    taken, size = given | set(without), len(levels)
    pairs, cells = list(combinations(range(size), 2)), 0
    for k in rng.permutation(len(pairs)):
        cells += levels[pairs[k][0]] * levels[pairs[k][1]]
        if pairs[k] not in taken and cells <= POLICY.near_pair_cells:
            taken.add(pairs[k])
            yield pairs[k]
    near = {n: sorted({m for s in subsets if n in s for m in s} - {n}) for n in range(size)}
    cells = 0
    for share, order, connected in ((0.2, 3, True), (0.4, 4, True), (0.7, 3, False), (1, 4, False)):
        for _ in range(20 * size if order <= size else 0):
            subset = _draw_subset(size, order, near if connected else None, rng)
            more = prod(levels[n] for n in subset)
            is_new = len(subset) == order and subset not in taken
            if is_new and more <= POLICY.near_table and cells + more <= share * POLICY.near_cells:
                taken.add(subset)
                cells += more
                yield subset


def _draw_subset(
    size: int, order: int, near: dict[int, list[int]] | None, rng: np.random.Generator
) -> Subset:
    """Some variables at random; with ``near`` each next one shares a table with one before.

    It is shorter where no more variables are connected.
    """
    if near is None:
        return tuple(sorted(rng.choice(size, order, replace=False).tolist()))
    chosen = [int(rng.integers(size))]
    while len(chosen) < order:
        around = sorted({m for n in chosen for m in near[n]} - set(chosen))
        if not around:
            break
        chosen.append(int(rng.choice(around)))
    return tuple(sorted(chosen))


def judged_tables(
    levels: Sequence[int], subsets: Sequence[Subset], rng: np.random.Generator
) -> list[Subset]:
    """Some tables of four variables, or of fewer where there are fewer, that were not given."""
    order = min(4, len(levels))
    drawn = {_draw_subset(len(levels), order, None, rng) for _ in range(POLICY.judged_tables)}
    small = [s for s in drawn if prod(levels[n] for n in s) <= POLICY.judged_cells]
    return sorted(s for s in small if not any(set(s) <= set(given) for given in subsets))


def follow_tables(
    model: Model, tabulate: Tabulate, subsets: Sequence[Subset], session: Session
) -> Model:
    """Take a model towards tables of a joint by EM."""
    tables = tuple(np.maximum(tabulate(subset), 0.0) for subset in subsets)
    levels = model.layout.levels
    problem = TableProblem(levels, tuple(subsets), tables, np.ones(len(subsets)), loss=KL)
    limits = Limits(max_steps=POLICY.near_steps, progress=0.0)
    return run(Kl(dense_limit=0, limits=limits), problem, model, session).model


def finish(model: Model, goals: Sequence[Goal], session: Session) -> Run:
    """Correct a model so that it meets the goals, with published zeros at zero where it can."""

    def watch(now: Correction) -> None:
        session.unfinished[0] = _as_corrected(now)
        session.report(f"correction, step {now.steps}: tables met to {now.distance:.1e}")

    clear = exclude_zeros(model, goals)
    done = correct(clear, goals, watch=watch)
    if clear is not model and done.distance > POLICY.closely_met:
        done = min(done, correct(model, goals, watch=watch), key=lambda one: one.distance)
    return _as_corrected(done)


def compact_completion(
    model: Model, subsets: Sequence[Subset], most: int, session: Session | None = None
) -> Model:
    """Return a model of at most ``most`` classes with the same tables of some subsets.

    Classes that are nearest are merged, then taken by EM towards the given tables and others of the
    model, then corrected so that the given ones are the model's again, to 1e-7 of their mass.
    """
    if model.rank <= most:
        return model
    session = session or Session(np.random.default_rng(0))
    tabulate = tables_of_model(model)
    levels = model.layout.levels
    goals = [ExactGoal(subset, tabulate(subset).ravel()) for subset in subsets]
    own = Model(model.layout, np.ones(1), (model.factors @ model.weights)[:, None])
    few = blur(merge_classes(model, most), own)
    if len(levels) > 1:
        followed = sorted(choose_tables(levels, subsets, session.rng))
        few = follow_tables(few, tabulate, followed, session)
    return finish(few, goals, session).model.sorted()
