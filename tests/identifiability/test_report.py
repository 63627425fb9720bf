"""Bounds on the rank: the paper's tables, the corrected lemmas, given subsets."""

from itertools import combinations, permutations, product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rejoint as rj
from rejoint.identifiability import bounds
from rejoint.identifiability.assessment import assess_tables
from rejoint.identifiability.gram_sums import symmetric
from rejoint.identifiability.groupings import solvable_rank
from rejoint.identifiability.jacobian import generic_ranks
from rejoint.identifiability.layout import read_layout

report = rj.identifiability.report

# N, I: printed triples, Theorem 1, Theorem 2 (4^(a-1), closed form), corrected Kruskal, Lemma 2,
# Lemma 3, counting, printed quadruples, corrected quadruples.
TABLES = {
    (6, 3): (4, 4, 4, 3.06, 6, 7, 4, 17, 10, 9),
    (10, 3): (7, 4, 16, 6.25, 10, 13, 8, 55, 36, 30),
    (20, 3): (27, 25, 64, 22.6, 20, 29, 32, 241, 179, 110),
    (40, 3): (105, 64, 256, 100, 40, 64, 128, 1015, 729, 451),
    (80, 3): (410, 196, 1024, 390, 80, 137, 512, 4161, 2916, 1801),
    (6, 6): (24, 24, 16, 10.6, 15, 21, 16, 93, 45, 41),
    (6, 10): (40, 40, 64, 27.6, 27, 37, 64, 288, 131, 124),
    (6, 20): (105, 80, 256, 105, 57, 77, 256, 1240, 544, 531),
    (6, 40): (410, 160, 1024, 410, 117, 157, 1024, 5146, 2220, 2192),
    (6, 80): (1620, 320, 4096, 1620, 237, 317, 4096, 20957, 8966, 8910),
}


@pytest.mark.parametrize(("n", "i"), TABLES)
def test_tables_two_and_three(n, i):
    triples, quadruples = report([i] * n, order=3), report([i] * n, order=4)
    shown, one, two, closed, kruskal, second, third, counting, shown4, corrected4 = TABLES[n, i]
    assert triples["Table II/III"].rank == shown
    assert triples["Theorem 1"].rank == one
    assert triples["Theorem 2"].rank == two
    # The closed form is listed with three digits.
    assert triples["Theorem 2, closed form"].value == pytest.approx(closed, rel=5e-3)
    assert triples["Lemma 1 (Kruskal)"].rank == kruskal
    assert triples["Lemma 2"].rank == second
    assert triples["Lemma 3"].rank == third
    assert triples.counting == counting
    assert quadruples["Theorem 3"].rank == shown4
    assert quadruples["Lemma 4 (compound)"].rank == corrected4


def test_printed_results_are_not_proved_and_never_the_headline():
    said = report([3] * 80, order=3)
    assert said["Theorem 2"].rank == 1024 > said.best.rank == 512
    assert all(not b.proved for b in said.bounds if b.name.startswith(("Theorem", "Table")))
    assert said.best.proved


def all_partitions(size, groups):
    for choice in product(range(groups), repeat=size):
        yield [[n for n in range(size) if choice[n] == k] for k in range(groups)]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(2, 5), min_size=3, max_size=6))
def test_corrected_lemmas_are_the_best_over_all_partitions(levels):
    free = [i - 1 for i in levels]
    said = report(levels, order=3)
    for name, rule in [
        ("Lemma 1 (Kruskal)", bounds.kruskal),
        ("Lemma 2", bounds.full_column_rank),
        ("Lemma 3", bounds.powers_of_two),
        ("Lemma 4 (compound)", bounds.compound),
    ]:
        best = max(
            rule(*(1 + sum(free[n] for n in group) for group in groups))
            for groups in all_partitions(len(levels), 3)
        )
        assert said[name].rank == best, name


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(2, 5), min_size=4, max_size=6))
def test_corrected_quadruples_are_the_best_over_all_partitions(levels):
    free = [i - 1 for i in levels]
    best = 0
    for groups in all_partitions(len(levels), 3):
        pairs = sum(symmetric([free[n] for n in groups[2]], 2))
        sides = [1 + sum(free[n] for n in group) for group in groups[:2]]
        best = max(best, bounds.compound(*sides, pairs))
    assert report(levels, order=4)["Lemma 4 (compound)"].rank == best


def test_theorem_three_is_the_best_over_all_partitions():
    n, i = 7, 3
    best = 0
    for sizes in product(range(1, n), repeat=4):
        if sum(sizes) == n:
            a, b, c, d = (i * s for s in sizes)
            best = max(best, bounds.compound(a, b, c * d))
    assert report([i] * n, order=4)["Theorem 3"].rank == best


@given(st.tuples(*[st.integers(1, 12)] * 3))
def test_kruskal_is_the_largest_rank_of_its_inequality(sides):
    holds = [f for f in range(2, 60) if sum(min(d, f) for d in sides) >= 2 * f + 2]
    wanted = max(holds, default=1)
    # A side of one row adds nothing: the inequality holds at no rank then, and one class is unique.
    assert bounds.kruskal(*sides) == wanted


@given(st.tuples(st.integers(2, 9), st.integers(2, 9), st.integers(1, 60)))
def test_compound_is_the_largest_rank_of_its_inequality(sides):
    a, b, c = sides
    ranks = [f for f in range(1, c + 1) if 2 * f * (f - 1) <= a * (a - 1) * b * (b - 1)]
    assert bounds.compound(a, b, c) == max(ranks)


@pytest.mark.parametrize(
    ("sides", "rank"),
    [
        ((4, 4, 3), 4), ((4, 4, 4), 5), ((6, 6, 3), 7), ((5, 5, 2, 2), 8), ((2,) * 5, 4),
        ((3, 3, 3), 3), ((3, 3, 20), 4), ((30, 30, 30), 1), ((7, 7, 9), 20), ((2, 2, 2), 1),
    ],
)  # fmt: skip
def test_ranks_below_the_expected_one(sides, rank):
    assert all(bounds.below_expected(turn) == rank for turn in set(permutations(sides)))


def test_counting_counts_the_closure():
    tables = read_layout([2, 3, 4, 2], subsets=[(0, 1, 2), (2, 3)])
    parts = [(0,), (1,), (2,), (3,), (0, 1), (0, 2), (1, 2), (2, 3), (0, 1, 2)]
    assert tables.equations == sum(prod(tables.free[n] for n in part) for part in parts)


def test_all_subsets_given_one_by_one_are_all_of_the_order():
    levels = [2, 3, 2, 4, 2]
    listed = report(levels, subsets=list(combinations(range(5), 3)))
    assert [b.rank for b in listed.bounds] == [b.rank for b in report(levels, order=3).bounds]


def test_subsets_of_other_tables_say_nothing():
    one = report([3] * 4, subsets=[(0, 1, 2), (1, 2, 3), (1, 2), (0,)])
    assert one.layout.subsets == ((0, 1, 2), (1, 2, 3))


def test_given_subsets_hang_on_a_seed():
    chain = [(0, 1, 2), (1, 2, 3), (2, 3, 4)]
    said = report([3] * 5, subsets=chain)
    assert said.best.partition == (("x0", "x3"), ("x1",), ("x2",))  # 45 cells, 9 F parameters
    assert said.best.rank == 4
    # x4 is only beside x3, whose three rows carry no more than rank 3.
    assert solvable_rank(read_layout([3] * 5, subsets=[*chain[:2], (3, 4)]), [0, 1, 2]) == 3
    assert solvable_rank(read_layout([3] * 5, subsets=[*chain[:2], (3, 4)]), [0, 1, 3]) == 3


def test_bounds_of_given_subsets_never_exceed_those_of_all():
    rng = np.random.default_rng(1)
    every = list(combinations(range(7), 3))
    for _ in range(5):
        some = [every[k] for k in rng.choice(len(every), 20, replace=False)]
        assert report([3] * 7, subsets=some).best.rank <= report([3] * 7, order=3).best.rank


def test_an_uncovered_variable():
    said = report([2] * 4, subsets=[(0, 1, 2)], rank=2)
    assert said.verdict == "No table contains 'x3': nothing is known about it."


def test_pairs_prove_nothing_but_one_class():
    said = report([3] * 5, order=2, rank=2)
    assert said.best.rank == 1
    assert "Add tables of three variables" in said.verdict


def test_the_joint_is_given_where_a_table_holds_everything():
    assert "one table holds all variables" in report([2] * 3, order=3, rank=6).verdict


@pytest.mark.parametrize(
    ("rank", "words"),
    [(5, "identifiable for almost all"), (12, "neither proved nor excluded"), (18, "enough for")],
)
def test_verdicts(rank, words):
    assert words in report([3] * 6, order=3, rank=rank).verdict


def test_tables_apart_are_said():
    said = report(
        subsets=[("a", "b", "c"), ("b", "c", "d")], domain=rj.Domain.of(dict.fromkeys("abcd", 3))
    )
    assert "No table contains both of: a and d." in str(said)


def test_marginals_say_their_subsets():
    truth = rj.LowRankPMF([0.5, 0.5], [[[0.7, 0.2], [0.3, 0.8]]] * 4)
    tables = rj.Marginals.from_pmf(truth, subsets=[("x0", "x1", "x2"), ("x1", "x2", "x3")])
    assert report(tables).layout.subsets == ((0, 1, 2), (1, 2, 3))


def test_html_escapes_and_shows_every_bound():
    said = report(domain=rj.Domain.of({"<a>": 3, "b": 3, "c": 3}), order=3)
    page = said._repr_html_()
    assert "<a>" not in page
    assert page.count("<tr>") == 1 + len(said.bounds) + len(said.limits)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: report(), "Give the variables once"),
        (lambda: report([3, 0, 2]), r"levels\[1\] must be a whole number of at least 1, got 0"),
        (lambda: report("333"), "list of numbers of levels"),
        (lambda: report([3] * 3, order=4), "between 1 and 3"),
        (lambda: report([3] * 3, subsets=[(0, 3)]), r"positions are 0\.\.2"),
        (lambda: report([3] * 3, subsets=[(0, 0)]), "each once"),
        (lambda: report([3] * 3, subsets=[]), "name at least one table"),
        (lambda: report([3] * 3, order=3, subsets=[(0, 1)]), "not both"),
        (lambda: report([3] * 3, rank=0), "at least 1, got 0"),
        (lambda: report([]), "no variables"),
        (lambda: report([3] * 3)["Lemma 9"], "There is no result 'Lemma 9'"),
        (lambda: report([3] * 3, subsets="ab"), "list of tuples"),
    ],
)  # fmt: skip
def test_errors_in_words(call, words):
    with pytest.raises((ValueError, TypeError, KeyError), match=words):
        call()


def test_names_that_are_numbers_are_names():
    domain = rj.Domain.of({"2": 2, "0": 3, "1": 4, "5": 2})
    given = {("2", "0", "1"): np.ones((2, 3, 4)), ("1", "5"): np.ones((4, 2))}
    tables = rj.Marginals.from_tables(given, domain=domain)
    assert report(tables).layout.apart == (("2", "5"), ("0", "5"))
    assert "contains both of: 2 and 5; 0 and 5." in assess_tables(tables, 2).text


def test_tables_without_records_say_nothing():
    codes = np.array([[0, 1, -1], [1, 0, -1], [-1, 1, 1], [-1, 0, 0]], dtype=np.int16)
    records = rj.Records(rj.Domain.of_shape([2, 2, 2]), codes)
    tables = rj.Marginals.count(records, order=2)
    assert report(tables).layout.apart == (("x0", "x2"),)


def test_wide_tables():
    pair = [tuple(range(20)), tuple(range(18, 25))]
    said = report([2] * 25, subsets=pair)
    assert said.layout.equations == 2**20 + 2**7 - 2**2 - 1
    assert said.layout.subsets == tuple(pair)
    many = [tuple(range(k, k + 18)) for k in range(15)]
    with pytest.raises(ValueError, match="too many smaller ones to be listed"):
        report([2] * 32, subsets=many)


def test_hundreds_of_variables():
    said = report([6] * 500, order=3, rank=100)
    assert (
        said["Lemma 3"].rank == 2**16
    )  # groups of 167 and 166 have d = 836 and 831: 2^(9 + 9 - 2)
    assert said["Proposition 1"].value == float("inf")
    assert "Proposition 1" in str(said)


def test_something_else_with_a_domain():
    pmf = rj.LowRankPMF([1.0], [[[0.5], [0.5]]])
    with pytest.raises(TypeError, match=r"got a LowRankPMF\. Give its \.domain"):
        report(pmf)


def test_many_random_triples_in_seconds():
    rng = np.random.default_rng(0)
    subsets = [tuple(sorted(rng.permutation(60)[:3].tolist())) for _ in range(800)]
    said = report([3] * 60, subsets=subsets)
    assert said.best.rank >= 4
    assert rj.identifiability.jacobian([3] * 60, said.best.rank, subsets).parameters


def test_unequal_levels_of_many_variables():
    levels = [int(i) for i in np.random.default_rng(0).integers(50, 3000, 12)]
    assert report(levels, order=3)["Lemma 3"].rank >= 4**10


def test_sides_beyond_the_range_of_machine_numbers():
    big = 10**5
    rank = bounds.compound(big, big, 10**12)
    right = big * (big - 1) * big * (big - 1)
    assert 2 * rank * (rank - 1) <= right < 2 * (rank + 1) * rank
    assert report([2] * 300, order=150).best.rank > 10**4


@pytest.mark.parametrize(("levels", "order"), [([2] * 6, 5), ([2, 3, 2, 2, 3, 2], 5), ([2] * 7, 6)])
def test_tables_of_many_variables(levels, order):
    best = report(levels, order=order).best.rank
    assert generic_ranks(read_layout(levels, order), best).free == 0
