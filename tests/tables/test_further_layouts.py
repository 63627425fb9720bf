"""Layouts that are easily misread: units apart from numbers, parts of parts, several tables."""

import warnings

import numpy as np
import pytest
from workbook import xlsx

from rejoint.marginals import Marginals
from rejoint.messages import Remark


def read(tmp_path, text, name="t.csv", **options):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Marginals.read(path, **options)


def refuse(tmp_path, text, *words, name="t.csv", **options):
    with pytest.raises(ValueError) as error:  # noqa: PT011 (its words are checked below)
        read(tmp_path, text, name, **options)
    for word in words:
        assert word in str(error.value)


OECD = """\
REF_AREA,Reference area,SEX,Sex,LFS,Labour status,TIME_PERIOD,OBS_VALUE,OBS_STATUS,UNIT_MULT
FIN,Finland,M,Male,EMP,Employment,2022,140.2,A,3
FIN,Finland,M,Male,UNE,Unemployment,2022,30.1,A,3
FIN,Finland,F,Female,EMP,Employment,2022,150.9,A,3
FIN,Finland,F,Female,UNE,Unemployment,2022,25.1,A,3
"""


def test_codes_before_their_labels_and_a_power_of_ten(tmp_path):
    m = read(tmp_path, OECD)
    assert m.domain.names == ("Sex", "Labour status")
    np.testing.assert_allclose(m["Sex", "Labour status"], [[140200, 30100], [150900, 25100]])


def test_a_power_of_ten_that_differs(tmp_path):
    refuse(tmp_path, OECD.replace("25.1,A,3", "25.1,A,6"), "'UNIT_MULT'", "different units")


def test_levels_that_only_the_other_measure_has(tmp_path):
    text = "Characteristic,Gender,UOM,SCALAR_FACTOR,VALUE\n"
    for name, unit, scale, numbers in [
        ("Employment", "Persons", "thousands", [9311.2, 8401.0]),
        ("Unemployment", "Persons", "thousands", [470.1, 140.2]),
        ("Unemployment rate", "Percentage", "units", [4.8, 1.6]),
    ]:
        for gender, number in zip(["Men", "Women"], numbers, strict=True):
            text += f"{name},{gender},{unit},{scale},{number}\n"
    m = read(tmp_path, text)
    assert m.domain.names == ("Characteristic", "Gender")
    np.testing.assert_allclose(m["Characteristic", "Gender"][1], [470100, 140200])


PARTS = """\
Education;Total;Men;Women
Total;30112;14401;15711
Higher;7800;3300;4500
Secondary;17212;8901;8311
Primary;5100;2200;2900
of which not completed;400;150;250
"""


def test_a_level_beside_a_total_is_asked_about(tmp_path):
    refuse(
        tmp_path,
        PARTS,
        "sum of others without 'of which not completed'",
        "skip=['of which not completed']",
        "totals=['Total']",
    )
    m = read(tmp_path, PARTS, skip=["of which not completed"])
    assert m["Education", "Sex"].sum() == 30112
    m = read(tmp_path, PARTS, totals=["Total"])
    assert m["Education", "Sex"].sum() == 30512


def test_two_divisions_of_one_total(tmp_path):
    text = (
        "Age;Male;Female\nTotal;10432;11208\n0-14;1907;1822\n15-29;1811;1799\n30-59;3913;4115\n"
        "60+;2801;3472\n0-19;2511;2402\n20-64;5611;5990\n65+;2310;2816\n"
    )
    m = read(tmp_path, text)
    assert m.domain["Age"].levels == ("0-14", "15-29", "30-59", "60+")


def test_told_totals_of_parts(tmp_path):
    text = (
        "Age;Male;Female\nTotal;5000;5200\n  0-14;900;880\n    0-4;300;290\n    5-14;600;590\n"
        "  15-64;3200;3220\n    15-24;600;590\n    25-64;2600;2630\n  65+;900;1100\n"
    )
    assert read(tmp_path, text).domain["Age"].levels == ("0-4", "5-14", "15-24", "25-64", "65+")
    text = text.replace("  ", "")  # nothing but the sums of few numbers says what is a total
    refuse(tmp_path, text, "totals=['0-14', 'Total', '15-64']")
    m = read(tmp_path, text, totals=["0-14", "Total", "15-64"])
    assert m.domain["Age"].levels == ("0-4", "5-14", "15-24", "25-64", "65+")
    head, *lines = text.splitlines()
    sums = [f"{line};{sum(map(int, line.split(';')[1:]))}" for line in lines]
    m = read(tmp_path, "\n".join([f"{head};Total", *sums]), totals=["0-14", "Total", "15-64"])
    assert m.domain["Sex"].levels == ("Male", "Female")  # other variables as ever


def test_levels_that_overlap(tmp_path):
    text = "Age;Men;Women\n0+;10000;10400\n15+;8411;8822\n65+;1801;2404\n"
    refuse(tmp_path, text, "'0+', '15+'", "overlap", "skip=['0+', '15+']", "totals='none'")
    m = read(tmp_path, text.replace("0+;", "0-20;").replace("15+", "20-30").replace("65+", "30+"))
    assert len(m.domain["Age"].levels) == 3


def test_line_numbers_and_codes_with_letters(tmp_path):
    text = '"ID";"Sex";"Age";"Value_1"\n'
    for i, (sex, age, n) in enumerate(
        (sex, age, n)
        for sex, numbers in [("3000", [1702, 5402]), ("4000", [1602, 5302]), ("T01", [3304, 10704])]
        for age, n in zip(["10010", "10020"], numbers, strict=True)
    ):
        text += f'"{i}";"{sex}   ";"{age}";"  {n}"\n'
    m = read(tmp_path, text, value="Value_1")
    assert m.domain.names == ("Sex", "Age")
    np.testing.assert_allclose(m["Sex", "Age"], [[1702, 5402], [1602, 5302]])


def test_tables_side_by_side(tmp_path):
    book = xlsx(
        {
            "S": [
                ["Table 1", "", "", "", "Table 2"],
                ["Smoking", "Men", "Women", "", "Drinking", "Men", "Women"],
                ["Yes", 201, 110, "", "Often", 702, 601],
                ["No", 702, 790, "", "Never", 101, 339],
            ]
        }
    )
    m = read(tmp_path, book, "t.xlsx")
    np.testing.assert_allclose(m["Smoking", "Sex"], [[201, 110], [702, 790]])
    np.testing.assert_allclose(m["Drinking", "Sex"], [[702, 601], [101, 339]])


def test_a_sheet_with_a_question_is_not_left_out(tmp_path):
    book = xlsx(
        {
            "A": [["Sex", "Age", "Count"], ["m", "young", 10], ["f", "young", 12], ["f", "old", 9]],
            "B": [
                ["Smoking", "Sex", "Estimate (thousands)", "95% CI lower", "95% CI upper"],
                ["Yes", "m", 410, 380, 440],
                ["Yes", "f", 390, 361, 419],
                ["No", "m", 800, 760, 840],
                ["No", "f", 701, 660, 742],
            ],
        }
    )
    refuse(tmp_path, book, "sheet 'B'", "'95% CI lower'", name="t.xlsx")


def test_a_unit_in_a_note(tmp_path):
    text = "Sex;Employed;Unemployed\nMale;21411;801\nFemale;19102;603\nAngaben in Tausend\n"
    m = read(tmp_path, text, same={"Employed/Unemployed": "Work"})
    assert m["Sex", "Work"].sum() == 41917000


def test_a_value_says_nothing_about_its_decimals(tmp_path):
    text = "Sexo;Estudios;Valor\nH;Bajos;1.201\nH;Altos;2.301\nM;Bajos;1.102\nM;Altos;2.702\n"
    refuse(tmp_path, text, "decimal=','", "decimal='.'")


def test_a_status_of_persons_is_no_flag(tmp_path):
    text = "geo;sex;status;value;flag\n"
    for i, (geo, sex, status) in enumerate(
        (g, s, t) for g in ("DE", "FR") for s in "MF" for t in ("single", "married")
    ):
        text += f"{geo};{sex};{status};{1000 << i};{'p' if i < 2 else ''}\n"
    m = read(tmp_path, text)
    assert m.domain.names == ("geo", "sex", "status")


def test_headed_tables_of_which_the_first_has_a_title(tmp_path):
    text = "Employment by sex\n"
    for year, add in [(2021, 0), (2022, 20), (2023, 43)]:
        text += (
            f"{year},,\nEmployment,Men,Women\nYes,{1201 + add},{1102 + add}\nNo,301,{702 - add}\n"
        )
    m = read(tmp_path, text)
    assert set(m.domain.names) == {"Year", "Employment", "sex"}
    assert m["Year", "Employment", "sex"][1, 0].tolist() == [1221, 1122]
    text = text.replace("2021,,", "Table 1a. North").replace("2022,,", "Table 1b. South")
    refuse(tmp_path, text.partition("2023,,")[0], "'Table 1a. North', 'Table 1b. South'")


def test_labels_of_two_variables_in_one(tmp_path):
    text = (
        "Education by sex and region\nEducation,Total,North: Male,North: Female,South: Male,"
        "South: Female\nLow,430,100,110,120,100\nHigh,481,130,121,110,120\n"
    )
    m = read(tmp_path, text)
    assert set(m.domain.names) == {"Education", "region", "sex"}


@pytest.mark.parametrize(
    "text",
    [
        "Median income by sex and region\nRegion,Male,Female\nN,31200,28700\nS,35100,30900\n",
        "Region,Sex,Average age\nN,m,41\nN,f,44\nS,m,40\nS,f,43\n",
        "Product,Size,Price\nShirt,S,12.99\nShirt,M,13.99\nHat,S,39.90\nHat,M,41.90\n",
    ],
)
def test_means_and_prices_are_no_counts(tmp_path, text):
    refuse(tmp_path, text, "do not add up", "kind='counts'")
    assert len(read(tmp_path, text, kind="counts").domain.names) == 2


def test_the_kind_that_differs_is_that_of_columns(tmp_path):
    text = (
        "Grade by sex\nGrade,Male,Male %,Female,Female share\nTop,108,2.8,102,2.4\n"
        "High,1640,42.0,1660,39.5\nLow,2154,55.2,2438,58.1\n"
    )
    refuse(tmp_path, text, "'Male %', 'Female share'")


def test_a_unit_in_a_title_is_no_name(tmp_path):
    text = "Use by age, per cent\nAge,Daily,Weekly,Never,N\n16-24,97,2,1,1201\n25+,90,7,3,4400\n"
    refuse(tmp_path, text, "a variable that the file does not name")


def test_notes_of_two_cells_below_a_blank_line(tmp_path):
    text = (
        'Counting persons\n,"Status","Yes","No",\n"Age","Sex",\n"0-9","Male",1200,110,\n'
        ',"Female",1150,101,\n"10-19","Male",1302,98,\n,"Female",1244,90,\n\n'
        '"Data source: a census"\n\n"INFO","Cells have been randomly adjusted."\n'
    )
    m = read(tmp_path, text, same={"Yes/No": "Status"})
    assert set(m.domain.names) == {"Age", "Sex", "Status"}
    assert m["Age", "Sex", "Status"].sum() == 5295


def test_parts_without_a_sum(tmp_path):
    text = (
        "Religion by sex\nReligion,Males,Females\nChristians,2101,2333\n"
        "thereof Catholic,1100,1200\n"
        "Muslims,310,302\nNo religion,1801,1702\n"
    )
    refuse(tmp_path, text, "'thereof Catholic'", "skip=['thereof Catholic']", "totals='none'")
    assert read(tmp_path, text, totals="none")["Religion", "sex"].sum() == sum(
        [2101, 2333, 1100, 1200, 310, 302, 1801, 1702]
    )


def test_a_row_of_means(tmp_path):
    text = "Number of rooms by tenure\nRooms,Owned,Rented\n1,12,101\n2+,120,402\nAverage,3.5,2.4\n"
    refuse(tmp_path, text, "'Average'", "another kind of number", "skip=['Average']")


def test_bounds_of_cells_held_back_exclude_a_total(tmp_path):
    """A label that two variables share is no total of cells that are too small for it."""
    counts = {
        "none": [64, 41, 50, 36, 106, 314, 129, 35, 78, 145, 72, 28, 5, 8, 10, 5],
        "one": [7, 10, 17, 8, 0, 1, 3, 1, 3, 1, 7, 4, 3, 4, 6, 4],
        "two": [3, 3, 3, 1, 37, 135, 49, 0, 13, 52, 23, 2, 1, 2, 0, 0],
        "more": [24, 60, 84, 62, 6, 21, 14, 1, 7, 13, 24, 13, 21, 36, 46, 39],
    }
    homes = [h for h in ("rent", "own", "shared", "other") for _ in range(4)]
    cares = ["none", "child", "parent", "both"] * 4
    rows = [
        f"{home},{car},{care},{number if number >= 10 else '<10'}"
        for car, numbers in counts.items()
        for home, care, number in zip(homes, cares, numbers, strict=True)
    ]
    m = read(tmp_path, "\n".join(["home,car,care,count", *rows]))
    assert m.domain["car"].levels == tuple(counts)


@pytest.mark.parametrize(
    "text",
    [
        "Score,Frequency,Cumulative\n1,10,10\n2,20,30\n3,15,45\n4,5,50\n",
        "Score,Cumulative,Frequency\n1,10,10\n2,30,20\n3,45,15\n4,50,5\n",
        "Score,Frequency,Percent,Cumulative Frequency,Cumulative Percent\n"
        "1,10,20,10,20\n2,20,40,30,60\n3,15,30,45,90\n4,5,10,50,100\n",
    ],
)
def test_running_sums_are_no_labels(tmp_path, text):
    m = read(tmp_path, text)
    assert m.domain.names == ("Score",)
    assert m["Score"].tolist() == [10, 20, 15, 5]


def test_numbers_to_the_right_of_counts_are_no_labels(tmp_path):
    text = "Grade,Count,Points\n1,10,4\n2,20,9\n3,15,2\n4,5,1\n"
    refuse(tmp_path, text, "'Points' may be labels", "skip=['Points']", "value='Points'")


def test_counts_beside_a_p_value_are_no_labels(tmp_path):
    text = "Sex,Cases,Controls,p\nMale,45,60,0.03\nFemale,55,40,\n"
    refuse(tmp_path, text, "may be labels of a variable or numbers beside 'p'", "skip=[")


@pytest.mark.parametrize("form", ["12.1,10.4 5.5,6.1 4.0,4.2 6.0,6.2", "31,40 12,15 22,18 21,24"])
def test_a_total_that_lies_between_its_parts(tmp_path, form):
    ages = ("15-24", "25-54", "55-64", "Total")
    lines = [f"{age},{row}" for age, row in zip(ages, form.split(), strict=True)]
    text = "\n".join(["Age,Male,Female", *lines]) + "\n"
    refuse(tmp_path, text, "'Total'", "rates or means", "kind='counts'")


def test_a_title_that_lists_more_than_the_table_names_nothing(tmp_path):
    text = (
        "Bevölkerung: Deutschland, Stichtag, Geschlecht\n;31.12.2021;31.12.2022\n"
        "männlich;41027050;41566340\nweiblich;42210074;42792505\nInsgesamt;83237124;84358845\n"
    )
    refuse(tmp_path, text, "'31.12.2021', '31.12.2022'", "a variable that the file does not name")
    rows = ["Residents by sex, age and tenure", "Region,Men,,Women,", ",Rent,Own,Rent,Own"]
    text = "\n".join([*rows, "North,12,30,25,8", "South,7,19,11,13"]) + "\n"
    refuse(tmp_path, text, "'Rent', 'Own'", "a variable that the file does not name")


def test_an_empty_column_before_the_numbers_is_no_level(tmp_path):
    text = (
        '"","","Survived","No","Yes"\n"Sex","Class","","",""\n"Male","1st","","118","62"\n'
        '"","2nd","","154","25"\n"Female","1st","","4","141"\n"","2nd","","13","93"\n'
    )
    m = read(tmp_path, text, same={"No/Yes": "Survived"})
    assert m["Sex", "Class", "Survived"].tolist() == [[[118, 62], [154, 25]], [[4, 141], [13, 93]]]


@pytest.mark.parametrize("start", [0, 1])
def test_numbers_of_lines_without_a_name(tmp_path, start):
    rows = ["M,Young,12", "M,Old,30", "F,Young,25", "F,Old,8"]
    text = "\n".join([",Sex,Age,n", *(f"{i},{row}" for i, row in enumerate(rows, start))]) + "\n"
    assert read(tmp_path, text)["Sex", "Age"].tolist() == [[12, 30], [25, 8]]


def test_a_power_in_brackets_is_no_footnote(tmp_path):
    text = "Province,Area (km2),Residents1)\nAlpha,400,1200\nBeta,1250,2500\n"
    refuse(tmp_path, text, "'Area (km2)', 'Residents'")


@pytest.mark.parametrize(
    ("head", "rows", "difference", "total"),
    [
        ("Region,2011,2021,Change", "North,1200,1300,100 South,2400,2511,111", "Change", "2021"),
        ("Region,2011,2021,Rise", "North,1200,1300,100 South,2400,2511,111", "Rise", "2021"),
        ("Age,Men,Women,Gap", "0-17,517,455,62 18-64,803,702,101 65+,312,281,31", "Gap", "Men"),
        ("Year,Inflow,Outflow,Net", "2019,1558,1231,327 2020,1186,966,220", "Net", "Inflow"),
    ],
)
def test_a_difference_of_two_columns(tmp_path, head, rows, difference, total):
    text = "\n".join(["Persons by region and sex", head, *rows.split()]) + "\n"
    words = f"'{difference}' may be the difference", f"skip=['{difference}']"
    refuse(tmp_path, text, *words, f"totals=['{total}']")


def test_means_of_all_together(tmp_path):
    text = "Region,Men,Women,All\nNorth,2450,2100,2280\nSouth,2800,2390,2610\nAll,2650,2250,2460\n"
    refuse(tmp_path, text, "'All'", "rates or means", "totals='none'")


def test_decimals_without_a_total_may_be_means(tmp_path):
    text = "Year,Men,Women\n2000,75.1,81.2\n2010,77.5,82.6\n2020,78.6,83.4\n"
    refuse(tmp_path, text, "decimals and no total", "rates or means", "kind='counts'")
    assert read(tmp_path, text, kind="counts")["Year", "Sex"].sum() == pytest.approx(478.4)
    total = text + "Total,231.2,247.2\n"
    assert read(tmp_path, total)["Year", "Sex"].sum() == pytest.approx(478.4)


def test_percent_in_the_name_of_the_rows(tmp_path):
    text = "News source (%),Men,Women\nTV,70,65\nRadio,40,45\nInternet,80,85\n"
    refuse(tmp_path, text, "do not add up to 100", "all together to 385", "kind='counts'")


def test_titles_of_wages_and_lives(tmp_path):
    for title in ("Wages in EUR per month", "Life expectancy by sex"):
        text = f"{title}\nRegion,Men,Women\nNorth,2450,2100\nSouth,2800,2390\n"
        refuse(tmp_path, text, "means, prices, weights or the like", "kind='counts'")


@pytest.mark.parametrize("first", ["1912,1820", "1912,1920", "2012,2020"])
def test_a_first_row_of_counts_that_look_like_years(tmp_path, first):
    text = f"Age,Men,Women\n0-19,{first}\n20-64,5102,5021\n65+,601,850\n"
    m = read(tmp_path, text)
    assert m.domain["Age"].levels == ("0-19", "20-64", "65+")
    assert m["Age", "Sex"][0].tolist() == [float(x) for x in first.split(",")]
    refuse(tmp_path, text.replace("Age,", ","), "line 2", "may be years", "or counts")


def test_years_below_labels_that_span_columns(tmp_path):
    text = "Region,Men,,Women,\nRegion,2020,2021,2020,2021\nNorth,1,2,3,4\nSouth,5,6,7,9\n"
    assert set(read(tmp_path, text).domain.names) == {"Region", "Sex", "Year"}


def test_percentages_after_all_counts(tmp_path):
    text = "Age,Men,Women,Men %,Women %\n0-17,100,90,52.6,47.4\n18-64,300,310,49.2,50.8\n"
    m = read(tmp_path, text)
    assert m.domain["Sex"].levels == ("Men", "Women")
    assert m["Age", "Sex"].tolist() == [[100, 90], [300, 310]]


@pytest.mark.parametrize("labels", ["Male,Total", "Population,Male", "Total,Women"])
def test_a_total_beside_one_of_its_parts(tmp_path, labels):
    rows = [(500, 980), (1600, 3220), (300, 720)]
    rows = rows if labels == "Male,Total" else [row[::-1] for row in rows]
    lines = [f"{age},{a},{b}" for age, (a, b) in zip(("0-14", "15-64", "65+"), rows, strict=True)]
    text = "\n".join(["Persons by age and sex", f"Age,{labels}", *lines]) + "\n"
    refuse(tmp_path, text, "may be totals", "skip=[", "totals='none'")


@pytest.mark.parametrize("label", ["Sex ratio", "Rank", "SE Men", "Male rate", "Men per 1,000"])
def test_measures_beside_levels(tmp_path, label):
    head = f'Persons by age and sex\nAge,Men,Women,"{label}"\n'
    text = head + "0-14,500,480,104\n15-64,1600,1620,99\n65+,300,420,71\n"
    refuse(tmp_path, text, f"'{label}'", f"skip=['{label}']", "totals='none'")
    assert read(tmp_path, text, skip=[label]).domain.names == ("Age", "sex")


def test_a_level_called_se(tmp_path):
    text = "Persons by age and region\nAge,NE,SE,NW\n0-14,500,480,104\n15+,1600,1620,99\n"
    assert read(tmp_path, text).domain["region"].levels == ("NE", "SE", "NW")


@pytest.mark.parametrize("indent", ["  ", ""])
def test_subtotals_narrow_down_cells_that_are_not_given(tmp_path, indent):
    text = (
        "Region,Men,Women,Total\nNorth,1203,1308,2511\n_Coast,502,x,1159\n_Inland,701,x,1352\n"
        "South,2004,2101,4105\n_City,1503,x,x\n_Country,501,x,x\nTotal,3207,3409,6616\n"
    )
    told = {} if indent else {"totals": ["North", "South", "Total"]}
    m = read(tmp_path, text.replace("_", indent), **told)
    assert m.domain["Region"].levels == ("Coast", "Inland", "City", "Country")
    low, high = m.unknown.tightened()
    assert low.tolist() == [657, 651, 0, 0]
    assert high.tolist() == [657, 651, 2101, 2101]  # of South, not of all


def test_a_table_named_by_its_labels_says_so(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("Age,Owned,Rented,Total\n0-29,310,912,1222\n30+,2204,803,3007\n")
    with pytest.warns(match=r"is called 'Owned/Rented'.*same="):
        m = Marginals.read(path)
    assert m.domain.names == ("Age", "Owned/Rented")
    m = Marginals.read(path, same={"Owned/Rented": "Tenure"})
    assert m.domain.names == ("Age", "Tenure")


def test_labels_that_two_tables_share_need_a_name(tmp_path):
    (tmp_path / "a.csv").write_text("Persons\nSmokes,yes,no\nMen,310,912\nWomen,2204,803\n")
    (tmp_path / "b.csv").write_text("Persons\nAge,yes,no\n0-29,310,912\n30+,2204,803\n")
    with pytest.raises(ValueError, match=r"does not name.*same="):
        Marginals.read(tmp_path)


WAGES = "Occupation,Men,Women\nManagers,5210,4480\nClerks,2910,2650\nCleaners,1700,1610\n"


def test_numbers_that_nothing_shows_to_be_counts(tmp_path):
    refuse(tmp_path, WAGES, "no total and no word", "(1610 to 5210)", "kind='counts'")
    text = "Employees by occupation and sex\n" + WAGES
    assert read(tmp_path, text).domain.names == ("Occupation", "sex")
    total = WAGES.replace("Women\n", "Women,Zorbat\n").replace("4480", "4480,9690")
    total = total.replace("2650", "2650,5560").replace("1610", "1610,3310")
    assert read(tmp_path, total).totals.tolist() == [18560]
    (tmp_path / "t.csv").write_text(WAGES.replace("1610", "161"))
    with pytest.warns(Remark, match="no word such as 'Number'"):
        Marginals.read(tmp_path / "t.csv")


@pytest.mark.parametrize("unit", ["EUR", "Tonnes", "Index points"])
def test_a_declared_unit_that_counts_nothing(tmp_path, unit):
    lines = [("m", "N", 120), ("m", "S", 980), ("f", "N", 410), ("f", "S", 77)]
    text = "sex,region,unit,value\n" + "".join(f"{s},{r},{unit},{n}\n" for s, r, n in lines)
    refuse(tmp_path, text, f"'{unit}'", "kind='counts'")
    assert read(tmp_path, text.replace(unit, "Persons")).totals.tolist() == [1587]


def test_a_level_that_is_the_sum_of_levels_apart(tmp_path):
    text = "Persons by region and fuel\nRegion,Gas,Heating,Coal,Light,Power\n"
    rows = [("N", 511, 310, 77, 402), ("S", 620, 208, 45, 390), ("E", 133, 90, 71, 212)]
    for name, gas, coal, light, power in rows:
        text += f"{name},{gas},{gas + light},{coal},{light},{power}\n"
    refuse(tmp_path, text, "'Heating'", "equals the sum of 'Gas', 'Light'", "totals=['Heating']")


def test_numbers_and_labels_that_are_part_of_no_table(tmp_path):
    text = "Persons by age\n,Men,Women,Men,Women\n\nAge,n,n,n,n\n0-14,10,20,30,40\n15+,55,9,18,7\n"
    refuse(tmp_path, text, "line 2", "'Men', 'Women', 'Men', 'Women'", "belong to no table")


def test_a_heading_over_columns_may_be_no_name(tmp_path):
    text = "Region,Health,,\n,Doctors,Nurses,Beds\nNorth,310,980,1510\nSouth,25,760,990\n"
    refuse(tmp_path, text, "different numbers", "same={'Doctors/Nurses': 'Health'}")
    m = read(tmp_path, text, same={"Doctors/Nurses": "Health"})
    assert m.domain.names == ("Region", "Health")


def test_a_column_of_2000_is_no_year(tmp_path):
    text = "Persons by region and sex\nRegion,Men,Women,Total\nN,3000,2000,5000\nS,3000,2000,5000\n"
    assert read(tmp_path, text)["Region", "sex"].tolist() == [[3000, 2000]] * 2


HIDDEN = "Level by sex (%)\nLevel,Men,Women\nLow,12.1,x\nMiddle,55.0,49.2\nHigh,32.9,x\n"


def test_percentages_of_columns_with_cells_held_back(tmp_path):
    refuse(tmp_path, HIDDEN, "Each level of 'sex' adds up to 100")
    (tmp_path / "b.csv").write_text("Sex,count\nMen,600\nWomen,400\n")
    with pytest.warns(Remark, match="'sex' in"):
        m = Marginals.read(tmp_path)
    np.testing.assert_allclose(m["Level", "Sex"][:, 0], [0.0726, 0.33, 0.1974])
    assert m.unknown is not None
    np.testing.assert_allclose([value for _, value in m.unknown.sums], 0.4 * (1 - 0.492))


def test_percentages_that_nothing_settles(tmp_path):
    text = HIDDEN.replace("12.1", "x")
    words = ["'Low', 'Men'", "'Men' to 87.9", "kind='rows', kind='columns'", "kind='counts'"]
    refuse(tmp_path, text, *words)
    refuse(tmp_path, text, "Each level of 'sex' adds up to 100", kind="columns")


def test_a_long_name_does_not_fill_the_error(tmp_path):
    path = tmp_path / "twice.csv"
    path.write_text(f"{'x' * 100_000},Sex,Number\nyoung,f,3\nyoung,f,3\nold,m,9\n")
    with pytest.raises(ValueError, match=r"Sex='f'.* was given on line 2 already") as error:
        Marginals.read(path)
    assert len(str(error.value)) < 1_000
    path = tmp_path / "long.px"
    path.write_text(f'STUB="{"x" * 100_000}";\nHEADING="Sex";\nDATA=\n1 2;\n')
    with pytest.raises(ValueError, match="there is no VALUES") as error:
        Marginals.read(path)
    assert len(str(error.value)) < 1_000
