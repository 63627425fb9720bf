"""Learners of missing cells: against formulas, against brute force, and on what they are for."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import ExtraTreesRegressor

import rejoint as rj
from rejoint.domain.labels import Bin
from rejoint.estimators.imputer.column_learner import (
    Linear,
    NumberSpread,
    TrainingRows,
    Trees,
)
from rejoint.estimators.imputer.row_completion import (
    FeatureMap,
    IncompleteGaussian,
    RowCompletion,
)
from rejoint.model import Model


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
@given(st.integers(3, 6), st.integers(0, 10_000))
def test_the_normal_distribution_expects_the_conditional_mean_without_a_group(size, seed):
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(size, size))
    model = IncompleteGaussian(rng.normal(size=size), half @ half.T + 0.1 * np.eye(size))
    rows = rng.normal(size=(10, size))
    rows[rng.random(rows.shape) < 0.3] = np.nan
    rows[:, 2] = np.where(np.isnan(rows[:, 1]), np.nan, 0.5)  # a group is missing as a whole
    completion = RowCompletion(None, None, model)
    for group in (np.array([0]), np.array([1, 2])):
        for at, inverse, pull in model.blocks(rows):
            completed, variance = completion._expect(group, inverse, pull)
            for row, mean, var in zip(rows[at], completed, variance, strict=True):
                expected, cov = conditional(model, row, tuple(group.tolist()))
                # A billionth is added to the precision of the group before it is inverted.
                np.testing.assert_allclose(mean, expected, rtol=1e-4, atol=1e-4)
                if len(group) == 1:
                    assert var == pytest.approx(cov[0, 0], rel=1e-4)


def test_a_normal_distribution_is_estimated_from_rows_with_gaps():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(4000, 1)) + rng.normal(size=(4000, 2))
    rows[::5, 0] = np.nan
    normal = IncompleteGaussian.fit(rows, np.ones(4000), rng)
    # Standard errors of covariances of 4,000 rows are about 0.04.
    np.testing.assert_allclose(normal.covariance, [[2, 1], [1, 2]], atol=0.15)


def test_draws_of_a_logistic_regression_have_its_standard_error():
    """Without a slope, the logit of a share p of n has the standard error 1 / sqrt(n p q)."""
    rng = np.random.default_rng(7)
    codes = (np.arange(400) < 100).astype(np.intp)
    logistic, _ = Linear.fit(TrainingRows(np.zeros((400, 1)), np.ones(400), 0), codes)
    drawn = np.array([logistic.deviate(rng).scores(np.zeros((1, 1)))[0] for _ in range(400)])
    logits = drawn[:, 1] - drawn[:, 0]
    # 50 draws are kept: a deviation errs by 10 %.
    assert logits.std() == pytest.approx(1 / np.sqrt(400 * 0.25 * 0.75), rel=0.35)


def test_trees_are_those_of_scikit_learn_and_learn_nothing_from_noise():
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(60), 5)
    X, y = rng.normal(size=(60, 2))[who], rng.normal(size=60)[who]
    sample = TrainingRows(X, np.ones(300), 0)
    trees, left_out = Trees.fit(sample, y)
    assert np.corrcoef(left_out[:, 0], y)[0, 1] > 0.95  # rows that are alike
    forests, _ = sample.cross_fit(ExtraTreesRegressor(12, max_features=2, random_state=0), y)
    new = rng.normal(size=(50, 2))
    theirs = np.mean([forest.predict(new) for forest in forests], axis=0)
    np.testing.assert_allclose(trees.predict(new)[:, 0], theirs, atol=1e-6)  # single precision
    _, left_out = Trees.fit(TrainingRows(rng.normal(size=(300, 3)), np.ones(300), 0), y)
    # Four standard errors of a correlation of 300, as if values did not repeat.
    assert abs(np.corrcoef(left_out[:, 0], y)[0, 1]) < 4 / np.sqrt(300)


def test_intervals_of_few_values_hold_as_many_as_they_say():
    """Whole numbers around a prediction: equal tails alone hold too many."""
    rng = np.random.default_rng(0)
    predicted = rng.uniform(1, 6, size=500)
    truth = np.clip(np.round(predicted + 0.7 * rng.normal(size=500)), 0, 7)
    number = rj.Variable("number", tuple(range(8)), "ordinal")
    classes, ones = np.full((500, 8), 1 / 8), np.ones(500)
    spread = NumberSpread.of(number).fit(classes, predicted, ones, truth)
    table = spread.table(classes, predicted, ones)
    bounds = {"fitted": spread.interval(table, 0.8).T}
    bounds["equal"] = [spread.quantile(table, np.full(500, height)) for height in (0.1, 0.9)]
    held = {k: np.mean((low <= truth) & (truth <= high)) for k, (low, high) in bounds.items()}
    assert held["fitted"] == pytest.approx(0.8, abs=0.02)  # one of a hundred quantiles
    assert held["equal"] > 0.83


AGE = rj.Variable("age", (Bin(0, 18), Bin(18, 65)), contents=[[(3, 1)], [(20, 3), (60, 1)]])


def test_leaving_out_is_hiding():
    rng = np.random.default_rng(0)
    factors = [rng.dirichlet(np.ones(3), size=4).T for _ in range(3)]
    model = Model.of(rng.dirichlet(np.ones(4)), factors)
    domain, nothing = rj.Domain.of_shape([3, 3, 3]), np.full((2, 3), np.nan)
    features = FeatureMap(domain, *np.indices((3, 3)).reshape(2, -1), np.zeros(9), np.ones(9))
    normal = IncompleteGaussian(np.zeros(9), np.eye(9))
    completion = RowCompletion(features, model.stacked[None], normal)
    codes = np.array([[0, 1, 2], [2, 1, -1]], dtype=np.int8)
    blind, wanted = codes.copy(), np.zeros(codes.shape, dtype=bool)
    blind[:, 1], wanted[:, 1] = -1, True
    [view] = completion.views(codes, nothing, wanted)
    [hidden] = completion.views(blind, nothing, wanted)
    order = np.argsort(view.rows), np.argsort(hidden.rows)
    np.testing.assert_allclose(view.table[order[0]], hidden.table[order[1]], atol=1e-12)
    np.testing.assert_allclose(view.features[order[0]], hidden.features[order[1]], atol=1e-6)
    dense = rj.LowRankPMF(model.weights, factors).to_dense()
    np.testing.assert_allclose(view.table[order[0]][0], dense[0, :, 2] / dense[0, :, 2].sum())


def test_features_of_levels_are_those_of_rows():
    domain = rj.Domain([rj.Variable("a", (1, 2, 4), "ordinal"), rj.Variable("b", ("x", "y", "z"))])
    codes = np.array([[0, 0], [1, 1], [2, 0], [0, 2], [1, 1], [2, 0]] * 3, dtype=np.int8)
    values = np.column_stack([domain[0].numeric[codes[:, 0]], np.full(18, np.nan)])
    features = FeatureMap.of(domain, np.array([0]), codes, values, np.ones(18))
    columns = features.encode(codes, values)
    one_hot = np.hstack([np.eye(3)[codes[:, 0]], np.eye(3)[codes[:, 1]]])
    np.testing.assert_allclose(one_hot @ features.level_values, columns)
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


def test_intervals_and_shares_do_not_depend_on_how_many_rows_are_asked(holes, imputer):
    """Rows are answered in blocks: more than one of them had wider intervals."""
    _, missing = holes
    many = pd.concat([missing] * 8, ignore_index=True)  # 4,800
    alone, among = (np.array(imputer.interval(X, "curve")) for X in (missing, many))
    np.testing.assert_allclose(among, np.tile(alone, 8))
    shares = imputer.distribution(missing, "curve")
    np.testing.assert_allclose(imputer.distribution(many, "curve"), np.tile(shares, (8, 1)))


@pytest.mark.filterwarnings("ignore::rejoint.Remark")  # of another optimum
@pytest.mark.parametrize("method", ["expect", "mode", "draw"])
def test_whole_numbers_stay_whole(method):
    rng = np.random.default_rng(0)
    year = rng.integers(1950, 2020, size=300)
    X = pd.DataFrame(
        {"year": year.astype(float), "price": (year - 1940) * 1.7 + rng.normal(size=300)}
    )
    X.loc[::6, "year"] = np.nan
    imputer = rj.JointImputer(rank=2, bins=8, method=method, random_state=0).fit(X)
    filled = imputer.transform(X)
    assert (filled["year"] % 1 == 0).all()
    assert np.abs(filled["year"] - year).mean() < 5
    assert (np.array(imputer.interval(X, "year")) % 1 == 0).all()
    cells = imputer.transform({name: [None, *X[name][1:3]] for name in X})["year"]
    assert isinstance(cells[0], int | np.integer)


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


def test_declared_codes_get_no_expectation():
    X = pd.DataFrame({"code": [1.5, 2.5, 3.5, None] * 30, "y": ["a", "b", "c", "b"] * 30})
    free = rj.JointImputer(random_state=0).fit_transform(X)["code"]
    assert not set(free[3::4]) <= {1.5, 2.5, 3.5}
    held = rj.JointImputer(kinds={"code": "nominal"}, random_state=0).fit_transform(X)["code"]
    assert set(held[3::4]) == {2.5}


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
    return [0] * len(part[name]["values"])


def test_a_broken_file_is_refused(tmp_path):
    path = tmp_path / "imputer.json"
    imputer = rj.JointImputer(rank=2, bins=5, random_state=0).fit(table(40)[["x", "side"]])
    imputer.save(path)
    whole = json.loads(path.read_text())

    def broken(change, part="estimator"):
        plain = json.loads(json.dumps(whole))
        change(plain[part])
        path.write_text(json.dumps(plain))
        return path

    with pytest.raises(ValueError, match="settings of the imputer in the file are incomplete"):
        rj.load(broken(lambda part: part["settings"].pop("columns")))
    with pytest.raises(ValueError, match="in the file are incomplete"):
        rj.load(broken(lambda part: part["settings"].update(numbers=[99])))
    with pytest.raises(ValueError, match="do not fit together"):
        rj.load(broken(lambda part: part["arrays"].remove("normal.mean")))
    mean = "estimator_normal.mean"
    with pytest.raises(ValueError, match="do not fit together"):
        rj.load(broken(lambda part: part[mean].update(shape=[2, 0], values=[]), "arrays"))
    with pytest.raises(ValueError, match="corrupt"):
        rj.load(broken(lambda part: part[mean].update(shape=[7, 7]), "arrays"))
    loop = "estimator_learner_0.trees.right"  # a node that leads back to the root
    assert max(whole["arrays"][loop]["values"]) > 0
    with pytest.raises(ValueError, match="learner of 'x' is incomplete"):
        rj.load(broken(lambda part: part[loop].update(values=_zeros(part, loop)), "arrays"))


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


def test_few_records_and_one_column_are_left_to_the_joint():
    few = pd.DataFrame({"a": [1.0, 2.0, None] * 4, "b": ["x", "y", "y"] * 4})
    imputer = rj.JointImputer(random_state=0).fit(few)
    assert not imputer.cell_model_.learners
    assert imputer.transform(few).notna().all(axis=None)
    low, high = imputer.interval(few, "a")
    assert set(low) | set(high) <= {1.0, 2.0}
    one = rj.JointImputer(random_state=0).fit(pd.DataFrame({"a": [1.0, 2.5, None] * 40}))
    assert one.transform(pd.DataFrame({"a": [None, 2.5]}))["a"][0] == pytest.approx(1.75, abs=0.1)


def test_fit_cells_is_quiet_about_a_constant_column():
    X = pd.DataFrame({"same": [1.0] * 50, "y": np.arange(50) % 7 + 0.5, "z": ["u", "v"] * 25})
    X.loc[::4, "same"] = np.nan
    assert (rj.JointImputer(random_state=0).fit_transform(X)["same"] == 1.0).all()
