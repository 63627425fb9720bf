"""
Printed tables with cells held back
===================================

An office prints cross tables of a small district: counts below ten are held back, to protect the
people behind them. Zero is the wrong guess for such a cell. Here the tables are read from files as
they might be published, the joint of all questions is recovered, and the cells are filled.
"""

import tempfile
from itertools import combinations
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import rejoint as rj

# %%
# The district, only needed to print the tables and to check the answers: 2,000 people of three
# ways of life.
rng = np.random.default_rng(1)
domain = rj.Domain.of(
    {
        "work": ["none", "part", "full", "own"],
        "home": ["rent", "own", "shared", "other"],
        "car": ["none", "one", "two", "more"],
        "care": ["none", "child", "parent", "both"],
    }
)
factors = [rng.dirichlet(np.full(4, 0.5), size=3).T for _ in range(4)]
people = rj.LowRankPMF([0.5, 0.3, 0.2], factors, domain).sample(2000, random_state=0)
counted = rj.Marginals.count(people, order=3)

# %%
# A file for each table of three questions; below ten it only says so.
folder = Path(tempfile.mkdtemp())
for names in combinations(domain.names, 3):
    lines = [",".join([*names, "count"])]
    for cell, count in np.ndenumerate(counted[names]):
        labels = [domain[name].levels[i] for name, i in zip(names, cell, strict=True)]
        lines.append(",".join([*labels, "<10" if count < 10 else f"{count:.0f}"]))
    (folder / f"{'_'.join(names)}.csv").write_text("\n".join(lines))
print(*lines[:6], sep="\n")

# %%
# Read, and fitted: cells that are not known are filled by what the model expects, within their
# bounds, and the model is fitted again until nothing moves.
tables = rj.Marginals.read(folder)
print(tables)
result = rj.factorize(tables, rank=3, solver="kl", n_init=2, random_state=0)
print(result.stop)

# %%
# How well are the tables met? Worst first, beside what chance alone would leave.
print(tables.compare(result.pmf))

# %%
# What was held back, as it is in the district and as it was filled: on average right, where zero
# would be wrong by the same sign every time.
filled = tables.filled(result.pmf)
aligned = rj.Marginals.count(rj.Records.of(people, domain=tables.domain), subsets=tables.subsets)
truth, guess = (m.flat[tables.unknown.places] for m in (aligned, filled))
print(f"held back: {truth.mean():.2f} a cell in truth, {guess.mean():.2f} filled, 0 as zero")

fig, ax = plt.subplots(figsize=(5, 4), layout="constrained")
shift = rng.uniform(-0.2, 0.2, size=len(truth))  # so that equal counts do not hide each other
ax.plot(truth + shift, guess, "o", markersize=4, alpha=0.5)
ax.plot([0, 9], [0, 9], color="0.5", linewidth=1)
ax.set(xlabel="count in the district", ylabel="filled", title="Cells held back")

# %%
# A synthetic district of 2,000 records, to hand out in place of the real one: its tables are the
# printed ones, in whole numbers.
made = rj.synthesize(result.pmf, 2000, tables, random_state=0)
print(made.stop)
made.records.to_frame().head()
