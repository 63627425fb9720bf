"""Records that are gone through part by part: the same as all at once, whatever the source."""

import gzip
import json
import sys
import warnings

import numpy as np
import pytest

import rejoint as rj
from rejoint.records import infer as sightings

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

ROWS = 500


@pytest.fixture(scope="module")
def table():
    """Text, whole numbers, numbers to be binned, booleans, a declared order; holes; weights."""
    rng = np.random.default_rng(0)
    hole = rng.random((5, ROWS)) < 0.2
    sizes = pa.array(rng.choice(["small", "large", "middle"], ROWS), mask=hole[4])
    return pa.table(
        {
            "city": pa.array(rng.choice(["York", "Bath", "Ely"], ROWS), mask=hole[0]),
            "rooms": pa.array(rng.integers(1, 6, ROWS), mask=hole[1]),
            "rent": pa.array(rng.normal(900, 200, ROWS).round(2), mask=hole[2]),
            "lift": pa.array(rng.random(ROWS) < 0.5, mask=hole[3]),
            "size": sizes.dictionary_encode(),
            "times": rng.integers(0, 4, ROWS).astype(np.float64),
        }
    )


@pytest.fixture(scope="module")
def places(table, tmp_path_factory):
    """The same rows in files of all formats."""
    folder = tmp_path_factory.mktemp("scan")
    plain = table.set_column(4, "size", table["size"].cast(pa.string()))
    pq.write_table(table, folder / "a.parquet", row_group_size=64)
    with pa.ipc.new_file(folder / "a.arrow", table.schema) as file:
        file.write_table(table, max_chunksize=64)
    with pa.ipc.new_stream(folder / "a.arrows", table.schema) as file:
        file.write_table(table, max_chunksize=64)
    rows = plain.to_pylist()
    with gzip.open(folder / "a.jsonl.gz", "wt") as file:
        file.writelines(
            json.dumps({k: v for k, v in row.items() if v is not None}) + "\n" for row in rows
        )
    cells = [["" if value is None else str(value) for value in row.values()] for row in rows]
    text = "\n".join(map(",".join, [list(rows[0]), *cells]))
    (folder / "a.csv").write_text(text + "\n")
    return folder


FORMATS = ["a.parquet", "a.arrow", "a.arrows", "a.jsonl.gz", "a.csv"]


def assert_same(scan, whole):
    assert scan.names == whole.names
    for mine, other in zip(scan.domain, whole.domain, strict=True):
        assert (mine.levels, mine.kind) == (other.levels, other.kind)
        if other.representatives is not None:  # means of bins, summed in another order
            np.testing.assert_allclose(mine.representatives, other.representatives, rtol=1e-12)
    parts = list(scan)
    assert max(map(len, parts)) <= 70
    np.testing.assert_array_equal(np.concatenate([p.codes for p in parts]), whole.codes)
    if whole.sample_weight is not None:
        weight = np.concatenate([p.sample_weight for p in parts])
        np.testing.assert_array_equal(weight, whole.sample_weight)


@pytest.mark.filterwarnings("ignore::rejoint.Remark")  # rent is binned by rule
@pytest.mark.parametrize("name", FORMATS)
def test_parts_are_the_whole(places, name):
    scan = rj.scan(places / name, size=70, without=["times"])
    assert_same(scan, rj.read(places / name, without=["times"]))


@pytest.mark.filterwarnings("ignore::rejoint.Remark")
@pytest.mark.parametrize("name", ["a.parquet", "a.csv"])
def test_weights(places, name):
    whole = rj.read(places / name, sample_weight="times", bins={"rent": [0, 800, 1000, 9000]})
    scan = rj.scan(places / name, size=70, sample_weight="times", domain=whole.domain)
    assert_same(scan, whole)
    counted = rj.Marginals.count(scan, order=2)
    # Sums of whole numbers: exact in any order.
    np.testing.assert_array_equal(counted.flat, rj.Marginals.count(whole, order=2).flat)


@pytest.mark.filterwarnings("ignore::rejoint.Remark")
def test_queries(places):
    duckdb = pytest.importorskip("duckdb")
    assert duckdb
    file = str(places / "a.parquet")
    for query in (
        f"SELECT city, rooms, rent, lift FROM '{file}'",
        f"SELECT sum(rooms) s, city FROM '{file}' GROUP BY city, times",
    ):
        scan = rj.scan(f"duckdb:{query} ORDER BY ALL", size=70)
        assert_same(scan, rj.read(f"duckdb:{query} ORDER BY ALL"))


@pytest.mark.filterwarnings("ignore::rejoint.Remark")
def test_streams_functions_and_records(table):
    table = table.drop_columns(["times"])
    whole = rj.Records.of(table)
    chunks = [table.slice(start, 70) for start in range(0, ROWS, 70)]
    assert_same(rj.scan(table, size=70), whole)
    assert_same(rj.scan(chunks), whole)
    assert_same(rj.scan(lambda: iter(chunks)), whole)
    assert_same(
        rj.scan(lambda: pa.RecordBatchReader.from_batches(table.schema, table.to_batches(70))),
        whole,
    )
    assert_same(rj.scan(whole, size=70), whole)
    assert_same(rj.scan(lambda: whole.chunks(70)), whole)
    with pytest.raises(TypeError, match=r"iterated only once: give a function that makes it again"):
        rj.scan(iter(chunks))
    with pytest.raises(TypeError, match=r"scan takes a path, .* not a int\. For data in memory"):
        rj.scan(3)


@pytest.mark.filterwarnings("ignore::rejoint.Remark")
def test_folders_and_patterns(places, tmp_path, table):
    table = table.drop_columns(["times"])
    (tmp_path / "deep").mkdir()
    pq.write_table(table.slice(0, 300), tmp_path / "deep" / "1.parquet")
    pq.write_table(table.slice(300), tmp_path / "deep" / "2.parquet")
    (tmp_path / "deep" / "_SUCCESS").write_text("")
    whole = rj.Records.of(table)
    for source in (
        tmp_path,
        f"{tmp_path}/deep/*.parquet",
        [tmp_path / "deep" / "1.parquet", tmp_path / "deep" / "2.parquet"],
    ):
        assert_same(rj.scan(source, size=70), whole)
    with pytest.raises(FileNotFoundError, match="There is no data file in"):
        rj.scan(tmp_path / "deep" / "*.csv")


@pytest.mark.filterwarnings("ignore::rejoint.Remark")
@pytest.mark.parametrize("weight", [None, "times"])
def test_packs(places, tmp_path, weight):
    scan = rj.scan(places / "a.parquet", size=70, sample_weight=weight)
    packed = scan.pack(tmp_path / "pack")
    again = rj.scan(tmp_path / "pack", size=70)
    assert (packed.rows, packed.quick, again.stamp) == (ROWS, True, packed.stamp)
    assert_same(again, rj.read(places / "a.parquet", sample_weight=weight, domain=scan.domain))
    with pytest.raises(FileExistsError, match="it contains other files; choose a new folder"):
        scan.pack(tmp_path / "pack")
    with open(tmp_path / "pack" / "codes.bin", "ab") as file:
        file.write(b"x")
    with pytest.raises(ValueError, match=r"damaged: codes.bin does not have 500 rows"):
        rj.scan(tmp_path / "pack")


@pytest.mark.filterwarnings("ignore::rejoint.Remark")
def test_packs_of_many_levels(tmp_path):
    for levels, width in ((127, 1), (128, 2), (40_000, 4)):
        records = rj.Records(rj.Domain.of({"a": levels}), np.array([[levels - 1], [-1]]))
        packed = rj.scan(records).pack(tmp_path / str(levels))
        assert (tmp_path / str(levels) / "codes.bin").stat().st_size == 2 * width
        np.testing.assert_array_equal(next(iter(packed)).codes, records.codes)


def test_packs_of_wider_codes_than_needed_open(tmp_path):
    records = rj.Records(rj.Domain.of({"a": 3}), np.array([[2], [-1], [0]]))
    rj.scan(records).pack(tmp_path / "pack")
    records.codes.astype("<i2").tofile(tmp_path / "pack" / "codes.bin")
    meta = tmp_path / "pack" / "meta.json"
    meta.write_text(meta.read_text().replace('"|i1"', '"<i2"'))
    (part,) = rj.scan(tmp_path / "pack")
    assert part.codes.dtype == records.codes.dtype
    np.testing.assert_array_equal(part.codes, records.codes)


def test_more_distinct_numbers_than_are_kept(tmp_path, monkeypatch):
    # Bins of a sample of 2,000 of 20,000 numbers: shares off by sqrt(.1 * .9 / 2000) = .007.
    monkeypatch.setattr(sightings, "MOST_DISTINCT", 2000)
    rng = np.random.default_rng(0)
    values = rng.normal(size=20_000)
    (tmp_path / "a.csv").write_text("a\n" + "\n".join(map(repr, values.tolist())) + "\n")
    pq.write_table(pa.table({"a": values}), tmp_path / "a.parquet")
    monkeypatch.setattr(sys.modules["rejoint.records.read"], "rows_of_part", lambda _: 5000)
    for name in ("a.csv", "a.parquet"):
        with pytest.warns(rj.Remark, match="quantile bins"):
            scan = rj.scan(tmp_path / name, size=5000)
        shares = rj.Marginals.count(scan, order=1)["a"] / len(values)
        assert len(shares) == 25
        np.testing.assert_allclose(shares, 0.04, atol=0.02)
    with pytest.raises(
        ValueError, match=r"more than 2,000 different numbers, which can only be binned"
    ):
        rj.scan(tmp_path / "a.parquet", kinds={"a": "nominal"})
    texts = [f"id {k}" for k in range(3000)]
    pq.write_table(pa.table({"a": texts}), tmp_path / "b.parquet")
    days = np.arange("1990-01-01T00:00", "2000-01-01", 60 * 14, dtype="datetime64[m]")[:3000]
    table = {"a": texts, "day": days.astype("M8[us]"), "b": ["x", "y", "y"] * 1000}
    pq.write_table(pa.table(table), tmp_path / "b.parquet")
    with pytest.warns(rj.Remark, match="left out: 'day' .* dates .*; 'a': free text"):
        assert rj.scan(tmp_path / "b.parquet", size=1000).names == ("b",)
    scan = rj.scan(tmp_path / "b.parquet", kinds={"day": "year"}, columns=["day"])
    assert scan.domain["day"].levels == tuple(range(1990, 1995))
    with pytest.raises(ValueError, match="more than 2,000 different texts, which cannot be levels"):
        rj.scan(tmp_path / "b.parquet", kinds={"a": "nominal"})


def test_wishes(places):
    scan = rj.scan(places / "a.csv", columns=["rooms", "city"], kinds={"rooms": "ordinal"})
    assert [(v.name, v.kind) for v in scan.domain] == [("city", "nominal"), ("rooms", "ordinal")]
    with pytest.raises(KeyError, match="there is no 'room'; the columns are 'city'"):
        rj.scan(places / "a.csv", columns=["city"], kinds={"room": "ordinal"})
    with pytest.raises(TypeError, match="apply to files only: chunks are taken whole"):
        rj.scan(lambda: iter([]), columns=["a"])
    with pytest.raises(ValueError, match="gives no chunks"):
        rj.scan(lambda: iter([]))
    with pytest.raises(ValueError, match="A part must have at least one row"):
        rj.scan(places / "a.csv", size=0)
    with pytest.raises(ValueError, match="A Scan has its domain and weights"):
        rj.Marginals.count(scan, order=1, domain=scan.domain)


def test_labels_declared_in_some_parts_only():
    frames = [{"a": ["x", "y"]}, {"a": [1, 2]}, {"a": [None, None]}]
    assert rj.scan(lambda: iter(frames)).domain["a"].levels == (1, 2, "x", "y")


def test_narrow_floats_over_parts():
    frames = [{"a": np.array([0.1, 0.2], np.float32)}, {"a": np.array([1.0, 2.0], np.float32)}]
    assert rj.scan(lambda: iter(frames)).domain["a"].levels == (0.1, 0.2, 1.0, 2.0)


class TestReportOfAllParts:
    DOMAIN = rj.Domain.of({"a": ["x", "y"], "b": ["u", "v"]})
    CHUNKS = (
        {"b": ["u", "?"], "c": [1, 2]},
        {"a": ["z", "x"], "b": ["u", "u"], "d": [1, 2]},
        {"a": ["w", "z"], "b": ["?", "v"], "c": [1, 2]},
    )

    def remarks(self, scan):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert [len(part) for part in scan] == [2, 2, 2]
        return [str(w.message) for w in caught]

    def test_the_first_whole_pass_reports_once(self):
        scan = rj.scan(lambda: iter(self.CHUNKS), domain=self.DOMAIN)
        next(iter(scan))
        assert self.remarks(scan) == [
            "Ignored columns, which are not in the domain: 'c', 'd'.",
            "Variable 'a': 3 cells with labels that are not levels, treated as missing: 'z', 'w'. "
            "Variable 'b': 2 cells with labels that are not levels, treated as missing: '?'.",
        ]
        assert self.remarks(scan) == []

    def test_records_of_other_domains_are_parts_like_frames(self):
        records = [rj.Records.of(chunk) for chunk in self.CHUNKS]
        said = self.remarks(rj.scan(lambda: iter(records), domain=self.DOMAIN))
        assert said == self.remarks(rj.scan(lambda: iter(self.CHUNKS), domain=self.DOMAIN))
        strict = rj.scan(lambda: iter(records), domain=self.DOMAIN, handle_unknown="error")
        wrong = pytest.raises(ValueError, match="Variable 'b', row 1: level")
        with pytest.warns(rj.Remark, match="not in the domain: 'c'"), wrong:
            list(strict)

    def test_many_labels_are_not_all_kept(self, monkeypatch):
        monkeypatch.setattr("rejoint.domain.variable.MOST_UNKNOWN", 7)
        chunks = [{"a": [f"{n}", f"{n + 1}", "x"]} for n in range(20)]
        scan = rj.scan(lambda: iter(chunks), domain=rj.Domain.of({"a": ["x"]}))
        with pytest.warns(rj.Remark, match=r"40 cells .*, '5', \.\.\. \(more than 7 in all\)"):
            list(scan)

    def test_a_bad_weight_is_named_by_its_row_of_all(self):
        chunks = [{"a": ["x", "y"], "w": [1.0, 2.0]}, {"a": ["x", "y"], "w": [1.0, -1.0]}]
        scan = rj.scan(
            lambda: iter(chunks), domain=rj.Domain.of({"a": ["x", "y"]}), sample_weight="w"
        )
        with pytest.raises(ValueError, match="row 3 has -1"):
            list(scan)

    def test_tables_of_weights_that_are_all_zero_are_refused(self):
        chunks = [{"a": ["x", "y"], "w": [0.0, 0.0]}] * 2
        with pytest.raises(ValueError, match="sample_weight is zero in every row"):
            rj.Marginals.count(rj.scan(lambda: iter(chunks), sample_weight="w"), order=1)
        empty = rj.scan(lambda: iter([{"a": [None]}]), domain=rj.Domain.of({"a": 2}))
        assert rj.Marginals.count(empty, order=1)["a"].tolist() == [0.0, 0.0]
