"""Find the variables and levels of files in one pass, without keeping their rows."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from rejoint.arrays import Codes
from rejoint.records.delimited import check_names, find_dialect, read_blocks
from rejoint.records.empty_cells import (
    MOST_ROWS,
    add_missing_levels,
    add_not_applicable,
    fill_empty,
    sample_rows,
)
from rejoint.records.encode import Discovered, Unmatched, infer_domain, read_table, summarize
from rejoint.records.files import Source
from rejoint.records.formats import format_of, read_table_blocks
from rejoint.records.frames import Frame, take_apart
from rejoint.records.infer import ColumnSummary, read_declarations
from rejoint.records.records import Records, as_frame, check_undeclared
from rejoint.records.scan import rows_of_part
from rejoint.records.survey_design import (
    NO_WEIGHTS,
    DesignSums,
    RowWeights,
    SurveyDesign,
    WeightArguments,
)
from rejoint.text import cite, nearest, show

#: What may be declared about columns where no domain is given.
DECLARED = ("kinds", "levels", "bins", "rule", "not_applicable", "missing_level")

#: Texts that mean a missing cell.
MISSING = ("", "?", "NA", "N/A", "NaN", "nan", "null", "NULL", "#N/A")

#: Rows of a block; fewer where there are many columns.
CHUNK = 100_000


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
                there_are = f"it has {show(list(names))}.{nearest(name, names)}"
                raise KeyError(f"{source.name} has no column {cite(name)}; {there_are}")
        kept = names if self.columns is None else self.columns
        return [at for at in there if names[at] in kept and names[at] not in self.without]


def split_options(
    options: dict[str, Any],
) -> tuple[FileOptions, dict[str, Any], dict[str, Any]]:
    """Return the options of the file, those of the records, and declarations about columns."""
    own = FileOptions.__dataclass_fields__
    parts: list[dict[str, Any]] = []
    for names in (own, ("domain", "handle_unknown"), DECLARED):
        parts.append({key: options[key] for key in names if key in options})
    for key in options:
        if not any(key in part for part in parts):
            near = nearest(key, [*own, "domain", "bins"])
            raise TypeError(f"There is no option {cite(key)}.{near}")
    return FileOptions(**parts[0]), parts[1], parts[2]


def encode_part(
    frame: Frame, rest: dict[str, Any], weights: WeightArguments, unmatched: Unmatched
) -> tuple[Records, RowWeights]:
    """Return the records of the next part, not weighted yet, and the weights of its rows.

    Columns and labels that the domain lacks are collected.
    """
    frame, rows = weights.split(frame, unmatched.rows)
    frame = frame.without(rest.get("left_out", ()))
    check_undeclared(**{key: rest[key] for key in DECLARED if key in rest and key != "rule"})
    handle_unknown = rest.get("handle_unknown", "missing")
    arguments = frame, rest["domain"], read_declarations(), (None, None), handle_unknown
    return Records._trusted(*read_table(*arguments, unmatched=unmatched)), rows


@dataclass
class PartReader:
    """Read the parts of a source as records, in one or more passes, with one report on all parts.

    Parameters
    ----------
    parts : callable
        Starts a pass over the source.
    options : dict
        Those of the records, with the domain.
    weights : WeightArguments
        The columns with the weights.
    is_reported : bool
        Whether a pass has ended: columns and labels that the domain does not have are then
        remarked on.
    design : SurveyDesign, optional
        What survey weights are worth, once `measure` has made its pass.
    """

    parts: Callable[[], Iterable[Frame | Records]]
    options: dict[str, Any]
    weights: WeightArguments = NO_WEIGHTS
    is_reported: bool = False
    design: SurveyDesign | None = None

    def read(self) -> Iterator[Records]:
        """Make one pass."""
        for records, rows in self._pass():
            if rows is None:
                yield records
            elif self.design is None:
                yield Records._trusted(records.domain, records.codes, rows.copies)
            else:
                weight, keys = self.design.scale(rows.raw), rows.cluster_keys
                yield Records._trusted(records.domain, records.codes, weight, cluster_keys=keys)

    def measure(self) -> SurveyDesign | None:
        """Make a pass that measures survey weights; none without them."""
        if not self.weights.is_survey:
            return None
        sums = DesignSums(self.options["domain"].shape)
        for records, rows in self._pass():
            if rows is None:
                raise ValueError(
                    "The parts are Records, which have weights of their own: give their survey "
                    "weights to Records.of, or frames to scan."
                )
            sums.add(records.codes, rows)
        self.design = sums.design()
        return self.design

    def _pass(self) -> Iterator[tuple[Records, RowWeights | None]]:
        """Yield each part and the weights of its rows, None if the part is weighted already."""
        domain, unmatched = self.options["domain"], Unmatched()
        handle_unknown = self.options.get("handle_unknown", "missing")
        for part in self.parts():
            rows: RowWeights | None = None
            if isinstance(part, Frame):
                records, rows = encode_part(part, self.options, self.weights, unmatched)
            elif part.domain == domain:
                records, unmatched.rows = part, unmatched.rows + len(part)
            else:
                records, _ = encode_part(as_frame(part), self.options, NO_WEIGHTS, unmatched)
                records = Records._trusted(domain, records.codes, part.sample_weight)
            if unmatched.labels and handle_unknown == "error":
                unmatched.report(domain, handle_unknown)
            yield records, rows
        if not self.is_reported:
            unmatched.report(domain, handle_unknown)
            self.is_reported = True


def file_frames(
    source: Source, how: FileOptions, size: int | None, weights: WeightArguments = NO_WEIGHTS
) -> Iterator[Frame]:
    """Yield blocks of the file as frames of the selected columns, with those of the weights."""
    if how.columns is not None:
        how = replace(how, columns=[*how.columns, *weights.columns])
    kind, picked = format_of(source, how.format), partial(how.picked, source)
    if kind == "text":
        dialect = find_dialect(source, how.delimiter, how.encoding)
        if isinstance(how.missing, str):
            raise TypeError(f"missing must be a list of texts, not the text {cite(how.missing)}.")
        options: Any = {"header": how.header, "missing": frozenset(how.missing), "size": size}
        yield from read_blocks(source, dialect, wanted=picked, **options)
        return
    for block in read_table_blocks(source, kind, size, picked, how.encoding):
        frame = take_apart(block)
        names = frame.names or ()
        # Of a Parquet file only these columns were read.
        places = range(len(names)) if kind == "parquet" else picked(names)
        kept = tuple(names[at] for at in places)
        yield Frame(kept, [frame.columns[at] for at in places], frame.rows)


Summaries = dict[str, ColumnSummary]


def find_domain_of_files(
    sources: Iterable[Source],
    how: FileOptions,
    weights: WeightArguments,
    declarations: Mapping[str, Any],
) -> Discovered:
    """Find the domain of files in one pass; keep distinct values and their counts, not rows."""
    sources = list(sources)
    parts = (summarize_file(source, how, weights) for source in sources)
    found = find_domain_of_summaries(parts, sources[0].name, declarations)
    size = rows_of_part(len(found.domain))

    def sampled() -> Iterator[Codes]:
        for source in sources:
            yield from sample_parts(file_frames(source, how, size, weights), found, weights)

    return find_empty_levels(found, sampled, declarations)


def find_domain_of_frames(
    frames: Callable[[], Iterator[Frame]], weights: WeightArguments, declarations: Mapping[str, Any]
) -> Discovered:
    """Find the domain of a sequence of frames, which can be read again."""
    parts = [summarize_frames(frames(), weights)]
    found = find_domain_of_summaries(parts, "The source", declarations)
    return find_empty_levels(found, lambda: sample_parts(frames(), found, weights), declarations)


def sample_parts(
    frames: Iterable[Frame], found: Discovered, weights: WeightArguments
) -> Iterator[Codes]:
    """Yield codes of each part: of all rows, or of a sample."""
    for frame in frames:
        if frame.rows:
            yield sample_rows(encode_part(frame, found.options, weights, Unmatched())[0].codes)


def find_empty_levels(
    found: Discovered, parts: Callable[[], Iterable[Codes]], declarations: Mapping[str, Any]
) -> Discovered:
    """Add the levels of empty cells, which takes a pass over the source if cells are missing."""
    declared = read_declarations(**declarations)
    domain = add_missing_levels(found.domain, declared.missing_level)
    if found.has_missing and declared.not_applicable is not False:
        codes: Codes = np.zeros((0, len(domain)), dtype=np.int8)
        rows = 0
        for part in parts():
            # A part counts by its share of the rows so far.
            rows += len(part)
            kept = round(MOST_ROWS * (1 - len(part) / rows)) if rows > MOST_ROWS else len(codes)
            codes = np.vstack([sample_rows(codes, kept), sample_rows(part, MOST_ROWS - kept)])
        domain = add_not_applicable(domain, fill_empty(domain, codes), declared)
    return found._replace(domain=domain)


def summarize_frames(frames: Iterable[Frame], weights: WeightArguments) -> Summaries:
    """Summarize the columns of some frames, to be combined with other summaries."""
    summaries: Summaries = {}
    before = 0
    for frame in frames:
        if not frame.rows:
            continue
        before, (frame, rows) = before + frame.rows, weights.split(frame, before)
        summarize(frame, rows.cells, summaries)
    return summaries


def summarize_file(source: Source, how: FileOptions, weights: WeightArguments) -> Summaries:
    """Summarize the columns of one file."""
    size = CHUNK
    if format_of(source, how.format) != "duckdb":  # a query would have to run twice
        with closing(file_frames(source, how, 1)) as frames:  # type: ignore[type-var]  # a generator
            size = min(CHUNK, rows_of_part(len(next(frames).columns)))
    return summarize_frames(file_frames(source, how, size, weights), weights)


def find_domain_of_summaries(
    parts: Iterable[Summaries], source: str, declarations: Mapping[str, Any]
) -> Discovered:
    """Return the domain of all summaries, in the order of the parts."""
    total: Summaries = {}
    for part in parts:
        for name, summary in part.items():
            if name in total:
                total[name].join(summary)
            else:
                total[name] = summary
    if not total:
        raise ValueError(f"{source} has no rows: levels cannot be seen; give a domain.")
    return infer_domain(total, read_declarations(**declarations))
