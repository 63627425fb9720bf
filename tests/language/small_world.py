"""A model of five variables, one of each kind, small enough for its dense joint."""

import numpy as np

import rejoint as rj

DOMAIN = rj.Domain(
    (
        rj.Variable("a", ("x", "y", "z")),
        rj.Variable("grade", ("low", "mid", "high"), "ordinal"),
        rj.Variable("age", (rj.Bin(0, 18), rj.Bin(18, 40), rj.Bin(40, 65, True))),
        rj.Variable("stars", (1, 2, 4)),
        rj.Variable("ok", (True, False)),
    )
)
VALUES = {"stars": np.array([1.0, 2.0, 4.0]), "age": np.array([9.0, 29.0, 52.5])}


def model(seed=5, rank=4, zeros=0.0, domain=DOMAIN):
    rng = np.random.default_rng(seed)
    factors = []
    for levels in domain.shape:
        factor = rng.dirichlet(np.ones(levels), size=rank).T
        factor[(rng.random(factor.shape) < zeros) & (factor < factor.max(axis=0))] = 0.0
        factors.append(factor / factor.sum(axis=0))
    return rj.LowRankPMF(rng.dirichlet(np.ones(rank)), factors, domain)
