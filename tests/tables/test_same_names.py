"""One name for one thing: what is merged, what is asked, groups aligned by their edges."""

import numpy as np
import pytest

import rejoint as rj
from rejoint.marginals import Marginals

ONE = "Sex,Smoking,count\nMen,yes,310\nMen,no,420\nWomen,yes,270\nWomen,no,500\n"


def put(folder, **texts):
    for name, text in texts.items():
        (folder / f"{name}.csv").write_text(text, encoding="utf-8")
    return folder


def test_case_blanks_and_accents_are_merged_and_that_is_said(tmp_path):
    put(
        tmp_path,
        a=ONE,
        b="sex,Région,count\nMEN,Île,400\n women ,Île,470\nMEN,Sud,330\nWomen,Sud,300\n",
    )
    with pytest.warns(rj.Remark, match=r"Treated as the same: 'sex' in .*b\.csv is 'Sex'"):
        m = Marginals.read(tmp_path)
    assert m.domain.names == ("Sex", "Smoking", "Région")
    assert m.domain["Sex"].levels == ("Men", "Women")
    np.testing.assert_array_equal(m["Sex", "Région"], [[400, 330], [470, 300]])


@pytest.mark.parametrize(
    ("other", "words", "same"),
    [
        (
            "Sex,Region,count\nMale,N,400\nFemale,N,470\nMale,S,330\nFemale,S,300\n",
            ["'Men'", "'Male'", "same={'Male': 'Men'} same={'Female': 'Women'}"],
            {"Male": "Men", "Female": "Women"},
        ),
        (
            "Gender,Region,count\nMen,N,400\nWomen,N,470\nMen,S,330\nWomen,S,300\n",
            ["'Sex' in", "'Gender' in", "same={'Gender': 'Sex'}"],
            {"Gender": "Sex"},
        ),
        (
            "Geschlecht,Region,count\nMänner,N,400\nFrauen,N,470\nMänner,S,330\nFrauen,S,300\n",
            ["look like one variable", "same={'Geschlecht': 'Sex'}"],
            {"Geschlecht": "Sex", "Männer": "Men", "Frauen": "Women"},
        ),
    ],
)
def test_what_looks_alike_is_asked(tmp_path, other, words, same):
    put(tmp_path, a=ONE, b=other)
    with pytest.raises(ValueError, match="look like") as error:
        Marginals.read(tmp_path)
    for word in words:
        assert word in str(error.value)
    m = Marginals.read(tmp_path, same=same)
    assert m.domain.names == ("Sex", "Smoking", "Region")
    np.testing.assert_array_equal(m["Sex", "Region"], [[400, 330], [470, 300]])


def test_other_variables_with_the_same_levels_are_others(tmp_path):
    put(tmp_path, a=ONE, b="Cough,Sex,n\nyes,Men,100\nno,Men,630\nyes,Women,70\nno,Women,700\n")
    assert Marginals.read(tmp_path).domain.names == ("Sex", "Smoking", "Cough")


def test_the_same_ages_in_two_ways_are_asked(tmp_path):
    put(
        tmp_path,
        a="Age,Sex,n\n0-14,m,310\n15-64,m,420\n65+,m,93\n0-14,f,270\n15-64,f,500\n65+,f,98\n",
        b="Age,Work,n\n0 to 14 years,no,580\n15 to 64 years,no,320\n65 and over,no,191\n"
        "0 to 14 years,yes,0\n15 to 64 years,yes,600\n65 and over,yes,0\n",
    )
    with pytest.raises(ValueError, match=r"same=\{'0 to 14 years': '0-14'\} same=\{'15 to 64"):
        Marginals.read(tmp_path)


def test_groups_of_different_coarseness_are_aligned_by_their_edges(tmp_path):
    fine = np.array([[310, 120, 300, 93], [270, 140, 360, 98]])
    ages = ["0-14", "15-24", "25-64", "65+"]
    text = "Sex,Age,n\n" + "".join(
        f"{sex},{age},{fine[i, j]}\n" for i, sex in enumerate("mf") for j, age in enumerate(ages)
    )
    coarse = (
        "Age,Work,n\n0-14,no,580\n15-64,no,320\n65+,no,171\n0-14,yes,0\n15-64,yes,600\n65+,yes,20\n"
    )
    put(tmp_path, a=text, b=coarse)
    with pytest.warns(rj.Remark, match=r"'15-64' in .*b\.csv is 15-24 \+ 25-64"):
        m = Marginals.read(tmp_path)
    assert m.domain["Age"].levels == tuple(ages)
    cells = m.unknown
    assert len(cells) == 4
    assert sorted(value for _, value in cells.sums) == [320.0, 600.0]
    table = m["Age", "Work"]
    np.testing.assert_array_equal(table[[0, 3]], [[580, 0], [171, 20]])
    np.testing.assert_allclose(table[1] + table[2], [320, 600])
    crossing = "Age,Work,n\n0-19,no,580\n20+,no,320\n0-19,yes,1\n20+,yes,600\n"
    put(tmp_path, b=crossing)
    with pytest.raises(ValueError, match="Levels of 'Age' overlap"):
        Marginals.read(tmp_path)


def test_files_about_different_years_are_asked(tmp_path):
    put(
        tmp_path,
        a="Year,Sex,Age,n\n2019,m,y,310\n2019,m,o,420\n2019,f,y,270\n2019,f,o,500\n",
        b="Year,Sex,Work,n\n2021,m,y,311\n2021,m,n,420\n2021,f,y,270\n2021,f,n,500\n",
    )
    with pytest.raises(ValueError, match=r"Year = 2021 only, .*Year = 2019.*skip=\['Year'\]"):
        Marginals.read(tmp_path)
    assert Marginals.read(tmp_path, skip=["Year"]).domain.names == ("Sex", "Age", "Work")


def test_percentages_of_rows_take_the_shares_of_another_table(tmp_path):
    put(
        tmp_path,
        a="Percent of each age by status\nAge,In work,Not in work\n15-24,40.5,59.5\n"
        "25-64,75.2,24.8\n",
        b="Age,count\n15-24,300\n25-64,700\n",
    )
    m = Marginals.read(tmp_path)
    np.testing.assert_allclose(m["Age", "status"], [[0.1215, 0.1785], [0.5264, 0.1736]])
