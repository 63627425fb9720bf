"""One answer: a model with a posterior answers by one coherent joint, whoever is asked."""

import pickle

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rejoint as rj
from rejoint.estimation import Bayes

SHORT = Bayes(chains=2, burn_in=5, draws=10, thin=1)
DOMAIN = rj.Domain.of(
    {"a": ["no", "yes"], "b": ["x", "y", "z"], "c": [1, 2, 3], "d": ["u", "v"], "e": ["s", "t"]}
)


def drawn(seed, rank=2, count=8):
    """A model whose representative, mixture and draws all differ."""
    rng = np.random.default_rng(seed)

    def model(rank):
        factors = [rng.dirichlet(np.full(size, 0.7), rank).T for size in DOMAIN.shape]
        return rj.LowRankPMF(rng.dirichlet(np.ones(rank)), factors, DOMAIN)

    own = model(rank)
    draws = [model(rank) for _ in range(count)]
    return rj.LowRankPMF(own.weights, own.factors, DOMAIN, draws, model(3 * rank))


@pytest.fixture(scope="module")
def fitted():
    truth = rj.LowRankPMF([0.4, 0.6], drawn(1).factors, DOMAIN)
    data = rj.datasets.remove_cells(truth.sample(200, random_state=0), 0.2, random_state=0)
    return rj.estimate(data, 2, SHORT, random_state=0)


@st.composite
def evidence(draw, most=3):
    """Levels, lists of levels or likelihoods of some variables."""
    names = draw(st.lists(st.sampled_from(DOMAIN.names), max_size=most, unique=True))
    found = {}
    for name in names:
        levels = DOMAIN[name].levels
        kind = draw(st.sampled_from(["level", "list", "soft"]))
        if kind == "level":
            found[name] = draw(st.sampled_from(levels))
        elif kind == "list":
            chosen = st.lists(st.sampled_from(levels), min_size=1, max_size=2, unique=True)
            found[name] = draw(chosen)
        else:
            found[name] = np.array([draw(st.floats(0.1, 1.0)) for _ in levels])
    return found


def rest(known):
    return [name for name in DOMAIN.names if name not in known]


@given(st.integers(0, 500), evidence())
def test_conditioning_is_giving(seed, known):
    p = drawn(seed)
    if not known:
        return
    q, names = p.condition(known), rest(known)[:2]
    np.testing.assert_allclose(q.marginal(names), p.marginal(names, known), atol=1e-12)
    np.testing.assert_allclose(q.interval(names), p.interval(names, known), atol=1e-12)
    assert q.interval(names).effective == pytest.approx(p.interval(names, known).effective)


@given(st.integers(0, 500), evidence(2), evidence(2))
def test_conditioning_twice_is_conditioning_once(seed, first, second):
    p = drawn(seed)
    second = {name: value for name, value in second.items() if name not in first}
    if not first or not second or len(first) + len(second) > 4:
        return
    both, once = p.condition(first).condition(second), p.condition(first | second)
    for name in both.domain.names:
        np.testing.assert_allclose(both.marginal(name), once.marginal(name), atol=1e-12)
        np.testing.assert_allclose(both.interval(name), once.interval(name), atol=1e-9)
    np.testing.assert_allclose(both.draws.weights, once.draws.weights, atol=1e-12)


@given(st.integers(0, 500), evidence(2))
def test_projecting_commutes_with_conditioning(seed, known):
    p, names = drawn(seed), rest(known)[:2]
    if not known:
        return
    one = p.condition(known).project(names)
    other = p.project([*names, *known]).condition(known)
    np.testing.assert_allclose(one.to_dense(), other.to_dense(), atol=1e-12)
    np.testing.assert_allclose(one.interval(names), other.interval(names), atol=1e-12)


@given(st.integers(0, 500), evidence(2))
def test_the_chain_rule_holds(seed, known):
    p = drawn(seed)
    first, second, *_ = rest(known)
    joint = p.marginal([first, second], known)
    for i, level in enumerate(DOMAIN[first].levels):
        own = p.prob({first: level}, known)
        after = p.marginal(second, {**known, first: level}) if own else 0.0
        np.testing.assert_allclose(joint[i], own * after, atol=1e-12)


@given(st.integers(0, 500), evidence(2))
def test_every_question_is_answered_by_the_mixture(seed, known):
    p = drawn(seed)
    q, name = p.mixture, rest(known)[0]
    assert not q.draws
    assert q.mixture is q
    np.testing.assert_array_equal(p.marginal(name, known), q.marginal(name, known))
    assert p.mode(given=known) == q.mode(given=known)
    assert p.prob({name: DOMAIN[name].levels[0]}, known) == q.prob(
        {name: DOMAIN[name].levels[0]}, known
    )
    records = q.sample(5, random_state=seed)
    assert (p.sample(5, random_state=seed).codes == records.codes).all()
    np.testing.assert_array_equal(p.log_prob(records), q.log_prob(records))
    np.testing.assert_array_equal(p.to_dense(), q.to_dense())
    assert rj.metrics.tensor_error(q, p) == 0.0
    assert rj.metrics.kl(q, p) == rj.metrics.total_variation(q, p) == 0.0
    assert p.expect("c") == q.expect("c")
    assert p.reduce(p.mixture.rank).error < 1e-12
    text = f"P({name} | c = 2)" if name != "c" else "P(c | a = yes)"
    np.testing.assert_array_equal(p.ask(text).value, q.ask(text).value)
    np.testing.assert_array_equal(
        np.asarray(p.table(name, backend="pandas")), np.asarray(q.table(name, backend="pandas"))
    )


def test_classes_are_those_of_the_representative_model():
    p = drawn(3)
    own = p.representative
    assert not own.draws
    assert own.mixture is own
    assert own.representative is own
    assert p.rank == own.rank == 2
    records = p.sample(20, random_state=0)
    np.testing.assert_array_equal(p.classes(records), own.classes(records))
    assert rj.metrics.factor_error(own, p) == 0.0
    assert "rank 2" in repr(p)
    assert "answers come from the posterior mean of 6 classes" in repr(p)
    assert "posterior" not in repr(own)


def test_evidence_that_only_the_representative_excludes():
    sure = rj.LowRankPMF([1.0], [[[1.0], [0.0]], [[0.2], [0.8]]])
    unsure = rj.LowRankPMF([1.0], [[[0.9], [0.1]], [[0.3], [0.7]]])
    p = rj.LowRankPMF(sure.weights, sure.factors, sure.domain, [unsure, sure], unsure)
    q = p.condition({"x0": 1})
    np.testing.assert_allclose(q.marginal("x1"), [0.3, 0.7])
    np.testing.assert_allclose(q.representative.marginal("x1"), [0.3, 0.7])
    assert len(q.draws) == 1


@given(st.integers(0, 500), evidence(2))
def test_a_table_by_levels_has_the_answers_of_each_level(seed, known):
    """Bounds too: each level is evidence, by which the draws are weighted."""
    p = drawn(seed)
    known = {name: value for name, value in known.items() if not isinstance(value, np.ndarray)}
    by, name, *_ = rest(known)
    parts = [
        f"{n} in {{{', '.join(map(str, v))}}}" if isinstance(v, list) else f"{n} = {v}"
        for n, v in known.items()
    ]
    table = p.ask(f"P({name} | {', '.join([by, *parts])})")
    for i, level in enumerate(DOMAIN[by].levels):
        if not p.prob({by: level}, known):
            continue
        one = p.ask(f"P({name} | {', '.join([f'{by} = {level}', *parts])})")
        np.testing.assert_allclose(table.value[:, i], one.value, atol=1e-12)
        np.testing.assert_allclose(table.interval.low[:, i], one.interval.low, atol=1e-12)
        np.testing.assert_allclose(table.interval.high[:, i], one.interval.high, atol=1e-12)


@given(st.integers(0, 500), evidence(), st.floats(0.05, 0.95))
def test_answers_lie_between_their_bounds(seed, known, level):
    p = drawn(seed)
    names = rest(known)[:2]
    low, high = p.interval(names, known, level)
    value = p.marginal(names, known)
    assert (low <= value).all()
    assert (value <= high).all()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 500), evidence(2), st.sampled_from(["model.rejoint", "model.json"]))
def test_what_answers_is_saved(tmp_path, seed, known, name):
    p = drawn(seed)
    p.save(tmp_path / name)
    asked = rest(known)[:2]
    for other in (rj.load(tmp_path / name), pickle.loads(pickle.dumps(p))):
        assert other == p
        np.testing.assert_array_equal(other.marginal(asked, known), p.marginal(asked, known))
        np.testing.assert_array_equal(other.interval(asked, known), p.interval(asked, known))


def test_the_posterior_mean_of_a_fit_is_what_answers(fitted):
    assert fitted.posterior is fitted.pmf
    assert fitted.pmf.rank == 2
    assert 2 < fitted.pmf.mixture.rank <= 6
    np.testing.assert_array_equal(fitted.pmf.mixture.marginal("b"), fitted.pmf.ask("P(b)").value)


def test_a_model_without_posterior_answers_as_it_is():
    p = rj.datasets.asia()
    assert p.mixture is p.representative is p
    assert rj.estimate(p.sample(100, random_state=0), 2, "ml", random_state=0).posterior is None
