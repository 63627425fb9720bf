"""Survey weights: how many records they are worth, and that their scale has no effect."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import rejoint as rj
from rejoint.estimation.data import InMemory, draw_classes
from rejoint.estimation.folds import make_folds
from rejoint.estimation.part_summary import merge_blocks_to_fit
from rejoint.estimation.policy import Policy
from rejoint.estimation.smoothing import smooth_levels
from rejoint.model import Model
from rejoint.records.survey_design import (
    DesignSums,
    RowWeights,
    SurveyDesign,
    kish_effect,
    read_groups,
)

pd = pytest.importorskip("pandas")


def survey(rows=400, seed=0, spread=0.8):
    """Records of two classes in strata and clusters, with weights that differ."""
    rng = np.random.default_rng(seed)
    factors = [rng.dirichlet(np.ones(3), 2).T for _ in range(5)]
    codes = np.array(rj.LowRankPMF([0.4, 0.6], factors).sample(rows, random_state=seed).codes)
    codes[rng.random(codes.shape) < 0.1] = -1
    frame = pd.DataFrame(codes, columns=list("abcde")).replace(-1, None).astype("Int64")
    frame["w"] = np.exp(rng.normal(0, spread, rows))
    frame["region"] = rng.integers(0, 4, rows)
    frame["town"] = rng.integers(0, 12, rows)
    return frame


def textbook(x, weight, strata=None, clusters=None):
    """Design effect of a share: variance between clusters within strata, with replacement."""
    n, z = len(x), weight * (x - weight @ x / weight.sum()) / weight.sum()
    strata = np.zeros(n) if strata is None else strata
    clusters = np.arange(n) if clusters is None else clusters
    spread = 0.0
    for h in np.unique(strata):
        mine = strata == h
        units = np.array([z[mine & (clusters == c)].sum() for c in np.unique(clusters[mine])])
        if len(units) == 1:
            spread += units[0] ** 2  # about the mean of all clusters
        else:
            spread += len(units) / (len(units) - 1) * ((units - units.mean()) ** 2).sum()
    share = weight @ x / weight.sum()
    return spread / (share * (1 - share) / (n - 1))


# --- the design effect ---------------------------------------------------------------------------


def test_without_groups_it_is_that_of_kish():
    r = rj.Records.of({"a": ["x", "y", "y"]}, survey_weight=[1, 1, 4])
    assert r.design == SurveyDesign(3, 1.5, 6.0)
    assert r.design.effective == 2.0
    np.testing.assert_allclose(r.sample_weight, [1 / 3, 1 / 3, 4 / 3], rtol=0, atol=2**-24)


@pytest.mark.parametrize("groups", [("region", "town"), ("town",), ("region",)])
def test_one_share_is_that_of_the_textbook(groups):
    frame = survey()
    x = (np.random.default_rng(1).random(400) < 0.2 + 0.15 * (frame["town"] % 4)).astype(int)
    asked = {"region": "strata", "town": "clusters"}
    options = {asked[g]: frame[g] for g in groups}
    found = rj.Records.of({"x": x}, survey_weight=frame["w"], **options).design
    weight = frame["w"].to_numpy()
    hand = textbook(x, weight, **{asked[g]: frame[g].to_numpy() for g in groups})
    assert found.effect == pytest.approx(max(hand, 1.0), rel=1e-9)
    assert found.strata == (4 if "region" in groups else 0)
    # Clusters of one label in two strata are two clusters.
    assert found.clusters == {("region", "town"): 48, ("town",): 12, ("region",): 0}[groups]


def test_two_clusters_by_hand():
    """p = 1/2; each cluster is all x or all y: z = +-1/4 each, V = 2 (1/16 + 1/16), of 1/4 / 3."""
    r = rj.Records.of({"a": list("xxyy")}, clusters=[1, 1, 2, 2])
    # 3 times the variance of four records: not more than four times.
    assert r.design.effect == pytest.approx(3.0 * 4 * 2 * 2 / 16)
    assert r.design.records == 4


def test_several_variables_are_pooled():
    frame = survey()
    a, b = (frame["a"] == 0).fillna(False).astype(int), (frame["town"] > 5).astype(int)
    both = {"a": a, "b": b}
    weight, clusters = frame["w"].to_numpy(), frame["town"].to_numpy()
    found = rj.Records.of(both, survey_weight=weight, clusters=clusters).design.effect
    shares = [weight @ x / weight.sum() for x in (a, b)]
    simple = np.array([p * (1 - p) for p in shares])
    hand = np.array([textbook(x.to_numpy(), weight, clusters=clusters) for x in (a, b)])
    assert found == pytest.approx(hand @ simple / simple.sum(), rel=1e-9)


def test_a_stratum_of_one_cluster_is_centered_at_the_mean_of_all():
    x, strata = np.array([0, 1, 0, 0, 1, 1]), np.array([0, 0, 0, 0, 1, 1])
    clusters = np.array([0, 0, 1, 1, 2, 2])
    found = rj.Records.of({"x": x}, strata=strata, clusters=clusters).design.effect
    assert found == pytest.approx(textbook(x, np.ones(6), strata, clusters))


@pytest.mark.parametrize("copies", [2, 5])
def test_records_that_are_there_several_times_count_once(copies):
    frame = survey(300).drop(columns=["w", "region", "town"])
    many = pd.concat([frame] * copies)
    clusters = np.tile(np.arange(300), copies)
    design = rj.Records.of(many, clusters=clusters).design
    assert design.effective == pytest.approx(300, rel=0.01)
    assert design.effect == pytest.approx(copies, rel=0.01)


def test_clusters_that_differ_by_chance_count_for_nothing():
    frame = survey(5000)
    found = rj.Records.of(frame.drop(columns=["w", "region"]), clusters="town").design.effect
    assert 1.0 <= found < 1.6


def test_what_stratification_gains_is_not_counted():
    x = np.repeat([0, 1], 50)
    assert rj.Records.of({"x": x}, strata=x).design.effect == 1.0


def test_records_without_weight_do_not_count():
    frame = survey()
    frame.loc[:99, "w"] = 0.0
    named = {"survey_weight": "w", "strata": "region", "clusters": "town"}
    all_rows, some = rj.Records.of(frame, **named), rj.Records.of(frame[100:], **named)
    assert all_rows.design.effect == some.design.effect
    assert all_rows.design.records == some.design.records == 300
    np.testing.assert_array_equal(all_rows.sample_weight[100:], some.sample_weight)


def test_copies_of_a_weighted_record():
    frame = survey(60)
    times = np.arange(60) % 3
    twice = frame.loc[np.repeat(np.arange(60), times)]
    named = {"survey_weight": "w", "strata": "region", "clusters": "town"}
    one = rj.Records.of(frame, sample_weight=times, **named)
    other = rj.Records.of(twice, **named)
    assert one.design.effect == pytest.approx(other.design.effect, rel=1e-9)
    assert one.design.records == other.design.records == times.sum()
    assert one.sample_weight.sum() == pytest.approx(other.sample_weight.sum(), rel=1e-6)


@given(st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=40), st.integers(1, 5))
def test_sums_of_parts_add_up(weight, size):
    rng = np.random.default_rng(len(weight))
    n, weight = len(weight), np.array(weight)
    codes = rng.integers(-1, 3, (n, 2)).astype(np.int8)
    strata, clusters = rng.integers(0, 3, n), rng.integers(0, 4, n)

    def rows(part):
        groups = (read_groups(g[part], len(weight[part]), "g") for g in (strata, clusters))
        return RowWeights(len(weight[part]), None, weight[part], *groups)

    whole, added, joined = DesignSums((3, 3)), DesignSums((3, 3)), DesignSums((3, 3))
    whole.add(codes, rows(slice(None)))
    for at in range(0, n, size):
        part = slice(at, at + size)
        added.add(codes[part], rows(part))
        alone = DesignSums((3, 3))
        alone.add(codes[part], rows(part))
        joined.join(alone)
    if len(whole.units) < 2:
        return
    for other in (added, joined):
        assert other.design().effect == pytest.approx(whole.design().effect, rel=1e-9)
        assert other.design().clusters == whole.design().clusters


@settings(max_examples=20)
@given(st.integers(0, 2**31))
def test_sparse_records_have_the_same_design(seed):
    frame = survey(50, seed)
    groups = {"survey_weight": frame["w"], "strata": frame["region"], "clusters": frame["town"]}
    r = rj.Records.of(frame[list("abcde")])
    dense, sparse = rj.Records.of(r, **groups), rj.SparseRecords.of(r, **groups)
    assert sparse.design.effect == pytest.approx(dense.design.effect, rel=1e-9)
    np.testing.assert_allclose(sparse.sample_weight, dense.sample_weight, rtol=1e-6)
    assert sparse.to_records().design == sparse.design


# --- the scale has no effect ---------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e3, 1e-7, np.pi])
@pytest.mark.parametrize(
    "more", [{}, {"clusters": "town"}, {"strata": "region", "clusters": "town"}]
)
def test_weights_are_the_same_bit_by_bit(scale, more):
    frame = survey(1000)
    one = rj.Records.of(frame, survey_weight="w", **more)
    other = rj.Records.of(frame.assign(w=frame["w"] * scale), survey_weight="w", **more)
    np.testing.assert_array_equal(one.sample_weight, other.sample_weight)
    assert one.design.text == other.design.text
    assert one.design.effect == other.design.effect


@pytest.mark.parametrize("solver", ["auto", "ml"])
def test_intervals_choice_rank_and_model_are_the_same(solver):
    frame = survey(300)
    options = {"survey_weight": "w", "clusters": "town", "strata": "region", "solver": solver}
    one = rj.estimate(frame, random_state=0, **options)
    other = rj.estimate(frame.assign(w=1000 * frame["w"]), random_state=0, **options)
    assert one.choice == other.choice
    assert "design effect" in one.choice
    assert one.pmf.rank == other.pmf.rank
    np.testing.assert_allclose(one.pmf.weights, other.pmf.weights, rtol=0, atol=1e-12)
    for a, b in zip(one.pmf.factors, other.pmf.factors, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)
    assert one.log_likelihood == pytest.approx(other.log_likelihood, abs=1e-9)
    if solver == "auto":
        mine, theirs = (r.pmf.interval("a", given={"b": 1}) for r in (one, other))
        np.testing.assert_allclose(mine.low, theirs.low, rtol=0, atol=1e-12)
        np.testing.assert_allclose(mine.high, theirs.high, rtol=0, atol=1e-12)


def test_the_selected_rank_is_the_same():
    frame = survey(300)
    one = rj.rank.select(frame, survey_weight="w", clusters="town", random_state=0, strata="region")
    frame["w"] *= 1000
    other = rj.rank.select(
        frame, survey_weight="w", clusters="town", random_state=0, strata="region"
    )
    assert one.words == other.words
    assert "design effect" in one.words
    np.testing.assert_array_equal(one.scores, other.scores)


def test_equal_weights_are_no_weights():
    frame = survey(300).drop(columns=["region", "town"])
    frame["w"] = 1234.5
    plain = frame.drop(columns="w")
    weighted = rj.estimate(frame, 2, survey_weight="w", random_state=0)
    without = rj.estimate(plain, 2, random_state=0)
    np.testing.assert_array_equal(weighted.pmf.weights, without.pmf.weights)
    assert weighted.choice.startswith(without.choice)
    mine, theirs = weighted.pmf.interval("a"), without.pmf.interval("a")
    np.testing.assert_array_equal(mine.high, theirs.high)


def test_auto_decides_by_the_effective_number():
    """So many people that counts would need no draws: the records are still few."""
    frame = survey(200).assign(w=lambda f: f["w"] * 1e6)
    few = rj.estimate(frame, 1, survey_weight="w", n_init=1, random_state=0)
    assert few.posterior is not None
    assert few.choice.startswith("Bayes: 1")
    many = rj.estimate(frame, 1, sample_weight="w", n_init=1, random_state=0)
    assert many.posterior is None


def test_intervals_allow_for_the_design_effect():
    frame = survey(600, spread=1.0).drop(columns=["region", "town"])
    plain = rj.estimate(frame.drop(columns="w"), 2, random_state=0).pmf
    weighted = rj.estimate(frame, 2, survey_weight="w", random_state=0)
    effect = rj.Records.of(frame, survey_weight="w").design.effect
    # Forty draws say little of the width of one bound: those of all variables together.
    widths = [
        np.mean([np.ptp(p.interval(name), axis=0).mean() for name in plain.domain.names])
        for p in (plain, weighted.pmf)
    ]
    assert widths[1] / widths[0] == pytest.approx(np.sqrt(effect), rel=0.25)


# --- what is done with weights that are not whole ------------------------------------------------


def test_draws_of_fractions_have_the_variance_of_copies():
    rng = np.random.default_rng(0)
    model = Model.of([0.3, 0.7], [[[0.6, 0.4], [0.4, 0.6]]])
    codes, weight = np.zeros((400, 1), dtype=np.int8), np.full(400, 0.4)
    found = np.array([draw_classes(codes, weight, model, rng, 1).counts[0] for _ in range(800)])
    np.testing.assert_allclose(found.sum(axis=1), 160.0)  # rounding alone: sd of 9.8
    share = 0.18 / (0.18 + 0.28)
    assert found[:, 0].mean() == pytest.approx(160 * share, rel=0.02)
    assert found[:, 0].var() == pytest.approx(160 * share * (1 - share), rel=0.2)


def test_folds_hold_out_whole_records():
    r = rj.Records.of({"a": list("xxxxyyyy"), "b": list("xyxyxyxy")}, survey_weight=range(1, 9))
    seen = []
    for fold in make_folds(InMemory.of(r), 4, np.random.default_rng(0)):
        seen += fold.mass.tolist()
        assert fold.learn.total + fold.mass.sum() == pytest.approx(r.design.effective)
    np.testing.assert_allclose(sorted(seen), np.sort(r.sample_weight))


def test_folds_hold_out_whole_clusters():
    frame = survey(200)
    r = rj.Records.of(frame, survey_weight="w", strata="region", clusters="town")
    data = InMemory.of(r)
    for fold in make_folds(data, 5, np.random.default_rng(0)):
        assert fold.learn.total + fold.mass.sum() == pytest.approx(r.design.effective, rel=1e-6)
        assert fold.spread.sum() >= (fold.mass**2).sum()
    part = data.observations().divide(5, np.random.default_rng(0))
    assert all(len(np.unique(part[r.cluster_keys == key])) == 1 for key in set(r.cluster_keys))
    assert len(set(r.cluster_keys)) == r.design.clusters == 48


def test_copies_in_clusters_do_not_raise_the_rank():
    """Held out one by one, copies of a record would tell the model what it is judged by."""
    rng = np.random.default_rng(0)
    factors = [rng.dirichlet(np.ones(3), 3).T for _ in range(8)]
    r = rj.LowRankPMF(rng.dirichlet(np.full(3, 3.0)), factors).sample(400, random_state=0)
    many = rj.Records(r.domain, np.repeat(r.codes, 4, axis=0))
    found = rj.rank.select(many, clusters=np.repeat(np.arange(400), 4), random_state=0)
    assert found.rank <= rj.rank.select(r, random_state=0).rank + 1


def test_smoothness_is_judged_by_whole_records():
    r = rj.Records.of({"a": [1, 2, 3, 4] * 10}, survey_weight=np.arange(1, 41))
    for fold in make_folds(InMemory.of(r), 3, np.random.default_rng(0)):
        learn, judge = fold.learn, fold.judge
        assert np.isin(judge.weight, r.sample_weight).all()  # none is divided
        assert learn.total + judge.total == pytest.approx(r.design.effective, rel=1e-6)


def test_smooth_columns_draw_fractions_in_full():
    frame = survey(200)
    r = rj.Records.of(frame[["a", "b"]], kinds={"a": "ordinal"}, survey_weight=frame["w"])
    smooth = smooth_levels(InMemory.of(r), (0,), 0.3, Policy())
    model = Model.of([0.4, 0.6], [np.full((3, 2), 1 / 3)] * 2)
    drawn = smooth.draw(model, np.random.default_rng(0))
    np.testing.assert_allclose(drawn.levels[:3].sum(), smooth.level_totals[:3].sum())


def test_records_of_fractions_are_not_merged_to_fit_into_memory():
    codes = np.zeros((1000, 3), dtype=np.int8)
    domain = rj.Domain.of_shape([2, 2, 2])
    none, some = np.empty(0, dtype=np.int64), np.arange(1000)
    assert merge_blocks_to_fit(((codes, np.full(1000, 2.0), none),), domain, 500) is not None
    assert merge_blocks_to_fit(((codes, np.full(1000, 0.4), none),), domain, 500) is None
    assert merge_blocks_to_fit(((codes, np.full(1000, 2.0), some),), domain, 500) is None


# --- doors ---------------------------------------------------------------------------------------


def test_records_keep_their_design():
    frame = survey()
    r = rj.Records.of(frame, survey_weight="w", strata="region", clusters="town")
    assert r.names == tuple("abcde")
    assert r.merged().design == r.project(["a", "b"]).design == r.design
    wide = rj.Domain.of({name: 4 for name in "abcde"})
    assert rj.Records.of(r, domain=wide).design == r.design
    assert rj.scan(r).design == r.design


def test_values_leave_the_column_among_the_variables():
    frame = survey()
    r = rj.Records.of(frame, survey_weight="w", strata=frame["region"], clusters="town")
    assert r.names == ("a", "b", "c", "d", "e", "region")


def test_survey_weights_take_the_place_of_other_weights():
    frame = survey()
    r = rj.Records.of(frame[list("abcde")], sample_weight=np.arange(400.0))
    again = rj.Records.of(r, survey_weight=frame["w"])
    fresh = rj.Records.of(frame[list("abcde")], survey_weight=frame["w"])
    assert again.design == fresh.design
    np.testing.assert_array_equal(again.sample_weight, fresh.sample_weight)


def test_tables_count_effective_records():
    frame = survey().drop(columns=["region", "town"])
    m = rj.Marginals.count(frame, order=1, survey_weight="w")
    r = rj.Records.of(frame, survey_weight="w")
    np.testing.assert_allclose(m["a"] / m["a"].sum(), r.marginal("a"))
    assert m.totals.max() < r.design.effective < 400


def test_a_pack_keeps_the_design(tmp_path):
    frame = survey().astype({"a": "float"})
    scan = rj.scan(
        lambda: iter([frame[:150], frame[150:]]),
        survey_weight="w",
        strata="region",
        clusters="town",
    )
    packed = scan.pack(tmp_path / "pack")
    assert packed.design == scan.design == rj.scan(tmp_path / "pack").design
    total = sum(part.sample_weight.sum() for part in packed)
    whole = rj.Records.of(frame, survey_weight="w", strata="region", clusters="town")
    for one in (scan, packed):
        keys = np.concatenate([part.cluster_keys for part in one])
        np.testing.assert_array_equal(keys, whole.cluster_keys)
    assert total == pytest.approx(scan.design.effective, rel=1e-6)


@pytest.mark.parametrize("estimator", [rj.JointPMF, rj.JointImputer])
def test_estimators(estimator):
    frame = survey(200)
    X = frame[list("abcde")]
    options = {"survey_weight": frame["w"], "strata": frame["region"], "clusters": frame["town"]}
    model = estimator(2, random_state=0).fit(X, **options)
    assert "Survey design of 48 clusters in 4 strata" in model.result_.choice
    again = estimator(2, random_state=0).fit(X, **options | {"survey_weight": 1e3 * frame["w"]})
    np.testing.assert_array_equal(model.pmf_.weights, again.pmf_.weights)
    with pytest.raises(TypeError, match="give the values"):
        estimator(2).fit(frame, survey_weight="w")


def test_solvers_on_tables_say_the_design_effect():
    frame = survey(200)
    model = rj.JointPMF(2, "admm", random_state=0).fit(
        frame[list("abcde")].fillna(0), survey_weight=frame["w"]
    )
    assert "Survey weights: design effect" in model.result_.choice


def test_raked_weights_are_survey_weights():
    frame = survey(300)
    r = rj.Records.of(frame[["a", "b", "c"]])
    known = rj.Marginals.from_tables({"a": {0: 20, 1: 30, 2: 50}})
    raked = rj.rake(r, known)
    fitted = rj.estimate(r, 2, survey_weight=raked.weights, random_state=0)
    weighted = rj.Records.of(r, survey_weight=raked.weights)
    assert weighted.design.effect == pytest.approx(raked.design_effect, rel=1e-9)
    assert f"design effect {raked.design_effect:.3g}" in fitted.choice
    np.testing.assert_allclose(weighted.marginal("a"), [0.2, 0.3, 0.5], atol=1e-5)
    np.testing.assert_allclose(fitted.pmf.marginal("a"), [0.2, 0.3, 0.5], atol=0.03)
    assert kish_effect(raked.weights) == raked.design_effect


# --- errors --------------------------------------------------------------------------------------

A = {"a": ["x", "y", "y"]}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"survey_weight": [1, 2]}, "survey_weight must be one number for each of the 3 rows"),
        ({"survey_weight": [1, -2, 1]}, "survey_weight must be finite and nonnegative, but row 1"),
        ({"survey_weight": [1, 2, None]}, "survey_weight must be finite .* row 2 has nan"),
        ({"survey_weight": [0, 0, 0]}, "survey_weight is zero in every row"),
        ({"survey_weight": [1, 2, 3], "sample_weight": [0, 0, 0]}, "sample_weight is zero"),
        ({"strata": [1, 2]}, "strata must have one value for each of the 3 rows, not 2"),
        ({"strata": [1, None, 2]}, "strata: row 1 has no value"),
        ({"clusters": ["p", "q", None]}, "clusters: row 2 has no value"),
        ({"clusters": [1.0, np.nan, 2.0]}, "clusters: row 1 has no value"),
        ({"clusters": [1, 1, 1]}, "clusters: all records are in one cluster"),
        ({"clusters": "b"}, "clusters: there is no column 'b'"),
    ],
)
def test_what_is_wrong_is_said(options, said):
    for door in (rj.Records.of, rj.estimate, rj.rank.select, rj.Marginals.count):
        with pytest.raises((ValueError, KeyError), match=said):
            door(A, **options)


def test_a_scan_takes_names_and_says_what_is_wrong():
    def chunks():
        return iter([{"a": ["x", "y"], "w": [0, 0]}, {"a": ["y"], "w": [0]}])

    with pytest.raises(ValueError, match="survey_weight is zero in every row"):
        rj.scan(chunks, survey_weight="w")
    with pytest.raises(TypeError, match="clusters must be the name of a column"):
        rj.scan(chunks, clusters=[1, 2, 3])
    with pytest.raises(KeyError, match="strata: there is no column 'region'"):
        rj.scan(chunks, strata="region")
    with pytest.raises(ValueError, match=r"survey_weight must be finite.* row 2 has -1"):
        rj.scan(
            lambda: iter([{"a": ["x", "y"], "w": [1, 1]}, {"a": ["y"], "w": [-1]}]),
            survey_weight="w",
        )
    with pytest.raises(ValueError, match="weights of their own"):
        rj.scan(lambda: iter([rj.Records.of(A)]), survey_weight="w")
    scan = rj.scan(lambda: iter([A]))
    with pytest.raises(ValueError, match="give them to scan"):
        rj.estimate(scan, survey_weight="w")
    with pytest.raises(ValueError, match="give them to scan"):
        rj.Marginals.count(scan, clusters="w")


def test_records_have_no_columns_to_name():
    with pytest.raises(TypeError, match="Records do not hold that column; give the values"):
        rj.estimate(rj.Records.of(A), survey_weight="w")


@pytest.mark.parametrize("weight", ["sample_weight", "survey_weight"])
def test_bins_are_those_of_the_weighted_population(tmp_path, weight):
    y = np.random.default_rng(1).lognormal(3, 1, 3000)
    path = tmp_path / "y.csv"
    path.write_text("y,w\n" + "".join(f"{v},{v}\n" for v in y.tolist()))
    options = {"bins": {"y": 3}, weight: "w"}
    doors = [
        rj.Records.of({"y": y, "w": y}, **options).domain,
        rj.read(path, **options).domain,
        rj.scan(path, **options).domain,
        rj.scan(path, columns=["y"], **options).domain,
    ]
    assert all(domain == doors[0] for domain in doors)
    pmf = rj.estimate({"y": y, "w": y}, rank=1, solver="ml", **options).pmf
    assert pmf.ask("E(y)").value == pytest.approx(np.average(y, weights=y), rel=1e-6)
    assert pmf.ask("P(y > 60)").value == pytest.approx(y[y > 60].sum() / y.sum(), abs=0.02)
    # Bins hold equal shares of the population.
    assert pmf.marginal("y") == pytest.approx([1 / 3] * 3, abs=0.01)


@pytest.mark.filterwarnings("ignore::rejoint.Remark")
def test_scale_of_survey_weights_leaves_bins_as_they_are():
    rng = np.random.default_rng(2)
    y, w = rng.lognormal(3, 1, 300), rng.lognormal(0, 1, 300)
    one, other = (rj.Records.of({"y": y}, survey_weight=k * w) for k in (1.0, 1000.0))
    assert one.domain == other.domain
    assert len(one.domain["y"]) == 15  # by the number of records, not by their weight
    cells = sparse.csr_array(y[:, None])
    one, other = (rj.SparseRecords.of(cells, survey_weight=k * w) for k in (1.0, 1000.0))
    assert one.domain == other.domain
