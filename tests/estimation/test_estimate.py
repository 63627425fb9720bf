"""``estimate``: what it takes, what it chooses, what it reports."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
import threadpoolctl
from small_records import dense, log_likelihood, random_pmf, random_records

import rejoint as rj
from rejoint.estimation import Bayes, Em, Policy, Prior, Variational, estimate
from rejoint.estimation.data import InMemory
from rejoint.rank.curve import HeldOutSearch
from rejoint.solver import Limits
from rejoint.solver.solver import Stalled

SHAPE = (2, 3, 2)
RECORDS = random_records(0, SHAPE, 120, missing=0.1)
SHORT = Bayes(chains=2, burn_in=10, draws=10, thin=1)
SOLVERS = ["ml", "map", SHORT, Em(memory=3), Variational()]


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: s if isinstance(s, str) else type(s))
@pytest.mark.parametrize("rank", [1, 2])
def test_log_likelihood_is_that_of_the_model(solver, rank):
    result = estimate(RECORDS, rank, solver, random_state=0)
    exact = log_likelihood(result.pmf.representative.to_dense(), RECORDS.codes)
    assert result.log_likelihood == pytest.approx(exact, rel=1e-10)
    assert result.pmf.rank <= rank
    assert result.pmf.domain == RECORDS.domain
    assert f"Log-likelihood {exact:,.2f} of " in result.stop


def test_likelihood_is_highest_for_ml():
    ml, mode, bayes = (
        estimate(RECORDS, 2, solver, random_state=0).log_likelihood
        for solver in ("ml", "map", SHORT)
    )
    # The stopping rule leaves 1e-4 of the log-likelihood to gain.
    assert ml >= max(mode, bayes) - 1e-3


def test_more_classes_have_a_higher_likelihood():
    values = [estimate(RECORDS, f, "ml", random_state=0).log_likelihood for f in (1, 2, 3)]
    assert values[0] < values[1] <= values[2] + 1e-3


def test_every_start_is_kept():
    result = estimate(RECORDS, 2, "ml", n_init=4, random_state=0)
    assert len(result.starts) == 4
    assert {record.start for record in result.history} == {0, 1, 2, 3}
    best = min(run.objective for run in result.starts)
    # Classes that differ by no more than 1e-6 are merged.
    assert -result.log_likelihood == pytest.approx(best, abs=1e-3)
    assert "from 4 starts" in result.stop


@pytest.mark.parametrize("solver", ["ml", "map", SHORT], ids=["ml", "map", "bayes"])
def test_random_state_reproduces(solver):
    one, same = (estimate(RECORDS, 2, solver, random_state=7) for _ in range(2))
    assert one.pmf == same.pmf
    assert one.stop == same.stop
    generator = estimate(RECORDS, 2, solver, random_state=np.random.default_rng(7))
    assert generator.pmf == one.pmf
    if one.posterior:
        assert all(a == b for a, b in zip(one.posterior.draws, same.posterior.draws, strict=True))


def test_classes_are_sorted():
    weights = estimate(random_records(1, SHAPE, 300, rank=3), 3, "ml", random_state=0).pmf.weights
    assert (np.diff(weights) <= 0).all()


def test_labels_are_kept():
    data = [
        {"smoke": "yes", "town": "Bern"},
        {"smoke": "no", "town": None},
        {"smoke": "no", "town": "Basel"},
        {"smoke": "no", "town": "Bern"},
    ]
    pmf = estimate(data, 1, "ml").pmf
    assert pmf.domain.names == ("smoke", "town")
    assert pmf.prob({"smoke": "yes"}) == pytest.approx(1 / 4)
    assert pmf.prob({"town": "Bern"}) == pytest.approx(2 / 3)


def test_domain_may_hold_levels_that_no_record_has():
    domain = rj.Domain.of({"a": ["x", "y", "z"], "b": [0, 1]})
    data = {"a": ["x", "y", "x", "x"], "b": [0, 1, 0, 1]}
    ml = estimate(data, 2, "ml", domain=domain, random_state=0).pmf
    assert ml.domain == domain
    assert ml.marginal("a") == pytest.approx([0.75, 0.25, 0.0], abs=1e-6)
    mode = estimate(data, 2, "map", domain=domain, random_state=0).pmf
    assert mode.marginal("a")[2] > 0.01  # a prior does not rule out what it has not seen


def test_sample_weight_may_be_a_column():
    data = {"a": [0, 1], "b": [1, 0], "n": [3.0, 1.0]}
    pmf = estimate(data, 1, "ml", sample_weight="n").pmf
    assert pmf.domain.names == ("a", "b")
    assert pmf.marginal("a") == pytest.approx([0.75, 0.25])


def test_a_given_start_is_the_only_one():
    start = random_pmf(5, SHAPE, 2)
    result = estimate(RECORDS, 2, "ml", start=start, n_init=5)
    assert len(result.starts) == 1
    first = result.history[0]
    assert -first.objective == pytest.approx(log_likelihood(start.to_dense(), RECORDS.codes))
    assert "from 1 start;" in result.stop


def test_a_start_with_its_levels_in_another_order_is_aligned():
    domain = rj.Domain.of({"a": ["x", "y"], "b": ["u", "v"]})
    other = rj.Domain.of({"b": ["v", "u"], "a": ["y", "x"]})
    data = {"a": list("xxyyx"), "b": list("uvvuu")}
    start = rj.LowRankPMF([0.6, 0.4], random_pmf(1, (2, 2), 2).factors, domain)
    one = estimate(data, 2, "ml", domain=domain, start=start)
    same = estimate(data, 2, "ml", domain=domain, start=start.align(other))
    assert one.pmf.equals(same.pmf, tol=1e-12)


@pytest.mark.parametrize("solver", ["ml", "map", SHORT], ids=["ml", "map", "bayes"])
def test_zeros_of_a_start_do_not_stay_against_the_records(solver):
    good = random_pmf(5, SHAPE, 2)
    start = rj.LowRankPMF(good.weights, [[[1.0, 1.0], [0.0, 0.0]], *good.factors[1:]])
    result = estimate(RECORDS, 2, solver, start=start, random_state=0)
    assert np.isfinite(result.log_likelihood)
    assert result.log_likelihood > estimate(RECORDS, 1, "ml").log_likelihood - 5.0


def test_map_lies_at_the_maximum_of_its_posterior():
    prior = Prior(0.0, np.full(7, 1.5))
    limits = Limits(max_steps=5000, progress=1e-14, window=10, exact=-1.0)
    pmf = estimate(RECORDS, 2, Em(prior=prior, limits=limits), random_state=0).pmf
    best = np.vstack([pmf.weights, *pmf.factors])

    def log_posterior(x):
        table = dense(x[0], x[1:], SHAPE)
        return log_likelihood(table, RECORDS.codes) + 1.5 * np.log(x[1:]).sum()

    top = log_posterior(best)
    rng = np.random.default_rng(0)
    for _ in range(20):
        near = best * np.exp(0.02 * rng.standard_normal(best.shape))
        near[0] /= near[0].sum()
        for low, high in ((1, 3), (3, 6), (6, 8)):
            near[low:high] /= near[low:high].sum(axis=0)
        assert log_posterior(near) < top


def test_the_prior_keeps_columns_inside():
    # Few records: maximum likelihood goes to the bounds, the mode with a prior stays inside.
    few = random_records(2, SHAPE, 15)
    ml, mode = (estimate(few, 2, s, random_state=0).pmf.factors for s in ("ml", "map"))
    assert min(f.min() for f in ml) < 1e-6
    assert min(f.min() for f in mode) > 1e-3


def test_bayes_has_draws_and_bounds():
    result = estimate(RECORDS, 2, SHORT, random_state=0)
    assert len(result.posterior.draws) == 20
    assert re.search(
        r"20 posterior draws from 2 chains, worth about \d+ independent ones\.$",
        result.stop,
    )
    low, high = result.posterior.interval("x1")
    assert ((low < RECORDS.marginal("x1")) & (RECORDS.marginal("x1") < high)).all()
    assert result.posterior.draws[0].domain == RECORDS.domain


def test_n_init_sets_the_number_of_chains():
    result = estimate(RECORDS, 2, SHORT, n_init=3, random_state=0)
    assert len(result.posterior.draws) == 30


def test_ml_and_map_have_no_posterior():
    assert estimate(RECORDS, 2, "ml", random_state=0).posterior is None
    assert estimate(RECORDS, 2, "map", random_state=0).posterior is None


def test_fields_of_tables_stay_empty():
    result = estimate(RECORDS, 2, "ml", random_state=0)
    assert np.isnan(result.error)
    assert result.misfits == {}


@pytest.mark.parametrize(
    ("solver", "words"),
    [
        ("ml", "solver='ml' was requested."),
        ("map", "solver='map' was requested."),
        ("bayes", "solver='bayes' was requested."),
        (Em(), "Em was requested."),
        (SHORT, "Bayes was requested."),
        (Variational(), "Variational was requested."),
    ],
)
def test_choice_names_the_solver_asked_for(solver, words):
    assert estimate(RECORDS, 1, solver, random_state=0).choice == words


def test_auto_takes_bayes_where_records_are_few():
    result = estimate(RECORDS, 2, random_state=0)
    words = "Bayes: 120 records for 9 parameters, fewer than 2,000 for each."
    assert result.choice == words
    assert result.posterior is not None


def test_auto_takes_likelihood_where_records_are_plenty():
    # Rank 1 of three variables has four parameters; one weight counts many records.
    plenty = Policy().plenty_records_per_parameter
    weight = np.full(len(RECORDS), 4 * plenty / len(RECORDS))
    result = estimate(RECORDS, 1, sample_weight=weight)
    assert result.choice == (
        "Maximum likelihood: 8,000 records for 4 parameters, 2,000 or more for each."
    )
    assert result.posterior is None


@pytest.mark.parametrize("rank", [0, -1, 2.0, "two", True, None])
def test_rank_must_be_a_whole_number(rank):
    with pytest.raises(ValueError, match=r"rank must be a whole number of at least 1, got"):
        estimate(RECORDS, rank, "ml")


@pytest.mark.parametrize("n_init", [0, 1.5, "3"])
def test_n_init_must_be_a_whole_number(n_init):
    with pytest.raises(ValueError, match="n_init must be a whole number of at least 1, got"):
        estimate(RECORDS, 2, "ml", n_init=n_init)


@pytest.mark.parametrize("solver", ["admm", None, Em])
def test_unknown_solvers_are_errors(solver):
    words = r"solver=.* is not supported; use 'auto', 'ml', 'map', 'bayes', or an object such as"
    with pytest.raises(ValueError, match=words):
        estimate(RECORDS, 2, solver)


@pytest.mark.parametrize("start", ["random", 3])
def test_starts_of_another_kind_are_refused(start):
    with pytest.raises(ValueError, match="start must be a LowRankPMF, got"):
        estimate(RECORDS, 2, "ml", start=start)


@pytest.mark.parametrize("rank", [2, "auto"])
def test_a_start_of_another_rank_is_refused_before_the_rank_is_chosen(rank, monkeypatch):
    monkeypatch.setattr(HeldOutSearch, "fit", None)
    with pytest.raises(
        ValueError, match=f"start has rank 3, but rank={rank!r} was requested: give"
    ):
        estimate(RECORDS, rank, "ml", start=random_pmf(0, SHAPE, 3))


class Strange:
    """A solver of records whose steps go wrong in one of two ways."""

    name = "strange"
    limits = Limits(max_steps=5, progress=0.0, exact=-1.0)

    def __init__(self, stalled):
        self.stalled = stalled

    def init(self, data, model):
        return SimpleNamespace(
            model=model, objective=-data.expect(model).log_likelihood, residual=1
        )

    def step(self, data, state):
        if self.stalled:
            raise Stalled
        return SimpleNamespace(model=state.model, objective=float("nan"), residual=1)


def test_an_objective_that_is_not_a_number_is_said_to_be():
    result = estimate(RECORDS, 2, Strange(stalled=False), random_state=0)
    assert "the next step has an objective that is not a number" in result.stop
    assert "improving" not in result.stop
    assert np.isfinite(result.log_likelihood)


def test_blas_is_held_to_one_thread():
    # Several threads on busy cores: 14.6 s of CPU in place of 3.0 for 2,945 records.
    def threads():
        found = threadpoolctl.threadpool_info()
        return {lib["num_threads"] for lib in found if lib["user_api"] == "blas"}

    seen = []

    class Watching(Em):
        def step(self, problem, state):
            seen.append(threads())
            return super().step(problem, state)

    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        estimate(random_records(0, (2, 2, 2), 50), 2, Watching(), n_init=1, random_state=0)
        assert threads() == {2}
    assert seen
    assert all(found == {1} for found in seen)


def test_a_solver_that_stalls_on_records_gets_advice_for_records():
    result = estimate(RECORDS, 2, Strange(stalled=True), random_state=0)
    assert "no step improves it further, although it may not be optimal" in result.stop
    assert "inner" not in result.stop
    assert "newton" not in result.stop


def test_nothing_to_estimate_from():
    domain = rj.Domain.of({"a": ["x", "y"]})
    with pytest.raises(ValueError, match="nothing to estimate from"):
        estimate({"a": [None, None]}, 1, "ml", domain=domain)


def test_classes_that_are_not_needed_are_dropped():
    independent = random_records(3, SHAPE, 200, rank=1)
    result = estimate(independent, 6, "map", random_state=0)
    assert result.pmf.rank < 6
    assert "dropped." in result.stop
    assert re.search(r"\d of 6 classes stood for less than 0.5 records together", result.stop)


def test_equal_classes_of_a_start_stay_equal_and_are_merged():
    one = random_pmf(1, SHAPE, 1)
    twice = rj.LowRankPMF([0.5, 0.5], [np.repeat(f, 2, axis=1) for f in one.factors])
    result = estimate(RECORDS, 2, "ml", start=twice)
    assert result.pmf.rank == 1
    assert "or equaled others: dropped." in result.stop


def test_stop_names_the_limit_of_steps():
    limits = Limits(max_steps=1, progress=0.0, exact=-1.0)
    records = random_records(4, (4, 4, 4, 4), 400, rank=4, missing=0.3, concentration=1.0)
    result = estimate(records, 4, Em(limits=limits), random_state=0)
    assert "the limit of steps was reached before the fit stopped improving" in result.stop


def test_two_variables_and_constants_are_fine():
    data = {"a": [0, 0, 1, 1, 0], "b": [0, 1, 1, 1, 0], "c": ["same"] * 5}
    for solver in ("ml", "map", SHORT):
        pmf = estimate(data, 2, solver, random_state=0).pmf
        assert pmf.marginal("c") == pytest.approx([1.0])


def test_empty_records_change_nothing():
    codes = np.vstack([RECORDS.codes, np.full((30, 3), -1)])
    padded = rj.Records(RECORDS.domain, codes)
    assert InMemory.of(padded).total == len(RECORDS)
    one, same = (estimate(r, 2, "ml", random_state=0) for r in (RECORDS, padded))
    assert one.pmf == same.pmf
