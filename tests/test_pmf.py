"""LowRankPMF: every question under every kind of evidence, against the dense tensor."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rejoint as rj

ROUNDING = 1e-13  # sums of some hundred products of doubles
NAMES = ("a", "b", "c", "d")
DOMAIN = rj.Domain.of({"a": ["x", "y", "z"], "b": 2, "c": [1.5, 2.5, 4.0], "d": [True, False]})


def random_pmf(seed, rank=4, zeros=0.0, domain=DOMAIN):
    rng = np.random.default_rng(seed)
    factors = []
    for levels in domain.shape:
        factor = rng.dirichlet(np.ones(levels), size=rank).T
        factor[(rng.random(factor.shape) < zeros) & (factor < factor.max(axis=0))] = 0.0
        factors.append(factor / factor.sum(axis=0))
    return rj.LowRankPMF(rng.dirichlet(np.ones(rank)), factors, domain)


# Each kind of evidence with the likelihood that it stands for, written out.
EVIDENCE = {
    "none": ({}, {}),
    "level": ({"a": "y"}, {0: [0, 1, 0]}),
    "list": ({"a": ["x", "z"]}, {0: [1, 0, 1]}),
    "set": ({"c": {1.5, 4.0}}, {2: [1, 0, 1]}),
    "soft": ({"c": np.array([0.1, 0.7, 2.0])}, {2: [0.1, 0.7, 2.0]}),
    "boolean": ({"d": True}, {3: [1, 0]}),
    "mixed": (
        {"a": "x", "b": [0, 1], "c": np.array([1.0, 0.0, 0.5])},
        {0: [1, 0, 0], 1: [1, 1], 2: [1.0, 0.0, 0.5]},
    ),
}


def conditioned(pmf, likelihoods):
    joint = pmf.to_dense()
    for n, values in likelihoods.items():
        joint = joint * np.reshape(values, [-1 if m == n else 1 for m in range(4)])
    return joint / joint.sum()


@pytest.mark.parametrize("kind", EVIDENCE)
@pytest.mark.parametrize("zeros", [0.0, 0.4])
def test_every_question_under_every_kind_of_evidence(kind, zeros):
    pmf = random_pmf(11, zeros=zeros)
    given, likelihoods = EVIDENCE[kind]
    joint = conditioned(pmf, likelihoods)
    for names, axes in ((["a"], (0,)), (["c", "a"], (2, 0)), (["d", "b", "a", "c"], (3, 1, 0, 2))):
        others = tuple(n for n in range(4) if n not in axes)
        expected = joint.sum(axis=others).transpose(np.argsort(np.argsort(axes)))
        np.testing.assert_allclose(pmf.marginal(names, given), expected, atol=ROUNDING)
    event = {"a": ["x", "y"], "c": 2.5}
    assert pmf.prob(event, given) == pytest.approx(joint[:2, :, 1].sum(), abs=ROUNDING)
    values = np.array([1.5, 2.5, 4.0])
    mean = np.einsum("abcd,c->", joint, values)
    assert pmf.expect("c", given) == pytest.approx(mean, abs=1e-12)
    mode = pmf.mode(NAMES, given)
    assert mode.prob == pytest.approx(joint.max(), rel=1e-11)
    n = 100_000
    sample = pmf.sample(n, given, random_state=3)
    counts = sample.marginal(NAMES) * n
    spread = 5 * np.sqrt(n * joint * (1 - joint)) + 1e-6  # five standard errors
    assert (np.abs(counts - n * joint) <= spread).all()
    assert not counts[joint == 0.0].any()


@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.3]))
def test_tables_are_on_the_simplex_and_sum_down_to_each_other(seed, zeros):
    pmf = random_pmf(seed, zeros=zeros)
    three = pmf.marginal(["d", "a", "c"])
    assert three.min() >= 0.0
    assert three.sum() == pytest.approx(1.0, abs=ROUNDING)
    np.testing.assert_allclose(three.sum(axis=0), pmf.marginal(["a", "c"]), atol=ROUNDING)
    np.testing.assert_allclose(three.transpose(1, 2, 0), pmf.marginal(["a", "c", "d"]), atol=1e-15)


@given(st.integers(0, 10**6))
def test_the_chain_rule(seed):
    pmf = random_pmf(seed)
    for a in ("x", "z"):
        joint = pmf.prob({"a": a, "c": 2.5}, given={"d": True})
        steps = pmf.prob({"a": a}, given={"c": 2.5, "d": True}) * pmf.prob(
            {"c": 2.5}, given={"d": True}
        )
        assert joint == pytest.approx(steps, rel=1e-12)


@given(st.integers(0, 10**6), st.permutations(range(4)))
def test_the_order_of_the_classes_changes_nothing(seed, order):
    pmf = random_pmf(seed)
    other = rj.LowRankPMF(pmf.weights[order], [a[:, order] for a in pmf.factors], DOMAIN)
    assert pmf == other
    assert hash(pmf) == hash(other)
    np.testing.assert_allclose(pmf.to_dense(), other.to_dense(), atol=1e-15)


def test_five_thousand_given_variables():
    shape = rj.Domain.of_shape([3] * 5000)
    pmf = random_pmf(0, rank=3, domain=shape)
    truth = 2
    rng = np.random.default_rng(0)
    draws = [int(rng.choice(3, p=a[:, truth])) for a in pmf.factors]
    evidence = {f"x{n}": draws[n] for n in range(4999)}
    np.testing.assert_allclose(
        pmf.marginal("x4999", given=evidence), pmf.factors[4999][:, truth], atol=1e-12
    )
    assert pmf.log_prob(np.array([draws]))[0] < -4000.0
    assert pmf.expect("x4999", given=evidence) > 0.0
    assert len(pmf.sample(10, given=evidence, random_state=0)) == 10
    assert pmf.mode("x4999", given=evidence).exact


def test_asia_gives_the_textbook_posteriors():
    # Sums of products of the published tables, worked out by hand.
    asia = rj.datasets.asia()
    dense = rj.LowRankPMF.from_dense(asia.to_dense(), asia.domain)
    for p in (asia, dense):
        assert p.prob({"lung": "yes"}) == pytest.approx(0.055, abs=1e-12)
        assert p.prob({"tub": "yes"}) == pytest.approx(0.0104, abs=1e-12)
        assert p.prob({"either": "yes"}) == pytest.approx(0.064828, abs=1e-9)
        assert p.prob({"xray": "yes"}) == pytest.approx(0.11029004, abs=1e-9)
        assert p.prob({"dysp": "yes"}) == pytest.approx(0.4359706, abs=1e-6)
        assert p.prob({"lung": "yes"}, given={"xray": "yes"}) == pytest.approx(0.48871, abs=1e-5)
    assert dense.rank <= 2**7


def test_records_with_holes_in_any_form():
    pmf = random_pmf(5)
    rows = [{"a": "x", "c": 2.5}, {"a": None, "b": 1, "c": 4.0, "d": False}, {}]
    expected = [pmf.prob({"a": "x", "c": 2.5}), pmf.prob({"b": 1, "c": 4.0, "d": False}), 1.0]
    np.testing.assert_allclose(np.exp(pmf.log_prob(rows)), expected, rtol=1e-12)
    records = rj.Records.of(rows, domain=DOMAIN)
    np.testing.assert_array_equal(pmf.log_prob(rows), pmf.log_prob(records))
    np.testing.assert_allclose(pmf.classes(rows)[2], pmf.weights, atol=1e-15)
    terms = pmf.weights * pmf.factors[0][0] * pmf.factors[2][1]
    np.testing.assert_allclose(pmf.classes(rows)[0], terms / terms.sum(), rtol=1e-12)


def test_impossible_records_have_log_prob_minus_infinity_and_a_remark():
    factor = [[1.0, 0.0], [0.0, 1.0]]
    pmf = rj.LowRankPMF([0.5, 0.5], [factor, factor])
    assert pmf.log_prob(np.array([[0, 1]]))[0] == -np.inf
    with pytest.warns(rj.Remark, match=r"1 of 2 records have probability zero .*first: row 1"):
        posterior = pmf.classes(np.array([[0, 0], [0, 1]]))
    np.testing.assert_allclose(posterior, [[1.0, 0.0], [0.5, 0.5]])


def test_expectations():
    pmf = random_pmf(1)
    assert pmf.expect(["c", "d"]).keys() == {"c", "d"}
    share = pmf.expect("a", function=lambda level: level == "x")
    assert share == pytest.approx(pmf.prob({"a": "x"}))
    with pytest.raises(ValueError, match="'a' has levels that are not numbers"):
        pmf.expect("a")


def test_sampling_is_reproducible_and_takes_generators():
    pmf = random_pmf(1)
    one, two = pmf.sample(50, random_state=1), pmf.sample(50, random_state=np.random.default_rng(1))
    np.testing.assert_array_equal(one.codes, two.codes)
    assert len(pmf.sample(0)) == 0
    with pytest.raises(ValueError, match="must not be negative; got -1"):
        pmf.sample(-1)


def test_zero_evidence_names_the_variable_and_level():
    pmf = rj.LowRankPMF([1.0], [[[1.0], [0.0]], [[0.5], [0.5]]])
    for ask in (
        lambda: pmf.marginal("x1", given={"x1": 0, "x0": 1}),
        lambda: pmf.prob({"x1": 0}, given={"x0": 1}),
        lambda: pmf.expect("x1", given={"x0": 1}),
        lambda: pmf.sample(3, given={"x0": 1}),
        lambda: pmf.mode("x1", given={"x0": 1}),
        lambda: pmf.condition({"x0": 1}),
    ):
        with pytest.raises(rj.ZeroEvidenceError, match=r"^x0 = 1 has probability zero under"):
            ask()


def test_zero_evidence_that_is_only_jointly_impossible_says_so():
    same = [[1.0, 0.0], [0.0, 1.0]]
    domain = rj.Domain.of({"p": ["u", "v"], "q": ["u", "v"], "r": ["u", "v"]})
    pmf = rj.LowRankPMF([0.5, 0.5], [same, same, [[0.5, 0.5]] * 2], domain)
    with pytest.raises(
        rj.ZeroEvidenceError,
        match="p = 'u' and q = 'v' are possible by themselves but not together",
    ):
        pmf.marginal("r", given={"p": "u", "r": "v", "q": "v"})


def test_unknown_names_and_levels_get_suggestions():
    pmf = random_pmf(0)
    with pytest.raises(KeyError, match="No variable 'aa' among"):
        pmf.marginal("aa")
    with pytest.raises(ValueError, match="level 'w' is not among 'x', 'y', 'z'"):
        pmf.prob({"b": 1}, given={"a": "w"})
    with pytest.raises(ValueError, match="Variable 'a' is requested twice"):
        pmf.marginal(["a", "b", "a"])
    with pytest.raises(TypeError, match=r"Evidence must be a dict such as \{'a': 'x'\}; got list"):
        pmf.marginal("a", given=["b"])
    with pytest.raises(ValueError, match="event on 'a' is an array of likelihoods"):
        pmf.prob({"a": np.array([0.5, 0.2, 0.3])})


def test_tables_that_are_too_large_are_refused():
    pmf = rj.LowRankPMF([1.0], [[[0.1]] * 10] * 12)
    with pytest.raises(ValueError, match=r"12 variables would have 10\^12 cells"):
        pmf.to_dense()
    with pytest.raises(ValueError, match=r"10 variables would have 10,000,000,000 cells"):
        pmf.marginal([f"x{n}" for n in range(10)])


@pytest.mark.parametrize(
    ("weights", "factors", "words"),
    [
        ([0.5, 0.6], [[[1, 1]]], "the weights sum to 1.1, not to 1"),
        ([0.5, 0.5], [[[0.5, 0.5], [0.5, 0.6]]], "column 1 of the factor of 'x0' sums to 1.1"),
        (
            [1.5, -0.5],
            [[[1, 1]]],
            r"weights holds -0.5 at \(1,\): probabilities are finite",
        ),
        ([1.0], [[[np.nan]]], r"factors\[0\] holds nan at \(0, 0\): probabilities are finite"),
        ([1.0], [], "factors is empty"),
        ([], [[[]]], "weights must have shape"),
        ([[1.0]], [[[1.0]]], r"weights must have shape \(rank,\), .*; got \(1, 1\)"),
        ([1.0], [[1.0]], r"factors\[0\] must have shape \(levels, rank\), .*; got \(1,\)"),
        ([0.5, 0.5], [[[1.0]]], r"Factor of 'x0' has shape \(1, 1\).* ask for \(1, 2\)"),
    ],
)
def test_what_is_no_model_is_refused(weights, factors, words):
    with pytest.raises(ValueError, match=words):
        rj.LowRankPMF(weights, factors)


def test_rounding_errors_are_normalised_away_and_the_rest_keeps_its_bits():
    pmf = rj.LowRankPMF([0.3, 0.7 + 1e-8], [np.array([[0.2, 0.5], [0.8, 0.5]]) * (1 - 1e-7)])
    assert pmf.weights.sum() == pytest.approx(1.0, abs=1e-15)
    assert abs(pmf.factors[0].sum(axis=0) - 1.0).max() < 1e-15
    again = rj.LowRankPMF(pmf.weights, pmf.factors)
    assert again.weights.tobytes() == pmf.weights.tobytes()
    assert again.factors[0].tobytes() == pmf.factors[0].tobytes()


def test_models_are_immutable_copies():
    weights, factor = np.array([1.0]), np.array([[0.25], [0.75]])
    pmf = rj.LowRankPMF(weights, [factor])
    factor[0] = 9.0
    assert pmf.factors[0][0, 0] == 0.25
    with pytest.raises(ValueError, match="read-only"):
        pmf.weights[0] = 2.0
    with pytest.raises(AttributeError, match="LowRankPMF is immutable"):
        pmf.weights = weights
    with pytest.raises(AttributeError, match="immutable"):
        del pmf.domain


def test_copies_and_pickles_are_equal_and_read_only():
    pmf = random_pmf(2)
    for other in (copy.copy(pmf), copy.deepcopy(pmf), pickle.loads(pickle.dumps(pmf))):
        assert other == pmf
        assert other.factors[1].tobytes() == pmf.factors[1].tobytes()
        assert not other.weights.flags.writeable


def test_equality_up_to_a_tolerance_and_a_permutation():
    pmf = random_pmf(2)
    order = [2, 0, 3, 1]
    noise = 1e-10 * np.random.default_rng(0).random((4, 4))
    near = rj.LowRankPMF(
        pmf.weights[order], [a[:, order] + noise[: len(a)] for a in pmf.factors], DOMAIN
    )
    assert pmf.equals(near)
    assert pmf != near
    assert not pmf.equals(near, tol=1e-12)
    assert not pmf.equals(random_pmf(3))
    assert not pmf.equals(random_pmf(2, rank=3))
    assert not pmf.equals(rj.LowRankPMF(pmf.weights, pmf.factors))
    assert pmf != "something else"
    assert len({pmf, pmf.sorted(), near}) == 2


def test_the_text_of_a_model():
    assert repr(random_pmf(0)).startswith("LowRankPMF(rank 4, 4 variables: a (3), b (2), c (3)")
    wide = rj.LowRankPMF(np.full(8, 1 / 8), [np.full((2, 8), 0.5)] * 9)
    assert ", x5 (2), ...; weights 0.125, 0.125, 0.125, 0.125, 0.125, ...)" in repr(wide)


def test_from_dense_takes_counts_and_zeros_and_any_shape():
    counts = np.random.default_rng(0).poisson(0.7, size=(3, 4, 2, 3))
    pmf = rj.LowRankPMF.from_dense(counts)
    np.testing.assert_allclose(pmf.to_dense(), counts / counts.sum(), atol=1e-15)
    assert pmf.rank <= 18
    assert rj.LowRankPMF.from_dense([0.2, 0.8]).rank == 1
    huge = rj.LowRankPMF.from_dense([[1e308, 1e308], [1e308, 1e308]])
    np.testing.assert_allclose(huge.to_dense(), 0.25)
    one = np.zeros((3, 3, 3))
    one[1, 2, 0] = 5.0
    assert rj.LowRankPMF.from_dense(one).rank == 1


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ([[0.5, -0.1]], r"Cell \(0, 1\) of the joint is -0.1: cells must be finite and >= 0"),
        ([0.5, np.nan], r"Cell \(1,\) of the joint is nan"),
        ([0.0, 0.0], "All cells of the joint are zero"),
        (3.0, r"an axis per variable and a cell at least; got \(\)"),
    ],
)
def test_what_is_no_joint_is_refused(table, words):
    with pytest.raises(ValueError, match=words):
        rj.LowRankPMF.from_dense(table)


def test_an_exact_model_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr("rejoint.pmf.from_dense._MAX_NUMBERS", 10)
    with pytest.raises(ValueError, match=r"has 4 classes.*too large"):
        rj.LowRankPMF.from_dense(np.arange(1.0, 17.0).reshape(4, 4))


def test_average_mixes_and_aligns():
    a, b = random_pmf(0), random_pmf(1)
    mean = rj.LowRankPMF.average([a, b], weights=[1, 3])
    np.testing.assert_allclose(
        mean.to_dense(), (a.to_dense() + 3 * b.to_dense()) / 4, atol=ROUNDING
    )
    turned = b.align(rj.Domain.of({n: DOMAIN[n].levels[::-1] for n in reversed(NAMES)}))
    np.testing.assert_allclose(
        rj.LowRankPMF.average([a, turned]).to_dense(),
        rj.LowRankPMF.average([a, b]).to_dense(),
        atol=ROUNDING,
    )


def test_average_refuses_what_it_cannot_mix():
    a = random_pmf(0)
    with pytest.raises(ValueError, match="no models were given"):
        rj.LowRankPMF.average([])
    with pytest.raises(ValueError, match="2 models need as many weights"):
        rj.LowRankPMF.average([a, a], weights=[1, 2, 3])
    with pytest.raises(ValueError, match="finite, >= 0 and not all zero"):
        rj.LowRankPMF.average([a, a], weights=[1, -1])
    with pytest.raises(ValueError, match="different variables: 'a' is in one only"):
        rj.LowRankPMF.average([a, a.project(["b", "c", "d"])])
    other = rj.LowRankPMF([1.0], [[[0.5], [0.5]]], rj.Domain.of({"b": [0, 7]}))
    with pytest.raises(ValueError, match="'b' has different levels in the two: 7 is in one only"):
        rj.LowRankPMF.average([a.project("b"), other])


def test_project_and_condition():
    pmf = random_pmf(4)
    small = pmf.project(["c", "a"])
    np.testing.assert_allclose(small.to_dense(), pmf.marginal(["c", "a"]), atol=1e-15)
    given = {"b": 1, "d": np.array([0.3, 0.9])}
    np.testing.assert_allclose(
        pmf.condition(given).to_dense(), pmf.marginal(["a", "c"], given), atol=1e-15
    )
    with pytest.raises(ValueError, match="every variable is given"):
        small.condition({"a": "x", "c": 1.5})


def test_labelled_tables():
    pd = pytest.importorskip("pandas")
    pmf = random_pmf(4)
    one = pmf.table("a")
    assert isinstance(one, pd.Series)
    assert one["y"] == pmf.prob({"a": "y"})
    two = pmf.table(["a", "b"], given={"d": True})
    assert two.loc["y", 1] == pytest.approx(pmf.prob({"a": "y", "b": 1}, given={"d": True}))
    three = pmf.table(["a", "b", "c"])
    assert three.loc[("y", 1), 2.5] == pytest.approx(pmf.prob({"a": "y", "b": 1, "c": 2.5}))
    assert three.index.names == ["a", "b"]
    with pytest.raises(ValueError, match="backend must be 'pandas', 'polars' or 'pyarrow'"):
        pmf.table("a", backend="excel")
    with pytest.raises(ValueError, match="no variable is named"):
        pmf.table([])


@pytest.mark.parametrize("backend", ["polars", "pyarrow"])
def test_long_tables(backend):
    pytest.importorskip(backend)
    domain = rj.Domain.of({"prob": ["x", 2], "b": [1, 2]})
    pmf = random_pmf(0, domain=domain)
    table = pmf.table(["b", "prob"], backend=backend)
    columns = table.to_dict(as_series=False) if backend == "polars" else table.to_pydict()
    assert columns["b"] == [1, 1, 2, 2]
    assert columns["prob"] == ["x", "2", "x", "2"]
    np.testing.assert_allclose(columns["prob_"], pmf.marginal(["b", "prob"]).ravel())


def test_bins_are_labels_like_any_other():
    pytest.importorskip("pandas")
    age = rj.Variable("age", (rj.Bin(0, 18), rj.Bin(18, 65, True)), "binned")
    pmf = rj.LowRankPMF([1.0], [[[0.25], [0.75]]], rj.Domain((age,)))
    assert pmf.prob({"age": 30}) == 0.75
    assert pmf.expect("age") == pytest.approx(0.25 * 9 + 0.75 * 41.5)
    assert list(pmf.table("age").index) == ["[0, 18)", "[18, 65]"]
    assert repr(pmf.mode("age")) == "Mode(age=[18, 65]; probability 0.75)"
    rigid = rj.LowRankPMF([1.0], [[[1.0], [0.0]]], rj.Domain((age,)))
    with pytest.raises(rj.ZeroEvidenceError, match=r"age = \[18, 65\] has probability zero"):
        rigid.marginal("age", given={"age": age.levels[1]})
