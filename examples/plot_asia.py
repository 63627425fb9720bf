"""
The Asia network from incomplete records
========================================

Lauritzen and Spiegelhalter's chest clinic has eight yes/no variables and a joint that is known
exactly. We sample patients from it, lose 30 % of the cells, and recover the joint from tables of
three variables, without telling anyone that there was a graph.
"""

import rejoint as rj

truth = rj.datasets.asia()
patients = truth.sample(5_000, random_state=0)
patients = rj.datasets.remove_cells(patients, 0.3, random_state=0)
patients

# %%
# Count every triple from the records that have its three cells, then factor all tables at once.
triples = rj.Marginals.count(patients, order=3)
result = rj.factorize(triples, rank=5, random_state=0)
print(len(triples), "tables;", result.stop)

# %%
# How far is the recovered joint from the true one? Total variation is the largest difference in
# probability over all events.
print(f"total variation {rj.metrics.total_variation(truth, result.pmf):.3f}")

# %%
# The rank was a choice. Here is the same for others, on the same records: how well the tables are
# met, which can always be seen, and how far off the joint is, which only a known truth can tell.
# A rank that meets the tables better need not have the better joint.
for rank in range(3, 9):
    other = rj.factorize(triples, rank=rank, random_state=0)
    distance = rj.metrics.total_variation(truth, other.pmf)
    print(f"rank {rank}: error of the tables {other.error:.4f}, total variation {distance:.3f}")

# %%
# Questions that reach across the network, to both models. Tuberculosis is rare (1 %), and least
# squares on tables pays little for getting rare things wrong: those answers can be far off while
# the joint as a whole is near.
questions = [
    ({"lung": "yes"}, {"smoke": "yes", "dysp": "yes"}),
    ({"lung": "yes"}, {"smoke": "yes", "xray": "yes"}),
    ({"bronc": "yes"}, {"dysp": "yes"}),
    ({"bronc": "yes"}, {"dysp": "yes", "xray": "yes"}),
    ({"tub": "yes"}, {"lung": "no", "xray": "yes"}),
    ({"tub": "yes"}, {"asia": "yes", "xray": "yes"}),
]
rj.plots.posteriors({"true": truth, "recovered": result.pmf}, questions)

# %%
# The hidden classes that explain the patients, largest first: what each level's probability is
# within the class.
rj.plots.factors(result.pmf)
