"""Smooth factor columns: neighboring levels inform each other, and rough columns stay rough."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from small_records import gibbs_chain, random_records, random_start
from small_records import ordinal as ordinal_domain

import rejoint as rj
from rejoint.estimation import Bayes, Em, estimate
from rejoint.estimation.data import InMemory
from rejoint.estimation.smoothing import heat_kernel, smooth_levels, smooth_variables
from rejoint.model import Model

SHORT = Bayes(chains=2, burn_in=20, draws=20, thin=2)
SHAPE = (4, 3, 5)


def ordinal(pmf):
    """The same model over levels with an order."""
    return rj.LowRankPMF(pmf.weights, pmf.factors, ordinal_domain(pmf.domain))


def bumps(seed, variables=6, levels=9, rank=3):
    """Columns that are bumps about one or two levels wide."""
    rng = np.random.default_rng(seed)
    center = rng.uniform(0, levels - 1, (variables, rank))
    width = rng.uniform(0.9, 2.0, (variables, rank))
    at = np.arange(levels)[:, None]
    factors = [
        np.exp(-0.5 * ((at - c) / w) ** 2) + 0.01 for c, w in zip(center, width, strict=True)
    ]
    weights = rng.dirichlet(np.full(rank, 5.0))
    return ordinal(rj.LowRankPMF(weights, [a / a.sum(axis=0) for a in factors]))


@pytest.mark.parametrize("time", [0.0, 0.1, 3.0])
def test_the_kernel_moves_to_neighbors_and_keeps_mass(time):
    kernel = heat_kernel(5, time)
    assert np.allclose(kernel.sum(axis=0), 1)
    assert np.allclose(kernel, kernel.T)
    assert (np.diff(kernel[0]) <= 1e-12).all()  # the farther the rarer
    if time == 0:
        assert np.allclose(kernel, np.eye(5))


def test_the_pass_has_the_gradient_of_its_likelihood():
    """``B dL/dB`` are the counts: checked by differences."""
    data = smooth_levels(InMemory.of(random_records(0, SHAPE, 80)), [0, 2], 0.3)
    model = random_start(1, SHAPE, 2)
    found = data.expect(model)
    for row, f in ((0, 0), (3, 1), (5, 0), (9, 1)):
        factors = model.factors.copy()
        factors[row, f] *= 1 + 1e-6
        rise = data.expect(replace(model, factors=factors)).log_likelihood - found.log_likelihood
        # Second differences are 1e-6 of the first, rounding 1e-13 of 300 over 1e-6.
        assert rise / 1e-6 == pytest.approx(found.levels[row, f], rel=1e-3, abs=1e-3)
    assert found.levels.sum() == pytest.approx(3 * 80)


def test_without_time_the_data_are_as_they_were():
    plain = InMemory.of(random_records(0, SHAPE, 80))
    smooth = smooth_levels(plain, [0, 1, 2], 0.0)
    model = random_start(1, SHAPE, 2)
    assert np.array_equal(smooth.expect(model).levels, plain.expect(model).levels)
    assert np.array_equal(smooth.concentration_unit, plain.concentration_unit)


def test_steps_raise_the_likelihood():
    data = smooth_levels(InMemory.of(random_records(0, SHAPE, 80)), [0, 2], 0.3)
    state = Em().init(data, random_start(1, SHAPE, 2))
    for _ in range(60):
        before, state = state, Em().step(data, state)
        assert state.objective <= before.objective + 1e-9


def test_drawn_hidden_levels_are_those_expected():
    data = smooth_levels(InMemory.of(random_records(0, SHAPE, 80)), [0, 2], 0.3)
    factors = random_start(1, SHAPE, 2).factors
    counts = np.full((12, 2), 1e6)
    drawn = data.hidden.draw_counts(counts, factors, np.random.default_rng(0))
    assert np.array_equal(drawn[4:7], counts[4:7])  # the variable that is not smooth
    # Five standard deviations of a sum of some binomials of a million.
    assert np.abs(drawn - data.hidden.share_counts(counts, factors)).max() < 5 * 2000
    assert drawn.sum() == counts.sum()


def test_draws_lie_around_the_observed_shares():
    """One class, one variable: the draws' mean level shares are near the observed ones."""
    codes = np.repeat(np.arange(5), [50, 150, 300, 150, 50]).astype(np.int16)[:, None]
    records = rj.Records(rj.Domain.of({"a": 5}), codes)
    data = smooth_levels(InMemory.of(records), [0], 0.2)
    start = Model(data.layout, np.ones(1), np.full((5, 1), 0.2))
    draws = islice(gibbs_chain(data, start, np.random.default_rng(0)), 50, 450)
    mean = np.mean([data.observed(draw.model).factors[:, 0] for draw in draws], axis=0)
    # A share of 700 records is known to 0.02; the prior is centered on the shares themselves.
    assert np.abs(mean - np.array([50, 150, 300, 150, 50]) / 700).max() < 0.03


@pytest.mark.parametrize("solver", ["ml", "map", SHORT], ids=["ml", "map", "bayes"])
def test_fresh_records_are_more_probable_where_columns_are_smooth(solver):
    truth = bumps(0)
    data, fresh = truth.sample(300, random_state=0), truth.sample(5000, random_state=1)

    def gap(smooth):
        result = estimate(data, 3, solver, smooth=smooth, random_state=0)
        model = result.pmf.mixture
        return np.mean(truth.log_prob(fresh) - model.log_prob(fresh))

    # Measured over three models of eight variables: 0.44 to 0.23 (map), 0.47 to 0.25 (Bayes).
    assert gap(True) < 0.8 * gap(False)


def test_rough_columns_stay_rough():
    rng = np.random.default_rng(3)
    factors = [rng.dirichlet(np.full(7, 0.5), size=2).T for _ in range(5)]
    truth = ordinal(rj.LowRankPMF([0.4, 0.6], factors))
    data = truth.sample(3000, random_state=0)
    result = estimate(data, 2, "map", smooth=True, random_state=0)
    assert result.choice.endswith("no spread that was tried raises the held-out likelihood.")
    plain = estimate(data, 2, "map", random_state=0)
    # The same fit from other random numbers: one maximum, to the stopping rule.
    assert rj.metrics.tensor_error(plain.pmf, result.pmf) < 1e-2


def test_only_those_named_are_smooth():
    data = bumps(1).sample(300, random_state=0)
    result = estimate(data, 3, "ml", smooth=["x0", "x3"], random_state=0)
    assert "Smoothed columns: the held-out likelihood chose a spread of" in result.choice
    least = [a.min() for a in result.pmf.factors]
    # The likelihood puts zeros where a class has no records; smoothing leaves none.
    assert min(least[0], least[3]) > 1e-8
    assert min(least[1], least[2], least[4], least[5]) < 1e-8


def test_true_means_ordinal_and_binned_variables():
    rows = {"a": [1, 2, 3] * 20, "b": [1.0, 2.0, 3.0] * 20, "c": ["x", "y", "z"] * 20}
    data = rj.Records.of(rows, kinds={"a": "ordinal"}, bins={"b": 3})
    assert smooth_variables(data.domain, True) == (0, 1)
    assert smooth_variables(data.domain, False) == ()


def test_nominal_is_an_error():
    data = random_records(0, SHAPE, 50)
    with pytest.raises(ValueError, match=r"'x1' is nominal.*no order.*'ordinal'"):
        estimate(data, 2, smooth=["x1"])


def test_joint_pmf_takes_smooth():
    data = bumps(1).sample(200, random_state=0)
    model = rj.JointPMF(rank=2, solver="map", n_init=2, smooth=True, random_state=0).fit(data)
    assert "Smoothed columns" in model.result_.choice
    with pytest.raises(ValueError, match=r"smooth=True needs the records.*'kl'"):
        rj.JointPMF(rank=2, solver="kl", smooth=True).fit(data)
    for solver, is_smooth in (("map", True), ("ml", False), (Em(), False)):
        model = rj.JointPMF(rank=2, solver=solver, n_init=2, random_state=0).fit(data)
        assert ("Smoothed columns" in model.result_.choice) == is_smooth
