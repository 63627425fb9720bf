"""A population of whole records whose tables are the given ones, as nearly as can be."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint.check import whole
from rejoint.marginals.marginals import Marginals
from rejoint.pmf.pmf import LowRankPMF
from rejoint.population.rake import places, rake
from rejoint.population.swap import exchange_values, swap_rows
from rejoint.records.records import Records
from rejoint.text import plural

#: Rows that the pool is drawn from, for each record wanted; at least, and at the most.
DRAWS, LEAST, MOST = 20, 20_000, 1_000_000

#: Rows drawn for each cell that a table has records in, so that rare cells can be filled too.
EACH = 6


def draw_pool(pmf: LowRankPMF, n: int, tables: Marginals, rng: np.random.Generator) -> Records:
    """Distinct rows with their weights; those of the model's own draws weigh most.

    Examples
    --------
    >>> p = LowRankPMF([1.0], [[[1.0], [0.0]], [[0.5], [0.5]]])
    >>> tables = Marginals.from_tables({("x0",): [9, 1]}, domain=p.domain.project(["x0"]))
    >>> int(draw_pool(p, 10, tables, np.random.default_rng(0)).codes[:, 0].max())
    1
    """
    drawn = pmf.sample(max(min(DRAWS * n, MOST), LEAST), random_state=rng)
    codes, weight = [drawn.codes], [np.ones(len(drawn))]
    for i, subset in enumerate(tables.index_subsets):
        names = [tables.domain.names[m] for m in subset]
        wanted = np.argwhere(tables.counts_of(i) > 0)
        rows = rows_of_cells(pmf, pmf.domain.indices(names), np.repeat(wanted, EACH, axis=0), rng)
        codes.append(rows.astype(drawn.codes.dtype))
        weight.append(np.full(len(rows), 1e-3))
    return Records(pmf.domain, np.concatenate(codes), np.concatenate(weight)).merged()


def rows_of_cells(
    pmf: LowRankPMF, variables: tuple[int, ...], cells: NDArray[np.intp], rng: np.random.Generator
) -> NDArray[np.intp]:
    """A row for each cell, its other variables drawn given it; any class where none has the cell.

    Examples
    --------
    >>> p = LowRankPMF([0.5, 0.5], [np.eye(2), np.eye(2)])
    >>> rows_of_cells(p, (0,), np.array([[0], [1]]), np.random.default_rng(0))
    array([[0, 0],
           [1, 1]])
    """
    likelihood = np.tile(pmf.weights, (len(cells), 1))
    for n, levels in zip(variables, cells.T, strict=True):
        likelihood = likelihood * pmf.factors[n][levels]
    likelihood[likelihood.sum(axis=1) <= 0.0] = pmf.weights
    classes = draw_columns(likelihood.T, rng)
    rows = np.empty((len(cells), len(pmf.domain)), dtype=np.intp)
    for n in range(len(pmf.domain)):
        if n in variables:
            rows[:, n] = cells[:, variables.index(n)]
        else:
            rows[:, n] = draw_columns(pmf.factors[n][:, classes], rng)
    return rows


def draw_columns(shares: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.intp]:
    """One row number for each column, with probability in proportion to its entries."""
    edges = np.cumsum(shares, axis=0)
    # From (0, 1]: a first row of probability zero is never drawn.
    point = (1.0 - rng.random(shares.shape[1])) * edges[-1]
    return np.asarray((edges < point).sum(axis=0), dtype=np.intp)


Array = NDArray[np.float64]


def round_to_sum(values: Array, total: int) -> NDArray[np.int64]:
    """Round numbers down or up so that they add up to ``total``: those nearest to the next first.

    Examples
    --------
    >>> round_to_sum(np.array([1.2, 1.7, 2.1]), 5)
    array([1, 2, 2])
    """
    values = np.maximum(values, 0.0)
    scaled = values * (total / values.sum())
    # A whole number that rounding left a hair below itself stays that number.
    down = np.floor(scaled + 1e-9)
    left = total - int(down.sum())
    order = np.argsort(-(scaled - down), kind="stable")
    down[order[:left]] += 1.0
    rounded: NDArray[np.int64] = down.astype(np.int64)
    return rounded


def systematic(values: Array, rng: np.random.Generator) -> NDArray[np.int64]:
    """Round numbers down or up at random with the right expectation; sums of runs stay close.

    Examples
    --------
    >>> int(systematic(np.full(10, 0.5), np.random.default_rng(0)).sum())
    5
    """
    edges = np.concatenate([[0.0], np.cumsum(values)]) + rng.random()
    return np.diff(np.floor(edges)).astype(np.int64)


Counts = NDArray[np.int64]

#: A population of nearly as many as are behind the tables is meant to be as many.
NEAR = 0.1


@dataclass(frozen=True)
class Synthesis:
    """A synthetic population and how near its tables are to the rounded ones.

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
    pmf: LowRankPMF,
    n: int,
    tables: Marginals | None = None,
    *,
    rounds: int = 6000,
    random_state: int | np.random.Generator | None = None,
) -> Synthesis:
    """Make ``n`` records as the model has them, whose tables are the given ones in whole numbers.

    Tables are scaled to ``n`` and rounded so that they still add up (controlled rounding). A pool
    of rows is drawn from the model and weighted to meet the tables; the weights are rounded to
    whole numbers, rows are swapped, and records exchange values until the tables are met or
    nothing helps. No record is made that the model rules out.

    Parameters
    ----------
    pmf : LowRankPMF
        The joint of all variables.
    n : int
        Number of records.
    tables : Marginals, optional
        Tables to meet, of variables of the model; without them the records are a plain sample.
    rounds : int
        How long to search, at the most.
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
    """
    n, rng = whole("n", n), np.random.default_rng(random_state)
    if tables is None or (isinstance(tables, Marginals) and not len(tables)):
        sample = pmf.sample(n, random_state=rng)
        return Synthesis(sample, f"A sample of {plural(n, 'record')}: no tables were given.", {})
    filled = _over_model(pmf, tables)
    pool = draw_pool(pmf, n, filled, rng)
    chosen = [pmf.domain.index(name) for name in filled.domain.names]
    part = Records(filled.domain, pool.codes[:, chosen], pool.sample_weight)
    weights = rake(part, filled, total=float(n), tolerance=1e-4, max_sweeps=200).weights
    counts = systematic(weights, rng)
    counts = _whole_number(counts, weights, n)
    targets, live = make_targets(filled, n)
    counts = swap_rows(counts, places(part.codes, filled), targets, live, rng, rounds // 4)
    codes = np.repeat(pool.codes, counts, axis=0)[rng.permutation(n)].astype(np.int64)
    subsets = tuple(tuple(chosen[m] for m in subset) for subset in filled.index_subsets)

    def allowed(rows: Any) -> NDArray[np.bool_]:
        return np.isfinite(pmf.log_prob(Records(pmf.domain, rows)))

    codes = exchange_values(codes, pmf.domain.shape, subsets, targets, live, allowed, rng, rounds)
    records = Records(pmf.domain, codes)
    return _report(records, filled, targets, live)


def _over_model(pmf: LowRankPMF, tables: Marginals) -> Marginals:
    """Tables with cells that are not known filled by the model, which must have their levels."""
    if not isinstance(tables, Marginals):
        raise TypeError(f"tables must be Marginals, got {type(tables).__name__}.")
    for variable in tables.domain:
        if variable.name not in pmf.domain:
            raise ValueError(f"The tables speak of {variable.name!r}, which the model lacks.")
        if pmf.domain[variable.name].levels != variable.levels:
            raise ValueError(
                f"The tables have other levels of {variable.name!r} than the model, or in another "
                "order: align the model with pmf.align(tables.domain)."
            )
    return tables.filled(pmf)


def make_targets(tables: Marginals, n: int) -> tuple[list[Counts], list[Counts]]:
    """What each table should be in whole numbers, and ones at the cells that are known.

    Counts of a table with cells that are not known are shares of the number behind the tables:
    of ``n`` itself, where it is near that number.

    Examples
    --------
    >>> tables = Marginals.from_tables({"a": {"x": 5, "y": 3, "z": 2}})
    >>> make_targets(tables, 100)
    ([array([50, 30, 20])], [array([1, 1, 1])])
    """
    counts = tables.totals[tables.counted]
    total = float(np.median(counts)) if len(counts) else 1.0
    total = float(n) if abs(n / total - 1.0) < NEAR else total
    targets, live = [], []
    for i in range(len(tables)):
        cells, known = tables.unknown_of(i), np.ones(tables.counts_of(i).size, dtype=np.int64)
        shares = tables.shares(i).ravel()
        if cells is None:
            targets.append(round_to_sum(shares, n))
        else:
            known[cells.places] = 0
            whole_table = total if tables.counted[i] else 1.0
            part = np.where(known, tables.counts_of(i).ravel() / whole_table, 0.0)
            rest = max(1.0 - float(part.sum()), 0.0)
            targets.append(round_to_sum(np.append(part, rest), n)[:-1])
        live.append(known)
    return targets, live


def _whole_number(counts: Counts, weights: Any, n: int) -> Counts:
    """Counts that add up to n: what is lacking goes where most was lost."""
    counts = counts.copy()
    gap = n - int(counts.sum())
    order = np.argsort(-(weights - counts) * np.sign(gap or 1), kind="stable")
    for row in order[: abs(gap)]:
        counts[row] += np.sign(gap)
    return counts


def _report(
    records: Records, tables: Marginals, targets: list[Counts], live: list[Counts]
) -> Synthesis:
    subset = records.project(tables.domain.names)
    cells = places(subset.codes, tables)
    misplaced = {}
    for i, target in enumerate(targets):
        found = np.bincount(cells[i], minlength=len(target))
        wrong = np.abs(found - target) * live[i]
        # Where a cell is not known, what is too many elsewhere may well belong there.
        misplaced[tables.subsets[i]] = -(-int(wrong.sum()) // 2)
    ranked = dict(sorted(misplaced.items(), key=lambda item: -item[1]))
    worst, off = next(iter(ranked.items()))
    met = sum(value == 0 for value in ranked.values())
    size = plural(len(records), "record")
    if off == 0:
        return Synthesis(records, f"{size}: all rounded tables are met exactly.", ranked)
    stop = (
        f"{size}: {met} of {plural(len(ranked), 'table')} are met exactly, in the worst, {worst}, "
        f"{plural(off, 'record')} would have to change cell ({off / len(records):.2%})."
    )
    for strife in tables.disagreements()[:1]:
        if strife.distance * len(records) >= 1.0:
            stop += (
                f" Tables {strife.first} and {strife.second} disagree on {strife.shared} by "
                f"{strife.distance:.2%}: no population meets both."
            )
    return Synthesis(records, stop, ranked)
