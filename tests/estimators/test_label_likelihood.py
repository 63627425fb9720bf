"""The likelihood of labels given features: its value, its slope, and what it is at its best."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rejoint as rj
from rejoint.estimation.data import InMemory
from rejoint.estimators import ClassifierPolicy
from rejoint.estimators.classifier.design import Coarsening, Design, smooth_root
from rejoint.estimators.classifier.fit_classifier import (
    deal_folds,
)
from rejoint.estimators.classifier.label_likelihood import (
    Form,
    LabelLikelihood,
    make_model,
    make_profiles,
    minimize,
    objective,
)

POLICY = ClassifierPolicy()


def problem(seed=0, targets=1, rows=40, most=20):
    """Few records that miss values and labels; one weighs more. Columns of all kinds."""
    rng = np.random.default_rng(seed)
    shape = {"a": 3, "b": 2, "c": 4, "d": 12, "y": 3, "z": 2}
    domain = rj.Domain(
        tuple(
            rj.Variable(name, tuple(range(k)), "ordinal" if name in "cd" else "nominal")
            for name, k in shape.items()
        )
    ).project(["a", "b", "c", "d", "y", "z"][: 4 + targets])
    codes = np.stack([rng.integers(-1, k, size=rows) for k in domain.shape], axis=1)
    weight = np.ones(rows)
    weight[0] = 2.5
    features = domain.variables[:4]
    center = InMemory.of(rj.Records(domain, codes, weight)).center[:21]
    joined = Coarsening.of(features, center, 5, 0.3)
    mine = joined.apply(codes[:, :4])
    design = Design.of(features, joined, mine, weight, POLICY)
    profiles, patterns = make_profiles(codes[:, 4:], weight, domain.shape[4:], most)
    order = np.argsort(patterns, kind="stable")
    return LabelLikelihood(design, mine[order], weight[order], patterns[order], profiles)


FORMS = st.builds(
    lambda classes, kind, scale: (classes, kind, scale),
    st.integers(1, 3),
    st.sampled_from(["labels", "both", "joint", "alone"]),
    st.sampled_from([0.3, 2.0]),
)


def make_form(data, classes, kind, scale):
    owners = np.repeat(np.arange(len(data.profiles)), classes)
    return {
        "labels": Form(owners, common=0.7, scale=scale),
        "both": Form(owners, joint=1.0, common=0.7, scale=scale, linear=False),
        "joint": Form(owners, conditional=0.1, joint=1.0, scale=scale),
        "alone": Form(owners, scale=scale),
    }[kind]


def draw_parameters(data, form, rng):
    found = 0.7 * rng.normal(size=(1 + data.design.size, form.first + len(form.owners)))
    found[-1, : form.first] = 0.0
    if not form.linear:
        found[data.design.layout.size : -1] = 0.0
    return found


@settings(max_examples=20, deadline=None)
@given(FORMS, st.integers(0, 1000), st.integers(1, 2), st.sampled_from([20, 3]))
def test_value_by_brute_force(kind, seed, targets, most):
    """From the dense joint of features and profiles."""
    data = problem(seed, targets, most=most)
    form = make_form(data, *kind)
    parameters = draw_parameters(data, form, np.random.default_rng(seed))
    model = make_model(data.design, form, parameters)
    dense = np.einsum("f,af,bf,cf,df->abcdf", model.weights, *model.parts)
    expected = 0.5 * np.sum(parameters[:-1] ** 2)
    likelihood = data.profiles.likelihood[:, form.owners]
    for codes, weight, pattern in zip(data.codes, data.weight, data.patterns, strict=True):
        cells = tuple(slice(None) if code < 0 else slice(code, code + 1) for code in codes)
        classes = dense[cells].sum(axis=(0, 1, 2, 3))
        both, rest = np.log(classes @ likelihood[pattern]), np.log(classes.sum())
        expected -= weight * (form.conditional * (both - rest) + form.joint * both)
    assert objective(data, form, parameters)[0] == pytest.approx(expected, rel=1e-9)


@settings(max_examples=20, deadline=None)
@given(FORMS, st.integers(0, 1000), st.integers(1, 2), st.sampled_from([20, 3]))
def test_slope_by_differences(kind, seed, targets, most):
    data = problem(seed, targets, most=most)
    form = make_form(data, *kind)
    rng = np.random.default_rng(seed)
    parameters = draw_parameters(data, form, rng)
    _, slope = objective(data, form, parameters)
    for _ in range(3):
        move, step = draw_parameters(data, form, rng), 1e-5
        ahead, back = (objective(data, form, parameters + s * move)[0] for s in (step, -step))
        # Central differences: error of order step^2, and rounding of 1e-16 * 100 / step.
        assert np.vdot(slope, move) == pytest.approx(
            (ahead - back) / (2 * step), rel=1e-5, abs=1e-5
        )


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000))
def test_the_design_and_its_transpose(seed):
    design, rng = problem(seed).design, np.random.default_rng(seed)
    parameters, scores = rng.normal(size=(design.size, 2)), rng.normal(size=(design.layout.size, 2))
    one = np.vdot(design.scores(parameters), scores)
    assert one == pytest.approx(np.vdot(parameters, design.pull_back(scores)), rel=1e-9)
    mean = design.layout.sums(design.shares[:, None] * design.scores(parameters))
    assert np.abs(mean).max() < 1e-9


def test_a_straight_line_costs_the_same_however_many_levels():
    """The prior on differences: a line through L levels has the price of its slope over a sd."""
    prices = []
    for levels in (8, 32, 64):
        line = np.arange(levels) - (levels - 1) / 2
        line /= line.std()
        root = np.linalg.solve(smooth_root(levels, POLICY), line)
        prices.append(root @ root - POLICY.level_precision * levels)
    assert prices[1] == pytest.approx(prices[2], rel=0.1)
    assert prices[0] == pytest.approx(prices[2], rel=0.25)


def test_the_objective_never_rises():
    data = problem(rows=200)
    form = make_form(data, 3, "labels", 1.0)
    seen = []
    start = draw_parameters(data, form, np.random.default_rng(0))
    found = minimize(data, form, start, 40, POLICY.least_gain, seen.append)
    assert len(seen) > 20
    assert (np.diff(seen) <= 0).all()
    assert objective(data.labelled, form, found)[0] == pytest.approx(seen[-1])


def test_one_class_for_each_label_is_logistic_regression():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(3)
    X = rng.integers(0, 3, size=(800, 3))
    y = (X[:, 0] + X[:, 1] + rng.normal(size=800) > 2).astype(int)
    records = rj.Records.of(np.column_stack([X, y]).astype(str))
    features = records.domain.variables[:3]
    joined = Coarsening.of(features, InMemory.of(records).center[:9], 8, 0.0)
    weight = np.ones(800)
    design = Design.of(features, joined, records.codes[:, :3], weight, POLICY)
    profiles, patterns = make_profiles(records.codes[:, 3:], weight, [2], 20)
    order = np.argsort(patterns, kind="stable")
    parts = records.codes[order, :3], weight, patterns[order], profiles
    data = LabelLikelihood(design, np.ascontiguousarray(parts[0]), *parts[1:])
    form, start = Form(np.arange(2), scale=100.0), np.zeros((1 + design.size, 2))
    found = minimize(data, form, start, 300, POLICY.least_gain)
    one_hot = np.eye(3)[X].reshape(800, 9)
    peer = LogisticRegression(C=1e4, max_iter=5000).fit(one_hot, y)
    best = peer.predict_log_proba(one_hot)[np.arange(800), y].sum()
    assert -objective(data, form, found)[0] == pytest.approx(
        best, abs=0.2
    )  # but for weak priors of another form


# --- profiles, folds, weights ------------------------------------------------------------------


@given(st.lists(st.integers(1, 30), min_size=1, max_size=30), st.integers(2, 5))
def test_labels_are_dealt_out_evenly(weight, folds):
    weight = np.array(weight, dtype=float)
    domain = rj.Domain.of({"x": 50})
    data = InMemory(domain, np.arange(len(weight))[:, None].astype(np.int8), weight, 1)
    patterns = np.arange(len(weight)) % 3
    shares = deal_folds(data, patterns, folds, np.random.default_rng(0))
    assert np.array_equal(shares.sum(axis=1), weight)
    for pattern in set(patterns.tolist()):
        mine = shares[patterns == pattern].sum(axis=0)
        assert mine.max() - mine.min() <= 1


def test_clusters_are_in_one_fold():
    town = np.arange(60) // 4
    records = rj.Records.of({"x": np.arange(60) % 7}, clusters=town)
    data = InMemory.of(records).observations()
    shares = deal_folds(data, np.zeros(60, dtype=int), 3, np.random.default_rng(0)) > 0
    assert (shares.sum(axis=1) == 1).all()
    for fold in shares.T:
        assert not set(town[fold]) & set(town[~fold])
