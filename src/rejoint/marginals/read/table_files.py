"""Tables of files: every file read and interpreted, then aligned: names, levels, shares within."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from rejoint.arrays import FloatArray
from rejoint.domain.domain import Domain
from rejoint.domain.labels import Level
from rejoint.marginals.labelled_table import LabelledTable, Names
from rejoint.marginals.read.cells import TableArray
from rejoint.marginals.read.description import (
    FILE,
    OPEN,
    Description,
    FolderDescription,
    describe,
    read_description,
    write_description,
)
from rejoint.marginals.read.forms import Proposal, read_form
from rejoint.marginals.read.grid import WORKBOOKS, Grid, Paths, list_files, read_grid, read_workbook
from rejoint.marginals.read.interpret import Draft, Reading, interpret
from rejoint.marginals.read.json_stat import read_json_stat
from rejoint.marginals.read.pc_axis import read_pc_axis
from rejoint.marginals.read.sdmx import (
    is_eurostat_tsv,
    is_sdmx_csv,
    read_eurostat_tsv,
    read_sdmx_csv,
)
from rejoint.messages import Argument, Message, join_messages, remark
from rejoint.records.delimited import numbers_of
from rejoint.records.files import Source
from rejoint.text import cite, nearest, plural, show


class OpenQuestionError(ValueError):
    """A file that does not say all that a table needs; ``proposal`` is the text to complete."""

    def __init__(self, message: str, proposal: str = "") -> None:
        super().__init__(message)
        self.proposal = proposal


@dataclass(frozen=True)
class TableFiles:
    """Tables read from files, how each was understood, and what a description says of all."""

    tables: tuple[LabelledTable, ...]
    readings: tuple[Reading, ...] = ()
    shared: Mapping[str, Any] = field(default_factory=dict)

    @property
    def description(self) -> str:
        """The descriptions of all tables as TOML: read again, they give the same tables."""
        texts = [
            write_description(Path(_file_of(r.where)).name, r.description) for r in self.readings
        ]
        return "\n".join(texts)


def read_arrays(
    source: Source, delimiter: str | None = None, encoding: str | None = None
) -> list[TableArray] | list[Grid]:
    """Return the tables of a structured file as labelled arrays, those of any other as cells.

    Examples
    --------
    >>> read_arrays(Source("t.csv", content=b"a,n"))[0].rows
    [('a', 'n')]
    """
    with source.open() as file:
        start = file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")) or source.suffix in WORKBOOKS:
        return read_workbook(source)
    if source.suffix == ".px" or start.startswith((b"CHARSET", b"AXIS-VERSION")):
        return [read_pc_axis(source, encoding)]
    if source.suffix == ".json" or start.startswith(b"{"):
        return read_json_stat(source)
    grid = read_grid(source, delimiter, encoding)
    if is_eurostat_tsv(grid.rows):
        return [read_eurostat_tsv(grid)]
    if grid.rows and is_sdmx_csv(grid.rows[0]):
        return [read_sdmx_csv(grid)]
    return [grid]


def read_files(
    paths: Paths,
    *,
    domain: Domain | None = None,
    rounded: float | str | None = None,
    noisy: bool = False,
    same: Mapping[str, str] | None = None,
    collapse: Mapping[str, Any] | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    **options: Any,
) -> TableFiles:
    r"""Read the tables of some files; see :meth:`rejoint.Marginals.read`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "t.csv").write_text("a,b,count\nx,1,3\nx,2,<5\n")
    ...     table = read_files(folder).tables[0]
    >>> table.names, table.labels, table.bounds[1]
    (('b',), ((1, 2),), array([3., 4.]))
    """
    told = describe(
        {
            k: v
            for k, v in options.items()
            if v not in (None, (), [], {}) or (k == "totals" and v in ((), []))
        }
    )
    folder = _find_description(paths)
    shared = dict(folder.shared)
    same = {**shared.get("same", {}), **(same or {})}
    collapse = {**shared.get("collapse", {}), **(collapse or {})}
    base = _base(rounded if rounded is not None else shared.get("rounded"))
    noisy = noisy or bool(shared.get("noisy", False))
    drafts: list[Draft] = []
    for source in list_files(paths):
        drafts += _read_source(source, told, folder, delimiter, encoding, base, noisy)
    if not drafts:
        raise ValueError("No table files were given.")
    _raise_open(drafts)
    _number_unnamed(drafts)
    tables = [_renamed(draft, same) for draft in drafts]
    _check_used(same, tables, drafts)
    tables = list(_collapsed(tables, collapse))
    tables = list(_make_joint(drafts, tables))
    _check_variables(drafts, tables, domain)
    return TableFiles(tuple(_typed(tables, domain)), tuple(d.reading for d in drafts), shared)


def _base(rounded: float | str | None) -> float:
    """Return how far rounding to multiples moves a number, 0 where it is not told or not valid."""
    try:
        base = float(str(rounded).lower().removeprefix("nearest"))
    except ValueError:
        return 0.0
    return base if rounded is not None and 0 < base < np.inf and isfinite(base) else 0.0


def _find_description(paths: Paths) -> FolderDescription:
    """Return the description beside the files: of their folder, or of that of the first file."""
    first = paths if isinstance(paths, str | PathLike) else next(iter(paths), "")
    path = Path(first)
    place = path if path.is_dir() else path.parent
    found = place / FILE
    return read_description(found) if str(first) != "-" and found.is_file() else FolderDescription()


def _read_source(
    source: Source,
    told: Description,
    folder: FolderDescription,
    delimiter: str | None,
    encoding: str | None,
    rounded: float,
    noisy: bool,
) -> Iterator[Draft]:
    entries = folder.of(source.name)
    parts: Sequence[TableArray | Grid] | None = None
    for entry in entries:
        description = told.over(entry)
        if description.sheet is not None:
            parts_of: Sequence[TableArray | Grid] = read_workbook(source, description.sheet)
        else:
            parts = read_arrays(source, delimiter, encoding) if parts is None else parts
            parts_of = parts
        if description.table is not None:
            if description.table > len(parts_of):
                raise ValueError(
                    f"{source.name}: table={description.table}, but it has "
                    f"{plural(len(parts_of), 'table')}."
                )
            parts_of = [parts_of[description.table - 1]]
        elif len(parts_of) > 1:
            parts_of = _choose_sheet(source, parts_of)
        for part in parts_of:
            proposal = Proposal(description)
            array: TableArray | None
            if isinstance(part, Grid):
                array, proposal = read_form(part, description)
            else:
                array = part
                _refuse_form(part, description)
            if array is None:
                yield Draft(proposal, Reading(part.where))
            else:
                yield interpret(array, proposal, rounded, noisy=noisy)


def _choose_sheet(
    source: Source, parts: Sequence[TableArray | Grid]
) -> Sequence[TableArray | Grid]:
    """Return the only sheet with a table of numbers; else ask which."""
    if not isinstance(parts[0], Grid):
        return parts
    tables = []
    for part in parts:
        try:
            read_form(part, Description())  # type: ignore[arg-type]
            tables.append(part)
        except ValueError:  # a sheet of notes
            continue
    if len(tables) == 1:
        return tables
    names = [part.where.rpartition("sheet ")[2].strip("'") for part in tables or parts]
    proposal = Proposal(Description())
    proposal.ask("sheet", OPEN, f"one of {show(names)}; an entry for each that is to be read")
    _raise_open([Draft(proposal, Reading(source.name))])
    return tables


def _refuse_form(array: TableArray, told: Description) -> None:
    """Raise an error for options that have no meaning for a structured file."""
    for key in ("form", "skip", "header_rows", "label_columns", "value", "decimal"):
        if getattr(told, key) is not None:
            raise ValueError(
                Message(
                    "{where} is {form}, whose layout is fixed: leave out {option}.",
                    where=array.where,
                    form=array.form,
                    option=Argument(key),
                )
            )


def _file_of(where: str) -> str:
    return where.partition(", sheet '")[0].partition(", table ")[0]


def _raise_open(drafts: Sequence[Draft]) -> None:
    """Raise an error that proposes a description of the files that do not say all."""
    waiting = [draft for draft in drafts if draft.proposal.open]
    if not waiting:
        return
    texts, options = [], dict[str, None]()
    for draft in waiting[:10]:
        proposal, where = draft.proposal, draft.reading.where
        description = proposal.description
        if ", sheet " in where:
            sheet = where.rpartition(", sheet ")[2].strip("'")
            description = replace(description, sheet=description.sheet or sheet)
        name = Path(_file_of(where)).name
        texts.append(write_description(name, description, proposal.open))
        options |= dict.fromkeys(proposal.open)
    text = "\n".join(texts)
    listed = join_messages([Argument(key) for key in options], ", ")
    first = waiting[0].reading.where
    reasons = "; ".join(f"{key}: {why}" for key, why in waiting[0].proposal.open.items())
    more = f" ({plural(len(waiting) - 1, 'file')} more like this.)" if len(waiting) > 1 else ""
    raise OpenQuestionError(
        Message(
            "{where} does not say all that is needed: {reasons}.{more} Write this to {file} beside "
            "the files, with what is marked by # decided, or give {options}:\n\n{text}",
            where=first,
            reasons=_Plain(reasons),
            more=more,
            file=FILE,
            text=_Plain(text),
            options=listed,
        ),
        text,
    )


class _Plain:
    """A text that a message shows in full."""

    def __init__(self, text: str) -> None:
        self._text = text if len(text) < 2_000 else text[:2_000] + "..."

    def __str__(self) -> str:
        return self._text

    def __format__(self, spec: str) -> str:
        return self._text


# One name for one thing --------------------------------------------------------------------


def _number_unnamed(drafts: Sequence[Draft]) -> None:
    """Call variables without a name x1, x2, ... and say so; no two files share these."""
    number = 0
    for draft in drafts:
        names = list(draft.table.names if draft.table else ())
        if len({n for n in names if n}) < sum(map(bool, names)):
            twice = next(n for n in names if n and names.count(n) > 1)
            raise ValueError(
                f"{draft.reading.where}: two variables are called {cite(twice)}. Name "
                "them (names=)."
            )
        for k, name in enumerate(names):
            if not name:
                number += 1
                names[k] = f"x{number}"
                remark(
                    Message(
                        "{where}: the variable of the labels {labels} has no name and is called "
                        "{name!r}. Use {names} to name it.",
                        where=draft.reading.where,
                        labels=show(draft.reading.levels[k]),
                        name=names[k],
                        names=Argument("names", [*names[:k], "...", *names[k + 1 :]]),
                    )
                )
        assert draft.table is not None
        _set_names(draft, tuple(names))


def _set_names(draft: Draft, names: Names) -> None:
    table, old = draft.table, draft.reading.names
    assert table is not None
    new = dict(zip(old, names, strict=True))
    margins = tuple(
        replace(m, names=tuple(names[table.names.index(n)] for n in m.names)) for m in table.margins
    )
    draft.table = replace(table, names=names, margins=margins)
    draft.within = tuple(new.get(name, name) for name in draft.within)
    settled = replace(draft.proposal.description, names=names, per=draft.within or None)
    if ", sheet " in draft.reading.where:
        settled = replace(settled, sheet=draft.reading.where.rpartition(", sheet ")[2].strip("'"))
    elif ", table " in draft.reading.where:
        settled = replace(settled, table=int(draft.reading.where.rpartition(" ")[2]))
    draft.reading = replace(draft.reading, names=names, description=settled)


def _renamed(draft: Draft, same: Mapping[str, str]) -> LabelledTable:
    """Return a table with the names and labels that ``same`` says are others."""
    table = draft.table
    assert table is not None

    def rename(one: LabelledTable) -> LabelledTable:
        labels = tuple(tuple(same.get(str(x), x) for x in known or ()) for known in one.labels)
        return replace(one, names=tuple(same.get(n, n) for n in one.names), labels=labels)

    renamed = replace(rename(table), margins=tuple(map(rename, table.margins)))
    for name, known in zip(renamed.names, renamed.labels, strict=True):
        twice = [x for x in dict.fromkeys(known or ()) if (known or ()).count(x) > 1]
        if twice:
            raise ValueError(
                f"{draft.reading.where}: same= makes two levels of {cite(name)} one, "
                f"{cite(twice[0])}; add them up by collapse=."
            )
    draft.within = tuple(same.get(name, name) for name in draft.within)
    levels = tuple(tuple(map(str, known or ())) for known in renamed.labels)
    draft.reading = replace(draft.reading, names=renamed.names, levels=levels)
    return renamed


def _check_used(
    same: Mapping[str, str], tables: Sequence[LabelledTable], drafts: Sequence[Draft]
) -> None:
    known: set[Hashable] = set()
    for draft in drafts:
        if draft.table is not None:
            known.update(draft.table.names, *(labels or () for labels in draft.table.labels))
    unused = [text for text in same if text not in known]
    if unused:
        raise ValueError(
            f"same= names {cite(unused[0])}, which is neither a variable nor a level."
            + nearest(unused[0], sorted(map(str, known)))
        )


def _collapsed(
    tables: Sequence[LabelledTable], collapse: Mapping[str, Mapping[str, Any]]
) -> Iterator[LabelledTable]:
    """Yield tables with coarser levels of some variables; each level must be in one of them."""
    known: dict[str, set[str]] = {}
    for table in tables:
        for name, labels in zip(table.names, table.labels, strict=True):
            known.setdefault(name, set()).update(map(str, labels or ()))
    for name, groups in collapse.items():
        listed = [str(x) for m in groups.values() if not isinstance(m, int | float) for x in m]
        absent = [x for x in listed if x not in known.get(name, ())]
        if name not in known or absent:
            what = (
                f"level {cite(absent[0])} of {cite(name)}" if absent else f"variable {cite(name)}"
            )
            raise ValueError(f"collapse: no table has the {what}.")
    for table in tables:
        for name in [name for name in collapse if name in table.names]:
            table = collapse_axis(table, name, collapse[name])
        yield table


def collapse_axis(table: LabelledTable, name: str, groups: Mapping[str, Any]) -> LabelledTable:
    """Return a table with levels of a variable added up: lists of levels, or those below a number.

    Examples
    --------
    >>> table = LabelledTable(("a",), (("u", "v", "w"),), np.array([5.0, 1.0, 2.0]))
    >>> (
    ...     collapse_axis(table, "a", {"few": 3}).labels,
    ...     collapse_axis(table, "a", {"uv": ["u", "v"]}).values,
    ... )
    ((('u', 'few'),), array([6., 2.]))
    """
    axis = table.names.index(name)
    labels = [str(x) for x in table.labels[axis] or range(table.values.shape[axis])]
    sizes = np.nansum(np.moveaxis(table.values, axis, 0).reshape(len(labels), -1), axis=1)
    new = dict(zip(labels, labels, strict=True))
    for group, members in groups.items():
        if isinstance(members, int | float) and not isinstance(members, bool):
            members = [x for x, size in zip(labels, sizes, strict=True) if size < members]
        new |= {str(x): str(group) for x in members if str(x) in new}
    levels = list(dict.fromkeys(new[x] for x in labels))
    adds = np.zeros((len(levels), len(labels)))
    adds[[levels.index(new[x]) for x in labels], range(len(labels))] = 1.0

    def added(array: FloatArray) -> FloatArray:
        groups_of = [np.moveaxis(array, axis, 0)[row > 0].sum(axis=0) for row in adds]
        return np.moveaxis(np.stack(groups_of), 0, axis)

    margins = tuple(
        collapse_axis(
            m, name, {g: [x for x in labels if new[x] == g] for g in levels if g not in labels}
        )
        if name in m.names
        else m
        for m in table.margins
    )
    bounds = None if table.bounds is None else (added(table.bounds[0]), added(table.bounds[1]))
    most = float(adds.sum(axis=1).max())
    return replace(
        table,
        labels=(*table.labels[:axis], tuple(levels), *table.labels[axis + 1 :]),
        values=added(table.values),
        bounds=bounds,
        margins=margins,
        rounding=table.rounding * most,
    )


def _make_joint(
    drafts: Sequence[Draft], tables: Sequence[LabelledTable]
) -> Iterator[LabelledTable]:
    """Multiply percentages within levels of variables by these variables' shares."""
    for draft, table in zip(drafts, tables, strict=True):
        if not draft.within:
            yield table
            continue
        weight = None
        for other, its in zip(drafts, tables, strict=True):
            if not other.within and set(draft.within) <= set(its.names):
                weight = _shares(its, table, draft.within)
            if weight is not None:
                break
        if weight is None:
            raise ValueError(
                f"{draft.reading.where}: its percentages add up to 100 within each level of "
                f"{show(draft.within)}. Give a table beside it that has the shares of "
                f"{show(draft.within)}, with the same levels."
            )
        if np.isnan(table.values).any():
            raise ValueError(f"{draft.reading.where}: percentages within levels need all cells.")
        axes = [table.names.index(name) for name in draft.within]
        shape = [size if k in axes else 1 for k, size in enumerate(table.values.shape)]
        others = tuple(k for k in range(table.values.ndim) if k not in axes)
        part = table.values / table.values.sum(axis=others, keepdims=True)
        size = float(table.values.sum(axis=others).mean())
        yield replace(table, values=part * weight.reshape(shape), rounding=table.rounding / size)


def _shares(its: LabelledTable, table: LabelledTable, within: Sequence[str]) -> FloatArray | None:
    """Return the shares of the combined levels of some variables, in the order of a table."""
    axes = [its.names.index(name) for name in sorted(within, key=table.names.index)]
    known = [its.labels[a] or () for a in axes]
    wanted = [table.labels[table.names.index(its.names[a])] or () for a in axes]
    if any(set(k) != set(w) for k, w in zip(known, wanted, strict=True)):
        return None
    if np.isnan(its.values).any():
        return None
    others = tuple(a for a in range(its.values.ndim) if a not in axes)
    sums = its.values.sum(axis=others).transpose(np.argsort(np.argsort(axes)))
    for k, (have, want) in enumerate(zip(known, wanted, strict=True)):
        sums = np.take(sums, [have.index(label) for label in want], k)
    return np.asarray(sums / sums.sum())


def _check_variables(
    drafts: Sequence[Draft], tables: Sequence[LabelledTable], domain: Domain | None
) -> None:
    """Raise an error for variables of one name and other levels, or names that only look alike."""
    seen: dict[str, tuple[str, Sequence[Hashable]]] = {}
    for draft, table in zip(drafts, tables, strict=True):
        for name, labels in zip(table.names, table.labels, strict=True):
            if domain is not None:
                if name not in domain:
                    raise ValueError(
                        f"The tables mention {cite(name)}, which is not in the domain."
                        + nearest(name, domain.names)
                    )
                continue
            where, known = seen.setdefault(name, (draft.reading.where, labels or ()))
            one, other = (
                [x for x in a if x not in b]
                for a, b in ((known, labels or ()), (labels or (), known))
            )
            if one or other:
                raise ValueError(
                    Message(
                        "The variable {name!r} has other levels in {first} than in {second}: "
                        "{gap}. Use {same} if these are the same, {collapse} for coarser levels, "
                        "{names} for a variable of its own, or domain= if a level that a file does "
                        "not have is zero.",
                        name=name,
                        first=where,
                        second=draft.reading.where,
                        gap=" and ".join(
                            f"only the {w} has {show(x)}"
                            for w, x in (("first", one), ("second", other))
                            if x
                        ),
                        same=Argument("same"),
                        collapse=Argument("collapse"),
                        names=Argument("names"),
                    )
                )
            alike = [
                n for n in seen if n != name and n.casefold().split() == name.casefold().split()
            ]
            if alike:
                raise ValueError(
                    Message(
                        "{first} has the variable {one!r}, and {second} {other!r}. Use {same} if "
                        "these are the same, or {names} if not.",
                        first=seen[alike[0]][0],
                        one=alike[0],
                        second=draft.reading.where,
                        other=name,
                        same=Argument("same", {name: alike[0]}),
                        names=Argument("names"),
                    )
                )


def _typed(tables: Sequence[LabelledTable], domain: Domain | None) -> list[LabelledTable]:
    """Return labels, which are text in a file, as levels of the domain, or as numbers."""
    texts: dict[str, dict[str, Level]] = {}
    for table in tables:
        for name, labels in zip(table.names, table.labels, strict=True):
            texts.setdefault(name, {}).update({str(label): str(label) for label in labels or ()})
    for name, levels in texts.items():
        if domain is not None:
            levels.update({str(level): level for level in domain[name].levels})
        else:
            numbers = numbers_of(list(levels))
            if numbers is not None and len(set(numbers)) == len(levels):
                levels.update(zip(list(levels), numbers, strict=True))

    def typed(table: LabelledTable) -> LabelledTable:
        labels = tuple(
            tuple(texts[name][str(label)] for label in known or ())
            for name, known in zip(table.names, table.labels, strict=True)
        )
        return replace(table, labels=labels, margins=tuple(map(typed, table.margins)))

    return [typed(table) for table in tables]
