"""JointRecommender: the joint probability of all items' ratings, most of which are missing."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from rejoint.arrays import FloatArray, IntArray
from rejoint.check import whole
from rejoint.domain.labels import is_missing
from rejoint.estimators.recommender.best_set import best_set
from rejoint.estimators.recommender.fit_ratings import fit_ratings, make_evidence
from rejoint.estimators.recommender.rating_model import (
    RatingModel,
    UserEvidence,
    score_rows,
    score_table,
)
from rejoint.estimators.recommender.ratings import (
    Ids,
    RatingLevels,
    Ratings,
    adjust,
    find_levels,
    has_columns,
    plain,
    read_pairs,
    read_ratings,
    split_rows,
)
from rejoint.estimators.sklearn_input import generator
from rejoint.pmf.pmf import LowRankPMF
from rejoint.solver.result import FitResult
from rejoint.text import show


class Recommendation(NamedTuple):
    """An item, its expected rating, and the probability that it is liked."""

    item: Any
    expected: float
    like: float


class Move(NamedTuple):
    """One of the user's ratings, and how much it changes an expected rating."""

    item: Any
    rating: float
    effect: float


@dataclass(frozen=True)
class Bundle:
    """Items that are most probably liked all together.

    Parameters
    ----------
    items : tuple
        The items, the best single choice first.
    probability : float
        Probability that all of them are liked.
    bound : float
        Upper bound of that probability over all sets of the same size.
    exact : bool
        Whether the set is proved to be the best (to 1e-9 of its probability).

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
        The item.
    expected : float
        The expected rating, given all of the user's ratings.
    baseline : float
        The expected rating of a user of whom nothing is known.
    moves : tuple of Move
        For each of the user's ratings, the expected rating minus what it would be without this
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


class JointRecommender(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Recommend items by the joint probability of all items' ratings.

    Parameters
    ----------
    solver : "traits", "ml", "map", "bayes", or a solver object
        By default users are points in a space of a few traits and items are smooth maps of it
        (:class:`rejoint.estimators.Traits`); the other solvers fit free hidden classes, as
        :func:`rejoint.estimate` does.
    rank : int or "auto"
        Number of hidden classes of those other solvers.
    feedback : {"explicit", "implicit"}
        Explicit: X has ratings, and an absent cell is unseen. Implicit: X has what users have
        bought, read or played, and an absent cell is a "no".
    half_up : bool
        Whether half stars are rounded up to whole ones (3.5 to 4); kept as levels by default.
    columns : tuple of names, optional
        Columns of user, item and rating, where X has one row for each rating; guessed by default.
    random_state : int, RandomState, Generator or None
        Source of randomness.

    Attributes
    ----------
    pmf_ : LowRankPMF
        The joint of all items, which answers any other question, and by which predictions are
        made: with ``solver="bayes"`` the posterior mean.
    rank_ : int
        Its number of classes; with traits, the points of all averaged models.
    users_, items_ : arrays
        Ids, in the order of tables; column and row numbers where X has no names.
    levels_ : array
        The distinct ratings, lowest first.
    result_ : FitResult
        The fit.

    Notes
    -----
    X may be a table of users x items (an array, or a frame whose columns are items), where NaN is
    unseen; a sparse matrix, where cells that are not stored are unseen and a stored zero is a
    rating of zero; or rows of user, item and rating: a frame, a list of tuples, or SparseRecords.
    More than 20 distinct ratings are binned. For users that the fit has not seen, give their
    ratings: they are folded in, which is exact and needs no refit.

    ``score`` is minus the root mean square error, so that ``GridSearchCV`` and
    ``cross_val_score`` work on either form: rows of ratings are held out as such; held-out rows of
    a table are new users, each of whose ratings is predicted from the others.

    In :meth:`recommend`, :meth:`bundle` and :meth:`explain` a user is an id of the fit, a mapping
    of items to ratings (or a row of a table, or with implicit feedback a list or set of items), or
    None for somebody of whom nothing is known.

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

    pmf_: LowRankPMF
    rank_: int
    result_: FitResult
    _model: RatingModel
    _scale: RatingLevels
    _users: Ids
    _items: Ids
    _evidence: UserEvidence

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
        """Fit the joint of all items.

        Parameters
        ----------
        X : ratings
            A table, a sparse matrix, or rows of user, item and rating.
        y : ignored
            Present for API consistency.

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
        self._check_columns(X, reset=True)
        cells = read_ratings(X, self.columns, self._implicit, fresh=True)
        if len(cells.items) == 0:
            raise ValueError("There is nothing to learn from: X has no item.")
        self._users, self._items = Ids(cells.users, "user"), Ids(cells.items, "item")
        self._scale = find_levels(cells.rating, half_up=self.half_up, implicit=self._implicit)
        self._evidence = make_evidence(cells, len(cells.items), self._scale)
        rng = generator(self.random_state)
        result = fit_ratings(
            self._evidence, cells.items.tolist(), self._scale.values, self.solver, self.rank, rng
        )
        self.users_, self.items_, self.levels_ = cells.users, cells.items, self._scale.values
        self.result_, self.pmf_, self.rank_ = result, result.pmf, result.pmf.rank
        self._model = RatingModel.of(result.pmf.mixture, self._scale.values)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return expected ratings of pairs of user and item, or of all cells of a table.

        Parameters
        ----------
        X : pairs or table
            Pairs of ids of the fit: a list of tuples, a frame or an array of two columns. Or, where
            the fit was to a table, another table of the same items: its rows are new users, and
            every cell is predicted, observed ones included.

        Returns
        -------
        array
            One number for each pair, or (users, items).

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
            return self._model.average(self._table_evidence(X), self._model.means)
        return self._average_pairs(X, self._model.means)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each rating, for pairs or for all cells of a table.

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
            return self._average_pairs(X, self._model.factors)
        flat = self._model.factors.reshape(-1, len(self._model.log_weights))
        found = self._model.average(self._table_evidence(X), flat)
        return found.reshape(len(found), len(self.items_), -1)

    def predict_all(self, users: Sequence[Any] | None = None) -> FloatArray:
        """Return expected ratings of every item for users of the fit, (users, items).

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
        evidence = self._evidence
        if users is not None:
            evidence = evidence.take(self._users.all_places(users))
        return self._model.average(evidence, self._model.means)

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the root mean square error of predicted ratings.

        Rows of user, item and rating are predicted from the ratings of the fit (of a user or item
        that it has not seen, from all the others). Ratings of a table or sparse matrix, whose users
        are new, are each predicted from the other ratings of the same user. With implicit feedback,
        where every held-out cell is a "yes", the score is the share of other items that rank lower.

        Examples
        --------
        >>> import rejoint as rj
        >>> rows = [("ann", "Up", 5), ("bob", "Up", 1), ("bob", "Heat", 4)]
        >>> rj.JointRecommender(random_state=0).fit(rows).score([("ann", "Heat", 4)]) <= 0
        True
        """
        check_is_fitted(self)
        if sparse.issparse(X) or split_rows(X, self.columns, self._implicit) is None:
            judged = score_table(self._model, self._table_evidence(X))
        else:
            cells = self._place(read_ratings(X, self.columns, self._implicit))
            judged = score_rows(self._model, self._evidence, cells)
        return judged if self._implicit else -judged

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
        """Return the best items for a user, best first.

        Parameters
        ----------
        user : id, mapping of items to ratings, or None
            New users are folded in.
        k : int
            Number of items; fewer are returned where there are no more.
        by : {"expected", "like"}
            Order by expected rating, or by the probability that the rating reaches `threshold`.
        threshold : float, optional
            The lowest rating that means liked: by default the lowest in the top 30 % of the
            scale, 4 of 5 stars.
        exclude_seen : bool
            Whether to leave out items that the user has rated.
        among : sequence of items, optional
            Items to choose from; all by default.

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
        likes, means = self._model.liking(self._scale.at_least(threshold)), self._model.means
        scores = (means if by == "expected" else likes) @ posterior
        order = np.argsort(-scores[open_items], kind="stable")
        best = open_items[order[: whole("k", k)]]
        columns = self._items.labels[best], means[best] @ posterior, likes[best] @ posterior
        return [Recommendation(i, float(m), float(p)) for i, m, p in zip(*columns, strict=True)]

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
        """Return the k items that a user most probably likes all together.

        Unlike the k best single items these go together: they maximize the joint probability that
        all ratings reach `threshold`, given the user's ratings.

        Parameters
        ----------
        user, k, threshold, exclude_seen, among
            As for :meth:`recommend`.
        max_nodes : int
            Nodes of the branch-and-bound search after which it ends.

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
        """Explain which of a user's ratings change an expected rating, and by how much.

        Parameters
        ----------
        user : id or mapping of items to ratings
            The user.
        item : id
            The item in question. If the user has rated it, that rating is left out.

        Returns
        -------
        Explanation
            Printed, it reads as text.

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
        baseline = float(means @ model.posterior(self._one_row([])))
        return Explanation(self._items.labels[place], expected, baseline, moves)

    @property
    def _implicit(self) -> bool:
        return bool(self.feedback == "implicit")

    def _check_columns(self, X: Any, *, reset: bool) -> None:
        """Note or check the columns of a table by scikit-learn's rules; rows have none to check."""
        if sparse.issparse(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
        elif split_rows(X, self.columns, self._implicit) is None:
            if not has_columns(X):
                X = check_array(X, dtype=None, ensure_all_finite=False)
            if not isinstance(X, Mapping):
                validate_data(self, X, reset=reset, skip_check_array=True)

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

    def _table_evidence(self, X: Any) -> UserEvidence:
        """Return the evidence of the users of another table of the same items."""
        if hasattr(self, "n_features_in_"):
            self._check_columns(X, reset=False)
        cells = read_ratings(X, self.columns, self._implicit)
        if has_columns(X):  # by name, where there are names
            cells = cells._replace(item=self._items.all_places(cells.items)[cells.item])
        return make_evidence(cells, len(self.items_), self._scale)

    def _average_pairs(self, X: Any, table: FloatArray) -> FloatArray:
        """Average a table over the classes of each pair's user, in the order of the pairs."""
        users, items = read_pairs(X, self.columns)
        places, wanted = self._users.all_places(users), self._items.all_places(items)
        distinct, which = np.unique(places, return_inverse=True)
        order = np.argsort(which, kind="stable")
        found = np.empty((len(users), *table.shape[1:-1]))
        evidence = self._evidence.take(distinct)
        found[order] = self._model.average_pairs(evidence, which[order], wanted[order], table)
        return found

    def _place(self, cells: Ratings) -> Ratings:
        """Return ratings with the places of users and items in the fit, -1 if they have none."""
        users = np.array([self._users.places.get(u, -1) for u in cells.users.tolist()], np.intp)
        items = np.array([self._items.places.get(i, -1) for i in cells.items.tolist()], np.intp)
        rating = adjust(cells.rating, self.half_up, self._implicit)
        return cells._replace(user=users[cells.user], item=items[cells.item], rating=rating)

    def _open_items(
        self, evidence: UserEvidence, exclude_seen: bool, among: Sequence[Hashable] | None
    ) -> IntArray:
        """Return the places of items that may be recommended."""
        if among is None:
            found = np.arange(len(self._items.labels))
        else:
            found = self._items.all_places(list(among))
        if exclude_seen:
            found = np.setdiff1d(found, self._model.given(evidence)[0])
        return found

    def _one_row(self, pairs: Sequence[tuple[int, int]]) -> UserEvidence:
        """Return the evidence of one user with these items and levels."""
        size, background = self._model.size, self._evidence.background
        columns = [i * size + level for i, level in pairs]
        signs = [1.0] * len(columns)
        if background is not None:
            columns = [c for c in columns if c % size]
            signs = [1.0] * len(columns) + [-1.0] * len(columns)
            columns += [c - 1 for c in columns]
        shape = (1, self._evidence.cells.shape[1])
        at = (np.zeros(len(columns), dtype=np.intp), np.array(columns, dtype=np.intp))
        return UserEvidence(sparse.csr_array((np.array(signs), at), shape=shape), background)

    def _evidence_of(self, user: Any, without: int = -1) -> UserEvidence:
        """Return the evidence of a user, without one item."""
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
        return self._one_row([pair for pair in pairs if pair[0] != without])

    def _ratings_of(self, user: Any) -> Mapping[Any, Any] | None:
        """Return ratings by item, where these were given in place of an id."""
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

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "result_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags
