"""JointRecommender: forms of ratings, predictions, advice, files; the contract."""

import json
import pickle
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import rejoint as rj
from rejoint.estimators import TraitPolicy
from rejoint.estimators.recommender import trait_model
from rejoint.estimators.recommender.joint_recommender import grow_bundle

QUICK = TraitPolicy(choice_traits=(3, 3), choice_draws=(8, 8), rating_traits=(2, 2))

# The check of sparse input wants one number a row of whatever predicts.
REASON = "predict of a table is a table: a number for every item of a user, not one for the row"
EXEMPTIONS = {"check_estimator_sparse_array": REASON, "check_estimator_sparse_matrix": REASON}
SMALL = replace(QUICK, choice_draws=(2, 2))


@pytest.mark.filterwarnings("ignore::rejoint.Remark")  # numbers of any kind are binned
@parametrize_with_checks(
    [
        rj.JointRecommender(columns="items", policy=SMALL),
        rj.JointRecommender("implicit", columns="items", policy=SMALL),
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
    return rj.JointRecommender(columns="items", policy=QUICK, random_state=0).fit(table)


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
        "rows with a time": [(*row, 7) for row in rows.itertuples(index=False, name=None)],
        "polars rows": pl.from_pandas(rows),
        "arrow rows": pl.from_pandas(rows).to_arrow(),
        "dict of columns": {name: rows[name].to_numpy() for name in rows},
        "polars table": pl.from_pandas(ordered),
    }
    found = {
        name: rj.JointRecommender(
            columns="items" if name in ("frame", "polars table") else None,
            policy=QUICK,
            random_state=0,
        ).fit(X)
        for name, X in forms.items()
    }
    # The same draws where users are in the same order: they sort as text in rows.
    expected = {name: found[name].predict_all() for name in ("array", "rows")}
    for name, model in found.items():
        form = "rows" if "rows" in name or name in ("tuples", "dict of columns") else "array"
        assert model.predict_all() == pytest.approx(expected[form], abs=1e-5), name
        assert list(model.levels_) == [1, 2, 3, 4, 5]
    assert list(found["rows"].items_) == sorted(FILMS)
    assert found["rows"].recommend("user 3")[0].item in FILMS
    assert list(found["array"].items_) == list(range(6))
    assert fitted.items_[order].tolist() == sorted(FILMS)


def test_columns_may_be_named(table):
    rows = as_rows(table).set_axis(["who", "what", "how much"], axis=1)
    fit = {"policy": QUICK, "random_state": 0}
    expected = rj.JointRecommender(**fit).fit(rows).predict_all()
    wide = rows[["how much", "what", "who"]].assign(when=0, where="x")
    with pytest.raises(ValueError, match=r"X must have columns of user, item, rating.*'items'"):
        rj.JointRecommender(**fit).fit(wide)
    model = rj.JointRecommender(columns=("who", "what", "how much"), **fit).fit(wide)
    np.testing.assert_array_equal(model.predict_all(), expected)
    pairs = wide[["what", "who"]]
    assert model.predict(pairs) == pytest.approx(model.predict(rows[["who", "what"]]), abs=0)
    with pytest.raises(ValueError, match=r"columns has 'wat', but X has .* Did you mean 'what'"):
        model.set_params(columns=("who", "wat", "how much")).fit(rows)
    for columns in ("who", ("who", "what")):
        with pytest.raises(ValueError, match="X must have columns of user, item, rating"):
            model.set_params(columns=columns).fit(rows)
    with pytest.raises(ValueError, match=r"Ratings must be numbers.*with columns="):
        rj.JointRecommender(**fit).fit(rows[["how much", "what", "who"]])


def test_ids_of_an_array_keep_their_type_and_order():
    rows = np.array([[10, 70, 5], [10, 71, 1], [9, 70, 4]])
    model = rj.JointRecommender(policy=QUICK, columns=(0, 1, 2), random_state=0).fit(rows)
    assert (list(model.users_), list(model.items_)) == ([9, 10], [70, 71])
    assert all(type(user) is int for user in model.users_)
    assert model.predict([(9, 71)]).shape == (1,)


def test_the_latest_rating_counts():
    rows = {"user": ["a", "a", "b", "b"], "item": ["x", "x", "x", "y"], "rating": [5, 1, 1, 1]}
    rows["time"] = [9, 3, 4, 5]
    columns = ("user", "item", "rating", "time")
    model = rj.JointRecommender(columns=columns, policy=QUICK, random_state=0)
    with pytest.warns(rj.Remark, match="the last one counts"):
        model.fit(rows)
    assert [move.rating for move in model.explain("a", "y").moves] == [5]


def test_explicit_zeros_are_ratings():
    matrix = sparse.csr_array(([0.0, 2.0, 2.0], ([0, 0, 1], [0, 1, 1])), shape=(2, 3))
    model = rj.JointRecommender(policy=QUICK, random_state=0).fit(matrix)
    assert list(model.levels_) == [0, 2]
    assert [found.item for found in model.recommend(0)] == [2]
    assert sorted(found.item for found in model.recommend(1)) == [0, 2]


def test_ratings_that_come_twice():
    rows = [("a", "x", 1), ("a", "x", 5), ("b", "x", 1), ("b", "y", 1)]
    with pytest.warns(rj.Remark, match="1 of 4 rows rate an item that the same user"):
        model = rj.JointRecommender(policy=QUICK, random_state=0).fit(rows)
    assert model.explain("a", "x").moves == ()
    assert [move.rating for move in model.explain("a", "y").moves] == [5]


@pytest.mark.parametrize("unit", [1e-300, 1.0, 1e300])
def test_ratings_of_any_size(unit):
    table = unit * stars().to_numpy()
    model = rj.JointRecommender(policy=QUICK, random_state=0).fit(table)
    expected = rj.JointRecommender(policy=QUICK, random_state=0).fit(stars().to_numpy())
    assert model.predict_all() / unit == pytest.approx(expected.predict_all(), rel=1e-4)


@pytest.mark.parametrize("feedback", ["explicit", "implicit"])
@pytest.mark.parametrize(
    "table",
    [
        [[3.0]],
        [[3.0, 4.0, np.nan, 5.0]],
        [[3.0], [4.0], [np.nan], [5.0]],
        np.full((5, 4), 3.0),
        np.outer(np.ones(30), [1.0, 2.0, 3.0, 4.0, 5.0]),
        [[np.nan, np.nan], [1.0, np.nan], [2.0, np.nan]],
    ],
    ids=["one cell", "one user", "one item", "one level", "users alike", "nothing known of some"],
)
def test_tables_at_the_edge(table, feedback):
    X = np.array(table)
    model = rj.JointRecommender(feedback, policy=QUICK, random_state=0).fit(X)
    assert np.isfinite(model.predict_all()).all()
    assert model.predict_proba([(0, 0)]).sum() == pytest.approx(1.0, abs=1e-5)
    assert len(model.recommend(0, exclude_seen=False)) == X.shape[1]
    assert model.explain(0, 0).item == 0
    assert model.pmf_.marginal("0").sum() == pytest.approx(1.0)
    assert np.isfinite(model.score(X))


def test_many_distinct_ratings_are_binned():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(200, 3))
    with pytest.warns(rj.Remark, match="600 distinct values: binned into 10 levels"):
        model = rj.JointRecommender(policy=QUICK, random_state=0).fit(table)
    # Ten levels of sixty ratings each, each worth the median of its ratings.
    assert model.levels_ == pytest.approx(np.quantile(table, np.arange(0.05, 1.0, 0.1)))
    assert model.predict(table).shape == table.shape


@pytest.mark.parametrize(
    ("X", "words"),
    [
        ([("a", "x"), ("b", "y")], "X must have columns of user, item, rating"),
        (np.full((3, 2), np.nan), "no user has rated any item"),
        (np.array([[1.0, np.inf]]), "infinity"),
        (pd.DataFrame({"user": ["a"], "item": ["x"], "rating": ["good"]}), "must be numbers"),
        ([("a", 1, 5), ("a", "1", 4)], "Two or more variables are called '1'"),
    ],
)
def test_what_is_refused(X, words):
    with pytest.raises(ValueError, match=words):
        rj.JointRecommender(policy=QUICK).fit(X)


def test_parameters_are_checked(table):
    with pytest.raises(ValueError, match="feedback='both' is not supported"):
        rj.JointRecommender("both").fit(table.to_numpy())
    with pytest.raises(NotFittedError):
        rj.JointRecommender().recommend("user 0")


# --- what it learns --------------------------------------------------------------------------


def test_learns_tastes(table, fitted):
    """Held-out ratings are predicted better than by the mean of each film."""
    best = [found.item for found in fitted.recommend({"Heat": 5, "Ghost": 1}, 2, by="expected")]
    assert sorted(best) == ["Ronin", "Speed"]
    assert fitted.result_.stop == "8 samples of choices with 3 traits, 16 of ratings with 2."
    rng = np.random.default_rng(1)
    held = rng.random(table.shape) < 0.2
    train, test = table.mask(held), as_rows(table.where(held))
    model = rj.JointRecommender(random_state=0).fit(as_rows(train))
    means = test["movieId"].map(train.mean())
    plain = float(np.sqrt(((means - test["rating"]) ** 2).mean()))
    # Within a taste ratings have a standard deviation of 0.5 and 0.8: 0.67 together.
    assert -model.score(test) < 0.85 < plain
    assert -model.score(test) == pytest.approx(
        np.sqrt(np.mean((model.predict(test) - test["rating"]) ** 2)), rel=1e-6
    )


def chosen_by_taste(seed=0, users=200, items=12):
    """Two kinds of users, who choose the first or the second half of the items."""
    rng = np.random.default_rng(seed)
    kind = rng.random(users) < 0.5
    own = kind[:, None] == (np.arange(items) < items // 2)
    return np.where(rng.random(own.shape) < np.where(own, 0.6, 0.1), 4.0, np.nan), own


def test_recommends_what_is_chosen():
    """All ratings are equal: what users choose says whom to recommend what."""
    table, own = chosen_by_taste()
    table[0, 1] = 5.0
    model = rj.JointRecommender(random_state=0).fit(table)
    tops = [
        model.recommend(user, 1)[0].item for user in range(60) if np.isfinite(table[user]).any()
    ]
    users = [user for user in range(60) if np.isfinite(table[user]).any()]
    hits = [own[user, item] for user, item in zip(users, tops, strict=True)]
    assert np.mean(hits) > 0.85  # by chance a half


def test_score_and_probability(table, fitted):
    found = fitted.recommend("user 1", exclude_seen=False)
    joint = fitted.joint("user 1", chosen=True)
    for one in found:
        chosen = 1 - joint.prob({one.item: "not chosen"})
        assert one.score == pytest.approx(chosen * np.sqrt(one.like), rel=1e-5)
        assert one.probability == pytest.approx(joint.prob({one.item: ["4", "5"]}), rel=1e-5)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


# --- predictions against the joint -----------------------------------------------------------


def test_predictions_are_those_of_the_joint(table, fitted):
    for user in USERS[:5]:
        joint = fitted.joint(user)
        assert joint.rank == 16  # two sweeps of ratings for each of choices
        for film in FILMS:
            # The joint is in double precision, and its shares sum to one.
            shares = fitted.predict_proba([(user, film)])[0]
            assert joint.marginal(film) == pytest.approx(shares, abs=1e-5)
            # Means of levels are met to a thousandth of a standard deviation.
            assert joint.expect(film) == pytest.approx(fitted.predict([(user, film)])[0], abs=5e-3)
    pair = fitted.joint("user 0", ["Heat", "Emma"])
    assert pair.domain.names == ("Heat", "Emma")
    whole = fitted.joint("user 0").marginal(["Heat", "Emma"])
    assert pair.marginal(["Heat", "Emma"]) == pytest.approx(whole, abs=1e-6)


def test_pairs_tables_and_blocks_agree(table, fitted):
    whole = fitted.predict_all()
    assert whole.shape == table.shape
    pairs = [(user, film) for user in ("user 7", "user 3", "user 7") for film in ("Emma", "Heat")]
    expected = [whole[USERS.index(u), FILMS.index(f)] for u, f in pairs]
    frame = pd.DataFrame(pairs, columns=["user", "item"])
    for X in (pairs, frame, pl.from_pandas(frame), frame.to_numpy()):
        assert fitted.predict(X) == pytest.approx(expected, abs=1e-5)  # single precision
    assert fitted.predict_all(["user 3"]) == pytest.approx(whole[[3]], abs=1e-5)
    # Rows of another table are new users, who were not part of the fit.
    assert np.abs(fitted.predict(table) - whole).mean() < 0.15
    shares = fitted.predict_proba(table)
    assert shares.sum(axis=2) == pytest.approx(np.ones(table.shape), abs=1e-5)
    assert shares @ fitted.levels_ == pytest.approx(fitted.predict(table), abs=5e-3)


def test_new_users_need_no_refit(table, fitted):
    row = table.loc["user 0"].dropna().to_dict()
    expected = fitted.recommend(row)
    assert fitted.recommend(table.loc["user 0"]) == expected
    assert fitted.recommend(table.to_numpy()[0]) == expected
    assert fitted.bundle(row, 1).items[0] == fitted.recommend(row, 1, by="probability")[0].item
    # A user of the fit stands about where the ratings alone place a new one.
    known = {one.item: one.expected for one in fitted.recommend("user 0")}
    assert known == pytest.approx({one.item: one.expected for one in expected}, abs=0.5)


def assert_alike(found, expected):
    """The same recommendations; sums over more or fewer users differ by rounding."""
    for one, other in zip(found, expected, strict=True):
        assert one.item == other.item
        assert one.because == other.because
        assert one[1:5] == pytest.approx(other[1:5], abs=1e-5)


def assert_near(found, expected):
    """The same expected ratings but for how a user of the fit and a new one are placed."""
    ratings = [{one.item: one.expected for one in some} for some in (found, expected)]
    assert ratings[0] == pytest.approx(ratings[1], abs=0.1)


def test_new_ratings_need_no_refit(table):
    rows = as_rows(table)
    late = rows["userId"].isin(["user 0", "user 1"]) & (rows["movieId"] != "Heat")
    model = rj.JointRecommender(policy=QUICK, random_state=0).fit(rows[~late])
    others = model.predict_all(USERS[2:])
    model.partial_fit(rows[late])
    mine = rows[rows["userId"] == "user 1"].set_index("movieId")["rating"].to_dict()
    assert_near(model.recommend("user 1"), model.recommend(mine))
    assert model.predict_all(USERS[2:]) == pytest.approx(others, abs=0)
    model.partial_fit([("new one", "Heat", 5.0), ("user 1", "Heat", 1.0)])
    assert model.users_[-1] == "new one"
    assert_alike(model.recommend("new one"), model.recommend({"Heat": 5.0}))
    assert_near(model.recommend("user 1"), model.recommend({**mine, "Heat": 1.0}))
    model.partial_fit([("new one", "Ghost", 2.0)])  # no user of the fit, though known by now
    assert_alike(model.recommend("new one"), model.recommend({"Heat": 5.0, "Ghost": 2.0}))
    with pytest.raises(KeyError, match="item 'Alien' was not in"):
        model.partial_fit([("another", "Alien", 5.0)])
    with pytest.raises(KeyError, match="user 'another' was not in the fit"):  # nothing has changed
        model.recommend("another")
    assert model.partial_fit([("another", "Heat", 5.0)]).recommend("another")


def test_nobody_gets_the_prior(fitted):
    found = {r.item: r.expected for r in fitted.recommend(None)}
    assert len(found) == 6
    for nobody in ({}, {"Heat": np.nan}):
        assert {r.item: r.expected for r in fitted.recommend(nobody)} == found
    assert fitted.explain(None, "Heat").moves == ()
    assert fitted.explain(None, "Heat").expected == pytest.approx(found["Heat"])


def test_the_joint_of_anybody(table, fitted):
    """Shares of levels and of pairs of levels are those of the ratings, roughly."""
    joint = fitted.pmf_
    for film in FILMS:
        shares = table[film].value_counts(normalize=True).reindex(range(1, 6), fill_value=0.0)
        # 90 ratings of a film: a share has a standard error of at most 0.05.
        assert joint.marginal(film) == pytest.approx(shares.to_numpy(), abs=0.15)
    both = table[["Heat", "Ronin"]].dropna()
    agree = ((both["Heat"] >= 4) == (both["Ronin"] >= 4)).mean()
    high = {"Heat": [4, 5], "Ronin": [4, 5]}
    low = {"Heat": [1, 2, 3], "Ronin": [1, 2, 3]}
    assert agree == 1.0
    assert joint.prob(high) + joint.prob(low) > 0.75  # a half if they were independent


# --- advice ----------------------------------------------------------------------------------


def test_order_and_exclusion(table, fitted):
    seen = set(table.loc["user 1"].dropna().index)
    found = fitted.recommend("user 1")
    assert {r.item for r in found} == set(FILMS) - seen
    for by in ("score", "probability", "like", "expected"):
        values = [getattr(r, by) for r in fitted.recommend("user 1", by=by)]
        assert values == sorted(values, reverse=True)
    liked = fitted.recommend("user 1", by="like", exclude_seen=False)
    assert len(liked) == 6
    assert [r.like for r in liked] == sorted((r.like for r in liked), reverse=True)
    assert len(fitted.recommend("user 1", 2, exclude_seen=False)) == 2
    only = fitted.recommend("user 1", among=["Emma", "Heat"], exclude_seen=False)
    assert {r.item for r in only} == {"Emma", "Heat"}


def test_liking_is_reaching_the_threshold(fitted):
    for threshold, first in ((None, 3), (5, 4), (2.5, 2)):
        for r in fitted.recommend({"Heat": 5}, by="like", threshold=threshold):
            shares = fitted.joint({"Heat": 5}).marginal(r.item)
            assert r.like == pytest.approx(shares[first:].sum(), abs=1e-5)
    with pytest.raises(ValueError, match="threshold=6 is above the highest rating, 5"):
        fitted.recommend(None, threshold=6)


def test_explanations_are_differences_of_predictions(table, fitted):
    ratings = {"Heat": 5, "Ronin": 4, "Ghost": 1}
    why = fitted.explain(ratings, "Speed")

    def expected(some):
        return fitted.recommend(some, among=["Speed"])[0].expected

    assert why.expected == pytest.approx(expected(ratings), abs=1e-5)  # single precision
    assert why.baseline == pytest.approx(expected(None), abs=1e-5)
    assert {m.item: m.rating for m in why.moves} == ratings
    for move in why.moves:
        rest = {film: rating for film, rating in ratings.items() if film != move.item}
        assert move.effect == pytest.approx(expected(ratings) - expected(rest), abs=1e-5)
    assert [abs(m.effect) for m in why.moves] == sorted(
        (abs(m.effect) for m in why.moves), reverse=True
    )
    assert "Speed: " in str(why)
    assert "Heat rated 5" in str(why)


def test_bundles_are_nearly_always_the_best():
    rng, best = np.random.default_rng(0), []
    for _ in range(100):
        likes = rng.random((5, 9)) ** 2
        values = {
            items: likes[:, list(items)].prod(axis=1).mean() for items in combinations(range(9), 3)
        }
        items, probability = grow_bundle(likes, 3)
        assert probability == pytest.approx(values[tuple(sorted(items))])
        best.append(probability > max(values.values()) * (1 - 1e-9))
    assert np.mean(best) > 0.9
    # Two halves of the world: a pair from one half beats the two best single items.
    likes = np.array([[0.9, 0.85, 0.05, 0.05], [0.05, 0.05, 0.95, 0.4]])
    assert set(grow_bundle(likes, 2)[0]) == {0, 1}


def test_a_bundle_is_a_joint_probability(fitted):
    """By the joint itself: the most probable pair given the user's ratings."""
    ratings = {"Heat": 5, "Emma": 2}
    left = [film for film in FILMS if film not in ratings]
    for by in ("probability", "like"):
        joint = fitted.joint(ratings, chosen=by == "probability")
        liked = ["4", "5"] if by == "probability" else [4, 5]
        values = {
            pair: joint.prob({film: liked for film in pair}) for pair in combinations(left, 2)
        }
        found = fitted.bundle(ratings, 2, by=by)
        assert found.probability == pytest.approx(max(values.values()), rel=1e-5)
        assert tuple(sorted(found.items, key=left.index)) == max(values, key=values.__getitem__)


def test_because_you_liked(fitted):
    for found in fitted.recommend({"Heat": 5, "Ghost": 1, "Emma": 4}, exclude_seen=False):
        assert set(found.because) <= {"Heat", "Emma"} - {found.item}
    assert all(found.because == () for found in fitted.recommend({"Ghost": 1}))
    table, _ = chosen_by_taste()
    model = rj.JointRecommender("implicit", random_state=0).fit(np.nan_to_num(table))
    found = {one.item: one.because for one in model.recommend([0, 1, 6], k=9)}
    # Items 0 to 5 are chosen together, and 6 to 11.
    assert set(found[2][:2]) == {0, 1}
    assert found[7][0] == 6


# --- bought or not ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def baskets():
    bought = stars(seen=1.0) >= 4
    gone = np.random.default_rng(3).random(bought.shape) < 0.2
    return bought & ~gone


def test_implicit_feedback(baskets):
    rows = [(user, film) for user, film in product(USERS, FILMS) if baskets.loc[user, film]]
    model = rj.JointRecommender("implicit", policy=QUICK, random_state=0).fit(rows)
    assert list(model.levels_) == [0, 1]
    best = model.recommend(["Heat"], 2)
    assert {r.item for r in best} == {"Ronin", "Speed"}
    assert best[0].expected == pytest.approx(best[0].probability)
    assert best[0].like == 1.0
    joint = model.joint(["Heat"])
    assert joint.marginal("Ronin")[1] == pytest.approx(
        {r.item: r.probability for r in model.recommend(["Heat"])}["Ronin"], abs=1e-5
    )
    assert model.predict([("user 0", "Emma")])[0] == pytest.approx(
        model.predict_proba([("user 0", "Emma")])[0, 1], abs=1e-9
    )
    # 0.5 is chance; two tastes of equal size put the right half first.
    fit_table = rj.JointRecommender("implicit", policy=QUICK, random_state=0).fit
    assert fit_table(baskets.to_numpy(float)).score(baskets.to_numpy(float)) > 0.85
    users = {user for user, _ in rows}
    held = [next(row for row in rows if row[0] == user) for user in USERS[:40:2] if user in users]
    rest = [row for row in rows if row not in held]
    part = rj.JointRecommender("implicit", policy=QUICK, random_state=0).fit(rest)
    assert part.score(held) > 0.7


# --- scoring, copies -------------------------------------------------------------------------


def test_scores_of_a_table_are_of_others(fitted, table):
    """Each rating from the others of its row, one by one."""
    part = table.iloc[:10]
    errors = []
    for user in part.index:
        row = part.loc[user].dropna()
        errors += [fitted.explain(row.to_dict(), film).expected - row[film] for film in row.index]
    assert fitted.score(part) == pytest.approx(-np.sqrt(np.mean(np.square(errors))), rel=1e-4)


@pytest.mark.parametrize("form", ["rows", "table"])
def test_grid_search(table, form):
    X = as_rows(table) if form == "rows" else table.to_numpy()
    quick = replace(QUICK, choice_draws=(2, 2))
    search = GridSearchCV(
        rj.JointRecommender(policy=quick, random_state=0),
        {"policy": [quick, replace(quick, rating_traits=(3, 3))]},
        cv=KFold(3, shuffle=True, random_state=0),
    )
    assert search.fit(X).best_score_ < 0
    assert search.best_estimator_.recommend({"Heat" if form == "rows" else 0: 5})
    assert len(cross_val_score(rj.JointRecommender(policy=quick, random_state=0), X, cv=2)) == 2


def test_clone_and_pickle(fitted, table):
    copy = pickle.loads(pickle.dumps(fitted))
    assert copy.recommend("user 5") == fitted.recommend("user 5")
    again = clone(fitted).fit(table)
    assert again.predict_all() == pytest.approx(fitted.predict_all(), abs=0)
    assert fitted.get_params()["policy"] == QUICK


def test_ratings_that_are_no_level_are_unseen(fitted, table):
    strange = table.iloc[:3].copy()
    strange.iloc[0, 0] = 4.5
    with pytest.warns(rj.Remark, match=r"1 cell treated as unseen: 4.5 is not among"):
        found = fitted.predict(strange)
    unseen = table.iloc[:3].copy()
    unseen.iloc[0, 0] = np.nan
    assert found == pytest.approx(fitted.predict(unseen), abs=1e-6)


def press_in_sweep(monkeypatch, number):
    """Press Ctrl-C in a sweep of the fit."""
    sample, taken = trait_model.sample_choices, []

    def pressed(*args):
        for draw in sample(*args):
            taken.append(draw)
            if len(taken) == number:
                raise KeyboardInterrupt
            yield draw

    monkeypatch.setattr(trait_model, "sample_choices", pressed)


def test_an_interrupted_fit_has_its_samples(table, monkeypatch):
    press_in_sweep(monkeypatch, 8)
    model = rj.JointRecommender(columns="items", policy=QUICK, random_state=0)
    with pytest.raises(rj.FitInterrupted) as pressed:
        model.fit(table)
    assert pressed.value.result.interrupted
    assert pressed.value.result.pmf.domain.names == tuple(FILMS)
    assert "3 samples of choices" in pressed.value.result.stop  # four burn in, three are kept
    assert model.joint("user 0").rank == 6
    assert model.recommend("user 0")


def test_a_refit_that_fails_leaves_the_model(table, monkeypatch):
    model = rj.JointRecommender(columns="items", policy=QUICK, random_state=0).fit(table)
    before = model.recommend("user 0")
    press_in_sweep(monkeypatch, 2)
    with pytest.raises(KeyboardInterrupt):
        model.fit(table.iloc[:50, :4])
    assert model.recommend("user 0") == before


# --- files -----------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["rejoint", "json"])
@pytest.mark.parametrize("feedback", ["explicit", "implicit"])
def test_files(table, tmp_path, suffix, feedback):
    model = rj.JointRecommender(feedback, policy=QUICK, random_state=0)
    model.set_params(columns="items").fit(table)
    path = tmp_path / f"films.{suffix}"
    model.save(path, notes={"source": "memory"})
    again = rj.JointRecommender.load(path)
    for user in ("user 0", None, {"Heat": 5, "Emma": 1}):
        assert again.recommend(user) == model.recommend(user)
        assert again.joint(user) == model.joint(user)
    assert again.predict(table.iloc[:3]) == pytest.approx(model.predict(table.iloc[:3]), abs=0)
    assert rj.load(path).pmf_ == model.pmf_
    assert again.partial_fit([("new", "Heat", 5.0)]).recommend("new")


def test_files_that_hold_no_recommender(fitted, tmp_path):
    fitted.pmf_.save(tmp_path / "joint.rejoint")
    with pytest.raises(
        ValueError, match="does not contain a recommender: make one with rejoint fit-ratings"
    ):
        rj.JointRecommender.load(tmp_path / "joint.rejoint")
    fitted.save(tmp_path / "films.json")
    plain = json.loads((tmp_path / "films.json").read_text())
    for part, value in (
        (("arrays", "estimator_choice_items", "shape"), [1, 2, 3]),
        (("arrays", "estimator_known_indices", "values"), [99] * len(fitted._known.indices)),
        (("arrays", "estimator_known_data", "values"), [99] * len(fitted._known.indices)),
        (("arrays", "estimator_rating_precision", "type"), "<U4"),
        (("estimator", "settings", "users"), ["alone"]),
        (("estimator", "settings", "policy"), {"place_steps": "many"}),
        (("estimator", "settings", "feedback"), "both"),
        (("estimator", "kind"), 3),
    ):
        broken = json.loads(json.dumps(plain))
        inner = broken
        for key in part[:-1]:
            inner = inner[key]
        inner[part[-1]] = value
        (tmp_path / "broken.json").write_text(json.dumps(broken))
        with pytest.raises(ValueError, match="is truncated or corrupt"):
            rj.JointRecommender.load(tmp_path / "broken.json")


def some_ratings():
    rng = np.random.default_rng(0)
    films = np.array([3, 7, 11, 25, 80, 99, 150, 260])
    cells = [(user, int(film)) for user in range(1, 30) for film in rng.choice(films, 5, False)]
    users, items = zip(*cells, strict=True)
    stars = rng.integers(1, 6, len(cells))
    return pd.DataFrame({"userId": users, "movieId": items, "rating": stars})


def test_new_users_are_predicted_by_their_ratings():
    model = rj.JointRecommender(random_state=0).fit(some_ratings())
    new = {3: 5, 7: 1}
    found = model.predict([(new, 11), (1, 11), (None, 11), (new, 25)])
    expected = {one.item: one.expected for one in model.recommend(new)}
    np.testing.assert_allclose(found[[0, 3]], [expected[11], expected[25]], rtol=1e-6)
    assert found[1] == pytest.approx(model.predict([(1, 11)])[0], rel=1e-6)
    np.testing.assert_allclose(
        model.predict_proba([(new, 11)]) @ model.levels_, found[:1], atol=0.01
    )
    np.testing.assert_allclose(model.predict_all([new])[0, [2, 3]], found[[0, 3]], rtol=1e-6)
    chosen = rj.JointRecommender("implicit", random_state=0).fit([("a", "x"), ("b", "y")])
    assert chosen.predict([(["x"], "y"), (["y"], "x")]).shape == (2,)


def test_half_stars_may_be_rounded_up():
    rows = [("a", "x", 0.5), ("b", "x", 3.5), ("c", "x", 4.0), ("c", "y", 3.0)]
    rounded = rj.JointRecommender(policy=QUICK, half_up=True, random_state=0).fit(rows)
    assert list(rounded.levels_) == [1, 3, 4]
    assert rounded.recommend({"x": 3.5})[0] == rounded.recommend({"x": 4.0})[0]


def test_unknown_names(fitted):
    with pytest.raises(KeyError, match=r"user 'user 1001' was not in.*Did you mean 'user 1"):
        fitted.recommend("user 1001")
    with pytest.raises(KeyError, match=r"item 'Gost'.*Did you mean 'Ghost'"):
        fitted.recommend({"Gost": 4})
    with pytest.raises(ValueError, match="Item 'Heat': rating 9 is not among 1, 2, 3, 4, 5"):
        fitted.recommend({"Heat": 9})
    with pytest.raises(TypeError, match="items alone will do with feedback='implicit' only"):
        fitted.recommend(["Heat"])
    with pytest.raises(ValueError, match="by='best' is not supported"):
        fitted.recommend(None, by="best")
    with pytest.raises(ValueError, match="bundle of 7 items was requested, but 6 are left"):
        fitted.bundle(None, 7)


def test_frames_whose_columns_are_numbered(table):
    numbered = table.set_axis(range(len(FILMS)), axis=1)
    model = rj.JointRecommender(columns="items", policy=QUICK, random_state=0).fit(numbered)
    assert list(model.items_) == list(range(len(FILMS)))
    assert model.predict(numbered.iloc[:2]).shape == (2, len(FILMS))
