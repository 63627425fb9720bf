"""Bayes: posterior draws of the joint by Gibbs sampling, from several chains.

A sweep draws the classes of the records, then weights, columns and concentrations. Missing values
need no imputation: given the class, a missing value says nothing about the factors, so that
drawing it would only add noise.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from rejoint.check import check_positive_int
from rejoint.estimation.policy import DEFAULT, Policy
from rejoint.estimation.priors import first_concentrations, log_evidence_of_counts, log_hyperprior
from rejoint.messages import Countdown
from rejoint.model import FloatArray, Layout, Model
from rejoint.solver.checkpoint import digest
from rejoint.solver.session import Session

if TYPE_CHECKING:
    from rejoint.estimation.data import Data

#: Tables that are looked at, and levels of each variable.
TABLES, LEVELS = 30, 10


def describe_effective_draws(chains: Sequence[Sequence[Model]]) -> str:
    """How many independent draws those of some chains are worth, in words.

    Chains may differ in length and in classes.

    Examples
    --------
    >>> models = [Model.of([a, 1 - a], [np.eye(2)]) for a in np.linspace(0.4, 0.6, 20)]
    >>> describe_effective_draws([models])
    'worth about 3 independent ones for tables of two variables, 3 for the weights of classes'
    """
    tables = 0.0
    for length in {len(chain) for chain in chains}:
        alike = [chain for chain in chains if len(chain) == length]
        cells = np.array([pair_cells(draw) for chain in alike for draw in chain])
        tables += effective_draws(cells, len(alike))
    weights = sum(effective_draws(np.array([d.weights for d in chain]), 1) for chain in chains)
    return (
        f"worth about {tables:.0f} independent ones for tables of two variables, "
        f"{weights:.0f} for the weights of classes"
    )


def pair_cells(draw: Model) -> FloatArray:
    """Cells of tables of neighboring variables."""
    parts = [part[:LEVELS] for part in draw.parts]
    pairs = list(zip(parts, parts[1:] or parts, strict=False))[:TABLES]
    return np.concatenate([((a * draw.weights) @ b.T).ravel() for a, b in pairs])


def effective_draws(values: FloatArray, chains: int) -> float:
    """Draws over the autocorrelation time that all quantities (draws, quantities) have on average.

    Autocorrelations are added up so long as the sum of two neighbors is positive (Geyer).

    Examples
    --------
    >>> apart = np.random.default_rng(0).standard_normal((400, 50))
    >>> round(effective_draws(apart, 2), -2), round(effective_draws(np.repeat(apart, 4, 0), 2), -2)
    (400.0, 400.0)
    """
    count = len(values)
    moved = values - values.mean(axis=0)
    spread = np.sqrt(np.mean(moved**2, axis=0))
    varied = spread > 1e-12 * np.abs(values).max(axis=0)
    if not varied.any():
        return float(count)
    series = (moved[:, varied] / spread[varied]).reshape(chains, count // chains, -1)
    length = series.shape[1]
    alike = [float(np.sum(series[:, k:] * series[:, : length - k])) for k in range(length)]
    total = -1.0
    for k in range(0, length - 1, 2):
        pair = (alike[k] + alike[k + 1]) / alike[0]
        if pair <= 0:
            break
        total += 2 * pair
    return count / max(total, 1.0)


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
class ChainPlan:
    """Chains that an answer is made of: how many, how long, of what rank and from where.

    Parameters
    ----------
    rank : int
        Number of classes.
    sweeps : int
        Sweeps of each chain.
    chains : int
        Number of chains.
    at_mode : bool
        Whether they start at the mode of their rank; at random otherwise.
    by_mode : bool
        Whether the representative model answers in place of their mean; they give the bounds.
    anchor : float, optional
        Weight of their mean as the prior of the last passes, in multiples of the records; by
        default the first one of the policy.
    beside : tuple of ChainPlan
        Chains from random starts of other ranks that answer together with these.

    Examples
    --------
    >>> plan = ChainPlan.from_random(50, 20, 8)
    >>> plan.kept, len(plan.kept) * plan.chains
    (range(11, 20, 2), 40)
    """

    rank: int
    sweeps: int
    chains: int
    at_mode: bool
    by_mode: bool = False
    anchor: float | None = None
    beside: tuple["ChainPlan", ...] = ()

    @classmethod
    def from_random(cls, rank: int, sweeps: int, chains: int) -> "ChainPlan":
        """Chains from random starts."""
        return cls(rank, sweeps, chains, False)

    @classmethod
    def from_mode(cls, rank: int, sweeps: int, chains: int) -> "ChainPlan":
        """Chains from the mode of their rank."""
        return cls(rank, sweeps, chains, True)

    @property
    def kept(self) -> range:
        """Sweeps, counted from 0, whose draws are kept: 40 or so of all chains together.

        Chains from random starts keep the last 40 % of their sweeps, those from a mode 70 %.
        """
        late = round((0.7 if self.at_mode else 0.4) * self.sweeps)
        count = min(-(-40 // self.chains), late + 1)
        thin = max(round(late / max(count - 1, 1)), 1)
        first = max(self.sweeps - 1 - (count - 1) * thin, 0)
        return range(first, self.sweeps, thin)

    def for_bounds(self, policy: Policy) -> "ChainPlan | None":
        """Chains of more classes that bounds rest on; none where these chains have enough.

        A mode leaves out classes that are not worth their parameters; bounds allow for them, as
        chains of other ranks do.

        Examples
        --------
        >>> ChainPlan.from_mode(6, 160, 8).for_bounds(DEFAULT).rank
        9
        """
        rank = int(policy.bounds_classes * self.rank)
        few = self.at_mode and not self.beside and self.rank <= policy.largest_best
        if not few or not self.rank < rank <= policy.most_classes:
            return None
        return replace(self, rank=rank, chains=min(self.chains, policy.few_chains))

    def freeze(self) -> dict[str, str]:
        """The plan as a checkpoint keeps it."""
        return {"plan": json.dumps(asdict(self))}

    @classmethod
    def thaw(cls, entry: Mapping[str, Any]) -> "ChainPlan":
        """The plan that was kept.

        Examples
        --------
        >>> plan = ChainPlan(6, 160, 8, True, beside=(ChainPlan.from_random(9, 80, 8),))
        >>> ChainPlan.thaw(plan.freeze()) == plan
        True
        """

        def read(found: dict[str, Any]) -> "ChainPlan":
            return cls(**found | {"beside": tuple(map(read, found["beside"]))})

        return read(json.loads(entry["plan"]))

    def solver(self, policy: Policy) -> "Bayes":
        """The sampler of these chains."""
        kept = self.kept
        return Bayes(self.chains, kept.start, len(kept), kept.step, policy=policy)


@dataclass(frozen=True)
class ChainState:
    """Where a sampler stands: the chain, its sweep, its last draw, and all draws kept so far."""

    chain: int = 0
    sweep: int = 0
    last: Draw | None = None
    kept: tuple[Draw, ...] = ()
    rng: str = ""


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

    def advance(self, problem: "Data", model: Model, sweeps: int, rng: np.random.Generator) -> Draw:
        """Return the draw of a chain from a model after some sweeps."""
        return next(islice(self.chain(problem, model, rng), sweeps - 1, None))

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
        offer: Callable[[tuple[Draw, ...]], Any] | None = None,
    ) -> tuple[Draw, ...]:
        """Draws of all chains, one chain after another.

        Where the fit is interrupted, ``offer`` makes its result of the draws so far.
        """
        rng, checkpoint = session.rng, session.checkpoint
        key, state = "", ChainState()
        if checkpoint.active:
            key = digest("chains", problem.fingerprint, self, tuple(starts), rng)
            state = checkpoint.parse(key, lambda entry: _thaw(entry, rng)) or state
        if concentrations is None:
            concentrations = first_concentrations(problem, self.policy)
        if offer is not None:
            make = offer
            session.offer(lambda: make(state.kept))
        length = self.burn_in + (self.draws - 1) * self.thin + 1
        countdown = Countdown(len(starts) * length, state.chain * length + state.sweep)
        saved = state

        def keep() -> None:
            nonlocal saved
            if state is not saved and checkpoint.active:
                checkpoint.put(key, _freeze(state))
                saved = state

        try:
            while state.chain < len(starts):
                number, sweep = state.chain, state.sweep
                if sweep == length:
                    state = replace(state, chain=number + 1, sweep=0, last=None)
                    keep()
                    continue
                model = starts[number]
                draw = self.step(problem, state.last or Draw(model, concentrations, model), rng)
                late = sweep - self.burn_in
                kept = (*state.kept, draw) if late >= 0 and late % self.thin == 0 else state.kept
                text = json.dumps(rng.bit_generator.state, default=_plain) if key else ""
                # One assignment, which Ctrl-C cannot divide.
                state = ChainState(number, sweep + 1, draw, kept, text)
                if checkpoint.due:
                    keep()
                left = countdown.tell(number * length + sweep + 1)
                line = f"chain {number + 1} of {len(starts)}, draw {sweep + 1} of {length}"
                session.report(line + left)
        finally:
            keep()
        return state.kept


def _freeze(state: ChainState) -> dict[str, Any]:
    """A state as flat arrays: chains may have different numbers of classes."""
    draws = (*state.kept, *([state.last] if state.last is not None else []))
    stacked = [draw.model.stacked for draw in draws]
    means = [draw.mean.stacked for draw in draws]
    return {
        "chain": state.chain,
        "sweep": state.sweep,
        "rng": state.rng,
        "kept": len(state.kept),
        "levels": list(draws[0].model.layout.levels) if draws else [],
        "ranks": np.array([block.shape[1] for block in stacked], dtype=np.int64),
        "models": _flat(stacked),
        "means": _flat(means),
        "concentrations": np.array([draw.concentrations for draw in draws]),
    }


def _flat(blocks: Sequence[FloatArray]) -> FloatArray:
    return np.concatenate([np.empty(0), *(block.ravel() for block in blocks)])


def _thaw(entry: Mapping[str, Any], rng: np.random.Generator) -> ChainState:
    """The state that was frozen; ``rng`` is set to where it was."""
    layout, ranks = Layout(tuple(entry["levels"])), entry["ranks"]
    rows = 1 + layout.size if layout.levels else 1

    def models(flat: FloatArray) -> list[Model]:
        blocks = np.split(flat, np.cumsum(ranks * rows)[:-1]) if len(ranks) else []
        return [Model.from_stacked(layout, block.reshape(rows, -1)) for block in blocks]

    drawn = models(entry["models"]), entry["concentrations"], models(entry["means"])
    draws = [Draw(*parts) for parts in zip(*drawn, strict=True)]
    if entry["rng"]:
        rng.bit_generator.state = json.loads(entry["rng"], object_hook=_exact)
    kept = entry["kept"]
    last = draws[kept] if len(draws) > kept else None
    return ChainState(entry["chain"], entry["sweep"], last, tuple(draws[:kept]), entry["rng"])


def _plain(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    """An array in the state of a bit generator, as JSON has it."""
    return {"list": array.tolist(), "type": array.dtype.str}


def _exact(found: dict[str, Any]) -> Any:
    return np.array(found["list"], dtype=found["type"]) if "list" in found else found
