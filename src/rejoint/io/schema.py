"""What saved models have in common: the version of their format, and what is checked first."""

from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.domain import Domain

__all__ = [
    "FORMAT",
    "SCHEMA",
    "check_draws",
    "check_number",
    "no_model",
    "read_head",
    "spoilt",
    "write_head",
]

SCHEMA = 1
"""Version of the file format; readers accept this one and earlier ones."""

FORMAT = "rejoint.LowRankPMF"

MOST_FACTORS = 400_000
"""Draws times variables that a file may have: each becomes an object of some hundred bytes."""

Path = str | PathLike[str]
Notes = dict[str, Any]


def write_head(domain: Domain, notes: Mapping[str, Any]) -> dict[str, Any]:
    """What every file says first; notes are left out where there are none."""
    head: dict[str, Any] = {"format": FORMAT, "schema": SCHEMA, "domain": domain.to_json()}
    return {**head, "notes": dict(notes)} if notes else head


def read_head(path: Path, head: Any) -> tuple[Domain, Notes]:
    """Domain and notes; of another format, a later version or a spoilt domain, an error."""
    if not isinstance(head, dict) or "format" not in head:
        raise no_model(path)
    if head["format"] != FORMAT:
        raise ValueError(f"'{path}' holds {str(head['format'])[:80]!r}, not a {FORMAT}.")
    schema = head.get("schema")
    if isinstance(schema, bool) or not isinstance(schema, int) or schema < 1:
        raise spoilt(path, f"its schema version is {str(schema)[:20]!r}")
    if schema > SCHEMA:
        raise ValueError(
            f"'{path}' has schema version {schema}; this rejoint reads versions up to {SCHEMA}: "
            "update rejoint to read it."
        )
    notes = head.get("notes", {})
    if not isinstance(notes, dict):
        raise spoilt(path, "its notes are no object")
    try:
        return Domain.from_json(head["domain"]), notes
    except (
        *(KeyError, TypeError, ValueError, AttributeError, IndexError),
        *(OverflowError, RecursionError),
    ) as error:
        raise spoilt(path, f"its domain cannot be read: {str(error)[:200]}") from error


def check_draws(draws: NDArray[np.float32], domain: Domain, path: Path) -> None:
    """An error for posterior draws of another shape, or more than models are written with."""
    if draws.ndim != 3 or draws.shape[1] != 1 + sum(domain.shape):
        raise spoilt(path, f"{sum(domain.shape)} levels but draws of shape {draws.shape}")
    check_number(len(draws), domain, path)


def check_number(draws: int, domain: Domain, path: Path) -> None:
    """An error for more draws than can be held beside so many variables."""
    if draws * len(domain) > MOST_FACTORS:
        raise spoilt(path, f"{draws:,} draws of {len(domain):,} variables are too many")


def spoilt(path: Path, detail: str) -> ValueError:
    """The error for a file that was a model once."""
    return ValueError(
        f"'{path}' is truncated or corrupt ({detail.rstrip('.')}): copy or save it again."
    )


def no_model(path: Path) -> ValueError:
    """The error for a file of another kind."""
    return ValueError(
        f"'{path}' is not a rejoint model: it does not start like one. Models are written by "
        "LowRankPMF.save."
    )
