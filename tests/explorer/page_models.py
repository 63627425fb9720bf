"""Models and evidence drawn at random, and a page as a person meets it: whole, then clicked at."""

import time

import numpy as np

import rejoint as rj
from rejoint.queries.mixture import Block, BlockLayout


def random_layouts(rng, shape):
    """Blocks of two or three variables, levels of some in groups; the last variables are alone."""
    order, layouts = rng.permutation(len(shape)).tolist(), []
    while len(order) > 1 and len(layouts) < 2:
        members = tuple(order.pop() for _ in range(min(int(rng.integers(2, 4)), len(order))))
        groups = []
        for n in members:
            count = int(rng.integers(1, shape[n] + 1))
            groups.append(rng.permutation(np.arange(shape[n]) % count))
        layouts.append(BlockLayout(members, tuple(groups)))
    return layouts


def with_blocks(rng, pmf, layouts, *, zeros=False):
    """A model with random tables of blocks, which its factors are the margins of."""
    factors, blocks = list(pmf.factors), []
    for layout in layouts:
        table = rng.dirichlet(np.full(layout.size, 0.4), pmf.rank).T
        if zeros:
            table = np.where(table < table.max(axis=0) / 50, 0.0, table)
            table = table / table.sum(axis=0)
        blocks.append(Block(layout, table))
        for i, n in enumerate(layout.members):
            share = layout.within(i, np.maximum(factors[n], 1e-3))
            factors[n] = share * blocks[-1].margin([n])[layout.groups[i]]
    return rj.LowRankPMF(pmf.weights, factors, pmf.domain, blocks=blocks)


def random_model(rng, variables, rank, *, most=5, zeros=False):
    sizes = rng.integers(2, most + 1, variables)
    factors = [rng.dirichlet(np.full(size, 0.4), rank).T for size in sizes]
    if zeros:
        factors = [np.where(factor < 0.05, 0.0, factor) for factor in factors]
        factors = [factor / factor.sum(axis=0) for factor in factors]
    return rj.LowRankPMF(rng.dirichlet(np.ones(rank)), factors)


def random_evidence(rng, pmf, share):
    """Hard, listed and soft evidence, possible because a record drawn from the model shows it."""
    record = pmf.sample(1, random_state=rng).codes[0]
    given = {}
    for variable, code in zip(pmf.domain.variables, record, strict=True):
        if rng.random() > share:
            continue
        size = len(variable)
        kind = rng.integers(3)
        if kind == 0:
            given[variable.name] = int(code)
        elif kind == 1:
            others = rng.choice(size, int(rng.integers(1, size + 1)), replace=False)
            given[variable.name] = sorted({int(code), *others.tolist()})
        else:
            given[variable.name] = rng.random(size) * 10.0 ** -rng.integers(0, 300)
    return given


def pieces(pmf, given):
    """Evidence as the page keeps it."""
    out = []
    for name, value in given.items():
        n = pmf.domain.index(name)
        if isinstance(value, np.ndarray):
            out.append([n, {"kind": "soft", "weights": value.tolist()}])
        else:
            levels = value if isinstance(value, list) else [value]
            out.append([n, {"kind": "in", "levels": levels}])
    return out


# Scripts have run, and every card on the screen has its levels: they come a frame later.
READY = """() => {
  const built = (card) => {
    const { top, bottom } = card.getBoundingClientRect();
    return bottom <= 0 || top >= innerHeight || card.querySelector(".level") !== null;
  };
  return globalThis.rejoint !== undefined && [...document.querySelectorAll(".card")].every(built);
}"""


def eventually(page, function, wanted=bool, patience=60):
    """Ask the page again and again until the answer is wanted; the answer."""
    until = time.monotonic() + patience
    while not wanted(found := page.evaluate(function)):
        assert time.monotonic() < until, f"after {patience} s still {found!r}: {function}"
        page.wait_for_timeout(50)
    return found


def visit(page, address):
    """Open an address and wait until the page can be read and clicked at."""
    page.goto(address)
    eventually(page, READY)


def copied(page, start):
    """What the clipboard holds, once that begins as it should: writing to it takes a moment."""
    read = "() => navigator.clipboard.readText()"
    return eventually(page, read, lambda text: text.startswith(start))


def level(page, variable, label):
    """The button of a level, found as a screen reader's user finds it."""
    card = page.get_by_role("group", name=variable, exact=True)
    return card.locator(".level", has=page.locator(f"bdi:text-is('{label}')"))
