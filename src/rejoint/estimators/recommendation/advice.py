"""What a fitted recommender advises one user: items, bundles, and why."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from rejoint.domain.labels import is_missing, show
from rejoint.estimators.recommendation.bundles import best_set
from rejoint.estimators.recommendation.fold_in import Evidence
from rejoint.estimators.recommendation.levels import RatingLevels
from rejoint.estimators.recommendation.model import RatingModel
from rejoint.estimators.recommendation.ratings import Ids, plain
from rejoint.solver import whole

__all__ = ["Advice", "Bundle", "Explanation", "Move", "Recommendation"]

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
