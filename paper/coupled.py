"""Models of several ranks from all tables of one order, by the paper's algorithm.

The paper does not say how many starts and sweeps it took: here every rank gets some random starts.
Starts have uniform columns: columns
drawn around the shares of a variable are nearly 0 or 1 for rare levels, where fits stand. Where
variables are many, tables of complete records are never formed (``all_tables``), which is
the same problem: a sweep over all quadruples of 22 variables takes 30 milliseconds in place of a
second. Factors are mixed with some of the uniform before they predict, since a zero that comes of
few records excludes what may well happen; how much the paper took it does not say.
"""

import warnings
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

import rejoint as rj
from paper.all_tables import fit_all_tables
from rejoint.factorization import Admm, Limits
from rejoint.queries.log_prob import posteriors

Array = NDArray[np.float64]
Weighting = Literal["equal", "count"]

#: Share of the uniform in every column that predicts, where nothing else is said.
MIXED = 1e-3
#: Variables from which on tables are not formed where they need not be.
MANY = 15


def models(
    records: rj.Records,
    order: int,
    ranks: Sequence[int],
    starts: int,
    sweeps: int,
    weighting: Weighting = "equal",
) -> Iterator[rj.LowRankPMF]:
    """Every rank from every start."""
    whole = weighting == "count" or (
        len(records.domain) > MANY and bool((records.codes >= 0).all())
    )
    tables = None if whole else rj.Marginals.count(records, order)
    # Their number alone ends the sweeps: an objective without tables is known up to a constant.
    solver = Admm(limits=Limits(max_steps=sweeps, progress=1e-9))
    for rank, seed in product(ranks, range(starts)):
        start = uniform_start(records.domain, rank, seed)
        if tables is None:
            yield fit_all_tables(records, order, start, solver, weighting)
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rj.Remark)  # that pairs leave the joint open
            fit = rj.factorize(tables, rank, solver, start=start, progress=False)
        yield fit.pmf


def uniform_start(domain: rj.Domain, rank: int, seed: int) -> rj.LowRankPMF:
    """Even weights, and columns that are uniform on the simplex."""
    rng = np.random.default_rng(seed)
    factors = [rng.dirichlet(np.ones(size), size=rank).T for size in domain.shape]
    return rj.LowRankPMF(np.full(rank, 1 / rank), factors, domain)


def softened(model: rj.LowRankPMF, mixed: float = MIXED) -> list[Array]:
    """Factors with a little of the uniform in them."""
    return [(1 - mixed) * factor + mixed / len(factor) for factor in model.factors]


def class_shares(model: rj.LowRankPMF, codes: NDArray[np.int16], mixed: float = MIXED) -> Array:
    """Posterior of the hidden class for records with holes, (M, F)."""
    blocks = posteriors(model.weights, softened(model, mixed), codes)
    return np.vstack([posterior for _, _, posterior in blocks])
