"""The questions a joint answers, asked by name and level: wiring of the functions on arrays."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from rejoint import queries
from rejoint._mixture import Mixture
from rejoint._sampling import draw_codes
from rejoint.domain import Level, Variable, remark
from rejoint.queries import ZeroEvidenceError

if TYPE_CHECKING:
    from rejoint.records import Records

__all__ = ["Answers", "Evidence", "Given"]

FloatArray = NDArray[np.float64]

Evidence = Any
"""A level, a list of levels (any of them), or an array of likelihoods (soft evidence)."""

Given = Mapping[str, Evidence] | None


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
        asked = self._distinct(names)
        posterior, factors = self._posterior(given)
        return queries.joint_table(posterior, [factors[n] for n in asked])

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
        >>> p.prob({"lung": ["yes", "no"]})
        1.0
        """
        for name, value in event.items():
            if isinstance(value, np.ndarray) and value.dtype.kind == "f":
                raise ValueError(
                    f"prob: the event on {name!r} is an array of likelihoods, which is evidence: "
                    "give it by given=, or name a level or a list of levels."
                )
        posterior, factors = self._posterior(given)
        logs = queries.log_class_weights(posterior, factors, self._likelihoods(event))
        return min(float(np.exp(queries.log_sum(logs))), 1.0)

    def log_prob(self, data: Any) -> FloatArray:
        """Logarithm of the probability of each record; missing cells are summed out.

        Parameters
        ----------
        data : Records, or anything that ``Records.of`` takes
            Read with the model's domain.

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
        codes = self._codes(data)
        out = np.empty(len(codes))
        for rows, logs in queries.log_likelihoods(self.weights, self.factors, codes):
            out[rows] = queries.log_sum(logs)
        return out

    def classes(self, data: Any) -> FloatArray:
        """Posterior of the hidden class of each record; missing cells are summed out.

        A record of probability zero (factors may hold zeros) gets the limit of a vanishing
        floor: the classes that contradict it least, with a remark that says how many.

        Parameters
        ----------
        data : Records, or anything that ``Records.of`` takes
            Read with the model's domain.

        Returns
        -------
        ndarray (M, F)
            Rows sum to one.

        Examples
        --------
        >>> import rejoint as rj
        >>> p = rj.LowRankPMF(
        ...     [0.5, 0.5], [[[0.9, 0.1], [0.1, 0.9]]], rj.Domain.of({"a": ["x", "y"]})
        ... )
        >>> p.classes([{"a": "x"}, {"a": None}])
        array([[0.9, 0.1],
               [0.5, 0.5]])
        """
        codes = self._codes(data)
        out = np.empty((len(codes), self.rank))
        impossible: list[int] = []
        for rows, logs in queries.log_likelihoods(self.weights, self.factors, codes):
            out[rows], bad = queries.record_classes(logs, self.weights, self.factors, codes[rows])
            impossible += (bad + rows.start).tolist()
        if impossible:
            remark(
                f"{len(impossible)} of {len(codes)} records have probability zero under this model "
                f"(first: row {impossible[0]}); they got the classes that contradict them least."
            )
        return out

    @overload
    def expect(
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
        posterior, factors = self._posterior(given)
        result = {}
        for n in self._distinct(names):
            variable = self.domain[n]
            values = _level_values(variable, function)
            result[variable.name] = float(values @ (factors[n] @ posterior))
        return next(iter(result.values())) if isinstance(names, str) else result

    def sample(
        self,
        n: int,
        given: Given = None,
        random_state: int | np.random.Generator | None = None,
    ) -> "Records":
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
        posterior, factors = self._posterior(given)
        rng = np.random.default_rng(random_state)
        wide = max(self.domain.shape) > np.iinfo(np.int16).max
        codes = draw_codes(posterior, factors, n, rng, np.int32 if wide else np.int16)
        from rejoint.records import Records

        return Records(self.domain, codes, None)

    def _distinct(self, names: str | Sequence[str]) -> tuple[int, ...]:
        """Positions of the variables asked for; one asked twice is an error."""
        asked = self.domain.indices([names] if isinstance(names, str) else names)
        if len(set(asked)) < len(asked):
            twice = next(self.domain.names[n] for n in asked if asked.count(n) > 1)
            raise ValueError(f"Variable {twice!r} is asked for twice: name each one once.")
        return tuple(asked)

    def _likelihoods(self, evidence: Given) -> dict[int, FloatArray]:
        return {
            self.domain.index(name): self.domain[name].likelihood(value)
            for name, value in (evidence or {}).items()
        }

    def _posterior(self, given: Given) -> tuple[FloatArray, Sequence[FloatArray]]:
        """Class posterior and factors, both given the evidence."""
        likelihoods = self._likelihoods(given)
        if not likelihoods:
            return self.weights, self.factors
        logs = queries.log_class_weights(self.weights, self.factors, likelihoods)
        posterior = queries.class_posterior(logs)
        if not posterior.any():
            raise ZeroEvidenceError(self._why_impossible(given or {}, likelihoods))
        factors = list(self.factors)
        for n, likelihood in likelihoods.items():
            factors[n] = queries.conditional_factor(factors[n], likelihood)
        return posterior, factors

    def _why_impossible(
        self, given: Mapping[str, Any], likelihoods: Mapping[int, FloatArray]
    ) -> str:
        culprits = queries.contradiction(self.weights, self.factors, likelihoods)
        texts = {self.domain.index(name): f"{name} = {value!r}" for name, value in given.items()}
        named = [texts[n] for n in culprits]
        if len(named) == 1:
            return (
                f"{named[0]} has probability zero under this model, so nothing can be said given "
                "it: leave it out, or fit with a prior that keeps every level possible."
            )
        return (
            f"{', '.join(named[:-1])} and {named[-1]} are possible by themselves but not together: "
            "jointly they have probability zero under this model. Leave one out, or fit with a "
            "prior that keeps every level possible."
        )

    def _codes(self, data: Any) -> NDArray[np.integer]:
        from rejoint.records import Records

        return Records.of(data, domain=self.domain).codes


def _level_values(variable: Variable, function: Callable[[Any], float] | None) -> FloatArray:
    if function is None:
        return variable.numeric
    levels: Iterable[Level] = variable.levels
    return np.array([float(function(level)) for level in levels])
