"""LowRankPMF, the joint distribution of many discrete variables."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rejoint.domain.domain import Domain, level_order, positions
from rejoint.io.model_file import MOST_FACTORS, SavedBlock, SavedModel, write_model
from rejoint.language.query import Query
from rejoint.marginals.marginals import Marginals
from rejoint.messages import remark
from rejoint.model import Model
from rejoint.pmf.answer import Answer
from rejoint.pmf.ask import RandomState, ask
from rejoint.pmf.counts import Counts
from rejoint.pmf.draws import Draws, Interval, check_block
from rejoint.pmf.from_dense import naive_bayes
from rejoint.pmf.given_tables import GivenTables
from rejoint.pmf.table_gap import TableGap, read_gaps
from rejoint.pmf.to_frame import Mode, label_table
from rejoint.queries.distances import is_same_up_to_order
from rejoint.queries.evidence import Given, read_evidence
from rejoint.queries.log_prob import posteriors, record_log_prob
from rejoint.queries.mixture import (
    Block,
    BlockLayout,
    Mixture,
    check_blocks,
    draw_records,
    find_mode,
    have_same_layouts,
    join_blocks,
    split_tables,
)
from rejoint.records.frames import Backend
from rejoint.records.records import Records
from rejoint.records.sparse import as_records
from rejoint.text import cite, format_number, plural, show

if TYPE_CHECKING:
    from rejoint.factorization.reduce import Reduction
    from rejoint.identifiability.ambiguity import Ambiguity

FloatArray = NDArray[np.float64]

_SUM_TOLERANCE = 1e-6  # farther from one than this is a mistake, nearer is rounding
_PARTS = (
    *("weights", "factors", "domain", "draws", "_mixture", "gaps", "tables", "counts", "_blocks"),
)
_KEEP_BITS = 1e-14  # nearer than this is left as it is, so that copies are equal bit by bit


class LowRankPMF:
    """Joint probability ``P(x_1..x_N) = sum_f weights[f] * prod_n factors[n][x_n, f]``.

    A low-rank nonnegative tensor, a latent class model and a naive Bayes model with a hidden class
    are three names of this model. The object is immutable; its arrays are read-only.

    A model that carries posterior draws has two parts. Every question is answered by the posterior
    mean, ``mixture``. ``weights``, ``factors``, ``rank`` and :meth:`classes` are those of one
    ``representative`` model of the rank asked for, whose classes can be looked at. Without draws
    both are the model itself.

    Every question takes evidence by ``given``, which maps a variable to a level, to a list of
    levels (any of them), or to an array with the likelihood of each level (soft evidence: only
    ratios matter). A variable may be both asked for and given.

    Parameters
    ----------
    weights : array_like (F,)
        Probability of each hidden class; sums to one.
    factors : sequence of array_like (I_n, F)
        One per variable; column f holds the probabilities of its levels in class f.
    domain : Domain, optional
        Names and levels; by default ``x0, x1, ...`` with levels ``0, 1, ...``.
    draws : sequence of LowRankPMF, optional
        Posterior draws, for credible intervals.
    mixture : LowRankPMF, optional
        The posterior mean, which answers; by default the mean of the draws, its classes merged to
        three times the rank.
    gaps : iterable of TableGap, optional
        Tables in which records differ from the model.
    tables : GivenTables, optional
        The tables that it was fitted to; :meth:`with_tables` adds them.
    counts : Counts, optional
        What stands beside its answers; :meth:`with_counts` adds it.
    blocks : sequence of Block, optional
        Variables that are tabulated jointly within each class; their factors are the margins.

    Attributes
    ----------
    weights : ndarray (F,)
        Of the representative model.
    factors : tuple of ndarray (I_n, F)
        Of the representative model.
    domain : Domain
    draws : sequence of LowRankPMF
        Empty where the model has none. Fits by Bayes carry at most 40, in single precision.
    gaps : tuple of TableGap
        Tables in which the records of the fit differ from the model beyond chance, worst first.
        Answers that concern them say so.
    tables : GivenTables or None
        The tables that it was fitted to: they give the basis of each answer. None for a model
        from records.
    counts : Counts or None
        Records of a fit, or their small tables: :meth:`ask` (and nothing else) then answers by the
        best of count and model. Of files of fits; None for models made from this one.

    Examples
    --------
    >>> import rejoint as rj
    >>> domain = rj.Domain.of({"smoke": ["yes", "no"], "cough": ["yes", "no"]})
    >>> p = rj.LowRankPMF([0.3, 0.7], [[[0.9, 0.2], [0.1, 0.8]], [[0.7, 0.1], [0.3, 0.9]]], domain)
    >>> p
    LowRankPMF(rank 2, 2 variables: smoke (2), cough (2); weights 0.7, 0.3)
    >>> round(p.prob({"smoke": "yes"}, given={"cough": "yes"}), 3)
    0.725
    """

    __slots__ = (
        *("__weakref__", "_blocks", "_mixture", "counts", "domain", "draws", "factors", "gaps"),
        *("tables", "weights"),
    )
    weights: FloatArray
    factors: tuple[FloatArray, ...]
    domain: Domain
    draws: Draws
    gaps: tuple[TableGap, ...]
    tables: GivenTables | None
    counts: Counts | None
    _mixture: "LowRankPMF | None"
    _blocks: tuple[Block, ...]

    def __init__(
        self,
        weights: ArrayLike,
        factors: Sequence[ArrayLike],
        domain: Domain | None = None,
        draws: Sequence[Any] = (),
        mixture: "LowRankPMF | None" = None,
        gaps: Iterable[TableGap] = (),
        tables: GivenTables | None = None,
        counts: Counts | None = None,
        blocks: Iterable[Block] = (),
    ) -> None:
        w = _check_numbers(weights, "weights", 1)
        matrices = [_check_numbers(factor, f"factors[{n}]", 2) for n, factor in enumerate(factors)]
        if not matrices:
            raise ValueError("factors is empty: a model has at least one variable.")
        if domain is None:
            domain = Domain.of_shape([len(matrix) for matrix in matrices])
        _check_shapes(w, matrices, domain)
        labels = [f"the factor of {cite(name)}" for name in domain.names]
        self._set(
            weights=_normalize(w[:, None], "weights")[:, 0],
            factors=map(_normalize, matrices, labels),
            domain=domain,
            draws=Draws.of(draws, domain, type(self)),
            _mixture=None if mixture is None else mixture.mixture.align(domain),
            gaps=tuple(gaps),
            tables=tables,
            counts=counts,
            _blocks=check_blocks(blocks, matrices),
        )
        if self.draws and mixture is None:
            object.__setattr__(self, "_mixture", self.draws.mean(self.representative))

    @classmethod
    def _trusted(
        cls, weights: FloatArray, factors: Iterable[FloatArray], domain: Domain, **parts: Any
    ) -> Self:
        """Make a model of arrays that the package computed: they are neither checked nor copied."""
        self = object.__new__(cls)
        empty = (Draws.of((), domain, cls), None, (), None, None, ())
        others = dict(zip(_PARTS[3:], empty, strict=True)) | parts
        self._set(weights=weights, factors=factors, domain=domain, **others)
        return self

    @classmethod
    def _of_mixture(cls, mixture: Mixture, domain: Domain, **parts: Any) -> Self:
        """Make a model of a mixture of all variables of a domain, in their order."""
        factors = [mixture.factors[n] for n in range(len(domain))]
        return cls._trusted(mixture.weights, factors, domain, _blocks=mixture.blocks, **parts)

    def _set(self, **parts: Any) -> None:
        """Set all attributes; arrays become read-only."""
        arrays = [np.ascontiguousarray(x) for x in (parts["weights"], *parts["factors"])]
        for array in arrays:
            array.flags.writeable = False
        parts["weights"], parts["factors"] = arrays[0], tuple(arrays[1:])
        for name in _PARTS:
            object.__setattr__(self, name, parts[name])

    def _with(self, **changes: Any) -> Self:
        """Return a copy with some of its parts changed."""
        return self._trusted(**{name: getattr(self, name) for name in _PARTS} | changes)

    @property
    def _parts(self) -> Mixture:
        """Weights, factors and blocks of the representative model."""
        return Mixture(self.weights, dict(enumerate(self.factors)), self._blocks)

    @property
    def mixture(self) -> "LowRankPMF":
        """The model that answers every question: the posterior mean, or the model itself.

        The posterior mean is a mixture of the classes of many models, merged to two to four
        times the rank. It is nearer to the truth than any one of them; its classes have no meaning.

        Examples
        --------
        >>> import rejoint as rj
        >>> data = rj.datasets.asia().sample(500, random_state=0)
        >>> p = rj.estimate(data, rank=2, solver="bayes", random_state=0).pmf
        >>> p.rank, p.mixture.rank
        (2, 4)
        >>> bool((p.marginal("lung") == p.mixture.marginal("lung")).all())
        True
        """
        return self if self._mixture is None else self._mixture

    @property
    def representative(self) -> "LowRankPMF":
        """The model of ``weights`` and ``factors`` alone, without posterior draws and mean.

        It is one model of the rank asked for: the most probable one of a fit by Bayes. Its classes
        can be looked at and named; log-likelihood, AIC, BIC and certificates of identifiability
        are of this model.

        Examples
        --------
        >>> p = LowRankPMF([0.5, 0.5], [[[1.0, 0.2], [0.0, 0.8]]])
        >>> p.representative is p
        True
        """
        if self._mixture is None and not self.draws:
            return self
        return type(self)._trusted(self.weights, self.factors, self.domain, _blocks=self._blocks)

    @property
    def blocks(self) -> tuple[tuple[str, ...], ...]:
        """Names of the variables of each block of the model that answers.

        Variables of a block are tabulated jointly within each class: they depend on each other
        beyond the classes. All others are independent within a class.

        Examples
        --------
        >>> import rejoint as rj
        >>> rng = np.random.default_rng(0)
        >>> a = rng.integers(0, 4, 2000)
        >>> data = {"a": a, "copy": a % 2, "other": rng.integers(0, 3, 2000)}
        >>> rj.estimate(rj.Records.of(data), blocks=[["a", "copy"]], random_state=0).pmf.blocks
        (('a', 'copy'),)
        """
        names, blocks = self.domain.names, self.mixture._blocks
        return tuple(tuple(names[n] for n in block.members) for block in blocks)

    @property
    def rank(self) -> int:
        """Number of hidden classes, F, of the representative model.

        Examples
        --------
        >>> LowRankPMF([0.5, 0.5], [[[1.0, 0.2], [0.0, 0.8]]]).rank
        2
        """
        return len(self.weights)

    def _given(self, given: Given, asked: Collection[int] | None = None) -> Mixture:
        """What answers, given evidence; factors of `asked` alone are updated."""
        likelihoods, parts = read_evidence(self.domain, given), self.mixture._parts
        if not likelihoods:
            return parts

        def describe(n: int) -> str:
            pairs = (given or {}).items()
            name, value = next(pair for pair in pairs if self.domain.index(pair[0]) == n)
            return f"{name} = {show([value])}"

        return parts.given_possible(likelihoods, describe, asked)[0]

    # Questions by name and level

    def marginal(self, names: str | Sequence[str], given: Given = None) -> FloatArray:
        """Return the joint table of some variables, given evidence.

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
        return self._given(given, asked).tabulate(asked)

    def interval(
        self, names: str | Sequence[str], given: Given = None, level: float = 0.9
    ) -> Interval:
        """Return equal-tailed credible bounds of a (conditional) table, cell by cell.

        Parameters
        ----------
        names, given
            As in :meth:`marginal`.
        level : float
            Posterior probability between each pair of bounds.

        Returns
        -------
        Interval
            The pair ``low, high``, in the shape of the table, which lies between them; its
            ``draws`` is the number of draws behind it, ``effective`` how many they are worth. Draws
            count in proportion to the probability that they give to the evidence; those that
            exclude it are left out.

        Raises
        ------
        ValueError
            If the model carries no posterior draws.
        ZeroEvidenceError
            If the evidence has probability zero under every draw.

        Examples
        --------
        >>> import rejoint as rj
        >>> data = rj.datasets.asia().sample(500, random_state=0)
        >>> p = rj.estimate(data, rank=2, solver="bayes", random_state=0).pmf
        >>> low, high = p.interval("lung", given={"smoke": "yes"})
        >>> bool((low < high).all())
        True
        """
        answer = self.marginal(names, given) if self.draws else None
        return self.draws.interval(names, given, level, answer)

    def prob(self, event: Mapping[str, Any], given: Given = None) -> float:
        """Return the probability that some variables take the levels named.

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
        if not isinstance(event, Mapping):
            raise TypeError(
                "prob needs an event, a dict such as "
                f"{{{cite(self.domain.names[0])}: {cite(self.domain[0].levels[0])}}}; got "
                f"{type(event).__name__}."
            )
        for name, value in event.items():
            if isinstance(value, np.ndarray) and value.dtype.kind == "f":
                raise ValueError(
                    f"prob: the event on {cite(name)} is an array of likelihoods, which is "
                    "evidence: pass it as given=, or name a level or a list of levels."
                )
        wanted = read_evidence(self.domain, event)
        return min(float(self._given(given, wanted).prob(wanted)), 1.0)  # not above by rounding

    def expect(
        self,
        names: str | Sequence[str],
        given: Given = None,
        *,
        function: Callable[[Any], float] | None = None,
    ) -> Any:
        """Return the expectation of numeric variables, or of a function of their levels.

        Parameters
        ----------
        names : str or sequence of str
            One name gives a number, several a dict.
        given : mapping, optional
            Evidence.
        function : callable, optional
            From a level to a number; without it levels must be numbers (a bin stands for its
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
        mixture = self._given(given, asked)
        result = {}
        for n in asked:
            variable = self.domain[n]
            own = mixture.factors[n] @ mixture.weights
            if function is None:
                result[variable.name] = variable.mean(own)
                continue
            values = np.array([float(function(level)) for level in variable.levels])
            result[variable.name] = float(values @ own)
        return next(iter(result.values())) if isinstance(names, str) else result

    def quantile(self, name: str, q: Any = 0.5, given: Given = None) -> Any:
        """Return a quantile of a variable of numbers, the median by default.

        Parameters
        ----------
        name : str
            The variable; its levels must be numbers or bins, of which the values within count.
        q : float or array of float
            Probability of the value or a smaller one. An array gives an array.
        given : mapping, optional
            Evidence.

        Examples
        --------
        >>> import rejoint as rj
        >>> domain = rj.Domain.of({"rating": [1, 2, 3], "seen": ["yes", "no"]})
        >>> p = rj.LowRankPMF([1.0], [[[0.2], [0.3], [0.5]], [[0.5], [0.5]]], domain)
        >>> p.quantile("rating"), p.quantile("rating", 0.6, given={"seen": "yes"})
        (2.0, 3.0)
        >>> p.quantile("rating", [0.1, 0.9])
        array([1., 3.])
        """
        return self.domain[name].quantile(self.marginal(name, given), q)

    def mode(
        self,
        names: str | Sequence[str] | None = None,
        given: Given = None,
        *,
        each: bool = False,
        max_nodes: int = 1_000_000,
    ) -> Mode:
        """Return the most probable combination of levels of some variables, given evidence.

        It is not the most probable level of each variable by itself, which ``each=True`` gives:
        the single modes together may be improbable, even impossible.

        Branch and bound proves that the combination is the best. A search that ends at `max_nodes`
        returns the best found, with a bound on the probability of any other and a remark.
        Combinations within a relative 1e-12 of the best count as equally good.

        Parameters
        ----------
        names : str or sequence of str, optional
            The variables; by default all that are not given.
        given : mapping, optional
            Evidence.
        each : bool
            Take each variable by itself.
        max_nodes : int
            Number of nodes at which the search ends; a million takes a second or two.

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
            known = read_evidence(self.domain, given)
            asked = tuple(n for n in range(len(self.domain)) if n not in known)
        else:
            asked = positions(self.domain, names)
        if not asked:
            raise ValueError("mode: no variable is named; name at least one.")
        found = find_mode(self._given(given, asked), asked, each, max_nodes)
        mode = Mode.of([self.domain[n] for n in asked], found)
        if not found.exact and not each:
            remark(
                f"mode: after {plural(found.nodes, 'node')} the best combination of "
                f"{plural(len(asked), 'variable')} has probability {format_number(mode.prob)}, and "
                f"some other may have up to {format_number(mode.bound)}. "
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
        """Return the joint table of some variables as a frame with labels.

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
            raise ValueError("table: no variable is named; name at least one.")
        return label_table(self.marginal(names, given), variables, backend)

    def ask(
        self,
        text: str | Query,
        *,
        bits: bool = False,
        level: float | None = 0.9,
        random_state: RandomState = None,
    ) -> Answer:
        """Answer a question written in the query language.

        A model with ``counts`` of records, as :func:`rejoint.load` returns that of a fit, answers P
        and E by the best of count and model; see :meth:`FitResult.ask`.

        Parameters
        ----------
        text : str
            ``P(a, b | c = x)``, ``P(a = x, b in {y, z} | ...)``, ``E(a | ...)``,
            ``argmax a, b | ...``, ``sample 10 | ...``, ``H(a | b)``, ``MI(a; b | ...)``. A
            variable without a value right of the bar gives one distribution for each of its
            levels.
        bits : bool
            Return entropies and information in bits; in nats by default.
        level : float or None
            Level of the credible interval, which answers have where the model carries posterior
            draws.
        random_state : int, Generator or None
            Seed, or source, of the randomness.

        Returns
        -------
        Answer

        Raises
        ------
        QueryError
            If the text is not a question, or names what the model does not have; it shows where.
        ZeroEvidenceError
            If the evidence has probability zero.

        Examples
        --------
        >>> import rejoint as rj
        >>> p = rj.datasets.asia()
        >>> print(p.ask("P(lung = yes | smoke = yes, xray = yes)"))
        P(lung = yes | smoke = yes, xray = yes) = 0.646
        The evidence has probability 0.07585.
        >>> print(p.ask("argmax bronc, xray | dysp = yes"))
        argmax bronc, xray | dysp = yes
        variable  level
        bronc     yes
        xray      no
        Probability 0.7234.
        The evidence has probability 0.436.
        >>> print(p.ask("MI(smoke; bronc)", bits=True))
        MI(smoke; bronc) = 0.06665 bits
        """
        return ask(self, text, bits, level, random_state)

    def sample(
        self,
        n: int,
        given: Given = None,
        random_state: RandomState = None,
    ) -> Records:
        """Draw records from the model, given evidence.

        Parameters
        ----------
        n : int
            Number of records.
        given : mapping, optional
            Evidence. The records contain the given variables: at their level, or at a level
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
        codes = draw_records(self._given(given), n, np.random.default_rng(random_state))
        codes.flags.writeable = False  # Records copies arrays that are writeable
        return Records(self.domain, codes)

    # Questions about records

    def log_prob(self, data: Any) -> FloatArray:
        """Return the log probability of each record; missing values are summed out.

        Parameters
        ----------
        data : Records, SparseRecords, or anything that ``Records.of`` takes
            Read with the model's domain; variables that the data lack are missing.

        Returns
        -------
        ndarray (M,)
            -inf for records of probability zero under the model.

        Examples
        --------
        >>> import numpy as np, rejoint as rj
        >>> p = rj.datasets.asia()
        >>> np.exp(p.log_prob([{"asia": "yes", "tub": "yes"}, {"asia": None, "tub": "yes"}]))
        array([0.0005, 0.0104])
        """
        mixture = self.mixture._parts
        factors, codes = mixture.of_records(as_records(data, domain=self.domain).codes)
        return record_log_prob(mixture.weights, factors, codes)

    def classes(self, data: Any) -> FloatArray:
        """Return the posterior of the hidden class of each record; missing values are summed out.

        The classes are those of the representative model: class 1 of reports is column 0 here.

        A record of probability zero (factors may contain zeros) gets the limit of a vanishing
        floor, the classes that contradict it least; a remark gives the number of such records.

        Parameters
        ----------
        data : Records, SparseRecords, or anything that ``Records.of`` takes
            Read with the model's domain; variables that the data lack are missing.

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
        factors, codes = self._parts.of_records(as_records(data, domain=self.domain).codes)
        out = np.empty((len(codes), self.rank))
        impossible: list[int] = []
        for rows, logs, out[rows] in posteriors(self.weights, factors, codes):
            impossible += (np.flatnonzero(np.isneginf(logs)) + rows.start).tolist()
        if impossible:
            remark(
                f"{len(impossible):,} of {plural(len(codes), 'record')} have probability zero "
                f"under this model (first: row {impossible[0]}); they got the classes that "
                "contradict them least."
            )
        return out

    # Other models made from this one

    def project(self, names: str | Sequence[str]) -> Self:
        """Return the model of some variables, in the order asked; the others are summed out.

        Examples
        --------
        >>> import rejoint as rj
        >>> rj.datasets.asia().project(["smoke", "lung"]).domain.names
        ('smoke', 'lung')
        """
        chosen = positions(self.domain, names)
        domain = Domain(tuple(self.domain[n] for n in chosen))
        left_out = set(self.domain.names) - set(domain.names)
        gaps = tuple(gap for gap in self.gaps if left_out.isdisjoint(gap.names))
        orders = {n: np.arange(len(self.domain[n])) for n in chosen}
        return self._take(domain, orders)._with(gaps=gaps, tables=self.tables)

    def condition(self, given: Given) -> Self:
        """Return the model of the variables that are not given, given the others.

        Classes that the evidence excludes are dropped, and so are posterior draws under which the
        evidence has probability zero; the weights of the others are multiplied by it. Where the
        representative model excludes the evidence but the posterior mean does not, the posterior
        mean takes its place.

        Examples
        --------
        >>> import rejoint as rj
        >>> p = rj.datasets.asia().condition({"lung": "yes", "tub": ["yes", "no"]})
        >>> p.rank, p.marginal("smoke").round(3)
        (4, array([0.909, 0.091]))
        """
        known = read_evidence(self.domain, given)
        rest = [n for n in range(len(self.domain)) if n not in known]
        if not rest:
            raise ValueError("condition: every variable is given, so none remains.")
        answer = self._rest(self._given(given, rest), rest)
        tables = None if self.tables is None else self.tables.given(self.domain, known)
        answer = answer._with(gaps=self.gaps, tables=tables)
        if self._mixture is None and not self.draws:
            return answer
        draws = self.draws.condition(given) if self.draws else answer.draws
        own = self._parts.given(known, rest)
        kept = self._rest(own, rest) if own.weights.any() else answer
        parts = {"draws": draws, "_mixture": answer, "gaps": self.gaps, "tables": tables}
        return kept._with(**parts)

    def _rest(self, mixture: Mixture, rest: Sequence[int]) -> Self:
        """The model of some variables of a mixture, without classes of no weight."""
        domain = Domain(tuple(self.domain[n] for n in rest))
        return self._of_mixture(mixture.take(mixture.weights > 0.0).select(rest), domain)

    def _take(self, domain: Domain, orders: Mapping[int, NDArray[np.intp]]) -> Self:
        """The model of some variables, their levels in some order."""
        mixture = None if self._mixture is None else self._mixture._take(domain, orders)
        parts = {"draws": self.draws.take(domain, orders), "_mixture": mixture}
        return self._of_mixture(self._parts.reorder(orders), domain, **parts)

    def align(self, domain: Domain) -> Self:
        """Return the model with variables and levels in the order of another domain.

        Examples
        --------
        >>> import rejoint as rj
        >>> p = rj.LowRankPMF([1.0], [[[0.3], [0.7]]], rj.Domain.of({"a": ["x", "y"]}))
        >>> p.align(rj.Domain.of({"a": ["y", "x"]})).marginal("a")
        array([0.7, 0.3])
        """
        if domain == self.domain:
            return self
        levels = level_order(self.domain, domain)  # raises an error where the domains differ
        orders = dict(zip(self.domain.indices(domain.names), levels, strict=True))
        return self._take(domain, orders)._with(gaps=self.gaps, tables=self.tables)

    def with_tables(
        self, tables: "Marginals | GivenTables | None", identified: str | None = None
    ) -> Self:
        """Return the model with the tables that it was fitted to; answers then state their basis.

        Parameters
        ----------
        tables : Marginals, GivenTables or None
            They must have all variables of the model, with the same levels. None takes them away.
        identified : str, optional
            The certificate, in one sentence, where the model is the only one of its rank that
            meets the tables.

        Examples
        --------
        >>> import rejoint as rj
        >>> p = rj.LowRankPMF([1.0], [[[0.3], [0.7]], [[0.5], [0.5]]])
        >>> q = p.with_tables(rj.Marginals.from_tables({"x0": [3, 7], "x1": [5, 5]}))
        >>> q.tables.holds(["x0"]), q.tables.holds(["x0", "x1"])
        (True, False)
        """
        if isinstance(tables, Marginals):
            tables = GivenTables.of(tables, identified)
        if tables is not None:
            level_order(self.domain, tables.domain.project(self.domain.names))
        return self._with(tables=tables)

    def with_counts(self, counts: Counts | None) -> Self:
        """Return the model with counts of records, which :meth:`ask` then takes into account.

        Parameters
        ----------
        counts : Counts or None
            ``result.counts`` of a fit. None takes them away: the joint then answers alone.

        Examples
        --------
        >>> import rejoint as rj
        >>> records = rj.datasets.asia().sample(2000, random_state=0)
        >>> result = rj.estimate(records, rank=2, solver="ml", random_state=0)
        >>> p = result.pmf.with_counts(result.counts)
        >>> float(p.ask("P(smoke)").records), p.with_counts(None).ask("P(smoke)").records
        (2000.0, None)
        """
        return self._with(counts=counts)

    def sorted(self) -> Self:
        """Return the model with its classes in order of decreasing weight.

        Examples
        --------
        >>> LowRankPMF([0.2, 0.8], [[[1.0, 0.3], [0.0, 0.7]]]).sorted().weights
        array([0.8, 0.2])
        """
        order = np.argsort(-self.weights, kind="stable")
        own = self._parts.take(order)
        factors = tuple(own.factors.values())
        return self._with(weights=own.weights, factors=factors, _blocks=own.blocks)

    @classmethod
    def average(cls, pmfs: Iterable[Self], weights: ArrayLike | None = None) -> Self:
        """Return the mixture of several models, which has the classes of all of them.

        Parameters
        ----------
        pmfs : iterable of LowRankPMF
            Models of the same variables and levels, which are aligned by name.
        weights : array_like, optional
            Share of each model, divided by their sum; equal by default.

        Returns
        -------
        LowRankPMF
            Its rank is the sum of the ranks; :meth:`reduce` looks for a smaller one.

        Examples
        --------
        >>> import rejoint as rj
        >>> a = rj.LowRankPMF([1.0], [[[0.5], [0.5]]])
        >>> b = rj.LowRankPMF([1.0], [[[1.0], [0.0]]])
        >>> rj.LowRankPMF.average([a, b], weights=[1, 3]).marginal("x0")
        array([0.875, 0.125])
        """
        models: list[LowRankPMF] = list(pmfs)
        if not models:
            raise ValueError("average: no models were given.")
        shares = np.ones(len(models)) if weights is None else np.array(weights, dtype=np.float64)
        is_valid = shares.shape == (len(models),) and np.isfinite(shares).all() and shares.any()
        if not is_valid or (shares < 0.0).any():
            raise ValueError(
                f"average: {plural(len(models), 'model')} need as many weights, finite, >= 0 and "
                f"not all zero; got {shares}."
            )
        shares = shares / shares.sum()
        models = [model.mixture.align(models[0].domain) for model in models]
        weights = np.concatenate([s * m.weights for s, m in zip(shares, models, strict=True)])
        factors = [np.hstack(parts) for parts in zip(*(m.factors for m in models), strict=True)]
        blocks = join_blocks([model._parts for model in models])
        return cls._trusted(weights, factors, models[0].domain, _blocks=blocks)

    def reduce(
        self,
        rank: int | None = None,
        *,
        tol: float = 1e-8,
        random_state: RandomState = 0,
    ) -> "Reduction":
        """Return a smaller model of the same joint, and its error.

        Classes of weight zero are dropped, and classes that differ in one factor at most are
        joined; both steps are exact. If that is not enough, a smaller model is fitted to the exact
        three-variable tables of this one (and to the whole joint where that is small), from the
        nearest classes merged and from random starts.

        Parameters
        ----------
        rank : int, optional
            Rank to reduce to; by default the lowest rank found with an error of at most `tol`.
        tol : float
            Relative error of the joint that counts as none.
        random_state : int, Generator or None
            Seed, or source, of the random starts; fixed by default.

        Returns
        -------
        Reduction
            ``pmf`` and ``error``, its :func:`rejoint.metrics.tensor_error` from this model.

        Examples
        --------
        >>> import rejoint as rj
        >>> p = rj.LowRankPMF([0.3, 0.7], [[[0.9, 0.2], [0.1, 0.8]], [[0.7, 0.1], [0.3, 0.9]]])
        >>> wide = rj.LowRankPMF.average([p, p.sorted(), p])
        >>> pmf, error = wide.reduce(rank=2)
        >>> wide.rank, pmf.rank, error < 1e-14
        (6, 2, True)
        """
        from rejoint.factorization.reduce import reduce  # a later layer: it fits models

        found = reduce(self.mixture, rank, tol, random_state)
        if self.tables is None:
            return found
        # The certificate, if there is one, is about this model and its rank.
        return found._replace(pmf=found.pmf.with_tables(replace(self.tables, identified=None)))

    def ambiguity(
        self,
        names: str | Sequence[str],
        given: Given = None,
        *,
        subsets: Sequence[Sequence[str]] | None = None,
        order: int | None = None,
    ) -> "Ambiguity":
        """Find another model with the same tables whose answer differs the most.

        See :func:`rejoint.identifiability.ambiguity`; ``subsets`` or ``order`` select the tables,
        by default those that the model was fitted to, or all of three variables. It is asked of the
        representative model, whose rank it rests on.

        Examples
        --------
        >>> import rejoint as rj
        >>> p = rj.LowRankPMF([0.4, 0.6], [[[0.8, 0.1], [0.2, 0.9]]] * 4)
        >>> p.ambiguity("x0", {"x1": 0, "x2": 0}, order=2).distance > 0.1
        True
        """
        from rejoint.identifiability.ambiguity import ambiguity  # a later layer: it tests models

        if subsets is None and order is None and self.tables is not None:
            subsets = self.tables.named_subsets(self.domain)
        return ambiguity(self.representative, names, given, subsets=subsets, order=order)

    # From and to tables and files

    def to_dense(self) -> FloatArray:
        """Return the whole joint as one array, with axes and levels as in ``domain``.

        Raises
        ------
        ValueError
            If the joint has more than 2**27 cells (1 GiB).

        Examples
        --------
        >>> import rejoint as rj
        >>> p = rj.LowRankPMF([0.5, 0.5], [[[1.0, 0.5], [0.0, 0.5]]] * 2)
        >>> p.to_dense()
        array([[0.625, 0.125],
               [0.125, 0.125]])
        """
        return self.mixture._parts.tabulate(range(len(self.domain)))

    @classmethod
    def from_dense(cls, array: ArrayLike, domain: Domain | None = None) -> Self:
        """Return an exact model of any joint (Proposition 1 of the paper).

        The fibers along one variable are the classes. Empty ones are dropped, and classes that
        differ in one variable only are joined, so that the rank is often far below the bound
        ``min_k prod_{n != k} I_n``. It is not always the lowest one possible.

        Parameters
        ----------
        array : array_like
            Probabilities or counts, with one axis per variable; divided by their sum.
        domain : Domain, optional
            Names and levels of the axes.

        Returns
        -------
        LowRankPMF

        Examples
        --------
        >>> import numpy as np, rejoint as rj
        >>> table = np.array([[[2.0, 0.0], [1.0, 3.0]], [[0.0, 0.0], [4.0, 0.0]]])
        >>> p = rj.LowRankPMF.from_dense(table)
        >>> p.rank, bool(np.allclose(p.to_dense(), table / 10, atol=1e-15))
        (3, True)
        """
        return cls(*naive_bayes(np.asarray(array, dtype=np.float64)), domain)

    def save(
        self,
        path: str | PathLike[str],
        *,
        notes: Mapping[str, Any] | None = None,
        draws: bool = True,
    ) -> None:
        """Write the model to a file; the file is written whole or not at all.

        The file is a NumPy archive of plain arrays, without pickles: safe to send and to load.
        By custom its name ends in ``.rejoint``. A name that ends in ``.json`` gives text that any
        language can read. Weights and factors of either are read back bit by bit.

        Parameters
        ----------
        path : str or path
            An existing file is replaced.
        notes : dict, optional
            Further contents of the file, which JSON must be able to hold; ``class_names`` names
            the classes. ``rejoint.io.read_saved(path).notes`` returns them.
        draws : bool
            Write the posterior draws, if the model carries some. Without them the file answers
            the same, but has no credible intervals.

        Examples
        --------
        >>> import rejoint as rj, tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "asia.rejoint")
        ...     rj.datasets.asia().save(path)
        ...     rj.load(path) == rj.datasets.asia()
        True
        """
        write_model(path, self.to_saved(notes, draws=draws))

    def to_saved(self, notes: Mapping[str, Any] | None = None, *, draws: bool = True) -> SavedModel:
        """Return what :meth:`save` writes to a file.

        Examples
        --------
        >>> import rejoint as rj
        >>> rj.datasets.asia().to_saved({"source": "textbook"}).notes
        {'source': 'textbook'}
        """
        kept = dict(notes or {})
        if kept.get("class_names") is not None:
            kept["class_names"] = [str(name) for name in kept["class_names"]]
        if self.gaps:
            kept["gaps"] = [gap._asdict() for gap in self.gaps]
        parts = (self.weights, self.factors, self.domain, kept)
        mixture = self._mixture
        answer = None if mixture is None else mixture._parts.stacked
        own: dict[str, Any] = {
            name: None if part is None else part.to_saved()
            for name, part in (("tables", self.tables), ("counts", self.counts))
        }
        layouts = {"model": [block.layout for block in self._blocks], "draws": self.draws.layouts}
        layouts["mixture"] = [block.layout for block in mixture._blocks] if mixture else []
        own["blocks"] = {
            part: tuple(SavedBlock(layout.members, layout.groups) for layout in layouts[part])
            for part in layouts
        }
        if self._blocks:
            own["block_tables"] = np.vstack([block.table for block in self._blocks])
        if not (draws and self.draws):
            return SavedModel(*parts, mixture=answer, **own)
        carried = self.draws.thin(MOST_FACTORS // len(self.domain))
        return SavedModel(*parts, carried.block, answer, carried.weights, **own)

    @classmethod
    def of_model(cls, model: Model, domain: Domain) -> Self:
        """Add names and levels to weights and stacked factors; the largest class comes first.

        Examples
        --------
        >>> import rejoint as rj
        >>> model = Model.of([0.3, 0.7], [[[0.9, 0.2], [0.1, 0.8]]])
        >>> rj.LowRankPMF.of_model(model, rj.Domain.of({"a": ["x", "y"]}))
        LowRankPMF(rank 2, 1 variable: a (2); weights 0.7, 0.3)
        """
        model = model.sorted()
        return cls(model.weights, model.parts, domain)

    @classmethod
    def of_saved(cls, saved: SavedModel) -> Self:
        """Make a model of the contents of a file, posterior draws included.

        Examples
        --------
        >>> import rejoint as rj
        >>> asia = rj.datasets.asia()
        >>> rj.LowRankPMF.of_saved(asia.to_saved()) == asia
        True
        """
        domain, draws, mixture = saved.domain, Draws.of((), saved.domain, cls), None
        layouts = {
            part: tuple(BlockLayout(*block) for block in own) for part, own in saved.blocks.items()
        }
        if saved.draws is not None:
            given = saved.draw_weights
            own = layouts.get("draws", ())
            check_block(saved.draws, domain, given, own)
            equal = np.empty(0)
            draws = Draws(domain, saved.draws, cls, equal if given is None else given, own)
        if saved.mixture is not None:
            answer = Mixture.from_stacked(saved.mixture, domain.shape, layouts.get("mixture", ()))
            factors = list(answer.factors.values())
            mixture = cls(answer.weights, factors, domain, blocks=answer.blocks)
        gaps = read_gaps(saved.notes.get("gaps"), domain.names)
        tables = None if saved.tables is None else GivenTables.of_saved(saved.tables)
        counts = None if saved.counts is None else Counts.of_saved(saved.counts, domain)
        parts = (draws, mixture, gaps, tables, counts)
        own_tables = np.empty((0, 1)) if saved.block_tables is None else saved.block_tables
        blocks = split_tables(layouts.get("model", ()), own_tables)
        return cls(saved.weights, saved.factors, domain, *parts, blocks)

    # Equality and representation

    def equals(self, other: object, tol: float = 1e-9) -> bool:
        """Return whether weights and factors agree up to the order of the classes.

        Those of representative and mixture are compared, draws are not. Two models of different
        rank or different parameters may still describe the same joint;
        :func:`rejoint.metrics.tensor_error` compares joints.

        Parameters
        ----------
        other : object
            Another model; anything else is not equal.
        tol : float
            Largest difference of any weight or any entry of a factor.

        Examples
        --------
        >>> a = LowRankPMF([0.2, 0.8], [[[1.0, 0.3], [0.0, 0.7]]])
        >>> a.equals(a.sorted()), a.equals(LowRankPMF([0.8, 0.2], a.factors))
        (True, False)
        """
        if not isinstance(other, LowRankPMF):
            return False
        if self.domain != other.domain or self.rank != other.rank:
            return False
        if not have_same_layouts([self._blocks, other._blocks]):
            return False
        if not is_same_up_to_order(self._parts.stacked, other._parts.stacked, tol):
            return False
        same = self.mixture is self and other.mixture is other
        return same or self.mixture.equals(other.mixture, tol)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LowRankPMF):
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
        return type(self), tuple(getattr(self, name) for name in _PARTS)

    def __repr__(self) -> str:
        count, top = len(self.domain), ", ".join(f"{w:.3g}" for w in np.sort(self.weights)[:-6:-1])
        names = ", ".join(f"{v.name} ({len(v)})" for v in list(self.domain)[:6])
        return (
            f"{type(self).__name__}(rank {self.rank}, {plural(count, 'variable')}: {names}"
            f"{', ...' * (count > 6)}; weights {top}{', ...' * (self.rank > 5)}"
            f"{self._describe_answer()})"
        )

    def _describe_answer(self) -> str:
        if self._mixture is None:
            return ""
        classes = plural(self._mixture.rank, "class", "classes")
        return f"; answers come from the posterior mean of {classes}"


def _check_numbers(values: ArrayLike, what: str, axes: int) -> FloatArray:
    """Copy an array of probabilities; raise an error for entries that are not."""
    array = np.array(values, dtype=np.float64, order="C")
    if array.ndim != axes or not array.size:
        shape = "(rank,)" if axes == 1 else "(levels, rank)"
        raise ValueError(
            f"{what} must have shape {shape}, at least one class and one level; got {array.shape}."
        )
    wrong = np.argwhere(~(np.isfinite(array) & (array >= 0.0)))
    if len(wrong):
        where = tuple(map(int, wrong[0]))
        raise ValueError(
            f"{what} holds {array[where]:.6g} at {where}: probabilities are finite and >= 0."
        )
    array += 0.0  # -0.0 becomes 0.0
    return array


def _check_shapes(weights: FloatArray, factors: list[FloatArray], domain: Domain) -> None:
    if len(factors) != len(domain):
        raise ValueError(
            f"{plural(len(factors), 'factor')} for a domain of {plural(len(domain), 'variable')}."
        )
    for factor, variable in zip(factors, domain, strict=True):
        if factor.shape != (len(variable), len(weights)):
            raise ValueError(
                f"Factor of {cite(variable.name)} has shape {factor.shape}; its "
                f"{plural(len(variable), 'level')} and the {plural(len(weights), 'weight')} ask "
                f"for {(len(variable), len(weights))}."
            )


def _normalize(columns: FloatArray, what: str) -> FloatArray:
    """Divide columns by their sum, where it is off one by rounding."""
    total = columns.sum(axis=0)
    off = np.abs(total - 1.0)
    worst = int(off.argmax())
    if off[worst] > _SUM_TOLERANCE:
        part = "the weights sum" if what == "weights" else f"column {worst} of {what} sums"
        raise ValueError(f"{part} to {total[worst]:.9g}, not to 1: divide by the sum first.")
    return np.ascontiguousarray(np.where(off > _KEEP_BITS, columns / total, columns))
