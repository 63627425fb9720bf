"""Selection: the rank chosen, the curve it was chosen from, and the sentence that says so."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rejoint.pmf.pmf import LowRankPMF

Array = NDArray[np.float64]

#: Standard errors below the best from which a rank is out of the question: one chance in a hundred.
SURE = 2.33


@dataclass(frozen=True)
class Selection:
    """A rank, and why this one.

    Parameters
    ----------
    rank : int
        The rank with the best score: the smallest of those that are best but for one nat over
        all records together.
    ranks : tuple of int
        All that were tried, increasing.
    scores : array
        Score of each, per record; the higher the better.
    errors : array
        Standard error of the *difference* between each score and the best one (zero at the
        best): all are computed from the same records, so that differences are known far
        better than the scores themselves. It is the larger of the errors over records and
        over folds. Where the criterion is no sample mean (``"bic"``, ``"evidence"``), the
        difference that counts as none.
    tied : tuple of int
        The ranks whose score lies within one such error of the best, which is among them.
    criterion : str
        What was scored.
    words : str
        What was chosen and why, and which sizes cannot be told apart.
    pmf : LowRankPMF, optional
        A cheap fit of the chosen rank to all records: good to start from.
    interrupted : bool
        Whether the user ended the search.

    Examples
    --------
    >>> import rejoint as rj
    >>> data = rj.datasets.asia().project(["smoke", "lung", "bronc"]).sample(2000, random_state=0)
    >>> selection = rj.rank.select(data, ranks=[1, 2], random_state=0)
    >>> selection.rank
    2
    """

    rank: int
    ranks: tuple[int, ...]
    scores: Array
    errors: Array
    tied: tuple[int, ...]
    criterion: str
    words: str
    pmf: LowRankPMF | None = field(default=None, repr=False)
    interrupted: bool = False

    @property
    def largest(self) -> int:
        """The largest rank that is not out of the question.

        Examples
        --------
        >>> scores, errors = np.array([-9.0, -8.0, -8.1]), np.array([0.1, 0.0, 0.1])
        >>> Selection(2, (1, 2, 3), scores, errors, (2, 3), "heldout", "").largest
        3
        """
        near = self.scores >= self.scores.max() - SURE * self.errors
        return max(rank for rank, is_near in zip(self.ranks, near, strict=True) if is_near)


def listed(ranks: Sequence[int]) -> str:
    """Numbers as one says them: "2, 3 and 4".

    Examples
    --------
    >>> listed([2]), listed([2, 3, 4])
    ('2', '2, 3 and 4')
    """
    *most, last = map(str, ranks)
    return f"{', '.join(most)} and {last}" if most else last


def make_words(
    rank: int,
    ranks: Sequence[int],
    tied: Sequence[int],
    basis: str,
    nearness: str,
    ending: str,
) -> str:
    """Say what was chosen, on what basis, what ties with it, and how the search ended.

    Examples
    --------
    >>> make_words(2, [1, 2, 3], [2, 3], "the best BIC", "2 in BIC", "")
    'Rank 2 of 1, 2 and 3 has the best BIC. Rank 3 cannot be told apart from it: within 2 in BIC.'
    """
    said = [f"Rank {rank} of {listed(ranks)} has {basis}."]
    if len(ranks) == 1:
        said = [f"Rank {rank} is the only one that was tried, with {basis}."]
    others = [r for r in tied if r != rank]
    if others:
        which = f"Rank{'s' if len(others) > 1 else ''} {listed(others)}"
        said.append(f"{which} cannot be told apart from it: within {nearness}.")
    elif len(ranks) > 1:
        said.append("All others are clearly worse.")
    return " ".join([*said, *([ending] if ending else [])])
