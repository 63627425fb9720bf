"""Tables of files: every file read and interpreted, then aligned: names, levels, shares within."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from rejoint.arrays import FloatArray, sum_to
from rejoint.domain.domain import Domain
from rejoint.domain.labels import Level
from rejoint.marginals.align import align, read_base
from rejoint.marginals.labelled_table import LabelledTable
from rejoint.marginals.read.cells import TableArray
from rejoint.marginals.read.description import (
    FILE,
    OPEN,
    Description,
    Draft,
    FolderDescription,
    Reading,
    check_known,
    describe,
    read_description,
    write_description,
)
from rejoint.marginals.read.forms import read_form
from rejoint.marginals.read.grid import WORKBOOKS, Grid, Paths, list_files, read_grid, read_workbook
from rejoint.marginals.read.interpret import interpret
from rejoint.marginals.read.json_stat import read_json_stat
from rejoint.marginals.read.pc_axis import read_pc_axis
from rejoint.marginals.read.sdmx import read_sdmx
from rejoint.records.delimited import numbers_of
from rejoint.records.files import Source
from rejoint.text import cite, plural, show

Part = TableArray | Grid


class OpenQuestionError(ValueError):
    """A file that does not say all that a table needs; ``proposal`` is the text to complete."""

    def __init__(self, message: str, proposal: str = "") -> None:
        super().__init__(message)
        self.proposal = proposal


@dataclass(frozen=True)
class TableFiles:
    """Tables read from files, how each was understood, and what a description says of all.

    ``description`` has the descriptions as TOML: read again, they give the same tables.
    """

    tables: tuple[LabelledTable, ...]
    readings: tuple[Reading, ...] = ()
    shared: Mapping[str, Any] = field(default_factory=dict)
    description: str = ""


def read_arrays(
    source: Source, delimiter: str | None = None, encoding: str | None = None
) -> Sequence[Part]:
    """Return the tables of a structured file as labelled arrays, those of any other as cells."""
    with source.open() as file:
        start = file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")) or source.suffix in WORKBOOKS:
        return read_workbook(source)
    if source.suffix == ".px" or start.startswith((b"CHARSET", b"AXIS-VERSION")):
        return [read_pc_axis(source, encoding)]
    if source.suffix == ".json" or start.startswith(b"{"):
        return read_json_stat(source)
    grid = read_grid(source, delimiter, encoding)
    return [read_sdmx(grid) or grid]


def read_files(
    paths: Paths,
    *,
    domain: Domain | None = None,
    rounded: float | str | None = None,
    noisy: bool = False,
    same: Mapping[str, str] | None = None,
    collapse: Mapping[str, Any] | None = None,
    impossible: Any = (),
    delimiter: str | None = None,
    encoding: str | None = None,
    **options: Any,
) -> TableFiles:
    """Read the tables of some files; see :meth:`rejoint.Marginals.read`."""
    told, folder = describe({k: v for k, v in options.items() if v is not None}), _find(paths)
    shared = dict(folder.shared)
    shared |= {} if rounded is None else {"rounded": rounded}
    shared["noisy"] = noisy or bool(shared.get("noisy"))
    impossible = [impossible] if isinstance(impossible, Mapping) else impossible
    shared["impossible"] = [*shared.get("impossible", ()), *impossible]
    base = read_base(shared.get("rounded"))
    drafts: list[Draft] = []
    numbers = count(1)
    for source in list_files(paths):
        for draft, part in _list_parts(source, told, folder, delimiter, encoding):
            drafts.append(draft)
            array = read_form(part, draft) if isinstance(part, Grid) else part
            if array is not None:
                interpret(array, draft, numbers, base, noisy=shared["noisy"])
    _raise_open(drafts)
    tables = _rename(drafts, {**shared.get("same", {}), **(same or {})})
    tables = list(_collapse(tables, {**shared.get("collapse", {}), **(collapse or {})}))
    tables = list(_multiply(drafts, tables))
    _check_variables(drafts, tables, domain)
    texts = [write_description(draft.file, draft.description) for draft in drafts]
    readings = tuple(draft.reading for draft in drafts)
    return TableFiles(_typed(tables, domain), readings, shared, "\n".join(texts))


def _find(paths: Paths) -> FolderDescription:
    """Return the description beside the files: of their folder, or of that of the first file."""
    first = paths if isinstance(paths, str | PathLike) else next(iter(paths), "")
    place = Path(first) if Path(first).is_dir() else Path(first).parent
    has_file = str(first) != "-" and (place / FILE).is_file()
    return read_description(place / FILE) if has_file else FolderDescription()


def _list_parts(
    source: Source,
    told: Description,
    folder: FolderDescription,
    delimiter: str | None,
    encoding: str | None,
) -> Iterator[tuple[Draft, Part]]:
    """Yield the tables of a file that are to be read, each with its description."""
    every: Sequence[Part] | None = None
    for entry in folder.of(source.name):
        description = told.over(entry)
        if description.sheet is not None:
            parts: Sequence[Part] = read_workbook(source, description.sheet)
        else:
            parts = every = read_arrays(source, delimiter, encoding) if every is None else every
        number = description.table
        if number is not None and number > len(parts):
            tables = plural(len(parts), "table")
            raise ValueError(f"{source.name}: table={number}, but it has {tables}.")
        pairs: Sequence[tuple[int, Part]]
        pairs = [(k, p) for k, p in enumerate(parts, 1) if number in (None, k)]
        if len(pairs) > 1 and isinstance(parts[0], Grid):
            pairs = _choose_sheet(source, pairs)
        for k, part in pairs:
            own = description
            if isinstance(part, Grid):
                own = replace(own, sheet=own.sheet or part.sheet)
            else:
                _refuse_form(part, own)
                own = replace(own, table=k if len(parts) > 1 else own.table)
            yield Draft(Path(source.name).name, Reading(part.where), own), part


def _choose_sheet(source: Source, pairs: Sequence[tuple[int, Any]]) -> Sequence[tuple[int, Part]]:
    """Return the only sheet with a table of numbers; else ask which."""
    tables = []
    for k, part in pairs:
        try:
            read_form(part, Draft(source.name, Reading(part.where), Description()))
            tables.append((k, part))
        except ValueError:  # a sheet of notes
            continue
    if len(tables) != 1:
        draft = Draft(Path(source.name).name, Reading(source.name), Description())
        names = show([part.sheet for _, part in tables or pairs])
        draft.ask("sheet", OPEN, f"one of {names}; an entry for each that is to be read")
        _raise_open([draft])
    return tables


def _refuse_form(array: TableArray, told: Description) -> None:
    """Raise an error for options that have no meaning for a structured file."""
    for key in ("form", "skip", "header_rows", "label_columns", "value", "decimal"):
        if getattr(told, key) is not None:
            what = f"{array.where} is {array.form}, whose layout is fixed"
            raise ValueError(f"{what}: leave out {key}=.")


def _raise_open(drafts: Sequence[Draft]) -> None:
    """Raise an error that proposes a description of the files that do not say all."""
    waiting = [draft for draft in drafts if draft.open]
    if not waiting:
        return
    text = "\n".join(write_description(d.file, d.description, d.open) for d in waiting[:10])
    options = dict.fromkeys(key for draft in waiting[:10] for key in draft.open)
    reasons = "; ".join(f"{key}: {why}" for key, why in waiting[0].open.items())
    more = f" ({plural(len(waiting) - 1, 'file')} more like this.)" if len(waiting) > 1 else ""
    message = (
        f"{waiting[0].reading.where} does not say all that is needed: {reasons[:2_000]}.{more} "
        f"Write this to {FILE} beside the files, with what is marked by # decided, or give "
        f"{', '.join(f'{key}=' for key in options)}:\n\n{text[:2_000]}"
    )
    raise OpenQuestionError(message, text)


# One name for one thing --------------------------------------------------------------------


def _relabel(
    table: LabelledTable, name_of: Callable[[str], str], label_of: Callable[[str, str], Hashable]
) -> LabelledTable:
    """Return a table, and its margins, with other names and labels."""
    pairs = zip(table.names, table.labels, strict=True)
    return replace(
        table,
        names=tuple(map(name_of, table.names)),
        labels=tuple(tuple(label_of(name, str(x)) for x in of or ()) for name, of in pairs),
        margins=tuple(_relabel(margin, name_of, label_of) for margin in table.margins),
    )


def _rename(drafts: Sequence[Draft], same: Mapping[str, str]) -> list[LabelledTable]:
    """Return the tables with the names and labels that ``same`` says are others."""
    tables = [draft.table for draft in drafts if draft.table is not None]
    if same:
        of_all = _levels(tables)
        texts = [*of_all, *(level for of in of_all.values() for level in of)]
        check_known("", "same= names {}, which is neither a variable nor a level", same, texts)
    for k, draft in enumerate(drafts if same else ()):
        where = draft.reading.where
        table = _relabel(tables[k], lambda n: same.get(n, n), lambda _, x: same.get(x, x))
        for name, labels in zip(table.names, table.labels, strict=True):
            if len({*(labels or ())}) < len(labels or ()):
                twice = next(x for x in labels or () if (labels or ()).count(x) > 1)
                what = f"same= makes two levels of {cite(name)} one, {cite(twice)}"
                raise ValueError(f"{where}: {what}; add them up by collapse=.")
        tables[k] = table
        draft.within = tuple(same.get(name, name) for name in draft.within)
        levels = tuple(tuple(map(str, of or ())) for of in table.labels)
        draft.reading = replace(draft.reading, names=table.names, levels=levels)
    return tables


def _levels(tables: Sequence[LabelledTable]) -> dict[str, list[str]]:
    """Return all levels of each variable, as text."""
    levels: dict[str, dict[str, None]] = {}
    for table in tables:
        for name, labels in zip(table.names, table.labels, strict=True):
            levels.setdefault(name, {}).update(dict.fromkeys(map(str, labels or ())))
    return {name: list(of) for name, of in levels.items()}


def _collapse(
    tables: Sequence[LabelledTable], collapse: Mapping[str, Mapping[str, Any]]
) -> Iterator[LabelledTable]:
    """Yield tables with coarser levels of some variables; each level must be in one of them."""
    levels = _levels(tables)
    check_known("collapse: ", "no table has the variable {}", collapse, list(levels))
    for name, groups in collapse.items():
        members = [m for m in groups.values() if not isinstance(m, int | float)]
        what = f"no table has the level {{}} of {cite(name)}"
        check_known("collapse: ", what, [str(x) for of in members for x in of], levels[name])
    for table in tables:
        for name in table.names:
            if name in collapse:
                table = collapse_axis(table, name, collapse[name])
        yield table


def collapse_axis(table: LabelledTable, name: str, groups: Mapping[str, Any]) -> LabelledTable:
    """Return a table with levels of a variable added up: those listed, or those below a number."""
    axis = table.names.index(name)
    labels = [str(x) for x in table.labels[axis] or ()]
    sizes = np.nansum(np.moveaxis(table.values, axis, 0).reshape(len(labels), -1), axis=1)
    group_of = dict(zip(labels, labels, strict=True))
    for group, members in groups.items():
        if isinstance(members, int | float):
            members = [x for x, size in zip(labels, sizes, strict=True) if size < members]
        group_of |= {str(x): str(group) for x in members if str(x) in group_of}
    levels = list(dict.fromkeys(group_of.values()))
    parts = [[k for k, x in enumerate(labels) if group_of[x] == level] for level in levels]

    def add(array: FloatArray) -> FloatArray:
        return np.stack([np.take(array, part, axis).sum(axis=axis) for part in parts], axis)

    named = {x: [y for y in labels if group_of[y] == x] for x in levels if x not in labels}
    margins = [collapse_axis(m, name, named) if name in m.names else m for m in table.margins]
    bounds = None if table.bounds is None else (add(table.bounds[0]), add(table.bounds[1]))
    return replace(
        table,
        labels=(*table.labels[:axis], tuple(levels), *table.labels[axis + 1 :]),
        values=add(table.values),
        bounds=bounds,
        margins=tuple(margins),
        rounding=table.rounding * max(map(len, parts)),
    )


def _multiply(drafts: Sequence[Draft], tables: Sequence[LabelledTable]) -> Iterator[LabelledTable]:
    """Yield tables with percentages within levels multiplied by the shares of these levels."""
    for draft, table in zip(drafts, tables, strict=True):
        if not draft.within:
            yield table
            continue
        axes = [k for k, name in enumerate(table.names) if name in draft.within]
        levels = {table.names[k]: table.labels[k] or () for k in axes}
        pairs = zip(drafts, tables, strict=True)
        found = (_shares(its, levels) for other, its in pairs if not other.within)
        weight = next((shares for shares in found if shares is not None), None)
        where, within = draft.reading.where, show(draft.within)
        if weight is None:
            raise ValueError(
                f"{where}: its percentages add up to 100 within each level of {within}. Give a "
                f"table beside it that has the shares of {within}, with the same levels."
            )
        if np.isnan(table.values).any():
            raise ValueError(f"{where}: percentages within levels need all cells.")
        others = tuple(k for k in range(table.values.ndim) if k not in axes)
        sums = table.values.sum(axis=others, keepdims=True)
        values = table.values / sums * weight.reshape(sums.shape)
        yield replace(table, values=values, rounding=table.rounding / float(sums.mean()))


def _shares(table: LabelledTable, levels: Mapping[str, Sequence[Hashable]]) -> FloatArray | None:
    """Return the shares of the combined levels of variables; None if a table does not have them."""
    axes = {name: axis for axis, name in enumerate(table.names) if name in levels}
    labels = {name: table.labels[axis] or () for name, axis in axes.items()}
    if {name: {*of} for name, of in labels.items()} != {n: {*of} for n, of in levels.items()}:
        return None
    sums = sum_to(table.values, table.names, axes)
    part = LabelledTable(tuple(axes), tuple(labels.values()), sums)
    _, sums = align(part, Domain.of({name: list(of) for name, of in levels.items()}))
    return None if np.isnan(sums).any() else sums / sums.sum()


def _check_variables(
    drafts: Sequence[Draft], tables: Sequence[LabelledTable], domain: Domain | None
) -> None:
    """Raise an error for variables of one name and other levels, or names that only look alike."""
    first: dict[str, tuple[str, Sequence[Hashable]]] = {}
    cells = [
        (name, draft.reading.where, labels or ())
        for draft, table in zip(drafts, tables, strict=True)
        for name, labels in zip(table.names, table.labels, strict=True)
    ]
    for name, here, labels in cells:
        if domain is not None:
            what = "The tables mention {}, which is not in the domain"
            check_known("", what, [name], domain.names)
            continue
        there, known = first.setdefault(name, (here, labels))
        gaps = {"first": [x for x in known if x not in labels]}
        gaps["second"] = [x for x in labels if x not in known]
        if any(gaps.values()):
            gap = " and ".join(f"only the {w} has {show(x)}" for w, x in gaps.items() if x)
            raise ValueError(
                f"The variable {cite(name)} has other levels in {there} than in {here}: {gap}. "
                "Use same= if these are the same, collapse= for coarser levels, names= for a "
                "variable of its own, or domain= if a level that a file does not have is zero."
            )
        words = name.casefold().split()
        alike = next((n for n in first if n != name and n.casefold().split() == words), None)
        if alike is not None:
            raise ValueError(
                f"{first[alike][0]} has the variable {cite(alike)}, and {here} {cite(name)}. Use "
                f"same={{{cite(name)}: {cite(alike)}}} if these are the same, or names= if not."
            )


def _typed(tables: Sequence[LabelledTable], domain: Domain | None) -> tuple[LabelledTable, ...]:
    """Return tables whose labels, text in a file, are levels of the domain, or numbers."""
    types: dict[str, dict[str, Level]] = {}
    for name, texts in _levels(tables).items():
        types[name] = {text: text for text in texts}
        if domain is not None:
            types[name] |= {str(level): level for level in domain[name].levels}
        else:
            numbers = numbers_of(texts)
            if numbers is not None and len({*numbers}) == len(texts):
                types[name] = dict(zip(texts, numbers, strict=True))
    return tuple(_relabel(table, str, lambda name, x: types[name][x]) for table in tables)
