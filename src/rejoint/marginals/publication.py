r"""Tables from files as they are published: every file through one grid parser, nothing guessed.

A file becomes sheets of cells (:mod:`~rejoint.marginals.sheet`), blocks with headers and stubs
(:mod:`~rejoint.marginals.grid`), arrays with an axis for each variable
(:mod:`~rejoint.marginals.facet`). Here columns of codes and units are left out, totals are split
off, the kind of the numbers is recognized by their sums, and the variables get their names. What
can be read in two ways is an error that names both and the option that settles it.

Lines that begin with ``#`` are comments; before the header, these have a meaning::

    # kind: percent            counts, shares or percent, where the numbers do not decide it
    # records: 1234            number of records behind a table of shares
    # weight: 2                weight of the table in a fit
    # standard error: 0.01     of a cell, in the unit of the table
"""

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import combinations, pairwise, product
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.domain.domain import Domain
from rejoint.domain.labels import Level
from rejoint.marginals.facet import (
    SURE,
    Array,
    Facet,
    Marks,
    Sums,
    make_facets,
    read_numbers,
    rounding_base,
    sums_of,
)
from rejoint.marginals.grid import ALL, Block, find_blocks, is_value_name
from rejoint.marginals.labelled_table import COUNT_NAMES, SHARE_NAMES, LabelledTable
from rejoint.marginals.same_names import apply_same, interval_of, say_merged, use_one_name
from rejoint.marginals.sheet import (
    ANYTHING,
    SUPPRESSED,
    NotATableError,
    Paths,
    Sheet,
    kind_of_cell,
    list_files,
    read_sheets,
)
from rejoint.marginals.vocabulary import (
    DOUBTFUL,
    TOTALS,
    are_opposites,
    asked_in_title,
    concept_of_labels,
    find_names,
    is_count_word,
    is_mean,
    is_measure,
    is_no_name,
    is_percent,
    is_rate,
    is_rate_level,
    is_same_name,
    is_total_word,
    names_in_stem,
    names_in_title,
    plain_text,
    scale_word,
    sort_of_things,
    split_labels,
    unit_word,
)
from rejoint.messages import Argument, Message, join_messages, remark
from rejoint.records.files import Source
from rejoint.text import cite, nearest, show

#: Columns that say in which unit a number is.
_UNIT_COLUMNS = re.compile(
    r"unit(s)?( of measure)?|unit_measure|uom|measures?(_name)?|scalar_factor|freq|frequency|"
    r"einheit|unite|unidad|eenheid|statistic|contentscode|indicator|(unit )?multiplier",
)
_UNIT_NAMES = re.compile(r"unit(s)?( of measure)?|unit_measure|uom|einheit|unite|unidad|eenheid")
#: Words for all cases together, which are hardly ever levels beside others.
_OF_ALL = DOUBTFUL - {"t", "sum", "any", "both", "margin"}
#: A label of the difference of two others.
_DIFFERENCE = re.compile(
    r"\b(?:(?:net )?change|difference|gap|net|balance|increase|decrease|growth|excess|veranderung|"
    r"differenz|saldo|zunahme|solde|evolution|difference|ecart|variation|variacion|diferencia|"
    r"variazione|differenza|verschil|roznica|skillnad|forandring|diferenca|variacao)\b"
)
#: What begins the label of a part of another level.
_PART = re.compile(
    r"(?:of|from) wh(?:ich|om)\b|there ?of\b|davon\b|darunter\b|dont\b|di cui\b|waarvan\b|"
    r"w tym\b|de l[oa]s cuales\b|dos quais\b|das quais\b|heraf\b|herav\b|derav\b|varav\b|darav\b"
)
#: Cases that each of several levels has, exactly, beyond what chance makes.
_BATTERY = 30.0
_FEW = 12  # levels up to which all sums of others are looked for
KINDS = ("auto", "counts", "shares", "percent", "rows", "columns")


@dataclass(frozen=True)
class ReadOptions:
    """Options of the user for files; see :meth:`rejoint.Marginals.read`."""

    value: str | None = None
    totals: Collection[str] | None = None  # None: by their sums
    skip: Collection[str] = ()
    sheet: str | None = None
    decimal: str | None = None
    same: Mapping[str, str] = field(default_factory=dict)
    suppressed: Marks = field(default_factory=lambda: marks_of(()))
    kind: str = "auto"
    noisy: bool = False
    delimiter: str | None = None
    encoding: str | None = None


@dataclass
class Reading:
    """How a table was interpreted, as text: its contents and what was decided."""

    where: str
    names: tuple[str, ...] = ()
    levels: tuple[tuple[str, ...], ...] = ()
    kind: str = ""
    total: float = 0.0
    totals: list[str] = field(default_factory=list)
    marks: dict[str, int] = field(default_factory=dict)
    flags: dict[str, int] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    proof: str = ""  # what shows that it is this kind: sums, words or sizes


#: A table of totals: the axes that it keeps, and its numbers.
Margin = tuple[tuple[int, ...], Array]


@dataclass
class Draft:
    """A table between file and domain: its array, its kind, and what it is conditional on."""

    facet: Facet
    reading: Reading
    block: Block
    margins: list[Margin] = field(default_factory=list)
    total: float | None = None
    kind: str = "counts"  # counts, shares
    whole: float = 1.0  # what shares add up to
    given: tuple[int, ...] = ()  # axes that shares are conditional on
    totals: list[tuple[int, str]] = field(default_factory=list)  # axis and label of each
    constants: dict[str, str] = field(default_factory=dict)
    candidates: list[str] = field(default_factory=list)  # names in titles
    mean: str = ""  # a total between the numbers that it is of

    @property
    def claims(self) -> list[Margin]:
        """All printed totals: the margins, and the grand total as one that keeps no axis."""
        return [*self.margins, *([] if self.total is None else [((), np.array(self.total))])]

    @property
    def said(self) -> Mapping[str, str]:
        """What comments of its file say."""
        return self.block.sheet.said

    def scale(self, by: float) -> None:
        """Multiply all numbers."""
        sums = [(at, value * by) for at, value in self.facet.sums]
        self.facet = replace(self.facet.times(by, by), sums=sums)
        self.margins = [(axes, claims * by) for axes, claims in self.margins]
        self.total = None if self.total is None else self.total * by

    def message(self, template: str, /, axis: int | None = None, **fields: Any) -> Message:
        """Return a message about the table, or about the labels of one of its axes."""
        known = [] if axis is None else self.facet.labels[axis]
        name = "" if axis is None else self.facet.names[axis] or "/".join(known[:2])
        said = {"where": self.reading.where, "name": name, "none": Argument("totals", "none")}
        return Message(template, **{**said, **fields})

    def error(self, template: str, /, axis: int | None = None, **fields: Any) -> ValueError:
        """Return an error about the table, or about the labels of one of its axes."""
        return ValueError(self.message(template, axis, **fields))

    def remark(self, template: str, /, **fields: Any) -> None:
        """Remark on the table."""
        remark(self.message(template, **fields))


@dataclass(frozen=True)
class TableFiles:
    """Tables read from files, their weights in the files, and how each was understood."""

    tables: tuple[LabelledTable, ...]
    weights: Mapping[tuple[str, ...], float]
    readings: tuple[Reading, ...] = ()


def read_files(
    paths: Paths,
    *,
    domain: Domain | None = None,
    suppressed: Collection[str] | Mapping[str, tuple[float, float]] = (),
    totals: Collection[str] | None = None,
    **options: Any,
) -> TableFiles:
    r"""Read the tables of some files; see :meth:`rejoint.Marginals.read`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "t.csv").write_text("a,b,count\nx,1,3\ny,2,<5\n")
    ...     table = read_files(folder).tables[0]
    >>> table.names, table.labels
    (('a', 'b'), (('x', 'y'), (1, 2)))
    """
    how = _check_options(ReadOptions(suppressed=marks_of(suppressed), totals=totals, **options))
    drafts: list[Draft] = []
    given = {str(path) for path in ([paths] if isinstance(paths, str | PathLike) else paths)}
    for source in list_files(paths):
        try:
            drafts += _read_source(source, how)
        except NotATableError as error:
            if str(source.path) in given:
                raise
            remark(f"Left out: {error}")  # a file of notes among tables
    if not drafts:
        raise ValueError(f"No file of {show(sorted(given))} has a table.")
    _check_constants(drafts, how)
    facets = [(draft.facet, draft.reading.where) for draft in drafts]
    apply_same([draft.facet for draft in drafts], how.same)
    _name_by_labels(drafts)
    said = use_one_name(facets, how.same, () if domain is None else domain.names)
    drafts = _without_twins(drafts)
    say_merged(said)
    _make_joint(drafts)
    for draft in drafts:
        if not draft.facet.names:
            raise draft.error(
                "{where} has one number and no variable: all other rows and columns are totals, or "
                "not numbers. A table has at least one variable of two levels."
            )
    tables = [_as_table(draft, how) for draft in drafts]
    told = {tuple(draft.facet.names): _number_said(draft, "weight") for draft in drafts}
    weights = {names: weight for names, weight in told.items() if weight is not None}
    return TableFiles(tuple(typed(tables, domain)), weights, tuple(d.reading for d in drafts))


def _read_source(source: Source, how: ReadOptions) -> list[Draft]:
    sheets = read_sheets(source, delimiter=how.delimiter, encoding=how.encoding, sheet=how.sheet)
    found = [draft for sheet in sheets for draft in _read_sheet(sheet, how, len(sheets) > 1)]
    if not found:
        raise NotATableError(_no_table(source.name, sheets))
    return found


def _check_options(how: ReadOptions) -> ReadOptions:
    if how.decimal not in (None, ".", ","):
        raise ValueError(f"decimal must be '.' or ',', got {cite(how.decimal)}.")
    if how.kind not in KINDS:
        raise ValueError(f"kind must be one of {show(KINDS)}, got {cite(how.kind)}.")
    totals = (how.totals,) if isinstance(how.totals, str) else how.totals
    if totals is not None and [text.lower() for text in totals] == ["none"]:
        totals = ()
    return replace(how, totals=totals, skip=(how.skip,) if isinstance(how.skip, str) else how.skip)


def marks_of(
    suppressed: Collection[str] | Mapping[str, tuple[float, float]],
) -> dict[str, tuple[float, float]]:
    """Return the marks of suppressed cells with their bounds: the usual ones and the given ones.

    Examples
    --------
    >>> marks_of({"*": (1, 4)})["*"], marks_of(["zz"])["zz"]
    ((1, 4), (0.0, inf))
    """
    if isinstance(suppressed, str):
        suppressed = [suppressed]
    marks = dict.fromkeys(SUPPRESSED, ANYTHING)
    for mark in suppressed:
        bounds = suppressed[mark] if isinstance(suppressed, Mapping) else ANYTHING
        if not 0 <= bounds[0] <= bounds[1]:
            raise ValueError(
                f"suppressed: the bounds of {cite(mark)} are {bounds}; least, then most."
            )
        marks[mark.strip().lower()] = bounds
    return marks


def _no_table(name: str, sheets: Sequence[Sheet]) -> str:
    rows = [row for sheet in sheets for row in sheet.rows if any(str(c).strip() for c in row)]
    if not rows:
        return f"{name} is empty: a table needs a header and rows."
    if len(rows) == 1:
        return f"{name} has a header but no rows."
    return (
        f"{name} has no table: a rectangle of numbers was looked for, with labels to the left of "
        "each row and above each column."
    )


def _all_marks(sheet: Sheet, marks: frozenset[str]) -> bool:
    cells = [c for row in sheet.rows[1:] for c in row[1:] if str(c).strip()]
    return bool(cells) and all(
        kind_of_cell(c, marks) == "mark" and not str(c).strip().isalpha() for c in cells
    )


# One sheet --------------------------------------------------------------------------------


def _read_sheet(sheet: Sheet, how: ReadOptions, several: bool) -> list[Draft]:
    marks = frozenset(how.suppressed)
    if sum(any(str(c).strip() for c in row) for row in sheet.rows) < 2:
        return []
    try:
        blocks = find_blocks(sheet, marks=marks, value=how.value, skip=how.skip)
    except NotATableError:
        if several and how.sheet is None:  # a sheet of notes
            return []
        raise
    if not blocks and not several:
        if _all_marks(sheet, marks):
            raise ValueError(
                f"{sheet.where}: none of its cells is known, nor any total: leave it out."
            )
        header = next(row for row in sheet.rows if any(str(c).strip() for c in row))
        raise NotATableError(
            f"{_no_table(sheet.source, [sheet])} If it has one, which column holds the numbers? "
            f"Its header is {show([c for c in header if c])}."
        )
    found: list[Draft] = []
    for block in blocks:
        found += _read_block(block, how)
    return found


def _read_block(block: Block, how: ReadOptions) -> list[Draft]:
    constants: dict[str, str] = {}
    if block.listed:
        _check_headers(block)
    if block.sparse and all(block.row_names):
        constants = _drop_columns(block)
    numbers = read_numbers(block, how.suppressed, how.decimal)
    found: list[Draft] = []
    for facet in make_facets(block, numbers):
        reading = Reading(
            block.sheet.where,
            marks=numbers.marks,
            flags=numbers.flags,
            skipped=list(block.skipped),
            notes=[*block.titles, *block.notes],
        )
        draft = Draft(facet, reading, block, constants=dict(constants))
        _name_axes(draft, block)
        _drop_constants(draft)
        _choose_measure(draft, how)
        _apply_base(draft, how)
        if how.kind == "auto":
            _check_levels(draft, _doubt_decimals)
        _split_totals(draft, how)
        if how.totals is None:
            _check_levels(draft, _doubt_levels)
            _check_sums_left(draft)
        _name_by_titles(draft, block)
        _find_kind(draft, how)
        found.append(draft)
    return found


def _check_headers(block: Block) -> None:
    _drop_row_names(block)
    for k, name in enumerate(block.row_names if any(block.row_names) else ()):
        if not name and len(block.row_names) > 1 and any(path[k] for path in block.rows):
            raise ValueError(f"{block.sheet.where}: column {k + 1} has no name.")
    twice = sorted({n for n in block.row_names if n and block.row_names.count(n) > 1})
    if twice:
        raise ValueError(f"{block.sheet.where}: two columns are called {show(twice)}.")


def _drop_row_names(block: Block) -> None:
    """Leave out a first column without a name that numbers the lines, as data frames have it."""
    names, rows = block.row_names, block.rows
    if len(names) < 2 or names[0] or not all(names[1:]):
        return
    column = [path[0] for path in rows]
    rise = all(text.isdecimal() for text in column)
    rise = rise and all(int(a) < int(b) for a, b in pairwise(column))
    if rise and len({path[1:] for path in rows}) == len(rows):
        block.row_names, block.rows = names[1:], [path[1:] for path in rows]
        block.skipped.append("column 1 (it numbers the lines)")


def _drop_columns(block: Block) -> dict[str, str]:
    """Leave out columns of a long form that say nothing new: attributes, constants, codes."""
    names = list(block.row_names)
    columns = {k: [path[k] for path in block.rows] for k in range(len(names))}
    constants: dict[str, str] = {}
    several = [k for k in columns if len(set(columns[k])) > 1]
    for k, name in enumerate(names):
        plain = plain_text(name)
        if len(set(columns[k])) == 1 and several and len(block.rows) > 1:
            label = columns.pop(k)[0]
            if label and not _UNIT_COLUMNS.fullmatch(plain):
                constants[name] = label
            if _UNIT_NAMES.fullmatch(plain):
                block.sheet.said["unit"] = label
            block.units.append(label)
            block.skipped.append(f"column {cite(name)} (always {cite(label)})")
    for k in sorted(columns, key=lambda k: (len(set(columns[k])), k)):
        twin = next((j for j in columns if j != k and _is_code_of(columns, names, k, j)), None)
        if twin is not None:
            del columns[k]
            block.skipped.append(f"column {cite(names[k])} (codes of {cite(names[twin])})")
    for k in list(columns):
        others = [columns[j] for j in columns if j != k]
        if _numbers_lines(others, columns[k]) or _identifies_lines(others, columns[k]):
            del columns[k]
            block.skipped.append(f"column {cite(names[k])} (it numbers the lines)")
            break
    _check_same_columns(block, [names[k] for k in columns], list(columns.values()))
    block.row_names = [re.sub(r"(?i)[_ ](name|label)$", "", names[k]) for k in columns]
    block.rows = [tuple(columns[k][i] for k in columns) for i in range(len(block.rows))]
    return constants


def _check_same_columns(
    block: Block, names: Sequence[str], columns: Sequence[Sequence[str]]
) -> None:
    """Raise for two columns that have one label for each of the other's, such as translations."""
    seen: dict[tuple[int, ...], str] = {}
    for name, column in zip(names, columns, strict=True):
        before = seen.setdefault(tuple(map(list(column).index, column)), name)
        if before != name and len(set(column)) > 2:
            raise block.sheet.error(
                "{where}: {one!r} and {other!r} have one label for each of the other's, so "
                "they are one variable under two names, or all other combinations are zero. "
                "Use {skip} to keep one of them; if they are two variables, list the zeros.",
                one=before,
                other=name,
                skip=Argument("skip", [before]),
            )


def _numbers_lines(others: Sequence[Sequence[str]], column: Sequence[str]) -> bool:
    """Return whether a column counts the lines from 0 or 1, and the others tell them apart."""
    start = column[0]
    if start not in ("0", "1") or len(column) < 3 or not others:
        return False
    counts = all(text == str(i) for i, text in enumerate(column, int(start)))
    return counts and len(set(zip(*others, strict=True))) == len(column)


def _identifies_lines(others: Sequence[Sequence[str]], column: Sequence[str]) -> bool:
    """Return whether a column has another label in each line, and labels of others come again."""
    unique = len(set(column)) == len(column) > 3
    crossed = len(others) > 1 and all(len(set(other)) < len(column) for other in others)
    return unique and crossed and len(set(zip(*others, strict=True))) == len(column)


def _is_code_of(columns: Mapping[int, Sequence[str]], names: Sequence[str], k: int, j: int) -> bool:
    """Return whether column k only repeats column j: one label for each of its labels."""
    pairs = set(zip(columns[j], columns[k], strict=True))
    if len(pairs) != len(set(columns[j])):
        return False
    a, b = (
        re.sub(r"(?:^|[_ ])(name|label|code|id|type|typecode|sortorder)$", "", plain_text(names[x]))
        for x in (k, j)
    )
    coded, other = (
        re.search(r"(?:^|[_ ])(code|id|type|typecode|sortorder)$", plain_text(names[x]))
        for x in (k, j)
    )
    if other and not coded:
        return False
    totals = sum(is_total_word(label) for label in set(columns[j]))  # these have no code
    if _is_coded(columns, names, k, j) and len(pairs) <= len(set(columns[k])) + totals:
        return True
    beside = j == k + 1 and len(pairs) == len(set(columns[k])) > 1
    alike = a.startswith(b) or b.startswith(a)  # "age" and "Age class"
    if beside and (alike or (coded and coded[1] in ("code", "id"))):
        return True
    if a != b and not (coded and alike):
        return False
    if len(pairs) > len(set(columns[k])) or coded:
        return True
    long = [np.mean([len(text) for text in columns[x]]) for x in (k, j)]
    return bool(long[0] < long[1] or (long[0] == long[1] and k > j))


def _is_coded(columns: Mapping[int, Sequence[str]], names: Sequence[str], k: int, j: int) -> bool:
    """Return whether column k has codes, such as EMP, and column j right after it has words."""
    code = all(re.fullmatch(r"[A-Z0-9_.+-]+", text) for text in {names[k], *columns[k]})
    return j == k + 1 and code and all(re.search(r"[a-z]", text) for text in {*columns[j]})


def _name_axes(draft: Draft, block: Block) -> None:
    """Give axes the names that their labels begin with: ``age=young``."""
    facet, names = draft.facet, list(draft.facet.names)
    columns = len(names) - len(block.columns[0]) if not block.listed else len(names)
    for k in range(len(names)):
        if not names[k] or k >= columns:
            said, labels = split_labels(facet.labels[k])
            if said and (not names[k] or names[k] == said):
                names[k], facet.labels[k] = said, labels
                block.corner = True
    draft.facet = replace(facet, names=names)


def _name_by_titles(draft: Draft, block: Block) -> None:
    """Give axes that have no name those that titles, the file and their labels say."""
    facet = draft.facet
    titles = [*block.titles, block.sheet.name, *facet.units]
    own = facet.names if block.listed else ["" if is_no_name(n) else n for n in facet.names]
    found = find_names(own, facet.labels, titles, block.sheet.stem)
    facet.names = [name or before for name, before in zip(found, facet.names, strict=True)]
    draft.candidates = [*names_in_title(titles), *asked_in_title(titles)]
    block.corner = block.corner or bool(names_in_stem(block.sheet.stem))


def _drop_constants(draft: Draft) -> None:
    """Leave out variables of one level, where others have more, and years of no known number."""
    facet = draft.facet
    for k, known in enumerate(facet.labels):
        open_ = np.isnan(facet.by_level(k)) & (facet.by_level(k, facet.high) == np.inf)
        gone = np.flatnonzero(open_.all(axis=1)).tolist()
        if 0 < len(gone) < len(known) and concept_of_labels([*known] * 2) == "Year":
            draft.reading.skipped.append(f"{show([known[i] for i in gone])} (no number is given)")
            facet = facet.take(k, [i for i in range(len(known)) if i not in gone])
    while len(facet.names) > 1:
        one = [k for k, known in enumerate(facet.labels) if len(known) == 1]
        if not one or len(one) == len(facet.names):
            break
        k = one[-1]
        label = facet.labels[k][0]
        if facet.names[k] and not label:
            raise ValueError(
                f"{draft.reading.where}, line {facet.lines.max()}: the label of "
                f"{cite(facet.names[k])} is empty."
            )
        plain = plain_text(facet.names[k])
        if plain and not _UNIT_COLUMNS.fullmatch(plain):
            draft.constants[facet.names[k]] = label
        if _UNIT_NAMES.fullmatch(plain):
            draft.block.sheet.said["unit"] = label
        draft.reading.skipped.append(f"{facet.names[k] or 'a label'} (always {cite(label)})")
        facet = replace(facet.drop(k, 0), units=[*facet.units, label])
    draft.facet = facet


# Measures ---------------------------------------------------------------------------------


def _is_measure(labels: Sequence[str], name: str) -> bool:
    if _UNIT_COLUMNS.fullmatch(plain_text(name)) and len(labels) > 1:
        return True
    units = [unit_word(label) for label in labels if label and not is_total_word(label)]
    return len(set(labels)) > 1 and len(units) > 1 and all(units) and len(set(units)) > 1


def _choose_measure(draft: Draft, how: ReadOptions) -> None:
    """Keep one of several numbers for the same cell: the count, where its shares stand beside."""
    k = next(
        (
            k
            for k, known in enumerate(draft.facet.labels)
            if _is_measure(known, draft.facet.names[k])
        ),
        None,
    )
    pick = None
    if k is not None:
        labels = draft.facet.labels[k]
        pick = _pick_measure(draft, k, labels, how)
    else:
        for axis in range(len(draft.facet.names)):
            found = _percent_of(draft.facet, axis)
            if found is not None:
                k, pick = axis, found
                break
    if k is None or pick is None:
        return
    labels = draft.facet.labels[k]
    gone = [label for i, label in enumerate(labels) if i != pick and label]
    draft.reading.skipped.append(f"{show(gone)} (beside {cite(labels[pick] or 'the numbers')})")
    facet = draft.facet
    units = [*facet.units, labels[pick]]
    if ALL in labels and labels.index(ALL) != pick:  # not split into units: counts
        facet = _fill_from(facet, k, pick, labels.index(ALL))
    elsewhere = [u for u in facet.units if not unit_word(u)]
    facet = replace(facet.drop(k, pick), units=[*elsewhere, *units[-1:]], percent=False)
    for axis in range(len(facet.names)):  # levels that only the other numbers have
        there = facet.by_level(axis, facet.lines).any(axis=1)
        facet = facet.take(axis, np.flatnonzero(there).tolist())
    draft.facet = facet
    _drop_constants(draft)
    if unit_word(labels[pick]) == "percent":
        draft.facet.percent = True
    _set_digits(draft.facet)


def _fill_from(facet: Facet, axis: int, pick: int, other: int) -> Facet:
    """Take cells that one level of an axis lacks from another one."""
    arrays = {}
    absent = np.take(facet.lines, pick, axis) == 0
    for key in ("values", "low", "high", "lines"):
        array = np.moveaxis(getattr(facet, key).copy(), axis, 0)
        array[pick] = np.where(absent, array[other], array[pick])
        arrays[key] = np.moveaxis(array, 0, axis)
    return replace(facet, **arrays)


def _set_digits(facet: Facet) -> None:
    known = facet.values[~np.isnan(facet.values)]
    if len(known) and np.all(known == np.floor(known)):
        facet.digits = 0


def _pick_measure(draft: Draft, k: int, labels: Sequence[str], how: ReadOptions) -> int:
    if how.value is not None:
        asked = [i for i, label in enumerate(labels) if plain_text(label) == plain_text(how.value)]
        if asked:
            return asked[0]
    units = [_measure_word(label) for label in labels]
    for kind in ("count", "percent"):
        found = [i for i, unit in enumerate(units) if unit == kind]
        if len(found) == 1:
            return found[0]
        if len(found) > 1:
            break
    raise draft.error(
        "{where}: each cell has several numbers, {labels}. Which one should be used? Use "
        "{one} or {other}.",
        labels=show([label for label in labels if label]),
        one=Argument("value", labels[0]),
        other=Argument("value", labels[1]),
    )


def _measure_word(label: str) -> str:
    plain = plain_text(label)
    if plain in ("nr", "ths", "ths_per", "value", "per", "p", "ps", "hab", "units", "unit"):
        return "count"
    if plain in ("pc", "pc_tot", "pct"):
        return "percent"
    return unit_word(label)


def _percent_of(facet: Facet, axis: int) -> int | None:
    """Return the level of an axis of two whose numbers the other has as percentages."""
    if len(facet.labels[axis]) != 2 or facet.values.size < 8:
        return None
    lines = np.moveaxis(facet.values, axis, 0)
    for pick in (0, 1):
        counts, shares = lines[pick], lines[1 - pick]
        there = ~(np.isnan(counts) | np.isnan(shares)) & (counts > 0)
        if there.sum() < 4 or np.nanmax(shares) > 100.5 or np.nanmax(counts) <= 100.5:
            continue
        slack = 0.51 * facet.digit
        for kept in [(), *((a,) for a in range(counts.ndim))]:
            others = tuple(a for a in range(counts.ndim) if a not in kept)
            if not others or there.sum() - np.prod([counts.shape[a] for a in kept], initial=1) < 3:
                continue
            sums = np.nansum(shares, axis=others, keepdims=True)
            whole = np.round(sums / 100.0) * 100.0
            near = np.abs(sums - whole) <= facet.digit * np.sqrt(shares.size) + 1e-9
            expected = whole * counts / np.nansum(counts, axis=others, keepdims=True)
            fits = np.abs(shares - expected) <= slack + 1e-9
            if facet.digits and near.all() and (whole > 0).all() and fits[there].all():
                return pick
    return None


def _apply_base(draft: Draft, how: ReadOptions) -> None:
    """Multiply percentages by the number of records that stands beside them."""
    facet = draft.facet
    if len(facet.names) < 2 or how.kind in ("counts", "shares"):
        return
    for axis in range(len(facet.names)):
        labels, flat = facet.labels[axis], facet.by_level(axis)
        if len(labels) < 3 or flat.shape[1] < 2 or np.isnan(flat).any():
            continue
        for b in (0, len(labels) - 1):
            if not np.all(flat[b] == np.floor(flat[b])) or np.all(np.abs(flat[b] - 100) < 1.5):
                continue
            rest = [i for i in range(len(labels)) if i != b]
            hundred = [i for i in rest if np.all(np.abs(flat[i] - 100) <= 0.51)]
            part = [i for i in rest if i not in hundred]
            sums = flat[part].sum(axis=0)
            if len(part) < 2 or np.any(np.abs(sums - 100) > max(facet.digit * len(part), 0.11)):
                continue
            base = np.expand_dims(np.take(facet.values, b, axis), axis)
            draft.reading.skipped.append(f"{cite(labels[b])} (the number behind the percentages)")
            kept = facet.take(axis, part).times(base / 100.0, float(base.max()) / 100.0)
            draft.facet = replace(kept, percent=False, units=["n"])
            draft.reading.notes.append("percentages times the number behind them")
            return


# Totals -----------------------------------------------------------------------------------


def _split_totals(draft: Draft, how: ReadOptions) -> None:
    """Take totals out of the levels; keep them as margins, and remark on those that are off."""
    facet = draft.facet
    every = [_sums_of_axis(draft, axis, how) for axis in range(len(facet.names))]
    for axis, sums in enumerate(every):
        labels = facet.labels[axis]
        draft.totals += [(axis, labels[i]) for i in sums.children if labels[i]]
        for total, run in sums.others:
            coarse = show([labels[i] for i in run])
            draft.reading.skipped.append(f"{coarse} (another division of {cite(labels[total])})")
    for axis, sums in enumerate(every):
        draft.facet = draft.facet.take(axis, sums.leaves)
    _keep_margins(draft, facet.printed, every)
    if np.isnan(draft.facet.values).any():
        draft.facet.sums = _sums_of_parts(facet.printed, every)
    if not how.noisy:
        _check_totals(draft)


def _keep_margins(draft: Draft, known: Array, every: Sequence[Sums]) -> None:
    """Keep the totals of all levels of some variables as margins of the others."""
    root = {axis: sums.roots[0] for axis, sums in enumerate(every) if sums.is_whole}
    for size in range(1, len(root) + 1):
        for gone in combinations(root, size):
            part = known
            for axis in reversed(range(known.ndim)):
                which: Any = root[axis] if axis in gone else every[axis].leaves
                part = np.take(part, which, axis)
            kept = tuple(axis for axis in range(known.ndim) if axis not in gone)
            if kept and not np.isnan(part).all():
                draft.margins.append((kept, part))
            elif not kept and not np.isnan(part):
                draft.total = float(part)


def _sums_of_parts(known: Array, every: Sequence[Sums]) -> list[tuple[NDArray[np.intp], float]]:
    """Return subtotals with the places of their cells, which narrow down those not known."""
    leaves = [sums.leaves for sums in every]
    place = np.arange(math.prod(map(len, leaves))).reshape([len(at) for at in leaves])
    parts = [
        {i: [at.index(leaf) for leaf in sums.leaves_of(i)] for i in {*at, *sums.children}}
        for sums, at in zip(every, leaves, strict=True)
    ]
    subtotals = [
        set(sums.children) - (set(sums.roots) if sums.is_whole else set()) for sums in every
    ]
    return [
        (
            place[np.ix_(*(parts[axis][i] for axis, i in enumerate(cell)))].ravel(),
            float(known[cell]),
        )
        for cell in product(*parts)
        if any(i in subtotals[axis] for axis, i in enumerate(cell)) and not np.isnan(known[cell])
    ]


def _sums_of_axis(draft: Draft, axis: int, how: ReadOptions) -> Sums:
    facet, labels = draft.facet, draft.facet.labels[axis]
    size = len(labels)
    plain = Sums(roots=tuple(range(size)))
    told = {plain_text(label) for label in how.totals or ()}
    named = any(plain_text(label) in told for label in labels)
    if how.totals is not None and (named or not told):  # as told, and nothing else
        at = [i for i, label in enumerate(labels) if plain_text(label) in told or not label]
        if any(labels[i] for i in at) and len(at) > 1:  # of parts, or of one another
            sums = sums_of(facet, axis, lambda label: plain_text(label) in told)
            if all(i in sums.children for i in at):
                gone = {i: run for i, run in sums.children.items() if i in at}
                inside = {i for run in gone.values() for i in run}
                return Sums(gone, tuple(i for i in range(size) if i not in inside))
        return _told_sums(draft, axis, at)
    if size < 2:
        return plain
    strong = [i for i, x in enumerate(labels) if not x or _is_strong(x)]
    if how.noisy:
        return _told_sums(draft, axis, strong)
    sums = _independent_sums(facet, axis) if size > 2 else plain
    equal = [i for i in sums.roots if is_total_word(labels[i])]
    if len(equal) > 1 and _are_equal(facet, axis, equal):
        _check_two(draft, axis, equal)
    _check_difference(draft, axis, sums)
    if sums.doubtful:
        _check_doubtful(draft, axis, sums, strong)
    _check_beside(draft, axis, sums)
    left = [i for i in strong if i in sums.roots and i not in sums.children]
    if not left or (size < 3 and labels[left[0]]):
        return sums
    rest = [i for i in sums.roots if i != left[0]]
    if _is_mean(facet, axis, left[0]):
        draft.reading.skipped.append(f"{cite(labels[left[0]])} (the share of all together)")
        draft.mean = labels[left[0]]
        return Sums(sums.children, tuple(rest))
    if not labels[left[0]]:
        _check_unlabelled(draft, axis, left[0], rest)
    rest = _without_parts(draft, axis, left[0], rest)
    return Sums({**sums.children, left[0]: tuple(rest)}, (left[0],)) if rest else sums


def _check_beside(draft: Draft, axis: int, sums: Sums) -> None:
    """Raise for levels beside a total of others: it may lack them, or they are parts of these."""
    labels = draft.facet.labels[axis]
    whole = [i for i in sums.roots if i in sums.children and plain_text(labels[i]) in TOTALS]
    beside = [i for i in sums.roots if i not in sums.children and labels[i]]
    if len(whole) == 1 and beside:
        raise draft.error(
            "{where}: {label!r} of {name!r} is the sum of others without {beside}. Either "
            "{beside} is a part or a sum of the others: use {skip}; or a level that {label!r} "
            "does not have: use {totals}.",
            axis=axis,
            label=labels[whole[0]],
            beside=show([labels[i] for i in beside]),
            skip=Argument("skip", [labels[i] for i in beside]),
            totals=Argument("totals", [labels[whole[0]]]),
        )


def _check_difference(draft: Draft, axis: int, sums: Sums) -> None:
    """Raise for a sum of two levels one of which may be the difference: 2011, 2021, change."""
    labels = draft.facet.labels[axis]
    for total, run in [*sums.children.items(), *sums.doubtful]:
        if len(run) != 2 or is_total_word(labels[total]):
            continue
        for part, other in (run, run[::-1]):
            concept = concept_of_labels([labels[total], labels[other]])
            alike = concept in ("Sex", "Year")
            alike = alike and concept_of_labels([labels[other], labels[part]]) != concept
            if not alike and not _DIFFERENCE.search(plain_text(labels[part])):
                continue
            raise draft.error(
                "{where}: {part!r} may be the difference of {total!r} and {other!r}, or "
                "{total!r} the total of the other two. Use {skip} to leave the difference "
                "out, or {totals} if it is a total.",
                part=labels[part],
                total=labels[total],
                other=labels[other],
                skip=Argument("skip", [labels[part]]),
                totals=Argument("totals", [labels[total]]),
            )


def _without_parts(draft: Draft, axis: int, place: int, rest: list[int]) -> list[int]:
    """Leave out rows such as "of which ...", without which the others add up to their total.

    Raise for a total that is far from the sum of the others in most lines, whatever is left out.
    """
    facet, labels = draft.facet, draft.facet.labels[axis]
    lines = facet.by_level(axis, facet.printed)

    def misfit(kept: Sequence[int]) -> float:
        gap = np.abs(lines[list(kept)].sum(axis=0) - lines[place])
        slack = np.maximum(0.02 * np.abs(lines[place]), 3.0 * facet.digit * np.sqrt(len(kept)))
        known = ~np.isnan(gap)
        return float(np.mean(gap[known] > slack[known])) if known.any() else 0.0

    if misfit(rest) < 0.5:
        return rest
    for size in (1, 2, 3):
        for gone in combinations(rest, size):
            kept = [i for i in rest if i not in gone]
            if len(kept) > 1 and misfit(kept) == 0.0:
                draft.reading.skipped.append(f"{show([labels[i] for i in gone])} (part of others)")
                return kept
    raise draft.error(
        "{where}: {label!r} of {name!r} is not the sum of the others. Either some of them are "
        "parts of others: use {skip}; or it is a level: use {none}.",
        axis=axis,
        label=labels[place],
        skip=Argument("skip", [labels[rest[-1]]]),
    )


def _independent_sums(facet: Facet, axis: int) -> Sums:
    """Return sums that lines without totals show: a line of totals proves nothing of its own."""
    every = sums_of(facet, axis, is_total_word)
    part = facet
    for other in range(len(facet.names)):
        if other != axis:
            part = part.take(other, sums_of(facet, other, is_total_word).leaves)
    alone = sums_of(part, axis, is_total_word, facet)
    if alone.children == every.children or part.values.shape == facet.values.shape:
        return every
    lines = part.by_level(axis)
    lost = tuple((i, run) for i, run in every.children.items() if i not in alone.children)
    untested = [np.isnan(lines[[i, *run]]).any(axis=0).all() for i, run in lost]
    if all(untested):
        return every
    return replace(alone, doubtful=(*alone.doubtful, *lost))


def _are_equal(facet: Facet, axis: int, at: Sequence[int]) -> bool:
    lines = facet.by_level(axis)[list(at)]
    return bool(np.all(np.ptp(np.nan_to_num(lines, nan=-1.0), axis=0) <= facet.digit))


def _check_unlabelled(draft: Draft, axis: int, place: int, rest: Sequence[int]) -> None:
    """Raise for numbers without a label that are not the sum of the others."""
    facet = draft.facet
    lines = facet.by_level(axis, facet.printed)
    gap = np.abs(lines[list(rest)].sum(axis=0) - lines[place])
    if np.any(gap > facet.digit * np.sqrt(len(rest) + 1.0) + 1e-9):
        line = int(np.take(facet.lines, place, axis).max())
        raise ValueError(
            f"{draft.reading.where}, line {line}: the label of {cite(facet.names[axis])} is empty, "
            "and the numbers are not the sum of the others."
        )


def _is_strong(label: str) -> bool:
    return is_total_word(label) and plain_text(label) not in DOUBTFUL


def _told_sums(draft: Draft, axis: int, at: Sequence[int]) -> Sums:
    labels = draft.facet.labels[axis]
    rest = [i for i in range(len(labels)) if i not in at]
    if not at or not rest:
        return Sums(roots=tuple(range(len(labels))))
    if len(at) > 1:
        _check_two(draft, axis, at)
    return Sums({at[0]: tuple(rest)}, (at[0],))


def _check_levels(draft: Draft, doubt: "_Doubt") -> None:
    """Raise for labels that are no levels beside others: totals, parts, rates, other things."""
    for axis in range(len(draft.facet.labels)):
        for odd, why in doubt(draft, axis):
            if odd:
                raise draft.error(
                    "{where}: {odd} of {name!r} {why}, or levels as the others are. Use {skip} to "
                    "leave out what is not a level, or {none} if all are levels.",
                    axis=axis,
                    odd=show(odd),
                    why=why,
                    skip=Argument("skip", odd),
                )


#: Yields labels of an axis that may be no levels, and what they may be instead.
_Doubt = Callable[[Draft, int], Iterator[tuple[list[str], str]]]


def _doubt_decimals(draft: Draft, axis: int) -> Iterator[tuple[list[str], str]]:
    """Yield labels of numbers with decimals or percent signs beside others that have none."""
    facet, labels = draft.facet, draft.facet.labels[axis]
    there = (facet.by_level(axis, facet.lines) > 0) & (np.nan_to_num(facet.by_level(axis)) != 0)
    least = 1 if any(map(is_mean, labels)) else 3
    for what, array in (("decimals", facet.decimals), ("percent signs", facet.signed)):
        some = ((facet.by_level(axis, array) > 0) & there).sum(axis=1)
        enough = there.sum(axis=1) >= (least if what == "decimals" else 1)
        odd, others = enough & (some >= 0.6 * there.sum(axis=1)), enough & (some == 0)
        if odd.any() and others.any() and facet.grain is None:
            few = odd if odd.sum() <= others.sum() else others
            yield _where(labels, few), f"may be another kind of number: some have {what}, not all"


def _doubt_levels(draft: Draft, axis: int) -> Iterator[tuple[list[str], str]]:
    """Yield labels of an axis that may be no levels, and what they may be instead."""
    facet, labels = draft.facet, draft.facet.labels[axis]
    plain = [plain_text(label) for label in labels]
    lines = np.nan_to_num(facet.by_level(axis))
    most = [np.all(line >= lines) and np.any(line > lines) for line in lines]
    pairs = zip(labels, most, strict=True)
    named = [_is_strong(x) or (len(labels) > 2 and is_total_word(x) and m) for x, m in pairs]
    whole = _is_whole(draft, axis)
    if len(labels) == 2 and not whole:  # Males, Population
        sexes = [len(x) > 2 and concept_of_labels([x] * 2) == "Sex" for x in labels]
        both = zip((0, 1), named, most, strict=True)
        named = [n or (m and sexes == [i, not i]) for i, n, m in both]
    if not whole:
        sorts = {sort: label for label in labels if (sort := sort_of_things(label))}
        yield list(sorts.values()) if len(sorts) > 1 else [], "may count different things"
        grow = min(lines.shape[0] - 1, lines.shape[1]) > 2 and concept_of_labels(labels) != "Year"
        grow = grow and bool(np.all(np.diff(lines, axis=0) > 0))
        yield labels[:-1] if grow else [], "grow in every line and may be running sums"
    yield _where(labels, named), "may be totals, to which the others do not add up"
    ends = [plain[i] in _OF_ALL and _is_mean(facet, axis, i) for i in range(len(labels))]
    yield _where(labels, ends), "may be rates or means of all together"
    yield _where(labels, [_PART.match(x) for x in plain]), "may be parts of others"
    odd = [
        is_rate_level(x) or is_mean(x) or re.sub(r"^(?:se|sd) ", "", x) in set(plain) - {x}
        for x in plain
    ]
    if not all(odd):
        yield _where(labels, odd), "may be another kind of number than the others"
    known = sorted((e, x) for x in labels if (e := interval_of(x)) is not None)
    for (one, label), (other, beside) in combinations(known, 2):
        if other[0] < one[1] - 1.0 or one == other:  # 15-20 and 20-25 share an edge
            yield [label, beside], "overlap and may be sums of one another"


def _where(labels: Sequence[str], which: Iterable[Any]) -> list[str]:
    return [label for label, yes in zip(labels, which, strict=True) if yes]


def _check_sums_left(draft: Draft) -> None:
    """Raise for a level that is the sum of some others, or their mean, beyond chance."""
    facet = draft.facet
    for axis, labels in enumerate(facet.labels):
        lines, size = facet.by_level(axis), len(labels)
        lines = lines[:, ~np.isnan(lines).any(axis=0)]
        if not 2 < size <= 40 or not lines.size:
            continue
        means = [(lines.sum(axis=0) - line) / (size - 1) for line in lines]
        masks = _subsets_of(size)
        sums = masks @ lines
        slack = 0.51 * facet.digit * np.sqrt(size) if facet.digits else 1e-9
        for i in range(size):
            places = np.log10(np.maximum(lines[i] / (2.0 * slack + facet.digit), 1.0)).sum()
            if places - np.log10(len(masks)) < SURE:
                continue
            fits = (np.abs(sums - lines[i]) <= slack + 1e-9 * lines[i]).all(axis=1) & ~masks[:, i]
            mean = bool(np.all(np.abs(means[i] - lines[i]) <= 0.51 * facet.digit))
            if fits.any() or mean:
                parts = [labels[k] for k in np.flatnonzero(masks[np.argmax(fits)])]
                parts = [label for label in labels if label != labels[i]] if mean else parts
                raise draft.error(
                    "{where}: {label!r} of {name!r} equals the {sum} of {parts}, so it may be "
                    "their total or mean, one of them a difference, or a level. Use {one} if it is "
                    "a total, {skip} to leave it out, {none} if all are levels.",
                    axis=axis,
                    sum="mean" if mean else "sum",
                    label=labels[i],
                    parts=show(parts),
                    one=Argument("totals", [labels[i]]),
                    skip=Argument("skip", [labels[i]]),
                )


@cache
def _subsets_of(size: int) -> NDArray[np.bool_]:
    """Return subsets of two and more levels: all of them, or all levels but two."""
    if size <= _FEW:
        masks = (np.arange(1 << size)[:, None] >> np.arange(size)) & 1 == 1
    else:
        apart = np.eye(size, dtype=bool)
        masks = ~np.concatenate([a | apart for a in apart])
    return np.asarray(masks[masks.sum(axis=1) > 1])


def _check_two(draft: Draft, axis: int, at: Sequence[int]) -> None:
    if len(at) < 2:
        return
    labels = draft.facet.labels[axis]
    raise draft.error(
        "{where}: {name!r} has two totals, {one!r} and {other!r}. Leave one out by {skip}, or "
        "use {totals}.",
        axis=axis,
        one=labels[at[0]],
        other=labels[at[1]],
        skip=Argument("skip", [labels[at[1]]]),
        totals=Argument("totals", [labels[at[0]]]),
    )


def _is_mean(facet: Facet, axis: int, place: int) -> bool:
    """Return whether a level of percentages is that of all others together, which is no sum."""
    if len(facet.names) < 2:
        return False
    others = [i for i in range(len(facet.labels[axis])) if i != place]
    lines = facet.by_level(axis)
    sums = np.nansum(lines[others], axis=0)
    slack = 2 * facet.digit
    inside = (lines[place] >= lines[others].min(axis=0) - slack) & (
        lines[place] <= lines[others].max(axis=0) + slack
    )
    return bool(
        inside.all() and np.all(np.abs(sums - lines[place]) > 4 * slack) and len(others) > 1
    )


def _check_doubtful(draft: Draft, axis: int, sums: Sums, strong: Sequence[int]) -> None:
    """Raise where a level may be a total or not: its sum agrees, but few numbers say so."""
    labels = draft.facet.labels[axis]
    totals = [i for i in sorted({*sums.children, *strong}) if labels[i]]
    for level, run in sums.doubtful:  # all that is to be said, at once
        if labels[level] and not any(i in (*totals, level) for i in run):
            totals.append(level)
    for level, run in sums.doubtful:
        if level in strong or any(i in strong for i in run) or not labels[level]:
            continue
        parts = " + ".join(cite(labels[i]) for i in run[:3]) + (" + ..." if len(run) > 3 else "")
        raise draft.error(
            "{where}: {label!r} of {name!r} equals {parts}, so it may be their total or, "
            "by chance, a level. Use {one} if it is a total, {none} if it is a level.",
            axis=axis,
            label=labels[level],
            parts=parts,
            one=Argument("totals", [labels[i] for i in dict.fromkeys([level, *totals])]),
        )


def _check_totals(draft: Draft) -> None:
    """Remark on the total that is furthest from the sum of its cells."""
    facet = draft.facet
    _check_nil(draft)
    wrong = [each for axes, claims in draft.claims for each in _wrong_totals(facet, axes, claims)]
    base = rounding_base(facet.values) if facet.whole else 1.0
    if base > 1.0 and not wrong and _is_off(draft):
        draft.remark(
            "{where}: all numbers are multiples of {base:g}, and totals are off by as much as "
            "rounding makes them. Use {rounded} if they were rounded.",
            base=base,
            rounded=Argument("rounded", int(base)),
        )
    if wrong:
        _, words = max(wrong)
        more = f" ({len(wrong)} such, this is the worst)" if len(wrong) > 1 else ""
        remark(
            f"{draft.reading.where}, table {cite(tuple(facet.names))}: {words}{more}. The cells "
            "are used as they are."
        )


def _check_nil(draft: Draft) -> None:
    """Raise where totals say that a mark of nil stands for a number."""
    facet = draft.facet
    nil = facet.decimals < 0
    if not nil.any():
        return
    base = rounding_base(facet.values, 3) if facet.whole else facet.digit
    slack = (0.0 if base == 1.0 else 1.5 * base * np.sqrt(facet.values.size)) + 1e-9
    for axes, claims in draft.margins:
        missing = claims - facet.sum_to(axes) > slack  # false where a cell is not known
        if missing.any() and np.all((facet.sum_to(axes, nil) > 0) | ~missing):
            raise draft.error(
                "{where}: '-' is nil by custom, but the totals of its lines are larger than "
                "the sums of the other numbers. Use {gone} if it stands for a number that is "
                "not given, or {none} if the totals are no totals.",
                gone=Argument("suppressed", ["-"]),
            )


def _is_off(draft: Draft) -> bool:
    """Return whether a total is not exactly the sum of its cells."""
    facet = draft.facet
    gaps = (facet.sum_to(axes) - claims for axes, claims in draft.claims)
    return any(bool(np.any(np.abs(gap) > 1e-9)) for gap in gaps)  # false where not known


def _wrong_totals(facet: Facet, axes: tuple[int, ...], claims: Array) -> list[tuple[float, str]]:
    """Return the totals to which cells cannot add up, even if each is rounded, and by how much."""
    known = ~np.isnan(facet.values)
    number = facet.sum_to(axes, known.astype(float))
    found = facet.sum_to(axes, np.where(known, facet.values, 0.0))
    whole = number * claims.size == facet.values.size
    slack = 0.5 * facet.digit * (number + 1)
    if facet.whole:
        base = rounding_base(facet.values)
        slack = np.full_like(number, 1e-9) if base == 1.0 else 1.5 * base * (number + 1)
    slack = slack + 1e-9 * np.abs(claims)
    wrong = (found - claims > slack) | (whole & (claims - found > slack))  # false where not known
    said = []
    for cell in zip(*np.nonzero(wrong), strict=True) if axes else [()] * int(wrong):
        at = ", ".join(
            f"{facet.names[a]}={cite(facet.labels[a][i])}" for a, i in zip(axes, cell, strict=True)
        )
        what = f"the total of {at}" if axes else "the grand total"
        sign = "add up to" if whole[cell] else "that are known add up to"
        words = f"{what} is given as {claims[cell]:.10g}, but its cells {sign} {found[cell]:.10g}"
        said.append((float(abs(found[cell] - claims[cell])), words))
    return said


# Kinds ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Clues:
    """What words and numbers say about the kind of a table."""

    words: list[str]  # texts that say the unit
    hints: list[str]  # all texts that may say what the numbers are
    percent: bool
    counted: bool  # a unit or header says so: "Number"
    scale: float  # 1, or a thousand, a million, ...
    fractions: bool  # numbers with decimals
    added: bool  # printed totals, or the user, show that the numbers add up
    one: float  # 1, 100 or 1,000 if all numbers are shares of it

    @staticmethod
    def of(draft: Draft, how: ReadOptions) -> "_Clues":
        """Gather them."""
        facet, notes = draft.facet, draft.reading.notes
        short = [note.strip("() ") for note in notes if len(note) <= 40]
        scales = [note for note in short if max(map(scale_word, (note, f"({note})"))) > 1.0]
        words = [plain_text(facet.value), *map(str, facet.units), *scales]
        percent = facet.percent or any(map(is_percent, [*words, *facet.names]))
        percent = percent or plain_text(facet.value) in SHARE_NAMES
        counted = plain_text(facet.value) in COUNT_NAMES - {"weight"}  # of a sample, or in kg
        counted = counted or any(map(is_count_word, words))
        known = facet.values[~np.isnan(facet.values)]
        return _Clues(
            words,
            [facet.value, *facet.units, *notes],
            percent,
            counted,
            max(map(scale_word, words)),
            bool(np.any(known != np.floor(known))),
            bool(draft.margins) or draft.total is not None or how.noisy,
            _total_share(draft),
        )


def _find_kind(draft: Draft, how: ReadOptions) -> None:
    """Say what the numbers are: counts, thousands, shares of all, of rows or of columns."""
    kind, clues = draft.said.get("kind", how.kind).lower(), _Clues.of(draft, how)
    if "kind" in draft.said and not kind.startswith(("count", "share", "percent", "%")):
        raise ValueError(
            f"{draft.reading.where}: the comment '# kind: {draft.said['kind']}' must say counts, "
            "shares or percent."
        )
    facet, draft.kind = draft.facet, "counts"
    if kind in ("rows", "columns"):
        split = len(facet.names) - 1
        draft.given = tuple(range(split)) if kind == "rows" else (split,)
        draft.kind, draft.whole = "shares", _adds_up(draft, draft.given) or 100.0
    elif kind.startswith(("share", "percent", "%")):
        draft.kind, draft.whole = "shares", clues.one or 0.0
    elif kind == "auto":
        _decide_kind(draft, clues)
        _prove_kind(draft, clues)
    _conclude_kind(draft, clues.scale)


def _decide_kind(draft: Draft, clues: _Clues) -> None:
    """Take the kind that the sums of the numbers show."""
    sure = clues.percent or (clues.fractions and not (clues.counted and clues.one != 1.0))
    if clues.scale > 1.0:
        return
    if clues.one and sure:
        draft.kind, draft.whole = "shares", clues.one
        return
    _find_conditional(draft, clues)
    if draft.kind == "counts" and clues.percent and not clues.counted:
        raise _no_whole(draft)


def _conclude_kind(draft: Draft, scale: float) -> None:
    """Multiply numbers by their unit, and say what they are."""
    names = [draft.facet.names[k] for k in draft.given]
    said = {1.0: "shares", 100.0: "percentages", 1000.0: "shares per 1,000"}
    draft.reading.kind = "counts"
    if draft.kind == "shares":
        more = f" for each {', '.join(names)}" if names else ""
        draft.reading.kind = said.get(draft.whole, "shares") + more
    elif scale > 1.0:
        draft.scale(scale)
        unit = {1e3: "thousands", 1e6: "millions"}.get(scale, f"units of {scale:,.0f}")
        draft.reading.kind = f"counts, given in {unit}"
    if draft.given:
        draft.facet.sums = []  # of shares of different wholes
    if draft.whole == 1000.0:
        draft.scale(0.1)
        draft.whole = 100.0


#: A unit at the end of a title or header: "(GWh)", "(m3)".
_SHORT_UNIT = re.compile(r"[(\[]([A-Za-z]{1,4}[23²³]?(?:/[A-Za-z]+)?)[)\]]\s*$")
#: Means and rates are alike in size; counts of cases seldom are, unless their file says counts.
_ALIKE = 4.0


def _prove_kind(draft: Draft, clues: _Clues) -> None:
    """Raise unless sums, words or sizes show that numbers are counts, or shares of a whole.

    Totals that add up are a proof whatever words say; so is a column called "Number". Else words
    that speak of something else, decimals, and numbers that are much alike are asked about.
    """
    facet = draft.facet
    draft.reading.proof = "sums" if draft.kind == "shares" or clues.added else "words"
    if draft.kind == "shares":
        return
    values = facet.values[~np.isnan(facet.values) & (facet.values != 0.0)]
    if np.any(values < 0.0) and not clues.added:  # which is refused for its own reason
        return
    said, seen = _doubt_kind(draft, clues, values)
    if said:
        raise draft.error(
            "{where}: {why}, which do not add up: multiply them by the number of cases that each "
            "refers to. Only if they are counts in spite of this, use {kind}.",
            why=said,
            kind=Argument("kind", "counts"),
        )
    if seen:
        raise draft.error(
            "{where}: {why}, so that they may be rates or means, which do not add up: multiply "
            "these by the number of cases that each refers to. Use {kind} if they are counts.",
            why=seen,
            kind=Argument("kind", "counts"),
        )
    _check_battery(draft)
    if draft.reading.proof == "sizes":
        draft.remark(
            "{where}: no total and no word such as 'Number' says what the numbers are. They "
            "are taken as counts.",
        )
    if clues.one == 100.0 and not (clues.counted or clues.fractions):
        draft.remark(
            "{where}: the numbers add up to 100. They are taken as counts; use {kind} if they "
            "are percentages.",
            kind=Argument("kind", "percent"),
        )


def _doubt_kind(draft: Draft, clues: _Clues, values: Array) -> tuple[str, str]:
    """Return what says that numbers are no counts, and why they may be none.

    Both are empty where something proves that they are counts.
    """
    facet = draft.facet
    means = [word for word in [facet.value, *facet.units] if is_mean(word)]
    if means:
        return f"{cite(means[0])} says that the numbers are means, prices, weights or the like", ""
    if draft.mean:
        return "", f"the numbers lie around {cite(draft.mean)}, which is no sum of them"
    if clues.added or (clues.counted and not clues.fractions):
        return "", ""
    means = [hint for hint in clues.hints if is_measure(hint)]
    if means and not clues.counted:
        return f"{cite(means[0])} says that the numbers are means, prices, weights or the like", ""
    rates = [word for word in clues.words if is_rate(word)]
    if rates and not clues.counted:
        return f"{cite(rates[0])} says that the numbers are rates", ""
    things = clues.counted or draft.block.corner
    things = things or any(map(sort_of_things, [*clues.words, *draft.block.titles]))
    short = [m[1] for hint in clues.hints if (m := _SHORT_UNIT.search(hint)) and not m[1].isupper()]
    unit = draft.said.get("unit", "") or "".join(short[:1])
    if unit and not things and not _is_known_unit(unit):
        return "", f"the unit of the numbers is {cite(unit)}, and they have no total"
    if clues.fractions and clues.scale == 1.0 and facet.grain is None:
        return "", "the numbers have decimals and no total"
    if things or not len(values):
        return "", ""
    draft.reading.proof = "sizes"
    if values.max() < _ALIKE * values.min():
        return "", (
            "no total and no word such as 'Number' says what the numbers are, and they are alike "
            f"({values.min():g} to {values.max():g})"
        )
    return "", ""


def _is_known_unit(text: str) -> bool:
    return scale_word(text) > 1.0 or bool(_measure_word(text) or sort_of_things(text))


def _check_battery(draft: Draft) -> None:
    """Raise for levels that have the same total each, as several questions to the same cases."""
    facet = draft.facet
    for axis, labels in enumerate(facet.labels if len(facet.names) == 2 else ()):
        sums = facet.by_level(axis).sum(axis=1)
        if len(labels) > 2 and np.ptp(sums) == 0.0 and sums[0] >= _BATTERY:
            raise draft.error(
                "{where}: each level of {name!r} adds up to {whole:,.10g}, so {labels} may be "
                "several questions to the same cases, or levels of one variable. Use {kind} if "
                "they are levels; else give each question as a table of its own.",
                axis=axis,
                whole=float(sums[0]),
                labels=show(labels),
                kind=Argument("kind", "counts"),
            )


def _find_conditional(draft: Draft, clues: _Clues) -> None:
    """Find variables for each of whose levels the numbers add up to 1, 100 or 1,000."""
    facet, percent, counted = draft.facet, clues.percent, clues.counted
    ways: list[tuple[tuple[int, ...], float]] = []
    for size in range(1, len(facet.names)):
        sets = combinations(range(len(facet.names)), size)
        ways = ways or [(given, whole) for given in sets if (whole := _adds_up(draft, given))]
    if not ways:
        return
    given, whole = ways[0]
    names = ", ".join(facet.names[k] or "column" for k in given)
    if len(ways) > 1 or not (percent or clues.fractions or (counted and whole == 1.0)):
        if counted and not percent:
            return
        other = ", ".join(facet.names[k] or "the columns" for k in ways[-1][0])
        raise draft.error(
            "{where}: the numbers of each {names} add up to {whole:g}, so they may be "
            "percentages within {names} or {rest}. Use {rows} (or {columns}) for percentages "
            "within the rows (or the columns), or {counts}.",
            names=names,
            whole=whole,
            rest=f"within {other}" if len(ways) > 1 else "counts",
            rows=Argument("kind", "rows"),
            columns=Argument("kind", "columns"),
            counts=Argument("kind", "counts"),
        )
    draft.kind, draft.whole, draft.given = "shares", whole, given


def _no_whole(draft: Draft) -> ValueError:
    """Return the error for percentages that add up to 100 in no way: which sums, what is hidden."""
    facet = draft.facet
    sums = [f"all together to {np.nansum(facet.values):.5g}"]
    for axis, labels in enumerate(facet.labels if len(facet.names) > 1 else ()):
        lines = list(zip(labels, np.nansum(facet.by_level(axis), axis=1), strict=True))
        sums.append("those of " + ", ".join(f"{cite(x)} to {total:.5g}" for x, total in lines[:3]))
    gone = np.argwhere(np.isnan(facet.values))
    cells = [show([facet.labels[k][i] for k, i in enumerate(at)]) for at in gone[:3]]
    more = ", ..." if len(gone) > 3 else ""
    hidden = f" without the cells that are not known ({'; '.join(cells)}{more})" if cells else ""
    two = len(facet.names) > 1
    kinds = ("percent", "rows", "columns") if two else ("percent",)
    return draft.error(
        "{where}: the numbers are percentages, but they do not add up to 100{hidden}: {sums}. Use "
        "{ways} if they are percentages of all{or_rows}, or {counts} if they are counts; multiply "
        "other percentages by the number of cases that each refers to.",
        hidden=hidden,
        sums=", ".join(sums),
        ways=join_messages([Argument("kind", kind) for kind in kinds], ", "),
        or_rows=", within rows, within columns" if two else "",
        counts=Argument("kind", "counts"),
    )


def _total_share(draft: Draft) -> float:
    """Return 1, 100 or 1,000 if all numbers are shares of it, else 0.

    Where some are not known, only a printed total or the name of their column says so.
    """
    facet = draft.facet
    if not np.isnan(facet.values).any():
        return _adds_up(draft, ())
    known = [draft.total] if draft.total is not None else []
    known += [float(claims.sum()) for _, claims in draft.margins if not np.isnan(claims).any()]
    slack = 2.0 * facet.digit * np.sqrt(facet.values.size) + 1e-9
    named = plain_text(facet.value) in SHARE_NAMES or (draft.block.corner and facet.percent)
    below = float(np.nansum(facet.values))
    for whole in (1.0, 100.0):
        near = bool(known) and facet.digits > 0
        near = near and all(abs(total - whole) <= slack for total in known)
        if slack <= 0.1 * whole and (near or (named and not known and below <= whole + slack)):
            return whole
    return 0.0


def _adds_up(draft: Draft, given: tuple[int, ...]) -> float:
    """Return 1, 100 or 1,000 if the numbers of each group add up to it within rounding, else 0."""
    facet = draft.facet
    gone = np.isnan(facet.values)
    sums, lost, there = (
        np.atleast_1d(facet.sum_to(given, array))
        for array in (np.where(gone, 0.0, facet.values), gone, facet.values > 0)
    )
    full, used = lost == 0, there > 0
    for axes, claims in draft.margins if given else ():  # printed totals of groups with gaps
        if axes == given:
            told = ~full & ~np.isnan(claims)
            sums, full = np.where(told, claims, sums), full | told
    least = 1 if facet.digits and not full.all() else 2  # one sum of decimals is no chance
    if given and ((used & full).sum() < least or not used.all()):
        return 0.0
    size = np.sqrt(facet.values.size / max(sums.size, 1) / 12.0)
    for whole in (1.0, 100.0, 1000.0):
        slack = 4.0 * facet.digit * size + (1e-6 if given else 0.01) * whole
        near = np.abs(sums - whole) <= slack
        below = sums <= whole + slack
        exact = not given and abs(sums[0] - whole) <= 1e-6  # 0.4 and 0.6
        if (
            (exact or slack <= 0.1 * whole)
            and (near | (~full & below))[used].all()
            and (near & full).any()
        ):
            return whole
    return 0.0


# All files --------------------------------------------------------------------------------


def _check_constants(drafts: Sequence[Draft], how: ReadOptions) -> None:
    """Raise where files are about different parts: one of 2019, another of 2021."""
    seen: dict[str, tuple[str, str]] = {}
    skip = {plain_text(text) for text in how.skip}
    variables = {plain_text(n): d for d in drafts for n in d.facet.names}
    for draft in drafts:
        for name, label in draft.constants.items():
            key = plain_text(name)
            if key in skip or is_total_word(label):
                continue
            before = seen.setdefault(key, (label, draft.reading.where))
            other = variables.get(key)
            if before[0] == label and other is None:
                continue
            against = (
                f"{before[1]} about {name} = {before[0]}"
                if before[0] != label
                else f"{other.reading.where if other else ''} about several"
            )
            raise draft.error(
                "{where} is about {name} = {label} only, {against}. Use {skip} if they may be "
                "used together, or leave one out.",
                name=name,
                label=label,
                against=against,
                skip=Argument("skip", [name]),
            )


def _name_by_labels(drafts: Sequence[Draft]) -> None:
    """Name variables that no file names after their labels, where these are parts of a whole.

    Raise where they may be different numbers, such as births and deaths, and where another table
    has some of the labels, so that the variable may be the same.
    """
    for draft in drafts:
        facet = draft.facet
        for axis, labels in enumerate(facet.labels):
            own = facet.names[axis]
            named = _is_whole(draft, axis) and not _is_shared(draft, axis, drafts)
            heading = own in facet.headings and not named and not concept_of_labels(labels)
            heading = heading and not any(is_same_name(own, name) for name in draft.candidates)
            if not heading and (not is_no_name(own) or (own and draft.block.listed)):
                continue
            if not named:
                raise _unnamed(draft, labels, drafts)
            made = "/".join(labels[:3]) + ("/..." if len(labels) > 3 else "")
            for other in drafts:  # other tables with the same columns
                if other.block is draft.block:
                    names = zip(other.facet.names, other.facet.labels, strict=True)
                    other.facet.names = [made if (n, x) == (own, labels) else n for n, x in names]
            draft.remark(
                "{where}: the variable of the labels {labels} has no name and is called "
                "{made!r}. Use {same} to name it.",
                labels=show(labels),
                made=made,
                same=_name_option(draft, labels, ()),
            )
        twice = [n for n in facet.names if facet.names.count(n) > 1]
        if twice:
            raise ValueError(f"{draft.reading.where}: two variables are called {cite(twice[0])}.")


def _is_whole(draft: Draft, axis: int) -> bool:
    """Return whether labels are surely parts of a whole.

    They are if the numbers add up along the axis, to a total that is printed or to 1 or 100, and if
    one of two labels is the opposite of the other.
    """
    shares = draft.kind == "shares" and draft.whole > 0.0 and axis not in draft.given
    added = draft.total is not None or any(axis not in axes for axes, _ in draft.margins)
    return shares or added or are_opposites(draft.facet.labels[axis])


def _is_shared(draft: Draft, axis: int, drafts: Sequence[Draft]) -> bool:
    """Return whether a variable of another table, or another one of this table, has a label."""
    labels = draft.facet.labels[axis]
    own = {plain_text(label) for label in labels}
    for other in drafts:
        for k, known in enumerate(other.facet.labels):
            same = other.block is draft.block and known == labels
            if (other is draft and k == axis) or (same and other is not draft):
                continue
            if own & {plain_text(label) for label in known}:
                return True
    return False


def _name_option(draft: Draft, labels: Sequence[str], drafts: Sequence[Draft]) -> Message:
    """Return the options that name a variable, with the names that it may have."""
    others = [n for d in drafts for n in d.facet.names if n]
    axis = draft.facet.labels.index(list(labels))
    known = [name for k, name in enumerate(draft.facet.names) if k != axis]
    names = [n for n in draft.candidates if not any(is_same_name(n, x) for x in known)]
    own = draft.facet.names[axis]
    names = names if is_no_name(own) else [own, *names]
    may = names or list(dict.fromkeys(n for n in others if n not in draft.facet.names))
    key = "/".join(labels[:2])
    options = [Argument("same", {key: name}) for name in (may or ["Name"])[:2]]
    rest = "" if may else ", with its name in place of Name,"
    return join_messages(options, " or ") + rest


def _unnamed(draft: Draft, labels: Sequence[str], drafts: Sequence[Draft]) -> ValueError:
    """Return the error for labels whose variable no file names, with the names that it may have."""
    value = next((label for label in labels if is_value_name(label)), None)
    parts: list[str] = [
        draft.message(
            "{where}: the labels {labels} belong to a variable that the file does not name, or are "
            "different numbers, such as births and deaths. Use {same} if each case has one of "
            "them, or {skip} to keep one of different numbers.",
            labels=show(labels),
            same=_name_option(draft, labels, drafts),
            skip=Argument("skip", list(labels[1:4]) + [...] * (len(labels) > 4)),
        )
    ]
    if value is not None:
        parts.append(
            Message(
                "If {label!r} is the column of the numbers, use {value}.",
                label=value,
                value=Argument("value", value),
            )
        )
    return ValueError(join_messages(parts))


def _without_twins(drafts: Sequence[Draft]) -> list[Draft]:
    """Leave out a table that is printed twice; raise for two different ones."""
    seen: dict[frozenset[str], Draft] = {}
    for draft in drafts:
        before = seen.setdefault(frozenset(draft.facet.names), draft)
        if before is draft:
            continue
        one, other = before.facet, draft.facet
        if one.labels == other.labels and np.array_equal(one.values, other.values, equal_nan=True):
            before.reading.skipped.append(f"{draft.reading.where} (the same table again)")
            continue
        option = Argument("sheet") if "sheet '" in draft.reading.where else Argument("skip")
        raise ValueError(
            Message(
                "Table {names} is given twice, with different numbers: in {one} and in {other}. "
                "If they are of different groups or years, use one of them ({option}); if they are "
                "parts of one table, add the two up.",
                names=tuple(one.names),
                one=before.reading.where,
                other=draft.reading.where,
                option=option,
            )
        )
    return list(seen.values())


def _make_joint(drafts: Sequence[Draft]) -> None:
    """Multiply percentages within the levels of a variable by its shares, from another table."""
    for draft in drafts:
        if not draft.given:
            continue
        facet = draft.facet
        if facet.sums:
            raise ValueError(
                f"{draft.reading.where}: percentages of levels that other tables have finer cannot "
                "be used: leave the table out, or multiply them by the number behind them."
            )
        names = [facet.names[k] for k in draft.given]
        labels = [facet.labels[k] for k in draft.given]
        weight = _shares_from(drafts, names, labels)
        if weight is None:
            which = names[0] if len(names) == 1 else names
            raise ValueError(
                f"{draft.reading.where}: Each level of {cite(which)} adds up to {draft.whole:g} by "
                f"itself: multiply by the shares of {cite(which)} first, or give a table of "
                f"{show(names)} beside it."
            )
        shape = [len(known) if k in draft.given else 1 for k, known in enumerate(facet.labels)]
        factor = weight.reshape(shape) / draft.whole
        draft.facet = facet.times(factor, 1.0 / draft.whole)
        gone = np.isnan(facet.values).any()  # their sum is known in each group
        draft.margins = [(draft.given, weight)] if gone else []
        draft.total, draft.whole, draft.given = 1.0 if gone else None, 1.0, ()


def _shares_from(
    drafts: Sequence[Draft], names: Sequence[str], labels: Sequence[Sequence[str]]
) -> Array | None:
    for other in drafts:
        facet = other.facet
        if other.given or not set(names) <= set(facet.names) or np.isnan(facet.values).any():
            continue
        axes = [facet.names.index(name) for name in names]
        if any(set(facet.labels[a]) != set(known) for a, known in zip(axes, labels, strict=True)):
            continue
        table = facet.sum_to(axes).transpose(np.argsort(np.argsort(axes)))
        for axis, (a, known) in enumerate(zip(axes, labels, strict=True)):
            table = np.take(table, [facet.labels[a].index(text) for text in known], axis)
        return np.asarray(table / table.sum())
    return None


def _as_table(draft: Draft, how: ReadOptions) -> LabelledTable:
    """Return a draft as a table with its margins, and what comments of its file say."""
    facet = draft.facet
    names = tuple(facet.names)
    unknown = np.isnan(facet.values)
    shares = draft.kind == "shares"
    error = _number_said(draft, "standard error")
    table = LabelledTable(
        names,
        tuple(map(tuple, facet.labels)),
        facet.values,
        whole=facet.whole,
        column="share" if shares else "count",
        bounds=(facet.low, facet.high) if unknown.any() else None,
        percent=shares and draft.whole >= 100.0,
        digit=facet.digit,
        noisy=how.noisy,
        records=_number_said(draft, "records"),
        error=facet.standard_error if error is None else error,
        source=draft.reading.where,
        total=draft.total,
        sums=tuple(facet.sums),
        margins=tuple(
            LabelledTable(
                tuple(names[a] for a in axes), tuple(tuple(facet.labels[a]) for a in axes), claims
            )
            for axes, claims in draft.margins
        ),
    )
    draft.reading.names = names
    draft.reading.totals = [f"{names[axis]}={label}" for axis, label in draft.totals]
    draft.reading.levels = tuple(map(tuple, facet.labels))
    known = draft.total if unknown.any() and draft.total is not None else None
    draft.reading.total = float(np.nansum(facet.values)) if known is None else known
    return table


def _number_said(draft: Draft, key: str) -> float | None:
    """Return the number that a comment of the file says, None where it says nothing."""
    if key not in draft.said:
        return None
    try:
        number = float(draft.said[key])
    except ValueError:
        number = -1.0
    if not number >= 0.0:
        raise ValueError(
            f"{draft.reading.where}: the comment '# {key}: {draft.said[key]}' must give a number "
            "that is not negative."
        )
    return number


_WHOLE = re.compile(r"-?(?:0|[1-9]\d*)")
_REAL = re.compile(r"-?(?:0|[1-9]\d*)\.\d+")


def typed(tables: Sequence[LabelledTable], domain: Domain | None) -> list[LabelledTable]:
    """Return labels, which are text in a file, as levels of the domain, or as numbers if all are.

    Examples
    --------
    >>> import numpy as np
    >>> table = LabelledTable(("a",), (("1", "2"),), np.ones(2))
    >>> typed([table], None)[0].labels
    ((1, 2),)
    """
    texts: dict[str, dict[str, Level]] = {}
    for table in tables:
        for name, labels in zip(table.names, table.labels, strict=True):
            texts.setdefault(name, {}).update({str(label): str(label) for label in labels or ()})
    for name, labels_of in texts.items():
        if domain is None:
            labels_of.update(_numbers(list(labels_of)))
        elif name not in domain:
            raise ValueError(
                f"The tables mention {cite(name)}, which is not in the domain."
                + nearest(name, domain.names)
            )
        else:
            labels_of.update({str(level): level for level in domain[name].levels})
    return [_relabelled(table, texts) for table in tables]


def _numbers(labels: Sequence[str]) -> dict[str, Level]:
    if all(_WHOLE.fullmatch(label) for label in labels):
        return {label: int(label) for label in labels}
    if all(_WHOLE.fullmatch(label) or _REAL.fullmatch(label) for label in labels):
        return {label: float(label) for label in labels}
    return {}


def _relabelled(table: LabelledTable, texts: Mapping[str, Mapping[str, Level]]) -> LabelledTable:
    labels = tuple(
        tuple(texts[name][str(label)] for label in known or ())
        for name, known in zip(table.names, table.labels, strict=True)
    )
    margins = tuple(_relabelled(margin, texts) for margin in table.margins)
    return replace(table, labels=labels, margins=margins)
