"""Bounds over all joints with given tables, against a program over all cells of the joint."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from rejoint import Domain, Marginals
from rejoint.marginals.suppression import UnknownCells
from rejoint.queries.answer_bounds import bound_answer


def random_joint(rng, shape):
    """A joint of no low rank, a third of the time with many empty cells."""
    joint = rng.gamma(0.5, size=shape) + 1e-4
    if rng.random() < 1 / 3:
        joint *= rng.random(shape) < 0.5
        joint.flat[0] += 0.1
    return joint / joint.sum()


def random_subsets(rng, n):
    """Tables of two or three variables; every variable is in one."""
    found = set()
    while len(found) < 2 or {v for s in found for v in s} != set(range(n)):
        size = int(rng.integers(2, 4))
        found.add(tuple(sorted(rng.choice(n, min(size, n), replace=False).tolist())))
    return sorted(found)


def tables_of(joint, subsets, kind, rng, records=500):
    """Exact shares, counts rounded to multiples of 3, or counts with small ones suppressed."""
    domain = Domain.of_shape(joint.shape)
    n = joint.ndim
    sums = [joint.sum(axis=tuple(a for a in range(n) if a not in s)) for s in subsets]
    if kind == "exact":
        flat = np.concatenate([table.ravel() for table in sums])
        return Marginals(domain, tuple(subsets), flat, counted=np.zeros(len(subsets), dtype=bool))
    counts = np.concatenate([(records * table).ravel() for table in sums])
    if kind == "rounded":
        down = rng.random(counts.shape) < 0.5
        flat = np.where(down, np.floor(counts / 3), np.ceil(counts / 3)) * 3
        made = Marginals(domain, tuple(subsets), flat)
        return with_fields(made, rounding=np.full(len(subsets), 3.0))
    hidden = np.flatnonzero((counts > 1) & (counts < 5))
    if not len(hidden):
        hidden = np.array([int(np.argmin(counts))])
    low, high = np.minimum(1.0, counts[hidden]), np.maximum(5.0, counts[hidden])
    known = counts.copy()
    known[hidden] = (low + high) / 2
    return Marginals(domain, tuple(subsets), known, unknown=UnknownCells(hidden, low, high))


def with_fields(tables, **fields):
    """Set fields that Marginals may not have yet."""
    try:
        return replace(tables, **fields)
    except TypeError:
        for name, value in fields.items():
            object.__setattr__(tables, name, value)
        return tables


def brute_force(tables, above, below):
    """Both ends of a ratio by a dense program over all cells of the joint, from the definition."""
    shape = tables.domain.shape
    grid = np.indices(shape).reshape(len(shape), -1)
    cells = grid.shape[1]
    number = len(tables)
    width = cells + number + 1  # cells, one scale for each table, t
    equal, under = [], []
    rounding = getattr(tables, "rounding", np.zeros(number))
    for i, subset in enumerate(tables.index_subsets):
        table = tables.counts_of(i)
        unknown = tables.unknown_of(i)
        fixed = rounding[i] == 0 and unknown is None
        for k, levels in enumerate(product(*(range(shape[n]) for n in subset))):
            row = np.zeros(width)
            row[:cells] = np.all(
                [grid[n] == a for n, a in zip(subset, levels, strict=True)], axis=0
            )
            value = table[levels]
            low, high = value - rounding[i], value + rounding[i]
            if unknown is not None and k in unknown.places:
                at = list(unknown.places).index(k)
                low, high = unknown.low[at], unknown.high[at]
            scale = cells + i
            if fixed:
                row[-1] = -value / tables.totals[i]
                equal.append(row)
            elif low == high:
                row[scale] = -value
                equal.append(row)
            else:
                upper, lower = row.copy(), -row
                upper[scale], lower[scale] = -high, low
                under += [upper, lower]
    for moment in tables.moments:
        row = np.zeros(width)
        row[:cells] = product_at(dict(zip(moment.variables, moment.vectors, strict=True)), grid)
        row[-1] = -moment.value
        equal.append(row)
    total = np.zeros(width)
    total[:cells], total[-1] = 1.0, -1.0
    norm, cost = np.zeros(width), np.zeros(width)
    cost[:cells], norm[:cells] = product_at(above, grid), product_at(below, grid)
    equal = np.array([*equal, total, norm])
    right = np.zeros(len(equal))
    right[-1] = 1.0
    under = np.array(under) if under else None
    zeros = None if under is None else np.zeros(len(under))
    ends = []
    for sign in (1, -1):
        tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
        found = linprog(sign * cost, under, zeros, equal, right, options=tight)
        assert found.status == 0, found.message
        ends.append(sign * found.fun)
    return ends


def product_at(vectors, grid):
    return np.prod([np.ones(grid.shape[1]), *(v[grid[n]] for n, v in vectors.items())], axis=0)


def random_question(rng, joint, *, conditional):
    """Vectors of an event, or of an event and a condition."""
    n = joint.ndim
    asked = rng.choice(n, int(rng.integers(2, min(n, 3) + 1)), replace=False)
    above = {int(v): np.eye(joint.shape[v])[rng.integers(joint.shape[v])] for v in asked}
    if rng.random() < 0.2:
        v = int(asked[0])
        above[v] = rng.normal(size=joint.shape[v])  # an expectation, not an event
    below = {}
    if conditional:
        v = int(asked[-1])
        below = {v: above[v]}
    return above, below


def truth_of(joint, above, below):
    def expect(vectors):
        table = joint
        for n in reversed(range(joint.ndim)):
            vector = vectors.get(n, np.ones(joint.shape[n]))
            table = np.tensordot(table, vector, (n, 0))
        return float(table)

    return expect(above) / expect(below)


def random_problem(seed):
    rng = np.random.default_rng(seed)
    kind = ("exact", "rounded", "suppressed")[seed % 3]
    n = int(rng.integers(3, 6 if kind == "exact" else 5))
    joint = random_joint(rng, tuple(rng.integers(2, 4, size=n).tolist()))
    tables = tables_of(joint, random_subsets(rng, n), kind, rng)
    above, below = random_question(rng, joint, conditional=seed % 2 == 0)
    if below and truth_of(joint, below, {}) < 1e-6:
        above, below = random_question(rng, joint, conditional=False)
    return joint, tables, above, below


def check(joint, tables, above, below):
    found = bound_answer(tables, above, below)
    low, high = brute_force(tables, above, below)
    truth = truth_of(joint, above, below)
    assert found.low - 1e-7 <= truth <= found.high + 1e-7
    assert found.sharp
    assert found.slack == 0
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-6)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6))
def test_sharp_bounds_are_those_of_all_cells(seed):
    check(*random_problem(seed))
