"""Credible intervals of answers: those of every draw asked by itself."""

import pickle

import numpy as np
import pytest

import rejoint as rj
from rejoint.pmf.draws import Draws, credible_interval


@pytest.fixture(scope="module")
def fitted():
    data = rj.datasets.asia().sample(300, random_state=0)
    return rj.estimate(data, rank=2, solver="bayes", random_state=0).pmf


def asked(pmf, text, by=None):
    """Bounds of the values of every draw, weighted by how probable it makes the evidence."""
    answers = [draw.ask(text) for draw in pmf.draws]
    values = np.array([answer.value for answer in answers])
    weights = np.array([answer.evidence for answer in answers])
    if by:
        shares = np.array([draw.marginal(by) for draw in pmf.draws])
        weights = np.broadcast_to((weights[:, None] * shares)[:, None], values.shape)
    return credible_interval(values, 0.9, weights, pmf.ask(text, level=None).value)


@pytest.mark.parametrize(
    "text",
    [
        "P(lung = yes | smoke = yes)",
        "P(lung, dysp | smoke = yes, not asia = yes)",
        "P(bronc | smoke)",
        "P(bronc = yes, smoke | dysp = yes)",
        "H(bronc | smoke)",
        "MI(smoke; bronc | dysp = yes)",
    ],
)
def test_answers_have_the_interval_of_the_draws(fitted, text):
    answer = fitted.ask(text)
    low, high = asked(fitted, text, "smoke" if text == "P(bronc | smoke)" else None)
    # The same sums, of fewer variables and so in another order.
    np.testing.assert_allclose(answer.interval.low, low, atol=1e-12)
    np.testing.assert_allclose(answer.interval.high, high, atol=1e-12)
    assert answer.interval.low.shape == np.shape(answer.value)
    assert (answer.interval.level, answer.interval.draws) == (0.9, 40)
    plain = answer.to_json()["interval"]
    assert plain["low"] == pytest.approx(answer.interval.low)
    assert "In parentheses: 90 % credible interval from 40 posterior draws" in str(answer)


def test_expectations_have_one():
    domain = rj.Domain.of({"stars": [1, 2, 3], "seen": ["yes", "no"]})
    rng = np.random.default_rng(0)
    draws = [
        rj.LowRankPMF([1.0], [rng.dirichlet(np.ones(3))[:, None], [[0.5], [0.5]]], domain)
        for _ in range(20)
    ]
    pmf = rj.LowRankPMF([1.0], [[[0.2], [0.3], [0.5]], [[0.5], [0.5]]], domain, draws)
    answer = pmf.ask("E(stars | seen)", level=0.5)
    means = [draw.expect("stars") for draw in pmf.draws]
    low, high = np.quantile(means, [0.25, 0.75], method="weibull")  # P(seen) is even under all
    np.testing.assert_allclose(answer.interval.low, [low, low], rtol=1e-12)
    np.testing.assert_allclose(answer.interval.high, [high, high], rtol=1e-12)


def test_without_draws_or_a_level_there_is_none(fitted):
    assert fitted.ask("P(lung)", level=None).interval is None
    assert fitted.ask("argmax lung").interval is None
    assert rj.datasets.asia().ask("P(lung)").interval is None
    with pytest.raises(ValueError, match=r"has no posterior draws.*solver=.bayes"):
        rj.datasets.asia().interval("lung")


@pytest.mark.parametrize("level", [1.5, float("nan")])
def test_a_level_is_checked_with_draws_and_without(fitted, level):
    for model in (fitted, rj.datasets.asia()):
        with pytest.raises(ValueError, match=rf"level must lie between 0 and 1, got {level}"):
            model.ask("P(lung)", level=level)


def test_large_tables_go_without_and_say_so():
    pmf = rj.LowRankPMF([1.0], [np.full((400, 1), 1 / 400)] * 2)
    drawn = rj.LowRankPMF(pmf.weights, pmf.factors, pmf.domain, [pmf] * 40)
    answer = drawn.ask("P(x0, x1)")
    assert answer.interval is None
    assert "No credible intervals, because the table is large" in answer.notes[0]
    assert drawn.ask("P(x0)").interval is not None


def test_draws_that_hold_the_evidence_impossible_are_left_out():
    domain = rj.Domain.of({"a": ["x", "y"], "b": ["x", "y"]})
    even = [[0.5], [0.5]]
    some = [rj.LowRankPMF([1.0], [even, [[share], [1 - share]]], domain) for share in (0.2, 0.3)]
    never = rj.LowRankPMF([1.0], [[[0.0], [1.0]], [[0.9], [0.1]]], domain)
    pmf = rj.LowRankPMF([1.0], [even, even], domain, [*some, never])
    answer = pmf.ask("P(b = x | a = x)")
    assert answer.interval.draws == 2
    assert answer.interval.high == pytest.approx(0.3, abs=1e-15)
    assert len(pmf.condition({"a": "x"}).draws) == 2
    bounds = pmf.interval("b", given={"a": "x"})
    assert bounds.draws == 2
    np.testing.assert_allclose(bounds, [[0.2, 0.7], [0.3, 0.8]], atol=1e-15)
    fair = rj.LowRankPMF([1.0], [even, even], domain)
    alone = rj.LowRankPMF([1.0], [even, even], domain, [never], fair)
    answer = alone.ask("P(b = x | a = x)")
    assert answer.interval is None
    assert "every posterior draw excludes the evidence" in answer.notes[0]
    assert not alone.condition({"a": "x"}).draws
    with pytest.raises(
        rj.ZeroEvidenceError,
        match=r"^a = 'x' has probability zero under all 1 posterior draw, so there",
    ):
        alone.interval("b", given={"a": "x"})


def test_a_fit_and_its_model_have_the_same_draws_and_bounds():
    data = rj.datasets.asia().sample(300, random_state=0)
    result = rj.estimate(data, rank=2, solver="bayes", random_state=0)
    assert result.posterior.draws is result.pmf.draws
    assert len(result.pmf.draws) == 40
    given = {"smoke": "yes"}
    mine, theirs = (x.interval("lung", given, 0.8) for x in (result.posterior, result.pmf))
    np.testing.assert_array_equal(mine, theirs)
    assert (mine.level, mine.draws) == (theirs.level, theirs.draws) == (0.8, 40)
    copy = pickle.loads(pickle.dumps(result))
    assert copy.posterior.draws.block is copy.pmf.draws.block  # once in the file
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(mine)), mine)


def test_draws_follow_the_model(fitted):
    for other in (fitted.sorted(), pickle.loads(pickle.dumps(fitted))):
        assert other.draws.block.tobytes() == fitted.draws.block.tobytes()
    part = fitted.project(["xray", "smoke"])
    np.testing.assert_allclose(
        part.interval(["smoke", "xray"]), fitted.interval(["smoke", "xray"]), atol=1e-12
    )
    turned = rj.Domain(
        tuple(rj.Variable(v.name, v.levels[::-1], v.kind) for v in list(fitted.domain)[::-1])
    )
    low, _ = fitted.align(turned).interval("smoke")
    np.testing.assert_allclose(low[::-1], fitted.interval("smoke")[0], atol=1e-12)
    given = fitted.condition({"smoke": "yes"}).interval("lung")
    np.testing.assert_allclose(given, fitted.interval("lung", given={"smoke": "yes"}), atol=1e-12)


def saved(pmf, folder):
    pmf.save(folder / "model.rejoint")
    return rj.load(folder / "model.rejoint")


@pytest.mark.parametrize("name", ["model.rejoint", "model.json"])
def test_memory_and_files_have_the_same_forty_draws(fitted, tmp_path, name):
    assert len(fitted.draws) == 40
    fitted.save(tmp_path / name)
    kept = rj.load(tmp_path / name).draws
    assert kept.block.tobytes() == fitted.draws.block.tobytes()


def test_draws_are_spread_over_all_of_a_fit(fitted):
    every = Draws.of([fitted.draws[k % 40] for k in range(120)], fitted.domain, rj.LowRankPMF)
    places = np.linspace(0, 119, 40).round().astype(int)
    assert every.to_carry().block.tobytes() == every.block[places].astype(np.float32).tobytes()


def large(size):
    """Draws of a model with as many numbers."""
    block = np.full((12, 1 + size // 100, 100), 0.5)
    return Draws(rj.Domain.of_shape([size // 100]), block, rj.LowRankPMF)


def test_models_carry_fewer_draws_the_larger_they_are():
    assert len(large(20_000).to_carry()) == 12
    assert len(large(300_000).to_carry()) == 10
    assert len(large(3_000_000).to_carry()) == 0


def test_files_have_no_more_draws_than_may_be_read(monkeypatch, fitted, tmp_path):
    monkeypatch.setattr("rejoint.pmf.pmf.MOST_FACTORS", 8 * 15)
    assert len(saved(fitted, tmp_path).draws) == 15


def test_draws_without_a_mixture_answer_by_their_mean():
    """Up to three times the rank the mean is exact."""
    rng = np.random.default_rng(0)
    parts = rng.dirichlet(np.ones(3), 5)
    draws = [rj.LowRankPMF([1.0], [part[:, None], part[:, None]]) for part in parts[:3]]
    pmf = rj.LowRankPMF([1.0], [np.full((3, 1), 1 / 3)] * 2, draws=draws)
    expected = np.mean([draw.to_dense() for draw in draws], axis=0)
    np.testing.assert_allclose(pmf.to_dense(), expected, atol=1e-15)
    assert pmf.rank == 1
    assert pmf.mixture.rank == 3
