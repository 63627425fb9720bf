"""Plans: few tables, every variable, and a model that comes back from exactly those."""

from itertools import combinations

import numpy as np
import pytest

import rejoint as rj

plan = rj.identifiability.plan


def random_pmf(levels, rank, seed):
    rng = np.random.default_rng(seed)
    factors = [rng.dirichlet(np.ones(i), size=rank).T for i in levels]
    return rj.LowRankPMF(rng.dirichlet(np.full(rank, 3.0)), factors)


@pytest.mark.parametrize("seed", [0, 4, 9])
def test_recovery_from_exactly_the_planned_tables(seed):
    found = plan([3] * 10, rank=5)
    assert len(found) <= 8
    assert {name for subset in found.subsets for name in subset} == {f"x{n}" for n in range(10)}
    truth = random_pmf([3] * 10, 5, seed)
    tables = rj.Marginals.from_pmf(truth, subsets=found.subsets)
    fit = rj.factorize(tables, rank=5, random_state=seed)
    assert rj.metrics.tensor_error(truth, fit.pmf) < 1e-6


def test_without_slack_there_are_as_few_as_counting_allows():
    found = plan([3] * 10, rank=5, slack=0)
    assert len(found) == found.least == 5
    assert found.local.parameters is True


def test_none_of_the_tables_can_be_spared():
    found = plan([3, 2, 4, 3, 2, 3], rank=3, slack=0)
    for left_out in found.subsets:
        fewer = [s for s in found.subsets if s != left_out]
        local = rj.identifiability.jacobian([3, 2, 4, 3, 2, 3], 3, fewer)
        assert local.parameters is False


def test_a_budget_is_used_up():
    found = plan([3] * 8, rank=3, budget=9)
    assert len(found) == 9
    assert found.local.smallest > plan([3] * 8, rank=3, slack=0).local.smallest


def test_triples_beside_pairs():
    pairs = list(combinations(range(8), 2))
    found = plan([3] * 8, rank=5, given=pairs, slack=0)
    assert found.least == 2  # ten open directions, eight moments of three variables in a table
    assert 2 <= len(found) <= 4
    assert found.local.parameters is True
    assert len(found.given) == 28
    assert "besides the 28 tables given" in found.words


def test_nothing_to_add():
    triples = list(combinations(range(6), 3))
    assert plan([3] * 6, rank=2, given=triples).subsets == ()


def test_quadruples():
    found = plan([2] * 8, rank=4, order=4)
    assert all(len(subset) == 4 for subset in found.subsets)
    assert found.local.parameters is True


def test_the_plan_prints_its_tables():
    domain = rj.Domain.of(dict.fromkeys(["age", "sex", "job", "town"], 3))
    found = plan(domain=domain, rank=2)
    assert len(str(found).splitlines()) == 1 + len(found)
    assert {"age", "sex", "job", "town"} == set(" ".join(str(found).splitlines()[1:]).split())


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: plan([2] * 4, rank=3), "even all 4 tables of order 3 leave its classes open"),
        (lambda: plan([3] * 4, rank=2, order=2), "Raise the order"),
        (lambda: plan([3] * 10, rank=5, budget=4), "raise the budget"),
        (lambda: plan([3] * 4, rank=2, order=5), "between 1 and 4"),
    ],
)
def test_errors_in_words(call, words):
    with pytest.raises(ValueError, match=words):
        call()
