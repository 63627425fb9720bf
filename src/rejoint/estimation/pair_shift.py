"""Pair shift: move what answers towards the tables of two variables that the records show.

A mixture of few classes fits records as a whole. In single tables of two variables, which thousands
of records may show plainly, it can still be off by many standard errors: real records are of no
finite rank. Each table is judged by the records that hold both of its variables. Which records do
may depend on other variables, which is seen in its margins; so the model's table is first raked to
the margins of the records, and what is judged is how the two variables depend. The records are
trusted as far as they are further from the model than by chance, and the model is fitted to
all tables together with itself as the prior (:func:`shift`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rejoint.arrays import BoolArray, Codes, FloatArray, IntArray
from rejoint.estimation.data import Expected, InMemory
from rejoint.estimation.em import Em
from rejoint.estimation.policy import DEFAULT, Policy
from rejoint.estimation.priors import Prior
from rejoint.marginals.compare import expected_distance
from rejoint.model import Layout, Model, Observed
from rejoint.pmf.table_gap import TableGap
from rejoint.solver.run import run
from rejoint.solver.solver import Limits

#: Rounds of iterative proportional fitting, rows and then columns of all tables.
RAKE_ROUNDS = 6

#: Share of the degrees of freedom of a table that a model leaves at the least.
LEAST_FREEDOM = 0.3

#: Draws that the variance of tables is found from, at the most.
MOST_DRAWS = 20

#: Cells of all tables x classes from which products are formed in single precision.
SINGLE_CELLS = 30_000_000

#: Numbers of a block of records that is multiplied as a dense matrix at a time.
BLOCK_NUMBERS = 4_000_000


@dataclass(frozen=True, eq=False)
class LevelGroups:
    """Levels of some variables, rare ones of a variable pooled.

    Parameters
    ----------
    variables : sequence of int
        The variables that have groups.
    layout : Layout
        Where the groups of each of these stand.
    group : array (L,)
        Group of each level of all variables; -1 for other variables.
    ordered : sequence of int
        How many groups of each variable have an order, the first ones.
    """

    variables: Sequence[int]
    layout: Layout
    group: IntArray
    ordered: Sequence[int]

    @classmethod
    def of(cls, data: InMemory, policy: Policy = DEFAULT) -> "LevelGroups":
        """Pool levels of few records, and leave variables out beyond ``policy.pair_levels``.

        Cells of rare levels hold too few records to say how variables depend. Where many levels
        are frequent, more of them count as rare; where many variables are left, those that tell
        least for each of their levels are left out.
        """
        layout, totals = data.layout, data.level_totals
        least = policy.rare_records
        kept = pooled_sizes(layout, totals, least)
        while sum(kept) > policy.pair_levels and least < data.total / 20:
            least *= 2.0
            kept = pooled_sizes(layout, totals, least)
        variables = most_telling(layout, totals, kept, policy.pair_levels)
        group, ordered, first = np.full(layout.size, -1), [], 0
        for n in variables:
            own = totals[layout.rows(n)]
            rare = own < least if kept[n] < len(own) else np.zeros(len(own), dtype=bool)
            number = np.cumsum(~rare) - 1
            group[layout.rows(n)] = first + np.where(rare, kept[n] - 1, number)
            ordered.append(int((~rare[: data.domain[n].scale]).sum()))
            first += kept[n]
        return cls(variables, Layout(tuple(kept[n] for n in variables)), group, ordered)

    def group_of(self, variable: int, layout: Layout) -> IntArray:
        """Group of each level of a variable, numbered from zero; ``layout`` is that of levels."""
        own = self.group[layout.rows(variable)]
        return np.asarray(own - own.min())

    @cached_property
    def sums(self) -> csr_array:
        """Matrix that adds up the levels of each group, (groups, L)."""
        return indicator(self.group, self.layout.size)

    @property
    def resolutions(self) -> list[tuple[Layout, csr_array]]:
        """Layouts of adjacent groups, and matrices that add them up: from halves to single ones."""
        most = max(self.ordered, default=1)
        widths = [2**k for k in range(max(most - 1, 1).bit_length() - 1, -1, -1)]
        found = []
        for width in widths:
            counts: list[int] = []
            place: list[IntArray] = []
            for size, own in zip(self.layout.levels, self.ordered, strict=True):
                count = max(-(-own // width), min(own, 2))
                edges = np.linspace(0, own, count + 1).round()[1:]
                within = np.searchsorted(edges, np.arange(own), side="right")
                alone = np.arange(count, count + size - own)
                place.append(sum(counts) + np.concatenate([within, alone]))
                counts.append(count + size - own)
            layout = Layout(tuple(counts))
            found.append((layout, indicator(np.concatenate(place), layout.size)))
        return found

    def merge(self, model: Model) -> Observed:
        """Return the model of the groups."""
        return Observed(self.layout, model.weights, np.asarray(self.sums @ model.factors))

    def spread(self, model: Observed, before: Observed, after: Observed) -> Observed:
        """Return the model with the groups' columns ``after`` in place of those ``before``."""
        ratio = after.factors / np.maximum(before.factors, 1e-300)
        scale = np.ones_like(model.factors)
        grouped = self.group >= 0
        scale[grouped] = ratio[self.group[grouped]]
        return Observed(
            model.layout, after.weights, model.layout.normalize(model.factors * scale + 1e-300)
        )


def indicator(group: IntArray, size: int) -> csr_array:
    """Return the matrix that adds up the members of each group, (groups, members)."""
    members = np.flatnonzero(group >= 0)
    ones = np.ones(len(members))
    return csr_array((ones, (group[members], members)), shape=(size, len(group)))


def pooled_sizes(layout: Layout, totals: FloatArray, least: float) -> list[int]:
    """Return the groups of each variable if levels of fewer records are pooled, two or more."""
    rare = layout.sums((totals < least).astype(np.float64)).astype(np.intp)
    return [
        int(size - few + 1 if few > 1 else size)
        for size, few in zip(layout.levels, rare, strict=True)
    ]


def most_telling(
    layout: Layout, totals: FloatArray, sizes: Sequence[int], most: int
) -> tuple[int, ...]:
    """Return all variables, or those of largest entropy per group, up to ``most`` groups."""
    if sum(sizes) <= most:
        return tuple(range(len(sizes)))
    held = layout.sums(totals)
    share = totals / np.maximum(layout.expand(held), 1e-300)
    entropy = layout.sums(-share * np.log(np.maximum(share, 1e-300)))
    chosen: list[int] = []
    for n in np.argsort(-entropy * held / np.asarray(sizes), kind="stable"):
        if sizes[n] <= most:
            chosen.append(int(n))
            most -= sizes[n]
    return tuple(sorted(chosen))


@dataclass(frozen=True, eq=False)
class PairTables:
    """All tables of two variables as one matrix; a problem that EM fits models to.

    Parameters
    ----------
    layout : Layout
        Where the levels, or groups of them, stand.
    counts : array (L, L)
        One table for each two variables; zero in the blocks of a variable and itself.

    Examples
    --------
    >>> tables = PairTables(Layout((1, 2)), np.array([[0.0, 2, 3], [2, 0, 0], [3, 0, 0]]))
    >>> tables.records
    array([[0., 5.],
           [5., 0.]])
    """

    layout: Layout
    counts: FloatArray

    @cached_property
    def records(self) -> FloatArray:
        """Weight of the records that hold both variables, (N, N)."""
        return block_sums(self.layout, self.counts)

    @cached_property
    def weight(self) -> float:
        """Records that a table has, on average."""
        return float(self.records.sum()) / max(self.records.size - len(self.records), 1)

    def without(self, groups: Iterable[Sequence[int]]) -> "PairTables":
        """Return the tables of variables that are not in one group."""
        owner = np.arange(len(self.layout.levels))
        for members in groups:
            owner[list(members)] = members[0]
        apart = owner[:, None] != owner
        return PairTables(self.layout, self.counts * expand_blocks(self.layout, apart))

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


# --- blocks of a matrix, one for each two variables -----------------------------------------------


def block_sums(layout: Layout, matrix: NDArray[np.float64]) -> FloatArray:
    """Sums of the blocks of each two variables, (N, N).

    Examples
    --------
    >>> block_sums(Layout((1, 2)), np.array([[1.0, 2, 3], [4, 5, 6], [7, 8, 9]]))
    array([[ 1.,  5.],
           [11., 28.]])
    """
    return np.asarray(np.add.reduceat(row_sums(layout, matrix), layout.offsets[:-1], axis=0))


def row_sums(layout: Layout, matrix: FloatArray) -> FloatArray:
    """Sums of each row over the levels of each variable, (L, N)."""
    return np.asarray(np.add.reduceat(matrix, layout.offsets[:-1], axis=1))


def expand_rows(layout: Layout, values: FloatArray) -> FloatArray:
    """Repeat a column for each variable over its levels, (..., N) to (..., L)."""
    return np.asarray(np.repeat(values, layout.levels, axis=1))


def expand_blocks(layout: Layout, values: FloatArray) -> FloatArray:
    """Repeat a number for each two variables over the cells of their table, (L, L)."""
    return np.asarray(layout.expand(expand_rows(layout, values)))


def off_block_mask(layout: Layout) -> NDArray[np.bool_]:
    """Mask of cells whose row and column are of different variables, (L, L)."""
    owner = layout.expand(np.arange(len(layout.levels)))
    return np.asarray(owner[:, None] != owner)


def model_tables(model: Model) -> FloatArray:
    """All tables of two variables of a model, (L, L); those of one variable are zero.

    Examples
    --------
    >>> model_tables(Model.of([1.0], [[[0.5], [0.5]], [[1.0]]]))
    array([[0. , 0. , 0.5],
           [0. , 0. , 0.5],
           [0.5, 0.5, 0. ]])
    """
    kind: type = np.float32 if model.layout.size**2 * model.rank > SINGLE_CELLS else np.float64
    left: FloatArray = (model.factors * model.weights).astype(kind, copy=False)
    found = (left @ model.factors.astype(kind, copy=False).T).astype(np.float64)
    return np.asarray(found * off_block_mask(model.layout))


def rake(layout: Layout, tables: FloatArray, margins: FloatArray) -> FloatArray:
    """Scale rows and columns of all tables to these row sums (L, N); the matrix is symmetric.

    Examples
    --------
    >>> even = np.kron([[0.0, 1.0], [1.0, 0.0]], np.full((2, 2), 0.25))
    >>> margins = np.array([[0.0, 0.3], [0.0, 0.7], [0.5, 0.0], [0.5, 0.0]])
    >>> rake(Layout((2, 2)), even, margins)[:2, 2:]
    array([[0.15, 0.15],
           [0.35, 0.35]])
    """
    for _ in range(2 * RAKE_ROUNDS):
        sums = row_sums(layout, tables)
        ratio = np.divide(margins, sums, out=np.zeros_like(sums), where=sums > 0)
        tables = (tables * expand_rows(layout, ratio)).T
    return np.asarray((tables + tables.T) / 2)


def rake_table(table: FloatArray, like: FloatArray) -> FloatArray:
    """Scale a table of two variables to the margins of another.

    Examples
    --------
    >>> rake_table(np.full((2, 2), 0.25), np.array([[0.3, 0.0], [0.3, 0.4]]))
    array([[0.18, 0.12],
           [0.42, 0.28]])
    """
    layout, rows = Layout(table.shape), len(table)
    both, margins = np.zeros((layout.size, layout.size)), np.zeros((layout.size, 2))
    both[:rows, rows:], both[rows:, :rows] = table, table.T
    margins[:rows, 1], margins[rows:, 0] = like.sum(axis=1), like.sum(axis=0)
    return rake(layout, both, margins)[:rows, rows:]


# --- tables of records ----------------------------------------------------------------------------


def count_pairs(
    data: InMemory, groups: LevelGroups, rng: np.random.Generator, policy: Policy = DEFAULT
) -> PairTables:
    """Count all tables of two variables, each over the records that hold both."""
    layout, rows = groups.layout, np.arange(len(data.weight))
    most = max(int(policy.pair_cells / layout.size**2), 1)
    if len(rows) > most:
        rows = np.sort(rng.choice(rows, most, replace=False))
    total = np.zeros((layout.size, layout.size))
    step = max(BLOCK_NUMBERS // layout.size, 1)
    for at in range(0, len(rows), step):
        part = rows[at : at + step]
        cells = one_hot(data.layout, data.table(part)) @ groups.sums.T
        weighted = cells * data.weight[part][:, None]
        if len(layout.levels) ** 2 * 20 > layout.size**2:  # many cells of a row are ones
            total += weighted.toarray().T @ cells.toarray()
        else:
            total += (weighted.T @ cells).toarray()
    return PairTables(layout, total * off_block_mask(layout))


def one_hot(layout: Layout, codes: Codes) -> csr_array:
    """One column for each level, (M, L); zero where a value is missing."""
    rows, n = np.nonzero(codes >= 0)
    level = layout.offsets[n] + codes[rows, n]
    ones = np.ones(len(rows), dtype=np.float32)
    return csr_array((ones, (rows, level)), shape=(len(codes), layout.size))


# --- how far a model is from them -----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Misfit:
    """How far tables of records are from those of a model, beyond chance.

    Parameters
    ----------
    expected : array (L, L)
        Counts that the model expects, with the margins of the records of each table.
    statistic, freedom : array (N, N)
        Chi-square statistic of each table, and its degrees of freedom.
    """

    expected: FloatArray
    statistic: FloatArray
    freedom: FloatArray

    @classmethod
    def of(cls, tables: PairTables, shares: FloatArray) -> "Misfit":
        """Compare tables with the shares of a model (L, L); rare cells of a table are pooled."""
        layout, counts = tables.layout, tables.counts
        first, size = layout.offsets[:-1], expand_blocks(layout, tables.records)
        expected = rake(layout, shares * size, row_sums(layout, counts))
        apart = off_block_mask(layout)
        common = (expected >= 1.0) & apart
        rest = apart & ~common
        gap = counts - expected
        rest_expected = block_sums(layout, expected * rest)
        rest_gap = block_sums(layout, gap * rest) ** 2 / np.maximum(rest_expected, 0.5)
        pooled = rest_expected >= 0.5
        statistic = block_sums(layout, gap**2 / np.maximum(expected, 0.5) * common)
        seen = np.logical_or.reduceat(common, first, axis=1)
        rows = np.add.reduceat(seen, first, dtype=np.float64)
        cells = block_sums(layout, common.astype(np.float64)) + pooled
        freedom = np.maximum(cells - rows - rows.T + 1.0, 1.0)
        return cls(expected, statistic + rest_gap * pooled, freedom)


@dataclass(frozen=True, eq=False)
class Target:
    """Tables that a model is moved to, between its own and those of the records.

    Parameters
    ----------
    tables : PairTables
        The tables; their margins are the model's.
    freedoms : list of pairs of arrays (N, N)
        Degrees of freedom that the draws spend on how two variables depend, and that they should:
        those of the records so far as these are trusted. From fine tables to coarse ones.
    """

    tables: PairTables
    freedoms: list[tuple[FloatArray, FloatArray]]

    @property
    def spent(self) -> FloatArray:
        """Degrees of freedom that draws spend on how each variable depends on the others, (N,)."""
        return np.asarray(self.freedoms[-1][0].sum(axis=1))

    def widening(self, inside: BoolArray) -> FloatArray:
        """How many times as many they should spend, (N,); not for tables that a block holds."""
        ratios = [np.ones(len(inside))]
        for spent, wanted in self.freedoms:
            more = np.where(inside, 0.0, wanted - spent).sum(axis=1)
            ratios.append(1.0 + more / np.maximum(spent.sum(axis=1), 1e-300))
        return np.asarray(np.max(ratios, axis=0))

    @classmethod
    def of(
        cls, groups: LevelGroups, tables: PairTables, model: Observed, draws: Sequence[Model]
    ) -> "Target":
        """Judge tables by those of a model and by their variance over posterior draws.

        Few records do not show the misfit of a table of many cells. Where levels are ordered, they
        show that of groups of adjacent levels, so that tables are judged from coarse to fine: the
        target of groups scales that of their levels. Where records hold none of a level, how it
        depends on the other variable stays the model's.
        """
        layout, shares = tables.layout, model_tables(model)
        target, freedoms = Misfit.of(tables, shares).expected, []
        own_tables = shares * expand_blocks(layout, tables.records)
        margins = row_sums(layout, own_tables)
        for coarse, sums in groups.resolutions:
            own = PairTables(coarse, sums @ tables.counts @ sums.T)
            merged = [Model(coarse, draw.weights, sums @ draw.factors) for draw in draws]
            trust, spent, wanted = judge(own, sums @ shares @ sums.T, merged)
            share, now = expand_blocks(coarse, trust), sums @ target @ sums.T
            ratio = share * own.counts / np.maximum(now, 1e-300) + 1.0 - share
            ratio = sums.T @ np.where(now > 0, ratio, 1.0) @ sums
            target, own_tables = target * ratio, own_tables * ratio
            freedoms.append((spent, wanted))
        return cls(PairTables(layout, rake(layout, own_tables, margins)), freedoms)


def judge(
    tables: PairTables, shares: FloatArray, draws: Sequence[Model]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the share of the records in the target of each table, and degrees of freedom.

    Those that the draws spend on how each variable depends on the others, and that they should.

    The chi-square statistic, over the degrees of freedom that the model does not spend on a
    table, is the factor ``phi`` by which the records are further from the model than by chance.
    If the truth is a Dirichlet variable of precision ``k`` around the model's table,
    ``phi = 1 + (N - phi) / k``, and the truth given the records has the mean
    ``(N records + k model) / (N + k)``.
    """
    records = tables.records
    misfit, spent = Misfit.of(tables, shares), freedom_spent(tables, shares, draws)
    left = np.maximum(misfit.freedom - spent, LEAST_FREEDOM * misfit.freedom)
    held = records > 0
    phi = misfit_factors(misfit.statistic, left, held)
    beyond = (phi > 1.0) & held
    precision = np.maximum((records - phi) / np.where(beyond, phi - 1.0, 1.0), 1.0)
    trust = np.where(beyond, records / np.maximum(records + precision, 1e-300), 0.0)
    wanted = spent + trust * np.maximum(misfit.freedom - spent, 0.0)
    return trust, spent, wanted


def freedom_spent(tables: PairTables, shares: FloatArray, draws: Sequence[Model]) -> FloatArray:
    """Degrees of freedom that draws spend on how two variables depend, (N, N).

    It is the variance of each cell over the draws, apart from that of the margins, in units of its
    chance variance.
    """
    layout = tables.layout
    some = draws[:: -(-len(draws) // MOST_DRAWS) or 1]
    total, squares = np.zeros_like(shares), np.zeros_like(shares)
    margin = shares.sum(axis=1) / max(len(layout.levels) - 1, 1)
    for draw in some:
        weighted = draw.factors * draw.weights
        # The margins' part, dp p' + p dp', is a product of two columns: appended as two classes.
        away = weighted.sum(axis=1) - margin
        left = np.column_stack([weighted, away, margin])
        found = left @ np.column_stack([draw.factors, -margin, -away]).T - shares
        total += found
        squares += np.square(found, out=found)
    if not some:
        return np.zeros_like(tables.records)
    variance = np.maximum(squares - total**2 / len(some), 0.0) / max(len(some) - 1, 1)
    size = expand_blocks(layout, tables.records)
    common = (shares * size >= 1.0) & off_block_mask(layout)
    return block_sums(layout, variance * size / np.maximum(shares, 1e-300) * common)


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


def shift(
    target: PairTables,
    model: Observed,
    start: Observed,
    anchor: float,
    steps: int,
    policy: Policy = DEFAULT,
) -> Observed:
    """Fit a model to tables, with itself as prior that counts as ``anchor`` times the records."""
    if not target.counts.any():
        return model
    mass = anchor * target.weight * model.weights
    prior = Prior(mass * len(target.records) / 2, mass * model.factors)
    limits = Limits(max_steps=steps, progress=1e-6, exact=-1.0)
    em = Em(prior=prior, memory=policy.pair_memory, limits=limits, policy=policy)
    done = run(em, target, start).model
    return Observed(done.layout, done.weights, done.factors)


# --- what is left ---------------------------------------------------------------------------------


def find_gaps(
    data: InMemory,
    groups: LevelGroups,
    tables: PairTables,
    misfit: Misfit,
    policy: Policy = DEFAULT,
) -> tuple[TableGap, ...]:
    """Tables of two variables in which records and model differ beyond chance, worst first."""
    chance = misfit.freedom + policy.gap_errors * np.sqrt(2.0 * misfit.freedom)
    beyond = np.triu(misfit.statistic - chance, 1) * (tables.records > 0)
    order = np.argsort(-beyond, axis=None, kind="stable")[: policy.gaps_kept]
    pairs = np.column_stack(np.unravel_index(order, beyond.shape))
    return tuple(
        make_gap(data, groups, tables, misfit, (i, j))
        for i, j in pairs.tolist()
        if beyond[i, j] > 0.0
    )


def make_gap(
    data: InMemory, groups: LevelGroups, tables: PairTables, misfit: Misfit, pair: tuple[int, int]
) -> TableGap:
    """Describe how far a table of records is from that of a model, and where it differs most."""
    block = tuple(groups.layout.rows(n) for n in pair)
    records = float(tables.records[pair])
    given, own = tables.counts[block] / records, misfit.expected[block] / records
    away = np.abs(given - own)
    names = [group_names(data, groups, n) for n in pair]
    single = np.ix_(*([name is not None for name in each] for each in names))
    shown = np.zeros_like(away)
    shown[single] = away[single]
    at = np.unravel_index(int(np.argmax(shown)), away.shape)
    variables = [data.domain.names[groups.variables[n]] for n in pair]
    cell = [f"{v} = {each[k]}" for v, each, k in zip(variables, names, at, strict=True)]
    return TableGap(
        tuple(variables),
        float(away.sum() / 2),
        expected_distance(own, max(records, 1.0)),
        ", ".join(cell),
        float(given[at]),
        float(own[at]),
    )


def group_names(data: InMemory, groups: LevelGroups, place: int) -> list[str | None]:
    """Labels of the groups of a variable; None for one that pools several levels."""
    n = groups.variables[place]
    own = groups.group[data.layout.rows(n)] - groups.layout.offsets[place]
    names: list[str | None] = [None] * groups.layout.levels[place]
    for level, k in zip(data.domain[n].levels, own, strict=True):
        names[k] = str(level) if (own == k).sum() == 1 else None
    return names
