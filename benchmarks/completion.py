"""Completions with too many classes, and completions of few classes for a page.

For each set of tables: classes, the worst distance (total variation) to a given table, the mean
distance to the exact completion in tables of four variables that were not given, and CPU seconds.
The exact completion is known where a junction tree of the tables has small cliques, or where the
exact mixture has few enough classes; elsewhere the distance is to 600,000 records of the truth, a
log-linear model with the effects of the given tables, whose noise is in the same line.

    python benchmarks/completion.py [SET ...] [--compact] [-o results.json]
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rejoint as rj
from rejoint.factorization.clique_tables import CliqueTables
from rejoint.factorization.complete_approximately import (
    compact_completion,
    complete_approximately,
    fit_cliques,
    measure_distance,
)
from rejoint.factorization.factorize import complete_tables
from rejoint.factorization.max_entropy import independent_model, make_completion_problem
from rejoint.factorization.table_goals import exact_goals
from rejoint.marginals.compare import expected_distance
from rejoint.model import Model
from rejoint.queries.junction_tree import JunctionTree
from rejoint.queries.tables import Tabulate, tables_of_model
from rejoint.solver.session import Session

Codes = NDArray[np.intp]
Subset = tuple[int, ...]

RECORDS, KEPT = 20_000, 30


def chain(size: int) -> list[Subset]:
    return [(n, n + 1) for n in range(size - 1)]


def random_sets(size: int, number: int, seed: int) -> list[Subset]:
    rng = np.random.default_rng(seed)
    drawn = {
        tuple(sorted(rng.choice(size, rng.integers(2, 4), replace=False).tolist()))
        for _ in range(number)
    }
    held = {n for subset in drawn for n in subset}
    missing = [tuple(sorted((n, (n + 1) % size))) for n in range(size) if n not in held]
    return sorted(drawn | set(missing))


MIXED = tuple(int(size) for size in np.random.default_rng(5).integers(2, 8, 20))

#: Levels, tables, and the standard deviation of the effects of the truth.
SETS: dict[str, tuple[tuple[int, ...], list[Subset], float]] = {
    "chain 12x4": ((4,) * 12, chain(12), 1.0),
    "chain 20x4": ((4,) * 20, chain(20), 1.0),
    "cycle 20x4": ((4,) * 20, [*chain(20), (0, 19)], 1.0),
    "20 mixed, 40 pairs and triples": (MIXED, random_sets(20, 40, 6), 0.5),
    "pairs 10x4": ((4,) * 10, list(combinations(range(10), 2)), 0.3),
    "pairs 12x4": ((4,) * 12, list(combinations(range(12), 2)), 0.3),
    "pairs 20x4": ((4,) * 20, list(combinations(range(20), 2)), 0.25),
}

#: The same for completions whose exact mixture is made smaller.
WIDE: dict[str, tuple[tuple[int, ...], list[Subset], float]] = {
    "chain 12x4": SETS["chain 12x4"],
    "triples 8x3": ((3,) * 8, list(combinations(range(8), 3)), 0.3),
    "pairs 8x4": ((4,) * 8, list(combinations(range(8), 2)), 0.35),
    "triples 10x3": ((3,) * 10, list(combinations(range(10), 3)), 0.15),
    "pairs 10x4": SETS["pairs 10x4"],
}


def draw_records(
    levels: Sequence[int], sets: Sequence[Subset], size: float, seed: int = 0
) -> Codes:
    """Records of a random log-linear model with effects of the tables, by Gibbs sampling."""
    rng = np.random.default_rng(seed)
    effects = {s: size * rng.standard_normal([levels[n] for n in s]) for s in sets}
    codes = np.stack([rng.integers(number, size=RECORDS) for number in levels], axis=1)
    kept = []
    for sweep in range(2 * KEPT):
        for n, number in enumerate(levels):
            logs = np.zeros((RECORDS, number))
            for subset, effect in effects.items():
                if n in subset:
                    cube = np.moveaxis(effect, subset.index(n), -1)
                    logs += cube[tuple(codes[:, m] for m in subset if m != n)]
            shares = np.exp(logs - logs.max(axis=1, keepdims=True))
            ends = np.cumsum(shares, axis=1)
            codes[:, n] = (rng.random((RECORDS, 1)) * ends[:, -1:] > ends[:, :-1]).sum(axis=1)
        if sweep >= KEPT:
            kept.append(codes.copy())
    return np.concatenate(kept)


class RecordTables:
    """Tables of records, as shares."""

    def __init__(self, levels: Sequence[int], codes: Codes) -> None:
        self.levels, self.codes = levels, codes

    def table(self, subset: Sequence[int]) -> NDArray[np.float64]:
        shape = [self.levels[n] for n in subset]
        cell = np.ravel_multi_index([self.codes[:, n] for n in subset], shape)
        counts = np.bincount(cell, minlength=int(np.prod(shape))).reshape(shape)
        return counts / len(self.codes)


def make_marginals(
    levels: Sequence[int], sets: Sequence[Subset], truth: RecordTables
) -> rj.Marginals:
    flat = np.concatenate([truth.table(s).ravel() for s in sets]) * len(truth.codes)
    domain = rj.Domain.of({f"x{n:02}": size for n, size in enumerate(levels)})
    return rj.Marginals(domain, tuple(sets), flat)


def quadruples(levels: Sequence[int], sets: Sequence[Subset]) -> list[Subset]:
    """Some sixty tables of four variables at random, none of them given."""
    rng = np.random.default_rng(1)
    size = len(levels)
    drawn = {tuple(sorted(rng.choice(size, 4, replace=False).tolist())) for _ in range(60)}
    return sorted(s for s in drawn if not any(set(s) <= set(given) for given in sets))


def find_reference(
    levels: Sequence[int], marginals: rj.Marginals, truth: RecordTables
) -> tuple[Tabulate, str]:
    """The exact completion where it is known, else records of the truth."""
    goals = exact_goals(marginals)
    tree = JunctionTree.of(levels, [goal.subset for goal in goals])
    if tree.cells(levels) <= 2_000_000:
        start = independent_model(levels, goals)
        tables = CliqueTables(levels, tree, [part[:, 0] for part in start.parts])
        fit_cliques(tables, goals, Session(np.random.default_rng(0)))
        return tables.table, "exact completion"
    if make_completion_problem(levels, goals) is not None:
        done = complete_tables(marginals, Session(np.random.default_rng(0)))
        return tables_of_model(Model.of(done.pmf.weights, done.pmf.factors)), "exact completion"
    return truth.table, "records of the truth"


def approximate(name: str) -> Iterator[dict[str, Any]]:
    """Approximate a completion, whether or not its exact mixture is small enough."""
    levels, sets, size = SETS[name]
    truth = RecordTables(levels, draw_records(levels, sets, size))
    marginals = make_marginals(levels, sets, truth)
    reference, what = find_reference(levels, marginals, truth)
    judged = quadruples(levels, sets)
    goals = exact_goals(marginals)
    begun = time.process_time()
    done = complete_approximately(
        marginals, goals, Session(np.random.default_rng(0)), lambda run, text: run
    )
    seconds = time.process_time() - begun
    own = independent_model(levels, goals)
    noise = np.mean([expected_distance(truth.table(s), len(truth.codes)) for s in judged])
    yield {
        "set": name,
        "classes": done.model.rank,
        "given": done.objective,
        "reference": what,
        "others": measure_distance(done.model, reference, judged),
        "independent": measure_distance(own, reference, judged),
        "noise": 0.0 if what == "exact completion" else float(noise),
        "seconds": seconds,
    }


def shrink(name: str) -> Iterator[dict[str, Any]]:
    """Make a completion smaller, and weigh the file of the whole."""
    levels, sets, size = WIDE[name]
    truth = RecordTables(levels, draw_records(levels, sets, size))
    done = complete_tables(make_marginals(levels, sets, truth), Session(np.random.default_rng(0)))
    whole = Model.of(done.pmf.weights, done.pmf.factors)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "whole.rejoint")
        done.pmf.save(path)
        saved = path.stat().st_size
    judged = quadruples(levels, sets)
    for most in (300, 500, 1000):
        begun = time.process_time()
        few = compact_completion(whole, sets, most)
        seconds = time.process_time() - begun
        given = [
            0.5 * np.abs(tables_of_model(few)(s) - tables_of_model(whole)(s)).sum() for s in sets
        ]
        yield {
            "set": name,
            "classes": few.rank,
            "of": whole.rank,
            "file_bytes": saved,
            "given": float(max(given)),
            "others": measure_distance(few, tables_of_model(whole), judged),
            "whole_from_truth": measure_distance(whole, truth.table, judged),
            "few_from_truth": measure_distance(few, truth.table, judged),
            "seconds": seconds,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", help="some of the sets; all by default")
    parser.add_argument("--compact", action="store_true", help="make exact completions smaller")
    parser.add_argument("-o", "--output", type=Path)
    args = parser.parse_args()
    lines = []
    for name in args.sets or (WIDE if args.compact else SETS):
        for line in (shrink if args.compact else approximate)(name):
            shown = (f"{k} {v:.3g}" if isinstance(v, float) else f"{v}" for k, v in line.items())
            print("  ".join(shown), flush=True)
            lines.append(line)
    if args.output:
        args.output.write_text(json.dumps(lines, indent=1) + "\n")


if __name__ == "__main__":
    main()
