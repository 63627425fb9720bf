"""JointRecommender: ratings of users, missing for the most part, as a joint of all items."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from rejoint.check import whole
from rejoint.domain.labels import is_missing
from rejoint.estimators.recommender.best_set import best_set
from rejoint.estimators.recommender.fit_ratings import evidence_of, fit_ratings, predictive
from rejoint.estimators.recommender.rating_model import (
    Evidence,
    RatingModel,
    judge_rows,
    judge_table,
)
from rejoint.estimators.recommender.ratings import (
    Cells,
    Ids,
    RatingLevels,
    adjusted,
    by_rows,
    find_levels,
    is_frame,
    plain,
    read_cells,
    read_pairs,
)
from rejoint.estimators.sklearn_input import generator
from rejoint.solver.result import FitResult
from rejoint.text import show

Array = NDArray[np.float64]
Ints = NDArray[np.intp]


class Recommendation(NamedTuple):
    """An item, the rating to be expected, and the probability that it is liked."""

    item: Any
    expected: float
    like: float


class Move(NamedTuple):
    """One of the user's ratings, and how far it moves an expected rating."""

    item: Any
    rating: float
    effect: float


@dataclass(frozen=True)
class Bundle:
    """Items that are most probably liked all together.

    Parameters
    ----------
    items : tuple
        The items, the best choice for a single one first.
    probability : float
        That all of them are liked.
    bound : float
        No set of so many items is more probable.
    exact : bool
        Whether that is proved for this one (to 1e-9 of it).

    Examples
    --------
    >>> Bundle(("Heat", "Ronin"), 0.6, 0.6, True).items
    ('Heat', 'Ronin')
    """

    items: tuple[Any, ...]
    probability: float
    bound: float
    exact: bool


@dataclass(frozen=True)
class Explanation:
    """Why a rating is expected.

    Parameters
    ----------
    item : label
        What it is about.
    expected : float
        The rating to be expected, given all of the user's.
    baseline : float
        The same for a user of whom nothing is known.
    moves : tuple of Move
        For each of the user's ratings, the expected rating less what it would be without this
        one, largest first. They overlap, so that they do not sum to the whole difference.

    Examples
    --------
    >>> print(Explanation("Heat", 4.5, 3.9, (Move("Ronin", 5.0, 0.4), Move("Up", 1.0, -0.1))))
    Heat: 4.50 expected (3.90 for a user of whom nothing is known)
      +0.40  Ronin rated 5
      -0.10  Up rated 1
    """

    item: Any
    expected: float
    baseline: float
    moves: tuple[Move, ...]

    def __str__(self) -> str:
        head = (
            f"{self.item}: {self.expected:.2f} expected ({self.baseline:.2f} for a user of whom "
            "nothing is known)"
        )
        lines = [f"  {m.effect:+.2f}  {m.item} rated {m.rating:g}" for m in self.moves]
        return "\n".join([head, *lines])


class Advice:
    """Methods of a fitted recommender for one user.

    The user is an id of the fit, or a mapping of items to ratings (a row of a table, or with
    implicit feedback a list or set of items, does too), or None for somebody of whom nothing is
    known.

    Examples
    --------
    >>> import rejoint as rj
    >>> issubclass(rj.JointRecommender, Advice)
    True
    """

    _model: RatingModel
    _scale: RatingLevels
    _users: Ids
    _items: Ids
    _evidence: Evidence

    def recommend(
        self,
        user: Any,
        k: int = 10,
        *,
        by: Literal["expected", "like"] = "expected",
        threshold: float | None = None,
        exclude_seen: bool = True,
        among: Sequence[Hashable] | None = None,
    ) -> list[Recommendation]:
        """The best items for a user, best first.

        Parameters
        ----------
        user : id, mapping of items to ratings, or None
            New users are folded in.
        k : int
            How many; fewer where there are no more.
        by : {"expected", "like"}
            Order by expected rating, or by the probability that the rating reaches `threshold`.
        threshold : float, optional
            The lowest rating that means liked: by default the lowest in the top 30 % of the
            scale, 4 of 5 stars.
        exclude_seen : bool
            Whether items that the user has rated are left out.
        among : sequence of items, optional
            Only these.

        Returns
        -------
        list of Recommendation
            Named tuples of ``item``, ``expected``, ``like``.

        Examples
        --------
        >>> import rejoint as rj
        >>> rows = [("ann", "Up", 5), ("bob", "Up", 1), ("bob", "Heat", 4)]
        >>> model = rj.JointRecommender(random_state=0).fit(rows)
        >>> [found.item for found in model.recommend("ann")]
        ['Heat']
        """
        check_is_fitted(self)
        if by not in ("expected", "like"):
            raise ValueError(f"by={by!r} is not known; give 'expected' or 'like'.")
        evidence = self._evidence_of(user)
        posterior = self._model.posterior(evidence)
        open_items = self._open_items(evidence, exclude_seen, among)
        likes = self._model.liking(self._scale.at_least(threshold))
        tables = (self._model.means, likes) if by == "expected" else (likes, self._model.means)
        scores = tables[0] @ posterior
        best = open_items[np.argsort(-scores[open_items], kind="stable")[: whole("k", k)]]
        others = tables[1][best] @ posterior
        pairs = (scores[best], others) if by == "expected" else (others, scores[best])
        labels = self._items.labels
        return [
            Recommendation(labels[i], float(mean), float(like))
            for i, mean, like in zip(best, *pairs, strict=True)
        ]

    def bundle(
        self,
        user: Any,
        k: int = 5,
        *,
        threshold: float | None = None,
        exclude_seen: bool = True,
        among: Sequence[Hashable] | None = None,
        max_nodes: int = 20_000,
    ) -> Bundle:
        """The k items that a user most probably likes all together.

        Unlike the k best single items these suit each other: what they are worth is the joint
        probability that all ratings reach `threshold`, given the user's ratings.

        Parameters
        ----------
        user, k, threshold, exclude_seen, among
            As for :meth:`recommend`.
        max_nodes : int
            Nodes of the branch and bound after which the search ends.

        Returns
        -------
        Bundle
            With ``items``, ``probability``, ``bound``, and ``exact``.

        Examples
        --------
        >>> import rejoint as rj
        >>> rows = [("ann", "Up", 5), ("bob", "Up", 1), ("bob", "Heat", 4), ("cy", "Jaws", 4)]
        >>> found = rj.JointRecommender(random_state=0).fit(rows).bundle("ann", 2)
        >>> sorted(found.items), found.exact
        (['Heat', 'Jaws'], True)
        """
        check_is_fitted(self)
        evidence = self._evidence_of(user)
        open_items = self._open_items(evidence, exclude_seen, among)
        if whole("k", k) > len(open_items):
            raise ValueError(
                f"A bundle of {k} items was asked for, but {len(open_items)} are left."
            )
        likes = self._model.liking(self._scale.at_least(threshold))
        posterior = self._model.posterior(evidence)
        found = best_set(posterior, likes[open_items], k, max_nodes)
        items = open_items[found.items]
        items = items[np.argsort(-(likes[items] @ posterior), kind="stable")]
        labels = tuple(self._items.labels[items].tolist())
        return Bundle(labels, found.probability, found.bound, found.exact)

    def explain(self, user: Any, item: Hashable) -> Explanation:
        """Which of a user's ratings move an expected rating, and how far.

        Parameters
        ----------
        user : id or mapping of items to ratings
            Whose.
        item : id
            The item in question. If the user has rated it, that rating is left out.

        Returns
        -------
        Explanation
            Printed, it says so in words.

        Examples
        --------
        >>> import rejoint as rj
        >>> rows = [("ann", "Up", 5), ("bob", "Up", 1), ("bob", "Heat", 4)]
        >>> why = rj.JointRecommender(random_state=0).fit(rows).explain("ann", "Heat")
        >>> [move.item for move in why.moves]
        ['Up']
        """
        check_is_fitted(self)
        place = self._items.place(plain(item))
        evidence = self._evidence_of(user, without=place)
        model = self._model
        means = model.means[place]
        items, levels = model.given(evidence)
        expected = float(means @ model.posterior(evidence))
        effects = expected - model.without_each(evidence) @ means
        order = np.argsort(-np.abs(effects), kind="stable")
        moves = tuple(
            Move(self._items.labels[items[i]], float(model.values[levels[i]]), float(effects[i]))
            for i in order
        )
        baseline = float(means @ model.posterior(self._nobody()))
        return Explanation(self._items.labels[place], expected, baseline, moves)

    def _open_items(
        self, evidence: Evidence, exclude_seen: bool, among: Sequence[Hashable] | None
    ) -> Ints:
        """Places of the items that may be recommended."""
        if among is None:
            found = np.arange(len(self._items.labels))
        else:
            found = self._items.all_places(list(among))
        if exclude_seen:
            found = np.setdiff1d(found, self._model.given(evidence)[0])
        return found

    def _nobody(self) -> Evidence:
        return self._one_row([], [])

    def _one_row(self, items: list[int], levels: list[int]) -> Evidence:
        """Evidence of one user."""
        size = self._model.size
        columns = [i * size + level for i, level in zip(items, levels, strict=True)]
        signs = [1.0] * len(columns)
        background = self._evidence.background
        if background is not None:
            kept = [c for c in columns if c % size]
            columns, signs = kept + [c - 1 for c in kept], [1.0] * len(kept) + [-1.0] * len(kept)
        shape = (1, self._evidence.cells.shape[1])
        at = (np.zeros(len(columns), dtype=np.intp), np.array(columns, dtype=np.intp))
        return Evidence(sparse.csr_array((np.array(signs), at), shape=shape), background)

    def _evidence_of(self, user: Any, without: int = -1) -> Evidence:
        """What is known of a user, but for one item."""
        ratings = self._ratings_of(user)
        if ratings is None:
            known = self._evidence.take(np.array([self._users.place(plain(user))]))
            items, levels = self._model.given(known)
            pairs = list(zip(items.tolist(), levels.tolist(), strict=True))
        else:
            pairs = [
                (self._items.place(plain(item)), self._scale.code(float(rating), item))
                for item, rating in ratings.items()
                if not is_missing(rating)
            ]
        pairs = [pair for pair in pairs if pair[0] != without]
        return self._one_row([i for i, _ in pairs], [level for _, level in pairs])

    def _ratings_of(self, user: Any) -> Mapping[Any, Any] | None:
        """Ratings by item, where these were given in place of an id."""
        if user is None:
            return {}
        if isinstance(user, Mapping):
            return user
        if hasattr(user, "to_dict"):
            return dict(user.to_dict())
        if isinstance(user, np.ndarray) and user.shape == self._items.labels.shape:
            return dict(zip(self._items.labels.tolist(), user.tolist(), strict=True))
        if isinstance(user, list | set | frozenset):
            if not self._scale.implicit:
                raise TypeError(
                    f"A user is an id or a mapping of items to ratings, got {show(list(user))}; "
                    "items alone will do with feedback='implicit' only."
                )
            return dict.fromkeys(user, 1.0)
        return None


class JointRecommender(Advice, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Recommend items: the joint probability of all items' ratings, learnt from what is there.

    Parameters
    ----------
    solver : "traits", "ml", "map", "bayes", or a solver object
        By default users are points in a space of a few traits and items smooth maps of it
        (:class:`rejoint.estimators.Traits`); the others have free hidden classes, as
        :func:`rejoint.estimate` fits them.
    rank : int or "auto"
        Number of hidden classes of those others.
    feedback : {"explicit", "implicit"}
        Whether X has ratings, what is not there being unseen; or what users have bought, read,
        played, what is not there being a "no".
    half_up : bool
        Whether half stars are rounded up to whole ones (3.5 to 4); kept as levels by default.
    columns : tuple of names, optional
        Columns of user, item and rating where X has a row a rating; guessed by default.
    random_state : int, RandomState, Generator or None
        Source of randomness.

    Attributes
    ----------
    pmf_ : LowRankPMF
        The joint of all items, which answers any other question. With ``solver="bayes"`` it is
        the best of its rank; predictions are by the mean of the draws.
    rank_ : int
        Its number of classes; with traits, points of all models averaged.
    users_, items_ : arrays
        Ids, in the order of tables; column and row numbers where X has no names.
    levels_ : array
        The ratings there are, lowest first.
    result_ : FitResult
        How it came about.

    Notes
    -----
    X may be a table of users x items (an array, or a frame whose columns are items), NaN being
    unseen; a sparse matrix, where what is not stored is unseen and a stored zero is a rating of
    zero; or rows of user, item and rating: a frame, a list of tuples, or SparseRecords. More
    than 20 distinct ratings are binned. For other users than those of the fit, give their ratings:
    they are folded in, which is exact and needs no refit.

    ``score`` is minus the root mean square error, so that ``GridSearchCV`` and
    ``cross_val_score`` work on either form: rows of ratings are held out as such; of held-out
    rows of a table, which are new users, each rating is predicted from the others.

    Examples
    --------
    >>> import rejoint as rj
    >>> ratings = [
    ...     (user, film, stars)
    ...     for user, taste in enumerate(["action", "romance"] * 20)
    ...     for film, kind in [("Heat", "action"), ("Ronin", "action"), ("Ghost", "romance")]
    ...     for stars in [5 if kind == taste else 2]
    ... ]
    >>> model = rj.JointRecommender(random_state=0).fit(ratings)
    >>> [found.item for found in model.recommend({"Heat": 5}, k=1)]
    ['Ronin']
    """

    def __init__(
        self,
        solver: Any = "traits",
        rank: int | Literal["auto"] = "auto",
        feedback: Literal["explicit", "implicit"] = "explicit",
        half_up: bool = False,
        columns: Sequence[Any] | None = None,
        random_state: Any = None,
    ) -> None:
        self.solver = solver
        self.rank = rank
        self.feedback = feedback
        self.half_up = half_up
        self.columns = columns
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the joint of all items.

        Parameters
        ----------
        X : ratings
            A table, a sparse matrix, or rows of user, item and rating.
        y : ignored
            There by convention.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> import rejoint as rj
        >>> R = np.array([[5, 4, np.nan], [np.nan, 2, 1], [5, np.nan, 4]] * 10)
        >>> rj.JointRecommender(random_state=0).fit(R).items_
        array([0, 1, 2], dtype=object)
        """
        if self.feedback not in ("explicit", "implicit"):
            raise ValueError(
                f"feedback={self.feedback!r} is not known; give 'explicit' or 'implicit'."
            )
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        self._read_width(X, reset=True)
        cells = read_cells(X, self.columns, self._implicit)
        if len(cells.items) == 0:
            raise ValueError("There is nothing to learn from: X has no item.")
        self._users, self._items = Ids(cells.users, "user"), Ids(cells.items, "item")
        self._scale = find_levels(cells.rating, half_up=self.half_up, implicit=self._implicit)
        self._evidence = evidence_of(cells, len(cells.items), self._scale)
        rng = generator(self.random_state)
        result = fit_ratings(
            self._evidence, cells.items.tolist(), self._scale.values, self.solver, self.rank, rng
        )
        self._keep(cells, result, RatingModel.of(predictive(result), self._scale.values))
        return self

    def predict(self, X: Any) -> Array:
        """Expected ratings of pairs of user and item, or of all cells of a table.

        Parameters
        ----------
        X : pairs or table
            Pairs of ids: a list of tuples, a frame or an array of two columns; for users of the
            fit. Or, where the fit was to a table, another one of the same items: its rows are
            new users, and every cell is predicted, those that are there included.

        Returns
        -------
        array
            One number a pair, or (users, items).

        Examples
        --------
        >>> import rejoint as rj
        >>> rows = [("ann", "Up", 5), ("bob", "Up", 1), ("bob", "Heat", 4)] * 1
        >>> model = rj.JointRecommender(random_state=0).fit(rows)
        >>> model.predict([("ann", "Heat"), ("bob", "Up")]).shape
        (2,)
        """
        check_is_fitted(self)
        if self._is_table(X):
            return self._model.expected(self._table_evidence(X))
        return self._of_pairs(X, self._model.means)

    def predict_proba(self, X: Any) -> Array:
        """Probability of each rating, for pairs or for all cells of a table.

        Parameters
        ----------
        X : pairs or table
            As for :meth:`predict`.

        Returns
        -------
        array
            (pairs, levels) or (users, items, levels); levels as in ``levels_``.

        Examples
        --------
        >>> import rejoint as rj
        >>> rows = [("ann", "Up", 5), ("bob", "Up", 1), ("bob", "Heat", 4)]
        >>> model = rj.JointRecommender(random_state=0).fit(rows)
        >>> model.predict_proba([("ann", "Heat")]).shape, model.levels_
        ((1, 3), array([1., 4., 5.]))
        """
        check_is_fitted(self)
        if not self._is_table(X):
            return self._of_pairs(X, self._model.factors)
        flat = self._model.factors.reshape(-1, len(self._model.log_weights))
        found = self._model.gathered(self._table_evidence(X), flat)
        return found.reshape(len(found), len(self.items_), -1)

    def predict_all(self, users: Sequence[Any] | None = None) -> Array:
        """Expected rating of every item for users of the fit, (users, items).

        Parameters
        ----------
        users : sequence of ids, optional
            By default all, in the order of ``users_``.

        Examples
        --------
        >>> import rejoint as rj
        >>> rows = [("ann", "Up", 5), ("bob", "Up", 1), ("bob", "Heat", 4)]
        >>> rj.JointRecommender(random_state=0).fit(rows).predict_all(["bob"]).shape
        (1, 2)
        """
        check_is_fitted(self)
        if users is None:
            return self._model.expected(self._evidence)
        return self._model.expected(self._evidence.take(self._users.all_places(users)))

    def score(self, X: Any, y: Any = None) -> float:
        """How well ratings that are held out are foreseen: minus the root mean square error.

        Rows of user, item and rating are predicted from the ratings of the fit (a user or item
        that it has not seen, from all the others); those of a table or sparse matrix, whose users
        are new, each from the other ratings of the same user. With implicit feedback, where all
        that is held out is a "yes", it is the share of the other items that rank lower.

        Examples
        --------
        >>> import rejoint as rj
        >>> rows = [("ann", "Up", 5), ("bob", "Up", 1), ("bob", "Heat", 4)]
        >>> rj.JointRecommender(random_state=0).fit(rows).score([("ann", "Heat", 4)]) <= 0
        True
        """
        check_is_fitted(self)
        if sparse.issparse(X) or by_rows(X, self.columns, self._implicit) is None:
            judged = judge_table(self._model, self._table_evidence(X))
        else:
            cells = self._placed(read_cells(X, self.columns, self._implicit))
            judged = judge_rows(self._model, self._evidence, cells)
        return judged if self._implicit else -judged

    @property
    def _implicit(self) -> bool:
        return bool(self.feedback == "implicit")

    def _keep(self, cells: Cells, result: FitResult, model: RatingModel) -> None:
        self.users_, self.items_, self.levels_ = cells.users, cells.items, self._scale.values
        self.result_, self.pmf_, self.rank_ = result, result.pmf, result.pmf.rank
        self._model = model

    def _read_width(self, X: Any, *, reset: bool) -> bool:
        """Note or check the columns of a table by scikit-learn's rules; False if X has rows."""
        if not sparse.issparse(X) and by_rows(X, self.columns, self._implicit) is not None:
            return False
        if not (is_frame(X) or sparse.issparse(X)):
            X = check_array(X, dtype=None, ensure_all_finite=False)
        if not isinstance(X, Mapping):
            validate_data(self, X, reset=reset, skip_check_array=True)
        return True

    def _is_table(self, X: Any) -> bool:
        """Whether X is a table like that of the fit, and not pairs."""
        if sparse.issparse(X):
            return True
        if not hasattr(self, "n_features_in_") or (
            isinstance(X, list) and X and isinstance(X[0], tuple)
        ):
            return False
        width = len(X.columns) if hasattr(X, "columns") else np.shape(X)[-1] if len(X) else 0
        return width not in (2, 3) or width == self.n_features_in_

    def _table_evidence(self, X: Any) -> Evidence:
        """Evidence of the users of another table of the same items."""
        if hasattr(self, "n_features_in_"):
            self._read_width(X, reset=False)
        cells = read_cells(X, self.columns, self._implicit)
        if is_frame(X):  # by name, where there are names
            cells = cells._replace(item=self._items.all_places(cells.items)[cells.item])
        return evidence_of(cells, len(self.items_), self._scale)

    def _of_pairs(self, X: Any, table: Array) -> Array:
        """Mean of a table over the classes of each pair's user, in the order of the pairs."""
        users, items = read_pairs(X, self.columns)
        places, wanted = self._users.all_places(users), self._items.all_places(items)
        distinct, which = np.unique(places, return_inverse=True)
        order = np.argsort(which, kind="stable")
        found = np.empty((len(users), *table.shape[1:-1]))
        evidence = self._evidence.take(distinct)
        found[order] = self._model.pairs(evidence, which[order], wanted[order], table)
        return found

    def _placed(self, cells: Cells) -> Cells:
        """Cells with the places that users and items have in the fit, -1 if they have none."""
        users = np.array([self._users.places.get(u, -1) for u in cells.users.tolist()], np.intp)
        items = np.array([self._items.places.get(i, -1) for i in cells.items.tolist()], np.intp)
        rating = adjusted(cells.rating, self.half_up, self._implicit)
        return cells._replace(user=users[cells.user], item=items[cells.item], rating=rating)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "result_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags
