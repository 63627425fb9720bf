"""Files other than delimited text: Parquet, Arrow, JSON lines, queries of a database."""

import io
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from rejoint.cost import read_all
from rejoint.io.model_file import SIGNATURE
from rejoint.records.files import Source, read_beginning, read_lines
from rejoint.records.frames import cut_tables
from rejoint.text import cite

#: Cells below which a piece costs more overhead than computation, and the most pieces.
LEAST_PIECE_CELLS, MOST_PIECES = 8_000_000, 1000


class RowGroups(NamedTuple):
    """Rows of each group of a file, and its number of columns."""

    rows: tuple[int, ...]
    columns: int


def row_groups_of(source: Source, given: str | None) -> RowGroups:
    """Return the row groups of a file that can be read separately: those of plain Parquet."""
    if find_spec("pyarrow") and format_of(source, given) == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        # What is packed would be unpacked from its beginning each time.
        with source.open() as file, suppress(pa.ArrowException):  # reading it raises the error
            if isinstance(file, io.BufferedReader):
                head = pq.ParquetFile(file).metadata
                groups = map(head.row_group, range(head.num_row_groups))
                return RowGroups(tuple(g.num_rows for g in groups), head.num_columns)
    return RowGroups((), 0)


def pieces_of(files: Sequence[RowGroups]) -> list[list[range]]:
    """Return neighboring groups of each file, joined until a piece is worth its overhead.

    The pieces depend on the files only, so sums over pieces are reproducible.
    """
    total = sum(sum(file.rows) * file.columns for file in files)
    enough = max(LEAST_PIECE_CELLS, total // MOST_PIECES)
    pieces = []
    for file in files:
        ends, cells = [0], 0
        for last, rows in enumerate(file.rows, 1):
            cells += rows * file.columns
            if cells >= enough or last == len(file.rows):
                ends.append(last)
                cells = 0
        pieces.append([range(*pair) for pair in pairwise(ends)])
    return pieces


#: Function from the names to the positions of the columns to read.
Wanted = Callable[[Sequence[str]], list[int]]

#: Function from a source and a block size (None: all rows in one) to blocks of rows.
Reader = Callable[[Source, int | None], Iterator[Any]]

DUCKDB = "duckdb:"

#: Format by extension; other files are recognized by their content.
SUFFIXES = {
    **dict.fromkeys((".csv", ".tsv", ".tab", ".txt", ".dat", ".data"), "text"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".arrow", ".feather", ".ipc", ".arrows"), "arrow"),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "json"),
}

_WORD = {"csv": "text", "tsv": "text", "feather": "arrow", "jsonl": "json", "ndjson": "json"}
_BUFFER = 2**20

#: Column types of a query that Arrow has with the same meaning.
_PLAIN = {"BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE", "VARCHAR"}


START_BYTES = 512
"""First bytes of a file that tell its format."""


class ModelNotDataError(ValueError):
    """Error raised where a model file was given in place of data."""


def format_of(source: Source, given: str | None) -> str:
    """Return the format: as given, by the name, or by the first bytes."""
    if given is not None:
        known = _WORD.get(given, given)
        if known not in ("text", *READERS):
            names = ", ".join(map(repr, ("text", *READERS)))
            raise ValueError(f"format={cite(given)} is not supported; use one of {names}.")
        return known
    if str(source.path).startswith(DUCKDB):
        return "duckdb"
    by_name = SUFFIXES.get(source.suffix)
    if by_name not in (None, "json"):
        return by_name
    with source.open() as file:
        start = file.read(START_BYTES)
    if SIGNATURE in start:
        raise ModelNotDataError(f"{source.name}: this is a model file, not data.")
    if by_name is not None:
        return by_name
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return "arrow"
    return "json" if start.lstrip().startswith((b"{", b"[{")) else "text"


def read_table_blocks(
    source: Source,
    kind: str,
    size: int | None,
    wanted: Wanted | None = None,
    encoding: str | None = None,
) -> Iterator[Any]:
    """Yield blocks of at most ``size`` rows (None: all rows) in any form that Records accept.

    Of a Parquet file only the ``wanted`` columns are read; JSON lines have an ``encoding``.
    """
    if kind == "parquet":
        return _parquet(source, size, wanted)
    blocks = _json_lines(source, size, encoding) if kind == "json" else READERS[kind](source, size)
    if size is not None:
        return blocks
    every = list(blocks)
    if len(every) != 1:
        raise ValueError(
            f"{source.name}: without a size, the reader of format {cite(kind)} must give all rows "
            f"in one block, not in {len(every)}."
        )
    return iter(every)


def _parquet(source: Source, size: int | None, wanted: Wanted | None = None) -> Iterator[Any]:
    with source.open() as file:
        _check_pyarrow(source, "Parquet")
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            # With a buffer, no column of a row group is in memory as a whole.
            parts = pq.ParquetFile(file, buffer_size=_BUFFER if size else 0)
            names = parts.schema_arrow.names
            picked = names if wanted is None else [names[at] for at in wanted(names)]
            groups = range(parts.num_row_groups) if source.groups is None else source.groups
            plain = None if any("." in name for name in names) else picked  # a dot means a field
            if size:
                batches = parts.iter_batches(size, groups, columns=plain)
            else:
                batches = [parts.read_row_groups(list(groups), columns=plain)]
            for table in cut_tables(batches, parts.schema_arrow, size):
                yield table.select(picked)
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{source.name}: cannot be read as Parquet ({error}).") from error


def rows_of_parquet(sources: Sequence[Source]) -> int | None:
    """Return the number of rows in the metadata of Parquet files; None where there is none."""
    if not find_spec("pyarrow"):
        return None
    import pyarrow.parquet as pq

    total = 0
    for source in sources:
        with source.open() as file:
            total += int(pq.ParquetFile(file).metadata.num_rows)
    return total


def _arrow(source: Source, size: int | None) -> Iterator[Any]:
    _check_pyarrow(source, "Arrow")
    import pyarrow as pa

    with source.open() as file:
        is_file = file.read(6) == b"ARROW1"
        file.seek(0)
        data = file if size else read_all(file, source.name)
        try:
            reader = pa.ipc.open_file(data) if is_file else pa.ipc.open_stream(data)
            batches: Any = reader
            if is_file:
                batches = map(reader.get_batch, range(reader.num_record_batches))
            yield from cut_tables(batches, reader.schema, size)
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{source.name}: cannot be read as Arrow ({error}).") from error


def _check_pyarrow(source: Source, what: str) -> None:
    if not find_spec("pyarrow"):
        raise ImportError(
            f"{source.name}: {what} files are read by pyarrow: pip install 'rejoint[arrow]'."
        )


def _json_lines(
    source: Source, size: int | None, encoding: str | None = None
) -> Iterator[list[dict[str, Any]]]:
    rows = _json_rows(source, read_lines(source, read_beginning(source, encoding).encoding))
    block = list(islice(rows, size or None))
    if not block:
        raise ValueError(f"{source.name} is empty: it has no rows.")
    while block:
        yield block
        block = list(islice(rows, size or None))


def _json_rows(source: Source, lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """Yield blocks of one object per line, or of one list of objects."""
    for number, line in enumerate(lines, 1):
        is_list = number == 1 and line.lstrip().startswith("[")
        where = source.name if is_list else f"{source.name}, line {number}"
        if not line.strip():
            continue
        try:
            row = json.loads(line + "".join(lines) if is_list else line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{where}: no JSON ({error}).") from error
        if is_list and not all(isinstance(each, dict) for each in row):
            raise ValueError(f"{where}: a list of JSON must hold objects only.")
        if not is_list and not isinstance(row, dict):
            must = 'each line must be an object, {"name": value, ...}'
            raise ValueError(f"{where}: a {type(row).__name__}; {must}.")
        yield from row if is_list else [row]


def _duckdb(source: Source, size: int | None) -> Iterator[Any]:
    if not find_spec("duckdb"):
        raise ImportError("duckdb: queries need duckdb: pip install 'rejoint[duckdb]'.")
    import duckdb

    text = str(source.path).removeprefix(DUCKDB).strip()
    file, found, query = text.partition("?")
    if not found or not file or any(c.isspace() for c in file):
        file, query = "", text  # the query itself may contain a question mark
    if not query.strip():
        raise ValueError(
            "duckdb: needs a query, 'duckdb:SELECT ...' or 'duckdb:file.db?SELECT ...'."
        )
    if file and not Path(file).is_file():
        raise FileNotFoundError(f"No database '{file}': check the name and the folder.")
    try:
        with duckdb.connect(file or ":memory:", read_only=bool(file)) as connection:
            rows = connection.sql(query)  # not executed yet
            if rows is None:
                raise ValueError(f"The query gives no rows: {query[:200]}")
            names = [str(name) for name in rows.columns]
            plain = {str(kind) for kind in rows.types} <= _PLAIN
            if size and plain and find_spec("pyarrow"):  # 15 times as fast as lists
                reader = getattr(rows, "to_arrow_reader", None) or rows.fetch_arrow_reader
                batches = reader(size)
                yield from cut_tables(batches, batches.schema, size)
                return
            block = None
            for block in _listed_rows(connection.execute(query), names, size):
                yield block
            if block is None:
                yield {name: [] for name in names}
    except duckdb.Error as error:
        raise ValueError(f"duckdb: {error}") from error  # the error shows the query


def _listed_rows(cursor: Any, names: Sequence[str], size: int | None) -> Iterator[Any]:
    while block := cursor.fetchmany(size) if size else cursor.fetchall():
        yield dict(zip(names, map(list, zip(*block, strict=True)), strict=True))


#: Readers of formats other than delimited text, which has its own options.
READERS: dict[str, Reader] = {
    "parquet": _parquet,
    "arrow": _arrow,
    "json": _json_lines,
    "duckdb": _duckdb,
}

#: Names of the built-in formats.
BUILT_IN = frozenset(("text", *READERS, *_WORD))


def add_format(name: str, reader: Reader, suffixes: Sequence[str] = ()) -> None:
    """Add a file format to ``read``, ``read_chunks``, ``scan`` and the command line.

    Parameters
    ----------
    name : str
        Its name for ``format=`` and ``--format``; a format of this name that was added before is
        replaced.
    reader : callable
        Called as ``reader(source, size)``; yields blocks of at most ``size`` rows in any form that
        :meth:`Records.of` takes, or all rows in one block where ``size`` is None.
        ``source.open()`` opens the file, unpacked, and ``source.name`` is its name for errors.
    suffixes : sequence of str
        File extensions of the format.

    Examples
    --------
    >>> import pathlib, rejoint as rj, tempfile
    >>> def read_letters(source, size):
    ...     with source.open() as file:
    ...         letters = list(file.read().decode().strip())
    ...     for first in range(0, len(letters), size or len(letters)):
    ...         yield {"letter": letters[first:][:size]}
    >>> add_format("letters", read_letters, suffixes=[".letters"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "a.letters")
    ...     _ = path.write_text("abca")
    ...     rj.read(path).domain["letter"].levels
    ('a', 'b', 'c')
    """
    if name in BUILT_IN:
        raise ValueError(f"The format {cite(name)} already exists: choose another name.")
    if isinstance(suffixes, str) or not all(suffix.startswith(".") for suffix in suffixes):
        raise ValueError(f"suffixes must be a list of texts such as '.xyz', got {cite(suffixes)}.")
    READERS[name] = reader
    SUFFIXES.update(dict.fromkeys((suffix.lower() for suffix in suffixes), name))
