"""
The Asia network from records with holes
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
# Questions that reach across the network, to both models.
questions = [
    ({"lung": "yes"}, {"smoke": "yes", "dysp": "yes"}),
    ({"lung": "yes"}, {"smoke": "yes", "xray": "yes"}),
    ({"bronc": "yes"}, {"dysp": "yes"}),
    ({"bronc": "yes"}, {"dysp": "yes", "xray": "yes"}),
]
rj.plots.posteriors({"true": truth, "recovered": result.pmf}, questions)

# %%
# The hidden classes that explain the patients, largest first: what each level's probability is
# within the class.
rj.plots.factors(result.pmf)
