"""Synthesis: a population of whole records that meets tables as nearly as possible."""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from rejoint.check import check_positive_int
from rejoint.factorization.factorize import factorize, interpret
from rejoint.factorization.table_goals import IntervalGoal, exact_goals
from rejoint.marginals.marginals import Marginals
from rejoint.pmf.pmf import LowRankPMF
from rejoint.population.anneal import swap_rows
from rejoint.population.rake import rake
from rejoint.population.targets import (
    Counts,
    TableCells,
    TableTargets,
    describe_disagreement,
    known_cells,
    population_size,
)
from rejoint.queries.log_prob import draw_from_columns
from rejoint.records.records import Records
from rejoint.text import cite, plural

Array = NDArray[np.float64]

#: Rows of the pool that are drawn for each wanted record.
POOL_ROWS_PER_RECORD = 20

#: Smallest and largest number of rows that the pool is drawn from.
LEAST_POOL_ROWS, MOST_POOL_ROWS = 20_000, 1_000_000

#: Rows drawn for each cell of a table that has records, so that rare cells can be filled, too.
POOL_ROWS_PER_CELL = 6

#: Relative difference up to which a population is meant to be as large as the tables' own.
SAME_SIZE = 0.1


@dataclass(frozen=True)
class Synthesis:
    """A synthetic population, and how near its tables are to the rounded ones.

    Parameters
    ----------
    records : Records
        The population, one row a person.
    stop : str
        How well the tables are met.
    misplaced : dict
        For each table the number of records that would have to change cell, worst first.

    Examples
    --------
    >>> Synthesis(Records.of({"a": ["x"]}), "met", {("a",): 0}).misplaced
    {('a',): 0}
    """

    records: Records = field(repr=False)
    stop: str
    misplaced: dict[tuple[str, ...], int] = field(repr=False)


def synthesize(
    pmf: LowRankPMF | Marginals,
    n: int,
    tables: Marginals | None = None,
    *,
    rounds: int = 6000,
    random_state: int | np.random.Generator | None = None,
) -> Synthesis:
    """Make ``n`` records from the model whose tables are the given ones in integers.

    Tables are scaled to ``n`` and rounded so that they still add up (controlled rounding). A pool
    of rows is drawn from the model and weighted to meet the tables; the weights are rounded to
    integers, and rows are swapped until the tables are met or the rounds are over. No record is
    made that the model rules out.

    Parameters
    ----------
    pmf : LowRankPMF or Marginals
        The joint of all variables; or tables alone, which are then the ones to meet, and whose
        joint :func:`rejoint.factorize` makes.
    n : int
        Number of records.
    tables : Marginals, optional
        Tables to meet, of variables of the model; without them the records are a plain sample.
        Rounded and suppressed numbers are met within their bounds, at what the model says.
    rounds : int
        Largest number of swaps that are tried.
    random_state : int or Generator, optional
        Source of randomness.

    Returns
    -------
    Synthesis

    Examples
    --------
    >>> import rejoint as rj
    >>> p = rj.datasets.asia()
    >>> tables = rj.Marginals.from_pmf(p, subsets=[("smoke", "lung"), ("lung", "xray")])
    >>> made = rj.synthesize(p, 200, tables, random_state=0)
    >>> made.stop
    '200 records: all rounded tables are met exactly.'

    From tables alone:

    >>> tables = rj.Marginals.from_tables({("smoke", "lung"): [[90, 110], [10, 790]]})
    >>> rj.synthesize(tables, 200, random_state=0).stop
    '200 records: all rounded tables are met exactly.'
    """
    n, rng = check_positive_int("n", n), np.random.default_rng(random_state)
    if isinstance(pmf, Marginals):
        if tables is not None:
            raise TypeError("Tables were given twice: give a model and tables, or tables alone.")
        tables, pmf = pmf, factorize(pmf, random_state=rng, progress=False).pmf
    if tables is None or (isinstance(tables, Marginals) and not len(tables)):
        sample = pmf.sample(n, random_state=rng)
        return Synthesis(sample, f"A sample of {plural(n, 'record')}: no tables were given.", {})
    filled = _fill_from_model(pmf, tables)
    pool = _draw_pool(pmf, n, filled, rng)
    chosen = [pmf.domain.index(name) for name in filled.domain.names]
    part = Records(filled.domain, pool.codes[:, chosen], pool.sample_weight)
    weights = rake(part, filled, total=float(n), tolerance=1e-4, max_sweeps=200).weights
    counts = _adjust_sum(round_systematically(weights, rng), weights, n)
    targets = _make_targets(filled, n)
    cells = TableCells(filled.domain.shape, filled.index_subsets)
    laid_out = cells.find_all(part.codes) + cells.offsets[:-1, None]
    counts = swap_rows(counts, laid_out, targets, rng, rounds)
    codes = np.repeat(pool.codes, counts, axis=0)[rng.permutation(n)].astype(np.int64)
    return _describe(Records(pmf.domain, codes), filled, targets)


def _fill_from_model(pmf: LowRankPMF, tables: Marginals) -> Marginals:
    """Tables with what is not known exactly taken from the model, which must have their levels."""
    if not isinstance(tables, Marginals):
        raise TypeError(f"tables must be Marginals, got {type(tables).__name__}.")
    for variable in tables.domain:
        if variable.name not in pmf.domain:
            raise ValueError(
                f"The tables mention {cite(variable.name)}, which the model does not have."
            )
        if pmf.domain[variable.name].levels != variable.levels:
            raise ValueError(
                f"The tables have other levels of {cite(variable.name)} than the model, or in "
                "another order: align the model with pmf.align(tables.domain)."
            )
    return _round_back(pmf, interpret(replace(tables, noisy=False)).tables.filled(pmf))


def _round_back(pmf: LowRankPMF, tables: Marginals) -> Marginals:
    """Tables whose rounded numbers are the model's, within the bounds of rounding."""
    flat = tables.flat.copy()
    for goal in exact_goals(tables):
        i = tables.positions.get(goal.subset)
        if not isinstance(goal, IntervalGoal) or i is None or not tables.rounding[i]:
            continue
        shares = np.asarray(pmf.marginal(tables.subsets[i])).ravel()
        within = goal.project(shares, np.zeros_like(shares))
        flat[tables.starts[i] : tables.starts[i + 1]] = tables.totals[i] * within
    return replace(tables, flat=flat, rounding=np.zeros(len(tables)))


def _draw_pool(pmf: LowRankPMF, n: int, tables: Marginals, rng: np.random.Generator) -> Records:
    """Draw distinct rows with weights; draws from the model itself weigh the most."""
    size = int(np.clip(POOL_ROWS_PER_RECORD * n, LEAST_POOL_ROWS, MOST_POOL_ROWS))
    drawn = pmf.sample(size, random_state=rng)
    codes, weight = [drawn.codes], [np.ones(len(drawn))]
    for i, subset in enumerate(tables.index_subsets):
        names = [tables.domain.names[m] for m in subset]
        cells = np.repeat(np.argwhere(tables.counts_of(i) > 0), POOL_ROWS_PER_CELL, axis=0)
        rows = _draw_rows_of_cells(pmf, pmf.domain.indices(names), cells, rng)
        codes.append(rows.astype(drawn.codes.dtype))
        weight.append(np.full(len(rows), 1e-3))
    return Records(pmf.domain, np.concatenate(codes), np.concatenate(weight)).merged()


def _draw_rows_of_cells(
    pmf: LowRankPMF, variables: tuple[int, ...], cells: NDArray[np.intp], rng: np.random.Generator
) -> NDArray[np.intp]:
    """Draw a row for each cell, from its posterior; from all classes if none has the cell."""
    pmf = pmf.mixture
    likelihood = np.tile(pmf.weights, (len(cells), 1))
    for n, levels in zip(variables, cells.T, strict=True):
        likelihood = likelihood * pmf.factors[n][levels]
    likelihood[likelihood.sum(axis=1) <= 0.0] = pmf.weights
    classes = draw_from_columns(likelihood.T, rng)
    rows = np.empty((len(cells), len(pmf.domain)), dtype=np.intp)
    for n in range(len(pmf.domain)):
        if n in variables:
            rows[:, n] = cells[:, variables.index(n)]
        else:
            rows[:, n] = draw_from_columns(pmf.factors[n][:, classes], rng)
    return rows


def round_to_sum(values: Array, total: int) -> NDArray[np.int64]:
    """Round numbers to integers that add up to ``total``, the nearest to the next first up."""
    values = np.maximum(values, 0.0)
    scaled = values * (total / values.sum())
    # An integer that rounding errors left slightly below itself stays that integer.
    down = np.floor(scaled + 1e-9)
    left = total - int(down.sum())
    order = np.argsort(-(scaled - down), kind="stable")
    down[order[:left]] += 1.0
    rounded: NDArray[np.int64] = down.astype(np.int64)
    return rounded


def round_systematically(values: Array, rng: np.random.Generator) -> NDArray[np.int64]:
    """Round numbers down or up at random, without bias; sums of runs stay close."""
    edges = np.concatenate([[0.0], np.cumsum(values)]) + rng.random()
    return np.diff(np.floor(edges)).astype(np.int64)


def _adjust_sum(counts: Counts, weights: Array, n: int) -> Counts:
    """Counts that add up to ``n``, changed by one where rounding lost or gained the most."""
    gap = n - int(counts.sum())
    order = np.argsort(-(weights - counts) * np.sign(gap or 1), kind="stable")
    adjusted = counts.copy()
    adjusted[order[: abs(gap)]] += np.sign(gap)
    return adjusted


def _make_targets(tables: Marginals, n: int) -> TableTargets:
    """The tables of ``n`` records in integers.

    Counts of a table with unknown cells are shares of the number of records behind the tables:
    of ``n`` itself, if it is near that number.
    """
    total = population_size(tables) or 1.0
    total = float(n) if abs(n / total - 1.0) < SAME_SIZE else total
    targets, masks = [], []
    for i in range(len(tables)):
        known = known_cells(tables, i)
        if known.all():
            targets.append(round_to_sum(tables.shares(i).ravel(), n))
        else:
            size = total if tables.counted[i] else 1.0
            part = np.where(known, tables.counts_of(i).ravel() / size, 0.0)
            rest = max(1.0 - float(part.sum()), 0.0)
            targets.append(round_to_sum(np.append(part, rest), n)[:-1])
        masks.append(known.astype(np.int64))
    return TableTargets(np.concatenate(targets), np.concatenate(masks))


def _describe(records: Records, tables: Marginals, targets: TableTargets) -> Synthesis:
    """The synthesis with the records that are in the wrong cells of each table."""
    cells = TableCells(tables.domain.shape, tables.index_subsets)
    places = cells.find_all(records.project(tables.domain.names).codes) + cells.offsets[:-1, None]
    wrong = np.add.reduceat(np.abs(targets.excess(places.ravel())), cells.offsets[:-1])
    # Records in excess may belong into unknown cells: half of an odd number is rounded up.
    misplaced = {names: -(-int(w) // 2) for names, w in zip(tables.subsets, wrong, strict=True)}
    ranked = dict(sorted(misplaced.items(), key=lambda item: -item[1]))
    worst, off = next(iter(ranked.items()))
    size = plural(len(records), "record")
    if off == 0:
        return Synthesis(records, f"{size}: all rounded tables are met exactly.", ranked)
    met = sum(value == 0 for value in ranked.values())
    stop = (
        f"{size}: {met} of {plural(len(ranked), 'table')} are met exactly, in the worst, {worst}, "
        f"{plural(off, 'record')} would have to change cell ({off / len(records):.2%})."
    )
    # A disagreement by less than one record does no harm.
    stop += describe_disagreement(tables, (1.0 - 1e-9) / len(records), "no population meets")
    return Synthesis(records, stop, ranked)
