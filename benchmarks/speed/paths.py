"""The hot paths: ours, the peer that one would take instead, and what cannot be beaten.

Every contender is a function that sets up outside the clock and returns what is to be timed, and
by what the time is to be multiplied where it was measured on a part.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from benchmarks.speed.measures import Rates
from numpy.typing import NDArray

import rejoint as rj
from rejoint import kernels, queries
from rejoint.factorization import Admm, admm
from rejoint.factorization.problem import make_problem
from rejoint.model import Model

ROWS, VARIABLES, LEVELS, RANK = 1_000_000, 20, 5, 20
PART = 100_000  # rows that slow peers are measured on; their cost is linear in them
MANY, ITEMS, SEEN = 100_000, 1_000, 0.02  # users, items, and the share that is observed
BINARY, MANY_CLASSES = (9_000, 100), 100  # a table of zeros and ones
TRIPLES = list(itertools.combinations(range(VARIABLES), 3))

Timed = tuple[Callable[[], object], float]
Codes = NDArray[np.int16]


@dataclass(frozen=True)
class Path:
    """A hot path: contenders, ours first, and the least seconds at given rates."""

    title: str
    contenders: dict[str, Callable[[], Timed]]
    limit: Callable[[Rates], float]
    limited_by: str
    targets: tuple[tuple[str, float], ...] = ()  # contender, and times that ours must be quicker


def make_codes(rows: int = ROWS, missing: float = 0.5) -> Codes:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, LEVELS, size=(rows, VARIABLES)).astype(np.int16)
    if missing:
        codes[rng.random(codes.shape) < missing] = -1
    return codes


def make_pmf(variables: int = VARIABLES, levels: int = LEVELS, rank: int = RANK) -> rj.LowRankPMF:
    rng = np.random.default_rng(1)
    factors = [rng.dirichlet(np.ones(levels), size=rank).T for _ in range(variables)]
    return rj.LowRankPMF(rng.dirichlet(np.ones(rank)), factors)


def model(pmf: rj.LowRankPMF) -> tuple[NDArray[np.float64], NDArray[np.float64], list[int]]:
    return pmf.weights, np.vstack(pmf.factors), list(pmf.domain.shape)


# Counting


def count_ours() -> Timed:
    codes = make_codes()
    return lambda: kernels.count(codes, None, [LEVELS] * VARIABLES, TRIPLES, 1), 1.0


def count_bincount() -> Timed:
    """The rows where all three are observed, then one bincount; every tenth triple."""
    codes = make_codes()
    columns = [codes[:, n].astype(np.intp) for n in range(VARIABLES)]
    seen = [column >= 0 for column in columns]

    def run() -> None:
        for j, k, n in TRIPLES[::10]:
            rows = np.flatnonzero(seen[j] & seen[k] & seen[n])
            index = columns[j][rows] * LEVELS + columns[k][rows]
            np.bincount(index * LEVELS + columns[n][rows], minlength=LEVELS**3)

    return run, len(TRIPLES) / len(TRIPLES[::10])


# Sweeps of ADMM


def make_tables() -> tuple[rj.Marginals, NDArray[np.float64], NDArray[np.float64]]:
    tables = rj.Marginals.from_pmf(make_pmf(), order=3)
    rng = np.random.default_rng(2)
    columns = [rng.dirichlet(np.ones(LEVELS), size=RANK).T for _ in range(VARIABLES)]
    return tables, np.full(RANK, 1.0 / RANK), np.vstack(columns)


def sweep_ours() -> Timed:
    tables, weights, factors = make_tables()
    problem = make_problem(tables, "equal")
    state = Admm().init(problem, Model(problem.layout, weights, factors))
    return lambda: [admm.sweep(problem, state, 10) for _ in range(5)], 1 / 5


def sweep_loop() -> Timed:
    """The sums of MTTKRPs alone, table by table, as printed: unfolding times Khatri-Rao product."""
    tables, _, stacked = make_tables()
    factors = stacked.reshape(VARIABLES, LEVELS, RANK)
    shares = [np.ascontiguousarray(tables.shares(i)) for i in range(len(TRIPLES))]

    def run() -> None:
        sums = np.zeros_like(factors)
        for subset, table in zip(TRIPLES, shares, strict=True):
            for axis, n in enumerate(subset):
                k, m = (factors[v] for v in subset if v != n)
                product = (k[:, None, :] * m[None, :, :]).reshape(-1, RANK)
                sums[n] += np.moveaxis(table, axis, 0).reshape(LEVELS, -1) @ product

    return run, 1.0


def sweep_flops() -> float:
    """A product and a sum for each cell, class and variable of each table, and for the half of it.

    The sums of MTTKRPs of all factors, and the one of the weights; nothing else is counted.
    """
    once = 2.0 * RANK * (LEVELS**3 + LEVELS**2)
    return len(TRIPLES) * 4 * once


# Passes over records


def pass_ours() -> Timed:
    codes, parts = make_codes(), model(make_pmf())
    return lambda: kernels.class_pass(codes, None, *parts, 1), 1.0


def pass_one_hot() -> Timed:
    """Products of the one-hot matrix with the logarithms, and of its transpose with posteriors."""
    codes, (weights, factors, _) = make_codes(PART), model(make_pmf())
    hot = np.zeros((PART, VARIABLES * LEVELS), dtype=np.float32)
    row, n = np.nonzero(codes >= 0)
    hot[row, n * LEVELS + codes[row, n]] = 1.0
    logs, start = np.log(factors).astype(np.float32), np.log(weights).astype(np.float32)

    def run() -> None:
        joint = hot @ logs
        joint += start
        joint -= joint.max(axis=1, keepdims=True)
        np.exp(joint, out=joint)
        joint /= joint.sum(axis=1, keepdims=True)
        hot.T @ joint

    return run, ROWS / PART


def stepmix(iterations: int, data: NDArray[np.float64]) -> object:
    import warnings

    from stepmix import StepMix

    warnings.simplefilter("ignore")  # fits this short do not converge
    options = {"measurement": "categorical_nan", "abs_tol": 0.0, "progress_bar": 0}
    return StepMix(RANK, max_iter=iterations, random_state=0, **options).fit(data)


def holey() -> NDArray[np.float64]:
    codes = make_codes(PART)
    return np.where(codes < 0, np.nan, codes)


def pass_stepmix() -> Timed:
    """What a further iteration of a fit costs: that of four less that of one, a third."""
    from time import process_time

    data = holey()
    stepmix(1, data[:1000])  # what the first call costs is not to count
    begun = process_time()
    stepmix(1, data)
    first = process_time() - begun
    begun = process_time()
    stepmix(4, data)
    seconds = (process_time() - begun - first) / 3
    return lambda: seconds, ROWS / PART


def sparse_cells() -> kernels.SparseCodes:
    rng = np.random.default_rng(0)
    places = np.unique(rng.integers(0, MANY * ITEMS, size=int(MANY * ITEMS * SEEN)))
    row, column = np.divmod(places, ITEMS)
    starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=MANY))])
    found = column * LEVELS + rng.integers(0, LEVELS, size=len(places))
    return kernels.SparseCodes(starts, found, (LEVELS,) * ITEMS)


def sparse_ours() -> Timed:
    cells, parts = sparse_cells(), model(make_pmf(ITEMS))
    return lambda: kernels.class_pass(cells, None, *parts, 1), 1.0


# Answers


def posterior_ours() -> Timed:
    codes, parts = make_codes(), model(make_pmf())
    return lambda: kernels.class_posterior(codes, *parts, 1), 1.0


def posterior_stepmix() -> Timed:
    data = holey()
    fitted = stepmix(1, data)
    return lambda: fitted.predict_proba(data), ROWS / PART  # type: ignore[attr-defined]


def sample_ours() -> Timed:
    pmf = make_pmf()
    return lambda: pmf.sample(ROWS, random_state=0), 1.0


def sample_stepmix() -> Timed:
    fitted = stepmix(1, holey())
    return lambda: fitted.sample(PART), ROWS / PART  # type: ignore[attr-defined]


def predict_ours() -> Timed:
    """The last variable, from what there is of all others."""
    codes, pmf = make_codes(), make_pmf()
    codes[:, -1] = -1
    last = pmf.factors[-1]

    def run() -> None:
        found = np.empty((ROWS, LEVELS))
        for rows, _, posterior in queries.posteriors(pmf.weights, pmf.factors, codes, threads=1):
            np.matmul(posterior, last.T, out=found[rows])

    return run, 1.0


def predict_bayes() -> Timed:
    """scikit-learn's naive Bayes with as many classes, on complete rows: it takes no others."""
    from sklearn.naive_bayes import CategoricalNB

    codes = make_codes(ROWS // 5, missing=0.0).astype(np.int64)
    label = np.random.default_rng(3).integers(0, RANK, size=len(codes))
    fitted = CategoricalNB(min_categories=LEVELS).fit(codes[:20_000, :-1], label[:20_000])
    return lambda: fitted.predict_proba(codes[:, :-1]), 5.0


# Tables of zeros and ones, and merged records


def binary_table(share: float) -> NDArray[np.int8]:
    """Zeros, and so many ones."""
    return (np.random.default_rng(0).random(BINARY) < share).astype(np.int8)


def binary_model(rank: int) -> tuple[NDArray[np.float64], NDArray[np.float64], list[int]]:
    rng = np.random.default_rng(1)
    ones = rng.beta(2.0, 4.0, size=(BINARY[1], rank))
    factors = np.stack([1.0 - ones, ones], axis=1).reshape(-1, rank)
    return np.full(rank, 1.0 / rank), factors, [2] * BINARY[1]


def binary_ours(share: float) -> Timed:
    codes, parts = binary_table(share), binary_model(MANY_CLASSES)
    return lambda: kernels.class_pass(codes, None, *parts, 1), 1.0


def binary_blas() -> Timed:
    """Two products with the table in float32, and the exponentials between them."""
    table, (weights, factors, _) = binary_table(0.5).astype(np.float32), binary_model(MANY_CLASSES)
    logs = np.log(factors).reshape(BINARY[1], 2, -1)
    step = (logs[:, 1] - logs[:, 0]).astype(np.float32)
    start = (np.log(weights) + logs[:, 0].sum(axis=0)).astype(np.float32)

    def run() -> None:
        for first in range(0, len(table), 2048):
            part = table[first : first + 2048]
            joint = part @ step
            joint += start
            joint -= joint.max(axis=1, keepdims=True)
            np.exp(joint, out=joint)
            joint /= joint.sum(axis=1, keepdims=True)
            part.T @ joint

    return run, 1.0


def merged(draws: bool) -> Timed:
    """Distinct records of which each stands for 32."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, size=(9_000, 17)).astype(np.int8)
    mass = rng.geometric(1 / 32, size=len(codes)).astype(np.float64)
    ones = rng.beta(0.5, 0.5, size=(17, MANY_CLASSES))
    factors = np.stack([1.0 - ones, ones], axis=1).reshape(-1, MANY_CLASSES)
    parts = np.full(MANY_CLASSES, 1.0 / MANY_CLASSES), factors, [2] * 17
    if draws:
        return lambda: kernels.class_draws(codes, mass, *parts, 1, 1), 1.0
    return lambda: kernels.class_pass(codes, mass, *parts, 1), 1.0


CELLS = ROWS * VARIABLES / 2
PATHS: dict[str, Path] = {
    "count": Path(
        "all 1,140 triples of 1e6 x 20, 5 levels, half missing",
        {"rejoint": count_ours, "bincount per triple": count_bincount},
        lambda rates: len(TRIPLES) * 3 * 2 * ROWS / rates.wide,
        "codes of each triple read once",
        (("bincount per triple", 5.0),),
    ),
    "sweep": Path(
        "ADMM sweep over 1,140 triples, 20 variables, 5 levels, 20 classes",
        {"rejoint": sweep_ours, "MTTKRPs table by table": sweep_loop},
        lambda rates: sweep_flops() / rates.gemm,
        "GEMM of the same flops",
        (("limit", 0.5),),
    ),
    "pass": Path(
        "EM pass over 1e6 x 20, 5 levels, 20 classes, half missing",
        {"rejoint": pass_ours, "one-hot BLAS, float32": pass_one_hot, "StepMix": pass_stepmix},
        lambda rates: max(4 * CELLS * RANK / rates.gemm, 2 * 2 * CELLS / rates.wide),
        "GEMM of a product and a sum for each cell and class",
        (("one-hot BLAS, float32", 2.5), ("StepMix", 150.0)),
    ),
    "sparse pass": Path(
        "EM pass over 1e5 x 1,000, 2 % observed, 5 levels, 20 classes",
        {"rejoint": sparse_ours},
        lambda rates: 4 * MANY * ITEMS * SEEN * RANK / rates.gemm,
        "GEMM of a product and a sum for each cell and class",
    ),
    "sparse table": Path(
        "EM pass over 9,000 x 100 zeros and 2 % ones, 100 classes",
        {
            "rejoint": lambda: binary_ours(SEEN),
            "a table of half ones": lambda: binary_ours(0.5),
        },
        lambda rates: 4 * SEEN * BINARY[0] * BINARY[1] * MANY_CLASSES / rates.gemm,
        "GEMM of a product and a sum for each one and class",
        (("a table of half ones", 3.0),),
    ),
    "binary table": Path(
        "EM pass over 9,000 x 100 zeros and ones, 100 classes",
        {"rejoint": lambda: binary_ours(0.5), "BLAS, float32": binary_blas},
        lambda rates: 4 * BINARY[0] * BINARY[1] * MANY_CLASSES / rates.gemm,
        "GEMM of a product and a sum for each cell and class",
        (("BLAS, float32", 1.0),),
    ),
    "merged draws": Path(
        "Gibbs step of 9,000 distinct of 288,000 records x 17, 100 classes",
        {"rejoint": lambda: merged(draws=True), "EM pass": lambda: merged(draws=False)},
        lambda rates: 2 * 9_000 * 17 * MANY_CLASSES / rates.gemm,
        "GEMM of a product for each cell and class",
        (("EM pass", 0.2),),
    ),
    "posterior": Path(
        "classes of 1e6 x 20 records, half missing, 20 classes",
        {"rejoint": posterior_ours, "StepMix": posterior_stepmix},
        lambda rates: (2 * 2 * CELLS + 8 * ROWS * RANK) / rates.wide,
        "codes read and posteriors written once",
    ),
    "sample": Path(
        "1e6 records of 20 variables, 20 classes",
        {"rejoint": sample_ours, "StepMix": sample_stepmix},
        lambda rates: ROWS * (VARIABLES + 1) / rates.drawn,
        "random numbers of NumPy",
    ),
    "predict": Path(
        "a variable of 1e6 records from 19 others, half missing, 20 classes",
        {"rejoint": predict_ours, "CategoricalNB": predict_bayes},
        lambda rates: (2 * 2 * CELLS + 2 * 8 * ROWS * RANK) / rates.wide,
        "codes read, posteriors written and read once",
    ),
}
