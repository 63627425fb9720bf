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

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import FloatArray, IntArray, Keys
from rejoint.domain.columns import Coded, Numbers, parse_numbers, read_column
from rejoint.domain.labels import scale_weights
from rejoint.io.schema import LARGEST
from rejoint.kernels import SparseCodes
from rejoint.records.frames import Frame, split_column
from rejoint.text import cite, plural

#: Rows whose cells are summed at a time.
CHUNK = 2**16


def as_weight(weight: Any, rows: int, name: str = "sample_weight") -> FloatArray:
    """Return a read-only copy of weights, or raise an error that says what is wrong with them."""
    checked = as_part_weight(weight, rows, name=name)
    if rows and not checked.any():
        raise no_weight_error(name)
    return checked


def no_weight_error(name: str = "sample_weight") -> ValueError:
    """Return the error for weights that are all zero."""
    return ValueError(f"{name} is zero in every row: nothing would count.")


def as_part_weight(
    weight: Any, rows: int, before: int = 0, name: str = "sample_weight"
) -> FloatArray:
    """Return the weights of a part, which may all be zero; ``before`` rows precede it."""
    try:
        checked = np.array(weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be numbers, one for each row.") from None
    if checked.shape != (rows,):
        shape = f"not an array of shape {checked.shape}"
        raise ValueError(
            f"{name} must be one number for each of the {plural(rows, 'row')}, {shape}."
        )
    bad = ~(np.isfinite(checked) & (checked >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        wrong = f"row {before + row} has {checked[row]}"
        raise ValueError(f"{name} must be finite and nonnegative, but {wrong}.")
    with np.errstate(over="ignore"):
        if checked.sum() > LARGEST:
            most = f"{LARGEST:g}, the largest number that a model file can hold"
            raise ValueError(f"{name} adds up to more than {most}: divide it by a large number.")
    checked.setflags(write=False)
    return checked


def read_groups(column: Any, rows: int, name: str, before: int = 0) -> Coded:
    """Return the group of each row, or raise an error that says what is wrong with the column."""
    groups = parse_numbers(read_column(column, name))
    if len(groups) != rows:
        count = f"each of the {plural(rows, 'row')}, not {len(groups):,}"
        raise ValueError(f"{name} must have one value for {count}.")
    if not groups.is_present.all():
        raise ValueError(
            f"{name}: row {before + int(np.argmin(groups.is_present))} has no value. Give every "
            "record a group, a group of its own where none is known, or leave the record out."
        )
    return groups.coded() if isinstance(groups, Numbers) else groups


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
        clusters = plural(self.clusters, "cluster") if self.clusters else ""
        strata = plural(self.strata, "stratum", "strata") if self.strata else ""
        groups = " in ".join(filter(None, (clusters, strata)))
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
    times = np.broadcast_to(copies, weight.shape)
    total = float(times @ weight)
    records, squares = float(times[weight > 0].sum()), float(times @ weight**2)
    return max(1.0, records * squares / total**2) if total > 0 else 1.0


@dataclass(frozen=True)
class RowWeights:
    """Weights of rows, checked: copies, survey weights, and the groups of a survey design."""

    rows: int
    copies: FloatArray | None = None
    survey: FloatArray | None = None
    strata: Coded | None = None
    clusters: Coded | None = None

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
        if self.survey is None and self.strata is None and self.clusters is None:
            return self.copies, None, None
        sums = DesignSums(shape)
        sums.add(codes, self)
        design = sums.design()
        return design.scale(self.raw), design, self.cluster_keys

    @property
    def cluster_keys(self) -> Keys | None:
        """A number for each row that tells its cluster, the same in whatever part it is."""
        return None if self.clusters is None else self.group_keys()[1]

    def group_keys(self) -> tuple[Keys, Keys]:
        """Return a number for the stratum of each row, and one for its cluster within it."""
        one = Coded(("",), np.zeros(self.rows, dtype=np.intp))
        strata, clusters = self.strata or one, self.clusters or one
        size = len(clusters.labels)
        pairs, place = np.unique(strata.codes * np.intp(size) + clusters.codes, return_inverse=True)
        labels = [(strata.labels[p // size], clusters.labels[p % size]) for p in pairs.tolist()]
        both = np.array([(hash_labels(h), hash_labels(h, c)) for h, c in labels], dtype=np.int64)
        stratum, cluster = both.reshape(-1, 2)[place].T
        return stratum, cluster


def hash_labels(*labels: Hashable) -> int:
    """Return a 64-bit number that stands for some labels in every process."""
    texts = (repr(float(x)) if isinstance(x, int | float) else repr(x) for x in labels)
    digest = blake2b("\n".join(texts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


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
        """Raise unless all are names of columns."""
        for name, value in self.given.items():
            if not isinstance(value, str):
                use = f"{name} must be the name of a column"
                raise TypeError(f"{source} is read part by part: {use}.")

    def check_arrays(self, what: str) -> None:
        """Raise if one is the name of a column."""
        for name, value in self.given.items():
            if isinstance(value, str):
                rest = f"{what} give the values, an array with one for each row."
                raise TypeError(f"{name}={cite(value)}: {rest}")

    def split(self, frame: Frame, before: int = 0) -> tuple[Frame, RowWeights]:
        """Return a frame without the columns that are named, and the weights of its rows.

        ``before`` rows precede the frame. Weights may all be zero in a part.
        """
        rest, columns = frame, {}
        rows: dict[str, Any] = {}
        for name, value in self.given.items():
            column = value
            if isinstance(value, str):
                if value not in columns:
                    rest, columns[value] = split_column(rest, value, name)
                column = columns[value]
            if name not in ("sample_weight", "survey_weight"):
                rows[name] = read_groups(column, frame.rows, name, before)
                continue
            if isinstance(value, str):
                column = read_numbers(column, name, value)
            rows[name.split("_")[0]] = as_part_weight(column, frame.rows, before, name)
        copies = rows.pop("sample", None)
        return rest, RowWeights(frame.rows, copies, **rows)

    def rows(self, count: int) -> RowWeights:
        """Return the weights of a number of rows, which are not all zero."""
        return self.check_mass(self.split(Frame(None, [], count))[1])

    def check_mass(self, rows: RowWeights) -> RowWeights:
        """Raise where no row has a weight above zero."""
        if rows.rows and not rows.raw.any():
            no_copies = rows.copies is not None and not rows.copies.any()
            is_sample = self.survey_weight is None or no_copies
            raise no_weight_error("sample_weight" if is_sample else "survey_weight")
        return rows


#: No weights.
NO_WEIGHTS = WeightArguments()


def read_numbers(raw: Any, name: str, column: str) -> FloatArray:
    """Return a column of numbers, NaN where missing, or raise an error that names it."""
    numbers = parse_numbers(read_column(raw, column))
    if not isinstance(numbers, Numbers):
        raise ValueError(f"{name}: the column {cite(column)} must hold a number in every row.")
    return numbers.floats()


@dataclass
class DesignSums:
    """Sums over records that the design effect is made of; they add up over parts.

    A unit is a cluster or, without clusters, a stratum.

    Parameters
    ----------
    shape : sequence of int
        Number of levels of each variable.

    Examples
    --------
    Six pupils of three schools; pupils of a school are alike.

    >>> schools = read_groups([1, 1, 2, 2, 3, 3], 6, "clusters")
    >>> sums = DesignSums((2,))
    >>> codes = np.array([[0], [0], [1], [1], [0], [0]], dtype=np.int8)
    >>> sums.add(codes, RowWeights(6, clusters=schools))
    >>> print(sums.design().text)
    Survey design of 3 clusters: design effect 2.5, so 6 records count as 2.
    """

    shape: Sequence[int]
    has_strata: bool = False
    has_clusters: bool = False

    def __post_init__(self) -> None:
        self.starts = np.concatenate([[0], np.cumsum(self.shape)]).astype(np.intp)
        wide = int(self.starts[-1])
        #: Rows, and sums over records: copies, weight and squared weight.
        self.rows, self.totals = 0, np.zeros(3)
        #: Copies that have each level.
        self.observed = np.zeros(wide)
        #: The key of each unit, that of its stratum, and its number of copies.
        self.units, self.strata = np.zeros((2, 0), dtype=np.int64)
        self.copies = np.zeros(0)
        #: Weight, and squared weight, of each level in each unit.
        self.sums, self.squared = np.zeros((2, 0, wide))

    def add(self, codes: Any, rows: RowWeights) -> None:
        """Add the records of a part."""
        copies = np.ones(rows.rows) if rows.copies is None else rows.copies
        survey = np.ones(rows.rows) if rows.survey is None else rows.survey
        self.rows += rows.rows
        self.totals += copies[survey > 0].sum(), copies @ survey, copies @ survey**2
        self.has_strata |= rows.strata is not None
        self.has_clusters |= rows.clusters is not None
        if not (self.has_strata or self.has_clusters):
            return
        used = np.flatnonzero(copies * survey > 0)
        stratum, cluster = (keys[used] for keys in rows.group_keys())
        units, first, unit = np.unique(cluster, return_index=True, return_inverse=True)
        wide = len(self.observed)
        sums = np.zeros((2, len(units) * wide))
        for start in range(0, len(used), CHUNK):
            part = slice(start, start + CHUNK)
            cells = codes[used[part]]
            if not isinstance(cells, SparseCodes):
                cells = SparseCodes.of_codes(cells, self.shape)
            row = np.repeat(np.arange(len(cells)), cells.counts)
            times, mass = copies[used[part]][row], survey[used[part]][row]
            self.observed += np.bincount(cells.cells, times, wide)
            place = unit[part][row] * wide + cells.cells
            sums[0] += np.bincount(place, times * mass, sums.shape[1])
            sums[1] += np.bincount(place, times * mass**2, sums.shape[1])
        count = np.bincount(unit, copies[used], len(units)).astype(np.float64)
        self._add_units(units, stratum[first], count, *sums.reshape(2, len(units), wide))

    def _add_units(self, units: Keys, strata: Keys, *sums: FloatArray) -> None:
        """Add the sums of units, some of which may be there already."""
        keys = np.concatenate([self.units, units])
        self.units, first, place = np.unique(keys, return_index=True, return_inverse=True)
        self.strata = np.concatenate([self.strata, strata])[first]
        totals = []
        for mine, more in zip((self.copies, self.sums, self.squared), sums, strict=True):
            total = np.zeros((len(self.units), *more.shape[1:]))
            np.add.at(total, place, np.concatenate([mine, more]))
            totals.append(total)
        self.copies, self.sums, self.squared = totals

    def join(self, other: "DesignSums") -> "DesignSums":
        """Add the sums of other records, and return all."""
        self.rows += other.rows
        self.totals += other.totals
        self.observed += other.observed
        self.has_strata |= other.has_strata
        self.has_clusters |= other.has_clusters
        self._add_units(other.units, other.strata, other.copies, other.sums, other.squared)
        return self

    def design(self) -> SurveyDesign:
        """Return the design of all records so far."""
        records, total, squares = self.totals.tolist()
        if self.rows and total <= 0:
            raise no_weight_error("survey_weight")
        if self.has_clusters and len(self.units) < 2:
            raise ValueError(
                "clusters: all records are in one cluster, so the data do not show how much "
                "clusters differ. Leave it out, or give smaller groups."
            )
        effect = records * squares / total**2 if total > 0 else 1.0
        strata, stratum = np.unique(self.strata, return_inverse=True)
        if self.has_strata or self.has_clusters:
            spread, simple = self._variances(stratum, len(strata))
            effect = spread / simple if simple > 0 else effect
        effect = float(f"{min(max(effect, 1.0), max(records, 1.0)):.12g}")
        counts = len(strata) * self.has_strata, len(self.units) * self.has_clusters
        return SurveyDesign(records, effect, total, *counts)

    def _variances(self, stratum: IntArray, count: int) -> tuple[float, float]:
        """Sum of the variances of all shares: by the design, and of a simple random sample."""
        level_of = np.repeat(np.arange(len(self.shape)), self.shape)
        totals, observed = self.sums.sum(axis=0), self._add_levels(self.observed)
        mass = self._add_levels(totals)
        used = (mass > 0) & (observed > 1)
        inverse = np.where(used, 1.0 / np.where(used, mass, 1.0), 0.0)[level_of]
        share = totals * inverse
        simple = share * (1.0 - share) / np.where(used, observed - 1.0, np.inf)[level_of]
        # Linearized values of the units, summed over each stratum, and their squares.
        values = (self.sums - share * self._add_levels(self.sums)[:, level_of]) * inverse
        units, first, second = self.copies, values, values**2
        if self.has_clusters:
            units = np.bincount(stratum, minlength=count).astype(np.float64)
            first, second = np.zeros((2, count, len(level_of)))
            np.add.at(first, stratum, values)
            np.add.at(second, stratum, values**2)
        else:  # each record is a cluster
            both = self._add_levels(self.squared)[:, level_of]
            second = (self.squared * (1.0 - 2.0 * share) + both * share**2) * inverse**2
        many = units > 1
        correction = np.where(many, units / np.where(many, units - 1.0, 1.0), 1.0)
        center = np.where(many, 1.0 / np.maximum(units, 1.0), 0.0)
        spread = correction[:, None] * (second - center[:, None] * first**2)
        return float(spread.sum()), float(simple.sum())

    def _add_levels(self, values: FloatArray) -> NDArray[np.float64]:
        """Sum over the levels of each variable, on the last axis."""
        if not values.shape[-1]:
            return np.zeros((*values.shape[:-1], len(self.shape)))
        return np.asarray(np.add.reduceat(values, self.starts[:-1], axis=-1))
