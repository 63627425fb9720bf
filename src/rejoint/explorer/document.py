"""What the page is given: a model, and what is known beyond it, as one JSON document."""

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.domain import Domain
from rejoint.domain.labels import is_number
from rejoint.pmf import LowRankPMF
from rejoint.records import Records

__all__ = ["FORMAT", "SCHEMA", "document"]

FORMAT = "rejoint.explorer"
SCHEMA = 1
"""Version of the document; a page reads this one and earlier ones."""

_MOST_CELLS = 4_000_000  # of records in a page: 8 MB of codes


def document(
    pmf: LowRankPMF,
    *,
    title: str = "Model",
    source: str | None = None,
    records: Any = None,
    record_count: float | None = None,
    class_names: Sequence[str] | None = None,
    fit: dict[str, Any] | None = None,
    verdict: dict[str, Any] | None = None,
    note: str | None = None,
    target: Any = None,
) -> dict[str, Any]:
    """All that the page shows, as plain lists and dicts that JSON can hold.

    Parameters
    ----------
    pmf : LowRankPMF
        The model; the posterior draws that it carries give the bars their intervals.
    title, source : str, optional
        What the page calls the model, and the file that copied commands name.
    records : Records or anything that ``Records.of`` takes, optional
        Counted for the support of the evidence and stepped through. They become part of the page.
    record_count : float, optional
        Number of records behind the model, where the records themselves shall not be in the page.
    class_names : sequence of str, optional
        Names of the classes.
    fit, verdict : dict, optional
        What :mod:`rejoint.explorer.trust` makes.
    note : str, optional
        A sentence about how the model came to be.
    target : str or list of str, optional
        The variable that the page takes for the target at first.

    Returns
    -------
    dict

    Examples
    --------
    >>> import rejoint as rj
    >>> plain = document(rj.datasets.asia(), title="Asia")
    >>> plain["title"], plain["variables"][0]["labels"]
    ('Asia', ['yes', 'no'])
    """
    plain: dict[str, Any] = {
        "format": FORMAT,
        "schema": SCHEMA,
        "title": title,
        "source": source,
        "variables": _variables(pmf.domain),
        **_model(pmf, "f8"),
    }
    extras = {
        "record_count": record_count,
        "records": None if records is None else _records(Records.of(records, domain=pmf.domain)),
        "draws": [_model(draw, "f4") for draw in pmf.draws] or None,
        "class_names": None if class_names is None else list(class_names),
        "fit": fit,
        "identifiability": verdict,
        "note": note,
        "target": target,
    }
    return plain | {name: value for name, value in extras.items() if value is not None}


def _variables(domain: Domain) -> list[dict[str, Any]]:
    """The variables as the domain writes them, with their labels as text and their values."""
    listed: list[dict[str, Any]] = domain.to_json()["variables"]
    for plain, variable in zip(listed, domain.variables, strict=True):
        plain["labels"] = [str(level) for level in variable.levels]
        numbers = all(is_number(level) for level in variable.levels)
        if numbers or variable.representatives is not None:
            values = [float(value) for value in variable.numeric]
            plain["values"] = values if np.isfinite(values).all() else None
    return listed


def _model(pmf: LowRankPMF, kind: str) -> dict[str, Any]:
    return {"weights": _packed(pmf.weights, kind), "factors": _packed(np.vstack(pmf.factors), kind)}


def _packed(array: NDArray[Any], kind: str) -> dict[str, str]:
    """Little-endian bytes in base64: exact, and half the size of digits."""
    return {kind: b64encode(np.ascontiguousarray(array, dtype=f"<{kind}").tobytes()).decode()}


def _records(records: Records) -> dict[str, Any]:
    """Codes variable after variable; beyond the page's room the first records stand for all."""
    room = max(_MOST_CELLS // max(len(records.domain), 1), 1)
    total = float(len(records))
    weight = records.sample_weight
    if weight is not None:
        total = float(weight.sum())
    codes = records.codes[:room]
    kind = "i2" if codes.dtype.itemsize == 2 else "i4"
    plain: dict[str, Any] = {
        "rows": len(codes),
        "total": total,
        "codes": _packed(codes.T, kind),
    }
    if weight is not None:
        plain["counts"] = weight[:room].tolist()
    if len(records) > room:
        plain["sampled"] = True
    return plain
