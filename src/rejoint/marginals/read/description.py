"""Description of a table: what its file does not say itself, as options or as TOML beside it."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from math import inf, isfinite
from pathlib import Path
from typing import Any

from rejoint.marginals.read.cells import Bounds
from rejoint.text import cite, nearest, show

FILE = "tables.toml"
KINDS = ("counts", "shares", "percent")
FORMS = ("long", "cross")
#: What stands for an answer that only the user has.
OPEN = "?"


@dataclass(frozen=True)
class Description:
    """How a table is to be read; what is None or empty is proposed from the file.

    Parameters
    ----------
    form : {"long", "cross"}
        A column of numbers beside columns of labels, or header rows by label columns.
    table : int
        Which table of a file that holds several, from 1.
    sheet : str
        The sheet of a workbook.
    skip : sequence of str
        Lines to leave out: ``"1-4"``, ``"40-"``.
    header_rows, label_columns : int
        Rows of labels above the numbers, and columns of labels beside them.
    value : str
        The column of the numbers.
    where : mapping
        For each variable the labels to keep; a single one is no variable any more.
    drop : sequence of str
        Columns, by their header, and labels to leave out.
    totals : sequence of str
        Labels that are totals of others; ``("none",)`` where none is.
    kind : {"counts", "shares", "percent"}
        What the numbers are.
    per : sequence of str
        The variables within whose levels percentages add up to 100.
    names : sequence of str, or mapping
        Names of the variables in order, or new names for those of the file.
    missing : mapping
        For each mark the least and the most that its number may be.
    decimal : {".", ","}
        The decimal mark.
    records, weight : float
        The number of records behind shares; how much the table counts in a fit.
    """

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
    records: float | None = None
    weight: float | None = None

    def over(self, other: "Description") -> "Description":
        """Return this description, with what it leaves open as the other says."""
        own = {key: value for key, value in self._given().items()}
        for key in ("where", "missing"):
            own[key] = {**getattr(other, key), **getattr(self, key)}
        own["drop"] = tuple(dict.fromkeys((*other.drop, *self.drop)))
        return replace(other, **own)

    def _given(self) -> dict[str, Any]:
        return {
            f.name: v
            for f in fields(self)
            if (v := getattr(self, f.name)) not in (None, (), {})
            or (f.name in ("totals", "skip") and v == ())
        }


def describe(options: Mapping[str, Any], where: str = "") -> Description:
    """Check options, as Python or TOML gives them, and return them as a description.

    Examples
    --------
    >>> describe({"totals": "Total", "missing": {"-": 0, "x": "unknown", "--": "1..9"}}).missing
    {'-': (0.0, 0.0), 'x': (0.0, inf), '--': (1.0, 9.0)}
    """
    known = {f.name for f in fields(Description)}
    found: dict[str, Any] = {}
    for key, value in options.items():
        if key not in known:
            raise ValueError(
                f"{where}there is no option {cite(key)}." + nearest(key, sorted(known))
            )
        if value == OPEN or (isinstance(value, list | tuple) and OPEN in value):
            raise ValueError(f"{where}{key} is still {cite(OPEN)}: write what it is.")
        found[key] = _CHECKS[key](key, value, where)
    return Description(**found)


def _error(key: str, value: Any, where: str, wanted: str) -> ValueError:
    return ValueError(f"{where}{key}={cite(value)}: {wanted}.")


def _text(key: str, value: Any, where: str) -> str:
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise _error(key, value, where, "give a text")
    return str(value)


def _one_of(*choices: str) -> Any:
    def check(key: str, value: Any, where: str) -> str:
        if value not in choices:
            raise _error(key, value, where, f"give one of {show(choices)}")
        return str(value)

    return check


def _whole(key: str, value: Any, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 10_000:
        raise _error(key, value, where, "give a whole number of at least 1")
    return value


def _positive(key: str, value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < inf:
        raise _error(key, value, where, "give a number that is not negative")
    return float(value)


def _texts(key: str, value: Any, where: str) -> tuple[str, ...]:
    listed = [value] if isinstance(value, str | int) else value
    if not isinstance(listed, Sequence):
        raise _error(key, value, where, "give a text or a list of texts")
    return tuple(_text(key, item, where) for item in listed)


def _skip(key: str, value: Any, where: str) -> tuple[str, ...]:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return (f"1-{value}",) if value else ()
    ranges = _texts(key, value, where)
    if not all(re.fullmatch(r"\d{1,9}(-(\d{1,9})?)?", text) for text in ranges):
        raise _error(key, value, where, "give a number of lines, or lines such as '1-4' or '40-'")
    return ranges


def _where(key: str, value: Any, where: str) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, Mapping):
        raise _error(key, value, where, "give the label to keep for each variable")
    kept = {str(name): _texts(key, labels, where) for name, labels in value.items()}
    for name, labels in kept.items():
        if OPEN in labels:
            raise ValueError(
                f"{where}{key} of {cite(name)} is still {cite(OPEN)}: write its label."
            )
    return kept


def _names(key: str, value: Any, where: str) -> Any:
    if not isinstance(value, Mapping):
        return _texts(key, value, where)
    return {str(old): _text(key, new, where) for old, new in value.items()}


def _missing(key: str, value: Any, where: str) -> dict[str, Bounds]:
    if not isinstance(value, Mapping):
        raise _error(key, value, where, "give what each mark means, such as {'-': 0}")
    for mark, bounds in value.items():
        if bounds == OPEN:
            raise ValueError(
                f"{where}{key} of {cite(mark)} is still {cite(OPEN)}: write what it means."
            )
    return {str(mark): read_bounds(bounds, f"{where}{key}: ") for mark, bounds in value.items()}


def read_bounds(value: Any, where: str = "") -> Bounds:
    """Return what a mark means: 0, ``"unknown"``, ``"1..9"`` or ``(1, 9)``.

    Examples
    --------
    >>> read_bounds("1..9"), read_bounds([0, 4]), read_bounds("unknown")
    ((1.0, 9.0), (0.0, 4.0), (0.0, inf))
    """
    if value is None or value == "unknown":
        return 0.0, inf
    parts = value.partition("..")[::2] if isinstance(value, str) and ".." in value else value
    try:
        low, high = parts if isinstance(parts, Sequence) and len(parts) == 2 else (parts, parts)
        bounds = float(low or 0.0), float(inf if high in ("", None) else high)
    except (TypeError, ValueError):
        bounds = (1.0, 0.0)
    if not 0.0 <= bounds[0] <= bounds[1] or not isfinite(bounds[0]):
        raise ValueError(
            f"{where}{cite(value)} is no meaning of a mark: give 0, 'unknown', or the least and "
            "the most, such as '1..9'."
        )
    return bounds


_CHECKS: dict[str, Any] = {
    **dict.fromkeys(("header_rows", "label_columns", "table"), _whole),
    **dict.fromkeys(("sheet", "value"), _text),
    **dict.fromkeys(("drop", "totals", "per"), _texts),
    **dict.fromkeys(("records", "weight"), _positive),
    **{"form": _one_of(*FORMS), "kind": _one_of(*KINDS), "decimal": _one_of(".", ",")},
    **{"skip": _skip, "where": _where, "names": _names, "missing": _missing},
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
    r"""Read a description of files; texts are literal, nothing is inferred.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "tables.toml")
    ...     _ = path.write_text('["*.csv"]\nkind = "counts"\n')
    ...     read_description(path).of("a.csv")[0].kind
    'counts'
    """
    try:
        plain = tomllib.loads(path.read_bytes().decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is not TOML: {error}.") from error
    tables: list[tuple[str, Description]] = []
    for name, entry in plain.items():
        if name in _SHARED:
            continue
        for options in entry if isinstance(entry, list) else [entry]:
            if not isinstance(options, dict):
                raise ValueError(f"{path}: {name} is neither a file nor one of {show(_SHARED)}.")
            tables.append((name, describe(options, f"{path}, [{cite(name)}]: ")))
    return FolderDescription(tuple(tables), {k: plain[k] for k in _SHARED if k in plain})


def write_description(name: str, description: Description, remarks: Mapping[str, str] = {}) -> str:
    """Return a description as TOML, with remarks behind some options.

    Examples
    --------
    >>> print(write_description("a.csv", Description(kind="counts", missing={"-": (0.0, 0.0)})))
    ["a.csv"]
    kind = "counts"
    missing = {"-" = 0}
    <BLANKLINE>
    """
    several = description.table is not None or description.sheet is not None
    lines = [f"[[{_quote(name)}]]" if several else f"[{_quote(name)}]"]
    for key, value in description._given().items():
        remark = remarks.get(key, "")
        lines.append(f"{key} = {_toml(value, key)}" + (f"  # {remark}" if remark else ""))
    return "\n".join(lines) + "\n"


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    steering = re.sub(r"[\x00-\x1f\x7f]", lambda m: f"\\u{ord(m[0]):04x}", escaped)
    return f'"{steering}"'


def _toml(value: Any, key: str = "") -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_quote(k)} = {_toml(v, key)}" for k, v in value.items()) + "}"
    if key == "missing" and isinstance(value, tuple):
        low, high = value
        if low == high:
            return f"{low:g}"
        return '"unknown"' if (low, high) == (0.0, inf) else f"[{low:g}, {high:g}]"
    if isinstance(value, tuple):
        plain = value[0] if len(value) == 1 and key == "where" else None
        return _quote(plain) if plain is not None else f"[{', '.join(map(_quote, value))}]"
    return _quote(value) if isinstance(value, str) else f"{value:g}"


def lines_of(skip: Sequence[str]) -> Iterator[tuple[int, float]]:
    """Yield the first and the last line of each range.

    Examples
    --------
    >>> list(lines_of(["1-4", "7", "40-"]))
    [(1, 4), (7, 7), (40, inf)]
    """
    for text in skip:
        first, dash, last = text.partition("-")
        yield int(first), int(last) if last else inf if dash else int(first)
