"""Learners of missing cells: against formulas, against brute force, and on what they are for."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

import rejoint as rj
from rejoint.domain.labels import Bin
from rejoint.estimation import Bayes
from rejoint.estimators.imputer.column_learner import (
    CategoryLearner,
    Forest,
    KernelRidge,
    LevelLogistic,
    LevelPool,
    NumberSpread,
    fit_ridge,
    spread_values,
)
from rejoint.estimators.imputer.row_completion import (
    ClassMembers,
    FeatureMap,
    IncompleteGaussian,
    fit_members,
)
from rejoint.model import Model
from rejoint.solver.session import Session


def normal(size, seed):
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(size, size))
    return IncompleteGaussian(rng.normal(size=size), half @ half.T + 0.1 * np.eye(size)), rng


def conditional(model, row, without=()):
    """Mean and covariance of all columns of a row given those it has, by the textbook."""
    seen = [k for k in range(len(row)) if not np.isnan(row[k]) and k not in without]
    S, rest = model.covariance, [k for k in range(len(row)) if k not in seen]
    mean, cov = np.array(row), np.zeros(S.shape)
    gain = S[np.ix_(rest, seen)] @ np.linalg.inv(S[np.ix_(seen, seen)])
    mean[rest] = model.mean[rest] + gain @ (row[seen] - model.mean[seen])
    cov[np.ix_(rest, rest)] = S[np.ix_(rest, rest)] - gain @ S[np.ix_(seen, rest)]
    return mean, cov


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 5), st.integers(0, 10_000))
def test_normal_rows_are_completed_by_the_conditional_mean(size, seed):
    model, rng = normal(size, seed)
    rows = rng.normal(size=(12, size))
    rows[rng.random(rows.shape) < 0.4] = np.nan
    completed, variance = model.complete(rows)
    for row, mean, var in zip(rows, completed, variance, strict=True):
        expected, cov = conditional(model, row)
        np.testing.assert_allclose(mean, expected, atol=1e-7)  # inverses of small matrices
        np.testing.assert_allclose(var, np.diag(cov), atol=1e-7)


@settings(max_examples=20, deadline=None)
@given(st.integers(3, 6), st.integers(0, 10_000))
def test_a_cell_is_left_out_of_what_completes_its_row(size, seed):
    model, rng = normal(size, seed)
    rows = rng.normal(size=(10, size))
    rows[rng.random(rows.shape) < 0.3] = np.nan
    groups = [np.array([0]), np.array([1, 2])]
    rows[:, 2] = np.where(np.isnan(rows[:, 1]), np.nan, 0.5)  # a group is missing as a whole
    seen = set()
    for which, k, completed, variance in model.complete_without(rows, groups):
        for row, mean, var in zip(which, completed, variance, strict=True):
            expected, cov = conditional(model, rows[row], tuple(groups[k].tolist()))
            gone = np.isnan(rows[row])
            gone[groups[k]] = True
            # A billionth is added to the precision of the group before it is inverted.
            np.testing.assert_allclose(mean[gone], expected[gone], rtol=1e-4, atol=1e-4)
            if len(groups[k]) == 1:
                assert var == pytest.approx(cov[groups[k][0], groups[k][0]], rel=1e-4)
            seen.add((int(row), k))
    assert seen == {
        (r, k) for k, g in enumerate(groups) for r in range(10) if rows[r, g[0]] == rows[r, g[0]]
    }


def test_left_out_values_of_a_ridge_are_those_of_refits():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(25, 4))
    X -= X.mean(axis=0)
    y = X @ [1.0, 0.5, 0.0, -1.0] + rng.normal(size=25)
    y -= y.mean()
    found = fit_ridge(X, y, np.ones(25))
    penalties = [
        lam
        for lam in np.geomspace(0.1, 3000.0, 12)
        if np.allclose(np.linalg.solve(X.T @ X + lam * np.eye(4), X.T @ y), found.coefficients)
    ]
    assert len(penalties) == 1
    for row in range(25):
        kept = np.arange(25) != row
        A = np.column_stack([X[kept], np.ones(24)])
        gram = A.T @ A + np.diag([penalties[0]] * 4 + [0.0])
        beta = np.linalg.solve(gram, A.T @ y[kept])
        assert found.left_out[row] == pytest.approx(X[row] @ beta[:4] + beta[4], abs=1e-9)


def test_weights_of_a_ridge_are_copies():
    rng = np.random.default_rng(1)
    X, weight = rng.normal(size=(30, 2)), rng.integers(1, 4, size=30)
    y = X[:, 0] + 0.1 * rng.normal(size=30)
    center = weight @ X / weight.sum()
    once = fit_ridge(X - center, y, weight.astype(float))
    copies = np.repeat(np.arange(30), weight)
    gram = (X - center)[copies]
    options = [
        np.linalg.solve(gram.T @ gram + lam * np.eye(2), gram.T @ y[copies])
        for lam in np.geomspace(0.1, 3000.0, 12)
    ]
    assert min(np.abs(once.coefficients - beta).max() for beta in options) < 1e-9


def test_draws_of_a_ridge_differ_as_refits_to_new_data():
    """The deviation of a line's prediction is sigma sqrt(1 / n + x**2 / sum(x**2))."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 1))
    X -= X.mean()
    ridge, _ = KernelRidge.fit(X, 2 * X + 0.5 * rng.normal(size=(200, 1)), np.ones(200), rng)
    new = np.array([[0.0], [1.0], [2.0]])
    found = np.array([ridge.deviate(rng).predict(new)[:, 0] for _ in range(400)])
    np.testing.assert_allclose(found.mean(axis=0), 0.0, atol=0.03)
    line = 0.5 * np.sqrt(1 / 200 + new[:, 0] ** 2 / (X**2).sum())
    # 50 draws are kept: a deviation errs by 10 %, and the curve adds some.
    assert (found.std(axis=0) > 0.75 * line).all()
    assert (found.std(axis=0) < 1.75 * line).all()


def test_posterior_draws_of_a_ridge_have_its_covariance():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(40, 3))
    fit = fit_ridge(X, X[:, 0] + rng.normal(size=40), np.ones(40))
    drawn = fit.deviate(X, rng.normal(size=(40, 20_000)), rng.normal(size=(3, 20_000)))
    truth = np.linalg.inv(X.T @ X + fit.penalty * np.eye(3))
    np.testing.assert_allclose(np.cov(drawn), truth, atol=0.05 * truth.max())


def test_a_center_gives_the_mean_that_is_predicted():
    values = np.linspace(-1.0, 1.0, 41)
    spread = NumberSpread(values, np.arange(41), np.ones(41), 0.0, 0.0, 0.6, 0.1)
    classes, predicted = np.full((3, 41), 1 / 41), np.array([0.0, 0.3, -0.5])
    middle = spread.center(classes, predicted, np.ones(3))
    np.testing.assert_allclose(
        spread.table(classes, middle, np.ones(3)) @ values, predicted, atol=0.01
    )
    assert abs(spread.table(classes, predicted, np.ones(3))[2] @ values + 0.5) > 0.1


def test_a_curve_is_found_and_a_line_stays_a_line():
    rng = np.random.default_rng(2)
    X = rng.uniform(-2, 2, size=(500, 3))
    new = rng.uniform(-2, 2, size=(200, 3))
    for truth, most in (
        (lambda x: x[:, :1] ** 2 + x[:, 1:2], 0.15),
        (lambda x: x @ [[1], [2], [0.5]], 0.03),
    ):
        ridge, left_out = KernelRidge.fit(
            X, truth(X) + 0.1 * rng.normal(size=(500, 1)), np.ones(500), rng
        )
        error = np.sqrt(np.mean((ridge.predict(new) - truth(new)) ** 2))
        assert error < most  # the spread of the first is 1.7, of the second 2.6
        # Left-out errors are those of new rows, up to the noise of 0.1.
        assert np.std(left_out - truth(X)) == pytest.approx(error, abs=0.03)


def test_logistic_regressions_find_a_boundary():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(3000, 2))
    truth = expit(2.0 * X[:, 0] - 1.0)
    codes = (rng.random(3000) < truth).astype(np.intp)
    before = np.full((3000, 3), 0.2)
    logistic, _ = LevelLogistic.fit(X, codes, before, np.ones(3000), rng)
    table = logistic.predict(X, before)
    assert logistic.levels.tolist() == [0, 1]
    # The level that never occurs keeps its share of the sum, which is one and 0.2.
    np.testing.assert_allclose(table[:, 2], 0.2 / 1.2, atol=0.03)
    # Standard errors of the coefficients are about 0.07.
    np.testing.assert_allclose(table[:, 1] * 1.2, truth, atol=0.08)


def test_draws_of_a_logistic_regression_have_its_standard_error():
    """Without a slope, the logit of a share p of n has the standard error 1 / sqrt(n p q)."""
    rng = np.random.default_rng(7)
    codes = (np.arange(400) < 100).astype(np.intp)
    before, X = np.full((400, 2), 0.5), np.zeros((400, 1))
    logistic, _ = LevelLogistic.fit(X, codes, before, np.ones(400), rng)
    table = np.array([[0.75, 0.25]])
    drawn = [logistic.move(table, X[:1], logistic.deviate(rng))[0] for _ in range(400)]
    logits = np.log(np.array(drawn)[:, 1] / np.array(drawn)[:, 0])
    # 50 draws are kept: a deviation errs by 10 %.
    assert logits.std() == pytest.approx(1 / np.sqrt(400 * 0.25 * 0.75), rel=0.35)
    assert np.sum(drawn, axis=1) == pytest.approx(np.ones(400))


def test_a_forest_finds_rows_that_are_alike_and_learns_nothing_from_noise():
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(60), 5)
    X, y = rng.normal(size=(60, 2))[who], rng.normal(size=60)[who]
    forest, left_out = Forest.fit(X, y[:, None], np.ones(300), 20, rng)
    assert np.corrcoef(left_out[:, 0], y)[0, 1] > 0.95
    assert forest.predict(X)[:, 0] == pytest.approx(y, abs=1e-5)  # single precision
    noise = rng.normal(size=(300, 3))
    _, left_out = Forest.fit(noise, y[:, None], np.ones(300), 20, rng)
    # Four standard errors of a correlation of 300, as if values did not repeat.
    assert abs(np.corrcoef(left_out[:, 0], y)[0, 1]) < 4 / np.sqrt(300)


def test_a_level_that_means_a_number_above_some_value_is_sure_where_the_number_is_observed():
    rng = np.random.default_rng(0)
    years = rng.integers(6, 18, size=400).astype(float)
    codes, gone = (years > 12).astype(np.intp), rng.random((400, 1)) < 0.3
    guessed = np.where(gone[:, 0], years + 4 * rng.normal(size=400), years)
    X = np.hstack([guessed[:, None], rng.normal(size=(400, 5))])
    every, even = np.arange(6), np.full((400, 2), 0.5)
    near = np.flatnonzero(~gone[:, 0] & np.isin(years, [12, 13]))
    chance = []
    for flags in (gone, np.zeros_like(gone)):
        learner = CategoryLearner.fit(every, every, X, flags, codes, even, np.ones(400), rng)
        fresh = np.hstack([years[near, None], rng.normal(size=(len(near), 5))])
        table = learner.predict(fresh, flags[near], even[near])
        chance.append(table[np.arange(len(near)), codes[near]])
    # Flags say that what blurs the threshold was guessed.
    assert np.log(chance[0]).mean() > np.log(chance[1]).mean() + 0.05  # 0.02 to 0.16 over seeds
    assert (chance[0] > 0.5).all()


def test_pooled_levels_trust_the_better_part_and_temper_a_bold_one():
    rng = np.random.default_rng(0)
    truth = rng.uniform(0.2, 0.8, size=2000)
    codes = (rng.random(2000) < truth).astype(np.intp)
    good = np.stack([1 - truth, truth], axis=1)
    bold, noise = good**3, rng.uniform(0.3, 0.7, size=(2000, 1))
    bold /= bold.sum(axis=1, keepdims=True)
    parts = [bold, np.hstack([noise, 1 - noise])]
    pool = LevelPool.fit(parts, codes, np.ones(2000))
    # A third undoes the cube; the standard error of a power is about 0.03.
    assert pool.powers == pytest.approx([1 / 3, 0.0], abs=0.15)
    assert np.abs(pool.mix(parts) - good).mean() < 0.03


def test_parts_that_know_nothing_leave_the_shares_of_levels():
    rng = np.random.default_rng(4)
    codes = (rng.random(2000) < 0.1).astype(np.intp)
    noise = rng.uniform(0.02, 0.98, size=(2, 2000, 1))
    parts = [np.hstack([part, 1 - part]) for part in noise]
    pool = LevelPool.fit(parts, codes, np.ones(2000))
    np.testing.assert_allclose(pool.mix(parts)[:, 1], 0.1, atol=0.05)


def test_a_curve_of_indicators_finds_a_product_of_columns():
    """Which no logistic regression of the columns finds."""
    rng = np.random.default_rng(8)
    X = rng.uniform(-2, 2, size=(400, 2))
    truth = expit(2 * X[:, 0] * X[:, 1])
    codes = (rng.random(400) < truth).astype(np.intp)
    indicators = np.stack([1 - codes, codes], axis=1).astype(float)
    curve, left_out = KernelRidge.fit(X, indicators, np.ones(400), rng, draws=0)
    np.testing.assert_allclose(left_out.sum(axis=1), 1.0)
    logistic, _ = LevelLogistic.fit(X, codes, np.full((400, 2), 0.5), np.ones(400), rng)
    new = rng.uniform(-2, 2, size=(400, 2))
    right = expit(2 * new[:, 0] * new[:, 1])
    straight = logistic.predict(new, np.full((400, 2), 0.5))[:, 1]
    assert np.abs(curve.predict(new)[:, 1] - right).mean() < 0.12
    assert np.abs(straight - right).mean() > 0.25


def test_intervals_of_few_values_hold_as_many_as_they_say():
    """Whole numbers around a prediction: equal tails alone hold too many."""
    rng = np.random.default_rng(0)
    predicted = rng.uniform(1, 6, size=500)
    truth = np.clip(np.round(predicted + 0.7 * rng.normal(size=500)), 0, 7)
    number = rj.Variable("number", tuple(range(8)), "ordinal")
    classes, ones = np.full((500, 8), 1 / 8), np.ones(500)
    spread = NumberSpread.fit(number, classes, predicted, ones, truth, 1.0, rng)
    found = spread.table(classes, predicted, ones)
    held = {}
    for name, tail in (("fitted", spread.tail(0.8, ones)), ("equal", 0.1 * ones)):
        low, high = (spread.quantile(found, t) for t in (tail, 1 - tail))
        held[name] = np.mean((low <= truth) & (truth <= high))
    assert held["fitted"] == pytest.approx(0.8, abs=0.02)  # one of a hundred quantiles
    assert held["equal"] > 0.83


def test_intervals_hold_as_many_in_rows_that_are_known_well_as_in_others():
    """Errors differ by another factor than the deviations that rows are said to leave."""
    rng = np.random.default_rng(0)
    well = rng.random(1000) < 0.7
    deviation = np.where(well, 0.5, 2.0)
    predicted = rng.uniform(10, 30, size=1000)
    truth = np.round(predicted + np.where(well, 0.7, 6.0) * rng.normal(size=1000))
    number = rj.Variable("number", tuple(range(-15, 56)), "ordinal")
    classes = np.full((1000, 71), 1 / 71)
    fit, new = np.arange(500), np.arange(500, 1000)
    parts = (part[fit] for part in (classes, predicted, deviation, truth))
    spread = NumberSpread.fit(number, *parts, 1.0, rng)
    found = spread.table(classes[new], predicted[new], deviation[new])
    tail = spread.tail(0.9, deviation[new])
    low, high = spread.quantile(found, tail), spread.quantile(found, 1 - tail)
    held = (low <= truth[new]) & (truth[new] <= high)
    assert held[well[new]].mean() == pytest.approx(0.9, abs=0.04)
    assert held[~well[new]].mean() == pytest.approx(0.9, abs=0.04)


AGE = rj.Variable("age", (Bin(0, 18), Bin(18, 65)), contents=[[(3, 1)], [(20, 3), (60, 1)]])


def test_spread_of_a_number_by_hand():
    values, bins, within = spread_values(AGE)
    spread = NumberSpread(values, bins, within, 1.0, 0.0, 10.0, 0.5)
    classes = np.array([[0.4, 0.6]])
    alone = np.array([0.4, 0.45, 0.15])
    bell = np.exp(-0.5 * ((values - 20) / 10) ** 2)
    table = spread.table(classes, np.array([20.0]), np.ones(1))
    near = alone * bell
    np.testing.assert_allclose(table[0], 0.5 * near / near.sum() + 0.5 * alone)
    # Without the classes the density is normal: a value stands for the line around it.
    bell = np.array([17.0, 28.5, 40.0]) * bell
    plain = NumberSpread(values, bins, within, 0.0, 0.0, 10.0, 0.0)
    np.testing.assert_allclose(
        plain.table(classes, np.array([20.0]), np.ones(1))[0], bell / bell.sum()
    )
    np.testing.assert_allclose(spread.levels(table, 2)[0], [table[0, 0], table[0, 1:].sum()])
    assert spread.quantile(table, np.array([0.5])) == [20.0]
    assert spread.quantile(table, np.array([0.999])) == [60.0]


def test_members_do_not_see_hidden_cells():
    """Two columns of coins: what members that saw a cell say of it is biased towards it."""
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=(60, 8)).astype(np.int8)
    members, hidden = fit_members(
        rj.Domain.of_shape([2] * 8), codes, np.ones(60), False, Session(np.random.default_rng(1))
    )
    found = members.posteriors(codes)
    shares, none = [], np.zeros((16, 0))
    for cells in (hidden, [np.ones_like(each) for each in hidden]):
        right = [
            members.leave_out(found, codes, cells, n, none)[0][np.arange(60), codes[:, n]]
            for n in range(8)
        ]
        shares.append(np.mean(right))
    assert shares[0] == pytest.approx(0.5, abs=0.03)  # 480 coins: a standard error of 0.02
    assert shares[1] > shares[0] + 0.03


def test_leaving_out_is_hiding():
    rng = np.random.default_rng(0)
    factors = [rng.dirichlet(np.ones(3), size=4).T for _ in range(3)]
    model = Model.of(rng.dirichlet(np.ones(4)), factors)
    members = ClassMembers(model.layout, (model,))
    codes = np.array([[0, 1, 2], [2, 1, -1]], dtype=np.int8)
    table, expected = members.leave_out(
        members.posteriors(codes), codes, [np.ones(codes.shape, bool)], 1, np.eye(9)
    )
    blind = codes.copy()
    blind[:, 1] = -1
    everything = members.average(members.posteriors(blind), np.eye(9))
    np.testing.assert_allclose(table, everything[:, 3:6], atol=1e-12)  # rounding only
    np.testing.assert_allclose(expected, everything, atol=1e-12)


def test_features_of_levels_are_those_of_rows():
    domain = rj.Domain([rj.Variable("a", (1, 2, 4), "ordinal"), rj.Variable("b", ("x", "y", "z"))])
    codes = np.array([[0, 0], [1, 1], [2, 0], [0, 2], [1, 1], [2, 0]] * 3, dtype=np.int8)
    values = np.column_stack([domain[0].numeric[codes[:, 0]], np.full(18, np.nan)])
    features = FeatureMap.of(domain, np.array([0]), codes, values, np.ones(18))
    columns = features.encode(codes, values)
    one_hot = np.hstack([np.eye(3)[codes[:, 0]], np.eye(3)[codes[:, 1]]])
    np.testing.assert_allclose(one_hot @ features.worth, columns)
    assert columns[:, 0].mean() == pytest.approx(0.0)
    assert columns[:, 0].std() == pytest.approx(1.0)


# --- what it is for --------------------------------------------------------------------------


def table(rows=600, seed=0):
    """Numbers in a line, in a curve, and by group; a category by a number."""
    rng = np.random.default_rng(seed)
    group = rng.integers(3, size=rows)
    x = rng.normal(size=rows) + group
    return pd.DataFrame(
        {
            "x": x,
            "line": 2 * x + 0.3 * rng.normal(size=rows),
            "curve": x**2 + 0.3 * rng.normal(size=rows),
            "group": np.array(["low", "mid", "top"])[group],
            "side": np.where(x + 0.3 * rng.normal(size=rows) > 1, "right", "left"),
        }
    )


@pytest.fixture(scope="module")
def holes():
    full = table()
    rng = np.random.default_rng(9)
    return full, full.mask(rng.random(full.shape) < 0.2)


@pytest.fixture(scope="module")
def imputer(holes):
    return rj.JointImputer(bins=15, random_state=0).fit(holes[1])


def test_numbers_are_predicted_better_than_by_the_joint(holes, imputer):
    full, missing = holes
    plain = rj.JointImputer.from_pmf(imputer.pmf_)
    errors = {}
    for name in ("x", "line", "curve"):
        gone = missing[name].isna()
        for key, each in (("learner", imputer), ("joint", plain)):
            away = each.transform(missing)[name][gone] - full[name][gone]
            errors[key, name] = np.sqrt(np.mean(away**2)) / full[name].std()
    ratios = [errors["learner", name] / errors["joint", name] for name in ("x", "line", "curve")]
    assert max(ratios) < 1.0
    assert np.mean(ratios) < 0.95


def test_rows_that_repeat_each_other_are_found():
    """Five courses of each of 40 teachers, whose traits have nothing to do with each other."""
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(40), 5)
    traits = rng.normal(size=(40, 3))[who]
    full = pd.DataFrame(traits, columns=["age", "beauty", "voice"])
    full["size"] = rng.normal(size=200)
    missing = full.mask(rng.random(full.shape) < 0.15)
    filled = rj.JointImputer(rank=2, n_init=1, bins=8, random_state=0).fit_transform(missing)
    gone = missing["age"].isna()
    error = np.sqrt(np.mean((filled["age"] - full["age"])[gone] ** 2)) / full["age"].std()
    assert error < 0.5  # of the regression alone: 0.64


def test_intervals_hold_as_often_as_they_say(holes, imputer):
    full, missing = holes
    held = []
    for name in ("x", "line", "curve"):
        gone = missing[name].isna()
        low, high = imputer.interval(missing[gone], name, level=0.8)
        assert (low <= high).all()
        held.append((low <= full[name][gone]) & (full[name][gone] <= high))
    # 370 cells: three standard errors are 0.06.
    assert np.concatenate(held).mean() == pytest.approx(0.8, abs=0.07)


def test_distributions_do_not_look_at_the_column(holes, imputer):
    full, missing = holes
    for name in full:
        shares = imputer.distribution(missing[:40], name)
        np.testing.assert_allclose(shares.sum(axis=1), 1.0)
        changed = missing[:40].assign(**{name: full[name].iloc[0]})
        np.testing.assert_allclose(imputer.distribution(changed, name), shares)
    with pytest.raises(ValueError, match="'group' has no numbers, and so no interval"):
        imputer.interval(missing, "group")
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        imputer.interval(missing, "x", level=90)


def test_draws_have_the_distribution_and_depend_on_each_other(holes, imputer):
    full, _ = holes
    row = full.iloc[[5] * 4000].reset_index(drop=True).assign(x=np.nan, line=np.nan)
    drawn = imputer.set_params(method="draw").transform(row)
    imputer.set_params(method="expect")
    shares = imputer.distribution(row[:1], "x")[0]
    codes = imputer.pmf_.domain["x"].encode(drawn["x"])
    counts = np.bincount(codes, minlength=len(shares)) / 4000
    # Four and a half standard errors of a share of 4,000.
    assert (np.abs(counts - shares) < 4.5 * np.sqrt(shares / 4000) + 1e-3).all()
    assert np.corrcoef(drawn["x"], drawn["line"])[0, 1] > 0.1


def test_rows_do_not_depend_on_each_other(holes, imputer):
    _, missing = holes
    every = imputer.transform(missing)
    some = imputer.transform(missing.iloc[[7, 3, 20]])
    pd.testing.assert_frame_equal(some, every.iloc[[7, 3, 20]], rtol=1e-9)


def test_declared_codes_get_no_expectation():
    X = pd.DataFrame({"code": [1.0, 2.0, 3.0, None] * 30, "y": ["a", "b", "c", "b"] * 30})
    free = rj.JointImputer(random_state=0).fit_transform(X)["code"]
    assert not set(free[3::4]) <= {1.0, 2.0, 3.0}
    held = rj.JointImputer(kinds={"code": "nominal"}, random_state=0).fit_transform(X)["code"]
    assert set(held[3::4]) == {2.0}


@pytest.mark.parametrize("suffix", [".rejoint", ".json"])
def test_a_saved_imputer_gives_the_same_numbers(suffix, tmp_path, holes, imputer):
    _, missing = holes
    path = tmp_path / f"imputer{suffix}"
    imputer.save(path)
    again = rj.load(path)
    assert isinstance(again, rj.JointImputer)
    pd.testing.assert_frame_equal(again.transform(missing), imputer.transform(missing))
    for name in missing:
        assert (again.distribution(missing, name) == imputer.distribution(missing, name)).all()
    assert again.get_params() == imputer.get_params()
    assert list(again.feature_names_in_) == list(missing)
    first, second = (each.impute(missing, n_draws=2)[1] for each in (imputer, again))
    pd.testing.assert_frame_equal(first, second)


def _zeros(part, name):
    return [0] * len(part["arrays"][name]["values"])


def test_a_broken_file_is_refused(tmp_path):
    path = tmp_path / "imputer.json"
    imputer = rj.JointImputer(rank=2, bins=5, random_state=0).fit(table(40)[["x", "side"]])
    imputer.save(path)
    whole = json.loads(path.read_text())

    def broken(change):
        plain = json.loads(json.dumps(whole))
        change(plain["estimator"])
        path.write_text(json.dumps(plain))
        return path

    with pytest.raises(ValueError, match="settings of the imputer in the file are incomplete"):
        rj.load(broken(lambda part: part["settings"].pop("columns")))
    with pytest.raises(ValueError, match="positions of no columns"):
        rj.load(broken(lambda part: part["settings"].update(numbers=[99])))
    with pytest.raises(ValueError, match="do not fit together"):
        rj.load(broken(lambda part: part["arrays"].pop("mean")))
    with pytest.raises(ValueError, match="mean is not an array of 1 axis"):
        rj.load(broken(lambda part: part["arrays"]["mean"].update(shape=[2, 0], values=[])))
    with pytest.raises(ValueError, match="corrupt"):
        rj.load(broken(lambda part: part["arrays"]["mean"].update(shape=[7, 7])))
    loop = "numbers_0_forest.right"  # a node that leads back to the root
    assert max(whole["estimator"]["arrays"][loop]["values"]) > 0
    with pytest.raises(ValueError, match="learner of 'x' in the imputer is incomplete"):
        rj.load(broken(lambda part: part["arrays"][loop].update(values=_zeros(part, loop))))


def test_ctrl_c_leaves_the_joint(monkeypatch, holes):
    _, missing = holes

    def press(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("rejoint.estimators.imputer.cell_model.IncompleteGaussian.fit", press)
    imputer = rj.JointImputer(rank=2, bins=8, random_state=0)
    with pytest.raises(rj.FitInterrupted) as interrupted:
        imputer.fit(missing)
    result = interrupted.value.result
    assert result.pmf is imputer.pmf_
    assert result.interrupted
    assert "Interrupted before the columns had models" in result.stop
    assert imputer.transform(missing).notna().all(axis=None)


def test_ctrl_c_in_the_fit_of_the_joint_leaves_the_best_so_far(monkeypatch, holes):
    """The imputer had no joint then, although the error says that there is a result."""
    _, missing = holes
    real, sweeps = Bayes.step, []

    def press(self, *args):
        sweeps.append(1)
        if len(sweeps) == 30:
            raise KeyboardInterrupt
        return real(self, *args)

    monkeypatch.setattr(Bayes, "step", press)
    imputer = rj.JointImputer(rank=2, bins=8, random_state=0)
    with pytest.raises(rj.FitInterrupted) as interrupted:
        imputer.fit(missing)
    assert interrupted.value.result.pmf is imputer.pmf_
    assert imputer.transform(missing).notna().all(axis=None)


def test_few_records_and_one_column_are_left_to_the_joint():
    few = pd.DataFrame({"a": [1.0, 2.0, None] * 4, "b": ["x", "y", "y"] * 4})
    imputer = rj.JointImputer(random_state=0).fit(few)
    assert not imputer.cell_model_.numbers
    assert imputer.transform(few).notna().all(axis=None)
    low, high = imputer.interval(few, "a")
    assert set(low) | set(high) <= {1.0, 2.0}
    one = rj.JointImputer(random_state=0).fit(pd.DataFrame({"a": [1.0, 2.0, None] * 40}))
    assert one.transform(pd.DataFrame({"a": [None, 2.0]}))["a"][0] == pytest.approx(1.5, abs=0.1)


def test_fit_cells_is_quiet_about_a_constant_column():
    X = pd.DataFrame({"same": [1.0] * 50, "y": np.arange(50) % 7 + 0.5, "z": ["u", "v"] * 25})
    X.loc[::4, "same"] = np.nan
    assert (rj.JointImputer(random_state=0).fit_transform(X)["same"] == 1.0).all()
