"""
Labels from a crowd: who is right, and who can be trusted
=========================================================

A thousand pictures of cats, dogs and foxes are labelled by five of 25 workers each. Some workers
are good, some guess, some call nearly every dog a cat. Nobody knows who is who, and 80 % of the
table of pictures by workers is empty.

The model of Dawid and Skene (1979) is the one of this library: workers are variables, the true
label is the hidden class, and the factor of a worker says how they label each kind of picture.
"""

import numpy as np
from scipy.optimize import linear_sum_assignment

import rejoint as rj

animals = np.array(["cat", "dog", "fox"])
rng = np.random.default_rng(0)


def symmetric(right):
    """Right with this probability, else any of the other two."""
    return np.where(np.eye(3, dtype=bool), right, (1 - right) / 2)


kinds = {
    "good": symmetric(0.85),
    "fair": symmetric(0.6),
    "guessing": symmetric(1 / 3),
    "dogs are cats": np.array([[0.9, 0.05, 0.05], [0.8, 0.15, 0.05], [0.2, 0.05, 0.75]]),
}
kind_of = rng.choice(list(kinds), size=25)
truth = rng.choice(3, size=1000, p=[0.5, 0.3, 0.2])
labels = np.full((1000, 25), None, dtype=object)
for picture, animal in enumerate(truth):
    for worker in rng.choice(25, size=5, replace=False):
        labels[picture, worker] = animals[rng.choice(3, p=kinds[kind_of[worker]][animal])]

# %%
# Fit the joint of all workers. There are only 200 labels from each, so a prior helps:
# ``solver="map"``.
workers = [f"worker {w}" for w in range(25)]
table = dict(zip(workers, labels.T, strict=True))
model = rj.JointPMF(rank=3, solver="map", random_state=0).fit(table)
print(model.result_.stop)

# %%
# The hidden classes have no names yet. A class is called what the workers call its pictures, on
# average over all of them.
profiles = model.profiles("pandas")
called = profiles.groupby("level").mean().loc[animals]
names = linear_sum_assignment(-called[[f"class {f + 1}" for f in range(3)]].to_numpy().T)[1]
called.round(2)

# %%
# Against the truth, which no estimate has seen: majority vote counts a guess as much as knowledge.
votes = np.stack([(labels == animal).sum(axis=1) for animal in animals], axis=1)
majority = np.argmax(votes + 0.5 * rng.random(votes.shape), axis=1)  # ties are drawn
found = names[model.predict(table)]
print(f"majority vote: {np.mean(majority == truth):.1%} right")
print(f"hidden class:  {np.mean(found == truth):.1%} right")

# %%
# It knows when it knows: how often it is right, by how sure it is.
sure = model.predict_proba(table).max(axis=1)
for low, high in [(0.0, 0.6), (0.6, 0.8), (0.8, 0.95), (0.95, 1.01)]:
    there = (sure >= low) & (sure < high)
    share = np.mean(found[there] == truth[there])
    print(f"{there.sum():4} pictures at {low:.0%} to {min(high, 1):.0%}: {share:.0%} right")

# %%
# And who can be trusted: the share of right labels that the model expects of each worker, against
# the one they were made with.
import matplotlib.pyplot as plt

fig, ax = plt.subplots(layout="constrained")
shares = np.array([0.5, 0.3, 0.2])
for kind in kinds:
    mine = [w for w in range(25) if kind_of[w] == kind]
    made = [shares @ np.diag(kinds[kind])] * len(mine)
    guess = []
    for w in mine:
        rows = [model.pmf_.domain[w].code(animals[name]) for name in names]
        right = model.pmf_.factors[w][rows, range(3)]
        guess.append(right @ model.pmf_.weights)
    ax.plot(made, guess, "o", label=kind, alpha=0.7)
ax.plot([0, 1], [0, 1], color="#b8b8b8", zorder=0)
ax.set_xlabel("share of right labels, true")
ax.set_ylabel("share of right labels, estimated")
ax.legend(frameon=False)
