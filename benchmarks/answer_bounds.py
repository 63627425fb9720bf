"""Bounds of answers over all joints with given tables: right, and how long they take.

1. 200 random small problems (3 to 5 variables of 2 or 3 levels, tables of two and three variables,
   exact, rounded to multiples of 3, or with small cells suppressed; probabilities, conditional
   probabilities, expectations): does the range hold the truth, and how far are its ends from those
   of a linear program over all cells of the joint, set up here from the definition?
2. CPU time of both ends for larger sets of tables of joints of no low rank.

A smaller number of problems may be given: ``python benchmarks/answer_bounds.py 20``.
"""

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise, product

import numpy as np

from rejoint import Domain, Marginals
from rejoint.marginals.unknown import UnknownCells
from rejoint.model import FloatArray
from rejoint.queries.answer_bounds import bound_answer

Vectors = Mapping[int, FloatArray]
Subset = tuple[int, ...]
KINDS = ("exact", "rounded", "suppressed")
RECORDS = 500.0


@dataclass(frozen=True)
class Problem:
    joint: FloatArray
    tables: Marginals
    numerator: Vectors
    given: Vectors

    @property
    def truth(self) -> float:
        grid = np.indices(self.joint.shape).reshape(self.joint.ndim, -1)
        above, below = (
            float(product_at(vectors, grid) @ self.joint.ravel())
            for vectors in (self.numerator, self.given)
        )
        return above / below if below else np.nan


def random_problem(seed: int, kind: str | None = None) -> Problem:
    """A third of the joints have many empty cells; half of the questions are conditional."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 6))
    joint = rng.gamma(0.5, size=tuple(rng.integers(2, 4, size=n).tolist())) + 1e-4
    if rng.random() < 1 / 3:
        joint *= rng.random(joint.shape) < 0.5
        joint.flat[0] += 0.1
    joint /= joint.sum()
    made = tables_of(joint, random_subsets(rng, n), kind or KINDS[seed % 3], rng)
    while True:
        problem = Problem(joint, made, *random_question(rng, joint.shape))
        if np.isfinite(problem.truth):
            return problem


def random_subsets(rng: np.random.Generator, n: int) -> list[Subset]:
    """Tables of two or three variables; every variable is in one."""
    found: set[Subset] = set()
    while len(found) < 2 or {v for s in found for v in s} != set(range(n)):
        chosen = rng.choice(n, int(rng.integers(2, 4)), replace=False)
        found.add(tuple(sorted(chosen.tolist())))
    return sorted(found)


def random_question(rng: np.random.Generator, shape: Sequence[int]) -> tuple[Vectors, Vectors]:
    """Levels of two or three variables, some of them given, now and then an expectation."""
    asked = [int(v) for v in rng.permutation(len(shape))[: int(rng.integers(2, 4))]]
    levels = {v: np.eye(shape[v])[rng.integers(shape[v])] for v in asked}
    given = asked[int(rng.integers(1, len(asked))) :] if rng.random() < 0.5 else []
    numerator = dict(levels)
    if rng.random() < 0.2:
        numerator[asked[0]] = rng.normal(size=shape[asked[0]])
    return numerator, {v: levels[v] for v in given}


def tables_of(
    joint: FloatArray, subsets: Sequence[Subset], kind: str, rng: np.random.Generator
) -> Marginals:
    """Exact shares, counts rounded up or down to multiples of 3, or small counts suppressed."""
    sums = [joint.sum(axis=tuple(a for a in range(joint.ndim) if a not in s)) for s in subsets]
    flat = np.concatenate([table.ravel() for table in sums])
    tables = Marginals(Domain.of_shape(joint.shape), tuple(subsets), flat)
    if kind == "exact":
        return replace(tables, counted=np.zeros(len(subsets), dtype=bool))
    counts = RECORDS * flat
    if kind == "rounded":
        up = rng.random(counts.shape) < 0.5
        rounded = 3.0 * np.where(up, np.ceil(counts / 3), np.floor(counts / 3))
        return replace(tables, flat=rounded, rounding=np.full(len(subsets), 3.0))
    return replace(tables, flat=counts, unknown=hide(tables.starts, counts, rng))


def hide(
    starts: Sequence[int], counts: FloatArray, rng: np.random.Generator
) -> UnknownCells | None:
    """Suppress counts below 5; the sum of those of a table is known half of the time."""
    parts = []
    for start, stop in pairwise(starts):
        places = np.flatnonzero((counts[start:stop] > 0) & (counts[start:stop] < 5))
        if not len(places):
            continue
        low, high = np.zeros(len(places)), np.full(len(places), 5.0)
        if rng.random() < 0.2:
            high[0] = np.inf
        known = float(counts[start:stop][places].sum())
        sums = ((np.arange(len(places)), known),) if rng.random() < 0.5 else ()
        parts.append(UnknownCells(places, low, high, sums).shifted(int(start)))
    return UnknownCells.together(parts)


def product_at(vectors: Vectors, grid: FloatArray) -> FloatArray:
    """A product of functions of single variables at all cells."""
    values = [vector[grid[n]] for n, vector in vectors.items()]
    return np.prod([np.ones(grid.shape[1]), *values], axis=0)


def brute_force(tables: Marginals, numerator: Vectors, given: Vectors) -> tuple[float, float]:
    """Both ends by a dense program over all cells of the joint, from the definition."""
    from scipy.optimize import linprog

    shape = tables.domain.shape
    grid = np.indices(shape).reshape(len(shape), -1)
    cells = grid.shape[1]
    width = cells + len(tables) + 1  # the cells, one scale for each table, and t
    equal, under = [], []

    def add(row: FloatArray, place: int, low: float, high: float) -> None:
        """``place low <= row <= place high``."""
        upper, lower = row.copy(), -row
        upper[place] -= high if np.isfinite(high) else 0.0
        lower[place] += low
        if low == high:
            equal.append(upper)
        else:
            under.extend([upper, lower] if np.isfinite(high) else [lower])

    for i, subset in enumerate(tables.index_subsets):
        table, unknown, rounding = tables.counts_of(i), tables.unknown_of(i), tables.rounding[i]
        is_known = rounding == 0 and unknown is None
        place = width - 1 if is_known else cells + i
        hidden = {}
        if unknown is not None:
            limits = zip(unknown.low, unknown.high, strict=True)
            hidden = dict(zip(unknown.places, limits, strict=True))
        rows = []
        for k, levels in enumerate(product(*(range(shape[n]) for n in subset))):
            row = np.zeros(width)
            row[:cells] = np.all(levels == grid[list(subset)].T, axis=1)
            rows.append(row)
            value = table[levels] / (tables.totals[i] if is_known else 1.0)
            add(row, place, *hidden.get(k, (value - rounding, value + rounding)))
        for members, value in () if unknown is None else unknown.sums:
            add(sum(rows[unknown.places[m]] for m in members), place, value, value)
    for moment in tables.moments:
        row = np.zeros(width)
        row[:cells] = product_at(dict(zip(moment.variables, moment.vectors, strict=True)), grid)
        add(row, width - 1, moment.value, moment.value)
    total, norm, cost = np.zeros((3, width))
    total[:cells], norm[:cells] = 1.0, product_at(given, grid)
    cost[:cells] = product_at(numerator, grid)
    total[-1] = -1.0
    right = np.zeros(len(equal) + 2)
    right[-1] = 1.0
    ends = []
    for sign in (1, -1):
        found = linprog(
            sign * cost,
            np.array(under) if under else None,
            np.zeros(len(under)) if under else None,
            np.array([*equal, total, norm]),
            right,
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if found.status != 0:
            raise RuntimeError(found.message)
        ends.append(sign * found.fun)
    return ends[0], ends[1]


def small_problems(number: int) -> None:
    print(f"{number} random small problems")
    print("kind        problems  truth inside  sharp  largest difference of an end  CPU ms")
    for kind in KINDS:
        inside, sharp, off, seconds, problems = 0, 0, 0.0, 0.0, 0
        for seed in range(KINDS.index(kind), number, 3):
            problem = random_problem(seed)
            start = time.process_time()
            found = bound_answer(problem.tables, problem.numerator, problem.given)
            seconds += time.process_time() - start
            ends = brute_force(problem.tables, problem.numerator, problem.given)
            problems += 1
            inside += found.low - 1e-7 <= problem.truth <= found.high + 1e-7
            sharp += found.sharp
            off = max(off, abs(found.low - ends[0]), abs(found.high - ends[1]))
        print(
            f"{kind:10}  {problems:8}  {inside:12}  {sharp:5}  {off:29.1e}  "
            f"{1e3 * seconds / problems:6.1f}"
        )


def log_linear(rng: np.random.Generator, shape: Sequence[int]) -> FloatArray:
    """A joint with interactions of up to three variables: of no low rank."""
    log = np.zeros(shape)
    for order, size in ((1, 0.8), (2, 0.4), (3, 0.15)):
        for subset in combinations(range(len(shape)), order):
            along = [levels if n in subset else 1 for n, levels in enumerate(shape)]
            log = log + size * rng.normal(size=along)
    joint = np.exp(log - log.max())
    return joint / joint.sum()


def dense_tables(n: int, levels: int, order: int, kind: str, seed: int = 0) -> Problem:
    """All tables of an order of a joint; the question is about four variables."""
    rng = np.random.default_rng(seed)
    joint = log_linear(rng, (levels,) * n)
    subsets = list(combinations(range(n), order))
    first = np.eye(levels)[0]
    question = dict.fromkeys(range(4), first)
    return Problem(joint, tables_of(joint, subsets, kind, rng), question, {})


def graph_tables(edges: Sequence[tuple[int, int]], levels: int, asked: Sequence[int]) -> Problem:
    """Pair tables of a random joint on the edges of a sparse graph: those of random records."""
    rng = np.random.default_rng(0)
    n = 1 + max(max(edge) for edge in edges)
    records = np.zeros((20_000, n), dtype=int)
    for v in range(n):
        before = [min(edge) for edge in edges if max(edge) == v]
        copied = rng.random(len(records)) < 0.6 if before else np.zeros(len(records), dtype=bool)
        own = rng.choice(levels, len(records), p=rng.dirichlet(np.full(levels, 2.0)))
        records[:, v] = np.where(copied, records[:, rng.choice(before)] if before else 0, own)
    tables = []
    for a, b in edges:
        table = np.zeros((levels, levels))
        np.add.at(table, (records[:, a], records[:, b]), 1.0)
        tables.append(table.ravel())
    made = Marginals(Domain.of_shape([levels] * n), tuple(edges), np.concatenate(tables))
    vectors = {v: np.eye(levels)[0] for v in asked}
    share = np.all([records[:, v] == 0 for v in asked], axis=0).mean()
    return Problem(np.array([share, 1.0 - share]), made, vectors, {})


def pairs_of(n: int, kind: str) -> list[tuple[int, int]]:
    """The edges of a chain, a star, a cycle, or a grid that is four wide."""
    chain = [(k, k + 1) for k in range(n - 1)]
    if kind == "grid":
        across = [(k, k + 1) for k in range(n - 1) if k % 4 < 3]
        return sorted([*across, *((k, k + 4) for k in range(n - 4))])
    return {"chain": chain, "star": [(0, k) for k in range(1, n)], "cycle": [*chain, (0, n - 1)]}[
        kind
    ]


def report(name: str, problem: Problem, truth: float, given: Vectors | None = None) -> None:
    start = time.process_time()
    found = bound_answer(problem.tables, problem.numerator, given)
    seconds = time.process_time() - start
    word = "sharp" if found.sharp else "outer"
    holds = "yes" if found.low - 1e-7 <= truth <= found.high + 1e-7 else "NO"
    print(
        f"{name:38}  {found.low:9.6f}  {truth:9.6f}  {found.high:9.6f}  {holds:5}  {word}  "
        f"{seconds:6.2f}"
    )


def large_problems() -> None:
    print("\nlarger sets of tables          (CPU seconds for both ends)")
    print(f"{'tables':38}  {'low':9}  {'truth':9}  {'high':9}  holds  kind   seconds")
    warm = random_problem(0)
    bound_answer(warm.tables, warm.numerator)  # imports
    for name, order, kind in (
        ("8 x 4, all pairs", 2, "exact"),
        ("8 x 4, all triples", 3, "exact"),
        ("8 x 4, all pairs, rounded to 3 of 500", 2, "rounded"),
        ("8 x 4, all pairs, below 5 suppressed", 2, "suppressed"),
    ):
        problem = dense_tables(8, 4, order, kind)
        report(name, problem, problem.truth)
        if kind == "exact":
            given = dict(list(problem.numerator.items())[1:])
            conditional = replace(problem, given=given)
            report(f"{name}, P(a | b, c, d)", problem, conditional.truth, given)
    problem = dense_tables(8, 4, 2, "exact")
    noisy = replace(problem.tables, flat=problem.tables.flat * 10_000, counted=None, noisy=True)
    report("8 x 4, all pairs, noisy, 10,000", replace(problem, tables=noisy), problem.truth)
    problem = dense_tables(10, 3, 3, "exact")
    report("10 x 3, all triples", problem, problem.truth)
    for kind in ("chain", "star", "cycle"):
        problem = graph_tables(pairs_of(20, kind), 4, [0, 7, 13])
        report(f"20 x 4, {kind}", problem, float(problem.joint[0]))
    problem = graph_tables(pairs_of(20, "grid"), 4, [0, 7])
    report("20 x 4, grid of 5 x 4", problem, float(problem.joint[0]))
    problem = dense_tables(12, 4, 2, "exact")
    report("12 x 4, all pairs", problem, problem.truth)


if __name__ == "__main__":
    small_problems(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
    large_problems()
