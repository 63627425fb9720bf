"""Bayes: posterior draws of the joint by Gibbs sampling, from several chains.

A sweep draws the classes of the records, then weights, columns and concentrations. Missing values
need no imputation: given the class, a missing value says nothing about the factors, so that
drawing it would only add noise.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from rejoint.arrays import FloatArray
from rejoint.check import check_positive_int
from rejoint.estimation.policy import DEFAULT, Policy
from rejoint.estimation.priors import first_concentrations, log_evidence_of_counts, log_hyperprior
from rejoint.messages import Countdown
from rejoint.model import Layout, Model
from rejoint.solver.checkpoint import digest
from rejoint.solver.session import Session

if TYPE_CHECKING:
    from rejoint.estimation.data import Data

#: Tables that are looked at, and levels of each variable.
TABLES, LEVELS = 30, 10


def effective_draws(chains: Sequence[Sequence[Model]]) -> float:
    """Effective number of draws of some chains, by tables of neighboring variables.

    It is the number of draws over the autocorrelation time that cells of the tables have on
    average. Autocorrelations are added up so long as the sum of two neighbors is positive (Geyer).
    """

    def cells(draw: Model) -> FloatArray:
        parts = [part[:LEVELS] for part in draw.parts]
        pairs = list(zip(parts, parts[1:] or parts, strict=False))[:TABLES]
        return np.concatenate([((a * draw.weights) @ b.T).ravel() for a, b in pairs])

    values = np.array([[cells(draw) for draw in chain] for chain in chains])
    series = values - values.mean(axis=(0, 1))
    spread = np.sqrt(np.mean(series**2, axis=(0, 1)))
    varied = spread > 1e-12 * np.abs(values).max(axis=(0, 1))
    count, length = series.shape[0] * series.shape[1], series.shape[1]
    if not varied.any():
        return float(count)
    series = series[:, :, varied] / spread[varied]
    alike = np.array([np.sum(series[:, k:] * series[:, : length - k]) for k in range(length)])
    pairs = alike[: length // 2 * 2].reshape(-1, 2).sum(axis=1) / alike[0]
    positive = pairs[: int(np.argmax(np.append(pairs, 0.0) <= 0.0))]
    return float(count / max(2.0 * positive.sum() - 1.0, 1.0))


@dataclass(frozen=True)
class Draw:
    """One draw of a model and of the concentrations of the prior.

    ``mean`` is the expectation of the joint given the drawn classes of all records: weights and
    columns are independent Dirichlet variables then, so that it is the model of their means.
    """

    model: Model
    concentrations: FloatArray
    mean: Model


@dataclass(frozen=True)
class Bayes:
    """Gibbs sampling from several starts.

    Parameters
    ----------
    chains : int
        Number of chains, each from its own start.
    burn_in : int
        Sweeps of each chain that are discarded.
    draws : int
        Draws kept of each chain.
    thin : int
        Sweeps from one kept draw to the next.
    pseudo_count : float
        Pseudo-count of each class.
    policy : Policy
        Numbers of the hyperprior.

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
    pseudo_count: float = 1.0
    policy: Policy = field(default=DEFAULT, repr=False)

    def __post_init__(self) -> None:
        for name in ("chains", "draws", "thin"):
            check_positive_int(name, getattr(self, name))

    def step(self, problem: "Data", draw: Draw, rng: np.random.Generator) -> Draw:
        """One sweep."""
        found = problem.draw(draw.model, rng)
        layout = problem.layout
        concentrations = draw.concentrations
        if rng.random() < self.policy.concentration_share:
            concentrations = self.draw_concentrations(problem, concentrations, found.levels, rng)
        prior = layout.expand(concentrations) * problem.center
        classes, levels = self.pseudo_count + found.classes, found.levels + prior[:, None]
        weights = rng.dirichlet(classes)
        # The floor keeps tiny columns from being all zero.
        columns = layout.normalize(rng.standard_gamma(levels) + 1e-300)
        mean = Model(layout, classes / classes.sum(), layout.normalize(levels))
        return Draw(Model(layout, weights, columns), concentrations, mean)

    def chain(
        self,
        problem: "Data",
        model: Model,
        rng: np.random.Generator,
        concentrations: FloatArray | None = None,
    ) -> Iterator[Draw]:
        """Yield the draws of a chain from a model, without end."""
        if concentrations is None:
            concentrations = first_concentrations(problem, self.policy)
        draw = Draw(model, concentrations, model)
        while True:
            draw = self.step(problem, draw, rng)
            yield draw

    def draw_concentrations(
        self, problem: "Data", before: FloatArray, counts: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """A Metropolis step for each concentration, columns integrated out."""
        layout, policy, unit = problem.layout, self.policy, problem.concentration_unit
        steps = np.exp(policy.concentration_stride * rng.standard_normal(len(before)))
        offered = np.clip(before * steps, *policy.concentration_range)

        def log_density(concentrations: FloatArray) -> FloatArray:
            found = log_evidence_of_counts(layout, concentrations, problem.center, counts)
            return found + log_hyperprior(concentrations, unit, policy)

        gain = log_density(offered) - log_density(before)
        taken = np.log(rng.random(len(before))) < gain
        return np.where(taken & (np.asarray(layout.levels) > 1), offered, before)

    def sample(
        self,
        problem: "Data",
        starts: Sequence[Model],
        session: Session,
        concentrations: FloatArray | None = None,
        offer: Callable[[Sequence[Draw]], Any] | None = None,
    ) -> list[Draw]:
        """Return the draws of all chains, one chain after another; a checkpoint keeps whole chains.

        Where the fit is interrupted, ``offer`` makes its result of the draws so far.
        """
        kept: list[Draw] = []
        if offer is not None:
            session.offer(partial(offer, kept))
        checkpoint, length = session.checkpoint, self.burn_in + (self.draws - 1) * self.thin + 1
        countdown = Countdown(len(starts) * length)
        for number, start in enumerate(starts):
            rng, key = child(session.rng), ""
            if checkpoint.active:
                key = digest("chain", problem.fingerprint, self, start, concentrations, rng)
            if (known := checkpoint.parse(key, _thaw)) is not None:
                kept += known
                continue
            chain = islice(self.chain(problem, start, rng, concentrations), length)
            for sweep, draw in enumerate(chain):
                if (sweep - self.burn_in) % self.thin == 0 and sweep >= self.burn_in:
                    kept.append(draw)
                left = countdown.tell(number * length + sweep + 1)
                line = f"chain {number + 1} of {len(starts)}, draw {sweep + 1} of {length}"
                session.report(line + left)
            if checkpoint.active:
                checkpoint.put(key, _freeze(kept[-self.draws :]))
        return kept


def pass_cells(data: "Data", rank: int, policy: Policy = DEFAULT) -> float:
    """Return the cost of a pass of a rank, in cells times classes of records."""
    each_level, each_pass = policy.pass_overhead
    return (data.cells + each_level * data.layout.size) * rank + each_pass


def child(rng: np.random.Generator) -> np.random.Generator:
    """A new generator, seeded by another."""
    return np.random.default_rng(int(rng.integers(2**62)))


def _freeze(draws: Sequence[Draw]) -> dict[str, Any]:
    """The draws of one chain as arrays."""
    stacked = [(draw.model.stacked, draw.mean.stacked) for draw in draws]
    own = np.array([draw.concentrations for draw in draws])
    levels = list(draws[0].model.layout.levels)
    return {"levels": levels, "models": np.array(stacked), "concentrations": own}


def _thaw(entry: Mapping[str, Any]) -> list[Draw]:
    """The draws that were frozen."""
    model = partial(Model.from_stacked, Layout(tuple(entry["levels"])))
    pairs = zip(entry["models"], entry["concentrations"], strict=True)
    return [Draw(model(drawn), own, model(mean)) for (drawn, mean), own in pairs]
