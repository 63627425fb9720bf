"""Posterior mean: the one model that answers, made of the kept sweeps of a sampler.

The classes of all sweeps are merged into few, fitted to the records for two passes that stay near,
and moved towards the tables of two variables that the records show. The draws that bounds rest on
are spread by what these tables demand.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from rejoint.arrays import FloatArray
from rejoint.estimation.blocks import BlockTables, Candidates
from rejoint.estimation.data import Data
from rejoint.estimation.gibbs import Draw
from rejoint.estimation.pair_shift import (
    LevelGroups,
    Misfit,
    PairTables,
    Target,
    count_pairs,
    model_tables,
    one_hot,
    shift,
)
from rejoint.estimation.policy import DEFAULT, Policy
from rejoint.model import Model, Observed
from rejoint.pmf.compact import compact
from rejoint.pmf.draws import draw_room
from rejoint.queries.mixture import Mixture

#: Rounds that scale the shares of one variable, and then the columns, of a draw.
ROUNDS = 4

#: Numbers in the block of records that shares are drawn from.
BLOCK_NUMBERS = 4_000_000


@dataclass(frozen=True)
class Anchors:
    """How near what answers stays to the mean of the draws.

    Parameters
    ----------
    passes : float
        Weight of the mean as the prior of the passes over the records, in multiples of these.
    pairs : float
        Weight of the model as its own prior while it is moved towards tables, in records.
    blocks : float
        By how much blocks have raised the log-likelihood of a held-out record.
    """

    passes: float
    pairs: float
    blocks: float = 0.0


@dataclass(frozen=True, eq=False)
class Shifted:
    """A model that was moved towards the tables of the records.

    Parameters
    ----------
    model : Observed
        What answers.
    groups : LevelGroups
        Levels of the tables.
    tables : PairTables
        Tables of the records.
    target : Target, optional
        What the model was moved to; None where it was not to be moved.
    distance : float
        How far: total variation of a table, on average.
    blocks : BlockTables
        Variables that depend on each other beyond the classes of the model before it was moved.
    """

    model: Observed
    groups: LevelGroups
    tables: PairTables
    blocks: BlockTables
    target: Target | None = None
    distance: float = 0.0

    @cached_property
    def mixture(self) -> Mixture:
        """The model with its blocks."""
        return self.blocks.add_to(self.model)

    @property
    def misfit(self) -> Misfit:
        """How far the tables of the records are from those of the model, within blocks as there."""
        groups, mixture = self.groups, self.mixture
        layout, shares = groups.layout, model_tables(groups.merge(self.model))
        for i, j in (p for block in mixture.blocks for p in combinations(block.members, 2)):
            rows, columns = (layout.rows(groups.variables.index(n)) for n in (i, j))
            to_rows, to_columns = (
                groups.sums[own][:, self.model.layout.rows(n)]
                for own, n in ((rows, i), (columns, j))
            )
            table = to_rows @ mixture.tabulate([i, j]) @ to_columns.T
            shares[rows, columns], shares[columns, rows] = table, table.T
        return Misfit.of(self.tables, shares)

    def widening(self, variables: int) -> FloatArray:
        """By how much the variance of draws of each variable must grow, (N,).

        What the records ask for, and what is left of the misfit of its tables, in units of what
        draws spend on these; tables within a block have their own noise.
        """
        target, misfit = self.target, self.misfit
        assert target is not None
        inside = np.zeros(misfit.statistic.shape, dtype=bool)
        for places in self.blocks.places(self.groups):
            inside[np.ix_(places, places)] = True
        beyond = (self.tables.records > 0) & ~inside
        excess = np.maximum(misfit.statistic - misfit.freedom, 0.0) * beyond
        own = target.widening(inside) + excess.sum(axis=1) / np.maximum(target.spent, 1e-300)
        factor = np.full(variables, own.mean())
        factor[list(self.groups.variables)] = own
        return factor


def posterior_mean(
    data: Data, members: Sequence[Model], first: Model, most: int, passes: int, weight: float
) -> Observed:
    """Return one model of at most ``most`` classes near the mean of many, fitted to the records.

    Merging starts at the classes of ``first``; the EM passes over the records that follow have the
    merged mean as their prior, which counts as ``weight`` times the records.
    """
    model = compact(members, first, most)
    layout, mass = model.layout, weight * data.total * model.weights
    moved = model
    for _ in range(passes):
        found = data.expect(moved)
        classes = found.classes + mass
        levels = found.levels + mass * model.factors
        moved = Model(layout, classes / classes.sum(), layout.normalize(levels))
    return data.observed(moved)


def shift_to_pairs(
    data: Data,
    model: Observed,
    draws: Sequence[Observed],
    anchors: Sequence[float],
    policy: Policy = DEFAULT,
) -> Iterator[Shifted]:
    """Move a model towards the tables of two variables, for one weight of itself after the other.

    Each move starts where the one before has ended; without weights the model is not moved.
    """
    records = data.sample().records
    groups = LevelGroups.of(records, policy)
    tables = count_pairs(records, groups, np.random.default_rng(0), policy)
    room = draw_room(max((draw.rank for draw in draws), default=1)) - len(model.stacked)
    blocks = BlockTables.of(records, Candidates(groups, tables, model), room, policy)
    if len(groups.variables) < 2 or not anchors:
        yield Shifted(model, groups, tables, blocks)
        return
    merged, tabled = groups.merge(model), tables.without(blocks.places(groups))
    before, cells = model_tables(merged), len(groups.variables) * (len(groups.variables) - 1)
    target = Target.of(groups, tabled, merged, [groups.merge(draw) for draw in draws])
    after, steps = merged, policy.pair_steps // min(len(anchors), 2)
    for weight in anchors:
        after = shift(target.tables, merged, after, weight, steps, policy)
        moved = groups.spread(model, merged, after)
        # Total variation of a table, on average.
        distance = float(np.abs(before - model_tables(after)).sum()) / 2 / cells
        yield Shifted(moved, groups, tables, blocks, target, distance)


def spread_draws(data: Data, draws: Sequence[Draw], shifted: Shifted) -> list[Observed]:
    """Return the draws as far apart as the records demand.

    Where the model misfits, draws are too near to each other in how variables depend: weights and
    columns are drawn again, given the classes of the records, with a variance that spends the
    degrees of freedom which the misfit asks for. Shares of single variables, which the model meets,
    vary as shares that are counted in as many records do. (Bounds are centered on the answer, so
    that draws need not be moved.)
    """
    rng, target = np.random.default_rng(0), shifted.target
    if target is None:
        return [data.observed(draw.model) for draw in draws]
    models = [draw.model for draw in draws]
    factor = shifted.widening(len(data.layout.levels))
    if (factor > 1.0).any():
        models = [resample(data, draw, factor, rng) for draw in draws]
    shares = draw_shares(data, shifted.model, len(draws), rng)
    seen = [data.observed(model) for model in models]
    return [rake_margins(model, own) for model, own in zip(seen, shares, strict=True)]


def resample(data: Data, draw: Draw, factor: FloatArray, rng: np.random.Generator) -> Model:
    """Draw weights and columns of a sweep again, variances multiplied by a factor (N,)."""
    layout, mean = data.layout, draw.mean
    # Records of a class that hold a variable: its share of all that do.
    held = layout.sums(data.level_totals)[:, None] * mean.weights
    strength: FloatArray = layout.expand((held + draw.concentrations[:, None]) / factor[:, None])
    columns = layout.normalize(rng.standard_gamma(strength * mean.factors) + 1e-300)
    weights = rng.dirichlet(np.maximum(data.total * mean.weights / factor.mean(), 1e-3))
    return Model(layout, weights, columns)


def draw_shares(data: Data, model: Observed, count: int, rng: np.random.Generator) -> FloatArray:
    """Draw shares of single variables around a model's: those of records drawn again, (count, L).

    The prior of columns is centered on the shares that the records show. Posterior draws treat this
    center as certain: its pseudo-counts act as further records, and in small samples outnumber the
    records themselves. What is drawn here has the noise of the records alone, the same in all
    variables of a record (the Bayesian bootstrap).
    """
    records, layout = data.sample().records, data.layout
    rows = np.arange(len(records.weight))
    most = max(BLOCK_NUMBERS // max(layout.size, count), 1)
    if len(rows) > most:
        rows = np.sort(rng.choice(rows, most, replace=False))
    weight, codes = records.weight[rows], records.table(rows)
    mass = np.vstack([rng.standard_gamma(weight, (count, len(rows))), weight])
    counted = mass @ one_hot(layout, codes)
    drawn = counted[:-1] + rng.standard_gamma(0.5, (count, layout.size))
    # Half a record more for each level: one that no record shows is uncertain, too.
    noise = drawn / (counted[-1] + 0.5) - 1.0
    noise *= np.sqrt(min(weight.sum() / data.total, 1.0))  # that of some records is larger
    center = model.factors @ model.weights
    return layout.normalize((center * (1.0 + noise)).T).T


def rake_margins(model: Observed, shares: FloatArray) -> Observed:
    """Scale the columns of a model to have these shares of single variables, nearly."""
    layout, columns = model.layout, model.factors
    for _ in range(ROUNDS):
        ratio = shares / np.maximum(columns @ model.weights, 1e-300)
        columns = layout.normalize(columns * ratio[:, None] + 1e-300)
    return Observed(layout, model.weights, columns)
