"""Raked weights: against the exact solution, with bounds, holes, contradictions in words."""

import numpy as np
import pytest

import rejoint as rj


def survey(n=400, seed=0):
    return rj.datasets.asia().sample(n, random_state=seed).project(["smoke", "bronc", "dysp"])


def population():
    return rj.Marginals.from_pmf(
        rj.datasets.asia(), subsets=[("smoke", "bronc"), ("dysp",), ("smoke", "dysp")]
    )


def test_tables_are_met_and_weights_are_the_nearest():
    known = population()
    raked = rj.rake(survey(), known)
    weighted = rj.Records(survey().domain, survey().codes, raked.weights)
    for names in known.subsets:
        # The tolerance of raking is 1e-6 of the mass, half the sum of the differences.
        np.testing.assert_allclose(weighted.marginal(names), known.marginal(names), atol=2e-6)
    assert raked.residual <= 1e-6
    assert raked.stop.startswith("All tables are met after")
    assert raked.weights.sum() == pytest.approx(400)
    # The nearest weights in divergence are products of a factor for each cell of each table: in
    # the odds ratio of all three variables, which no table fixes, they cancel.
    cells = survey().marginal(["smoke", "bronc", "dysp"])
    after = weighted.marginal(["smoke", "bronc", "dysp"])
    logs = np.log(after / cells)
    assert logs[0, 0, 0] + logs[0, 1, 1] + logs[1, 0, 1] + logs[1, 1, 0] == pytest.approx(
        logs[1, 1, 1] + logs[1, 0, 0] + logs[0, 1, 0] + logs[0, 0, 1], abs=1e-9
    )


def test_weights_of_the_survey_are_the_start_and_totals_the_end():
    start = np.random.default_rng(0).random(400) + 0.1
    base = survey()
    records = rj.Records(base.domain, base.codes, start)
    counts = rj.Marginals.from_tables({"dysp": {"yes": 700, "no": 300}})
    raked = rj.rake(records, counts)
    assert raked.weights.sum() == pytest.approx(1000)
    for level in ("yes", "no"):
        chosen = records["dysp"] == level
        ratio = raked.weights[chosen] / start[chosen]
        np.testing.assert_allclose(ratio, ratio[0])
    assert rj.rake(records, counts, total=5.0).weights.sum() == pytest.approx(5.0)


def test_bounds_hold_and_are_told():
    rows = rj.Records.of({"a": ["x"] * 95 + ["y"] * 5, "b": ["u", "v"] * 50})
    known = rj.Marginals.from_tables({"a": {"x": 50, "y": 50}})
    free = rj.rake(rows, known)
    assert free.weights.max() / free.weights.mean() == pytest.approx(10.0)
    assert free.design_effect > 4
    held = rj.rake(rows, known, bounds=(0.3, 3.0))
    assert held.weights.max() <= 3.0 * held.weights.mean() * (1 + 1e-9)
    assert held.weights.min() >= 0.3 * held.weights.mean() * (1 - 1e-9)
    assert held.residual > 0.1
    assert "held within 0.3 to 3 times their average" in held.stop
    with pytest.raises(ValueError, match=r"bounds=\(2, 3\): give multiples of the average weight"):
        rj.rake(rows, known, bounds=(2.0, 3.0))


def test_records_with_holes_are_moved_by_the_tables_they_are_in():
    holes = rj.datasets.remove_cells(survey(2000), 0.2, random_state=0)
    raked = rj.rake(holes, population())
    assert raked.residual <= 1e-6
    weighted = rj.Records(holes.domain, holes.codes, raked.weights)
    np.testing.assert_allclose(
        weighted.marginal(["dysp"]), population().marginal(["dysp"]), atol=2e-6
    )


def test_incomplete_records_do_not_take_what_no_record_can_have():
    # No record is y and p, where a quarter should be; the last one lacks b.
    columns = {"a": ["x", "x", "y", "y"], "b": ["p", "q", "q", None]}
    tables = rj.Marginals.from_tables({("a", "b"): [[8, 4], [6, 6]]}, kind="counts")
    domain = rj.Domain.of({"a": ["x", "y"], "b": ["p", "q"]})
    tables = rj.Marginals(domain, tables.index_subsets, tables.flat)
    raked = rj.rake(rj.Records.of(columns, domain=domain), tables)
    shares = raked.weights / raked.weights.sum()
    assert shares[3] == pytest.approx(0.25)
    np.testing.assert_allclose(shares[:3], 0.75 * np.array([8, 4, 6]) / 18, atol=1e-9)
    assert "No record has a=y, b=p" in raked.stop


@pytest.mark.filterwarnings("ignore:Tables:rejoint.Remark")
def test_contradictions_are_told():
    known = rj.Marginals.from_tables(
        {
            ("smoke", "dysp"): {("yes", "yes"): 40, ("no", "yes"): 20, ("no", "no"): 40},
            "dysp": {"yes": 50, "no": 50},
        }
    )
    raked = rj.rake(survey(), known)
    assert raked.residual > 0.01
    assert "is met worst: after" in raked.stop
    assert "disagree on ('dysp',) by 10.00%: no weights meet both" in raked.stop
    rows = rj.Records.of({"a": ["x", "x", "z"]})
    raked = rj.rake(rows, rj.Marginals.from_tables({"a": {"x": 5, "y": 3, "z": 2}}))
    assert "No record has a=y, where 30.00% of the mass should be" in raked.stop
    assert raked.misfits == {("a",): pytest.approx(0.3)}


def test_unknown_cells_are_left_to_the_survey():
    table = {("smoke", "dysp"): [[40.0, float("nan")], [20.0, 20.0]]}
    known = rj.Marginals.from_tables(table, suppressed=(0, np.inf))
    rows = rj.Records.of({"smoke": [0, 0, 1, 1], "dysp": [0, 1, 0, 1]})
    raked = rj.rake(rows, known)
    assert raked.weights[0] / raked.weights[2] == pytest.approx(2.0)
    assert raked.weights[2] == pytest.approx(raked.weights[3])


def town(seed=0, size=600):
    """A survey of age, town, children and education whose joint is not independent."""
    rng = np.random.default_rng(seed)
    shape = {"age": 3, "town": 4, "children": 3, "education": 3}
    joint = rng.gamma(2.0, size=tuple(shape.values()))
    codes = np.argwhere(rng.multinomial(size, (joint / joint.sum()).ravel()).reshape(joint.shape))
    return rj.Records(rj.Domain.of(shape), codes.astype(np.int8)), joint


def given(joint, *subsets):
    names = ("age", "town", "children", "education")
    domain = rj.Domain.of(dict(zip(names, joint.shape, strict=True)))
    tables = {}
    for names in subsets:
        gone = tuple(n for n, name in enumerate(domain.names) if name not in names)
        tables[names] = np.rint(1e4 * joint / joint.sum()).sum(axis=gone)
    return rj.Marginals.from_tables(tables, domain=domain.project(dict.fromkeys(sum(subsets, ()))))


@pytest.mark.parametrize(
    "subsets",
    [
        [("age", "education"), ("town", "education"), ("children", "education")],
        [("age", "town"), ("town", "children"), ("age", "children")],
    ],
    ids=["one variable shared", "triangle"],
)
@pytest.mark.parametrize("zero", [False, True], ids=["", "zero row"])
def test_everyday_sets_of_tables_are_met(subsets, zero):
    survey, joint = town()
    if zero:
        joint[:, 2] = 0.0
    known = given(joint, *subsets)
    raked = rj.rake(survey, known)
    assert raked.residual <= 1e-6, raked.stop
    weighted = rj.Records(survey.domain, survey.codes, raked.weights)
    for i, names in enumerate(known.subsets):
        np.testing.assert_allclose(weighted.marginal(names), known.shares(i), atol=2e-6)
    if zero and any("town" in names for names in subsets):
        assert raked.weights[survey.codes[:, 1] == 2].max() == 0.0


def test_rounded_numbers_are_met_within_their_rounding():
    survey, joint = town()
    exact = given(joint, ("age", "town"), ("town", "children"), ("age", "children"))
    tables = {names: 50 * np.rint(exact[names] / 50) for names in exact.subsets}
    known = rj.Marginals.from_tables(tables, domain=exact.domain, rounded="nearest 50")
    assert known.disagreements()[0].distance > 1e-3
    raked = rj.rake(survey, known, total=1e4)
    assert raked.residual <= 1e-6, raked.stop
    weighted = rj.Records(survey.domain, survey.codes, raked.weights)
    for i, names in enumerate(known.subsets):
        found, numbers = weighted.marginal(names), known.counts_of(i)
        # The number of people is open, too: some number puts all cells into their bounds.
        least, most = (numbers - 25).clip(0), numbers + 25
        assert (least[least > 0] / found[least > 0]).max() <= (most / found).min() * (1 + 1e-4)


def test_suppressed_cells_stay_within_their_bounds():
    survey = rj.Records.of({"a": ["x"] * 8 + ["y"] * 2, "b": ["u", "v"] * 5})
    table = {("a", "b"): {("x", "u"): 30.0, ("x", "v"): float("nan")}}
    table["a", "b"] |= {("y", "u"): 10.0, ("y", "v"): 10.0}
    known = rj.Marginals.from_tables(table, suppressed=(1, 4))
    raked = rj.rake(survey, known)
    weighted = rj.Records(survey.domain, survey.codes, raked.weights).marginal(["a", "b"])
    # The survey alone would have as many in (x, v) as in (x, u).
    assert weighted[0, 1] / weighted[0, 0] == pytest.approx(4 / 30, rel=1e-4)


@pytest.mark.filterwarnings("ignore:Tables:rejoint.Remark")
def test_tables_that_contradict_each_other_are_a_compromise():
    survey = rj.Records.of({"a": ["x", "x", "y", "y"], "b": ["u", "v"] * 2})
    known = rj.Marginals.from_tables(
        {("a", "b"): [[3001, 2999], [1998, 2002]], "a": [5001, 4999]},
        domain=survey.domain,
    )
    raked = rj.rake(survey, known)
    weighted = rj.Records(survey.domain, survey.codes, raked.weights)
    # The last table of a sweep would be met, and the other missed by 0.1.
    assert 0.52 < weighted.marginal("a")[0] < 0.58
    assert 0.02 < raked.residual < 0.08
    few = rj.Marginals.from_tables(
        {("a", "b"): [[3001, 2999], [1998, 2002]], "a": [501, 499]},
        domain=survey.domain,
    )
    weighted = rj.Records(survey.domain, survey.codes, rj.rake(survey, few).weights)
    assert weighted.marginal("a")[0] == pytest.approx(0.6, abs=0.02)  # the table of more records


def test_known_means_are_met():
    survey = rj.Records.of({"a": ["x", "x", "y"], "age": [20, 40, 60]}, kinds={"age": "ordinal"})
    domain = survey.domain
    known = rj.Marginals.from_tables({"a": [60, 40]}, domain=domain, moments={"age": 45.0})
    raked = rj.rake(survey, known)
    shares = raked.weights / raked.weights.sum()
    assert shares @ [20, 40, 60] == pytest.approx(45.0, abs=1e-3)
    assert shares[2] == pytest.approx(0.4, abs=1e-5)
    assert raked.residual <= 1e-6


def test_faults():
    with pytest.raises(ValueError, match=r"The tables mention 'z', which the records do not have"):
        rj.rake(survey(), rj.Marginals.from_tables({"z": {"x": 1}}))
