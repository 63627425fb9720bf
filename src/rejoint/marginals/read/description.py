"""Description of a table: what its file does not say itself, as options or as TOML beside it."""

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from functools import partial
from math import inf, isfinite
from pathlib import Path
from typing import Any

from rejoint.marginals.labelled_table import LabelledTable
from rejoint.marginals.read.cells import UNKNOWN, Bounds
from rejoint.text import cite, nearest, show

FILE = "tables.toml"
KINDS = ("counts", "shares", "percent")
FORMS = ("long", "cross")
#: What stands for an answer that only the user has.
OPEN = "?"


@dataclass(frozen=True)
class Description:
    """How a table is to be read; what is None or empty is proposed from the file."""

    form: str | None = None
    table: int | None = None
    sheet: str | None = None
    skip: tuple[str, ...] | None = None
    header_rows: int | None = None
    label_columns: int | None = None
    value: str | None = None
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    totals: tuple[str, ...] | None = None
    kind: str | None = None
    per: tuple[str, ...] | None = None
    names: tuple[str, ...] | Mapping[str, str] | None = None
    missing: Mapping[str, Bounds] = field(default_factory=dict)
    decimal: str | None = None
    records: float | None = None  # behind shares
    weight: float | None = None  # in a fit

    def over(self, other: "Description") -> "Description":
        """Return this description, with what it leaves open as the other says."""
        own = self.given()
        for key in ("where", "missing"):
            own[key] = {**getattr(other, key), **getattr(self, key)}
        own["drop"] = tuple(dict.fromkeys((*other.drop, *self.drop)))
        return replace(other, **own)

    def given(self) -> dict[str, Any]:
        """Return the options that are given; no totals and no lines to skip are answers, too."""
        options = {f.name: getattr(self, f.name) for f in fields(self)}
        return {
            key: value
            for key, value in options.items()
            if value not in (None, (), {}) or (key in ("totals", "skip") and value == ())
        }


def check_known(where: str, what: str, texts: Iterable[str], known: Sequence[str]) -> None:
    """Raise an error for a text of an option that is not one of those known."""
    for text in texts:
        if text not in known:
            listed = f"{show(known)}.{nearest(text, known)}"
            raise ValueError(f"{where}{what.replace('{}', cite(text))}: {listed}")


@dataclass(frozen=True)
class Reading:
    """How a table was understood: its contents and what was decided."""

    where: str
    names: tuple[str, ...] = ()
    levels: tuple[tuple[str, ...], ...] = ()
    kind: str = ""
    total: float = 0.0
    form: str = ""
    totals: tuple[str, ...] = ()
    marks: dict[str, str] = field(default_factory=dict)
    flags: dict[str, int] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass
class Draft:
    """A table of a file: its description with what of it is open, and what was read by it."""

    file: str
    reading: Reading
    description: Description
    open: dict[str, str] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)  # headers of columns that were left out
    table: LabelledTable | None = None
    within: tuple[str, ...] = ()  # variables within whose levels percentages add up

    def ask(self, key: str, value: object, remark: str) -> None:
        """Propose the value of an option that only the user can confirm."""
        self.propose(**{key: value})
        self.open.setdefault(key, remark)

    def propose(self, **options: object) -> None:
        """Complete the description."""
        self.description = replace(self.description, **options)  # type: ignore[arg-type]


def describe(options: Mapping[str, Any], where: str = "") -> Description:
    """Check options, as Python or TOML gives them, and return them as a description."""
    checked: dict[str, Any] = {}
    for key, value in options.items():
        check_known(where, "there is no option {}", [key], list(_OPTIONS))
        for name, part in value.items() if isinstance(value, Mapping) else [(None, value)]:
            if OPEN in (part if isinstance(part, list | tuple) else [part]):
                of = "" if name is None else f" of {cite(name)}"
                raise ValueError(f"{where}{key}{of} is still {cite(OPEN)}: write what it is.")
        convert, form = _OPTIONS[key]
        try:
            checked[key] = convert(value)
        except (TypeError, ValueError, AttributeError):
            raise ValueError(f"{where}{key}={cite(value)}: give {form}.") from None
    return Description(**checked)


def _text(value: Any) -> str:
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise TypeError
    return str(value)


def _choice(choices: Sequence[str], value: Any) -> str:
    return choices[choices.index(value)]


def _number(low: float, high: float, kind: type, value: Any) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not low <= value < high or kind(value) != value:
        raise ValueError
    return kind(value)


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(map(_text, [value] if isinstance(value, str | int) else value))


def _skip(value: Any) -> tuple[str, ...]:
    if type(value) is int:
        return (f"1-{_number(1, 10**9, int, value)}",) if value else ()
    if not all(re.fullmatch(r"\d{1,9}(-(\d{1,9})?)?", text) for text in _texts(value)):
        raise ValueError
    return _texts(value)


def _where(value: Any) -> dict[str, tuple[str, ...]]:
    return {str(name): _texts(labels) for name, labels in value.items()}


def _names(value: Any) -> tuple[str, ...] | dict[str, str]:
    is_mapping = isinstance(value, Mapping)
    return {str(old): _text(new) for old, new in value.items()} if is_mapping else _texts(value)


def _missing(value: Any) -> dict[str, Bounds]:
    return {str(mark): read_bounds(meaning) for mark, meaning in value.items()}


def read_bounds(value: Any) -> Bounds:
    """Return what a mark means: 0, ``"unknown"``, ``"1..9"`` or ``(1, 9)``."""
    if value is None or value == "unknown":
        return UNKNOWN
    parts = value.partition("..")[::2] if isinstance(value, str) and ".." in value else value
    low, high = parts if isinstance(parts, Sequence) and len(parts) == 2 else (parts, parts)
    bounds = float(low or 0.0), float(inf if high in ("", None) else high)
    if not 0.0 <= bounds[0] <= bounds[1] or not isfinite(bounds[0]):
        raise ValueError
    return bounds


_WHOLE = (partial(_number, 1, 10_000, int), "a whole number of at least 1")
_LIST = (_texts, "a text or a list of texts")
_POSITIVE = (partial(_number, 0.0, inf, float), "a number that is not negative")
#: How each option is converted, and what a message asks for.
_OPTIONS: dict[str, tuple[Callable[[Any], Any], str]] = {
    **dict.fromkeys(("header_rows", "label_columns", "table"), _WHOLE),
    **dict.fromkeys(("sheet", "value"), (_text, "a text")),
    **dict.fromkeys(("drop", "totals", "per"), _LIST),
    **dict.fromkeys(("records", "weight"), _POSITIVE),
    "form": (partial(_choice, FORMS), f"one of {show(FORMS)}"),
    "kind": (partial(_choice, KINDS), f"one of {show(KINDS)}"),
    "decimal": (partial(_choice, (".", ",")), "one of '.', ','"),
    "skip": (_skip, "a number of lines, or lines such as '1-4' or '40-'"),
    "where": (_where, "the label to keep for each variable"),
    "names": (_names, "names in order, or a new name for each of the file"),
    "missing": (_missing, "for each mark 0, 'unknown', or the least and the most as in '1..9'"),
}


@dataclass(frozen=True)
class FolderDescription:
    """What a ``tables.toml`` says: its tables by patterns of file names, and what holds for all."""

    tables: tuple[tuple[str, Description], ...] = ()
    shared: Mapping[str, Any] = field(default_factory=dict)

    def of(self, name: str) -> list[Description]:
        """Return the descriptions of the tables of a file; one that says nothing if none does."""
        base = Path(name).name
        exact = [d for pattern, d in self.tables if pattern == base]
        return exact or [d for p, d in self.tables if fnmatchcase(base, p)] or [Description()]


_SHARED = ("same", "collapse", "impossible", "rounded", "noisy")


def read_description(path: Path) -> FolderDescription:
    """Read a description of files; texts are literal, nothing is inferred."""
    try:
        plain = tomllib.loads(path.read_bytes().decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is not TOML: {error}.") from error
    shared = {key: plain.pop(key) for key in _SHARED if key in plain}
    groups, listed = shared.get("collapse", {}), shared.get("impossible", [])
    inner = [*(groups.values() if isinstance(groups, dict) else [groups]), shared.get("same", {})]
    inner += listed if isinstance(listed, list) else [None]
    if not all(isinstance(x, dict) for x in inner):
        raise ValueError(f"{path}: write [same], [collapse.Age] and a list [[impossible]].")
    tables: list[tuple[str, Description]] = []
    for name, entry in plain.items():
        for options in entry if isinstance(entry, list) else [entry]:
            if not isinstance(options, dict):
                raise ValueError(f"{path}: {name} is neither a file nor one of {show(_SHARED)}.")
            tables.append((name, describe(options, f"{path}, [{cite(name)}]: ")))
    return FolderDescription(tuple(tables), shared)


def write_description(name: str, description: Description, remarks: Mapping[str, str] = {}) -> str:
    """Return a description as TOML, with remarks behind some options."""
    several = description.table is not None or description.sheet is not None
    lines = [f"[[{_quote(name)}]]" if several else f"[{_quote(name)}]"]
    for key, value in description.given().items():
        remark = f"  # {remarks[key]}" if key in remarks else ""
        lines.append(f"{key} = {_toml(value, key)}{remark}")
    return "\n".join(lines) + "\n"


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml(value: Any, key: str = "") -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_quote(k)} = {_toml(v, key)}" for k, v in value.items()) + "}"
    if key == "missing" and isinstance(value, tuple):
        low, high = value
        shown = f"{low:g}" if low == high else f"[{low:g}, {high:g}]"
        return '"unknown"' if value == UNKNOWN else shown
    if isinstance(value, tuple):
        single = len(value) == 1 and key == "where"
        return _quote(value[0]) if single else f"[{', '.join(map(_quote, value))}]"
    return _quote(value) if isinstance(value, str) else f"{value:g}"


def lines_of(skip: Sequence[str]) -> Iterator[tuple[int, float]]:
    """Yield the first and the last line of each range: ``"1-4"``, ``"7"``, ``"40-"``."""
    for text in skip:
        first, dash, last = text.partition("-")
        yield int(first), int(last) if last else inf if dash else int(first)
