"""Approximate the maximum-entropy completion where its exact mixture has too many classes.

Where a junction tree of the tables has small cliques, the completion is found on it:
``prod_C b_C / prod_S b_S`` with the tables ``b`` of cliques and of what neighboring cliques share.
Iterative proportional fitting multiplies the table of one clique at a time and passes the change on
to its neighbors, so that every table of the completion can be computed and the joint is never
formed. Where the given tables form a tree themselves, one sweep is exact.

A mixture of some thousand classes is then fitted to given tables and
to others of the completion: it begins with classes of the exact mixture, drawn by their weights and
merged. Where cliques are too large, the mean of models of many classes that EM ended early stands
for the completion, and is tilted towards independence. Either is corrected at the end, so that the
given tables are met all the same. A completion of many classes is made smaller in the same way.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import combinations
from math import prod
from string import ascii_letters
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint import kernels
from rejoint.arrays import FloatArray, outer_product, sum_to
from rejoint.cost import Cost
from rejoint.factorization.corrector import Correction, GoalCells, correct, exclude_zeros
from rejoint.factorization.early_stop import Smooth, fit_smooth
from rejoint.factorization.kl import Kl
from rejoint.factorization.loss import KL
from rejoint.factorization.max_entropy import find_cover, independent_model
from rejoint.factorization.problem import TableProblem
from rejoint.factorization.table_goals import Exact, Goal, Near, Within
from rejoint.factorization.table_policy import POLICY
from rejoint.marginals.marginals import Marginals
from rejoint.model import Model
from rejoint.pmf.compact import compact
from rejoint.queries.junction_tree import JunctionTree
from rejoint.queries.log_prob import draw_codes
from rejoint.queries.tables import Tabulate, tables_of_model
from rejoint.solver.result import FitResult
from rejoint.solver.run import run
from rejoint.solver.session import Session
from rejoint.solver.solver import Limits, Run, Stop
from rejoint.text import plural

Subset = tuple[int, ...]


class Edge(NamedTuple):
    """Two neighboring cliques, the first nearer to the root, and what they have in common."""

    above: int
    below: int
    shared: Subset


class CliqueTables:
    """Tables of cliques that agree on what they share, and the joint that they make.

    Parameters
    ----------
    levels : sequence of int
        Number of levels of each variable.
    tree : JunctionTree
        Cliques that hold every variable and every table.
    shares : sequence of array
        Shares of each variable: the joint is their product at first.

    Examples
    --------
    >>> tree = JunctionTree.of((2, 2, 2), [(0, 1), (1, 2)])
    >>> CliqueTables((2, 2, 2), tree, [np.full(2, 0.5)] * 3).table((0, 2))
    array([[0.25, 0.25],
           [0.25, 0.25]])
    """

    def __init__(
        self, levels: Sequence[int], tree: JunctionTree, shares: Sequence[FloatArray]
    ) -> None:
        self.levels, self.tree, self.cliques = tuple(levels), tree, tree.cliques
        self.edges = [Edge(*link) for link in tree.links]  # above comes before below
        self.beliefs = [outer_product([shares[n] for n in clique]) for clique in self.cliques]
        self.separators = [outer_product([shares[n] for n in edge.shared]) for edge in self.edges]

    @cached_property
    def children(self) -> list[list[int]]:
        """Edges down from each clique."""
        found: list[list[int]] = [[] for _ in self.cliques]
        for k, edge in enumerate(self.edges):
            found[edge.above].append(k)
        return found

    def sweep(self, goals: Sequence[Goal], pulls: list[FloatArray]) -> FloatArray:
        """Bring each table to its goal, clique after clique; return the share that each moved.

        ``pulls`` has the logarithms of all factors that were applied to each table, and is updated.
        """
        homes: list[list[int]] = [[] for _ in self.cliques]
        for k, goal in enumerate(goals):
            homes[self.tree.holder(goal.subset)].append(k)
        moved = np.zeros(len(goals))

        def visit(clique: int) -> None:
            for k in homes[clique]:
                moved[k] = self._aim(clique, goals[k], pulls, k)
            for edge in self.children[clique]:
                self._pass(edge, down=True)
                visit(self.edges[edge].below)
                self._pass(edge, down=False)

        visit(0)
        self.calibrate()
        return moved

    def calibrate(self) -> None:
        """Pass what the root has on to all cliques."""
        for edge in range(len(self.edges)):  # each clique comes before those below it
            self._pass(edge, down=True)
        self.__dict__.pop("_conditionals", None)

    def _aim(self, clique: int, goal: Goal, pulls: list[FloatArray], k: int) -> float:
        belief = self.beliefs[clique]
        members = self.cliques[clique]
        now = sum_to(belief, members, goal.subset)
        flat = now.ravel()
        aim = goal.aim(flat, pulls[k])
        factor = np.divide(aim, flat, out=np.zeros_like(flat), where=flat > 0.0)
        with np.errstate(divide="ignore"):
            pulls[k] = pulls[k] + np.log(factor)
        belief *= _spread(factor.reshape(now.shape), goal.subset, members)
        belief /= belief.sum()
        return 0.5 * float(np.abs(aim - flat).sum())

    def _pass(self, edge: int, *, down: bool) -> None:
        """Pass a change of one clique on to its neighbor."""
        link = self.edges[edge]
        source, target = (link.above, link.below) if down else (link.below, link.above)
        new = sum_to(self.beliefs[source], self.cliques[source], link.shared)
        old = self.separators[edge]
        ratio = np.divide(new, old, out=np.zeros_like(new), where=old > 0.0)
        self.beliefs[target] *= _spread(ratio, link.shared, self.cliques[target])
        self.separators[edge] = new

    def table(self, subset: Sequence[int]) -> FloatArray:
        """The table of some variables, increasing, of the joint."""
        asked = set(subset)
        root = max(range(len(self.cliques)), key=lambda c: len(asked & set(self.cliques[c])))
        found, members = self._collect(root, None, asked)
        return sum_to(found, members, tuple(sorted(asked)))

    def _collect(self, clique: int, came: int | None, asked: set[int]) -> tuple[FloatArray, Subset]:
        """The table of what is asked, given what is shared along the edge that it came from.

        Parts of the tree that hold nothing else that is asked sum to one.
        """
        belief, members = self.beliefs[clique], self.cliques[clique]
        shared = set() if came is None else set(self.edges[came].shared)
        if came is not None:
            belief = self._conditional(clique, came)
        factors = [(belief, members)]
        for edge in self._around[clique]:
            if edge == came:
                continue
            link = self.edges[edge]
            other = link.below if link.above == clique else link.above
            if self._reach[other, edge] & asked - set(link.shared):
                factors.append(self._collect(other, edge, asked))
        kept = set().union(*(part for _, part in factors)) & (asked | shared)
        return _contract(factors, tuple(sorted(kept)))

    def _conditional(self, clique: int, edge: int) -> FloatArray:
        """The table of a clique given what it shares along an edge."""
        if (clique, edge) not in self._conditionals:
            old = self.separators[edge]
            inverse = np.divide(1.0, old, out=np.zeros_like(old), where=old > 0.0)
            spread = _spread(inverse, self.edges[edge].shared, self.cliques[clique])
            self._conditionals[clique, edge] = self.beliefs[clique] * spread
        return self._conditionals[clique, edge]

    @cached_property
    def _conditionals(self) -> dict[tuple[int, int], FloatArray]:
        return {}

    @cached_property
    def _around(self) -> list[list[int]]:
        """Edges at each clique."""
        found: list[list[int]] = [[] for _ in self.cliques]
        for k, edge in enumerate(self.edges):
            found[edge.above].append(k)
            found[edge.below].append(k)
        return found

    @cached_property
    def _reach(self) -> dict[tuple[int, int], set[int]]:
        """Variables of the part of the tree that begins with a clique, seen along an edge."""
        found: dict[tuple[int, int], set[int]] = {}

        def look(clique: int, came: int) -> set[int]:
            if (clique, came) not in found:
                members = set(self.cliques[clique])
                for edge in self._around[clique]:
                    if edge != came:
                        link = self.edges[edge]
                        members |= look(link.below if link.above == clique else link.above, edge)
                found[clique, came] = members
            return found[clique, came]

        for k, edge in enumerate(self.edges):
            look(edge.above, k)
            look(edge.below, k)
        return found

    def draw(self, number: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """Draw records of level numbers, (number, N).

        Examples
        --------
        >>> tree = JunctionTree.of((2, 2), [(0, 1)])
        >>> CliqueTables((2, 2), tree, [np.array([0.0, 1.0])] * 2).draw(2, np.random.default_rng(0))
        array([[1, 1],
               [1, 1]])
        """
        codes = np.zeros((number, len(self.levels)), dtype=np.intp)
        self._draw_clique(codes, 0, (), rng)
        for edge in self.edges:
            self._draw_clique(codes, edge.below, edge.shared, rng)
        return codes

    def _draw_clique(
        self, codes: NDArray[np.intp], clique: int, known: Subset, rng: np.random.Generator
    ) -> None:
        """Draw the variables of a clique that are not known yet."""
        members = self.cliques[clique]
        new = tuple(n for n in members if n not in known)
        if not new:
            return
        order = [members.index(n) for n in (*known, *new)]
        rows = prod(self.levels[n] for n in known)
        table = self.beliefs[clique].transpose(order).reshape(rows, -1)
        cumulative = np.cumsum(table, axis=1)
        row = np.zeros(len(codes), dtype=np.intp)
        for n in known:
            row = row * self.levels[n] + codes[:, n]
        total = np.maximum(cumulative[:, -1:], 1e-300)
        # Rows one after another, each of length one: one search for all records.
        line = (cumulative / total + np.arange(rows)[:, None]).ravel()
        at = np.searchsorted(line, row + rng.random(len(codes)), side="right")
        last = table.shape[1] - 1 - np.argmax(table[:, ::-1] > 0.0, axis=1)
        cell = np.minimum(at - row * table.shape[1], last[row])
        for n, level in zip(
            new, np.unravel_index(cell, [self.levels[n] for n in new]), strict=True
        ):
            codes[:, n] = level


def _spread(table: FloatArray, subset: Subset, members: Subset) -> FloatArray:
    """A table with axes of length one for the variables that it does not have."""
    shape = iter(table.shape)
    return table.reshape([next(shape) if n in subset else 1 for n in members])


def _contract(
    factors: Sequence[tuple[FloatArray, Subset]], kept: Subset
) -> tuple[FloatArray, Subset]:
    """Multiply tables and sum to some of their variables."""
    names = sorted({n for _, members in factors for n in members})
    letters = dict(zip(names, ascii_letters, strict=False))

    def spell(members: Subset) -> str:
        return "".join(letters[n] for n in members)

    found, members = factors[0]
    for at, (table, others) in enumerate(factors[1:], start=2):
        later = {n for _, rest in factors[at:] for n in rest}
        wanted = tuple(sorted({*members, *others} & (later | set(kept))))
        found = np.einsum(f"{spell(members)},{spell(others)}->{spell(wanted)}", found, table)
        members = wanted
    return sum_to(found, members, kept), kept


#: Makes the result of a run and of the sentence that says what it approximates.
Conclude = Callable[[Run, str], FitResult]

#: Tables of four variables, not fitted, by which the distance to the completion is measured.
JUDGED_TABLES = 40

#: Cells of the largest table that a mixture is fitted to beside the given ones.
LARGEST_TABLE = 1500

#: Share of independence in the classes that EM begins with, which it cannot lift off zero itself.
BLUR = 1e-3

#: Classes times cells times steps of the correction of a fit that was interrupted: a second or so.
HASTE = 30_000_000

#: Seconds for each cell of the tables, class and model of a mean, at the least and at the most: all
#: pairs of 40 variables of 4 levels take 3 s where they are of a sample.
SECONDS = (1e-7, 1e-6)

#: Weight of the present model in a tilt, in records for each class.
TILT_PRIOR = 2.0


def complete_approximately(
    marginals: Marginals, goals: Sequence[Goal], session: Session, conclude: Conclude
) -> FitResult:
    """Meet tables by a mixture that approximates their maximum-entropy completion.

    Parameters
    ----------
    marginals : Marginals
        The tables.
    goals : sequence of Goal
        What is asked of each.
    session : Session
        Randomness and progress; it is offered the best model so far.
    conclude : callable
        Makes the result of a run and of a sentence about what it approximates.

    Examples
    --------
    >>> import rejoint as rj
    >>> from rejoint.factorization.table_goals import exact_goals
    >>> tables = {("a", "b"): [[4, 1], [1, 4]], ("b", "c"): [[3, 2], [2, 3]]}
    >>> marginals = rj.Marginals.from_tables(tables)
    >>> session = Session(np.random.default_rng(0))
    >>> found = complete_approximately(
    ...     marginals, exact_goals(marginals), session, lambda run, text: run
    ... )
    >>> found.objective < 1e-6
    True
    """
    levels = marginals.domain.shape
    subsets = [goal.subset for goal in goals]
    start = independent_model(levels, goals)
    said = _describe_size(levels, subsets)

    def offer(text: str) -> None:
        session.offer(lambda: _conclude_so_far(session, goals, conclude, text))

    session.unfinished.clear()
    session.unfinished[0] = _as_run(start, goals)
    offer(said)
    tree = JunctionTree.of(levels, [*subsets, *((n,) for n in range(len(levels)))])
    if tree.cells(levels) <= POLICY.most_clique_cells:
        tables = CliqueTables(levels, tree, [part[:, 0] for part in start.parts])
        pulls = fit_cliques(tables, goals, session)
        model = draw_mixture(tables, start, goals, pulls, POLICY.near_draws, session.rng)
        judged = judged_tables(levels, subsets, session.rng)
        followed = sorted(choose_tables(levels, subsets, session.rng, without=judged))
        model = blur(model, start)
        session.unfinished[0] = _as_run(model, goals)
        model = follow_tables(model, tables.table, followed, session)
        exact = [goal if _can_be_met(goal) else _replace(goal, tables.table) for goal in goals]
        done = finish(model, exact, session)
        said += _describe_distance(done.model, tables.table, judged)
    else:
        rank = Smooth().rank(marginals)
        most = POLICY.loose_numbers // (rank * max(marginals.flat.size, 1))
        smooth = Smooth(members=min(max(most, 3), POLICY.loose_members))
        cells = float(marginals.flat.size)
        Cost(64.0 * cells, *(cells * rank * smooth.members * each for each in SECONDS)).check(
            f"A joint of {plural(len(goals), 'table')}", "a given rank or fewer tables take less"
        )
        mean = fit_smooth(marginals, smooth, rank, "equal", session).pmf
        model = Model.of(mean.weights, mean.factors)
        session.unfinished.clear()
        session.unfinished[0] = _as_run(model, goals)
        offer(said)
        said += " The approximation error was not measured."
        if any(isinstance(goal, Near) for goal in goals):
            return conclude(_as_run(model, goals), said)
        done = finish(loosen(model, start, goals, session), goals, session)
    return conclude(done, said)


def _conclude_so_far(
    session: Session, goals: Sequence[Goal], conclude: Conclude, text: str
) -> FitResult:
    """The result of a fit that was interrupted: some steps of correction take little time."""
    model = session.unfinished[0].model
    found = _as_run(model, goals)
    if model.rank > 1 and all(map(_can_be_met, goals)):
        steps = HASTE // max(model.rank * int(GoalCells.of(model, goals).starts[-1]), 1)
        found = _as_corrected(correct(model, goals, max_steps=min(steps, 20)))
    return conclude(replace(found, stop=Stop.INTERRUPTED), text)


def _as_run(model: Model, goals: Sequence[Goal]) -> Run:
    cells = GoalCells.of(model, goals)
    tables = cells.of_model(model)
    return _as_corrected(
        Correction(model, float(cells.distances(cells.aim(goals, tables), tables).max()), 0)
    )


def _as_corrected(done: Correction) -> Run:
    stop = Stop.OPTIMAL if done.distance <= POLICY.closely_met else Stop.STALLED
    return Run(done.model, done.distance, done.distance, done.distance, stop)


def _describe_size(levels: Sequence[int], subsets: Sequence[Subset]) -> str:
    classes = prod(levels[n] for n in find_cover(levels, subsets))
    return (
        "The model approximates the joint nearest to independence that meets the tables (maximum "
        f"entropy), whose exact mixture has {plural(classes, 'class', 'classes')}."
    )


def _describe_distance(model: Model, tabulate: Tabulate, subsets: Sequence[Subset]) -> str:
    if not subsets:
        return ""
    distance = measure_distance(model, tabulate, subsets)
    return (
        f" In tables of {plural(len(subsets[0]), 'variable')} that were not given, {distance:.2g} "
        "of the mass is in different cells than in that joint, on average."
    )


def measure_distance(model: Model, tabulate: Tabulate, subsets: Sequence[Subset]) -> float:
    """Mean total variation distance between tables of a model and of a joint."""
    cells = GoalCells(model.layout, tuple(subsets))
    tables = np.concatenate([tabulate(subset).ravel() for subset in subsets])
    return float(cells.distances(cells.of_model(model), tables).mean())


def _can_be_met(goal: Goal) -> bool:
    return isinstance(goal, Exact | Within)


def _replace(goal: Goal, tabulate: Tabulate) -> Goal:
    return Exact(goal.subset, tabulate(goal.subset).ravel())


def fit_cliques(tables: CliqueTables, goals: Sequence[Goal], session: Session) -> list[FloatArray]:
    """Bring the tables of cliques to the goals; return the logarithms of the factors applied."""
    pulls = [np.zeros(prod(tables.levels[n] for n in goal.subset)) for goal in goals]
    for sweep in range(1, POLICY.max_clique_sweeps + 1):
        worst = float(tables.sweep(goals, pulls).max(initial=0.0))
        session.report(
            f"completion on {plural(len(tables.cliques), 'clique')}, sweep {sweep}: {worst:.1e}"
        )
        if worst <= POLICY.met:
            break
    return pulls


def draw_mixture(
    tables: CliqueTables,
    start: Model,
    goals: Sequence[Goal],
    pulls: Sequence[FloatArray],
    number: int,
    rng: np.random.Generator,
) -> Model:
    """Classes of the exact mixture, drawn by their weights and merged to some thousand.

    A class is a combination of levels of a cover; in it the other variables are independent, each
    in proportion to its start and the factors of its tables.
    """
    levels, layout = tables.levels, start.layout
    cover = find_cover(levels, [goal.subset for goal in goals])
    drawn = tables.draw(number, rng)[:, list(cover)]
    states, counts = np.unique(drawn, axis=0, return_counts=True)
    factors = np.zeros((layout.size, len(states)))
    every = np.arange(len(states))
    for k, n in enumerate(cover):
        factors[layout.offsets[n] + states[:, k], every] = 1.0
    for n in set(range(len(levels))) - set(cover):
        with np.errstate(divide="ignore"):
            logs = np.tile(np.log(start.parts[n]), len(states))
        for goal, pull in zip(goals, pulls, strict=True):
            if n in goal.subset:
                axis = goal.subset.index(n)
                cube = np.moveaxis(pull.reshape([levels[m] for m in goal.subset]), axis, 0)
                others = [m for m in goal.subset if m != n]
                cell = np.zeros(len(states), dtype=np.intp)
                for m in others:
                    cell = cell * levels[m] + states[:, cover.index(m)]
                logs = logs + cube.reshape(levels[n], -1)[:, cell]
        raised = np.exp(logs - logs.max(axis=0))
        factors[layout.rows(n)] = raised / raised.sum(axis=0)
    whole = Model(layout, counts / number, factors)
    return merge_classes(whole, POLICY.near_classes)


def merge_classes(model: Model, most: int) -> Model:
    """The model with at most ``most`` classes, the nearest ones merged.

    Examples
    --------
    >>> wide = Model.of([0.25] * 4, [[[0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 0.0, 0.0]]])
    >>> merge_classes(wide, 2).factors
    array([[1., 0.],
           [0., 1.]])
    """
    if model.rank <= most:
        return model
    heavy = np.argsort(-model.weights, kind="stable")[: max(most // 4, 1)]
    return compact([model], model.take(heavy), most)


def blur(model: Model, start: Model) -> Model:
    """Mix a share of independence into each class."""
    return Model(model.layout, model.weights, (1.0 - BLUR) * model.factors + BLUR * start.factors)


def choose_tables(
    levels: Sequence[int],
    subsets: Sequence[Subset],
    rng: np.random.Generator,
    without: Collection[Subset] = (),
) -> Iterator[Subset]:
    """Tables that a mixture is fitted to: the given ones, pairs, and some of three and four.

    Half of those of three and four variables are connected by given tables, the others are drawn
    at random. Together they have a bounded number of cells.

    Examples
    --------
    >>> sorted(choose_tables((2, 2, 2), [(0, 1), (1, 2)], np.random.default_rng(0)))
    [(0, 1), (0, 1, 2), (0, 2), (1, 2)]
    """
    taken = {subset for subset in subsets if not any(set(subset) < set(s) for s in subsets)}
    yield from sorted(taken)
    taken |= set(without)
    size = len(levels)
    near = {n: sorted({m for s in subsets if n in s for m in s} - {n}) for n in range(size)}
    room, pair_room = POLICY.near_cells, POLICY.near_pair_cells

    def fits(subset: Subset, left: float) -> bool:
        nonlocal room
        cells = prod(levels[n] for n in subset)
        if subset in taken or cells > LARGEST_TABLE or room - cells < left * POLICY.near_cells:
            return False
        taken.add(subset)
        room -= cells
        return True

    pairs = list(combinations(range(size), 2))
    for k in rng.permutation(len(pairs)):
        pair_room -= levels[pairs[k][0]] * levels[pairs[k][1]]
        if pairs[k] not in taken and pair_room >= 0:
            taken.add(pairs[k])
            yield pairs[k]
    for left, order, connected in ((0.8, 3, True), (0.6, 4, True), (0.3, 3, False), (0, 4, False)):
        for _ in range(20 * size if order <= size else 0):
            chosen = _draw_subset(size, order, near if connected else None, rng)
            if chosen is not None and fits(chosen, left):
                yield chosen


def _draw_subset(
    size: int, order: int, near: dict[int, list[int]] | None, rng: np.random.Generator
) -> Subset | None:
    """Some variables at random; with ``near`` each next one shares a table with one before."""
    if near is None:
        return tuple(sorted(rng.choice(size, order, replace=False).tolist()))
    found = [int(rng.integers(size))]
    while len(found) < order:
        around = sorted({m for n in found for m in near[n]} - set(found))
        if not around:
            return None
        found.append(int(rng.choice(around)))
    return tuple(sorted(found))


def judged_tables(
    levels: Sequence[int], subsets: Sequence[Subset], rng: np.random.Generator
) -> list[Subset]:
    """Some tables of four variables, or of fewer where there are fewer, that were not given.

    Examples
    --------
    >>> judged_tables((2, 2, 2), [(0, 1), (1, 2)], np.random.default_rng(0))
    [(0, 1, 2)]
    """
    order = min(4, len(levels))
    drawn = (_draw_subset(len(levels), order, None, rng) for _ in range(JUDGED_TABLES))
    small = {s for s in drawn if s is not None and prod(levels[n] for n in s) <= 10_000}
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
    clear = exclude_zeros(model, goals)
    done = _correct(clear, goals, session, POLICY.closely_met)
    if clear is not model and done.distance > POLICY.closely_met:
        other = _correct(model, goals, session, POLICY.closely_met)
        done = min(done, other, key=lambda each: each.distance)
    return _as_corrected(done)


def _correct(model: Model, goals: Sequence[Goal], session: Session, tolerance: float) -> Correction:
    def watch(now: Correction) -> None:
        session.unfinished[0] = _as_corrected(now)
        session.report(f"correction, step {now.steps}: tables met to {now.distance:.1e}")

    return correct(model, goals, tolerance=tolerance, watch=watch)


def loosen(model: Model, start: Model, goals: Sequence[Goal], session: Session) -> Model:
    """Tilt a model towards independence, step by step, each corrected roughly."""
    model = _correct(model, goals, session, POLICY.roughly_met).model
    for number in range(1, POLICY.tilts + 1):
        session.report(f"tilt {number} of {POLICY.tilts} towards independence")
        moved = tilt(model, start.factors[:, 0], session.rng)
        done = _correct(moved, goals, session, POLICY.roughly_met)
        if done.distance > POLICY.roughly_met:
            break
        model = done.model
    return model


def tilt(model: Model, shares: FloatArray, rng: np.random.Generator) -> Model:
    """Move a model towards independence by a step of EM on records that are drawn from it.

    Records of ``q`` get weights ``(prod own / q)^eps``, as large an ``eps`` as leaves a given
    effective sample size. The same records without weights are what the step is relative to, so
    that their noise cancels.

    Examples
    --------
    >>> model = Model.of([0.5, 0.5], [[[0.9, 0.1], [0.1, 0.9]]] * 2)
    >>> moved = tilt(model, np.full(4, 0.5), np.random.default_rng(0))
    >>> bool(np.ptp(moved.factors) < np.ptp(model.factors))
    True
    """
    layout, number = model.layout, POLICY.tilt_draws
    codes = draw_codes(
        model.weights, model.parts, number, rng, classes=stratify(model.weights, number, rng)
    )
    parts = (model.weights, model.factors, layout.levels, kernels.available_threads())
    own = np.log(np.maximum(shares, 1e-300))[codes + layout.offsets[:-1]].sum(axis=1)
    away = own - kernels.class_log_prob(codes, *parts)
    power, weight = 0.5, np.ones(number)
    while power > 1e-3:
        weight = np.exp(power * (away - away.max()))
        weight /= weight.mean()
        if number >= POLICY.tilt_share * float(weight @ weight):
            break
        power *= 0.8
    _, heavy, levels = kernels.class_pass(codes, weight, *parts)
    _, heavy_before, levels_before = kernels.class_pass(codes, None, *parts)
    weights = model.weights * (heavy + TILT_PRIOR) / (heavy_before + TILT_PRIOR)
    prior = TILT_PRIOR * np.maximum(model.factors, 1e-12)
    factors = model.factors * (levels + prior) / (levels_before + prior)
    return Model(layout, weights / weights.sum(), layout.normalize(factors))


def stratify(weights: FloatArray, number: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Classes of some records, each as often as its weight says, up to one.

    Examples
    --------
    >>> stratify(np.array([0.5, 0.25, 0.25]), 4, np.random.default_rng(0))
    array([0, 0, 1, 2])
    """
    ends = np.cumsum(weights / weights.sum()) * number
    points = np.arange(number) + rng.random()
    found = np.searchsorted(ends, points, side="right")
    return np.minimum(found, len(weights) - 1).astype(np.intp)


def compact_completion(
    model: Model, subsets: Sequence[Subset], most: int, session: Session | None = None
) -> Model:
    """Return a model of at most ``most`` classes with the same tables of some subsets.

    Classes that are nearest are merged, then taken by EM towards the given tables and others of the
    model, then corrected so that the given ones are the model's again, to 1e-7 of their mass.

    Parameters
    ----------
    model : Model
        A completion of many classes.
    subsets : sequence of tuple of int
        The variables of the tables that it was made from, increasing.
    most : int
        Classes at the most.
    session : Session, optional
        Randomness and progress.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> wide = Model.of(rng.dirichlet(np.ones(60)), [rng.dirichlet([1, 1], 60).T] * 3)
    >>> few = compact_completion(wide, [(0, 1), (1, 2)], 20)
    >>> gap = tables_of_model(few)((0, 1)) - tables_of_model(wide)((0, 1))
    >>> few.rank, bool(np.abs(gap).max() < 1e-7)
    (20, True)
    """
    if model.rank <= most:
        return model
    session = session or Session(np.random.default_rng(0))
    tabulate = tables_of_model(model)
    levels = model.layout.levels
    goals = [Exact(subset, tabulate(subset).ravel()) for subset in subsets]
    own = Model(model.layout, np.ones(1), (model.factors @ model.weights)[:, None])
    few = blur(merge_classes(model, most), own)
    if len(levels) > 1:
        followed = sorted(choose_tables(levels, subsets, session.rng))
        few = follow_tables(few, tabulate, followed, session)
    return finish(few, goals, session).model.sorted()
