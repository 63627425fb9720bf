"""The factorization without tables: what it shares with the one that has them, and its cost."""

import numpy as np
import pytest
from small_models import random_model, random_pmf

import rejoint as rj
from rejoint.factorization import Admm, Limits, admm
from rejoint.factorization.all_tables import RecordTables, make_problem, merge_patterns
from rejoint.factorization.problem import make_problem as make_table_problem
from rejoint.kernels import SparseCodes

SHAPE = (3, 2, 4, 3, 2)


def sampled(missing=0.0, rows=300, seed=0):
    records = random_pmf(seed, SHAPE, 3).sample(rows, random_state=seed)
    if not missing:
        return records
    return rj.datasets.remove_cells(records, missing, random_state=seed)


def problems(missing, order):
    """The same tables, formed and not."""
    records = sampled(missing)
    counted = rj.Marginals.count(records, order=order)
    return (
        make_table_problem(counted, "count"),
        make_problem(rj.AllTables(records, order=order), "count"),
    )


@pytest.mark.parametrize("order", [2, 3, 4])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_a_sweep_is_that_of_the_tables(missing, order):
    formed, thin = problems(missing, order)
    model = random_model(1, SHAPE, 4)
    one, other = (
        admm.sweep(problem, Admm().init(problem, model), inner=10) for problem in (formed, thin)
    )
    # Sums of some thousand products below one, in another order, through ten inner steps whose
    # matrices have condition numbers of up to 1e5 (a step is as long as their spectrum is wide).
    np.testing.assert_allclose(other.model.factors, one.model.factors, rtol=0, atol=1e-8)
    np.testing.assert_allclose(other.model.weights, one.model.weights, rtol=0, atol=1e-8)
    np.testing.assert_allclose(other.factors_dual, one.factors_dual, rtol=0, atol=1e-7)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_the_objective_is_known_up_to_a_constant(missing):
    formed, thin = problems(missing, 3)
    gaps = []
    for seed in range(4):
        model = random_model(seed, SHAPE, 3)
        gaps.append(formed.value(model) - thin.quick_value(model))
    np.testing.assert_allclose(gaps, 0.5 * formed.scale, rtol=1e-12)  # sums of squares below one


def test_it_ends_where_the_tables_do_and_never_climbs():
    records = sampled(0.2, rows=2000)
    start = random_pmf(5, SHAPE, 3, domain=records.domain)
    solver = Admm(limits=Limits(max_steps=150, progress=0.0))
    options = {"solver": solver, "start": start, "weighting": "count", "n_init": 1}
    formed = rj.factorize(rj.Marginals.count(records, order=3), 3, **options)
    thin = rj.factorize(rj.AllTables(records, order=3), 3, **options)
    # Both within 1e-6 of the same minimum, where it is flat.
    assert rj.metrics.total_variation(formed.pmf, thin.pmf) < 1e-4
    values = np.array([record.objective for record in thin.history])
    assert (np.diff(values) <= 1e-12).all()
    assert np.isnan(thin.error)
    assert "Tables were not formed" in thin.stop


def test_sixty_variables_whose_34_220_triples_are_never_formed():
    truth = random_pmf(3, [3] * 60, 3, least=0.2)
    records = truth.sample(3000, random_state=0)
    solver = Admm(limits=Limits(max_steps=40))
    result = rj.factorize(rj.AllTables(records), 3, solver, n_init=2, random_state=0)
    # Columns of 1,000 records each have an error of about 0.015 a cell; least squares adds some.
    assert rj.metrics.factor_error(truth, result.pmf) < 0.1


def test_sparse_records_are_taken_and_weights_count_copies():
    records = sampled(0.3)
    weight = np.random.default_rng(0).integers(1, 4, size=len(records))
    copies = rj.Records(records.domain, np.repeat(records.codes, weight, axis=0))
    weighted = rj.SparseRecords.of(records, sample_weight=weight)
    model = random_model(0, SHAPE, 3)
    one, other = (
        make_problem(rj.AllTables(data, order=2), "count").quick_value(model)
        for data in (copies, weighted)
    )
    assert one == pytest.approx(other, rel=1e-13)


def test_complete_records_have_one_pattern():
    problem = make_problem(rj.AllTables(sampled()), "equal")
    patterns, mass = problem.patterns
    assert len(patterns) == 1
    # Each of the ten triples counts one.
    assert mass[0] == pytest.approx(1.0)
    codes = np.array([[0, -1, 1], [1, -1, 0], [-1, 0, 0], [0, 0, 0]], dtype=np.int16)
    patterns, mass = merge_patterns(
        SparseCodes.of_codes(codes, [2, 2, 2]), np.array([1.0, 2, 4, 8])
    )
    found = {
        tuple(row): m for row, m in zip((patterns.to_codes() >= 0).tolist(), mass, strict=True)
    }
    assert found == {(True, False, True): 3, (False, True, True): 4, (True, True, True): 8}


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (
            lambda: rj.AllTables(sampled(), order=6),
            ValueError,
            "with 5 variables, the order must be between 1 and 5",
        ),
        (lambda: rj.AllTables(sampled(), order=2.5), TypeError, "whole number"),
        (lambda: rj.factorize(rj.AllTables(sampled())), ValueError, "AllTables needs a rank"),
        (
            lambda: rj.factorize(rj.AllTables(sampled()), 2, solver="smooth"),
            ValueError,
            "solver='smooth' needs tables, which AllTables never forms",
        ),
        (
            lambda: rj.factorize(rj.AllTables(sampled()), 2, solver="newton"),
            ValueError,
            "'newton' needs tables",
        ),
        (lambda: rj.factorize(rj.AllTables(sampled(0.3)), 2), ValueError, "use weighting='count'"),
        (
            lambda: rj.factorize(rj.AllTables(sampled()), 2, weighting="no"),
            ValueError,
            "weighting='no' is not supported",
        ),
        (
            lambda: rj.factorize(
                rj.AllTables([[0, 1, None], [1, 0, None], [None, None, 1]], order=2),
                2,
                weighting="count",
            ),
            ValueError,
            "No record has 'x2' together with 1 others",
        ),
        (
            lambda: rj.factorize(rj.AllTables(sampled()), 2, start=random_pmf(0, SHAPE, 3)),
            ValueError,
            "start has rank 3",
        ),
    ],
)
def test_what_is_refused(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_more_than_memory_is_refused(monkeypatch):
    monkeypatch.setattr("rejoint.factorization.all_tables.MOST_BYTES", 1000)
    with pytest.raises(ValueError, match=r"use rj\.estimate, which needs none"):
        rj.factorize(rj.AllTables(sampled()), 3)


def test_its_numbers_are_remembered_for_two_models_only():
    problem = make_problem(rj.AllTables(sampled()), "equal")
    assert isinstance(problem, RecordTables)
    for seed in range(4):
        problem.quick_value(random_model(seed, SHAPE, 2))
    assert len(problem.kept) == 2
