"""The sets of tables: of random joints, of named cases, of low-rank models, of real records."""

import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

import rejoint as rj

Array = NDArray[np.float64]
Counts = NDArray[np.int64]
Subset = tuple[int, ...]

#: Unpublished tables that judge a set; a random part of them where there are more.
MOST_JUDGES = 40


@dataclass(frozen=True)
class Case:
    """Tables that are given, and tables that judge.

    ``published`` says how the numbers came about: "exact", "sampled", "rounded 3", ...
    """

    part: str
    name: str
    published: str
    tables: rj.Marginals
    judges: tuple[tuple[tuple[str, ...], Array], ...]

    @property
    def cells(self) -> int:
        """Cells of the joint of all variables."""
        return int(np.prod([float(levels) for levels in self.tables.domain.shape]))


Make = Callable[[], Case]


# --- random joints -----------------------------------------------------------------------------


def log_linear(shape: Sequence[int], rng: np.random.Generator) -> Array:
    """A joint with effects of one to four variables, of no low rank."""
    log = np.zeros(tuple(shape))
    spread = {1: 0.6, 2: 0.5, 3: 0.3, 4: 0.2}
    for order in range(1, min(4, len(shape)) + 1):
        for subset in itertools.combinations(range(len(shape)), order):
            effect = rng.normal(size=[shape[n] for n in subset])
            share = spread[order] / np.sqrt(max(1.0, len(shape) / 4.0) ** (order - 1))
            gone = tuple(n for n in range(len(shape)) if n not in subset)
            log += share * np.expand_dims(effect, gone)
    joint: Array = np.exp(log - log.max())
    return joint / joint.sum()


def dirichlet(shape: Sequence[int], rng: np.random.Generator) -> Array:
    """A joint whose cells have nothing to do with each other."""
    joint: Array = rng.gamma(0.5, size=tuple(shape))
    return joint / joint.sum()


# --- which tables ------------------------------------------------------------------------------


def tree(n: int, rng: np.random.Generator) -> list[Subset]:
    return [(int(rng.integers(k)), k) for k in range(1, n)]


def cycle(n: int, rng: np.random.Generator) -> list[Subset]:
    order = rng.permutation(n).tolist()
    pairs = zip(order, [*order[1:], order[0]], strict=True)
    return [(min(pair), max(pair)) for pair in pairs]


def star(n: int, rng: np.random.Generator) -> list[Subset]:
    center = int(rng.integers(n))
    return [(min(center, k), max(center, k)) for k in range(n) if k != center]


def triangles(n: int, rng: np.random.Generator) -> list[Subset]:
    """Pairs that form triangles, one beside the other."""
    order = rng.permutation(n).tolist()
    found = {(a, b) for k in range(n - 2) for a, b in itertools.combinations(order[k : k + 3], 2)}
    return sorted({(min(pair), max(pair)) for pair in found})


def pairs(n: int, rng: np.random.Generator) -> list[Subset]:
    return list(itertools.combinations(range(n), 2))


def triples(n: int, rng: np.random.Generator) -> list[Subset]:
    return list(itertools.combinations(range(n), 3))


def mixed(n: int, rng: np.random.Generator) -> list[Subset]:
    """Some tables of one to three variables, each variable in at least one."""
    every = [s for k in (2, 3) for s in itertools.combinations(range(n), k)]
    chosen = {every[k] for k in rng.choice(len(every), size=n, replace=False)}
    held = set(itertools.chain.from_iterable(chosen))
    return [*sorted(chosen), *((k,) for k in range(n) if k not in held)]


STRUCTURES = (tree, cycle, star, triangles, pairs, triples, mixed)

PUBLISHED = (
    *("exact", "sampled", "rounded 3", "rounded 5", "rounded nearest 5"),
    *("suppressed", "zero row"),
)

#: Records behind sampled tables, and people behind the others.
RECORDS, PEOPLE = (1_000, 3_000, 10_000, 30_000), 30_000

#: Cells of a random joint at the most, so that every method can run.
MOST_CELLS = 20_000


def random_set(seed: int) -> Case:
    """One of the random sets: structures, kinds of numbers and joints take turns."""
    rng = np.random.default_rng([19, seed])
    structure = STRUCTURES[seed % len(STRUCTURES)]
    published = PUBLISHED[seed // len(STRUCTURES) % len(PUBLISHED)]
    joint_of = dirichlet if rng.random() < 0.25 else log_linear
    shape = [MOST_CELLS + 1]
    while np.prod(shape) > MOST_CELLS:
        shape = rng.integers(2, 6, size=int(rng.integers(4, 8))).tolist()
    joint = joint_of(shape, rng)
    name = f"{seed:3} {structure.__name__} of {joint_of.__name__} {'x'.join(map(str, shape))}"
    return publish("random", name, published, joint, structure(len(shape), rng), rng)


def publish(
    part: str,
    name: str,
    published: str,
    joint: Array,
    subsets: Sequence[Subset],
    rng: np.random.Generator,
) -> Case:
    """Publish tables of a joint; the judges are unpublished tables of the same joint."""
    names = tuple(f"x{k}" for k in range(joint.ndim))
    if published in ("exact", "zero row"):
        if published == "zero row":
            joint = without_one_level(joint, rng)
        tables = {s: margin(joint, s) for s in subsets}
        given = from_tables(tables, names, joint.shape, kind="shares")
    elif published == "sampled":
        size = int(rng.choice(RECORDS))
        name += f", n = {size:,}"
        given = counted(rng.multinomial(size, joint.ravel()).reshape(joint.shape), names, subsets)
    else:
        people = np.rint(PEOPLE * joint)
        joint = people / people.sum()
        given = hide(people, names, subsets, published, rng)
    return Case(part, name, published, given, unpublished(joint, names, subsets, rng))


def hide(
    people: Array,
    names: tuple[str, ...],
    subsets: Sequence[Subset],
    published: str,
    rng: np.random.Generator,
) -> rj.Marginals:
    """Tables of a population as an office publishes them: rounded, small or random cells hidden."""
    tables = {s: margin(people, s) for s in subsets}
    options: dict[str, object] = {}
    if "rounded" in published:
        base = 3 if "3" in published else 5
        way = nearest if "nearest" in published else at_random
        options["rounded"] = f"nearest {base}" if "nearest" in published else base
        tables = {s: way(table, base, rng) for s, table in tables.items()}
    if "suppressed" in published:
        every = np.concatenate([table.ravel() for table in tables.values()])
        if rng.random() < 0.5:  # the smallest tenth of all cells, and the limit is said
            limit = max(1.0, float(np.quantile(every, 0.1)))
            hidden = {s: (table > 0) & (table <= limit) for s, table in tables.items()}
            options["suppressed"] = (1.0, limit)
        else:  # any tenth of the cells, and nothing is said
            hidden = {s: rng.random(table.shape) < 0.1 for s, table in tables.items()}
            options["suppressed"] = (0.0, np.inf)
        tables = {s: np.where(hidden[s], np.nan, table) for s, table in tables.items()}
    return from_tables(tables, names, people.shape, kind="counts", **options)


def nearest(table: Array, base: int, rng: np.random.Generator) -> Array:
    return base * np.rint(table / base)


def at_random(table: Array, base: int, rng: np.random.Generator) -> Array:
    """Multiples of the base, up or down at random and without bias."""
    down = np.floor(table / base)
    return base * (down + (rng.random(table.shape) < table / base - down))


def without_one_level(joint: Array, rng: np.random.Generator) -> Array:
    n = int(np.argmax(joint.shape))
    joint = joint.copy()
    np.moveaxis(joint, n, 0)[int(rng.integers(joint.shape[n]))] = 0.0
    return joint / joint.sum()


def margin(joint: Array, subset: Subset) -> Array:
    table: Array = joint.sum(axis=tuple(n for n in range(joint.ndim) if n not in subset))
    return table


def from_tables(
    tables: dict[Subset, Array], names: Sequence[str], shape: Sequence[int], **options: object
) -> rj.Marginals:
    domain = rj.Domain.of(dict(zip(names, shape, strict=True)))
    named = {tuple(names[n] for n in s): table for s, table in tables.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rounded tables disagree with each other
        return rj.Marginals.from_tables(named, domain=domain, **options)  # type: ignore[arg-type]


def counted(counts: Counts, names: Sequence[str], subsets: Sequence[Subset]) -> rj.Marginals:
    """Tables that are counted from records, so that they are known to be of a sample."""
    domain = rj.Domain.of(dict(zip(names, counts.shape, strict=True)))
    seen = np.argwhere(counts > 0).astype(np.int8)
    records = rj.Records(domain, seen, counts[counts > 0].astype(np.float64))
    return rj.Marginals.count(records, subsets=[tuple(names[n] for n in s) for s in subsets])


def unpublished(
    joint: Array, names: Sequence[str], subsets: Sequence[Subset], rng: np.random.Generator
) -> tuple[tuple[tuple[str, ...], Array], ...]:
    """Tables of four variables (or all, if fewer) that no given table holds."""
    chosen = choose_judges(len(names), subsets, rng)
    return tuple((tuple(names[n] for n in s), margin(joint, s)) for s in chosen)


def choose_judges(n: int, subsets: Sequence[Subset], rng: np.random.Generator) -> list[Subset]:
    every = itertools.combinations(range(n), min(4, n))
    open_ones = [s for s in every if not any(set(s) <= set(given) for given in subsets)]
    if len(open_ones) > MOST_JUDGES:
        picked = rng.choice(len(open_ones), size=MOST_JUDGES, replace=False)
        return [open_ones[k] for k in sorted(picked)]
    return open_ones


# --- named cases -------------------------------------------------------------------------------


def named() -> Iterator[tuple[str, Make]]:
    yield "two by two", two_by_two
    yield "five tables with Sex", five_tables_with_sex
    yield "8 variables, 30 triples", thirty_triples
    shared: list[Subset] = [(0, 1), (0, 2), (0, 3)]
    triangle: list[Subset] = [(0, 1), (1, 2), (0, 2)]
    yield "three share a variable", lambda: small("three share a variable", (5, 4, 2, 4), shared)
    yield "triangle", lambda: small("triangle", (4, 5, 4), triangle)
    yield "town of zeros", lambda: small("town of zeros", (4, 5, 4), triangle, "zero row")
    every: list[Subset] = list(itertools.combinations(range(6), 3))
    yield "triples 6x4", lambda: small("triples 6x4", (4,) * 6, every)
    yield "star 6x4", lambda: small("star 6x4", (4,) * 6, [(0, k) for k in range(1, 6)])
    yield "chain 6x4", lambda: small("chain 6x4", (4,) * 6, [(k, k + 1) for k in range(5)])


def small(
    name: str, shape: tuple[int, ...], subsets: Sequence[Subset], published: str = "exact"
) -> Case:
    rng = np.random.default_rng([19, len(name)])
    return publish("named", name, published, log_linear(shape, rng), subsets, rng)


def two_by_two() -> Case:
    table = {("Smoke", "Lung"): {("yes", "yes"): 90, ("yes", "no"): 110}}
    table["Smoke", "Lung"] |= {("no", "yes"): 10, ("no", "no"): 790}
    return Case("named", "two by two", "exact", rj.Marginals.from_tables(table), ())


def five_tables_with_sex() -> Case:
    columns = rj.datasets.adult(backend="dict")
    others = ("age", "education", "marital-status", "hours-per-week", "income")
    chosen = {name: ["?" if x is None else x for x in columns[name]] for name in ("sex", *others)}
    records = rj.Records.of(chosen, bins={"age": 6, "hours-per-week": 5})
    count = rj.Marginals.count(records, subsets=[("sex", name) for name in others])
    # Tables of all people are published numbers, not of a sample.
    tables = rj.Marginals(count.domain, count.index_subsets, count.flat)
    rng = np.random.default_rng(19)
    judges = choose_judges(6, tables.index_subsets, rng)
    named = [tuple(records.names[n] for n in s) for s in judges]
    shares = tuple((four, records.marginal(four)) for four in named)
    return Case("named", "five tables with Sex", "exact", tables, shares)


def thirty_triples() -> Case:
    rng = np.random.default_rng([19, 8])
    shape = (3, 2, 4, 3, 2, 3, 4, 3)
    every = list(itertools.combinations(range(8), 3))
    subsets = [every[k] for k in sorted(rng.choice(len(every), size=30, replace=False))]
    published = "rounded 5, suppressed"
    joint = log_linear(shape, rng)
    return publish("named", "8 variables, 30 triples", published, joint, subsets, rng)


# --- low-rank models ---------------------------------------------------------------------------


def low_rank() -> Iterator[tuple[str, Make]]:
    for rank, shape in (
        (2, (2,) * 6),
        (3, (3,) * 5),
        (5, (4,) * 6),
        (8, (4,) * 6),
        (15, (10,) * 5),
    ):
        name = f"rank {rank}, {len(shape)}x{shape[0]}"
        yield name, partial(triples_of, name, rank, shape)


def triples_of(name: str, rank: int, shape: tuple[int, ...]) -> Case:
    rng = np.random.default_rng([19, rank])
    weights = rng.dirichlet(np.full(rank, 5.0))
    factors = [rng.dirichlet(np.ones(levels), size=rank).T for levels in shape]
    truth = rj.LowRankPMF(weights, factors)
    subsets = triples(len(shape), rng)
    tables = rj.Marginals.from_pmf(truth, order=3)
    judges = choose_judges(len(shape), subsets, rng)
    named = [tuple(truth.domain.names[n] for n in s) for s in judges]
    shares = tuple((four, truth.marginal(four)) for four in named)
    return Case("low rank", name, "exact", tables, shares)


# --- real records ------------------------------------------------------------------------------

ADULT = ("workclass", "marital-status", "occupation", "relationship", "race", "sex", "income")

REAL: dict[str, tuple[str, ...]] = {
    "adult": ADULT,
    "car": (),
    "nursery": (),
    "votes": (),
    "mushroom": (),
    "heart": (),
    "credit": (),
}

#: Variables of a real set at the most, and cells, so that IPF can run.
MOST_VARIABLES, MOST_REAL_CELLS = 10, 120_000


def real(splits: int) -> Iterator[tuple[str, Make]]:
    for source, published, split in itertools.product(
        REAL, ("pairs", "triples", "mixed"), range(splits)
    ):
        name = f"{source}, {published}" + (f", split {split}" if splits > 1 else "")
        yield name, partial(half, name, source, published, split)


def half(name: str, source: str, published: str, split: int) -> Case:
    """Tables of one half of the records, judged by 4-way tables of the other half."""
    records = read_real(source)
    rng = np.random.default_rng([19, split])
    order = rng.permutation(len(records))
    middle = len(order) // 2
    seen = rj.Records(records.domain, records.codes[order[:middle]])
    unseen = rj.Records(records.domain, records.codes[order[middle:]])
    number = len(records.names)
    structure = {"pairs": pairs, "triples": triples, "mixed": mixed}[published]
    subsets = structure(number, rng)
    names = [tuple(records.names[n] for n in s) for s in subsets]
    tables = rj.Marginals.count(seen, subsets=names)
    judges = choose_judges(number, subsets, rng)
    named = [tuple(records.names[n] for n in s) for s in judges]
    shares = tuple((four, unseen.marginal(four)) for four in named)
    return Case("real", f"{name}, n = {middle:,}", "sampled", tables, shares)


def read_real(source: str) -> rj.Records:
    """A real set with missing values as a level, numbers in four bins, and variables that fit."""
    columns = getattr(rj.datasets, source)(backend="dict")
    names = REAL[source] or tuple(columns)
    chosen = {}
    for name in names:
        values = columns[name]
        if all(isinstance(x, float | int) or x is None for x in values) and len(set(values)) > 8:
            edges = np.nanquantile(np.array(values, dtype=np.float64), [0.25, 0.5, 0.75])
            values = ["?" if x is None else str(int(np.searchsorted(edges, x))) for x in values]
        column = ["?" if x is None else str(x) for x in values]
        if 1 < len(set(column)) <= 15:
            chosen[name] = column
    cells, kept = 1, []
    # The last column is what the set is about.
    for name in [list(chosen)[-1], *list(chosen)[:-1]]:
        size = len(set(chosen[name]))
        if len(kept) < MOST_VARIABLES and cells * size <= MOST_REAL_CELLS:
            cells, kept = cells * size, [*kept, name]
    return rj.Records.of({name: chosen[name] for name in kept})
