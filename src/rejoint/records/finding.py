"""Finding the variables and levels of files in one pass, without keeping their rows."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any

import numpy as np

from rejoint.domain import Domain
from rejoint.domain.labels import nearest, show
from rejoint.domain.series import read_column
from rejoint.records.blocks import FileOptions, file_frames, take_column, text_blocks
from rejoint.records.delimited import TextColumn, typed_column
from rejoint.records.formats import format_of
from rejoint.records.frames import Frame
from rejoint.records.packs import rows_of_part
from rejoint.records.reading import report_inferred
from rejoint.records.sightings import MOST, Sightings
from rejoint.records.sources import Source
from rejoint.records.wishes import Wishes, read_wishes

__all__ = [
    "CHUNK",
    "find_domain_of_files",
    "find_domain_of_frames",
    "find_domain_of_seen",
    "see_file",
    "see_frames",
]

#: Rows that are looked at at a time, or fewer where there are many columns.
CHUNK = 100_000

Seen = dict[str, Sightings]


def find_domain_of_files(
    sources: Iterable[Source], how: FileOptions, weight: str | None, wishes: Mapping[str, Any]
) -> Domain:
    """One pass that keeps distinct values and their counts, not rows."""
    sources = list(sources)
    parts = (see_file(source, how, weight) for source in sources)
    return find_domain_of_seen(parts, sources[0].name, wishes)


def find_domain_of_frames(
    frames: Iterator[Frame], weight: str | None, wishes: Mapping[str, Any]
) -> Domain:
    """The same for frames that come one after another.

    Examples
    --------
    >>> frames = [Frame(("a",), [["x", "y"]], 2), Frame(("a",), [["z", None]], 2)]
    >>> find_domain_of_frames(iter(frames), None, {})["a"].levels
    ('x', 'y', 'z')
    """
    return _conclude("The source", see_frames(frames, weight), wishes)


def see_frames(frames: Iterator[Frame], weight: str | None) -> Seen:
    """What is seen of some frames, to be joined with what others show.

    Examples
    --------
    >>> list(see_frames(iter([Frame(("a",), [["x", "y"]], 2)]), None))
    ['a']
    """
    seen: Seen = {}
    _see_frames(frames, weight, seen)
    return seen


def see_file(source: Source, how: FileOptions, weight: str | None) -> Seen:
    """What is seen of one file."""
    seen: Seen = {}
    kind = format_of(source, how.format)
    # A query would be run twice to find out how many columns it has.
    size = CHUNK if kind == "duckdb" else min(CHUNK, rows_of_part(_columns(source, how)))
    if kind == "text":
        _see_text(source, how, size, weight, seen)
    else:
        _see_frames(file_frames(source, how, size, None, weight), weight, seen)
    return seen


def _columns(source: Source, how: FileOptions) -> int:
    """Number of columns of a file."""
    frames = file_frames(source, how, 1, None, None)
    with closing(frames):  # type: ignore[type-var]  # a generator
        return len(next(frames).columns)


def find_domain_of_seen(parts: Iterable[Seen], source: str, wishes: Mapping[str, Any]) -> Domain:
    """The domain of all that was seen, part after part."""
    total: Seen = {}
    for part in parts:
        for name, mine in part.items():
            total.setdefault(name, Sightings(name)).join(mine)
    return _conclude(source, total, wishes)


def _see_frames(frames: Iterator[Frame], weight: str | None, seen: Seen) -> None:
    for frame in frames:
        if not frame.rows:
            continue
        mass = None
        if weight is not None:
            frame, mass = take_column(frame, weight)
        names = frame.names or tuple(f"x{n}" for n in range(len(frame.columns)))
        for name, column in zip(names, frame.columns, strict=True):
            seen.setdefault(name, Sightings(name)).add(read_column(column, name), mass)


def _see_text(source: Source, how: FileOptions, size: int, weight: str | None, seen: Seen) -> None:
    """Texts are kept until the end: one that is no number makes text of all of its column."""
    counts: dict[str, Any] = {}
    columns: dict[str, TextColumn] = {}
    for names, block, rows in text_blocks(source, how, size):
        for name, column in zip(names, block, strict=True):
            found = np.bincount(column.take_codes() + 1, minlength=len(column.texts) + 1)[1:]
            if name == weight or not rows:
                continue
            columns[name] = column
            counts[name] = _added(counts.get(name, np.zeros(0, dtype=np.int64)), found)
            if len(column.texts) > MOST:  # it is about to forget them
                _see_texts(name, column.texts, counts.pop(name), seen)
    for name, count in counts.items():
        _see_texts(name, columns[name].texts, count, seen)


def _see_texts(name: str, texts: list[str], count: Any, seen: Seen) -> None:
    column = typed_column(texts, np.arange(len(texts), dtype=np.int32), name, None)
    seen.setdefault(name, Sightings(name)).add(column, None, count)


def _conclude(source: str, seen: Seen, wishes: Mapping[str, Any]) -> Domain:
    if not seen:
        raise ValueError(f"{source} has no rows: levels cannot be seen; give a domain.")
    wished: Wishes = read_wishes(*(wishes.get(key) for key in ("kinds", "levels", "bins")))
    for name in wished.by_name:
        if name not in seen:
            raise KeyError(
                f"kinds, levels or bins speak of {name!r}, but the columns are {show(list(seen))}."
                + nearest(name, list(seen))
            )
    variables = {name: mine.variable(wished.of(name)) for name, mine in seen.items()}
    report_inferred(variables, wished)
    return Domain(tuple(variables.values()))


def _added(one: Any, other: Any) -> Any:
    """Counts of values, where later blocks know more of them."""
    total = np.zeros(max(len(one), len(other)), dtype=np.int64)
    total[: len(one)] += one
    total[: len(other)] += other
    return total
