"""The verdict on the joint against what fits find, and how long the largest Jacobian test takes.

1. 200 random problems: 4 to 8 variables of 2 to 4 levels, random tables of two to four variables,
   a random rank. ``identifiability.jacobian`` says whether the joint is locally unique; ten fits
   from random starts to exact tables say whether another joint meets them. Where the two differ,
   why: a second solution far away, a direction too short to notice, or no fit at all.
2. ``jacobian`` for N = 50, I = 5, F = 50.

A smaller number of problems may be given: ``python benchmarks/identifiability.py 20``.
"""

import sys
import time
import warnings
from dataclasses import dataclass
from math import comb

import numpy as np

import rejoint as rj
from rejoint.factorization.fit_tables import fit_tables
from rejoint.solver.session import Session

RUNS = 10

#: Relative error of the tables that counts as met, and of the joint that counts as the same.
#: The first over the smallest singular values met here (1e-4) is well below the second.
MET, SAME = 1e-9, 1e-4


@dataclass(frozen=True)
class Problem:
    seed: int
    truth: rj.LowRankPMF
    subsets: list[tuple[str, ...]]

    def words(self) -> str:
        tables = " ".join("".join(name[1:] for name in s) for s in self.subsets)
        levels = "".join(map(str, self.truth.domain.shape))
        return f"{self.seed:4}  levels {levels:8}  rank {self.truth.rank}  tables {tables}"


@dataclass(frozen=True)
class Practice:
    met: int  # runs that met the tables, up to the first that found another joint
    away: float  # how far the furthest of their joints is from the truth
    other: rj.LowRankPMF | None  # that joint

    @property
    def unique(self) -> bool | None:
        return None if not self.met else self.away < SAME


def random_problem(seed: int) -> Problem:
    """Every variable in a table; weights and factors evenly from the simplex, none of them tiny."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(4, 9))
    levels = rng.integers(2, 5, size)
    rank = int(rng.integers(2, 7))
    most = min(size - 1, 4)
    subsets: set[tuple[int, ...]] = set()
    there = sum(comb(size, order) for order in range(2, most + 1))
    wanted = min(int(rng.integers(2, 13)), there)
    while len(subsets) < wanted or {n for s in subsets for n in s} != set(range(size)):
        order = int(rng.integers(2, most + 1))
        subsets.add(tuple(sorted(int(n) for n in rng.permutation(size)[:order])))
    factors = [rng.dirichlet(np.ones(i), size=rank).T for i in levels]
    weights = rng.dirichlet(np.full(rank, 3.0))
    names = [tuple(f"x{n}" for n in s) for s in sorted(subsets)]
    return Problem(seed, rj.LowRankPMF(weights, factors), names)


def verdict(problem: Problem) -> rj.identifiability.LocalIdentifiability:
    return rj.identifiability.jacobian(
        problem.truth.domain, problem.truth.rank, subsets=problem.subsets
    )


def practise(problem: Problem, runs: int = RUNS, near: bool = False) -> Practice:
    """Fits from random starts, or from starts near the truth."""
    tables = rj.Marginals.from_pmf(problem.truth, subsets=problem.subsets)
    met, away, other = 0, 0.0, None
    for seed in range(runs):
        start = shaken(problem.truth, seed) if near else "random"
        session = Session(np.random.default_rng(seed))
        fit = fit_tables(tables, problem.truth.rank, "auto", session, start=start, n_init=1)
        if fit.error > MET:
            continue
        met += 1
        error = rj.metrics.tensor_error(problem.truth, fit.pmf)
        if error > away:
            away, other = error, fit.pmf
        if away > SAME:
            break  # a second joint is there: further runs cannot take it back
    return Practice(met, away, other)


def shaken(truth: rj.LowRankPMF, seed: int, share: float = 0.1) -> rj.LowRankPMF:
    """The truth with a share of a random model mixed into every column."""
    rng = np.random.default_rng(seed)
    factors = [
        (1 - share) * a + share * rng.dirichlet(np.ones(len(a)), size=truth.rank).T
        for a in truth.factors
    ]
    return rj.LowRankPMF(truth.weights, factors, truth.domain)


def explain(
    problem: Problem, local: rj.identifiability.LocalIdentifiability, found: Practice
) -> str:
    """Why the two differ, by what can be checked."""
    if found.unique is None:
        close = practise(problem, near=True)
        said = {True: "one joint", False: "several joints", None: "nothing"}[close.unique]
        word = "agrees" if close.unique is local.joint else "does not tell"
        return (
            f"locally unique: {local.joint}; no run met the tables. From near the truth "
            f"{close.met} did and found {said}, {close.away:.1e} away at most, which {word}"
        )
    if local.joint:
        at = rj.identifiability.jacobian(at=found.other, subsets=problem.subsets)
        isolated = {True: "isolated, too", False: "not isolated", None: "undecided there"}
        return (
            f"a second joint, {found.away:.1e} away ({isolated[at.joint]}, smallest singular "
            f"value {at.smallest:.0e}): local is not global"
        )
    names = list(problem.truth.domain.names)
    gap = rj.identifiability.ambiguity(problem.truth, names, subsets=problem.subsets)
    return (
        f"{local.open} open directions; the runs ended at most {found.away:.1e} away, a walk "
        f"{gap.distance:.1e} in total variation"
    )


def compare(
    seeds: range, runs: int = RUNS
) -> list[tuple[Problem, rj.identifiability.LocalIdentifiability, Practice]]:
    rows = []
    for seed in seeds:
        problem = random_problem(seed)
        rows.append((problem, verdict(problem), practise(problem, runs)))
    return rows


def main(count: int) -> None:
    print(f"1. verdict on the joint and {RUNS} fits from random starts, {count} random problems")
    warnings.simplefilter("ignore", rj.Remark)  # tables without a variable in common
    begun = time.perf_counter()
    table = {}
    for seed in range(count):
        problem = random_problem(seed)
        local, found = verdict(problem), practise(problem)
        key = (local.joint, found.unique)
        table[key] = table.get(key, 0) + 1
        if local.joint != found.unique:
            print(f"   {problem.words()}\n         {explain(problem, local, found)}", flush=True)
    print("   locally unique   one joint met   several   none met")
    for joint in (True, False):
        counts = [table.get((joint, unique), 0) for unique in (True, False, None)]
        print(f"   {joint!s:14} {counts[0]:15} {counts[1]:9} {counts[2]:10}")
    print(f"   {time.perf_counter() - begun:.0f} s")
    begun = time.perf_counter()
    local = rj.identifiability.jacobian([5] * 50, 50, order=3)
    print(f"2. N = 50, I = 5, F = 50: {time.perf_counter() - begun:.0f} s. {local.verdict}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
