"""Distances of a case, and the aims: what was set, and whether it is reached."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from benchmarks.tables_only.cases import Array, Case
from benchmarks.tables_only.methods import Marginal

import rejoint as rj
from rejoint.marginals.compare import expected_distance

#: How much worse than a peer a method may be anywhere, as a share of the peer's distance.
MARGIN = 0.03

#: Times the average distance that chance makes within which a table of a sample is met.
MOST_CHANCE = 1.5

#: Distances that differ by less are the same: two ways to one joint, each up to its tolerance.
SAME = 2e-5


@dataclass(frozen=True)
class Line:
    """A method on a case: distance to given and to unpublished tables, CPU seconds, remarks.

    ``chance`` is the largest distance to a given table of a sample in units of what chance makes on
    average.
    """

    part: str
    case: str
    published: str
    method: str
    given: float = np.nan
    held: float = np.nan
    cpu: float = np.nan
    chance: float = np.nan
    failure: str = ""

    def __str__(self) -> str:
        if self.failure:
            return f"    {self.method:12} {self.failure}"
        held = "" if np.isnan(self.held) else f"{self.held:.5f}"
        chance = "" if np.isnan(self.chance) else f"  {self.chance:.2f} of chance"
        return f"    {self.method:12} {self.given:9.1e}  {held:>8}  {self.cpu:8.2f} s{chance}"


def judge(case: Case, marginal: Marginal) -> dict[str, float]:
    """The worst distance to a given table, and the mean one to unpublished tables."""
    tables = case.tables
    found = [marginal(names) for names in tables.subsets]
    given = [miss(tables, i, table) for i, table in enumerate(found)]
    held = [distance(marginal(names), table) for names, table in case.judges]
    line = {"given": max(given), "held": float(np.mean(held)) if held else np.nan}
    if case.published == "sampled":
        chance = [expected_distance(t, n) for t, n in zip(found, tables.totals, strict=True)]
        line["chance"] = max(g / c for g, c in zip(given, chance, strict=True))
    return line


def distance(one: Array, other: Array) -> float:
    return 0.5 * float(np.abs(one - other).sum())


def miss(tables: rj.Marginals, i: int, found: Array) -> float:
    """Share of the mass that is outside of what a table says.

    That is the total variation distance where all cells are known exactly. Rounded cells say an
    interval, unknown ones their bounds; the number of people is then free, too, so that the best
    one counts.
    """
    counts, off = tables.counts_of(i).ravel(), float(tables.rounding[i])
    low, high = np.maximum(counts - off, 0.0), counts + off
    cells = tables.unknown_of(i)
    if cells is not None:
        low[cells.places], high[cells.places] = cells.low, cells.high
    mass = found.ravel()

    def outside(scale: float) -> float:
        return 0.5 * float(
            (np.maximum(scale * low - mass, 0) + np.maximum(mass - scale * high, 0)).sum()
        )

    if cells is None and off == 0.0:
        return outside(1.0 / counts.sum())
    # A convex function of the scale: it is searched by thirds.
    left, right = 0.25 / counts.sum(), 4.0 / counts.sum()
    for _ in range(80):
        one, two = left + (right - left) / 3, right - (right - left) / 3
        if outside(one) < outside(two):
            right = two
        else:
            left = one
    return outside(0.5 * (left + right))


def verdicts(lines: Sequence[Line]) -> Iterator[str]:
    """The figures that were set as aims."""
    table = {(line.part, line.case, line.method): line for line in lines if not line.failure}
    cases = {(line.part, line.case): line.published for line in lines}

    def both(mine: str, peer: str, part: str, *published: str) -> list[tuple[str, Line, Line]]:
        return [
            (case, table[here, case, mine], table[here, case, peer])
            for (here, case), kind in cases.items()
            if here == part
            and (not published or kind in published)
            and (here, case, mine) in table
            and (here, case, peer) in table
        ]

    for part in ("random", "named", "low rank", "real"):
        for mine in ("rejoint", "completion"):
            yield from _met(part, mine, lines)
    for part in ("random", "named"):
        for peer in ("ipf", "ipfn"):
            yield from _no_worse(
                f"{part}, exact: held-out at most that of {peer}",
                both("rejoint", peer, part, "exact", "zero row"),
                0.0,
            )
    for peer in ("ipf", "ipfn"):
        found = both("rejoint", peer, "random", "sampled")
        yield from _no_worse(
            f"random, sampled: held-out against {peer}", found, MARGIN, average=True
        )
    for peer in ("ipf", "ipfn", "smooth"):
        found = both("rejoint", peer, "real")
        yield from _no_worse(f"real: held-out against {peer}", found, MARGIN, average=True)
    for part in ("random", "named", "real"):
        for peer in ("ipf", "ipfn"):
            yield from _quick(part, both("completion", peer, part), peer, 3.0)
        yield from _whole_choice(part, [line for line in lines if line.part == part])
    # Beside the aims:
    kinds = ("sampled", "rounded 3", "rounded 5", "rounded nearest 5", "suppressed")
    for kind, peer in itertools.product(kinds, ("ipf", "smooth", "mbi")):
        if (kind, peer) != ("sampled", "ipf"):
            yield from _beside(
                f"random, {kind}, against {peer}", both("rejoint", peer, "random", kind)
            )
    for part in ("low rank", "real"):
        yield from _beside(f"{part}, against mbi", both("rejoint", "mbi", part))
    yield from _beside("low rank, against ipf", both("rejoint", "ipf", "low rank"))


def _met(part: str, mine: str, lines: Sequence[Line]) -> Iterator[str]:
    """Tables that a joint can meet are met to 1e-6; those of samples are left to the table."""
    own = [line for line in lines if (line.part, line.method) == (part, mine)]
    for failed in (line for line in own if line.failure):
        yield f"NOT REACHED  {part}: {mine} on {failed.case}: {failed.failure}"
    ran = [line for line in own if line.published == "sampled" and not line.failure]
    if ran:
        worst = max(ran, key=lambda line: line.chance)
        over = [line for line in ran if line.chance > MOST_CHANCE]
        yield (
            f"{said(not over)} {part}: {mine} meets tables of samples within {MOST_CHANCE:g} times "
            f"what chance makes in {len(ran) - len(over)} of {len(ran)}, worst {worst.chance:.2f} "
            f"({worst.case})"
        )
    ran = [line for line in own if line.published != "sampled" and not line.failure]
    if ran:
        worst = max(ran, key=lambda line: line.given)
        over = [line for line in ran if line.given > 1e-6]
        yield (
            f"{said(not over)} {part}: {mine} meets given tables to 1e-6 in {len(ran) - len(over)} "
            f"of {len(ran)}, worst {worst.given:.1e} ({worst.case}, {worst.published})"
        )


def _no_worse(
    aim: str, found: list[tuple[str, Line, Line]], margin: float, *, average: bool = False
) -> Iterator[str]:
    found = [(case, m, p) for case, m, p in found if not np.isnan(m.held)]
    if not found:
        return
    ratios = np.array([(m.held + SAME) / (p.held + SAME) for _, m, p in found])
    over = np.array([m.held > p.held * (1 + margin) + SAME for _, m, p in found])
    mean = float(np.exp(np.log(ratios).mean()))
    worst = int(ratios.argmax())
    reached = not over.any() and (mean < 1.0 or not average)
    yield (
        f"{said(reached)} {aim}: mean ratio {mean:.3f} over {len(found)}, worst "
        f"{ratios[worst]:.3f} ({found[worst][0]}), above by more than {margin:.0%} in "
        f"{int(over.sum())}"
    )


def _beside(what: str, found: list[tuple[str, Line, Line]]) -> Iterator[str]:
    ratios = np.array([(m.held + SAME) / (p.held + SAME) for _, m, p in found])
    if len(ratios):
        mean = float(np.exp(np.log(ratios).mean()))
        worst = float(ratios.max())
        yield f"             {what}: mean ratio {mean:.3f} over {len(found)}, worst {worst:.3f}"


def _quick(
    part: str, found: list[tuple[str, Line, Line]], peer: str, times: float
) -> Iterator[str]:
    if not found:
        return
    mine, theirs = (sum(pair[k].cpu for pair in found) for k in (1, 2))
    # A hundredth of a second is the start of either.
    ratios = [(m.cpu + 0.01) / (p.cpu + 0.01) for _, m, p in found]
    worst = int(np.argmax(ratios))
    yield (
        f"{said(max(ratios) <= times)} {part}: completion within {times:g} times the CPU of "
        f"{peer}: {mine:.1f} s against {theirs:.1f} s, more in {sum(r > times for r in ratios)} "
        f"of {len(ratios)}, worst {ratios[worst]:.1f} times ({found[worst][0]})"
    )


def _whole_choice(part: str, lines: Sequence[Line]) -> Iterator[str]:
    own = [line for line in lines if line.method == "rejoint" and not line.failure]
    if own:
        worst = max(own, key=lambda line: line.cpu)
        yield (
            f"{said(worst.cpu <= 10.0)} {part}: the whole choice within 10 CPU s: mean "
            f"{np.mean([line.cpu for line in own]):.2f} s, longest {worst.cpu:.1f} s ({worst.case})"
        )


def said(reached: bool) -> str:
    return "reached     " if reached else "NOT REACHED "
