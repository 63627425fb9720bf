"""Long and cross forms: what is told is honoured, what is proposed explains every number."""

import warnings

import numpy as np
import pytest

import rejoint as rj
from rejoint.marginals import Marginals
from rejoint.marginals.read.table_files import OpenQuestionError

CROSS = "Sex \\ Age,young,old,Total\nm,30,10,40\nf,20,40,60\nTotal,50,50,100\n"


def put(folder, text, name="t.csv"):
    (folder / name).write_text(text)
    return folder / name


def ask(path, **options):
    """The options that a file leaves open, with the text of the proposal."""
    with pytest.raises(OpenQuestionError) as error:
        Marginals.read(path, **options)
    return error.value.proposal


# What was seen in published files -------------------------------------------------------------


def test_a_total_beside_its_parts_is_no_level_and_must_add_up(tmp_path):
    text = "Sex,n\nAll categories: Sex,100\nMen,60\nWomen,40\n"
    assert Marginals.read(put(tmp_path, text))["Sex"].tolist() == [60, 40]
    with pytest.raises(ValueError, match=r"100 given, 90 by its parts") as error:
        Marginals.read(put(tmp_path, text.replace("60", "50")))
    assert "totals='none'" in str(error.value)
    m = Marginals.read(tmp_path / "t.csv", totals="none")
    assert m["Sex"].tolist() == [100, 50, 40]
    m = Marginals.read(tmp_path / "t.csv", drop="All categories: Sex")
    assert m["Sex"].tolist() == [50, 40]
    text = "Sex \\ Age,young,old,All ages\nm,30,10,40\nf,20,47,67\nTotal,50,57,190\n"
    with pytest.raises(ValueError, match=r"'Total' of 'Sex' .* totals=\['All ages'\]") as error:
        Marginals.read(put(tmp_path, text.replace("57,190", "99,149")))
    m = Marginals.read(tmp_path / "t.csv", totals=["All ages"], kind="counts")
    assert m["Sex", "Age"].shape == (3, 2)


def test_a_level_that_is_the_sum_of_others_without_a_word_is_asked_about(tmp_path):
    rng = np.random.default_rng(0)
    wards = rng.integers(900, 9000, size=(6, 4))
    rows = [("Kent", wards.sum(axis=0)), *((f"ward {k}", row) for k, row in enumerate(wards))]
    lines = ["Area \\ Age,a,b,c,d", *(f"{name},{','.join(map(str, row))}" for name, row in rows)]
    path = put(tmp_path, "\n".join(lines) + "\n")
    proposal = ask(path, kind="counts")
    assert 'totals = ["Kent"]' in proposal
    assert len(Marginals.read(path, kind="counts", totals="Kent").domain["Area"]) == 6


def test_the_world_beside_its_regions_and_countries_in_alphabetical_order(tmp_path):
    rng = np.random.default_rng(1)
    countries = {f"c{k}": rng.integers(100, 9000, size=12) for k in range(8)}
    regions = {"Africa": ["c0", "c3", "c5"], "Europe": ["c1", "c2", "c4", "c6", "c7"]}
    table = dict(countries)
    for name, members in regions.items():
        table[name] = sum(countries[c] for c in members)
    table["World"] = sum(countries.values())
    rows = "".join(f"{n},{','.join(map(str, table[n]))}\n" for n in sorted(table))
    path = put(tmp_path, "Place," + ",".join(f"y={k}" for k in range(12)) + "\n" + rows)
    proposal = ask(path, kind="counts")
    for name in ("World", "Africa", "Europe"):
        assert f'"{name}"' in proposal
    m = Marginals.read(path, kind="counts", totals=["World", "Africa", "Europe"])
    assert m.domain["Place"].levels == tuple(countries)


def test_total_rural_urban(tmp_path):
    path = put(
        tmp_path,
        "Area,Area type,n\nA,Total,30\nA,Rural,10\nA,Urban,20\nB,Total,70\n"
        "B,Rural,40\nB,Urban,30\n",
    )
    assert Marginals.read(path)["Area", "Area type"].tolist() == [[10, 20], [40, 30]]


def test_a_row_of_column_numbers_is_asked_about(tmp_path):
    path = put(tmp_path, "Area \\ Age,a,b,c\n,1,2,3\nN,10,20,30\nS,40,50,61\n")
    proposal = ask(path)
    assert 'skip = ["2"]' in proposal
    m = Marginals.read(path, skip=["2-2"], kind="counts")
    assert m["Area", "Age"].tolist() == [[10, 20, 30], [40, 50, 61]]


def test_a_mark_with_two_meanings_is_told_by_totals_or_asked(tmp_path):
    path = put(tmp_path, CROSS.replace("30,10,40", "--,10,40"))
    m = Marginals.read(path)
    assert (m["Sex", "Age"][0, 0], len(m.unknown)) == (30, 1)
    path = put(tmp_path, "Sex \\ Age,young,old,Total\nm,--,10,10\nf,20,40,60\nTotal,20,50,70\n")
    m = Marginals.read(path)
    assert (m["Sex", "Age"][0, 0], m.unknown) == (0, None)
    path = put(tmp_path, "Sex,Age,n\nm,a,--\nm,b,4\nf,a,5\nf,b,6\n")
    assert '"--" = "?"' in ask(path)
    m = Marginals.read(path, missing={"--": "1..9"})
    assert (m.unknown.low.tolist(), m.unknown.high.tolist()) == ([1], [9])
    assert Marginals.read(path, missing={"--": 0})["Sex", "Age"][0, 0] == 0


def test_rates_are_not_counts(tmp_path):
    path = put(tmp_path, "Area,Sex,deaths per 100000\nN,m,812\nN,f,640\nS,m,799\nS,f,655\n")
    assert 'kind = "?"' in ask(path)
    path = put(tmp_path, "Area,rate\nN,12.5\nS,27.5\nW,50.1\n")
    assert 'kind = "?"' in ask(path)


def test_a_table_without_names_gets_numbers_and_a_remark(tmp_path):
    put(tmp_path, "Sex,young,old,Total\nm,30,10,40\nf,20,40,60\nTotal,50,50,100\n", "4 age.csv")
    with pytest.warns(rj.Remark, match="has no name and is called 'x1'"):
        m = Marginals.read(tmp_path / "4 age.csv", kind="counts")
    assert m.domain.names == ("Sex", "x1")
    path = put(tmp_path, ",apples,pears\nm,30,10\nf,20,41\n", "v.csv")
    assert 'kind = "?"' in ask(path)


def test_a_heading_over_all_columns_is_a_name_to_confirm(tmp_path):
    path = put(tmp_path, "Smokers\n,age,,\nsmoke,young,mid,old\nyes,30,10,5\nno,20,40,15\n")
    proposal = ask(path, kind="counts")
    assert 'names = ["smoke", "age"]  # of which variable these are levels' in proposal
    put(tmp_path, proposal, "tables.toml")
    assert Marginals.read(path)["smoke", "age"].tolist() == [[30, 10, 5], [20, 40, 15]]


def test_variables_without_names_of_two_files_are_two(tmp_path):
    put(tmp_path, "Sex,yes,no,Total\nm,30,10,40\nf,20,47,67\n", "a.csv")
    put(tmp_path, "Sex,yes,no,Total\nm,10,30,40\nf,50,17,67\n", "b.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        m = Marginals.read(tmp_path)
    assert m.domain.names == ("Sex", "x1", "x2")


def test_a_variable_called_status_stays(tmp_path):
    path = put(tmp_path, "Status,Sex,count\nsingle,m,3\nsingle,f,4\nmarried,m,5\nmarried,f,6\n")
    assert Marginals.read(path).subsets == (("Status", "Sex"),)


def test_brackets_of_income_are_called_what_the_file_says(tmp_path):
    path = put(tmp_path, "Income,Sex,count\n0-14,m,3\n0-14,f,4\n15-24,m,5\n15-24,f,6\n")
    assert Marginals.read(path).domain.names == ("Income", "Sex")


def test_same_does_not_merge_two_levels_of_one_table(tmp_path):
    path = put(
        tmp_path,
        "Admit,Sex,n\nAdmitted,m,30\nAdmitted,f,20\nNot admitted,m,40\nNot admitted,f,10\n",
    )
    with pytest.raises(ValueError, match="makes two levels of 'Admit' one"):
        Marginals.read(path, same={"Not admitted": "Admitted"})
    with pytest.raises(ValueError, match="neither a variable nor a level"):
        Marginals.read(path, same={"Nobody": "Admitted"})


def test_other_levels_of_one_name_are_an_error(tmp_path):
    put(tmp_path, "Age,Sex,n\n0-14,m,3\n0-14,f,4\n15+,m,5\n15+,f,6\n", "a.csv")
    put(
        tmp_path,
        "Age,Work,n\n0-14,no,7\n0-14,yes,0\n15-64,no,2\n15-64,yes,6\n65+,no,3\n65+,yes,0\n",
        "b.csv",
    )
    with pytest.raises(ValueError, match=r"only the first has '15\+' and only the second has"):
        Marginals.read(tmp_path)
    m = Marginals.read(tmp_path, collapse={"Age": {"15+": ["15-64", "65+"]}})
    assert m["Age", "Work"].tolist() == [[7, 0], [5, 6]]
    put(tmp_path, '[collapse.Age]\n"15+" = ["15-64", "65+"]\n', "tables.toml")
    assert Marginals.read(tmp_path).domain["Age"].levels == ("0-14", "15+")


def test_numbers_that_come_back_as_published(tmp_path):
    path = put(tmp_path, "a,share\nx,.207\ny,.331\nz,.461\n")
    m = Marginals.read(path)
    assert m.rounding[0] == pytest.approx(0.0005, rel=0.01)
    answer = rj.factorize(m).pmf.ask("P(a = x)")
    assert abs(answer.value - 0.207) <= 0.0005
    assert "does not meet" not in str(answer)


def test_tables_that_agree_within_rounding_do_not_contradict_each_other(tmp_path):
    rng = np.random.default_rng(3)
    joint = rng.dirichlet(np.ones(24)).reshape(3, 2, 4)
    for name, axes in (("a.csv", (0, 1)), ("b.csv", (1, 2)), ("c.csv", (0, 2))):
        other = next(k for k in range(3) if k not in axes)
        table = 100 * joint.sum(axis=other)
        cells = [(i, j) for i in range(table.shape[0]) for j in range(table.shape[1])]
        rows = "".join(
            f"{'abc'[axes[0]]}{i},{'abc'[axes[1]]}{j},{table[i, j]:.1f}\n" for i, j in cells
        )
        put(tmp_path, f"{'ABC'[axes[0]]},{'ABC'[axes[1]]},percent\n{rows}", name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = rj.factorize(Marginals.read(tmp_path))
    assert "contradict" not in str(result.choice)
    assert "within the bounds" in str(result.stop)


# Explicit options ------------------------------------------------------------------------------


def test_options_are_honoured_literally(tmp_path):
    text = (
        "Report\n2024\n,,Men,,Women,\nCode,Area,young,old,young,old\n1,N,1,2,3,4\n2,S,5,6,7,8\n"
        "notes\n99,98\n"
    )
    path = put(tmp_path, text)
    m = Marginals.read(
        path,
        form="cross",
        skip=["1-2", "7-"],
        header_rows=2,
        label_columns=1,
        drop="Code",
        names=["Area", "Sex", "Age"],
        kind="counts",
        totals="none",
    )
    assert m["Area", "Sex", "Age"].tolist() == [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]
    with pytest.raises(ValueError, match="names= has 2 names, but there are 3 variables"):
        Marginals.read(
            path,
            form="cross",
            skip=["1-2", "7-"],
            header_rows=2,
            label_columns=1,
            drop="Code",
            names=["Area", "Sex"],
            kind="counts",
        )


def test_every_option_that_means_nothing_here_is_an_error(tmp_path):
    path = put(tmp_path, CROSS)
    for options, words in [
        ({"drop": "nothing"}, "neither a column nor a label"),
        ({"totals": "Sum"}, "which is no label"),
        ({"where": {"Work": "yes"}}, "none of its variables"),
        ({"where": {"Sex": "x"}}, "has no label 'x'"),
        ({"value": "n"}, "not one of its columns"),
        ({"kind": "odds"}, "give one of 'counts'"),
        ({"skip": "x"}, "lines such as '1-4'"),
        ({"header_rows": 0}, "whole number of at least 1"),
        ({"missing": {"-": "many"}}, "give for each mark 0, 'unknown'"),
        ({"table": 3}, "but it has 1 table"),
    ]:
        with pytest.raises(ValueError, match=words):
            Marginals.read(path, **options)


@pytest.mark.parametrize("mark", ["<5", "[c]", "..", "*"])
def test_the_first_row_may_have_no_number(tmp_path, mark):
    path = put(tmp_path, f"a,b,count\nboth,u,{mark}\nboth,v,4\nsome,u,5\nsome,v,6\n")
    m = Marginals.read(path)
    assert m.domain["a"].levels == ("both", "some")
    assert len(m.unknown) == 1


def test_where_keeps_levels(tmp_path):
    path = put(
        tmp_path,
        "Year,Sex,Age,n\n"
        + "".join(
            f"{y},{s},{a},{k}\n"
            for k, (y, s, a) in enumerate(
                [(y, s, a) for y in (2001, 2002) for s in "mf" for a in ("x", "y", "z")], 1
            )
        ),
    )
    m = Marginals.read(path, where={"Year": "2002", "Age": ["z", "x"]})
    assert m.subsets == (("Sex", "Age"),)
    assert m["Sex", "Age"].tolist() == [[9, 7], [12, 10]]


def test_percentages_within_levels_need_the_shares_of_these(tmp_path):
    put(tmp_path, "Sex \\ Smoke,yes,no,Total\nm,30.0,70.0,100.0\nf,20.0,80.0,100.0\n", "a.csv")
    with pytest.raises(ValueError, match="Give a table beside it that has the shares of 'Sex'"):
        Marginals.read(tmp_path)
    put(tmp_path, "Sex,n\nm,400\nf,600\n", "b.csv")
    np.testing.assert_allclose(
        Marginals.read(tmp_path)["Sex", "Smoke"], [[0.12, 0.28], [0.12, 0.48]]
    )


def test_rows_that_are_not_listed_are_asked_about(tmp_path):
    path = put(tmp_path, "a,b,count\nx,u,3\ny,v,4\nx,v,5\n")
    assert '"" = "?"' in ask(path)
    assert Marginals.read(path, missing={"": 0})["a", "b"].tolist() == [[3, 5], [0, 4]]
    assert len(Marginals.read(path, missing={"": "unknown"}).unknown) == 1


def test_columns_that_repeat_or_number_others(tmp_path):
    path = put(
        tmp_path,
        ",Code,Area,Sex,n\n1,E1,North,m,3\n2,E1,North,f,4\n3,E2,South,m,5\n4,E2,South,f,6\n",
    )
    assert 'drop = ["Code"]' in ask(path)
    assert Marginals.read(path, drop="Code").subsets == (("Area", "Sex"),)


# Collapse, impossible --------------------------------------------------------------------------


def test_collapse_adds_levels_up(tmp_path):
    path = put(tmp_path, "Age,Sex,n\n0-4,m,1\n0-4,f,<5\n5-9,m,3\n5-9,f,4\n10+,m,50\n10+,f,60\n")
    m = Marginals.read(path, collapse={"Age": {"0-9": ["0-4", "5-9"]}})
    assert m.domain["Age"].levels == ("0-9", "10+")
    assert m["Age", "Sex"][0, 0] == 4
    assert (m.unknown.low.tolist(), m.unknown.high.tolist()) == ([4], [8])
    m = Marginals.read(path, missing={"<5": 2}, collapse={"Age": {"rare": 10}})
    assert m["Age", "Sex"].tolist() == [[4, 6], [50, 60]]


IMPOSSIBLE = [{"Age": "0-14", "Work": ["employed", "retired"]}]


def working_ages():
    return {
        ("Age", "Sex"): {
            ("0-14", "m"): 90, ("0-14", "f"): 80, ("15+", "m"): 400, ("15+", "f"): 430,
        },
        ("Work", "Sex"): {
            ("employed", "m"): 250, ("employed", "f"): 220, ("retired", "m"): 90,
            ("retired", "f"): 110, ("none", "m"): 150, ("none", "f"): 180,
        },
    }  # fmt: skip


def test_numbers_are_no_header_unless_they_are_years(tmp_path):
    path = put(tmp_path, "N,10,20,30\nS,40,50,61\nW,1,2,9\n")
    assert "header_rows = 1  # line 1 has numbers" in ask(path, kind="counts")
    path = put(tmp_path, "Area \\ Age,a,b,c\n\nN,10,20,30\nS,40,50,61\n")
    assert Marginals.read(path, kind="counts")["Area", "Age"].tolist() == [
        [10, 20, 30],
        [40, 50, 61],
    ]
    path = put(tmp_path, "Births\n\nArea,2001,2002,Total\nN,10,20,30\nS,40,50,90\n")
    assert Marginals.read(path, names=["Area", "Year"]).domain["Year"].levels == (2001, 2002)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rank": 2},
        {"rank": 3, "solver": "admm"},
        {"rank": 2, "solver": "kl"},
        {"solver": "smooth"},
        {"noisy": True},
    ],
    ids=str,
)
def test_impossible_combinations_hold_in_every_fit(options):
    options = dict(options)
    noisy = options.pop("noisy", False)
    tables = Marginals.from_tables(working_ages(), impossible=IMPOSSIBLE, noisy=noisy)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pmf = rj.factorize(tables, random_state=0, **options).pmf
    cells = np.asarray(pmf.marginal(["Age", "Work"]))
    work = pmf.domain["Work"].levels
    young = pmf.domain["Age"].levels.index("0-14")
    assert cells[young, work.index("employed")] == 0.0
    assert cells[young, work.index("retired")] == 0.0
    assert cells[young, work.index("none")] > 0.02
    if not options and not noisy:
        fits = tables.compare(pmf)
        assert max(fit.distance for fit in fits) < 1e-6


def test_impossible_combinations_hold_in_synthesis_and_files(tmp_path):
    tables = Marginals.from_tables(working_ages(), impossible=IMPOSSIBLE)
    made = rj.synthesize(tables, 400, random_state=0).records
    rows = [
        (made.domain["Age"].levels[a], made.domain["Work"].levels[w])
        for a, w in made.project(["Age", "Work"]).codes
    ]
    assert not {("0-14", "employed"), ("0-14", "retired")} & set(rows)
    tables.write(tmp_path / "out")
    assert Marginals.read(tmp_path / "out").moments == tables.moments
    answer = rj.factorize(tables).pmf.ask("P(Work = employed | Age = '0-14')")
    assert answer.value == 0.0
    with pytest.raises(ValueError, match="has records there"):
        Marginals.from_tables({("a", "b"): [[1, 2], [3, 4]]}, impossible=[{"a": 0, "b": 1}])


def test_braces_in_names_are_text(tmp_path):
    path = put(tmp_path, "Area {a},Kind,count\nx,u,3\nx,v,4\ny,u,5\ny,v,6\n")
    with pytest.raises(ValueError, match=r"'Area \{a\}' has no label 'z'; it has: 'x', 'y'"):
        Marginals.read(path, where={"Area {a}": "z"})


def test_a_total_of_unknown_parts_shows_nothing(tmp_path):
    """As in a dump of indicators of which two are known: a population and its percentage."""
    text = (
        "indicator,AT,BE\nPopulation - total,8900,11800\nDeaths - total,..,..\nPer cent,2.0,2.6\n"
    )
    path = put(tmp_path, text + "Births,..,..\nMoves,..,..\n")
    with pytest.raises(ValueError, match="totals: no line has all that 'Population - total'"):
        Marginals.read(path, kind="counts")
    path = put(tmp_path, "a,u,v\nTotal,90,80\nx,10,\ny,,30\n")
    with pytest.raises(ValueError, match="kind: counts, shares or percent"):
        Marginals.read(path, missing={"": "unknown"})
