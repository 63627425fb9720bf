"""Files in the style of statistical offices, with invented numbers, and what they say.

Each entry has the bytes of a file, and either the tables in it (``truth``: labels to numbers) or the
words of the error that must refuse it (``refused``).
"""

import gzip
import io
import json
import zipfile
from dataclasses import dataclass, field

import numpy as np
from workbook import ods, xlsx

RNG = np.random.default_rng(20)
SEX_AGE = RNG.integers(1_100, 9_800, size=(2, 4)).astype(float)
SEX_AGE[0, 2] = 945.0
AGE_WORK = RNG.integers(600, 9_900, size=(4, 3)).astype(float)
SEX_AGE_WORK = RNG.integers(150, 4_000, size=(2, 4, 3)).astype(float)
REGION_SEX = RNG.integers(2_000, 90_000, size=(5, 2)).astype(float)
SMALL = np.array([[31.0, 12, 7], [24, 3, 18], [41, 16, 22]])

AGES = ["0-14", "15-24", "25-64", "65+"]
WORK = ["Employed", "Unemployed", "Inactive"]
ENGLISH = {"Sex": ["Male", "Female"], "Age": AGES}


@dataclass
class Sample:
    name: str
    content: bytes
    truth: dict = field(default_factory=dict)  # names of variables to (labels, array)
    refused: tuple = ()  # words of the error
    shares: bool = False
    tolerance: float = 1e-9
    unknown: int = 0  # cells that are not given, NaN in truth


SAMPLES = []


def add(name, content, *tables, refused=(), **more):
    if isinstance(content, str):
        content = content.encode()
    truth = {}
    for names, labels, values in tables:
        truth[tuple(names)] = ([list(known) for known in labels], np.asarray(values, dtype=float))
    SAMPLES.append(Sample(name, content, truth, tuple(refused), **more))


def total(table):
    """The table with sums of rows, columns and all."""
    wide = np.hstack([table, table.sum(axis=1, keepdims=True)])
    return np.vstack([wide, wide.sum(axis=0, keepdims=True)])


def lines(rows, delimiter=",", quote=False):
    shown = []
    for row in rows:
        cells = [str(cell) for cell in row]
        if quote:
            cells = [f'"{cell}"' if cell else "" for cell in cells]
        else:
            cells = [f'"{c}"' if delimiter in c or '"' in c else c for c in cells]
        shown.append(delimiter.join(cells))
    return "\n".join(shown) + "\n"


def number(x, thousands=",", decimal=".", digits=0):
    text = f"{x:,.{digits}f}"
    return text.replace(",", "\0").replace(".", decimal).replace("\0", thousands)


def cross(rows, columns, table, corner="", show=number):
    """Rows of a cross-tabulation as text."""
    made = [[corner, *columns]]
    made += [[label, *map(show, line)] for label, line in zip(rows, table, strict=True)]
    return made


plain = "{:.0f}".format
SA = (["Sex", "Age"], [["Male", "Female"], AGES], SEX_AGE)

# Office for National Statistics ---------------------------------------------------------------

full = total(SEX_AGE.T)
rows = [
    ["Table 1: Usual residents by age group and sex, England and Wales, 2021"],
    ["This worksheet contains one table. Some shorthand is used: [c] is confidential."],
    ["Source: Office for Imaginary Statistics"],
    [],
    ["Age group", "Male", "Female", "All persons"],
    *[[a, *line.tolist()] for a, line in zip([*AGES, "All ages"], full, strict=True)],
]
truth = (["Age group", "sex"], [AGES, ["Male", "Female"]], SEX_AGE.T)
add("ons_residents.xlsx", xlsx({"Contents": [["Contents"], ["1", "Residents"]], "1": rows}), truth)
shown = [r[:] for r in rows]
shown[6][1] = "[c]"
gone = SEX_AGE.T.copy()
gone[1, 0] = np.nan
add(
    "ons_suppressed.csv",
    lines([[c if isinstance(c, str) else number(c) for c in r] for r in shown]),
    (truth[0], truth[1], gone),
    unknown=1,
)
add(
    "nomis_query.csv",
    '"TS009 - Sex by age"\n"ONS Crown Copyright Reserved [from Nomis on 3 May 2023]"\n\n'
    '"Population :","All usual residents"\n"Units      :","Persons"\n"Date       :","2021"\n\n'
    + lines(cross([*AGES, "Total"], ["Male", "Female", "Total"], full, "Age", plain), quote=True)
    + '\n\n"In order to protect against disclosure of personal information, records have been'
    ' swapped between different geographic areas."\n',
    (["Age", "Sex"], [AGES, ["Male", "Female"]], SEX_AGE.T),
)
head = (
    "DATE,DATE_NAME,GEOGRAPHY,GEOGRAPHY_NAME,GEOGRAPHY_CODE,C_SEX,C_SEX_NAME,C_AGE,C_AGE_NAME,"
    "MEASURES,MEASURES_NAME,OBS_VALUE,OBS_STATUS,OBS_STATUS_NAME,RECORD_OFFSET,RECORD_COUNT\n"
)
text = head
full2 = np.vstack([SEX_AGE.sum(axis=0), SEX_AGE])
full2 = np.hstack([full2.sum(axis=1, keepdims=True), full2])
i = 0
for s, sex in enumerate(["All persons", "Male", "Female"]):
    for a, age in enumerate(["All categories: Age", *AGES]):
        text += (
            f'2021,2021,2092957703,"England and Wales",K04000001,{s},{sex},{a},"{age}",20100,Value,'
            f"{full2[s, a]:.0f},A,Normal Value,{i},15\n"
        )
        i += 1
add("nomis_api.csv", text, (["C_SEX", "C_AGE"], [["Male", "Female"], AGES], SEX_AGE))

# National Records of a small country: nil, not given, flags ------------------------------------

table = SMALL.copy()
table[1, 1] = 0
full = total(table)
cells = [[plain(x) for x in line] for line in full]
cells[1][1] = "-"
cells[0][0] += "*"
cells[2][2] += " p"
rows = [["Table 4 Households by tenure and size"], []]
rows += [["Tenure", "One", "Two", "Three or more", "All"]]
tenures = ["Owned", "Social rented", "Private rented"]
rows += [[t, *line] for t, line in zip([*tenures, "All"], cells, strict=True)]
rows += [[], ["* Revised. p Provisional. - Nil."]]
add(
    "nrs_marks.csv",
    lines(rows),
    (["Tenure", "size"], [tenures, ["One", "Two", "Three or more"]], table),
)

# Census bureau -----------------------------------------------------------------------------------

ages = ["Under 5 years", "5 to 17 years", "18 to 64 years", "65 years and over"]
rows = [["Label (Grouping)", "Adams County!!Estimate", "Adams County!!Margin of Error"]]
rows.append(["Total:", number(SEX_AGE.sum()), "*****"])
for s, sex in enumerate(["Male:", "Female:"]):
    rows.append(["    " + sex, number(SEX_AGE[s].sum()), "±57"])
    rows += [
        ["        " + a, number(x), f"±{k + 21}"]
        for k, (a, x) in enumerate(zip(ages, SEX_AGE[s], strict=True))
    ]
add(
    "census_b01001.csv",
    lines(rows, quote=True),
    (["Sex", "Age"], [["Male", "Female"], ages], SEX_AGE),
)
codes = [f"B01001_{k:03d}E" for k in range(1, 12)]
labels = ["Estimate!!Total:"]
values = [SEX_AGE.sum()]
for s, sex in enumerate(["Male:", "Female:"]):
    labels.append(f"Estimate!!Total:!!{sex}")
    values.append(SEX_AGE[s].sum())
    labels += [f"Estimate!!Total:!!{sex}!!{a}" for a in ages]
    values += SEX_AGE[s].tolist()
add(
    "census_wide.csv",
    lines(
        [
            ["GEO_ID", "NAME", *codes],
            ["Geography", "Geographic Area Name", *labels],
            ["0500000US08001", "Adams County, Colorado", *map(plain, values)],
        ],
        quote=True,
    ),
    (["Sex", "Age"], [["Male", "Female"], ages], SEX_AGE),
)
text = "SEX,AGEGROUP,POP\n"
for s in range(3):
    for a in range(5):
        text += f"{s},{a},{full2[s, a]:.0f}\n"
add("census_long.csv", text, (["SEX", "AGEGROUP"], [[1, 2], [1, 2, 3, 4]], SEX_AGE))
full = total(AGE_WORK.T)
cells = [[number(x) for x in line] for line in full]
cells[1][2] = "(D)"
gone = AGE_WORK.T.copy()
gone[1, 2] = np.nan
rows = [["Table 7. Persons by Employment Status and Age"], ["[Numbers in units]"], []]
rows += [["Employment status", *AGES, "Total"]]
rows += [[w, *line] for w, line in zip([*WORK, "Total"], cells, strict=True)]
rows += [["(D) Withheld to avoid disclosing data for individuals."]]
add("bls_withheld.csv", lines(rows), (["Employment status", "Age"], [WORK, AGES], gone), unknown=1)

# Statistics Canada -------------------------------------------------------------------------------

head = (
    '"REF_DATE","GEO","DGUID","Sex","Age group","UOM","UOM_ID","SCALAR_FACTOR","SCALAR_ID",'
    '"VECTOR","COORDINATE","VALUE","STATUS","SYMBOL","TERMINATED","DECIMALS"\n'
)
text = head
i = 0
for s, sex in enumerate(["Both sexes", "Males", "Females"]):
    for a, age in enumerate(
        ["All ages", "0 to 14 years", "15 to 24 years", "25 to 64 years", "65 years and over"]
    ):
        i += 1
        text += (
            f'"2021","Canada","2016A000011124","{sex}","{age}","Persons","249","units ","0",'
            f'"v{466668 + i}","1.{s + 1}.{a + 1}","{full2[s, a]:.0f}","","","","0"\n'
        )
canada = ["0 to 14 years", "15 to 24 years", "25 to 64 years", "65 years and over"]
truth = (["Sex", "Age group"], [["Males", "Females"], canada], SEX_AGE)
add("statcan_17100005.csv", "\ufeff" + text, truth)
out = io.BytesIO()
with zipfile.ZipFile(out, "w") as archive:
    archive.writestr("17100005.csv", "\ufeff" + text)
    archive.writestr(
        "17100005_MetaData.csv", '"Cube Title","Product Id"\n"Population","17100005"\n'
    )
add("statcan_17100005.zip", out.getvalue(), truth)
add(
    "statcan_thousands.csv",
    text.replace('"units ","0"', '"thousands","3"'),
    (truth[0], truth[1], SEX_AGE * 1000),
)
cells = [[number(x) for x in line] for line in total(AGE_WORK)]
cells[0][1] += "E"
cells[3][1] = "F"
gone = AGE_WORK.copy()
gone[3, 1] = np.nan
rows = [
    ["Labour force characteristics by age group"],
    ["Table: 14-10-0327"],
    ["Geography: Canada"],
    [],
]
rows += [["Age group", *[f"{w} 3" if k == 1 else w for k, w in enumerate(WORK)], "Total"]]
rows += [[a, *line] for a, line in zip([*AGES, "Total, all ages"], cells, strict=True)]
rows += [[], ["Symbol legend:"], ["E", "use with caution"], ["F", "too unreliable to be published"]]
add(
    "statcan_view.csv",
    lines(rows, quote=True),
    (
        ["Age group", "Employed/Unemployed 3/Inactive"],
        [AGES, [WORK[0], f"{WORK[1]} 3", WORK[2]]],
        gone,
    ),
    unknown=1,
)

# Eurostat and OECD -------------------------------------------------------------------------------

codes = ["Y_LT15", "Y15-24", "Y25-64", "Y_GE65"]
text = "DATAFLOW,LAST UPDATE,freq,unit,sex,age,geo,TIME_PERIOD,OBS_VALUE,OBS_FLAG\n"
for s, sex in enumerate(["T", "M", "F"]):
    for a, age in enumerate(["TOTAL", *codes]):
        flag = "p" if a == 2 else ""
        text += f"ESTAT:DEMO_PJAN(1.0),01/02/24 23:00:00,A,NR,{sex},{age},LU,2023,{full2[s, a]:.0f},{flag}\n"
euro = (["sex", "age"], [["M", "F"], codes], SEX_AGE)
add("estat_demo_pjan.csv", text, euro)
add("estat_demo_pjan.csv.gz", gzip.compress(text.encode()), euro)
text = "freq,unit,sex,age,geo\\TIME_PERIOD\t2023 \n"
for s, sex in enumerate(["T", "M", "F"]):
    for a, age in enumerate(["TOTAL", *codes]):
        flag = "p" if a == 2 else ""
        text += f"A,NR,{sex},{age},LU\t{full2[s, a]:.0f} {flag}\n"
add("estat_demo_pjan.tsv", text, euro)
plainly = {
    "version": "2.0",
    "class": "dataset",
    "label": "Population on 1 January by age and sex",
    "id": ["freq", "unit", "sex", "age", "geo", "time"],
    "size": [1, 1, 3, 5, 1, 1],
    "value": {str(k): float(x) for k, x in enumerate(full2.ravel())},
    "dimension": {
        "freq": {"label": "Frequency", "category": {"index": {"A": 0}, "label": {"A": "Annual"}}},
        "unit": {"label": "Unit", "category": {"index": {"NR": 0}, "label": {"NR": "Number"}}},
        "sex": {
            "label": "Sex",
            "category": {
                "index": {"T": 0, "M": 1, "F": 2},
                "label": {"T": "Total", "M": "Males", "F": "Females"},
            },
        },
        "age": {
            "label": "Age class",
            "category": {
                "index": {"TOTAL": 0, **{code: k + 1 for k, code in enumerate(codes)}},
                "label": {"TOTAL": "Total", **dict(zip(codes, AGES, strict=True))},
            },
        },
        "geo": {"label": "Geo", "category": {"index": {"LU": 0}, "label": {"LU": "Luxembourg"}}},
        "time": {"label": "Time", "category": {"index": {"2023": 0}, "label": {"2023": "2023"}}},
    },
}
add(
    "estat_demo_pjan.json",
    json.dumps(plainly),
    (["Sex", "Age class"], [["Males", "Females"], AGES], SEX_AGE),
)
full = total(REGION_SEX)
regions = ["Nordland", "Ostland", "Suedland", "Westland", "Mitte"]
rows = [
    ["Data extracted on 05/02/2024 11:02:10 from [ESTAT]"],
    ["Dataset:", "Population by sex [demo_r]"],
    [],
]
rows += [["GEO (Labels)", "Males", "", "Females", "", "Total", ""]]
for region, line in zip([*regions, "Total"], full, strict=True):
    rows.append([region, line[0], "p" if region == "Mitte" else "", line[1], "", line[2], ""])
rows += [[], ["Available flags:"], ["p", "provisional"]]
add(
    "estat_regions.xlsx",
    xlsx({"Sheet 1": rows}),
    (["GEO (Labels)", "sex"], [regions, ["Males", "Females"]], REGION_SEX),
)
text = '"LOCATION","Country","SEX","Sex","AGE","Age","TIME","Time","Value","Flag Codes","Flags"\n'
for s, (code, sex) in enumerate([("T", "Total"), ("M", "Men"), ("W", "Women")]):
    for a, (short, age) in enumerate(
        [("TT", "Total"), ("00", "0-14"), ("15", "15-24"), ("25", "25-64"), ("65", "65+")]
    ):
        text += f'"NZL","New Zealand","{code}","{sex}","{short}","{age}","2021","2021",{full2[s, a]:.0f},,\n'
add("oecd_pop.csv", text, (["Sex", "Age"], [["Men", "Women"], AGES], SEX_AGE))

# Destatis, in German ----------------------------------------------------------------------------

german = ["unter 15 Jahre", "15 bis unter 25 Jahre", "25 bis unter 65 Jahre", "65 Jahre und mehr"]
full = total(SEX_AGE.T)
text = (
    "Tabelle: 12411-0005;;;\nBevölkerung: Deutschland, Stichtag, Altersgruppen, Geschlecht;;;\n"
    "Fortschreibung des Bevölkerungsstandes;;;\nDeutschland;;;\nBevölkerung (Anzahl);;;\n"
    ";31.12.2021;31.12.2021;31.12.2021\n;männlich;weiblich;Insgesamt\n"
)
for label, line in zip([*german, "Insgesamt"], full, strict=True):
    text += ";".join([label, *map(plain, line)]) + "\n"
text += "__________\n(C)opyright Statistisches Bundesamt (Destatis), 2022\nStand: 17.11.2022 / 10:20:08\n"
add(
    "destatis_12411.csv",
    text.encode("cp1252"),
    (["Altersgruppen", "Geschlecht"], [german, ["männlich", "weiblich"]], SEX_AGE.T),
)
rows = [
    ["Tabelle 2.1: Bevölkerung nach Altersgruppen und Geschlecht"],
    [],
    ["Altersgruppe", "Geschlecht", "", "Insgesamt"],
]
rows += [["", "männlich", "weiblich", ""]]
rows += [[label, *line.tolist()] for label, line in zip([*german, "Zusammen"], full, strict=True)]
rows += [["Quelle: Amt für erfundene Zahlen"]]
add(
    "destatis_merged.xlsx",
    xlsx({"2.1": rows}, [(2, 1, 2, 2), (2, 0, 3, 0), (2, 3, 3, 3)]),
    (["Altersgruppe", "Geschlecht"], [german, ["männlich", "weiblich"]], SEX_AGE.T),
)
dotted = lambda x: number(x, thousands=".", decimal=",")  # noqa: E731
text = lines(cross([*german, "Summe"], ["Männer", "Frauen", "Gesamt"], full, "Alter", dotted), ";")
add("land_tausender.csv", text, (["Alter", "Sex"], [german, ["Männer", "Frauen"]], SEX_AGE.T))
tenths = np.round(total(np.round(SEX_AGE.T / 1000, 1)), 1)
show = lambda x: number(x, thousands=".", decimal=",", digits=1)  # noqa: E731
text = "Bevölkerung nach Alter und Geschlecht (in 1 000)\n" + lines(
    cross([*german, "Insgesamt"], ["Männer", "Frauen", "Insgesamt"], tenths, "", show), ";"
)
add(
    "destatis_mikrozensus.csv",
    text,
    (["Alter", "Geschlecht"], [german, ["Männer", "Frauen"]], np.round(SEX_AGE.T / 1000, 1) * 1000),
)
text = "sep=;\r\nAlter;Geschlecht;Anzahl\r\n"
for a, age in enumerate([*german, "Gesamt"]):
    for s, sex in enumerate(["m", "w", "Gesamt"]):
        text += f"{age};{sex};{full[a, s]:.0f}\r\n"
add("stadt_sep.csv", "\ufeff" + text, (["Alter", "Geschlecht"], [german, ["m", "w"]], SEX_AGE.T))

# INSEE, in French ---------------------------------------------------------------------------------

french = ["Moins de 15 ans", "15 à 24 ans", "25 à 64 ans", "65 ans et plus"]
spaced = lambda x: number(x, thousands="\u00a0", decimal=",")  # noqa: E731
text = "Population par âge et sexe au 1er janvier\n\n" + lines(
    cross([*french, "Ensemble"], ["Hommes", "Femmes", "Ensemble"], full, "Âge", spaced), ";"
)
text += "\nChamp : France hors Mayotte.\nLecture : au 1er janvier, les hommes sont moins nombreux.\nSource : Office imaginaire.\n"
add(
    "insee_pyramide.csv",
    text.encode("cp1252"),
    (["Âge", "sexe"], [french, ["Hommes", "Femmes"]], SEX_AGE.T),
)
status = ["En emploi", "Au chômage", "Inactifs"]
share = np.round(100 * AGE_WORK / AGE_WORK.sum(), 1)
show1 = lambda x: number(x, thousands=" ", decimal=",", digits=1)  # noqa: E731
rows = [["Répartition de la population par tranche d'âge et situation"], ["en %"], []]
rows += cross([*french, "Total"], [*status, "Total"], total(share), "Tranche d'âge", show1)
add(
    "insee_pourcent.csv",
    lines(rows, ";"),
    (["Tranche d'âge", "situation"], [french, status], share / share.sum()),
    shares=True,
    tolerance=2e-3,
)
base = AGE_WORK.sum(axis=1)
within = np.round(100 * AGE_WORK / base[:, None], 1)
rows = [["Situation selon l'âge (en % de la ligne)"], [], ["Âge", *status, "Total", "Effectif"]]
for a, line, n in zip(french, within, base, strict=True):
    rows.append([a, *map(show1, line), "100,0", spaced(n)])
add(
    "insee_lignes.csv",
    lines(rows, ";"),
    refused=[
        "belong to a variable that the file does not name",
        "same={'En emploi/Au chômage': 'Situation'}",
    ],
)
rows[0] = ["Population par âge et situation (en % de la ligne)"]
add(
    "insee_lignes_effectif.csv",
    lines(rows, ";"),
    (["Âge", "situation"], [french, status], within * base[:, None] / 100),
    tolerance=2e-3,
)
rows = [["Ensemble de la population par sexe et âge"], [], ["Sexe et âge", "Effectif"]]
for s, sex in enumerate(["Hommes", "Femmes"]):
    rows.append([sex, SEX_AGE[s].sum()])
    rows += [["   " + a, x] for a, x in zip(french, SEX_AGE[s].tolist(), strict=True)]
rows.append(["Ensemble", SEX_AGE.sum()])
rows.append(["Source : Office imaginaire"])
add(
    "insee_imbrique.xlsx",
    xlsx({"Tableau": rows}),
    (["sexe", "âge"], [["Hommes", "Femmes"], french], SEX_AGE),
)

# INE, in Spanish ----------------------------------------------------------------------------------

spanish = ["Menos de 15 años", "15 a 24 años", "25 a 64 años", "65 años y más"]
three = np.vstack([SEX_AGE.sum(axis=0), SEX_AGE])
px = (
    'CHARSET="ANSI";\nAXIS-VERSION="2010";\nCODEPAGE="iso-8859-15";\nTITLE="Población por sexo y edad";\n'
    'UNITS="Personas";\nSTUB="Sexo";\nHEADING="Edad";\n'
    'VALUES("Sexo")="Ambos sexos","Hombres","Mujeres";\n'
    'VALUES("Edad")="Todas las edades",' + ",".join(f'"{a}"' for a in spanish) + ";\n"
    'NOTE="Cifras; provisionales";\nDATA=\n'
    + "\n".join(" ".join(plain(x) for x in line) for line in full2)
    + ";\n"
)
spain = (["Sexo", "Edad"], [["Hombres", "Mujeres"], spanish], SEX_AGE)
add("ine_poblacion.px", px.encode("iso-8859-15"), spain)
text = "Sexo;Edad;Total\n"
for s, sex in enumerate(["Ambos sexos", "Hombres", "Mujeres"]):
    for a, age in enumerate(["Todas las edades", *spanish]):
        text += f"{sex};{age};{dotted(full2[s, a])}\n"
add("ine_poblacion.csv", text.encode("cp1252"), spain)
rows = [["Población por sexo y edad"], ["Unidades: personas"], [], ["", "Total"]]
for s, sex in enumerate(["Ambos sexos", "Hombres", "Mujeres"]):
    rows.append([sex])
    rows += [["    " + a, x] for a, x in zip(["Total", *spanish], full2[s].tolist(), strict=True)]
rows += [[], ["Notas:"], ["1) Cifras provisionales."], ["Fuente:"], ["Instituto imaginario"]]
add("ine_bloques.xlsx", xlsx({"tabla": rows}), (["sexo", "edad"], spain[1], SEX_AGE))

# CBS, in Dutch --------------------------------------------------------------------------------------

dutch = ["0 tot 15 jaar", "15 tot 25 jaar", "25 tot 65 jaar", "65 jaar of ouder"]
text = '"Geslacht";"Leeftijd";"Perioden";"Bevolking (aantal)"\n'
for s, sex in enumerate(["Totaal mannen en vrouwen", "Mannen", "Vrouwen"]):
    for a, age in enumerate(["Totaal", *dutch]):
        text += f'"{sex}";"{age}";"2023";"{full2[s, a]:.0f}"\n'
text += '"Bron: Bureau voor verzonnen cijfers"\n'
add("cbs_bevolking.csv", text, (["Geslacht", "Leeftijd"], [["Mannen", "Vrouwen"], dutch], SEX_AGE))
rows = [
    ["Werkzame beroepsbevolking naar leeftijd, geslacht en positie"],
    [],
    ["Leeftijd", "Mannen", "", "", "Vrouwen", "", ""],
]
dwork = ["werkzaam", "werkloos", "overig"]
rows += [["", *dwork, *dwork]]
for a, age in enumerate(dutch):
    rows.append([age, *map(spaced, SEX_AGE_WORK[:, a].ravel())])
add(
    "cbs_twee_koppen.csv",
    lines(rows, ";"),
    (
        ["Leeftijd", "geslacht", "positie"],
        [dutch, ["Mannen", "Vrouwen"], dwork],
        SEX_AGE_WORK.transpose(1, 0, 2),
    ),
)

# Nordic ---------------------------------------------------------------------------------------------

plainly = {
    "class": "dataset",
    "version": "2.0",
    "label": "07459: Population, by sex, age and contents",
    "id": ["Kjonn", "Alder", "ContentsCode", "Tid"],
    "size": [2, 4, 1, 1],
    "dimension": {
        "Kjonn": {
            "label": "sex",
            "category": {"index": ["2", "1"], "label": {"2": "Females", "1": "Males"}},
        },
        "Alder": {
            "label": "age",
            "category": {
                "index": dict(zip("abcd", range(4), strict=True)),
                "label": dict(zip("abcd", AGES, strict=True)),
            },
        },
        "ContentsCode": {"label": "contents", "category": {"label": {"Personer1": "Persons"}}},
        "Tid": {"label": "year", "category": {"index": {"2024": 0}}},
    },
    "value": [float(x) for x in SEX_AGE[::-1].ravel()],
}
add(
    "ssb_07459.json",
    json.dumps(plainly),
    (["sex", "age"], [["Females", "Males"], AGES], SEX_AGE[::-1]),
)
rows = [["Population 31 December by region and sex"], ["", "men", "women"]]
rows += [[region, *line.tolist()] for region, line in zip(regions, REGION_SEX, strict=True)]
add(
    "scb_regions.ods",
    ods({"BE0101": rows}),
    (["region", "sex"], [regions, ["men", "women"]], REGION_SEX),
)

# Australian Bureau of Statistics ---------------------------------------------------------------------

cells = [[plain(x) for x in line] for line in total(AGE_WORK)]
cells[1][2] = "np"
gone = AGE_WORK.copy()
gone[1, 2] = np.nan
rows = [
    ["Australian Bureau of Imaginary Statistics"],
    ["AGE5P by LFSP"],
    ["Counting: Persons Place of Usual Residence"],
    [],
]
rows += [["Filters:"], ["Default Summation", "Persons Place of Usual Residence"], []]
rows += [["LFSP", *WORK, "Total"], ["AGE5P", "", "", "", ""]]
rows += [[a, *line] for a, line in zip([*AGES, "Total"], cells, strict=True)]
rows += [[], ["Dataset: 2021 Census"], ["INFO", "Cells in this table have been randomly adjusted"]]
add(
    "abs_tablebuilder.csv",
    lines(rows, quote=True),
    (["AGE5P", "LFSP"], [AGES, WORK], gone),
    unknown=1,
)
contents = [
    ["6202.0 Labour Force"],
    ["Contents"],
    ["Table 1", "By age"],
    ["Table 2", "By age and sex"],
]
sheet2 = [
    ["Table 2. Persons by labour force status and sex ('000)"],
    [],
    ["", "Males", "Females", "Persons"],
]
sw = np.round(SEX_AGE_WORK.sum(axis=1).T / 1000, 1)
sheet2 += [
    [w, *line.tolist()] for w, line in zip([*WORK, "Total"], np.round(total(sw), 1), strict=True)
]
add(
    "abs_6202.xlsx",
    xlsx({"Contents": contents, "Table 2": sheet2}),
    (["labour force status", "sex"], [WORK, ["Males", "Females"]], sw * 1000),
)

# Reports of surveys ------------------------------------------------------------------------------------

pct = 100 * AGE_WORK / AGE_WORK.sum(axis=1, keepdims=True)
rows = [["Table 12. Working status by age"], ["Age", *[c for w in WORK for c in (w, "")], "Total"]]
rows += [["", *["n", "%"] * 3, "n"]]
for a, counts, part in zip(AGES, AGE_WORK, pct, strict=True):
    pairs = [c for x, p in zip(counts, part, strict=True) for c in (plain(x), f"{p:.1f}")]
    rows.append([a, *pairs, plain(counts.sum())])
work = (["Age", "Working status"], [AGES, WORK], AGE_WORK)
add("survey_n_percent.csv", lines(rows), (["Age", "/".join(WORK)], *work[1:]))
rows[0] = ["Table 12. Persons by age and working status"]
add("survey_n_percent_titled.csv", lines(rows), (["Age", "working status"], *work[1:]))
rows = [["working status by age"], ["Age", *[c for w in WORK for c in (w, "%")]]]
for a, counts, part in zip(AGES, AGE_WORK, pct, strict=True):
    rows.append(
        [a, *[c for x, p in zip(counts, part, strict=True) for c in (plain(x), f"{p:.1f}")]]
    )
add("working status by age.csv", lines(rows), (["Age", "working status"], *work[1:]))
rows = [["Persons by age and status"], ["Age", *WORK]]
for a, counts, part in zip(AGES, AGE_WORK, pct, strict=True):
    rows.append([a, *[f"{x:,.0f} ({p:.1f}%)" for x, p in zip(counts, part, strict=True)]])
add("medical_n_percent.csv", lines(rows), (["Age", "status"], *work[1:]))
sa, aw = SEX_AGE, AGE_WORK
one = np.array([[410.0, 388, 202], [290, 115, 95], [300, 97, 103]])  # status by three banners
rows = [
    ["", "Total", "Sex", "", "Age", "", ""],
    ["Working status", "", "Male", "Female", "Young", "Middle", "Old"],
]
m = RNG.integers(100, 900, size=(3, 2)).astype(float)
t = m.sum(axis=1)
young = np.floor(t * 0.3)
middle = np.floor(t * 0.37)
banner = np.column_stack([t, m, young, middle, t - young - middle])
for w, line in zip(WORK, banner, strict=True):
    rows.append([w, *map(plain, line)])
add(
    "survey_banner.csv",
    lines(rows),
    (["Working status", "Sex"], [WORK, ["Male", "Female"]], m),
    (["Working status", "Age"], [WORK, ["Young", "Middle", "Old"]], banner[:, 3:]),
)
rows = [["Employed persons by industry and sex"], ["Industry", "Men", "Women", "Total"]]
industry = RNG.integers(200, 5000, size=(5, 2)).astype(float)
names = ["Crops", "Forestry", "Retail", "Finance", "Health"]
goods, services = industry[:2].sum(axis=0), industry[2:].sum(axis=0)
for label, line in [("All industries", goods + services), ("Goods", goods), ("  Crops", industry[0]), ("  Forestry", industry[1]), ("Services", services), ("  Retail", industry[2]), ("  Finance", industry[3]), ("  Health", industry[4])]:  # fmt: skip
    rows.append([label, *map(number, [*line, line.sum()])])
nested = (["Industry", "sex"], [names, ["Men", "Women"]], industry)
add("industry_indented.csv", lines(rows), nested)
rows = [[row[0].strip(), *row[1:]] for row in rows]
add("industry_flat.csv", lines(rows), nested)
rows = [["Persons by sex, age and status"], ["", *WORK, "Total"]]
for s, sex in enumerate(["Men", "Women"]):
    rows.append([sex])
    rows += [
        [a, *map(number, line)]
        for a, line in zip(
            [*AGES, "Total"],
            np.column_stack(
                [
                    np.vstack([SEX_AGE_WORK[s], SEX_AGE_WORK[s].sum(axis=0)]),
                    np.append(SEX_AGE_WORK[s].sum(axis=1), SEX_AGE_WORK[s].sum()),
                ]
            ),
            strict=True,
        )
    ]
add(
    "sections.csv",
    lines(rows),
    (["sex", "age", "status"], [["Men", "Women"], AGES, WORK], SEX_AGE_WORK),
)
text = "sex,F,M,All\nage,,,\n"
for a, age in enumerate([*AGES, "All"]):
    text += ",".join([age, *map(plain, total(SEX_AGE[::-1].T)[a])]) + "\n"
add("pandas_crosstab.csv", text, (["age", "sex"], [AGES, ["F", "M"]], SEX_AGE[::-1].T))
rows = [["Sex", "Age", *WORK]]
for s, sex in enumerate(["Men", "Women"]):
    for a, age in enumerate(AGES):
        rows.append([sex if a == 0 else "", age, *map(plain, SEX_AGE_WORK[s, a])])
add("status__filled_down.xlsx", xlsx({"T": [["Persons by sex, age and status"], *[[float(c) if c.isdecimal() else c for c in r] for r in rows]]}),
    (["Sex", "Age", "status"], [["Men", "Women"], AGES, WORK], SEX_AGE_WORK))  # fmt: skip
first = [
    ["Table A. Persons by age and sex"],
    *cross([*AGES, "Total"], ["Men", "Women", "Total"], total(SEX_AGE.T), "Age"),
]
second = [
    ["Table B. Persons by age and status"],
    *cross([*AGES, "Total"], [*WORK, "Total"], total(AGE_WORK), "Age"),
]
add(
    "two_tables.csv",
    lines([*first, [], *second]),
    (["Age", "sex"], [AGES, ["Men", "Women"]], SEX_AGE.T),
    (["Age", "status"], [AGES, WORK], AGE_WORK),
)
rows = cross(AGES, ["Male", "Female"], SEX_AGE.T, "Age", plain)
add(
    "pages.csv",
    lines([*rows[:3], rows[0], *rows[3:]]),
    (["Age", "Sex"], [AGES, ["Male", "Female"]], SEX_AGE.T),
)
text = "year,sex,age,population\n"
for s, sex in enumerate(["Men", "Women"]):
    for a, age in enumerate(AGES):
        text += f"2021,{sex},{age},{SEX_AGE[s, a]:.0f}\n"
add("open_data.csv", text, (["sex", "age"], [["Men", "Women"], AGES], SEX_AGE))
share = SEX_AGE / SEX_AGE.sum()
rows = [["Sex", *AGES]] + [
    [sex, *[f"{x:.4f}".replace(".", ",") for x in line]]
    for sex, line in zip(["Hommes", "Femmes"], share, strict=True)
]
add(
    "parts.csv",
    lines(rows, "\t"),
    (["Sex", "Age"], [["Hommes", "Femmes"], AGES], np.round(share, 4) / np.round(share, 4).sum()),
    shares=True,
)
rows = [["Age", "2019", "2020", "2021"]] + [
    [a, *map(plain, line)] for a, line in zip(AGES, AGE_WORK, strict=True)
]
add(
    "years.csv",
    lines([["Persons by age and year"], *rows]),
    (["Age", "year"], [AGES, [2019, 2020, 2021]], AGE_WORK),
)
rows = [["", "Men", "", "Women", ""], ["Age", "2019", "2020", "2019", "2020"]]
cube = SEX_AGE_WORK[:, :, :2]
rows += [[a, *map(plain, cube[:, k].ravel())] for k, a in enumerate(AGES)]
add(
    "sex_by_year.csv",
    lines([["Persons by age, sex and year"], *rows]),
    (["Age", "sex", "year"], [AGES, ["Men", "Women"], [2019, 2020]], cube.transpose(1, 0, 2)),
)

# To be refused: two readings -----------------------------------------------------------------------------

add(
    "two_numbers.csv",
    "Sex;Age;Wert\nm;0-14;9.132\nm;15+;2.628\nf;0-14;8.771\nf;15+;3.112\n",
    refused=["'9.132' may be 9132", "or 9.132", "decimal=','", "decimal='.'"],
)
add(
    "row_percent.csv",
    "Age,Employed,Unemployed,Inactive\n15-24,40,20,40\n25-64,75,5,20\n65+,10,1,89\n",
    refused=["add up to 100", "kind='rows'", "kind='counts'"],
)
add(
    "status by age.csv",
    "age,Employed,Unemployed,Inactive\n15-24,40,20,40\n25-64,75,5,20\n65+,10,1,89\n",
    refused=["add up to 100", "percentages within age or counts", "kind='rows'", "kind='counts'"],
)
add(
    "chance_total.csv",
    "grade,count\nlow,30\nmid,20\nhigh,50\n",
    refused=["'high' of 'grade' equals 'low' + 'mid'", "totals=['high']", "totals='none'"],
)
rows = [["", "Persons", "Households", ""], ["Age", "Number", "Number", "Number per 1,000"]]
add(
    "two_measures.csv",
    "Age,Persons,Households\n0-14,5210,1830\n15-64,20110,9120\n65+,6120,4410\n",
    refused=["'Persons', 'Households'"],
)
add(
    "rates.csv",
    "Deaths per 1 000 inhabitants by age and sex\nAge,Men,Women\n0-14,0.4,0.3\n15-64,3.2,1.9\n65+,41.2,38.7\n",
    refused=["rates"],
)
page = [["Age", *WORK], *[[a, *line.tolist()] for a, line in zip(AGES, AGE_WORK, strict=True)]]
other = [
    ["Age", *WORK],
    *[[a, *line.tolist()] for a, line in zip(AGES, AGE_WORK[::-1], strict=True)],
]
add(
    "age by status.xlsx",
    xlsx({"Men": page, "Women": other}),
    refused=["'Men'", "'Women'", "sheet="],
)

# Further layouts ------------------------------------------------------------------------------------------

add(
    "jp_population.csv",
    'Table 2 Population by Age (3 groups) and Sex\n(Thousand persons)\nAge,Both sexes,Male,Female\n'
    'Total,"125,502","61,019","64,483"\n0-14,"14,784","7,572","7,212"\n'
    '15-64,"74,504","37,759","36,745"\n65+,"36,214","15,688","20,526"\n',
    (["Age", "Sex"], [["0-14", "15-64", "65+"], ["Male", "Female"]],
     np.array([[7572, 7212], [37759, 36745], [15688, 20526]]) * 1000),
)  # fmt: skip
add(
    "gus_ludnosc.csv",
    (
        "Ludność według płci i wieku\n;0-17;18-59;60+;Ogółem\nMężczyźni;3 412;11 020;4 120;18 552\n"
        "Kobiety;3 250;11 100;5 930;20 280\nOgółem;6 662;22 120;10 050;38 832\n"
    ).encode("utf-16"),
    (["Sex", "Age"], [["Mężczyźni", "Kobiety"], ["0-17", "18-59", "60+"]],
     [[3412, 11020, 4120], [3250, 11100, 5930]]),
)  # fmt: skip
add(
    "abs_spacers.xlsx",
    xlsx(
        {
            "T1": [
                ["Bureau of Imaginary Statistics"],
                ["Table 1. Persons by age and sex"],
                [],
                ["", "", "Males", "", "Females", "", "Persons"],
                ["Age group (years)", "", "no.", "", "no.", "", "no."],
                ["0-14", "", 2310, "", 2190, "", 4500],
                ["15-64", "", 8810, "", 8950, "", 17760],
                ["65 and over", "", 1620, "", 1990, "", 3610],
                ["Total", "", 12740, "", 13130, "", 25870],
            ]
        }
    ),
    (["Age group (years)", "sex"], [["0-14", "15-64", "65 and over"], ["Males", "Females"]],
     [[2310, 2190], [8810, 8950], [1620, 1990]]),
)  # fmt: skip
add(
    "shares.xlsx",
    xlsx(
        {
            "T": [
                ["Share of persons by sex and tenure"],
                ["", "Owner", "Renter"],
                ["Men", 0.31, 0.19],
                ["Women", 0.28, 0.22],
            ]
        }
    ),
    (["sex", "tenure"], [["Men", "Women"], ["Owner", "Renter"]], [[0.31, 0.19], [0.28, 0.22]]),
    shares=True,
)
two = (["sex", "answer"], [["m", "f"], ["yes", "no"]], [[120, 130], [110, 140]])
add(
    "n_and_percent_long.csv",
    "sex,answer,n,percent\nm,yes,120,24.0\nm,no,130,26.0\nf,yes,110,22.0\nf,no,140,28.0\n",
    two,
)
add(
    "below_three.csv",
    "Cause by sex\nCause,Male,Female,Total\nA,120,80,200\nB,<3,14,16\nC,40,<3,41\nTotal,162,95,257\n",
    (
        ["Cause", "sex"],
        [["A", "B", "C"], ["Male", "Female"]],
        [[120, 80], [np.nan, 14], [40, np.nan]],
    ),
    unknown=2,
)
add(
    "estat_confidential.csv",
    "freq,sex,wstatus,geo,TIME_PERIOD,OBS_VALUE,OBS_FLAG\nA,M,EMP,AT,2022,2210,\nA,M,UNE,AT,2022,,c\n"
    "A,F,EMP,AT,2022,2010,\nA,F,UNE,AT,2022,101,b\nA,T,EMP,AT,2022,4220,\nA,T,UNE,AT,2022,221,b\n",
    (["sex", "wstatus"], [["M", "F"], ["EMP", "UNE"]], [[2210, np.nan], [2010, 101]]),
    unknown=1,
)
add(
    "empty_cells.csv",
    "Sport by age\nSport,young,old,Total\nTennis,120,80,200\nGolf,,45,45\nSurf,60,,60\nTotal,180,125,305\n",
    (
        ["Sport", "age"],
        [["Tennis", "Golf", "Surf"], ["young", "old"]],
        [[120, 80], [np.nan, 45], [60, np.nan]],
    ),
    unknown=2,
)
add(
    "footnotes.csv",
    "Region,Men1),Women1),Total\nNorth,120,110,230\nSouth2),130,140,270\nTotal,250,250,500\n1) Provisional.\n2) Without islands.\n",
    (["Region", "Sex"], [["North", "South"], ["Men", "Women"]], [[120, 110], [130, 140]]),
)
add(
    "unit_row.csv",
    "Employment by industry and sex\nIndustry,Men,Women,Total\n,'000,'000,'000\nAgriculture,12.5,4.2,16.7\n"
    "Manufacturing,101.3,40.4,141.7\nServices,310.9,402.1,713.0\nTotal,424.7,446.7,871.4\n",
    (["Industry", "sex"], [["Agriculture", "Manufacturing", "Services"], ["Men", "Women"]],
     np.array([[12.5, 4.2], [101.3, 40.4], [310.9, 402.1]]) * 1000),
)  # fmt: skip
for name, label in (("of_which.csv", "of which: EU"), ("of_which_indented.csv", "  of which EU")):
    add(
        name,
        f"Population by citizenship and sex\nCitizenship,Men,Women\nNational,4210,4405\nForeign,812,790\n{label},402,380\nTotal,5022,5195\n",
        (
            ["Citizenship", "sex"],
            [["National", "Foreign"], ["Men", "Women"]],
            [[4210, 4405], [812, 790]],
        ),
    )
add(
    "millions.csv",
    "Population by sex and area (millions)\nArea,Men,Women\nUrban,12.31,12.84\nRural,7.22,7.18\n",
    (
        ["Area", "sex"],
        [["Urban", "Rural"], ["Men", "Women"]],
        np.array([[12.31, 12.84], [7.22, 7.18]]) * 1e6,
    ),
)
add(
    "markdown.txt",
    "| Age | Men | Women |\n|---|---|---|\n| 0-14 | 310 | 190 |\n| 15-64 | 820 | 840 |\n",
    (["Age", "Sex"], [["0-14", "15-64"], ["Men", "Women"]], [[310, 190], [820, 840]]),
)
add(
    "corner_says_both.csv",
    "Status by age,15-24,25-64,65+,All\nEmployed,410,2210,102,2722\nUnemployed,92,180,3,275\nAll,502,2390,105,2997\n",
    (
        ["Status", "age"],
        [["Employed", "Unemployed"], ["15-24", "25-64", "65+"]],
        [[410, 2210, 102], [92, 180, 3]],
    ),
)
add(
    "unquoted_title.csv",
    "Employment by sex, year and status\n,2019,2020,2021\nMen,,,\nEmployed,1210,1190,1230\nUnemployed,110,140,120\n"
    "Women,,,\nEmployed,1110,1080,1130\nUnemployed,95,130,112\n",
    (["sex", "status", "year"], [["Men", "Women"], ["Employed", "Unemployed"], [2019, 2020, 2021]],
     [[[1210, 1190, 1230], [110, 140, 120]], [[1110, 1080, 1130], [95, 130, 112]]]),
)  # fmt: skip
single = [str(a) for a in range(90)] + ["90+"]
ages = np.column_stack([np.arange(500, 591), np.arange(400, 491)]).astype(float)
add(
    "single_years.csv",
    lines(
        [
            ["Age", "Male", "Female", "Total"],
            *[
                [a, *map(plain, [*line, line.sum()])]
                for a, line in zip(
                    ["All ages", *single], np.vstack([ages.sum(axis=0), ages]), strict=True
                )
            ],
        ]
    ),
    (["Age", "Sex"], [single, ["Male", "Female"]], ages),
)
add(
    "change.csv",
    "Population by region and year\nRegion,2011,2021,Change,Change (%)\nNorth,1200,1320,120,10.0\nSouth,800,880,80,10.0\nWest,501,560,59,11.8\n",
    refused=["another kind of number", "skip=['Change (%)']"],
)
add(
    "median.csv",
    "Region by sex\nRegion,Male,Female,Median age\nNorth,1210,1320,41.2\nSouth,810,880,38.9\nWest,501,560,44.1\n",
    refused=["'Median age'", "another kind of number", "skip=['Median age']"],
)
add(
    "poll.csv",
    ",Total,Male,Female\nUnweighted base,1000,480,520\nWeighted base,1000,490,510\nYes,45%,50%,40%\nNo,40%,35%,45%\nDon't know,15%,15%,15%\n",
    refused=["percent signs", "'Unweighted base', 'Weighted base'"],
)
add(
    "istat.csv",
    '"Popolazione per sesso e età"\n"Sesso";"0-14";"15-64";"Totale"\n"Maschi";"3.812";"18.911";"22.723"\n"Femmine";"3.590";"18.702";"22.292"\n',
    refused=["'3.812' may be 3812", "decimal=','"],
)
regions = ["North", "South", "West"]
by_sex = [[1200, 1310], [810, 905], [502, 611]]
add(
    "codes_first.csv",
    "Code,Region,Men,Women,Total\n01,North,1200,1310,2510\n02,South,810,905,1715\n03,West,502,611,1113\n,Total,2512,2826,5338\n",
    (["Region", "Sex"], [regions, ["Men", "Women"]], by_sex),
)
add(
    "nested_districts.csv",
    "Region,District,Men,Women\nNorth,A,1200,1310\nNorth,B,810,905\nNorth,Total,2010,2215\nSouth,C,502,611\nSouth,D,400,480\nSouth,Total,902,1091\n",
    (["Region", "District", "Sex"], [["North", "South"], ["A", "B", "C", "D"], ["Men", "Women"]],
     [[[1200, 1310], [810, 905], [0, 0], [0, 0]], [[0, 0], [0, 0], [502, 611], [400, 480]]]),
)  # fmt: skip
add(
    "three_in_header.csv",
    '"Persons by age, sex and marital status"\nAge,Men,,,Women,,,Total\n,Single,Married,Total,Single,Married,Total,\n'
    "15-24,310,20,330,290,40,330,660\n25-64,320,600,920,280,650,930,1850\nTotal,630,620,1250,570,690,1260,2510\n",
    (["Age", "sex", "marital status"], [["15-24", "25-64"], ["Men", "Women"], ["Single", "Married"]],
     [[[310, 20], [290, 40]], [[320, 600], [280, 650]]]),
)  # fmt: skip
add(
    "ranges.csv",
    "Disease by district\nDisease;N;S;W\nFlu;120;80;1-4\nTB;1-4;14;22\nOther;40;33;19\n",
    (
        ["Disease", "district"],
        [["Flu", "TB", "Other"], ["N", "S", "W"]],
        [[120, 80, np.nan], [np.nan, 14, 22], [40, 33, 19]],
    ),
    unknown=2,
)
add(
    "measure_column.csv",
    "Sex,Age,Measure,Value\nM,Y,Number,120\nM,O,Number,130\nF,Y,Number,110\nF,O,Number,140\n"
    "M,Y,Percent,24.0\nM,O,Percent,26.0\nF,Y,Percent,22.0\nF,O,Percent,28.0\n",
    (["Sex", "Age"], [["M", "F"], ["Y", "O"]], [[120, 130], [110, 140]]),
)
add(
    "mean_row.csv",
    "tenure,men,women\nowned,1200,1310\nrented,905,1002\naverage,1053,1156\n",
    refused=["'average' of 'tenure' may be another kind", "skip=['average']"],
)
add(
    "several_answers.csv",
    "Language by region (multiple answers)\nLanguage,North,South\nEnglish,900,800\nFrench,500,450\nGerman,300,350\nPersons,1000,900\n",
    refused=["'Persons' of 'Language' may be totals", "totals='none'", "skip=['Persons']"],
)
