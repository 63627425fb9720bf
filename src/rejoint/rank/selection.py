"""Selection: the chosen rank, the table of criteria, and the reason."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import floor, inf, isfinite, isnan, log10
from typing import TYPE_CHECKING, Literal

import numpy as np

from rejoint.arrays import FloatArray
from rejoint.model import Model
from rejoint.pmf.pmf import LowRankPMF
from rejoint.text import format_fields, plural

if TYPE_CHECKING:
    from rejoint.estimation.posterior_mean import Anchors


@dataclass(frozen=True)
class EnsembleCurve:
    """Scores of ensembles by rank: classes to predict with, not to look at.

    Parameters
    ----------
    rank : int
        The smallest within half a standard error of the best.
    ranks : tuple of int
        All that were tried, increasing.
    scores : array
        Held-out log-likelihood per record of each.
    """

    rank: int
    ranks: tuple[int, ...]
    scores: FloatArray


@dataclass(frozen=True)
class AnswerPlan:
    """What answers where the rank is not given, as held-out records have chosen.

    Parameters
    ----------
    kind : {"ensemble", "modes", "mode"}
        Chains from random starts, chains from modes of the rank, or the most probable model itself,
        with chains from it for bounds.
    rank : int
        Number of classes of the chains.
    anchors : Anchors
        How near what answers stays to their mean.
    concentrations : array
        Concentrations of the prior that they start with.
    start : Model, optional
        A mode of the rank.
    """

    kind: Literal["ensemble", "modes", "mode"]
    rank: int
    anchors: "Anchors"
    concentrations: FloatArray
    start: Model | None = None

    @property
    def text(self) -> str:
        """Which model answers, in words."""
        if self.kind == "mode":
            return (
                f"Answers come from the most probable model of rank {self.rank}, which predicts "
                "better than chains; these give intervals."
            )
        first = "random models" if self.kind == "ensemble" else "its most probable models"
        return f"Answers come from chains of rank {self.rank}, started from {first}."


#: Ranks that a sentence lists one by one at the most.
MOST_LISTED_RANKS = 6

#: Columns of a table of criteria: how each is headed and written, and whether the lowest (-1) or
#: the highest value (1) is the best; 0 where neither is.
COLUMNS = {
    "log_likelihood": ("log-likelihood", ",.1f", 0),
    "parameters": ("parameters", ",.0f", 0),
    "aic": ("AIC", ",.1f", -1),
    "bic": ("BIC", ",.1f", -1),
    "abic": ("aBIC", ",.1f", -1),
    "entropy": ("entropy", ".3f", 0),
    "evidence": ("log-evidence", ",.1f", 1),
    "heldout": ("held-out per record", ".5f", 1),
    "error": ("error of the difference", ".5f", 0),
}


@dataclass(frozen=True)
class CriterionTable:
    """Criteria of the ranks that were tried, a row for each rank.

    Parameters
    ----------
    ranks : tuple of int
        Increasing.
    columns : mapping of str to array
        By name, a value for each rank: ``log_likelihood`` (of the maximum-likelihood fit),
        ``parameters``, ``aic``, ``bic``, ``abic`` (adjusted for the sample size: ``log((n + 2) /
        24)`` in place of ``log(n)``), ``entropy`` (relative: 1 where all records are classified
        with certainty), ``evidence`` (lower bound of its logarithm), ``heldout`` (log-probability
        of a record that the fit has not seen) and ``error`` (standard error of its difference
        from that of the rank chosen). NaN where a rank was not scored.

    Examples
    --------
    >>> table = CriterionTable((1, 2), {"bic": np.array([210.0, 200.5])})
    >>> table.best
    {'bic': 2}
    >>> print(table.join(CriterionTable((2,), {"heldout": np.array([-1.25])})))
    rank     BIC  held-out per record
       1   210.0
       2  200.5*            -1.25000*
    """

    ranks: tuple[int, ...]
    columns: Mapping[str, FloatArray]

    @property
    def best(self) -> dict[str, int]:
        """The best rank by each criterion."""
        found = {}
        for name, values in self.columns.items():
            sign = COLUMNS[name][2]
            if sign and np.isfinite(values).any():
                found[name] = self.ranks[int(np.nanargmax(sign * values))]
        return found

    def join(self, other: "CriterionTable") -> "CriterionTable":
        """The columns of both."""
        ranks = tuple(sorted({*self.ranks, *other.ranks}))
        columns = {}
        for table in (self, other):
            places = np.searchsorted(ranks, table.ranks)
            for name, values in table.columns.items():
                columns[name] = np.full(len(ranks), np.nan)
                columns[name][places] = values
        order = [name for name in COLUMNS if name in columns]
        return CriterionTable(ranks, {name: columns[name] for name in order})

    @property
    def rows(self) -> list[list[str]]:
        """The table as texts, its head first; the best value of each criterion has a star."""
        texts = [["rank", *map(str, self.ranks)]]
        for name, values in self.columns.items():
            head, form, _ = COLUMNS[name]
            best = self.best.get(name)
            cells = (
                "" if isnan(x) else f"{x:{form}}{'*' * (best == rank)}"
                for rank, x in zip(self.ranks, values, strict=True)
            )
            texts.append([head, *cells])
        return [list(row) for row in zip(*texts, strict=True)]

    def __str__(self) -> str:
        """A line for each rank, below the names of the criteria."""
        widths = [max(map(len, column)) for column in zip(*self.rows, strict=True)]
        padded = (map(str.rjust, row, widths) for row in self.rows)
        return "\n".join("  ".join(row).rstrip() for row in padded)


@dataclass(frozen=True, repr=False)
class Selection:
    """The chosen rank and the reason for it.

    Parameters
    ----------
    rank : int
        The rank chosen: the smallest whose score is within one standard error of the highest
        score, for other criteria than held-out likelihood within one nat over all records.
    ranks : tuple of int
        All that were tried, increasing.
    scores : array
        Score of each, per record; the higher the better.
    errors : array
        Standard error of the *difference* between each score and that of the rank chosen (zero
        there). All scores are computed from the same records, so their differences are known
        more precisely than the scores themselves. Where the criterion is not a sample mean
        (``"bic"``, ``"evidence"``), it is the difference that is considered negligible.
    tied : tuple of int
        The ranks whose score lies within one such error of the rank chosen, which is included.
    criterion : str
        What was scored.
    words : str
        What was chosen and why, and which ranks cannot be told apart from it.
    pmf : LowRankPMF, optional
        A cheap fit of the chosen rank to all records: good to start from.
    interrupted : bool
        Whether the user ended the search.
    ensemble : EnsembleCurve, optional
        The curve of models to predict with, where the criterion is held-out likelihood.
    table : CriterionTable
        All criteria of the ranks, which ``print(selection)`` shows.
    plan : AnswerPlan, optional
        What answers, where a fit asked for it.

    Examples
    --------
    >>> import rejoint as rj
    >>> data = rj.datasets.asia().project(["smoke", "lung", "bronc"]).sample(2000, random_state=0)
    >>> selection = rj.rank.select(data, ranks=[1, 2], random_state=0)
    >>> selection.rank
    2
    >>> print(rj.rank.select(data, [1, 2], criterion="bic", random_state=0))
    rank  log-likelihood  parameters       AIC       BIC      aBIC  entropy
       1        -3,185.4           3   6,376.9   6,393.7   6,384.2
       2        -3,040.3           7  6,094.5*  6,133.7*  6,111.5*    0.562
    Rank 2 of 1 and 2 has the lowest BIC, 6,133.7. ...
    """

    rank: int
    ranks: tuple[int, ...]
    scores: FloatArray
    errors: FloatArray
    tied: tuple[int, ...]
    criterion: str
    words: str
    pmf: LowRankPMF | None = field(default=None, repr=False)
    interrupted: bool = False
    ensemble: EnsembleCurve | None = field(default=None, repr=False)
    table: CriterionTable = field(default=CriterionTable((), {}), repr=False)
    plan: AnswerPlan | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return format_fields(self)

    def __str__(self) -> str:
        """The table of criteria, and the sentence."""
        return f"{self.table}\n{self.words}" if self.table.columns else self.words


def listed(ranks: Sequence[int], most: int = 10**9) -> str:
    """Return increasing ranks as text; only their number and range if there are too many."""
    *others, last = map(str, ranks)
    if len(ranks) > most:
        return f"{plural(len(ranks), 'rank')} from {others[0]} to {last}"
    return f"{', '.join(others)} and {last}" if others else last


@dataclass(frozen=True)
class CriterionText:
    """The criterion as sentences name it.

    Parameters
    ----------
    name : str
        What is compared, such as ``"held-out log-likelihood per record"``.
    slack : str
        The difference that is ignored, such as ``"one standard error"``.
    scale : float
        What a score is multiplied by where it is shown; negative where lower is better.
    """

    name: str
    slack: str
    scale: float = 1.0

    def show(self, *scores: float) -> list[str]:
        """Write values of the criterion with enough decimals to tell them apart."""
        values = [self.scale * score for score in scores]
        sizes = (max(map(abs, values)), 4), (max(values) - min(values), 1)
        digits = [most - floor(log10(size)) for size, most in sizes if 0 < size < inf]
        return [f"{value:,.{min(max([0, *digits]), 15)}f}" for value in values]


def describe_selection(
    chosen: int, scores: Mapping[int, float], tied: Sequence[int], measure: CriterionText
) -> str:
    """Describe which rank was chosen, why, and which other ranks tie with it."""
    ranks, top = sorted(scores), max(scores.values())
    mine, highest = measure.show(scores[chosen], top)
    if len(ranks) == 1:
        return f"Rank {chosen} is the only one that was tried: {measure.name} {mine}."
    if not isfinite(top):
        return (
            f"The {measure.name} is {mine} at each of the ranks {listed(ranks)}: it does not "
            f"distinguish them, and rank {chosen} is the smallest."
        )
    best = f"the {'lowest' if measure.scale < 0 else 'highest'} {measure.name}"
    claim = f"has {best}, {mine}"
    if scores[chosen] != top:
        first = min(ranks, key=lambda rank: -scores[rank])
        claim = (
            f"is the smallest within {measure.slack} of {best}, which rank {first} has ({mine} "
            f"against {highest})"
        )
    words = f"Rank {chosen} of {listed(ranks, MOST_LISTED_RANKS)} {claim}."
    others = [rank for rank in tied if rank != chosen]
    if others:
        which = f"Rank{'s' if len(others) > 1 else ''} {listed(others)}"
        return f"{words} {which} cannot be distinguished from it: within {measure.slack}."
    rest = "All others are" if len(ranks) > 2 else "The other is"
    return f"{words} {rest} worse by more than {measure.slack}."
