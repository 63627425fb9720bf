"""How exactly the joint comes back: from exact tables, from few of them, from sampled ones.

1. Exact pairs, triples, quadruples, N = 5, I = 10, as in the paper's Table IV.
2. The paper's own algorithm alone (``solver="admm"``) on the same triples, random starts.
3. Ten cyclic triples of ten variables; mixed orders and unequal levels.
4. Tables counted from 100,000 records, against the Cramer-Rao bound: least squares and KL.
"""

import time
from itertools import combinations

import numpy as np
from models import cramer_rao, random_pmf

import rejoint as rj

MODELS = 10

#: Least squares on the tables, and their Kullback-Leibler divergence.
SOLVERS = ("auto", "kl")


def exact_tables() -> None:
    print("1. exact tables, N = 5, I = 10, ten models: largest errors, mean seconds")
    print("   order rank  MRE_ten  MRE_fact  seconds")
    for order in (2, 3, 4):
        for rank in (5, 10, 15):
            rows = []
            for seed in range(MODELS):
                truth = random_pmf([10] * 5, rank, np.random.default_rng(seed))
                tables = rj.Marginals.from_pmf(truth, order=order)
                begun = time.perf_counter()
                n_init = 1 if order == 2 else 10  # pairs fit exactly, to another joint
                found = rj.factorize(tables, rank=rank, n_init=n_init, random_state=seed).pmf
                seconds = time.perf_counter() - begun
                rows.append((*errors(truth, found), seconds))
            ten, fact, seconds = np.array(rows).T
            print(f"   {order:5} {rank:4} {ten.max():8.1e} {fact.max():9.1e} {seconds.mean():8.2f}")


def admm_alone() -> None:
    print("2. solver='admm' alone on exact triples, one random start each, ten models")
    print("   rank  MRE_ten: median, largest   share <= 1e-6   sweeps: median, most   seconds")
    for rank in (5, 10, 15):
        error, sweeps, weights = [], [], []
        begun = time.perf_counter()
        for seed in range(MODELS):
            truth = random_pmf([10] * 5, rank, np.random.default_rng(seed))
            tables = rj.Marginals.from_pmf(truth, order=3)
            fit = rj.factorize(tables, rank=rank, solver="admm", n_init=1, random_state=seed)
            error.append(rj.metrics.tensor_error(truth, fit.pmf))
            sweeps.append(len(fit.history) - 1)
            weights.append(np.abs(fit.pmf.weights - np.sort(truth.weights)[::-1]).max())
        seconds = time.perf_counter() - begun
        share = np.mean(np.array(error) <= 1e-6)
        print(
            f"   {rank:4}  {np.median(error):8.1e}, {max(error):8.1e}       {share:13.0%}   "
            f"{np.median(sweeps):8.0f}, {max(sweeps):8}   {seconds:7.1f}   "
            f"(weights off by {np.median(weights):.1e} at the median)"
        )


def few_tables() -> None:
    print("3. few tables, rank 5: largest error of any 4-way table, relative to its largest cell")
    for name, make in (("10 cyclic triples, I = 4", cyclic), ("mixed, levels 2-12", mixed)):
        worst = []
        begun = time.perf_counter()
        for seed in range(MODELS):
            truth, subsets = make(np.random.default_rng(seed))
            tables = rj.Marginals.from_pmf(truth, subsets=subsets)
            found = rj.factorize(tables, rank=5, random_state=seed).pmf
            worst.append(worst_quadruple(truth, found))
        seconds = (time.perf_counter() - begun) / MODELS
        good = sum(error <= 1e-8 for error in worst)
        print(
            f"   {name}: {good} of {MODELS} below 1e-8, largest {max(worst):.1e}, {seconds:.1f} s"
        )


def cyclic(rng: np.random.Generator) -> tuple[rj.LowRankPMF, list[tuple[str, ...]]]:
    subsets = [tuple(f"x{(i + k) % 10}" for k in range(3)) for i in range(10)]
    return random_pmf([4] * 10, 5, rng, least_weight=0.03), subsets


def mixed(rng: np.random.Generator) -> tuple[rj.LowRankPMF, list[tuple[str, ...]]]:
    truth = random_pmf([int(n) for n in rng.integers(2, 13, size=8)], 5, rng, least_weight=0.03)
    triples = list(combinations(truth.domain.names, 3))
    chosen = [triples[i] for i in rng.permutation(len(triples))[:16]]
    more = [("x0", "x1", "x2", "x3"), ("x4", "x5"), ("x6", "x7"), ("x2", "x7")]
    return truth, [*chosen, *more]


def worst_quadruple(truth: rj.LowRankPMF, found: rj.LowRankPMF) -> float:
    errors = []
    for names in combinations(truth.domain.names, 4):
        table = truth.marginal(names)
        errors.append(np.abs(table - found.marginal(names)).max() / table.max())
    return float(max(errors))


def sampled_tables(records: int = 100_000, rank: int = 5) -> None:
    print(f"4. triples of {records:,} records, N = 5, I = 10, F = {rank}, ten models: MRE_ten")
    print("   missing   solver   mean error   over the bound (mean)   seconds")
    for missing in (0.0, 0.2):
        rows = []
        for seed in range(MODELS):
            rng = np.random.default_rng(seed)
            truth = random_pmf([10] * 5, rank, rng)
            data = truth.sample(records, random_state=rng)
            if missing:
                data = rj.datasets.remove_cells(data, missing, random_state=rng)
            tables = rj.Marginals.count(data, order=3)
            bound = cramer_rao(truth, records, missing)
            rows.append([fit_sample(truth, tables, solver, bound, seed) for solver in SOLVERS])
        for solver, (error, ratio, seconds) in zip(SOLVERS, np.mean(rows, axis=0), strict=True):
            print(f"   {missing:7.0%}   {solver:6} {error:12.4f}   {ratio:21.3f}   {seconds:7.2f}")


def fit_sample(
    truth: rj.LowRankPMF, tables: rj.Marginals, solver: str, bound: float, seed: int
) -> tuple[float, float, float]:
    begun = time.perf_counter()
    found = rj.factorize(tables, rank=truth.rank, solver=solver, random_state=seed).pmf
    seconds = time.perf_counter() - begun
    error = rj.metrics.tensor_error(truth, found)
    return error, error / bound, seconds


def errors(truth: rj.LowRankPMF, found: rj.LowRankPMF) -> tuple[float, float]:
    return rj.metrics.tensor_error(truth, found), rj.metrics.factor_error(truth, found)


if __name__ == "__main__":
    for part in (exact_tables, few_tables, sampled_tables, admm_alone):
        part()
