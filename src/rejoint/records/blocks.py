"""Blocks: files of any format as frames of the columns that are wanted, some rows at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rejoint.domain import Domain
from rejoint.domain.labels import nearest, show
from rejoint.records.delimited import TextColumn, check_names, read_blocks, typed_columns
from rejoint.records.formats import format_of, read_table_blocks
from rejoint.records.frames import Frame, take_apart
from rejoint.records.records import Records
from rejoint.records.sources import Source
from rejoint.records.text import find_dialect

__all__ = [
    "MISSING",
    "FileOptions",
    "file_frames",
    "records_of",
    "split_options",
    "take_column",
    "text_blocks",
]

#: Texts that are taken for a missing cell.
MISSING = ("", "?", "NA", "N/A", "NaN", "nan", "null", "NULL", "#N/A")


@dataclass(frozen=True)
class FileOptions:
    """How a file is written and what of it is wanted; see :func:`read`."""

    columns: Sequence[str] | None = None
    without: Sequence[str] = ()
    format: str | None = None
    header: bool | Sequence[str] = True
    delimiter: str | None = None
    encoding: str | None = None
    missing: Sequence[str] = MISSING

    def picked(self, source: Source, names: Sequence[str]) -> list[int]:
        """Which columns are wanted, in the order of the file."""
        there = check_names(source, names)
        for name in (*(self.columns or ()), *self.without):
            if name not in names:
                raise KeyError(
                    f"{source.name} has no column {name!r}; it has {show(list(names))}."
                    + nearest(name, names)
                )
        return [
            at
            for at in there
            if (self.columns is None or names[at] in self.columns) and names[at] not in self.without
        ]


def split_options(options: dict[str, Any]) -> tuple[FileOptions, dict[str, Any]]:
    """Options of the file, and those of the records."""
    own = FileOptions.__dataclass_fields__
    rest = {key: value for key, value in options.items() if key not in own}
    for key in rest:
        if key not in ("domain", "kinds", "levels", "bins", "handle_unknown"):
            raise TypeError(f"There is no option {key!r}." + nearest(key, [*own, "domain", "bins"]))
    return FileOptions(**{k: v for k, v in options.items() if k in own}), rest


def records_of(frame: Frame, rest: dict[str, Any], sample_weight: Any) -> Records:
    """The records of a whole file or, where the domain is known, of a block."""
    weight = sample_weight
    if isinstance(sample_weight, str):
        frame, weight = take_column(frame, sample_weight)
        if rest.get("domain") is not None:  # zeros in all of a block are no fault
            return replace(Records.of(frame, **rest), sample_weight=weight)
    return Records.of(frame, sample_weight=weight, **rest)


def take_column(frame: Frame, name: str) -> tuple[Frame, Any]:
    """The frame without its column of weights, and these."""
    from rejoint.domain.columns import Numbers
    from rejoint.domain.series import read_column

    names = list(frame.names or ())
    if name not in names:
        raise KeyError(
            f"sample_weight: there is no column {name!r}; the columns are {show(names)}."
            + nearest(name, names)
        )
    at = names.index(name)
    column = read_column(frame.columns[at], name)
    if not isinstance(column, Numbers) or (column.missing is not None and column.missing.any()):
        raise ValueError(f"sample_weight: the column {name!r} must hold a number in every row.")
    left = [n for n in range(len(names)) if n != at]
    rest = Frame(tuple(names[n] for n in left), [frame.columns[n] for n in left], frame.rows)
    return rest, column.floats()


def file_frames(
    source: Source, how: FileOptions, size: int | None, domain: Domain | None, weight: Any
) -> Iterator[Frame]:
    """Blocks of the file as frames of the columns that are wanted, and the weights."""
    if isinstance(weight, str) and how.columns is not None:
        how = replace(how, columns=[*how.columns, weight])
    kind = format_of(source, how.format)
    if kind == "text":
        for names, columns, rows in text_blocks(source, how, size):
            yield typed_columns(names, columns, rows, domain)
        return
    for block in read_table_blocks(source, kind, size, lambda names: how.picked(source, names)):
        frame = take_apart(block)
        names = frame.names or ()
        # Of Parquet no more was read.
        picked = range(len(names)) if kind == "parquet" else how.picked(source, names)
        kept = tuple(names[at] for at in picked)
        yield Frame(kept, [frame.columns[at] for at in picked], frame.rows)


def text_blocks(
    source: Source, how: FileOptions, size: int | None
) -> Iterator[tuple[tuple[str, ...], list[TextColumn], int]]:
    """Blocks of delimited text, as :func:`read_blocks` gives them."""
    dialect = find_dialect(source, how.delimiter, how.encoding)
    if isinstance(how.missing, str):
        raise TypeError(f"missing must be a list of texts, not the text {how.missing!r}.")
    return read_blocks(
        source,
        dialect,
        header=how.header,
        missing=frozenset(how.missing),
        wanted=lambda names: how.picked(source, names),
        size=size,
    )
