"""``.json`` files: the same model as text that anybody, in any language, can read.

An object with ``format`` ("rejoint.LowRankPMF"), ``schema`` (1), ``domain`` (the variables, each
with name, kind and levels), ``weights`` (one number a class), ``factors`` (for each variable a list
of rows, one a level, with one number a class) and, if there are any, ``notes``. Numbers are written
so that they come back bit by bit. The probability of a cell is the sum over classes of the weight
times the number of each of its levels.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from rejoint.domain import Domain
from rejoint.io.schema import Notes, Path, no_model, read_head, spoilt, write_head

__all__ = ["as_plain", "of_plain", "read_text", "write_text"]

FloatArray = NDArray[np.float64]


def as_plain(
    weights: FloatArray,
    factors: Sequence[FloatArray],
    domain: Domain,
    notes: Mapping[str, Any],
) -> dict[str, Any]:
    """A model as plain lists and dicts that JSON can hold.

    Examples
    --------
    >>> plain = as_plain(np.ones(1), [np.array([[0.25], [0.75]])], Domain.of_shape([2]), {})
    >>> plain["weights"], plain["factors"]
    ([1.0], [[[0.25], [0.75]]])
    """
    return {
        **write_head(domain, notes),
        "weights": weights.tolist(),
        "factors": [factor.tolist() for factor in factors],
    }


def write_text(plain: Mapping[str, Any]) -> bytes:
    """The JSON text of a model, one line a variable."""
    parts = []
    for key, value in plain.items():
        if key == "factors":
            rows = ",\n  ".join(_dump(factor) for factor in value)
            text = f"[\n  {rows}\n ]"
        elif key == "domain":
            rows = ",\n  ".join(_dump(variable) for variable in value["variables"])
            text = f'{{"variables": [\n  {rows}\n ]}}'
        else:
            text = _dump(value)
        parts.append(f" {_dump(key)}: {text}")
    return ("{\n" + ",\n".join(parts) + "\n}\n").encode()


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def read_text(data: bytes, path: Path) -> tuple[FloatArray, list[FloatArray], Domain, Notes]:
    """Read the JSON text of a model; anything else is an error in words.

    Examples
    --------
    >>> read_text(b'{"format": "other"}', "a.json")
    Traceback (most recent call last):
    ...
    ValueError: 'a.json' holds 'other', not a rejoint.LowRankPMF.
    """
    try:
        plain = json.loads(data, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise spoilt(path, f"its JSON cannot be read: {str(error)[:200]}") from error
    return of_plain(plain, path)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def of_plain(plain: Any, path: Path) -> tuple[FloatArray, list[FloatArray], Domain, Notes]:
    """Read what :func:`as_plain` made.

    Examples
    --------
    >>> plain = as_plain(np.ones(1), [np.array([[0.25], [0.75]])], Domain.of_shape([2]), {})
    >>> of_plain(plain, "here")[0]
    array([1.])
    """
    if not isinstance(plain, dict):
        raise no_model(path)
    domain, notes = read_head(path, plain)
    for key in ("weights", "factors"):
        if not isinstance(plain.get(key), list):
            raise spoilt(path, f"it has no list {key!r}")
    weights = _numbers(plain["weights"], 1, "weights", path)
    if len(plain["factors"]) != len(domain):
        raise spoilt(path, f"{len(domain)} variables but {len(plain['factors'])} factors")
    factors = []
    for variable, rows in zip(domain, plain["factors"], strict=True):
        what = f"factor of {variable.name!r}"
        factors.append(_numbers(rows, 2, what, path))
        if factors[-1].shape != (len(variable), len(weights)):
            raise spoilt(path, f"{what} has shape {factors[-1].shape}")
    return weights, factors, domain, notes


def _numbers(values: Any, axes: int, what: str, path: Path) -> FloatArray:
    try:
        array = np.array(values)
    except (ValueError, OverflowError) as error:
        raise spoilt(path, f"{what}: {str(error)[:100]}") from error
    if array.ndim != axes or array.dtype.kind not in "iuf":
        raise spoilt(path, f"{what} is not {'a list' if axes == 1 else 'rows'} of numbers")
    return array.astype(np.float64)
