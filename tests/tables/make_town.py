"""Write the town's tables as they might be downloaded, into the folder of the package."""

import json
from pathlib import Path

import numpy as np

import rejoint as rj


def lines(rows, delimiter):
    return (
        "\n".join(delimiter.join(f'"{c}"' if delimiter in c else c for c in row) for row in rows)
        + "\n"
    )


def with_totals(table):
    wide = np.hstack([table, table.sum(axis=1, keepdims=True)])
    return np.vstack([wide, wide.sum(axis=0, keepdims=True)])


DESCRIPTION = """\
# What the files do not say themselves. Options are those of rejoint check-tables.

["table1_age_education.csv"]
names = ["Age", "Education"]

["table2_age_work.tsv"]
drop = ["%"]
names = ["Age", "Work"]
missing = {"-" = 0}
kind = "counts"

["table6_season_tickets.csv"]
names = ["Work", "Pass"]

["pass_travel.json"]
kind = "counts"
"""


def make(folder):
    folder = Path(folder)
    tables = rj.Marginals.read(rj.datasets.town_tables())
    levels = {v.name: [str(level) for level in v.levels] for v in tables.domain}

    def table(*names):
        return tables[names], [levels[name] for name in names]

    counts, (ages, schools) = table("Age", "Education")
    rows = [["Table 1: Residents aged 18 and over by Age and Education, 1 January 2024"]]
    rows += [["Some numbers are provisional (p)."], []]
    rows += [["Age", *schools, "All residents"]]
    full = with_totals(counts)
    for label, line in zip([*ages, "All ages"], full, strict=True):
        rows.append([label, *(f"{x:,.0f}" for x in line)])
    rows[5][3] += " p"
    rows += [[], ["Source: Town of Rivermouth, register of residents"]]
    (folder / "table1_age_education.csv").write_text(lines(rows, ","))

    counts, (ages, work) = table("Age", "Work")
    share = 100 * counts / counts.sum(axis=1, keepdims=True)
    rows = [["Residents by Age and Work"], ["", *(c for w in work for c in (w, ""))]]
    rows += [["Age", *["Number", "%"] * len(work)]]
    for label, line, part in zip(ages, counts, share, strict=True):
        pairs = zip(line, part, strict=True)
        shown = [c for x, p in pairs for c in (f"{x:.0f}" if x else "-", f"{p:.1f}" if x else "-")]
        rows.append([label, *shown])
    rows += [["- nil"]]
    (folder / "table2_age_work.tsv").write_text(lines(rows, "\t"))

    counts, (districts, ages, homes) = table("District", "Age", "Home")
    cube = np.concatenate([counts, counts.sum(axis=2, keepdims=True)], axis=2)
    rows = [["DATAFLOW", "District", "Age", "Home", "TIME_PERIOD", "OBS_VALUE", "OBS_STATUS"]]
    for at in np.ndindex(cube.shape):
        home = [*homes, "_T"][at[2]]
        said = [districts[at[0]], ages[at[1]], home]
        rows.append(["TOWN:HOUSING(1.0)", *said, "2024", f"{cube[at]:.0f}", "A"])
    (folder / "housing_sdmx.csv").write_text(lines(rows, ","))

    counts, (districts, travel) = table("District", "Travel")
    quoted = [", ".join(f'"{x}"' for x in known) for known in (districts, travel)]
    text = 'CHARSET="ANSI";\nAXIS-VERSION="2013";\nTITLE="Residents by District and Travel";\n'
    text += 'UNITS="persons";\nSTUB="District";\nHEADING="Travel";\n'
    text += f'VALUES("District")={quoted[0]};\nVALUES("Travel")={quoted[1]};\nDATA=\n'
    text += "\n".join(" ".join(f"{x:.0f}" for x in line) for line in counts) + ";\n"
    (folder / "district_travel.px").write_text(text)

    counts, (passes, travel) = table("Pass", "Travel")
    plain = {
        "version": "2.0",
        "class": "dataset",
        "label": "Residents by Pass and Travel",
        "id": ["Pass", "Travel", "Time"],
        "size": [len(passes), len(travel), 1],
        "dimension": {
            "Pass": {"label": "Pass", "category": {"index": passes}},
            "Travel": {"label": "Travel", "category": {"index": travel}},
            "Time": {"label": "Time", "category": {"index": ["2024"]}},
        },
        "value": [int(x) for x in counts.ravel()],
    }
    (folder / "pass_travel.json").write_text(json.dumps(plain, indent=1) + "\n")

    counts, (work, passes) = table("Work", "Pass")
    full = with_totals(counts)
    shown = [[f"{x:,.0f}".replace(",", " ") if x else "-" for x in line] for line in full]
    shown[2][1] = "[c]"  # held back, and another one so that totals do not give it away
    shown[4][1] = "[c]"
    shown[2][0] = "[c]"
    shown[4][0] = "[c]"
    rows = [["Season tickets"], ["Residents by Work and Pass; [c]: confidential"], []]
    rows += [["Work", *passes, "Total"]]
    rows += [[label, *line] for label, line in zip([*work, "Total"], shown, strict=True)]
    (folder / "table6_season_tickets.csv").write_text(lines(rows, ";"))
    (folder / "tables.toml").write_text(DESCRIPTION)


if __name__ == "__main__":
    make(rj.datasets.town_downloads())
