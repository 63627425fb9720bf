"""The catalog: where every data set comes from, its checksums, and how it is read.

``catalog.json`` lists the tables: the checksum of the packed file, public files with theirs, and
the reader with its options. Sets without files were cut from a pool of six releases.
"""

import csv
import gzip
import io
import json
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from rejoint.datasets.fetch import (
    FetchError,
    SourceFile,
    fetch_file,
    offline_advice,
    read_data_folder,
)
from rejoint.pmf.to_frame import columns_to_frame
from rejoint.records.frames import choose_backend

Columns = dict[str, list[Any]]
Backend = Literal["pandas", "polars", "pyarrow", "dict"]
Rows = list[list[str]]


def read_packed(content: bytes) -> Columns:
    r"""Columns of a compressed CSV file with a header; empty fields are missing.

    Examples
    --------
    >>> import gzip
    >>> read_packed(gzip.compress(b"a,b\nx,1\n,2\n"))
    {'a': ['x', None], 'b': [1, 2]}
    """
    return _read_csv(gzip.decompress(content).decode())


def read_member(content: bytes, member: str) -> Columns:
    """Columns of one CSV file with a header within a zip archive."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return _read_csv(archive.read(member).decode())


def read_lines(content: bytes, header: Sequence[str], separator: str | None = ",") -> Columns:
    r"""Columns of a file without a header, one row in each line; ``?`` is missing.

    Examples
    --------
    >>> read_lines(b"x, 1\n?, 2\n\n", ["a", "b"])
    {'a': ['x', None], 'b': [1, 2]}
    """
    return _to_columns(header, _split_lines(content, separator))


def read_adult(train: bytes, test: bytes, header: Sequence[str]) -> Columns:
    """Both parts of Adult: the test part has a comment in its first line and dots after labels."""
    rows = [[*row, "train"] for row in _split_lines(train, ",")]
    rows += [[*row[:-1], row[-1].rstrip("."), "test"] for row in _split_lines(test, ",")]
    return _to_columns(header, rows)


def _parse_cells(cells: Iterable[str]) -> list[Any]:
    """Cells as integers if all are, as numbers if all are, else as text; empty is None.

    Examples
    --------
    >>> _parse_cells(["1", "", "3"]), _parse_cells(["1", "2.5"]), _parse_cells(["1", "more"])
    ([1, None, 3], [1.0, 2.5], ['1', 'more'])
    """
    cells = list(cells)
    for kind in (int, float):
        try:
            return [kind(cell) if cell else None for cell in cells]
        except ValueError:
            continue
    return [cell or None for cell in cells]


def as_frame(columns: Columns, backend: str | None) -> Any:
    """Columns as a frame of the library asked for, or as the dict itself.

    Examples
    --------
    >>> as_frame({"a": ["x", None]}, "dict")
    {'a': ['x', None]}
    """
    if backend == "dict" or (backend is None and not any(map(find_spec, get_args(Backend)[:3]))):
        return columns
    return columns_to_frame(columns, choose_backend(backend))


def _read_csv(text: str) -> Columns:
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    return _to_columns(header, rows)


def _split_lines(content: bytes, separator: str | None) -> Rows:
    lines = [line for line in content.decode().splitlines() if line and not line.startswith("|")]
    rows = [[cell.strip() for cell in line.split(separator)] for line in lines]
    return [["" if cell == "?" else cell for cell in row] for row in rows]


def _to_columns(header: Sequence[str], rows: Rows) -> Columns:
    return dict(zip(header, map(_parse_cells, zip(*rows, strict=True)), strict=True))


class CatalogEntry(NamedTuple):
    """A table: the checksum of its packed file, its public files, and how those are read.

    Examples
    --------
    >>> CATALOG["car"].sources[0].name
    'car.data'
    """

    sha256: str
    sources: tuple[SourceFile, ...] = ()
    read: Callable[..., Columns] = read_packed


def load_columns(name: str, catalog: Mapping[str, CatalogEntry] | None = None) -> Columns:
    """Columns of a table: from the data folder, the cache or the public source.

    Parameters
    ----------
    name : str
        Name of the packed file without its ending.
    catalog : mapping, optional
        Where the name is looked up.
    """
    entry = (CATALOG if catalog is None else catalog)[name]
    file = f"{name}.csv.gz"
    packed = read_data_folder(file, entry.sha256)
    if packed is not None:
        return read_packed(packed)
    if not entry.sources:
        raise FetchError(
            f"'{file}' was put together from several releases and has no public source of its "
            f"own. {offline_advice(file)}"
        )
    return entry.read(*(fetch_file(source, file) for source in entry.sources))


_READERS: dict[str, Callable[..., Columns]] = {
    "adult": read_adult,
    "lines": read_lines,
    "member": read_member,
    "packed": read_packed,
}
_ROOTS = {
    "UCI": "https://archive.ics.uci.edu/ml/machine-learning-databases/",
    "GROUPLENS": "https://files.grouplens.org/datasets/movielens/",
}


def _entry(
    sha256: str,
    files: Mapping[str, str] | None = None,
    source: str = "UCI",
    reader: str = "packed",
    **options: Any,
) -> CatalogEntry:
    """Make an entry; what has no public files is only in a data folder."""
    mirror = f"REJOINT_{source}_URL"
    pairs = (files or {}).items()
    sources = (SourceFile(path, checksum, _ROOTS[source], mirror) for path, checksum in pairs)
    return CatalogEntry(sha256, tuple(sources), partial(_READERS[reader], **options))


_CATALOG = json.loads(Path(__file__).with_name("catalog.json").read_text("utf-8"))
CATALOG = {name: _entry(**plain) for name, plain in _CATALOG["tables"].items()}
PAPER_RECIPES: dict[str, Mapping[str, Any]] = _CATALOG["paper_sets"]

MOVIELENS = tuple(
    name.removeprefix("movielens_") for name in CATALOG if name.startswith("movielens_")
)
