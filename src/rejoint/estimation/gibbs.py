"""Bayes: posterior draws of the joint from several chains, and one model that stands for them.

Missing cells need no imputation: given the class, a missing cell says nothing about the factors,
so that drawing it would only add noise.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from rejoint.estimation.data import Array, RecordProblem, normalise
from rejoint.estimation.ordinal_smoothing import SmoothProblem
from rejoint.estimation.priors import RANGE, first_strengths, log_evidence_of_counts, log_hyperprior
from rejoint.solver.checkpoint import Journal, digest

#: Standard deviation of the proposals for ``log s``.
STRIDE = 0.5


@dataclass(frozen=True)
class Draw:
    """One draw of weights, stacked factors and strengths."""

    weights: Array
    factors: Array
    strengths: Array


def chain(
    problem: RecordProblem, start: Draw, sparsity: float, rng: np.random.Generator
) -> Iterator[Draw]:
    """An endless Gibbs chain."""
    draw = start
    while True:
        found = problem.drawn(draw.weights, problem.columns(draw.factors), rng)
        levels = found.levels
        if isinstance(problem, SmoothProblem):
            levels = problem.draw_hidden(levels, draw.factors, rng)
        strengths = draw_strengths(problem, draw.strengths, levels, rng)
        prior = np.repeat(strengths, problem.levels) * problem.centre
        weights = rng.dirichlet(sparsity + found.classes)
        draw = Draw(weights, draw_columns(problem, levels + prior[:, None], rng), strengths)
        yield draw


def draw_columns(problem: RecordProblem, counts: Array, rng: np.random.Generator) -> Array:
    """Columns from their Dirichlet posteriors; the floor keeps tiny ones from being all zero."""
    return normalise(problem, rng.standard_gamma(counts) + 1e-300)


def draw_strengths(
    problem: RecordProblem, strengths: Array, counts: Array, rng: np.random.Generator
) -> Array:
    """A Metropolis step for each strength, columns integrated out."""
    drawn = strengths.copy()
    for n, size in enumerate(problem.levels):
        if size < 2:
            continue
        mine, centre = counts[problem.rows(n)], problem.centre[problem.rows(n)]
        firm = float(problem.firmness[n])

        def log_density(
            s: float, mine: Array = mine, centre: Array = centre, firm: float = firm
        ) -> float:
            return log_evidence_of_counts(s, centre, mine) + float(log_hyperprior(s, firm))

        offered = float(np.clip(drawn[n] * np.exp(STRIDE * rng.standard_normal()), *RANGE))
        if np.log(rng.random()) < log_density(offered) - log_density(drawn[n]):
            drawn[n] = offered
    return drawn


_PARTS = ("weights", "factors", "strengths")


class Place(NamedTuple):
    """Which chain, how many steps of it, its last draw, all draws kept, the state of chance."""

    chain: int = 0
    step: int = 0
    last: Draw | None = None
    kept: tuple[Draw, ...] = ()
    chance: str = ""


class ChainBook:
    """Chains in turn, kept in a journal where there is one.

    Examples
    --------
    >>> book = ChainBook(None, "")
    >>> book.note(Draw(np.ones(1), np.ones((2, 1)), np.ones(1)), True, np.random.default_rng(0))
    >>> book.place.step, len(book.place.kept)
    (1, 1)
    """

    def __init__(self, journal: Journal | None, key: str) -> None:
        self.journal, self.key = journal, key
        self.place = Place()

    @classmethod
    def of(cls, problem: Any, sampler: Any, starts: Sequence[Any], rng: Any) -> "ChainBook":
        """The book of some chains, opened where it was left; ``rng`` is set to where it was."""
        if problem.journal is None:
            return cls(None, "")
        book = cls(
            problem.journal, digest("chains", problem.fingerprint, sampler, tuple(starts), rng)
        )
        entry = problem.journal.get(book.key)
        if entry is not None:
            kept = _unpacked(entry)
            last = Draw(*(entry[f"last {part}"] for part in _PARTS)) if entry["step"] else None
            book.place = Place(entry["chain"], entry["step"], last, kept, entry["chance"])
            rng.bit_generator.state = json.loads(entry["chance"], object_hook=_exact)
        return book

    def note(self, draw: Draw, keep: bool, rng: np.random.Generator) -> None:
        """Take in a draw; in one assignment, so that Ctrl-C cannot come in between."""
        place = self.place
        kept = (*place.kept, draw) if keep else place.kept
        chance = "" if self.journal is None else json.dumps(rng.bit_generator.state, default=_plain)
        self.place = Place(place.chain, place.step + 1, draw, kept, chance)
        if self.journal is not None and self.journal.due:
            self.write()

    def turn(self) -> None:
        """Begin the next chain."""
        self.place = self.place._replace(chain=self.place.chain + 1, step=0, last=None)
        self.write()

    def write(self) -> None:
        """Put all into the journal."""
        place = self.place
        if self.journal is None or not place.chance:
            return
        entry: dict[str, Any] = {"chain": place.chain, "step": place.step, "chance": place.chance}
        entry |= _packed(place.kept)
        if place.last is not None:
            entry |= {f"last {part}": getattr(place.last, part) for part in _PARTS}
        self.journal.put(self.key, entry)

    def save(self) -> None:
        """Put all into the journal, and that onto the disk."""
        self.write()
        if self.journal is not None:
            self.journal.close()


def _packed(draws: Sequence[Draw]) -> dict[str, Any]:
    """Draws as flat arrays: chains may have different numbers of classes."""
    ranks = np.array([len(draw.weights) for draw in draws], dtype=np.int64)
    flat = {
        part: np.concatenate([np.empty(0), *(getattr(draw, part).ravel() for draw in draws)])
        for part in _PARTS
    }
    return {"ranks": ranks, **flat}


def _unpacked(entry: dict[str, Any]) -> tuple[Draw, ...]:
    ranks = entry["ranks"]
    if not len(ranks):
        return ()
    levels = len(entry["factors"]) // int(ranks.sum())
    weights = np.split(entry["weights"], np.cumsum(ranks)[:-1])
    factors = np.split(entry["factors"], np.cumsum(ranks * levels)[:-1])
    strengths = entry["strengths"].reshape(len(ranks), -1)
    parts = zip(weights, factors, strengths, strict=True)
    return tuple(Draw(w, f.reshape(levels, len(w)), s) for w, f, s in parts)


def _plain(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    """An array in the state of a bit generator, as JSON has it."""
    return {"list": array.tolist(), "type": array.dtype.str}


def _exact(found: dict[str, Any]) -> Any:
    return np.array(found["list"], dtype=found["type"]) if "list" in found else found


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
