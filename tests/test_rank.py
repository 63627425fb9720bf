"""Selection of the rank: folds, growth, scores, and the sentence that explains it."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import pyplot

import rejoint as rj
from rejoint.estimation import Policy, smoothing
from rejoint.estimation.data import InMemory
from rejoint.estimation.folds import make_folds
from rejoint.estimation.priors import first_concentrations, make_prior
from rejoint.estimation.starts import random_model
from rejoint.rank.criteria import (
    RankCriterion,
    largest_rank,
    ranks_to_try,
    search_ranks,
)
from rejoint.rank.curve import Curve, HeldOutSearch, merge_down
from rejoint.rank.select import select_rank
from rejoint.rank.selection import (
    CriterionText,
    describe_selection,
)
from rejoint.solver import FitInterrupted, Limits
from rejoint.solver.session import Session


def three_classes() -> rj.LowRankPMF:
    """Three classes that six variables tell apart well."""
    rng = np.random.default_rng(5)
    factors = [rng.dirichlet(np.ones(4), size=3).T for _ in range(6)]
    return rj.LowRankPMF([0.5, 0.3, 0.2], factors)


@pytest.fixture(scope="module")
def records():
    return three_classes().sample(3000, random_state=1)


@pytest.fixture(scope="module")
def chosen(records):
    return rj.rank.select(records, random_state=0)


def test_finds_the_rank(chosen):
    assert chosen.rank == 3
    assert chosen.criterion == "heldout"
    assert not chosen.interrupted


def test_the_curve(chosen):
    assert list(chosen.ranks) == sorted(set(chosen.ranks))
    assert chosen.scores.shape == chosen.errors.shape == (len(chosen.ranks),)
    best = chosen.ranks.index(chosen.rank)
    assert chosen.scores[best] >= chosen.scores.max() - 1 / 3000
    assert chosen.errors[best] == 0
    # It went beyond the best, and not on and on.
    assert 3 < chosen.ranks[-1] <= 8


def test_score_is_the_held_out_mean(chosen):
    """Near the true model's own mean log-probability on fresh records."""
    truth = three_classes()
    fresh = truth.log_prob(truth.sample(100_000, random_state=2)).mean()
    score = chosen.scores[chosen.ranks.index(3)]
    # sd of log p is about 1.3: 0.024 for 3,000 records; estimation costs p / 2M = 0.01 at most.
    assert abs(score - fresh) < 0.08


def test_a_model_to_start_from(chosen, records):
    assert chosen.pmf.rank == 3
    best = rj.estimate(records, 3, "map", random_state=0)
    # It has learned from four fifths of the records.
    assert rj.metrics.tensor_error(best.pmf, chosen.pmf) < 0.15


def test_repeatable(records, chosen):
    again = rj.rank.select(records, random_state=0)
    assert again.rank == chosen.rank
    assert np.array_equal(again.scores, chosen.scores)


def test_missing_values(records):
    incomplete = rj.datasets.remove_cells(records, 0.2, random_state=0)
    assert rj.rank.select(incomplete, random_state=0).rank == 3


@pytest.mark.parametrize("criterion", ["bic", "evidence"])
def test_other_criteria(records, criterion):
    found = rj.rank.select(records, criterion=criterion, random_state=0)
    assert found.rank == 3
    assert found.criterion == criterion
    others = np.array(found.ranks) != 3
    assert np.allclose(found.errors[others], 1 / 3000)


def test_the_table_is_that_of_maximum_likelihood_fits(records):
    """By the log-likelihood of the estimator, and by the posteriors of all records."""
    found = rj.rank.select(records, [1, 2, 3], criterion="bic", random_state=0)
    table, n = found.table, len(records)
    assert table.ranks == (1, 2, 3)
    for place, rank in enumerate(table.ranks):
        model = rj.JointPMF(rank=rank, solver="ml", random_state=0).fit(records)
        row = {name: values[place] for name, values in table.columns.items()}
        best = float(model.pmf_.log_prob(records).sum())
        assert row["log_likelihood"] == pytest.approx(best, abs=0.02)
        assert row["parameters"] == rank * (6 * 3 + 1) - 1
        assert row["bic"] == pytest.approx(model.bic(records), abs=0.05)
        assert row["aic"] == pytest.approx(model.aic(records), abs=0.05)
        assert row["abic"] == pytest.approx(
            -2 * best + row["parameters"] * np.log((n + 2) / 24), abs=0.05
        )
        if rank > 1:
            shares = classes_of(model.pmf_, records)
            entropy = -np.sum(shares * np.log(np.maximum(shares, 1e-300)))
            assert row["entropy"] == pytest.approx(1 - entropy / (n * np.log(rank)), abs=1e-3)
    assert np.isnan(table.columns["entropy"][0])
    assert found.scores * -2 * n == pytest.approx(table.columns["bic"])


def classes_of(pmf, records):
    """Posterior of the classes of each record, by hand."""
    logs = np.log(pmf.weights) + sum(
        np.log(np.maximum(factor, 1e-300))[records.codes[:, n]]
        for n, factor in enumerate(pmf.factors)
    )
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


def test_each_criterion_chooses_its_best(records):
    bic = rj.rank.select(records, [1, 2, 3, 4, 5], criterion="bic", random_state=0)
    for name in ("aic", "abic"):
        other = rj.rank.select(records, [1, 2, 3, 4, 5], criterion=name, random_state=0)
        assert other.criterion == name
        np.testing.assert_allclose(other.table.columns["aic"], bic.table.columns["aic"])
        values = other.table.columns[name]
        assert other.table.best[name] == 1 + int(np.argmin(values))
        assert values[other.rank - 1] <= values.min() + 2


def test_several_criteria_in_one_table(records):
    found = rj.rank.select(records, criterion=["bic", "heldout", "aic"], random_state=0)
    assert found.criterion == "bic"
    assert found.rank == 3
    assert {"bic", "aic", "heldout", "error"} <= set(found.table.columns)
    assert not any(np.isnan(values[1:]).any() for values in found.table.columns.values())
    alone = rj.rank.select(records, criterion="bic", random_state=0)
    np.testing.assert_array_equal(alone.table.columns["bic"], found.table.columns["bic"])
    lines = str(found).splitlines()
    assert lines[0].split()[:3] == ["rank", "log-likelihood", "parameters"]
    assert len(lines) == 1 + len(found.ranks) + 1
    three = lines[1 + found.ranks.index(3)]
    assert three.count("*") >= 2
    assert lines[-1] == found.words


def test_a_map_fit_has_no_information_criterion(records):
    with pytest.raises(ValueError, match="Information criteria need maximum-likelihood"):
        rj.rank.select(records, [1, 2], criterion="bic", solver="map")


def test_bic_finds_a_class_that_a_prior_hides():
    """Scored at fits with a prior, BIC took fewer classes than it does at the maximum."""
    rng = np.random.default_rng(11)
    factors = [rng.dirichlet(np.full(2, 0.4), 4).T for _ in range(8)]
    data = rj.LowRankPMF([0.45, 0.3, 0.15, 0.1], factors).sample(600, random_state=0)
    found = rj.rank.select(data, [2, 3, 4, 5], criterion="bic", random_state=0)
    by_hand = [
        rj.JointPMF(rank=rank, solver="ml", random_state=0).fit(data).bic(data)
        for rank in found.ranks
    ]
    assert found.table.best["bic"] == found.ranks[int(np.argmin(by_hand))]


def test_criteria_are_those_of_stepmix():
    stepmix = pytest.importorskip("stepmix")
    data = three_classes().sample(500, random_state=1)
    found = rj.rank.select(data, [1, 2, 3], criterion="bic", random_state=0)
    for place, rank in enumerate(found.ranks):
        options = {"measurement": "categorical", "n_init": 3, "random_state": 0}
        limits = {"max_iter": 2000, "abs_tol": 1e-9, "progress_bar": 0, "verbose": 0}
        other = stepmix.StepMix(n_components=rank, **options, **limits).fit(data.codes)
        row = {name: values[place] for name, values in found.table.columns.items()}
        assert row["parameters"] == other.n_parameters
        assert row["log_likelihood"] == pytest.approx(500 * other.score(data.codes), abs=0.05)
        assert row["bic"] == pytest.approx(other.bic(data.codes), abs=0.1)
        assert row["aic"] == pytest.approx(other.aic(data.codes), abs=0.1)
        if rank > 1:
            certain = other.relative_entropy(data.codes)
            assert row["entropy"] == pytest.approx(certain, abs=2e-3)


def test_a_likelihood_without_prior(records):
    found = rj.rank.select(records, [1, 3], solver="ml", random_state=0)
    assert found.rank == 3


def test_solver_object(records):
    solver = rj.estimation.Em(limits=Limits(max_steps=20, exact=-1.0))
    assert rj.rank.select(records, [1, 3], solver=solver, random_state=0).rank == 3


def test_cells_that_were_never_observed_exclude_a_model_without_a_prior():
    """Levels that occur once are impossible when held out: -inf for every rank, and no crash."""
    rows = [[i, i % 2] for i in range(12)]
    found = rj.rank.select(rows, [1, 2], solver="ml", folds=3, random_state=0)
    assert np.all(found.scores == -np.inf)
    assert found.rank == 1
    assert found.tied == (1, 2)


# --- words ---------------------------------------------------------------------------------


def test_words_of_a_clear_choice(chosen):
    assert re.match(
        r"Rank 3 of 1, 2, 3, 4.* has the highest held-out log-likelihood per record, -\d+\.\d+\.",
        chosen.words,
    )


def test_words_say_what_cannot_be_told_apart():
    scores = {1: 0.9, 2: 1.0, 3: 0.95}
    words = describe_selection(2, scores, [1, 2, 3], CriterionText("x", "y"))
    assert "Ranks 1 and 3 cannot be distinguished from it: within y." in words


def test_tied_are_within_an_error(chosen):
    own = chosen.scores[chosen.ranks.index(chosen.rank)]
    for rank, score, error in zip(chosen.ranks, chosen.scores, chosen.errors, strict=True):
        assert (rank in chosen.tied) == (own - score <= error)


class Points(RankCriterion):
    """A judge whose scores and errors are given."""

    def __init__(self, points, slack, scale):
        super().__init__("x", CriterionText("value", "one slack", scale), slack, 0)
        self.points = points

    def fit(self, rank):
        return self.points[rank][0]

    def pmf(self, rank):
        return None

    def error(self, chosen, other):
        return 0.0 if chosen == other else max(self.points[other][1], self.slack)


def test_a_rank_that_is_not_the_best_is_not_said_to_be():
    """The curve that once was summed up as "Rank 10 has the best held-out log-likelihood"."""
    scores = {8: -6.0151, 10: -6.0121, 12: -6.0120, 15: -6.0119}
    judge = Points({rank: (score, 0.0012) for rank, score in scores.items()}, 0.0003, 1.0)
    found = search_ranks(judge, list(scores), Session(np.random.default_rng(0)))
    assert found.words == (
        "Rank 10 of 8, 10, 12 and 15 is the smallest within one slack of the highest value, which "
        "rank 15 has (-6.01210 against -6.01190). Ranks 12 and 15 cannot be distinguished from it: "
        "within one slack."
    )


def test_a_rank_that_excludes_a_held_out_record_is_not_tied():
    """Rank 1 never gives these records probability zero, rank 2 without a prior does."""
    data = InMemory.of(rj.Records.of([[0, 1], [1, 0], [0, 0], [1, 1]] * 2))
    judge = HeldOutSearch(data, Session(np.random.default_rng(0)), parts=2)
    size = len(judge.mode.mass)
    judge.mode.logs = {1: np.full(size, -3.0), 2: np.r_[np.full(size - 1, -1.0), -np.inf]}
    judge.pmf = lambda rank: None
    found = judge.conclude()
    assert found.tied == (1,)
    assert np.isfinite(found.errors).all()
    assert "The other is worse by more than one standard error" in found.words


def test_bic_that_is_shown_is_the_bic(records):
    found = rj.rank.select(records, [1, 3], criterion="bic", random_state=0)
    shown = re.search(r"has the lowest BIC, ([\d,.]+)\. The other is worse", found.words)[1]
    model = rj.JointPMF(rank=3, solver="ml", random_state=0).fit(records)
    assert float(shown.replace(",", "")) == pytest.approx(model.bic(records), abs=1)


def test_words_of_the_largest_tried(records):
    found = rj.rank.select(records, [1, 2], random_state=0)
    assert found.rank == 2
    assert "It is the largest that was tried: larger ones may be better." in found.words


def test_words_of_one_rank(records):
    found = rj.rank.select(records, [2], criterion="bic", random_state=0)
    assert re.fullmatch(r"Rank 2 is the only one that was tried: BIC \d\d,\d+\. It .*", found.words)


def test_nothing_to_choose():
    found = rj.rank.select([["a"], ["b"], ["a"]])
    assert found.rank == 1
    assert found.words.startswith("Rank 1: at most one variable has more than one level")
    assert rj.rank.select([["a", "b"]]).words.startswith("Rank 1: there is one record")


# --- errors --------------------------------------------------------------------------------


@pytest.mark.parametrize("ranks", [[], [0], [1.5], [True], 3.5])
def test_ranks_are_whole_numbers(records, ranks):
    with pytest.raises(ValueError, match="ranks must be whole numbers of at least 1"):
        rj.rank.select(records, ranks)


def test_unknown_criterion(records):
    with pytest.raises(ValueError, match="criterion='icl' is not supported; use 'heldout'"):
        rj.rank.select(records, criterion=["bic", "icl"])
    with pytest.raises(ValueError, match="criterion is empty; use 'heldout'"):
        rj.rank.select(records, criterion=[])


def test_unknown_solver(records):
    with pytest.raises(ValueError, match="solver='admm' cannot score ranks; give 'map', 'ml'"):
        rj.rank.select(records, solver="admm")


@pytest.mark.parametrize(("name", "value"), [("folds", 1), ("n_init", 0), ("folds", 2.5)])
def test_numbers(records, name, value):
    with pytest.raises(ValueError, match=f"{name} must be a whole number of at least"):
        rj.rank.select(records, **{name: value})


def test_one_record_cannot_be_held_out():
    with pytest.raises(ValueError, match="none can be held out"):
        rj.rank.select([["a", "b"]], [1, 2])


@pytest.mark.parametrize("on_interrupt", ["raise", "return"])
def test_interrupted(records, monkeypatch, on_interrupt):
    """Ctrl-C keeps what was scored."""
    fit = HeldOutSearch.fit

    def until_three(self, rank):
        if rank == 3:
            raise KeyboardInterrupt
        return fit(self, rank)

    monkeypatch.setattr(HeldOutSearch, "fit", until_three)
    if on_interrupt == "return":
        found = rj.rank.select(records, random_state=0, on_interrupt="return")
    else:
        with pytest.raises(FitInterrupted) as caught:
            rj.rank.select(records, random_state=0)
        found = caught.value.result
    assert found.ranks == (1, 2)
    assert found.interrupted
    assert "The search was interrupted" in found.words


def test_counts_and_rows_are_the_same(records):
    """A table of counts scores as the rows behind it do."""
    few = records.project(["x0", "x1", "x2"])
    merged = few.merged()
    assert len(merged) < len(few)
    one = rj.rank.select(few, [1, 2], random_state=0)
    other = rj.rank.select(merged, [1, 2], random_state=0)
    assert np.allclose(one.scores, other.scores, rtol=1e-12)
    assert np.allclose(one.errors, other.errors)


def test_error_is_that_of_paired_differences(records):
    """By hand, from the differences of the records."""
    parts = list(make_folds(InMemory.of(records), 2, np.random.default_rng(0)))
    curve, rng = Curve(parts), np.random.default_rng(1)
    curve.logs = {rank: rng.normal(-3.0, 1.0, len(curve.mass)) for rank in (1, 3)}
    apart = np.repeat(curve.logs[3] - curve.logs[1], curve.mass.astype(int))
    assert curve.error(3, 1) == pytest.approx(apart.std() / np.sqrt(len(apart)))
    assert curve.error(3, 3) == 0
    curve.logs[4] = curve.logs[3]
    assert curve.error(3, 4) == 1 / len(apart)


# --- growth --------------------------------------------------------------------------------


def test_ranks_grow():
    found = list(ranks_to_try(1300))
    assert found[:6] == [1, 2, 3, 5, 8, 13]
    assert found[-1] == 1300
    assert np.all(np.diff(found) > 0)


def test_no_rank_beyond_what_any_joint_needs():
    rows = [[0, 0, 0], [1, 1, 1], [0, 2, 3]]
    assert largest_rank(InMemory.of(rj.Records.of(rows * 10))) == 6
    assert largest_rank(InMemory.of(rj.Records.of(rows))) == 3


def test_rare_combinations_are_found():
    """Asia's rare diseases: from random classes EM takes them for noise at every rank."""
    data = rj.datasets.asia().sample(20_000, random_state=2)
    assert rj.rank.select(data, random_state=0).rank >= 4


@pytest.mark.parametrize("weight", [None, 1.5])
def test_of_very_many_rows_some_are_drawn(records, weight):
    weights = None if weight is None else np.full(len(records), weight)
    data = rj.Records(records.domain, records.codes, weights)
    found = rj.rank.select(data, [1, 3], random_state=0, policy=Policy(learn_rows=1000))
    assert found.rank == 3
    rows = len(records.merged())
    assert rows > 1000
    used = f"1,000 of the {rows:,} distinct records, drawn at random"
    assert found.words.endswith(f"The search learned from {used}.")


# --- plot, and estimate with rank="auto" ---------------------------------------------------


def test_curve_is_drawn(chosen):
    ax = rj.plots.rank_curve(chosen)
    assert ax.get_ylabel() == "held-out log-likelihood per record"
    drawn = sorted(x for line in ax.containers for x in line.lines[0].get_xdata())
    assert drawn == list(chosen.ranks)
    low, high = ax.get_ylim()
    assert low < chosen.scores.max() < high
    pyplot.close("all")


def test_curve_marks_ties():
    tied = rj.rank.Selection(
        2, (1, 2, 3), np.array([0.0, 2.0, 1.9]), np.array([0.5, 0.0, 0.2]), (2, 3), "bic", ""
    )
    own = pyplot.subplots()[1]
    assert rj.plots.rank_curve(tied, ax=own) is own
    assert [text.get_text() for text in own.get_legend().get_texts()] == ["cannot be distinguished"]
    pyplot.close("all")


def test_estimate_selects_its_rank(records):
    result = rj.estimate(records, solver="ml", random_state=0)
    assert result.pmf.rank == 3
    assert result.choice.startswith("Rank 3 of ")


@pytest.mark.parametrize("data", [{"a": ["x", "y", "x", None]}, {"a": ["x"], "b": ["y"]}])
def test_bayes_where_there_is_no_rank_to_choose(data):
    result = rj.estimate(data, random_state=0)
    assert result.pmf.rank == 1
    assert result.posterior is not None
    assert "nothing for hidden classes to explain" in result.choice


def test_a_wrong_number_of_starts_is_refused_before_the_rank_is_chosen(records, monkeypatch):
    monkeypatch.setattr(HeldOutSearch, "fit", None)
    with pytest.raises(ValueError, match="n_init must be a whole number of at least 1"):
        rj.estimate(records, n_init=0)


# --- the bounded search ---------------------------------------------------------------------------


def test_a_budget_ends_the_search(records):
    found = rj.rank.select(records, budget=1e-9, random_state=0)
    assert found.ranks == (1,)
    assert "The search budget ended there" in found.words
    more = rj.rank.select(records, budget=60, random_state=0)
    assert more.rank == 3
    for wrong in (0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="budget must be a number of seconds above 0, got"):
            rj.rank.select(records, budget=wrong)


@given(st.integers(0, 10**6), st.integers(20, 600), st.integers(1, 30))
@settings(max_examples=15, deadline=None)
def test_no_more_than_one_class_for_ten_records(seed, size, classes):
    rng = np.random.default_rng(seed)
    factors = [rng.dirichlet(np.full(4, 0.3), classes).T for _ in range(6)]
    data = rj.LowRankPMF(rng.dirichlet(np.ones(classes)), factors).sample(size, random_state=seed)
    found = rj.estimate(data, random_state=seed).selection
    most = max(size // 10, 1)
    assert max(found.ranks) <= most
    if found.ensemble is not None:
        assert max(*found.ensemble.ranks, found.plan.rank) <= most


def test_progress_tells_rank_and_time(records, monkeypatch):
    ticks = iter(range(10**9))
    monkeypatch.setattr("rejoint.messages.perf_counter", lambda: 0.5 * next(ticks))
    lines = []
    session = Session(np.random.default_rng(0), lines.append)
    found = select_rank(InMemory.of(records), session=session)
    heads = [line for line in lines if re.match(r"rank \d+, \d+ of at most \d+", line)]
    tried = dict(re.match(r"rank (\d+), (\d+) of", line).groups() for line in heads)
    assert tried["1"] == "1"
    assert tried["3"] == "3"
    assert "about" not in heads[0]
    assert any(re.search(r", about .* left: part 1, sweep 1 of \d+$", line) for line in heads)
    merged = r"rank \d+, by merging classes"
    assert any(re.fullmatch(merged, line) for line in lines)
    given = []
    session = Session(np.random.default_rng(0), given.append)
    select_rank(InMemory.of(records), [1, 2], criterion=["bic"], session=session)
    assert given[0] == "rank 1, 1 of 2"
    assert any(line.startswith("rank 2, 2 of 2, about ") for line in given)
    assert found.rank == 3


def test_no_model_has_seen_the_records_that_judge_it(records):
    found = HeldOutSearch(InMemory.of(records), Session(np.random.default_rng(0)))
    for fold in found.folds:
        total = fold.learn.total + float(fold.mass.sum())
        assert total == pytest.approx(len(records))
    found.fit(1)
    found.fit(2)
    for fold, trial in zip(found.folds, found.trials[2], strict=True):
        np.testing.assert_allclose(fold.judge.log_prob(trial.mode), trial.mode_logs)
    assert set(found.ensemble.logs) == {1, 2}


def test_merging_finds_ranks_between_those_tried():
    rng = np.random.default_rng(3)
    factors = [rng.dirichlet(np.ones(3), 7).T for _ in range(12)]
    truth = rj.LowRankPMF(rng.dirichlet(np.full(7, 5.0)), factors)
    assert rj.rank.select(truth.sample(10_000, random_state=0), random_state=0).rank == 7


def test_merging_goes_on_below_the_choice():
    """A rank that was tried from random starts may be right, and its model poor."""
    data, policy = InMemory.of(three_classes().sample(2000, random_state=0)), Policy()
    found = HeldOutSearch(data, Session(np.random.default_rng(0)), policy)
    search_ranks(found, [1, 2, 5, 8], found.session)
    assert found.choose() == 5
    poor = found.mode.score(2)
    found.merge_back()
    assert set(found.mode.logs) == set(range(1, 9))
    assert found.mode.score(2) >= poor
    assert found.choose() == 3


def test_the_answer_is_near_that_of_the_rank_told():
    rng = np.random.default_rng(1)
    factors = [rng.dirichlet(np.ones(5), 4).T for _ in range(5)]
    truth = rj.LowRankPMF(rng.dirichlet(np.full(4, 5.0)), factors)
    data = truth.sample(5_000, random_state=0)
    free, told = (rj.estimate(data, rank, random_state=0).pmf for rank in ("auto", 4))
    error = [rj.metrics.tensor_error(truth, pmf) for pmf in (free, told)]
    assert error[0] < 1.15 * error[1]


@pytest.fixture(scope="module")
def ordered():
    """Bumps of two classes over nine ordered levels."""
    rng = np.random.default_rng(0)
    codes = np.clip(rng.normal(np.where(rng.random((250, 1)) < 0.5, 2.5, 5.5), 1.4, (250, 4)), 0, 8)
    kinds = {f"x{n}": "ordinal" for n in range(4)}
    levels = {name: list(range(9)) for name in kinds}
    return rj.Records.of(np.rint(codes).astype(int), kinds=kinds, levels=levels)


def test_information_criteria_are_of_columns_that_are_not_smooth(ordered):
    plain = rj.rank.select(ordered, [1, 2], criterion="bic", smooth=False, random_state=0)
    for criterion in ("bic", ["heldout", "bic"]):
        found = rj.rank.select(ordered, [1, 2], criterion=criterion, random_state=0)
        np.testing.assert_allclose(
            found.table.columns["bic"], plain.table.columns["bic"], atol=0.01
        )


def test_records_judge_the_rank_of_smooth_columns(ordered):
    asked = {"ranks": [1, 2, 3], "random_state": 0}
    smooth, plain = (rj.rank.select(ordered, smooth=s, **asked) for s in (True, False))
    assert (smooth.scores > plain.scores).all()


def test_interrupted_while_columns_become_smooth(ordered, monkeypatch):
    fit, done = smoothing.brief_fit, []

    def fit_one(*args):
        if done:
            raise KeyboardInterrupt
        done.append(fit(*args))
        return done[0]

    monkeypatch.setattr(smoothing, "brief_fit", fit_one)
    with pytest.raises(KeyboardInterrupt) as caught:  # no rank has been scored yet
        rj.rank.select(ordered, random_state=0)
    assert not isinstance(caught.value, FitInterrupted)


def test_one_class_leaves_open_how_variables_depend():
    rng = np.random.default_rng(0)
    columns = {name: rng.choice(list("uvw"), 300) for name in "abcd"}
    result = rj.estimate(columns, random_state=0)
    assert result.selection.rank == 1
    alone, given = (
        np.std([draw.condition(g).marginal("a") for draw in result.pmf.draws], axis=0)
        for g in ({}, {"b": "u"})
    )
    assert given.mean() > 1.02 * alone.mean()  # equal, if chains had one class


def test_merging_finds_the_true_number_of_classes():
    """From twice as many random classes; the held-out records prefer what is left."""
    truth = three_classes()
    data, fresh = (truth.sample(size, random_state=0) for size in (3000, 20_000))
    data = InMemory.of(data)
    start = random_model(data, 6, np.random.default_rng(0))
    models = [start, *merge_down(data, start, 1, make_prior(data, first_concentrations(data)))]
    scores = {model.rank: data.to_pmf(model).log_prob(fresh).mean() for model in models[1:]}
    assert list(scores) == [5, 4, 3, 2, 1]
    assert scores[3] > max(scores[2], scores[1]) + 0.05
    assert scores[3] == pytest.approx(truth.log_prob(fresh).mean(), abs=0.02)


@pytest.mark.parametrize(
    ("lead", "largest", "kind"),
    [(-1.0, 30, "ensemble"), (1.0, 30, "modes"), (1.0, 2, "mode")],
)
def test_what_answers_is_what_predicts_held_out_records_best(records, lead, largest, kind):
    """Many classes answer by themselves, few by chains from them; behind, by random starts."""
    data, session = InMemory.of(records), Session(np.random.default_rng(0))
    found = HeldOutSearch(data, session, Policy(mode_classes=largest))
    search_ranks(found, [1, 2, 3], session)
    found.ensemble.logs = {3: found.mode.logs[3] - lead}
    plan = found.plan()
    assert plan.kind == kind
    assert plan.rank == (3 if lead > 0 else 4)
    assert plan.anchors.pairs > 0
