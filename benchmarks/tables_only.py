"""Joints from small tables of one part of Adult, judged by 4-way tables of the other half.

The tables (two and three variables; categorical variables and income, missing as a level) are
written to a folder as ``rejoint tables`` would, and the records put away. The error is the mean
total variation over all 4-way tables of the half that was never seen. "by the records" are the
4-way tables of the first part itself, which nobody has who only has smaller tables: half or more
of every error here is the noise of the judging half.

    REJOINT_DATA=... python benchmarks/tables_only.py [--splits 3] [--without-mbi] [-o results.json]

Iterative proportional fitting (IPF) holds the whole joint, 113,400 cells of seven variables; the
76 million of nine it cannot. mbi's mixture of products (extra ``bench``) runs with its defaults.
"""

import argparse
import itertools
import json
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rejoint as rj
from rejoint.factorization import Smooth

Array = NDArray[np.float64]
Model = Callable[[tuple[str, ...]], Array]

NINE = (
    *("workclass", "education", "marital-status", "occupation", "relationship"),
    *("race", "sex", "native-country", "income"),
)
SEVEN = tuple(name for name in NINE if name not in ("native-country", "education"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=1, help="random halves to average over")
    parser.add_argument("--without-mbi", action="store_true")
    parser.add_argument("-o", "--output", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # such a rank is not determined; mbi has remarks of its own
    records = adult()
    lines = []
    for seed in range(args.splits):
        for line in one_split(records, seed, with_mbi=not args.without_mbi):
            print(f"split {seed}  " + text(line), flush=True)
            lines.append({"split": seed, **line})
    summary = summarise(lines)
    print("\nmean over splits")
    for line in summary:
        print(text(line))
    for words in verdicts(summary):
        print(words)
    if args.output:
        args.output.write_text(json.dumps({"lines": lines, "summary": summary}, indent=1) + "\n")


def adult() -> rj.Records:
    columns = rj.datasets.adult(backend="dict")
    filled = {name: ["?" if x is None else x for x in columns[name]] for name in NINE}
    return rj.Records.of(filled)


def one_split(records: rj.Records, seed: int, *, with_mbi: bool) -> Iterator[dict[str, Any]]:
    order = np.random.default_rng(seed).permutation(len(records))
    half = len(order) // 2
    parts = {"half": order[:half], "5 %": order[: len(order) // 20]}
    unseen = rj.Records(records.domain, records.codes[order[half:]])
    for variables, names in (("seven", SEVEN), ("nine", NINE)):
        judge = unseen.project(names)
        for part, rows in parts.items():
            seen = rj.Records(records.domain, records.codes[rows]).project(names)
            tables = tables_from_folder(seen)
            # Nothing below sees the records but the floor.
            known = {"variables": variables, "tables from": part}
            yield {**known, "method": "by the records", **judged(seen.marginal, judge)}
            for method, fit in methods(tables, variables, seed, with_mbi=with_mbi):
                began = time.process_time()
                model = fit()
                seconds = time.process_time() - began
                yield {**known, "method": method, "cpu s": seconds, **judged(model, judge)}


def tables_from_folder(records: rj.Records) -> rj.Marginals:
    """Two- and three-way tables after a way through files."""
    with tempfile.TemporaryDirectory() as folder:
        rj.Marginals.count(records, order=[2, 3]).write(Path(folder, "tables"))
        return rj.Marginals.read(Path(folder, "tables"))


def judged(model: Model, judge: rj.Records) -> dict[str, float]:
    names = itertools.combinations(judge.names, 4)
    errors = [0.5 * float(np.abs(model(four) - judge.marginal(four)).sum()) for four in names]
    return {"error": float(np.mean(errors))}


def methods(
    tables: rj.Marginals, variables: str, seed: int, *, with_mbi: bool
) -> Iterator[tuple[str, Callable[[], Model]]]:
    yield "independent", lambda: independent(tables)
    if variables == "seven":
        yield "IPF, pairs", lambda: ipf(tables, 2)
        yield "IPF, triples", lambda: ipf(tables, 3)
    if with_mbi and find_spec("mbi"):
        yield "mbi mixture", lambda: mbi_mixture(tables)
    yield "rejoint, one member", lambda: smooth(tables, seed, members=1).marginal
    yield "rejoint", lambda: smooth(tables, seed).marginal


def smooth(tables: rj.Marginals, seed: int, **how: int) -> rj.LowRankPMF:
    """``rejoint fit-tables --solver smooth``."""
    return rj.factorize(tables, solver=Smooth(**how), random_state=seed, progress=False).pmf


def independent(tables: rj.Marginals) -> Model:
    alone = [tables.marginal([name])[:, None] for name in tables.domain.names]
    return rj.LowRankPMF([1.0], alone, tables.domain).marginal


def ipf(tables: rj.Marginals, order: int, sweeps: int = 60) -> Model:
    """Iterative proportional fitting of the whole joint, from tables of one order."""
    shape = tables.domain.shape
    joint = np.full(shape, 1.0 / np.prod(shape))
    chosen = [i for i, s in enumerate(tables.index_subsets) if len(s) == order]
    for _ in range(sweeps):
        for i in chosen:
            subset, target = tables.index_subsets[i], tables.shares(i)
            gone = tuple(n for n in range(len(shape)) if n not in subset)
            found = joint.sum(axis=gone)
            ratio = np.divide(target, found, out=np.zeros_like(target), where=found > 0)
            joint *= np.expand_dims(ratio, gone)

    def marginal(names: tuple[str, ...]) -> Array:
        kept = tables.domain.indices(names)
        table: Array = joint.sum(axis=tuple(n for n in range(len(shape)) if n not in kept))
        return table

    return marginal


def mbi_mixture(tables: rj.Marginals) -> Model:
    """mbi's mixture of products, from the triples (which hold the pairs), with its defaults."""
    import mbi
    import optax
    from mbi.extensions import MixtureOfProductsEstimator

    domain = mbi.Domain(tables.domain.names, tables.domain.shape)
    given = [
        mbi.LinearMeasurement(tables.counts_of(i).ravel(), names)
        for i, names in enumerate(tables.subsets)
        if len(names) == 3
    ]
    estimator = MixtureOfProductsEstimator(optimizer=optax.adam(0.1))
    model = estimator.estimate(domain, given, known_total=float(tables.totals[0]))

    def marginal(names: tuple[str, ...]) -> Array:
        values = np.asarray(model.project(names).values, dtype=np.float64)
        return values / values.sum()

    return marginal


def summarise(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    keys = ("variables", "tables from", "method")
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for line in lines:
        groups.setdefault(tuple(line[key] for key in keys), []).append(line)
    return [
        {
            **dict(zip(keys, group, strict=True)),
            "error": float(np.mean([m["error"] for m in members])),
            **(
                {"cpu s": float(np.mean([m["cpu s"] for m in members]))}
                if "cpu s" in members[0]
                else {}
            ),
        }
        for group, members in groups.items()
    ]


def verdicts(summary: list[dict[str, Any]]) -> Iterator[str]:
    """The figures that were set as aims, and whether they are reached."""
    error = {(s["variables"], s["tables from"], s["method"]): s["error"] for s in summary}
    ours, peer = error["seven", "half", "rejoint"], error["seven", "half", "IPF, triples"]
    yield f"within 10 % of IPF: {said(ours <= 1.1 * peer)} ({ours / peer - 1:+.1%})"
    for variables in ("seven", "nine"):
        mixture = error.get((variables, "half", "mbi mixture"))
        if mixture is not None:
            mine = error[variables, "half", "rejoint"]
            reached = f"{said(mine < mixture)} ({mine / mixture - 1:+.1%})"
            yield f"below mbi's mixture, {variables}: {reached}"
    ours, peer = error["seven", "5 %", "rejoint"], error["seven", "5 %", "IPF, triples"]
    yield f"from 5 % of the rows below IPF: {said(ours < peer)} ({ours / peer - 1:+.1%})"


def said(reached: bool) -> str:
    return "reached" if reached else "NOT REACHED"


def text(line: dict[str, Any]) -> str:
    seconds = f"{line['cpu s']:8.1f} s" if "cpu s" in line else " " * 10
    head = f"{line['variables']:6} {line['tables from']:5} {line['method']:20}"
    return f"{head} error {line['error']:.4f}{seconds}"


if __name__ == "__main__":
    main()
