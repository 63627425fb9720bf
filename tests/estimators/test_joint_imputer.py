"""JointImputer: scikit-learn's contract, the numbers against enumeration, and its words."""

import itertools
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import binom
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn_checks import checked

import rejoint as rj
from rejoint.estimation import Bayes
from rejoint.estimators.imputer.cell_model import CellModel
from rejoint.estimators.imputer.fill import fill

# Every check passes: there is no exemption to give a reason for.
EXEMPTIONS: dict[str, str] = {}
FAST = Bayes(burn_in=5, draws=5, thin=1)


@pytest.mark.filterwarnings("ignore::rejoint.Remark")  # numbers as levels, unknown ones left
@parametrize_with_checks(
    checked(
        rj.JointImputer(rank=2, solver="map", n_init=1),
        rj.JointImputer(rank=2, solver=FAST, method="draw", n_init=1),
    ),
    expected_failed_checks=lambda estimator: EXEMPTIONS,
)
def test_scikit_learn(estimator, check):
    check(estimator)


DOMAIN = rj.Domain.of({"a": ["x", "y"], "b": [1, 2, 5], "c": ["u", "v", "w"], "d": [True, False]})


def model(seed=0, rank=3) -> rj.LowRankPMF:
    rng = np.random.default_rng(seed)
    factors = [rng.dirichlet(np.full(size, 0.6), size=rank).T for size in DOMAIN.shape]
    return rj.LowRankPMF(rng.dirichlet(np.ones(rank)), factors, DOMAIN)


# Every row that there can be, holes included: 3 * 4 * 4 * 3.
ROWS = np.array(
    list(itertools.product(*(range(-1, size) for size in DOMAIN.shape))), dtype=np.int16
)


def conditional(dense, row):
    """Table of the missing cells of a row, by slicing the whole joint."""
    table = dense[tuple(slice(None) if code < 0 else code for code in row)]
    return table / table.sum()


# --- numbers, against enumeration ------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_modes_probabilities_and_expectations(seed):
    pmf = model(seed)
    dense = pmf.to_dense()
    values = {1: pmf.domain["b"].numeric}
    found = fill(CellModel(pmf), ROWS, ROWS < 0, expect=values, confidence=True)
    expected = iter(found.numbers[1])
    for row, codes, probability in zip(ROWS, found.codes, found.probability, strict=True):
        missing = np.flatnonzero(row < 0)
        assert (codes[row >= 0] == row[row >= 0]).all()
        assert (probability[row >= 0] == 1.0).all()
        if not len(missing):
            continue
        table = conditional(dense, row)
        for axis, n in enumerate(missing):
            others = tuple(k for k in range(len(missing)) if k != axis)
            single = table.sum(axis=others)
            # Sums of a few dozen products: rounding only.
            assert probability[n] == pytest.approx(single.max(), abs=1e-12)
            assert single[codes[n]] == pytest.approx(single.max(), abs=1e-12)
            if n == 1:
                assert next(expected) == pytest.approx(single @ values[1], abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_joint_modes(seed):
    pmf = model(seed)
    dense = pmf.to_dense()
    found = fill(CellModel(pmf), ROWS, ROWS < 0, joint=True, confidence=True)
    assert found.unproven == 0
    alone = fill(CellModel(pmf), ROWS, ROWS < 0).codes
    for row, codes in zip(ROWS, found.codes, strict=True):
        # Rounding only, as above.
        assert dense[tuple(codes)] == pytest.approx(
            conditional(dense, row).max() * whole(dense, row)
        )
    # The two are not the same thing, or the test would say nothing.
    assert (found.codes != alone).any()


def whole(dense, row):
    return dense[tuple(slice(None) if code < 0 else code for code in row)].sum()


def test_joint_modes_say_what_is_not_proven(monkeypatch):
    monkeypatch.setattr("rejoint.estimators.imputer.fill.MOST_NODES", 0)
    rng = np.random.default_rng(0)
    factors = [rng.dirichlet(np.full(4, 3.0), size=6).T for _ in range(8)]
    pmf = rj.LowRankPMF(np.full(6, 1 / 6), factors)  # too flat to be seen through at once
    X = pmf.sample(50, random_state=0)
    imputer = rj.JointImputer.from_pmf(pmf, method="mode", joint=True)
    with pytest.warns(rj.Remark, match="joint mode of 50 rows could not be proven to be the best"):
        imputer.impute(rj.datasets.remove_cells(X.project(X.names), 1.0))


def test_draws_have_the_joint_frequencies():
    pmf = model(1)
    row = np.array([[-1, 1, -1, -1]], dtype=np.int16)
    codes = np.repeat(row, 40_000, axis=0)
    drawn = fill(CellModel(pmf), codes, codes < 0, rng=np.random.default_rng(0)).codes
    table = conditional(pmf.to_dense(), row[0])
    counts = np.zeros(table.shape)
    np.add.at(counts, (drawn[:, 0], drawn[:, 2], drawn[:, 3]), 1)
    # Four and a half standard errors of a share of 40,000, in each of twelve cells.
    assert (np.abs(counts / 40_000 - table) < 4.5 * np.sqrt(table / 40_000) + 1e-12).all()


# --- the estimator ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def frame():
    complete = model(4).sample(1500, random_state=0)
    return rj.datasets.remove_cells(complete, 0.25, random_state=1).to_frame("pandas")


@pytest.fixture(scope="module")
def fitted(frame):
    return rj.JointImputer(rank=3, solver="map", random_state=0).fit(frame)


def test_a_joint_fills_by_its_own_answers(fitted, frame):
    fitted = rj.JointImputer.from_pmf(fitted.pmf_, method="mode")
    filled, probability = fitted.impute(frame, confidence=True)
    there = frame.notna().to_numpy()
    assert filled.notna().all(axis=None)
    assert (probability.to_numpy()[there] == 1.0).all()
    for row in np.flatnonzero(~there.all(axis=1))[:40]:
        given = {
            name: frame.loc[row, name] for name in frame if there[row, frame.columns.get_loc(name)]
        }
        for name in frame.columns[~there[row]]:
            table = fitted.pmf_.marginal(name, given=given)
            assert filled.loc[row, name] == fitted.pmf_.domain[name].levels[table.argmax()]
            assert probability.loc[row, name] == pytest.approx(table.max())
            one = fitted.distribution(frame.iloc[[row]], name)
            np.testing.assert_allclose(one[0], table, atol=1e-12)  # rounding only


def test_is_better_than_the_mode_and_calibrated():
    factors = [[[0.8, 0.1, 0.2], [0.1, 0.8, 0.2], [0.1, 0.1, 0.6]]] * 6
    complete = rj.LowRankPMF([0.3, 0.4, 0.3], factors).sample(1500, random_state=0)
    records = rj.datasets.remove_cells(complete, 0.25, random_state=1)
    imputer = rj.JointImputer(random_state=0).fit(records)
    filled, probability = imputer.impute(records, confidence=True)
    gone = records.codes < 0
    hit = (filled.codes == complete.codes)[gone].mean()
    modes = [np.bincount(column[column >= 0]).argmax() for column in records.codes.T]
    assert hit > (complete.codes == modes)[gone].mean() + 0.2
    # 2,200 cells: three standard errors of a share, sqrt(.25 / 2200) = .011.
    assert probability[gone].mean() == pytest.approx(hit, abs=0.033)


def test_expectations_go_to_columns_of_numbers(fitted):
    imputer = rj.JointImputer.from_pmf(fitted.pmf_)
    row = pd.DataFrame({"a": ["x"], "b": [np.nan], "c": [None], "d": [None]})
    filled = imputer.impute(row)
    assert filled["b"][0] == round(imputer.pmf_.expect("b", given={"a": "x"}))
    assert filled["c"][0] == imputer.pmf_.mode("c", given={"a": "x"})["c"]
    assert filled["d"][0] in (True, False)
    whole = imputer.impute(row.astype({"b": "Int64"}))
    assert whole["b"].dtype == "Int64"
    assert whole["b"][0] == filled["b"][0]
    assert imputer.ask("E(b | a = x)").value == imputer.pmf_.ask("E(b | a = x)").value


def test_multiple_imputation_carries_the_uncertainty_of_the_model():
    """One column, half missing: the share among draws varies as the posterior of the share."""
    X = pd.DataFrame({"a": ["x"] * 12 + ["y"] * 8 + [None] * 2000, "b": ["u", "v"] * 1010})
    imputer = rj.JointImputer(rank=1, solver="bayes", random_state=0).fit(X)
    tables = imputer.impute(X, n_draws=60)
    shares = np.array([(t["a"][20:] == "x").mean() for t in tables])
    # Of 20 observed, a share has a posterior deviation of about sqrt(.24 / 21) = 0.107;
    # draws from one model would have sqrt(.24 / 2000) = 0.011. 60 draws: within 30 %.
    assert 0.075 < shares.std() < 0.14
    assert all(t[:20].equals(X[:20]) for t in tables)
    one = clone(imputer).set_params(solver="ml").fit(X)
    assert one.result_.posterior is None
    shares = np.array([(t["a"][20:] == "x").mean() for t in one.impute(X, n_draws=30)])
    assert shares.std() < 0.02


def test_intervals_of_a_mean_and_of_a_share_hold():
    """Half of two columns missing given a third: intervals hold as often as chance allows."""
    held, runs = np.zeros(2), 15
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=150)
        chance = 1 / (1 + np.exp(-x))
        X = pd.DataFrame({"x": x, "y": x + rng.normal(size=150)})
        X["z"] = np.where(rng.random(150) < chance, "a", "b")
        X[["y", "z"]] = X[["y", "z"]].mask(rng.random((150, 2)) < chance[:, None])
        imputer = rj.JointImputer(rank=2, n_init=1, bins=8, random_state=seed).fit(X)
        tables = imputer.impute(X, n_draws=8)
        means = np.array([[t["y"].mean(), (t["z"] == "a").mean()] for t in tables])
        spreads = np.array([t["y"].var() for t in tables]), means[:, 1] * (1 - means[:, 1])
        pooled = rj.pool(means, np.stack(spreads, axis=1) / 150, level=0.9)
        held += (pooled.low <= [0.0, 0.5]) & (pooled.high >= [0.0, 0.5])
    # If intervals hold in 90 %, fewer than this occur in one of a thousand such tests.
    assert (held >= binom.ppf(0.001, runs, 0.9)).all(), held


def test_the_posterior_mean_is_what_fills(frame):
    imputer = rj.JointImputer(rank=2, solver=Bayes(burn_in=5, draws=40, thin=1), random_state=0)
    imputer = rj.JointImputer.from_pmf(imputer.fit(frame).pmf_)
    name = imputer.pmf_.domain.names[0]
    found = imputer.distribution(frame, name)
    records = rj.Records.of(frame, domain=imputer.pmf_.domain)
    for row, cells in zip(found, records.rows(), strict=True):
        given = {n: x for n, x in cells.items() if n != name and x is not None}
        np.testing.assert_allclose(row, imputer.pmf_.marginal(name, given), atol=1e-12)
    assert imputer.rank_ == imputer.pmf_.rank


@pytest.mark.parametrize("solver", ["ml", "admm"])
def test_other_solvers(frame, solver):
    imputer = rj.JointImputer(rank=2, solver=solver, n_init=1, random_state=0).fit(frame)
    assert imputer.transform(frame).notna().all(axis=None)


def test_weights_are_copies():
    X = pd.DataFrame({"a": ["x", "y", "y"], "b": ["u", "v", "u"]})
    once = rj.JointImputer(rank=1, solver="ml").fit(X, sample_weight=[5, 1, 0])
    twice = rj.JointImputer(rank=1, solver="ml").fit(X.iloc[[0] * 5 + [1]])
    hole = pd.DataFrame({"a": [None], "b": ["u"]})
    assert once.pmf_ == twice.pmf_
    assert once.transform(hole)["a"][0] == "x"


def test_binned_numbers():
    rng = np.random.default_rng(0)
    group = np.arange(600) % 2
    X = pd.DataFrame({"group": group.astype(float), "size": rng.normal(10 * group, 1.0)})
    holes = X.copy()
    holes.loc[:99, "size"] = np.nan
    with pytest.warns(rj.Remark, match="quantile bins: 'size'"):
        imputer = rj.JointImputer(random_state=0).fit(holes)
    seen = set(holes["size"].dropna())
    mode = imputer.set_params(method="mode").impute(holes)["size"][:100]
    assert set(mode) <= seen
    draw = imputer.set_params(method="draw").impute(holes)["size"][:100]
    assert set(draw) <= seen
    assert draw.nunique() > mode.nunique()
    expect = imputer.set_params(method="expect").impute(holes)["size"][:100]
    # The mean of a group: its 250 values have a standard error of 0.06, draws of it 0.14.
    for k in (0, 1):
        mine = group[:100] == k
        # The model leaves some percent to bins of the other group, ten away.
        assert expect[mine].mean() == pytest.approx(10 * k, abs=0.4)
        assert draw[mine].mean() == pytest.approx(10 * k, abs=0.6)
        # Not the deviation: the model leaves a percent or two to bins of the other group.
        assert draw[mine].quantile(0.8) - draw[mine].quantile(0.2) == pytest.approx(1.68, abs=0.6)
    records = rj.Records.of(holes, bins={"size": 4})
    plain = rj.JointImputer(method="mode", random_state=0).fit(records)
    assert set(plain.impute(holes)["size"][:100]) <= seen


# --- rows and columns with nothing in them, levels never seen -----------------------------------


def test_rows_and_columns_without_a_cell(fitted, frame):
    imputer = rj.JointImputer.from_pmf(fitted.pmf_, method="mode")
    empty = frame.iloc[:3].copy()
    empty.loc[0] = None
    empty["c"] = pd.Series([None] * 3, dtype=frame["c"].dtype)
    assert fitted.impute(empty).notna().all(axis=None)
    filled = imputer.impute(empty)
    assert filled.notna().all(axis=None)
    for name in frame:
        best = fitted.pmf_.marginal(name).argmax()
        assert filled.loc[0, name] == fitted.pmf_.domain[name].levels[best]


def test_columns_without_a_cell_go_by_keep_empty_features():
    X = pd.DataFrame({"a": ["x", "y"] * 30, "b": [np.nan] * 60, "c": [1.0, None, 3.0] * 20})
    imputer = rj.JointImputer(random_state=0)
    with pytest.warns(rj.Remark, match="'b' has no value in any row.* transform drops it"):
        dropped = imputer.fit_transform(X)
    assert list(dropped) == ["a", "c"]
    assert list(imputer.get_feature_names_out()) == ["a", "c"]
    assert dropped.notna().all(axis=None)
    imputer.set_params(keep_empty_features=True)
    kept = imputer.transform(X)
    assert list(kept) == list(imputer.get_feature_names_out()) == ["a", "b", "c"]
    assert (kept["b"] == 0).all()
    array = imputer.transform(X)
    assert array["c"].equals(dropped["c"])
    numbers = np.column_stack([X["c"], X["b"], np.arange(60) % 2.0])
    with pytest.warns(rj.Remark, match="'x1' has no value"):
        assert rj.JointImputer(random_state=0).fit_transform(numbers).shape == (60, 2)
    with pytest.raises(ValueError, match="No column has a value"), pytest.warns(rj.Remark):
        rj.JointImputer().fit(X[["b"]])
    declared = X.astype({"b": pd.CategoricalDtype(["u", "v"])})
    assert rj.JointImputer(rank=1).fit_transform(declared)["b"].isin(["u", "v"]).all()


@pytest.mark.parametrize("kind", ["pandas", "polars", "dict", "rows", "array"])
def test_indicators_say_what_was_missing(kind):
    table = {"a": [1.0, None, 3.0, 4.0] * 15, "b": [0.5, 1.5, 2.5, 3.5] * 15}
    made = {
        "pandas": pd.DataFrame,
        "polars": pl.DataFrame,
        "dict": dict,
        "rows": lambda t: [dict(zip(t, row, strict=True)) for row in zip(*t.values(), strict=True)],
        "array": lambda t: pd.DataFrame(t).to_numpy(),
    }
    imputer = rj.JointImputer(add_indicator=True, random_state=0)
    found = imputer.fit_transform(made[kind](table))
    names = list(imputer.get_feature_names_out())
    first = "x0" if kind == "array" else "a"
    assert names == [first, "x1" if kind == "array" else "b", f"missingindicator_{first}"]
    if kind == "rows":
        column = [row[names[2]] for row in found]
    else:
        column = found[:, 2] if kind == "array" else list(found[names[2]])
    assert list(column) == [False, True, False, False] * 15


def test_unknown_levels_are_left_as_they_are(fitted):
    X = pd.DataFrame({"a": ["z", None], "b": [1.0, 7.0], "c": [None, "u"], "d": [True, None]})
    with pytest.warns(rj.Remark, match=r"not levels, left as they are: 'z'.*left as they are: 7"):
        filled = fitted.impute(X)
    assert filled["a"].tolist()[0] == "z"
    assert filled["b"].tolist() == [1.0, 7.0]
    assert filled.notna().all(axis=None)
    # They say nothing about the others.
    with pytest.warns(rj.Remark):
        plain = rj.JointImputer.from_pmf(fitted.pmf_).impute(X)
    assert plain["c"][0] == fitted.pmf_.mode("c", given={"b": 1, "d": True})["c"]


# --- composition -----------------------------------------------------------------------------


def test_composes(frame):
    y = np.arange(len(frame)) % 2
    imputer = rj.JointImputer(rank=2, solver="map", n_init=1, random_state=0)
    pipe = make_pipeline(imputer, OrdinalEncoder(), CategoricalNB())
    search = GridSearchCV(pipe, {"jointimputer__rank": [1, 2]}, cv=2).fit(frame, y)
    assert search.predict(frame).shape == (len(frame),)
    some = make_column_transformer((clone(imputer), ["a", "c"]), remainder="passthrough")
    out = some.set_output(transform="pandas").fit_transform(frame)
    assert list(out.columns) == [
        "jointimputer__a",
        "jointimputer__c",
        "remainder__b",
        "remainder__d",
    ]
    assert out[["jointimputer__a", "jointimputer__c"]].notna().all(axis=None)


def test_set_output_clone_pickle(fitted, frame):
    again = pickle.loads(pickle.dumps(fitted))
    assert again.transform(frame).equals(fitted.transform(frame))
    assert clone(fitted).get_params() == fitted.get_params()
    assert list(fitted.get_feature_names_out()) == list("abcd")
    array = frame.astype({"a": object, "c": object}).to_numpy(dtype=object)
    rows = clone(fitted).set_output(transform="pandas").fit(array).transform(array)
    assert list(rows.columns) == ["x0", "x1", "x2", "x3"]
    assert rows.notna().all(axis=None)


# --- words -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"method": "mean"}, "method must be 'expect', 'mode' or 'draw', not 'mean'"),
        ({"method": "draw", "joint": True}, "joint=True fills in the most probable combination"),
    ],
)
def test_words_for_parameters(params, words, fitted, frame):
    with pytest.raises(ValueError, match=words):
        rj.JointImputer(**params).fit(frame)
    with pytest.raises(ValueError, match=words):
        pickle.loads(pickle.dumps(fitted)).set_params(**params).transform(frame)


def test_words_for_what_does_not_go_together(fitted, frame):
    with pytest.raises(ValueError, match="probabilities are for one table only"):
        fitted.impute(frame, n_draws=2, confidence=True)
    with pytest.raises(KeyError, match="No variable 'e' among 'a', 'b', 'c', 'd'"):
        fitted.distribution(frame, "e")
    with pytest.raises(NotFittedError):
        rj.JointImputer().impute(frame)
    with pytest.raises(ValueError, match="feature names"):
        fitted.transform(frame[["b", "a", "c", "d"]])


def test_draws_repeat_with_the_seed(fitted, frame):
    imputer = clone(fitted).set_params(method="draw").fit(frame)
    first, second = imputer.transform(frame), imputer.transform(frame)
    assert first.equals(second)
    assert not imputer.set_params(random_state=1).transform(frame).equals(first)
    filled, probability = imputer.impute(frame, confidence=True)
    row, column = np.argwhere(frame.isna().to_numpy())[0]
    name = frame.columns[column]
    label = filled.iloc[row, column]
    table = imputer.distribution(frame.iloc[[row]], name)[0]
    assert probability.iloc[row, column] == pytest.approx(
        table[imputer.pmf_.domain[name].code(label)]
    )
