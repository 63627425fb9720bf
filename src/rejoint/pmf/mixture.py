"""Questions about whole records: how probable they are, of which class, and new ones."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rejoint import queries
from rejoint.domain.domain import Domain, positions
from rejoint.domain.labels import plural, show
from rejoint.domain.variable import Variable
from rejoint.kernels import SparseCodes
from rejoint.messages import remark
from rejoint.pmf.draws import Draws, credible_bounds
from rejoint.pmf.to_frame import Mode, labelled
from rejoint.queries.modes import most_probable, single_modes
from rejoint.queries.sampling import draw_codes
from rejoint.records.frames import Backend
from rejoint.records.records import Records
from rejoint.records.sparse import read_any

FloatArray = NDArray[np.float64]

Given = Mapping[str, Any] | None
"""By variable: a level, a list of levels (any of them), or an array of likelihoods."""


def likelihoods(domain: Domain, evidence: Given) -> dict[int, FloatArray]:
    """Likelihood of each level, by position of the variable.

    Examples
    --------
    >>> likelihoods(Domain.of({"a": 2, "b": 3}), {"b": [0, 2]})
    {1: array([1., 0., 1.])}
    """
    if evidence is None:
        return {}
    if not isinstance(evidence, Mapping):
        raise TypeError(
            f"Evidence must be a dict such as {{{domain.names[0]!r}: "
            f"{domain[0].levels[0]!r}}}; got {type(evidence).__name__}."
        )
    return {
        domain.index(name): domain.variables[domain.index(name)].likelihood(value)
        for name, value in evidence.items()
    }


def posterior(
    model: "Mixture", given: Given, asked: Collection[int] | None = None
) -> tuple[FloatArray, Sequence[FloatArray]]:
    """Class posterior and factors of a model, both given the evidence.

    Parameters
    ----------
    model : "Mixture"
    given : mapping, optional
        Evidence by variable.
    asked : collection of int, optional
        The variables whose factors will be read; all by default. Others are left as they are.

    Raises
    ------
    ZeroEvidenceError
        If the evidence has probability zero; it names a smallest set that contradicts itself.

    Examples
    --------
    >>> m = Mixture([0.5, 0.5], [[[0.9, 0.2], [0.1, 0.8]]])
    >>> posterior(m, {"x0": 1})[0].round(3)
    array([0.111, 0.889])
    """
    by_position = likelihoods(model.domain, given)
    if not by_position:
        return model.weights, model.factors

    def words(n: int) -> str:
        pairs = (given or {}).items()
        name, value = next(pair for pair in pairs if model.domain.index(pair[0]) == n)
        return f"{name} = {show([value])}"

    shares, factors, _ = weighed(model, by_position, words, asked)
    return shares, factors


def weighed(
    model: "Mixture",
    by_position: Mapping[int, FloatArray],
    words: Callable[[int], str],
    asked: Collection[int] | None = None,
) -> tuple[FloatArray, Sequence[FloatArray], float]:
    """Class posterior, factors, and the logarithm of the probability of the evidence.

    `words` says in an error what was given about a variable.

    Examples
    --------
    >>> m = Mixture([0.5, 0.5], [[[0.9, 0.2], [0.1, 0.8]]])
    >>> shares, _, log_prob = weighed(m, {0: np.array([0.0, 1.0])}, lambda n: "x0 = 1")
    >>> shares.round(3), round(float(np.exp(log_prob)), 3)
    (array([0.111, 0.889]), 0.45)
    """
    logs = queries.log_class_weights(model.weights, model.factors, by_position)
    if np.isneginf(logs.max()):
        raise queries.ZeroEvidenceError(_why_impossible(model, words, by_position))
    factors = list(model.factors)
    read = by_position if asked is None else by_position.keys() & set(asked)
    for n in read:
        factors[n] = queries.conditional_factor(factors[n], by_position[n])
    return queries.class_posterior(logs), factors, float(queries.log_sum(logs))


def _why_impossible(
    model: "Mixture", words: Callable[[int], str], by_position: Mapping[int, FloatArray]
) -> str:
    culprits = queries.contradiction(model.weights, model.factors, by_position)
    named = [words(n) for n in culprits]
    way_out = "or fit with a prior that keeps every level possible."
    if len(named) == 1:
        return (
            f"{named[0]} has probability zero under this model, so nothing follows from it: "
            f"leave it out, {way_out}"
        )
    return (
        f"{', '.join(named[:-1])} and {named[-1]} are possible by themselves but not together: "
        f"jointly they have probability zero under this model. Leave one out, {way_out}"
    )


_SUM_TOLERANCE = 1e-6  # farther from one than this is a mistake, nearer is rounding
_KEEP_BITS = 1e-14  # nearer than this is left as it is, so that copies are equal bit by bit


class Mixture:
    """Weights (F,), factors (I_n, F), the domain that names them, perhaps draws; immutable.

    Examples
    --------
    >>> m = Mixture([0.5, 0.5], [[[1.0, 0.2], [0.0, 0.8]]])
    >>> m.rank, m.domain.names
    (2, ('x0',))
    """

    __slots__ = ("__weakref__", "domain", "draws", "factors", "weights")
    weights: FloatArray
    factors: tuple[FloatArray, ...]
    domain: Domain
    draws: Draws

    def __init__(
        self,
        weights: ArrayLike,
        factors: Sequence[ArrayLike],
        domain: Domain | None = None,
        draws: Sequence[Any] = (),
    ) -> None:
        w = _numbers(weights, "weights", 1)
        matrices = [_numbers(factor, f"factors[{n}]", 2) for n, factor in enumerate(factors)]
        if not matrices:
            raise ValueError("factors is empty: a model has at least one variable.")
        if domain is None:
            domain = Domain.of_shape([len(matrix) for matrix in matrices])
        _check_shapes(w, matrices, domain)
        labels = [f"the factor of {name!r}" for name in domain.names]
        put = object.__setattr__
        put(self, "weights", _on_simplex(w[:, None], "weights")[:, 0])
        put(self, "factors", tuple(map(_on_simplex, matrices, labels)))
        put(self, "domain", domain)
        put(self, "draws", Draws.of(draws, domain))
        for array in (self.weights, *self.factors):
            array.flags.writeable = False

    @property
    def rank(self) -> int:
        """Number of hidden classes, F.

        Examples
        --------
        >>> Mixture([0.5, 0.5], [[[1.0, 0.2], [0.0, 0.8]]]).rank
        2
        """
        return len(self.weights)

    def sorted(self) -> Self:
        """The same model with its classes by falling weight.

        Examples
        --------
        >>> Mixture([0.2, 0.8], [[[1.0, 0.3], [0.0, 0.7]]]).sorted().weights
        array([0.8, 0.2])
        """
        order = np.argsort(-self.weights, kind="stable")
        factors = [a[:, order] for a in self.factors]
        return type(self)(self.weights[order], factors, self.domain, self.draws)

    def equals(self, other: object, tol: float = 1e-9) -> bool:
        """Say whether weights and factors agree up to the order of the classes.

        Draws are not compared. Two models of different rank or different parameters may still
        describe the same joint:
        :func:`rejoint.metrics.tensor_error` tells.

        Parameters
        ----------
        other : object
            Another model; anything else is not equal.
        tol : float
            Largest difference of any weight or any entry of a factor.

        Examples
        --------
        >>> a = Mixture([0.2, 0.8], [[[1.0, 0.3], [0.0, 0.7]]])
        >>> a.equals(a.sorted()), a.equals(Mixture([0.8, 0.2], a.factors))
        (True, False)
        """
        if not isinstance(other, Mixture) or self.domain != other.domain:
            return False
        if self.rank != other.rank:
            return False
        mine, theirs = _columns(self), _columns(other)
        mine, theirs = mine[:, np.lexsort(mine)], theirs[:, np.lexsort(theirs)]
        if bool((np.abs(mine - theirs) <= tol).all()):
            return True
        return tol > 0.0 and _matches(mine, theirs, tol)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mixture):
            return NotImplemented
        return self.equals(other, tol=0.0)

    def __hash__(self) -> int:
        return hash((self.domain.names, np.sort(self.weights).tobytes()))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"{type(self).__name__} is immutable: make a new one to change {name}."
        )

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: {name} cannot be deleted.")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.weights, self.factors, self.domain, self.draws)

    def __repr__(self) -> str:
        count, top = len(self.domain), ", ".join(f"{w:.3g}" for w in np.sort(self.weights)[:-6:-1])
        names = ", ".join(f"{v.name} ({len(v)})" for v in list(self.domain)[:6])
        return (
            f"{type(self).__name__}(rank {self.rank}, {plural(count, 'variable')}: {names}"
            f"{', ...' * (count > 6)}; weights {top}{', ...' * (self.rank > 5)})"
        )


def _numbers(values: ArrayLike, what: str, axes: int) -> FloatArray:
    array = np.array(values, dtype=np.float64, order="C")
    if array.ndim != axes:
        shape = "(rank,)" if axes == 1 else "(levels, rank)"
        raise ValueError(f"{what} must have shape {shape}; got {array.shape}.")
    if not array.size:
        raise ValueError(
            f"{what} is empty (shape {array.shape}): at least one class and one level."
        )
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{what} holds {array[where]} at {where}: all entries must be finite.")
    if array.min() < 0.0:
        where = tuple(int(i) for i in np.unravel_index(array.argmin(), array.shape))
        raise ValueError(f"{what} holds {array[where]:.6g} at {where}: probabilities are >= 0.")
    array += 0.0  # -0.0 becomes 0.0
    return array


def _check_shapes(weights: FloatArray, factors: list[FloatArray], domain: Domain) -> None:
    if len(factors) != len(domain):
        raise ValueError(f"{len(factors)} factors for a domain of {len(domain)} variables.")
    for factor, variable in zip(factors, domain, strict=True):
        wanted = (len(variable), len(weights))
        if factor.shape != wanted:
            raise ValueError(
                f"Factor of {variable.name!r} has shape {factor.shape}; its {wanted[0]} levels and "
                f"the {wanted[1]} weights ask for {wanted}."
            )


def _on_simplex(columns: FloatArray, what: str) -> FloatArray:
    """Columns that sum to one, by division where they are off by rounding."""
    total = columns.sum(axis=0)
    off = np.abs(total - 1.0)
    worst = int(off.argmax())
    if off[worst] > _SUM_TOLERANCE:
        part = "the weights sum" if what == "weights" else f"column {worst} of {what} sums"
        raise ValueError(f"{part} to {total[worst]:.9g}, not to 1: divide by the sum first.")
    return np.ascontiguousarray(np.where(off > _KEEP_BITS, columns / total, columns))


def _columns(model: Mixture) -> FloatArray:
    return np.vstack([model.weights[None, :], *model.factors])


def _matches(a: FloatArray, b: FloatArray, tol: float) -> bool:
    """Say whether the columns can be paired so that none differs by more than `tol`."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    near = np.stack([(np.abs(a[:, [f]] - b) <= tol).all(axis=0) for f in range(a.shape[1])])
    pairs = maximum_bipartite_matching(csr_array(near), perm_type="column")
    return bool((np.asarray(pairs) >= 0).all())


class Answers(Mixture):
    """What can be asked of a model; every question takes evidence by ``given``.

    ``given`` maps a variable to a level, to a list of levels (any of them), or to an array with
    the likelihood of each level (soft evidence: only the ratios matter). A variable may be both
    asked and given.

    Examples
    --------
    >>> import rejoint as rj
    >>> p = rj.datasets.asia()
    >>> p.marginal("smoke", given={"lung": "yes"}).round(3)
    array([0.909, 0.091])
    """

    __slots__ = ()

    def marginal(self, names: str | Sequence[str], given: Given = None) -> FloatArray:
        """Joint table of some variables, given evidence.

        Parameters
        ----------
        names : str or sequence of str
            The variables; they become the axes, in this order.
        given : mapping, optional
            Evidence by variable: a level, a list of levels, or an array of likelihoods.

        Returns
        -------
        ndarray
            Sums to one; axes and levels as in ``domain``.

        Raises
        ------
        ZeroEvidenceError
            If the evidence has probability zero.
        ValueError
            If the table would be too large, or a name or level is unknown.

        Examples
        --------
        >>> import rejoint as rj
        >>> p = rj.datasets.asia()
        >>> p.marginal(["smoke", "lung"]).round(4)
        array([[0.05 , 0.45 ],
               [0.005, 0.495]])
        >>> p.marginal("dysp", given={"smoke": "yes", "xray": ["yes", "no"]}).round(4)
        array([0.5528, 0.4472])
        """
        asked = positions(self.domain, names)
        shares, factors = posterior(self, given, asked)
        return queries.joint_table(shares, [factors[n] for n in asked])

    def interval(
        self, names: str | Sequence[str], given: Given = None, level: float = 0.9
    ) -> tuple[FloatArray, FloatArray]:
        """Equal-tailed credible bounds of a (conditional) table, cell by cell.

        Parameters
        ----------
        names, given
            As in :meth:`marginal`.
        level : float
            Probability that a pair of bounds is to hold.

        Returns
        -------
        low, high : ndarray
            Of the table's shape.

        Raises
        ------
        ValueError
            If the model carries no posterior draws.

        Examples
        --------
        >>> import rejoint as rj
        >>> data = rj.datasets.asia().sample(500, random_state=0)
        >>> p = rj.estimate(data, rank=2, solver="bayes", random_state=0).pmf
        >>> low, high = p.interval("lung", given={"smoke": "yes"})
        >>> bool((low < high).all())
        True
        """
        if not self.draws:
            raise ValueError(
                "This model carries no posterior draws, so that there are no bounds: fit by "
                'solver="bayes".'
            )
        tables = []
        for draw in self.draws:
            with suppress(queries.ZeroEvidenceError):
                tables.append(draw.marginal(names, given))
        shape = tuple(len(self.domain[n]) for n in positions(self.domain, names))
        return credible_bounds(np.reshape(tables, (len(tables), *shape)), level)

    def prob(self, event: Mapping[str, Any], given: Given = None) -> float:
        """Probability that all of some variables take the levels named.

        Parameters
        ----------
        event : mapping
            Level, or list of levels (any of them), by variable.
        given : mapping, optional
            Evidence; a variable may be in both.

        Returns
        -------
        float

        Examples
        --------
        >>> import rejoint as rj
        >>> p = rj.datasets.asia()
        >>> round(p.prob({"tub": "yes"}, given={"xray": "yes", "asia": "yes"}), 4)
        0.3377
        >>> round(p.prob({"smoke": "no", "lung": ["yes", "no"]}), 4)
        0.5
        """
        for name, value in event.items():
            if isinstance(value, np.ndarray) and value.dtype.kind == "f":
                raise ValueError(
                    f"prob: the event on {name!r} is an array of likelihoods, which is evidence: "
                    "give it by given=, or name a level or a list of levels."
                )
        wanted = likelihoods(self.domain, event)
        shares, factors = posterior(self, given, wanted)
        terms = shares
        for n, levels in wanted.items():
            terms = terms * (levels @ factors[n])
        return min(float(terms.sum()), 1.0)  # not above one by rounding

    @overload
    def expect(  # type: ignore[overload-overlap]  # a str is a sequence of str, too
        self, names: str, given: Given = ..., *, function: Callable[[Any], float] | None = ...
    ) -> float: ...
    @overload
    def expect(
        self,
        names: Sequence[str],
        given: Given = ...,
        *,
        function: Callable[[Any], float] | None = ...,
    ) -> dict[str, float]: ...
    def expect(
        self,
        names: str | Sequence[str],
        given: Given = None,
        *,
        function: Callable[[Any], float] | None = None,
    ) -> float | dict[str, float]:
        """Expectation of numeric variables, or of a function of their levels.

        Parameters
        ----------
        names : str or sequence of str
            One name gives a number, several a dict.
        given : mapping, optional
            Evidence.
        function : callable, optional
            From a level to a number; without it levels must be numbers (a bin counts by its
            representative value).

        Returns
        -------
        float or dict of str to float

        Examples
        --------
        >>> import rejoint as rj
        >>> domain = rj.Domain.of({"rating": [1, 2, 3], "seen": ["yes", "no"]})
        >>> p = rj.LowRankPMF([1.0], [[[0.2], [0.3], [0.5]], [[0.5], [0.5]]], domain)
        >>> round(p.expect("rating"), 12)
        2.3
        >>> p.expect(["seen"], function=lambda level: level == "yes")
        {'seen': 0.5}
        """
        asked = positions(self.domain, names)
        shares, factors = posterior(self, given, asked)
        result = {}
        for n in asked:
            variable = self.domain[n]
            values = _level_values(variable, function)
            result[variable.name] = float(values @ (factors[n] @ shares))
        return next(iter(result.values())) if isinstance(names, str) else result

    def mode(
        self,
        names: str | Sequence[str] | None = None,
        given: Given = None,
        *,
        each: bool = False,
        max_nodes: int = 1_000_000,
    ) -> Mode:
        """Most probable combination of levels of some variables together, given evidence.

        This is not the same as the most probable level of each variable by itself, which is
        what ``each=True`` gives: the single modes together may be improbable, even impossible.

        Found by branch and bound: proved to be the best, or, where the search ended at
        `max_nodes`, the best found, with a bound on how much better another could be and a
        remark. Combinations within a relative 1e-12 of the best count as equally good.

        Parameters
        ----------
        names : str or sequence of str, optional
            The variables; by default all that are not given.
        given : mapping, optional
            Evidence.
        each : bool
            Take each variable by itself.
        max_nodes : int
            Where the search ends; a million takes a second or two.

        Returns
        -------
        Mode
            A mapping from names to levels, with ``prob``, ``log_prob``, ``exact``, ``bound``.

        Examples
        --------
        >>> import numpy as np, rejoint as rj
        >>> table = np.array([[0.0, 0.3, 0.3], [0.4, 0.0, 0.0]])
        >>> p = rj.LowRankPMF.from_dense(table, rj.Domain.of({"a": ["x", "y"], "b": [1, 2, 3]}))
        >>> p.mode(["a", "b"])
        Mode(a='y', b=1; probability 0.4)
        >>> p.mode(["a", "b"], each=True)
        Mode(a='x', b=1; probability 0; not the joint mode for certain: some may have up to 0.4)
        """
        if names is None:
            told = set(likelihoods(self.domain, given))
            asked = tuple(n for n in range(len(self.domain)) if n not in told)
        else:
            asked = positions(self.domain, names)
        if not asked:
            raise ValueError("mode: no variable is asked for; name those that are.")
        shares, factors = posterior(self, given, asked)
        chosen = [factors[n] for n in asked]
        found = (single_modes if each else most_probable)(shares, chosen, max_nodes)
        mode = Mode.of([self.domain[n] for n in asked], found)
        if not found.exact and not each:
            remark(
                f"mode: after {found.nodes:,} nodes the best combination of {len(asked)} variables "
                f"has probability {mode.prob:.3g}, and some other may have up to {mode.bound:.3g}. "
                "Ask for fewer variables or raise max_nodes to be certain."
            )
        return mode

    def table(
        self,
        names: str | Sequence[str],
        given: Given = None,
        *,
        backend: Backend | None = None,
    ) -> Any:
        """Joint table of some variables with labels, as a frame.

        Parameters
        ----------
        names, given
            As in :meth:`marginal`.
        backend : {"pandas", "polars", "pyarrow"}, optional
            By default the first of them that is installed.

        Returns
        -------
        frame
            pandas: a Series for one variable; else a DataFrame with the last variable across
            and the others down. polars, pyarrow: a column per variable and one called ``prob``,
            a row per cell. Bins are written as text.

        Examples
        --------
        >>> import rejoint as rj
        >>> rj.datasets.asia().table(["smoke", "lung"], backend="pandas").round(3)
        lung     yes     no
        smoke
        yes    0.050  0.450
        no     0.005  0.495
        """
        variables = [self.domain[n] for n in positions(self.domain, names)]
        if not variables:
            raise ValueError("table: no variable is asked for; name one at least.")
        return labelled(self.marginal(names, given), variables, backend)


def _level_values(variable: Variable, function: Callable[[Any], float] | None) -> FloatArray:
    if function is None:
        return variable.numeric
    return np.array([float(function(level)) for level in variable.levels])


class RecordAnswers(Mixture):
    """What a model says about records, row by row, and the records it makes up.

    Examples
    --------
    >>> import rejoint as rj
    >>> p = rj.datasets.asia()
    >>> p.log_prob(p.sample(3, random_state=0)).shape
    (3,)
    """

    __slots__ = ()

    def log_prob(self, data: Any) -> FloatArray:
        """Logarithm of the probability of each record; missing cells are summed out.

        Parameters
        ----------
        data : Records, SparseRecords, or anything that ``Records.of`` takes
            Read with the model's domain; variables that it lacks are missing.

        Returns
        -------
        ndarray (M,)
            -inf for records that are impossible under the model.

        Examples
        --------
        >>> import numpy as np, rejoint as rj
        >>> p = rj.datasets.asia()
        >>> np.exp(p.log_prob([{"asia": "yes", "tub": "yes"}, {"asia": None, "tub": "yes"}]))
        array([0.0005, 0.0104])
        """
        return queries.record_log_prob(self.weights, self.factors, self._codes(data))

    def classes(self, data: Any) -> FloatArray:
        """Posterior of the hidden class of each record; missing cells are summed out.

        A record of probability zero (factors may hold zeros) gets the limit of a vanishing
        floor: the classes that contradict it least, with a remark that says how many.

        Parameters
        ----------
        data : Records, SparseRecords, or anything that ``Records.of`` takes
            Read with the model's domain; variables that it lacks are missing.

        Returns
        -------
        ndarray (M, F)
            Rows sum to one.

        Examples
        --------
        >>> import rejoint as rj
        >>> domain = rj.Domain.of({"a": ["x", "y"]})
        >>> p = rj.LowRankPMF([0.5, 0.5], [[[0.9, 0.1], [0.1, 0.9]]], domain)
        >>> p.classes([{"a": "x"}, {"a": None}])
        array([[0.9, 0.1],
               [0.5, 0.5]])
        """
        codes = self._codes(data)
        out = np.empty((len(codes), self.rank))
        impossible: list[int] = []
        for rows, logs, out[rows] in queries.posteriors(self.weights, self.factors, codes):
            impossible += (np.flatnonzero(np.isneginf(logs)) + rows.start).tolist()
        if impossible:
            remark(
                f"{len(impossible):,} of {len(codes):,} records have probability zero under this "
                f"model (first: row {impossible[0]}); they got the classes that contradict them "
                "least."
            )
        return out

    def sample(
        self,
        n: int,
        given: Given = None,
        random_state: int | np.random.Generator | None = None,
    ) -> Records:
        """Draw records, exactly, given evidence.

        Parameters
        ----------
        n : int
            How many.
        given : mapping, optional
            Evidence. Given variables are part of the records: at their level, or at a level
            drawn from the list or from the soft evidence.
        random_state : int, Generator or None
            Seed, or source, of the randomness.

        Returns
        -------
        Records

        Examples
        --------
        >>> import rejoint as rj
        >>> records = rj.datasets.asia().sample(1000, given={"lung": "yes"}, random_state=0)
        >>> len(records), records.marginal(["lung"])
        (1000, array([1., 0.]))
        """
        if n < 0:
            raise ValueError(f"sample: the number of records must not be negative; got {n}.")
        shares, factors = posterior(self, given)
        wide = max(self.domain.shape) > np.iinfo(np.int16).max
        rng = np.random.default_rng(random_state)
        codes = draw_codes(shares, factors, n, rng, np.int32 if wide else np.int16)
        codes.flags.writeable = False  # Records copies what others could still change
        return Records(self.domain, codes)

    def _codes(self, data: Any) -> NDArray[np.signedinteger[Any]] | SparseCodes:
        return read_any(data, domain=self.domain).codes
