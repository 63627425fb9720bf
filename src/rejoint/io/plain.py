"""``.json`` files: the same model as text that anybody, in any language, can read.

An object with ``format`` ("rejoint.LowRankPMF"), ``schema`` (1), ``domain`` (the variables, each
with name, kind and levels), ``weights`` (one number a class), ``factors`` (for each variable a list
of rows, one a level, with one number a class) and, if there are any, ``notes`` and ``draws``
(posterior draws, each with weights and factors of its own, in single precision). Numbers are
written so that they come back bit by bit. The probability of a cell is the sum over classes of the
weight times the number of each of its levels.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from rejoint.domain import Domain
from rejoint.io.schema import Notes, Path, check_number, no_model, read_head, spoilt, write_head

__all__ = ["as_plain", "of_plain", "read_text", "write_text"]

FloatArray = NDArray[np.float64]
Block = NDArray[np.float32]
Parts = tuple[FloatArray, list[FloatArray], Domain, Notes, Block | None]


def as_plain(
    weights: FloatArray,
    factors: Sequence[FloatArray],
    domain: Domain,
    notes: Mapping[str, Any],
    draws: Block | None = None,
) -> dict[str, Any]:
    """A model as plain lists and dicts that JSON can hold.

    Examples
    --------
    >>> plain = as_plain(np.ones(1), [np.array([[0.25], [0.75]])], Domain.of_shape([2]), {})
    >>> plain["weights"], plain["factors"]
    ([1.0], [[[0.25], [0.75]]])
    """
    plain = {
        **write_head(domain, notes),
        "weights": weights.tolist(),
        "factors": [factor.tolist() for factor in factors],
    }
    if draws is not None and len(draws):
        plain["draws"] = [_plain_draw(draw, domain) for draw in draws]
    return plain


def _plain_draw(draw: Block, domain: Domain) -> dict[str, Any]:
    """Weights and factors of a draw, with as many digits as single precision has."""
    texts = draw.astype(str).astype(np.float64)[:, draw[0] > 0.0]
    weights, *factors = np.split(texts, 1 + np.cumsum((0, *domain.shape[:-1])))
    return {"weights": weights[0].tolist(), "factors": [factor.tolist() for factor in factors]}


def write_text(plain: Mapping[str, Any]) -> bytes:
    """The JSON text of a model, one line a variable."""
    parts = []
    for key, value in plain.items():
        if key in ("factors", "draws"):
            rows = ",\n  ".join(map(_dump, value))
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


def read_text(data: bytes, path: Path) -> Parts:
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


def of_plain(plain: Any, path: Path) -> Parts:
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
    weights, factors = _read_parts(plain, domain, path)
    return weights, factors, domain, notes, _read_draws(plain.get("draws", []), domain, path)


def _read_parts(
    plain: Mapping[str, Any], domain: Domain, path: Path
) -> tuple[FloatArray, list[FloatArray]]:
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
    return weights, factors


def _read_draws(plain: Any, domain: Domain, path: Path) -> Block | None:
    if not isinstance(plain, list) or not all(isinstance(draw, dict) for draw in plain):
        raise spoilt(path, "its draws are no list of objects")
    if not plain:
        return None
    check_number(len(plain), domain, path)
    parts = [_read_parts(draw, domain, path) for draw in plain]
    rank = max(len(weights) for weights, _ in parts)
    if len(parts) * rank > 8 * sum(len(weights) for weights, _ in parts):
        raise spoilt(path, "its draws have very different numbers of classes")
    block = np.zeros((len(parts), 1 + sum(domain.shape), rank), dtype=np.float32)
    for target, (weights, factors) in zip(block, parts, strict=True):
        with np.errstate(over="ignore"):  # what is too large becomes inf, which is refused later
            target[:, : len(weights)] = np.vstack([weights, *factors])
    return block


def _numbers(values: Any, axes: int, what: str, path: Path) -> FloatArray:
    try:
        array = np.array(values)
    except (ValueError, OverflowError) as error:
        raise spoilt(path, f"{what}: {str(error)[:100]}") from error
    if array.ndim != axes or array.dtype.kind not in "iuf":
        raise spoilt(path, f"{what} is not {'a list' if axes == 1 else 'rows'} of numbers")
    return array.astype(np.float64)
