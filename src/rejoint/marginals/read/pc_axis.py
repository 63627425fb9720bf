"""PC-Axis files as labelled arrays: keywords, several encodings, sparse rows, symbols."""

import re
from collections.abc import Mapping, Sequence
from itertools import product
from math import prod

from rejoint.cost import read_all
from rejoint.marginals.read.cells import (
    UNKNOWN,
    ZERO,
    Bounds,
    TableArray,
    check_size,
    read_cells,
)
from rejoint.records.files import Source
from rejoint.text import cite, plural

_KEYWORD = re.compile(
    r'([A-Z][A-Z0-9_.-]*)\s*(?:\[\s*"?([\w-]+)"?\s*\])?\s*(?:\(((?:\s*"[^"]*"\s*,?)*)\))?\s*='
)
_SPACE = re.compile(r"\s*")
_VALUE = re.compile(r'(?:[^";]|"[^"]*")*;?')
_LINE = re.compile(r"(?s:.*?);[ \t]*(?=[\r\n]|$)")  # where quotes do not come in pairs
_QUOTED = re.compile(r'"([^"]*)"\s*(,?)')
_TOKEN = re.compile(r'"[^"]*"|[^\s,;"]+')
#: What the format says of its symbols: nil is zero, dots are numbers that are not given.
_SYMBOLS: dict[str, Bounds] = {"-": ZERO} | {"." * n: UNKNOWN for n in range(1, 7)}

#: The statements of a file: texts by keyword and the variable that they are of.
Statements = Mapping[tuple[str, str], str]


def read_pc_axis(source: Source, encoding: str | None = None) -> TableArray:
    """Read a PC-Axis file."""
    with source.open() as file:
        text = _decode(read_all(file, source.name), encoding)
    said, data = _statements(text, _VALUE)
    if data is None:
        said, data = _statements(text, _LINE)
    stub, heading = (_texts(said.get((key, ""), "")) for key in ("STUB", "HEADING"))
    names = [*stub, *heading]
    if not names or data is None:
        raise ValueError(f"{source.name} is not valid PC-Axis: STUB, HEADING or DATA is missing.")
    labels = [_labels(source.name, said, name) for name in names]
    shape = [len(of) for of in labels]
    check_size(source.name, shape)
    if '"' in data:
        tokens = [token.strip('"').strip() for token in _TOKEN.findall(data)]
    else:
        tokens = data.replace(",", " ").replace(";", " ").split()
    if any(key == "KEYS" for key, _ in said):
        tokens = _spread_keys(source.name, said, tokens, stub, labels)
    if len(tokens) != prod(shape):
        what = f"DATA has {plural(len(tokens), 'cell')}, but the variables make {prod(shape):,}"
        raise ValueError(f"{source.name}: {what}.")
    cells = read_cells(tokens)
    measure = _joined(said, "CONTVARIABLE")
    totals: dict[str, tuple[str, ...]] = {}
    parts: dict[str, dict[str, list[str]]] = {}
    for name, of in zip(names, labels, strict=True):
        codes = dict(zip(_texts(said.get(("CODES", name), "")), of, strict=False))
        total = _joined(said, "ELIMINATION", name)
        totals[name] = tuple(t for t in [codes.get(total, total)] if t in of)
        for pair in re.findall(r'"([^"]*)"\s*:\s*"([^"]*)"', said.get(("HIERARCHIES", name), "")):
            parent, child = (codes.get(t, t) for t in pair)
            if parent in of and child in of:
                parts.setdefault(name, {}).setdefault(parent, []).append(child)
    return TableArray(
        source.name,
        tuple(names),
        tuple(map(tuple, labels)),
        cells.values.reshape(shape),
        cells.codes.reshape(shape),
        cells.marks,
        cells.digits,
        measure=measure if measure in names else "",
        units={of: _joined(said, *key) for key in said for of in key[1:] if key[0] == "UNITS"},
        totals=totals,
        parts=parts,
        missing=_SYMBOLS | {_joined(said, "DATASYMBOLNIL") or "-": ZERO},
        form="PC-Axis",
        notes=tuple(filter(None, (_joined(said, "TITLE"), _joined(said, "UNITS")))),
    )


def _decode(content: bytes, encoding: str | None) -> str:
    told = re.search(rb'CODEPAGE\s*=\s*"([\w-]+)"', content[:4000])
    plain = "cp1252" if re.search(rb'CHARSET\s*=\s*"ANSI', content[:4000]) else "cp850"
    for name in filter(None, (encoding, "utf-8-sig", told and told[1].decode(), plain)):
        try:
            return content.decode(name)
        except (LookupError, UnicodeDecodeError):
            continue
    return content.decode("cp1252", errors="replace")


def _statements(text: str, to_end: re.Pattern[str]) -> tuple[Statements, str | None]:
    """Return the statements before the data, and the data."""
    said: dict[tuple[str, str], str] = {}
    at, has_end = 0, True
    while (at := _SPACE.match(text, at).end()) < len(text):  # type: ignore[union-attr]
        keyword = _KEYWORD.match(text, at)
        if keyword and keyword[1] == "DATA":
            return said, text[keyword.end() :]
        start = keyword.end() if keyword else at
        value = to_end.match(text, start) if has_end else None
        has_end = value is not None
        end = value.end() if value else text.find("\n", start) + 1 or len(text)
        if keyword and not keyword[2]:  # other languages repeat all of it
            of = _QUOTED.search(keyword[3] or "")
            said[keyword[1], of[1] if of else ""] = text[keyword.end() : end].rstrip("; \r\n")
        at = max(at + 1, end)
    return said, None


def _texts(value: str) -> list[str]:
    """Return the texts of a list; those without a comma between them are one."""
    texts, is_open = list[str](), False
    for quoted, comma in _QUOTED.findall(value):
        texts[len(texts) - is_open :] = [texts[-1] + quoted if is_open else quoted]
        is_open = not comma
    return texts


def _joined(said: Statements, key: str, of: str = "") -> str:
    return "".join(quoted for quoted, _ in _QUOTED.findall(said.get((key, of), ""))).strip()


def _labels(where: str, said: Statements, name: str) -> list[str]:
    codes = _texts(said.get(("CODES", name), ""))
    labels = _texts(said.get(("VALUES", name), "")) or codes
    if not labels and (time := said.get(("TIMEVAL", name), "")):
        ends = re.search(r'"(\d{4})"\s*-\s*"(\d{4})"', time)
        years = range(int(ends[1]), int(ends[2]) + 1) if ends else ()
        labels = list(map(str, years)) or _texts(time)
    if not labels:
        raise ValueError(f"{where}: there is no VALUES({cite(name)}).")
    if len(set(labels)) == len(labels):
        return labels
    if len(set(codes)) < len(labels):  # names of places may occur twice; their codes do not
        raise ValueError(f"{where}: a label of {cite(name)} occurs twice, and it has no codes.")
    return [f"{label} ({code})" for label, code in zip(labels, codes, strict=True)]


def _spread_keys(
    where: str,
    said: Statements,
    tokens: Sequence[str],
    stub: Sequence[str],
    labels: Sequence[Sequence[str]],
) -> list[str]:
    """Return all cells of a sparse file; rows that are not listed are zero."""
    given = [of for key, of in said if key == "KEYS"]
    order = [stub.index(of) for of in (given if set(given) == set(stub) else stub)]
    label_of = []
    for k in order:
        codes = _texts(said.get(("CODES", stub[k]), "")) or labels[k]
        by_code, by_label = dict(zip(codes, labels[k], strict=False)), {x: x for x in labels[k]}
        is_code = said.get(("KEYS", stub[k]), "").strip().upper() == "CODES"
        label_of.append(by_label | by_code if is_code else by_code | by_label)
    keys, width = len(stub), prod(len(of) for of in labels[len(stub) :])
    if len(tokens) % (keys + width):
        cells = plural(width, "cell")
        raise ValueError(f"{where}: DATA has rows that are not {keys} keys and {cells}.")
    rows: dict[tuple[str, ...], Sequence[str]] = {}
    for start in range(0, len(tokens), keys + width):
        key = tokens[start : start + keys]
        for text, of in zip(key, label_of, strict=True):
            if text not in of:
                raise ValueError(f"{where}: DATA has the key {cite(text)}, which is no value.")
        place = {k: of[text] for k, text, of in zip(order, key, label_of, strict=True)}
        at = tuple(place[k] for k in range(keys))
        if at in rows:
            raise ValueError(f"{where}: DATA has the keys {cite(key)} twice.")
        rows[at] = tokens[start + keys : start + keys + width]
    zeros = ["0"] * width
    return [cell for at in product(*labels[:keys]) for cell in rows.get(at, zeros)]
