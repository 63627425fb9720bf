"""Estimation of the joint from incomplete records, by likelihood and Bayes.

estimate        estimate: rank, starts, fit and answer, for records in memory and beyond
policy          Policy: every tuned number of a fit to records
data            Data: records as estimators see them, in memory or read part by part
part_summary    PartSummary: totals, patterns and a sample of records read part by part
starts          models to start from, the search among them, whether their ends agree
em              Em: maximum likelihood and maximum a posteriori
variational     Variational: Dirichlet posteriors, and concentrations of the priors
gibbs           Bayes: posterior draws by Gibbs sampling
priors          Dirichlet priors of weights and factor columns
smoothing       smooth columns of ordered variables
folds           records to learn from and records held out
posterior_mean  the one model that answers, made of the kept sweeps of a sampler
pair_shift      tables of two variables: misfit, the shift towards them, gaps
blocks          variables tabulated jointly within classes: found, and fitted
placed_blocks   blocks that passes allow for while classes are fitted
"""

from rejoint.estimation.em import Em
from rejoint.estimation.estimate import estimate
from rejoint.estimation.gibbs import Bayes
from rejoint.estimation.policy import Policy
from rejoint.estimation.priors import Prior
from rejoint.estimation.variational import Variational

__all__ = ["Bayes", "Em", "Policy", "Prior", "Variational", "estimate"]
