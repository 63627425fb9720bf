"""Credible intervals of answers: those of every draw asked by itself."""

import pickle

import numpy as np
import pytest

import rejoint as rj


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
    assert (answer.interval.level, answer.interval.draws) == (0.9, 40)
    plain = answer.to_json()["interval"]
    assert plain["low"] == pytest.approx(answer.interval.low)
    assert "In brackets: 90 % credible interval, of 40 posterior draws." in str(answer)


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
    assert answer.interval.high == pytest.approx(0.3, abs=1e-7)  # draws are in single precision
    assert len(pmf.condition({"a": "x"}).draws) == 2
    alone = rj.LowRankPMF([1.0], [even, even], domain, [never])
    assert alone.ask("P(b = x | a = x)").interval is None


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
    # Conditioned draws are rounded to single precision once more.
    np.testing.assert_allclose(given, fitted.interval("lung", given={"smoke": "yes"}), atol=1e-6)


def test_models_too_large_for_ten_draws_carry_none():
    pmf = rj.LowRankPMF(np.full(300, 1 / 300), [np.full((1_000, 300), 1 / 1_000)])
    assert len(rj.LowRankPMF(pmf.weights, pmf.factors, pmf.domain, [pmf] * 12).draws) == 0


def test_no_more_draws_are_kept_than_files_may_have(monkeypatch, fitted):
    monkeypatch.setattr("rejoint.pmf.draws.MOST_FACTORS", 8 * 15)
    copy = rj.LowRankPMF(fitted.weights, fitted.factors, fitted.domain, list(fitted.draws))
    assert len(copy.draws) == 15


def test_the_mean_of_the_draws(fitted):
    mean = fitted.draws.mean()
    expected = np.mean([draw.marginal(["lung", "dysp"]) for draw in fitted.draws], axis=0)
    # The same sums in another order.
    np.testing.assert_allclose(mean.marginal(["lung", "dysp"]), expected, rtol=1e-12)
    with pytest.raises(ValueError, match="no posterior draws, which only fits by Bayes have"):
        rj.datasets.asia().draws.mean()
