"""Classes of the model that answers: limited where that is asked for, and in pages."""

import numpy as np
import pytest
from click.testing import CliRunner

import rejoint as rj
from rejoint.cli import main
from rejoint.explorer.document import PAGE_CLASSES, compact_answer, describe_limit, document


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(0)
    truth = rj.LowRankPMF(
        rng.dirichlet(np.full(6, 5.0)), [rng.dirichlet(np.ones(3), 6).T for _ in range(8)]
    )
    return truth.sample(600, random_state=0)


def wide_model(classes):
    rng = np.random.default_rng(1)
    factors = [rng.dirichlet(np.ones(3), classes).T for _ in range(5)]
    return rj.LowRankPMF(rng.dirichlet(np.ones(classes)), factors)


def test_the_answer_has_at_most_as_many_classes_as_asked(records):
    free = rj.estimate(records, rank=3, random_state=0).pmf
    assert free.mixture.rank == 6
    for most in (3, 4):
        pmf = rj.estimate(records, rank=3, max_classes=most, random_state=0).pmf
        assert pmf.mixture.rank <= most
        np.testing.assert_allclose(pmf.weights, free.weights, rtol=1e-9)
        assert rj.metrics.total_variation(free, pmf) < 0.1
        assert len(pmf.draws) == 40


@pytest.mark.parametrize("solver", ["auto", "map"])
def test_the_search_tries_no_more(records, solver):
    result = rj.estimate(records, solver=solver, max_classes=2, random_state=0)
    assert max(result.selection.ranks) <= 2
    assert result.pmf.rank <= 2
    assert result.pmf.mixture.rank <= 2


@pytest.mark.parametrize("most", [2, 0, 1.5])
def test_fewer_than_the_rank_are_refused(records, most):
    words = "max_classes=2 is below rank=3"
    with pytest.raises(ValueError, match=words if most == 2 else "max_classes"):
        rj.estimate(records, rank=3, max_classes=most)


def test_the_command_line_has_it(records, tmp_path):
    data, model = tmp_path / "data.csv", tmp_path / "model.rejoint"
    records.to_frame("pandas").to_csv(data, index=False)
    asked = ["fit", str(data), "-o", str(model), "--rank", "3"]
    done = CliRunner().invoke(main, [*asked, "--max-classes", "4"])
    assert done.exit_code == 0, done.output
    assert rj.load(model).mixture.rank <= 4
    refused = CliRunner().invoke(main, [*asked, "--max-classes", "2"])
    assert "--max-classes 2 is below --rank 3" in refused.output


def test_a_page_answers_by_a_limited_number_of_classes():
    pmf = wide_model(3 * PAGE_CLASSES)
    few = compact_answer(pmf)
    assert few.rank == PAGE_CLASSES
    assert rj.metrics.total_variation(pmf, few) < 0.02
    for name in pmf.domain.names:
        np.testing.assert_allclose(few.marginal([name]), pmf.marginal([name]), atol=1e-12)
    plain = document(pmf, note="By hand.", class_names=["a"] * pmf.rank)
    assert plain["note"].startswith("By hand. The page answers with 500 classes")
    assert "1,500 of the model" in plain["note"]
    assert "class_names" not in plain
    assert len(plain["weights"]["f8"]) < 500 * 8 * 1.4


def test_the_classes_that_a_page_shows_stay():
    own = wide_model(4)
    mixture = wide_model(PAGE_CLASSES + 100)
    pmf = rj.LowRankPMF(own.weights, own.factors, own.domain, mixture=mixture)
    few = compact_answer(pmf)
    assert few.mixture.rank == PAGE_CLASSES
    np.testing.assert_array_equal(few.weights, own.weights)
    plain = document(pmf, class_names=list("abcd"))
    assert plain["class_names"] == list("abcd")
    assert len(plain["mixture"]["weights"]["f8"]) < 500 * 8 * 1.4
    assert describe_limit(own) == ""
    assert compact_answer(own) is own


def test_files_keep_all(tmp_path):
    pmf = wide_model(PAGE_CLASSES + 100)
    pmf.save(tmp_path / "wide.rejoint")
    assert rj.load(tmp_path / "wide.rejoint").rank == PAGE_CLASSES + 100
