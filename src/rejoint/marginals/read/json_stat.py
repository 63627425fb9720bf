"""JSON-stat of versions 1 and 2 as labelled arrays: datasets, bundles, collections."""

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import FloatArray
from rejoint.cost import read_all
from rejoint.io.schema import SchemaError, read_json
from rejoint.marginals.read.cells import UNKNOWN, UNROUNDED, TableArray, check_size
from rejoint.records.files import Source
from rejoint.text import cite, clean_label


def read_json_stat(source: Source) -> list[TableArray]:
    """Read the data sets of a JSON-stat file."""
    with source.open() as file:
        try:
            plain = read_json(read_all(file, source.name), allow_nan=True)
        except SchemaError as error:
            raise ValueError(f"{source.name}: {error}.") from error
    try:
        parts = list(_data_sets(plain))
        several = len(parts) > 1
        wheres = [
            f"{source.name}, table {k}" if several else source.name
            for k in range(1, len(parts) + 1)
        ]
        arrays = [_read(where, part) for where, part in zip(wheres, parts, strict=True)]
    except (LookupError, TypeError, AttributeError, OverflowError) as error:
        reason = clean_label(repr(error), 200)
        raise ValueError(f"{source.name} is not valid JSON-stat: {reason}.") from error
    if not arrays:
        listed = isinstance(plain, dict) and plain.get("class") == "collection"
        reason = (
            "it lists other files and has no data set itself" if listed else "it has no data set"
        )
        parts_of = "an object with 'value', 'dimension', 'id' and 'size'"
        raise ValueError(f"{source.name}: {reason} ({parts_of}).")
    return arrays


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
    metrics = [key for key in role.get("metric", ()) if key in ids]
    names = [str(dimensions[key].get("label") or key) for key in ids]
    names = names if len(set(names)) == len(names) else ids
    measure, labels = "", list[tuple[str, ...]]()
    units, scales = dict[str, str](), dict[str, int]()
    parts: dict[str, dict[str, list[str]]] = {}
    for key, name, size in zip(ids, names, sizes, strict=True):
        category = dimensions[key].get("category") or {}
        codes = _labels(category, size, key)
        labels.append(tuple(codes.values()))
        for code, unit in (category.get("unit") or {}).items():
            if isinstance(unit, dict) and code in codes:
                measure = name
                texts = [unit.get(field) for field in ("type", "base", "label", "unit")]
                units[codes[code]] = ", ".join(str(text) for text in texts if text)
                power = unit.get("multiplier")
                scales[codes[code]] = power if isinstance(power, int) and 0 < power < 12 else 0
        measure = name if key in metrics[:1] else measure
        parts[name] = {
            codes[parent]: [codes[str(child)] for child in children if str(child) in codes]
            for parent, children in (category.get("child") or {}).items()
            if parent in codes
        }
    values, mark_codes, marks = _values(part, prod(sizes))
    return TableArray(
        *(where, tuple(names), tuple(labels), values.reshape(sizes), mark_codes.reshape(sizes)),
        *(marks, _digits(values)),
        measure=measure,
        units=units,
        scales=scales,
        parts=parts,
        missing=dict.fromkeys(marks, UNKNOWN),
        form="JSON-stat",
        notes=tuple(str(part[key]) for key in ("label", "source") if part.get(key)),
    )


def _labels(category: Mapping[str, Any], size: int, key: str) -> dict[str, str]:
    """Return the labels of a dimension by their codes, in order."""
    texts = category.get("label") or {}
    index = category.get("index") or list(texts)
    order = sorted(index, key=lambda code: index[code]) if isinstance(index, dict) else index
    labels = {str(code): str(texts.get(code, code)) for code in order}
    if len(labels) != size:
        raise KeyError(f"size of {key}")
    if len(set(labels.values())) < size:
        labels = {code: f"{label} ({code})" for code, label in labels.items()}
    return labels


def _values(
    part: Mapping[str, Any], size: int
) -> tuple[FloatArray, NDArray[np.int32], tuple[str, ...]]:
    """Return the numbers, the code of the mark of each cell without one, and the marks."""
    given = part["value"]
    values = np.full(size, np.nan)
    for at, value in given.items() if isinstance(given, dict) else enumerate(given):
        if not 0 <= int(at) < size:
            raise KeyError(f"value {at}")
        if isinstance(value, bool | str | list | dict):
            raise ValueError(f"its value {cite(clean_label(value))} is a text, not a number")
        if value is not None and isfinite(value):
            values[int(at)] = value
    codes = np.zeros(size, dtype=np.int32)
    marks: dict[str, int] = {}
    for at in np.flatnonzero(np.isnan(values)).tolist():
        codes[at] = marks.setdefault(_mark(part.get("status"), at), len(marks) + 1)
    return values, codes, tuple(marks)


def _mark(status: Any, at: int) -> str:
    """Return the status of a cell: one for all, a list (of length one: for all), or by cell."""
    mark = status if isinstance(status, str) else None
    if isinstance(status, dict):
        mark = status.get(str(at), "null")
    elif isinstance(status, Sequence) and status and mark is None:
        mark = status[0] if len(status) == 1 else (status[at] if at < len(status) else None)
    return str(mark or "null")


def _digits(values: FloatArray) -> int:
    """Return the decimals of numbers that have at most four."""
    known = values[np.isfinite(values)]
    for digits in range(5):
        scaled = known * 10.0**digits
        if np.allclose(scaled, np.round(scaled), rtol=0.0, atol=1e-6):
            return digits
    return UNROUNDED
