"""Blocks in place: dependence within blocks that passes allow for while classes are fitted.

Classes need not explain then what blocks do: copies, one-hot groups, skips. Blocks are found
by turns with classes, before the rank is chosen.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import inf, prod
from typing import Any

import numpy as np

from rejoint.arrays import Codes, FloatArray
from rejoint.estimation.blocks import (
    BlockTables,
    Candidates,
    fit_block,
    member_columns,
    scale_columns,
    scaled_table,
)
from rejoint.estimation.data import Expected, InMemory
from rejoint.estimation.folds import Fold, make_folds
from rejoint.estimation.gibbs import Bayes
from rejoint.estimation.pair_shift import LevelGroups, count_pairs
from rejoint.estimation.policy import DEFAULT, Policy
from rejoint.estimation.starts import independence, random_model
from rejoint.model import Layout, Observed
from rejoint.queries.mixture import Block, BlockLayout, Mixture, pattern_codes

#: Rounds that scale an interaction to the columns of classes, at the most, and how near they come.
SCALINGS, SCALED = 4, 1e-2

#: Ranks of the chains that take turns with searches for blocks in place, their sweeps, and parts
#: of the records, of which one is held out.
RANKS, SWEEPS, FOLDS = (1, 2, 4, 8), 20, 5

#: Ranks at which held-out records judge blocks, and by how many standard errors these must be
#: better at the first one and may be worse at the others: of CAR they are 4.0 better and 2.4 at
#: rank 16, of MUSHROOM, whose classes explain all, 16.6 better and then 4.8 worse.
JUDGED_RANKS, LEAST_GAIN, MOST_LOSS = (4, 8, 16, 48), 3.0, 2.0

#: Range of interactions in place: columns of classes that slightly disagree are met slowly beyond.
ODDS = 1e-3, 1e3


@dataclass(frozen=True, eq=False)
class Interactions:
    """Dependence within blocks that all classes share, while weights and columns are fitted.

    Classes need not explain it then. Given the class, the block has its columns as margins: the
    M-step of EM, and the draws of a sampler, are those of independent variables.
    """

    layouts: Sequence[BlockLayout]
    tables: Sequence[FloatArray]

    def codes(self, codes: Any) -> Codes:
        """Codes of records, each block a further variable."""
        return pattern_codes(self.layouts, codes)

    def mixture(self, model: Observed) -> Mixture:
        """The mixture with blocks: the interactions, scaled to the columns of each class."""
        mixture, blocks = Mixture.of(model), list[Block]()
        for layout, interaction in zip(self.layouts, self.tables, strict=True):
            columns = member_columns(layout, mixture)
            scales, _ = scale_columns(interaction, columns, SCALINGS, SCALED, columns)
            blocks.append(Block(layout, scaled_table(interaction, scales)))
        return mixture._replace(blocks=tuple(blocks))

    def expand(self, model: Observed) -> Observed:
        """The model whose further variables are the blocks."""
        factors = self.mixture(model).record_factors()
        return Observed(Layout(tuple(map(len, factors))), model.weights, np.vstack(factors))

    def level_counts(self, found: Expected, layout: Layout) -> Expected:
        """Counts of the levels themselves, from those of patterns."""
        levels, first = np.array(found.levels[: layout.size]), layout.size
        for block in self.layouts:
            shape = [size + 1 for size in block.shape]
            last = first + prod(shape)
            cells, first = found.levels[first:last].reshape(*shape, -1), last
            for i, (n, group) in enumerate(zip(block.members, block.groups, strict=True)):
                if block.shape[i] == len(group):
                    others = tuple(axis for axis in range(len(shape)) if axis != i)
                    levels[layout.rows(n)] = cells.sum(axis=others)[group]
        return found.with_levels(levels)


def place_blocks(data: InMemory, policy: Policy = DEFAULT) -> InMemory:
    """Data whose passes allow for the blocks that are given, or that few classes show plainly.

    Short chains of growing rank and searches for blocks take turns, each with what the other has
    found: so what a block explains is not explained by classes, and the other way around. Blocks
    that are found stay where held-out records are more probable by them with few classes, and not
    less probable with more.
    """
    rng = np.random.default_rng(0)
    fold = next(make_folds(data, FOLDS, rng), None)
    # A block of two variables that are all there are would leave nothing to classes.
    if policy.blocks is False or len(data.domain) < 3 or fold is None:
        return data
    fold = fold.limit(policy.learn_rows, policy.judge_rows, rng)
    learn = fold.learn
    groups = LevelGroups.of(learn.records, policy)
    pairs = count_pairs(learn.records, groups, rng, policy)
    for rank in RANKS:
        model = brief_chain(learn, rank, policy)
        least = policy.placed_nats * pairs.weight
        tables = BlockTables.of(learn, Candidates(groups, pairs, model), inf, policy, least)
        mixture, parts = Mixture.of(model), zip(tables.layouts, tables.targets, strict=True)
        own = [np.clip(fit_block(layout, mixture, t)[1], *ODDS) for layout, t in parts]
        learn = replace(learn, blocks=Interactions(tables.layouts, own) if own else None)
    if learn.blocks is not None and policy.blocks == "auto":
        gains = [blocks_gain(fold, learn.blocks, rank, policy) for rank in JUDGED_RANKS]
        if gains[0] < LEAST_GAIN or min(gains) < -MOST_LOSS:
            return data
    return replace(data, blocks=learn.blocks)


def blocks_gain(fold: Fold, blocks: Interactions, rank: int, policy: Policy) -> float:
    """By how many standard errors blocks in place make held-out records more probable."""
    logs = []
    for way in (blocks, None):
        model = brief_chain(replace(fold.learn, blocks=way), rank, policy)
        logs.append(replace(fold.judge, blocks=way).log_prob(model))
    gains = logs[0] - logs[1]
    total = fold.mass @ gains
    apart = gains - total / fold.mass.sum()
    return float(total / np.sqrt(max(fold.spread @ apart**2, 1e-300)))


def brief_chain(data: InMemory, rank: int, policy: Policy) -> Observed:
    """Model of the last sweep of a short chain from a random start."""
    rng = np.random.default_rng(rank)
    if rank == 1:
        return data.observed(independence(data))
    start = random_model(data, rank, rng)
    chain = Bayes(policy=policy).chain(data, start, rng)
    return data.observed(next(islice(chain, SWEEPS, None)).mean)
