"""Labels, starts, weights, sources of randomness, and every error of factorize in its words."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from small_models import random_pmf

import rejoint as rj
from rejoint.factorization import Admm, Algebraic, Auto, Limits, Newton
from rejoint.factorization.problem import make_problem
from rejoint.metrics import tensor_error
from rejoint.model import Model

DOMAIN = rj.Domain.of({"smoke": ["yes", "no"], "age": ["young", "old", "older"], "cough": [1, 2]})


@pytest.fixture(name="truth")
def _truth():
    return random_pmf(0, (3, 4, 3, 2), 2, least=0.2)


@pytest.fixture(name="tables")
def _tables(truth):
    return rj.Marginals.from_pmf(truth, order=3)


@pytest.fixture(name="noisy")
def _noisy(truth):
    return rj.Marginals.count(truth.sample(2000, random_state=0), order=3)


def solvers(result):
    return list(dict.fromkeys(record.solver for record in result.history))


# --- labels -------------------------------------------------------------------------------------


def test_labels_go_in_and_come_out():
    truth = random_pmf(1, DOMAIN.shape, 2, domain=DOMAIN)
    result = rj.factorize(rj.Marginals.from_pmf(truth, order=3), 2, random_state=0)
    assert result.pmf.domain == DOMAIN
    wanted = truth.prob({"smoke": "yes"}, given={"age": "older", "cough": 2})
    found = result.pmf.prob({"smoke": "yes"}, given={"age": "older", "cough": 2})
    assert found == pytest.approx(wanted, abs=1e-9)
    assert list(result.misfits) == [("smoke", "age", "cough")]


def test_classes_come_by_decreasing_weight(tables):
    weights = rj.factorize(tables, 2, random_state=0).pmf.weights
    assert weights[0] >= weights[1]


# --- randomness and starts ----------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["auto", "admm", "newton", "algebraic"])
def test_the_same_seed_gives_the_same_model(noisy, solver):
    one, two = (rj.factorize(noisy, 2, solver=solver, random_state=3, n_init=2) for _ in range(2))
    assert one.pmf == two.pmf
    assert [r.objective for r in one.history] == [r.objective for r in two.history]


def test_another_seed_or_a_used_generator_gives_other_starts(noisy):
    rng = np.random.default_rng(3)
    runs = [
        rj.factorize(noisy, 2, solver="admm", random_state=seed, n_init=1)
        for seed in (3, rng, rng, 4)
    ]
    first = [run.history[0].objective for run in runs]
    assert first[0] == first[1]
    assert len(set(first)) == 3


def test_a_model_as_start_is_the_only_one(noisy, truth):
    result = rj.factorize(noisy, 2, solver="admm", start=truth, n_init=5)
    assert len(result.starts) == 1
    begun = make_problem(noisy, "equal").value(Model.of(truth.weights, truth.factors))
    assert result.history[0].objective == pytest.approx(begun, rel=1e-12)
    assert result.history[-1].objective < begun


def test_a_start_is_aligned_by_name(noisy, truth):
    names = truth.domain.names
    order = [2, 0, 3, 1]
    turned = rj.LowRankPMF(
        truth.weights,
        [truth.factors[n] for n in order],
        truth.domain.project([names[n] for n in order]),
    )
    results = [rj.factorize(noisy, 2, solver="admm", start=start) for start in (truth, turned)]
    assert results[0].history[0].objective == pytest.approx(results[1].history[0].objective)
    assert results[1].pmf.domain == truth.domain


def test_auto_goes_on_from_a_given_model(tables, truth):
    near = rj.LowRankPMF(truth.weights, [0.9 * a + 0.1 / len(a) for a in truth.factors])
    result = rj.factorize(tables, 2, start=near)
    assert "algebraic" not in solvers(result)
    assert tensor_error(truth, result.pmf) < 1e-8


def test_random_and_algebraic_starts(noisy):
    assert solvers(rj.factorize(noisy, 2, random_state=0))[0] == "algebraic"
    assert "algebraic" not in solvers(rj.factorize(noisy, 2, start="random", random_state=0))
    result = rj.factorize(noisy, 2, solver="newton", start="algebraic", n_init=1, random_state=0)
    assert solvers(result) == ["algebraic", "newton"]
    assert solvers(rj.factorize(noisy, 2, solver="newton", random_state=0)) == ["newton"]


def test_a_start_helps(truth, noisy):
    cold = rj.factorize(noisy, 2, solver="admm", start="random", n_init=1, random_state=1)
    warm = rj.factorize(noisy, 2, solver="admm", start=cold.pmf)
    assert len(warm.history) < len(cold.history)
    # Where it began is where the first stopped, so that it cannot end above.
    assert warm.error <= cold.error * (1 + 1e-12)


def test_solver_objects_have_limits_of_their_own(noisy):
    limits = Limits(max_steps=3, progress=0.0)
    for solver in (Admm(limits=limits), Newton(limits=limits), Algebraic(limits=limits)):
        result = rj.factorize(noisy, 2, solver=solver, n_init=1, random_state=0)
        assert [record.step for record in result.history] == [0, 1, 2, 3]
        assert solvers(result) == [solver.name]


def test_auto_takes_stages_of_one_s_own(noisy):
    limits = Limits(max_steps=2, progress=0.0)
    auto = Auto(Admm(limits=limits), Newton(limits=limits), Admm(inner=3, limits=limits))
    result = rj.factorize(noisy, 2, solver=auto, start="random", n_init=1, random_state=0)
    assert [r.solver for r in result.history] == ["admm"] * 3 + ["newton"] * 3 + ["admm"] * 3


def test_auto_leaves_newton_out_where_it_is_too_large(noisy):
    limits = Limits(max_steps=2, progress=0.0)
    size = (1 + 3 + 4 + 3 + 2) * 2  # parameters
    for limit, wanted in ((size, ["admm", "newton"]), (size - 1, ["admm"])):
        polish = Newton(limits=limits)
        auto = Auto(Admm(limits=limits), polish, Admm(limits=limits), polish_limit=limit)
        result = rj.factorize(noisy, 2, solver=auto, start="random", n_init=1, random_state=0)
        assert solvers(result) == wanted


# --- weights of tables --------------------------------------------------------------------------


def test_weighting_by_count_multiplies_table_weight():
    rows = [{"a": i % 2, "b": i % 3, "c": None if i % 4 else i % 2} for i in range(24)]
    counted = rj.Marginals.count(rows, order=2)
    assert counted.totals.tolist() == [24.0, 6.0, 6.0]
    equal = make_problem(counted, "equal").weight
    np.testing.assert_array_equal(equal, [1, 1, 1])
    np.testing.assert_allclose(make_problem(counted, "count").weight, [2, 0.5, 0.5])
    weighted = replace(counted, table_weight=np.array([1.0, 1.0, 3.0]))
    np.testing.assert_allclose(make_problem(weighted, "equal").weight, [1, 1, 3])
    np.testing.assert_allclose(make_problem(weighted, "count").weight, [2, 0.5, 1.5])


def test_shares_count_as_an_average_table():
    tables = {("a", "b"): [[30, 10], [10, 50]], ("b", "c"): [[0.2, 0.2], [0.3, 0.3]]}
    tables |= {("c", "d"): [[100, 50], [50, 100]]}
    made = rj.Marginals.from_tables(tables)
    np.testing.assert_allclose(make_problem(made, "count").weight, [0.5, 1.0, 1.5])


def test_weighting_changes_the_fit():
    truth = random_pmf(4, [3] * 4, 2)
    codes = truth.sample(3000, random_state=0).codes.copy()
    codes[np.random.default_rng(0).random(len(codes)) < 0.95, 0] = -1
    holes = rj.Records(truth.domain, codes, None)
    tables = rj.Marginals.count(holes, order=3)
    fits = {
        weighting: rj.factorize(tables, 2, weighting=weighting, random_state=0)
        for weighting in ("equal", "count")
    }
    rich = ("x1", "x2", "x3")  # the one table that rests on all 3,000 records
    assert fits["count"].misfits[rich] < fits["equal"].misfits[rich]
    poor = ("x0", "x1", "x2")
    assert fits["count"].misfits[poor] > fits["equal"].misfits[poor]


@pytest.mark.parametrize("weight", [0.1, 1.0, 10.0])
def test_table_weight_is_that_of_the_objective(weight):
    # One class and two tables that contradict each other: a problem in two unknowns.
    given = {("a",): [0.2, 0.8], ("a", "b"): [[0.3, 0.2], [0.3, 0.2]]}
    with pytest.warns(rj.Remark, match="disagree"):
        tables = rj.Marginals.from_tables(given, kind="shares", table_weight={("a",): weight})

    def loss(x):
        a, b = np.array([x[0], 1 - x[0]]), np.array([x[1], 1 - x[1]])
        single = np.sum((a - given["a",]) ** 2)
        return weight * single + np.sum((np.outer(a, b) - given["a", "b"]) ** 2)

    wanted = minimize(loss, [0.5, 0.5], tol=1e-14).x
    for solver in ("admm", "newton"):
        pmf = rj.factorize(tables, 1, solver=solver, random_state=0).pmf
        # Finite differences inside minimize leave about the root of rounding.
        assert pmf.marginal(["a"])[0] == pytest.approx(wanted[0], abs=1e-6)
        assert pmf.marginal(["b"])[0] == pytest.approx(wanted[1], abs=1e-6)


# --- remarks and errors -------------------------------------------------------------------------


def test_tables_without_a_common_variable_are_remarked_upon():
    truth = random_pmf(0, [2] * 9, 2)
    subsets = [("x0", "x1", "x2"), ("x1", "x3", "x4"), ("x5", "x6"), ("x7",), ("x8",)]
    tables = rj.Marginals.from_pmf(truth, subsets=subsets)
    words = r"4 groups of variables with no table in common \(x0, x1, x2, x3, ...; x5, x6; x7; x8\)"
    with pytest.warns(rj.Remark, match=words):
        rj.factorize(tables, 1, random_state=0)


def test_a_moment_ties_groups_together():
    domain = rj.Domain.of({"a": 2, "b": 2})
    tables = rj.Marginals.from_tables(
        {"a": [0.5, 0.5], "b": [0.4, 0.6]}, domain=domain, moments={("a", "b"): 0.1}
    )
    fit = rj.factorize(tables, 2, random_state=0)  # a remark would be an error here
    assert fit.error <= 1e-9


@pytest.mark.parametrize("rank", [0, -1, 2.0, "3", None, True])
def test_a_rank_that_is_none(tables, rank):
    with pytest.raises(ValueError, match=r"rank must be a whole number of at least 1, got"):
        rj.factorize(tables, rank)


@pytest.mark.parametrize("n_init", [0, -2, 1.5])
def test_a_number_of_starts_that_is_none(tables, n_init):
    with pytest.raises(ValueError, match=r"n_init must be a whole number of at least 1, got"):
        rj.factorize(tables, 2, n_init=n_init)


def test_numpy_s_whole_numbers_are_whole_numbers(tables):
    assert rj.factorize(tables, np.int64(2)).pmf.rank == 2


@pytest.mark.parametrize("solver", ["adm", None, 3, Admm])
def test_a_solver_that_is_none(tables, solver):
    words = "is not supported; use one of 'auto', 'algebraic', 'admm', 'newton', 'kl', 'pairs', "
    with pytest.raises(ValueError, match=words):
        rj.factorize(tables, 2, solver=solver)


@pytest.mark.parametrize("thing", ["frame", [[0.5, 0.5]], {("a", "b"): [[1, 2], [3, 4]]}])
def test_only_marginals_are_factored(thing):
    with pytest.raises(TypeError, match=r"factorize takes Marginals, got .*; make them by"):
        rj.factorize(thing, 2)


@pytest.mark.parametrize("start", ["algebra", 3, np.ones(3)])
def test_a_start_that_is_none(tables, start):
    with pytest.raises(ValueError, match="start must be a LowRankPMF, 'random' or 'algebraic'"):
        rj.factorize(tables, 2, start=start)


def test_a_start_of_another_rank(tables, truth):
    with pytest.raises(ValueError, match="start has rank 2, but rank=3 was requested"):
        rj.factorize(tables, 3, start=truth)


def test_a_start_of_other_variables(tables):
    with pytest.raises(ValueError, match="x3"):
        rj.factorize(tables, 2, start=random_pmf(0, (3, 4, 3), 2))


def test_a_weighting_that_is_none(tables):
    with pytest.raises(ValueError, match="weighting='records' is not supported; use 'equal'"):
        rj.factorize(tables, 2, weighting="records")


def test_a_variable_in_no_table(truth):
    tables = rj.Marginals.from_pmf(truth, subsets=[("x0", "x2")])
    words = "No table of weight above zero contains 'x1', 'x3'; give a table that does, or leave"
    with pytest.raises(ValueError, match=words):
        rj.factorize(tables, 2)


def test_a_table_that_no_record_fills():
    rows = [{"a": 0, "b": 1, "c": None}, {"a": 1, "b": None, "c": 1}, {"a": 1, "b": 0, "c": None}]
    tables = rj.Marginals.count(rows, order=2)
    words = r"Table \('b', 'c'\) is empty \(1 such\): no record holds all of its variables at once"
    with pytest.raises(ValueError, match=words):
        rj.factorize(tables, 2)


@pytest.mark.filterwarnings("ignore:Tables of two variables leave")
def test_a_table_of_weight_zero_does_not_count():
    given = {
        ("a", "b"): [[1, 2], [3, 4]],
        ("b", "c"): [[1, 3], [2, 4]],
        ("a", "c"): [[3, 0], [0, 7]],
    }
    weighed = rj.Marginals.from_tables(given, table_weight={("a", "c"): 0.0})
    left = rj.Marginals.from_tables({k: given[k] for k in (("a", "b"), ("b", "c"))})
    for solver in ("admm", "newton"):
        fit = rj.factorize(weighed, 2, solver=solver, random_state=0)
        other = rj.factorize(left, 2, solver=solver, random_state=0)
        assert fit.error <= 1e-9
        assert other.error <= 1e-9
        assert ("a", "c") in fit.misfits


def test_a_variable_only_in_tables_of_weight_zero_is_refused():
    given = {("a", "b"): [[1, 2], [3, 4]], ("c",): [1, 1]}
    tables = rj.Marginals.from_tables(given, table_weight={("c",): 0.0})
    with pytest.raises(ValueError, match="No table of weight above zero contains 'c'"):
        rj.factorize(tables, 2)


def test_a_loss_that_would_be_ignored_is_refused():
    data = rj.datasets.asia().sample(200, random_state=0)
    tables = rj.Marginals.count(data, order=2)
    with pytest.raises(ValueError, match="solver='smooth' has its own loss: leave out loss"):
        rj.factorize(tables, 4, "smooth", loss="squares")
