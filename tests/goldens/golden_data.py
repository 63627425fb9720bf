"""Small worlds that the golden fits are made from: all by seed, none from a file."""

from itertools import combinations

import numpy as np

import rejoint as rj

SHAPE = (3, 4, 2, 3, 3)


def model(seed, shape=SHAPE, rank=3, concentration=0.5):
    """A model whose classes are all well filled and differ from each other."""
    rng = np.random.default_rng(seed)
    factors = [rng.dirichlet(np.full(size, concentration), size=rank).T for size in shape]
    return rj.LowRankPMF(rng.dirichlet(np.full(rank, 5.0)), factors)


def records(seed=0, rows=600, shape=SHAPE, rank=3, missing=0.2, weighted=False):
    """Records with holes; weights are small whole numbers, some of them zero."""
    truth = model(seed, shape, rank)
    codes = np.array(truth.sample(rows, random_state=seed).codes)
    codes[np.random.default_rng(seed + 1).random(codes.shape) < missing] = -1
    weight = np.random.default_rng(seed + 2).integers(0, 4, rows).astype(float)
    return rj.Records(truth.domain, codes, weight if weighted else None)


def ordinal(rows=400):
    """Records whose columns are bumps over seven ordered levels."""
    rng = np.random.default_rng(5)
    at = np.arange(7)[:, None]
    factors = [np.exp(-0.5 * ((at - rng.uniform(0, 6, 2)) / 1.3) ** 2) + 0.01 for _ in range(4)]
    domain = rj.Domain(
        tuple(rj.Variable(f"x{n}", tuple(range(7)), kind="ordinal") for n in range(4))
    )
    truth = rj.LowRankPMF([0.4, 0.6], [a / a.sum(axis=0) for a in factors], domain)
    return rj.datasets.remove_cells(truth.sample(rows, random_state=5), 0.1, random_state=5)


def triples(rows=3000, seed=0, shape=(3, 3, 3, 3), rank=2):
    """All triples of a sample, which determine the joint but do not fit it exactly."""
    return rj.Marginals.count(model(seed, shape, rank).sample(rows, random_state=seed), order=3)


def held_back(rows=2000):
    """Triples whose counts below eight are not published."""
    tables = triples(rows, seed=1)
    hidden = {names: np.where(tables[names] < 8, np.nan, tables[names]) for names in tables}
    return rj.Marginals.from_tables(hidden, suppressed=(0, 7))


def moments():
    """Means, covariances and one third moment of three variables of two levels."""
    domain = rj.Domain.of({"a": [0, 1], "b": [0, 1], "c": [0, 1]})
    joint = model(1, (2, 2, 2), 2, concentration=2.0).to_dense()
    cells = np.indices(joint.shape).reshape(3, -1)
    share = joint.ravel()
    mean = cells @ share
    away = cells - mean[:, None]
    found = {name: float(mean[n]) for n, name in enumerate("abc")}
    for order in (2, 3):
        for which in combinations(range(3), order):
            found["abc"[which[0]], *("abc"[n] for n in which[1:])] = float(
                np.prod(away[list(which)], axis=0) @ share
            )
    return rj.Marginals.from_tables({}, domain=domain, moments=found)


def labelled(rows=400, seed=0):
    """Columns and a label that depends on whether two of them agree, with holes."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, size=(rows, 4))
    same = (codes[:, 0] == codes[:, 1]) ^ (rng.random(rows) < 0.05)
    cells = np.array(["low", "mid", "high"], dtype=object)[codes]
    cells[rng.random(cells.shape) < 0.1] = None
    return {name: cells[:, n].tolist() for n, name in enumerate("abcd")}, same.tolist()


def stars(users=120, seed=0):
    """Rows of user, film, rating: two tastes, the first three films against the others."""
    films = ["Heat", "Ronin", "Speed", "Ghost", "Emma", "Persuasion"]
    rng = np.random.default_rng(seed)
    good = (rng.random(users) < 0.5)[:, None] == (np.arange(6) < 3)
    table = np.where(good, rng.integers(4, 6, good.shape), rng.integers(1, 4, good.shape))
    seen = rng.random(good.shape) < 0.6
    return [
        (f"user {u}", film, int(table[u, n]))
        for u in range(users)
        for n, film in enumerate(films)
        if seen[u, n]
    ]
