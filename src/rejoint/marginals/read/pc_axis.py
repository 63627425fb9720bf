"""PC-Axis files as labelled arrays: keywords, several encodings, sparse rows, symbols."""

import re
from collections.abc import Sequence
from itertools import chain
from math import inf, prod

import numpy as np

from rejoint.cost import read_all
from rejoint.marginals.read.cells import TableArray, check_size, read_cells
from rejoint.records.files import Source
from rejoint.text import cite, plural

_KEYWORD = re.compile(
    r'\s*([A-Z][A-Z0-9_.-]*)\s*(?:\[\s*"?([\w-]+)"?\s*\])?\s*(?:\(((?:\s*"[^"]*"\s*,?)*)\))?\s*='
)
_VALUE = re.compile(r'(?:[^";]|"[^"]*")*;?')
_LINE = re.compile(r"(?s:.*?);[ \t]*(?=[\r\n]|$)")  # where quotes do not come in pairs
_QUOTED = re.compile(r'"([^"]*)"\s*(,?)')
_TOKEN = re.compile(r'"[^"]*"|[^\s,;"]+')
#: What the format says of its symbols: nil is zero, dots stand for numbers that are not given.
_SYMBOLS = {"-": (0.0, 0.0)} | {"." * n: (0.0, inf) for n in range(1, 7)}


def read_pc_axis(source: Source, encoding: str | None = None) -> TableArray:
    r"""Read a PC-Axis file.

    Examples
    --------
    >>> text = b'STUB="a";HEADING="b";VALUES("a")="x","y";VALUES("b")="u","v";DATA=1 2;3 "..";'
    >>> read_pc_axis(Source("t.px", content=text)).values
    array([[ 1.,  2.],
           [ 3., nan]])
    """
    with source.open() as file:
        content = read_all(file, source.name)
    text = _decode(content, encoding)
    said, data = _statements(text, _VALUE)
    if data is None:
        said, data = _statements(text, _LINE)
    stub, heading = (_texts(said.get((key, ""), "")) for key in ("STUB", "HEADING"))
    names = [*stub, *heading]
    if not names or data is None:
        raise ValueError(f"{source.name} is not valid PC-Axis: STUB, HEADING or DATA is missing.")
    labels = [_labels(source.name, said, name) for name in names]
    shape = [len(known) for known in labels]
    check_size(source.name, shape)
    tokens = data.replace(",", " ").replace(";", " ").split() if '"' not in data else None
    tokens = _TOKEN.findall(data) if tokens is None else tokens
    if any(key == "KEYS" for key, _ in said):
        tokens = _spread_keys(source.name, said, tokens, stub, labels)
    if len(tokens) != prod(shape):
        raise ValueError(
            f"{source.name}: DATA has {plural(len(tokens), 'cell')}, but the variables make "
            f"{prod(shape):,}."
        )
    cells = read_cells([token.strip('"').strip() for token in tokens])
    measure = _first(said, "CONTVARIABLE")
    units = {of: _joined(value) for (key, of), value in said.items() if key == "UNITS"}
    totals: dict[str, tuple[str, ...]] = {}
    parts: dict[str, dict[str, list[str]]] = {}
    for name, known in zip(names, labels, strict=True):
        codes = dict(zip(_texts(said.get(("CODES", name), "")), known, strict=False))
        total = _joined(said.get(("ELIMINATION", name), ""))
        totals[name] = tuple(t for t in [codes.get(total, total)] if t in known)
        for pair in re.findall(r'"([^"]*)"\s*:\s*"([^"]*)"', said.get(("HIERARCHIES", name), "")):
            parent, child = (codes.get(t, t) for t in pair)
            if parent in known and child in known:
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
        units=units,
        totals=totals,
        parts=parts,
        missing=_SYMBOLS | {_first(said, "DATASYMBOLNIL") or "-": (0.0, 0.0)},
        form="PC-Axis",
        notes=tuple(filter(None, (_first(said, "TITLE"), _first(said, "UNITS")))),
    )


def _decode(content: bytes, encoding: str | None) -> str:
    told = re.search(rb'CODEPAGE\s*=\s*"([\w-]+)"', content[:4000])
    plain = "cp1252" if re.search(rb'CHARSET\s*=\s*"ANSI', content[:4000]) else "cp850"
    for name in (encoding, "utf-8-sig", told and told[1].decode(), plain):
        try:
            if name:
                return content.decode(name)
        except (LookupError, UnicodeDecodeError):
            continue
    return content.decode("cp1252", errors="replace")


def _statements(
    text: str, to_end: re.Pattern[str]
) -> tuple[dict[tuple[str, str], str], str | None]:
    """Return the statements before the data, by keyword and name, and the data."""
    said: dict[tuple[str, str], str] = {}
    at = 0
    while at < len(text):
        found = _KEYWORD.match(text, at)
        if found is None:  # no statement: what follows its end may be one
            skipped = to_end.match(text, at)
            at = max(at + 1, skipped.end() if skipped else at)
            continue
        if found[1] == "DATA":
            return said, text[found.end() :]
        value = to_end.match(text, found.end())
        at = found.end() if value is None else value.end()
        if not found[2]:  # other languages repeat all of it
            of = [quoted for quoted, _ in _QUOTED.findall(found[3] or "")]
            said[found[1], of[0] if of else ""] = text[found.end() : at].rstrip("; \r\n")
    return said, None


def _texts(value: str) -> list[str]:
    """Return the texts of a list; those without a comma between them are one."""
    texts, open_ = list[str](), False
    for quoted, comma in _QUOTED.findall(value):
        if open_:
            texts[-1] += quoted
        else:
            texts.append(quoted)
        open_ = not comma
    return texts


def _joined(value: str) -> str:
    return "".join(quoted for quoted, _ in _QUOTED.findall(value)).strip()


def _first(said: dict[tuple[str, str], str], key: str) -> str:
    return _joined(said.get((key, ""), ""))


def _labels(where: str, said: dict[tuple[str, str], str], name: str) -> list[str]:
    codes = _texts(said.get(("CODES", name), ""))
    labels = _texts(said.get(("VALUES", name), "")) or codes
    if not labels and (time := said.get(("TIMEVAL", name), "")):
        if ends := re.search(r'"(\d{4})"\s*-\s*"(\d{4})"', time):
            labels = [str(year) for year in range(int(ends[1]), int(ends[2]) + 1)]
        else:
            labels = _texts(time)
    if not labels:
        raise ValueError(f"{where}: there is no VALUES({cite(name)}).")
    if len(set(labels)) < len(labels):  # names of places may occur twice; their codes do not
        if len(set(codes)) < len(labels):
            raise ValueError(f"{where}: a label of {cite(name)} occurs twice, and it has no codes.")
        return [f"{label} ({code})" for label, code in zip(labels, codes, strict=True)]
    return labels


def _spread_keys(
    where: str,
    said: dict[tuple[str, str], str],
    tokens: Sequence[str],
    stub: Sequence[str],
    labels: Sequence[Sequence[str]],
) -> list[str]:
    """Return all cells of a sparse file; rows that are not listed are zero."""
    places = []
    given = [of for key, of in said if key == "KEYS"]
    order = [stub.index(of) for of in (given if set(given) == set(stub) else stub)]
    for name, known in zip(stub, labels, strict=False):
        codes = _texts(said.get(("CODES", name), "")) or known
        by_code = {key: i for i, key in enumerate(codes)}
        by_label = {key: i for i, key in enumerate(known)}
        is_code = said.get(("KEYS", name), "").strip().upper() == "CODES"
        places.append({**by_label, **by_code} if is_code else {**by_code, **by_label})
    shape = [len(known) for known in labels]
    width, keys = prod(shape[len(stub) :]), len(stub)
    step = keys + width
    if len(tokens) % step:
        cells = plural(width, "cell")
        raise ValueError(f"{where}: DATA has rows that are not {keys} keys and {cells}.")
    rows: list[list[str]] = [["0"] * width for _ in range(prod(shape[:keys]))]
    seen: set[int] = set()
    for start in range(0, len(tokens), step):
        try:
            keys_of = [token.strip('"').strip() for token in tokens[start : start + keys]]
            at = [places[k][keys_of[order.index(k)]] for k in range(keys)]
        except KeyError as error:
            raise ValueError(
                f"{where}: DATA has the key {cite(error.args[0])}, which is no value."
            ) from error
        row = int(np.ravel_multi_index(at, shape[:keys])) if keys else 0
        if row in seen:
            raise ValueError(
                f"{where}: DATA has the keys {cite(tokens[start : start + keys])} twice."
            )
        seen.add(row)
        rows[row] = list(tokens[start + keys : start + step])
    return list(chain.from_iterable(rows))
