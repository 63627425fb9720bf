"""Kullback-Leibler divergence from tables: EM against brute force, and what it recovers."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from small_models import (
    all_subsets,
    model_table,
    random_model,
    random_pmf,
    random_problem,
    unpacked,
)

import rejoint as rj
from rejoint.factorization import Kl, Limits, Newton
from rejoint.factorization.kl import em, evaluate
from rejoint.factorization.loss import KL, SQUARES, TINY
from rejoint.factorization.newton import information, softmax, softmax_pullback
from rejoint.metrics import tensor_error

EM = Kl(memory=0, dense_limit=0)

PROBLEMS = {
    "all triples": ((3, 4, 2, 5), all_subsets(4, 3), True),
    "all triples of many variables": ((2, 3, 2, 2, 3, 2, 2, 2), all_subsets(8, 3), True),
    "mixed, weighted": ((2, 6, 3, 1, 4), ((0, 1, 2), (0, 1, 2, 4), (3,), (0, 3), (2, 4)), False),
}


@pytest.fixture(name="problem", params=PROBLEMS.values(), ids=PROBLEMS)
def _problem(request):
    return replace(random_problem(0, *request.param), loss=KL)


def drawn(problem, seed=1, rank=3):
    return random_model(seed, problem.levels, rank)


def divergence(table, model, weight=1.0):
    return KL.value(table, model, weight)


def brute_force(problem, model):
    """``sum_S omega_S sum x log(x / m)`` as it is written."""
    total = 0.0
    for subset, table, weight in zip(problem.subsets, problem.tables, problem.weight, strict=True):
        share = model_table(problem, model.weights, model.factors, subset)
        seen = table > 0
        total += weight * np.sum(table[seen] * np.log(table[seen] / share[seen]))
    return total


def shared_out(problem, model):
    """EM as it is written: every cell divided among the classes, then counted."""
    weights, factors = unpacked(model)
    counts = np.zeros_like(model.stacked)
    for subset, table, omega in zip(problem.subsets, problem.tables, problem.weight, strict=True):
        for cell, share in np.ndenumerate(table):
            rows = [
                problem.layout.offsets[n] + level for n, level in zip(subset, cell, strict=True)
            ]
            joint = weights * np.prod(factors[rows], axis=0)
            expected = omega * share * joint / joint.sum()
            counts[0] += expected
            for row in rows:
                counts[1 + row] += expected
    counts[0] /= counts[0].sum()
    for n in range(len(problem.levels)):
        counts[1:][problem.layout.rows(n)] /= counts[1:][problem.layout.rows(n)].sum(axis=0)
    return counts


# --- divergence ---------------------------------------------------------------------------------


def test_the_objective_is_the_divergence(problem):
    model = drawn(problem)
    # The cells' terms are of the size of the whole: a sum of some hundreds of them.
    assert evaluate(problem, model).objective == pytest.approx(
        brute_force(problem, model), rel=1e-12
    )


def test_the_objective_bounds_the_error_of_the_tables(problem):
    # Pinsker: the loop may stop as "exact" by what it makes of the divergence.
    for seed in range(5):
        model = drawn(problem, seed)
        squares = problem.under(SQUARES).value(model)
        assert squares <= evaluate(problem, model).objective


def test_the_divergence_has_all_its_digits_near_a_perfect_fit():
    # x log(x/m) - x + m is (m - x)^2 / 2x up to a third order, far below rounding of x.
    table = np.array([0.2, 0.3, 0.5])
    for size in (1e-4, 1e-7, 1e-10):
        off = size * np.array([1.0, -3.0, 2.0])
        wanted = np.sum(off**2 / table / 2 - off**3 / table**2 / 3)
        # Third-order terms are written out, fourth ones are not; x + off rounds off.
        assert divergence(table, table + off) == pytest.approx(wanted, rel=1e-5)
    assert divergence(table, table) == 0.0


def test_cells_that_one_side_excludes():
    assert divergence(np.array([0.0, 1.0]), np.array([0.25, 1.0])) == 0.25
    assert divergence(np.zeros(3), np.ones(3), np.array([1.0, 2.0, 3.0])) == 6.0
    # Excluded by the model but seen: much, and finite.
    assert divergence(np.array([1.0]), np.zeros(1)) == pytest.approx(-1 - np.log(TINY))


# --- EM and scoring against brute force ---------------------------------------------------------


def test_one_step_is_em(problem):
    model = drawn(problem)
    state = evaluate(problem, model)
    wanted = shared_out(problem, model)
    updated = em(model, state.ascent).stacked
    np.testing.assert_allclose(updated, wanted, rtol=1e-11)
    stepped = EM.step(problem, state)
    np.testing.assert_array_equal(stepped.model.stacked, updated)
    change = np.linalg.norm(wanted - model.stacked) / np.linalg.norm(model.stacked)
    assert state.residual == pytest.approx(change, rel=1e-9)


def logits_slope(problem, logits):
    model = softmax(problem.layout, logits)
    return -softmax_pullback(model, evaluate(problem, model).ascent)


def test_the_slope_is_that_of_the_objective(problem):
    logits = np.log(drawn(problem).stacked)
    slope = logits_slope(problem, logits)
    rng = np.random.default_rng(0)
    for _ in range(3):
        way, size = rng.standard_normal(logits.shape), 1e-5
        ends = [
            evaluate(problem, softmax(problem.layout, logits + sign * size * way)).objective
            for sign in (1, -1)
        ]
        # Central differences: 1e-10 of the third derivative, 1e-11 of rounding.
        assert np.vdot(slope, way) == pytest.approx((ends[0] - ends[1]) / (2 * size), rel=1e-6)


def test_information_is_the_jacobian_s(problem):
    at = drawn(problem)
    model = at.stacked

    def shares(stack):
        tables = [model_table(problem, stack[0], stack[1:], s).ravel() for s in problem.subsets]
        return np.concatenate(tables)

    # The model is linear in each single parameter, so that any step is exact but for rounding.
    columns = []
    for place in np.ndindex(*model.shape):
        moved = model.copy()
        moved[place] += 1.0
        columns.append(shares(moved) - shares(model))
    jacobian = np.stack(columns, axis=1)
    sizes = [table.size for table in problem.tables]
    scaled = jacobian.T * (np.repeat(problem.weight, sizes) / shares(model))
    wanted = scaled @ jacobian
    found = information(problem, at).reshape(wanted.shape)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-10 * wanted.max())


# --- the solver ---------------------------------------------------------------------------------

KINDS = {
    "em": EM,
    "mixing": Kl(dense_limit=0),
    "scoring": Kl(memory=0),
    "all": Kl(),
}


@pytest.mark.parametrize("solver", KINDS.values(), ids=KINDS)
def test_never_climbs_and_stays_on_the_simplex(problem, solver):
    state = solver.init(problem, random_model(2, problem.levels, 3))
    for _ in range(25):
        before, state = state, solver.step(problem, state)
        if state is before:
            break
        assert state.objective < before.objective  # exactly: that is what the safeguard is for
        assert state.model.stacked.min() >= 0
        assert state.model.weights.sum() == pytest.approx(1, abs=1e-12)
        sums = np.add.reduceat(state.model.factors, problem.layout.offsets[:-1])
        np.testing.assert_allclose(sums, 1, rtol=0, atol=1e-12)
        again = evaluate(problem, state.model).objective
        assert again == pytest.approx(state.objective, rel=1e-12)


def test_mixing_and_scoring_save_steps():
    truth = random_pmf(1, [5] * 4, 3, least=0.1)
    tables = rj.Marginals.count(truth.sample(20_000, random_state=0), order=3)
    limits = Limits(max_steps=3000, progress=1e-8)
    steps = {}
    for name, solver in KINDS.items():
        solver = Kl(solver.memory, solver.dense_limit, limits)
        fit = rj.factorize(
            tables, 3, solver=solver, start="random", n_init=1, weighting="count", random_state=0
        )
        steps[name] = len(fit.history)
    # 952, 92 and 30 when this was written.
    assert steps["mixing"] < 0.5 * steps["em"]
    assert steps["all"] < 0.5 * steps["mixing"]


def test_a_minimum_found_by_other_means():
    # Two variables and one class: nothing but two columns, which a general minimiser can find.
    with pytest.warns(rj.Remark, match="disagree"):
        tables = rj.Marginals.from_tables(
            {("a",): [0.2, 0.8], ("a", "b"): [[0.3, 0.2], [0.3, 0.2]]},
            kind="shares",
            table_weight={("a",): 3.0},
        )

    def loss(x):
        a, b = np.array([x[0], 1 - x[0]]), np.array([x[1], 1 - x[1]])
        single = np.array([0.2, 0.8])
        double = np.array([[0.3, 0.2], [0.3, 0.2]])
        return -3 * single @ np.log(a) - np.vdot(double, np.log(np.outer(a, b)))

    wanted = minimize(loss, [0.5, 0.5], tol=1e-14, bounds=[(0.01, 0.99)] * 2).x
    pmf = rj.factorize(tables, 1, solver="kl", random_state=0).pmf
    # Finite differences inside minimize leave about the root of rounding.
    assert pmf.marginal(["a"])[0] == pytest.approx(wanted[0], abs=1e-5)
    assert pmf.marginal(["a"])[0] == pytest.approx((3 * 0.2 + 0.5) / 4, abs=1e-9)
    assert pmf.marginal(["b"])[0] == pytest.approx(0.6, abs=1e-9)


def test_the_whole_table_is_the_likelihood():
    # One table of all variables with counts: KL is the likelihood, whose maximum for one class is
    # the product of the margins, and which grows with the rank.
    truth = random_pmf(0, (3, 2, 4), 3)
    records = truth.sample(500, random_state=0)
    tables = rj.Marginals.count(records, subsets=[("x0", "x1", "x2")])
    seen = tables.shares(0)[tables.shares(0) > 0]
    entropy, scores = seen @ np.log(seen), []
    for rank in (1, 2, 3):
        fit = rj.factorize(tables, rank, solver="kl", random_state=0)
        scores.append(fit.pmf.log_prob(records).sum())
        entropy = np.sum(
            tables.shares(0)[tables.shares(0) > 0] * np.log(tables.shares(0)[tables.shares(0) > 0])
        )
        best = min(run.objective for run in fit.starts)
        assert scores[-1] == pytest.approx(500 * (entropy - best), rel=1e-9)
    assert scores == sorted(scores)


# --- what it recovers ---------------------------------------------------------------------------


@pytest.mark.parametrize("start", ["random", None])
@pytest.mark.parametrize("rank", [5, 10])
def test_the_paper_s_exact_triples(rank, start):
    truth = random_pmf(1, [10] * 5, rank)
    tables = rj.Marginals.from_pmf(truth, order=3)
    fit = rj.factorize(tables, rank, solver="kl", start=start, n_init=1, random_state=0)
    assert tensor_error(truth, fit.pmf) < 1e-8
    assert fit.stop.startswith("The tables are met exactly")
    if start == "random":
        assert {record.solver for record in fit.history} == {"kl"}


def test_unequal_levels_mixed_orders_and_weights():
    truth = random_pmf(0, (2, 12, 3, 7, 5, 4), 4, least=0.03)
    subsets = [
        *(("x0", "x1", "x2"), ("x1", "x3", "x4"), ("x2", "x4", "x5"), ("x3", "x5")),
        *(("x0", "x3", "x4", "x5"), ("x1", "x5"), ("x0",)),
    ]
    tables = rj.Marginals.from_pmf(truth, subsets=subsets)
    fit = rj.factorize(tables, 4, solver="kl", start="random", random_state=0)
    assert tensor_error(truth, fit.pmf) < 1e-8


def test_sampled_triples_are_nearer_than_by_least_squares():
    # Least squares counts large cells too much: 1.16 times the Cramer-Rao bound against 1.07.
    errors = {"auto": [], "kl": []}
    for seed in range(4):
        truth = random_pmf(seed, [8] * 4, 3, least=0.1)
        records = truth.sample(20_000, random_state=seed)
        tables = rj.Marginals.count(records, order=3)
        for solver, found in errors.items():
            fit = rj.factorize(tables, 3, solver=solver, random_state=seed)
            found.append(tensor_error(truth, fit.pmf))
    assert np.mean(errors["kl"]) < np.mean(errors["auto"])


# --- zeros --------------------------------------------------------------------------------------


def test_zeros_of_the_truth_are_found():
    eye = np.eye(3)
    truth = rj.LowRankPMF([0.5, 0.3, 0.2], [eye, eye, eye])
    tables = rj.Marginals.from_pmf(truth, order=3)
    fit = rj.factorize(tables, 3, solver="kl", start="random", random_state=0)
    assert tensor_error(truth, fit.pmf) < 1e-8


def test_zeros_of_a_start_are_lifted():
    # Zeros would stay zeros: from a model with wrong ones, the right one must still be found.
    truth = random_pmf(0, (3, 4, 3), 2, least=0.3)
    tables = rj.Marginals.from_pmf(truth, order=3)
    wrong = [np.zeros((levels, 2)) for levels in (3, 4, 3)]
    for a in wrong:
        a[0, 0] = a[1, 1] = 1.0
    fit = rj.factorize(tables, 2, solver="kl", start=rj.LowRankPMF([0.5, 0.5], wrong))
    assert tensor_error(truth, fit.pmf) < 1e-4


def test_empty_cells_and_levels_never_seen():
    domain = rj.Domain.of({"a": 3, "b": 3, "c": 2})
    counts = np.zeros((3, 3, 2))
    counts[:2, :2] = np.random.default_rng(0).integers(0, 5, (2, 2, 2))
    tables = rj.Marginals.from_tables({("a", "b", "c"): counts}, domain=domain, kind="counts")
    for start in (None, "random"):
        fit = rj.factorize(tables, 2, solver="kl", start=start, random_state=0)
        assert fit.pmf.marginal(["a"])[2] == 0.0
        assert fit.pmf.marginal(["b"])[2] == 0.0
        assert np.isfinite(fit.starts[0].objective)


def test_a_level_that_only_one_of_two_tables_has_seen():
    # The first table says never, the second says sometimes: it cannot be given no room at all.
    with pytest.warns(rj.Remark, match="disagree"):
        tables = rj.Marginals.from_tables(
            {("a",): [1.0, 0.0], ("a", "b"): [[0.4, 0.4], [0.1, 0.1]]}, kind="shares"
        )
    fit = rj.factorize(tables, 1, solver="kl", random_state=0)
    assert fit.pmf.marginal(["a"]) == pytest.approx([0.9, 0.1], abs=1e-9)


@pytest.mark.parametrize("solver", ["em", "all"])
def test_superfluous_classes_do_no_harm(solver):
    truth = random_pmf(2, [5] * 4, 2)
    tables = rj.Marginals.from_pmf(truth, order=3)
    fit = rj.factorize(tables, 5, solver=KINDS[solver], start="random", n_init=1, random_state=0)
    assert tensor_error(truth, fit.pmf) < 0.05
    assert np.isfinite(fit.pmf.weights).all()


# --- how it fits into factorize -----------------------------------------------------------------


@pytest.fixture(name="noisy")
def _noisy():
    truth = random_pmf(0, (3, 4, 3, 2), 2, least=0.2)
    return rj.Marginals.count(truth.sample(500, random_state=0), order=3)


def test_the_error_is_that_of_the_tables(noisy):
    fit = rj.factorize(noisy, 2, solver="kl", random_state=0)
    gaps = [
        np.linalg.norm(fit.pmf.marginal(list(names)) - noisy.shares(i))
        for i, names in enumerate(noisy.subsets)
    ]
    size = np.linalg.norm([np.linalg.norm(noisy.shares(i)) for i in range(len(noisy.subsets))])
    assert fit.error == pytest.approx(np.linalg.norm(gaps) / size, rel=1e-9)
    assert f"a relative error of {fit.error:.2g} after" in fit.stop
    squares = rj.factorize(noisy, 2, random_state=0)
    assert squares.error < fit.error  # of squares they are the least


def test_it_goes_on_from_least_squares_unless_told_where_to_begin(noisy):
    kinds = [record.solver for record in rj.factorize(noisy, 2, solver="kl").history]
    assert kinds[0] == "algebraic"
    assert "newton" in kinds
    assert kinds[-1] == "kl"
    assert "admm" not in kinds[: kinds.index("kl")]
    for start, first in (("random", "kl"), ("algebraic", "algebraic")):
        fit = rj.factorize(noisy, 2, solver="kl", start=start, n_init=1, random_state=0)
        assert fit.history[0].solver == first
        assert fit.history[-1].solver == "kl"


def test_the_best_start_is_the_best_by_divergence(noisy):
    fit = rj.factorize(noisy, 3, solver="kl", n_init=4, start="random", random_state=0)
    finals = [start.records[-1].objective for start in fit.starts]
    assert [start.objective for start in fit.starts] == pytest.approx(finals, rel=1e-12)
    assert fit.residual == fit.starts[int(np.argmin(finals))].residual


def test_ctrl_c_under_least_squares_does_not_win_by_its_smaller_objective(noisy, monkeypatch):
    reached = []
    newton, divergence_step = Newton.step, Kl.step

    def impatient(self, problem, state):
        if reached:  # this is the second start
            raise KeyboardInterrupt
        return newton(self, problem, state)

    def noted(self, problem, state):
        reached.append(True)
        return divergence_step(self, problem, state)

    monkeypatch.setattr(Newton, "step", impatient)
    monkeypatch.setattr(Kl, "step", noted)
    fit = rj.factorize(noisy, 2, solver="kl", random_state=0, on_interrupt="return")
    assert "interrupted" in fit.stop
    assert fit.starts[-1].records[-1].solver == "newton"
    assert fit.starts[-1].records[-1].objective < fit.starts[0].objective  # squares are smaller
    assert fit.error == fit.starts[0].error


def test_weighting_by_count():
    truth = random_pmf(4, [3] * 4, 2)
    codes = truth.sample(3000, random_state=0).codes.copy()
    codes[np.random.default_rng(0).random(len(codes)) < 0.95, 0] = -1
    tables = rj.Marginals.count(rj.Records(truth.domain, codes, None), order=3)
    fits = {
        weighting: rj.factorize(tables, 2, solver="kl", weighting=weighting, random_state=0)
        for weighting in ("equal", "count")
    }
    rich, poor = ("x1", "x2", "x3"), ("x0", "x1", "x2")
    assert fits["count"].misfits[rich] < fits["equal"].misfits[rich]
    assert fits["count"].misfits[poor] > fits["equal"].misfits[poor]


def test_moments_are_refused():
    domain = rj.Domain.of({"a": [0, 1], "b": [0, 1]})
    tables = rj.Marginals.from_tables(
        {"a": [0.5, 0.5], "b": [0.4, 0.6]}, domain=domain, moments={("a", "b"): 0.1}
    )
    words = "solver='kl' compares tables of shares, and 1 of the inputs are moments .* Leave"
    for start in (None, "random"):
        with pytest.raises(ValueError, match=words):
            rj.factorize(tables, 2, solver="kl", start=start)
    problem = random_problem(0, (3, 2), ((0, 1),), moments=((1, 2),))
    with pytest.raises(ValueError, match="2 of the inputs are moments"):
        KL.check(problem)
