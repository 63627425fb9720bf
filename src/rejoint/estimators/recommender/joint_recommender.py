"""JointRecommender: the joint probability of what users choose and how they rate it."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from rejoint.arrays import FloatArray, IntArray
from rejoint.check import check_positive_int
from rejoint.domain.domain import Domain, refuse_duplicates
from rejoint.domain.labels import is_missing
from rejoint.domain.variable import Variable
from rejoint.estimators.recommender.ratings import (
    Columns,
    Ids,
    RatingLevels,
    Ratings,
    adjust,
    as_labels,
    has_columns,
    is_table,
    is_tuples,
    read_pairs,
    read_ratings,
)
from rejoint.estimators.recommender.trait_file import from_saved, to_saved
from rejoint.estimators.recommender.trait_model import (
    People,
    TraitModel,
    as_grades,
    fit_trait_model,
)
from rejoint.estimators.recommender.traits import TraitPolicy, as_cells
from rejoint.estimators.sklearn_input import generator
from rejoint.io.model_file import SavedModel, read_saved, write_model
from rejoint.messages import Progress, remark
from rejoint.model import Layout, Model
from rejoint.pmf.pmf import LowRankPMF
from rejoint.solver.result import FitResult
from rejoint.solver.search import interruptible
from rejoint.solver.session import Session
from rejoint.solver.solver import Run, Stop
from rejoint.text import cite, format_fields, plural

#: The level of an item that is not chosen, in a user's joint of choices and ratings.
NOT_CHOSEN = "not chosen"

#: Liked items that are named beside a recommendation.
REASONS = 3

#: Ratings of a table that are held out at once.
SCORED_ROWS = 4096

#: Best single items from each of which a bundle is grown.
BUNDLE_STARTS = 8


class Recommendation(NamedTuple):
    """An item, and what is known about it and a user.

    ``score`` orders recommendations: the probability that the user chooses the item times the
    square root of the probability that it is liked then. ``probability`` is that of both, choosing
    and liking it; ``like`` that of liking it if it is chosen; ``expected`` the expected rating.
    ``because`` names the liked items of the user that support it most.
    """

    item: Any
    score: float
    probability: float
    like: float
    expected: float
    because: tuple[Any, ...]

    def __repr__(self) -> str:
        return format_fields(self)


class Move(NamedTuple):
    """One of the user's ratings, and how much it changes an expected rating."""

    item: Any
    rating: float
    effect: float

    def __repr__(self) -> str:
        return format_fields(self)


class Bundle(NamedTuple):
    """Items, the best single choice first, and the probability that all are chosen and liked."""

    items: tuple[Any, ...]
    probability: float

    def __repr__(self) -> str:
        return format_fields(self)


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


@dataclass(eq=False, repr=False)
class JointRecommender(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Recommend items by the joint probability of what a user chooses and how it is rated.

    Users and items are points in a space of traits. Both are sampled, the variances of the traits
    are estimated, and answers average over the samples, so that there is nothing to tune
    (:mod:`rejoint.estimators.recommender.traits`).

    Parameters
    ----------
    feedback : {"explicit", "implicit"}
        Explicit: X has ratings; what a user has not rated was not chosen. Implicit: X has what
        users have bought, read or played, and nothing else is known.
    half_up : bool
        Whether half stars are rounded up to whole ones (3.5 to 4); kept as levels by default.
    columns : tuple of names or "items", optional
        Columns of user, item, rating and, if there is one, time, where X has a row for each rating
        (of an array, their numbers); by default the first three of a frame of at most four. "items"
        says that each column of a frame is an item. Of several ratings of one item by one user the
        latest counts, without a time the last one.
    policy : TraitPolicy, optional
        Numbers of traits and samples and other tuned numbers.
    progress : bool, optional
        Whether to show progress on stderr; by default where that is a terminal.
    random_state : int, RandomState, Generator or None
        Source of randomness.

    Attributes
    ----------
    users_, items_ : arrays
        Ids, in the order of tables; column and row numbers where X has no names.
    levels_ : array
        The distinct ratings, lowest first.

    Notes
    -----
    X may be rows of user, item and rating: a frame of any library, a dict of columns, a list of
    tuples, or SparseRecords; a table of users x items, where NaN is unseen: an array, or a frame
    with ``columns="items"``; or a sparse matrix, where cells that are not stored are unseen and a
    stored zero is a rating of zero. With implicit feedback rows may lack the rating.

    Users that the fit has not seen need no refit: give their ratings. They are placed by a few
    Newton steps; a user of the fit is placed by the fit, which has learned from the same ratings:
    the two differ a little. More than 20 distinct ratings have the levels nearest to them of ten.

    Ctrl-C ends a fit with the samples so far: :class:`rejoint.FitInterrupted` is raised, and the
    estimator is fitted.

    ``score`` is minus the root mean square error, so that ``GridSearchCV`` and
    ``cross_val_score`` work on either form: rows of ratings are held out as such; held-out rows of
    a table are new users, each of whose ratings is predicted from the others.

    In all methods a user is an id of the fit, a mapping of items to ratings (or a row of a table,
    or with implicit feedback a list or set of items), or None for somebody of whom nothing is
    known.

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

    feedback: Literal["explicit", "implicit"] = "explicit"
    half_up: bool = False
    columns: Columns = None
    policy: TraitPolicy | None = None
    progress: bool | None = None
    random_state: Any = None

    # Fit

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the joint of choices and ratings.

        Parameters
        ----------
        X : ratings
            Rows of user, item and rating, a table, or a sparse matrix.
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
                f"feedback={cite(self.feedback)} is not supported; use 'explicit' or 'implicit'."
            )
        for name in FIT_COLUMNS:
            self.__dict__.pop(name, None)
        self._check_columns(X, reset=True)
        cells = read_ratings(X, self.columns, self._implicit)
        if len(cells.items) == 0:
            raise ValueError("There is nothing to learn from: X has no item.")
        scale = RatingLevels.of(cells.rating, self.half_up, self._implicit)
        known = encode_cells(cells, (len(cells.users), len(cells.items)), scale)
        if not known.nnz:
            raise ValueError("There is nothing to learn from: no user has chosen any item.")
        refuse_duplicates(map(str, cells.items))  # variables of the joint are named by them

        def finish(model: TraitModel, people: People, interrupted: bool) -> FitResult | None:
            self._take((cells.users, cells.items), known, model, people)
            self._interrupted = interrupted
            return self.result_ if interrupted else None

        with Progress(self.progress) as report:
            session = Session(generator(self.random_state), report)
            policy = self.policy or TraitPolicy()
            fit = partial(fit_trait_model, known, scale, policy, session, finish)
            interruptible(session, fit, "raise")
        return self

    def _take(self, ids: tuple[Any, Any], known: Any, model: TraitModel, people: People) -> None:
        """Take a fitted model and its users."""
        self._users, self._items = Ids(ids[0], "user"), Ids(ids[1], "item")
        self.users_, self.items_, self.levels_ = *ids, model.scale.values
        self._known: Any = known  # csr_array (users, items): level numbers plus one
        self._model, self._people = model, people
        self._pmf: LowRankPMF | None = None

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add ratings of known or new users, without a refit.

        These users are placed anew by all their ratings; items stay as they are. A rating of an
        item that the user has rated before replaces that one.

        Parameters
        ----------
        X : ratings
            In a form of :meth:`fit`. Items must be those of the fit; rows of an array are users
            by number.
        y : ignored
            Present for API consistency.

        Returns
        -------
        self

        Examples
        --------
        >>> import rejoint as rj
        >>> rows = [("ann", "Up", 5), ("bob", "Up", 1), ("bob", "Heat", 4)]
        >>> model = rj.JointRecommender(random_state=0).fit(rows)
        >>> model.partial_fit([("eve", "Up", 4), ("ann", "Heat", 4)]).users_
        array(['ann', 'bob', 'eve'], dtype=object)
        """
        if not hasattr(self, "_model"):
            return self.fit(X)
        if hasattr(self, "n_features_in_"):
            self._check_columns(X, reset=False)
        cells = read_ratings(X, self.columns, self._implicit)
        self._items.all_places(cells.items)  # an unknown one is an error here, before any change
        new = [user for user in cells.users.tolist() if user not in self._users.places]
        before, users = len(self.users_), as_labels([*self._users.labels.tolist(), *new])
        self._users = Ids(users, "user")
        added = encode_cells(self._place(cells), (len(users), len(self.items_)), self._model.scale)
        self._known.resize(added.shape)
        self._known = as_cells(self._known - self._known * (added > 0) + added)
        changed = self._users.all_places(cells.users)
        people = self._people.take(np.minimum(np.arange(len(users)), before - 1))
        people.put(changed, self._model.place(as_cells(self._known[changed])))
        self._people, self.users_, self._pmf = people, users, None
        return self

    # Predictions

    def predict(self, X: Any) -> FloatArray:
        """Return expected ratings of pairs of user and item, or of all cells of a table.

        With implicit feedback, the probability that the user chooses the item.

        Parameters
        ----------
        X : pairs or table
            Pairs of user and item: a list of tuples, a frame or an array of two columns. A new
            user is given by ratings in place of an id, as for :meth:`recommend`. Or, where the fit
            was to a table, another table of the same items: its rows are new users, and every cell
            is predicted, observed ones included.

        Returns
        -------
        array
            One number for each pair, or (users, items).

        Examples
        --------
        >>> import rejoint as rj
        >>> rows = [("ann", "Up", 5), ("bob", "Up", 1), ("bob", "Heat", 4)] * 1
        >>> model = rj.JointRecommender(random_state=0).fit(rows)
        >>> model.predict([("ann", "Heat"), ("bob", "Up"), ({"Up": 4}, "Heat")]).shape
        (3,)
        """
        check_is_fitted(self)
        return self._answer(X, self._model.expected)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each rating, for pairs or for all cells of a table.

        Their mean is the expected rating of :meth:`predict`, to a thousandth of the standard
        deviation of ratings.

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
        return self._answer(X, self._model.levels)

    def predict_all(self, users: Sequence[Any] | None = None) -> FloatArray:
        """Return expected ratings of every item, (users, items).

        Parameters
        ----------
        users : sequence, optional
            Users as for :meth:`recommend`; by default those of the fit, in the order of ``users_``.

        Examples
        --------
        >>> import rejoint as rj
        >>> rows = [("ann", "Up", 5), ("bob", "Up", 1), ("bob", "Heat", 4)]
        >>> rj.JointRecommender(random_state=0).fit(rows).predict_all(["bob"]).shape
        (1, 2)
        """
        check_is_fitted(self)
        people = self._people
        if users is not None:
            people, places = self._people_of(as_labels(users))
            people = people.take(places)
        return self._model.expected(people, np.arange(len(self.items_)))

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
        if is_table(X, self.columns):
            known = self._table_cells(X)
            users, parts = np.repeat(np.arange(known.shape[0]), np.diff(known.indptr)), []
            for start in range(0, known.nnz, SCORED_ROWS):
                cells = np.arange(start, min(start + SCORED_ROWS, known.nnz))
                rest = hold_out(known, users[cells], cells)
                people = self._model.place(rest, ratings_alone=True)
                ratings = self.levels_[known.data[cells].astype(np.intp) - 1]
                places = np.arange(len(cells)), known.indices[cells]
                parts.append(self._errors(people, *places, ratings, known[users[cells]]))
            errors = np.concatenate([np.empty(0), *parts])
        else:
            held = self._place(read_ratings(X, self.columns, self._implicit))
            # The last one stands for users who are not in the fit.
            people = self._people.append(self._model.nobody())
            users = np.where(held.user < 0, len(self._users.labels), held.user)
            empty = sparse.csr_array((1, self._known.shape[1]))
            chosen = sparse.vstack([self._known, empty], format="csr")
            errors = self._errors(people, users, held.item, held.rating, chosen)
        if not len(errors):
            raise ValueError("There is nothing to score: X has no rating.")
        return float(errors.mean()) if self._implicit else -float(np.sqrt(np.mean(errors**2)))

    def _errors(
        self, people: People, users: IntArray, items: IntArray, ratings: FloatArray, chosen: Any
    ) -> FloatArray:
        """Errors of ratings, of items that the fit has not seen (-1) too; implicit: their ranks."""
        here = items >= 0
        raters, places = users[here], items[here].astype(np.intp)
        if self._implicit:
            every, ranks = np.arange(len(self.items_)), []
            for user, item in zip(raters, places, strict=True):
                scores = self._model.expected(people, every, user[None])[0]
                ranks.append(share_below(scores, chosen[[user]].indices, item))
            return np.array(ranks)
        overall = self.levels_[self._known.data.astype(np.intp) - 1].mean()
        expected = np.full(len(here), overall)
        expected[here] = self._model.expected(people, places[:, None], raters)[:, 0]
        return np.asarray(expected - ratings)

    # Advice

    def recommend(
        self,
        user: Any,
        k: int = 10,
        *,
        by: Literal["score", "probability", "like", "expected"] = "score",
        threshold: float | None = None,
        exclude_seen: bool = True,
        among: Sequence[Hashable] | None = None,
    ) -> list[Recommendation]:
        """Return the best items for a user, best first.

        Parameters
        ----------
        user : id, mapping of items to ratings, or None
            New users need no refit.
        k : int
            Number of items; fewer are returned where there are no more.
        by : {"score", "probability", "like", "expected"}
            What to order by: see :class:`Recommendation`.
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
            Named tuples of ``item``, ``score``, ``probability``, ``like``, ``expected`` and
            ``because``.

        Examples
        --------
        >>> import rejoint as rj
        >>> rows = [("ann", "Up", 5), ("bob", "Up", 1), ("bob", "Heat", 4)]
        >>> model = rj.JointRecommender(random_state=0).fit(rows)
        >>> [found.item for found in model.recommend("ann")]
        ['Heat']
        """
        check_is_fitted(self)
        if by not in ("score", "probability", "like", "expected"):
            raise ValueError(
                f"by={cite(by)} is not supported; use 'score', 'probability', 'like' or 'expected'."
            )
        people, known = self._find(user)
        items = self._open_items(known, exclude_seen, among)
        chosen, likes = self._class_shares(people, threshold, items)
        figures = {
            "score": chosen.mean(axis=0) * np.sqrt(likes.mean(axis=0)),
            "probability": (chosen * likes).mean(axis=0),
            "like": likes.mean(axis=0),
            "expected": self._model.expected(people, items)[0],
        }
        best = np.argsort(-figures[by], kind="stable")[: check_positive_int("k", k)]
        reasons = self._reasons(people, known, items[best])
        return [
            Recommendation(
                self._items.labels[items[i]],
                **{name: float(figure[i]) for name, figure in figures.items()},
                because=reason,
            )
            for i, reason in zip(best, reasons, strict=True)
        ]

    def bundle(
        self,
        user: Any,
        k: int = 5,
        *,
        by: Literal["probability", "like"] = "probability",
        threshold: float | None = None,
        exclude_seen: bool = True,
        among: Sequence[Hashable] | None = None,
    ) -> Bundle:
        """Return the k items that a user most probably chooses and likes all together.

        Unlike the k best single items these go together: a greedy search from each of the best
        single items looks for the largest joint probability that all are chosen and all ratings
        reach `threshold`.

        Parameters
        ----------
        user, k, threshold, exclude_seen, among
            As for :meth:`recommend`.
        by : {"probability", "like"}
            The probability that all are chosen and liked, or that all are liked if they are chosen.

        Returns
        -------
        Bundle
            With ``items`` and ``probability``.

        Examples
        --------
        >>> import rejoint as rj
        >>> rows = [("ann", "Up", 5), ("bob", "Up", 1), ("bob", "Heat", 4), ("cy", "Jaws", 4)]
        >>> found = rj.JointRecommender(random_state=0).fit(rows).bundle("ann", 2)
        >>> sorted(found.items)
        ['Heat', 'Jaws']
        """
        check_is_fitted(self)
        if by not in ("probability", "like"):
            raise ValueError(f"by={cite(by)} is not supported; use 'probability' or 'like'.")
        people, known = self._find(user)
        open_items = self._open_items(known, exclude_seen, among)
        if check_positive_int("k", k) > len(open_items):
            raise ValueError(
                f"A bundle of {plural(k, 'item')} was requested, but {len(open_items)} are left."
            )
        chosen, likes = self._class_shares(people, threshold, open_items)
        shares = likes if by == "like" else chosen * likes
        items, probability = grow_bundle(shares, k)
        best = np.array(items)[np.argsort(-shares[:, items].mean(axis=0), kind="stable")]
        return Bundle(tuple(self._items.labels[open_items[best]].tolist()), probability)

    def explain(self, user: Any, item: Hashable) -> Explanation:
        """Explain which of a user's ratings change an expected rating, and by how much.

        With implicit feedback, which choices change the probability of another one.

        Parameters
        ----------
        user : id or mapping of items to ratings
            The user, placed by the ratings alone, as a new one is.
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
        place = self._items.place(item)
        known = self._cells_of(user)
        known.data[known.indices == place] = 0.0
        known.eliminate_zeros()
        here, cells = np.array([place]), np.arange(known.nnz)
        nobody = float(self._model.expected(self._model.nobody(), here)[0, 0])
        expected = np.array([nobody])
        if known.nnz:
            rows = sparse.vstack([known, hold_out(known, np.zeros(len(cells), np.intp), cells)])
            people = self._model.place(as_cells(rows), ratings_alone=True)
            expected = self._model.expected(people, here)[:, 0]
        effects = expected[0] - expected[1:]
        if known.nnz == 1:  # without it nothing is known, not even what was not chosen
            effects = expected[:1] - nobody
        order = np.argsort(-np.abs(effects), kind="stable")
        levels = known.data.astype(np.intp) - 1
        moves = tuple(
            Move(
                self._items.labels[known.indices[i]],
                float(self.levels_[levels[i]]),
                float(effects[i]),
            )
            for i in order
        )
        return Explanation(self._items.labels[place], float(expected[0]), nobody, moves)

    def joint(
        self, user: Any, items: Sequence[Hashable] | None = None, *, chosen: bool = False
    ) -> LowRankPMF:
        """Return the joint of a user's ratings, which answers any other question.

        Its classes are the samples of the fit, equally probable: given the class, the user's
        ratings are independent.

        Parameters
        ----------
        user : id, mapping of items to ratings, or None
            As for :meth:`recommend`.
        items : sequence of items, optional
            The variables; all by default.
        chosen : bool
            Whether the first level of each item is "not chosen"; by default the ratings are those
            that the user gives if the items are chosen. With implicit feedback the levels are 0
            and 1 (chosen).

        Examples
        --------
        >>> import rejoint as rj
        >>> rows = [("ann", "Up", 5), ("bob", "Up", 1), ("bob", "Heat", 4)]
        >>> joint = rj.JointRecommender(random_state=0).fit(rows).joint("ann")
        >>> joint.domain.names
        ('Heat', 'Up')
        >>> bool(joint.prob({"Heat": [4, 5]}) > 0.3)
        True
        """
        check_is_fitted(self)
        people, _ = self._find(user)
        places = np.arange(len(self._items.labels))
        if items is not None:
            places = self._items.all_places(list(items))
        # One class after another: (classes, items, I).
        levels = self._model.answers.levels(people, places)[0].astype(np.float64)
        if chosen and not self._implicit:
            shares = self._model.class_chosen(people, places)[:, :, None]
            levels = np.concatenate([1.0 - shares, shares * levels], axis=2)
        return self._as_pmf(levels, places, chosen and not self._implicit)

    @property
    def pmf_(self) -> LowRankPMF:
        """The joint of anybody's ratings: its classes are some hundred users drawn from the fit.

        It answers questions about the population. Predictions for a user are not made by it but by
        the user's own joint (:meth:`joint`), which is more accurate.

        Examples
        --------
        >>> import rejoint as rj
        >>> rows = [("ann", "Up", 5), ("bob", "Up", 1), ("bob", "Heat", 4)]
        >>> rj.JointRecommender(random_state=0).fit(rows).pmf_.marginal("Up").shape
        (3,)
        """
        check_is_fitted(self)
        if self._pmf is None:
            levels = self._model.population(self._people, np.random.default_rng(0))
            self._pmf = self._as_pmf(levels, np.arange(len(self._items.labels)), False)
        return self._pmf

    @property
    def result_(self) -> FitResult:
        """The result of the fit: :attr:`pmf_`, and a description of what was sampled.

        Examples
        --------
        >>> import rejoint as rj
        >>> rows = [("ann", "Up", 5), ("bob", "Up", 1), ("bob", "Heat", 4)]
        >>> rj.JointRecommender(random_state=0).fit(rows).result_.stop
        '20 samples of choices with 16 traits, 40 of ratings with 8.'
        """
        pmf, nothing = self.pmf_, float("nan")
        model = Model(Layout(pmf.domain.shape), pmf.weights, np.concatenate(pmf.factors))
        kind = Stop.INTERRUPTED if self._interrupted else Stop.STEPS
        run = Run(model, nothing, nothing, nothing, kind)
        samples = plural(len(self._model.choices.items), "sample")
        stop = (
            f"{samples} of choices with {plural(self._model.choices.items.shape[2] - 1, 'trait')}"
        )
        if self._model.ratings is not None:
            ratings = self._model.ratings.items
            stop += f", {len(ratings)} of ratings with {ratings.shape[2] - 1}"
        stop += f"; {kind.text}." if self._interrupted else "."
        result = FitResult.of(pmf, [run], "", classes_are_groups=False)
        return replace(result, stop=stop, starts=(run,) if self._interrupted else ())

    # Files

    def save(self, path: str | PathLike[str], *, notes: Mapping[str, Any] | None = None) -> None:
        """Write the recommender to a file, with its users and their ratings.

        :func:`rejoint.load` reads it back; commands that take any model, such as ``rejoint ask``
        and ``rejoint explore``, use its joint of anybody's ratings (:attr:`pmf_`).

        Parameters
        ----------
        path : str or path
            An existing model is replaced, but no other file. A name ending in ``.json`` gives text.
        notes : dict, optional
            Further contents of the file, which JSON must be able to hold.

        Examples
        --------
        >>> import pathlib, rejoint as rj, tempfile
        >>> rows = [("ann", "Up", 5), ("bob", "Up", 1), ("bob", "Heat", 4)]
        >>> model = rj.JointRecommender(random_state=0).fit(rows)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(pathlib.Path(folder, "films.rejoint"))
        ...     again = rj.JointRecommender.load(pathlib.Path(folder, "films.rejoint"))
        >>> again.recommend("ann") == model.recommend("ann")
        True
        """
        write_model(path, self.to_saved(notes))

    def to_saved(self, notes: Mapping[str, Any] | None = None) -> SavedModel:
        """Return what :meth:`save` writes to a file.

        Examples
        --------
        >>> import rejoint as rj
        >>> rows = [("ann", "Up", 5), ("bob", "Up", 1), ("bob", "Heat", 4)]
        >>> rj.JointRecommender(random_state=0).fit(rows).to_saved().estimator.kind
        'recommender'
        """
        check_is_fitted(self)
        settings: dict[str, Any] = {
            "feedback": self.feedback,
            "half_up": bool(self.half_up),
            "columns": self.columns,
            "interrupted": self._interrupted,
            "users": self.users_.tolist(),
            "items": self.items_.tolist(),
        }
        names = [name for name in FIT_COLUMNS if hasattr(self, name)]
        settings |= {name: np.asarray(getattr(self, name)).tolist() for name in names}
        estimator = to_saved(self._model, self._people, self._known, settings)
        kept = {"classes_are_groups": False, **(notes or {})}
        return self.pmf_.to_saved(kept)._replace(estimator=estimator)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "JointRecommender":
        """Read a recommender that :meth:`save` or ``rejoint fit-ratings`` wrote.

        Examples
        --------
        >>> import rejoint as rj
        >>> rj.JointRecommender.load("no-such-file.rejoint")
        Traceback (most recent call last):
        ...
        FileNotFoundError: No model file 'no-such-file.rejoint'...
        """
        return cls.of_saved(read_saved(path), str(path))

    @classmethod
    def of_saved(cls, saved: SavedModel, name: str) -> "JointRecommender":
        """Make a recommender of the contents of a file of this name.

        Examples
        --------
        >>> import rejoint as rj
        >>> rows = [("ann", "Up", 5), ("bob", "Up", 1), ("bob", "Heat", 4)]
        >>> saved = rj.JointRecommender(random_state=0).fit(rows).to_saved()
        >>> rj.JointRecommender.of_saved(saved, "memory").users_
        array(['ann', 'bob'], dtype=object)
        """
        model, people, known, settings = from_saved(saved.estimator, name)
        columns = settings["columns"]
        columns = tuple(columns) if isinstance(columns, list) else columns
        loaded = cls(settings["feedback"], settings["half_up"], columns, model.policy)
        ids = as_labels(settings["users"]), as_labels(settings["items"])
        loaded._take(ids, known, model, people)
        loaded._interrupted, loaded._pmf = bool(settings["interrupted"]), LowRankPMF.of_saved(saved)
        for name in FIT_COLUMNS:
            if name in settings:
                value = settings[name]
                value = np.array(value, dtype=object) if isinstance(value, list) else value
                setattr(loaded, name, value)
        return loaded

    # Parts

    @property
    def _implicit(self) -> bool:
        return bool(self.feedback == "implicit")

    def _as_pmf(self, levels: FloatArray, places: IntArray, chosen: bool) -> LowRankPMF:
        """Return a joint of equally probable classes, (classes, items, I)."""
        names = [str(item) for item in self._items.labels[places]]
        values: tuple[Any, ...] = tuple(float(v) if v % 1 else int(v) for v in self.levels_)
        kind: Literal["ordinal", "nominal"] = "ordinal"
        if chosen:
            values, kind = (NOT_CHOSEN, *map(str, values)), "nominal"
        domain = Domain(tuple(Variable(name, values, kind) for name in names))
        levels = levels / levels.sum(axis=2, keepdims=True)  # single precision: nearly one
        weights = np.full(len(levels), 1.0 / len(levels))
        return LowRankPMF(weights, list(levels.transpose(1, 2, 0)), domain)

    def _class_shares(
        self, people: People, threshold: float | None, items: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Probability that one user chooses items, and likes them if so, (classes, items)."""
        level = self._model.scale.at_least(threshold)
        chosen = self._model.class_chosen(people, items)
        if self._implicit:
            return chosen, np.ones_like(chosen)
        levels = self._model.answers.levels(people, items)[0]
        return chosen, levels[..., level:].sum(axis=-1).astype(np.float64)

    def _reasons(self, people: People, known: Any, items: IntArray) -> list[tuple[Any, ...]]:
        """Return liked items that most support each of some items."""
        level = 1 if self._implicit else self._model.scale.at_least(None)
        effects = self._model.choices.influences(
            people.choices, as_grades(known, self._model.scale), items
        )
        effects[known.data - 1 < level] = -np.inf
        effects[known.indices[:, None] == items] = -np.inf  # an item is no reason for itself
        best = np.argsort(-effects, axis=0, kind="stable")[:REASONS]
        labels = self._items.labels[known.indices]
        return [
            tuple(labels[i] for i in best[:, j] if effects[i, j] > 0.0) for j in range(len(items))
        ]

    def _check_columns(self, X: Any, *, reset: bool) -> None:
        """Note or check the columns of a table by scikit-learn's rules; rows have none to check."""
        if sparse.issparse(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
        elif is_table(X, self.columns):
            if not has_columns(X):
                X = check_array(X, dtype=None, ensure_all_finite=False)
            if not isinstance(X, Mapping):
                validate_data(self, X, reset=reset, skip_check_array=True)

    def _is_like_fit(self, X: Any) -> bool:
        """Whether X is a table like that of the fit, and not pairs."""
        if sparse.issparse(X) or not hasattr(self, "n_features_in_"):
            return bool(sparse.issparse(X))
        width: int = len(X) if isinstance(X, Mapping) else (0, *np.shape(X))[-1]
        return not is_tuples(X) and width not in {2, 3} - {self.n_features_in_}

    def _answer(self, X: Any, answer: Callable[..., FloatArray]) -> FloatArray:
        """Return an answer for pairs, or for all cells of a table of new users."""
        if self._is_like_fit(X):
            people = self._model.place(self._table_cells(X), ratings_alone=True)
            return answer(people, np.arange(len(self.items_)))
        users, items = read_pairs(X, self.columns)
        people, places = self._people_of(users)
        pairs: FloatArray = answer(people, self._items.all_places(items)[:, None], places)[:, 0]
        return pairs

    def _table_cells(self, X: Any) -> Any:
        """Return what the users of another table of the same items have rated."""
        if hasattr(self, "n_features_in_"):
            self._check_columns(X, reset=False)
        cells = read_ratings(X, self.columns, self._implicit)
        if has_columns(X):  # by name, where there are names
            cells = cells._replace(item=self._items.all_places(cells.items)[cells.item])
        return encode_cells(cells, (len(cells.users), len(self.items_)), self._model.scale)

    def _people_of(self, users: Any) -> tuple[People, IntArray]:
        """Return the people of the fit, with new ones behind them, and the place of each user."""
        places, new = [], dict[int, tuple[int, People]]()
        for user in users:
            if self._ratings_of(user) is None:
                places.append(self._users.place(user))
                continue
            if id(user) not in new:  # the same ratings may be paired with many items
                new[id(user)] = len(self.users_) + len(new), self._find(user)[0]
            places.append(new[id(user)][0])
        people = self._people.append(*(placed for _, placed in new.values()))
        return people, np.array(places, dtype=np.intp)

    def _place(self, cells: Ratings) -> Ratings:
        """Return ratings with the places of users and items in the fit, -1 if they have none."""
        users = self._users.places_or_none(cells.users)[cells.user]
        items = self._items.places_or_none(cells.items)[cells.item]
        return cells._replace(
            user=users, item=items, rating=adjust(cells.rating, self.half_up, self._implicit)
        )

    def _open_items(
        self, known: Any, exclude_seen: bool, among: Sequence[Hashable] | None
    ) -> IntArray:
        """Return the places of items that may be recommended."""
        items = np.arange(len(self.items_))
        if among is not None:
            items = self._items.all_places(list(among))
        return np.setdiff1d(items, known.indices) if exclude_seen else items

    def _find(self, user: Any) -> tuple[People, Any]:
        """Return where a user stands, and what the user has rated."""
        known = self._cells_of(user)
        if self._ratings_of(user) is None:
            return self._people.take(np.array([self._users.place(user)])), known
        return self._model.place(known) if known.nnz else self._model.nobody(), known

    def _cells_of(self, user: Any) -> Any:
        """Return what a user has rated: a row of level numbers plus one, of a new user in double.

        The page of the explorer places new users in double precision, too: its numbers are these.
        """
        ratings = self._ratings_of(user)
        if ratings is None:
            return as_cells(self._known[[self._users.place(user)]])
        scale, row = self._model.scale, np.zeros((1, len(self.items_)))
        for item, rating in ratings.items():
            if not is_missing(rating):
                level = scale.code(float(rating), item)
                is_seen = level > 0 or not scale.implicit
                row[0, self._items.place(item)] = (level + 1) * is_seen
        return as_cells(row, np.float64)

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
            if not self._implicit:
                raise TypeError(
                    f"A user is an id or a mapping of items to ratings, got {cite(user)}; "
                    "items alone will do with feedback='implicit' only."
                )
            return dict.fromkeys(user, 1.0)
        return None

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags


#: What scikit-learn notes about the columns of a table.
FIT_COLUMNS = ("n_features_in_", "feature_names_in_")


def encode_cells(ratings: Ratings, shape: tuple[int, int], scale: RatingLevels) -> Any:
    """Return ratings as level numbers plus one, (users, items); others are left out."""
    levels = scale.encode(ratings.rating)
    bad = levels < 0
    if bad.any():
        remark(
            f"{plural(int(bad.sum()), 'cell')} treated as unseen: {ratings.rating[bad][0]:g} is "
            f"not among the ratings of the fit, {scale.words}."
        )
    if scale.implicit:  # a stored zero says what absence says
        bad = levels == 0
    at = (ratings.user[~bad], ratings.item[~bad])
    return as_cells(sparse.csr_array((levels[~bad] + 1.0, at), shape=shape))


def hold_out(known: Any, users: IntArray, cells: IntArray) -> Any:
    """Return the rows of users, each without one of its cells, given by number."""
    rest = as_cells(known[users])
    rest.data[rest.indptr[:-1] + cells - known.indptr[users]] = 0.0
    rest.eliminate_zeros()
    return rest


def share_below(scores: FloatArray, chosen: Any, item: int) -> float:
    """Return the share of items not chosen that have a lower score than one; ties count half."""
    others = np.delete(scores, np.append(chosen, item).astype(np.intp))
    if len(others) == 0:
        return 1.0
    return float((others < scores[item]).mean() + 0.5 * (others == scores[item]).mean())


def grow_bundle(likes: FloatArray, size: int) -> tuple[list[int], float]:
    """Add the best item again and again to each of the best single ones; return the best set.

    ``likes`` (classes, items) has the probability in each class, all of which are as probable, that
    an item is liked. Also return the probability that all of the set are.
    """
    bundles = []
    for first in np.argsort(-likes.mean(axis=0), kind="stable")[:BUNDLE_STARTS].tolist():
        items, all_liked = [first], likes[:, first]
        while len(items) < size:
            values = all_liked @ likes
            values[items] = -np.inf
            items.append(int(values.argmax()))
            all_liked = all_liked * likes[:, items[-1]]
        bundles.append((float(all_liked.mean()), items))
    probability, items = max(bundles)
    return items, probability
