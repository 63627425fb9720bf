"""From records to the joint: likelihood and Bayes, on records with holes.

problem      records as the estimators see them, and the one pass over them
em           likelihood, with or without a prior, by accelerated EM (quasi_newton)
variational  variational Bayes
priors       Dirichlet priors and the strengths the data speak for
starts       where estimation begins
exploring    starts followed for a while, side by side
gibbs        posterior draws (bayes: from several chains; chain_book: where they stand)
smoothing    neighbouring levels that inform each other (slipping: how much)
fitting      the fits behind estimate: starts, stages, and what comes out (tidy)
surveys      one look at records that are read part by part: totals, a sample, all if they are few
passes       such records as the estimators see them
scanned      the same fits by passes over them (mixing: what the draws are worth)
choices      what an estimate decides by itself
checkpoints  fits that go on where they were interrupted
estimating   estimate: all together
"""

from rejoint.estimation.em import Em
from rejoint.estimation.estimate import PLENTY, choose, estimate
from rejoint.estimation.gibbs import Bayes
from rejoint.estimation.priors import Prior

__all__ = ["PLENTY", "Bayes", "Em", "Prior", "choose", "estimate"]
