"""Credible intervals of answers: those of every draw asked by itself."""

import pickle

import numpy as np
import pytest

import rejoint as rj
from rejoint.pmf.draws import Posterior, predictive


@pytest.fixture(scope="module")
def fitted():
    data = rj.datasets.asia().sample(300, random_state=0)
    return rj.estimate(data, rank=2, solver="bayes", random_state=0).pmf


def asked(pmf, text):
    """Values of every draw, and their quantiles at k / (n + 1)."""
    values = np.array([draw.ask(text).value for draw in pmf.draws])
    return np.quantile(values, [0.05, 0.95], axis=0, method="weibull")


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
    low, high = asked(fitted, text)
    # The same sums, of fewer variables and so in another order.
    np.testing.assert_allclose(answer.interval.low, low, atol=1e-12)
    np.testing.assert_allclose(answer.interval.high, high, atol=1e-12)
    assert answer.interval.low.shape == np.shape(answer.value)
    assert (answer.interval.level, answer.interval.draws) == (0.9, 120)
    plain = answer.to_json()["interval"]
    assert plain["low"] == pytest.approx(answer.interval.low)
    assert "In brackets: 90 % credible interval, of 120 posterior draws." in str(answer)


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
    low, high = np.quantile(means, [0.25, 0.75], method="weibull")
    np.testing.assert_allclose(answer.interval.low, [low, low], rtol=1e-12)
    np.testing.assert_allclose(answer.interval.high, [high, high], rtol=1e-12)


def test_without_draws_or_a_level_there_is_none(fitted):
    assert fitted.ask("P(lung)", level=None).interval is None
    assert fitted.ask("argmax lung").interval is None
    assert rj.datasets.asia().ask("P(lung)").interval is None
    with pytest.raises(ValueError, match=r"carries no posterior draws.*solver=.bayes"):
        rj.datasets.asia().interval("lung")
    with pytest.raises(ValueError, match=r"level must lie between 0 and 1, got 1\.5"):
        fitted.ask("P(lung)", level=1.5)


def test_large_tables_go_without_and_say_so():
    pmf = rj.LowRankPMF([1.0], [np.full((400, 1), 1 / 400)] * 2)
    drawn = rj.LowRankPMF(pmf.weights, pmf.factors, pmf.domain, [pmf] * 40)
    answer = drawn.ask("P(x0, x1)")
    assert answer.interval is None
    assert "Without credible intervals, as the table is large" in answer.notes[0]
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
    for interval in (pmf.interval, Posterior([*some, never]).interval):
        found = interval("b", given={"a": "x"})
        assert found.draws == 2
        np.testing.assert_array_equal(found, [[0.2, 0.7], [0.3, 0.8]])
    alone = rj.LowRankPMF([1.0], [even, even], domain, [never])
    assert alone.ask("P(b = x | a = x)").interval is None
    assert not alone.condition({"a": "x"}).draws
    for interval in (alone.interval, Posterior([never]).interval):
        with pytest.raises(
            rj.ZeroEvidenceError,
            match=r"^a = 'x' has probability zero under all 1 posterior draw, so that",
        ):
            interval("b", given={"a": "x"})


def test_a_fit_and_its_model_have_the_same_draws_and_bounds():
    data = rj.datasets.asia().sample(300, random_state=0)
    result = rj.estimate(data, rank=2, solver="bayes", random_state=0)
    assert result.posterior.draws is result.pmf.draws
    assert len(result.pmf.draws) == 120
    given = {"smoke": "yes"}
    mine, theirs = (x.interval("lung", given, 0.8) for x in (result.posterior, result.pmf))
    np.testing.assert_array_equal(mine, theirs)
    assert (mine.level, mine.draws) == (theirs.level, theirs.draws) == (0.8, 120)
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


def test_files_have_forty_draws_spread_over_all(fitted, tmp_path):
    places = np.linspace(0, 119, 40).round().astype(int)
    kept = saved(fitted, tmp_path).draws
    assert kept.block.tobytes() == fitted.draws.block[places].astype(np.float32).tobytes()


def test_files_of_models_too_large_for_ten_draws_have_none(tmp_path):
    pmf = rj.LowRankPMF(np.full(300, 1 / 300), [np.full((1_000, 300), 1 / 1_000)])
    drawn = rj.LowRankPMF(pmf.weights, pmf.factors, pmf.domain, [pmf] * 12)
    assert (len(drawn.draws), len(saved(drawn, tmp_path).draws)) == (12, 0)


def test_files_have_no_more_draws_than_may_be_read(monkeypatch, fitted, tmp_path):
    monkeypatch.setattr("rejoint.pmf.draws.MOST_FACTORS", 8 * 15)
    assert len(saved(fitted, tmp_path).draws) == 15


def test_predictive_is_the_mean_of_some_draws(fitted):
    places = np.linspace(0, 119, 30).round().astype(int)
    some = rj.LowRankPMF.average([fitted.draws[int(k)] for k in places])
    assert predictive(fitted, draws=30) == some
    assert predictive(fitted) == fitted.draws.mean()
    # A draw of rank 2 has 2 (1 + 16) numbers.
    assert predictive(fitted, numbers=34 * 5).rank == 10
    assert predictive(rj.datasets.asia()) == rj.datasets.asia()


def test_the_mean_of_the_draws(fitted):
    mean = fitted.draws.mean()
    expected = np.mean([draw.marginal(["lung", "dysp"]) for draw in fitted.draws], axis=0)
    # The same sums in another order.
    np.testing.assert_allclose(mean.marginal(["lung", "dysp"]), expected, rtol=1e-12)
    with pytest.raises(ValueError, match="no posterior draws, which only fits by Bayes have"):
        rj.datasets.asia().draws.mean()
