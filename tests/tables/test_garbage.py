"""What is no table is refused within seconds, with what was looked for."""

import sys

import pytest
from workbook import xlsx

from rejoint.marginals import Marginals
from rejoint.marginals.read import grid

RECIPE = "Pancakes\n\n250 g flour\n2 eggs\n500 ml milk\nMix all, wait 20 minutes, and fry.\n"
INVOICE = [
    ["Invoice 2024-117"],
    [],
    ["Pos", "Article", "Quantity", "Price", "Amount"],
    ["1", "Desk lamp, brass", "2", "49.90", "99.80"],
    ["2", "Shelf 80 x 30", "1", "129.00", "129.00"],
    ["3", "Screws", "100", "0.05", "5.00"],
    ["", "", "", "Total", "233.80"],
]
PROSE = "It was the best of times, it was the worst of times, said number 7 of the 12.\n"

ODD_STAT = b"""{"id": ["a"], "size": [3], "dimension": {"a":
{"category": {"index": ["x", "y", "z"]}}}, "value": [7], "status": {"9": "e"}}"""


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("recipe.txt", RECIPE.encode(), "has no table"),
        ("invoice.csv", "\n".join(",".join(f'"{c}"' for c in r) for r in INVOICE).encode(), "."),
        ("ragged.csv", b"a,b,count\nx,u,1\nx,v\ny,u,3,4,5\n", "."),
        ("ragged2.csv", b"a,b,count\nx,u,1\ny,u,3,4,5\n", "."),
        ("empty.csv", b"", "is empty: a table needs a header and rows"),
        ("blank.csv", b"\n\n ,,\n", "is empty"),
        ("empty.xlsx", xlsx({"Sheet1": []}), "is empty: a table needs a header and rows"),
        ("words.xlsx", xlsx({"A": [["To", "whom"], ["it", "may concern"]]}), "has no table"),
        ("broken.xlsx", b"PK\x03\x04 this is no workbook", "cannot be read as a workbook"),
        ("data.json", b'{"rows": [1, 2, 3]}', "has no data set"),
        ("deep.json", b'{"a": ' + b"[" * 100_000, "its JSON cannot be read"),
        (
            "link.json",
            b'{"class": "collection", "link": []}',
            "has no data set|not valid JSON-stat",
        ),
        ("value.json", ODD_STAT.replace(b"[7]", b"5"), "not valid JSON-stat: TypeError"),
        (
            "mark.json",
            ODD_STAT.replace(b'{"9": "e"}', b"[1, 2]").replace(b"7", b""),
            "none of its cells is known",
        ),
        ("data.px", b'CHARSET="ANSI";\nTITLE="x";\n', "not valid PC-Axis"),
        ("picture.csv", bytes(range(256)) * 20, "zero bytes|not text"),
        ("code.csv", b"def f(x):\n    return x + 1\n\nprint(f(2))\n", "."),
        ("log.txt", b"2024-01-01 10:00:01 INFO start\n2024-01-01 10:00:02 WARN slow\n" * 50, "."),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_garbage_is_refused(tmp_path, name, content, words):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=words):
        Marginals.read(path)


@pytest.mark.parametrize("line", [PROSE, PROSE.replace(",", ";").strip(), "x" * 1000 + "\n"])
def test_long_texts_are_refused_at_once(tmp_path, monkeypatch, line):
    path = tmp_path / "large.csv"
    path.write_bytes(line.encode() * (20_000_000 // len(line)))
    plain, seen = grid.read_rows, []

    def counted(*args):
        for row in plain(*args):
            seen.append(1)
            yield row

    monkeypatch.setattr(grid, "read_rows", counted)
    with pytest.raises(ValueError, match=r"large\.csv"):
        Marginals.read(path)
    assert len(seen) <= 20_000  # the rest of it is not read


def test_workbooks_without_their_reader_name_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    path = tmp_path / "t.xlsx"
    path.write_bytes(xlsx({"A": [["a", "count"], ["x", 1], ["y", 2]]}))
    with pytest.raises(ImportError, match=r"Install rejoint\[excel\], or save the sheet as CSV"):
        Marginals.read(path)


def test_sheets_are_chosen_by_name_or_number(tmp_path):
    path = tmp_path / "t.xlsx"
    pages = {
        "One": [["a", "count"], ["x", 1], ["y", 2]],
        "Two": [["a", "count"], ["x", 3], ["y", 5]],
    }
    path.write_bytes(xlsx(pages))
    assert Marginals.read(path, sheet="Two")["a"].tolist() == [3.0, 5.0]
    assert Marginals.read(path, sheet="1")["a"].tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="there is no sheet 'Three'; it has 'One', 'Two'"):
        Marginals.read(path, sheet="Three")
