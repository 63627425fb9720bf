"""
What tables can and cannot tell
===============================

A model may meet every table and still not be the only one that does. Three pictures: two models
with the same pairs, the rank that a few triples determine, and the bounds that are proved.
"""

import matplotlib.pyplot as plt
import numpy as np

import rejoint as rj

# %%
# Same pairs, other answers
# -------------------------
#
# Three kinds of customers, six yes/no questions. All fifteen tables of pairs are known, exactly.
rng = np.random.default_rng(0)
questions = ["coffee", "bike", "garden", "chess", "opera", "dog"]
domain = rj.Domain.of({name: ["yes", "no"] for name in questions})
yes = rng.uniform(0.05, 0.95, (6, 3))
world = rj.LowRankPMF([0.5, 0.3, 0.2], [np.array([p, 1 - p]) for p in yes], domain)
pairs = [(a, b) for k, a in enumerate(questions) for b in questions[:k]]

asked, given = "opera", {"dog": "no", "bike": "yes"}
two = rj.identifiability.ambiguity(world, asked, given, subsets=pairs)
print(two.verdict)

# %%
# Both models of the walk have the same pairs, to the last digit; they differ in their answers.
low, high = sorted(two.models, key=lambda p: p.prob({asked: "yes"}, given))
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), width_ratios=[3, 2])
tables = [np.concatenate([p.marginal(s).ravel() for s in pairs]) for p in (low, high)]
left.plot(*tables, "o", ms=4)
left.axline((0, 0), slope=1, lw=0.8, color="grey")
left.set(xlabel="cells of all pairs, one model", ylabel="the other model", title="what was given")
right.bar(["one model", "the other"], [p.prob({asked: "yes"}, given) for p in (low, high)])
right.set(ylim=(0, 1), title=f"P({asked} | bike, no dog)")
figure.tight_layout()

# %%
# A few tables of three variables close it; the plan says which:
plan = rj.identifiability.plan(domain=domain, rank=3, given=pairs)
print(plan)
print(rj.identifiability.ambiguity(world, asked, given, subsets=[*pairs, *plan.subsets]))

# %%
# Few triples go far
# ------------------
#
# The largest rank that is locally unique, by the number of triples of eight variables of three
# levels. Counting parameters gives the line; random triples follow it closely.


def largest_rank(subsets, rank):
    """Downwards from what counting allows."""
    while not rj.identifiability.jacobian([3] * 8, rank, subsets).parameters:
        rank -= 1
    return rank


every = [(i, j, k) for k in range(8) for j in range(k) for i in range(j)]
numbers, found, counted = [4, 6, 8, 12, 18, 28], [], []
for number in numbers:
    rng = np.random.default_rng(number)
    while True:
        some = [every[k] for k in rng.choice(len(every), number, replace=False)]
        if len({n for s in some for n in s}) == 8:
            break
    counted.append(rj.identifiability.report([3] * 8, subsets=some).counting)
    found.append(largest_rank(some, counted[-1]))
figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
axes.plot(numbers, counted, color="grey", label="counting")
axes.plot(numbers, found, "o", label="Jacobian test")
axes.set(xlabel="triples", ylabel="largest rank", title="8 variables of 3 levels")
axes.legend()

# %%
# What is proved
# --------------
#
# All triples of N variables of three levels: the bounds of the paper as printed, those that are
# proved, and what counting leaves possible.
sizes = [6, 10, 14, 20, 30, 40, 60, 80]
reports = [rj.identifiability.report([3] * n, order=3) for n in sizes]
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
axes.plot(sizes, [r.counting for r in reports], color="grey", label="counting")
axes.plot(sizes, [r["Theorem 2"].rank for r in reports], "--", label="Theorem 2, as printed")
axes.plot(sizes, [r["Table II/III"].rank for r in reports], ":", label="Table II, as printed")
axes.plot(sizes, [r.best.rank for r in reports], "o-", label="largest proved")
axes.plot(sizes, [r["Lemma 1 (Kruskal)"].rank for r in reports], label="Kruskal, corrected")
axes.set(xlabel="variables", ylabel="rank", yscale="log", title="all triples, 3 levels")
axes.legend()
