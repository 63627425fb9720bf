"""Blocks of variables that are tabulated jointly within a class: against brute force."""

import json
import pickle
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rejoint as rj
from rejoint.estimation.data import InMemory
from rejoint.estimation.placed_blocks import Interactions
from rejoint.model import Model
from rejoint.queries.mixture import Block, BlockLayout

SHAPE = (3, 2, 4, 2, 3)


def block_of(rng, members, groups, rank, zeros=0.0):
    layout = BlockLayout(tuple(members), tuple(np.array(group) for group in groups))
    table = rng.random((layout.size, rank)) * (rng.random((layout.size, rank)) >= zeros) + 1e-9
    return Block(layout, table / table.sum(axis=0))


def pmf_of(seed, rank=3, draws=0, zeros=0.0):
    """Blocks of (2, 0), a's levels and c's in groups, and of (1, 4); variable 3 is alone."""
    rng = np.random.default_rng(seed)
    blocks = [
        block_of(rng, (2, 0), ([0, 1, 1, 0], [0, 1, 1]), rank, zeros),
        block_of(rng, (1, 4), ([1, 0], [0, 1, 2]), rank, zeros),
    ]
    factors = [rng.dirichlet(np.ones(size), rank).T for size in SHAPE]
    for block in blocks:
        for i, n in enumerate(block.members):
            share = block.layout.within(i, factors[n])
            factors[n] = share * block.margin([n])[block.layout.groups[i]]
    weights = rng.dirichlet(np.ones(rank))
    domain = rj.Domain.of(
        {name: list(range(size)) for name, size in zip("abcde", SHAPE, strict=True)}
    )
    if not draws:
        return rj.LowRankPMF(weights, factors, domain, blocks=blocks)
    drawn = [pmf_of(seed + 1 + k) for k in range(draws)]
    own = rj.LowRankPMF(weights, factors, domain)
    mean = rj.LowRankPMF(weights, factors, domain, blocks=blocks)
    return rj.LowRankPMF(own.weights, own.factors, domain, drawn, mean)


def brute(p):
    """The joint, cell by cell from the formula of the form."""
    p = p.mixture
    table = np.zeros(p.domain.shape)
    inside = {n for block in p._blocks for n in block.members}
    for cell in product(*map(range, p.domain.shape)):
        terms = p.weights.copy()
        for n, level in enumerate(cell):
            if n not in inside:
                terms = terms * p.factors[n][level]
        for block in p._blocks:
            place = [
                group[cell[n]] for n, group in zip(block.members, block.layout.groups, strict=True)
            ]
            terms = terms * block.table[np.ravel_multi_index(place, block.layout.shape)]
            for n, group in zip(block.members, block.layout.groups, strict=True):
                total = p.factors[n][group == group[cell[n]]].sum(axis=0)
                terms = terms * p.factors[n][cell[n]] / total
        table[cell] = terms.sum()
    return table


@pytest.mark.filterwarnings("ignore:.*considers nearly impossible")
@given(st.integers(0, 10**6), st.floats(0, 0.5))
@settings(max_examples=15, deadline=None)
def test_tables_probabilities_and_expectations_match_brute_force(seed, zeros):
    p = pmf_of(seed, zeros=zeros)
    joint, soft = brute(p), np.array([0.3, 0.0, 2.0])
    np.testing.assert_allclose(p.to_dense(), joint, atol=1e-14)
    np.testing.assert_allclose(p.marginal(["e", "a", "c"]), np.einsum("abcde->eac", joint))
    given_e = np.einsum("abcde,e->abcd", joint, soft)
    given_e = given_e[:, :, [1, 2]].sum(axis=2)
    expected = given_e / given_e.sum()
    evidence = {"e": soft, "c": [1, 2]}
    np.testing.assert_allclose(p.marginal(["b", "a"], evidence), expected.sum(axis=2).T)
    np.testing.assert_allclose(p.marginal("d", evidence), expected.sum(axis=(0, 1)))
    assert p.prob({"a": [0, 2], "b": 1}, evidence) == pytest.approx(expected[[0, 2], 1].sum())
    assert p.expect("a", evidence) == pytest.approx(np.arange(3) @ expected.sum(axis=(1, 2)))
    table = p.marginal("c", {"c": [1, 2], "a": 0})
    own = joint.sum(axis=(1, 3, 4))[0] * [0, 1, 1, 0]
    np.testing.assert_allclose(table, own / own.sum())
    assert p.ask("P(b = 1 | c in {1, 2}, a = 0)").value == pytest.approx(
        joint[0, 1, [1, 2]].sum() / joint[0, :, [1, 2]].sum()
    )
    by = p.ask("P(a | c, b)").value
    np.testing.assert_allclose(by, np.einsum("abcde->acb", joint) / joint.sum(axis=(0, 3, 4)).T)
    own = joint.sum(axis=(1, 3, 4))
    information = own * np.log(own / np.outer(own.sum(axis=1), own.sum(axis=0)))
    assert p.ask("MI(a; c)").value == pytest.approx(information.sum(), abs=1e-9)


@given(st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_records_with_missing_values_match_brute_force(seed):
    p, rng = pmf_of(seed), np.random.default_rng(seed)
    joint = brute(p)
    codes = np.stack([rng.integers(-1, size, 60) for size in SHAPE], axis=1).astype(np.int16)
    expected = [
        joint[tuple(slice(None) if c < 0 else slice(c, c + 1) for c in row)].sum() for row in codes
    ]
    found = p.log_prob(rj.Records(p.domain, codes))
    np.testing.assert_allclose(np.exp(found), expected, rtol=1e-12)
    # Posterior of the classes: by Bayes' rule from models of one class each.
    single = [
        rj.LowRankPMF(
            [1.0],
            [factor[:, [f]] for factor in p.factors],
            p.domain,
            blocks=[Block(block.layout, block.table[:, [f]]) for block in p._blocks],
        )
        for f in range(p.rank)
    ]
    own = np.array([m.log_prob(rj.Records(p.domain, codes)) for m in single]).T
    terms = p.weights * np.exp(own)
    np.testing.assert_allclose(
        p.classes(rj.Records(p.domain, codes)), terms / terms.sum(axis=1, keepdims=True), atol=1e-12
    )


@pytest.mark.parametrize("seed", range(5))
def test_modes_match_brute_force(seed):
    p = pmf_of(seed)
    joint = brute(p)
    mode = p.mode()
    best = np.unravel_index(joint.argmax(), joint.shape)
    assert [mode[name] for name in "abcde"] == list(best)
    assert mode.prob == pytest.approx(joint.max())
    own = joint[:, :, :, 1].sum(axis=1)  # a, c, e
    mode = p.mode(["e", "a", "c"], {"d": 1})
    best = np.unravel_index(own.argmax(), own.shape)
    assert [mode[name] for name in "ace"] == list(best)
    assert mode.prob == pytest.approx(own.max() / own.sum())
    each = p.mode(["a", "c"], each=True)
    single = joint.sum(axis=(1, 3, 4))
    assert each.prob == pytest.approx(single[each["a"], each["c"]])


def test_rows_are_predicted_and_filled_by_the_joint():
    p, rng = pmf_of(11), np.random.default_rng(11)
    joint = brute(p)
    codes = np.stack([rng.integers(-1, size, 40) for size in SHAPE], axis=1).astype(np.int16)
    for n, size in enumerate(SHAPE):
        found = p._parts.predict(codes, n)
        for row, shares in zip(codes, found, strict=True):
            kept = [slice(None) if c < 0 or k == n else slice(c, c + 1) for k, c in enumerate(row)]
            own = joint[tuple(kept)].sum(axis=tuple(k for k in range(5) if k != n))
            np.testing.assert_allclose(shares, own / own.sum(), atol=1e-12)
            assert len(shares) == size
    rows = np.tile(np.array([[-1, 1, 3, -1, -1]], dtype=np.int16), (200_000, 1))
    filled = p._parts.fill(rows, rows < 0, rng)
    assert (filled[:, [1, 2]] == [1, 3]).all()
    own = joint[:, 1, 3] / joint[:, 1, 3].sum()
    counts = np.zeros_like(own)
    np.add.at(counts, tuple(filled[:, [0, 3, 4]].T), 1)
    np.testing.assert_allclose(counts / len(rows), own, atol=0.006)


@pytest.mark.parametrize("name", ["model.rejoint", "model.json"])
def test_files_keep_blocks(tmp_path, name):
    for p in (pmf_of(3), pmf_of(8, draws=12)):
        p.save(tmp_path / name)
        again = rj.load(tmp_path / name)
        assert again == p
        assert again.blocks == p.blocks
        np.testing.assert_allclose(again.to_dense(), p.to_dense(), atol=1e-15)
        if p.draws:
            found, expected = (m.interval(["a", "b"], {"c": 1}) for m in (again, p))
            np.testing.assert_allclose(np.stack(found), np.stack(expected), atol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": [{"members": [0, 9], "groups": [[0, 0, 0], [0, 0]]}]}, "no different variables"),
        ({"model": [{"members": [0, 0], "groups": [[0, 1, 1]] * 2}]}, "no different variables"),
        ({"model": [{"members": [0, 1], "groups": [[0, 2, 2], [0, 1]]}]}, "groups of a block"),
        ({"model": [{"members": [0, 1], "groups": [[0, 1, 2], [0, 1]]}]}, "tables of blocks"),
        ({"model": [{"members": [0, 1]}]}, "has no 'groups'"),
        ([], "expected an object"),
    ],
)
def test_what_files_say_of_blocks_is_checked(tmp_path, change, message):
    path = tmp_path / "model.json"
    pmf_of(3).save(path)
    plain = json.loads(path.read_text())
    path.write_text(json.dumps(plain | {"blocks": change}))
    with pytest.raises(ValueError, match=message):
        rj.load(path)


def test_drawn_records_have_the_joint_of_the_model():
    p = pmf_of(3)
    records = p.sample(200_000, random_state=0)
    joint = brute(p)
    cells = np.ravel_multi_index(tuple(records.codes.T.astype(int)), SHAPE)
    counts = np.bincount(cells, minlength=joint.size)
    expected = joint.ravel() * 200_000
    used = expected > 0
    assert not counts[~used].any()
    z = (counts - expected)[used] / np.sqrt(np.maximum(expected[used], 1))
    assert (z**2).sum() < used.sum() + 4 * np.sqrt(2 * used.sum())
    given_c = p.sample(20_000, {"c": [0, 3]}, random_state=0)
    assert set(np.unique(given_c.codes[:, 2])) == {0, 3}
    share = joint[:, :, [0, 3]].sum(axis=(1, 2, 3, 4)) / joint[:, :, [0, 3]].sum()
    np.testing.assert_allclose(given_c.marginal(["a"]), share, atol=0.02)


def test_models_made_from_a_model_keep_its_joint():
    p = pmf_of(4)
    joint = brute(p)
    small = p.project(["e", "c", "b"])
    assert small.blocks == (("b", "e"),)
    np.testing.assert_allclose(small.to_dense(), np.einsum("abcde->ecb", joint))
    rest = p.condition({"a": [0, 1], "e": 2})
    own = joint[:2, :, :, :, 2].sum(axis=0)
    np.testing.assert_allclose(rest.to_dense(), own / own.sum())
    np.testing.assert_allclose(p.sorted().to_dense(), joint)
    domain = rj.Domain.of({"c": [3, 0, 2, 1], "a": [2, 0, 1], "b": [1, 0], "e": [0, 1, 2], "d": 2})
    turned = p.align(domain).to_dense()
    expected = np.einsum("abcde->cabed", joint)[[3, 0, 2, 1]][:, [2, 0, 1]][:, :, [1, 0]]
    np.testing.assert_allclose(turned, expected)
    other = pmf_of(5).align(p.domain)
    mean = rj.LowRankPMF.average([p, other, pmf_of(6).project(list("abcde"))], [1, 2, 1])
    expected = joint / 4 + brute(other) / 2 + brute(pmf_of(6)) / 4
    np.testing.assert_allclose(mean.to_dense(), expected)
    flat = rj.LowRankPMF(p.weights, p.factors, p.domain)
    mixed = rj.LowRankPMF.average([p, flat])
    np.testing.assert_allclose(mixed.to_dense(), (joint + flat.to_dense()) / 2)
    error = np.linalg.norm(joint - flat.to_dense()) / np.linalg.norm(joint)
    assert rj.metrics.tensor_error(p, flat) == pytest.approx(error)
    assert rj.metrics.tensor_error(p, p.sorted()) < 1e-12
    assert p == pickle.loads(pickle.dumps(p))
    assert p == p.sorted()
    assert p != flat


def test_a_reduced_model_has_blocks_of_its_own():
    p = pmf_of(7, rank=2)
    wide = rj.LowRankPMF.average([p, p.sorted(), p])
    assert wide.rank == 6
    pmf, error = wide.reduce(rank=2)
    assert pmf.rank == 2
    assert error < 1e-7
    np.testing.assert_allclose(pmf.to_dense(), brute(p), atol=1e-7)
    assert sorted(map(sorted, pmf.blocks)) == [["a", "c"], ["b", "e"]]


def test_intervals_rest_on_draws_with_blocks():
    p = pmf_of(8, draws=12)
    assert p.blocks == (("c", "a"), ("b", "e"))
    own = np.stack([brute(draw) for draw in p.draws])
    tables = own[:, :, :, [1, 3]].sum(axis=(3, 4, 5))
    weights = own[:, :, :, [1, 3]].sum(axis=(1, 2, 3, 4, 5))
    from rejoint.pmf.draws import credible_interval

    tables = tables / weights[:, None, None]
    answer = p.marginal(["a", "b"], {"c": [1, 3]})
    expected = credible_interval(tables, 0.9, weights / weights.sum(), answer)
    found = p.interval(["a", "b"], {"c": [1, 3]})
    np.testing.assert_allclose(np.stack(found), np.stack(expected), atol=1e-12)
    rest = p.condition({"c": [1, 3]})
    np.testing.assert_allclose(np.stack(rest.interval(["a", "b"])), np.stack(expected), atol=1e-9)
    turned = p.project(["b", "a", "c"]).interval(["a", "b"], {"c": [1, 3]})
    np.testing.assert_allclose(np.stack(turned), np.stack(expected), atol=1e-12)
    assert p.ask("P(a = 1 | c = 2)").interval is not None


def test_evidence_that_a_block_excludes_is_named():
    same = Block(BlockLayout((0, 1), (np.arange(2),) * 2), np.array([[0.5], [0], [0], [0.5]]))
    half = np.full((2, 1), 0.5)
    p = rj.LowRankPMF([1.0], [half, half, half], blocks=[same])
    with pytest.raises(rj.ZeroEvidenceError, match="x0 = 0 and x1 = 1 are possible by themselves"):
        p.prob({"x2": 0}, {"x0": 0, "x1": 1, "x2": [0, 1]})


@pytest.mark.parametrize(
    ("members", "groups", "table", "message"),
    [
        ((0, 0), ([0, 1], [0, 1]), np.eye(2).ravel() / 2, "two variables or more"),
        ((0, 3), ([0, 1], [0, 1]), np.eye(2).ravel() / 2, "there are 3"),
        ((0, 1), ([0, 2], [0, 1]), np.eye(2).ravel() / 2, "do not fit its levels"),
        ((0, 1), ([0, 1], [0, 1]), np.ones(3) / 3, "must be of shape"),
        ((0, 1), ([0, 1], [0, 1]), [1.5, -0.5, 0, 0], "all numbers >= 0"),
        ((0, 1), ([0, 1], [0, 1]), [1.0, 0, 0, 0], "off by 0.5"),
    ],
)
def test_blocks_that_do_not_fit_are_refused(members, groups, table, message):
    layout = BlockLayout(members, tuple(np.array(group) for group in groups))
    block = Block(layout, np.asarray(table, dtype=float)[:, None])
    with pytest.raises(ValueError, match=message):
        rj.LowRankPMF([1.0], [np.full((2, 1), 0.5)] * 3, blocks=[block])


# --- found by the fit -----------------------------------------------------------------------------


def follow_up(rows=3000, seed=0):
    """An amount, its bracket and a question that follows another; the rest by two classes."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, rows)
    yes = rng.random((6, rows)) < 0.25 + 0.5 * group
    columns = {f"q{k}": np.where(own, "yes", "no") for k, own in enumerate(yes)}
    amount = rng.integers(0, 40, rows)
    bracket = np.array(["low", "middle", "high"])[np.digitize(amount, [10, 25])]
    change = rng.integers(0, 3, rows)
    size = np.where(change == 1, "none", np.array(["small", "large"])[rng.integers(0, 2, rows)])
    columns |= {"amount": amount.tolist(), "bracket": bracket.tolist()}
    columns |= {"change": np.array(["less", "same", "more"])[change].tolist()}
    columns["size"] = np.where(rng.random(rows) < 0.1, None, size.astype(object)).tolist()
    return rj.Records.of(columns, bins={"amount": None})


@pytest.fixture(scope="module")
def followed():
    return follow_up(), rj.estimate(follow_up(), rank=2, solver="bayes", random_state=0)


def test_variables_that_depend_beyond_the_classes_are_found_and_named(followed):
    records, result = followed
    blocks = set(map(frozenset, result.pmf.blocks))
    assert {frozenset(["amount", "bracket"]), frozenset(["change", "size"])} <= blocks
    assert "amount and bracket" in result.agreement
    assert "tabulated together: they depend on each other beyond the classes" in result.agreement
    # A record never shows a high bracket for a small amount.
    assert result.pmf.prob({"bracket": "high"}, {"amount": [1, 2, 3]}) < 0.01
    assert result.pmf.prob({"size": "none"}, {"change": "same"}) > 0.99
    other = follow_up(seed=1)
    flat = rj.estimate(records, rank=2, solver="bayes", blocks=False, random_state=0)
    assert flat.pmf.blocks == ()
    gain = result.pmf.log_prob(other).mean() - flat.pmf.log_prob(other).mean()
    assert gain > 0.9


def test_classes_are_free_of_what_blocks_explain(followed):
    records, result = followed
    q0, q1 = (records.names.index(name) for name in ("q0", "q1"))
    counted = np.mean((records.codes[:, [q0, q1]] == 0).all(axis=1))
    level = records.domain["q0"].levels[0]
    answer = result.pmf.prob({"q0": level, "q1": level})
    assert answer == pytest.approx(counted, abs=0.01)
    # The two classes are those of the questions, and not of amount and bracket.
    factor = result.pmf.representative.factors[q0]
    assert abs(factor[0, 0] - factor[0, 1]) == pytest.approx(0.5, abs=0.1)


def local_dependence(kind, rows=3000):
    """Three classes, and a variable that others copy or say again; the block that this makes."""
    rng = np.random.default_rng(5)
    group = rng.choice(3, rows, p=[0.3, 0.3, 0.4])
    columns = {}
    for n in range(6):
        factor = rng.dirichlet(np.ones(3), 3)
        height = rng.random(rows)[:, None]
        columns[f"x{n}"] = (np.cumsum(factor, axis=1)[group] < height).sum(axis=1).clip(max=2)
    base = columns["x0"]
    if kind == "copy":
        noise = rng.random(rows) < 0.1
        columns["y"] = np.where(noise, rng.integers(0, 3, rows), base)
    elif kind == "one-hot":
        columns |= {f"y{k}": (base == k).astype(int) for k in range(3)}
    else:
        columns["y"] = np.where(base > 0, rng.integers(0, 3, rows), -1)
    block = ["x0", *(name for name in columns if name.startswith("y"))]
    return {name: [str(value) for value in codes] for name, codes in columns.items()}, block


@pytest.mark.parametrize("kind", ["copy", "one-hot", "skip"])
def test_local_dependence_is_found_and_not_explained_by_classes(kind):
    columns, block = local_dependence(kind)
    result = rj.estimate(columns, random_state=0)
    assert [sorted(own) for own in result.pmf.blocks] == [sorted(block)]
    assert 2 <= result.selection.rank <= 5
    assert result.selection.plan.anchors.blocks > 0.2
    assert "held-out" in result.agreement


@pytest.mark.parametrize("seed", range(3))
def test_passes_allow_for_blocks_as_brute_force_does(seed):
    """Log-probabilities and expected counts; groups of levels, and missing cells."""
    rng = np.random.default_rng(seed)
    layouts = [
        BlockLayout((2, 0), (np.array([0, 1, 1, 0]), np.array([0, 1, 2]))),
        BlockLayout((1, 4), (np.array([1, 0]), np.array([0, 1, 2]))),
    ]
    domain = rj.Domain.of(
        {name: list(range(size)) for name, size in zip("abcde", SHAPE, strict=True)}
    )
    codes = np.array([rng.integers(-1, size, 60) for size in SHAPE]).T
    data = InMemory.of(rj.Records(domain, codes[(codes >= 0).any(axis=1)]))
    tables = [rng.random(layout.shape) + 0.1 for layout in layouts]
    data = replace(data, blocks=Interactions(layouts, tables))
    model = Model.of(rng.dirichlet(np.ones(2)), [rng.dirichlet(np.ones(k), 2).T for k in SHAPE])
    placed = data.blocks.mixture(data.observed(model))
    whole = placed.with_blocks(placed.blocks)
    for factor, margin in zip(whole.factors.values(), model.parts, strict=True):
        np.testing.assert_allclose(factor, margin, atol=3e-3)
    pmf = rj.LowRankPMF(whole.weights, list(whole.factors.values()), domain, blocks=whole.blocks)
    records = rj.Records(domain, data.codes)
    np.testing.assert_allclose(data.log_prob(model), pmf.log_prob(records), atol=1e-12)
    counts = data.expect(model)
    posterior = pmf.classes(records) * data.weight[:, None]
    np.testing.assert_allclose(counts.classes, posterior.sum(axis=0), atol=1e-10)
    for n, size in enumerate(SHAPE):
        own = [posterior[data.codes[:, n] == level].sum(axis=0) for level in range(size)]
        np.testing.assert_allclose(counts.levels[data.layout.rows(n)], own, atol=1e-10)


@pytest.mark.filterwarnings("ignore:Empty cells are the level")
def test_records_that_lack_a_member_by_design_keep_their_levels():
    """A part of a form does not apply to some rows, in which another member is missing."""
    rng = np.random.default_rng(0)
    n = 4000
    other = rng.random(n) < 0.2
    search = np.where(rng.random(n) < 0.3, "yes", "no").astype(object)
    found = np.where((search == "yes") & (rng.random(n) < 0.9), "yes", "no").astype(object)
    size = np.where(found == "yes", "large", "small").astype(object)
    search[other] = found[other] = "does not apply"
    size[other] = None
    columns = {"search": search, "found": found, "size": size, "x": rng.choice(list("abc"), n)}
    blocks = [["search", "found", "size"]]
    pmf = rj.estimate(
        columns, rank=2, solver="bayes", blocks=blocks, not_applicable=False, random_state=0
    ).pmf
    for name in ("search", "found"):
        share = pmf.marginal([name])[pmf.domain[name].levels.index("does not apply")]
        assert share == pytest.approx(other.mean(), abs=0.01)
    assert pmf.prob({"found": "does not apply"}, {"search": "does not apply"}) > 0.85


def test_bounds_within_blocks_hold_the_truth(followed):
    _, result = followed
    low, high = result.pmf.interval(["change", "size"])
    truth = {("same", "none"): 1 / 3, ("less", "small"): 1 / 6, ("more", "large"): 1 / 6}
    for (change, size), value in truth.items():
        domain = result.pmf.domain
        cell = domain["change"].levels.index(change), domain["size"].levels.index(size)
        assert low[cell] - 0.01 < value < high[cell] + 0.01
        assert high[cell] - low[cell] < 0.12


def test_blocks_that_are_named_are_taken_by_every_solver():
    records = follow_up(800)
    named_blocks = [["size", "change"]]
    for solver in ("ml", "map", "bayes"):
        named = rj.estimate(records, 1, solver, blocks=named_blocks, random_state=0)
        assert sorted(named.pmf.blocks[0]) == ["change", "size"]
        assert len(named.pmf.blocks) == 1
        assert named.pmf.prob({"size": "none"}, {"change": "same"}) > 0.97
    assert rj.estimate(records, 1, "ml", random_state=0).pmf.blocks == ()
    model = rj.JointPMF(1, solver="map", blocks=named_blocks, random_state=0).fit(records)
    assert sorted(model.pmf_.blocks[0]) == ["change", "size"]


@pytest.mark.parametrize("blocks", ["always", [["q0"]], [["q0", "q1"], ["q1", "q2"]]])
def test_blocks_that_make_no_sense_are_refused(blocks):
    with pytest.raises(ValueError, match="lists of two names or more, no name in two of them"):
        rj.estimate(follow_up(100), 1, "ml", blocks=blocks)
    with pytest.raises(KeyError, match="No variable 'salary'"):
        rj.estimate(follow_up(100), 1, "ml", blocks=[["q0", "salary"]])


def test_models_without_local_dependence_get_no_blocks():
    truth = rj.datasets.asia()
    assert rj.estimate(truth.sample(4000, random_state=0), random_state=0).pmf.blocks == ()
    rng = np.random.default_rng(0)
    for seed in range(3):
        factors = [rng.dirichlet(np.ones(4), 3).T for _ in range(6)]
        data = rj.LowRankPMF(rng.dirichlet(np.ones(3)), factors).sample(1500, random_state=seed)
        assert rj.estimate(data, random_state=0).pmf.blocks == ()


@pytest.mark.filterwarnings("ignore::rejoint.Remark")
def test_what_classes_explain_makes_no_block():
    """With few classes the columns of mushrooms depend on each other, with some 20 they do not."""
    try:
        records = rj.Records.of(rj.datasets.mushroom())
    except rj.datasets.FetchError as reason:
        pytest.skip(str(reason))
    rows = np.random.default_rng(0).permutation(len(records))
    learn, other = (
        rj.Records(records.domain, records.codes[r]) for r in (rows[:4000], rows[4000:])
    )
    result, flat = (rj.estimate(learn, blocks=b, random_state=0).pmf for b in ("auto", False))
    gain = result.log_prob(other).mean() - flat.log_prob(other).mean()
    assert gain > -0.02  # -0.17 where blocks that held-out records disprove are kept
