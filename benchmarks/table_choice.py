"""Low rank or maximum entropy: the choice for exact tables, and its regret for tables of samples.

Exact tables: 13 joints of known kind; the right model must be chosen, and a low rank come back.
Sampled tables: joints of low rank, log-linear joints with interactions of two to four variables,
and halves of real data; tables of all pairs, all triples, or some of both. The error is the mean
total variation over tables of four variables, against the truth or the other half. The regret is
the error of the chosen model over the smallest one of all that were fitted: all ranks, soft goals
with a spread of .5, hard goals, interactions with estimated spreads, and ``solver="smooth"``.

    REJOINT_DATA=... python benchmarks/table_choice.py [--seed 1000] [--cases 12 12 9] [--exact]
"""

import argparse
import itertools
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import rejoint as rj
from rejoint.factorization.exact_rank import fit_identified
from rejoint.factorization.max_entropy import (
    Ipf,
    independent_model,
    make_completion_problem,
)
from rejoint.factorization.rank_evidence import SmoothedTables, fit_rank
from rejoint.factorization.table_choice import choose_for_sample
from rejoint.factorization.table_goals import exact_goals, soft_goals
from rejoint.model import Layout
from rejoint.queries.tables import tables_of_model
from rejoint.solver.session import Session

Array = NDArray[np.float64]
Subset = tuple[int, ...]
Tabulate = Callable[[Subset], Array]

ADULT = (
    *("workclass", "education", "marital-status", "occupation", "relationship"),
    *("race", "sex", "income"),
)
RANKS = (2, 3, 4, 5, 6, 8, 10, 13)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1000, help="seed of the first case of a kind")
    parser.add_argument("--cases", type=int, nargs=3, default=(12, 12, 9), help="of each kind")
    parser.add_argument("--exact", action="store_true", help="only the exact tables")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    exact_cases()
    if args.exact:
        return
    regrets: dict[str, list[dict[str, float]]] = {}
    for kind, number in zip(("low rank", "log-linear", "real"), args.cases, strict=True):
        for seed in range(args.seed, args.seed + number):
            case = make_case(kind, seed)
            line, text = one_case(case, seed)
            regrets.setdefault(kind, []).append(line)
            print(text, flush=True)
    every = [line for lines in regrets.values() for line in lines]
    print("\nregret: mean, worst, within 10 %, mean by kind")
    for method in every[0]:
        values = np.array([line[method] for line in every])
        parts = ", ".join(
            f"{kind} {np.mean([line[method] for line in lines]):.3f}"
            for kind, lines in regrets.items()
        )
        if method == "seconds":
            print(f"CPU seconds of the choice: mean {values.mean():.2f}, most {values.max():.2f}")
        else:
            print(
                f"{method:28} {values.mean():.3f}  {values.max():.2f}  "
                f"{(values <= 1.1).sum()} of {len(values)}  ({parts})"
            )


# Exact tables


def exact_cases() -> None:
    right = 0
    print("exact tables")
    for name, joint, order, low in exact_joints():
        names = [f"v{n}" for n in range(joint.ndim)]
        marginals = all_tables(joint, order, names)
        began = time.process_time()
        found = fit_identified(marginals, Session(np.random.default_rng(0)))
        seconds = time.process_time() - began
        off = np.nan
        if found is not None:
            off = 0.5 * float(np.abs(found.pmf.marginal(names) - joint).sum())
        good = (found is not None and off < 1e-9) if low else found is None
        right += good
        chosen = "maximum entropy" if found is None else f"rank {found.pmf.rank}, tv {off:.1e}"
        print(f"  {name:28} {chosen:28} {'right' if good else 'WRONG'}  {seconds:.2f} s")
    print(f"  {right} of 13 right\n")


def exact_joints() -> Iterator[tuple[str, Array, int, bool]]:
    for rank, levels in (
        (2, (3,) * 5),
        (3, (3,) * 5),
        (5, (3,) * 6),
        (8, (3,) * 6),
        (15, (10,) * 5),
    ):
        rng = np.random.default_rng(rank)
        yield f"rank {rank}, {levels}, triples", low_rank(rng, levels, rank), 3, True
    for order in (2, 3, 4):
        rng = np.random.default_rng(order)
        yield f"log-linear of order {order}, triples", log_linear(rng, (3,) * 5, order), 3, False
    rng = np.random.default_rng(9)
    yield "Dirichlet, triples", rng.dirichlet(np.ones(3**5)).reshape((3,) * 5), 3, False
    for rank in (2, 3):
        yield f"rank {rank}, pairs", low_rank(rng, (3,) * 5, rank), 2, False
    yield "log-linear, pairs", log_linear(rng, (3,) * 5, 3), 2, False
    steps = [rng.dirichlet(np.ones(3), size=3) for _ in range(4)]
    chain = rng.dirichlet(np.ones(3))
    for step in steps:
        chain = chain[..., None] * step
    yield "chain, triples", chain, 3, False


def all_tables(joint: Array, order: int, names: list[str]) -> rj.Marginals:
    tables = {}
    for subset in itertools.combinations(range(joint.ndim), order):
        gone = tuple(n for n in range(joint.ndim) if n not in subset)
        tables[tuple(names[n] for n in subset)] = joint.sum(axis=gone)
    return rj.Marginals.from_tables(tables)


# Joints


def low_rank(rng: np.random.Generator, levels: Subset, rank: int) -> Array:
    weights = rng.dirichlet(np.full(rank, 3.0))
    joint = np.zeros(levels)
    factors = [rng.dirichlet(np.full(k, rng.choice([0.7, 1.0, 2.0])), size=rank).T for k in levels]
    for f in range(rank):
        part = np.array(weights[f])
        for factor in factors:
            part = np.multiply.outer(part, factor[:, f])
        joint += part
    return joint


def log_linear(rng: np.random.Generator, levels: Subset, order: int) -> Array:
    spread = {1: 0.7, 2: rng.uniform(0.2, 0.7), 3: rng.uniform(0.1, 0.4), 4: rng.uniform(0.1, 0.3)}
    joint = np.zeros(levels)
    for size in range(1, order + 1):
        for subset in itertools.combinations(range(len(levels)), size):
            shape = [k if n in subset else 1 for n, k in enumerate(levels)]
            joint = joint + rng.normal(0.0, spread[size], shape)
    joint = np.exp(joint - joint.max())
    return joint / joint.sum()


# Sampled tables


@dataclass(frozen=True)
class Case:
    """Tables of a sample, and the tables of four variables that judge."""

    name: str
    tables: rj.Marginals
    judge: list[tuple[Subset, Array]]

    def error(self, tabulate: Tabulate) -> float:
        """Mean total variation."""
        gaps = [np.abs(tabulate(s).ravel() - table.ravel()).sum() for s, table in self.judge]
        return 0.5 * float(np.mean(gaps))


def make_case(kind: str, seed: int) -> Case:
    rng = np.random.default_rng([seed, ("low rank", "log-linear", "real").index(kind)])
    which = ("triples", "mixed", "pairs", "triples")[rng.integers(4)]
    if kind == "real":
        what = ("car", "nursery", "adult", "votes84", "mushroom")[rng.integers(5)]
        seen, unseen = real_halves(rng, what)
        truth = unseen / unseen.sum()
    else:
        levels = draw_levels(rng)
        records = int(10 ** rng.uniform(2.7, 5))
        if kind == "low rank":
            rank = int(rng.integers(2, 9))
            truth, what = low_rank(rng, levels, rank), f"rank {rank}"
        else:
            order = int(rng.integers(2, 5))
            truth, what = log_linear(rng, levels, order), f"order {order}"
        seen = rng.multinomial(records, truth.ravel()).reshape(levels).astype(float)
    subsets = draw_subsets(rng, which, seen.ndim)
    fours = list(itertools.combinations(range(seen.ndim), 4))
    if len(fours) > 40:
        fours = [fours[i] for i in rng.choice(len(fours), 40, replace=False)]
    domain = rj.Domain.of({f"v{n}": size for n, size in enumerate(seen.shape)})
    cells = np.concatenate([margin(seen, s).ravel() for s in subsets])
    tables = rj.Marginals(domain, tuple(subsets), cells, noisy=True)
    name = f"{kind} {seed} ({what}), {which}, {seen.shape}, n = {seen.sum():.0f}"
    return Case(name, tables, [(s, margin(truth, s)) for s in fours])


def margin(joint: Array, subset: Subset) -> Array:
    table: Array = joint.sum(axis=tuple(n for n in range(joint.ndim) if n not in subset))
    return table


def draw_levels(rng: np.random.Generator) -> Subset:
    while True:
        number = int(rng.integers(5, 9))
        levels = tuple(int(k) for k in rng.integers(2, 5, number))
        if rng.random() < 0.5:
            levels = (int(rng.integers(2, 5)),) * number
        if 64 <= np.prod(levels) <= 8100:
            return levels


def draw_subsets(rng: np.random.Generator, which: str, number: int) -> list[Subset]:
    pairs, triples = (list(itertools.combinations(range(number), k)) for k in (2, 3))
    if which != "mixed":
        return pairs if which == "pairs" else triples
    while True:
        size = rng.integers(max(2, len(triples) // 6), max(3, len(triples) // 2) + 1)
        chosen = [triples[i] for i in rng.choice(len(triples), size, replace=False)]
        inside = {pair for triple in chosen for pair in itertools.combinations(triple, 2)}
        chosen += [pair for pair in pairs if pair not in inside and rng.random() < 0.6]
        if len({n for s in chosen for n in s}) == number:
            return sorted(chosen, key=lambda s: (len(s), s))


def real_halves(rng: np.random.Generator, name: str) -> tuple[Array, Array]:
    columns = getattr(rj.datasets, {"votes84": "votes"}.get(name, name))(backend="dict")
    names = [c for c in columns if name != "adult" or c in ADULT]
    while True:
        number = min(int(rng.integers(5, 8)), len(names))
        chosen = [names[i] for i in sorted(rng.choice(len(names), number, replace=False))]
        codes = np.stack(
            [np.unique([str(x) for x in columns[c]], return_inverse=True)[1] for c in chosen], 1
        )
        levels = tuple(int(c.max()) + 1 for c in codes.T)
        if min(levels) >= 2 and np.prod(levels) <= 12_000:
            break
    order = rng.permutation(len(codes))
    seen, unseen = codes[order[: len(order) // 2]], codes[order[len(order) // 2 :]]
    if len(seen) > 3000 and rng.random() < 0.4:
        seen = seen[: int(rng.choice([1000, 3000]))]
    flat = [np.ravel_multi_index(part.T, levels) for part in (seen, unseen)]
    cells = int(np.prod(levels))
    return tuple(  # type: ignore[return-value]
        np.bincount(part, minlength=cells).reshape(levels).astype(float) for part in flat
    )


def one_case(case: Case, seed: int) -> tuple[dict[str, float], str]:
    began = time.process_time()
    choice = choose_for_sample(case.tables, Session(np.random.default_rng(seed)))
    seconds = time.process_time() - began
    fixed = case.error(complete(case.tables, soft_goals(case.tables, 0.5)))
    estimated = fixed if choice is None else case.error(choice.log_linear.state.tabulate)
    errors = {
        "interactions, estimated": estimated,
        "soft goals, tau .5": fixed,
        "hard goals": case.error(complete(case.tables, exact_goals(case.tables))),
        "smooth": smooth_error(case, seed),
    }
    chosen = errors["interactions, estimated"]
    if choice is not None and (choice.rank is not None or choice.members > 1):
        chosen = case.error(tables_of_model(choice.model))
    ranks = dict(rank_errors(case, seed))
    best = min(chosen, *errors.values(), *ranks.values())
    regret = {name: error / best for name, error in errors.items()}
    regret["best rank"] = min(ranks.values()) / best
    rank = None if choice is None else choice.rank
    what = "too large" if choice is None else "interactions" if rank is None else f"rank {rank}"
    if choice is not None and rank is None and choice.members > 1:
        what = f"mean of {choice.members}"
    tried = max(choice.evidence.values(), default=np.nan) if choice is not None else np.nan
    text = (
        f"{case.name:66} {what:12} ({tried:8.1f}) {chosen:.4f}, {chosen / best:.2f}  "
        f"interactions {errors['interactions, estimated']:.4f}, best rank "
        f"{min(ranks, key=lambda r: ranks[r])} {min(ranks.values()):.4f}  {seconds:.1f} s"
    )
    return {"the choice": chosen / best, **regret, "seconds": seconds}, text


def complete(tables: rj.Marginals, goals: list) -> Tabulate:  # type: ignore[type-arg]
    levels = tables.domain.shape
    problem = make_completion_problem(levels, goals)
    assert problem is not None
    solver = Ipf()
    state = solver.init(problem, independent_model(levels, goals))
    for _ in range(60):
        state = solver.step(problem, state)
    return state.tabulate


def smooth_error(case: Case, seed: int) -> float:
    result = rj.factorize(case.tables, solver="smooth", random_state=seed, progress=False)
    names = result.pmf.domain.names
    return case.error(lambda s: result.pmf.marginal([names[n] for n in s]).ravel())


def rank_errors(case: Case, seed: int) -> Iterator[tuple[int, float]]:
    records = float(case.tables.totals[0])
    problem = SmoothedTables.of(case.tables, records)
    session, below = Session(np.random.default_rng(seed)), None
    cells = sum(table.size for table in problem.tables)
    for rank in RANKS:
        if rank > 2 and Layout(problem.levels).parameters(rank) > 0.9 * cells:
            break
        below = fit_rank(problem, rank, records, session, below)
        yield rank, case.error(tables_of_model(below))


if __name__ == "__main__":
    main()
