"""JointClassifier: scikit-learn's contract, what it learns, what it says of rows."""

import pickle
import warnings
from itertools import permutations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn_checks import checked

import rejoint as rj
from rejoint.estimators import ClassifierPolicy
from rejoint.estimators.classifier import label_likelihood

# Every check passes: there is no exemption to give a reason for.
EXEMPTIONS: dict[str, str] = {}
QUICK = ClassifierPolicy(
    members=2, steps=5, first_steps=30, plain_scales=(0.4, 0.8), class_scales=(1.0,)
)


@pytest.mark.filterwarnings("ignore::rejoint.Remark")  # numbers as levels, unknown ones as holes
@parametrize_with_checks(
    checked(
        rj.JointClassifier(policy=QUICK),
        rj.JointClassifier(rank=4, solver="map", policy=QUICK),
    ),
    expected_failed_checks=lambda estimator: EXEMPTIONS,
)
def test_scikit_learn(estimator, check):
    check(estimator)


def world(rows=600, holes=0.0, seed=0):
    """Features and a label that depends on whether two of them agree."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, size=(rows, 4))
    right = (codes[:, 0] == codes[:, 1]) ^ (rng.random(rows) < 0.05)
    X = pd.DataFrame(np.array(["low", "mid", "high"])[codes], columns=list("abcd"))
    if holes:
        X = X.mask(rng.random(X.shape) < holes)
    return X, pd.Series(np.where(right, "same", "other"), name="verdict")


@pytest.fixture(scope="module")
def fitted():
    X, y = world(holes=0.1)
    return rj.JointClassifier(rank=8, policy=QUICK, random_state=0).fit(X, y)


def members_of(model: rj.JointClassifier) -> list[rj.LowRankPMF]:
    """The models that are averaged."""
    return list(model.ensemble_.members)


# --- learning --------------------------------------------------------------------------------


def test_learns_what_no_single_feature_tells():
    """Agreement of two features is invisible to naive Bayes and to logistic regression."""
    X, y = world(1500)
    model = rj.JointClassifier(random_state=0).fit(X[:1000], y[:1000])
    # One label in 20 is wrong on purpose; 0.02 is two standard errors of 500 rows.
    assert model.score(X[1000:], y[1000:]) > 0.93
    assert "Weights of the parts in the average" in model.result_.choice


def test_probabilities_are_calibrated():
    truth = rj.datasets.asia()
    X = truth.sample(4000, random_state=1).to_frame("pandas")
    y = X.pop("bronc")
    model = rj.JointClassifier(rank=8, policy=QUICK, random_state=0)
    shares = model.fit(X[:2000], y[:2000]).predict_proba(X[2000:])[:, 1]
    exact = [truth.prob({"bronc": "yes"}, given=dict(row)) for _, row in X[2000:2200].iterrows()]
    # Standard error of a share among some 100 like records; no row may be far off on average.
    assert np.mean(np.abs(shares[:200] - exact)) < 0.05
    for low, high in [(0.0, 0.4), (0.4, 0.8), (0.8, 1.0)]:
        there = (shares >= low) & (shares <= high)
        told = np.mean(y[2000:][there] == "yes")
        assert told == pytest.approx(shares[there].mean(), abs=0.06)  # three standard errors


def test_missing_labels_teach():
    """Two clusters, four labels: the others are found by the joint likelihood."""
    factors = [[[0.9, 0.1], [0.1, 0.9]]] * 8
    both = rj.LowRankPMF([0.5, 0.5], [*factors, [[0.98, 0.02], [0.02, 0.98]]])
    codes = np.array(both.sample(600, random_state=0).codes, dtype=float)
    X, y = codes[:, :-1], codes[:, -1].copy()
    first = [np.flatnonzero(y == k)[:2] for k in (0, 1)]
    few = np.full(len(y), np.nan)
    for rows in first:
        few[rows] = y[rows]
    model = rj.JointClassifier(rank=2, solver="map", random_state=0).fit(X, few)
    mine = rj.JointClassifier(random_state=0).fit(X, few)
    assert mine.score(X, y) > 0.9
    assert model.classes_.tolist() == [0, 1]
    # Bayes is right in 99 % of cases where 8 of 8 features are 90 % right; 2 % labels are wrong.
    assert model.score(X, y) > 0.93


def test_weights_are_copies():
    X, y = world(200)
    weight = np.random.default_rng(0).integers(0, 4, size=200)
    model = rj.JointClassifier(rank=4, policy=QUICK, random_state=0)
    one = model.fit(X, y, sample_weight=weight)
    rows = np.repeat(np.arange(200), weight)
    two = clone(model).fit(X.iloc[rows], y.iloc[rows])
    assert one.result_.choice == two.result_.choice
    assert one.pmf_.equals(two.pmf_, tol=1e-9)


def test_class_weight():
    """Records of a label that count more: its odds rise by as much where nothing is known."""
    X, y = world(400)
    y = y.where(np.arange(400) % 2 == 0)  # half of the rows have no label
    model = rj.JointClassifier(rank=4, policy=QUICK, random_state=0)
    weight = np.where(y == "same", 3.0, 1.0)
    heavy = clone(model).set_params(class_weight={"same": 3.0}).fit(X, y)
    assert np.allclose(heavy.predict_proba(X), clone(model).fit(X, y, weight).predict_proba(X))
    even = clone(model).set_params(class_weight="balanced").fit(X, y).predict_proba([{}])
    assert even[0] == pytest.approx([0.5, 0.5], abs=1e-12)


def test_with_nothing_known_the_prediction_is_the_shares_of_the_labels():
    """One target, and several with more combinations than there are profiles."""
    X, y = world(120)
    rng = np.random.default_rng(0)
    for labels in (y.to_numpy()[:, None], rng.integers(0, 3, (120, 4))):
        model = rj.JointClassifier(policy=QUICK, random_state=0).fit(X, labels)
        found = model.predict_proba([{"a": None}])
        for shares, column in zip(found if len(found) > 1 else [found], labels.T, strict=True):
            expected = np.unique(column, return_counts=True)[1] / 120
            assert shares[0] == pytest.approx(expected, abs=1e-12)


def test_survey_weights():
    """Their scale says nothing, records may have them, rows without weight do not count."""
    X, y = world(160)
    people = np.random.default_rng(0).choice([0.0, 10.0, 40.0], 160)
    model = rj.JointClassifier(rank=4, policy=QUICK, random_state=0)
    one = clone(model).fit(X, y, survey_weight=people)
    shares = one.predict_proba(X)
    same = people[y == "same"].sum() / people.sum()
    assert one.predict_proba([{"a": None}])[0, 1] == pytest.approx(same, abs=1e-3)  # weight steps
    assert "records count as" in one.result_.choice
    used = people > 0
    records = rj.Records.of(X[used].assign(verdict=y), survey_weight=people[used])
    for other in (
        clone(model).fit(X, y, survey_weight=1000 * people),
        clone(model).fit(X[used], y[used], survey_weight=people[used]),
        clone(model).fit(records, "verdict"),
    ):
        assert np.array_equal(other.predict_proba(X), shares)
    with pytest.raises(TypeError, match="an array with one for each row"):
        model.fit(X, y, survey_weight="people")
    plain = model.fit(X, y).predict_proba([{}])
    assert plain[0, 1] < 0.4


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"sane": 2}, "are not in class_weight"),
        ({"same": -1}, "weights above zero"),
        ("even", "or None. Got 'even'"),
        ([{"same": 1}] * 2, "2 dicts for 1 target"),
    ],
)
def test_class_weights_that_cannot_be(given, words):
    with pytest.raises(ValueError, match=words):
        rj.JointClassifier(class_weight=given).fit(*world(60))


def test_numbers_are_used_as_numbers():
    """A straight boundary across two columns, which no bin of either shows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 2))
    X[:, 1] = 0.3 * X[:, 1] - X[:, 0]  # correlated by -0.96
    y = X.sum(axis=1) > 0
    model = rj.JointClassifier(random_state=0).fit(X[:800], y[:800])
    assert model.score(X[800:], y[800:]) > 0.95


def test_rules_over_categories():
    """Parity of three columns: a fresh start with almost no prior finds it.

    It is tried where there are no numbers, whatever the prior of other parts is.
    """
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(600, 5))
    y = X[:, :3].sum(axis=1) % 2
    model = rj.JointClassifier(random_state=0).fit(X[:400], y[:400])
    assert "1.00 rules" in model.result_.choice
    assert model.score(X[400:], y[400:]) > 0.97


@pytest.mark.parametrize("solver", ["ml", "map", "bayes"])
def test_generative_solvers(solver):
    X, y = world(300)
    model = rj.JointClassifier(rank=3, solver=solver, random_state=0).fit(X, y)
    records = rj.Records.of(X.assign(verdict=y))
    same = rj.estimate(records, 3, solver, random_state=np.random.default_rng(0), progress=False)
    expected = same.pmf if same.posterior is None else same.posterior.mixture
    (mine,) = members_of(model)
    assert rj.metrics.tensor_error(expected, mine.align(expected.domain)) < 1e-12
    assert (model.result_.posterior is None) == (solver != "bayes")


def test_parts_are_averaged():
    """Weights depend on how many values a row misses that were always there."""
    X, y = world(300, seed=4)
    model = rj.JointClassifier(rank=4, policy=QUICK, random_state=0).fit(X, y)
    assert len(members_of(model)) >= 4
    weights = model.ensemble_.weights
    assert np.allclose(weights.sum(axis=1), 1.0)
    assert len(np.unique(weights[:-1].round(6), axis=0)) > 1
    row = {"a": "low", "b": "low", "c": "mid", "d": "high"}
    limits = model.ensemble_.missing_limits
    for gone in ("", "b", "bc", "abc", "abcd"):
        kind = sum(limit < len(gone) / 4 for limit in limits) + (gone == "abcd")
        weight = weights[kind]
        holed = row | dict.fromkeys(gone)
        each = [conditional(m, holed) for m in members_of(model)]
        assert np.allclose(model.predict_proba([holed])[0], weight @ each)


# --- what it says of rows --------------------------------------------------------------------


def conditional(model: rj.LowRankPMF, row: dict) -> np.ndarray:
    """By brute force: the dense joint, cells of the row picked, all else summed."""
    table = model.to_dense()
    for n, variable in enumerate(model.domain):
        if variable.name in row and row[variable.name] is not None:
            table = np.take(table, [variable.code(row[variable.name])], axis=n)
    shares = table.sum(axis=tuple(range(table.ndim - 1)))
    return shares / shares.sum()


def test_predict_proba_is_the_average_of_conditionals(fitted):
    rows = [
        {"a": "low", "b": "low", "c": "mid", "d": "high"},
        {"a": "low", "b": None, "c": "mid", "d": None},
        dict.fromkeys("abcd"),
    ]
    weights = fitted.ensemble_.weights
    each = [np.array([conditional(m, row) for m in members_of(fitted)]) for row in rows]
    # All columns miss values at the fit, so that a row of any kind counts as one of these.
    expected = [weights[k] @ shares for k, shares in zip((0, 0, -1), each, strict=True)]
    shares = fitted.predict_proba(pd.DataFrame(rows))
    assert np.allclose(shares, expected, atol=1e-12)  # sums of a few dozen products
    assert np.allclose(fitted.predict_log_proba(rows), np.log(shares))
    assert fitted.predict(rows).tolist() == [fitted.classes_[k] for k in shares.argmax(axis=1)]


def test_unknown_levels_are_missing(fitted):
    odd = pd.DataFrame([{"a": "odd", "b": "low", "c": "low", "d": "low"}])
    with pytest.warns(rj.Remark, match="'a'"):
        shares = fitted.predict_proba(odd)
    assert np.array_equal(shares, fitted.predict_proba(odd.assign(a=None)))


# --- several targets -------------------------------------------------------------------------


def test_jointly_most_probable_is_not_one_by_one():
    y = pd.DataFrame(
        {"first": ["a"] * 40 + ["b"] * 60, "second": ["a"] * 40 + ["b"] * 30 + ["c"] * 30}
    )
    X = {"x": ["u"] * 50 + ["v"] * 50}
    model = rj.JointClassifier(rank=4, policy=QUICK, random_state=0).fit(X, y)
    assert model.target_names_ == ("first", "second")
    assert [c.tolist() for c in model.classes_] == [["a", "b"], ["a", "b", "c"]]
    row = {"x": [None]}
    assert model.predict(row).tolist() == [["b", "a"]]
    assert model.predict_joint(row).tolist() == [["a", "a"]]
    joint = model.pmf_.marginal(["first", "second"])
    assert np.unravel_index(joint.argmax(), joint.shape) == (0, 0)
    shares = model.predict_proba(row)
    assert [s.shape for s in shares] == [(1, 2), (1, 3)]
    assert np.allclose(shares[1][0], [0.4, 0.3, 0.3], atol=0.03)
    assert [s.shape for s in model.predict_log_proba(row)] == [(1, 2), (1, 3)]
    assert model.score({"x": [None, None]}, [["b", "a"], ["b", "b"]]) == 0.5


def test_kinds_of_targets_may_differ():
    X, y = world(200)
    both = pd.DataFrame({"verdict": y, "number": np.arange(200) % 3})
    model = rj.JointClassifier(rank=4, policy=QUICK, random_state=0).fit(X, both)
    found = model.predict(X)
    assert found.dtype == object
    assert set(found[:, 1]) <= {0, 1, 2}


def test_too_many_combinations():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 9, size=(60, 5))
    model = rj.JointClassifier(rank=2, policy=QUICK, random_state=0)
    model.fit(rng.integers(0, 2, size=(60, 2)), y)
    with pytest.raises(ValueError, match=r"59,049 combinations .* joint model, pmf\.mode\(targets"):
        model.predict_joint([[0, 1]])


# --- what X and y may be ---------------------------------------------------------------------


@pytest.mark.parametrize("form", ["polars", "arrow", "objects", "dicts", "columns", "records"])
def test_all_forms_say_the_same(form):
    X, y = world(150, holes=0.1)
    plain = X.astype(object).where(X.notna(), None)
    table = {
        "polars": pl.from_pandas(X),
        "arrow": pa.Table.from_pandas(X, preserve_index=False),
        "objects": plain.to_numpy(),
        "dicts": plain.to_dict("records"),
        "columns": plain.to_dict("list"),
        "records": rj.Records.of(X),
    }[form]
    labels = {"polars": pl.Series("verdict", y.tolist()), "arrow": pa.array(y.tolist())}
    model = rj.JointClassifier(rank=4, policy=QUICK, random_state=0)
    expected = clone(model).fit(X, y).predict_proba(X)
    shares = model.fit(table, labels.get(form, y.to_numpy())).predict_proba(table)
    # Levels may come in another order, and starts with them; fits end near the same maximum.
    assert np.allclose(shares, expected, atol=0.02)


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (["b", "a", None, "a"], ["a", "b"]),
        ([1, 0, None, 0], [0, 1]),
        ([True, False, None, True], [False, True]),
        (pd.Series([2.0, 1.0, np.nan, 2.0]), [1, 2]),
        (pd.Series(["b", "a", "b", None], dtype="category"), ["a", "b"]),
        (pd.Series([2, 1, None, 1], dtype="Int64"), [1, 2]),
        (pl.Series(["b", None, "a", "a"]), ["a", "b"]),
        (pa.chunked_array([["b", "a"], [None, "b"]]), ["a", "b"]),
    ],
)
def test_labels_come_back(y, classes):
    X = [["a"], ["b"], ["a"], ["b"]]
    model = rj.JointClassifier(rank=2, policy=QUICK, random_state=0).fit(X, y)
    assert model.classes_.tolist() == classes
    assert model.predict(X).dtype == model.classes_.dtype
    assert model.pmf_.domain[-1].levels == tuple(classes)


@pytest.mark.parametrize("form", ["pandas", "polars", "arrow", "dicts", "columns", "records"])
def test_tables_with_their_target(form):
    """The column of the target is used by name in ``score``, and ignored in X otherwise."""
    X, y = world(200, holes=0.1)
    frame = X.assign(verdict=y)
    plain = frame.astype(object).where(frame.notna(), None)
    table = {
        "pandas": frame,
        "polars": pl.from_pandas(frame),
        "arrow": pa.Table.from_pandas(frame, preserve_index=False),
        "dicts": plain.to_dict("records"),
        "columns": plain.to_dict("list"),
        "records": rj.Records.of(frame),
    }[form]
    model = rj.JointClassifier(rank=6, policy=QUICK, random_state=0)
    model.fit(table, "verdict")
    with warnings.catch_warnings():
        warnings.simplefilter("error", rj.Remark)
        shares = model.predict_proba(table)
        labels = model.predict(table)
    assert np.array_equal(shares, model.predict_proba(X))
    accuracy = np.mean(labels == y.to_numpy())
    assert accuracy > 0.8
    assert model.score(table, "verdict") == accuracy
    assert model.score(table, ["verdict"]) == accuracy
    assert model.score(X, y) == accuracy
    assert model.score(X, y.tolist()) == accuracy
    assert model.score(X, y.to_frame()) == accuracy
    assert model.score(X, pl.Series(y.tolist())) == accuracy
    assert model.score(X, y.astype("category")) == accuracy


def test_score_leaves_out_rows_without_labels_and_reads_columns_by_name():
    X, y = world(200)
    model = rj.JointClassifier(rank=4, policy=QUICK, random_state=0)
    both = pd.DataFrame({"verdict": y, "number": np.arange(200) % 3})
    model.fit(X, both)
    accuracy = model.score(X, both)
    assert 0.0 < accuracy < 1.0
    assert model.score(X, both[["number", "verdict"]]) == accuracy
    assert model.score(X.assign(**both), ["number", "verdict"]) == accuracy
    some = both.assign(verdict=y.where(np.arange(200) < 150))
    assert model.score(X, some) == model.score(X[:150], both[:150])
    weight = (np.arange(200) < 150) * 2.0
    assert model.score(X, both, weight) == model.score(X[:150], both[:150])
    records = rj.Records.of(X.assign(**both), sample_weight=weight)
    assert model.score(records, ["verdict", "number"]) == model.score(X, both, weight)
    odd = both.assign(number=7)  # no class of the fit
    assert model.score(X, odd) == 0.0


def test_names_of_targets():
    X, y = world(60)
    model = rj.JointClassifier(rank=2, policy=QUICK, random_state=0)
    assert model.fit(X, y).target_names_ == ("verdict",)
    assert model.fit(X, y.to_numpy()).target_names_ == ("y",)
    assert model.fit(X, y.rename("a")).target_names_ == ("a_",)
    assert model.fit(X.assign(verdict=y), "verdict").target_names_ == ("verdict",)
    assert list(model.feature_names_in_) == list("abcd")
    assert model.predict(X).shape == (60,)
    records = rj.Records.of(X.assign(verdict=y))
    assert clone(model).fit(records, "verdict").pmf_.equals(model.pmf_)
    two = model.fit(X.assign(verdict=y), ["verdict", "d"])
    assert two.target_names_ == ("verdict", "d")
    assert two.n_features_in_ == 3


def test_numbers_are_binned():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=500), rng.integers(0, 5, size=500)])
    y = np.abs(X[:, 0]) > 0.7
    model = rj.JointClassifier(rank=4, policy=QUICK, random_state=0).fit(X, y)
    kinds = [variable.kind for variable in model.pmf_.domain]
    assert kinds == ["binned", "nominal", "nominal"]
    assert len(model.pmf_.domain[0]) == 44  # two members of 22 bins, the root of 500
    assert model.score(X, y) > 0.96
    assert np.isfinite(model.predict_proba([[1e9, 2.0], [-np.inf, 1.0]])).all()
    assert len(clone(model).set_params(bins=5).fit(X, y).pmf_.domain[0]) == 5
    edges = clone(model).set_params(bins={"x0": [-9, -0.7, 0.7, 9]}).fit(X, y)
    assert edges.score(X, y) == 1.0


# --- scikit-learn's tools --------------------------------------------------------------------


def test_tools():
    X, y = world(300)
    model = rj.JointClassifier(rank=4, policy=QUICK, random_state=0)
    search = GridSearchCV(model, {"rank": [1, 8]}, cv=2).fit(X, y)
    assert search.best_params_ == {"rank": 8}
    pipe = make_pipeline(FunctionTransformer(), model).fit(X, y)
    assert np.array_equal(pipe.predict(X), clone(model).fit(X, y).predict(X))
    assert cross_val_score(model, X, y, cv=2, scoring="neg_log_loss").shape == (2,)
    again = pickle.loads(pickle.dumps(pipe))
    assert np.array_equal(again.predict_proba(X), pipe.predict_proba(X))


# --- errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([None] * 4, "Target 'y' has no label in any of 4 rows"),
        (["a"] * 4, "Target 'y' has one class only, 'a'"),
        (["a", "a", "a", None], "has one class only, 'a' in any of 4 rows"),
        (None, "requires y to be passed"),
        ([0.5, 1.5, 2.25, 3.1], "Unknown label type"),
        (["a", 1, "b", 2], "has labels of several types"),
        (["a", "b"], "y names a column 'a', which X does not have, and it has 2 texts for 4 rows"),
        (["a", "b"] * 4, "y names a column 'a', .* it has 8 texts for 4 rows"),
        (np.array(["a", "b"]), "y has 2 labels for 4 rows of X"),
        (pd.Series(["a", "b"]), "y has 2 labels for 4 rows of X"),
        ([1, 2, 1, 2, 1], "y has 5 labels for 4 rows of X"),
        ("fourth", "y names a column 'fourth', which X does not have.* Did you mean 'forth'?"),
        (["first", "secnd"], "y names a column 'secnd'.*Did you mean 'second'?"),
    ],
)
def test_labels_that_cannot_be_learnt(y, words):
    X = pd.DataFrame([[1, 2, 1]] * 2 + [[2, 1, 1]] * 2, columns=["first", "second", "forth"])
    with pytest.raises(ValueError, match=words):
        rj.JointClassifier(rank=2, policy=QUICK).fit(X, y)


def test_a_name_needs_names():
    with pytest.raises(ValueError, match=r"y names a column 'b', .*the columns of X have no names"):
        rj.JointClassifier(rank=2, policy=QUICK).fit([["a"], ["b"]] * 20, "b")


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ("d", "y names 'd', but the model was fitted to predict 'verdict'"),
        ("verdikt", "y names a column 'verdikt'.* Did you mean 'verdict'?"),
        (["same", "other"], "y names a column 'same'.* it has 2 texts for 100 rows"),
        (np.array(["same", "other"]), "y has 2 labels for 100 rows of X"),
        (np.zeros(100), "The labels of 'verdict' are 0, .* one is text, the other a number"),
        (pd.DataFrame({"v": ["same"], "w": ["same"]}), "y has 2 columns, but .* 1 target"),
        ([None] * 100, "no row has both its labels and a weight"),
    ],
)
def test_labels_that_cannot_be_compared(fitted, y, words):
    X, labels = world(100)
    with pytest.raises(ValueError, match=words):
        fitted.score(X.assign(verdict=labels), y)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"solver": "svm"}, "solver='svm' is not supported; use 'auto', 'ml', 'map'"),
        ({"rank": 0}, "rank must be a whole number of at least 1"),
    ],
)
def test_settings_that_cannot_be(options, words):
    with pytest.raises(ValueError, match=words):
        rj.JointClassifier(**options).fit([["a"], ["b"]] * 20, [0, 1] * 20)


def test_not_fitted():
    for ask in ("predict", "predict_proba", "predict_log_proba", "predict_joint", "ask", "save"):
        with pytest.raises(NotFittedError):
            getattr(rj.JointClassifier(), ask)([["a"]])
    with pytest.raises(NotFittedError):
        rj.JointClassifier().score([["a"]], ["b"])


def test_too_few_to_hold_out():
    model = rj.JointClassifier(random_state=0).fit([["a"], ["b"]] * 3, [0, 1] * 3)
    assert model.result_.choice.startswith("Too few records")
    assert model.predict([["a"], ["b"]]).tolist() == [0, 1]


# --- Ctrl-C --------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [3, 40, 150, 260])
def test_an_interrupted_fit_has_what_is_trained_by_then(monkeypatch, steps):
    X, y = world(200)
    model = rj.JointClassifier(random_state=0)
    objective, taken = label_likelihood.objective, []

    def press(*parts):
        taken.append(parts)
        if len(taken) == steps:
            raise KeyboardInterrupt
        return objective(*parts)

    monkeypatch.setattr(label_likelihood, "objective", press)
    with pytest.raises(KeyboardInterrupt) as pressed:
        model.fit(X, y)
    if steps == 3:  # nothing is there yet
        assert not isinstance(pressed.value, rj.FitInterrupted)
        assert not hasattr(model, "pmf_")
        return
    result = pressed.value.result
    assert result.interrupted
    assert "interrupted" in result.stop
    assert result.pmf.domain.names == ("a", "b", "c", "d", "verdict")
    assert model.result_ is result
    assert model.predict_proba(X).shape == (200, 2)


# --- explanations ------------------------------------------------------------------------------


def log_odds(model, row, label):
    shares = model.predict_proba([row])[0]
    return np.log(shares[label] / (shares.sum() - shares[label]))


@pytest.mark.parametrize("holes", [0.0, 0.1])
def test_contributions_by_brute_force(holes):
    """The mean over all orders of the rise of the log-odds when a feature becomes known."""
    X, y = world(300, holes=holes)
    model = rj.JointClassifier(rank=4, policy=QUICK, random_state=0).fit(X, y)
    row = {"a": "low", "b": "low", "c": None, "d": "high"}
    names = ["a", "b", "d"]
    expected = dict.fromkeys(names, 0.0)
    for order in permutations(names):
        known = {}
        for name in order:
            before = log_odds(model, known, 1)
            known = known | {name: row[name]}
            expected[name] += (log_odds(model, known, 1) - before) / 6
    [why] = model.explain([row], "same")
    assert {c.feature: c.log_odds for c in why.contributions} == pytest.approx(expected, abs=1e-9)
    assert why.log_odds == pytest.approx(log_odds(model, row, 1), abs=1e-9)
    assert why.baseline == pytest.approx(log_odds(model, {}, 1), abs=1e-9)
    assert why.probability == pytest.approx(model.predict_proba([row])[0, 1], abs=1e-12)
    share = np.mean(y == "same")
    assert why.baseline == pytest.approx(np.log(share / (1 - share)), abs=1e-9)


def test_explanations_of_several_targets():
    X, y = world(200)
    both = pd.DataFrame({"verdict": y, "number": np.arange(200) % 3})
    model = rj.JointClassifier(rank=6, policy=QUICK, random_state=0).fit(X, both)
    first, second = (model.explain(X[:2], target=name) for name in ("verdict", "number"))
    assert [why.target for why in first + second] == ["verdict"] * 2 + ["number"] * 2
    assert [why.label for why in second] == model.predict(X[:2])[:, 1].tolist()
    with pytest.raises(ValueError, match="Did you mean 'number'"):
        model.explain(X, target="numbr")
    with pytest.raises(ValueError, match="level 'odd' is not among 'other', 'same'"):
        model.explain(X, "odd")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kinds": {"y": "ordinal"}}, "do not apply to the target 'y'"),
        ({"bins": {"y": 3}}, "do not apply to the target 'y'"),
        ({"smooth": False}, "smooth=False: the effects of all ordered columns are smooth"),
        ({"bins": "auto"}, "bins must be a dict"),
    ],
)
def test_declarations_that_do_not_apply(options, said):
    with pytest.raises((TypeError, ValueError), match=said):
        rj.JointClassifier(**options).fit({"x": [1.5, 20, 3, 4] * 9, "y": list("abab") * 9}, "y")


def test_folds_of_a_cross_validation_remark_once_on_a_variable():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"rare": [f"level {k}" for k in range(40)], "a": rng.choice(list("xy"), 40)})
    model = rj.JointClassifier(kinds={"rare": "nominal"}, random_state=0)
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("default", rj.Remark)
        cross_val_score(model, X, X["a"].to_numpy(), cv=4)
    said = [str(one.message) for one in given if "'rare'" in str(one.message)]
    assert len(said) == 1
