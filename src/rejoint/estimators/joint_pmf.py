"""JointPMF: the joint of all columns, with what users of latent class models expect."""

from collections.abc import Sequence
from typing import Any, Literal, Self

from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.metaestimators import available_if

from rejoint.estimation import Bayes, Em, estimate
from rejoint.estimation.estimating import estimate_quietly
from rejoint.estimators.judgements import Judgements
from rejoint.estimators.reading import generator, read
from rejoint.estimators.streaming import Stream, weights_of
from rejoint.estimators.tables import fit_tables
from rejoint.pmf import LowRankPMF
from rejoint.records import Records, SparseRecords
from rejoint.records.sparse import AnyRecords
from rejoint.solver import FitResult

__all__ = ["JointPMF"]


def from_records(solver: Any) -> bool:
    """Whether a solver learns from records and not from tables of them."""
    if isinstance(solver, str):
        return solver in ("auto", "ml", "map", "bayes")
    return isinstance(solver, Em | Bayes)


def learns_from_records(estimator: Any) -> bool:
    """Whether there is a ``partial_fit``; says what to do where there is none."""
    if not from_records(estimator.solver):
        raise AttributeError(
            f"partial_fit learns from records, which solver={estimator.solver!r} does not: take "
            "'auto', 'ml' or 'map'; or count the chunks by rj.Marginals.count, which adds them "
            "up, and factorize those."
        )
    return True


class JointPMF(Judgements, DensityMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Joint probability of all columns: a latent class model as a scikit-learn estimator.

    Parameters
    ----------
    rank : int or "auto"
        Number of hidden classes; by default chosen by :func:`rejoint.rank.select`.
    solver : str or solver object
        From the records: ``"ml"``, ``"map"``, ``"bayes"``, or ``"auto"``, which takes one of
        them (see :func:`rejoint.estimate`). From tables counted of them: ``"algebraic"``,
        ``"admm"``, ``"newton"``, ``"kl"`` (see :func:`rejoint.factorize`).
    order : int or "auto"
        Variables in each table, where the solver works on tables: by default three, four if
        the rank needs it and the records fill them.
    n_init : int
        Starts.
    random_state : int, RandomState, Generator or None
        Source of randomness.
    smooth : bool or list of names
        Ordinal or binned columns whose neighbouring levels are to inform each other; True for
        all of them. With solvers that work on records, in ``fit``.

    Attributes
    ----------
    pmf_ : LowRankPMF
        One model of rank ``rank_``, whose classes mean something: largest first.
    rank_ : int
        Its number of classes; those that came to nothing are dropped.
    result_ : FitResult
        How it came about: ``stop``, ``choice``, ``history``, and ``posterior`` with
        ``solver="bayes"``.
    n_samples_seen_ : float
        Weight of the records learnt from.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of str
        Their names, where they have any.

    See Also
    --------
    rejoint.estimate : The same as a function.

    Notes
    -----
    X may be a pandas, polars or pyarrow frame, a NumPy array, a list of rows or of dicts, a dict
    of columns, or :class:`Records`, which say how columns are to be read (bins, levels). NaN,
    None and NA are missing, and so is, later on, a level that the fit has not seen.
    ``score_samples`` and ``sample`` use the posterior mean where there is one, everything
    about classes uses ``pmf_``.

    Examples
    --------
    >>> import rejoint as rj
    >>> domain = rj.Domain.of({name: ["yes", "no"] for name in "abcd"})
    >>> truth = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 4, domain)
    >>> X = truth.sample(2000, random_state=0).to_frame("pandas")
    >>> model = rj.JointPMF(rank=2, random_state=0).fit(X)
    >>> model.pmf_.weights.round(1)
    array([0.6, 0.4])
    >>> model.predict(X[:3]).shape, model.predict_proba(X[:3]).shape
    ((3,), (3, 2))
    """

    n_samples_seen_: float
    n_features_in_: int

    def __init__(
        self,
        rank: int | Literal["auto"] = "auto",
        solver: Any = "auto",
        order: int | Literal["auto"] = "auto",
        n_init: int = 5,
        random_state: Any = None,
        smooth: bool | Sequence[str] = False,
    ) -> None:
        self.rank = rank
        self.solver = solver
        self.order = order
        self.n_init = n_init
        self.random_state = random_state
        self.smooth = smooth

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Estimate the joint of the columns.

        Parameters
        ----------
        X : table of shape (rows, columns), Records or SparseRecords
            Levels of discrete variables; may have holes.
        y : ignored
            There by convention.
        sample_weight : array of shape (rows,), optional
            How many times each row counts.

        Returns
        -------
        self

        Examples
        --------
        >>> import rejoint as rj
        >>> model = rj.JointPMF(rank=1, solver="ml").fit([["a", 0], ["a", 1], ["b", 1]])
        >>> model.pmf_.marginal("x1").round(2)
        array([0.33, 0.67])
        """
        records = read(self, X, sample_weight, reset=True)
        return self._keep(self._fit_records(records), float(weights_of(records).sum()))

    @available_if(learns_from_records)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one more chunk of records, in bounded memory.

        The first chunk fixes the domain: levels that come later are missing. Where it may lack
        some, pass it as ``Records.of(chunk, domain=...)``. Up to 64 MB of the latest records
        are held (as small integers, identical ones merged) and refined upon together; while
        all fit, the model is fitted afresh, and its rank chosen anew with ``rank="auto"``,
        whenever the records have become four times as many, so that it ends near what ``fit``
        gives. Of records that had to go, expected counts stay, which slowly fade. After
        ``fit``, learning goes on from its model.

        ``result_.history`` has minus the mean log-probability of each chunk before it was
        learnt. Priors are as with ``solver="map"`` (none with ``"ml"``).

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`fit`.

        Returns
        -------
        self

        Examples
        --------
        >>> import rejoint as rj
        >>> truth = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 4)
        >>> model = rj.JointPMF(rank=2, random_state=0)
        >>> for chunk in truth.sample(5000, random_state=0).chunks(1000):
        ...     model = model.partial_fit(chunk)
        >>> model.n_samples_seen_, rj.metrics.tensor_error(truth, model.pmf_) < 0.1
        (5000.0, True)
        """
        stream: Stream | None = getattr(self, "_stream", None)
        first = stream is None and not hasattr(self, "pmf_")
        chunk = read(self, X, sample_weight, reset=first)
        if isinstance(chunk, SparseRecords):
            chunk = chunk.to_records()  # as they are held
        if stream is None:
            prior = self.solver != "ml"
            if first:
                stream = Stream(chunk.domain, prior=prior)
            else:
                stream = Stream.after(self.pmf_, self.n_samples_seen_, prior=prior)
        if not bool((chunk.codes >= 0).any()) and not first:
            return self  # nothing in it
        pmf = stream.learn(chunk, self._fit_chunk).sorted()
        result = FitResult(
            pmf=pmf,
            stop=stream.words(),
            history=tuple(stream.history),
            error=float("nan"),
            residual=float("nan"),
            starts=(),
            misfits={},
        )
        self._keep(result, stream.seen)
        self._stream = stream
        return self

    def _fit_records(self, records: AnyRecords) -> FitResult:
        rng = generator(self.random_state)
        if from_records(self.solver):
            return estimate(
                records,
                self.rank,
                self.solver,
                smooth=self.smooth,
                n_init=self.n_init,
                random_state=rng,
            )
        if self.smooth is not False:
            raise ValueError(
                f"smooth={self.smooth!r} needs the records, which solver={self.solver!r} does not "
                "use: take 'auto', 'ml', 'map' or 'bayes', or smooth=False."
            )
        return fit_tables(records, self.rank, self.solver, self.order, self.n_init, rng)

    def _fit_chunk(self, records: Records) -> LowRankPMF:
        solver = self.solver if self.solver in ("ml", "map") else "map"
        rng = generator(self.random_state)
        return estimate_quietly(records, self.rank, solver, self.n_init, rng).pmf

    def _keep(self, result: FitResult, mass: float) -> Self:
        self.result_ = result
        self.pmf_ = result.pmf
        self.rank_ = result.pmf.rank
        self.n_samples_seen_ = mass
        self.__dict__.pop("_stream", None)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        return tags
