"""Marginals from tables that users give: their forms, their kinds, their faults, and moments."""

import math
import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rejoint as rj
from rejoint.marginals import Marginals

pd = pytest.importorskip("pandas")
TABLE = np.array([[12.0, 3.0, 0.0], [5.0, 7.0, 11.0]])
DOMAIN = rj.Domain.of({"smoke": ["yes", "no"], "age": ["young", "mid", "old"]})
CELLS = {
    (a, b): TABLE[i, j]
    for i, a in enumerate(DOMAIN["smoke"].levels)
    for j, b in enumerate(DOMAIN["age"].levels)
}


def long_frame():
    rows = [(a, b, n) for (a, b), n in CELLS.items() if n]  # the empty cell is left out
    return pd.DataFrame(rows, columns=["smoke", "age", "count"])


def long_dict():
    return {c: long_frame()[c].tolist() for c in ("age", "count", "smoke")}


def polars_frame():
    return pytest.importorskip("polars").DataFrame(long_dict())


def arrow_table():
    return pytest.importorskip("pyarrow").table(long_dict())


def crosstab():
    return pd.DataFrame(
        TABLE,
        index=pd.Index(["yes", "no"], name="smoke"),
        columns=pd.Index(["young", "mid", "old"], name="age"),
    )


FORMS = {
    "long pandas": long_frame,
    "long polars": polars_frame,
    "long pyarrow": arrow_table,
    "crosstab": crosstab,
    "crosstab turned": lambda: crosstab().T,
    "crosstab without names": lambda: crosstab().rename_axis(index=None, columns=None),
    "series": lambda: crosstab().stack(),
    "series turned": lambda: crosstab().T.stack(),
    "one column": lambda: crosstab().stack().to_frame("n"),
    "mapping": lambda: CELLS,
    "array": lambda: TABLE,
    "lists": lambda: TABLE.tolist(),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("domain", [None, DOMAIN])
def test_every_form_gives_the_same_table(form, domain):
    m = Marginals.from_tables({("smoke", "age"): FORMS[form]()}, domain=domain)
    assert m.domain.names == ("smoke", "age")
    order = [list(m.domain[n].levels) for n in ("smoke", "age")]
    if form in ("array", "lists") and domain is None:
        assert order == [[0, 1], [0, 1, 2]]
        rows, columns = [0, 1], [0, 1, 2]
    else:
        rows = [order[0].index(label) for label in ("yes", "no")]
        columns = [order[1].index(label) for label in ("young", "mid", "old")]
    np.testing.assert_array_equal(m["smoke", "age"][np.ix_(rows, columns)], TABLE)
    np.testing.assert_array_equal(m["age", "smoke"][np.ix_(columns, rows)], TABLE.T)
    assert m.total("age", "smoke") == 38
    assert m.counted.all()


def test_three_variables_in_a_crosstab_of_several_levels():
    rng = np.random.default_rng(0)
    table = rng.integers(0, 50, size=(2, 3, 2))
    index = pd.MultiIndex.from_product([["x", "y"], [1, 2, 3]], names=["a", "b"])
    frame = pd.DataFrame(
        table.reshape(6, 2), index=index, columns=pd.Index([True, False], name="c")
    )
    for given_ in (frame, frame.unstack("b"), frame.stack(), frame.stack().reset_index(name="n")):
        m = Marginals.from_tables({("a", "b", "c"): given_})
        np.testing.assert_array_equal(m["a", "b", "c"], table)
        assert m.domain["c"].levels == (True, False)


def test_one_variable_in_every_form():
    polars = pytest.importorskip("polars")
    for given_ in (
        {"x": 3, "y": 1},
        {("x",): 3, ("y",): 1},
        pd.Series([3, 1], index=["x", "y"]),
        pd.Series(["x", "y", "x", "x"], name="a").value_counts(),
        pd.DataFrame({"n": [3, 1]}, index=["x", "y"]),
        polars.DataFrame({"a": ["x", "y"], "len": [3, 1]}),
    ):
        m = Marginals.from_tables({"a": given_})
        assert m.domain["a"].levels == ("x", "y")
        np.testing.assert_array_equal(m["a"], [3, 1])


def test_bins_are_labels_too():
    young, old = rj.Bin(0, 30), rj.Bin(30, 99)
    domain = rj.Domain((rj.Variable("age", (young, old), "binned"),))
    m = Marginals.from_tables({"age": {young: 2, old: 3}}, domain=domain)
    np.testing.assert_array_equal(m["age"], [2, 3])


@pytest.mark.filterwarnings("ignore:Tables")  # they disagree, which is not the point here
def test_levels_and_variables_in_order_of_first_appearance():
    m = Marginals.from_tables(
        {("b", "a"): {("q", "y"): 1, ("p", "x"): 2}, ("a", "c"): {("z", 0): 1, ("x", 1): 2}},
        kind="counts",
    )
    assert m.domain.names == ("b", "a", "c")
    assert m.domain["b"].levels == ("q", "p")
    assert m.domain["a"].levels == ("y", "x", "z")
    assert m.index_subsets == ((0, 1), (1, 2))


def test_arrays_take_the_labels_of_other_tables():
    m = Marginals.from_tables({("a", "b"): [[1, 1], [1, 1]], "a": {"x": 2, "y": 2}})
    assert m.domain["a"].levels == ("x", "y")
    assert m.domain["b"].levels == (0, 1)


def test_two_variables_are_enough_and_totals_may_differ():
    m = Marginals.from_tables({("a", "b"): [[10, 20], [30, 40]], "a": [0.3, 0.7]})
    np.testing.assert_array_equal(m.totals, [100, 1])
    np.testing.assert_array_equal(m.counted, [True, False])
    np.testing.assert_array_equal(m.marginal("a"), [0.3, 0.7])


@settings(max_examples=25)
@given(data=st.data(), perm=st.permutations(range(3)))
def test_the_order_of_the_key_is_the_order_of_the_axes(data, perm):
    shape = data.draw(st.tuples(*[st.integers(1, 4)] * 3))
    size = math.prod(shape)
    cells = data.draw(st.lists(st.integers(1, 9), min_size=size, max_size=size))
    table = np.array(cells).reshape(shape)
    domain = rj.Domain.of_shape(shape)
    names = tuple(f"x{n}" for n in perm)
    m = Marginals.from_tables({names: table.transpose(perm)}, domain=domain)
    np.testing.assert_array_equal(m["x0", "x1", "x2"], table)


# --- counts or shares -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "kind", "counted", "total"),
    [
        ([3, 7], "auto", True, 10),
        ([1, 0], "auto", True, 1),  # one record, since the numbers are integers
        ([1.0, 0.0], "auto", False, 1),
        ([0.3, 0.7], "auto", False, 1),
        ([0.333, 0.333, 0.333], "auto", False, 1),  # rounded
        ([33.3, 66.7], "auto", False, 1),  # per cent
        ([40.0, 60.0], "auto", True, 100),  # 100 records
        ([40, 60], "shares", False, 1),
        ([12.5, 100.25], "auto", True, 112.75),  # weighted records
        ([0.3, 0.7], "counts", True, 1),
        ([0.1, 0.2], "counts", True, 0.3),
        (pd.Series([1.5, 98.5], index=[0, 1], name="n"), "auto", True, 100),
        (pd.Series([0.5, 0.5], index=[0, 1], name="freq"), "auto", False, 1),
        (pd.Series([40, 60], index=[0, 1], name="percent"), "auto", False, 1),
    ],
)
def test_counts_and_shares_are_told_apart(table, kind, counted, total):
    m = Marginals.from_tables({"a": table}, kind=kind)
    assert m.counted[0] == counted
    assert m.total("a") == pytest.approx(total, rel=1e-15)  # one division and one sum


def test_percentages_become_shares():
    m = Marginals.from_tables({"a": [12.5, 87.5]})
    np.testing.assert_array_equal(m["a"], [0.125, 0.875])


# --- weights of tables ------------------------------------------------------------------------


def test_table_weights():
    tables = {("a", "b"): [[1, 1], [1, 1]], "b": [1, 1]}
    np.testing.assert_array_equal(Marginals.from_tables(tables).table_weight, [1, 1])
    weighted = Marginals.from_tables(tables, table_weight={("b", "a"): 3})
    np.testing.assert_array_equal(weighted.table_weight, [3, 1])
    np.testing.assert_array_equal(
        Marginals.from_tables(tables, table_weight=2.5).table_weight, [2.5, 2.5]
    )
    with pytest.raises(ValueError, match="table_weight names 'a', but no such table is given"):
        Marginals.from_tables(tables, table_weight={"a": 1})
    for bad in (-1, np.nan, {"b": np.inf}):
        with pytest.raises(ValueError, match="table_weight must be finite and not negative"):
            Marginals.from_tables(tables, table_weight=bad)


# --- disagreement -----------------------------------------------------------------------------


def test_the_worst_disagreement_is_named():
    tables = {
        ("a", "b"): [[1, 1], [1, 1]],
        ("b", "c"): [[3, 3], [1, 1]],
        ("c", "d"): [[6, 5], [5, 4]],
    }
    words = r"Tables \('a', 'b'\) and \('b', 'c'\) disagree on \('b',\): 25.0% of the mass"
    with pytest.warns(rj.Remark, match=words):
        m = Marginals.from_tables(tables)
    found = m.disagreements()
    assert [d.shared for d in found] == [("b",), ("c",)]
    assert found[0].distance == 0.25
    assert found[1].distance == pytest.approx(0.05, rel=1e-14)  # one sum, one division


def test_rounding_is_no_disagreement():
    rng = np.random.default_rng(0)
    joint = rng.dirichlet(np.ones(60)).reshape(3, 4, 5)
    rounded = {
        ("a", "b"): joint.sum(2).round(3),
        ("b", "c"): joint.sum(0).round(3),
        ("a", "b", "c"): joint.round(4),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        m = Marginals.from_tables(rounded)
    # 20 cells off by at most 0.0005 each, and as much again through scaling to one.
    assert 0 < m.disagreements()[0].distance < 0.01


def test_tables_are_compared_on_all_they_share():
    base = np.ones((2, 2, 2))
    other = np.array([[2.0, 0], [0, 2]])  # the same variables alone, another dependence
    with pytest.warns(
        rj.Remark, match=r"\('a', 'b', 'c'\) and \('a', 'b'\) disagree on \('a', 'b'\)"
    ):
        m = Marginals.from_tables({("a", "b", "c"): base, ("a", "b"): other}, kind="counts")
    assert [d.shared for d in m.disagreements()] == [("a", "b")]


# --- faults -----------------------------------------------------------------------------------

EMPTY = pd.DataFrame({"a": [], "n": []})
FAULTS = [
    ({"a": [1, -1]}, "Table ('a',), cell a=1: got -1; cells must be finite and not negative"),
    ({"a": [1, np.nan]}, "cell a=1: got nan"),
    ({"a": [1, np.inf]}, "cell a=1: got inf"),
    ({("a", "b"): {("x", "y"): 1, ("x", "z"): -2}}, "cell a='x', b='z': got -2"),
    ({"a": [0, 0]}, "Table ('a',) is empty: all its cells are zero"),
    ({("a", "b"): [1, 2]}, "one axis per variable, in the order of the key; this one has 1 for 2"),
    ({("a", "b"): [[1, 2], [3]]}, "Table ('a', 'b'): not an array of numbers"),
    ({"a": ["many", "few"]}, "Table ('a',): its cells must be numbers"),
    ({"a": pd.Series([1, 2], index=["x", None])}, "cell 1: the label of 'a' is missing"),
    ({"a": pd.Series([1, 2], index=["x", "x"])}, "the cell a='x' is given twice"),
    ({("a", "b"): {("x", "y"): 1, "x": 2}}, "the cell ('x',) has 1 label for 2 variables"),
    ({"a": [0.2, 0.3]}, "adds up to 0.5: too little for shares"),
    ({("a", "b"): [[1]], ("b", "a"): [[1]]}, "Table ('b', 'a') is given twice (before as ('a',"),
    ({("a", "a"): [[1]]}, "names a variable twice"),
    ({(): 1}, "A table without variables was given"),
    (
        {"a": [1, 2], ("a", "b"): [[1], [2], [3]]},
        "axis 'a' has 3 levels, but other tables",
    ),
    ({"a": {1: 1}, ("a", "b"): {("1", 0): 1}}, "the level 1 in one table and '1' in another"),
    (
        {("a", "b"): pd.DataFrame({"a": [1], "n": [2]})},
        "the frame has no column 'b'; its columns are ['a', 'n']",
    ),
    (
        {("a", "b", "c"): pd.DataFrame([[1, 2]])},
        "neither columns named ['a', 'b', 'c'] (long form)",
    ),
    ({("a", "b"): pd.DataFrame({"a": [1], "b": [2]})}, "but none with the numbers"),
    (
        {"a": pd.DataFrame({"a": [1], "u": [2], "v": [3]})},
        "which of the columns ['u', 'v'] holds the numbers?",
    ),
    (
        {"a": pd.DataFrame({"a": [1], "count": [2], "share": [3]})},
        "which of the columns ['count', 'share'] holds the numbers?",
    ),
    ({("a", "b"): crosstab()}, "named ['smoke', 'age']; name them like the key, or not at all"),
    ({("a", "b"): pd.Series([1], index=["x"])}, "the index has 1 label for 2 variables"),
    ({"a": {"x": 1, "y": 2, "Total": 3}}, "'Total' of 'a' is the sum of the other levels"),
    ({"a": EMPTY}, "Table ('a',) is empty"),
]


@pytest.mark.parametrize(("tables", "words"), FAULTS, ids=[words[:40] for _, words in FAULTS])
def test_faults_are_told_in_words(tables, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        Marginals.from_tables(tables)


def test_faults_of_arguments():
    with pytest.raises(ValueError, match="kind must be 'auto', 'counts' or 'shares', got 'count'"):
        Marginals.from_tables({"a": [1]}, kind="count")
    with pytest.raises(TypeError, match="must be a mapping from tuples of names to tables"):
        Marginals.from_tables([[1, 2]])
    with pytest.raises(ValueError, match=r"shares must add up to 1 \(or 100 %\), these to 7"):
        Marginals.from_tables({"a": [3, 4]}, kind="shares")
    with pytest.raises(ValueError, match=r"add up to 1 \(or 100 %\), these to 2"):
        Marginals.from_tables({"a": pd.DataFrame({"a": ["x"], "prob": [2.0]})})


def test_faults_against_a_domain():
    with pytest.raises(ValueError, match=r"Table \('smoke',\): .*'yess' is not among.*'yes'\?"):
        Marginals.from_tables({"smoke": {"yess": 1}}, domain=DOMAIN)
    with pytest.raises(ValueError, match=r"shape \(3,\) does not fit; the domain has 2 levels"):
        Marginals.from_tables({"smoke": [1, 2, 3]}, domain=DOMAIN)
    with pytest.raises(KeyError, match="Did you mean 'smoke'"):
        Marginals.from_tables({"smoek": [1, 2]}, domain=DOMAIN)
    with pytest.raises(ValueError, match="No table or moment says anything about 'age'"):
        Marginals.from_tables({"smoke": [1, 2]}, domain=DOMAIN)


def test_other_frames():
    polars = pytest.importorskip("polars")
    with pytest.raises(TypeError, match="a lazy frame was given; collect"):
        Marginals.from_tables({("smoke", "age"): polars_frame().lazy()})
    with pytest.raises(ValueError, match=r"has no column 'sex'; its columns are \['age', 'count'"):
        Marginals.from_tables({("smoke", "sex"): polars_frame()})
    with pytest.raises(ValueError, match="label of 'a' is missing"):
        Marginals.from_tables({"a": polars.DataFrame({"a": ["x", None], "n": [1, 2]})})


# --- moments ----------------------------------------------------------------------------------

NUMBERS = rj.Domain.of({"a": [0, 1, 2], "b": [-1, 1], "c": [1.5, 2.5]})


def joint_moment(joint, powers, centers):
    """Expectation by brute force over all cells."""
    values = [np.asarray(NUMBERS[n].numeric) for n in range(3)]
    total = 0.0
    for cell in np.ndindex(joint.shape):
        product = joint[cell]
        for n, power in enumerate(powers):
            product *= (values[n][cell[n]] - centers[n]) ** power
        total += product
    return total


@pytest.fixture
def joint():
    return np.random.default_rng(0).dirichlet(np.ones(12)).reshape(3, 2, 2)


@pytest.fixture
def means(joint):
    return [joint_moment(joint, np.eye(3, dtype=int)[n], [0, 0, 0]) for n in range(3)]


KEYS = {("a", "b"): (1, 1, 0), ("a", "a"): (2, 0, 0), ("c", "b", "a"): (1, 1, 1)}


@pytest.mark.parametrize("central", [True, False])
def test_moments_mean_what_they_say(joint, means, central):
    centers = means if central else [0.0, 0.0, 0.0]
    given_ = {(name,): means[n] for n, name in enumerate("abc")}
    given_ |= {key: joint_moment(joint, powers, centers) for key, powers in KEYS.items()}
    m = Marginals.from_tables({}, domain=NUMBERS, moments=given_, central=central)
    assert len(m) == 0
    assert len(m.moments) == 6
    for moment in m.moments:
        rest = tuple(n for n in range(3) if n not in moment.variables)
        # A dozen products and sums of numbers of order one.
        assert moment.expectation(joint.sum(axis=rest)) == pytest.approx(moment.value, abs=1e-14)
    labels = {moment.label for moment in m.moments}
    if central:
        assert {"mean of a", "covariance of a, b", "variance of a"} < labels
        assert "central moment of a, b, c" in labels
    else:
        assert "raw moment of a, b" in labels
    assert repr(m) == "Marginals(0 tables over 3 variables, 6 moments)"


def test_means_may_come_from_a_table(joint, means):
    tables = {("a", "b", "c"): joint}
    covariance = joint_moment(joint, (1, 1, 0), means)
    m = Marginals.from_tables(tables, domain=NUMBERS, moments={("a", "b"): covariance})
    np.testing.assert_allclose(m.moments[0].vectors[0], np.arange(3) - means[0], rtol=1e-14)


def test_a_moment_that_a_table_contradicts_is_named(joint, means):
    with pytest.warns(rj.Remark, match=r"mean of a is given as 1\.9, but the table"):
        Marginals.from_tables({("a", "b", "c"): joint}, domain=NUMBERS, moments={"a": 1.9})


@pytest.mark.parametrize(
    ("moments", "words"),
    [
        ({("a", "b"): 0.1, "a": 1.0}, "central moment of a, b needs the mean of 'b'"),
        ({"a": 2.5}, "mean of a is given as 2.5, but with these levels it lies between 0 and 2"),
        ({"a": 1.0, ("a", "a"): -0.1}, "variance of a is given as -0.1, but with these levels"),
        ({"a": np.nan}, "The moment of a must be a finite number, got nan"),
        ({"a": "much"}, "must be a finite number, got 'much'"),
        ({(): 1.0}, "A moment without variables was given"),
        ({("a", "b"): 0.1, ("b", "a"): 0.1}, "The moment of a, b is given twice"),
        ({"a": 1.0}, "No table or moment says anything about 'b', 'c'"),
    ],
)
def test_faults_of_moments(moments, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        Marginals.from_tables({}, domain=NUMBERS, moments=moments)


def test_moments_need_numbers_and_a_domain():
    with pytest.raises(ValueError, match="moments alone need domain="):
        Marginals.from_tables({}, moments={"a": 1.0})
    with pytest.raises(ValueError, match="levels that are not numbers"):
        Marginals.from_tables({("smoke", "age"): TABLE}, domain=DOMAIN, moments={"smoke": 1.0})
    with pytest.raises(KeyError, match="No variable 'z'"):
        Marginals.from_tables({}, domain=NUMBERS, moments={"z": 1.0})


def test_moments_survive_addition():
    one = Marginals.from_tables({"a": [1, 1, 1]}, domain=NUMBERS.project(["a"]), moments={"a": 1.0})
    both = one + one
    assert both.moments == one.moments
    np.testing.assert_array_equal(both["a"], [2, 2, 2])


def test_a_model_is_compared_by_labels_whatever_the_order_of_its_levels():
    domain = rj.Domain.of({"a": ["x", "y"], "b": ["u", "v", "w"]})
    turned = rj.Domain.of({"b": ["w", "u", "v"], "a": ["y", "x"]})
    shares = np.array([[0.1, 0.2, 0.3], [0.2, 0.15, 0.05]])
    model = rj.LowRankPMF.from_dense(shares[::-1][:, [2, 0, 1]].T, domain=turned)
    tables = rj.Marginals.from_tables({("a", "b"): shares * 1000}, domain=domain)
    assert tables.compare(model)[0].distance == pytest.approx(0.0, abs=1e-12)


def test_what_a_model_has_at_levels_unknown_to_the_table_counts_as_wrong():
    wider = rj.Domain.of({"a": ["x", "y", "z"]})
    model = rj.LowRankPMF.from_dense(np.array([0.5, 0.25, 0.25]), domain=wider)
    tables = rj.Marginals.from_tables({("a",): [50, 50]}, domain=rj.Domain.of({"a": ["x", "y"]}))
    assert tables.compare(model)[0].distance == pytest.approx(0.25)
