"""Delimited text by every parser: what the standard library reads, and its very errors."""

import gzip
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import rejoint as rj
from rejoint.records import delimited

ENGINES = ["pyarrow"]

CELLS = [
    *("", " ", "a", "b", " a", "a ", "A", "é", "日本", "\u2028", "\xa0a", "NA", "nan", "NaN", "?"),
    *("null", "1", "01", "1.0", "1.", ".5", "-0", "0", "+5", "1e5", "1E5", "1_000", "true", "True"),
    *(
        "9999999999999999999",
        "123456789012345678",
        "-1",
        "1,5",
        "x;y",
        "p|q",
        '"',
        '""',
        'a"b',
        "#c",
    ),
    *("a\nb", "a\r\nb", "a\tb", "inf", "Infinity", "0x1", "1 2", "\x0b", "\x00", "'", "\\", "=1"),
]


@st.composite
def files(draw):
    """Text that is often proper, sometimes not, in some encoding, and how it is read."""
    delimiter = draw(st.sampled_from([",", ",", ";", "\t", "|", " "]))
    end = draw(st.sampled_from(["\n", "\n", "\r\n", "\r"]))
    wide = draw(st.integers(1, 4))
    some = draw(st.lists(st.sampled_from(CELLS), min_size=1, max_size=6))
    quoting = draw(st.sampled_from(["needed", "all", "never"]))

    def write(cell):
        special = any(letter in cell for letter in (delimiter, '"', "\n", "\r"))
        if quoting == "never" or (quoting == "needed" and not special):
            return cell
        return '"' + cell.replace('"', '""') + '"'

    rows = draw(
        st.lists(st.lists(st.sampled_from(some), min_size=wide, max_size=wide), max_size=12)
    )
    for row in draw(st.lists(st.sampled_from(rows), max_size=2)) if rows else []:
        if draw(st.booleans()):
            row[:] = [*row, "more"] if draw(st.booleans()) else row[:-1]
    lines = [delimiter.join(map(write, row)) for row in rows]
    names = [f"v{n}" for n in range(wide)]
    header = draw(st.sampled_from([True, True, False]))
    if header:
        lines.insert(0, delimiter.join(names))
    for at in draw(st.lists(st.integers(0, len(lines)), max_size=2)):
        lines.insert(at, draw(st.sampled_from(["", "", " ", '"', '""'])))
    text = end.join(lines) + draw(st.sampled_from([end, "", end + end]))
    encoding = draw(st.sampled_from(["utf-8", "utf-8", "utf-8-sig", "utf-16", "cp1252", "latin-1"]))
    data = text.encode(encoding, errors="replace")
    if draw(st.integers(0, 9)) == 0:
        data = data[:-3] + b"\xff" + data[-3:]
    if draw(st.integers(0, 4)) == 0:
        data = gzip.compress(data)[: draw(st.sampled_from([None, None, -5]))]
    options = {"header": header}
    if draw(st.booleans()):
        options["delimiter"] = delimiter
    if draw(st.booleans()):
        options["encoding"] = encoding
    if draw(st.integers(0, 3)) == 0:
        options["missing"] = draw(st.sampled_from([["a"], [" a", "1"], []]))
    if header and draw(st.integers(0, 3)) == 0:
        options["columns"] = draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    return data, options


def outcome(read):
    """Records with the types of their labels, or the error; and the remarks."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            found = [
                (
                    r.domain,
                    [[*map(type, v.levels)] for v in r.domain],
                    r.codes.dtype,
                    r.codes.tolist(),
                )
                for r in read()
            ]
        except Exception as error:
            found = type(error), str(error)
    return found, [str(warning.message) for warning in said]


def every_way(path, options):
    """The outcomes of reading at once, in chunks, and of a scan."""
    yield outcome(lambda: [rj.read(path, **options)])
    for size in (1, 3, 5):
        yield outcome(lambda size=size: rj.read_chunks(path, size, **options))
    domain = rj.Domain.of({"v0": [1, 2, "a"], "v1": [0.5, 1.0], "x0": [True, False]})
    yield outcome(lambda: [rj.read(path, **options, domain=domain)])
    yield outcome(lambda: rj.read_chunks(path, 2, **options, domain=domain))


def use(monkeypatch, engine, piece=2**22):
    monkeypatch.setattr(delimited, "has_parser", lambda: engine is not None)
    monkeypatch.setattr(delimited, "LEAST_BYTES", 0)
    monkeypatch.setattr(delimited, "PIECE_BYTES", piece)
    monkeypatch.setattr(delimited, "FEWEST_ROWS", 1)


@pytest.mark.parametrize("engine", ENGINES)
@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(files(), st.sampled_from([40, 99, 2**22]))
@example((b'v0,v1\na,"b\r\nc"\n"x""y",\n\n', {"header": True}), 40)
@example((b"v0,v1\na,b\rc,d\n", {"header": True}), 2**22)
@example((b"v0,v1\r\na,b\r\nc,d\r\n", {"header": True}), 40)
@example((b'v0\na\n""\nb\n', {"header": True}), 2**22)
@example((b"v0,v1\n0,\n,0\n,\n", {"header": True, "missing": ["a"]}), 40)
@example((b"v0,v1\na\nb,c,d\n", {"header": True}), 2**22)
@example((b"v0,v1,v2\n,,,more\n,\n", {"header": True}), 2**22)
@example((b'v0,v1\n , \n"a\r\nb","a\r\n\xffb"\n', {"header": True, "missing": ["a"]}), 40)
def test_every_parser_reads_what_the_standard_library_reads(engine, tmp_path_factory, file, piece):
    pytest.importorskip(engine)
    data, options = file
    path = tmp_path_factory.getbasetemp() / "odd.csv"
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        use(patch, None)
        expected = list(every_way(path, options))
        use(patch, engine, piece)
        assert list(every_way(path, options)) == expected


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("quoted", [False, True])
def test_many_rows_are_parsed_by_the_engine(engine, quoted, tmp_path, monkeypatch):
    pytest.importorskip(engine)
    rng = np.random.default_rng(0)
    mark = '"' if quoted else ""
    cells = rng.choice(["yes", "no", "NA", " yes", "x y"], (9000, 3))
    numbers = rng.choice(["1", "2.5", ""], 9000)
    rows = (f"{mark}{a}{mark},{b},{c},{d}" for (a, b, c), d in zip(cells, numbers, strict=True))
    path = tmp_path / "a.csv"
    path.write_bytes(("a,b,c,d\r\n" + "\r\n".join(rows) + "\r\n").encode())
    monkeypatch.setattr(delimited, "has_parser", lambda: False)
    expected = rj.read(path)
    monkeypatch.setattr(delimited, "has_parser", lambda: True)
    monkeypatch.setattr(delimited, "PIECE_BYTES", 999)
    monkeypatch.setattr(delimited, "LEAST_BYTES", 0)
    monkeypatch.setattr(delimited, "_code_rows", None)  # of the standard library
    found = rj.read(path)
    assert found.domain == expected.domain
    np.testing.assert_array_equal(found.codes, expected.codes)
    chunks = list(rj.read_chunks(path, 2000, domain=expected.domain))
    assert [len(chunk) for chunk in chunks] == [2000] * 4 + [1000]
    np.testing.assert_array_equal(np.vstack([c.codes for c in chunks]), expected.codes)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_fault_far_into_a_file_has_its_line(engine, tmp_path, monkeypatch):
    pytest.importorskip(engine)
    use(monkeypatch, engine, 2**16)
    path = tmp_path / "a.csv"
    path.write_text("a,b\n" + "x,1\n" * 100_000 + "x\n" + "y,2\n" * 10)
    with pytest.raises(ValueError, match="line 100002: 1 cell, but the header"):
        rj.read(path)
    path.write_text("a,b\n" + "x,1\n" * 100_000 + 'y,"2\n' + "y,2\n" * 10)
    with pytest.raises(ValueError, match="line 100012: unexpected end of data"):
        rj.read(path)


@pytest.mark.filterwarnings("ignore:Numbers are cut")
def test_decimal_commas_are_numbers(tmp_path):
    rows = "".join(f"{k / 8:.3f};{'xy'[k % 2]}\n".replace(".", ",") for k in range(2000))
    (tmp_path / "r.csv").write_text("a;b\n" + rows)
    domain = rj.read(tmp_path / "r.csv").domain
    assert domain["a"].kind == "binned"  # before, 2,000 labels
    assert len(domain["a"]) < 40
