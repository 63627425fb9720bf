"""Random models and records, and interrupted fits, that the tests of estimation share."""

from itertools import product

import numpy as np
import pytest

import rejoint as rj
from rejoint.estimation import Bayes
from rejoint.estimation.data import InMemory
from rejoint.estimation.gibbs import Draw
from rejoint.estimation.priors import first_concentrations
from rejoint.model import Model
from rejoint.solver import FitInterrupted


def random_pmf(seed, shape, rank, concentration=1.0):
    """A model whose columns are drawn from a Dirichlet; all of its classes have records."""
    rng = np.random.default_rng(seed)
    factors = [rng.dirichlet(np.full(size, concentration), size=rank).T for size in shape]
    return rj.LowRankPMF(rng.dirichlet(np.full(rank, 5.0)), factors)


def random_records(seed, shape, rows, rank=2, missing=0.0, concentration=0.5):
    """Records of a random model, values missing with the same probability, no record empty."""
    truth = random_pmf(seed, shape, rank, concentration)
    codes = np.array(truth.sample(rows, random_state=seed).codes)
    hidden = np.random.default_rng(seed + 1).random(codes.shape) < missing
    hidden[hidden.all(axis=1), 0] = False
    codes[hidden] = -1
    return rj.Records(truth.domain, codes)


def random_start(seed, shape, rank):
    """A model to start from, all of its probabilities above zero."""
    rng = np.random.default_rng(seed)
    factors = [rng.dirichlet(np.full(size, 2.0), size=rank).T for size in shape]
    return Model.of(rng.dirichlet(np.full(rank, 5.0)), factors)


def unmerged(records):
    """The data with identical records kept apart."""
    codes = np.ascontiguousarray(records.codes)
    return InMemory(records.domain, codes, np.ones(len(codes)), 1)


def ordinal(domain):
    """The same variables, with an order of their levels."""
    return rj.Domain(tuple(rj.Variable(v.name, v.levels, "ordinal") for v in domain))


def gibbs_chain(data, model, rng, pseudo_count=1.0):
    """An endless Gibbs chain from a model."""
    sampler = Bayes(pseudo_count=pseudo_count)
    draw = Draw(model, first_concentrations(data), model)
    while True:
        draw = sampler.step(data, draw, rng)
        yield draw


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
    """Sum of logarithms of the records' probabilities, missing values summed out of the table."""
    mass = np.ones(len(codes)) if weight is None else weight
    total = 0.0
    for row, count in zip(codes, mass, strict=True):
        cells = tuple(slice(None) if code < 0 else int(code) for code in row)
        total += count * np.log(table[cells].sum())
    return total


def interrupted(fit, *args, **kwargs):
    """The result that FitInterrupted has when Ctrl-C ends a fit."""
    with pytest.raises(FitInterrupted) as caught:
        fit(*args, **kwargs)
    return caught.value.result
