"""FeatureTable: features of users or items as numbers that their traits depend on."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rejoint.domain.labels import is_missing
from rejoint.estimators.recommender.ratings import plain
from rejoint.estimators.recommender.traits import Single
from rejoint.text import show


@dataclass(frozen=True)
class FeatureTable:
    """How features become numbers.

    Numbers are standardized, and missing ones are zero: the mean. Text becomes an indicator of each
    label; a list, tuple or set has several, as has text with bars, such as "Action|Crime".

    Parameters
    ----------
    numbers : mapping
        Mean and standard deviation of each numeric feature.
    labels : mapping
        Labels of each of the others.

    Examples
    --------
    >>> table = FeatureTable.of([{"year": 1990, "genre": ["crime"]}, {"year": 2000, "genre": []}])
    >>> table.encode([{"year": 2000, "genre": ["crime"]}])
    array([[1., 1.]], dtype=float32)
    """

    numbers: Mapping[str, tuple[float, float]]
    labels: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]]) -> "FeatureTable":
        """Find out what features there are."""
        found: dict[str, list[Any]] = {}
        for row in rows:
            for name, value in row.items():
                if not _is_absent(value):
                    found.setdefault(str(name), []).append(value)
        numbers, labels = {}, {}
        for name, values in found.items():
            if all(isinstance(plain(value), int | float) for value in values):
                array = np.array(values, dtype=np.float64)
                numbers[name] = float(array.mean()), float(array.std()) or 1.0
            else:
                labels[name] = tuple(sorted({str(one) for v in values for one in _as_labels(v)}))
        return cls(numbers, labels)

    @property
    def size(self) -> int:
        """Number of columns."""
        return len(self.numbers) + sum(map(len, self.labels.values()))

    def encode(self, rows: Sequence[Mapping[str, Any]]) -> Single:
        """Return features as numbers, (rows, columns); unknown names are an error."""
        known = [*self.numbers, *self.labels]
        places = {(name, label): 0 for name, some in self.labels.items() for label in some}
        places = {key: len(self.numbers) + k for k, key in enumerate(places)}
        found = np.zeros((len(rows), self.size), dtype=np.float32)
        for i, row in enumerate(rows):
            for name, value in row.items():
                if str(name) not in known:
                    raise KeyError(f"There is no feature {name!r}; there are {show(known)}.")
                if _is_absent(value):
                    continue
                if str(name) in self.numbers:
                    mean, spread = self.numbers[str(name)]
                    found[i, known.index(str(name))] = (float(value) - mean) / spread
                    continue
                for label in _as_labels(value):
                    place = places.get((str(name), str(label)))
                    if place is not None:
                        found[i, place] = 1.0
        return found


def read_features(features: Any, ids: Sequence[Hashable], noun: str) -> dict[Any, dict[str, Any]]:
    """Read features by id: a mapping, a frame whose index has the ids, or rows in their order.

    Examples
    --------
    >>> read_features({"Up": {"year": 2009}}, ["Up", "Heat"], "item")
    {'Up': {'year': 2009}}
    >>> read_features([[2009], [1995]], ["Up", "Heat"], "item")
    {'Up': {'x0': 2009}, 'Heat': {'x0': 1995}}
    """
    if isinstance(features, Mapping):
        found = {plain(key): _as_row(row) for key, row in features.items()}
    elif hasattr(features, "iloc"):
        rows = features.to_dict("records")
        found = {plain(key): row for key, row in zip(features.index, rows, strict=True)}
    else:
        rows = list(features)
        if len(rows) != len(ids):
            raise ValueError(
                f"{noun}_features has {len(rows):,} rows for {len(ids):,} {noun}s: give one row "
                f"for each {noun}, or a mapping of {noun}s to their features."
            )
        found = {key: _as_row(row) for key, row in zip(ids, rows, strict=True)}
    return found


def _as_row(row: Any) -> dict[str, Any]:
    if isinstance(row, Mapping):
        return {str(name): value for name, value in row.items()}
    if isinstance(row, str) or not hasattr(row, "__len__"):
        row = [row]
    return {f"x{k}": plain(value) for k, value in enumerate(row)}


def _is_absent(value: Any) -> bool:
    return not isinstance(value, list | tuple | set | frozenset) and is_missing(value)


def _as_labels(value: Any) -> list[Any]:
    if isinstance(value, str):
        return value.split("|")
    return list(value) if isinstance(value, list | tuple | set | frozenset) else [value]
