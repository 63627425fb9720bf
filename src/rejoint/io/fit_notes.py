"""Notes about a fit, as every model file keeps them.

All keys are optional, and their values are plain JSON:

``records``         number of records behind the model (the sum of their weights)
``survey_design``   of survey weights, to whose effective number of records the weights are scaled:
                    number of ``records``, ``effective`` number, design ``effect``, ``total`` of the
                    weights as given, numbers of ``strata`` and ``clusters``
``missing``         by variable, the share of empty cells among the records
``source``          name of the file or folder that it was fitted to, without its folder
``choice``          which estimator and rank were chosen, and why, in words
``stop``            why the fit stopped and how good it is, in words
``agreement``       whether answers were moved towards tables of the records, and which tables
                    still differ beyond chance, in words
``interrupted``     true where Ctrl-C ended it
``seed``            of the fit
``log_likelihood``  of the records
``tables``          the tables that it was fitted to: ``names`` and ``total`` of each; of those that
                    were read from files, ``where``, the name of the file, and ``kind`` of numbers
``fit``             ``tables`` that the model meets worst, worst first, each with ``names``, total
                    variation ``distance``, what ``chance`` alone would make it (null if not
                    known), ``records``; how many were ``checked`` of ``all``
``rank_curve``      ranks tried: ``ranks``, ``scores``, ``errors``, ``tied``, ``criterion``
``ratings``         columns of user, item and rating, where variables are items and levels their
                    ratings
``target``          names of the variables that it was trained to predict
``class_names``     a name for each class
``classes_are_groups``  false where classes are parts of an average, not groups of records
"""

import os
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from rejoint.io.schema import (
    SchemaError,
    dict_of,
    flag,
    list_of,
    nullable,
    number,
    object_of,
    text,
)
from rejoint.text import plural

if TYPE_CHECKING:
    from rejoint.marginals.marginals import Marginals
    from rejoint.marginals.read.description import Reading
    from rejoint.records.records import BaseRecords, Records
    from rejoint.records.scan import Scan
    from rejoint.solver.result import FitResult


#: Notes that tell how the fit went, in the order in which they are shown.
FIT_TEXTS = ("choice", "stop", "agreement")

_COUNT = number(0.0)
_NAMES = list_of(text())


def _text_or_names(value: Any, where: str) -> Any:
    """Accept the name of one variable or a list of names."""
    return (text() if isinstance(value, str) else _NAMES)(value, where)


_CURVE = {name: list_of(number()) for name in ("ranks", "scores", "errors")}
#: Notes that something computes with; others are shown as text, whatever they are.
_NOTES = {
    "records": _COUNT,
    "survey_design": object_of(
        {"records": _COUNT, "effect": number(1e-9), "total": _COUNT},
        {name: nullable(_COUNT) for name in ("effective", "strata", "clusters")},
    ),
    "missing": dict_of(number(0.0, 1.0)),
    **dict.fromkeys(("interrupted", "classes_are_groups"), flag),
    "log_likelihood": number(),
    "tables": list_of(
        object_of({"names": _NAMES}, {"total": nullable(number()), "where": text(), "kind": text()})
    ),
    "fit": object_of(
        {
            "tables": list_of(
                object_of(
                    {"names": _NAMES, "distance": number(), "records": _COUNT},
                    {"chance": nullable(number())},
                )
            ),
            "checked": number(0, whole=True),
            "all": number(0, whole=True),
        }
    ),
    "rank_curve": object_of({**_CURVE, "rank": number(1)}, {"tied": list_of(number())}),
    "ratings": _NAMES,
    "target": _text_or_names,
    "class_names": list_of(text()),
}
_CHECK_NOTES = object_of({}, {key: nullable(schema) for key, schema in _NOTES.items()})


def check_notes(notes: Any) -> None:
    """Raise a SchemaError for notes whose values are not as the module says; others are free.

    Examples
    --------
    >>> check_notes({"records": 400.0, "mine": [3]})
    >>> check_notes({"records": "many"})
    Traceback (most recent call last):
    ...
    rejoint.io.schema.SchemaError: 'records' of its notes is "many", expected a number of at least 0
    """
    if not isinstance(notes, dict):
        raise SchemaError("its notes are not an object")
    _CHECK_NOTES(notes, "its notes")
    curve = notes.get("rank_curve") or {}
    if len({len(curve.get(name, ())) for name in _CURVE}) > 1:
        raise SchemaError("'rank_curve' of its notes has lists of different lengths")


def check_class_names(notes: Mapping[str, Any], classes: int) -> None:
    """Raise a SchemaError unless there is a name for each class, or none.

    Examples
    --------
    >>> check_class_names({"class_names": ["a"]}, 2)
    Traceback (most recent call last):
    ...
    rejoint.io.schema.SchemaError: 1 class names for a model of 2 classes
    """
    names = notes.get("class_names")
    if names is not None and len(names) != classes:
        raise SchemaError(
            f"{len(names)} class names for a model of {plural(classes, 'class', 'classes')}"
        )


def fit_notes(
    result: "FitResult | None" = None,
    *,
    records: "Records | None" = None,
    tables: "Marginals | None" = None,
    readings: "Sequence[Reading]" = (),
    source: str | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Return notes about a fit, as :func:`write_model` takes them; the module lists the keys.

    Parameters
    ----------
    result : FitResult, optional
        Result of the fit.
    records, tables : Records, Marginals, optional
        Data of the fit.
    readings : sequence of Reading
        How the files of the tables were understood.
    source : str, optional
        File of the data.
    **more
        Further notes; None is left out.

    Examples
    --------
    >>> import rejoint as rj
    >>> fit_notes(records=rj.Records.of({"a": ["x", None]}), source="data/a.csv", seed=None)
    {'source': 'a.csv', 'records': 2.0, 'missing': {'a': 0.5}}
    """
    notes: dict[str, Any] = {"source": None if source is None else _file_name(source)}
    if records is not None:
        weight = np.ones(len(records)) if records.sample_weight is None else records.sample_weight
        gone = weight @ (records.codes < 0) / max(float(weight.sum()), 1e-300)
        notes["records"] = float(weight.sum())
        notes["survey_design"] = plain_design(records)
        notes["missing"] = dict(zip(records.names, gone.round(6).tolist(), strict=True))
    if tables is not None:
        counted = tables.totals[tables.counted]
        notes["records"] = float(counted.max()) if len(counted) else None
        totals = np.where(tables.counted, tables.totals, np.nan)
        read = {frozenset(reading.names): reading for reading in readings}
        notes["tables"] = [
            {
                "names": list(names),
                "total": float(total) if isfinite(total) else None,
                **_origin(read.get(frozenset(names))),
            }
            for names, total in zip(tables.subsets, totals, strict=True)
        ]
    if result is not None:
        value = result.log_likelihood
        notes |= {
            "choice": result.choice or None,
            "stop": result.stop,
            "agreement": result.agreement or None,
            "interrupted": result.interrupted or None,
            "log_likelihood": value if isfinite(value) else None,
            "rank_curve": _curve(result),
            "classes_are_groups": None if result.classes_are_groups else False,
        }
    return {key: value for key, value in (notes | more).items() if value is not None}


def _file_name(path: str) -> str:
    """Return the name of a file without its folder, as text: names may have any bytes."""
    return os.fsencode(PurePath(path).name).decode(errors="replace")


def _origin(reading: "Reading | None") -> dict[str, Any]:
    """Return file and kind of a table."""
    if reading is None:
        return {}
    return {"where": _file_name(reading.where), "kind": reading.kind}


def records_behind(notes: Mapping[str, Any]) -> float | None:
    """Return the number of records behind a model, not of effective ones; None if not known.

    Examples
    --------
    >>> records_behind({"records": 400.0, "survey_design": {"records": 1000}})
    1000
    """
    number = (notes.get("survey_design") or notes).get("records")
    return number if isinstance(number, int | float) else None


def plain_design(source: "BaseRecords | Scan") -> dict[str, Any] | None:
    """Return the survey design of records as plain JSON, if they have one.

    Examples
    --------
    >>> import rejoint as rj
    >>> plain_design(rj.Records.of({"a": ["x", "y"]}, survey_weight=[3, 1]))["effect"]
    1.25
    """
    return None if source.design is None else source.design.to_json()


def _curve(result: "FitResult") -> dict[str, Any] | None:
    """Return the scores of the ranks that were tried, if the rank was selected."""
    found = result.selection
    if found is None or not np.isfinite(found.scores).all():
        return None
    return {
        "rank": found.rank,
        "ranks": list(found.ranks),
        "scores": found.scores.tolist(),
        "errors": found.errors.tolist(),
        "tied": list(found.tied),
        "criterion": found.criterion,
    }
