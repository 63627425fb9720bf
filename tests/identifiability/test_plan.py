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


def test_a_tight_budget_spares_fewer_equations_and_says_so():
    found = plan([3] * 10, rank=5, budget=5)
    assert len(found) == 5
    assert found.local.parameters is True
    assert 0 <= found.spare < 0.2
    assert "of equations to spare: fits may end in local optima" in found.verdict
    assert "to spare" not in plan([3] * 10, rank=5).verdict


def test_a_rank_near_the_counting_bound_spares_what_it_can():
    found = plan([3] * 5, rank=11)  # all ten triples: 130 equations, 120 parameters
    assert found.local.parameters is True
    assert found.spare < 0.1
    assert len(plan([3], rank=1)) == 1


def test_names_that_are_numbers():
    domain = rj.Domain.of({"3": 2, "0": 3, "2": 4, "1": 2, "7": 3})
    found = plan(domain, rank=2)
    assert {name for subset in found.subsets for name in subset} == set(domain.names)
    assert rj.identifiability.jacobian(domain, 2, found.subsets).parameters is True


def test_the_tables_of_marginals_are_given():
    names = "abcd"
    pairs = {s: np.ones((3, 3)) for s in combinations(names, 2)}
    found = plan(rj.Marginals.from_tables(pairs), rank=2)
    assert len(found.given) == 6
    assert all(len(subset) == 3 for subset in found.subsets)
    assert plan(rj.Marginals.from_tables(pairs), rank=2, given=[]).given == ()


def test_given_tables_may_be_larger_than_those_to_add():
    # Rank 4 of five binary variables is out of reach of triples, not of quadruples.
    quadruples = list(combinations(range(5), 4))
    assert plan([2] * 5, rank=4, given=quadruples, slack=0).subsets == ()


def test_every_respondent_gets_a_form():
    found = plan([3] * 6, rank=3)
    forms = found.ask(101, random_state=1)
    counts = [forms.count(form) for form in found.subsets]
    assert len(forms) == sum(counts) == 101
    assert max(counts) - min(counts) <= 1
    assert forms != found.ask(101, random_state=2)


def test_triples_beside_pairs():
    pairs = list(combinations(range(8), 2))
    found = plan([3] * 8, rank=5, given=pairs, slack=0)
    assert found.least == 2  # ten open directions, eight moments of three variables in a table
    assert 2 <= len(found) <= 4
    assert found.local.parameters is True
    assert len(found.given) == 28
    assert "besides the 28 tables given" in found.verdict


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
        (lambda: plan([3] * 10, rank=5, budget=4), "no fewer than 5 can.*raise the budget"),
        (lambda: plan([3] * 10, rank=5, budget=6, slack=0.5), "50% of equations to spare"),
        (lambda: plan([3] * 10, rank=5, budget=0), "budget must be a whole number"),
        (lambda: plan([3] * 10, rank=5, slack=-0.1), "slack must be 0 or a share above"),
        (lambda: plan([3] * 10, rank=50, slack=0.5), "There are no tables of order 3"),
        (lambda: plan([3] * 10), "Give the rank"),
        (lambda: plan([3] * 2, rank=2), "even one table of order 2 leave"),
        (lambda: plan([3] * 4, 2, given=list(combinations(range(4), 3))).ask(9), "nothing to ask"),
        (lambda: plan([3] * 4, rank=2, order=5), "between 1 and 4"),
    ],
)
def test_errors_in_words(call, words):
    with pytest.raises(ValueError, match=words):
        call()
