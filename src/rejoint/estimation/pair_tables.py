"""Tables of two variables, all of them as one matrix: how far a model is from its records.

A mixture of few classes fits records as a whole. In single tables of two variables, which thousands
of records may show plainly, it can still be off by many standard errors: real records are of no
finite rank. The tables are therefore looked at after each fit (:func:`find_gaps`), and what
answers is moved towards them (:func:`agree`): by no more than the misfit demands, and with all else
that the model has learned as its anchor.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

from rejoint import kernels
from rejoint.estimation.data import Expected, InMemory
from rejoint.estimation.em import Em
from rejoint.estimation.policy import DEFAULT, Policy
from rejoint.estimation.priors import Prior
from rejoint.marginals.compare import expected_distance
from rejoint.model import FloatArray, Layout, Model
from rejoint.pmf.compact import compact
from rejoint.pmf.table_gap import TableGap
from rejoint.queries.tables import joint_table
from rejoint.solver.run import run
from rejoint.solver.solver import Limits

#: Numbers in a block of records that is multiplied at a time.
BLOCK = 4_000_000

#: Classes that are drawn for each copy of a record with missing cells, at evenly spaced places: as
#: many as cost these cells (levels squared for each) within these limits. On halves of a survey of
#: 5,893 records, a twelfth of whose cells are missing, the RMSE of the tables to the other half is
#: 0.990 to 1.013 of that of counting, by the seed, with 4; with 32 it is 0.998 to 1.005.
FILLED_CELLS, FILLINGS = 1e8, (4, 32)

#: Records of a table that count among those of a level, for the share of them that hold both
#: variables, and rounds to find it.
SHARE_RECORDS, SHARE_ROUNDS = 10.0, 8

#: Cells x classes of the models that means and variances are of, and the fewest of them.
MOMENT_CELLS, FEWEST_MODELS = 4_000_000_000, 8

#: Cells of all tables x classes from which products are formed in single precision.
SINGLE_CELLS = 30_000_000

#: Share of the degrees of freedom of a table that a model leaves at the least.
LEAST_FREEDOM = 0.3

#: Variables of the tables of three that are compared, cells of the largest, and rows that count.
MOST_IN_TRIPLES, LARGEST_TRIPLE, TRIPLE_ROWS = 6, 10_000, 100_000

#: Share of the other levels in a part of a divided class, so that it can still change, and records
#: that a part stands for at the least: with many classes it took half of the time of a fit without.
LEAK, PART_RECORDS = 0.02, 0.3


@dataclass(frozen=True, eq=False)
class PairTables:
    """Shares of all tables of two variables, and the number of records behind each.

    Parameters
    ----------
    layout : Layout
        Where the levels of each variable stand.
    shares : array (L, L)
        One block for each two variables, which sums to one; zero in the blocks of a variable
        and itself.
    records : array (N, N)
        Weight of the records that hold both variables, zero on the diagonal.
    behind : array (L, L), optional
        Records that the share of each cell is as accurate as one of; by default those of its table.
        Where values are missing more often in some cells, these are less accurate.

    Examples
    --------
    >>> import rejoint as rj
    >>> data = InMemory.of(rj.Records.of({"a": ["x", "x", "y"], "b": ["u", "v", "v"]}))
    >>> tables = count_pairs(data, Model.of([1.0], [[[0.5], [0.5]]] * 2), np.random.default_rng(0))
    >>> (3 * tables.shares[:2, 2:]).round(2), tables.records[0, 1]
    (array([[1., 1.],
           [0., 1.]]), np.float64(3.0))
    """

    layout: Layout
    shares: FloatArray
    records: FloatArray
    behind: FloatArray | None = None

    @cached_property
    def sizes(self) -> FloatArray:
        """Records behind each cell, (L, L)."""
        if self.behind is not None:
            return self.behind
        return expand_blocks(self.layout, self.records)

    @cached_property
    def counts(self) -> FloatArray:
        """Shares times records, (L, L)."""
        return self.shares * expand_blocks(self.layout, self.records)

    @cached_property
    def weight(self) -> float:
        """Records that a table has, on average."""
        return float(self.records.sum()) / max(self.records.size - len(self.records), 1)

    def error(self, objective: float) -> float:
        """Return NaN: the objective has no scale to compare with."""
        return float("nan")

    def expect(self, model: Model) -> Expected:
        """Expected counts of classes and levels, as of records that hold two variables each.

        All tables together count as often as the records they are of: the sum over the pairs is
        divided by the number of partners that a variable has.
        """
        partners, weighted = max(len(self.records) - 1, 1), model.factors * model.weights
        # Single precision is enough for products that large tables and many classes make dear.
        kind: type = np.float32 if self.counts.size * model.rank > SINGLE_CELLS else np.float64
        factors: FloatArray = model.factors.astype(kind, copy=False)
        found: FloatArray = np.asarray(weighted.astype(kind, copy=False) @ factors.T, np.float64)
        ratio = self.counts / np.maximum(found, 1e-300)
        levels = weighted * (ratio.astype(kind, copy=False) @ factors) / partners
        logs = np.log(np.maximum(found, 1e-300), where=self.counts > 0, out=np.zeros_like(found))
        value = float(np.vdot(self.counts, logs)) / (2 * partners)
        return Expected(value, np.vstack([levels.sum(axis=0) / 2, levels]))


def block_sums(layout: Layout, matrix: NDArray[np.float64]) -> FloatArray:
    """Sums of the blocks of each two variables, (N, N).

    Examples
    --------
    >>> block_sums(Layout((1, 2)), np.array([[1.0, 2, 3], [4, 5, 6], [7, 8, 9]]))
    array([[ 1.,  5.],
           [11., 28.]])
    """
    first = layout.offsets[:-1]
    return np.asarray(np.add.reduceat(np.add.reduceat(matrix, first, axis=0), first, axis=1))


def expand_blocks(layout: Layout, values: FloatArray) -> FloatArray:
    """Repeat a number for each two variables over the cells of their table, (L, L)."""
    return np.asarray(layout.expand(layout.expand(values).T).T)


def normalize_blocks(layout: Layout, matrix: FloatArray) -> FloatArray:
    """Scale each block to sum to one; a block of zeros stays."""
    sums = block_sums(layout, matrix)
    return matrix / expand_blocks(layout, np.where(sums > 0, sums, 1.0))


def apart(layout: Layout) -> NDArray[np.bool_]:
    """Cells of two different variables, (L, L)."""
    owner = layout.expand(np.arange(len(layout.levels)))
    return np.asarray(owner[:, None] != owner)


def pair_shares(model: Model) -> FloatArray:
    """All tables of two variables of a model, (L, L); those of one variable are zero.

    Examples
    --------
    >>> pair_shares(Model.of([1.0], [[[0.5], [0.5]], [[1.0]]]))
    array([[0. , 0. , 0.5],
           [0. , 0. , 0.5],
           [0.5, 0.5, 0. ]])
    """
    return np.asarray((model.factors * model.weights) @ model.factors.T * apart(model.layout))


def mean_distance(first: Model, second: Model) -> float:
    """Total variation between the tables of two variables of two models, on average.

    Examples
    --------
    >>> one, other = (Model.of([1.0], [[[a], [1 - a]], [[1.0]]]) for a in (0.5, 0.7))
    >>> round(mean_distance(one, other), 6)
    0.2
    """
    away = np.abs(pair_shares(first) - pair_shares(second)).sum() / 2
    variables = len(first.layout.levels)
    return float(away) / (variables * (variables - 1))


def association(layout: Layout, mean: FloatArray, gap: FloatArray) -> FloatArray:
    """What tables differ by from a model's, less what their one-variable margins differ by, (L, L).

    Examples
    --------
    >>> flat = np.kron([[0.0, 1.0], [1.0, 0.0]], np.full((2, 2), 0.25))
    >>> margins = flat * np.array([1.2, 0.8, 1.0, 1.0])[:, None] - flat
    >>> association(Layout((2, 2)), flat, margins)[:2, 2:].round(6) + 0.0
    array([[0., 0.],
           [0., 0.]])
    """
    first, sums = layout.offsets[:-1], block_sums(layout, mean)
    share = np.add.reduceat(mean, first, axis=1) / layout.expand(np.where(sums > 0, sums, 1.0))
    rows = layout.expand(np.add.reduceat(gap, first, axis=1).T).T
    columns = layout.expand(share.T)
    margins = rows * columns
    return np.asarray((gap - margins - margins.T) * apart(layout))


def table_variance(models: Sequence[Model], mean: FloatArray) -> FloatArray:
    """Variance over some models of how variables depend in all their tables of two, (L, L).

    ``mean`` are the tables of a model near them. :func:`association` of models is simpler than of
    records with missing cells: all tables of a variable have the same margin.

    Examples
    --------
    >>> two = [Model.of([0.5, 0.5], [[[a, 1 - a], [1 - a, a]]] * 2) for a in (0.6, 0.7)]
    >>> table_variance(two, pair_shares(two[0]))[0, 2].round(5)
    np.float64(0.00045)
    """
    size = models[0].layout.size
    some = max(int(MOMENT_CELLS / (size**2 * models[0].rank)), FEWEST_MODELS)
    models = models[:: -(-len(models) // some)]
    total, squares = np.zeros((size, size)), np.zeros((size, size))
    margin = mean.sum(axis=1) / max(len(models[0].layout.levels) - 1, 1)
    for model in models:
        weighted = model.factors * model.weights
        # The margins' part, dp p' + p dp', is a product of two columns: appended as two classes.
        away = weighted.sum(axis=1) - margin
        left = np.column_stack([weighted, away, margin])
        found = left @ np.column_stack([model.factors, -margin, -away]).T - mean
        total += found
        squares += np.square(found, out=found)
    variance = np.maximum(squares - total**2 / len(models), 0.0) / max(len(models) - 1, 1)
    return np.asarray(variance * apart(models[0].layout))


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of adjacent levels.

    Parameters
    ----------
    layout : Layout
        Where the groups of each variable stand.
    first : array
        First level of each group, among the levels of all variables.
    size : int
        Number of these levels.
    """

    layout: Layout
    first: NDArray[np.intp]
    size: int

    @classmethod
    def of(cls, layout: Layout, ordered: Sequence[bool], width: int) -> "Groups":
        """Groups of about ``width`` levels, but at least two, where levels have an order.

        Examples
        --------
        >>> Groups.of(Layout((5, 3)), [True, False], 2).first
        array([0, 2, 3, 5, 6, 7])
        """
        counts = [
            max(-(-levels // width), min(levels, 2)) if has_order else levels
            for levels, has_order in zip(layout.levels, ordered, strict=True)
        ]
        parts = [
            start + np.linspace(0, levels, count + 1).round().astype(np.intp)[:-1]
            for start, levels, count in zip(layout.offsets, layout.levels, counts, strict=False)
        ]
        return cls(Layout(tuple(counts)), np.concatenate(parts), layout.size)

    def sum(self, matrix: FloatArray) -> FloatArray:
        """Sum a matrix of all levels (L, L) over the levels of groups."""
        rows = np.add.reduceat(matrix, self.first, axis=0)
        return np.asarray(np.add.reduceat(rows, self.first, axis=1))

    def merge(self, model: Model) -> Model:
        """The same model of groups."""
        return Model(self.layout, model.weights, np.add.reduceat(model.factors, self.first))

    def merge_tables(self, tables: PairTables, found: FloatArray) -> PairTables:
        """The same tables of groups; ``found`` are those of a model, by which errors add up."""
        behind = None
        if tables.behind is not None:
            variance = self.sum(found / np.maximum(tables.behind, 1e-300))
            behind = self.sum(found) / np.maximum(variance, 1e-300)
        return PairTables(self.layout, self.sum(tables.shares), tables.records, behind)

    def scale(self, matrix: FloatArray, sums: FloatArray) -> FloatArray:
        """Scale a matrix of all levels to have these sums over the levels of groups."""
        ratio = sums / np.maximum(self.sum(matrix), 1e-300)
        sizes = np.diff(np.append(self.first, self.size))
        return matrix * np.repeat(np.repeat(ratio, sizes, axis=0), sizes, axis=1)


def resolutions(layout: Layout, ordered: Sequence[bool]) -> list[Groups]:
    """Groups of adjacent levels from halves to single levels, each half as wide as the one before.

    Examples
    --------
    >>> [groups.layout.levels for groups in resolutions(Layout((15, 3)), [True, False])]
    [(2, 3), (4, 3), (8, 3), (15, 3)]
    """
    most = max((n for n, own in zip(layout.levels, ordered, strict=True) if own), default=1)
    widths = [2**k for k in range(max(most - 1, 1).bit_length() - 1, 0, -1)]
    return [Groups.of(layout, ordered, width) for width in [*widths, 1]]


def count_pairs(
    data: InMemory, model: Model, rng: np.random.Generator, policy: Policy = DEFAULT
) -> PairTables:
    """Tables of records, some of which may be incomplete.

    Where cells are missing at random, records that hold both variables may differ from the others,
    so that their own shares are biased. Missing cells are therefore filled by the model (classes
    drawn given what the record holds, then the class's columns), which a right model leaves as it
    is; what the filled tables differ by from the model's is due to the records that hold both
    variables, and is scaled up from their share of all records.
    """
    layout = data.layout
    rows = np.arange(len(data.weight))
    most = max(int(policy.pair_cells / layout.size**2), 1)
    if len(rows) > most:
        rows = np.sort(rng.choice(rows, most, replace=False))
    total = float(data.weight[rows].sum())
    complete, known, filled = np.zeros((3, layout.size, layout.size))
    both = np.zeros((len(layout.levels), len(layout.levels)))
    step = max(BLOCK // max(layout.size, model.rank), 1)
    for at in range(0, len(rows), step):
        part = rows[at : at + step]
        codes, weight = data.table(part), data.weight[part]
        seen = codes >= 0
        both += (seen * weight[:, None]).T @ seen
        whole = seen.all(axis=1)
        add_products(complete, one_hot(layout, codes[whole]), weight[whole])
        if whole.all():
            continue
        open_codes, own = codes[~whole], weight[~whole]
        add_products(known, one_hot(layout, open_codes), own)
        copies = own * min(most / total, 1.0)
        for cells, mass in fillings(layout, open_codes, own, copies, model, rng):
            add_products(filled, cells, mass)
    held = np.diag(both).copy()
    np.fill_diagonal(both, 0.0)
    if (held >= total * (1.0 - 1e-9)).all():
        return PairTables(layout, complete * apart(layout) / total, both)
    filled, known = filled + complete, known + complete
    return scale_up(filled, known, pair_shares(model), total, held, both, layout)


def scale_up(
    filled: FloatArray,
    known: FloatArray,
    found: FloatArray,
    total: float,
    held: FloatArray,
    both: FloatArray,
    layout: Layout,
) -> PairTables:
    """Scale what filled tables differ by from the model's to what the observed cells differ by.

    How one variable differs rests on the records that hold it (``held``, of ``total``), how two
    depend on those that hold both (``known`` of the ``filled`` ones): a share of the records that
    may be smaller in some cells than in others.
    """
    own = apart(layout)
    gap = filled * own / total - found
    first = layout.offsets[:-1]
    # Tables of one variable: sums over the levels of any other one, here of the next.
    other = np.roll(np.arange(len(held)), -1)
    variable = layout.expand(np.arange(len(held)))
    rows = np.add.reduceat(gap, first, axis=1)[np.arange(layout.size), other[variable]]
    level = np.add.reduceat(found, first, axis=1)[np.arange(layout.size), other[variable]]
    alone = rows * multiples(total, held)[variable]
    share = known_shares(layout, known * own, filled * own, both / total)
    depend = association(layout, found, gap) * multiples(1.0, share)
    shares = found + depend + np.outer(alone, level) + np.outer(level, alone)
    shares = normalize_blocks(layout, np.maximum(shares, 0.0) * own)
    return PairTables(layout, shares, both, total * share)


def known_shares(
    layout: Layout, known: FloatArray, filled: FloatArray, mean: FloatArray
) -> FloatArray:
    """Share of the records of each cell that hold both variables, (L, L).

    It is a product of what the levels of either variable say (iterative proportional fitting of
    the filled tables): how often a value is missing may depend on the other one. Single cells
    would say as much about the model that has filled them. ``mean`` are shares in whole tables,
    (N, N).

    Examples
    --------
    >>> filled = np.kron([[0.0, 1.0], [1.0, 0.0]], np.full((2, 2), 1e6))
    >>> often = filled * np.array([0.2, 1.0, 1.0, 1.0])[:, None]
    >>> known = np.minimum(often, often.T)
    >>> known_shares(Layout((2, 2)), known, filled, 1.0 - np.eye(2))[:2, 2:].round(2)
    array([[0.2, 0.2],
           [1. , 1. ]])
    """
    first, table = layout.offsets[:-1], layout.expand(mean)
    wanted = np.add.reduceat(known, first, axis=1) + SHARE_RECORDS * table
    share = expand_blocks(layout, mean)
    for _ in range(SHARE_ROUNDS):
        sums = np.add.reduceat(filled * share, first, axis=1) + SHARE_RECORDS * table
        ratio = layout.expand(np.sqrt(wanted / np.where(sums > 0, sums, 1.0)).T).T
        share = share * ratio * ratio.T  # both variables at once: roots
    return np.minimum(share, 1.0)


def multiples(total: float, parts: FloatArray) -> FloatArray:
    """How many times each part goes into the total; zero where there is none.

    Examples
    --------
    >>> multiples(1e9, np.array([5e8, 0.0]))
    array([2., 0.])
    """
    return np.divide(total, parts, out=np.zeros_like(parts), where=parts > 0)


def one_hot(layout: Layout, codes: NDArray[np.signedinteger]) -> NDArray[np.float32]:
    """One column for each level, (M, L); zero where a value is missing."""
    found = np.zeros((len(codes), layout.size), dtype=np.float32)
    rows, variables = np.nonzero(codes >= 0)
    found[rows, layout.offsets[variables] + codes[rows, variables]] = 1.0
    return found


def fillings(
    layout: Layout,
    codes: NDArray[np.signedinteger],
    weight: FloatArray,
    copies: FloatArray,
    model: Model,
    rng: np.random.Generator,
) -> Iterator[tuple[NDArray[np.float32], FloatArray]]:
    """Records with missing cells, filled by the columns of drawn classes, and their weights.

    Each copy of a record draws its own classes: a record that holds little may have hundreds of
    copies, and a few classes would stand for all of them.
    """
    known, missing = one_hot(layout, codes), layout.expand((codes < 0).T).T
    _, posterior = kernels.class_posterior(codes, model.weights, model.factors, layout.levels)
    steps, rows = np.cumsum(posterior, axis=1), np.arange(len(codes))
    # With many places for each class they are as good as all classes by their probabilities.
    copies = np.ceil(np.clip(copies, 1.0, model.rank))
    each = np.clip(FILLED_CELLS / (layout.size**2 * copies.sum()), *FILLINGS)
    places = (copies * int(each)).astype(np.intp)
    row = np.repeat(rows, places)
    number = np.arange(len(row)) - (np.cumsum(places) - places)[row]
    place = row + (rng.random(len(codes))[row] + number) / places[row]
    drawn = np.searchsorted((rows[:, None] + steps / steps[:, -1:]).ravel(), place)
    drawn = np.clip(drawn, row * model.rank, (row + 1) * model.rank - 1)
    found, times = np.unique(drawn, return_counts=True)
    row, classes = np.divmod(found, model.rank)
    share = weight[row] * times / places[row]
    columns = model.factors.T.astype(np.float32)
    step = max(BLOCK // layout.size, 1)
    for at in range(0, len(found), step):
        own, some = row[at : at + step], classes[at : at + step]
        yield np.where(missing[own], columns[some], known[own]), share[at : at + step]


def add_products(sums: FloatArray, cells: NDArray[np.float32], weight: FloatArray) -> None:
    """Add the products of all pairs of levels, each record by its weight."""
    sums += (cells * weight[:, None].astype(np.float32)).T @ cells


@dataclass(frozen=True, eq=False)
class Misfit:
    """What the tables of records ask of a model, by how far they are from it beyond chance.

    Parameters
    ----------
    target : PairTables
        Between the tables of the records and those of the model: the records count in a table as
        much as its misfit demands.
    trust : array (N, N)
        Share of the records in each target; zero where the misfit is within chance.
    fits : bool
        Whether all tables together are as near to the model as by chance: its form is right then.
    spent : float
        Degrees of freedom that the draws spend on how variables depend in all tables together.
    widening : float
        How many times as many they should spend: those of the tables so far as the records are
        trusted, those of the draws otherwise.
    unit : array (L, L)
        Degrees of freedom for each unit of the variance of a cell over draws.
    mean : array (L, L)
        Tables of the model.
    """

    target: PairTables
    trust: FloatArray
    fits: bool
    spent: float
    widening: float
    unit: FloatArray
    mean: FloatArray

    def spent_by(self, models: Sequence[Model]) -> float:
        """Degrees of freedom that other models spend on how variables depend."""
        return float(np.vdot(self.unit, table_variance(models, self.mean)))

    @classmethod
    def of(
        cls, tables: PairTables, model: Model, draws: Sequence[Model], ordered: Sequence[bool]
    ) -> "Misfit":
        """Judge tables by those of a model and their variance over posterior draws.

        Few records do not show the misfit of a table of many cells. Where levels are ordered, they
        show that of groups of adjacent levels, so that tables are judged from coarse to fine: the
        target of groups scales that of their levels.
        """
        shares = target = pair_shares(model)
        judged: list[Misfit] = []
        for groups in resolutions(tables.layout, ordered):
            own = groups.merge_tables(tables, shares)
            judged.append(cls.judge(own, groups.sum(shares), [groups.merge(d) for d in draws]))
            trust = expand_blocks(groups.layout, judged[-1].trust)
            blend = trust * own.shares + (1.0 - trust) * groups.sum(target)
            target = groups.scale(target, blend)
        return replace(
            judged[-1],
            target=PairTables(tables.layout, target, tables.records),
            widening=max(each.widening for each in judged),
        )

    @classmethod
    def judge(cls, tables: PairTables, mean: FloatArray, draws: Sequence[Model]) -> "Misfit":
        """Judge tables by those of a model and their variance over draws, at one resolution.

        A model meets shares of one variable anyway; what is judged is how two of them depend. The
        chi-square statistic of that, over the degrees of freedom that the model does not spend on
        it, is the factor ``phi`` by which the records are further from the model than by chance
        (:func:`misfit_factors` makes it less noisy). If the truth is a Dirichlet variable of
        precision ``k`` around the model's table, ``phi = 1 + (N - phi) / k``, and the truth given
        the records has the mean ``(N records + k model) / (N + k)``.
        """
        layout, records = tables.layout, tables.records
        size, own = tables.sizes, apart(layout)
        expected = mean * size
        common = (expected >= 1.0) & own
        rest = own & ~common  # rare cells count as one
        gap = association(layout, mean, tables.shares - mean) * size
        rest_expected = block_sums(layout, expected * rest)
        rest_gap = block_sums(layout, gap * rest) ** 2 / np.maximum(rest_expected, 0.5)
        pooled = rest_expected >= 0.5
        common_gap = gap**2 / np.maximum(expected, 0.5) * common
        statistic = block_sums(layout, common_gap) + rest_gap * pooled
        first = layout.offsets[:-1]
        rows = np.add.reduceat(np.logical_or.reduceat(common, first, axis=1), first, dtype=float)
        cells = block_sums(layout, common.astype(float)) + pooled
        freedom = np.maximum(cells - rows - rows.T + 1.0, 1.0)
        unit = size / np.maximum(mean, 1e-300) * common
        spent = block_sums(layout, unit * table_variance(draws, mean))
        left = np.maximum(freedom - spent, LEAST_FREEDOM * freedom)
        held = records > 0
        phi = misfit_factors(statistic, left, held)
        beyond = (phi > 1.0) & held
        precision = np.maximum((records - phi) / np.where(beyond, phi - 1.0, 1.0), 1.0)
        trust = np.where(beyond, records / (records + precision), 0.0)
        free = max(float(left[held].sum()) / 2, 1.0)  # each table is there twice
        fits = float(statistic[held].sum()) / 2 <= free + 2.0 * np.sqrt(2.0 * free)
        total = float(spent.sum())
        wanted = total + float(np.sum(trust * np.maximum(freedom - spent, 0.0)))
        widening = wanted / total if total > 0.0 else 0.0
        return cls(tables, trust, fits, total, widening, unit, mean)


def misfit_factors(
    statistic: FloatArray, freedom: FloatArray, held: NDArray[np.bool_]
) -> FloatArray:
    """Factors by which tables are further from a model than by chance, (N, N).

    The statistic of one table, over its degrees of freedom, is noisy where these are few. What all
    tables of a variable show is not, so that each factor is shrunk towards the product of those of
    its two variables (over that of all tables), by as much as factors differ from it by chance.

    Examples
    --------
    >>> held = ~np.eye(3, dtype=bool)
    >>> misfit_factors(np.where(held, 8.0, 0.0), np.full((3, 3), 4.0), held)[0, 1]
    np.float64(2.0)
    >>> alike = np.array([[0.0, 3.0, 5.0], [3.0, 0.0, 4.0], [5.0, 4.0, 0.0]])
    >>> misfit_factors(alike, np.full((3, 3), 4.0), held)[0].round(2)
    array([1.  , 0.88, 1.12])
    """
    own = np.where(held, statistic, 0.0)
    chance = np.where(held, freedom, 0.0)
    row = own.sum(axis=1) / np.maximum(chance.sum(axis=1), 1e-300)
    center = np.outer(row, row) / max(own.sum() / max(chance.sum(), 1e-300), 1e-300)
    factor = statistic / freedom
    noise = 2.0 * np.maximum(center, 1.0) ** 2 / freedom
    weight = held / noise
    spread = np.sum(weight * ((factor - center) ** 2 - noise)) / max(weight.sum(), 1e-300)
    between = max(float(spread), 0.0)
    return np.asarray(center + between / (between + noise) * (factor - center))


def excess(tables: PairTables, model: Model, errors: float) -> FloatArray:
    """Chi-square statistic of each table against a model, less chance, (N, N).

    Chance is the mean of the statistic and some standard deviations.
    """
    layout, size = tables.layout, tables.sizes
    found = pair_shares(model)
    common = found * size >= 1.0
    gap = size * (tables.shares - found) ** 2 / np.maximum(found, 1e-300) * common
    freedom = np.maximum(block_sums(layout, common.astype(float)) - 1.0, 1.0)
    chance = freedom + errors * np.sqrt(2.0 * freedom)
    return np.asarray(block_sums(layout, gap) - chance)


def move(
    tables: PairTables,
    model: Model,
    anchor: float,
    policy: Policy = DEFAULT,
    steps: int | None = None,
) -> Model:
    """Fit a model to tables, with itself as prior that counts as ``anchor`` times the records."""
    mass = anchor * tables.weight * model.weights
    prior = Prior(mass * len(tables.records) / 2, mass * model.factors)
    limits = Limits(max_steps=policy.pair_steps if steps is None else steps, exact=-1.0)
    return run(Em(prior=prior, limits=limits, policy=policy), tables, model).model


def agree(misfit: Misfit, model: Model, most: int, policy: Policy = DEFAULT) -> Model:
    """Move a model of at most ``most`` classes towards the tables of the records.

    Classes of few levels cannot follow a table that they do not show. So first, a few times, every
    class is divided by the levels of the variable whose tables are met worst, which leaves the
    joint as it is; the parts are moved, and merged again where they are alike.
    """
    target = misfit.target
    if not target.records.any():
        return model
    for _ in range(policy.pair_rounds):
        # Chance is in the target already, so that the mean of the statistic is enough.
        beyond = np.maximum(excess(target, model, 0.0), 0.0).sum(axis=1)
        beyond /= np.asarray(target.layout.levels)
        worst = int(np.argmax(beyond))
        if not beyond[worst] > 0.0:
            break
        parts = divide(model, worst, target.weight)
        if target.layout.size**2 * parts.rank > policy.pair_cells_divided:
            break
        steps = policy.pair_steps_divided
        parts = move(target, parts, policy.pair_anchor_divided, policy, steps)
        model = compact([parts], model, most)
    return move(target, model, policy.pair_anchor, policy)


def divide(model: Model, variable: int, records: float = np.inf) -> Model:
    """The same joint with each class divided by the levels of a variable, nearly.

    Levels of a class that stand for few of the ``records`` stay together.

    Examples
    --------
    >>> model = Model.of([1.0], [[[0.25], [0.75]], [[0.5], [0.5]]])
    >>> parts = divide(model, 0)
    >>> parts.weights.round(2), pair_shares(parts).round(3)[0, 2:]
    (array([0.26, 0.74]), array([0.125, 0.125]))
    >>> divide(model, 0, 1.0).rank
    2
    """
    rows, levels = model.layout.rows(variable), model.layout.levels[variable]
    stay = np.full((levels, levels), LEAK / max(levels - 1, 1))
    np.fill_diagonal(stay, 1.0 - LEAK if levels > 1 else 1.0)
    own = model.factors[rows]
    rest = np.zeros_like(own)
    weights, columns = [], []

    def add(part: FloatArray, chosen: NDArray[np.bool_]) -> None:
        mass = part.sum(axis=0)[chosen]
        factors = model.factors[:, chosen]
        factors[rows] = part[:, chosen] / mass
        weights.append(model.weights[chosen] * mass)
        columns.append(factors)

    for share in stay:
        part = own * share[:, None]
        large = model.weights * part.sum(axis=0) * records >= PART_RECORDS
        add(part, large)
        rest += np.where(large, 0.0, part)
    add(rest, rest.sum(axis=0) > 0.0)
    return Model(model.layout, np.concatenate(weights), np.hstack(columns))


def select_variables(data: InMemory, most: int) -> list[int]:
    """Variables whose tables can be looked at: all, or those that tell most for each level.

    Beyond ``most`` levels in all, tables of rare items and of long lists of labels are left out:
    few records are in their cells.

    Examples
    --------
    >>> import rejoint as rj
    >>> columns = {"a": list("xxxy"), "b": list("uuvv"), "c": list("efgh")}
    >>> data = InMemory.of(rj.Records.of(columns))
    >>> select_variables(data, 8), select_variables(data, 4)
    ([0, 1, 2], [0, 1])
    """
    layout, levels = data.layout, data.layout.levels
    if layout.size <= most:
        return list(range(len(levels)))
    held = layout.sums(data.level_totals)
    share = data.level_totals / np.maximum(layout.expand(held), 1e-300)
    entropy = layout.sums(-share * np.log(np.maximum(share, 1e-300)))
    chosen: list[int] = []
    for n in np.argsort(-entropy * held / np.asarray(levels), kind="stable"):
        if levels[n] <= most:
            chosen.append(int(n))
            most -= levels[n]
    return sorted(chosen)


def find_gaps(
    data: InMemory, tables: PairTables, model: Model, policy: Policy = DEFAULT
) -> tuple[TableGap, ...]:
    """Tables in which records and model differ beyond chance, worst first.

    All tables of two variables are compared, then some of three among the variables of the worst
    of these, met or not, where no cell is missing.
    """
    layout, names = data.layout, data.domain.names
    beyond = excess(tables, model, policy.gap_errors)
    every = np.stack(np.triu_indices(len(names), 1), axis=1)
    order = every[np.argsort(-beyond[tuple(every.T)], kind="stable")]
    worst = [(int(i), int(j)) for i, j in order[: policy.gaps_kept]]
    pairs = [pair for pair in worst if beyond[pair] > 0.0]
    found = []
    shares = pair_shares(model)
    for pair in pairs:
        block = tuple(layout.rows(n) for n in pair)
        given, own = tables.shares[block], shares[block]
        found.append((beyond[pair], make_gap(data, pair, given, own, tables.records[pair])))
    rows = slice(None, None, -(-len(data.weight) // TRIPLE_ROWS))
    weight, total = data.weight[rows], float(data.weight[rows].sum())
    table = data.table(rows)
    whole = np.asarray((table >= 0).all(axis=0))
    chosen = [n for n in dict.fromkeys(order.ravel().tolist()) if whole[n]]
    chosen = sorted(chosen[:MOST_IN_TRIPLES])
    codes = dict(zip(chosen, table[:, chosen].T.astype(np.intp), strict=True))
    for triple in combinations(chosen, 3):
        levels = tuple(layout.levels[n] for n in triple)
        if prod(levels) > LARGEST_TRIPLE:
            continue
        cells = np.ravel_multi_index([codes[n] for n in triple], levels)
        given = np.bincount(cells, weight, prod(levels)).reshape(levels) / total
        own = joint_table(model.weights, [model.parts[n] for n in triple])
        common = own * total >= 1.0
        statistic = total * float(np.sum((given - own)[common] ** 2 / own[common]))
        freedom = max(int(common.sum()) - 1, 1)
        over = statistic - freedom - policy.gap_errors * np.sqrt(2.0 * freedom)
        if over > 0.0:
            found.append((over, make_gap(data, triple, given, own, total)))
    found.sort(key=lambda each: -each[0])
    return tuple(gap for _, gap in found[: policy.gaps_kept])


def make_gap(
    data: InMemory, variables: Sequence[int], given: FloatArray, own: FloatArray, records: float
) -> TableGap:
    """How far a table of records is from that of a model, and the cell that differs most."""
    away = np.abs(given - own)
    at = np.unravel_index(int(np.argmax(away)), away.shape)
    domain = data.domain
    cell = {domain.names[n]: domain[n].levels[k] for n, k in zip(variables, at, strict=True)}
    return TableGap(
        tuple(cell),
        float(away.sum() / 2),
        expected_distance(own, max(records, 1.0)),
        ", ".join(f"{name} = {level}" for name, level in cell.items()),
        float(given[at]),
        float(own[at]),
    )
