"""JointPMF: scikit-learn's contract, what it learns, what it says of rows, chunks."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn_checks import checked

import rejoint as rj
from rejoint.estimation import Bayes
from rejoint.factorization import Admm, Limits
from rejoint.model import Model

# Every check passes: there is no exemption to give a reason for.
EXEMPTIONS: dict[str, str] = {}


@pytest.mark.filterwarnings("ignore::rejoint.Remark")  # numbers as levels, unknown ones as holes
@parametrize_with_checks(
    checked(
        rj.JointPMF(rank=2, solver="map", n_init=1),
        rj.JointPMF(rank="auto", solver="ml", n_init=1),
        rj.JointPMF(rank=2, solver=Bayes(burn_in=5, draws=5, thin=1), n_init=1),
        rj.JointPMF(rank=2, solver=Admm(limits=Limits(max_steps=3)), n_init=1),
    ),
    expected_failed_checks=lambda estimator: EXEMPTIONS,
)
def test_scikit_learn(estimator, check):
    check(estimator)


DOMAIN = rj.Domain.of({name: ["low", "mid", "high"] for name in "abcde"})


def truth() -> rj.LowRankPMF:
    rng = np.random.default_rng(3)
    factors = [rng.dirichlet(np.full(3, 0.7), size=2).T for _ in range(5)]
    return rj.LowRankPMF([0.7, 0.3], factors, DOMAIN)


@pytest.fixture(scope="module")
def records():
    return rj.datasets.remove_cells(truth().sample(2000, random_state=0), 0.1, random_state=0)


@pytest.fixture(scope="module")
def frame(records):
    return records.to_frame("pandas")


@pytest.fixture(scope="module")
def fitted(frame):
    return rj.JointPMF(rank=2, solver="map", random_state=0).fit(frame)


# --- learning --------------------------------------------------------------------------------


def test_learns_the_joint(fitted):
    # Cramer-Rao says about sqrt(p / M) = 0.1 relative to the spread; independence is at 0.35.
    assert rj.metrics.tensor_error(truth(), fitted.pmf_.align(DOMAIN)) < 0.12
    assert fitted.rank_ == 2
    assert fitted.result_.pmf is fitted.pmf_
    assert fitted.n_features_in_ == 5
    assert fitted.n_samples_seen_ == 2000
    assert list(fitted.feature_names_in_) == list("abcde")


def test_is_estimate(records):
    model = rj.JointPMF(rank=2, solver="ml", n_init=2, random_state=5).fit(records)
    same = rj.estimate(records, 2, "ml", n_init=2, random_state=5)
    assert model.pmf_ == same.pmf


def test_finds_the_rank(frame):
    model = rj.JointPMF(solver="map", n_init=2, random_state=0).fit(frame)
    assert model.rank_ == 2
    assert model.result_.choice.startswith("Rank 2 of 1, 2")


@pytest.mark.parametrize("solver", ["algebraic", "admm", "newton", "kl", Admm()])
def test_from_tables(frame, solver):
    model = rj.JointPMF(rank=2, solver=solver, n_init=2, random_state=0).fit(frame)
    # Least squares on tables is about a quarter worse than likelihood.
    assert rj.metrics.tensor_error(truth(), model.pmf_.align(DOMAIN)) < 0.15
    assert model.result_.choice.startswith("Tables of three variables: they determine")
    assert len(model.result_.misfits) == 10
    logs = model.pmf_.log_prob(frame)
    assert model.result_.log_likelihood == pytest.approx(logs.sum())


@pytest.mark.filterwarnings("ignore:These tables do not determine a joint of rank 12")
def test_order_follows_the_rank():
    """Binary triples of five variables carry a small rank; quadruples need to be filled."""
    few = rj.JointPMF(rank=12, solver="admm", n_init=1, random_state=0)
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(60, 5))
    few.fit(X)
    assert "records per cell" in few.result_.choice
    assert all(len(names) == 3 for names in few.result_.misfits)
    many = clone(few).fit(rng.integers(0, 2, size=(1000, 5)))
    assert many.result_.choice.startswith("Tables of four variables: those of three are only")
    assert all(len(names) == 4 for names in many.result_.misfits)


def test_empty_tables_are_left_out():
    nothing = None
    X = {
        "a": ["x", "y"] * 20 + [nothing] * 20,
        "b": ["x", "y"] * 10 + ["y", "x"] * 20,
        "c": ["x", "x", "y", "y"] * 15,
        "d": [nothing] * 40 + ["x", "y"] * 10,
    }
    with pytest.warns(rj.Remark, match="2 of 4 tables of 3 variables have no record"):
        rj.JointPMF(rank=1, solver="admm", order=3, n_init=1).fit(X)


def test_sample_weight_counts(frame):
    """Weights are copies: the same model from merged rows."""
    few = frame[["a", "b", "c"]].dropna()
    merged = rj.Records.of(few).merged()
    one = rj.JointPMF(rank=2, solver="map", n_init=2, random_state=0).fit(few)
    X = merged.to_frame("pandas")
    two = clone(one).fit(X, sample_weight=merged.sample_weight)
    assert two.n_samples_seen_ == len(few)
    assert one.pmf_.equals(two.pmf_.align(one.pmf_.domain), tol=1e-9)


@pytest.mark.parametrize("form", ["pandas", "polars", "arrow", "dict", "lists"])
def test_rows_of_weight_zero_are_not_there(form):
    rows = {"a": ["x", "y", "odd", "x"], "b": ["u", "v", "u", "u"]}
    X = {
        "pandas": pd.DataFrame,
        "polars": pl.DataFrame,
        "arrow": pa.table,
        "dict": dict,
        "lists": lambda d: [list(row) for row in zip(*d.values(), strict=True)],
    }[form](rows)
    model = rj.JointPMF(rank=1, solver="ml").fit(X, sample_weight=[1, 1, 0, 2])
    assert model.n_samples_seen_ == 4
    levels = model.pmf_.domain[0].levels
    # A dict goes by name and is read as it is: the level stays, with no probability.
    assert levels == (("odd", "x", "y") if form == "dict" else ("x", "y"))


# --- what X may be ---------------------------------------------------------------------------


def forms(frame):
    return {
        "pandas": frame,
        "polars": pl.from_pandas(frame),
        "arrow": pa.Table.from_pandas(frame, preserve_index=False),
        "objects": frame.to_numpy(dtype=object),
        "rows": frame.astype(object).where(frame.notna(), None).to_numpy().tolist(),
        "dicts": frame.astype(object).where(frame.notna(), None).to_dict("records"),
        "columns": frame.astype(object).where(frame.notna(), None).to_dict("list"),
        "records": rj.Records.of(frame),
    }


@pytest.mark.parametrize(
    "form", ["polars", "arrow", "objects", "rows", "dicts", "columns", "records"]
)
def test_all_forms_say_the_same(frame, fitted, form):
    X = forms(frame[:300])[form]
    model = clone(fitted).fit(X)
    plain = clone(fitted).fit(frame[:300])
    # Levels may come in another order, and starts with them; fits end near the same maximum.
    assert np.allclose(model.score_samples(X), plain.score_samples(frame[:300]), rtol=1e-5)
    assert np.array_equal(model.predict(X), plain.predict(frame[:300]))


def test_numbers_with_nan():
    X = np.array([[0, 1], [1, np.nan], [0, 1], [1, 0]] * 10)
    model = rj.JointPMF(rank=1, solver="ml").fit(X)
    assert model.pmf_.domain["x1"].levels == (0, 1)
    assert model.score_samples([[np.nan, np.nan]]) == pytest.approx([0.0])
    assert not hasattr(model, "feature_names_in_")


def test_an_array_after_a_frame_goes_by_position(fitted, frame):
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        by_position = fitted.score_samples(frame.to_numpy(dtype=object)[:50])
    assert np.allclose(by_position, fitted.score_samples(frame[:50]))


def test_a_frame_after_an_array_goes_by_position(fitted, frame):
    model = clone(fitted).fit(frame.to_numpy(dtype=object))
    with pytest.warns(UserWarning, match="X has feature names, but JointPMF was fitted without"):
        by_position = model.score_samples(frame[:50])
    assert np.allclose(by_position, model.score_samples(frame.to_numpy(dtype=object)[:50]))


def test_columns_in_another_order_are_refused(fitted, frame):
    with pytest.raises(ValueError, match="The feature names should match"):
        fitted.predict(frame[["b", "a", "c", "d", "e"]])


def test_unknown_levels_are_missing(fitted):
    with pytest.warns(rj.Remark, match="odd"):
        assert fitted.score_samples([{"a": "odd"}]) == pytest.approx([0.0])


def test_records_say_how_columns_are_read():
    ages = {"age": [3, 30, 40, 70, 8, 33], "x": list("ababab")}
    model = rj.JointPMF(rank=1, solver="ml").fit(rj.Records.of(ages, bins={"age": [0, 18, 99]}))
    assert model.pmf_.domain["age"].kind == "binned"
    assert np.exp(model.score_samples({"age": [5]})) == pytest.approx([1 / 3])


# --- what it says of rows ---------------------------------------------------------------------


def test_classes(fitted, frame):
    posterior = fitted.predict_proba(frame)
    assert posterior.shape == (2000, 2)
    assert np.array_equal(fitted.predict(frame), posterior.argmax(axis=1))
    assert np.allclose(posterior, fitted.pmf_.classes(frame))
    assert fitted.pmf_.weights[0] >= fitted.pmf_.weights[1]


def test_scores(fitted, frame):
    logs = fitted.score_samples(frame)
    assert np.allclose(logs, fitted.pmf_.log_prob(frame))
    assert fitted.score(frame) == pytest.approx(logs.mean())
    weight = np.arange(len(frame)) % 3
    assert fitted.score(frame, sample_weight=weight) == pytest.approx(
        np.average(logs, weights=weight)
    )


def test_criteria(fitted, frame):
    free = 2 * (15 - 5 + 1) - 1
    likelihood = fitted.pmf_.log_prob(frame).sum()
    assert fitted.aic(frame) == pytest.approx(2 * free - 2 * likelihood)
    assert fitted.bic(frame) == pytest.approx(np.log(2000) * free - 2 * likelihood)
    twice = fitted.bic(frame, sample_weight=np.full(2000, 2))
    assert twice == pytest.approx(np.log(4000) * free - 4 * likelihood)


def test_posterior_mean_is_what_predicts(frame):
    model = rj.JointPMF(rank=2, solver="bayes", n_init=1, random_state=0).fit(frame[:300])
    mean = model.result_.posterior.mixture
    assert mean.rank > model.rank_ == 2
    assert np.allclose(model.score_samples(frame), mean.log_prob(frame))
    assert model.predict_proba(frame[:5]).shape == (5, 2)


def test_profiles(fitted):
    shown = fitted.profiles("pandas")
    assert list(shown.columns) == ["overall", "class 1", "class 2"]
    assert np.allclose(shown.groupby("variable").sum(), 1)
    assert shown.loc[("a", "low"), "overall"] == pytest.approx(fitted.pmf_.prob({"a": "low"}))
    assert fitted.profiles("polars").columns[:2] == ["variable", "level"]
    assert fitted.profiles("pyarrow").num_rows == 15
    assert type(fitted.profiles()) is pd.DataFrame


@pytest.mark.parametrize("call", ["predict", "predict_proba", "score_samples", "score", "aic"])
def test_not_fitted(call, frame):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(rj.JointPMF(), call)(frame)


# --- among scikit-learn's tools ----------------------------------------------------------------


def test_searched_and_validated(frame):
    model = rj.JointPMF(rank=1, solver="map", n_init=1, random_state=0)
    search = GridSearchCV(model, {"rank": [1, 2]}, cv=2).fit(frame)
    assert search.best_params_ == {"rank": 2}
    assert cross_val_score(make_pipeline(model), frame, cv=2).shape == (2,)


def test_params():
    model = rj.JointPMF(rank=3).set_params(solver="ml")
    assert model.get_params() == {
        "rank": 3,
        "solver": "ml",
        "order": "auto",
        "n_init": 5,
        "random_state": None,
        "smooth": "auto",
        "kinds": None,
        "levels": None,
        "bins": None,
        "agreement": True,
        "blocks": "auto",
        "not_applicable": "auto",
        "missing_level": (),
    }
    assert repr(clone(model)) == "JointPMF(rank=3, solver='ml')"


# --- chunks --------------------------------------------------------------------------------------


def chunked(model, records, size):
    for chunk in records.chunks(size):
        model.partial_fit(chunk)
    return model


def test_chunks_end_near_the_whole(records, fitted):
    model = chunked(rj.JointPMF(rank=2, random_state=0), records, 150)
    assert model.n_samples_seen_ == 2000
    assert model.result_.stop == "Learned from 2,000 records in 14 chunks, all of which are kept."
    apart = rj.metrics.tensor_error(fitted.pmf_.align(DOMAIN), model.pmf_)
    # The latest quarter at the most is not in the model yet; sampling error is 0.08.
    assert apart < 0.05


def test_each_chunk_was_foreseen_ever_better(records):
    model = chunked(rj.JointPMF(rank=2, random_state=0), records, 100)
    losses = np.array([record.objective for record in model.result_.history])
    assert len(losses) == 19
    assert losses[-5:].mean() < losses[:5].mean()


def test_memory_is_bounded(records):
    """What does not fit is let go, and the model keeps learning."""
    model = rj.JointPMF(rank=2, random_state=0)
    sizes = []
    for chunk in records.chunks(100):
        model.partial_fit(chunk)
        model._partial.budget = 6000  # bytes: some 300 records of 10 + 8
        sizes.append(sum(p.codes.nbytes + p.weight.nbytes for p in model._partial.kept))
    assert max(sizes[1:]) <= 6000
    assert "only expected counts are kept" in model.result_.stop
    assert model.n_samples_seen_ == 2000
    last = rj.JointPMF(rank=2, solver="map", random_state=0).fit(
        rj.Records(records.domain, records.codes[-300:])
    )
    errors = [rj.metrics.tensor_error(truth(), m.pmf_) for m in (model, last)]
    assert errors[0] < 0.7 * errors[1]  # better than what is held alone could be


def test_counts_add_up(records):
    """Expected counts of what is held and gone weigh as much as the records."""
    model = chunked(rj.JointPMF(rank=2, random_state=0), records, 100)
    stream = model._partial
    stream.drop()
    assert stream.dropped_counts[0].sum() == pytest.approx(2000)
    assert stream.kept == []


def test_the_first_chunk_fixes_the_domain():
    first = {"a": ["x", "y"] * 10, "b": ["u", "v"] * 10}
    model = rj.JointPMF(rank=1).partial_fit(first)
    with pytest.warns(rj.Remark, match="'z'"):
        model.partial_fit({"a": ["z", "x"], "b": ["u", "v"]})
    assert model.pmf_.domain["a"].levels == ("x", "y")
    domain = rj.Domain.of({"a": ["x", "y", "z"], "b": ["u", "v"]})
    model = rj.JointPMF(rank=1).partial_fit(rj.Records.of(first, domain=domain))
    model.partial_fit({"a": ["z", "x"] * 4, "b": ["u", "v"] * 4})
    assert model.pmf_.prob({"a": "z"}) > 0.02


def test_goes_on_after_fit(records, fitted):
    half = rj.Records(records.domain, records.codes[:1000])
    rest = rj.Records(records.domain, records.codes[1000:])
    model = rj.JointPMF(rank=2, solver="map", random_state=0).fit(half)
    before = rj.metrics.tensor_error(truth(), model.pmf_)
    model.partial_fit(rest)
    assert model.n_samples_seen_ == 2000
    assert rj.metrics.tensor_error(truth(), model.pmf_) < before
    assert "of 1,000 only expected counts are kept" in model.result_.stop


def test_empty_chunks_change_nothing(records):
    model = rj.JointPMF(rank=2, random_state=0).partial_fit(records)
    before = model.pmf_
    model.partial_fit([{"a": None}])
    assert model.pmf_ is before


def test_rank_is_chosen_anew_as_records_come(records):
    model = chunked(rj.JointPMF(n_init=2, random_state=0), records, 250)
    assert model.rank_ == 2


def test_chunks_without_a_prior(records):
    """One chunk by likelihood is one fit by likelihood."""
    model = rj.JointPMF(rank=2, solver="ml", n_init=2, random_state=0).partial_fit(records)
    whole = rj.JointPMF(rank=2, solver="ml", n_init=2, random_state=0).fit(records)
    assert model.pmf_.equals(whole.pmf_, tol=1e-6)
    assert model._partial.prior is False


def test_an_interrupted_chunk_can_be_learned_again(records, monkeypatch):
    """Ctrl-C leaves the model as it was before the chunk."""
    first, second = list(records.chunks(1000))
    model = rj.JointPMF(rank=2, random_state=0).partial_fit(first)
    before = model.pmf_

    def press(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("rejoint.estimators.partial_fit.run", press)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(second)
    assert model.pmf_ is before
    assert model.n_samples_seen_ == 1000
    model.partial_fit(second)
    whole = chunked(rj.JointPMF(rank=2, random_state=0), records, 1000)
    assert model.pmf_ == whole.pmf_
    assert model.result_.stop == whole.result_.stop


class PlainEm:
    """A solver of somebody else, which says that it works on passes over records."""

    name = "plain"
    limits = Limits(max_steps=50, progress=1e-6, exact=-1.0)
    needs = ("expect", "layout")

    def init(self, data, model):
        return self.look(data, model)

    def step(self, data, state):
        counts = state.counts
        factors = data.layout.normalize(counts[1:] + 1e-9)
        return self.look(data, Model(data.layout, counts[0] / counts[0].sum(), factors))

    def look(self, data, model):
        found = data.expect(model)
        return SimpleNamespace(
            model=model, objective=-found.log_likelihood, residual=np.inf, counts=found.counts
        )


def test_a_solver_of_your_own_for_records(records, fitted):
    model = rj.JointPMF(rank=2, solver=PlainEm(), n_init=3, random_state=0).fit(records)
    assert {record.solver for record in model.result_.history} == {"plain"}
    # Maximum likelihood against the posterior mode: sampling error is 0.08.
    assert rj.metrics.tensor_error(fitted.pmf_.align(DOMAIN), model.pmf_.align(DOMAIN)) < 0.05


def test_tables_have_no_chunks():
    model = rj.JointPMF(solver="admm")
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError, match="partial_fit"):
        model.partial_fit([["a"]])
