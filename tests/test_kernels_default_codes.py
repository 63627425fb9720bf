"""Records by what departs from the first levels: passes as over a table of all cells."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rejoint as rj
from rejoint import kernels
from rejoint.kernels import DefaultCodes, SparseCodes
from rejoint.kernels import codes as default_codes
from rejoint.records.sparse import DefaultCodedRecords


def random_records(seed, rows=60, levels=(2, 3, 2, 4, 2), share=0.3):
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(1, n, size=rows) for n in levels], axis=1).astype(np.int16)
    codes[rng.random(codes.shape) > share] = 0
    return codes, departing(codes, levels)


def departing(codes, levels):
    return DefaultCodes(
        SparseCodes.of_codes(np.where(codes > 0, codes, -1).astype(np.int16), levels)
    )


def random_model(seed, rank=3, levels=(2, 3, 2, 4, 2), shape=1.0):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(rank))
    return weights, np.vstack([rng.dirichlet(np.full(n, shape), size=rank).T for n in levels])


@pytest.mark.parametrize("spread", [600.0, 0.5])
@given(seed=st.integers(0, 2**32 - 1), weighted=st.booleans())
def test_passes_are_those_over_all_cells(seed, weighted, spread):
    codes, cells = random_records(seed)
    model = random_model(seed)
    weight = np.random.default_rng(seed).integers(0, 4, len(codes)) * 1.0 if weighted else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(default_codes, "RANGE_NATS", spread)  # by several numbers where it is small
        found = kernels.class_pass(cells, weight, *model, cells.levels)
        posterior = kernels.class_posterior(cells, *model, cells.levels)
        log_prob = kernels.class_log_prob(cells, *model, cells.levels)
        drawn = kernels.class_draws(cells, weight, *model, cells.levels, seed)
    # The same sums in another order.
    for one, other in zip(
        (*found, *posterior, log_prob),
        (
            *kernels.class_pass(codes, weight, *model, cells.levels),
            *kernels.class_posterior(codes, *model, cells.levels),
            kernels.class_log_prob(codes, *model, cells.levels),
        ),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    counts = kernels.count(codes, weight, cells.levels, [(n,) for n in range(5)])
    np.testing.assert_array_equal(drawn[2].sum(axis=1), counts)
    assert np.all(drawn[1] == np.rint(drawn[1]))


def test_draws_are_the_same_ones():
    codes, cells = random_records(5, rows=400)
    model = random_model(5)
    one, other = (kernels.class_draws(c, None, *model, cells.levels, 7) for c in (codes, cells))
    for a, b in zip(one[1:], other[1:], strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("lowest", [0.0, 1e-300, 1e-40])
def test_first_levels_that_hardly_occur(lowest):
    """Hundreds of variables at odds with the first level: far beyond the range of doubles."""
    rng = np.random.default_rng(0)
    levels = (2,) * 300
    codes = (rng.random((20, 300)) < 0.5).astype(np.int16)
    codes[0] = 1
    codes[1] = 0
    heavy = np.array([lowest, 1.0 - lowest])
    factors = np.stack([np.tile(heavy, 300), np.tile([0.5, 0.5], 300)], axis=1)
    weights = np.array([0.5, 0.5])
    cells = departing(codes, levels)
    one, other = (kernels.class_posterior(c, weights, factors, levels) for c in (codes, cells))
    # What is left of sums of logarithms of up to 138,000, in doubles.
    np.testing.assert_allclose(other[1], one[1], atol=1e-9)
    np.testing.assert_allclose(other[0], one[0], atol=1e-9)
    assert one[1][0, 0] > 0.99


def test_records_are_merged_as_ordinary_ones_are():
    codes, cells = random_records(1, rows=500, share=0.15)
    domain = rj.Domain.of_shape(cells.levels)
    weight = np.random.default_rng(1).random(500)
    for mass in (None, weight):
        thin = DefaultCodedRecords(domain, cells, mass).merged()
        dense = rj.Records(domain, codes, mass).merged()
        np.testing.assert_array_equal(thin.to_records().codes, dense.codes)
        np.testing.assert_array_equal(thin.sample_weight, dense.sample_weight)


@pytest.mark.parametrize("solver", ["ml", "map", "bayes"])
def test_estimates_are_those_of_ordinary_records(solver):
    codes, cells = random_records(2, rows=300)
    domain = rj.Domain.of_shape(cells.levels)
    thin, dense = (
        rj.estimate(data, 2, solver, random_state=0)
        for data in (DefaultCodedRecords(domain, cells), rj.Records(domain, codes))
    )
    # The same starts, steps and draws; rounding grows over some hundred steps.
    assert thin.log_likelihood == pytest.approx(dense.log_likelihood, rel=1e-9)
    np.testing.assert_allclose(thin.pmf.weights, dense.pmf.weights, atol=1e-5)
    np.testing.assert_allclose(np.vstack(thin.pmf.factors), np.vstack(dense.pmf.factors), atol=1e-5)


def test_what_is_refused():
    with pytest.raises(ValueError, match="does not depart"):
        DefaultCodes(SparseCodes(np.array([0, 1]), np.array([2]), (2, 2)))
    cells = DefaultCodes(SparseCodes(np.array([0, 1]), np.array([1]), (2, 2)))
    with pytest.raises(ValueError, match="other numbers of levels"):
        kernels.class_pass(cells, None, np.ones(1), np.full((5, 1), 0.5), [2, 3])
    with pytest.raises(ValueError, match="weights must be finite"):
        kernels.class_pass(cells, None, np.array([np.nan]), np.full((4, 1), 0.5), [2, 2])
