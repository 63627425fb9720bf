"""Row groups of Parquet files as pieces."""

import gzip

import numpy as np
import pytest

import rejoint as rj
from rejoint.records import formats as row_groups
from rejoint.records.files import Source
from rejoint.records.formats import RowGroups, pieces_of, row_groups_of
from rejoint.records.read import FileOptions, file_frames

pytest.importorskip("pyarrow")


@pytest.fixture
def path(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"a": np.arange(100) % 7, "b": np.arange(100) % 3})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=15)
    return tmp_path / "a.parquet"


def test_groups_are_those_of_the_file(path, tmp_path):
    assert row_groups_of(Source(path), None) == RowGroups((15,) * 6 + (10,), 2)
    packed = tmp_path / "a.parquet.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert row_groups_of(Source(packed), None).rows == ()  # all of it would be unpacked each time
    text = tmp_path / "a.csv"
    text.write_text("a\n1\n")
    assert row_groups_of(Source(text), None).rows == ()


@pytest.mark.parametrize("size", [4, 40, None])
def test_pieces_make_up_the_file(path, size, monkeypatch):
    monkeypatch.setattr(row_groups, "LEAST_PIECE_CELLS", 50)  # cells: two groups
    ((*pieces,),) = pieces_of([row_groups_of(Source(path), None)])
    assert pieces == [range(0, 2), range(2, 4), range(4, 6), range(6, 7)]
    found = [
        np.asarray(frame.columns[0])
        for piece in pieces
        for frame in file_frames(Source(path, piece), FileOptions(), size)
    ]
    np.testing.assert_array_equal(np.concatenate(found), np.arange(100) % 7)


def test_pieces_are_not_too_many():
    tiny = RowGroups((1,) * 50_000, columns=10**6)
    # A thousand, but for one that each file may have left over.
    assert sum(map(len, pieces_of([tiny] * 3))) <= row_groups.MOST_PIECES + 3
    assert pieces_of([RowGroups((), 5)]) == [[]]


def test_what_is_no_parquet_is_told_by_reading_it(tmp_path):
    spoilt = tmp_path / "a.parquet"
    spoilt.write_bytes(b"PAR1 and no more")
    assert row_groups_of(Source(spoilt), None).rows == ()
    with pytest.raises(ValueError, match="cannot be read as Parquet"):
        rj.read(spoilt)
