"""Cells that were held back: filled within what is known of them, never taken for zero."""

import itertools
import weakref

import numpy as np
import pytest
from scipy.stats import poisson

import rejoint as rj
from rejoint.factorization import fit_tables
from rejoint.marginals import Marginals
from rejoint.marginals.unknown import UnknownCells, expected, fill_table, meet_sums

NAN = float("nan")


def three_classes():
    rng = np.random.default_rng(1)
    factors = [rng.dirichlet(np.full(4, 0.5), size=3).T for _ in range(4)]
    return rj.LowRankPMF([0.5, 0.3, 0.2], factors)


@pytest.mark.parametrize("mean", [0.0, 1e-6, 0.7, 3.0, 40.0, 1e5])
@pytest.mark.parametrize(("low", "high"), [(0, 4), (1, 4), (3, 3), (0, 100)])
def test_expectation_of_a_count_within_bounds(mean, low, high):
    number = np.arange(low, high + 1)
    log = poisson.logpmf(number, max(mean, 1e-300))
    share = np.exp(log - log.max())
    wanted = share @ number / share.sum()
    found = expected(
        np.array([mean]), np.array([float(low)]), np.array([float(high)]), counted=True
    )
    assert found[0] == pytest.approx(wanted, rel=1e-9)  # the same sum in another order


def test_sums_are_met_within_bounds():
    rng = np.random.default_rng(0)
    truth = rng.random((4, 5)) * 10
    low, high = truth * 0.3, truth * 2.0
    grid = np.arange(20).reshape(4, 5)
    sums = [(line, float(truth.ravel()[line].sum())) for line in (*grid, *grid.T)]
    cells = UnknownCells(np.arange(20), low.ravel(), high.ravel(), tuple(sums))
    found = meet_sums(rng.random(20) * 10, cells)
    assert (found >= low.ravel() - 1e-12).all()
    assert (found <= high.ravel() + 1e-12).all()
    for members, value in sums:
        # The sweeps end at 1e-10 of the sum, or after a hundred of them.
        assert found[members].sum() == pytest.approx(value, rel=1e-6)


def test_without_a_total_the_known_cells_set_the_scale():
    cells = UnknownCells(np.array([1]), np.zeros(1), np.full(1, np.inf))
    filled = fill_table(np.array([30.0, 99.0]), cells, np.array([0.6, 0.4]), counted=True)
    np.testing.assert_allclose(filled, [30.0, 20.0])  # 30 is 60 %, so 40 % is 20


@pytest.mark.filterwarnings("ignore:Tables:rejoint.Remark")  # zeros make them disagree
def test_held_back_cells_are_not_zero():
    """Small counts held back in every table: the fit is as if they were there, nearly."""
    truth = three_classes()
    tables = Marginals.count(truth.sample(2000, random_state=0), order=3)
    cut = 10
    held = {s: np.where(tables[s] < cut, NAN, tables[s]) for s in tables.subsets}
    zeros = {s: np.nan_to_num(table) for s, table in held.items()}
    share = np.isnan(np.concatenate([t.ravel() for t in held.values()])).mean()
    assert share > 0.4  # more than 40 % of the cells are not told
    unknown = Marginals.from_tables(held, kind="counts", suppressed=(0, cut - 1))
    errors = {}
    for name, given in {
        "whole": tables,
        "unknown": unknown,
        "zero": Marginals.from_tables(zeros, kind="counts"),
    }.items():
        result = rj.factorize(given, rank=3, solver="kl", n_init=1, random_state=0)
        errors[name] = rj.metrics.total_variation(truth, result.pmf)
        if name == "unknown":
            assert f"{len(unknown.unknown)} cells of the tables not known: filled" in result.stop
    # Measured 0.052 (all told), 0.054 (held back) and 0.080 (taken for zero).
    assert errors["unknown"] < errors["whole"] + 0.01
    assert errors["zero"] > errors["whole"] + 0.02


def test_exact_tables_with_holes_are_completed_exactly():
    """Cells missing here and there from exact shares are found by what other tables say."""
    truth = three_classes()
    rng = np.random.default_rng(0)
    tables = {}
    for s in itertools.combinations(truth.domain.names, 3):
        table = np.array(truth.marginal(list(s)))
        table[rng.random(table.shape) < 0.1] = NAN
        tables[s] = table
    given = Marginals.from_tables(tables, kind="shares", suppressed=(0, 1))
    result = rj.factorize(given, rank=3, random_state=0)
    # Rounds end once none moves more than 3e-5 of a table's mass; their sum is a little more.
    assert rj.metrics.total_variation(truth, result.pmf) < 1e-3


def test_tables_that_are_not_wholly_known_are_not_compared():
    given = {("a", "b"): [[3, NAN], [30, 10]], ("b",): [10, 90]}
    m = Marginals.from_tables(given, suppressed=(0, 500))  # no remark: the guess is no evidence
    assert m.disagreements() == []


def test_addition_keeps_and_refuses_unknown_cells():
    domain = rj.Domain.of({"a": 2, "b": 2})
    one = Marginals.from_tables({("a",): [1, 2], ("b",): [3, NAN]}, suppressed=(0, 5))
    two = Marginals.from_tables({("a", "b"): [[1, NAN], [3, 4]]}, domain=domain, suppressed=(0, 5))
    both = one + two
    assert both.unknown.places.tolist() == [3, 5]
    assert np.isnan(both.flat).sum() == 0
    with pytest.raises(ValueError, match="what is not known does not add up"):
        one + one


def test_holes_need_to_be_said():
    with pytest.raises(ValueError, match=r"got nan; .* say within which bounds it is: suppressed="):
        Marginals.from_tables({("a",): [1, NAN]})
    with pytest.raises(ValueError, match="give the least and the most"):
        Marginals.from_tables({("a",): [1, NAN]}, suppressed=(5, 0))


def test_compare_names_the_worst_cell_and_leaves_out_unknown_ones():
    domain = rj.Domain.of({"a": ["x", "y"], "b": ["u", "v"]})
    p = rj.LowRankPMF([1.0], [[[0.5], [0.5]], [[0.5], [0.5]]], domain)
    m = Marginals.from_tables(
        {("a", "b"): [[40, 10], [25, 25]], ("a",): [0.5, 0.5], ("b",): [50, NAN]},
        domain=domain,
        suppressed=(0, np.inf),
    )
    fits = m.compare(p)
    assert [fit.names for fit in fits] == [("a", "b"), ("a",), ("b",)]
    worst = fits[0]
    assert worst.distance == pytest.approx(0.15)
    assert worst.cell in ({"a": "x", "b": "u"}, {"a": "x", "b": "v"})
    assert worst.given == pytest.approx(0.4) or worst.given == pytest.approx(0.1)
    assert np.isnan(fits[1].chance)
    assert "a, b   0.1500" in repr(fits)


def test_chance_is_what_samples_of_the_model_show():
    p = three_classes()
    names = list(p.domain.names[:2])
    distances, said = [], []
    for seed in range(40):
        m = Marginals.count(p.sample(500, random_state=seed), subsets=[names])
        fit = m.compare(p)[0]
        distances.append(fit.distance)
        said.append(fit.chance)
    # The normal approximation of sixteen cells, some of them rare: right within a tenth.
    assert np.mean(distances) == pytest.approx(np.mean(said), rel=0.1)


def test_rounds_do_not_keep_the_problems_of_earlier_rounds(monkeypatch):
    made, make = [], fit_tables.make_problem

    def counted(*parts):
        problem = make(*parts)
        made.append(weakref.ref(problem))
        return problem

    alive = []
    describe = fit_tables._describe_fill

    def look(*parts):
        alive.append(sum(problem() is not None for problem in made))
        return describe(*parts)

    monkeypatch.setattr(fit_tables, "make_problem", counted)
    monkeypatch.setattr(fit_tables, "_describe_fill", look)
    table = {("a", "b"): [[30.0, NAN], [20.0, 40.0]], ("a",): [0.4, 0.6]}
    tables = Marginals.from_tables(table, suppressed=(0, float("inf")))
    rj.factorize(tables, 2, "admm", n_init=1, random_state=0)
    assert len(made) > 5
    assert max(alive) <= 2
