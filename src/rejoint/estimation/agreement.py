"""Agreement: whether the starts that were followed to the end found the same model."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rejoint import kernels
from rejoint.estimation.data import Data
from rejoint.estimation.policy import DEFAULT, Policy
from rejoint.messages import Argument, Message, PythonOnly, join_messages, remark
from rejoint.model import Model
from rejoint.solver.search import best_run
from rejoint.solver.solver import Run, Stop
from rejoint.text import format_number, plural

#: Records whose classes are found at a time.
BLOCK_RECORDS = 65_536


@dataclass(frozen=True)
class Agreement:
    """What the starts of a search ended at.

    Parameters
    ----------
    starts : int
        Starts that were tried.
    ended : int
        Those that were followed to the end.
    reached : int
        Those of them that reached the best optimum.
    gap : float
        Nats by which the next best optimum is lower; NaN where there is none.
    moved : float
        Share of the records that the next best optimum puts into other classes; zero where there
        is none.
    near : bool
        Whether the next best optimum is nearly as good.
    differs : bool
        Whether the two are different findings.

    Examples
    --------
    >>> found = Agreement(20, 4, 1, 3.25, 0.3, near=False, differs=True)
    >>> print(found.text)
    Of 20 starts, 4 were followed to the end; 1 of them reached this optimum. The next best one is \
3.2 nats lower and has 30% of the records in other classes.
    >>> print(found.advice())
    More starts may find a better one: n_init=40.
    """

    starts: int
    ended: int
    reached: int
    gap: float = float("nan")
    moved: float = 0.0
    near: bool = False
    differs: bool = False

    @property
    def serious(self) -> bool:
        """Whether one start alone, of several, found the best of clearly different optima."""
        return self.differs and not self.near and self.reached == 1 and self.ended > 3

    @property
    def text(self) -> str:
        """What was found; nothing where one start was followed to the end."""
        if self.ended < 2:
            return ""
        said = (
            f"Of {plural(self.starts, 'start')}, {self.ended} were followed to the end; "
            f"{self.reached} of them reached this optimum."
        )
        if np.isnan(self.gap):
            return said
        gap = format_number(float(f"{self.gap:.2g}"))
        said += (
            f" The next best one is {gap} nats lower and has {self.moved:.0%} of the records in "
            "other classes."
        )
        if self.near and self.differs:
            said += " The records hardly tell the two apart."
        return said

    def advice(self, chains: bool = False) -> str:
        """What to do where it is serious; ``chains`` if n_init is their number."""
        if not self.serious:
            return ""
        more = Argument("n_init", 2 * self.starts)
        if not chains:
            return Message("More starts may find a better one: {more}.", more=more)
        return Message(
            "More starts may find a better one: take {solver} with {more}{then}.",
            solver=Argument("solver", "map"),
            more=more,
            then=PythonOnly(", and give its pmf as start"),
        )

    def tell(self, chains: bool = False) -> str:
        """All of it, said at once as a remark where it is serious."""
        said = join_messages([self.text, self.advice(chains)])
        if self.serious:
            remark(said)
        return said


def compare_ends(data: Data, runs: Sequence[Run], policy: Policy = DEFAULT) -> Agreement:
    """Compare the runs that were followed to the end; all by the same solver.

    Examples
    --------
    >>> from rejoint.estimation.data import InMemory
    >>> from rejoint.records.records import Records
    >>> data = InMemory.of(Records.of({"a": [0, 0, 1, 1], "b": [0, 0, 1, 1]}))
    >>> model = Model.of([0.5, 0.5], [np.eye(2)] * 2)
    >>> ends = [Run(model, 2.8, 0.0, 0.0, Stop.PROGRESS)] * 3
    >>> compare_ends(data, ends).text
    'Of 3 starts, 3 were followed to the end; 3 of them reached this optimum.'
    """
    best = runs[best_run(runs)]
    ended = [each for each in runs if each.stop is not Stop.BEHIND]
    others = [each for each in ended if each.objective > best.objective + policy.same_nats]
    reached = len(ended) - len(others)
    if not others:
        return Agreement(len(runs), len(ended), reached)
    rival = min(others, key=lambda each: each.objective)
    gap = float(rival.objective - best.objective)
    moved = share_moved(data, best.model, rival.model)
    return Agreement(
        *(len(runs), len(ended), reached, gap, moved),
        near=gap <= policy.near_nats,
        differs=moved >= policy.other_classes,
    )


def share_moved(data: Data, model: Model, other: Model) -> float:
    """Share of the records in other classes under another model, classes matched as fits best.

    Examples
    --------
    >>> from rejoint.estimation.data import InMemory
    >>> from rejoint.records.records import Records
    >>> data = InMemory.of(Records.of({"a": [0, 0, 0, 1], "b": [0, 0, 1, 1]}))
    >>> by_a = Model.of([0.5, 0.5], [np.eye(2), np.full((2, 2), 0.5)])
    >>> by_b = Model.of([0.5, 0.5], [np.full((2, 2), 0.5), np.eye(2)[::-1]])
    >>> share_moved(data, by_a, by_b)
    0.25
    """
    from scipy.optimize import linear_sum_assignment  # slow to import, rarely needed

    records, levels = data.records, data.layout.levels
    seen = data.observed(model), data.observed(other)
    both = np.zeros((model.rank, other.rank))
    for first in range(0, len(records.weight), BLOCK_RECORDS):
        rows = slice(first, first + BLOCK_RECORDS)
        codes = records.codes[rows]
        one, two = (
            kernels.class_posterior(codes, each.weights, each.factors, levels, records.threads)[1]
            for each in seen
        )
        np.add.at(both, (one.argmax(axis=1), two.argmax(axis=1)), records.weight[rows])
    matched = both[linear_sum_assignment(both, maximize=True)].sum()
    return float(1.0 - matched / both.sum())
