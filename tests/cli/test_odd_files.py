"""Files that are unusual or wrong: read as they are meant, or refused in words."""

import datetime
import os
import threading
import uuid
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rejoint as rj

ROWS = 40


def read(path, text, **options):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return rj.read(path, **options)


@pytest.mark.parametrize("more", ["", "1.5,z\n"])
def test_long_whole_numbers_are_not_merged(tmp_path, more):
    path = tmp_path / "ids.csv"
    text = "id,b\n" + "1234567890123456789,u\n1234567890123456788,v\n" * 20 + more
    levels = read(path, text).domain["id"].levels
    assert {str(level) for level in levels} >= {"1234567890123456789", "1234567890123456788"}
    parts = list(rj.read_chunks(path, size=7))
    counts = sum((part.codes[:, 0] == 0).sum() for part in parts)
    assert counts in (20, 1)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_pipes_are_read_as_files(tmp_path):
    """As of ``rejoint fit <(zcat a.csv.gz)``: what is in a pipe can be read only once."""
    rj.datasets.asia().save(tmp_path / "model.rejoint")
    (tmp_path / "a.csv").write_text("a,b\n" + "x,1\ny,2\n" * 20)
    os.mkfifo(tmp_path / "pipe")
    for name, open_it in (("a.csv", rj.read), ("model.rejoint", rj.load)):
        content = (tmp_path / name).read_bytes()
        writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=[content])
        writer.start()
        assert repr(open_it(tmp_path / "pipe")) == repr(open_it(tmp_path / name))
        writer.join()


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="there are no devices here")
@pytest.mark.parametrize("format", ["text", "json", "arrow", "parquet"])
def test_a_device_without_end_is_refused(format, monkeypatch):
    monkeypatch.setattr("rejoint.cost.machine_memory", lambda: 4e7)  # what is read as a whole
    with pytest.raises((ValueError, MemoryError), match=r"not text|of this machine's|as Parquet"):
        rj.read("/dev/zero", format=format)
    with pytest.raises(ValueError, match=r"zero bytes|no table"):
        rj.Marginals.read("/dev/zero")
    with pytest.raises(ValueError, match="not a rejoint model"):
        rj.load("/dev/zero")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
@pytest.mark.parametrize("reader", [rj.read, rj.load, rj.Marginals.read])
def test_a_pipe_without_end_is_refused(tmp_path, monkeypatch, reader):
    monkeypatch.setattr("rejoint.cost.machine_memory", lambda: 4e7)
    os.mkfifo(tmp_path / "pipe")

    def write():
        with suppress(BrokenPipeError), open(tmp_path / "pipe", "wb") as file:
            while True:
                file.write(b"{x,1\n" * 1000)

    writer = threading.Thread(target=write)
    writer.start()
    with pytest.raises(MemoryError, match=r"pipe has more than 10 MB, which is 25% of this mach"):
        reader(tmp_path / "pipe")
    writer.join()


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_line_without_end_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.setattr("rejoint.records.files.MOST_LINE", 10**6)
    with pytest.raises(ValueError, match=r"line 1 has 1,000,000 characters or more: it is not"):
        read(tmp_path / name, "[1, " * 10**6)


def test_closed_standard_input_is_an_error_in_words(monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(ValueError, match="Standard input is closed: give the name of a file"):
        rj.read("-")


def test_numbers_too_large_for_a_float_are_labels(tmp_path):
    text = "a,b\n" + ("9" * 400 + ",u\n1e999,v\n") * 20
    assert read(tmp_path / "a.csv", text).domain["a"].levels == ("1e999", "9" * 400)


def test_long_cells_are_read(tmp_path):
    text = "a,b\n" + "x,y\n" * 30 + "x," + "z" * 200_000 + "\n"
    assert len(read(tmp_path / "a.csv", text).domain["b"].levels[1]) == 200_000


ODD = {
    "date": [datetime.date(2020, 1, 1 + i % 28) for i in range(ROWS)],
    "time": [datetime.time(i % 24) for i in range(ROWS)],
    "list": [[1, i % 3] for i in range(ROWS)],
    "struct": [{"k": i % 3} for i in range(ROWS)],
    "binary": [bytes([200 + i % 3]) for i in range(ROWS)],
}


@pytest.mark.parametrize("kind", ODD)
def test_columns_that_are_no_labels_are_left_out_or_text(run, world, kind):
    pq.write_table(pa.table({"a": ["x", "y"] * 20, "odd": ODD[kind]}), "odd.parquet")
    done = run("fit", "odd.parquet", "-o", "odd.rejoint")
    assert done.exit_code == 0
    left_out = "left out: 'odd': values that cannot be levels" in done.stderr
    assert left_out == (kind in ("list", "struct", "binary"))


def test_uuids_are_texts(tmp_path):
    cells = [uuid.UUID(int=i % 3).bytes for i in range(ROWS)]
    pq.write_table(pa.table({"a": pa.array(cells, pa.uuid())}), tmp_path / "a.parquet")
    assert rj.read(tmp_path / "a.parquet").domain["a"].levels[1] == str(uuid.UUID(int=1))


def test_tables_of_a_parquet_file_without_rows(run, world):
    empty = pa.array([], pa.string())
    pq.write_table(pa.table({"a": empty, "b": empty}), "none.parquet")
    done = run("tables", "none.parquet", "-o", "none")
    assert done.exit_code == 1
    assert "none.parquet has no rows" in done.stderr


LINES = '{"a": "köln", "b": "x"}\n{"a": "bonn", "b": "y"}\n' * 5


@pytest.mark.parametrize(("used", "told"), [("utf-16", None), ("latin-1", "latin-1")])
def test_json_lines_have_an_encoding(tmp_path, used, told):
    records = read(tmp_path / "a.jsonl", LINES.encode(used), encoding=told)
    assert records.domain["a"].levels == ("bonn", "köln")


def test_encoding_errors_name_file_and_encoding(run, world):
    with open("bad.jsonl", "wb") as file:
        file.write(b'{"a": "x"}\n' * 100_000 + "köln".encode("latin-1"))
    done = run("fit", "bad.jsonl", "-o", "bad.rejoint")
    assert "bad.jsonl, after line " in done.stderr
    assert "not utf-8" in done.stderr
    assert "--encoding" in done.stderr


@pytest.mark.parametrize("line", ['{"a": "\\ud800", "b": 1}\n', '{"\\ud800": "x", "b": 1}\n'])
def test_half_characters_are_refused_before_the_fit(tmp_path, line):
    with pytest.raises(ValueError, match="half of a character"):
        read(tmp_path / "a.jsonl", (line + '{"a": "y", "b": 2}\n') * 5)


def test_names_of_files_may_have_any_bytes(run, world):
    name = os.fsdecode(b"b\xffd.csv")
    with open(name, "w") as file:
        file.write("a,b\nx,y\nu,v\n" * 10)
    done = run("fit", name, "-o", "any.rejoint", "--rank", 1, "--solver", "ml")
    assert done.exit_code == 0, done.stderr
    assert rj.io.read_saved("any.rejoint").notes["source"] == "b\ufffdd.csv"


def test_a_set_is_no_column():
    with pytest.raises(TypeError, match="not a set, whose values belong to no row"):
        rj.Records.of({"a": {1, 2}, "b": [1, 2]})
