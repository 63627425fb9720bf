"""Rows and models written to a file or to stdout; a file is there whole or not at all."""

import csv
import gzip
import io
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from math import isfinite
from pathlib import PurePath
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rejoint.pmf import LowRankPMF
    from rejoint.records import Records

__all__ = [
    "check_place",
    "echo_json",
    "opened",
    "plain",
    "record_rows",
    "write_rows",
    "write_saved",
]

_BLOCK = 10_000  # rows written at once


@contextmanager
def opened(output: str | None) -> Iterator[IO[bytes]]:
    """Where to write: stdout (None or ``-``), or a file, which appears when all of it is there."""
    from rejoint.io import whole_file

    if output is None or output == "-":
        stream = sys.stdout.buffer
        yield stream
        stream.flush()
        return
    with whole_file(output) as file:
        yield file


def check_place(output: str) -> None:
    """An error now, and not after a long fit, where a file cannot be written."""
    from rejoint.io.places import place_of

    if output != "-":
        place_of(output)


def write_saved(output: str, pmf: "LowRankPMF", notes: Mapping[str, Any]) -> int:
    """Write a model with its notes and draws; the number of bytes."""
    from rejoint.io import write_open

    made = io.BytesIO()
    text = output.lower().endswith(".json")
    write_open(made, pmf.weights, pmf.factors, pmf.domain, notes, pmf.draws.block, plain=text)
    with opened(output) as file:
        file.write(made.getbuffer())
    return len(made.getbuffer())


def write_rows(
    output: str | None,
    names: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    as_json: bool = False,
) -> None:
    """Write rows as the name of the file says: CSV, TSV, JSON lines, Parquet, Arrow; gzipped."""
    suffixes = [suffix.lower() for suffix in PurePath(output or "").suffixes]
    packed = suffixes[-1:] == [".gz"]
    kind = (suffixes[:-1] if packed else suffixes)[-1:] or [""]
    with opened(output) as file:
        if kind[0] in (".parquet", ".pq", ".arrow", ".feather"):
            _write_arrow(file, names, rows, parquet=kind[0] in (".parquet", ".pq"))
            return
        # No time in the header: the same rows are the same bytes.
        target = gzip.GzipFile(fileobj=file, mode="wb", mtime=0) if packed else file
        lines = as_json or kind[0] in (".json", ".jsonl", ".ndjson")
        make = _json_lines if lines else _csv_lines("\t" if kind[0] == ".tsv" else ",")
        for text in make(names, rows):
            target.write(text.encode())  # type: ignore[attr-defined, unused-ignore]
        if packed:
            target.close()


def _json_lines(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    for row in rows:
        cells = {name: plain(cell) for name, cell in zip(names, row, strict=True)}
        yield json.dumps(cells, ensure_ascii=False, allow_nan=False) + "\n"


def _csv_lines(delimiter: str) -> Any:
    def make(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
        left = iter(rows)
        block: list[Sequence[Any]] = [names]
        while block:
            text = io.StringIO()
            writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
            writer.writerows(block)
            yield text.getvalue()
            block = list(islice(left, _BLOCK))

    return make


def _write_arrow(
    file: IO[bytes], names: Sequence[str], rows: Iterable[Sequence[Any]], *, parquet: bool
) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise ImportError(
            "Parquet and Arrow files are written by pyarrow: pip install 'rejoint[arrow]', or name "
            "the file .csv."
        ) from None
    columns = list(zip(*([plain(cell) for cell in row] for row in rows), strict=True))
    columns = columns or [()] * len(names)
    table = pa.table([pa.array(_alike(column)) for column in columns], names=list(names))
    if parquet:
        pq.write_table(table, file)
        return
    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def _alike(column: Sequence[Any]) -> list[Any]:
    """Cells of one type: text, where numbers and text meet."""
    kinds = {type(cell) for cell in column if cell is not None}
    if len(kinds) < 2 or kinds <= {int, float}:
        return list(column)
    return [None if cell is None else str(cell) for cell in column]


def plain(value: Any) -> Any:
    """A value as JSON can hold it: bins as text, what is no finite number as None.

    Examples
    --------
    >>> from rejoint import Bin
    >>> plain({"age": Bin(0, 18), ("a", "b"): float("nan")})
    {'age': '[0, 18)', 'a, b': None}
    """
    if isinstance(value, Mapping):
        texts = (", ".join(map(str, k)) if isinstance(k, tuple) else str(k) for k in value)
        return dict(zip(texts, map(plain, value.values()), strict=True))
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return float(value) if isfinite(value) else None
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if type(value).__name__ == "Bin":
        return str(value)
    if isinstance(value, Sequence):
        return [plain(part) for part in value]
    return str(value)


def echo_json(value: Any) -> None:
    """Write one JSON document to stdout."""
    with opened(None) as file:
        file.write((json.dumps(plain(value), ensure_ascii=False, indent=1) + "\n").encode())


def record_rows(records: "Records", numbers: bool = False) -> Iterator[list[Any]]:
    """Rows of labels, None where empty; bins as text, or as the numbers that stand for them."""
    columns = []
    for variable in records.domain:
        binned = variable.kind == "binned"
        levels = variable.representatives if binned and numbers else variable.levels
        columns.append([*(str(x) if binned and not numbers else x for x in levels or ()), None])
    for row in records.codes.tolist():
        yield [levels[code] for levels, code in zip(columns, row, strict=True)]
