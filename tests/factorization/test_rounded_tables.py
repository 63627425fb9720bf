"""Rounded and suppressed tables are met within bounds, at published numbers where these agree."""

import itertools

import numpy as np
import pytest

import rejoint as rj

pytestmark = pytest.mark.filterwarnings("ignore:Tables:rejoint.Remark")


def pairs_and_more(shape, order, seed, people=30_000):
    """A population's tables of some order; its joint is of no low rank."""
    rng = np.random.default_rng(seed)
    joint = rng.gamma(0.5, size=shape)
    counts = np.rint(people * joint / joint.sum())
    names = [f"x{n}" for n in range(len(shape))]
    tables = {}
    for subset in itertools.combinations(range(len(shape)), order):
        gone = tuple(n for n in range(len(shape)) if n not in subset)
        tables[tuple(names[n] for n in subset)] = counts.sum(axis=gone)
    return rj.Domain.of(dict(zip(names, shape, strict=True))), tables


def excess(tables, pmf):
    """How far the model is outside of the rounding of each table, for its best number of people."""
    worst = 0.0
    for i, names in enumerate(tables.subsets):
        found, numbers, width = pmf.marginal(names), tables.counts_of(i), tables.rounding[i]
        scales = np.linspace(0.98, 1.02, 4001) / numbers.sum()
        low, high = (numbers - width).clip(0), numbers + width
        out = [
            (np.maximum(scale * low - found, 0) + np.maximum(found - scale * high, 0)).sum()
            for scale in scales
        ]
        worst = max(worst, float(min(out)))
    return worst


def test_numbers_that_agree_come_back_as_they_were_published():
    table = {("smoke", "lung"): [[90, 110], [10, 790]]}
    for how in (5, "nearest 10"):
        tables = rj.Marginals.from_tables(table, rounded=how)
        found = rj.factorize(tables, progress=False).pmf.marginal(["smoke", "lung"])
        np.testing.assert_allclose(found, tables.shares(0), atol=1e-7)


def test_many_rounded_tables_are_no_contradiction():
    domain, exact = pairs_and_more((4, 2, 3, 5, 5, 5, 3), 3, seed=1)
    tables = rj.Marginals.from_tables(
        {names: 5 * np.rint(table / 5) for names, table in exact.items()},
        domain=domain,
        rounded="nearest 5",
    )
    result = rj.factorize(tables, progress=False)
    assert "contradict" not in result.choice
    assert "rounding of their numbers explains" not in result.choice  # nothing had to be guessed
    assert excess(tables, result.pmf) < 1e-6


def test_suppressed_cells_do_not_slow_it_down():
    rng = np.random.default_rng(1)
    domain, exact = pairs_and_more((4, 5, 3, 4), 2, seed=1)
    exact = {names: table for names, table in exact.items() if names != ("x2", "x3")}
    held = {n: np.where(rng.random(t.shape) < 0.1, np.nan, t) for n, t in exact.items()}
    tables = rj.Marginals.from_tables(held, domain=domain, suppressed=(0, np.inf))
    result = rj.factorize(tables, progress=False)
    assert len(result.starts[0].records) < 60  # plain sweeps: 150 and more
    for names, table in held.items():
        known = ~np.isnan(table)
        found = result.pmf.marginal(names)
        ratio = found[known] / table[known]
        np.testing.assert_allclose(ratio, ratio[0], rtol=1e-4)
