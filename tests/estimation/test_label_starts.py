"""Starts from votes, from records and from given labels."""

import re

import numpy as np
import pytest
from small_records import random_records

import rejoint as rj
from rejoint.estimation import Em, estimate
from rejoint.estimation.data import InMemory
from rejoint.estimation.starts import (
    make_starts,
    model_from_votes,
    model_of_labels,
)

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")


def is_model(data, model):
    sums = data.layout.sums(model.factors)
    return np.isclose(model.weights.sum(), 1) and np.allclose(sums, 1) and (model.factors > 0).all()


def crowd(seed, items=200, workers=12, labels=3, votes=5):
    """Answers of workers who know 0.5 to 0.9 of the items, -1 where there is none; the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(labels, size=items)
    right = rng.uniform(0.5, 0.9, workers)
    guesses = rng.integers(labels, size=(items, workers))
    answers = np.where(rng.random((items, workers)) < right, truth[:, None], guesses)
    seen = rng.random((items, workers)).argsort(axis=1) < votes
    return np.where(seen, answers, -1).astype(np.int8), truth


def as_records(answers, labels=3):
    names = [f"w{n}" for n in range(answers.shape[1])]
    return rj.Records(rj.Domain.of(dict.fromkeys(names, labels)), answers)


def share_right(result, records, truth):
    """Share of the records whose class is mostly of their own kind."""
    classes = result.pmf.classes(records).argmax(axis=1)
    return sum(np.bincount(truth[classes == f]).max() for f in set(classes)) / len(truth)


# --- records ---------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [2, 3, 5])
def test_a_smaller_number_of_starts_is_the_beginning_of_a_larger_one(rank):
    data = InMemory.of(random_records(0, (3, 3, 3), 100))
    few, many = (make_starts(data, rank, n, Em(), np.random.default_rng(1)) for n in (5, 20))
    assert [len(few), len(many)] == [5, 20]
    for one, other in zip(few, many, strict=False):
        assert np.array_equal(one(data).factors, other(data).factors)


# --- votes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [rj.SparseRecords.of, lambda records: records.take(slice(None))])
def test_votes_do_not_depend_on_how_records_are_stored(form):
    answers, _ = crowd(0)
    records = as_records(answers)
    one, other = (InMemory.of(each) for each in (records, form(records)))
    a, b = (model_from_votes(data, 4, np.random.default_rng(0)) for data in (one, other))
    assert np.allclose(a.factors, b.factors)
    assert np.allclose(a.weights, b.weights)


@pytest.mark.parametrize("seed", range(3))
def test_a_vote_start_alone_finds_what_workers_label(seed):
    answers, truth = crowd(seed)
    records = as_records(answers)
    result = estimate(records, 3, "map", n_init=1, random_state=0)
    assert share_right(result, records, truth) > 0.9
    many = estimate(records, 3, "map", n_init=30, random_state=1)
    assert result.log_likelihood == pytest.approx(many.log_likelihood, abs=0.05)


# --- given labels ----------------------------------------------------------------------------

ANSWERS, TRUTH = crowd(5, items=300)
NAMED = np.array(["cat", "dog", "owl"])[TRUTH]


@pytest.mark.parametrize(
    "labels",
    [
        TRUTH,
        TRUTH.astype(float),
        NAMED,
        NAMED.tolist(),
        pd.Series(NAMED),
        pd.Series(NAMED, dtype="category"),
        pl.Series(NAMED.tolist()),
        [*map(str, TRUTH)],
    ],
    ids=["int", "float", "text", "list", "pandas", "category", "polars", "digits"],
)
def test_labels_of_every_kind_are_the_same_start(labels):
    records = as_records(ANSWERS)
    first, mine = (model_of_labels(records, each, 3) for each in (TRUTH, labels))
    assert np.array_equal(first.factors, mine.factors)
    one, other = (
        estimate(records, 3, "map", start_labels=each, random_state=0) for each in (TRUTH, labels)
    )
    assert one.pmf == other.pmf


@pytest.mark.parametrize("door", ["records", "frame", "sparse", "dicts", "merged"])
@pytest.mark.parametrize("solver", ["ml", "map", "bayes"])
def test_labels_go_with_every_kind_of_records(door, solver):
    records = as_records(ANSWERS)
    table = pd.DataFrame(ANSWERS.astype(float), columns=records.names).replace(-1.0, np.nan)
    labels, weight = TRUTH, np.random.default_rng(0).integers(1, 3, len(TRUTH))
    data = {
        "records": records,
        "frame": table,
        "sparse": rj.SparseRecords.of(records),
        "dicts": [{k: v for k, v in row.items() if v == v} for row in table.to_dict("records")],
        "merged": records,
    }[door]
    if door == "merged":  # copies in place of weights
        data, labels, weight = records.take(np.repeat(np.arange(300), weight)), None, None
        labels = np.repeat(TRUTH, np.random.default_rng(0).integers(1, 3, len(TRUTH)))
    options = {"domain": records.domain} if door in ("frame", "dicts") else {}
    result = estimate(
        data, 3, solver, start_labels=labels, sample_weight=weight, random_state=0, **options
    )
    assert len(result.starts) == 1
    assert share_right(result, records, TRUTH) > 0.9
    expected = estimate(
        records,
        3,
        solver,
        start_labels=TRUTH,
        sample_weight=np.random.default_rng(0).integers(1, 3, len(TRUTH)),
        random_state=0,
    )
    assert result.pmf.representative.equals(expected.pmf.representative, tol=1e-4)


def test_unknown_labels_are_left_out_and_further_classes_are_random():
    records = as_records(ANSWERS)
    some = NAMED.astype(object)
    some[::2] = None
    start = model_of_labels(records, some, 3)
    alone = model_of_labels(records.take(slice(1, None, 2)), NAMED[1::2], 3)
    assert np.allclose(start.weights, alone.weights)
    with_nan, minus = np.where(np.arange(300) % 2, TRUTH, np.nan), TRUTH.copy()
    minus[::2] = -1
    for same in (with_nan, minus):
        assert np.allclose(model_of_labels(records, same, 3).factors, start.factors)
    result = estimate(records, 5, "map", start_labels=some, n_init=4, random_state=0)
    assert len(result.starts) == 4


@pytest.mark.parametrize(
    ("labels", "options", "words"),
    [
        (TRUTH[1:], {"rank": 3}, "one label for each of the 300 records .* not 299"),
        (TRUTH, {"rank": 2}, "has 3 labels, .* rank=3 or more, not rank=2"),
        (TRUTH, {}, "rank=3 or more, not rank='auto'"),
        ([None] * 300, {"rank": 3}, "two labels or more .* Got 0 labels"),
        (np.where(TRUTH == 0, 1, -1), {"rank": 3}, "-1 mean that a label is not known. Got 1 lab"),
        ("dog", {"rank": 3}, "must be a column"),
    ],
)
def test_labels_that_cannot_be_a_start_are_refused(labels, options, words):
    with pytest.raises((TypeError, ValueError), match=words):
        estimate(as_records(ANSWERS), start_labels=labels, **options)


def test_labels_of_a_scan_and_beside_a_start_are_refused():
    records = as_records(ANSWERS)
    with pytest.raises(ValueError, match=re.escape("give its pmf as start to the fit of all")):
        estimate(rj.scan(records, size=50), 3, start_labels=TRUTH)
    start = estimate(records, 3, "map", n_init=1, random_state=0).pmf
    with pytest.raises(ValueError, match="no start beside it"):
        estimate(records, 3, start=start, start_labels=TRUTH)
    result = estimate(rj.scan(records, size=50), 3, "map", start=start, random_state=0)
    assert share_right(result, records, TRUTH) > 0.9


def test_other_labels_are_another_checkpoint(tmp_path):
    records, path = as_records(ANSWERS), tmp_path / "fit.checkpoint"
    one = estimate(records, 3, "map", start_labels=TRUTH, random_state=0, checkpoint=path)
    again = estimate(records, 3, "map", start_labels=TRUTH, random_state=0, checkpoint=path)
    assert again.pmf == one.pmf
    with pytest.raises(ValueError, match="start_labels"):
        estimate(records, 3, "map", start_labels=np.roll(TRUTH, 1), random_state=0, checkpoint=path)
