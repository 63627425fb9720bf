"""
A table that nobody published
=============================

Offices publish cross tables of a few questions at a time. Here are three such tables on five
questions, rounded as printed tables are. There are no records, and no table has sport and health
side by side. How healthy are those who do sport?
"""

import numpy as np

import rejoint as rj

# %%
# The world behind the tables, only needed to make them and to check the answer: three ways of
# life that nobody recorded.
domain = rj.Domain.of(
    {
        "age": ["18-39", "40-64", "65+"],
        "income": ["low", "middle", "high"],
        "smokes": ["never", "former", "daily"],
        "sport": ["none", "weekly", "daily"],
        "health": ["poor", "fair", "good"],
    }
)
world = rj.LowRankPMF(
    [0.45, 0.30, 0.25],
    [
        [[0.5, 0.2, 0.4], [0.4, 0.3, 0.5], [0.1, 0.5, 0.1]],
        [[0.2, 0.5, 0.6], [0.5, 0.4, 0.3], [0.3, 0.1, 0.1]],
        [[0.7, 0.4, 0.1], [0.2, 0.5, 0.2], [0.1, 0.1, 0.7]],
        [[0.2, 0.5, 0.8], [0.5, 0.3, 0.1], [0.3, 0.2, 0.1]],
        [[0.05, 0.5, 0.3], [0.25, 0.4, 0.4], [0.7, 0.1, 0.3]],
    ],
    domain,
)
subsets = [("age", "income", "health"), ("age", "smokes", "sport"), ("income", "smokes", "health")]
published = {names: (100 * world.table(names)).round(2) for names in subsets}
published["age", "smokes", "sport"]

# %%
# The tables in, the joint of all five questions out.
tables = rj.Marginals.from_tables(published)
result = rj.factorize(tables, rank=3, random_state=0)
print(result.stop)

# %%
# Health by sport, in per cent of each row: never published, recovered from the three tables.
sport = ["none", "weekly", "daily"]
recovered = [result.pmf.marginal("health", given={"sport": level}) for level in sport]
print((100 * np.array(recovered)).round(1))

# %%
# And as it is in the world:
truth = [world.marginal("health", given={"sport": level}) for level in sport]
print((100 * np.array(truth)).round(1))

# %%
# Taking sport and health as independent, which is all that single tables allow, misses it:
questions = [({"health": "good"}, {"sport": level}) for level in sport]
alone = rj.LowRankPMF([1.0], [tables.marginal([name])[:, None] for name in domain.names], domain)
rj.plots.posteriors({"world": world, "recovered": result.pmf, "independent": alone}, questions)
