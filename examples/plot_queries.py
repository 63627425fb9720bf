"""
Asking a joint PMF
==================

One object, every question: levels, lists of levels and soft evidence on one side; probabilities,
tables, expectations and most probable values on the other.
"""

import numpy as np

import rejoint as rj

p = rj.datasets.asia()

# %%
# A probability, plain and under evidence. Evidence may be a level, ...
print(f"{p.prob({'lung': 'yes'}):.3f}")
print(f"{p.prob({'lung': 'yes'}, given={'smoke': 'yes', 'xray': 'yes'}):.3f}")

# %%
# ... a list of levels, any of which may hold, ...
print(f"{p.prob({'lung': 'yes'}, given={'smoke': ['yes', 'no'], 'xray': 'yes'}):.3f}")

# %%
# ... or soft: likelihoods, one per level. An X-ray hard to read, four times as likely to look so
# if it is positive:
print(f"{p.prob({'lung': 'yes'}, given={'smoke': 'yes', 'xray': np.array([0.8, 0.2])}):.3f}")

# %%
# A whole conditional table, with labels.
p.table(["lung", "bronc"], given={"dysp": "yes"})

# %%
# The most probable values *together* are not always the most probable values *one by one*.
# Here is a world where they differ:
world = rj.LowRankPMF.from_dense(
    np.array([[0.0, 0.3, 0.3], [0.4, 0.0, 0.0]]),
    domain=rj.Domain.of({"road": ["dry", "wet"], "traffic": ["low", "mid", "high"]}),
)
print("together:  ", world.mode(["road", "traffic"]))
print("one by one:", world.mode(["road", "traffic"], each=True))

# %%
# Samples, under evidence as well.
p.sample(5, given={"dysp": "yes"}, random_state=0)

# %%
# How the evidence moves one answer.
evidence = [{}, {"smoke": "yes"}, {"smoke": "yes", "xray": "yes"}, {"smoke": "no", "xray": "yes"}]
rj.plots.posteriors({"Asia": p}, [({"lung": "yes"}, given) for given in evidence])
