"""JointPMF: the joint probability of all columns, as a latent class model for scikit-learn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import narwhals as nw
import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from rejoint.arrays import FloatArray, IntArray
from rejoint.domain.labels import Bin, Level
from rejoint.domain.variable import Kind
from rejoint.estimation.data import InMemory
from rejoint.estimation.estimate import Request, estimate, fit_data
from rejoint.estimation.smoothing import Smooth
from rejoint.estimators.partial_fit import PartialFit
from rejoint.estimators.sklearn_input import (
    accept_mixed_columns,
    generator,
    is_for_records,
    read,
    weights_of,
)
from rejoint.factorization.algebraic import Subtables
from rejoint.factorization.factorize import factorize
from rejoint.factorization.problem import make_problem
from rejoint.marginals.marginals import Marginals
from rejoint.messages import Progress, remark
from rejoint.model import Layout, Model
from rejoint.pmf.pmf import LowRankPMF
from rejoint.rank.select import select
from rejoint.records.frames import Backend, choose_backend
from rejoint.records.infer import Bins, NotApplicable
from rejoint.records.records import BaseRecords, Records
from rejoint.records.sparse import SparseRecords
from rejoint.records.survey_design import WeightArguments
from rejoint.solver.result import FitResult
from rejoint.solver.session import Session
from rejoint.text import cite, class_titles, plural

#: Records per cell from which tables of four variables are filled well enough to be used.
RECORDS_PER_CELL = 5.0


def has_partial_fit(estimator: Any) -> bool:
    """Whether there is a ``partial_fit``; the error says what to do where there is none."""
    if not is_for_records(estimator.solver):
        raise AttributeError(
            f"partial_fit learns from records, which solver={cite(estimator.solver)} does not: use "
            "'auto', 'ml' or 'map'; or count the chunks by rj.Marginals.count, which adds them "
            "up, and factorize those."
        )
    return True


@dataclass(eq=False, repr=False)
class JointPMF(DensityMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Joint probability of all columns: a latent class model as a scikit-learn estimator.

    Parameters
    ----------
    rank : int or "auto"
        Number of hidden classes; by default chosen by :func:`rejoint.rank.select`.
    solver : str or solver object
        On records: ``"ml"``, ``"map"``, ``"bayes"``, or ``"auto"``, which chooses one of them (see
        :func:`rejoint.estimate`). On tables counted from them: ``"algebraic"``, ``"admm"``,
        ``"newton"``, ``"kl"`` (see :func:`rejoint.factorize`). A solver of your own works on
        records unless its ``needs`` name what only tables have.
    order : int or "auto"
        Variables in each table, where the solver works on tables: by default three, or four if
        the rank needs it and the records fill them.
    n_init : int
        Number of starts.
    random_state : int, RandomState, Generator or None
        Source of randomness.
    smooth : "auto", bool or list of names
        Ordinal or binned columns whose neighboring levels inform each other; True for all of them,
        and so is ``"auto"`` with the solvers ``"auto"``, ``"map"`` and ``"bayes"``.
    kinds, levels, bins, not_applicable, missing_level
        What is declared about columns; see :meth:`Records.of`.
    agreement : bool
        Whether answers are moved towards tables that the records contradict; see
        :func:`rejoint.estimate`.
    blocks : "auto", bool or list of lists of names
        Columns that are tabulated jointly within classes; see :func:`rejoint.estimate`.

    Attributes
    ----------
    pmf_ : LowRankPMF
        The joint; its classes are in decreasing order of weight. Fitted by Bayes, it answers by
        the posterior mean, and its classes are those of one representative model.
    rank_ : int
        Its number of classes; empty ones are dropped.
    result_ : FitResult
        The fit: ``stop``, ``choice``, ``history``, and ``posterior`` with ``solver="bayes"``.
    n_samples_seen_ : float
        Weight of all records so far.
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
    of columns, or :class:`Records`, which say how columns are read (bins, levels). NaN, None and
    NA are missing, and so is a level that the fit has not seen. ``score``, ``score_samples`` and
    ``sample`` answer as ``pmf_`` does; ``predict``, ``predict_proba``, ``profiles``, ``aic`` and
    ``bic`` are of the classes of ``pmf_.representative``.

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

    rank: int | Literal["auto"] = "auto"
    solver: Any = "auto"
    order: int | Literal["auto"] = "auto"
    n_init: int = 5
    random_state: Any = None
    smooth: Smooth = "auto"
    kinds: Mapping[Any, Kind] | None = None
    levels: Mapping[Any, Sequence[Level]] | None = None
    bins: Bins = None
    agreement: bool = True
    blocks: Literal["auto"] | bool | Sequence[Sequence[Any]] = "auto"
    not_applicable: NotApplicable = "auto"
    missing_level: Sequence[Any] = ()

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        survey_weight: Any = None,
        strata: Any = None,
        clusters: Any = None,
    ) -> Self:
        """Estimate the joint of the columns.

        Parameters
        ----------
        X : table of shape (rows, columns), Records or SparseRecords
            Levels of discrete variables; values may be missing.
        y : ignored
            Present for API consistency.
        sample_weight : array of shape (rows,), optional
            How many times each row counts.
        survey_weight, strata, clusters : arrays of shape (rows,), optional
            Those of a survey; see :meth:`Records.of`.

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
        weights = WeightArguments(sample_weight, survey_weight, strata, clusters)
        records = read(self, X, weights, reset=True)
        how = {name: getattr(self, name) for name in ("smooth", "agreement", "blocks")}
        parts = self.rank, self.solver, self.n_init, self.random_state, self.order
        result = fit_joint(records, *parts, **how)
        return self._keep(result, float(weights_of(records).sum()))

    @available_if(has_partial_fit)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one more chunk of records, in bounded memory.

        The first chunk fixes the domain: levels that occur later are missing. Where it may lack
        some, pass it as ``Records.of(chunk, domain=...)``. Up to 64 MB of the latest records
        are kept (as small integers, identical ones merged), and the model is refined on all of
        them whenever they have grown by a third; chunks in between are only kept. While all records
        fit, the model is fitted afresh, and its rank chosen again with ``rank="auto"``, whenever
        they have become four times as many, so that the result is close to that of ``fit``. Of
        records that no longer fit, expected counts are kept, which slowly fade. After ``fit``,
        learning continues from its model. A call that Ctrl-C ends can be repeated.

        ``result_.history`` has minus the mean log-probability of each chunk before it was
        learned. Priors are those of ``solver="map"`` (none with ``"ml"``).

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`fit`. Survey weights need all records at once.

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
        stream: PartialFit | None = getattr(self, "_partial", None)
        first = not hasattr(self, "pmf_")
        chunk = read(self, X, WeightArguments(sample_weight), reset=first)
        if isinstance(chunk, SparseRecords):
            chunk = chunk.to_records()
        if not first and not bool((chunk.codes >= 0).any()):
            return self
        if first:
            stream = PartialFit(chunk.domain, self.solver != "ml")
        elif stream is None:
            stream = PartialFit.after(self.pmf_, self.n_samples_seen_, self.solver != "ml")
        assert stream is not None
        stream, result = stream.learn(InMemory.of(chunk), self._fit_chunks)
        self._keep(result, stream.seen)
        self._partial = stream
        return self

    def _fit_chunks(self, data: InMemory) -> Model:
        """Fit a fresh model; questions that the records leave open are not warned of."""
        solver = self.solver if self.solver in ("ml", "map") else "map"
        request = Request(self.rank, solver, n_init=self.n_init)
        with Progress() as report:
            pmf = fit_data(data, request, Session(generator(self.random_state), report)).pmf
        return Model.of(pmf.weights, pmf.factors)

    def predict(self, X: Any) -> IntArray:
        """Return the position of the most probable hidden class of each row.

        Position 0 is the largest class, which is shown as class 1.

        Examples
        --------
        >>> import rejoint as rj
        >>> X = [["a", "x"], ["b", "y"]] * 50
        >>> model = rj.JointPMF(rank=2, random_state=0).fit(X)
        >>> first, second = model.predict(X[:2])
        >>> bool(first != second)
        True
        """
        return np.asarray(np.argmax(self.predict_proba(X), axis=1))

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the posterior probability of each hidden class for each row.

        Column 0 is the largest class, which is shown as class 1.

        Examples
        --------
        >>> import rejoint as rj
        >>> X = [["a", "x"], ["b", "y"]] * 50
        >>> rj.JointPMF(rank=2, random_state=0).fit(X).predict_proba(X[:2]).sum(axis=1)
        array([1., 1.])
        """
        check_is_fitted(self)
        return self.pmf_.classes(read(self, X, reset=False))

    def score_samples(self, X: Any) -> FloatArray:
        """Return the log-probability of each row, missing cells summed out.

        Examples
        --------
        >>> import rejoint as rj
        >>> model = rj.JointPMF(rank=1, solver="ml").fit([["a"], ["a"], ["b"], ["b"]])
        >>> model.score_samples([["a"], [None]]).round(2)
        array([-0.69,  0.  ])
        """
        check_is_fitted(self)
        return self.pmf_.log_prob(read(self, X, reset=False))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean log-probability of the rows.

        Examples
        --------
        >>> import rejoint as rj
        >>> X = [["a"], ["a"], ["b"], ["b"]]
        >>> round(rj.JointPMF(rank=1, solver="ml").fit(X).score(X), 2)
        -0.69
        """
        check_is_fitted(self)
        records = read(self, X, WeightArguments(sample_weight), reset=False)
        return log_likelihood(self.pmf_, records) / float(weights_of(records).sum())

    def aic(self, X: Any, sample_weight: Any = None) -> float:
        """Return Akaike's criterion of ``pmf_.representative`` on these rows; lower is better.

        Examples
        --------
        >>> import rejoint as rj
        >>> X = [["a"], ["a"], ["b"], ["b"]]
        >>> round(rj.JointPMF(rank=1, solver="ml").fit(X).aic(X), 2)
        7.55
        """
        return self._criterion(X, sample_weight)

    def bic(self, X: Any, sample_weight: Any = None) -> float:
        """Return the Bayesian information criterion on these rows; lower is better.

        It is that of ``pmf_.representative``, one model of rank ``rank_``.

        Examples
        --------
        >>> import rejoint as rj
        >>> X = [["a"], ["a"], ["b"], ["b"]]
        >>> round(rj.JointPMF(rank=1, solver="ml").fit(X).bic(X), 2)
        6.93
        """
        return self._criterion(X, sample_weight, bayes=True)

    def profiles(self, backend: Backend | None = None) -> Any:
        """Return the probability of each level overall and within each class, as a frame.

        Classes are numbered from 1: class 1 is at position 0 of ``pmf_.weights``.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
            The library of the frame; by default the first of these that is installed.

        Examples
        --------
        >>> import rejoint as rj
        >>> model = rj.JointPMF(rank=1, solver="ml").fit({"coin": ["head", "tail", "head", "tail"]})
        >>> model.profiles("pandas")
                        overall  class 1
        variable level
        coin     head       0.5      0.5
                 tail       0.5      0.5
        """
        check_is_fitted(self)
        return profile_frame(self.pmf_, backend)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Records:
        """Draw new records.

        Parameters
        ----------
        n_samples : int
            Number of records.
        random_state : int, RandomState, Generator or None
            Source of randomness; by default that of the estimator.

        Returns
        -------
        Records
            See :meth:`Records.to_frame`.

        Examples
        --------
        >>> import rejoint as rj
        >>> model = rj.JointPMF(rank=1, random_state=0).fit({"coin": ["head", "tail"] * 20})
        >>> len(model.sample(3))
        3
        """
        check_is_fitted(self)
        source = self.random_state if random_state is None else random_state
        return self.pmf_.sample(n_samples, random_state=generator(source))

    def _criterion(self, X: Any, sample_weight: Any, bayes: bool = False) -> float:
        """Price of the free parameters less twice the log-likelihood."""
        check_is_fitted(self)
        records = read(self, X, WeightArguments(sample_weight), reset=False)
        price = np.log(weights_of(records).sum()) if bayes else 2.0
        free = Layout(self.pmf_.domain.shape).parameters(self.rank_)
        return float(price * free - 2.0 * log_likelihood(self.pmf_.representative, records))

    def _keep(self, result: FitResult, mass: float) -> Self:
        self.result_: FitResult = result
        self.pmf_: LowRankPMF = result.pmf
        self.rank_, self.n_samples_seen_ = result.pmf.rank, mass
        self.__dict__.pop("_partial", None)
        return self

    def __sklearn_tags__(self) -> Any:
        return accept_mixed_columns(super().__sklearn_tags__())


def fit_joint(
    records: BaseRecords,
    rank: int | Literal["auto"],
    solver: Any,
    n_init: int,
    random_state: Any,
    order: int | Literal["auto"] = "auto",
    *,
    smooth: Smooth = "auto",
    **how: Any,
) -> FitResult:
    """Fit to the records, or to tables counted of them, as the solver asks."""
    rng = generator(random_state)
    common: dict[str, Any] = {"n_init": n_init, "random_state": rng}
    if is_for_records(solver):
        how = {"blocks": False, **how, "smooth": smooth}
        return estimate(records, rank, solver, **how, **common)
    if smooth is not False and smooth != "auto":
        raise ValueError(
            f"smooth={cite(smooth)} needs the records, which solver={cite(solver)} does not use: "
            "use 'auto', 'ml', 'map' or 'bayes', or smooth=False."
        )
    choices = []
    if rank == "auto":
        selection = select(records, random_state=rng)
        rank, choices = selection.rank, [selection.words]
    if order == "auto":
        order, why = choose_order(records, rank)
        choices.append(why)
    common["on_interrupt"] = how.get("on_interrupt", "raise")
    result = factorize(count_filled(records, order), rank, solver, weighting="count", **common)
    if records.design is not None:
        choices.append(records.design.text)
    value = log_likelihood(result.pmf, records)
    return replace(result, choice=" ".join(choices), log_likelihood=value)


def choose_order(records: BaseRecords, rank: int) -> tuple[int, str]:
    """Choose tables of three variables, or of four if the rank needs it and they have records.

    Pairs never determine the hidden classes; larger tables say more about them but hold fewer
    records in each cell.
    """
    shape = sorted(records.domain.shape)
    if len(shape) < 4:
        return len(shape), f"One table of all {plural(len(shape), 'variable')}."
    triples = count_filled(records, 3)
    subtables = Subtables(make_problem(triples, "equal"))
    most = max(subtables.largest_rank(pairs=pairs) for pairs in (False, True))
    determined = f"determine {plural(most, 'class', 'classes')}"
    if rank <= most:
        return 3, f"Tables of three variables: they {determined}."
    filled = float(np.mean(triples.totals) / np.prod(shape[-4:]))
    order, what = (4, "Tables of four") if filled >= RECORDS_PER_CELL else (3, "Tables of three")
    return order, (
        f"{what} variables: those of three are only known to {determined}, and those of four have "
        f"{filled:.2g} records per cell."
    )


def count_filled(records: BaseRecords, order: int) -> Marginals:
    """Count all tables of an order that some record fills; warn of the others."""
    tables = Marginals.count(records, order=order)
    there = np.asarray(tables.totals) > 0
    if there.all():
        return tables
    remark(
        f"{int((~there).sum()):,} of {plural(len(there), 'table')} of {plural(order, 'variable')} "
        "have no record with all of them: they are left out."
    )
    return Marginals.count(records, subsets=[tables.subsets[k] for k in np.flatnonzero(there)])


def log_likelihood(pmf: LowRankPMF, records: BaseRecords) -> float:
    """Sum the log-probabilities of records; those without weight do not count, even at -inf."""
    weight = weights_of(records)
    used = weight > 0
    return float(pmf.log_prob(records)[used] @ weight[used])


def profile_frame(pmf: LowRankPMF, backend: Backend | None = None) -> Any:
    """Return one row for each level; one column for all records and one for each class.

    Examples
    --------
    >>> import rejoint as rj
    >>> domain = rj.Domain.of({"smoke": ["yes", "no"]})
    >>> profile_frame(rj.LowRankPMF([0.3, 0.7], [[[0.9, 0.2], [0.1, 0.8]]], domain), "pandas")
                    overall  class 1  class 2
    variable level
    smoke    yes       0.41      0.9      0.2
             no        0.59      0.1      0.8
    """
    backend = choose_backend(backend)
    names, levels, shares = [], [], []
    for variable, factor in zip(pmf.domain, pmf.factors, strict=True):
        names += [variable.name] * len(variable)
        levels += [str(x) if isinstance(x, Bin) else x for x in variable.levels]
        overall = pmf.marginal(variable.name).tolist()
        shares += [[share, *row] for share, row in zip(overall, factor.tolist(), strict=True)]
    titles = ["overall", *class_titles(pmf.rank)]
    if backend == "pandas":
        import pandas as pd

        index = pd.MultiIndex.from_arrays([names, levels], names=["variable", "level"])
        return pd.DataFrame(shares, index=index, columns=titles)
    # Columns of these have one type: labels of several variables meet as text.
    columns = {"variable": names, "level": [str(level) for level in levels]}
    columns |= dict(zip(titles, map(list, zip(*shares, strict=True)), strict=True))
    return nw.from_dict(columns, backend=backend).to_native()
