"""JointRecommender: forms of ratings, predictions, advice, against brute force; the contract."""

import pickle
import warnings
from itertools import combinations, product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import rejoint as rj
from rejoint.estimation import Bayes, Em
from rejoint.estimators import Traits
from rejoint.estimators.recommender.best_set import best_set
from rejoint.estimators.recommender.rating_model import RatingModel, UserEvidence

QUICK = Traits(traits=2, points=64, sweeps=20, models=2)

# The check of sparse input wants one number a row of whatever predicts.
REASON = "predict of a table is a table: a number for every item of a user, not one for the row"
EXEMPTIONS = {"check_estimator_sparse_array": REASON, "check_estimator_sparse_matrix": REASON}


@pytest.mark.filterwarnings("ignore::rejoint.Remark")  # numbers of any kind are binned
@parametrize_with_checks(
    [
        rj.JointRecommender(Traits(traits=2, points=16, sweeps=2, models=1)),
        rj.JointRecommender("map", rank=2),
    ],
    expected_failed_checks=lambda estimator: EXEMPTIONS,
)
def test_scikit_learn(estimator, check):
    check(estimator)


# --- a small world ---------------------------------------------------------------------------

FILMS = ["Heat", "Ronin", "Speed", "Ghost", "Emma", "Persuasion"]
USERS = [f"user {u}" for u in range(150)]


def stars(seed: int = 0, seen: float = 0.6) -> pd.DataFrame:
    """Two tastes: the first three films against the others; NaN where a film was not seen."""
    rng = np.random.default_rng(seed)
    taste = rng.random(len(USERS)) < 0.5
    good = taste[:, None] == (np.arange(6) < 3)
    table = np.where(good, rng.integers(4, 6, good.shape), rng.integers(1, 4, good.shape))
    table = np.where(rng.random(good.shape) < seen, table, np.nan)
    return pd.DataFrame(table, index=USERS, columns=FILMS)


def as_rows(table: pd.DataFrame) -> pd.DataFrame:
    rows = table.stack().reset_index()
    rows.columns = ["userId", "movieId", "rating"]
    return rows


@pytest.fixture(scope="module")
def table():
    return stars()


@pytest.fixture(scope="module")
def fitted(table):
    return rj.JointRecommender(QUICK, random_state=0).fit(table)


# --- forms -----------------------------------------------------------------------------------


def test_all_forms_give_the_same_model(table, fitted):
    order = [FILMS.index(film) for film in sorted(FILMS)]
    ordered = table[sorted(FILMS)]
    rows = as_rows(table)
    stored = ~np.isnan(ordered.to_numpy())
    matrix = sparse.csr_matrix(
        (ordered.to_numpy()[stored], np.nonzero(stored)), shape=ordered.shape
    )
    forms = {
        "frame": ordered,
        "array": ordered.to_numpy(),
        "sparse": matrix,
        "sparse array": sparse.coo_array(matrix),
        "rows": rows.sample(frac=1.0, random_state=0),
        "tuples": list(rows.itertuples(index=False, name=None)),
        "polars rows": pl.from_pandas(rows),
        "arrow rows": pl.from_pandas(rows).to_arrow(),
        "dict of columns": {name: rows[name].to_numpy() for name in rows},
        "polars table": pl.from_pandas(ordered),
    }
    found = {name: rj.JointRecommender(QUICK, random_state=0).fit(X) for name, X in forms.items()}
    expected = found["array"].predict_all()
    # Sums are taken in another order where users are in another order: rounding only.
    for name, model in found.items():
        users = USERS if "rows" in name or name in ("tuples", "dict of columns") else None
        assert model.predict_all(users) == pytest.approx(expected, abs=1e-6), name
        assert list(model.levels_) == [1, 2, 3, 4, 5]
    assert list(found["rows"].items_) == sorted(FILMS)
    assert found["rows"].recommend("user 3")[0].item in FILMS
    assert list(found["array"].items_) == list(range(6))
    assert fitted.items_[order].tolist() == sorted(FILMS)


def test_columns_may_be_named(table):
    rows = as_rows(table).set_axis(["who", "what", "how much"], axis=1)
    rows["when"] = 0
    with pytest.raises(ValueError, match=r"text in column 'who'.*columns=\(user, item, rating\)"):
        rj.JointRecommender(QUICK).fit(rows)
    model = rj.JointRecommender(QUICK, columns=("who", "what", "how much"), random_state=0)
    assert list(model.fit(rows).items_) == sorted(FILMS)
    with pytest.raises(ValueError, match=r"columns has 'wat', but X has .* Did you mean 'what'"):
        model.set_params(columns=("who", "wat", "how much")).fit(rows)
    with pytest.raises(ValueError, match="columns names the columns of user, item and rating"):
        model.set_params(columns="who").fit(rows)


def test_columns_by_position(table):
    rows = as_rows(table).set_axis(["a", "b", "c"], axis=1)
    assert list(rj.JointRecommender(QUICK, random_state=0).fit(rows).users_[:2]) == USERS[:2]


def test_array_of_ids():
    rows = np.array([[7, 70, 5], [7, 71, 1], [9, 70, 4]])
    model = rj.JointRecommender(QUICK, columns=(0, 1, 2), random_state=0).fit(rows)
    assert list(model.users_) == [7, 9]
    assert list(model.items_) == [70, 71]
    assert model.predict([(9, 71)]).shape == (1,)


def test_explicit_zeros_are_ratings():
    matrix = sparse.csr_array(([0.0, 2.0, 2.0], ([0, 0, 1], [0, 1, 1])), shape=(2, 3))
    model = rj.JointRecommender(QUICK, random_state=0).fit(matrix)
    assert list(model.levels_) == [0, 2]
    assert [found.item for found in model.recommend(0)] == [2]
    assert sorted(found.item for found in model.recommend(1)) == [0, 2]


def test_ids_keep_their_type_and_order():
    rows = [(2, "b", 1), (10, "a", 2), (1, "b", 2)]
    model = rj.JointRecommender(QUICK, random_state=0).fit(rows)
    assert list(model.users_) == [1, 2, 10]
    assert all(type(user) is int for user in model.users_)


def test_ratings_that_come_twice():
    rows = [("a", "x", 1), ("a", "x", 5), ("b", "x", 1)]
    with pytest.warns(rj.Remark, match="1 of 3 rows rate an item that the same user"):
        model = rj.JointRecommender(QUICK, random_state=0).fit(rows)
    assert model.explain("a", "x").moves == ()
    assert model._evidence.totals.tolist() == [1, 1]
    doubled = sparse.coo_array(([1.0, 2.0], ([0, 0], [0, 0])), shape=(1, 1))
    with pytest.raises(ValueError, match="stored twice"):
        rj.JointRecommender(QUICK).fit(doubled)


def test_half_stars():
    rows = [("a", "x", 0.5), ("b", "x", 3.5), ("c", "x", 4.0), ("c", "y", 3.0)]
    kept = rj.JointRecommender(QUICK, random_state=0).fit(rows)
    assert list(kept.levels_) == [0.5, 3.0, 3.5, 4.0]
    rounded = rj.JointRecommender(QUICK, half_up=True, random_state=0).fit(rows)
    assert list(rounded.levels_) == [1, 3, 4]
    assert rounded.recommend({"x": 3.5})[0] == rounded.recommend({"x": 4.0})[0]
    assert rounded.pmf_.domain["y"].levels == (1, 3, 4)


def test_many_distinct_ratings_are_binned():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(200, 3))
    with pytest.warns(rj.Remark, match="600 distinct values: binned into 10 levels"):
        model = rj.JointRecommender(QUICK, random_state=0).fit(table)
    # The mean of the levels, each worth the mean of its ratings, is the mean of all.
    counts = model._evidence.totals.reshape(3, -1).sum(axis=0)
    assert counts @ model.levels_ / counts.sum() == pytest.approx(table.mean(), abs=1e-12)
    assert model.predict(table).shape == table.shape


@pytest.mark.parametrize(
    ("X", "words"),
    [
        ([("a", "x"), ("b", "y")], "rows .user, item, rating.; got tuples of 2 parts"),
        (np.full((3, 2), np.nan), "no user has rated any item"),
        (np.array([[1.0, np.inf]]), "infinity"),
        (pd.DataFrame({"user": ["a"], "item": ["x"], "rating": ["good"]}), "must be numbers"),
        ([("a", 1, 5), ("a", "1", 4)], "Two items are called '1'"),
    ],
)
def test_what_is_refused(X, words):
    with pytest.raises(ValueError, match=words):
        rj.JointRecommender(QUICK).fit(X)


def test_parameters_are_checked(table):
    with pytest.raises(ValueError, match="feedback='both' is not known"):
        rj.JointRecommender(QUICK, feedback="both").fit(table)
    with pytest.raises(ValueError, match="solver='svd' is not known; give 'traits'"):
        rj.JointRecommender("svd").fit(table)
    with pytest.raises(NotFittedError):
        rj.JointRecommender().recommend("user 0")


# --- what it learns --------------------------------------------------------------------------


def test_learns_tastes(table, fitted):
    """Held-out ratings are foreseen better than by the mean of each film."""
    rng = np.random.default_rng(1)
    held = rng.random(table.shape) < 0.2
    train, test = table.mask(held), as_rows(table.where(held))
    for solver in (QUICK, "bayes"):
        model = rj.JointRecommender(solver, rank=2, random_state=0).fit(as_rows(train))
        means = test["movieId"].map(train.mean())
        plain = float(np.sqrt(((means - test["rating"]) ** 2).mean()))
        # Within a taste ratings have a standard deviation of 0.5 and 0.8: 0.67 together.
        assert -model.score(test) < 0.85 < plain
        assert -model.score(test) == pytest.approx(
            np.sqrt(np.mean((model.predict(test) - test["rating"]) ** 2)), rel=1e-12
        )


def test_bayes_predicts_by_its_draws(table):
    model = rj.JointRecommender(Bayes(chains=1, burn_in=10, draws=10), rank=2, random_state=0)
    model.fit(table)
    assert model.rank_ == model.pmf_.rank == 2
    known = {film: int(stars) for film, stars in table.iloc[0].dropna().items()}
    known.pop("Heat", None)
    mean = model.result_.posterior.mean.marginal("Heat", given=known)
    assert model.explain("user 0", "Heat").expected == pytest.approx(mean @ model.levels_)


def test_default_solver_recommends(table):
    model = rj.JointRecommender(random_state=0).fit(table)
    best = [found.item for found in model.recommend({"Heat": 5, "Ghost": 1}, 2)]
    assert sorted(best) == ["Ronin", "Speed"]
    assert model.rank_ == 20 * 256
    assert "5 traits" in model.result_.stop
    assert len(model.result_.history) == 196  # a hundred, and twenty models, five apart


def test_the_likelihood_rises(table):
    solver = Traits(traits=2, points=256, sweeps=30, models=1)
    model = rj.JointRecommender(solver, random_state=0).fit(table)
    values = [-record.objective for record in model.result_.history]
    # Points change from sweep to sweep, which moves the value by a unit or two.
    assert np.mean(values[-5:]) > values[0] + 50


# --- predictions against the joint -----------------------------------------------------------


def test_predictions_are_those_of_the_joint(table, fitted):
    """The same as asking ``pmf_``, which tests of its own hold against brute force."""
    for user in USERS[:5]:
        row = table.loc[user].dropna()
        evidence = {film: int(rating) for film, rating in row.items()}
        for film in FILMS:
            rest = {name: level for name, level in evidence.items() if name != film}
            shares = fitted.pmf_.marginal(film, given=evidence if film not in evidence else rest)
            found = fitted.explain(user, film).expected
            assert found == pytest.approx(shares @ np.arange(1, 6), abs=1e-9)
            if film not in evidence:
                mine = fitted.predict_proba([(user, film)])[0]
                assert mine == pytest.approx(shares, abs=1e-9)
                assert fitted.predict([(user, film)])[0] == pytest.approx(found, abs=1e-9)


def test_pairs_tables_and_blocks_agree(table, fitted):
    whole = fitted.predict_all()
    assert whole.shape == table.shape
    pairs = [(user, film) for user in ("user 7", "user 3", "user 7") for film in ("Emma", "Heat")]
    expected = [whole[USERS.index(u), FILMS.index(f)] for u, f in pairs]
    frame = pd.DataFrame(pairs, columns=["user", "item"])
    for X in (pairs, frame, pl.from_pandas(frame), frame.to_numpy()):
        assert fitted.predict(X) == pytest.approx(expected, abs=1e-12)
    assert fitted.predict(table) == pytest.approx(whole, abs=1e-12)
    assert fitted.predict_all(["user 3"]) == pytest.approx(whole[[3]], abs=1e-12)
    shares = fitted.predict_proba(table)
    assert shares.sum(axis=2) == pytest.approx(np.ones(table.shape), abs=1e-12)
    assert shares @ fitted.levels_ == pytest.approx(whole, abs=1e-9)


def test_few_pairs_of_many_are_not_computed_by_blocks(table, fitted, monkeypatch):
    """Both ways to a pair's prediction give the same."""
    pairs = [(user, film) for user in USERS[::10] for film in FILMS]
    expected = fitted.predict_proba(pairs)
    monkeypatch.setattr("rejoint.estimators.recommender.rating_model.GEMM_SPEEDUP", 0)
    monkeypatch.setattr("rejoint.estimators.recommender.rating_model.BLOCK_NUMBERS", 1000)
    assert fitted.predict_proba(pairs) == pytest.approx(expected, abs=1e-12)


def test_new_users_are_folded_in(table, fitted):
    row = table.loc["user 0"].dropna().to_dict()
    assert fitted.recommend(row) == fitted.recommend("user 0")
    assert fitted.recommend(table.loc["user 0"]) == fitted.recommend("user 0")
    assert fitted.recommend(table.to_numpy()[0]) == fitted.recommend("user 0")
    assert fitted.bundle(row, 1) == fitted.bundle("user 0", 1)


def test_nobody_gets_the_prior(fitted):
    means = {film: float(fitted.pmf_.expect(film)) for film in FILMS}
    for nobody in (None, {}, {"Heat": np.nan}):
        found = fitted.recommend(nobody, exclude_seen=True)
        assert {r.item: r.expected for r in found} == pytest.approx(means, abs=1e-9)
    assert fitted.explain(None, "Heat").moves == ()
    assert fitted.explain(None, "Heat").expected == pytest.approx(means["Heat"])


# --- advice ----------------------------------------------------------------------------------


def test_order_and_exclusion(table, fitted):
    seen = set(table.loc["user 1"].dropna().index)
    found = fitted.recommend("user 1")
    assert {r.item for r in found} == set(FILMS) - seen
    assert [r.expected for r in found] == sorted((r.expected for r in found), reverse=True)
    liked = fitted.recommend("user 1", by="like", exclude_seen=False)
    assert len(liked) == 6
    assert [r.like for r in liked] == sorted((r.like for r in liked), reverse=True)
    assert len(fitted.recommend("user 1", 2, exclude_seen=False)) == 2
    only = fitted.recommend("user 1", among=["Emma", "Heat"], exclude_seen=False)
    assert {r.item for r in only} == {"Emma", "Heat"}


def test_liking_is_reaching_the_threshold(fitted):
    for threshold, first in ((None, 3), (5, 4), (2.5, 2)):
        for r in fitted.recommend({"Heat": 5}, by="like", threshold=threshold):
            shares = fitted.pmf_.marginal(r.item, given={"Heat": 5})
            assert r.like == pytest.approx(shares[first:].sum(), abs=1e-9)
    with pytest.raises(ValueError, match="threshold=6 is above the highest rating, 5"):
        fitted.recommend(None, threshold=6)


def test_unknown_names(fitted):
    with pytest.raises(KeyError, match=r"user 'user 1001' was not among.*Did you mean 'user 1"):
        fitted.recommend("user 1001")
    with pytest.raises(KeyError, match=r"item 'Heet' was not among.*Did you mean 'Heat'"):
        fitted.explain("user 1", "Heet")
    with pytest.raises(KeyError, match=r"item 'Gost'.*Did you mean 'Ghost'"):
        fitted.recommend({"Gost": 4})
    with pytest.raises(KeyError, match=r"item 'x' was not among.*There are 'Heat', 'Ronin'"):
        fitted.predict([("user 1", "x")])
    with pytest.raises(ValueError, match="Item 'Heat': rating 9 is not among 1, 2, 3, 4, 5"):
        fitted.recommend({"Heat": 9})
    with pytest.raises(TypeError, match="items alone will do with feedback='implicit' only"):
        fitted.recommend(["Heat"])
    with pytest.raises(ValueError, match="by='best' is not known"):
        fitted.recommend(None, by="best")
    with pytest.raises(ValueError, match="bundle of 7 items was asked for, but 6 are left"):
        fitted.bundle(None, 7)
    with pytest.raises(ValueError, match="k must be a whole number"):
        fitted.recommend(None, 0)


def test_explanations_are_differences_of_predictions(table, fitted):
    ratings = {"Heat": 5, "Ronin": 4, "Ghost": 1}
    why = fitted.explain(ratings, "Speed")

    def expected(some):
        return fitted.recommend(some, among=["Speed"])[0].expected

    assert why.expected == pytest.approx(expected(ratings), abs=1e-12)
    assert why.baseline == pytest.approx(expected(None), abs=1e-12)
    assert {m.item: m.rating for m in why.moves} == ratings
    for move in why.moves:
        rest = {film: rating for film, rating in ratings.items() if film != move.item}
        assert move.effect == pytest.approx(expected(ratings) - expected(rest), abs=1e-9)
    assert [abs(m.effect) for m in why.moves] == sorted(
        (abs(m.effect) for m in why.moves), reverse=True
    )
    assert "Speed: " in str(why)
    assert "Heat rated 5" in str(why)


@settings(max_examples=60)
@given(st.data())
def test_bundles_by_brute_force(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    number, rank = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 6))
    size = data.draw(st.integers(1, number))
    sharpness = data.draw(st.sampled_from([0.1, 1.0, 10.0]))
    likes = rng.random((number, rank)) ** sharpness
    classes = rng.dirichlet(np.full(rank, 0.5))
    values = {s: classes @ np.prod(likes[list(s)], 0) for s in combinations(range(number), size)}
    found = best_set(classes, likes, size)
    best = max(values.values())
    # The search holds sets within 1e-9 of the best for equally good.
    assert found.probability == pytest.approx(best, rel=1e-8)
    assert values[tuple(sorted(found.items.tolist()))] == pytest.approx(found.probability)
    assert found.exact
    assert found.bound >= best * (1 - 1e-12)


def test_a_bundle_is_a_joint_probability(fitted):
    """By the joint itself: the most probable pair given the user's ratings."""
    ratings = {"Heat": 5, "Emma": 2}
    left = [film for film in FILMS if film not in ratings]
    values = {
        pair: fitted.pmf_.prob({film: [4, 5] for film in pair}, given=ratings)
        for pair in combinations(left, 2)
    }
    found = fitted.bundle(ratings, 2)
    assert found.exact
    assert found.probability == pytest.approx(max(values.values()), rel=1e-9)
    assert tuple(sorted(found.items, key=left.index)) == max(values, key=values.__getitem__)
    assert found.bound == pytest.approx(found.probability, rel=1e-8)


def test_bundles_suit_each_other():
    """Two halves of the world: a pair from one half beats the two best single items."""
    likes = np.array([[0.9, 0.05], [0.85, 0.05], [0.05, 0.95], [0.05, 0.4]])
    classes = np.array([0.5, 0.5])
    singles = np.argsort(-(likes @ classes))[:2]
    assert set(singles) == {0, 2}
    assert set(best_set(classes, likes, 2).items) == {0, 1}


def test_a_bundle_that_is_not_proved_says_so():
    rng = np.random.default_rng(0)
    likes = rng.random((60, 40)) ** 3
    classes = np.full(40, 1 / 40)
    cut = best_set(classes, likes, 6, max_nodes=1)
    whole = best_set(classes, likes, 6)
    assert not cut.exact
    assert cut.probability <= whole.probability <= cut.bound
    assert whole.exact


# --- bought or not ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def baskets():
    bought = stars(seen=1.0) >= 4
    gone = np.random.default_rng(3).random(bought.shape) < 0.2
    return bought & ~gone


def test_implicit_feedback(baskets):
    rows = [(user, film) for user, film in product(USERS, FILMS) if baskets.loc[user, film]]
    model = rj.JointRecommender(QUICK, feedback="implicit", random_state=0).fit(rows)
    assert list(model.levels_) == [0, 1]
    best = model.recommend(["Heat"], 2)
    assert {r.item for r in best} == {"Ronin", "Speed"}
    assert best[0].expected == pytest.approx(best[0].like)
    # Absence is a level: the joint given one "yes" and five times "no".
    state = {film: int(film == "Heat") for film in FILMS}
    posterior = model.pmf_.classes(pd.DataFrame([state]))[0]
    expected = {
        f: float(model.pmf_.factors[model.pmf_.domain.index(f)][1] @ posterior) for f in FILMS
    }
    assert {r.item: r.expected for r in model.recommend({"Heat": 1}, exclude_seen=False)} == (
        pytest.approx(expected, abs=1e-9)
    )
    # 0.5 is chance; two tastes of equal size put the right half first.
    assert model.score(baskets.astype(float)) > 0.85
    users = {user for user, _ in rows}
    held = [next(row for row in rows if row[0] == user) for user in USERS[:40:2] if user in users]
    rest = [row for row in rows if row not in held]
    part = rj.JointRecommender(QUICK, feedback="implicit", random_state=0).fit(rest)
    assert part.score(held) > 0.7


def test_implicit_forms_agree(baskets):
    models = [
        rj.JointRecommender(QUICK, feedback="implicit", random_state=0).fit(X)
        for X in (
            baskets.astype(float),
            baskets.astype(float).where(baskets),
            sparse.csr_array(baskets.to_numpy().astype(float)),
        )
    ]
    for model in models[1:]:
        assert model.predict_all() == pytest.approx(models[0].predict_all(), abs=1e-9)


def test_implicit_fits_classes(baskets):
    model = rj.JointRecommender("map", rank=2, feedback="implicit", random_state=0)
    model.fit(baskets.astype(float))
    assert model.rank_ == 2
    assert {r.item for r in model.recommend(["Emma"], 2)} == {"Ghost", "Persuasion"}


@pytest.mark.parametrize("solver", ["ml", "map", "bayes"])
def test_implicit_fits_are_those_of_whole_tables(baskets, solver):
    model = rj.JointRecommender(solver, rank=2, feedback="implicit", random_state=0)
    model.fit(sparse.csr_array(baskets.to_numpy().astype(float)))
    whole = rj.Records(model.pmf_.domain, baskets.to_numpy().astype(np.int16))
    expected = rj.estimate(whole, 2, solver, random_state=np.random.default_rng(0), progress=False)
    # The same starts, steps and draws; rounding grows over some hundred steps.
    assert model.result_.log_likelihood == pytest.approx(expected.log_likelihood, rel=1e-9)
    for found, factor in zip(model.pmf_.factors, expected.pmf.factors, strict=True):
        np.testing.assert_allclose(found, factor, atol=1e-5)
    if solver == "bayes":
        mean = expected.posterior.mean.marginal("3")
        np.testing.assert_allclose(model.result_.posterior.mean.marginal("3"), mean, atol=1e-5)


# --- scoring, copies -------------------------------------------------------------------------


def test_scores_of_a_table_are_of_others(fitted, table):
    """Each rating from the others of its row, one by one."""
    part = table.iloc[:10]
    errors = []
    for user in part.index:
        row = part.loc[user].dropna()
        errors += [fitted.explain(row.to_dict(), film).expected - row[film] for film in row.index]
    assert fitted.score(part) == pytest.approx(-np.sqrt(np.mean(np.square(errors))), rel=1e-9)


def test_rows_of_strangers_are_scored(table):
    rows = as_rows(table)
    model = rj.JointRecommender(QUICK, random_state=0).fit(rows)
    prior = float(model.pmf_.expect("Heat"))
    assert model.score([("stranger", "Heat", 4)]) == pytest.approx(-abs(prior - 4), abs=1e-9)
    overall = rows["rating"].mean()
    assert model.score([("user 1", "Alien", 4)]) == pytest.approx(-abs(overall - 4), abs=1e-9)


@pytest.mark.parametrize("form", ["rows", "table"])
def test_grid_search(table, form):
    X = as_rows(table) if form == "rows" else table
    quick = Traits(traits=1, points=16, sweeps=5, models=1)
    search = GridSearchCV(
        rj.JointRecommender(quick, random_state=0),
        {"solver": [quick, Traits(traits=2, points=16, sweeps=5, models=1)]},
        cv=KFold(3, shuffle=True, random_state=0),
    )
    assert search.fit(X).best_score_ < 0
    assert search.best_estimator_.recommend({"Heat": 5})
    assert len(cross_val_score(rj.JointRecommender(quick, random_state=0), X, cv=2)) == 2


def test_clone_and_pickle(fitted, table):
    copy = pickle.loads(pickle.dumps(fitted))
    assert copy.recommend("user 5") == fitted.recommend("user 5")
    again = clone(fitted).fit(table)
    assert again.predict_all() == pytest.approx(fitted.predict_all(), abs=0)
    assert fitted.get_params()["solver"] == QUICK


def test_ratings_that_are_no_level_are_unseen(fitted, table):
    strange = table.iloc[:3].copy()
    strange.iloc[0, 0] = 4.5
    with pytest.warns(rj.Remark, match=r"1 cell taken as unseen: 4.5 is not among"):
        found = fitted.predict(strange)
    unseen = table.iloc[:3].copy()
    unseen.iloc[0, 0] = np.nan
    assert found == pytest.approx(fitted.predict(unseen), abs=1e-12)


def test_many_items_fit_into_the_budget():
    """Points and models give way where items are many."""
    solver = Traits()
    points, models = solver.within(20 * 5)
    assert (points, models) == (256, 20)
    points, models = solver.within(1000 * 5)
    assert points * models * 5000 <= 2**23
    points, models = solver.within(100_000 * 10)
    assert (points, models) == (16, 1)


def test_contradictions_do_not_break(fitted):
    """Classes that exclude a rating (by likelihood without prior) leave the others."""
    model = RatingModel.of(rj.LowRankPMF([0.5, 0.5], [np.eye(2), np.eye(2)]), np.array([0.0, 1.0]))
    cells = sparse.csr_array([[1.0, 0.0, 0.0, 1.0]])
    found = model.posterior(UserEvidence(cells))
    assert found == pytest.approx([0.5, 0.5])


def test_an_interrupted_fit_of_classes_has_its_best_model(monkeypatch):
    rows = [(user, item, 1 + (user * item) % 5) for user in range(30) for item in range(4)]
    step, taken = Em.step, []

    def press(self, problem, state):
        taken.append(state)
        if len(taken) == 5:
            raise KeyboardInterrupt
        return step(self, problem, state)

    monkeypatch.setattr(Em, "step", press)
    with pytest.raises(rj.FitInterrupted) as pressed:
        rj.JointRecommender("map", rank=2, random_state=0).fit(rows)
    assert pressed.value.result.interrupted
    assert pressed.value.result.pmf.domain.names == ("0", "1", "2", "3")


def long_ratings(names):
    rng = np.random.default_rng(0)
    columns = (
        rng.permutation(np.repeat(np.arange(100, 140), 20)),
        rng.integers(0, 60, 800),
        rng.integers(1, 6, 800),
        rng.integers(10**9, 2 * 10**9, 800),
    )
    return pd.DataFrame(dict(zip(names, columns, strict=False))).drop_duplicates(list(names[:2]))


def test_rows_with_short_names_are_rows():
    model = rj.JointRecommender(QUICK, random_state=0)
    model.fit(long_ratings(("uid", "movie", "stars", "when")))
    assert len(model.items_) == 60


@pytest.mark.parametrize(
    "names",
    [("who", "what", "how", "when"), ("who", "what", "how"), ("who", "movie", "stars", "when")],
)
def test_rows_with_names_of_their_own_are_no_table(names):
    frame = long_ratings(names)
    model = rj.JointRecommender(QUICK, random_state=0)
    with pytest.raises(ValueError, match=r"look like rows .* name the three, such as columns="):
        model.fit(frame)
    model.set_params(columns=names[:3]).fit(frame)
    assert len(model.items_) == 60


def test_tables_with_names_stay_tables():
    rng = np.random.default_rng(0)
    for high in (6, 101):
        table = pd.DataFrame(rng.integers(1, high, (200, 4)), columns=list("abcd"))
        model = rj.JointRecommender(QUICK, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rj.Remark)  # that ratings are binned
            assert len(model.fit(table).items_) == 4
