"""Random models and problems that the tests of the factorization share."""

from itertools import combinations

import numpy as np

import rejoint as rj
from rejoint.factorization.problem import Moments, TableProblem
from rejoint.identifiability.gram_sums import Family
from rejoint.model import Model


def random_pmf(seed, shape, rank, least=0.0, domain=None):
    """A model with all parameters drawn evenly from the simplex, weights at least ``least``."""
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(rank))
    while weights.min() < least:
        weights = rng.dirichlet(np.ones(rank))
    factors = [rng.dirichlet(np.ones(levels), size=rank).T for levels in shape]
    return rj.LowRankPMF(weights, factors, domain)


def cyclic(n, order=3):
    """Names of the ``n`` cyclic subsets of neighbours."""
    return [tuple(f"x{(i + k) % n}" for k in range(order)) for i in range(n)]


def all_subsets(n, *orders):
    return tuple(s for d in orders for s in combinations(range(n), d))


def random_problem(seed, levels, subsets, even=True, moments=()):
    """Tables of random shares that agree with no model, so that no residual is zero.

    ``even`` is the weight of each table; False stands for a different one for each.
    """
    rng = np.random.default_rng(seed)
    tables = []
    for subset in subsets:
        table = rng.random([levels[n] for n in subset])
        tables.append(table / table.sum())
    weight = np.full(len(subsets), float(even)) if even else rng.uniform(0.2, 3.0, len(subsets))
    found = tuple(random_moments(rng, levels, order, number) for order, number in moments)
    return TableProblem(tuple(levels), tuple(subsets), tuple(tables), weight, found)


def random_moments(rng, levels, order, number):
    """Random unit vectors on random variables, with random values and weights."""
    offsets = np.concatenate([[0], np.cumsum(levels)])
    members = np.array([np.sort(rng.permutation(len(levels))[:order]) for _ in range(number)])
    vectors = np.zeros((number, order, offsets[-1]))
    for k, slot in np.ndindex(number, order):
        n = members[k, slot]
        direction = rng.standard_normal(levels[n])
        vectors[k, slot, offsets[n] : offsets[n + 1]] = direction / np.linalg.norm(direction)
    family = Family(members, rng.uniform(0.5, 2.0, number), complete=False)
    return Moments(family, vectors, rng.standard_normal(number))


def random_model(seed, levels, rank):
    """Weights and factors drawn evenly from the simplex."""
    rng = np.random.default_rng(seed)
    factors = [rng.dirichlet(np.ones(size), size=rank).T for size in levels]
    return Model.of(rng.dirichlet(np.ones(rank)), factors)


def unpacked(model):
    """Weights (F,) and stacked factors (L, F)."""
    return model.weights, model.factors


def objective(problem, weights, factors):
    """The weighted loss of weights and stacked factors."""
    return problem.value(Model(problem.layout, weights, factors))


def blocks(problem, factors):
    return problem.layout.split(factors)


def model_table(problem, weights, factors, subset):
    """The model's table over a subset, by brute force."""
    table = np.zeros([problem.levels[n] for n in subset])
    for f, weight in enumerate(weights):
        cell = np.array(weight)
        for n in subset:
            cell = np.multiply.outer(cell, blocks(problem, factors)[n][:, f])
        table += cell
    return table
