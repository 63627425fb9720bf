"""Recovery from pairs: separable models of 10 variables, 8 levels, 5 classes (Ibrahim and Fu 2021).

Exact tables of all pairs, then tables of M = 1e4, 1e5, 1e6 sampled records. Every variable has a
level of its own for each class ("blocks"), or each class has one in a single variable ("single").
Shown are the mean and the largest error over the models: of the factors
(``rj.metrics.factor_error``) and, for the sampled tables, of the joint relative to its norm
(``rj.metrics.tensor_error``), and CPU seconds of a fit. EM sees the records themselves.

``python benchmarks/pairs.py [MODELS [LARGEST_M]]``; 5 models and 1e6 by default.
"""

import sys
import time
import warnings
from collections.abc import Callable

import numpy as np

import rejoint as rj

VARIABLES, LEVELS, CLASSES = 10, 8, 5

Fit = Callable[[rj.Records, rj.Marginals], rj.LowRankPMF]


def separable_model(seed: int, kind: str) -> rj.LowRankPMF:
    """A random model with a level of its own for each class, in every variable or in one."""
    rng = np.random.default_rng(seed)
    factors = [rng.dirichlet(np.ones(LEVELS), size=CLASSES).T for _ in range(VARIABLES)]
    if kind == "blocks":
        for n, a in enumerate(factors):
            a[:CLASSES] *= np.eye(CLASSES)
            factors[n] = (a / a.sum(axis=0))[rng.permutation(LEVELS)]
    for f in range(CLASSES if kind == "single" else 0):
        a = factors[f]  # one variable for each class, so that no level serves two
        own = max(a[0, f], 0.1)
        a[0] = own * np.eye(CLASSES)[f]
        factors[f] = a / a.sum(axis=0)
    return rj.LowRankPMF(rng.dirichlet(np.full(CLASSES, 3.0)), factors)


def fit_tables(solver: str) -> Fit:
    """A fit of the tables of pairs by a solver."""

    def fit(records: rj.Records, tables: rj.Marginals) -> rj.LowRankPMF:
        starts = {} if solver == "pairs" else {"n_init": 5}
        return rj.factorize(tables, CLASSES, solver=solver, random_state=0, **starts).pmf

    return fit


def fit_records(records: rj.Records, tables: rj.Marginals) -> rj.LowRankPMF:
    """The default fit of the records at the true rank."""
    return rj.estimate(records, CLASSES, random_state=0).pmf


def measure(kind: str, records: int | None, name: str, fit: Fit, models: int) -> None:
    """Print one row of the table."""
    factors, joints, seconds = [], [], 0.0
    for seed in range(models):
        truth = separable_model(seed, kind)
        if records is None:
            data = truth.sample(1, random_state=seed)
            tables = rj.Marginals.from_pmf(truth, order=2)
        else:
            data = truth.sample(records, random_state=seed)
            tables = rj.Marginals.count(data, order=2)
        begin = time.process_time()
        pmf = fit(data, tables)
        seconds += time.process_time() - begin
        joints.append(rj.metrics.tensor_error(truth, pmf))
        same = pmf.rank == CLASSES
        factors.append(rj.metrics.factor_error(truth, pmf) if same else float("nan"))
    size = "exact" if records is None else f"{records:.0e}"
    cells = [f"{np.mean(x):9.2g} {np.max(x):9.2g}" for x in (factors, joints)]
    print(f"{kind:7} {size:6} {name:6} {'   '.join(cells)} {seconds / models:8.2f}", flush=True)


def main(models: int = 5, most: float = 1e6) -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    print("kind    M      fit    factors: mean, largest; joint: mean, largest;  CPU seconds")
    fits = {name: fit_tables(name) for name in ("pairs", "auto", "kl", "admm")}
    for kind in ("blocks", "single"):
        measure(kind, None, "pairs", fits["pairs"], models)
        measure(kind, None, "auto", fits["auto"], models)
        for records in (10_000, 100_000, 1_000_000):
            if records <= most:
                for name, fit in {**fits, "EM": fit_records}.items():
                    measure(kind, records, name, fit, models)


if __name__ == "__main__":
    main(*(kind(text) for kind, text in zip((int, float), sys.argv[1:], strict=False)))
