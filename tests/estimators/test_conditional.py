"""The conditional likelihood: its value, its slope, and that it rises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rejoint as rj
from rejoint.estimation.data import InMemory
from rejoint.estimators.classifier.conditional import (
    Conditional,
    Labelled,
    as_model,
    label_start,
    objective,
    penalty,
    share_out,
)
from rejoint.estimators.classifier.tune import HeldOutLabels, Setting, search_settings
from rejoint.solver import Stop, run


def labelled_data(records, targets):
    return Labelled.of(InMemory.of(records), targets)


def held_out(records, starts=1):
    data, rng = InMemory.of(records), np.random.default_rng(0)
    return HeldOutLabels(data, 1, Conditional(), rng, starts)


def problem(seed=0, targets=1, rows=40):
    """Few records with holes, in features and labels; one weighs more."""
    rng = np.random.default_rng(seed)
    shape = {"a": 3, "b": 2, "c": 4, "y": 3}
    domain = rj.Domain(
        tuple(
            rj.Variable(name, tuple(range(k)), "ordinal" if name == "c" else "nominal")
            for name, k in shape.items()
        )
    )
    codes = np.stack([rng.integers(-1, k, size=rows) for k in domain.shape], axis=1)
    weight = np.ones(rows)
    weight[0] = 2.5
    return labelled_data(rj.Records(domain, codes, weight), targets)


def told(labelled, model):
    """Conditional log-likelihood of the labels."""
    both = labelled.known.expect(model).log_likelihood
    return both - labelled.blind.expect(model).log_likelihood


def logits_for(labelled, rank, seed=1):
    rows = 1 + labelled.layout.size
    return np.random.default_rng(seed).normal(size=(rows, rank))


@pytest.mark.parametrize("targets", [1, 2])
def test_value_by_brute_force(targets):
    labelled = problem(targets=targets)
    logits = logits_for(labelled, 3)
    model = as_model(labelled, logits)
    table = rj.LowRankPMF(model.weights, model.parts).to_dense()
    expected = 0.0
    for codes, weight in zip(labelled.known.codes, labelled.known.weight, strict=True):
        cells = [slice(None) if code < 0 else code for code in codes]
        blind = [*cells[: 4 - targets], *[slice(None)] * targets]
        both, rest = table[tuple(cells)].sum(), table[tuple(blind)].sum()
        expected -= weight * (1.5 * np.log(both) - np.log(rest))
    value, _ = objective(labelled, logits, 0.5, 0.0)
    price, _ = penalty(labelled, logits, 0.0)  # tiny pulls on weights and labels are always there
    assert value == pytest.approx(expected + price, rel=1e-12)


def test_prior_by_brute_force():
    """Nominal levels to the shares one by one; ordered ones a tenth of that, and to each other."""
    labelled = problem()
    logits = logits_for(labelled, 2)
    price, _ = penalty(labelled, logits, 3.0)
    away = logits[1:] - np.log(labelled.known.center)[:, None]
    expected = 0.5 * 3.0 * np.sum(away[:5] ** 2)
    expected += 0.5 * 0.3 * np.sum(away[5:9] ** 2)
    expected += 0.5 * 3.0 * 4 / 12 * np.sum(np.diff(away[5:9], axis=0) ** 2)
    expected += 0.5 * 0.01 * np.sum(logits[10:] ** 2) + 0.5 * 1e-3 * np.sum(logits[0] ** 2)
    assert price == pytest.approx(expected, rel=1e-12)


def test_what_classes_of_a_label_have_in_common_counts_once():
    labelled = problem()
    owners = labelled.owners(8)
    assert sorted(np.bincount(owners)) == [2, 3, 3]
    logits = logits_for(labelled, 8)
    price, _ = penalty(labelled, logits, 3.0)
    away = logits - labelled.anchor
    expected = 0.0
    for owner in range(3):
        mine = away[:, owners == owner]
        mean = mine.mean(axis=1, keepdims=True)
        for part in (mean, *(mine - mean).T):
            one = penalty(labelled, labelled.anchor + part.reshape(-1, 1), 3.0)[0]
            expected += one
    assert price == pytest.approx(expected, rel=1e-12)
    # As dear as one class for each label, if classes of the same label are the same.
    few = logits_for(labelled, 3)
    same = penalty(labelled, few[:, owners], 3.0)[0]
    assert same == pytest.approx(penalty(labelled, few, 3.0)[0], rel=1e-12)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 1000),
    rank=st.integers(1, 8),
    targets=st.sampled_from([1, 2]),
    joint=st.sampled_from([0.0, 0.3, 2.0]),
    strength=st.sampled_from([0.0, 1.0]),
)
def test_slope_by_differences(seed, rank, targets, joint, strength):
    labelled = problem(seed, targets)
    logits = logits_for(labelled, rank, seed)
    _, slope = objective(labelled, logits, joint, strength)
    rng = np.random.default_rng(seed)
    for _ in range(3):
        move = rng.normal(size=logits.shape)
        step = 1e-5
        ahead, back = (
            objective(labelled, logits + s * move, joint, strength)[0] for s in (step, -step)
        )
        # Central differences: error of order step^2, and rounding of 1e-16 * 100 / step.
        assert np.vdot(slope, move) == pytest.approx(
            (ahead - back) / (2 * step), rel=1e-5, abs=1e-5
        )


@pytest.mark.parametrize("joint", [0.0, 0.1, 1.0])
def test_the_objective_never_rises(joint):
    labelled = problem(rows=200)
    start = label_start(labelled, 6, np.random.default_rng(0))
    found = run(Conditional(joint=joint, strength=0.1), labelled, start)
    values = [record.objective for record in found.records]
    assert len(values) > 20
    assert (np.diff(values) <= 0).all()
    assert found.stop in (Stop.PROGRESS, Stop.OPTIMAL)


def test_conditional_likelihood_rises_without_prior_or_joint():
    """Then the objective is the conditional likelihood, but for tiny pulls."""
    labelled = problem(rows=300)
    start = label_start(labelled, 3, np.random.default_rng(0))
    found = run(Conditional(joint=0.0, strength=0.0), labelled, start)

    assert told(labelled, found.model) > told(labelled, start) + 1.0


def test_stationary_point_is_logistic_regression():
    """One class for each label, sharp columns: the scores of multinomial logistic regression."""
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(3)
    X = rng.integers(0, 3, size=(800, 3))
    y = (X[:, 0] + X[:, 1] + rng.normal(size=800) > 2).astype(int)
    records = rj.Records.of(np.column_stack([X, y]))
    labelled = labelled_data(records, 1)
    start = label_start(labelled, 2, np.random.default_rng(0))
    found = run(Conditional(joint=0.0, strength=0.01), labelled, start)
    one_hot = np.eye(3)[X].reshape(800, 9)
    peer = LogisticRegression(C=1e3, max_iter=5000).fit(one_hot, y)
    best = peer.predict_log_proba(one_hot)[np.arange(800), y].sum()
    # Columns of labels that are not quite sharp, and another prior: some units of 500.
    assert told(labelled, found.model) == pytest.approx(best, abs=3.0)


# --- starts and search -----------------------------------------------------------------------


def test_combinations_of_labels():
    records = rj.Records.of({"x": list("aabb"), "y": list("uvvv"), "z": [1, 2, 2, None]})
    found, mass = labelled_data(records, 2).combinations
    assert found.tolist() == [[1, 1], [0, 0]]
    assert mass.tolist() == [2, 1]


def test_labels_never_known_together():
    records = rj.Records.of({"x": list("ab"), "y": ["u", None], "z": [None, 2]})
    found, _ = labelled_data(records, 2).combinations
    assert found.tolist() == [[0, 0]]


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=12), st.integers(1, 40))
def test_classes_are_all_share_out(mass, rank):
    owned = share_out(np.array(sorted(mass, reverse=True), dtype=float), rank)
    assert owned.sum() == rank
    assert (owned >= 1).all()
    assert (np.diff(owned) <= 0).all() or rank > len(mass)


def test_start_with_one_class_a_label_is_naive_bayes():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(50, 2))
    records = rj.Records.of(np.column_stack([X, X[:, 0] ^ (rng.random(50) < 0.2)]))
    labelled = labelled_data(records, 1)
    start = label_start(labelled, 2, rng)
    weights, factors = start.weights, start.factors
    order = np.argsort(factors[4])[::-1]  # the class of label 0 first
    codes = np.array(records.codes)
    for label in (0, 1):
        there = codes[codes[:, 2] == label]
        assert weights[order][label] == pytest.approx(len(there) / 50)
        shares = np.bincount(there[:, 0], minlength=2) + 2 * labelled.known.center[:2]
        assert np.allclose(factors[:2, order][:, label], shares / shares.sum())


def test_search_walks_to_the_best():
    tried = []

    def loss(s):
        tried.append(s)
        return 1 + np.log(s.strength / 3) ** 2 + abs(s.rank - 6) + s.joint

    ranks, strengths = (2, 4, 6, 8, 10), (0.1, 0.3, 1.0, 3.0, 10.0)
    assert search_settings(loss, Setting(2, 0.3, 0.1), ranks, strengths) == Setting(6, 3.0, 0.1)
    assert len(set(tried)) < 12  # of 25


def test_weights_go_to_what_tells_held_out_labels():
    records = rj.Records.of({"x": ["a", "b"] * 100, "y": ["no", "yes"] * 100})
    held = held_out(records)
    good, poor = Setting(2, 0.1, 0.0), Setting(1, 0.1, 0.0)
    assert held.loss(good) < held.loss(poor)
    assert held.loss(good) < held.loss(good, 1) < held.loss(good, 2)
    assert held.shares([poor, good]) == {good: 1.0}
    assert len(held.tried[good]) == 1
    even = held.shares([poor, poor._replace(joint=0.1)])
    assert sum(even.values()) == pytest.approx(1.0)
    assert len(even) == 2


def test_weights_are_those_of_averages_over_starts():
    records = rj.Records.of(
        {"x": list("aabb") * 25, "z": list("uvuv") * 25, "y": list("nyyn") * 25}
    )
    held = held_out(records, starts=3)
    setting = Setting(4, 0.1, 0.0)
    first = held.label_prob(setting).copy()
    held.shares([setting])
    assert len(held.tried[setting]) == 3
    assert np.array_equal(held.label_prob(setting), first)
    each = [told[0] for told in held.tried[setting]]
    assert not np.array_equal(each[0], each[1])
    assert np.array_equal(held.label_prob(setting, starts=3), np.mean(each, axis=0))


def test_many_different_records_are_held_out_in_fewer_parts(monkeypatch):
    monkeypatch.setattr("rejoint.estimators.classifier.tune.ENOUGH_CELLS", 250)
    few = rj.Records.of({"x": ["a", "b"] * 50, "y": ["no", "yes"] * 50})
    assert len(held_out(few).folds) == 5
    many = rj.Records.of({"x": list(range(100)), "y": ["no", "yes"] * 50}, kinds={"x": "nominal"})
    # Of 100 different records of two cells, 80 are learnt from: two parts are more than 250 cells.
    assert len(held_out(many).folds) == 2


def test_unlabelled_records_are_never_judged():
    records = rj.Records.of({"x": ["a", "b"] * 60, "y": (["no", "yes"] * 10 + [None] * 100)})
    held = held_out(records)
    assert held.weight.sum() == 20
    assert all(part.learn.known.total == 116 for part in held.folds)
