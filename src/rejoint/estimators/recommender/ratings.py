"""Read ratings in any form into one, and features of users and items into numbers.

The forms are tables of users x items (arrays and frames with missing values), sparse matrices
(what is not stored is unseen), sparse records, and rows of user, item and rating with ids of any
kind.
"""

import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array

from rejoint.arrays import FloatArray, IntArray, Single
from rejoint.domain.labels import is_missing, native, natural_order
from rejoint.estimators.sklearn_input import is_frame
from rejoint.messages import Argument, Message, remark
from rejoint.records.sparse import SparseRecords
from rejoint.text import cite, nearest, plural, show

#: Distinct ratings that are kept as levels, and the number of bins where there are more.
MOST_LEVELS, RATING_BINS = 20, 10


@dataclass(frozen=True)
class RatingLevels:
    """The value of each level, lowest first; edges between them where ratings were binned."""

    values: FloatArray
    edges: FloatArray | None = None
    half_up: bool = False
    implicit: bool = False

    def encode(self, ratings: FloatArray) -> IntArray:
        """Return the level of each rating, -1 if there is none."""
        ratings = adjust(np.asarray(ratings, dtype=np.float64), self.half_up, self.implicit)
        if self.edges is not None:
            return np.searchsorted(self.edges, ratings, side="right")
        places = np.searchsorted(self.values, ratings).clip(0, len(self.values) - 1)
        return np.where(self.values[places] == ratings, places, -1)

    def code(self, rating: float, item: object) -> int:
        """Return the level of one rating; an error if there is none."""
        found = int(self.encode(np.array([rating]))[0])
        if found < 0:
            raise ValueError(f"Item {cite(item)}: rating {rating:g} is not among {self.words}.")
        return found

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
        if threshold is None:
            low, high = self.values[0], self.values[-1]
            threshold = float(low + 0.7 * (high - low) - 1e-9)
        found = int(np.searchsorted(self.values, threshold))
        if found == len(self.values):
            raise ValueError(
                f"threshold={cite(threshold)} is above the highest rating, {self.values[-1]:g}."
            )
        return found


def adjust(ratings: FloatArray, half_up: bool, implicit: bool) -> FloatArray:
    """Round ratings, or turn them into yes and no, as asked."""
    if implicit:
        return np.asarray(ratings != 0.0, dtype=np.float64)
    return np.floor(ratings + 0.5) if half_up else ratings


def find_levels(ratings: FloatArray, *, half_up: bool, implicit: bool) -> RatingLevels:
    """Find the levels of some ratings.

    Examples
    --------
    >>> find_levels(np.array([3.5, 4.0, 0.5]), half_up=True, implicit=False).values
    array([1., 4.])
    """
    if implicit:
        return RatingLevels(np.array([0.0, 1.0]), implicit=True)
    if len(ratings) == 0:
        raise ValueError("There is nothing to learn from: no user has rated any item.")
    if not np.isfinite(ratings).all():
        raise ValueError("X has infinity among its ratings: they must be finite, NaN if unseen.")
    ratings = adjust(ratings, half_up, False)
    values = np.unique(ratings)
    if len(values) <= MOST_LEVELS:
        return RatingLevels(values, half_up=half_up)
    cuts = np.quantile(ratings, np.linspace(0.0, 1.0, RATING_BINS + 1)[1:-1])
    edges = np.unique(cuts[(cuts > values[0]) & (cuts <= values[-1])])
    codes = np.searchsorted(edges, ratings, side="right")
    used, codes = np.unique(codes, return_inverse=True)
    edges = edges[used[1:] - 1]  # an empty bin goes to its neighbour below
    means = np.bincount(codes, weights=ratings) / np.bincount(codes)
    remark(
        f"Ratings have {len(values):,} distinct values: binned into {plural(len(means), 'level')} "
        "with about equally many ratings each. Round them for levels of your own."
    )
    return RatingLevels(means, edges, half_up=half_up)


#: Usual names of the columns of rows, in lower case and without "id".
COLUMN_NAMES = (
    {
        *("user", "u", "usr", "customer", "reviewer", "person", "member", "rater", "client"),
        *("reader", "viewer", "account", "buyer", "visitor", "subscriber"),
    },
    {
        *("item", "i", "movie", "product", "book", "song", "track", "film", "article", "business"),
        *("title", "sku", "isbn", "asin", "artist", "game", "recipe", "restaurant", "joke"),
    },
    {
        *("rating", "rate", "score", "stars", "star", "value", "grade", "count", "quantity"),
        *("preference", "overall"),
    },
)

#: Columns of a frame that may be rows of user, item, rating and a few more; wider ones are tables.
MOST_ROW_COLUMNS = 8


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
        found = self.places.get(label, -1)
        if found < 0:
            known = self.labels.tolist()
            near = nearest(label, known) or f" There are {show(known)}."
            more = (
                "; for a new user give the ratings: {item: rating}" if self.noun == "user" else ""
            )
            raise KeyError(f"{self.noun} {cite(label)} was not in the fit{more}.{near}")
        return found

    def all_places(self, labels: Sequence[Any] | NDArray[Any]) -> IntArray:
        """Return the places of many labels."""
        return np.array([self.place(plain(label)) for label in labels], dtype=np.intp)


def plain(label: Any) -> Any:
    """Return a label without NumPy's types around it."""
    return label.item() if isinstance(label, np.generic) else label


class Ratings(NamedTuple):
    """Observed ratings: places of their users and items, and the ids of both."""

    user: IntArray
    item: IntArray
    rating: FloatArray
    users: NDArray[Any]
    items: NDArray[Any]


def read_ratings(
    X: Any, columns: Sequence[Any] | None, implicit: bool, *, fresh: bool = False
) -> Ratings:
    """Read ratings in any of the forms; those of a fit (``fresh``) must look like what they are.

    Examples
    --------
    >>> cells = read_ratings(np.array([[5.0, np.nan], [np.nan, 3.0]]), None, False)
    >>> cells.user, cells.item, cells.rating
    (array([0, 1]), array([0, 1]), array([5., 3.]))
    >>> read_ratings([("ann", "Heat", 4), ("bob", "Up", 5)], None, False).items
    array(['Heat', 'Up'], dtype=object)
    """
    if sparse.issparse(X):
        return _from_sparse(X)
    parts = split_rows(X, columns, implicit)
    if parts is not None:
        if fresh and columns is None and has_columns(X):
            note_guess(open_frame(X), implicit)
        return _from_rows(*parts)
    if fresh and has_columns(X):
        check_table(open_frame(X))
    return _from_table(X)


def split_rows(X: Any, columns: Sequence[Any] | None, implicit: bool) -> list[Any] | None:
    """Return columns of users, items and ratings (or None); None if X is a table."""
    if isinstance(X, SparseRecords):
        return _split_sparse_records(X)
    if isinstance(X, list) and X and isinstance(X[0], tuple):
        return _split_tuples(X, implicit)
    if not has_columns(X):
        if columns is None:
            return None
        array = np.asarray(X, dtype=object)
        return [array[:, int(c)] for c in columns] + [None] * (3 - len(columns))
    frame = open_frame(X)
    chosen = row_columns(frame, columns, implicit)
    if chosen is None:
        return None
    return [frame[name] for name in chosen] + [None] * (3 - len(chosen))


def row_columns(
    frame: dict[Any, NDArray[Any]], columns: Sequence[Any] | None, implicit: bool
) -> Sequence[Any] | None:
    """Return the names of the columns of user, item and rating; None if the frame is a table."""
    if columns is None:
        return guess_columns(frame, implicit)
    check_named(list(frame), columns)
    return columns


def id_columns(X: Any, columns: Sequence[Any] | None, implicit: bool) -> tuple[Any, Any]:
    """Return what ratings call their columns of users and items; None where they have no name.

    Examples
    --------
    >>> id_columns({"uid": [1], "movieId": [2], "stars": [3]}, None, False)
    ('uid', 'movieId')
    >>> id_columns([("ann", "Up", 3)], None, False)
    (None, None)
    """
    found = row_columns(open_frame(X), columns, implicit) if has_columns(X) else None
    return (None, None) if found is None else (found[0], found[1])


def _split_sparse_records(X: SparseRecords) -> list[Any]:
    """Return records as rows; the user's id is the number of the record."""
    values = np.concatenate([variable.numeric for variable in X.domain])
    names = np.array(X.names, dtype=object)
    users = np.repeat(np.arange(len(X)), X.codes.counts)
    return [users, names[X.codes.variables], values[X.codes.cells]]


def _split_tuples(X: list[Any], implicit: bool) -> list[Any]:
    """Return a list of tuples as columns."""
    width = {len(row) for row in X}
    if width != {3} and not (implicit and width == {2}):
        raise ValueError(
            "A list of tuples is read as rows (user, item, rating); got tuples of "
            f"{show(sorted(width))} parts. For a table pass an array or lists."
        )
    columns = [list(column) for column in zip(*X, strict=True)]
    return [as_labels(column) for column in columns] + [None] * (3 - len(columns))


def check_named(names: list[Any], columns: Sequence[Any]) -> None:
    """Check the columns that were requested."""
    if isinstance(columns, str) or len(columns) not in (2, 3):
        raise ValueError(
            "columns names the columns of user, item and rating (or of user and item for "
            "feedback='implicit'), for instance ('userId', 'movieId', 'rating'); got "
            f"{cite(columns)}."
        )
    for column in columns:
        if column not in names:
            raise ValueError(
                f"columns has {cite(column)}, but X has {show(names)}.{nearest(column, names)}"
            )


def guess_columns(frame: dict[Any, NDArray[Any]], implicit: bool) -> list[Any] | None:
    """Guess the columns of rows by name or by position; None if this is a table."""
    names = list(frame)
    named = columns_by_name(names, implicit)
    if named is not None:
        return named
    text = [has_text(column) for column in frame.values()]
    if not any(text):
        return names if implicit and _are_ids(list(frame.values())) else None
    if len(names) in (2 if implicit else 3, 3) and text[2:] != [True]:
        return names
    raise ValueError(
        f"X has text in column {cite(names[text.index(True)])}, so it is not a table of users x "
        f"items, and which columns hold user, item, rating is not clear from {show(names)}: "
        "specify columns=(user, item, rating)."
    )


def columns_by_name(names: Sequence[Any], implicit: bool) -> list[Any] | None:
    """Return the columns of user, item and rating that have usual names; None if they have not.

    With implicit feedback there may be no rating.

    Examples
    --------
    >>> columns_by_name(["movie", "user", "when"], True)
    ['user', 'movie']
    """
    found = usual_names(names)
    needed = 2 if implicit and not found[2] else 3
    if all(len(some) == 1 for some in found[:needed]):
        return [some[0] for some in found[:needed]]
    return None


def note_guess(frame: dict[Any, NDArray[Any]], implicit: bool) -> None:
    """Say which columns of numbers were taken for ids though their names do not say so."""
    names = list(frame)
    if columns_by_name(names, implicit) is None and not any(map(has_text, frame.values())):
        remark(
            Message(
                "X is read as rows: {names} are columns of user and item. Name them to be sure: "
                "{columns}. If these are items, give the table without names, such as "
                "X.to_numpy().",
                names=show(names),
                columns=Argument("columns", tuple(names)),
            )
        )


def _are_ids(columns: Sequence[NDArray[Any]]) -> bool:
    """Whether two columns (and a third, of counts) are ids of users and items.

    In a table of choices zeros or missing cells are what was not chosen, and most others are one.
    """
    pair = [c for c in columns[:2] if c.dtype.kind in "iu" and c.size and c.min() >= 0]
    return len(columns) in (2, 3) and len(pair) == 2 and max(c.max() for c in pair) > 1


def usual_names(names: Sequence[Any]) -> list[list[Any]]:
    """The names that are usual for a column of users, of items and of ratings.

    Examples
    --------
    >>> usual_names(["uid", "movieId", "stars", "when"])
    [['uid'], ['movieId'], ['stars']]
    """
    words = [re.sub(r"[\s._-]*ids?$", "", str(name).lower()) for name in names]
    return [[names[i] for i, word in enumerate(words) if word in known] for known in COLUMN_NAMES]


def check_table(frame: dict[Any, NDArray[Any]]) -> None:
    """Raise an error for a frame of users x items that looks like rows of ratings.

    Names say so where two of user, item and rating are there. Numbers say so where the columns are
    not on one scale: one has whole numbers of more values than a scale of ratings, as ids have, and
    another the few values of a scale, or other numbers altogether.
    """
    names = list(frame)
    usual = [found for found in usual_names(names) if found]
    if len(usual) < 2 and not _has_ids(list(frame.values())):
        return
    raise ValueError(
        Message(
            "X has the columns {names}, which look like rows of user, item and rating and not "
            "like items rated by users: name the three, such as {columns}. If these are items, "
            "give the ratings without names, such as X.to_numpy().",
            names=show(names),
            columns=Argument("columns", tuple(names[:3])),
        )
    )


def _has_ids(columns: Sequence[NDArray[Any]]) -> bool:
    """Whether some columns of a narrow frame are ids and others are not."""
    if not 3 <= len(columns) <= MOST_ROW_COLUMNS or any(c.dtype.kind not in "iuf" for c in columns):
        return False
    seen = [np.unique(column[~np.isnan(column)]) for column in columns]
    if not all(len(values) for values in seen):
        return False
    ids = [v for v in seen if len(v) > MOST_LEVELS and np.array_equal(v, np.floor(v))]
    return any(
        len(other) <= MOST_LEVELS or other[-1] < values[0] or other[0] > values[-1]
        for values in ids
        for other in seen
        if other is not values
    )


def has_text(column: NDArray[Any]) -> bool:
    """Whether a column holds text."""
    return column.dtype.kind in "US" or (
        column.dtype.kind == "O" and any(isinstance(value, str) for value in column)
    )


def has_columns(X: Any) -> bool:
    """Whether X is a frame of some library, or a dict of columns."""
    return is_frame(X) or isinstance(X, Mapping)


def open_frame(X: Any) -> dict[Any, NDArray[Any]]:
    """Return the columns of any frame by their names, which need not be text."""
    if isinstance(X, Mapping):
        return {name: np.asarray(column) for name, column in X.items()}
    frame = nw.from_native(X, eager_only=True)
    columns = [column.to_numpy() for column in frame.iter_columns()]
    found = dict(zip(frame.columns, columns, strict=True))
    if len(found) < len(columns):
        raise ValueError("X has two columns of the same name: rename one of them.")
    return found


def as_labels(values: Any) -> NDArray[Any]:
    """Return labels as objects of plain Python."""
    return np.fromiter(map(plain, values), dtype=object, count=len(values))


def as_numbers(values: Any, where: str) -> FloatArray:
    """Return ratings as numbers, NaN where one is missing."""
    try:
        if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
            return values.astype(np.float64)
        return np.array([np.nan if v is None else float(v) for v in values], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"Ratings must be numbers, but {where} has others ({error}): turn labels into numbers "
            "first, worst to best."
        ) from error


def _from_rows(user: Any, item: Any, rating: Any) -> Ratings:
    """Read rows of ids and ratings; the last one counts where a pair occurs twice."""
    users, user_places = places_of(user)
    items, item_places = places_of(item)
    ratings = np.ones(len(user_places)) if rating is None else as_numbers(rating, "that column")
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


def places_of(values: Any) -> tuple[NDArray[Any], IntArray]:
    """Return distinct ids in natural order, and the place of each value, -1 if it is missing."""
    array = values if isinstance(values, np.ndarray) else as_labels(values)
    if array.dtype.kind in "iu":
        labels, places = np.unique(array, return_inverse=True)
        return as_labels(labels), places.astype(np.intp)
    plain_ones = [None if is_missing(value) else native(value) for value in array]
    distinct = natural_order({value for value in plain_ones if value is not None})
    index: dict[Any, int] = {label: i for i, label in enumerate(distinct)}
    index[None] = -1
    return as_labels(distinct), np.array([index[value] for value in plain_ones], dtype=np.intp)


def _from_sparse(X: Any) -> Ratings:
    """Read a sparse matrix: stored cells are observed, zeros included."""
    if len(X.shape) != 2:
        raise ValueError(
            f"A sparse X must be users x items; got {plural(len(X.shape), 'dimension')}."
        )
    coo = sparse.coo_array(X)
    user, item = coo.coords[0].astype(np.intp), coo.coords[1].astype(np.intp)
    rating = coo.data.astype(np.float64)
    cells = user * X.shape[1] + item
    if (np.diff(cells) <= 0).any():
        order = np.argsort(cells, kind="stable")
        user, item, rating = user[order], item[order], rating[order]
        if not np.diff(cells[order]).all():
            raise ValueError(
                "X has cells that are stored twice, which sparse matrices add up: call "
                "sum_duplicates() first if that is intended."
            )
    good = ~np.isnan(rating)
    users, items = np.arange(X.shape[0]).astype(object), np.arange(X.shape[1]).astype(object)
    return Ratings(user[good], item[good], rating[good], users, items)


def _from_table(X: Any) -> Ratings:
    """Read a table of users x items; NaN and None are unseen."""
    if has_columns(X):
        frame = open_frame(X)
        columns = [as_numbers(column, f"column {cite(name)}") for name, column in frame.items()]
        table = np.column_stack(columns) if columns else np.empty((0, 0))
        items = as_labels(list(frame))
        users = as_labels(X.index) if hasattr(X, "iloc") else np.arange(len(table)).astype(object)
    else:
        table = check_array(
            X, dtype=np.float64, ensure_all_finite="allow-nan", ensure_min_features=1
        )
        users, items = (np.arange(n).astype(object) for n in table.shape)
    user, item = np.nonzero(~np.isnan(table))
    return Ratings(user, item, table[user, item], users, items)


def read_pairs(X: Any, columns: Sequence[Any] | None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Read users and items of pairs: a list of tuples, a frame, or an array of two columns.

    Examples
    --------
    >>> read_pairs([("ann", "Heat"), ("bob", "Up")], None)[1]
    array(['Heat', 'Up'], dtype=object)
    """
    if has_columns(X):
        frame = open_frame(X)
        names = list(frame)
        chosen = [name for name in columns or () if name in names][:2]
        if len(chosen) < 2:
            chosen = guess_columns(frame, True) or names
        if len(chosen) < 2:
            raise ValueError(f"Pairs need a column of users and one of items; got {show(names)}.")
        return as_labels(frame[chosen[0]]), as_labels(frame[chosen[1]])
    rows = list(X)
    if any(not hasattr(row, "__len__") or isinstance(row, str) or len(row) < 2 for row in rows):
        raise ValueError(f"Pairs are (user, item); got {show(rows, 2)}.")
    return as_labels([row[0] for row in rows]), as_labels([row[1] for row in rows])


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
                    raise KeyError(
                        f"There is no feature {cite(name)}; the features are {show(known)}."
                    )
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


def read_features(
    features: Any, ids: Sequence[Hashable], noun: str, column: Any = None
) -> dict[Any, dict[str, Any]]:
    """Read features by id: a mapping, a frame that has the ids, or rows in their order.

    Parameters
    ----------
    features : mapping, frame or sequence of rows
    ids : sequence
        Users or items that were rated.
    noun : {"user", "item"}
    column : optional
        What the ratings call their column of these ids.

    Examples
    --------
    >>> read_features({"Up": {"year": 2009}}, ["Up", "Heat"], "item")
    {'Up': {'year': 2009}}
    >>> read_features([[2009], [1995]], ["Up", "Heat"], "item")
    {'Up': {'x0': 2009}, 'Heat': {'x0': 1995}}
    """
    if isinstance(features, Mapping):
        return {plain(key): _as_row(row) for key, row in features.items()}
    if is_frame(features):
        return _from_feature_frame(features, ids, noun, column)
    rows = list(features)
    if len(rows) != len(ids):
        raise ValueError(
            f"{noun}_features has {plural(len(rows), 'row')} for {len(ids):,} {noun}s: give "
            f"one row for each {noun}, or a mapping of {noun}s to their features."
        )
    return {key: _as_row(row) for key, row in zip(ids, rows, strict=True)}


def _from_feature_frame(
    features: Any, ids: Sequence[Hashable], noun: str, column: Any
) -> dict[Any, dict[str, Any]]:
    """Read a frame: find out where its ids are; all other columns are features."""
    frame = nw.from_native(features, eager_only=True)
    index: Any = nw.maybe_get_index(frame)
    held = {name: frame.get_column(name).to_list() for name in frame.columns}
    place = find_ids(held, index, ids, column)
    if place is None:
        what = cite(f"{noun}Id" if column is None else column)
        raise ValueError(
            f"{noun}_features: it is not clear where the ids of the {noun}s are: no column is "
            f"named {what}, and neither the index nor the first column, {show(frame.columns[:1])}, "
            f"has most of the {noun}s that were rated. Rename the column of the ids to {what}, or "
            f"pass a mapping of {noun}s to their features. Ids must have the type that they have "
            "in the ratings (1 and '1' differ)."
        )
    keys = held.pop(place.column) if place.is_column else list(index)
    rows = [dict(zip(map(str, held), row, strict=True)) for row in zip(*held.values(), strict=True)]
    pairs = zip(map(plain, keys), rows or [{}] * len(keys), strict=True)
    there = [(key, row) for key, row in pairs if not is_missing(key)]
    found = dict(there)
    if len(found) < len(there):
        twice = next(key for key, times in Counter(key for key, _ in there).items() if times > 1)
        raise ValueError(f"{noun}_features has {noun} {cite(twice)} in more than one row.")
    return found


class IdPlace(NamedTuple):
    """Where the ids of a frame are: in a column, or in the index."""

    is_column: bool
    column: Any = None


def find_ids(
    held: Mapping[Any, Sequence[Any]], index: Any, ids: Sequence[Hashable], column: Any
) -> IdPlace | None:
    """Find where a frame of features has its ids; None if that cannot be told.

    It is the column that is named as that of the ratings, or else the index or the first column:
    whichever has more of the rated ids, and at least half of them, each once. An index that is no
    more than row numbers holds ids only where those of the ratings are row numbers, too.

    Examples
    --------
    >>> find_ids({"genre": ["x", "y"], "movieId": [7, 9]}, None, [7], "movieId")
    IdPlace(is_column=True, column='movieId')
    >>> find_ids({"film": [7, 9], "genre": ["x", "y"]}, range(2), [7], "movieId").column
    'film'
    >>> find_ids({"genre": ["x", "y"]}, range(2), [7], "movieId") is None
    True
    """
    if index is not None and column is not None and getattr(index, "name", None) == column:
        return IdPlace(False)
    if column in held:
        return IdPlace(True, column)
    first = next(iter(held), None)
    in_first = _share_found(held.get(first, ()), ids)
    rows = [] if index is None else list(index)
    is_numbered = rows == list(range(len(rows))) and list(ids) != list(range(len(ids)))
    in_index = 0.0 if is_numbered else _share_found(rows, ids)
    if max(in_index, in_first) < 0.5 or (in_index == in_first and rows != held[first]):
        return None
    return IdPlace(True, first) if in_first >= in_index else IdPlace(False)


def _share_found(keys: Sequence[Any], ids: Sequence[Hashable]) -> float:
    """Return the share of ids that are among keys; 0 where a key occurs twice."""
    there = [key for key in map(plain, keys) if isinstance(key, Hashable) and not is_missing(key)]
    found = set(there)
    return sum(one in found for one in ids) / len(ids) if len(found) == len(there) else 0.0


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
