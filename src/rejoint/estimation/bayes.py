"""Bayes: posterior draws of the joint from several chains, and one model that stands for them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from rejoint.estimation.chain_book import ChainBook
from rejoint.estimation.gibbs import Draw, chain
from rejoint.estimation.priors import first_strengths
from rejoint.estimation.problem import Array, RecordProblem

Report = Callable[[str], None]


@dataclass(frozen=True)
class Bayes:
    """Gibbs sampling from several starts.

    Parameters
    ----------
    chains : int
        Chains, each from a start of its own.
    burn_in : int
        Draws of each chain that are thrown away.
    draws : int
        Draws kept of each chain.
    thin : int
        Every how many-th draw is kept.
    sparsity : float
        Pseudo-count of each class.

    Examples
    --------
    >>> import rejoint as rj
    >>> data = rj.datasets.asia().sample(300, random_state=0)
    >>> solver = Bayes(chains=2, burn_in=10, draws=20, thin=1)
    >>> len(rj.estimate(data, rank=2, solver=solver, random_state=0).posterior.draws)
    40
    """

    chains: int = 3
    burn_in: int = 100
    draws: int = 40
    thin: int = 3
    sparsity: float = 1.0

    def sample(
        self,
        problem: RecordProblem,
        starts: Sequence[tuple[Array, Array]],
        rng: np.random.Generator,
        report: Report,
        strengths: Array | None = None,
    ) -> tuple[list[Draw], bool]:
        """Draws of all chains, and whether Ctrl-C ended them early; ``strengths`` to start with."""
        book = ChainBook.of(problem, self, starts, rng)
        firm = first_strengths(problem) if strengths is None else strengths
        length = self.burn_in + self.draws * self.thin
        try:
            for number in range(book.place.chain, len(starts)):
                begun = book.place.last or Draw(*starts[number], firm)
                steps = chain(problem, begun, self.sparsity, rng)
                for draw in islice(steps, length - book.place.step):
                    step = book.place.step
                    keep = step >= self.burn_in and (step - self.burn_in) % self.thin == 0
                    book.note(draw, keep, rng)
                    report(f"chain {number + 1} of {len(starts)}, draw {step + 1} of {length}")
                book.turn()
        except KeyboardInterrupt:
            book.save()
            return list(book.place.kept), True
        return list(book.place.kept), False
