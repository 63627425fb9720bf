"""Read ratings in any form into one.

The forms are rows of user, item and rating with ids of any kind (frames, lists of tuples, sparse
records), tables of users x items (arrays, or frames where ``columns`` says so) with missing values,
and sparse matrices (what is not stored is unseen).
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array

from rejoint.arrays import FloatArray, IntArray
from rejoint.domain.labels import is_missing, native, natural_order
from rejoint.estimators.sklearn_input import is_frame
from rejoint.messages import remark
from rejoint.records.sparse import SparseRecords
from rejoint.text import cite, nearest, plural, show

#: What ``columns`` is where each column of a frame is an item.
TABLE = "items"

Columns = Sequence[Any] | None

#: Distinct ratings that are kept as levels, and the number of bins where there are more.
MOST_LEVELS, RATING_BINS = 20, 10


@dataclass(frozen=True)
class RatingLevels:
    """The value of each level, lowest first; a binned rating has the level with the next value."""

    values: FloatArray
    binned: bool = False
    half_up: bool = False
    implicit: bool = False

    @classmethod
    def of(cls, ratings: FloatArray, half_up: bool, implicit: bool) -> "RatingLevels":
        """Find the levels of some ratings."""
        if implicit:
            return cls(np.array([0.0, 1.0]), implicit=True)
        if len(ratings) == 0:
            raise ValueError("There is nothing to learn from: no user has rated any item.")
        if not np.isfinite(ratings).all():
            raise ValueError(
                "X has infinity among its ratings: they must be finite, NaN if unseen."
            )
        values = np.unique(adjust(ratings, half_up, False))
        if len(values) <= MOST_LEVELS:
            return cls(values, half_up=half_up)
        middles = (np.arange(RATING_BINS) + 0.5) / RATING_BINS
        levels = np.unique(np.quantile(ratings, middles))
        remark(
            f"Ratings have {len(values):,} distinct values: binned into "
            f"{plural(len(levels), 'level')} with about equally many ratings each. Round them for "
            "levels of your own."
        )
        return cls(levels, binned=True, half_up=half_up)

    def encode(self, ratings: FloatArray) -> IntArray:
        """Return the level of each rating, -1 if there is none."""
        ratings = adjust(np.asarray(ratings, dtype=np.float64), self.half_up, self.implicit)
        if self.binned:
            return np.searchsorted(self.values[1:] / 2 + self.values[:-1] / 2, ratings)
        places = np.searchsorted(self.values, ratings).clip(0, len(self.values) - 1)
        return np.where(self.values[places] == ratings, places, -1)

    def code(self, rating: float, item: object) -> int:
        """Return the level of one rating; an error if there is none."""
        level = int(self.encode(np.array([rating]))[0])
        if level < 0:
            raise ValueError(f"Item {cite(item)}: rating {rating:g} is not among {self.words}.")
        return level

    @property
    def words(self) -> str:
        """The levels, for a message."""
        return ", ".join(f"{value:g}" for value in self.values)

    @property
    def middle(self) -> int:
        """The first level of the upper half of the scale."""
        return int(np.searchsorted(self.values, 0.5 * (self.values[0] + self.values[-1]) - 1e-9))

    def at_least(self, threshold: float | None) -> int:
        """Return the first level that counts as liked, by default of the top 30 % of the scale."""
        low, high = self.values[0], self.values[-1]
        if threshold is None:
            threshold = float(low + 0.7 * (high - low) - 1e-9)
        if threshold > high:
            raise ValueError(f"threshold={cite(threshold)} is above the highest rating, {high:g}.")
        return int(np.searchsorted(self.values, threshold))


def adjust(ratings: FloatArray, half_up: bool, implicit: bool) -> FloatArray:
    """Round ratings, or turn them into yes and no, as asked."""
    if implicit:
        return np.asarray(ratings != 0.0, dtype=np.float64)
    return np.floor(ratings + 0.5) if half_up else ratings


@dataclass(frozen=True)
class Ids:
    """Labels of users or items, and the way back from a label to its place."""

    labels: NDArray[Any]
    noun: str

    @cached_property
    def places(self) -> dict[Hashable, int]:
        """Place of each label."""
        return {label: i for i, label in enumerate(self.labels.tolist())}

    def place(self, label: Hashable) -> int:
        """Return the place of one label; an error with the nearest one if there is none."""
        place = self.places.get(plain(label))
        if place is None:
            labels = self.labels.tolist()
            near = nearest(label, labels) or f" There are {show(labels)}."
            more = "; for a new user give the ratings: {item: rating}" * (self.noun == "user")
            raise KeyError(f"{self.noun} {cite(label)} was not in the fit{more}.{near}")
        return place

    def all_places(self, labels: Sequence[Any] | NDArray[Any]) -> IntArray:
        """Return the places of many labels."""
        return np.array([self.place(label) for label in labels], dtype=np.intp)

    def places_or_none(self, labels: NDArray[Any]) -> IntArray:
        """Return the places of many labels, -1 where there is none."""
        return np.array([self.places.get(label, -1) for label in labels.tolist()], dtype=np.intp)


def plain(label: Any) -> Any:
    """Return a label without NumPy's types around it."""
    return label.item() if isinstance(label, np.generic) else label


def as_labels(values: Any) -> NDArray[Any]:
    """Return labels as objects of plain Python."""
    return np.fromiter(map(plain, values), dtype=object, count=len(values))


class Ratings(NamedTuple):
    """Observed ratings: places of their users and items, and the ids of both."""

    user: IntArray
    item: IntArray
    rating: FloatArray
    users: NDArray[Any]
    items: NDArray[Any]


def is_table(X: Any, columns: Columns) -> bool:
    """Whether X has a row for each user and a column for each item, not a row for each rating."""
    if sparse.issparse(X):
        return True
    if isinstance(X, SparseRecords) or is_tuples(X):
        return False
    return columns == TABLE or (columns is None and not has_columns(X))


def is_tuples(X: Any) -> bool:
    """Whether X is a list of tuples."""
    return isinstance(X, list) and bool(X) and isinstance(X[0], tuple)


def has_columns(X: Any) -> bool:
    """Whether X is a frame of some library, or a dict of columns."""
    return is_frame(X) or isinstance(X, Mapping)


def read_ratings(X: Any, columns: Columns, implicit: bool) -> Ratings:
    """Read ratings in any of the forms."""
    if not is_table(X, columns):
        return _read_rows(*choose_columns(X, columns, 2 if implicit else 3))
    return _read_sparse(X) if sparse.issparse(X) else _read_table(X)


def choose_columns(X: Any, columns: Columns, least: int) -> list[Any]:
    """Return columns of user, item, rating and time, None where absent: named, or the first."""
    if isinstance(X, SparseRecords):  # the user's id is the number of the record
        values = np.concatenate([variable.numeric for variable in X.domain])
        items = np.array(X.names, dtype=object)[X.codes.variables]
        return [np.repeat(np.arange(len(X)), X.codes.counts), items, values[X.codes.cells], None]
    if is_tuples(X):
        frame: dict[Any, Any] = dict(enumerate(map(as_labels, zip(*X, strict=True))))
        names = list(frame)
    else:
        frame = open_frame(X)
        names = list(frame) if columns is None else columns  # type: ignore[assignment]
    if isinstance(names, str) or not least <= len(names) <= 4:
        raise ValueError(
            "X must have columns of user, item, rating and, if there is one, time: name them, such "
            "as columns=('userId', 'movieId', 'rating'), or say columns='items' if each column is "
            f"an item; got {show(names)}."
        )
    for name in names:
        if name not in frame:
            raise ValueError(
                f"columns has {cite(name)}, but X has {show(list(frame))}."
                f"{nearest(name, list(frame))}"
            )
    if columns is None and not is_tuples(X):
        names = names[:3]
    return [frame[name] for name in names] + [None] * (4 - len(names))


def open_frame(X: Any) -> dict[Any, NDArray[Any]]:
    """Return the columns of a frame by their names, which need not be text, or of an array."""
    if isinstance(X, Mapping):
        return {name: np.asarray(column) for name, column in X.items()}
    if not is_frame(X):
        return dict(enumerate(np.asarray(X, dtype=object).T))
    frame = nw.from_native(X, eager_only=True)
    if len(set(frame.columns)) < len(frame.columns):
        raise ValueError("X has two columns of the same name: rename one of them.")
    columns = zip(frame.columns, frame.iter_columns(), strict=True)  # frame[0] would be a row
    return {name: column.to_numpy() for name, column in columns}


def as_numbers(values: Any) -> FloatArray:
    """Return ratings as numbers, NaN where one is missing."""
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"Ratings must be numbers ({error}): turn labels into numbers first, worst to best, or "
            "name the columns of user, item and rating with columns=."
        ) from error


def _read_rows(user: Any, item: Any, rating: Any, time: Any) -> Ratings:
    """Read rows of ids and ratings; the last one counts where a pair occurs twice."""
    if time is not None:
        order = np.argsort(time, kind="stable")
        user, item, rating = (np.asarray(column)[order] for column in (user, item, rating))
    (users, user_places), (items, item_places) = find_places(user), find_places(item)
    ratings = np.ones(len(user_places)) if rating is None else as_numbers(rating)
    good = (user_places >= 0) & (item_places >= 0) & ~np.isnan(ratings)
    user_places, item_places, ratings = user_places[good], item_places[good], ratings[good]
    key = user_places * len(items) + item_places
    _, last = np.unique(key[::-1], return_index=True)
    if len(last) < len(key):
        remark(
            f"{len(key) - len(last):,} of {plural(len(key), 'row')} rate an item that the same "
            "user has rated in another row: the last one counts."
        )
    chosen = len(key) - 1 - last
    return Ratings(user_places[chosen], item_places[chosen], ratings[chosen], users, items)


def find_places(values: Any) -> tuple[NDArray[Any], IntArray]:
    """Return distinct ids in natural order, and the place of each value, -1 if it is missing."""
    array = values if isinstance(values, np.ndarray) else as_labels(values)
    if array.dtype.kind in "iu":
        labels, places = np.unique(array, return_inverse=True)
        return as_labels(labels), places.astype(np.intp)
    ids = [None if is_missing(value) else native(value) for value in array]
    labels = as_labels(natural_order({value for value in ids if value is not None}))
    index: dict[Any, int] = {label: i for i, label in enumerate(labels)} | {None: -1}
    return labels, np.array([index[value] for value in ids], dtype=np.intp)


def _read_sparse(X: Any) -> Ratings:
    """Read a sparse matrix: stored cells are observed, zeros included."""
    cells = sparse.csr_array(X, dtype=np.float64)
    cells.sum_duplicates()
    user, item = (places.astype(np.intp) for places in cells.tocoo().coords)
    good = ~np.isnan(cells.data)
    users, items = (np.arange(size).astype(object) for size in X.shape)
    return Ratings(user[good], item[good], cells.data[good], users, items)


def _read_table(X: Any) -> Ratings:
    """Read a table of users x items; NaN and None are unseen."""
    if has_columns(X):
        frame = open_frame(X)
        table = np.column_stack(list(map(as_numbers, frame.values())))
        items, users = as_labels(list(frame)), np.arange(len(table)).astype(object)
        if is_frame(X) and (index := nw.maybe_get_index(nw.from_native(X))) is not None:
            users = as_labels(index)
    else:
        table = check_array(
            X, dtype=np.float64, ensure_all_finite="allow-nan", ensure_min_features=1
        )
        users, items = (np.arange(size).astype(object) for size in table.shape)
    user, item = np.nonzero(~np.isnan(table))
    return Ratings(user, item, table[user, item], users, items)


def read_pairs(X: Any, columns: Columns) -> tuple[NDArray[Any], NDArray[Any]]:
    """Read users and items of pairs: a list of tuples, a frame, or an array of two columns."""
    if has_columns(X):
        frame = open_frame(X)
        names = [name for name in columns or () if name in frame] if columns != TABLE else []
        names = (names if len(names) >= 2 else list(frame))[:2]
        if len(names) < 2:
            raise ValueError(f"Pairs are (user, item); got {show(names)}.")
        user, item = names
        user, item = (names if len(names) >= 2 else [*frame, *frame])[:2]
        return as_labels(frame[user]), as_labels(frame[item])
    rows = list(X)
    if any(not hasattr(row, "__len__") or isinstance(row, str) or len(row) < 2 for row in rows):
        raise ValueError(f"Pairs are (user, item); got {show(rows, 2)}.")
    return as_labels([row[0] for row in rows]), as_labels([row[1] for row in rows])
