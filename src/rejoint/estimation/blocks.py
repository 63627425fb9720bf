"""Blocks: variables that stay dependent within classes, tabulated jointly (local dependence).

Two columns that say nearly the same cost a mixture of products multiplicatively many classes. Where
tables of two variables show more dependence than the classes give, their variables form a block
with one interaction that all classes share,

    B_g[x_g, f] = theta_g(x_g) prod_n a_nf(x_n),

found by iterative proportional fitting: within each class the margins stay those of the mixture,
and over all classes the block has a table between that of the records and that of the mixture.
Weights, factors, and tables with at most one member of each block are those of the mixture.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import inf, prod
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln

from rejoint.arrays import FloatArray, IntArray, sum_to
from rejoint.estimation.data import InMemory
from rejoint.estimation.pair_shift import LevelGroups, Misfit, PairTables, model_tables
from rejoint.estimation.policy import DEFAULT, Policy
from rejoint.model import Observed
from rejoint.pmf.draws import choose_carried, draw_room
from rejoint.queries.mixture import Block, BlockLayout, Mixture
from rejoint.queries.tables import khatri_rao
from rejoint.text import cite

if TYPE_CHECKING:
    from rejoint.estimation.posterior_mean import Shifted

#: Records that a model's table may count as: those whose evidence is compared.
PRIOR_RECORDS = np.geomspace(0.5, 1e6, 22)

#: Rounds of proportional fitting, and closing ones that leave the target, both at the most.
ROUNDS, CLOSING = 30, 10

#: How near margins come to what they are scaled to.
TOLERANCE = 1e-6

#: Share of the records that hold each pair of a larger block, from which its pairs guide it.
SHARE_OF_PAIRS = 0.9

#: Records that must hold two variables for these to form a block.
LEAST_RECORDS = 20.0

_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Candidates:
    """Tables of two variables that may show more dependence than a model has.

    Parameters
    ----------
    groups : LevelGroups
        Levels of the tables.
    tables : PairTables
        Tables of the records.
    model : Observed
        A model that was not moved towards these tables.
    """

    groups: LevelGroups
    tables: PairTables
    model: Observed

    @cached_property
    def misfit(self) -> Misfit:
        """How far the tables are from the model's, with the margins of the records."""
        return Misfit.of(self.tables, model_tables(self.groups.merge(self.model)))

    def pair(self, i: int, j: int) -> tuple[FloatArray, FloatArray]:
        """Table of the records, and what the model expects."""
        block = self.tables.layout.rows(i), self.tables.layout.rows(j)
        return self.tables.counts[block], self.misfit.expected[block]

    @cached_property
    def gains(self) -> dict[tuple[int, int], float]:
        """Nats that a table of its own gains over the model's, by pair, the largest first."""
        beyond = np.triu(self.misfit.statistic > self.misfit.freedom, 1)
        gains = {}
        for i, j in np.argwhere(beyond & (self.tables.records >= LEAST_RECORDS)).tolist():
            counts, expected = self.pair(i, j)
            seen = counts > 0.0
            model = expected[seen] / max(expected.sum(), _TINY)
            alone = multinomial_evidence(counts[seen], model)
            gains[i, j] = float(evidence(counts[seen], model).max()) - alone
        return dict(sorted(gains.items(), key=lambda item: -item[1]))

    def gain(self, variables: Sequence[int]) -> float:
        """The largest gain of two of some variables."""
        places = [self.groups.variables.index(n) for n in sorted(variables)]
        return max(self.gains.get(pair, 0.0) for pair in combinations(places, 2))

    def group_rows(self, i: int, j: int, policy: Policy) -> IntArray:
        """Group the levels of a variable by how they depend on another."""
        counts, expected = self.pair(i, j)
        return merge_rows(counts, expected, self.groups.ordered[i], self.tables.weight, policy)

    def layout(self, variables: Sequence[int], policy: Policy) -> BlockLayout:
        """Layout of a block that is given: each member grouped by the partner of largest gain."""
        places, groups = [self.groups.variables.index(n) for n in sorted(variables)], {}
        for i in places:
            others = [j for j in places if j != i]
            best = max(others, key=lambda j: self.gains.get((min(i, j), max(i, j)), 0.0))
            groups[i] = self.group_rows(i, best, policy)
        return self.layout_of(places, groups)

    def layout_of(self, places: Sequence[int], groups: dict[int, IntArray]) -> BlockLayout:
        """Layout of a block over the levels themselves."""
        variables = tuple(self.groups.variables[i] for i in places)
        levels = [self.groups.group_of(n, self.model.layout) for n in variables]
        own = tuple(groups[i][level] for i, level in zip(places, levels, strict=True))
        return BlockLayout(variables, own)


def multinomial_evidence(counts: FloatArray, model: FloatArray) -> float:
    """Log-likelihood of counts under a table, without what depends on the counts alone."""
    return float(counts @ np.log(np.maximum(model, _TINY)))


def evidence(counts: FloatArray, model: FloatArray) -> FloatArray:
    """The same where the table is a Dirichlet variable around the model's, for PRIOR_RECORDS.

    Examples
    --------
    >>> even = np.full(4, 0.25)
    >>> PRIOR_RECORDS[[evidence(np.array([97.0, 1, 1, 1]), even).argmax()]].round(1)
    array([1.])
    """
    mean = np.maximum(PRIOR_RECORDS[:, None] * model, _TINY)
    logs = (gammaln(counts + mean) - gammaln(mean)).sum(axis=1)
    return np.asarray(logs + gammaln(PRIOR_RECORDS) - gammaln(counts.sum() + PRIOR_RECORDS))


def prior_records(counts: FloatArray, model: FloatArray) -> float:
    """Number of records that a model's table counts as, by evidence; infinite where it is right."""
    seen = counts > 0.0
    logs = evidence(counts[seen], model[seen])
    if not seen.any() or multinomial_evidence(counts[seen], model[seen]) >= logs.max():
        return inf
    return float(PRIOR_RECORDS[int(logs.argmax())])


def check_given(data: InMemory, blocks: Sequence[Sequence[int]], groups: LevelGroups) -> None:
    """Raise an error where blocks that are given have variables without tables of pairs."""
    for n in (n for own in blocks for n in own):
        if n not in groups.variables:
            raise ValueError(
                f"blocks: {cite(data.domain.names[n])} has too many levels "
                f"({len(data.domain[n]):,}) to be tabulated with others."
            )


def find_blocks(found: Candidates, room: float, policy: Policy = DEFAULT) -> list[BlockLayout]:
    """Join variables by falling gain, while tables have few enough cells: each, and together."""
    records = found.tables.weight
    most_cells = float(np.clip(policy.block_cells[0] * records, *policy.block_cells[1:]))
    owner = {n: {n} for n in range(len(found.groups.variables))}
    groups: dict[int, IntArray] = {}

    def count_cells(members: set[int]) -> int:
        return prod(int(groups[n].max()) + 1 for n in members)

    for (i, j), gain in found.gains.items():
        if gain < policy.block_nats:
            break
        for n, partner in ((i, j), (j, i)):
            if n not in groups:
                groups[n] = found.group_rows(n, partner, policy)
        if owner[i] is owner[j]:
            continue
        together = owner[i] | owner[j]
        cells = [0 if len(own) < 2 else count_cells(own) for own in (owner[i], owner[j], together)]
        more = cells[2] - cells[0] - cells[1]
        if cells[2] <= most_cells and more <= room:
            room -= more
            owner |= dict.fromkeys(together, together)
    blocks = {id(members): sorted(members) for members in owner.values() if len(members) > 1}
    return [found.layout_of(members, groups) for members in blocks.values()]


def merge_rows(
    counts: FloatArray, expected: FloatArray, ordered: int, records: float, policy: Policy
) -> IntArray:
    """Group the rows of a table that depend alike on its columns; return the group of each.

    The first ``ordered`` rows are merged with neighbors alone. Merging ends where it would lose
    more than one nat for each column, once there are few enough groups.

    Examples
    --------
    >>> counts = np.array([[9.0, 1], [90, 10], [5, 5]])
    >>> merge_rows(counts, np.outer(counts.sum(1), [0.8, 0.2]), 0, 120, DEFAULT)
    array([0, 0, 1])
    """
    most = policy.block_groups[records >= policy.block_records]
    columns, number = counts.shape[1] - 1, len(counts)
    group, alive = np.arange(number), list(range(number))
    counts, expected = counts.copy(), np.maximum(expected, 1e-12)
    chain = ordered if ordered < number or ordered > 1 else 0
    while len(alive) > 2:
        pairs = [
            (a, b)
            for k, a in enumerate(alive)
            for b in (alive[k + 1 : k + 2] if a < chain else alive[k + 1 :])
            if (a < chain) == (b < chain)
        ]
        if not pairs:
            break
        first, second = np.array(pairs).T
        losses = (
            information(counts[first], expected[first])
            + information(counts[second], expected[second])
            - information(counts[first] + counts[second], expected[first] + expected[second])
        )
        least = np.minimum(counts[first].sum(axis=1), counts[second].sum(axis=1))
        k = int(np.argmin(losses + 1e-3 * least))
        if losses[k] > columns and len(alive) <= most:
            break
        a, b = pairs[k]
        counts[a], expected[a] = counts[a] + counts[b], expected[a] + expected[b]
        group[group == b] = a
        alive.remove(b)
    return np.searchsorted(alive, group)


def information(counts: FloatArray, expected: FloatArray) -> FloatArray:
    """Nats by which rows of counts differ from what is expected, (K,)."""
    ratio = np.log(np.maximum(counts, _TINY) / expected)
    return np.asarray(np.where(counts > 0.0, counts * ratio, 0.0).sum(axis=1))


# --- tables of blocks -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BlockCounts:
    """Records by what they hold of a block.

    Parameters
    ----------
    layout : BlockLayout
        The block.
    patterns : array (k_1 + 1, .., k_M + 1)
        Number of records with each combination; the last place of an axis is a missing value.
    """

    layout: BlockLayout
    patterns: FloatArray

    @classmethod
    def of(cls, data: InMemory, layout: BlockLayout) -> "BlockCounts":
        """Count records in memory."""
        table = data.table(np.arange(len(data.weight)))[:, list(layout.members)]
        codes = [
            np.where(column >= 0, group[column], size)
            for column, group, size in zip(table.T, layout.groups, layout.shape, strict=True)
        ]
        shape = tuple(size + 1 for size in layout.shape)
        cells = np.ravel_multi_index(codes, shape)
        counts = np.bincount(cells, data.weight, minlength=prod(shape)).astype(np.float64)
        return cls(layout, counts.reshape(shape))

    @property
    def complete(self) -> FloatArray:
        """Records that hold all members, (k_1, .., k_M)."""
        return self.patterns[(slice(-1),) * self.patterns.ndim]

    def target(self, model: Mixture) -> FloatArray:
        """Table between that of the records and that of the model, (cells,)."""
        own = khatri_rao(member_columns(self.layout, model), model.weights).sum(axis=1)
        table = self.guided((own / own.sum()).reshape(self.layout.shape))
        counts, axes = self.complete, range(table.ndim)
        if not counts.any():
            return np.asarray(table.ravel())
        # Records that hold all members may be other people than the rest: the model is judged by
        # how members depend on each other there, not by how often each level is.
        margins = [sum_to(counts / counts.sum(), axes, [axis]) for axis in axes]
        weight = prior_records(counts.ravel(), rake_to(table, margins).ravel())
        total, target = self.patterns.sum(), table
        for _ in range(ROUNDS if np.isfinite(weight) else 0):
            target = (self.expected(target) + weight * table) / (total + weight)
        return np.asarray(target.ravel())

    def expected(self, table: FloatArray) -> FloatArray:
        """Expected number of records in each cell; those of a pattern are spread as in a table."""
        sums = table
        for axis in range(table.ndim):
            sums = np.concatenate([sums, sums.sum(axis=axis, keepdims=True)], axis=axis)
        ratio = self.patterns / np.maximum(sums, _TINY)
        for axis in range(table.ndim):
            some, missing = np.split(ratio, [-1], axis=axis)
            ratio = some + missing
        return np.asarray(table * ratio)

    def guided(self, table: FloatArray) -> FloatArray:
        """A table of three or more, scaled to pairs, each between records' and its own."""
        axes, total = range(table.ndim), self.patterns.sum()
        pairs = dict[tuple[int, int], FloatArray]()
        for pair in combinations(axes, 2):
            counts = sum_to(self.patterns, axes, pair)[:-1, :-1]
            if table.ndim < 3 or counts.sum() < SHARE_OF_PAIRS * total:
                return table
            model = sum_to(table, axes, pair)
            weight = prior_records(counts.ravel(), model.ravel())
            if np.isfinite(weight):
                model = (counts + weight * model) / (counts.sum() + weight)
            pairs[pair] = model
        for _ in range(ROUNDS):
            for pair, shares in pairs.items():
                others = tuple(axis for axis in axes if axis not in pair)
                ratio = shares / np.maximum(table.sum(axis=others), _TINY)
                table = table * np.expand_dims(ratio, others)
        return table


def member_columns(layout: BlockLayout, model: Mixture) -> list[FloatArray]:
    """Columns of the groups of each member, (k, F)."""
    return [layout.add_up(i, model.factors[n]) for i, n in enumerate(layout.members)]


def rake_to(table: FloatArray, margins: Sequence[FloatArray]) -> FloatArray:
    """Scale a table to margins by iterative proportional fitting.

    Examples
    --------
    >>> rake_to(np.full((2, 2), 0.25), [np.array([0.4, 0.6]), np.array([0.5, 0.5])])
    array([[0.2, 0.2],
           [0.3, 0.3]])
    """
    scaled, columns = table[..., None], [margin[:, None] for margin in margins]
    for _ in range(ROUNDS):
        scaled, _ = scale_margins(scaled, columns)
    return scaled[..., 0]


def fit_block(layout: BlockLayout, model: Mixture, target: FloatArray) -> Block:
    """Table of a block nearest to a mixture's that has its margins in each class, and a target.

    Examples
    --------
    >>> layout = BlockLayout((0, 1), (np.arange(2), np.arange(2)))
    >>> even = Mixture(np.ones(1), {0: np.full((2, 1), 0.5), 1: np.full((2, 1), 0.5)})
    >>> fit_block(layout, even, np.array([0.5, 0, 0, 0.5])).table.ravel()
    array([0.5, 0. , 0. , 0.5])
    """
    columns, rank = member_columns(layout, model), len(model.weights)
    margins = [column * model.weights for column in columns]
    wanted = rake_to(target.reshape(layout.shape), [margin.sum(axis=1) for margin in margins])
    start = khatri_rao(columns, np.maximum(model.weights, _TINY))
    table = start.reshape(*layout.shape, rank)
    for _ in range(ROUNDS):
        now = table.sum(axis=-1)
        table = table * (wanted / np.maximum(now, _TINY))[..., None]
        table, off = scale_margins(table, margins)
        if max(off, float(np.abs(now - wanted).max())) < TOLERANCE:
            break
    for _ in range(CLOSING):
        table, off = scale_margins(table, margins)
        if off < TOLERANCE:
            break
    shares = table.reshape(layout.size, rank)
    total = shares.sum(axis=0)
    return Block(layout, np.where(total > 0.0, shares / np.maximum(total, _TINY), start))


def scale_margins(table: FloatArray, margins: Sequence[FloatArray]) -> tuple[FloatArray, float]:
    """Scale a table (k_1, .., F) to margins (k_i, F) in turn; return how far off they were."""
    off, axes = 0.0, range(len(margins))
    for axis, margin in enumerate(margins):
        sums = table.sum(axis=tuple(other for other in axes if other != axis))
        off = max(off, float(np.abs(sums - margin).max()))
        shape = [1] * len(margins) + [margin.shape[1]]
        shape[axis] = len(margin)
        table = table * (margin / np.maximum(sums, _TINY)).reshape(shape)
    return table, off


def with_blocks(
    model: Mixture, layouts: Sequence[BlockLayout], targets: Sequence[FloatArray]
) -> Mixture:
    """The mixture with blocks; its factors become their margins, which they are nearly already."""
    factors, blocks = dict(model.factors), list[Block]()
    for layout, target in zip(layouts, targets, strict=True):
        block = fit_block(layout, model, target / target.sum())
        blocks.append(block)
        for i, n in enumerate(layout.members):
            share = layout.within(i, model.factors[n])
            factors[n] = share * block.margin([n])[layout.groups[i]]
    return Mixture(model.weights, factors, tuple(blocks))


# --- what answers ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BlockFit:
    """What answers, with blocks, and its draws.

    Parameters
    ----------
    model : Mixture
        The model with blocks.
    counts : sequence of BlockCounts
        Records of each block.
    targets : sequence of array (cells,)
        Table of each block over all classes.
    gains : sequence of float
        Nats that each gains over the classes alone.
    draws : sequence of Mixture, optional
        Posterior draws with blocks; None where there were none.
    """

    model: Mixture
    counts: Sequence[BlockCounts] = ()
    targets: Sequence[FloatArray] = ()
    gains: Sequence[float] = ()
    draws: Sequence[Mixture] | None = None

    def follow(self, draws: Sequence[Observed]) -> "BlockFit":
        """Give draws the blocks of the model, their tables with the noise of as many records."""
        layouts, rng = [own.layout for own in self.counts], np.random.default_rng(0)
        rows = len(self.model.stacked)
        size = rows * max((draw.rank for draw in draws), default=1)
        several = list[Mixture]()
        for k in choose_carried(len(draws), size, len(self.model.factors)):
            around = [
                rng.standard_gamma((own.complete.sum() + 1.0) * target) + _TINY
                for own, target in zip(self.counts, self.targets, strict=True)
            ]
            several.append(with_blocks(Mixture.of(draws[k]), layouts, around))
        return replace(self, draws=several)


def add_blocks(data: InMemory, shifted: "Shifted", rank: int, policy: Policy = DEFAULT) -> BlockFit:
    """Find the blocks of records, or take those that are given, and fit what answers to them.

    ``rank`` is the largest one of posterior draws, which must have room for the tables.
    """
    model = Mixture.of(shifted.model)
    if policy.blocks is False:
        return BlockFit(model)
    candidates = Candidates(shifted.groups, shifted.tables, shifted.unmoved)
    if policy.blocks == "auto":
        layouts = find_blocks(candidates, draw_room(rank) - len(model.stacked), policy)
    else:
        check_given(data, policy.blocks, shifted.groups)
        layouts = [candidates.layout(members, policy) for members in policy.blocks]
    counts = [BlockCounts.of(data, layout) for layout in layouts]
    targets = [own.target(Mixture.of(shifted.unmoved)) for own in counts]
    gains = [candidates.gain(layout.members) for layout in layouts]
    return BlockFit(with_blocks(model, layouts, targets), counts, targets, gains)
