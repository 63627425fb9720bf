"""Records by what is observed of them: the same answers as ordinary records give."""

import numpy as np
import pytest
from scipy import sparse

import rejoint as rj
from rejoint.records.sparse import SparseRecords, as_records
from rejoint.records.survey_design import WeightArguments


def holey(rows=400, seed=0):
    """Records of a small model, two thirds of the cells gone, and the same by their cells."""
    rng = np.random.default_rng(seed)
    factors = [rng.dirichlet(np.ones(3), size=2).T for _ in range(6)]
    pmf = rj.LowRankPMF([0.4, 0.6], factors)
    records = rj.datasets.remove_cells(pmf.sample(rows, random_state=seed), 0.65, random_state=seed)
    return records, SparseRecords.of(records)


def test_a_matrix_becomes_records_and_zeros_that_are_stored_are_seen():
    matrix = sparse.csr_array(([5.0, 0.0, 3.5, np.nan], ([0, 1, 1, 2], [1, 0, 1, 1])), shape=(4, 2))
    found = SparseRecords.of(matrix, names=["Heat", "Up"])
    assert [v.levels for v in found.domain] == [(0,), (3.5, 5)]
    assert list(found.to_records().rows()) == [
        {"Heat": None, "Up": 5},
        {"Heat": 0, "Up": 3.5},
        {"Heat": None, "Up": None},
        {"Heat": None, "Up": None},
    ]


def test_rows_of_any_labels():
    found = SparseRecords.of_rows(
        ["u2", "u1", "u2", None],
        ["b", "a", "a", "a"],
        ["x", "y", None, "z"],
        kinds={"a": "ordinal"},
    )
    assert len(found) == 2
    assert found.names == ("a", "b")
    assert found.domain["a"].kind == "ordinal"
    assert list(found.to_records().rows()) == [{"a": "y", "b": None}, {"a": None, "b": "x"}]


def test_a_domain_that_is_given():
    domain = rj.Domain.of({"b": ["x", "y"], "a": ["p", "q"], "c": 3})
    found = SparseRecords.of_rows([1, 1, 2], ["a", "b", "b"], ["q", "x", "y"], domain=domain)
    assert found.domain == domain
    np.testing.assert_array_equal(found.to_records().codes, [[0, 1, -1], [1, -1, -1]])
    other = rj.Domain.of({"a": ["q", "p"], "b": ["x"]})
    with pytest.warns(rj.Remark) as said:
        again = SparseRecords.of(found, domain=other)
    words = " ".join(str(remark.message) for remark in said)
    assert "left out: 'c'" in words
    assert "'y'" in words
    np.testing.assert_array_equal(again.to_records().codes, [[0, 0], [-1, -1]])


def test_merged_records_weigh_as_much():
    records, cells = holey(3000)
    merged = cells.merged()
    assert len(merged) < len(cells)
    assert merged.sample_weight.sum() == 3000
    dense = merged.to_records().merged()
    truth = records.merged()
    np.testing.assert_array_equal(dense.codes, truth.codes)
    np.testing.assert_array_equal(dense.sample_weight, truth.sample_weight)


def test_chunks_are_the_whole():
    records, cells = holey(50)
    parts = [part.to_records().codes for part in cells.chunks(20)]
    np.testing.assert_array_equal(np.concatenate(parts), records.codes)


@pytest.mark.parametrize("solver", ["ml", "map", "bayes"])
def test_estimate_is_the_same(solver):
    records, cells = holey()
    start = rj.estimate(records, 2, "ml", n_init=1, random_state=1).pmf
    dense, thin = (
        rj.estimate(data, 2, solver, start=start, n_init=1, random_state=0)
        for data in (records, cells)
    )
    if solver == "bayes":
        # Other draws, from which the prior's strength follows: it moves the mode by a fraction of
        # a nat.
        assert thin.log_likelihood == pytest.approx(dense.log_likelihood, abs=0.5)
        return
    # The same passes in another order of the records; both end within 1e-4 of the maximum.
    assert thin.log_likelihood == pytest.approx(dense.log_likelihood, abs=2e-3)
    assert rj.metrics.total_variation(dense.pmf, thin.pmf) < 1e-3


def test_rank_is_chosen_from_them():
    _, cells = holey(600)
    result = rj.estimate(cells, solver="map", random_state=0)
    assert result.selection is not None
    assert result.pmf.domain == cells.domain


def test_what_a_model_says_of_them():
    records, cells = holey()
    pmf = rj.estimate(records, 2, "map", n_init=1, random_state=0).pmf
    np.testing.assert_allclose(pmf.log_prob(cells), pmf.log_prob(records), rtol=1e-12)
    np.testing.assert_allclose(pmf.classes(cells), pmf.classes(records), rtol=1e-10)
    certain = rj.LowRankPMF([0.5, 0.5], [[[1.0, 1.0], [0.0, 0.0]]], rj.Domain.of({"a": 2}))
    one_never_seen = SparseRecords.of_rows([0, 1], ["a", "a"], [0, 1])
    with pytest.warns(rj.Remark, match="probability zero"):
        shares = certain.classes(one_never_seen)
    np.testing.assert_allclose(shares, 0.5)


def test_some_variables_of_them():
    records, cells = holey()
    for names in (["x4", "x1"], "x3", ["x0", "x5", "x2"]):
        dense, thin = records.project(names), cells.project(names).to_records()
        assert thin.domain == dense.domain
        np.testing.assert_array_equal(thin.codes, dense.codes)
        np.testing.assert_array_equal(cells.marginal(names), records.marginal(names))


def test_an_estimator_takes_them():
    records, cells = holey()
    model = rj.JointPMF(rank=2, solver="map", random_state=0).fit(cells)
    assert model.pmf_.domain == records.domain
    np.testing.assert_array_equal(model.predict(cells), model.predict(records))
    # The same sums in another order of the records.
    assert model.score(cells) == pytest.approx(model.score(records), rel=1e-12)
    assert model.bic(cells) == pytest.approx(model.bic(records), rel=1e-12)
    said = [
        rj.JointPMF(rank=2, solver="admm", order=3, random_state=0).fit(data).result_.stop
        for data in (cells, records)
    ]
    assert said[0] == said[1]
    parts = rj.JointPMF(rank=2, random_state=0)
    for part in cells.chunks(200):
        parts.partial_fit(part)
    assert parts.n_samples_seen_ == (records.codes >= 0).any(axis=1).sum()


def test_a_recommender_takes_them():
    rng = np.random.default_rng(0)
    ratings = sparse.random_array(
        (60, 8), density=0.4, rng=rng, data_sampler=lambda size: rng.integers(1, 6, size=size)
    )
    names = [f"item {n}" for n in range(8)]
    cells = SparseRecords.of(ratings, names=names)
    rows = [
        (int(u), names[i], int(r)) for u, i, r in zip(*ratings.coords, ratings.data, strict=True)
    ]
    thin, plain = (rj.JointRecommender(random_state=0).fit(data) for data in (cells, rows))
    assert thin.items_.tolist() == plain.items_.tolist() == names
    np.testing.assert_array_equal(thin.predict_all(), plain.predict_all())


def test_weights_are_kept():
    records, _ = holey(30)
    weight = np.arange(30.0)
    cells = as_records(SparseRecords.of(records), weights=WeightArguments(weight))
    np.testing.assert_array_equal(cells.to_records().sample_weight, weight)
    assert len(next(cells.chunks(7)).sample_weight) == 7


def test_a_column_without_a_cell_is_left_out_and_said():
    matrix = sparse.csr_array(([1, 2], ([0, 1], [0, 2])), shape=(2, 3))
    with pytest.warns(rj.Remark, match="left out: 'x1'"):
        assert SparseRecords.of(matrix).names == ("x0", "x2")
    kept = SparseRecords.of(matrix, levels={"x1": [1, 2]})
    assert kept.names == ("x0", "x1", "x2")


def twice():
    return sparse.coo_array(([1, 2], ([0, 0], [0, 0])), shape=(1, 1))


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: SparseRecords.of([[1]]), TypeError, "not of list"),
        (lambda: SparseRecords.of(twice()), ValueError, "stored twice"),
        (lambda: SparseRecords.of_rows([0, 0], "aa", [1, 2]), ValueError, "Record 0 has two"),
        (lambda: SparseRecords.of_rows([0], "aa", [1, 2]), ValueError, "have 1, 2 and 2 rows"),
        (lambda: SparseRecords.of_rows([], [], []), ValueError, "No cell is observed"),
        (
            lambda: SparseRecords.of_rows([0], ["a"], [1], kinds={"b": "ordinal"}),
            KeyError,
            "there is no 'b'",
        ),
        (
            lambda: SparseRecords.of_rows([0], ["smok"], [1], domain=rj.Domain.of({"smoke": 2})),
            KeyError,
            "Did you mean 'smoke'",
        ),
        (
            lambda: SparseRecords.of(sparse.csr_array([[1, 2]]), names=["a"]),
            ValueError,
            "2 columns, but there are 1 names",
        ),
        (
            lambda: SparseRecords.of(sparse.csr_array([[1, 2]])).chunks(0).__next__(),
            ValueError,
            "at least one row",
        ),
        (lambda: rj.Records.of(sparse.csr_array([[1, 2]])), TypeError, "SparseRecords.of"),
        (lambda: rj.JointImputer().fit(holey(20)[1]), TypeError, "which to_records"),
        (lambda: rj.JointClassifier().fit(holey(20)[1], [0, 1] * 10), TypeError, "to_records"),
    ],
)
def test_what_is_refused(make, error, words):
    with pytest.raises(error, match=words):
        make()
