"""Find the variables and levels of files in one pass, without keeping their rows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from rejoint.arrays import FloatArray
from rejoint.domain.columns import Numbers, read_column
from rejoint.domain.domain import Domain
from rejoint.records.delimited import (
    TextColumn,
    check_names,
    find_dialect,
    read_blocks,
    typed_column,
    typed_columns,
)
from rejoint.records.encode import Unmatched, read_table, report_inferred
from rejoint.records.files import Source
from rejoint.records.formats import format_of, read_table_blocks
from rejoint.records.frames import Frame, split_column, take_apart
from rejoint.records.infer import MOST, ColumnSummary, read_declarations
from rejoint.records.records import (
    Records,
    as_frame,
    as_part_weight,
    check_undeclared,
)
from rejoint.records.scan import rows_of_part
from rejoint.text import nearest, show

#: What may be declared about columns where no domain is given.
DECLARED = ("kinds", "levels", "bins", "rule")

#: Texts that mean a missing cell.
MISSING = ("", "?", "NA", "N/A", "NaN", "nan", "null", "NULL", "#N/A")


@dataclass(frozen=True)
class FileOptions:
    """How a file is formatted and which columns to read; see :func:`read`."""

    columns: Sequence[str] | None = None
    without: Sequence[str] = ()
    format: str | None = None
    header: bool | Sequence[str] = True
    delimiter: str | None = None
    encoding: str | None = None
    missing: Sequence[str] = MISSING

    def picked(self, source: Source, names: Sequence[str]) -> list[int]:
        """Return which columns to read, in the order of the file."""
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
    """Return the options of the file, and those of the records."""
    own = FileOptions.__dataclass_fields__
    rest = {key: value for key, value in options.items() if key not in own}
    for key in rest:
        if key not in ("domain", "handle_unknown", *DECLARED):
            raise TypeError(f"There is no option {key!r}." + nearest(key, [*own, "domain", "bins"]))
    return FileOptions(**{k: v for k, v in options.items() if k in own}), rest


def records_of(frame: Frame, rest: dict[str, Any], sample_weight: Any) -> Records:
    """Return the records of a whole file, whose weights must not all be zero."""
    if isinstance(sample_weight, str):
        frame, sample_weight = split_weights(frame, sample_weight)
    return Records.of(frame, sample_weight=sample_weight, **rest)


def records_of_part(
    frame: Frame, rest: dict[str, Any], sample_weight: Any, unmatched: Unmatched
) -> Records:
    """Return the records of the next part; collect columns and labels that the domain lacks.

    Examples
    --------
    >>> options, found = {"domain": Domain.of({"a": ["x", "y"]})}, Unmatched()
    >>> for cells in (["x", "z"], ["y", "z"]):
    ...     part = records_of_part(Frame(("a",), [cells], 2), options, None, found)
    >>> part.codes.ravel().tolist(), found.labels["a"].cells
    ([1, -1], 2)
    """
    if isinstance(sample_weight, str):
        frame, sample_weight = split_weights(frame, sample_weight)
    if rest.get("left_out") and frame.names is not None:
        kept = [n for n, name in enumerate(frame.names) if name not in rest["left_out"]]
        names = tuple(frame.names[n] for n in kept)
        frame = Frame(names, [frame.columns[n] for n in kept], frame.rows)
    weight = None
    if sample_weight is not None:
        weight = as_part_weight(sample_weight, frame.rows, unmatched.rows)
    check_undeclared(*(rest.get(key) for key in ("kinds", "levels", "bins")))
    handle_unknown = rest.get("handle_unknown", "missing")
    found = read_table(
        *(frame, rest["domain"], read_declarations(), None, handle_unknown), unmatched=unmatched
    )
    return Records._trusted(*found, weight)


@dataclass
class PartReader:
    """Read the parts of a source as records, in one or more passes, with one report on all parts.

    Parameters
    ----------
    options : dict
        Those of the records, with the domain.
    sample_weight : str, optional
        The column with the weights.
    is_reported : bool
        Whether a pass has ended: columns and labels that the domain does not have are then
        remarked on.
    """

    options: dict[str, Any]
    sample_weight: str | None
    is_reported: bool = False

    def read(self, parts: Iterable[Frame | Records]) -> Iterator[Records]:
        """Make one pass."""
        domain = self.options["domain"]
        handle_unknown = self.options.get("handle_unknown", "missing")
        unmatched = Unmatched()
        for part in parts:
            found = self._encode(part, unmatched)
            if unmatched.labels and handle_unknown == "error":
                unmatched.report(domain, handle_unknown)
            yield found
        if not self.is_reported:
            unmatched.report(domain, handle_unknown)
            self.is_reported = True

    def _encode(self, part: Frame | Records, unmatched: Unmatched) -> Records:
        if isinstance(part, Frame):
            return records_of_part(part, self.options, self.sample_weight, unmatched)
        if part.domain == self.options["domain"]:
            unmatched.rows += len(part)
            return part
        return records_of_part(as_frame(part), self.options, part.sample_weight, unmatched)


def split_weights(frame: Frame, name: str) -> tuple[Frame, FloatArray]:
    """Return the frame without its column of weights, and the weights."""
    rest, raw = split_column(frame, name)
    column = read_column(raw, name)
    if not isinstance(column, Numbers) or (column.missing is not None and column.missing.any()):
        raise ValueError(f"sample_weight: the column {name!r} must hold a number in every row.")
    return rest, column.floats()


def file_frames(
    source: Source, how: FileOptions, size: int | None, domain: Domain | None, weight: Any
) -> Iterator[Frame]:
    """Yield blocks of the file as frames of the selected columns, with the weights."""
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
        # Of a Parquet file only these columns were read.
        picked = range(len(names)) if kind == "parquet" else how.picked(source, names)
        kept = tuple(names[at] for at in picked)
        yield Frame(kept, [frame.columns[at] for at in picked], frame.rows)


def text_blocks(
    source: Source, how: FileOptions, size: int | None
) -> Iterator[tuple[tuple[str, ...], list[TextColumn], int]]:
    """Yield blocks of delimited text, as :func:`read_blocks` does."""
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


#: Rows of a block; fewer where there are many columns.
CHUNK = 100_000

Summaries = dict[str, ColumnSummary]


class Discovered(NamedTuple):
    """The domain of a source, and the columns that it leaves out since they identify rows."""

    domain: Domain
    left_out: tuple[str, ...] = ()


def find_domain_of_files(
    sources: Iterable[Source], how: FileOptions, weight: str | None, declarations: Mapping[str, Any]
) -> Discovered:
    """Find the domain of files in one pass; keep distinct values and their counts, not rows."""
    sources = list(sources)
    parts = (summarize_file(source, how, weight) for source in sources)
    return find_domain_of_summaries(parts, sources[0].name, declarations)


def find_domain_of_frames(
    frames: Iterator[Frame], weight: str | None, declarations: Mapping[str, Any]
) -> Discovered:
    """Find the domain of a sequence of frames.

    Examples
    --------
    >>> frames = [Frame(("a",), [["x", "y"]], 2), Frame(("a",), [["z", None]], 2)]
    >>> find_domain_of_frames(iter(frames), None, {}).domain["a"].levels
    ('x', 'y', 'z')
    """
    return _conclude("The source", summarize_frames(frames, weight), declarations)


def summarize_frames(frames: Iterator[Frame], weight: str | None) -> Summaries:
    """Summarize the columns of some frames, to be combined with other summaries.

    Examples
    --------
    >>> list(summarize_frames(iter([Frame(("a",), [["x", "y"]], 2)]), None))
    ['a']
    """
    seen: Summaries = {}
    _summarize_frames(frames, weight, seen)
    return seen


def summarize_file(source: Source, how: FileOptions, weight: str | None) -> Summaries:
    """Summarize the columns of one file."""
    seen: Summaries = {}
    kind = format_of(source, how.format)
    # A query would have to run twice to find its number of columns.
    size = CHUNK if kind == "duckdb" else min(CHUNK, rows_of_part(_columns(source, how)))
    if kind == "text":
        _summarize_text(source, how, size, weight, seen)
    else:
        _summarize_frames(file_frames(source, how, size, None, weight), weight, seen)
    return seen


def _columns(source: Source, how: FileOptions) -> int:
    """Number of columns of a file."""
    frames = file_frames(source, how, 1, None, None)
    with closing(frames):  # type: ignore[type-var]  # a generator
        return len(next(frames).columns)


def find_domain_of_summaries(
    parts: Iterable[Summaries], source: str, declarations: Mapping[str, Any]
) -> Discovered:
    """Return the domain of all summaries, in the order of the parts."""
    total: Summaries = {}
    for part in parts:
        for name, mine in part.items():
            total.setdefault(name, ColumnSummary(name)).join(mine)
    return _conclude(source, total, declarations)


def _summarize_frames(frames: Iterator[Frame], weight: str | None, seen: Summaries) -> None:
    for frame in frames:
        if not frame.rows:
            continue
        mass = None
        if weight is not None:
            frame, mass = split_weights(frame, weight)
        named = frame.names is not None
        names = frame.names or tuple(f"x{n}" for n in range(len(frame.columns)))
        for name, column in zip(names, frame.columns, strict=True):
            mine = seen.setdefault(name, ColumnSummary(name, named=named))
            mine.add(read_column(column, name), mass)


def _summarize_text(
    source: Source, how: FileOptions, size: int, weight: str | None, seen: Summaries
) -> None:
    """Summarize text; keep all texts, because one that is not a number makes the column text."""
    counts: dict[str, Any] = {}
    columns: dict[str, TextColumn] = {}
    for names, block, rows in text_blocks(source, how, size):
        for name, column in zip(names, block, strict=True):
            found = np.bincount(column.take_codes() + 1, minlength=len(column.texts) + 1)[1:]
            if name == weight or not rows:
                continue
            columns[name] = column
            counts[name] = _added(counts.get(name, np.zeros(0, dtype=np.int64)), found)
            if len(column.texts) > MOST:  # it drops them next
                _summarize_texts(name, column.texts, counts.pop(name), seen)
    for name, count in counts.items():
        _summarize_texts(name, columns[name].texts, count, seen)


def _summarize_texts(name: str, texts: list[str], count: Any, seen: Summaries) -> None:
    column = typed_column(texts, np.arange(len(texts), dtype=np.int32), name, None)
    seen.setdefault(name, ColumnSummary(name)).add(column, None, count)


def _conclude(source: str, seen: Summaries, declarations: Mapping[str, Any]) -> Discovered:
    if not seen:
        raise ValueError(f"{source} has no rows: levels cannot be seen; give a domain.")
    declared = read_declarations(**declarations)
    declared.check(list(seen))
    found = {name: mine.variable(declared.of(name), declared.rule) for name, mine in seen.items()}
    variables = {name: variable for name, variable in found.items() if variable is not None}
    left_out = tuple(name for name in found if name not in variables)
    report_inferred(variables, declared, left_out)
    return Discovered(Domain(tuple(variables.values())), left_out)


def _added(one: Any, other: Any) -> Any:
    """Add counts of values; later blocks may have more values."""
    total = np.zeros(max(len(one), len(other)), dtype=np.int64)
    total[: len(one)] += one
    total[: len(other)] += other
    return total
