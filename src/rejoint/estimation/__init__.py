"""From records to the joint: likelihood and Bayes, on incomplete records."""

from rejoint.estimation.em import Em
from rejoint.estimation.estimate import estimate
from rejoint.estimation.gibbs import Bayes
from rejoint.estimation.policy import Policy
from rejoint.estimation.priors import Prior
from rejoint.estimation.variational import Variational

__all__ = ["Bayes", "Em", "Policy", "Prior", "Variational", "estimate"]
