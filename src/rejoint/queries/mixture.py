"""Mixture: a mixture of products whose blocks of variables are tabulated jointly in each class.

    P(x) = sum_f w_f prod_g B_g[x_g, f]

A variable that is in no block is a block of one, its table the factor ``A_n``. A block of several
keeps a table of *groups* of the levels of its members; within a group, a level is independent of
the other members given the class, so that with ``c_n`` the group of level ``x_n``

    B_g[x_g, f] = T_g[c_g, f] prod_n A_n[x_n, f] / sum_{i in c_n} A_n[i, f],

where ``A_n`` is the margin of ``B_g``. Evidence leaves this form as it is: it changes the weights,
the factors and the tables of the blocks that it touches.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log, prod
from typing import Any, NamedTuple

import numpy as np
from scipy.special import entr

from rejoint.arrays import BoolArray, Codes, FloatArray, IntArray
from rejoint.kernels import SparseCodes
from rejoint.model import Model
from rejoint.queries.evidence import (
    Likelihoods,
    ZeroEvidenceError,
    class_posterior,
    conditional_factor,
    explain_zero,
    log_sum,
)
from rejoint.queries.log_prob import draw_codes, draw_from_columns, posteriors
from rejoint.queries.modes import TIE, Found, most_probable
from rejoint.queries.tables import MAX_CELLS, joint_table, khatri_rao
from rejoint.text import format_count, plural

Factors = Mapping[int, FloatArray]

#: How far the margin of a table may be from the factor that it stands for.
MARGIN_TOLERANCE = 1e-5


@dataclass(frozen=True, eq=False)
class BlockLayout:
    """Which variables a block tabulates jointly, and by which groups of their levels.

    Parameters
    ----------
    members : tuple of int
        Positions of two variables or more.
    groups : tuple of array (I_n,)
        Group of each level of each member, numbered from zero.

    Examples
    --------
    >>> layout = BlockLayout((0, 3), (np.array([0, 1]), np.array([0, 1, 1])))
    >>> layout.shape, layout.size
    ((2, 2), 4)
    """

    members: tuple[int, ...]
    groups: tuple[IntArray, ...]

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Number of groups of each member."""
        return tuple(int(group.max()) + 1 for group in self.groups)

    @property
    def size(self) -> int:
        """Number of cells of the table."""
        return prod(self.shape)

    def add_up(self, i: int, levels: FloatArray) -> FloatArray:
        """Sum rows of the levels of a member, (..., I, F), to those of its groups."""
        group = self.groups[i]
        if self.shape[i] == len(group):
            return np.asarray(levels[..., np.argsort(group), :])
        one = (group == np.arange(self.shape[i])[:, None]).astype(np.float64)
        return np.asarray(one @ levels)

    def within(self, i: int, levels: FloatArray) -> FloatArray:
        """Share of each level in its group, (..., I, F); zero where the group has none."""
        total = self.add_up(i, levels)[..., self.groups[i], :]
        return np.divide(levels, total, out=np.zeros_like(total), where=total > 0.0)


@dataclass(frozen=True, eq=False)
class Block:
    """Joint table of some variables within each class.

    Parameters
    ----------
    layout : BlockLayout
        The variables, and the groups of their levels.
    table : array (..., cells, F)
        Probability of each combination of groups in each class; the last member varies fastest.
    """

    layout: BlockLayout
    table: FloatArray

    @property
    def members(self) -> tuple[int, ...]:
        """Positions of its variables."""
        return self.layout.members

    @property
    def cells(self) -> FloatArray:
        """The table with an axis for each member, (..., k_1, .., k_M, F)."""
        lead, rank = self.table.shape[:-2], self.table.shape[-1]
        return self.table.reshape(*lead, *self.layout.shape, rank)

    def axes(self, members: Iterable[int]) -> tuple[int, ...]:
        """Axes of some members in ``cells``, from the end."""
        count = len(self.members)
        return tuple(i - count - 1 for i, n in enumerate(self.members) if n in members)

    def margin(self, kept: Sequence[int], cells: FloatArray | None = None) -> FloatArray:
        """Sum the table over all members but some."""
        others = self.axes(set(self.members) - set(kept))
        return np.asarray((self.cells if cells is None else cells).sum(axis=others))

    def given(
        self, factors: Factors, vectors: Likelihoods
    ) -> tuple[FloatArray, "Block", dict[int, FloatArray]]:
        """Return the probability (..., F) of evidence on members; block and factors given it."""
        cells, layout, kept = self.cells, self.layout, dict[int, FloatArray]()
        for i, n in enumerate(self.members):
            if n in vectors:
                kept[n] = factors[n] * vectors[n][:, None]
                before, after = layout.add_up(i, factors[n]), layout.add_up(i, kept[n])
                ratio = np.divide(after, before, out=np.zeros_like(after), where=before > 0.0)
                cells = cells * self._spread(ratio, i)
        total = cells.sum(axis=self.axes(self.members))
        scale = np.where(total > 0.0, total, 1.0)
        table = cells.reshape(self.table.shape) / scale[..., None, :]
        block = Block(layout, table)
        own = {n: kept.get(n, factors[n]) for n in self.members}
        return total, block, {n: block.levels(own, [n]) for n in self.members}

    def _spread(self, rows: FloatArray, i: int) -> FloatArray:
        """Give rows (..., k_i, F) the axes of ``cells``."""
        count = len(self.members)
        shape = [1] * count
        shape[i] = rows.shape[-2]
        return rows.reshape(*rows.shape[:-2], *shape, rows.shape[-1])

    def levels(self, factors: Factors, asked: Sequence[int]) -> FloatArray:
        """Joint table of the levels of some members, (..., I, .., F), axes as in ``members``."""
        inside = [n for n in self.members if n in asked]
        cells = self.margin(inside)
        for k, n in enumerate(inside):
            i, axis = self.members.index(n), k - len(inside) - 1
            cells = np.take(cells, self.layout.groups[i], axis=axis)
            rows = self.layout.within(i, factors[n])
            shape = [1] * len(inside)
            shape[k] = rows.shape[-2]
            cells = cells * rows.reshape(*rows.shape[:-2], *shape, rows.shape[-1])
        return cells

    def select(self, places: Mapping[int, int]) -> "Block | None":
        """Keep some members, at new positions; None if fewer than two are left."""
        kept = [n for n in self.members if n in places]
        if len(kept) < 2:
            return None
        if len(kept) == len(self.members) and all(places[n] == n for n in kept):
            return self
        groups = tuple(self.layout.groups[self.members.index(n)] for n in kept)
        layout = BlockLayout(tuple(places[n] for n in kept), groups)
        table = self.margin(kept)
        lead = self.table.shape[:-2]
        return Block(layout, table.reshape(*lead, layout.size, self.table.shape[-1]))

    def reorder(self, orders: Mapping[int, IntArray]) -> "Block":
        """Put the levels of members into another order."""
        pairs = zip(self.members, self.layout.groups, strict=True)
        groups = tuple(group[orders[n]] for n, group in pairs)
        return Block(BlockLayout(self.members, groups), self.table)

    def information(self, weights: FloatArray) -> float:
        """Nats that the members tell about each other beyond the classes, by the class on average.

        This is their total correlation; of two members, their mutual information given the class.
        """
        alone = sum(entr(self.margin([n])).sum(axis=0) for n in self.members)
        return float(weights @ (alone - entr(self.table).sum(axis=0)))

    def patterns(self) -> FloatArray:
        """Probability of each combination of groups or missing values, (prod (k + 1), F).

        The number of groups stands for a missing value, which is summed out.
        """
        cells = self.cells
        for axis in self.axes(self.members):
            cells = np.concatenate([cells, cells.sum(axis=axis, keepdims=True)], axis=axis)
        return cells.reshape(-1, cells.shape[-1])


def keep_blocks(blocks: Iterable[Block], places: Mapping[int, int]) -> tuple[Block, ...]:
    """Blocks of two or more of some variables, at new positions; one alone has its factor."""
    return tuple(own for block in blocks if (own := block.select(places)) is not None)


def blocks_among(blocks: Iterable[Block], used: Iterable[int]) -> tuple[Block, ...]:
    """Blocks of two or more of some variables, at their positions."""
    return keep_blocks(blocks, {n: n for n in used})


def split_tables(layouts: Sequence[BlockLayout], rows: FloatArray) -> tuple[Block, ...]:
    """Return the blocks whose tables stand one below the other, (..., cells of all, F)."""
    ends = np.cumsum([0, *(layout.size for layout in layouts)])
    return tuple(
        Block(layout, rows[..., first : first + layout.size, :])
        for layout, first in zip(layouts, ends, strict=False)
    )


class Mixture(NamedTuple):
    """Weights, factors by position and blocks; a stack of models has further axes in front.

    Examples
    --------
    >>> same = Block(BlockLayout((0, 1), (np.arange(2),) * 2), np.array([[0.5], [0], [0], [0.5]]))
    >>> coins = Mixture(np.ones(1), {0: np.full((2, 1), 0.5), 1: np.full((2, 1), 0.5)}, (same,))
    >>> coins.tabulate([1, 0])
    array([[0.5, 0. ],
           [0. , 0.5]])
    >>> float(coins.prob({0: np.array([1.0, 0.0]), 1: np.array([0.0, 1.0])}))
    0.0
    """

    weights: FloatArray
    factors: Factors
    blocks: tuple[Block, ...] = ()

    @classmethod
    def of(cls, model: Model) -> "Mixture":
        """A mixture without blocks."""
        return cls(model.weights, dict(enumerate(model.parts)))

    @classmethod
    def from_stacked(
        cls, rows: FloatArray, levels: Sequence[int], layouts: Sequence[BlockLayout] = ()
    ) -> "Mixture":
        """Views of weights, factors and tables, one below the other: (..., 1 + L + cells, F)."""
        ends = 1 + np.cumsum([0, *levels])
        factors = {n: rows[..., ends[n] : ends[n + 1], :] for n in range(len(levels))}
        return cls(rows[..., 0, :], factors, split_tables(layouts, rows[..., ends[-1] :, :]))

    def with_blocks(self, blocks: Iterable[Block]) -> "Mixture":
        """Return the mixture with blocks, whose margins its factors become."""
        factors, blocks = dict(self.factors), tuple(blocks)
        for block in blocks:
            for i, n in enumerate(block.members):
                own = block.margin([n])[block.layout.groups[i]]
                factors[n] = block.layout.within(i, factors[n]) * own
        return Mixture(self.weights, factors, blocks)

    def _terms(self, vectors: Likelihoods) -> Iterator[FloatArray]:
        """Yield the probability of evidence within each class, by blocks that hold some of it."""
        alone = set(vectors)
        for block in blocks_among(self.blocks, vectors):
            alone -= set(block.members)
            yield block.given(self.factors, vectors)[0]
        for n in vectors:
            if n in alone:
                yield vectors[n] @ self.factors[n]

    def likelihood(self, vectors: Likelihoods) -> FloatArray:
        """Probability of evidence within each class, (..., F)."""
        return prod(self._terms(vectors), start=np.ones_like(self.weights))

    def log_weights(self, vectors: Likelihoods) -> FloatArray:
        """Logarithm of ``P(class f, evidence)``, (..., F); -inf where a class excludes it."""
        peaks = {n: vector.max() or 1.0 for n, vector in vectors.items()}
        scaled = {n: vector / peaks[n] for n, vector in vectors.items()}
        with np.errstate(divide="ignore"):
            logs = np.log(self.weights) + sum(map(np.log, self._terms(scaled)), start=0.0)
            return np.asarray(logs + sum(map(log, peaks.values())))

    def given(
        self,
        vectors: Likelihoods,
        asked: Iterable[int] | None = None,
        logs: FloatArray | None = None,
    ) -> "Mixture":
        """The mixture given evidence, of which ``asked`` (by default all) will be read.

        ``logs`` are the :meth:`log_weights` of the evidence, where these are known.
        """
        factors, blocks, every = dict(self.factors), list[Block](), self.blocks
        scaled = {n: vector / (vector.max() or 1.0) for n, vector in vectors.items()}
        if asked is not None:
            every = blocks_among(every, {*vectors, *asked})
        for n in scaled if asked is None else scaled.keys() & set(asked):
            factors[n] = conditional_factor(self.factors[n], scaled[n])
        for block in every:
            own = block
            if not scaled.keys().isdisjoint(block.members):
                _, own, margins = block.given(self.factors, scaled)
                factors |= margins
            blocks.append(own)
        logs = self.log_weights(vectors) if logs is None else logs
        return Mixture(class_posterior(logs), factors, tuple(blocks))

    def prob(self, vectors: Likelihoods) -> FloatArray:
        """Probability of evidence."""
        return np.asarray((self.weights * self.likelihood(vectors)).sum(axis=-1))

    def tabulate(
        self,
        axes: Sequence[int],
        events: Likelihoods | None = None,
        kept: Mapping[int, IntArray] | None = None,
    ) -> FloatArray:
        """Joint table of some variables and of events, axes as asked; ``kept`` levels of these."""
        scale, mixture, kept = self.weights, self, kept or {}
        if events:
            scale, mixture = scale * self.likelihood(events), self.given(events, axes)
        shape = {n: len(kept[n]) if n in kept else len(self.factors[n]) for n in axes}
        cells = prod(shape.values())
        if cells > MAX_CELLS:
            raise ValueError(
                f"The table of these {plural(len(axes), 'variable')} would have "
                f"{format_count(cells)} cells, more than the limit of {MAX_CELLS:,} (1 GiB): ask "
                "for fewer variables, or for single probabilities by prob or log_prob."
            )
        parts = mixture.parts(axes, kept)
        order = [n for members, _ in parts for n in members]
        table = joint_table(scale, [part for _, part in parts]).reshape([shape[n] for n in order])
        if order == list(axes):
            return table
        return np.ascontiguousarray(table.transpose([order.index(n) for n in axes]))

    def parts(
        self, axes: Sequence[int], kept: Mapping[int, IntArray] | None = None
    ) -> list[tuple[list[int], FloatArray]]:
        """Return variables that share a block, and their factor (cells, F) of ``kept`` levels."""
        parts, kept = dict[int, tuple[list[int], FloatArray]](), kept or {}
        for n in axes:
            block = next((block for block in self.blocks if n in block.members), None)
            inside = [m for m in block.members if m in axes] if block else [n]
            if inside[0] in parts:
                continue
            if block is None or len(inside) == 1:
                factor = self.factors[n]
                parts[inside[0]] = inside, factor[kept[n]] if n in kept else factor
                continue
            cells = block.levels(self.factors, inside)
            for k, m in enumerate(inside):
                cells = np.take(cells, kept[m], axis=k) if m in kept else cells
            parts[inside[0]] = inside, cells.reshape(-1, len(self.weights))
        return list(parts.values())

    def composite(self, partition: Sequence[Sequence[int]]) -> list[FloatArray]:
        """Factors of composite variables, (cells, F); each block lies within one of them."""
        rank, factors = len(self.weights), []
        for members in partition:
            cells = prod(len(self.factors[n]) for n in members)
            if cells * rank > MAX_CELLS:
                raise ValueError(
                    f"A block of {plural(len(members), 'variable')} has {format_count(cells)} "
                    f"cells for each of {plural(rank, 'class', 'classes')}, more than "
                    f"{MAX_CELLS:,} in all: fit with blocks=False."
                )
            parts = self.parts(members)
            table = khatri_rao([part for _, part in parts], np.ones(rank))
            order = [n for own, _ in parts for n in own]
            table = table.reshape(*(len(self.factors[n]) for n in order), rank)
            table = table.transpose([*(order.index(n) for n in members), len(order)])
            factors.append(np.ascontiguousarray(table).reshape(-1, rank))
        return factors

    def at(self, k: Any) -> "Mixture":
        """One model of a stack, or some."""
        blocks = tuple(Block(block.layout, block.table[k]) for block in self.blocks)
        return Mixture(self.weights[k], {n: a[k] for n, a in self.factors.items()}, blocks)

    def select(self, kept: Sequence[int]) -> "Mixture":
        """Some variables, numbered from zero in the order given."""
        factors = {k: self.factors[n] for k, n in enumerate(kept)}
        places = {n: k for k, n in enumerate(kept)}
        return Mixture(self.weights, factors, keep_blocks(self.blocks, places))

    def reorder(self, orders: Mapping[int, IntArray]) -> "Mixture":
        """Some variables, numbered from zero in the order given, their levels in some order."""
        own, levels = self.select(list(orders)), dict(enumerate(orders.values()))
        factors = {k: factor[..., levels[k], :] for k, factor in own.factors.items()}
        blocks = tuple(block.reorder(levels) for block in own.blocks)
        return Mixture(self.weights, factors, blocks)

    def take(self, classes: Any) -> "Mixture":
        """Some classes, their weights as they are."""
        factors = {n: factor[..., classes] for n, factor in self.factors.items()}
        blocks = tuple(Block(block.layout, block.table[..., classes]) for block in self.blocks)
        return Mixture(self.weights[..., classes], factors, blocks)

    @property
    def stacked(self) -> FloatArray:
        """Weights, factors and tables of blocks, one below the other."""
        tables = (block.table for block in self.blocks)
        rows = [self.weights[..., None, :], *self.factors.values(), *tables]
        return np.concatenate(rows, axis=-2)

    def given_possible(
        self,
        vectors: Likelihoods,
        describe: Callable[[int], str],
        asked: Iterable[int] | None = None,
    ) -> tuple["Mixture", float]:
        """Return the mixture given evidence, and the log probability of the evidence.

        Raises
        ------
        ZeroEvidenceError
            If the evidence has probability zero; it names a smallest set that contradicts itself.
        """
        logs = self.log_weights(vectors)
        if np.isneginf(logs.max()):
            raise ZeroEvidenceError(
                explain_zero([describe(n) for n in self.contradiction(vectors)])
            )
        return self.given(vectors, asked, logs), float(log_sum(logs))

    def contradiction(self, vectors: Likelihoods) -> list[int]:
        """Variables of a smallest set (none can be left out) of evidence that cannot all be true.

        Examples
        --------
        >>> import numpy as np
        >>> yes, no = np.array([1.0, 0.0]), np.array([0.0, 1.0])
        >>> mixture = Mixture(np.full(2, 0.5), dict.fromkeys(range(3), np.eye(2)))
        >>> mixture.contradiction({0: yes, 1: yes, 2: no})
        [1, 2]
        """
        inside = {n for block in self.blocks for n in block.members}
        possible = {n: vectors[n] @ self.factors[n] > 0.0 for n in vectors if n not in inside}
        kept = sorted(vectors)
        for n in tuple(kept):
            rest = [m for m in kept if m != n]
            alive = self.likelihood({m: vectors[m] for m in rest if m in inside}) > 0.0
            for m in rest:
                alive = alive & possible[m] if m in possible else alive
            if not (alive & (self.weights > 0.0)).any():
                kept = rest
        return kept

    def of_records(
        self, codes: Codes | SparseCodes
    ) -> tuple[list[FloatArray], Codes | SparseCodes]:
        """Factors and codes that give records their probability within each class."""
        if self.blocks:
            codes = pattern_codes([block.layout for block in self.blocks], codes)
        return self.record_factors(), codes

    def record_factors(self) -> list[FloatArray]:
        """Factors of the variables, and of each block as a further one."""
        factors = [self.factors[n] for n in range(len(self.factors))]
        for block in self.blocks:
            for i, n in enumerate(block.members):
                factors[n] = block.layout.within(i, factors[n])
            factors.append(block.patterns())
        return factors

    def classes(self, codes: Codes) -> FloatArray:
        """Posterior of the classes of each record, (rows, F)."""
        factors, rows = self.of_records(codes)
        parts = [posterior for _, _, posterior in posteriors(self.weights, factors, rows)]
        return np.concatenate([*parts, np.empty((0, len(self.weights)))])

    def predict(self, codes: Codes, n: int) -> FloatArray:
        """Probability of each level of a variable given the other cells of each row, (rows, I)."""
        hidden = np.array(codes)
        hidden[:, n] = -1
        posterior = self.classes(hidden)
        shares = np.empty((len(hidden), len(self.factors[n])))
        for rows, columns in self._columns(hidden, n):
            shares[rows] = posterior[rows] @ columns.T
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def fill(self, codes: Codes, missing: BoolArray, rng: np.random.Generator) -> Codes:
        """Draw the missing cells of each row jointly: a class, then one variable after another."""
        filled = np.where(missing, -1, codes)
        classes = draw_from_columns(self.classes(filled).T, rng)
        for n in np.flatnonzero(missing.any(axis=0)).tolist():
            cells = np.flatnonzero(missing[:, n])
            for rows, columns in self._columns(filled[cells], n):
                chosen = cells[rows]
                filled[chosen, n] = draw_from_columns(columns[:, classes[chosen]], rng)
        return filled.astype(codes.dtype)

    def _columns(self, codes: Codes, n: int) -> Iterator[tuple[IntArray, FloatArray]]:
        """Rows whose records have the same levels in the block of a variable, and its factor."""
        block = next((block for block in self.blocks if n in block.members), None)
        others = [m for m in block.members if m != n] if block else []
        levels, first = np.unique(codes[:, others], axis=0, return_inverse=True)
        for k, level in enumerate(levels.tolist()):
            eye = {m: np.eye(len(self.factors[m])) for m in others}
            known = {m: eye[m][i] for m, i in zip(others, level, strict=True) if i >= 0}
            columns = self.factors[n]
            if block is not None and known:
                columns = block.given(self.factors, known)[2][n]
            yield np.flatnonzero(first.ravel() == k), columns

    def for_draws(self) -> tuple[list[FloatArray], list[tuple[Block, int]]]:
        """Factors of variables that are independent given the class, to draw records from.

        First come those of the variables. Each block adds its table and, for each group of each
        member, the shares of levels in it; the list tells where its table stands.
        """
        factors, places = [self.factors[n] for n in range(len(self.factors))], []
        for block in self.blocks:
            places.append((block, len(factors)))
            factors.append(block.table)
            for i, n in enumerate(block.members):
                within = block.layout.within(i, self.factors[n])
                groups = block.layout.groups[i]
                factors += [within[groups == k] for k in range(block.layout.shape[i])]
        return factors, places


def pattern_codes(layouts: Iterable[BlockLayout], codes: Codes | SparseCodes) -> Codes:
    """Codes of records with a further column for each block, the pattern of its members.

    The levels of a pattern are combinations of groups and missing values. A member whose groups are
    single levels has no value left: the pattern tells it.
    """
    table = codes.to_codes() if isinstance(codes, SparseCodes) else codes
    columns = [np.asarray(column) for column in table.T]
    for layout in layouts:
        own, seen = np.zeros(len(table), dtype=np.int64), np.zeros(len(table), dtype=bool)
        for n, size, group in zip(layout.members, layout.shape, layout.groups, strict=True):
            column = columns[n]
            own = own * (size + 1) + np.where(column >= 0, group[column], size)
            seen |= column >= 0
            if size == len(group):
                columns[n] = np.full_like(column, -1)
        columns.append(np.where(seen, own, -1))
    return np.column_stack(columns).astype(np.int32)


def draw_records(mixture: Mixture, n: int, rng: np.random.Generator) -> Codes:
    """Draw records of level numbers.

    Examples
    --------
    >>> same = Block(BlockLayout((0, 1), (np.arange(2),) * 2), np.array([[0.5], [0], [0], [0.5]]))
    >>> coins = Mixture(np.ones(1), {0: np.full((2, 1), 0.5), 1: np.full((2, 1), 0.5)}, (same,))
    >>> draw_records(coins, 3, np.random.default_rng(1)).tolist()
    [[0, 0], [1, 1], [1, 1]]
    """
    factors, places = mixture.for_draws()
    wide = max(map(len, factors)) > np.iinfo(np.int16).max
    codes = draw_codes(mixture.weights, factors, n, rng, np.int32 if wide else np.int16)
    found = np.array(codes[:, : len(mixture.factors)]) if places else codes
    for block, first in places:
        layout, own = block.layout, first + 1
        groups = np.unravel_index(codes[:, first], layout.shape)
        for i, member in enumerate(block.members):
            for k in range(layout.shape[i]):
                rows, levels = groups[i] == k, np.flatnonzero(layout.groups[i] == k)
                found[rows, member] = levels[codes[rows, own]]
                own += 1
    return found


def find_mode(mixture: Mixture, asked: Sequence[int], each: bool, max_nodes: int) -> Found:
    """Find the most probable combination of some variables, or that of each by itself."""
    if each:
        singles = [mixture.factors[n] @ mixture.weights for n in asked]
        best = np.array([single.argmax() for single in singles])
        bound = float(np.log(min(single.max() for single in singles)))
        pairs = zip(asked, singles, best, strict=True)
        events = {n: np.eye(len(single))[level] for n, single, level in pairs}
        log_prob = float(log_sum(mixture.log_weights(events)))
        return Found(best, log_prob, max(log_prob, bound), log_prob >= bound - TIE, 0)
    parts = mixture.parts(asked)
    found = most_probable(mixture.weights, [part for _, part in parts], max_nodes)
    places = dict[int, int]()
    for (members, _), level in zip(parts, found.levels.tolist(), strict=True):
        shape = [len(mixture.factors[n]) for n in members]
        places |= zip(members, map(int, np.unravel_index(level, shape)), strict=True)
    return found._replace(levels=np.array([places[n] for n in asked]))


def have_same_layouts(models: Sequence[Sequence[Block]]) -> bool:
    """Return whether models have the same blocks, with the same groups."""
    first = models[0]
    return all(
        len(blocks) == len(first)
        and all(
            a.members == b.members and all(map(np.array_equal, a.layout.groups, b.layout.groups))
            for a, b in zip(first, blocks, strict=True)
        )
        for blocks in models
    )


def partition_of(*models: Mixture) -> list[list[int]]:
    """The finest partition of all variables whose sets hold the blocks of models whole."""
    singles = ((n,) for n in models[0].factors)
    return join_partitions(singles, *([b.members for b in model.blocks] for model in models))


def join_blocks(models: Sequence[Mixture]) -> tuple[Block, ...]:
    """Blocks of the classes of several models together."""
    if have_same_layouts([model.blocks for model in models]):
        pairs = zip(*(model.blocks for model in models), strict=True)
        return tuple(Block(own[0].layout, np.hstack([b.table for b in own])) for own in pairs)
    partition = join_partitions(*([b.members for b in model.blocks] for model in models))
    tables = [np.hstack(own) for own in zip(*(m.composite(partition) for m in models), strict=True)]
    levels = {n: len(factor) for n, factor in models[0].factors.items()}
    return blocks_of_tables(partition, tables, levels)


def blocks_of_tables(
    partition: Sequence[Sequence[int]], tables: Sequence[FloatArray], levels: Mapping[int, int]
) -> tuple[Block, ...]:
    """Blocks whose tables have a cell for each combination of levels."""
    return tuple(
        Block(BlockLayout(tuple(own), tuple(np.arange(levels[n]) for n in own)), table)
        for own, table in zip(partition, tables, strict=True)
    )


def split_composite(
    mixture: Mixture, partition: Sequence[Sequence[int]], shape: Sequence[int]
) -> Mixture:
    """Take composite variables apart: the mixture of the variables themselves.

    Examples
    --------
    >>> whole = Mixture(np.ones(1), {0: np.array([[0.5], [0.0], [0.0], [0.5]])})
    >>> split_composite(whole, [[0, 1]], (2, 2)).tabulate([1, 0])
    array([[0.5, 0. ],
           [0. , 0.5]])
    """
    factors, tables, rank = dict[int, FloatArray](), list[FloatArray](), len(mixture.weights)
    for k, members in enumerate(partition):
        cells = mixture.factors[k].reshape(*(shape[n] for n in members), rank)
        for i, n in enumerate(members):
            others = tuple(j for j in range(len(members)) if j != i)
            factors[n] = cells.sum(axis=others)
        tables.append(mixture.factors[k])
    joint = [(own, table) for own, table in zip(partition, tables, strict=True) if len(own) > 1]
    levels = dict(enumerate(shape))
    blocks = blocks_of_tables([own for own, _ in joint], [table for _, table in joint], levels)
    return Mixture(mixture.weights, dict(sorted(factors.items())), blocks)


def check_blocks(blocks: Iterable[Block], factors: Sequence[FloatArray]) -> tuple[Block, ...]:
    """Raise an error where blocks are not distributions with the factors as margins.

    Examples
    --------
    >>> halves = np.full((2, 1), 0.5)
    >>> wrong = Block(BlockLayout((0, 1), (np.arange(2),) * 2), np.array([[1.0], [0], [0], [0]]))
    >>> check_blocks([wrong], [halves, halves])
    Traceback (most recent call last):
        ...
    ValueError: blocks[0]: the margin of variable 0 is not its factor; it is off by 0.5.
    """
    blocks, inside = tuple(blocks), list[int]()
    for k, block in enumerate(blocks):
        layout, members = block.layout, block.members
        inside += members
        if len(members) < 2 or len(set(inside)) < len(inside):
            raise ValueError(f"blocks[{k}] must have two variables or more, none of them twice.")
        if not all(0 <= n < len(factors) for n in members):
            raise ValueError(f"blocks[{k}] has variables {members}; there are {len(factors)}.")
        for n, group in zip(members, layout.groups, strict=True):
            used = np.unique(group).tolist()
            if group.shape != (len(factors[n]),) or used != list(range(len(used))):
                raise ValueError(f"blocks[{k}]: the groups of variable {n} do not fit its levels.")
        shape = layout.size, factors[0].shape[1]
        if block.table.shape != shape or not (block.table >= 0.0).all():
            raise ValueError(f"blocks[{k}]: the table must be of shape {shape}, all numbers >= 0.")
        for i, n in enumerate(members):
            off = float(np.abs(block.margin([n]) - layout.add_up(i, factors[n])).max())
            if not off <= MARGIN_TOLERANCE:
                raise ValueError(
                    f"blocks[{k}]: the margin of variable {n} is not its factor; it is off by "
                    f"{off:.3g}."
                )
    return blocks


def join_partitions(*partitions: Iterable[Sequence[int]]) -> list[list[int]]:
    """The finest partition of which each set of the others is part, sets of two and more.

    Examples
    --------
    >>> join_partitions([(0, 1), (4, 5)], [(1, 2)])
    [[0, 1, 2], [4, 5]]
    """
    joined = list[set[int]]()
    for members in (set(members) for partition in partitions for members in partition):
        apart = [other for other in joined if other.isdisjoint(members)]
        together = members.union(*(other for other in joined if not other.isdisjoint(members)))
        joined = [*apart, together]
    return sorted(sorted(members) for members in joined)
