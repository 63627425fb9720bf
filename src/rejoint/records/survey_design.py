"""Survey design: weights of records, and the effective number of records.

``sample_weight`` counts copies: a record of weight k is k records. ``survey_weight`` says how many
people of the population a record stands for. Only the ratios of survey weights mean something, so
they are scaled to sum to the effective number of records, ``n / design effect``.

Without strata and clusters the design effect is that of Kish, ``n sum s^2 / (sum s)^2``. With them
it is the mean generalized design effect of all one-way tables (Rao and Scott, first order): the sum
over levels of the variances of their shares by Taylor linearization, divided by the sum of those of
a simple random sample. The variance is between clusters within strata, with replacement,

    V(p) = sum_h C_h / (C_h - 1) sum_c (z_hc - mean_h z)^2,
    z_hc = sum_{i in hc} s_i (1[x_i] - p) / sum_i s_i,

where each record is a cluster of its own if no clusters are given. A stratum with a single cluster
is centered at the mean of all clusters, which is zero. The design effect is at least 1: what
stratification gains is gained for shares that the strata explain, not for those within them.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import Codes, FloatArray, IntArray, Keys
from rejoint.domain.columns import Coded, Numbers, read_column
from rejoint.domain.labels import scale_weights
from rejoint.io.schema import LARGEST
from rejoint.kernels import SparseCodes
from rejoint.messages import Message, PythonName
from rejoint.records.frames import Frame, split_column
from rejoint.text import plural


def as_weight(weight: Any, rows: int, name: str = "sample_weight") -> FloatArray:
    """Return a read-only copy of weights, or raise an error that says what is wrong with them.

    Examples
    --------
    >>> as_weight([1, 0.5], 2)
    array([1. , 0.5])
    """
    found = as_part_weight(weight, rows, name=name)
    if rows and not found.any():
        raise no_weight_error(name)
    return found


def no_weight_error(name: str = "sample_weight") -> ValueError:
    """Return the error for weights that are all zero.

    Examples
    --------
    >>> no_weight_error()
    ValueError('sample_weight is zero in every row: nothing would count.')
    """
    return ValueError(
        Message("{name} is zero in every row: nothing would count.", name=PythonName(name))
    )


def as_part_weight(
    weight: Any, rows: int, before: int = 0, name: str = "sample_weight"
) -> FloatArray:
    """Return the weights of a part, which may all be zero; ``before`` rows precede it.

    Examples
    --------
    >>> as_part_weight([0, 0], 2)
    array([0., 0.])
    """
    term = PythonName(name)
    try:
        found = np.array(weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(Message("{name} must be numbers, one for each row.", name=term)) from None
    if found.shape != (rows,):
        raise ValueError(
            Message(
                "{name} must be one number for each of the {rows}, not an array of shape {shape}.",
                name=term,
                rows=plural(rows, "row"),
                shape=str(found.shape),
            )
        )
    bad = ~(np.isfinite(found) & (found >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            Message(
                "{name} must be finite and nonnegative, but row {row} has {value}.",
                name=term,
                row=before + row,
                value=found[row],
            )
        )
    with np.errstate(over="ignore"):
        if found.sum() > LARGEST:
            raise ValueError(
                Message(
                    "{name} adds up to more than {most:g}, the largest number that a model file "
                    "can hold: divide the weights by a large number.",
                    name=PythonName(name),
                    most=LARGEST,
                )
            )
    found.setflags(write=False)
    return found


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
            raise ValueError(
                Message(
                    "{name} must have one value for each of the {rows}, not {found:,}.",
                    name=PythonName(name),
                    rows=plural(rows, "row"),
                    found=len(found),
                )
            )
        gone = np.asarray(found.codes < 0) if isinstance(found, Coded) else found.missing
        if gone is None and isinstance(found, Numbers):
            gone = np.isnan(found.floats())
        if gone is not None and gone.any():
            raise ValueError(
                Message(
                    "{name}: row {row} has no value. Give every record a group, a group of its own "
                    "where none is known, or leave the record out.",
                    name=PythonName(name),
                    row=before + int(np.argmax(gone)),
                )
            )
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
        return {
            "records": self.records,
            "effective": self.effective,
            "effect": self.effect,
            "total": self.total,
            "strata": self.strata,
            "clusters": self.clusters,
        }

    @classmethod
    def from_json(cls, plain: dict[str, Any] | None) -> "SurveyDesign | None":
        """Return the design that `to_json` wrote; None for None."""
        if plain is None:
            return None
        return cls(**{key: value for key, value in plain.items() if key != "effective"})


def kish_effect(weight: FloatArray, copies: FloatArray | float = 1.0) -> float:
    """Return the design effect of weights alone, ``n sum s^2 / (sum s)^2``.

    Examples
    --------
    >>> kish_effect(np.array([1.0, 1.0, 4.0])), kish_effect(np.array([5.0, 5.0, 0.0]))
    (1.5, 1.0)
    """
    sums = DesignSums(())
    sums.add_weights(weight, np.broadcast_to(copies, weight.shape))
    return sums.kish()


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
        sums = DesignSums(shape)
        sums.add(codes, self)
        design = sums.design()
        return design.scale(self.raw), design, self.cluster_keys

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
        """Raise unless all are names of columns.

        Examples
        --------
        >>> WeightArguments(clusters=[1, 2]).check_named("A scan")
        Traceback (most recent call last):
        ...
        TypeError: A scan is read part by part: clusters must be the name of a column.
        """
        for name, value in self.given.items():
            if not isinstance(value, str):
                text = "{source} is read part by part: {name} must be the name of a column."
                raise TypeError(Message(text, source=source, name=PythonName(name)))

    def check_arrays(self, what: str) -> None:
        """Raise if one is the name of a column."""
        for name, value in self.given.items():
            if isinstance(value, str):
                text = "{name}={value!r}: {what} give the values, an array with one for each row."
                raise TypeError(Message(text, name=PythonName(name), value=value, what=what))

    def split(self, frame: Frame, before: int = 0) -> tuple[Frame, RowWeights]:
        """Return a frame without the columns that are named, and the weights of its rows.

        ``before`` rows precede the frame. Weights may all be zero in a part.
        """
        found: dict[str, Any] = {}
        taken: dict[str, Any] = {}
        rest = frame
        for name, value in self.given.items():
            if isinstance(value, str):
                if value not in taken:
                    rest, taken[value] = split_column(rest, value, name)
                value = taken[value]
                if name in ("sample_weight", "survey_weight"):
                    value = read_numbers(value, name, self.given[name])
            if name in ("sample_weight", "survey_weight"):
                found[name] = as_part_weight(value, frame.rows, before, name)
            else:
                found[name] = SurveyGroups.of(value, frame.rows, name, before)
        return rest, RowWeights(
            frame.rows,
            found.get("sample_weight"),
            found.get("survey_weight"),
            found.get("strata"),
            found.get("clusters"),
        )

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
    found = read_column(raw, column)
    if not isinstance(found, Numbers):
        raise ValueError(
            Message(
                "{name}: the column {column!r} must hold a number in every row.",
                name=PythonName(name),
                column=column,
            )
        )
    return found.floats()


@dataclass
class DesignSums:
    """Sums over records that the design effect is made of; they add up over parts.

    Parameters
    ----------
    shape : sequence of int
        Number of levels of each variable.

    Notes
    -----
    With clusters a sum is kept for each cluster and level, with strata alone two for each stratum
    and level.

    Examples
    --------
    Six pupils of three schools; pupils of a school are alike.

    >>> schools = SurveyGroups.of([1, 1, 2, 2, 3, 3], 6, "clusters")
    >>> sums = DesignSums((2,))
    >>> sums.add(np.array([[0], [0], [1], [1], [0], [0]]), RowWeights(6, clusters=schools))
    >>> print(sums.design().text)
    Survey design of 3 clusters: design effect 2.5, so 6 records count as 2.
    """

    shape: Sequence[int]
    rows: int = 0
    records: float = 0.0
    total: float = 0.0
    squares: float = 0.0
    strata: dict[Hashable, int] = field(default_factory=dict)
    clusters: dict[Hashable, int] = field(default_factory=dict)
    has_strata: bool = False
    has_clusters: bool = False

    def __post_init__(self) -> None:
        self.starts = np.concatenate([[0], np.cumsum(self.shape)]).astype(np.intp)
        wide = int(self.starts[-1])
        #: Copies that have a value of each variable, (N,).
        self.observed = np.zeros(len(self.shape))
        #: Weight, and squared weight, of each level in each unit: cluster, or stratum without.
        self.sums = np.zeros((0, wide))
        self.squared = np.zeros((0, wide))
        #: Stratum of each cluster, or number of copies of each stratum.
        self.place = np.zeros(0)

    def add_weights(self, survey: FloatArray, copies: FloatArray) -> None:
        """Add weights alone."""
        self.rows += len(survey)
        self.records += float(copies[survey > 0].sum())
        self.total += float(copies @ survey)
        self.squares += float(copies @ survey**2)

    def add(self, codes: Any, rows: RowWeights) -> None:
        """Add the records of a part."""
        copies = np.ones(rows.rows) if rows.copies is None else rows.copies
        survey = np.ones(rows.rows) if rows.survey is None else rows.survey
        self.add_weights(survey, copies)
        self.has_strata |= rows.strata is not None
        self.has_clusters |= rows.clusters is not None
        if not (self.has_strata or self.has_clusters):
            return
        used = np.flatnonzero(copies * survey > 0)
        if len(used) < rows.rows:
            codes, copies, survey = codes[used], copies[used], survey[used]
        stratum = number_groups(rows.strata, used, self.strata)
        unit = stratum
        if rows.clusters is not None:
            unit = self.number_clusters(rows.clusters, used, stratum)
        else:
            self.place = grow(self.place, len(self.strata))
            self.place += np.bincount(stratum, copies, len(self.strata))
        count = len(self.clusters) if self.has_clusters else len(self.strata)
        self.sums = grow(self.sums, count)
        if not self.has_clusters:
            self.squared = grow(self.squared, count)
        for row, level, at, wide in cell_blocks(codes, self.shape):
            cell = unit[row] * wide + level
            part = slice(at, at + wide)

            def count_cells(mass: FloatArray, cell: IntArray = cell, wide: int = wide) -> Any:
                return np.bincount(cell, mass, count * wide).reshape(count, wide)

            self.sums[:, part] += count_cells((copies * survey)[row])
            if not self.has_clusters:
                self.squared[:, part] += count_cells((copies * survey**2)[row])
            seen = np.bincount(level, copies[row], wide)
            first = int(np.searchsorted(self.starts, at))
            for n in range(first, int(np.searchsorted(self.starts, at + wide))):
                low, high = self.starts[n] - at, self.starts[n + 1] - at
                self.observed[n] += float(seen[low:high].sum())

    def number_clusters(self, groups: SurveyGroups, used: IntArray, stratum: IntArray) -> IntArray:
        """Number clusters; those of the same label in two strata are two clusters."""
        codes = groups.codes[used]
        pairs, place = np.unique(stratum * len(groups.labels) + codes, return_inverse=True)
        names = list(self.strata)
        numbers = np.empty(len(pairs), dtype=np.intp)
        strata = []
        for k, pair in enumerate(pairs.tolist()):
            which, label = divmod(pair, len(groups.labels))
            key = (names[which], groups.labels[label])
            if key not in self.clusters:
                self.clusters[key] = len(self.clusters)
                strata.append(which)
            numbers[k] = self.clusters[key]
        self.place = np.concatenate([self.place, strata])
        return np.asarray(numbers[place.ravel()])

    def join(self, other: "DesignSums") -> "DesignSums":
        """Add the sums of other records, and return all."""
        for name in ("rows", "records", "total", "squares"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.has_strata |= other.has_strata
        self.has_clusters |= other.has_clusters
        self.observed = self.observed + other.observed
        strata = [self.strata.setdefault(label, len(self.strata)) for label in other.strata]
        units = np.array(strata, dtype=np.intp)
        if other.has_clusters:
            known = len(self.clusters)
            units = np.array(
                [self.clusters.setdefault(key, len(self.clusters)) for key in other.clusters],
                dtype=np.intp,
            )
            new = other.place[units >= known].astype(np.intp)
            self.place = np.concatenate([self.place, np.array(strata, dtype=np.intp)[new]])
        else:
            self.place = grow(self.place, len(self.strata))
            np.add.at(self.place, units, other.place)
        count = len(self.clusters) if self.has_clusters else len(self.strata)
        self.sums = grow(self.sums, count)
        np.add.at(self.sums, units, other.sums)
        if len(other.squared):
            self.squared = grow(self.squared, count)
            np.add.at(self.squared, units, other.squared)
        return self

    def kish(self) -> float:
        """Design effect of the weights alone."""
        if self.total <= 0:
            return 1.0
        return max(1.0, self.records * self.squares / self.total**2)

    def design(self) -> SurveyDesign:
        """Return the design of all records so far."""
        effect = self.kish()
        if self.rows and self.total <= 0:
            raise no_weight_error("survey_weight")
        if self.has_clusters and len(self.clusters) < 2:
            raise ValueError(
                Message(
                    "{clusters}: all records are in one cluster, so the data do not show how much "
                    "clusters differ. Leave it out, or give smaller groups.",
                    clusters=PythonName("clusters"),
                )
            )
        if self.has_strata or self.has_clusters:
            spread, simple = self.variances()
            if simple > 0:
                effect = spread / simple
        effect = float(f"{min(max(effect, 1.0), max(self.records, 1.0)):.12g}")
        return SurveyDesign(
            self.records,
            effect,
            self.total,
            len(self.strata) if self.has_strata else 0,
            len(self.clusters),
        )

    def variances(self) -> tuple[float, float]:
        """Sum of the variances of all shares: by the design, and of a simple random sample."""
        level_of = np.repeat(np.arange(len(self.shape)), self.shape)
        totals = self.sums.sum(axis=0)
        mass = add_levels(totals, self.starts)
        known = (mass > 0) & (self.observed > 1)
        inverse = np.where(known, 1.0 / np.where(known, mass, 1.0), 0.0)[level_of]
        share = totals * inverse
        simple = share * (1.0 - share) / np.where(known, self.observed - 1.0, np.inf)[level_of]
        # Linearized values of the units, summed over each stratum, and their squares.
        values = (self.sums - share * add_levels(self.sums, self.starts)[:, level_of]) * inverse
        if self.has_clusters:
            stratum, count = self.place.astype(np.intp), len(self.strata)
            units = np.bincount(stratum, minlength=count).astype(np.float64)
            first, second = np.zeros((2, count, len(level_of)))
            np.add.at(first, stratum, values)
            np.add.at(second, stratum, values**2)
        else:
            units, first = self.place, values
            both = add_levels(self.squared, self.starts)[:, level_of]
            second = (self.squared * (1.0 - 2.0 * share) + both * share**2) * inverse**2
        many = units > 1
        correction = np.where(many, units / np.where(many, units - 1.0, 1.0), 1.0)
        center = np.where(many, 1.0 / np.maximum(units, 1.0), 0.0)
        spread = correction[:, None] * (second - center[:, None] * first**2)
        return float(spread.sum()), float(simple.sum())


def number_groups(
    groups: SurveyGroups | None, used: IntArray, known: dict[Hashable, int]
) -> IntArray:
    """Number the groups of rows, new ones after those that are known; one group for None."""
    if groups is None:
        known.setdefault(None, 0)
        return np.zeros(len(used), dtype=np.intp)
    codes = groups.codes[used]
    numbers = np.zeros(len(groups.labels), dtype=np.intp)
    for code in np.unique(codes).tolist():
        numbers[code] = known.setdefault(groups.labels[code], len(known))
    return np.asarray(numbers[codes])


def grow(array: FloatArray, count: int) -> FloatArray:
    """Return the array with rows of zeros up to a number of rows."""
    more = count - len(array)
    return array if more <= 0 else np.concatenate([array, np.zeros((more, *array.shape[1:]))])


def add_levels(values: FloatArray, starts: IntArray) -> FloatArray:
    """Sum over the levels of each variable, on the last axis."""
    if not values.shape[-1]:
        return np.zeros((*values.shape[:-1], len(starts) - 1))
    return np.asarray(np.add.reduceat(values, starts[:-1], axis=-1))


def cell_blocks(
    codes: Codes | SparseCodes, shape: Sequence[int]
) -> Iterator[tuple[IntArray, NDArray[Any], int, int]]:
    """Yield rows and levels of observed cells, where these levels start, and their number.

    Examples
    --------
    >>> for row, level, at, wide in cell_blocks(np.array([[1, -1], [0, 2]]), (2, 3)):
    ...     print(row, level, at, wide)
    [0 1] [1 0] 0 2
    [1] [2] 2 3
    """
    if isinstance(codes, SparseCodes):
        row = np.repeat(np.arange(len(codes)), codes.counts)
        yield row, codes.cells, 0, sum(shape)
        return
    at = 0
    for n, wide in enumerate(shape):
        row = np.flatnonzero(codes[:, n] >= 0)
        yield row, codes[row, n].astype(np.intp), at, wide
        at += wide
