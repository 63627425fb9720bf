"""The questions a joint answers, asked by name and level: wiring of the functions on arrays."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from rejoint import queries
from rejoint.domain import Variable, positions, remark
from rejoint.pmf.credible import credible_bounds
from rejoint.pmf.evidence import Given, likelihoods, posterior
from rejoint.pmf.labelled import Mode, labelled
from rejoint.pmf.mixture import Mixture
from rejoint.queries.modes import most_probable, single_modes
from rejoint.records.export import Backend

__all__ = ["Answers"]

FloatArray = NDArray[np.float64]


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
