"""Survey design: weights of records, and the effective number of records.

``sample_weight`` counts copies: a record of weight k is k records. ``survey_weight`` says how many
people of the population a record stands for. Only the ratios of survey weights mean something, so
they are scaled to sum to the effective number of records, ``n / design effect``.

Without strata and clusters, and for data that are read part by part, the design effect is that of
Kish, ``n sum s^2 / (sum s)^2``. With them it is the mean generalized design effect of all one-way
tables (Rao and Scott, first order): the sum over levels of the variances of their shares by Taylor
linearization, divided by the sum of those of a simple random sample. The variance is between
clusters within strata, with replacement,

    V(p) = sum_h C_h / (C_h - 1) sum_c (z_hc - mean_h z)^2,
    z_hc = sum_{i in hc} s_i (1[x_i] - p) / sum_i s_i,

where each record is a cluster of its own if no clusters are given. A stratum with a single cluster
is centered at the mean of all clusters, which is zero. The design effect is at least 1: what
stratification gains is gained for shares that the strata explain, not for those within them.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import Codes, FloatArray, IntArray, Keys
from rejoint.domain.columns import Coded, Numbers, read_column
from rejoint.domain.labels import scale_weights
from rejoint.io.schema import LARGEST
from rejoint.kernels import SparseCodes
from rejoint.messages import Message, PythonName, remark
from rejoint.records.frames import Frame, split_column
from rejoint.text import plural


def as_weight(weight: Any, rows: int, name: str = "sample_weight") -> FloatArray:
    """Return a read-only copy of weights, or raise an error that says what is wrong with them."""
    numbers = as_part_weight(weight, rows, name=name)
    if rows and not numbers.any():
        raise no_weight_error(name)
    return numbers


def no_weight_error(name: str = "sample_weight") -> ValueError:
    """Return the error for weights that are all zero."""
    return ValueError(_message(name, "{name} is zero in every row: nothing would count."))


def _message(name: str, text: str, **fields: Any) -> Message:
    return Message(text, name=PythonName(name), **fields)


def as_part_weight(
    weight: Any, rows: int, before: int = 0, name: str = "sample_weight"
) -> FloatArray:
    """Return the weights of a part, which may all be zero; ``before`` rows precede it."""
    try:
        numbers = np.array(weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(_message(name, "{name} must be numbers, one for each row.")) from None
    if numbers.shape != (rows,):
        text = "{name} must be one number for each of the {rows}, not an array of shape {shape}."
        shape = str(numbers.shape)
        raise ValueError(_message(name, text, rows=plural(rows, "row"), shape=shape))
    bad = ~(np.isfinite(numbers) & (numbers >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        text = "{name} must be finite and nonnegative, but row {row} has {value}."
        raise ValueError(_message(name, text, row=before + row, value=numbers[row]))
    with np.errstate(over="ignore"):
        total = numbers.sum()
    if total > LARGEST:
        text = (
            "{name} adds up to more than {most:g}, the largest number that a model file can "
            "hold: divide the weights by a large number."
        )
        raise ValueError(_message(name, text, most=LARGEST))
    numbers.setflags(write=False)
    return numbers


@dataclass(frozen=True)
class SurveyGroups:
    """The group of each row: codes into labels, all of them known."""

    labels: tuple[Hashable, ...]
    codes: IntArray

    @classmethod
    def of(cls, column: Any, rows: int, name: str, before: int = 0) -> "SurveyGroups":
        """Read a column of any library, or raise an error that says what is wrong with it."""
        found = read_column(column, name)
        if len(found) != rows:
            text = "{name} must have one value for each of the {rows}, not {found:,}."
            raise ValueError(_message(name, text, rows=plural(rows, "row"), found=len(found)))
        empty = found.codes < 0 if isinstance(found, Coded) else np.isnan(found.floats())
        if empty.any():
            text = (
                "{name}: row {row} has no value. Give every record a group, a group of its own "
                "where none is known, or leave the record out."
            )
            raise ValueError(_message(name, text, row=before + int(np.argmax(empty))))
        if isinstance(found, Coded):
            return cls(found.labels, found.codes.astype(np.intp))
        values, codes = np.unique(found.values, return_inverse=True)
        return cls(tuple(values.tolist()), codes.astype(np.intp))


@dataclass(frozen=True)
class SurveyDesign:
    """How many records survey weights are worth.

    Parameters
    ----------
    records : float
        Number of records with a weight above zero.
    effect : float
        Design effect: how many times more records give the accuracy of a simple random sample.
    total : float
        Sum of the weights as they were given.
    strata, clusters : int
        Number of strata, and of clusters; 0 where none are given.

    Examples
    --------
    >>> SurveyDesign(1000, 2.5, 3e7)
    SurveyDesign(records=1000, effect=2.5, total=30000000.0, strata=0, clusters=0)
    >>> print(SurveyDesign(1000, 2.5, 3e7).text)
    Survey weights: design effect 2.5, so 1,000 records count as 400.
    """

    records: float
    effect: float
    total: float
    strata: int = 0
    clusters: int = 0

    @property
    def effective(self) -> float:
        """Effective number of records, which the scaled weights sum to."""
        return self.records / self.effect

    @property
    def text(self) -> str:
        """The design in one line."""
        parts = [
            plural(self.strata, "stratum", "strata") if self.strata else "",
            plural(self.clusters, "cluster") if self.clusters else "",
        ]
        groups = " in ".join(filter(None, reversed(parts)))
        head = f"Survey design of {groups}" if groups else "Survey weights"
        return (
            f"{head}: design effect {self.effect:.3g}, so {plural(round(self.records), 'record')} "
            f"count as {self.effective:,.0f}."
        )

    def scale(self, weight: FloatArray) -> FloatArray:
        """Return weights scaled to sum to the effective number of records.

        Examples
        --------
        >>> SurveyDesign(2, 1.0, 6000.0).scale(np.array([3000.0, 3000.0, 0.0]))
        array([1., 1., 0.])
        """
        return scale_weights(weight, self.effective, self.total)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain JSON."""
        return {**vars(self), "effective": self.effective}

    @classmethod
    def from_json(cls, plain: dict[str, Any] | None) -> "SurveyDesign | None":
        """Return the design that `to_json` wrote; None for None."""
        if plain is None:
            return None
        return cls(**{key: value for key, value in plain.items() if key != "effective"})


def kish_effect(weight: FloatArray, copies: FloatArray | float = 1.0) -> float:
    """Return the design effect of weights alone, ``n sum s^2 / (sum s)^2``."""
    return WeightSums().add(weight, np.broadcast_to(copies, weight.shape)).effect


@dataclass
class WeightSums:
    """Sums over survey weights that their design effect is made of; they add up over parts."""

    rows: int = 0
    records: float = 0.0
    total: float = 0.0
    squares: float = 0.0

    def add(self, survey: FloatArray, copies: FloatArray) -> "WeightSums":
        """Add the weights of a part."""
        mine = float(copies[survey > 0].sum()), float(copies @ survey), float(copies @ survey**2)
        return self.join(WeightSums(len(survey), *mine))

    def join(self, other: "WeightSums") -> "WeightSums":
        """Add other sums."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)
        return self

    @property
    def effect(self) -> float:
        """Design effect of Kish."""
        return max(1.0, self.records * self.squares / self.total**2) if self.total > 0 else 1.0

    def design(
        self, effect: float | None = None, strata: int = 0, clusters: int = 0
    ) -> SurveyDesign:
        """Return the design, by another effect than that of Kish where one is given."""
        if self.rows and self.total <= 0:
            raise no_weight_error("survey_weight")
        effect = self.effect if effect is None else effect
        effect = float(f"{min(max(effect, 1.0), max(self.records, 1.0)):.12g}")
        return SurveyDesign(self.records, effect, self.total, strata, clusters)


@dataclass(frozen=True)
class RowWeights:
    """Weights of rows, checked: copies, survey weights, and the groups of a survey design."""

    rows: int
    copies: FloatArray | None = None
    survey: FloatArray | None = None
    strata: SurveyGroups | None = None
    clusters: SurveyGroups | None = None

    @property
    def is_survey(self) -> bool:
        """Whether the weights are those of a survey design."""
        return not (self.survey is None and self.strata is None and self.clusters is None)

    @property
    def cells(self) -> tuple[FloatArray | None, FloatArray | None]:
        """Weight of each row in the population, at any scale, and its copies; None for all equal.

        Rows without weight have no copies.
        """
        if self.survey is None:
            return self.copies, self.copies
        copies = 1.0 if self.copies is None else self.copies
        return self.raw, np.where(self.survey > 0, copies, 0.0)

    @property
    def raw(self) -> FloatArray:
        """Copies times survey weights."""
        one = np.ones(self.rows) if self.copies is None else self.copies
        return one if self.survey is None else one * self.survey

    def weigh(
        self, codes: Any, shape: Sequence[int]
    ) -> tuple[FloatArray | None, SurveyDesign | None, Keys | None]:
        """Return the weights of all records of these codes, their survey design, and clusters."""
        if not self.is_survey:
            return self.copies, None, None
        design = self.design(codes, shape)
        return design.scale(self.raw), design, self.cluster_keys

    @property
    def sums(self) -> WeightSums:
        """What Kish's design effect is made of."""
        one = np.ones(self.rows)
        copies, survey = (one if mass is None else mass for mass in (self.copies, self.survey))
        return WeightSums().add(survey, copies)

    def design(self, codes: Any, shape: Sequence[int]) -> SurveyDesign:
        """Return what the weights of these codes are worth, by their strata and clusters."""
        sums = self.sums
        if (self.strata is None and self.clusters is None) or not sums.total:
            return sums.design()
        used = np.flatnonzero(self.raw)
        stratum = np.zeros(len(used), dtype=np.intp)
        if self.strata is not None:
            stratum = np.unique(self.strata.codes[used], return_inverse=True)[1]
        strata, clusters, unit, stratum_of = int(stratum.max()) + 1, 0, None, stratum
        if self.clusters is not None:
            pairs = stratum * len(self.clusters.labels) + self.clusters.codes[used]
            distinct, unit = np.unique(pairs, return_inverse=True)
            stratum_of, clusters = distinct // len(self.clusters.labels), len(distinct)
            if clusters < 2:
                text = (
                    "{name}: all records are in one cluster, so the data do not show how much "
                    "clusters differ. Leave it out, or give smaller groups."
                )
                raise ValueError(_message("clusters", text))
        one = np.ones(len(used))
        copies = one if self.copies is None else self.copies[used]
        survey = one if self.survey is None else self.survey[used]
        spread, simple = _variances(codes[used], shape, copies, survey, stratum_of, unit)
        strata = 0 if self.strata is None else strata
        return sums.design(spread / simple if simple > 0 else None, strata, clusters)

    @property
    def cluster_keys(self) -> Keys | None:
        """A number for each row that tells its cluster, the same in whatever part it is."""
        if self.clusters is None:
            return None
        strata = self.strata or SurveyGroups(("",), np.zeros(self.rows, dtype=np.intp))
        size = len(self.clusters.labels)
        pairs, place = np.unique(strata.codes * size + self.clusters.codes, return_inverse=True)
        labels = (divmod(pair, size) for pair in pairs.tolist())
        keys = [hash_labels(strata.labels[h], self.clusters.labels[c]) for h, c in labels]
        return np.asarray(np.array(keys, dtype=np.int64)[place.ravel()])


def hash_labels(*labels: Hashable) -> int:
    """Return a 64-bit number that stands for some labels in every process.

    Examples
    --------
    >>> hash_labels("north", 1) == hash_labels("north", 1.0) != hash_labels("south", 1)
    True
    """
    texts = (repr(float(x)) if isinstance(x, int | float) else repr(x) for x in labels)
    found = blake2b("\n".join(texts).encode(), digest_size=8).digest()
    return int.from_bytes(found, "little", signed=True)


@dataclass(frozen=True)
class WeightArguments:
    """Weights as they are given: arrays, or names of columns.

    Parameters
    ----------
    sample_weight, survey_weight : array of float, or name of a column, optional
    strata, clusters : array, or name of a column, optional
    """

    sample_weight: Any = None
    survey_weight: Any = None
    strata: Any = None
    clusters: Any = None

    @property
    def given(self) -> dict[str, Any]:
        """The arguments that are given, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}

    @property
    def is_survey(self) -> bool:
        """Whether the weights are those of a survey design."""
        return bool(self.given.keys() - {"sample_weight"})

    @property
    def columns(self) -> list[str]:
        """Names of the columns that are given by name, each once."""
        return list(dict.fromkeys(v for v in self.given.values() if isinstance(v, str)))

    def check_named(self, source: str) -> None:
        """Raise unless all are names of columns; remark that groups do not count in parts."""
        for name, value in self.given.items():
            if not isinstance(value, str):
                text = "{source} is read part by part: {name} must be the name of a column."
                raise TypeError(_message(name, text, source=source))
        for name in ("strata", "clusters"):
            if name in self.given:
                text = (
                    "{source} is read part by part: the design effect is that of the weights "
                    "alone, without {name}. That of records in memory has them."
                )
                remark(_message(name, text, source=source))

    def check_arrays(self, what: str) -> None:
        """Raise if one is the name of a column."""
        for name, value in self.given.items():
            if isinstance(value, str):
                text = "{name}={value!r}: {what} give the values, an array with one for each row."
                raise TypeError(_message(name, text, value=value, what=what))

    def split(self, frame: Frame, before: int = 0) -> tuple[Frame, RowWeights]:
        """Return a frame without the columns that are named, and the weights of its rows.

        ``before`` rows precede the frame. Weights may all be zero in a part.
        """
        columns: dict[str, Any] = {}
        taken: dict[str, Any] = {}
        rest = frame
        for name, value in self.given.items():
            is_mass = name in ("sample_weight", "survey_weight")
            if isinstance(value, str):
                if value not in taken:
                    rest, taken[value] = split_column(rest, value, name)
                value = taken[value]
                value = read_numbers(value, name, self.given[name]) if is_mass else value
            if is_mass:
                columns[name.replace("sample_weight", "copies").removesuffix("_weight")] = (
                    as_part_weight(value, frame.rows, before, name)
                )
            else:
                columns[name] = SurveyGroups.of(value, frame.rows, name, before)
        return rest, RowWeights(frame.rows, **columns)

    def rows(self, count: int) -> RowWeights:
        """Return the weights of a number of rows, which are not all zero."""
        _, rows = self.split(Frame(None, [], count))
        return self.check_mass(rows)

    def check_mass(self, rows: RowWeights) -> RowWeights:
        """Raise where no row has a weight above zero."""
        if rows.rows and not rows.raw.any():
            raise no_weight_error(self.mass_name(rows.copies))
        return rows

    def mass_name(self, copies: FloatArray | None = None) -> str:
        """Name of the weights that must not all be zero."""
        only_copies = self.survey_weight is None or (copies is not None and not copies.any())
        return "sample_weight" if only_copies else "survey_weight"


#: No weights.
NO_WEIGHTS = WeightArguments()


def read_numbers(raw: Any, name: str, column: str) -> FloatArray:
    """Return a column of numbers, NaN where missing, or raise an error that names it."""
    numbers = read_column(raw, column)
    if not isinstance(numbers, Numbers):
        text = "{name}: the column {column!r} must hold a number in every row."
        raise ValueError(_message(name, text, column=column))
    return numbers.floats()


def _variances(
    codes: Any,
    shape: Sequence[int],
    copies: FloatArray,
    survey: FloatArray,
    stratum_of: IntArray,
    unit: IntArray | None,
) -> tuple[float, float]:
    """Sum of the variances of all shares: by the design, and of a simple random sample.

    ``unit`` is the cluster of each record; without one, each of its copies is a unit of its own.
    ``stratum_of`` has the stratum of each unit.
    """
    strata = int(stratum_of.max()) + 1
    units = np.bincount(stratum_of, copies if unit is None else None).astype(np.float64)
    correction = np.where(units > 1, units / np.maximum(units - 1.0, 1e-300), 1.0)[:, None]
    center = np.where(units > 1, 1.0 / np.maximum(units, 1.0), 0.0)[:, None]
    spread = simple = 0.0
    for row, level, wide in _observed_cells(codes, shape):
        mass, observed = copies[row] * survey[row], float(copies[row].sum())
        total = float(mass.sum())
        if not total > 0 or observed <= 1:
            continue
        share = np.bincount(level, mass, wide) / total
        simple += float((share * (1.0 - share)).sum()) / (observed - 1.0)

        def count(group: IntArray, size: int, values: FloatArray) -> FloatArray:
            cells: NDArray[Any] = np.bincount(group[row] * wide + level, values, size * wide)  # noqa: B023
            return cells.reshape(size, wide)  # noqa: B023

        # Linearized values of the units, summed over each stratum, and their squares.
        if unit is None:
            sums = count(stratum_of, strata, mass)
            squares = count(stratum_of, strata, mass * survey[row])
            first = sums - share * sums.sum(axis=1, keepdims=True)
            both = squares.sum(axis=1, keepdims=True)
            second = squares * (1.0 - 2.0 * share) + both * share**2
        else:
            sums = count(unit, len(stratum_of), mass)
            values = sums - share * sums.sum(axis=1, keepdims=True)
            first, second = np.zeros((2, strata, wide))
            np.add.at(first, stratum_of, values)
            np.add.at(second, stratum_of, values**2)
        spread += float((correction * (second - center * first**2)).sum()) / total**2
    return spread, simple


def _observed_cells(
    codes: Codes | SparseCodes, shape: Sequence[int]
) -> Iterator[tuple[IntArray, NDArray[Any], int]]:
    """Yield the rows and levels of the observed cells of each variable, and its size."""
    if isinstance(codes, SparseCodes):
        row, order = np.repeat(np.arange(len(codes)), codes.counts), np.argsort(codes.variables)
        ends = np.searchsorted(codes.variables[order], np.arange(len(shape) + 1))
    for n, wide in enumerate(shape):
        if isinstance(codes, SparseCodes):
            cells = order[ends[n] : ends[n + 1]]
            yield row[cells], codes.codes[cells], wide
        else:
            seen = np.flatnonzero(codes[:, n] >= 0)
            yield seen, codes[seen, n].astype(np.intp), wide
