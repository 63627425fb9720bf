"""Random models and records that the tests of the estimation share."""

from itertools import product

import numpy as np

import rejoint as rj
from rejoint.estimation.data import RecordProblem


def random_pmf(seed, shape, rank, concentration=1.0):
    """A model whose columns are drawn from a Dirichlet; its classes are all well filled."""
    rng = np.random.default_rng(seed)
    factors = [rng.dirichlet(np.full(size, concentration), size=rank).T for size in shape]
    return rj.LowRankPMF(rng.dirichlet(np.full(rank, 5.0)), factors)


def random_records(seed, shape, rows, rank=2, missing=0.0, concentration=0.5):
    """Records of a random model, cells missing with the same probability, no record empty."""
    truth = random_pmf(seed, shape, rank, concentration)
    codes = np.array(truth.sample(rows, random_state=seed).codes)
    hidden = np.random.default_rng(seed + 1).random(codes.shape) < missing
    hidden[hidden.all(axis=1), 0] = False
    codes[hidden] = -1
    return rj.Records(truth.domain, codes)


def random_start(seed, shape, rank):
    """Weights (F,) and stacked factors (L, F), all above zero."""
    rng = np.random.default_rng(seed)
    factors = np.vstack([rng.dirichlet(np.full(size, 2.0), size=rank).T for size in shape])
    return rng.dirichlet(np.full(rank, 5.0)), factors


def unmerged(records):
    """The problem with its records as they come, one by one."""
    codes = np.ascontiguousarray(records.codes)
    return RecordProblem(records.domain, codes, np.ones(len(codes)), 1)


def dense(weights, factors, shape):
    """The joint of a model, by brute force."""
    ends = np.cumsum(shape)
    parts = [factors[end - size : end] for end, size in zip(ends, shape, strict=True)]
    table = np.zeros(shape)
    for cell in product(*map(range, shape)):
        terms = weights * np.prod([part[i] for part, i in zip(parts, cell, strict=True)], axis=0)
        table[cell] = terms.sum()
    return table


def log_likelihood(table, codes, weight=None):
    """Sum of logarithms of the records' probabilities, missing cells summed out of the table."""
    mass = np.ones(len(codes)) if weight is None else weight
    total = 0.0
    for row, count in zip(codes, mass, strict=True):
        cells = tuple(slice(None) if code < 0 else int(code) for code in row)
        total += count * np.log(table[cells].sum())
    return total
