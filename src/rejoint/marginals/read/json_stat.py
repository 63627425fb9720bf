"""JSON-stat of versions 1 and 2 as labelled arrays: datasets, bundles, collections."""

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite, prod
from typing import Any

import numpy as np

from rejoint.cost import read_all
from rejoint.io.schema import SchemaError, read_json
from rejoint.marginals.read.cells import TableArray, check_size
from rejoint.records.files import Source
from rejoint.text import cite, clean_label


def read_json_stat(source: Source) -> list[TableArray]:
    """Read the data sets of a JSON-stat file.

    Examples
    --------
    >>> text = b'{"value": [3, 4], "id": ["a"], "size": [2], "dimension": {"a": {"category":'
    >>> read_json_stat(Source("t.json", content=text + b'{"index": ["x", "y"]}}}}'))[0].labels
    (('x', 'y'),)
    """
    with source.open() as file:
        try:
            plain = read_json(read_all(file, source.name), allow_nan=True)
        except SchemaError as error:
            raise ValueError(f"{source.name}: {error}.") from error
    try:
        parts = list(_data_sets(plain))
        several = len(parts) > 1
        return [
            _read(_where(source, k, several), part) for k, part in enumerate(parts, 1)
        ] or _none(source, plain)
    except (LookupError, TypeError, AttributeError, OverflowError) as error:
        reason = clean_label(repr(error), 200)
        raise ValueError(f"{source.name} is not valid JSON-stat: {reason}.") from error


def _where(source: Source, number: int, several: bool) -> str:
    return f"{source.name}, table {number}" if several else source.name


def _none(source: Source, plain: Any) -> list[TableArray]:
    listed = isinstance(plain, dict) and plain.get("class") == "collection"
    reason = "it lists other files and has no data set itself" if listed else "it has no data set"
    raise ValueError(
        f"{source.name}: {reason} (an object with 'value', 'dimension', 'id' and 'size')."
    )


def _data_sets(plain: Any) -> Iterator[Mapping[str, Any]]:
    if not isinstance(plain, dict):
        return
    link = plain.get("link") or {}
    items = link.get("item", []) if isinstance(link, dict) else []
    for part in (plain, *plain.values(), *items):
        if isinstance(part, dict) and "value" in part and "dimension" in part:
            yield part


def _read(where: str, part: Mapping[str, Any]) -> TableArray:
    dimensions = part["dimension"]
    ids = [str(key) for key in part.get("id") or dimensions["id"]]
    sizes = [int(size) for size in part.get("size") or dimensions["size"]]
    if len(ids) != len(sizes):  # dimensions of one category are left out by some
        sizes = [len((dimensions[key].get("category") or {}).get("index") or [0]) for key in ids]
    if min(sizes, default=0) < 1:
        raise KeyError("id and size")
    check_size(where, sizes)
    role = part.get("role") or dimensions.get("role") or {}
    measures = [key for key in role.get("metric", ()) if key in ids]
    names = [str(dimensions[key].get("label") or key) for key in ids]
    names = names if len(set(names)) == len(names) else ids
    axes = [_categories(dimensions[key], size, key) for key, size in zip(ids, sizes, strict=True)]
    labels = [tuple(codes.values()) for codes, _ in axes]
    measure, units, scales = "", dict[str, str](), dict[str, int]()
    for key, name, (codes, category) in zip(ids, names, axes, strict=True):
        for code, unit in (category.get("unit") or {}).items():
            if isinstance(unit, dict) and code in codes:
                measure = name
                said = [unit.get(field) for field in ("type", "base", "label", "unit")]
                units[codes[code]] = ", ".join(str(text) for text in said if text)
                scales[codes[code]] = _power(unit.get("multiplier"))
        if key in measures[:1]:
            measure = name
    values, codes_of, marks = _values(part, prod(sizes))
    parts = {
        name: {
            codes[parent]: [codes[str(child)] for child in children if str(child) in codes]
            for parent, children in (category.get("child") or {}).items()
            if parent in codes
        }
        for name, (codes, category) in zip(names, axes, strict=True)
    }
    return TableArray(
        where,
        tuple(names),
        tuple(labels),
        values.reshape(sizes),
        codes_of.reshape(sizes),
        marks,
        _digits(values),
        measure=measure,
        units=units,
        scales=scales,
        parts=parts,
        missing=dict.fromkeys(marks, (0.0, np.inf)),
        form="JSON-stat",
        notes=tuple(str(part[key]) for key in ("label", "source") if part.get(key)),
    )


def _power(multiplier: Any) -> int:
    return multiplier if isinstance(multiplier, int) and 0 < multiplier < 12 else 0


def _categories(
    dimension: Mapping[str, Any], size: int, key: str
) -> tuple[dict[str, str], Mapping[str, Any]]:
    """Return the labels of a dimension by their codes, in order, and its ``category``."""
    category = dimension.get("category") or {}
    texts = category.get("label") or {}
    index = category.get("index") or list(texts)
    order = sorted(index, key=lambda code: index[code]) if isinstance(index, dict) else index
    labels = {str(code): str(texts.get(code, code)) for code in order}
    if len(labels) != size:
        raise KeyError(f"size of {key}")
    if len(set(labels.values())) < size:
        labels = {code: f"{label} ({code})" for code, label in labels.items()}
    return labels, category


def _values(part: Mapping[str, Any], size: int) -> tuple[Any, Any, tuple[str, ...]]:
    """Return the numbers, the code of the mark of each cell without one, and the marks."""
    given = part["value"]
    pairs = given.items() if isinstance(given, dict) else enumerate(given)
    values = np.full(size, np.nan)
    for at, value in pairs:
        if not 0 <= int(at) < size:
            raise KeyError(f"value {at}")
        if isinstance(value, bool | str | list | dict):
            raise ValueError(f"its value {cite(clean_label(value))} is a text, not a number")
        if value is not None and isfinite(value):
            values[int(at)] = value
    status = part.get("status")
    codes = np.zeros(size, dtype=np.int32)
    marks: dict[str, int] = {}
    for at in np.flatnonzero(np.isnan(values)).tolist():
        codes[at] = marks.setdefault(_mark(status, at), len(marks) + 1)
    return values, codes, tuple(marks)


def _mark(status: Any, at: int) -> str:
    """Return the status of a cell: one for all, a list (of length one: for all), or by cell."""
    if isinstance(status, str):
        return status
    if isinstance(status, dict):
        return str(status.get(str(at), "null"))
    if isinstance(status, Sequence) and status:
        mark = status[0] if len(status) == 1 else (status[at] if at < len(status) else None)
        return str(mark or "null")
    return "null"


def _digits(values: Any) -> int:
    """Return the decimals of numbers that have at most four, 17 where they have more."""
    known = values[np.isfinite(values)]
    for digits in range(5):
        scaled = known * 10.0**digits
        if np.allclose(scaled, np.round(scaled), rtol=0.0, atol=1e-6):
            return digits
    return 17
